# A stub agent: sh agent.sh KIND JOURNAL. All it ever writes is new files below chat/, each whole
# before it is there; the journal names those that were, after they were.
kind=$1 journal=$2/$TMUXORCH_AGENT_ID me=$TMUXORCH_AGENT_ID-$$ n=0

note() {
    n=$((n + 1))
    mkdir -p chat && printf '%s %s\n' "$me" "$n" >"chat/.part-$$" &&
        mv "chat/.part-$$" "chat/$me-$n" && echo "$me-$n" >>"$journal"
}

case $kind in
idle) exec sleep 100000 ;;
empty) sleep 0.4 ;;
done) note; sleep 0.4 ;;
crash) note; sleep 0.4; exit 3 ;;
chat) while [ $n -lt 40 ]; do note; sleep 0.1; done; exec sleep 100000 ;;
echo) while read -r line; do note; done ;;
stubborn)
    trap '' HUP TERM INT
    setsid sh -c 'trap "" HUP TERM; while :; do sleep 5; done' &
    note
    while :; do sleep 5; done
    ;;
esac

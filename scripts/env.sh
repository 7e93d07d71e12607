# Sourced by the other scripts, in any POSIX shell: a virtual environment with what they need,
# and the programs that a person would otherwise have to install.
# Everything it does is said; nothing is done twice, and nothing that is there is asked for.

root=$(cd "$(dirname "${BASH_SOURCE:-$0}")/.." && pwd)
venv=${TMUXORCH_VENV:-$root/.venv}

[ -f "$root/scripts/env.sh" ] || { echo "source env.sh from a script in scripts/, or in bash" >&2; return 1; }

say() { printf '%s\n' "== $*" >&2; }

has() { command -v "$1" >/dev/null 2>&1; }

# -- system packages ---------------------------------------------------------------------

# The package manager of this machine.
manager() {
    for manager in apt-get dnf pacman apk brew; do
        if has "$manager"; then
            printf '%s\n' "$manager"
            return
        fi
    done
    return 1
}

# The package that has the program here; nothing if there is none.
package_of() {
    case $1:$2 in
        apt-get:ps | apt-get:top) echo procps ;;
        dnf:ps | dnf:top | pacman:ps | pacman:top | apk:ps | apk:top) echo procps-ng ;;
        *:ps | *:top) ;;
        brew:unshare | brew:setsid) ;;
        *:unshare | *:setsid) echo util-linux ;;
        apt-get:venv) echo "$(find_python || echo python3)-venv" ;;
        pacman:python3) echo python ;;
        # One that is there is too old.
        apt-get:python3 | dnf:python3) if has python3; then echo python3.11; else echo python3; fi ;;
        *:venv) ;;
        *) echo "$2" ;;
    esac
}

# How packages are installed here, as a person would type it.
install_command() {
    case $1 in
        apt-get) echo "apt-get install -y" ;;
        dnf) echo "dnf install -y" ;;
        pacman) echo "pacman -Sy --noconfirm" ;;
        apk) echo "apk add" ;;
        brew) echo "brew install" ;;
    esac
}

# Whether packages can be installed without asking anybody for a password.
may_install() { [ "$1" = brew ] || [ "$(id -u)" = 0 ]; }

# Install what provides these programs, where that may be done; 1 if it may not or fails.
install_programs() {
    how=$(manager) || return 1
    may_install "$how" || return 1
    packages=
    for program in "$@"; do
        package=$(package_of "$how" "$program")
        case " $packages " in *" $package "*) ;; *) packages="$packages $package" ;; esac
    done
    [ -n "$packages" ] || return 1
    say "installing$packages"
    [ "$how" != apt-get ] || apt-get update -qq >&2 || true
    # Names of packages hold no spaces.
    # shellcheck disable=SC2046,SC2086
    DEBIAN_FRONTEND=noninteractive $(install_command "$how") $packages >/dev/null ||
        { say "installing$packages failed"; return 1; }
}

# What a person can do about missing programs.
advice() {
    if how=$(manager) && packages=$(for program in "$@"; do package_of "$how" "$program"; done) &&
        [ -n "$packages" ]; then
        # shellcheck disable=SC2046,SC2086
        echo "run: $(may_install "$how" || echo "sudo ")$(install_command "$how")" $packages
    else
        echo "install it and try again"
    fi
}

# Have these programs, or end with a sentence.
need() {
    missing=$(lacking "$@")
    # shellcheck disable=SC2086
    [ -z "$missing" ] || install_programs $missing || true
    # shellcheck disable=SC2086
    missing=$(lacking $missing)
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086
    say "needed and not there:" $missing "- $(advice $missing)"
    return 1
}

# Have these programs if it may be; tests that use one which is not there are skipped.
want() {
    missing=$(lacking "$@")
    # shellcheck disable=SC2086
    [ -z "$missing" ] || install_programs $missing || true
    # shellcheck disable=SC2086
    missing=$(lacking $missing)
    # shellcheck disable=SC2086
    [ -z "$missing" ] || say "not there, so that what tests it is skipped:" $missing
}

lacking() {
    for program in "$@"; do
        case $program in
            python3) find_python >/dev/null ;;
            venv) works || way_to_venv >/dev/null ;;
            *) has "$program" ;;
        esac || echo "$program"
    done
}

# -- Python ------------------------------------------------------------------------------

# The first Python that is new enough.
find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if has "$candidate" &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

# Whether the virtual environment is there and its Python still is.
works() { "$venv/bin/python" -c '' 2>/dev/null; }

# What can make a virtual environment here: some systems ship Python without all of it.
way_to_venv() {
    python=$(find_python) || return 1
    if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        echo "$python -m venv"
    elif has uv; then
        echo "uv venv -q --python $python"
    elif "$python" -m pip --version >/dev/null 2>&1 && "$python" -c 'import venv' 2>/dev/null; then
        echo "$python -m venv --without-pip"
    elif "$python" -m virtualenv --version >/dev/null 2>&1; then
        echo "$python -m virtualenv -q"
    else
        return 1
    fi
}

# Install into the environment: pip's arguments.
add_packages() {
    if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        PIP_USER=0 "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@" >&2
    elif has uv; then
        uv pip install -q --python "$venv/bin/python" "$@" >&2
    else
        PIP_USER=0 "$(find_python)" -m pip --python "$venv/bin/python" \
            install -q --disable-pip-version-check "$@" >&2
    fi
}

# Whether the environment works and holds what the lock file of that kind says.
is_ready() {
    cmp -s "$root/requirements/$1.txt" "$venv/.tmuxorch-$1" &&
        [ -x "$venv/bin/tmuxorch" ] && "$venv/bin/python" -c 'import tmuxorch' 2>/dev/null
}

# Make the environment, or bring it up to date when its lock file has changed: `run` or `dev`,
# which has all of `run`.
need_environment() {
    if is_ready "$1" || is_ready dev; then
        return
    fi
    need python3 venv || return 1
    if ! works; then
        say "making a virtual environment in $venv"
        # The name of a Python holds no spaces.
        # shellcheck disable=SC2046
        $(way_to_venv) --clear "$venv" || return 1
    fi
    say "installing Python packages (once)"
    add_packages --require-hashes -r "$root/requirements/$1.txt" || return 1
    # The lock file has what builds it, so nothing else is asked for.
    add_packages --no-deps --no-build-isolation -e "$root" || return 1
    cp "$root/requirements/$1.txt" "$venv/.tmuxorch-$1"
}

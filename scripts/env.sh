# Sourced by the other scripts: a virtual environment with what they need, and tmux.
# Everything it does is said; nothing is done twice.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${TMUXORCH_VENV:-$root/.venv}

say() { printf '%s\n' "== $*" >&2; }

# The first Python that is new enough.
find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer is needed and was not found; install it and try again"
    return 1
}

# Install a system package where that is possible without asking for a password.
need_program() {
    local program=$1 package=$2
    command -v "$program" >/dev/null 2>&1 && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing $package"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >&2
    elif command -v brew >/dev/null 2>&1; then
        say "installing $package"
        brew install "$package" >&2
    fi
    command -v "$program" >/dev/null 2>&1 && return
    say "$program is needed: install the package $package and try again"
    return 1
}

# Make the environment, or bring it up to date when pyproject.toml has changed.
need_environment() {
    local groups=$1 stamp="$venv/.tmuxorch-$1" python
    if [ -e "$stamp" ] && [ ! "$root/pyproject.toml" -nt "$stamp" ] && [ -x "$venv/bin/tmuxorch" ]; then
        return
    fi
    python=$(find_python) || return 1
    if [ ! -x "$venv/bin/python" ]; then
        say "making a virtual environment in $venv"
        "$python" -m venv "$venv" || {
            need_program "${python}-venv-missing" python3-venv || true
            "$python" -m venv "$venv"
        }
    fi
    say "installing Python packages (once)"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -U 'pip>=25.1' >&2
    if [ "$groups" = dev ]; then
        "$venv/bin/python" -m pip install -q --disable-pip-version-check -e "$root" --group "$root/pyproject.toml:dev" >&2
    else
        "$venv/bin/python" -m pip install -q --disable-pip-version-check -e "$root" >&2
    fi || return 1
    touch "$stamp"
}

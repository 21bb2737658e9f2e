#!/usr/bin/env bash
# Set this machine up and pass the checks and tests. Arguments go to pytest: bash installer/test.sh tests/engine -k decoys
# With --all, also the tests that take minutes each (marked `long`): bash installer/test.sh --all
#
# The exit code is 0 only when every check and every test passed.
set -euo pipefail
# shellcheck source=installer/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

# A test that takes longer is waiting for ever, as for a dialog that no test closes: its process writes where it is, and ends.
selected=(-o faulthandler_exit_on_timeout=true -o faulthandler_timeout=600)
if [ "${1:-}" = --all ]; then
    shift
    selected=(-m "long or not long")
fi

make_environment
display_packages=()
command -v xvfb-run >/dev/null 2>&1 || display_packages+=(xvfb)
command -v xauth >/dev/null 2>&1 || display_packages+=(xauth)
if ! has_apt; then
    display_packages=()
fi
install_window_packages "${display_packages[@]}"
# Modules are compiled when they are first imported: pip would compile all of all packages, one after the other.
unset PYTHONDONTWRITEBYTECODE
install_project gui --no-compile
find_cache

cd "$repository"
PATH=$environment/bin:$PATH
failed=()

# check NAME COMMAND...: run it, and remember the name where it fails; the others run all the same.
check() {
    local name=$1
    shift
    say ""
    say "== $name"
    "$@" || failed+=("$name")
}

# Once for all processes of tests, which would each compile the same; what is of one process, the rest of the packages and the checks of the
# sources, is done meanwhile.
compiling_log=$(mktemp)
python -m proteoscope.engine.command_line compile --quiet >"$compiling_log" 2>&1 &
compiling=$!
files_in_memory=
trap 'kill "$compiling" 2>/dev/null || true; rm -rf "$files_in_memory"' EXIT

# compiled: wait for that, and show what it said.
compiled() {
    local status=0
    wait "$compiling" || status=$?
    cat "$compiling_log"
    rm -f "$compiling_log"
    return "$status"
}

install_project dev --no-compile
# Without a cache, which keeps how imports were sorted before a module moved.
check "ruff check" ruff check --no-cache .
check "ruff format" ruff format --no-cache --check .
# What mypy throws away is freed with its process: to look for it again and again takes a fifth of its time (1.8 GB instead of 0.7).
check "mypy" python -c "import gc; gc.disable(); gc.enable = gc.disable; from mypy.__main__ import console_entry; console_entry()"
check "lint-imports" lint-imports
check "codespell" codespell
check "language" python installer/language.py
check "audit" python installer/audit.py

check "compile" compiled

# Several processes, each with whole files: the fixtures of a module are made once. The longest files come first (tests/conftest.py), where
# pytest-xdist would begin with those of most tests. Arguments may say otherwise (-n 0: one process, which a debugger needs).
# One process more than there are cores: tests of windows wait for them a third of their time.
processes=$(nproc 2>/dev/null || echo 2)
processes=$((processes < 3 ? processes + 1 : 4))
tests=(python -m pytest -n "$processes" --dist loadfile --no-loadscope-reorder "${selected[@]}" "$@")
# The files of tests are in memory where it has enough space and may execute scripts: tests write and flush hundreds of thousands of files,
# which on a disk takes a tenth of the time. Run pytest itself to look at the files of a test that fails.
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -ge $((8 << 20)) ] 2>/dev/null; then
    # Those of a run that was killed.
    find /dev/shm -maxdepth 1 -name 'proteoscope-tests-*' -uid "$(id -u)" -mmin +300 -exec rm -rf {} +
    files_in_memory=$(mktemp -d /dev/shm/proteoscope-tests-XXXXXX)
    printf '#!/bin/sh\n' >"$files_in_memory/script"
    chmod +x "$files_in_memory/script"
    if "$files_in_memory/script" 2>/dev/null; then
        tests+=(--basetemp "$files_in_memory/files")
    fi
fi
# A separate display, so that the windows under test neither need one nor appear on the user's screen.
if command -v xvfb-run >/dev/null 2>&1; then
    unset WAYLAND_DISPLAY
    export QT_QPA_PLATFORM=xcb
    check "pytest" xvfb-run -a -s "-screen 0 1920x1200x24" "${tests[@]}"
else
    export QT_QPA_PLATFORM=offscreen
    check "pytest" "${tests[@]}"
fi

say ""
if [ ${#failed[@]} -gt 0 ]; then
    complain "failed: $(IFS=,; printf '%s' "${failed[*]}" | sed 's/,/, /g')"
    exit 1
fi
say "Everything passed."

# shellcheck shell=bash
# What run.sh and test.sh share: the system's packages, the virtual environment, and the project installed in it.
# Everything here may run any number of times; a step that has nothing to do does nothing.

repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
environment=$repository/.venv
stamp=$environment/.proteoscope-installed

# A shared library that the window needs, and the Debian or Ubuntu packages that may hold it (Ubuntu 24.04 renamed some of them).
# The first lines are what Qt's modules link against, the others what its X11 plugin links against. libGLX_mesa brings the OpenGL that is
# computed by the processor, with which structures are drawn in three dimensions where no graphics card is, as under Xvfb.
window_libraries="
libglib-2.0.so.0 libglib2.0-0t64 libglib2.0-0
libGL.so.1 libgl1
libEGL.so.1 libegl1
libGLX_mesa.so.0 libglx-mesa0
libxkbcommon.so.0 libxkbcommon0
libfontconfig.so.1 libfontconfig1
libfreetype.so.6 libfreetype6
libdbus-1.so.3 libdbus-1-3
libX11.so.6 libx11-6
libX11-xcb.so.1 libx11-xcb1
libxcb.so.1 libxcb1
libxcb-cursor.so.0 libxcb-cursor0
libxcb-icccm.so.4 libxcb-icccm4
libxcb-image.so.0 libxcb-image0
libxcb-keysyms.so.1 libxcb-keysyms1
libxcb-randr.so.0 libxcb-randr0
libxcb-render.so.0 libxcb-render0
libxcb-render-util.so.0 libxcb-render-util0
libxcb-shape.so.0 libxcb-shape0
libxcb-shm.so.0 libxcb-shm0
libxcb-sync.so.1 libxcb-sync1
libxcb-util.so.1 libxcb-util1
libxcb-xfixes.so.0 libxcb-xfixes0
libxcb-xkb.so.1 libxcb-xkb1
libxkbcommon-x11.so.0 libxkbcommon-x11-0
"

say() { printf '%s\n' "$*"; }
complain() { printf 'proteoscope: %s\n' "$*" >&2; }

# ---------------------------------------------------------------------------------------------------------------- packages

apt_lists_fresh=no

has_apt() { command -v apt-get >/dev/null 2>&1; }

refresh_apt_lists() {
    [ "$apt_lists_fresh" = no ] || return 0
    apt_lists_fresh=yes
    as_root apt-get update -qq || complain "the package lists could not be refreshed; going on with the ones that are there"
}

# as_root COMMAND...: run it as root, through sudo if no password is needed or a user can type one.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

can_be_root() {
    [ "$(id -u)" -eq 0 ] && return 0
    command -v sudo >/dev/null 2>&1 || return 1
    sudo -n true 2>/dev/null || [ -t 0 ]
}

# first_known PACKAGE...: the first of the packages that apt can install here.
first_known() {
    local package policy
    for package in "$@"; do
        policy=$(apt-cache policy "$package" 2>/dev/null)
        case $policy in
            *"Candidate: (none)"*) ;;
            *"Candidate: "*)
                printf '%s\n' "$package"
                return 0
                ;;
        esac
    done
    return 1
}

# missing_window_packages: a package for each library that the dynamic linker does not find.
missing_window_packages() {
    local known library packages
    known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p)
    while read -r library packages; do
        [ -n "$library" ] || continue
        case $known in *"$library "*) continue ;; esac
        # shellcheck disable=SC2086 # a list of names
        first_known $packages || printf '%s\n' "${packages##* }"
    done <<<"$window_libraries"
}

# install_packages PACKAGE...: install them, or say which command would and return 1.
install_packages() {
    if ! can_be_root; then
        complain "these system packages are missing, and installing them needs root. Run this, then start again:"
        complain "    sudo apt-get update && sudo apt-get install --no-install-recommends $*"
        return 1
    fi
    say "Installing system packages: $*"
    refresh_apt_lists
    local log
    log=$(mktemp)
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        complain "the system packages could not be installed: $*"
        return 1
    fi
    rm -f "$log"
}

# install_window_packages [PACKAGE...]: install the libraries of the window and these packages.
install_window_packages() {
    local missing
    if ! has_apt; then
        return 0
    fi
    missing=$(missing_window_packages)
    if [ -n "$missing" ] && can_be_root; then
        refresh_apt_lists # a new machine has no lists, which show the right one of two names
        missing=$(missing_window_packages)
    fi
    if [ -z "$missing" ] && [ $# -eq 0 ]; then
        return 0
    fi
    # shellcheck disable=SC2086 # a list of names
    install_packages $missing "$@"
}

# ------------------------------------------------------------------------------------------------------------------ python

right_version() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; }
makes_environments() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# find_python: print an interpreter of a suitable version that can make a virtual environment.
find_python() {
    local candidate
    for candidate in ${PROTEOSCOPE_PYTHON:-python3.13 python3.12 python3.11 python3 /usr/bin/python3}; do
        if right_version "$candidate" && makes_environments "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# install_python: what is missing for one, from the system's packages.
install_python() {
    local version packages=""
    has_apt || return 1
    for version in 3.13 3.12 3.11; do
        if right_version "python$version" && first_known "python$version-venv" >/dev/null; then
            packages="python$version-venv"
            break
        fi
    done
    if [ -z "$packages" ]; then
        if can_be_root; then
            refresh_apt_lists
        fi
        for version in 3.13 3.12 3.11; do
            if first_known "python$version-venv" >/dev/null; then
                packages="python$version python$version-venv"
                break
            fi
        done
    fi
    [ -n "$packages" ] || return 1
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages
}

# make_environment: .venv, made anew where it is broken, of a Python that no longer fits, or was moved here from elsewhere.
make_environment() {
    local python
    if right_version "$environment/bin/python" && [ "$(cat "$environment/.proteoscope-place" 2>/dev/null)" = "$environment" ]; then
        return 0
    fi
    if ! python=$(find_python); then
        if ! install_python || ! python=$(find_python); then
            complain "Python 3.11, 3.12 or 3.13 with the venv module is needed, and there is none yet."
            complain "Install one, or name one: PROTEOSCOPE_PYTHON=/path/to/python3.12 bash installer/run.sh"
            return 1
        fi
    fi
    say "Making a virtual environment in $environment with $("$python" --version)"
    "$python" -m venv --clear "$environment" || return 1
    printf '%s\n' "$environment" >"$environment/.proteoscope-place"
}

# install_project EXTRA [OPTION...]: the project, editable, with the packages of the extra `gui` or `dev`, or of none (`headless`), by pip with
# these options. Runs pip only when pyproject.toml has changed since. An installed project is not built again for an extra: pip finds it by name.
install_project() {
    local extra=$1 digest enough=$1
    local -a project=(--editable "${repository}[$extra]")
    shift
    digest=$(sha256sum <"$repository/pyproject.toml" | cut -d ' ' -f 1)
    case $extra in
        gui) enough='(gui|dev)' ;; # `dev` has the packages of `gui` too
        headless)
            enough='(headless|gui|dev)'
            project=(--editable "$repository")
            ;;
    esac
    if [ -e "$stamp" ] && grep -Eqx "$digest $enough" "$stamp"; then
        return 0
    fi
    if [ -e "$stamp" ] && grep -qx "$digest .*" "$stamp"; then
        project=("proteoscope[$extra]")
    fi
    say "Installing Proteoscope and the packages it needs (a few minutes the first time)"
    rm -f "$stamp"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" "${project[@]}" || return 1
    printf '%s %s\n' "$digest" "$extra" >"$stamp"
}

# headless_lock: the lines of requirements.lock without those of the packages that only the window needs.
headless_lock() {
    sed -e '/^\(colorama\|pyqtgraph\|pyside6-essentials\|shiboken6\|tomli-w\)==/,/[^\\]$/d' "$repository/installer/requirements.lock"
}

# install_locked EXTRA: the packages of the command line, and for `gui` of the window, in the versions of requirements.lock. Where one of them
# cannot be had, the newest that pyproject.toml allows are taken.
install_locked() {
    local lock log digest
    lock=$(mktemp)
    if [ "$1" = headless ]; then
        headless_lock >"$lock"
    else
        cat "$repository/installer/requirements.lock" >"$lock"
    fi
    digest=$(sha256sum <"$lock" | cut -d ' ' -f 1)
    if [ -e "$stamp-lock" ] && grep -qx "$digest" "$stamp-lock"; then
        rm -f "$lock"
        return 0
    fi
    say "Installing the packages that Proteoscope needs (a few minutes the first time)"
    log=$(mktemp)
    # Byte code is written after the tests of the packages have gone.
    if "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile --require-hashes --requirement "$lock" \
        >"$log" 2>&1; then
        leave_out_tests
        "$environment/bin/python" -m compileall -q -j 0 "$environment/lib" >/dev/null || true # a module that this Python cannot compile is not imported
        printf '%s\n' "$digest" >"$stamp-lock"
    else
        cat "$log" >&2
        complain "these versions of installer/requirements.lock cannot be installed here; taking the newest that fit"
    fi
    rm -f "$lock" "$log"
}

# leave_out_tests: remove the tests that these packages contain, 70 MB with their byte code. Nothing but tests imports them.
leave_out_tests() {
    local package
    for package in llvmlite numba numpy pyarrow scipy; do
        find "$environment"/lib/python*/site-packages/"$package" -type d -name tests -prune -exec rm -r {} + 2>/dev/null || true
    done
}

# The compiled kernels are cached in the user's cache folder; an account without a home gets one inside the environment.
find_cache() {
    local cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}
    if ! mkdir -p "$cache" 2>/dev/null || [ ! -w "$cache" ]; then
        export XDG_CACHE_HOME=$environment/cache
        mkdir -p "$XDG_CACHE_HOME"
    fi
}

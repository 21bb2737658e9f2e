#!/usr/bin/env bash
# Set this machine up, identify the sample run that ships with Proteoscope, and open the window on it where there is a display.
#
#     bash installer/run.sh [--headless]
#
# With --headless, all commands and the Python interface are installed, without Qt and its system libraries.
# Safe to run again: existing parts are used. PROTEOSCOPE_PYTHON names the Python to use (3.11-3.13), if not the newest found.
set -euo pipefail
# shellcheck source=installer/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

extra=gui
if [ "${1:-}" = --headless ]; then
    extra=headless
    shift
fi
[ $# -eq 0 ] || { complain "usage: bash installer/run.sh [--headless]"; exit 2; }

make_environment
if [ "$extra" = gui ] && ! install_window_packages; then
    complain "going on without them: the command line works, the window does not open"
fi
install_locked "$extra"
install_project "$extra"
find_cache

project=$repository/sample_project
say "Identifying the sample data. What this computes with is compiled first, once: a minute or two."
"$environment/bin/proteoscope" demo --out "$project"

# The sample's search has compiled what it needs, with all cores. Others need not wait either.
say "Compiling what the other searches compute with."
"$environment/bin/proteoscope" compile || complain "not all could be compiled ahead; what is missing is compiled when it is first used"

if [ "$extra" = headless ]; then
    say "Done. All commands: $environment/bin/proteoscope --help"
    exit 0
fi
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    exec "$environment/bin/proteoscope" "$project"
fi
say ""
say "There is no display here, so the window stays closed. To open it on a machine with one:"
say "    $environment/bin/proteoscope $project"

#!/usr/bin/env bash
# Write installer/requirements.lock: the exact versions that installer/run.sh installs, of all systems and Python versions, with their digests.
#
#     bash installer/lock.sh
#
# Run it after a change of the dependencies in pyproject.toml, and to move to newer versions. Then run the tests.
set -euo pipefail
# shellcheck source=installer/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(find_python)
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check uv
cd "$repository"
"$work/tools/bin/uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 --extra gui --generate-hashes --upgrade \
    --no-header --no-annotate --no-emit-index-url --output-file "$work/requirements.lock"
mv "$work/requirements.lock" installer/requirements.lock
say "Wrote installer/requirements.lock with $(grep -c == installer/requirements.lock) versions"

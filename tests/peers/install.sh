#!/usr/bin/env bash
# Fetch the programs that the benchmarks compare with, into a folder of their own; nothing of the system changes and root is not needed.
#
#     bash tests/peers/install.sh [FOLDER]        (default: $PROTEOSCOPE_PEERS, else ~/.cache/proteoscope-peers)
#
# X!Tandem, Comet, DSSP and TM-align come from the packages of Debian or Ubuntu (unpacked, not installed), Sage's core as the Python package sagepy,
# minimap2 as mappy (which a C compiler builds), Pyteomics to convert spectra for them, matchms, mzspeclib and psm_utils to read exports, in a virtual
# environment; mokapot, which needs older versions of its dependencies, in another.
# To compare with another Comet, name its binary in PROTEOSCOPE_COMET when the benchmark runs.
set -euo pipefail

folder=${1:-${PROTEOSCOPE_PEERS:-$HOME/.cache/proteoscope-peers}}
mkdir -p "$folder"
folder=$(cd -- "$folder" && pwd -P)

if [ ! -x "$folder/debian/usr/bin/comet-ms" ] || [ ! -x "$folder/debian/usr/bin/tandem" ]; then
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "Debian or Ubuntu is needed for X!Tandem and Comet" >&2; exit 1; }
    packages=(tandem-mass comet-ms)
    # Comet's own library, whose name carries its version; what else the two need (C++, expat, zlib) any system has.
    mapfile -t libraries < <(apt-cache depends comet-ms | sed -n 's/^ *Depends: \(libmstoolkit[^ ]*\)$/\1/p')
    download=$(mktemp -d)
    trap 'rm -rf "$download"' EXIT
    (cd "$download" && apt-get download -q "${packages[@]}" "${libraries[@]}")
    for package in "$download"/*.deb; do
        dpkg -x "$package" "$folder/debian"
    done
fi

if [ ! -x "$folder/debian/usr/bin/mkdssp" ] || [ ! -x "$folder/debian/usr/bin/TMscore" ]; then
    packages=(dssp tm-align libgfortran5 libquadmath0)
    mapfile -t libraries < <(apt-cache depends dssp | sed -n 's/^ *Depends: \(libcifpp[^ ]*\)$/\1/p')
    structures=$(mktemp -d)
    trap 'rm -rf "${download:-}" "$structures"' EXIT
    (cd "$structures" && apt-get download -q "${packages[@]}" "${libraries[@]}" libcifpp-data)
    for package in "$structures"/*.deb; do
        dpkg -x "$package" "$folder/debian"
    done
fi

any_python() {
    local candidate
    for candidate in python3.12 python3.11 python3.13 /usr/bin/python3 python3; do
        if "$candidate" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "sagepy needs Python 3.11 or newer with the venv module" >&2
    return 1
}

if ! "$folder/python/bin/python" -c 'import mappy, matchms, mzspeclib, psims, psm_utils, pyopenms, pyteomics, sagepy' 2>/dev/null; then
    python=$(any_python)
    "$python" -m venv --clear "$folder/python"
    "$folder/python/bin/python" -m pip install --quiet --disable-pip-version-check sagepy pyteomics psims lxml mappy pyopenms matchms mzspeclib psm_utils
fi

if ! "$folder/mokapot/bin/python" -c 'import mokapot' 2>/dev/null; then
    python=$(any_python)
    "$python" -m venv --clear "$folder/mokapot"
    "$folder/mokapot/bin/python" -m pip install --quiet --disable-pip-version-check "mokapot==0.10.0" "numpy<2" "pandas<2.3" "setuptools<81"
fi

echo "The peers are in $folder"

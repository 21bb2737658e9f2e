#!/bin/sh
# Proteoscope in one file: at the first start it unpacks itself into the user's cache, which takes some seconds, and then starts there.
#
#     ./proteoscope-VERSION.run [ARGUMENTS]      as `proteoscope`
#     ./proteoscope-VERSION.run --remove         remove what was unpacked, of this version
set -eu
digest=@DIGEST@
skip=@SKIP@
folder=${XDG_CACHE_HOME:-$HOME/.cache}/proteoscope-bundle/$digest
if [ "${1:-}" = --remove ]; then
    rm -rf "$folder"
    exit 0
fi
if [ ! -x "$folder/proteoscope/proteoscope" ]; then
    mkdir -p "${folder%/*}"
    new=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    trap 'exit 130' INT TERM
    echo "Unpacking Proteoscope into $folder" >&2
    if ! tail -c +$((skip + 1)) "$0" | tar -x -z -C "$new" -f -; then
        echo "proteoscope: $0 could not be unpacked; is the disk full, or the file cut short?" >&2
        exit 1
    fi
    # A second process finds the complete folder, and uses it.
    mv -T "$new" "$folder" 2>/dev/null || [ -x "$folder/proteoscope/proteoscope" ]
    trap - EXIT INT TERM
    rm -rf "$new"
fi
exec "$folder/proteoscope/proteoscope" "$@"

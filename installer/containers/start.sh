#!/bin/sh
# Start the program in a container, as any user and with a read-only root: compiled kernels are copied from the image into a cache that this
# user owns, since kernels that another user could change are not run.
set -eu
if [ -z "${PROTEOSCOPE_CACHE:-}" ]; then
    PROTEOSCOPE_CACHE=${TMPDIR:-/tmp}/proteoscope-cache-$(id -u)
    export PROTEOSCOPE_CACHE
fi
if [ ! -d "$PROTEOSCOPE_CACHE/kernels" ] && mkdir -p "$PROTEOSCOPE_CACHE" && chmod 700 "$PROTEOSCOPE_CACHE"; then
    cp -R /opt/kernels "$PROTEOSCOPE_CACHE/kernels"
fi
exec /opt/proteoscope/bin/proteoscope "$@"

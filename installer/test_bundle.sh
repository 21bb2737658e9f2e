#!/usr/bin/env bash
# Try a Debian package of the program in a system of its own that has no Python: install, search the sample, export, open the window, uninstall.
#
#     bash installer/test_bundle.sh PACKAGE.deb [--file FILE.run] [--root FOLDER] [--picture FILE.png]
#
# With --file the program in one file is tried there too, before the package brings anything: it must find the same.
# Needs root, debootstrap and Xvfb, and Debian's archive. A FOLDER that is given stays and can be used again. Each step is printed with its seconds.
set -euo pipefail
# shellcheck source=installer/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

package="" file="" root="" picture=""
while [ $# -gt 0 ]; do
    case $1 in
        --file) file=${2:-}; shift ;;
        --root) root=${2:-}; shift ;;
        --picture) picture=${2:-}; shift ;;
        *) package=$1 ;;
    esac
    shift
done
[ -f "$package" ] && { [ -z "$file" ] || [ -f "$file" ]; } \
    || { complain "usage: bash installer/test_bundle.sh PACKAGE.deb [--file FILE.run] [--root FOLDER] [--picture FILE.png]"; exit 2; }
[ "$(id -u)" -eq 0 ] || { complain "a system of its own is made by root"; exit 2; }
for tool in debootstrap Xvfb; do
    command -v "$tool" >/dev/null 2>&1 || install_packages debootstrap xvfb
done
work=$(mktemp -d)
root=${root:-$work/root}
screen=""

leave() {
    [ -z "$screen" ] || kill "$screen" 2>/dev/null || true
    for place in proc dev tmp/.X11-unix; do
        mountpoint -q "$root/$place" && umount "$root/$place"
    done
    rm -rf "$work"
}
trap leave EXIT

# step NAME COMMAND...: run it, and print how long it took.
step() {
    local name=$1 began
    shift
    began=${EPOCHREALTIME/./}
    "$@" >"$work/output" 2>&1 || { complain "$name failed:"; tail -n 30 "$work/output" >&2; exit 1; }
    printf '%-24s %8d ms\n' "$name" $(((${EPOCHREALTIME/./} - began) / 1000))
}
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/someone LANG=C.UTF-8 "$@"; }
as_someone() { inside setpriv --reuid=4711 --regid=4711 --clear-groups "$@"; }

if [ ! -x "$root/bin/sh" ]; then
    step "a system of its own" debootstrap --variant=minbase "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"
fi
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mkdir -p "$root/home/someone" "$root/tmp/.X11-unix" /tmp/.X11-unix
chown 4711:4711 "$root/home/someone"
mount --bind /tmp/.X11-unix "$root/tmp/.X11-unix"
cp -f /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
! inside sh -c 'command -v python3 || command -v python' || { complain "there is a Python in $root already"; exit 1; }

# The user of the trial has nothing of an earlier one.
find "$root/home/someone" -mindepth 1 -delete
if [ -n "$file" ]; then
    install -m 755 "$file" "$root/home/someone/proteoscope.run"
    step "one file, unpacks" as_someone /home/someone/proteoscope.run --version
    step "one file, sample" as_someone /home/someone/proteoscope.run demo --out /home/someone/single
    step "one file, again" as_someone /home/someone/proteoscope.run demo --out /home/someone/single_again --quiet
    step "one file, removed" as_someone /home/someone/proteoscope.run --remove
    unpacked=$(find "$root/home/someone/.cache/proteoscope-bundle" -mindepth 1)
    [ -z "$unpacked" ] || { complain "--remove left $unpacked"; exit 1; }
    # What it compiled is the user's too: the package begins with nothing.
    rm -rf "$root/home/someone/.cache"
fi

# A trial that was cut off has left its package.
! inside dpkg -s proteoscope >/dev/null 2>&1 || inside dpkg --purge proteoscope >/dev/null
cp "$package" "$root/proteoscope.deb"
step "lists of packages" inside apt-get update -qq
step "install" inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /proteoscope.deb
! inside sh -c 'command -v python3' || { complain "the package brought a Python of the system"; exit 1; }
step "version" as_someone proteoscope --version
step "sample, first time" as_someone proteoscope demo --out /home/someone/sample
step "sample, again" as_someone proteoscope demo --out /home/someone/again --quiet
cmp "$root/home/someone/sample/exports/psms.tsv" "$root/home/someone/again/exports/psms.tsv"
# The table names the file of spectra, which lies elsewhere in each.
psms() { sed 's#/[^\t]*/_internal/##' "$root/home/someone/$1/exports/psms.tsv"; }
[ -z "$file" ] || cmp <(psms sample) <(psms single)
step "export" as_someone proteoscope export /home/someone/sample --format mzid --out /home/someone/sample.mzid
say "$(($(grep -c . "$root/home/someone/sample/exports/psms.tsv") - 1)) PSMs"
step "compile all" as_someone proteoscope compile --quiet

command -v xwininfo >/dev/null 2>&1 || install_packages x11-utils
[ -z "$picture" ] || command -v xwd >/dev/null 2>&1 || install_packages x11-apps imagemagick
Xvfb :4711 -screen 0 1280x800x24 -ac >/dev/null 2>&1 &
screen=$!
for try in $(seq 300); do # a display takes a moment, on a busy machine many, and the program does not wait for one
    xwininfo -display :4711 -root >/dev/null 2>&1 && break
    [ "$try" -lt 300 ] || { complain "the display does not start"; exit 1; }
    sleep 0.2
done
# The window is there when it is named among those of the display; it ends on request.
window() {
    as_someone env DISPLAY=:4711 proteoscope /home/someone/sample &
    local program=$! tries=0
    until xwininfo -display :4711 -root -tree 2>/dev/null | grep -q Proteoscope; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] && kill -0 "$program" || return 1
        sleep 0.1
    done
    sleep 15
    [ -z "$picture" ] || { xwd -display :4711 -root | convert xwd:- "$picture"; }
    kill -0 "$program"
    kill "$program"
    wait "$program" || true
}
step "window (and 15 s of it)" window

step "uninstall" inside env DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq proteoscope
for left in usr/lib/proteoscope usr/bin/proteoscope usr/share/applications/proteoscope.desktop usr/share/mime/packages/proteoscope.xml; do
    [ ! -e "$root/$left" ] || { complain "$left was not removed"; exit 1; }
done
say "Everything passed."

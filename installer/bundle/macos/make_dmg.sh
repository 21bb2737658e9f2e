#!/usr/bin/env bash
# Make a disk image for macOS, on macOS, in an environment that has the project and PyInstaller:
#
#     bash installer/bundle/macos/make_dmg.sh VERSION OUT
#
# Proteoscope.app is dragged to Applications. It is signed only where CODESIGN_IDENTITY names a certificate. Never run: there was no macOS.
set -euo pipefail
version=${1:?usage: make_dmg.sh VERSION OUT} out=${2:?usage: make_dmg.sh VERSION OUT}
[ "$(uname -s)" = Darwin ] || { echo "proteoscope: a disk image for macOS is made on macOS" >&2; exit 1; }
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
pyinstaller "$repository/installer/bundle/proteoscope.spec" --noconfirm --distpath "$work/dist" --workpath "$work/build"
mkdir "$work/image"
cp -R "$work/dist/Proteoscope.app" "$work/image/"
ln -s /Applications "$work/image/Applications"
if [ -n "${CODESIGN_IDENTITY:-}" ]; then
    codesign --deep --force --options runtime --sign "$CODESIGN_IDENTITY" "$work/image/Proteoscope.app"
fi
hdiutil create -volname "Proteoscope $version" -srcfolder "$work/image" -format UDZO -ov "$out/proteoscope-$version.dmg"

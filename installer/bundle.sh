#!/usr/bin/env bash
# Make what people install on Linux who have no Python: a folder, one file that unpacks itself, and a package for Debian and Ubuntu.
#
#     bash installer/bundle.sh --out FOLDER [--cuda] [--only folder,file,deb]
#
# FOLDER gets proteoscope/ (start proteoscope/proteoscope), proteoscope-VERSION-ARCH.run, proteoscope_VERSION_ARCH.deb, and sizes.txt. With --cuda
# CuPy is in it, without CUDA's libraries: they are found where the machine has them; the names of the files say so. What is made runs on systems with this one's glibc or a newer.
set -euo pipefail
# shellcheck source=installer/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

out="" cuda=0 only=folder,file,deb
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=${2:-}; shift ;;
        --cuda) cuda=1 ;;
        --only) only=${2:-}; shift ;;
        *) complain "usage: bash installer/bundle.sh --out FOLDER [--cuda] [--only folder,file,deb]"; exit 2 ;;
    esac
    shift
done
[ -n "$out" ] || { complain "say where to with --out FOLDER"; exit 2; }
mkdir -p "$out"
out=$(cd -- "$out" && pwd -P)
parts=$repository/installer/bundle
arch=$(dpkg --print-architecture 2>/dev/null || uname -m)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$repository/pyproject.toml" | head -n 1)
flavour=""
[ "$cuda" = 0 ] || flavour=-cuda
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make_folder: what PyInstaller gathers, of an environment that has what users get and nothing of the tests.
make_folder() {
    local python build=${PROTEOSCOPE_BUNDLE_ENVIRONMENT:-$work/environment} extra="gui"
    [ "$cuda" = 0 ] || extra="gui,cuda13"
    if [ ! -x "$build/bin/pyinstaller" ]; then
        if ! python=$(find_python); then
            install_python && python=$(find_python)
        fi
        "$python" -m venv "$build"
        "$build/bin/python" -m pip install --quiet --disable-pip-version-check "${repository}[$extra]" "pyinstaller>=6.11"
    fi
    command -v objdump >/dev/null 2>&1 || install_packages binutils
    rm -rf "$out/proteoscope"
    (cd "$work" && PROTEOSCOPE_BUNDLE_CUDA=$cuda "$build/bin/pyinstaller" "$parts/proteoscope.spec" --noconfirm --log-level WARN \
        --distpath "$out" --workpath "$work/build")
    "$out/proteoscope/proteoscope" --version
}

# make_file: make one file, a script followed by the packed folder that it unpacks.
make_file() {
    local payload=$work/payload.tar.gz file=$out/proteoscope$flavour-$version-$arch.run head=$work/head digest
    tar -c -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mtime='2020-01-01 00:00Z' proteoscope | gzip -n -6 >"$payload"
    digest=$(sha256sum <"$payload" | cut -c 1-16)
    sed "s/@DIGEST@/$digest/" "$parts/linux/self_extracting.sh" >"$head"
    # The script holds the number of bytes before the payload, padded to the length of the mark.
    sed -i "s/@SKIP@/$(printf '%-6s' "$(wc -c <"$head")")/" "$head"
    cat "$head" "$payload" >"$file"
    chmod +x "$file"
}

# make_deb: the folder as a package, with a menu entry, the files that it opens, and a page of the manual.
make_deb() {
    local root=$work/deb share
    share=$root/usr/share
    mkdir -p "$root/DEBIAN" "$root/usr/lib" "$root/usr/bin" "$share/applications" "$share/mime/packages" "$share/doc/proteoscope" "$share/man/man1" \
        "$share/icons/hicolor/scalable/apps"
    cp -a "$out/proteoscope" "$root/usr/lib/proteoscope"
    ln -s ../lib/proteoscope/proteoscope "$root/usr/bin/proteoscope"
    cp "$parts/linux/proteoscope.desktop" "$share/applications/"
    cp "$parts/linux/proteoscope.xml" "$share/mime/packages/"
    cp "$repository/resources/icons/proteoscope.svg" "$share/icons/hicolor/scalable/apps/"
    cp "$parts/linux/copyright" "$share/doc/proteoscope/"
    gzip -n -9 <"$repository/CHANGELOG.md" >"$share/doc/proteoscope/changelog.gz"
    "${PROTEOSCOPE_BUNDLE_ENVIRONMENT:-$work/environment}/bin/python" "$repository/installer/man_page.py" | gzip -n -9 >"$share/man/man1/proteoscope.1.gz"
    install -m 755 "$parts/linux/postinst" "$parts/linux/postrm" "$root/DEBIAN/"
    chmod -R u+rwX,go+rX,go-w "$root"
    cat >"$root/DEBIAN/control" <<CONTROL
Package: proteoscope
Version: $version
Architecture: $arch
Maintainer: The Proteoscope developers <proteoscope@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Section: science
Priority: optional
Depends: libc6 (>= $(ldd --version | sed -n '1s/.* //p')), libgl1, libegl1, libglx-mesa0, libxkbcommon0, libxkbcommon-x11-0, libfontconfig1, libfreetype6, libdbus-1-3, libx11-6, libx11-xcb1, libxcb1, libxcb-cursor0, libxcb-icccm4, libxcb-image0, libxcb-keysyms1, libxcb-randr0, libxcb-render0, libxcb-render-util0, libxcb-shape0, libxcb-shm0, libxcb-sync1, libxcb-xfixes0, libxcb-xkb1, libglib2.0-0 | libglib2.0-0t64
Recommends: fonts-dejavu-core
Description: desktop program for protein evidence
 Identify peptides and proteins from tandem mass spectra, group spectra and
 explain the unidentified, search protein sequences and folds, map reads, and
 see all of it linked, in a window and from the command line.
CONTROL
    dpkg-deb --build --root-owner-group -Zxz -z3 "$root" "$out/proteoscope${flavour}_${version}_$arch.deb"
}

case ,$only, in *,folder,*) make_folder ;; esac
[ -x "$out/proteoscope/proteoscope" ] || { complain "there is no $out/proteoscope: make it first, with --only folder"; exit 1; }
case ,$only, in *,file,*) make_file ;; esac
case ,$only, in *,deb,*) make_deb ;; esac
(cd "$out" && find . -maxdepth 1 \( -name proteoscope -o -name "*.run" -o -name "*.deb" \) -printf '%P\0' | sort -z | xargs -0 du -sh --) | tee "$out/sizes.txt"

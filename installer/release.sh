#!/usr/bin/env bash
# Make a release from its tag: check it, test it, build it, list its parts, and sign it.
#
#     bash installer/release.sh v1.2.0 --out FOLDER [--key KEY] [--only-check] [--tests-passed] [--without-bundles]
#     bash installer/release.sh --sign FOLDER --key KEY      # sign what lies in a folder, with checksums of all its files
#
# FOLDER gets the wheel, the source archive, the bundles for Linux (installer/bundle.sh), the manual as HTML, constraints.txt (the exact versions that
# it was built with), sbom.cdx.json (all parts, CycloneDX), SHA256SUMS and, with the name of a GnuPG key, SHA256SUMS.asc. Nothing is uploaded.
# --tests-passed leaves the tests out, where continuous integration has passed this very commit. --only-check stops after the checks, which are: the
# commit is the tag, nothing is changed in it, pyproject.toml and CITATION.cff have the tag's version, and CHANGELOG.md has a dated section for it.
set -euo pipefail
# shellcheck source=installer/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

usage() {
    complain "usage: bash installer/release.sh TAG --out FOLDER [--key KEY] [--only-check] [--tests-passed] [--without-bundles], or --sign FOLDER --key KEY"
    exit 2
}

refuse() {
    complain "no release: $*"
    exit 1
}

tag="" folder="" key="" only_check=no only_sign=no tests=yes bundles=yes
while [ $# -gt 0 ]; do
    case $1 in
        --out) [ $# -ge 2 ] || usage; folder=$2; shift ;;
        --sign) [ $# -ge 2 ] || usage; folder=$2; only_sign=yes; shift ;;
        --key) [ $# -ge 2 ] || usage; key=$2; shift ;;
        --only-check) only_check=yes ;;
        --tests-passed) tests=no ;;
        --without-bundles) bundles=no ;;
        v[0-9]*) tag=$1 ;;
        *) usage ;;
    esac
    shift
done

# sign FOLDER: checksums of its files and, where there is a key, their signature.
sign() {
    (
        cd "$1"
        rm -f SHA256SUMS SHA256SUMS.asc
        sums=$(find . -maxdepth 1 -type f -printf '%P\0' | sort -z | xargs -0 -r sha256sum --)
        [ -n "$sums" ] || refuse "there is nothing in $1"
        printf '%s\n' "$sums" >SHA256SUMS
        if [ -n "$key" ]; then
            gpg --batch --yes --local-user "$key" --armor --detach-sign --output SHA256SUMS.asc SHA256SUMS
        fi
    )
}

if [ "$only_sign" = yes ]; then
    [ -n "$key" ] || usage
    [ -d "$folder" ] || refuse "there is no folder $folder"
    sign "$folder"
    exit
fi

[ -n "$tag" ] || usage
version=${tag#v}
cd "$repository"
[ "$(git rev-parse -q --verify "refs/tags/$tag^{commit}" || true)" = "$(git rev-parse HEAD)" ] || refuse "the commit that is checked out is not tagged $tag"
[ -z "$(git status --porcelain)" ] || refuse "something is changed that is in no commit"
grep -qxF "version = \"$version\"" pyproject.toml || refuse "pyproject.toml has another version than $version"
grep -qxF "version: $version" CITATION.cff || refuse "CITATION.cff has another version than $version"
grep -qE "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || refuse "CHANGELOG.md has no section '## [$version] - YEAR-MONTH-DAY'"
say "$tag can be released."
[ "$only_check" = no ] || exit 0

[ -n "$folder" ] || usage
mkdir -p "$folder"
folder=$(cd -- "$folder" && pwd -P)
[ -z "$(ls -A "$folder")" ] || refuse "$folder is not empty"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$tests" = yes ]; then
    bash "$repository/installer/test.sh" || refuse "a check or a test failed"
fi

say ""
say "== build"
python=$(find_python) || refuse "there is no Python of a version that fits"
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check 'hatchling>=1.27' 'cyclonedx-bom>=7'
"$work/tools/bin/python" -m hatchling build -t wheel -t sdist -d "$folder"

say "== parts"
# What a user gets who installs the wheel, and nothing of the tests.
"$python" -m venv "$work/clean"
"$work/clean/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
"$work/clean/bin/python" -m pip install --quiet --disable-pip-version-check "$(echo "$folder"/*.whl)[gui]"
"$work/clean/bin/python" -m pip freeze --disable-pip-version-check --exclude proteoscope >"$folder/constraints.txt"
"$work/tools/bin/cyclonedx-py" environment --output-reproducible --of JSON -o "$folder/sbom.cdx.json" "$work/clean/bin/python"
# The audit itself needs `packaging`, which users do not get.
"$work/clean/bin/python" -m pip install --quiet --disable-pip-version-check packaging
"$work/clean/bin/python" "$repository/installer/audit.py"

say "== manual"
"$work/clean/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$folder/constraints.txt" 'sphinx>=8' 'myst-parser>=4' 'furo>=2024.8'
"$work/clean/bin/python" -m installer.manual --out "$work/proteoscope-manual"
(cd "$work" && "$work/clean/bin/python" -m zipfile -c "$folder/proteoscope-$version-manual.zip" proteoscope-manual)

if [ "$bundles" = yes ]; then
    say "== bundles"
    # Of the versions that the list of parts names.
    PIP_CONSTRAINT=$folder/constraints.txt bash "$repository/installer/bundle.sh" --out "$work/bundles"
    mv "$work"/bundles/*.run "$work"/bundles/*.deb "$folder"
fi

sign "$folder"
say ""
say "The release lies in $folder:"
ls -l "$folder"
[ -n "$key" ] || say "It is not signed: bash installer/release.sh --sign $folder --key KEY"

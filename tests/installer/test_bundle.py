"""Packages for users without Python: the file that unpacks itself, the Debian package, and their contents."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

from installer.man_page import man_page
from proteoscope.engine.searches import SEARCHES

REPOSITORY = Path(__file__).parents[2]
BUNDLE = REPOSITORY / "installer" / "bundle"
PROGRAM = '#!/bin/sh\necho "started with $*"\n'


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment, timeout=120)


def bundled(folder: Path, only: str) -> Path:
    """Bundle a program of two lines with the release script."""
    program = folder / "proteoscope" / "proteoscope"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    made = run("bash", REPOSITORY / "installer" / "bundle.sh", "--out", folder, "--only", only, PROTEOSCOPE_BUNDLE_ENVIRONMENT=sys.prefix)
    assert made.returncode == 0, made.stderr
    return next(folder.glob("*.run" if only == "file" else "*.deb"))


def test_self_unpacking_bundle_unpacks_once_and_passes_arguments(tmp_path: Path) -> None:
    file, cache = bundled(tmp_path, "file"), tmp_path / "cache"
    first, again = (run(file, "open", "a file", XDG_CACHE_HOME=str(cache)) for _ in range(2))
    assert (first.stdout, again.stdout) == ("started with open a file\n",) * 2
    assert "Unpacking" in first.stderr and again.stderr == ""
    unpacked = list((cache / "proteoscope-bundle").iterdir())
    assert len(unpacked) == 1 and (unpacked[0] / "proteoscope" / "proteoscope").is_file()
    assert run(file, "--remove", XDG_CACHE_HOME=str(cache)).returncode == 0
    assert list((cache / "proteoscope-bundle").iterdir()) == []


def test_truncated_bundle_is_reported_and_leaves_no_files(tmp_path: Path) -> None:
    file, cache = bundled(tmp_path, "file"), tmp_path / "cache"
    file.write_bytes(file.read_bytes()[:-40])
    answer = run(file, XDG_CACHE_HOME=str(cache))
    assert answer.returncode == 1 and "cut short" in answer.stderr
    assert list((cache / "proteoscope-bundle").iterdir()) == []


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_debian_package_has_program_menu_entry_and_man_page(tmp_path: Path) -> None:
    package, root = bundled(tmp_path, "deb"), tmp_path / "root"
    assert run("dpkg-deb", "--extract", package, root).returncode == 0
    assert run(root / "usr" / "bin" / "proteoscope", "--version").stdout == "started with --version\n"
    for name in (
        "applications/proteoscope.desktop",
        "mime/packages/proteoscope.xml",
        "man/man1/proteoscope.1.gz",
        "doc/proteoscope/copyright",
    ):
        assert (root / "usr" / "share" / name).is_file(), name
    fields = run("dpkg-deb", "--field", package, "Package", "Depends").stdout
    assert "Package: proteoscope" in fields and "libxcb-cursor0" in fields and "python" not in fields


def test_desktop_menu_entry_opens_the_registered_file_types() -> None:
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment,method-assign]
    entry.read(BUNDLE / "linux" / "proteoscope.desktop")
    opened = set(entry["Desktop Entry"]["MimeType"].rstrip(";").split(";"))
    described = etree.parse(BUNDLE / "linux" / "proteoscope.xml").getroot().findall("{*}mime-type")
    assert opened == {entry.get("type") for entry in described}
    assert entry["Desktop Entry"]["Exec"] == "proteoscope open %F"


def test_man_page_lists_every_search() -> None:
    page = "\n".join(man_page())
    assert all(f"\n.B {search.kind}\n" in page for search in SEARCHES)


def test_bundled_program_runs_python_code_of_worker_processes(tmp_path: Path) -> None:
    code = (
        f"import runpy, sys; sys._MEIPASS = {str(tmp_path)!r}; "
        "sys.argv = ['proteoscope', '-P', '-c', 'import sys; print(sys.argv[1:])', 'a', 'b'];"
        f"runpy.run_path({str(BUNDLE / 'start.py')!r}, run_name='__main__')"
    )
    answer = run(sys.executable, "-c", code)
    assert (answer.returncode, answer.stdout) == (0, "['a', 'b']\n"), answer.stderr

"""Files other than project.sqlite do not contain folders of this machine, its user or its name."""

import getpass
import gzip
import json
import re
import socket
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.searches import SEARCHES, search_of_kind

REPOSITORY = Path(__file__).resolve().parents[3]
SAMPLES = REPOSITORY / "resources" / "samples"
_MINIMUM_LENGTH = 5  # shorter names occur by chance


def content_of(path: Path) -> bytes:
    """Return the content of a file, unpacked; for Parquet the content of all columns and the metadata of the schema."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        cells = json.dumps(table.to_pylist(), default=repr, ensure_ascii=False)
        return cells.encode() + repr(table.schema.metadata).encode()
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def private_names(folder: Path) -> list[bytes]:
    """Return expressions that match the private names of this machine."""
    places = [re.escape(str(path)) for path in (folder, REPOSITORY, Path.home())]
    words = [rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in (getpass.getuser(), socket.gethostname()) if len(name) >= _MINIMUM_LENGTH]
    return [expression.encode() for expression in (*places, *words)]


def assert_private(folder: Path) -> None:
    """Fail if a file contains a folder of this machine, the user or the machine name."""
    expressions, n_files = private_names(folder), 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("project.sqlite"):
            n_files += 1
            content = content_of(path)
            assert [expression for expression in expressions if re.search(expression, content)] == [], path.relative_to(folder)
    assert n_files > 0


def export_all(project: Path, out: Path) -> None:
    """Write every run of a project in all its formats, and its report."""
    for run in Project.open(project).runs():
        main(["report", str(project), "--run", run.id, "--out", str(out / f"report-{run.id}")])
        for export in search_of_kind(run.kind).exports:
            # A run may lack the tables of a format.
            main(["export", str(project), "--run", run.id, "--format", export.name, "--out", str(out / f"{run.id}-{export.name}")])


def test_converted_files_contain_no_path_of_this_machine(tmp_path, capsys):
    for suffix in ("mzML", "mgf", "ms2"):
        assert main(["convert", str(SAMPLES / "BSA1.mzML.gz"), "--out", str(tmp_path / f"x.{suffix}"), "--quiet"]) == 0
    assert_private(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", [search.kind for search in SEARCHES if search.demo is not None])
def test_demo_and_export_write_no_path_of_this_machine(kind, tmp_path, own_cache, capsys):
    assert main(["demo", kind, "--out", str(tmp_path / "p"), "--device", "cpu", "--quiet"]) == 0
    export_all(tmp_path / "p", tmp_path / "out")
    assert_private(tmp_path)


@pytest.mark.long
def test_comparison_files_contain_no_path_of_this_machine(tmp_path, own_cache, capsys):
    comet = [str(SAMPLES / "BSA1_comet.pep.xml.gz"), "--spectra", str(SAMPLES / "BSA1.mzML.gz")]
    for project in ("a", "b"):
        assert main(["import", *comet, "--out", str(tmp_path / project), "--device", "cpu", "--quiet"]) == 0
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "compared")]) == 0
    export_all(tmp_path / "a", tmp_path / "out")
    assert_private(tmp_path)

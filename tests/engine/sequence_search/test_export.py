"""Exports of a project's run are identical to the files written by the search."""

from __future__ import annotations

import io
import os
import shutil
import sys

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.sequence_search import SEQUENCE_SEARCH
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequences.hits import FORMATS, OF_ONE_QUERY
from tests.engine.conftest import write_fasta
from tests.searching import align


@pytest.fixture(scope="module")
def files(tmp_path_factory, random_protein):
    """Three queries, the middle one without hits; subjects with equal names, quotes and gaps."""
    first, second = random_protein(1, 120), random_protein(2, 200)
    subjects = [
        ('same An "odd" <&>', first),
        ("same", first[:50] + first[53:]),
        ("x\x01y of NCBI", second[20:150]),
        ("unrelated", random_protein(3, 90)),
    ]
    queries = [("one The first", first), ("none", "WWW"), ("two", second[:90] + "*" + second[90:])]
    folder = tmp_path_factory.mktemp("files")
    return write_fasta(folder / "q.fasta", queries), write_fasta(folder / "d.fasta", subjects)


def export_hits(project, run_id, format, target, progress=None):
    return SEQUENCE_SEARCH.export(project, ExportRequest(run_id, format, target), progress or Progress())


@pytest.fixture(scope="module")
def searched(files, tmp_path_factory):
    """Project with the search, made once."""
    folder = tmp_path_factory.mktemp("searched") / "P"
    align(*([path] for path in files), None, SequenceSearchParameters(maximum_e_value=1e-3), project_folder=folder, device="cpu")
    return folder


@pytest.fixture
def project(searched, tmp_path):
    """Copy of that project for a single test."""
    return Project.open(shutil.copytree(searched, tmp_path / "P"))


@pytest.mark.parametrize("rows", [1, 4096])
@pytest.mark.parametrize("format", [name for name in FORMATS if name not in OF_ONE_QUERY])
def test_sequence_export_equals_files_of_the_search(project, files, tmp_path, monkeypatch, format, rows):
    monkeypatch.setattr("proteoscope.engine.sequence_search.export._ROWS", rows)
    parameters = SequenceSearchParameters(maximum_e_value=1e-3)
    summary = align(*([path] for path in files), tmp_path / "a", parameters, format=format, device="cpu")
    assert export_hits(project, "align-0001", format, tmp_path / "b") == [tmp_path / "b"] and summary.n_hits == 3
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("format", ["tsv", "sam"])
@pytest.mark.parametrize("n_hits", [1, 3])
def test_cancelled_sequence_export_leaves_file_unchanged(project, tmp_path, format, n_hits):
    (tmp_path / "o").write_text("older")

    class Stopped(Progress):
        def advance(self, n=1):
            super().advance(n)
            if self._done >= n_hits:
                self.cancel()

    with pytest.raises(Cancelled):
        export_hits(project, "align-0001", format, tmp_path / "o", Stopped())
    assert (tmp_path / "o").read_text() == "older" and not list(tmp_path.glob(".*"))


def test_invalid_sequence_export_overwrites_nothing(project, files, tmp_path):
    hits = project.table("hits")
    for name, target, said in (("pin", "o", "no format 'pin'"), ("tsv", hits, "belongs to the project"), ("tsv", files[1], "is read")):
        with pytest.raises(ParameterError, match=said):
            export_hits(project, "align-0001", name, tmp_path / target)
    with pytest.raises(InputError, match="no finished result 'hits'"):
        export_hits(project, "align-0009", "tsv", tmp_path / "o")
    damaged = tmp_path / "Q"
    shutil.copytree(tmp_path / "P", damaged)
    (damaged / hits.relative_to(project.folder)).write_bytes(b"x" * hits.stat().st_size)
    with pytest.raises(InputError, match="cannot be read as a table"):
        export_hits(Project.open(damaged), "align-0001", "tsv", tmp_path / "o")
    assert not (tmp_path / "o").exists() and project.verify() == []


def test_export_command_exports_last_or_named_run(project, files, tmp_path, capsys):
    align(
        [files[0]],
        [files[1]],
        None,
        SequenceSearchParameters(maximum_e_value=1e-3, hits_per_query=1),
        project_folder=tmp_path / "P",
        device="cpu",
    )
    arguments = ["export", str(tmp_path / "P"), "--format", "blast6", "--out", str(tmp_path / "o")]
    for options, n_hits in ((["--run", "align-0001"], 3), ([], 2)):
        assert main([*arguments, *options]) == 0
        assert capsys.readouterr().out == f"{tmp_path / 'o'}\n"
        assert len((tmp_path / "o").read_text().splitlines()) == n_hits


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (
            ["--format", "mzid"],
            "run 'align-0001' is a sequence search, which has no format 'mzid'; expected one of tsv, blast6, sam, fasta, clustal",
        ),
        (["--format", "pin", "--run", "align-0001"], "which has no format 'pin'"),
        (["--format", "sam", "--run", "align-0007"], "no finished sequence search or read alignment 'align-0007'"),
        (["--format", "tsv", "--run", "7"], "no finished identification"),
    ],
)
def test_export_command_lists_formats(project, tmp_path, capsys, extra, said):
    assert main(["export", str(tmp_path / "P"), "--out", str(tmp_path / "o"), *extra]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not (tmp_path / "o").exists()


def test_export_to_dash_writes_nothing_else_to_standard_output(project, files, tmp_path, capsysbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export_hits(project, "align-0001", "tsv", tmp_path / "o.tsv")
    assert main(["export", "P", "--format", "tsv", "--out", "-"]) == 0
    assert capsysbinary.readouterr().out == (tmp_path / "o.tsv").read_bytes()
    arguments = ["align", *map(str, files), "--maximum-e-value", "1e-3", "--device", "cpu"]
    assert main([*arguments, "--out", "-"]) == 0
    assert capsysbinary.readouterr().out == (tmp_path / "o.tsv").read_bytes()
    assert not (tmp_path / "-").exists()
    for wrong in (["--out", "-", "--json"], ["--out", "-", "--all-scores", "-"]):
        assert main([*arguments, *wrong]) == 2
        captured = capsysbinary.readouterr()
        assert b"standard output takes only one file of results" in captured.err and captured.out == b""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["export", "P", "--format", "tsv", "--out", "-"]) == 2
    assert "there is no standard output" in sys.stderr.getvalue()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_export_recognises_aliases_of_standard_output(project, tmp_path, monkeypatch, name):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    assert main(["export", str(project.folder), "--format", "tsv", "--out", name]) == 0
    export_hits(project, "align-0001", "tsv", tmp_path / "hits.tsv")
    assert sys.stdout.buffer.getvalue() == (tmp_path / "hits.tsv").read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_align_rejects_pipe_as_sequence_file(files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="cannot be read twice"):
        align([tmp_path / "pipe"], [files[1]], None, SequenceSearchParameters(), device="cpu")


def test_spreadsheet_safe_sequence_export_has_no_formulas(fasta, random_protein, tmp_path, capsys):
    sequence = random_protein(1, 120)
    query, database = fasta("q.fasta", [("=1+1 The first", sequence)]), fasta("d.fasta", [("@SUM(A1) -2+3", sequence)])
    align([query], [database], None, SequenceSearchParameters(maximum_e_value=1e-3), project_folder=tmp_path / "P", device="cpu")
    rows = {}
    for name, options in (("plain", []), ("safe", ["--spreadsheet-safe"])):
        assert main(["export", str(tmp_path / "P"), "--format", "tsv", "--out", str(tmp_path / name), *options]) == 0
        header, line = (tmp_path / name).read_text().splitlines()
        rows[name] = dict(zip(header.split("\t"), line.split("\t"), strict=True))
    assert [rows["plain"][name] for name in ("query", "subject", "description")] == ["=1+1", "@SUM(A1)", "-2+3"]
    changed = {name: f"'{rows['plain'][name]}" for name in ("query", "subject", "description")}
    assert rows["safe"] == rows["plain"] | changed
    assert main(["export", str(tmp_path / "P"), "--format", "sam", "--out", str(tmp_path / "o"), "--spreadsheet-safe"]) == 2
    assert "--spreadsheet-safe is for --format tsv" in capsys.readouterr().err

"""Searches from Python name, reuse and replace runs like the command line, and leave no incomplete project."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import proteoscope
from proteoscope.engine.project import Project

QUERIES = {"a": "MKWVTFISLLFLFSSAYSRGVFRRDAHKSE", "b": "MKWVTFISLLLLFSSAYSRGVFRREAHKSE"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def align(**arguments: Any) -> proteoscope.SequenceSearch:
    return proteoscope.align(QUERIES, QUERIES, **({"project": "p", "device": "cpu", "threads": 1} | arguments))


def test_run_name_becomes_run_id_and_folder_name(folder: Path) -> None:
    assert align(run_name="first").run_id == "first" and (folder / "p" / "results" / "first" / "hits.parquet").is_file()


def test_existing_run_is_rejected_reused_or_replaced(folder: Path) -> None:
    first = align(run_name="a", out="h.tsv")
    date = first.record["date"]
    with pytest.raises(proteoscope.RunExistsError, match=r"a finished run 'a'\. overwrite=True replaces it, skip_existing=True keeps it"):
        align(run_name="a")
    assert align(run_name="a", out="h.tsv", skip_existing=True).hits.equals(first.hits)
    written = (folder / "p" / "results" / "a" / "run.json").stat().st_mtime_ns
    with pytest.raises(proteoscope.RunExistsError, match=r"which differs in gap_open\. overwrite=True replaces it") as caught:
        align(run_name="a", gap_open=9, skip_existing=True)
    assert caught.value.differences == ("gap_open",)
    assert (folder / "p" / "results" / "a" / "run.json").stat().st_mtime_ns == written and date
    replaced = align(run_name="a", gap_open=9, overwrite=True)
    assert replaced.parameters.gap_open == 9  # type: ignore[attr-defined] # of the parameters of this search
    assert [(run.id, run.status) for run in proteoscope.open_project("p").records] == [("a", "done")]


def test_skip_existing_recreates_a_missing_output_file(folder: Path) -> None:
    align(run_name="a", out="h.tsv")
    expected = (folder / "h.tsv").read_bytes()
    (folder / "h.tsv").unlink()
    align(run_name="a", out="h.tsv", skip_existing=True)
    assert (folder / "h.tsv").read_bytes() == expected


def test_run_replaced_in_an_open_project_is_read_again(folder: Path) -> None:
    names = ("BSA1_comet.pep.xml.gz", "BSA1.mzML.gz", "albumin_proteins.fasta.gz")
    results, spectra, proteins = (proteoscope.resources.path("samples", name) for name in names)
    imported = proteoscope.import_results(results, spectra, proteins, out="p", preset="low-resolution", device="cpu")
    first = proteoscope.quantify(imported, preset="counts", run_name="q")
    n_samples = first.samples.num_rows
    second = proteoscope.quantify(imported, preset="counts", run_name="q", overwrite=True)
    assert second.samples.num_rows == n_samples and second.record["run"] == "q"
    with pytest.raises(proteoscope.ParameterError, match="'import-0001' is the name of the run whose results are read; choose another"):
        proteoscope.quantify(imported, preset="counts", run_name="import-0001", overwrite=True)
    assert imported.psms.num_rows


def test_failing_run_leaves_no_project(folder: Path) -> None:
    (folder / "bad.fasta").write_text(">P1\n123\n")
    with pytest.raises(proteoscope.InputError, match=r"bad\.fasta"):
        proteoscope.align("bad.fasta", "bad.fasta", project="p", out="h.tsv")
    assert [path.name for path in folder.iterdir()] == ["bad.fasta"]


def test_run_fails_or_waits_while_the_project_is_busy(folder: Path) -> None:
    project, waiting, results = Project.create_or_open("p"), threading.Event(), list[proteoscope.SequenceSearch]()

    def note(event: proteoscope.ProgressEvent) -> None:
        if "Waiting" in event.message:
            waiting.set()

    with project.run("align", {}, name="other"):
        with pytest.raises(proteoscope.StorageError, match="is writing this project"):
            align(run_name="a")
        thread = threading.Thread(target=lambda: results.append(align(run_name="a", if_busy="wait", progress=note)))
        thread.start()
        assert waiting.wait(60)
        assert not results
    thread.join(60)
    assert results[0].run_id == "a"


def test_failed_runs_are_listed_and_deleted(folder: Path) -> None:
    align(run_name="a")
    with pytest.raises(ZeroDivisionError), Project.open("p").run("align", {}, name="b"):
        _ = 1 / 0
    project = proteoscope.open_project("p")
    assert [(run.id, run.status) for run in project.records] == [("a", "done"), ("b", "failed")] and project.resumable == ()
    project.delete("a")
    assert [run.id for run in project.records] == ["b"] and not (folder / "p" / "results" / "a").exists()
    with pytest.raises(proteoscope.InputError, match="holds no run 'a' that has ended"):
        project.delete("a")


def test_estimate_neither_runs_the_search_nor_writes_files(folder: Path) -> None:
    expected = proteoscope.estimate(proteoscope.align, QUERIES, QUERIES, project="p", out="h.tsv", device="cpu")
    assert expected.kind == "align" and expected.device == "cpu" and expected.seconds > 0
    assert repr(expected).startswith("Estimate(align on cpu: ") and not list(folder.iterdir())
    with pytest.raises(proteoscope.ParameterError, match=r"search = <function annotate .*: is not a search"):
        proteoscope.estimate(proteoscope.annotate, ([100.0], [1.0]), "PEPTIDEK/2")  # type: ignore[arg-type]

"""Results of searches: tables, acceptance, projects and processes."""

from __future__ import annotations

import gc
import pickle
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import proteoscope
from proteoscope import resources
from proteoscope.engine.command_line.main import main

SPECTRA, COMET = resources.path("samples", "BSA1.mzML.gz"), resources.path("samples", "BSA1_comet.pep.xml.gz")
PROTEINS = resources.path("samples", "albumin_proteins.fasta.gz")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[proteoscope.ImportedResults]:
    """Project with imported Comet results of the sample."""
    folder = tmp_path_factory.mktemp("api") / "project"
    with proteoscope.import_results(COMET, SPECTRA, PROTEINS, preset="low-resolution", out=folder) as result:
        yield result


def stored(result: proteoscope.Result, name: str) -> pa.Table:
    """Read a stored table with pyarrow."""
    return pyarrow.parquet.read_table(result.path / "results" / result.run_id / f"{name}.parquet")


def test_api_function_writes_the_same_tables_as_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"preset": "low-resolution", "device": "cpu"}
    result = proteoscope.identify(SPECTRA, PROTEINS, out=tmp_path / "function", missed_cleavages=1, **settings)  # type: ignore[arg-type]
    words = ["identify", SPECTRA, "--database", PROTEINS, "--out", tmp_path / "command", "--set", "missed_cleavages=1", "--quiet"]
    assert main([*map(str, words), "--preset", "low-resolution", "--device", "cpu"]) == 0
    capsys.readouterr()
    command = proteoscope.open_project(tmp_path / "command").run()
    assert command.tables == result.tables != ()
    for name in result.tables:
        assert stored(command, name).equals(stored(result, name)), name
    assert command.record["parameters"] == result.record["parameters"]


def test_api_tables_have_only_accepted_rows_by_default(imported: proteoscope.ImportedResults) -> None:
    for name in ("psms", "peptides", "proteins"):
        every = stored(imported, name)
        assert imported.table(name, accepted=False).equals(every)
        expected = [row for row in every.to_pylist() if not row["is_decoy"] and row["q_value"] <= imported.fdr]  # type: ignore[operator]
        assert imported.table(name).to_pylist() == expected != []
    assert imported.psms.num_rows == imported.counts["psms"]
    assert imported.table("psms", columns=["peptide"]).column_names == ["peptide"]
    with pytest.raises(proteoscope.ParameterError, match="has no column 'nothing'; it has"):
        imported.table("psms", columns=["nothing"])
    with pytest.raises(proteoscope.ParameterError, match="has no table 'hits'; it has"):
        imported.table("hits")


def test_pandas_and_polars_tables_have_the_same_rows_as_arrow(imported: proteoscope.ImportedResults) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    columns = ["peptide", "charge", "q_value"]
    expected = imported.table("psms", columns=columns).to_pylist()
    assert imported.to_pandas("psms", columns=columns).to_dict("records") == expected
    assert imported.to_polars("psms", columns=columns).to_dicts() == expected


def test_error_names_the_package_that_is_not_installed(imported: proteoscope.ImportedResults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(proteoscope.ProteoscopeError, match=r"to_polars needs polars, which is not installed. Run pip install polars\."):
        imported.to_polars()


def test_result_repr_is_one_line_and_its_html_has_the_first_rows(imported: proteoscope.ImportedResults) -> None:
    annotation = imported.annotate(0)
    for shown in (imported, imported.project, annotation, proteoscope.read_fasta(PROTEINS), proteoscope.read_spectra(SPECTRA)):
        assert "\n" not in repr(shown) and len(repr(shown)) < 200, repr(shown)
    page = ElementTree.fromstring(f"<div>{imported._repr_html_()}</div>")
    assert len(page.findall(".//tr")) == 1 + min(10, imported.table().num_rows)
    ElementTree.fromstring(annotation._repr_svg_())


def test_annotation_of_a_match_equals_annotation_of_its_spectrum(imported: proteoscope.ImportedResults) -> None:
    match = imported.psms.slice(3, 1).to_pylist()[0]
    annotation = imported.annotate(3)
    assert annotation.peptide == f"{match['peptide']}/{match['charge']}"
    again = proteoscope.annotate(
        proteoscope.read_spectra(SPECTRA).find(match["spectrum_id"]),
        annotation.peptide,
        tolerance=str(imported.finished.parameters["fragment_tolerance"]),
    )
    assert set(again.ions["mz"].to_pylist()) == set(annotation.ions["mz"].to_pylist()) != set()
    with pytest.raises(proteoscope.ParameterError, match=f"psm = {imported.psms.num_rows}: expected a row of psms"):
        imported.annotate(imported.psms.num_rows)


def test_only_results_stored_in_a_project_can_be_pickled(imported: proteoscope.ImportedResults) -> None:
    again = pickle.loads(pickle.dumps(imported))
    assert type(again) is proteoscope.ImportedResults and again.psms.equals(imported.psms)
    with proteoscope.align("PEPTIDEKPEPTIDEK", "PEPTIDEKPEPTIDER") as small, pytest.raises(proteoscope.ParameterError, match="out="):
        pickle.dumps(small)


def test_temporary_project_is_removed_with_its_last_result() -> None:
    result = proteoscope.align("PEPTIDEKPEPTIDEK", "PEPTIDEKPEPTIDER")
    folder, project = result.path, result.project
    assert result.hits.num_rows == 1 and folder.is_dir()
    del result
    gc.collect()
    assert project.run().table().num_rows == 1
    del project
    gc.collect()
    assert not folder.parent.exists()


def test_use_of_a_removed_temporary_project_is_an_error() -> None:
    with proteoscope.align("PEPTIDEKPEPTIDEK", "PEPTIDEKPEPTIDER") as result:
        pass
    with pytest.raises(proteoscope.InputError, match="temporary project was removed"):
        result.table()


def test_failed_search_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(proteoscope.InputError):
        proteoscope.identify(SPECTRA, "missing.fasta")
    assert not list(tmp_path.iterdir())


def test_follow_up_search_shares_and_retains_a_temporary_project() -> None:
    first = proteoscope.import_results(COMET, SPECTRA, PROTEINS, preset="low-resolution")
    second = proteoscope.quantify(first, preset="counts")
    assert second.project is first.project and first.project.run_ids == ("import-0001", "quantify-0002")
    del first
    gc.collect()
    assert second.proteins.num_rows >= 0 and second.path.is_dir()
    second.close()


def test_cancelled_search_raises_and_leaves_no_run(tmp_path: Path) -> None:
    progress = proteoscope.Progress()
    progress.cancel()
    with pytest.raises(proteoscope.Cancelled):
        proteoscope.align("PEPTIDEKPEPTIDEK", "PEPTIDEKPEPTIDER", project=tmp_path / "project", progress=progress)
    assert not (tmp_path / "project").exists() or not proteoscope.open_project(tmp_path / "project").run_ids

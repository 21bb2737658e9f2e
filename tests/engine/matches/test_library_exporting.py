"""Runs that identify peptides, exported as spectral libraries by the command line, and searches of these libraries."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.clustering import export
from proteoscope.engine.command_line.main import main
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project with an identification of the sample run, its explanation and an open modification search."""
    folder = tmp_path_factory.mktemp("made") / "project"
    samples = resources.path("samples")
    spectra, database = samples / "BSA1.mzML.gz", folder.parent / "proteins.fasta"
    # Leave out the proteome that is absent from the sample, to save time.
    with gzip.open(samples / "18Protein_SoCe_Tr_detergents_trace.fasta.gz", "rt") as file:
        database.write_text("".join(f">{entry}" for entry in file.read().split(">")[1:] if "SORC5" not in entry.split()[0]))
    run_search("identify", {"spectra": [spectra], "database": [database]}, project=folder, preset="low-resolution", device="cpu")
    run_search("explain", {"project": [folder]}, device="cpu")
    run_search("modified", {}, project=folder, options={"from_project": folder}, preset="low-resolution", device="cpu")
    return folder


def identified_forms(folder, kind):
    """Return peptidoforms and charges that the newest run of a kind identified at 1 %."""
    opened = Project.open(folder)
    rows = pq.read_table(opened.table("psms", opened.latest(kind))).to_pylist()
    return {(row["peptide"], row["charge"]) for row in rows if row["rank"] == 1 and not row["is_decoy"] and (row["q_value"] or 0) <= 0.01}


def exported(folder, out, kind, format="msp", *more):
    run = Project.open(folder).latest(kind)
    assert main(["export", str(folder), "--format", format, "--out", str(out), "--run", run, *more]) == 0
    return read_libraries([out])


@pytest.mark.parametrize("consensus", ["merged", "best"])
@pytest.mark.parametrize(("format", "suffix"), [("msp", "msp"), ("mzspeclib", "mzlib.txt"), ("blib", "blib")])
def test_identification_is_exported_as_library(project, tmp_path, format, suffix, consensus):
    library = exported(project, tmp_path / f"a.{suffix}", "identify", format, "--consensus", consensus)
    expected = identified_forms(project, "identify")
    assert len(library) == len(expected) > 5
    if format != "blib":  # blib has no termini
        assert set(zip(library.peptidoform.to_pylist(), library.charge.tolist(), strict=True)) == expected
    assert library.n_members.max() > 1 and (library.retention_time > 0).all() and all(library.proteins.to_pylist())


def test_open_modification_search_is_exported_as_library(project, tmp_path):
    """The library has modified peptidoforms, although other searches exclude such runs."""
    expected = identified_forms(project, "modified")
    library = exported(project, tmp_path / "m.mzlib.txt", "modified", "mzspeclib")
    assert len(library) == len(expected) > 3
    assert set(zip(library.peptidoform.to_pylist(), library.charge.tolist(), strict=True)) == expected
    assert all("[" in form.replace("[Carbamidomethyl]", "") for form, _ in expected), "all peptides of this run are modified"


def test_library_export_adds_explained_spectra(project, tmp_path, monkeypatch):
    identified = exported(project, tmp_path / "identify.msp", "identify")
    # The sample has too few unidentified spectra for an explanation, so a synthetic table replaces the stored one.
    opened = Project.open(project)
    rows = pq.read_table(opened.table("psms", opened.latest("identify"))).to_pylist()
    identified_rows = [row for row in rows if row["rank"] == 1 and not row["is_decoy"] and row["q_value"] <= 0.01]
    identified_spectra = {row["spectrum"] for row in identified_rows}
    left = [spectrum for spectrum in range(1000) if spectrum not in identified_spectra][:4]
    table = pa.table(
        {
            "spectrum": [*left[:3], identified_rows[0]["spectrum"]],
            "peptide": [identified_rows[0]["peptide"]] * 4,
            "charge": [identified_rows[0]["charge"]] * 4,
            "q_value": [0.001, 0.5, 0.002, 0.001],
            "similarity": [0.9] * 4,
            "kind": ["same", "same", "modified", "same"],
        }
    )
    monkeypatch.setattr(export, "read_stored", lambda *_: table)
    library = exported(project, tmp_path / "explain.msp", "explain")
    # Only the first row is accepted, of the same mass, and not identified.
    assert library.peptidoform.to_pylist() == identified.peptidoform.to_pylist()
    added = library.n_members - identified.n_members
    assert added.sum() == 1
    (row,) = added.nonzero()[0]
    assert (library.peptidoform[row].as_py(), library.charge[row]) == (identified_rows[0]["peptide"], identified_rows[0]["charge"])


def test_library_search_results_are_exported_as_library(project, tmp_path):
    exported(project, tmp_path / "own.msp", "identify")
    spectra = resources.path("samples") / "BSA1.mzML.gz"
    inputs = {"spectra": [spectra], "library": [tmp_path / "own.msp"]}
    summary = run_search("library", inputs, project=tmp_path / "p", preset="low-resolution", device="cpu")
    assert summary.n_psms >= len(identified_forms(project, "identify"))
    again = exported(tmp_path / "p", tmp_path / "again.msp", "library")
    forms = set(zip(again.peptidoform.to_pylist(), again.charge.tolist(), strict=True))
    assert forms and forms <= identified_forms(project, "identify")


def test_library_export_rejects_unsuitable_runs(project, tmp_path, capsys):
    assert main(["export", str(project), "--format", "tsv", "--out", str(tmp_path / "t"), "--consensus", "best"]) != 0
    assert "is not a spectral library; omit --consensus" in capsys.readouterr().err
    (tmp_path / "other.fasta").write_text(">other\nMKVLAAGIVGLCAKAWWWPPPKHHHHHHR\n")
    inputs = {"spectra": [resources.path("samples") / "BSA1.mzML.gz"], "database": [tmp_path / "other.fasta"]}
    run_search("modified", inputs, project=tmp_path / "p", preset="low-resolution", device="cpu")
    assert main(["export", str(tmp_path / "p"), "--format", "msp", "--out", str(tmp_path / "m.msp")]) != 0
    assert "has no PSM up to a q-value of 0.01" in capsys.readouterr().err
    assert not (tmp_path / "m.msp").exists()

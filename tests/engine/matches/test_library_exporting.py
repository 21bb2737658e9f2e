"""Runs of every kind that identify peptides, exported as libraries by the command line, and searched in what was made of them."""

from __future__ import annotations

import gzip

import pyarrow.parquet as pq
import pytest

import resources
from engine.command_line.main import main
from engine.formats.libraries.reading import read_libraries
from engine.project import Project
from engine.searches import run_search


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The sample run, identified, explained and searched for modified peptides."""
    folder = tmp_path_factory.mktemp("made") / "project"
    samples = resources.path("samples")
    spectra, database = samples / "BSA1.mzML.gz", folder.parent / "proteins.fasta"
    # Without the proteome that is not there, which takes its time.
    with gzip.open(samples / "18Protein_SoCe_Tr_detergents_trace.fasta.gz", "rt") as file:
        database.write_text("".join(f">{entry}" for entry in file.read().split(">")[1:] if "SORC5" not in entry.split()[0]))
    run_search("identify", {"spectra": [spectra], "database": [database]}, project=folder, preset="low-resolution", device="cpu")
    run_search("explain", {"project": [folder]}, device="cpu")
    run_search("modified", {}, project=folder, options={"from_project": folder}, preset="low-resolution", device="cpu")
    return folder


def forms_of(folder, kind):
    """Peptidoforms and charges that the newest run of a kind identified at 1 %."""
    opened = Project.open(folder)
    rows = pq.read_table(opened.table("psms", opened.latest(kind))).to_pylist()
    return {(row["peptide"], row["charge"]) for row in rows if row["rank"] == 1 and not row["is_decoy"] and (row["q_value"] or 0) <= 0.01}


def exported(folder, out, kind, format="msp", *more):
    run = Project.open(folder).latest(kind)
    assert main(["export", str(folder), "--format", format, "--out", str(out), "--run", run, *more]) == 0
    return read_libraries([out])


@pytest.mark.parametrize("consensus", ["merged", "best"])
@pytest.mark.parametrize(("format", "suffix"), [("msp", "msp"), ("mzspeclib", "mzlib.txt"), ("blib", "blib")])
def test_an_identification_is_a_library(project, tmp_path, format, suffix, consensus):
    library = exported(project, tmp_path / f"a.{suffix}", "identify", format, "--consensus", consensus)
    expected = forms_of(project, "identify")
    assert len(library) == len(expected) > 5
    if format != "blib":  # which has no termini
        assert set(zip(library.peptidoform.to_pylist(), library.charge.tolist(), strict=True)) == expected
    assert library.n_members.max() > 1 and (library.retention_time > 0).all() and all(library.proteins.to_pylist())


def test_what_was_explained_joins_what_was_identified(project, tmp_path):
    identified, library = (exported(project, tmp_path / f"{kind}.msp", kind) for kind in ("identify", "explain"))
    assert library.peptidoform.unique().to_pylist() == identified.peptidoform.unique().to_pylist()
    assert library.n_members.sum() > identified.n_members.sum()


def test_a_search_in_a_library_of_its_own_run_can_be_exported_again(project, tmp_path):
    exported(project, tmp_path / "own.msp", "identify")
    spectra = resources.path("samples") / "BSA1.mzML.gz"
    own = {"spectra": [spectra], "library": [tmp_path / "own.msp"]}
    summary = run_search("library", own, project=tmp_path / "p", preset="low-resolution", device="cpu")
    assert summary.n_psms >= len(forms_of(project, "identify"))
    again = exported(tmp_path / "p", tmp_path / "again.msp", "library")
    forms = set(zip(again.peptidoform.to_pylist(), again.charge.tolist(), strict=True))
    assert forms and forms <= forms_of(project, "identify")


def test_what_has_nothing_is_told_in_one_line(project, tmp_path, capsys):
    assert main(["export", str(project), "--format", "tsv", "--out", str(tmp_path / "t"), "--consensus", "best"]) != 0
    assert "is no spectral library; leave --consensus out" in capsys.readouterr().err
    run = Project.open(project).latest("modified")
    if not forms_of(project, "modified"):
        assert main(["export", str(project), "--format", "msp", "--out", str(tmp_path / "m.msp"), "--run", run]) != 0
        assert "has no PSM up to a q-value of 0.01" in capsys.readouterr().err
        assert not (tmp_path / "m.msp").exists()

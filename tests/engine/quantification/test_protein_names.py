"""Genes and organisms of proteins from the database to the tables of identifications and quantities, and to mzTab."""

from __future__ import annotations

import csv

import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search, search_of_kind
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.quantities import PROTEINS_BY_SAMPLE, with_tables_by_sample
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, write_project
from tests.searching import import_results

HEADERS = {
    "P0": "Serum albumin OS=Bos taurus OX=9913 GN=ALB PE=1 SV=4",
    "P1": "albumin precursor [Mus musculus]",
    "P2": "<b>nothing</b> GN= OX=12x",
}
NAMES = {"P0": ("ALB", "Bos taurus"), "P1": (None, "Mus musculus"), "P2": (None, None)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write a project of four identified runs, whose proteins have these headers."""
    peptides = random_peptides(9, 77)
    proteins = {name: peptides[3 * i : 3 * i + 3] for i, name in enumerate(HEADERS)}
    runs = {}
    for number in range(4):
        run = runs[f"r{number}"] = SyntheticRun(seconds=200, seed=number, noise_peaks=30)
        for k, sequence in enumerate(peptides):
            run.planted.append(Planted(sequence, 2, 3e6, 20.0 + 14 * k))
            run.identified.append(run.planted[-1])
    folder = tmp_path_factory.mktemp("named")
    write_project(folder, runs, proteins)
    (folder / "proteins.fasta").write_text("".join(f">{name} {HEADERS[name]}\n{''.join(proteins[name])}\n" for name in proteins))
    files = [folder / f"{stem}{run.suffix}" for stem, run in runs.items()]
    import_results([folder / "found.target.psms.tsv"], files, folder / "named", [folder / "proteins.fasta"])
    (folder / "design.tsv").write_text(
        "file\tsample\tcondition\treplicate\n" + "".join(f"r{i}\ts{i}\t{'ab'[i // 2]}\t{i % 2 + 1}\n" for i in range(4))
    )
    return folder / "named"


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_quantity_tables_have_genes_and_organisms(made):
    groups = {row["accessions"][0]: row for row in table_of(made, "proteins")}
    assert {name: (row["gene"], row["organism"]) for name, row in groups.items()} == NAMES
    assert {name: row["description"] for name, row in groups.items()} == HEADERS
    summary = run_search("quantify", {"project": [made]}, device="cpu", threads=2, options={"design": made.parent / "design.tsv"})
    for table in ("protein_quantities", "protein_changes"):
        rows = table_of(made, table)
        assert {(row["accession"], row["gene"], row["organism"]) for row in rows} == {(name, *names) for name, names in NAMES.items()}
    exports = made / "results" / summary.run_id / "exports"
    for path in exports.glob("protein*.tsv"):
        rows = {row["accession"]: (row["gene"] or None, row["organism"] or None) for row in rows_of(path)}
        assert rows == NAMES, path.name
    with open_run(Project.open(made), summary.run_id) as run:
        with_tables_by_sample(run)
        source = run.tables.source(PROTEINS_BY_SAMPLE.name)
        shown = source.columns(("accession", "gene", "organism")).to_pylist()
        assert {row["accession"]: (row["gene"], row["organism"]) for row in shown} == NAMES
        assert source.has_values("gene") and not run.tables.source("ion_traces").has_values("refused")


def test_mztab_has_species_and_taxonomy(made, tmp_path):
    summary = run_search("quantify", {"project": [made]}, preset="counts", device="cpu", threads=2)
    request = ExportRequest(summary.run_id, "mztab", tmp_path / "q.mzTab")
    (path,) = search_of_kind("quantify").export(Project.open(made), request, Progress())
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    (head,) = (line for line in lines if line[0] == "PRH")
    rows = [dict(zip(head, line, strict=True)) for line in lines if line[0] == "PRT"]
    assert {row["accession"]: (row["taxid"], row["species"]) for row in rows} == {
        "P0": ("9913", "Bos taurus"),
        "P1": ("null", "Mus musculus"),
        "P2": ("null", "null"),
    }

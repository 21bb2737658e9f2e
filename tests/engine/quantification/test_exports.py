"""Quantities exported as MSstats, MSstatsTMT and mzTab, read back by other programs."""

from __future__ import annotations

import csv
import re

import numpy as np
import pyarrow as pa
import pytest
from pyteomics import mztab

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import Project
from proteoscope.engine.quantification import corrections
from proteoscope.engine.quantification.corrections import _has_each_sample, read_quantities
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.quantification.mztab import _placed, write_mztab
from proteoscope.engine.quantification.tables import PROTEINS
from proteoscope.engine.searches import run_search, search_of_kind
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, write_project

MSSTATS = (
    "ProteinName PeptideSequence PrecursorCharge FragmentIon ProductCharge IsotopeLabelType Condition BioReplicate Run Fraction Intensity"
)
MSSTATS_TMT = "ProteinName PeptideSequence Charge PSM Mixture TechRepMixture Run Channel BioReplicate Condition Fraction Intensity"
MANDATORY = (
    "mzTab-version",
    "mzTab-mode",
    "mzTab-type",
    "description",
    "quantification_method",
    "protein-quantification_unit",
    "peptide-quantification_unit",
    "software[1]",
    "fixed_mod[1]",
    "variable_mod[1]",
    "ms_run[1]-location",
    "assay[1]-quantification_reagent",
    "assay[1]-ms_run_ref",
    "study_variable[1]-description",
    "study_variable[1]-assay_refs",
    "protein_search_engine_score[1]",
    "peptide_search_engine_score[1]",
)
"""Metadata required for a summary of quantities: mzTab 1.0, section 5.5."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write a project of four runs of two conditions with reporter ions and return its folder."""
    kit, rng = label("tmt-6"), np.random.default_rng(8)
    peptides = random_peptides(12, 77)
    proteins = {f"P{i}": peptides[3 * i : 3 * i + 3] for i in range(4)}
    runs = {}
    for number in range(4):
        run = SyntheticRun(seconds=200, seed=number, noise_peaks=30)
        for name, sequences in proteins.items():
            for k, sequence in enumerate(sequences):
                peptide = Planted(sequence, 2, 3e6 * (2 if number > 1 and name == "P0" else 1), 20.0 + 14 * (int(name[1]) * 3 + k))
                run.planted.append(peptide)
                run.identified.append(peptide)
        run.fragments = {peptide: ([*kit.mz, 300.2], [*rng.uniform(1e4, 2e4, 6), 50.0]) for peptide in peptides}
        runs[f"r{number}"] = run
    folder = tmp_path_factory.mktemp("made")
    (folder / "free.tsv").write_text(
        "file\tsample\tcondition\treplicate\n" + "".join(f"r{i}\ts{i}\t{'ab'[i // 2]}\t{i % 2 + 1}\n" for i in range(4))
    )
    rows = [f"r{i}\t{name}\tp{i}_{name}\t{'ab'[k // 3]}\t{6 * i + k + 1}" for i in range(4) for k, name in enumerate(kit.channels)]
    (folder / "tmt.tsv").write_text("file\tchannel\tsample\tcondition\treplicate\n" + "\n".join(rows) + "\n")
    return write_project(folder, runs, proteins)


def exported(project, format, target, **parameters):
    summary = run_search("quantify", {"project": [project]}, device="cpu", threads=2, **parameters)
    [path] = search_of_kind("quantify").export(Project.open(project), ExportRequest(summary.run_id, format, target), Progress())
    return path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_msstats_export_has_a_row_for_each_ion_and_run(made, tmp_path):
    path = exported(made, "msstats", tmp_path / "m.tsv", options={"design": made.parent / "free.tsv"})
    rows = rows_of(path)
    assert list(rows[0]) == MSSTATS.split()
    traces = {(row["peptide"], str(row["charge"]), row["file"]): row for row in table_of(made, "ion_traces")}
    assert len(rows) == len(traces) == 48
    assert len({(row["PeptideSequence"], row["PrecursorCharge"], row["Run"]) for row in rows}) == len(rows)
    for row in rows:
        trace = traces[row["PeptideSequence"], row["PrecursorCharge"], row["Run"]]
        assert row["Intensity"] == "NA" if trace["area"] is None else float(row["Intensity"]) == pytest.approx(trace["area"], rel=1e-6)
        assert (row["IsotopeLabelType"], row["FragmentIon"], row["ProductCharge"]) == ("L", "NA", "NA")
        assert row["BioReplicate"] == f"s{row['Run'][1]}" and row["Condition"] == "ab"[int(row["Run"][1]) // 2]


def test_msstats_tmt_export_has_a_row_per_spectrum_and_channel(made, tmp_path):
    path = exported(made, "msstats", tmp_path / "m.tsv", preset="tmt", label="tmt-6", options={"design": made.parent / "tmt.tsv"})
    rows = rows_of(path)
    assert list(rows[0]) == MSSTATS_TMT.split()
    assert len(rows) == 4 * 12 * 6
    assert {row["Channel"] for row in rows} == set(label("tmt-6").channels)
    assert len({row["Mixture"] for row in rows}) == 4
    assert len({(row["PSM"], row["Run"], row["Channel"]) for row in rows}) == len(rows)


def test_msstats_export_requires_conditions_and_intensities(made, tmp_path):
    with pytest.raises(ParameterError, match="the run has none: quantify with a design"):
        exported(made, "msstats", tmp_path / "m.tsv")
    with pytest.raises(ParameterError, match="the run has only spectral counts"):
        exported(made, "msstats", tmp_path / "m.tsv", preset="counts", options={"design": made.parent / "free.tsv"})


@pytest.mark.parametrize(
    ("design", "parameters", "method"),
    [
        ("free", {}, "MS:1001834"),
        ("tmt", {"preset": "tmt", "label": "tmt-6"}, "MS:1002010"),
        ("free", {"preset": "counts"}, "MS:1001836"),
        (None, {}, "MS:1001834"),
    ],
)
def test_mztab_has_the_required_fields_and_pyteomics_reads_it(made, tmp_path, design, parameters, method):
    options = {} if design is None else {"design": made.parent / f"{design}.tsv"}
    path = exported(made, "mztab", tmp_path / "q.mzTab", options=options, **parameters)
    with path.open(encoding="utf-8") as file:
        parsed = mztab.MzTab(file, table_format="dict")
    lines = [line.split("\t") for line in path.read_text().splitlines() if line]
    metadata = {line[1]: line[2] for line in lines if line[0] == "MTD"}
    assert not [name for name in MANDATORY if name not in metadata]
    assert method in metadata["quantification_method"]
    assert all(metadata[f"assay[{i}]-ms_run_ref"] for i in range(1, 5))
    # Each section is one table whose lines have as many cells as its header; metadata come first.
    order = [line[0] for line in lines]
    assert order == sorted(order, key=["MTD", "PRH", "PRT", "PEH", "PEP"].index)
    for head, kind in (("PRH", "PRT"), ("PEH", "PEP")):
        [names] = [line for line in lines if line[0] == head]
        assert len(set(names)) == len(names) and all(len(line) == len(names) and "" not in line for line in lines if line[0] == kind)
    variables = len([name for name in metadata if re.fullmatch(r"study_variable\[\d+\]-description", name)])
    assert variables == (4 if design is None else 2)
    table = parsed.protein_table["rows"]
    assert sorted(row["accession"] for row in table) == ["P0", "P1", "P2", "P3"]
    quantities = {(row["accession"], row["sample"]): row["quantity"] for row in table_of(made, "protein_quantities")}
    samples = [row["sample"] for row in table_of(made, "quantified_samples")]
    for row in table:
        expected = [quantities[row["accession"], sample] for sample in samples]
        assert [float(row[f"protein_abundance_assay[{i}]"]) for i in range(1, len(expected) + 1)] == pytest.approx(expected, rel=1e-6)
        if design == "free":
            assert float(row["protein_abundance_study_variable[2]"]) == pytest.approx(np.mean(expected[2:]), rel=1e-6)
            assert float(row["protein_abundance_stdev_study_variable[2]"]) == pytest.approx(
                np.std(expected[2:], ddof=1), rel=1e-4, abs=1e-9
            )
    assert len(parsed.peptide_table["rows"]) == 12


def test_mztab_modifications_have_the_specified_positions():
    assert _placed("PEPTIDE") is None
    assert _placed("AC[Carbamidomethyl]DM[Oxidation]K") == "2-UNIMOD:4,4-UNIMOD:35"
    assert _placed("[Acetyl]-AC[Carbamidomethyl]K") == "0-UNIMOD:1,2-UNIMOD:4"
    assert _placed("AK-[Amidated]") == "3-UNIMOD:2"
    assert _placed("AK[+12.5]") == "2-CHEMMOD:+12.5"


@pytest.mark.parametrize(
    ("fixed", "terms"),
    [
        (
            ["Carbamidomethyl (C)", "TMT6plex (N-term)"],
            {
                "fixed_mod[1]": "[UNIMOD, UNIMOD:4, Carbamidomethyl, ]",
                "fixed_mod[1]-site": "C",
                "fixed_mod[2]": "[UNIMOD, UNIMOD:737, TMT6plex, ]",
                "fixed_mod[2]-site": "N-term",
            },
        ),
        ([], {"fixed_mod[1]": "[MS, MS:1002453, No fixed modifications searched, ]"}),
        (None, {"fixed_mod[1]": "[, , Fixed modifications are not known, ]"}),
    ],
)
def test_mztab_lists_the_fixed_modifications_of_the_search(made, tmp_path, fixed, terms):
    summary = run_search("quantify", {"project": [made]}, preset="counts", device="cpu", threads=2)
    tables = read_quantities(Project.open(made), summary.run_id)
    path = tmp_path / "q.mzTab"
    write_mztab(path, tables, [], fixed, Progress())
    metadata = {line.split("\t")[1]: line.split("\t")[2] for line in path.read_text().splitlines() if line.startswith("MTD")}
    assert {name: value for name, value in metadata.items() if name.startswith("fixed_mod")} == terms


def test_mztab_of_an_import_reports_unknown_fixed_modifications(made, tmp_path):
    path = exported(made, "mztab", tmp_path / "q.mzTab", preset="counts")
    assert "Fixed modifications are not known" in path.read_text()


@pytest.mark.parametrize(
    ("rows", "is_complete"),
    [
        ([0, 1, 2, 3], True),
        ([0, 1, 2], False),
        ([0, 2, 1, 3], False),
        ([1, 0, 3, 2], False),
        ([0, 3, 2, 1], False),
        ([], True),
        ([2, 3, 0, 1], True),
    ],
)
def test_has_each_sample_requires_all_samples_in_order(rows, is_complete):
    table = pa.table({"accession": ["P", "P", "Q", "Q"], "sample": ["a", "b", "a", "b"]}).take(pa.array(rows, pa.int64()))
    assert _has_each_sample(table, pa.chunked_array([["a", "b"]])) is is_complete
    assert not _has_each_sample(table, pa.chunked_array([["a", "a"]]))
    assert not _has_each_sample(table, pa.chunked_array([pa.array([], pa.string())]))


@pytest.mark.parametrize("name", ["protein_quantities", "peptide_quantities", "peptidoform_quantities"])
def test_read_quantities_rejects_tables_that_lack_a_row(name, made, monkeypatch):
    summary = run_search("quantify", {"project": [made]}, device="cpu", threads=2, options={"design": made.parent / "free.tsv"})
    read = corrections.read_stored

    def read_less(project, run, table, columns):
        rows = read(project, run, table, columns)
        return rows.slice(1) if table.name == name else rows

    monkeypatch.setattr(corrections, "read_stored", read_less)
    with pytest.raises(InputError, match="does not contain every sample of each row"):
        read_quantities(Project.open(made), summary.run_id)


def test_mztab_escapes_commas_and_retains_quotes(made, tmp_path):
    summary = run_search("quantify", {"project": [made]}, preset="counts", device="cpu", threads=2)
    tables = dict(read_quantities(Project.open(made), summary.run_id))
    proteins = tables[PROTEINS.name]
    n, columns = len(proteins), proteins.column_names
    proteins = proteins.set_column(columns.index("accession"), "accession", pa.array(["\"q'" for _ in range(n)]))
    others = pa.array([["a,b", "c"] for _ in range(n)], pa.list_(pa.string()))
    tables[PROTEINS.name] = proteins.set_column(columns.index("other_accessions"), "other_accessions", others)
    progress = RecordingProgress(Progress())
    write_mztab(tmp_path / "q.mzTab", tables, [], None, progress)
    lines = [line.split("\t") for line in (tmp_path / "q.mzTab").read_text().splitlines()]
    (head,) = (line for line in lines if line[0] == "PRH")
    rows = [dict(zip(head, line, strict=True)) for line in lines if line[0] == "PRT"]
    assert {(row["accession"], row["ambiguity_members"]) for row in rows} == {("\"q'", "a%2Cb,c")}
    assert any("accessions of groups contain commas" in text for text in progress.messages)

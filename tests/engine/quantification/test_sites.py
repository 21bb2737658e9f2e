"""Quantities of localised sites: planted changes of sites while the amounts of their proteins change too."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.amounts import Grouping, RawQuantities
from proteoscope.engine.quantification.corrections import CORRECTED, corrected_tables, read_quantities
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.sites import Sites, site_quantities
from proteoscope.engine.quantification.tables import ION_TRACES, SITE_PEPTIDOFORMS, SITE_QUANTITIES
from proteoscope.engine.searches import run_search, search_of_kind
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, bare, random_peptides, table_of, write_project

PHOSPHO = "[79.966331]"
FILES = ("control_1", "control_2", "heat_1", "heat_2")
DESIGN = "file\tsample\tcondition\treplicate\n" + "".join(f"{name}\t{name}\t{name[:-2]}\t{name[-1]}\n" for name in FILES)
N_PROTEINS = 14


def log2_protein(number: int) -> float:
    """Return the planted log2 change of a protein."""
    return (0.0, 2.0, -2.0, 1.0, -1.0, 0.0, 0.0)[number % 7]


def log2_site(number: int) -> float:
    """Return the planted log2 change of the site of a protein relative to the protein."""
    return (0.0, 0.0, 1.5, -3.0, 2.0, 3.0, -2.0)[number % 7]


def site_of(psm: dict, number: int) -> dict:
    """Return a row of the table of PSM sites: at the second possible residue, whereas the search has the first; unsure in protein 13."""
    possible = [i for i, residue in enumerate(psm["sequence"], 1) if residue in "ST"]
    probability = 0.6 if number == 13 else 0.96
    return {
        "modification": "Phospho",
        "residue": psm["sequence"][possible[1] - 1],
        "position": possible[1],
        "site_probability": probability,
        "site_score": 1.0,
        "localisation_q_value": 0.01,
        "has_alternative": True,
        "peptide": psm["peptide"],
        "charge": psm["charge"],
        "proteins": psm["proteins"],
        "protein_positions": [start + possible[1] - 1 for start in psm["protein_starts"]],
        "possible_positions": possible,
        "probabilities": [1 - probability, probability, *[0.0] * (len(possible) - 2)],
    }


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> tuple[Path, dict[str, tuple[str, int]]]:
    """Return a project with an identification that localised modifications, and the sequence and site of each protein."""
    rng, folder = np.random.default_rng(17), tmp_path_factory.mktemp("sites")
    peptides = random_peptides(N_PROTEINS * 4, 31)
    proteins, sites = {}, {}
    runs = {name: SyntheticRun(seconds=400.0, noise_peaks=60, seed=k) for k, name in enumerate(FILES)}
    for number in range(N_PROTEINS):
        sequences = peptides[4 * number : 4 * number + 4]
        modified = f"AES{PHOSPHO}DLT{sequences[0]}"
        proteins[f"P{number:02d}"] = [*sequences[1:], modified]
        sites[f"P{number:02d}"] = bare(modified), len("".join(sequences[1:])) + 6
        for sequence in proteins[f"P{number:02d}"]:
            amount, apex = 4e6 * rng.lognormal(0, 0.3), rng.uniform(40, 360)
            change = log2_protein(number) + (log2_site(number) if sequence == modified else 0.0)
            for name, run in runs.items():
                half = change / 2 if name.startswith("heat") else -change / 2
                run.planted.append(Planted(sequence, 2, amount * 2**half * rng.lognormal(0, 0.03), apex))
                run.identified.append(run.planted[-1])
    path = write_project(folder, runs, proteins)
    (folder / "design.tsv").write_text(DESIGN)
    project = Project.open(path)
    last = project.runs()[-1].id
    psms = pq.read_table(project.table("psms", last)).to_pylist()
    rows = [{"psm": i, **site_of(psm, int(psm["proteins"][0][1:]))} for i, psm in enumerate(psms) if "[" in psm["peptide"]]
    for is_localised in (False, True):
        with project.run("identify", {"psm_fdr": 0.01}, project.inputs(last)) as run:
            for name in ("psms", "peptides", "proteins", "spectra"):
                run.write_table(name, pq.read_table(project.table(name, last)))
            if is_localised:
                run.write_table("psm_sites", PSM_SITES.arrow({name: [row[name] for row in rows] for name in rows[0]}))
    return path, sites


def quantify(planted, **parameters):
    path, _ = planted
    options = {"design": path.parent / "design.tsv"}
    return run_search("quantify", {"project": [path]}, options=options, device="cpu", threads=2, change_fdr=0.05, **parameters)


def heat_minus_control(rows, column):
    """Return the mean difference of a log2 column between conditions, by protein."""
    values = {}
    for row in rows:
        values.setdefault(row["accession"], {}).setdefault(row["condition"], []).append(row[column])
    return {name: np.mean(by["heat"]) - np.mean(by["control"]) for name, by in values.items()}


@pytest.fixture(scope="module")
def quantified(planted):
    return quantify(planted)


@pytest.mark.parametrize("method", ["maxlfq", "sum"])
def test_site_changes_relative_to_the_protein_equal_planted_changes(planted, method):
    summary = quantify(planted, protein_quantity=method)
    path, sites = planted
    rows = table_of(path, "site_quantities")
    of_site = {row["accession"]: (row["position"], row["residue"], row["modification"]) for row in rows}
    assert of_site == {name: (position, "T", "Phospho") for name, (_, position) in sites.items() if name != "P13"}
    assert {row["n_peptidoforms"] for row in rows} == {1} and len(rows) == 4 * len(of_site)
    relative, absolute = (heat_minus_control(rows, column) for column in ("log2_relative", "log2_quantity"))
    for number in range(N_PROTEINS - 1):
        name = f"P{number:02d}"
        assert relative[name] == pytest.approx(log2_site(number), abs=0.25)
        assert absolute[name] == pytest.approx(log2_site(number) + log2_protein(number), abs=0.35)
    assert any("13 sites with a probability of at least 0.75 quantified, 13 also relative" in text for text in summary.messages)


def test_sites_below_the_minimum_probability_are_not_quantified(planted):
    quantify(planted, minimum_site_probability=0.5)
    path, sites = planted
    assert {row["accession"] for row in table_of(path, "site_quantities")} == set(sites)
    assert len(table_of(path, "site_peptidoforms")) == N_PROTEINS
    quantify(planted, minimum_site_probability=0.99)
    assert table_of(path, "site_quantities") == [] and len(table_of(path, "site_peptidoforms")) == N_PROTEINS


def test_site_quantities_by_counts_equal_the_numbers_of_spectra(planted):
    quantify(planted, method="counts")
    rows = table_of(planted[0], "site_quantities")
    assert {row["quantity"] for row in rows} == {1.0}
    assert [row["log2_relative"] for row in rows] == pytest.approx([-np.log2(3)] * len(rows))


def test_site_tables_are_exported_and_follow_corrected_traces(planted, quantified, tmp_path):
    project = Project.open(planted[0])
    request = ExportRequest(quantified.run_id, "tsv", tmp_path)
    names = {path.name for path in search_of_kind("quantify").export(project, request, Progress())}
    assert {"site_quantities.tsv", "site_peptidoforms.tsv"} <= names
    tables = read_quantities(project, quantified.run_id)
    traces = tables[ION_TRACES.name].to_pylist()
    peptide = tables[SITE_PEPTIDOFORMS.name]["peptide"][0].as_py()
    row = next(i for i, trace in enumerate(traces) if trace["peptide"] == peptide and trace["file"] == "heat_1.mzML")
    correction = {name: traces[row][name] for name in CORRECTED} | {"area": 4 * traces[row]["area"]}
    parameters = QuantificationParameters(minimum_site_probability=0.75)
    unchanged, corrected = (corrected_tables(tables, change, parameters)[SITE_QUANTITIES.name] for change in ({}, {row: correction}))
    assert unchanged["log2_relative"].to_numpy() == pytest.approx(tables[SITE_QUANTITIES.name]["log2_relative"].to_numpy(), abs=1e-9)
    change = corrected["log2_relative"].to_numpy() - unchanged["log2_relative"].to_numpy()
    assert change[2] == pytest.approx(2.0, abs=0.2) and np.abs(np.delete(change, 2)).max() < 0.2


def test_msstats_ptm_has_modified_and_unmodified_peptides(planted, quantified, tmp_path):
    path, sites = planted
    project = Project.open(path)
    progress = RecordingProgress(Progress())
    paths = search_of_kind("quantify").export(project, ExportRequest(quantified.run_id, "msstats-ptm", tmp_path), progress)
    assert [file.name for file in paths] == ["ptm.tsv", "protein.tsv"]
    ptm, protein = (list(csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t")) for file in paths)
    columns = "ProteinName PeptideSequence PrecursorCharge FragmentIon ProductCharge IsotopeLabelType Condition BioReplicate Run"
    assert list(ptm[0]) == list(protein[0]) == [*columns.split(), "Fraction", "Intensity"]
    assert {row["ProteinName"] for row in ptm} == {f"{name}_T{position}" for name, (_, position) in sites.items() if name != "P13"}
    assert {row["ProteinName"] for row in protein} == set(sites)
    traces = table_of(path, "ion_traces")
    assert len(ptm) == 4 * 13 and len(ptm) + len(protein) + 4 == len(traces)
    assert all(("[Phospho]" in row["PeptideSequence"]) == (row in ptm) for row in (*ptm, *protein))
    area = {(trace["peptide"], trace["file"]): trace["area"] for trace in traces}
    for row in ptm:
        assert float(row["Intensity"]) == pytest.approx(area[row["PeptideSequence"], row["Run"]])
    assert any("below 0.75: 1" in message for message in progress.messages)


def test_runs_without_localisation_have_no_site_quantity_tables(planted):
    path, _ = planted
    plain = next(run.id for run in Project.open(path).runs() if run.kind == "identify")
    summary = quantify(planted, run=(plain,), method="counts")
    with pytest.raises(ParameterError, match="no sites of modifications"):
        search_of_kind("quantify").export(Project.open(path), ExportRequest(summary.run_id, "msstats-ptm", path.parent / "ptm"), Progress())
    assert not {"site_quantities", "site_peptidoforms"} & {table.name for table in Project.open(path).results(summary.run_id)}


def test_site_quantities_sum_all_peptidoforms_that_have_the_site():
    """Two sites of one protein: form 0 carries both, form 1 the first, form 2 none, form 3 an uncertain one."""
    rows = [(0, 5, 0.9), (0, 8, 0.8), (1, 5, 0.95), (3, 8, 0.5)]
    names = ["a", "b", "c", "d"]
    table = SITE_PEPTIDOFORMS.arrow(
        {
            "peptide": [names[form] for form, *_ in rows],
            "accession": ["P"] * 4,
            "position": [position for _, position, _ in rows],
            "residue": ["S"] * 4,
            "modification": ["Phospho"] * 4,
            "peptide_position": [1] * 4,
            "site_probability": [probability for *_, probability in rows],
            "localisation_q_value": [0.01, None, 0.02, 0.5],
        }
    )
    sites = Sites.from_table(table, names, 0.75)
    assert sites.table["position"].to_pylist() == [5, 8] and sites.table["n_peptidoforms"].to_pylist() == [2, 1]
    assert sites.table["site_probability"].to_pylist() == [0.95, 0.8]
    assert sites.table["localisation_q_value"].to_pylist() == [0.01, None]
    assert sites.is_modified.tolist() == [True, True, False, True]
    value = np.array([[1.0, 2.0], [4.0, np.nan], [8.0, 4.0], [100.0, 100.0]])
    grouping = Grouping(np.arange(4), np.array([0, 0, 1, 0]), np.array([0, 0]), 1)
    parameters = QuantificationParameters(protein_quantity="sum")
    result = site_quantities(sites, np.array([0, 0]), RawQuantities.from_values(value), grouping, parameters)
    assert result.amounts.value.tolist() == [[5.0, 2.0], [1.0, 2.0]]
    np.testing.assert_allclose(result.log2_relative, np.log2([[5 / 8, 2 / 4], [1 / 8, 2 / 4]]))

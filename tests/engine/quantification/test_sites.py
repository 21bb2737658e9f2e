"""Quantities of localised sites: planted changes of sites while the amounts of their proteins change too."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.amounts import Grouping, RawQuantities
from proteoscope.engine.quantification.corrections import CORRECTED, corrected_tables, read_quantities
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.sites import Sites, site_quantities
from proteoscope.engine.quantification.tables import ION_TRACES, PEPTIDES, PEPTIDOFORMS, SITE_PEPTIDOFORMS, SITE_QUANTITIES
from proteoscope.engine.results import reader, separated
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.quantities import with_tables_by_sample
from tests.engine.quantification.synthetic_runs import table_of
from tests.engine.quantification.synthetic_sites import (
    DESIGN,
    FILES,
    N_PROTEINS,
    localised_project,
    log2_protein,
    log2_site,
    quantify_sites,
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> tuple[Path, dict[str, tuple[str, int]]]:
    return localised_project(tmp_path_factory.mktemp("sites"))


def heat_minus_control(rows, column):
    """Return the mean difference of a log2 column between conditions, by protein."""
    values = {}
    for row in rows:
        values.setdefault(row["accession"], {}).setdefault(row["condition"], []).append(row[column])
    return {name: np.mean(by["heat"]) - np.mean(by["control"]) for name, by in values.items()}


@pytest.fixture(scope="module")
def quantified(planted):
    return quantify_sites(planted[0])


@pytest.mark.parametrize("method", ["maxlfq", "sum"])
def test_site_changes_relative_to_protein_equal_planted_changes(planted, method):
    summary = quantify_sites(planted[0], protein_quantity=method)
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


def shown_sites(path):
    """Return the rows of the table that the window shows."""
    with open_run(Project.open(path)) as run:
        with_tables_by_sample(run)
        source = run.tables.source("sites_by_sample")
        names = ("accession", "position", "fold_change", "relative", "by_sample", "n_first", "n_second")
        return source.values(np.arange(source.total), names).to_pylist()


@pytest.mark.parametrize("heat", ["heat", "heat / 42 / x"])
def test_shown_sites_equal_the_long_table(planted, heat):
    path, _ = planted
    design = path.parent / "renamed.tsv"
    design.write_text(DESIGN.replace("\theat\t", f"\t{heat}\t"))
    quantify_sites(path, design=design, method="counts")
    by_site = {}
    for row in table_of(path, "site_quantities"):
        by_site.setdefault((row["accession"], row["position"]), []).append(row)
    rows = shown_sites(path)
    assert [(row["accession"], row["position"]) for row in rows] == list(by_site) and len(rows) == N_PROTEINS - 1
    for row, of_site in zip(rows, by_site.values(), strict=True):
        assert row["by_sample"] == [sample["log2_quantity"] for sample in of_site]
        assert row["relative"] == [sample["log2_relative"] for sample in of_site]
        ratios = {
            name: [sample["log2_relative"] for sample in of_site if sample["condition"] == name and sample["log2_relative"] is not None]
            for name in (heat, "control")
        }
        assert (row["n_first"], row["n_second"]) == (len(ratios[heat]), len(ratios["control"])) and ratios[heat] and ratios["control"]
        assert row["fold_change"] == pytest.approx(np.mean(ratios[heat]) - np.mean(ratios["control"]))


def test_shown_sites_have_no_fold_change_without_a_comparison(planted):
    path, _ = planted
    design = path.parent / "alone.tsv"
    design.write_text("file\tsample\tcondition\treplicate\n" + "".join(f"{name}\t{name}\tx\t{i}\n" for i, name in enumerate(FILES, 1)))
    quantify_sites(path, design=design, method="counts")
    rows = shown_sites(path)
    assert len(rows) == N_PROTEINS - 1
    assert {(row["fold_change"], row["n_first"], row["n_second"]) for row in rows} == {(None, 0, 0)}


def test_sites_below_the_minimum_probability_are_not_quantified(planted):
    quantify_sites(planted[0], minimum_site_probability=0.5)
    path, sites = planted
    assert {row["accession"] for row in table_of(path, "site_quantities")} == set(sites)
    assert len(table_of(path, "site_peptidoforms")) == N_PROTEINS
    quantify_sites(planted[0], minimum_site_probability=0.99)
    assert table_of(path, "site_quantities") == [] and len(table_of(path, "site_peptidoforms")) == N_PROTEINS


def test_site_quantities_by_counts_equal_the_numbers_of_spectra(planted):
    quantify_sites(planted[0], method="counts")
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


def test_exports_in_small_parts_have_the_same_bytes(planted, quantified, tmp_path, monkeypatch):
    """Each format reads a few rows after the other, and never a whole table of traces, peptides or sites."""
    project, search, read = Project.open(planted[0]), search_of_kind("quantify"), reader.TableFile.read

    def written(folder: Path) -> dict[str, bytes]:
        names = {"msstats": "rows.tsv", "mztab": "q.mzTab"}
        targets = {export.name: folder / names.get(export.name, export.name) for export in search.exports}
        requests = [ExportRequest(quantified.run_id, name, target) for name, target in targets.items()]
        paths = [path for request in requests for path in search.export(project, request, Progress())]
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}

    def read_small(self: reader.TableFile, names: list[str] | None = None) -> pa.Table:
        assert self.table not in (ION_TRACES, PEPTIDES, PEPTIDOFORMS, SITE_QUANTITIES)
        return read(self, names)

    whole = written(tmp_path / "whole")
    for module, name, value in ((reader, "CHECKED_ROWS", 5), (separated, "_ROWS", 3), (separated, "_NUMBERS", 4)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(reader.TableFile, "read", read_small)
    assert len(whole) > 15 and written(tmp_path / "parts") == whole


def test_runs_without_localisation_have_no_site_quantity_tables(planted):
    path, _ = planted
    plain = next(run.id for run in Project.open(path).runs() if run.kind == "identify")
    summary = quantify_sites(planted[0], run=(plain,), method="counts")
    with pytest.raises(ParameterError, match="no sites of modifications"):
        search_of_kind("quantify").export(Project.open(path), ExportRequest(summary.run_id, "msstats-ptm", path.parent / "ptm"), Progress())
    assert shown_sites(path) == []
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

"""Planted peptides in synthetic mzML runs, quantified through their projects."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.quantification import features, results
from proteoscope.engine.quantification.corrections import corrected_tables, read_quantities
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.retention_times import aligned
from proteoscope.engine.searches import run_search, search_of_kind
from proteoscope.engine.spectra import spooling
from proteoscope.engine.views.run_account import run_account
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, voltage_run, write_project

N_PROTEINS, PER_PROTEIN = 24, 5
RATIOS = np.geomspace(1 / 50, 50, N_PROTEINS)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Write a project of two runs with proteins in known ratios.

    One peptide of each protein is identified only in the first run; for four proteins that peptide is absent from the second run.
    """
    rng = np.random.default_rng(11)
    peptides = random_peptides(N_PROTEINS * PER_PROTEIN, 12)
    runs = {"one": SyntheticRun(seed=1), "two": SyntheticRun(seed=2)}
    proteins = {f"P{i}": peptides[i * PER_PROTEIN : (i + 1) * PER_PROTEIN] for i in range(N_PROTEINS)}
    gone = {proteins[f"P{i}"][0] for i in range(4)}
    for sequences, ratio in zip(proteins.values(), RATIOS, strict=True):
        for k, sequence in enumerate(sequences):
            amount, apex = 4e6 * rng.lognormal(0, 0.5), rng.uniform(60, 540)
            for stem, factor in (("one", 1 / np.sqrt(ratio)), ("two", np.sqrt(ratio))):
                later = 0.0 if stem == "one" else 12 + 6 * np.sin(apex / 150)
                peptide = Planted(sequence, 2, amount * factor, apex + later)
                if not (stem == "two" and sequence in gone):
                    runs[stem].planted.append(peptide)
                if stem == "one" or k > 0:
                    runs[stem].identified.append(peptide)
    folder = tmp_path_factory.mktemp("planted")
    return write_project(folder, runs, proteins), proteins, gone


def quantify(project, **parameters):
    return run_search("quantify", {"project": [project]}, device="cpu", threads=2, **parameters)


def by_sample(rows, key):
    quantities: dict[str, dict[str, float | None]] = {}
    for row in rows:
        quantities.setdefault(row[key], {})[row["sample"]] = row["quantity"]
    return quantities


def test_quantify_recovers_planted_ratios(planted):
    project, proteins, _ = planted
    summary = quantify(project, normalisation="none")
    assert summary.n_proteins == N_PROTEINS
    quantities = by_sample(table_of(project, "protein_quantities"), "accession")
    errors = [abs(np.log2(quantities[f"P{i}"]["two"] / quantities[f"P{i}"]["one"] / ratio)) for i, ratio in enumerate(RATIOS)]
    assert np.median(errors) < np.log2(1.05)
    peptides = by_sample(table_of(project, "peptide_quantities"), "sequence")
    both = [sequence for sequences in proteins.values() for sequence in sequences[1:]]
    assert sum(None not in peptides[sequence].values() for sequence in both) >= 0.9 * len(both)


def test_quantify_writes_the_same_tables_in_little_memory(planted, monkeypatch):
    project, _, _ = planted
    written = []
    for _ in range(2):
        run = quantify(project, match_between_runs=True).run_id
        results = [result for result in Project.open(project).results(run) if result.rows is not None]
        written.append({result.name: pq.read_table(result.path) for result in results})
        for module, name, value in ((spooling, "MAXIMUM_BYTES_IN_MEMORY", 64), (spooling, "_BLOCK_VALUES", 50), (features, "_CELLS", 7)):
            monkeypatch.setattr(module, name, value)
    assert len(written[0]["ion_traces"]) > 100 and written[0] == written[1]


def test_quantify_writes_long_tables_as_text_on_request_only(planted, monkeypatch, tmp_path):
    project, _, _ = planted
    monkeypatch.setattr(results, "_MOST_TEXT_ROWS", 60)  # 48 rows of proteins, more of peptides
    run = quantify(project).run_id
    exports = Project.open(project).record(run)["exports"]
    assert "protein_quantities.tsv" in exports
    assert {"peptide_quantities.tsv", "peptide_quantities_by_sample.tsv"}.intersection(exports) == {"peptide_quantities_by_sample.tsv"}
    assert "peptide_quantities.tsv is not written" in "".join(line.text for line in Project.open(project).log(run))
    search_of_kind("quantify").export(Project.open(project), ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    assert (tmp_path / "tables" / "peptide_quantities.tsv").stat().st_size > 1000


def test_match_between_runs_finds_only_ions_present_in_the_run(planted):
    project, proteins, gone = planted
    summary = quantify(project, match_between_runs=True, transfer_fdr=0.05)
    moved = {row["peptide"] for row in table_of(project, "ion_traces") if row["source"] == "transferred"}
    only_in_one = {sequences[0] for sequences in proteins.values()}
    assert moved <= only_in_one
    assert len(moved & gone) <= 1
    assert summary.n_transferred == len(moved) >= 0.7 * len(only_in_one - gone)
    state = {(row["sequence"], row["sample"]): row["state"] for row in table_of(project, "peptide_quantities")}
    assert all(state[sequence, "two"] == ("transferred" if sequence in moved else "not seen") for sequence in only_in_one)


def test_match_between_runs_uses_only_confident_peptides(tmp_path):
    peptides = random_peptides(120, 41)
    doubtful = set(peptides[:36:3])
    runs = {stem: SyntheticRun(seed=i) for i, stem in enumerate(("one", "two"), 5)}
    rng = np.random.default_rng(6)
    for k, sequence in enumerate(peptides):
        planted = Planted(sequence, 2, 4e6, float(rng.uniform(60, 540)))
        for stem, run in runs.items():
            run.planted.append(planted)
            if stem == "one" or k >= 36:
                run.identified.append(planted)
    project = write_project(tmp_path, runs, {f"P{i}": peptides[3 * i : 3 * i + 3] for i in range(40)}, dict.fromkeys(doubtful, 0.02))
    summary = quantify(project, match_between_runs=True, psm_fdr=0.05, transfer_fdr=0.2)
    moved = {row["peptide"] for row in table_of(project, "ion_traces") if row["source"] == "transferred"}
    assert len(moved) > 8 and not moved & doubtful
    assert any("q-value of at most 0.01 over all files together" in message for message in summary.messages)
    assert any("The estimated rate of false transfers is" in message for message in summary.messages)
    quantify(project, match_between_runs=True, psm_fdr=0.05, donor_fdr=0.05, transfer_fdr=0.2)
    assert {row["peptide"] for row in table_of(project, "ion_traces") if row["source"] == "transferred"} & doubtful


@pytest.mark.parametrize("n_voltages", [1, 2, 4, 5])
def test_ion_traces_use_spectra_of_one_faims_voltage(tmp_path, n_voltages):
    run, peptides = voltage_run(7, n_voltages)
    project = write_project(tmp_path, {"one": run}, {f"P{i}": [peptide] for i, peptide in enumerate(peptides)})
    summary = quantify(project)
    rows = table_of(project, "ion_traces")
    expected = {peptide.sequence: None if n_voltages == 1 else -35.0 - 10 * (i % n_voltages) for i, peptide in enumerate(run.planted)}
    assert {row["peptide"]: row["voltage"] for row in rows} == expected
    measured = {row["peptide"]: row["area"] for row in rows if row["area"] is not None}
    assert len(measured) >= 57
    amount = {peptide.sequence: peptide.amount for peptide in run.planted}
    error = [np.log2(area / amount[peptide]) for peptide, area in measured.items()]
    assert np.ptp(np.quantile(error, [0.1, 0.9])) < 0.2
    assert any(message.startswith("FAIMS:") for message in summary.messages) == (n_voltages > 1)


def test_quantify_reports_files_that_are_copies_of_others(tmp_path):
    run, peptides = voltage_run(8, 1, 20)
    folder = write_project(tmp_path, {"one": run, "two": run}, {f"P{i}": [peptide] for i, peptide in enumerate(peptides)})
    summary = quantify(folder, method="counts")
    assert any("two.mzML is byte for byte the same as one.mzML: it is counted once" in message for message in summary.messages)
    design = tmp_path / "design.tsv"
    design.write_text("file\tsample\tcondition\treplicate\none\tA\tx\t1\ntwo\tB\ty\t1\n")
    with pytest.raises(InputError, match=r"line 3.*'two' has the same content as one.mzML, and is counted once"):
        run_search("quantify", {"project": [folder]}, options={"design": design}, device="cpu", threads=2)


def test_quantify_warns_of_a_design_of_one_condition(tmp_path):
    run, peptides = voltage_run(9, 1, 12)
    folder = write_project(tmp_path, {"one": run}, {f"P{i}": [peptide] for i, peptide in enumerate(peptides)})
    design = tmp_path / "design.tsv"
    design.write_text("file\tsample\tcondition\treplicate\tage\none\tA\tx\t1\t50\n")
    summary = run_search("quantify", {"project": [folder]}, preset="counts", options={"design": design}, device="cpu", threads=2)
    assert any("Nothing is compared: all samples have one condition, x" in message for message in summary.messages)
    assert any("not used: age; blocks of the comparison are plex, batch, subject" in message for message in summary.messages)


def test_quantify_by_counts_uses_the_design_and_writes_a_report(planted, tmp_path):
    project, proteins, _ = planted
    design = tmp_path / "design.tsv"
    design.write_text("file\tsample\tcondition\treplicate\none\tA\tx\t1\ntwo\tB\ty\t1\n")
    report = tmp_path / "report"
    summary = run_search(
        "quantify", {"project": [project]}, preset="counts", options={"design": design, "report": report}, device="cpu", threads=2
    )
    assert any("not compared" in message for message in summary.messages)
    with (report / "peptide_quantities_by_sample.tsv").open() as file:
        rows = {row["sequence"]: (row["quantity_A"], row["quantity_B"]) for row in csv.DictReader(file, delimiter="\t")}
    assert rows == {sequence: ("1", "1" if k else "") for sequences in proteins.values() for k, sequence in enumerate(sequences)}
    text = (report / "quantification.html").read_text()
    assert "<script" not in text and "NSAF" in text
    nsaf = [row["nsaf"] for row in table_of(project, "protein_quantities") if row["sample"] == "A"]
    assert sum(nsaf) == pytest.approx(1.0)
    recorded = Project.open(project).inputs(summary.run_id)
    assert str(design) in {str(record.path) for record in recorded if record.kind == "design"}


def test_quantity_tables_without_corrections_equal_the_run(planted, tmp_path):
    project, _, _ = planted
    design = tmp_path / "design.tsv"
    design.write_text("file\tsample\tcondition\treplicate\none\tA\tx\t1\ntwo\tB\ty\t1\n")
    summary = run_search(
        "quantify", {"project": [project]}, options={"design": design}, device="cpu", threads=2, match_between_runs=True, transfer_fdr=0.2
    )
    assert summary.n_transferred
    tables = read_quantities(Project.open(project), summary.run_id)
    parameters = QuantificationParameters(match_between_runs=True, transfer_fdr=0.2)
    again = corrected_tables(tables, {}, parameters)
    for name, table in tables.items():
        for column in table.column_names:
            expected, actual = (rows[column].to_pylist() for rows in (table, again[name]))
            if column in ("quantity", "log2_quantity", "factor"):
                assert [value is None for value in actual] == [value is None for value in expected]
                assert [value or 0 for value in actual] == pytest.approx([value or 0 for value in expected], rel=1e-9), (name, column)
            else:
                assert actual == expected, (name, column)


def test_quantify_rejects_a_file_changed_since_identification(planted):
    project = planted[0]
    spectra = project.parent / "one.mzML"
    text = spectra.read_text()
    spectra.write_text(text + "<!-- changed -->")
    try:
        with pytest.raises(InputError, match="has changed since it was identified"):
            quantify(project)
    finally:
        spectra.write_text(text)


def test_retention_times_align_despite_a_tenth_of_outliers():
    rng = np.random.default_rng(5)
    reference = np.sort(rng.uniform(0, 3600, 600))
    run_times = reference * 0.97 + 30 + 20 * np.sin(reference / 500) + rng.normal(0, 1, 600)
    wrong = rng.random(600) < 0.1
    times = np.column_stack([np.where(wrong, rng.uniform(0, 3600, 600), run_times), reference])
    times[::2, 0] = np.nan

    def alignments(times: np.ndarray):
        ion, file = np.nonzero(~np.isnan(times))
        return aligned(ion, file, times[ion, file], *times.shape).of_file

    of_run, of_reference = alignments(times)
    inner = slice(30, -30)
    assert np.median(np.abs(of_run.to_reference(run_times) - of_reference.to_reference(reference))[inner]) < 3
    assert (np.diff(of_run.to_reference(np.linspace(0, 3600, 500))) >= 0).all()
    back = of_run.from_reference(of_run.to_reference(run_times))
    assert np.median(np.abs(back - run_times)) < 3
    assert alignments(times[:9])[0] is None


def test_match_between_runs_uses_only_accepted_proteins(tmp_path):
    peptides = random_peptides(60, 42)
    runs = {stem: SyntheticRun(seed=i) for i, stem in enumerate(("one", "two"), 5)}
    rng = np.random.default_rng(6)
    for k, sequence in enumerate(peptides):
        planted = Planted(sequence, 2, 4e6, float(rng.uniform(60, 540)))
        for stem, run in runs.items():
            run.planted.append(planted)
            if stem == "one" or k >= 24:
                run.identified.append(planted)
    # The q-value of a protein is the best of its peptides: too high for the first eight proteins, but not for their peptides.
    project = write_project(tmp_path, runs, {f"P{i}": peptides[3 * i : 3 * i + 3] for i in range(20)}, dict.fromkeys(peptides[:12], 0.009))
    quantify(project, match_between_runs=True, protein_fdr=0.005, transfer_fdr=0.2)
    moved = {row["peptide"] for row in table_of(project, "ion_traces") if row["source"] == "transferred"}
    assert moved and not moved & set(peptides[:12])


def test_run_account_reports_imputed_values_and_centres(tmp_path):
    peptides, rng = random_peptides(40, 43), np.random.default_rng(3)
    runs = {f"r{i}": SyntheticRun(seed=i, noise_peaks=50) for i in range(4)}
    for k, sequence in enumerate(peptides):
        amount, apex = 4e6 * rng.lognormal(0, 0.3), rng.uniform(60, 540)
        for i, run in enumerate(runs.values()):
            if k >= 3 or i < 2:
                fold = 4.0 if k >= 30 and i > 1 else 1.0  # a quarter of the proteins is up
                run.planted.append(Planted(sequence, 2, amount * fold * rng.lognormal(0, 0.1), apex))
                run.identified.append(run.planted[-1])
    project = write_project(tmp_path, runs, {f"P{i}": [peptide] for i, peptide in enumerate(peptides)})
    design = tmp_path / "design.tsv"
    design.write_text(
        "file\tsample\tcondition\treplicate\tsubject\n" + "".join(f"r{i}\ts{i}\t{'ab'[i // 2]}\t{i % 2 + 1}\tp{i % 2}\n" for i in range(4))
    )
    summary = run_search("quantify", {"project": [project]}, options={"design": design}, device="cpu", threads=2, imputation="low")
    assert summary.n_imputed == 6
    assert "6 missing quantities were imputed; the table gives their number for each protein" in summary.lines()
    rows = {row["accession"]: row for row in table_of(project, "protein_changes")}
    assert [rows[f"P{k}"]["n_imputed"] for k in range(4)] == [2, 2, 2, 0]
    (shown,) = [message for message in summary.messages if message.startswith("b / a: centred on the ")]
    unchanged = np.median([rows[f"P{k}"]["log2_fold_change"] for k in range(3, 30)])
    assert abs(unchanged) < 0.1 and "log2 from the median ion" in shown
    assert "Blocks of the comparison: subject" in summary.messages
    opened = Project.open(project)
    text = run_account(opened, opened.runs()[-1], search_of_kind("quantify")).methods
    assert "of the condition and of subject as blocks" in text and "(6 values) and not used for the variance" in text
    assert "by a mixture model of the log2 ratios (b / a: " in text

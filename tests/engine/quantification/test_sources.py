"""Every type of run that identifies peptides can be quantified by command; counts are compared with the tables of the runs."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.identified import _Accepted, _experiment_q_values
from proteoscope.engine.searches import run_search
from proteoscope.engine.views.quantity_design import list_run_files
from tests.engine.evidence.synthetic_runs import write_run
from tests.engine.simulation import proteins_of

SAMPLE = resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


def stored(project: Path, run: str, name: str) -> list[dict]:
    return pq.read_table(Project.open(project).table(name, run)).to_pylist()


def accepted(project: Path, run: str) -> dict[int, str]:
    """Return the peptides of the spectra that a run identifies."""
    rows = stored(project, run, "psms")
    return {row["spectrum"]: row["peptide"] for row in rows if row["rank"] == 1 and not row["is_decoy"] and (row["q_value"] or 0) <= 0.01}


def command(project: Path, run: str, *more: str) -> str:
    """Run ``proteoscope quantify`` and return the id of the added run."""
    assert main(["quantify", str(project), "--run", run, *more, "--device", "cpu", "--threads", "2", "--quiet"]) == 0
    added = Project.open(project).latest("quantify")
    assert added is not None
    return str(added)


def counted(project: Path, run: str) -> Counter[str]:
    """Count the spectra of each peptidoform that has any."""
    return Counter({row["peptide"]: row["n_psms"] for row in stored(project, run, "peptidoform_quantities") if row["n_psms"]})


@pytest.fixture(scope="module")
def explained(explained_once: tuple[Path, str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Return a project with an identification of the sample and its explanation, and the ids of both runs."""
    folder, identified, explaining = explained_once
    return Path(shutil.copytree(folder, tmp_path_factory.mktemp("explained") / "p")), identified, explaining


def test_quantify_counts_explained_spectra_of_the_same_mass(explained):
    project, identified, explaining = explained
    before = accepted(project, identified)
    same = [row for row in stored(project, explaining, "explained") if row["q_value"] <= 0.01 and row["kind"] == "same"]
    assert len(same) >= 3 and not before.keys() & {row["spectrum"] for row in same}
    assert counted(project, command(project, identified, "--method", "counts")) == Counter(before.values())
    together = Counter(before.values()) + Counter(row["peptide"] for row in same)
    assert counted(project, command(project, explaining, "--method", "counts")) == together
    assert list_run_files(project, [explaining]) == list_run_files(project, [identified])


def test_quantify_accepts_explanation_with_ion_traces(explained):
    project, identified, explaining = explained
    quantities = []
    for run in (identified, explaining):
        added = command(project, run, "--method", "label-free")
        rows = stored(project, added, "ion_traces")
        quantities.append({(row["peptide"], row["charge"]) for row in rows})
        assert Project.open(project).record(added)["source_runs"] == [identified]
    assert quantities[0] <= quantities[1]


def test_quantify_accepts_open_modification_search(tmp_path):
    made = write_run(tmp_path, dict(list(proteins_of(SAMPLE).items())[:40]), {"Phospho": "ST", "Acetyl": "K"}, 7, every=2)
    project = tmp_path / "p"
    summary = run_search("modified", {"spectra": [made.spectra], "database": [made.database]}, project=project, device="cpu", threads=2)
    assert summary.run_id is not None
    assert len(list_run_files(project, [])) == len(list_run_files(project, [summary.run_id])) == 1
    assert counted(project, command(project, summary.run_id, "--method", "counts")) == Counter(accepted(project, summary.run_id).values())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a project with a library search."""
    project = tmp_path_factory.mktemp("known") / "p"
    assert main(["demo", "library", "--out", str(project), "--device", "cpu", "--threads", "2", "--quiet"]) == 0
    return project


@pytest.mark.parametrize("method", ["counts", "label-free"])
def test_quantify_uses_all_proteins_of_run_without_protein_fdr(library, method, capsys):
    project = library
    run = str(Project.open(project).latest("library"))
    expected = Counter(accepted(project, run).values())
    assert expected and all(row["q_value"] is None for row in stored(project, run, "proteins")), (
        "the test needs a run without protein q-values"
    )
    capsys.readouterr()
    assert main(["quantify", str(project), "--method", method, "--device", "cpu", "--threads", "2"]) == 0
    assert "no error rate of proteins" in "".join(capsys.readouterr())
    added = str(Project.open(project).latest("quantify"))
    rows = stored(project, added, "peptidoform_quantities")
    assert {row["peptide"] for row in rows} == set(expected)
    if method == "counts":
        assert counted(project, added) == expected


def experiment_q_values(targets: list[dict], decoys: list[dict], n_runs: int) -> dict[str, float]:
    """Return the q-values of the peptidoforms of target matches over all files."""
    collected = []
    for rows in (targets, decoys):
        names = list(dict.fromkeys(row["peptide"] for row in rows))
        form = np.array([names.index(row["peptide"]) for row in rows], np.int64)
        numbers = {name: np.array([row[name] for row in rows], np.float64) for name in ("file", "peptide_q_value")}
        collected.append(_Accepted(form, numbers, pa.array([], pa.string()), pa.table({"peptide": pa.array(names, pa.string())})))
    q_values = _experiment_q_values(*collected, n_runs)[0]
    return dict(zip(collected[0].forms["peptide"].to_pylist(), q_values.tolist(), strict=True))


def test_experiment_q_values_equal_the_definition():
    rng = np.random.default_rng(5)
    rows = {True: [], False: []}
    for k in range(600):
        is_decoy = bool(rng.random() < 0.2)
        q_value = round(float(rng.uniform(0, 0.02 if is_decoy else 0.012)), 4)
        for file in rng.permutation(4)[: int(rng.integers(1, 4)) if not is_decoy else 1].tolist():
            rows[is_decoy].append({"peptide": f"{'d' if is_decoy else 't'}{k}", "file": file, "peptide_q_value": q_value})
    rows[False].append({"peptide": "unknown", "file": 0, "peptide_q_value": None})
    q_values = experiment_q_values(rows[False], rows[True], 2)
    files: dict[str, set[int]] = {}
    for row in (*rows[False], *rows[True]):
        files.setdefault(row["peptide"], set()).add(row["file"])
    best = {row["peptide"]: row["peptide_q_value"] for row in (*rows[False], *rows[True])}

    @cache
    def of_group(is_in_one_file: bool, minimum: float) -> float:
        """Return the minimum ratio of decoys to targets over all q-value thresholds at or above `minimum`."""
        group = [peptide for peptide in files if (len(files[peptide]) == 1) == is_in_one_file and best[peptide] is not None]
        rates = []
        for limit in {best[peptide] for peptide in group if best[peptide] >= minimum}:
            n_decoys = sum(peptide[0] == "d" and best[peptide] <= limit for peptide in group)
            n_targets = sum(peptide[0] == "t" and best[peptide] <= limit for peptide in group)
            rates.append(n_decoys / max(1, n_targets))
        return min(1.0, *rates)

    for name, value in q_values.items():
        if name == "unknown":
            assert np.isnan(value)
        else:
            assert value == pytest.approx(max(min(1.0, 2 * best[name]), of_group(len(files[name]) == 1, best[name])))
    assert set(q_values) == {peptide for peptide in files if peptide[0] in "tu"}
    alone = experiment_q_values(rows[False], [], 1)
    assert alone["unknown"] != alone["unknown"] and all(alone[peptide] == best[peptide] for peptide in alone if peptide != "unknown")


def test_ion_at_four_faims_voltages_has_one_quantity(shared_cases, tmp_path):
    case = shared_cases / "faims_four_voltages"
    inputs = {"spectra": [case / "q_4cv_excl.mzML"], "database": [case / "q.fasta"]}
    run_search("identify", inputs, project=tmp_path / "p", device="cpu", threads=2)
    summary = run_search("quantify", {"project": [tmp_path / "p"]}, device="cpu", threads=2)
    assert summary.n_peptidoforms >= 57
    rows = stored(tmp_path / "p", summary.run_id, "ion_traces")
    assert {row["voltage"] for row in rows} == {-35.0, -45.0, -55.0, -65.0}
    assert sum(row["area"] is not None for row in rows) >= 57

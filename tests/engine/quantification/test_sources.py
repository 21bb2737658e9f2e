"""Every kind of run that identifies peptides is quantified, as commands; counts against the runs' own tables, read plainly."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.identified import _experiment_q_values
from proteoscope.engine.searches import run_search
from proteoscope.engine.views.quantity_design import list_run_files
from tests.engine.evidence.made_runs import make_run
from tests.engine.simulation import proteins_of

SAMPLE = resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


def stored(project: Path, run: str, name: str) -> list[dict]:
    return pq.read_table(Project.open(project).table(name, run)).to_pylist()


def accepted(project: Path, run: str) -> dict[int, str]:
    """Peptides of the spectra that a run identifies."""
    rows = stored(project, run, "psms")
    return {one["spectrum"]: one["peptide"] for one in rows if one["rank"] == 1 and not one["is_decoy"] and (one["q_value"] or 0) <= 0.01}


def command(project: Path, run: str, *more: str) -> str:
    """The run that ``proteoscope quantify`` adds."""
    assert main(["quantify", str(project), "--run", run, *more, "--device", "cpu", "--threads", "2", "--quiet"]) == 0
    added = Project.open(project).latest("quantify")
    assert added is not None
    return str(added)


def counted(project: Path, run: str) -> Counter[str]:
    """Spectra of each peptidoform that has some."""
    return Counter({one["peptide"]: one["n_psms"] for one in stored(project, run, "peptidoform_quantities") if one["n_psms"]})


@pytest.fixture(scope="module")
def explained(explained_once: tuple[Path, str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A project with an identification of the sample and its explanation, and both runs."""
    folder, identified, explaining = explained_once
    return Path(shutil.copytree(folder, tmp_path_factory.mktemp("explained") / "p")), identified, explaining


def test_an_explanation_adds_spectra_of_the_same_mass(explained):
    project, identified, explaining = explained
    before = accepted(project, identified)
    same = [one for one in stored(project, explaining, "explained") if one["q_value"] <= 0.01 and one["kind"] == "same"]
    assert len(same) >= 3 and not before.keys() & {one["spectrum"] for one in same}
    assert counted(project, command(project, identified, "--method", "counts")) == Counter(before.values())
    together = Counter(before.values()) + Counter(one["peptide"] for one in same)
    assert counted(project, command(project, explaining, "--method", "counts")) == together
    assert list_run_files(project, [explaining]) == list_run_files(project, [identified])


def test_an_explanation_is_quantified_by_ion_traces(explained):
    project, identified, explaining = explained
    quantities = []
    for run in (identified, explaining):
        added = command(project, run, "--method", "label-free")
        rows = stored(project, added, "ion_traces")
        quantities.append({(one["peptide"], one["charge"]) for one in rows})
        assert Project.open(project).record(added)["source_runs"] == [identified]
    assert quantities[0] <= quantities[1]


def test_a_search_for_modified_peptides_is_quantified_and_offers_its_files(tmp_path):
    made = make_run(tmp_path, dict(list(proteins_of(SAMPLE).items())[:40]), {"Phospho": "ST", "Acetyl": "K"}, 7, every=2)
    project = tmp_path / "p"
    found = run_search("modified", {"spectra": [made.spectra], "database": [made.database]}, project=project, device="cpu", threads=2)
    assert found.run_id is not None
    assert len(list_run_files(project, [])) == len(list_run_files(project, [found.run_id])) == 1
    assert counted(project, command(project, found.run_id, "--method", "counts")) == Counter(accepted(project, found.run_id).values())


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a search of a library."""
    project = tmp_path_factory.mktemp("known") / "p"
    assert main(["demo", "library", "--out", str(project), "--device", "cpu", "--threads", "2", "--quiet"]) == 0
    return project


@pytest.mark.parametrize("method", ["counts", "label-free"])
def test_a_run_that_knows_no_error_rate_of_proteins_is_quantified_with_all_of_them(known, method, capsys):
    project = known
    run = str(Project.open(project).latest("library"))
    expected = Counter(accepted(project, run).values())
    assert expected and all(one["q_value"] is None for one in stored(project, run, "proteins")), "or this test tests nothing"
    capsys.readouterr()
    assert main(["quantify", str(project), "--method", method, "--device", "cpu", "--threads", "2"]) == 0
    assert "no error rate of proteins" in "".join(capsys.readouterr())
    added = str(Project.open(project).latest("quantify"))
    rows = stored(project, added, "peptidoform_quantities")
    assert {one["peptide"] for one in rows} == set(expected)
    if method == "counts":
        assert counted(project, added) == expected


def test_experiment_q_values_are_those_of_one_file_and_of_several():
    rng = np.random.default_rng(5)
    rows = {True: [], False: []}
    for k in range(600):
        is_decoy = bool(rng.random() < 0.2)
        q_value = round(float(rng.uniform(0, 0.02 if is_decoy else 0.012)), 4)
        for file in rng.permutation(4)[: int(rng.integers(1, 4)) if not is_decoy else 1].tolist():
            rows[is_decoy].append({"peptide": f"{'d' if is_decoy else 't'}{k}", "file": file, "peptide_q_value": q_value})
    rows[False].append({"peptide": "unknown", "file": 0, "peptide_q_value": None})
    found = _experiment_q_values(*(pa.Table.from_pylist(rows[is_decoy]) for is_decoy in (False, True)), 2)
    files: dict[str, set[int]] = {}
    for row in (*rows[False], *rows[True]):
        files.setdefault(row["peptide"], set()).add(row["file"])
    best = {row["peptide"]: row["peptide_q_value"] for row in (*rows[False], *rows[True])}

    def of_group(name: str) -> float:
        """Least decoys for each target up to any higher threshold."""
        group = [one for one in files if (len(files[one]) == 1) == (len(files[name]) == 1) and best[one] is not None]
        rates = []
        for limit in {best[one] for one in group if best[one] >= best[name]}:
            n_decoys = sum(one[0] == "d" and best[one] <= limit for one in group)
            n_targets = sum(one[0] == "t" and best[one] <= limit for one in group)
            rates.append(n_decoys / max(1, n_targets))
        return min(1.0, *rates)

    for name, value in found.items():
        if name == "unknown":
            assert np.isnan(value)
        else:
            assert value == pytest.approx(max(min(1.0, 2 * best[name]), of_group(name)))
    assert set(found) == {one for one in files if one[0] in "tu"}
    alone = _experiment_q_values(pa.Table.from_pylist(rows[False]), pa.Table.from_pylist(rows[False]).slice(0, 0), 1)
    assert alone["unknown"] != alone["unknown"] and all(alone[one] == best[one] for one in alone if one != "unknown")


def test_ions_of_four_faims_voltages_have_a_quantity(shared_cases, tmp_path):
    case = shared_cases / "faims_four_voltages"
    inputs = {"spectra": [case / "q_4cv_excl.mzML"], "database": [case / "q.fasta"]}
    run_search("identify", inputs, project=tmp_path / "p", device="cpu", threads=2)
    summary = run_search("quantify", {"project": [tmp_path / "p"]}, device="cpu", threads=2)
    assert summary.n_peptidoforms >= 57
    rows = stored(tmp_path / "p", summary.run_id, "ion_traces")
    assert {row["voltage"] for row in rows} == {-35.0, -45.0, -55.0, -65.0}
    assert sum(row["area"] is not None for row in rows) >= 57

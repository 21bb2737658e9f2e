"""Error rates of an experiment, compared with their definition in plain loops, and on planted runs with known truth."""

from __future__ import annotations

import io
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.experiments import peptidoforms
from proteoscope.engine.experiments import report as report_module
from proteoscope.engine.experiments.competition import MATCH, best_matches, compete, merge_matches, pair_numbers, posterior_errors, score_of
from proteoscope.engine.experiments.report import REPORT, report_experiment
from proteoscope.engine.experiments.table import ExperimentRow, write_experiment
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.psms import peptide_families
from proteoscope.engine.project import Project
from proteoscope.engine.statistics.target_decoy import q_values
from tests.engine.experiments.planted_runs import PREFIX, TYPES, Planted, Rows, add_run, forge, joined, of_search
from tests.stopped_runs import tables

NAMES = ("experiment_peptides", "experiment_proteins", "experiment_matches", "experiment_runs")


def made(folder: Path, runs: dict[str, Rows], **settings: Any) -> tuple[Project, list[ExperimentRow]]:
    """Return a project with these runs, and the rows of its experiment."""
    project = Project.create_or_open(folder / "project")
    return project, [add_run(project, name, rows, folder, **settings) for name, rows in runs.items()]


def read(project: Project) -> dict[str, list[dict[str, Any]]]:
    return {name: pq.read_table(project.table(name, REPORT)).to_pylist() for name in NAMES}


def planted_runs(planted: Planted, n: int, size: int = 300) -> dict[str, Rows]:
    return {f"run_{number}": planted.run(number, size) for number in range(n)}


def test_experiment_report_equals_plain_target_decoy_competition(tmp_path: Path) -> None:
    planted = Planted(60, 200)
    runs = planted_runs(planted, 4)
    project, rows = made(tmp_path, runs, plus_one=True, fdr=0.05)
    report = report_experiment(project, rows, Progress())
    written = read(project)

    # The lowest posterior error of each peptide in any run; the first run and PSM of equal ones.
    best: dict[tuple[str, bool], tuple[float, str, int]] = {}
    matches: dict[tuple[str, str, bool], tuple[float, int]] = {}
    n_psms, n_runs, pair_of = defaultdict[Any, int](int), defaultdict[Any, set[str]](set), dict[Any, str]()
    for name, run in sorted(runs.items()):
        residues, ends = np.frombuffer("".join(run["sequence"]).encode(), np.uint8), np.cumsum([0, *map(len, run["sequence"])])
        family = peptide_families(residues, ends, enzyme("Trypsin"))
        errors = posterior_errors(np.array(run["score"]), np.array(run["is_decoy"]), family)
        for i, key in enumerate(zip(run["peptide"], run["is_decoy"], strict=True)):
            pair_of[key] = key[0][-2::-1] + key[0][-1] if key[1] else key[0]
            if run["q_value"][i] <= 0.05:
                n_psms[key] += 1
                n_runs[key].add(name)
            before = matches.get((name, *key))
            if before is None or run["score"][i] > run["score"][before[1]]:
                matches[name, *key] = (float(errors[i]), i)
    for (name, text, decoy), (error, psm) in matches.items():
        best[text, decoy] = min(best.get((text, decoy), (math.inf, "", 0)), (error, name, psm))
    score = {key: -math.log10(max(value[0], 1e-300)) for key, value in best.items()}
    winners = []
    for key in best:
        other = next((each for each in best if pair_of[each] == pair_of[key] and each[1] != key[1]), None)
        if other is None or score[key] > score[other] or (score[key] == score[other] and key[1]):
            winners.append(key)
    expected = dict.fromkeys(best, 1.0)
    for key in winners:
        lower = sorted({score[each] for each in winners if score[each] <= score[key]})
        rates = []
        for threshold in lower:
            above = [each for each in winners if score[each] >= threshold]
            targets = sum(not each[1] for each in above)
            rates.append(min(1.0, (len(above) - targets + 1) / targets) if targets else 1.0)
        expected[key] = min(rates)

    peptides = {(row["peptide"], row["is_decoy"]): row for row in written["experiment_peptides"]}
    assert peptides.keys() == best.keys()
    for key, row in peptides.items():
        assert (row["best_run"], row["best_psm"]) == best[key][1:]
        assert row["best_score"] == pytest.approx(score[key], abs=1e-12)
        assert row["q_value"] == pytest.approx(expected[key], abs=1e-12), key
        assert (row["n_psms"], row["n_runs"]) == (n_psms[key], len(n_runs[key]))
    accepted = {key for key, q_value in expected.items() if q_value <= 0.05}
    assert 50 < len(accepted) < 70 and any(key not in winners and not key[1] for key in best)
    assert report.peptides.targets == sum(not key[1] for key in accepted)

    listed = written["experiment_peptides"]
    assert len(written["experiment_matches"]) == len(matches)
    for row in written["experiment_matches"]:
        key = listed[row["peptide"]]["peptide"], listed[row["peptide"]]["is_decoy"]
        error, psm = matches[row["run"], *key]
        assert (row["best_psm"], row["posterior_error_probability"]) == (psm, error)
        assert row["q_value"] == runs[row["run"]]["q_value"][psm]
        assert row["is_accepted_in_experiment"] == (key in accepted and not key[1])
    assert [row["run"] for row in written["experiment_runs"]] == sorted(runs)
    for row in written["experiment_runs"]:
        run = runs[row["run"]]
        rows_of_run = [i for i in range(len(run["peptide"])) if run["q_value"][i] <= 0.05 and not run["is_decoy"][i]]
        assert (row["n_psms"], row["n_peptides"]) == (len(rows_of_run), len({run["peptide"][i] for i in rows_of_run}))
    assert report.n_psms == sum(row["n_psms"] for row in written["experiment_runs"])

    # Proteins of these peptides, each explained by the first of its proteins: the second has no peptide of its own.
    of_protein = defaultdict[tuple[str, bool], float](lambda: -math.inf)
    for key in accepted:
        name = next(row for row in listed if (row["peptide"], row["is_decoy"]) == key)["proteins"][0].removeprefix(PREFIX)
        of_protein[name, key[1]] = max(of_protein[name, key[1]], score[key])
    picked = {key: value for key, value in of_protein.items() if value > of_protein.get((key[0], not key[1]), -math.inf)}
    order = sorted(picked, key=lambda key: -picked[key])
    group_rates = {}
    for key in order:
        rates = []
        for last in order[order.index(key) :]:
            are_decoys = [each[1] for each in order if picked[each] >= picked[last]]
            rates.append((1 + sum(are_decoys)) / max(1, len(are_decoys) - sum(are_decoys)))
        group_rates[key] = min(1.0, *rates)
    by_group = {(row["accessions"][0].removeprefix(PREFIX), row["is_decoy"]): row for row in written["experiment_proteins"]}
    assert {key: by_group[key]["q_value"] for key in order} == pytest.approx(group_rates)
    for key in accepted:
        group = written["experiment_proteins"][peptides[key]["protein_group"]]
        assert set(group["accessions"]) & set(peptides[key]["proteins"]) and group["is_decoy"] == key[1]


# If all matches take part in the fit, 2.5 % are false in the small runs.
@pytest.mark.parametrize(("n_runs", "size", "n_known", "most"), [(30, 400, 1000, 0.012), (100, 60, 400, 0.02)], ids=["large", "small"])
def test_experiment_fdr_is_controlled_unlike_in_union_of_runs(n_runs: int, size: int, n_known: int, most: float) -> None:
    false_share, of_union = [], []
    for seed in range(4):
        rng = np.random.default_rng((seed, n_runs))
        parts, union = [], set[int]()
        for run in range(n_runs):
            n_true = int(rng.integers(size // 4, size // 2))
            peptide = np.concatenate((rng.integers(0, n_known, n_true), n_known + rng.integers(0, 10**6, size - n_true)))
            is_decoy = np.append(np.zeros(n_true, bool), rng.random(size - n_true) < 0.5)
            score = np.append(rng.normal(5 * rng.uniform(0.6, 1.4), 1.5, n_true), rng.normal(0, 1, size - n_true))
            rows = np.zeros(size, MATCH)
            rows["form"] = rows["key"] = (peptide * 2 + is_decoy).astype(np.uint64)
            rows["psm"], rows["run"] = np.arange(size), run
            rows["posterior_error"] = posterior_errors(score, is_decoy, peptide)
            accepted = q_values(score, is_decoy) <= 0.01
            union |= set(peptide[accepted & ~is_decoy].tolist())
            parts.append(best_matches(rows, score, accepted))
        matches = merge_matches(np.concatenate(parts))
        peptide, is_decoy = (matches["form"] >> np.uint64(1)).astype(np.int64), (matches["form"] & np.uint64(1)).astype(bool)
        pair, one_class = np.unique(peptide, return_inverse=True)[1], np.zeros(len(matches), np.int64)
        rates = compete(score_of(matches["posterior_error"]), is_decoy, one_class, pair, peptide, plus_one=False, decoy_ratio=1.0)
        written = peptide[(rates.q_value <= 0.01) & ~is_decoy]
        assert len(written) > 0.85 * n_known
        false_share.append((written >= n_known).mean())
        of_union.append(np.mean([number >= n_known for number in union]))
    assert np.mean(false_share) <= most
    assert np.mean(of_union) > 0.025


def test_posterior_error_of_a_peptide_ignores_its_decoy_labels() -> None:
    rng = np.random.default_rng(5)
    family, is_decoy = rng.integers(0, 100, 500), rng.random(500) < 0.4
    score = rng.normal(np.where(is_decoy, 0, 3), 1)
    before = posterior_errors(score, is_decoy, family)
    for number in (3, 50):
        rows = family == number
        assert rows.any()
        after = posterior_errors(score, np.where(rows, ~is_decoy, is_decoy), family)
        assert (after[rows] == before[rows]).all() and (after != before).any()
    assert np.corrcoef(-before, score)[0, 1] > 0.5
    assert len(posterior_errors(np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64))) == 0


def test_experiment_match_classes_have_separate_error_rates(tmp_path: Path) -> None:
    planted = Planted(400, 1000)
    runs = {}
    for number in range(3):
        # A class of false matches with good scores, as a freer class has, and one that is too small for a rate.
        rng = np.random.default_rng(number)
        peptides = (400 + rng.integers(0, 500, 60)).tolist()
        false = planted.rows(peptides, (rng.random(60) < 0.5).tolist(), rng.normal(5, 1, 60).tolist(), "semi-specific")
        small = planted.rows([1390 + number], [False], [9.0], "variant")
        runs[f"run_{number}"] = joined(planted.run(number, 500), false, small)
    project, rows = made(tmp_path, runs)
    report_experiment(project, rows, Progress())
    q_values = defaultdict(list)
    for row in read(project)["experiment_peptides"]:
        if not row["is_decoy"]:
            q_values[row["match_class"]].append(row["q_value"])
    assert sum(q_value <= 0.01 for q_value in q_values["specific"]) > 200
    assert min(q_values["semi-specific"]) > 0.01
    assert q_values["variant"] == [None] * 3
    assert not any(row["is_accepted_in_experiment"] for row in read(project)["experiment_matches"] if row["match_class"] != "specific")


def test_pair_number_depends_on_residues_shift_class_and_protein() -> None:
    family, shift, match_class, protein = np.array([5, 5, 5, 5, 5, 6]), [0.0, 1e-9, 15.99, 0, 0, 0], [0, 0, 0, 1, 0, 0], [3, 3, 3, 3, 4, 3]
    pair = pair_numbers(family, np.array(shift), np.array(match_class), np.array(protein))
    assert pair[0] == pair[1] and len(set(pair.tolist())) == 5


def test_merge_matches_does_not_depend_on_order_or_batches() -> None:
    rng = np.random.default_rng(3)
    rows = np.zeros(500, MATCH)
    rows["key"], rows["run"], rows["psm"] = rng.integers(0, 40, 500), rng.integers(0, 5, 500), rng.permutation(500)
    rows["posterior_error"], rows["n_psms"] = rng.integers(0, 3, 500) / 3, rng.integers(0, 4, 500)
    whole = merge_matches(rows)
    shuffled = rows[rng.permutation(500)]
    steps = merge_matches(np.concatenate((merge_matches(shuffled[:200]), merge_matches(shuffled[200:]))))
    assert steps.tobytes() == whole.tobytes() and len(whole) == 40
    assert whole["n_psms"].sum() == rows["n_psms"].sum()


def test_report_after_adding_a_run_equals_report_computed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "_FEWEST_MERGED", 400)  # merges several times
    planted = Planted(60, 200)
    runs = planted_runs(planted, 5)
    # The new run is neither first nor last, has a longer list of proteins, and a peptide in another class.
    runs["run_2"]["proteins"] = [[*names, f"{names[0]}C"] for names in runs["run_2"]["proteins"]]
    runs["run_2"]["match_class"][:40] = ["second pass"] * 40
    project, rows = made(tmp_path, runs)
    report_experiment(project, [row for row in rows if row.run != "run_2"], Progress())
    read_runs: list[str] = []
    original = report_module._Report._read_run

    def read_run(self: Any, name: str) -> Any:
        read_runs.append(name)
        return original(self, name)

    monkeypatch.setattr(report_module._Report, "_read_run", read_run)
    assert report_experiment(project, rows[::-1], Progress()).n_reused == 4
    assert read_runs == ["run_2"]
    added = tables(project.folder, REPORT)
    assert report_experiment(project, rows, Progress()).n_reused == 5 and read_runs == ["run_2"]
    assert tables(project.folder, REPORT) == added

    fresh = Project.create_or_open(tmp_path / "fresh")
    others = [add_run(fresh, name, rows, tmp_path) for name, rows in sorted(runs.items(), reverse=True)]
    assert report_experiment(fresh, others, Progress()).n_reused == 0
    assert tables(fresh.folder, REPORT) == added and set(added) == set(NAMES)
    assert any(name.endswith("C") for row in read(fresh)["experiment_peptides"] for name in row["proteins"])

    # After a run was removed, all are read again.
    del read_runs[:]
    assert report_experiment(project, rows[:3], Progress()).n_reused == 0 and read_runs == ["run_0", "run_1", "run_2"]
    assert tables(project.folder, REPORT) != added


def test_damaged_or_outdated_report_is_computed_anew(tmp_path: Path) -> None:
    project, rows = made(tmp_path, planted_runs(Planted(40, 100), 2))
    report_experiment(project, rows, Progress())
    first = tables(project.folder, REPORT)
    (project.folder / "results" / REPORT / "experiment_matches.parquet").write_bytes(b"PAR1")
    assert report_experiment(Project.open(project.folder), rows, Progress()).n_reused == 0
    assert tables(project.folder, REPORT) == first
    forge(project, REPORT, "experiment_matches", first["experiment_runs"])
    assert report_experiment(Project.open(project.folder), rows, Progress()).n_reused == 0
    assert tables(project.folder, REPORT) == first


def without(column: str) -> Any:
    return lambda table: table.drop_columns([column])


def with_score(value: float) -> Any:
    return lambda table: table.set_column(table.column_names.index("score"), "score", pa.array([value, *[1.0] * (len(table) - 1)]))


HOSTILE: dict[str, tuple[Any, str]] = {
    "missing score": (without("score"), "run_1/psms.parquet.*has no column score"),
    "missing proteins": (without("proteins"), "has no column proteins"),
    "NaN": (with_score(math.nan), "column score: contains a value that is not a number up to 1e.09. Search this run again"),
    "huge": (with_score(1e308), "column score: contains a value that is not a number"),
    "infinite": (with_score(math.inf), "column score: contains a value that is not a number"),
    "no protein": (lambda table: table.set_column(2, "proteins", pa.array([[]] * len(table), TYPES["proteins"])), "without a protein"),
    "residues": (lambda table: table.set_column(1, "sequence", pa.array(["pep-"] * len(table))), "column sequence"),
}


@pytest.mark.parametrize("case", [*HOSTILE, "truncated", "shortened file"])
def test_report_error_names_the_invalid_table_of_a_run(case: str, tmp_path: Path) -> None:
    project, rows = made(tmp_path, planted_runs(Planted(40, 100), 3, 100))
    path = project.folder / "results" / "run_1" / "psms.parquet"
    content, message = path.read_bytes(), r"run_1/psms\.parquet"
    error: type[Exception] = InputError
    if case in HOSTILE:
        change, message = HOSTILE[case]
        buffer = io.BytesIO()
        pq.write_table(change(pq.read_table(path)), buffer)
        forge(project, "run_1", "psms", buffer.getvalue())
    elif case == "truncated":
        forge(project, "run_1", "psms", content[: len(content) // 2])
    else:
        path.write_bytes(content[:-100])
        error = StorageError
    with pytest.raises(error, match=message):
        report_experiment(Project.open(project.folder), rows, Progress())
    assert REPORT not in {run.id for run in Project.open(project.folder).runs() if run.status == "done"}


def test_report_accepts_or_rejects_unusual_values_of_a_run(tmp_path: Path) -> None:
    project, rows = made(tmp_path, planted_runs(Planted(40, 100), 2, 100))
    table = pq.read_table(project.folder / "results" / "run_1" / "psms.parquet")
    odd = {"calculated_mass": [math.inf] * 100, "sequence": ["*BXZ*"] * 100, "psm_id": [-1] * 100, "score": [1e9, *[-1e9] * 99]}
    for name, values in odd.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    forge(project, "run_1", "psms", buffer.getvalue())
    try:
        report_experiment(Project.open(project.folder), rows, Progress())
    except InputError as error:
        assert "run_1" in str(error)


def test_report_rejects_peptides_with_colliding_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, rows = made(tmp_path, planted_runs(Planted(40, 100), 1, 100))
    monkeypatch.setattr(peptidoforms, "form_keys", lambda characters, offsets, is_decoy: np.zeros(len(offsets) - 1, np.uint64))
    with pytest.raises(InputError, match="different peptides with the same key"):
        report_experiment(project, rows, Progress())


def test_report_rejects_runs_with_other_search_parameters(tmp_path: Path) -> None:
    runs = planted_runs(Planted(40, 100), 2, 100)
    project, rows = made(tmp_path, runs)
    absent = ExperimentRow("not_there", "/not_there.mgf", "not_there")
    assert report_experiment(project, [*rows, absent], Progress()).left_out == ("not_there",)
    with pytest.raises(InputError, match="has no finished run of the experiment"):
        report_experiment(project, [absent], Progress())
    other = add_run(project, "other", runs["run_0"], tmp_path, missed_cleavages=0)
    with pytest.raises(ParameterError, match="'other' and 'run_0' differ in missed_cleavages"):
        report_experiment(project, [*rows, other], Progress())
    bare = add_run(project, "bare", runs["run_0"], tmp_path, decoys="none")
    with pytest.raises(InputError, match="without decoys"):
        report_experiment(project, [bare], Progress())
    foreign = add_run(project, "foreign", of_search(runs["run_0"], "modified"), tmp_path, kind="modified")
    with pytest.raises(ParameterError, match=r"'foreign' and 'run_0' differ in the search \(modified, identify\)"):
        report_experiment(project, [*rows, foreign], Progress())
    clustered = add_run(project, "clustered", runs["run_0"], tmp_path, kind="cluster")
    with pytest.raises(ParameterError, match="'clustered' is a run of cluster"):
        report_experiment(project, [clustered], Progress())


def test_report_accepts_runs_that_differ_in_memory_parameters(tmp_path: Path) -> None:
    project, rows = made(tmp_path, planted_runs(Planted(40, 100), 2, 100))
    small = add_run(project, "small", Planted(40, 100).run(5, 100), tmp_path, index_memory=64)
    assert report_experiment(project, [*rows, small], Progress()).n_runs == 3


def test_report_of_library_runs_equals_report_of_identifications(tmp_path: Path) -> None:
    runs = planted_runs(Planted(60, 200), 4)
    project, rows = made(tmp_path, runs)
    of_identify = report_experiment(project, rows, Progress())
    expected = read(project)
    library, library_rows = made(tmp_path / "library", {name: of_search(run, "library") for name, run in runs.items()}, kind="library")
    report = report_experiment(library, library_rows, Progress())
    assert (report.peptides, report.proteins, report.n_psms) == (of_identify.peptides, of_identify.proteins, of_identify.n_psms)
    written = read(library)
    for name in NAMES[:3]:
        of_search_rows = [{key: value for key, value in row.items() if key != "match_class"} for row in written[name]]
        assert of_search_rows == [{key: value for key, value in row.items() if key != "match_class"} for row in expected[name]]
    assert {row["match_class"] for row in written["experiment_peptides"]} == {"same"}


def test_report_has_no_protein_groups_without_known_proteins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = {name: of_search(run, "library") for name, run in planted_runs(Planted(60, 200), 2).items()}
    for run in runs.values():
        run["proteins"] = [["DECOY_unknown" if is_decoy else "unknown"] for is_decoy in run["is_decoy"]]
    # Entries without decoys have no rate, and do not compete.
    runs["run_0"]["q_value"][:7] = [None] * 7
    project, rows = made(tmp_path, runs, kind="library")
    write_experiment(project, rows)
    assert main(["experiment", "report", str(project.folder), "--tsv"]) == 0
    output, messages = capsys.readouterr()
    assert "peptides" in output and "protein group" not in output.replace("No protein groups", "")
    assert "7 matches of library entries without decoys left out" in messages
    assert set(tables(project.folder, REPORT)) == set(NAMES) - {"experiment_proteins"}
    assert project.record(REPORT)["proteins"] is None and project.record(REPORT)["exports"] == ["experiment_peptides.tsv"]
    assert len(pq.read_table(project.table("experiment_matches", REPORT))) > 0


def test_open_library_report_separates_shifted_matches(tmp_path: Path) -> None:
    run = Planted(60, 200).run(1, 300)
    shifts = [57.0215 if number % 2 else 0.0 for number in range(300)]
    project, rows = made(tmp_path, {"run_0": of_search(run, "library", shifts)}, kind="library", precursor_tolerance="200 Da")
    report_experiment(project, rows, Progress())
    peptides = read(project)["experiment_peptides"]
    assert {("[+57.02]" in row["peptide"], row["match_class"]) for row in peptides} == {(True, "shifted"), (False, "same")}


def test_report_joins_peptidoforms_of_equal_shift_across_runs(tmp_path: Path) -> None:
    planted = Planted(60, 200)
    runs = {}
    for number, shift in enumerate((57.0215, 57.0249, 57.0301, -17.0)):
        rows = planted.run(number, 300)
        runs[f"run_{number}"] = of_search(
            rows, "modified", [shift if peptide in planted.peptides[:40] else 0.0 for peptide in rows["peptide"]]
        )
    project, rows_of_runs = made(tmp_path, runs, kind="modified")
    report_experiment(project, rows_of_runs, Progress())
    peptides = {row["peptide"]: row for row in read(project)["experiment_peptides"] if not row["is_decoy"]}
    both = [text for text in peptides if "[+57.02]" in text]
    n_runs = {text: len([run for run in ("run_0", "run_1") if text[0] + text[9:] in runs[run]["sequence"]]) for text in both}
    assert (
        any(n == 2 for n in n_runs.values()) and any("[+57.03]" in text for text in peptides) and any("[-17]" in text for text in peptides)
    )
    for text in both:
        assert peptides[text]["n_runs"] <= n_runs[text] and peptides[text]["match_class"] == "unnamed"
    assert any(peptides[text]["n_runs"] == 2 for text in both)
    assert {row["match_class"] for text, row in peptides.items() if "[" not in text} == {"none"}


def test_report_command_prints_counts_and_exports_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project, rows = made(tmp_path, planted_runs(Planted(120, 300), 3))
    write_experiment(project, rows)
    assert main(["experiment", "report", str(project.folder), "--tsv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(" PSMs at 1 % FDR within each of 3 runs") and lines[1] == "Over the experiment, at 1 % FDR:"
    with (project.folder / "exports" / "experiment_peptides.tsv").open() as file:
        header, *cells = (line.rstrip("\n").split("\t") for line in file)
    written = [row for row in read(project)["experiment_peptides"] if not row["is_decoy"]]
    assert [row["peptide"] for row in written] == [row[header.index("peptide")] for row in cells]
    assert int(lines[2].split()[0]) == sum(row["q_value"] <= 0.01 for row in written) > 100
    assert project.record(REPORT)["peptides"]["targets"] == int(lines[2].split()[0])


def test_report_accepts_runs_without_matches(tmp_path: Path) -> None:
    planted = Planted(40, 100)
    nothing = {name: values[:0] for name, values in planted.run(0, 10).items()}
    project, rows = made(tmp_path, {"nothing": nothing, "decoys": planted.rows([50, 51, 52], [True] * 3, [3.0, 2.0, 1.0])})
    for chosen, n_rows in (rows[:1], 0), (rows, 3):
        for n_reused in (0, len(chosen)):
            report = report_experiment(project, chosen, Progress())
            assert report.proteins is not None
            assert (report.peptides.targets, report.proteins.targets, report.n_psms) == (0, 0, 0)
            assert n_reused in (0, report.n_reused) and len(read(project)["experiment_matches"]) == n_rows

"""A structure search from files to its table."""

from __future__ import annotations

import csv
import re
import shutil
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.project import Project
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.tables import HITS
from proteoscope.engine.structures.building import build_database
from proteoscope.engine.structures.reading import read_structure
from tests.searching import find_structures

NAMES = ("1bvyf", "1c7na", "1biaa", "1bvoa", "1a6ja", "1a4ia", "1a8la", "1a99a", "1aora", "1a2oa", "1b25a", "1b63a")
"""Write 1bvyf, a flavodoxin-like domain, and domains of various folds."""


@pytest.fixture
def folder(shared_data, tmp_path) -> Path:
    folder = tmp_path / "structures"
    folder.mkdir()
    for name in NAMES:
        path = shared_data / "structures" / "bench_ca" / "pdb" / f"{name}.pdb"
        if path.exists():
            shutil.copy(path, folder)
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def without_skipping(**changes) -> StructureSearchParameters:
    return StructureSearchParameters().changed(qualification_threshold=0, **changes)


def pairs_of(cigar: str) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Return the pairs of a CIGAR, and the lengths that it spans."""
    i = j = 0
    pairs = []
    for count, kind in re.findall(r"(\d+)([MID])", cigar):
        for _ in range(int(count)):
            if kind == "M":
                pairs.append((i, j))
            i, j = i + (kind != "D"), j + (kind != "I")
    return pairs, (i, j)


def tm_score(squared: np.ndarray, length: int) -> float:
    """Return the TM-score of squared distances by Zhang & Skolnick (2004)."""
    scale = max(0.5, 1.24 * np.cbrt(length - 15) - 1.8) if length > 21 else 0.5
    return float((1 / (1 + squared / scale**2)).sum() / length)


def element_ratio(query: str, target: str) -> float:
    """Return phase 1 as published: local alignment of elements (equation 12) divided by the score of the query with itself.

    Gaps cost 0.5, each further element 0.25.
    """

    def score(query_states: str, target_states: str) -> float:
        first, second = ([(state, len(list(run))) for state, run in groupby(states)] for states in (query_states, target_states))
        best, h_row, f_row = 0.0, [0.0] * (len(second) + 1), [-np.inf] * (len(second) + 1)
        for a, n in first:
            diagonal, e = 0.0, -np.inf
            for j, (b, m) in enumerate(second, 1):
                similarity = 0.5 if "C" in (a, b) else float(a == b)
                f_row[j] = max(f_row[j] - 0.25, h_row[j] - 0.5)
                e = max(e - 0.25, h_row[j - 1] - 0.5)
                h = max(0.0, diagonal + similarity - similarity * abs(n - m) / (n + m), e, f_row[j])
                diagonal, h_row[j] = h_row[j], h
                best = max(best, h)
        return best

    return score(query, target) / score(query, query)


@pytest.mark.parametrize("mode", ["sensitive", "published"])
def test_structure_hit_columns_agree_with_the_structures(folder, tmp_path, mode):
    out = tmp_path / "hits.tsv"
    parameters = StructureSearchParameters().changed(mode=mode, qualification_threshold=0.01)
    summary = find_structures([folder / "1bvyf.pdb"], [folder], out, parameters, device="cpu")
    rows = rows_of(out)
    assert tuple(rows[0]) == HITS.saved and len(rows) == summary.n_hits > 5
    assert rows[0]["target"] == "1bvyf" and float(rows[0]["tm_score_query"]) == pytest.approx(1.0) and float(rows[0]["rmsd"]) < 0.001
    query = read_structure(folder / "1bvyf.pdb").chains
    for row in rows:
        value = {name: float(row[name]) for name in HITS.saved[2:14] if row[name]}
        target = read_structure(folder / f"{row['target']}.pdb").chains
        pairs, lengths = pairs_of(row["cigar"])
        assert row["query"] == "1bvyf" and row["description"] == " ".join(target.descriptions[0].split())
        assert lengths == (len(query.position), len(target.position)) and len(pairs) == value["aligned_length"]
        rotation = np.array(row["rotation"].split(","), float).reshape(3, 3)
        assert np.linalg.det(rotation) == pytest.approx(1.0, abs=1e-5) and rotation @ rotation.T == pytest.approx(np.eye(3), abs=1e-5)
        moved = target.position @ rotation.T + np.array(row["translation"].split(","), float)
        query_rows, target_rows = np.array(pairs).T
        squared = ((query.position[query_rows] - moved[target_rows]) ** 2).sum(axis=1)
        assert value["rmsd"] == pytest.approx(np.sqrt(squared.mean()), abs=0.005)
        # The transformation is optimal for the TM-score of the shorter chain; the longer chain's score has its own, and is not lower.
        by_both = [tm_score(squared, length) for length in lengths]
        reported = [value["tm_score_query"], value["tm_score_target"]]
        assert all(score_found >= plain - 1e-3 for score_found, plain in zip(reported, by_both, strict=True))
        if mode == "sensitive":
            shorter = int(lengths[1] < lengths[0])
            assert reported[shorter] == pytest.approx(by_both[shorter], abs=1e-3)
        else:
            # No other rotation and translation has a smaller RMSD: the residuals give no rotation or shift.
            a, b = (
                query.position[query_rows] - query.position[query_rows].mean(axis=0),
                target.position[target_rows] - target.position[target_rows].mean(axis=0),
            )
            u, sizes, v = np.linalg.svd(a.T.astype(float) @ b)
            least = (a**2).sum() + (b**2).sum() - 2 * (sizes[0] + sizes[1] + np.sign(np.linalg.det(u @ v)) * sizes[2])
            assert value["rmsd"] == pytest.approx(np.sqrt(max(0.0, least) / len(pairs)), abs=0.005)
        same = query.sequence(0), target.sequence(0)
        assert value["identity"] == pytest.approx(np.mean([same[0][i] == same[1][j] != "X" for i, j in pairs]), abs=1e-4)
        assert value["query_coverage"] == pytest.approx(len(pairs) / lengths[0], abs=1e-4)
        assert value["target_coverage"] == pytest.approx(len(pairs) / lengths[1], abs=1e-4)
        assert value["phase1_ratio"] == pytest.approx(element_ratio(query.states(0), target.states(0)), abs=1e-3)
    if mode == "published":
        scores = [float(row["score"]) for row in rows]
        assert scores == sorted(scores, reverse=True)


def test_structure_search_reports_weight_without_effect_in_mode(folder, tmp_path):
    for mode, is_reported in (("sensitive", True), ("published", False)):
        parameters = without_skipping(mode=mode, weights=(1, 1, 2, 1), hits_per_query=1)
        summary = find_structures([folder / "1bvyf.pdb"], [folder], None, parameters, device="cpu")
        assert any("no weight in the sensitive mode" in text for text in summary.messages) == is_reported


def test_structure_search_gives_same_hits_for_database_and_files(folder, tmp_path, own_cache):
    build_database([str(folder)], tmp_path / "database", processes=1)
    parameters, tables = without_skipping(hits_per_query=8), []
    for k, given in enumerate(([folder], [tmp_path / "database"], [tmp_path / "database"])):
        out = tmp_path / f"{k}.tsv"
        find_structures([folder / "1c7na.pdb"], given, out, parameters, device="cpu")
        tables.append([{name: row[name] for name in ("target", "score", "rmsd", "cigar", "z_score")} for row in rows_of(out)])
    assert tables[0] == tables[1] == tables[2]


def test_qualification_threshold_limits_the_aligned_chains(folder, tmp_path):
    hits = {}
    for threshold in (0.0, 0.2, 0.9):
        out = tmp_path / f"{threshold}.tsv"
        parameters = StructureSearchParameters().changed(qualification_threshold=threshold)
        summary = find_structures([folder / "1bvyf.pdb"], [folder], out, parameters, device="cpu")
        rows = rows_of(out)
        hits[threshold] = summary.n_aligned
        assert all((row["phase1_ratio"] == "") == (threshold == 0) for row in rows)
        assert all(float(row["phase1_ratio"]) >= threshold for row in rows if row["phase1_ratio"])
    assert hits[0.0] == summary.n_chains and hits[0.0] >= hits[0.2] > hits[0.9] >= 1


def test_structure_search_export_equals_the_table_of_the_run(folder, tmp_path):
    out = tmp_path / "hits.tsv"
    arguments = [
        str(folder / "1bvyf.pdb"),
        "--database",
        str(folder),
        "--out",
        str(out),
        "--device",
        "cpu",
        "--project",
        str(tmp_path / "p"),
    ]
    assert main(["structures", *arguments, "--quiet", "--weights", "1,1,1,0"]) == 0
    run = Project.open(tmp_path / "p").runs()[0]
    assert run.kind == "structures" and run.parameters["weights"] == [1, 1, 1, 0]
    assert main(["export", str(tmp_path / "p"), "--format", "tsv", "--out", str(tmp_path / "again.tsv")]) == 0
    assert (tmp_path / "again.tsv").read_bytes() == out.read_bytes()


def test_superposed_hits_are_written_to_safely_named_folders(folder, tmp_path):
    shutil.copy(folder / "1bvyf.pdb", folder / "..; rm x $(y).pdb")
    target = tmp_path / "superposed"
    find_structures([folder / "..; rm x $(y).pdb"], [folder], None, without_skipping(hits_per_query=3), superpose=target, device="cpu")
    places = sorted(path for path in target.glob("*/*"))
    assert len(places) == 3 and all(re.fullmatch(r"[0-9A-Za-z_-]+", part) for path in places for part in path.relative_to(target).parts)
    assert all({"superposition.tsv", "superposition.pml", "superposition.cxc"} <= {file.name for file in path.iterdir()} for path in places)
    row = rows_of(places[0] / "superposition.tsv")[0]
    assert float(row["score"]) > 0 and float(row["tm_score_query"]) == 1 and row["z_score"]
    assert not any("$(" in script.read_text(encoding="utf-8") for path in places for script in path.glob("*.[pc][mx][lc]"))


def test_structure_search_error_on_missing_chain_lists_chains(shared_data, folder, tmp_path):
    parameters = without_skipping()
    with pytest.raises(InputError, match=r"has no chain 'Q'.*It has the protein chain A"):
        find_structures([f"{folder / '1bvyf.pdb'}:Q"], [folder], None, parameters, device="cpu")
    summary = find_structures([f"{folder / '1bvyf.pdb'}:{'A'}"], [folder], None, parameters, device="cpu")
    assert summary.n_queries == 1
    (tmp_path / "list.txt").write_text(f"# two\n{folder / '1bvyf.pdb'}\n\n{folder / '1c7na.pdb'}\n", encoding="utf-8")
    assert find_structures([tmp_path / "list.txt"], [folder], None, parameters, device="cpu").n_queries == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="contains no structure files"):
        find_structures([tmp_path / "empty"], [folder], None, parameters, device="cpu")


def test_corrupt_structures_are_skipped_only_in_folders(folder, tmp_path):
    (folder / "broken.pdb").write_bytes(b"no structure at all\n" * 3)
    query = folder / "1bvyf.pdb"
    summary = find_structures([query], [folder], tmp_path / "hits.tsv", without_skipping(hits_per_query=3))
    assert [text for text in summary.messages if text.startswith("Left out:")]
    assert "broken.pdb" in next(text for text in summary.messages if text.startswith("Left out:"))
    assert rows_of(tmp_path / "hits.tsv")[0]["target"] == "1bvyf"
    with pytest.raises(InputError, match=r"broken\.pdb"):
        find_structures([query], [query, folder / "broken.pdb"], None, without_skipping())
    empty = tmp_path / "none"
    empty.mkdir()
    shutil.copy(folder / "broken.pdb", empty)
    with pytest.raises(InputError, match=r"broken\.pdb"):
        find_structures([query], [empty], None, without_skipping())

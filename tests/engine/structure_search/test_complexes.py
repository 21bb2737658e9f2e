"""Complexes: the chains of a query file are matched to different chains of a target file, and files are ranked by the sum."""

from __future__ import annotations

import csv
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.structure_search.complexes import COLUMNS, assignment
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structures.building import build_database
from proteoscope.engine.structures.reading import read_structure
from tests.engine.structures.examples import as_pdb, atoms_of, helix
from tests.engine.structures.test_superposition import walk
from tests.searching import find_structures


@pytest.mark.parametrize("seed", range(60))
def test_chain_matching_of_complexes_has_the_maximum_total_score(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6, 2)
    worth = np.round(rng.normal(0, 3, (n, m)), seed % 2)  # Half of them have ties.
    matched = assignment(worth)
    assert len({row for row, _ in matched}) == len({column for _, column in matched}) == len(matched)
    assert all(worth[pair] > 0 for pair in matched)
    padded = np.zeros((6, 6))
    padded[:n, :m] = np.maximum(worth, 0)
    best = max(sum(padded[row, column] for row, column in enumerate(order)) for order in permutations(range(6)))
    assert sum(worth[pair] for pair in matched) == pytest.approx(best)


def folds() -> dict[str, np.ndarray]:
    """Return three folds without similarity."""
    return {name: np.concatenate([helix(14), walk(30, seed) + 30.0, helix(10) - 25.0]) for seed, name in enumerate("pqr", 20)}


@pytest.fixture
def folder(tmp_path) -> Path:
    """Files of complexes: `pair` (chains p, q), `turned` (q, p), `twice` (p, p), `half` (p, r), `alone` (p) and `other` (r, r)."""
    made, of = tmp_path / "complexes", folds()
    made.mkdir()
    files = {"pair": "pq", "turned": "qp", "twice": "pp", "half": "pr", "alone": "p", "other": "rr"}
    for number, (name, chains) in enumerate(files.items()):
        rng, rows = np.random.default_rng(number), []
        for chain_name, chain in zip(chains, "AB", strict=False):
            rows += atoms_of(of[chain_name] + rng.normal(0, 0.3 * (name != "pair"), of[chain_name].shape), chain)
        (made / f"{name}.pdb").write_bytes(as_pdb(rows))
    return made


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert all(tuple(row) == COLUMNS for row in rows)
    return rows


@pytest.mark.parametrize("mode", ["sensitive", "published"])
def test_complexes_with_all_chains_rank_before_partial_complexes(folder, tmp_path, mode):
    parameters = StructureSearchParameters().changed(mode=mode, qualification_threshold=0)
    find_structures([folder / "pair.pdb"], [folder], tmp_path / "hits.tsv", parameters, complexes=tmp_path / "files.tsv", device="cpu")
    rows = rows_of(tmp_path / "files.tsv")
    rows_by_target = {row["target"]: row for row in rows}
    assert [row["target"] for row in rows[:2]] == ["pair", "turned"]
    assert rows_by_target["pair"]["pairs"] in ("pair:A=pair:A,pair:B=pair:B", "pair:B=pair:B,pair:A=pair:A")
    assert set(rows_by_target["turned"]["pairs"].split(",")) == {"pair:A=turned:B", "pair:B=turned:A"}
    assert (rows_by_target["pair"]["tm_score_query"], rows_by_target["pair"]["query_chains"], rows_by_target["alone"]["target_chains"]) == (
        "1",
        "2",
        "1",
    )
    # One query chain is matched to the only target chain, the other to none, with a score of zero.
    assert rows_by_target["alone"]["matched_chains"] == "1" and float(rows_by_target["alone"]["tm_score_query"]) < 0.51
    assert float(rows_by_target["alone"]["tm_score_target"]) > 0.9
    # The score of a complex is the sum over its pairs in the table of chains.
    with (tmp_path / "hits.tsv").open(encoding="utf-8", newline="") as file:
        hits = {(row["query"], row["target"]): row for row in csv.DictReader(file, delimiter="\t")}
    for row in rows:
        pairs = [tuple(pair.split("=")) for pair in row["pairs"].split(",")]
        assert len(pairs) == int(row["matched_chains"]) == len({b for _, b in pairs})
        for name in ("score", "z_score"):
            assert float(row[name]) == pytest.approx(sum(float(hits[pair][name]) for pair in pairs), abs=0.01)
        mean = sum(float(hits[pair]["tm_score_query"]) for pair in pairs) / 2
        assert float(row["tm_score_query"]) == pytest.approx(mean, abs=1e-3)


def test_complexes_from_a_database_equal_complexes_from_files(folder, tmp_path, own_cache):
    build_database([str(folder)], tmp_path / "database", processes=1)
    tables = []
    for number, (given, top) in enumerate(((folder, 100), (tmp_path / "database", 100), (folder, 2))):
        parameters = StructureSearchParameters().changed(qualification_threshold=0, hits_per_query=top)
        out = tmp_path / f"{number}.tsv"
        find_structures([folder / "pair.pdb"], [given], None, parameters, complexes=out, device="cpu")
        tables.append([{name: row[name] for name in ("target", "matched_chains", "z_score", "tm_score_query")} for row in rows_of(out)])
    assert tables[0] == tables[1] and tables[2] == tables[0][:2]


def test_chains_of_one_file_named_individually_form_one_complex(folder, tmp_path):
    out, query = tmp_path / "files.tsv", folder / "pair.pdb"
    parameters = StructureSearchParameters().changed(qualification_threshold=0)
    find_structures([f"{query}:A", f"{query}:B", folder / "other.pdb"], [folder], None, parameters, complexes=out, device="cpu")
    assert {row["query"]: row["query_chains"] for row in rows_of(out)} == {"pair": "2", "other": "2"}


def test_complex_search_matches_each_chain_of_a_fibril_once(shared_data, tmp_path):
    """Check 2BEG: amyloid fibrils with five chains of the same strand-turn-strand."""
    place = shared_data / "structures" / "sample" / "2BEG.pdb"
    if not place.exists():
        pytest.skip("the sample is not there")
    out = tmp_path / "files.tsv"
    arguments = [str(place), "--database", str(place.parent), "--out", str(tmp_path / "hits.tsv"), "--complexes", str(out), "--quiet"]
    assert main(["structures", *arguments, "--device", "cpu", "--qualification-threshold", "0"]) == 0
    first = rows_of(out)[0]
    n = str(len(read_structure(place).chains))
    assert (first["target"], first["query_chains"], first["target_chains"], first["matched_chains"]) == ("2BEG", n, n, n) and n == "5"
    assert len({pair.split("=")[1] for pair in first["pairs"].split(",")}) == 5
    assert float(first["tm_score_query"]) > 0.5

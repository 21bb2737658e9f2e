"""All chains against each other, and clusters of folds."""

from __future__ import annotations

import csv
import gzip
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.structure_search.fold_clusters import SAME_FOLD, fold_representatives

SAMPLES = resources.path("samples", "SOURCES.md").parent


def plain_representatives(priority, pairs):
    """Return the representatives and scores, one chain after the other."""
    result = {}
    for chain in np.argsort(priority).tolist():
        representatives = [
            (-score, priority[other], other)
            for pair, score in pairs.items()
            if chain in pair and (other := pair[1] if pair[0] == chain else pair[0]) in result and result[other][0] == other
        ]
        result[chain] = (min(representatives)[2], -min(representatives)[0]) if representatives else (chain, 1.0)
    return [result[chain] for chain in range(len(priority))]


def test_fold_representatives_accept_self_paired_chains():
    chains, scores = fold_representatives(np.arange(2), np.array([0, 1, 0]), np.array([0, 1, 1]), np.array([1.0, 1.0, 0.7]))
    assert chains.tolist() == [0, 0] and scores.tolist() == [1.0, 0.7]


@pytest.mark.parametrize("density", [0.0, 0.02, 0.1, 0.5, 1.0])
def test_fold_representatives_equal_a_plain_greedy_selection(density):
    rng = np.random.default_rng(int(100 * density))
    for _ in range(20):
        n = int(rng.integers(1, 40))
        every = [pair for pair in combinations(range(n), 2) if rng.random() < density]
        pairs = {(pair if rng.random() < 0.5 else pair[::-1]): float(rng.integers(50, 60)) / 100 for pair in every}
        priority = rng.permutation(n)
        first, second = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
        chains, scores = fold_representatives(priority, first, second, np.array(list(pairs.values())))
        assert list(zip(chains.tolist(), scores.tolist(), strict=True)) == plain_representatives(priority, pairs)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with some chains of the sample, and a copy of one."""
    folder = tmp_path_factory.mktemp("chains")
    for name in ("folds", "albumin_domain_3"):
        (folder / f"{name}.pdb").write_bytes(gzip.decompress((SAMPLES / f"{name}.pdb.gz").read_bytes()))
    (folder / "copy.pdb").write_bytes((folder / "albumin_domain_3.pdb").read_bytes())
    return folder


def run(*words: object) -> None:
    assert main(["structures", *map(str, words), "--device", "cpu", "--threads", "2", "--quiet"]) == 0


def test_structures_all_compares_pairs_once_and_clusters_chains(chains: Path, tmp_path: Path) -> None:
    run("--all", "--database", chains, "--out", tmp_path / "all.tsv", "--clusters", tmp_path / "clusters.tsv")
    run(chains, "--database", chains, "--out", tmp_path / "each.tsv")
    pairs = {(row["query"], row["target"]): row for row in rows_of(tmp_path / "all.tsv")}
    each = {(row["query"], row["target"]): row for row in rows_of(tmp_path / "each.tsv")}
    names = list(dict.fromkeys(query for query, _ in each))
    assert set(pairs) <= set(combinations(names, 2)), "each pair once, and no chain with itself"
    assert {pair for pair in combinations(names, 2) if pair in each} == set(pairs)
    assert all(row == each[pair] for pair, row in pairs.items())
    clusters = rows_of(tmp_path / "clusters.tsv")
    assert sorted(row["chain"] for row in clusters) == sorted(names)
    of_chain = {row["chain"]: row for row in clusters}
    assert of_chain["copy"]["cluster"] == of_chain["albumin_domain_3"]["cluster"] and float(of_chain["copy"]["tm_score"]) == 1.0
    for row in clusters:
        representative = of_chain[row["representative"]]
        assert representative["representative"] == representative["chain"] and int(representative["length"]) >= int(row["length"])
        assert int(row["size"]) == sum(other["cluster"] == row["cluster"] for other in clusters)
        if row["chain"] != row["representative"]:
            hit = pairs.get((row["chain"], row["representative"])) or pairs[row["representative"], row["chain"]]
            assert float(row["tm_score"]) == min(float(hit["tm_score_query"]), float(hit["tm_score_target"])) >= SAME_FOLD


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["QUERY", "--all"], "leave out the queries"),
        (["QUERY", "--clusters", "clusters.tsv"], "give --all with --clusters"),
        (["--all", "--complexes", "complexes.tsv"], "leave out --all"),
        (["--all", "--set", "minimum_plddt=50"], "minimum_plddt applies to queries"),
        ([], "no file of queries"),
    ],
)
def test_structures_all_option_rejects_contradictory_options(words, reason, chains, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(chains / "copy.pdb") if word == "QUERY" else word for word in words]
    assert main(["structures", *given, "--database", str(chains), "--out", "hits.tsv", "--device", "cpu"]) == 2
    assert reason in capsys.readouterr().err and not any(tmp_path.iterdir())

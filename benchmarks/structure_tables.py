"""Training of the sensitive mode of the structure search: centres of its structural alphabets, and log-odds of pairs of codes.

    python -m benchmarks.structure_tables --data FOLDER

writes `resources/structures/descriptors.json` and `rewards.json` from the labelled chains of `bench_ca`. The alphabets are k-means centres,
which do not use the labels. Pairs of residues come from superposed chains of the same fold; their log-odds in each alphabet are added with
the weights of a logistic regression that separates such pairs from random ones. Gap costs and baseline are not fitted; they were chosen
once.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.execution.resources import available_threads, run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.structures import DescribedChains, described
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.descriptors import Alphabets
from proteoscope.engine.structures.rewards import GapCosts, Weights, published_rewards
from proteoscope.engine.structures.superposition import superpose_many
from proteoscope.kernels.cpu.structure_descriptors import CONFORMATION_FEATURES, NEIGHBOUR_FEATURES, residue_features
from proteoscope.kernels.cpu.structure_pairs import align_pair
from proteoscope.kernels.structure_layouts import StructureArrays
from tests.engine.structures.examples import codes_of

__all__ = ["BASELINE", "GAP_FIRST", "GAP_NEXT", "AlignedResidues", "aligned_residues", "learned_alphabets", "learned_tables"]

LEARNED = ("residue", "conformation", "neighbour", "separation", "burial")
"""Alphabets that have a table."""
BASELINE, GAP_FIRST, GAP_NEXT = 0.2, 6.7, 0.7
"""Bits: taken off every pair of residues; the cost of a gap's first residue, and of each further one."""

_CONFORMATIONS, _NEIGHBOURS, _BURIALS = 24, 30, 12
_SEPARATIONS = [2, 3, 4, 8, 15, 30, 60]
_NEAR, _MINIMUM_TM_SCORE, _FEWEST_NEAR = 5.0, 0.5, 30  # Å; limits for pairs of chains that are used
_ROUNDS, _PSEUDO_COUNT, _RANDOM_PAIRS, _LEARNED_PAIRS = 60, 200.0, 60_000, 30_000


@dataclass(frozen=True)
class AlignedResidues:
    """Pairs of residues of superposed chains: their rows among all residues, and the weight of each."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weight: NDArray[np.float64]

    def among(self, chosen: NDArray[np.bool_], offsets: NDArray[np.int64]) -> AlignedResidues:
        """Return the pairs whose residues are both of chosen chains."""
        of_residue = np.repeat(chosen, np.diff(offsets))
        is_selected = of_residue[self.first] & of_residue[self.second]
        return AlignedResidues(self.first[is_selected], self.second[is_selected], self.weight[is_selected])


def aligned_residues(chains: DescribedChains, fold: NDArray, threads: int) -> AlignedResidues:
    """Return pairs of residues that lie near each other in superposed chains of the same fold.

    Superpositions begin with the published mode's alignment. Pairs of chains with a TM-score below 0.5 by both lengths, or with fewer
    than thirty near residues, are not used. The weight of a pair of chains is the square root of its number of near residues.
    """
    arrays, offsets, position = chains.arrays, chains.chains.offsets, chains.chains.position.astype(np.float64)
    near_pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for i in range(len(chains)):
        targets = np.flatnonzero(fold[:i] == fold[i])
        if not len(targets):
            continue
        query = arrays.chain(i)
        rewards, _ = published_rewards(query, Weights(), GapCosts(1.0, 0.5, 0.5, 0.25))
        starts = run_on_threads(lambda k, q=query, r=rewards: align_pair(q, arrays.chain(k), r)[1], targets.tolist(), threads, Progress())
        some, flat = chains.chains.taken(targets), np.concatenate([np.empty((0, 2), np.int32), *starts])
        counts = segment_offsets(np.array([len(start) for start in starts], np.int64))
        chain_position = position[offsets[i] : offsets[i + 1]]
        superposed = superpose_many(chain_position, some.position, some.offsets, flat, counts, threads=threads)
        for k, target in enumerate(targets.tolist()):
            pairs = superposed.pairs[superposed.pair_offsets[k] : superposed.pair_offsets[k + 1]].astype(np.int64)
            moved = superposed.moved(k, position[offsets[target] : offsets[target + 1]])
            near = np.linalg.norm(chain_position[pairs[:, 0]] - moved[pairs[:, 1]], axis=1) < _NEAR
            if max(superposed.tm_score_query[k], superposed.tm_score_target[k]) >= _MINIMUM_TM_SCORE and near.sum() >= _FEWEST_NEAR:
                near_pairs.append((pairs[near, 0] + offsets[i], pairs[near, 1] + offsets[target]))
    return AlignedResidues(
        np.concatenate([first for first, _ in near_pairs]),
        np.concatenate([second for _, second in near_pairs]),
        np.concatenate([np.full(len(first), len(first) ** -0.5) for first, _ in near_pairs]),
    )


def learned_alphabets(chains: Chains) -> dict[str, Any]:
    """Return centres and bounds, as `Alphabets.from_json` reads them."""
    n = int(chains.offsets[-1])
    conformation, neighbour = np.empty((n, CONFORMATION_FEATURES)), np.empty((n, NEIGHBOUR_FEATURES))
    places, burial = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(len(chains)):
        rows = chains.rows(i)
        residue_features(chains.position[rows], conformation[rows], neighbour[rows], places[rows], burial[rows])
    return {
        "conformations": np.round(_centres(conformation, _CONFORMATIONS), 4).tolist(),
        "neighbours": np.round(_centres(neighbour, _NEIGHBOURS), 4).tolist(),
        "separations": _SEPARATIONS,
        "burials": np.floor(np.quantile(burial, np.arange(1, _BURIALS) / _BURIALS)).astype(int).tolist(),
    }


def _centres(features: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return centres by Lloyd's k-means from distant residues (k-means++, Arthur & Vassilvitskii 2007)."""
    rng = np.random.default_rng(0)
    centres = features[rng.integers(len(features))][None]
    for _ in range(n - 1):
        squared = ((features[:, None] - centres) ** 2).sum(-1).min(1)
        centres = np.concatenate([centres, features[rng.choice(len(features), p=squared / squared.sum())][None]])
    for _ in range(_ROUNDS):
        nearest = ((features**2).sum(1)[:, None] - 2 * features @ centres.T + (centres**2).sum(1)).argmin(1)
        centres = np.stack([features[nearest == k].mean(0) if (nearest == k).any() else centres[k] for k in range(n)])
    return centres


def learned_tables(arrays: StructureArrays, aligned: AlignedResidues) -> dict[str, Any]:
    """Return log-odds and weights, as `SensitiveTables.from_json` reads them."""
    rng = np.random.default_rng(1)
    drawn = rng.choice(len(aligned.first), min(len(aligned.first), _LEARNED_PAIRS), replace=False, p=aligned.weight / aligned.weight.sum())
    random = rng.integers(0, len(arrays.state), (2, _RANDOM_PAIRS))
    tables, related, unrelated = {}, [], []
    for name in LEARNED:
        codes = codes_of(arrays, name)
        table = _log_odds(codes, aligned)
        tables[name] = np.round(table, 3).tolist()
        related.append(table[codes[aligned.first[drawn]], codes[aligned.second[drawn]]])
        unrelated.append(table[codes[random[0]], codes[random[1]]])
    weights = _logistic_weights(np.stack(related, 1), np.stack(unrelated, 1)) / np.log(2)
    return {
        "baseline": BASELINE,
        "gap_first": GAP_FIRST,
        "gap_next": GAP_NEXT,
        "weights": {name: round(float(weight), 4) for name, weight in zip(LEARNED, weights, strict=True)},
        "tables": tables,
    }


def _log_odds(codes: NDArray[np.uint8], aligned: AlignedResidues) -> NDArray[np.float64]:
    """Return the log-odds (bits) of pairs of codes in aligned residues, with pseudocounts by chance."""
    n = int(codes.max()) + 1
    alone = np.bincount(codes, minlength=n) / len(codes)
    chance = np.outer(alone, alone)
    together = np.zeros((n, n))
    np.add.at(together, (codes[aligned.first], codes[aligned.second]), aligned.weight * len(aligned.weight) / aligned.weight.sum())
    together = together + together.T + 2 * _PSEUDO_COUNT * chance
    return np.log2(np.divide(together / together.sum(), chance, where=chance > 0, out=np.ones((n, n))))


def _logistic_weights(related: NDArray[np.float64], unrelated: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return coefficients of a logistic regression with an intercept, by Newton's method."""
    features = np.concatenate([related, unrelated])
    features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    truth = np.arange(len(features)) < len(related)
    weights = np.zeros(features.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-features @ weights))
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features
        weights += np.linalg.solve(curvature + 1e-6 * np.eye(len(weights)), features.T @ (truth - chance))
    return weights[:-1]


def main() -> None:
    from benchmarks.structures import labelled_chains

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--alphabets", action="store_true", help="learn the alphabets anew too")
    parser.add_argument("--threads", type=int, default=available_threads())
    options = parser.parse_args()
    chains, labels = labelled_chains(options.data / "structures" / "bench_ca", options.threads)
    if options.alphabets:
        content = learned_alphabets(chains.chains)
        resources.path("structures", "descriptors.json").write_text(json.dumps(content), encoding="utf-8")
        chains = described(chains.chains, using=Alphabets.from_json(content))
    learned = learned_tables(chains.arrays, aligned_residues(chains, labels.fold, options.threads))
    resources.path("structures", "rewards.json").write_text(json.dumps(learned), encoding="utf-8")
    print(json.dumps(learned["weights"]))


if __name__ == "__main__":
    main()

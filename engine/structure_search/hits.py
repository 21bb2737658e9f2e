"""The hits of a query: scores of all chains, the best of them aligned and superposed, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.arrays import offsets_of
from engine.execution.executor import Session
from engine.execution.resources import Resources
from engine.execution.threads import run_on_threads
from engine.structure_search.parameters import StructureSearchParameters
from engine.structure_search.scoring import Scores, score_query
from engine.structure_search.significance import z_scores
from engine.structure_search.structures import DescribedChains
from engine.structures.outputs import AlignedChains, cigar, identity
from engine.structures.rewards import GapCosts, SensitiveTables, Weights, published_rewards, sensitive_rewards, sensitive_tables
from engine.structures.superposition import Superpositions, superpose, superpose_many, tm_scores
from kernels.structure_layouts import Rewards, StructureArrays

__all__ = ["FEWEST_SUPERPOSED", "Hit", "HitSearch", "QueryHits", "relatedness"]

FEWEST_SUPERPOSED = 100
"""Candidates of a query that the sensitive mode superposes before it ranks them, however few are reported."""

_OF_Z_SCORE = 0.02


@dataclass(frozen=True)
class QueryHits:
    """A query with its hits, best first. `n_aligned`: chains that took part in phase 2. `index`: its place in the order of the files.
    `beside`: each hit as it is superposed. `scores`, `z_scores`: (n,) of all chains of the database, in order of length; `scores` are
    negative where phase 1 forbade the chain.
    """

    query: str
    index: int
    description: str
    sequence: str
    states: str
    n_aligned: int
    hits: Sequence[Hit]
    beside: Sequence[AlignedChains]
    scores: NDArray[np.float64]
    z_scores: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hit:
    """A chain of the database beside a query, best first.

    Attributes
    ----------
    score : of the alignment of residues, in bits (sensitive) or as published. z_score : standard deviations above chance.
    aligned_length : pairs of residues; identity, query_coverage, target_coverage : parts of one, of those pairs (X is like none) and of the
        two lengths.
    rmsd : Å, of these pairs under the transformation. tm_score_query, tm_score_target : by the length of each.
    phase1_ratio : score of the elements, by that of the query with itself; NaN where phase 1 was skipped.
    rotation, translation : nine and three numbers, commas between; x' = R x + t moves the target onto the query.
    cigar : of both whole chains: M two residues, I the query's alone, D the target's alone.
    query_index, target_index : places in the order of the files. target_sequence, target_states : of the target.
    """

    query: str
    target: str
    score: float
    z_score: float
    aligned_length: int
    identity: float
    rmsd: float
    tm_score_query: float
    tm_score_target: float
    query_coverage: float
    target_coverage: float
    phase1_ratio: float
    rotation: str
    translation: str
    cigar: str
    description: str
    rank: int
    query_index: int
    target_index: int
    target_length: int
    target_sequence: str
    target_states: str


def relatedness(z_score: NDArray[np.float64], tm_score: NDArray[np.float64]) -> NDArray[np.float64]:
    """What candidates of the sensitive mode are ranked by: the mean of both TM-scores, and two hundredths of the z-score.

    Of relatives whose structures are equally alike, those come first whose descriptors, residues among them, agree better.
    """
    return tm_score + _OF_Z_SCORE * z_score


class HitSearch:
    """Finds the hits of one query after the other in a database that stays open."""

    def __init__(
        self,
        queries: DescribedChains,
        database: DescribedChains,
        parameters: StructureSearchParameters,
        session: Session,
        resources: Resources,
        tables: SensitiveTables | None = None,
    ) -> None:
        self.queries, self.database, self.parameters = queries, database, parameters
        self._session, self._resources = session, resources
        self.tables = tables or sensitive_tables()
        self._is_sensitive = parameters.mode == "sensitive"

    def rewards(self, query: StructureArrays) -> tuple[Rewards, float]:
        """Rewards for a query, in whole numbers, and how many make a unit of its scores."""
        own = self.parameters
        weights, gaps = Weights(*own.weights), GapCosts(own.gap_first, own.gap_next, own.element_gap_first, own.element_gap_next)
        return sensitive_rewards(query, self.tables, weights, gaps) if self._is_sensitive else published_rewards(query, weights, gaps)

    def scores(self, i: int) -> tuple[Scores, Rewards, float, int]:
        """Both phases of query `i`: scores of all chains, its rewards with their unit, and what its elements score with themselves."""
        from kernels.cpu.structure_pairs import element_score

        query = self.queries.arrays.chain(i)
        rewards, unit = self.rewards(query)
        elements, gaps = (query.element_type, query.element_length), (rewards.element_gap_first, rewards.element_gap_next)
        own = int(element_score(*elements, *elements, *gaps))
        threshold = self.parameters.qualification_threshold
        least = int(np.ceil(threshold * own)) if threshold > 0 else 0
        return score_query(self._session, query, rewards, max(least, 1) if threshold > 0 else 0), rewards, unit, own

    def all_hits(self) -> Iterator[QueryHits]:
        """The queries in the order of their files, each with its hits."""
        for i in np.argsort(self.queries.file_order).tolist():
            yield self.hits(i)

    def hits(self, i: int) -> QueryHits:
        """The hits of query `i`, best first."""
        with self._resources.clock.stage("score"):
            scores, rewards, unit, own_score = self.scores(i)
        with self._resources.clock.stage("report"):
            z = z_scores(scores.residues / unit, self.database.chains.lengths, scores.residues >= 0)
            found = np.flatnonzero(scores.residues > 0)
            if self._is_sensitive:
                wanted = max(self.parameters.top, FEWEST_SUPERPOSED)
                best = found[np.lexsort((self.database.file_order[found], -z[found]))][:wanted]
                aligned = self._superposed(i, best, rewards)
                order = np.lexsort(
                    (self.database.file_order[best], -relatedness(z[best], (aligned.tm_score_query + aligned.tm_score_target) / 2))
                )
            else:
                best = found[np.lexsort((self.database.file_order[found], -scores.residues[found]))][: self.parameters.top]
                aligned = self._fitted(i, best, rewards)
                order = np.arange(len(best))
            ratios = scores.elements / max(1, own_score) if self.parameters.qualification_threshold > 0 else np.full(len(z), np.nan)
            kept = order[: self.parameters.top].tolist()
            hits = [
                self._hit(i, int(best[k]), rank, scores.residues[best[k]] / unit, z[best[k]], ratios[best[k]], aligned, k)
                for rank, k in enumerate(kept, 1)
            ]
            own, chains = self.queries.chains, self.database.chains
            return QueryHits(
                own.names[i], int(self.queries.file_order[i]), own.descriptions[i], own.sequence(i), own.states(i),
                int((scores.residues >= 0).sum()), hits, [AlignedChains(own, i, chains, int(best[k]), aligned, k) for k in kept],
                scores.residues / unit, z,
            )  # fmt: skip

    def aligned(self, i: int, targets: NDArray[np.int64]) -> Superpositions:
        """Query `i` beside these chains of the database, as hits are aligned and superposed in this mode."""
        rewards, _ = self.rewards(self.queries.arrays.chain(i))
        return (self._superposed if self._is_sensitive else self._fitted)(i, targets, rewards)

    def _starts(self, i: int, targets: NDArray[np.int64], rewards: Rewards) -> list[NDArray[np.int32]]:
        """The alignments by descriptors."""
        from kernels.cpu.structure_pairs import align_pair

        query, resources = self.queries.arrays.chain(i), self._resources
        resources.progress.stage("Aligning candidates", len(targets))
        return run_on_threads(
            lambda target: align_pair(query, self.database.arrays.chain(target), rewards)[1], targets.tolist(), resources.threads,
            resources.progress,
        )  # fmt: skip

    def _superposed(self, i: int, targets: NDArray[np.int64], rewards: Rewards) -> Superpositions:
        """Candidates aligned anew by their superposition, which begins with the alignment by descriptors."""
        starts = self._starts(i, targets, rewards)
        chains, progress = self.database.chains, self._resources.progress
        progress.stage("Superposing candidates", len(targets))
        some = chains.taken(targets)
        flat = np.concatenate([np.empty((0, 2), np.int32), *starts])
        return superpose_many(
            self.queries.chains.position[self.queries.chains.rows(i)], some.position, some.offsets, flat,
            offsets_of(np.array([len(one) for one in starts], np.int64)), threads=self._resources.threads, effort="quick",
            progress=progress,
        )  # fmt: skip

    def _fitted(self, i: int, targets: NDArray[np.int64], rewards: Rewards) -> Superpositions:
        """Candidates laid on the query by least squares over the alignment by descriptors."""
        starts = self._starts(i, targets, rewards)
        query, chains = self.queries.chains.position[self.queries.chains.rows(i)], self.database.chains
        rotation, translation, rmsd, tm = np.zeros((len(targets), 3, 3)), np.zeros((len(targets), 3)), [], []
        self._resources.progress.stage("Superposing hits", len(targets))

        def fit(k: int) -> tuple[float, tuple[float, float]]:
            target, pairs = chains.position[chains.rows(int(targets[k]))], starts[k]
            rotation[k], translation[k], own = superpose(query[pairs[:, 0]], target[pairs[:, 1]])
            return own, tm_scores(query, target, pairs)

        for own, both in run_on_threads(fit, range(len(targets)), self._resources.threads, self._resources.progress):
            rmsd.append(own)
            tm.append(both)
        by_both, lengths = np.array(tm).reshape(-1, 2), np.array([len(one) for one in starts], np.int64)
        flat = np.concatenate([np.empty((0, 2), np.int32), *starts])
        return Superpositions(rotation, translation, by_both[:, 0], by_both[:, 1], np.array(rmsd), lengths, flat, offsets_of(lengths))

    def _hit(self, i: int, target: int, rank: int, score: float, z: float, ratio: float, aligned: Superpositions, k: int) -> Hit:
        queries, chains = self.queries.chains, self.database.chains
        pairs = aligned.pairs[aligned.pair_offsets[k] : aligned.pair_offsets[k + 1]]
        query_rows, target_rows = queries.rows(i), chains.rows(target)
        n_query, n_target = query_rows.stop - query_rows.start, target_rows.stop - target_rows.start
        same = identity(queries.residue[query_rows], chains.residue[target_rows], pairs)
        return Hit(
            query=queries.names[i], target=chains.names[target], score=round(float(score), 3), z_score=round(float(z), 3),
            aligned_length=len(pairs), identity=round(same, 4), rmsd=round(float(aligned.rmsd[k]), 3),
            tm_score_query=round(float(aligned.tm_score_query[k]), 4), tm_score_target=round(float(aligned.tm_score_target[k]), 4),
            query_coverage=round(len(pairs) / n_query, 4), target_coverage=round(len(pairs) / n_target, 4),
            phase1_ratio=round(float(ratio), 4), rotation=_numbers(aligned.rotation[k].reshape(-1), 7),
            translation=_numbers(aligned.translation[k], 4), cigar=cigar(pairs, n_query, n_target),
            description=chains.descriptions[target], rank=rank, query_index=int(self.queries.file_order[i]),
            target_index=int(self.database.file_order[target]), target_length=n_target, target_sequence=chains.sequence(target),
            target_states=chains.states(target),
        )  # fmt: skip


def _numbers(values: NDArray[np.float64], decimals: int) -> str:
    return ",".join(f"{value:.{decimals}f}" for value in values)

"""The hits of a query: scores of all chains, the best of them aligned and superposed, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import offsets_of, take_runs
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.row_numbers import ChainRow
from proteoscope.engine.structure_search.calibration import chance_features, ordered_shares, shipped_calibration
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import Scores, score_query
from proteoscope.engine.structure_search.significance import z_scores
from proteoscope.engine.structure_search.structures import DescribedChains
from proteoscope.engine.structure_search.superposing import superpose_pairs
from proteoscope.engine.structure_search.tables import HITS
from proteoscope.engine.structures.outputs import AlignedChains, cigars, identities
from proteoscope.engine.structures.rewards import GapCosts, SensitiveTables, Weights, published_rewards, sensitive_rewards, sensitive_tables
from proteoscope.engine.structures.superposition import (
    Superpositions,
    pairs_with_query,
    superpose,
    superposed,
    superpositions_of,
    tm_scores,
)
from proteoscope.kernels.structure_layouts import ChainPairs, Rewards, StructureArrays

if TYPE_CHECKING:
    pass

__all__ = ["FEWEST_SUPERPOSED", "StructureHitSearch", "StructureQueryHits", "relatedness"]

FEWEST_SUPERPOSED = 100
"""Candidates of a query that the sensitive mode superposes before it ranks them, however few are reported."""

_QUERIES_TOGETHER = 16  # whose candidates a card superposes at a time
_OF_Z_SCORE = 0.02
_E_VALUE_DIGITS = 4


@dataclass(frozen=True)
class StructureQueryHits:
    """A query with its hits, best first. `n_aligned`: chains that took part in phase 2. `index`: its place in the order of the files.
    `hits`: rows of the table ``hits`` (`proteoscope.engine.structure_search.tables.HITS`). `beside`: each hit as it is superposed.
    `scores`, `z_scores`: (n,) of all chains of the database, in order of length; `scores` are negative where phase 1 forbade the chain.
    """

    query: str
    index: int
    description: str
    sequence: str
    states: str
    n_aligned: int
    hits: pa.Table
    beside: Sequence[AlignedChains]
    scores: NDArray[np.float64]
    z_scores: NDArray[np.float64]


class _Candidates(NamedTuple):
    """Query number `query`: scores of all chains, its rewards and their unit, what its elements score with themselves, z-scores of all
    chains, and those that it is aligned with."""

    query: ChainRow
    scores: Scores
    rewards: Rewards
    unit: float
    own_score: int
    z: NDArray[np.float64]
    best: NDArray[np.int64]


def relatedness(z_score: NDArray[np.float64], tm_score: NDArray[np.float64]) -> NDArray[np.float64]:
    """What candidates of the sensitive mode are ranked by: the mean of both TM-scores, and two hundredths of the z-score.

    Of relatives whose structures are equally alike, those come first whose descriptors, residues among them, agree better.
    """
    return tm_score + _OF_Z_SCORE * z_score


class StructureHitSearch:
    """Finds the hits of one query after the other in a database that stays open.

    `session` scores; `superposing` lays the candidates of the sensitive mode on their queries, and threads do where there is none.
    """

    def __init__(
        self,
        queries: DescribedChains,
        database: DescribedChains,
        parameters: StructureSearchParameters,
        session: Session,
        resources: Resources,
        tables: SensitiveTables | None = None,
        superposing: Session | None = None,
    ) -> None:
        self.queries, self.database, self.parameters = queries, database, parameters
        self._session, self._superposing, self._resources = session, superposing, resources
        self.tables = tables or sensitive_tables()
        self._is_sensitive = parameters.mode == "sensitive"

    def rewards(self, query: StructureArrays) -> tuple[Rewards, float]:
        """Rewards for a query, in whole numbers, and how many make a unit of its scores."""
        own = self.parameters
        weights, gaps = Weights(*own.weights), GapCosts(own.gap_first, own.gap_next, own.element_gap_first, own.element_gap_next)
        return sensitive_rewards(query, self.tables, weights, gaps) if self._is_sensitive else published_rewards(query, weights, gaps)

    def scores(self, i: ChainRow) -> tuple[Scores, Rewards, float, int]:
        """Both phases of query `i`: scores of all chains, its rewards with their unit, and what its elements score with themselves."""
        query = self.queries.arrays.chain(i)
        rewards, unit = self.rewards(query)
        elements, gaps = (query.element_type, query.element_length), (rewards.element_gap_first, rewards.element_gap_next)
        own = int(kernels.cpu.structure_pairs.element_score(*elements, *elements, *gaps))
        threshold = self.parameters.qualification_threshold
        least = int(np.ceil(threshold * own)) if threshold > 0 else 0
        return score_query(self._session, query, rewards, max(least, 1) if threshold > 0 else 0), rewards, unit, own

    def score(self) -> Iterator[StructureQueryHits]:
        """The queries in the order of their files, each with its hits."""
        order = np.argsort(self.queries.file_order).tolist()
        # A card superposes the candidates of several queries in the time of one.
        together = _QUERIES_TOGETHER if self._is_sensitive and self._resources.has_cards else 1
        for first in range(0, len(order), together):
            yield from self._hits(order[first : first + together])

    def hits(self, i: ChainRow) -> StructureQueryHits:
        """The hits of query `i`, best first."""
        return next(self._hits([i]))

    def _hits(self, queries: Sequence[ChainRow]) -> Iterator[StructureQueryHits]:
        """Some queries, whose candidates are superposed together."""
        with self._resources.clock.stage("score"):
            candidates = [self._candidates(i) for i in queries]
        with self._resources.clock.stage("report"):
            if self._is_sensitive:
                every = self._superposed([(one.query, one.best, one.rewards) for one in candidates])
            else:
                every = [self._fitted(one.query, one.best, one.rewards) for one in candidates]
            found = [self._reported(one, aligned) for one, aligned in zip(candidates, every, strict=True)]
        yield from found

    def _candidates(self, i: ChainRow) -> _Candidates:
        """The chains that query `i` is aligned with, chosen by their scores."""
        scores, rewards, unit, own_score = self.scores(i)
        z = z_scores(scores.residues / unit, self.database.chains.lengths, scores.residues >= 0)
        found = np.flatnonzero(scores.residues > 0)
        by = z if self._is_sensitive else scores.residues / unit
        wanted = max(self.parameters.hits_per_query, FEWEST_SUPERPOSED if self._is_sensitive else 0)
        best = found[np.lexsort((self.database.file_order[found], -by[found]))][:wanted]
        return _Candidates(i, scores, rewards, unit, own_score, z, best)

    def _reported(self, candidates: _Candidates, aligned: Superpositions) -> StructureQueryHits:
        """The hits among candidates that are aligned."""
        i, scores, _, unit, own_score, z, best = candidates
        order = np.arange(len(best))
        if self._is_sensitive:
            order = np.lexsort(
                (self.database.file_order[best], -relatedness(z[best], (aligned.tm_score_query + aligned.tm_score_target) / 2))
            )
        ratios = scores.elements / max(1, own_score) if self.parameters.qualification_threshold > 0 else np.full(len(z), np.nan)
        kept = order[: self.parameters.hits_per_query]
        figures = self._figures(i, best, scores.residues[best] / unit, z[best], ratios[best], aligned)
        hits = self._table(i, best[kept], {name: column[kept] for name, column in figures.items()}, aligned, kept)
        own, chains = self.queries.chains, self.database.chains
        return StructureQueryHits(
            own.names[i], int(self.queries.file_order[i]), own.descriptions[i], own.sequence(i), own.states(i),
            int((scores.residues >= 0).sum()), hits, [AlignedChains(own, i, chains, target, aligned, k)
            for k, target in zip(kept.tolist(), best[kept].tolist(), strict=True)],
            scores.residues / unit, z,
        )  # fmt: skip

    def aligned(self, i: ChainRow, targets: NDArray[np.int64]) -> Superpositions:
        """Query `i` beside these chains of the database, as hits are aligned and superposed in this mode."""
        rewards, _ = self.rewards(self.queries.arrays.chain(i))
        return self._superposed([(i, targets, rewards)])[0] if self._is_sensitive else self._fitted(i, targets, rewards)

    def _starts(self, candidates: Sequence[tuple[ChainRow, NDArray[np.int64], Rewards]]) -> list[NDArray[np.int32]]:
        """The alignments by descriptors of queries with their targets, one after the other."""
        resources, chains = self._resources, self.database.arrays
        pairs = [
            (query, target, rewards)
            for query, targets, rewards in ((self.queries.arrays.chain(i), targets, rewards) for i, targets, rewards in candidates)
            for target in targets.tolist()
        ]
        resources.progress.stage("Aligning candidates", len(pairs))
        return run_on_threads(
            lambda pair: kernels.cpu.structure_pairs.align_pair(pair[0], chains.chain(pair[1]), pair[2])[1], pairs, resources.threads,
            resources.progress,
        )  # fmt: skip

    def _superposed(self, candidates: Sequence[tuple[ChainRow, NDArray[np.int64], Rewards]]) -> list[Superpositions]:
        """Targets of queries aligned anew by their superposition, which begins with the alignment by descriptors."""
        starts, chains, progress = self._starts(candidates), self.database.chains, self._resources.progress
        bounds = np.cumsum([0, *(len(targets) for _, targets, _ in candidates)]).tolist()
        own = self.queries.chains
        every = []
        for (i, targets, _), first, last in zip(candidates, bounds[:-1], bounds[1:], strict=True):
            some, flat = chains.taken(targets), np.concatenate([np.empty((0, 2), np.int32), *starts[first:last]])
            lengths = offsets_of(np.array([len(start) for start in starts[first:last]], np.int64))
            every.append(pairs_with_query(own.position[own.rows(i)], some.position, some.offsets, flat, lengths))
        progress.stage("Superposing candidates", bounds[-1])
        pairs = ChainPairs.joined(every)
        if self._superposing is not None:
            found = superpose_pairs(self._superposing, pairs)
        else:
            found = superposed(pairs, self._resources.threads, "quick", progress)
        return [superpositions_of(found, first, last) for first, last in pairwise(bounds)]

    def _fitted(self, i: ChainRow, targets: NDArray[np.int64], rewards: Rewards) -> Superpositions:
        """Candidates laid on the query by least squares over the alignment by descriptors."""
        starts = self._starts([(i, targets, rewards)])
        query, chains = self.queries.chains.position[self.queries.chains.rows(i)], self.database.chains
        rotation, translation, rmsd, tm = np.zeros((len(targets), 3, 3)), np.zeros((len(targets), 3)), [], []
        self._resources.progress.stage("Superposing hits", len(targets))
        rows: list[ChainRow] = targets.tolist()

        def fit(k: int) -> tuple[float, tuple[float, float]]:
            target, pairs = chains.position[chains.rows(rows[k])], starts[k]
            rotation[k], translation[k], own = superpose(query[pairs[:, 0]], target[pairs[:, 1]])
            return own, tm_scores(query, target, pairs)

        for own, both in run_on_threads(fit, range(len(targets)), self._resources.threads, self._resources.progress):
            rmsd.append(own)
            tm.append(both)
        by_both, lengths = np.array(tm).reshape(-1, 2), np.array([len(start) for start in starts], np.int64)
        flat = np.concatenate([np.empty((0, 2), np.int32), *starts])
        return Superpositions(rotation, translation, by_both[:, 0], by_both[:, 1], np.array(rmsd), lengths, flat, offsets_of(lengths))

    def _figures(
        self, i: ChainRow, targets: NDArray[np.int64], scores: NDArray[np.float64], z: NDArray[np.float64], ratios: NDArray[np.float64],
        aligned: Superpositions,
    ) -> dict[str, NDArray[np.float64]]:  # fmt: skip
        """Scores, z-scores, E-values, probabilities of the same fold and ratios of phase 1, rounded, of some chains beside query `i`."""
        queries, chains, calibration = self.queries.chains, self.database.chains, shipped_calibration(self.parameters.mode)
        length, lengths = queries.lengths[i], chains.lengths[targets]
        probabilities = calibration.same_fold_probabilities(aligned.tm_score_query, aligned.tm_score_target, np.minimum(length, lengths))
        e_values = np.full(len(targets), np.nan)
        if self.parameters.has_learned_scores:
            shared = np.minimum(ordered_shares(queries, np.array([i])), ordered_shares(chains, targets)).sum(axis=1)
            e_values = len(chains) * calibration.chances(scores, chance_features(length, lengths, shared))
        return {
            "score": _rounded(scores, 3), "z_score": _rounded(z, 3), "e_value": _rounded_to_digits(e_values, _E_VALUE_DIGITS),
            "same_fold_probability": _rounded(probabilities, 4), "phase1_ratio": _rounded(ratios, 4),
        }  # fmt: skip

    def _table(
        self, i: ChainRow, targets: NDArray[np.int64], figures: dict[str, NDArray[np.float64]], aligned: Superpositions,
        kept: NDArray[np.int64],
    ) -> pa.Table:  # fmt: skip
        """Hits, best first: some chains of the database, each superposed as one of several is."""
        own, chains = self.queries.chains, self.database.chains.taken(targets)
        query, n_query, n = own.residue[own.rows(i)], int(own.lengths[i]), len(targets)
        pairs, offsets = _pairs_of(aligned, kept)
        lengths = np.diff(offsets)
        columns = {
            "query": [own.names[i]] * n,
            "target": chains.names,
            **figures,
            "aligned_length": lengths,
            "identity": _rounded(identities(query, chains.residue, chains.offsets, pairs, offsets), 4),
            "rmsd": _rounded(aligned.rmsd[kept], 3),
            "tm_score_query": _rounded(aligned.tm_score_query[kept], 4),
            "tm_score_target": _rounded(aligned.tm_score_target[kept], 4),
            "query_coverage": _rounded(lengths / n_query, 4),
            "target_coverage": _rounded(lengths / chains.lengths, 4),
            "rotation": np.round(aligned.rotation[kept].reshape(n, 9), 7),
            "translation": list(map("{:.4f},{:.4f},{:.4f}".format, *aligned.translation[kept].T.tolist())),
            "cigar": cigars(pairs, offsets, n_query, chains.lengths),
            "description": chains.descriptions,
            "rank": np.arange(1, n + 1),
            "query_index": np.full(n, self.queries.file_order[i]),
            "target_index": self.database.file_order[targets],
            "target_length": chains.lengths,
            "target_sequence": chains.sequences.arrow(),
            "target_states": chains.all_states.arrow(),
        }
        return HITS.arrow(columns)


def _rounded_to_digits(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Rounded to so many digits that tell."""
    return np.array([float(f"{value:.{digits}g}") for value in values.tolist()], np.float64)


def _rounded(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Rounded as decimals are: NumPy multiplies first, and takes 0.00625 for a tie."""
    return np.array(list(map(round, values.tolist(), repeat(decimals))), np.float64)


def _pairs_of(aligned: Superpositions, kept: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The pairs of some superpositions, flat, and where those of each begin."""
    queries, offsets = take_runs(aligned.pairs[:, 0], aligned.pair_offsets, kept)
    targets, _ = take_runs(aligned.pairs[:, 1], aligned.pair_offsets, kept)
    return np.stack([queries, targets], axis=1), offsets

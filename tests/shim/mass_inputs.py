"""Mass lists for the match score kernels, and results by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.match_score_layouts import MassLists

__all__ = ["lists_of", "plain_best", "plain_score", "plain_scores", "random_lists", "scored_on", "searched_on"]


def lists_of(lists: Sequence[Sequence[int]], precursors: Sequence[int]) -> MassLists:
    """Return lists of numbers as arrays."""
    lengths = [len(row) for row in lists]
    masses = [mass for row in lists for mass in row]
    return MassLists(np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), np.array(masses, np.int32), np.array(precursors, np.int32))


def random_lists(
    rng: np.random.Generator, n: int, *, most: int = 400, longest: int = 30, beyond: int = 0, in_order: bool = True
) -> MassLists:
    """Generate mass lists of any length up to `longest` with precursors below `most`.

    Some masses and lists are equal, some lists are empty. Masses may lie `beyond` below zero and above the precursor.
    """
    precursors = rng.integers(1, most, n)
    precursors[n // 2 : n // 2 + n // 5] = precursors[: n // 5]
    precursors = np.sort(precursors) if in_order else precursors
    lists = []
    for precursor in precursors.tolist():
        every = np.arange(-beyond, precursor + beyond)
        lists.append(np.sort(rng.choice(every, min(len(every), int(rng.integers(0, longest + 1))), replace=False)).tolist())
        if len(lists) > 1 and rng.random() < 0.2:
            lists[-1] = [mass for mass in lists[-2] if mass < precursor + beyond]
    return lists_of(lists, precursors.tolist())


def plain_score(query: Sequence[int], precursor: int, candidate: Sequence[int], its_precursor: int) -> int:
    """Count the pairs of equal mass and of equal distance to the precursor, by definition."""
    return _plain_score(Counter(_within(query, precursor)), precursor, _within(candidate, its_precursor), its_precursor)


def _within(masses: Sequence[int], precursor: int) -> list[int]:
    return [mass for mass in masses if 0 <= mass < precursor]


def _plain_score(n_of: Counter[int], precursor: int, candidate: list[int], its_precursor: int) -> int:
    delta = precursor - its_precursor
    return sum([n_of.get(x, 0) + n_of.get(x + delta, 0) for x in candidate])


def plain_scores(queries: MassLists, candidates: MassLists) -> list[list[int]]:
    """Compute the scores of all pairs."""
    rows, others = (
        [
            (_within(lists.masses[begin:end].tolist(), precursor), precursor)
            for begin, end, precursor in zip(lists.offsets[:-1], lists.offsets[1:], lists.precursors.tolist(), strict=True)
        ]
        for lists in (queries, candidates)
    )
    return [
        [_plain_score(n_of, precursor, *other) for other in others] for n_of, precursor in ((Counter(masses), its) for masses, its in rows)
    ]


def plain_best(queries: MassLists, candidates: MassLists, window: tuple[int, int], top: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the candidates and scores of each query by sorting all that are in the window."""
    hits, its_scores = [], []
    for precursor, scores in zip(queries.precursors.tolist(), plain_scores(queries, candidates), strict=True):
        shifts = (precursor - candidates.precursors.astype(np.int64)).tolist()
        best = [(-score, j) for j, score in enumerate(scores) if score and window[0] <= shifts[j] <= window[1]]
        best = [*sorted(best)[:top], *[(0, -1)] * top][:top]
        hits.append([j for _, j in best])
        its_scores.append([-score for score, _ in best])
    return hits, its_scores


def searched_on(
    device: Device | Any, candidates: MassLists, queries: MassLists, window: tuple[int, int], top: int, kind: Any = None, **part: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the results of the class; rows outside the range hold -7."""
    kind = backend_module(device, "match_scores").MatchScores if kind is None else kind
    n = len(queries.precursors)
    candidate, score = np.full((n, top), -7, np.int64), np.full((n, top), -7, np.int32)
    ends = list(kind(device, candidates).search(queries, window, top, candidate, score, **part))
    assert ends == sorted(ends)
    assert ends[-1] == part.get("last", n)
    return candidate.tolist(), score.tolist()


def scored_on(device: Device | Any, candidates: MassLists, queries: MassLists, dtype: Any, kind: Any = None) -> NDArray[Any]:
    """Return all scores of the class."""
    kind = backend_module(device, "match_scores").MatchScores if kind is None else kind
    scores = np.full((len(queries.precursors), len(candidates.precursors)), 77, dtype)
    assert list(kind(device, candidates).score(queries, scores))[-1] == len(scores)
    return scores

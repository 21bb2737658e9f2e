"""Databases of random sequences and reference Smith-Waterman scores for comparing devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cuda.alignment import AlignmentSearch
from proteoscope.kernels.cuda.modules import Gpu

__all__ = ["N_CODES", "database", "plain_scores", "random_sequences", "scored", "search_with"]

N_CODES = 27


def random_sequences(random: np.random.Generator, lengths: Sequence[int]) -> list[NDArray[np.int8]]:
    """Generate sequences of all codes; every third resembles the previous one, so that there are long alignments with gaps."""
    sequences: list[NDArray[np.int8]] = []
    for i, length in enumerate(lengths):
        codes = random.integers(0, N_CODES, length).astype(np.int8)
        if i % 3 == 2 and length:
            relative = sequences[-1][random.random(len(sequences[-1])) < 0.9][:length]
            codes[: len(relative)] = np.where(random.random(len(relative)) < 0.8, relative, codes[: len(relative)])
        sequences.append(codes)
    return sequences


def database(sequences: Sequence[NDArray[np.int8]]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Return the residues and offsets of sequences."""
    offsets = np.concatenate(([0], np.cumsum([len(codes) for codes in sequences]))).astype(np.int64)
    return np.concatenate([np.zeros(0, np.int8), *sequences]).astype(np.int8), offsets


@njit
def _score(query, subject, scores, opening, extending):
    h, e = np.zeros(len(query) + 1, np.int64), np.full(len(query) + 1, -(1 << 40))
    best = 0
    for residue in subject:
        f, diagonal = -(1 << 40), 0
        for j in range(1, len(query) + 1):
            value = max(0, diagonal + scores[query[j - 1], residue], e[j], f)
            diagonal = h[j]
            h[j] = value
            e[j] = max(e[j] - extending, value - opening)
            f = max(f - extending, value - opening)
            best = max(best, value)
    return best


def plain_scores(
    queries: Sequence[NDArray[np.int8]], sequences: Sequence[NDArray[np.int8]], scores: NDArray[np.integer], gap_open: int, gap_extend: int
) -> NDArray[np.int32]:
    """Compute the score of every query with every sequence, cell by cell."""
    table = np.asarray(scores, np.int64)
    return np.array(
        [[_score(query, sequence, table, gap_open + gap_extend, gap_extend) for sequence in sequences] for query in queries], np.int32
    ).reshape(len(queries), len(sequences))


def search_with(gpu: Gpu, sequences: Sequence[NDArray[np.int8]], **options: Any) -> AlignmentSearch:
    """Return a sequence search class whose public attributes have other values than the defaults."""
    kind = type("AlignmentSearch", (AlignmentSearch,), options)
    return kind(gpu, *database(sequences))


def scored(
    gpu: Gpu,
    queries: Sequence[NDArray[np.int8]],
    sequences: Sequence[NDArray[np.int8]],
    scores: NDArray[np.integer],
    gap_open: int,
    gap_extend: int,
    first: int = 0,
    last: int | None = None,
    **options: Any,
) -> tuple[NDArray[np.int32], list[int]]:
    """Score queries on a GPU into a table that held -7; also return the values yielded during the search."""
    out = np.full((len(queries), len(sequences)), -7, np.int32)
    search = search_with(gpu, sequences, **options)
    return out, list(search.score(queries, scores, gap_open, gap_extend, out, first, last))

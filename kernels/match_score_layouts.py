"""Match scores of spectra (match score identification, Carroll's thesis, chapter 6): the lists that both backends take, and what counts.

A spectrum is a list of masses in whole units and the mass of its precursor. A candidate X is shifted by delta, the query's precursor mass
less its own; the match score of query T and candidate X is

    score(T, X) = |T and X| + |T and (X + delta)|,

the masses before a modification and those behind it. The masses that count are those from 0 on and below the precursor's, and so are
the shifted ones: neither a precursor nor what lies beyond it matches anything.

What a shifted mass x + delta lies below the query's precursor is what x lies below the candidate's. So the second term compares lists as
the first does, when both are counted from the precursor down: no shift is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CANDIDATES_OF_CHUNK",
    "MassLists",
    "MassRows",
    "candidate_ranges",
    "check_candidates",
    "counting",
    "longest",
    "maximum_matches",
    "score_type",
]

CANDIDATES_OF_CHUNK = 1 << 16
"""A posting is the number of a candidate in its chunk, 16 bits."""


class MassLists(NamedTuple):
    """Mass lists of n spectra, in whole units (dalton times a discretisation factor).

    Attributes
    ----------
    offsets : (n + 1,) int64, from 0. masses : (offsets[n],) int32, of each list ascending and distinct. precursors : (n,) int32.
    """

    offsets: NDArray[np.int64]
    masses: NDArray[np.int32]
    precursors: NDArray[np.int32]


class MassRows(NamedTuple):
    """The masses that occur, in order: serial numbers instead of masses, so that what no candidate has takes no memory.

    Attributes
    ----------
    bits : (w,) uint64, bit m % 64 of word m / 64 is set where mass m occurs. before : (w + 1,) int64, bits set in the words before.
    """

    bits: NDArray[np.uint64]
    before: NDArray[np.int64]

    @classmethod
    def of(cls, bits: NDArray[np.uint64]) -> MassRows:
        """Count the bits."""
        before = np.zeros(len(bits) + 1, np.int64)
        np.cumsum(np.bitwise_count(bits), out=before[1:])
        return cls(bits, before)

    @property
    def n(self) -> int:
        """How many masses occur."""
        return int(self.before[-1])


def check_candidates(candidates: MassLists) -> None:
    """Raises ValueError where precursors are not in ascending order."""
    if np.any(candidates.precursors[1:] < candidates.precursors[:-1]):
        raise ValueError("candidates are not in ascending order of precursor")


def counting(lists: MassLists) -> MassLists:
    """The lists without masses that do not count, below 0 or not below the precursor; the same arrays where there are none."""
    offsets, masses, precursors = lists
    has_masses = offsets[1:] > offsets[:-1]
    if np.all(masses[offsets[:-1][has_masses]] >= 0) and np.all(masses[offsets[1:][has_masses] - 1] < precursors[has_masses]):
        return lists
    counts = (masses >= 0) & (masses < np.repeat(precursors, np.diff(offsets)))
    return MassLists(np.concatenate(([0], np.cumsum(counts)))[offsets], masses[counts], precursors)


def longest(lists: MassLists) -> int:
    """Masses of the longest list."""
    return int(np.diff(lists.offsets).max(initial=0))


def maximum_matches(queries: MassLists, longest_candidate: int) -> int:
    """No match score is greater: each mass of the shorter list matches twice at most."""
    return 2 * min(longest(queries), longest_candidate)


def score_type(most: int) -> type[np.unsignedinteger]:
    """The shortest whole numbers that hold scores up to `most`."""
    return np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32


def candidate_ranges(candidates: MassLists, queries: MassLists, window: tuple[int, int]) -> NDArray[np.int64]:
    """(q, 2): the candidates `low:high` of each query, with window[0] <= query's precursor - candidate's <= window[1]."""
    masses, own = candidates.precursors.astype(np.int64), queries.precursors.astype(np.int64)
    low = np.searchsorted(masses, own - window[1], side="left")
    high = np.searchsorted(masses, own - window[0], side="right")
    return np.stack((low, np.maximum(low, high)), axis=1).astype(np.int64)

"""Definition and input of match scores of spectra (match score identification, Carroll's thesis, chapter 6) for both backends.

A spectrum is a list of integer masses and the precursor mass. The shift delta is the precursor mass of the query minus that of the
candidate. The match score of query T and candidate X is

    score(T, X) = |T and X| + |T and (X + delta)|,

the numbers of common masses without and with the shift of a modification. Only masses from 0 to below the precursor mass are counted, also
after the shift.

The difference between the query's precursor mass and a shifted mass x + delta equals that between the candidate's precursor mass and x. The
second term is thus computed like the first, with masses counted down from the precursors and without a shift.
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
    "counting",
    "longest",
    "maximum_matches",
    "score_type",
    "search_integers",
]

CANDIDATES_OF_CHUNK = 1 << 16
"""Number of candidates per chunk; a posting is the 16-bit index of a candidate in its chunk."""


class MassLists(NamedTuple):
    """Mass lists of n spectra, in integer units (dalton times a discretisation factor).

    Attributes
    ----------
    offsets : (n + 1,) int64
        Start of each list, followed by the length of `masses`: list i is ``masses[offsets[i]:offsets[i + 1]]``.
    masses : (offsets[n],) int32
        Masses, ascending and distinct in each list.
    precursors : (n,) int32
        Precursor masses.
    """

    offsets: NDArray[np.int64]
    masses: NDArray[np.int32]
    precursors: NDArray[np.int32]


class MassRows(NamedTuple):
    """Masses of all candidates, in ascending order. The rank of a mass is its row in an index, so that other masses need no row.

    Attributes
    ----------
    bits : (w,) uint64
        Bit m % 64 of word m / 64 is set if a candidate has the mass m.
    before : (w + 1,) int64
        Number of bits set in the previous words.
    """

    bits: NDArray[np.uint64]
    before: NDArray[np.int64]

    @classmethod
    def from_bits(cls, bits: NDArray[np.uint64]) -> MassRows:
        """Create from `bits`."""
        before = np.zeros(len(bits) + 1, np.int64)
        np.cumsum(np.bitwise_count(bits), out=before[1:])
        return cls(bits, before)

    @property
    def n(self) -> int:
        """Number of occurring masses."""
        return int(self.before[-1])


def counting(lists: MassLists) -> MassLists:
    """Return the lists restricted to masses from 0 to below the precursor mass, or `lists` if no mass is removed."""
    offsets, masses, precursors = lists
    begins, ends, limits = offsets[:-1], offsets[1:], precursors
    has_masses = ends > begins
    if not has_masses.all():
        begins, ends, limits = begins[has_masses], ends[has_masses], limits[has_masses]
    if np.all(masses[begins] >= 0) and np.all(masses[ends - 1] < limits):
        return lists
    counts = (masses >= 0) & (masses < np.repeat(precursors, np.diff(offsets)))
    return MassLists(np.concatenate(([0], np.cumsum(counts)))[offsets], masses[counts], precursors)


def longest(lists: MassLists) -> int:
    """Return the number of masses of the longest list."""
    return int(np.diff(lists.offsets).max(initial=0))


def maximum_matches(queries: MassLists, longest_candidate: int) -> int:
    """Return the maximum match score: each mass of the shorter list matches at most twice."""
    return 2 * min(longest(queries), longest_candidate)


def score_type(most: int) -> type[np.unsignedinteger]:
    """Return the smallest unsigned type that holds scores up to `most`."""
    return np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32


def search_integers(ascending: NDArray[np.int32], bounds: NDArray[np.number]) -> NDArray[np.int64]:
    """Return the number of integers below each bound, (q,), given n integers in ascending order and q bounds, which are whole numbers.

    The bounds get the type of the integers, since NumPy would otherwise convert all integers to the type of the bounds.
    """
    limits = np.iinfo(ascending.dtype)
    below: NDArray[np.int64] = np.searchsorted(ascending, np.clip(bounds, limits.min, limits.max).astype(ascending.dtype))
    return np.where(bounds > limits.max, len(ascending), below)


def candidate_ranges(candidates: MassLists, queries: MassLists, window: tuple[int, int]) -> NDArray[np.int64]:
    """Return the ranges of candidates, (q, 2), with window[0] <= query precursor - candidate precursor <= window[1]."""
    query_masses = queries.precursors.astype(np.int64)
    low = search_integers(candidates.precursors, query_masses - window[1])
    high = search_integers(candidates.precursors, query_masses - window[0] + 1)
    return np.stack((low, np.maximum(low, high)), axis=1).astype(np.int64)

"""Arrays of the kernels for structures, for CPU and CUDA.

A residue's code is a 32-bit word with five bits for each alphabet of descriptors:

    bits    0-4      5-9        10-14         15-19      20-24       25-29
            residue  secondary  conformation  neighbour  separation  burial

The reward of two residues is a sum of integers: for each alphabet in use, a value from a table by both codes and, if lengths and angles
are compared directly, a value from a table by their difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ANGLE_STEPS",
    "BITS",
    "CODES",
    "ELEMENT_UNITS",
    "FORBIDDEN",
    "LENGTH_STEPS",
    "MAXIMUM_CELLS",
    "PADDING",
    "SEARCH_STEPS",
    "ChainPairs",
    "FoundSuperpositions",
    "Rewards",
    "SearchSteps",
    "StructureArrays",
]

BITS, CODES = 5, 32
"""Number of bits of an alphabet's code, and number of codes."""
PADDING = CODES - 1
"""Code of padding in every alphabet."""
FORBIDDEN = -(1 << 29)
"""Reward of padding in the first table, which excludes it from every alignment."""
ANGLE_STEPS, LENGTH_STEPS = 8192, 2049
"""Number of distinct differences of angles and of lengths; larger length differences are clipped."""
ELEMENT_UNITS = 1 << 16
"""Number of integer units per reward of 1 in the alignment of elements."""
MAXIMUM_CELLS = 1 << 26
"""Maximum number of cells (one byte each) of an alignment by distance; larger pairs retain their initial alignment."""


class StructureArrays(NamedTuple):
    """One or several chains in the form of the kernels: residues and secondary structure elements.

    `offsets` (n + 1,) int64, start of each chain's residues; `state` (r,) uint32, codes; `length` (r,) uint16, length of the vector to the
    next Cα; `angle` (r,) uint16, below `ANGLE_STEPS`, angle between that vector and the next one. `element_offsets` (n + 1,) int64;
    `element_type` (e,) uint8, 0 coil, 1 helix, 2 strand; `element_length` (e,) int32, in residues.
    """

    offsets: NDArray[np.int64]
    state: NDArray[np.uint32]
    length: NDArray[np.uint16]
    angle: NDArray[np.uint16]
    element_offsets: NDArray[np.int64]
    element_type: NDArray[np.uint8]
    element_length: NDArray[np.int32]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of residues of each chain, shape (n,)."""
        return np.diff(self.offsets)

    def chain(self, i: int) -> StructureArrays:
        """Return chain `i` alone."""
        residues = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        elements = slice(int(self.element_offsets[i]), int(self.element_offsets[i + 1]))
        return StructureArrays(
            self.offsets[i : i + 2] - residues.start,
            self.state[residues],
            self.length[residues],
            self.angle[residues],
            self.element_offsets[i : i + 2] - elements.start,
            self.element_type[elements],
            self.element_length[elements],
        )


class Rewards(NamedTuple):
    """Rewards of aligned residues, and gap costs.

    `shifts` (k,) int64, first bit of each alphabet in use; `tables` (k, 32, 32) int32, rewards by the codes of the query's and the other
    residue; row and column `PADDING` of the first table are `FORBIDDEN`. `of_length` (`LENGTH_STEPS`,) and `of_angle` (`ANGLE_STEPS`,)
    int32, rewards by difference; empty if not in use. A gap of k residues costs ``gap_first + (k - 1) * gap_next``; a gap of k elements is
    computed in the same way from the costs for elements, in `ELEMENT_UNITS`. The product of the query's length and the largest reward is
    below 2^30.
    """

    shifts: NDArray[np.int64]
    tables: NDArray[np.int32]
    of_length: NDArray[np.int32]
    of_angle: NDArray[np.int32]
    gap_first: int
    gap_next: int
    element_gap_first: int
    element_gap_next: int


class ChainPairs(NamedTuple):
    """Pairs (n) of chains to superpose, with initial alignments.

    Attributes
    ----------
    position : (r, 3) float64
        Cα coordinates of all chains in Å.
    offsets : (c + 1,) int64
        Start of each chain in `position`, followed by r.
    fixed, mobile : (n,) int64
        Indices of the chains of each pair; the mobile one is moved onto the fixed one.
    start_pairs : (k, 2) int32
        Aligned residues of both chains, ascending.
    start_offsets : (n + 1,) int64
        Start of the initial alignment of each pair, which may be empty, followed by k.
    """

    position: NDArray[np.float64]
    offsets: NDArray[np.int64]
    fixed: NDArray[np.int64]
    mobile: NDArray[np.int64]
    start_pairs: NDArray[np.int32]
    start_offsets: NDArray[np.int64]

    @classmethod
    def joined(cls, every: Sequence[ChainPairs]) -> ChainPairs:
        """Concatenate several `ChainPairs`."""
        chains = np.cumsum([0, *(len(some.offsets) - 1 for some in every)])
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(some.offsets) for some in every)])
        starts = np.concatenate([np.zeros(1, np.int64), *(np.diff(some.start_offsets) for some in every)])
        return cls(
            np.concatenate([np.empty((0, 3)), *(some.position for some in every)]),
            np.cumsum(lengths),
            np.concatenate([np.empty(0, np.int64), *(some.fixed + first for some, first in zip(every, chains[:-1], strict=True))]),
            np.concatenate([np.empty(0, np.int64), *(some.mobile + first for some, first in zip(every, chains[:-1], strict=True))]),
            np.concatenate([np.empty((0, 2), np.int32), *(some.start_pairs for some in every)]),
            np.cumsum(starts),
        )

    @property
    def lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of residues of the shorter and of the longer chain of each pair, (n,) each."""
        each = np.diff(self.offsets)
        fixed, mobile = each[self.fixed], each[self.mobile]
        return np.minimum(fixed, mobile), np.maximum(fixed, mobile)

    @property
    def places(self) -> NDArray[np.int64]:
        """First row of each pair in an array of aligned residues, (n + 1,); a pair has a row per residue of its shorter chain."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths[0])])


class FoundSuperpositions(NamedTuple):
    """Superpositions of n pairs of chains, as output arrays.

    Attributes
    ----------
    moves : (n, 12)
        Superpositions of the mobile onto the fixed chain, optimal for the TM-score normalised by the shorter chain.
    scores : (n, 2)
        TM-scores normalised by the fixed and by the mobile chain, each for the best superposition by this score.
    rmsd : (n,)
        RMSD (Å) of the aligned residues under `moves`.
    counts : (n,)
        Number of aligned residues.
    pairs : (p, 2)
        Aligned residues of the fixed and the mobile chain; the residues of pair i start at row ``places[i]``.
    """

    moves: NDArray[np.float64]
    scores: NDArray[np.float64]
    rmsd: NDArray[np.float64]
    counts: NDArray[np.int64]
    pairs: NDArray[np.int32]
    places: NDArray[np.int64]

    @classmethod
    def empty(cls, pairs: ChainPairs) -> FoundSuperpositions:
        """Return arrays with space for all pairs."""
        n, positions = len(pairs.fixed), pairs.places
        return cls(
            np.zeros((n, 12)), np.zeros((n, 2)), np.zeros(n), np.zeros(n, np.int64), np.zeros((int(positions[-1]), 2), np.int32), positions
        )


class SearchSteps(NamedTuple):
    """Numbers that determine the extent of the search for a superposition.

    Attributes
    ----------
    n_fragments
        Number of fragment pairs (at least 2) that are aligned sparsely, with only every fourth residue of long chains.
    n_sparse
        Number of the best fragment pairs that are refined sparsely.
    n_searched
        Number of the best sparse refinements that are aligned and searched fully.
    n_refined
        Number of starting points of all kinds that are refined once.
    n_finished
        Number of the best of these refinements that are refined to convergence.
    coarse_halvings
        Number of fragment lengths in preliminary searches.
    last_step
        Distance between the starts of fragments in final searches, residues; 0 for a quarter of the fragment length.
    minimum_sparse_percent
        Minimum score of the best sparse alignment, in percent of the score of x with itself. Below it, the chains are probably unlike, and
        fewer fragments are refined and searched; 0 to treat all pairs alike.
    n_sparse_if_unlike, n_searched_if_unlike
        `n_sparse` and `n_searched` of such pairs.
    minimum_start_percent
        Minimum score of the best start, in percent of the score of x with itself. Below it, only the best start is refined, without gap
        costs, and final searches use `coarse_halvings`; 0 to treat all pairs alike.
    """

    n_fragments: int
    n_sparse: int
    n_searched: int
    n_refined: int
    n_finished: int
    coarse_halvings: int
    last_step: int
    minimum_sparse_percent: int = 0
    n_sparse_if_unlike: int = 0
    n_searched_if_unlike: int = 0
    minimum_start_percent: int = 0


FULL_STEPS = SearchSteps(240, 64, 12, 10, 8, 2, 40)
"""Extent of the search for two given chains."""
SEARCH_STEPS = FULL_STEPS._replace(minimum_sparse_percent=20, n_sparse_if_unlike=8, n_searched_if_unlike=3, minimum_start_percent=37)
"""Extent of the search for the pairs of a structure search: most are pairs of unlike chains.

The limits were chosen with 60 queries that `benchmarks.superposition` does not use: limits of 25 and 40 changed no TM-score of 0.5 or more.
"""

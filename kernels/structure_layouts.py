"""The arrays that the structure kernels take, the same for the CPU and for CUDA.

A residue's code is a word of 32 bits, in which each alphabet of descriptors has five:

    bits    0-4      5-9        10-14         15-19      20-24   25-29
            residue  secondary  conformation  neighbour  burial  context

The reward of two residues is a sum of whole numbers: for each alphabet that counts, one from a table by the two codes, and, where lengths
and angles are compared as they are, one from a table by their difference.
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
    "EFFORTS",
    "ELEMENT_UNITS",
    "FORBIDDEN",
    "LENGTH_STEPS",
    "MAXIMUM_CELLS",
    "PADDING",
    "ChainPairs",
    "FoundSuperpositions",
    "Rewards",
    "SearchSteps",
    "StructureArrays",
]

BITS, CODES = 5, 32
"""Bits of an alphabet's code in a word, and how many codes that makes."""
PADDING = CODES - 1
"""Code of padding in every alphabet."""
FORBIDDEN = -(1 << 29)
"""Reward of padding in the first table, prohibitive for any alignment."""
ANGLE_STEPS, LENGTH_STEPS = 8192, 2049
"""Number of distinct differences of angles and of lengths; larger length differences are clipped."""
ELEMENT_UNITS = 1 << 16
"""Whole numbers to a reward of one in the alignment of elements."""
MAXIMUM_CELLS = 1 << 26
"""Maximum cells of an alignment by distance, one byte each; longer pairs of chains retain their initial alignment."""


class StructureArrays(NamedTuple):
    """Chains, or one of them, as they are aligned: runs of residues and of elements of secondary structure.

    `offsets` (n + 1,) int64, where the residues of each chain begin; `state` (r,) uint32, their codes; `length` (r,) uint16, of the vector
    to the next Cα; `angle` (r,) uint16, below `ANGLE_STEPS`, between that vector and the next one. `element_offsets` (n + 1,) int64;
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
        """(n,) residues of each chain."""
        return np.diff(self.offsets)

    def chain(self, i: int) -> StructureArrays:
        """Return one chain."""
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
    """Rewards of two aligned residues, and what gaps cost.

    `shifts` (k,) int64, where the code of each alphabet that counts begins in a word; `tables` (k, 32, 32) int32, by the query's and the
    other residue's code; row and column `PADDING` of the first are `FORBIDDEN`. `of_length` (`LENGTH_STEPS`,) and `of_angle`
    (`ANGLE_STEPS`,) int32, by difference; empty where neither counts.
    A gap of k residues costs ``gap_first + (k - 1) * gap_next``, one of k elements the same with those of elements, in `ELEMENT_UNITS`.
    The product of the query's length and the greatest reward is below 2^30.
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
    """n pairs of chains to be superposed, and the alignments to begin with.

    Attributes
    ----------
    position : (r, 3) float64
        Cα of all chains in Å, one chain after the other.
    offsets : (c + 1,) int64
        Where each begins.
    fixed, mobile : (n,) int64
        The chains of each pair by their numbers; the second is moved onto the first.
    start_pairs : (k, 2) int32
        Rows of both, ascending.
    start_offsets : (n + 1,) int64
        An alignment may be empty.
    """

    position: NDArray[np.float64]
    offsets: NDArray[np.int64]
    fixed: NDArray[np.int64]
    mobile: NDArray[np.int64]
    start_pairs: NDArray[np.int32]
    start_offsets: NDArray[np.int64]

    @classmethod
    def joined(cls, every: Sequence[ChainPairs]) -> ChainPairs:
        """Concatenate pairs."""
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
        """(n,) residues of the shorter and of the longer chain of each pair."""
        each = np.diff(self.offsets)
        fixed, mobile = each[self.fixed], each[self.mobile]
        return np.minimum(fixed, mobile), np.maximum(fixed, mobile)

    @property
    def places(self) -> NDArray[np.int64]:
        """(n + 1,) starts of the space for aligned residues of each pair, as many as the shorter chain has residues."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths[0])])


class FoundSuperpositions(NamedTuple):
    """Superpositions of n pairs of chains, to fill.

    Attributes
    ----------
    moves : (n, 12)
        Which move the mobile chain onto the fixed one and are best for the TM-score by the shorter chain.
    scores : (n, 2)
        TM-scores by the lengths of the fixed and of the mobile chain, each with its own best superposition of the pairs.
    rmsd : (n,)
        Å, of the pairs under `moves`.
    counts : (n,)
        How many pairs.
    pairs : (p, 2)
        Rows of the fixed and the mobile chain, those of pair i from ``places[i]`` on.
    """

    moves: NDArray[np.float64]
    scores: NDArray[np.float64]
    rmsd: NDArray[np.float64]
    counts: NDArray[np.int64]
    pairs: NDArray[np.int32]
    places: NDArray[np.int64]

    @classmethod
    def empty(cls, pairs: ChainPairs) -> FoundSuperpositions:
        """Return space for all pairs."""
        n, places = len(pairs.fixed), pairs.places
        return cls(
            np.zeros((n, 12)), np.zeros((n, 2)), np.zeros(n), np.zeros(n, np.int64), np.zeros((int(places[-1]), 2), np.int32), places
        )


class SearchSteps(NamedTuple):
    """Extent of a search.

    Attributes
    ----------
    n_fragments
        Fragment pairs of both chains that are aligned sparsely, by every fourth residue of long chains (2 at least).
    n_sparse
        The best of them, refined sparsely.
    n_searched
        The best of these, aligned and searched in full.
    n_refined
        Starts, other ones included, that are refined once.
    n_finished
        The best of them, refined to convergence.
    coarse_halvings
        Fragment lengths in preliminary searches.
    last_step
        Residues between fragment starts in final searches; 0 for a few of each length.
    """

    n_fragments: int
    n_sparse: int
    n_searched: int
    n_refined: int
    n_finished: int
    coarse_halvings: int
    last_step: int


EFFORTS = {"quick": SearchSteps(160, 32, 6, 8, 3, 2, 40), "thorough": SearchSteps(400, 64, 10, 12, 4, 6, 0)}
"""Efforts for nearly optimal initial alignments, and without any."""

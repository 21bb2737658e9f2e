"""The arrays that the structure kernels take, the same for the processor and for CUDA.

A residue's code is a word of 32 bits, in which each alphabet of descriptors has five:

    bits    0-4      5-9        10-14         15-19      20-24   25-29
            residue  secondary  conformation  neighbour  burial  context

The reward of two residues is a sum of whole numbers: for each alphabet that counts, one from a table by the two codes, and, where lengths
and angles are compared as they are, one from a table by their difference.
"""

from __future__ import annotations

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
    "PADDING",
    "Rewards",
    "StructureArrays",
]

BITS, CODES = 5, 32
"""Bits of an alphabet's code in a word, and how many codes that makes."""
PADDING = CODES - 1
"""The code of what is no residue, in every alphabet."""
FORBIDDEN = -(1 << 29)
"""What the first table gives to padding: no alignment can afford it."""
ANGLE_STEPS, LENGTH_STEPS = 8192, 2049
"""Differences of angles and of lengths that are told apart; lengths that differ by more count as if they differed by the most."""
ELEMENT_UNITS = 1 << 16
"""Whole numbers to a reward of one in the alignment of elements."""


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
        """One chain alone."""
        residues = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        elements = slice(int(self.element_offsets[i]), int(self.element_offsets[i + 1]))
        return StructureArrays(
            self.offsets[i : i + 2] - residues.start, self.state[residues], self.length[residues], self.angle[residues],
            self.element_offsets[i : i + 2] - elements.start, self.element_type[elements], self.element_length[elements],
        )  # fmt: skip


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

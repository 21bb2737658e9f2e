"""Texts, and letters with two strands, as the kernels that write lines take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SamSequences", "TextArrays"]


class TextArrays(NamedTuple):
    """n texts: `letters` uint8, of all; `offsets` (n + 1,) int64, where each begins."""

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class SamSequences(NamedTuple):
    """What is aligned: `letters` and `qualities` (empty where there are none), uint8, flat; `offsets`, (n + 1,) int64, into both.

    `complement` : (256,) uint8, each letter's partner on the other strand. `quality_shift` : taken from each quality.
    """

    letters: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    complement: NDArray[np.uint8]
    quality_shift: int = 0

"""Texts and double-stranded sequences in the form of line-writing kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SamSequences", "TextArrays"]


class TextArrays(NamedTuple):
    """n texts: `characters` uint8, concatenated; `offsets` (n + 1,) int64."""

    characters: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class SamSequences(NamedTuple):
    """Aligned sequences: `characters` and `qualities` (may be empty), uint8, flat; `offsets`, (n + 1,) int64, into both.

    `complement` (256,) uint8 maps symbols to the other strand; `quality_shift` is subtracted from qualities.
    """

    characters: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    complement: NDArray[np.uint8]
    quality_shift: int = 0

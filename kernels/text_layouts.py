"""Arrays of texts and double-stranded sequences for the kernels that write lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SamSequences", "TextArrays"]


class TextArrays(NamedTuple):
    """Texts (n): concatenated `characters`, uint8, and `offsets`, (n + 1,) int64."""

    characters: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class SamSequences(NamedTuple):
    """Reads: concatenated `characters` and `qualities` (may be empty), uint8, and `offsets` of both, (n + 1,) int64.

    `complement` (256,) uint8 maps each symbol to its complement; `quality_shift` is subtracted from qualities.
    """

    characters: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    complement: NDArray[np.uint8]
    quality_shift: int = 0

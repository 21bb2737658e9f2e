"""Kernel that translates databases of nucleotides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from proteoscope import kernels
from proteoscope.engine import formats
from proteoscope.engine.execution.compilation import Kernels

__all__ = ["TRANSLATION"]


def _last() -> Callable[..., Any]:
    return kernels.cpu.translation.frames


def _use() -> None:
    """Translate a sequence of two codons."""
    name = np.frombuffer(b"n", np.uint8)
    name_offsets, no_offsets = np.array([0, 1], np.int64), np.array([0, 0], np.int64)
    residues = np.frombuffer(b"ATGGCC", np.uint8).copy()  # writable as in readers: kernels are compiled for one type of array
    formats.translation.Translation("six-frame", 1, 1).translated(
        formats.Proteins(residues, np.array([0, 6], np.int64), name, name_offsets, name[:0], no_offsets)
    )


TRANSLATION = Kernels("translation of nucleotides", _last, _use, "some seconds", family="sequences")

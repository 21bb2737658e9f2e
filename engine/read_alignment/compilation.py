"""The kernels of a read alignment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.execution.compilation import Kernels

__all__ = ["READS"]


def _last() -> Callable[..., Any]:
    from kernels.cpu.cigars import write_cigars

    return write_cigars


def _use() -> None:
    """Align next to nothing, with numbers of both widths."""
    import numpy as np

    from kernels.cpu.cigars import cigars_of
    from kernels.cpu.gapsmis import ReadSearch
    from kernels.cpu.processor import Processor
    from kernels.gapsmis_layouts import Alignments, GapRules, Sequences

    one, pair = Sequences(np.array([0, 1], np.int8), np.array([0, 2])), np.zeros(1, np.int64)
    for factor in (1, 100_000):
        out = Alignments.none(1, 1)
        rules = GapRules(np.array([[2, -3], [-3, 2]], np.int32) * factor, 5, 2, 1)
        for _ in ReadSearch(Processor(1), one, one, rules).align(pair, pair, out):
            pass
        cigars_of(one, one, pair, pair, out, np.frombuffer(b"AC", np.uint8))


READS = Kernels("kernels of the read alignment", _last, _use)

"""The kernels of a structure search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.row_numbers import ChainRow

__all__ = ["STRUCTURES"]

_RESIDUES, _CHAINS = 40, 3


def _last() -> Callable[..., Any]:
    from proteoscope.kernels.cpu.structure_alignment import score_group

    return score_group


def _use() -> None:
    """Search with next to nothing, in both modes."""
    import numpy as np

    from proteoscope.engine.execution.executor import Executor
    from proteoscope.engine.execution.resources import Resources
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.structure_search.hits import StructureHitSearch
    from proteoscope.engine.structure_search.parameters import StructureSearchParameters
    from proteoscope.engine.structure_search.scoring import work_of
    from proteoscope.engine.structure_search.structures import described
    from proteoscope.engine.structures.chains import Chains
    from proteoscope.engine.structures.compilation import STRUCTURE_KERNELS

    STRUCTURE_KERNELS.use()
    n = _RESIDUES * _CHAINS
    turn = np.arange(n) * 1.7
    position = np.stack([2.3 * np.cos(turn), 2.3 * np.sin(turn), 1.5 * np.arange(n)], axis=1).astype(np.float32)  # a helix
    whole = np.zeros(n, np.int32)
    chains = Chains(
        ("helix",) * _CHAINS, ("",) * _CHAINS, np.arange(_CHAINS + 1) * _RESIDUES, position, np.zeros(n, np.int8),
        np.ones(n, np.uint8), np.full(n, np.nan, np.float32), whole, np.zeros(n, np.uint8), whole,
    )  # fmt: skip
    some, resources = described(chains), Resources(1, progress=Progress())
    first = ChainRow(0)
    for mode in ("sensitive", "published"):
        parameters = StructureSearchParameters().changed(mode=mode)
        with Executor(resources).session(work_of(some.arrays)) as session:
            StructureHitSearch(some, some, parameters, session, resources).hits(first)


STRUCTURES = Kernels("kernels of the structure search", _last, _use, family="structures")

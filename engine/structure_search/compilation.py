"""The kernels of a structure search."""

from __future__ import annotations

import numpy as np

from proteoscope import kernels
from proteoscope.engine import execution, structure_search, structures
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.row_numbers import ChainRow

__all__ = ["STRUCTURES"]

_RESIDUES, _CHAINS = 40, 3


def _use() -> None:
    """Search a few chains, in both modes."""
    structures.compilation.STRUCTURE_KERNELS.use()
    n = _RESIDUES * _CHAINS
    turn = np.arange(n) * 1.7
    position = np.stack([2.3 * np.cos(turn), 2.3 * np.sin(turn), 1.5 * np.arange(n)], axis=1).astype(np.float32)  # a helix
    whole = np.zeros(n, np.int32)
    chains = structures.chains.Chains(
        ("helix",) * _CHAINS,
        ("",) * _CHAINS,
        np.arange(_CHAINS + 1) * _RESIDUES,
        position,
        np.zeros(n, np.int8),
        np.ones(n, np.uint8),
        np.full(n, np.nan, np.float32),
        whole,
        np.zeros(n, np.uint8),
        whole,
    )
    some, resources = structure_search.structures.described(chains), execution.resources.Resources(1, progress=Progress())
    for mode in ("sensitive", "published"):
        parameters = structure_search.parameters.StructureSearchParameters().changed(mode=mode)
        with execution.executor.Executor(resources).session(structure_search.scoring.work_of(some.arrays)) as session:
            comparison = structure_search.candidates.Comparison(some, some, parameters, session, resources)
            structure_search.hits.query_hits(comparison, [ChainRow(0)])


STRUCTURES = Kernels("kernels of the structure search", lambda: kernels.cpu.structure_alignment.score_group, _use, family="structures")

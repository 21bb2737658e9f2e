"""The kernels that read and superpose structures, compiled together at their first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from proteoscope import kernels
from proteoscope.engine import structures
from proteoscope.engine.execution.compilation import Kernels

__all__ = ["STRUCTURE_KERNELS"]


def _use() -> None:
    """Call them with the types of real structures: six residues of an ideal helix."""
    turn = np.radians(100.0) * np.arange(6)
    position = np.stack([2.3 * np.cos(turn), 2.3 * np.sin(turn), 1.5 * np.arange(6)], axis=1)
    structures.pdb_text.plain_pdb(b"ATOM      1  CA  ALA A   1       0.000   0.000   0.000\n")
    kernels.cpu.backbone.gather_backbone(
        np.array([0, 1], np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int8),
        np.zeros(1, np.float32),
        np.zeros(1, np.uint8),
        np.zeros((1, 3)),
        -1.0,
        1.0,
    )
    kernels.cpu.secondary_structure.states_by_hydrogen_bonds(
        np.repeat(position[:, None], 4, axis=1), np.zeros(6, np.bool_), np.array([0, 6], np.int64)
    )
    kernels.cpu.secondary_structure.states_by_distances(position.astype(np.float32))
    offsets = np.array([0, 6], np.int64)
    kernels.cpu.solvent_area.solvent_areas(position, np.ones(6), offsets, np.eye(3), 1.4, 0, 1, np.empty(6))
    structures.superposition.superpose_many(position, position, offsets, np.empty((0, 2), np.int32), np.zeros(2, np.int64), threads=1)
    structures.superposition.superpose(position, position)
    structures.superposition.tm_scores(position, position, np.stack([np.arange(6)] * 2, axis=1))


def _last() -> Any:
    return kernels.cpu.pair_superposition.tm_score_of_pairs


STRUCTURE_KERNELS = Kernels("reading and superposition of structures", _last, _use, family="structures")

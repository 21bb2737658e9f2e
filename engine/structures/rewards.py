"""Rewards (scores) of aligned residue pairs: the published formulas, and tables learned from superposed related chains.

Published rewards (Mrozek et al. 2014, J Mol Model 20:2067, equations 17-19): the weighted sum of exp(-(difference of lengths)^2),
exp(-(difference of angles)^2), the similarity of secondary structures (1, 1/2, 0), and BLOSUM62 scaled to [0, 1]. All terms are positive,
so that alignments of unrelated residues have positive scores too.

Sensitive rewards: a weighted sum over alphabets, minus a constant, of log-odds in bits that the codes of two residues are aligned in
related chains rather than by chance.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.structures.descriptors import ANGLE_UNITS, LENGTH_UNITS, first_code
from proteoscope.kernels.structure_layouts import (
    ANGLE_STEPS,
    CODES,
    ELEMENT_UNITS,
    FORBIDDEN,
    LENGTH_STEPS,
    PADDING,
    Rewards,
    StructureArrays,
)

__all__ = ["GapCosts", "SensitiveTables", "Weights", "element_similarity", "published_rewards", "sensitive_rewards", "sensitive_tables"]

_UNITS_OF_BIT, _PUBLISHED_UNITS = 100.0, 65536.0  # maximum integer units; fewer for queries of tens of thousands of residues
_MAXIMUM_SCORE = 1 << 30
_MATRIX = "BLOSUM62"


@dataclass(frozen=True)
class Weights:
    """Weights of the terms of a reward, relative to the published or learned weights.

    Attributes
    ----------
    length, angle : float
        Weights of lengths and of angles.
    sse : float
        Weight of secondary structure elements; used in the published mode only.
    residue : float
        Weight of the similarity of amino acids.
    """

    length: float = 1.0
    angle: float = 1.0
    sse: float = 1.0
    residue: float = 1.0


@dataclass(frozen=True)
class GapCosts:
    """Gap costs, in units of the rewards.

    Attributes
    ----------
    first, next : float
        Cost of the first and of each further residue of a gap.
    first_element, next_element : float
        Cost of the first and of each further secondary structure element of a gap in phase 1.
    """

    first: float
    next: float
    first_element: float
    next_element: float


@dataclass(frozen=True)
class SensitiveTables:
    """Tables for the rewards of the sensitive mode.

    Attributes
    ----------
    tables : dict of str to ndarray of float64, shape (32, 32)
        Log-odds of pairs of codes in bits, by alphabet.
    weights : dict of str to float
        Weight of each table by alphabet.
    baseline : float
        Bits subtracted from the reward of every pair.
    gap_first, gap_next : float
        Costs of the first and of each further residue of a gap, in bits.
    """

    tables: dict[str, NDArray[np.float64]]
    weights: dict[str, float]
    baseline: float
    gap_first: float
    gap_next: float

    @classmethod
    def from_json(cls, content: Any) -> SensitiveTables:
        """Create tables from the parsed content of their JSON file."""
        tables = {}
        for name, rows in content["tables"].items():
            tables[name] = np.zeros((CODES, CODES))
            tables[name][: len(rows), : len(rows)] = rows
        return cls(tables, dict(content["weights"]), content["baseline"], content["gap_first"], content["gap_next"])


@lru_cache(maxsize=1)
def sensitive_tables() -> SensitiveTables:
    """Return the tables that are shipped with the program."""
    return SensitiveTables.from_json(json.loads(resources.path("structures", "rewards.json").read_text(encoding="utf-8")))


def element_similarity() -> NDArray[np.float64]:
    """Return the similarity of each pair of the states coil, helix and strand, (3, 3).

    The similarity is 1 for two helices or two strands, 0 for a helix and a strand, and 1/2 for coil with any state (rules i-iii of the
    publication).
    """
    return np.array([[0.5, 0.5, 0.5], [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]])


def published_rewards(query: StructureArrays, weights: Weights, gaps: GapCosts) -> tuple[Rewards, float]:
    """Return the published rewards of a query, as integers.

    Parameters
    ----------
    query : StructureArrays
        Descriptors of the query.
    weights : Weights
        Weights of the terms.
    gaps : GapCosts
        Gap costs in units of the rewards.

    Returns
    -------
    rewards : Rewards
        Rewards and gap costs as integers.
    units : float
        Factor by which rewards were multiplied before rounding.
    """
    matrix = read_matrix(_MATRIX).scores.astype(np.float64)
    tables = np.zeros((2, CODES, CODES))
    tables[0, : len(matrix), : len(matrix)] = weights.residue * (matrix - matrix.min()) / (matrix.max() - matrix.min())
    tables[1, :3, :3] = weights.sse * element_similarity()
    by_length = weights.length * np.exp(-((np.arange(LENGTH_STEPS) / LENGTH_UNITS) ** 2))
    by_angle = weights.angle * np.exp(-((np.arange(ANGLE_STEPS) / ANGLE_UNITS) ** 2))
    return _rewards(query, ("residue", "secondary"), tables, by_length, by_angle, gaps, _PUBLISHED_UNITS)


def sensitive_rewards(query: StructureArrays, tables: SensitiveTables, weights: Weights, gaps: GapCosts) -> tuple[Rewards, float]:
    """Return the learned rewards of a query, as integers.

    The length weight applies to the distances (separation, burial and neighbour), and the angle weight to the conformation, which includes
    secondary structure. The weight of secondary structure applies to the published mode only.

    Parameters
    ----------
    query : StructureArrays
        Descriptors of the query.
    tables : SensitiveTables
        Learned tables.
    weights : Weights
        Weights of the terms.
    gaps : GapCosts
        Gap costs in bits.

    Returns
    -------
    rewards : Rewards
        Rewards and gap costs as integers.
    units : float
        Factor by which rewards in bits were multiplied before rounding.
    """
    factors = {
        "residue": weights.residue,
        "conformation": weights.angle,
        "neighbour": weights.length,
        "separation": weights.length,
        "burial": weights.length,
    }
    names = tuple(tables.tables)
    summed = np.stack([tables.tables[name] * tables.weights[name] * factors[name] for name in names])
    summed[0] -= tables.baseline
    return _rewards(query, names, summed, np.zeros(0), np.zeros(0), gaps, _UNITS_OF_BIT)


def _rewards(
    query: StructureArrays,
    names: tuple[str, ...],
    tables: NDArray[np.float64],
    by_length: NDArray[np.float64],
    by_angle: NDArray[np.float64],
    gaps: GapCosts,
    units: float,
) -> tuple[Rewards, float]:
    """Return rounded multiples of rewards, and their factor: `units`, or less if scores of the query would otherwise exceed 32 bits."""
    most = tables.max(axis=(1, 2)).sum() + by_length.max(initial=0.0) + by_angle.max(initial=0.0)
    while len(query.state) * (most * units + len(names) + 2) >= _MAXIMUM_SCORE:
        units /= 2
    whole = np.rint(tables * units).astype(np.int32)
    whole[0, PADDING, :] = whole[0, :, PADDING] = FORBIDDEN
    first, following = (min(_MAXIMUM_SCORE, round(cost * units)) for cost in (gaps.first, gaps.next))
    elements = (min(_MAXIMUM_SCORE, round(cost * ELEMENT_UNITS)) for cost in (gaps.first_element, gaps.next_element))
    shifts = np.array([first_code(name) for name in names], np.int64)
    rewards = Rewards(
        shifts, whole, np.rint(by_length * units).astype(np.int32), np.rint(by_angle * units).astype(np.int32), first, following, *elements
    )
    return rewards, units

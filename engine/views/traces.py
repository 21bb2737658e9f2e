"""Superposed chains: the query, and hits moved onto it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.row_numbers import ChainRow
from proteoscope.engine.structure_search.hit_chains import FoundChain, parse_cigar_pairs, parse_transformation
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.colouring import ChainEvidence
from proteoscope.engine.structures.superposition import superpose

__all__ = [
    "RESIDUE_NAMES",
    "ResiduePairs",
    "Trace",
    "create_query_trace",
    "moved",
    "residue_label",
    "superpose_chain",
    "superpose_hit",
    "transformation",
]

RESIDUE_NAMES = {
    "A": "Ala",
    "R": "Arg",
    "N": "Asn",
    "D": "Asp",
    "C": "Cys",
    "Q": "Gln",
    "E": "Glu",
    "G": "Gly",
    "H": "His",
    "I": "Ile",
    "L": "Leu",
    "K": "Lys",
    "M": "Met",
    "F": "Phe",
    "P": "Pro",
    "S": "Ser",
    "T": "Thr",
    "W": "Trp",
    "Y": "Tyr",
    "V": "Val",
    "U": "Sec",
    "O": "Pyl",
}
_FARTHEST = 99_999.0
"""Maximum absolute coordinate in Å."""


@dataclass(frozen=True, eq=False)
class ResiduePairs:
    """Residues of the query and of a hit that are aligned. `rows`: (k, 2) of both chains. `distance`: (k,) Å between their Cα."""

    rows: NDArray[np.int32]
    distance: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """A chain in the query's frame.

    Attributes
    ----------
    name
        Name of the chain.
    position
        (n, 3) float32, Cα in Å, NaN if invalid.
    source
        The chain from its file.
    pairs
        Aligned pairs with the query, None for the query.
    rotation, translation
        Transformation that was applied.
    hit
        Row of the table, empty for the query.
    evidence
        Peptide evidence of residues, if shown.
    """

    name: str
    position: NDArray[np.float32]
    source: FoundChain
    pairs: ResiduePairs | None = None
    rotation: NDArray[np.float64] = field(default_factory=lambda: np.eye(3))
    translation: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    hit: Mapping[str, Any] = field(default_factory=dict)
    evidence: ChainEvidence | None = None

    def __len__(self) -> int:
        return len(self.position)

    @property
    def chains(self) -> Chains:
        """Columns of the chain, which is the only one."""
        return self.source.chains

    @property
    def path(self) -> Path:
        """Its file, which may be gone."""
        return self.source.path

    @cached_property
    def residues(self) -> str:
        """Residues of the chain."""
        return self.chains.sequence(ChainRow(0))

    @cached_property
    def partner(self) -> NDArray[np.int64]:
        """(n,) the query's row that each residue is aligned with, -1 for none."""
        partner = np.full(len(self), -1, np.int64)
        if self.pairs is not None:
            partner[self.pairs.rows[:, 1]] = self.pairs.rows[:, 0]
        return partner

    def label(self, row: int) -> str:
        """Return a residue's name and author number, such as ``Leu 45``."""
        return residue_label(self.chains, self.residues, row)


def residue_label(chains: Chains, residues: str, row: int) -> str:
    """Return a residue's name and author number."""
    code = int(chains.insertion[row])
    symbol = residues[row]
    return f"{RESIDUE_NAMES.get(symbol, symbol)} {int(chains.author_number[row])}{chr(code) if code else ''}"


def create_query_trace(chain: FoundChain, evidence: ChainEvidence | None = None) -> Trace:
    """Return the query, unmoved."""
    return Trace(chain.chains.names[0], _places(chain.chains.position), chain, evidence=evidence)


def superpose_hit(hit: Mapping[str, Any], query: FoundChain, target: FoundChain) -> Trace:
    """Move a hit onto the query by its stored transformation, otherwise by least squares over its pairs (Kabsch)."""
    pairs = parse_cigar_pairs(str(hit["cigar"]))
    pairs = pairs[(pairs[:, 0] < len(query.chains.position)) & (pairs[:, 1] < len(target.chains.position))]
    rotation, translation = transformation(hit, query.chains.position, target.chains.position, pairs)
    position = moved(target.chains.position, rotation, translation)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.asarray(query.chains.position, np.float64)[pairs[:, 0]] - position[pairs[:, 1]]
        distance = np.linalg.norm(apart, axis=1)
    return Trace(target.chains.names[0], position, target, ResiduePairs(pairs, distance), rotation, translation, hit)


def superpose_chain(query: Trace, chain: FoundChain, rows: NDArray[np.integer], evidence: ChainEvidence | None = None) -> Trace:
    """Superpose a chain on another by least squares over aligned rows (k, 2)."""
    rotation, translation = _least_squares(query.position, chain.chains.position, rows)
    position = moved(chain.chains.position, rotation, translation)
    distance = np.linalg.norm(query.position[rows[:, 0]].astype(np.float64) - position[rows[:, 1]], axis=1)
    pairs = ResiduePairs(rows.astype(np.int32), distance)
    return Trace(chain.chains.names[0], position, chain, pairs, rotation, translation, {"target_index": str(chain.path)}, evidence)


def transformation(
    hit: Mapping[str, Any], query: NDArray[np.floating], target: NDArray[np.floating], pairs: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rotation (3, 3) and translation (3,) that move a hit's target onto its query."""
    try:
        rotation, translation = parse_transformation(hit)
    except (KeyError, ValueError, TypeError, AttributeError):
        return _least_squares(query, target, pairs)
    if not np.isfinite(rotation).all() or not np.isfinite(translation).all():
        return _least_squares(query, target, pairs)
    return rotation, translation


def moved(position: NDArray[np.floating], rotation: NDArray[np.float64], translation: NDArray[np.float64]) -> NDArray[np.float32]:
    """Coordinates (n, 3) moved; NaN where they are no places."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _places(np.asarray(position, np.float64) @ rotation.T + translation)


def _places(position: NDArray[np.floating]) -> NDArray[np.float32]:
    position = np.asarray(position, np.float64)
    with np.errstate(invalid="ignore"):
        is_place = (np.abs(position) <= _FARTHEST).all(axis=1)
    return np.where(is_place[:, None], position, np.nan).astype(np.float32)


def _least_squares(
    query: NDArray[np.floating], target: NDArray[np.floating], pairs: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    fixed, mobile = _places(query)[pairs[:, 0]], _places(target)[pairs[:, 1]]
    is_place = np.isfinite(fixed).all(axis=1) & np.isfinite(mobile).all(axis=1)
    fixed, mobile = fixed[is_place].astype(np.float64), mobile[is_place].astype(np.float64)
    if len(fixed) < 3:
        # Fewer points do not say how it is turned.
        return np.eye(3), fixed.mean(axis=0) - mobile.mean(axis=0) if len(fixed) else np.zeros(3)
    rotation, translation, _ = superpose(fixed, mobile)
    return rotation, translation

"""Cα traces of superposed chains: the query, and hits in the coordinate system of the query."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow
from proteoscope.engine.structure_search.hit_chains import ChainInFile, parse_cigar_pairs, parse_transformation
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
    """Aligned pairs (k) of a residue of the query and a residue of a hit.

    `rows` are the residues of query and hit, (k, 2); `distance` is the distance of their Cα atoms in Å, (k,).
    """

    rows: NDArray[np.int32]
    distance: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Chain of n residues in the coordinate system of the query.

    Attributes
    ----------
    name
        Name of the chain.
    position
        Cα coordinates in Å, NaN if invalid, shape (n, 3), float32.
    source
        Chain as read from its file.
    pairs
        Pairs of residues aligned with the query; None for the query itself.
    rotation, translation
        Applied transformation, shape (3, 3) and (3,).
    hit
        Values of the hit by column, empty for the query.
    evidence
        Peptide evidence of the residues, or None.
    """

    name: str
    position: NDArray[np.float32]
    source: ChainInFile
    pairs: ResiduePairs | None = None
    rotation: NDArray[np.float64] = field(default_factory=lambda: np.eye(3))
    translation: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    hit: Mapping[str, Any] = field(default_factory=dict)
    evidence: ChainEvidence | None = None

    def __len__(self) -> int:
        return len(self.position)

    @property
    def chains(self) -> Chains:
        """Residue data of the chain, as a `Chains` object with one chain."""
        return self.source.chains

    @property
    def path(self) -> Path:
        """File of the chain, which may no longer exist."""
        return self.source.path

    @cached_property
    def residues(self) -> str:
        """Residue symbols of the chain."""
        return self.chains.sequence(ChainRow(0))

    @cached_property
    def partner(self) -> NDArray[np.int64]:
        """Query residue aligned with each residue, -1 for none, shape (n,)."""
        partner = np.full(len(self), -1, np.int64)
        if self.pairs is not None:
            partner[self.pairs.rows[:, 1]] = self.pairs.rows[:, 0]
        return partner

    def label(self, row: int) -> str:
        """Return the name and the number in the structure file of a residue, such as ``Leu 45``."""
        return residue_label(self.chains, self.residues, row)


def residue_label(chains: Chains, residues: str, row: int) -> str:
    """Return the name and the number in the structure file of a residue, with its insertion code."""
    code = int(chains.insertion[row])
    symbol = residues[row]
    return f"{RESIDUE_NAMES.get(symbol, symbol)} {int(chains.author_number[row])}{chr(code) if code else ''}"


def create_query_trace(chain: ChainInFile, evidence: ChainEvidence | None = None) -> Trace:
    """Return the trace of the query, with unchanged coordinates."""
    return Trace(chain.chains.names[0], _places(chain.chains.position), chain, evidence=evidence)


def superpose_hit(hit: Mapping[str, Any], query: ChainInFile, target: ChainInFile) -> Trace:
    """Return the trace of a hit superposed on the query.

    The chain is moved by the transformation of the hit or, if it is invalid, by a least-squares fit of the aligned pairs (Kabsch).
    """
    pairs = parse_cigar_pairs(str(hit["cigar"]))
    pairs = pairs[(pairs[:, 0] < len(query.chains.position)) & (pairs[:, 1] < len(target.chains.position))]
    rotation, translation = transformation(hit, query.chains.position, target.chains.position, pairs)
    position = moved(target.chains.position, rotation, translation)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.asarray(query.chains.position, np.float64)[pairs[:, 0]] - position[pairs[:, 1]]
        distance = np.linalg.norm(apart, axis=1)
    return Trace(target.chains.names[0], position, target, ResiduePairs(pairs, distance), rotation, translation, hit)


def superpose_chain(query: Trace, chain: ChainInFile, rows: NDArray[np.integer], evidence: ChainEvidence | None = None) -> Trace:
    """Return the trace of a chain superposed on `query` by a least-squares fit of the aligned residues `rows`, (k, 2)."""
    rotation, translation = _least_squares(query.position, chain.chains.position, rows)
    position = moved(chain.chains.position, rotation, translation)
    distance = np.linalg.norm(query.position[rows[:, 0]].astype(np.float64) - position[rows[:, 1]], axis=1)
    pairs = ResiduePairs(rows.astype(np.int32), distance)
    return Trace(chain.chains.names[0], position, chain, pairs, rotation, translation, {"target_index": str(chain.path)}, evidence)


def transformation(
    hit: Mapping[str, Any], query: NDArray[np.floating], target: NDArray[np.floating], pairs: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rotation (3, 3) and translation (3,) that superpose the target of a hit on its query: those of `hit`, if valid.

    Otherwise, they are computed by a least-squares fit of `pairs`.
    """
    try:
        rotation, translation = parse_transformation(hit)
    except (KeyError, ValueError, TypeError, AttributeError):
        return _least_squares(query, target, pairs)
    if not np.isfinite(rotation).all() or not np.isfinite(translation).all():
        return _least_squares(query, target, pairs)
    return rotation, translation


def moved(position: NDArray[np.floating], rotation: NDArray[np.float64], translation: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return rotated and translated coordinates, shape (n, 3); invalid coordinates become NaN."""
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
        # Fewer than three points do not determine a rotation.
        return np.eye(3), fixed.mean(axis=0) - mobile.mean(axis=0) if len(fixed) else np.zeros(3)
    rotation, translation, _ = superpose(fixed, mobile)
    return rotation, translation

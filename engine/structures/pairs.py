"""Pairs of aligned residues as a table: what they are, what their authors call them, and how far they lie apart once superposed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.sequences.matrices import LETTERS
from engine.structures.chains import Chains

__all__ = ["AlignedPairs", "aligned_pairs", "residue_labels", "residue_names", "sound_pairs"]

_NAMES = {
    "A": "ALA", "B": "ASX", "C": "CYS", "D": "ASP", "E": "GLU", "F": "PHE", "G": "GLY", "H": "HIS", "I": "ILE", "J": "XLE", "K": "LYS",
    "L": "LEU", "M": "MET", "N": "ASN", "O": "PYL", "P": "PRO", "Q": "GLN", "R": "ARG", "S": "SER", "T": "THR", "U": "SEC", "V": "VAL",
    "W": "TRP", "Y": "TYR", "Z": "GLX",
}  # fmt: skip
_OF_CODES = np.array([_NAMES.get(letter, "UNK") for letter in LETTERS])


@dataclass(frozen=True)
class AlignedPairs:
    """Columns with a row for each pair.

    Attributes
    ----------
    query_row, target_row : (k,) int32, rows of the chains. query_name, target_name : (k,) texts, three letters.
    query_number, target_number : (k,) texts, the authors' numbers with insertion codes. distance : (k,) float64, Å.
    """

    query_row: NDArray[np.int32]
    target_row: NDArray[np.int32]
    query_name: NDArray[np.str_]
    target_name: NDArray[np.str_]
    query_number: NDArray[np.str_]
    target_number: NDArray[np.str_]
    distance: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.distance)


def residue_names(chains: Chains) -> NDArray[np.str_]:
    """(r,) names of residues, three letters; UNK for X."""
    names: NDArray[np.str_] = _OF_CODES[chains.residue]
    return names


def residue_labels(chains: Chains) -> NDArray[np.str_]:
    """(r,) the authors' numbers of residues with their insertion codes, as ``52A``."""
    codes = [chr(int(code)) if code else "" for code in chains.insertion]
    return np.char.add(chains.author_number.astype(np.str_), np.array(codes, np.str_) if codes else np.empty(0, np.str_))


def sound_pairs(pairs: NDArray[np.integer], n_query: int, n_target: int) -> NDArray[np.int32]:
    """The pairs (k, 2) whose rows both chains have; a table that was read may name others."""
    pairs = np.asarray(pairs, np.int32).reshape(-1, 2)
    return pairs[((pairs >= 0) & (pairs < [n_query, n_target])).all(axis=1)]


def aligned_pairs(
    query: Chains, target: Chains, pairs: NDArray[np.integer], rotation: NDArray[np.floating], translation: NDArray[np.floating]
) -> AlignedPairs:  # fmt: skip
    """The pairs of a query and a target (each alone in its columns), the target moved by x' = R x + t."""
    pairs = sound_pairs(pairs, int(query.offsets[-1]), int(target.offsets[-1]))
    i, j = pairs.T
    moved = target.position[j].astype(np.float64) @ np.asarray(rotation, np.float64).T + translation
    distance = np.linalg.norm(query.position[i] - moved, axis=1)
    names, numbers = (residue_names(query), residue_names(target)), (residue_labels(query), residue_labels(target))
    return AlignedPairs(i, j, names[0][i], names[1][j], numbers[0][i], numbers[1][j], distance)

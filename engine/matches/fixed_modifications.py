"""Modifications carried by every residue of a type: fixed modifications, or products of sample preparation."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.modifications import Position, parse_modification, unimod, write_mass
from proteoscope.engine.errors import ParameterError

__all__ = ["C_END", "NONE_FIXED", "N_END", "FixedModifications", "fixed_of_parameters", "on_all_residues"]

N_END, C_END = "N-term", "C-term"
_ENDS: dict[str, Position] = {N_END: "peptide N-term", C_END: "peptide C-term"}
_LEAST = 3  # minimum number of residues of a type, or of termini; fewer may all carry the same modification by chance
_OF_PREPARATION = frozenset({"Chemical derivative", "Isotopic label"})
_OF_THIOLS = frozenset({"Artefact", "Multiple"})  # Unimod's classes of other modifications that block cysteines (acrylamide, MMTS)

FixedModifications = frozenset[tuple[str, str]]
"""Pairs of a modification name and its residue, `N_END` or `C_END`; every such residue or terminus carries the modification."""
NONE_FIXED: FixedModifications = frozenset()


def fixed_of_parameters(parameters: Mapping[str, Any]) -> FixedModifications:
    """Return the fixed modifications in the parameters of a run; invalid entries are skipped.

    Examples
    --------
    >>> sorted(fixed_of_parameters({"fixed_modifications": ["Carbamidomethyl (C)", "TMT6plex (N-term)"]}))
    [('Carbamidomethyl', 'C'), ('TMT6plex', 'N-term')]
    """
    result = set[tuple[str, str]]()
    named = parameters.get("fixed_modifications")
    for text in named if isinstance(named, list | tuple) else ():
        with suppress(ParameterError):
            modification = parse_modification(str(text))
            ends = [end for end, position in _ENDS.items() if position == modification.position]
            # Peptide texts name a modification that is not in Unimod by its mass.
            names = {modification.name} if modification.unimod_id is not None else {modification.name, write_mass(modification.mass)}
            result |= {(name, index) for name in names for index in (ends or modification.residues)}
    return frozenset(result)


def on_all_residues(
    sequences: Sequence[str], lengths: NDArray[np.int64], position: NDArray[np.int64], names: Sequence[str]
) -> FixedModifications:
    """Return the sample-preparation modifications that every residue of a type (or every peptide terminus) in the given peptides carries.

    Sample-preparation modifications are those that Unimod classifies as such. Biological modifications are not returned, even if all
    residues carry them, as every tyrosine of enriched peptides may do.

    Parameters
    ----------
    sequences : sequence of str, length n
        Peptide sequences, A to Z.
    lengths : ndarray of int64, shape (n,)
        Number of modifications per peptide.
    position : ndarray of int64, shape (m,)
        Position of each modification: residue number from 1, 0 for the N-terminus, sequence length + 1 for the C-terminus.
    names : sequence of str, length m
        Name of each modification.
    """
    residues = np.array([len(sequence) for sequence in sequences], np.int64)
    owner = np.repeat(np.arange(len(sequences)), lengths)
    is_inside = (position >= 1) & (position <= residues[owner])
    symbols = np.frombuffer("".join(sequences).encode(), np.uint8)
    at = np.where(is_inside, segment_offsets(residues)[owner] + position - 1, 0)
    index = np.where(is_inside, np.append(symbols, 0)[at], np.where(position <= 0, 0, 1))  # 0 and 1 mean termini
    distinct, code = np.unique(np.array(names, np.str_), return_inverse=True)
    # A residue that carries the same modification twice counts once.
    carried = np.unique(np.stack([code.reshape(-1), index, owner, position]), axis=1)[:2]
    pairs, counts = np.unique(carried, axis=1, return_counts=True)
    totals = np.bincount(symbols, minlength=256)
    totals[:2] = len(sequences)
    result = set[tuple[str, str]]()
    for (number, symbol), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        if count >= max(_LEAST, totals[symbol]):
            where = (N_END, C_END)[symbol] if symbol < 2 else chr(symbol)
            result |= {(str(distinct[number]), where)} if _is_from_preparation(str(distinct[number]), where) else set()
    return frozenset(result)


def _is_from_preparation(name: str, where: str) -> bool:
    """Return True if Unimod classifies the modification `name` at the residue or terminus `where` as sample preparation."""
    if name not in unimod():
        return False
    sites = unimod().by_name(name).sites_covering("" if where in _ENDS else where, _ENDS.get(where, "anywhere"))
    wanted = _OF_PREPARATION | _OF_THIOLS if where == "C" else _OF_PREPARATION
    return any(site.classification in wanted for site in sites)

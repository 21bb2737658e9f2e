"""Data layouts of the digestion kernels on CPU and GPU: rules, entries of a digest, and the peptide dictionary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DICTIONARY_TYPES",
    "DigestionRules",
    "FormSources",
    "KnownFormRules",
    "KnownForms",
    "KnownSites",
    "PeptideDictionary",
    "PeptideEntries",
]

_ENTRY_TYPES = (np.int64, np.uint64, np.uint32, np.uint8, np.uint8, np.uint32)
DICTIONARY_TYPES: dict[str, type[np.generic]] = {
    "mass": np.float64,
    "position": np.uint32,
    "length": np.uint8,
    "flags": np.uint8,
    "letters": np.uint32,
    "pointer": np.int64,
    "occurrence": np.uint32,
}
"""Data types of the columns of a `PeptideDictionary`."""


class DigestionRules(NamedTuple):
    """Rules of digestion; masses are int64 in units of 1e-9 Da.

    Attributes
    ----------
    cleaves : (26, 26) bool
        True if the enzyme cuts between a residue and the next.
    residue_mass : (26,) int64
        Residue masses with fixed modifications; negative for symbols without a mass.
    terminal_mass
        Mass of water and fixed terminal modifications.
    required_ends
        2 for specific, 1 for semi-specific, 0 for non-specific digestion.
    maximum_missed
        Maximum number of missed cleavages within a peptide (counted but not limited for non-specific digestion).
    minimum_length, maximum_length
        Limits of the peptide length in residues.
    clip_methionine
        True to also digest proteins without their initial methionine.
    minimum_mass, maximum_mass
        Limits of the peptide mass.
    bucket_width
        Width of a mass bucket; bucket b starts at b * bucket_width.
    """

    cleaves: NDArray[np.bool_]
    residue_mass: NDArray[np.int64]
    terminal_mass: int
    required_ends: int
    maximum_missed: int
    minimum_length: int
    maximum_length: int
    clip_methionine: bool
    minimum_mass: int
    maximum_mass: int
    bucket_width: int


class PeptideEntries(NamedTuple):
    """Enumerated peptides, one row per occurrence.

    Attributes
    ----------
    mass : int64
        Mass in units of 1e-9 Da.
    signature : uint64
        Hash of the sequence.
    position : uint32
        Position of the first residue.
    length : uint8
        Number of residues.
    flags : uint8
        Bits 0 and 1: the peptide is at the N- and the C-terminus of a protein; from bit 2 on: number of missed cleavages.
    letters : uint32
        Bit k is set if the k-th capital occurs among the residues.
    """

    mass: NDArray[np.int64]
    signature: NDArray[np.uint64]
    position: NDArray[np.uint32]
    length: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    letters: NDArray[np.uint32]

    @classmethod
    def empty(cls, n: int) -> PeptideEntries:
        """Return entries with space for n peptides."""
        columns: list[NDArray] = [np.empty(n, kind) for kind in _ENTRY_TYPES]
        return cls(*columns)

    def part(self, first: int, last: int) -> PeptideEntries:
        """Return the rows `first:last`."""
        columns: list[NDArray] = [column[first:last] for column in self]
        return PeptideEntries(*columns)


class PeptideDictionary(NamedTuple):
    """Distinct peptides sorted by mass, with lists of their positions.

    Attributes
    ----------
    mass : float64
        Mass, Da.
    position, length, flags, letters
        Meaning as in `PeptideEntries`; `position` is the first occurrence, and the terminus bits of all occurrences are combined.
    pointer : int64
        Start of each peptide's positions in `occurrence` (o,) uint32, where they ascend.
    """

    mass: NDArray[np.float64]
    position: NDArray[np.uint32]
    length: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    letters: NDArray[np.uint32]
    pointer: NDArray[np.int64]
    occurrence: NDArray[np.uint32]

    @classmethod
    def empty(cls, n: int) -> PeptideDictionary:
        """Return a dictionary with space for n peptides and positions."""
        columns: list[NDArray] = [np.empty(n, kind) for kind in DICTIONARY_TYPES.values()]
        return cls(*columns)


class KnownSites(NamedTuple):
    """Modifications that databases list at residues of proteins.

    Attributes
    ----------
    position, modification : (s,) uint32
        Residue (in all proteins) and index of the modification (uint8), sorted by both, without duplicates.
    place : (m,) int64
        Rule for the position of each modification, as in `proteoscope.kernels.layouts.ModificationArrays`: it may be carried only by
        peptides that start (1, 3) or end (2, 4) with the residue, or by all peptides (0).
    is_on_residue : (m,) bool
        True if the modification is on the residue, False if on the terminus.
    mass : (m,) float64
        Mass (Da) added to a peptide.
    """

    position: NDArray[np.uint32]
    modification: NDArray[np.uint8]
    place: NDArray[np.int64]
    is_on_residue: NDArray[np.bool_]
    mass: NDArray[np.float64]


class KnownFormRules(NamedTuple):
    """Rules for peptidoforms with known modifications.

    Attributes
    ----------
    maximum_modifications
        Maximum number of modifications per peptidoform.
    maximum_forms
        Maximum number of peptidoforms per peptide.
    variable_mass, variable_mask, variable_place
        Variable modifications of the search, as in `proteoscope.kernels.layouts.ModificationArrays`.
    """

    maximum_modifications: int
    maximum_forms: int
    variable_mass: NDArray[np.float64]
    variable_mask: NDArray[np.uint32]
    variable_place: NDArray[np.int64]


class FormSources(NamedTuple):
    """Inputs for listing peptidoforms with known modifications.

    Attributes
    ----------
    dictionary
        `PeptideDictionary`, whose `pointer` is (n + 1,).
    residues
        (r,) uint8, residues of the proteins; from index `first_decoy` on, residues of decoys, whose modifications do not apply to target
        peptides.
    """

    dictionary: PeptideDictionary
    residues: NDArray[np.uint8]
    first_decoy: int
    sites: KnownSites
    rules: KnownFormRules


class KnownForms(NamedTuple):
    """Peptidoforms (n) with known modifications.

    Attributes
    ----------
    peptide
        (n,) int64, row of the dictionary.
    mass
        (n,) float64, dalton.
    site, modification
        (n, s) uint8, in the layout of `proteoscope.kernels.layouts.PeptideArrays.known_site` and `known_modification`.
    """

    peptide: NDArray[np.int64]
    mass: NDArray[np.float64]
    site: NDArray[np.uint8]
    modification: NDArray[np.uint8]

    @classmethod
    def empty(cls, n: int, maximum_modifications: int) -> KnownForms:
        """Return arrays with space for n peptidoforms."""
        shape = n, maximum_modifications
        return cls(np.empty(n, np.int64), np.empty(n), np.empty(shape, np.uint8), np.empty(shape, np.uint8))

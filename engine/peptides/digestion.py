"""Settings of the digestion: enzyme, limits of length and mass, and fixed modifications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.enzymes import Enzyme, enzyme
from proteoscope.engine.chemistry.masses import RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification

__all__ = ["Digestion", "DigestionSettings"]

_ENDS = {"specific": 2, "semi-specific": 1, "non-specific": 0}


class DigestionSettings(Protocol):
    """Settings of the digestion; attributes are named like the parameters of searches.

    Attributes
    ----------
    enzyme : str
        Name of the enzyme.
    missed_cleavages : int
        Maximum number of missed cleavages.
    minimum_length, maximum_length : int
        Bounds of the peptide length in residues.
    clip_methionine : bool
        True to digest proteins also without their initial methionine.
    minimum_mass, maximum_mass : float
        Bounds of the peptide mass in dalton.
    fixed_modifications : tuple of str
        Fixed modifications, such as ``Carbamidomethyl (C)``.
    """

    enzyme: str
    missed_cleavages: int
    minimum_length: int
    maximum_length: int
    clip_methionine: bool
    minimum_mass: float
    maximum_mass: float
    fixed_modifications: tuple[str, ...]


@dataclass(frozen=True)
class Digestion:
    """Settings that determine the peptides of proteins.

    Attributes
    ----------
    enzyme : Enzyme
        Enzyme.
    required_ends : int
        Number of peptide ends at which the enzyme must cut: 2 specific, 1 semi-specific, 0 non-specific.
    maximum_missed : int
        Maximum number of missed cleavages.
    minimum_length, maximum_length : int
        Bounds of the peptide length in residues.
    clip_methionine : bool
        True to digest proteins also without their initial methionine.
    minimum_mass, maximum_mass : float
        Bounds of the peptide mass in dalton.
    fixed : tuple of SearchModification
        Fixed modifications.
    """

    enzyme: Enzyme
    required_ends: int
    maximum_missed: int
    minimum_length: int
    maximum_length: int
    clip_methionine: bool
    minimum_mass: float
    maximum_mass: float
    fixed: tuple[SearchModification, ...] = ()

    @classmethod
    def from_settings(cls, settings: DigestionSettings, specificity: str) -> Digestion:
        """Return the digestion that settings describe.

        Parameters
        ----------
        settings : DigestionSettings
            Settings of a search.
        specificity : str
            ``specific``, ``semi-specific`` or ``non-specific``.
        """
        agent = enzyme(settings.enzyme)
        return cls(
            agent,
            0 if agent.is_unspecific else _ENDS[specificity],
            settings.missed_cleavages,
            settings.minimum_length,
            settings.maximum_length,
            settings.clip_methionine,
            settings.minimum_mass,
            settings.maximum_mass,
            tuple(parse_modification(name) for name in settings.fixed_modifications),
        )

    def content(self) -> dict[str, Any]:
        """Return all settings that determine the peptides and their masses, for cache keys.

        The content has the bonds that the enzyme cuts and the masses of modifications, not their names. If a later version of the program
        corrects a cleavage rule or a mass, the key is therefore different although the name is the same.
        """
        masses = [None if np.isnan(mass) else mass for mass in self.residue_mass().tolist()]
        return {
            "bonds": np.packbits(self.enzyme.cleavage_table()).tobytes().hex(),
            "required_ends": self.required_ends,
            "missed_cleavages": self.maximum_missed,
            "lengths": [self.minimum_length, self.maximum_length],
            "masses": [self.minimum_mass, self.maximum_mass],
            "clip_methionine": self.clip_methionine,
            "residue_masses": masses,
            "terminal_masses": [WATER_MASS, self.terminal_mass("N-term"), self.terminal_mass("C-term")],
        }

    def residue_mass(self) -> NDArray[np.float64]:
        """Return the masses of the residues A to Z with fixed modifications in dalton, shape (26,); NaN for residues without a mass."""
        masses = RESIDUE_MASS.copy()
        for modification in self.fixed:
            if modification.position == "anywhere":
                for residue in modification.residues:
                    masses[ord(residue) - 65] += modification.mass
        return masses

    def terminal_mass(self, end: str) -> float:
        """Return the total mass of fixed modifications at the peptide terminus ``N-term`` or ``C-term``, in dalton."""
        return sum((modification.mass for modification in self.fixed if modification.position == f"peptide {end}"), 0.0)

    def replaced_fixed_mass(self, modification: SearchModification) -> float:
        """Return the mass in dalton of the fixed modifications that `modification` replaces at its residue or terminus."""
        if modification.retains_fixed:
            return 0.0
        chemical = [fixed for fixed in self.fixed if not fixed.is_isotopic]
        at_end = sum((fixed.mass for fixed in chemical if modification.end and fixed.position == f"peptide {modification.end}"), 0.0)
        at_residue = (fixed for fixed in chemical if fixed.position == "anywhere" and set(modification.residues) & set(fixed.residues))
        return at_end + sum(fixed.mass for fixed in at_residue)

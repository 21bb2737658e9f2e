"""How proteins become peptides: the enzyme, limits of length and mass, and what every peptide carries."""

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
    """Settings that decide the digestion, by the names that every search's parameters have for it."""

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
    """How proteins become peptides.

    `required_ends`: 2 specific, 1 semi-specific, 0 non-specific. Masses in dalton. `fixed` are modifications that every peptide carries.
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
    def of(cls, settings: DigestionSettings, specificity: str) -> Digestion:
        """The digestion that settings describe, with a specificity of "specific", "semi-specific" or "non-specific"."""
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
        """All that decides the peptides and their masses, for the key of what is made of it.

        What enzyme and modifications are called is no part of it: bonds that are cut and masses stand for themselves, so that a rule or a
        mass that is corrected under its old name makes another key.
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
        """(26,) float64, dalton, with fixed modifications; NaN for letters that have no mass."""
        masses = RESIDUE_MASS.copy()
        for modification in self.fixed:
            if modification.position == "anywhere":
                for letter in modification.residues:
                    masses[ord(letter) - 65] += modification.mass
        return masses

    def terminal_mass(self, end: str) -> float:
        """Dalton that fixed modifications add to the peptide's "N-term" or "C-term"."""
        return sum((modification.mass for modification in self.fixed if modification.position == f"peptide {end}"), 0.0)

    def fixed_mass_in_place_of(self, modification: SearchModification) -> float:
        """Dalton that fixed modifications add to the residue or end which a known modification takes, and which therefore they do not."""
        if modification.comes_on_top:
            return 0.0
        fixed = [one for one in self.fixed if not one.is_isotopic]
        at_end = sum((one.mass for one in fixed if modification.end and one.position == f"peptide {modification.end}"), 0.0)
        return at_end + sum(one.mass for one in fixed if one.position == "anywhere" and set(modification.residues) & set(one.residues))

"""Conversion of the modifications in result files to entries of Unimod, found by name, or by a mass that is usual for the residue."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from proteoscope.engine.chemistry.masses import HYDROGEN_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.modifications import Modification, SearchModification, unimod, write_mass
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide
from proteoscope.engine.errors import ParameterError

__all__ = ["NamedModification", "Namer", "find_unimod_entry"]

_WITHIN = 0.01  # dalton, for masses with two or more decimals
_WITHIN_TENTHS = 0.05  # dalton, for masses rounded to a tenth, such as BiblioSpec's
_WITHIN_WHOLE_NUMBERS = 0.6  # dalton, for masses of modified residues rounded to whole numbers
_MAXIMUM_MASS = 100_000.0  # dalton
_MAXIMUM_KINDS = 5000
"""Maximum number of distinct notations that are looked up in Unimod; further modifications are named by mass."""
_SITE_SUFFIX = re.compile(r"\s*[(\[][^()\[\]]*(?:\([^()]*\)[^()\[\]]*)*[)\]]$|:[A-Za-z-]{1,12}$")
_RECORD = re.compile(r"(?:unimod|u)\s*:\s*(\d{1,6})", re.IGNORECASE)
_ABBREVIATED = {
    "ox": "Oxidation",
    "ac": "Acetyl",
    "ph": "Phospho",
    "cam": "Carbamidomethyl",
    "de": "Deamidated",
    "me": "Methyl",
    "di": "Dimethyl",
    "tr": "Trimethyl",
    "gl": "GlyGly",
    "cm": "Carbamidomethyl",
}
"""Titles in Unimod for the short names of MaxQuant before version 1.6."""
_OTHER_TITLES = {
    "oxidation of m": "Oxidation",
    "carbamidomethylation of c": "Carbamidomethyl",
    "carbamidomethylation": "Carbamidomethyl",
    "acetylation": "Acetyl",
    "acetylation of protein n-term": "Acetyl",
    "acetylation of k": "Acetyl",
    "phosphorylation": "Phospho",
    "deamidation": "Deamidated",
    "deamidation of n": "Deamidated",
    "deamidation of q": "Deamidated",
    "pyrolidone from q": "Gln->pyro-Glu",
    "pyrolidone from e": "Glu->pyro-Glu",
    "glygly": "GG",
}
"""Titles in Unimod for names that PeptideShaker and other programs write."""


class NamedModification(NamedTuple):
    """Modification that was found in Unimod, or that has only a mass.

    Attributes
    ----------
    name : str
        Name in ProForma.
    mass : float
        Mass in dalton.
    unimod_id : int or None
        Record number in Unimod; None if it is not in Unimod.
    """

    name: str
    mass: float
    unimod_id: int | None


class Namer:
    """Finder of modifications in Unimod, which looks up each distinct notation once.

    Parameters
    ----------
    fixed : sequence of SearchModification
        Fixed modifications, which files may leave out.

    Attributes
    ----------
    modifications : list of NamedModification
        Distinct modifications identified so far.
    unknown : dict of str to int
        Names without a mass that are not in Unimod, with their numbers of occurrences.
    """

    def __init__(self, fixed: Sequence[SearchModification] = ()) -> None:
        self.modifications: list[NamedModification] = []
        self._fixed = fixed
        self._numbers: dict[NamedModification, int] = {}
        self._noted: dict[tuple[NotedModification, str, bool, bool], int | None] = {}
        self.unknown: dict[str, int] = {}

    def place_modifications(self, peptide: NotedPeptide) -> list[tuple[int, int]] | None:
        """Return (position, index in `modifications`) for each modification of a peptide, sorted by position.

        Fixed modifications that the file leaves out are included. None is returned if a modification is unknown.
        """
        sequence, length = peptide.sequence, len(peptide.sequence)
        placed: list[tuple[int, int]] = []
        for noted in peptide.modifications:
            residue = sequence[noted.position - 1] if 1 <= noted.position <= length else ""
            is_first, is_last = noted.position <= 1, noted.position >= length
            key = (noted._replace(position=0), residue, is_first, is_last)
            if key not in self._noted:
                named = (
                    self._named(noted, residue, is_first=is_first, is_last=is_last)
                    if len(self._noted) < _MAXIMUM_KINDS
                    else _by_mass(noted)
                )
                self._noted[key] = self._number(named)
            number = self._noted[key]
            if number is None:
                self.unknown[noted.name] = self.unknown.get(noted.name, 0) + 1
                return None
            placed.append((noted.position, number))
        occupied = {position for position, _ in placed}
        for fixed in self._fixed:
            number = self._number(NamedModification(fixed.name, fixed.mass, fixed.unimod_id))
            assert number is not None
            if fixed.position != "anywhere":
                positions = [0 if fixed.position.endswith("N-term") else length + 1]
            else:
                positions = [index for index, residue in enumerate(sequence, 1) if residue in fixed.residues]
            placed += [(index, number) for index in positions if index not in occupied]
        return sorted(placed)

    def _number(self, named: NamedModification | None) -> int | None:
        if named is None:
            return None
        if named not in self._numbers:
            self._numbers[named] = len(self.modifications)
            self.modifications.append(named)
        return self._numbers[named]

    def _named(self, noted: NotedModification, residue: str, *, is_first: bool, is_last: bool) -> NamedModification | None:
        entry = find_unimod_entry(noted.name) if noted.name else None
        if noted.mass is None:
            return _as_named(entry) if entry is not None else None
        if not abs(noted.mass) < _MAXIMUM_MASS:
            return None
        sites = _sites(residue, is_first=is_first, is_last=is_last)
        added = noted.mass
        carrier = _carrier_mass(residue, is_first=is_first)
        if noted.is_whole:
            added = noted.mass - carrier
        elif noted.is_whole is None and entry is None:
            # M[147], M[147.0354] and M[15.9949] all occur. Whole numbers are masses of modified residues, as the TPP writes them. Any
            # other number is the mass of a modified residue if it is not a usual added mass, but its difference from the residue is.
            is_rounded = noted.mass == round(noted.mass)
            if is_rounded or _find_modification(noted.mass, sites, _WITHIN) is None:
                whole = _find_modification(noted.mass - carrier, sites, _WITHIN_WHOLE_NUMBERS if is_rounded else _WITHIN)
                if whole is not None:
                    return _as_named(whole)
        if entry is not None and abs(entry.mass - added) <= _WITHIN:
            return _as_named(entry)
        usual = _find_modification(added, sites, _WITHIN if added != round(added, 1) else _WITHIN_TENTHS)
        if usual is not None:
            return _as_named(usual)
        return _by_mass(noted._replace(mass=added))


def _by_mass(noted: NotedModification) -> NamedModification | None:
    if noted.mass is None:
        return None
    mass = round(noted.mass, 6)
    return NamedModification(write_mass(mass), mass, None)


def _as_named(entry: Modification) -> NamedModification:
    return NamedModification(entry.title, entry.mass, entry.id)


def _carrier_mass(residue: str, *, is_first: bool) -> float:
    """Return the mass (Da) of what is modified: the residue, or for '' the N-terminal hydrogen or the C-terminal hydroxyl group."""
    if residue:
        mass = float(RESIDUE_MASS[ord(residue) - ord("A")])
        return 0.0 if np.isnan(mass) else mass
    return HYDROGEN_MASS if is_first else WATER_MASS - HYDROGEN_MASS


def _sites(residue: str, *, is_first: bool, is_last: bool) -> list[str]:
    """Return the possible sites of a modification in the notation of `engine.chemistry.modifications.parse_site`, best first."""
    if not residue:
        return ["N-term", "Protein N-term"] if is_first else ["C-term", "Protein C-term"]
    sites = [residue]
    if is_first:
        sites += [f"N-term {residue}", f"Protein N-term {residue}", "N-term", "Protein N-term"]
    if is_last:
        sites += [f"C-term {residue}", "C-term", "Protein C-term"]
    return sites


def _find_modification(mass: float, sites: Sequence[str], within: float) -> Modification | None:
    """Return Unimod's most likely modification with this mass at the first site that has one, or None.

    None is also returned if Unimod hides this modification by default.
    """
    for site in sites:
        try:
            entries = unimod().search(site=site, mass=mass, tolerance=within, limit=1)
        except ParameterError:
            continue
        if entries and not entries[0].is_hidden:
            return entries[0]
    return None


def find_unimod_entry(name: str) -> Modification | None:
    """Return the entry of Unimod for a name in a file, which may end with a site; None if there is none."""
    record = _RECORD.fullmatch(name.strip())
    try:
        if record is not None:
            return unimod().by_id(int(record[1]))
    except ParameterError:
        return None
    while name := name.strip():
        lowered = name.lower()
        title = _ABBREVIATED.get(lowered) or _OTHER_TITLES.get(lowered) or name
        for candidate in (title, name.removeprefix("Label:").strip()):
            if candidate in unimod():
                return unimod().by_name(candidate)
        alike = unimod().search(name, limit=1)
        if alike and lowered in (alike[0].full_name.lower(), *(other.lower() for other in alike[0].alternative_names)):
            return alike[0]
        shorter = _SITE_SUFFIX.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return None

"""Reader and writer of modified peptides in ProForma 2.0 (LeDuc et al. 2022, J. Proteome Res. 21:1189)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.formulas import formula_mass
from proteoscope.engine.chemistry.masses import PROTON_MASS, sequence_mass
from proteoscope.engine.chemistry.modifications import unimod, write_mass
from proteoscope.engine.errors import ParameterError, shortened

__all__ = ["FloatingModification", "Peptidoform", "PlacedModification", "parse", "tag", "write", "write_many"]

_MASS = re.compile(r"[+-](?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_MAXIMUM_MASS = 100_000  # dalton
_MAXIMUM_DIGITS = 10  # maximum length of a record number of Unimod
_COUNT = re.compile(r"\^(\d{1,3})")
_CHARGE = re.compile(r"/\+?([1-9]\d{0,2})")
_RULE_TARGETS = re.compile(r"@((?:(?:[NC]-term(?::[A-Z])?|[A-Z])(?:,|(?=>)))+)>", re.IGNORECASE)
_RULE_TARGET = re.compile(r"(?:(?P<end>[NC])-term)?:?(?P<residue>[A-Z])?", re.IGNORECASE)
_OTHER_VOCABULARIES = {"m", "mod", "r", "resid", "x", "xlmod", "g", "gno", "c", "custom"}

# The monosaccharides of ProForma 2.0, table 1, as residues in a chain.
_MONOSACCHARIDES = {
    "Hex": "C6H10O5",
    "HexNAc": "C8H13NO5",
    "HexS": "C6H10O8S",
    "HexP": "C6H11O8P",
    "HexNAcS": "C8H13NO8S",
    "dHex": "C6H10O4",
    "NeuAc": "C11H17NO8",
    "NeuGc": "C11H17NO9",
    "Pen": "C5H8O4",
    "Fuc": "C6H10O4",
}
_GLYCAN_UNIT = re.compile(rf"({'|'.join(sorted(_MONOSACCHARIDES, key=len, reverse=True))})(\d{{0,6}})")
_GLYCAN = re.compile(rf"(?:{_GLYCAN_UNIT.pattern})+")


class PlacedModification(NamedTuple):
    """Modification with its position.

    Attributes
    ----------
    position : int
        0 for the N-terminus, 1 to L for the residues, L + 1 for the C-terminus.
    name : str
        Name in ProForma.
    mass : float
        Mass in dalton.
    """

    position: int
    name: str
    mass: float


class FloatingModification(NamedTuple):
    """Modification without a position.

    Attributes
    ----------
    name : str
        Name in ProForma.
    mass : float
        Mass in dalton.
    """

    name: str
    mass: float


@dataclass(frozen=True)
class Peptidoform:
    """Peptide with its modifications.

    Attributes
    ----------
    sequence : str
        Capitals A-Z, at least one.
    modifications : tuple of PlacedModification
        Modifications, ordered by position; a position may have several.
    charge : int, optional
        Charge of the ion, if known.
    unlocalised : tuple of FloatingModification
        Modifications of unknown position.
    labile : tuple of FloatingModification
        Modifications of the precursor that no fragment has.
    """

    sequence: str
    modifications: tuple[PlacedModification, ...] = ()
    charge: int | None = None
    unlocalised: tuple[FloatingModification, ...] = ()
    labile: tuple[FloatingModification, ...] = ()

    def __str__(self) -> str:
        return write(self)

    @property
    def mass(self) -> float:
        """Neutral monoisotopic mass with all modifications in dalton; NaN if the sequence has B, X or Z."""
        placed = sum(modification.mass for modification in self.modifications)
        return sequence_mass(self.sequence) + placed + sum(floating.mass for floating in (*self.unlocalised, *self.labile))

    @property
    def mz(self) -> float | None:
        """m/z (thomson) for the charge, or None without a charge."""
        return None if self.charge is None else self.mass / self.charge + PROTON_MASS

    def mass_deltas(self) -> dict[int, float]:
        """Return the added mass (dalton) by position, in the format of `fragments.fragment_ions`."""
        deltas: dict[int, float] = {}
        for position, _, mass in self.modifications:
            deltas[position] = deltas.get(position, 0.0) + mass
        return deltas


def parse(text: str) -> Peptidoform:
    """Parse a peptidoform in ProForma.

    The parser supports names and numbers of Unimod (``[Oxidation]``, ``[U:Oxidation]``, ``[UNIMOD:35]``), masses (``[+15.9949]``), formulas
    and glycan compositions (``[Formula:C2H3]``, ``[Glycan:Hex2]``), both termini, modifications fixed for residues
    (``<[Carbamidomethyl]@C>``, which are assigned to positions), labile modifications (``{Glycan:Hex}``), modifications of unknown position
    (``[Phospho]?``), and a charge of protons (``/2``). Of several descriptions of a modification (``[Oxidation|+15.995]``), the first is
    used.

    Raises
    ------
    ParameterError
        If the text is not ProForma, or uses unsupported features: ranges, ambiguous order, groups of positions, isotopes, cross-links,
        several chains, adducts other than protons, or vocabularies other than Unimod.

    Examples
    --------
    >>> parse("<[Carbamidomethyl]@C>[Acetyl]-AC/2").modifications[1]
    PlacedModification(position=2, name='Carbamidomethyl', mass=57.021464)
    """
    text = text.strip()
    if text.isascii() and text.isalpha() and text.isupper():
        return Peptidoform(text)
    return _Reader(text).peptidoform()


class _Reader:
    """Parser that reads ProForma text from left to right; `at` is the current position."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peptidoform(self) -> Peptidoform:
        rules = []
        while self.next() == "<":
            rules.append(self.rule())
        unlocalised: list[FloatingModification] = []
        labile: list[FloatingModification] = []
        start: list[FloatingModification] = []
        while self.next() in ("[", "{"):
            if self.next() == "{":
                labile.append(self.resolve(self.enclosed()))
                continue
            modifications = self.tags(counted=True)
            if self.next() == "-" and not start:
                start = modifications
                self.at += 1
                break
            if self.next() != "?":
                raise self.error("expected ? or - after a modification before the sequence")
            unlocalised += modifications
            self.at += 1
        sequence, placed = self.residues()
        placed = [PlacedModification(0, *modification) for modification in start] + placed
        if self.next() == "-":
            self.at += 1
            placed += [PlacedModification(len(sequence) + 1, *modification) for modification in self.tags()]
        for modification, targets in rules:
            positions = {position for target in targets for position in self.places(sequence, target)}
            placed += [PlacedModification(position, *modification) for position in positions]
        # Sort by position only, so that several modifications of one residue retain their order.
        placed.sort(key=lambda modification: modification.position)
        return Peptidoform(sequence, tuple(placed), self.charge(), tuple(unlocalised), tuple(labile))

    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def error(self, reason: str) -> ParameterError:
        return ParameterError(
            f"{shortened(repr(self.text))} is not a peptide in ProForma that can be read here; at character {self.at + 1}: {reason}"
        )

    def enclosed(self) -> str:
        """Return the text in the brackets that open at the current position; names of Unimod may contain brackets."""
        opening = self.next()
        closing = {"[": "]", "{": "}"}[opening]
        depth = 0
        for end in range(self.at, len(self.text)):
            depth += (self.text[end] == opening) - (self.text[end] == closing)
            if depth == 0:
                inner = self.text[self.at + 1 : end]
                self.at = end + 1
                return inner
        raise self.error(f"the {opening} has no {closing}")

    def tags(self, counted: bool = False) -> list[FloatingModification]:
        """Parse one or more tags ``[...]``; with `counted`, a number after a tag (``[Phospho]^2``) means that many modifications."""
        modifications = []
        while self.next() == "[":
            modification = self.resolve(self.enclosed())
            count = _COUNT.match(self.text, self.at) if counted else None
            if count is not None:
                self.at = count.end()
            modifications += [modification] * (int(count[1]) if count is not None else 1)
        if not modifications:
            raise self.error("expected a modification in [ ]")
        return modifications

    def rule(self) -> tuple[FloatingModification, list[tuple[str, str]]]:
        """Parse a modification that is fixed for residues, ``<[Carbamidomethyl]@C>``; return it and its targets as (terminus, residue)."""
        self.at += 1
        if self.next() != "[":
            raise self.error("global isotopes are not supported; expected <[modification]@residues>")
        modification = self.resolve(self.enclosed())
        match = _RULE_TARGETS.match(self.text, self.at)
        if match is None:
            raise self.error("expected @ and residues or termini, as in <[Carbamidomethyl]@C> or <[TMT6plex]@K,N-term>")
        self.at = match.end()
        targets = [_RULE_TARGET.fullmatch(target) for target in match[1].split(",")]
        return modification, [((target["end"] or "").upper(), target["residue"] or "") for target in targets if target is not None]

    @staticmethod
    def places(sequence: str, target: tuple[str, str]) -> list[int]:
        end, residue = target
        if end == "N":
            return [0] if residue in ("", sequence[0]) else []
        if end == "C":
            return [len(sequence) + 1] if residue in ("", sequence[-1]) else []
        return [i for i, sequence_residue in enumerate(sequence, 1) if sequence_residue == residue]

    def residues(self) -> tuple[str, list[PlacedModification]]:
        residue_list: list[str] = []
        placed: list[PlacedModification] = []
        while "A" <= self.next() <= "Z":
            residue_list.append(self.next())
            self.at += 1
            if self.next() == "[":
                placed += [PlacedModification(len(residue_list), *modification) for modification in self.tags()]
        if self.next() == "(":
            raise self.error("ranges of residues are not supported; give each modification one position")
        if not residue_list:
            raise self.error("expected residues as capitals")
        return "".join(residue_list), placed

    def charge(self) -> int | None:
        rest = self.text[self.at :]
        if not rest:
            return None
        match = _CHARGE.fullmatch(rest)
        if match is None:
            if rest.startswith(("//", "+")):
                raise self.error("several chains are not supported; expected one peptide")
            expected = "a charge of protons, as /2" if rest.startswith("/") else "a residue in capitals, a modification in [ ] or the end"
            raise self.error(f"expected {expected}")
        return int(match[1])

    def resolve(self, content: str) -> FloatingModification:
        """Return the name and mass of the modification in a tag, from Unimod, a number or a composition."""
        described = [part.strip() for part in content.split("|") if not part.strip().lower().startswith("info:")]
        if not described or not described[0]:
            raise self.error("the tag before this position does not name a modification")
        name = described[0]
        if "#" in name:
            raise self.error("groups of positions and cross-links are not supported; give each modification one position")
        prefix, colon, value = name.partition(":")
        kind = prefix.lower() if colon else ""
        if kind in _OTHER_VOCABULARIES:
            raise self.error(
                f"{shortened(name)} belongs to a vocabulary other than Unimod; expected a name, as [Oxidation], or a mass, as [+15.9949]"
            )
        if kind == "formula":
            return FloatingModification(f"Formula:{value}", formula_mass(value))
        if kind == "glycan":
            return FloatingModification(f"Glycan:{value}", self.glycan_mass(value))
        if kind == "unimod" and value.strip().isdecimal() and len(value) < _MAXIMUM_DIGITS:
            entry = unimod().by_id(int(value))
            return FloatingModification(entry.title, entry.mass)
        if kind in ("u", "unimod", "obs"):
            name = value.strip()
        if _MASS.fullmatch(name):
            if not abs(float(name)) < _MAXIMUM_MASS:
                raise self.error(f"a mass of {shortened(name)} is larger than that of any modification")
            return FloatingModification(write_mass(float(name)), float(name))
        entry = unimod().by_name(name)
        return FloatingModification(entry.title, entry.mass)

    def glycan_mass(self, composition: str) -> float:
        if not _GLYCAN.fullmatch(composition):
            raise self.error(f"{shortened(repr(composition))} is not a composition of {', '.join(_MONOSACCHARIDES)}, as HexNAc2Hex5")
        return sum(formula_mass(_MONOSACCHARIDES[unit]) * int(count or 1) for unit, count in _GLYCAN_UNIT.findall(composition))


def tag(name: str, mass: float) -> str:
    """Return the text of a modification in brackets.

    Parameters
    ----------
    name : str
        Name of the modification.
    mass : float
        Mass of the modification in dalton.

    Returns
    -------
    str
        Name if it is in Unimod or a composition, otherwise the mass, such as ``+15.9949``.
    """
    if name in unimod() or name.startswith(("Formula:", "Glycan:")):
        return name
    return write_mass(mass)


def write(peptidoform: Peptidoform) -> str:
    """Return a peptidoform in ProForma; modifications that are not in Unimod are written as masses with up to six decimals.

    Raises
    ------
    ParameterError
        If a modification is outside the peptide.

    Examples
    --------
    >>> write(Peptidoform("PEMK", (PlacedModification(3, "Oxidation", 15.994915),), charge=2))
    'PEM[Oxidation]K/2'
    """
    length = len(peptidoform.sequence)
    at: dict[int, str] = {}
    for position, name, mass in peptidoform.modifications:
        if not 0 <= position <= length + 1:
            raise ParameterError(
                f"position {position} of {name} lies outside {peptidoform.sequence}, whose positions are 0 to {length + 1}"
            )
        at[position] = f"{at.get(position, '')}[{tag(name, mass)}]"
    unlocalised = "".join(f"[{tag(name, mass)}]" for name, mass in peptidoform.unlocalised)
    labile = "".join(f"{{{tag(name, mass)}}}" for name, mass in peptidoform.labile)
    residues = "".join(residue + at.get(i, "") for i, residue in enumerate(peptidoform.sequence, 1))
    start = f"{at[0]}-" if 0 in at else ""
    end = f"-{at[length + 1]}" if length + 1 in at else ""
    charge = "" if peptidoform.charge is None else f"/{peptidoform.charge}"
    return f"{f'{unlocalised}?' if unlocalised else ''}{labile}{start}{residues}{end}{charge}"


def write_many(
    sequences: Sequence[str],
    offsets: NDArray[np.integer],
    positions: NDArray[np.integer],
    modifications: NDArray[np.integer],
    names: Sequence[str],
    masses: Sequence[float] | NDArray[np.float64],
) -> list[str]:
    """Return n peptides in ProForma from modifications in columns; unmodified peptides take almost no time.

    Parameters
    ----------
    sequences : sequence of str, length n
        Residues of each peptide.
    offsets : ndarray of int, shape (n + 1,)
        Modifications of peptide i are ``offsets[i]:offsets[i + 1]``.
    positions : ndarray of int, shape (m,)
        0 for the N-terminus, 1 to L for the residues, L + 1 for the C-terminus; ascending within a peptide.
    modifications : ndarray of int, shape (m,)
        Indices in `names` and `masses`.
    names : sequence of str
        Names of modifications.
    masses : sequence of float
        Masses of modifications in dalton.

    Returns
    -------
    list of str
        Texts, length n.

    Raises
    ------
    ParameterError
        If positions of a peptide do not ascend or are outside the peptide.
    """
    texts = list(sequences)
    offsets = np.asarray(offsets)
    modified = np.flatnonzero(np.diff(offsets))
    if len(modified) == 0:
        return texts
    _check_positions(sequences, offsets, np.asarray(positions), modified)
    tags = [f"[{tag(name, float(mass))}]" for name, mass in zip(names, masses, strict=True)]
    index, number = np.asarray(positions).tolist(), np.asarray(modifications).tolist()
    for row, first, last in zip(modified.tolist(), offsets[modified].tolist(), offsets[modified + 1].tolist(), strict=True):
        sequence = texts[row]
        length = len(sequence)
        # Collect the parts of the sequence and the tags, and join them at the end.
        parts, done = [], 0
        for k in range(first, last):
            position = index[k]
            if position == 0:
                parts.append(tags[number[k]])
                if k + 1 == last or index[k + 1] != 0:
                    parts.append("-")
            elif position <= length:
                parts.append(sequence[done:position])
                parts.append(tags[number[k]])
                done = position
            else:
                if k == first or index[k - 1] <= length:
                    parts.append(sequence[done:])
                    parts.append("-")
                    done = length
                parts.append(tags[number[k]])
        parts.append(sequence[done:])
        texts[row] = "".join(parts)
    return texts


def _check_positions(
    sequences: Sequence[str], offsets: NDArray[np.integer], positions: NDArray[np.integer], modified: NDArray[np.integer]
) -> None:
    counts = np.diff(offsets)[modified]
    lengths = np.fromiter((len(sequences[row]) for row in modified.tolist()), dtype=np.int64, count=len(modified))
    used = positions[offsets[0] : offsets[-1]]
    owner = np.repeat(np.arange(len(modified)), counts)
    outside = (used < 0) | (used > lengths[owner] + 1)
    descending = np.zeros(len(used), dtype=np.bool_)
    descending[1:] = (np.diff(used) < 0) & (owner[1:] == owner[:-1])
    wrong = np.flatnonzero(outside | descending)
    if len(wrong):
        row = int(modified[owner[wrong[0]]])
        raise ParameterError(
            f"position {int(used[wrong[0]])} of a modification of {sequences[row]} (row {row}) lies outside it or is not in ascending order"
        )

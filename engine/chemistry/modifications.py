"""Modifications: the Unimod catalogue, offline, and the modifications of a search, as a user writes them.

Unimod (https://www.unimod.org; Creasy & Cottrell 2004, Proteomics 4:1534) ships as `resources/modifications/unimod.json.gz`; masses are
Unimod's own, monoisotopic, in dalton.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal

from proteoscope import resources
from proteoscope.engine.chemistry.formulas import RESIDUE_COMPOSITION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError, shortened

__all__ = [
    "POSITIONS",
    "Modification",
    "Position",
    "SearchModification",
    "Site",
    "UnimodCatalogue",
    "parse_modification",
    "parse_site",
    "replacing_fixed",
    "unimod",
    "write_mass",
]

Position = Literal["anywhere", "peptide N-term", "peptide C-term", "protein N-term", "protein C-term"]
POSITIONS: tuple[Position, ...] = ("anywhere", "peptide N-term", "peptide C-term", "protein N-term", "protein C-term")

_UNIMOD_POSITION: dict[str, Position] = {
    "Anywhere": "anywhere",
    "Any N-term": "peptide N-term",
    "Any C-term": "peptide C-term",
    "Protein N-term": "protein N-term",
    "Protein C-term": "protein C-term",
}

_WRITTEN_POSITION: dict[Position, str] = {
    "anywhere": "",
    "peptide N-term": "N-term",
    "peptide C-term": "C-term",
    "protein N-term": "Protein N-term",
    "protein C-term": "Protein C-term",
}

# The picker offers first what a sample most often holds; a class that is not named here comes after all that are.
_CLASS_RANK = {
    "Post-translational": 0,
    "Artefact": 0,
    "Co-translational": 1,
    "Chemical derivative": 1,
    "Isotopic label": 2,
    "Pre-translational": 3,
    "Multiple": 3,
    "O-linked glycosylation": 4,
    "N-linked glycosylation": 4,
    "Other glycosylation": 4,
}
_LAST_RANK = 5

_SITE_TEXT = re.compile(
    r"(?:(?:(?P<owner>protein|peptide|any)\s+)?(?P<end>[NC])[-\s]?term(?:inus)?\.?(?![A-Z])\s*)?(?P<residues>[A-Z]*)", re.IGNORECASE
)
_NAME_AND_SITE = re.compile(r"(?P<name>.+?)\s*\(\s*(?P<site>[A-Za-z][A-Za-z\s.-]*)\)")
_CUSTOM = re.compile(r"(?:(?P<name>[^:\[\]|]+(?::[^:\[\]|]+)*?)\s*:\s*)?(?P<mass>[+-]\s*\d*\.?\d+(?:[eE][+-]?\d+)?)")

_ON_TOP = re.compile(r"\s+on\s+top\s*$", re.IGNORECASE)
_WITH_FREE_AMINE = frozenset({"GG", "LRGG", "QTGG", "QQTGG", "QEQTGG", "SUMO2135", "SUMO3549"})
"""Remnants of ubiquitin and its like: where they are, an amine is free as before, which carries a label."""
_OF_RESIDUE_AND_END = frozenset({"Pyro-carbamidomethyl"})
"""Modifications at an end that hold the side chain too, and whose mass counts from the bare residue."""

_MAXIMUM_LETTERS = 1000  # of a text of a modification
_MAXIMUM_COMPARED = 100  # letters of a name that is compared with all titles, to suggest one


@dataclass(frozen=True)
class Site:
    """Where a modification of Unimod is known to sit.

    Attributes
    ----------
    residue : one letter, or "" for the terminus itself.
    position : where that residue must stand.
    classification : Unimod's, such as ``Post-translational`` or ``Artefact``.
    is_hidden : Unimod shows it only on request, which means that it is rare.
    neutral_losses : dalton, ascending; what a fragment may lose besides staying whole.
    """

    residue: str
    position: Position
    classification: str
    is_hidden: bool
    neutral_losses: tuple[float, ...]

    def __str__(self) -> str:
        return _write_site(self.residue, self.position)

    def covers(self, residue: str, position: Position) -> bool:
        """Whether a modification asked for at `residue` ("" for any) and `position` always falls on this site."""
        if self.residue and residue != self.residue:
            return False
        return self.position in (position, "anywhere") or (
            # A protein's terminus is also its first or last peptide's.
            self.position == position.replace("protein", "peptide")
        )


@dataclass(frozen=True)
class Modification:
    """An entry of Unimod.

    Attributes
    ----------
    id : the record number, 35 for ``UNIMOD:35``.
    title : the PSI-MS name, or Unimod's interim name where there is none.
    full_name : one line of description.
    mass : dalton, added to the residue.
    composition : in Unimod's notation, as ``H(2) C(2) O``.
    alternative_names : other names in use.
    sites : where it is known, the usual ones first.
    is_approved : looked through by Unimod's curators.
    """

    id: int
    title: str
    full_name: str
    mass: float
    composition: str
    alternative_names: tuple[str, ...]
    sites: tuple[Site, ...]
    is_approved: bool

    @property
    def accession(self) -> str:
        """``UNIMOD:35``."""
        return f"UNIMOD:{self.id}"

    @property
    def is_hidden(self) -> bool:
        """Whether every site is a rare one."""
        return all(site.is_hidden for site in self.sites)

    def sites_covering(self, residue: str, position: Position) -> list[Site]:
        """Known sites that a modification at `residue` ("" for any) and `position` always falls on."""
        return [site for site in self.sites if site.covers(residue, position)]


class UnimodCatalogue:
    """All entries of Unimod, made into objects as they are asked for.

    Attributes
    ----------
    modified : the day and time of Unimod's last change, as Unimod writes it.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self.modified: str = content["modified"]
        self._classifications: list[str] = content["classifications"]
        self._rows: list[list[Any]] = content["entries"]
        self._row_of_id: dict[int, int] = {row[0]: i for i, row in enumerate(self._rows)}
        self._row_of_name: dict[str, int] = {row[1].lower(): i for i, row in enumerate(self._rows)}
        self._entries: dict[int, Modification] = {}
        self._search_keys: list[tuple[str, tuple[str, ...], int]] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Modification]:
        return (self._entry(i) for i in range(len(self._rows)))

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._row_of_name

    def by_name(self, name: str) -> Modification:
        """The entry with that title, whatever its case.

        Raises
        ------
        ParameterError : there is none; the message lists near matches.
        """
        i = self._row_of_name.get(name.strip().lower())
        if i is not None:
            return self._entry(i)
        raise ParameterError(
            f"Unimod has no modification {shortened(repr(name.strip()))}; {self._advice(name.strip()[:_MAXIMUM_COMPARED])}"
        )

    def by_id(self, record: int) -> Modification:
        """The entry ``UNIMOD:record``.

        Raises
        ------
        ParameterError : there is none.
        """
        i = self._row_of_id.get(record)
        if i is None:
            raise ParameterError(f"Unimod has no entry UNIMOD:{record}; its numbers go from {self._rows[0][0]} to {self._rows[-1][0]}")
        return self._entry(i)

    def search(
        self,
        text: str = "",
        site: str | None = None,
        mass: float | None = None,
        tolerance: Tolerance | float = 0.01,
        limit: int | None = None,
    ) -> list[Modification]:
        """Entries that fit all that is asked, the likeliest first. What the modification picker shows.

        Whole names come before beginnings, those before whole words, those before other pieces, titles before descriptions; among equals
        the usual before the rare, by Unimod's classification and visibility; then the nearest in mass, then the oldest.

        Parameters
        ----------
        text : found in title, description or alternative names, whatever the case; several words in any order; also ``UNIMOD:35``.
        site : as in `parse_modification`: ``M``, ``N-term``, ``Protein N-term``, ``N-term Q``.
        mass : dalton, monoisotopic.
        tolerance : of the mass; a bare number is in dalton. ppm are of the modification's own mass.
        limit : as many at most.

        Raises
        ------
        ParameterError : the site is not written as a site.
        """
        wanted = [parse_site(site)] if site else []
        window = tolerance if isinstance(tolerance, Tolerance) else Tolerance(tolerance, "Da")
        low, high = window.bounds(mass) if mass is not None else (float("-inf"), float("inf"))
        query = text.strip().lower()
        words = query.split()
        ranked = []
        for i, (title, others, commonness) in enumerate(self._keys()):
            delta = self._rows[i][3]
            if not low <= delta <= high:
                continue
            tier = _text_tier(query, words, title, others, self._rows[i][0]) if query else 0
            if tier is None:
                continue
            if any(not self._entry(i).sites_covering(residue, position) for residues, position in wanted for residue in residues or ("",)):
                continue
            distance = 0.0 if mass is None else round(abs(delta - mass), 3)
            ranked.append((tier, commonness, distance, self._rows[i][0], i))
        ranked.sort()
        return [self._entry(i) for *_, i in ranked[:limit]]

    def _advice(self, name: str) -> str:
        near = [self._rows[self._row_of_name[match]][1] for match in get_close_matches(name.lower(), self._row_of_name, n=2, cutoff=0.75)]
        near = list(dict.fromkeys(near + [found.title for found in self.search(name, limit=2)]))[:3]
        if near:
            return f"did you mean {' or '.join(near)}?"
        return "expected a title of Unimod, or a mass of your own as Name:+15.9949 (M)"

    def _keys(self) -> list[tuple[str, tuple[str, ...], int]]:
        # Lower-case title, other names, and a rank that is the smaller the commoner the modification.
        if self._search_keys is None:
            class_rank = [_CLASS_RANK.get(name, _LAST_RANK) for name in self._classifications]
            rare = _LAST_RANK + 1
            self._search_keys = [
                (
                    title.lower(),
                    (full_name.lower(), *(name.lower() for name in names)),
                    min((class_rank[classification] + rare * hidden for _, _, classification, hidden, _ in sites), default=2 * rare),
                )
                for _, title, full_name, _, _, _, names, _, sites in self._rows
            ]
        return self._search_keys

    def _entry(self, i: int) -> Modification:
        entry = self._entries.get(i)
        if entry is None:
            record, title, full_name, mass, _, composition, names, approved, sites = self._rows[i]
            entry = self._entries[i] = Modification(
                id=record,
                title=title,
                full_name=full_name,
                mass=mass,
                composition=composition,
                alternative_names=tuple(names),
                sites=tuple(
                    Site(residue, _UNIMOD_POSITION[position], self._classifications[classification], bool(hidden), tuple(losses))
                    for residue, position, classification, hidden, losses in sites
                ),
                is_approved=bool(approved),
            )
        return entry


def _text_tier(query: str, words: list[str], title: str, others: tuple[str, ...], record: int) -> int | None:
    """How well an entry fits the text, 0 best; None: not at all."""
    if query in (title, str(record), f"unimod:{record}"):
        return 0
    if query in others:
        return 1
    if title.startswith(query):
        return 2
    best: int | None = None
    for name, penalty in ((title, 0), *((other, 1) for other in others)):
        at = name.find(query)
        if at < 0:
            continue
        tier = 3 if at == 0 else 4 if not name[at - 1].isalnum() else 6
        best = min(best or 9, tier + penalty)
    if best is None and len(words) > 1:
        joined = " ".join((title, *others))
        if all(word in joined for word in words):
            return 8
    return best


@cache
def unimod() -> UnimodCatalogue:
    """The catalogue, read from the shipped file at the first call."""
    path = resources.path("modifications", "unimod.json.gz")
    return UnimodCatalogue(json.loads(gzip.decompress(path.read_bytes())))


@dataclass(frozen=True)
class SearchModification:
    """A modification as a search uses it: one mass on one kind of place.

    Attributes
    ----------
    name : Unimod's title, or a name of the user's (its mass as text where there is none).
    unimod_id : record number in Unimod, None for one of the user's own.
    mass : monoisotopic, dalton, added to the residue or terminus.
    residues : the letters that it may sit on, in alphabetical order; "" for any.
    position : where such a residue must stand.
    is_on_top : the definition says that it comes on top of fixed modifications (``Methyl (K on top)``), in place of replacing them.
    replaced_mass : dalton that the fixed modifications which it replaces would add (`replacing_fixed`).
    """

    name: str
    unimod_id: int | None
    mass: float
    residues: str
    position: Position
    is_on_top: bool = False
    replaced_mass: float = 0.0

    @property
    def is_isotopic(self) -> bool:
        """True for heavy residues, which no other modification replaces, and which replace none."""
        return self.name == "Label" or self.name.startswith("Label:")

    @property
    def comes_on_top(self) -> bool:
        """True if the residue or end carries its fixed modifications besides."""
        return self.is_on_top or self.is_isotopic or self.name in _WITH_FREE_AMINE

    @property
    def takes_residue(self) -> bool:
        """True if it replaces the fixed modifications of its residue, not those of the end of the peptide alone."""
        return self.position == "anywhere" or self.name in _OF_RESIDUE_AND_END

    @property
    def end(self) -> str:
        """``N-term`` or ``C-term`` where it must be at an end, else empty."""
        return "" if self.position == "anywhere" else self.position[-6:]

    @property
    def added_mass(self) -> float:
        """Dalton that it adds to a peptide which carries its fixed modifications everywhere."""
        return self.mass - self.replaced_mass

    def __str__(self) -> str:
        """The text that `parse_modification` reads back to the same modification."""
        if self.unimod_id is not None or self.name == write_mass(self.mass):
            return f"{self.name} ({self.site})"
        return f"{self.name}:{write_mass(self.mass)} ({self.site})"

    @property
    def site(self) -> str:
        """Where it sits, as written: ``STY``, ``N-term``, ``Protein N-term M``, ``K on top``."""
        return _write_site(self.residues, self.position) + " on top" * self.is_on_top

    @property
    def place(self) -> int:
        """Where it must stand, by its place in `POSITIONS`."""
        return POSITIONS.index(self.position)

    @property
    def residue_mask(self) -> int:
        """Bit k is set where it may sit on letter k of the alphabet; all 32 where it may on any."""
        return sum(1 << ord(letter) - ord("A") for letter in self.residues) or 0xFFFFFFFF


def write_mass(mass: float) -> str:
    """A mass difference (dalton) with its sign, to the sixth decimal and without idle zeros: ``+15.9949``, ``-1``."""
    return f"{mass:+.6f}".rstrip("0").rstrip(".")


def _write_site(residues: str, position: Position) -> str:
    return " ".join(part for part in (_WRITTEN_POSITION[position], residues) if part)


def parse_site(text: str) -> tuple[str, Position]:
    """Residues and position of a site as a user writes it: letters (``STY``), ``N-term``, ``Protein C-term``, ``N-term Q``.

    Returns
    -------
    residues : capitals in alphabetical order, each once; "" for any residue at that terminus.
    position : one of `POSITIONS`.

    Raises
    ------
    ParameterError : it is written in another way, or a letter is no residue.
    """
    match = _SITE_TEXT.fullmatch(text.strip())
    if match is None or not text.strip():
        raise ParameterError(
            f"{shortened(repr(text))} is not a site; expected residues as STY, or N-term, C-term, Protein N-term, Protein C-term, "
            "or both as N-term Q"
        )
    residues = "".join(sorted(set(match["residues"].upper())))
    unknown = [letter for letter in residues if letter not in RESIDUE_COMPOSITION]
    if unknown:
        raise ParameterError(
            f"{shortened(', '.join(unknown))} in the site {shortened(repr(text))} is no residue with a mass; expected letters as STY"
        )
    if match["end"] is None:
        return residues, "anywhere"
    of_protein = (match["owner"] or "").lower() == "protein"
    if match["end"].upper() == "N":
        return residues, "protein N-term" if of_protein else "peptide N-term"
    return residues, "protein C-term" if of_protein else "peptide C-term"


def parse_modification(text: str) -> SearchModification:
    """A modification of a search from its text.

    ``Name (SITE)``, where the name is a title of Unimod, whatever its case, or ``UNIMOD:35``, and SITE is residues (``STY``), ``N-term``,
    ``C-term``, ``Protein N-term``, ``Protein C-term``, or residues at a terminus (``N-term Q``). One of the user's own is written
    ``Name:+15.9949 (M)`` or ``+15.9949 (M)`` and may sit anywhere. ``on top`` behind the site, as in ``Methyl (K on top)``, keeps the fixed
    modifications of the place.

    Raises
    ------
    ParameterError : it is written in another way, Unimod does not know the name, or does not list the site for it; the message tells what
        was expected.

    Examples
    --------
    >>> parse_modification("oxidation (M)").mass
    15.994915
    >>> str(parse_modification("Phospho (YTS)"))
    'Phospho (STY)'
    """
    match = _NAME_AND_SITE.fullmatch(text.strip()) if len(text) <= _MAXIMUM_LETTERS else None
    if match is None:
        raise ParameterError(f"{shortened(repr(text))} is not a modification; expected a name and a site, {_example(text.strip())}")
    site, n_on_top = _ON_TOP.subn("", match["site"])
    residues, position = parse_site(site)
    custom = _CUSTOM.fullmatch(match["name"].strip())
    if custom is not None:
        return replace(_custom_modification(text, custom["name"], custom["mass"], residues, position), is_on_top=n_on_top > 0)
    entry = _entry_named(match["name"].strip())
    for residue in residues or ("",):
        if not entry.sites_covering(residue, position):
            listed = "; ".join(dict.fromkeys(str(site) for site in entry.sites)) or "no site"
            where = _write_site(residue, position)
            raise ParameterError(
                f"Unimod does not list the site {where} for {entry.title}; expected {listed}, "
                f"or a modification of your own as My {entry.title}:{write_mass(entry.mass)} ({where})"
            )
    return SearchModification(entry.title, entry.id, entry.mass, residues, position, is_on_top=n_on_top > 0)


def replacing_fixed(variable: Sequence[SearchModification], fixed: Sequence[SearchModification]) -> tuple[SearchModification, ...]:
    """Return variable modifications with the mass of the fixed ones that they replace.

    One whose residues carry different fixed modifications becomes several. Those at an end replace what is fixed at the end.

    Parameters
    ----------
    variable, fixed : sequence of SearchModification
        Modifications of a search.

    Returns
    -------
    tuple of SearchModification
        In the same order.

    Examples
    --------
    >>> fixed = [parse_modification("TMT6plex (K)"), parse_modification("Carbamidomethyl (C)")]
    >>> [(str(one), round(one.replaced_mass, 3)) for one in replacing_fixed([parse_modification("Methyl (CKR)")], fixed)]
    [('Methyl (C)', 57.021), ('Methyl (K)', 229.163), ('Methyl (R)', 0.0)]
    """
    found: list[SearchModification] = []
    chemical = [one for one in fixed if not one.is_isotopic]
    for one in variable:
        if one.comes_on_top:
            found.append(one)
            continue
        at_end = sum((each.mass for each in chemical if one.end and each.position == f"peptide {one.end}"), 0.0)
        groups: dict[float, str] = {}
        for residue in one.residues or (" ",):
            of_residue = sum((each.mass for each in chemical if each.position == "anywhere" and residue in each.residues), 0.0)
            replaced = at_end + (of_residue if one.takes_residue else 0.0)
            groups[replaced] = groups.get(replaced, "") + residue.strip()
        found += [replace(one, residues=residues, replaced_mass=replaced) for replaced, residues in groups.items()]
    return tuple(found)


def _custom_modification(text: str, name: str | None, mass_text: str, residues: str, position: Position) -> SearchModification:
    # Six decimals, as the field writes masses, so that the text and the number say the same.
    mass = round(float(mass_text.replace(" ", "")), 6)
    if name is not None and name.strip() in unimod():
        raise ParameterError(
            f"{shortened(repr(text))} gives a mass of its own to {name.strip()}, which is a title of Unimod; "
            "leave the mass out or choose another name"
        )
    if not abs(mass) < 100_000 or mass == 0:
        raise ParameterError(f"{shortened(repr(text))} adds {mass} Da; expected a mass other than 0 and below 100000")
    return SearchModification(name.strip() if name else write_mass(mass), None, mass, residues, position)


def _entry_named(name: str) -> Modification:
    record = re.fullmatch(r"unimod:\s*(\d{1,9})", name, re.IGNORECASE)
    return unimod().by_id(int(record[1])) if record else unimod().by_name(name)


def _example(text: str) -> str:
    if text in unimod():
        entry = unimod().by_name(text)
        usual = [str(site) for site in entry.sites if not site.is_hidden] or [str(site) for site in entry.sites] or ["K"]
        return f"as {' or '.join(f'{entry.title} ({site})' for site in usual[:3])}"
    return "as Oxidation (M), Acetyl (Protein N-term) or +15.9949 (M)"

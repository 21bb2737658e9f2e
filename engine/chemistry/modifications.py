"""Modifications: the Unimod catalogue, offline, and modifications of a search as users write them.

Unimod (https://www.unimod.org; Creasy & Cottrell 2004, Proteomics 4:1534) is delivered as `resources/modifications/unimod.json.gz`; masses
are Unimod's monoisotopic masses in dalton.

`resources/modifications/uniprot.tsv` lists the names in UniProt's annotations of residues (ptmlist.txt), as far as a name defines a
composition. Modifications with other names (glycans of unknown composition, "N6-methylated lysine") have no known mass.
"""

import gzip
import hashlib
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
    "annotated_modification",
    "annotated_names",
    "names_digest",
    "parse_modification",
    "parse_site",
    "unimod",
    "with_replaced_masses",
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

# The picker lists frequent classes first (lower ranks); classes that are not listed here come last.
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
_NOT_LAST = re.compile(r"\s+not\s+C[-\s]?term\s*$", re.IGNORECASE)
_WITH_FREE_AMINE = frozenset({"GG", "LRGG", "QTGG", "QQTGG", "QEQTGG", "SUMO2135", "SUMO3549"})
"""Modifications that are remnants of ubiquitin and related proteins; they have a free amine that can be labelled."""
_RESIDUE_AND_TERMINUS = frozenset({"Pyro-carbamidomethyl"})
"""Modifications of a terminus that include the side chain; their masses are relative to the unmodified residue."""

_MAXIMUM_CHARACTERS = 1000  # maximum length of the text of a modification
_MAXIMUM_COMPARED = 100  # maximum number of characters of an unknown name that are compared with all titles


@dataclass(frozen=True)
class Site:
    """Site of a modification in Unimod.

    Attributes
    ----------
    residue : str
        One-character code, or '' for the terminus itself.
    position : Position
        Required position of the residue.
    classification : str
        Unimod's classification, such as ``Post-translational`` or ``Artefact``.
    is_hidden : bool
        True if Unimod hides the site by default because it is rare.
    neutral_losses : tuple of float
        Masses of neutral losses of fragments in dalton, ascending.
    """

    residue: str
    position: Position
    classification: str
    is_hidden: bool
    neutral_losses: tuple[float, ...]

    def __str__(self) -> str:
        return _write_site(self.residue, self.position)

    def covers(self, residue: str, position: Position) -> bool:
        """Return True if this site includes each `residue` ('' for any residue) at `position`; so does ``N-term`` for ``N-term Q``."""
        if self.residue and residue != self.residue:
            return False
        return self.position in (position, "anywhere") or (
            # The terminus of a protein is also a terminus of its first or last peptide.
            self.position == position.replace("protein", "peptide")
        )


@dataclass(frozen=True)
class Modification:
    """Entry of Unimod.

    Attributes
    ----------
    id : int
        Record number, such as 35 for ``UNIMOD:35``.
    title : str
        PSI-MS name, or Unimod's interim name.
    full_name : str
        Description in one line.
    mass : float
        Mass that is added to the residue, in dalton.
    composition : str
        Composition in Unimod's notation, such as ``H(2) C(2) O``.
    alternative_names : tuple of str
        Other names.
    sites : tuple of Site
        Sites, usual sites first.
    is_approved : bool
        True if reviewed by Unimod's curators.
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
        """Accession, such as ``UNIMOD:35``."""
        return f"UNIMOD:{self.id}"

    @property
    def is_hidden(self) -> bool:
        """True if all sites are rare."""
        return all(site.is_hidden for site in self.sites)

    def sites_covering(self, residue: str, position: Position) -> list[Site]:
        """Return the sites for which `Site.covers` is True."""
        return [site for site in self.sites if site.covers(residue, position)]


class UnimodCatalogue:
    """Catalogue of all Unimod entries, which are created on demand.

    Parameters
    ----------
    content : dict
        Content of the shipped JSON file.

    Attributes
    ----------
    modified : str
        Date and time of Unimod's last change, in Unimod's format.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self.modified: str = content["modified"]
        self._classifications: list[str] = content["classifications"]
        self._rows: list[list[Any]] = content["entries"]
        self._row_by_id: dict[int, int] = {row[0]: i for i, row in enumerate(self._rows)}
        self._row_by_name: dict[str, int] = {row[1].lower(): i for i, row in enumerate(self._rows)}
        self._entries: dict[int, Modification] = {}
        self._search_keys: list[tuple[str, tuple[str, ...], int]] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Modification]:
        return (self._entry(i) for i in range(len(self._rows)))

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._row_by_name

    def by_name(self, name: str) -> Modification:
        """Return the entry with a title, in any case.

        Raises
        ------
        ParameterError
            If there is no such entry; the message lists similar names.
        """
        i = self._row_by_name.get(name.strip().lower())
        if i is not None:
            return self._entry(i)
        raise ParameterError(
            f"Unimod has no modification {shortened(repr(name.strip()))}; {self._advice(name.strip()[:_MAXIMUM_COMPARED])}"
        )

    def by_id(self, record: int) -> Modification:
        """Return the entry ``UNIMOD:record``.

        Raises
        ------
        ParameterError
            If there is no such entry.
        """
        i = self._row_by_id.get(record)
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
        """Return the entries that match all criteria, the most likely first.

        Matches are ordered by their type (whole names, beginnings of names, whole words, other parts; titles before descriptions), then by
        Unimod's classification and visibility (usual before rare modifications), then by mass difference and record number.

        Parameters
        ----------
        text : str
            Text in title, description or alternative names, in any case; several words in any order; or ``UNIMOD:35``.
        site : str, optional
            Site as in `parse_modification`, such as ``M``, ``N-term``, ``Protein N-term``, ``N-term Q``.
        mass : float, optional
            Monoisotopic mass in dalton.
        tolerance : Tolerance or float
            Tolerance of the mass; a number is in dalton, and ppm are relative to the mass of the modification.
        limit : int, optional
            Maximum number of entries.

        Returns
        -------
        list of Modification
            Entries.

        Raises
        ------
        ParameterError
            If the site is invalid.
        """
        sites = [parse_site(site)] if site else []
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
            if any(not self._entry(i).sites_covering(residue, position) for residues, position in sites for residue in residues or ("",)):
                continue
            distance = 0.0 if mass is None else round(abs(delta - mass), 3)
            ranked.append((tier, commonness, distance, self._rows[i][0], i))
        ranked.sort()
        return [self._entry(i) for *_, i in ranked[:limit]]

    def _advice(self, name: str) -> str:
        near = [self._rows[self._row_by_name[match]][1] for match in get_close_matches(name.lower(), self._row_by_name, n=2, cutoff=0.75)]
        near = list(dict.fromkeys(near + [entry.title for entry in self.search(name, limit=2)]))[:3]
        if near:
            return f"did you mean {' or '.join(near)}?"
        return "expected a title of Unimod, or a custom mass as Name:+15.9949 (M)"

    def _keys(self) -> list[tuple[str, tuple[str, ...], int]]:
        # For each entry: title and other names in lower case, and a rank that is lower for more common modifications.
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
    """Return the rank of a match between a text and an entry, 0 for the best type of match; None if they do not match."""
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
    """Return the catalogue of Unimod; the first call reads its file."""
    path = resources.path("modifications", "unimod.json.gz")
    return UnimodCatalogue(json.loads(gzip.decompress(path.read_bytes())))


@dataclass(frozen=True)
class SearchModification:
    """Modification in the settings of a search: one mass at one type of site.

    Attributes
    ----------
    name : str
        Unimod's title, or a custom name (by default the mass as text).
    unimod_id : int, optional
        Record number in Unimod; None for a custom modification.
    mass : float
        Monoisotopic mass in dalton that is added to the residue or terminus.
    residues : str
        Residues that may have the modification, in alphabetical order; '' for any.
    position : Position
        Required position of the residue.
    is_on_top : bool
        True if the modification is additional to fixed modifications (``Methyl (K on top)``) instead of replacing them.
    replaced_mass : float
        Mass in dalton of the fixed modifications that this one replaces (`with_replaced_masses`).
    is_not_last : bool
        True if the last residue of a peptide does not have the modification (``GG (K not C-term)``), since the enzyme would not have cut
        there; the last residue of a protein may have it.
    """

    name: str
    unimod_id: int | None
    mass: float
    residues: str
    position: Position
    is_on_top: bool = False
    replaced_mass: float = 0.0
    is_not_last: bool = False

    @property
    def is_isotopic(self) -> bool:
        """True for isotope labels of residues, which neither replace other modifications nor are replaced by them."""
        return self.name == "Label" or self.name.startswith("Label:")

    @property
    def retains_fixed(self) -> bool:
        """True if the modified residue or terminus also has its fixed modifications."""
        return self.is_on_top or self.is_isotopic or self.name in _WITH_FREE_AMINE

    @property
    def replaces_fixed_of_residue(self) -> bool:
        """True if the modification replaces the fixed modifications of its residue, not only of the terminus."""
        return self.position == "anywhere" or self.name in _RESIDUE_AND_TERMINUS

    @property
    def end(self) -> str:
        """``N-term`` or ``C-term`` for modifications of termini, else ''."""
        return "" if self.position == "anywhere" else self.position[-6:]

    @property
    def added_mass(self) -> float:
        """Mass in dalton by which the modification changes a peptide that has all fixed modifications: `mass` - `replaced_mass`."""
        return self.mass - self.replaced_mass

    def __str__(self) -> str:
        """Return the text from which `parse_modification` creates the same modification."""
        if self.unimod_id is not None or self.name == write_mass(self.mass):
            return f"{self.name} ({self.site})"
        return f"{self.name}:{write_mass(self.mass)} ({self.site})"

    @property
    def site(self) -> str:
        """Site, such as ``STY``, ``N-term``, ``Protein N-term M``, ``K on top``, ``K not C-term``."""
        return _write_site(self.residues, self.position) + " on top" * self.is_on_top + " not C-term" * self.is_not_last

    @property
    def place(self) -> int:
        """Required position of the residue, as an index in `POSITIONS`; -1 for any residue except the last of a peptide."""
        return -1 if self.is_not_last else POSITIONS.index(self.position)

    @property
    def residue_mask(self) -> int:
        """Residues that may have the modification as a bit mask: bit k for residue 'A' + k; all 32 bits for any residue."""
        return sum(1 << ord(residue) - ord("A") for residue in self.residues) or 0xFFFFFFFF


def write_mass(mass: float) -> str:
    """Format a mass difference (dalton) with its sign and up to six decimals, such as ``+15.9949`` or ``-1``."""
    return f"{mass:+.6f}".rstrip("0").rstrip(".")


def _write_site(residues: str, position: Position) -> str:
    return " ".join(part for part in (_WRITTEN_POSITION[position], residues) if part)


def parse_site(text: str) -> tuple[str, Position]:
    """Parse a site as users write it: residues (``STY``), ``N-term``, ``Protein C-term``, ``N-term Q``.

    Returns
    -------
    residues : str
        Distinct capitals in alphabetical order; '' for any residue at the terminus.
    position : Position
        Required position of the residue.

    Raises
    ------
    ParameterError
        If the text is not a site or has an unknown residue.
    """
    match = _SITE_TEXT.fullmatch(text.strip())
    if match is None or not text.strip():
        raise ParameterError(
            f"{shortened(repr(text))} is not a site; expected residues as STY, or N-term, C-term, Protein N-term, Protein C-term, "
            "or both as N-term Q"
        )
    residues = "".join(sorted(set(match["residues"].upper())))
    unknown = [residue for residue in residues if residue not in RESIDUE_COMPOSITION]
    if unknown:
        raise ParameterError(
            f"{shortened(', '.join(unknown))} in the site {shortened(repr(text))} is not a residue with a mass; expected residues as STY"
        )
    if match["end"] is None:
        return residues, "anywhere"
    of_protein = (match["owner"] or "").lower() == "protein"
    if match["end"].upper() == "N":
        return residues, "protein N-term" if of_protein else "peptide N-term"
    return residues, "protein C-term" if of_protein else "peptide C-term"


def parse_modification(text: str) -> SearchModification:
    """Parse a modification of a search.

    The format is ``Name (SITE)``. The name is a title of Unimod, in any case, or ``UNIMOD:35``; SITE is residues (``STY``), ``N-term``,
    ``C-term``, ``Protein N-term``, ``Protein C-term``, or residues at a terminus (``N-term Q``). Custom modifications have the format
    ``Name:+15.9949 (M)`` or ``+15.9949 (M)``, with any site. ``on top`` after the site, as in ``Methyl (K on top)``, retains the fixed
    modifications of the site; ``not C-term`` after residues, as in ``GG (K not C-term)``, excludes the last residue of peptides.

    Raises
    ------
    ParameterError
        If the format is different, or if Unimod does not have the name or does not list the site for it; the message describes what is
        expected.

    Examples
    --------
    >>> parse_modification("oxidation (M)").mass
    15.994915
    >>> str(parse_modification("Phospho (YTS)"))
    'Phospho (STY)'
    """
    match = _NAME_AND_SITE.fullmatch(text.strip()) if len(text) <= _MAXIMUM_CHARACTERS else None
    if match is None:
        raise ParameterError(f"{shortened(repr(text))} is not a modification; expected a name and a site, {_example(text.strip())}")
    site, n_not_last = _NOT_LAST.subn("", match["site"])
    site, n_on_top = _ON_TOP.subn("", site)
    flags: dict[str, Any] = {"is_on_top": n_on_top > 0, "is_not_last": n_not_last > 0}
    residues, position = parse_site(site)
    if n_not_last and (position != "anywhere" or not residues):
        raise ParameterError(f"{shortened(repr(text))}: 'not C-term' follows residues only, as in GG (K not C-term)")
    custom = _CUSTOM.fullmatch(match["name"].strip())
    if custom is not None:
        return replace(_custom_modification(text, custom["name"], custom["mass"], residues, position), **flags)
    entry = _entry_named(match["name"].strip())
    for residue in residues or ("",):
        if not entry.sites_covering(residue, position):
            listed = "; ".join(dict.fromkeys(str(site) for site in entry.sites)) or "no site"
            where = _write_site(residue, position)
            raise ParameterError(
                f"Unimod does not list the site {where} for {entry.title}; expected {listed}, "
                f"or a custom modification as My {entry.title}:{write_mass(entry.mass)} ({where})"
            )
    return SearchModification(entry.title, entry.id, entry.mass, residues, position, **flags)


def with_replaced_masses(variable: Sequence[SearchModification], fixed: Sequence[SearchModification]) -> tuple[SearchModification, ...]:
    """Return variable modifications with the masses of the fixed modifications that they replace.

    A modification whose residues have different fixed modifications is split. Modifications of a terminus replace fixed modifications of
    the terminus.

    Parameters
    ----------
    variable, fixed : sequence of SearchModification
        Modifications of a search.

    Returns
    -------
    tuple of SearchModification
        Variable modifications in the same order.

    Examples
    --------
    >>> fixed = [parse_modification("TMT6plex (K)"), parse_modification("Carbamidomethyl (C)")]
    >>> split = with_replaced_masses([parse_modification("Methyl (CKR)")], fixed)
    >>> [(str(modification), round(modification.replaced_mass, 3)) for modification in split]
    [('Methyl (C)', 57.021), ('Methyl (K)', 229.163), ('Methyl (R)', 0.0)]
    """
    result: list[SearchModification] = []
    chemical = [modification for modification in fixed if not modification.is_isotopic]
    for modification in variable:
        if modification.retains_fixed:
            result.append(modification)
            continue
        end = modification.end
        at_end = sum((other.mass for other in chemical if end and other.position == f"peptide {end}"), 0.0)
        groups: dict[float, str] = {}
        for residue in modification.residues or (" ",):
            at_residue = sum((other.mass for other in chemical if other.position == "anywhere" and residue in other.residues), 0.0)
            replaced = at_end + (at_residue if modification.replaces_fixed_of_residue else 0.0)
            groups[replaced] = groups.get(replaced, "") + residue.strip()
        result += [replace(modification, residues=residues, replaced_mass=replaced) for replaced, residues in groups.items()]
    return tuple(result)


def _custom_modification(text: str, name: str | None, mass_text: str, residues: str, position: Position) -> SearchModification:
    # Round to six decimals, as `write_mass` does, so that text and number agree.
    mass = round(float(mass_text.replace(" ", "")), 6)
    if name is not None and name.strip() in unimod():
        raise ParameterError(
            f"{shortened(repr(text))} gives another mass to {name.strip()}, which is a title of Unimod; "
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


_OLD_REMARKS = (" (By similarity)", " (Probable)", " (Potential)")


@cache
def annotated_names() -> dict[tuple[str, str], SearchModification]:
    """Return the modification for each pair of UniProt's name and the one-character code of the annotated residue.

    A modification of the residue applies to this residue only. A modification of the terminus (``N-acetylalanine``) usually applies to the
    terminus of any residue.
    """
    lines = resources.path("modifications", "uniprot.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {(name, residue): parse_modification(written) for name, residue, written in rows}


def annotated_modification(note: str, residue: str) -> SearchModification | None:
    """Return the modification that the annotation of a residue names; None if its mass is unknown or the residue does not fit.

    Parameters
    ----------
    note : str
        Text of the annotation.
    residue : str
        One-character code of the residue.

    Examples
    --------
    >>> str(annotated_modification("Phosphoserine; by PKA", "S"))
    'Phospho (S)'
    >>> str(annotated_modification("N-acetylalanine; partial", "A"))
    'Acetyl (N-term)'
    >>> annotated_modification("N-linked (GlcNAc...) asparagine", "N")
    """
    name = note.partition(";")[0].strip()
    for remark in _OLD_REMARKS:
        name = name.removesuffix(remark)
    return annotated_names().get((name, residue))


@cache
def names_digest() -> str:
    """Return the SHA-256 of UniProt's names with their modifications (see `annotated_names`), for cache keys."""
    digest = hashlib.sha256()
    for (name, residue), modification in sorted(annotated_names().items()):
        digest.update(f"{name}\t{residue}\t{modification.mass!r}\t{modification.position}\t{modification.residues}\n".encode())
    return digest.hexdigest()

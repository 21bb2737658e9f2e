"""Interpretation of the attributes of mzSpecLib 1.0 in text and JSON (HUPO-PSI, Klein et al. 2024, Anal. Chem. 96:18491)."""

import math
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from proteoscope.engine.chemistry.noted_peptides import parse_peptide
from proteoscope.engine.chemistry.peptidoforms import Peptidoform, parse
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.libraries.entries import Entry, first_charge
from proteoscope.engine.formats.numbers import number_or_nan, whole_or
from proteoscope.engine.unfolding import ATTRIBUTES, Unfolding

__all__ = ["USED_TERMS", "Attribute", "AttributeSets", "described"]

_SPECTRUM_NAME, _CHARGE, _SET_NAME = "MS:1003061", "MS:1000041", "MS:1003212"
_MZ = ("MS:1003208", "MS:1000744", "MS:1003053")
"""Terms of the precursor m/z in order of preference: measured monoisotopic, selected and theoretical."""
_RETENTION_TIME, _UNIT = "MS:1000894", "UO:0000000"
_SECONDS = {"UO:0000010": 1.0, "UO:0000031": 60.0}
_PROFORMA_ION, _PROFORMA, _STRIPPED = "MS:1003270", "MS:1003169", "MS:1000888"
_PROTEIN, _FORMULA, _INCHIKEY, _ADDUCT = "MS:1000885", "MS:1000866", "MS:1002894", "MS:1002813"
_N_PEAKS, _N_REPLICATES, _POLARITY, _NEGATIVE = "MS:1003059", "MS:1003070", "MS:1000465", "MS:1000129"
_ORIGIN = "MS:1003072"
_DECOYS = frozenset({"MS:1003192", "MS:1003193", "MS:1003194", "MS:1003195", "MS:1003196", "MS:1003197", "MS:1003198"})
USED_TERMS = frozenset(
    {
        _SPECTRUM_NAME,
        _CHARGE,
        _SET_NAME,
        *_MZ,
        _RETENTION_TIME,
        _UNIT,
        _PROFORMA_ION,
        _PROFORMA,
        _STRIPPED,
        _PROTEIN,
        _FORMULA,
        _INCHIKEY,
        _ADDUCT,
        _N_PEAKS,
        _N_REPLICATES,
        _POLARITY,
        _ORIGIN,
    }
)
"""Terms of the attributes that are read; others are ignored."""
_MAXIMUM_OF_SETS = 1_000
"""Maximum number of attributes that an entry may take from sets, since each use of a set takes as long as reading the whole set."""


class Attribute(NamedTuple):
    """Attribute of a spectrum or analyte.

    Attributes
    ----------
    term : str
        Accession of the term, such as ``MS:1000041``.
    value : str
        Value as text.
    value_term : str
        Accession of the value if the value is a term, otherwise ''.
    group : str
        Name of the group of attributes, or ''.
    """

    term: str
    value: str
    value_term: str = ""
    group: str = ""


@dataclass
class AttributeSets:
    """Sets of attributes that a library assigns to many entries.

    Attributes
    ----------
    unfolding : Unfolding
        Limit of the number of attributes that the sets add to the entries of a file.
    spectrum, analyte : dict of str to list of Attribute
        Sets by name, for spectra and for analytes; the set ``all`` applies to all entries.
    """

    unfolding: Unfolding
    spectrum: dict[str, list[Attribute]] = field(default_factory=dict)
    analyte: dict[str, list[Attribute]] = field(default_factory=dict)


def described(line: int, spectrum: list[Attribute], analytes: list[list[Attribute]], sets: AttributeSets) -> Entry:
    """Return the entry described by the attributes of its spectrum and its analytes.

    Parameters
    ----------
    line : int
        Line of the entry, from 1.
    spectrum : list of Attribute
        Attributes of the spectrum.
    analytes : list of list of Attribute
        Attributes of each analyte; entries with several analytes get an issue.
    sets : AttributeSets
        Sets to which the attributes may refer.

    Returns
    -------
    Entry
        Entry without peaks.
    """
    entry = Entry(line)
    if len(analytes) > 1:
        entry.issue = "it has several analytes"
        return entry
    attributes: list[Attribute] = []
    for direct, named in ((spectrum, sets.spectrum), (analytes[0] if analytes else [], sets.analyte)):
        used = _used_sets(direct, named)
        n_of_sets = sum(map(len, used))
        sets.unfolding.add(ATTRIBUTES, min(n_of_sets, _MAXIMUM_OF_SETS))
        if n_of_sets > _MAXIMUM_OF_SETS:
            entry.issue = f"its attribute sets contain more than {_MAXIMUM_OF_SETS:,} attributes"
            return entry
        attributes += [*direct, *chain.from_iterable(used)]
    by_term: dict[str, Attribute] = {}
    for attribute in attributes:
        by_term.setdefault(attribute.term, attribute)

    def text(term: str) -> str:
        return by_term[term].value if term in by_term else ""

    entry.name = text(_SPECTRUM_NAME)
    entry.proteins = list(dict.fromkeys(attribute.value for attribute in attributes if attribute.term == _PROTEIN))
    entry.formula, entry.inchikey, entry.adduct = text(_FORMULA), text(_INCHIKEY), text(_ADDUCT)
    entry.charge = first_charge(text(_CHARGE))
    entry.precursor_mz = next((number for term in _MZ if (number := number_or_nan(text(term))) > 0), math.nan)
    entry.n_announced = whole_or(text(_N_PEAKS), -1)
    entry.n_members = max(1, whole_or(text(_N_REPLICATES), 1))
    entry.is_decoy = _ORIGIN in by_term and by_term[_ORIGIN].value_term in _DECOYS
    if _RETENTION_TIME in by_term:
        _take_time(entry, by_term[_RETENTION_TIME], attributes)
    _take_peptide(entry, text(_PROFORMA_ION) or text(_PROFORMA), text(_STRIPPED))
    if _POLARITY in by_term:
        entry.polarity = -1 if by_term[_POLARITY].value_term == _NEGATIVE else 1
        entry.charge = -entry.charge if entry.charge > 0 and entry.polarity < 0 else entry.charge
    return entry


def _used_sets(attributes: list[Attribute], sets: dict[str, list[Attribute]]) -> list[list[Attribute]]:
    """Return the distinct sets to which the attributes refer, followed by the set ``all``.

    The set ``all`` is last because, of several attributes with the same term, the first is used.
    """
    names = dict.fromkeys([*(attribute.value for attribute in attributes if attribute.term == _SET_NAME), "all"])
    return [sets[name] for name in names if name in sets]


def _take_peptide(entry: Entry, proforma: str, stripped: str) -> None:
    try:
        if proforma:
            parsed = parse(proforma)
            entry.charge = entry.charge or parsed.charge or 0
            entry.peptide = Peptidoform(parsed.sequence, parsed.modifications, None, parsed.unlocalised, parsed.labile)
        elif stripped:
            entry.peptide = parse_peptide(stripped)
    except (ParameterError, ValueError):
        entry.issue = "its peptide cannot be read"


def _take_time(entry: Entry, time: Attribute, attributes: list[Attribute]) -> None:
    """Set the retention time of an entry; its unit is another attribute in the group of `time`. Without a unit, the time is unknown."""
    units = (attribute for attribute in attributes if time.group and attribute.group == time.group and attribute.term == _UNIT)
    unit = next((attribute.value_term for attribute in units), "")
    seconds = number_or_nan(time.value) * _SECONDS.get(unit, math.nan)
    if math.isnan(seconds):
        entry.remark = entry.remark or "its retention time has no unit of time or is not a number, and is unknown"
    entry.retention_time = seconds if seconds >= 0 else math.nan

"""Properties of a spectrum file, inferred from its beginning: analysers, fragmentation, and mass accuracy (exact or ion trap).

The description of the instrument in a file is not always reliable: some converters write only the analyser of the MS1 scans. The type of
the fragment masses is therefore taken from the description of the scans (``FTMS``, ``ITMS``) or else inferred from the peaks. In ion
traps, two peaks are never closer than the resolution, and distances of isotope peaks scatter around 1.00336 Th by the mass error. In
exact analysers, peaks can have any distance, and isotope peaks have exactly this distance. The type of the precursor masses is inferred
from their values: masses of peptides are near multiples of 1.000495 Da (Mann 1995), unless they have errors of half a dalton.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.activation import activation_names
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.formats.label_evidence import LabelEvidence, detect_label
from proteoscope.engine.formats.reading import create_parser
from proteoscope.engine.formats.sources import ByteSource, blocks
from proteoscope.engine.formats.spectrum_blocks import ParsedBlock

__all__ = ["Exactness", "SpectraContent", "fragment_exactness", "precursor_exactness", "spectra_content"]

Exactness = Literal["", "exact", "ion trap"]
"""Type of mass measurement, '' if unknown."""

_MAXIMUM_SPECTRA, _MAXIMUM_BYTES, _BLOCK = 300, 1 << 24, 1 << 20
_ANALYSERS = {
    b"1000484": "orbitrap",
    b"1000079": "FT-ICR",
    b"1000084": "time of flight",
    b"1003379": "Astral",
    b"1000264": "ion trap",
    b"1000082": "ion trap",
    b"1000291": "ion trap",
    b"1000083": "ion trap",
    b"1000078": "ion trap",
    b"1000081": "quadrupole",
}
_EXACT_ANALYSERS = frozenset({"orbitrap", "FT-ICR", "time of flight", "Astral"})
_MALDI = b"MS:1000075"
_TERM = re.compile(rb'accession="MS:(\d{7})"')
_MZXML = re.compile(rb'<msMassAnalyzer[^>]{0,200}value="([^"]{1,60})"|<msIonisation[^>]{0,200}value="([^"]{1,60})"')
_FILTER = re.compile(rb'"(FTMS|ITMS|ASTMS|TOFMS)[^"<>]{1,200}?ms([123]?)[ "]')
_COUNT = re.compile(rb'<spectrumList[^>]{0,400}?count="(\d{1,12})"|<msRun[^>]{0,400}?scanCount="(\d{1,12})"')
_ISOTOPE, _NEAR, _TIGHT, _APART = 1.00336, 0.1, 0.006, 0.25
_ENOUGH_GAPS, _ENOUGH_PRECURSORS = 100, 30
_EXACT_SHARE, _TRAP_SHARE = 0.18, 0.12
"""Limits for the fraction of gaps within `_TIGHT` among those within `_NEAR` of an isotope distance (ion traps 0.06, others 0.27 to 0.48).
"""
_EXACT_APART, _TRAP_APART = 0.01, 0.003
"""Limits for the fraction of gaps below `_APART` among all gaps (ion traps 0, others 0.05 to 0.13)."""
_CLUSTER, _PROTON = 1.000495, 1.00727646688
_EXACT_SPREAD, _TRAP_SPREAD = 0.15, 0.23
"""Limits for the standard deviation of precursor masses from the nearest multiple, in multiples (0.29 for random masses)."""


@dataclass(frozen=True)
class SpectraContent:
    """Properties of a spectrum file.

    Attributes
    ----------
    analysers, fragmentation : tuple of str
        Mass analysers and fragmentation methods that the file names, in its order.
    is_maldi : bool
        True if the file names MALDI.
    fragments, precursors : Exactness
        Types of the mass measurement of fragments and of precursors.
    n_spectra : int
        Number of spectra declared in the file, or 0.
    n_inspected, n_ms2 : int
        Number of inspected spectra, and of inspected MS2 spectra.
    singly_charged : float
        Fraction of singly charged precursors among those of known charge, or 0.
    label : LabelEvidence
        Isobaric label, from reporter ions and y1 ions.
    name : str
        Name of the file.
    """

    analysers: tuple[str, ...] = ()
    fragmentation: tuple[str, ...] = ()
    is_maldi: bool = False
    fragments: Exactness = ""
    precursors: Exactness = ""
    n_spectra: int = 0
    n_inspected: int = 0
    n_ms2: int = 0
    singly_charged: float = 0.0
    label: LabelEvidence = ""
    name: str = ""

    @property
    def text(self) -> str:
        """Summary for users, such as ``orbitrap; HCD; exact fragments; MS1 and MS2, 1,684 spectra``."""
        levels = "MS2 only" if self.n_ms2 == self.n_inspected else "MS1 and MS2"
        fragments = {"exact": "exact fragments", "ion trap": "ion-trap fragments"}.get(self.fragments, "")
        count = f"{self.n_spectra:,} spectra" if self.n_spectra else ""
        label = "" if self.label in ("", "none") else f"label {self.label}"
        parts = (", ".join(self.analysers), ", ".join(self.fragmentation), fragments, label, ", ".join(filter(None, (levels, count))))
        return "; ".join(part for part in parts if part)


def spectra_content(path: Path) -> SpectraContent | None:
    """Return the properties of a spectrum file from its first spectra; None if the file cannot be read without conversion."""
    try:
        with ByteSource(path) as source:
            parser = create_parser(source, takes_negative=True)
            parsed: list[ParsedBlock] = []
            texts: list[bytes] = []
            for block in blocks(source, parser.cut, _BLOCK, maximum_bytes=_MAXIMUM_BYTES):
                if block.is_first:
                    parser.begin(block)
                parsed.append(parser.parse(block, "auto"))
                texts.append(block.text)
                n_parsed = sum(len(parsed_block.offsets) - 1 for parsed_block in parsed)
                if n_parsed >= _MAXIMUM_SPECTRA or block.start + len(block.text) >= _MAXIMUM_BYTES:
                    break
    except (ProteoscopeError, OSError):
        return None
    return _content(parsed, b"".join(texts), path.name) if parsed else None


def _content(parsed: list[ParsedBlock], text: bytes, name: str) -> SpectraContent:
    terms = dict.fromkeys(_TERM.findall(text))
    analysers = list(dict.fromkeys(_ANALYSERS[term] for term in terms if term in _ANALYSERS))
    fragmentation = filter(None, dict.fromkeys(activation_names(np.concatenate([block.activation for block in parsed]))))
    is_maldi = _MALDI in text
    for analyser, ionisation in dict.fromkeys(_MZXML.findall(text)):
        if analyser:
            analysers.append(_plain(analyser))
        is_maldi = is_maldi or b"maldi" in ionisation.lower() or b"matrix" in ionisation.lower()
    filters = _FILTER.findall(text)
    fragment_scans = {kind for kind, level in filters if level not in (b"", b"1")}
    precursor_scans = {kind for kind, level in filters if level in (b"", b"1")}
    fragments = _by_filter(fragment_scans) or fragment_exactness([(block.mz, block.offsets) for block in parsed])
    charges = np.concatenate([block.charge_mask for block in parsed])
    precursors = precursor_exactness(np.concatenate([block.precursor_mz for block in parsed]), charges)
    charged = charges[charges > 1]
    count = next((int(mzml_count or mzxml_count) for mzml_count, mzxml_count in _COUNT.findall(text)), 0)
    label = detect_label([(block.mz, block.intensity, block.offsets) for block in parsed], is_exact=fragments == "exact")
    return SpectraContent(
        tuple(dict.fromkeys(analysers)),
        tuple(fragmentation),
        is_maldi,
        fragments,
        precursors or _by_filter(precursor_scans) or _by_name(analysers),
        count,
        sum(block.n_spectra for block in parsed),
        len(charges),
        float((charged == 2).mean()) if len(charged) else 0.0,
        label,
        name,
    )


def _plain(text: bytes) -> str:
    return "".join(character for character in text.decode("utf-8", "replace") if character.isprintable())


def _by_filter(kinds: set[bytes]) -> Exactness:
    """Return the type of mass measurement if the descriptions of all scans agree, otherwise ''."""
    return "" if not kinds else "ion trap" if kinds == {b"ITMS"} else "" if b"ITMS" in kinds else "exact"


def _by_name(analysers: list[str]) -> Exactness:
    named = {name.lower() for name in analysers}
    if named & {name.lower() for name in _EXACT_ANALYSERS}:
        return "exact"
    return "ion trap" if named and all("trap" in name and "orbi" not in name for name in named) else ""


def fragment_exactness(peaks: list[tuple[NDArray[np.float64], NDArray[np.int64]]]) -> Exactness:
    """Classify the mass measurement of fragments by the distances of neighbouring peaks.

    Parameters
    ----------
    peaks : list of (ndarray, ndarray)
        Blocks of spectra: m/z (thomson, ascending in each spectrum), and the offsets of n spectra, shape (n + 1,).

    Returns
    -------
    Exactness
        Type of mass measurement; '' if there are too few peaks or the evidence is inconclusive.
    """
    gaps = [np.empty(0)]
    for mz, offsets in peaks:
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        gaps.append(np.diff(mz)[owner[1:] == owner[:-1]])
    gap = np.concatenate(gaps)
    off = np.abs(gap - _ISOTOPE)
    n_near = np.count_nonzero(off < _NEAR)
    if n_near < _ENOUGH_GAPS:
        return ""
    fraction, apart = np.count_nonzero(off < _TIGHT) / n_near, np.count_nonzero(gap < _APART) / len(gap)
    if fraction >= _EXACT_SHARE and apart >= _EXACT_APART:
        return "exact"
    return "ion trap" if fraction <= _TRAP_SHARE and apart <= _TRAP_APART else ""


def precursor_exactness(precursor_mz: NDArray[np.float64], charge_mask: NDArray[np.uint32]) -> Exactness:
    """Classify the mass measurement of precursors by their distances from the usual masses of peptides.

    Parameters
    ----------
    precursor_mz : ndarray of float64, shape (n,)
        m/z in thomson.
    charge_mask : ndarray of uint32, shape (n,)
        Bits of the possible charges; only precursors with one possible charge are used.

    Returns
    -------
    Exactness
        Type of mass measurement; '' if there are too few precursors or the evidence is inconclusive.
    """
    charge = np.log2(np.maximum(charge_mask & ~np.uint32(1), 1))
    is_known = (charge >= 1) & (charge == np.floor(charge)) & np.isfinite(precursor_mz)
    units = (precursor_mz[is_known] - _PROTON) * charge[is_known] / _CLUSTER
    if len(units) < _ENOUGH_PRECURSORS:
        return ""
    spread = float(np.sqrt(np.mean((units - np.rint(units)) ** 2)))
    return "exact" if spread <= _EXACT_SPREAD else "ion trap" if spread >= _TRAP_SPREAD else ""

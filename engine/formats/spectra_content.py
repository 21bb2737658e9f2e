"""Properties of a spectrum file, inferred from its beginning: analysers, fragmentation, and mass accuracy (exact or ion trap).

The description of the instrument in a file is not always reliable: some converters write only the analyser of the MS1 scans. The mass
accuracy of fragments is therefore taken from the description of the scans (``FTMS``, ``ITMS``) or, without one, inferred from the peaks. In
ion traps, two peaks are never closer than the resolution, and distances of isotope peaks scatter around 1.00336 Th by the mass error. In
exact analysers, peaks can have any distance, and isotope peaks have exactly this distance. The mass accuracy of precursors is inferred from
their masses: measured masses of peptides are near multiples of 1.000495 Da (Mann 1995), unless the errors are as large as half a dalton.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources
from proteoscope.engine.arrays import row_mask
from proteoscope.engine.chemistry.activation import activation_names
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.formats.reading import create_parser
from proteoscope.engine.formats.sources import ByteSource, blocks
from proteoscope.engine.formats.spectrum_blocks import ParsedBlock

__all__ = [
    "LABEL_MASSES",
    "Exactness",
    "LabelEvidence",
    "SpectraContent",
    "detect_label",
    "fragment_exactness",
    "precursor_exactness",
    "spectra_content",
]

LabelEvidence = Literal["", "none", "TMT", "TMTpro", "iTRAQ 4-plex", "iTRAQ 8-plex"]
"""Detected label: ``none`` if there is evidence against every label, '' if there is no evidence."""

LABEL_MASSES: dict[LabelEvidence, float] = {"TMT": 229.162932, "TMTpro": 304.207146, "iTRAQ 4-plex": 144.102063, "iTRAQ 8-plex": 304.205360}
"""Masses of the labels in dalton."""

_WITHIN = 0.004  # thomson; a third of the distance to the nearest ions of amino acids
_MINIMUM_HEIGHT = 0.01  # intensity relative to the base peak
_CHANNELS = 2
_LABELLED, _UNLABELLED = 0.3, 0.02
"""Minimum fraction of spectra with reporter ions in labelled samples, and maximum in other samples (test files: 0.83 to 1, and 0.005)."""
_MINIMUM_SPECTRA, _MINIMUM_LABELLED = 30, 3
_LOWEST_MZ, _RECORDED = 132.0, 0.5
"""m/z limit (Th); if at least this fraction of spectra has peaks below it, the m/z range of reporter ions was recorded."""
_LYSINE_Y1, _SEEN, _TIMES = 147.112804, 0.05, 3.0
"""m/z (Th) of the y1 ion without label; minimum fraction of spectra with a y1 ion; minimum ratio of the fractions of both y1 ions."""
_FOUR_PLEX = frozenset((114, 115, 116, 117))


def detect_label(peaks: Sequence[tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]], *, is_exact: bool) -> LabelEvidence:
    """Detect the isobaric label of fragment spectra.

    Parameters
    ----------
    peaks : sequence of (mz, intensity, offsets)
        Blocks of spectra: m/z (thomson) and intensity of the peaks, and the offsets of n spectra, shape (n + 1,).
    is_exact : bool
        True if fragment masses were measured at high resolution.

    Returns
    -------
    LabelEvidence
        Detected label.
    """
    mz, intensity, owner, n = _columns(peaks)
    if n < _MINIMUM_LABELLED:
        return ""
    base = np.zeros(n)
    np.maximum.at(base, owner, intensity)
    is_high = intensity >= _MINIMUM_HEIGHT * base[owner]

    def fraction_with(ions: NDArray[np.float64], channels: int) -> float:
        """Return the fraction of spectra that have peaks at the nominal masses of at least `channels` of the reporter ions `ions`."""
        n_channels = np.zeros(n, np.int64)
        for nominal in np.unique(np.floor(ions)):
            has = np.zeros(n, bool)
            for ion in ions[np.floor(ions) == nominal]:
                has[owner[is_high & (np.abs(mz - ion) < _WITHIN)]] = True
            n_channels += has
        return float(np.mean(n_channels >= channels))

    lysine = {name: fraction_with(np.array([_LYSINE_Y1 + mass]), 1) for name, mass in {"": 0.0, **LABEL_MASSES}.items()}
    tmt, itraq = (fraction_with(_reporters(kit), _CHANNELS) for kit in ("tmt-18", "itraq-8"))
    if max(tmt, itraq) >= _LABELLED:
        if tmt >= itraq:
            return "TMTpro" if lysine["TMTpro"] >= _SEEN and lysine["TMTpro"] > _TIMES * lysine["TMT"] else "TMT"
        ions = _reporters("itraq-8")
        others = ions[[int(ion) not in _FOUR_PLEX for ion in ions]]
        return "iTRAQ 8-plex" if fraction_with(others, _CHANNELS) >= _LABELLED else "iTRAQ 4-plex"
    if n < _MINIMUM_SPECTRA or not is_exact:
        return ""
    was_recorded = row_mask(n, owner[mz < _LOWEST_MZ])
    best: LabelEvidence = max(LABEL_MASSES, key=lambda name: lysine[name])
    is_lysine_light = lysine[""] >= _SEEN
    if lysine[best] >= _SEEN and lysine[best] > _TIMES * lysine[""]:
        # Both labels of 304 Da have the same y1 within the tolerance.
        return "" if best in ("TMTpro", "iTRAQ 8-plex") else best
    is_free = max(tmt, itraq) <= _UNLABELLED and lysine[best] <= max(_UNLABELLED, lysine[""] / _TIMES)
    return "none" if is_free and (was_recorded.mean() >= _RECORDED or is_lysine_light) else ""


def _columns(
    peaks: Sequence[tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]],
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64], int]:
    """Return m/z, intensity and spectrum index of all peaks, and the number of spectra with peaks."""
    mz, intensity, owner, n = [np.empty(0)], [np.empty(0, np.float32)], [np.empty(0, np.int64)], 0
    for block_mz, heights, offsets in peaks:
        counts = np.diff(offsets)
        counts = counts[counts > 0]
        mz.append(block_mz)
        intensity.append(heights)
        owner.append(np.repeat(np.arange(len(counts)) + n, counts))
        n += len(counts)
    return np.concatenate(mz), np.concatenate(intensity), np.concatenate(owner), n


@cache
def _reporters(kit: str) -> NDArray[np.float64]:
    """Return the m/z of the reporter ions of a kit, thomson."""
    lines = resources.path("isobaric", "reporter_ions.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return np.array([float(mz) for label, _, mz in rows if label == kit])


Exactness = Literal["", "exact", "ion trap"]
"""Mass accuracy (high resolution or ion trap), '' if unknown."""

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
"""Limits for the fraction of gaps within `_TIGHT` of an isotope distance among gaps within `_NEAR` (ion traps 0.06, others 0.27-0.48)."""
_EXACT_APART, _TRAP_APART = 0.01, 0.003
"""Limits for the fraction of gaps below `_APART` among all gaps (ion traps 0, others 0.05 to 0.13)."""
_CLUSTER, _PROTON = 1.000495, 1.00727646688
_EXACT_SPREAD, _TRAP_SPREAD = 0.15, 0.23
"""Limits for the standard deviation of precursor masses from the nearest multiple of `_CLUSTER`, in units of `_CLUSTER` (random: 0.29)."""


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
        Mass accuracy of fragments and of precursors.
    n_spectra : int
        Number of spectra declared in the file, or 0.
    n_inspected, n_ms2 : int
        Number of inspected spectra, and of inspected MS2 spectra.
    singly_charged : float
        Fraction of the precursors of known charge that are singly charged; 0 without such precursors.
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
    """Return the mass accuracy, given the analysers in the descriptions of the scans.

    It is ``ion trap`` for ``ITMS`` only, and ``exact`` for others such as ``FTMS``; '' for a mixture with ``ITMS``, or without analysers.
    """
    return "" if not kinds else "ion trap" if kinds == {b"ITMS"} else "" if b"ITMS" in kinds else "exact"


def _by_name(analysers: list[str]) -> Exactness:
    named = {name.lower() for name in analysers}
    if named & {name.lower() for name in _EXACT_ANALYSERS}:
        return "exact"
    return "ion trap" if named and all("trap" in name and "orbi" not in name for name in named) else ""


def fragment_exactness(peaks: list[tuple[NDArray[np.float64], NDArray[np.int64]]]) -> Exactness:
    """Classify the mass accuracy of fragments by the distances between neighbouring peaks.

    Parameters
    ----------
    peaks : list of (ndarray, ndarray)
        Blocks of spectra: m/z (thomson, ascending in each spectrum), and the offsets of n spectra, shape (n + 1,).

    Returns
    -------
    Exactness
        Mass accuracy; '' if there are too few peaks or the evidence is inconclusive.
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
    """Classify the mass accuracy of precursors by their distances from the usual masses of peptides.

    Parameters
    ----------
    precursor_mz : ndarray of float64, shape (n,)
        m/z in thomson.
    charge_mask : ndarray of uint32, shape (n,)
        Bits of the possible charges; only precursors with one possible charge are used.

    Returns
    -------
    Exactness
        Mass accuracy; '' if there are too few precursors or the evidence is inconclusive.
    """
    charge = np.log2(np.maximum(charge_mask & ~np.uint32(1), 1))
    is_known = (charge >= 1) & (charge == np.floor(charge)) & np.isfinite(precursor_mz)
    units = (precursor_mz[is_known] - _PROTON) * charge[is_known] / _CLUSTER
    if len(units) < _ENOUGH_PRECURSORS:
        return ""
    spread = float(np.sqrt(np.mean((units - np.rint(units)) ** 2)))
    return "exact" if spread <= _EXACT_SPREAD else "ion trap" if spread >= _TRAP_SPREAD else ""

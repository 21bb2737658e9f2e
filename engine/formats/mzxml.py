"""Reader of mzXML (Pedrioli et al. 2004, Nat. Biotechnol. 22:1459), versions 2 and 3."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.chemistry.activation import parse_activation, parse_filter_activation
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.binary_arrays import PLAIN, UNSUPPORTED, Arrays
from proteoscope.engine.formats.mzml import collect_level, read_charges
from proteoscope.engine.formats.numbers import POINT
from proteoscope.engine.formats.sources import Block
from proteoscope.engine.formats.spectrum_blocks import (
    CUT_OFF,
    MAXIMUM_NAME_BYTES,
    NEGATIVE,
    IssueCode,
    Mode,
    Origin,
    ParsedBlock,
    SpectrumIssue,
    SpectrumTable,
    charge_bits,
)
from proteoscope.engine.formats.tags import Names, TagKind, TagTable

__all__ = ["MzxmlParser"]

_SCAN = re.compile(rb"<scan\s")
_BEGINNINGS = (b"<scan ", b"<scan\n", b"<scan\r", b"<scan\t")
_DURATION = re.compile(rb"P(?:0+Y)?(?:0+M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.eE+-]+)S)?)?")
_NAMES = Names(
    ("scan", "precursorMz", "peaks", "dataProcessing"),
    (
        "num",
        "msLevel",
        "peaksCount",
        "retentionTime",
        "polarity",
        "compensationVoltage",
        "centroided",
        "precursorIntensity",
        "precursorCharge",
        "precursorScanNum",
        "possibleCharges",
        "windowWideness",
        "activationMethod",
        "filterLine",
        "precision",
        "byteOrder",
        "compressionType",
        "contentType",
        "pairOrder",
    ),
)


class MzxmlParser:
    """Parser of mzXML files; spectra are named ``scan=NUMBER``, the PSI's native ID for this format.

    Parameters
    ----------
    path : Path
        File, for messages.
    takes_negative : bool
        True to read spectra of negative ions; otherwise they are reported as issues.
    """

    has_decimal_commas = False
    level = 2
    """MS level of the spectra to read: 2 by default, 1 for `proteoscope.engine.formats.ms1_spectra`, 3 for reporter ions."""

    def __init__(self, path: Path, *, takes_negative: bool = False) -> None:
        self._path, self.takes_negative = path, takes_negative
        self._default_mode = Mode.UNKNOWN

    def begin(self, block: Block) -> None:
        """Read from the header whether all spectra of the file are centroided."""
        match = _SCAN.search(block.text)
        header = block.text[: match.start() if match else len(block.text)]
        if b"<!DOCTYPE" in header or b"<!ENTITY" in header:
            raise InputError(self._path, "the XML has a document type declaration", remedy="Convert the file again")
        tags = TagTable.scan(header, _NAMES, self._path)
        centroided = tags.values("centroided", np.flatnonzero(tags.opening("dataProcessing")))
        self._default_mode = Mode.CENTROID if {b"1", b"true"} & set(centroided) else Mode.UNKNOWN

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the start of the last scan (``<scan`` and a blank or line end); 0 if there is none.

        Scans may be nested. Since the peaks of an outer scan precede its inner scans, a block may also end before an inner scan.
        """
        for beginning in _BEGINNINGS:
            at = text.rfind(beginning)
            if at > 0:
                return at
        return 0

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        """Return the spectra of a block that have the parser's MS level."""
        tags = TagTable.scan(block.text, _NAMES, self._path)
        is_start = tags.opening("scan")
        starts, owner = np.flatnonzero(is_start), np.cumsum(is_start) - 1
        table = SpectrumTable(len(starts))
        table.identifier = [f"scan={name}" for name in tags.names_at("num", starts, "utf-8", MAXIMUM_NAME_BYTES)]
        table.note(np.flatnonzero(tags.lengths("num", starts) > MAXIMUM_NAME_BYTES), IssueCode.NAME)
        table.scan[:] = tags.whole_numbers("num", starts)
        centroided = {b"1": Mode.CENTROID, b"true": Mode.CENTROID, b"0": Mode.PROFILE, b"false": Mode.PROFILE}
        table.mode[:] = [centroided.get(value, self._default_mode) for value in tags.values("centroided", starts)]
        table.retention_time[:] = [_seconds(value) for value in tags.values("retentionTime", starts)]
        table.voltage[:] = tags.numbers("compensationVoltage", starts)[0]
        levels = tags.whole_numbers("msLevel", starts)
        broken = np.flatnonzero(tags.kind == TagKind.BROKEN)
        in_scan = owner[broken] >= 0
        table.note(owner[broken[in_scan]], IssueCode.XML)
        _read_precursors(tags, owner, table, levels)
        _read_filters(tags, starts, table, levels == self.level)
        table.charges[[polarity == b"-" for polarity in tags.values("polarity", starts)]] |= NEGATIVE
        if not self.takes_negative:
            table.note_negative()
        arrays, is_open = _pairs(tags, owner, tags.whole_numbers("peaksCount", starts))
        parsed = collect_level(self._path, tags.text, table, levels, (arrays,), centroid, self.level)
        parsed.n_deeper = int((levels == 3).sum())
        if self.level > 2:
            parsed.origins = _origins(tags, owner, parsed.index)
        if block.is_last and (is_open or (b"</msRun>" not in block.text and b"</mzXML>" not in block.text)):
            parsed.issues.append(CUT_OFF)
        elif not in_scan.all():
            at = block.start + int(tags.begin[broken[~in_scan][0]])
            parsed.issues.append(SpectrumIssue.from_code(IssueCode.XML, spectrum=f"byte {at}", is_fatal=True))
        return parsed


def _seconds(duration: bytes) -> float:
    """Convert an xsd:duration such as ``PT1M2.5S``, or a number without a unit, to seconds; NaN if it is invalid."""
    try:
        if not duration.startswith(b"P"):
            return float(duration)
        match = _DURATION.fullmatch(duration)
        if not match:
            return np.nan
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    except ValueError:
        return np.nan


def _read_precursors(tags: TagTable, owner: NDArray[np.int64], table: SpectrumTable, levels: NDArray[np.int64]) -> None:
    """Read the first precursor of each scan into the table, and all precursors of MS2 scans with several precursors."""
    every = _precursors(tags, owner)
    spectrum, first, count = np.unique(owner[every], return_index=True, return_counts=True)
    at = every[first]
    table.precursor_mz[spectrum], is_broken = _mz_between(tags, at)
    table.note(spectrum[is_broken], IssueCode.NUMBER)
    heights, _ = tags.numbers("precursorIntensity", at)
    table.precursor_intensity[spectrum] = np.where(heights > 0, heights, 0.0)
    table.isolation_width[spectrum] = tags.numbers("windowWideness", at)[0]
    texts = tags.values("activationMethod", at)
    activations = {text: parse_activation(text.decode("latin-1")) for text in set(texts)}
    table.activation[spectrum] = [activations[text] for text in texts]
    possible = np.zeros(len(table), dtype=np.int64)
    read_charges(tags.values("precursorCharge", at), spectrum, table.charges, table)
    read_charges(tags.values("possibleCharges", at), spectrum, possible, table)
    table.charges[:] = np.where(table.charges != 0, table.charges, possible)
    if (count > 1).any():
        several = every[np.isin(owner[every], spectrum[(count > 1) & (levels[spectrum] == 2)])]
        _take_all_precursors(tags, owner, several, table)


def _read_filters(tags: TagTable, starts: NDArray[np.int64], table: SpectrumTable, is_wanted: NDArray[np.bool_]) -> None:
    """Set the activations of scans from their filter strings, except of scans whose precursors state the activation."""
    rows = np.flatnonzero(is_wanted & (table.activation == 0))
    for row, text in zip(rows.tolist(), tags.values("filterLine", starts[rows]), strict=True):
        table.activation[row] = parse_filter_activation(text.decode("latin-1"))


def _take_all_precursors(tags: TagTable, owner: NDArray[np.int64], at: NDArray[np.int64], table: SpectrumTable) -> None:
    """Set the precursors of scans with several precursors; `at` are the indices of the start tags of these precursors."""
    candidates: dict[int, list[tuple[float, int]]] = {}
    charges = zip(tags.values("precursorCharge", at), tags.values("possibleCharges", at), strict=True)
    for spectrum, mz, texts in zip(owner[at].tolist(), _mz_between(tags, at)[0].tolist(), charges, strict=True):
        (bits, issue), (possible, _) = map(charge_bits, texts)
        if issue:
            table.note(np.array([spectrum]), issue)
        if mz > 0:
            candidates.setdefault(spectrum, []).append((mz, bits or possible))
    for spectrum, precursors in candidates.items():
        table.take_precursors(spectrum, precursors)


def _precursors(tags: TagTable, owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the start tags of the precursors of scans."""
    return np.flatnonzero(tags.named("precursorMz") & (tags.kind == TagKind.START) & (owner >= 0))


def _mz_between(tags: TagTable, at: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the number in the text after each of the tags `at`, and True for each text that is not a number."""
    following = np.minimum(at + 1, len(tags) - 1)
    stop = np.maximum(tags.begin[following], tags.after[at])
    start = kernels.cpu.text.after_blanks(tags.text, tags.after[at], stop)
    ends = np.empty(len(at), dtype=np.int64)
    numbers = kernels.cpu.text.parse_numbers(tags.text, start, stop, ends, POINT)
    after = kernels.cpu.text.after_blanks(tags.text, ends, stop)
    return numbers, (start < stop) & ((ends == start) | (after < stop))


def _origins(tags: TagTable, owner: NDArray[np.int64], rows: NDArray[np.int64]) -> list[Origin]:
    """Return the precursor scans and ions of the scans `rows` of a block."""
    at = _precursors(tags, owner)
    scans, mz = tags.whole_numbers("precursorScanNum", at), _mz_between(tags, at)[0]
    names: dict[int, list[str]] = {}
    ions: dict[int, list[float]] = {}
    for spectrum, scan, ion_mz in zip(owner[at].tolist(), scans.tolist(), mz.tolist(), strict=True):
        if scan >= 0:
            names.setdefault(spectrum, []).append(f"scan={scan}")
        ions.setdefault(spectrum, []).append(ion_mz)
    return [Origin(tuple(names.get(row, ())), tuple(ions.get(row, ()))) for row in rows.tolist()]


def _pairs(tags: TagTable, owner: NDArray[np.int64], lengths: NDArray[np.int64]) -> tuple[Arrays, bool]:
    """Return the first array of (m/z, intensity) pairs of each scan; and True if the text ends within an array, otherwise False."""
    n = len(lengths)
    openings = np.flatnonzero(tags.opening("peaks") & (owner >= 0))
    spectrum, first = np.unique(owner[openings], return_index=True)
    at = openings[first]
    following = np.minimum(at + 1, len(tags) - 1)
    is_empty = tags.kind[at] == TagKind.EMPTY
    is_whole = is_empty | (tags.named("peaks")[following] & (tags.kind[following] == TagKind.END))
    arrays = Arrays(
        start=np.full(n, -1, dtype=np.int64),
        stop=np.full(n, -1, dtype=np.int64),
        dtype=np.full(n, ">f4", dtype="<U3"),
        compression=np.full(n, PLAIN, dtype=np.int64),
        is_zlib=np.zeros(n, dtype=np.bool_),
        length=lengths.copy(),
        per_peak=2,
    )
    # A scan without peaks contains one pair of zeros or nothing, and is not decoded.
    decoded = is_whole & (lengths[spectrum] != 0)
    arrays.start[spectrum[decoded]] = np.where(is_empty, tags.begin[at], tags.after[at])[decoded]
    arrays.stop[spectrum[decoded]] = tags.begin[np.where(is_empty, at, following)][decoded]
    arrays.dtype[spectrum] = [">f8" if value == b"64" else ">f4" for value in tags.values("precision", at)]
    compressions = tags.values("compressionType", at)
    arrays.is_zlib[spectrum] = [value == b"zlib" for value in compressions]
    others = [tags.values(name, at) for name in ("byteOrder", "contentType", "pairOrder")]
    is_known = [
        compression in (b"", b"none", b"zlib")
        and order in (b"", b"network")
        and content in (b"", b"m/z-int")
        and pairs in (b"", b"m/z-int")
        for compression, order, content, pairs in zip(compressions, *others, strict=True)
    ]
    arrays.compression[spectrum[~np.array(is_known, dtype=np.bool_)]] = UNSUPPORTED
    return arrays, bool(len(at)) and not bool(is_whole[-1])

"""Reader of mzML (HUPO-PSI; Martens et al. 2011, Mol. Cell. Proteomics 10:R110.000133), with or without an index.

An index is ignored: files are read from beginning to end, so that a wrong index, which is a common error, has no effect.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import row_mask, segment_offsets
from proteoscope.engine.chemistry.activation import Activation, activations_from_terms, combine_activations, parse_filter_activation
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.binary_arrays import (
    LINEAR,
    MAXIMUM_NUMBERS,
    PIC,
    PLAIN,
    SLOF,
    UNSUPPORTED,
    Arrays,
    decode_arrays,
    limit_unpacking,
)
from proteoscope.engine.formats.numbers import number_or_nan
from proteoscope.engine.formats.reporter_regions import NOISE_TERMS, noise_numbers, noise_samples
from proteoscope.engine.formats.sources import Block
from proteoscope.engine.formats.spectrum_blocks import (
    CUT_OFF,
    MAXIMUM_NAME_BYTES,
    NEGATIVE,
    IssueCode,
    Mode,
    Origin,
    ParsedBlock,
    RemarkCode,
    SpectrumIssue,
    SpectrumTable,
    charge_bits,
    finish,
)
from proteoscope.engine.formats.tags import Names, TagKind, TagTable, check_tags, xml_encoding

__all__ = ["MzmlParser", "collect_level", "read_charges"]

_SPECTRUM = re.compile(rb"<spectrum(?:List)?[\s>/]")
# Native IDs of most vendors end with ``scan=``; converters from mzData and mzXML write ``spectrum=`` with the scan number.
_NATIVE_SCAN = re.compile(r"(?:^|\s)(?:scan|scanId|spectrum)=(\d{1,18})(?:\s|$)")
_NAMES = Names(
    (
        "cvParam",
        "spectrum",
        "scan",
        "precursor",
        "selectedIon",
        "binaryDataArray",
        "binary",
        "referenceableParamGroupRef",
        "referenceableParamGroup",
    ),
    ("accession", "value", "unitAccession", "id", "ref", "defaultArrayLength", "arrayLength", "spectrumRef"),
)
# Terms of the PSI-MS vocabulary and, for units, of the unit ontology.
_SECONDS = {31: 60.0, 1000038: 60.0, 10: 1.0, 1000039: 1.0, 28: 0.001, 32: 3600.0}
_DTYPES = {1000523: "<f8", 1000521: "<f4", 1000522: "<i8", 1000519: "<i4"}
_COMPRESSIONS = {
    1000576: (PLAIN, False),
    1000574: (PLAIN, True),
    1002312: (LINEAR, False),
    1002313: (PIC, False),
    1002314: (SLOF, False),
    1002746: (LINEAR, True),
    1002747: (PIC, True),
    1002748: (SLOF, True),
}
# 16-bit floats, text, zlib with truncation or prediction, all variants of zstd.
_UNSUPPORTED = (1000520, 1001479, 1003088, 1003089, 1003090, *range(1003780, 1003790))
_MZ_ARRAY, _INTENSITY_ARRAY = 1000514, 1000515
_NEGATIVE_SCAN = 1000129
_FAIMS_VOLTAGE = 1001581
_FILTER = 1000512
_PRECURSOR_TERMS = (1000827, 1000744, 1000040, 1000041, 1000633)
"""Terms of the isolation window's target, of the m/z of a selected ion (two terms), of its charge and of its possible charges."""
_ISOLATION_OFFSETS = (1000828, 1000829)
_COMPLETED_BY_FILTER = (Activation.UNKNOWN, Activation.ETD, Activation.ECD)
"""Activations that the filter string may extend: older converters name only electron transfer, even if collisions follow."""
_PRECURSORS = (1000827, 1000744)
"""Terms of the isolation window's target and of the m/z of a selected ion."""
# Drift time and inverse reduced mobility of a scan or an ion, and all types of mobility arrays.
_MOBILITIES = (1002476, 1002815, 1002477, 1002816, 1002893, 1003006, 1003007, 1003008, 1003153, 1003154, 1003155, 1003156)


class MzmlParser:
    """Parser of mzML files.

    Parameters
    ----------
    path : Path
        File, for messages.
    takes_negative : bool
        True to read spectra of negative ions; otherwise they are reported as issues.
    """

    level = 2
    """MS level of the spectra to read: 2 by default, 1 for `proteoscope.engine.formats.ms1_spectra`, 3 for reporter ions."""
    has_decimal_commas = False
    reads_noise = False
    """True if blocks include the noise of their spectra."""

    def __init__(self, path: Path, *, takes_negative: bool = False) -> None:
        self._path, self.takes_negative = path, takes_negative
        self._encoding = "utf-8"
        self._groups: dict[bytes, NDArray[np.int64]] = {}
        self._group_text = b""

    def begin(self, block: Block) -> None:
        """Read the encoding and the referenceableParamGroups in the text before the first spectrum."""
        self._encoding = xml_encoding(block.text)
        match = _SPECTRUM.search(block.text)
        header = block.text[: match.start() if match else len(block.text)]
        tags = TagTable.scan(header, _NAMES, self._path)
        broken = np.flatnonzero(tags.kind == TagKind.BROKEN)
        if len(broken):
            position = int(tags.begin[broken[0]])
            reason = "has a document type declaration" if header.startswith(b"<!", position) else "is broken"
            raise InputError(self._path, f"the XML {reason}", place=f"byte {position}", remedy="Convert the file again")
        starts = np.flatnonzero(tags.opening("referenceableParamGroup"))
        members = tags.opening("cvParam") & (tags.depth("referenceableParamGroup") > 0)
        owner = np.cumsum(tags.opening("referenceableParamGroup")) - 1
        for group, name in enumerate(tags.values("id", starts)):
            self._groups[name] = tags.rows[members & (owner == group)]
        self._group_text = header if self._groups else b""

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last spectrum, or, without one, of the last chromatogram; 0 without either."""
        for end in (b"</spectrum>", b"</chromatogram>"):
            at = text.rfind(end)
            if at >= 0:
                return at + len(end)
        return 0

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        """Return the spectra of a block that have the parser's MS level."""
        tags = TagTable.scan(block.text, _NAMES, self._path)
        is_start = tags.opening("spectrum")
        is_end = tags.named("spectrum") & ((tags.kind == TagKind.END) | (tags.kind == TagKind.EMPTY))
        position = np.arange(len(tags))
        last_start = np.maximum.accumulate(np.where(is_start, position, -1))
        last_end = np.maximum.accumulate(np.where(is_end, position, -1))
        is_inside = last_end < last_start
        owner = np.where(is_inside, np.cumsum(is_start) - 1, -1)
        starts = np.flatnonzero(is_start)
        table = SpectrumTable(len(starts))
        table.identifier = tags.names_at("id", starts, self._encoding, MAXIMUM_NAME_BYTES)
        table.note(np.flatnonzero(tags.lengths("id", starts) > MAXIMUM_NAME_BYTES), IssueCode.NAME)
        for i, name in enumerate(table.identifier):
            match = _NATIVE_SCAN.search(name)
            if match:
                table.scan[i] = int(match.group(1))
        broken = np.flatnonzero(tags.kind == TagKind.BROKEN)
        table.note(owner[broken[is_inside[broken]]], IssueCode.XML)
        table.note(np.flatnonzero(is_inside[starts[1:] - 1]), IssueCode.UNCLOSED)
        lengths = tags.whole_numbers("defaultArrayLength", starts)
        outside = tags.begin[broken[~is_inside[broken]]]
        tags, owner = self._with_groups(tags, owner, table)
        levels = _read_terms(tags, owner, table, self.level)
        if not self.takes_negative:
            table.note_negative()
        peaks = _arrays(tags, owner, lengths, (_MZ_ARRAY, _INTENSITY_ARRAY))
        parsed = collect_level(self._path, tags.text, table, levels, peaks, centroid, self.level)
        parsed.n_deeper = int((levels == 3).sum())
        if self.level > 2:
            parsed.origins = _origins(tags, owner, parsed.index, self._encoding)
        if self.reads_noise:
            noise_arrays = dict(zip(NOISE_TERMS, _arrays(tags, owner, lengths, NOISE_TERMS), strict=True))
            parsed.n_noise_read = noise_numbers(noise_arrays, parsed.index)
            _check_numbers(self._path, parsed.n_noise_read, "arrays of noise", "numbers", len(tags.text), parsed.identifier)
            with limit_unpacking(parsed.n_noise_read):
                parsed.noise = noise_samples(tags.text, noise_arrays, parsed.index)

        is_open = len(is_inside) > 0 and bool(is_inside[-1])
        if block.is_last and (is_open or b"</mzML" not in block.text):
            parsed.issues.append(CUT_OFF)
        elif len(outside):
            parsed.issues.append(SpectrumIssue.from_code(IssueCode.XML, spectrum=f"byte {block.start + int(outside[0])}", is_fatal=True))
        return parsed

    def _with_groups(self, tags: TagTable, owner: NDArray[np.int64], table: SpectrumTable) -> tuple[TagTable, NDArray[np.int64]]:
        """Return the tags and the spectrum of each tag, after replacing references to referenceableParamGroups by the groups' terms."""
        references = np.flatnonzero(tags.opening("referenceableParamGroupRef") & (owner >= 0))
        if not len(references):
            return tags, owner
        counts = np.ones(len(tags), dtype=np.int64)
        groups = [self._groups.get(name) for name in tags.values("ref", references)]
        counts[references] = [0 if group is None else len(group) for group in groups]
        check_tags(int(counts.sum()), self._path)
        rows = np.repeat(tags.rows, counts, axis=0)
        targets = (np.cumsum(counts) - counts)[references].tolist()
        for reference, target, group in zip(references.tolist(), targets, groups, strict=True):
            if group is None:
                table.note(owner[reference : reference + 1], IssueCode.XML)
            else:
                # The text of the groups is appended to the text of the block.
                rows[target : target + len(group)] = group
                rows[target : target + len(group), 2:] += np.where(group[:, 2:] >= 0, len(tags.data), 0)
        data = tags.data + self._group_text
        return TagTable(data, np.frombuffer(data, dtype=np.uint8), tags.names, rows), np.repeat(owner, counts)


def _read_terms(tags: TagTable, owner: NDArray[np.int64], table: SpectrumTable, level: int) -> NDArray[np.int64]:
    """Read the terms of the spectra, and of their first scan, precursor and selected ion, into the table; return the MS levels."""
    at = np.flatnonzero(tags.opening("cvParam") & (owner >= 0))
    terms, spectrum = tags.terms("accession", at), owner[at]

    def since_start(column: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a cumulative count, counted from the start of the spectrum of each term instead of the start of the block."""
        return column[at] - _at_starts(tags, column)[spectrum]

    is_first_scan = since_start(np.cumsum(tags.opening("scan"))) == 1
    precursor, ion = since_start(np.cumsum(tags.opening("precursor"))), since_start(np.cumsum(tags.opening("selectedIon")))
    is_within, is_ion = since_start(tags.depth("precursor")) > 0, since_start(tags.depth("selectedIon")) > 0
    in_precursor = (precursor == 1) & is_within
    in_ion = in_precursor & (ion == 1) & is_ion

    def numbers(chosen: NDArray[np.int64], *, strict: bool) -> NDArray[np.float64]:
        values, broken = tags.numbers("value", at[chosen])
        if strict:
            table.note(spectrum[chosen[broken]], IssueCode.NUMBER)
        return values

    def fill(column: NDArray[np.number], chosen: NDArray[np.int64], values: NDArray[np.number]) -> None:
        """Set the values of a column from the terms `chosen`; if a spectrum has several such terms, the first is used."""
        column[spectrum[chosen[::-1]]] = values[::-1]

    levels = np.full(len(table), -1, dtype=np.int64)
    fill(levels, np.flatnonzero(terms == 1000580), np.full((terms == 1000580).sum(), 2))  # MSn spectrum; below, the exact level replaces 2
    chosen = np.flatnonzero(terms == 1000511)
    fill(levels, chosen, tags.whole_numbers("value", at[chosen]))
    fill(table.mode, np.flatnonzero(terms == 1000127), np.full((terms == 1000127).sum(), Mode.CENTROID))
    fill(table.mode, np.flatnonzero(terms == 1000128), np.full((terms == 1000128).sum(), Mode.PROFILE))
    chosen = np.flatnonzero((terms == 1000016) & is_first_scan)
    units = tags.terms("unitAccession", at[chosen])
    factors = np.full(len(chosen), np.nan)
    for unit, factor in _SECONDS.items():
        factors[units == unit] = factor
    for row in spectrum[chosen[np.isnan(factors)]].tolist():
        table.remark(RemarkCode.TIME_UNIT, row)
    with np.errstate(over="ignore"):
        fill(table.retention_time, chosen, numbers(chosen, strict=True) * factors)
    has_ion = np.zeros(len(table), np.bool_)
    # In increasing priority: the target of the isolation window, then the selected ion, whose term is "m/z" (1000040) in older files.
    for term, where in ((1000827, in_precursor), (1000040, in_ion), (1000744, in_ion)):
        chosen = np.flatnonzero((terms == term) & where)
        values = numbers(chosen, strict=term != 1000827)
        is_given = values > 0  # converters of timsTOF runs write m/z 0 if no ion was selected
        fill(table.precursor_mz, chosen[is_given], values[is_given])
        if term == 1000827:
            targets = table.precursor_mz.copy()
        else:
            has_ion[spectrum[chosen[is_given]]] = True
    chosen = np.flatnonzero((terms == 1000042) & in_ion)
    heights = numbers(chosen, strict=False)
    fill(table.precursor_intensity, chosen, np.where(heights > 0, heights, 0.0))
    halves = np.full((2, len(table)), np.nan)
    for half, term in zip(halves, _ISOLATION_OFFSETS, strict=True):
        chosen = np.flatnonzero((terms == term) & in_precursor)
        fill(half, chosen, numbers(chosen, strict=False))
    with np.errstate(over="ignore"):
        table.isolation_width[:] = halves.sum(axis=0)
    table.has_mobility[spectrum[np.isin(terms, _MOBILITIES)]] = True
    chosen = np.flatnonzero(terms == _FAIMS_VOLTAGE)
    fill(table.voltage, chosen, numbers(chosen, strict=False))
    table.activation[:] = activations_from_terms(terms[in_precursor], spectrum[in_precursor], len(table))
    chosen = np.flatnonzero((terms == _FILTER) & (levels == level)[spectrum])
    chosen = chosen[np.isin(table.activation[spectrum[chosen]], _COMPLETED_BY_FILTER)]
    _read_filters(tags.values("value", at[chosen]), spectrum[chosen], table)
    possible = np.zeros(len(table), dtype=np.int64)
    for term, column in ((1000041, table.charges), (1000633, possible)):
        chosen = np.flatnonzero((terms == term) & in_ion)
        read_charges(tags.values("value", at[chosen]), spectrum[chosen], column, table)
    table.charges[:] = np.where(table.charges != 0, table.charges, possible)
    for row in np.flatnonzero((levels == level) & ~has_ion & (targets > 0)).tolist() if level == 2 else ():
        table.remark(RemarkCode.WINDOW_TARGET, row)
    is_multiple = row_mask(len(table), spectrum[is_within & ((precursor > 1) | (ion > 1))])
    is_multiple &= levels == 2
    if is_multiple.any():
        chosen = np.flatnonzero(is_multiple[spectrum] & is_within & np.isin(terms, _PRECURSOR_TERMS))
        positions = zip(spectrum[chosen].tolist(), precursor[chosen].tolist(), np.where(is_ion, ion, 0)[chosen].tolist(), strict=True)
        _take_all_precursors(list(positions), terms[chosen].tolist(), tags.values("value", at[chosen]), table)
    table.charges[spectrum[terms == _NEGATIVE_SCAN]] |= NEGATIVE
    return levels


def _read_filters(texts: list[bytes], spectrum: NDArray[np.int64], table: SpectrumTable) -> None:
    """Add the activations in filter strings to the activations of their spectra."""
    for text, row in zip(texts, spectrum.tolist(), strict=True):
        named = parse_filter_activation(text.decode("latin-1"))
        table.activation[row] = combine_activations((Activation(table.activation[row]), named))


def _take_all_precursors(positions: list[tuple[int, int, int]], terms: list[int], values: list[bytes], table: SpectrumTable) -> None:
    """Set the precursors of spectra with several precursors or several selected ions.

    Parameters
    ----------
    positions : list of (int, int, int)
        Spectrum, number of the precursor, and number of the selected ion (0 outside of ions) of each term.
    terms : list of int
        Accessions of the terms, which are m/z or charges.
    values : list of bytes
        Values of the terms.
    table : SpectrumTable
        Receives the precursors.
    """
    targets: dict[tuple[int, int], float] = {}
    ions: dict[tuple[int, int, int], tuple[float, int]] = {}
    for position, term, value in zip(positions, terms, values, strict=True):
        if term == 1000827:
            targets[position[:2]] = number_or_nan(value)
            continue
        mz, charges = ions.get(position, (0.0, 0))
        if term in (1000041, 1000633):
            bits, issue = charge_bits(value)
            ions[position] = (mz, charges | bits)
            if issue:
                table.note(np.array(position[:1]), issue)
        else:
            ions[position] = (number if (number := number_or_nan(value)) > 0 else mz, charges)
    precursors: dict[int, list[tuple[float, int]]] = {}
    for key, target in targets.items():
        if not any(position[:2] == key for position in ions if position[0] == key[0]):
            ions[(*key, 0)] = (target, 0)
    for position in sorted(ions):
        mz, charges = ions[position]
        mz = mz if mz > 0 else targets.get(position[:2], 0.0)
        if mz > 0:
            precursors.setdefault(position[0], []).append((mz, charges))
    for spectrum, of_spectrum in precursors.items():
        table.take_precursors(spectrum, of_spectrum)


def _origins(tags: TagTable, owner: NDArray[np.int64], rows: NDArray[np.int64], encoding: str) -> list[Origin]:
    """Return the precursor spectra and the m/z of the precursor ions of the spectra `rows`.

    Of an MS3 spectrum, the ion that was fragmented last comes first.
    """
    at = np.flatnonzero(tags.opening("precursor") & (owner >= 0))
    names: dict[int, list[str]] = {}
    for spectrum, name in zip(owner[at].tolist(), tags.names_at("spectrumRef", at, encoding, MAXIMUM_NAME_BYTES), strict=True):
        if name:
            names.setdefault(spectrum, []).append(name)
    at = np.flatnonzero(tags.opening("cvParam") & (owner >= 0))
    at = at[np.isin(tags.terms("accession", at), _PRECURSORS)]
    ions: dict[int, list[float]] = {}
    for spectrum, mz in zip(owner[at].tolist(), tags.numbers("value", at)[0].tolist(), strict=True):
        ions.setdefault(spectrum, []).append(mz)
    return [Origin(tuple(names.get(row, ())), tuple(ions.get(row, ()))) for row in rows.tolist()]


def read_charges(texts: list[bytes], spectrum: NDArray[np.int64], column: NDArray[np.int64], table: SpectrumTable) -> None:
    """Add the charges in texts to the charge masks of their spectra.

    Parameters
    ----------
    texts : list of bytes, length k
        Texts, each with one or several charges.
    spectrum : ndarray of int64, shape (k,)
        Index of the spectrum of each text.
    column : ndarray of int64, shape (n,)
        Charge masks, changed in place.
    table : SpectrumTable
        Receives issues.
    """
    seen: dict[bytes, tuple[int, IssueCode]] = {}
    for text, i in zip(texts, spectrum.tolist(), strict=True):
        if text not in seen:
            seen[text] = charge_bits(text)
        bits, issue = seen[text]
        column[i] |= bits
        if issue:
            table.note(np.array([i]), issue)


def _at_starts(tags: TagTable, column: NDArray[np.int64]) -> NDArray[np.int64]:
    return column[tags.opening("spectrum")]


def _arrays(tags: TagTable, owner: NDArray[np.int64], lengths: NDArray[np.int64], terms_of_kinds: tuple[int, ...]) -> tuple[Arrays, ...]:
    """Return an `Arrays` object for each type of array (each term in `terms_of_kinds`), with the first such array of each spectrum."""
    is_array = tags.opening("binaryDataArray") & (owner >= 0)
    heads = np.flatnonzero(is_array)
    array = np.cumsum(is_array) - 1
    depth = tags.depth("binaryDataArray")
    in_array = (owner >= 0) & (depth - np.append(_at_starts(tags, depth), 0)[owner] > 0) & (array >= 0)
    n = len(heads)
    kind, compression = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    dtype, is_zlib = np.full(n, "", dtype="<U3"), np.zeros(n, dtype=np.bool_)
    at = np.flatnonzero(in_array & tags.opening("cvParam"))
    terms, term_array = tags.terms("accession", at), array[at]
    for term in terms_of_kinds:
        kind[term_array[terms == term]] = term
    for term, name in _DTYPES.items():
        dtype[term_array[terms == term]] = name
    for term, (code, zipped) in _COMPRESSIONS.items():
        chosen = term_array[terms == term]
        if code != PLAIN:
            compression[chosen] = code
        is_zlib[chosen] |= zipped
    compression[term_array[np.isin(terms, _UNSUPPORTED)]] = UNSUPPORTED
    array_length = tags.whole_numbers("arrayLength", heads)
    length = np.where(array_length >= 0, array_length, lengths[owner[heads]])

    start, stop = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    binaries = np.flatnonzero(in_array & tags.opening("binary"))
    # The tag after the start of a `binary` is its end, since it contains no other tag.
    following = np.minimum(binaries + 1, len(tags) - 1)
    is_whole = tags.named("binary")[following] & (tags.kind[following] == TagKind.END)
    is_empty = tags.kind[binaries] == TagKind.EMPTY
    usable = is_whole | is_empty
    binaries, following, is_empty = binaries[usable], following[usable], is_empty[usable]
    start[array[binaries]] = np.where(is_empty, tags.begin[binaries], tags.after[binaries])
    stop[array[binaries]] = np.where(is_empty, tags.begin[binaries], tags.begin[following])

    chosen_arrays = []
    for term in terms_of_kinds:
        of_kind = np.flatnonzero(kind == term)[::-1]
        which = np.full(len(lengths), n, dtype=np.int64)
        which[owner[heads[of_kind]]] = of_kind
        padded = Arrays(
            np.append(start, -1),
            np.append(stop, -1),
            np.append(dtype, ""),
            np.append(compression, PLAIN),
            np.append(is_zlib, False),
            np.append(length, -1),
        )
        arrays = padded.take(which)
        arrays.length = np.where(which == n, lengths, arrays.length)
        chosen_arrays.append(arrays)
    return tuple(chosen_arrays)


def collect_level(
    path: Path,
    text: NDArray[np.uint8],
    table: SpectrumTable,
    levels: NDArray[np.int64],
    arrays: tuple[Arrays, ...],
    centroid: bool | str,
    level: int = 2,
) -> ParsedBlock:
    """Decode the valid spectra of an MS level in a block of XML; count invalid spectra of this level, and spectra of unknown level.

    Parameters
    ----------
    path : Path
        File, for messages.
    text : ndarray of uint8, shape (bytes,)
        Text of the block.
    table : SpectrumTable
        The n spectra of the block; receives issues.
    levels : ndarray of int64, shape (n,)
        MS levels, not positive if unknown.
    arrays : tuple of Arrays
        Arrays of m/z and of intensity, or one in which both alternate.
    centroid : bool or str
        See `proteoscope.engine.formats.read_spectra`.
    level : int
        MS level of the spectra to decode.

    Returns
    -------
    ParsedBlock
        Decoded spectra, and the issues of the other spectra.

    Raises
    ------
    InputError
        If the arrays unpack to more numbers than real data contain.
    """
    is_wanted = (levels == level) | (levels <= 0)
    if level > 1:
        table.note(np.flatnonzero((levels == level) & ~(table.precursor_mz > 0)), IssueCode.NO_PRECURSOR)
    table.note_bounds()
    rows = np.flatnonzero((levels == level) & (table.issue == IssueCode.NONE))
    selected = [array.take(rows) for array in arrays]
    n_numbers = sum(array.n_numbers for array in selected)
    _check_numbers(path, n_numbers, "peak arrays", "peaks", len(text), [table.identifier[i] for i in rows[:1].tolist()])
    with limit_unpacking(n_numbers):
        parsed = _finish_ms2(text, table, rows, selected, centroid)
    table.report_broken(parsed, is_wanted)
    return parsed


def _check_numbers(path: Path, n_numbers: int, arrays: str, values_name: str, n_bytes: int, identifiers: list[str]) -> None:
    """Raise an `InputError` if the arrays of a block unpack to more numbers than real data contain.

    `n_numbers` is the number of values in the arrays (two per peak); `values_name` is the word for these values in the message.
    """
    if n_numbers > MAXIMUM_NUMBERS:
        limit = MAXIMUM_NUMBERS // 2 if values_name == "peaks" else MAXIMUM_NUMBERS
        raise InputError(
            path,
            f"the {arrays} unpack to more than {limit:,} {values_name} in {n_bytes:,} bytes",
            place=f"spectrum {shortened(identifiers[0]) or 'at the beginning'}",
            remedy="If you trust the file, convert it without zlib compression",
        )


def _finish_ms2(
    text: NDArray[np.uint8], table: SpectrumTable, rows: NDArray[np.int64], arrays: list[Arrays], centroid: bool | str
) -> ParsedBlock:
    """Decode the arrays of the spectra `rows`; return the valid spectra as columns."""
    decoded = []
    for array in arrays:
        values, offsets, issues = decode_arrays(text, array)
        decoded.append((values, offsets))
        for code in np.unique(issues[issues != 0]).tolist():
            table.note(rows[issues == code], IssueCode(code))
    if len(arrays) == 2:
        table.note(rows[arrays[0].length != arrays[1].length], IssueCode.LENGTHS)
    usable = table.issue[rows] == IssueCode.NONE
    parts = []
    for values, offsets in decoded:
        lengths = np.diff(offsets)
        parts.append(values if usable.all() else values[np.repeat(usable, lengths)])
        counts = lengths[usable]
    if len(arrays) == 1:
        counts = counts // 2
        parts = [parts[0][0::2], parts[0][1::2]]
    offsets = segment_offsets(counts)
    return finish(table, rows[usable], parts[0], parts[1], offsets, centroid)

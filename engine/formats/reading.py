"""Reader of spectra as columns, block by block in several threads."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Scalar
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.escaped_names import escape_names, warn_escaped_names
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.formats.numbers import COMMA_WARNING
from proteoscope.engine.formats.recognition import recognise_as
from proteoscope.engine.formats.sources import Block, ByteSource, blocks
from proteoscope.engine.formats.spectrum_blocks import (
    QUIET_REMARKS,
    SHOWN_ISSUES,
    ParsedBlock,
    RemarkCode,
    SpectrumIssue,
    SpectrumParser,
    remark_text,
)
from proteoscope.engine.formats.vendor import converted, vendor_format
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.spectra.columns import OtherPrecursors, Spectra
from proteoscope.engine.spectra.spooling import GrowingColumn
from proteoscope.engine.unfolding import LINES, NOISE, PEAKS, SPECTRA

__all__ = ["FileState", "check_proportions", "create_parser", "mapped_blocks", "parse_blocks", "read_spectra"]

T = TypeVar("T")

_WAIT_SECONDS = 0.1

_WIDE_WINDOW = 5.0
"""Maximum width of isolation windows for single peptides, Th; runs that repeat the same wider windows are data-independent (DIA)."""
_REPEATS = 3


@dataclass
class FileState:
    """Counts and parsed blocks of a file while it is read.

    Attributes
    ----------
    path : Path
        File.
    uses_all_precursors : bool
        True if every precursor of a spectrum is searched, not only the first.
    n_spectra : int
        Number of spectra of all MS levels, including invalid spectra.
    n_lines : int
        Number of lines.
    n_usable, n_skipped : int
        Number of MS2 spectra that are used, and number that are skipped.
    n_profiles : int
        Number of spectra in profile mode.
    n_entries : int
        Number of lines that are not peaks.
    n_peaks_read : int
        Number of peaks before any were removed.
    n_noise_read : int
        Upper limit of the number of values in the unpacked arrays of noise.
    n_with_mobility : int
        Number of spectra with ion mobilities.
    n_negative : int
        Number of spectra that were skipped because their ions are negative.
    n_escaped : int
        Number of names with escaped characters.
    n_ignored_peaks, n_with_ignored_peaks : int
        Number of peaks with a negative or missing m/z or intensity, and of spectra with such peaks.
    first_with_ignored_peaks : str
        Name of the first spectrum with such peaks.
    remarks : dict of RemarkCode to (int, str)
        For each code, the number of spectra with this remark, and the line or name of the first of these spectra.
    last_spectrum : str
        Name of the last valid spectrum, '' if there is none.
    parsed : list of ParsedBlock
        Parsed blocks in the order of the file.
    """

    path: Path
    uses_all_precursors: bool = False
    n_spectra: int = 0
    n_lines: int = 0
    n_usable: int = 0
    n_skipped: int = 0
    n_profiles: int = 0
    n_entries: int = 0
    n_peaks_read: int = 0
    n_noise_read: int = 0
    n_with_mobility: int = 0
    n_negative: int = 0
    n_escaped: int = 0
    n_ignored_peaks: int = 0
    n_with_ignored_peaks: int = 0
    first_with_ignored_peaks: str = ""
    first_skipped: list[SpectrumIssue] = field(default_factory=list)
    """Issues of the first skipped spectra, with their positions in the file."""
    remarks: dict[RemarkCode, tuple[int, str]] = field(default_factory=dict)
    last_spectrum: str = ""
    parsed: list[ParsedBlock] = field(default_factory=list)


def read_spectra(
    paths: Sequence[str | Path],
    *,
    progress: Progress | None = None,
    strict: bool = False,
    threads: int | None = None,
    centroid: bool | Literal["auto"] = "auto",
    takes_negative: bool = False,
    uses_all_precursors: bool = False,
    spool: Path | None = None,
) -> Spectra:
    """Read the MS2 spectra of files, in the given order, into one set of columns.

    The format (one of `proteoscope.engine.formats.registry`, plain or gzipped) is detected from the content. Files and folders of
    instrument vendors are converted if a converter is installed (`proteoscope.engine.formats.vendor`). Peaks are sorted by m/z; peaks
    without a positive finite m/z and intensity are removed, and a message reports the number of peaks with negative or missing values. An
    MGF spectrum without SCANS gets its scan number from a title with ``scan=12`` or ``.12.12.2``.

    Parameters
    ----------
    paths : sequence of str or Path
        Files, at least one.
    progress : Progress, optional
        Progress, which receives the number of bytes read and messages, and is checked for cancellation several times a second.
    strict : bool
        True to raise an error at the first spectrum that cannot be used. By default such spectra are skipped and counted in
        `Spectra.n_skipped`, and a message names the first three.
    threads : int, optional
        Number of blocks that are parsed concurrently; by default the number of CPU cores, but at most four.
    centroid : bool or "auto"
        Treatment of MS2 spectra in profile mode. ``"auto"``: centroid spectra that the file does not label as centroids and whose signal
        looks sampled (`proteoscope.engine.formats.profiles`); True: also spectra that the file labels as centroids; False: reject profiles.
    takes_negative : bool
        True to read spectra of negative ions, with bit 0 of `Spectra.charge_mask`; otherwise they are skipped and counted.
    uses_all_precursors : bool
        True if the caller uses `Spectra.others`; otherwise a message reports the number of unused precursors.
    spool : Path, optional
        Folder for unnamed temporary files, which store peaks of more than several hundred megabytes (memory-mapped).

    Returns
    -------
    Spectra
        MS2 spectra of all files.

    Raises
    ------
    InputError
        If a file is missing, unreadable, empty, truncated or of an unknown format, or has no usable MS2 spectrum; with `strict`, if a
        spectrum cannot be used. The message names file, spectrum or line, reason and remedy.
    StorageError
        If the disk of `spool` is full or not writable.
    Cancelled
        If the user cancels.
    """
    progress = progress or Progress()
    files = [Path(path) for path in paths]
    if not files:
        raise ValueError("no spectrum files were given")
    with ExitStack() as stack:
        read = [
            path if (vendor := vendor_format(path)) is None else stack.enter_context(converted(path, vendor, progress)) for path in files
        ]
        states = [FileState(path, uses_all_precursors=uses_all_precursors) for path in files]
        return _read_files(states, read, progress, strict, threads, centroid, takes_negative=takes_negative, spool=spool)


def _read_files(
    states: list[FileState],
    read: list[Path],
    progress: Progress,
    strict: bool,
    threads: int | None,
    centroid: bool | Literal["auto"],
    *,
    takes_negative: bool,
    spool: Path | None,
) -> Spectra:
    """Read files. `read` are the paths to open: those of `states`, or of the mzML files to which they were converted."""
    total = 0
    for state, read_path in zip(states, read, strict=True):
        with ByteSource(read_path) as source:
            source.path = state.path  # messages name the original file
            create_parser(source, takes_negative=takes_negative)
            total += source.size
    progress.stage("Reading spectra", total)
    n_threads = threads or min(4, available_threads())
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="spectrum-reader")
    try:
        mz, intensity = GrowingColumn(np.float64, spool), GrowingColumn(np.float32, spool)
        for state, read_path in zip(states, read, strict=True):
            for parsed in _read_file(state, read_path, pool, n_threads, progress, strict, centroid, takes_negative=takes_negative):
                mz.append(parsed.mz)
                intensity.append(parsed.intensity)
                parsed.mz, parsed.intensity = parsed.mz[:0].copy(), parsed.intensity[:0].copy()
    finally:
        # Blocks being parsed end within milliseconds: cancellation does not wait for them.
        pool.shutdown(wait=False, cancel_futures=True)
    return _assemble([state.path for state in states], states, mz.finish(), intensity.finish())


def create_parser(source: ByteSource, *, takes_negative: bool) -> SpectrumParser:
    """Return the parser for the format of a file.

    Parameters
    ----------
    source : ByteSource
        File.
    takes_negative : bool
        True to read spectra of negative ions.

    Raises
    ------
    InputError
        If the file is not a file of spectra.
    """
    file_kind = recognise_as(source, "spectra")
    assert file_kind.reader is not None
    # Imported here: the parsers' kernels need Numba, whose import takes longer than the rest of the program.
    parser: SpectrumParser = file_kind.reader()(source.path, takes_negative=takes_negative)
    return parser


def _read_file(
    state: FileState,
    there: Path,
    pool: ThreadPoolExecutor,
    n_threads: int,
    progress: Progress,
    strict: bool,
    centroid: bool | str,
    *,
    takes_negative: bool,
) -> Iterator[ParsedBlock]:
    """Yield the parsed blocks of a file in order, and add them to `state`; `there` is the path from which the file is read."""
    path = state.path
    with ByteSource(there) as source:
        source.path = path
        parser = create_parser(source, takes_negative=takes_negative)
        for parsed, consumed in parse_blocks(source, parser, pool, n_threads, progress, centroid):
            _take(state, parsed, strict, centroid)
            check_proportions(state, source.size)
            yield parsed
            progress.advance(consumed)
    if state.n_usable == 0:
        if state.n_skipped:
            reason = f"none of its MS2 spectra ({state.n_skipped:,}) can be used; {_first_skipped(state)}"
            raise InputError(path, reason, remedy=state.first_skipped[0].remedy)
        reason = f"there are no MS2 spectra among its {state.n_spectra:,} spectra" if state.n_spectra else "there are no spectra in it"
        raise InputError(path, reason, remedy="Give a file with tandem mass spectra")
    _report_file(state, progress, has_decimal_commas=parser.has_decimal_commas)
    warn_escaped_names(progress, path, state.n_escaped)
    if state.n_profiles:
        progress.message(f"{path}: {state.n_profiles:,} spectra in profile mode were centroided")
    if state.n_with_mobility:
        progress.message(
            f"{path}: ion mobilities of {state.n_with_mobility:,} spectra are not used; all peaks of a spectrum are read together"
        )
    if (width := _repeated_width(state.parsed)) > 0:
        progress.message(
            f"{path}: the same isolation windows {width:.0f} Th wide repeat, as in data-independent acquisition (DIA). Each spectrum"
            " contains fragments of many peptides, but the searches identify only one: expect few identifications",
            "warning",
        )


def _report_file(state: FileState, progress: Progress, *, has_decimal_commas: bool) -> None:
    """Report the spectra, peaks and precursors of a file that were skipped, or read in an unusual way."""
    if has_decimal_commas:
        progress.message(COMMA_WARNING.format(state.path), "warning")
    if state.n_skipped:
        n, total = state.n_skipped, counted(state.n_usable + state.n_skipped, "MS2 spectrum", "MS2 spectra")
        negative = f" ({state.n_negative:,} of negative ions)" if state.n_negative else ""
        progress.message(
            f"{state.path}: {n:,} of {total} left out{negative}; {_first_skipped(state)}. {state.first_skipped[0].remedy}", "warning"
        )
    if n := state.n_ignored_peaks:
        verb, pronoun = ("has", "it is") if n == 1 else ("have", "they are")
        progress.message(
            f"{state.path}: {counted(n, 'peak')} in {counted(state.n_with_ignored_peaks, 'spectrum', 'spectra')} {verb} a negative or"
            f" missing m/z or intensity (first: {state.first_with_ignored_peaks}); {pronoun} ignored",
            "warning",
        )
    for code, (n, position) in sorted(state.remarks.items()):
        text = remark_text(code, n, position)
        if code == RemarkCode.SEVERAL and not state.uses_all_precursors:
            text = _unused_precursors(n, sum(len(block.others.spectrum) for block in state.parsed), position)
        progress.message(f"{state.path}: {text}", "info" if code in QUIET_REMARKS else "warning")


def _unused_precursors(n_spectra: int, n_precursors: int, place: str) -> str:
    """Return the message about unused precursors; `place` is the position of the first spectrum with unused precursors."""
    verb = "precursor is" if n_precursors == 1 else "precursors are"
    spectra = counted(n_spectra, "spectrum", "spectra")
    return (
        f"{n_precursors:,} further {verb} not used: {spectra} with several precursors, and only the first is used (first: {place})."
        " Write a spectrum for each precursor to use all"
    )


def _first_skipped(state: FileState) -> str:
    """Return a text with the positions and reasons of the first skipped spectra."""
    reasons: dict[str, list[str]] = {}
    for issue in state.first_skipped:
        reasons.setdefault(issue.reason, []).append(issue.spectrum)
    return "the first: " + "; ".join(f"{', '.join(positions)}: {reason}" for reason, positions in reasons.items())


def _repeated_width(blocks: list[ParsedBlock]) -> float:
    """Return the median width of the isolation windows of a data-independent run, Th; 0 for other runs.

    A data-independent run repeats a few windows that are far wider than needed to isolate one peptide. The precursors of data-dependent
    runs hardly ever repeat.
    """
    width = np.concatenate([block.isolation_width for block in blocks])
    is_wide = width > _WIDE_WINDOW
    if 2 * is_wide.sum() <= len(width):
        return 0.0
    windows = np.unique(np.concatenate([block.precursor_mz for block in blocks])[is_wide].round(1))
    return float(np.median(width[is_wide])) if _REPEATS * len(windows) <= is_wide.sum() else 0.0


def parse_blocks(
    source: ByteSource, parser: SpectrumParser, pool: ThreadPoolExecutor, n_threads: int, progress: Progress, centroid: bool | str
) -> Iterator[tuple[ParsedBlock, int]]:
    """Yield the parsed blocks of a file in order, each with its size in the file in bytes (see `mapped_blocks`).

    Parameters
    ----------
    source : ByteSource
        File.
    parser : SpectrumParser
        Parser of the format of the file.
    pool : ThreadPoolExecutor
        Threads that parse blocks.
    n_threads : int
        Number of these threads.
    progress : Progress
        Progress, which is checked for cancellation.
    centroid : bool or str
        Treatment of spectra in profile mode (see `read_spectra`).
    """
    return mapped_blocks(source, parser.cut, parser.begin, lambda block: parser.parse(block, centroid), pool, n_threads, progress)


def mapped_blocks(
    source: ByteSource,
    cut: Callable[[bytes], int],
    begin: Callable[[Block], None],
    parse: Callable[[Block], T],
    pool: ThreadPoolExecutor,
    n_threads: int,
    progress: Progress,
) -> Iterator[tuple[T, int]]:
    """Apply a function to the blocks of a file in the threads of a pool; yield the results in file order, with the size of each block.

    At most ``n_threads + 2`` blocks are pending. The first block of a gzipped file is pending alone until the caller has received its
    result, since it may unpack to far more data than any instrument produces.

    Parameters
    ----------
    source : ByteSource
        Open file.
    cut : callable
        Function that returns the end of the last complete record in a text (see `proteoscope.engine.formats.sources.blocks`).
    begin : callable
        Function that receives the first block before any block is parsed.
    parse : callable
        Function that returns the result of a block.
    pool : ThreadPoolExecutor
        Threads that parse blocks.
    n_threads : int
        Number of threads of the pool.
    progress : Progress
        Progress, which is checked for cancellation.

    Yields
    ------
    result : object
        Result of `parse` for a block.
    consumed : int
        Number of bytes of the file that were used for the block.
    """
    waiting: deque[tuple[Future[T], int]] = deque()
    for block in blocks(source, cut):
        if block.is_first:
            begin(block)
        waiting.append((pool.submit(parse, block), block.consumed))
        while len(waiting) > (0 if block.is_first and source.is_gzip else n_threads + 1):
            yield _next_result(waiting, progress)
        progress.check()
    while waiting:
        yield _next_result(waiting, progress)


def _next_result(waiting: deque[tuple[Future[T], int]], progress: Progress) -> tuple[T, int]:
    future, consumed = waiting.popleft()
    while True:
        try:
            return future.result(timeout=_WAIT_SECONDS), consumed
        except FutureTimeoutError:
            progress.check()


def _take(state: FileState, parsed: ParsedBlock, strict: bool, centroid: bool | str) -> None:
    """Add a block to the state of its file; raise an `InputError` for issues that prevent further reading."""
    if centroid is False and parsed.n_profiles:
        raise InputError(
            state.path,
            "the spectrum is in profile mode, but peaks are needed",
            place=f"spectrum {shortened(parsed.first_profile)}",
            remedy="Convert it with peak picking (msconvert: vendor peakPicking), or allow centroiding",
        )
    for issue in parsed.issues:
        place = _place(state, parsed, issue)
        if issue.is_fatal or strict:
            remedy = issue.remedy if issue.is_fatal else f"{issue.remedy}; without --strict it is left out"
            raise InputError(state.path, issue.reason, place=place, remedy=remedy)
        if len(state.first_skipped) < SHOWN_ISSUES:
            state.first_skipped.append(replace(issue, spectrum=place))
    for code, (n, name, line) in parsed.remarks.items():
        before, place = state.remarks.get(code, (0, f"line {state.n_lines + line}" if line else f"spectrum {shortened(name)}"))
        state.remarks[code] = (before + n, place)
    state.n_skipped += parsed.n_broken
    state.n_negative += parsed.n_negative
    parsed.index += state.n_spectra
    names, n_escaped = escape_names(parsed.identifier)
    parsed.identifier, state.n_escaped = list(names), state.n_escaped + n_escaped
    if not all(parsed.identifier):
        parsed.identifier = [name or f"index={i}" for name, i in zip(parsed.identifier, parsed.index.tolist(), strict=True)]
    if parsed.ignored.n_peaks:
        state.first_with_ignored_peaks = state.first_with_ignored_peaks or shortened(parsed.identifier[parsed.ignored.first])
        state.n_ignored_peaks += parsed.ignored.n_peaks
        state.n_with_ignored_peaks += parsed.ignored.n_spectra
    state.n_spectra += parsed.n_spectra
    state.n_lines += parsed.n_lines
    state.n_usable += len(parsed.precursor_mz)
    state.n_profiles += parsed.n_profiles
    state.n_entries += parsed.n_entries
    state.n_peaks_read += parsed.n_peaks_read
    state.n_with_mobility += parsed.n_with_mobility
    if parsed.identifier:
        state.last_spectrum = parsed.identifier[-1]
    state.parsed.append(parsed)


def check_proportions(state: FileState, n_bytes: int) -> None:
    """Raise an `InputError` if a file of `n_bytes` bytes contains more spectra or peaks than real data of this size."""
    counts = ((SPECTRA, state.n_spectra), (LINES, state.n_entries), (PEAKS, state.n_peaks_read), (NOISE, state.n_noise_read))
    for bound, n in counts:
        bound.check(state.path, n, n_bytes)


def _place(state: FileState, parsed: ParsedBlock, issue: SpectrumIssue) -> str:
    if issue.line:
        return f"line {state.n_lines + issue.line}"
    if issue.spectrum:
        return issue.spectrum
    last = parsed.identifier[-1] if parsed.identifier else state.last_spectrum
    return f"after spectrum {shortened(last)}" if last else "before the first spectrum"


def _assemble(files: list[Path], states: list[FileState], mz: NDArray[np.float64], intensity: NDArray[np.float32]) -> Spectra:
    """Return all spectra of all files as one object; `mz` and `intensity` are the concatenated peaks of all blocks."""
    parsed = [block for state in states for block in state.parsed]
    ends = np.cumsum([0] + [int(block.offsets[-1]) for block in parsed])
    starts = [block.offsets[:-1] + start for block, start in zip(parsed, ends.tolist(), strict=False)]

    def join(name: str, dtype: type[Scalar]) -> NDArray[Scalar]:
        return np.concatenate([getattr(block, name) for block in parsed]).astype(dtype, copy=False)

    return Spectra(
        files=tuple(str(path) for path in files),
        file=np.repeat(np.arange(len(files), dtype=np.int32), [state.n_usable for state in states]),
        identifier=[name for block in parsed for name in block.identifier],
        scan=join("scan", np.int64),
        index=join("index", np.int64),
        retention_time=join("retention_time", np.float64),
        precursor_mz=join("precursor_mz", np.float64),
        precursor_intensity=join("precursor_intensity", np.float32),
        charge_mask=join("charge_mask", np.uint32),
        offsets=np.concatenate([*starts, ends[-1:]]).astype(np.int64, copy=False),
        mz=mz,
        intensity=intensity,
        n_skipped=sum(state.n_skipped for state in states),
        others=_joined_others(parsed),
        activation=join("activation", np.uint8),
    )


def _joined_others(blocks: list[ParsedBlock]) -> OtherPrecursors:
    """Return the precursors after the first of the spectra in all blocks; the spectra are numbered across blocks."""
    starts = np.cumsum([0, *(len(block.precursor_mz) for block in blocks)]).tolist()
    moved = [block.others._replace(spectrum=block.others.spectrum + start) for block, start in zip(blocks, starts, strict=False)]
    return OtherPrecursors(*(np.concatenate(columns) for columns in zip(*moved, strict=True)))

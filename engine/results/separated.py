"""Writer of tables as tab-separated values (a header line and one line per row), computed for many rows at once.

Booleans are ``true`` and ``false``; lists are joined by semicolons (a semicolon in an item is %3B), vectors by commas; missing values are
empty; a text with a double quote is quoted with doubled quotes (RFC 4180); tabs, line breaks and other control characters become spaces. A
`Dialect` describes the differences between the files of searches, on which other programs rely.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.arrow import in_one, is_list, is_text, text_bytes
from proteoscope.engine.results.columns import Column

__all__ = [
    "DIGITS",
    "PRINTED",
    "ROUNDED",
    "TRIMMED",
    "UNQUOTED",
    "Dialect",
    "header_line",
    "joined_texts",
    "printed",
    "report_accepted",
    "report_rated",
    "rounded",
    "rounded_to_digits",
    "separated_lines",
    "write_lines",
    "write_separated",
]

_LARGEST = 1e12  # tolerance for scaled values, since products have an error below 1e-3
_NEAR_TIE = 1e-2
_SIGNIFICANT = re.compile(r"\.([1-9]|10)g")
_WIDTH = 18  # bytes of a number of ten significant digits


def rounded(values: NDArray[np.floating], decimals: int) -> NDArray[np.float64]:
    """Return numbers rounded exactly as by `round`, but faster. NumPy's rounding differs, for example for 0.00625.

    Most numbers are rounded together, after multiplication by a power of 10. Only numbers that are then near a tie, or too large, are
    rounded one by one.

    >>> rounded(np.array([0.00625, 2.675, -0.1]), 2).tolist(), rounded(np.array([0.00625]), 4).tolist()
    ([0.01, 2.67, -0.1], [0.0063])
    """
    values = np.asarray(values, np.float64)
    scaled = values * 10.0**decimals
    integers = np.rint(scaled)
    with np.errstate(invalid="ignore"):
        is_sure = (np.abs(scaled) < _LARGEST) & (np.abs(scaled - integers) < 0.5 - _NEAR_TIE)
    result: NDArray[np.float64] = integers / 10.0**decimals
    is_unsure = ~is_sure & ~np.isnan(values)
    result[is_unsure] = [round(value, decimals) for value in values[is_unsure].tolist()]
    return result


def rounded_to_digits(values: NDArray[np.floating], digits: int) -> NDArray[np.float64]:
    """Return numbers rounded to the given number of significant digits.

    >>> rounded_to_digits(np.array([123456.0, 1.23456e-30, np.nan]), 4).tolist()
    [123500.0, 1.235e-30, nan]
    """
    result: NDArray[np.float64] = printed(values, f".{digits}g").cast(pa.float64()).to_numpy(zero_copy_only=False)
    return result


def printed(values: NDArray[np.floating], form: str) -> pa.Array:
    """Return numbers as texts in the Python format `form`, since Arrow has no formats.

    A kernel, which does not hold the GIL, writes numbers of up to ten significant digits. Other formats are written with one long format
    string, which halves the time.

    >>> printed(np.array([1e-5, 1234567.5, np.inf]), ".7g").to_pylist()
    ['1e-05', '1234568', 'inf']
    """
    if matched := _SIGNIFICANT.fullmatch(form):
        values, texts = np.array(values, np.float64), np.empty((len(values), _WIDTH), np.uint8)
        for row in np.flatnonzero(~kernels.cpu.text.print_numbers(values, int(matched[1]), texts)).tolist():
            texts[row] = np.frombuffer(f"{values[row]:<{_WIDTH}{form}}".encode(), np.uint8)
        starts = pa.py_buffer(np.arange(len(values) + 1, dtype=np.int64) * _WIDTH)
        padded = pa.LargeStringArray.from_buffers(len(values), starts, pa.py_buffer(texts))
        return pa.compute.ascii_rtrim(padded, " ").cast(pa.string())
    lines = np.frombuffer((f"%{form}\n" * len(values) % tuple(np.asarray(values, np.float64).tolist())).encode(), np.uint8)
    is_end = lines == ord("\n")
    ends = np.flatnonzero(is_end) - np.arange(len(values))  # positions after removal of the line ends
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    symbols = pa.py_buffer(lines[~is_end])
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(offsets), symbols).cast(pa.string())


PartialResult = TypeVar("PartialResult", bound=Sized)
"""Type of a chunk of a table: its rows, or the indices of the rows."""
_ROWS, _FEWEST_ROWS = 1 << 16, 1 << 12  # number of rows of a chunk in memory, and minimum if a table is divided among threads
_NUMBERS = 1 << 20  # maximum number of numbers of several columns that are converted together
_FORMULA = r"^[\pZ\pC]*[=+@＝＋－＠-]"
"""Regular expression for the beginning of cells that a spreadsheet may execute as formulas, also after blanks and invisible characters."""
_CONTROLS = r"\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}"
"""Control characters (tabs, line breaks, ESC and others that terminals interpret), and characters that some readers treat as line ends."""
_BETWEEN, _ESCAPED_BETWEEN = ";", "%3B"


@dataclass(frozen=True)
class Dialect:
    """Format of cells that the description of the column does not determine.

    Attributes
    ----------
    number, single
        Python formats of float64 and float32 numbers.
    is_short
        True to omit trailing zeros after rounding to the decimals of the format.
    not_a_number
        Text of NaN.
    knows_infinity
        True if infinite numbers are written; otherwise they are treated as missing.
    blanks
        Regular expression; each match in a text is replaced by one space.
    is_trimmed
        True to remove blanks at both ends of texts.
    has_quotes
        True to quote texts that contain double quotes.
    """

    number: str
    single: str
    is_short: bool = False
    not_a_number: str = ""
    knows_infinity: bool = True
    blanks: str = f"[{_CONTROLS}]"
    is_trimmed: bool = False
    has_quotes: bool = True


DIGITS = Dialect(".10g", ".7g")
"""Dialect of PSMs, peptides and protein groups: all digits of float32, and enough digits of float64 to distinguish scores."""
ROUNDED = Dialect(".6f", ".6f", is_short=True, knows_infinity=False)
"""Dialect of modifications, clusters, explained spectra and reads."""
PRINTED = Dialect(".10g", ".10g", not_a_number="nan")
"""Dialect of sequence search hits."""
TRIMMED = Dialect(
    ".10g",
    ".10g",
    blanks=f"[{_CONTROLS}" + r"\s\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+",
    is_trimmed=True,
)
"""Dialect of structure search hits."""
UNQUOTED = Dialect(".10g", ".10g", has_quotes=False)
"""Dialect of complexes and of a single superposition."""


def write_separated(
    out: Path,
    tables: Iterable[pa.Table] | pa.Table,
    columns: Sequence[Column],
    progress: Progress,
    dialect: Dialect,
    *,
    spreadsheet_safe: bool = False,
    threads: int = 1,
    rows: int = _ROWS,
) -> None:
    """Write columns of a table, or of consecutive chunks of a table, atomically to the file `out`.

    Parameters
    ----------
    tables
        A table, or an iterable of its chunks.
    progress
        Progress, counted in rows, which is also checked for cancellation.
    spreadsheet_safe
        True to write an apostrophe before texts that a spreadsheet would execute as formulas.
    threads
        Number of formatting threads; a few chunks of at most `rows` rows are in memory.

    Raises
    ------
    StorageError
        If writing failed.
    Cancelled
        If the user cancelled.
    """
    parts = [tables] if isinstance(tables, pa.Table) else tables
    if isinstance(tables, pa.Table):
        rows = min(rows, max(_FEWEST_ROWS, -(-len(tables) // max(1, threads))))
    chunks = (part.slice(first, rows) for part in parts for first in range(0, len(part), rows))

    n_escaped: list[int] = []

    def lines(table: pa.Table) -> bytes:
        return separated_lines(table, columns, dialect, spreadsheet_safe=spreadsheet_safe, n_escaped=n_escaped)

    write_lines(out, header_line(columns), chunks, lines, progress, threads=threads)
    if n := sum(n_escaped):
        names = "1 text in a list holds" if n == 1 else f"{n:,} texts in lists hold"
        progress.message(f"{out.name}: {names} semicolons, which separate texts there; they are written as {_ESCAPED_BETWEEN}", "warning")


def report_accepted(progress: Progress, out: Path, n_accepted: int, n_rows: int, fdr: float) -> None:
    """Log how many rows of an exported table are targets accepted at a false discovery rate; log nothing if all rows are such targets."""
    if n_accepted < n_rows:
        progress.message(f"{out.name}: {n_accepted:,} of {n_rows:,} rows are targets accepted at {100 * fdr:g} % FDR")


def report_rated(progress: Progress, out: Path, q_value: pa.ChunkedArray, fdr: float) -> None:
    """Log how many rows of an exported table of targets are accepted; log nothing if all are accepted or no row has a q-value."""
    q = q_value.to_numpy()
    if np.isfinite(q).any():
        report_accepted(progress, out, int((q <= fdr).sum()), len(q), fdr)


def joined_texts(texts: Iterable[str]) -> str:
    """Return a list of texts as one cell, joined by semicolons.

    >>> joined_texts(["a", "b;c"])
    'a;b%3Bc'
    """
    return _BETWEEN.join(text.replace(_BETWEEN, _ESCAPED_BETWEEN) for text in texts)


def header_line(columns: Sequence[Column]) -> bytes:
    """Return the header line with the names of the columns, as bytes."""
    return ("\t".join(column.name for column in columns) + "\n").encode()


def write_lines(
    out: Path,
    header: bytes,
    parts: Iterable[PartialResult],
    lines: Callable[[PartialResult], Any],
    progress: Progress,
    *,
    threads: int = 1,
    then: Callable[[Any], bytes] = bytes,
    end: Callable[[], bytes] = bytes,
) -> None:
    """Write a header and the lines of consecutive chunks atomically to the file `out`.

    Parameters
    ----------
    lines
        Function that formats a chunk; called in several threads.
    then
        Function that converts the result of `lines` to bytes; called in the order of the chunks.
    end
        Function that returns the bytes to write after the last chunk.

    Raises
    ------
    StorageError
        If writing failed.
    Cancelled
        If the user cancelled.
    """
    with atomic_file(out) as file, ThreadPoolExecutor(max(1, threads), thread_name_prefix="table-writer") as pool:
        file.write(header)
        waiting: deque[tuple[int, Future[Any]]] = deque()

        def write_next() -> None:
            n, future = waiting.popleft()
            file.write(then(future.result()))
            progress.advance(n)
            progress.check()

        for chunk in parts:
            waiting.append((len(chunk), pool.submit(lines, chunk)))
            while len(waiting) > threads:
                write_next()
        while waiting:
            write_next()
        file.write(end())


def separated_lines(
    table: pa.Table, columns: Sequence[Column], dialect: Dialect, *, spreadsheet_safe: bool = False, n_escaped: list[int] | None = None
) -> bytes:
    """Return the lines of the rows of a table as bytes.

    For each column in which semicolons are escaped, the number of texts with semicolons is appended to `n_escaped`.
    """
    if not len(table):
        return b""
    n_escaped = [] if n_escaped is None else n_escaped
    cells = list(_cells_of_columns(table, columns, dialect, n_escaped, is_safe=spreadsheet_safe))
    lines = pa.compute.binary_join_element_wise(*cells, "\t", null_handling="replace", null_replacement="")
    lines = pa.compute.binary_join_element_wise(lines, "", "\n")
    assert isinstance(lines, pa.StringArray)
    return text_bytes(lines)


def _cells_of_columns(
    table: pa.Table, columns: Sequence[Column], dialect: Dialect, n_escaped: list[int], *, is_safe: bool
) -> Iterator[pa.Array]:
    """Yield the cells of each column.

    Adjacent columns of numbers with one format are converted together, since tables with a column for each sample may have thousands.
    """
    n, schema = len(table), table.schema

    def number_format(column: Column) -> object:
        kind = schema.field(column.name).type
        return (kind, column.saved, column.saved_null, column.is_own_text) if pa.types.is_floating(kind) else column.name

    for _, adjacent in groupby(columns, number_format):
        alike, some = list(adjacent), max(1, _NUMBERS // n)
        for first in range(0, len(alike), some):
            arrays = [in_one(table[column.name]) for column in alike[first : first + some]]
            joined = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
            cells = _cells(joined, alike[first], dialect, n_escaped, is_safe=is_safe)
            yield from (cells.slice(number * n, n) for number in range(len(arrays)))


def _cells(column: pa.Array, described: Column, dialect: Dialect, n_escaped: list[int], *, is_safe: bool) -> pa.Array:
    """Convert a column of any type to the texts of cells, without nulls."""
    kind = column.type
    if is_list(kind):
        items = pa.compute.fill_null(_plain(column.flatten(), described, dialect), "")
        if is_text(kind.value_type) and (n := pa.compute.sum(pa.compute.match_substring(items, _BETWEEN)).as_py()):
            n_escaped.append(n)
            items = pa.compute.replace_substring(items, _BETWEEN, _ESCAPED_BETWEEN)
        ends = np.concatenate(
            ([0], np.cumsum(pa.compute.fill_null(pa.compute.list_value_length(column), 0).to_numpy(zero_copy_only=False)))
        )
        joined = pa.compute.binary_join(
            pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), items), (_BETWEEN, ",")[pa.types.is_fixed_size_list(kind)]
        )
        return _as_cell(joined, described, dialect, is_safe=is_safe) if is_text(kind.value_type) else joined
    text = pa.compute.fill_null(_plain(column, described, dialect), described.saved_null)
    # A numeric column with a word for missing values counts as text, also for readers of the file.
    return _as_cell(text, described, dialect, is_safe=is_safe) if is_text(kind) or described.saved_null else text


def _plain(column: pa.Array, described: Column, dialect: Dialect) -> pa.Array:
    """Return the values of a column as texts; missing values are null."""
    if pa.types.is_floating(column.type):
        return _numbers(column, described.saved or (dialect.single if pa.types.is_float32(column.type) else dialect.number), dialect)
    if not is_text(column.type):
        return pa.compute.cast(column, pa.string())
    text = pa.compute.replace_substring_regex(pa.compute.cast(column, pa.string()), dialect.blanks, " ")
    return pa.compute.utf8_trim(text, " ") if dialect.is_trimmed else text


def _numbers(column: pa.Array, form: str, dialect: Dialect) -> pa.Array:
    if not dialect.knows_infinity:
        column = pa.compute.if_else(pa.compute.is_finite(column), column, None)
    if dialect.is_short:
        return pa.compute.cast(pa.compute.round(column, int(form.strip(".f"))), pa.string())
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    is_number = pa.compute.invert(pa.compute.is_nan(pa.array(values)))
    return pa.compute.if_else(
        pa.compute.and_(is_number, column.is_valid()), printed(values, form), pa.scalar(dialect.not_a_number or None, pa.string())
    )


def _as_cell(text: pa.Array, column: Column, dialect: Dialect, *, is_safe: bool) -> pa.Array:
    """Return texts as cells: with an apostrophe before formulas if `is_safe`, and in quotes if necessary."""
    if is_safe and not column.is_own_text:
        text = pa.compute.if_else(
            pa.compute.match_substring_regex(text, _FORMULA), pa.compute.binary_join_element_wise("'", text, ""), text
        )
    if dialect.has_quotes and pa.compute.any(pa.compute.match_substring(text, '"')).as_py():
        doubled = pa.compute.binary_join_element_wise('"', pa.compute.replace_substring(text, '"', '""'), '"', "")
        text = pa.compute.if_else(pa.compute.match_substring(text, '"'), doubled, text)
    return text

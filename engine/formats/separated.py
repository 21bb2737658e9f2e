"""Tables of tab-separated values from columns: one header line, one line a row, made without a line of Python for each.

As in the tables of identifications: truths are ``true`` and ``false``, a missing value is empty, a text that holds a double quote stands in
double quotes with those inside doubled (RFC 4180), tabs and line breaks within texts become spaces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.files import atomic_file
from engine.formats.spreadsheet import FORMULA
from engine.jobs.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_lines", "write_separated"]

_ROWS = 1 << 16  # of a piece in memory


def write_separated(
    out: Path,
    tables: Iterable[pa.Table] | pa.Table,
    columns: Sequence[str],
    progress: Progress,
    *,
    decimals: Mapping[str, int],
    spreadsheet_safe: bool = False,
    threads: int = 1,
) -> None:
    """Write some columns of a table, or of its parts, to the file `out`, which appears whole or not at all.

    Parameters
    ----------
    tables : a table, or its parts, which may come as they are made.
    columns : their names, in order. decimals : of columns of numbers with a fraction; six where it does not say.
    progress : told the rows, and asked whether the user wants to stop.
    spreadsheet_safe : an apostrophe stands before texts that a spreadsheet would take for formulas.
    threads : that make lines at a time; a few pieces of 65,536 rows are held.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    import pyarrow as pa

    parts = [tables] if isinstance(tables, pa.Table) else tables
    pieces = (part.slice(first, _ROWS) for part in parts for first in range(0, len(part), _ROWS))
    digits = [decimals.get(name, 6) for name in columns]

    def lines(piece: pa.Table) -> bytes:
        return _lines([piece[name] for name in columns], digits, is_safe=spreadsheet_safe)

    write_lines(out, ("\t".join(columns) + "\n").encode(), pieces, lines, progress, threads=threads)


def write_lines(
    out: Path,
    header: bytes,
    pieces: Iterable[pa.Table],
    lines: Callable[[pa.Table], Any],
    progress: Progress,
    *,
    threads: int = 1,
    then: Callable[[Any], bytes] = bytes,
) -> None:
    """Write a header and the lines of pieces of a table, in their order, to the file `out`, which appears whole or not at all.

    `lines` makes them, for several pieces at a time; `then` turns what it made into bytes, for one piece after the other.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    with atomic_file(out) as file, ThreadPoolExecutor(max(1, threads), thread_name_prefix="table-writer") as pool:
        file.write(header)
        waiting: deque[tuple[int, Future[Any]]] = deque()

        def write_next() -> None:
            n, future = waiting.popleft()
            file.write(then(future.result()))
            progress.advance(n)
            progress.check()

        for piece in pieces:
            waiting.append((len(piece), pool.submit(lines, piece)))
            while len(waiting) > threads:
                write_next()
        while waiting:
            write_next()


def _lines(columns: list[Any], decimals: list[int], *, is_safe: bool) -> bytes:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [_text(column, digits, is_safe=is_safe) for column, digits in zip(columns, decimals, strict=True)]
    lines = pc.binary_join_element_wise(*texts, "\t", null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise(lines, "", "\n").combine_chunks()
    if isinstance(lines, pa.ChunkedArray):
        lines = pa.concat_arrays(lines.chunks) if lines.num_chunks else pa.array([], pa.string())
    _, offsets, letters = lines.buffers()
    if letters is None or not len(lines):
        return b""
    ends = memoryview(offsets).cast("i")
    return bytes(memoryview(letters)[ends[lines.offset] : ends[lines.offset + len(lines)]])


def _text(column: Any, decimals: int, *, is_safe: bool) -> Any:
    """A column of any type as texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        known = pc.if_else(pc.is_finite(column), column, None)
        return pc.cast(pc.round(known, decimals), pa.string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return pc.cast(column, pa.string())
    text = pc.replace_substring_regex(pc.cast(column, pa.string()), "[\\t\\n\\r]", " ")
    if is_safe:
        text = pc.if_else(pc.match_substring_regex(text, f"^{FORMULA}"), pc.binary_join_element_wise("'", text, ""), text)
    if pc.any(pc.match_substring(text, '"')).as_py():
        doubled = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
        text = pc.if_else(pc.match_substring(text, '"'), doubled, text)
    return text

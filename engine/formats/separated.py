"""Tables of tab-separated values from columns: one header line, one line a row, made without a line of Python for each.

As in the tables of identifications: truths are ``true`` and ``false``, a missing value is empty, a text that holds a double quote stands in
double quotes with those inside doubled (RFC 4180), tabs and line breaks within texts become spaces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from engine.files import atomic_file
from engine.formats.spreadsheet import FORMULA
from engine.jobs.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_separated"]

_ROWS = 1 << 16  # of a piece in memory


def write_separated(
    out: Path,
    tables: Sequence[pa.Table] | pa.Table,
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
    columns : their names, in order. decimals : of columns of numbers with a fraction; six where it does not say.
    progress : told the rows, and asked whether the user wants to stop.
    spreadsheet_safe : an apostrophe stands before texts that a spreadsheet would take for formulas.
    threads : that make lines at a time; a few pieces of 65,536 rows are held.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    parts = tables if isinstance(tables, Sequence) else [tables]
    pieces = (part.slice(first, _ROWS) for part in parts for first in range(0, len(part), _ROWS))
    digits = [decimals.get(name, 6) for name in columns]

    def lines(piece: pa.Table) -> bytes:
        return _lines([piece[name] for name in columns], digits, is_safe=spreadsheet_safe)

    with atomic_file(out) as file, ThreadPoolExecutor(max(1, threads), thread_name_prefix="table-writer") as pool:
        file.write(("\t".join(columns) + "\n").encode())
        waiting: deque[tuple[int, Future[bytes]]] = deque()
        for piece in pieces:
            waiting.append((len(piece), pool.submit(lines, piece)))
            while len(waiting) > threads:
                _write_next(waiting, file, progress)
        while waiting:
            _write_next(waiting, file, progress)


def _write_next(waiting: deque[tuple[int, Future[bytes]]], file: BinaryIO, progress: Progress) -> None:
    n, future = waiting.popleft()
    file.write(future.result())
    progress.advance(n)
    progress.check()


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

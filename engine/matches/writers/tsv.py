"""Writer of PSMs, peptides and protein groups as tab-separated text files (see `proteoscope.engine.results.separated`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS, PEPTIDES, PROTEINS
from proteoscope.engine.matches.writers.tables import MatchesSource
from proteoscope.engine.results.columns import MARK_COLUMNS, Column
from proteoscope.engine.results.marks import with_marks
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.results.separated import DIGITS, report_accepted, write_separated

__all__ = ["TABLES", "write_table", "write_tables"]

TABLES = {table.name: table for table in (EXPORTED_PSMS, PEPTIDES, PROTEINS)}
"""Descriptions of the exported tables by name."""

_ROWS = 8192
_THREADS = 4  # more would wait for the interpreter lock while numbers are formatted


def write_tables(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write ``psms.tsv``, ``peptides.tsv`` and ``proteins.tsv`` to the folder `out`; return the paths (see `write_table`)."""
    paths = {name: out / f"{name}.tsv" for name in TABLES}
    for name, path in paths.items():
        write_table(source, name, path, progress)
    return list(paths.values())


def write_table(source: MatchesSource, name: str, out: Path, progress: Progress) -> None:
    """Write ``psms``, ``peptides`` or ``proteins`` to the file `out`, and report the number of accepted rows.

    User marks and comments on PSMs are the last columns. If the table has no q-values, all targets are accepted.

    Raises
    ------
    InputError
        If the table lacks a column or is damaged.
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled the export.
    """
    tables, fdr = source.tables, source.search.threshold
    with tables.opened(name, TABLES[name].saved) as table:
        if isinstance(table, TableFile):
            present, n_rows = list(table.columns), table.n_rows
            parts: Iterable[pa.Table] = table.batches(rows=_ROWS)
        else:
            present, n_rows, parts = table.column_names, len(table), [table]
        if tables.marks and name == EXPORTED_PSMS.name:
            present = [*present, *(column.name for column in MARK_COLUMNS)]
            parts = with_marks(parts, tables.marks)
        accepted = _accepted(table, fdr)
        n_accepted = int(np.count_nonzero(accepted.rows))
        if source.accepted_only:
            parts, n_rows = _select_rows(parts, accepted.rows), n_accepted
        progress.stage(f"writing {out.name}", n_rows)
        columns, threads = _columns(name, present), min(_THREADS, available_threads())
        write_separated(out, parts, columns, progress, DIGITS, spreadsheet_safe=source.spreadsheet_safe, threads=threads, rows=_ROWS)
    if accepted.is_rated:
        report_accepted(progress, out, n_accepted, n_rows, fdr)


class _Accepted(NamedTuple):
    """True for each accepted row of a table, (n,) bool; and True if any row has a q-value."""

    rows: NDArray[np.bool_]
    is_rated: bool


def _accepted(source: TableFile | pa.Table, fdr: float) -> _Accepted:
    """Return the targets of a table that are accepted at a false discovery rate."""
    names = ["is_decoy", "q_value"]
    chunks = source.batches(names) if isinstance(source, TableFile) else [source.select(names)]
    is_decoy, q_value = [np.empty(0, np.bool_)], [np.empty(0)]
    for chunk in chunks:
        is_decoy.append(chunk["is_decoy"].to_numpy().astype(np.bool_))
        q_value.append(chunk["q_value"].cast(pa.float64()).fill_null(float("nan")).to_numpy())
    q, is_target = np.concatenate(q_value), ~np.concatenate(is_decoy)
    is_rated = bool(np.isfinite(q).any())
    return _Accepted(is_target & (q <= fdr) if is_rated else is_target, is_rated)


def _select_rows(chunks: Iterable[pa.Table], rows: NDArray[np.bool_]) -> Iterable[pa.Table]:
    """Yield the selected rows of consecutive chunks; `rows` is a mask over the rows of all chunks."""
    first = 0
    for chunk in chunks:
        yield chunk.filter(pa.array(rows[first : first + len(chunk)]))
        first += len(chunk)


def _columns(name: str, present: Iterable[str]) -> list[Column]:
    """Return the columns that every version of the program exports, followed by the other columns."""
    described, saved = {**TABLES[name].by_name, **{mark_column.name: mark_column for mark_column in MARK_COLUMNS}}, TABLES[name].saved
    return [described.get(saved_name, Column(saved_name)) for saved_name in (*saved, *(name for name in present if name not in saved))]

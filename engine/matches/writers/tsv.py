"""PSMs, peptides and protein groups as tables of tab-separated values, see `proteoscope.engine.results.separated`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS, PEPTIDES, PROTEINS
from proteoscope.engine.matches.writers.tables import IdentificationTables
from proteoscope.engine.results.columns import MARK_COLUMNS, Column
from proteoscope.engine.results.marks import with_marks
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["TABLES", "write_table"]

TABLES = {one.name: one for one in (EXPORTED_PSMS, PEPTIDES, PROTEINS)}
"""The columns that are saved of each stand first, in an order which others rely on. Further columns of the table follow them."""

_ROWS = 8192
_THREADS = 4  # more wait for the interpreter, which prints the numbers


def write_table(
    tables: IdentificationTables, name: str, out: Path, progress: Progress | None = None, *, spreadsheet_safe: bool = False
) -> None:
    """Write ``psms``, ``peptides`` or ``proteins`` to the file `out`; the stars and comments that PSMs have are its last columns.

    `spreadsheet_safe`: an apostrophe stands before texts that a spreadsheet would take for formulas; numbers stay as they are.

    Raises
    ------
    InputError : the table lacks a column, or is not sound. StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    progress = progress or Progress()
    with tables.opened(name, TABLES[name].saved) as source:
        if isinstance(source, TableFile):
            present, n_rows, pieces = list(source.columns), source.n_rows, source.batches(rows=_ROWS)
        else:
            present, n_rows, pieces = source.column_names, len(source), source
        if tables.marks and name == EXPORTED_PSMS.name:
            present = [*present, *(one.name for one in MARK_COLUMNS)]
            pieces = with_marks([pieces] if isinstance(pieces, pa.Table) else pieces, tables.marks)
        progress.stage(f"writing {out.name}", n_rows)
        columns, threads = _columns(name, present), min(_THREADS, available_threads())
        write_separated(out, pieces, columns, progress, DIGITS, spreadsheet_safe=spreadsheet_safe, threads=threads, rows=_ROWS)


def _columns(name: str, present: Iterable[str]) -> list[Column]:
    """The columns that others rely on, and behind them the others."""
    described, saved = {**TABLES[name].by_name, **{one.name: one for one in MARK_COLUMNS}}, TABLES[name].saved
    return [described.get(one, Column(one)) for one in (*saved, *(one for one in present if one not in saved))]

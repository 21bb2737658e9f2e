"""Tables of one identification as DuckDB views, read in batches, so that memory use is constant, and written as text."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, ProteoscopeError, StorageError
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.files import scratch_folder
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS, PEPTIDES, PROTEINS, READING_FRAMES
from proteoscope.engine.matches.site_columns import PROTEIN_SITES, PSM_SITES
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.project import RowMark
from proteoscope.engine.results.arrow import text_bytes
from proteoscope.engine.results.columns import MARK_COLUMNS, Column
from proteoscope.engine.results.marks import with_marks
from proteoscope.engine.results.queries import create_view, is_out_of_memory, restrict_to_files
from proteoscope.engine.results.reader import TableFile, row_count
from proteoscope.engine.results.separated import DIGITS, report_accepted, write_separated

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "OPTIONAL_TABLES",
    "TABLES",
    "IdentificationTables",
    "MatchesSource",
    "MatchesWriter",
    "columns",
    "database",
    "rows",
    "scalar",
    "write_lines",
    "write_table",
    "write_tables",
]

_MEMORY = "1GB"
_BATCH = 8192
_VECTOR = 2048
_TABLES = ("psms", "peptides", "proteins")
OPTIONAL_TABLES = {table.name: table for table in (READING_FRAMES, PSM_SITES, PROTEIN_SITES)}
"""Descriptions of the tables that only some runs have, by name."""
_DESCRIBED = {"psms": EXPORTED_PSMS, "peptides": PEPTIDES, "proteins": PROTEINS, **OPTIONAL_TABLES}
_REMEDY = "Run the identification again"


@dataclass(frozen=True)
class IdentificationTables:
    """PSMs, peptides and protein groups of a run, each a Parquet file or an Arrow table."""

    psms: Path | pa.Table
    peptides: Path | pa.Table
    proteins: Path | pa.Table
    reading_frames: Path | None = None
    """Reading frames, if the search translated nucleotides."""
    psm_sites: Path | None = None
    """Sites of modifications in matches, if the search localised them."""
    protein_sites: Path | None = None
    """Sites of modifications in proteins, if the search localised them."""
    marks: Mapping[int, RowMark] = field(default_factory=dict)
    """User marks of PSMs, by row."""

    @classmethod
    def from_folder(cls, folder: str | Path) -> IdentificationTables:
        """Return the tables ``psms.parquet``, ``peptides.parquet`` and ``proteins.parquet`` of a folder.

        Raises
        ------
        InputError
            If a table is missing.
        """
        psms, peptides, proteins = (Path(folder) / f"{name}.parquet" for name in _TABLES)
        for path in (psms, peptides, proteins):
            if not path.is_file():
                raise InputError(path, "does not exist", remedy="Give the folder of an identification's results")
        optional = (Path(folder) / f"{name}.parquet" for name in OPTIONAL_TABLES)
        frames, psm_sites, protein_sites = (path if path.is_file() else None for path in optional)
        return cls(psms, peptides, proteins, reading_frames=frames, psm_sites=psm_sites, protein_sites=protein_sites)

    @contextmanager
    def opened(self, name: str, needed: Iterable[str] | None = None) -> Iterator[TableFile | pa.Table]:
        """Open a table and check its columns.

        Parameters
        ----------
        name : str
            ``psms``, ``peptides``, ``proteins`` or one of `OPTIONAL_TABLES`.
        needed : iterable of str or None
            Required columns; None requires the columns in the description of the table.

        Yields
        ------
        TableFile or pyarrow.Table

        Raises
        ------
        InputError
            If the file is not a table of this name.
        """
        source = getattr(self, name)
        if not isinstance(source, Path):
            yield source
            return
        n_psms = row_count(self.psms) if isinstance(self.psms, Path) else len(self.psms)
        with TableFile(source, _DESCRIBED[name], needed, n_rows_of={"psms": n_psms or 0}, remedy=_REMEDY) as result:
            if not result.columns:
                raise result.damaged("has none of the columns of an identification's tables")
            yield result


@dataclass(frozen=True)
class MatchesSource:
    """Matches that are exported to files for other programs.

    Attributes
    ----------
    tables : IdentificationTables
        PSMs, peptides and protein groups.
    search : SearchDescription
        Search that found the matches.
    spreadsheet_safe : bool
        True to put an apostrophe before texts that a spreadsheet would interpret as formulas; used by ``tsv``.
    accepted_only : bool
        True omits decoys, and targets above the false discovery rate of the search; used by ``tsv``.
    """

    tables: IdentificationTables
    search: SearchDescription = field(default_factory=SearchDescription)
    spreadsheet_safe: bool = False
    accepted_only: bool = False

    def connection(self, progress: Progress) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Return a connection to the tables; see `database`."""
        return database(self.tables, progress, is_whole=True)


MatchesWriter: TypeAlias = Callable[[MatchesSource, Path, Progress], list[Path]]
"""Function that writes matches to a file or a folder, and returns the paths of the written files."""


@contextmanager
def database(
    tables: IdentificationTables, progress: Progress | None = None, *, is_whole: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB connection with the views ``psms``, ``peptides`` and ``proteins``, and views of the optional tables of the run.

    Memory is limited; if DuckDB needs more, it uses a temporary folder. Files are validated first (`proteoscope.engine.results.reader`). On
    cancellation, the running query is interrupted and `Cancelled` is raised.

    Parameters
    ----------
    tables : IdentificationTables
        PSMs, peptides and protein groups.
    progress : Progress or None
        Progress, which is checked for cancellation.
    is_whole : bool
        True requires all columns that searches write.

    Raises
    ------
    InputError
        If a table is not Parquet, or lacks a column.
    StorageError
        If writing fails.
    """
    import duckdb  # slow to import, and only needed for sorted and filtered tables

    with scratch_folder() as spill:
        connection = duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(spill)})
        stop = threading.Event()
        watcher = threading.Thread(target=_interrupt_when_cancelled, args=(connection, progress, stop), name="cancel-export", daemon=True)
        try:
            if progress is not None:
                watcher.start()
            files = []
            for name in _DESCRIBED:
                source = getattr(tables, name)
                if source is None:
                    continue
                if isinstance(source, Path):
                    files.append(source)
                    with tables.opened(name, None if is_whole else ()) as checked:
                        checked.check(is_wanted=progress.check if progress is not None else lambda: None)
                        create_view(connection, checked)
                else:
                    connection.register(name, _in_chunks(source))
            restrict_to_files(connection, files)
            yield connection
        except (duckdb.Error, _QueryError) as error:
            if progress is not None and progress.is_cancelled:
                raise Cancelled from error
            raise _as_our_error(tables, error) from error
        finally:
            stop.set()
            if watcher.is_alive():
                watcher.join()
            connection.close()


def _in_chunks(table: pa.Table) -> pa.Table:
    """Split a table into chunks of DuckDB's vector size, which DuckDB processes in parallel."""
    return pa.Table.from_batches(table.to_batches(_VECTOR), table.schema)


def _interrupt_when_cancelled(connection: duckdb.DuckDBPyConnection, progress: Progress, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        if progress.is_cancelled:
            connection.interrupt()


def _as_our_error(tables: IdentificationTables, error: Exception) -> ProteoscopeError:
    position = tables.psms.parent if isinstance(tables.psms, Path) else Path("the tables")
    text = str(error).splitlines()[0]
    if is_out_of_memory(text):
        return ProteoscopeError("there is not enough memory to write the tables. Close other programs, or export on a machine with more.")
    if "No space left" in text or "out of disk" in text.lower() or "max_temp_directory_size" in text:
        return StorageError(f"{tempfile.gettempdir()}: the disk for temporary files is full. Free some space and try again.")
    return InputError(position, f"cannot be read as the tables of an identification ({text})", remedy="Run the identification again")


def columns(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the names of a table's columns in order, mapped to DuckDB's type names."""
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE {table}").fetchall()}


def scalar(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    """Return the single value of a query."""
    return connection.execute(query).fetchall()[0][0]


class _QueryError(Exception):
    """Exception: a query failed while its rows were read."""


def _batches(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[pa.RecordBatch]:
    reader = connection.sql(query).to_arrow_reader(_BATCH)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:
            # Arrow wraps DuckDB's message in an OSError.
            raise _QueryError(str(error)) from error
        yield batch


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query in order, as Python objects that are fetched in batches; NaN becomes None."""
    for batch in _batches(connection, query):
        yield from zip(*(_values(column) for column in batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_floating(column.type):
        column = pa.compute.if_else(pa.compute.is_nan(column), None, column)
    values: list[Any] = column.to_pylist()
    return values


def write_lines(connection: duckdb.DuckDBPyConnection, query: str, file: BinaryIO, progress: Progress | None) -> None:
    """Write the texts in a query's single column as lines to `file`, in order."""
    for batch in _batches(connection, query):
        file.write(text_bytes(batch.column(0).cast(pa.string())))
        if progress is not None:
            progress.advance(len(batch))


TABLES = {table.name: table for table in (EXPORTED_PSMS, PEPTIDES, PROTEINS)}
"""Descriptions of the exported tables by name."""

_ROWS = 4096
_THREADS = 8  # each thread holds a few megabytes: a chunk of rows as texts


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
    """Accepted rows of a table: `rows`, (n,) bool, is True for accepted rows; `is_rated` is True if any row has a q-value."""

    rows: NDArray[np.bool_]
    is_rated: bool


def _accepted(source: TableFile | pa.Table, fdr: float) -> _Accepted:
    """Return the targets of a table that are accepted at a false discovery rate; all targets if no row has a q-value."""
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
    """Return the columns that are always exported, followed by the other columns in `present`."""
    described, saved = {**TABLES[name].by_name, **{mark_column.name: mark_column for mark_column in MARK_COLUMNS}}, TABLES[name].saved
    return [described.get(saved_name, Column(saved_name)) for saved_name in (*saved, *(name for name in present if name not in saved))]

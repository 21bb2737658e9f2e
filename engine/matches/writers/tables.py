"""The tables of one identification, as DuckDB sees them: queries over them come out batch by batch, so that memory stays flat."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from engine.errors import InputError, ProteoscopeError, StorageError
from engine.jobs.progress import Cancelled, Progress

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = [
    "IdentificationTables",
    "columns",
    "database",
    "identifier",
    "is_known_column",
    "is_out_of_memory",
    "parquet_reader",
    "rows",
    "scalar",
    "shut_off",
    "text_literal",
    "write_lines",
]

_MEMORY = "1GB"
_BATCH = 8192
_VECTOR = 2048
_TABLES = ("psms", "peptides", "proteins")
_COLUMNS = {
    "psms": """
        spectrum_file spectrum_id scan retention_time precursor_mz charge observed_mass calculated_mass mass_error_ppm isotope_error peptide
        sequence proteins missed_cleavages matched_ions total_ions spectral_dot_product hyperscore score delta_score q_value
        posterior_error_probability rank is_decoy psm_id spectrum_index spectrum peptide_q_value search_score xcorr ksdp expectation
        modification_positions modification_names modification_masses modification_unimod protein_starts residues_before residues_after
        mass_shift modification site site_probability shift_kind shift_position carried_mass""",
    "peptides": """
        peptide sequence proteins n_psms best_score q_value is_decoy posterior_error_probability calculated_mass best_psm""",
    "proteins": """
        group accessions description n_peptides n_unique_peptides n_psms coverage score q_value is_decoy razor_peptides
        posterior_error_probability length sequence""",
}
_KNOWN = {table: frozenset(names.split()) for table, names in _COLUMNS.items()}
_FEATURE = re.compile(r"feature_[a-z0-9_]{1,80}")


@dataclass(frozen=True)
class IdentificationTables:
    """PSMs, peptides and protein groups of one run, each a Parquet file or an Arrow table."""

    psms: Path | pa.Table
    peptides: Path | pa.Table
    proteins: Path | pa.Table

    @classmethod
    def of_folder(cls, folder: str | Path) -> IdentificationTables:
        """The tables ``psms.parquet``, ``peptides.parquet`` and ``proteins.parquet`` of a folder.

        Raises
        ------
        InputError : one is missing.
        """
        paths = {name: Path(folder) / f"{name}.parquet" for name in _TABLES}
        for path in paths.values():
            if not path.is_file():
                raise InputError(path, "does not exist", remedy="Give the folder of an identification's results")
        return cls(**paths)


@contextmanager
def database(tables: IdentificationTables, progress: Progress | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection with views ``psms``, ``peptides`` and ``proteins``, of bounded memory (it spills to a temporary folder).

    When the user cancels, the query that is running is interrupted and `Cancelled` is raised.

    Raises
    ------
    InputError : a table is no Parquet, or lacks a column.
    StorageError : the disk refused.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="proteoscope-export-") as spill:
        connection = duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": spill})
        stop = threading.Event()
        watcher = threading.Thread(target=_interrupt_when_cancelled, args=(connection, progress, stop), name="cancel-export", daemon=True)
        try:
            if progress is not None:
                watcher.start()
            files = []
            for name in _TABLES:
                source = getattr(tables, name)
                if isinstance(source, Path):
                    files.append(source)
                    _create_view(connection, name, source)
                else:
                    connection.register(name, _in_pieces(source))
            shut_off(connection, files)
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


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, source: Path) -> None:
    """A view of a Parquet file with those of its columns that the program writes: others are a stranger's."""
    reader = parquet_reader(source)
    present = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()]
    chosen = ", ".join(identifier(column) for column in present if is_known_column(name, column))
    if not chosen:
        raise InputError(source, "holds no column of an identification's tables", remedy="Run the identification again")
    connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT {chosen} FROM {reader}")


def is_known_column(table: str, name: str) -> bool:
    """Whether the program writes a column of this name into ``psms``, ``peptides`` or ``proteins``."""
    return name in _KNOWN[table] or (table == "psms" and _FEATURE.fullmatch(name) is not None)


def _in_pieces(table: pa.Table) -> pa.Table:
    """The same table in pieces of the size that DuckDB works on, which it takes side by side where a table of one piece keeps it to one
    thread."""
    import pyarrow as pa

    return pa.Table.from_batches(table.to_batches(_VECTOR), table.schema)


def _interrupt_when_cancelled(connection: duckdb.DuckDBPyConnection, progress: Progress, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        if progress.is_cancelled:
            connection.interrupt()


def _as_our_error(tables: IdentificationTables, error: Exception) -> ProteoscopeError:
    place = tables.psms.parent if isinstance(tables.psms, Path) else Path("the tables")
    text = str(error).splitlines()[0]
    if is_out_of_memory(text):
        return ProteoscopeError("the memory is not enough to write the tables. Close other programs, or export on a machine with more.")
    if "No space left" in text or "out of disk" in text.lower() or "max_temp_directory_size" in text:
        return StorageError(f"{tempfile.gettempdir()}: the disk for temporary files is full. Free some space and try again.")
    return InputError(place, f"cannot be read as the tables of an identification ({text})", remedy="Run the identification again")


def text_literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name of a column or a table as SQL writes it, whatever letters it has."""
    return '"' + name.replace('"', '""') + '"'


def parquet_reader(path: Path, **options: str) -> str:
    """SQL that stands for the rows of a Parquet file; `options` of DuckDB's ``read_parquet``."""
    named = "".join(f", {name} = {value}" for name, value in options.items())
    return f"read_parquet({text_literal(_without_wildcards(path))}{named})"


def shut_off(connection: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> None:
    """Let a connection read these Parquet files and nothing else, for good: no query opens, writes or loads anything, whatever it says."""
    # The pattern that stands for a file is asked about, and the file that it leads to.
    allowed = [text_literal(name) for path in files for name in (os.path.abspath(path), _without_wildcards(path))]  # noqa: PTH100
    for setting in (
        f"allowed_paths = [{', '.join(allowed)}]",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "python_enable_replacements = false",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def is_out_of_memory(text: str) -> bool:
    """Whether what DuckDB complains of is the memory, and not the disk that it would spill to."""
    return ("Out of Memory" in text or "OutOfMemory" in text or "bad_alloc" in text) and "max_temp_directory_size" not in text


def _without_wildcards(path: Path) -> str:
    """A path for DuckDB's readers, which would take its brackets, stars and question marks for patterns."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as they are
    return "".join(f"[{letter}]" if letter in "[*?" else letter for letter in str(path))


def columns(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Names of a table's columns, in their order, with DuckDB's names of their types."""
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE {table}").fetchall()}


def scalar(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    """The one value that a query gives."""
    return connection.execute(query).fetchall()[0][0]


class _QueryError(Exception):
    """A query failed while its rows were being read."""


def _batches(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[pa.RecordBatch]:
    reader = connection.sql(query).to_arrow_reader(_BATCH)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:
            # Arrow's only way to pass on what DuckDB says.
            raise _QueryError(str(error)) from error
        yield batch


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    """Rows of a query in its order, converted to Python some thousands at a time; not-a-number becomes None, as what is missing is."""
    for batch in _batches(connection, query):
        yield from zip(*(_values(column) for column in batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    values: list[Any] = column.to_pylist()
    return values


def write_lines(connection: duckdb.DuckDBPyConnection, query: str, file: BinaryIO, progress: Progress | None) -> None:
    """Write the texts that a query gives in its one column, each of which ends its own line, in the query's order.

    An Arrow column of texts holds them one behind the other: that buffer is what goes into the file.
    """
    import numpy as np
    import pyarrow as pa

    for batch in _batches(connection, query):
        lines = batch.column(0).cast(pa.string())
        _, offset_buffer, text_buffer = lines.buffers()
        if len(lines) and text_buffer is not None:
            offsets = np.frombuffer(offset_buffer, np.int32)
            file.write(memoryview(text_buffer)[offsets[lines.offset] : offsets[lines.offset + len(lines)]])
        if progress is not None:
            progress.advance(len(lines))

"""Access of DuckDB to the tables of a run, through views of the described columns of validated files; DuckDB cannot open other files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results import columns as described
from proteoscope.engine.results.reader import TableFile

if TYPE_CHECKING:
    import duckdb

__all__ = ["create_view", "identifier", "is_out_of_memory", "parquet_reader", "restrict_to_files", "text_literal"]

_NAMES_OF_TYPES = {
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
}


def text_literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a column or table name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def create_view(connection: duckdb.DuckDBPyConnection, source: TableFile, *, name: str = "", has_rows: bool = False) -> None:
    """Create a view of a table with the described columns and types; further columns of the file are omitted.

    Parameters
    ----------
    has_rows
        True to add a column ``file_row_number``, and a null column for each missing optional column, except columns with
        `Column.is_hidden_if_absent`.
    """
    options = {"file_row_number": "true"} if has_rows else {}
    reader = parquet_reader(source.path, **options)
    stored = {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()}
    columns = [_cast(column, stored[column.name]) for column in source.columns.values()]
    if has_rows:
        absent = [column for name, column in source.table.by_name.items() if name not in source.columns and not column.is_hidden_if_absent]
        columns += [f"CAST(NULL AS {sql_type(described.arrow_type(column.type_name))}) AS {identifier(column.name)}" for column in absent]
    chosen = ", ".join([*columns, *(["file_row_number"] if has_rows else [])])
    connection.execute(f"CREATE VIEW {identifier(name or source.table.name)} AS SELECT {chosen} FROM {reader}")


def _cast(column: described.Column, stored: str) -> str:
    """Return an SQL expression for a column, cast to the described type if the file has another type."""
    wanted, name = sql_type(described.arrow_type(column.type_name)), identifier(column.name)
    return name if stored == wanted else f"CAST({name} AS {wanted}) AS {name}"


def sql_type(kind: pa.DataType) -> str:
    """Return the DuckDB name of an Arrow type.

    >>> sql_type(described.arrow_type("double[9]"))
    'DOUBLE[]'
    """
    value = getattr(kind, "value_type", None)
    return _NAMES_OF_TYPES[str(kind)] if value is None else f"{sql_type(value)}[]"


def parquet_reader(path: Path, **options: str) -> str:
    """Return an SQL expression for the rows of a Parquet file; `options` are options of DuckDB's ``read_parquet``."""
    named = "".join(f", {name} = {value}" for name, value in options.items())
    return f"read_parquet({text_literal(_without_wildcards(path))}{named})"


def restrict_to_files(connection: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> None:
    """Permanently restrict a connection to reading the given Parquet files.

    After this, no SQL can open other files, write files or load extensions.
    """
    # DuckDB checks both the pattern of a file name and the file that it matches.
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
    """Return True for DuckDB error messages about exhausted memory, but not about exhausted disk space."""
    return ("Out of Memory" in text or "OutOfMemory" in text or "bad_alloc" in text) and "max_temp_directory_size" not in text


def _without_wildcards(path: Path) -> str:
    """Return an absolute path in which brackets, stars and question marks are escaped, since DuckDB treats them as patterns."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 - does not resolve links
    return "".join(f"[{symbol}]" if symbol in "[*?" else symbol for symbol in str(path))

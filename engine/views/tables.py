"""Access to the tables of a run through DuckDB: rows that satisfy conditions, sorted, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import RowMark
from proteoscope.engine.results.columns import MARK_COLUMNS, STAR, Table
from proteoscope.engine.results.marks import marks_table
from proteoscope.engine.results.queries import create_view, identifier, is_out_of_memory, parquet_reader, restrict_to_files
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.views.conditions import Condition, where_clause

if TYPE_CHECKING:
    import duckdb

__all__ = ["ResultTables", "TableSource"]

_MEMORY = "1GB"
_ROW = "file_row_number"
_MARKS, _MARKED = " marks", " with marks"
"""Suffixes of the names of tables of marks and of tables with marks; other table names contain no blanks."""
_REMEDY = "Run the search again"


class ResultTables:
    """Parquet files as named DuckDB tables that queries may join.

    Parameters
    ----------
    later
        Further files by name, for which `changed` may create views.
    described
        Table descriptions by name. Described tables are validated first (`proteoscope.engine.results.reader`), and only described columns
        are shown.

    Raises
    ------
    InputError
        If a file is not Parquet, is damaged, or does not match its description.
    """

    def __init__(
        self, paths: Mapping[str, Path], described: Mapping[str, Table] | None = None, later: Mapping[str, Path] | None = None
    ) -> None:
        import duckdb  # slow to import: only sorted and filtered tables need it

        tables = described or {}

        self.paths = dict(paths)
        self.later = dict(later or {})
        self._marked: set[str] = set()
        self.made: set[str] = set()
        """Names of the tables stored by `put`."""
        # Leave one CPU core to the window, which would otherwise stutter while a table is sorted.
        self._connection = duckdb.connect(config={"memory_limit": _MEMORY, "threads": max(1, available_threads() - 1)})
        try:
            n_rows_of = _count_referenced_rows(self.paths, tables)
            for name, path in self.paths.items():
                with _readable(path):
                    if name in tables:
                        with TableFile(path, tables[name], n_rows_of=n_rows_of, remedy=_REMEDY) as source:
                            source.check()
                            create_view(self._connection, source, has_rows=True)
                    else:
                        reader = parquet_reader(path, **{_ROW: "true"})
                        self._connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT * FROM {reader}")
            restrict_to_files(self._connection, [*self.paths.values(), *self.later.values()])
        except ProteoscopeError:
            self._connection.close()
            raise

    def put(self, name: str, of: str | Path, table: pa.Table) -> None:
        """Store a table called `name`, which may replace an existing table; errors name the table or file `of`, from which it is derived.

        Sources that are already open use the new table in later queries.
        """
        rows, path = pa.array(np.arange(len(table))), of if isinstance(of, Path) else self.paths[of]
        with _readable(path), closing(self._connection.cursor()) as cursor:
            cursor.register("made_table", table.append_column(_ROW, rows))
            if name in self.paths and name not in self.made:
                cursor.execute(f"DROP VIEW {identifier(name)}")
            cursor.execute(f"CREATE OR REPLACE TABLE {identifier(name)} AS SELECT * FROM made_table")
            cursor.unregister("made_table")
        self.made.add(name)
        self.paths[name] = path

    def show_marks(self, name: str, marks: Mapping[int, RowMark]) -> None:
        """Add the columns `MARK_COLUMNS` to a table, with the given marks by row; only sources that are opened later show them."""
        starred, comment = MARK_COLUMNS
        table, view, retained = (identifier(f"{name}{ending}") for ending in ("", _MARKED, _MARKS))
        with _readable(self.paths[name]):
            self._connection.execute(f"CREATE TABLE {retained} (marked BIGINT PRIMARY KEY, starred VARCHAR, comment VARCHAR)")
            self._connection.execute(
                f"CREATE VIEW {view} AS SELECT stored.*, coalesce(marks.starred, '') AS {identifier(starred.name)}, "
                f"coalesce(marks.comment, '') AS {identifier(comment.name)} FROM {table} AS stored LEFT JOIN {retained} AS marks "
                f"ON stored.{_ROW} = marks.marked"
            )
            if marks:
                self._connection.register("new_marks", marks_table(marks))
                self._connection.execute(f"INSERT INTO {retained} SELECT * FROM new_marks")
                self._connection.unregister("new_marks")
        self._marked.add(name)

    def set_mark(self, name: str, row: int, mark: RowMark) -> None:
        """Set the mark of a row; open sources show it in later queries. May be called from any thread."""
        with _readable(self.paths[name]), closing(self._connection.cursor()) as cursor:
            values = [row, STAR if mark.is_starred else "", mark.comment]
            cursor.execute(f"INSERT OR REPLACE INTO {identifier(name + _MARKS)} VALUES (?, ?, ?)", values)

    def has_view(self, view: str) -> bool:
        """Return True if a view or replacement table called `view` was created."""
        named = "SELECT 1 FROM duckdb_views() WHERE view_name = $1 UNION ALL SELECT 1 FROM duckdb_tables() WHERE table_name = $1"
        with closing(self._connection.cursor()) as cursor:
            return bool(cursor.execute(named, [view]).fetchall())

    @contextmanager
    def changed(self, path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection that may add views and tables from a file of the run, in one transaction.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        with _readable(path), closing(self._connection.cursor()) as cursor:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("COMMIT")

    def view_source(self, name: str, view: str, path: Path) -> TableSource:
        """Open the view `view`, which was created with `changed` from the file `path`, as a table called `name`."""
        return TableSource(self._connection.cursor(), name, {**self.paths, name: path}, view)

    def source(self, name: str) -> TableSource:
        """Open a table; each source may be used from one thread only, different sources in parallel.

        Raises
        ------
        ParameterError
            If there is no table of this name.
        """
        if name not in self.paths:
            raise ParameterError(f"this run has no table {name!r}; it has {', '.join(self.paths)}")
        return TableSource(self._connection.cursor(), name, self.paths, name + _MARKED if name in self._marked else name)

    def close(self) -> None:
        """Close the tables."""
        self._connection.close()


class TableSource:
    """Open table whose rows are selected by conditions and sorted; queries may use the other tables of `paths`."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, name: str, paths: Mapping[str, Path], view: str = "") -> None:
        self._cursor = cursor
        self._table = identifier(view or name)
        self.name, self.path, self.paths = name, paths[name], paths
        with _readable(self.path):
            described = cursor.execute(f"DESCRIBE {self._table}").fetchall()
        self.types: dict[str, str] = {row[0]: row[1] for row in described if row[0] != _ROW}
        """DuckDB type of each column."""
        self._has_values: dict[str, bool] = {}

    def sibling(self, name: str) -> TableSource:
        """Return the source of another table of the run, for use in the same thread; it is closed with this source."""
        return TableSource(self._cursor, name, self.paths)

    @cached_property
    def total(self) -> int:
        """Number of rows of the whole table."""
        return self.count()

    def has_values(self, column: str) -> bool:
        """Return True if any row has a value in a column; the answer is cached."""
        if column not in self._has_values:
            query = f"SELECT 1 AS n FROM {self._table} WHERE {identifier(column)} IS NOT NULL LIMIT 1"
            self._has_values[column] = bool(self.query(query).num_rows)
        return self._has_values[column]

    def count(self, conditions: Iterable[Condition] = ()) -> int:
        """Count the rows that satisfy all conditions."""
        where, parameters = where_clause(conditions)
        return int(self.query(f"SELECT count(*) AS n FROM {self._table}{where}", parameters)["n"][0].as_py())

    def rows(
        self, conditions: Iterable[Condition] = (), order: Sequence[tuple[str, bool]] = (), *, limit: int | None = None
    ) -> NDArray[np.int64]:
        """Return the row numbers in the file (from 0) of the rows that satisfy all conditions, sorted by `order`, shape (n,), int64.

        Parameters
        ----------
        order
            Columns to sort by, each with True for descending. Missing values and NaN come last; ties are in file order.
        limit
            Maximum number of rows.
        """
        where, parameters = where_clause(conditions)
        if not where and not order:
            return np.arange(self.count() if limit is None else min(limit, self.count()))
        keys = []
        for name, descends in order:
            column = identifier(name)
            # DuckDB sorts NaN as the largest number. It also relies on the statistics of the file, which ignore NaN, so that isnan() may
            # not find NaN; isfinite() reads the values.
            key = f"CASE WHEN isfinite({column}) THEN {column} END" if self.types[name] in ("DOUBLE", "FLOAT") else column
            keys.append(f"{key} {'DESC' if descends else 'ASC'} NULLS LAST")
        by = f" ORDER BY {', '.join([*keys, _ROW])}" + ("" if limit is None else f" LIMIT {int(limit)}")
        rows: NDArray[np.int64] = self.query(f"SELECT {_ROW} FROM {self._table}{where}{by}", parameters)[_ROW].to_numpy()
        return rows

    def values(self, rows: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return the values of the given rows, in the order of `rows`."""
        if len(rows) == 0:
            return self.query(f"SELECT {', '.join(map(identifier, columns))} FROM {self._table} LIMIT 0")
        named = ", ".join(identifier(name) for name in columns)
        # With the range, DuckDB skips whole row groups, which it does not do for the join alone.
        where = f"WHERE {_ROW} BETWEEN {int(rows.min())} AND {int(rows.max())}"
        if np.all(np.diff(rows) == 1):
            # Single rows, and pages of a table that is neither filtered nor sorted, need no join, which takes a third of the time.
            return self.query(f"SELECT {named} FROM {self._table} {where} ORDER BY {_ROW}")
        # The blank avoids conflicts, since no column of a table has a blank in its name.
        wanted = pa.table({" chosen": rows, " place": np.arange(len(rows))})
        self._cursor.register("chosen_rows", wanted)
        try:
            joined = f"JOIN chosen_rows ON {_ROW} = {identifier(' chosen')}"
            return self.query(f"SELECT {named} FROM {self._table} {joined} {where} ORDER BY {identifier(' place')}")
        finally:
            self._cursor.unregister("chosen_rows")

    def row(self, row: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return the values of a row by column."""
        values: dict[str, Any] = self.values(np.array([row]), columns).to_pylist()[0]
        return values

    def columns(self, names: Sequence[str], conditions: Iterable[Condition] = ()) -> pa.Table:
        """Return columns of the rows that satisfy all conditions, in file order if no condition uses another table."""
        where, parameters = where_clause(conditions)
        return self.query(f"SELECT {', '.join(map(identifier, names))} FROM {self._table}{where}", parameters)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """Return the result of an SQL query over the tables of the run.

        Raises
        ------
        InputError
            If the file is damaged or lacks a column.
        """
        # DuckDB does not accept NumPy scalars, such as row numbers from arrays.
        values = [parameter.item() if isinstance(parameter, np.generic) else parameter for parameter in parameters]
        with _readable(self.path):
            return self._cursor.sql(sql, params=values).to_arrow_table()

    def interrupt(self) -> None:
        """Interrupt the running query; may be called from any thread."""
        self._cursor.interrupt()

    def close(self) -> None:
        """Close the table."""
        self._cursor.close()


def _count_referenced_rows(paths: Mapping[str, Path], described: Mapping[str, Table]) -> dict[str, int]:
    """Return the number of rows, by name, of each table to whose rows a column of a table refers."""
    referred = {column.rows_of for table in described.values() for column in table.by_name.values()}
    result = {}
    for name in referred & paths.keys():
        with TableFile(paths[name], described[name], (), remedy=_REMEDY) as source:
            result[name] = source.n_rows
    return result


class _readable:  # noqa: N801 - reads as a statement
    """Context manager that converts DuckDB errors about a file to errors of the program."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        import duckdb  # slow to import: only sorted and filtered tables need it

        if isinstance(error, duckdb.Error) and not isinstance(error, duckdb.InterruptException):
            reason = str(error).splitlines()[0]
            if not self._path.exists():
                raise InputError(
                    self._path, "no longer exists", remedy="The project was moved or deleted. Open it in its new folder"
                ) from error
            if is_out_of_memory(reason):
                raise ProteoscopeError(f"{self._path}: there is not enough memory to read the table. Close other programs.") from error
            raise InputError(self._path, f"cannot be read as a table ({reason})", remedy="Run the search again") from error

"""Reader of untrusted result tables: all content is validated before use.

Tables are checked against their descriptions (`proteoscope.engine.results.columns`): missing and duplicate names, types (also nested),
missing values, bounds, UTF-8, truncation, and rules between columns. Types with the same meaning (narrower integers, dictionaries of
texts) are converted to the described types.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from proteoscope.engine.errors import InputError, ProteoscopeError, StorageError, shortened
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.results.arrow import in_one, is_list, is_text, written_out_bytes
from proteoscope.engine.results.columns import Column, Rule, Table, arrow_type
from proteoscope.engine.unfolding import TABLE_BYTES, Unfolding

__all__ = ["CHECKED_ROWS", "TableFile", "checked", "number_columns", "read_stored", "row_count", "stored_table"]

CHECKED_ROWS = 1 << 16
"""Default number of rows of a chunk in memory."""
_MAXIMUM_NAMES = 5  # maximum number of names listed in an error
_BATCH_BYTES = 1 << 26  # approximate maximum size of a chunk in memory
_REMEDY = "Do the search again"
_MAXIMUM_REMEMBERED = 4096
_SETTLED_NS = 2_000_000_000
"""Minimum age of a file's last change for its validation to be remembered, ns; a later change could have the same time stamp."""
_validated: set[tuple[object, ...]] = set()
"""Successful validations in this process: path, file state and checked columns."""


class TableFile:
    """Open Parquet table, with access to the described columns.

    Parameters
    ----------
    path
        Path of the file.
    table
        Description of the table.
    needed
        Names of the required columns; by default, all columns that are not optional.
    n_rows_of
        Row counts of other tables of the run, by name; row indices that refer to these tables are checked.
    remedy
        Advice for the user if the table is invalid.

    Attributes
    ----------
    columns
        Descriptions of the columns in the file by name, including those that match `Table.more`.

    Raises
    ------
    InputError
        If the file does not agree with the description of the table.
    """

    def __init__(
        self,
        path: Path,
        table: Table,
        needed: Iterable[str] | None = None,
        *,
        n_rows_of: Mapping[str, int] | None = None,
        remedy: str = _REMEDY,
    ) -> None:
        self.path, self.table, self._remedy, self._n_rows_of = path, table, remedy, dict(n_rows_of or {})
        self._state = _read_state(path)
        with self._read():
            file = pa.parquet.ParquetFile(path)
            self._schema = file.schema_arrow
            file.close()
            # Read texts as dictionaries: otherwise Arrow expands a text repeated in many rows before its size is known.
            texts = [file.schema.column(i).path for i in range(len(file.schema)) if file.schema.column(i).physical_type == "BYTE_ARRAY"]
            self._file = pa.parquet.ParquetFile(path, metadata=file.metadata, read_dictionary=texts)
        try:
            with self._read():
                names = list(self._schema.names)
                self.n_rows = int(self._file.metadata.num_rows)
            self.columns = self._known(names, needed)
            self._check_rows()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> TableFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def group_rows(self) -> list[int]:
        """Number of rows of each row group."""
        metadata = self._file.metadata
        return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]

    def batches(self, names: Sequence[str] | None = None, rows: int = CHECKED_ROWS) -> Iterator[pa.Table]:
        """Yield validated chunks of rows in order, with the named columns, or all described columns of the file.

        Raises
        ------
        InputError
            If a row is invalid.
        """
        requested = list(self.columns if names is None else names)
        wanted = [name for name in requested if name in self.columns]
        with self._read():
            chunks = self._file.iter_batches(min(rows, self._rows_of_batch()), columns=wanted, use_threads=False)
        n_read, unfolding = 0, Unfolding(self.path, self.path.stat().st_size)
        while True:
            with self._read():
                chunk = next(chunks, None)
            if chunk is None:
                break
            with self._read():
                result = pa.Table.from_batches([chunk]).select(wanted)
                n_bytes = sum(written_out_bytes(column) for column in result.columns)
            unfolding.add(TABLE_BYTES, n_bytes)
            n_read += len(result)
            yield self._with_absent(self._checked(result), requested)
        if n_read != self.n_rows:
            raise self.damaged(f"has {n_read:,} rows instead of the declared {self.n_rows:,}")

    def read(self, names: Sequence[str] | None = None) -> pa.Table:
        """Return all rows after validation, with the named columns, or all described columns of the file.

        Raises
        ------
        InputError
            If a row is invalid.
        """
        wanted = list(self.columns if names is None else names)
        parts = list(self.batches(wanted))
        return pa.concat_tables(parts) if parts else self._empty(wanted)

    def read_group(self, number: int, names: Sequence[str]) -> pa.Table:
        """Return a Parquet row group after validation, with the named columns.

        Raises
        ------
        InputError
            If a row is invalid.
        """
        with self._read():
            result = self._file.read_row_group(number, columns=list(names), use_threads=False).select(list(names))
        return self._checked(result)

    def check(self, names: Sequence[str] | None = None, is_wanted: Callable[[], object] = lambda: None) -> None:
        """Validate all rows. This is needed before a file is read without this class, as DuckDB does.

        `is_wanted` is called between chunks and may raise an exception to abort. A validated file is not validated again in this process
        unless it changes. The validation is not recorded on disk, since the project may be untrusted.

        Raises
        ------
        InputError
            If a row is invalid.
        """
        requested = (
            self.path.absolute(),
            self._state,
            self.table,
            None if names is None else tuple(names),
            tuple(sorted(self._n_rows_of.items())),
        )
        if self._state is not None and requested in _validated:
            return
        for _ in self.batches(names):
            is_wanted()
        # The file was opened after its state was read; if the state is unchanged, this file was validated.
        if self._state is not None and _read_state(self.path) == self._state and _is_settled(self._state):
            if len(_validated) >= _MAXIMUM_REMEMBERED:
                _validated.clear()
            _validated.add(requested)

    def damaged(self, reason: str, name: str = "") -> InputError:
        """Return an error about the table or one of its columns."""
        return InputError(self.path, reason, place=f"column {shortened(name)}" if name else "", remedy=self._remedy)

    def _known(self, names: list[str], needed: Iterable[str] | None) -> dict[str, Column]:
        described = self.table.by_name
        wanted = [name for name, column in described.items() if not column.is_optional] if needed is None else list(needed)
        if missing := [name for name in wanted if name not in names and not (name in described and described[name].is_optional)]:
            others = f" and {len(missing) - 1} more that it should have" if len(missing) > 1 else ""
            raise self.damaged(f"has no column {missing[0]}{others}")
        # DuckDB does not distinguish names that differ only in case.
        doubled = [name for name, n in Counter(name.casefold() for name in names).items() if n > 1]
        if doubled:
            raise self.damaged(f"has the columns {', '.join(map(shortened, doubled[:_MAXIMUM_NAMES]))} twice")
        more = {
            number_column.name: number_column
            for number_column in number_columns(names)
            if self.table.more and re.fullmatch(self.table.more, number_column.name)
        }
        expected = {name: described.get(name) or more[name] for name in names if name in described or name in more}
        for name, column in expected.items():
            with self._read():
                stored = self._schema.field(name).type
                if not _means(stored, arrow_type(column.type_name)):
                    raise self.damaged(f"contains {_shown_type(stored)} instead of {_shown_type(arrow_type(column.type_name))}", name)
        return expected

    def _check_rows(self) -> None:
        """Raise an error if the metadata shows that the table is truncated."""
        with self._read():
            metadata = self._file.metadata
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            if any(group.num_rows < 0 for group in groups) or sum(group.num_rows for group in groups) != self.n_rows:
                raise self.damaged("is cut off: its parts have other numbers of rows than declared")

    def _rows_of_batch(self) -> int:
        """Return the number of rows per chunk, which is chosen so that a chunk takes at most about `_BATCH_BYTES`."""
        metadata = self._file.metadata
        # Use totals, since Arrow aborts the program on damaged metadata of single columns.
        n_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        n_rows: int = max(1, min(CHECKED_ROWS, _BATCH_BYTES * max(1, self.n_rows) // max(1, n_bytes)))
        return n_rows

    def _with_absent(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        """Return the columns `names` in this order; columns that the file lacks are null."""
        for name in names:
            if name not in self.columns:
                table = table.append_column(name, pa.nulls(len(table), arrow_type(self.table.by_name[name].type_name)))
        return table.select(list(names))

    def _empty(self, names: Sequence[str]) -> pa.Table:
        described = {**self.table.by_name, **self.columns}
        return pa.schema([(name, arrow_type(described[name].type_name)) for name in names]).empty_table() if names else pa.table({})

    def _checked(self, table: pa.Table) -> pa.Table:
        with self._read():
            return checked(table, self.columns, self.table.rules, self.damaged, self._n_rows_of)

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Convert Arrow exceptions within the context to an error that names the file."""
        try:
            yield
        except ProteoscopeError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError) as error:
            raise self.damaged(
                f"cannot be read as a table ({shortened(' '.join(str(error).split()), 200) or type(error).__name__})"
            ) from error


class _State(NamedTuple):
    """State of a file, which differs after a change of the file; the system sets `changed_ns` at every change, so it cannot be forged."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def _read_state(path: Path) -> _State | None:
    try:
        result = path.stat()
    except OSError:
        return None
    return _State(result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns, result.st_ctime_ns)


def _is_settled(state: _State) -> bool:
    return time.time_ns() - max(state.modified_ns, state.changed_ns) > _SETTLED_NS


def number_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """Return descriptions of numeric columns that are known only by name, such as those that match `Table.more`."""
    return tuple(Column(name, type="float", is_nullable=True) for name in names)


def checked(
    table: pa.Table,
    columns: Mapping[str, Column],
    rules: Sequence[Rule],
    damaged: Callable[[str, str], InputError],
    n_rows_of: Mapping[str, int],
) -> pa.Table:
    """Validate the values of a table, and return the table converted to the described types.

    Parameters
    ----------
    table : pyarrow.Table
        Table to validate.
    columns : mapping of str to Column
        Descriptions of the columns of the table, by name.
    rules : sequence of Rule
        Conditions between columns.
    damaged : callable
        Function that returns an error, given a reason and the name of a column.
    n_rows_of : mapping of str to int
        Numbers of rows of the tables to which columns refer, by table name.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    InputError
        If a value is invalid; `damaged` creates the error from a reason and the name of a column.
    """
    arrays: dict[str, pa.Array] = {}
    for name in table.column_names:
        described, column = columns[name], table[name]
        try:
            column.validate(full=True)
            array = _converted(in_one(column), arrow_type(described.type_name))
            reason = _column_error(array, described, n_rows_of)
        except (pa.ArrowException, ValueError) as error:
            reason = f"cannot be read ({shortened(' '.join(str(error).split()), 200)})"
        if reason:
            raise damaged(reason, name)
        arrays[name] = array
    for name, array in arrays.items():
        other = columns[name].as_long_as
        if other in arrays and not _are_as_long(array, arrays[other]):
            raise damaged(f"has other numbers of items than {other}", name)
    for rule in rules:
        if all(name in arrays for name in rule.columns) and not rule.is_satisfied(*(arrays[name] for name in rule.columns)):
            raise damaged(rule.violation, rule.columns[0])
    return pa.table(arrays) if arrays else table


def stored_table(
    project: Project,
    run: str,
    table: Table,
    needed: Iterable[str] | None = None,
    *,
    verify: bool = True,
    remedy: str = _REMEDY,
) -> TableFile:
    """Open a table of a finished run; row indices that refer to other tables of the run are validated too.

    Raises
    ------
    InputError
        If the run does not have the table, or the table is invalid.
    StorageError
        If the file is missing, or differs from the registered file.
    """
    path = project.table(table.name, run, verify=verify)
    referred = {column.rows_of for column in table.by_name.values() if column.rows_of}
    n_rows_of = {name: n for name in referred if (n := _n_rows(project, run, name)) is not None}
    return TableFile(path, table, needed, n_rows_of=n_rows_of, remedy=remedy)


def read_stored(project: Project, run: str, table: Table, names: Sequence[str], *, remedy: str = _REMEDY) -> pa.Table:
    """Return all rows of the given columns of a table of a finished run.

    Raises
    ------
    InputError, StorageError
        As for `stored_table`.
    """
    with stored_table(project, run, table, names, remedy=remedy) as result:
        return result.read(names)


def _n_rows(project: Project, run: str, name: str) -> int | None:
    """Return the row count of a table of a run; None if the run did not store the table."""
    try:
        path = project.table(name, run, verify=False)
    except (InputError, StorageError):
        return None
    return row_count(path) or 0


def row_count(path: Path) -> int | None:
    """Return the row count in the metadata of a Parquet file; None if the file is unreadable."""
    try:
        return int(pa.parquet.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return None


def _means(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if the Arrow type `stored` has the same meaning as the type `wanted`, so that its values may be converted.

    For example, integers may be converted to floating-point numbers, but not the reverse.
    """
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_null(stored):
        return True
    if is_list(stored) and is_list(wanted):
        return _means(stored.value_type, wanted.value_type)
    shown = _shown_type(stored), _shown_type(wanted)
    return shown[0] == shown[1] or shown == ("whole numbers", "numbers")


def _shown_type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if is_list(kind):
        return f"lists of {_shown_type(kind.value_type)}"
    if is_text(kind):
        return "texts"
    if pa.types.is_boolean(kind):
        return "truths"
    if pa.types.is_integer(kind):
        return "whole numbers"
    return "numbers" if pa.types.is_floating(kind) else shortened(str(kind))


def _converted(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert a column to an Arrow type that `_means` accepts."""
    if column.type == wanted:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_list(column.type) and is_list(wanted):
        return _as_list(column, wanted)
    return column.cast(wanted)


def _as_list(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.null_count:
        raise pa.ArrowInvalid("a list is missing")
    items, lengths = column.flatten(), pa.compute.list_value_length(column)
    values = _converted(items, wanted.value_type)
    if pa.types.is_fixed_size_list(wanted):
        if pa.compute.any(pa.compute.not_equal(lengths, wanted.list_size)).as_py():
            raise pa.ArrowInvalid(f"a list does not have {wanted.list_size} items")
        return pa.FixedSizeListArray.from_arrays(values, wanted.list_size)

    offsets = np.concatenate(([0], np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)))
    if pa.types.is_large_list(wanted):
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)
    return pa.ListArray.from_arrays(pa.array(offsets).cast(pa.int32()), values)


def _column_error(array: pa.Array, column: Column, n_rows_of: Mapping[str, int]) -> str:
    """Return a description of the first invalid value of a column, as the end of a sentence; '' if all values are valid."""
    if is_list(array.type):
        if array.null_count:
            return "contains a missing list"
        array = array.flatten()
        if is_list(array.type):
            return "contains lists of lists"
    if not column.is_nullable:
        if array.null_count:
            return "contains a missing value"
        if pa.types.is_floating(array.type) and pa.compute.any(pa.compute.is_nan(array)).as_py():
            return "contains a value that is not a number"
    low, high = column.low, column.high
    if column.rows_of:
        low, high = 0, n_rows_of.get(column.rows_of, 1 << 62) - 1
    if low is not None or high is not None:
        values = array
        if pa.types.is_floating(array.type):
            values = pa.compute.if_else(pa.compute.is_nan(array), pa.scalar(None, array.type), array)
        ends = pa.compute.min_max(values).as_py()
        least, most = ends["min"], ends["max"]
        if least is not None and ((low is not None and least < low) or (high is not None and most > high)):
            if column.rows_of:
                return f"refers to rows that {column.rows_of} does not have"
            return f"contains numbers outside {_bounds(low, high)}"
        if least is not None and pa.types.is_floating(array.type) and (abs(least) == float("inf") or abs(most) == float("inf")):
            return "contains an infinite number"
    if column.pattern and pa.compute.any(pa.compute.invert(pa.compute.match_substring_regex(array, f"^(?:{column.pattern})$"))).as_py():
        return "contains a text that the program does not write"
    return ""


def _bounds(low: float | None, high: float | None) -> str:
    least, most = ("-" if bound is None else f"{bound:g}" for bound in (low, high))
    return f"{least} to {most}"


def _are_as_long(array: pa.Array, other: pa.Array) -> bool:
    return bool(
        pa.compute.list_value_length(array).equals(pa.compute.list_value_length(other).cast(pa.compute.list_value_length(array).type))
    )

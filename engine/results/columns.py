"""Descriptions of the columns of result tables, for storage, display and export.

The description of a column determines the Parquet schema, the validation of untrusted tables (`proteoscope.engine.results.reader`), the
cells of text files (`proteoscope.engine.results.separated`), and the headers, cells and tooltips of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from proteoscope.engine.lazy_pyarrow import pa

__all__ = ["MARK_COLUMNS", "STAR", "Column", "Kind", "Rule", "Table", "arrow_type"]

Kind = Literal[
    "text", "texts", "numbers", "identifier", "integer", "number", "probability", "e_value", "percent", "minutes", "truth", "heat"
]

_PERCENT, _SECONDS = 100, 60
_SHOWN_UNITS: dict[Kind, str] = {"percent": "%", "minutes": "min"}
"""Units of displayed values that are stored in another unit."""
_TYPES: dict[Kind, str] = {
    "text": "string",
    "texts": "list<string>",
    "numbers": "list<double>",
    "identifier": "int64",
    "integer": "int64",
    "truth": "bool",
    "heat": "list<double>",
}


@dataclass(frozen=True)
class Column:
    """Description of a column, for storage, display and export.

    Attributes
    ----------
    name
        Name in the file.
    title
        Header without unit; a column without a title is never shown.
    unit
        Unit of the stored and exported values, such as ``Da``; '' for numbers without unit. `shown_unit` is the unit of displayed values.
    meaning
        Description of the values as one sentence.
    kind
        Display type: ``identifier`` is an integer without thousands separators, ``probability`` a q-value or similar, ``e_value`` an
        E-value. ``percent`` is a fraction shown in percent, and ``minutes`` a time in seconds shown in minutes. ``texts`` and ``numbers``
        are lists (numbers are joined by commas), and ``heat`` is a list of numbers shown as colours.
    width
        Width in the window, characters.
    decimals
        Number of decimals in the window.
    is_shown
        True if the column is shown by default.
    type
        Arrow type in the file, such as ``double``, ``int32``, ``list<string>`` or, for nine numbers, ``double[9]``; '' derives it from
        `kind`.
    is_nullable
        True if values or list items may be missing or NaN.
    is_optional
        True if only some runs have the column, such as runs that search known modifications.
    is_hidden_if_absent
        True if the column is optional and hidden in runs without it, such as a score of another search engine.
    low, high
        Bounds of the numbers. Numbers may be infinite only if there is no bound.
    pattern
        Regular expression that each text must match as a whole.
    rows_of
        Name of a table of the same run; the values are row indices of this table, from 0.
    as_long_as
        Name of another column of lists; the two lists in a row must have equal lengths.
    saved
        Python format of exported numbers, such as ``.4f``; '' uses the dialect of the file.
    saved_null
        Exported text of a missing value.
    entries
        ``proteins`` or ``structures`` if the texts are names of proteins or structures, which the window links to public databases.
    is_own_text
        True if the program generates the texts, which then cannot contain malicious spreadsheet formulas.
    """

    name: str
    title: str = ""
    meaning: str = ""
    kind: Kind = "text"
    width: int = 12
    decimals: int = 2
    is_shown: bool = True
    unit: str = ""
    type: str = ""
    is_nullable: bool = False
    is_optional: bool = False
    is_hidden_if_absent: bool = False
    low: float | None = None
    high: float | None = None
    pattern: str = ""
    rows_of: str = ""
    as_long_as: str = ""
    saved: str = ""
    saved_null: str = ""
    entries: Literal["", "proteins", "structures"] = ""
    is_own_text: bool = False

    @property
    def header(self) -> str:
        """Title with the unit of displayed values, such as ``Mass (Da)``."""
        return f"{self.title} ({self.shown_unit})" if self.title and self.shown_unit else self.title

    @property
    def shown_unit(self) -> str:
        """Unit of displayed values, to which `in_unit` converts."""
        return _SHOWN_UNITS.get(self.kind, self.unit)

    @property
    def description(self) -> str:
        """Meaning of the column. If displayed values have another unit than the values in files, the unit in files follows."""
        if not self.has_own_unit:
            return self.meaning
        return f"{self.meaning}; in files {f'in {self.unit}' if self.unit else 'a fraction, from 0 to 1'}"

    @property
    def is_number(self) -> bool:
        """True if the values are numbers, which are right-aligned in the window."""
        return self.kind not in ("text", "texts", "numbers", "truth", "heat")

    @property
    def has_own_unit(self) -> bool:
        """True if the displayed unit differs from the stored unit."""
        return self.kind in _SHOWN_UNITS

    @property
    def saved_name(self) -> str:
        """Header in an exported table: the name, followed by ``_percent`` or ``_minutes`` if this is the kind of the column."""
        return f"{self.name}_{self.kind}" if self.has_own_unit else self.name

    @property
    def type_name(self) -> str:
        """Name of the Arrow type in the file."""
        return self.type or _TYPES.get(self.kind, "double")

    def in_unit(self, value: Any) -> Any:
        """Convert a stored value to the displayed unit."""
        if self.kind == "percent":
            return value * _PERCENT
        return value / _SECONDS if self.kind == "minutes" else value


def arrow_type(name: str) -> pa.DataType:
    """Return the Arrow type of a name in the notation of `Column.type`.

    >>> str(arrow_type("list<int16>")), str(arrow_type("double[9]"))
    ('list<item: int16>', 'fixed_size_list<item: double>[9]')
    """
    outer, _, inner = name.removesuffix(">").partition("<")
    if inner:
        return {"list": pa.list_, "large_list": pa.large_list}[outer](arrow_type(inner))
    if name.endswith("]"):
        item, _, size = name.removesuffix("]").partition("[")
        return pa.list_(arrow_type(item), int(size))
    return pa.type_for_alias(name)


@dataclass(frozen=True)
class Rule:
    """Condition on several columns that all rows of a valid table satisfy.

    Attributes
    ----------
    columns
        Names of the columns; the rule is checked when all these columns are read.
    violation
        Description of a violation, as the end of a sentence.
    is_satisfied
        Function of the columns (Arrow arrays) that returns True if all rows satisfy the condition.
    """

    columns: tuple[str, ...]
    violation: str
    is_satisfied: Callable[..., bool]


@dataclass(frozen=True)
class Table:
    """Description of a result table of a search.

    Attributes
    ----------
    name
        Name of the result in the project.
    title
        Title of the rows, such as ``Proteins``.
    columns
        Displayed columns in order.
    links
        Names of stored columns that are not displayed, but connect tables in views.
    stored
        All columns of the file in order; if empty, the displayed columns.
    saved
        Names of the exported columns, in order.
    rules
        Conditions between columns.
    more
        Regular expression for the names of additional numeric columns; '' for none.
    takes_marks
        True if users can mark rows with a star and a comment.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    links: tuple[str, ...] = ()
    stored: tuple[Column, ...] = ()
    saved: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    more: str = ""
    takes_marks: bool = False

    @classmethod
    def from_columns(
        cls,
        name: str,
        title: str,
        stored: tuple[Column, ...],
        *,
        shown: str = "",
        links: str = "",
        saved: str = "",
        rules: tuple[Rule, ...] = (),
        more: str = "",
        takes_marks: bool = False,
    ) -> Table:
        """Return a description of a table with the columns `stored` in its file.

        `shown` (displayed columns), `links` and `saved` (exported columns) are names of stored columns, separated by spaces. See the
        attributes of the class for the other parameters.
        """
        by_name = {column.name: column for column in stored}
        columns = tuple(by_name[name] for name in shown.split())
        return cls(name, title, columns, tuple(links.split()), stored, tuple(saved.split()), rules, more, takes_marks)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """All columns of the file by name, in order."""
        return {column.name: column for column in self.stored or self.columns}

    def chosen(self, names: Iterable[str]) -> tuple[Column, ...]:
        """Return the columns with the given names, in this order."""
        return tuple(self.by_name[name] for name in names)

    @property
    def saved_columns(self) -> tuple[Column, ...]:
        """Columns of the exported table, in order."""
        return self.chosen(self.saved)

    def schema(self, names: Iterable[str] | None = None) -> pa.Schema:
        """Return the Arrow schema of all columns of the file or of the named columns, in the order of the file."""
        wanted = None if names is None else set(names)
        return pa.schema(
            [(name, arrow_type(column.type_name)) for name, column in self.by_name.items() if wanted is None or name in wanted]
        )

    def arrow(self, columns: dict[str, Any], *, without: Collection[str] = ()) -> pa.Table:
        """Return an Arrow table of the given columns, converted to the described types.

        Parameters
        ----------
        without
            Names of optional columns that the run does not have.

        Raises
        ------
        KeyError
            If a described column is not given, or a given column is not described.
        """
        names = [name for name, column in self.by_name.items() if not (name in without and column.is_optional)]
        schema = self.schema(names)
        if columns.keys() != set(names):
            raise KeyError(f"table {self.name}: {', '.join(sorted(columns.keys() ^ set(names)))}")
        return pa.table([_as_type(columns[field.name], field.type) for field in schema], schema=schema)


def _as_type(values: Any, kind: pa.DataType) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values if values.type == kind else values.cast(kind)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), kind.value_type), kind.list_size)
    return pa.array(values, kind)


STAR = "★"
MARK_COLUMNS = (
    Column("starred", STAR, "True if a user has starred the row. Ctrl+D adds or removes the star", width=2, is_own_text=True),
    Column("comment", "Comment", "Comment that a user wrote about the row", width=24),
)
"""Columns that are displayed after the other columns of tables with markable rows; the file of the table does not contain them."""

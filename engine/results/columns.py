"""Result tables, described once: what they hold in the file, what the window shows of them, and what is written when they are saved.

A column is one entry. From it are made the Parquet schema, the check of a table that somebody else may have written
(`proteoscope.engine.results.reader`), the text of its cells in files (`proteoscope.engine.results.separated`), and the window's headers,
cells and tips.
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
    """A column as users see it, and as the file holds it.

    Attributes
    ----------
    name : of the column in the file.
    title, unit : its header, without and with; a column without a title is never shown. meaning : what it holds, in a sentence.
    kind : how values read: ``identifier`` is a whole number without separators, ``probability`` a q-value or the like,
        ``e_value`` an E-value, ``percent`` is stored as a part of one, ``minutes`` are stored in seconds, ``texts`` is a list, and so are
        ``numbers``, which stand with commas between them, and ``heat``, which are painted as colours.
    width : in characters.
    decimals : of a number.
    is_shown : whether it is shown before the user has chosen.
    type : Arrow's in the file: ``double``, ``int32``, ``list<string>``, ``double[9]`` for nine numbers; what suits `kind` where
        it is empty.
    is_nullable : whether values, or items of a list, may be missing or not a number.
    is_optional : True if only some runs have the column, such as those that searched known modifications.
    is_of_some : True if it is optional, and not shown where a run does not have it, such as a score of another search engine.
    low, high : bounds of numbers; without any they may be infinite. pattern : a regular expression that the whole of each text satisfies.
    rows_of : the table of the same run whose rows the values are, from 0. as_long_as : another column of lists with as many items.
    saved : how numbers are written, as Python's format has it (``.4f``); as the dialect of the file writes them where it is empty.
    saved_null : what stands in a file for a missing value. is_own_text : a text that the program makes itself, in which a spreadsheet can
        find no formula of a stranger.
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
    is_of_some: bool = False
    low: float | None = None
    high: float | None = None
    pattern: str = ""
    rows_of: str = ""
    as_long_as: str = ""
    saved: str = ""
    saved_null: str = ""
    is_own_text: bool = False

    @property
    def header(self) -> str:
        """Its title with the unit, as ``Mass (Da)``."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def is_number(self) -> bool:
        """Whether it is aligned to the right."""
        return self.kind not in ("text", "texts", "numbers", "truth", "heat")

    @property
    def has_own_unit(self) -> bool:
        """Whether the header tells another unit than the file's."""
        return self.kind in ("percent", "minutes")

    @property
    def saved_name(self) -> str:
        """Its header in a saved table: its name in the file, with the unit where that is another than the file's."""
        return f"{self.name}_{self.kind}" if self.has_own_unit else self.name

    @property
    def type_name(self) -> str:
        """Arrow's type in the file, by its name."""
        return self.type or _TYPES.get(self.kind, "double")

    def in_unit(self, value: Any) -> Any:
        """A value of the file in the unit that the header tells."""
        if self.kind == "percent":
            return value * _PERCENT
        return value / _SECONDS if self.kind == "minutes" else value


def arrow_type(name: str) -> pa.DataType:
    """An Arrow type by its name, as `Column.type` has it.

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
    """A condition between columns of a row, without which a table is not believed.

    Attributes
    ----------
    columns : that it needs; it is asked where all of them are read. says : what a table does that breaks it, as a sentence's end.
    is_kept : takes the columns as Arrow arrays; whether all rows keep it.
    """

    columns: tuple[str, ...]
    says: str
    is_kept: Callable[..., bool]


@dataclass(frozen=True)
class Table:
    """A table that every run of a search has.

    Attributes
    ----------
    name : of the result in the project. title : what its rows are, as ``Proteins``.
    columns : those that are shown, in the order in which they are.
    links : what the file holds besides, for the views that connect tables.
    stored : all columns of the file, in its order; `columns` alone where it is empty.
    saved : names of those of the table as a file of separated values, in order.
    rules : what holds between columns. more : a regular expression for the names of further columns, all of them numbers.
    takes_marks : whether people may put a star and a comment on its rows.
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
    def of(
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
        """A table by all of its columns, and the names of those that are shown, linked and saved, with blanks between."""
        by_name = {one.name: one for one in stored}
        columns = tuple(by_name[one] for one in shown.split())
        return cls(name, title, columns, tuple(links.split()), stored, tuple(saved.split()), rules, more, takes_marks)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """All columns of the file, by their names."""
        return {one.name: one for one in self.stored or self.columns}

    def chosen(self, names: Iterable[str]) -> tuple[Column, ...]:
        """Columns of these names, in their order."""
        return tuple(self.by_name[name] for name in names)

    @property
    def saved_columns(self) -> tuple[Column, ...]:
        """Those of the table as a file of separated values, in order."""
        return self.chosen(self.saved)

    def schema(self, names: Iterable[str] | None = None) -> pa.Schema:
        """Names and types of all columns of the file, or of some, in its order."""
        wanted = None if names is None else set(names)
        return pa.schema([(name, arrow_type(one.type_name)) for name, one in self.by_name.items() if wanted is None or name in wanted])

    def arrow(self, columns: dict[str, Any], *, without: Collection[str] = ()) -> pa.Table:
        """An Arrow table of all columns, which are given by their names, each as an array of its type or as what becomes one.

        Parameters
        ----------
        without : names of optional columns that this run does not have.

        Raises
        ------
        KeyError : one that is described is not given, or one that is given is not described.
        """
        names = [name for name, one in self.by_name.items() if not (name in without and one.is_optional)]
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
    Column("starred", STAR, "A star that somebody gave it: Ctrl+D gives and takes it", width=2, is_own_text=True),
    Column("comment", "Comment", "What somebody wrote of it", width=24),
)
"""What tables show besides whose rows people may mark; their files never change."""

"""Conditions on the rows of result tables as data, and the one place that writes them as SQL.

>>> where_clause([Is("q_value", "<=", 0.01), Not(IsMissing("charge"))])
(' WHERE ("q_value" <= ?) AND (NOT ("charge" IS NULL))', [0.01])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.queries import identifier

__all__ = [
    "AllOf",
    "Among",
    "AnyOf",
    "Condition",
    "Contains",
    "Equal",
    "HasAny",
    "Is",
    "IsEmpty",
    "IsFinite",
    "IsMissing",
    "MatchesPattern",
    "NoneFinite",
    "Not",
    "RoundsTo",
    "Selected",
    "Sign",
    "accepted_at",
    "contains_in",
    "text_in_columns",
    "where_clause",
]

Sign = Literal["=", "<=", ">=", "<", ">"]


@dataclass(frozen=True)
class Is:
    """A column's value compared with a given one of its type. What is missing fulfils none; not-a-number is the largest number."""

    column: str
    sign: Sign
    value: str | float | bool


@dataclass(frozen=True)
class Equal:
    """Two columns hold the same value."""

    column: str
    other: str


@dataclass(frozen=True)
class IsMissing:
    """A column has no value."""

    column: str


@dataclass(frozen=True)
class IsFinite:
    """A column of numbers has one that is finite."""

    column: str


@dataclass(frozen=True)
class NoneFinite:
    """A column of a table of the run has no finite number in any row."""

    table: str
    column: str


@dataclass(frozen=True)
class IsEmpty:
    """A column of lists has one without items."""

    column: str


@dataclass(frozen=True)
class Contains:
    """A column's text contains another, whatever the case; a tab counts as a blank, as which it is shown.

    Attributes
    ----------
    is_list : whether the column holds lists of texts, which are looked through as they are shown, with ``"; "`` between.
    is_capital : whether the column is known to hold capital letters without tabs, as sequences do, so that `text` alone is changed.
    """

    column: str
    text: str
    is_list: bool = False
    is_capital: bool = False


@dataclass(frozen=True)
class MatchesPattern:
    """Part of a column's text matches a regular expression (RE2)."""

    column: str
    pattern: str


@dataclass(frozen=True)
class RoundsTo:
    """A column's number times `factor`, rounded half to even, is `value`."""

    column: str
    factor: float
    value: float


@dataclass(frozen=True)
class Selected:
    """What a column of another table of the run holds in those of its rows that satisfy all conditions."""

    table: str
    column: str
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Among:
    """A column's value occurs in a column of another table."""

    column: str
    selected: Selected


@dataclass(frozen=True)
class HasAny:
    """A column of lists has an item that is one of some values, or that occurs in a column of lists of another table."""

    column: str
    values: tuple[str, ...] | Selected


@dataclass(frozen=True)
class Not:
    """The opposite holds. Of a value that is missing, neither does."""

    condition: Condition


@dataclass(frozen=True)
class AllOf:
    """All conditions hold; also where there are none."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    """One of the conditions holds; never where there are none."""

    conditions: tuple[Condition, ...]


Condition = (
    Is | Equal | IsMissing | IsFinite | NoneFinite | IsEmpty | Contains | MatchesPattern | RoundsTo | Among | HasAny | Not | AllOf | AnyOf
)


def accepted_at(q_value: float, table: str) -> Condition:
    """Return the condition of rows of a table that are accepted at a q-value.

    A row without a q-value is not accepted. Where the whole table has none, as without decoys, all rows fulfil the condition.
    """
    return AnyOf((Is("q_value", "<=", q_value), NoneFinite(table, "q_value")))


def contains_in(columns: Iterable[str], text: str) -> list[Condition]:
    """Rows with a text in one of some columns of texts; no condition where there is nothing but blanks to look for.

    >>> contains_in(["query", "target"], "  ")
    []
    """
    wanted = text.strip()
    return [AnyOf(tuple(Contains(column, wanted) for column in columns))] if wanted else []


def text_in_columns(columns: Sequence[Column], text: str) -> list[Condition]:
    """Rows with a text in one of the described columns that hold texts, or lists of them; none where there are no such columns."""
    wanted = text.strip()
    looked_in = [Contains(column.name, wanted, is_list=column.kind == "texts") for column in columns if column.kind in ("text", "texts")]
    return [AnyOf(tuple(looked_in))] if wanted and looked_in else []


def where_clause(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """SQL that asks for all conditions, with a ``?`` for each of the parameters; empty where there are no conditions."""
    listed = list(conditions)
    if not listed:
        return "", []
    parts = [_sql(one) for one in listed]
    return " WHERE " + " AND ".join(f"({sql})" for sql, _ in parts), [value for _, values in parts for value in values]


def _sql(condition: Condition) -> tuple[str, list[Any]]:
    """A condition as SQL, and its parameters."""
    match condition:
        case Not(inner):
            sql, values = _sql(inner)
            return f"NOT ({sql})", values
        case AllOf(parts):
            return _joined(parts, " AND ", "true")
        case AnyOf(parts):
            return _joined(parts, " OR ", "false")
        case Contains():
            return _contains(condition)
        case Equal(column, other):
            return f"{identifier(column)} = {identifier(other)}", []
        case Among(column, selected):
            sql, values = _rows_of(selected)
            return f"{identifier(column)} IN (SELECT {identifier(selected.column)}{sql})", values
        case HasAny():
            return _has_any(condition)
        case Is(column, sign, value):
            return f"{identifier(column)} {sign} ?", [value]
        case RoundsTo(column, factor, value):
            return f"round_even({identifier(column)} * ?, 0) = ?", [factor, value]
        case MatchesPattern(column, pattern):
            return f"regexp_matches({identifier(column)}, ?)", [pattern]
        case IsMissing(column):
            return f"{identifier(column)} IS NULL", []
        case IsFinite(column):
            return f"isfinite({identifier(column)})", []
        case NoneFinite(table, column):
            return f"NOT EXISTS (SELECT 1 FROM {identifier(table)} WHERE isfinite({identifier(column)}))", []
        case IsEmpty(column):
            return f"len({identifier(column)}) = 0", []


def _has_any(condition: HasAny) -> tuple[str, list[Any]]:
    column, wanted = identifier(condition.column), condition.values
    if not isinstance(wanted, Selected):
        if len(wanted) == 1:
            # Twice as fast as asking for any of several.
            return f"list_contains({column}, ?)", [wanted[0]]
        return f"list_has_any({column}, ?)", [list(wanted)]
    sql, values = _rows_of(wanted)
    return f"list_has_any({column}, (SELECT coalesce(flatten(list({identifier(wanted.column)})), []){sql}))", values


def _joined(parts: Sequence[Condition], between: str, none: str) -> tuple[str, list[Any]]:
    written = [_sql(part) for part in parts]
    return between.join(f"({sql})" for sql, _ in written) or none, [value for _, values in written for value in values]


def _rows_of(selected: Selected) -> tuple[str, list[Any]]:
    where, values = where_clause(selected.conditions)
    return f" FROM {identifier(selected.table)}{where}", values


def _contains(condition: Contains) -> tuple[str, list[Any]]:
    column = identifier(condition.column)
    if condition.is_capital:
        return f"contains({column}, ?)", [condition.text.upper()]
    text = f"lower(array_to_string({column}, '; '))" if condition.is_list else f"lower({column})"
    wanted = condition.text.lower().replace("\t", " ")
    # A tab matters to a text with a blank alone; without it, a million rows are looked through in a fraction of the time.
    looked_in = f"replace({text}, chr(9), ' ')" if " " in wanted else text
    return f"contains({looked_in}, ?)", [wanted]

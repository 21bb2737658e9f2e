"""Conditions on the rows of result tables, as SQL and its parameters: the one place that writes it.

>>> where_clause([compares("q_value", "<=", 0.01), negated(is_missing("charge"))])
(' WHERE ("q_value" <= ?) AND (NOT ("charge" IS NULL))', [0.01])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.queries import identifier

__all__ = [
    "Condition",
    "Selected",
    "Sign",
    "accepted_at",
    "all_of",
    "among",
    "any_of",
    "compares",
    "contains",
    "contains_in",
    "equals",
    "given",
    "has_any",
    "is_empty",
    "is_finite",
    "is_missing",
    "matches_pattern",
    "negated",
    "none_finite",
    "rounds_to",
    "text_in_columns",
    "where_clause",
]

Sign = Literal["=", "<=", ">=", "<", ">"]


class Condition(NamedTuple):
    """What a row satisfies, as SQL with a question mark for each of its values."""

    sql: str
    values: tuple[Any, ...] = ()


class Selected(NamedTuple):
    """What a column of another table of the run holds in those of its rows that satisfy all conditions."""

    table: str
    column: str
    conditions: Sequence[Condition] = ()


def compares(column: str, sign: Sign, value: str | float | bool) -> Condition:
    """A column's value compared with a given one of its type. What is missing fulfils none; not-a-number is the largest number."""
    return Condition(f"{identifier(column)} {sign} ?", (value,))


def given(*bounds: tuple[str, Sign, str | float | bool | None]) -> list[Condition]:
    """Comparisons of columns with those values that are given, as in the fields of a filter; None gives no condition."""
    return [compares(column, sign, value) for column, sign, value in bounds if value is not None]


def equals(column: str, other: str) -> Condition:
    """Two columns hold the same value."""
    return Condition(f"{identifier(column)} = {identifier(other)}")


def is_missing(column: str) -> Condition:
    """A column has no value."""
    return Condition(f"{identifier(column)} IS NULL")


def is_finite(column: str) -> Condition:
    """A column of numbers has one that is finite."""
    return Condition(f"isfinite({identifier(column)})")


def none_finite(table: str, column: str) -> Condition:
    """A column of a table of the run has no finite number in any row."""
    return Condition(f"NOT EXISTS (SELECT 1 FROM {identifier(table)} WHERE isfinite({identifier(column)}))")


def is_empty(column: str) -> Condition:
    """A column of lists has one without items."""
    return Condition(f"len({identifier(column)}) = 0")


def contains(column: str, text: str, *, is_list: bool = False, is_capital: bool = False) -> Condition:
    """A column's text contains another, whatever the case; a tab counts as a blank, as which it is shown.

    Parameters
    ----------
    is_list : whether the column holds lists of texts, which are looked through as they are shown, with ``"; "`` between.
    is_capital : whether the column is known to hold capital letters without tabs, as sequences do, so that `text` alone is changed.
    """
    name = identifier(column)
    if is_capital:
        return Condition(f"contains({name}, ?)", (text.upper(),))
    lowered = f"lower(array_to_string({name}, '; '))" if is_list else f"lower({name})"
    wanted = text.lower().replace("\t", " ")
    # A tab matters to a text with a blank alone; without it, a million rows are looked through in a fraction of the time.
    looked_in = f"replace({lowered}, chr(9), ' ')" if " " in wanted else lowered
    return Condition(f"contains({looked_in}, ?)", (wanted,))


def matches_pattern(column: str, pattern: str) -> Condition:
    """Part of a column's text matches a regular expression (RE2)."""
    return Condition(f"regexp_matches({identifier(column)}, ?)", (pattern,))


def rounds_to(column: str, factor: float, value: float) -> Condition:
    """A column's number times `factor`, rounded half to even, is `value`."""
    return Condition(f"round_even({identifier(column)} * ?, 0) = ?", (factor, value))


def among(column: str, selected: Selected) -> Condition:
    """A column's value occurs in a column of another table."""
    where, values = where_clause(selected.conditions)
    found = f"SELECT {identifier(selected.column)} FROM {identifier(selected.table)}{where}"
    return Condition(f"{identifier(column)} IN ({found})", tuple(values))


def has_any(column: str, wanted: Sequence[str] | Selected) -> Condition:
    """A column of lists has an item that is one of some values, or that occurs in a column of lists of another table."""
    name = identifier(column)
    if isinstance(wanted, Selected):
        where, values = where_clause(wanted.conditions)
        found = f"SELECT coalesce(flatten(list({identifier(wanted.column)})), []) FROM {identifier(wanted.table)}{where}"
        return Condition(f"list_has_any({name}, ({found}))", tuple(values))
    if len(wanted) == 1:
        # Twice as fast as asking for any of several.
        return Condition(f"list_contains({name}, ?)", (wanted[0],))
    return Condition(f"list_has_any({name}, ?)", (list(wanted),))


def negated(condition: Condition) -> Condition:
    """The opposite holds. Of a value that is missing, neither does."""
    return Condition(f"NOT ({condition.sql})", condition.values)


def all_of(conditions: Iterable[Condition]) -> Condition:
    """All conditions hold; also where there are none."""
    return _joined(conditions, " AND ", "true")


def any_of(conditions: Iterable[Condition]) -> Condition:
    """One of the conditions holds; never where there are none."""
    return _joined(conditions, " OR ", "false")


def _joined(conditions: Iterable[Condition], between: str, none: str) -> Condition:
    joined = list(conditions)
    return Condition(between.join(f"({one.sql})" for one in joined) or none, tuple(value for one in joined for value in one.values))


def accepted_at(q_value: float, table: str) -> Condition:
    """Return the condition of rows of a table that are accepted at a q-value.

    A row without a q-value is not accepted. Where the whole table has none, as without decoys, all rows fulfil the condition.
    """
    return any_of((compares("q_value", "<=", q_value), none_finite(table, "q_value")))


def contains_in(columns: Iterable[str], text: str) -> list[Condition]:
    """Rows with a text in one of some columns of texts; no condition where there is nothing but blanks to look for.

    >>> contains_in(["query", "target"], "  ")
    []
    """
    wanted = text.strip()
    return [any_of(tuple(contains(column, wanted) for column in columns))] if wanted else []


def text_in_columns(columns: Sequence[Column], text: str) -> list[Condition]:
    """Rows with a text in one of the described columns that hold texts, or lists of them; none where there are no such columns."""
    wanted = text.strip()
    looked_in = [contains(column.name, wanted, is_list=column.kind == "texts") for column in columns if column.kind in ("text", "texts")]
    return [any_of(tuple(looked_in))] if wanted and looked_in else []


def where_clause(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """SQL that asks for all conditions, with a ``?`` for each of the parameters; empty where there are no conditions."""
    joined = list(conditions)
    sql, values = all_of(joined)
    return f" WHERE {sql}" if joined else "", list(values)

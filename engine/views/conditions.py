"""SQL conditions on the rows of result tables, with values as query parameters; no other module writes SQL conditions.

>>> where_clause([compares("q_value", "<=", 0.01), negated(is_missing("charge"))])
(' WHERE ("q_value" <= ?) AND (NOT ("charge" IS NULL))', [0.01])
"""

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
    """SQL condition on a row, with a question mark for each value."""

    sql: str
    values: tuple[Any, ...] = ()


class Selected(NamedTuple):
    """Subquery for `among` and `has_any`: the values of a column of another table, in those rows that satisfy all `conditions`."""

    table: str
    column: str
    conditions: Sequence[Condition] = ()


def compares(column: str, sign: Sign, value: str | float | bool) -> Condition:
    """Require, for example, that a column is less than `value` (`sign` ``<``); nulls never match, and NaN is larger than any number."""
    return Condition(f"{identifier(column)} {sign} ?", (value,))


def given(*bounds: tuple[str, Sign, str | float | bool | None]) -> list[Condition]:
    """Return a condition for each (column, operator, value) of a filter whose value is not None."""
    return [compares(column, sign, value) for column, sign, value in bounds if value is not None]


def equals(column: str, other: str) -> Condition:
    """Require that two columns hold the same value."""
    return Condition(f"{identifier(column)} = {identifier(other)}")


def is_missing(column: str) -> Condition:
    """Require a missing value."""
    return Condition(f"{identifier(column)} IS NULL")


def is_finite(column: str) -> Condition:
    """Require a finite number."""
    return Condition(f"isfinite({identifier(column)})")


def none_finite(table: str, column: str) -> Condition:
    """Require that a column of a table has no finite number in any row."""
    return Condition(f"NOT EXISTS (SELECT 1 FROM {identifier(table)} WHERE isfinite({identifier(column)}))")


def is_empty(column: str) -> Condition:
    """Require an empty list."""
    return Condition(f"len({identifier(column)}) = 0")


def contains(column: str, text: str, *, is_list: bool = False, is_capital: bool = False) -> Condition:
    """Require that the text of a column contains `text`, ignoring case; tabs count as spaces.

    Parameters
    ----------
    is_list
        True if the column holds lists of texts; these are searched as displayed, joined with ``"; "``.
    is_capital
        True if the column holds only capitals and no tabs, such as sequences; then only `text` is converted, which is faster.
    """
    name = identifier(column)
    if is_capital:
        return Condition(f"contains({name}, ?)", (text.upper(),))
    lowered = f"lower(array_to_string({name}, '; '))" if is_list else f"lower({name})"
    wanted = text.lower().replace("\t", " ")
    # Tabs need replacing only if `text` has a space; omitting it makes the search of a million rows several times faster.
    searched = f"replace({lowered}, chr(9), ' ')" if " " in wanted else lowered
    return Condition(f"contains({searched}, ?)", (wanted,))


def matches_pattern(column: str, pattern: str) -> Condition:
    """Require that part of a column's text matches a regular expression (RE2 syntax)."""
    return Condition(f"regexp_matches({identifier(column)}, ?)", (pattern,))


def rounds_to(column: str, factor: float, value: float) -> Condition:
    """Require that the column times `factor`, rounded half to even, equals `value`."""
    return Condition(f"round_even({identifier(column)} * ?, 0) = ?", (factor, value))


def among(column: str, selected: Selected) -> Condition:
    """Require that the value of a column is among the selected values of another table."""
    where, values = where_clause(selected.conditions)
    result = f"SELECT {identifier(selected.column)} FROM {identifier(selected.table)}{where}"
    return Condition(f"{identifier(column)} IN ({result})", tuple(values))


def has_any(column: str, wanted: Sequence[str] | Selected) -> Condition:
    """Require that the list in a column contains at least one of the wanted values.

    If `wanted` is a `Selected`, the wanted values are all items of the lists in a column of another table.
    """
    name = identifier(column)
    if isinstance(wanted, Selected):
        where, values = where_clause(wanted.conditions)
        result = f"SELECT coalesce(flatten(list({identifier(wanted.column)})), []) FROM {identifier(wanted.table)}{where}"
        return Condition(f"list_has_any({name}, ({result}))", tuple(values))
    if len(wanted) == 1:
        # For one value, twice as fast as `list_has_any`.
        return Condition(f"list_contains({name}, ?)", (wanted[0],))
    return Condition(f"list_has_any({name}, ?)", (list(wanted),))


def negated(condition: Condition) -> Condition:
    """Negate a condition; rows with null satisfy neither the condition nor its negation."""
    return Condition(f"NOT ({condition.sql})", condition.values)


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Require all conditions; always true if there are none."""
    return _joined(conditions, " AND ", "true")


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Require at least one of the conditions; always false if there are none."""
    return _joined(conditions, " OR ", "false")


def _joined(conditions: Iterable[Condition], between: str, none: str) -> Condition:
    joined = list(conditions)
    return Condition(
        between.join(f"({condition.sql})" for condition in joined) or none,
        tuple(value for condition in joined for value in condition.values),
    )


def accepted_at(q_value: float, table: str) -> Condition:
    """Require that a row of a table is accepted at a q-value threshold.

    A row without a q-value is not accepted, unless the whole table has no q-values (no decoys): then all rows are accepted.
    """
    return any_of((compares("q_value", "<=", q_value), none_finite(table, "q_value")))


def contains_in(columns: Iterable[str], text: str) -> list[Condition]:
    """Require that any of the given columns contains a text; a blank text gives no condition.

    >>> contains_in(["query", "target"], "  ")
    []
    """
    wanted = text.strip()
    return [any_of(tuple(contains(column, wanted) for column in columns))] if wanted else []


def text_in_columns(columns: Sequence[Column], text: str) -> list[Condition]:
    """Require that any column of kind ``text`` or ``texts`` contains a text.

    Returns no condition if the text is blank or no column is of these kinds.
    """
    wanted = text.strip()
    searched = [contains(column.name, wanted, is_list=column.kind == "texts") for column in columns if column.kind in ("text", "texts")]
    return [any_of(tuple(searched))] if wanted and searched else []


def where_clause(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """Return the WHERE clause that requires all conditions, and its parameters; both empty without conditions."""
    joined = list(conditions)
    sql, values = all_of(joined)
    return f" WHERE {sql}" if joined else "", list(values)

"""How the values of a table's columns read.

Wherever a user meets a value it is the same number in the same unit: in the cell, its tooltip, the clipboard, a saved table, the filter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import QLocale

from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.separated import joined_texts

__all__ = ["full_text", "saved_text", "shown_text"]

_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def shown_text(column: Column, value: Any, locale: QLocale) -> str:
    """A value as a cell shows it, in the user's language; what is missing or not a number is empty."""
    if _is_missing(value):
        return ""
    value = column.in_unit(value)
    match column.kind:
        case "texts":
            return _in_line("; ".join(map(str, value)))
        case "numbers":
            return _numbers(column, value)
        case "heat":
            return "; ".join("–" if one is None else locale.toString(float(one), "f", column.decimals) for one in value)
        case "identifier":
            return str(value)
        case "integer":
            return locale.toString(int(value))
        case "number":
            return locale.toString(float(value), "f", column.decimals)
        case "probability":
            return _probability(float(value), locale)
        case "e_value":
            return _e_value(float(value), locale)
        case "percent":
            return locale.toString(float(value), "f", 1)
        case "minutes":
            return locale.toString(float(value), "f", column.decimals)
        case "truth":
            return "yes" if value else "no"
        case _:
            return _in_line(str(value))


def _numbers(column: Column, values: Iterable[float]) -> str:
    """Numbers with commas between, whatever the language has for a point: they are for programs."""
    return ",".join(f"{value:.{column.decimals}f}" for value in values)


def _probability(value: float, locale: QLocale) -> str:
    if value == 0:
        return "0"
    return locale.toString(value, "e", 1) if value < 0.0005 else locale.toString(value, "f", 4)


def _e_value(value: float, locale: QLocale) -> str:
    """Two digits, as biologists write them; what is smaller than any number of the machine is nought."""
    if value == 0:
        return "0"
    return locale.toString(value, "e", 1) if value < 0.001 or value >= 10_000 else locale.toString(value, "g", 2 if value < 100 else 4)


def full_text(column: Column, value: Any, locale: QLocale) -> str:
    """What a cell shows, for a tooltip or a spreadsheet of the user's language: all digits, no separators of thousands."""
    if _is_missing(value):
        return ""
    if column.kind in ("text", "texts", "numbers", "truth", "heat"):
        return shown_text(column, value, locale)
    return _digits(column, value).replace(".", locale.decimalPoint())


def saved_text(column: Column, value: Any) -> str:
    """What a cell shows, for another program: a point for decimals, all digits, lists by semicolons, neither tabs nor line breaks."""
    if _is_missing(value):
        return ""
    if column.kind == "texts":
        return _in_line(joined_texts(map(str, value)))
    if column.kind == "numbers":
        return _numbers(column, value)
    if column.kind == "heat":
        return ";".join("" if one is None else f"{one:.15g}" for one in value)
    if column.kind == "truth":
        return "true" if value else "false"
    return _in_line(str(value)) if column.kind == "text" else _digits(column, value)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _digits(column: Column, value: float) -> str:
    """As many digits as tell a number from all others, so that what is copied finds its row again; 15 of one calculated for its unit."""
    if isinstance(value, int):
        return str(column.in_unit(value))
    text = f"{column.in_unit(value):.15g}"
    return text if column.has_own_unit or float(text) == value else repr(value)


def _in_line(text: str) -> str:
    """A text that stays in its cell: where it breaks lines or columns stands a blank."""
    return _BREAKS.sub(" ", text)

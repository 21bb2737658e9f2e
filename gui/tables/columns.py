"""Formatting of column values as text.

Cells, tooltips, the clipboard, saved tables and filters all use the unit of the column; they differ in digits and separators.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import QLocale

from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.separated import joined_texts

_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def shown_text(column: Column, value: Any, locale: QLocale) -> str:
    """Return the text of a value in a table cell, in the user's locale; '' for missing values and NaN."""
    if _is_missing(value):
        return ""
    value = column.in_unit(value)
    match column.kind:
        case "texts":
            return _in_line("; ".join(map(str, value)))
        case "numbers":
            return _numbers(column, value)
        case "heat":
            return "; ".join("–" if number is None else locale.toString(float(number), "f", column.decimals) for number in value)
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
    """Return numbers separated by commas, with decimal points in every locale, so that programs can read them."""
    return ",".join(f"{value:.{column.decimals}f}" for value in values)


def _probability(value: float, locale: QLocale) -> str:
    if value == 0:
        return "0"
    return locale.toString(value, "e", 1) if value < 0.0005 else locale.toString(value, "f", 4)


def _e_value(value: float, locale: QLocale) -> str:
    """Return an E-value with about two digits; values too small for a double are stored and shown as 0."""
    if value == 0:
        return "0"
    return locale.toString(value, "e", 1) if value < 0.001 or value >= 10_000 else locale.toString(value, "g", 2 if value < 100 else 4)


def full_text(column: Column, value: Any, locale: QLocale) -> str:
    """Return the text of a value for tooltips and spreadsheets: the user's decimal separator, all digits, no thousands separators."""
    if _is_missing(value):
        return ""
    if column.kind in ("text", "texts", "numbers", "truth", "heat"):
        return shown_text(column, value, locale)
    return _digits(column, value).replace(".", locale.decimalPoint())


def saved_text(column: Column, value: Any) -> str:
    """Return the text of a value in files for other programs: decimal point, all digits, lists separated by semicolons, one line."""
    if _is_missing(value):
        return ""
    if column.kind == "texts":
        return _in_line(joined_texts(map(str, value)))
    if column.kind == "numbers":
        return _numbers(column, value)
    if column.kind == "heat":
        return ";".join("" if number is None else f"{number:.15g}" for number in value)
    if column.kind == "truth":
        return "true" if value else "false"
    return _in_line(str(value)) if column.kind == "text" else _digits(column, value)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _digits(column: Column, value: float) -> str:
    """Return a number with all digits (15 after a unit conversion), so that a filter with the copied text finds the row of the number."""
    if isinstance(value, int):
        return str(column.in_unit(value))
    text = f"{column.in_unit(value):.15g}"
    return text if column.has_own_unit or float(text) == value else repr(value)


def _in_line(text: str) -> str:
    """Return a text with spaces in place of tabs and line breaks."""
    return _BREAKS.sub(" ", text)

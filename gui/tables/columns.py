"""Columns of a table: their titles, and how their values read.

Wherever a user meets a value it is the same number in the same unit: in the cell, its tooltip, the clipboard, a saved table, the filter.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import QLocale

__all__ = ["Column", "Kind", "full_text", "saved_text", "shown_text"]

Kind = Literal["text", "texts", "identifier", "integer", "number", "probability", "e_value", "percent", "minutes", "truth"]

_PERCENT, _SECONDS = 100, 60
_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class Column:
    """A column as users see it.

    Attributes
    ----------
    name : of the column in the file.
    title, help : its header and the header's tooltip.
    kind : how values read: ``identifier`` is a whole number without separators, ``probability`` a q-value or the like,
        ``e_value`` an E-value, ``percent`` is stored as a part of one, ``minutes`` are stored in seconds, ``texts`` is a list.
    width : in characters.
    decimals : of a number.
    is_shown : whether it is shown before the user has chosen.
    """

    name: str
    title: str
    help: str
    kind: Kind = "text"
    width: int = 12
    decimals: int = 2
    is_shown: bool = True

    @property
    def is_number(self) -> bool:
        """Whether it is aligned to the right."""
        return self.kind not in ("text", "texts", "truth")

    @property
    def has_own_unit(self) -> bool:
        """Whether the header tells another unit than the file's."""
        return self.kind in ("percent", "minutes")

    @property
    def saved_name(self) -> str:
        """Its header in a saved table: its name in the file, with the unit where that is another than the file's."""
        return f"{self.name}_{self.kind}" if self.has_own_unit else self.name

    def in_unit(self, value: Any) -> Any:
        """A value of the file in the unit that the header tells."""
        if self.kind == "percent":
            return value * _PERCENT
        return value / _SECONDS if self.kind == "minutes" else value


def shown_text(column: Column, value: Any, locale: QLocale) -> str:
    """A value as a cell shows it, in the user's language; what is missing or not a number is empty."""
    if _is_missing(value):
        return ""
    value = column.in_unit(value)
    match column.kind:
        case "texts":
            return _in_line("; ".join(map(str, value)))
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
    if column.kind in ("text", "texts", "truth"):
        return shown_text(column, value, locale)
    return _digits(column, value).replace(".", locale.decimalPoint())


def saved_text(column: Column, value: Any) -> str:
    """What a cell shows, for another program: a point for decimals, all digits, lists by semicolons, neither tabs nor line breaks."""
    if _is_missing(value):
        return ""
    if column.kind == "texts":
        return _in_line(";".join(map(str, value)))
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

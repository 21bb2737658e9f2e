"""Columns of a table: their titles, and how their values read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import QLocale

__all__ = ["Column", "Kind", "full_text", "machine_text", "shown_text"]

Kind = Literal["text", "texts", "identifier", "integer", "number", "probability", "e_value", "fraction", "minutes", "truth"]


@dataclass(frozen=True)
class Column:
    """A column as users see it.

    Attributes
    ----------
    name : of the column in the file.
    title, help : its header and the header's tooltip.
    kind : how values read: ``identifier`` is a whole number without separators, ``probability`` a q-value or the like,
        ``e_value`` an E-value, ``fraction`` is shown in percent, ``minutes`` are stored in seconds, ``texts`` is a list.
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


def shown_text(column: Column, value: Any, locale: QLocale) -> str:
    """A value as a cell shows it, in the user's language; what is missing or not a number is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    match column.kind:
        case "texts":
            return "; ".join(map(str, value))
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
        case "fraction":
            return f"{locale.toString(float(value) * 100, 'f', 1)} %"
        case "minutes":
            return locale.toString(float(value) / 60, "f", column.decimals)
        case "truth":
            return "yes" if value else "no"
        case _:
            return str(value)


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
    """A value for a tooltip or a spreadsheet of the user's language: all digits, no separators of thousands."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if column.kind == "texts":
        return ";".join(map(str, value))
    if isinstance(value, float):
        return machine_text(value).replace(".", locale.decimalPoint())
    return machine_text(value)


def machine_text(value: Any) -> str:
    """A value for another program: a point for decimals, all digits, lists by semicolons, neither tabs nor line breaks."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list):
        return ";".join(map(machine_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)

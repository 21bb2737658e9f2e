"""Cells that a spreadsheet would obey."""

from __future__ import annotations

import re

__all__ = ["FORMULA", "no_formula"]

FORMULA = "[ \t]*[=+@＝＋－＠-]"
"""What a cell begins with that a spreadsheet takes for a formula, and may obey."""


def no_formula(text: str) -> str:
    """A text for a cell with an apostrophe before what would be a formula, by which a spreadsheet knows that it is none."""
    return f"'{text}" if re.match(FORMULA, text) else text

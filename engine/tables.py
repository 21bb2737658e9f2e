"""Result tables, described once: what the window shows of them, and what is written when they are saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Column", "Kind", "Table"]

Kind = Literal["text", "texts", "identifier", "integer", "number", "probability", "e_value", "percent", "minutes", "truth"]

_PERCENT, _SECONDS = 100, 60


@dataclass(frozen=True)
class Column:
    """A column as users see it.

    Attributes
    ----------
    name : of the column in the file.
    title, unit : its header, without and with. meaning : what it holds, in a sentence.
    kind : how values read: ``identifier`` is a whole number without separators, ``probability`` a q-value or the like,
        ``e_value`` an E-value, ``percent`` is stored as a part of one, ``minutes`` are stored in seconds, ``texts`` is a list.
    width : in characters.
    decimals : of a number.
    is_shown : whether it is shown before the user has chosen.
    """

    name: str
    title: str
    meaning: str
    kind: Kind = "text"
    width: int = 12
    decimals: int = 2
    is_shown: bool = True
    unit: str = ""

    @property
    def header(self) -> str:
        """Its title with the unit, as ``Mass (Da)``."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

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


@dataclass(frozen=True)
class Table:
    """A table that every run of a search has.

    Attributes
    ----------
    name : of the result in the project. title : what its rows are, as ``Proteins``. columns : in the order in which they are shown.
    links : what the file holds besides, for the views that connect tables.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    links: tuple[str, ...] = ()

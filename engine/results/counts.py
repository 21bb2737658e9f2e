"""Counts of what was found, each with how certain it is: the one form that summaries, terminals and windows have for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["FEW", "WITHOUT_DECOYS", "Certainty", "Count", "counted"]

FEW = 100
"""Matches of which 1 % is less than one: a shorter list is never shown as a longer one is."""


WITHOUT_DECOYS = "There are no decoys, and so no q-values; in the tables, however false:"
"""Head of counts that nobody can tell the certainty of."""


def counted(number: int, one: str, several: str = "") -> str:
    """A number and what is counted, in the number that fits; `several` where that is more than an s behind `one`.

    >>> counted(1, "protein"), counted(2000, "protein"), counted(0, "query", "queries")
    ('1 protein', '2,000 proteins', '0 queries')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


class Certainty(NamedTuple):
    """How sure a count is: decoys that were accepted too, and the 95 % interval of the share of false ones, as parts of one.

    Where the count is so small that a rate of 1 % is less than one match, `at_5_percent` tells how many there are at 5 %.
    """

    decoys: int
    low: float
    high: float
    at_5_percent: int | None = None


class Count(NamedTuple):
    """How many of something were found, and how sure that is, where it is known. `total`: of how many, where that is worth a word."""

    number: int
    one: str
    several: str
    certainty: Certainty | None = None
    total: int | None = None

    @classmethod
    def judged(cls, number: int, one: str, several: str, known: Mapping[str, float]) -> Count:
        """A count with its certainty, as `proteoscope.engine.matches.tables.Counted.certainty` tells it."""
        looser = known.get("targets_at_5_percent")
        at_5_percent = int(looser) if looser and number < FEW else None
        certainty = Certainty(int(known["decoys"]), known["false_share_low"], known["false_share_high"], at_5_percent)
        return cls(number, one, several, certainty)

    def line(self, more: str = "") -> str:
        """A line for a terminal, with `more` behind what is counted."""
        name = f"{self.noun}{more}"
        if self.certainty is None:
            return f"  {self.number:,} {name}"
        decoys, low, high, at_5_percent = self.certainty
        text = f"  {self.number:,} {name}, with {counted(decoys, 'decoy')}: {low * 100:.1f} to {high * 100:.1f} % false (95 % interval)"
        return text if at_5_percent is None else f"{text}; few: {at_5_percent:,} at 5 %"

    @property
    def noun(self) -> str:
        """Its name in the number that fits."""
        return self.one if self.number == 1 else self.several

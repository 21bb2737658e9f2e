"""Counts of results with their uncertainty, for summaries, terminals and windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["FEW", "WITHOUT_DECOYS", "Count", "FalseShareInterval", "counted", "warning_of_nothing"]

FEW = 100
"""Number of matches below which a remark is shown, since 1 % of the matches is less than one match."""


WITHOUT_DECOYS = "There are no decoys, and so no q-values; in the tables, however false:"
"""Remark for counts whose uncertainty is unknown."""


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun; the default plural is `singular` with an s.

    >>> counted(1, "protein"), counted(2000, "protein"), counted(0, "query", "queries")
    ('1 protein', '2,000 proteins', '0 queries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


class FalseShareInterval(NamedTuple):
    """Uncertainty of a count: number of accepted decoys, and 95 % confidence interval of the fraction of false matches.

    Attributes
    ----------
    at_5_percent
        Number accepted at 5 % FDR, for counts below `FEW`; otherwise None.
    nothing_at
        False discovery rate of the run, if nothing is accepted at this rate but something at 5 %; otherwise None.

    Examples
    --------
    >>> FalseShareInterval(0, 0.0, 1.0, 103, 0.01).nothing_accepted
    '0 at 1 % FDR; 103 at 5 % FDR'
    """

    decoys: int
    low: float
    high: float
    at_5_percent: int | None = None
    nothing_at: float | None = None

    @property
    def nothing_accepted(self) -> str:
        """Numbers accepted at the run's rate and at 5 %, if nothing is accepted at the run's rate but something at 5 %; otherwise ''."""
        if self.nothing_at is None or self.at_5_percent is None:
            return ""
        return f"0 at {self.nothing_at * 100:.3g} % FDR; {self.at_5_percent:,} at 5 % FDR"

    @property
    def text(self) -> str:
        """Text with the number of decoys, the interval and, for small counts, the number accepted at 5 %."""
        if self.nothing_accepted:
            return self.nothing_accepted
        few = "" if self.at_5_percent is None else f"; few: {self.at_5_percent:,} at 5 %"
        return f"with {counted(self.decoys, 'decoy')}: {self.low * 100:.1f} to {self.high * 100:.1f} % false (95 % interval){few}"


class Count(NamedTuple):
    """Count with its nouns, its uncertainty if known, and the `total` number that contains it, if shown."""

    number: int
    singular: str
    plural: str
    certainty: FalseShareInterval | None = None
    total: int | None = None

    @classmethod
    def from_acceptance(
        cls, number: int, singular: str, plural: str, certainty: Mapping[str, float], fdr: float | None = None, total: int | None = None
    ) -> Count:
        """Return a count with its uncertainty.

        `certainty` is a result of `proteoscope.engine.matches.tables.AcceptanceCounts.certainty`; `fdr` is the false discovery rate, if
        known.
        """
        looser = certainty.get("targets_at_5_percent")
        at_5_percent = int(looser) if looser and number < FEW else None
        nothing_at = fdr if not number and at_5_percent else None
        low, high = certainty["false_share_low"], certainty["false_share_high"]
        return cls(number, singular, plural, FalseShareInterval(int(certainty["decoys"]), low, high, at_5_percent, nothing_at), total)

    def line(self, more: str = "") -> str:
        """Return a line of text with the count; `more` is inserted after the noun."""
        name = f"{self.noun}{more}"
        if self.certainty is None:
            return f"  {self.number:,} {name}"
        if self.certainty.nothing_accepted:
            return f"  {name}: {self.certainty.nothing_accepted}"
        return f"  {self.number:,} {name}, {self.certainty.text}"

    @property
    def noun(self) -> str:
        """Singular or plural noun, depending on the count."""
        return self.singular if self.number == 1 else self.plural


def warning_of_nothing(counts: Mapping[str, float], fdr: float) -> str:
    """Return a warning if a search accepts no match at its false discovery rate but some matches at 5 %; otherwise ''.

    Parameters
    ----------
    counts : mapping
        Numbers of accepted matches (see `Count.from_acceptance`), with the key ``targets``.
    fdr : float
        False discovery rate of the search.

    Examples
    --------
    >>> counts = {"targets": 0, "decoys": 0, "false_share_low": 0.0, "false_share_high": 1.0, "targets_at_5_percent": 103}
    >>> warning_of_nothing(counts, 0.01), warning_of_nothing(counts | {"targets_at_5_percent": 0}, 0.01)
    ('No match is accepted: 0 at 1 % FDR; 103 at 5 % FDR', '')
    """
    certainty = Count.from_acceptance(int(counts["targets"]), "match", "matches", counts, fdr).certainty
    numbers = "" if certainty is None else certainty.nothing_accepted
    return f"No match is accepted: {numbers}" if numbers else ""

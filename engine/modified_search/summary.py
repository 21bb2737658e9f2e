"""Summary of a search for modified peptides."""

from __future__ import annotations

from dataclasses import dataclass, field

from proteoscope.engine.matches.summary import MatchSummary
from proteoscope.engine.results.counts import counted

__all__ = ["ModifiedSearchSummary"]


@dataclass(frozen=True, kw_only=True)
class ModifiedSearchSummary(MatchSummary):
    """Summary of an open modification search.

    Attributes
    ----------
    n_plain, n_named, n_ends, n_unnamed
        PSMs without a shift, with a frequent one, with an alternative end, and with another.
    top_modifications
        (name, mass, PSMs, sites) of the most frequent.
    source_run
        Run whose unidentified spectra were searched, or None.
    """

    n_plain: int
    n_named: int
    n_ends: int
    n_unnamed: int
    top_modifications: tuple[tuple[str, float, int, str], ...] = field(default=())
    source_run: str | None = None

    def lines(self) -> list[str]:
        """Return the lines of every search of spectra, and the most frequent modifications."""
        lines = super().lines()
        shifted = f"{self.n_named:,} with a usual one, {self.n_ends:,} with another end of the peptide, {self.n_unnamed:,} with another"
        lines.append(f"  {counted(self.n_plain, 'PSM')} without a mass shift, {shifted}")
        lines += [f"  {name:<40.40} {mass:>11.4f} Da {n:>5} PSMs  {sites:.60}" for name, mass, n, sites in self.top_modifications]
        return lines

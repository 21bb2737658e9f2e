"""Summary of a structure search."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count
from proteoscope.engine.summary import Summary

__all__ = ["Best", "StructureSearchSummary"]

Best = tuple[str, str, float, float | None, float | None, float, str]
"""Query, target, TM-score normalised by the query, probability of the same fold, E-value, z-score and description; None if unknown."""


@dataclass(frozen=True, kw_only=True)
class StructureSearchSummary(Summary):
    """Counts of a structure search.

    Attributes
    ----------
    mode : str
        ``sensitive`` or ``published``.
    n_queries, n_chains, n_residues : int
        Number of queries and database chains, and of residues of these chains.
    n_hits : int
        Number of hits.
    n_aligned : int
        Number of pairs that phase 1 admitted to phase 2.
    best : tuple of Best
        Best hits.
    """

    mode: str
    n_queries: int
    n_chains: int
    n_residues: int
    n_hits: int
    n_aligned: int
    best: tuple[Best, ...]

    def counts(self) -> list[Count]:
        """Return the number of hits."""
        return [Count(self.n_hits, "hit", "hits")]

    def lines(self) -> list[str]:
        """Return lines of text on the searched data, the number of hits, and the best hits."""
        queries, chains = Count(self.n_queries, "query", "queries"), Count(self.n_chains, "chain", "chains")
        pairs = Count(self.n_queries * self.n_chains, "pair", "pairs")
        return [
            f"{queries.number:,} {queries.noun} against {chains.number:,} {chains.noun} ({self.n_residues:,} residues), {self.mode} mode",
            f"{self.n_hits:,} {self.counts()[0].noun}; {self.n_aligned:,} of {pairs.number:,} {pairs.noun} took part in phase 2",
            *map(_best_line, self.best),
        ]


def _best_line(best: Best) -> str:
    query, target, tm, fold, e_value, z, text = best
    facts = ("" if fold is None else f"same fold {100 * fold:3.0f} %  ") + ("" if e_value is None else f"E {e_value:<8.2g} ")
    return f"  {query:<20.20} {target:<20.20} TM {tm:5.3f}  {facts}z {z:6.1f}  {text:.60}"

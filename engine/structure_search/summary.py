"""What a structure search tells when it is done."""

from __future__ import annotations

from dataclasses import dataclass

from engine.summary import Count, Summary

__all__ = ["StructureSearchSummary"]


@dataclass(frozen=True, kw_only=True)
class StructureSearchSummary(Summary):
    """What a structure search did.

    `mode`: sensitive or published. `n_aligned`: pairs that phase 1 admitted to phase 2.
    `best`: (query, target, TM-score by the query's length, z-score, description) of the best hits.
    """

    mode: str
    n_queries: int
    n_chains: int
    n_residues: int
    n_hits: int
    n_aligned: int
    best: tuple[tuple[str, str, float, float, str], ...]

    def counts(self) -> list[Count]:
        """Hits."""
        return [Count(self.n_hits, "hit", "hits")]

    def lines(self) -> list[str]:
        """What was searched, how many hits there are, and the best of them."""
        queries, chains = Count(self.n_queries, "query", "queries"), Count(self.n_chains, "chain", "chains")
        pairs = Count(self.n_queries * self.n_chains, "pair", "pairs")
        return [
            f"{queries.number:,} {queries.noun} against {chains.number:,} {chains.noun} ({self.n_residues:,} residues), {self.mode} mode",
            f"{self.n_hits:,} {self.counts()[0].noun}; {self.n_aligned:,} of {pairs.number:,} {pairs.noun} took part in phase 2",
            *(f"  {query:<20.20} {target:<20.20} TM {tm:5.3f}  z {z:7.1f}  {text:.60}" for query, target, tm, z, text in self.best),
        ]

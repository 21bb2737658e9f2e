"""Summary of a read alignment."""

from __future__ import annotations

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count
from proteoscope.engine.summary import Summary

__all__ = ["ReadAlignmentSummary"]


@dataclass(frozen=True, kw_only=True)
class ReadAlignmentSummary(Summary):
    """Counts of an alignment.

    `n_aligned`: pairs that have an alignment with so few gaps. `cells`: of all layers, of the alignments that were computed whole.
    `has_places`: True if reads were mapped, so that each has one row; else each pair has a row.
    """

    n_texts: int
    n_patterns: int
    n_pairs: int
    n_aligned: int
    cells: int
    has_places: bool = False

    def counts(self) -> list[Count]:
        """Alignments."""
        singular, several = ("placed read", "placed reads") if self.has_places else ("alignment", "alignments")
        return [Count(self.n_aligned, singular, several, total=self.n_pairs)]

    def lines(self) -> list[str]:
        """Sequences that were aligned, and how much of it could be."""
        references, reads = Count(self.n_texts, "reference", "references"), Count(self.n_patterns, "read", "reads")
        pairs = Count(self.n_pairs, "pair", "pairs")
        score = self.stages.get("score", {}).get("seconds", 0.0)
        speed = f", {self.cells / score / 1e6:,.0f} million cells a second" if score > 0 else ""
        if self.has_places:
            share = f" ({self.n_aligned / self.n_patterns:.1%})" if self.n_patterns else ""
            rate = f", {self.n_patterns / score:,.0f} a second" if score > 0 else ""
            return [
                f"{reads.number:,} {reads.noun}, {references.number:,} {references.noun}{rate}",
                f"{self.n_aligned:,} of them {'has' if self.n_aligned == 1 else 'have'} a place{share}",
            ]
        return [
            f"{reads.number:,} {reads.noun}, {references.number:,} {references.noun}: {pairs.number:,} {pairs.noun}{speed}",
            f"{self.n_aligned:,} of them {'has' if self.n_aligned == 1 else 'have'} an alignment",
        ]

"""Summary and methods paragraph of a read alignment."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted, listed
from proteoscope.engine.summary import Summary

__all__ = ["ReadAlignmentSummary", "methods"]


@dataclass(frozen=True, kw_only=True)
class ReadAlignmentSummary(Summary):
    """Numbers of references, reads and alignments of a read alignment.

    Attributes
    ----------
    n_texts, n_patterns, n_pairs : int
        Number of references, of reads, and of aligned pairs or mapped reads.
    n_aligned : int
        Number of pairs that have an alignment within the maximum number of gaps.
    cells : int
        Number of computed matrix cells; each pair has one matrix for each number of gaps from 0 to the maximum.
    has_places : bool
        True if reads were mapped, so that each read has one row; otherwise each pair has a row.
    """

    n_texts: int
    n_patterns: int
    n_pairs: int
    n_aligned: int
    cells: int
    has_places: bool = False

    def counts(self) -> list[Count]:
        """Return the number of alignments as a count for display."""
        singular, several = ("mapped read", "mapped reads") if self.has_places else ("alignment", "alignments")
        return [Count(self.n_aligned, singular, several, total=self.n_pairs)]

    def lines(self) -> list[str]:
        """Return lines with the numbers of sequences and of alignments."""
        references, reads = Count(self.n_texts, "reference", "references"), Count(self.n_patterns, "read", "reads")
        pairs = Count(self.n_pairs, "pair", "pairs")
        score = self.stages.get("score", {}).get("seconds", 0.0)
        speed = f", {self.cells / score / 1e6:,.0f} million cells a second" if score > 0 else ""
        if self.has_places:
            fraction = f" ({self.n_aligned / self.n_patterns:.1%})" if self.n_patterns else ""
            rate = f", {self.n_patterns / score:,.0f} a second" if score > 0 else ""
            return [
                f"{reads.number:,} {reads.noun}, {references.number:,} {references.noun}{rate}",
                f"{self.n_aligned:,} of them {'is' if self.n_aligned == 1 else 'are'} mapped{fraction}",
            ]
        return [
            f"{reads.number:,} {reads.noun}, {references.number:,} {references.noun}: {pairs.number:,} {pairs.noun}{speed}",
            f"{self.n_aligned:,} of them {'has' if self.n_aligned == 1 else 'have'} an alignment",
        ]


_GOTOH = "Gotoh O. An improved algorithm for matching biological sequences. J Mol Biol 1982, 162:705."
_GAPSMIS = "Barton C et al. GapsMis: flexible sequence alignment with a bounded number of gaps. ACM-BCB 2013."
_PARTS = {
    "prefix": "the whole read with the beginning of the reference",
    "within": "the whole read with any part of the reference",
    "local": "the best part of the read with any part of the reference",
}


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a read alignment and its references."""
    n_texts, n_patterns, n_aligned = (facts.count(name) for name in ("texts", "patterns", "aligned"))
    size = "" if n_patterns is None else f" ({n_patterns:,})"
    against = "" if n_texts is None else f" ({counted(n_texts, 'sequence')})"
    mates = facts.names("mates")
    matrix, strands, mode = facts.text("matrix"), facts.text("strands"), facts.text("mode")
    pairs = f"by {matrix}" if matrix else f"{facts.text('match')} if equal and {facts.text('mismatch')} if not"
    has_places = facts.record.get("has_places") is True
    sentences = [
        f"The reads of {listed(facts.names('patterns'))}{size} were aligned with {listed(facts.names('texts'))}{against}, with at most "
        f"{facts.text('maximum_gaps')} gaps each ({_PARTS.get(mode, mode)}; strands: {strands}); the alignment is the best one "
        f"{'at the positions of seeds' if has_places else 'with each'}.",
        f"Mates were read from {listed(mates)}." if mates else "",
        f"Aligned pairs scored {pairs}; a gap of k bases cost {facts.text('gap_open')} + {facts.text('gap_extend')}k.",
        "The recurrence was that of the published method." if facts.text("recurrence") == "published" else "",
        "" if n_aligned is None else f"It gave {counted(n_aligned, 'alignment')}.",
    ]
    return Methods(sentences, [_GAPSMIS, _GOTOH])

"""Methods paragraph of a read alignment (see `proteoscope.engine.results.methods`)."""

from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.methods import Methods, RunFacts, listed

__all__ = ["methods"]

_GOTOH = "Gotoh O. An improved algorithm for matching biological sequences. J Mol Biol 1982, 162:705."
_GAPSMIS = "Barton C et al. GapsMis: flexible sequence alignment with a bounded number of gaps. ACM-BCB 2013."
_PARTS = {
    "prefix": "all of a read with a beginning of the reference",
    "within": "all of a read with any part of the reference",
    "local": "the best part of a read with any part of the reference",
}


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a read alignment and its references."""
    n_texts, n_patterns, n_aligned = (facts.count(name) for name in ("texts", "patterns", "aligned"))
    size = "" if n_patterns is None else f" ({n_patterns:,})"
    against = "" if n_texts is None else f" ({counted(n_texts, 'sequence')})"
    mates = facts.names("mates")
    matrix, strands, mode = facts.text("matrix"), facts.text("strands"), facts.text("mode")
    pairs = f"by {matrix}" if matrix else f"{facts.text('match')} where equal and {facts.text('mismatch')} where not"
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

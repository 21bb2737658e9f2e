"""Methods paragraph of a sequence search (see `proteoscope.engine.results.methods`)."""

from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.methods import Methods, RunFacts, listed

__all__ = ["methods"]

_SMITH_WATERMAN = "Smith TF, Waterman MS. Identification of common molecular subsequences. J Mol Biol 1981, 147:195."
_GOTOH = "Gotoh O. An improved algorithm for matching biological sequences. J Mol Biol 1982, 162:705."
_CUDASW = "Liu Y, Wirawan A, Schmidt B. CUDASW++ 3.0. BMC Bioinformatics 2013, 14:117."
_STATISTICS = "Karlin S, Altschul SF. Proc Natl Acad Sci USA 1990, 87:2264; Altschul SF et al. Nucleic Acids Res 2001, 29:351."
_CORRECTION = "Park Y et al. New finite-size correction for local alignment score distributions. BMC Res Notes 2012, 5:286."
_COMPOSITION = "Schäffer AA et al. Improving the accuracy of PSI-BLAST protein database searches. Nucleic Acids Res 2001, 29:2994."
_COMPLEXITY = "Wootton JC, Federhen S. Statistics of local complexity in amino acid sequences. Comput Chem 1993, 17:149."


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a sequence search and its references."""
    n_queries, n_subjects, n_hits = (facts.count(name) for name in ("queries", "subjects", "hits"))
    size = "" if n_queries is None else f" ({counted(n_queries, 'sequence')})"
    against = "" if n_subjects is None else f" ({counted(n_subjects, 'sequence')})"
    statistics = facts.record.get("statistics")
    source = statistics.get("source") if isinstance(statistics, dict) else None
    translated, is_adjusted = facts.text("translation"), facts.text("composition") == "True"
    sentences = [
        f"The queries of {listed(facts.names('queries'))}{size} were aligned with every sequence of "
        f"{listed(facts.names('database'))}{against} by the Smith-Waterman algorithm with affine gaps; none was left out.",
        f"Pairs of residues were scored by {facts.text('matrix')}; a gap of k residues cost "
        f"{facts.text('gap_open')} + {facts.text('gap_extend')}k.",
        "" if translated in ("", "none") else f"Nucleotides were translated ({translated}, genetic code {facts.text('genetic_code')}).",
        f"E-values follow the extreme-value distribution with a finite-size correction{f'; its constants: {source}' if source else ''}.",
        "Scores were adjusted for the composition of both sequences, with segments of low complexity masked, for E-values and bit scores."
        if is_adjusted
        else "",
        f"Hits with E-values up to {facts.text('maximum_e_value')} were reported, at most {facts.text('hits_per_query')} for a query"
        + ("." if n_hits is None else f": {counted(n_hits, 'hit')}."),
    ]
    composition = [_COMPOSITION, _COMPLEXITY] if is_adjusted else []
    return Methods(sentences, [_SMITH_WATERMAN, _GOTOH, _CUDASW, _STATISTICS, _CORRECTION, *composition])

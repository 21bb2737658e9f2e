"""Summary and methods paragraph of a sequence search."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted, listed
from proteoscope.engine.summary import Summary

__all__ = ["DeviceShare", "SequenceSearchSummary", "hit_counts", "methods"]


@dataclass(frozen=True)
class DeviceShare:
    """Contribution of a device to a search.

    Attributes
    ----------
    device : str
        Name of the device.
    share : float
        Fraction of the matrix cells that the device computed, from 0 to 1.
    gcups : float
        Speed while the device computed, in 10^9 matrix cells per second.
    with_start : bool
        True if the speed includes initial operations of the device, such as compiling, because the workload was too small to exclude them.
    """

    device: str
    share: float
    gcups: float
    with_start: bool = False


@dataclass(frozen=True, kw_only=True)
class SequenceSearchSummary(Summary):
    """Counts of a sequence search.

    Attributes
    ----------
    n_queries, n_subjects, n_residues : int
        Number of queries and subjects, and of residues of all subjects.
    n_hits, n_queries_with_hits : int
        Number of hits, and of queries with hits.
    gcups : float
        Speed of the scoring, in 10^9 matrix cells per second.
    lambda_, K : float
        Constants of the extreme-value distribution.
    statistics : str
        Source of the constants.
    best : tuple
        Query, subject, E-value and description of the best hits.
    shares : tuple of DeviceShare
        Contribution of each device to the scoring.
    """

    n_queries: int
    n_subjects: int
    n_residues: int
    n_hits: int
    n_queries_with_hits: int
    gcups: float
    lambda_: float
    K: float
    statistics: str
    best: tuple[tuple[str, str, float, str], ...]
    shares: tuple[DeviceShare, ...] = ()

    def counts(self) -> list[Count]:
        """Return the number of hits and, for several queries, of queries with hits."""
        hits = Count(self.n_hits, "hit", "hits")
        with_hits = Count(self.n_queries_with_hits, "query with hits", "queries with hits", total=self.n_queries)
        return [hits, with_hits] if self.n_queries > 1 else [hits]

    def lines(self) -> list[str]:
        """Return lines of text on the searched data, the number of hits, the statistics, and the best hits."""
        searched = f"{counted(self.n_queries, 'query', 'queries')} against {counted(self.n_subjects, 'sequence')}"
        result = hit_counts(self.n_queries, self.n_hits, self.n_queries_with_hits)
        return [
            f"{searched} ({counted(self.n_residues, 'residue')}); {self.gcups:.1f} GCUPS",
            f"{result}; lambda {self.lambda_:.4g}, K {self.K:.3g}, {self.statistics}",
            *(f"  {query:<24.24} {subject:<24.24} {e_value:8.1e}  {text:.60}" for query, subject, e_value, text in self.best),
        ]


def hit_counts(n_queries: int, n_hits: int, n_queries_with_hits: int) -> str:
    """Return the numbers of hits as text: ``29 hits`` for one query, ``3,139 hits; 20 of 21 queries with hits`` for several."""
    if not n_hits:
        return "no hits"
    hits = counted(n_hits, "hit")
    return hits if n_queries == 1 else f"{hits}; {n_queries_with_hits:,} of {n_queries:,} queries with hits"


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
        f"{listed(facts.names('database'))}{against} by the Smith-Waterman algorithm with affine gaps, without prefilters.",
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

"""Summary and methods paragraph of a structure search."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted, listed
from proteoscope.engine.summary import Summary

__all__ = ["Best", "StructureSearchSummary", "methods"]

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
            f"{self.n_hits:,} {self.counts()[0].noun}; {self.n_aligned:,} of {pairs.number:,} {pairs.noun} were aligned in phase 2",
            *map(_best_line, self.best),
        ]


def _best_line(best: Best) -> str:
    query, target, tm, fold, e_value, z, text = best
    facts = ("" if fold is None else f"same fold {100 * fold:3.0f} %  ") + ("" if e_value is None else f"E {e_value:<8.2g} ")
    return f"  {query:<20.20} {target:<20.20} TM {tm:5.3f}  {facts}z {z:6.1f}  {text:.60}"


_CASSERT = (
    "Mrozek D, Brożek M, Małysiak-Mrozek B. Parallel implementation of 3D protein structure similarity searches. J Mol Model 2014, 20:2067."
)
_TM_SCORE = "Zhang Y, Skolnick J. Scoring function for automated assessment of protein structure template quality. Proteins 2004, 57:702."
_PROBABILITY = "Xu J, Zhang Y. How significant is a protein structure similarity with TM-score = 0.5? Bioinformatics 2010, 26:889."


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a structure search and its references."""
    n_queries, n_chains, n_hits = (facts.count(name) for name in ("queries", "chains", "hits"))
    is_published = facts.text("mode") == "published"
    size = "" if n_queries is None else f" ({counted(n_queries, 'chain')})"
    against = "" if n_chains is None else f" ({counted(n_chains, 'chain')})"
    confidence = facts.parameters.get("minimum_plddt")
    rewards = (
        "the rewards of GPU-CASSERT, and hits ranked by score"
        if is_published
        else "log-odds of conformation, spatial neighbours, burial and residue type, and hits ranked by mean TM-score and z-score"
    )
    left_out = isinstance(confidence, int | float) and confidence > 0
    queries, database = listed(facts.names("queries")), listed(facts.names("database"))
    compared = f"{queries}{size} were compared with every chain of {database}" if queries else f"{database} were compared with each other"
    sentences = [
        f"The chains of {compared}{against} in the phases of GPU-CASSERT: local alignment with affine gaps of secondary structure "
        "elements, then of residues, and superposition by least squares.",
        f"Chains whose elements scored below {facts.text('qualification_threshold')} of the query's score with itself were left out.",
        f"Residues were scored by {rewards}.",
        f"Residues with a pLDDT below {confidence:g} were left out." if left_out else "",
        f"At most {facts.text('hits_per_query')} hits were reported for a query"
        + ("." if n_hits is None else f": {counted(n_hits, 'hit')}."),
    ]
    return Methods(sentences, [_CASSERT, _TM_SCORE, _PROBABILITY])

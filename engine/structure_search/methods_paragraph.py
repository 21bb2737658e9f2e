"""Methods paragraph of a structure search (see `proteoscope.engine.results.methods`)."""

from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.methods import Methods, RunFacts, listed

__all__ = ["methods"]

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
        "the rewards of GPU-CASSERT, and ranked by score"
        if is_published
        else "log-odds of conformation, spatial neighbours, burial and residue type, and ranked by mean TM-score and z-score"
    )
    left_out = isinstance(confidence, int | float) and confidence > 0
    queries, database = listed(facts.names("queries")), listed(facts.names("database"))
    compared = f"{queries}{size} were compared with every chain of {database}" if queries else f"{database} were compared with each other"
    sentences = [
        f"The chains of {compared}{against} in the phases of GPU-CASSERT: elements of secondary structure, then residues, both by local "
        "alignment with affine gaps, then superposition by least squares.",
        f"Chains whose elements scored less than {facts.text('qualification_threshold')} of the query with itself were left out.",
        f"Residues were scored by {rewards}.",
        f"Residues with a pLDDT below {confidence:g} were left out." if left_out else "",
        f"At most {facts.text('hits_per_query')} hits were reported for a query"
        + ("." if n_hits is None else f": {counted(n_hits, 'hit')}."),
    ]
    return Methods(sentences, [_CASSERT, _TM_SCORE, _PROBABILITY])

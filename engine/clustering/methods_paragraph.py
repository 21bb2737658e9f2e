"""Methods paragraphs of clustering and of explaining spectra (see `proteoscope.engine.results.methods`)."""

from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.methods import Methods, RunFacts, listed

__all__ = ["clustering_methods", "explanation_methods"]

_MURTAGH = "Murtagh F. A survey of recent advances in hierarchical clustering. Comput J 1983, 26:354."
_ESTER = "Ester M et al. A density-based algorithm for discovering clusters. KDD 1996, 226."
_LLOYD = "Lloyd SP. Least squares quantization in PCM. IEEE Trans Inf Theory 1982, 28:129."
_WAYS = {
    "hierarchical": ("hierarchical clustering ({linkage} linkage)", _MURTAGH),
    "dbscan": ("DBSCAN, a core having {minimum_neighbours} neighbours", _ESTER),
    "k-means": ("k-means ({seeding} first centroids, at most {maximum_iterations} iterations)", _LLOYD),
}
_SHUFFLED = "Lam H, Deutsch EW, Aebersold R. Artificial decoy spectral libraries. J Proteome Res 2010, 9:605."


def _vectors(facts: RunFacts) -> str:
    return (
        f"Spectra became unit vectors of bins of {facts.text('bin_width')} Th from {facts.text('minimum_mz')} to "
        f"{facts.text('maximum_mz')} Th (intensities: {facts.text('intensity_transform')}; peaks within "
        f"{facts.text('precursor_removal')} Th of the precursor left out; at most {facts.text('maximum_peaks')} peaks)."
    )


def clustering_methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a clustering."""
    n_spectra, n_clusters, n_clustered = (facts.count(name) for name in ("spectra", "clusters", "clustered"))
    way, source = _WAYS.get(facts.text("method"), (facts.text("method"), ""))
    named = way.format(**{name: facts.text(name) for name in ("linkage", "minimum_neighbours", "seeding", "maximum_iterations")})
    size = "" if n_spectra is None else f" ({counted(n_spectra, 'spectrum', 'spectra')})"
    bound = "" if facts.text("method") == "k-means" else f", up to a distance (1 less the cosine) of {facts.text('maximum_distance')}"
    result = (
        ""
        if n_clusters is None or n_clustered is None
        else f"{counted(n_clustered, 'spectrum', 'spectra')} joined {counted(n_clusters, 'cluster')} of two or more."
    )
    sentences = [
        f"The MS/MS spectra of {listed(facts.names('spectra'))}{size} were grouped by {named}{bound}, among precursors of the "
        f"same charge within {facts.text('precursor_tolerance')}.",
        _vectors(facts),
        f"A cluster is represented by its {facts.text('consensus_spectrum')} spectrum.",
        result,
    ]
    return Methods(sentences, [source] if source else [])


def explanation_methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of an explanation of unidentified spectra."""
    source, n_unidentified, n_explained = facts.record.get("source_run"), facts.count("unidentified"), facts.count("explained")
    left = counted(n_unidentified, "spectrum", "spectra") if n_unidentified is not None else "The spectra"
    whose = source if isinstance(source, str) and source else "an identification"
    difference = facts.parameters.get("mass_difference")
    modified = isinstance(difference, int | float) and difference > 0
    sentences = [
        f"{left} that {whose} left unidentified were compared with the identified spectra (peptides accepted at "
        f"{facts.text('peptide_fdr')} FDR) of precursors within {facts.text('precursor_tolerance')}, by the cosine.",
        _vectors(facts),
        f"Precursors lighter or heavier by up to {difference:g} Da were allowed for modified peptides." if modified else "",
        f"Explanations with a cosine of at least {facts.text('minimum_similarity')} were rated by spectra of shuffled "
        f"peptides, one for each identified spectrum, and counted at "
        f"{facts.text('fdr')} FDR" + ("." if n_explained is None else f": {counted(n_explained, 'spectrum', 'spectra')}."),
    ]
    return Methods(sentences, [_SHUFFLED])

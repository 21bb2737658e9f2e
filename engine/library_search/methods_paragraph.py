"""Methods paragraph of a spectral library search (see `proteoscope.engine.results.methods`)."""

from proteoscope.engine.matches.methods_paragraph import accepted_sentence, localisation_sentences
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.methods import Methods, RunFacts, listed

__all__ = ["methods"]

_LI = (
    "Li Y et al. Spectral entropy outperforms MS/MS dot product similarity for small-molecule compound identification. Nat Methods 2021, "
    "18:1524."
)
_LAM = "Lam H, Deutsch EW, Aebersold R. Artificial decoy spectral libraries. J Proteome Res 2010, 9:605."
_KERTESZ_FARKAS = (
    "Kertesz-Farkas A, Keich U, Noble WS. Tandem mass spectrum identification via cascaded search. J Proteome Res 2015, 14:3027."
)
_EMERY = (
    "Emery K, Hasam S, Noble WS, Keich U. Multiple competition-based FDR control and its application to peptide detection. RECOMB 2020, "
    "LNCS 12074:54."
)
_NARROW = 3.0  # Da


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a library search."""
    n_spectra, n_entries = facts.count("spectra"), facts.count("entries")
    of_spectra = "" if n_spectra is None else f" ({counted(n_spectra, 'spectrum', 'spectra')})"
    of_entries = "" if n_entries is None else f" ({counted(n_entries, 'entry', 'entries')})"
    is_entropy, tolerance = facts.text("similarity") == "entropy", facts.text("precursor_tolerance")
    decoys, shifted = facts.record.get("decoys_made"), facts.record.get("shifted")
    is_open = isinstance(shifted, int) and _is_wide(tolerance)
    rates = {
        "shuffle": "False matches were counted by spectra of shuffled peptides, several for each peptide of a small library, with which "
        "it competed.",
        "existing": "False matches were counted by the library's own decoys.",
    }.get(decoys if isinstance(decoys, str) else "", "No error rate was estimated.")
    sentences = [
        f"The MS/MS spectra of {listed(facts.names('spectra'))}{of_spectra} were compared with the entries of "
        f"{listed(facts.names('library'))}{of_entries} within {tolerance} of the precursor, by "
        f"{'spectral entropy' if is_entropy else 'the cosine'}; peaks matched within {facts.text('fragment_tolerance')}.",
        "Fragments were compared where they are and moved by the difference of the precursor masses; matches of the same and of another "
        "mass had separate error rates, in a cascade."
        if is_open
        else "",
        rates,
        accepted_sentence(facts) if decoys in ("shuffle", "existing") else "",
    ]
    sources = [*([_LI] if is_entropy else []), *([_LAM, _EMERY] if decoys == "shuffle" else []), *([_KERTESZ_FARKAS] if is_open else [])]
    sites, of_sites = localisation_sentences(facts)
    return Methods([sentence for sentence in (*sentences, *sites) if sentence], [*sources, *of_sites])


def _is_wide(tolerance: str) -> bool:
    """Return True if a tolerance, given as text, is wide enough for an open search."""
    value, _, unit = tolerance.partition(" ")
    try:
        return unit == "Da" and float(value) > _NARROW
    except ValueError:
        return False

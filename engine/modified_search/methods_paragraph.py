"""Methods paragraph of an open modification search (see `proteoscope.engine.results.methods`)."""

from proteoscope.engine.matches.methods_paragraph import error_rates, ion_series_text, localisation_sentences, pass_sentences
from proteoscope.engine.results.methods import Methods, RunFacts

__all__ = ["methods"]

_THESIS = "Carroll's thesis, chapter 6 (match score identification)."
_UNIMOD = "Creasy DM, Cottrell JS. Unimod: protein modifications for mass spectrometry. Proteomics 2004, 4:1534."


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of an open modification search."""
    sentences = pass_sentences(facts)
    rates, more = error_rates(facts)
    own_sentences = [
        f"For each spectrum the {facts.text('candidates')} peptides with most matching masses were taken, whatever the precursor was "
        f"lighter or heavier by within the requested mass shifts, and scored with the shift on each residue ({facts.text('score')}), over "
        f"fragment ions of {ion_series_text(facts)}.",
        "Shifts were named after Unimod, other ends of the peptide or exchanges of residues; matches with and without a shift had error "
        "rates of their own.",
    ]
    sites, of_sites = localisation_sentences(facts)
    return Methods([*sentences, *own_sentences, *rates, *sites], [_THESIS, _UNIMOD, *more, *of_sites])

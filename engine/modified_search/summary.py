"""Summary and methods paragraph of an open modification search."""

from dataclasses import dataclass, field

from proteoscope.engine.matches.methods_paragraph import error_rates, ion_series_text, localisation_sentences, pass_sentences
from proteoscope.engine.matches.summary import MatchSummary
from proteoscope.engine.results.counts import Methods, RunFacts, counted

__all__ = ["ModifiedSearchSummary", "methods"]


@dataclass(frozen=True, kw_only=True)
class ModifiedSearchSummary(MatchSummary):
    """Summary of an open modification search.

    Attributes
    ----------
    n_plain, n_named, n_ends, n_unnamed : int
        Number of PSMs without a shift, with a common shift, with another peptide terminus, and with any other shift.
    top_modifications : tuple
        Name, mass (Da), number of PSMs, and sites of the most frequent modifications.
    source_run : str or None
        Run whose unidentified spectra were searched.
    """

    n_plain: int
    n_named: int
    n_ends: int
    n_unnamed: int
    top_modifications: tuple[tuple[str, float, int, str], ...] = field(default=())
    source_run: str | None = None

    def lines(self) -> list[str]:
        """Return the lines of all spectrum searches, followed by the most frequent modifications."""
        lines = super().lines()
        shifted = (
            f"{self.n_named:,} with a usual shift, {self.n_ends:,} with another end of the peptide, {self.n_unnamed:,} with another shift"
        )
        lines.append(f"  {counted(self.n_plain, 'PSM')} without a mass shift, {shifted}")
        lines += [f"  {name:<40.40} {mass:>11.4f} Da {n:>5} PSMs  {sites:.60}" for name, mass, n, sites in self.top_modifications]
        return lines


_THESIS = "Carroll's thesis, chapter 6 (match score identification)."
_UNIMOD = "Creasy DM, Cottrell JS. Unimod: protein modifications for mass spectrometry. Proteomics 2004, 4:1534."


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of an open modification search."""
    sentences = pass_sentences(facts)
    rates, more = error_rates(facts)
    own_sentences = [
        f"For each spectrum the {facts.text('candidates')} peptides with most matching masses were selected among those whose masses "
        "differ from the precursor mass by a shift in the requested range. They were scored with the shift on each residue "
        f"({facts.text('score')}), over fragment ions of {ion_series_text(facts)}.",
        "Shifts were named after modifications in Unimod, other ends of the peptide, or substitutions of residues; error rates were "
        "estimated separately for matches with and without a shift.",
    ]
    sites, of_sites = localisation_sentences(facts)
    return Methods([*sentences, *own_sentences, *rates, *sites], [_THESIS, _UNIMOD, *more, *of_sites])

"""Summary of a spectral library search."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proteoscope.engine.results.counts import Count, counted
from proteoscope.engine.summary import Summary

__all__ = ["LibrarySummary"]


@dataclass(frozen=True, kw_only=True)
class LibrarySummary(Summary):
    """Summary of a library search.

    Numbers of matches, peptides and proteins are targets at the false discovery rate, or all targets if it is unknown.

    Attributes
    ----------
    n_entries, n_decoys : int
        Number of library entries and of decoys; `decoys` is the origin of the decoys.
    unknown : str
        Reason for missing error rates, or ''.
    n_unrated : int
        Number of matches of entries without decoys, in a library with decoys.
    certainty : mapping of str to float
        Certainty of the matches (see `proteoscope.engine.matches.tables.AcceptanceCounts.certainty`).
    """

    n_spectra: int
    n_searched: int
    n_entries: int
    n_decoys: int
    n_matches: int
    n_shifted: int
    n_compounds: int
    n_psms: int
    n_peptides: int
    n_proteins: int
    decoys: str
    similarity: str
    is_open: bool
    unknown: str = ""
    n_unrated: int = 0
    certainty: Mapping[str, float] = field(default_factory=dict)
    fdr: float = 0.01

    def counts(self) -> list[Count]:
        """Return the numbers of matched spectra, peptides and proteins."""
        return [self._matched, Count(self.n_peptides, "peptide", "peptides"), Count(self.n_proteins, "protein", "proteins")]

    def lines(self) -> list[str]:
        """Return lines about the searched spectra and libraries, and the matches found."""
        origin = {"existing": "of the library", "shuffle": "of shuffled peptides", "none": ""}[self.decoys]
        decoys = f", with {counted(self.n_decoys, 'decoy')} {origin}" if self.n_decoys else ", without decoys"
        lines = [
            f"{self.n_searched:,} of {counted(self.n_spectra, 'spectrum', 'spectra')} compared with "
            f"{counted(self.n_entries, 'library entry', 'library entries')}{decoys}, by {self.similarity}"
        ]
        shifted = f", {self.n_shifted:,} of these with another mass" if self.is_open else ""
        if self.unknown:
            lines.append(f"No error rates: {self.unknown}")
            lines.append(f"{counted(self.n_matches, 'spectrum', 'spectra')} resemble an entry ({self.n_compounds:,} names){shifted}")
            return lines
        certainty = self._matched.certainty
        if certainty is not None and certainty.nothing_accepted:
            lines.append(f"Spectra that resemble an entry: {certainty.nothing_accepted}")
        else:
            lines.append(f"At {self.fdr * 100:.3g} % FDR {counted(self.n_matches, 'spectrum', 'spectra')} resemble an entry{shifted}")
            lines += [f"  {certainty.text}"] if certainty is not None else []
        if self.n_unrated:
            spectra = counted(self.n_unrated, "spectrum resembles", "spectra resemble")
            lines.append(f"  In addition, {spectra} an entry without decoys, such as of a small molecule, and without an error rate")
        lines.append(f"  {counted(self.n_peptides, 'peptide')} of {counted(self.n_proteins, 'protein')}")
        return lines

    @property
    def _matched(self) -> Count:
        words = "spectrum matched", "spectra matched"
        if not self.certainty:
            return Count(self.n_matches, *words, total=self.n_spectra)
        return Count.from_acceptance(self.n_matches, *words, self.certainty, self.fdr, self.n_spectra)

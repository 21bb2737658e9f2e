"""Summary and methods paragraph of a spectral library search."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proteoscope.engine.matches.methods_paragraph import accepted_sentence, localisation_sentences
from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted, listed
from proteoscope.engine.summary import Summary

__all__ = ["LibrarySummary", "methods"]


@dataclass(frozen=True, kw_only=True)
class LibrarySummary(Summary):
    """Summary of a library search.

    Matches, peptides and proteins are targets accepted at the false discovery rate; without error rates, all targets.

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
        "shuffle": "False matches were estimated with spectra of shuffled peptides, which competed with the library's peptides (several "
        "for each peptide of a small library).",
        "existing": "False matches were estimated with the library's own decoys.",
    }.get(decoys if isinstance(decoys, str) else "", "No error rate was estimated.")
    sentences = [
        f"The MS/MS spectra of {listed(facts.names('spectra'))}{of_spectra} were compared with the entries of "
        f"{listed(facts.names('library'))}{of_entries} within {tolerance} of the precursor, by "
        f"{'spectral entropy' if is_entropy else 'the cosine'}; peaks matched within {facts.text('fragment_tolerance')}.",
        "Fragments were compared both unshifted and shifted by the difference of the precursor masses; error rates were estimated "
        "separately for matches of the same mass and of another mass, in a cascade."
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

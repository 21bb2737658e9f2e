"""Parts of the summary that all searches of spectra against proteins have in common."""

from dataclasses import dataclass
from typing import Any

from proteoscope.engine.matches.pass_records import PassRecord
from proteoscope.engine.results.counts import WITHOUT_DECOYS, Count, counted
from proteoscope.engine.summary import Summary

__all__ = ["MatchSummary"]


@dataclass(frozen=True, kw_only=True)
class MatchSummary(Summary):
    """Summary of matches, with numbers of targets accepted at the false discovery rate.

    Attributes
    ----------
    n_spectra, n_searched : int
        Number of spectra in the files, and number of searched spectra.
    n_proteins_in_database : int
        Number of proteins in the database.
    n_peptides_in_index : int
        Number of peptides in the index.
    n_psms : int
        Number of accepted PSMs.
    n_peptides : int
        Number of peptidoforms accepted by peptide-level q-values.
    n_sequences : int
        Number of distinct sequences of the accepted peptidoforms.
    n_proteins : int
        Number of protein groups accepted by protein-level q-values.
    certainty : dict
        For ``psms``, ``peptides`` and ``proteins``: accepted ``targets`` and ``decoys``, and the 95 % confidence interval of the false
        fraction of targets (``false_share_low``, ``false_share_high``; see
        `proteoscope.engine.statistics.target_decoy.false_share_interval`).
    fdr : float
        False discovery rate of accepted results.
    has_decoys : bool
        False if there are no decoys or q-values; all rows are then counted.
    passes : tuple of PassRecord
        Settings of each pass.
    """

    n_spectra: int
    n_searched: int
    n_proteins_in_database: int
    n_peptides_in_index: int
    n_psms: int
    n_peptides: int
    n_sequences: int
    n_proteins: int
    certainty: dict[str, dict[str, float]]
    fdr: float = 0.01
    has_decoys: bool = True
    passes: tuple[PassRecord, ...] = ()

    def counts(self) -> list[Count]:
        """Return the numbers of accepted PSMs, peptides and protein groups with confidence intervals.

        Without decoys, all rows are counted.
        """
        return [
            Count.from_acceptance(number, singular, plural, interval, self.fdr) if self.has_decoys else Count(number, singular, plural)
            for number, singular, plural, interval in (
                (self.n_psms, "PSM", "PSMs", self.certainty["psms"]),
                (self.n_peptides, "peptide", "peptides", self.certainty["peptides"]),
                (self.n_proteins, "protein", "proteins", self.certainty["proteins"]),
            )
        ]

    def lines(self) -> list[str]:
        """Return lines of text on the searched files and the results, with confidence intervals."""
        lines = [
            f"{self.n_searched:,} of {counted(self.n_spectra, 'spectrum', 'spectra')} searched against "
            f"{counted(self.n_proteins_in_database, 'protein')}",
            *(search_pass.sentence() for search_pass in self.passes),
            f"At {self.fdr * 100:.3g} % FDR:" if self.has_decoys else WITHOUT_DECOYS,
        ]
        more = "", f" ({counted(self.n_sequences, 'sequence')})", ""
        return lines + [count.line(text) for count, text in zip(self.counts(), more, strict=True)]

    def record(self) -> dict[str, Any]:
        """Return the summary as a JSON-compatible dictionary, with passes as in ``run.json``."""
        return {**super().record(), "passes": [search_pass.record() for search_pass in self.passes]}

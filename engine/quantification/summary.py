"""Summary of a quantification."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count, counted
from proteoscope.engine.summary import Summary

__all__ = ["QuantificationSummary"]


@dataclass(frozen=True, kw_only=True)
class QuantificationSummary(Summary):
    """Summary of a quantification.

    Attributes
    ----------
    source_runs : tuple of str
        Identifiers of the quantified identifications.
    n_transferred : int
        Number of ions measured in files that did not identify them.
    n_random_time_transfers, n_decoy_transfers, n_decoy_random_time_transfers : int
        Numbers of ions that were better at a random time, of decoy peptides, and of both, with at least the score of accepted transfers.
    n_refused : int
        Number of traces or spectra without a quantity.
    n_tested, n_changed : int
        Numbers of tested and of changed proteins, over all comparisons.
    n_imputed : int
        Number of imputed quantities, over all comparisons.
    """

    source_runs: tuple[str, ...]
    method: str
    n_samples: int
    n_peptidoforms: int
    n_peptides: int
    n_proteins: int
    n_identified_proteins: int
    n_transferred: int
    n_random_time_transfers: int
    n_decoy_transfers: int
    n_decoy_random_time_transfers: int
    n_refused: int
    n_tested: int
    n_changed: int
    n_imputed: int

    @property
    def transfer_error_rate(self) -> float:
        """Estimated rate of false transfers (see `proteoscope.engine.quantification.transfers`)."""
        wrong = max(0, self.n_decoy_transfers - self.n_decoy_random_time_transfers)
        return (1 + self.n_random_time_transfers + wrong) / max(1, self.n_transferred)

    def counts(self) -> list[Count]:
        """Return the numbers of quantified proteins and peptides, and of changed proteins if conditions are compared."""
        result = [
            Count(self.n_proteins, "protein quantified", "proteins quantified", total=self.n_identified_proteins),
            Count(self.n_peptides, "peptide quantified", "peptides quantified"),
        ]
        changed = Count(self.n_changed, "changed protein", "changed proteins", total=self.n_tested)
        return [*result, changed] if self.n_tested else result

    def lines(self) -> list[str]:
        """Return lines of text on what was quantified and compared."""
        runs = ", ".join(self.source_runs)
        result = [
            f"{self.n_peptidoforms:,} peptidoforms, {self.n_peptides:,} peptides and {self.n_proteins:,} of"
            f" {self.n_identified_proteins:,} proteins of {runs} have a quantity in {counted(self.n_samples, 'sample')}"
        ]
        if self.n_transferred:
            result.append(
                f"{self.n_transferred:,} ions were found where another file identified them; {self.n_random_time_transfers:,} others were"
                f" better at a random time, and {self.n_decoy_transfers:,} decoy peptides were found (estimated rate of false transfers:"
                f" {100 * self.transfer_error_rate:.2f} %)"
            )
        if self.n_refused:
            result.append(f"{self.n_refused:,} ion traces have no quantity; the table says why of each")
        if self.n_tested:
            result.append(f"{self.n_changed:,} of {self.n_tested:,} tested proteins changed")
        if self.n_imputed:
            result.append(f"{self.n_imputed:,} missing quantities were imputed; the table counts those of each protein")
        return result

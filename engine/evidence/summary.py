"""Summary of evidence on structures."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count, counted
from proteoscope.engine.summary import Summary

__all__ = ["EvidenceSummary"]


@dataclass(frozen=True, kw_only=True)
class EvidenceSummary(Summary):
    """Summary of evidence on structures: numbers of proteins with similar chains, and of modified residues, on the surface or buried.

    `source_run` is the run that identified the peptides.
    """

    source_run: str
    n_proteins: int
    n_on_structures: int
    n_chains: int
    n_peptides: int
    n_sites: int
    n_placed_sites: int
    n_on_surface: int
    n_buried: int
    n_homologues: int
    n_remote_chains: int

    def counts(self) -> list[Count]:
        """Return the numbers of proteins on structures, and of modified residues on them."""
        return [
            Count(self.n_on_structures, "protein on a structure", "proteins on structures", total=self.n_proteins),
            Count(self.n_placed_sites, "modified residue on a structure", "modified residues on structures", total=self.n_sites),
        ]

    def lines(self) -> list[str]:
        """Return lines about the numbers of mapped peptides, proteins and residues."""
        more = [
            f"{self.n_remote_chains:,} remote chains have the fold of a similar one" if self.n_remote_chains else "",
            f"{self.n_homologues:,} homologues show how conserved residues are" if self.n_homologues else "",
        ]
        n_unknown = self.n_placed_sites - self.n_on_surface - self.n_buried
        unknown = f", {n_unknown:,} where the file lacks the atoms to measure it" if n_unknown else ""
        return [
            f"{self.n_peptides:,} peptides of run {self.source_run} lie in {counted(self.n_proteins, 'protein')}",
            f"{self.n_on_structures:,} of these {'has' if self.n_on_structures == 1 else 'have'} a similar chain with a structure,"
            f" among {counted(self.n_chains, 'chain')}",
            f"{self.n_placed_sites:,} of {self.n_sites:,} modified residues are mapped onto one: {self.n_on_surface:,} on the surface,"
            f" {self.n_buried:,} buried{unknown}",
            *filter(None, more),
        ]

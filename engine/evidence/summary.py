"""Summary and methods paragraph of evidence on structures."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted
from proteoscope.engine.summary import Summary

__all__ = ["EvidenceSummary", "methods"]


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
            f"{self.n_remote_chains:,} remote chains have the fold of a similar chain" if self.n_remote_chains else "",
            f"{self.n_homologues:,} homologues show how conserved residues are" if self.n_homologues else "",
        ]
        n_unknown = self.n_placed_sites - self.n_on_surface - self.n_buried
        unknown = f", {n_unknown:,} unknown because the file lacks atoms" if n_unknown else ""
        return [
            f"{self.n_peptides:,} peptides of run {self.source_run} lie in {counted(self.n_proteins, 'protein')}",
            f"{self.n_on_structures:,} of these proteins {'has' if self.n_on_structures == 1 else 'have'} a similar chain"
            f" among the structures ({counted(self.n_chains, 'chain')})",
            f"{self.n_placed_sites:,} of {self.n_sites:,} modified residues are on a similar chain: {self.n_on_surface:,} on the surface,"
            f" {self.n_buried:,} buried{unknown}",
            *filter(None, more),
        ]


_CITATIONS = (
    "Smith TF, Waterman MS. Identification of common molecular subsequences. J Mol Biol 147, 195-197 (1981)",
    "Henikoff S, Henikoff JG. Amino acid substitution matrices from protein blocks. PNAS 89, 10915-10919 (1992)",
    "Capra JA, Singh M. Predicting functionally important residues from sequence conservation. Bioinformatics 23, 1875-1882 (2007)",
    "Shrake A, Rupley JA. Environment and exposure to solvent of protein atoms. J Mol Biol 79, 351-371 (1973)",
)


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph, from the record of the run."""
    source = facts.record.get("source_run")
    of_run = f" of run {source:.60}" if isinstance(source, str) else ""
    sentences = [
        f"Peptides{of_run} up to a q-value of {facts.text('psm_fdr')} were mapped to all their positions in the proteins of groups up to a"
        f" q-value of {facts.text('protein_fdr')}; leucine and isoleucine were treated as equal.",
        "Each protein was aligned with the observed residues of every chain by exhaustive Smith-Waterman search (BLOSUM62, gaps 11/1), and"
        f" the {facts.text('chains_per_protein')} best chains with an E-value of at most {facts.text('maximum_e_value')} were used.",
        "Solvent exposure was computed for the isolated chain, as the fraction of each residue's maximum area (Shrake and Rupley); residues"
        f" with at least {facts.text('surface_exposure')} count as surface. Distances were computed from the deposited coordinates.",
    ]
    remote, homologues = facts.count("remote_chains"), facts.count("homologues")
    if remote:
        sentences.append(
            f"A further {counted(remote, 'chain')} had the fold of a protein's nearest chain (TM-score of at least"
            f" {facts.text('minimum_tm_score')} by the length of the nearest chain) and were mapped through the superposition with it."
        )
    if homologues:
        sentences.append(
            f"The conservation of residues among {counted(homologues, 'homologue')}, up to"
            f" {facts.text('homologues_per_protein')} per protein, is the Jensen-Shannon divergence of the columns of their alignment."
        )
    proteins, on = facts.count("proteins"), facts.count("on_structures")
    chains, sites, placed = facts.count("chains"), facts.count("sites"), facts.count("placed_sites")
    if proteins is not None and on is not None and chains is not None:
        sentences.append(f"Of {counted(proteins, 'protein')}, {on:,} had a similar chain among {counted(chains, 'chain')}.")
    if sites and placed is not None:
        sentences.append(f"Of {counted(sites, 'modified residue')}, {placed:,} were mapped onto a similar chain.")
    return Methods(sentences, _CITATIONS)

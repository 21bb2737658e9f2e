"""Methods paragraph of evidence on structures."""

from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.methods import Methods, RunFacts

__all__ = ["methods"]

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
        f"Peptides{of_run} up to a q-value of {facts.text('psm_fdr')} were placed at every position of the proteins of groups up to"
        f" {facts.text('protein_fdr')} where their residues, leucine and isoleucine taken as equal, occur.",
        "Each protein was aligned with the observed residues of every chain by exhaustive Smith-Waterman search (BLOSUM62, gaps 11/1), and"
        f" the {facts.text('chains_per_protein')} best chains with an E-value of at most {facts.text('maximum_e_value')} were near.",
        "Solvent exposure was computed for the isolated chain, as the fraction of each residue's maximum area (Shrake and Rupley); from"
        f" {facts.text('surface_exposure')} on a residue was taken to lie on the surface. Distances are of the deposited coordinates.",
    ]
    remote, homologues = facts.count("remote_chains"), facts.count("homologues")
    if remote:
        sentences.append(
            f"A further {counted(remote, 'chain')} had the fold of a protein's nearest chain (TM-score of at least"
            f" {facts.text('minimum_tm_score')} by its length) and were mapped through their superposition with it."
        )
    if homologues:
        sentences.append(
            f"The conservation of residues among {counted(homologues, 'homologue')}, up to"
            f" {facts.text('homologues_per_protein')} of a protein, is the Jensen-Shannon divergence of their columns."
        )
    proteins, on = facts.count("proteins"), facts.count("on_structures")
    chains, sites, placed = facts.count("chains"), facts.count("sites"), facts.count("placed_sites")
    if proteins is not None and on is not None and chains is not None:
        sentences.append(f"Of {counted(proteins, 'protein')}, {on:,} had a similar chain among {counted(chains, 'chain')}.")
    if sites and placed is not None:
        sentences.append(f"Of {counted(sites, 'modified residue')}, {placed:,} were mapped onto a similar chain.")
    return Methods(sentences, _CITATIONS)

"""Parameters of evidence on structures: the one place where each exists."""

from __future__ import annotations

from pydantic import field_validator

from proteoscope.engine.parameters import SearchParameters, parameter

__all__ = ["EvidenceParameters"]

_WHICH, _STRUCTURES, _SITES = "Evidence", "Structures", "Sites"
_MAXIMUM_PROTEINS = 100_000


class EvidenceParameters(SearchParameters):
    """Parameters that, with a run and structures, determine the evidence."""

    run: str = parameter(
        "",
        title="Run",
        group=_WHICH,
        editor="run",
        help="The identification, search for modified peptides or explanation whose peptides are shown; the newest where it is empty.",
    )
    proteins: tuple[str, ...] = parameter(
        (),
        title="Proteins",
        group=_WHICH,
        help="Comma-separated accessions of the analysed proteins; all if empty.",
    )
    psm_fdr: float = parameter(
        0.01, gt=0, le=1, title="PSMs up to", group=_WHICH, help="Matches of spectra up to this q-value are evidence."
    )
    protein_fdr: float = parameter(
        0.01, gt=0, le=1, title="Proteins up to", group=_WHICH, help="Protein groups up to this q-value are analysed."
    )
    chains_per_protein: int = parameter(
        3,
        ge=1,
        le=20,
        title="Chains of a protein",
        unit="chains",
        group=_STRUCTURES,
        help="The nearest chains of each protein, by the scores of exhaustive Smith-Waterman alignments.",
    )
    maximum_e_value: float = parameter(
        1e-3,
        gt=0,
        le=1e6,
        title="Maximum E-value",
        group=_STRUCTURES,
        help="Chains and homologues whose sequence chance would align to the protein's more often than this are not near.",
    )
    remote_chains: int = parameter(
        0,
        ge=0,
        le=20,
        title="Remote chains",
        unit="chains",
        group=_STRUCTURES,
        help="Further chains of each protein that have the fold of its nearest one, whatever their sequence: a structure search for each.",
    )
    minimum_tm_score: float = parameter(
        0.5,
        gt=0,
        le=1,
        title="Minimum TM-score",
        group=_STRUCTURES,
        advanced=True,
        help="Of a remote chain and the nearest one, by the length of that one; above 0.5 folds are mostly the same.",
    )
    homologues_per_protein: int = parameter(
        50,
        ge=3,
        le=1000,
        title="Homologues of a protein",
        unit="sequences",
        group=_SITES,
        help="The best of the sequences given as homologues, among which the conservation of its residues is counted.",
    )
    fixed_sites: bool = parameter(
        False,
        title="Show fixed modifications",
        group=_SITES,
        help="Make sites of fixed modifications too, which every such residue carries: carbamidomethyl, labels.",
    )
    surface_exposure: float = parameter(
        0.25,
        ge=0,
        le=1,
        title="Surface from",
        group=_SITES,
        help="Part of the greatest area of a residue that water must touch for it to lie on the surface.",
    )
    contact_distance: float = parameter(
        30.0,
        gt=0,
        le=200,
        title="Contacts up to",
        unit="Å",
        group=_SITES,
        help="Modified residues and lysines whose Cα lie as near are listed as pairs; 30 Å is the reach of common cross-linkers.",
    )
    minimum_separation: int = parameter(
        6,
        ge=1,
        le=1000,
        title="Contacts from",
        unit="residues apart",
        group=_SITES,
        help="Neighbours in the sequence lie near each other in any fold: pairs nearer along it than this are not listed.",
    )

    @field_validator("proteins")
    @classmethod
    def _are_few(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
        if len(names) > _MAXIMUM_PROTEINS:
            raise ValueError(f"expected at most {_MAXIMUM_PROTEINS:,} accessions")
        return names

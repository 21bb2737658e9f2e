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
        help="Identification, open modification search or explanation whose peptides are mapped; the newest if empty.",
    )
    proteins: tuple[str, ...] = parameter(
        (),
        title="Proteins",
        group=_WHICH,
        help="Comma-separated accessions of the analysed proteins; all if empty.",
    )
    psm_fdr: float = parameter(0.01, gt=0, le=1, title="PSM FDR", group=_WHICH, help="Maximum q-value of the PSMs that count as evidence.")
    protein_fdr: float = parameter(
        0.01, gt=0, le=1, title="Protein FDR", group=_WHICH, help="Maximum q-value of the analysed protein groups."
    )
    chains_per_protein: int = parameter(
        3,
        ge=1,
        le=20,
        title="Maximum chains per protein",
        unit="chains",
        group=_STRUCTURES,
        help="Number of most similar chains per protein, by exhaustive Smith-Waterman alignment.",
    )
    maximum_e_value: float = parameter(
        1e-3,
        gt=0,
        le=1e6,
        title="Maximum E-value",
        group=_STRUCTURES,
        help="Maximum E-value of chains and homologues of a protein.",
    )
    remote_chains: int = parameter(
        0,
        ge=0,
        le=20,
        title="Maximum remote chains",
        unit="chains",
        group=_STRUCTURES,
        help="Number of further chains per protein with the fold of its most similar chain, whatever their sequence; needs a"
        " structure search for each.",
    )
    minimum_tm_score: float = parameter(
        0.5,
        gt=0,
        le=1,
        title="Minimum TM-score",
        group=_STRUCTURES,
        advanced=True,
        help="Minimum TM-score of a remote chain, normalised by the length of the most similar chain; above 0.5, folds are"
        " mostly the same.",
    )
    homologues_per_protein: int = parameter(
        50,
        ge=3,
        le=1000,
        title="Maximum homologues per protein",
        unit="sequences",
        group=_SITES,
        help="Number of best homologues from which the conservation of a protein's residues is computed.",
    )
    fixed_sites: bool = parameter(
        False,
        title="Show fixed modifications",
        group=_SITES,
        help="Also map the sites of fixed modifications, such as carbamidomethyl and labels.",
    )
    surface_exposure: float = parameter(
        0.25,
        ge=0,
        le=1,
        title="Minimum surface exposure",
        group=_SITES,
        help="Minimum fraction of a residue's maximum accessible area for the residue to count as on the surface.",
    )
    contact_distance: float = parameter(
        30.0,
        gt=0,
        le=200,
        title="Maximum contact distance",
        unit="Å",
        group=_SITES,
        help="Maximum Cα distance at which modified residues and lysines are listed as pairs; 30 Å is the reach of common cross-linkers.",
    )
    minimum_separation: int = parameter(
        6,
        ge=1,
        le=1000,
        title="Minimum sequence separation",
        unit="residues apart",
        group=_SITES,
        help="Pairs closer in the sequence are not listed, since they are close in every fold.",
    )

    @field_validator("proteins")
    @classmethod
    def _are_few(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
        if len(names) > _MAXIMUM_PROTEINS:
            raise ValueError(f"expected at most {_MAXIMUM_PROTEINS:,} accessions")
        return names

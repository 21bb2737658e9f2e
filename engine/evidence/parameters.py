"""Parameters of evidence on structures."""

from pydantic import field_validator

from proteoscope.engine.parameters import SearchParameters, parameter

__all__ = ["EvidenceParameters"]

_WHICH, _STRUCTURES, _SITES = "Evidence", "Structures", "Sites"
_MAXIMUM_PROTEINS = 100_000


class EvidenceParameters(SearchParameters):
    """Parameters that determine the evidence, together with an identification and structures."""

    run: str = parameter(
        "",
        title="Run",
        group=_WHICH,
        editor="run",
        help="Run whose peptides are mapped: an identification, an open modification search, or a search for explanations of"
        " unidentified spectra. Empty: the newest run.",
    )
    proteins: tuple[str, ...] = parameter(
        (),
        title="Proteins",
        group=_WHICH,
        help="Accessions of the analysed proteins, separated by commas. Empty: all identified proteins.",
    )
    psm_fdr: float = parameter(
        0.01, gt=0, le=1, title="PSM FDR", group=_WHICH, help="Maximum q-value of the PSMs that are used as evidence."
    )
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
        help="Maximum number of structure chains shown per protein: those of the most similar sequences by Smith-Waterman alignment.",
    )
    maximum_e_value: float = parameter(
        1e-3,
        gt=0,
        le=1e6,
        title="Maximum E-value",
        group=_STRUCTURES,
        help="Maximum E-value between a protein and its chains or homologues. Lower values accept only more similar sequences.",
    )
    remote_chains: int = parameter(
        0,
        ge=0,
        le=20,
        title="Maximum remote chains",
        unit="chains",
        group=_STRUCTURES,
        help="Maximum number of further chains per protein that have a similar fold, whatever their sequence. This needs a structure search"
        " for each protein.",
    )
    minimum_tm_score: float = parameter(
        0.5,
        gt=0,
        le=1,
        title="Minimum TM-score",
        group=_STRUCTURES,
        advanced=True,
        help="Minimum TM-score between a remote chain and the chain whose sequence is most similar to the protein, normalised by the"
        " length of the latter chain. Above 0.5, folds are usually the same.",
    )
    homologues_per_protein: int = parameter(
        50,
        ge=3,
        le=1000,
        title="Maximum homologues per protein",
        unit="sequences",
        group=_SITES,
        help="Maximum number of homologous sequences, best first, from which the conservation of each residue is computed.",
    )
    fixed_sites: bool = parameter(
        False,
        title="Show fixed modifications",
        group=_SITES,
        help="Also map fixed modifications, such as Carbamidomethyl (C) and labels.",
    )
    surface_exposure: float = parameter(
        0.25,
        ge=0,
        le=1,
        title="Minimum surface exposure",
        group=_SITES,
        help="Minimum relative solvent accessibility (0 to 1) of residues on the surface. Residues below this are buried.",
    )
    contact_distance: float = parameter(
        30.0,
        gt=0,
        le=200,
        title="Maximum contact distance",
        unit="Å",
        group=_SITES,
        help="Maximum distance between the Cα atoms of listed pairs of modified residues and lysines. 30 Å is the maximum for"
        " common cross-linkers.",
    )
    minimum_separation: int = parameter(
        6,
        ge=1,
        le=1000,
        title="Minimum sequence separation",
        unit="residues apart",
        group=_SITES,
        help="Minimum difference between the sequence positions of the two residues of a listed pair. Neighbouring residues are"
        " close in every structure.",
    )

    @field_validator("proteins")
    @classmethod
    def _unique_proteins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
        if len(names) > _MAXIMUM_PROTEINS:
            raise ValueError(f"expected at most {_MAXIMUM_PROTEINS:,} accessions")
        return names

"""Columns of the tables of evidence on structures."""

from dataclasses import replace

from proteoscope.engine.matches.columns import PEPTIDES, SHIFTED_PSMS, described_columns
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.sequences.hit_columns import HITS
from proteoscope.engine.spectra.tables import SPECTRA
from proteoscope.engine.structure_search.tables import HITS as STRUCTURE_HITS

__all__ = [
    "CHAINS",
    "CONTACTS",
    "HOMOLOGUES",
    "MAPPED_RESIDUES",
    "MISSED",
    "PARALOGUES",
    "PEPTIDE_PLACES",
    "PROTEINS",
    "RESIDUES",
    "SITES",
    "STORED",
    "TABLES",
    "text_file_name",
]

_PROTEIN = Column("protein", meaning="Row of the protein in the table of proteins, from 0", kind="identifier", rows_of="proteins")
_ACCESSION = Column("accession", "Protein", "Accession of the protein", width=18, entries="proteins")
_CHAIN = Column(
    "chain", "Chain", "Structure chain: file name, colon and name of the chain", width=16, is_nullable=True, entries="structures"
)
_CHAIN_ROW = Column(
    "chain_row", meaning="Row of the chain in the table of chains, from 0", kind="identifier", rows_of="chains", is_nullable=True
)
_POSITION = Column("position", "Position", "Position of the residue in the protein, from 1", "integer", 8, low=1)
_RESIDUE = Column("residue", "Residue", "One-character code of the residue", width=7, pattern="[A-Z]")
_AUTHOR = Column(
    "author_number",
    "In structure",
    "Residue number in the structure file (author's numbering), with insertion code",
    width=10,
    is_nullable=True,
)
_EXPOSURE = Column(
    "exposure",
    "Exposure",
    "Solvent-accessible area of the residue in the isolated chain, relative to the maximum area of the residue",
    "percent",
    8,
    is_nullable=True,
    low=0,
    high=1,
    saved=".4f",
)
_CONSERVATION = Column(
    "conservation",
    "Conservation",
    "Conservation of the residue among the protein's homologues: Jensen-Shannon divergence, 0 to 1",
    "number",
    9,
    3,
    is_nullable=True,
    low=0,
    high=1,
    saved=".4f",
)
_INTENSITY = replace(
    SPECTRA.by_name["precursor_intensity"],
    name="intensity",
    title="Intensity",
    meaning="Total precursor intensity of the spectra, if files contain it",
    width=10,
    type="double",
    low=0,
    saved=".6g",
)
_KIND = Column(
    "kind",
    "Kind",
    "Relation to the protein: same (at least 95 % identity), homologous (at least 30 %), distant (less), or remote"
    " (with the fold of the most similar chain)",
    width=11,
    pattern="same|homologous|distant|remote",
)
_HIT, _PEPTIDE = HITS.by_name, PEPTIDES.by_name
_E_VALUE = replace(_HIT["e_value"], is_nullable=True, low=0)
_BITS = _HIT["bit_score"]
_STATE = Column(
    "secondary_structure",
    "Structure",
    "Secondary structure of the residue: H helix, E strand, C coil",
    width=8,
    pattern="[HEC]",
    is_nullable=True,
)
_PSMS = Column("n_psms", "PSMs", "Number of accepted PSMs", "integer", 6, low=0)
_Q = Column("q_value", "q-value", "Minimum FDR at which a PSM of the site or peptide is accepted", "probability", 8, is_nullable=True)

PROTEINS = Table.from_columns(
    "proteins",
    "Proteins",
    (
        _ACCESSION,
        Column(
            "other_accessions",
            "Others",
            "Accessions of the other proteins in the group, which contain the same peptides",
            "texts",
            20,
            is_shown=False,
        ),
        Column("description", "Description", "Description of the protein in the database", width=40),
        Column("length", "Length", "Number of residues", "integer", 7, low=1),
        Column("n_peptides", "Peptides", "Number of peptidoforms of the protein", "integer", 8, low=0),
        _PSMS,
        Column(
            "coverage",
            "Coverage",
            "Fraction of the protein's residues that are covered by peptides",
            "percent",
            8,
            low=0,
            high=1,
            saved=".4f",
        ),
        Column("n_sites", "Sites", "Number of modified residues", "integer", 6, low=0),
        Column("n_chains", "Chains", "Number of similar structure chains", "integer", 7, low=0),
        _CHAIN,
        Column(
            "identity",
            "Identity",
            "Fraction of identical residues among the residues aligned with the most similar chain",
            "percent",
            8,
            is_nullable=True,
            low=0,
            high=1,
            saved=".4f",
        ),
        Column(
            "mapped",
            "On structure",
            "Fraction of the protein's residues that are aligned with the most similar chain",
            "percent",
            10,
            low=0,
            high=1,
            saved=".4f",
        ),
        Column(
            "mapped_coverage",
            "Covered on structure",
            "Fraction of the residues aligned with the chain that are covered by peptides",
            "percent",
            9,
            is_nullable=True,
            low=0,
            saved=".4f",
        ),
        Column(
            "n_homologues", "Homologues", "Number of homologues from which conservation is computed", "integer", 9, low=0, is_shown=False
        ),
        Column("q_value", "q-value", "q-value of the protein group", "probability", 8, is_nullable=True),
        Column("sequence", meaning="Residue sequence of the protein", pattern="[A-Z]+"),
    ),
    shown="accession n_peptides n_psms coverage n_sites n_chains chain identity mapped mapped_coverage description length q_value "
    "other_accessions n_homologues",
    links="accession",
    saved="accession other_accessions description length n_peptides n_psms coverage n_sites n_chains chain identity mapped mapped_coverage "
    "n_homologues q_value",
)
CHAINS = Table.from_columns(
    "chains",
    "Similar chains",
    (
        _PROTEIN,
        _ACCESSION,
        Column("rank", "Rank", "Rank of the chain among the chains of the protein, by alignment score", "integer", 5, low=1),
        Column("chain", "Chain", "Structure chain: file name, colon and name of the chain", width=16, entries="structures"),
        _KIND,
        Column(
            "identity",
            "Identity",
            "Fraction of identical residues among the aligned residues",
            "percent",
            8,
            low=0,
            high=1,
            saved=".4f",
        ),
        Column("n_aligned", "Aligned", "Number of aligned residues of the protein", "integer", 8, low=0),
        Column("n_gaps", "Gaps", "Number of residues of protein and chain that are aligned with a gap", "integer", 6, low=0),
        Column("n_unseen", "Unresolved", "Number of residues of the chain without coordinates", "integer", 10, low=0),
        Column("first", "From", "First aligned residue of the protein, from 1", "integer", 6, low=1),
        Column("last", "To", "Last aligned residue of the protein, from 1", "integer", 6, low=1),
        Column(
            "covered",
            "Covered on structure",
            "Fraction of the residues aligned with the chain that are covered by peptides",
            "percent",
            9,
            low=0,
            high=1,
            saved=".4f",
        ),
        _E_VALUE,
        _BITS,
        replace(
            STRUCTURE_HITS.by_name["tm_score_query"],
            name="tm_score",
            meaning="TM-score of a remote chain with the similar chain of the same fold, normalised by the length of the similar chain",
            low=0,
        ),
        Column("through", "Found by", "For remote chains: similar chain of the protein that has the same fold", width=16, is_nullable=True),
        Column("has_atoms", "Atoms", "True if the file has more atoms than Cα, which exposure requires", "truth", 6),
        Column("description", "Description", "Description of the chain in the file", width=40),
        Column("path", meaning="Path of the structure file"),
    ),
    shown="accession rank chain kind identity n_aligned n_gaps n_unseen first last covered e_value bit_score tm_score through has_atoms "
    "description",
    links="protein path",
    saved="accession rank chain kind identity n_aligned n_gaps n_unseen first last covered e_value bit_score tm_score through has_atoms "
    "description path",
)
SITES = Table.from_columns(
    "sites",
    "Modified residues",
    (
        _PROTEIN,
        _ACCESSION,
        _POSITION,
        _RESIDUE,
        Column("modification", "Modification", "Name of the modification", width=18),
        Column("mass", "Mass", "Monoisotopic mass of the modification", "number", 10, 4, unit="Da", saved=".6f", low=-1e6, high=1e6),
        _PSMS,
        Column(
            "n_covering",
            "Covered by",
            "Number of PSMs whose peptides cover the residue, with or without the modification",
            "integer",
            9,
            low=0,
        ),
        Column("n_peptides", "Peptides", "Number of peptidoforms with the modification at this site", "integer", 8, low=0),
        _INTENSITY,
        _Q,
        SHIFTED_PSMS.by_name["site_probability"],
        Column(
            "is_alternative",
            "Alternative",
            "True for a site that is less likely than another site of the same modification; it is not counted as a modified residue",
            "truth",
            9,
            is_optional=True,
        ),
        _CONSERVATION,
        _CHAIN,
        replace(_KIND, name="chain_kind", title="Kind of chain", is_nullable=True),
        _AUTHOR,
        _STATE,
        _EXPOSURE,
        Column(
            "place",
            "Location",
            "Location of the residue in the structure: surface, buried, or unknown",
            width=8,
            pattern="surface|buried|unknown",
        ),
        Column(
            "nearest_site",
            "Nearest site",
            "Position of the modified residue that is nearest in the structure",
            "integer",
            8,
            is_nullable=True,
        ),
        Column(
            "site_distance",
            "Distance",
            "Distance between the Cα atoms of the residue and the nearest site",
            "number",
            8,
            1,
            unit="Å",
            is_nullable=True,
            saved=".2f",
        ),
        Column("ligand", "Ligand", "Ligand in the structure file that is nearest to the residue", width=10, is_nullable=True),
        Column(
            "ligand_distance",
            "To ligand",
            "Distance between the nearest atoms of residue and ligand",
            "number",
            8,
            1,
            unit="Å",
            is_nullable=True,
            saved=".2f",
        ),
        _CHAIN_ROW,
    ),
    shown="accession position residue modification place exposure n_psms n_covering site_probability is_alternative author_number "
    "secondary_structure chain chain_kind conservation intensity nearest_site site_distance ligand ligand_distance mass n_peptides q_value",
    links="protein chain_row",
    saved="accession position residue modification mass n_psms n_covering n_peptides intensity q_value site_probability is_alternative "
    "conservation chain chain_kind author_number secondary_structure exposure place nearest_site site_distance ligand ligand_distance",
)
MISSED = Table.from_columns(
    "missed",
    "Uncovered regions",
    (
        _PROTEIN,
        _ACCESSION,
        Column("first", "From", "First residue of the region that no peptide covers, from 1", "integer", 6, low=1),
        Column("last", "To", "Last residue of the region, from 1", "integer", 6, low=1),
        Column("length", "Length", "Number of residues", "integer", 7, low=1),
        Column(
            "n_mapped",
            "On structure",
            "Number of residues of the region that are aligned with the most similar chain",
            "integer",
            10,
            low=0,
        ),
        _EXPOSURE,
        Column(
            "enzymes",
            "Enzymes to cover it",
            "Enzymes whose peptides of 7 to 30 residues would cover part of the region, and number of residues that they cover",
            "texts",
            44,
        ),
    ),
    shown="accession first last enzymes length n_mapped exposure",
    links="protein",
    saved="accession first last length n_mapped exposure enzymes",
)
CONTACTS = Table.from_columns(
    "contacts",
    "Contacts",
    (
        _PROTEIN,
        _ACCESSION,
        Column("first_position", "First", "Position of the residue in the protein, from 1", "integer", 7, low=1),
        Column("first_residue", "Residue", "One-character code of the residue", width=7, pattern="[A-Z]"),
        Column("second_position", "Second", "Position of the residue in the protein, from 1", "integer", 7, low=1),
        Column("second_residue", "Residue", "One-character code of the residue", width=7, pattern="[A-Z]"),
        Column(
            "alpha_distance", "Cα to Cα", "Distance between the Cα atoms of both residues", "number", 9, 1, unit="Å", low=0, saved=".2f"
        ),
        Column(
            "atom_distance",
            "Nearest atoms",
            "Distance between the nearest atoms of both residues",
            "number",
            10,
            1,
            unit="Å",
            is_nullable=True,
            low=0,
            saved=".2f",
        ),
        Column("is_modified", "Modified", "True if at least one of the residues is modified", "truth", 8),
        _CHAIN,
        _CHAIN_ROW,
    ),
    shown="accession first_position first_residue second_position second_residue alpha_distance atom_distance is_modified chain",
    links="protein chain_row",
    saved="accession first_position first_residue second_position second_residue alpha_distance atom_distance is_modified chain",
)
PARALOGUES = Table.from_columns(
    "paralogues",
    "Shared peptides",
    (
        _PROTEIN,
        _ACCESSION,
        Column("other", "Other protein", "Accession of another protein that contains some of the same peptides", width=18),
        Column("n_shared", "Shared", "Number of peptide sequences that both proteins contain", "integer", 7, low=0),
        Column("n_own", "Only in first", "Number of peptide sequences of the first protein only", "integer", 7, low=0),
        Column("n_of_other", "Only in other", "Number of peptide sequences of the other protein only", "integer", 8, low=0),
        Column(
            "supported",
            "Supported",
            "Proteins with identified peptides that the other protein does not contain: first, other, both or neither",
            width=9,
            pattern="first|other|both|neither",
        ),
    ),
    shown="accession other n_shared n_own n_of_other supported",
    links="protein",
    saved="accession other n_shared n_own n_of_other supported",
)
PEPTIDE_PLACES = Table.from_columns(
    "peptide_places",
    "Mapped peptides",
    (
        _PROTEIN,
        _ACCESSION,
        _PEPTIDE["peptide"],
        replace(_PEPTIDE["sequence"], pattern="[A-Z]+"),
        Column("first", "From", "Position of the first residue of the peptide in the protein, from 1", "integer", 6, low=1),
        Column("last", "To", "Position of the last residue of the peptide in the protein, from 1", "integer", 6, low=1),
        _PSMS,
        _INTENSITY,
        _Q,
        Column("n_places", "Occurrences", "Number of positions of the peptide in all analysed proteins", "integer", 11, low=1),
    ),
    shown="accession peptide first last n_psms intensity q_value n_places sequence",
    links="protein sequence",
    saved="accession peptide sequence first last n_psms intensity q_value n_places",
)
HOMOLOGUES = Table.from_columns(
    "homologues",
    "Homologues",
    (
        _PROTEIN,
        _ACCESSION,
        *described_columns(
            HITS.chosen(
                (
                    "rank",
                    "subject",
                    "description",
                    "identity",
                    "alignment_length",
                    "query_start",
                    "query_end",
                    "subject_start",
                    "subject_end",
                    "subject_length",
                    "e_value",
                    "bit_score",
                    "score",
                    "aligned_query",
                    "aligned_subject",
                )
            ),
            rank={"meaning": "Rank among the homologues of the protein, by score"},
            subject={"title": "Homologue"},
        ),
    ),
    shown="accession rank subject description identity alignment_length query_start query_end subject_start subject_end subject_length "
    "e_value bit_score score",
    links="protein",
    saved="accession rank subject description identity alignment_length query_start query_end subject_start subject_end subject_length "
    "e_value bit_score",
)
"""Table of homologues, if sequences to search were given; alignments of one protein are shown below each other."""
RESIDUES = Table.from_columns(
    "residues",
    "Residues",
    (
        _PROTEIN,
        _POSITION,
        _RESIDUE,
        Column("n_peptides", meaning="Number of peptidoforms that cover the residue", kind="integer", type="int32", low=0),
        Column("n_psms", meaning="Number of PSMs of the peptidoforms that cover the residue", kind="integer", type="int32", low=0),
        Column("q_value", meaning="Minimum q-value of the PSMs that cover the residue", kind="probability", is_nullable=True),
        Column("modifications", meaning="Names of the modifications found at the residue", kind="texts"),
        Column(
            "n_homologues", meaning="Number of homologues that have a residue aligned at this position", kind="integer", type="int32", low=0
        ),
        _CONSERVATION,
    ),
)
"""One row per residue of each protein."""
MAPPED_RESIDUES = Table.from_columns(
    "mapped_residues",
    "Residues on structures",
    (
        Column("chain_row", meaning="Row of the chain in the table of chains, from 0", kind="identifier", rows_of="chains"),
        _POSITION,
        Column(
            "chain_residue",
            meaning="Index of the residue in the chain, from 0; missing if the residue has no coordinates",
            kind="integer",
            is_nullable=True,
            low=0,
        ),
        Column("author_number", meaning="Residue number of the authors in the structure file, with insertion code", is_nullable=True),
        Column(
            "label_number",
            meaning="Residue number in the sequence of the molecule (label_seq_id of mmCIF)",
            kind="integer",
            is_nullable=True,
        ),
        Column("chain_letter", meaning="One-character code of the chain's residue", pattern="[A-Z*]", is_nullable=True),
        Column("is_identical", meaning="True if the residues of protein and chain are equal", kind="truth"),
        Column(
            "secondary_structure",
            meaning="Secondary structure of the residue: H helix, E strand, C coil",
            pattern="[HEC]",
            is_nullable=True,
        ),
        Column(
            "exposure",
            meaning="Solvent-accessible area of the residue, relative to the maximum area of the residue",
            kind="number",
            is_nullable=True,
            low=0,
            high=1,
        ),
    ),
)
"""Protein residues that are mapped onto a similar chain, or are in its sequence without coordinates."""

TABLES: tuple[Table, ...] = (PROTEINS, CHAINS, SITES, MISSED, CONTACTS, PARALOGUES, PEPTIDE_PLACES, HOMOLOGUES)
"""Tables that are shown, from proteins to details."""
STORED: tuple[Table, ...] = (RESIDUES, MAPPED_RESIDUES)


def text_file_name(table: Table) -> str:
    """Return the name of the text file of a table; it differs from the names of the text files of the identification."""
    return f"evidence_{table.name}.tsv"

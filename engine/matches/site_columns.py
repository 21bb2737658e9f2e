"""Columns of the tables of modification sites: by spectrum, by peptidoform, and by protein."""

from proteoscope.engine.results.columns import Column, Table

__all__ = ["PEPTIDOFORM_SITES", "PROTEIN_SITES", "PSM_SITES", "Q_VALUES_BY_RESIDUE", "RESIDUE_NAMES", "SITE_TABLES", "WINDOW_REACH"]

RESIDUE_NAMES = {"A": "alanine", "L": "leucine"}
"""Names of the decoy residues."""
WINDOW_REACH = 7
"""Number of residues on either side of a site in its window."""
_PEPTIDE = Column("peptide", "Peptide", "Peptide with its modifications at the most likely sites, in ProForma", width=26)
_MODIFICATION = Column("modification", "Modification", "Name of the modification", width=14)
_RESIDUE = Column("residue", "Residue", "Residue at the site, or N-term or C-term", width=7, pattern="[A-Z*]|[NC]-term")
_POSITION = Column(
    "position",
    "Position",
    "Position of the site in the peptide, from 1; 0 is the N-terminus, and the length plus 1 is the C-terminus",
    "integer",
    8,
    type="int16",
    low=0,
)
_PROBABILITY = Column(
    "site_probability",
    "Site prob.",
    "Probability that the modification is at the site, from the ions that distinguish the site from other sites",
    "number",
    9,
    4,
    low=0,
    high=1.001,
)
_SCORE = Column(
    "site_score",
    "Site score",
    "log10 of the odds of the site; missing if no other site is possible",
    "number",
    9,
    2,
    is_nullable=True,
)
_RATES = "Minimum false localisation rate at which the site is accepted, among sites of the same modification"
_Q_VALUE = Column(
    "localisation_q_value",
    "FLR",
    f"{_RATES}, from decoy residues; missing for peptides with no other possible site, which are not rated",
    "probability",
    9,
    is_nullable=True,
)
Q_VALUES_BY_RESIDUE = tuple(
    Column(
        f"q_value_by_{name}",
        f"FLR by {symbol}",
        f"{_RATES}, from {name} as the only decoy residue",
        "probability",
        9,
        is_shown=False,
        is_nullable=True,
    )
    for symbol, name in RESIDUE_NAMES.items()
)
_ALTERNATIVE = Column(
    "has_alternative", "Alternative", "True if the peptide has more possible sites than modifications", "truth", 9, is_shown=False
)
_MIXED_WITH = Column(
    "mixed_with",
    "Mixed with",
    "Position of the modification in a second isomer whose ions are in the same spectrum; missing if none was found",
    "integer",
    8,
    type="int16",
    low=0,
    is_nullable=True,
    is_optional=True,
)
_N_MIXED = Column(
    "n_mixed",
    "Mixed",
    "Number of these matches whose spectra also have ions of the modification at another site",
    "integer",
    7,
    is_optional=True,
    low=0,
)
_IS_DECOY = Column(
    "is_decoy", "Decoy", "True for decoy residues, which serve to estimate the false localisation rate", "truth", 6, is_shown=False
)
_PROTEINS = (
    Column("proteins", "Proteins", "Accessions of the proteins that contain the peptide", "texts", 24, entries="proteins"),
    Column(
        "protein_positions",
        "Protein positions",
        "Position of the site in each protein, from 1",
        "numbers",
        14,
        type="list<int32>",
        as_long_as="proteins",
    ),
)
_BEST = Column("best_psm", meaning="Row of the PSM with the best evidence, in the table of PSMs, from 0", kind="identifier", rows_of="psms")


def _table(name: str, title: str, columns: tuple[Column, ...]) -> Table:
    names = [column.name for column in columns]
    return Table.from_columns(
        name, title, columns, shown=" ".join(column.name for column in columns if column.title), saved=" ".join(names)
    )


PSM_SITES = _table(
    "psm_sites",
    "PSM sites",
    (
        Column("psm", meaning="Row of the match in the table of PSMs, from 0", kind="identifier", rows_of="psms"),
        _PEPTIDE,
        Column("charge", "z", "Charge of the precursor", "integer", 3, type="int8", low=1),
        _MODIFICATION,
        _RESIDUE,
        _POSITION,
        _PROBABILITY,
        _SCORE,
        _Q_VALUE,
        _ALTERNATIVE,
        _MIXED_WITH,
        Column(
            "possible_positions",
            "Possible positions",
            "Positions of all possible sites of the modification in the peptide",
            "numbers",
            16,
            type="list<int16>",
        ),
        Column(
            "probabilities",
            "Probabilities",
            "Probability of each possible site; their sum is the number of modifications",
            "numbers",
            16,
            as_long_as="possible_positions",
            low=0,
            high=1.001,
        ),
        *_PROTEINS,
    ),
)
"""Table of the most likely sites in each accepted match, one for each of its modifications."""
PEPTIDOFORM_SITES = _table(
    "peptidoform_sites",
    "Peptidoform sites",
    (
        _PEPTIDE,
        _MODIFICATION,
        _RESIDUE,
        _POSITION,
        _PROBABILITY,
        _SCORE,
        _Q_VALUE,
        *Q_VALUES_BY_RESIDUE,
        Column("n_psms", "PSMs", "Number of accepted matches with the modification at the site", "integer", 7),
        _N_MIXED,
        _ALTERNATIVE,
        _IS_DECOY,
        *_PROTEINS,
        _BEST,
    ),
)
"""Table of rated sites, combined over matches of one sequence with the same modifications; it includes decoy residues."""
PROTEIN_SITES = _table(
    "protein_sites",
    "Protein sites",
    (
        Column("protein", "Protein", "Accession of the protein", width=20),
        Column("position", "Position", "Position of the site in the protein, from 1", "integer", 8, type="int32", low=0),
        _RESIDUE,
        _MODIFICATION,
        _PROBABILITY,
        _SCORE,
        _Q_VALUE,
        *Q_VALUES_BY_RESIDUE,
        Column("n_psms", "PSMs", "Number of accepted matches with the modification at the site", "integer", 7),
        _N_MIXED,
        Column("n_peptidoforms", "Peptidoforms", "Number of peptidoforms with the modification at the site", "integer", 9),
        _ALTERNATIVE,
        _IS_DECOY,
        _PEPTIDE,
        Column(
            "sequence_window",
            "Sequence window",
            "Residues of the protein from the 7th before to the 7th after the site; _ beyond the ends of the protein",
            width=16,
            pattern="[A-Z*_]{15}",
        ),
        _BEST,
    ),
)
"""Table with one row for each modified residue of the proteins, with its best evidence; it includes decoy residues."""
SITE_TABLES = (PSM_SITES, PEPTIDOFORM_SITES, PROTEIN_SITES)
"""Tables of runs that localise modifications."""

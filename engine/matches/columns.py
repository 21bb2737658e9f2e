"""Columns of the PSM, peptide and protein group tables, shared by searches, writers, exports and the window."""

from dataclasses import replace
from typing import Any

import numpy as np

from proteoscope.engine.arrays import row_mask
from proteoscope.engine.formats.protein_names import NAMES
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.class_counts import CLASSES, TRANSLATED
from proteoscope.engine.matches.engine_scores import OTHER_SCORE, SCORE_COLUMNS
from proteoscope.engine.results.columns import Column, Rule, Table
from proteoscope.kernels.score_kinds import ordered_scores

__all__ = [
    "EXPORTED_PSMS",
    "FEATURE",
    "IMPORTED_PSMS",
    "KNOWN_PLACES",
    "LIBRARY_COLUMNS",
    "LIBRARY_PSMS",
    "MATCH_CLASS",
    "PEPTIDES",
    "PEPTIDE_COLUMNS",
    "PROTEINS",
    "PROTEINS_OF_SHIFTED",
    "PROTEIN_COLUMNS",
    "PSMS",
    "PSM_COLUMNS",
    "READING_FRAMES",
    "SHIFTED_PSMS",
    "SHIFT_COLUMNS",
    "described_columns",
]

FEATURE = r"feature_[a-z0-9_]{1,80}"
"""Regular expression of the names of rescoring features, which are also PSM columns."""
_RESIDUES = "[A-Z*]*"
_MAXIMUM_CHARGE = 127


def _score_columns(*, is_main: bool) -> list[Column]:
    """Return the columns of the main scores, which come first in text tables, or of all other scores if `is_main` is False."""
    return [
        Column(
            kind.column,
            kind.title,
            kind.formula,
            "number",
            kind.width,
            kind.decimals,
            is_shown=False,
            is_nullable=True,
            is_optional=kind.is_optional,
        )
        for kind in ordered_scores("files")
        if kind.is_main == is_main
    ]


PSM_COLUMNS = (
    Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False),
    Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=30, is_shown=False),
    Column("scan", "Scan", "Number of the scan in its file", "identifier", 7, is_nullable=True),
    Column("retention_time", "RT", "Retention time of the spectrum", "minutes", 8, unit="s", saved=".3f", is_nullable=True),
    Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4, saved=".6f"),
    Column("charge", "z", "Charge of the precursor", "integer", 3, type="int8", low=1, high=_MAXIMUM_CHARGE),
    Column(
        "observed_mass",
        "Observed mass",
        "Neutral mass of the precursor, from its m/z and charge",
        "number",
        11,
        4,
        is_shown=False,
        unit="Da",
        saved=".6f",
    ),
    Column("calculated_mass", "Calculated mass", "Neutral mass of the peptide", "number", 11, 4, is_shown=False, unit="Da", saved=".6f"),
    Column(
        "mass_error_ppm",
        "Error",
        "Observed minus calculated mass, after correction of the isotope error",
        "number",
        8,
        2,
        unit="ppm",
        saved=".4f",
        is_nullable=True,
    ),
    Column(
        "isotope_error",
        "Isotope",
        "Number of the isotope peak that was selected as the precursor; 0 is the monoisotopic peak",
        "integer",
        6,
        is_shown=False,
        type="int8",
    ),
    Column("peptide", "Peptide", "Peptide sequence with modifications, in ProForma", width=24),
    Column("sequence", meaning="Peptide sequence without modifications", pattern="[A-Z*]+"),
    Column("proteins", "Proteins", "Accessions of the proteins that contain the peptide", "texts", 26, entries="proteins"),
    Column(
        "missed_cleavages", "Missed cleavages", "Number of missed cleavage sites in the peptide", "integer", 9, is_shown=False, type="int8"
    ),
    Column("matched_ions", "Matched", "Number of matched fragment ions", "integer", 7, type="int16"),
    Column("total_ions", "Ions", "Number of theoretical fragment ions of the peptide", "integer", 6, is_shown=False, type="int16"),
    *_score_columns(is_main=True),
    Column("score", "Score", "Score that ranks the matches", "number", 7, is_nullable=True),
    Column(
        "delta_score",
        "Delta score",
        "Score minus the score of the next candidate of the spectrum",
        "number",
        8,
        3,
        is_shown=False,
        is_nullable=True,
    ),
    Column(
        "q_value",
        "q-value",
        "Minimum FDR at which the match is accepted",
        "probability",
        8,
        is_nullable=True,
    ),
    Column(
        "posterior_error_probability",
        "PEP",
        "Posterior error probability: probability that the match is wrong",
        "probability",
        9,
        is_shown=False,
        is_nullable=True,
    ),
    Column("rank", "Rank", "Rank of the match among the candidates of the spectrum, by score", "integer", 5, is_shown=False, type="int8"),
    Column("is_decoy", "Decoy", "True for decoys. Decoys are used to estimate the number of false matches", "truth", 6, is_shown=False),
    Column("psm_id", meaning="Row of the PSM in the table of PSMs, from 0", kind="identifier"),
    Column("spectrum_index", meaning="Index of the spectrum in its file, from 0", kind="identifier"),
    Column("spectrum", meaning="Row of the spectrum in the table of spectra, from 0", kind="identifier", rows_of="spectra"),
    Column(
        "peptide_q_value",
        meaning="Minimum FDR at which the peptide of the match is accepted",
        kind="probability",
        is_nullable=True,
    ),
    Column("search_score", meaning="Score of the search before rescoring", kind="number", is_nullable=True),
    *_score_columns(is_main=False),
    Column(
        "expectation",
        meaning="Expected number of candidates of the spectrum that reach this score by chance (E-value)",
        kind="e_value",
        is_nullable=True,
    ),
    Column(
        "modification_positions",
        meaning="Positions of the modifications in the peptide, from 1; 0 is the N-terminus, and the length plus 1 is the C-terminus",
        kind="numbers",
        type="list<int16>",
    ),
    Column(
        "modification_names",
        meaning="Names of the modifications, as in ProForma",
        kind="texts",
        as_long_as="modification_positions",
    ),
    Column(
        "modification_masses",
        meaning="Monoisotopic masses of the modifications in Da",
        kind="numbers",
        as_long_as="modification_positions",
        low=-1e6,
        high=1e6,
    ),
    Column(
        "modification_unimod",
        meaning="Numbers of the modifications in Unimod; missing for modifications without a number",
        kind="numbers",
        type="list<int32>",
        is_nullable=True,
        as_long_as="modification_positions",
    ),
    Column(
        "protein_starts",
        meaning="Position of the first residue of the peptide in each protein, from 1",
        kind="numbers",
        type="list<int32>",
        as_long_as="proteins",
    ),
    Column("residues_before", meaning="Residue before the peptide in each protein", kind="texts", as_long_as="proteins", pattern="[A-Z*-]"),
    Column("residues_after", meaning="Residue after the peptide in each protein", kind="texts", as_long_as="proteins", pattern="[A-Z*-]"),
)
"""Columns in the order of the result file; text tables end with ``is_decoy``."""

KNOWN_PLACES = Column(
    "known_modifications",
    "Known modifications",
    "Modifications of the peptide that the database annotates at the same sites: protein, residue and name",
    "texts",
    26,
    is_optional=True,
)
"""Additional column of PSMs and peptides in searches of known modifications."""

MATCH_CLASS = Column(
    "match_class",
    "Class",
    "Class of the match with its own error rate: specific (both peptide ends are sites of the enzyme), reading frame (the same, of a "
    "translated database), isotope error, semi-specific, non-specific, known modification, variant, contaminant, or second pass. If "
    "several apply, the last of them",
    width=12,
    pattern="|".join((TRANSLATED, *CLASSES)),
    is_optional=True,
)
"""Additional column of PSMs and peptides in identifications."""

SHIFT_COLUMNS = (
    Column(
        "mass_shift", "Shift", "Precursor mass, after recalibration, minus the mass of the unmodified peptide", "number", 10, 4, unit="Da"
    ),
    Column("modification", "Modification", "Name of the modification with the mass shift, or the mass shift", width=22),
    Column(
        "possible_names",
        "Possible names",
        "Names of all modifications that match mass shift and site, the most likely first. The masses of names joined by"
        ' "or" differ by less than the precursor tolerance',
        width=30,
    ),
    Column("site", "Site", "Residue or terminus at which the mass shift gives the highest score", width=7),
    Column(
        "site_probability",
        "Site prob.",
        "Probability that the mass shift is at the site, from the ions that distinguish the site from other sites",
        "number",
        9,
        3,
        is_nullable=True,
    ),
    Column(
        "shift_kind",
        "Kind",
        "Group of matches with its own error rates: none (no mass shift), named (a common mass shift), end (other peptide"
        " ends) or unnamed (any other shift)",
        width=8,
        is_shown=False,
        pattern="none|named|end|unnamed",
    ),
    Column(
        "shift_position",
        meaning="Position of the mass shift in the peptide, from 1; 0 is the N-terminus, and the length plus 1 is the C-terminus",
        kind="integer",
        type="int16",
        is_nullable=True,
    ),
    Column("carried_mass", meaning="Mass of the named modification in Da", kind="number", low=-1e6, high=1e6),
)
"""Additional PSM columns of open modification searches."""

LIBRARY_COLUMNS = (
    Column("library_spectrum", "Library spectrum", "Name of the library spectrum", width=26),
    Column(
        "similarity",
        "Similarity",
        "Similarity of spectrum and library spectrum, 0 to 1",
        "number",
        9,
        4,
        saved=".6f",
        low=0,
        high=1,
    ),
    Column(
        "mass_difference",
        "Mass diff.",
        "Observed mass minus the mass of the library spectrum, after correction of the isotope error if the masses are the same",
        "number",
        10,
        4,
        unit="Da",
        saved=".6f",
    ),
)
"""Additional PSM columns of spectral library searches."""

PEPTIDE_COLUMNS = (
    Column("peptide", "Peptide", "Peptide sequence with modifications, in ProForma", width=24),
    Column("sequence", "Sequence", "Peptide sequence without modifications", width=26, is_shown=False, pattern="[A-Z*]+"),
    Column("proteins", "Proteins", "Accessions of the proteins that contain the peptide", "texts", 30, entries="proteins"),
    Column("n_psms", "PSMs", "Number of spectra matched to the peptide", "integer", 6, type="int32"),
    Column("best_score", "Best score", "Score of the best spectrum", "number", 8, is_nullable=True),
    Column(
        "q_value",
        "q-value",
        "Minimum FDR at which the peptide is accepted",
        "probability",
        9,
        is_nullable=True,
    ),
    Column("is_decoy", "Decoy", "True for decoys. Decoys are used to estimate the number of false matches", "truth", 6, is_shown=False),
    Column(
        "posterior_error_probability",
        "PEP",
        "Posterior error probability: probability that the peptide is wrong",
        "probability",
        9,
        is_shown=False,
        is_nullable=True,
    ),
    Column("calculated_mass", "Mass", "Neutral monoisotopic mass of the peptide", "number", 10, 4, unit="Da", saved=".6f"),
    Column("best_psm", meaning="Row of the peptide's best PSM in the table of PSMs, from 0", kind="identifier", rows_of="psms"),
)

PROTEIN_COLUMNS = (
    Column(
        "group", "Protein group", "Accessions of all proteins in the group, which contain the same peptides", width=21, entries="proteins"
    ),
    Column("accessions", meaning="Accessions of all proteins in the group, which contain the same peptides", kind="texts"),
    Column("description", "Description", "Description of the first protein in the database", width=44, is_nullable=True),
    Column("n_peptides", "Peptides", "Number of distinct peptides of the group", "integer", 7, type="int32"),
    Column("n_unique_peptides", "Unique", "Number of peptides that no other group contains", "integer", 6, type="int32"),
    Column("n_psms", "PSMs", "Number of spectra matched to accepted peptides of the group", "integer", 5, type="int32"),
    Column(
        "coverage",
        "Coverage",
        "Fraction of the first protein's residues that are covered by peptides",
        "percent",
        8,
        saved=".4f",
        is_nullable=True,
    ),
    Column("score", "Score", "Score of the group", "number", 8, is_nullable=True),
    Column("q_value", "q-value", "Minimum FDR at which the protein group is accepted", "probability", 8, is_nullable=True),
    Column("is_decoy", "Decoy", "True for decoys. Decoys are used to estimate the number of false matches", "truth", 6, is_shown=False),
    Column(
        "razor_peptides",
        "Razor",
        "Number of peptides assigned to this group, including peptides that other groups also contain",
        "integer",
        6,
        is_shown=False,
        type="int32",
    ),
    Column(
        "posterior_error_probability",
        "PEP",
        "Posterior error probability: probability that the protein group is wrong",
        "probability",
        9,
        is_shown=False,
        is_nullable=True,
    ),
    Column("length", "Length", "Number of residues of the first protein", "integer", 7, is_shown=False, type="int32", low=0),
    Column("sequence", meaning="Residue sequence of the first protein", pattern=_RESIDUES),
)


def described_columns(columns: tuple[Column, ...], **others: dict[str, Any]) -> tuple[Column, ...]:
    """Return copies of the columns; `others` contains new values of attributes, by column name and attribute name.

    Examples
    --------
    >>> described_columns((Column("peptide", width=24),), peptide={"width": 28})[0].width
    28
    """
    return tuple(replace(column, **others[column.name]) if column.name in others else column for column in columns)


def _are_placed(positions: Any, sequences: Any) -> bool:
    """Return True if every modification lies on a residue or terminus of its peptide."""
    return _fit(positions, pa.compute.utf8_length(sequences))


def _is_placed(position: Any, sequences: Any) -> bool:
    in_range = pa.compute.and_(
        pa.compute.greater_equal(position, 0), pa.compute.less_equal(position, pa.compute.add(pa.compute.utf8_length(sequences), 1))
    )
    return bool(pa.compute.all(in_range).as_py() is not False)


def _is_among(position: Any, positions: Any) -> bool:
    """Return True if every value of `position` (the position of a mass shift, or null) is among the modification `positions` of its row."""
    counts = pa.compute.list_value_length(positions).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(counts)), counts)
    wanted = pa.compute.fill_null(position, -1).to_numpy(zero_copy_only=False)
    result = row_mask(len(counts), row[pa.compute.list_flatten(positions).to_numpy(zero_copy_only=False) == wanted[row]])
    return bool((result | (wanted < 0)).all())


def _fit(positions: Any, lengths: Any) -> bool:
    counts = pa.compute.list_value_length(positions).to_numpy(zero_copy_only=False)
    flat = pa.compute.list_flatten(positions).to_numpy(zero_copy_only=False)
    most = np.repeat(lengths.to_numpy(zero_copy_only=False), counts) + 1
    return bool(((flat >= 0) & (flat <= most)).all())


def _have_some(lists: Any) -> bool:
    return bool(pa.compute.all(pa.compute.greater(pa.compute.list_value_length(lists), 0)).as_py() is not False)


def _are_whole_codons(first: Any, last: Any) -> bool:
    """Return True if the length of every range of nucleotides, `first` to `last` inclusive, is a positive multiple of 3."""
    length = pa.compute.add(pa.compute.subtract(last, first), 1).to_numpy(zero_copy_only=False)
    return bool((length > 0).all() and (length % 3 == 0).all())


_OF_ENDS = (
    Rule(("modification_positions", "sequence"), "places modifications outside their peptides", _are_placed),
    Rule(("proteins",), "contains peptides without a protein", _have_some),
)

_SAVED_PSMS = " ".join(column.name for column in PSM_COLUMNS[: [column.name for column in PSM_COLUMNS].index("is_decoy") + 1])

_OF_CLASS = "Minimum FDR at which the match is accepted, among the matches of its class; missing if the class is too small for a rate"

PSMS = Table.from_columns(
    "psms",
    "PSMs",
    (*described_columns(PSM_COLUMNS, q_value={"meaning": _OF_CLASS}), MATCH_CLASS, KNOWN_PLACES),
    shown="scan peptide charge score q_value match_class mass_error_ppm precursor_mz matched_ions retention_time proteins "
    "known_modifications spectrum_file spectrum_id "
    f"posterior_error_probability delta_score {' '.join(kind.column for kind in ordered_scores('window'))} observed_mass calculated_mass "
    "isotope_error "
    "missed_cleavages total_ions rank is_decoy",
    links="psm_id peptide proteins is_decoy",
    saved=_SAVED_PSMS,
    rules=_OF_ENDS,
    more=FEATURE,
    takes_marks=True,
)
SHIFTED_PSMS = Table.from_columns(
    "psms",
    "PSMs",
    described_columns(
        (*PSM_COLUMNS, *SHIFT_COLUMNS),
        peptide={"width": 28},
        q_value={"meaning": "Minimum FDR at which the match is accepted, among the matches of the same kind"},
        hyperscore={"meaning": "Hyperscore with the mass shift at its site"},
        calculated_mass={"meaning": "Neutral mass of the peptide with the mass shift"},
    ),
    shown="scan peptide mass_shift modification possible_names site site_probability charge score q_value precursor_mz matched_ions "
    "retention_time proteins shift_kind spectrum_file spectrum_id posterior_error_probability hyperscore isotope_error observed_mass "
    "calculated_mass rank is_decoy",
    links="psm_id peptide modification proteins is_decoy",
    saved=_SAVED_PSMS,
    rules=(
        *_OF_ENDS,
        Rule(("shift_position", "sequence"), "places shifts outside their peptides", _is_placed),
        Rule(("shift_position", "modification_positions"), "places mass shifts where the peptide has no modification", _is_among),
    ),
    more=FEATURE,
    takes_marks=True,
)
PEPTIDES = Table.from_columns(
    "peptides",
    "Peptides",
    (*PEPTIDE_COLUMNS, MATCH_CLASS, KNOWN_PLACES),
    shown="peptide q_value match_class n_psms best_score calculated_mass proteins known_modifications sequence "
    "posterior_error_probability is_decoy",
    links="peptide sequence is_decoy best_psm proteins",
    saved="peptide sequence proteins n_psms best_score q_value is_decoy",
)
PROTEINS = Table.from_columns(
    "proteins",
    "Proteins",
    (*PROTEIN_COLUMNS, *NAMES),
    shown="group gene n_peptides n_psms coverage q_value description organism score n_unique_peptides razor_peptides "
    "posterior_error_probability length is_decoy",
    links="group accessions is_decoy description",
    saved="group accessions description n_peptides n_unique_peptides n_psms coverage score q_value is_decoy",
    rules=(Rule(("accessions",), "contains groups without a protein", _have_some),),
)
PROTEINS_OF_SHIFTED = replace(
    PROTEINS,
    columns=PROTEINS.chosen(["group", "gene", "n_peptides", "n_psms", "coverage", "q_value", "description", "organism", "is_decoy"]),
)
_UNPLACED: dict[str, dict[str, Any]] = {name: {"is_nullable": True} for name in ("protein_starts", "residues_before", "residues_after")}
"""Columns that may be null because they need the protein sequence."""
_COLUMNS_WITH_UNPLACED = described_columns(PSM_COLUMNS, **_UNPLACED)
IMPORTED_PSMS = Table.from_columns(
    "psms",
    "PSMs",
    (
        *described_columns(
            _COLUMNS_WITH_UNPLACED,
            score={
                "meaning": "Score of the search engine that ranks the matches; for E-values -log10 of the value. Higher scores are better"
            },
            rank={"meaning": "Rank of the match among the matches of the spectrum, by score"},
            matched_ions={"meaning": "Number of matched fragment ions, counted by this program"},
            total_ions={"meaning": "Number of theoretical fragment ions of the peptide, counted by this program"},
        ),
        *SCORE_COLUMNS,
    ),
    shown="scan peptide charge score q_value mass_error_ppm precursor_mz matched_ions retention_time proteins spectrum_file spectrum_id "
    f"posterior_error_probability {' '.join(column.name for column in SCORE_COLUMNS)} observed_mass calculated_mass isotope_error "
    "missed_cleavages total_ions rank is_decoy",
    links="psm_id peptide proteins is_decoy",
    saved=_SAVED_PSMS,
    rules=_OF_ENDS,
    more=OTHER_SCORE,
    takes_marks=True,
)
"""Description of the table of PSMs of other search engines, with the scores in their files."""
LIBRARY_PSMS = replace(
    IMPORTED_PSMS,
    stored=(*IMPORTED_PSMS.stored, *LIBRARY_COLUMNS),
    columns=(*IMPORTED_PSMS.columns[:3], *LIBRARY_COLUMNS, *IMPORTED_PSMS.columns[3:]),
)
"""Description of the table of PSMs of spectral library searches."""
EXPORTED_PSMS = replace(
    SHIFTED_PSMS,
    stored=(
        *_COLUMNS_WITH_UNPLACED,
        MATCH_CLASS,
        KNOWN_PLACES,
        *(replace(column, is_optional=True) for column in (*SHIFT_COLUMNS, *LIBRARY_COLUMNS)),
        *SCORE_COLUMNS,
    ),
    columns=PSMS.columns,
    rules=SHIFTED_PSMS.rules,
    more=f"{FEATURE}|{OTHER_SCORE}",
)
"""Description of the table of exported PSMs of any search, including imported PSMs."""
READING_FRAMES = Table.from_columns(
    "reading_frames",
    "Reading frames",
    (
        Column("accession", "Reading frame", "Name of the reading frame, as in the tables of proteins", width=28),
        Column("sequence", "Sequence", "Name of the nucleotide sequence that contains the reading frame", width=20),
        Column(
            "first", "First", "Position of the first nucleotide of the reading frame on the forward strand, from 1", "integer", 10, low=1
        ),
        Column("last", "Last", "Position of the last nucleotide of the reading frame on the forward strand, from 1", "integer", 10, low=1),
        Column("strand", "Strand", "Strand of the reading frame: forward (+) or reverse (-)", width=6, pattern="[+-]"),
    ),
    rules=(Rule(("first", "last"), "has reading frames that do not consist of whole codons", _are_whole_codons),),
)
"""Description of the table of nucleotide positions of reading frames with identified peptides, for runs that translated nucleotides."""

"""The result tables of a search for modified peptides."""

from __future__ import annotations

from engine.tables import Column, Table

__all__ = ["TABLES"]

_MODIFICATION_COLUMNS = (
    Column("name", "Modification", "Name in Unimod, what else explains the mass, or the mass itself", width=30),
    Column("mass", "Mass", "What the peptide is heavier by", "number", 10, 4, unit="Da"),
    Column("psms", "PSMs", "Spectra at the false discovery rate", "integer", 6),
    Column("peptides", "Peptides", "Different sequences", "integer", 8),
    Column("sites", "Sites", "Residues and termini, with how many spectra", width=30),
    Column("share_unmodified", "Unmodified", "Part of the peptides that were found without a shift too", "percent", 10, unit="%"),
    Column("decoys", "Decoys", "Decoys that passed with them", "integer", 6),
    Column("kind", "Kind", "Group in which the matches were judged: named, a usual shift, or unnamed, any other", width=8, is_shown=False),
)

_PSM_COLUMNS = (
    Column("scan", "Scan", "Number of the scan in its file", "identifier", 7),
    Column("peptide", "Peptide", "Sequence with modifications, in ProForma", width=28),
    Column("mass_shift", "Shift", "What the precursor is heavier by than the peptide, recalibrated", "number", 10, 4, unit="Da"),
    Column("modification", "Modification", "Name of the shift, or its mass", width=22),
    Column("site", "Site", "Residue or terminus where the shift fits best", width=7),
    Column("site_probability", "Site prob.", "Probability of that residue, from the ions that tell it from others", "number", 9, 3),
    Column("charge", "z", "Charge of the precursor", "integer", 3),
    Column("score", "Score", "Score that decides", "number", 7),
    Column("q_value", "q-value", "Smallest false discovery rate at which the match is accepted, in its group", "probability", 8),
    Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4),
    Column("matched_ions", "Matched", "Fragment ions found in the spectrum", "integer", 7),
    Column("retention_time", "RT", "Retention time", "minutes", 8, unit="min"),
    Column("proteins", "Proteins", "Accessions of the proteins that hold the peptide", "texts", 26),
    Column(
        "shift_kind",
        "Kind",
        "Judged as this group: none, named (a usual shift) or unnamed (any other)",
        width=8,
        is_shown=False,
    ),
    Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False),
    Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=30, is_shown=False),
    Column("posterior_error_probability", "PEP", "Probability that this match is wrong", "probability", 9, is_shown=False),
    Column("hyperscore", "Hyperscore", "Hyperscore with the shift at its site", "number", 9, is_shown=False),
    Column("isotope_error", "Isotope", "Isotope peak taken for the monoisotopic one", "integer", 6, is_shown=False),
    Column("observed_mass", "Observed mass", "Neutral mass of the precursor", "number", 11, 4, is_shown=False, unit="Da"),
    Column("calculated_mass", "Calculated mass", "Neutral mass of the peptide with its shift", "number", 11, 4, is_shown=False, unit="Da"),
    Column("rank", "Rank", "Place among the candidates of its spectrum", "integer", 5, is_shown=False),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

_PROTEIN_COLUMNS = (
    Column("group", "Protein group", "Accessions of the proteins that the same peptides prove", width=21),
    Column("n_peptides", "Peptides", "Different peptides", "integer", 7),
    Column("n_psms", "PSMs", "Spectra matched to the group's peptides", "integer", 5),
    Column("coverage", "Coverage", "Part of the first protein's residues that peptides cover", "percent", 8, unit="%"),
    Column("q_value", "q-value", "Smallest false discovery rate at which the group is accepted", "probability", 8),
    Column("description", "Description", "What the database says of the first protein", width=44),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

TABLES = (
    Table("modifications", "Modifications", _MODIFICATION_COLUMNS, ("name",)),
    Table("psms", "PSMs", _PSM_COLUMNS, ("psm_id", "peptide", "modification", "proteins", "is_decoy")),
    Table("proteins", "Proteins", _PROTEIN_COLUMNS, ("group", "accessions", "is_decoy", "description")),
)
"""From the modification to its PSMs; the proteins that they prove."""

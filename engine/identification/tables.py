"""The result tables of an identification."""

from __future__ import annotations

from engine.tables import Column, Table

__all__ = ["TABLES"]

_PROTEIN_COLUMNS = (
    Column("group", "Protein group", "Accessions of the proteins that the same peptides prove", width=21),
    Column("n_peptides", "Peptides", "Different peptides", "integer", 7),
    Column("n_psms", "PSMs", "Spectra matched to the group's peptides", "integer", 5),
    Column("coverage", "Coverage", "Part of the first protein's residues that peptides cover", "percent", 8, unit="%"),
    Column("q_value", "q-value", "Smallest false discovery rate at which the group is accepted", "probability", 8),
    Column("description", "Description", "What the database says of the first protein", width=44),
    Column("score", "Score", "Score of the group", "number", 8),
    Column("n_unique_peptides", "Unique", "Peptides that no other group has", "integer", 6),
    Column("razor_peptides", "Razor", "Peptides counted for this group, of all that have them", "integer", 6, is_shown=False),
    Column("posterior_error_probability", "PEP", "Probability that the group is wrong", "probability", 9, is_shown=False),
    Column("length", "Length", "Residues of the first protein", "integer", 7, is_shown=False),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

_PEPTIDE_COLUMNS = (
    Column("peptide", "Peptide", "Sequence with modifications, in ProForma", width=24),
    Column("q_value", "q-value", "Smallest false discovery rate at which the peptide is accepted", "probability", 9),
    Column("n_psms", "PSMs", "Spectra matched to it", "integer", 6),
    Column("best_score", "Best score", "Score of its best spectrum", "number", 8),
    Column("calculated_mass", "Mass", "Neutral monoisotopic mass", "number", 10, 4, unit="Da"),
    Column("proteins", "Proteins", "Accessions of the proteins that hold it", "texts", 30),
    Column("sequence", "Sequence", "Residues without modifications", width=26, is_shown=False),
    Column("posterior_error_probability", "PEP", "Probability that the peptide is wrong", "probability", 9, is_shown=False),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

_PSM_COLUMNS = (
    Column("scan", "Scan", "Number of the scan in its file", "identifier", 7),
    Column("peptide", "Peptide", "Sequence with modifications, in ProForma", width=24),
    Column("charge", "z", "Charge of the precursor", "integer", 3),
    Column("score", "Score", "Score that decides", "number", 7),
    Column("q_value", "q-value", "Smallest false discovery rate at which the match is accepted", "probability", 8),
    Column("mass_error_ppm", "Error", "Measured less calculated mass, after correction of the isotope", "number", 8, 2, unit="ppm"),
    Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4),
    Column("matched_ions", "Matched", "Fragment ions found in the spectrum", "integer", 7),
    Column("retention_time", "RT", "Retention time", "minutes", 8, unit="min"),
    Column("proteins", "Proteins", "Accessions of the proteins that hold the peptide", "texts", 26),
    Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False),
    Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=30, is_shown=False),
    Column("posterior_error_probability", "PEP", "Probability that this match is wrong", "probability", 9, is_shown=False),
    Column("delta_score", "Delta score", "Lead over the next candidate", "number", 8, 3, is_shown=False),
    Column(
        "hyperscore",
        "Hyperscore",
        "ln(matched N-terminal ions!) + ln(matched C-terminal ions!) + ln(1 + 100 × SDP), with a spectrum of unit length; the scale is this"
        " program's own, neither X!Tandem's nor Sage's",
        "number",
        9,
        is_shown=False,
    ),
    Column("xcorr", "XCorr", "Cross-correlation", "number", 8, 3, is_shown=False),
    Column("spectral_dot_product", "SDP", "Spectral dot product", "number", 8, 3, is_shown=False),
    Column("ksdp", "KSDP", "Kernel spectral dot product", "number", 8, 3, is_shown=False),
    Column("observed_mass", "Observed mass", "Neutral mass of the precursor", "number", 11, 4, is_shown=False, unit="Da"),
    Column("calculated_mass", "Calculated mass", "Neutral mass of the peptide", "number", 11, 4, is_shown=False, unit="Da"),
    Column("isotope_error", "Isotope", "Isotope peak taken for the monoisotopic one", "integer", 6, is_shown=False),
    Column("missed_cleavages", "Missed", "Missed cleavages", "integer", 6, is_shown=False),
    Column("total_ions", "Ions", "Fragment ions that the peptide can have", "integer", 6, is_shown=False),
    Column("rank", "Rank", "Place among the candidates of its spectrum", "integer", 5, is_shown=False),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

TABLES = (
    Table("proteins", "Proteins", _PROTEIN_COLUMNS, ("group", "accessions", "is_decoy", "description")),
    Table("peptides", "Peptides", _PEPTIDE_COLUMNS, ("peptide", "sequence", "is_decoy", "best_psm", "proteins")),
    Table("psms", "PSMs", _PSM_COLUMNS, ("psm_id", "peptide", "proteins", "is_decoy")),
)
"""From the group to its peptides and their PSMs."""

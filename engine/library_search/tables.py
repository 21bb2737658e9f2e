"""Result tables of a spectral library search."""

from dataclasses import replace

from proteoscope.engine.matches.columns import LIBRARY_COLUMNS, LIBRARY_PSMS, PEPTIDES, PROTEINS
from proteoscope.engine.matches.site_columns import SITE_TABLES
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["MATCHES", "REFERENCES", "STORED", "TABLES"]

_REFERENCE, _SIMILARITY, _DIFFERENCE = LIBRARY_COLUMNS

MATCHES = Table.from_columns(
    "matches",
    "Library matches",
    (
        Column("spectrum", meaning="Row of the spectrum in the table of spectra, from 0", kind="identifier", rows_of="spectra"),
        Column(
            "reference",
            meaning="Row of the library spectrum in the table of matched library spectra, from 0",
            kind="identifier",
            rows_of="references",
        ),
        Column("spectrum_file", "File", "File of the spectrum", width=24),
        Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=20),
        Column("scan", "Scan", "Number of the scan in its file", "identifier", 7, is_nullable=True),
        _REFERENCE,
        Column("peptide", "Peptide", "Peptide of the library spectrum, in ProForma", width=24, is_nullable=True),
        Column("formula", "Formula", "Chemical formula of the compound of the library spectrum", width=14, is_nullable=True),
        Column("inchikey", "InChIKey", "InChIKey of the compound of the library spectrum", width=28, is_nullable=True),
        Column("adduct", "Adduct", "Adduct of the library spectrum, such as [M+H]+", width=10, is_nullable=True),
        Column(
            "charge",
            "z",
            "Charge of the precursor; 0 if neither the spectrum nor the library contains a charge",
            "integer",
            3,
            type="int32",
        ),
        _SIMILARITY,
        Column(
            "matched_peaks",
            "Peaks",
            "Number of peaks of the library spectrum that match peaks of the spectrum",
            "integer",
            6,
            type="int32",
            low=0,
        ),
        _DIFFERENCE,
        Column(
            "modification",
            "Modification",
            "Name of the modification with the mass difference, or the mass difference; empty for equal masses",
            width=22,
        ),
        Column(
            "possible_names",
            "Possible names",
            "Names of all modifications that match the mass difference and the residues, the most likely first",
            width=30,
            is_shown=False,
        ),
        Column(
            "q_value",
            "q-value",
            "Minimum FDR at which the match is accepted, among the matches of the same kind",
            "probability",
            9,
            is_nullable=True,
        ),
        Column(
            "posterior_error_probability", "PEP", "Probability that the match is wrong", "probability", 9, is_shown=False, is_nullable=True
        ),
        Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4, unit="Th"),
        Column("retention_time", "RT", "Retention time", "minutes", 8, unit="s", is_nullable=True),
        Column(
            "kind",
            "Kind",
            "same: the spectrum has the mass of the library spectrum; shifted: it has another mass",
            width=8,
            pattern="same|shifted",
        ),
        Column("library", "Library", "Library file", width=24, is_shown=False),
        Column("library_entry", "Entry", "Number of the library spectrum in its file, from 1", "identifier", 8, is_shown=False),
    ),
    shown="scan library_spectrum peptide formula charge similarity q_value matched_peaks mass_difference modification kind adduct inchikey "
    "precursor_mz retention_time possible_names posterior_error_probability spectrum_file spectrum_id library library_entry",
    links="spectrum reference kind peptide",
    saved="spectrum_file spectrum_id scan library_spectrum peptide formula inchikey adduct charge similarity matched_peaks mass_difference "
    "modification possible_names q_value posterior_error_probability precursor_mz retention_time kind library library_entry",
    takes_marks=True,
)
"""Table with the most similar entry of each spectrum, without decoys."""

REFERENCES = replace(SPECTRA, name="references", title="Library spectra")
"""Table of the matched entries, with their peaks in the library."""

TABLES: tuple[Table, ...] = (PROTEINS, PEPTIDES, LIBRARY_PSMS, MATCHES)
"""Shown tables, from protein groups to peptides, PSMs and all matches."""
STORED: tuple[Table, ...] = (SPECTRA, REFERENCES, *SITE_TABLES)
"""Further stored tables."""

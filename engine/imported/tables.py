"""Result tables of an import: the tables of an identification, with the scores of the other search engine."""

from proteoscope.engine.matches.columns import IMPORTED_PSMS, PEPTIDES, PROTEINS
from proteoscope.engine.matches.site_columns import SITE_TABLES
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["LEFT_OUT", "LEFT_OUT_FILE", "STORED", "TABLES"]

LEFT_OUT_FILE = "left_out.tsv"
"""File name of the table of omitted matches."""

LEFT_OUT = Table.from_columns(
    "left_out",
    "Left out",
    (
        Column("file", "File", "Name of the result file", width=24),
        Column("line", "Line", "Line in the file, or number of the match if the file is not a table, from 1", "identifier", 8),
        Column("reason", "Reason", "Reason why the match was left out", width=30),
        Column("value", "Value", "Text that could not be read; empty for other reasons", width=16),
        Column("spectrum", "Spectrum", "Name of the spectrum in the file", width=40),
        Column("peptide", "Peptide", "Peptide sequence without modifications", width=24),
        Column("charge", "z", "Charge of the precursor; 0 if the file has none", "integer", 3),
    ),
    shown="file line reason value spectrum peptide charge",
    saved="file line reason value spectrum peptide charge",
)

TABLES: tuple[Table, ...] = (PROTEINS, PEPTIDES, IMPORTED_PSMS)
"""Shown tables, from protein groups to peptides and PSMs."""
STORED: tuple[Table, ...] = (SPECTRA, LEFT_OUT, *SITE_TABLES)
"""Further stored tables."""

"""Result tables of an import: the tables of an identification, with the scores of the engine."""

from __future__ import annotations

from proteoscope.engine.matches.columns import IMPORTED_PSMS, PEPTIDES, PROTEINS
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["LEFT_OUT", "LEFT_OUT_FILE", "STORED", "TABLES"]

LEFT_OUT_FILE = "left_out.tsv"
"""File name of the table of omitted matches."""

LEFT_OUT = Table.of(
    "left_out",
    "Left out",
    (
        Column("file", "File", "File of results", width=24),
        Column("line", "Line", "Its line in a table, or its number among the matches of the file, from 1", "identifier", 8),
        Column("reason", "Reason", "Reason why it is in no other table", width=30),
        Column("value", "Value", "Text that cannot be read, empty where the reason is another", width=16),
        Column("spectrum", "Spectrum", "What the file calls its spectrum", width=40),
        Column("peptide", "Peptide", "Its sequence without modifications", width=24),
        Column("charge", "z", "Charge, 0 where the file does not say", "integer", 3),
    ),
    shown="file line reason value spectrum peptide charge",
    saved="file line reason value spectrum peptide charge",
)

TABLES = (PROTEINS, PEPTIDES, IMPORTED_PSMS)
"""Shown tables, from protein groups to peptides and PSMs."""
STORED = (SPECTRA, LEFT_OUT)
"""Further stored tables."""

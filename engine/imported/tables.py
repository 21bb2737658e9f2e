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
        Column("file", "File", "Results file", width=24),
        Column("line", "Line", "Line of a table, or number of the match in the file, from 1", "identifier", 8),
        Column("reason", "Reason", "Reason why the match was left out", width=30),
        Column("value", "Value", "Unreadable text; empty for other reasons", width=16),
        Column("spectrum", "Spectrum", "Name of the spectrum in the file", width=40),
        Column("peptide", "Peptide", "Sequence without modifications", width=24),
        Column("charge", "z", "Charge; 0 if the file has none", "integer", 3),
    ),
    shown="file line reason value spectrum peptide charge",
    saved="file line reason value spectrum peptide charge",
)

TABLES = (PROTEINS, PEPTIDES, IMPORTED_PSMS)
"""Shown tables, from protein groups to peptides and PSMs."""
STORED = (SPECTRA, LEFT_OUT)
"""Further stored tables."""

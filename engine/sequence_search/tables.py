"""The result tables of a sequence search."""

from __future__ import annotations

from engine.tables import Column, Table

__all__ = ["TABLES"]

_E_VALUE = Column("e_value", "E-value", "Hits as good that chance gives in a database of this size", "e_value", 8)

_QUERY_COLUMNS = (
    Column("query", "Query", "Name of the query in its file", width=20),
    Column("n_hits", "Hits", "Hits up to the largest E-value", "integer", 6),
    Column("best_e_value", "Best E-value", "E-value of the best hit", "e_value", 10),
    Column("length", "Length", "Residues of the query", "integer", 7),
    Column("description", "Description", "What the file says of the query", width=40),
)

_HIT_COLUMNS = (
    Column("query", "Query", "Name of the query in its file", width=16, is_shown=False),
    Column("subject", "Subject", "Name of the sequence in the database", width=20),
    _E_VALUE,
    Column("bit_score", "Bits", "Bit score: comparable between matrices", "number", 7, 1),
    Column("identity", "Identity", "Part of the alignment's columns with the same residue twice", "percent", 8, unit="%"),
    Column("query_coverage", "Coverage", "Part of the query's residues that the alignment covers", "percent", 8, unit="%"),
    Column("description", "Description", "What the database says of the sequence", width=44),
    Column("alignment_length", "Columns", "Columns of the alignment, gaps among them", "integer", 8),
    Column("score", "Score", "Score of the alignment", "integer", 6),
    Column("subject_length", "Length", "Residues of the sequence in the database", "integer", 7),
    Column(
        "subject_coverage",
        "Subject coverage",
        "Part of the subject's residues that the alignment covers",
        "percent",
        8,
        is_shown=False,
        unit="%",
    ),
    Column("positives", "Positives", "Columns that the matrix scores above zero", "integer", 8, is_shown=False),
    Column("mismatches", "Mismatches", "Columns with two different residues", "integer", 9, is_shown=False),
    Column("gap_openings", "Gap openings", "Runs of gaps", "integer", 8, is_shown=False),
    Column("query_start", "Query from", "First residue of the query in the alignment", "integer", 9, is_shown=False),
    Column("query_end", "Query to", "Last residue of the query in the alignment", "integer", 9, is_shown=False),
    Column("subject_start", "Subject from", "First residue of the subject in the alignment", "integer", 9, is_shown=False),
    Column("subject_end", "Subject to", "Last residue of the subject in the alignment", "integer", 9, is_shown=False),
    Column("rank", "Rank", "Place among the hits of its query", "integer", 5, is_shown=False),
    Column("cigar", "CIGAR", "The alignment: M two residues, I the query's alone, D the subject's alone", width=20, is_shown=False),
)

TABLES = (
    Table("queries", "Queries", _QUERY_COLUMNS, ("query_index", "query", "length", "n_hits")),
    Table("hits", "Hits", _HIT_COLUMNS, ("query_index", "query", "query_length")),
)
"""From the query to its hits."""

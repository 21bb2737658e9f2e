"""The result tables of a structure search."""

from __future__ import annotations

from engine.tables import Column, Table

__all__ = ["TABLES"]

_QUERY_COLUMNS = (
    Column("query", "Query", "Name of the query: the stem of its file, and its chain where the file has several", width=18),
    Column("n_hits", "Hits", "Hits that are reported", "integer", 6),
    Column("best_tm_score", "Best TM-score", "Greatest TM-score of a hit, by the query's length", "number", 10, 3),
    Column("length", "Length", "Residues of the query", "integer", 7),
    Column("n_aligned", "Qualified", "Chains of the database that phase 1 admitted to phase 2", "integer", 9),
    Column("description", "Description", "What the file says of the query", width=40),
)

_HIT_COLUMNS = (
    Column("query", "Query", "Name of the query", width=16, is_shown=False),
    Column("rank", "Rank", "Place among the hits of its query", "integer", 5),
    Column("target", "Target", "Name of the chain in the database", width=18),
    Column("z_score", "z-score", "Standard deviations by which the score is above that of unrelated chains of this length", "number", 8, 1),
    Column("tm_score_query", "TM-score", "TM-score by the query's length; above 0.5 mostly the same fold", "number", 8, 3),
    Column("tm_score_target", "TM-score, target", "TM-score of the superposition by the target's length", "number", 8, 3),
    Column("rmsd", "RMSD", "Root mean square distance of the aligned pairs of Cα", "number", 7, 2, unit="Å"),
    Column("aligned_length", "Pairs", "Pairs of residues that are aligned", "integer", 7),
    Column("identity", "Identity", "Part of the pairs that are the same residue", "percent", 8, unit="%"),
    Column("query_coverage", "Coverage", "Part of the query's residues that are aligned", "percent", 8, unit="%"),
    Column("description", "Description", "What the file says of the chain", width=40),
    Column("score", "Score", "Score of the alignment of residues: bits, or as published", "number", 8, 1),
    Column("target_coverage", "Target coverage", "Part of the target's residues that are aligned", "percent", 8, is_shown=False, unit="%"),
    Column("target_length", "Length", "Residues of the target", "integer", 7, is_shown=False),
    Column("phase1_ratio", "Phase 1", "Score of the elements of secondary structure, by the query's own", "number", 8, 2, is_shown=False),
    Column("rotation", "Rotation", "R of x' = R x + t, which moves the target onto the query, row by row", width=20, is_shown=False),
    Column("translation", "Translation", "Three numbers, in Å: t of x' = R x + t", width=20, is_shown=False),
    Column("cigar", "CIGAR", "Both whole chains: M two residues, I the query's alone, D the target's alone", width=20, is_shown=False),
)

TABLES = (
    Table("queries", "Queries", _QUERY_COLUMNS, ("query_index", "query", "sequence", "states")),
    Table("hits", "Hits", _HIT_COLUMNS, ("query_index", "target_index", "target_sequence", "target_states")),
)
"""From the query to its hits."""

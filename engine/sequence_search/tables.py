"""Result tables of a sequence search."""

from proteoscope.engine.formats.features import FEATURES
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.sequences.hit_columns import HITS

__all__ = ["EXPECTATIONS", "QUERIES", "SCORES", "STORED", "TABLES"]

QUERIES = Table.from_columns(
    "queries",
    "Queries",
    (
        Column("query_index", meaning="Index of the query in the query files, from 0", kind="identifier", low=0),
        Column("query", "Query", "Name of the query in its file", width=20),
        Column("description", "Description", "Description of the query in the file", width=40),
        Column("length", "Length", "Number of residues of the query", "integer", 7, type="int32", low=0),
        Column("sequence", meaning="Residue sequence of the query", pattern="[A-Z*]*"),
        Column("n_hits", "Hits", "Number of hits with at most the maximum E-value", "integer", 6, type="int32", low=0),
        Column("best_e_value", "Best E-value", "E-value of the best hit", "e_value", 10, is_nullable=True),
        Column("lambda", meaning="Parameter lambda of the query's E-values", kind="number", is_nullable=True),
        Column("K", meaning="Parameter K of the query's E-values", kind="number", is_nullable=True),
        Column("statistics", meaning="Source of lambda and K: tables or fit"),
    ),
    shown="query n_hits best_e_value length description",
    links="query_index query length n_hits",
)
SCORES = Table.from_columns(
    "score_counts",
    "Scores",
    (
        Column("query_index", meaning="Index of the query in the query files, from 0", kind="identifier", low=0),
        Column(
            "score",
            meaning="Score of an alignment of the query with a sequence of the database",
            kind="integer",
            type="int32",
            low=-(1 << 30),
            high=1 << 30,
        ),
        Column("n_subjects", meaning="Number of database sequences with this score", kind="integer", low=0, high=1 << 40),
    ),
)
EXPECTATIONS = Table.from_columns(
    "score_expectations",
    "Expected scores by chance",
    (
        Column("query_index", meaning="Index of the query in the query files, from 0", kind="identifier", low=0),
        Column(
            "score",
            meaning="Score of an alignment of the query with a sequence of the database",
            kind="integer",
            type="int32",
            low=-(1 << 30),
            high=1 << 30,
        ),
        Column("n_expected", meaning="Number of database sequences expected to have this score by chance", kind="number", low=0, high=1e15),
    ),
)

TABLES = (QUERIES, HITS)
"""Result tables shown in the window, from queries to hits."""
STORED = (SCORES, EXPECTATIONS, FEATURES)
"""Result tables that are not shown: observed and expected numbers of subjects by score and query, and features."""

"""Result tables of a structure search."""

from typing import Any

from proteoscope.engine.formats.protein_names import NAMES
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.cigars import count_cigar_symbols
from proteoscope.engine.results.columns import Column, Rule, Table
from proteoscope.engine.structures.outputs import ROW_COLUMNS

__all__ = ["CLUSTERS", "COMPLEXES", "HITS", "QUERIES", "TABLES"]

_SAME_FOLD = (
    "Probability that target and query have the same fold (SCOPe), from both TM-scores and the length; it assumes that"
    " one chain in 76 of the database has this fold. Empty for chains under 30 residues"
)
_E_VALUE = (
    "Expected number of unrelated chains with at least this score in a database of this size. Empty in published mode"
    " and with changed weights or gap costs"
)
_Z_SCORE = (
    "Number of standard deviations of the score above the mean score of database chains of the same length. Of pairs"
    " with z-scores of 4 to 5, seven in eight have different folds"
)

_STATES = "[A-Za-z-]*"


def _spans(cigar: Any, target_length: Any) -> bool:
    """Return True if each CIGAR covers its complete target."""
    return bool((count_cigar_symbols(cigar, "MD") == target_length.to_numpy()).all())


def _are_as_long(sequence: Any, states: Any, length: Any) -> bool:
    lengths = pa.compute.utf8_length(sequence)
    return bool(lengths.equals(pa.compute.utf8_length(states)) and lengths.equals(length.cast(lengths.type)))


QUERIES = Table.from_columns(
    "queries",
    "Queries",
    (
        Column("query_index", meaning="Index of the query in the query files, from 0", kind="identifier", low=0),
        Column("query", "Query", "Name of the query: file name without extension, and chain if the file has several", width=18),
        Column("description", "Description", "Description of the query in the file", width=40),
        Column("length", "Length", "Number of residues of the query", "integer", 7, type="int32", low=0),
        Column("sequence", meaning="Residue sequence of the query", pattern="[A-Z*]*"),
        Column("states", meaning="Secondary structure of each residue, one character per residue", pattern=_STATES),
        Column("n_hits", "Hits", "Number of reported hits", "integer", 6, type="int32", low=0),
        Column(
            "n_aligned",
            "Aligned chains",
            "Number of chains in the database that passed the qualification threshold and were aligned",
            "integer",
            9,
            low=0,
            high=1 << 40,
        ),
        Column(
            "best_tm_score",
            "Best TM-score",
            "Maximum TM-score of all hits, normalised by the length of the query",
            "number",
            10,
            3,
            is_nullable=True,
        ),
    ),
    shown="query n_hits best_tm_score length n_aligned description",
    links="query_index query sequence states",
    rules=(Rule(("sequence", "states", "length"), "has numbers of residues and states that differ from the declared ones", _are_as_long),),
)

HITS = Table.from_columns(
    "hits",
    "Hits",
    (
        Column("query", "Query", "Name of the query", width=16, is_shown=False),
        Column("target", "Target", "Name of the chain in the database", width=18, entries="structures"),
        Column(
            "score",
            "Score",
            "Score of the residue alignment, in bits (sensitive mode) or the units of the paper (published mode)",
            "number",
            8,
            1,
            is_nullable=True,
        ),
        Column("z_score", "z-score", _Z_SCORE, "number", 8, 1, is_nullable=True),
        Column("e_value", "E-value", _E_VALUE, "e_value", 8, is_nullable=True, low=0),
        Column("same_fold_probability", "Same fold", _SAME_FOLD, "percent", 9, is_nullable=True, low=0, high=1),
        Column("aligned_length", "Pairs", "Number of aligned residue pairs", "integer", 7, type="int32", low=0),
        Column("identity", "Identity", "Fraction of the aligned pairs with identical residues", "percent", 8, low=0, high=1),
        Column(
            "rmsd",
            "RMSD",
            "Root mean square distance of the aligned Cα atoms after superposition",
            "number",
            7,
            2,
            unit="Å",
            is_nullable=True,
        ),
        Column(
            "tm_score_query",
            "TM-score",
            "TM-score normalised by the length of the query; above 0.5, folds are usually the same",
            "number",
            8,
            3,
            is_nullable=True,
        ),
        Column(
            "tm_score_target",
            "TM-score, target",
            "TM-score normalised by the length of the target",
            "number",
            8,
            3,
            is_nullable=True,
        ),
        Column("query_coverage", "Coverage", "Fraction of the query's residues that are aligned", "percent", 8, low=0, high=1),
        Column(
            "target_coverage",
            "Target coverage",
            "Fraction of the target's residues that are aligned",
            "percent",
            8,
            is_shown=False,
            low=0,
            high=1,
        ),
        Column(
            "phase1_ratio",
            "Phase 1",
            "Secondary structure score of phase 1, as a fraction of the score of the query with itself",
            "number",
            8,
            2,
            is_shown=False,
            is_nullable=True,
        ),
        Column(
            "rotation",
            "Rotation",
            "Rotation matrix R, row by row, of x' = R x + t, which superposes the target onto the query",
            "numbers",
            20,
            7,
            is_shown=False,
            type="double[9]",
            saved=".7f",
            low=-1e9,
            high=1e9,
        ),
        Column(
            "translation",
            "Translation",
            "Translation t in Å of x' = R x + t",
            width=20,
            is_shown=False,
            is_own_text=True,
            pattern=r"-?[0-9]{1,12}\.[0-9]{1,12}(?:,-?[0-9]{1,12}\.[0-9]{1,12}){2}",
        ),
        Column(
            "cigar",
            "CIGAR",
            "Alignment of both whole chains as CIGAR string: M two residues, I residue of the query only, D residue of the target only",
            width=20,
            is_shown=False,
            pattern="(?:[0-9]{1,9}[MID])*",
            is_own_text=True,
        ),
        Column("description", "Description", "Description of the target chain in its file", width=40),
        Column(
            "rank",
            "Rank",
            "Rank of the hit among all hits of the query: by the mean of both TM-scores plus 0.02 times the z-score (sensitive"
            " mode), or by the score (published mode)",
            "integer",
            9,
            type="int32",
        ),
        Column("query_index", meaning="Index of the query in the query files, from 0", kind="integer", type="int32", low=0),
        Column("target_index", meaning="Index of the chain in the database, from 0", kind="integer", type="int32", low=0),
        Column("target_length", "Length", "Number of residues of the target", "integer", 7, is_shown=False, type="int32", low=0),
        Column("target_sequence", meaning="Residue sequence of the target", pattern="[A-Z*]*"),
        Column("target_states", meaning="Secondary structure of each residue, one character per residue", pattern=_STATES),
        *NAMES,
    ),
    shown="query rank target same_fold_probability e_value z_score tm_score_query tm_score_target rmsd aligned_length identity "
    "query_coverage description gene organism score target_coverage target_length phase1_ratio rotation translation cigar",
    links="query_index target_index target_sequence target_states",
    saved=" ".join((*ROW_COLUMNS, *(column.name for column in NAMES))),
    rules=(
        Rule(
            ("target_sequence", "target_states", "target_length"),
            "has numbers of residues and states that differ from the declared ones",
            _are_as_long,
        ),
        Rule(("cigar", "target_length"), "does not span its target", _spans),
    ),
)

COMPLEXES = Table.from_columns(
    "complexes",
    "Complexes",
    (
        Column("query", meaning="Name of the query's file"),
        Column("target", meaning="Name of the target's file"),
        Column("query_chains", meaning="Number of chains in the query's file", kind="integer"),
        Column("target_chains", meaning="Number of chains in the target's file", kind="integer"),
        Column("matched_chains", meaning="Number of matched chain pairs", kind="integer"),
        Column("z_score", meaning="Sum of the z-scores of the matched chain pairs", kind="number"),
        Column("score", meaning="Sum of the scores of the matched chain pairs", kind="number"),
        Column(
            "tm_score_query",
            meaning="Mean TM-score of all chains of the query's file, weighted by their lengths; chains without a match count as 0",
            kind="number",
        ),
        Column(
            "tm_score_target",
            meaning="Mean TM-score of all chains of the target's file, weighted by their lengths; chains without a match count as 0",
            kind="number",
        ),
        Column("pairs", meaning="Matched chain pairs as query=target, separated by commas"),
    ),
    saved="query target query_chains target_chains matched_chains z_score score tm_score_query tm_score_target pairs",
)
"""Description of the table of database files whose chains match the chains of a query file."""

CLUSTERS = Table.from_columns(
    "clusters",
    "Clusters of folds",
    (
        Column("cluster", "Cluster", "Number of the cluster, from 1, the largest first", "integer", 6, type="int32", low=1),
        Column("size", "Chains", "Number of chains of the cluster", "integer", 6, type="int32", low=1),
        Column("representative", "Representative", "Name of the representative, the longest chain of the cluster", width=18),
        Column("chain", "Chain", "Name of the chain", width=12, entries="structures"),
        Column("length", "Length", "Number of residues of the chain", "integer", 7, type="int32", low=0),
        Column("tm_score", "TM-score", "TM-score with the representative, normalised by the longer chain", "number", 8, 3),
        Column("chain_index", meaning="Index of the chain in the database, from 0", kind="integer", type="int32", rows_of="queries"),
    ),
    shown="cluster size chain tm_score length representative",
    links="chain_index",
    saved="cluster size representative chain length tm_score",
)
"""Description of the table of clusters of folds, which exists only if all chains were compared with each other."""

TABLES = (QUERIES, HITS)
"""Result tables shown in the window, from queries to hits."""

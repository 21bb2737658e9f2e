"""Columns of the table of subjects that resemble queries."""

from typing import Any

from proteoscope.engine.formats.protein_names import NAMES
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Column, Rule, Table

__all__ = ["HITS"]

_MAXIMUM = (1 << 31) - 1
_DRAWN = "[A-Z*+ -]*"


def _place(name: str, title: str, meaning: str) -> Column:
    return Column(name, title, meaning, "integer", 9, is_shown=False, type="int32", low=0)


def _are_drawn(length: Any, query: Any, middle: Any, subject: Any) -> bool:
    """Return True if the lines of each alignment have its declared length."""
    lengths = [pa.compute.utf8_length(line) for line in (query, middle, subject)]
    return all(line_length.equals(length.cast(line_length.type)) for line_length in lengths)


def _lie_inside(start: Any, end: Any, length: Any) -> bool:
    inside = pa.compute.and_(pa.compute.less_equal(start, pa.compute.add(end, 1)), pa.compute.less_equal(end, length))
    return pa.compute.all(inside).as_py() is not False


HITS = Table.from_columns(
    "hits",
    "Hits",
    (
        Column("query", "Query", "Name of the query in its file", width=16, is_shown=False),
        Column("subject", "Subject", "Name of the sequence in the database", width=20, entries="proteins"),
        Column(
            "identity",
            "Identity",
            "Fraction of the alignment's columns with identical residues",
            "percent",
            8,
            saved=".4f",
            low=0,
            high=1,
        ),
        Column(
            "alignment_length", "Alignment columns", "Number of columns of the alignment, including gaps", "integer", 9, type="int32", low=0
        ),
        Column(
            "mismatches", "Mismatches", "Number of columns with two different residues", "integer", 9, is_shown=False, type="int32", low=0
        ),
        Column("gap_openings", "Gap openings", "Number of gaps in the alignment", "integer", 8, is_shown=False, type="int32", low=0),
        _place("query_start", "Query from", "First residue of the query in the alignment, from 1"),
        _place("query_end", "Query to", "Last residue of the query in the alignment, from 1"),
        _place("subject_start", "Subject from", "First residue of the database sequence in the alignment, from 1"),
        _place("subject_end", "Subject to", "Last residue of the database sequence in the alignment, from 1"),
        Column(
            "e_value",
            "E-value",
            "Expected number of hits with at least this score by chance in a database of this size",
            "e_value",
            8,
            saved=".3g",
            is_nullable=True,
        ),
        Column(
            "bit_score",
            "Bits",
            "Bit score: normalised score, comparable between substitution matrices",
            "number",
            7,
            1,
            saved=".1f",
            is_nullable=True,
        ),
        Column("score", "Score", "Score of the alignment", "integer", 6, type="int32"),
        Column(
            "positives",
            "Positives",
            "Number of columns whose two residues have a positive score in the matrix",
            "integer",
            8,
            is_shown=False,
            type="int32",
            low=0,
        ),
        Column(
            "query_coverage",
            "Coverage",
            "Fraction of the query's residues that are aligned",
            "percent",
            8,
            saved=".4f",
            low=0,
            high=1,
        ),
        Column(
            "subject_coverage",
            "Subject coverage",
            "Fraction of the residues of the database sequence that are aligned",
            "percent",
            8,
            is_shown=False,
            saved=".4f",
            low=0,
            high=1,
        ),
        Column(
            "cigar",
            "CIGAR",
            "Alignment as CIGAR string: M two residues, I residue of the query only, D residue of the database sequence only",
            width=20,
            is_shown=False,
            pattern="(?:[0-9]{1,9}[MID=X])*",
            is_own_text=True,
        ),
        Column("subject_length", "Length", "Number of residues of the sequence in the database", "integer", 7, type="int32", low=0),
        Column("description", "Description", "Description of the sequence in the database", width=44),
        *NAMES,
        Column("query_index", meaning="Index of the query in the query files, from 0", kind="identifier", low=0, high=1 << 62),
        Column("subject_index", meaning="Index of the sequence in the database files, from 0", kind="identifier", low=0, high=1 << 62),
        Column("query_length", meaning="Number of residues of the query", kind="integer", type="int32", low=0),
        Column(
            "rank", "Rank", "Rank of the hit among all hits of the query", "integer", 5, is_shown=False, type="int32", low=0, high=_MAXIMUM
        ),
        Column("aligned_query", meaning="Row of the query in the alignment, with gaps", pattern=_DRAWN),
        Column("aligned_middle", meaning="Row between both sequences, which marks equal and similar residues", pattern=_DRAWN),
        Column("aligned_subject", meaning="Row of the database sequence in the alignment, with gaps", pattern=_DRAWN),
    ),
    shown="query subject gene e_value bit_score identity query_coverage description organism alignment_length score subject_length "
    "subject_coverage positives mismatches gap_openings query_start query_end subject_start subject_end rank cigar",
    links="query_index query query_length",
    saved="query subject identity alignment_length mismatches gap_openings query_start query_end subject_start subject_end e_value "
    "bit_score score positives query_coverage subject_coverage cigar subject_length description gene organism",
    rules=(
        Rule(("alignment_length", "aligned_query", "aligned_middle", "aligned_subject"), "has lines of another length", _are_drawn),
        Rule(("query_start", "query_end", "query_length"), "has positions outside their queries", _lie_inside),
        Rule(("subject_start", "subject_end", "subject_length"), "has positions outside their subjects", _lie_inside),
    ),
)

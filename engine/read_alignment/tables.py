"""Result tables of a read alignment."""

from typing import Any

from proteoscope.engine import results
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Column, Rule, Table

__all__ = ["ALIGNMENTS", "PATTERNS", "STORED", "TABLES", "TEXTS"]

_CIGAR = "(?:[0-9]{1,9}[=XID])*"
_MATE = Column(
    "mate",
    "Mate",
    "Number of the read in its pair, 1 or 2; empty for reads without mates",
    "integer",
    6,
    is_shown=False,
    type="int32",
    is_nullable=True,
    low=1,
    high=2,
)


def _place(name: str, title: str, meaning: str) -> Column:
    return Column(name, title, meaning, "integer", 9, type="int32", is_nullable=True, low=0)


def _are_within(start: Any, end: Any, length: Any) -> bool:
    """Return True if the positions of every row are valid: start and end are both missing, or both lie in the sequence.

    The start is at most one past the end, which is the case for an empty range.
    """
    is_known = pa.compute.is_valid(start)
    if not is_known.equals(pa.compute.is_valid(end)) or pa.compute.any(pa.compute.and_(is_known, pa.compute.is_null(length))).as_py():
        return False
    inside = pa.compute.and_(
        pa.compute.and_(pa.compute.greater_equal(start, 1), pa.compute.less_equal(start, pa.compute.add(end, 1))),
        pa.compute.less_equal(end, length),
    )
    return pa.compute.all(inside).as_py() is not False


def _are_drawn(cigar: Any, text_start: Any, text_end: Any, pattern_start: Any, pattern_end: Any) -> bool:
    """Return True if the lengths of the CIGAR string in reference and read agree with the positions in every row."""
    is_known = pa.compute.is_valid(text_start)
    if not is_known.equals(pa.compute.is_valid(cigar)):
        return False
    cigar, *positions = (column.filter(is_known) for column in (cigar, text_start, text_end, pattern_start, pattern_end))
    if any(position.null_count for position in positions):
        return False
    of_text, of_pattern = results.cigars.count_cigar_symbols(cigar, "=XD"), results.cigars.count_cigar_symbols(cigar, "=XI")
    first, last, begin, end = (position.to_numpy().astype("int64") for position in positions)
    return bool((of_text == last - first + 1).all() and (of_pattern == end - begin + 1).all())


def _belong_together(score: Any, *others: Any) -> bool:
    """Return True if the columns `others` have values in all rows with a score, and in no other rows."""
    is_known = pa.compute.is_valid(score)
    return all(is_known.equals(pa.compute.is_valid(other)) for other in others)


ALIGNMENTS = Table.from_columns(
    "alignments",
    "Alignments",
    (
        Column("text", "Reference", "Name of the reference sequence; empty for unmapped reads", width=18, is_nullable=True),
        Column("pattern", "Read", "Name of the read", width=18),
        Column(
            "score",
            "Score",
            "Score of the best alignment; empty if there is no alignment within the maximum number of gaps",
            "integer",
            8,
            type="int32",
            is_nullable=True,
            saved_null="-inf",
        ),
        Column("gaps", "Gaps", "Number of gaps in the alignment", "integer", 6, type="int32", is_nullable=True, low=0, high=1 << 20),
        Column(
            "identity",
            "Identity",
            "Fraction of the alignment's columns with equal bases or residues",
            "percent",
            8,
            saved=".4f",
            is_nullable=True,
            low=0,
            high=1,
        ),
        _place("text_start", "Reference from", "First aligned position of the reference, from 1"),
        _place("text_end", "Reference to", "Last aligned position of the reference, from 1"),
        _place("pattern_start", "Read from", "First aligned position of the read as given, from 1"),
        _place("pattern_end", "Read to", "Last aligned position of the read as given, from 1"),
        Column(
            "strand",
            "Strand",
            "Aligned strand of the read: + the read as given, - its reverse complement",
            width=7,
            is_nullable=True,
            pattern="[+-]",
        ),
        Column(
            "cigar",
            "CIGAR",
            "CIGAR string: = equal bases, X different bases, I bases only in the read, D bases only in the reference",
            width=24,
            is_nullable=True,
            pattern=_CIGAR,
        ),
        Column(
            "text_length",
            "Reference length",
            "Length of the reference",
            "integer",
            8,
            is_shown=False,
            type="int32",
            is_nullable=True,
            low=0,
        ),
        Column("pattern_length", "Read length", "Length of the read", "integer", 8, is_shown=False, type="int32", low=0),
        Column(
            "mapping_quality",
            "Mapping quality",
            "-10 log10 of the probability that the mapped position is wrong, 0 to 60; empty for reads that were not mapped",
            "integer",
            8,
            is_shown=False,
            type="int32",
            is_nullable=True,
            low=0,
            high=255,
        ),
        _MATE,
        Column(
            "md",
            "MD",
            "Bases of the reference that differ from the read, as in the field MD of SAM",
            width=24,
            is_shown=False,
            is_nullable=True,
            pattern="[0-9A-Za-z^*]*",
        ),
        Column("pattern_row", meaning="Row of the read in the table of reads, from 0", kind="identifier", rows_of="patterns"),
        Column(
            "text_row",
            meaning="Row of the reference in the table of references, from 0",
            kind="identifier",
            rows_of="texts",
            is_nullable=True,
        ),
        Column(
            "is_proper_pair",
            meaning="True if both mates have the orientation and distance that reads of one fragment have",
            kind="truth",
            is_nullable=True,
        ),
    ),
    shown="text pattern score gaps identity text_start text_end pattern_start pattern_end strand cigar text_length pattern_length "
    "mapping_quality mate md",
    links="pattern_row text_row is_proper_pair",
    saved="text pattern score gaps identity text_start text_end pattern_start pattern_end strand cigar text_length pattern_length",
    rules=(
        Rule(("text_start", "text_end", "text_length"), "has positions outside their references", _are_within),
        Rule(("pattern_start", "pattern_end", "pattern_length"), "has positions outside their reads", _are_within),
        Rule(("score", "gaps", "identity", "text_start", "strand", "cigar"), "has alignments with missing values", _belong_together),
        Rule(
            ("cigar", "text_start", "text_end", "pattern_start", "pattern_end"), "does not have the length of the aligned parts", _are_drawn
        ),
    ),
)
TABLES = (ALIGNMENTS,)
PATTERNS = Table.from_columns(
    "patterns",
    "Reads",
    (
        Column("pattern", "Read", "Name of the read", width=18),
        Column("sequence", "Sequence", "Sequence of the read as given, in upper case", width=40, pattern="[A-Z*]*"),
        Column(
            "qualities",
            "Qualities",
            "Base qualities as written in the FASTQ file; empty for reads without qualities",
            width=40,
            pattern="[!-~]*",
        ),
        _MATE,
    ),
    shown="pattern sequence qualities mate",
)
"""Table of reads; the column ``pattern_row`` of an alignment is a row number of this table."""
TEXTS = Table.from_columns(
    "texts",
    "References",
    (
        Column("text", "Reference", "Name of the reference sequence", width=18),
        Column("length", "Length", "Length of the reference", "integer", 10, type="int32", low=0),
    ),
    shown="text length",
)
"""Table of references; the column ``text_row`` of an alignment is a row number of this table."""
STORED = (PATTERNS, TEXTS)

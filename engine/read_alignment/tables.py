"""The result tables of a read alignment."""

from __future__ import annotations

from engine.tables import Column, Table

__all__ = ["COLUMNS", "DECIMALS", "PATTERNS", "TABLES", "TEXTS"]

_COLUMNS = (
    Column("text", "Text", "Name of the text; empty where no place was found", width=18),
    Column("pattern", "Pattern", "Name of the pattern", width=18),
    Column("score", "Score", "Score of the best alignment; empty where there is none with so few gaps", "integer", 8),
    Column("gaps", "Gaps", "Gaps of the alignment", "integer", 6),
    Column("identity", "Identity", "Part of the alignment's columns that pair the same letter", "percent", 8, unit="%"),
    Column("text_start", "Text from", "First aligned letter of the text, counted from 1", "integer", 9),
    Column("text_end", "Text to", "Last aligned letter of the text", "integer", 9),
    Column("pattern_start", "Pattern from", "First aligned letter of the pattern as it was given, counted from 1", "integer", 9),
    Column("pattern_end", "Pattern to", "Last aligned letter of the pattern as it was given", "integer", 9),
    Column("strand", "Strand", "+: the pattern as it was given; -: its reverse complement is aligned", width=7),
    Column("cigar", "CIGAR", "Along the text: = the same letter, X others, I the pattern's letter alone, D the text's", width=24),
    Column("text_length", "Text length", "Letters of the text", "integer", 8, is_shown=False),
    Column("pattern_length", "Pattern length", "Letters of the pattern", "integer", 8, is_shown=False),
)
_MORE = (
    Column(
        "mapping_quality", "Mapping quality", "-10 log10 of the chance that the place is wrong, 0 to 60; empty where none was looked for",
        "integer", 8, is_shown=False,
    ),
    Column("mate", "Mate", "1 or 2: which of a pair of reads; empty where reads have no mates", "integer", 6, is_shown=False),
    Column("md", "MD", "The text's letters where they differ, as SAM's field MD has them", width=24, is_shown=False),
)  # fmt: skip

TABLES = (Table("alignments", "Alignments", (*_COLUMNS, *_MORE), links=("pattern_row", "text_row", "is_proper_pair")),)
PATTERNS = Table(
    "patterns",
    "Patterns",
    (
        Column("pattern", "Pattern", "Name of the pattern", width=18),
        Column("letters", "Letters", "The pattern as it was given, in capitals", width=40),
        Column("qualities", "Qualities", "The qualities as the FASTQ file has them; empty where there are none", width=40),
        Column("mate", "Mate", "1 or 2: which of a pair of reads; empty where reads have no mates", "integer", 6),
    ),
)
"""Row `pattern_row` of it belongs to an alignment."""
TEXTS = Table(
    "texts",
    "Texts",
    (Column("text", "Text", "Name of the text", width=18), Column("length", "Length", "Letters of the text", "integer", 10)),
)
"""Row `text_row` of it belongs to an alignment."""
COLUMNS = tuple(one.name for one in _COLUMNS)
"""Columns of the file and their order, which others rely on."""
DECIMALS = {"identity": 4}

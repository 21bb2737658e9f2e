"""Alignment of two sequences, with its columns, residue numbers and text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["GAP", "IDENTICAL", "MISMATCH", "POSITIVE", "AlignedPair"]

MISMATCH, POSITIVE, IDENTICAL, GAP = range(4)
_DASH, _PLUS = ord("-"), ord("+")
_TITLE_CHARACTERS = 7
"""Minimum width of the titles left of the lines, in characters."""
_WIDTH = 60


@dataclass(frozen=True)
class AlignedPair:
    """Local alignment of a query and a subject.

    Attributes
    ----------
    query_name, subject_name
        Names of both sequences.
    description
        Description of the subject.
    query_start, subject_start
        Residue numbers of the first aligned residues, from 1.
    query, middle, subject
        Lines of the alignment, of equal length, with ``-`` for gaps. `middle` contains the residue of identical columns, ``+`` for other
        columns with a positive score, and a blank elsewhere.
    facts
        Lines of statistics, which are also part of `text`; may be empty.
    hit
        Values of the hit by column name of the table of hits; may be empty.
    """

    query_name: str
    subject_name: str
    description: str
    query_start: int
    subject_start: int
    query: str
    middle: str
    subject: str
    facts: tuple[str, ...] = ()
    hit: Mapping[str, Any] = field(default_factory=dict)

    titles: ClassVar[tuple[str, str]] = ("Query", "Subject")
    """Titles left of the query line and the subject line."""
    has_states: ClassVar[bool] = False
    """True if secondary structure is drawn above the query and below the subject."""
    kind_names: ClassVar[Mapping[int, str]] = {IDENTICAL: "identical", POSITIVE: "positive", MISMATCH: "not similar", GAP: "gap"}
    """Display name of each kind of column."""

    @property
    def legend(self) -> tuple[tuple[int, str], ...]:
        """Kinds of columns that a legend explains, each with its text."""
        return ((IDENTICAL, "identical"), (POSITIVE, "positive (+)"), (GAP, "gap (-)"))

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """Kind of each column, shape (columns,), uint8: `IDENTICAL`, `POSITIVE`, `MISMATCH` or `GAP`."""
        query, middle, subject = (np.frombuffer(line.encode("ascii"), np.uint8) for line in (self.query, self.middle, self.subject))
        kinds = np.full(len(query), MISMATCH, np.uint8)
        kinds[middle == _PLUS] = POSITIVE
        kinds[query == subject] = IDENTICAL
        kinds[(query == _DASH) | (subject == _DASH)] = GAP
        return kinds

    @cached_property
    def _before(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of residues of the query and of the subject before each column, (columns + 1,) each; the last value is the total."""
        lines = (np.frombuffer(line.encode("ascii"), np.uint8) for line in (self.query, self.subject))
        query, subject = (np.concatenate(([0], np.cumsum(line != _DASH))) for line in lines)
        return query, subject

    def numbers(self, first: int, last: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the first and last residue numbers of query and subject in the columns `first` to `last` (exclusive).

        If a sequence has only gaps in these columns, its first and last number are both that of the preceding residue.
        """
        ends = []
        for start, before in zip((self.query_start, self.subject_start), self._before, strict=True):
            end = start + int(before[last]) - 1
            ends.append((min(start + int(before[first]), end), end))
        return ends[0], ends[1]

    def labels(self, first: int, last: int) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the residue numbers that `numbers` returns, as texts for display."""
        (a, b), (c, d) = self.numbers(first, last)
        return (str(a), str(b)), (str(c), str(d))

    @cached_property
    def widest_label(self) -> int:
        """Length of the longest label in characters."""
        return max((len(end) for ends in self.labels(0, len(self)) for end in ends), default=1) if len(self) else 1

    def states_text(self, first: int, last: int) -> tuple[str, str]:
        """Return the lines of text to write above and below the columns `first` to `last` (exclusive); '' for no line."""
        return "", ""

    def text(self, width: int = _WIDTH) -> str:
        """Return the alignment as text in the format of BLAST, in blocks of `width` columns."""
        digits = self.widest_label
        longest = max(_TITLE_CHARACTERS, *map(len, self.titles))
        names, indent = [f"{title:<{longest}}" for title in self.titles], " " * (longest + 2)
        lines = [f"{self.query_name} x {self.subject_name} {self.description}".rstrip(), *self.facts, ""]
        for first in range(0, len(self), width):
            last = min(first + width, len(self))
            query, subject = self.labels(first, last)
            above, below = (f"{indent}{'':>{digits}}  {states}".rstrip() for states in self.states_text(first, last))
            lines += [
                *([above] if self.has_states else []),
                f"{names[0]}  {query[0]:>{digits}}  {self.query[first:last]}  {query[1]}",
                f"{indent}{'':>{digits}}  {self.middle[first:last]}".rstrip(),
                f"{names[1]}  {subject[0]:>{digits}}  {self.subject[first:last]}  {subject[1]}",
                *([below] if self.has_states else []),
                "",
            ]
        return "\n".join(lines)

    def fasta(self) -> str:
        """Return the aligned ranges of both sequences, with gaps, as FASTA."""
        records = []
        ends = self.labels(0, len(self)) if len(self) else (("0", "0"), ("0", "0"))
        for name, note, symbols, (start, end) in (
            (self.query_name, "", self.query, ends[0]),
            (self.subject_name, f" {self.description}" if self.description else "", self.subject, ends[1]),
        ):
            wrapped = [symbols[first : first + _WIDTH] for first in range(0, len(symbols), _WIDTH)]
            records.append("\n".join([f">{name}/{start}-{end}{note}", *wrapped]))
        return "\n".join(records) + "\n"

    def column_text(self, column: int) -> str:
        """Return the tooltip of a column, such as ``Query L45, subject V52: positive``."""
        (query, _), (subject, _) = self.numbers(column, column + 1)
        parts = [
            f"{name} gap after {number}" if symbol == "-" else f"{name} {symbol}{number}"
            for name, symbol, number in (
                (self.titles[0], self.query[column], query),
                (self.titles[1].lower(), self.subject[column], subject),
            )
        ]
        return f"{parts[0]}, {parts[1]}: {self.kind_names[int(self.kinds[column])]}"

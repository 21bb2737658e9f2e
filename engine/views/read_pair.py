"""Alignment of a read with a reference, by column, from the SAM fields CIGAR and MD, with base qualities if known."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.read_alignment.sequences import other_strand
from proteoscope.engine.sequences.matrices import Matrix, encode
from proteoscope.engine.views.aligned_pair import GAP, IDENTICAL, POSITIVE, AlignedPair

__all__ = ["DIFFERENT", "UNSURE_DIFFERENT", "UNSURE_IDENTICAL", "ReadPair", "draw_lines"]

DIFFERENT, UNSURE_IDENTICAL, UNSURE_DIFFERENT = 20, 21, 22
"""Kinds of columns: mismatch; match or mismatch with a low base quality."""
_MINIMUM_QUALITY = 20
"""Minimum Phred quality of a base that is considered certain: one error in a hundred."""
_FIRST_QUALITY = ord("!")
_DASH = ord("-")
_RUNS, _DIFFERENCES = re.compile(r"(\d+)([=XID])"), re.compile(r"(\d+)|\^?([A-Z*]+)")


def draw_lines(pattern: str, cigar: str, md: str) -> tuple[str, str]:
    """Return the aligned lines of read and reference, with ``-`` for gaps.

    Parameters
    ----------
    pattern
        Aligned bases of the read, in the direction of the reference.
    md
        Differing bases of the reference, as in the SAM field MD.

    Raises
    ------
    ValueError
        If the bases, CIGAR and MD do not belong together.

    >>> draw_lines("ACGTTA", "2=1X1I2=2D", "2T2^GG0")
    ('ACGTTA--', 'ACT-TAGG')
    """
    runs = _RUNS.findall(cigar)
    kinds = np.repeat(np.array([kind for _, kind in runs], "U1"), np.array([int(n) for n, _ in runs], np.int64))
    query, subject = (np.full(len(kinds), _DASH, np.uint8) for _ in range(2))
    query[kinds != "D"] = np.frombuffer(pattern.encode("ascii"), np.uint8)
    of_text = np.flatnonzero(kinds != "I")
    subject[of_text] = query[of_text]
    position = 0
    for same, others in _DIFFERENCES.findall(md):
        n = int(same) if same else len(others)
        if others:
            subject[of_text[position : position + n]] = np.frombuffer(others.encode("ascii"), np.uint8)
        position += n
    if position != len(of_text):
        raise ValueError(f"MD has {position} bases, but CIGAR has {len(of_text)}")
    return query.tobytes().decode("ascii"), subject.tobytes().decode("ascii")


@dataclass(frozen=True, kw_only=True)
class ReadPair(AlignedPair):
    """Read (`query`) aligned with a reference (`subject`); positions of a reverse complement descend.

    Attributes
    ----------
    is_reverse
        True if the reverse complement of the read is aligned.
    quality
        Phred quality of the read's base in each column, -1 if unknown, shape (columns,), int16.
    """

    is_reverse: bool
    quality: NDArray[np.int16]

    titles: ClassVar[tuple[str, str]] = ("Read", "Reference")
    kind_names: ClassVar[Mapping[int, str]] = {
        IDENTICAL: "identical",
        POSITIVE: "positive",
        DIFFERENT: "different",
        UNSURE_IDENTICAL: "identical",
        UNSURE_DIFFERENT: "different",
        GAP: "gap",
    }

    @classmethod
    def from_row(
        cls,
        names: tuple[str, str, str],
        bases: str,
        qualities: str,
        row: Mapping[str, Any],
        matrix: Matrix | None = None,
    ) -> ReadPair:
        """Return the alignment in a row of the table of alignments.

        Parameters
        ----------
        names
            Name of the read, name of the reference, and description of the reference.
        bases, qualities
            Bases and qualities (FASTQ characters) of the whole read in its original direction; qualities may be ''.
        row
            Values of the row, with positions, strand, CIGAR and MD.
        matrix
            Scoring matrix that defines similar residues, or None.

        Raises
        ------
        ProteoscopeError
            If the values are inconsistent.
        """
        try:
            first, last, is_reverse = int(str(row["pattern_start"])) - 1, int(str(row["pattern_end"])), row["strand"] == "-"
            pattern, signs = bases[first:last], np.frombuffer(qualities[first:last].encode("ascii"), np.uint8)
            if is_reverse:
                pattern, signs = other_strand(pattern), signs[::-1]
            query, subject = draw_lines(pattern, str(row["cigar"]), str(row["md"]))
            has_base = np.frombuffer(query.encode("ascii"), np.uint8) != _DASH
            quality = np.full(len(query), -1, np.int16)
            if len(signs):
                quality[has_base] = signs.astype(np.int16) - _FIRST_QUALITY
        except ValueError as error:
            reason = f"the alignment cannot be drawn, since its parts do not fit ({error})"
            raise ProteoscopeError(f"{names[0]}: {reason}. Run the search again.") from error
        start = last if is_reverse else first + 1
        middle = _middle(query, subject, matrix)
        return cls(*names, start, int(str(row["text_start"])), query, middle, subject, hit=row, is_reverse=is_reverse, quality=quality)

    @property
    def has_qualities(self) -> bool:
        """True if base qualities are known."""
        return bool((self.quality >= 0).any())

    @property
    def legend(self) -> tuple[tuple[int, str], ...]:
        """Entries of the legend: kind of column (see `kinds`) and its description."""
        positive = ((POSITIVE, "positive (+)"),) if "+" in self.middle else ()
        classes: tuple[tuple[int, str], ...] = ((IDENTICAL, "identical"), *positive, (DIFFERENT, "different"), (GAP, "gap (-)"))
        if not self.has_qualities:
            return classes
        return (*classes, (UNSURE_IDENTICAL, f"quality below {_MINIMUM_QUALITY}"))

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """Kind of each column, shape (columns,), uint8: `IDENTICAL`, `POSITIVE`, `DIFFERENT` or `GAP`.

        Columns with a base of low quality are `UNSURE_IDENTICAL` or `UNSURE_DIFFERENT`.
        """
        kinds = super().kinds.copy()
        kinds[~np.isin(kinds, (IDENTICAL, POSITIVE, GAP))] = DIFFERENT
        is_low = (self.quality >= 0) & (self.quality < _MINIMUM_QUALITY)
        for kind, unsure in ((IDENTICAL, UNSURE_IDENTICAL), (DIFFERENT, UNSURE_DIFFERENT)):
            kinds[is_low & (kinds == kind)] = unsure
        return kinds

    def numbers(self, first: int, last: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the first and last position of the read and of the reference in the columns `first` to `last` (exclusive).

        Positions of a reverse complement descend.
        """
        (begin, end), text = super().numbers(first, last)
        if self.is_reverse:
            begin, end = 2 * self.query_start - begin, 2 * self.query_start - end
        return (begin, end), text

    def column_text(self, column: int) -> str:
        """Return the tooltip of a column, with the quality and error probability of the base."""
        text, quality = super().column_text(column), int(self.quality[column])
        if quality < 0:
            return text
        wrong = 10 ** (-quality / 10)
        return f"{text}; quality {quality} (one of {max(1, math.floor(1 / wrong + 0.5)):,} such bases is wrong)"


def _middle(query: str, subject: str, matrix: Matrix | None) -> str:
    """Return the middle line: the residue of identical columns, ``+`` for other pairs with a positive score, otherwise a blank."""
    lines = [np.frombuffer(line.encode("ascii"), np.uint8) for line in (query, subject)]
    same = lines[0] == lines[1]
    middle = np.where(same, lines[0], np.uint8(ord(" ")))
    if matrix is not None:
        is_pair = ~same & (lines[0] != _DASH) & (lines[1] != _DASH)
        positions = np.flatnonzero(is_pair)
        scores = matrix.scores[encode(lines[0][positions]), encode(lines[1][positions])]
        middle[positions[scores > 0]] = ord("+")
    return middle.tobytes().decode("ascii")

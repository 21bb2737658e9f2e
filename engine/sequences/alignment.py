"""The alignment of a hit: trace-back on the processor, in memory that grows with the length and not with its square.

The matrix is computed by rows of the query. A matrix that fits keeps where each of its cells came from. A larger one keeps a row in
every so many, and computes the rows in between again when the trace comes to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.jobs.progress import Progress
from engine.sequences.matrices import LETTERS
from engine.sequences.scheme import ScoringScheme

__all__ = ["Alignment", "align_pair"]

_CELLS_KEPT = 16 << 20
_CELLS_BETWEEN_LOOKS = 50_000_000  # about a fifth of a second
_PAIR, _SUBJECT_ALONE, _QUERY_ALONE = 1, 2, 3
_CIGAR = {_PAIR: "M", _SUBJECT_ALONE: "D", _QUERY_ALONE: "I"}
_WITH_GAPS = np.frombuffer(f"{LETTERS}-".encode(), np.uint8)  # a gap's -1 is the last
_POSITIVE, _APART = np.uint8(ord("+")), np.uint8(ord(" "))


@dataclass(frozen=True)
class Alignment:
    """A local alignment of best score.

    Attributes
    ----------
    score : of the alignment. query_start, subject_start : of its first residues, from 0.
    query, subject : (c,) int8, residue codes in each column, -1 for a gap.
    is_positive : (c,) bool, residues that the matrix scores above zero.
    """

    score: int
    query_start: int
    subject_start: int
    query: NDArray[np.int8]
    subject: NDArray[np.int8]
    is_positive: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.query)

    @property
    def query_end(self) -> int:
        """Behind the last residue of the query."""
        return self.query_start + int((self.query >= 0).sum())

    @property
    def subject_end(self) -> int:
        """Behind the last residue of the subject."""
        return self.subject_start + int((self.subject >= 0).sum())

    @property
    def identities(self) -> int:
        """Columns with the same residue twice."""
        return int(((self.query == self.subject) & (self.query >= 0)).sum())

    @property
    def mismatches(self) -> int:
        """Columns with two different residues."""
        return int(((self.query != self.subject) & (self.query >= 0) & (self.subject >= 0)).sum())

    @property
    def positives(self) -> int:
        """Columns that the matrix scores above zero."""
        return int(self.is_positive.sum())

    @cached_property
    def runs(self) -> tuple[tuple[int, str], ...]:
        """Lengths and letters of the CIGAR: M two residues, I the query's alone, D the subject's alone."""
        if not len(self):
            return ()
        steps = np.where(self.subject < 0, _QUERY_ALONE, np.where(self.query < 0, _SUBJECT_ALONE, _PAIR))
        cuts = np.concatenate(([0], np.flatnonzero(np.diff(steps)) + 1, [len(steps)]))
        return tuple((stop - start, _CIGAR[int(steps[start])]) for start, stop in pairwise(cuts.tolist()))

    @property
    def gap_openings(self) -> int:
        """Runs of gaps."""
        return sum(letter != "M" for _, letter in self.runs)

    @property
    def cigar(self) -> str:
        """As ``57M2D14M``."""
        return "".join(f"{length}{letter}" for length, letter in self.runs)

    def lines(self) -> tuple[str, str, str]:
        """The three lines of the alignment: query, what they share (the letter, ``+`` for a positive pair), subject."""
        query, subject = _WITH_GAPS[self.query], _WITH_GAPS[self.subject]
        middle = np.where(self.query == self.subject, query, np.where(self.is_positive, _POSITIVE, _APART))
        return query.tobytes().decode("ascii"), middle.tobytes().decode("ascii"), subject.tobytes().decode("ascii")


def align_pair(
    query: NDArray[np.int8],
    subject: NDArray[np.int8],
    scheme: ScoringScheme,
    progress: Progress,
    *,
    score: int = -1,
    cells_kept: int = _CELLS_KEPT,
) -> Alignment:
    """An alignment of best score of two sequences; among several, the one that ends first in the query, then in the subject.

    Parameters
    ----------
    query, subject : (m,) and (n,) int8 residue codes. score : the best score where it is known, which spares the rows behind the alignment.
    cells_kept : of the matrix, at most so many are in memory at a time, besides
        about the square root of m times n.
    """
    from kernels.cpu.rows import row_arrays, score_rows, trace_back
    from kernels.cpu.substitution import Substitution

    m, n = len(query), len(subject)
    rows = max(1, min(m, max(cells_kept // max(n, 1), int(np.sqrt(m)))))
    keeps = rows >= m
    opening, extending = scheme.first_residue_cost, scheme.gap_extend
    reach = score if score >= 0 else max(0, scheme.matrix.greatest) * min(m, n)
    bits = 16 if max(reach + opening, -int(scheme.matrix.scores.min())) < np.iinfo(np.int16).max else 32
    profile, decay, h_rows, f_row = row_arrays(Substitution(scheme.matrix.scores, scheme.gap_open, scheme.gap_extend), subject, bits)
    width = len(f_row)
    codes, best = query.astype(np.int64), np.array([0, -1, -1], np.int64)
    step = max(1, _CELLS_BETWEEN_LOOKS // max(n, 1))
    directions = np.empty((rows, width), np.uint8)
    kept: dict[int, tuple[NDArray, NDArray]] = {}

    def compute(first: int, last: int, keeps_directions: bool) -> None:
        for start in range(first, last, step):
            progress.check()
            stop = min(last, start + step)
            part = directions[start - first : stop - first]
            score_rows(codes, profile, opening, extending, decay, start, stop, h_rows, f_row, best, score, part, keeps_directions)

    for first in range(0, m, rows):
        if not keeps:
            kept[first] = (h_rows[first % 2].copy(), f_row.copy())
        compute(first, min(m, first + rows), keeps)
    found, end_row, end_column = best.tolist()
    place = np.array([end_row, end_column, 0, 0], np.int64)
    steps = np.zeros(m + n, np.uint8)
    if found > 0:
        first = end_row // rows * rows
        while True:
            if not keeps:
                h_rows[first % 2], f_row[:] = kept[first]
                compute(first, min(end_row + 1, first + rows), True)
            if trace_back(directions, first, place, steps) or first == 0:
                break
            first -= rows
    forward = steps[: place[3]][::-1]
    query_columns, subject_columns = forward != _SUBJECT_ALONE, forward != _QUERY_ALONE
    query_start, subject_start = int(place[0]) + 1, int(place[1]) + 1
    columns = np.full((2, len(forward)), -1, np.int8)
    columns[0, query_columns] = query[query_start : query_start + int(query_columns.sum())]
    columns[1, subject_columns] = subject[subject_start : subject_start + int(subject_columns.sum())]
    is_pair = query_columns & subject_columns
    is_positive = is_pair & (scheme.matrix.scores[np.maximum(columns[0], 0), np.maximum(columns[1], 0)] > 0)
    return Alignment(found, query_start, subject_start, columns[0], columns[1], is_positive)

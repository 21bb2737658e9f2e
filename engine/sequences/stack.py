"""Stacks: a query and its hits, each placed by its alignment with the query.

If hits have residues between two residues of the query (insertions), columns are added at this position, as many as the longest insertion
needs. Rows without an insertion, or with a shorter one, have gaps in these columns. Insertions of several hits start in the same column and
are not aligned with each other. ::

    query          ACDE--FGH
    with nothing   ACDE--FG
    with two more   CDEWWFGH
    with one more  ACDEW-F
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import ParameterError

__all__ = ["MAXIMUM_CELLS", "OUTSIDE", "AlignedSubjects", "Stack"]

MAXIMUM_CELLS = 1 << 26
"""Maximum number of cells (rows times columns) of a stack, such as ten thousand hits of a query of six thousand residues."""
OUTSIDE = 0
"""Value in `Stack.symbols` before and after the alignment of a subject."""
_GAP = ord("-")


@dataclass(frozen=True)
class AlignedSubjects:
    """Subjects (n) aligned with one query.

    Attributes
    ----------
    names, descriptions : sequence of str
        First word and rest of each header.
    lengths : ndarray of int64, shape (n,)
        Number of residues of the complete sequences.
    query_start, subject_start : ndarray of int64, shape (n,)
        Indices of the first aligned residues, from 0.
    query, subject : Texts
        Lines of each alignment, with ``-`` for gaps; no column has two gaps.
    scores : ndarray of int64, shape (n,)
        Scores of the alignments.
    """

    names: Sequence[str]
    descriptions: Sequence[str]
    lengths: NDArray[np.int64]
    query_start: NDArray[np.int64]
    subject_start: NDArray[np.int64]
    query: Texts
    subject: Texts
    scores: NDArray[np.int64]

    @cached_property
    def subject_end(self) -> NDArray[np.int64]:
        """End index (exclusive) of the aligned residues of each subject, shape (n,)."""
        residues = np.concatenate(([0], np.cumsum(self.subject.used != _GAP)))
        positions = self.subject.offsets - self.subject.offsets[0]
        ends: NDArray[np.int64] = self.subject_start + np.diff(residues[positions])
        return ends


@dataclass(frozen=True)
class Stack:
    """Stack of a query and its n hits.

    Attributes
    ----------
    query_name, query_description : str
        First word and rest of the query's header.
    subjects : AlignedSubjects
        Hits.
    symbols : ndarray of uint8, shape (1 + n, columns)
        Rows of the query and of the hits: ASCII, ``-`` for a gap, `OUTSIDE` outside the alignment of a hit.
    query_place : ndarray of int64, shape (columns,)
        Index of the query's residue in each column, from 0; -1 in columns of insertions.
    """

    query_name: str
    query_description: str
    subjects: AlignedSubjects
    symbols: NDArray[np.uint8]
    query_place: NDArray[np.int64]

    @classmethod
    def from_subjects(cls, name: str, description: str, sequence: str, subjects: AlignedSubjects) -> Stack:
        """Create the stack of a query and its hits.

        Parameters
        ----------
        name, description, sequence : str
            First word and rest of the query's header, and its residues.
        subjects : AlignedSubjects
            Hits.

        Raises
        ------
        ParameterError
            If the stack would have more than `MAXIMUM_CELLS` cells, or if an alignment does not fit the sequences, as in a manipulated
            project.
        """
        query, subject = subjects.query.used, subjects.subject.used
        offsets = subjects.query.offsets - subjects.query.offsets[0]
        hit = np.repeat(np.arange(len(subjects.names)), np.diff(offsets))
        is_residue = query != _GAP
        before = np.concatenate(([0], np.cumsum(is_residue)))
        # The query's residue in each column, or the previous residue.
        position = subjects.query_start[hit] + (before[1:] - before[offsets[:-1]][hit]) - 1
        if not _fit(subjects, offsets, is_residue, position, len(sequence)):
            raise ParameterError(f"the alignments of {name:.60} do not fit its sequence and its hits; search again")
        inserted = np.flatnonzero(~is_residue)
        is_first = np.append(True, np.diff(inserted) > 1) | np.append(True, np.diff(hit[inserted]) > 0) if len(inserted) else inserted
        run = np.cumsum(is_first) - 1
        nth = np.arange(len(inserted)) - np.flatnonzero(is_first)[run] if len(inserted) else inserted
        opened = np.zeros(len(sequence), np.int64)
        np.maximum.at(opened, position[inserted], nth + 1)
        residue_column = np.arange(len(sequence)) + np.concatenate(([0], np.cumsum(opened)))[:-1]
        n_columns = len(sequence) + int(opened.sum())
        if n_columns * (len(subjects.names) + 1) > MAXIMUM_CELLS:
            raise ParameterError(
                f"the stack of the {len(subjects.names):,} hits of {name:.60} has {n_columns:,} columns: too many; select fewer hits"
            )
        symbols = np.full((len(subjects.names) + 1, n_columns), OUTSIDE, np.uint8)
        symbols[0] = _GAP
        symbols[0, residue_column] = np.frombuffer(sequence.encode("ascii"), np.uint8)
        column = residue_column[position]
        column[inserted] += nth + 1
        first, last = column[offsets[:-1]], column[offsets[1:] - 1]
        columns = np.arange(n_columns)
        for row in range(len(subjects.names)):
            symbols[row + 1, (columns >= first[row]) & (columns <= last[row])] = _GAP
        symbols[hit + 1, column] = subject
        query_place = np.full(n_columns, -1, np.int64)
        query_place[residue_column] = np.arange(len(sequence))
        return cls(name, description, subjects, symbols, query_place)

    def __len__(self) -> int:
        """Return the number of rows, including the row of the query."""
        return len(self.symbols)

    @property
    def n_columns(self) -> int:
        """Number of columns, including columns of insertions."""
        return len(self.query_place)

    @property
    def is_opened(self) -> NDArray[np.bool_]:
        """True for columns of insertions, (columns,)."""
        return self.query_place < 0

    @cached_property
    def gapped(self) -> NDArray[np.uint8]:
        """Rows as ASCII characters, (rows, columns), with gaps before and after the alignments.

        ``*``, which alignment formats do not support, is replaced by X.
        """
        symbols = self.symbols.copy()
        symbols[symbols == OUTSIDE] = _GAP
        symbols[symbols == ord("*")] = ord("X")
        return symbols

    @cached_property
    def follows_insertion(self) -> NDArray[np.bool_]:
        """True if a row has an insertion directly before a residue of the query, shape (rows, residues of the query)."""
        is_residue = (self.symbols != _GAP) & (self.symbols != OUTSIDE)
        follows = np.zeros((len(self), int(np.count_nonzero(~self.is_opened))), np.bool_)
        # Every insertion lies between two residues of the query, and is therefore followed by a residue.
        next_residue = np.cumsum(~self.is_opened)
        for column in np.flatnonzero(self.is_opened).tolist():
            follows[:, next_residue[column]] |= is_residue[:, column]
        return follows

    @property
    def names(self) -> list[str]:
        """Name of the query, and name of each hit with the range of its aligned residues, from 1, such as ``P02769/25-607``."""
        subjects = self.subjects
        ends = zip(subjects.names, (subjects.subject_start + 1).tolist(), subjects.subject_end.tolist(), strict=True)
        return [self.query_name, *(f"{name}/{start}-{end}" for name, start, end in ends)]


def _fit(
    subjects: AlignedSubjects, offsets: NDArray[np.int64], is_residue: NDArray[np.bool_], position: NDArray[np.int64], length: int
) -> bool:
    """Return True if no alignment is empty or extends beyond its sequences, and all begin and end with residues of the query.

    `offsets` are the starts of the alignments in the concatenated columns; `is_residue` is True for columns with a residue of the query;
    `position` is the index of the query's residue in each column; and `length` is the number of residues of the query.
    """
    if not (np.diff(offsets) > 0).all():
        return False
    is_in_query = (position[offsets[:-1]] >= 0).all() and (position < length).all()
    is_in_subjects = (subjects.subject_start >= 0).all() and (subjects.subject_end <= subjects.lengths).all()
    return bool(is_in_query and is_in_subjects and is_residue[offsets[:-1]].all() and is_residue[offsets[1:] - 1].all())

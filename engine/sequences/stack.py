"""A stack: hits of one query below it, each where its own alignment with the query puts it.

What a hit has between two residues of the query that others have not opens columns there, as many as the longest of these insertions
has, in which the others have gaps; insertions of several hits begin at the same column and are not aligned with each other. ::

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
"""Rows times columns that a stack may have: ten thousand hits of a query of six thousand residues."""
OUTSIDE = 0
"""In `Stack.letters`, of a subject before and behind its alignment."""
_GAP = ord("-")


@dataclass(frozen=True)
class AlignedSubjects:
    """n subjects aligned with one query.

    Attributes
    ----------
    names, descriptions : of the subjects. lengths : (n,) int64, of the whole sequences.
    query_start, subject_start : (n,) int64, of the first aligned residues, from 0.
    query, subject : the aligned lines, ``-`` for gaps, without columns in which both have one.
    scores : (n,) int64.
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
        """(n,) behind the last aligned residue of each subject, from 0."""
        residues = np.concatenate(([0], np.cumsum(self.subject.own != _GAP)))
        places = self.subject.offsets - self.subject.offsets[0]
        return self.subject_start + np.diff(residues[places])


@dataclass(frozen=True)
class Stack:
    """A query and n hits below it.

    Attributes
    ----------
    query_name, query_description : of the query. subjects : the hits.
    letters : (1 + n, columns) uint8, the query's row first: ASCII, ``-`` for a gap, `OUTSIDE` beyond the ends of an alignment.
    query_place : (columns,) int64, the query's residue of each column, from 0; -1 in those that insertions have opened.
    """

    query_name: str
    query_description: str
    subjects: AlignedSubjects
    letters: NDArray[np.uint8]
    query_place: NDArray[np.int64]

    @classmethod
    def of(cls, name: str, description: str, sequence: str, subjects: AlignedSubjects) -> Stack:
        """Stack hits below their query, whose residues are `sequence`.

        Raises
        ------
        ParameterError : there would be more than `MAXIMUM_CELLS` letters, or an alignment does not fit the sequences, as it does in what
            the program writes.
        """
        query, subject = subjects.query.own, subjects.subject.own
        offsets = subjects.query.offsets - subjects.query.offsets[0]
        hit = np.repeat(np.arange(len(subjects.names)), np.diff(offsets))
        is_residue = query != _GAP
        before = np.concatenate(([0], np.cumsum(is_residue)))
        # The residue of the query in each column, or the one before it.
        place = subjects.query_start[hit] + (before[1:] - before[offsets[:-1]][hit]) - 1
        if not _fit(subjects, offsets, is_residue, place, len(sequence)):
            raise ParameterError(f"the alignments of {name:.60} do not fit its sequence and those of its hits; do the search again")
        inserted = np.flatnonzero(~is_residue)
        is_first = np.append(True, np.diff(inserted) > 1) | np.append(True, np.diff(hit[inserted]) > 0) if len(inserted) else inserted
        run = np.cumsum(is_first) - 1
        nth = np.arange(len(inserted)) - np.flatnonzero(is_first)[run] if len(inserted) else inserted
        opened = np.zeros(len(sequence), np.int64)
        np.maximum.at(opened, place[inserted], nth + 1)
        column_of = np.arange(len(sequence)) + np.concatenate(([0], np.cumsum(opened)))[:-1]
        n_columns = len(sequence) + int(opened.sum())
        if n_columns * (len(subjects.names) + 1) > MAXIMUM_CELLS:
            raise ParameterError(
                f"the {len(subjects.names):,} hits of {name:.60} stacked have {n_columns:,} columns, which is too much; choose fewer hits"
            )
        letters = np.full((len(subjects.names) + 1, n_columns), OUTSIDE, np.uint8)
        letters[0] = _GAP
        letters[0, column_of] = np.frombuffer(sequence.encode("ascii"), np.uint8)
        column = column_of[place]
        column[inserted] += nth + 1
        first, last = column[offsets[:-1]], column[offsets[1:] - 1]
        columns = np.arange(n_columns)
        for row in range(len(subjects.names)):
            letters[row + 1, (columns >= first[row]) & (columns <= last[row])] = _GAP
        letters[hit + 1, column] = subject
        query_place = np.full(n_columns, -1, np.int64)
        query_place[column_of] = np.arange(len(sequence))
        return cls(name, description, subjects, letters, query_place)

    def __len__(self) -> int:
        """Rows, the query's among them."""
        return len(self.letters)

    @property
    def n_columns(self) -> int:
        """Columns, those among them that insertions have opened."""
        return len(self.query_place)

    @property
    def is_opened(self) -> NDArray[np.bool_]:
        """Whether each column was opened by insertions, (columns,)."""
        return self.query_place < 0

    @cached_property
    def gapped(self) -> NDArray[np.uint8]:
        """The letters with gaps beyond the ends too, X for ``*``, which formats of alignments do not know."""
        letters = self.letters.copy()
        letters[letters == OUTSIDE] = _GAP
        letters[letters == ord("*")] = ord("X")
        return letters

    @cached_property
    def follows_insertion(self) -> NDArray[np.bool_]:
        """Before which letters in the columns of the query each row has an insertion, (rows, residues of the query)."""
        is_letter = (self.letters != _GAP) & (self.letters != OUTSIDE)
        follows = np.zeros((len(self), int(np.count_nonzero(~self.is_opened))), np.bool_)
        # An insertion lies between two residues of the query, so that there is one behind it.
        behind = np.cumsum(~self.is_opened)
        for column in np.flatnonzero(self.is_opened).tolist():
            follows[:, behind[column]] |= is_letter[:, column]
        return follows

    @property
    def names(self) -> list[str]:
        """The query's, and those of hits with the residues that are aligned, from 1, as ``P02769/25-607``."""
        subjects = self.subjects
        ends = zip(subjects.names, (subjects.subject_start + 1).tolist(), subjects.subject_end.tolist(), strict=True)
        return [self.query_name, *(f"{name}/{start}-{end}" for name, start, end in ends)]


def _fit(
    subjects: AlignedSubjects, offsets: NDArray[np.int64], is_residue: NDArray[np.bool_], place: NDArray[np.int64], length: int
) -> bool:
    """Whether alignments lie in their sequences, and begin and end with residues of the query, which lie in its `length`."""
    if not (np.diff(offsets) > 0).all():
        return False
    is_in_query = (place[offsets[:-1]] >= 0).all() and (place < length).all()
    is_in_subjects = (subjects.subject_start >= 0).all() and (subjects.subject_end <= subjects.lengths).all()
    return bool(is_in_query and is_in_subjects and is_residue[offsets[:-1]].all() and is_residue[offsets[1:] - 1].all())

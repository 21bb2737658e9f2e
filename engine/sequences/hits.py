"""Writers of sequence search hits: the table of hits, and formats for biologists and other programs.

Hits are processed as columns from the alignment to the file, without a Python loop over hits. Writers receive queries in batches, so that
memory grows with the hits of a batch, not with the number of queries. They need only the columns of ``hits.parquet``, so that a run
exported later gives exactly the same files.
"""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import sequences
from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.escaped_names import ESCAPES, escape_unprintable_texts
from proteoscope.engine.files import atomic_file
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.sam import (
    NO_PLACE,
    NO_QUALITY,
    SECONDARY,
    UNPLACED,
    SamNames,
    SamRecords,
    sam_header,
    sam_lines,
)
from proteoscope.engine.results.separated import PRINTED, header_line, separated_lines
from proteoscope.engine.sequences.alignment import AlignedPairs
from proteoscope.engine.sequences.hit_columns import HITS
from proteoscope.engine.sequences.stack import AlignedSubjects, Stack
from proteoscope.engine.sequences.statistics import ScoreStatistics
from proteoscope.engine.version import VERSION
from proteoscope.kernels.text_layouts import SamSequences

__all__ = [
    "COLUMNS",
    "FORMATS",
    "OF_ONE_QUERY",
    "HitFormat",
    "Hits",
    "QueryHits",
    "SequenceEntries",
    "expected_counts",
    "hit_writer",
    "hits_schema",
    "hits_table",
]


class NothingToStackError(ParameterError):
    """A result cannot be written, because it has no hits and the format of the file cannot represent an empty result."""


HitFormat = Literal["tsv", "blast6", "sam", "fasta", "clustal", "html", "stockholm", "a3m", "phylip", "clustal-stack", "maf", "psl"]
FORMATS: tuple[HitFormat, ...] = get_args(HitFormat)
OF_ONE_QUERY: tuple[HitFormat, ...] = ("a3m", "phylip", "clustal-stack")
"""Formats with the hits of one query per file."""

COLUMNS = HITS.saved
"""Columns of exported tables in order; positions count from 1, and identity and coverages are fractions from 0 to 1.

Users rely on names and order.
"""

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

_WIDTH = 60
_LENGTH_GROUPS = 64
_MINIMUM_EXPECTED = 1e-3
_CLUSTAL_NAME = 30
_SPOOLED_BYTES, _COPIED_BYTES = 16 << 20, 4 << 20
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_IS_CONTROL = np.isin(np.arange(256), [*range(ord(" ")), 0x7F, 0xC2, 0xE2])
"""True for the first UTF-8 bytes of control characters, (256,)."""
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BATCH_HITS = 512  # number of hits that are formatted together, between two checks for cancellation


@dataclass(frozen=True)
class SequenceEntries:
    """Names, descriptions and lengths of n sequences.

    Attributes
    ----------
    names, descriptions : Texts
        First word and rest of each header.
    index : ndarray of int64, shape (n,)
        Indices of the sequences in the files, from 0.
    lengths : ndarray of int64, shape (n,)
        Number of residues.
    """

    names: Texts
    descriptions: Texts
    index: Integers
    lengths: Integers


@dataclass(frozen=True)
class Hits:
    """Hits (n) of queries, as columns with the names of ``hits.parquet``.

    Attributes
    ----------
    query, subject : Texts
        Names of query and subject in their files.
    identity : ndarray of float64, shape (n,)
        Fraction of the columns of the alignment with identical residues.
    alignment_length, mismatches, positives : ndarray of int64, shape (n,)
        Number of columns, of columns with two different residues, and of columns with a positive score.
    gap_openings : ndarray of int64, shape (n,)
        Number of gaps.
    query_start, query_end, subject_start, subject_end : ndarray of int64, shape (n,)
        First and last aligned residue, from 1.
    e_value, bit_score : ndarray of float64, shape (n,)
        E-values, and scores in bits.
    score : ndarray of int64, shape (n,)
        Scores in units of the matrix.
    query_coverage, subject_coverage : ndarray of float64, shape (n,)
        Fraction of the residues of query and subject that is aligned.
    cigar : Texts
        Alignments as operations: M two residues, I residue of the query only, D residue of the subject only.
    description : Texts
        Descriptions of the subjects.
    query_index, subject_index : ndarray of int64, shape (n,)
        Indices of query and subject in their files, from 0.
    query_length, subject_length : ndarray of int64, shape (n,)
        Number of residues.
    rank : ndarray of int64, shape (n,)
        Rank among the hits of the query, from 1.
    aligned_query, aligned_middle, aligned_subject : Texts
        Lines of the alignment, as in `Alignment.lines`.
    """

    query: Texts
    subject: Texts
    identity: Reals
    alignment_length: Integers
    mismatches: Integers
    gap_openings: Integers
    query_start: Integers
    query_end: Integers
    subject_start: Integers
    subject_end: Integers
    e_value: Reals
    bit_score: Reals
    score: Integers
    positives: Integers
    query_coverage: Reals
    subject_coverage: Reals
    cigar: Texts
    subject_length: Integers
    description: Texts
    query_index: Integers
    subject_index: Integers
    query_length: Integers
    rank: Integers
    aligned_query: Texts
    aligned_middle: Texts
    aligned_subject: Texts

    @classmethod
    def from_alignments(
        cls,
        pairs: AlignedPairs,
        queries: SequenceEntries,
        subjects: SequenceEntries,
        scores: Integers,
        ranks: Integers,
        bit_scores: Reals,
        e_values: Reals,
    ) -> Hits:
        """Return hits from alignments.

        Parameters
        ----------
        pairs : AlignedPairs
            Alignments of the n hits.
        queries, subjects : SequenceEntries
            Query and subject of each hit.
        scores, ranks : ndarray of int64, shape (n,)
            Score of each hit, and its rank among the hits of the query, from 1.
        bit_scores, e_values : ndarray of float64, shape (n,)
            Bit score and E-value of each hit.
        """
        columns = np.diff(pairs.query.offsets)
        return cls(
            query=queries.names,
            subject=subjects.names,
            identity=pairs.identities / np.maximum(1, columns),
            alignment_length=columns,
            mismatches=pairs.mismatches,
            gap_openings=pairs.gap_openings,
            query_start=pairs.query_start + 1,
            query_end=pairs.query_end,
            subject_start=pairs.subject_start + 1,
            subject_end=pairs.subject_end,
            e_value=e_values,
            bit_score=bit_scores,
            score=scores,
            positives=pairs.positives,
            query_coverage=(pairs.query_end - pairs.query_start) / np.maximum(1, queries.lengths),
            subject_coverage=(pairs.subject_end - pairs.subject_start) / np.maximum(1, subjects.lengths),
            cigar=pairs.cigars,
            subject_length=subjects.lengths,
            description=subjects.descriptions,
            query_index=queries.index,
            subject_index=subjects.index,
            query_length=queries.lengths,
            rank=ranks,
            aligned_query=pairs.query,
            aligned_middle=pairs.middle,
            aligned_subject=pairs.subject,
        )

    @classmethod
    def from_table(cls, table: pa.Table) -> Hits:
        """Return the hits of a table with the columns of `hits_schema` and without nulls."""
        columns: dict[str, Any] = {}
        for field in fields(cls):
            column = table.column(field.name).combine_chunks()
            if field.name in _TEXTS:
                # Names written by this program are escaped; names in a manipulated project may not be.
                texts = Texts.from_arrow(column)
                columns[field.name] = escape_unprintable_texts(texts)[0] if field.name in ("query", "subject") else texts
            else:
                values = column.to_numpy(zero_copy_only=False)
                columns[field.name] = values if field.name in _REALS else values.astype(np.int64)
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.score)

    def part(self, rows: slice) -> Hits:
        """Return the hits in a slice of rows."""
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})

    def taken(self, rows: Integers) -> Hits:
        """Return the hits with the given row indices, in this order."""
        return type(self)(**{name: column.take(rows) for name, column in vars(self).items()})

    @property
    def aligned(self) -> AlignedSubjects:
        """Subjects aligned with the query, from which a `Stack` can be created; all hits must have the same query."""
        return AlignedSubjects(
            self.subject.strings(),
            self.description.strings(),
            self.subject_length,
            self.query_start - 1,
            self.subject_start - 1,
            self.aligned_query,
            self.aligned_subject,
            self.score,
        )

    @property
    def identities(self) -> Integers:
        """Number of columns of each alignment with identical residues."""
        return np.rint(self.identity * self.alignment_length).astype(np.int64)

    @property
    def gap_residues(self) -> Integers:
        """Number of columns of each alignment with a gap."""
        return self.alignment_length - self.identities - self.mismatches


_KINDS = get_type_hints(Hits)
_TEXTS = {name for name, kind in _KINDS.items() if kind is Texts}
_REALS = {name for name, kind in _KINDS.items() if kind == Reals}


@dataclass(frozen=True)
class QueryHits:
    """Consecutive queries with their hits, best first, as columns.

    Attributes
    ----------
    query_index : ndarray of int64, shape (q,)
        Indices of the queries in the files, from 0.
    accessions, descriptions, sequences : Texts
        Headers and sequences of the queries.
    offsets : ndarray of int64, shape (q + 1,)
        Hits of query i are ``hits[offsets[i]:offsets[i + 1]]``.
    hits : Hits
        Hits of all queries.
    """

    query_index: Integers
    accessions: Texts
    descriptions: Texts
    sequences: Texts
    offsets: Integers
    hits: Hits

    def __len__(self) -> int:
        return len(self.query_index)

    def part(self, rows: slice) -> QueryHits:
        """Return the queries in a slice, with their hits."""
        first, last, _ = rows.indices(len(self))
        hits = slice(int(self.offsets[first]), int(self.offsets[last]))
        return QueryHits(
            self.query_index[rows],
            self.accessions[rows],
            self.descriptions[rows],
            self.sequences[rows],
            self.offsets[first : last + 1] - self.offsets[first],
            self.hits.part(hits),
        )

    def stack(self, position: int) -> Stack:
        """Return the hits of the query with index `position` as a stack below the query.

        Raises
        ------
        ParameterError
            If the stack would have too many residues.
        """
        query = self.part(slice(position, position + 1))
        name, description, sequence = (texts.strings()[0] for texts in (query.accessions, query.descriptions, query.sequences))
        return Stack.from_subjects(name, description, sequence, query.hits.aligned)

    def batches(self) -> Iterator[QueryHits]:
        """Yield the queries in batches of at most `_BATCH_HITS` hits; the hits of a query stay together, even if they exceed this limit."""
        first = 0
        while first < len(self):
            limit = int(self.offsets[first]) + _BATCH_HITS
            last = max(first + 1, min(first + _BATCH_HITS, int(np.searchsorted(self.offsets, limit, side="right")) - 1))
            yield self.part(slice(first, last))
            first = last


class _Writer:
    """Base class of writers of queries and their hits; before every `_BATCH_HITS` hits, a writer checks for cancellation."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress = file, progress
        self.begin()

    def line(self, text: str = "") -> None:
        """Write a line."""
        self._file.write(text.encode() + b"\n")

    def begin(self) -> None:
        """Write the text before the first query."""

    def write(self, queries: QueryHits) -> None:
        """Write the hits of queries."""
        for batch in self.each(queries.hits):
            self._file.write("".join(self.texts(batch)).encode())

    def each(self, hits: Hits) -> Iterator[Hits]:
        """Yield the hits in batches, and check for cancellation."""
        for first in range(0, len(hits), _BATCH_HITS):
            self._progress.check()
            yield hits.part(slice(first, first + _BATCH_HITS))

    def texts(self, hits: Hits) -> Iterable[str]:
        """Return the text of each hit; used by formats that do not mention queries without hits."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write the text after the last query."""

    def close(self) -> None:
        """Release resources other than the file."""


def _lists(hits: Hits, *names: str) -> list[list[Any]]:
    """Return the columns of hits as lists of Python numbers or strings."""
    columns = (getattr(hits, name) for name in names)
    return [column.strings() if isinstance(column, Texts) else column.tolist() for column in columns]


class _Tsv(_Writer):
    """Writer of the tab-separated table; with `is_safe`, an apostrophe precedes texts that spreadsheets would read as formulas."""

    is_safe = False

    def begin(self) -> None:
        self._file.write(header_line(HITS.saved_columns))

    def write(self, queries: QueryHits) -> None:
        for batch in self.each(queries.hits):
            self._file.write(separated_lines(hits_table(batch), HITS.saved_columns, PRINTED, spreadsheet_safe=self.is_safe))


class _SafeTsv(_Tsv):
    """Writer of the tab-separated table with `is_safe`."""

    is_safe = True


class _Blast6(_Writer):
    """Writer of BLAST's tabular format with the twelve columns of ``-outfmt 6``, in which identity is in percent."""

    def texts(self, hits: Hits) -> Iterable[str]:
        query, subject, *numbers = _lists(
            hits,
            "query",
            "subject",
            "alignment_length",
            "mismatches",
            "gap_openings",
            "query_start",
            "query_end",
            "subject_start",
            "subject_end",
            "e_value",
            "bit_score",
        )
        row = "{}\t{}\t{:.3f}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.2e}\t{:.1f}\n"
        return map(row.format, query, subject, (hits.identity * 100).tolist(), *numbers)


class _Fasta(_Writer):
    """Writer of the two sequences of each alignment with gaps."""

    def texts(self, hits: Hits) -> Iterable[str]:
        above = map(
            ">{}/{}-{} score={} bit_score={:.1f} e_value={:.3g} identity={:.4f}\n".format,
            *_lists(hits, "query", "query_start", "query_end", "score", "bit_score", "e_value", "identity"),
        )
        below = map(">{}/{}-{} {}".format, *_lists(hits, "subject", "subject_start", "subject_end"), _on_one_line(hits.description))
        lines = (_wrapped(texts).strings() for texts in (hits.aligned_query, hits.aligned_subject))
        return map("{}{}{}\n{}".format, above, next(lines), map(str.rstrip, below), next(lines))


def _on_one_line(texts: Texts) -> list[str]:
    """Return texts in which control characters are replaced by spaces."""
    strings = texts.strings()
    return [_CONTROLS.sub(" ", text) for text in strings] if _IS_CONTROL[texts.used].any() else strings


def _wrapped(texts: Texts) -> Texts:
    """Return ASCII texts broken into lines of `_WIDTH` characters, each with a line end."""
    lengths = np.diff(texts.offsets)
    offsets = segment_offsets(lengths + -(-lengths // _WIDTH))
    column = np.arange(int(lengths.sum())) - np.repeat(texts.offsets[:-1] - texts.offsets[0], lengths)
    characters = np.full(offsets[-1], ord("\n"), np.uint8)
    characters[np.repeat(offsets[:-1], lengths) + column + column // _WIDTH] = texts.used
    return Texts(characters, offsets)


@dataclass(frozen=True)
class _Blocks:
    """Blocks (b) of at most `_WIDTH` columns of the alignments of hits.

    Attributes
    ----------
    hit, first, width : ndarray of int64, shape (b,)
        Index of the hit, first column and number of columns of each block.
    offsets : ndarray of int64, shape (hits + 1,)
        Blocks of hit i are ``offsets[i]:offsets[i + 1]``.
    """

    hit: Integers
    first: Integers
    width: Integers
    offsets: Integers

    @classmethod
    def from_hits(cls, hits: Hits) -> _Blocks:
        """Return the blocks of all hits."""
        lengths = np.diff(hits.aligned_query.offsets)
        offsets = segment_offsets(-(-lengths // _WIDTH))
        hit = np.repeat(np.arange(len(hits)), np.diff(offsets))
        first = (np.arange(len(hit)) - offsets[hit]) * _WIDTH
        return cls(hit, first, np.minimum(lengths[hit] - first, _WIDTH), offsets)

    def cut(self, texts: Texts) -> Texts:
        """Return the section of each block in texts that have one character per alignment column."""
        return Texts(texts.characters, np.concatenate((texts.offsets[self.hit] + self.first, texts.offsets[-1:])))

    def joined(self, blocks: Iterable[str], between: str = "") -> Iterable[str]:
        """Join the texts of the blocks of each hit."""
        block_list = list(blocks)
        return map(between.join, map(block_list.__getitem__, map(slice, self.offsets[:-1].tolist(), self.offsets[1:].tolist())))


def _repeated(values: Sequence[Any], positions: Integers) -> list[Any]:
    """Return the items of `values` with the indices `positions`, as a list."""
    return list(map(values.__getitem__, positions.tolist()))


class _Clustal(_Writer):
    """Writer of one CLUSTAL alignment per hit, with ``*`` for identical residues and ``:`` for other pairs with a positive score."""

    _MARKS = np.full(256, ord("*"), np.uint8)
    _MARKS[[ord(" "), ord("+")]] = ord(" "), ord(":")

    def texts(self, hits: Hits) -> Iterable[str]:
        shortened = itemgetter(slice(_CLUSTAL_NAME))
        names = [list(map(shortened, map(str.replace, column, repeat(" "), repeat("_")))) for column in _lists(hits, "query", "subject")]
        pairs = list(map(_distinct_names, *names)) if any(map(str.__eq__, *names)) else list(zip(*names, strict=True))
        names = [list(map(itemgetter(line), pairs)) for line in (0, 1)]
        widths = np.maximum(*(np.fromiter(map(len, column), np.int64, len(hits)) for column in names)) + 6
        blocks = _Blocks.from_hits(hits)
        middle = hits.aligned_middle
        marks = Texts(self._MARKS[middle.used], middle.offsets - middle.offsets[0])
        padded = [_repeated(list(map(str.ljust, column, widths.tolist())), blocks.hit) for column in (*names, [""] * len(hits))]
        lines = (blocks.cut(texts).strings() for texts in (hits.aligned_query, hits.aligned_subject, marks))
        shown = map("{}{}\n{}{}\n{}{}\n\n".format, *chain.from_iterable(zip(padded, lines, strict=True)))
        title = f"CLUSTAL W (1.83) multiple sequence alignment by Proteoscope {VERSION}\n\n\n"
        return map("{}{}".format, repeat(title), blocks.joined(shown))


def _distinct_names(query: str, subject: str) -> tuple[str, str]:
    """Return different names for query and subject, as CLUSTAL requires."""
    if query != subject:
        return query, subject
    return f"{query[: _CLUSTAL_NAME - 2]}_q", f"{query[: _CLUSTAL_NAME - 2]}_s"


class _Sam(_Writer):
    """Writer of SAM with protein sequences, in which X replaces ``*``; tags are ``AS`` (score), ``ZB`` (bit score) and ``ZE`` (E-value)."""

    def begin(self) -> None:
        # Store the records first, since the header names the subjects of all records.
        self._queries, self._subjects = SamNames(are_read_names=True), SamNames()
        self._lengths: dict[str, int] = {}
        self._records = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 - `close` closes it

    def write(self, queries: QueryHits) -> None:
        names = Texts.from_strings(self._queries.names(queries.query_index, queries.accessions))
        residues = queries.sequences.used
        # Records without a sequence use an empty sequence at the end.
        offsets = np.append(queries.sequences.offsets, queries.sequences.offsets[-1:]) - queries.sequences.offsets[0]
        without_stops = np.where(residues == ord("*"), np.uint8(ord("X")), residues)
        sam_sequences = SamSequences(without_stops, without_stops[:0], offsets, np.arange(256, dtype=np.uint8))
        n_hits = np.diff(queries.offsets)
        query = np.repeat(np.arange(len(queries)), np.maximum(1, n_hits))
        position = np.cumsum(np.maximum(1, n_hits)) - np.maximum(1, n_hits)
        hit = np.where(np.repeat(n_hits > 0, np.maximum(1, n_hits)), np.arange(len(query)) - position[query] + queries.offsets[query], -1)
        for first in range(0, len(query), _BATCH_HITS):
            self._progress.check()
            batch = slice(first, first + _BATCH_HITS)
            records, references = self._hit_records(queries.hits, hit[batch], query[batch], names, len(queries))
            self._records.write(sam_lines(records, references, sam_sequences)[0])

    def _hit_records(self, hits: Hits, positions: Integers, query: Integers, names: Texts, empty: int) -> tuple[SamRecords, Texts]:
        """Return a SAM record for each hit and for each query without hits, and the names of the subjects of the hits.

        Record i is of the query with index ``query[i]`` and of the hit with index ``positions[i]``, or -1 for a query without hits. Records
        of hits after the best have the sequence with index `empty`, which is empty.
        """
        n, is_hit = len(positions), positions >= 0
        rows = positions[is_hit]
        batch = hits.part(slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) else slice(0, 0))
        subjects = self._subjects.names(batch.subject_index, batch.subject)
        self._lengths.update(zip(subjects, batch.subject_length.tolist(), strict=True))
        is_secondary = np.zeros(n, np.bool_)
        is_secondary[is_hit] = batch.rank > 1
        where, clips = np.tile(np.array(NO_PLACE, np.int64), (n, 1)), np.zeros((n, 2), np.int64)
        where[is_hit, 0], where[is_hit, 1], where[is_hit, 2] = np.arange(len(batch)), batch.subject_start, NO_QUALITY
        clips[is_hit] = np.stack([batch.query_start - 1, batch.query_length - batch.query_end], axis=1)
        tags = map(
            "\tAS:i:{}\tNM:i:{}\tZB:f:{:.1f}\tZE:f:{:.3g}".format,
            batch.score.tolist(),
            (batch.alignment_length - batch.identities).tolist(),
            *_lists(batch, "bit_score", "e_value"),
        )
        cigars, written = (_spread(texts, is_hit) for texts in (batch.cigar, Texts.from_strings(tags)))
        flags = np.where(is_hit, np.where(is_secondary, SECONDARY, 0), UNPLACED)
        return SamRecords(
            names.take(query), flags, where, cigars, clips, written, np.where(is_secondary, empty, query)
        ), Texts.from_strings(subjects)

    def finish(self) -> None:
        self._file.write(sam_header(self._lengths, self._lengths.values()))
        self._records.seek(0)
        while chunk := self._records.read(_COPIED_BYTES):
            self._progress.check()
            self._file.write(chunk)
        self._queries.warn(self._progress, "query", "queries")
        self._subjects.warn(self._progress, "database sequence")

    def close(self) -> None:
        self._records.close()


def _spread(texts: Texts, has_text: NDArray[np.bool_]) -> Texts:
    """Return one text per element of the mask `has_text`: the next of `texts` where the mask is True, and '' elsewhere."""
    lengths = np.zeros(len(has_text), np.int64)
    lengths[has_text] = np.diff(texts.offsets)
    return Texts(texts.used, segment_offsets(lengths))


class _Html(_Writer):
    """Writer of a self-contained page with a table of hits for each query, and the lines of each alignment."""

    def begin(self) -> None:
        self.line('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Proteoscope: sequence search</title>\n<style>')
        self.line("body{font-family:sans-serif;margin:2em} table{border-collapse:collapse} th,td{padding:.15em .6em;text-align:right}")
        self.line("th:first-child,td:first-child,th:last-child,td:last-child{text-align:left} tr:nth-child(even){background:#f2f2f2}")
        self.line("pre{line-height:1.25} .same{background:#cfe8cf} .like{background:#eef3c8}")
        self.line("</style></head><body>")

    def write(self, queries: QueryHits) -> None:
        rows: list[str] = []
        alignments: list[str] = []
        for batch in self.each(queries.hits):
            subjects, descriptions = (_shown_each(texts) for texts in (batch.subject, batch.description))
            rows += _table_rows(batch, subjects, descriptions)
            alignments += _page_alignments(batch, subjects, descriptions)
        lengths = np.diff(queries.sequences.offsets).tolist()
        positions = zip(queries.offsets[:-1].tolist(), queries.offsets[1:].tolist(), strict=True)
        for name, description, length, (first, last) in zip(
            _shown_each(queries.accessions), _shown_each(queries.descriptions), lengths, positions, strict=True
        ):
            self.line(f"<h2>{name} <small>{description}, {length} residues</small></h2>")
            if first == last:
                self.line("<p>No hits.</p>")
                continue
            self.line(
                "<table><tr><th>Subject</th><th>E-value</th><th>Bits</th><th>Score</th><th>Identity</th><th>Query</th>"
                "<th>Description</th></tr>"
            )
            self._file.write("".join(chain(rows[first:last], ["</table>\n"], alignments[first:last])).encode())

    def finish(self) -> None:
        self.line("</body></html>")


def _shown(text: str) -> str:
    """Return a text escaped for HTML; the separator of joined headers in NCBI's nr is shown as in BLAST."""
    return html.escape(_NO_TEXT.sub(" ", text.replace("\x01", " >")))


_IS_ESCAPED_IN_HTML = np.ones(256, bool)
_IS_ESCAPED_IN_HTML[[code for code in range(ord(" "), 127) if chr(code) not in "&<>\"'"]] = False


def _shown_each(texts: Texts) -> list[str]:
    """Return texts escaped for HTML; most texts need no change."""
    return list(map(_shown, texts.strings())) if _IS_ESCAPED_IN_HTML[texts.used].any() else texts.strings()


def _table_rows(hits: Hits, subjects: list[str], descriptions: list[str]) -> Iterable[str]:
    """Return the HTML row of each hit in the table of its query."""
    row = '<tr><td><a href="#a{}-{}">{}</a></td><td>{:.2g}</td><td>{:.1f}</td><td>{}</td><td>{:.1f} %</td><td>{}-{}</td><td>{}</td></tr>\n'
    query, rank, *values = _lists(hits, "query_index", "rank", "e_value", "bit_score", "score")
    return map(
        row.format, query, rank, subjects, *values, (hits.identity * 100).tolist(), *_lists(hits, "query_start", "query_end"), descriptions
    )


def _page_alignments(hits: Hits, subjects: list[str], descriptions: list[str]) -> Iterable[str]:
    """Return the HTML of the alignment of each hit, with title and summary."""
    text = '<h3 id="a{}-{}">{} <small>{}</small></h3>\n<p>{}</p>\n<pre>{}</pre>\n'
    return map(text.format, *_lists(hits, "query_index", "rank"), subjects, descriptions, _summaries(hits), _coloured(hits))


def _summaries(hits: Hits) -> Iterable[str]:
    residues, openings = hits.gap_residues, hits.gap_openings
    plural = (np.where(n == 1, "", "s").astype(object).tolist() for n in (openings, residues))
    openings_ending, residues_ending = plural
    sentences = map("{} gap opening{} ({} residue{})".format, openings.tolist(), openings_ending, residues.tolist(), residues_ending)
    gaps = np.where(openings > 0, np.array(list(sentences), object), "no gaps").tolist()
    text = (
        "Score {}, {:.1f} bits, E-value {:.2g}; {} of {} identical ({:.1f} %), {} positive, {}; "
        "{:.0f} % of the query, {:.0f} % of the subject ({} residues)"
    )
    return map(
        text.format,
        *_lists(hits, "score", "bit_score", "e_value"),
        hits.identities.tolist(),
        hits.alignment_length.tolist(),
        (hits.identity * 100).tolist(),
        hits.positives.tolist(),
        gaps,
        (hits.query_coverage * 100).tolist(),
        (hits.subject_coverage * 100).tolist(),
        hits.subject_length.tolist(),
    )


_MARGIN = 15
_SPANS = np.frombuffer(b'<span class="like"><span class="same">', np.uint8).reshape(2, -1)
_SPAN_END = np.frombuffer(b"</span>", np.uint8)
_LIKE, _SAME = 1, 2


def _coloured(hits: Hits) -> Iterable[str]:
    """Return the lines of each hit, in blocks with residue numbers at both ends as in BLAST, with HTML tags around matching columns."""
    blocks = _Blocks.from_hits(hits)
    marks = hits.aligned_middle.used
    kinds = np.where(marks == ord(" "), 0, np.where(marks == ord("+"), _LIKE, _SAME))
    ends = np.cumsum(blocks.width)
    begins_block, ends_block = np.zeros(len(kinds), bool), np.zeros(len(kinds), bool)
    begins_block[ends - blocks.width], ends_block[ends - 1] = True, True
    differs = np.flatnonzero(np.diff(kinds)) + 1
    begins_block[differs], ends_block[differs - 1] = True, True  # also where the type of column changes
    opens, closes = np.flatnonzero(begins_block & (kinds > 0)), np.flatnonzero(ends_block & (kinds > 0))
    sizes = np.ones(len(kinds), np.int64)
    sizes[opens] += _SPANS.shape[1]
    sizes[closes] += len(_SPAN_END)
    ends_of_columns = np.cumsum(sizes)
    opened, closed = ends_of_columns - sizes, ends_of_columns.copy()
    character_places = opened.copy()
    character_places[opens] += _SPANS.shape[1]
    block_offsets = np.concatenate(([0], ends_of_columns))[np.concatenate(([0], ends))]
    frame = np.empty(int(block_offsets[-1]), np.uint8)
    frame[opened[opens, None] + np.arange(_SPANS.shape[1])] = _SPANS[kinds[opens] - 1]
    frame[closed[closes, None] - len(_SPAN_END) + np.arange(len(_SPAN_END))] = _SPAN_END
    texts, positions = [], []
    for line, start in ((hits.aligned_query, hits.query_start), (hits.aligned_middle, None), (hits.aligned_subject, hits.subject_start)):
        frame[character_places] = line.used
        texts.append(Texts(frame, block_offsets).strings())
        if start is not None:
            residues = np.add.reduceat(line.used != ord("-"), ends - blocks.width, dtype=np.int64) if len(ends) else np.empty(0, np.int64)
            before = np.concatenate(([0], np.cumsum(residues)))
            last = start[blocks.hit] - 1 + before[1:] - before[blocks.offsets[blocks.hit]]
            positions.append((np.minimum(last - residues + 1, last).tolist(), last.tolist()))
    (query_first, query_last), (subject_first, subject_last) = positions
    text = f"Query  {{:>7}} {{}} {{}}\n{'':<{_MARGIN}}{{}}\nSbjct  {{:>7}} {{}} {{}}\n"
    shown = map(text.format, query_first, texts[0], query_last, texts[1], subject_first, texts[2], subject_last)
    return blocks.joined(shown, "\n")


class _Stacked(_Writer):
    """Writer of the hits of each query as a stack, or of aligned pairs (see `proteoscope.engine.sequences.stack_formats`)."""

    def __init__(self, format: str, file: BinaryIO, progress: Progress) -> None:
        self._format, self._name, self._n_stacks = format.removesuffix("-stack"), format, 0
        self._replaced: set[str] = set()
        super().__init__(file, progress)

    def begin(self) -> None:
        self._file.write(sequences.stack_formats.file_header(self._format).encode())

    def write(self, queries: QueryHits) -> None:
        for position in np.flatnonzero(np.diff(queries.offsets)).tolist():
            self._progress.check()
            self._n_stacks += 1
            if self._n_stacks > 1 and self._name in OF_ONE_QUERY:
                raise ParameterError(
                    f"a file of {self._name} contains the hits of one query, but several queries have hits; select one (--query)"
                )
            stack = queries.stack(position)
            self._replaced.update(name for name in stack.names if sequences.stack_formats.plain_name(name) != name)
            self._file.write(sequences.stack_formats.stack_text(stack, self._format).encode())

    def finish(self) -> None:
        if not self._n_stacks:
            raise NothingToStackError(f"no query has a hit, so that nothing can be written as {self._name}")
        if n := len(self._replaced):
            names = "1 name holds" if n == 1 else f"{n:,} names hold"
            self._progress.message(f"{names} characters that {self._name} does not allow; they are {ESCAPES}", "warning")


_WRITERS: dict[str, Callable[[BinaryIO, Progress], _Writer]] = {
    "tsv": _Tsv,
    "blast6": _Blast6,
    "sam": _Sam,
    "fasta": _Fasta,
    "clustal": _Clustal,
    "html": _Html,
    **{name: partial(_Stacked, name) for name in ("stockholm", "a3m", "phylip", "clustal-stack", "maf", "psl")},
}


@contextmanager
def hit_writer(path: Path, format: str, progress: Progress, *, spreadsheet_safe: bool = False) -> Iterator[_Writer]:
    """Yield a writer whose file gets its final name when the ``with`` block ends without an error.

    Parameters
    ----------
    path : Path
        File to write.
    format : HitFormat
        Format of the file.
    progress : Progress
        Progress, which is checked for cancellation.
    spreadsheet_safe : bool
        True to write an apostrophe before texts in ``tsv`` that a spreadsheet would read as formulas.

    Raises
    ------
    StorageError
        If the disk is full or cannot be written.
    Cancelled
        If the user cancels.
    """
    kind = _SafeTsv if spreadsheet_safe and format == "tsv" else _WRITERS[format]
    with atomic_file(path) as file, closing(kind(file, progress)) as writer:
        yield writer
        writer.finish()


def hits_schema() -> pa.Schema:
    """Return the schema of ``hits.parquet``: `COLUMNS`, and columns that are needed to locate and show a hit."""
    return HITS.schema()


def hits_table(hits: Hits) -> pa.Table:
    """Return hits as a table with the columns of `hits_schema`."""
    columns = {name: column.arrow() if isinstance(column, Texts) else column for name, column in vars(hits).items()}
    return HITS.arrow({**columns, **name_columns(columns["description"])})


def expected_counts(
    statistics: ScoreStatistics, query_length: int, subject_lengths: NDArray[np.integer]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return how many subjects are expected by chance to have each score.

    The probability that a subject has at least the score x is ``1 - exp(-E(x))``, where E is the E-value in a database of only this
    subject. To save time, all subjects of a group of similar lengths are given the median length of the group.

    Parameters
    ----------
    statistics : ScoreStatistics
        Statistics of the scores.
    query_length : int
        Number of residues of the query.
    subject_lengths : ndarray of int, shape (n,)
        Number of residues of each subject, ascending.

    Returns
    -------
    scores : ndarray of int32, shape (s,)
        Scores 1, 2, … up to the largest score that at least 0.001 subjects are expected to reach.
    counts : ndarray of float64, shape (s,)
        Expected number of subjects with each score.
    """
    lengths = subject_lengths[np.searchsorted(subject_lengths, 1) :]
    if statistics.source == "none" or len(lengths) == 0 or query_length == 0:
        return np.empty(0, np.int32), np.empty(0)
    cuts = np.unique(np.linspace(0, len(lengths), _LENGTH_GROUPS + 1).astype(np.int64))
    middles, sizes = lengths[(cuts[:-1] + cuts[1:]) // 2], np.diff(cuts)
    # Upper limit of scores by chance, without a correction of the lengths.
    furthest = np.log(max(statistics.K * query_length * float(lengths.sum()) / _MINIMUM_EXPECTED, 2.0)) / statistics.lambda_
    scores = np.arange(1, int(furthest) + 3)
    grid, length = np.repeat(scores, len(middles)), np.tile(middles, len(scores))
    passed = -np.expm1(-statistics.e_values(grid, query_length, length, 1) * length)
    above = (passed.reshape(len(scores), len(middles)) * sizes).sum(axis=1)
    counts = np.maximum(above[:-1] - above[1:], 0.0)
    n_scores = int((above[:-1] >= _MINIMUM_EXPECTED).sum())
    return scores[:n_scores].astype(np.int32), counts[:n_scores]

"""Report: the hits of each query as a table and in the formats that biologists and other programs read.

Hits are columns, from the alignment to the file: nothing is done in Python for each of them. Each writer is told of some queries after the
other, so that memory grows with the hits of these and not with the number of queries. What they write of a hit is what a row of a run's
table holds, so that a run can be exported as it was reported.
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
from proteoscope.engine.arrays import Texts, offsets_of
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.escaped_names import ESCAPES, escape_unprintable_texts
from proteoscope.engine.files import atomic_file
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
    "three_lines",
]


class NothingToStackError(ParameterError):
    """There is no hit, and the format holds nothing else: a file without one could not be read as what it is."""


HitFormat = Literal["tsv", "blast6", "sam", "fasta", "clustal", "html", "stockholm", "a3m", "phylip", "clustal-stack", "maf", "psl"]
FORMATS: tuple[HitFormat, ...] = get_args(HitFormat)
OF_ONE_QUERY: tuple[HitFormat, ...] = ("a3m", "phylip", "clustal-stack")
"""Formats whose files hold the hits of one query."""

COLUMNS = HITS.saved
"""Columns of the table and their order, which others rely on. Positions count from 1; identity and coverages are shares from 0 to 1."""

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

_WIDTH = 60
_LENGTH_GROUPS = 64
_MINIMUM_EXPECTED = 1e-3
_CLUSTAL_NAME = 30
_SPOOLED_BYTES, _COPIED_BYTES = 16 << 20, 4 << 20
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_IS_CONTROL = np.isin(np.arange(256), [*range(ord(" ")), 0x7F, 0xC2, 0xE2])
"""Bytes of UTF-8 that they begin with."""
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HITS_OF_A_PIECE = 512  # that are formatted together, between two looks at a cancel


@dataclass(frozen=True)
class SequenceEntries:
    """n sequences of hits: their places in the files, from 0, and what these say of them; `lengths` in residues."""

    names: Texts
    descriptions: Texts
    index: Integers
    lengths: Integers


@dataclass(frozen=True)
class Hits:
    """n subjects that queries resemble, as columns: those of ``hits.parquet``, by their names.

    `query_index` and `subject_index` are places in the files, from 0; `rank` among the hits of the query, from 1. The aligned lines are
    those of `Alignment.lines`.
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
    def of(
        cls,
        pairs: AlignedPairs,
        queries: SequenceEntries,
        subjects: SequenceEntries,
        scores: Integers,
        ranks: Integers,
        bit_scores: Reals,
        e_values: Reals,
    ) -> Hits:
        """Hits with their alignments."""
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
    def of_table(cls, table: pa.Table) -> Hits:
        """Rows of `hits_schema`, none of whose values is missing."""
        taken: dict[str, Any] = {}
        for field in fields(cls):
            column = table.column(field.name).combine_chunks()
            if field.name in _TEXTS:
                # Names that the program wrote are escaped already; those of a changed project may not be.
                texts = Texts.of_arrow(column)
                taken[field.name] = escape_unprintable_texts(texts)[0] if field.name in ("query", "subject") else texts
            else:
                values = column.to_numpy(zero_copy_only=False)
                taken[field.name] = values if field.name in _REALS else values.astype(np.int64)
        return cls(**taken)

    def __len__(self) -> int:
        return len(self.score)

    def part(self, some: slice) -> Hits:
        """Some that follow one another."""
        return type(self)(**{name: column[some] for name, column in vars(self).items()})

    def taken(self, rows: Integers) -> Hits:
        """Those of some rows, in their order."""
        return type(self)(**{name: column.take(rows) for name, column in vars(self).items()})

    @property
    def aligned(self) -> AlignedSubjects:
        """The subjects with their alignments, to be stacked; all hits must be of one query."""
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
        """Columns of each alignment with the same residue twice."""
        return np.rint(self.identity * self.alignment_length).astype(np.int64)

    @property
    def gap_residues(self) -> Integers:
        """Columns of each alignment with a gap."""
        return self.alignment_length - self.identities - self.mismatches


_KINDS = get_type_hints(Hits)
_TEXTS = {name for name, kind in _KINDS.items() if kind is Texts}
_REALS = {name for name, kind in _KINDS.items() if kind == Reals}


@dataclass(frozen=True)
class QueryHits:
    """Queries that follow one another and their hits, best first, as columns.

    Attributes
    ----------
    query_index : (q,) int64, places in the files, from 0. accessions, descriptions, sequences : of the q queries.
    offsets : (q + 1,) int64, where the hits of each begin among the n of `hits`.
    """

    query_index: Integers
    accessions: Texts
    descriptions: Texts
    sequences: Texts
    offsets: Integers
    hits: Hits

    def __len__(self) -> int:
        return len(self.query_index)

    def part(self, some: slice) -> QueryHits:
        """Queries that follow one another, with their hits."""
        first, last, _ = some.indices(len(self))
        hits = slice(int(self.offsets[first]), int(self.offsets[last]))
        return QueryHits(
            self.query_index[some],
            self.accessions[some],
            self.descriptions[some],
            self.sequences[some],
            self.offsets[first : last + 1] - self.offsets[first],
            self.hits.part(hits),
        )

    def stack(self, place: int) -> Stack:
        """The hits of one of the queries, by its place among them, stacked below it.

        Raises
        ------
        ParameterError : there are too many letters.
        """
        own = self.part(slice(place, place + 1))
        name, description, sequence = (texts.strings()[0] for texts in (own.accessions, own.descriptions, own.sequences))
        return Stack.of(name, description, sequence, own.hits.aligned)

    def pieces(self) -> Iterator[QueryHits]:
        """The same in pieces of whole queries with some hundreds of hits each, or of one that has more."""
        first = 0
        while first < len(self):
            most = int(self.offsets[first]) + _HITS_OF_A_PIECE
            last = max(first + 1, min(first + _HITS_OF_A_PIECE, int(np.searchsorted(self.offsets, most, side="right")) - 1))
            yield self.part(slice(first, last))
            first = last


class _Writer:
    """Writes queries with their hits to a file, some after the other; between hundreds of hits it looks whether the user wants to stop."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress = file, progress
        self.begin()

    def line(self, text: str = "") -> None:
        """Write a line."""
        self._file.write(text.encode() + b"\n")

    def begin(self) -> None:
        """Text before the first query."""

    def write(self, found: QueryHits) -> None:
        """Write the hits of queries."""
        for some in self.each(found.hits):
            self._file.write("".join(self.texts(some)).encode())

    def each(self, hits: Hits) -> Iterator[Hits]:
        """The hits, some hundreds at a time, as long as the user does not want to stop."""
        for first in range(0, len(hits), _HITS_OF_A_PIECE):
            self._progress.check()
            yield hits.part(slice(first, first + _HITS_OF_A_PIECE))

    def texts(self, hits: Hits) -> Iterable[str]:
        """What is written of each hit, in formats that tell nothing of a query without any."""
        raise NotImplementedError

    def finish(self) -> None:
        """What stands behind the last query."""

    def close(self) -> None:
        """Let go of what it holds beside the file."""


def _lists(hits: Hits, *names: str) -> list[list[Any]]:
    """Columns as lists of Python's numbers and strings."""
    columns = (getattr(hits, name) for name in names)
    return [column.strings() if isinstance(column, Texts) else column.tolist() for column in columns]


class _Tsv(_Writer):
    """The table, tab-separated. `is_safe`: for spreadsheets, in which no name and no description is a formula."""

    is_safe = False

    def begin(self) -> None:
        self._file.write(header_line(HITS.saved_columns))

    def write(self, found: QueryHits) -> None:
        for some in self.each(found.hits):
            self._file.write(separated_lines(hits_table(some), HITS.saved_columns, PRINTED, spreadsheet_safe=self.is_safe))


class _SafeTsv(_Tsv):
    """The same for spreadsheets."""

    is_safe = True


class _Blast6(_Writer):
    """BLAST's tabular format, the twelve columns of ``-outfmt 6``; identity in per cent."""

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
    """The two sequences of each alignment, with their gaps."""

    def texts(self, hits: Hits) -> Iterable[str]:
        above = map(
            ">{}/{}-{} score={} bit_score={:.1f} e_value={:.3g} identity={:.4f}\n".format,
            *_lists(hits, "query", "query_start", "query_end", "score", "bit_score", "e_value", "identity"),
        )
        below = map(">{}/{}-{} {}".format, *_lists(hits, "subject", "subject_start", "subject_end"), _on_one_line(hits.description))
        lines = (_wrapped(texts).strings() for texts in (hits.aligned_query, hits.aligned_subject))
        return map("{}{}{}\n{}".format, above, next(lines), map(str.rstrip, below), next(lines))


def _on_one_line(texts: Texts) -> list[str]:
    """Texts with spaces for control characters."""
    strings = texts.strings()
    return [_CONTROLS.sub(" ", text) for text in strings] if _IS_CONTROL[texts.own].any() else strings


def _wrapped(texts: Texts) -> Texts:
    """Texts of ASCII in lines of `_WIDTH` letters, each of which ends."""
    lengths = np.diff(texts.offsets)
    offsets = offsets_of(lengths + -(-lengths // _WIDTH))
    column = np.arange(int(lengths.sum())) - np.repeat(texts.offsets[:-1] - texts.offsets[0], lengths)
    letters = np.full(offsets[-1], ord("\n"), np.uint8)
    letters[np.repeat(offsets[:-1], lengths) + column + column // _WIDTH] = texts.own
    return Texts(letters, offsets)


@dataclass(frozen=True)
class _Blocks:
    """The columns of alignments in blocks of `_WIDTH`: the hit of each block, its first column, and its columns."""

    hit: Integers
    first: Integers
    width: Integers
    offsets: Integers
    """(hits + 1,) where the blocks of each hit begin."""

    @classmethod
    def of(cls, hits: Hits) -> _Blocks:
        """Those of all hits."""
        lengths = np.diff(hits.aligned_query.offsets)
        offsets = offsets_of(-(-lengths // _WIDTH))
        hit = np.repeat(np.arange(len(hits)), np.diff(offsets))
        first = (np.arange(len(hit)) - offsets[hit]) * _WIDTH
        return cls(hit, first, np.minimum(lengths[hit] - first, _WIDTH), offsets)

    def cut(self, texts: Texts) -> Texts:
        """The texts of the hits, one behind the other, cut into blocks."""
        return Texts(texts.letters, np.concatenate((texts.offsets[self.hit] + self.first, texts.offsets[-1:])))

    def joined(self, blocks: Iterable[str], between: str = "") -> Iterable[str]:
        """The text of each hit's blocks, put together."""
        given = list(blocks)
        return map(between.join, map(given.__getitem__, map(slice, self.offsets[:-1].tolist(), self.offsets[1:].tolist())))


def _repeated(values: Sequence[Any], places: Integers) -> list[Any]:
    """The values at these places."""
    return list(map(values.__getitem__, places.tolist()))


class _Clustal(_Writer):
    """A CLUSTAL alignment for each hit: ``*`` the same residue, ``:`` a pair that the matrix scores above zero."""

    _MARKS = np.full(256, ord("*"), np.uint8)
    _MARKS[[ord(" "), ord("+")]] = ord(" "), ord(":")

    def texts(self, hits: Hits) -> Iterable[str]:
        shortened = itemgetter(slice(_CLUSTAL_NAME))
        names = [list(map(shortened, map(str.replace, one, repeat(" "), repeat("_")))) for one in _lists(hits, "query", "subject")]
        pairs = list(map(_told_apart, *names)) if any(map(str.__eq__, *names)) else list(zip(*names, strict=True))
        names = [list(map(itemgetter(line), pairs)) for line in (0, 1)]
        widths = np.maximum(*(np.fromiter(map(len, one), np.int64, len(hits)) for one in names)) + 6
        blocks = _Blocks.of(hits)
        middle = hits.aligned_middle
        marks = Texts(self._MARKS[middle.own], middle.offsets - middle.offsets[0])
        padded = [_repeated(list(map(str.ljust, one, widths.tolist())), blocks.hit) for one in (*names, [""] * len(hits))]
        letters = (blocks.cut(one).strings() for one in (hits.aligned_query, hits.aligned_subject, marks))
        shown = map("{}{}\n{}{}\n{}{}\n\n".format, *chain.from_iterable(zip(padded, letters, strict=True)))
        title = f"CLUSTAL W (1.83) multiple sequence alignment by Proteoscope {VERSION}\n\n\n"
        return map("{}{}".format, repeat(title), blocks.joined(shown))


def _told_apart(query: str, subject: str) -> tuple[str, str]:
    """The names of a pair in CLUSTAL, which must differ."""
    if query != subject:
        return query, subject
    return f"{query[: _CLUSTAL_NAME - 2]}_q", f"{query[: _CLUSTAL_NAME - 2]}_s"


class _Sam(_Writer):
    """SAM with the proteins as they are, but X for ``*``; ``AS`` is the score, ``ZB`` the bit score and ``ZE`` the E-value."""

    def begin(self) -> None:
        # The header names the subjects of all records, so that the records wait.
        self._queries, self._subjects = SamNames(are_read_names=True), SamNames()
        self._lengths: dict[str, int] = {}
        self._records = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 - it lives as long as the writer

    def write(self, found: QueryHits) -> None:
        names = Texts.of(self._queries.names(found.query_index, found.accessions))
        own = found.sequences.own
        # An empty sequence stands behind the others, for records that leave theirs out.
        offsets = np.append(found.sequences.offsets, found.sequences.offsets[-1:]) - found.sequences.offsets[0]
        known = np.where(own == ord("*"), np.uint8(ord("X")), own)
        letters = SamSequences(known, known[:0], offsets, np.arange(256, dtype=np.uint8))
        n_hits = np.diff(found.offsets)
        query = np.repeat(np.arange(len(found)), np.maximum(1, n_hits))
        place = np.cumsum(np.maximum(1, n_hits)) - np.maximum(1, n_hits)
        hit = np.where(np.repeat(n_hits > 0, np.maximum(1, n_hits)), np.arange(len(query)) - place[query] + found.offsets[query], -1)
        for first in range(0, len(query), _HITS_OF_A_PIECE):
            self._progress.check()
            some = slice(first, first + _HITS_OF_A_PIECE)
            records, references = self._of_hits(found.hits, hit[some], query[some], names, len(found))
            self._records.write(sam_lines(records, references, letters)[0])

    def _of_hits(self, hits: Hits, places: Integers, query: Integers, names: Texts, empty: int) -> tuple[SamRecords, Texts]:
        """Records of hits by their places, -1 for a query without any, and the names of their subjects; `empty` is an empty sequence."""
        n, is_hit = len(places), places >= 0
        own = places[is_hit]
        some = hits.part(slice(int(own[0]), int(own[-1]) + 1) if len(own) else slice(0, 0))
        subjects = self._subjects.names(some.subject_index, some.subject)
        self._lengths.update(zip(subjects, some.subject_length.tolist(), strict=True))
        is_other = np.zeros(n, np.bool_)
        is_other[is_hit] = some.rank > 1
        where, clips = np.tile(np.array(NO_PLACE, np.int64), (n, 1)), np.zeros((n, 2), np.int64)
        where[is_hit, 0], where[is_hit, 1], where[is_hit, 2] = np.arange(len(some)), some.subject_start, NO_QUALITY
        clips[is_hit] = np.stack([some.query_start - 1, some.query_length - some.query_end], axis=1)
        tags = map(
            "\tAS:i:{}\tNM:i:{}\tZB:f:{:.1f}\tZE:f:{:.3g}".format,
            some.score.tolist(),
            (some.alignment_length - some.identities).tolist(),
            *_lists(some, "bit_score", "e_value"),
        )
        cigars, written = (_spread(texts, is_hit) for texts in (some.cigar, Texts.of(tags)))
        flags = np.where(is_hit, np.where(is_other, SECONDARY, 0), UNPLACED)
        return SamRecords(names.take(query), flags, where, cigars, clips, written, np.where(is_other, empty, query)), Texts.of(subjects)

    def finish(self) -> None:
        self._file.write(sam_header(self._lengths, self._lengths.values()))
        self._records.seek(0)
        while piece := self._records.read(_COPIED_BYTES):
            self._progress.check()
            self._file.write(piece)
        self._queries.warn(self._progress, "query", "queries")
        self._subjects.warn(self._progress, "database sequence")

    def close(self) -> None:
        self._records.close()


def _spread(texts: Texts, is_there: NDArray[np.bool_]) -> Texts:
    """The texts where they are, and empty ones elsewhere."""
    lengths = np.zeros(len(is_there), np.int64)
    lengths[is_there] = np.diff(texts.offsets)
    return Texts(texts.own, offsets_of(lengths))


class _Html(_Writer):
    """A page of its own: a table for each query, and the alignments in three lines."""

    def begin(self) -> None:
        self.line('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Proteoscope: sequence search</title>\n<style>')
        self.line("body{font-family:sans-serif;margin:2em} table{border-collapse:collapse} th,td{padding:.15em .6em;text-align:right}")
        self.line("th:first-child,td:first-child,th:last-child,td:last-child{text-align:left} tr:nth-child(even){background:#f2f2f2}")
        self.line("pre{line-height:1.25} .same{background:#cfe8cf} .like{background:#eef3c8}")
        self.line("</style></head><body>")

    def write(self, found: QueryHits) -> None:
        rows: list[str] = []
        alignments: list[str] = []
        for some in self.each(found.hits):
            subjects, descriptions = (_shown_each(texts) for texts in (some.subject, some.description))
            rows += _rows_of_page(some, subjects, descriptions)
            alignments += _alignments_of_page(some, subjects, descriptions)
        lengths = np.diff(found.sequences.offsets).tolist()
        places = zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), strict=True)
        for name, description, length, (first, last) in zip(
            _shown_each(found.accessions), _shown_each(found.descriptions), lengths, places, strict=True
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
    """Text for a page; the mark between the headers that NCBI's nr joins is shown as BLAST does."""
    return html.escape(_NO_TEXT.sub(" ", text.replace("\x01", " >")))


_IS_ODD_ON_A_PAGE = np.ones(256, bool)
_IS_ODD_ON_A_PAGE[[code for code in range(ord(" "), 127) if chr(code) not in "&<>\"'"]] = False


def _shown_each(texts: Texts) -> list[str]:
    """Texts for a page; most may stand there as they are."""
    return list(map(_shown, texts.strings())) if _IS_ODD_ON_A_PAGE[texts.own].any() else texts.strings()


def _rows_of_page(hits: Hits, subjects: list[str], descriptions: list[str]) -> Iterable[str]:
    """The rows of the table."""
    row = '<tr><td><a href="#a{}-{}">{}</a></td><td>{:.2g}</td><td>{:.1f}</td><td>{}</td><td>{:.1f} %</td><td>{}-{}</td><td>{}</td></tr>\n'
    query, rank, *values = _lists(hits, "query_index", "rank", "e_value", "bit_score", "score")
    return map(
        row.format, query, rank, subjects, *values, (hits.identity * 100).tolist(), *_lists(hits, "query_start", "query_end"), descriptions
    )


def _alignments_of_page(hits: Hits, subjects: list[str], descriptions: list[str]) -> Iterable[str]:
    """The alignments, each below its title and what is told of it."""
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
    """The three lines of each hit with marks around columns that agree, see `three_lines`."""
    blocks = _Blocks.of(hits)
    marks = hits.aligned_middle.own
    kinds = np.where(marks == ord(" "), 0, np.where(marks == ord("+"), _LIKE, _SAME))
    ends = np.cumsum(blocks.width)
    begins_block, ends_block = np.zeros(len(kinds), bool), np.zeros(len(kinds), bool)
    begins_block[ends - blocks.width], ends_block[ends - 1] = True, True
    differs = np.flatnonzero(np.diff(kinds)) + 1
    begins_block[differs], ends_block[differs - 1] = True, True  # of a run of columns too
    opens, closes = np.flatnonzero(begins_block & (kinds > 0)), np.flatnonzero(ends_block & (kinds > 0))
    sizes = np.ones(len(kinds), np.int64)
    sizes[opens] += _SPANS.shape[1]
    sizes[closes] += len(_SPAN_END)
    behind = np.cumsum(sizes)
    opened, closed = behind - sizes, behind.copy()
    letter_places = opened.copy()
    letter_places[opens] += _SPANS.shape[1]
    block_offsets = np.concatenate(([0], behind))[np.concatenate(([0], ends))]
    frame = np.empty(int(block_offsets[-1]), np.uint8)
    frame[opened[opens, None] + np.arange(_SPANS.shape[1])] = _SPANS[kinds[opens] - 1]
    frame[closed[closes, None] - len(_SPAN_END) + np.arange(len(_SPAN_END))] = _SPAN_END
    texts, places = [], []
    for line, start in ((hits.aligned_query, hits.query_start), (hits.aligned_middle, None), (hits.aligned_subject, hits.subject_start)):
        frame[letter_places] = line.own
        texts.append(Texts(frame, block_offsets).strings())
        if start is not None:
            residues = np.add.reduceat(line.own != ord("-"), ends - blocks.width, dtype=np.int64) if len(ends) else np.empty(0, np.int64)
            before = np.concatenate(([0], np.cumsum(residues)))
            last = start[blocks.hit] - 1 + before[1:] - before[blocks.offsets[blocks.hit]]
            places.append((np.minimum(last - residues + 1, last).tolist(), last.tolist()))
    (query_first, query_last), (subject_first, subject_last) = places
    text = f"Query  {{:>7}} {{}} {{}}\n{'':<{_MARGIN}}{{}}\nSbjct  {{:>7}} {{}} {{}}\n"
    shown = map(text.format, query_first, texts[0], query_last, texts[1], subject_first, texts[2], subject_last)
    return blocks.joined(shown, "\n")


def three_lines(lines: tuple[str, str, str], query_start: int, subject_start: int, width: int = _WIDTH) -> Iterator[tuple[str, str, str]]:
    """An alignment's lines in blocks of `width` columns, with the positions at both ends, as BLAST shows it.

    Parameters
    ----------
    lines : of `Alignment.lines`. query_start, subject_start : of the first residues, from 0.
    """
    at_query, at_subject = query_start, subject_start
    for start in range(0, len(lines[0]), width):
        query, middle, subject = (text[start : start + width] for text in lines)
        end_query, end_subject = at_query + len(query) - query.count("-"), at_subject + len(subject) - subject.count("-")
        yield (
            f"Query  {min(at_query + 1, end_query):>7} {query} {end_query}",
            f"{'':<{_MARGIN}}{middle}",
            f"Sbjct  {min(at_subject + 1, end_subject):>7} {subject} {end_subject}",
        )
        at_query, at_subject = end_query, end_subject


class _Stacked(_Writer):
    """The hits of each query stacked below it, or their pairs, in a format of `proteoscope.engine.sequences.stack_formats`."""

    def __init__(self, format: str, file: BinaryIO, progress: Progress) -> None:
        self._format, self._name, self._n_stacks = format.removesuffix("-stack"), format, 0
        self._replaced: set[str] = set()
        super().__init__(file, progress)

    def begin(self) -> None:
        self._file.write(sequences.stack_formats.file_header(self._format).encode())

    def write(self, found: QueryHits) -> None:
        for place in np.flatnonzero(np.diff(found.offsets)).tolist():
            self._progress.check()
            self._n_stacks += 1
            if self._n_stacks > 1 and self._name in OF_ONE_QUERY:
                raise ParameterError(f"a file of {self._name} holds the hits of one query, and several have some; choose one (--query)")
            stack = found.stack(place)
            self._replaced.update(name for name in stack.names if sequences.stack_formats.plain_name(name) != name)
            self._file.write(sequences.stack_formats.stack_text(stack, self._format).encode())

    def finish(self) -> None:
        if not self._n_stacks:
            raise NothingToStackError(f"no query has a hit, so that there is nothing to write as {self._name}")
        if n := len(self._replaced):
            names = "1 name holds" if n == 1 else f"{n:,} names hold"
            self._progress.message(f"{names} characters that {self._name} does not take; they are {ESCAPES}", "warning")


_WRITERS: dict[str, Callable[[BinaryIO, Progress], _Writer]] = {
    "tsv": _Tsv,
    "blast6": _Blast6,
    "sam": _Sam,
    "fasta": _Fasta,
    "clustal": _Clustal,
    "html": _Html,
    **{one: partial(_Stacked, one) for one in ("stockholm", "a3m", "phylip", "clustal-stack", "maf", "psl")},
}


@contextmanager
def hit_writer(path: Path, format: str, progress: Progress, *, spreadsheet_safe: bool = False) -> Iterator[_Writer]:
    """A writer whose file appears when the block ends well, and does not when it does not.

    `spreadsheet_safe`: of ``tsv``: an apostrophe stands before texts that a spreadsheet would take for formulas.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    kind = _SafeTsv if spreadsheet_safe and format == "tsv" else _WRITERS[format]
    with atomic_file(path) as file, closing(kind(file, progress)) as writer:
        yield writer
        writer.finish()


def hits_schema() -> pa.Schema:
    """Columns of ``hits.parquet``: those of `Hits`, which are `COLUMNS` and behind them what ties a row to its place and shows it."""
    return HITS.schema()


def hits_table(hits: Hits) -> pa.Table:
    """Hits as rows of `hits_schema`."""
    return HITS.arrow({name: one.arrow() if isinstance(one, Texts) else one for name, one in vars(hits).items()})


def expected_counts(
    statistics: ScoreStatistics, query_length: int, subject_lengths: NDArray[np.integer]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """How many subjects chance lets have each score with a query, by the statistics of the search.

    A score of at least x has the probability ``1 - exp(-E(x))``, E being the E-value for this one subject. Subjects of about the same
    length are counted together, at the middle of their lengths.

    Parameters
    ----------
    subject_lengths : (n,) ascending.

    Returns
    -------
    scores : (s,) int32, 1, 2, ... as far as a thousandth of a subject is expected. counts : (s,) float64.
    """
    lengths = subject_lengths[np.searchsorted(subject_lengths, 1) :]
    if statistics.source == "none" or len(lengths) == 0 or query_length == 0:
        return np.empty(0, np.int32), np.empty(0)
    cuts = np.unique(np.linspace(0, len(lengths), _LENGTH_GROUPS + 1).astype(np.int64))
    middles, sizes = lengths[(cuts[:-1] + cuts[1:]) // 2], np.diff(cuts)
    # Without any correction of the lengths chance goes no further.
    furthest = np.log(max(statistics.K * query_length * float(lengths.sum()) / _MINIMUM_EXPECTED, 2.0)) / statistics.lambda_
    scores = np.arange(1, int(furthest) + 3)
    grid, length = np.repeat(scores, len(middles)), np.tile(middles, len(scores))
    passed = -np.expm1(-statistics.e_values(grid, query_length, length, 1) * length)
    above = (passed.reshape(len(scores), len(middles)) * sizes).sum(axis=1)
    counts = np.maximum(above[:-1] - above[1:], 0.0)
    kept = int((above[:-1] >= _MINIMUM_EXPECTED).sum())
    return scores[:kept].astype(np.int32), counts[:kept]

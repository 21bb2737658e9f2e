"""Report: the hits of each query as a table and in the formats that biologists and other programs read.

Each writer is told of one query after the other, so that memory grows with the hits of one query and not with the number of queries. What
they write of a hit is what a row of a run's table holds, so that a run can be exported as it was reported.
"""

from __future__ import annotations

import html
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import chain, count, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from engine.files import atomic_file
from engine.formats.spreadsheet import no_formula
from engine.jobs.progress import Progress
from engine.sequences.alignment import Alignment
from engine.sequences.statistics import ScoreStatistics
from engine.version import VERSION

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "FORMATS",
    "Hit",
    "HitFormat",
    "Place",
    "QueryHits",
    "expected_counts",
    "hit_writer",
    "hits_schema",
    "hits_table",
    "three_lines",
]

HitFormat = Literal["tsv", "blast6", "sam", "fasta", "clustal", "html"]
FORMATS: tuple[HitFormat, ...] = get_args(HitFormat)

COLUMNS = (
    "query", "subject", "identity", "alignment_length", "mismatches", "gap_openings", "query_start", "query_end", "subject_start",
    "subject_end", "e_value", "bit_score", "score", "positives", "query_coverage", "subject_coverage", "cigar", "subject_length",
    "description",
)  # fmt: skip
"""Columns of the table and their order, which others rely on. Positions count from 1; identity and coverages are shares from 0 to 1."""

_WIDTH = 60
_LENGTH_GROUPS = 64
_LEAST_EXPECTED = 1e-3
_CLUSTAL_NAME = 30
_SPOOLED_BYTES, _COPIED_BYTES = 16 << 20, 4 << 20
_UNMAPPED, _SECONDARY, _NO_QUALITY = 4, 256, 255
_NOT_IN_SAM_NAMES = re.compile(r"[^0-9A-Za-z!#$%&+./:;?@^_|~*=-]")
_LONGEST_SAM_NAME = 254  # of a query; those of subjects may be of any length
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Place:
    """A sequence of a hit: its place in the files, from 0, and what they say of it; `length` in residues."""

    name: str
    description: str
    index: int
    length: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A subject that a query resembles: a row of ``hits.parquet``, whose columns these are.

    `query_index` and `subject_index` are places in the files, from 0; `rank` among the hits of the query, from 1. The aligned lines are
    those of `Alignment.lines`.
    """

    query: str
    subject: str
    identity: float
    alignment_length: int
    mismatches: int
    gap_openings: int
    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    e_value: float
    bit_score: float
    score: int
    positives: int
    query_coverage: float
    subject_coverage: float
    cigar: str
    subject_length: int
    description: str
    query_index: int
    subject_index: int
    query_length: int
    rank: int
    aligned_query: str
    aligned_middle: str
    aligned_subject: str

    @classmethod
    def of(cls, alignment: Alignment, query: Place, subject: Place, rank: int, bit_score: float, e_value: float) -> Hit:
        """A hit with its alignment."""
        query_line, middle, subject_line = alignment.lines()
        query_end, subject_end, columns, identities = alignment.query_end, alignment.subject_end, len(alignment), alignment.identities
        return cls(
            query=query.name,
            subject=subject.name,
            identity=identities / max(1, columns),
            alignment_length=columns,
            mismatches=alignment.mismatches,
            gap_openings=alignment.gap_openings,
            query_start=alignment.query_start + 1,
            query_end=query_end,
            subject_start=alignment.subject_start + 1,
            subject_end=subject_end,
            e_value=e_value,
            bit_score=bit_score,
            score=alignment.score,
            positives=alignment.positives,
            query_coverage=(query_end - alignment.query_start) / max(1, query.length),
            subject_coverage=(subject_end - alignment.subject_start) / max(1, subject.length),
            cigar=alignment.cigar,
            subject_length=subject.length,
            description=subject.description,
            query_index=query.index,
            subject_index=subject.index,
            query_length=query.length,
            rank=rank,
            aligned_query=query_line,
            aligned_middle=middle,
            aligned_subject=subject_line,
        )

    @property
    def identities(self) -> int:
        """Columns of the alignment with the same residue twice."""
        return round(self.identity * self.alignment_length)

    @property
    def gap_residues(self) -> int:
        """Columns of the alignment with a gap."""
        return self.alignment_length - self.identities - self.mismatches


@dataclass(frozen=True)
class QueryHits:
    """A query and its hits, best first. `query_index` is its place in the files, from 0."""

    query_index: int
    accession: str
    description: str
    sequence: str
    hits: list[Hit]


class _Writer:
    """Writes queries with their hits to a file, one after the other; between hits it looks whether the user wants to stop."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress = file, progress
        self.begin()

    def line(self, text: str = "") -> None:
        """Write a line."""
        self._file.write(text.encode() + b"\n")

    def begin(self) -> None:
        """What stands before the first query."""

    def write(self, found: QueryHits) -> None:
        """Write a query's hits."""
        for hit in self.each(found.hits):
            self.write_hit(hit)

    def each(self, hits: Sequence[Hit]) -> Iterator[Hit]:
        """The hits, as long as the user does not want to stop."""
        for hit in hits:
            self._progress.check()
            yield hit

    def write_hit(self, hit: Hit) -> None:
        """Write one hit, in formats that tell nothing of a query without any."""
        raise NotImplementedError

    def finish(self) -> None:
        """What stands behind the last query."""

    def close(self) -> None:
        """Let go of what it holds beside the file."""


class _Tsv(_Writer):
    def begin(self) -> None:
        self.line("\t".join(COLUMNS))

    def write_hit(self, hit: Hit) -> None:
        row = dict(zip(COLUMNS, _VALUES(hit), strict=True))
        row |= {name: f"{row[name]:.4f}" for name in ("identity", "query_coverage", "subject_coverage")}
        row |= {"e_value": f"{hit.e_value:.3g}", "bit_score": f"{hit.bit_score:.1f}"}
        self.line("\t".join(_cell(str(value)) for value in row.values()))


_VALUES = attrgetter(*COLUMNS)


class _SafeTsv(_Tsv):
    """The same for spreadsheets: no name and no description is a formula."""

    def write_hit(self, hit: Hit) -> None:
        query, subject, description = map(no_formula, (hit.query, hit.subject, hit.description))
        super().write_hit(replace(hit, query=query, subject=subject, description=description))


def _cell(text: str) -> str:
    text = text.replace("\t", " ")
    return '"' + text.replace('"', '""') + '"' if '"' in text else text


class _Blast6(_Writer):
    """BLAST's tabular format, the twelve columns of ``-outfmt 6``; identity in per cent."""

    def write_hit(self, hit: Hit) -> None:
        values = (
            hit.query, hit.subject, f"{hit.identity * 100:.3f}", hit.alignment_length, hit.mismatches, hit.gap_openings,
            hit.query_start, hit.query_end, hit.subject_start, hit.subject_end, f"{hit.e_value:.2e}", f"{hit.bit_score:.1f}",
        )  # fmt: skip
        self.line("\t".join(map(str, values)))


class _Fasta(_Writer):
    """The two sequences of each alignment, with their gaps."""

    def write_hit(self, hit: Hit) -> None:
        note = f"score={hit.score} bit_score={hit.bit_score:.1f} e_value={hit.e_value:.3g} identity={hit.identity:.4f}"
        self.line(f">{hit.query}/{hit.query_start}-{hit.query_end} {note}")
        self._wrapped(hit.aligned_query)
        self.line(f">{hit.subject}/{hit.subject_start}-{hit.subject_end} {hit.description}".rstrip())
        self._wrapped(hit.aligned_subject)

    def _wrapped(self, letters: str) -> None:
        for start in range(0, len(letters), _WIDTH):
            self.line(letters[start : start + _WIDTH])


class _Clustal(_Writer):
    """A CLUSTAL alignment for each hit: ``*`` the same residue, ``:`` a pair that the matrix scores above zero."""

    def write_hit(self, hit: Hit) -> None:
        marks = "".join("*" if letter not in " +" else ":" if letter == "+" else " " for letter in hit.aligned_middle)
        names = [name.replace(" ", "_")[:_CLUSTAL_NAME] for name in (hit.query, hit.subject)]
        if names[0] == names[1]:
            names = [f"{names[0][: _CLUSTAL_NAME - 2]}_{letter}" for letter in "qs"]
        width = max(map(len, names)) + 6
        self.line(f"CLUSTAL W (1.83) multiple sequence alignment by Proteoscope {VERSION}\n\n")
        for start in range(0, hit.alignment_length, _WIDTH):
            for name, letters in ((names[0], hit.aligned_query), (names[1], hit.aligned_subject), ("", marks)):
                self.line(f"{name:<{width}}{letters[start : start + _WIDTH]}")
            self.line()


class _Sam(_Writer):
    """SAM with the proteins as they are, but X for ``*``; ``AS`` is the score, ``ZB`` the bit score and ``ZE`` the E-value."""

    def begin(self) -> None:
        # The header names the subjects of all records, so that the records wait.
        self._queries, self._subjects = _SamNames(_LONGEST_SAM_NAME), _SamNames(sys.maxsize)
        self._lengths: dict[str, int] = {}
        self._records = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 - it lives as long as the writer

    def write(self, found: QueryHits) -> None:
        name = self._queries.name(found.query_index, found.accession)
        letters = found.sequence.replace("*", "X") or "*"
        if not found.hits:
            self._record(name, _UNMAPPED, "*", 0, 0, "*", "*", 0, 0, letters, "*")
        for hit in self.each(found.hits):
            subject = self._subjects.name(hit.subject_index, hit.subject)
            self._lengths[subject] = hit.subject_length
            before, behind = (f"{length}S" if length else "" for length in (hit.query_start - 1, hit.query_length - hit.query_end))
            edits = hit.alignment_length - hit.identities
            tags = (f"AS:i:{hit.score}", f"NM:i:{edits}", f"ZB:f:{hit.bit_score:.1f}", f"ZE:f:{hit.e_value:.3g}")
            flag, shown = (_SECONDARY, "*") if hit.rank > 1 else (0, letters)
            cigar = f"{before}{hit.cigar}{behind}"
            self._record(name, flag, subject, hit.subject_start, _NO_QUALITY, cigar, "*", 0, 0, shown, "*", *tags)

    def _record(self, *values: object) -> None:
        self._records.write("\t".join(map(str, values)).encode() + b"\n")

    def finish(self) -> None:
        self.line("@HD\tVN:1.6\tSO:unsorted\tGO:query")
        for name, length in self._lengths.items():
            self.line(f"@SQ\tSN:{name}\tLN:{length}")
        self.line(f"@PG\tID:proteoscope\tPN:proteoscope\tVN:{VERSION}")
        self._records.seek(0)
        while piece := self._records.read(_COPIED_BYTES):
            self._progress.check()
            self._file.write(piece)

    def close(self) -> None:
        self._records.close()


class _SamNames:
    """Names as SAM allows them, one for each sequence: where several would have one name, all but the first are told by their place."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def name(self, index: int, accession: str) -> str:
        """The name of the sequence at a place in the files."""
        if index not in self._names:
            plain = _NOT_IN_SAM_NAMES.sub("_", accession).lstrip("*=") or "_"
            for ending in chain(("", f"_{index + 1}"), (f"_{index + 1}_{n}" for n in count(2))):
                name = plain[: self._longest - len(ending)] + ending
                if name not in self._taken:
                    break
            self._taken.add(name)
            self._names[index] = name
        return self._names[index]


class _Html(_Writer):
    """A page of its own: a table for each query, and the alignments in three lines."""

    def begin(self) -> None:
        self.line('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Proteoscope: sequence search</title>\n<style>')
        self.line("body{font-family:sans-serif;margin:2em} table{border-collapse:collapse} th,td{padding:.15em .6em;text-align:right}")
        self.line("th:first-child,td:first-child,th:last-child,td:last-child{text-align:left} tr:nth-child(even){background:#f2f2f2}")
        self.line("pre{line-height:1.25} .same{background:#cfe8cf} .like{background:#eef3c8}")
        self.line("</style></head><body>")

    def write(self, found: QueryHits) -> None:
        q = found.query_index
        self.line(f"<h2>{_shown(found.accession)} <small>{_shown(found.description)}, {len(found.sequence)} residues</small></h2>")
        if not found.hits:
            self.line("<p>No hits.</p>")
            return
        self.line(
            "<table><tr><th>Subject</th><th>E-value</th><th>Bits</th><th>Score</th><th>Identity</th><th>Query</th><th>Description</th></tr>"
        )
        for hit in self.each(found.hits):
            self.line(
                f'<tr><td><a href="#a{q}-{hit.rank}">{_shown(hit.subject)}</a></td><td>{hit.e_value:.2g}</td><td>{hit.bit_score:.1f}</td>'
                f"<td>{hit.score}</td><td>{hit.identity * 100:.1f} %</td><td>{hit.query_start}-{hit.query_end}</td>"
                f"<td>{_shown(hit.description)}</td></tr>"
            )
        self.line("</table>")
        for hit in self.each(found.hits):
            self.line(f'<h3 id="a{q}-{hit.rank}">{_shown(hit.subject)} <small>{_shown(hit.description)}</small></h3>')
            self.line(f"<p>{_summary(hit)}</p>\n<pre>{_coloured(hit)}</pre>")

    def finish(self) -> None:
        self.line("</body></html>")


def _shown(text: str) -> str:
    """Text for a page; the mark between the headers that NCBI's nr joins is shown as BLAST does."""
    return html.escape(_NO_TEXT.sub(" ", text.replace("\x01", " >")))


def _summary(hit: Hit) -> str:
    gaps = "no gaps"
    if hit.gap_openings:
        openings, residues = "" if hit.gap_openings == 1 else "s", "" if hit.gap_residues == 1 else "s"
        gaps = f"{hit.gap_openings} gap opening{openings} ({hit.gap_residues} residue{residues})"
    return (
        f"Score {hit.score}, {hit.bit_score:.1f} bits, E-value {hit.e_value:.2g}; {hit.identities} of {hit.alignment_length} "
        f"identical ({hit.identity * 100:.1f} %), {hit.positives} positive, {gaps}; "
        f"{hit.query_coverage * 100:.0f} % of the query, {hit.subject_coverage * 100:.0f} % of the subject "
        f"({hit.subject_length} residues)"
    )


def _coloured(hit: Hit) -> str:
    """The three lines with marks around columns that agree."""
    lines = []
    for query, middle, subject in three_lines(
        (hit.aligned_query, hit.aligned_middle, hit.aligned_subject), hit.query_start - 1, hit.subject_start - 1
    ):
        width = len(middle) - _MARGIN
        kinds = ["like" if mark == "+" else "" if mark == " " else "same" for mark in middle[_MARGIN:]]
        runs = [[place for place, _ in run] for _, run in groupby(enumerate(kinds), key=itemgetter(1))]
        for text in (query, middle, subject):
            parts = [_shown(text[:_MARGIN])]
            for run in runs:
                letters = _shown(text[_MARGIN + run[0] : _MARGIN + run[-1] + 1])
                parts.append(f'<span class="{kinds[run[0]]}">{letters}</span>' if kinds[run[0]] else letters)
            lines.append("".join(parts) + _shown(text[_MARGIN + width :]))
        lines.append("")
    return "\n".join(lines)


_MARGIN = 15


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


_WRITERS: dict[str, type[_Writer]] = {
    "tsv": _Tsv, "blast6": _Blast6, "sam": _Sam, "fasta": _Fasta, "clustal": _Clustal, "html": _Html,
}  # fmt: skip


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
    """Columns of ``hits.parquet``: those of a `Hit`, which are `COLUMNS` and behind them what ties a row to its place and shows it."""
    import pyarrow as pa

    kinds = {str: pa.string(), float: pa.float64(), int: pa.int32()}
    types = {name: kinds[kind] for name, kind in get_type_hints(Hit).items()} | dict.fromkeys(("query_index", "subject_index"), pa.int64())
    return pa.schema([(field.name, types[field.name]) for field in fields(Hit)])


def hits_table(hits: Sequence[Hit]) -> pa.Table:
    """Hits as rows of `hits_schema`."""
    import pyarrow as pa

    schema = hits_schema()
    return pa.table([pa.array([getattr(hit, one.name) for hit in hits], one.type) for one in schema], schema=schema)


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
    furthest = np.log(max(statistics.K * query_length * float(lengths.sum()) / _LEAST_EXPECTED, 2.0)) / statistics.lambda_
    scores = np.arange(1, int(furthest) + 3)
    grid, length = np.repeat(scores, len(middles)), np.tile(middles, len(scores))
    passed = -np.expm1(-statistics.e_values(grid, query_length, length, 1) * length)
    above = (passed.reshape(len(scores), len(middles)) * sizes).sum(axis=1)
    counts = np.maximum(above[:-1] - above[1:], 0.0)
    kept = int((above[:-1] >= _LEAST_EXPECTED).sum())
    return scores[:kept].astype(np.int32), counts[:kept]

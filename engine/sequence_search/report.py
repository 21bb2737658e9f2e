"""Report: the hits of each query as a table and in the formats that biologists and other programs read.

Each writer is told of one query after the other, so that memory does not grow with the number of queries.
"""

from __future__ import annotations

import html
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engine.formats.writers.atomic import atomic_file
from engine.sequence_search.alignment import Alignment
from engine.sequence_search.database import decode
from engine.sequence_search.statistics import ScoreStatistics
from engine.version import VERSION

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "FORMATS",
    "Hit",
    "HitFormat",
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
_SPOOLED_BYTES = 16 << 20
_UNMAPPED, _SECONDARY, _NO_QUALITY = 4, 256, 255
_NOT_IN_SAM_NAMES = re.compile(r"[^0-9A-Za-z!#$%&+./:;?@^_|~*=-]")


@dataclass(frozen=True)
class Hit:
    """A subject that a query resembles.

    `subject` is its number in the database, `subject_index` its place in the files, from 0.
    """

    subject: int
    subject_index: int
    accession: str
    description: str
    subject_length: int
    score: int
    bit_score: float
    e_value: float
    alignment: Alignment

    @property
    def identity(self) -> float:
        """Share of the alignment's columns with the same residue twice."""
        return self.alignment.identities / max(1, len(self.alignment))


@dataclass(frozen=True)
class QueryHits:
    """A query and its hits, best first. `query_index` is its place in the files, from 0; `codes` its residues."""

    query_index: int
    accession: str
    description: str
    codes: NDArray[np.int8]
    hits: list[Hit]

    @property
    def length(self) -> int:
        """Residues of the query."""
        return len(self.codes)

    def row(self, hit: Hit) -> dict[str, Any]:
        """The values of `COLUMNS` for a hit."""
        found = hit.alignment
        return {
            "query": self.accession,
            "subject": hit.accession,
            "identity": hit.identity,
            "alignment_length": len(found),
            "mismatches": found.mismatches,
            "gap_openings": found.gap_openings,
            "query_start": found.query_start + 1,
            "query_end": found.query_end,
            "subject_start": found.subject_start + 1,
            "subject_end": found.subject_end,
            "e_value": hit.e_value,
            "bit_score": hit.bit_score,
            "score": hit.score,
            "positives": found.positives,
            "query_coverage": (found.query_end - found.query_start) / max(1, self.length),
            "subject_coverage": (found.subject_end - found.subject_start) / max(1, hit.subject_length),
            "cigar": found.cigar,
            "subject_length": hit.subject_length,
            "description": hit.description,
        }


class _Writer:
    """Writes queries with their hits to a file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.begin()

    def line(self, text: str = "") -> None:
        """Write a line."""
        self._file.write(text.encode() + b"\n")

    def begin(self) -> None:
        """What stands before the first query."""

    def write(self, found: QueryHits) -> None:
        """Write a query's hits."""
        raise NotImplementedError

    def finish(self) -> None:
        """What stands behind the last query."""


class _Tsv(_Writer):
    def begin(self) -> None:
        self.line("\t".join(COLUMNS))

    def write(self, found: QueryHits) -> None:
        for hit in found.hits:
            row = found.row(hit)
            row |= {name: f"{row[name]:.4f}" for name in ("identity", "query_coverage", "subject_coverage")}
            row |= {"e_value": f"{hit.e_value:.3g}", "bit_score": f"{hit.bit_score:.1f}"}
            self.line("\t".join(_cell(str(row[name])) for name in COLUMNS))


def _cell(text: str) -> str:
    text = text.replace("\t", " ")
    return '"' + text.replace('"', '""') + '"' if '"' in text else text


class _Blast6(_Writer):
    """BLAST's tabular format, the twelve columns of ``-outfmt 6``; identity in per cent."""

    def write(self, found: QueryHits) -> None:
        for hit in found.hits:
            row = found.row(hit)
            places = (row[name] for name in ("query_start", "query_end", "subject_start", "subject_end"))
            counts = (row[name] for name in ("alignment_length", "mismatches", "gap_openings"))
            values = (
                found.accession,
                hit.accession,
                f"{hit.identity * 100:.3f}",
                *counts,
                *places,
                f"{hit.e_value:.2e}",
                f"{hit.bit_score:.1f}",
            )
            self.line("\t".join(map(str, values)))


class _Fasta(_Writer):
    """The two sequences of each alignment, with their gaps."""

    def write(self, found: QueryHits) -> None:
        for hit in found.hits:
            query, _, subject = hit.alignment.lines()
            aligned = hit.alignment
            note = f"score={hit.score} bit_score={hit.bit_score:.1f} e_value={hit.e_value:.3g} identity={hit.identity:.4f}"
            self.line(f">{found.accession}/{aligned.query_start + 1}-{aligned.query_end} {note}")
            self._wrapped(query)
            self.line(f">{hit.accession}/{aligned.subject_start + 1}-{aligned.subject_end} {hit.description}".rstrip())
            self._wrapped(subject)

    def _wrapped(self, letters: str) -> None:
        for start in range(0, len(letters), _WIDTH):
            self.line(letters[start : start + _WIDTH])


class _Clustal(_Writer):
    """A CLUSTAL alignment for each hit: ``*`` the same residue, ``:`` a pair that the matrix scores above zero."""

    def write(self, found: QueryHits) -> None:
        for hit in found.hits:
            query, middle, subject = hit.alignment.lines()
            marks = "".join("*" if letter not in " +" else ":" if letter == "+" else " " for letter in middle)
            names = [name.replace(" ", "_")[:_CLUSTAL_NAME] for name in (found.accession, hit.accession)]
            if names[0] == names[1]:
                names = [f"{names[0][: _CLUSTAL_NAME - 2]}_{letter}" for letter in "qs"]
            width = max(map(len, names)) + 6
            self.line(f"CLUSTAL W (1.83) multiple sequence alignment by Proteoscope {VERSION}\n\n")
            for start in range(0, len(query), _WIDTH):
                for name, letters in ((names[0], query), (names[1], subject), ("", marks)):
                    self.line(f"{name:<{width}}{letters[start : start + _WIDTH]}")
                self.line()


class _Sam(_Writer):
    """SAM with the proteins as they are; ``AS`` is the score, ``ZB`` the bit score and ``ZE`` the E-value."""

    def begin(self) -> None:
        # The header names the subjects of all records, so that the records wait.
        self._subjects: dict[int, tuple[str, int]] = {}
        self._names: set[str] = set()
        self._records = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 - it lives as long as the writer

    def write(self, found: QueryHits) -> None:
        name = _sam_name(found.accession)
        letters = decode(found.codes) or "*"
        if not found.hits:
            self._record(name, _UNMAPPED, "*", 0, 0, "*", "*", 0, 0, letters, "*")
        for rank, hit in enumerate(found.hits):
            aligned, subject = hit.alignment, self._subject(hit)
            clips = (aligned.query_start, found.length - aligned.query_end)
            before, behind = (f"{length}S" if length else "" for length in clips)
            cigar = f"{before}{aligned.cigar}{behind}"
            edits = aligned.mismatches + int((aligned.query < 0).sum() + (aligned.subject < 0).sum())
            tags = (f"AS:i:{hit.score}", f"NM:i:{edits}", f"ZB:f:{hit.bit_score:.1f}", f"ZE:f:{hit.e_value:.3g}")
            flag, shown = (_SECONDARY, "*") if rank else (0, letters)
            self._record(name, flag, subject, aligned.subject_start + 1, _NO_QUALITY, cigar, "*", 0, 0, shown, "*", *tags)

    def _subject(self, hit: Hit) -> str:
        """The name of a subject, which no other one may have: where sequences share one, all but the first are told by their place."""
        if hit.subject_index not in self._subjects:
            name = _sam_name(hit.accession)
            name = f"{name}_{hit.subject_index + 1}" if name in self._names else name
            self._names.add(name)
            self._subjects[hit.subject_index] = (name, hit.subject_length)
        return self._subjects[hit.subject_index][0]

    def _record(self, *values: object) -> None:
        self._records.write("\t".join(map(str, values)).encode() + b"\n")

    def finish(self) -> None:
        self.line("@HD\tVN:1.6\tSO:unsorted\tGO:query")
        for name, length in self._subjects.values():
            self.line(f"@SQ\tSN:{name}\tLN:{length}")
        self.line(f"@PG\tID:proteoscope\tPN:proteoscope\tVN:{VERSION}")
        self._records.seek(0)
        shutil.copyfileobj(self._records, self._file)
        self._records.close()


def _sam_name(accession: str) -> str:
    return _NOT_IN_SAM_NAMES.sub("_", accession).lstrip("*=") or "_"


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
        self.line(f"<h2>{_shown(found.accession)} <small>{_shown(found.description)}, {found.length} residues</small></h2>")
        if not found.hits:
            self.line("<p>No hits.</p>")
            return
        self.line(
            "<table><tr><th>Subject</th><th>E-value</th><th>Bits</th><th>Score</th><th>Identity</th><th>Query</th><th>Description</th></tr>"
        )
        for k, hit in enumerate(found.hits):
            row = found.row(hit)
            self.line(
                f'<tr><td><a href="#a{q}-{k}">{_shown(hit.accession)}</a></td><td>{hit.e_value:.2g}</td><td>{hit.bit_score:.1f}</td>'
                f"<td>{hit.score}</td><td>{hit.identity * 100:.1f} %</td><td>{row['query_start']}-{row['query_end']}</td>"
                f"<td>{_shown(hit.description)}</td></tr>"
            )
        self.line("</table>")
        for k, hit in enumerate(found.hits):
            self.line(f'<h3 id="a{q}-{k}">{_shown(hit.accession)} <small>{_shown(hit.description)}</small></h3>')
            self.line(f"<p>{_summary(found, hit)}</p>\n<pre>{_coloured(hit.alignment)}</pre>")

    def finish(self) -> None:
        self.line("</body></html>")


def _shown(text: str) -> str:
    return html.escape(text)


def _summary(found: QueryHits, hit: Hit) -> str:
    row = found.row(hit)
    return (
        f"Score {hit.score}, {hit.bit_score:.1f} bits, E-value {hit.e_value:.2g}; {hit.alignment.identities} of {row['alignment_length']} "
        f"identical ({hit.identity * 100:.1f} %), {row['positives']} positive, {row['gap_openings']} gaps; "
        f"{row['query_coverage'] * 100:.0f} % of the query, {row['subject_coverage'] * 100:.0f} % of the subject "
        f"({hit.subject_length} residues)"
    )


def _coloured(alignment: Alignment) -> str:
    """The three lines with marks around columns that agree."""
    lines = []
    for query, middle, subject in three_lines(alignment):
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


def three_lines(alignment: Alignment, width: int = _WIDTH) -> Iterator[tuple[str, str, str]]:
    """The alignment in blocks of `width` columns, with the positions at both ends, as BLAST shows it."""
    query, middle, subject = alignment.lines()
    at_query, at_subject = alignment.query_start, alignment.subject_start
    for start in range(0, len(query), width):
        parts = [text[start : start + width] for text in (query, middle, subject)]
        end_query, end_subject = (at + sum(letter != "-" for letter in part) for at, part in ((at_query, parts[0]), (at_subject, parts[2])))
        yield (
            f"Query  {min(at_query + 1, end_query):>7} {parts[0]} {end_query}",
            f"{'':<{_MARGIN}}{parts[1]}",
            f"Sbjct  {min(at_subject + 1, end_subject):>7} {parts[2]} {end_subject}",
        )
        at_query, at_subject = end_query, end_subject


_WRITERS: dict[HitFormat, type[_Writer]] = {
    "tsv": _Tsv, "blast6": _Blast6, "sam": _Sam, "fasta": _Fasta, "clustal": _Clustal, "html": _Html,
}  # fmt: skip


@contextmanager
def hit_writer(path: Path, format: HitFormat) -> Iterator[_Writer]:
    """A writer whose file appears when the block ends well, and does not when it does not.

    Raises
    ------
    StorageError : the disk refused.
    """
    with atomic_file(path) as file:
        writer = _WRITERS[format](file)
        yield writer
        writer.finish()


def hits_schema() -> pa.Schema:
    """Columns of ``hits.parquet``: `COLUMNS`, and behind them what ties a row to its place and shows the alignment."""
    import pyarrow as pa

    texts, shares = ("query", "subject", "cigar", "description"), ("identity", "query_coverage", "subject_coverage", "e_value", "bit_score")
    kinds = {**dict.fromkeys(texts, pa.string()), **dict.fromkeys(shares, pa.float64())}
    extras = {
        "query_index": pa.int64(), "subject_index": pa.int64(), "query_length": pa.int32(), "rank": pa.int32(),
        "aligned_query": pa.string(), "aligned_middle": pa.string(), "aligned_subject": pa.string(),
    }  # fmt: skip
    return pa.schema([*((name, kinds.get(name, pa.int32())) for name in COLUMNS), *extras.items()])


def hits_table(found: QueryHits) -> pa.Table:
    """The hits of a query as rows of `hits_schema`."""
    import pyarrow as pa

    rows = []
    for rank, hit in enumerate(found.hits, 1):
        query, middle, subject = hit.alignment.lines()
        own = {"query_index": found.query_index, "subject_index": hit.subject_index, "query_length": found.length, "rank": rank}
        rows.append({**found.row(hit), **own, "aligned_query": query, "aligned_middle": middle, "aligned_subject": subject})
    return pa.Table.from_pylist(rows, schema=hits_schema())


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

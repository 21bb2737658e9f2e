"""Nucleotide positions of peptides from translated databases, as GFF3 and BED.

GFF3 (https://github.com/The-Sequence-Ontology/Specifications/blob/master/gff3.md) counts positions from 1, and ranges include their end. A
peptide is a ``CDS`` of phase 0, since its first base starts a codon; the score is the q-value. BED
(https://samtools.github.io/hts-specs/BEDv1.pdf) counts from 0, and ranges exclude their end; the score is -100 log10 of the q-value, at
most 1000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.escaped_names import ESCAPES, NameCharacters
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.writers.tables import MatchesSource, rows, scalar

if TYPE_CHECKING:
    import duckdb

__all__ = ["write_bed", "write_gff3"]

_IN_NAMES = "!$*+-.:?@^_|~"
"""Characters that GFF3 sequence names may contain in addition to alphanumeric characters."""
_IN_ATTRIBUTES = " !\"#$'()*+-./:<>?@[]^_`{|}~\\"
_MOST_BED_SCORE, _BED_SCORE_OF_TENTH = 1000, 100
_LONGEST_BED_NAME = 255
_BED_CHARACTERS = NameCharacters(bytes(range(ord("!"), 127)) + bytes(range(128, 256)), not_first=b"#")
_BED_HEADERS = ("track", "browser")
"""First words of BED header lines; sequence names must not start with them."""
_QUERY = """
    SELECT frames.sequence, frames.first, frames.last, frames.strand, places.peptide, places.start, places.length, places.accession,
        places.q_value, places.n_psms
    FROM (
        SELECT peptides.peptide, length(peptides.sequence) AS length, peptides.q_value, peptides.n_psms,
            unnest(psms.proteins) AS accession, unnest(psms.protein_starts) AS start
        FROM peptides JOIN psms ON psms.psm_id = peptides.best_psm
        WHERE NOT peptides.is_decoy AND (peptides.q_value <= {fdr} OR {is_without_decoys})
    ) AS places JOIN reading_frames AS frames ON frames.accession = places.accession
    ORDER BY frames.sequence, CASE frames.strand WHEN '+' THEN frames.first + 3 * (places.start - 1)
        ELSE frames.last - 3 * (places.start - 1 + places.length) END, places.length, frames.strand, places.peptide, places.accession
"""


class _PlacedPeptide(NamedTuple):
    """Peptide with its range of nucleotides in `sequence`, from `first` to `last`, counted from 1, both inclusive."""

    sequence: str
    first: int
    last: int
    strand: str
    peptide: str
    frame: str
    q_value: float | None
    n_psms: int


def write_gff3(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write the nucleotide positions of accepted peptides as GFF3.

    Raises
    ------
    ParameterError
        If the run did not translate nucleotides.
    StorageError
        If writing fails.
    """
    with _translated(source, progress) as connection, atomic_file(out) as file:
        file.write(b"##gff-version 3\n")
        for number, placed in enumerate(_places(connection, source, out, progress), start=1):
            score = "." if placed.q_value is None else f"{placed.q_value:.4g}"
            name, frame = (quote(text, safe=_IN_ATTRIBUTES) for text in (placed.peptide, placed.frame))
            reported = f"ID=peptide{number};Name={name};reading_frame={frame};psms={placed.n_psms}"
            cells = (
                quote(placed.sequence, safe=_IN_NAMES),
                "Proteoscope",
                "CDS",
                placed.first,
                placed.last,
                score,
                placed.strand,
                0,
                reported,
            )
            file.write(("\t".join(map(str, cells)) + "\n").encode())
    return [out]


def write_bed(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write the nucleotide positions of accepted peptides as BED with six columns.

    Raises
    ------
    ParameterError
        If the run did not translate nucleotides.
    StorageError
        If writing fails.
    """
    with _translated(source, progress) as connection, atomic_file(out) as file:
        names: dict[str, str] = {}
        for placed in _places(connection, source, out, progress):
            chromosome = names.setdefault(placed.sequence, _bed_chromosome(placed.sequence))
            score = 0 if placed.q_value is None else _bed_score(placed.q_value)
            cells = (chromosome, placed.first - 1, placed.last, placed.peptide[:_LONGEST_BED_NAME], score, placed.strand)
            file.write(("\t".join(map(str, cells)) + "\n").encode())
    if n := sum(name != escaped for name, escaped in names.items()):
        verb = "sequence has another name" if n == 1 else "sequences have other names"
        progress.message(f"{out.name}: {n:,} {verb}: blanks and initial words of headers are {ESCAPES}", "warning")
    return [out]


def _bed_chromosome(name: str) -> str:
    """Return a sequence name with escapes for blanks and for initial words that BED does not allow.

    Examples
    --------
    >>> _bed_chromosome("chr 1"), _bed_chromosome("#1"), _bed_chromosome("track")
    ('chr%201', '%231', '%74rack')
    """
    escaped = _BED_CHARACTERS.escape(name)
    return f"%{ord(escaped[0]):02X}{escaped[1:]}" if escaped.startswith(_BED_HEADERS) else escaped


def _bed_score(q_value: float) -> int:
    if q_value <= 0:
        return _MOST_BED_SCORE
    return max(0, min(_MOST_BED_SCORE, round(-_BED_SCORE_OF_TENTH * math.log10(q_value))))


def _translated(source: MatchesSource, progress: Progress) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """Return a connection to the tables; raise `ParameterError` if there is no table ``reading_frames``."""
    if source.tables.reading_frames is None:
        remedy = "Search a database of nucleotides with translation=six-frame"
        raise ParameterError(f"the run translated no nucleotides, so that its peptides have no positions on a genome. {remedy}.")
    return source.connection(progress)


def _places(connection: duckdb.DuckDBPyConnection, source: MatchesSource, out: Path, progress: Progress) -> Iterator[_PlacedPeptide]:
    is_without_decoys = "true" if scalar(connection, "SELECT count(q_value) = 0 FROM peptides") else "false"
    query = _QUERY.format(fdr=source.search.threshold, is_without_decoys=is_without_decoys)
    progress.stage(f"writing {out.name}", scalar(connection, f"SELECT count(*) FROM ({query})"))
    for sequence, first, last, strand, peptide, start, length, frame, q_value, n_psms in rows(connection, query):
        before, after = 3 * (start - 1), 3 * (start - 1 + length)
        bounds = (first + before, first + after - 1) if strand == "+" else (last - after + 1, last - before)
        yield _PlacedPeptide(sequence, *bounds, strand, peptide, frame, q_value, n_psms)
        progress.advance()

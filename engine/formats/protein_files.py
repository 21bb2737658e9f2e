"""Reader of protein databases in all supported formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from proteoscope.engine.errors import InputError
from proteoscope.engine.escaped_names import warn_escaped_names
from proteoscope.engine.formats.entries import read_entries
from proteoscope.engine.formats.fasta import read_fasta
from proteoscope.engine.formats.protein_records import TRANSLATE, ProteinRecords, join_records
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.formats.recognition import recognise_as
from proteoscope.engine.formats.registry import FileFormat
from proteoscope.engine.formats.sequence_type import are_nucleotides, character_counts
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.formats.entries import EntryFormat

__all__ = ["read_proteins"]

_BEGIN_WITH_A_NAME = "Give a FASTA file: begin each sequence with a line > and a name"


def read_proteins(
    paths: Sequence[str | Path], *, progress: Progress | None = None, every_record: bool = False, with_chromosomes: bool = False
) -> Proteins:
    """Read the proteins of files, in the given order, from FASTA or annotated formats (see `proteoscope.engine.formats.registry`).

    Unprintable characters of accessions are escaped (`proteoscope.engine.escaped_names`). Records of nucleotides in GenBank or EMBL yield
    the proteins of their coding sequences. Residues become capitals; blanks, digits and gaps (``-``, ``.``) within a sequence and ``*`` at
    its end are removed. FASTA lines that begin with ``;`` are comments. Records without residues are skipped, and so are repeated records
    with the same accession and sequence. The same accession with another sequence is an error, since results identify proteins by
    accession.

    Parameters
    ----------
    paths : sequence of str or Path
        Files, at least one.
    progress : Progress, optional
        Progress, which receives messages and is checked for cancellation.
    every_record : bool
        True to return every record of the files in order, including empty and repeated records, and to accept nucleotides. This is for
        searches that identify records by position; since these searches read no spectra, error messages recommend only FASTA.
    with_chromosomes : bool
        True to read nucleotides: sequences may have up to `MAXIMUM_NUCLEOTIDES` bases, and records of GenBank and EMBL yield their own
        sequences instead of the proteins that they encode.

    Returns
    -------
    Proteins
        Proteins of all files.

    Raises
    ------
    InputError
        If a file is missing, unreadable, empty, truncated or in another format; if a sequence is invalid or too long; if a record has no
        name; if two sequences have the same name; or if there are nucleotides instead of proteins, or no sequences. The message names file,
        line, reason and remedy.
    Cancelled
        If the user cancels.
    """
    progress = progress or Progress()
    files = [Path(path) for path in paths]
    if not files:
        raise ValueError("no files of proteins were given")
    total = 0
    for path in files:
        with ByteSource(path) as source:
            _check_kind(source, every_record)
            total += source.size
    progress.stage("Reading sequences" if with_chromosomes else "Reading proteins", total)
    parts: list[ProteinRecords] = []
    total_counts = np.zeros(256, dtype=np.int64)
    for path in files:
        file_records = _read_file(path, progress, every_record=every_record, with_chromosomes=with_chromosomes)
        warn_escaped_names(progress, path, sum(map(ProteinRecords.escape_accessions, file_records)))
        parts += file_records
        if every_record or with_chromosomes:
            continue
        # Check each file, to detect a genome among proteins, and all files together, to detect small files of nucleotides.
        file_counts = sum((character_counts(part.residues) for part in file_records), np.zeros(256, dtype=np.int64))
        total_counts += file_counts
        if are_nucleotides(file_counts) or are_nucleotides(total_counts):
            raise InputError(path, "the sequences are nucleotides, not proteins", remedy=TRANSLATE)
    return join_records(parts, every_record=every_record)


def _read_file(path: Path, progress: Progress, *, every_record: bool, with_chromosomes: bool) -> list[ProteinRecords]:
    with ByteSource(path) as source:
        written_as = _check_kind(source, every_record)
        if written_as.reader is not None:
            # Imported here: only such files need Biopython.
            entry_format: EntryFormat = written_as.reader()()
            parts = read_entries(source, entry_format, progress, with_chromosomes=with_chromosomes)
        else:
            parts = read_fasta(source, progress, every_record=every_record, with_chromosomes=with_chromosomes)
    if not any(len(part.residues) for part in parts):
        remedy = TRANSLATE if written_as.reader else "Give a FASTA file with sequences"
        raise InputError(path, "it contains no protein sequence", remedy=remedy)
    return parts


def _check_kind(source: ByteSource, every_record: bool) -> FileFormat:
    try:
        return recognise_as(source, "proteins")
    except InputError as error:
        if every_record and ("mzML" in error.remedy or "spectra" in error.remedy):
            raise InputError(error.path, error.reason, place=error.place, remedy=_BEGIN_WITH_A_NAME) from None
        raise

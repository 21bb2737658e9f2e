"""Read protein databases, in whichever format they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from proteoscope.engine.errors import InputError
from proteoscope.engine.escaped_names import warn_escaped_names
from proteoscope.engine.formats.entries import read_entries
from proteoscope.engine.formats.fasta import read_fasta
from proteoscope.engine.formats.letters import are_nucleotides, letter_counts
from proteoscope.engine.formats.protein_records import TRANSLATE, ProteinRecords, join_records
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.formats.recognition import recognise_as
from proteoscope.engine.formats.registry import FileFormat
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.formats.entries import EntryFormat

__all__ = ["read_proteins"]

_BEGIN_WITH_A_NAME = "Give a FASTA file: begin each sequence with a line > and a name"


def read_proteins(
    paths: Sequence[str | Path], *, progress: Progress | None = None, every_record: bool = False, with_chromosomes: bool = False
) -> Proteins:
    """Read the proteins of files, in the order given: FASTA, or a format that knows more of them (see
    `proteoscope.engine.formats.registry`).

    Characters of accessions that cannot be printed are escaped (`proteoscope.engine.escaped_names`).
    Of a record of nucleotides in GenBank or EMBL the proteins are those that its coding sequences spell out. Letters become capitals;
    blanks, digits and gaps (``-``, ``.``) within a sequence are dropped, ``*`` at its end too. Lines of FASTA that begin with ``;`` are
    comments. Records without residues are left out. A record whose accession and sequence both stood before is left out;
    the same accession with another sequence is an error, because results are reported by
    accession and nobody could tell which of the two was found.

    Parameters
    ----------
    every_record : keep each record of the files, in their order, those without residues and those of a name that stood before too, and
        take nucleotides for what they look like to the caller: for searches that tell records apart by their place. They read no spectra,
        so that remedies speak of FASTA alone.
    with_chromosomes : nucleotides are wanted: their sequences may have up to `MAXIMUM_NUCLEOTIDES` letters, and of GenBank and EMBL the
        sequences themselves are taken, not what they code for.

    Raises
    ------
    InputError
        Naming the file, the line, the reason and the remedy: a file that is missing, unreadable, empty, cut off or in another format, a
        character that is no residue, a record without a name, two sequences of one name, nucleotides instead of proteins, no sequence at
        all, a sequence of more than `MAXIMUM_RESIDUES`, or `MAXIMUM_NUCLEOTIDES`.
    Cancelled
        When the user asked to stop.
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
    letters = np.zeros(256, dtype=np.int64)
    for path in files:
        of_file = _read_file(path, progress, every_record=every_record, with_chromosomes=with_chromosomes)
        warn_escaped_names(progress, path, sum(map(ProteinRecords.escape_accessions, of_file)))
        parts += of_file
        if every_record or with_chromosomes:
            continue
        # A genome beside proteins is told too, and small files of nucleotides all together.
        of_this = sum((letter_counts(part.residues) for part in of_file), np.zeros(256, dtype=np.int64))
        letters += of_this
        if are_nucleotides(of_this) or are_nucleotides(letters):
            raise InputError(path, "the sequences are nucleotides, not proteins", remedy=TRANSLATE)
    return join_records(parts, every_record=every_record)


def _read_file(path: Path, progress: Progress, *, every_record: bool, with_chromosomes: bool) -> list[ProteinRecords]:
    with ByteSource(path) as source:
        written_as = _check_kind(source, every_record)
        if written_as.reader is not None:
            # Loaded here, and not on top: Biopython is for those who read such files.
            entry_format: EntryFormat = written_as.reader()()
            parts = read_entries(source, entry_format, progress, with_chromosomes=with_chromosomes)
        else:
            parts = read_fasta(source, progress, every_record=every_record, with_chromosomes=with_chromosomes)
    if not any(len(part.residues) for part in parts):
        remedy = TRANSLATE if written_as.reader else "Give a FASTA file with sequences"
        raise InputError(path, "there is no protein sequence in it", remedy=remedy)
    return parts


def _check_kind(source: ByteSource, every_record: bool) -> FileFormat:
    try:
        return recognise_as(source, "proteins")
    except InputError as error:
        if every_record and ("mzML" in error.remedy or "spectra" in error.remedy):
            raise InputError(error.path, error.reason, place=error.place, remedy=_BEGIN_WITH_A_NAME) from None
        raise

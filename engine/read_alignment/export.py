"""Writers of alignments in the formats of other programs, for searches and for finished runs of a project.

BAM, the compressed form of SAM, needs the optional package pysam (Bonfield et al. 2021, GigaScience 10:giab007).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.files import atomic_path, nearest_folder, storage_errors, temporary_path
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.read_alignment.records import Aligned, write_paf, write_sam
from proteoscope.engine.read_alignment.results import write_alignments
from proteoscope.engine.read_alignment.tables import ALIGNMENTS, PATTERNS, TEXTS
from proteoscope.engine.results.reader import TableFile, stored_table
from proteoscope.engine.spectra.spooling import GrowingColumn

__all__ = ["check_bam", "check_format", "export_alignments", "write_as", "write_bam"]

_RECORDS_BETWEEN_CHECKS = 4096
_LONGEST_OF_BAI = 1 << 29
"""Maximum length of a reference in a BAI index; longer references need a CSI index."""


def check_bam() -> None:
    """Check that pysam is installed.

    Raises
    ------
    ParameterError
        If pysam is not installed. The message contains the command that installs it.
    """
    if find_spec("pysam") is None:
        raise ParameterError("BAM needs pysam, which is not installed; run pip install pysam, or write SAM")


def write_bam(
    out: Path, tables: Iterable[pa.Table], aligned: Aligned, progress: Progress, *, is_sorted: bool = False, threads: int = 1
) -> None:
    """Write rows of the table ``alignments`` as BAM; sorted records are indexed.

    The index is ``.bai``, or ``.csi`` if a reference is longer than 512 million bases. The uncompressed SAM file is written to the folder
    of `out` and deleted at the end.

    Parameters
    ----------
    out : Path
        File to write.
    tables : iterable of Table
        Rows, ordered by read.
    aligned : Aligned
        Reads and references of the rows.
    progress : Progress
        Progress of the run.
    is_sorted : bool
        True to sort the records by position.
    threads : int
        Number of threads that format the records.

    Raises
    ------
    ParameterError
        If pysam is not installed.
    StorageError
        If the file cannot be written.
    Cancelled
        If the user cancels.
    """
    check_bam()
    import pysam  # optional: installed with the extra "bam"

    with contextlib.ExitStack() as stack:
        with storage_errors(out):
            text = stack.enter_context(temporary_path(out))
        try:
            write_sam(text, tables, aligned, progress, is_sorted=is_sorted, threads=threads)
        except StorageError as error:
            # The message names the requested file instead of the temporary one.
            raise StorageError(str(error).replace(str(text), str(out))) from error
        ending = ".csi" if aligned.reference_lengths.max(initial=0) >= _LONGEST_OF_BAI else ".bai"
        for former in (".bai", ".csi"):
            # An index left by an earlier file would be wrong.
            with contextlib.suppress(FileNotFoundError):
                out.with_name(out.name + former).unlink()
        with (
            atomic_path(out) as packed,
            pysam.AlignmentFile(str(text), "r", check_sq=False) as records,
            pysam.AlignmentFile(str(packed), "wb", template=records, threads=threads) as file,
        ):
            for number, record in enumerate(records):
                file.write(record)
                if number % _RECORDS_BETWEEN_CHECKS == 0:
                    progress.check()
    if is_sorted:
        with atomic_path(out.with_name(out.name + ending)) as index:
            pysam.index(*(["-c"] if ending == ".csi" else []), str(out), str(index))


_FORMATS = ("tsv", "sam", "sorted-sam", "bam", "sorted-bam", "paf")
_SORTED = "sorted-"


def check_format(name: str, *, is_sorted: bool = False) -> None:
    """Raise an error unless alignments can be written in the format `name`.

    Raises
    ------
    ParameterError
        If the format is unknown, cannot be sorted, or needs a package that is not installed.
    """
    if name not in _FORMATS:
        raise ParameterError(f"there is no format '{name:.40}'; expected {', '.join(_FORMATS)}")
    if is_sorted and name.removeprefix(_SORTED) not in ("sam", "bam"):
        raise ParameterError(f"--sorted is for SAM and BAM, not for {name}; give --out a name that ends with .sam or .bam")
    if name.removeprefix(_SORTED) == "bam":
        check_bam()


def write_as(
    out: Path,
    name: str,
    tables: Iterable[pa.Table],
    aligned: Aligned,
    progress: Progress,
    *,
    is_sorted: bool = False,
    spreadsheet_safe: bool = False,
    threads: int = 1,
) -> None:
    """Write rows of the table ``alignments`` in the format `name`.

    Parameters
    ----------
    out : Path
        File to write.
    name : str
        Name of a format that `check_format` accepts.
    tables : iterable of Table
        Rows, ordered by read.
    aligned : Aligned
        Reads and references of the rows; not used by ``tsv``.
    progress : Progress
        Progress of the run.
    is_sorted : bool
        True to sort SAM or BAM records by position.
    spreadsheet_safe : bool
        True to protect cells of ``tsv`` that spreadsheets would interpret as formulas.
    threads : int
        Number of threads that format the rows.

    Raises
    ------
    ParameterError
        If pysam is needed and not installed.
    StorageError
        If the file cannot be written.
    Cancelled
        If the user cancels.
    """
    if name == "tsv":
        write_alignments(out, tables, progress, spreadsheet_safe=spreadsheet_safe, threads=threads)
    elif name == "paf":
        write_paf(out, tables, aligned, progress, threads=threads)
    else:
        write = write_bam if name.removeprefix(_SORTED) == "bam" else write_sam
        write(out, tables, aligned, progress, is_sorted=is_sorted or name.startswith(_SORTED), threads=threads)


def export_alignments(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the alignments of a run as the search itself writes them (see `proteoscope.engine.entry.Search.export`)."""
    check_format(request.format)
    progress.stage(
        "Exporting alignments", sum(result.rows or 0 for result in project.results(request.run_id) if result.name == "alignments")
    )
    is_table = request.format == "tsv"
    aligned = _NOTHING if is_table else _read_aligned(project, request.run_id, nearest_folder(request.target.parent))
    with stored_table(
        project, request.run_id, ALIGNMENTS, ALIGNMENTS.saved if is_table else list(ALIGNMENTS.by_name), verify=False
    ) as source:
        tables = source.batches(None if is_table else list(ALIGNMENTS.by_name))
        sound = tables if is_table else _check_rows(tables, aligned, source)
        write_as(request.target, request.format, sound, aligned, progress, spreadsheet_safe=request.spreadsheet_safe)
    return [request.target]


_ASCII = np.arange(256, dtype=np.uint8)
_NOTHING = Aligned(np.empty(0, np.uint8), None, np.zeros(1, np.int64), Texts.from_strings([]), np.empty(0, np.int64), _ASCII)


def _read_aligned(project: Project, run: str, spool: Path) -> Aligned:
    """Return the reads and references of a run; large arrays are memory-mapped from unnamed temporary files in the folder `spool`."""
    names = ("sequence", "qualities")
    columns, lengths = [GrowingColumn(np.uint8, spool) for _ in names], [GrowingColumn(np.int64) for _ in names]
    with stored_table(project, run, PATTERNS, names, verify=False) as source:
        for reads in source.batches(names):
            for column, length, name in zip(columns, lengths, names, strict=True):
                references = _texts(reads[name])
                column.append(references.used)
                length.append(np.diff(references.offsets))
        symbols, qualities = (column.finish() for column in columns)
        n_bases, n_qualities = (length.finish() for length in lengths)
        has_qualities = len(qualities) > 0
        if has_qualities and not np.array_equal(n_bases, n_qualities):
            raise source.damaged("contains reads whose numbers of bases and qualities differ")
    with stored_table(project, run, TEXTS, verify=False) as source:
        references = source.read()
    reference_lengths = np.asarray(references["length"].to_numpy(), np.int64)
    own_qualities = qualities if has_qualities else None
    return Aligned(symbols, own_qualities, segment_offsets(n_bases), _texts(references["text"]), reference_lengths, _ASCII)


def _texts(column: pa.ChunkedArray) -> Texts:
    """Return the strings of a column, with offsets that start at 0."""
    parts = [Texts.from_arrow(chunk) for chunk in column.chunks]
    lengths: list[NDArray[np.int64]] = [np.zeros(0, np.int64), *(np.diff(part.offsets) for part in parts)]
    return Texts(np.concatenate([np.zeros(0, np.uint8), *(part.used for part in parts)]), segment_offsets(np.concatenate(lengths)))


def _check_rows(tables: Iterable[pa.Table], aligned: Aligned, source: TableFile) -> Iterator[pa.Table]:
    """Yield the tables after checking that rows are ordered by read, and that lengths in the rows are those of the reads and references."""
    before = 0
    for table in tables:
        if len(table):
            rows = table["pattern_row"].to_numpy()
            if rows[0] < before or (np.diff(rows) < 0).any():
                raise source.damaged("has rows that are not in the order of the reads", "pattern_row")
            before = rows[-1]
            if not np.array_equal(aligned.offsets[rows + 1] - aligned.offsets[rows], table["pattern_length"].to_numpy()):
                raise source.damaged("has lengths that differ from those of the reads", "pattern_length")
            placed = table.filter(pa.compute.is_valid(table["text_start"]))
            if placed["text_row"].null_count or placed["md"].null_count:
                raise source.damaged("lacks the reference of an alignment", "text_row")
            if not np.array_equal(aligned.reference_lengths[placed["text_row"].to_numpy()], placed["text_length"].to_numpy()):
                raise source.damaged("has lengths that differ from those of the references", "text_length")
        yield table

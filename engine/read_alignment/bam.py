"""Writer of alignments as BAM, the compressed form of SAM, with the optional package pysam.

pysam: Bonfield et al. 2021, GigaScience 10:giab007.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.files import atomic_path, storage_errors, temporary_path
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.read_alignment.records import Aligned, write_sam

__all__ = ["check_bam", "write_bam"]

_RECORDS_BETWEEN_LOOKS = 4096
_LONGEST_OF_BAI = 1 << 29
"""Maximum length of a reference in a BAI index; longer references need a CSI index."""


def check_bam() -> None:
    """Raise ParameterError unless pysam is installed.

    Raises
    ------
    ParameterError
        If pysam is not installed. The message contains the command that installs it.
    """
    if find_spec("pysam") is None:
        raise ParameterError("BAM is written with pysam, which is not installed; pip install pysam does, or write SAM")


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
        ending = ".csi" if aligned.text_lengths.max(initial=0) >= _LONGEST_OF_BAI else ".bai"
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
                if number % _RECORDS_BETWEEN_LOOKS == 0:
                    progress.check()
    if is_sorted:
        with atomic_path(out.with_name(out.name + ending)) as index:
            pysam.index(*(["-c"] if ending == ".csi" else []), str(out), str(index))

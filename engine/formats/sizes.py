"""Estimates of the content of files from their sizes and beginnings, without reading whole files."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.fastq import is_fastq
from proteoscope.engine.formats.recognition import HEAD_BYTES, recognise
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.formats.vendor import vendor_format

__all__ = ["InputSize", "input_size"]

_RECORDS = {
    "MGF": (b"BEGIN IONS",),
    "mzML": (b"<spectrum ",),
    "mzXML": (b"<scan ",),
    "MS2": (b"\nS\t",),
    "FASTA": (b"\n>",),
    "PIR": (b"\n>",),
    "FASTQ": (b"\n+",),
    "Swiss-Prot": (b"\nSQ ",),
    "UniProt": (b"<entry ",),
    "GenBank": (b"\nORIGIN",),
    "EMBL": (b"\nSQ ",),
}
"""Texts that occur once in each record of a format, by the first word of the format's name."""
_BYTES_OF_RECORD = 4000  # typical size of a record in other formats
_MINIMUM_PEAK = 12  # bytes of a peak
_INSPECTED_FILES = 16
_MEMORY_OF_BYTE, _MAXIMUM_MEMORY = 1.3, 8e8  # bytes of peaks in memory per byte of a file, and in total (benchmarks: results/growth.jsonl)


class InputSize(NamedTuple):
    """Estimated content of files.

    Attributes
    ----------
    files : int
        Number of files.
    bytes : int
        Total size in bytes.
    unpacked : float
        Size after decompression in bytes.
    records : float
        Number of spectra or sequences.
    residues : float
        Number of residues of sequence files, or approximate number of peaks of spectrum files.
    lengths : tuple of int
        Lengths of the first sequences, in residues.
    """

    files: int = 0
    bytes: int = 0
    unpacked: float = 0.0
    records: float = 0.0
    residues: float = 0.0
    lengths: tuple[int, ...] = ()

    @property
    def held_bytes(self) -> float:
        """Estimated memory for the peaks of spectrum files in bytes; it is limited, since large columns are stored on disk."""
        return min(_MEMORY_OF_BYTE * self.unpacked, _MAXIMUM_MEMORY)

    @property
    def mean_length(self) -> float:
        """Mean number of residues of a record."""
        return self.residues / self.records if self.records else 0.0


def input_size(paths: Iterable[Path]) -> InputSize:
    """Estimate the content of files with spectra, sequences or results; a folder includes all files in it.

    Raises
    ------
    InputError
        If a file is missing, empty, or in an unsupported format.
    """
    total, every = InputSize(), list(paths)
    for path in every[:_INSPECTED_FILES]:
        size = _folder(path) if path.is_dir() else _file(path)
        total = InputSize(
            total.files + size.files,
            total.bytes + size.bytes,
            total.unpacked + size.unpacked,
            total.records + size.records,
            total.residues + size.residues,
            (*total.lengths, *size.lengths),
        )
    if len(every) <= _INSPECTED_FILES:
        return total
    # The other files are assumed to be similar.
    rest = sum(path.stat().st_size for path in every[_INSPECTED_FILES:] if path.is_file())
    times = 1.0 + rest / max(1, total.bytes)
    return InputSize(len(every), total.bytes + rest, total.unpacked * times, total.records * times, total.residues * times, total.lengths)


def _folder(path: Path) -> InputSize:
    sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
    if vendor_format(path) is None and not sizes:
        raise InputError(path, "the folder is empty", remedy="Check the path")
    return InputSize(len(sizes), sum(sizes), float(sum(sizes)), sum(sizes) / _BYTES_OF_RECORD, sum(sizes) / _MINIMUM_PEAK)


def _file(path: Path) -> InputSize:
    with ByteSource(path) as source:
        format_name = "FASTQ" if is_fastq(source) else recognise(source).name
        head = source.peek(HEAD_BYTES)
        consumed = max(1, source.consumed)
    size = path.stat().st_size
    unpacked = float(len(head)) if consumed >= size else size * len(head) / consumed
    times = unpacked / max(1, len(head))
    marks = _RECORDS.get(format_name.split()[0])
    text = b"\n" + head.replace(b"\r\n", b"\n")
    count = max(1, sum(text.count(mark) for mark in marks)) if marks else max(1.0, len(head) / _BYTES_OF_RECORD)
    if format_name.startswith(("FASTA", "PIR")):
        entries = [entry.partition(b"\n")[2] for entry in text.split(b"\n>")[1:]]
        lengths = [len(entry) - entry.count(b"\n") for entry in entries if entry]
        whole = lengths[:-1] if times > 1.0 and len(lengths) > 1 else lengths
        symbols = float(sum(lengths))
    elif format_name.startswith("FASTQ"):
        whole = [len(line) for line in text.split(b"\n")[2::4] if line]
        symbols = float(sum(whole))
    else:
        whole, symbols = [], len(head) / (2 * _MINIMUM_PEAK)
    return InputSize(1, size, unpacked, count * times, symbols * times, tuple(whole[:2000]))

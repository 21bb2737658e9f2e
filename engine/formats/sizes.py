"""How much files hold, told by their sizes and their beginnings: nothing is read whole."""

from __future__ import annotations

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
"""What each record of a format has once, by the first word of the format's name."""
_BYTES_OF_RECORD = 4000  # of other formats
_LEAST_PEAK = 12  # bytes
_MOST_FILES = 16  # that are looked into
_HELD_OF_BYTE, _MOST_HELD = 1.3, 8e8  # bytes of peaks for a byte of a file, and altogether; see results/growth.jsonl of the benchmarks


class InputSize(NamedTuple):
    """Of some files: how many there are, their bytes, those unpacked, records (spectra, sequences), and letters of sequences or, about,
    peaks of spectra; and how long the records at the beginning are."""

    files: int = 0
    bytes: int = 0
    unpacked: float = 0.0
    records: float = 0.0
    letters: float = 0.0
    lengths: tuple[int, ...] = ()

    @property
    def held_bytes(self) -> float:
        """Of memory for the peaks of files of spectra: columns that become large lie on the disk, and go through memory in blocks."""
        return min(_HELD_OF_BYTE * self.unpacked, _MOST_HELD)

    @property
    def mean_length(self) -> float:
        """Letters of a record."""
        return self.letters / self.records if self.records else 0.0


def input_size(paths: Iterable[Path]) -> InputSize:
    """Of files of spectra, sequences or results, all together; folders count by what lies in them.

    Raises
    ------
    InputError : a file is missing, empty, or in no known format.
    """
    total, every = InputSize(), list(paths)
    for path in every[:_MOST_FILES]:
        one = _folder(path) if path.is_dir() else _file(path)
        total = InputSize(
            total.files + one.files,
            total.bytes + one.bytes,
            total.unpacked + one.unpacked,
            total.records + one.records,
            total.letters + one.letters,
            (*total.lengths, *one.lengths),
        )
    if len(every) <= _MOST_FILES:
        return total
    # The others are taken to be like these.
    rest = sum(path.stat().st_size for path in every[_MOST_FILES:] if path.is_file())
    times = 1.0 + rest / max(1, total.bytes)
    return InputSize(len(every), total.bytes + rest, total.unpacked * times, total.records * times, total.letters * times, total.lengths)


def _folder(path: Path) -> InputSize:
    sizes = [one.stat().st_size for one in path.rglob("*") if one.is_file()]
    if vendor_format(path) is None and not sizes:
        raise InputError(path, "the folder is empty", remedy="Check the path")
    return InputSize(len(sizes), sum(sizes), float(sum(sizes)), sum(sizes) / _BYTES_OF_RECORD, sum(sizes) / _LEAST_PEAK)


def _file(path: Path) -> InputSize:
    with ByteSource(path) as source:
        form = "FASTQ" if is_fastq(source) else recognise(source).name
        head = source.peek(HEAD_BYTES)
        consumed = max(1, source.consumed)
    size = path.stat().st_size
    unpacked = float(len(head)) if consumed >= size else size * len(head) / consumed
    times = unpacked / max(1, len(head))
    marks = _RECORDS.get(form.split()[0])
    text = b"\n" + head.replace(b"\r\n", b"\n")
    count = max(1, sum(text.count(mark) for mark in marks)) if marks else max(1.0, len(head) / _BYTES_OF_RECORD)
    if form.startswith(("FASTA", "PIR")):
        entries = [entry.partition(b"\n")[2] for entry in text.split(b"\n>")[1:]]
        lengths = [len(entry) - entry.count(b"\n") for entry in entries if entry]
        whole = lengths[:-1] if times > 1.0 and len(lengths) > 1 else lengths
        letters = float(sum(lengths))
    elif form.startswith("FASTQ"):
        whole = [len(line) for line in text.split(b"\n")[2::4] if line]
        letters = float(sum(whole))
    else:
        whole, letters = [], len(head) / (2 * _LEAST_PEAK)
    return InputSize(1, size, unpacked, count * times, letters * times, tuple(whole[:2000]))

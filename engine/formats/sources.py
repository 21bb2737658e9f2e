"""Bytes of a file, plain or gzipped, in blocks that end between two records."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from proteoscope.engine.errors import InputError
from proteoscope.engine.unfolding import PACKED_BYTES, Unfolding

__all__ = ["BLOCK_BYTES", "DATA_FOLDERS", "Block", "ByteSource", "blocks"]

BLOCK_BYTES = 2 << 20
"""What a reader makes of a block takes many times its room, in each of its threads."""
MAXIMUM_RECORD_BYTES = 64 << 20
"""A spectrum of two million points, as base64 of doubles that are not packed, takes 43 MB."""
_COMPRESSED_BYTES = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
DATA_FOLDERS = {
    ".d": ("a Bruker or Agilent run", "Convert it to mzML with msconvert (ProteoWizard)"),
    ".raw": ("a Waters run", "Convert it to mzML with msconvert (ProteoWizard)"),
}
"""Folders that hold one measurement, by their suffixes: what they are, and what to do."""


class ByteSource:
    """A file opened for reading, unpacked on the way where its content (not its name) is gzip.

    Raises `InputError` where the file is missing, unreadable, a folder, a pipe or a device, or empty, and, while reading, where gzip data
    are damaged, cut off or unpack to more than `proteoscope.engine.unfolding.PACKED_BYTES` allows.

    Attributes
    ----------
    size : bytes of the file on the disk. unfolding : counts of what its reader makes of it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            facts = self.path.stat()
            if stat.S_ISDIR(facts.st_mode):
                what, remedy = DATA_FOLDERS.get(self.path.suffix.lower(), ("not a file", "Give the files in it, one by one"))
                raise InputError(path, f"is a folder: {what}", remedy=remedy)
            if not stat.S_ISREG(facts.st_mode):
                # Opening a pipe waits for somebody who writes to it.
                raise InputError(path, "is a pipe or a device, which cannot be read twice", remedy="Give a file")
            self._file = self.path.open("rb", buffering=0)
            self.size = facts.st_size
        except ValueError:
            raise InputError(path, "is no name of a file", remedy="Check the name and the folder") from None
        except FileNotFoundError:
            raise InputError(path, "there is no such file", remedy="Check the name and the folder") from None
        except OSError as error:
            raise InputError(path, f"cannot be opened ({error.strerror or error})", remedy="Check that you may read it") from None
        self.unfolding = Unfolding(path, self.size)
        self.consumed = 0
        """Bytes of the file itself (not unpacked) taken so far."""
        self._unpacked = bytearray()
        self._finished = False
        start = self._file_bytes(2)
        if not start:
            self.close()
            raise InputError(path, "the file is empty", remedy="Copy or convert it again")
        self.is_gzip = start == _GZIP_MAGIC
        self._unpacker = zlib.decompressobj(31) if self.is_gzip else None
        self._packed = b""
        self._file.seek(0)
        self.consumed = 0

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def peek(self, n: int) -> bytes:
        """The next `n` bytes (fewer at the end), which stay to be read."""
        self._fill(n)
        return bytes(self._unpacked[:n])

    def read(self, n: int) -> bytes:
        """The next `n` bytes, fewer at the end, none after it."""
        if self._unpacker is None and not self._unpacked:
            return self._plain_bytes(n)
        self._fill(n)
        taken = bytes(memoryview(self._unpacked)[:n])
        del self._unpacked[:n]
        return taken

    def _plain_bytes(self, n: int) -> bytes:
        """The next bytes of a file that is not packed, without a copy of them."""
        piece = b"" if self._finished else self._file_bytes(n)
        while len(piece) < n and not self._finished:
            more = self._file_bytes(n - len(piece))
            self._finished = not more
            piece += more
        return piece

    def _fill(self, n: int) -> None:
        while len(self._unpacked) < n and not self._finished:
            missing = n - len(self._unpacked)
            if self._unpacker is None:
                piece = self._file_bytes(missing)
                self._finished = not piece
                self._unpacked += piece
            else:
                self._unpacked += self._inflated(missing)

    def _file_bytes(self, n: int) -> bytes:
        try:
            piece = self._file.read(n) or b""
        except OSError as error:
            raise InputError(
                self.path,
                f"cannot be read ({error.strerror or error})",
                place=f"byte {self.consumed}",
                remedy="Check the disk, copy it again",
            ) from None
        self.consumed += len(piece)
        return piece

    def _inflated(self, most: int) -> bytes:
        """The next unpacked bytes, `most` at most; a gzip file may consist of several members one after the other, and end in zeros."""
        assert self._unpacker is not None
        packed = self._packed or self._file_bytes(_COMPRESSED_BYTES)
        is_end = self._finished = not packed
        self._packed = b""
        if self._unpacker.eof:
            packed = packed.lstrip(b"\0")
            if not packed:
                return b""
            self._unpacker = zlib.decompressobj(31)
        try:
            piece = self._unpacker.decompress(packed, most)
        except zlib.error:
            raise InputError(
                self.path, "the gzip data are damaged", place=f"before byte {self.consumed}", remedy="Copy or download it again"
            ) from None
        self._packed = self._unpacker.unused_data if self._unpacker.eof else self._unpacker.unconsumed_tail
        if is_end:
            if not piece and not self._unpacker.eof:
                raise InputError(self.path, "the gzip file is cut off", place=f"byte {self.consumed}", remedy="Copy or download it again")
            self._finished = not piece  # the unpacker may hold more back
        self.unfolding.add(PACKED_BYTES, len(piece), place=f"before byte {self.consumed}")
        return piece


@dataclass(frozen=True)
class Block:
    """A part of a file that begins and ends between records.

    `start`: the byte of the (unpacked) file where it begins; `consumed`: the bytes of the file taken for it.
    """

    text: bytes
    start: int
    is_first: bool
    is_last: bool
    consumed: int


def blocks(
    source: ByteSource, cut: Callable[[bytes], int], size: int = BLOCK_BYTES, *, most: int = MAXIMUM_RECORD_BYTES
) -> Iterator[Block]:
    """Cut a file into blocks of about `size` bytes.

    `cut` says behind which byte of a text a record ends (the last such place, 0: nowhere); a block grows until there is one, or until it
    is longer than `most` bytes, which is an `InputError`.
    """
    carried, start, taken, is_first = b"", 0, 0, True
    while True:
        piece = source.read(max(size, len(carried)))
        consumed, taken = source.consumed - taken, source.consumed
        if not piece:
            yield Block(carried, start, is_first, True, consumed)
            return
        text = carried + piece if carried else piece
        end = cut(text)
        carried = text[end:]
        if end:
            yield Block(text[:end], start, is_first, False, consumed)
            start, is_first = start + end, False
        elif len(text) > most:
            raise InputError(
                source.path,
                f"no record ends within {most >> 20} MB",
                place=f"after byte {start}",
                remedy="Is it what its beginning looks like? Convert or download it again",
            )
        else:
            taken -= consumed  # told with the block that these bytes end up in

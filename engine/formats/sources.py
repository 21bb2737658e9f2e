"""Reader of plain or gzipped files in blocks that end between two records."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from proteoscope.engine.errors import InputError
from proteoscope.engine.unfolding import PACKED_BYTES, Unfolding

__all__ = ["BLOCK_BYTES", "DATA_FOLDERS", "Block", "ByteSource", "blocks", "decoded"]

BLOCK_BYTES = 2 << 20
"""Default size of a block, bytes; each thread of a reader needs a multiple of this memory."""
MAXIMUM_RECORD_BYTES = 64 << 20
"""Maximum size of a record; a spectrum of two million points takes 43 MB as base64 of uncompressed doubles."""
_COMPRESSED_BYTES = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
DATA_FOLDERS = {
    ".d": ("a Bruker or Agilent run", "Convert it to mzML with msconvert (ProteoWizard)"),
    ".raw": ("a Waters run", "Convert it to mzML with msconvert (ProteoWizard)"),
}
"""Suffixes of folders that contain one measurement, with descriptions and remedies."""


class ByteSource:
    """File that is open for reading, decompressed while it is read if its content (not its name) is gzip.

    Parameters
    ----------
    path : str or Path
        File to open.

    Attributes
    ----------
    path : Path
        File, as messages name it.
    size : int
        Size of the file on disk in bytes.
    is_gzip : bool
        True if the file is gzipped.
    unfolding : Unfolding
        Limits of the numbers of items that the reader creates from the file.
    consumed : int
        Number of bytes of the file (before decompression) that were read.

    Raises
    ------
    InputError
        If the file is missing, unreadable, empty, a folder, a pipe or a device; later, while reading, if gzip data are damaged, truncated
        or unpack to more than `proteoscope.engine.unfolding.PACKED_BYTES` allows.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            facts = self.path.stat()
            if stat.S_ISDIR(facts.st_mode):
                description, remedy = DATA_FOLDERS.get(self.path.suffix.lower(), ("not a file", "Give the files in it, one by one"))
                raise InputError(path, f"is a folder: {description}", remedy=remedy)
            if not stat.S_ISREG(facts.st_mode):
                # Opening a pipe blocks until another process writes to it.
                raise InputError(path, "is a pipe or a device, which cannot be read twice", remedy="Give a file")
            self._file = self.path.open("rb", buffering=0)
            self.size = facts.st_size
        except ValueError:
            raise InputError(path, "is not a valid file name", remedy="Check the name and the folder") from None
        except FileNotFoundError:
            raise InputError(path, "there is no such file", remedy="Check the name and the folder") from None
        except OSError as error:
            raise InputError(path, f"cannot be opened ({error.strerror or error})", remedy="Check that you may read it") from None
        self.unfolding = Unfolding(path, self.size)
        self.consumed = 0
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
        """Return the next `n` bytes, or fewer at the end of the file, without moving the reading position."""
        self._fill(n)
        return bytes(self._unpacked[:n])

    def read(self, n: int) -> bytes:
        """Return the next `n` bytes, or fewer at the end of the file; b'' after the end."""
        if self._unpacker is None and not self._unpacked:
            return self._plain_bytes(n)
        self._fill(n)
        data = bytes(memoryview(self._unpacked)[:n])
        del self._unpacked[:n]
        return data

    def _plain_bytes(self, n: int) -> bytes:
        """Return the next bytes of an uncompressed file without copying them."""
        chunk = b"" if self._finished else self._file_bytes(n)
        while len(chunk) < n and not self._finished:
            more = self._file_bytes(n - len(chunk))
            self._finished = not more
            chunk += more
        return chunk

    def _fill(self, n: int) -> None:
        while len(self._unpacked) < n and not self._finished:
            missing = n - len(self._unpacked)
            if self._unpacker is None:
                chunk = self._file_bytes(missing)
                self._finished = not chunk
                self._unpacked += chunk
            else:
                self._unpacked += self._inflated(missing)

    def _file_bytes(self, n: int) -> bytes:
        try:
            chunk = self._file.read(n) or b""
        except OSError as error:
            raise InputError(
                self.path,
                f"cannot be read ({error.strerror or error})",
                place=f"byte {self.consumed}",
                remedy="Check the disk, copy it again",
            ) from None
        self.consumed += len(chunk)
        return chunk

    def _inflated(self, limit: int) -> bytes:
        """Return up to `limit` further decompressed bytes; gzip files with several members, or with zero bytes at the end, are accepted."""
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
            chunk = self._unpacker.decompress(packed, limit)
        except zlib.error:
            raise InputError(
                self.path, "the gzip data are damaged", place=f"before byte {self.consumed}", remedy="Copy or download it again"
            ) from None
        self._packed = self._unpacker.unused_data if self._unpacker.eof else self._unpacker.unconsumed_tail
        if is_end:
            if not chunk and not self._unpacker.eof:
                raise InputError(self.path, "the gzip file is cut off", place=f"byte {self.consumed}", remedy="Copy or download it again")
            self._finished = not chunk  # the decompressor may have more output
        self.unfolding.add(PACKED_BYTES, len(chunk), place=f"before byte {self.consumed}")
        return chunk


@dataclass(frozen=True)
class Block:
    """Section of a file that begins and ends between records.

    Attributes
    ----------
    text : bytes
        Decompressed content.
    start : int
        Offset in the decompressed file, bytes.
    is_first, is_last : bool
        True for the first and the last block of the file.
    consumed : int
        Number of bytes of the file that were read for the block.
    """

    text: bytes
    start: int
    is_first: bool
    is_last: bool
    consumed: int


def blocks(
    source: ByteSource,
    cut: Callable[[bytes], int],
    size: int = BLOCK_BYTES,
    *,
    maximum_bytes: int = MAXIMUM_RECORD_BYTES,
) -> Iterator[Block]:
    """Split a file into blocks of about `size` bytes.

    Parameters
    ----------
    source : ByteSource
        Open file.
    cut : callable
        Function that returns the byte offset of the end of the last complete record in a text; if it returns 0, the block is extended.
    size : int
        Size of a block in bytes.
    maximum_bytes : int
        Maximum size of a block in bytes.

    Yields
    ------
    Block
        Section of the file that consists of complete records; the last block contains the remaining file.

    Raises
    ------
    InputError
        If a record is longer than `maximum_bytes`.
    """
    carried, start, consumed_before, is_first = b"", 0, 0, True
    while True:
        chunk = source.read(max(size, len(carried)))
        consumed, consumed_before = source.consumed - consumed_before, source.consumed
        if not chunk:
            yield Block(carried, start, is_first, True, consumed)
            return
        text = carried + chunk if carried else chunk
        end = cut(text)
        carried = text[end:]
        if end:
            yield Block(text[:end], start, is_first, False, consumed)
            start, is_first = start + end, False
        elif len(text) > maximum_bytes:
            raise InputError(
                source.path,
                f"no record ends within {maximum_bytes >> 20} MB",
                place=f"after byte {start}",
                remedy="Check its format, and convert or download it again",
            )
        else:
            consumed_before -= consumed  # count the bytes of skipped blocks in the next block


def decoded(content: bytes) -> str:
    """Decode text as UTF-8, or as Latin-1 if it is not UTF-8, as in old files."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")

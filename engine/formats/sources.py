"""Bytes of a file, plain or gzipped, in blocks that end between two records."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from engine.errors import InputError

__all__ = ["BLOCK_BYTES", "Block", "ByteSource", "blocks"]

BLOCK_BYTES = 4 << 20
_COMPRESSED_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
_DATA_FOLDERS = {
    ".d": ("a Bruker or Agilent run", "Convert it to mzML with msconvert (ProteoWizard)"),
    ".raw": ("a Waters run", "Convert it to mzML with msconvert (ProteoWizard)"),
}


class ByteSource:
    """A file opened for reading, unpacked on the way where its content (not its name) is gzip.

    Raises `InputError` where the file is missing, unreadable, a folder or empty, and, while reading, where gzip data are damaged or cut
    off.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            if self.path.is_dir():
                what, remedy = _DATA_FOLDERS.get(self.path.suffix.lower(), ("not a file", "Give the files in it, one by one"))
                raise InputError(path, f"is a folder: {what}", remedy=remedy)
            self._file = self.path.open("rb", buffering=0)
            self.size = self.path.stat().st_size
        except FileNotFoundError:
            raise InputError(path, "there is no such file", remedy="Check the name and the folder") from None
        except OSError as error:
            raise InputError(path, f"cannot be opened ({error.strerror or error})", remedy="Check that you may read it") from None
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
        if self._unpacker is None:
            self._unpacked += start
        else:
            self._unpacked += self._inflate(start)

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
        self._fill(n)
        taken = bytes(memoryview(self._unpacked)[:n])
        del self._unpacked[:n]
        return taken

    def _fill(self, n: int) -> None:
        while len(self._unpacked) < n and not self._finished:
            piece = self._file_bytes(_COMPRESSED_BYTES if self.is_gzip else n - len(self._unpacked))
            if self._unpacker is not None:
                self._finished = not piece
                self._unpacked += self._inflate(piece)
            else:
                self._finished = not piece
                self._unpacked += piece

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

    def _inflate(self, piece: bytes) -> bytes:
        """Unpack a piece; a gzip file may consist of several members one after the other, and end in zeros."""
        assert self._unpacker is not None
        out = []
        try:
            if not piece and not self._unpacker.eof:
                raise InputError(self.path, "the gzip file is cut off", place=f"byte {self.consumed}", remedy="Copy or download it again")
            while piece:
                if self._unpacker.eof:
                    piece = piece.lstrip(b"\0")
                    if not piece:
                        break
                    self._unpacker = zlib.decompressobj(31)
                out.append(self._unpacker.decompress(piece))
                piece = self._unpacker.unused_data
        except zlib.error:
            raise InputError(
                self.path, "the gzip data are damaged", place=f"before byte {self.consumed}", remedy="Copy or download it again"
            ) from None
        return b"".join(out)


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


def blocks(source: ByteSource, cut: Callable[[bytes], int], size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Cut a file into blocks of about `size` bytes.

    `cut` says behind which byte of a text a record ends (the last such place, 0: nowhere); a block grows until there is one.
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
        else:
            taken -= consumed  # told with the block that these bytes end up in

"""Sealed records of arrays, one behind the other in a file: how what a run has computed is kept.

::

    magic (8 bytes)  salt (16 bytes)  record  record ...
    record:  bytes of header (uint32)  bytes of payload (uint64)  header (JSON)  payload (the arrays)  seal (32 bytes)

Numbers are little-endian. The seal is the HMAC-SHA-256, with the user's key (`proteoscope.engine.project.sealing`), of the salt and all of
the record before it. A record that is cut off, damaged, a stranger's, or of another file is none.
"""

from __future__ import annotations

import errno
import hmac
import json
import math
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAXIMUM_BYTES",
    "MAXIMUM_RECORDS",
    "SALT_BYTES",
    "KeptRecord",
    "looks_kept",
    "open_kept",
    "read_columns",
    "scan",
    "start",
    "write_record",
]

MAXIMUM_BYTES = 4 << 30
"""Of what a run keeps."""
MAXIMUM_RECORDS = 1 << 18
"""In a file."""
SALT_BYTES = 16
_MAGIC = b"PSkept01"
_LENGTHS = struct.Struct("<IQ")
_SEAL_BYTES = 32
_MAXIMUM_FIRST_HEADER, _MAXIMUM_HEADER = 16 << 20, 1 << 13  # bytes; the first says what was asked, with the names of all files
_MAXIMUM_COLUMNS, _MAXIMUM_DIMENSIONS = 64, 8
_BLOCK = 4 << 20
_NUMBERS = "iufb"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # and no waiting at a pipe
_BINARY = getattr(os, "O_BINARY", 0)

Columns = Mapping[str, NDArray]


@dataclass(frozen=True)
class KeptRecord:
    """A record as its header describes it; whether that is true is known when `read_columns` has seen the seal.

    Attributes
    ----------
    header : what it is about. begin : where it begins in the file. header_bytes, payload_bytes : how long its parts are.
    """

    header: Mapping[str, Any]
    begin: int
    header_bytes: int
    payload_bytes: int

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.begin + _LENGTHS.size + self.header_bytes + self.payload_bytes + _SEAL_BYTES


def open_kept(path: Path, *, write: bool = False, is_new: bool = False) -> BinaryIO:
    """A file of records, that is a file and no link to one.

    Raises
    ------
    OSError : there is none, or the disk refuses, or it is something else than a file.
    """
    flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT | os.O_EXCL if is_new else 0) | _NO_LINK | _BINARY
    descriptor = os.open(path, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "this is no file", str(path))
        return os.fdopen(descriptor, "r+b" if write else "rb")
    except BaseException:
        os.close(descriptor)
        raise


def looks_kept(path: Path) -> bool:
    """Whether a file is one of records, no larger than one may be; whoever sealed them."""
    try:
        with open_kept(path) as file:
            return os.fstat(file.fileno()).st_size <= MAXIMUM_BYTES and file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def start(file: BinaryIO, salt: bytes) -> None:
    """Write what stands before the first record."""
    file.write(_MAGIC + salt)


def scan(file: BinaryIO) -> tuple[bytes, Iterator[KeptRecord]]:
    """The salt of a file, and its records up to the first that is not whole; their payloads are not read.

    Raises
    ------
    ValueError : it is no file of records, or larger than one may be. OSError : it cannot be read.
    """
    size = os.fstat(file.fileno()).st_size
    if size > MAXIMUM_BYTES:
        raise ValueError(f"more than {MAXIMUM_BYTES} bytes")
    file.seek(0)
    head = file.read(len(_MAGIC) + SALT_BYTES)
    if len(head) < len(_MAGIC) + SALT_BYTES or not head.startswith(_MAGIC):
        raise ValueError("no file of records")
    return head[len(_MAGIC) :], _records(file, size)


def _records(file: BinaryIO, size: int) -> Iterator[KeptRecord]:
    begin = first = len(_MAGIC) + SALT_BYTES
    for _ in range(MAXIMUM_RECORDS):
        file.seek(begin)
        lengths = file.read(_LENGTHS.size)
        if len(lengths) < _LENGTHS.size:
            return
        header_bytes, payload_bytes = _LENGTHS.unpack(lengths)
        record = KeptRecord({}, begin, header_bytes, payload_bytes)
        if header_bytes > (_MAXIMUM_FIRST_HEADER if begin == first else _MAXIMUM_HEADER) or record.end > size:
            return
        try:
            header = json.loads(file.read(header_bytes))
        except (ValueError, RecursionError):
            return
        if not isinstance(header, dict):
            return
        yield KeptRecord(header, begin, header_bytes, payload_bytes)
        begin = record.end


def write_record(file: BinaryIO, salt: bytes, key: bytes, about: Mapping[str, Any], columns: Columns) -> int:
    """Write a record at the file's place; its bytes.

    Parameters
    ----------
    about : what has a JSON form, without a member ``columns``. columns : arrays of numbers.

    Raises
    ------
    TypeError : an array holds something else. OSError : the disk refuses.
    """
    arrays = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    if any(array.dtype.kind not in _NUMBERS for array in arrays.values()):
        raise TypeError("only arrays of numbers are kept")
    described = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({**about, "columns": described}, separators=(",", ":"), ensure_ascii=False).encode()
    payload_bytes = sum(array.nbytes for array in arrays.values())
    parts: list[Any] = [_LENGTHS.pack(len(header), payload_bytes) + header]
    parts += [array.reshape(-1).view(np.uint8).data for array in arrays.values() if array.nbytes]
    seal = hmac.new(key, salt, "sha256")
    for part in parts:
        seal.update(part)
        file.write(part)
    file.write(seal.digest())
    return _LENGTHS.size + len(header) + payload_bytes + _SEAL_BYTES


def read_columns(file: BinaryIO, record: KeptRecord, salt: bytes, key: bytes) -> dict[str, NDArray] | None:
    """The arrays of a record, (as described) in memory of their own; None where it is not what was sealed with this salt and key."""
    described = _described(record)
    if described is None:
        return None
    try:
        file.seek(record.begin)
        seal = hmac.new(key, salt, "sha256")
        head = file.read(_LENGTHS.size + record.header_bytes)
        seal.update(head)
        payload = np.empty(record.payload_bytes, np.uint8)
        for first in range(0, record.payload_bytes, _BLOCK):
            block = memoryview(payload[first : first + _BLOCK])  # type: ignore[arg-type]
            if file.readinto(block) != len(block):  # type: ignore[attr-defined]
                return None
            seal.update(block)
        if not hmac.compare_digest(file.read(_SEAL_BYTES), seal.digest()):
            return None
        if json.loads(head[_LENGTHS.size :]) != record.header:
            return None  # it was changed since it was scanned
    except (OSError, ValueError):
        return None
    columns, begin = dict[str, NDArray](), 0
    for name, dtype, shape in described:
        n_bytes = math.prod(shape) * dtype.itemsize
        columns[name] = payload[begin : begin + n_bytes].copy().view(dtype).reshape(shape)
        begin += n_bytes
    return columns


def _described(record: KeptRecord) -> list[tuple[str, np.dtype, tuple[int, ...]]] | None:
    """Names, types and shapes of a record's arrays; None where they are none, or do not take the bytes that it has."""
    found, columns = list[tuple[str, np.dtype, tuple[int, ...]]](), record.header.get("columns")
    if not isinstance(columns, list) or len(columns) > _MAXIMUM_COLUMNS:
        return None
    for column in columns:
        if not (isinstance(column, list) and len(column) == 3):
            return None
        name, dtype_name, shape = column
        if not (isinstance(name, str) and isinstance(dtype_name, str) and isinstance(shape, list) and len(shape) <= _MAXIMUM_DIMENSIONS):
            return None
        if not all(isinstance(n, int) and 0 <= n <= MAXIMUM_BYTES for n in shape):
            return None
        if len(dtype_name) > 4 or dtype_name[:1] not in "<|" or dtype_name[1:2] not in _NUMBERS or not dtype_name[2:].isdecimal():
            return None
        try:
            found.append((name, np.dtype(dtype_name), tuple(shape)))
        except TypeError:
            return None
    total = sum(math.prod(shape) * dtype.itemsize for _, dtype, shape in found)
    return found if total == record.payload_bytes else None

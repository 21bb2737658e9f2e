"""Store of indexes on disk, each under a key of its inputs: an index is built once, then memory-mapped, and rebuilt if damaged or outdated.

::

    FOLDER/NAME-KEY/manifest.json    inputs, and size and checksum of each file
    FOLDER/NAME-KEY/...              files of the index

An index can always be recomputed, so an invalid index is treated as absent, and not reported as an error. Checksums detect damage, but not
tampering that changes both files and checksums; therefore, the code that opens an index validates its columns.

The cache of the user contains the indexes that all projects share (in the folder ``indexes``) and small files. Its size is limited, and the
user may delete it. It is the folder in the environment variable ``PROTEOSCOPE_CACHE``. If the variable is not set, or other users can
change files in that folder, the cache is the program's folder in the user's cache directory.
"""

import contextlib
import json
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from proteoscope.engine.arrays import read_only
from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import open_regular, remove_leftovers, storage_errors, sync_file, sync_folder, temporary_path
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import parts_digest
from proteoscope.kernels.trusted_folders import VARIABLE, cache_folder

__all__ = [
    "DEFAULT_BYTE_LIMIT",
    "VARIABLE",
    "CachedIndex",
    "IndexStore",
    "InvalidIndexError",
    "cache_folder",
    "checked_offsets",
    "checked_texts",
    "index_store",
    "open_column",
    "read_json",
    "read_numbers",
    "require",
    "used_time",
]

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': False, 'shape': \(([0-9]{1,15}),\)(?:, )?\}\s*")
_MAXIMUM_JSON = 1 << 20
_ALIGNMENT = 16


class InvalidIndexError(StorageError):
    """An index differs from what the program writes; the message names the error. The caller rebuilds the index."""


def require(condition: object, what: str) -> None:
    """Raise `InvalidIndexError` with the message `what` if `condition` is false."""
    if not condition:
        raise InvalidIndexError(what)


def open_column(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Memory-map a one-dimensional array of type `dtype` from a ``.npy`` file.

    Raises
    ------
    InvalidIndexError
        If the file is missing, or does not hold such an array.
    """
    kind = np.dtype(dtype)
    try:
        with open_regular(path) as file:
            start = file.read(10)
            n_header = int.from_bytes(start[8:10], "little")
            header = _HEADER.fullmatch(file.read(n_header))
            n_bytes = file.seek(0, 2)
        require(start[:8] == _MAGIC and header is not None, f"{path.name} is not a column")
        assert header is not None
        require(header[1].decode() == kind.str, f"{path.name} contains {header[1].decode()} instead of {kind.str}")
        length, offset = int(header[2]), len(start) + n_header
        require(
            offset % _ALIGNMENT == 0 and n_bytes == offset + length * kind.itemsize,
            f"{path.name} has another length than its header states",
        )
        # Empty files cannot be mapped. Read-only like mapped arrays, since kernels are compiled separately for writable ones.
        return np.memmap(path, kind, mode="r", offset=offset, shape=(length,)) if length else read_only(np.empty(0, kind))
    except (OSError, ValueError, MemoryError) as error:
        raise InvalidIndexError(f"{path.name} cannot be read ({error})") from error


def checked_offsets(offsets: NDArray[np.int64], end: int, what: str) -> None:
    """Raise InvalidIndexError unless the offsets ascend from 0 to `end`; `what` is the name of the array in the message."""
    require(len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == end, f"the offsets of {what} do not extend from its start to its end")
    # Compare offsets instead of subtracting them, since differences could overflow.
    require((offsets[1:] >= offsets[:-1]).all(), f"the offsets of {what} do not ascend")


def checked_texts(characters: NDArray[np.uint8], offsets: NDArray[np.int64], what: str) -> None:
    """Raise InvalidIndexError unless the offsets divide UTF-8 bytes into texts at character boundaries.

    Raises
    ------
    InvalidIndexError
        If the offsets are invalid or divide a character.
    """
    checked_offsets(offsets, len(characters), what)
    try:
        str(characters.data, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidIndexError(f"the {what} are not UTF-8") from error
    starts = offsets[:-1][offsets[:-1] < len(characters)]
    require(not (characters[starts] & 0xC0 == 0x80).any(), f"the offsets of {what} split characters")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of at most 1 MB.

    Raises
    ------
    InvalidIndexError
        If the file is missing, larger, or not valid JSON.
    """
    try:
        with open_regular(path) as file:
            return json.loads(file.read(_MAXIMUM_JSON))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidIndexError(f"{path.name} cannot be read ({error})") from error


def read_numbers(path: Path, names: tuple[str, ...], texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the non-negative numbers `names` and the strings `texts` of a JSON file, by name.

    Raises
    ------
    InvalidIndexError
        If the file is missing, or does not hold exactly these values.
    """
    result = read_json(path)
    require(isinstance(result, dict) and set(result) == {*names, *texts}, f"{path.name} contains other values than expected")
    for name in names:
        require(type(result[name]) is int and 0 <= result[name] < 1 << 62, f"{path.name} has no number {name}")
    for name in texts:
        require(isinstance(result[name], str), f"{path.name} has no text {name}")
    return dict(result)


DEFAULT_BYTE_LIMIT = 20 << 30

_FORMAT = 1
_MANIFEST = "manifest.json"
_CHUNK = 16 << 20
_LATEST = 253370764800.0  # seconds since 1970: in the year 9999, the last that every time zone can represent
_MAXIMUM_MANIFEST = 1 << 20
_INDEX = re.compile(r"([a-z]+)-[0-9a-f]{64}")

Index = TypeVar("Index")


@dataclass(frozen=True)
class CachedIndex:
    """Stored index: its kind, folder, size in bytes, last use, and description ('' if unknown)."""

    kind: str
    folder: Path
    bytes: int
    used: datetime
    title: str


class IndexStore:
    """Store of the indexes of one kind, in a folder that may also contain indexes of other kinds.

    Parameters
    ----------
    folder
        Folder of the indexes; created by the first build.
    name
        Kind of the indexes in lower case, the prefix of their folder names.
    byte_limit
        Maximum size in bytes of all indexes in the folder; if it is exceeded, the least recently used indexes are removed.
    grace_seconds
        Time in seconds after its last use in which an index is not removed, since a process may be about to map it.
    """

    def __init__(
        self, folder: str | Path, name: str = "index", *, byte_limit: int = DEFAULT_BYTE_LIMIT, grace_seconds: float = 600.0
    ) -> None:
        self._folder = Path(folder).absolute()
        self._name = name
        self._byte_limit = byte_limit
        self._grace_seconds = grace_seconds

    @staticmethod
    def key(parts: Mapping[str, Any]) -> str:
        """Return the key of an index: SHA-256 of the canonical JSON of its inputs, parameters and format version."""
        return parts_digest(parts)

    def path(self, key: str) -> Path:
        """Return the folder of the index with `key`, which may not exist."""
        return self._folder / f"{self._name}-{key}"

    def open(self, key: str) -> Path | None:
        """Return the folder of the index with `key`, or None if it is missing or damaged.

        The size and CRC-32 of each file are compared with the manifest, which takes 0.1 s for 300 MB on two cores of 2023.
        """
        remove_leftovers(self._folder)
        folder = self.path(key)
        if not _is_whole(folder, key):
            return None
        with contextlib.suppress(OSError):
            os.utime(folder / _MANIFEST)
        return folder

    def get(
        self, parts: Mapping[str, Any], title: str, build: Callable[[Path], None], load: Callable[[Path], Index], progress: Progress
    ) -> Index:
        """Load the index with the inputs `parts` if it is stored and valid; otherwise build, store and load it.

        Parameters
        ----------
        title
            Description of the inputs, for display.
        build
            Function that writes the index into an empty folder.
        load
            Function that opens the index in a folder, or raises `InvalidIndexError`.

        Raises
        ------
        StorageError
            If the index cannot be stored; the caller then builds it in a folder of its own.
        """
        key = self.key(parts)
        folder = self.open(key)
        if folder is not None:
            try:
                return load(folder)
            except InvalidIndexError as error:
                progress.message(f"An index in the cache is invalid and is built again: {error}", "warning")
                _discard(folder)
        with self.build(key, parts, title=title) as building:
            build(building)
        return load(self.path(key))

    def indexes(self) -> list[CachedIndex]:
        """Return all indexes in the folder, of any kind, most recently used first."""
        result = []
        for folder in self._folders():
            with contextlib.suppress(OSError):
                size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
                manifest = folder / _MANIFEST
                used = manifest.lstat().st_mtime if _is_file(manifest) else 0.0
                kind = folder.name.partition("-")[0]
                result.append(CachedIndex(kind, folder, size, used_time(used), _title(manifest)))
        return sorted(result, key=lambda index: index.used, reverse=True)

    def clear(self, kind: str | None = None) -> list[CachedIndex]:
        """Remove all indexes (of one kind, if given) and remains of unfinished builds; return the removed indexes.

        Raises
        ------
        StorageError
            If an index could not be removed.
        """
        remove_leftovers(self._folder)
        chosen = [index for index in self.indexes() if kind in (None, index.kind)]
        for index in chosen:
            _discard(index.folder)
            if index.folder.exists():
                raise StorageError(f"{index.folder}: cannot be removed. You may not write here.")
        return chosen

    def _folders(self) -> list[Path]:
        try:
            return [path for path in sorted(self._folder.iterdir()) if _INDEX.fullmatch(path.name)]
        except OSError:
            return []

    @contextmanager
    def build(self, key: str, parts: Mapping[str, Any], *, title: str = "") -> Iterator[Path]:
        """Yield an empty temporary folder, which becomes the index with `key` if the `with` block succeeds, and is removed otherwise.

        If another process has built the same index in the meantime, that index is used. A damaged index is replaced. Finally, if the byte
        limit is exceeded, the least recently used indexes are removed.

        Parameters
        ----------
        parts
            Inputs from which `key` is computed, recorded in the manifest.
        title
            Description of the inputs, for display.

        Raises
        ------
        ValueError
            If `key` is not the key of `parts`.
        StorageError
            If writing fails.
        """
        if key != self.key(parts):
            raise ValueError("the key does not belong to these parts")
        target = self.path(key)
        with contextlib.ExitStack() as stack:
            with storage_errors(target):
                remove_leftovers(self._folder)
                temporary = stack.enter_context(temporary_path(target))
                temporary.mkdir()
            with storage_errors(target, only_disk=True):
                yield temporary
            with storage_errors(target):
                _seal(temporary, key, parts, title)
                self._publish(temporary, target, key)
        self._evict(keep=target)

    def _publish(self, temporary: Path, target: Path, key: str) -> None:
        if target.exists():
            if _is_whole(target, key):
                return
            _discard(target)
        try:
            temporary.rename(target)
        except OSError:
            if not _is_whole(target, key):
                raise
        sync_folder(self._folder)

    def _evict(self, keep: Path) -> None:
        now, indexes = time.time(), self.indexes()
        total = sum(index.bytes for index in indexes)
        for index in reversed(indexes):
            if total <= self._byte_limit:
                return
            # A time far in the future comes from a clock that was wrong.
            if index.folder != keep and abs(now - index.used.timestamp()) > self._grace_seconds:
                _discard(index.folder)
                total -= index.bytes


def _discard(folder: Path) -> None:
    """Rename an index and then remove it, so that no process opens an index that is partly removed."""
    with contextlib.suppress(OSError), temporary_path(folder) as renamed:
        folder.rename(renamed)


def used_time(seconds: float) -> datetime:
    """Return a file time as a date in UTC. Times that some time zone cannot represent, due to a wrong clock, are replaced by a limit.

    Parameters
    ----------
    seconds : float
        Seconds since 1970.

    Returns
    -------
    datetime
    """
    return datetime.fromtimestamp(min(max(seconds, 0.0), _LATEST), UTC)


def _is_file(path: Path) -> bool:
    """Return True if `path` is a regular file and not a link."""
    return stat.S_ISREG(path.lstat().st_mode)


def _title(manifest: Path) -> str:
    """Return the title in an index's manifest; '' if it cannot be read."""
    try:
        with manifest.open("rb") as file:
            title = json.loads(file.read(_MAXIMUM_MANIFEST))["title"]
        return title if isinstance(title, str) else ""
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return ""


def _seal(folder: Path, key: str, parts: Mapping[str, Any], title: str) -> None:
    """Write all files of an index to the disk, then its manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        sync_file(path)
    manifest = {
        "format": _FORMAT,
        "key": key,
        "parts": dict(parts),
        "title": title,
        "files": [
            {"path": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "crc32": checksums}
            for path, checksums in zip(files, _checksums(files), strict=True)
        ],
    }
    path = folder / _MANIFEST
    path.write_text(json.dumps(manifest, indent=1))
    sync_file(path)
    for inner in {path.parent for path in files} | {folder}:
        sync_folder(inner)


def _is_whole(folder: Path, key: str) -> bool:
    try:
        if folder.is_symlink() or not _is_file(folder / _MANIFEST) or (folder / _MANIFEST).stat().st_size > _MAXIMUM_MANIFEST:
            return False
        manifest = json.loads((folder / _MANIFEST).read_bytes())
        if manifest["format"] != _FORMAT or manifest["key"] != key or parts_digest(manifest["parts"]) != key:
            return False
        listed = {folder / entry["path"]: entry for entry in manifest["files"]}
        present = {path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()} - {folder / _MANIFEST}
        if not all(map(_is_file, present)):
            return False
        if present != set(listed) or any(path.stat().st_size != entry["bytes"] for path, entry in listed.items()):
            return False
        return _checksums(list(listed)) == [entry["crc32"] for entry in listed.values()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _checksums(files: list[Path]) -> list[list[int]]:
    """Return, for each file, the CRC-32 of each chunk of 16 MiB; chunks are computed in parallel."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        pending = [[pool.submit(_checksum, path, start) for start in range(0, path.stat().st_size, _CHUNK)] for path in files]
        return [[chunk.result() for chunk in chunks] for chunks in pending]


def _checksum(path: Path, start: int) -> int:
    # Reading is faster than memory-mapping here, which would load an uncached file page by page.
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        return zlib.crc32(file.read(_CHUNK))


def index_store(kind: str) -> IndexStore:
    """Return the store of cached indexes of the given kind; all kinds share one size limit. The entry of a search names its kinds."""
    return IndexStore(cache_folder() / "indexes", kind)

"""Database of protein chains in a folder of the user, with memory-mapped columns.

::

    DATABASE/database.json           name of the current columns, and settings with which files were read
    DATABASE/columns-3f9a.../        a file per column; chains are sorted by length, then by name
    DATABASE/parts/                  parts of an unfinished build
    DATABASE/skipped.tsv             omitted files and chains, with reasons

Columns are never changed: adding or removing chains writes new columns, and then their name to ``database.json``, so that an
interruption leaves either the old or the new database. A folder may come from an untrusted source: nothing in it is executed or
unpickled, links are not followed, and columns are validated when they are opened.
"""

import json
import re
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, ranges, segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import available_threads, run_on_threads
from proteoscope.engine.files import atomic_file, put_in_place, storage_errors, sync_file, sync_folder, temporary_path
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.index_store import (
    InvalidIndexError,
    checked_offsets,
    checked_texts,
    open_column,
    read_json,
    read_numbers,
    require,
)
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structures.chains import FEWEST_RESIDUES, NO_CHAINS, RESIDUE_COLUMNS, STRAND, Chains
from proteoscope.engine.structures.reading import Models
from proteoscope.engine.structures.sources import DATABASE_FILE

__all__ = [
    "Collection",
    "LazySequence",
    "SourceFile",
    "StructureDatabase",
    "open_collection",
    "open_database",
    "write_database",
    "write_merged",
]

_FORMAT = 2
_DELETE = 127  # the only unprintable ASCII character after the space
_MAXIMUM_CONFIDENCE = 1e4
_ASCII = 128
_NUMBERS, PARTS, SKIPPED = "numbers.json", "parts", "skipped.tsv"
_COLUMNS_FOLDER = re.compile(r"columns-[0-9a-f]{12}")
_TYPES = {
    "position": "<f4",
    "residue": "|i1",
    "secondary": "|u1",
    "confidence": "<f4",
    "author_number": "<i4",
    "insertion": "|u1",
    "label_number": "<i4",
}
_TEXTS = ("names", "descriptions", "source_paths", "source_skipped")
_MAXIMUM_PLACE = 1e5
_RESIDUES_CHECKED = 1 << 18  # residues in a batch, so that intermediate results fit the CPU cache
_REMEDY = "Build it again: proteoscope structure-database build FOLDER --out DATABASE"


Item = TypeVar("Item")


@dataclass(frozen=True)
class SourceFile:
    """Structure file from which chains were read.

    Attributes
    ----------
    path : str
        Path of the file.
    size, modified : int
        Size in bytes and modification time in nanoseconds, which identify an unchanged file.
    skipped : tuple of (str, str)
        Omitted chains with reasons; chain '' means the whole file.
    """

    path: str
    size: int
    modified: int
    skipped: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[str, int, int]:
        """Path, size and modification time."""
        return self.path, self.size, self.modified


class LazySequence(Sequence[Item]):
    """Sequence that creates all its items on first access.

    Parameters
    ----------
    n : int
        Number of items.
    make : callable
        Function that returns all items.
    """

    def __init__(self, n: int, make: Callable[[], tuple[Item, ...]]) -> None:
        self._n, self._make = n, make
        self._made: tuple[Item, ...] | None = None

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, position: int) -> Item: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, position: int | slice) -> Item | tuple[Item, ...]:
        if self._made is None:
            self._made = self._make()
        return self._made[position]


@dataclass(frozen=True)
class Collection:
    """Chains with the files from which they were read.

    Attributes
    ----------
    chains : Chains
        The n chains.
    source : ndarray of int32, shape (n,)
        Index of the file of each chain in `sources`.
    sources : sequence of SourceFile
        Files.
    """

    chains: Chains
    source: NDArray[np.int32]
    sources: Sequence[SourceFile]


@dataclass(frozen=True)
class StructureDatabase:
    """Open structure database.

    Attributes
    ----------
    folder : Path
        Folder of the database.
    identity : str
        Identifier that differs after every change.
    minimum_plddt : float
        Minimum pLDDT of included residues.
    models : Models
        Models that were read from each file (see `read_structure`).
    content : Collection
        Memory-mapped chains with their files.
    """

    folder: Path
    identity: str
    minimum_plddt: float
    models: Models
    content: Collection

    @property
    def chains(self) -> Chains:
        """Chains, sorted by length."""
        return self.content.chains

    def file_of(self, chain: int) -> Path:
        """Return the path of the file from which the chain with the index `chain` was read, if the file is unchanged.

        Otherwise, a path that cannot be opened is returned. A file is unchanged if it has the recorded size and modification time; without
        this check, an untrusted database could name any file.
        """
        source = self.content.sources[int(self.content.source[chain])]
        path = Path(source.path)
        with suppress(OSError):
            status = path.stat()
            if (status.st_size, status.st_mtime_ns) == (source.size, source.modified):
                return path
        return self.folder / DATABASE_FILE / path.name

    @property
    def skipped(self) -> list[tuple[str, str, str]]:
        """Omitted and reinterpreted content as (file, chain, reason); chain '' means the whole file."""
        return [(source.path, chain, reason) for source in self.content.sources for chain, reason in source.skipped]


def open_database(folder: str | Path) -> StructureDatabase:
    """Open and validate a structure database.

    Raises
    ------
    InputError
        If the database is missing or damaged, or the folder is not a structure database.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(folder, "there is no such structure database", remedy=_REMEDY)
    try:
        manifest = _manifest(folder)
        content = open_collection(folder / manifest["columns"])
        return StructureDatabase(folder, manifest["columns"], manifest["least_confidence"], manifest["models"], content)
    except InvalidIndexError as error:
        raise InputError(folder, f"is not a valid structure database ({error})", remedy=_REMEDY) from None


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / DATABASE_FILE
    require(not path.is_symlink(), f"{DATABASE_FILE} is a link")
    result = read_json(path)
    require(
        isinstance(result, dict) and set(result) == {"format", "columns", "least_confidence", "models"},
        f"{DATABASE_FILE} has unexpected content",
    )
    require(result["format"] == _FORMAT, f"it is of format {str(result['format'])[:20]}, but this version reads {_FORMAT}")
    require(isinstance(result["columns"], str) and _COLUMNS_FOLDER.fullmatch(result["columns"]) is not None, "it names no columns")
    require(result["models"] in get_args(Models), "it does not state which models are read")
    least = result["least_confidence"]
    require(isinstance(least, float) and 0.0 <= least <= 100.0, "its minimum pLDDT is not between 0 and 100")
    described: dict[str, Any] = result
    return described


def open_collection(folder: Path) -> Collection:
    """Open memory-mapped chains written by `write_merged`.

    Raises
    ------
    InvalidIndexError
        If a column is missing, damaged or inconsistent.
    """
    require(folder.is_dir() and not folder.is_symlink(), f"{folder.name} is missing")
    numbers = read_numbers(_own(folder, _NUMBERS), ("n_chains", "n_residues", "n_sources"))
    n, r, n_sources = numbers["n_chains"], numbers["n_residues"], numbers["n_sources"]
    offsets = _column(folder, "offsets", "<i8", n + 1)
    checked_offsets(offsets, r, "chains")
    lengths = np.diff(offsets)
    require(not n or lengths.min() >= FEWEST_RESIDUES, "a chain is too short")
    require((lengths[1:] >= lengths[:-1]).all(), "chains are not sorted by their lengths")
    columns = {name: _column(folder, name, kind, 3 * r if name == "position" else r) for name, kind in _TYPES.items()}
    _check_values(columns)
    columns["position"] = columns["position"].reshape(-1, 3)
    texts = {name: _open_texts(folder, name, n if name in ("names", "descriptions") else n_sources) for name in _TEXTS}
    names, descriptions = _strings(texts["names"]), _strings(texts["descriptions"])
    is_written = _is_plain(texts["names"]) or all(map(str.isprintable, names))
    require(is_written and not (texts["names"].characters == ord(" ")).any(), "a chain has no name that can be written")
    is_written = _is_plain(texts["descriptions"]) or all(map(str.isprintable, descriptions))
    require(is_written, "a description cannot be written")
    source = _column(folder, "source", "<i4", n)
    require(not n or (source.min() >= 0 and source.max() < n_sources), "a chain belongs to no file")
    sizes, modified = _column(folder, "source_size", "<i8", n_sources), _column(folder, "source_modified", "<i8", n_sources)

    require(not (texts["source_paths"].characters == 0).any(), "a file has no name that can be opened")

    def make_sources() -> tuple[SourceFile, ...]:
        paths, skipped = _strings(texts["source_paths"]), _strings(texts["source_skipped"])
        numbers = zip(paths, sizes.tolist(), modified.tolist(), skipped, strict=True)
        return tuple(SourceFile(path, size, changed, _parse_skipped(text)) for path, size, changed, text in numbers)

    chains = Chains(names, descriptions, offsets, **columns)
    return Collection(chains, source, LazySequence(n_sources, make_sources))


def _check_values(columns: dict[str, NDArray[Any]]) -> None:
    """Raise an error if a residue code, state, coordinate, insertion code or pLDDT is invalid."""

    def residue_error(first: int) -> str:
        """Return the first error in a batch of residues, or ''."""
        residue, secondary, insertion, confidence = (
            columns[name][first : first + _RESIDUES_CHECKED] for name in ("residue", "secondary", "insertion", "confidence")
        )
        position = columns["position"][3 * first : 3 * (first + _RESIDUES_CHECKED)]
        if residue.min() < 0 or residue.max() >= len(SYMBOLS):
            return "a residue has an unknown code"
        if secondary.max() > STRAND:
            return "a residue has no secondary structure"
        # Both comparisons are False for NaN.
        if not (position.min() >= -_MAXIMUM_PLACE and position.max() <= _MAXIMUM_PLACE):
            return "a residue has no valid coordinates"
        if insertion.any() and ((insertion > 0) & ((insertion <= ord(" ")) | (insertion == _DELETE))).any():
            return "an insertion code is not printable"
        # NaN, for residues without pLDDT, is valid.
        return "a confidence is not a percentage" if (np.abs(confidence) > _MAXIMUM_CONFIDENCE).any() else ""

    parts = range(0, len(columns["residue"]), _RESIDUES_CHECKED)
    for text in run_on_threads(residue_error, parts, available_threads(), Progress()):
        require(not text, text)


def _is_plain(texts: Texts) -> bool:
    """Return True if all characters are printable ASCII."""
    symbols = texts.characters
    return not len(symbols) or bool(symbols.min() >= ord(" ") and symbols.max() < _DELETE)


def _own(folder: Path, name: str) -> Path:
    path = folder / name
    require(not path.is_symlink(), f"{name} is a link")
    return path


def _column(folder: Path, name: str, kind: str, length: int) -> NDArray[Any]:
    column = open_column(_own(folder, f"{name}.npy"), kind)
    require(len(column) == length, f"{name} has {len(column)} rows instead of {length}")
    return column


def _open_texts(folder: Path, name: str, n: int) -> Texts:
    characters = open_column(_own(folder, f"{name}.npy"), "|u1")
    offsets = _column(folder, f"{name}_offsets", "<i8", n + 1)
    checked_texts(characters, offsets, name)
    return Texts(characters, offsets)


def _strings(texts: Texts) -> tuple[str, ...]:
    """Return texts as Python strings; to save time, ASCII texts are decoded together and then divided."""
    bounds = texts.offsets.tolist()
    if len(texts.characters) == 0 or int(texts.characters.max()) < _ASCII:
        whole = texts.characters.tobytes().decode("ascii")
        return tuple(whole[start:stop] for start, stop in pairwise(bounds))
    data = texts.characters.tobytes()
    return tuple(data[start:stop].decode() for start, stop in pairwise(bounds))


def _parse_skipped(text: str) -> tuple[tuple[str, str], ...]:
    if not text:
        return ()
    lines = [line.partition("\t") for line in text.split("\n") if line]
    return tuple((chain, reason) for chain, _, reason in lines)


def write_merged(
    folder: Path, collections: Sequence[Collection], is_retained: Sequence[NDArray[np.bool_]], *, drops: frozenset[str] = frozenset()
) -> NDArray[np.int64]:
    """Write the retained chains of several collections as one collection, sorted by length, name and file, atomically.

    Parameters
    ----------
    folder : Path
        Folder of the new columns, which must not exist.
    collections : sequence of Collection
        Collections to merge.
    is_retained : sequence of ndarray of bool
        True for the retained chains of each collection.
    drops : frozenset of str
        Paths of files that are not recorded in the new collection; none of their chains may be retained.

    Returns
    -------
    ndarray of int64
        Index of each written chain in the concatenated chains of all given collections.
    """
    sources = [source for collection in collections for source in collection.sources if source.path not in drops]
    number_of = {source.key: number for number, source in enumerate(sources)}
    parts = [collection.chains for collection in collections]
    names = [name for chains in parts for name in chains.names]
    descriptions = [text for chains in parts for text in chains.descriptions]
    lengths = np.concatenate([chains.lengths for chains in (NO_CHAINS, *parts)])
    origin = [collection.sources[number] if number >= 0 else None for collection in collections for number in collection.source.tolist()]
    chosen = np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *is_retained]))
    keys = [(lengths[i], names[i], result.path, i) for i in chosen.tolist() if (result := origin[i]) is not None]
    order = np.array([i for *_, i in sorted(keys)], np.int64)
    starts = segment_offsets(lengths)
    offsets, rows = ranges(starts[:-1][order], starts[1:][order])

    with storage_errors(folder), temporary_path(folder) as temporary:
        temporary.mkdir()
        # Write one column after another, so that only one is in memory.
        for name in RESIDUE_COLUMNS:
            column = np.concatenate([getattr(chains, name) for chains in (NO_CHAINS, *parts)])[rows]
            np.save(temporary / f"{name}.npy", np.ascontiguousarray(column, _TYPES[name]).reshape(-1))
        np.save(temporary / "offsets.npy", offsets)
        np.save(
            temporary / "source.npy",
            np.array([number_of[origin_of_chain.key] for i in order.tolist() if (origin_of_chain := origin[i])], "<i4"),
        )
        np.save(temporary / "source_size.npy", np.array([source.size for source in sources], "<i8"))
        np.save(temporary / "source_modified.npy", np.array([source.modified for source in sources], "<i8"))
        _write_texts(temporary, "names", [names[i] for i in order.tolist()])
        _write_texts(temporary, "descriptions", [descriptions[i] for i in order.tolist()])
        _write_texts(temporary, "source_paths", [source.path for source in sources])
        _write_texts(temporary, "source_skipped", ["\n".join(map("\t".join, source.skipped)) for source in sources])
        numbers = {"n_chains": len(order), "n_residues": len(rows), "n_sources": len(sources)}
        (temporary / _NUMBERS).write_text(json.dumps(numbers))
        for path in temporary.iterdir():
            sync_file(path)
        sync_folder(temporary)
        put_in_place(temporary, folder)
    return order


def _write_texts(folder: Path, name: str, texts: Sequence[str]) -> None:
    encoded = [text.encode("utf-8", "replace") for text in texts]
    np.save(folder / f"{name}.npy", np.frombuffer(b"".join(encoded), np.uint8))
    np.save(folder / f"{name}_offsets.npy", segment_offsets(np.array([len(text) for text in encoded], np.int64)))


def write_database(
    folder: Path,
    collections: Sequence[Collection],
    is_retained: Sequence[NDArray[np.bool_]],
    minimum_plddt: float,
    models: Models,
    *,
    drops: frozenset[str] = frozenset(),
) -> StructureDatabase:
    """Replace the content of a database by the retained chains of collections, and return the open database.

    Parameters
    ----------
    folder : Path
        Folder of the database.
    collections : sequence of Collection
        Collections to merge (see `write_merged`).
    is_retained : sequence of ndarray of bool
        True for the retained chains of each collection.
    minimum_plddt : float
        Minimum pLDDT with which the chains were read, from 0 to 100.
    models : Models
        Models that were read from the files.
    drops : frozenset of str
        Paths of files that are not recorded in the new database; none of their chains may be retained.
    """
    columns = f"columns-{secrets.token_hex(6)}"
    write_merged(folder / columns, collections, is_retained, drops=drops)
    # The new files are read again before any old file is removed.
    made = StructureDatabase(folder, columns, minimum_plddt, models, open_collection(folder / columns))
    with atomic_file(folder / DATABASE_FILE) as file:
        manifest = {"format": _FORMAT, "columns": columns, "least_confidence": float(minimum_plddt), "models": models}
        file.write(json.dumps(manifest).encode())
    with atomic_file(folder / SKIPPED) as file:
        file.write(b"file\tchain\treason\n")
        for row in made.skipped:
            file.write(("\t".join(" ".join(cell.split()) for cell in row) + "\n").encode("utf-8", "replace"))
    _sweep(folder, columns)
    return made


def _sweep(folder: Path, columns: str) -> None:
    """Remove old columns, and the sections of the completed build."""
    for path in folder.iterdir():
        is_old = _COLUMNS_FOLDER.fullmatch(path.name) is not None and path.name != columns
        is_part = path.name == PARTS
        if (is_old or is_part) and path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # on Windows, files that are being read cannot be removed; the next change removes them
                shutil.rmtree(path)

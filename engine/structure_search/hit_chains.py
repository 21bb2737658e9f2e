"""Chains of hits and queries of a finished search, read from the files of the run, and their superposition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, row_range
from proteoscope.engine.errors import InputError
from proteoscope.engine.files import storage_errors
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.database import StructureDatabase, open_database
from proteoscope.engine.structures.outputs import AlignedChains, PictureChain, chain_atoms, write_picture, write_superposition
from proteoscope.engine.structures.reading import Models, StructureFile, read_structure, stem
from proteoscope.engine.structures.scripts import ScriptedChain, Style
from proteoscope.engine.structures.sources import DATABASE_FILE
from proteoscope.engine.structures.superposition import Superpositions

if TYPE_CHECKING:
    import gemmi

__all__ = ["ChainInFile", "HitChains", "parse_cigar_pairs", "parse_transformation", "trace_geometry", "write_hit", "write_hits"]

_RUNS = re.compile(r"(\d+)([MID])")
_MAXIMUM_FILES = 8  # maximum number of files in memory: the file of the query and the files of the last viewed targets
_OF_SEARCH = ("score", "z_score", "e_value", "same_fold_probability", "phase1_ratio")  # columns that only the search fills
_REMEDY = "Restore the file, or search again"


@dataclass(frozen=True)
class ChainInFile:
    """Query or target chain of a finished search, read from a file or a database.

    Attributes
    ----------
    chains : Chains
        Columns of this chain only.
    path : Path
        Structure file of the chain; it may be missing if a database contains the chain.
    """

    chains: Chains
    path: Path


class HitChains:
    """Reader of the chains of a run's hits, which caches recently used files; only one thread may use it.

    Parameters
    ----------
    inputs : iterable of tuple
        Kind and path of each file of the run.
    minimum_plddt, models
        Parameters of the run (see `read_structure`).
    check : callable
        Function that is called with the path of each file before the file is read; raises InputError to reject the file.
    """

    def __init__(
        self,
        inputs: Iterable[tuple[str, Path]],
        minimum_plddt: float = 0.0,
        models: Models = "first",
        check: Callable[[Path], None] = lambda path: None,
    ) -> None:
        self._check = check
        self._paths: dict[str, list[Path]] = {"queries": [], "database": []}
        for kind, path in inputs:
            self._paths.setdefault(kind, []).append(path)
        self._models: Models = models
        self._least = {"queries": minimum_plddt, "database": 0.0}
        self._files: dict[tuple[str, Path], StructureFile] = {}
        self._database: StructureDatabase | None = None

    def query(self, name: str, sequence: str) -> ChainInFile:
        """Return the query chain with the given name and sequence.

        Raises
        ------
        InputError
            If no file of the run contains the chain any more.
        """
        if not self._paths["queries"]:  # the queries are the database
            return self.target(name, sequence, ChainRow(0))
        return self._find_in_files("queries", name, sequence)

    def target(self, name: str, sequence: str, index: ChainRow) -> ChainInFile:
        """Return the target chain with the given name and sequence.

        Parameters
        ----------
        name, sequence : str
            Name and sequence of the chain.
        index : ChainRow
            Row of the chain if the files are a structure database; this row is examined first.

        Raises
        ------
        InputError
            If no file of the run contains the chain any more.
        """
        paths = self._paths["database"]
        if len(paths) != 1 or paths[0].name != DATABASE_FILE:
            return self._find_in_files("database", name, sequence)
        folder = paths[0].parent
        if self._database is None:
            self._database = open_database(folder)
        chains = self._database.chains
        is_there = index < len(chains) and chains.names[index] == name and chains.sequence(index) == sequence
        every = zip(row_range(ChainRow, len(chains)), chains.names, strict=True)
        places = [index] if is_there else [i for i, chain_name in every if chain_name == name and chains.sequence(i) == sequence]
        if not places:
            # The database may have been replaced since it was opened.
            self._database = None
            raise InputError(folder, f"no longer holds {name} as it was searched", remedy="Search again")
        return ChainInFile(chains.taken(places[:1]), self._database.file_of(places[0]))

    def _find_in_files(self, kind: str, name: str, sequence: str) -> ChainInFile:
        paths = [path for path in self._paths[kind] if name == stem(path) or name.startswith(f"{stem(path)}:")]
        missing = ""
        for path in paths:
            try:
                file = self._read(kind, path)
            except InputError as error:
                missing = missing or error.reason
                continue
            for i, chain_name in zip(row_range(ChainRow, len(file.chains)), file.chains.names, strict=True):
                if chain_name == name and file.chains.sequence(i) == sequence:
                    return ChainInFile(file.chains.taken([i]), path)
        where = paths[0] if paths else Path(name)
        raise InputError(where, missing or f"no longer holds {name} as it was searched", remedy=_REMEDY)

    def _read(self, kind: str, path: Path) -> StructureFile:
        key = kind, path
        if key not in self._files:
            while len(self._files) >= _MAXIMUM_FILES:
                del self._files[next(iter(self._files))]
            self._check(path)
            self._files[key] = read_structure(path, minimum_plddt=self._least[kind], models=self._models)
        self._files[key] = self._files.pop(key)
        return self._files[key]


def parse_cigar_pairs(cigar: str) -> NDArray[np.int32]:
    """Return the aligned residues of query and target in a CIGAR, (n, 2).

    Examples
    --------
    >>> parse_cigar_pairs("1I2M2D1M").tolist()
    [[1, 0], [2, 1], [3, 4]]
    """
    runs = _RUNS.findall(cigar)
    kinds = np.repeat(np.array([kind for _, kind in runs], "U1"), np.array([int(n) for n, _ in runs], np.int64))
    query, target = np.cumsum(kinds != "D") - 1, np.cumsum(kinds != "I") - 1
    is_pair = kinds == "M"
    return np.stack([query[is_pair], target[is_pair]], axis=1).astype(np.int32)


def parse_transformation(hit: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rotation (3, 3) and translation (3,) in Å that superpose a target on its query, from the row of the hit."""
    translation = np.array([float(number) for number in hit["translation"].split(",")])
    return np.array(hit["rotation"], np.float64).reshape(3, 3), translation


def trace_geometry(position: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distance from each Cα to the next, and the angle between successive Cα vectors.

    These are the descriptors in equation 3 of Mrozek et al. (2014), before rounding.

    Parameters
    ----------
    position : ndarray, shape (n, 3)
        Coordinates of Cα in Å.

    Returns
    -------
    length : ndarray, shape (n,)
        Distances in Å; NaN for the last residue.
    angle : ndarray, shape (n,)
        Angles in degrees; NaN for the last two residues.
    """
    length, angle = np.full(len(position), np.nan), np.full(len(position), np.nan)
    vectors = np.diff(np.asarray(position, np.float64), axis=0)
    norms = np.linalg.norm(vectors, axis=1)
    length[: len(norms)] = norms
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = (vectors[:-1] * vectors[1:]).sum(axis=1) / (norms[:-1] * norms[1:])
    angle[: len(cosines)] = np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))
    return length, angle


def write_hit(folder: Path, query: ChainInFile, target: ChainInFile, hit: Mapping[str, Any]) -> tuple[list[Path], list[str]]:
    """Write a superposed hit: table, all-atom coordinates, alignment and scripts.

    Parameters
    ----------
    folder : Path
        Output folder, created if missing.
    query, target : ChainInFile
        Chains of query and target.
    hit : mapping
        Row of the hit in the table of hits.

    Returns
    -------
    paths : list of Path
        Written files.
    messages : list of str
        Remarks for the user, for example that only Cα atoms are written because a structure file is missing.

    Raises
    ------
    StorageError
        If a file cannot be written.
    """
    pairs = parse_cigar_pairs(str(hit["cigar"]))
    rotation, translation = parse_transformation(hit)
    result = Superpositions(
        rotation[None],
        translation[None],
        np.array([hit["tm_score_query"]], np.float64),
        np.array([hit["tm_score_target"]], np.float64),
        np.array([hit["rmsd"]], np.float64),
        np.array([len(pairs)], np.int64),
        pairs,
        np.array([0, len(pairs)], np.int64),
    )
    messages: list[str] = []
    query_atoms, target_atoms = (_atoms(chain, messages) for chain in (query, target))
    extra = {name: hit[name] for name in _OF_SEARCH if hit.get(name) is not None and hit[name] == hit[name]}
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    aligned = AlignedChains(query.chains, ChainRow(0), target.chains, ChainRow(0), result, 0)
    return write_superposition(folder, aligned, query_atoms, target_atoms, extra), messages


def write_hits(
    folder: Path,
    query: ChainInFile,
    hits: Sequence[tuple[ChainInFile, Mapping[str, Any]]],
    colours: Sequence[NDArray[np.uint8]],
    style: Style = "ribbon",
    background: tuple[int, int, int] = (255, 255, 255),
    shown: Sequence[NDArray[np.bool_] | None] | None = None,
) -> tuple[list[Path], list[str]]:
    """Write several hits superposed on their query, with scripts that reproduce the picture of the window.

    Parameters
    ----------
    folder : Path
        Output folder, created if missing.
    query : ChainInFile
        Chain of the query.
    hits : sequence of tuple
        Chain of each hit, and row of the hit in the table of hits.
    colours : sequence of ndarray of uint8, shape (residues, 3)
        Colours of the residues of the query and of each hit.
    style : Style
        Style of the picture.
    background : tuple of int
        Background colour.
    shown : sequence of ndarray of bool, shape (residues,) or None
        True for each shown residue of the query and of each hit; None for all residues.

    Returns
    -------
    paths : list of Path
        Written files, named after `query`, `hit_1`, ….
    messages : list of str
        Remarks for the user, as from `write_hit`.

    Raises
    ------
    StorageError
        If a file cannot be written.
    """
    messages: list[str] = []
    masks = list(shown) if shown is not None else [None] * (len(hits) + 1)
    written = [PictureChain(ScriptedChain("query", query.chains, colours[0], masks[0]), _atoms(query, messages))]
    for k, (target, row) in enumerate(hits, 1):
        scripted = ScriptedChain(f"hit_{k}", target.chains, colours[k], masks[k])
        written.append(PictureChain(scripted, _atoms(target, messages), *parse_transformation(row)))
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return write_picture(folder, written, style, background), messages


def _atoms(chain: ChainInFile, messages: list[str]) -> gemmi.Structure | None:
    """Return all atoms of a chain from its file; None if the file is missing or no longer contains the chain."""
    try:
        return chain_atoms(chain.path, chain.chains)
    except InputError as error:
        messages.append(f"{chain.path.name} {error.reason}: only Cα are written for it")
    return None

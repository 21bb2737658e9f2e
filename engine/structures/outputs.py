"""Output files of a superposition: coordinates, alignment, scripts for PyMOL and ChimeraX, and a table row.

Scripts use fixed names (``query``, ``target``) and residue numbers. Names from files are never used in commands, since they could contain
commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, row_range, segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.separated import UNQUOTED, write_separated
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.reading import Models, gemmi_structure, printable_names, read_structure
from proteoscope.engine.structures.scripts import Program, ScriptedChain, Style, chimerax_script, pymol_script, residue_ranges
from proteoscope.engine.structures.superposition import Superpositions

if TYPE_CHECKING:
    import gemmi

__all__ = [
    "ROW_COLUMNS",
    "SUPERPOSITION_FILES",
    "AlignedChains",
    "PictureChain",
    "chain_atoms",
    "cigar",
    "cigars",
    "identities",
    "identity",
    "read_atoms",
    "superposition_row",
    "write_picture",
    "write_superposition",
    "write_table",
]

SUPERPOSITION_FILES = (
    "superposition.tsv",
    "alignment.fasta",
    "superposition.pml",
    "superposition.cxc",
    "query.cif",
    "query.pdb",
    "target.cif",
    "target.pdb",
)
"""Names of the files of a superposition in its folder."""

ROW_COLUMNS = (
    "query",
    "target",
    "score",
    "z_score",
    "e_value",
    "same_fold_probability",
    "aligned_length",
    "identity",
    "rmsd",
    "tm_score_query",
    "tm_score_target",
    "query_coverage",
    "target_coverage",
    "phase1_ratio",
    "rotation",
    "translation",
    "cigar",
    "description",
)
_LINE = 60
_X = SYMBOLS.index("X")
_MAXIMUM_PDB_ATOMS = 99_999
_PDB_NUMBERS, _PDB_PLACES, _B_FACTORS = (-999, 1_223_055), (-999.999, 9999.999), (-99.0, 999.0)
"""Ranges of residue numbers, coordinates and B-factors that PDB columns can hold.

Residue numbers from 10,000 on are written in hybrid-36.
"""


@dataclass(frozen=True)
class AlignedChains:
    """Query chain and superposed target chain.

    Attributes
    ----------
    query, target : Chains
        Objects that contain the query and the target, and possibly other chains.
    query_number : ChainRow
        Index of the query in `query`.
    target_number : ChainRow
        Index of the target in `target`.
    superpositions : Superpositions
        Superpositions of several targets on the query.
    k : int
        Index of the superposition of the target.
    """

    query: Chains
    query_number: ChainRow
    target: Chains
    target_number: ChainRow
    superpositions: Superpositions
    k: int

    @property
    def pairs(self) -> NDArray[np.int32]:
        """Aligned residues of query and target, shape (n, 2), from 0."""
        return self.superpositions.pairs[self.superpositions.pair_offsets[self.k] : self.superpositions.pair_offsets[self.k + 1]]

    @property
    def sequences(self) -> tuple[str, str]:
        """Sequences of query and target."""
        return self.query.sequence(self.query_number), self.target.sequence(self.target_number)


def cigar(pairs: NDArray[np.integer], n_query: int, n_target: int) -> str:
    """Return the CIGAR of an alignment of two whole chains.

    M means aligned residues, I residues of the query only, D residues of the target only.

    Parameters
    ----------
    pairs : ndarray of int, shape (k, 2)
        Aligned residues of query and target, ascending.
    n_query, n_target : int
        Number of residues of both chains.

    Examples
    --------
    >>> cigar(np.array([[1, 0], [2, 1], [3, 3]]), 4, 5)
    '1I2M1D1M1D'
    """
    ends = np.array([[n_query, n_target]])
    every = np.concatenate([np.asarray(pairs, np.int64).reshape(-1, 2), ends])
    left_out = np.diff(every, axis=0, prepend=[[-1, -1]]) - 1
    # A segment of pairs begins after unaligned residues; the entry after the last pair ends the last segment.
    begins = np.flatnonzero(left_out.any(axis=1) | (np.arange(len(every)) == 0) | (np.arange(len(every)) == len(every) - 1))
    runs = np.diff(begins, append=len(every) - 1)
    parts = zip(left_out[begins].tolist(), runs.tolist(), strict=True)
    return "".join(f"{n}{kind}" for (alone, other), run in parts for n, kind in ((alone, "I"), (other, "D"), (run, "M")) if n)


def cigars(
    pairs: NDArray[np.integer], offsets: NDArray[np.int64], n_queries: NDArray[np.integer], n_targets: NDArray[np.integer]
) -> pa.Array:
    """Return the CIGARs of alignments of whole chains as a column of texts (see `cigar`).

    Parameters
    ----------
    pairs : ndarray of int, shape (k, 2)
        Aligned residues of all alignments.
    offsets : ndarray of int64, shape (n + 1,)
        Pairs of alignment i are ``offsets[i]:offsets[i + 1]``.
    n_queries, n_targets : ndarray of int, shape (n,)
        Number of residues of each query and target.

    Examples
    --------
    >>> cigars(np.array([[1, 0], [2, 1], [3, 3]]), np.array([0, 3, 3]), np.array([4, 4]), np.array([5, 1])).to_pylist()
    ['1I2M1D1M1D', '4I1D']
    """
    n, n_pairs = len(n_targets), np.diff(offsets)
    i, j = pairs[:, 0], pairs[:, 1]
    is_begin = np.ones(len(pairs), np.bool_)
    is_begin[1:] = (i[1:] != i[:-1] + 1) | (j[1:] != j[:-1] + 1)
    is_begin[offsets[:-1][n_pairs > 0]] = True
    begins = np.flatnonzero(is_begin)
    # Segments of pairs; the last segment of each alignment has no pairs and is at the ends of both chains.
    n_before = np.searchsorted(begins, offsets)
    last = n_before[1:] + np.arange(n)
    n_segments = len(begins) + n
    is_segment = np.ones(n_segments, np.bool_)
    is_segment[last] = False
    starts, stops = np.empty((2, n_segments), np.int64), np.zeros((2, n_segments), np.int64)
    runs = np.zeros(n_segments, np.int64)
    runs[is_segment] = np.diff(begins, append=len(pairs))
    for axis, (residues, lengths) in enumerate(((i, n_queries), (j, n_targets))):
        starts[axis, is_segment], starts[axis, last] = residues[begins], lengths
        stops[axis, 1:] = starts[axis, :-1] + runs[:-1]
        stops[axis, n_before[:-1] + np.arange(n)] = 0  # at the first segment of each alignment
    counts = np.stack([starts[0] - stops[0], starts[1] - stops[1], runs], axis=1)
    is_there = counts > 0
    codes = (3 * counts + np.arange(3))[is_there]
    # Few texts are distinct: create each of them once.
    is_code = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
    is_code[codes] = True
    texts = pa.array([f"{code // 3}{'IDM'[code % 3]}" for code in np.flatnonzero(is_code).tolist()], pa.string())
    ends = np.cumsum(is_there[:, 0].astype(np.int64) + is_there[:, 1] + is_there[:, 2])[last]
    parts = texts.take((np.cumsum(is_code) - 1)[codes])
    return pa.compute.binary_join(pa.LargeListArray.from_arrays(pa.array(np.concatenate(([0], ends))), parts), "")


def identities(
    queries: tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]],
    targets: tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]],
    pairs: NDArray[np.integer],
    n_pairs: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the fraction of identical pairs (see `identity`) of each of n alignments.

    Parameters
    ----------
    queries, targets : tuple
        Residue codes of chains, int8, their offsets (CSR), and the index of the chain of each alignment, (n,).
    pairs : ndarray of int, shape (k, 2)
        Aligned residues of all alignments.
    n_pairs : ndarray of int64, shape (n,)
        Number of pairs of each alignment.

    Returns
    -------
    ndarray of float64, shape (n,)
        Fractions, 0 to 1.
    """
    a, b = (
        residues[pairs[:, column] + np.repeat(offsets[chain], n_pairs)]
        for column, (residues, offsets, chain) in enumerate((queries, targets))
    )
    n_same = np.diff(np.searchsorted(np.flatnonzero((a == b) & (a != _X)), segment_offsets(n_pairs)))
    shares: NDArray[np.float64] = n_same / np.maximum(1, n_pairs)
    return shares


def identity(query: NDArray[np.int8], target: NDArray[np.int8], pairs: NDArray[np.integer]) -> float:
    """Return the fraction of aligned pairs with identical residues; X never counts as identical.

    Parameters
    ----------
    query, target : ndarray of int8
        Residue codes of both chains.
    pairs : ndarray of int, shape (k, 2)
        Aligned residues of query and target.
    """
    if not len(pairs):
        return 0.0
    a, b = query[pairs[:, 0]], target[pairs[:, 1]]
    return float(((a == b) & (a != _X)).mean())


def superposition_row(aligned: AlignedChains, extra: Mapping[str, object] | None = None) -> dict[str, str]:
    """Return a superposition as a row of `ROW_COLUMNS`.

    Parameters
    ----------
    aligned : AlignedChains
        Query and superposed target.
    extra : mapping of str to object, optional
        Values of columns that only a search provides, such as the score; otherwise these columns are empty.
    """
    query, target, result, k, pairs = aligned.query, aligned.target, aligned.superpositions, aligned.k, aligned.pairs
    i, j = aligned.query_number, aligned.target_number
    n_query, n_target = int(query.lengths[i]), int(target.lengths[j])
    row = {
        "query": query.names[i],
        "target": target.names[j],
        "aligned_length": str(len(pairs)),
        "identity": f"{identity(query.residue[query.rows(i)], target.residue[target.rows(j)], pairs):.4f}",
        "rmsd": f"{result.rmsd[k]:.3f}",
        "tm_score_query": f"{result.tm_score_query[k]:.4f}",
        "tm_score_target": f"{result.tm_score_target[k]:.4f}",
        "query_coverage": f"{len(pairs) / n_query:.4f}",
        "target_coverage": f"{len(pairs) / n_target:.4f}",
        "rotation": ",".join(f"{value:.9f}" for value in result.rotation[k].ravel()),
        "translation": ",".join(f"{value:.6f}" for value in result.translation[k]),
        "cigar": cigar(pairs, n_query, n_target),
        "description": target.descriptions[j],
    }
    row |= {name: str(value) for name, value in (extra or {}).items()}
    return {name: " ".join(row.get(name, "").split()) for name in ROW_COLUMNS}


def write_table(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write rows as tab-separated text with a header.

    Parameters
    ----------
    path : Path
        File to write.
    rows : sequence of mapping of str to str
        Value of each column in `ROW_COLUMNS`, for each row.
    """
    table = pa.table({name: [row[name].encode("utf-8", "replace").decode() for row in rows] for name in ROW_COLUMNS})
    write_separated(path, table, [Column(name) for name in ROW_COLUMNS], Progress(), UNQUOTED)


def read_atoms(path: Path, chain: str) -> gemmi.Structure:
    """Read all atoms of a chain as a structure with one chain.

    The chain is taken from the first model that contains a chain of this name.

    Parameters
    ----------
    path : Path
        Structure file.
    chain : str
        Name of the chain.

    Raises
    ------
    InputError
        If the file cannot be read or has no such chain.
    """
    structure = gemmi_structure(path)
    names = printable_names(chain.name for chain in structure[0])
    if chain not in names.values():
        structure = gemmi_structure(path, models="all")
        names = printable_names(chain.name for chain in structure[0])
    model = structure[0]
    for number in reversed(range(len(model))):
        if names[model[number].name] != chain:
            del model[number]
    if not len(model):
        raise InputError(path, f"has no chain '{chain}'", remedy="Give a chain that is in the file")
    structure.merge_chain_parts()
    model[0].name = "A"
    return structure


def chain_atoms(path: Path, chains: Chains) -> gemmi.Structure:
    """Read all atoms of a chain from its file, in which the chain is identified by its Cα coordinates.

    Parameters
    ----------
    path : Path
        Structure file.
    chains : Chains
        Object with exactly one chain.

    Raises
    ------
    InputError
        If the file no longer exists or no longer contains the chain.
    """
    positions = {tuple(position) for position in chains.position.tolist()}
    every: tuple[Models, ...] = ("first", "all")
    for models in every:
        file = read_structure(path, models=models)
        for i, name in zip(row_range(ChainRow, len(file.chains)), file.chain_names, strict=True):
            if positions <= {tuple(position) for position in file.chains.position[file.chains.rows(i)].tolist()}:
                return read_atoms(path, name)
    raise InputError(path, "has changed", remedy="Put the file back as it was, or search again")


def alpha_carbons(chains: Chains, number: ChainRow) -> gemmi.Structure:
    """Return the Cα atoms of a chain as a structure.

    Parameters
    ----------
    chains : Chains
        Columns that contain the chain.
    number : ChainRow
        Index of the chain.
    """
    import gemmi  # slow to import: only structures need it

    structure, model, chain = gemmi.Structure(), gemmi.Model(1), gemmi.Chain("A")
    rows = chains.rows(number)
    for row in range(rows.start, rows.stop):
        residue, atom = gemmi.Residue(), gemmi.Atom()
        residue.name = gemmi.expand_one_letter(SYMBOLS[chains.residue[row]], gemmi.ResidueKind.AA) or "UNK"
        residue.seqid = gemmi.SeqId(int(chains.author_number[row]), _insertion_code(int(chains.insertion[row])))
        residue.entity_type = gemmi.EntityType.Polymer
        atom.name, atom.element, atom.occ = "CA", gemmi.Element("C"), 1.0
        atom.b_iso = float(np.clip(np.nan_to_num(chains.confidence[row]), *_B_FACTORS))
        atom.pos = gemmi.Position(*map(float, chains.position[row]))
        residue.add_atom(atom)
        chain.add_residue(residue)
    model.add_chain(chain)
    structure.add_model(model)
    return structure


def _insertion_code(code: int) -> str:
    """Return the insertion code with the given character code, or a blank if this is not an ASCII alphanumeric character."""
    text = chr(code)
    return text if text.isascii() and text.isalnum() else " "


def write_superposition(
    folder: Path,
    aligned: AlignedChains,
    query_atoms: gemmi.Structure | None = None,
    target_atoms: gemmi.Structure | None = None,
    extra: Mapping[str, object] | None = None,
) -> list[Path]:
    """Write table, coordinates, alignment and scripts of a superposition to a folder; return their paths.

    Parameters
    ----------
    folder : Path
        Output folder.
    aligned : AlignedChains
        Query and target with their superposition.
    query_atoms, target_atoms : gemmi.Structure, optional
        Structures with one chain (see `read_atoms`); by default with Cα only. The atoms of the target are transformed in place.
    extra : mapping of str to object, optional
        Additional values of the table row.
    """
    query_atoms = query_atoms or alpha_carbons(aligned.query, aligned.query_number)
    target_atoms = target_atoms or alpha_carbons(aligned.target, aligned.target_number)
    _move(target_atoms, aligned.superpositions.rotation[aligned.k], aligned.superpositions.translation[aligned.k])
    written = []
    for name, structure in (("query", query_atoms), ("target", target_atoms)):
        written += _write_coordinates(folder, name, structure)
    table, fasta, *scripts = (folder / name for name in SUPERPOSITION_FILES[:4])
    write_table(table, [superposition_row(aligned, extra)])
    _write(fasta, _alignment(aligned))
    for path, text in zip(scripts, (_script(aligned, "PyMOL"), _script(aligned, "ChimeraX")), strict=True):
        _write(path, text)
    return [table, *written, fasta, *scripts]


@dataclass(frozen=True)
class PictureChain:
    """Chain in a picture that is written to files.

    Attributes
    ----------
    scripted : ScriptedChain
        Name, columns and colours.
    atoms : gemmi.Structure, optional
        Structure of this chain (see `chain_atoms`); None for Cα only.
    rotation, translation : ndarray of float64, shape (3, 3) and (3,), optional
        Transformation onto the query, x' = R x + t in Å; None for no transformation.
    """

    scripted: ScriptedChain
    atoms: gemmi.Structure | None = None
    rotation: NDArray[np.float64] | None = None
    translation: NDArray[np.float64] | None = None


def write_picture(
    folder: Path, chains: Sequence[PictureChain], style: Style = "ribbon", background: tuple[int, int, int] = (255, 255, 255)
) -> list[Path]:
    """Write the superposed chains of a picture to an existing folder, with scripts that reproduce the picture.

    Parameters
    ----------
    folder : Path
        Existing output folder.
    chains : sequence of PictureChain
        Chains.
    style : Style
        Representation of the chains.
    background : tuple of int
        Red, green and blue of the background, 0 to 255.

    Returns
    -------
    list of Path
        Paths: ``NAME.cif`` of each chain, ``NAME.pdb`` if PDB columns suffice, ``picture.pml`` for PyMOL and ``picture.cxc`` for ChimeraX.

    Raises
    ------
    ValueError
        If a name repeats, or contains a character that is neither ASCII alphanumeric nor ``_``.
    """
    names = [chain.scripted.name for chain in chains]
    if len(set(names)) < len(names) or not all(name.isascii() and name.replace("_", "a").isalnum() for name in names):
        raise ValueError("names of written chains must differ, and consist of ASCII a to z, A to Z and digits")
    written, alone = [], ChainRow(0)
    for chain in chains:
        structure = chain.atoms.clone() if chain.atoms is not None else alpha_carbons(chain.scripted.chains, alone)
        if chain.rotation is not None and chain.translation is not None:
            _move(structure, chain.rotation, chain.translation)
        written += _write_coordinates(folder, chain.scripted.name, structure)
    scripts = folder / "picture.pml", folder / "picture.cxc"
    for path, make in zip(scripts, (pymol_script, chimerax_script), strict=True):
        _write(path, make([chain.scripted for chain in chains], style, background))
    return [*written, *scripts]


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode("utf-8", "replace"))


def _move(structure: gemmi.Structure, rotation: NDArray[np.float64], translation: NDArray[np.float64]) -> None:
    import gemmi  # slow to import: only structures need it

    transform = gemmi.Transform()
    transform.mat.fromlist(rotation.tolist())
    transform.vec.fromlist(translation.tolist())
    structure[0].transform_pos_and_adp(transform)


def _write_coordinates(folder: Path, name: str, structure: gemmi.Structure) -> list[Path]:
    """Write mmCIF and, if the columns of PDB suffice, PDB; return the paths."""
    import gemmi  # slow to import: only structures need it

    bare = gemmi.Structure()
    bare.name = name
    bare.add_model(structure[0])
    # Names of subchains come from the file: replace them.
    for chain in bare[0]:
        for residue in chain:
            residue.subchain, residue.entity_id = "", ""
    bare.setup_entities()
    paths = [folder / f"{name}.cif"]
    block = bare.make_mmcif_block(
        gemmi.MmcifOutputGroups(False, atoms=True, group_pdb=True, entity=True, struct_asym=True, block_name=True)
    )
    _write(paths[0], block.as_string())
    if _fits_pdb(bare):
        paths.append(folder / f"{name}.pdb")
        _write(paths[1], bare.make_minimal_pdb())
    return paths


def _fits_pdb(structure: gemmi.Structure) -> bool:
    """Return True if atom numbers, coordinates and residue numbers fit into the columns of the PDB format."""
    if structure[0].count_atom_sites() > _MAXIMUM_PDB_ATOMS:
        return False
    numbers = [residue.seqid.num for chain in structure[0] for residue in chain if residue.seqid.num is not None]
    box = structure.calculate_box()
    positions = [*box.minimum.tolist(), *box.maximum.tolist()] if numbers else []
    return all(_PDB_NUMBERS[0] <= number <= _PDB_NUMBERS[1] for number in numbers) and all(
        _PDB_PLACES[0] <= position <= _PDB_PLACES[1] for position in positions
    )


def _alignment(aligned: AlignedChains) -> str:
    """Return both sequences of an alignment, with gaps, as FASTA."""
    query, target = aligned.sequences
    rows: tuple[list[str], list[str]] = ([], [])
    i = j = 0
    for p, q in [*aligned.pairs.tolist(), (len(query), len(target))]:
        rows[0].append(query[i:p] + "-" * (q - j))
        rows[1].append("-" * (p - i) + target[j:q])
        rows[0].append(query[p : p + 1])
        rows[1].append(target[q : q + 1])
        i, j = p + 1, q + 1
    names = aligned.query.names[aligned.query_number], aligned.target.names[aligned.target_number]
    texts = []
    for name, row in zip(names, rows, strict=True):
        text = "".join(row)
        lines = "\n".join(text[start : start + _LINE] for start in range(0, len(text), _LINE))
        texts.append(f">{' '.join(name.split())}\n{lines}\n")
    return "".join(texts)


def _residues(chains: Chains, number: ChainRow, rows: NDArray[np.integer], program: Program) -> str:
    """Return the author residue numbers of `rows` as ranges in the notation of a program; residues with insertion codes are omitted."""
    first = chains.rows(number).start
    shown = []
    for row in (rows + first).tolist():
        code = chr(int(chains.insertion[row])) if chains.insertion[row] else ""
        if not code:
            shown.append(int(chains.author_number[row]))
    return ("+" if program == "PyMOL" else ",").join(residue_ranges(shown, program))


_SCRIPTS: dict[Program, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "PyMOL": (
        (
            "# Open in PyMOL from this folder: query green, target blue, unaligned residues pale.",
            "load query.cif, query",
            "load target.cif, target",
            "hide everything",
            "show cartoon",
            "set cartoon_trace_atoms, 1",
            "color palegreen, query",
            "color lightblue, target",
        ),
        ("color forest, query and resi {}", "color marine, target and resi {}"),
        "orient",
    ),
    "ChimeraX": (
        (
            "# Open in ChimeraX: query green, target blue, unaligned residues pale.",
            "open query.cif",
            "open target.cif",
            "hide atoms",
            "show cartoons",
            "color #1 palegreen",
            "color #2 lightblue",
        ),
        ("color #1:{} forestgreen", "color #2:{} royalblue"),
        "view",
    ),
}
"""Commands that open and colour both chains, commands that colour the aligned residues of each chain, and commands that show everything."""


def _script(aligned: AlignedChains, program: Program) -> str:
    """Return a script for a program; for safety, it contains only fixed names and numbers, no names from files."""
    opening, colours, end = _SCRIPTS[program]
    query = _residues(aligned.query, aligned.query_number, aligned.pairs[:, 0], program)
    target = _residues(aligned.target, aligned.target_number, aligned.pairs[:, 1], program)
    coloured = [line.format(residues) for line, residues in zip(colours, (query, target), strict=True)] if query and target else []
    return "\n".join([*opening, *coloured, end, ""])

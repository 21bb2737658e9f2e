"""Reader of protein chains from PDB, mmCIF and BinaryCIF files, plain or gzipped; the format is detected from the content.

gemmi reads the atoms; this module selects residues, alternative locations and chain names:

* The first model is read, or all models on request. Chains are author chains (mmCIF's auth_asym_id).
* A residue has a Cα and is an amino acid by its name, or by N and C next to the Cα; ligands, sugars and waters are excluded.
* Of several alternative locations, and of several residues at one position, the one with the highest Cα occupancy is used.
* A modified residue gets the code of its parent residue (MSE is M) from gemmi's table or from the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.registry import format_names, list_suffixes
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.results.counts import counted
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structures.atom_site import clear_unreadable_numbers, complete_atom_site, split_chains, without_broken_rows
from proteoscope.engine.structures.binary_cif import read_binary_cif
from proteoscope.engine.structures.chain_copies import copy_name, models_note
from proteoscope.engine.structures.chains import FEWEST_RESIDUES, NO_CHAINS, Chains
from proteoscope.engine.structures.molecules import described, mmcif_molecules, pdb_molecules
from proteoscope.engine.structures.pdb_text import plain_pdb
from proteoscope.engine.structures.residue_names import residue_kind
from proteoscope.engine.unfolding import ATOMS, WORDS, Unfolding

if TYPE_CHECKING:
    import gemmi

__all__ = [
    "MAXIMUM_BYTES",
    "Models",
    "SkippedChain",
    "StructureFile",
    "gemmi_structure",
    "printable_names",
    "read_atom_columns",
    "read_structure",
    "stem",
    "structure_format",
]

MAXIMUM_BYTES = 256 << 20
"""Maximum decompressed size of a file; the mmCIF reader needs about ten times as much memory."""
_MAXIMUM_ATOMS = 1 << 24
_MINIMUM_PLACE, _MAXIMUM_PLACE = -99_999.0, 99_999.0
"""Range of valid coordinates in Å."""
_MAXIMUM_FLAT = 7  # maximum length of a name in gemmi's columns of atoms
_MAXIMUM_NAME, _MAXIMUM_DESCRIPTION = 64, 500
_ALPHA = int.from_bytes(b"CA", "little")
_MIXER = 0x5851F42D4C957F2D
"""Odd number that distributes chain names over 64 bits (Knuth, The Art of Computer Programming, 3.3.4)."""
_UNKNOWN, _POLYMER = 0, 1  # gemmi's types of entities
_BINARY_KEYS = b"dataBlocks", b"encoder", b"mmtfVersion"  # BinaryCIF and MMTF contain one of these near the beginning
_PDB_RECORD = re.compile(
    rb"(?m)^(?:ATOM  |HETATM|HEADER|TITLE |COMPND|REMARK|MODEL |CRYST1|EXPDTA|SEQRES|OBSLTE|SPLIT |CAVEAT|AUTHOR|SOURCE|DBREF|MODRES"
    rb"|HELIX |SHEET )"
)
_ASCII = bytes(range(128)) + b"?" * 128
_CIF_BLOCK = re.compile(rb"(?im)^[ \t]*data_")
_PREDICTED = re.compile(rb"(?i)ALPHAFOLD|ESMFOLD|COLABFOLD|OMEGAFOLD|ROSETTAFOLD|\nPARENT +N/A")
_PDB_HEADER = re.compile(rb"(?m)^(?:HEADER|EXPDTA|CRYST1|REMARK|SEQRES|DBREF)")
_CONVERT = f"Give {format_names('structures')}; gemmi and most viewers can write them"
_UNKNOWN_B_FACTORS = (
    "the file does not state whether its B-factors are pLDDT, so that no residue is left out because of a low pLDDT. If they are, use an "
    "mmCIF file with its quality values, or insert 'TITLE     ALPHAFOLD' as the first line"
)
_TAKEN = "Get the file with all its coordinates from the PDB or from AlphaFold DB"


@dataclass(frozen=True)
class SkippedChain:
    """Omitted chain.

    Attributes
    ----------
    chain : str
        Author name of the chain.
    reason : str
        Reason as a predicate, such as ``is DNA or RNA``.
    """

    chain: str
    reason: str


@dataclass(frozen=True)
class StructureFile:
    """Content of a structure file.

    Attributes
    ----------
    path : Path
        Path of the file.
    chains : Chains
        Protein chains; may be empty.
    chain_names : tuple of str
        Author names of the protein chains.
    skipped : tuple of SkippedChain
        Omitted chains, with reasons.
    messages : tuple of str
        Warnings about other omitted or reinterpreted content.
    """

    path: Path
    chains: Chains
    chain_names: tuple[str, ...]
    skipped: tuple[SkippedChain, ...]
    messages: tuple[str, ...] = ()

    def empty_error(self) -> InputError:
        """Return the error that explains why the file contains no protein chain."""
        reported = [f"{f'chain {chain.chain}' if chain.chain else 'the chain without a name'} {chain.reason}" for chain in self.skipped[:4]]
        more = [f"{len(self.skipped) - 4} chains more"] if len(self.skipped) > 4 else []
        reasons = f": {'; '.join(reported + more)}" if reported else ", only ligands, solvent or atoms of other kinds"
        return InputError(self.path, f"holds no protein chain of {FEWEST_RESIDUES} residues or more with Cα{reasons}", remedy=_TAKEN)


def stem(path: Path) -> str:
    """Return the name of a structure: the file name without suffixes of structure formats and of gzip."""
    name = path.name
    for _ in range(2):
        ending = Path(name).suffix
        if ending.lower() in (".gz", *list_suffixes("structures")):
            name = name[: -len(ending)]
    return printable_name(name) or "structure"


def printable_name(name: str) -> str:
    """Return a name, truncated if long, with ``_`` instead of blanks and control characters, which would break a table row."""
    return "".join(symbol if symbol.isprintable() and not symbol.isspace() else "_" for symbol in name[:_MAXIMUM_NAME])


def printable_names(names: Iterable[str]) -> dict[str, str]:
    """Return a dictionary with a printable name for each chain name; printable names that would be equal are numbered.

    Examples
    --------
    >>> printable_names(["a b", "a_b", "A"])
    {'a_b': 'a_b', 'A': 'A', 'a b': 'a_b_2'}
    """
    names = list(dict.fromkeys(names))
    result = {name: name for name in names if printable_name(name) == name}
    used, numbers = set(result), Counter[str]()
    for name in [name for name in names if name not in result]:
        shown = printable = printable_name(name)
        while printable in used:
            numbers[shown] += 1
            printable = f"{shown}_{numbers[shown] + 1}"
        used.add(printable)
        result[name] = printable
    return result


Models = Literal["first", "all"]
"""Models to read from a file: only the first, or all, with new names for the chains of further models."""


def read_structure(path: str | Path, *, minimum_plddt: float = 0.0, models: Models = "first") -> StructureFile:
    """Read the protein chains of a structure file.

    Parameters
    ----------
    path : str or Path
        Structure file.
    minimum_plddt : float
        Minimum pLDDT of residues of predicted structures, from 0 to 100; other residues are removed after secondary structure assignment.
    models : Models
        ``all`` treats all models as chains of one biological assembly; chain A of the second model becomes A_2.

    Returns
    -------
    StructureFile
        Protein chains; a file without protein chains is not an error (see `StructureFile.empty_error`).

    Raises
    ------
    InputError
        If the file is missing, damaged, in another format or without atoms. The message contains file, position, reason and remedy.
    """
    path = Path(path)
    structure, facts = _read(path, models)
    return _StructureReader(path, structure, facts, minimum_plddt).read()


def gemmi_structure(path: Path, models: Models = "first") -> gemmi.Structure:
    """Read a whole structure file with gemmi.

    Parameters
    ----------
    path : Path
        Structure file.
    models : Models
        Models to read (see `read_structure`).

    Raises
    ------
    InputError
        If `read_structure` would raise it.
    """
    return _read(path, models)[0]


def _read(path: Path, models: Models) -> tuple[gemmi.Structure, _Facts]:
    text = _content(path)
    kind = _recognised(path, text)
    try:
        if kind == "PDB":
            structure, facts = _read_pdb(text, models)
        elif kind == "mmCIF":
            structure, facts = _read_mmcif(path, text, models)
        else:
            structure, facts = _read_binary_cif(path, text, models)
    except (RuntimeError, ValueError, IndexError, UnicodeDecodeError) as error:
        raise _unreadable(path, kind, error) from None
    except MemoryError:
        raise InputError(path, "needs more memory than is available", remedy="Divide it into files of a few chains each") from None
    if not len(structure) or not sum(len(chain) for chain in structure[0]):
        raise InputError(path, "holds no coordinates of atoms", remedy=_TAKEN)
    return structure, facts


def read_atom_columns(structure: gemmi.Structure) -> Any:
    """Return gemmi's columns of the atoms of a structure with one model.

    gemmi rejects names of more than seven characters. If there are any, names are truncated in `structure`, and chain names are removed.
    """
    import gemmi  # slow to import: only structures need it

    try:
        return gemmi.FlatStructure(structure)
    except RuntimeError:
        for part in structure[0]:
            part.name = ""
            for residue in part:
                residue.name, residue.subchain = residue.name[:_MAXIMUM_FLAT], residue.subchain[:_MAXIMUM_FLAT]
                residue.entity_id = residue.entity_id[:_MAXIMUM_FLAT]
                for atom in residue:
                    atom.name = atom.name[:_MAXIMUM_FLAT]
        return gemmi.FlatStructure(structure)


def structure_format(path: Path) -> str:
    """Return the format of a structure file, detected from its beginning; '' if it does not look like a structure.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    with ByteSource(path) as source:
        head = source.peek(1 << 16)
    if any(key in head for key in _BINARY_KEYS):
        return "BinaryCIF"
    return "mmCIF" if _CIF_BLOCK.search(head) else "PDB" if _PDB_RECORD.search(head) else ""


def _content(path: Path) -> bytes:
    with ByteSource(path) as source:
        parts, n = [], 0
        while chunk := source.read(1 << 20):
            parts.append(chunk)
            n += len(chunk)
            if n > MAXIMUM_BYTES:
                limit = f"holds more than {MAXIMUM_BYTES >> 20} MB of text, the maximum for a structure"
                raise InputError(path, limit, remedy="Divide it into files of a few chains each")
        text = b"".join(parts)
        source.unfolding.check(ATOMS, text.count(b"\nATOM  ") + text.count(b"\nHETATM"))
        _check_words(source.unfolding, text)
    return text


def _check_words(unfolding: Unfolding, text: bytes) -> None:
    """Reject gzipped text with more words than its size permits, since gemmi creates an object for each word of mmCIF."""
    if unfolding.n_bytes == len(text):
        return
    is_blank = np.frombuffer(text, np.uint8) <= 32
    unfolding.check(WORDS, int(np.count_nonzero(is_blank[:-1] & ~is_blank[1:])))


def _recognised(path: Path, text: bytes) -> str:
    """Return the format of a text: ``PDB``, ``mmCIF`` or ``BinaryCIF``.

    Raises
    ------
    InputError
        If the text is in none of these formats.
    """
    head = text[: 1 << 16]
    if b"\0" in head or (head[:1] and head[0] >= 0x80 and not head.startswith(b"\xef\xbb\xbf")):
        if b"dataBlocks" in head or b"dataBlocks" in text[-(1 << 16) :]:
            return "BinaryCIF"
        if b"mmtfVersion" in head:
            raise InputError(path, "is MMTF, a format that the PDB no longer writes", remedy="Take the structure as mmCIF or BinaryCIF")
        if not _PDB_RECORD.search(head):
            what = "a zip archive" if head.startswith(b"PK") else "binary data in no known format"
            raise InputError(path, f"is {what}", place="byte 0", remedy=_CONVERT)
    if not head.strip():
        raise InputError(path, "the file holds only blanks", remedy="Copy or convert it again")
    if _PDB_RECORD.match(head):
        return "PDB"
    block, record = _CIF_BLOCK.search(head), _PDB_RECORD.search(head)
    if block is not None and (record is None or block.start() < record.start()):
        return "mmCIF"
    if record is not None:
        return "PDB"
    if _CIF_BLOCK.search(text):
        return "mmCIF"
    if head.lstrip().startswith(b"<"):
        raise InputError(path, "is XML, which is not read as a structure", remedy=_CONVERT)
    raise InputError(path, "is not a structure in a known format", place="line 1", remedy=_CONVERT)


def _unreadable(path: Path, kind: str, error: Exception) -> InputError:
    reported = shortened(str(error).replace("string:", "line ", 1), 200)
    line = re.search(r"(?:line |string:)(\d+)", str(error))
    return InputError(
        path,
        f"is not a valid {kind} file ({reported})",
        place=f"line {line[1]}" if line else "",
        remedy="Copy or download it again, or convert it",
    )


@dataclass(frozen=True)
class _Facts:
    """Metadata of a file.

    Attributes
    ----------
    title : str
        Title of the entry.
    descriptions : dict of str to str
        Descriptions of molecules by entity, each with organism and gene if known.
    is_predicted : bool or None
        True if B-factors are pLDDT values; None if the file does not state it.
    quality : dict of (str, int) to float
        pLDDT by mmCIF chain (label_asym_id) and residue (label_seq_id).
    notes : tuple of str
        Messages about omissions and deviations.
    sources : dict of str to str
        Organism and gene by the author name of the chain, for PDB files, which have no entities.
    """

    title: str
    descriptions: dict[str, str]
    is_predicted: bool | None
    quality: dict[tuple[str, int], float]
    notes: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)

    def description(self, entity: str, chain: str) -> str:
        """Return the description of a chain."""
        return self.descriptions.get(entity) or described(self.title, self.sources.get(chain, ""))


def _read_pdb(text: bytes, models: Models) -> tuple[gemmi.Structure, _Facts]:
    import gemmi  # slow to import: only structures need it

    # Columns are bytes: replace characters of several bytes.
    plain = plain_pdb(text if text.isascii() else text.translate(_ASCII), all_models=models == "all")
    structure = gemmi.read_pdb_string(plain.text)
    for chain in (model_chain for model in structure for model_chain in model):
        chain.name = plain.chain_names.get(chain.name, chain.name)
    notes = [*plain.notes, *_merge_models(structure, models)]
    title = _tidy(structure.info["_struct.title"]) if "_struct.title" in structure.info else ""
    atoms = re.search(rb"(?m)^(?:ATOM|HETATM)", text)
    head = text[: atoms.start()] if atoms else text[: 1 << 16]
    is_predicted: bool | None = bool(_PREDICTED.search(head) or _PREDICTED.search(text[-500:]))
    if not is_predicted and (b"THEORETICAL MODEL" in head or not _PDB_HEADER.search(head)):
        is_predicted = None
    sources = {chain: _tidy(source) for chain, source in pdb_molecules(head).items()}
    return structure, _Facts(title, {}, is_predicted, {}, tuple(notes), sources)


def _read_mmcif(path: Path, text: bytes, models: Models) -> tuple[gemmi.Structure, _Facts]:
    import gemmi  # slow to import: only structures need it

    if not text.isascii():
        text = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").encode()
    try:
        return _read_block(path, gemmi.cif.read_string(text), models, [])
    except ValueError:
        repaired = without_broken_rows(text)
        if repaired is None:
            raise
    return _read_block(path, gemmi.cif.read_string(repaired[0]), models, [repaired[1]])


def _read_binary_cif(path: Path, data: bytes, models: Models) -> tuple[gemmi.Structure, _Facts]:
    document, notes = read_binary_cif(path, data, all_models=models == "all")
    return _read_block(path, document, models, notes)


def _read_block(path: Path, document: gemmi.cif.Document, models: Models, notes: list[str]) -> tuple[gemmi.Structure, _Facts]:
    """Return the structure and the metadata in the first block with atoms; messages for the user are added to `notes`."""
    import gemmi  # slow to import: only structures need it

    blocks = [block for block in document if block.find_mmcif_category("_atom_site.")]
    if not blocks:
        raise InputError(path, "holds no coordinates of atoms (the category _atom_site)", remedy=_TAKEN)
    block = blocks[0]
    if missing := complete_atom_site(block):
        raise InputError(
            path,
            f"holds no coordinates of atoms that can be read: it lacks the column _atom_site.{missing[0]}",
            remedy="Write the file again with this column",
        )
    if len(blocks) > 1:
        notes.append(f"only the first of {len(blocks):,} blocks with atoms is read. Write each block to a separate file")
    try:
        structure = gemmi.make_structure_from_block(block)
    except ValueError:
        notes += clear_unreadable_numbers(block)
        structure = gemmi.make_structure_from_block(block)
    if _has_repeated_alpha(structure) and (copies := split_chains(block)):
        notes += copies
        structure = gemmi.make_structure_from_block(block)
    notes += _merge_models(structure, models)
    string = gemmi.cif.as_string
    title = next((_tidy(string(value)) for value in block.find_values("_struct.title")), "")
    descriptions = {
        string(row[0]): _tidy(string(row[1])) for row in block.find("_entity.", ["id", "pdbx_description"]) if row[1] not in ("?", ".")
    }
    for entity, source in mmcif_molecules(block).items():
        descriptions[entity] = _tidy(described(descriptions.get(entity, title), source))
    metrics = {row[0]: string(row[1]).lower() for row in block.find("_ma_qa_metric.", ["id", "mode"]) if string(row[1]).lower() == "local"}
    quality: dict[tuple[str, int], float] = {}
    for row in block.find("_ma_qa_metric_local.", ["label_asym_id", "label_seq_id", "metric_id", "metric_value"]):
        if row[2] in metrics and row[1].lstrip("-").isdecimal() and len(row[1]) < 10:
            value = gemmi.cif.as_number(row[3])
            if 0.0 <= value <= 100.0:
                quality.setdefault((string(row[0]), int(row[1])), value)
    methods = " ".join(string(value) for value in block.find_values("_exptl.method")).upper()
    words = " ".join(string(value) for tag in ("_struct.title", "_software.name", "_entry.id") for value in block.find_values(tag))
    is_predicted: bool | None = bool(
        metrics or block.find_values("_ma_model_list.model_name") or _PREDICTED.search(words.encode("utf-8", "replace"))
    )
    if not is_predicted and (not methods or "THEORETICAL" in methods or "PREDICT" in methods):
        is_predicted = None
    return structure, _Facts(title, descriptions, is_predicted, quality, tuple(notes))


def _has_repeated_alpha(structure: gemmi.Structure) -> bool:
    """Return True if molecules of a model may have the same chain name: a residue has its Cα twice, or this cannot be determined."""
    import gemmi  # slow to import: only structures need it

    try:
        atoms: Any = gemmi.FlatStructure(structure)
    except RuntimeError:
        return True
    rows = np.flatnonzero(_as_numbers(atoms.atom_names) == _ALPHA)
    # Hash keys: equal keys by chance only cause an unnecessary exact comparison.
    key = _as_numbers(atoms.chain_ids[rows]) * _MIXER + (atoms.model_num[rows].astype(np.int64) << 48)
    key += atoms.resnums[rows].astype(np.int64) << 16
    key += atoms.icodes[rows].astype(np.int64) << 8
    key += atoms.altlocs[rows]
    key.sort()
    return bool((key[1:] == key[:-1]).any())


def _merge_models(structure: gemmi.Structure, models: Models) -> list[str]:
    """Reduce a structure to one model, with the chains of the first model or of all models; return messages about omitted models."""
    if len(structure) < 2:
        return []
    used = {chain.name for chain in structure[0]}
    if models == "all":
        for model in list(structure)[1:]:
            for chain in model:
                copy = chain.clone()
                copy.name = copy_name(chain.name, used) if chain.name in used else chain.name
                used.add(copy.name)
                structure[0].add_chain(copy)
    note = models_note(len(structure), sum(model.count_atom_sites() for model in list(structure)[1:]))
    while len(structure) > 1:
        del structure[len(structure) - 1]
    return [] if models == "all" else [note]


def _tidy(text: str) -> str:
    """Return a text on one line without control characters, truncated if long."""
    words = " ".join("".join(symbol if symbol.isprintable() else " " for symbol in text[: 4 * _MAXIMUM_DESCRIPTION]).split())
    return words.encode("utf-8", "replace").decode()[:_MAXIMUM_DESCRIPTION]


class _StructureReader:
    """Converter from the structure that gemmi read to columns."""

    def __init__(self, path: Path, structure: gemmi.Structure, facts: _Facts, minimum_plddt: float) -> None:
        self._path, self._facts, self._minimum_confidence = path, facts, minimum_plddt
        self._structure = structure
        self._messages = list(facts.notes)
        self._parents = {
            mod_residue.res_id.name: mod_residue.parent_comp_id
            for mod_residue in structure.mod_residues
            if mod_residue.parent_comp_id not in ("", mod_residue.res_id.name)
        }

    def read(self) -> StructureFile:
        """Return the chains of the structure."""
        names: dict[str, int] = {}
        chain_of_part, n_atoms, label_number = [], [], []
        for part in self._structure[0]:
            number = names.setdefault(part.name, len(names))
            for chain_part in part:
                chain_of_part.append(number)
                n_atoms.append(len(chain_part))
                label_number.append(chain_part.label_seq)
        atoms = read_atom_columns(self._structure)
        offsets = segment_offsets(np.array(n_atoms, np.int64))
        if not len(n_atoms) or len(atoms.pos) != offsets[-1] or offsets[-1] > _MAXIMUM_ATOMS:
            raise InputError(self._path, "holds no coordinates of atoms, or too many", remedy=_TAKEN)
        backbone, chosen, is_calcium = kernels.cpu.backbone.gather_backbone(
            offsets,
            _as_numbers(atoms.atom_names),
            np.ascontiguousarray(atoms.altlocs),
            np.ascontiguousarray(atoms.occ),
            np.ascontiguousarray(atoms.elements),
            np.ascontiguousarray(atoms.pos),
            _MINIMUM_PLACE,
            _MAXIMUM_PLACE,
        )
        first = np.minimum(offsets[:-1], max(0, int(offsets[-1]) - 1))
        residue, is_amino_acid, is_nucleotide = self._kinds(atoms.residue_names, first)
        entity_type = atoms.entity_type[first]
        is_polymer = (entity_type == _UNKNOWN) | (entity_type == _POLYMER)
        has_ends = np.isfinite(backbone[:, 0, 0]) & np.isfinite(backbone[:, 2, 0])
        # A lone Cα of an unknown residue counts if it is in a polymer and is not a calcium ion, which is named CA too.
        is_residue = (chosen >= 0) & is_polymer & ~is_nucleotide
        is_alone = np.diff(offsets) == 1
        is_residue &= is_amino_acid | (has_ends & ~is_calcium) | ((entity_type == _POLYMER) & ~is_calcium & is_alone)
        n_bare = int((is_amino_acid & is_polymer & (chosen < 0)).sum())
        if n_bare:
            self._messages.append(f"{counted(n_bare, 'amino acid')} without a Cα that can be read left out")
        chain = np.array(chain_of_part, np.int64)
        author_number, insertion = atoms.resnums[first].astype(np.int32), atoms.icodes[first].astype(np.uint8)
        is_residue &= self._is_first_of_place(chain, author_number, insertion, is_residue, atoms.occ[chosen])
        columns = _Residues(
            chain,
            backbone,
            residue,
            author_number,
            np.where(insertion == ord(" "), 0, insertion).astype(np.uint8),
            np.array([value if value is not None else -1 for value in label_number], np.int64),
            self._confidence(atoms, offsets, chosen, is_residue, label_number),
            atoms.entity_ids[first],
            np.zeros(1, np.int64),
        )
        return self._chains(list(names), columns, is_residue, is_polymer, is_amino_acid, is_nucleotide)

    def _kinds(
        self, residue_names: NDArray[np.generic], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.int8], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return, for each residue, its code, whether it is an amino acid, and whether it is a nucleotide.

        `residue_names` contains one name per atom, and `first` is the index of the first atom of each residue.
        """
        numbers, inverse = np.unique(_as_numbers(residue_names)[first], return_inverse=True)
        kinds = [_decode_kind(number) for number in numbers.tolist()]
        if self._parents:
            for k, number in enumerate(numbers.tolist()):
                parent = self._parents.get(_decode_name(number), "")
                if parent and not kinds[k][1]:
                    kinds[k] = residue_kind(parent)
        table = np.array(kinds, np.int8)[inverse.reshape(-1)]
        return table[:, 0], table[:, 1] != 0, table[:, 2] != 0

    @staticmethod
    def _is_first_of_place(
        chain: NDArray[np.integer],
        number: NDArray[np.integer],
        insertion: NDArray[np.integer],
        is_residue: NDArray[np.bool_],
        occupancy: NDArray[np.float32],
    ) -> NDArray[np.bool_]:
        """Return a mask of the residues to use: of several residues at the same position, the one with the highest occupancy.

        With equal occupancies, the first residue is used.
        """
        retained = np.ones(len(chain), np.bool_)
        rows = np.flatnonzero(is_residue)
        if len(rows) < 2:
            return retained
        before, here = rows[:-1], rows[1:]
        is_same = (chain[here] == chain[before]) & (number[here] == number[before]) & (insertion[here] == insertion[before])
        best = -1
        for k in np.flatnonzero(is_same).tolist():
            earlier, later = int(before[k]), int(here[k])
            preferred = best if best >= 0 and not retained[earlier] else earlier
            if occupancy[later] > occupancy[preferred]:
                retained[preferred], best = False, later
            else:
                retained[later], best = False, preferred
        return retained

    def _confidence(
        self, atoms: Any, offsets: NDArray[np.int64], chosen: NDArray[np.int64], is_residue: NDArray[np.bool_], label_number: list[Any]
    ) -> NDArray[np.float32]:
        """Return the pLDDT of each residue, 0 to 100; NaN for experimental structures."""
        n = len(chosen)
        none = np.full(n, np.nan, np.float32)
        facts, rows = self._facts, np.flatnonzero(is_residue)
        if facts.is_predicted is False or not len(rows):
            return none
        if facts.quality:
            asym = [
                bytes(row).rstrip(b"\0").decode("utf-8", "replace")
                for row in np.ascontiguousarray(atoms.subchains)[chosen[rows]].view("S8")[:, 0]
            ]
            result = none.copy()
            for row, name in zip(rows.tolist(), asym, strict=True):
                number = label_number[row]
                result[row] = facts.quality.get((name, number if number is not None else -1), np.nan)
            if np.isfinite(result[rows]).any():
                return _as_percent(result, rows)
        b = atoms.b_iso
        confidence = none.copy()
        confidence[rows] = b[chosen[rows]]
        values = confidence[rows]
        if not (np.isfinite(values).all() and values.min() >= 0.0 and values.max() <= 100.0 and values.max() > 0.0):
            return none
        if facts.is_predicted is None:
            # The file has no method: in predictions, all atoms of a residue have the same value, and residues have different values.
            sizes = np.diff(offsets)[rows]
            least, most = np.minimum.reduceat(b, offsets[:-1]), np.maximum.reduceat(b, offsets[:-1])
            if sizes.min() < 4 or (least[rows] != most[rows]).any() or least[rows].min() == most[rows].max():
                if self._minimum_confidence > 0.0:
                    self._messages.append(_UNKNOWN_B_FACTORS)
                return none
        return _as_percent(confidence, rows)

    def _chains(
        self,
        names: list[str],
        columns: _Residues,
        is_residue: NDArray[np.bool_],
        is_polymer: NDArray[np.bool_],
        is_amino_acid: NDArray[np.bool_],
        is_nucleotide: NDArray[np.bool_],
    ) -> StructureFile:
        n_residues = np.bincount(columns.chain[is_residue], minlength=len(names))
        n_nucleotides = np.bincount(columns.chain[is_polymer & is_nucleotide], minlength=len(names))
        n_amino_acids = np.bincount(columns.chain[is_polymer & is_amino_acid], minlength=len(names))
        wanted, skipped = [], []
        printable = printable_names(names)
        shown_names = [printable[name] for name in names]
        for i, shown in enumerate(shown_names):
            if n_residues[i] >= FEWEST_RESIDUES:
                wanted.append(i)
            elif n_residues[i]:
                n = int(n_residues[i])
                skipped.append(SkippedChain(shown, f"has {counted(n, 'residue')} with Cα, and {FEWEST_RESIDUES} are the minimum"))
            elif n_nucleotides[i]:
                skipped.append(SkippedChain(shown, "is DNA or RNA"))
            elif n_amino_acids[i]:
                skipped.append(SkippedChain(shown, "has no Cα"))
        taken = columns.of_chains(is_residue, wanted)
        secondary = _secondary_structure(taken)
        is_sure = ~(taken.confidence < self._minimum_confidence)
        title, several = stem(self._path), len(wanted) > 1
        parts, retained_names = [], []
        for k, i in enumerate(wanted):
            here = np.arange(taken.offsets[k], taken.offsets[k + 1])
            here = here[is_sure[here]]
            chain_name = shown_names[i]
            if len(here) < FEWEST_RESIDUES:
                limit = (
                    f"has {len(here)} residues with a pLDDT of {self._minimum_confidence:g} or more, and {FEWEST_RESIDUES} are the minimum"
                )
                skipped.append(SkippedChain(chain_name, limit))
                continue
            entity = bytes(taken.entity[here[0]]).rstrip(b"\0").decode("utf-8", "replace")
            parts.append((f"{title}:{chain_name or '_'}" if several else title, self._facts.description(entity, names[i]), here))
            retained_names.append(chain_name)
        rows = np.concatenate([here for _, _, here in parts]) if parts else np.empty(0, np.int64)
        if not parts:
            return StructureFile(self._path, NO_CHAINS, (), tuple(skipped), tuple(self._messages))
        chains = Chains(
            names=tuple(name for name, _, _ in parts),
            descriptions=tuple(text for _, text, _ in parts),
            offsets=segment_offsets(np.array([len(here) for _, _, here in parts])),
            position=taken.backbone[rows, 1].astype(np.float32),
            residue=taken.residue[rows],
            secondary=secondary[rows],
            confidence=taken.confidence[rows],
            author_number=taken.number[rows],
            insertion=taken.insertion[rows],
            label_number=taken.label_number[rows].astype(np.int32),
        )
        return StructureFile(self._path, chains, tuple(retained_names), tuple(skipped), tuple(self._messages))


@dataclass(frozen=True)
class _Residues:
    """Columns of residues: all residues of a file, or, from `of_chains`, the residues of protein chains, with `offsets` of the chains."""

    chain: NDArray[np.int64]
    backbone: NDArray[np.float64]
    residue: NDArray[np.int8]
    number: NDArray[np.int32]
    insertion: NDArray[np.uint8]
    label_number: NDArray[np.int64]
    confidence: NDArray[np.float32]
    entity: NDArray[np.int8]
    offsets: NDArray[np.int64]

    def of_chains(self, is_residue: NDArray[np.bool_], wanted: list[int]) -> _Residues:
        """Return the protein residues of the chains `wanted`, in this order."""
        position = np.full(int(self.chain.max()) + 1, -1, np.int64)
        position[wanted] = np.arange(len(wanted))
        rows = np.flatnonzero(is_residue & (position[self.chain] >= 0))
        rows = rows[np.argsort(position[self.chain[rows]], kind="stable")]
        lengths = np.bincount(position[self.chain[rows]], minlength=len(wanted))
        offsets = segment_offsets(lengths)
        label = self.label_number[rows].copy()
        for k in range(len(wanted)):
            here = label[offsets[k] : offsets[k + 1]]
            # Count residues if the file has no sequence numbers.
            if (here < 1).any() or (here >= 1 << 31).any():
                here[:] = np.arange(1, len(here) + 1)
        return _Residues(
            self.chain[rows],
            self.backbone[rows],
            self.residue[rows],
            self.number[rows],
            self.insertion[rows],
            label,
            self.confidence[rows],
            self.entity[rows],
            offsets,
        )


def _secondary_structure(residues: _Residues) -> NDArray[np.uint8]:
    """Return the secondary structure of each residue, from hydrogen bonds within and between chains.

    Cα distances are used instead for chains in which fewer than half of the residues have all backbone atoms.
    """
    is_whole: NDArray[np.bool_] = np.asarray(np.isfinite(residues.backbone[:, :, 0]).all(axis=1))
    states = np.zeros(len(is_whole), np.uint8)
    if is_whole.any():
        states = kernels.cpu.secondary_structure.states_by_hydrogen_bonds(
            residues.backbone, residues.residue == SYMBOLS.index("P"), residues.offsets
        )
    for k in range(len(residues.offsets) - 1):
        rows = slice(int(residues.offsets[k]), int(residues.offsets[k + 1]))
        if 2 * is_whole[rows].sum() < len(is_whole[rows]):
            states[rows] = kernels.cpu.secondary_structure.states_by_distances(np.ascontiguousarray(residues.backbone[rows, 1], np.float32))
    return states


def _as_numbers(digits: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return names of 8 characters, (n, 8), encoded as one integer each."""
    return np.ascontiguousarray(digits).view(np.int64).reshape(-1)


def _decode_name(number: int) -> str:
    """Return the residue name that an integer encodes (see `_as_numbers`)."""
    return (number & (1 << 64) - 1).to_bytes(8, "little").rstrip(b"\0").decode("latin-1")


@lru_cache(maxsize=4096)
def _decode_kind(number: int) -> tuple[int, bool, bool]:
    """Return the result of `residue_kind` for a residue name that is given as integer (see `_as_numbers`)."""
    return residue_kind(_decode_name(number))


def _as_percent(confidence: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Multiply pLDDT values by 100 if the file has them from 0 to 1."""
    values = confidence[rows]
    finite = values[np.isfinite(values)]
    return confidence * np.float32(100.0) if len(finite) and finite.max() <= 1.0 else confidence

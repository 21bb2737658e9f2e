"""Protein index: accessions, descriptions and sequences as memory-mapped columns.

As in Li's thesis, chapter 3, proteins are stored as accessions, descriptions and sequences for sequential and random access. The targets
come first, then the contaminants, which are targets too, and then all decoys, so that one index separates targets and decoys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ProteinRow, Texts, take_segments
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.formats.features import Features, open_features, write_features
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.peptides.database_decoys import are_tagged, make_decoys, targets_of_decoys
from proteoscope.engine.peptides.known_modifications import KnownModifications, open_known_modifications
from proteoscope.engine.peptides.variants import VariantEntries
from proteoscope.engine.project.index_store import checked_offsets, checked_texts, open_column, read_numbers, require

__all__ = ["ProteinIndex", "build_protein_index", "open_protein_index", "with_stops"]

_BOUNDS_COLUMNS = ("kept_first", "kept_stop")
_REPLACED_COLUMNS = ("replaced_protein", "replaced_first", "replaced_stop")
_CHUNK_RESIDUES = 1 << 22
_STOP = ord("*")
_COMMON_PREFIXES = ("rev_", "decoy_", "xxx_", "reverse_")  # of accessions of decoys, in lower case
_COLUMNS = {
    "residues": np.uint8,
    "offsets": np.int64,
    "accession_bytes": np.uint8,
    "accession_offsets": np.int64,
    "description_bytes": np.uint8,
    "description_offsets": np.int64,
}


@dataclass(frozen=True)
class ProteinIndex:
    """Index of proteins and their decoys.

    Attributes
    ----------
    proteins : Proteins
        All sequences in ASCII capitals A-Z; ``*`` inside a sequence is stored as X, which no peptide may contain.
    n_targets : int
        Number of targets; the proteins after them are decoys.
    decoy_prefix : str
        Prefix of the accessions of decoys. For decoys of the database, it may be the prefix of a part of the accession.
    n_contaminants : int
        Number of contaminants, which are the last targets.
    features : Features, optional
        Features of the targets; None if the databases have none.
    peptide_bounds : ndarray of uint32, shape (proteins, 2), optional
        For databases with variants, see `proteoscope.engine.peptides.variants.VariantEntries`.
    replaced : ndarray of uint32, shape (proteins, 3), optional
        For databases with variants: index of the protein, and range of its residues (from 0, end exclusive) that each entry replaces. An
        entry that is not a variant replaces all residues of the entry itself.
    known_modifications : KnownModifications, optional
        Annotated modifications that are searched.
    decoy_suffix : str
        Suffix of the accessions, or of parts of accessions, of a database's own decoys; '' if they have the prefix.
    n_left_out : int
        Number of proteins that were left out as decoys.
    stops : ndarray of int64, shape (s,)
        Positions of stops (``*``) in `proteins.residues`; the segments between them are digested as separate proteins.
    """

    proteins: Proteins
    n_targets: int
    decoy_prefix: str
    n_contaminants: int
    features: Features | None = None
    peptide_bounds: NDArray[np.uint32] | None = None
    replaced: NDArray[np.uint32] | None = None
    known_modifications: KnownModifications | None = None
    decoy_suffix: str = ""
    n_left_out: int = 0
    stops: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.proteins)

    @property
    def first_decoy_residue(self) -> int:
        """Position of the first decoy in `proteins.residues`."""
        return int(self.proteins.offsets[self.n_targets])

    def protein_of(self, position: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the index of the protein at each of the given residue positions."""
        return np.searchsorted(self.proteins.offsets, position, side="right") - 1

    def are_variants(self) -> NDArray[np.bool_]:
        """Return True for each entry that is a variant of a protein, shape (proteins,)."""
        numbers = np.arange(len(self))
        return np.zeros(len(self), np.bool_) if self.replaced is None else self.replaced[:, 0] != numbers

    def first_in_whole(self) -> NDArray[np.int64]:
        """Return the index of the first residue of each entry in its whole protein, shape (proteins,); 0 except for variants."""
        return np.zeros(len(self), np.int64) if self.replaced is None else self.replaced[:, 1].astype(np.int64)

    def whole_lengths(self) -> NDArray[np.int64]:
        """Return the number of residues of each protein, shape (proteins,); for a variant, of the whole changed protein."""
        offsets = np.asarray(self.proteins.offsets)
        lengths = offsets[1:] - offsets[:-1]
        if self.replaced is None:
            return lengths
        protein, first, stop = self.replaced.T.astype(np.int64)
        whole: NDArray[np.int64] = lengths + lengths[protein] - (stop - first)
        return whole

    def whole_sequence(self, protein: ProteinRow) -> str:
        """Return the residues of a protein; for a variant, the residues of the whole changed protein."""
        sequence = self.proteins.sequence(protein)
        if self.replaced is None:
            return sequence
        changed, first, stop = self.replaced[protein].tolist()
        whole = self.proteins.sequence(changed)
        return whole[:first] + sequence + whole[stop:]

    def partners(self) -> NDArray[np.int64]:
        """Return the index of the decoy of each target, and of the target of each decoy, found by accession; -1 if there is none.

        Returns
        -------
        ndarray of int64, shape (proteins,)
            Indices of proteins.
        """
        partner = np.full(len(self), -1, np.int64)
        accessions = _Texts.from_proteins(self.proteins, "accession")
        targets = accessions.take(np.arange(self.n_targets)).prefixed(self.decoy_prefix.encode())
        decoys = accessions.take(np.arange(self.n_targets, len(self)))
        if targets == decoys:  # generated decoys, in the order of the targets
            partner[: self.n_targets] = np.arange(self.n_targets, len(self))
            partner[self.n_targets :] = np.arange(self.n_targets)
            return partner
        names = Texts(*accessions.take(np.arange(self.n_targets)).columns).arrow()
        partner[self.n_targets :] = targets_of_decoys(names, Texts(*decoys.columns), self.decoy_prefix, self.decoy_suffix)
        paired = self.n_targets + np.flatnonzero(partner[self.n_targets :] >= 0)
        partner[partner[paired]] = paired
        return partner


def with_stops(offsets: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return offsets that also separate each stop from its neighbouring residues.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start index of each protein, and the number of residues.
    stops : ndarray of int64, shape (k,)
        Indices of the stops among all residues.

    Examples
    --------
    >>> with_stops(np.array([0, 5, 8]), np.array([2])).tolist()
    [0, 2, 3, 5, 8]
    """
    return np.unique(np.concatenate((offsets, stops, stops + 1))) if len(stops) else offsets


def build_protein_index(
    folder: Path,
    proteins: Proteins,
    *,
    database: str,
    decoys: str,
    decoy_prefix: str,
    cleaves: NDArray[np.bool_],
    contaminants: Proteins | None = None,
    variants: VariantEntries | None = None,
    decoy_suffix: str = "",
    n_left_out: int = 0,
) -> ProteinIndex:
    """Write the index of `proteins` into `folder` and open it.

    Parameters
    ----------
    folder : Path
        Output folder.
    proteins : Proteins
        Proteins of the database.
    database : str
        Name of the database in messages.
    decoys : str
        Method, from `proteoscope.engine.peptides.database_decoys.DECOY_METHODS`; ``existing`` uses the proteins that match `decoy_pattern`
        with `decoy_prefix` or `decoy_suffix`.
    decoy_prefix : str
        Prefix of the accessions of decoys.
    cleaves : ndarray of bool, shape (26, 26)
        True for bonds that the enzyme cuts, by the residues before and after the bond; pseudo-reversal and shuffling keep the residues
        before them in place.
    contaminants : Proteins, optional
        Proteins of contaminant databases.
    variants : VariantEntries, optional
        Variants among `proteins`; required if there are any.
    decoy_suffix : str
        Suffix of the accessions of existing decoys; '' if they have the prefix.
    n_left_out : int
        Number of decoys that were removed from `proteins` and `contaminants`.

    Returns
    -------
    ProteinIndex
        Memory-mapped index.

    Raises
    ------
    InputError
        If there are no proteins, if all are decoys, if existing decoys are requested and there are none, or if accessions have the prefix
        of generated decoys.
    """
    if len(proteins) == 0:
        raise InputError(database, "the database holds no protein", remedy="Choose a FASTA file with protein sequences")
    residues, offsets = np.asarray(proteins.residues), np.asarray(proteins.offsets)
    accessions, descriptions = _Texts.from_proteins(proteins, "accession"), _Texts.from_proteins(proteins, "description")
    features = proteins.features
    peptide_bounds = None if variants is None else variants.peptide_bounds
    replaced = None if variants is None else variants.replaced
    if decoys == "existing":
        has_prefix = are_tagged(Texts(*accessions.columns), decoy_prefix, decoy_suffix)
        tag = f"ends with the decoy suffix '{decoy_suffix}'" if decoy_suffix else f"begins with the decoy prefix '{decoy_prefix}'"
        place = f"decoy suffix '{decoy_suffix}'" if decoy_suffix else f"decoy prefix '{decoy_prefix}'"
    else:
        has_prefix, place = accessions.starts_with(decoy_prefix.encode()), f"decoy prefix '{decoy_prefix}'"
    if not has_prefix.any() and (common := accessions.prefix_of_all(_COMMON_PREFIXES)):
        raise InputError(
            database,
            f"every accession begins with '{common}', like those of decoys: the database seems to contain only decoys",
            remedy="Give a database with targets too"
            + ("" if decoys == "none" else "; if its decoys begin like this, set decoy_prefix and decoys=existing"),
        )
    n_contaminants = 0
    if decoys == "existing" and variants is not None and variants.n_variants:
        raise ParameterError("known_variants: decoys in the database have no variants; generate decoys (decoys=reverse)")
    if decoys == "existing":
        if not has_prefix.any():
            raise InputError(
                database,
                f"no accession {tag}, so that error rates cannot be estimated",
                remedy="Set decoy_prefix (or decoy_suffix) to the prefix (or suffix) of this database's decoys, or generate decoys "
                "(decoys=reverse)",
            )
        if has_prefix.all():
            raise InputError(database, "every protein is a decoy", place=place, remedy="Give a database with targets too")
        order = np.concatenate((np.flatnonzero(~has_prefix), np.flatnonzero(has_prefix)))
        residues, offsets = take_segments(residues, offsets, order)
        accessions, descriptions = accessions.take(order), descriptions.take(order)
        features = None if features is None else features.take(order[: int((~has_prefix).sum())])
        n_targets = int((~has_prefix).sum())
        if contaminants is not None:
            raise ParameterError(
                "contaminants: contaminants cannot be added to a database with its own decoys; add them and their decoys to the file"
            )
    else:
        if has_prefix.all():
            raise InputError(database, "every protein is a decoy", place=place, remedy="Give a database with targets too")
        if has_prefix.any():
            count = int(has_prefix.sum())
            raise InputError(
                database,
                f"{count} accessions begin with '{decoy_prefix}', so that the database already has decoys",
                remedy=(
                    "Leave them out with decoys_in_database=leave-out"
                    if decoys == "none"
                    else f"Use them with decoys=existing decoy_prefix={decoy_prefix}, or leave them out with decoys_in_database=leave-out"
                ),
            )
        if contaminants is not None:
            residues = np.concatenate((residues, contaminants.residues))
            offsets = np.concatenate((offsets, contaminants.offsets[1:] + offsets[-1]))
            accessions = accessions + _Texts.from_proteins(contaminants, "accession").prefixed(b"CONT_")
            descriptions = descriptions + _Texts.from_proteins(contaminants, "description")
            n_contaminants = len(contaminants)
            features = _joined_features(proteins, contaminants)
            if peptide_bounds is not None:
                peptide_bounds = np.concatenate((peptide_bounds, _whole(contaminants)))
            if replaced is not None:
                numbers = np.arange(len(replaced), len(replaced) + n_contaminants)
                replaced = np.concatenate((replaced, np.column_stack((numbers, _whole(contaminants)))))
        n_targets = len(offsets) - 1
        if decoys != "none":
            # Proteins are reversed with their stops; with other methods, each part between stops has its decoy at the same positions.
            stops = np.flatnonzero(residues == _STOP) if decoys != "reverse" else np.empty(0, np.int64)
            target_residues = residues if decoys == "reverse" else _in_alphabet(residues)
            decoy_residues, _ = make_decoys(target_residues, with_stops(offsets, stops), decoys, cleaves)
            decoy_residues[stops] = _STOP
            residues = np.concatenate((residues, decoy_residues))
            offsets = np.concatenate((offsets, offsets[1:] + offsets[-1]))
            accessions = accessions + accessions.prefixed(decoy_prefix.encode())
            descriptions = descriptions + descriptions
            if variants is not None and peptide_bounds is not None:
                # Only reversal of whole proteins moves the changed residues.
                decoy_bounds = variants.reversed_peptide_bounds if decoys == "reverse" else variants.peptide_bounds
                peptide_bounds = np.concatenate((peptide_bounds, decoy_bounds, peptide_bounds[len(decoy_bounds) :]))
            if replaced is not None:
                replaced = np.concatenate(
                    (replaced, _replaced_in_decoys(replaced, offsets[: n_targets + 1], is_reversed=decoys == "reverse"))
                )
    if len(residues) > np.iinfo(np.uint32).max:
        raise InputError(database, f"{len(residues):,} residues with decoys are more than 4,294,967,295", remedy="Split the database")
    # Annotations refer to positions in whole proteins.
    stops = np.flatnonzero(residues == _STOP) if features is None and variants is None else np.empty(0, np.int64)
    np.save(folder / "protein_stops.npy", stops)
    residues = _in_alphabet(residues)
    columns = (residues, offsets, accessions.characters, accessions.offsets, descriptions.characters, descriptions.offsets)
    for name, column in zip(_COLUMNS, columns, strict=True):
        np.save(folder / f"protein_{name}.npy", np.asarray(column))
    description = {
        "n_targets": n_targets,
        "decoy_prefix": decoy_prefix,
        "decoy_suffix": decoy_suffix if decoys == "existing" else "",
        "n_contaminants": n_contaminants,
        "n_left_out": n_left_out,
    }
    if features is not None:
        write_features(folder, features)
    if peptide_bounds is not None:
        for name, column in zip(_BOUNDS_COLUMNS, peptide_bounds.T, strict=True):
            np.save(folder / f"protein_{name}.npy", column.astype(np.uint32))
    if replaced is not None:
        for name, column in zip(_REPLACED_COLUMNS, replaced.T, strict=True):
            np.save(folder / f"protein_{name}.npy", column.astype(np.uint32))
    (folder / "proteins.json").write_text(json.dumps(description), encoding="utf-8")
    return open_protein_index(folder)


def open_protein_index(folder: Path) -> ProteinIndex:
    """Open the memory-mapped index in `folder`, and check every column.

    Raises
    ------
    InvalidIndexError
        If the index is damaged.
    """
    description = read_numbers(folder / "proteins.json", ("n_targets", "n_contaminants", "n_left_out"), ("decoy_prefix", "decoy_suffix"))
    columns = {name: open_column(folder / f"protein_{name}.npy", kind) for name, kind in _COLUMNS.items()}
    proteins = Proteins(**columns, features=None)
    stops = open_column(folder / "protein_stops.npy", np.int64)
    # Compare values, since differences could overflow.
    is_valid = len(stops) == 0 or (stops[0] >= 0 and stops[-1] < len(proteins.residues) and (stops[1:] > stops[:-1]).all())
    require(bool(is_valid), f"{folder}: a stop lies outside of the proteins")
    n = len(proteins.offsets) - 1
    lengths = {len(proteins.offsets), len(proteins.accession_offsets), len(proteins.description_offsets)}
    require(n > 0 and len(lengths) == 1, f"{folder}: columns of the proteins have different lengths, or none")
    checked_offsets(proteins.offsets, len(proteins.residues), f"{folder}: proteins")
    checked_texts(proteins.accession_bytes, proteins.accession_offsets, f"{folder}: accessions")
    checked_texts(proteins.description_bytes, proteins.description_offsets, f"{folder}: descriptions")
    require(len(proteins.residues) <= np.iinfo(np.uint32).max and _are_capitals(proteins.residues), f"{folder}: a residue is not A to Z")
    n_targets, n_contaminants = description["n_targets"], description["n_contaminants"]
    require(n_contaminants <= n_targets <= n, f"{folder}: more targets are declared than there are proteins")
    features = open_features(folder, proteins.offsets[: n_targets + 1])
    peptide_bounds = replaced = None
    if (folder / f"protein_{_BOUNDS_COLUMNS[0]}.npy").exists():
        peptide_bounds = np.stack([open_column(folder / f"protein_{name}.npy", np.uint32) for name in _BOUNDS_COLUMNS], axis=1)
        first, stop = peptide_bounds.T
        is_valid = len(peptide_bounds) == n and (first <= stop).all() and (stop <= np.diff(proteins.offsets)).all()
        require(bool(is_valid), f"{folder}: bounds of peptides lie outside their protein")
        replaced = np.stack([open_column(folder / f"protein_{name}.npy", np.uint32) for name in _REPLACED_COLUMNS], axis=1)
        is_valid = len(replaced) == n and (replaced[:, 0] < n).all() and (replaced[:, 1] <= replaced[:, 2]).all()
        is_valid = is_valid and (replaced[:, 2] <= np.diff(proteins.offsets)[replaced[:, 0]]).all()
        require(bool(is_valid), f"{folder}: a variant replaces residues outside its protein")
    known_modifications = open_known_modifications(folder, proteins.residues)
    return ProteinIndex(
        proteins,
        n_targets,
        description["decoy_prefix"],
        n_contaminants,
        features,
        peptide_bounds,
        replaced,
        known_modifications,
        description["decoy_suffix"],
        description["n_left_out"],
        stops,
    )


def _whole(proteins: Proteins) -> NDArray[np.int64]:
    """Return the range of all residues of each protein, shape (n, 2)."""
    return np.stack((np.zeros(len(proteins), np.int64), np.diff(proteins.offsets)), axis=1)


def _replaced_in_decoys(replaced: NDArray[np.int64], offsets: NDArray[np.int64], *, is_reversed: bool) -> NDArray[np.int64]:
    """Return `VariantEntries.replaced` for the decoys of n targets; the decoys have the indices from n.

    Parameters
    ----------
    replaced : ndarray of int64, shape (n, 3)
        Proteins and residues that the targets replace.
    offsets : ndarray of int64, shape (n + 1,)
        Offsets of the residues of the targets.
    is_reversed : bool
        True if the decoys are reversed whole proteins.
    """
    protein, first, stop = replaced.T
    if is_reversed:
        length = np.diff(offsets)[protein]
        first, stop = length - stop, length - first
    return np.column_stack((protein + len(replaced), first, stop))


def _joined_features(*parts: Proteins) -> Features | None:
    if all(part.features is None for part in parts):
        return None
    return Features.joined([Features.none(len(part)) if part.features is None else part.features for part in parts])


def _are_capitals(residues: NDArray[np.uint8]) -> bool:
    """Return True if all residues are capitals A-Z."""
    with ThreadPoolExecutor(available_threads()) as pool:
        chunks = [residues[first : first + _CHUNK_RESIDUES] for first in range(0, len(residues), _CHUNK_RESIDUES)]
        return all(pool.map(lambda chunk: chunk.min() >= ord("A") and chunk.max() <= ord("Z"), chunks))


def _in_alphabet(residues: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.where(residues == _STOP, np.uint8(ord("X")), residues)


@dataclass(frozen=True, eq=False)
class _Texts:
    """Texts as UTF-8 bytes with offsets."""

    characters: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def from_proteins(cls, proteins: Proteins, name: str) -> _Texts:
        return cls(np.asarray(getattr(proteins, f"{name}_bytes")), np.asarray(getattr(proteins, f"{name}_offsets")))

    @property
    def columns(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Characters and offsets."""
        return self.characters, self.offsets

    def __add__(self, other: _Texts) -> _Texts:
        return _Texts(
            np.concatenate((self.characters, other.characters)), np.concatenate((self.offsets, other.offsets[1:] + self.offsets[-1]))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Texts) and all(
            np.array_equal(left, right) for left, right in ((self.offsets, other.offsets), (self.characters, other.characters))
        )

    def take(self, order: NDArray[np.int64]) -> _Texts:
        return _Texts(*take_segments(self.characters, self.offsets, order))

    def starts_with(self, prefix: bytes) -> NDArray[np.bool_]:
        """Return True for each text that begins with `prefix`; if the prefix is empty, return False for all texts."""
        if not prefix:
            return np.zeros(len(self.offsets) - 1, bool)
        starts, result = self.offsets[:-1], np.diff(self.offsets) >= len(prefix)
        for i, character in enumerate(prefix):
            positions = np.minimum(starts + i, max(0, len(self.characters) - 1))
            result &= self.characters[positions] == character if len(self.characters) else False
        return result

    def prefix_of_all(self, prefixes: Sequence[str]) -> str:
        """Return the first of the lower-case `prefixes` with which all texts begin, ignoring case; '' if there is none."""
        lowered = _Texts(
            np.where((self.characters >= ord("A")) & (self.characters <= ord("Z")), self.characters | 0x20, self.characters), self.offsets
        )
        common = next((prefix for prefix in prefixes if lowered.starts_with(prefix.encode()).all()), "")
        return bytes(self.characters[self.offsets[0] : self.offsets[0] + len(common)]).decode()

    def prefixed(self, prefix: bytes) -> _Texts:
        """Return the texts with `prefix` prepended to each."""
        n = len(self.offsets) - 1
        offsets = self.offsets + len(prefix) * np.arange(n + 1)
        characters = np.empty(offsets[-1], np.uint8)
        head = offsets[:-1, None] + np.arange(len(prefix))
        characters[head.ravel()] = np.tile(np.frombuffer(prefix, np.uint8), n)
        is_original = np.ones(offsets[-1], bool)
        is_original[head.ravel()] = False
        characters[is_original] = self.characters
        return _Texts(characters, offsets)

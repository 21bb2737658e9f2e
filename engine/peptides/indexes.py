"""The indexes that spectra are searched against: proteins and their peptides, kept in the user's cache, or made for one run alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from engine.errors import InputError, StorageError
from engine.execution.resources import Resources
from engine.files import storage_errors
from engine.formats import read_proteins
from engine.peptides.digestion import Digestion, DigestionSettings
from engine.peptides.peptide_index import PeptideIndex, build_peptide_index, open_peptide_index
from engine.peptides.protein_index import ProteinIndex, build_protein_index, open_protein_index
from engine.project.cache import index_store

__all__ = ["Databases", "IndexSettings", "Indexes", "build_indexes", "open_indexes"]

_FORMAT = 5
_MB = 1_000_000
_NAMES = (
    *("enzyme", "specificity", "missed_cleavages", "minimum_length", "maximum_length"),
    *("minimum_mass", "maximum_mass", "clip_methionine"),
)  # of the parameters that decide the peptides


class IndexSettings(DigestionSettings, Protocol):
    """What decides the indexes, by the names that every search's parameters have for it."""

    specificity: Literal["specific", "semi-specific", "non-specific"]
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    decoy_prefix: str
    index_memory: int


class Databases(NamedTuple):
    """The FASTA files of a search, with their SHA-256 by kind (``database``, ``contaminants``)."""

    proteins: Sequence[Path]
    contaminants: Sequence[Path]
    digests: dict[str, list[str]]


class Indexes(NamedTuple):
    """What spectra are searched against."""

    proteins: ProteinIndex
    peptides: PeptideIndex


def open_indexes(databases: Databases, spare: Path, parameters: IndexSettings, resources: Resources) -> Indexes:
    """The protein and the peptide index, opened where the user's cache has them, else built; in `spare` where they cannot be kept."""
    digestion, progress = Digestion.of(parameters, parameters.specificity), resources.progress
    parts: dict[str, Any] = {
        "format": _FORMAT,
        "inputs": databases.digests,
        "decoys": parameters.decoys,
        "decoy_prefix": parameters.decoy_prefix,
        "fixed_modifications": list(parameters.fixed_modifications),
        **{name: getattr(parameters, name) for name in _NAMES},
    }

    def build(building: Path) -> None:
        _build(databases, building, parameters, digestion, resources)

    progress.stage("Opening the peptide index")
    files = (*databases.proteins, *databases.contaminants)
    title = ", ".join([*(path.name for path in files), parameters.enzyme, f"decoys {parameters.decoys}"])
    try:
        return index_store("peptides").get(parts, title, build, lambda folder: _load(folder, digestion), progress)
    except StorageError as error:
        progress.message(f"The index could not be kept for other searches, and is made for this run alone: {error}", "warning")
    return build_indexes(databases, spare, parameters, resources)


def build_indexes(databases: Databases, folder: Path, parameters: IndexSettings, resources: Resources) -> Indexes:
    """The protein and the peptide index, made in `folder` for this once."""
    digestion = Digestion.of(parameters, parameters.specificity)
    with storage_errors(folder, only_disk=True):
        _build(databases, folder, parameters, digestion, resources)
    return _load(folder, digestion)


def _build(databases: Databases, folder: Path, parameters: IndexSettings, digestion: Digestion, resources: Resources) -> None:
    progress = resources.progress
    proteins = build_protein_index(
        folder,
        read_proteins(databases.proteins, progress=progress),
        database=str(databases.proteins[0]),
        decoys=parameters.decoys,
        decoy_prefix=parameters.decoy_prefix,
        cleaves=digestion.enzyme.cleavage_table(),
        contaminants=read_proteins(databases.contaminants, progress=progress) if databases.contaminants else None,
    )
    peptides = build_peptide_index(folder, proteins, digestion, resources, memory_bytes=parameters.index_memory * _MB)
    if len(peptides) == 0:
        raise InputError(
            databases.proteins[0],
            "no protein gives a peptide within the limits of length and mass",
            remedy="Check the enzyme and the limits",
        )


def _load(folder: Path, digestion: Digestion) -> Indexes:
    proteins = open_protein_index(folder)
    return Indexes(proteins, open_peptide_index(folder, proteins, digestion))

"""The indexes that spectra are searched against: proteins and their peptides, kept in the user's cache, or made for one run alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.files import storage_errors
from proteoscope.engine.formats import Proteins, read_proteins
from proteoscope.engine.formats.features import Features
from proteoscope.engine.formats.translation import Translation
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.peptides.decoys import DECOY_SEED
from proteoscope.engine.peptides.digestion import Digestion, DigestionSettings
from proteoscope.engine.peptides.known_forms import SearchedForms
from proteoscope.engine.peptides.known_modifications import known_modifications_of
from proteoscope.engine.peptides.own_decoys import OwnDecoys, are_tagged, find_own_decoys
from proteoscope.engine.peptides.peptide_index import PeptideIndex, build_peptide_index, open_peptide_index
from proteoscope.engine.peptides.protein_index import ProteinIndex, build_protein_index, open_protein_index
from proteoscope.engine.peptides.variants import with_variants
from proteoscope.engine.project.cache import index_store
from proteoscope.engine.results.counts import counted

__all__ = ["Databases", "IndexSettings", "Indexes", "build_indexes", "key_parts", "open_indexes"]

_FORMAT = 8
_FEWEST_DECOYS = 0.2  # for each target: of fewer, what few decoys say is multiplied beyond what anybody should believe
_COMPLETE = 0.03  # a complete list differs by so much from one decoy for each target, as decoys that are made here do
_VARIANT_RULES = 3
"""Of `proteoscope.engine.peptides.variants`, for keys: another number where other entries come of the same database."""
_MB = 1_000_000


class IndexSettings(DigestionSettings, Protocol):
    """Settings that decide the indexes, by the names that every search's parameters have for it."""

    specificity: Literal["specific", "semi-specific", "non-specific"]
    index_memory: int

    @property
    def decoys(self) -> Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]:
        """How decoys are made."""

    @property
    def decoy_prefix(self) -> str:
        """What their accessions begin with."""

    @property
    def decoy_suffix(self) -> str:
        """What accessions of the database's own decoys end with; empty: they have the prefix."""

    @property
    def decoys_in_database(self) -> Literal["refuse", "leave-out"]:
        """What to do with a database that holds decoys that are not used as such."""


class Databases(NamedTuple):
    """The files of proteins of a search, with their SHA-256 by kind (``database``, ``contaminants``)."""

    proteins: Sequence[Path]
    contaminants: Sequence[Path]
    digests: dict[str, list[str]]
    translation: Translation | None = None
    """How nucleotides become the proteins of the database, where it is of nucleotides."""
    has_variants: bool = False
    """Whether the variants that the database knows are searched too."""
    forms: SearchedForms | None = None
    """With what else the modifications that the database knows are searched at their residues; None where they are not."""

    def read(self, progress: Progress) -> Proteins:
        """The proteins of the database."""
        if self.translation is not None:
            return self.translation.read(self.proteins, progress)
        return read_proteins(self.proteins, progress=progress)


class Indexes(NamedTuple):
    """Proteins and peptides that spectra are searched against."""

    proteins: ProteinIndex
    peptides: PeptideIndex


def open_indexes(databases: Databases, spare: Path, parameters: IndexSettings, resources: Resources) -> Indexes:
    """The protein and the peptide index, opened where the user's cache has them, else built; in `spare` where they cannot be kept."""
    digestion, progress = Digestion.of(parameters, parameters.specificity), resources.progress
    parts = key_parts(databases, parameters, digestion)

    def build(building: Path) -> None:
        _build(databases, building, parameters, digestion, resources)

    def load(folder: Path) -> Indexes:
        return _load(folder, digestion)

    progress.stage("Opening the peptide index")
    files = (*databases.proteins, *databases.contaminants)
    title = ", ".join([*(path.name for path in files), parameters.enzyme, f"decoys {parameters.decoys}"])
    try:
        indexes = index_store("peptides").get(parts, title, build, load, progress)
        _report_proteins(indexes.proteins, progress)
    except StorageError as error:
        progress.message(f"The index could not be kept for other searches, and is made for this run alone: {error}", "warning")
        indexes = build_indexes(databases, spare, parameters, resources)
    if databases.forms is not None:
        known = indexes.proteins.known
        told = "The database knows no modification of a residue that has a mass" if known is None else known.message()
        progress.message(told, "warning" if known is None else "info")
    return _with_counted_decoys(indexes, databases, progress) if parameters.decoys == "existing" else indexes


def _with_counted_decoys(indexes: Indexes, databases: Databases, progress: Progress) -> Indexes:
    """The indexes with the ratio of the decoys that the database brings to its targets, by their peptides.

    Raises
    ------
    InputError : there are too few to estimate an error rate from.
    """
    is_decoy = np.asarray(indexes.peptides.position) >= indexes.proteins.first_decoy_residue
    n_decoys = int(np.count_nonzero(is_decoy))
    n_targets = len(is_decoy) - n_decoys
    ratio = n_decoys / max(1, n_targets)
    found = f"{n_decoys:,} decoy peptides stand beside {n_targets:,} of targets"
    if ratio < _FEWEST_DECOYS:
        raise InputError(
            databases.proteins[0],
            f"{found}, too few for error rates (a fifth is needed)",
            remedy="Give a database with a decoy of each protein, or one without decoys and let them be made (decoys=reverse)",
        )
    if abs(ratio - 1.0) <= _COMPLETE:
        return indexes
    certainty = ", and less certain than with a decoy of each protein" if ratio < 0.5 else ""
    progress.message(f"Error rates are scaled by the decoys that the database brings{certainty}: {found}.", "warning")
    return Indexes(indexes.proteins, replace(indexes.peptides, decoy_ratio=ratio))


def key_parts(databases: Databases, parameters: IndexSettings, digestion: Digestion) -> dict[str, Any]:
    """Content of the key of indexes: digests of the files, the rules of decoys, and those of the digestion themselves."""
    variants = {"known_variants": _VARIANT_RULES} if databases.has_variants else {}
    translated = {} if databases.translation is None else {"translation": databases.translation.content()}
    known = {} if databases.forms is None else {"known_modifications": databases.forms.content()}
    return {
        "format": _FORMAT,
        "inputs": databases.digests,
        "decoys": parameters.decoys,
        "decoy_prefix": parameters.decoy_prefix,
        "decoy_suffix": parameters.decoy_suffix,
        "decoys_in_database": parameters.decoys_in_database,
        "decoy_seed": DECOY_SEED,
        "digestion": digestion.content(),
        **translated,
        **variants,
        **known,
    }


def build_indexes(databases: Databases, folder: Path, parameters: IndexSettings, resources: Resources) -> Indexes:
    """The protein and the peptide index, made in `folder` for this once."""
    digestion = Digestion.of(parameters, parameters.specificity)
    with storage_errors(folder, only_disk=True):
        _build(databases, folder, parameters, digestion, resources)
    indexes = _load(folder, digestion)
    _report_proteins(indexes.proteins, resources.progress)
    return indexes


def _build(databases: Databases, folder: Path, parameters: IndexSettings, digestion: Digestion, resources: Resources) -> None:
    progress = resources.progress
    read, variants = databases.read(progress), None
    contaminants = read_proteins(databases.contaminants, progress=progress) if databases.contaminants else None
    read, contaminants, n_left_out = _without_own_decoys(read, contaminants, databases, parameters)
    if databases.has_variants:
        variants = with_variants(read, maximum_length=digestion.maximum_length, cleaves=digestion.enzyme.cleavage_table())
        read = variants.proteins
        others = f"; {variants.n_others:,} others change no residues that are told" if variants.n_others else ""
        searched = counted(variants.n_variants, "known variant is", "known variants are")
        progress.message(f"{searched} searched besides{others}", "info" if variants.n_variants else "warning")
    proteins = build_protein_index(
        folder,
        read,
        database=str(databases.proteins[0]),
        decoys=parameters.decoys,
        decoy_prefix=parameters.decoy_prefix,
        cleaves=digestion.enzyme.cleavage_table(),
        contaminants=contaminants,
        variants=variants,
        decoy_suffix=parameters.decoy_suffix,
        n_left_out=n_left_out,
    )
    if databases.forms is not None:
        proteins = _with_known_modifications(folder, proteins, parameters, digestion)
    memory_bytes = parameters.index_memory * _MB
    peptides = build_peptide_index(folder, proteins, digestion, resources, memory_bytes=memory_bytes, forms=databases.forms)
    if len(peptides) == 0:
        raise InputError(
            databases.proteins[0],
            "no protein gives a peptide within the limits of length and mass",
            remedy="Check the enzyme and the limits",
        )


def _without_own_decoys(
    proteins: Proteins, contaminants: Proteins | None, databases: Databases, parameters: IndexSettings
) -> tuple[Proteins, Proteins | None, int]:
    """Return proteins and contaminants without the decoys among them that are not used as decoys, and the number of these.

    Raises
    ------
    InputError : there are such decoys, and they are to be refused.
    """
    accessions = Texts(np.asarray(proteins.accession_bytes), np.asarray(proteins.accession_offsets))
    is_existing = parameters.decoys == "existing"
    is_used = are_tagged(accessions, parameters.decoy_prefix, parameters.decoy_suffix) if is_existing else np.zeros(len(proteins), np.bool_)
    if is_used.all() and contaminants is None:
        return proteins, contaminants, 0  # empty, or of decoys only: refused later
    numbers = np.flatnonzero(~is_used)
    searched = proteins.take(numbers) if is_used.any() else proteins
    every = searched if contaminants is None else searched.followed_by(contaminants)
    found = find_own_decoys(
        every.residues,
        np.asarray(every.offsets),
        Texts(np.asarray(every.accession_bytes), np.asarray(every.accession_offsets)),
        n_database=len(searched),
        prefix="" if is_existing else parameters.decoy_prefix,
    )
    if found is None:
        return proteins, contaminants, 0
    is_left = ~found.is_decoy
    if not is_left[: len(searched)].any():
        raise InputError(databases.proteins[0], "every protein is a decoy", remedy="Give a database with targets too")
    if parameters.decoys_in_database == "refuse":
        is_contaminant = found.example >= len(searched)
        number = found.example - len(searched) if is_contaminant else int(numbers[found.example])
        raise InputError(
            _file_of(number, databases, is_contaminant=is_contaminant),
            _description(found, every.accession(found.example)),
            remedy=_remedy(found, parameters, can_be_used=not is_existing and contaminants is None),
        )
    stays = is_used.copy()
    stays[numbers] = is_left[: len(searched)]
    if contaminants is not None:
        some = np.flatnonzero(is_left[len(searched) :])
        contaminants = contaminants.take(some) if len(some) else None
    return proteins.take(np.flatnonzero(stays)), contaminants, len(found)


def _report_proteins(proteins: ProteinIndex, progress: Progress) -> None:
    if proteins.n_left_out:
        some = counted(proteins.n_left_out, "protein was", "proteins were")
        progress.message(f"{some} left out as decoys that the database or the contaminants already held")
    if n_stops := int((proteins.stops < proteins.first_decoy_residue).sum()):
        n_proteins = len(np.unique(proteins.protein_of(proteins.stops[:n_stops])))
        some = counted(n_proteins, "protein has", "proteins have")
        progress.message(f"{some} stops (*) inside: peptides end at them, and each part is digested as a protein of its own")


def _description(found: OwnDecoys, example: str) -> str:
    parts = []
    if found.n_by_name:
        parts.append(f"{counted(found.n_by_name, 'protein has the name', 'proteins have names')} of decoys")
    if found.n_by_sequence:
        is_one = "protein has the residues of another protein"
        parts.append(
            f"{counted(found.n_by_sequence, is_one, 'proteins have the residues of other proteins')} in reversed or shuffled order"
        )
    return f"{' and '.join(parts)} (the first is {example}), so that error rates would be wrong: decoys must not be searched as targets"


def _remedy(found: OwnDecoys, parameters: IndexSettings, *, can_be_used: bool) -> str:
    leave_out = "eave them out with decoys_in_database=leave-out"
    # Predicted libraries have no parameter for decoys.
    if not can_be_used or found.tag is None or "decoys" not in getattr(type(parameters), "model_fields", {}):
        return f"L{leave_out}, or give a database without decoys"
    return f"Use them as decoys with decoys=existing {found.tag.parameter}, or l{leave_out}"


def _file_of(number: int, databases: Databases, *, is_contaminant: bool) -> Path:
    """The file that a protein comes from, by its number among those of all database files, or of all files of contaminants."""
    files = databases.contaminants if is_contaminant else databases.proteins
    if len(files) == 1 or (databases.translation is not None and not is_contaminant):
        return files[0]
    for path in files[:-1]:
        n = len(read_proteins([path]))
        if number < n:
            return path
        number -= n
    return files[-1]


def _with_known_modifications(folder: Path, proteins: ProteinIndex, parameters: IndexSettings, digestion: Digestion) -> ProteinIndex:
    """The protein index with the modifications that the databases know, where they know any that have a mass."""
    if parameters.decoys == "existing":
        raise ParameterError(
            "known_modifications: a database with decoys of its own has none for known modifications; let decoys be made (decoys=reverse)"
        )
    features = proteins.features or Features.none(proteins.n_targets)
    residues, offsets = np.asarray(proteins.proteins.residues), np.asarray(proteins.proteins.offsets)
    known = known_modifications_of(
        residues, offsets, proteins.n_targets, features, parameters.decoys, digestion, ~proteins.are_variants()[: proteins.n_targets]
    )
    if not known.n_sites:
        return proteins
    known.write(folder)
    return open_protein_index(folder)


def _load(folder: Path, digestion: Digestion) -> Indexes:
    proteins = open_protein_index(folder)
    return Indexes(proteins, open_peptide_index(folder, proteins, digestion))

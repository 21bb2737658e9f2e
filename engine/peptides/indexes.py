"""Protein and peptide indexes of searches of spectra, stored in the user's cache or built for one run."""

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
from proteoscope.engine.peptides.database_decoys import DECOY_SEED, DatabaseDecoys, are_tagged, find_database_decoys
from proteoscope.engine.peptides.digestion import Digestion, DigestionSettings
from proteoscope.engine.peptides.known_forms import SearchedForms
from proteoscope.engine.peptides.known_modifications import find_known_modifications
from proteoscope.engine.peptides.peptide_index import PeptideIndex, build_peptide_index, open_peptide_index
from proteoscope.engine.peptides.protein_index import ProteinIndex, build_protein_index, open_protein_index
from proteoscope.engine.peptides.variants import with_variants
from proteoscope.engine.project.index_store import index_store
from proteoscope.engine.results.counts import counted

__all__ = ["Databases", "IndexSettings", "Indexes", "build_indexes", "key_parts", "open_indexes"]

_FORMAT = 8
_MINIMUM_DECOYS = 0.2  # decoys per target; the scale factor of fewer decoys is unreliable
_COMPLETE = 0.03  # maximum deviation from one decoy per target at which no scaling is needed
_VARIANT_RULES = 3
"""Version of the rules of `proteoscope.engine.peptides.variants`, for cache keys; must be increased if changed rules give other entries."""
_MB = 1_000_000


class IndexSettings(DigestionSettings, Protocol):
    """Settings of the indexes; attributes are named like the parameters of searches.

    Attributes
    ----------
    specificity : str
        Ends of a peptide at which the enzyme must cut: both (``specific``), one (``semi-specific``) or none (``non-specific``).
    index_memory : int
        Memory for the peptide and fragment indexes in megabytes.
    """

    specificity: Literal["specific", "semi-specific", "non-specific"]
    index_memory: int

    @property
    def decoys(self) -> Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]:
        """Method by which decoys are generated."""

    @property
    def decoy_prefix(self) -> str:
        """Prefix of the accessions of decoys."""

    @property
    def decoy_suffix(self) -> str:
        """Suffix of the accessions of the database's own decoys; '' if they have the prefix."""

    @property
    def decoys_in_database(self) -> Literal["refuse", "leave-out"]:
        """Treatment of a database with decoys that are not used as decoys."""


class Databases(NamedTuple):
    """Protein files of a search.

    Attributes
    ----------
    proteins, contaminants : sequence of Path
        Files of the database and of contaminants.
    digests : dict of str to list of str
        SHA-256 of the files by type (``database``, ``contaminants``).
    translation : Translation, optional
        Translation of a database of nucleotides.
    has_variants : bool
        True to search known sequence variants too.
    forms : SearchedForms, optional
        Settings for searching known modifications; None not to search them.
    """

    proteins: Sequence[Path]
    contaminants: Sequence[Path]
    digests: dict[str, list[str]]
    translation: Translation | None = None
    has_variants: bool = False
    forms: SearchedForms | None = None

    def read(self, progress: Progress) -> Proteins:
        """Read the proteins of the database."""
        if self.translation is not None:
            return self.translation.read(self.proteins, progress)
        return read_proteins(self.proteins, progress=progress)


class Indexes(NamedTuple):
    """Indexes of proteins and peptides that spectra are searched against.

    Attributes
    ----------
    proteins : ProteinIndex
        Proteins with decoys.
    peptides : PeptideIndex
        Peptides of these proteins.
    """

    proteins: ProteinIndex
    peptides: PeptideIndex


def open_indexes(databases: Databases, fallback_folder: Path, parameters: IndexSettings, resources: Resources) -> Indexes:
    """Open the protein and peptide indexes from the user's cache, or build them.

    Parameters
    ----------
    databases : Databases
        Protein files.
    fallback_folder : Path
        Folder for the indexes if the cache cannot store them.
    parameters : IndexSettings
        Settings of the search.
    resources : Resources
        Threads, devices and progress.

    Returns
    -------
    Indexes
        Memory-mapped indexes.
    """
    digestion, progress = Digestion.from_settings(parameters, parameters.specificity), resources.progress
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
        progress.message(f"The index could not be stored for other searches, and is built for this run only: {error}", "warning")
        indexes = build_indexes(databases, fallback_folder, parameters, resources)
    if databases.forms is not None:
        known_modifications = indexes.proteins.known_modifications
        none = "The database has no annotated modification with a known mass"
        text = none if known_modifications is None else known_modifications.message()
        progress.message(text, "warning" if known_modifications is None else "info")
    return _with_counted_decoys(indexes, databases, progress) if parameters.decoys == "existing" else indexes


def _with_counted_decoys(indexes: Indexes, databases: Databases, progress: Progress) -> Indexes:
    """Return the indexes with their decoy ratio set to the number of decoy peptides in the database per target peptide.

    Raises
    ------
    InputError
        If there are too few decoys to estimate error rates.
    """
    is_decoy = np.asarray(indexes.peptides.position) >= indexes.proteins.first_decoy_residue
    n_decoys = int(np.count_nonzero(is_decoy))
    n_targets = len(is_decoy) - n_decoys
    ratio = n_decoys / max(1, n_targets)
    counts = f"there are {n_decoys:,} decoy peptides and {n_targets:,} target peptides"
    if ratio < _MINIMUM_DECOYS:
        raise InputError(
            databases.proteins[0],
            f"{counts}, too few decoys for error rates (a fifth is needed)",
            remedy="Give a database with a decoy of each protein, or a database without decoys, and generate them (decoys=reverse)",
        )
    if abs(ratio - 1.0) <= _COMPLETE:
        return indexes
    certainty = ", and less certain than with a decoy of each protein" if ratio < 0.5 else ""
    progress.message(f"Error rates are scaled by the number of decoys in the database{certainty}: {counts}.", "warning")
    return Indexes(indexes.proteins, replace(indexes.peptides, decoy_ratio=ratio))


def key_parts(databases: Databases, parameters: IndexSettings, digestion: Digestion) -> dict[str, Any]:
    """Return the content from which the cache key of indexes is calculated: digests of the files, and settings of decoys and digestion.

    Parameters
    ----------
    databases : Databases
        Protein files with their digests.
    parameters : IndexSettings
        Settings of the decoys.
    digestion : Digestion
        Settings of the digestion.
    """
    variants = {"known_variants": _VARIANT_RULES} if databases.has_variants else {}
    translated = {} if databases.translation is None else {"translation": databases.translation.content()}
    keys = {} if databases.forms is None else {"known_modifications": databases.forms.content()}
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
        **keys,
    }


def build_indexes(databases: Databases, folder: Path, parameters: IndexSettings, resources: Resources) -> Indexes:
    """Build the protein and peptide indexes for one run.

    Parameters
    ----------
    databases : Databases
        Protein files.
    folder : Path
        Folder of the new indexes.
    parameters : IndexSettings
        Settings of the indexes.
    resources : Resources
        Threads and progress.
    """
    digestion = Digestion.from_settings(parameters, parameters.specificity)
    with storage_errors(folder, only_disk=True):
        _build(databases, folder, parameters, digestion, resources)
    indexes = _load(folder, digestion)
    _report_proteins(indexes.proteins, resources.progress)
    return indexes


def _build(databases: Databases, folder: Path, parameters: IndexSettings, digestion: Digestion, resources: Resources) -> None:
    progress = resources.progress
    database, variants = databases.read(progress), None
    contaminants = read_proteins(databases.contaminants, progress=progress) if databases.contaminants else None
    database, contaminants, n_left_out = _without_own_decoys(database, contaminants, databases, parameters)
    if databases.has_variants:
        variants = with_variants(database, maximum_length=digestion.maximum_length, cleaves=digestion.enzyme.cleavage_table())
        database = variants.proteins
        others = f"; {variants.n_others:,} others have no known residue change" if variants.n_others else ""
        searched = counted(variants.n_variants, "known variant is", "known variants are")
        progress.message(f"{searched} searched in addition{others}", "info" if variants.n_variants else "warning")
    proteins = build_protein_index(
        folder,
        database,
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
    """Return the proteins and contaminants without unused decoys, and the number of removed decoys.

    Unused decoys are decoys in the files that are not used as the decoys of the search (``decoys=existing``).

    Raises
    ------
    InputError
        If there are unused decoys and the parameters refuse them, or if all proteins are decoys.
    """
    accessions = Texts(np.asarray(proteins.accession_bytes), np.asarray(proteins.accession_offsets))
    is_existing = parameters.decoys == "existing"
    is_used = are_tagged(accessions, parameters.decoy_prefix, parameters.decoy_suffix) if is_existing else np.zeros(len(proteins), np.bool_)
    if is_used.all() and contaminants is None:
        return proteins, contaminants, 0  # empty, or only decoys: rejected later
    numbers = np.flatnonzero(~is_used)
    searched = proteins.take(numbers) if is_used.any() else proteins
    every = searched if contaminants is None else searched.followed_by(contaminants)
    own_decoys = find_database_decoys(
        every.residues,
        np.asarray(every.offsets),
        Texts(np.asarray(every.accession_bytes), np.asarray(every.accession_offsets)),
        n_database=len(searched),
        prefix="" if is_existing else parameters.decoy_prefix,
    )
    if own_decoys is None:
        return proteins, contaminants, 0
    is_target = ~own_decoys.is_decoy
    if not is_target[: len(searched)].any():
        raise InputError(databases.proteins[0], "every protein is a decoy", remedy="Give a database with targets too")
    if parameters.decoys_in_database == "refuse":
        is_contaminant = own_decoys.example >= len(searched)
        number = own_decoys.example - len(searched) if is_contaminant else int(numbers[own_decoys.example])
        raise InputError(
            _find_file(number, databases, is_contaminant=is_contaminant),
            _description(own_decoys, every.accession(own_decoys.example)),
            remedy=_remedy(own_decoys, parameters, can_be_used=not is_existing and contaminants is None),
        )
    is_retained = is_used.copy()
    is_retained[numbers] = is_target[: len(searched)]
    if contaminants is not None:
        remaining = np.flatnonzero(is_target[len(searched) :])
        contaminants = contaminants.take(remaining) if len(remaining) else None
    return proteins.take(np.flatnonzero(is_retained)), contaminants, len(own_decoys)


def _report_proteins(proteins: ProteinIndex, progress: Progress) -> None:
    if proteins.n_left_out:
        count = counted(proteins.n_left_out, "protein was", "proteins were")
        progress.message(f"{count} left out as decoys already in the database or the contaminants")
    if n_stops := int((proteins.stops < proteins.first_decoy_residue).sum()):
        n_proteins = len(np.unique(proteins.protein_of(proteins.stops[:n_stops])))
        count = counted(n_proteins, "protein has", "proteins have")
        progress.message(f"{count} stops (*) inside the sequence: peptides end at stops, and each part is digested as a separate protein")


def _description(own_decoys: DatabaseDecoys, example: str) -> str:
    parts = []
    if own_decoys.n_by_name:
        parts.append(f"{counted(own_decoys.n_by_name, 'protein has the name', 'proteins have names')} of decoys")
    if own_decoys.n_by_sequence:
        is_one = "protein has the residues of another protein"
        parts.append(
            f"{counted(own_decoys.n_by_sequence, is_one, 'proteins have the residues of other proteins')} in reversed or shuffled order"
        )
    return f"{' and '.join(parts)} (the first is {example}), so that error rates would be wrong: decoys must not be searched as targets"


def _remedy(own_decoys: DatabaseDecoys, parameters: IndexSettings, *, can_be_used: bool) -> str:
    leave_out = "eave them out with decoys_in_database=leave-out"
    # The parameters of predicted libraries have no field `decoys`.
    if not can_be_used or own_decoys.tag is None or "decoys" not in getattr(type(parameters), "model_fields", {}):
        return f"L{leave_out}, or give a database without decoys"
    return f"Use them as decoys with decoys=existing {own_decoys.tag.parameter}, or l{leave_out}"


def _find_file(number: int, databases: Databases, *, is_contaminant: bool) -> Path:
    """Return the file that contains protein `number`, counted from 0 over all database files or over all contaminant files."""
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
    """Return the protein index with the modifications that the database annotates, except modifications of unknown mass."""
    if parameters.decoys == "existing":
        raise ParameterError("known_modifications: decoys in the database have no known modifications; generate decoys (decoys=reverse)")
    features = proteins.features or Features.none(proteins.n_targets)
    residues, offsets = np.asarray(proteins.proteins.residues), np.asarray(proteins.proteins.offsets)
    known_modifications = find_known_modifications(
        residues, offsets, proteins.n_targets, features, parameters.decoys, digestion, ~proteins.are_variants()[: proteins.n_targets]
    )
    if not known_modifications.n_sites:
        return proteins
    known_modifications.write(folder)
    return open_protein_index(folder)


def _load(folder: Path, digestion: Digestion) -> Indexes:
    proteins = open_protein_index(folder)
    return Indexes(proteins, open_peptide_index(folder, proteins, digestion))

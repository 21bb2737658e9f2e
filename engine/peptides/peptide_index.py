"""Inverted peptide index: a dictionary of distinct peptides sorted by mass, and a list of occurrences of each peptide in the proteins.

As in Li's thesis, chapter 3, a dictionary entry has mass, position, length, and a pointer into the inverted lists (the occurrences of each
peptide). Duplicates are found by a 64-bit signature and verified. If the digest would exceed the memory limit, the index is
built in mass ranges, which are chosen from the counts of a first pass. Forms with variable modifications are generated during the search
and are not stored.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, read_only
from proteoscope.engine.chemistry.masses import WATER_MASS
from proteoscope.engine.execution.resources import Resources, available_threads, run_on_threads
from proteoscope.engine.execution.scheduler import one_line
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.known_forms import ArrayFile, FormColumns, SearchedForms, merge_known_forms, open_form_columns
from proteoscope.engine.peptides.protein_index import ProteinIndex, with_stops
from proteoscope.engine.project.index_store import open_column, require
from proteoscope.kernels.cpu.peptide_validation import peptides_are_valid
from proteoscope.kernels.cpu.peptides import SIGNATURE_TAIL, digest_proteins, merge_peptides
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Device, DeviceError, DeviceMemoryError, backend_module
from proteoscope.kernels.digestion_layouts import DICTIONARY_TYPES, DigestionRules, PeptideDictionary, PeptideEntries
from proteoscope.kernels.layouts import PeptideArrays

__all__ = ["PeptideIndex", "build_peptide_index", "open_peptide_index"]

_UNIT = 1e9  # integer masses are in 1e-9 Da
_BYTES_PER_ENTRY = 48  # while building: 26 for the unsorted entry, and dictionary, inverted lists and NumPy copies of a few runs
_RUNS, _RANGES = 32, 16  # mass ranges of peptides ("runs") and ranges of proteins per thread
_PEPTIDES_OF_A_RUN, _RESIDUES_OF_A_RANGE = 1 << 14, 1 << 15  # minimum sizes, below which the overhead dominates
_CONCURRENT_RUNS = 8  # runs per thread in a batch
_RESIDUES_FOR_A_GPU = 1 << 21  # minimum number; threads count fewer residues faster than a GPU receives them
_BUCKET_WIDTH = 100_000_000  # 0.1 Da
_PEPTIDES_OF_A_CHECK = 1 << 19
_NO_MODIFICATION = 255


@dataclass(frozen=True)
class PeptideIndex:
    """Index of n distinct peptides sorted by mass, as memory-mapped columns.

    Attributes
    ----------
    mass : ndarray of float64, shape (n,)
        Neutral mass with fixed modifications, dalton.
    position : ndarray of uint32, shape (n,)
        Position of the first residue of the first occurrence in the protein index.
    length : ndarray of uint8, shape (n,)
        Number of residues.
    flags : ndarray of uint8, shape (n,)
        Flags, as in `proteoscope.kernels.cpu.peptides`.
    letters : ndarray of uint32, shape (n,)
        Residues that occur in the peptide: bit k for residue 'A' + k.
    pointer : ndarray of int64, shape (n + 1,)
        Occurrences of peptide i are ``occurrence[pointer[i]:pointer[i + 1]]``.
    occurrence : ndarray of uint32, shape (pointer[n],)
        Positions in the protein index, ascending for each peptide; a peptide is a target if its first position is in a target.
    digestion : Digestion
        Digestion of the proteins.
    decoy_ratio : float
        Number of decoys per target, for error rates; 1 for generated decoys.
    forms : FormColumns
        Entries of peptides with known modifications: they have the positions and residues of the unmodified peptide, but another mass.
    """

    mass: NDArray[np.float64]
    position: NDArray[np.uint32]
    length: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    letters: NDArray[np.uint32]
    pointer: NDArray[np.int64]
    occurrence: NDArray[np.uint32]
    digestion: Digestion
    decoy_ratio: float = 1.0
    forms: FormColumns = field(default_factory=FormColumns.none)

    def __len__(self) -> int:
        return len(self.mass)

    @property
    def n_forms(self) -> int:
        """Number of entries with known modifications."""
        return max(0, len(self.forms.site) - 1)

    def arrays(self, proteins: ProteinIndex, n_variable: int = 0) -> PeptideArrays:
        """Return the index as an argument of kernels.

        Parameters
        ----------
        proteins : ProteinIndex
            Proteins of the peptides.
        n_variable : int
            Number of variable modifications; known modifications are numbered after them.
        """
        form, site, modification = self.forms
        numbered = np.where(modification == _NO_MODIFICATION, modification, modification + np.uint8(n_variable))
        for column in (form, site, numbered):
            column.flags.writeable = False  # as in mapped columns, so that kernels are compiled for one type only
        return PeptideArrays(
            np.asarray(self.mass),
            np.asarray(self.position),
            np.asarray(self.length),
            np.asarray(self.flags),
            np.asarray(self.letters),
            np.asarray(proteins.proteins.residues),
            self.digestion.residue_mass(),
            self.digestion.terminal_mass("N-term"),
            self.digestion.terminal_mass("C-term"),
            np.asarray(form),
            np.asarray(site),
            numbered,
        )


def build_peptide_index(
    folder: Path,
    proteins: ProteinIndex,
    digestion: Digestion,
    resources: Resources,
    *,
    memory_bytes: int,
    selected: NDArray[np.int64] | None = None,
    forms: SearchedForms | None = None,
    windows: NDArray[np.float64] | None = None,
) -> PeptideIndex:
    """Digest proteins and write their index into `folder`.

    The first pass over the digest counts peptides, on the first available GPU or on threads; the second pass enumerates them on threads and
    sorts them in runs (mass ranges). The maximum memory is about `memory_bytes` in addition to the proteins, unless a single mass bucket
    needs more. On disk, a distinct peptide takes 22 bytes and an occurrence 4.

    Parameters
    ----------
    folder : Path
        Output folder.
    proteins : ProteinIndex
        Proteins to digest.
    digestion : Digestion
        Settings of the digestion.
    resources : Resources
        Threads, devices and progress.
    memory_bytes : int
        Approximate memory limit.
    selected : ndarray of int64, optional
        Indices of the proteins to digest; by default all.
    forms : SearchedForms, optional
        Settings of entries with known modifications, if the proteins have any.
    windows : ndarray of float64, shape (k, 2), optional
        Minimum and maximum masses of windows in dalton. Only peptides in a window, or up to 0.2 Da outside a window, are included; None
        includes all.

    Returns
    -------
    PeptideIndex
        Memory-mapped index.
    """
    residues, offsets = np.asarray(proteins.proteins.residues), np.asarray(proteins.proteins.offsets)
    selection, n_targets, bounds = None, proteins.n_targets, proteins.peptide_bounds
    if selected is not None:
        selection, n_targets = _Selection(residues, offsets, selected), int(np.searchsorted(selected, proteins.n_targets))
        residues, offsets, bounds = selection.residues, selection.offsets, None if bounds is None else bounds[selected]
    first_decoy, stops = int(offsets[n_targets]), proteins.stops if selection is None else selection.places(proteins.stops)
    # Databases with variants, in which only some peptides count, have no stops.
    digest = _Digest(residues, read_only(with_stops(offsets, stops)), first_decoy, digestion, resources, bounds, windows)
    progress = resources.progress
    progress.stage("Counting peptides")
    buckets = digest.count()
    progress.stage("Building the peptide index", int(buckets.sum()))
    with ExitStack() as stack:
        files = {name: stack.enter_context(ArrayFile(folder / f"peptide_{name}.npy", kind)) for name, kind in DICTIONARY_TYPES.items()}
        for run_of_bucket in _passes(buckets, max(1, memory_bytes // _BYTES_PER_ENTRY), _RUNS * resources.threads):
            for columns in digest.runs(run_of_bucket):
                if selection is not None:
                    for name in ("position", "occurrence"):
                        columns[name] = selection.original_position(columns[name])
                columns["pointer"] += files["occurrence"].length
                for name, file in files.items():
                    file.append(columns[name])
        files["pointer"].append(np.array([files["occurrence"].length]))
    if forms is not None and forms.maximum_modifications and proteins.known_modifications is not None:
        peptides = folder / "peptides"
        peptides.mkdir()
        for name in DICTIONARY_TYPES:
            (folder / f"peptide_{name}.npy").rename(peptides / f"peptide_{name}.npy")
        merge_known_forms(folder, _open_dictionary(peptides), proteins, digestion, forms, resources, memory_bytes)
        shutil.rmtree(peptides)
    return open_peptide_index(folder, proteins, digestion)


def _open_dictionary(folder: Path) -> PeptideDictionary:
    return PeptideDictionary(**{name: open_column(folder / f"peptide_{name}.npy", kind) for name, kind in DICTIONARY_TYPES.items()})


def open_peptide_index(folder: Path, proteins: ProteinIndex, digestion: Digestion) -> PeptideIndex:
    """Open the memory-mapped index in `folder`, and check every column.

    Parameters
    ----------
    folder : Path
        Folder of the index.
    proteins : ProteinIndex
        Proteins from which the index was built.
    digestion : Digestion
        Digestion with which the index was built.

    Returns
    -------
    PeptideIndex
        Memory-mapped index.

    Raises
    ------
    InvalidIndexError
        If the index is damaged.
    """
    dictionary = _open_dictionary(folder)
    n, pointer, occurrence = len(dictionary.mass), dictionary.pointer, dictionary.occurrence
    columns = dictionary.position, dictionary.length, dictionary.flags, dictionary.letters
    are_as_long = all(len(column) == n for column in columns) and len(pointer) == n + 1
    require(are_as_long, f"{folder}: columns of the peptides have different lengths")
    require(pointer[0] == 0 and pointer[-1] == len(occurrence), f"{folder}: the occurrence lists do not cover the whole column")
    added = np.zeros(1) if proteins.known_modifications is None else proteins.known_modifications.added_mass(digestion)
    forms = open_form_columns(folder, dictionary.length, 0 if proteins.known_modifications is None else len(added))
    if n:
        smallest, largest = dictionary.mass[[0, -1]].tolist()
        lightest, heaviest = (forms.site.shape[1] * end for end in (min(0.0, float(added.min())), max(0.0, float(added.max()))))
        inside = digestion.minimum_mass + lightest - 1 / _UNIT <= smallest and largest <= digestion.maximum_mass + heaviest + 1 / _UNIT
        require(inside, f"{folder}: a peptide's mass is out of bounds")
        n_chunks = 1 + n // _PEPTIDES_OF_A_CHECK
        bounds = [(n * k // n_chunks, len(occurrence) * k // n_chunks) for k in range(n_chunks + 1)]

        def is_valid(k: int) -> bool:
            (first, first_place), (last, last_place) = bounds[k], bounds[k + 1]
            are_valid: bool = peptides_are_valid(
                dictionary,
                len(proteins.proteins.residues),
                digestion.minimum_length,
                digestion.maximum_length,
                first,
                last,
                first_place,
                last_place,
            )
            return are_valid

        with ThreadPoolExecutor(available_threads()) as pool:
            require(all(pool.map(is_valid, range(n_chunks))), f"{folder}: a number of the peptides is out of bounds")
    return PeptideIndex(**dictionary._asdict(), digestion=digestion, decoy_ratio=1.0, forms=forms)


def _passes(buckets: NDArray[np.int64], limit: int, n_runs: int) -> Iterator[NDArray[np.int64]]:
    """Divide the mass buckets into passes over the digest, and the buckets of each pass into mass ranges.

    `buckets` are the numbers of peptides in the buckets. A pass has at most `limit` peptides, unless a single bucket has more. It has at
    most `n_runs` mass ranges with similar numbers of peptides.

    Yields
    ------
    ndarray of int64, shape (buckets,)
        For one pass, the index of the mass range of each bucket; -1 for buckets of other passes.
    """
    total = np.cumsum(buckets)
    n_runs = max(1, min(n_runs, int(total[-1]) // _PEPTIDES_OF_A_RUN))
    low = 0
    while low < len(buckets):
        before = total[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(total, before + limit, side="right")))
        inside = total[low:high] - before
        run_of_bucket = np.full(len(buckets), -1, np.int64)
        run = np.minimum((inside - 1).clip(0) * n_runs // max(1, int(inside[-1])), n_runs - 1)
        run_of_bucket[low:high] = np.unique(run, return_inverse=True)[1]
        yield run_of_bucket
        low = high


def _outside(windows: NDArray[np.float64] | None, n_buckets: int) -> NDArray[np.bool_]:
    """Return True for each mass bucket that overlaps none of the windows, shape (buckets,); without windows, False for all."""
    if windows is None:
        return np.zeros(n_buckets, bool)
    # Include one more bucket on each side, since masses are rounded.
    buckets = (windows * (_UNIT / _BUCKET_WIDTH)).astype(np.int64)
    first, last = (buckets[:, 0] - 1).clip(0, n_buckets - 1), (buckets[:, 1] + 1).clip(0, n_buckets - 1)
    change = np.zeros(n_buckets + 1, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last + 1, -1)
    is_outside: NDArray[np.bool_] = np.cumsum(change[:-1]) == 0
    return is_outside


class _Digest:
    """Digest of proteins. Its peptides are counted on a GPU or on threads, and then listed on threads."""

    def __init__(
        self,
        residues: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        first_decoy: int,
        digestion: Digestion,
        resources: Resources,
        peptide_bounds: NDArray[np.uint32] | None,
        windows: NDArray[np.float64] | None,
    ) -> None:
        self._peptide_bounds = peptide_bounds
        masses = digestion.residue_mass()
        terminal = WATER_MASS + digestion.terminal_mass("N-term") + digestion.terminal_mass("C-term")
        self._residues, self._offsets, self._progress = residues, offsets, resources.progress
        self._threads, self._gpus = resources.threads, resources.gpus
        self._first_decoy = first_decoy
        self._rules = DigestionRules(
            digestion.enzyme.cleavage_table(),
            np.where(np.isnan(masses), -1, np.rint(np.nan_to_num(masses) * _UNIT)).astype(np.int64),
            round(terminal * _UNIT),
            digestion.required_ends,
            digestion.maximum_missed,
            digestion.minimum_length,
            digestion.maximum_length,
            digestion.clip_methionine,
            round(digestion.minimum_mass * _UNIT),
            round(digestion.maximum_mass * _UNIT),
            _BUCKET_WIDTH,
        )
        self.n_buckets = round(digestion.maximum_mass * _UNIT) // _BUCKET_WIDTH + 1
        self._is_left_out = _outside(windows, self.n_buckets)
        n_ranges = max(1, min(_RANGES * self._threads, int(offsets[-1]) // _RESIDUES_OF_A_RANGE))
        cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], n_ranges + 1).astype(np.int64)[1:-1]).tolist()
        self._counts = np.zeros((0, self.n_buckets), np.int64)
        self._protein_ranges = list(zip([0, *cuts], [*cuts, len(offsets) - 1], strict=True))

    def count(self) -> NDArray[np.int64]:
        """Count the peptides in each mass bucket, shape (buckets,), in the first pass over the digest."""
        bounds = np.array([first for first, _ in self._protein_ranges] + [len(self._offsets) - 1])
        self._counts = np.zeros((len(self._protein_ranges), self.n_buckets), np.int64)

        def count(device: Device) -> None:
            counting = backend_module(device, "digestion").count_peptides(
                device, self._residues, self._offsets, bounds, self._rules, self._counts
            )
            with closing(counting):
                for _ in counting:
                    self._progress.check()

        for gpu in list(self._gpus) if len(self._residues) > _RESIDUES_FOR_A_GPU else ():
            try:
                count(gpu)
                return self._counted()
            except DeviceError as error:
                self._progress.message(f"{one_line(error)}; the peptides are counted on another device")
                if not isinstance(error, DeviceMemoryError):
                    self._gpus.remove(gpu)
        count(Processor(self._threads))
        return self._counted()

    def _counted(self) -> NDArray[np.int64]:
        self._counts[:, self._is_left_out] = 0
        totals: NDArray[np.int64] = self._counts.sum(axis=0)
        return totals

    def runs(self, run_of_bucket: NDArray[np.int64]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the dictionary and the inverted lists of each run (mass range) of a pass, sorted by mass.

        `run_of_bucket` is the run of each mass bucket, or -1. Pointers are relative to the first occurrence of the run. `count` must be
        called before.
        """
        n_runs, inside = int(run_of_bucket.max()) + 1, np.flatnonzero(run_of_bucket >= 0)
        starts = inside[0] + np.searchsorted(run_of_bucket[inside], np.arange(n_runs))
        run_of_bucket = np.where(self._is_left_out, -1, run_of_bucket)
        counts = np.add.reduceat(self._counts[:, : inside[-1] + 1], starts, axis=1)
        segment_offsets = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
        cursors = segment_offsets[:-1] + np.concatenate((np.zeros((1, n_runs), np.int64), np.cumsum(counts, axis=0)[:-1]))
        entries = PeptideEntries.empty(int(segment_offsets[-1]))

        def fill(number: int) -> None:
            bounds = self._protein_ranges[number]
            digest_proteins(self._residues, self._offsets, *bounds, self._rules, run_of_bucket, cursors[number], True, entries)

        run_on_threads(fill, range(len(self._protein_ranges)), self._threads, self._progress, steps=lambda _: 0)
        sizes = np.diff(segment_offsets).tolist()

        def merge(run: int) -> dict[str, NDArray[Any]]:
            return _merged(
                self._residues, self._first_decoy, self._without_unchanged(entries.part(segment_offsets[run], segment_offsets[run + 1]))
            )

        # Batches reuse the memory of the previous batch, which is faster than new memory from the system.
        for first in range(0, n_runs, _CONCURRENT_RUNS * self._threads):
            batch = range(first, min(n_runs, first + _CONCURRENT_RUNS * self._threads))
            yield from run_on_threads(merge, batch, self._threads, self._progress, steps=lambda run: sizes[run])

    def _without_unchanged(self, entries: PeptideEntries) -> PeptideEntries:
        """Return the entries without peptides that a variant does not change (see `VariantEntries.peptide_bounds`)."""
        if self._peptide_bounds is None:
            return entries
        protein = np.searchsorted(self._offsets, entries.position, side="right") - 1
        start = entries.position - self._offsets[protein]
        counts = (start < self._peptide_bounds[protein, 1]) & (start + entries.length > self._peptide_bounds[protein, 0])
        columns: list[NDArray[Any]] = [column[counts] for column in entries]
        return PeptideEntries(*columns)


def _merged(residues: NDArray[np.uint8], first_decoy: int, entries: PeptideEntries) -> dict[str, NDArray[Any]]:
    """Return the dictionary and the inverted lists of a run (mass range)."""
    mass, signature, dictionary = entries.mass, entries.signature, PeptideDictionary.empty(len(entries.mass))
    # A mass up to 17,000 Da takes 44 bits; with 20 bits of the signature below it, one sort resolves most ties.
    order = np.argsort((mass.view(np.uint64) << (np.uint64(64) - SIGNATURE_TAIL)) | (signature >> SIGNATURE_TAIL))
    distinct = merge_peptides(residues, first_decoy, order, entries, dictionary)
    return {name: column if name == "occurrence" else column[:distinct] for name, column in dictionary._asdict().items()}


class _Selection:
    """Selected proteins as a separate database, with the positions of their residues among all proteins."""

    def __init__(self, residues: NDArray[np.uint8], offsets: NDArray[np.int64], selected: NDArray[np.int64]) -> None:
        self.offsets, original = ranges(offsets[selected], offsets[selected + 1])
        self._original = original.astype(np.uint32)
        self.residues = residues[self._original]
        for column in (self.residues, self.offsets):
            column.flags.writeable = False  # as in mapped columns, so that kernels are compiled for one type only

    def places(self, position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert positions in all proteins to ascending positions in the selection; positions outside the selection are left out."""
        return np.flatnonzero(np.isin(self._original, position)) if len(position) else np.empty(0, np.int64)

    def original_position(self, position: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Convert positions in the selection to positions in all proteins; ascending positions remain so if the selection is ascending."""
        return self._original[position]

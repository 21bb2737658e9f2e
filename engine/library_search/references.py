"""Index of spectral libraries: their entries in search order, with decoys, stored in the user's cache.

::

    charge      | -1        | 0 (unknown) | 2            | 3          |      starts[charge + 32]
    m/z         | 90 ... 800| 100 ...     | 350.2 .. 900 | 310 ...    |
    references  | peaks, mass, entry, is_decoy                         |      a shuffled peptide precedes its target
    entries     | names, peptides, formulas, peaks as read, ...        |      in the order of the files
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Scalar, Texts, segment_offsets, splitmix64, take_segments
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.library_search.decoys import decoys_per_peptide, library_peptides, shuffled_references
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.project.index_store import checked_offsets, checked_texts, index_store, open_column, read_numbers, require
from proteoscope.engine.spectra.spectral_library import SpectralLibrary
from proteoscope.kernels.cpu.library_peaks import PeakRules, copy_peaks, fill_peaks
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import PeakArrays
from proteoscope.kernels.library_layouts import MOST_PEAKS, UNITS, PeakLists

__all__ = [
    "HIGHEST_CHARGE",
    "HIGHEST_MZ",
    "UNKNOWN_CHARGE",
    "Entries",
    "References",
    "load_references",
    "open_references",
    "peak_lists",
    "peak_rules",
    "save_references",
    "taken",
    "width_in_units",
]

HIGHEST_MZ = 20_000.0
"""Maximum m/z (Th) and maximum mass (Da) of compared peaks."""


def width_in_units(tolerance: Tolerance) -> tuple[int, int]:
    """Return a tolerance as integers for kernels: (m/z units, 0) for a tolerance in Th, or (0, thousandths of a ppm)."""
    return (0, round(tolerance.value * 1000)) if tolerance.unit == "ppm" else (round(tolerance.value * UNITS), 0)


def peak_rules(parameters: LibrarySearchParameters) -> PeakRules:
    """Return the rules for selecting and weighting peaks."""
    return PeakRules(
        *width_in_units(parameters.fragment_tolerance),
        parameters.minimum_fragment_mz,
        HIGHEST_MZ,
        parameters.precursor_removal,
        parameters.noise_threshold,
        parameters.maximum_peaks,
        parameters.minimum_peaks,
        parameters.intensity_power,
        parameters.similarity == "entropy",
    )


def peak_lists(
    peaks: PeakArrays, precursor_mz: NDArray[np.float64], parameters: LibrarySearchParameters, resources: Resources
) -> PeakLists:
    """Return the peak lists of n spectra, empty for spectra with too few peaks.

    Parameters
    ----------
    peaks : PeakArrays
        Peaks of the n spectra.
    precursor_mz : ndarray of float64, shape (n,)
        Precursor m/z in thomson, NaN if unknown.
    parameters : LibrarySearchParameters
        Parameters of the search.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    PeakLists
    """
    n, rules = len(precursor_mz), peak_rules(parameters)
    count, mz, weight = np.zeros(n, np.int64), np.empty(len(peaks.mz), np.int32), np.empty(len(peaks.mz), np.uint16)

    def fill(part: Partition) -> None:
        fill_peaks(peaks, precursor_mz, part.first, part.last, rules, count, mz, weight)

    threads, progress = resources.threads, resources.progress
    run_on_threads(
        fill, equal_partitions(np.diff(peaks.offsets) + 1, threads), threads, progress, steps=lambda part: part.last - part.first
    )
    offsets = segment_offsets(count)
    own_mz, own_weight = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint16)

    def copy(part: Partition) -> None:
        copy_peaks(peaks.offsets, offsets, mz, weight, part.first, part.last, own_mz, own_weight)

    run_on_threads(copy, equal_partitions(np.diff(offsets) + 1, threads), threads, progress, steps=lambda _: 0)
    return PeakLists(offsets, own_mz, own_weight)


def taken(lists: PeakLists, rows: NDArray[np.int64]) -> PeakLists:
    """Return the lists with the given indices, in this order; indices may repeat."""
    mz, offsets = take_segments(lists.mz, lists.offsets, rows)
    weight, _ = take_segments(lists.weight, lists.offsets, rows)
    return PeakLists(offsets, mz, weight)


HIGHEST_CHARGE = 31
UNKNOWN_CHARGE = HIGHEST_CHARGE + 1
"""Slot of references of positive ions with unknown charge; its negative value is the slot of negative ions."""
_FORMAT = 6
_ENTRIES_AT_ONCE = 50_000
_TEXTS = ("name", "peptidoform", "sequence", "proteins", "formula", "inchikey", "adduct")
_NUMBERS: tuple[tuple[str, type], ...] = (
    ("source", np.int64),
    ("number", np.int64),
    ("charge", np.int64),
    ("precursor_mz", np.float64),
    ("n_members", np.int64),
    ("polarities", np.int64),
)


class Entries(NamedTuple):
    """Entries of a library as read, n of them.

    Attributes
    ----------
    texts : dict of str to pyarrow.StringArray, length n
        Text columns by name, with nulls.
    numbers : dict of str to ndarray, shape (n,)
        Number columns by name.
    offsets : ndarray of int64, shape (n + 1,)
        Start of the peaks of each entry, followed by their number.
    mz : ndarray of float64
        Peak m/z as read, Th.
    intensity : ndarray of float32
        Peak intensities as read.
    """

    texts: dict[str, pa.StringArray]
    numbers: dict[str, NDArray[Any]]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]


@dataclass(frozen=True)
class References:
    """Reference spectra in the order of searching, m of them.

    Attributes
    ----------
    entries : Entries
        Entries of the libraries.
    entry : ndarray of int64, shape (m,)
        Entry of each reference.
    is_decoy : ndarray of bool, shape (m,)
        True for decoys.
    has_decoys : ndarray of bool, shape (m,)
        True if matches of the entry can have an error rate. If decoys were created, at least one was shuffled from the entry. If the
        library contains decoys, they include decoys of the same type as the entry (peptides, or other compounds).
    charge : ndarray of int64, shape (m,)
        Charge of each reference, negative for negative ions, 0 if unknown.
    mz : ndarray of float64, shape (m,)
        Precursor m/z, Th.
    mass : ndarray of int32, shape (m,)
        Neutral mass, in `UNITS` per dalton.
    peaks : PeakLists
        Peaks of the references.
    starts : ndarray of int64, shape (66,)
        First reference of each slot. The slot of a reference is its charge; if only the polarity is known, it is `UNKNOWN_CHARGE` with
        the sign of the polarity; 0 if neither is known.
    n_left_out : int
        Number of entries that cannot be searched.
    decoys : str
        Origin of the decoys: ``existing``, ``shuffle`` or ``none``.
    """

    entries: Entries
    entry: NDArray[np.int64]
    is_decoy: NDArray[np.bool_]
    has_decoys: NDArray[np.bool_]
    charge: NDArray[np.int64]
    mz: NDArray[np.float64]
    mass: NDArray[np.int32]
    peaks: PeakLists
    starts: NDArray[np.int64]
    n_left_out: int
    decoys: str

    def __len__(self) -> int:
        return len(self.entry)

    @property
    def decoy_ratio(self) -> float:
        """Number of decoys per target that has decoys."""
        n = int(np.count_nonzero(self.is_decoy))
        return n / max(1, int(np.count_nonzero(self.has_decoys & ~self.is_decoy)))


def open_references(
    paths: Sequence[Path], digests: Sequence[str], parameters: LibrarySearchParameters, fallback_folder: Path, resources: Resources
) -> References:
    """Open the index of libraries in the user's cache, or build it there; without a usable cache, build it in `fallback_folder`.

    Parameters
    ----------
    paths : sequence of Path
        Library files.
    digests : sequence of str
        SHA-256 of each library file.
    parameters : LibrarySearchParameters
        Parameters of the search.
    fallback_folder : Path
        Folder of the index if the cache cannot be written.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    references : References

    Raises
    ------
    InputError
        If a file is not a library, or none of its entries can be searched.
    """
    progress = resources.progress
    parts = {
        "format": _FORMAT,
        "libraries": list(digests),
        "rules": list(peak_rules(parameters)),
        "decoys": parameters.decoys,
        "decoys_per_peptide": parameters.decoys_per_peptide,
        "random_seed": parameters.random_seed,
        "fragment_tolerance": str(parameters.fragment_tolerance),
    }

    def build(folder: Path) -> None:
        library = read_libraries(list(paths), progress)
        for reason, n in library.skipped.counts.items():
            progress.message(f"{n:,} {'entry' if n == 1 else 'entries'} of the library left out: {reason}", "warning")
        save_references(library, folder, parameters, resources)

    progress.stage("Opening the index of the library")
    title = ", ".join([*(path.name for path in paths), parameters.similarity, str(parameters.fragment_tolerance)])
    try:
        return index_store("library").get(parts, title, build, load_references, progress)
    except StorageError as error:
        progress.message(f"The index could not be stored for other searches, and is used for this run only: {error}", "warning")
        fallback_folder.mkdir(parents=True, exist_ok=True)
        build(fallback_folder)
        return load_references(fallback_folder)


def save_references(library: SpectralLibrary, folder: Path, parameters: LibrarySearchParameters, resources: Resources) -> None:
    """Write the index of a library to an empty folder.

    Raises
    ------
    InputError
        If none of the entries can be searched.
    """
    charge, mz = np.asarray(library.charge), np.asarray(library.precursor_mz)
    count = np.maximum(np.abs(charge), 1)
    mass = count * mz - np.where(charge == 0, 1, charge) * PROTON_MASS
    is_usable = (mz > 0) & (mass > 0) & (mass < HIGHEST_MZ) & (np.abs(charge) <= HIGHEST_CHARGE) & (np.diff(library.offsets) > 0)
    rows = np.flatnonzero(is_usable)
    has_own = bool(library.is_decoy[rows].any())
    is_shuffled = parameters.decoys == "shuffle" or (parameters.decoys == "automatic" and not has_own)
    read = list(_read_lists(library, rows, parameters, resources))
    n_read = sum(len(lists.entry) for lists in read)
    if not n_read:
        raise InputError(
            library.sources[0] if library.sources else "library",
            f"none of its {len(library):,} entries can be searched",
            remedy=f"Give a library whose entries have precursors and {parameters.minimum_peaks} peaks",
        )
    lists = _concatenate([*read, *(_shuffled(library, rows, parameters, resources) if is_shuffled else ())])
    if has_own and (is_shuffled or parameters.decoys == "none"):
        lists = lists.take(np.flatnonzero(~(lists.is_decoy & library.is_decoy[lists.entry])))
    lists = lists.take(_distinct_rows(lists))
    # Of equally similar references, the first is selected: decoys precede targets, in the order in which they were shuffled.
    lists = lists.take(np.lexsort((lists.entry, ~lists.is_decoy, mz[lists.entry], _slots(charge, library.polarities)[lists.entry])))
    entry, is_decoy, peaks = lists
    columns = {
        "entry": entry,
        "is_decoy": is_decoy.astype(np.uint8),
        "peak_offsets": peaks.offsets,
        "peak_mz": peaks.mz,
        "peak_weight": peaks.weight,
        "mass": np.rint(mass[entry] * UNITS).astype(np.int32),
        "offsets": library.offsets,
        "mz": library.mz,
        "intensity": library.intensity,
        **{name: getattr(library, name).astype(kind) for name, kind in _NUMBERS},
    }
    for name in _TEXTS:
        columns |= _text_columns(name, getattr(library, name))
    for name, values in columns.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(values))
    decoys = "none" if not is_decoy.any() else "shuffle" if is_shuffled else "existing"
    (folder / "numbers.json").write_text(json.dumps({"left_out": len(library) - n_read, "decoys": decoys}), encoding="utf-8")


class _Lists(NamedTuple):
    """Peak lists of n spectra. `entry` (n,) is the library entry of each spectrum, and `is_decoy` (n,) is True for decoys."""

    entry: NDArray[np.int64]
    is_decoy: NDArray[np.bool_]
    peaks: PeakLists

    def take(self, rows: NDArray[np.int64]) -> _Lists:
        """Return the lists with the given indices, in this order."""
        return _Lists(self.entry[rows], self.is_decoy[rows], taken(self.peaks, rows))


def _read_lists(
    library: SpectralLibrary, rows: NDArray[np.int64], parameters: LibrarySearchParameters, resources: Resources
) -> Iterator[_Lists]:
    """Yield the peak lists of entries, in batches."""
    resources.progress.stage("Preparing the spectra of the library", len(rows))
    for first in range(0, len(rows), _ENTRIES_AT_ONCE):
        some = rows[first : first + _ENTRIES_AT_ONCE]
        peak_mz, offsets = take_segments(library.mz, library.offsets, some)
        intensity, _ = take_segments(library.intensity, library.offsets, some)
        peaks = PeakArrays(offsets, peak_mz, intensity)
        yield _prepared(some, library.is_decoy[some], peaks, library.precursor_mz[some], parameters, resources)


def _shuffled(
    library: SpectralLibrary, rows: NDArray[np.int64], parameters: LibrarySearchParameters, resources: Resources
) -> Iterator[_Lists]:
    """Shuffle the targets among the rows, once or several times, and yield the peak lists of these decoys in batches."""
    peptides, targets = library_peptides(library.peptidoform), rows[~library.is_decoy[rows]]
    n_peptides = len(library.sequence.take(targets[peptides.peptide[targets] >= 0]).unique())
    n_shuffles = parameters.decoys_per_peptide or decoys_per_peptide(n_peptides, len(targets))
    resources.progress.stage("Shuffling the peptides of the library", len(rows))
    for number in range(n_shuffles):
        seed = parameters.random_seed + (number << 32)
        for some, spectra in shuffled_references(library, targets, peptides, seed, parameters.fragment_tolerance, resources):
            is_decoy = np.ones(len(some), np.bool_)
            yield _prepared(some, is_decoy, spectra.peak_arrays, library.precursor_mz[some], parameters, resources)


def _prepared(
    entry: NDArray[np.int64],
    is_decoy: NDArray[np.bool_],
    peaks: PeakArrays,
    precursor_mz: NDArray[np.float64],
    parameters: LibrarySearchParameters,
    resources: Resources,
) -> _Lists:
    """Return the non-empty peak lists of spectra."""
    lists = peak_lists(peaks, precursor_mz, parameters, resources)
    counts = np.diff(lists.offsets)
    has_peaks = counts > 0
    return _Lists(entry[has_peaks], is_decoy[has_peaks], PeakLists(segment_offsets(counts[has_peaks]), lists.mz, lists.weight))


def _concatenate(batches: list[_Lists]) -> _Lists:
    """Concatenate batches of lists."""
    entry, is_decoy, peaks = zip(*batches, strict=True)
    offsets = segment_offsets(np.concatenate([np.diff(lists.offsets) for lists in peaks]))
    mz, weight = (np.concatenate([getattr(lists, name) for lists in peaks]) for name in ("mz", "weight"))
    return _Lists(np.concatenate(entry), np.concatenate(is_decoy), PeakLists(offsets, mz, weight))


def _slots(charge: NDArray[np.int64], polarity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the slot of each entry (see `References.starts`)."""
    return np.where(charge == 0, UNKNOWN_CHARGE * polarity, charge)


def _distinct_rows(lists: _Lists) -> NDArray[np.int64]:
    """Return the rows, ascending, without decoys that have the same peaks as their target or another decoy of the same entry.

    Peptides with few or equal residues have few permutations. A repeated decoy is not evidence of false matches, but would count as such.
    """
    entry, is_decoy, peaks = lists
    # Order-independent hash of each list: the sum of its hashed peaks (splitmix64, see `proteoscope.kernels.cpu.shuffled_spectra`).
    with np.errstate(over="ignore"):
        z = (peaks.mz.astype(np.uint64) << np.uint64(16)) + peaks.weight + np.uint64(0x9E3779B97F4A7C15)
        sums = np.add.reduceat(splitmix64(z), peaks.offsets[:-1]) if len(z) else np.zeros(len(entry), np.uint64)
    order = np.lexsort((is_decoy, sums, entry))  # targets precede their decoys
    is_again = np.zeros(len(entry), np.bool_)
    is_again[order[1:]] = (entry[order[1:]] == entry[order[:-1]]) & (sums[order[1:]] == sums[order[:-1]])
    return np.flatnonzero(~(is_again & is_decoy))


def _text_columns(name: str, texts: pa.StringArray) -> dict[str, NDArray[Any]]:
    """Return three arrays by name, which store the text column `name`: its characters, its offsets, and flags of non-null values."""
    texts_of_all = Texts.from_arrow(texts.fill_null(""))
    is_there = np.asarray(texts.is_valid().to_numpy(zero_copy_only=False), np.uint8)
    offsets = texts_of_all.offsets - texts_of_all.offsets[0]
    return {f"{name}_characters": texts_of_all.used, f"{name}_offsets": offsets, f"{name}_is_there": is_there}


def load_references(folder: Path) -> References:
    """Open the index of a library and check it.

    Raises
    ------
    InvalidIndexError
        If the folder does not contain a valid index.
    """
    numbers = read_numbers(folder / "numbers.json", ("left_out",), ("decoys",))
    require(numbers["decoys"] in ("existing", "shuffle", "none"), "numbers.json names an unknown type of decoys")

    def column(name: str, kind: type[Scalar]) -> NDArray[Scalar]:
        return open_column(folder / f"{name}.npy", kind)

    of_entries: dict[str, NDArray[Any]] = {name: column(name, kind) for name, kind in _NUMBERS}
    offsets, mz, intensity = column("offsets", np.int64), column("mz", np.float64), column("intensity", np.float32)
    n = len(of_entries["charge"])
    require(
        all(len(of_entry) == n for of_entry in of_entries.values()) and len(offsets) == n + 1, "columns of entries have different lengths"
    )
    require(len(mz) == len(intensity), "peaks have no intensities")
    checked_offsets(offsets, len(mz), "peaks")
    charge = of_entries["charge"]
    entry, is_decoy, mass = column("entry", np.int64), column("is_decoy", np.uint8), column("mass", np.int32)
    peaks = PeakLists(column("peak_offsets", np.int64), column("peak_mz", np.int32), column("peak_weight", np.uint16))
    m = len(entry)
    require(m > 0 and len(is_decoy) == len(mass) == m == len(peaks.offsets) - 1, "columns of references have other lengths")
    require(len(peaks.mz) == len(peaks.weight), "peaks of references have no weights")
    checked_offsets(peaks.offsets, len(peaks.mz), "references")
    require(np.diff(peaks.offsets).max() <= MOST_PEAKS, "references have too many peaks")
    require(entry.min() >= 0 and entry.max() < n and is_decoy.max(initial=0) <= 1, "references belong to no entry")
    own_charge, own_mz = charge[entry], of_entries["precursor_mz"][entry]
    require((np.abs(of_entries["polarities"]) <= 1).all(), "entries have invalid polarities")
    slot = _slots(charge, of_entries["polarities"])[entry]
    require((np.abs(own_charge) <= HIGHEST_CHARGE).all() and np.isfinite(own_mz).all(), "references have invalid charges")
    is_ordered = (slot[1:] > slot[:-1]) | ((slot[1:] == slot[:-1]) & (own_mz[1:] >= own_mz[:-1]))
    require(is_ordered.all(), "references are not in order")
    starts = np.searchsorted(slot, np.arange(-UNKNOWN_CHARGE, UNKNOWN_CHARGE + 2))
    texts = {name: _opened_texts(folder, name, n) for name in _TEXTS}
    decoy = is_decoy.view(np.bool_)
    has_decoys = _with_decoys(entry, decoy, texts["peptidoform"], numbers["decoys"])
    return References(
        Entries(texts, of_entries, offsets, mz, intensity),
        entry,
        decoy,
        has_decoys,
        own_charge,
        own_mz,
        mass,
        peaks,
        starts,
        numbers["left_out"],
        numbers["decoys"],
    )


def _with_decoys(entry: NDArray[np.int64], is_decoy: NDArray[np.bool_], peptidoform: pa.StringArray, decoys: str) -> NDArray[np.bool_]:
    """Return True for each reference that has decoys (see `References.has_decoys`)."""
    if decoys == "shuffle":
        return (np.bincount(entry[is_decoy], minlength=len(peptidoform)) > 0)[entry]
    is_peptide = peptidoform.is_valid().to_numpy(zero_copy_only=False)[entry]
    if not (is_decoy & is_peptide).any():  # decoys in a library need not be peptides
        return np.full(len(entry), is_decoy.any())
    has_decoys: NDArray[np.bool_] = is_peptide | (is_decoy & ~is_peptide).any()
    return has_decoys


def _opened_texts(folder: Path, name: str, n: int) -> pa.StringArray:
    symbols, offsets, is_there = (
        open_column(folder / f"{name}_{column}.npy", kind)
        for column, kind in (("characters", np.uint8), ("offsets", np.int64), ("is_there", np.uint8))
    )
    require(len(offsets) == n + 1 and len(is_there) == n, f"the column '{name}' has another length")
    checked_texts(symbols, offsets, name)
    whole = pa.LargeStringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(symbols))
    return pa.compute.if_else(pa.array(is_there > 0), whole, pa.scalar(None, pa.large_string()))

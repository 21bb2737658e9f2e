"""Spectrum index: preprocessed spectra, and the queries (a spectrum with an assumed charge) in order of precursor mass.

Queries in order of mass are the precursor bins: neighbours look at the same stretch of the peptide dictionary. The fragment bins are a bit
table of the peaks of the spectrum being searched (12.5 KB for 2,000 Th in bins of 0.02), in which the scoring kernel finds a match or a
miss in O(1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of, pieces, ranges, read_only
from proteoscope.engine.chemistry.activation import activation_names
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.ion_series import SpectrumSeries
from proteoscope.engine.spectra.spooling import GrowingColumn, release_pages
from proteoscope.kernels.cpu.preprocessing import PreprocessingRules, preprocess_spectra
from proteoscope.kernels.layouts import PeakArrays, QueryArrays, SpectrumArrays
from proteoscope.kernels.partitions import Partition, equal_partitions

__all__ = ["PreprocessingSettings", "SpectrumIndex", "absolute_and_relative", "build_spectrum_index", "index_spectra"]

_TRANSFORMS = ("none", "square-root", "logarithm", "rank")
_MAXIMUM_CHARGE = 31


class PreprocessingSettings(Protocol):
    """Settings that decide the preprocessing, by the names that every search's parameters have for it."""

    fragment_tolerance: Tolerance
    ion_series: str
    minimum_charge: int
    maximum_charge: int
    peaks_per_window: int
    window_width: float
    precursor_removal: float
    deisotope: bool
    intensity_transform: Literal["none", "square-root", "logarithm", "rank"]
    minimum_fragment_mz: float
    minimum_peaks: int


@dataclass(frozen=True)
class SpectrumIndex:
    """Spectra that are searched.

    Attributes
    ----------
    arrays : preprocessed peaks of all spectra (those with too few peaks have none).
    queries : in order of mass. n_searched : spectra with at least one query.
    ion_series : of the spectra.
    measured_mass : (q,) float64, dalton, of each query before its mass was corrected; None where none was.
    """

    arrays: SpectrumArrays
    queries: QueryArrays
    n_searched: int
    ion_series: SpectrumSeries
    measured_mass: NDArray[np.float64] | None = None

    @property
    def observed_mass(self) -> NDArray[np.float64]:
        """(q,) float64, dalton: masses of the queries as they were measured."""
        return self.queries.mass if self.measured_mass is None else self.measured_mass

    def only(self, spectra: NDArray[np.integer]) -> SpectrumIndex:
        """The queries of these spectra alone, by their numbers; all peaks stay where they are."""
        is_wanted = np.zeros(len(self.arrays.offsets) - 1, bool)
        is_wanted[spectra] = True
        return self._of_queries(np.flatnonzero(is_wanted[self.queries.spectrum]), self.queries.mass)

    @property
    def series(self) -> str:
        """Letters of the ion series of all spectra."""
        (letters,) = self.ion_series.letters
        return letters

    def by_series(self) -> list[SpectrumIndex]:
        """Return the queries of each ion series, in the order of `SpectrumSeries.letters`; all in one where there is one series."""
        if self.ion_series.is_single:
            return [self]
        number = self.ion_series.number[self.queries.spectrum]
        found = [
            self._of_queries(rows, self.queries.mass).with_series(letters)
            for k, letters in enumerate(self.ion_series.letters)
            if len(rows := np.flatnonzero(number == k))
        ]
        return found or [self.with_series(self.ion_series.letters[0])]

    def with_series(self, letters: str) -> SpectrumIndex:
        """Return the same spectra with one ion series for all, whatever their activation."""
        return replace(self, ion_series=SpectrumSeries.of(letters, self.ion_series.activation))

    def activation_counts(self) -> dict[tuple[str, str], int]:
        """Return the number of searched spectra by the name of their activation, empty where unknown, and their ion series."""
        spectrum = np.unique(self.queries.spectrum)
        pairs = np.stack((self.ion_series.activation[spectrum], self.ion_series.number[spectrum]))
        kinds, count = np.unique(pairs, axis=1, return_counts=True)
        names = activation_names(kinds[0])
        return {(name, self.ion_series.letters[k]): n for name, k, n in zip(names, kinds[1].tolist(), count.tolist(), strict=True)}

    def corrected(self, error: NDArray[np.float64]) -> SpectrumIndex:
        """The same with the masses that the precursors would have had without an error.

        Parameters
        ----------
        error : (n,) float64, of each spectrum: by how much its precursor was measured too heavy, parts per million.
        """
        mass = self.queries.mass / (1.0 + error[self.queries.spectrum] * 1e-6)
        return self._of_queries(np.argsort(mass, kind="stable"), mass)

    def _of_queries(self, rows: NDArray[np.integer], mass: NDArray[np.float64]) -> SpectrumIndex:
        """Some of the queries, in the order given, with these masses of all."""
        queries = QueryArrays(self.queries.spectrum[rows], self.queries.charge[rows], mass[rows])
        is_corrected = self.measured_mass is not None or mass is not self.queries.mass
        measured = self.observed_mass[rows] if is_corrected else None
        return SpectrumIndex(self.arrays, queries, len(np.unique(queries.spectrum)), self.ion_series, measured)


def absolute_and_relative(tolerance: Tolerance) -> tuple[float, float]:
    """A tolerance as the kernels take it: (dalton, fraction)."""
    return (0.0, tolerance.value * 1e-6) if tolerance.unit == "ppm" else (tolerance.value, 0.0)


def build_spectrum_index(spectra: Spectra, settings: PreprocessingSettings, resources: Resources) -> SpectrumIndex:
    """Preprocess the spectra and list the queries."""
    n, progress = len(spectra), resources.progress
    charges = _charges(spectra.charge_mask, settings)
    ion_series = SpectrumSeries.of(settings.ion_series, spectra.activation)
    # Only electron transfer leaves precursors with fewer charges; elsewhere there would be fragments at these places.
    is_electron_transfer = ion_series.have(frozenset("cz"))
    known = np.where((charges.sum(axis=1) == 1) & is_electron_transfer, charges.argmax(axis=1), 0)
    progress.stage("Preprocessing spectra", n)
    rules = PreprocessingRules(
        settings.peaks_per_window,
        settings.window_width,
        settings.precursor_removal,
        *absolute_and_relative(settings.fragment_tolerance),
        settings.deisotope,
        _TRANSFORMS.index(settings.intensity_transform),
        settings.minimum_fragment_mz,
    )
    counts, columns = [], (GrowingColumn(np.float64), GrowingColumn(np.float32), GrowingColumn(np.float32))
    # Some at a time: before it is known how many peaks are kept, there is room for all.
    for some in pieces(spectra.offsets[:-1]):
        count, kept = _preprocessed(spectra, known, some, rules, settings.minimum_peaks, resources)
        counts.append(count)
        for column, values in zip(columns, kept, strict=True):
            column.append(values)
        for values in (spectra.mz, spectra.intensity):
            release_pages(values)
    count = np.concatenate([np.zeros(0, np.int64), *counts])
    arrays = SpectrumArrays(offsets_of(count), *(column.finish() for column in columns))
    spectrum, charge = np.nonzero(charges & (count > 0)[:, None] & np.isfinite(spectra.precursor_mz)[:, None])
    mass = (spectra.precursor_mz[spectrum] - PROTON_MASS) * charge
    others = spectra.others
    if len(others.spectrum):
        row, more = np.nonzero(_charges(others.charge_mask, settings) & (count[others.spectrum] > 0)[:, None])
        spectrum, charge = np.append(spectrum, others.spectrum[row]), np.append(charge, more)
        mass = np.append(mass, (others.mz[row] - PROTON_MASS) * more)
    order = np.argsort(mass, kind="stable")
    queries = QueryArrays(spectrum[order].astype(np.int64), charge[order].astype(np.int64), mass[order])
    return SpectrumIndex(arrays, queries, int(np.count_nonzero(np.bincount(spectrum, minlength=n))), ion_series)


def index_spectra(spectra: Spectra, settings: PreprocessingSettings, resources: Resources) -> SpectrumIndex:
    """Preprocess the spectra of a search and list the queries, as `build_spectrum_index`.

    Raises
    ------
    InputError : no spectrum can be searched.
    """
    with resources.clock.stage("plan"):
        index = build_spectrum_index(spectra, settings, resources)
    if not index.n_searched:
        raise _nothing_to_search(spectra, settings.minimum_peaks)
    return index


def _preprocessed(
    spectra: Spectra, known: NDArray[np.int64], some: slice, rules: PreprocessingRules, minimum_peaks: int, resources: Resources
) -> tuple[NDArray[np.int64], tuple[NDArray, NDArray, NDArray]]:
    """How many peaks of each of some spectra are kept, none of those with too few; and the columns of `SpectrumArrays` of these."""
    first, last, _ = some.indices(len(spectra))
    offsets = spectra.offsets[first : last + 1]
    peaks = slice(int(offsets[0]), int(offsets[-1]))
    arrays = PeakArrays(offsets - offsets[0], read_only(spectra.mz[peaks]), read_only(spectra.intensity[peaks]))
    count, mz = np.zeros(last - first, np.int64), np.empty_like(arrays.mz)
    weight, correlation = np.empty_like(arrays.intensity), np.empty_like(arrays.intensity)

    def preprocess(part: Partition) -> None:
        preprocess_spectra(
            arrays, spectra.precursor_mz[first:last], known[first:last], part.first, part.last, rules, count, mz, weight, correlation
        )

    threads = resources.threads
    parts = equal_partitions(np.diff(offsets), threads)
    run_on_threads(preprocess, parts, threads, resources.progress, steps=lambda part: part.last - part.first)
    count[count < minimum_peaks] = 0
    _, kept = ranges(arrays.offsets[:-1], arrays.offsets[:-1] + count)
    return count, (mz[kept], weight[kept], correlation[kept])


def _nothing_to_search(spectra: Spectra, minimum_peaks: int) -> InputError:
    """Return why none of the spectra can be searched, as far as the spectra show it."""
    peaks = np.diff(spectra.offsets)
    n, n_empty, n_without_precursor = len(spectra), int((peaks == 0).sum()), int((~np.isfinite(spectra.precursor_mz)).sum())
    path = spectra.files[0] if len(spectra.files) == 1 else f"{len(spectra.files)} files"
    if n == 0:
        return InputError(path, "holds no spectrum of fragments", remedy="Give a run with MS/MS spectra")
    reasons = [f"{n_empty:,} hold no peak"] if n_empty else []
    reasons += [f"{n_without_precursor:,} have no precursor m/z"] if n_without_precursor else []
    if not reasons or max(n_empty, n_without_precursor) < n:
        reasons.append(f"{'the others' if reasons else 'they'} keep fewer than minimum_peaks={minimum_peaks} peaks")
    return InputError(
        path,
        f"none of the {n:,} spectra can be searched: {', '.join(reasons)}",
        remedy="Check how the run was converted, or lower minimum_peaks",
    )


def _charges(mask: NDArray[np.uint32], settings: PreprocessingSettings) -> NDArray[np.bool_]:
    """(n, charges) bool: the charges that the file gives, or those to try where it gives none."""
    table = (mask[:, None] >> np.arange(_MAXIMUM_CHARGE, dtype=np.uint32)[None, :]) & 1 > 0
    table[:, 0] = False
    table[~table.any(axis=1), settings.minimum_charge : settings.maximum_charge + 1] = True
    return table

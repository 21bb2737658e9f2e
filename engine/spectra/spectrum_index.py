"""Spectrum index: preprocessed spectra, and queries (a spectrum with an assumed charge) sorted by precursor mass.

Queries are sorted by mass, so that neighbouring queries use the same part of the peptide dictionary. During scoring, the peaks of the
current spectrum are a table of bits, one per m/z bin (12.5 KB for 2,000 Th in bins of 0.02 Th), in which a fragment is looked up in O(1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import batch_segments, ranges, read_only, row_mask, segment_offsets
from proteoscope.engine.chemistry.activation import activation_names
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.spectra.columns import Spectra, SpectrumSeries
from proteoscope.engine.spectra.spooling import GrowingColumn, release_pages
from proteoscope.kernels.cpu.preprocessing import PreprocessingRules, preprocess_spectra
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import PeakArrays, QueryArrays, SpectrumArrays

__all__ = ["PreprocessingSettings", "SpectrumIndex", "absolute_and_relative", "build_spectrum_index", "index_spectra"]

_TRANSFORMS = ("none", "square-root", "logarithm", "rank")
_MAXIMUM_CHARGE = 31


class PreprocessingSettings(Protocol):
    """Settings of the preprocessing, named as in the parameters of all searches.

    Attributes
    ----------
    fragment_tolerance : Tolerance
        Maximum error of the m/z of fragments.
    ion_series : str
        Fragment ions to match, such as ``by``, or a word to select them by the activation of the spectrum.
    minimum_charge, maximum_charge : int
        Bounds of the charges that are assumed for spectra of unknown charge.
    peaks_per_window : int
        Number of most intense peaks used in each m/z window.
    window_width : float
        Width of the windows in thomson.
    precursor_removal : float
        Peaks within this distance of the precursor, in thomson, are removed; 0 removes none.
    deisotope : bool
        True to remove isotope peaks.
    intensity_transform : str
        Transformation of the intensities.
    minimum_fragment_mz : float
        Minimum m/z of peaks in thomson.
    minimum_peaks : int
        Minimum number of peaks of a spectrum; spectra with fewer peaks are not searched.
    """

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
    """Preprocessed spectra and the queries to search.

    Attributes
    ----------
    arrays : SpectrumArrays
        Preprocessed peaks of all spectra; spectra with too few peaks have none.
    queries : QueryArrays
        Queries, q of them, sorted by mass.
    n_searched : int
        Number of spectra with at least one query.
    ion_series : SpectrumSeries
        Ion series of all spectra.
    measured_mass : ndarray of float64, shape (q,), optional
        Mass of each query in dalton before precursor masses were corrected; None if they were not corrected.
    """

    arrays: SpectrumArrays
    queries: QueryArrays
    n_searched: int
    ion_series: SpectrumSeries
    measured_mass: NDArray[np.float64] | None = None

    @property
    def observed_mass(self) -> NDArray[np.float64]:
        """Mass of each query as measured, without correction, in dalton, shape (q,)."""
        return self.queries.mass if self.measured_mass is None else self.measured_mass

    def only(self, spectra: NDArray[np.integer]) -> SpectrumIndex:
        """Return an index with only the queries of the given spectra; the peaks are unchanged."""
        is_selected = row_mask(len(self.arrays.offsets) - 1, spectra)
        return self._select_queries(np.flatnonzero(is_selected[self.queries.spectrum]), self.queries.mass)

    @property
    def series(self) -> str:
        """The ion series that all spectra have, as characters; raises ValueError if spectra have different series."""
        (symbols,) = self.ion_series.symbols
        return symbols

    def by_series(self) -> list[SpectrumIndex]:
        """Return one index for each set of ion series with queries, in the order of `SpectrumSeries.symbols`."""
        if self.ion_series.is_single:
            return [self]
        number = self.ion_series.number[self.queries.spectrum]
        indexes = [
            self._select_queries(rows, self.queries.mass).with_series(symbols)
            for k, symbols in enumerate(self.ion_series.symbols)
            if len(rows := np.flatnonzero(number == k))
        ]
        return indexes or [self.with_series(self.ion_series.symbols[0])]

    def with_series(self, symbols: str) -> SpectrumIndex:
        """Return an index of the same spectra with the ion series `symbols` for all, regardless of their activation."""
        return replace(self, ion_series=SpectrumSeries.for_spectra(symbols, self.ion_series.activation))

    def activation_counts(self) -> dict[tuple[str, str], int]:
        """Return the number of searched spectra by (activation, ion series), such as ``("HCD", "by")``; an unknown activation is ''."""
        spectrum = np.unique(self.queries.spectrum)
        symbols = self.ion_series.symbols
        kinds, count = np.unique(
            self.ion_series.activation[spectrum].astype(np.int64) * len(symbols) + self.ion_series.number[spectrum], return_counts=True
        )
        activation, number = np.divmod(kinds, len(symbols))
        names = activation_names(activation.astype(np.uint8))
        return {(name, symbols[k]): n for name, k, n in zip(names, number.tolist(), count.tolist(), strict=True)}

    def corrected(self, error: NDArray[np.float64]) -> SpectrumIndex:
        """Return an index of the same spectra with corrected precursor masses.

        Parameters
        ----------
        error : ndarray of float64, shape (n,)
            Mass error of each precursor in parts per million, positive if the measured mass is too large.
        """
        mass = self.queries.mass / (1.0 + error[self.queries.spectrum] * 1e-6)
        return self._select_queries(np.argsort(mass, kind="stable"), mass)

    def _select_queries(self, rows: NDArray[np.integer], mass: NDArray[np.float64]) -> SpectrumIndex:
        """Return an index with only the queries `rows`, in this order; `mass` is the new mass of each query of this index."""
        queries = QueryArrays(self.queries.spectrum[rows], self.queries.charge[rows], mass[rows])
        is_corrected = self.measured_mass is not None or mass is not self.queries.mass
        measured = self.observed_mass[rows] if is_corrected else None
        return SpectrumIndex(self.arrays, queries, len(np.unique(queries.spectrum)), self.ion_series, measured)


def absolute_and_relative(tolerance: Tolerance) -> tuple[float, float]:
    """Return a tolerance as the two numbers that kernels expect: in dalton, and as a fraction of the mass; one of them is 0."""
    return (0.0, tolerance.value * 1e-6) if tolerance.unit == "ppm" else (tolerance.value, 0.0)


def build_spectrum_index(spectra: Spectra, settings: PreprocessingSettings, resources: Resources) -> SpectrumIndex:
    """Return an index of preprocessed spectra and their queries.

    Parameters
    ----------
    spectra : Spectra
        The n spectra.
    settings : PreprocessingSettings
        Settings of a search.
    resources : Resources
        Threads and progress.

    Returns
    -------
    SpectrumIndex
        Preprocessed spectra with queries.
    """
    n, progress = len(spectra), resources.progress
    charges = _charges(spectra.charge_mask, settings)
    ion_series = SpectrumSeries.for_spectra(settings.ion_series, spectra.activation)
    # Only electron transfer produces charge-reduced precursors; after collisions, peaks at these m/z are fragments.
    is_electron_transfer = ion_series.have(frozenset("cz"))
    reduced_charge = np.where((charges.sum(axis=1) == 1) & is_electron_transfer, charges.argmax(axis=1), 0)
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
    counts = []
    mz, weight, correlation = GrowingColumn(np.float64), GrowingColumn(np.float32), GrowingColumn(np.float32)
    # Process batches, since buffers have the size of all peaks of a batch.
    for batch in batch_segments(spectra.offsets[:-1]):
        count, peaks = _preprocessed(spectra, reduced_charge, batch, rules, settings.minimum_peaks, resources)
        counts.append(count)
        mz.append(peaks[0])
        weight.append(peaks[1])
        correlation.append(peaks[2])
        release_pages(spectra.mz)
        release_pages(spectra.intensity)
    count = np.concatenate([np.zeros(0, np.int64), *counts])
    arrays = SpectrumArrays(segment_offsets(count), mz.finish(), weight.finish(), correlation.finish())
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
    """Return an index of the preprocessed spectra of a search and their queries (see `build_spectrum_index`).

    Parameters
    ----------
    spectra : Spectra
        Spectra of all files.
    settings : PreprocessingSettings
        Settings of the search.
    resources : Resources
        Threads, progress and clock.

    Raises
    ------
    InputError
        If no spectrum can be searched.
    """
    with resources.clock.stage("plan"):
        index = build_spectrum_index(spectra, settings, resources)
    if not index.n_searched:
        raise _nothing_to_search(spectra, settings.minimum_peaks)
    return index


def _preprocessed(
    spectra: Spectra, reduced_charge: NDArray[np.int64], batch: slice, rules: PreprocessingRules, minimum_peaks: int, resources: Resources
) -> tuple[NDArray[np.int64], tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.float32]]]:
    """Preprocess a batch of spectra; return each spectrum's number of peaks (0 if below `minimum_peaks`), and the columns of the peaks."""
    first, last, _ = batch.indices(len(spectra))
    offsets = spectra.offsets[first : last + 1]
    peaks = slice(int(offsets[0]), int(offsets[-1]))
    arrays = PeakArrays(offsets - offsets[0], read_only(spectra.mz[peaks]), read_only(spectra.intensity[peaks]))
    count, mz = np.zeros(last - first, np.int64), np.empty_like(arrays.mz)
    weight, correlation = np.empty_like(arrays.intensity), np.empty_like(arrays.intensity)

    def preprocess(part: Partition) -> None:
        preprocess_spectra(
            arrays,
            spectra.precursor_mz[first:last],
            reduced_charge[first:last],
            part.first,
            part.last,
            rules,
            count,
            mz,
            weight,
            correlation,
        )

    threads = resources.threads
    parts = equal_partitions(np.diff(offsets), threads)
    run_on_threads(preprocess, parts, threads, resources.progress, steps=lambda part: part.last - part.first)
    count[count < minimum_peaks] = 0
    _, retained = ranges(arrays.offsets[:-1], arrays.offsets[:-1] + count)
    return count, (mz[retained], weight[retained], correlation[retained])


def _nothing_to_search(spectra: Spectra, minimum_peaks: int) -> InputError:
    """Return the error to raise if no spectrum can be searched; its text contains the reasons."""
    peaks = np.diff(spectra.offsets)
    n, n_empty, n_without_precursor = len(spectra), int((peaks == 0).sum()), int((~np.isfinite(spectra.precursor_mz)).sum())
    path = spectra.files[0] if len(spectra.files) == 1 else f"{len(spectra.files)} files"
    if n == 0:
        return InputError(path, "has no MS/MS spectra", remedy="Give a run with MS/MS spectra")
    reasons = [f"{n_empty:,} have no peaks"] if n_empty else []
    reasons += [f"{n_without_precursor:,} have no precursor m/z"] if n_without_precursor else []
    if not reasons or max(n_empty, n_without_precursor) < n:
        reasons.append(f"{'the others' if reasons else 'they'} have fewer than minimum_peaks={minimum_peaks} peaks after preprocessing")
    return InputError(
        path,
        f"none of the {n:,} spectra can be searched: {', '.join(reasons)}",
        remedy="Check how the run was converted, or lower minimum_peaks",
    )


def _charges(mask: NDArray[np.uint32], settings: PreprocessingSettings) -> NDArray[np.bool_]:
    """Return a mask, (n, charges): True for the possible charges of each spectrum, or for all charges to try if its charge is unknown."""
    table = (mask[:, None] >> np.arange(_MAXIMUM_CHARGE, dtype=np.uint32)[None, :]) & 1 > 0
    table[:, 0] = False
    table[~table.any(axis=1), settings.minimum_charge : settings.maximum_charge + 1] = True
    return table

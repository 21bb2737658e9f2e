"""Search of spectra against the peptide dictionary on a GPU, query by query or by tiles of queries.

Counterpart of `proteoscope.kernels.cpu.scoring`.

The dictionary is copied to the device once. Queries are sent in batches through pinned buffers, and packed and sent while the previous
batch is searched. The best candidates of each query and the histogram of all scores are returned.

Operations are counted by `proteoscope.kernels.counts.spectrum_search`.

If 32 queries with adjacent masses (a tile) have enough candidates in common, they are searched together by the kernel for dense windows.
For each (peptide, modification combination) in the union of the tile's windows, it computes the ions of each modification state,
(length - 1) x series x charges x about half of the states, instead of the ions of every arrangement. Each arrangement then needs only a few
additions and a logarithm. For each ion, a lane reads from shared memory which of the 32 queries it may match. The look-up of such a match
reads two bytes of the query's table of 64 KB, which stays in the L2 cache. The kernel uses 80 registers, so that a block of 24 warps fits
on a multiprocessor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels import counts
from proteoscope.kernels.cpu.elementary import FACTORIAL_LOG
from proteoscope.kernels.cuda.gathering import gather_peaks, lightest_weights
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.rates import USUAL_RATES, items_between_checks
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceError, DeviceMemoryError, UnsupportedSearchError
from proteoscope.kernels.layouts import (
    HitArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoringSettings,
    SpectrumArrays,
)
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = ["MAXIMUM_PEAKS", "SpectrumSearch"]

_MAXIMUM_NUMBERED_PEAKS = (1 << 16) - 1
MAXIMUM_PEAKS = tuple(2048 if kind.needs_correlation else _MAXIMUM_NUMBERED_PEAKS for kind in SCORE_KINDS)
"""Maximum number of peaks of a spectrum on a GPU, by score; for XCorr, with up to 512 bins in the histograms."""

_THREADS = 256
# Limits of the kernels.
_MAXIMUM_SLOTS, _MAXIMUM_BEST, _MAXIMUM_SERIES, _MAXIMUM_ISOTOPE_ERRORS, _MAXIMUM_WINDOWS = 8, 32, 3, 16, 1 << 24
_MAXIMUM_FRAGMENT_CHARGE = 5
_CANDIDATE_BYTES = 24
_SHARED_BYTES = 48 << 10  # available on every device without opting in
_STATIC_SHARED_BYTES = 20 << 10
_MAXIMUM_WORDS = 3072  # size of the bit table: 98,304 bins
_FEWEST_WORDS = 128
_BATCHES_UNDER_WAY = 3  # with only two, the device would idle while the next batch is packed
_CORRELATION_HALF_WINDOW = 75
_FACTORIALS = 1024  # for ions from one end: up to 62 in three series with five charges
_NONE = 255
# Sizes for the kernel for dense windows.
_TILE, _MAXIMUM_DENSE_BEST, _MAXIMUM_DENSE_WINDOWS, _MAXIMUM_DENSE_PEAKS = 32, 8, 96, 1022
_DENSE_WARPS, _DENSE_STATIC_SHARED_BYTES, _DENSE_WARP_BYTES = 24, 8 << 10, 1696
_FINE_BINS = 1 << 15  # bins in the table of a tile
# Number of warps of a block, and number of fine bins (as power of two) in each coarse bin, which is in shared memory: the first that fits.
_DENSE_SHAPES = tuple(
    (warps, shift) for warps, shifts in ((_DENSE_WARPS, (1, 2, 3)), (_DENSE_WARPS // 2, (1, 2, 3, 4))) for shift in shifts
)
_EDGE_BYTES = 16
_MAXIMUM_IONS_OF_SERIES, _DOT_BITS, _COUNT_BITS = 62, 48, 8
_MAXIMUM_BATCH_BYTES = 1 << 33  # peaks have 12 bytes and 31-bit numbers; most of it is also pinned on the host
_MAXIMUM_CANDIDATES = (1 << 31) - (1 << 16)  # per query or tile: 31-bit numbers, and warps request a few beyond the last
_LANDMARKS = 1 << 16  # masses, few enough for a CPU's cache, to estimate numbers of peptides in windows
_TILES_TOGETHER = 64  # tiles per launch: small alternating launches would leave the device idle
_MARGIN = 1e-6  # dalton

_SETTINGS = np.dtype(
    [
        *[
            (name, np.float64)
            for name in (
                "precursor_absolute",
                "precursor_relative",
                "isotope_spacing",
                "fragment_absolute",
                "fragment_relative",
                "bin_width",
                "correlation_bin_width",
                "correlation_bin_offset",
                "ksdp_power",
                "histogram_width",
                "n_term_mass",
                "c_term_mass",
            )
        ],
        ("residue_mass", np.float64, 26),
        ("n_term_series", np.float64, _MAXIMUM_SERIES),
        ("c_term_series", np.float64, _MAXIMUM_SERIES),
        ("isotope_minimum_mass", np.float64, _MAXIMUM_ISOTOPE_ERRORS),
        ("isotope_error", np.int64, _MAXIMUM_ISOTOPE_ERRORS),
        *[
            (name, np.int64)
            for name in (
                "n_isotope_errors",
                "n_n_term_series",
                "n_c_term_series",
                "maximum_fragment_charge",
                "n_words",
                "n_correlation_bins",
                "ksdp_window",
                "minimum_matched_ions",
                "first_peptide",
                "n_peptides",
                "n_combinations",
                "maximum_forms",
                "n_best",
                "n_slots",
                "n_bins",
                "candidates_of_item",
                "maximum_with_known",
            )
        ],
    ]
)
"""Layout of the struct Settings in search.cuh."""

_INPUTS = (
    "mass",
    "position",
    "length",
    "flags",
    "letters",
    "residues",
    "known",
    "known_site",
    "known_modification",
    "modification_mass",
    "residue_mask",
    "place",
    "combination_mass",
    "combination_slots",
    "factorial_log",
    "offsets",
    "mz",
    "weight",
    "height",
    "query_mass",
    "query_charge",
    "item_query",
    "item_part",
    "best_of_items",
    "histogram",
)
"""Pointers in the struct Inputs in search.cuh."""

_TILES = np.dtype(
    [
        *[(name, np.uint64) for name in ("first_item", "edges", "table", "matches", "bins_of_thomson", "bars")],
        ("units", np.float64),
        ("n_queries", np.int32),
        ("maximum_peaks", np.int32),
        ("coarse_shift", np.int32),
    ],
    align=True,
)
"""Layout of the struct Tiles in tiles.cuh."""

_HITS = np.dtype([(name, np.uint64) for name in ("score", "peptide", "isotope_error", "site", "modification", "n_candidates")])
"""Layout of the struct Hits in best_hits.cu."""

_CARRIED = np.dtype([(name, np.uint64) for name in ("combination_slots", "known", "known_modification")])
"""Layout of the struct Carried in best_hits.cu."""

_OF_A_PEPTIDE = ("mass", "position", "length", "flags", "letters", "known")


class SpectrumSearch:
    """Search of spectra against a peptide dictionary on a device; if the dictionary does not fit, ranges of it are sent.

    Parameters
    ----------
    device
        GPU; 80 % of its free memory may be used, and half of this for the dictionary.
    peptides, modifications, settings
        See `proteoscope.kernels.cpu.scoring.SpectrumSearch`.

    Raises
    ------
    UnsupportedSearchError
        If the search exceeds the limits of the kernel.
    DeviceMemoryError
        If the proteins do not fit.

    Attributes
    ----------
    share_of_free_memory
        Fraction of the free memory that may be used.
    candidates_of_batch, candidates_of_item
        Number of candidates between two checks for cancellation, and number of candidates per block.
    minimum_sharing
        Minimum mean number of queries per candidate at which tiles of 32 queries are searched by the kernel for dense windows. The queries
        of other tiles are searched one by one.
    dense_candidates_of_batch, dense_candidates_of_item
        Like `candidates_of_batch` and `candidates_of_item`, for the kernel for dense windows.
    """

    share_of_free_memory = 0.8
    candidates_of_batch = 1 << 24  # takes some tens of milliseconds
    candidates_of_item = 1 << 14
    minimum_sharing = 4.0  # below this, searching query by query is as fast
    dense_candidates_of_batch = 1 << 28
    dense_candidates_of_item = 1 << 14  # candidates in the union of the windows of a tile

    def __init__(self, device: Gpu, peptides: PeptideArrays, modifications: ModificationArrays, settings: ScoringSettings) -> None:
        gpu = device
        self._gpu, self._settings, self._modifications = gpu, settings, modifications
        self._kind = SCORE_KINDS[settings.score]
        self._slots_of_combination = _slots_of_combination(modifications)
        self._check_sizes(len(peptides.mass))
        budget = int(gpu.free_bytes() * self.share_of_free_memory)
        self._peptides = {name: getattr(peptides, name) for name in _OF_A_PEPTIDE}
        self._queries_mass_bounds = _mass_bounds(modifications, settings)
        columns: dict[str, NDArray] = {
            "residues": peptides.residues,
            "known_site": _of_all_slots(peptides.known_site),
            "known_modification": _of_all_slots(peptides.known_modification),
            "modification_mass": modifications.mass,
            "residue_mask": modifications.residue_mask,
            "place": modifications.place.astype(np.int32),
            "combination_mass": modifications.combination_mass,
            "combination_slots": self._slots_of_combination,
            "factorial_log": FACTORIAL_LOG[:_FACTORIALS],
        }
        self._workspace_bytes = budget - sum(column.nbytes for column in columns.values())
        self._bytes_of_peptide = max(1, sum(column.itemsize for column in self._peptides.values() if len(column)))  # 1 without peptides
        self._maximum_peptides = max(0, self._workspace_bytes // 2 // self._bytes_of_peptide)  # the other half of the memory is for batches
        if self._maximum_peptides == 0:
            raise DeviceMemoryError(f"{gpu.name} has {budget / 1e6:,.0f} MB of memory available, which is not enough for the proteins")
        self._scalars = self._packed_settings(peptides)
        self._units_of_weight = 1.0  # scale of weights in the kernel for dense windows, see `_prepare_weights`
        self._weights: NDArray[np.float32] | None = None
        self._lightest_weights = np.zeros(0, np.float32)
        self._stream = gpu.stream()
        self._columns = sent(gpu, columns, self._stream)
        self._brought = 0, 0
        if len(peptides.mass) <= self._maximum_peptides:
            with suppress(DeviceMemoryError):
                self._bring(0, len(peptides.mass))
        gpu.wait(self._stream)

    def _bring(self, low: int, high: int) -> None:
        """Send the peptides `low:high` to the device in place of the previous peptides, unless they are already there."""
        if self._brought[0] <= low and high <= self._brought[1]:
            return
        self._brought = 0, 0
        for name in self._peptides:
            self._columns.pop(name, None)
        self._columns |= sent(self._gpu, {name: column[low:high] for name, column in self._peptides.items()}, self._stream)
        self._gpu.wait(self._stream)
        self._brought = low, high
        self._scalars["first_peptide"], self._scalars["n_peptides"] = low, high - low
        self._peptides_of_landmark = max(1, (high - low) // _LANDMARKS)
        self._landmarks = self._peptides["mass"][low : high : self._peptides_of_landmark].copy()
        self._batch_bytes = min(
            _MAXIMUM_BATCH_BYTES, max(0, self._workspace_bytes - (high - low) * self._bytes_of_peptide) // _BATCHES_UNDER_WAY
        )

    def _stretches(self, queries: QueryArrays, first: int, last: int) -> Generator[tuple[int, int], None, None]:
        """Divide queries into ranges whose peptides fit on the device; send the peptides of each range, and yield the range."""
        mass, begun = self._peptides["mass"], first
        below, above = self._queries_mass_bounds(queries.mass[first:last])
        while begun < last:
            low, high, stop = 0, len(mass), last
            if high > self._maximum_peptides:
                low = int(np.searchsorted(mass, below[begun - first]))
                highs = np.searchsorted(mass, above[begun - first :], side="right")
                stop = begun + int(np.searchsorted(highs, low + self._maximum_peptides, side="right"))
                if stop == begun:
                    raise DeviceMemoryError(f"{self._gpu.name} has too little memory for the candidates of one spectrum")
                high = int(highs[stop - begun - 1])
            try:
                self._bring(low, high)
            except DeviceMemoryError:
                half = min(self._maximum_peptides, high - low) // 2
                if half == 0:  # no smaller transfer is possible
                    raise
                self._maximum_peptides = half
                continue
            yield begun, stop
            begun = stop

    def _check_sizes(self, n_peptides: int) -> None:
        settings, modifications = self._settings, self._modifications
        series = max(len(settings.n_term_series), len(settings.c_term_series))
        windows = len(modifications.combination_mass) * len(settings.isotope_errors)
        for what, n, most in (
            ("peptides", n_peptides, (1 << 31) - 1),
            ("modifications of a peptide", int(modifications.combination_count.sum(axis=1).max(initial=0)), _MAXIMUM_SLOTS),
            ("ion series from one end", series, _MAXIMUM_SERIES),
            ("fragment charges", settings.maximum_fragment_charge, _MAXIMUM_FRAGMENT_CHARGE),
            ("isotope errors", len(settings.isotope_errors), _MAXIMUM_ISOTOPE_ERRORS),
            ("combinations of modifications and isotope errors", windows, _MAXIMUM_WINDOWS - 1),
        ):
            if n > most:
                raise UnsupportedSearchError(f"{n:,} {what} are more than the {most:,} that a GPU supports")

    def _packed_settings(self, peptides: PeptideArrays) -> NDArray[np.void]:
        settings, scalars = self._settings, np.zeros(1, _SETTINGS)
        for name in (
            "precursor_absolute",
            "precursor_relative",
            "isotope_spacing",
            "fragment_absolute",
            "fragment_relative",
            "bin_width",
            "correlation_bin_width",
            "correlation_bin_offset",
            "ksdp_power",
            "ksdp_window",
            "minimum_matched_ions",
            "maximum_fragment_charge",
        ):
            scalars[name] = getattr(settings, name)
        scalars["n_term_mass"], scalars["c_term_mass"] = peptides.n_term_mass, peptides.c_term_mass
        scalars["residue_mass"] = peptides.residue_mass
        for name, values, n in (
            ("n_term_series", settings.n_term_series, "n_n_term_series"),
            ("c_term_series", settings.c_term_series, "n_c_term_series"),
            ("isotope_error", settings.isotope_errors, "n_isotope_errors"),
            ("isotope_minimum_mass", settings.isotope_minimum_mass, "n_isotope_errors"),
        ):
            scalars[name][0, : len(values)] = values
            scalars[n] = len(values)
        scalars["n_correlation_bins"] = int(settings.maximum_mz / settings.correlation_bin_width) + 2 + _CORRELATION_HALF_WINDOW
        scalars["n_combinations"] = len(self._modifications.combination_mass)
        scalars["maximum_forms"] = self._modifications.maximum_forms
        scalars["candidates_of_item"] = self.candidates_of_item
        scalars["maximum_with_known"] = peptides.known_site.shape[1] if len(peptides.known) else 0
        return scalars

    def count_candidates(self, queries: QueryArrays, first: int, last: int, out: NDArray[np.int64]) -> None:
        """Write the number of candidates of queries (see `proteoscope.kernels.cpu.scoring.SpectrumSearch.count_candidates`)."""
        gpu = self._gpu
        for begun, stop in self._stretches(queries, first, last):
            result = np.empty(stop - begun, np.int64)
            device_counts = gpu.buffer(result.nbytes)
            inputs = sent(gpu, {"scalars": self._scalars, "query_mass": queries.mass[begun:stop]}, self._stream)
            columns = self._columns["mass"], self._columns["combination_mass"]
            arguments = (inputs["scalars"], *columns, inputs["query_mass"], np.int32(len(result)), device_counts)
            gpu.launch("candidate_counts.cu", "count_candidates", -(-len(result) * 32 // 128), 128, arguments, self._stream)
            gpu.download(result, device_counts, self._stream)
            gpu.wait(self._stream)
            out[begun:stop] = result

    def search_queries(
        self, spectra: SpectrumArrays, queries: QueryArrays, hits: HitArrays, first: int, last: int
    ) -> Generator[int, None, None]:
        """Search the queries `first:last`, batch by batch (see `proteoscope.kernels.cpu.scoring.SpectrumSearch.search_queries`).

        Yields the end of the finished range after each batch; all rows of `hits` before it are written. Closing the generator stops the
        search.

        Raises
        ------
        UnsupportedSearchError
            If spectra or mass windows exceed the limits of the kernel.
        DeviceError
            If the device fails; rows after the last yielded end are unchanged.
        """
        peaks = np.diff(spectra.offsets)[queries.spectrum]
        shared_bytes = self._set_sizes(hits, int(peaks[first:last].max(initial=0)))
        batches = [_Batch(self._gpu) for _ in range(_BATCHES_UNDER_WAY)]
        for begun, stop in self._stretches(queries, first, last):
            yield from self._search_stretch(spectra, queries, hits, begun, stop, peaks, shared_bytes, batches)

    def _search_stretch(
        self,
        spectra: SpectrumArrays,
        queries: QueryArrays,
        hits: HitArrays,
        first: int,
        last: int,
        peaks: NDArray[np.int64],
        shared_bytes: int,
        free: list[_Batch],
    ) -> Generator[int, None, None]:
        """Search queries whose peptides are on the device; `free` are the batch buffers that are not in use, possibly none."""
        cost = np.zeros(len(queries.mass), np.int64)
        self.count_candidates(queries, first, last, cost)
        if cost.max(initial=0) > _MAXIMUM_CANDIDATES:
            raise UnsupportedSearchError(
                f"a spectrum has {cost.max():,} candidates, more than the {_MAXIMUM_CANDIDATES:,} that a GPU supports"
            )
        n_items = np.maximum(1, -(-cost // self.candidates_of_item))
        n_parts = self._parts_of_tiles(spectra, queries, hits, first, last, peaks, cost)
        parts_of_query = np.repeat(n_parts, _TILE)[: last - first]
        is_dense = parts_of_query > 0
        n_items[first:last] = np.where(is_dense, parts_of_query, n_items[first:last])
        retained, bins, slots = hits.score.shape[1], hits.histogram.shape[1], hits.site.shape[2]
        n_bytes = counts.spectrum_search_bytes(
            peaks,
            n_items,
            hits=retained,
            slots=slots,
            bins=bins,
            candidate_bytes=_CANDIDATE_BYTES,
            with_heights=self._kind.needs_correlation,
        )
        n_bytes[first:last] += np.where(
            is_dense, 2 * _FINE_BINS + _coarse_bytes(1) // _TILE + 2 * _EDGE_BYTES * int(peaks[first:last].max(initial=0)) + 1, 0
        )
        total_bytes, total_cost = (np.concatenate(([0], np.cumsum(values[first:last]))) for values in (n_bytes, cost))
        runs = np.concatenate((np.flatnonzero(np.diff(is_dense)) + 1, [last - first]))
        scalars = sent(self._gpu, {"scalars": self._scalars}, self._stream)["scalars"]
        self._gpu.wait(self._stream)
        running: deque[_Batch] = deque()
        begun = first
        try:
            while begun < last or running:
                if begun == last or not free:
                    yield self._finished(running, free, hits)
                    continue
                dense = bool(is_dense[begun - first])
                run_end = int(runs[np.searchsorted(runs, begun - first, side="right")])
                stop = self._batch_end(total_bytes, total_cost, begun - first, run_end, dense) + first
                try:
                    if dense:
                        parts = n_parts[(begun - first) // _TILE : -(-(stop - first) // _TILE)]
                        free[-1].begin_dense(self, scalars, spectra, queries, hits, begun, stop, parts)
                    else:
                        free[-1].begin(self, scalars, spectra, queries, hits, begun, stop, n_items, shared_bytes)
                except DeviceMemoryError as error:
                    for batch in free:
                        batch.abandon()  # end transfers that were started before the memory ran out
                    if running:
                        yield self._finished(running, free, hits)
                    elif dense and stop - begun <= _TILE:
                        self.minimum_sharing = np.inf  # searching query by query needs less memory
                        yield from self._search_stretch(spectra, queries, hits, begun, last, peaks, shared_bytes, free)
                        return
                    elif stop - begun == 1:
                        raise DeviceError(str(error)) from error
                    self._batch_bytes = min(self._batch_bytes, int(total_bytes[stop - first] - total_bytes[begun - first])) // 2
                    for batch in free:
                        batch.release()
                else:
                    running.append(free.pop())
                    begun = stop
        finally:
            for batch in running:  # pinned buffers must exist until their transfers have ended
                batch.abandon()

    def _prepare_weights(self, spectra: SpectrumArrays) -> None:
        """Compute the smallest peak weight of each spectrum, and the unit in which the kernel for dense windows sums weights.

        The unit is a power of two for which no sum overflows. It is computed once, since all partitions have the same spectra.
        """
        if self._weights is spectra.weight:
            return
        series = len(self._settings.n_term_series) + len(self._settings.c_term_series)
        most = _MAXIMUM_IONS_OF_SERIES * self._settings.maximum_fragment_charge * series * float(spectra.weight.max(initial=0.0))
        self._units_of_weight = float(np.ldexp(1.0, _DOT_BITS - int(np.frexp(most)[1])))
        self._lightest_weights = lightest_weights(spectra.offsets, spectra.weight)
        self._weights = spectra.weight

    def _dense_shared_bytes(self, hits: HitArrays, maximum_peaks: Any, warps: int, coarse_shift: int) -> Any:
        """Return the dynamic shared memory (bytes) of the kernel for dense windows, for one or several numbers of peaks."""
        windows = len(self._modifications.combination_mass) * len(self._settings.isotope_errors)
        searching = _TILE * (8 * (maximum_peaks + 1) + 4 * hits.histogram.shape[1] + 8 * windows)
        searching += warps * _DENSE_WARP_BYTES + _coarse_bytes(coarse_shift)
        return np.maximum(searching, (warps + 1) // 2 * _TILE * _CANDIDATE_BYTES)  # minimum space for merging the hits

    def _dense_shape(self, hits: HitArrays, maximum_peaks: int) -> tuple[int, int, int]:
        """Return the first launch shape that fits: warps of a block, shift of coarse bins, and bytes of dynamic shared memory."""
        sizes = ((*shape, int(self._dense_shared_bytes(hits, maximum_peaks, *shape))) for shape in _DENSE_SHAPES)
        return next(size for size in sizes if size[-1] <= self._available_shared_bytes())

    def _available_shared_bytes(self) -> int:
        return self._gpu.maximum_shared_bytes() - _DENSE_STATIC_SHARED_BYTES

    def _parts_of_tiles(
        self,
        spectra: SpectrumArrays,
        queries: QueryArrays,
        hits: HitArrays,
        first: int,
        last: int,
        peaks: NDArray[np.int64],
        cost: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return the number of blocks of the dense kernel for each tile of 32 queries; 0 if its queries are searched one by one.

        An estimate, from the masses at sample positions of the dictionary, is sufficient.
        """
        settings, carried = self._settings, self._modifications.combination_mass
        starts = np.arange(first, last, _TILE)
        parts = np.zeros(len(starts), np.int64)
        windows = len(carried) * len(settings.isotope_errors)
        ions = _MAXIMUM_IONS_OF_SERIES * settings.maximum_fragment_charge * max(len(settings.n_term_series), len(settings.c_term_series))
        if np.isinf(self.minimum_sharing) or ions >= 1 << _COUNT_BITS:
            return parts
        if not self._kind.dense_on_gpu or hits.score.shape[1] > _MAXIMUM_DENSE_BEST or windows > _MAXIMUM_DENSE_WINDOWS:
            return parts
        lightest, heaviest = queries.mass[starts], queries.mass[np.minimum(starts + _TILE, last) - 1]
        union = np.zeros(len(starts), np.int64)
        for error, least in zip(settings.isotope_errors, settings.isotope_minimum_mass, strict=True):
            shift = error * settings.isotope_spacing
            ends = []
            for of_query, sign, side in ((lightest, -1.0, "left"), (heaviest, 1.0, "right")):
                observed = of_query - shift
                tolerance = settings.precursor_absolute + settings.precursor_relative * observed
                target = (observed + sign * tolerance)[:, None] - carried
                ends.append(np.searchsorted(self._landmarks, target, side=side))  # type: ignore[call-overload]
            union += np.where(heaviest < least, 0, (ends[1] - ends[0]).sum(axis=1))
        union *= self._peptides_of_landmark
        maximum_peaks = np.maximum.reduceat(peaks[first:last], starts - first)
        fits = maximum_peaks <= _MAXIMUM_DENSE_PEAKS
        fits &= self._dense_shared_bytes(hits, maximum_peaks, *_DENSE_SHAPES[-1]) <= self._available_shared_bytes()
        groups = np.arange(0, len(starts), _TILES_TOGETHER)
        shared = np.add.reduceat(cost[first:last], starts[groups] - first) >= self.minimum_sharing * np.add.reduceat(union, groups)
        dense = fits & np.repeat(shared, _TILES_TOGETHER)[: len(starts)] & (union <= _MAXIMUM_CANDIDATES // 2)
        if dense.any():
            self._prepare_weights(spectra)
            minimum_weight = self._lightest_weights[queries.spectrum[first:last]]
            is_fine = minimum_weight * self._units_of_weight < 1 << 23  # weights have 24 bits; the last must be worth less than a unit
            dense &= ~np.logical_or.reduceat(is_fine, starts - first)
        parts[dense] = np.maximum(1, -(-union[dense] // self.dense_candidates_of_item))
        return parts

    def _finished(self, running: deque[_Batch], free: list[_Batch], hits: HitArrays) -> int:
        batch = running.popleft()
        batch.finish(hits)
        free.append(batch)
        return batch.last

    def _batch_end(self, total_bytes: NDArray[np.int64], total_cost: NDArray[np.int64], start: int, run_end: int, dense: bool) -> int:
        """Return the end of the batch that begins at `start`: as many queries (or tiles, if `dense`) as a batch may have, at least one."""
        usual = self.dense_candidates_of_batch if dense else self.candidates_of_batch
        candidates = items_between_checks(usual, self._gpu.rates.lookups, USUAL_RATES.lookups)
        by_bytes = np.searchsorted(total_bytes, total_bytes[start] + self._batch_bytes, side="right") - 1
        by_cost = np.searchsorted(total_cost, total_cost[start] + candidates, side="right") - 1
        stop = min(int(min(by_bytes, by_cost)), run_end)
        step = _TILE if dense else 1
        return min(run_end, start + max(step, (stop - start) // step * step))

    def _set_sizes(self, hits: HitArrays, maximum_peaks: int) -> int:
        """Set the numbers of hits, modification slots, histogram bins and bit table words in the settings of the kernel.

        Return the bytes of dynamic shared memory of a block.
        """
        retained, bins, slots = hits.score.shape[1], hits.histogram.shape[1], hits.site.shape[2]
        if retained > _MAXIMUM_BEST or slots > _MAXIMUM_SLOTS:
            raise UnsupportedSearchError(
                f"{retained} hits with {slots} modifications for a query (a GPU supports {_MAXIMUM_BEST} with {_MAXIMUM_SLOTS})"
            )
        other = 4 * bins + (8 + 12 * maximum_peaks if self._kind.needs_correlation else 0)
        workspace = (_SHARED_BYTES - _STATIC_SHARED_BYTES - other) // 6
        if maximum_peaks > _MAXIMUM_NUMBERED_PEAKS or workspace < _FEWEST_WORDS:
            raise UnsupportedSearchError(f"a spectrum has {maximum_peaks:,} peaks, more than a GPU supports")
        words = min(_MAXIMUM_WORDS, workspace, int(self._settings.maximum_mz / self._settings.bin_width) // 32 + 2)
        self._scalars["n_words"], self._scalars["n_best"], self._scalars["n_bins"], self._scalars["n_slots"] = words, retained, bins, slots
        self._scalars["histogram_width"] = hits.histogram_width
        return other + 6 * words


class _Batch:
    """Pinned and device buffers of a batch of queries, and its stream. Buffers grow as needed and are reused."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._stream = gpu.stream()
        self.release()
        self.first = self.last = 0

    def release(self) -> None:
        """Release all buffers."""
        self._pinned: dict[str, NDArray[np.uint8]] = {}
        self._buffers: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self._out: dict[str, NDArray] = {}

    def _host(self, name: str, kind: type, *shape: int) -> NDArray:
        n_bytes = int(np.prod(shape)) * np.dtype(kind).itemsize
        if name not in self._pinned or len(self._pinned[name]) < n_bytes:
            self._pinned.pop(name, None)
            self._pinned[name] = self._gpu.pinned(n_bytes)
        return self._pinned[name][:n_bytes].view(kind).reshape(shape)

    def _device(self, name: str, n_bytes: int) -> Any:
        if self._sizes.get(name, -1) < n_bytes:
            self._buffers.pop(name, None)
            self._sizes.pop(name, None)
            self._buffers[name] = self._gpu.buffer(n_bytes)
            self._sizes[name] = n_bytes
        return self._buffers[name]

    def begin(
        self,
        search: SpectrumSearch,
        scalars: Any,
        spectra: SpectrumArrays,
        queries: QueryArrays,
        hits: HitArrays,
        first: int,
        last: int,
        n_items: NDArray[np.int64],
        shared_bytes: int,
    ) -> None:
        """Pack and send the queries `first:last`, and start the kernels without waiting for their end."""
        items = n_items[first:last]
        n, total = last - first, int(items.sum())
        item_query = np.repeat(np.arange(n, dtype=np.int32), items)
        first_item = np.concatenate(([0], np.cumsum(items))).astype(np.int32)
        item_part = np.arange(total, dtype=np.int32) - first_item[item_query]
        device_pointers, _, maximum_peaks = self._send(
            search, spectra, queries, hits, first, last, {"item_query": item_query, "item_part": item_part, "first_item": first_item}
        )
        arguments: tuple[Any, ...] = (scalars, device_pointers, np.int32(maximum_peaks))
        self._gpu.launch("sparse_search.cu", search._kind.on_gpu, total, _THREADS, arguments, self._stream, shared_bytes=shared_bytes)
        self._collect(search, scalars)

    def begin_dense(
        self,
        search: SpectrumSearch,
        scalars: Any,
        spectra: SpectrumArrays,
        queries: QueryArrays,
        hits: HitArrays,
        first: int,
        last: int,
        n_parts: NDArray[np.int64],
    ) -> None:
        """Start the kernel for dense windows (see `begin`); `n_parts` is the number of blocks of each tile."""
        gpu, stream, n = self._gpu, self._stream, last - first
        blocks = int(n_parts.sum())
        tile = np.repeat(np.arange(len(n_parts), dtype=np.int32), n_parts)
        item_part = np.arange(blocks, dtype=np.int32) - (np.cumsum(n_parts) - n_parts)[tile].astype(np.int32)
        items = np.repeat(n_parts, _TILE)[:n]  # each block writes one item per query
        first_item = np.concatenate(([0], np.cumsum(items))).astype(np.int32)
        device_pointers, inputs, maximum_peaks = self._send(
            search, spectra, queries, hits, first, last, {"item_query": tile * _TILE, "item_part": item_part, "first_item": first_item}
        )
        table_bytes = len(n_parts) * _TILE * 2 * _FINE_BINS
        table, bars = self._device("table", table_bytes), self._device("bars", 4 * n)
        edges = self._device("edges", len(n_parts) * _TILE * 2 * maximum_peaks * _EDGE_BYTES)
        bins_of_thomson = self._device("bins_of_thomson", 8 * len(n_parts))
        warps, coarse_shift, shared_bytes = search._dense_shape(hits, maximum_peaks)
        matches = self._device("matches", len(n_parts) * _coarse_bytes(coarse_shift))
        gpu.clear(table, table_bytes, stream)
        gpu.clear(matches, len(n_parts) * _coarse_bytes(coarse_shift), stream)
        gpu.clear(bars, 4 * n, stream)
        members = {
            "first_item": inputs["first_item"],
            "edges": edges,
            "table": table,
            "matches": matches,
            "bins_of_thomson": bins_of_thomson,
            "bars": bars,
            "units": search._units_of_weight,
            "n_queries": n,
            "maximum_peaks": maximum_peaks,
            "coarse_shift": coarse_shift,
        }
        arguments = (scalars, device_pointers, struct(gpu, _TILES, members))
        gpu.launch("tile_tables.cu", "tabulate_peaks", len(n_parts), 256, arguments, stream)
        gpu.launch(
            "dense_search.cu",
            search._kind.dense_on_gpu,
            blocks,
            32 * warps,
            arguments,
            stream,
            shared_bytes=shared_bytes,
        )
        self._collect(search, scalars)

    def _send(
        self,
        search: SpectrumSearch,
        spectra: SpectrumArrays,
        queries: QueryArrays,
        hits: HitArrays,
        first: int,
        last: int,
        items: dict[str, NDArray[np.int32]],
    ) -> tuple[Any, dict[str, Any], int]:
        """Pack and send queries and items, and allocate results; return the struct Inputs, the buffers, and the maximum number of peaks."""
        gpu, stream, n = self._gpu, self._stream, last - first
        retained, bins, slots = hits.score.shape[1], hits.histogram.shape[1], hits.site.shape[2]
        with_height = search._kind.needs_correlation
        peaks = np.diff(spectra.offsets)[queries.spectrum[first:last]]
        n_peaks = int(peaks.sum())
        host = {
            "offsets": self._host("offsets", np.int32, n + 1),
            "mz": self._host("mz", np.float64, n_peaks),
            "weight": self._host("weight", np.float32, n_peaks),
            "height": self._host("height", np.float32, n_peaks if with_height else 0),
            "query_mass": self._host("query_mass", np.float64, n),
            "query_charge": self._host("query_charge", np.int32, n),
        }
        gather_peaks(spectra, queries.spectrum, first, last, with_height, host["offsets"], host["mz"], host["weight"], host["height"])
        host["query_mass"][:] = queries.mass[first:last]
        host["query_charge"][:] = queries.charge[first:last]
        for name, values in items.items():
            host[name] = self._host(name, np.int32, len(values))
            host[name][:] = values
        inputs = {name: self._device(name, values.nbytes) for name, values in host.items()}
        self._out = {
            "score": self._host("score", np.float32, n, retained),
            "peptide": self._host("peptide", np.int64, n, retained),
            "isotope_error": self._host("isotope_error", np.int8, n, retained),
            "site": self._host("site", np.uint8, n, retained, slots),
            "modification": self._host("modification", np.uint8, n, retained, slots),
            "n_candidates": self._host("n_candidates", np.int64, n),
            "histogram": self._host("histogram", np.int32, n, bins),
        }
        outputs = {name: self._device(name, values.nbytes) for name, values in self._out.items()}
        best_of_items = self._device("best_of_items", int(items["first_item"][-1]) * retained * _CANDIDATE_BYTES)
        arrays = search._columns | inputs | {"best_of_items": best_of_items, "histogram": outputs["histogram"]}
        pointers = self._host("pointers", np.uint64, len(_INPUTS))
        pointers[:] = [gpu.address(arrays[name]) for name in _INPUTS]
        device_pointers = self._device("pointers", pointers.nbytes)
        gpu.upload(device_pointers, pointers, stream)
        for name, values in host.items():
            gpu.upload(inputs[name], values, stream)
        gpu.clear(outputs["histogram"], self._out["histogram"].nbytes, stream)
        self.first, self.last = first, last
        return device_pointers, inputs, int(peaks.max(initial=0))

    def _collect(self, search: SpectrumSearch, scalars: Any) -> None:
        """Start a kernel that merges the hits of all items (thread blocks) of each query, and the transfer of the result."""
        gpu, stream, n, of = self._gpu, self._stream, self.last - self.first, self._buffers
        arguments = (
            scalars,
            of["first_item"],
            of["best_of_items"],
            struct(gpu, _CARRIED, {name: search._columns[name] for name in _CARRIED.names or ()}),
            of["histogram"],
            np.int32(n),
            struct(gpu, _HITS, {name: of[name] for name in _HITS.names or ()}),
        )
        gpu.launch("best_hits.cu", "merge_hits", -(-n * 32 // 128), 128, arguments, stream)
        for name, values in self._out.items():
            gpu.download(values, of[name], stream)

    def abandon(self) -> None:
        """Wait for started kernels, and discard their results."""
        with suppress(DeviceError):
            self._gpu.wait(self._stream)

    def finish(self, hits: HitArrays) -> None:
        """Wait for the kernels, and write their results to the rows of the hits."""
        self._gpu.wait(self._stream)
        for name, values in self._out.items():
            getattr(hits, name)[self.first : self.last] = values


def _coarse_bytes(shift: int) -> int:
    """Return the bytes of the coarse bins of a tile (32 queries); a coarse bin is a word for 2^shift bins of the bit table."""
    return 4 * _FINE_BINS >> shift


def _mass_bounds(modifications: ModificationArrays, settings: ScoringSettings) -> Callable[[NDArray[np.float64]], tuple[NDArray, NDArray]]:
    """Return a function from query masses to limits of the masses of all candidate peptides."""
    shifts = settings.isotope_errors * settings.isotope_spacing
    carried = modifications.combination_mass

    def bounds(mass: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
        tolerance = settings.precursor_absolute + settings.precursor_relative * (mass + np.abs(shifts).max(initial=0.0)) + _MARGIN
        return mass - shifts.max(initial=0.0) - carried.max() - tolerance, mass - shifts.min(initial=0.0) - carried.min() + tolerance

    return bounds


def _slots_of_combination(modifications: ModificationArrays) -> NDArray[np.uint8]:
    """Return the modifications of each combination, one per slot, (c, 8) uint8, ascending; 255 for empty slots."""
    counts = modifications.combination_count
    slots = np.full((len(counts), _MAXIMUM_SLOTS), _NONE, np.uint8)
    combination, modification = np.nonzero(counts)
    times = counts[combination, modification]
    row = np.repeat(combination, times)
    start = np.concatenate(([0], np.cumsum(counts.sum(axis=1))))[row]
    column = np.arange(len(row)) - start
    fits = column < _MAXIMUM_SLOTS
    slots[row[fits], column[fits]] = np.repeat(modification, times)[fits]
    return slots


def _of_all_slots(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return rows of `PeptideArrays.known_site` or `known_modification`, padded with 255 to (k, 8) uint8."""
    return np.pad(rows[:, :_MAXIMUM_SLOTS], ((0, 0), (0, max(0, _MAXIMUM_SLOTS - rows.shape[1]))), constant_values=_NONE)

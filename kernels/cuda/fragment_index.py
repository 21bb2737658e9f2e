"""Fragment-ion index on a GPU, with the kernels of postings.cu and fragment_search.cu.

Counterpart of `proteoscope.kernels.cpu.fragment_index`.

The peptide dictionary is copied to the device once. The index of all peptidoforms, or of as many as fit, is built and stays there. Queries
are sent with their key ranges; the best candidates of each query and the histogram of all scores are returned, bit-identical to the CPU's.

Operations are counted by `proteoscope.kernels.counts.index_building` and `proteoscope.kernels.counts.index_search`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.arrangements import first_arrangement, is_possible, known_row, next_arrangement
from proteoscope.kernels.cpu.peptidoforms import arrangement_workspace, peptidoform_code
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceError, DeviceMemoryError
from proteoscope.kernels.layouts import (
    ISOTOPE_BITS,
    KEYS_OF_DALTON,
    BestArrays,
    ModificationArrays,
    PeptideArrays,
    ScoreTables,
    ScoringSettings,
    SegmentArrays,
)

__all__ = ["FragmentSearch"]

_NONE = 255
# Limits of the kernels.
_MAXIMUM_SERIES, _MAXIMUM_WINDOWS, _MAXIMUM_BEST, _MAXIMUM_FORMS, _WARP_FORMS = 3, 16, 32, 1 << 15, 128
_STATIC_SHARED_BYTES = 6 << 10
_RESERVED_SHARED_BYTES = 1 << 10  # shared memory per block that the system reserves
_OTHER_SHARED_BYTES = 8 << 10  # shared memory for histograms and candidates
_BLOCKS_TOGETHER = 3  # blocks per multiprocessor, if they fit
_FEWEST_FORMS = 1 << 13  # minimum number of forms in a chunk that justifies looking up a query's ranges of keys
_THREADS, _FORMS_OF_THREAD = 320, 16  # threads of a block (three fit a multiprocessor); counters compared per thread
_GRID = 2048  # more blocks than any device runs together; those without work end immediately
_COPIES = 32  # maximum copies of a histogram
_FOUND = 256  # candidates that a block stores unsorted
_MAXIMUM_QUERY_BYTES = 1 << 33  # ranges of keys have ten bytes each and 31-bit numbers
_BIN_BITS = 10, 16
_RESIDUES, _ENDS = 26, 32
_PROTON_MASS = 1.007276466621
_MASS_BEYOND = 200.0  # dalton: maximum mass that an ion series adds to a form

_MASSES = np.dtype(
    [
        ("residue_mass", np.float64, _RESIDUES),
        ("n_term_mass", np.float64),
        ("c_term_mass", np.float64),
        ("n_term_series", np.float64, _MAXIMUM_SERIES),
        ("c_term_series", np.float64, _MAXIMUM_SERIES),
        ("n_n_term_series", np.int64),
        ("n_c_term_series", np.int64),
        ("arrangement_bits", np.int64),
        ("peptide_mask", np.int64),
        ("n_slots", np.int64),
        ("end_key", np.int64, _RESIDUES),
    ]
)
"""Layout of the struct Masses in fragments.cuh."""

_CHUNK = np.dtype([("first_posting", np.uint64), ("first_bin", np.uint64)])
"""Layout of the struct Chunk in fragments.cuh."""

_DICTIONARY = np.dtype(
    [(name, np.uint64) for name in ("masses", "modification_mass", "position", "length", "residues", "site", "modification")]
)
"""Layout of the struct Dictionary in postings.cu."""

_INDEX = np.dtype(
    [
        *[(name, np.uint64) for name in ("postings", "bins", "chunks", "ends", "forms_of_ends", "form_code")],
        *[(name, np.int32) for name in ("first_form", "n_forms", "forms_of_chunk", "bin_shift")],
    ],
    align=True,
)
"""Layout of the struct Index in fragments.cuh."""

_QUERIES = np.dtype(
    [
        *[
            (name, np.uint64)
            for name in (
                "windows",
                "segment_low",
                "segment_high",
                "segment_weight",
                "ends",
                "of_count",
                "of_dot",
                "histogram",
                "best_score",
                "best_number",
                "locks",
            )
        ],
        *[(name, np.int32) for name in ("n_windows", "isotope_shift", "minimum_matched_ions")],
        ("inverse_width", np.float32),
        *[(name, np.int32) for name in ("n_bins", "n_copies", "n_best", "unused")],
    ],
    align=True,
)
"""Layout of the struct Queries in fragment_search.cu."""


class FragmentSearch:
    """Fragment-ion index of peptidoforms on a device; if it does not fit, sections of it are built and searched in turn.

    Parameters
    ----------
    device
        GPU; 80 % of its free memory may be used, and a quarter of this for queries.
    peptides, modifications, settings
        See `proteoscope.kernels.cpu.fragment_index.FragmentSearch`.
    form_mass, form_number : (f,) float64
        Mass in dalton, ascending, and number, (f,) int64, of the peptidoforms from
        `proteoscope.kernels.cpu.peptidoforms.list_peptidoforms`.

    Raises
    ------
    DeviceMemoryError
        If the proteins and one chunk do not fit.
    DeviceError
        If the search exceeds the limits of the kernel, or the device failed.

    Attributes
    ----------
    share_of_free_memory
        Fraction of the free memory that may be used.
    share_of_queries
        Fraction of that memory for queries.
    forms_of_chunk
        Number of peptidoforms per chunk, a multiple of 128 up to 32,768; their counters fit a block. 0 selects it for the GPU.
    bin_shift
        Number of low bits of a key that its bin does not include, at most 16; 0 selects it by the tolerance.
    threads
        Number of threads per block, a multiple of 32 from 64 to 1,024.
    pairs_of_batch
        Number of (query, chunk) pairs searched between two checks for cancellation.
    """

    share_of_free_memory = 0.8
    share_of_queries = 0.25
    forms_of_chunk = 0
    bin_shift = 0
    threads = _THREADS
    pairs_of_batch = 1 << 17  # takes some milliseconds

    def __init__(
        self,
        device: Gpu,
        peptides: PeptideArrays,
        modifications: ModificationArrays,
        settings: ScoringSettings,
        form_mass: NDArray[np.float64],
        form_number: NDArray[np.int64],
    ) -> None:
        gpu = device
        self._gpu, self._peptides, self._modifications, self._settings = gpu, peptides, modifications, settings
        self._form_mass, self._form_number = form_mass, form_number
        self._code = peptidoform_code(peptides, modifications)
        self._n_slots = max(int(modifications.combination_count.sum(axis=1).max(initial=0)), peptides.known_site.shape[1])
        self._forms_of_chunk = self.forms_of_chunk or _forms_that_suit(gpu)
        self._bin_shift = self.bin_shift or _bins_that_suit(settings)
        self._check_sizes()
        budget = int(gpu.free_bytes() * self.share_of_free_memory)
        self._stream = gpu.stream()
        columns = {
            "masses": self._packed_masses(),
            "modification_mass": modifications.mass,
            "position": peptides.position,
            "length": peptides.length,
            "residues": peptides.residues,
        }
        self._columns = sent(gpu, columns, self._stream)
        workspace = max(0, budget - sum(column.nbytes for column in columns.values()))
        workspace -= min(32 * self.pairs_of_batch, workspace // 8)  # memory for two batches of pairs
        self._query_bytes = min(_MAXIMUM_QUERY_BYTES, int(workspace * self.share_of_queries))
        self._part_bytes = workspace - self._query_bytes
        self._postings_of_chunk = np.zeros(self._n_chunks, np.int64)
        _count_ions_of_chunks(
            form_number,
            self._code,
            peptides.length,
            len(settings.n_term_series) + len(settings.c_term_series),
            self._forms_of_chunk,
            self._postings_of_chunk,
        )
        heaviest = form_mass[np.minimum(np.arange(1, self._n_chunks + 1) * self._forms_of_chunk, len(form_mass)) - 1] + _MASS_BEYOND
        self._bins_of_chunk = (np.minimum(heaviest * KEYS_OF_DALTON, float((1 << 32) - 1)).astype(np.int64) >> self._bin_shift) + 1
        of_form = 9 + 2 * self._n_slots
        self._bytes_of_chunk = 4 * self._postings_of_chunk + 4 * (self._bins_of_chunk + 2) + of_form * self._forms_of_chunk + 16 + 4 * _ENDS
        if self._n_chunks and int(self._bytes_of_chunk.max()) > self._part_bytes:
            raise DeviceMemoryError(
                f"{gpu.name} has {budget / 1e6:,.0f} MB of memory available, which is not enough for a fragment-ion index"
            )
        self._part: dict[str, Any] = {}
        self._built = 0, 0
        gpu.wait(self._stream)

    def build(self) -> Generator[int, None, None]:
        """Build the index like `proteoscope.kernels.cpu.fragment_index.FragmentSearch.build`.

        If it does not fit, searches build it in sections.

        Yields the number of indexed peptidoforms.
        """
        if self._built != (0, self._n_chunks) and int(self._bytes_of_chunk.sum()) <= self._part_bytes:
            with suppress(DeviceMemoryError):
                self._build_part(0, self._n_chunks)
        first, last = self._built
        yield min(len(self._form_mass), (last - first) * self._forms_of_chunk)

    @property
    def _n_chunks(self) -> int:
        return -(-len(self._form_mass) // self._forms_of_chunk)

    def _check_sizes(self) -> None:
        settings = self._settings
        for what, n, most in (
            ("ion series from one end", max(len(settings.n_term_series), len(settings.c_term_series)), _MAXIMUM_SERIES),
            ("isotope errors", len(settings.isotope_errors), _MAXIMUM_WINDOWS),
            ("forms", len(self._form_mass), (1 << 31) - 1),
        ):
            if n > most:
                raise DeviceError(f"{n:,} {what} are more than the {most:,} that a GPU supports")

    def _packed_masses(self) -> NDArray[np.void]:
        masses = np.zeros(1, _MASSES)
        peptides, settings = self._peptides, self._settings
        masses["residue_mass"] = peptides.residue_mass
        masses["n_term_mass"], masses["c_term_mass"] = peptides.n_term_mass, peptides.c_term_mass
        for name in ("n_term_series", "c_term_series"):
            values = getattr(settings, name)
            masses[name][0, : len(values)] = values
            masses[f"n_{name}"] = len(values)
        masses["arrangement_bits"], masses["peptide_mask"] = self._code.arrangement_bits, (1 << self._code.peptide_bits) - 1
        masses["n_slots"] = self._n_slots
        masses["end_key"] = -1
        if len(settings.c_term_series):
            # If rounding changes the key for a form, its ion is sorted like all other ions.
            ends = settings.c_term_series[0] - _PROTON_MASS + peptides.c_term_mass + peptides.residue_mass
            is_residue = ends > 0  # a symbol that is not a residue has no mass
            masses["end_key"][0, is_residue] = (ends[is_residue] * KEYS_OF_DALTON).astype(np.int64)
        return masses

    def _build_part(self, first: int, last: int) -> None:
        """Build the index of the chunks `first:last` on the device, replacing the previous index."""
        if self._built == (first, last):
            return
        gpu, stream = self._gpu, self._stream
        self._built = 0, 0
        self._part.clear()
        start, stop = first * self._forms_of_chunk, min(len(self._form_mass), last * self._forms_of_chunk)
        codes = self._form_number[start:stop]
        chunks = np.zeros(last - first + 1, _CHUNK)
        chunks["first_posting"][1:] = np.cumsum(self._postings_of_chunk[first:last])
        chunks["first_bin"][1:] = np.cumsum(self._bins_of_chunk[first:last] + 2)
        site = np.full((len(codes) if self._n_slots else 0, self._n_slots), _NONE, np.uint8)
        modification = site.copy()
        if self._n_slots:
            workspace = arrangement_workspace(self._peptides, self._modifications)
            _sites_of_forms(codes, self._code, self._peptides, self._modifications, workspace, site, modification)
        bin_bytes = 4 * int(chunks["first_bin"][-1])
        part = {
            "bins": gpu.buffer(bin_bytes),
            "postings": gpu.buffer(4 * int(chunks["first_posting"][-1])),
            "ends": gpu.buffer((last - first) * self._forms_of_chunk),
            "forms_of_ends": gpu.buffer((last - first) * 4 * _ENDS),
        }
        inputs = sent(gpu, {"form_code": codes, "chunks": chunks, "site": site, "modification": modification}, stream)
        part |= {name: inputs[name] for name in ("form_code", "chunks")}
        gpu.clear(part["bins"], bin_bytes, stream)
        gpu.clear(part["forms_of_ends"], (last - first) * 4 * _ENDS, stream)
        of = self._columns
        dictionary = {name: of[name] for name in ("masses", "modification_mass", "position", "length", "residues")}
        dictionary |= {name: inputs[name] for name in ("site", "modification")}
        index = self._index(part, start, len(codes))
        arguments = struct(gpu, _DICTIONARY, dictionary), index
        blocks = -(-len(codes) // 128)
        gpu.launch("postings.cu", "count_ions", blocks, 128, arguments, stream)
        gpu.launch("postings.cu", "sum_bins", last - first, 1024, (part["chunks"], part["bins"]), stream)
        gpu.launch("postings.cu", "place_ions", blocks, 128, arguments, stream)
        gpu.wait(stream)
        self._part, self._built = part, (first, last)

    def _index(self, part: dict[str, Any], first_form: int, n_forms: int) -> NDArray[np.void]:
        """Return the struct Index of peptidoforms on the device."""
        numbers = {"first_form": first_form, "n_forms": n_forms, "forms_of_chunk": self._forms_of_chunk, "bin_shift": self._bin_shift}
        return struct(self._gpu, _INDEX, part | numbers)

    def search_chunks(
        self,
        segments: SegmentArrays,
        windows: NDArray[np.int64],
        tables: ScoreTables,
        first: int,
        last: int,
        best: BestArrays,
        histogram: NDArray[np.int32],
        histogram_width: float,
        n_candidates: NDArray[np.int64],
    ) -> Generator[int, None, None]:
        """Search the queries `first:last`, batch by batch.

        Parameters are those of `proteoscope.kernels.cpu.fragment_index.FragmentSearch.search_chunks`: row 0 of `segments` and `windows` (q,
        e, 2) belongs to query `first`; results are added to `best`, `histogram` (q, b) int32 and `n_candidates` (q,) int64 of all queries.

        Yields the end of the finished range after each batch: rows before it are written, rows after it unchanged. Queries in the order of
        mass are finished one after the other. Closing the generator stops the search.

        Raises
        ------
        DeviceError
            If the device failed, or the search exceeds the limits of the kernel.
        """
        for _ in self.build():
            yield first
        queries = _Queries(segments, windows, tables, first, best, histogram, n_candidates)
        retained, bins = best.score.shape[1], histogram.shape[1]
        shared_bytes, copies = self._shape(retained, bins)
        of_query = 10 * np.diff(segments.offsets) + 4 * bins + 12 * retained + 8 * windows.shape[1] + 4 * _ENDS + 8
        ends = np.concatenate(([0], np.cumsum(of_query)))
        begun, workspace = 0, self._query_bytes
        while begun < last - first:
            stop = int(np.searchsorted(ends, ends[begun] + workspace, side="right")) - 1
            stop = min(last - first, max(stop, begun + 1))
            try:
                group = _Group(self._gpu, self._stream, self._columns["masses"], queries, begun, stop)
            except DeviceMemoryError:
                if stop == begun + 1:
                    raise
                workspace = int(ends[stop] - ends[begun]) // 2
                continue
            yield from self._search_group(group, histogram_width, shared_bytes, copies)
            begun = stop

    def _shape(self, limit: int, bins: int) -> tuple[int, int]:
        """Return the bytes of dynamic shared memory, and the number of copies of the histogram that fit."""
        if limit > _MAXIMUM_BEST:
            raise DeviceError(f"{limit} candidates for a query are more than the {_MAXIMUM_BEST} that a GPU stores")
        other = 4 * self._forms_of_chunk + 16 * (_FOUND + limit * (self.threads // 32))
        copies, workspace = _COPIES, _shared_bytes(self._gpu) - other
        while copies > 1 and 4 * bins * copies > workspace:
            copies //= 2
        return other + 4 * bins * copies, copies

    def _parts(self) -> Generator[tuple[int, int], None, None]:
        """Divide the chunks into ranges that fit on the device; build the index of each in turn, and yield the range."""
        if self._built == (0, self._n_chunks):
            yield self._built
            return
        ends = np.concatenate(([0], np.cumsum(self._bytes_of_chunk)))
        begun = 0
        while begun < self._n_chunks:
            stop = int(np.searchsorted(ends, ends[begun] + self._part_bytes, side="right")) - 1
            stop = max(stop, begun + 1)
            try:
                self._build_part(begun, stop)
            except DeviceMemoryError:
                if stop == begun + 1:
                    raise
                self._part_bytes = int(ends[stop] - ends[begun]) // 2
                continue
            yield begun, stop
            begun = stop

    def _search_group(self, group: _Group, histogram_width: float, shared_bytes: int, copies: int) -> Generator[int, None, None]:
        """Search a group of queries on the device in all sections of the index."""
        last_chunk = np.maximum.accumulate(group.last_chunk(self._forms_of_chunk))
        running: deque[_Batch] = deque()
        free = [_Batch(self._gpu), _Batch(self._gpu)]
        try:
            for first_chunk, end_chunk in self._parts():
                n_pairs = np.zeros(end_chunk - first_chunk, np.int64)
                _count_pairs(group.offsets, group.windows, self._forms_of_chunk, first_chunk, n_pairs)
                begun = first_chunk
                while begun < end_chunk or running:
                    if begun == end_chunk or not free:
                        batch = running.popleft()
                        batch.finish()
                        free.append(batch)
                        yield group.first + group.collect(int(np.searchsorted(last_chunk, batch.end_chunk)))
                        continue
                    total = np.cumsum(n_pairs[begun - first_chunk :])
                    stop = begun + 1 + int(np.searchsorted(total, self.pairs_of_batch))
                    stop = min(stop, end_chunk)
                    batch = free.pop()
                    running.append(batch)
                    pairs = batch.workspace(int(total[stop - begun - 1]))
                    _list_pairs(group.offsets, group.windows, self._forms_of_chunk, first_chunk, begun, stop, pairs)
                    batch.begin(pairs, stop, self._arguments(group, first_chunk, histogram_width, copies), self.threads, shared_bytes)
                    begun = stop
            yield group.first + group.collect(len(last_chunk))
        finally:
            for batch in running:  # buffers must exist until the kernels have ended
                with suppress(DeviceError):
                    batch.finish()

    def _arguments(self, group: _Group, first_chunk: int, histogram_width: float, copies: int) -> tuple[Any, ...]:
        """Return the first arguments of the kernel; the arguments of a batch follow."""
        of, start = group.buffers, first_chunk * self._forms_of_chunk
        n_forms = min(len(self._form_mass), self._built[1] * self._forms_of_chunk) - start
        queries = {
            "windows": of["windows"],
            "segment_low": of["low"],
            "segment_high": of["high"],
            "segment_weight": of["weight"],
            "ends": of["ends"],
            "of_count": of["of_count"],
            "of_dot": of["of_dot"],
            "histogram": of["histogram"],
            "best_score": of["score"],
            "best_number": of["code"],
            "locks": of["locks"],
            "n_windows": group.windows.shape[1],
            "isotope_shift": self._code.isotope_shift,
            "minimum_matched_ions": self._settings.minimum_matched_ions,
            "inverse_width": np.float32(1.0 / histogram_width),
            "n_bins": group.bins,
            "n_copies": copies,
            "n_best": group.best,
            "unused": 0,
        }
        return self._index(self._part, start, n_forms), struct(self._gpu, _QUERIES, queries)


class _Queries(NamedTuple):
    """Arguments of a search: arrays of the queries from `first` on, and output arrays of all queries."""

    segments: SegmentArrays
    windows: NDArray[np.int64]
    tables: ScoreTables
    first: int
    best: BestArrays
    histogram: NDArray[np.int32]
    n_candidates: NDArray[np.int64]


class _Group:
    """Queries `begun:stop` on the device: key ranges, windows, best candidates so far, and histograms."""

    def __init__(self, gpu: Gpu, stream: Any, masses: Any, queries: _Queries, begun: int, stop: int) -> None:
        self._gpu, self._stream, self._queries, self._done = gpu, stream, queries, 0
        segments, best = queries.segments, queries.best
        self.first, n = queries.first + begun, stop - begun
        low, high = int(segments.offsets[begun]), int(segments.offsets[stop])
        self.offsets = segments.offsets[begun : stop + 1] - low
        self.windows = np.ascontiguousarray(queries.windows[begun:stop], np.int32)
        self.best, self.bins = best.score.shape[1], queries.histogram.shape[1]
        rows = slice(self.first, self.first + n)
        host: dict[str, NDArray] = {
            "offsets": self.offsets.astype(np.int32),
            "low": segments.low[low:high],
            "high": segments.high[low:high],
            "weight": segments.weight[low:high],
            "windows": self.windows,
            "of_count": queries.tables.of_count,
            "of_dot": queries.tables.of_dot,
            "score": best.score[rows],
            "code": best.code[rows],
        }
        cleared = {"histogram": 4 * n * self.bins, "locks": 4 * n, "ends": 4 * n * _ENDS}
        of = {name: gpu.buffer(n_bytes) for name, n_bytes in cleared.items()}
        of |= sent(gpu, host, stream)
        for name, n_bytes in cleared.items():
            gpu.clear(of[name], n_bytes, stream)
        self.buffers = of
        arguments = masses, of["offsets"], of["low"], of["high"], of["weight"], np.int32(n), of["ends"]
        gpu.launch("fragment_search.cu", "weigh_ends", -(-n * 32 // 128), 128, arguments, stream)
        gpu.wait(stream)

    def last_chunk(self, forms_of_chunk: int) -> NDArray[np.int64]:
        """Return the last chunk in which each query has candidates; -1 for none."""
        ends = np.where(self.windows[:, :, 0] < self.windows[:, :, 1], self.windows[:, :, 1], 0).max(axis=1, initial=0).astype(np.int64)
        return np.where(np.diff(self.offsets) > 0, (ends - 1) // forms_of_chunk, -1)

    def collect(self, end: int) -> int:
        """Write the finished rows up to `end`; return `end`."""
        start, n = self._done, end - self._done
        if n <= 0:
            return start
        gpu = self._gpu
        rows, part = slice(self.first + start, self.first + end), slice(start, end)
        score, code = np.empty((n, self.best), np.float32), np.empty((n, self.best), np.int64)
        histogram = np.empty((n, self.bins), np.int32)
        for name, values in (("score", score), ("code", code), ("histogram", histogram)):
            gpu.download(values, self.buffers[name], self._stream, offset=start * values[0].nbytes)
        gpu.wait(self._stream)
        inside = np.maximum(self.windows[part, :, 1].astype(np.int64) - self.windows[part, :, 0], 0).sum(axis=1)
        inside[np.diff(self.offsets)[part] == 0] = 0
        histogram[:, 0] += (inside - histogram.sum(axis=1)).astype(np.int32)
        into = self._queries
        into.best.score[rows], into.best.code[rows] = score, code
        into.histogram[rows] += histogram
        into.n_candidates[rows] += inside
        self._done = end
        return end


class _Batch:
    """Batch of pairs (query, chunk of peptidoforms) in pinned and device memory, and its stream; buffers grow as needed."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu, self._stream = gpu, gpu.stream()
        self._next_pair = gpu.buffer(4)
        self._pairs: Any = None
        self._pinned = np.zeros(0, np.uint8)
        self.end_chunk = 0

    def workspace(self, n: int) -> NDArray[np.int32]:
        """Return space for n pairs, (n, 4) int32, in the layout of the struct Pair in fragment_search.cu."""
        if len(self._pinned) < 16 * n:
            self._pairs, self._pinned = self._gpu.buffer(16 * n), self._gpu.pinned(16 * n)
        return self._pinned[: 16 * n].view(np.int32).reshape(n, 4)

    def begin(self, pairs: NDArray[np.int32], end_chunk: int, before: tuple[Any, ...], threads: int, shared_bytes: int) -> None:
        """Start the search of `pairs`; with these, all chunks before `end_chunk` are done. `before` are the kernel's first arguments."""
        gpu, n = self._gpu, len(pairs)
        self.end_chunk = end_chunk
        if n == 0:
            return
        gpu.upload(self._pairs, pairs, self._stream)
        gpu.clear(self._next_pair, 4, self._stream)
        of_pairs = self._pairs, np.int32(n), self._next_pair
        gpu.launch(
            "fragment_search.cu", "search_chunks", min(n, _GRID), threads, (*before, *of_pairs), self._stream, shared_bytes=shared_bytes
        )

    def finish(self) -> None:
        """Wait for the kernel."""
        self._gpu.wait(self._stream)


def _shared_bytes(gpu: Gpu) -> int:
    """Return the dynamic shared memory that a block may use if as many blocks as possible run on a multiprocessor."""
    most = gpu.maximum_shared_bytes()
    together = most // _BLOCKS_TOGETHER - _RESERVED_SHARED_BYTES
    workspace = together - _STATIC_SHARED_BYTES
    if workspace - _OTHER_SHARED_BYTES < 4 * _FEWEST_FORMS:
        workspace = most - _STATIC_SHARED_BYTES
    return workspace


def _forms_that_suit(gpu: Gpu) -> int:
    """Return a number of peptidoforms whose counters fit into the shared memory of a block, if possible a multiple for all warps."""
    workspace = (_shared_bytes(gpu) - _OTHER_SHARED_BYTES) // 4
    step = next(step for step in (_THREADS * _FORMS_OF_THREAD, _WARP_FORMS) if step <= workspace)
    return min(_MAXIMUM_FORMS, workspace) // step * step


def _bins_that_suit(settings: ScoringSettings) -> int:
    """Return the number of low bits of a key that its bin does not include.

    Bins are about half as wide as the range of keys of a peak of medium mass.
    """
    half = settings.fragment_absolute + 1000.0 * settings.fragment_relative
    return int(np.clip(int(half * KEYS_OF_DALTON).bit_length() - 1, *_BIN_BITS))


@njit(nogil=True, cache=True, _nrt=False)
def _count_ions_of_chunks(form_code, code, length, n_series, forms_of_chunk, out):  # type: ignore[no-untyped-def]
    """Write the number of postings of each chunk of peptidoforms to `out` (chunks,) int64."""
    mask = (1 << code.peptide_bits) - 1
    for i in range(len(form_code)):
        peptide = (form_code[i] >> code.arrangement_bits) & mask
        out[i // forms_of_chunk] += (np.int64(length[peptide]) - 1) * n_series


@njit(nogil=True, cache=True, _nrt=False)
def _sites_of_forms(form_code, code, peptides, modifications, workspace, site, modification):  # type: ignore[no-untyped-def]
    """Write the modifications of each peptidoform, in the layout of `HitArrays`: `site` and `modification` (f, s) uint8, initially 255."""
    sites, n_sites, slot_modification, slot_choice, slot_site = workspace
    slots, previous = 0, np.int64(-2)
    arrangements = (1 << code.arrangement_bits) - 1
    for i in range(len(form_code)):
        number = form_code[i]
        c = number >> (code.isotope_shift + ISOTOPE_BITS)
        peptide = (number >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
        if c == 0 and known_row(peptide, peptides) == 0:
            continue
        skipped = 1
        if number != previous + 1 or number & arrangements == 0:
            slots = first_arrangement(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice)
            skipped = (number & arrangements) + (not is_possible(slots, slot_modification, slot_choice, sites, slot_site))
        previous = number
        while skipped > 0:
            next_arrangement(slots, slot_modification, slot_choice, n_sites)
            skipped -= is_possible(slots, slot_modification, slot_choice, sites, slot_site)
        for t in range(slots):
            site[i, t] = slot_site[t]
            modification[i, t] = slot_modification[t]


@njit(nogil=True, cache=True, _nrt=False)
def _count_pairs(offsets, windows, forms_of_chunk, first_chunk, out):  # type: ignore[no-untyped-def]
    """Count, for each chunk from `first_chunk` on, the queries that have candidates in it; add the counts to `out` (chunks,) int64."""
    for q in range(len(windows)):
        if offsets[q + 1] == offsets[q]:
            continue
        done = first_chunk
        for e in range(windows.shape[1]):
            if windows[q, e, 0] < windows[q, e, 1]:
                begin = max(done, windows[q, e, 0] // forms_of_chunk)
                done = max(done, min(first_chunk + len(out), (windows[q, e, 1] - 1) // forms_of_chunk + 1))
                for chunk in range(begin, done):
                    out[chunk - first_chunk] += 1


@njit(nogil=True, cache=True, _nrt=False)
def _list_pairs(offsets, windows, forms_of_chunk, first_chunk, begun, stop, out):  # type: ignore[no-untyped-def]
    """List the pairs (query, chunk) with candidates for the chunks `begun:stop`, chunk by chunk, as struct Pair: (n, 4) int32."""
    n = 0
    for chunk in range(begun, stop):
        low, high = chunk * forms_of_chunk, (chunk + 1) * forms_of_chunk
        for q in range(len(windows)):
            if offsets[q + 1] == offsets[q]:
                continue
            is_inside = False
            for e in range(windows.shape[1]):
                is_inside |= max(low, windows[q, e, 0]) < min(high, windows[q, e, 1])
            if is_inside:
                out[n, 0] = q
                out[n, 1] = chunk - first_chunk
                out[n, 2] = offsets[q]
                out[n, 3] = offsets[q + 1] - offsets[q]
                n += 1

"""Superposition of pairs of chains on a GPU, bit-identical to `proteoscope.kernels.cpu.superposition`, with the kernel of superposition.cu.

The CPU prepares the chains of a batch of pairs and reports results (`proteoscope.kernels.cpu.chain_pairs`). All other steps are one launch,
in which each block processes one pair after another.

ATGPU analysis of n pairs of chains of r residues in total, m of them in the shorter chains and k in initial alignments. `analysis` computes
these numbers in words of 4 bytes:

* rounds: a launch for each range of pairs, with two ranges in progress;
* words in: 6 r + r / 4 for the r residues of all chains, each sent once, 2 k + 24 n; out: 2 m + 33 n;
* operations: about 15 for each cell of an alignment. The number of cells per pair depends on its search: at least the cells of the
  alignments that rank fragments, at most these and the cells of all possible realignments;
* memory blocks: two direction bits per cell, and one word per residue of the trace-back;
* shared memory: 8.6 KB a warp for the superpositions of a batch, and 16 bytes a residue of the longer chain if they fit.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cpu.chain_pairs import farthest_pair, place_chains, place_pairs, report_pairs, tm_scale
from proteoscope.kernels.cpu.nearest_residues import MAXIMUM_CELLS as MAXIMUM_NEAREST_CELLS
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceMemoryError, equal_partitions
from proteoscope.kernels.structure_layouts import MAXIMUM_CELLS, ChainPairs, FoundSuperpositions, SearchSteps

__all__ = ["ChainSuperposition"]

_FILE = "superposition.cu"
_SHARE_OF_FREE_MEMORY = 0.4  # fraction of free memory for the blocks of a run; two runs are in progress
_SHARED_BYTES = 227 << 10  # of a multiprocessor; residues of chains that do not fit are in device memory
_RESIDUE_BYTES, _TEAM_BYTES = 16, 8592  # sizes of the structs Residue and Team
_BLOCK_BYTES = 5376 + 1024  # size of the struct Shared, and what each block reserves
_STRIP = 256  # residues of the shorter chain that an alignment takes together
_MOST_FRAGMENTS, _MOVE, _SPARSE, _SPARSE_LENGTH = 600, 12, 4, 40
_SPARSE_REFINEMENTS, _MAXIMUM_REFINEMENTS = 2, 12

_ITEM = np.dtype(
    [
        *[(name, np.int64) for name in ("x", "y", "start", "out")],
        *[(name, np.int32) for name in ("m", "n", "n_start", "is_aligned")],
        *[(name, np.float64) for name in ("scale_x", "scale_y", "limit", "units")],
    ]
)
"""Layout of the struct Item in pair_superposition.cuh."""
_STEPS = np.dtype([(name, np.int32) for name in SearchSteps._fields])
"""Layout of the struct Steps in pair_superposition.cuh."""
_CHAINS = np.dtype([(name, np.uint64) for name in ("items", "position", "states", "start_pairs")])
"""Layout of the struct Chains in pair_superposition.cuh."""
_FOUND = np.dtype(
    [
        *[(name, np.uint64) for name in ("moves", "scores", "counts", "pairs", "workspace")],
        ("workspace_bytes", np.int64),
        ("next_item", np.uint64),
    ]
)
"""Layout of the struct Found in pair_superposition.cuh."""


@dataclass(frozen=True)
class Analysis:
    """Cost of superposition: words in both directions, launches, and minimum and maximum number of alignment cells."""

    words_in: int
    words_out: int
    launches: int
    fewest_cells: int
    most_cells: int


def analysis(pairs: ChainPairs, steps: SearchSteps) -> Analysis:
    """Return the cost of all pairs in one batch."""
    shorter, longer = pairs.lengths
    chains = np.unique(np.concatenate([pairs.fixed, pairs.mobile]))
    n, residues = len(shorter), int(np.diff(pairs.offsets)[chains].sum())
    every = np.clip(shorter // _SPARSE_LENGTH, 1, _SPARSE)
    is_aligned = _is_aligned(shorter, longer)
    cells, sparse = shorter * longer * is_aligned, -(-shorter // every) * -(-longer // every) * is_aligned
    refined = steps.n_refined + 1 + 2 * (steps.n_finished + 1) * _MAXIMUM_REFINEMENTS
    most = cells * (1 + steps.n_searched + refined) + sparse * (steps.n_fragments + _SPARSE_REFINEMENTS * steps.n_sparse)
    bytes_in = 25 * residues + 8 * len(pairs.start_pairs) + _ITEM.itemsize * n
    return Analysis(
        words_in=-(-bytes_in // 4),
        words_out=2 * int(shorter.sum()) + 29 * n,
        launches=1,
        fewest_cells=int((cells + sparse).sum()),
        most_cells=int(most.sum()),
    )


def _is_aligned(shorter: NDArray[np.int64], longer: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for pairs of chains whose lengths allow realignment by distance."""
    return (shorter + longer + 1) * (shorter + 1) <= MAXIMUM_CELLS


def _rows_of_lane(shorter: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many residues of the shorter chain each lane of a warp processes (`rows_of_lane` in distance_alignment.cuh)."""
    return -(-shorter // (32 * np.maximum(-(-shorter // _STRIP), 1)))


@dataclass(frozen=True)
class _SentChains:
    """Chains on a GPU: the first residue of each, its largest absolute coordinate, and buffers."""

    places: NDArray[np.int64]
    largest: NDArray[np.float64]
    buffers: dict[str, Any]


@dataclass(frozen=True)
class _Launched:
    """Pairs `first:last` whose superposition was started, with stream, order, results and buffers."""

    first: int
    last: int
    stream: Any
    order: NDArray[np.int64]
    results: dict[str, NDArray]
    buffers: dict[str, Any]
    workspaces: dict[str, Any]


class ChainSuperposition:
    """Superposition of pairs of chains on a GPU.

    Parameters
    ----------
    device
        GPU.
    steps
        Extent of the search for each pair.
    """

    threads, resident = 128, 4
    """Number of threads of a block, and number of concurrent blocks of a multiprocessor."""
    cells_of_run = 400_000_000
    """Number of cells of full alignments (one per pair) in a batch."""

    def __init__(self, device: Gpu, steps: SearchSteps) -> None:
        self._gpu, self._steps = device, steps
        self._streams = device.stream(), device.stream()

    def superpose(
        self, pairs: ChainPairs, superpositions: FoundSuperpositions, first: int = 0, last: int | None = None
    ) -> Generator[int, None, None]:
        """Superpose the pairs `first:last` (see `proteoscope.kernels.cpu.superposition.ChainSuperposition.superpose`).

        Raises
        ------
        DeviceError
            If the device failed.
        DeviceMemoryError
            If not even one pair fits.
        """
        last = len(pairs.fixed) if last is None else last
        shorter, longer = pairs.lengths
        cells = (shorter * longer)[first:last].astype(np.float64)
        runs = sorted(equal_partitions(cells, 1, maximum_cost=self.cells_of_run, per_worker=1), key=lambda run: run.first)
        chains = self._chains(pairs, first, last)
        before: _Launched | None = None
        try:
            # While a run is computed, the previous run is reported and the next run is prepared.
            for number, run in enumerate(runs):
                launched = self._launch(pairs, chains, first + run.first, first + run.last, self._streams[number % 2])
                if before is not None:
                    self._report(pairs, superpositions, before)
                    yield before.last
                before = launched
            if before is not None:
                self._report(pairs, superpositions, before)
                yield before.last
        finally:
            for stream in self._streams:
                self._gpu.wait(stream)

    def _chains(self, pairs: ChainPairs, first: int, last: int) -> _SentChains:
        """Send the chains of the pairs `first:last`, each once."""
        numbers = np.unique(np.concatenate([pairs.fixed[first:last], pairs.mobile[first:last]]))
        lengths = np.diff(pairs.offsets)[numbers]
        ends = np.cumsum(lengths)
        places, largest = np.zeros(len(pairs.offsets) - 1, np.int64), np.zeros(len(pairs.offsets) - 1)
        places[numbers] = ends - lengths
        residues = int(lengths.sum())
        columns, states, largest_of_used = np.empty(3 * residues), np.empty(residues, np.uint8), np.empty(len(numbers))
        place_chains(pairs, numbers, columns, states, largest_of_used)
        largest[numbers] = largest_of_used
        stream = self._streams[0]
        buffers = sent(self._gpu, {"position": columns, "states": states}, stream)
        self._gpu.wait(stream)
        return _SentChains(places, largest, buffers)

    def _launch(self, pairs: ChainPairs, chains: _SentChains, first: int, last: int, stream: Any) -> _Launched:
        """Start the pairs `first:last`."""
        gpu, n = self._gpu, last - first
        shorter, longer = (lengths[first:last] for lengths in pairs.lengths)
        starts = pairs.start_offsets[first : last + 1]
        start_pairs = np.empty((int(starts[-1] - starts[0]), 2), np.int32)
        items = np.zeros(n, _ITEM)
        # Start with the costliest pairs. Pairs with the same kernel code for alignments run together, so that it fits into the instruction
        # cache.
        order = np.lexsort((-(shorter * longer), -_rows_of_lane(shorter)))
        units = np.empty(n)
        place_pairs(pairs, first, last, chains.largest, units, start_pairs)
        fixed, mobile = pairs.fixed[first:last], pairs.mobile[first:last]
        is_turned = np.diff(pairs.offsets)[mobile] > np.diff(pairs.offsets)[fixed]
        items["x"], items["y"] = chains.places[np.where(is_turned, fixed, mobile)], chains.places[np.where(is_turned, mobile, fixed)]
        items["start"], items["out"], items["units"] = starts[:-1] - starts[0], np.cumsum(shorter) - shorter, units
        items["m"], items["n"], items["n_start"] = shorter, longer, np.diff(starts)
        items["is_aligned"] = _is_aligned(shorter, longer)
        for name, lengths, of_length in (("scale_x", shorter, tm_scale), ("scale_y", longer, tm_scale), ("limit", shorter, farthest_pair)):
            each, which = np.unique(lengths, return_inverse=True)
            items[name] = np.array([of_length(length) for length in each.tolist()])[which]
        workspace_bytes, shared_bytes = self._workspace_sizes(items)
        blocks = min(n, gpu.multiprocessors() * self.resident, int(gpu.free_bytes() * _SHARE_OF_FREE_MEMORY) // workspace_bytes)
        if blocks < 1:
            raise DeviceMemoryError(f"{gpu.name} has less than {workspace_bytes / 1e6:,.0f} MB of free memory for a pair of chains")
        results: dict[str, NDArray] = {
            "moves": np.empty((n, _MOVE)),
            "scores": np.empty((n, 2)),
            "counts": np.empty(n, np.int32),
            "pairs": np.empty((int(shorter.sum()), 2), np.int32),
        }
        workspaces = {name: gpu.buffer(values.nbytes) for name, values in results.items()}
        workspaces |= {"workspace": gpu.buffer(blocks * workspace_bytes), "next_item": gpu.buffer(4)}
        buffers = sent(gpu, {"items": items[order], "start_pairs": start_pairs}, stream)
        try:
            gpu.clear(workspaces["next_item"], 4, stream)
            gpu.launch(
                _FILE,
                "superpose_pairs",
                blocks,
                self.threads,
                (
                    struct(gpu, _CHAINS, {**buffers, **chains.buffers}),
                    struct(gpu, _FOUND, {**workspaces, "workspace_bytes": workspace_bytes}),
                    struct(gpu, _STEPS, self._steps._asdict()),
                    np.int32(n),
                    np.int32(shared_bytes),
                ),
                stream,
                shared_bytes=shared_bytes,
                defines=(f"THREADS={self.threads}", f"RESIDENT={self.resident}"),
            )
        except BaseException:
            gpu.wait(stream)  # transfers may still be in progress
            raise
        return _Launched(first, last, stream, order, results, buffers, workspaces)

    def _report(self, pairs: ChainPairs, superpositions: FoundSuperpositions, run: _Launched) -> None:
        """Wait for a batch and report its results."""
        for name, values in run.results.items():
            self._gpu.download(values, run.workspaces[name], run.stream)
        self._gpu.wait(run.stream)
        back = np.empty_like(run.order)
        back[run.order] = np.arange(len(back))
        moves, scores, counts = (run.results[name][back] for name in ("moves", "scores", "counts"))
        report_pairs(pairs, run.first, moves, scores, counts, run.results["pairs"], superpositions)

    def _workspace_sizes(self, items: NDArray[np.void]) -> tuple[int, int]:
        """Return the bytes of device memory and of shared memory that a block needs.

        The shared memory is for the warps, and as far as possible for the residues of the longer chain.
        """
        m, n, warps = items["m"].astype(np.int64), items["n"].astype(np.int64), self.threads // 32
        residues = _RESIDUE_BYTES * (n + -(-n // np.clip(m // _SPARSE_LENGTH, 1, _SPARSE)))
        strips = -(-m // _STRIP)
        numbers = 3 * (m + n) + 1 + 6 * m * warps + 2 * _MOST_FRAGMENTS * (1 + _MOVE) + 2 * self._steps.n_fragments * (1 + _MOVE)
        numbers += MAXIMUM_NEAREST_CELLS + (self._steps.n_fragments + 1) // 2
        residues_x = _RESIDUE_BYTES * (m + 32 * strips + 32) * warps
        size = residues + residues_x + 8 * (numbers + 2 * m * warps + n * warps * (strips > 1)) + 64 * strips * (n + 31) * warps
        shared = warps * _TEAM_BYTES
        free = _SHARED_BYTES // self.resident - _BLOCK_BYTES - shared
        return int(size.max() + 255) // 256 * 256, shared + min(int(residues.max()), max(0, free)) // 16 * 16

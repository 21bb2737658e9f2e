"""Alignment of a query with a database of chains by descriptors on a GPU, with the kernels of structure_alignment.cu.

Counterpart of `proteoscope.kernels.cpu.structure_alignment`.

The database stays on the device if it fits; otherwise its chains are sent in batches. The device runs both phases for a range of chains
before it returns control to the host.

ATGPU analysis of a query of m residues and s elements against n chains of r residues and t elements in total. `analysis` computes these
numbers in words of 4 bytes:

* rounds: one per batch of the database (one batch if memory suffices); for each range of chains in a batch, one launch of phase 1, and one
  of phase 2 for each strip of the query;
* words in: 2 r + 2 (n + 1) and 5 t / 4 + 2 (n + 1), only once if the database stays on the device; 2 m, 5 s / 4, 2 n and the tables with
  each query; words out: 2 n;
* operations: s t cells of phase 1 and at most m r cells of phase 2; each cell takes about 12 operations, and 5 for each term of a reward;
* memory blocks: two words per residue in each strip, and four more for its border in each strip except the first and the last; four words
  for each cell of phase 1, which are cached;
* shared memory: if the rewards fit 16 bits, 64 bytes for each alphabet and code and each column of a lane; otherwise the tables, 4 KB an
  alphabet and 40 KB if lengths and angles are compared.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.rates import USUAL_RATES, items_between_checks
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceMemoryError, equal_partitions
from proteoscope.kernels.structure_layouts import CODES, PADDING, Rewards, StructureArrays

__all__ = ["StructureSearch"]

_FILE = "structure_alignment.cu"
_LANES = 32
_COLUMNS = (2, 4, 6, 8, 10, 12)  # possible numbers of columns per lane
_THREADS, _ELEMENT_THREADS, _MAXIMUM_PROFILE_THREADS = 256, 128, 1024
_BLOCKS, _ELEMENT_BLOCKS = 8, 8  # blocks per multiprocessor in phase 2, if shared memory suffices, and in phase 1
_SHARE_OF_FREE_MEMORY = 0.8
_RESIDUE_BYTES, _BORDER_BYTES, _ELEMENT_BYTES, _CHAIN_BYTES = 8, 8, 5, 16 + 8
_CELLS_OF_RUN = 20_000_000_000  # matrix cells between two checks for a cancel: about 20 ms on an H200

_POINTERS = "state", "length", "angle", "element_type", "element_length"
_CHAINS = np.dtype(
    [
        *[(name, np.uint64) for name in ("offsets", "state", "length", "angle", "element_offsets", "element_type", "element_length")],
        ("residues_before", np.int64),
        ("elements_before", np.int64),
    ]
)
"""Layout of the struct Chains in structure_alignment.cu."""
_QUERY = np.dtype(
    [
        *[(name, np.uint64) for name in (*_POINTERS, "tables", "lowest")],
        *[(name, np.int32) for name in ("n", "n_elements", "gap_first", "gap_next", "element_gap_first", "element_gap_next")],
    ]
)
"""Layout of the struct Query in structure_alignment.cu."""
_RESULTS = np.dtype([(name, np.uint64) for name in ("scores", "element_scores", "border", "rows", "next_chain")])
"""Layout of the struct Results in structure_alignment.cu."""


@dataclass(frozen=True)
class Analysis:
    """Cost of a search: words and transfers in both directions, launches, cells of both phases, and shared bytes of a block in phase 2."""

    words_in: int
    words_out: int
    launches: int
    element_cells: int
    residue_cells: int
    shared_bytes: int


def analysis(query: StructureArrays, chains: StructureArrays, rewards: Rewards, least: int) -> Analysis:
    """Return the cost of a search in one batch, including the transfer of the database, with all chains in phase 2."""
    n, m, lowest = len(chains.offsets) - 1, len(query.state), _lowest_rewards(rewards)
    columns = _columns_for(m)
    residues, elements, tables = len(chains.state), len(chains.element_type), len(_table_values(rewards))
    of_chains = 2 * residues * 4 + 16 * (n + 1) + _ELEMENT_BYTES * elements
    of_query = 8 * m + _ELEMENT_BYTES * len(query.element_type) + 4 * (tables + len(lowest))
    return Analysis(
        words_in=(of_chains + of_query) // 4 + 2 * n,
        words_out=2 * n,
        launches=(least > 0) + -(-m // (columns * _LANES)),
        element_cells=len(query.element_type) * elements if least > 0 else 0,
        residue_cells=m * residues,
        shared_bytes=_profile_bytes(rewards, columns) if len(lowest) else 4 * tables,
    )


def _columns_for(m: int, most: int = _COLUMNS[-1]) -> int:
    """Return the smallest number of columns per lane with which a query of m residues needs as few strips as with `most` columns."""
    strips = -(-max(1, m) // (most * _LANES))
    return next(columns for columns in _COLUMNS if strips * columns * _LANES >= m)


def _profile_bytes(rewards: Rewards, columns: int) -> int:
    return len(rewards.tables) * CODES * 2 * columns * _LANES


def _lowest_rewards(rewards: Rewards) -> NDArray[np.int32]:
    """Return the lowest value of each table for residues, (k,).

    The array is empty if lengths and angles are compared directly, or if sums of rewards do not fit the halves of a word.

    The lowest value of the first table also replaces `FORBIDDEN`: it makes every reward of padding negative, so that no score increases
    there.
    """
    none = np.zeros(0, np.int32)
    if len(rewards.of_length):
        return none
    tables = rewards.tables.astype(np.int64)
    lowest, highest = tables.min(axis=(1, 2)), tables.max(axis=(1, 2))
    lowest[0] = min(tables[0, :PADDING, :PADDING].min(), -1 - highest[1:].sum())
    limits = np.iinfo(np.int16)
    fits = lowest.sum() >= limits.min and highest.sum() <= limits.max
    return lowest.astype(np.int32) if fits else none


def _table_values(rewards: Rewards) -> NDArray[np.int32]:
    """Return all tables concatenated."""
    return np.concatenate([rewards.tables.reshape(-1), rewards.of_length, rewards.of_angle]).astype(np.int32)


@dataclass(frozen=True)
class _Batch:
    """Chains `first:last` with the buffers of their columns, and the kernels' argument."""

    first: int
    last: int
    buffers: dict[str, Any]
    chains: NDArray[np.void]


class StructureSearch:
    """Search of a database of chains on a device.

    Parameters
    ----------
    device
        GPU.
    chains
        Chains sorted by length; in other orders the search may take longer, since a long chain may be processed last.
    """

    def __init__(self, device: Gpu, chains: StructureArrays) -> None:
        self._gpu, self._chains, self._lengths = device, chains, chains.lengths
        self._stream = device.stream()
        self._budget = int(device.free_bytes() * _SHARE_OF_FREE_MEMORY)
        self._resident: _Batch | None = None
        if int(self._bytes()[-1]) <= self._budget:
            with suppress(DeviceMemoryError):
                self._resident = self._sent(0, len(self._lengths))
        device.wait(self._stream)

    def score(
        self,
        query: StructureArrays,
        rewards: Rewards,
        least: int,
        scores: NDArray[np.int32],
        element_scores: NDArray[np.int32],
        first: int = 0,
        last: int | None = None,
    ) -> Generator[int, None, None]:
        """Score the query against chains (see `proteoscope.kernels.cpu.structure_alignment.StructureSearch.score`).

        A yielded number is the end of the finished chains; the scores of later chains are not written yet.

        Raises
        ------
        DeviceError
            If the device failed.
        DeviceMemoryError
            If not even one chain fits.
        """
        last = len(self._lengths) if last is None else last
        try:
            work = _Query(self._gpu, self._stream, query, rewards)
            for batch in self._batches(first, last):
                begin, end = max(first, batch.first), min(last, batch.last)
                n = batch.last - batch.first
                workspace = {name: self._gpu.buffer(4 * n) for name in ("scores", "element_scores")}
                workspace["border"] = self._gpu.buffer(_BORDER_BYTES * self._n_residues(batch) if work.n_strips > 1 else 0)
                none = np.full(n, -1, np.int32)
                for name in ("scores", "element_scores"):
                    self._gpu.upload(workspace[name], none, self._stream)
                cells = self._lengths[begin:end] * max(1, len(query.state))
                most = items_between_checks(_CELLS_OF_RUN, self._gpu.rates.maxima, USUAL_RATES.maxima)
                runs = sorted(equal_partitions(cells, 1, maximum_cost=most, per_worker=1), key=lambda run: run.first)
                for run in runs:
                    here, there = begin - batch.first + run.first, begin - batch.first + run.last
                    work.align(batch.chains, workspace, here, there, least)
                    for out, buffer in ((scores, workspace["scores"]), (element_scores, workspace["element_scores"])):
                        result = out[begin + run.first : begin + run.last]
                        self._gpu.download(result, buffer, self._stream, offset=4 * here)
                    self._gpu.wait(self._stream)
                    yield begin + run.last
        finally:
            self._gpu.wait(self._stream)

    def _n_residues(self, batch: _Batch) -> int:
        return int(self._chains.offsets[batch.last] - self._chains.offsets[batch.first])

    def _bytes(self) -> NDArray[np.int64]:
        """Return the cumulative bytes of the chains on the device, with all columns, borders and scores, (n + 1,)."""
        chains = self._chains
        of_residues = (_RESIDUE_BYTES + _BORDER_BYTES) * (chains.offsets - chains.offsets[0])
        of_elements = _ELEMENT_BYTES * (chains.element_offsets - chains.element_offsets[0])
        return of_residues + of_elements + _CHAIN_BYTES * np.arange(len(chains.offsets))

    def _batches(self, first: int, last: int) -> Generator[_Batch, None, None]:
        """Yield batches of chains on the device: one batch if all chains are already there, otherwise batches that fit."""
        if self._resident is not None:
            if first < last:
                yield self._resident
            return
        before = self._bytes()
        while first < last:
            end = min(last, int(np.searchsorted(before, before[first] + self._budget, side="right")) - 1)
            if end <= first:
                raise DeviceMemoryError(f"{self._gpu.name} has {self._budget / 1e6:,.0f} MB of memory available, not enough for one chain")
            yield self._sent(first, end)
            first = end

    def _sent(self, first: int, last: int) -> _Batch:
        chains = self._chains
        residues = slice(int(chains.offsets[first]), int(chains.offsets[last]))
        elements = slice(int(chains.element_offsets[first]), int(chains.element_offsets[last]))
        columns: dict[str, NDArray] = {
            "offsets": chains.offsets[first : last + 1],
            "state": chains.state[residues],
            "length": chains.length[residues],
            "angle": chains.angle[residues],
            "element_offsets": chains.element_offsets[first : last + 1],
            "element_type": chains.element_type[elements],
            "element_length": chains.element_length[elements],
        }
        buffers = sent(self._gpu, columns, self._stream)
        self._gpu.wait(self._stream)
        before = {"residues_before": residues.start, "elements_before": elements.start}
        return _Batch(first, last, buffers, struct(self._gpu, _CHAINS, {**buffers, **before}))


class _Query:
    """A query on the device, with the rewards (scores) of its pairs of residues."""

    def __init__(self, gpu: Gpu, stream: Any, query: StructureArrays, rewards: Rewards) -> None:
        self._gpu, self._stream = gpu, stream
        tables, lowest = _table_values(rewards), _lowest_rewards(rewards)
        fitting = [columns for columns in _COLUMNS if _profile_bytes(rewards, columns) <= gpu.maximum_shared_bytes()]
        self._has_profile = len(lowest) > 0 and bool(fitting)
        self._buffers = sent(
            gpu,
            {
                "state": query.state,
                "length": query.length,
                "angle": query.angle,
                "element_type": query.element_type,
                "element_length": query.element_length,
                "tables": tables,
                "lowest": lowest,
            },
            stream,
        )
        self._columns = _columns_for(len(query.state), fitting[-1] if self._has_profile else _COLUMNS[-1])
        self.n_strips = -(-len(query.state) // (self._columns * _LANES))
        self._shared_bytes = _profile_bytes(rewards, self._columns) if self._has_profile else tables.nbytes
        shifts = ",".join(str(shift) for shift in rewards.shifts)
        self._defines = f"COLUMNS={self._columns}", f"SHIFTS={shifts}", f"COMPARES={int(len(rewards.of_length) > 0)}"
        threads = gpu.multiprocessors() * _ELEMENT_BLOCKS * _ELEMENT_THREADS
        self._element_threads, n_elements = threads, len(query.element_type)
        self._workspace = {"next_chain": gpu.buffer(4), "rows": gpu.buffer(8 * threads * n_elements)}
        numbers = {
            "n": len(query.state),
            "n_elements": n_elements,
            "gap_first": rewards.gap_first,
            "gap_next": rewards.gap_next,
            "element_gap_first": rewards.element_gap_first,
            "element_gap_next": rewards.element_gap_next,
        }
        self._query = struct(gpu, _QUERY, {**self._buffers, **numbers})
        gpu.wait(stream)

    def align(self, chains: NDArray[np.void], workspace: dict[str, Any], first: int, last: int, least: int) -> None:
        """Compute both phases for the chains `first:last` of a batch; only phase 2 if `least` is 0."""
        gpu, results = self._gpu, struct(self._gpu, _RESULTS, {**self._workspace, **workspace})
        arguments = chains, self._query, results, np.int32(first), np.int32(last)
        if least > 0:
            blocks = min(self._element_threads // _ELEMENT_THREADS, -(-(last - first) // _ELEMENT_THREADS))
            gpu.launch(_FILE, "align_elements", blocks, _ELEMENT_THREADS, arguments, self._stream, defines=self._defines)
        n = last - first
        if self._has_profile:
            # One block for each multiprocessor, with more warps only if all have one.
            kernel, blocks = "align_residues_by_profile", min(gpu.multiprocessors(), n)
            threads = min(_MAXIMUM_PROFILE_THREADS, _LANES * -(-n // max(1, blocks)))
        else:
            kernel, blocks, threads = "align_residues", min(gpu.multiprocessors() * _BLOCKS, -(-n // (_THREADS // _LANES))), _THREADS
        admitting = np.int32(least if least > 0 else -1)  # without phase 1, all element scores are -1
        for strip in range(self.n_strips):
            gpu.clear(self._workspace["next_chain"], 4, self._stream)
            gpu.launch(
                _FILE,
                kernel,
                blocks,
                threads,
                (*arguments, admitting, np.int32(strip * self._columns * _LANES)),
                self._stream,
                shared_bytes=self._shared_bytes,
                defines=self._defines,
            )

"""Workload that aligns pairs of references and reads with a bounded number of gaps, on any devices."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import GpuShape, PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.kernels.cuda.gapsmis_plan import Properties, predicted_seconds
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, SINGLE_PASS, Alignments, GapRules, Sequences

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.gapsmis import ReadSearch

__all__ = ["KIND", "STEP_CELLS", "ReferencesAgainstReads", "align_pairs", "build_workload", "cells", "reached"]

KIND = "reads"
STEP_CELLS = 1_000_000
"""Number of matrix cells per step of the progress."""
_TRACED = 1.65  # time of a traced cell relative to a scored cell, on one core of an EPYC
_PAIRS, _TEXT, _PATTERN = 100_000, 250, 200
_DRAWN = 20_000  # number of distinct synthetic pairs, which are then repeated
_CODES = np.array([0, 2, 6, 19], np.int8)  # A, C, G, T
_MATCH, _MISMATCH, _GAPS = 2, -3, 2
_WINDOW = 2.0  # traced reference bases before the end of an alignment, per base of the read


def build_workload(references: Sequences, reads: Sequences, rules: GapRules) -> Workload:
    """Return the workload of aligning pairs of references and reads."""
    settings = rules._asdict()
    matrix = settings.pop("matrix")
    return Workload(KIND, {"texts": references._asdict(), "patterns": reads._asdict(), "matrix": {"scores": matrix}}, settings)


def align_pairs(session: Session, reference_of: NDArray[np.int64], read_of: NDArray[np.int64], *, traces: bool = True) -> Alignments:
    """Return the alignments of pairs of references and reads.

    Parameters
    ----------
    session : Session
        Session of a workload from `build_workload`.
    reference_of, read_of : ndarray of int64, shape (n,)
        Index of the reference and of the read of each pair.
    traces : bool
        True to compute also gaps and starts, False to compute only scores and ends.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    state = {"text": reference_of, "pattern": read_of, "traces": traces}
    # Items are given explicitly because the pairs of rounds differ, so no pair is assigned to a device in advance.
    return Alignments(**session.run(state, np.arange(len(reference_of)), step_cost=STEP_CELLS))


def reached(references: NDArray[np.int64], reads: NDArray[np.int64], rules: GapRules) -> NDArray[np.int64]:
    """Return the number of bases, from the beginning of the reference, that an optimal alignment can contain, shape (n,).

    In the mode PREFIX, an alignment with later bases would need a gap that costs more than the alignment can score. In other modes, the
    number is the length of the reference.

    Parameters
    ----------
    references, reads : ndarray of int64, shape (n,)
        Lengths of the references and reads.
    rules : GapRules
        Scores and limits of the alignments.
    """
    if rules.mode != PREFIX or not rules.gap_extend:
        return references
    reached: NDArray[np.int64] = np.minimum(
        references, reads + (reads * rules.maximum_gain + rules.maximum_loss(reads)) // rules.gap_extend
    )
    return reached


def cells(references: NDArray[np.int64], reads: NDArray[np.int64], rules: GapRules, *, traces: bool) -> NDArray[np.float64]:
    """Return the estimated CPU time of pairs with the given lengths, shape (n,). The unit is the time of one cell that is only scored.

    A cell takes longer if the path of the alignment is traced too. Pairs with short references are traced directly. Pairs with longer
    references are first scored, and then traced in the region before the end of the alignment.

    Parameters
    ----------
    references, reads : ndarray of int64, shape (n,)
        Lengths of the references and reads.
    rules : GapRules
        Scores and limits of the alignments.
    traces : bool
        True if the alignments are traced.
    """
    rows = (reads + 1.0) * (rules.maximum_gaps + 1)
    scored = (references + 1.0) * rows
    if not traces:
        return scored
    times, more = SINGLE_PASS
    at_once = (references <= times * reads + more) & (rules.mode != LOCAL)
    return np.where(at_once, _TRACED * scored, scored + _TRACED * rows * np.minimum(references + 1.0, _WINDOW * reads + 1.0))


class ReferencesAgainstReads(PredictableWorkloadType):
    """Workload type whose items are the pairs of a reference and a read in a round; the state of the round contains these pairs."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload, to measure the speed of devices.

        Each read is the beginning of a random reference, with 2 % wrong bases.
        """
        rng = np.random.default_rng(seed)
        n = max(8, round(_PAIRS * size))
        references = _CODES[rng.integers(0, 4, (min(n, _DRAWN), _TEXT))]
        reads = references[:, :_PATTERN].copy()
        is_wrong = rng.random(reads.shape) < 0.02
        reads[is_wrong] = _CODES[rng.integers(0, 4, int(is_wrong.sum()))]
        references, reads = (np.resize(every, (n, every.shape[1])) for every in (references, reads))
        matrix = np.full((32, 32), _MISMATCH, np.int32)
        np.fill_diagonal(matrix, _MATCH)
        texts_of, patterns_of = (Sequences(every.ravel(), np.arange(n + 1) * every.shape[1]) for every in (references, reads))
        pairs = np.arange(n)
        work = build_workload(texts_of, patterns_of, GapRules(matrix, 5, 2, _GAPS))
        return Sample(work, [{"text": pairs, "pattern": pairs, "traces": True}])

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        """Return the number of matrix cells of each pair; a pair has one matrix for each number of gaps from 0 to the maximum."""
        references, reads = (np.diff(work.sources[name]["offsets"]) + 1.0 for name in ("texts", "patterns"))
        cells: NDArray[np.float64] = references[state["text"]] * reads[state["pattern"]] * (work.settings["maximum_gaps"] + 1)
        return cells

    def operations(self, work: Workload, state: Any, gpu: GpuShape | None) -> float:
        """Return the operations of all pairs (see `PredictableWorkloadType`): the sum of `cells` on the CPU, predicted ns on a GPU."""
        references, reads = (
            np.diff(work.sources[name]["offsets"])[state[column]] for name, column in (("texts", "text"), ("patterns", "pattern"))
        )
        rules = GapRules(work.sources["matrix"]["scores"], **work.settings)
        references = reached(references, reads, rules)
        if gpu is None:
            return float(cells(references, reads, rules, traces=bool(state["traces"])).sum())

        properties = Properties(gpu.multiprocessors, gpu.capability, gpu.shared_bytes)
        return 1e9 * predicted_seconds(references, reads, rules, properties, traces=bool(state["traces"]))

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Copy references and reads to the device and yield the computation.

        Raises
        ------
        DeviceError
            If the memory of the device is too small, or scores may exceed its integers. Other devices then align the pairs.
        """
        rules = GapRules(work.sources["matrix"]["scores"], **work.settings)
        references, reads = Sequences(**work.sources["texts"]), Sequences(**work.sources["patterns"])
        yield _Computation(backend_module(device, "gapsmis").ReadSearch(device, references, reads, rules), rules.maximum_gaps)

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        """Return `n` rows for pairs without an alignment."""
        return Alignments.none(n, work.settings["maximum_gaps"])._asdict()


class _Computation:
    """References and reads on a device."""

    def __init__(self, search: ReadSearch, maximum_gaps: int) -> None:
        self._search, self._maximum_gaps, self._state = search, maximum_gaps, dict[str, Any]()
        self._out = Alignments.none(0, maximum_gaps)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Begin a round that aligns the pairs of `state` with the indices `items`; None aligns all pairs."""
        chosen = slice(None) if items is None else items
        self._state = {**state, "text": state["text"][chosen], "pattern": state["pattern"][chosen]}
        self._out = Alignments.none(len(self._state["text"]), self._maximum_gaps)

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Align the pairs `first:last`; yield their alignments in several parts."""
        requested = self._state["text"], self._state["pattern"], self._out, first, last
        with closing(self._search.align(*requested, traces=bool(self._state["traces"]))) as ends:
            begun = first
            for end in ends:
                yield PartialResult(end, {name: column[begun:end].copy() for name, column in self._out._asdict().items()})
                begun = end

"""Workload that scores pairs of references and reads with a bounded number of gaps, on any devices."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import CardShape, PartialResult, Rows, Sample, Workload, by_item
from proteoscope.kernels.cuda.gapsmis_plan import Properties, predicted_seconds
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, SINGLE_PASS, Alignments, GapRules, Sequences

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.gapsmis import ReadSearch

__all__ = ["KIND", "STEP_CELLS", "TextsAgainstPatterns", "align_pairs", "build_workload", "cells", "reached"]

KIND = "reads"
STEP_CELLS = 1_000_000
"""Cells in a step of the progress."""
_TRACED = 1.65  # scored cells in the time of one that is traced, on one core of an EPYC
_PAIRS, _TEXT, _PATTERN = 100_000, 250, 200
_DRAWN = 20_000  # synthetic pairs that are drawn at random, and then repeated
_CODES = np.array([0, 2, 6, 19], np.int8)  # A, C, G, T
_MATCH, _MISMATCH, _GAPS = 2, -3, 2
_WINDOW = 2.0  # bases of a reference around the end of an alignment, per base of the read


def build_workload(texts: Sequences, patterns: Sequences, rules: GapRules) -> Workload:
    """Return the workload of aligning pairs of references (`texts`) and reads (`patterns`)."""
    settings = rules._asdict()
    matrix = settings.pop("matrix")
    return Workload(KIND, {"texts": texts._asdict(), "patterns": patterns._asdict(), "matrix": {"scores": matrix}}, settings)


def align_pairs(session: Session, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64], *, traces: bool = True) -> Alignments:
    """Align pairs given by the numbers of their references and reads.

    Raises
    ------
    Cancelled
        The user cancelled.
    """
    state = {"text": text_of, "pattern": pattern_of, "traces": traces}
    # The pairs are named, since a round has others than the one before: none has a device where it belongs.
    return Alignments(**session.run(state, np.arange(len(text_of)), step_cost=STEP_CELLS))


def reached(texts: NDArray[np.int64], patterns: NDArray[np.int64], rules: GapRules) -> NDArray[np.int64]:
    """Return the reference bases (n,) within reach of an alignment from the start; more would cost more than they can score."""
    if rules.mode != PREFIX or not rules.gap_extend:
        return texts
    return np.minimum(texts, patterns + (patterns * rules.maximum_gain + rules.maximum_loss(patterns)) // rules.gap_extend)


def cells(texts: NDArray[np.int64], patterns: NDArray[np.int64], rules: GapRules, *, traces: bool) -> NDArray[np.float64]:
    """(n,) what pairs of these lengths take the processor, in cells that are scored.

    Tracing a cell takes longer. Short references are traced directly; others are scored, and traced near the end of the alignment.
    """
    rows = (patterns + 1.0) * (rules.maximum_gaps + 1)
    scored = (texts + 1.0) * rows
    if not traces:
        return scored
    times, more = SINGLE_PASS
    at_once = (texts <= times * patterns + more) & (rules.mode != LOCAL)
    return np.where(at_once, _TRACED * scored, scored + _TRACED * rows * np.minimum(texts + 1.0, _WINDOW * patterns + 1.0))


class TextsAgainstPatterns:
    """Items are the pairs of a round, which are its state."""

    parts_of_worker = 0

    def samples(self, size: float, seed: int) -> Sample:
        """Return pairs of a synthetic reference and a part of it with some wrong bases, for measuring the speed of devices."""
        rng = np.random.default_rng(seed)
        n = max(8, round(_PAIRS * size))
        texts = _CODES[rng.integers(0, 4, (min(n, _DRAWN), _TEXT))]
        patterns = texts[:, :_PATTERN].copy()
        is_wrong = rng.random(patterns.shape) < 0.02
        patterns[is_wrong] = _CODES[rng.integers(0, 4, int(is_wrong.sum()))]
        texts, patterns = (np.resize(every, (n, every.shape[1])) for every in (texts, patterns))
        matrix = np.full((32, 32), _MISMATCH, np.int32)
        np.fill_diagonal(matrix, _MATCH)
        texts_of, patterns_of = (Sequences(every.ravel(), np.arange(n + 1) * every.shape[1]) for every in (texts, patterns))
        pairs = np.arange(n)
        work = build_workload(texts_of, patterns_of, GapRules(matrix, 5, 2, _GAPS))
        return Sample(work, [{"text": pairs, "pattern": pairs, "traces": True}])

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        """Return the cells of all gap layers of each pair, (pairs,) float64."""
        texts, patterns = (np.diff(work.sources[name]["offsets"]) + 1.0 for name in ("texts", "patterns"))
        cells: NDArray[np.float64] = texts[state["text"]] * patterns[state["pattern"]] * (work.settings["maximum_gaps"] + 1)
        return cells

    def operations(self, work: Workload, state: Any, card: CardShape | None) -> float:
        """Return the work of a round.

        Returns
        -------
        float
            Cells within the reach of the gaps on the CPU; nanoseconds of the launch plan on a GPU.
        """
        texts, patterns = (
            np.diff(work.sources[name]["offsets"])[state[column]] for name, column in (("texts", "text"), ("patterns", "pattern"))
        )
        rules = GapRules(work.sources["matrix"]["scores"], **work.settings)
        texts = reached(texts, patterns, rules)
        if card is None:
            return float(cells(texts, patterns, rules, traces=bool(state["traces"])).sum())

        properties = Properties(card.multiprocessors, card.capability, card.shared_bytes)
        return 1e9 * predicted_seconds(texts, patterns, rules, properties, traces=bool(state["traces"]))

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Put references and reads onto the device.

        Raises
        ------
        DeviceError
            They do not fit there, or the scores do not fit into its numbers; the executor gives the pairs to others.
        """
        rules = GapRules(work.sources["matrix"]["scores"], **work.settings)
        texts, patterns = Sequences(**work.sources["texts"]), Sequences(**work.sources["patterns"])
        yield _Computation(backend_module(device, "gapsmis").ReadSearch(device, texts, patterns, rules), rules.maximum_gaps)

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        """Return an empty result."""
        return Alignments.none(n, work.settings["maximum_gaps"])._asdict()

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Merge results by pair."""
        by_item(into, first, end, rows)


class _Computation:
    """References and reads on a device."""

    def __init__(self, search: ReadSearch, maximum_gaps: int) -> None:
        self._search, self._maximum_gaps, self._state = search, maximum_gaps, dict[str, Any]()
        self._out = Alignments.none(0, maximum_gaps)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Pairs come."""
        chosen = slice(None) if items is None else items
        self._state = {**state, "text": state["text"][chosen], "pattern": state["pattern"][chosen]}
        self._out = Alignments.none(len(self._state["text"]), self._maximum_gaps)

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Align the pairs `first:last`."""
        requested = self._state["text"], self._state["pattern"], self._out, first, last
        with closing(self._search.align(*requested, traces=bool(self._state["traces"]))) as ends:
            begun = first
            for end in ends:
                yield PartialResult(end, {name: column[begun:end].copy() for name, column in self._out._asdict().items()})
                begun = end

"""A workload type that takes time but no CPU and can end the process that computes it."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.workload import PartialResult, Rows, Workload, WorkloadType
from proteoscope.kernels.device import Device

NAME = "slow squares"


def load() -> type[SlowSquares]:
    """Return the workload type, as its registry expects."""
    return SlowSquares


def squares(
    x: NDArray[np.int64], *, seconds: float = 0.0, deadly: int = -1, trace: Path | None = None, gate: Path | None = None
) -> Workload:
    """Return the workload of squares of numbers that take `seconds` each; the number `deadly` ends the process.

    `trace` is a file to which each finished number is appended; the files with the suffixes .opened and .closed record each opening and
    closing of the workload. Each number waits until the file `gate` exists.
    """
    files = {"trace": "" if trace is None else str(trace), "gate": "" if gate is None else str(gate)}
    return Workload(NAME, {"numbers": {"x": x}}, {"seconds": seconds, "deadly": deadly, **files})


class SlowSquares(WorkloadType):
    """Squares of numbers: items are the numbers; the state of a round is added to each square."""

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        return np.ones(len(work.sources["numbers"]["x"]))

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        trace = work.settings["trace"]
        if trace:
            _note(f"{trace}.opened", "1")
        try:
            yield _Computation(work)
        finally:
            if trace:
                _note(f"{trace}.closed", "1")

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        return {"found": np.full(n, -1, np.int64)}

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        assert (into["found"][first:end] == -1).all(), "each item is merged once"
        super().merge(into, first, end, rows)


def _note(path: str, line: str) -> None:
    with Path(path).open("a", encoding="ascii") as file:
        file.write(f"{line}\n")


class _Computation:
    def __init__(self, work: Workload) -> None:
        self._x, self._settings = work.sources["numbers"]["x"], work.settings
        self._state = 0
        self._items: NDArray[np.int64] | None = None

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        self._state, self._items = state or 0, items

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        for place in range(first, last):
            item = place if self._items is None else int(self._items[place])
            if item == self._settings["deadly"]:
                os._exit(9)
            while self._settings["gate"] and not Path(self._settings["gate"]).exists():
                time.sleep(0.01)
            time.sleep(self._settings["seconds"])
            if self._settings["trace"]:
                _note(self._settings["trace"], str(item))
            yield PartialResult(place + 1, {"found": self._x[item : item + 1] ** 2 + self._state})

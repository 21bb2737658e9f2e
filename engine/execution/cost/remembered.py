"""How long the steps of runs took on this machine, beside what was predicted: later predictions are corrected by it.

Kept in the user's cache for each kind of run and device. A prediction is a number that grows with the work, in about seconds; what the
steps took is fitted to it as a constant and a factor, neither negative, by the least relative errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from proteoscope.engine.execution.cost.parameters import fitted
from proteoscope.engine.project.cache import cache_folder, remember

__all__ = ["StepMemory"]

_KEPT = 24  # of a kind of run and a device; those that are nearest in size count
_NEAREST = 8
_FEWEST_TO_JUDGE = 3
_LEAST = 1e-3  # seconds: what is shorter tells nothing


_Known = tuple[float, float, float]
"""Of a step of a run: seconds that were predicted, those that it took, and what was predicted for the whole run."""


class StepMemory:
    """Of one kind of run.

    Parameters
    ----------
    kind : of the run. device : what computed it, as ``cuda:0 NVIDIA H200``. threads : of the processor.
    """

    def __init__(self, kind: str, device: str, threads: int) -> None:
        self._key = f"{kind}: {device}, {threads} threads"
        self._records: list[dict[str, dict[str, float]]] | None = None

    def corrected(self, step: str, predicted: float, size: float) -> float | None:
        """Seconds of a step for which so many were predicted, by runs of about this size; None where there was none."""
        known = self._nearest(step, size)
        return _corrected(known, predicted) if known else None

    def typical_error(self, step: str, size: float) -> float | None:
        """By how much a step of runs of about this size was mistaken when all others of them tell it: the median of the errors, as a share
        of what it took. None where they are fewer than three.
        """
        known = self._nearest(step, size)
        if len(known) < _FEWEST_TO_JUDGE:
            return None
        others = [[*known[:number], *known[number + 1 :]] for number in range(len(known))]
        return median(abs(_corrected(rest, one[0]) - one[1]) / max(one[1], _LEAST) for rest, one in zip(others, known, strict=True))

    def _nearest(self, step: str, size: float) -> list[_Known]:
        """Of the runs that are remembered, those with this step that are nearest in size."""
        known = [
            (record["predicted"][step], record["measured"][step], record["size"]["seconds"])
            for record in self._remembered
            if step in record["predicted"] and step in record["measured"]
        ]
        return sorted(known, key=lambda one: abs(_ratio(one[2], size)))[:_NEAREST]

    @property
    def _remembered(self) -> list[dict[str, dict[str, float]]]:
        if self._records is None:
            self._records = _all().get(self._key, [])
        return self._records

    @property
    def n(self) -> int:
        """Runs that are remembered."""
        return len(self._remembered)

    def remember(self, predicted: Mapping[str, float], measured: Mapping[str, float]) -> None:
        """Keep a run. A disk that refuses is no reason to complain."""
        every = _all()
        record = {
            "predicted": dict(predicted),
            "measured": dict(measured),
            "size": {"seconds": predicted.get("all", sum(predicted.values()))},
        }
        every[self._key] = [*every.get(self._key, []), record][-_KEPT:]
        remember(_file(), json.dumps(every).encode())


def _corrected(known: Sequence[_Known], predicted: float) -> float:
    """What was predicted, as these runs correct it."""
    if len(known) == 1 or max(one[0] for one in known) < 1.2 * min(one[0] for one in known):
        # Of one size nothing is known of how it grows but what was predicted.
        return max(0.0, predicted + sum(one[1] - one[0] for one in known) / len(known))
    constant, factor = fitted([(1.0, one[0]) for one in known], [max(one[1], _LEAST) for one in known])
    return constant + factor * predicted


def _ratio(one: float, other: float) -> float:
    return log(max(one, _LEAST) / max(other, _LEAST))


def _file() -> Path:
    return cache_folder() / "steps.json"


def _all() -> dict[str, Any]:
    """Records as earlier runs left them, in so far as they are records."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
        return {str(key): [record for record in records if _is_record(record)] for key, records in found.items()}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}


def _is_record(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and {"predicted", "measured", "size"} <= set(record)
        and all(
            isinstance(values, dict) and all(isinstance(one, int | float) and 0 <= one < 1e9 for one in values.values())
            for values in record.values()
        )
        and "seconds" in record["size"]
    )

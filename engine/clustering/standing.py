"""Checkpoints of k-means: completed rounds, or chosen first centroids, from which a stopped run resumes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.kept import Checkpoint
from proteoscope.kernels.k_means_layouts import VectorSums

__all__ = ["Standing"]

SECONDS_AT_ONCE = 5.0  # of rounds that a device does without a word, in a run that can be resumed
_FIRST_AT_ONCE = 4


class Standing:
    """Checkpoint of one iteration, made by `of`; always at the start in a run without storage."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._checkpoint, self._at_once, self._asked = checkpoint, _FIRST_AT_ONCE, time.monotonic()

    @classmethod
    def of(cls, session: Session, asked: dict[str, Any]) -> Standing:
        """Return the checkpoint of an iteration with these settings."""
        return cls(session.checkpoint(asked))

    def rounds_at_once(self, left: int) -> int:
        """Return how many remaining rounds a single device runs between checkpoints: some seconds' worth."""
        if self._checkpoint is None:
            return left
        now = time.monotonic()
        if now - self._asked < SECONDS_AT_ONCE:
            self._at_once *= 2
        elif now - self._asked > 2 * SECONDS_AT_ONCE:
            self._at_once = max(1, self._at_once // 2)
        self._asked = now
        return min(left, self._at_once)

    def resumed_rounds(self, labels: NDArray[np.int32] | None, centroids: Any) -> tuple[NDArray[np.int32] | None, Any, Any, int]:
        """Return the last labels (None if on several devices), last and next centroids, and completed rounds.

        Without a checkpoint, these are the arguments, with None and 0.
        """
        kept = None if self._checkpoint is None else self._checkpoint.state()
        if kept is None:
            return labels, None, centroids, 0
        previous, following = (_columns(kept, name, isinstance(centroids, VectorSums)) for name in ("previous", "centroids"))
        return kept.get("labels"), previous, following, int(kept["done"][0])

    def keep_rounds(self, labels: NDArray[np.int32] | None, previous: Any, centroids: Any, done: int) -> None:
        """Store the state after a number of rounds."""
        if self._checkpoint is not None and self._checkpoint.is_due:
            state = {"done": np.array([done])} if labels is None else {"done": np.array([done]), "labels": labels}
            for name, one in (("previous", previous), ("centroids", centroids)):
                state |= {f"{name}_{number}": column for number, column in enumerate(one if isinstance(one, VectorSums) else (one,))}
            self._checkpoint.keep(state)

    def resumed_seeds(self, chosen: list[int], nearest: NDArray[np.float64]) -> tuple[list[int], NDArray[np.float64]]:
        """Items that were chosen, and of each item the distance from the nearest of them but the last; those given where none was."""
        kept = None if self._checkpoint is None else self._checkpoint.state()
        return (chosen, nearest) if kept is None else (kept["chosen"].tolist(), kept["nearest"])

    def keep_seeds(self, chosen: list[int], nearest: NDArray[np.float64]) -> None:
        """Store the chosen centroids."""
        if self._checkpoint is not None and self._checkpoint.is_due:
            self._checkpoint.keep({"chosen": np.array(chosen), "nearest": nearest})


def _columns(kept: Mapping[str, NDArray], name: str, is_sparse: bool) -> Any:
    """Centroids of this name, as they were given."""
    columns = (kept[f"{name}_{number}"] for number in range(len(VectorSums._fields) if is_sparse else 1))
    return VectorSums(*columns) if is_sparse else next(columns)

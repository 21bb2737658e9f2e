"""How long the stages of a job take, and what is left of the whole by those of the last job of its kind."""

from __future__ import annotations

from collections.abc import Mapping

from proteoscope.engine.jobs import ProgressEvent

__all__ = ["StageTimes"]

_SURE_SECONDS = 0.5
"""What less than this promises is nothing to go by."""


class StageTimes:
    """Takes the time of each stage of a running job.

    Parameters
    ----------
    earlier : seconds of each stage of the last finished job of its kind, in their order; empty where there is none.
    """

    def __init__(self, earlier: Mapping[str, float]) -> None:
        self._earlier = dict(earlier)
        self._done: dict[str, float] = {}
        self._stage = ""
        self._began = 0.0

    def begin(self, stage: str, now: float) -> None:
        """A stage begins at a time, and the one before ends. Times are seconds of any clock."""
        if self._stage:
            self._done[self._stage] = self._done.get(self._stage, 0.0) + now - self._began
        self._stage, self._began = stage, now

    def end(self, now: float) -> dict[str, float]:
        """The last stage ends; seconds of each stage, in their order."""
        self.begin("", now)
        return self._done

    def left(self, progress: ProgressEvent | None, now: float) -> float | None:
        """Seconds that the job still needs, None where nothing says so.

        What the earlier job took for the stages that are to come, longer or shorter by as much as this one has needed longer or shorter for
        those that are over; and of the stage that runs, what its own steps say, or what it took then.
        """
        stages = list(self._earlier)
        if self._stage not in self._earlier:
            return None
        of_stage = progress.seconds_left if progress is not None and progress.seconds > _SURE_SECONDS else None
        if of_stage is None:
            of_stage = max(0.0, self._earlier[self._stage] * self._pace() - (now - self._began))
        to_come = [stage for stage in stages[stages.index(self._stage) + 1 :] if stage not in self._done]
        return of_stage + self._pace() * sum(self._earlier[stage] for stage in to_come)

    def _pace(self) -> float:
        """How many times the seconds of the earlier job this one needs."""
        both = [stage for stage in self._done if stage in self._earlier]
        before, now = sum(self._earlier[stage] for stage in both), sum(self._done[stage] for stage in both)
        return now / before if min(before, now) > _SURE_SECONDS else 1.0

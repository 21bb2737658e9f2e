"""Durations of the stages of a job, and an estimate of its remaining time based on the previous job of the same kind."""

from collections.abc import Mapping

from proteoscope.engine.jobs import ProgressEvent

_SURE_SECONDS = 0.5
"""Seconds after which the progress of a stage gives a usable estimate of its duration."""


class StageTimes:
    """Durations of the stages of a running job.

    Parameters
    ----------
    earlier : mapping of str to float
        Durations of the stages of the last finished job of this kind, in seconds and in order; may be empty.
    """

    def __init__(self, earlier: Mapping[str, float]) -> None:
        self._earlier = dict(earlier)
        self._done: dict[str, float] = {}
        self._stage = ""
        self._began = 0.0

    def begin(self, stage: str, now: float) -> None:
        """Start a stage and end the previous one. `now` is the time in seconds of any monotonic clock."""
        if self._stage:
            self._done[self._stage] = self._done.get(self._stage, 0.0) + now - self._began
        self._stage, self._began = stage, now

    def end(self, now: float) -> dict[str, float]:
        """End the last stage and return the durations of all stages, in seconds and in order."""
        self.begin("", now)
        return self._done

    def left(self, progress: ProgressEvent | None, now: float) -> float | None:
        """Return the estimated remaining seconds of the job, or None if there is no estimate.

        Future stages are estimated from the durations in the earlier job, scaled by the ratio of the two jobs' finished stages. The running
        stage is estimated from its own progress, or from the earlier job until its progress is known. Return None if the earlier job did
        not have the running stage.
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
        """Return the time of the finished stages in this job, divided by their time in the earlier job; 1 if the ratio is uncertain."""
        both = [stage for stage in self._done if stage in self._earlier]
        before, now = sum(self._earlier[stage] for stage in both), sum(self._done[stage] for stage in both)
        return now / before if min(before, now) > _SURE_SECONDS else 1.0

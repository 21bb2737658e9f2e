"""Predicted time of a workload on a device, and its correction by the recent runs on this machine.

The prediction adds transfers, kernels, synchronisation, and host operations. Other load on the machine only makes runs slower. The fastest
of the last few runs is therefore used; runs that waited for the CPUs are excluded if there are other runs. If this run took m seconds in a
step that was predicted to take p seconds, a step with x predicted seconds is corrected by the line through (p, m) and (-a, -a), where a is
`_SMALL`. The corrected time is about x m / p for long steps, and x + m - p for short steps, whose error is mostly a constant.
"""

from collections.abc import Mapping, Sequence
from math import log
from statistics import median
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from proteoscope.engine.execution.cost.parameters import DeviceParameters, WorkSize
from proteoscope.engine.execution.device_store import Facts

__all__ = ["Bound", "Prediction", "StepHistory", "find_bound", "predict_workload"]

Bound = Literal["transfer", "memory", "compute", "host"]
"""Component that limits the time of a workload."""


class Prediction(NamedTuple):
    """Predicted seconds of a workload, by component.

    `operations` is the time of the kernels' operations at the measured rate; `memory` is the minimum time of moving the transferred bytes
    once through device memory.
    """

    transfer: float
    kernel: float
    synchronisation: float
    host: float
    memory: float = 0.0

    @property
    def seconds(self) -> float:
        """Sum of all components, seconds."""
        return self.transfer + self.kernel + self.synchronisation + self.host


def predict_workload(parameters: DeviceParameters, kind: str, size: WorkSize) -> Prediction:
    """Return the predicted seconds of a workload of the given size on a device.

    Raises
    ------
    KeyError
        If the workload type was not measured on the device.
    """
    costs, moved = parameters.kinds[kind], size.bytes_in + size.bytes_out
    kernel = costs.kernel_seconds(size.operations)
    if parameters.is_processor:
        return Prediction(0.0, kernel, 0.0, 0.0, moved / parameters.memory_bandwidth)
    # Synchronisation is the part of the host's time in which it waits for rounds to end.
    host = costs.host_seconds(size.items, moved)
    synchronisation = min(size.rounds * parameters.sigma, host)
    memory = min(kernel, moved / parameters.memory_bandwidth)
    return Prediction(costs.transfer_seconds(moved), kernel, synchronisation, host - synchronisation, memory)


def find_bound(prediction: Prediction) -> Bound:
    """Return what limits the speed: the component ``transfer`` or ``host`` if it is the longest, otherwise ``memory`` or ``compute``.

    The latter two are limits of the kernels.
    """
    largest = max(prediction.transfer, prediction.kernel, prediction.host + prediction.synchronisation)
    if largest == prediction.kernel:
        return "memory" if prediction.memory > prediction.kernel / 2 else "compute"
    return "transfer" if largest == prediction.transfer else "host"


_MAXIMUM_RUNS = 16  # number of runs stored for each kind of run and device
_RECENT = 3  # runs that correct a prediction
_LOADED = 0.5  # fraction of the largest `cpu_share`; below it, other programs slowed a run down
_NEAR = 4.0  # runs count as equally similar in size within this ratio of predicted seconds
_SMALL = 1.0  # seconds; constants that predictions lack, such as the loading of libraries, are smaller
_LEAST = 1e-3  # seconds

_Seconds = dict[Annotated[str, Field(max_length=20)], Annotated[float, Field(ge=0, lt=1e9)]]


class _Run(BaseModel):
    """Seconds of the steps of a run; `measured` has the same steps as `predicted`.

    Attributes
    ----------
    index
        Key of the files from which the index of the run is built; '' if the run uses no index.
    finds_index
        True if an earlier run had built the index.
    cpu_share
        Value of `StageClock.cpu_share` at the end of the run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    predicted: _Seconds = Field(max_length=16)
    measured: _Seconds = Field(max_length=16)
    index: str = Field("", max_length=64)
    finds_index: bool = False
    cpu_share: float = Field(1.0, ge=0, le=1)

    @property
    def slowness(self) -> float:
        """Ratio of measured to predicted seconds of the whole run."""
        return (sum(self.measured.values()) + _SMALL) / (sum(self.predicted.values()) + _SMALL)

    def without_load(self, best: float) -> "_Run":
        """Return the run with measured seconds as without other programs, if these slowed it down much; otherwise the run itself.

        `best` is the largest `cpu_share` of all runs. If the `cpu_share` of this run is below half of `best`, the measured seconds are
        multiplied by `cpu_share` / `best`.
        """
        if self.cpu_share >= _LOADED * best:
            return self
        return self.model_copy(update={"measured": {step: seconds * self.cpu_share / best for step, seconds in self.measured.items()}})


_HISTORIES: Facts[list[_Run]] = Facts("runs", Annotated[list[_Run], Field(max_length=_MAXIMUM_RUNS)], 128)


class StepHistory:
    """Recent runs of one kind on one device.

    Parameters
    ----------
    kind : str
        Kind of the runs.
    device : str
        Description of the device.
    threads : int
        Number of CPU threads.
    index : str
        Key of the files from which an index is built for later runs of this kind or another; '' if no index is built.

    Attributes
    ----------
    finds_index : bool
        True if an earlier run has built the index.
    """

    def __init__(self, kind: str, device: str, threads: int, index: str = "") -> None:
        self._key = f"{kind}: {device}, {threads} threads"
        histories = _HISTORIES.all()
        best = max((run.cpu_share for runs in histories.values() for run in runs), default=1.0)
        self._runs = [run.without_load(best) for run in histories.get(self._key, ())]
        self._index = index
        self.finds_index = bool(index) and any(run.index == index for runs in histories.values() for run in runs)

    def corrected(self, predicted: Mapping[str, float]) -> tuple[dict[str, float], int]:
        """Return the predicted seconds of steps, corrected by recent runs of similar size, and the number of these runs."""
        return _corrected(self._runs, predicted, self.finds_index), len(_recent(self._runs, predicted))

    def typical_error(self, predicted: Mapping[str, float]) -> float | None:
        """Return the median relative error of predictions: each recent run of similar size is predicted from the runs before it.

        Return None if there are fewer than two such predictions.
        """
        errors = []
        for run in _recent(self._runs, predicted):
            number = next(number for number, stored in enumerate(self._runs) if stored is run)
            if number:
                measured = sum(run.measured.values())
                estimated = sum(_corrected(self._runs[:number], run.predicted, run.finds_index).values())
                errors.append(abs(estimated - measured) / max(measured, _LEAST))
        return median(errors) if len(errors) > 1 else None

    def add(self, predicted: Mapping[str, float], measured: Mapping[str, float], cpu_share: float = 1.0) -> None:
        """Store the predicted and measured seconds of the steps of a run, and its `StageClock.cpu_share`."""
        of_steps = {step: measured.get(step, 0.0) for step in predicted}
        run = _Run(predicted=dict(predicted), measured=of_steps, index=self._index, finds_index=self.finds_index, cpu_share=cpu_share)
        _HISTORIES.update(self._key, lambda runs: [*(runs or []), run][-_MAXIMUM_RUNS:])


def _recent(runs: Sequence[_Run], predicted: Mapping[str, float]) -> list[_Run]:
    """Return up to three runs with the most similar predicted time, the latest runs first among equally similar ones.

    Runs on a loaded machine are included only if there are no others.
    """
    size = max(sum(predicted.values()), _LEAST)
    loaded = _LOADED * max((run.cpu_share for run in runs), default=1.0)

    def distance(run: _Run) -> tuple[float, bool]:
        return max(abs(log(max(sum(run.predicted.values()), _LEAST) / size)), log(_NEAR)), run.cpu_share < loaded

    newest_first = [*reversed(runs)]
    nearest = sorted(newest_first, key=distance)[:_RECENT]
    return [run for run in nearest if run.cpu_share >= loaded] or nearest


def _corrected(runs: Sequence[_Run], predicted: Mapping[str, float], finds_index: bool) -> dict[str, float]:
    """Return the predicted seconds of steps, corrected by earlier runs.

    The step ``index`` is corrected by runs that found an index if `finds_index`, otherwise by runs that built an index.
    """
    alike = [run for run in runs if run.finds_index == finds_index]
    return _on_line(runs, predicted) | {step: seconds for step, seconds in _on_line(alike, predicted).items() if step == "index"}


def _on_line(runs: Sequence[_Run], predicted: Mapping[str, float]) -> dict[str, float]:
    """Return the predicted seconds of steps, corrected by one run of `_recent`: the fastest relative to its prediction."""
    recent = _recent(runs, predicted)
    if not recent:
        return dict(predicted)
    fastest = min(recent, key=lambda run: run.slowness)
    slopes = {step: (fastest.measured.get(step, 0.0) + _SMALL) / (fastest.predicted.get(step, 0.0) + _SMALL) for step in predicted}
    return {step: max(0.0, (seconds + _SMALL) * slopes[step] - _SMALL) for step, seconds in predicted.items()}

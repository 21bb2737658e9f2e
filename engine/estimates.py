"""Estimates of the time and memory of a search before it runs, from the sizes and the beginnings of its files.

The steps, in the order of this module:

1. `expected` checks a request and returns its `Expectation`: workloads, seconds on the host, memory and counts. The module `workload` of
   the search calculates them.
2. `predicted_run` calculates the seconds of the workloads from the calibration of each device, or a shipped one, and adds
   them to the seconds on the host (`_steps`). Recent runs on this machine correct the result (`StepHistory`).
3. `estimate` compares devices. `faster_device_rule` is the only place that decides whether a GPU is worth its start.
4. `proteoscope.engine.views.run_prediction` formats the result for users.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from proteoscope.engine.entry import ESTIMATED_SEARCHES, Input, Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError
from proteoscope.engine.execution import cluster
from proteoscope.engine.execution.cost.calibration_store import reference_parameters, stored_calibration
from proteoscope.engine.execution.cost.parameters import USUAL_START_SECONDS, DeviceParameters, WorkSize
from proteoscope.engine.execution.cost.prediction import Bound, Prediction, StepHistory, find_bound, predict_workload
from proteoscope.engine.execution.devices import Device, gpus, processor, resolve_device
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.execution.workload import GpuShape
from proteoscope.engine.files import is_there
from proteoscope.engine.formats.recognition import recognise_as
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.project.digests import content_bytes, parts_digest

__all__ = [
    "LOCALISE_SECONDS",
    "STEPS",
    "Estimate",
    "Expectation",
    "ExpectedWork",
    "estimate",
    "expected",
    "faster_device_rule",
    "keep_memory",
    "predicted_run",
    "read_counts",
    "remember_run",
    "run_prediction",
]

STEPS = ("read", "index", "plan", "score", "localise", "report")
LOCALISE_SECONDS = 2e-4
"""Seconds per spectrum for localising modifications; half of the spectra are expected to have one."""
_START_SECONDS = 0.4  # seconds for imports, which belong to no step
_BASE_BYTES = 250e6  # memory of the program with its loaded modules
_RECOGNISED = ("spectra", "proteins", "identifications", "libraries")  # contents that are recognised from the beginning of a file
_MEMORY_MARGIN, _INDEX_PART = 1.3, 4  # maximum ratio of measured to estimated memory; indexes may use 1 / 4 of a limit
_OPENED = 0.05  # time for opening an index relative to building it
_WITHOUT_SECONDS = 0.02  # seconds of work on the host outside kernels, if it could not be measured


class ExpectedWork(NamedTuple):
    """Expected work of one workload type, `kind`.

    `size` takes the shape of a GPU, or None for the CPU, and returns the size of the work. `held_bytes` are the bytes that a GPU holds at
    once; by default, it holds all bytes that are transferred to and from it.
    """

    kind: str
    size: Callable[[GpuShape | None], WorkSize]
    held_bytes: float | None = None

    def gpu_bytes(self, size: WorkSize, gpus: int) -> float:
        """Return the bytes on each of `gpus` GPUs: `held_bytes` if given, otherwise the whole input and one GPU's part of the output."""
        return size.bytes_in + size.bytes_out / gpus if self.held_bytes is None else self.held_bytes


@dataclass(frozen=True)
class Expectation:
    """Expected work and memory of a search request.

    Attributes
    ----------
    workloads
        Expected work, one item per type of workload.
    host
        Seconds of each step that one CPU thread needs outside the workloads, such as for reading files.
    counts
        Counts for display, by name.
    memory_bytes
        Peak host memory in bytes, without the program itself.
    index
        Key of the files, in their present state, from which the search builds an index for the user's cache; '' if it stores no index.
    """

    workloads: tuple[ExpectedWork, ...]
    host: Mapping[str, float]
    counts: Mapping[str, float]
    memory_bytes: float
    index: str = ""


@dataclass(frozen=True)
class Estimate:
    """Estimate of a run.

    Attributes
    ----------
    kind
        Kind of the search.
    device, description
        Name and description of the device that computes.
    seconds
        Seconds of the run.
    steps
        Seconds of each step.
    transfer, kernel, synchronisation, host
        Seconds by category.
    bound
        Limiting factor of the run time.
    memory_bytes, gpu_bytes
        Peak bytes on the host and on each GPU.
    counts
        Counts for display, by name.
    n_runs
        Number of recent runs on this machine by which the seconds of the steps were corrected.
    typical_error
        Median relative error of the predictions of these runs; None if there are too few runs.
    is_measured
        True if all devices are calibrated on this machine; False if shipped calibrations are used.
    workload_seconds
        Seconds of each type of work.
    raw_steps
        Seconds of each step before the correction by recent runs.
    index
        See `Expectation`.
    alternatives
        Seconds of the run on other devices.
    disk_bytes
        Bytes of the results; None if they are not estimated.
    notes
        Remarks for the user.
    """

    kind: str
    device: str
    description: str
    seconds: float
    steps: Mapping[str, float]
    transfer: float
    kernel: float
    synchronisation: float
    host: float
    bound: Bound
    memory_bytes: float
    gpu_bytes: float
    counts: Mapping[str, float]
    n_runs: int
    is_measured: bool
    workload_seconds: Mapping[str, float]
    raw_steps: Mapping[str, float]
    typical_error: float | None = None
    index: str = ""
    alternatives: Mapping[str, float] = field(default_factory=dict)
    disk_bytes: float | None = None
    notes: Sequence[str] = ()

    def shares(self) -> dict[str, float]:
        """Return the fraction of the run time of each category: transfer, kernel, synchronisation, host."""
        whole = self.transfer + self.kernel + self.synchronisation + self.host or 1.0
        return {name: getattr(self, name) / whole for name in ("transfer", "kernel", "synchronisation", "host")}

    def __repr__(self) -> str:
        seconds, memory = f"{self.seconds:.0f}" if self.seconds >= 10 else f"{self.seconds:.1f}", self.memory_bytes / 1e9
        return f"Estimate({self.kind} on {self.device}: {seconds} s, {memory:.1f} GB of memory)"

    def record(self) -> dict[str, Any]:
        """Return the estimate as values for JSON."""
        values = asdict(self)
        del values["index"]
        return {**values, "shares": self.shares()}


def keep_memory(
    request: SearchRequest, limit: int, estimated: Callable[[SearchRequest], Estimate], *, place: str | Path = ""
) -> SearchRequest:
    """Return a request that is expected to need less memory than a limit.

    This is `request`, with a smaller value of the parameter `index_memory` if necessary; the results are the same. The estimated memory is
    multiplied by 1.3, since later runs of a process, which has all modules loaded, need up to 1.26 times the estimate.

    Parameters
    ----------
    request : SearchRequest
        Request of a search.
    limit : int
        Maximum memory on the host, MB.
    estimated : callable
        Function that returns the estimate of a request.
    place : str or Path
        File or folder that needs the memory, for the message.

    Raises
    ------
    ParameterError
        If the search needs more memory.
    """
    name, parameters = "index_memory", request.parameters
    if name in type(parameters).model_fields:
        smallest = next(field for field in parameters.describe() if field.name == name).minimum or 0
        value = max(int(smallest), min(getattr(parameters, name), limit // _INDEX_PART))
        request = replace(request, parameters=parameters.changed(**{name: value}))
    needed = estimated(request).memory_bytes * _MEMORY_MARGIN / 1e6
    if needed > limit:
        where = f"{place}: " if place else ""
        raise ParameterError(
            f"{where}a memory limit of {limit:,} MB is too low; about {needed:,.0f} MB are needed. Raise --memory-limit, or use a "
            "smaller database or files with fewer spectra"
        )
    return request


def expected(search: Search, request: SearchRequest) -> Expectation:
    """Return the expected work and memory of a search request.

    Raises
    ------
    InputError, ParameterError
        If a file or a parameter is invalid; the message is that of the search.
    """
    search.check_workers(request.workers)
    for search_input in search.inputs:
        given = request.files(search_input.name)
        if not given and not (search_input.is_optional or (search_input.instead and request.options.get(search_input.instead))):
            raise ParameterError(f"no file of {search_input.name} was given; expected {search_input.option or search_input.metavar}")
        if search_input.content != "structures":
            for path in given:
                _check(path, search_input)
    if search.workload_estimator is None:
        raise ParameterError(f"the time and memory of {search.kind} cannot be estimated")
    return _expectation(search, request)


def _expectation(search: Search, request: SearchRequest) -> Expectation:
    assert search.workload_estimator is not None
    expectation: Expectation = search.workload_estimator()(request)
    return replace(expectation, index=_index_key(search, request))


def _index_key(search: Search, request: SearchRequest) -> str:
    """Return the key `Expectation.index`: a digest of the paths, sizes and times of the files, whose contents are not read."""
    for index in search.keeps:
        with suppress(OSError):
            paths = request.files(index.input)
            files = [[os.fsencode(path.absolute()).hex(), content_bytes(path), path.stat().st_mtime_ns] for path in paths]
            return parts_digest({"kind": index.name, "files": files}) if files else ""
    return ""


def _check(path: Path, search_input: Input) -> None:
    if not is_there(path):
        raise InputError(path, "does not exist", remedy="Check the path")
    if search_input.content in _RECOGNISED and search_input.second_content is None and path.is_file():
        with ByteSource(path) as source:
            recognise_as(source, search_input.content)


def _expected_or_none(kind: str, request: SearchRequest) -> Expectation | None:
    """Return the expected work and memory of a search, or None if they cannot be estimated; the search itself reports errors."""
    try:
        return _expectation(ESTIMATED_SEARCHES[kind], request) if kind in ESTIMATED_SEARCHES else None
    except (ProteoscopeError, OSError, ValueError, ArithmeticError):
        return None


def predicted_run(kind: str, expectation: Expectation, device: Device, threads: int, *, has_index: bool = False) -> Estimate:
    """Return the estimate of a run on one or several devices. The function reads no input files, and takes a few milliseconds.

    `has_index` is True if the index is in the cache when the run begins, even if no earlier run is known to have built it.
    """
    parameters = [_parameters(member, threads) for member in _members(device)]
    device_prediction = _device_prediction(expectation.workloads, [device_numbers for device_numbers, _ in parameters])
    raw_steps = _steps(expectation.host, device_prediction, [device_numbers for device_numbers, _ in parameters], threads)
    history = StepHistory(kind, _device_title(device), threads, expectation.index)
    history.finds_index |= has_index
    if history.finds_index:
        raw_steps["index"] *= _OPENED
    steps, n_runs = history.corrected(raw_steps)
    seconds = sum(steps.values())
    split = _split(device_prediction.total, seconds)
    return Estimate(
        kind,
        device.name,
        device.description,
        seconds,
        steps,
        split.transfer,
        split.kernel,
        split.synchronisation,
        split.host,
        find_bound(split),
        _BASE_BYTES * (2 if device.numbers else 1) + expectation.memory_bytes,
        device_prediction.gpu_bytes,
        dict(expectation.counts),
        n_runs,
        all(is_measured for _, is_measured in parameters),
        device_prediction.seconds,
        raw_steps,
        history.typical_error(raw_steps),
        index=expectation.index,
        notes=tuple(f"'{name}' was not measured on this device" for name in sorted(device_prediction.missing)),
    )


class _DevicePrediction(NamedTuple):
    """Predicted times: seconds by category (`total`), seconds by workload type, bytes on each GPU, and types that lack a calibration."""

    total: Prediction
    seconds: dict[str, float]
    gpu_bytes: float
    missing: set[str]


def _device_prediction(workloads: Sequence[ExpectedWork], parameters: Sequence[DeviceParameters]) -> _DevicePrediction:
    """Return the predicted times and memory of the workloads on devices with the given parameters.

    The devices divide each workload in proportion to their speeds, so that they finish simultaneously.
    """
    total, seconds, gpu_bytes, missing = Prediction(0.0, 0.0, 0.0, 0.0), dict[str, float](), 0.0, set[str]()
    n_gpus = sum(not parameter.is_processor for parameter in parameters)
    for work in workloads:
        measured = [(parameter, work.size(parameter.gpu)) for parameter in parameters if work.kind in parameter.kinds]
        if len(measured) < len(parameters):
            missing.add(work.kind)
        gpu_bytes = max([gpu_bytes, *(work.gpu_bytes(size, n_gpus) for gpu, size in measured if not gpu.is_processor)])
        alone = [predict_workload(gpu, work.kind, size) for gpu, size in measured]
        together = 1.0 / sum(1.0 / max(prediction.seconds, 1e-9) for prediction in alone) if alone else _WITHOUT_SECONDS
        if alone:
            fastest = min(alone, key=lambda prediction: prediction.seconds)
            fraction = together / max(fastest.seconds, 1e-9)
            total = Prediction(*(before + fraction * part for before, part in zip(total, fastest, strict=True)))
        seconds[work.kind] = seconds.get(work.kind, 0.0) + together
    return _DevicePrediction(total, seconds, gpu_bytes, missing)


def _steps(
    host: Mapping[str, float], predicted: _DevicePrediction, parameters: Sequence[DeviceParameters], threads: int
) -> dict[str, float]:
    """Return the seconds of each step of a run; the step ``start`` includes opening the GPUs."""
    steps = {step: host.get(step, 0.0) / _speed_up(step, threads) for step in STEPS}
    steps["score"] += sum(predicted.seconds.values())
    return steps | {"start": _START_SECONDS + max((parameter.start for parameter in parameters if not parameter.is_processor), default=0.0)}


def _speed_up(step: str, threads: int) -> float:
    """Return the factor by which `threads` threads speed up a step on the host; parts of reading and reporting use a single thread."""
    return 1.0 + (threads - 1) * {"read": 0.5, "report": 0.3}.get(step, 0.8) if threads < 8 else 1.0 + 7 * 0.5


def _split(total: Prediction, seconds: float) -> Prediction:
    """Divide the run time `seconds` into transfers, kernels, synchronisation and host.

    The times of devices are those in `total`, scaled down if their sum exceeds `seconds`. The remaining time belongs to the host.
    """
    devices = total.transfer + total.kernel + total.synchronisation
    scale = min(devices, seconds) / max(1e-12, devices)
    host = max(0.0, seconds - devices)
    return Prediction(total.transfer * scale, total.kernel * scale, total.synchronisation * scale, host, total.memory)


def _members(device: Device) -> list[Device]:
    """Return the single devices that a selection of devices contains."""
    if not device.numbers:
        return [device]
    result = [gpu for gpu in gpus() if gpu.numbers and gpu.numbers[0] in device.numbers] or [device]
    return [*result, *([processor()] if device.with_processor else [])]


def _parameters(device: Device, threads: int) -> tuple[DeviceParameters, bool]:
    """Return the parameters of a device, and True if it was calibrated on this machine; otherwise shipped parameters and False."""
    stored = stored_calibration(device, threads)
    return (reference_parameters(device, threads), False) if stored is None else (stored, True)


def _device_title(device: Device) -> str:
    return f"{device.name} {device.description}" if device.numbers else processor().description


def estimate(search: Search, request: SearchRequest, *, compares: bool = True, has_index: bool = False) -> Estimate:
    """Return the estimate of a request on its device.

    With `compares`, the estimate has alternatives: the CPU alone, and GPUs that the request does not use. For `has_index`, see
    `predicted_run`.

    Raises
    ------
    InputError, ParameterError
        See `expected`. Also if the device cannot be used.
    """
    if request.workers:
        cluster.requests.parse_workers(request.workers)
    expectation = expected(search, request)
    requested = resolve_device(request.device)
    threads = request.threads or available_threads()
    device = _faster_device(search.kind, expectation, threads, lambda: requested) if request.device == "auto" else requested
    result = predicted_run(search.kind, expectation, device, threads, has_index=has_index)
    if request.workers:
        return _with_note(result, "these are the times of this machine; the times of workers cannot be predicted")
    if not compares or not requested.numbers:
        return result
    other = requested if device is not requested else processor()
    compared = predicted_run(search.kind, expectation, other, threads)
    result = replace(result, alternatives={other.name: round(compared.seconds, 3)})
    if device is not requested:
        return _with_note(result, "the CPU is used, since it should finish before a GPU is ready (--device cuda uses the GPU)")
    if compared.seconds < result.seconds:
        return _with_note(result, "the CPU would finish sooner, since starting a GPU takes time (--device cpu)")
    return result


def _with_note(estimated: Estimate, note: str) -> Estimate:
    return replace(estimated, notes=(*estimated.notes, note))


def faster_device_rule(kind: str, request: SearchRequest, threads: int) -> Callable[[Callable[[], Device]], Device] | None:
    """Return the rule that selects the device for ``auto``, for `proteoscope.engine.execution.device_lookup.DeviceLookup`.

    The rule selects the CPU if it is expected to finish sooner than a GPU, and does not even detect GPUs if no GPU could be ready in time.
    Result tables do not depend on the selected device. None is returned if the request names a device.
    """
    if request.device != "auto" or request.workers:
        return None

    def rule(resolve: Callable[[], Device]) -> Device:
        expectation = _expected_or_none(kind, request)
        return resolve() if expectation is None else _faster_device(kind, expectation, threads, resolve)

    return rule


def _faster_device(kind: str, expectation: Expectation, threads: int, resolve: Callable[[], Device]) -> Device:
    """Return the device that `resolve` detects, or the CPU if it is expected to finish sooner."""
    alone = predicted_run(kind, expectation, processor(), threads)
    # A GPU saves at most the seconds of the workloads, or of the whole step if its workloads are not estimated.
    on_threads = sum(alone.workload_seconds.values()) if alone.workload_seconds else alone.raw_steps["score"]
    if not alone.notes and on_threads < USUAL_START_SECONDS:
        return processor()
    device = resolve()
    if not device.numbers or device.with_processor or alone.notes or not alone.workload_seconds:
        return device
    with_gpus = predicted_run(kind, expectation, device, threads)
    # The other steps run on the host, and take the same time with a GPU and with the CPU.
    on_gpus = sum(with_gpus.workload_seconds.values()) + with_gpus.raw_steps["start"] - alone.raw_steps["start"]
    return device if with_gpus.notes or on_gpus <= on_threads else processor()


def run_prediction(kind: str, request: SearchRequest, device: Device, threads: int) -> Estimate | None:
    """Return the estimate of a run on a device, for the record of the run; None if the run cannot be estimated."""
    expectation = _expected_or_none(kind, request)
    return None if expectation is None else predicted_run(kind, expectation, device, threads)


def remember_run(
    estimated: Estimate, device: Device, threads: int, measured: Mapping[str, float], seconds: float, cpu_share: float = 1.0
) -> None:
    """Store the predicted and the measured seconds of the steps of a run, which correct later estimates.

    `seconds` is the duration of the run; seconds outside the measured steps count as the step ``start``. If steps overlapped, their
    seconds are scaled down to the duration of the run. `cpu_share` is that of `StageClock`: runs on a loaded machine correct estimates only
    if there are no other runs.
    """
    total = sum(measured.values())
    steps = {step: taken * min(1.0, seconds / max(total, 1e-9)) for step, taken in measured.items()}
    steps["start"] = max(0.0, seconds - total)
    StepHistory(estimated.kind, _device_title(device), threads, estimated.index).add(estimated.raw_steps, steps, cpu_share)


def read_counts(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the valid counts in the record of a run, by name."""
    result = record.get("counts")
    if not isinstance(result, dict):
        return {}
    return {str(name): float(value) for name, value in result.items() if isinstance(value, int | float) and 0 <= value < 1e12}

"""What a search will take, before it is run: seconds of its steps, what they go into, memory, and what bounds it.

A search says in its module `expecting` what work it expects from its request, told by sizes and beginnings of files (`Expectation`). The
seconds of that work on a device are the cost model's (`proteoscope.engine.execution.cost`); those of the host's steps are rates of one
machine, until runs of this one correct them (`StepMemory`). Nothing is run, and nothing is read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from proteoscope.engine.entry import EXPECTING, Expecting, Input, Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError
from proteoscope.engine.execution.cluster.option import parse_workers
from proteoscope.engine.execution.cost.kept import known_parameters
from proteoscope.engine.execution.cost.parameters import DeviceParameters, WorkSize
from proteoscope.engine.execution.cost.prediction import Bound, Prediction, bound_of, predicted_work
from proteoscope.engine.execution.cost.reference import reference_parameters
from proteoscope.engine.execution.cost.remembered import StepMemory
from proteoscope.engine.execution.devices import Device, chosen_device, gpus, processor
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.execution.work import CardShape
from proteoscope.engine.files import is_there
from proteoscope.engine.formats.recognition import recognise_as
from proteoscope.engine.formats.sources import ByteSource

__all__ = [
    "STEPS",
    "Estimate",
    "Expectation",
    "ExpectedWork",
    "counts_of",
    "device_title",
    "estimate",
    "expected",
    "predicted_run",
    "remember_run",
    "run_prediction",
    "worthwhile",
]

STEPS = ("read", "index", "plan", "score", "report")
_START_SECONDS = 0.4  # what is no step: imports
_BASE_BYTES = 250e6  # of the program with what it has loaded
_RECOGNISED = ("spectra", "proteins", "identifications", "libraries")  # sorts that a file shows by its beginning
_WITHOUT_SECONDS = 0.02  # of what the host does beside kernels, where these could not be measured


class ExpectedWork(NamedTuple):
    """Work of a kind: its size as a card counts it, or the processor, which is None; and the bytes that a card holds of it at a time, None
    where that is all that goes to it and comes back."""

    kind: str
    size: Callable[[CardShape | None], WorkSize]
    held_bytes: float | None = None

    def card_bytes(self, size: WorkSize, cards: int) -> float:
        """On each of so many cards: what goes there stands there whole, what comes back is of its share."""
        return size.bytes_in + size.bytes_out / cards if self.held_bytes is None else self.held_bytes


@dataclass(frozen=True)
class Expectation:
    """What a request asks for, about.

    Attributes
    ----------
    works : what devices compute. host : seconds of one thread in each step, besides those works. counts : what was counted, for people.
    memory_bytes : of the host, at its most, besides the program itself.
    """

    works: tuple[ExpectedWork, ...]
    host: Mapping[str, float]
    counts: Mapping[str, float]
    memory_bytes: float


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes
    ----------
    kind : of the search. device, description : what computes. seconds : of the run. steps : of each step. transfer, kernel,
    synchronisation, host : seconds that it goes into. bound : what decides it. memory_bytes, card_bytes : on the host and on each card.
    counts : what was counted. n_runs : of this machine, by which the host's steps were corrected; typical_error : how far they are from
    what the others of them tell, as a share, where there are enough. is_measured : whether the devices were
    measured here; else they are taken for those of another machine. works : seconds of each kind of work. raw_steps : the steps without
    what earlier runs say. alternatives : seconds of the run
    on other devices. notes : what the user should know.
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
    card_bytes: float
    counts: Mapping[str, float]
    n_runs: int
    is_measured: bool
    works: Mapping[str, float]
    raw_steps: Mapping[str, float]
    typical_error: float | None = None
    alternatives: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def shares(self) -> dict[str, float]:
        """Of the run, by name."""
        whole = self.transfer + self.kernel + self.synchronisation + self.host or 1.0
        return {name: getattr(self, name) / whole for name in ("transfer", "kernel", "synchronisation", "host")}

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "shares": self.shares()}


def expected(search: Search, request: SearchRequest) -> Expectation:
    """What the search expects of a request.

    Raises
    ------
    InputError, ParameterError : a file or a parameter is wrong, as the search itself would say.
    """
    search.check_workers(request.workers)
    for one in search.inputs:
        given = request.files(one.name)
        if not given and not (one.is_optional or (one.instead and request.options.get(one.instead))):
            raise ParameterError(f"no file of {one.name} was given, as {one.option or one.metavar}")
        if one.sort != "structures":
            for path in given:
                _check(path, one)
    if search.expecting is None:
        raise ParameterError(f"what {search.kind} takes cannot be told before")
    return _expected(search.expecting, request)


def _expected(load: Expecting, request: SearchRequest) -> Expectation:
    found: Expectation = load()(request)
    return found


def run_prediction(kind: str, request: SearchRequest, device: Device, threads: int) -> Estimate | None:
    """What a run of this kind should take, for its record; None where nothing can be told, which is no reason to fail."""
    if kind not in EXPECTING:
        return None
    try:
        return predicted_run(kind, _expected(EXPECTING[kind], request), device, threads)
    except (ProteoscopeError, OSError, ValueError, ArithmeticError):
        return None


def worthwhile(kind: str, request: SearchRequest, threads: int) -> Callable[[Device], Device] | None:
    """What chooses the processor in place of cards that are not worth their start, for a request that leaves the choice to the program.

    The model decides by what was measured on this machine alone; None where nothing was, or the user or the kind of search leaves no
    choice. Tables do not depend on it.
    """
    if request.device != "auto" or kind not in EXPECTING or known_parameters(processor(), threads) is None:
        return None
    try:
        expectation = _expected(EXPECTING[kind], request)
    except (ProteoscopeError, OSError, ValueError, ArithmeticError):
        return None  # which the search tells
    return lambda device: _sooner(kind, expectation, device, threads)


def _sooner(kind: str, expectation: Expectation, device: Device, threads: int) -> Device:
    """A device, or the processor where that alone should be done before."""
    if not device.numbers or device.with_processor or not all(_parameters(one, threads)[1] for one in _members(device)):
        return device
    with_cards, alone = (predicted_run(kind, expectation, one, threads) for one in (device, processor()))
    if not alone.is_measured or alone.notes or with_cards.notes:
        return device
    # The other steps are the host's, the same with both.
    on_cards, on_threads = (sum(one.works.values()) + one.raw_steps["start"] for one in (with_cards, alone))
    return processor() if on_threads < on_cards else device


def _check(path: Path, asked: Input) -> None:
    if not is_there(path):
        raise InputError(path, "does not exist", remedy="Check the path")
    if asked.sort in _RECOGNISED and asked.also is None and path.is_file():
        with ByteSource(path) as source:
            recognise_as(source, asked.sort)


def estimate(search: Search, request: SearchRequest, *, compares: bool = True) -> Estimate:
    """What a request will take on the device that it asks for; with `compares` also on the processor alone, where it asks for a card.

    Raises
    ------
    InputError, ParameterError : as `expected`; also for a device that is not usable.
    """
    if request.workers:
        parse_workers(request.workers)
    expectation = expected(search, request)
    wished = chosen_device(request.device)
    threads = request.threads or available_threads()
    device = _sooner(search.kind, expectation, wished, threads) if request.device == "auto" else wished
    found = predicted_run(search.kind, expectation, device, threads)
    if request.workers:
        return _with(found, notes=(*found.notes, "as this machine would compute it itself: what workers take is not known before"))
    if compares and device.name != wished.name:
        slower = predicted_run(search.kind, expectation, wished, threads)
        note = "the processor is taken, which should be done before a GPU is ready (--device cuda takes that)"
        return _with(found, alternatives={wished.name: round(slower.seconds, 3)}, notes=(*found.notes, note))
    if not compares or not device.numbers:
        return found
    alone = predicted_run(search.kind, expectation, processor(), threads)
    notes = list(found.notes)
    if alone.seconds < found.seconds:
        notes.append("the processor alone would be done sooner: a GPU is not worth its start here (--device cpu)")
    return _with(found, alternatives={"cpu": round(alone.seconds, 3)}, notes=tuple(notes))


def predicted_run(kind: str, expectation: Expectation, device: Device, threads: int) -> Estimate:
    """What a run should take on a device, or on several together. It reads no input, and takes some milliseconds."""
    members = _members(device)
    parameters = [_parameters(member, threads) for member in members]
    cards = sum(bool(member.numbers) for member in members)
    total, works, card_bytes, missing = Prediction(0.0, 0.0, 0.0, 0.0), dict[str, float](), 0.0, set[str]()
    for work in expectation.works:
        shares = []
        for (one, _), member in zip(parameters, members, strict=True):
            if work.kind in one.kinds:
                size = work.size(one.card)
                shares.append(predicted_work(one, work.kind, size))
                card_bytes = max(card_bytes, work.card_bytes(size, cards) if member.numbers else 0.0)
            else:
                missing.add(work.kind)
        # Devices share a work by their speeds; the longest part of it, here of each, is as long as all.
        speeds = [1.0 / max(one.seconds, 1e-9) for one in shares]
        whole = 1.0 / sum(speeds) if speeds else _WITHOUT_SECONDS
        if shares:
            fastest = max(range(len(shares)), key=lambda number: speeds[number])
            part = whole * speeds[fastest]
            of = shares[fastest]
            total = Prediction(*(before + part * one for before, one in zip(total, of, strict=True)))
        works[work.kind] = works.get(work.kind, 0.0) + whole
    steps = {step: expectation.host.get(step, 0.0) / _speed_up(step, threads) for step in STEPS}
    steps["score"] += sum(works.values())
    # Reading goes on beside the opening of cards, of which all are opened at once.
    steps["start"] = _START_SECONDS + max((one.start for one, _ in parameters if not one.is_processor), default=0.0)
    memory = StepMemory(kind, device_title(device), threads)
    raw = sum(steps.values())
    corrected = {step: memory.corrected(step, seconds, raw) for step, seconds in steps.items()}
    shown = {step: steps[step] if one is None else one for step, one in corrected.items()}
    whole_run = memory.corrected("all", raw, raw)
    seconds = sum(shown.values()) if whole_run is None else whole_run
    on_devices = min(total.transfer + total.kernel + total.synchronisation, seconds)
    scale = on_devices / max(1e-12, total.transfer + total.kernel + total.synchronisation)
    split = Prediction(
        total.transfer * scale, total.kernel * scale, total.synchronisation * scale, max(0.0, seconds - on_devices), total.memory
    )
    return Estimate(
        kind,
        device.name,
        device.description,
        seconds,
        shown,
        split.transfer,
        split.kernel,
        split.synchronisation,
        split.host,
        bound_of(split),
        _BASE_BYTES * (2 if cards else 1) + expectation.memory_bytes,
        card_bytes,
        dict(expectation.counts),
        memory.n,
        all(is_own for _, is_own in parameters),
        works,
        steps,
        memory.typical_error("all", raw),
        notes=tuple(f"'{name}' was not measured on this device" for name in sorted(missing)),
    )


def device_title(device: Device) -> str:
    """What runs of a device are remembered by."""
    return f"{device.name} {device.description}" if device.numbers else processor().description


def remember_run(found: Estimate, device: Device, threads: int, measured: Mapping[str, float], seconds: float) -> None:
    """Keep what a run took beside what was predicted for it, for later predictions: its steps, and all of it."""
    start = max(0.0, seconds - sum(measured.values()))
    raw = dict(found.raw_steps)
    taken = {"start": start, **measured, "all": seconds}
    StepMemory(found.kind, device_title(device), threads).remember(raw | {"all": sum(raw.values())}, taken)


def counts_of(record: Mapping[str, Any]) -> dict[str, float]:
    """Counts of the record of a run, as far as they are numbers."""
    found = record.get("counts")
    if not isinstance(found, dict):
        return {}
    return {str(name): float(value) for name, value in found.items() if isinstance(value, int | float) and 0 <= value < 1e12}


def _members(device: Device) -> list[Device]:
    """The devices that a choice stands for."""
    if not device.numbers:
        return [device]
    cards = [one for one in gpus() if one.numbers and one.numbers[0] in device.numbers] or [device]
    return [*cards, *([processor()] if device.with_processor else [])]


def _parameters(device: Device, threads: int) -> tuple[DeviceParameters, bool]:
    """As measured on this machine, or those that ship; and whether it is the former."""
    own = known_parameters(device, threads)
    return (reference_parameters(device, threads), False) if own is None else (own, True)


def _speed_up(step: str, threads: int) -> float:
    """How much sooner threads do the host's part of a step than one would: reading and reporting are in part of one thread."""
    return 1.0 + (threads - 1) * {"read": 0.5, "report": 0.3}.get(step, 0.8) if threads < 8 else 1.0 + 7 * 0.5


def _with(found: Estimate, **changes: Any) -> Estimate:
    return replace(found, **changes)

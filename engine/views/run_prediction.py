"""Predicted and measured run times, as stacked bars and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.drawings import Bar, Drawing, Label, Shape, text_width
from proteoscope.engine.views.estimates import seconds_text
from proteoscope.engine.views.palette import Ink

__all__ = ["PARTS", "RunPrediction", "StackedBar", "draw_stacks", "run_prediction", "stack_lines", "stacked_bars"]

PARTS = ("start", "read", "index", "plan", "score", "localise", "report", "advice", "rest")
"""Steps of a run, in the order in which bars stack them."""
SHARES = ("transfer", "kernel", "synchronisation", "host", "GPUs")
"""Categories of time; ``GPUs`` is the measured time of GPUs, which runs do not divide into transfers, kernels and waiting."""
_PREDICTED = SHARES[:4]
_LEAST_REST = 1e-6  # seconds; smaller remainders are rounding errors
_FONT = 8.0
_BOUNDS = ("transfer", "memory", "compute", "host")
_PROCESSOR = "cpu"


class StackedBar(NamedTuple):
    """Stacked bar: its title, and the seconds of its sections by name, in stacking order."""

    title: str
    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        """Sum of all sections, seconds."""
        return sum(self.parts.values())

    def words(self) -> str:
        """Return a description of the bar for accessibility."""
        parts = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in self.parts.items() if seconds > 0)
        return f"{self.title} {seconds_text(self.seconds)}: {parts}"


@dataclass(frozen=True)
class RunPrediction:
    """Predicted and measured time of a run.

    Attributes
    ----------
    bars
        Bars of predicted and measured seconds, by category and by step.
    bound, measured_bound
        Limiting factor as predicted and as measured, such as ``compute-bound``; '' if unknown.
    lines
        Prediction as lines of text.
    """

    bars: tuple[StackedBar, ...]
    bound: str
    measured_bound: str
    lines: tuple[str, ...]


def run_prediction(record: Mapping[str, Any]) -> RunPrediction | None:
    """Return the predicted and measured times in the record of a run (``run.json``), or None; the record may be untrusted."""
    bars = stacked_bars(record)
    reported = record.get("prediction")
    if not isinstance(reported, Mapping) or not {"predicted", "measured"} <= {bar.title for bar in bars}:
        return None
    named = reported.get("bound")
    bound = f"{named}-bound" if named in _BOUNDS else ""
    measured = next(bar for bar in bars if bar.title == "measured")
    measured_bound = _measured_bound(measured, str(named))
    predicted, took = _seconds(reported.get("seconds")), _seconds(record.get("seconds"))
    first = f"Predicted {seconds_text(predicted)}, took {seconds_text(took)}"
    if predicted and took:
        times = took / predicted
        first += f", {times:.2g} times as long as predicted" if times < 100 else f", {times:,.0f} times as long as predicted"
    second = f"{bound.capitalize()} as predicted" if bound else ""
    if measured_bound:
        second += f"{'; ' if second else ''}{measured_bound if second else measured_bound.capitalize()} as measured"
    runs = reported.get("runs")
    third = ""
    if isinstance(runs, int) and 0 < runs < 1e9:
        third = f"The prediction was corrected by {counted(runs, 'earlier run')}"
    compiled = "Kernels were compiled first, which happens once on a machine and is not predicted"
    fourth = compiled if reported.get("was_compiled") is False else ""
    lines = [f"{line}." for line in (first, fourth, second, third) if line]
    return RunPrediction(bars, bound, measured_bound, (*lines, *(f"{bar.words().capitalize()}." for bar in bars)))


def stacked_bars(record: Mapping[str, Any]) -> tuple[StackedBar, ...]:
    """Return bars of the predicted and measured seconds in the record of a run (``run.json``), by category and by step.

    The record may be untrusted: invalid seconds are skipped.
    """
    reported = record.get("prediction")
    if not isinstance(reported, Mapping):
        return ()
    bars = []
    split = {name: _seconds(reported.get(name)) for name in _PREDICTED}
    if any(split.values()):
        bars.append(StackedBar("predicted", split))
    if measured := _measured(record):
        bars.append(StackedBar("measured", measured))
    of_steps = record.get("steps")
    seconds = {name: step.get("seconds") for name, step in of_steps.items() if isinstance(step, Mapping)} if _is_map(of_steps) else None
    for title, steps, whole in (
        ("predicted steps", _steps(reported.get("steps")), reported.get("seconds")),
        ("measured steps", _steps(seconds), record.get("seconds")),
    ):
        if steps:
            rest = _seconds(whole) - sum(steps.values())
            parts = steps | ({"rest": rest} if rest > _LEAST_REST else {})
            bars.append(StackedBar(title, {name: parts[name] for name in PARTS if name in parts}))
    return tuple(bars)


def draw_stacks(bars: Sequence[StackedBar], width: float = 420.0, font_size: float = _FONT) -> Drawing:
    """Draw bars with coloured sections, whose names are written if there is space, and a legend."""
    height, left, row = font_size * stack_lines(bars), 11 * font_size, 3 * font_size
    longest = max((bar.seconds for bar in bars), default=0.0) or 1.0
    names = (*SHARES, *PARTS)
    shapes: list[Shape] = []
    for number, bar in enumerate(bars):
        top, x = font_size + number * row, left
        shapes.append(Label(left - 6, top + row * 0.5, bar.title, "end"))
        for name, seconds in bar.parts.items():
            long = seconds / longest * max(1.0, width - left - 7 * font_size)
            ink: Ink = names.index(name)
            shapes.append(Bar(x, top, long, row * 0.7, ink, target=(bar.title, name), tip=f"{bar.title}, {name}: {seconds_text(seconds)}"))
            if text_width(name, font_size) < long - 4:
                shapes.append(Label(x + long / 2, top + row * 0.5, name, "middle", "background"))
            x += long
        shapes.append(Label(x + 4, top + row * 0.5, seconds_text(bar.seconds)))
    bottom = font_size * (1 + 3 * len(bars))
    for number, group in enumerate(_legend(bars)):
        x, y = left, bottom + 1.6 * font_size * (number + 0.7)
        for name in group:
            shapes.append(Bar(x, y - 0.75 * font_size, 0.8 * font_size, 0.8 * font_size, names.index(name)))
            shapes.append(Label(x + 1.2 * font_size, y, name))
            x += text_width(name, font_size) + 2.6 * font_size
    reported = "; ".join(bar.words() for bar in bars)
    return Drawing(width, height, f"Predicted and measured: {reported}", tuple(shapes), font_size)


def stack_lines(bars: Sequence[StackedBar]) -> float:
    """Return the height of the drawing of `draw_stacks`, as a multiple of the font size."""
    return 2.0 + 3.0 * len(bars) + 1.6 * len(_legend(bars))


def _legend(bars: Sequence[StackedBar]) -> list[list[str]]:
    """Return the names in the legend: one list of categories and one of steps, without names and lists that are not drawn."""
    drawn = {name for bar in bars for name, seconds in bar.parts.items() if seconds > 0}
    return [group for names in (SHARES, PARTS) if (group := [name for name in names if name in drawn])]


def _measured(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the measured seconds of a run by category: the time of the busiest device for each workload, and the rest as host time."""
    whole, workloads = _seconds(record.get("seconds")), record.get("workload_seconds")
    if not whole or not _is_map(workloads):
        return {}
    busy, has_gpus = 0.0, False
    for devices in workloads.values():
        if _is_map(devices):
            seconds = {str(name): _seconds(value) for name, value in devices.items()}
            busy += max(seconds.values(), default=0.0)
            has_gpus |= any(value > 0 and name != _PROCESSOR for name, value in seconds.items())
    busy = min(busy, whole)
    return {"GPUs" if has_gpus else "kernel": busy, "host": whole - busy}


def _measured_bound(measured: StackedBar, predicted: str) -> str:
    """Return the factor that limited the measured time: host, transfer, memory or compute, such as ``memory-bound``.

    The measurement shows only whether the host or a device was the limit; for a device, the factor is that of the prediction.
    """
    on_devices = measured.parts.get("kernel", 0.0) + measured.parts.get("GPUs", 0.0)
    if on_devices < measured.parts["host"]:
        return "host-bound"
    if "GPUs" in measured.parts:
        return f"{predicted}-bound" if predicted in ("transfer", "memory", "compute") else ""
    return "memory-bound" if predicted == "memory" else "compute-bound"


def _steps(values: Any) -> dict[str, float]:
    return {name: _seconds(values[name]) for name in PARTS if name in values and _seconds(values[name]) > 0} if _is_map(values) else {}


def _is_map(values: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(values, Mapping)


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9 else 0.0

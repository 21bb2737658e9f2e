"""Predicted beside measured: the steps of a run as stacked bars, and the problems of the ATGPU model as curves. Plain data and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from engine.execution.cost.analyses import Comparison
from engine.execution.cost.parameters import DeviceParameters
from engine.views.drawings import Axis, Bar, Curve, Drawing, Ink, Label, Points, Shape, draw_axes, svg, text_width

__all__ = ["PARTS", "StackedBar", "draw_problem", "draw_stacks", "report_page", "stacked_bars"]

PARTS = ("start", "read", "index", "plan", "score", "report", "rest")
"""Parts of a bar, from its begin."""
_FONT = 8.0
_COLUMNS = "size", "predicted s", "measured s", "error", "predicted share", "measured share"
_OF_DEVICES = ("transfer", "kernel", "synchronisation", "host")


class StackedBar(NamedTuple):
    """A bar: its title, and the seconds of its parts by their names, in the order in which they are stacked."""

    title: str
    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        """All together."""
        return sum(self.parts.values())


def stacked_bars(record: Mapping[str, Any]) -> tuple[StackedBar, ...]:
    """Predicted and measured steps of a run's record (``run.json``), and what the prediction goes into; none where it tells nothing.

    The record may be a stranger's: what is no number of seconds is left out.
    """
    told = record.get("prediction")
    if not isinstance(told, Mapping):
        return ()
    predicted = _steps(told.get("steps"))
    of_steps = record.get("steps")
    measured = _steps(
        {name: step.get("seconds") for name, step in of_steps.items() if isinstance(step, Mapping)}
        if isinstance(of_steps, Mapping)
        else None
    )
    bars = []
    for title, parts, whole in (("predicted", predicted, told.get("seconds")), ("measured", measured, record.get("seconds"))):
        if parts:
            rest = _seconds(whole) - sum(parts.values())
            parts = parts | ({"rest": rest} if rest > 0 else {})
            bars.append(StackedBar(title, {name: parts[name] for name in PARTS if name in parts}))
    split = {name: _seconds(told.get(name)) for name in _OF_DEVICES}
    if any(split.values()):
        bars.append(StackedBar("predicted shares", split))
    return tuple(bars)


def _steps(values: Any) -> dict[str, float]:
    return (
        {name: _seconds(values[name]) for name in PARTS if name in values and _seconds(values[name]) > 0}
        if isinstance(values, Mapping)
        else {}
    )


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9 else 0.0


def draw_stacks(bars: Sequence[StackedBar], width: float = 420.0, font_size: float = _FONT) -> Drawing:
    """Bars one below the other, the parts of each in colours, with their names where they have room."""
    height, left, row = font_size * (4 + 3 * len(bars)), 12 * font_size, 3 * font_size
    longest = max((bar.seconds for bar in bars), default=0.0) or 1.0
    shapes: list[Shape] = []
    for number, bar in enumerate(bars):
        top, x = font_size * 1.5 + number * row, left
        shapes.append(Label(left - 6, top + row * 0.5, bar.title, "end"))
        for name, seconds in bar.parts.items():
            names = PARTS if name in PARTS else _OF_DEVICES
            long = seconds / longest * (width - left - 7 * font_size)
            ink: Ink = names.index(name) + (0 if name in PARTS else len(PARTS))
            shapes.append(Bar(x, top, long, row * 0.7, ink, tip=f"{name}: {seconds:.3g} s"))
            if text_width(name, font_size) < long - 4:
                shapes.append(Label(x + long / 2, top + row * 0.5, name, "middle", "background"))
            x += long
        shapes.append(Label(x + 4, top + row * 0.5, f"{bar.seconds:.3g} s"))
    told = "; ".join(f"{bar.title} {bar.seconds:.3g} s" for bar in bars)
    return Drawing(width, height, f"Predicted and measured: {told}", tuple(shapes), font_size)


def draw_problem(problem: str, every: Sequence[Comparison], *, shares: bool, width: float = 360.0, height: float = 240.0) -> Drawing:
    """A problem's seconds, or the share of its transfers, by its size: measured as dots, predicted as lines.

    Of the seconds also those without transfers, as models have them that do not know of these.
    """
    n = np.array([one.n for one in every], np.float64)
    if shares:
        measured = [np.array([(one.measured.transfer_in + one.measured.transfer_out) / max(1e-12, one.measured.seconds) for one in every])]
        predicted = [np.array([one.predicted.transfer_share for one in every])]
        names, highest = ["share of transfers"], 1.0
    else:
        measured = [np.array([1e3 * one.measured.seconds for one in every]), np.array([1e3 * one.measured.kernel for one in every])]
        predicted = [
            np.array([1e3 * one.predicted.seconds for one in every]),
            np.array([1e3 * (one.predicted.kernel + one.predicted.synchronisation) for one in every]),
        ]
        names, highest = ["with transfers", "kernels alone"], float(max(one.max(initial=1e-9) for one in (*measured, *predicted))) * 1.06
    area = (font_left := 56.0, 30.0, width - 16.0, height - 40.0)
    left, top, right, bottom = area
    most = float(n.max(initial=1.0))
    axis = Axis(0, highest, "share of transfers" if shares else "milliseconds", is_percent=shares)
    shapes = draw_axes(area, Axis(0, most, "size", is_whole=True), axis, _FONT)
    x = left + n / most * (right - left)
    for ink, (name, dots, line) in enumerate(zip(names, measured, predicted, strict=True)):
        shapes.append(Curve(x, bottom - line / highest * (bottom - top), ink, is_dashed=True))
        shapes.append(Points(x, bottom - dots / highest * (bottom - top), ink, 4.5))
        shapes.append(Label(font_left + 8, top + _FONT * (1 + 1.3 * ink), f"{name}: dots measured, line predicted", ink=ink))
    title = f"{problem[0].upper()}{problem[1:]}: {'share of transfers' if shares else 'seconds'} by size"
    shapes.append(Label(8, 14, title, is_bold=True))
    return Drawing(width, height, title, tuple(shapes), _FONT)


def report_page(parameters: DeviceParameters, problems: Mapping[str, Sequence[Comparison]], notes: Sequence[str] = ()) -> str:
    """An HTML page with the curves of all problems and a table of their numbers, which needs nothing besides itself."""
    pieces = [_HEAD, f"<p>{escape(parameters.description)}</p>", *(f"<p>{escape(note)}</p>" for note in notes)]
    machine = parameters.machine()
    pieces.append(
        f"<p>ATGPU(b = {machine.cores}, k' = {machine.multiprocessors}, M = {machine.shared_words:,} words, G = {machine.global_words:,}"
        f" words): α {1e6 * machine.alpha_in:.2f} and {1e6 * machine.alpha_out:.2f} µs, β {1e9 * machine.beta_in:.3f} and"
        f" {1e9 * machine.beta_out:.3f} ns a word (in and out), σ {1e6 * machine.sigma:.2f} µs, λ {machine.lambda_:.3g} operations.</p>"
    )
    for problem, every in problems.items():
        pieces.append(f"<h2>{escape(problem[0].upper() + problem[1:])}</h2>")
        drawn = [draw_problem(problem, every, shares=False)]
        drawn += [draw_problem(problem, every, shares=True)] if not parameters.is_processor else []
        pieces += [svg(one).decode() for one in drawn]
        pieces.append(f"<table>{_row('th', _COLUMNS)}")
        for one in every:
            share = (one.measured.transfer_in + one.measured.transfer_out) / max(1e-12, one.measured.seconds)
            error = (one.predicted.seconds - one.measured.seconds) / max(1e-12, one.measured.seconds)
            shares = f"{100 * one.predicted.transfer_share:.1f} %", f"{100 * share:.1f} %"
            seconds = f"{one.predicted.seconds:.3e}", f"{one.measured.seconds:.3e}"
            pieces.append(_row("td", (f"{one.n:,}", *seconds, f"{100 * error:+.1f} %", *shares)))
        pieces.append(f"</table><p>Growth from the smallest to the largest: {_growth(every)}</p>")
    return "\n".join([*pieces, "</body></html>", ""])


def _row(cell: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{text}</{cell}>' for text in texts)}</tr>"


def _growth(every: Sequence[Comparison]) -> str:
    """How predicted and measured seconds grow, step by step, as the thesis compares them."""
    told = [
        f"{after.predicted.seconds / max(1e-12, before.predicted.seconds):.2f} predicted,"
        f" {after.measured.seconds / max(1e-12, before.measured.seconds):.2f} measured"
        for before, after in pairwise(every)
    ]
    return "; ".join(told) or "one size alone"


_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Cost model</title>
<style>body{font-family:Arial,Helvetica,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #d5d5d5}svg{margin:.5em}</style></head><body>
<h1>The cost model, predicted and measured</h1>
<p>Problems of the ATGPU model (Carroll's thesis, section 4.4). A prediction is its cost function with occupancy (expression 4.2) and the
parameters that were measured on this device; sending, kernels and fetching are measured one after the other.</p>"""

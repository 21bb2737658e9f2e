"""Predicted and measured times of the benchmark problems of the ATGPU cost model, as figures and as a page."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import numpy as np

from proteoscope.engine.execution.cost.analyses import Comparison
from proteoscope.engine.execution.cost.parameters import DeviceParameters
from proteoscope.engine.views.drawings import Axis, Curve, Drawing, Label, Points, draw_axes, svg

__all__ = ["draw_problem", "report_page"]

_FONT = 8.0
_COLUMNS = "size", "predicted s", "measured s", "error", "predicted share", "measured share"


def draw_problem(problem: str, every: Sequence[Comparison], *, shares: bool, width: float = 360.0, height: float = 240.0) -> Drawing:
    """Draw the times of a benchmark problem by problem size: measured times as dots, predicted times as lines.

    Times without transfers are drawn too, for comparison with models that ignore transfers. If `shares` is True, the fraction of the time
    that is spent on transfers is drawn instead of the times.
    """
    n = np.array([prediction.n for prediction in every], np.float64)
    if shares:
        measured = [
            np.array(
                [
                    (prediction.measured.transfer_in + prediction.measured.transfer_out) / max(1e-12, prediction.measured.seconds)
                    for prediction in every
                ]
            )
        ]
        predicted = [np.array([prediction.predicted.transfer_share for prediction in every])]
        names, highest = ["share of transfers"], 1.0
    else:
        measured = [
            np.array([1e3 * prediction.measured.seconds for prediction in every]),
            np.array([1e3 * prediction.measured.kernel for prediction in every]),
        ]
        predicted = [
            np.array([1e3 * prediction.predicted.seconds for prediction in every]),
            np.array([1e3 * (prediction.predicted.kernel + prediction.predicted.synchronisation) for prediction in every]),
        ]
        names, highest = (
            ["with transfers", "only kernels"],
            float(max(series.max(initial=1e-9) for series in (*measured, *predicted))) * 1.06,
        )
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
    """Return a self-contained HTML page with figures and a table for each problem."""
    chunks = [_HEAD, f"<p>{escape(parameters.description)}</p>", *(f"<p>{escape(note)}</p>" for note in notes)]
    machine = parameters.machine()
    chunks.append(
        f"<p>ATGPU(b = {machine.cores}, k' = {machine.multiprocessors}, M = {machine.shared_words:,} words, G = {machine.global_words:,}"
        f" words): α {1e6 * machine.alpha_in:.2f} and {1e6 * machine.alpha_out:.2f} µs, β {1e9 * machine.beta_in:.3f} and"
        f" {1e9 * machine.beta_out:.3f} ns a word (in and out), σ {1e6 * machine.sigma:.2f} µs, λ {machine.lambda_:.3g} operations.</p>"
    )
    for problem, every in problems.items():
        chunks.append(f"<h2>{escape(problem[0].upper() + problem[1:])}</h2>")
        drawn = [draw_problem(problem, every, shares=False)]
        drawn += [draw_problem(problem, every, shares=True)] if not parameters.is_processor else []
        chunks += [svg(drawing).decode() for drawing in drawn]
        chunks.append(f"<table>{_row('th', _COLUMNS)}")
        for prediction in every:
            fraction = (prediction.measured.transfer_in + prediction.measured.transfer_out) / max(1e-12, prediction.measured.seconds)
            error = (prediction.predicted.seconds - prediction.measured.seconds) / max(1e-12, prediction.measured.seconds)
            shares = f"{100 * prediction.predicted.transfer_share:.1f} %", f"{100 * fraction:.1f} %"
            seconds = f"{prediction.predicted.seconds:.3e}", f"{prediction.measured.seconds:.3e}"
            chunks.append(_row("td", (f"{prediction.n:,}", *seconds, f"{100 * error:+.1f} %", *shares)))
        chunks.append(f"</table><p>Growth from the smallest to the largest: {_growth(every)}</p>")
    return "\n".join([*chunks, "</body></html>", ""])


def _row(cell: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{text}</{cell}>' for text in texts)}</tr>"


def _growth(every: Sequence[Comparison]) -> str:
    """Return a text with the factors by which predicted and measured times grow from each size to the next, as in Carroll's thesis."""
    reported = [
        f"{after.predicted.seconds / max(1e-12, before.predicted.seconds):.2f} predicted,"
        f" {after.measured.seconds / max(1e-12, before.measured.seconds):.2f} measured"
        for before, after in pairwise(every)
    ]
    return "; ".join(reported) or "only one size"


_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Cost model</title>
<style>body{font-family:Arial,Helvetica,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #d5d5d5}svg{margin:.5em}</style></head><body>
<h1>The cost model, predicted and measured</h1>
<p>Problems of the ATGPU model (Carroll's thesis, section 4.4). A prediction is its cost function with occupancy (expression 4.2) and the
parameters that were measured on this device; transfers to the device, kernels, and transfers back are measured one after the other.</p>"""

"""Figures that compare runs: overlaps, numbers of items by q-value, scores, and spectra with two answers."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.annotation import IonSettings, annotate_match, ions_looked_for, ions_to_show
from proteoscope.engine.views.drawings import Axis, Bar, Curve, Drawing, Label, Points, Shape, Stroke, draw_axes, shortened, text_width
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.identification import PSM_DETAILS
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.palette import Ink
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.run_comparison import Level, RunComparison
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "CURVES_SIZE",
    "OVERLAPS_SIZE",
    "SCORES_SIZE",
    "compared_answers",
    "differing_runs",
    "draw_curves",
    "draw_overlaps",
    "draw_scores",
]

_UNKNOWN = IonSettings(Tolerance(20, "ppm"))
"""Ion settings if the runs have none, as for imported runs."""


def compared_answers(comparison: RunComparison, source: TableSource, row: int, runs: tuple[int, int] | None = None) -> MirroredSpectra:
    """Return a mirror plot of one spectrum, annotated with the peptide of one run above and the peptide of another run below.

    The spectrum is in row `row` of the table ``spectra``. The peaks are taken from a run that stores them.

    Parameters
    ----------
    runs
        Indices of two runs; None selects them with `differing_runs`.

    Raises
    ------
    ProteoscopeError
        If a run has no answer, or if neither run stored peaks.
    """
    names = [name for symbol in comparison.symbols for name in (f"psm_{symbol}", f"peptide_{symbol}", f"accepted_from_{symbol}")]
    answers = source.row(row, [*names, "spectrum_id"])
    first, second = runs or differing_runs(comparison, answers)
    if any(answers[f"psm_{comparison.symbols[run]}"] is None for run in (first, second)):
        raise ProteoscopeError(f"Only one of the runs identified the spectrum {answers['spectrum_id']}.")
    details = [_psm(comparison.runs[run], int(answers[f"psm_{comparison.symbols[run]}"])) for run in (first, second)]
    retained = [_peaks(comparison.runs[run], SpectrumRow(int(psm["spectrum"]))) for run, psm in zip((first, second), details, strict=True)]
    there = next((peaks for peaks in retained if isinstance(peaks, Peaks)), None)
    if there is None:
        raise ProteoscopeError(str(retained[0]))
    halves = []
    for run, psm, peaks in zip((first, second), details, retained, strict=True):
        q_value = "no q-value" if psm["q_value"] is None else f"q-value {psm['q_value']:.2g}"
        name = f"{comparison.symbols[run]}: {psm['peptide']} ({psm['charge']}+), {q_value}"
        shown = peaks if isinstance(peaks, Peaks) else there
        halves.append(Half(name, shown, annotate_match(psm, shown, _settings(comparison, (run, first, second)))))
    title = f"{answers['spectrum_id']}: {comparison.labels[first]} above, {comparison.labels[second]} below"
    tolerance = _settings(comparison, (first, second)).tolerance
    return MirroredSpectra(title, halves[0], halves[1], tolerance, is_one_spectrum=True)


def differing_runs(comparison: RunComparison, answers: dict[str, Any]) -> tuple[int, int]:
    """Return the two runs whose different answers are accepted at the smallest threshold; if no answers differ, those with equal answers.

    Parameters
    ----------
    answers
        Values of a row of ``spectra``, with ``peptide_A`` and ``accepted_from_A`` for each run A.
    """
    there = [run for run, symbol in enumerate(comparison.symbols) if answers[f"psm_{symbol}"] is not None]
    if len(there) < 2:
        raise ProteoscopeError("Only one of the runs identified this spectrum.")

    def order(pair: tuple[int, int]) -> tuple[bool, float]:
        first_symbol, other = (comparison.symbols[run] for run in pair)
        is_same = answers[f"peptide_{first_symbol}"] == answers[f"peptide_{other}"]
        return is_same, max(answers[f"accepted_from_{first_symbol}"], answers[f"accepted_from_{other}"])

    return min(combinations(there, 2), key=order)


def _psm(run: FinishedRun, row: int) -> dict[str, Any]:
    source = run.tables.source("psms")
    details = source.row(row, PSM_DETAILS)
    source.close()
    return details


def _peaks(run: FinishedRun, spectrum: SpectrumRow) -> Peaks | ProteoscopeError:
    try:
        return run.peaks().peaks(spectrum)
    except ProteoscopeError as error:
        return error


def _settings(comparison: RunComparison, runs: tuple[int, ...]) -> IonSettings:
    """Return the ion settings of the first of the given runs whose parameters define ions; `_UNKNOWN` if there is no such run."""
    for run in runs:
        if ions_looked_for(comparison.runs[run].parameters) is not None:
            return ions_to_show(comparison.runs[run].parameters)
    return _UNKNOWN


OVERLAPS_SIZE, CURVES_SIZE, SCORES_SIZE = (480.0, 300.0), (360.0, 260.0), (360.0, 320.0)
"""Default width and height of the figures, points."""

_FONT = 8.0
_MAXIMUM_SETS = 24
_NAME_SHARE = 0.3
"""Maximum width of the names of runs, as a fraction of the width of the figure."""
_ROW = 16.0
_STRIPE_OPACITY = 0.7
"""Opacity of the stripes below names; less than 1, so that themes lower it until names on them are readable."""


def draw_overlaps(
    comparison: RunComparison,
    level: Level,
    threshold: float,
    width: float = OVERLAPS_SIZE[0],
    height: float = OVERLAPS_SIZE[1],
    font_size: float = _FONT,
) -> Drawing:
    """Draw an UpSet plot (Lex et al. 2014, IEEE Trans. Vis. Comput. Graph. 20:1983).

    Each bar shows the number of items that are accepted by all runs of a set and by no other run. A click on a bar or its dots selects the
    indices of the runs of the set.
    """
    result = comparison.intersections(level.name, threshold)
    shown, n_more = result[:_MAXIMUM_SETS], max(0, len(result) - _MAXIMUM_SETS)
    totals = comparison.counts(level.name, threshold)
    n_runs, row = len(comparison.runs), max(_ROW, font_size * 1.7)
    names = [f"{symbol}  {label}" for symbol, label in zip(comparison.symbols, comparison.labels, strict=True)]
    name_width = min(width * _NAME_SHARE, max(text_width(name, font_size) for name in names) + 6)
    bar_width = width * 0.14
    number_width = text_width(f"{int(totals.max(initial=0)):,}", font_size) + 4
    left = number_width + bar_width + name_width + 14
    bottom = height - n_runs * row - font_size
    top = font_size * 4
    title = f"{level.plural[0].upper()}{level.plural[1:]} at {threshold * 100:g} % FDR"
    shapes: list[Shape] = [Label(8, font_size * 1.8, title, is_bold=True)]
    if n_more:
        shapes.append(Label(width - 8, font_size * 1.8, f"{counted(n_more, 'smaller set')} not shown", "end", "faint"))
    highest = max((intersection.count for intersection in shown), default=1)
    step = min(34.0, (width - left - 10) / max(1, len(shown)))
    for run in range(n_runs):
        y = height - (n_runs - run) * row
        if run % 2 == 0:
            shapes.append(Bar(left - name_width - 4, y, width - left + name_width - 4, row, "grid", opacity=_STRIPE_OPACITY))
        length = bar_width * int(totals[run]) / max(1, int(totals.max(initial=0)))
        x = number_width + 8 + bar_width - length
        tip = f"{names[run]}: {int(totals[run]):,} {level.plural}"
        shapes.append(Bar(x, y + row * 0.2, length, row * 0.6, run, tip=tip))
        shapes.append(Label(x - 3, y + row * 0.5 + font_size * 0.35, f"{int(totals[run]):,}", "end"))
        shapes.append(Label(left - name_width, y + row * 0.5 + font_size * 0.35, shortened(names[run], name_width - 4, font_size)))
    for position, intersection in enumerate(shown):
        middle = left + (position + 0.5) * step
        bar_height = (bottom - top) * intersection.count / highest
        tip = f"{comparison.names_of(intersection.runs)} only: {counted(intersection.count, level.singular, level.plural)}"
        shapes.append(Bar(middle - step * 0.33, bottom - bar_height, step * 0.66, bar_height, "text", target=intersection.runs, tip=tip))
        text = f"{intersection.count:,}"
        if text_width(text, font_size) <= step * 1.15:
            shapes.append(Label(middle, bottom - bar_height - 3, text, "middle"))
        radius = min(row, step) * 0.3
        for run in range(n_runs):
            y = height - (n_runs - run - 0.5) * row
            ink: Ink = "text" if run in intersection.runs else "faint"
            size = radius if run in intersection.runs else radius * 0.4
            shapes.append(Bar(middle - size, y - size, 2 * size, 2 * size, ink, is_round=True, target=intersection.runs, tip=tip))
        if len(intersection.runs) > 1:
            first, last = (height - (n_runs - run - 0.5) * row for run in (intersection.runs[0], intersection.runs[-1]))
            shapes.append(Stroke(middle, first, middle, last, width=1.5))
    if not shown:
        shapes.append(Label((left + width) / 2, (top + bottom) / 2, f"No {level.singular} is accepted", "middle", "faint"))
    shapes.append(Stroke(left, bottom, width - 8, bottom))
    reported = ", ".join(f"{comparison.names_of(intersection.runs)} {intersection.count}" for intersection in shown)
    return Drawing(width, height, f"{title}: {reported}", tuple(shapes), font_size)


def draw_curves(
    comparison: RunComparison,
    level: Level,
    threshold: float,
    width: float = CURVES_SIZE[0],
    height: float = CURVES_SIZE[1],
    font_size: float = _FONT,
) -> Drawing:
    """Draw the number of items that each run, all runs and any run accept at q-value thresholds up to 5 %."""
    curves = comparison.curves(level.name)
    names = [
        shortened(f"{symbol}  {label}", width * _NAME_SHARE, font_size)
        for symbol, label in zip(comparison.symbols, comparison.labels, strict=True)
    ]
    series: list[tuple[str, np.ndarray, Ink, bool]] = [(names[run], counts, run, False) for run, counts in enumerate(curves.runs)]
    series += [("all", curves.shared, "text", True), ("any", curves.combined, "faint", True)]
    highest = max(1, int(curves.combined.max(initial=0)))
    title = f"{level.plural[0].upper()}{level.plural[1:]} by q-value"
    margin = 1.15 * max(text_width(name, font_size) for name in ("any", *names)) + font_size  # bold names are wider
    area = (font_size * 2 + 16 + text_width(f"{highest:,}", font_size), font_size * 3.2, width - margin, height - font_size * 4)
    left, top, right, bottom = area
    limit = float(curves.q_value[-1])
    x = left + curves.q_value / limit * (right - left)
    shapes: list[Shape] = draw_axes(
        area, Axis(0, limit, "q-value", is_percent=True), Axis(0, highest * 1.06, level.plural, is_whole=True), font_size
    )
    at = left + min(threshold, limit) / limit * (right - left)
    shapes.append(Stroke(at, top, at, bottom, "grid", 1.2))
    for _, counts, ink, is_dashed in series:
        shapes.append(Curve(x, bottom - counts / (highest * 1.06) * (bottom - top), ink, is_dashed=is_dashed))
    ends = sorted(
        ((bottom - counts[-1] / (highest * 1.06) * (bottom - top), name, ink) for name, counts, ink, _ in series),
        key=lambda series: series[0],
    )
    for y, (_, name, ink) in zip(_apart([end[0] for end in ends], font_size * 1.1), ends, strict=True):
        shapes.append(Label(right + 4, y + font_size * 0.35, name, ink=ink, is_bold=isinstance(ink, int)))
    shapes.append(Label(8, font_size * 1.8, title, is_bold=True))
    return Drawing(width, height, title, tuple(shapes), font_size)


def draw_scores(
    comparison: RunComparison,
    runs: tuple[int, int],
    threshold: float,
    width: float = SCORES_SIZE[0],
    height: float = SCORES_SIZE[1],
    font_size: float = _FONT,
) -> Drawing:
    """Draw a scatter plot of the scores that two runs give the same spectra, coloured by agreement.

    A click on a dot selects the row of its spectrum.
    """
    pairs = comparison.scores(*runs, threshold)
    first, second = (f"{comparison.symbols[run]}: score in {comparison.labels[run]}" for run in runs)
    title = f"Scores of {len(pairs.spectrum):,} spectra in {comparison.symbols[runs[0]]} and {comparison.symbols[runs[1]]}"
    shapes: list[Shape] = [Label(8, font_size * 1.8, title, is_bold=True)]
    x, y = _fit_axis(pairs.first, first), _fit_axis(pairs.second, second)
    area = (font_size * 2 + 46, font_size * 7.4, width - font_size * 2, height - font_size * 4)
    left, top, right, bottom = area
    shapes += draw_axes(area, x, y, font_size)
    across = left + (pairs.first - x.low) / (x.high - x.low) * (right - left)
    down = bottom - (pairs.second - y.low) / (y.high - y.low) * (bottom - top)
    are_accepted = pairs.is_first & pairs.is_second
    kinds: tuple[tuple[str, np.ndarray, Ink, float], ...] = (
        ("other peptide, not both accepted", ~pairs.is_same & ~are_accepted, "grid", 2.5),
        ("same peptide", pairs.is_same, 0, 2.5),
        ("other peptide, both accepted", ~pairs.is_same & are_accepted, 1, 4.5),
    )
    for _, chosen, ink, size in kinds:
        shapes.append(Points(across[chosen], down[chosen], ink, size, pairs.spectrum[chosen]))
    for line, (name, chosen, ink, _) in enumerate(kinds[::-1]):
        y_text = font_size * (3.4 + 1.3 * line)
        shapes += [Bar(8, y_text - 5, 5, 5, ink, is_round=True), Label(16, y_text, f"{name} ({np.count_nonzero(chosen):,})")]
    return Drawing(width, height, title, tuple(shapes), font_size)


def _fit_axis(values: np.ndarray, title: str) -> Axis:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    workspace = (high - low) * 0.04 or 0.5
    return Axis(low - workspace, high + workspace, title)


def _apart(positions: Sequence[float], least: float) -> list[float]:
    """Return ascending y coordinates; coordinates that are too close to the previous one are increased, so that they are `least` apart."""
    moved: list[float] = []
    for position in positions:
        moved.append(max(position, moved[-1] + least) if moved else position)
    return moved

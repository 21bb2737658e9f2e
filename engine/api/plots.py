"""Figures drawn with matplotlib, on axes in the units of the data."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from proteoscope.engine.api.arguments import optional_package
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.views.drawings import format_colour
from proteoscope.engine.views.figures import Figure, Mark, Names, Panel, Rule, Scatter, Spikes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

__all__ = ["plot_figure"]

_library: Any = optional_package("matplotlib.figure", "plot")
_POINTS_PER_INCH = 72
_LABELS = 40
"""Maximum number of labelled peaks: matplotlib does not move labels apart."""


class _ShownFigure(_library.Figure):  # type: ignore[misc] # matplotlib is optional, and not known to type checkers
    """Figure that Jupyter displays even if pyplot is not imported."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format="png")
        return stream.getvalue()


def plot_figure(figure: Figure, onto: MatplotlibFigure | None = None) -> MatplotlibFigure:
    """Draw the panels of a figure of the program with matplotlib.

    Parameters
    ----------
    figure : Figure
        Figure of the program.
    onto : matplotlib.figure.Figure, optional
        Figure to draw into; by default a new one, without a window.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with an axis for each panel.

    Raises
    ------
    ParameterError
        If `onto` is not a figure of matplotlib.
    """
    if onto is not None and not isinstance(onto, _library.FigureBase):
        raise ParameterError(f"figure = {type(onto).__name__}: expected a figure of matplotlib")
    width, height = (length / _POINTS_PER_INCH for length in figure.size)
    drawn = _ShownFigure(figsize=(1.4 * width, 1.2 * height), layout="constrained") if onto is None else onto
    axes = drawn.subplots(
        len(figure.panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": [panel.relative_height for panel in figure.panels]}
    )[:, 0]
    for panel, axis in zip(figure.panels, axes, strict=True):
        _draw_panel(panel, axis)
    drawn.suptitle("\n".join(figure.heading), fontsize="medium")
    axes[-1].set_xlabel(figure.panels[-1].x.title)
    return drawn


def _draw_panel(panel: Panel, axis: Axes) -> None:
    axis.set_xlim(panel.x.low, panel.x.high)
    axis.set_ylim(panel.y.low, panel.y.high)
    axis.set_ylabel(panel.y.title)
    axis.set_title(panel.title)
    axis.spines[["top", "right"]].set_visible(False)
    for mark in panel.marks:
        _draw(mark, axis)


def _draw(mark: Mark, axis: Axes) -> None:
    match mark:
        case Spikes():
            axis.vlines(mark.x, mark.foot, mark.y, colors=format_colour(mark.ink), linewidth=mark.width)
        case Scatter():
            colour = format_colour(mark.ink)
            axis.scatter(mark.x, mark.y, mark.size**2, facecolors="none" if mark.is_hollow else colour, edgecolors=colour)
        case Rule():
            draw: Any = axis.axvline if mark.is_upright else axis.axhline
            draw(mark.at, color=format_colour(mark.ink), linewidth=mark.width, linestyle="--" if mark.is_dashed else "-")
        case Names():
            for at in np.argsort(-mark.importance, kind="stable")[:_LABELS].tolist():
                ink = mark.inks[at] if isinstance(mark.inks, list) else mark.inks
                place: dict[str, Any] = {
                    "xytext": (0, -2 if mark.is_below else 2),
                    "textcoords": "offset points",
                    "ha": "center",
                    "rotation": 90,
                }
                edge = "top" if mark.is_below else "bottom"
                axis.annotate(mark.texts[at], (mark.x[at], mark.y[at]), va=edge, fontsize="x-small", color=format_colour(ink), **place)
        case _:
            raise ParameterError(f"{type(mark).__name__} of the figure cannot be drawn with matplotlib. Write the figure to a file.")

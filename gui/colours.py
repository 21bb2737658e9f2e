"""The colours of figures (`proteoscope.engine.views.palette`) as Qt's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from PySide6.QtGui import QColor, QPalette

from proteoscope.engine.views import palette as palettes
from proteoscope.engine.views.palette import ION_KINDS, Ink, Ion, Palette, Shade, rgb_of

__all__ = ["PlotColours", "palette_of", "plot_colours", "qt_colour", "shade_colour"]


@dataclass(frozen=True)
class PlotColours:
    """What a plot is drawn with. `ions` are by letter of the series, `LOSS`, `SHARED`, `SHIFTED` or `UNMATCHED`."""

    background: QColor
    text: QColor
    faint: QColor
    grid: QColor
    ions: dict[str, QColor]
    target: QColor
    decoy: QColor
    mark: QColor


def palette_of(palette: QPalette) -> Palette:
    """The surface of a widget, light or dark."""
    role = QPalette.ColorRole
    roles = (role.Base, role.Text, role.PlaceholderText, role.Mid, role.Highlight, role.HighlightedText)
    return Palette(*(palette.color(one).name() for one in roles))


@lru_cache(maxsize=1024)
def qt_colour(ink: Ink, palette: Palette, opacity: float = 1.0) -> QColor:
    """The colour of an ink on a surface. It is shared: change a copy."""
    colour = QColor(*rgb_of(ink, palette))
    colour.setAlphaF(opacity)
    return colour


def _colours(palette: Palette) -> PlotColours:
    background, text, faint, grid, target, decoy, mark = (
        qt_colour(ink, palette) for ink in ("background", "text", "faint", "grid", "target", "decoy", "mark")
    )
    ions = {kind: qt_colour(Ion(kind), palette) for kind in ION_KINDS}
    return PlotColours(background, text, faint, grid, ions, target, decoy, mark)


def plot_colours(palette: QPalette) -> PlotColours:
    """Colours that fit a palette, light or dark."""
    return _colours(palette_of(palette))


def shade_colour(part: float, background: QColor) -> QColor:
    """The colour of a `Shade`: from that of the first series (-1) over the background to that of the second (1)."""
    return qt_colour(Shade(part), replace(palettes.PAPER, background=background.name()))

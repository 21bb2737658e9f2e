"""Qt colours for the inks that figures use (`proteoscope.engine.views.palette`)."""

from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtGui import QColor, QPalette

from proteoscope.engine.views.palette import ION_KINDS, Ink, Ion, Palette, rgb_of


@dataclass(frozen=True)
class PlotColours:
    """Colours of a plot. The keys of `ions` are ion series, `LOSS`, `SHARED`, `SHIFTED` and `UNMATCHED`."""

    background: QColor
    text: QColor
    faint: QColor
    grid: QColor
    ions: dict[str, QColor]
    target: QColor
    decoy: QColor
    mark: QColor


def palette_of(palette: QPalette) -> Palette:
    """Convert a widget's Qt palette to the `Palette` that figures use."""
    role = QPalette.ColorRole
    roles = (role.Base, role.Text, role.PlaceholderText, role.Mid, role.Highlight, role.HighlightedText)
    return Palette(*(palette.color(role).name() for role in roles))


@lru_cache(maxsize=1024)
def qt_colour(ink: Ink, palette: Palette, opacity: float = 1.0) -> QColor:
    """Return the colour of an ink on the background of `palette`. The returned object is cached: modify only a copy."""
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
    """Return the colours for a light or dark palette."""
    return _colours(palette_of(palette))

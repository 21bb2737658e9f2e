"""Groups of features of proteins in plots: their colours, their key, which is clicked to hide and show them, and the same by the menu."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QAction, QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from proteoscope.engine.formats.features import FEATURE_GROUPS
from proteoscope.engine.views.coverage import ProteinFeature
from proteoscope.engine.views.shown_peaks import UNMATCHED
from proteoscope.gui.colours import PlotColours

__all__ = ["QUANTITY", "GroupActions", "colour_of_group", "group_at", "key_of_groups", "key_tip", "paint_key", "told_features"]

QUANTITY = "quantity"
"""Stands among the groups in a key where peptides may be coloured by it."""
_TOLD_FEATURES = 8
"""Features that a tip tells at most."""
_COLOURS = {
    QUANTITY: "b",
    "chain": UNMATCHED,
    "domain": "a",
    "site": "y",
    "modification": "z",
    "disulfide bond": "x",
    "variant": "p",
    "secondary structure": "c",
}
"""Which of the colours that readers with any colour vision tell apart is a group's; its name stands beside it."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter

Key = Sequence[tuple[str, QRectF]]
"""Groups, and where their names stand."""


def colour_of_group(colours: PlotColours, group: str) -> QColor:
    """The colour of a group of features."""
    return colours.ions[_COLOURS[group]]


def key_of_groups(groups: Iterable[str], metrics: QFontMetricsF, left: float, top: float, right: float) -> list[tuple[str, QRectF]]:
    """Where the names of groups stand, from a place on and in as many lines as they need."""
    line, places, x = metrics.height(), [], left
    for group in groups:
        room = metrics.horizontalAdvance(group) + 2.4 * line
        if x + room > right and x > left:
            x, top = left, top + line * 1.2
        places.append((group, QRectF(x, top, room, line)))
        x += room
    return places


def group_at(key: Key, at: QPointF) -> str | None:
    """The group whose name is at a place."""
    return next((group for group, place in key if place.contains(at)), None)


def paint_key(painter: QPainter, key: Key, shown: Collection[str], colours: PlotColours) -> None:
    """Draw the names of groups, those that are hidden with an empty box."""
    for group, place in key:
        line = place.height()
        painter.setPen(QPen(colour_of_group(colours, group), 1.2))
        painter.setBrush(colour_of_group(colours, group) if group in shown else Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(place.left(), place.top() + line * 0.25, line * 0.9, line * 0.5))
        painter.setPen(colours.text if group in shown else colours.faint)
        painter.drawText(place.adjusted(line * 1.2, 0, 0, 0), _LEFT, group)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def key_tip(group: str, shown: Collection[str]) -> str:
    """What a click on a group in the key does."""
    if group == QUANTITY:
        return f"Click to colour peptides {'in one colour' if group in shown else 'by their quantity'}"
    return f"Click to {'hide' if group in shown else 'show'} features of this group"


def told_features(features: Sequence[ProteinFeature]) -> list[str]:
    """Lines that tell features, the first of many."""
    told = [feature.told for feature in features[:_TOLD_FEATURES]]
    return [*told, f"and {len(features) - _TOLD_FEATURES} more"] if len(features) > _TOLD_FEATURES else told


class GroupActions(dict[str, QAction]):
    """For each group the action of a widget's menu by which it is hidden and shown.

    `changed` is called when one was.
    """

    def __init__(self, owner: QWidget, changed: Callable[[], object]) -> None:
        super().__init__()
        for group in FEATURE_GROUPS:
            action = QAction(f"Features: {group}", owner)
            action.setCheckable(True)
            action.setChecked(True)
            action.setVisible(False)
            action.toggled.connect(lambda _: changed())
            owner.addAction(action)
            self[group] = action

    @property
    def shown(self) -> frozenset[str]:
        """Groups that are shown."""
        return frozenset(group for group, action in self.items() if action.isChecked())

    def offer(self, groups: Collection[str]) -> None:
        """Let the menu name the groups that there are."""
        for group, action in self.items():
            action.setVisible(group in groups)

"""Hits along their query: a bar for each, where it lies and how good it is, as the graphic summary of BLAST shows them."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

from PySide6.QtCore import QEvent, QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from proteoscope.engine.formats.features import FEATURE_GROUPS
from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.coverage import ProteinFeature, feature_lanes
from proteoscope.engine.views.hits import Bar, QueryBars
from proteoscope.engine.views.ticks import nice_ticks
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.plots.feature_groups import GroupActions, colour_of_group, group_at, key_of_groups, key_tip, paint_key, told_features
from proteoscope.gui.tables.columns import shown_text

__all__ = ["BIT_SCORES", "HitBars"]

BIT_SCORES = (40.0, 50.0, 80.0, 200.0)
"""Where the classes of bit scores begin that have a colour of their own, the same as BLAST's."""
_CLASSES = ("< 40", "40–50", "50–80", "80–200", "≥ 200")
_E_VALUE = Column("e_value", "E-value", "", "e_value")
_MAXIMUM_EXPORTED = 100
_LANE = 6.0
"""Height of a line of features of the query, with the room below it."""
_FEATURE_LANES = 12
_FIGURE_WIDTH = 480.0
_NAMES_SHARE = 0.3
"""Part of a figure's width that the names of hits take at most."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class _Layout:
    """Places of bars for a font and a width. `names` of the hits stand before their bars, and above all that of the query."""

    def __init__(
        self,
        shown: QueryBars,
        n_bars: int,
        font: QFont,
        width: float,
        names: Sequence[str] = (),
        groups: Collection[str] = FEATURE_GROUPS,
    ) -> None:
        metrics = QFontMetricsF(font)
        self.shown, self.n_bars, self.font, self.width = shown, n_bars, font, width
        self.line = metrics.height()
        most = width * _NAMES_SHARE
        self.names = [metrics.elidedText(name, Qt.TextElideMode.ElideRight, most) for name in names]
        room = max((metrics.horizontalAdvance(name) + self.line for name in self.names), default=0.0)
        self.margin = self.line
        self.left, self.right = self.margin + room, width - 1.6 * self.line
        self.bar = max(4.0, round(self.line * 0.42))
        self.step = max(self.bar + 3, self.line if names else 0.0)
        self.heading = 1.8 * self.line if names else 0.0
        self.groups = groups
        self.features = [(lane, one) for lane, one in feature_lanes(shown.features, groups) if lane < _FEATURE_LANES]
        n_lanes = max((lane + 1 for lane, _ in self.features), default=0)
        self.first_lane = 2.9 * self.line + self.heading + max(5.0, self.bar) + 0.35 * self.line
        below = self.first_lane + n_lanes * _LANE
        there = [group for group in FEATURE_GROUPS if any(one.group == group for one in shown.features)]
        self.key = key_of_groups(there, metrics, self.left, below + 0.2 * self.line, self.right)
        self.top = self.key[-1][1].bottom() + 0.6 * self.line if self.key else 4.3 * self.line + self.heading

    @property
    def size(self) -> QSizeF:
        note = 1.6 * self.line if self.is_cut else 0.0
        return QSizeF(self.width, self.top + self.n_bars * self.step + 0.6 * self.line + note)

    @property
    def is_cut(self) -> bool:
        """Whether there are more hits than bars."""
        return self.shown.total > self.n_bars

    def x(self, residue: float) -> float:
        """Place of the left edge of a residue, from 1."""
        return self.left + (residue - 1) / max(self.shown.query_length, 1) * (self.right - self.left)

    def box(self, place: int) -> QRectF:
        """Of the bar at a place of the list."""
        bar = self.shown.bars[place]
        left = self.x(bar.start)
        return QRectF(left, self.top + place * self.step, max(self.x(bar.end + 1) - left, 2.0), self.bar)

    def span(self, lane: int, feature: ProteinFeature) -> QRectF:
        """Of a feature of the query."""
        left = self.x(feature.start + 1)
        return QRectF(left, self.first_lane + lane * _LANE, max(self.x(feature.end + 1) - left, 2.0), _LANE - 2)

    def features_at(self, at: QPointF) -> list[ProteinFeature]:
        """Features of the query whose spans are at a place."""
        return [one for lane, one in self.features if self.span(lane, one).adjusted(-1, -1, 1, 1).contains(at)]

    def place_at(self, at: QPointF) -> int | None:
        """The bar on whose line a place is."""
        place = int((at.y() - self.top) // self.step)
        return place if at.y() >= self.top and place < self.n_bars else None


def _colours_of_classes(colours: PlotColours) -> tuple[QColor, ...]:
    ions = colours.ions
    return colours.faint, ions["b"], ions["a"], ions["z"], ions["y"]


def paint_bars(painter: QPainter, layout: _Layout, colours: PlotColours, chosen: int | None, visible: QRectF | None = None) -> None:
    """Draw names, scale, query and bars from the painter's origin; `chosen` is a row of the table of hits."""
    shown, line = layout.shown, layout.line
    of_classes = _colours_of_classes(colours)
    locale = QLocale()
    painter.setFont(layout.font)
    metrics = QFontMetricsF(layout.font)
    if layout.names:
        _paint_names(painter, layout, colours)
    x, key = layout.margin, 0.25 * line + layout.heading
    painter.setPen(colours.text)
    title = metrics.horizontalAdvance("Bit score") + line
    needed = sum(metrics.horizontalAdvance(name) + 1.15 * line for name in _CLASSES)
    # Where there is little room, the classes stand closer and must do without their title.
    gap = min(0.9 * line, max(2.0, (layout.width - x - needed) / len(_CLASSES)))
    if title + needed + len(_CLASSES) * gap <= layout.width - x:
        painter.drawText(QRectF(x, key, 200, line), _LEFT, "Bit score")
        x += title
    for colour, name in zip(of_classes, _CLASSES, strict=True):
        painter.fillRect(QRectF(x, key + 0.25 * line, line * 0.9, line * 0.5), colour)
        x += 1.15 * line
        painter.setPen(colours.text)
        painter.drawText(QRectF(x, key, 200, line), _LEFT, name)
        x += metrics.horizontalAdvance(name) + gap
    query = QRectF(layout.left, 2.9 * line + layout.heading, layout.right - layout.left, max(5.0, layout.bar))
    painter.fillRect(query, colours.text)
    ticks = nice_ticks(1, shown.query_length, max(2, int(query.width() / metrics.horizontalAdvance("000000") / 1.6)), whole=True)
    ticks = [1.0, *(tick for tick in ticks if tick > 1)]
    painter.setPen(QPen(colours.text, 0.8))
    last_right = -1.0
    for tick in ticks:
        text = locale.toString(round(tick))
        at, width = layout.x(tick), metrics.horizontalAdvance(text)
        painter.drawLine(QLineF(at, query.top() - 0.3 * line, at, query.top()))
        if at - width / 2 > last_right:
            painter.drawText(QRectF(at - 60, query.top() - 1.35 * line, 120, line), Qt.AlignmentFlag.AlignCenter, text)
            last_right = at + width / 2 + 6
    paint_key(painter, layout.key, layout.groups, colours)
    for lane, feature in layout.features:
        span, colour = layout.span(lane, feature), colour_of_group(colours, feature.group)
        if feature.group == "disulfide bond" and feature.end - feature.start > 1:
            # A bond holds two residues together, and nothing between them.
            painter.fillRect(QRectF(span.left(), span.center().y() - 0.5, span.width(), 1.0), colour)
            painter.fillRect(QRectF(span.left(), span.top(), 2.0, span.height()), colour)
            painter.fillRect(QRectF(span.right() - 2.0, span.top(), 2.0, span.height()), colour)
        else:
            painter.fillRect(span, colour)
    painter.setPen(Qt.PenStyle.NoPen)
    for place in range(layout.n_bars):
        box = layout.box(place)
        if visible is not None and not visible.intersects(box.adjusted(-2, -2, 2, 2)):
            continue
        bar = shown.bars[place]
        painter.setBrush(of_classes[bisect_right(BIT_SCORES, bar.bit_score or 0.0)])
        painter.drawRoundedRect(box, 1.5, 1.5)
        if bar.row == chosen:
            painter.setPen(QPen(colours.text, 1.4))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(-2, -2, 2, 2), 2.5, 2.5)
            painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if layout.is_cut:
        painter.setPen(colours.faint)
        box = QRectF(layout.left, layout.top + layout.n_bars * layout.step + 0.3 * line, layout.right - layout.left, 1.3 * line)
        note = f"the best {locale.toString(layout.n_bars)} of {locale.toString(shown.total)} hits"
        painter.drawText(box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter, note)


def _paint_names(painter: QPainter, layout: _Layout, colours: PlotColours) -> None:
    line = layout.line
    bold = QFont(layout.font)
    bold.setBold(True)
    painter.setFont(bold)
    painter.setPen(colours.text)
    width = layout.width - 2 * layout.margin
    length = f" ({QLocale().toString(layout.shown.query_length)} residues)"
    metrics = QFontMetricsF(bold)
    name = metrics.elidedText(f"Hits of {layout.shown.query}", Qt.TextElideMode.ElideRight, width - metrics.horizontalAdvance(length))
    painter.drawText(QRectF(layout.margin, 0.4 * line, width, line), _LEFT, name + length)
    painter.setFont(layout.font)
    for place, name in enumerate(layout.names):
        middle = layout.box(place).center().y()
        painter.drawText(QRectF(layout.margin, middle - line / 2, layout.left - layout.margin, line), _LEFT, name)


class HitBars(QAbstractScrollArea):
    """Shows hits along their query, or a text in their place. A click, or the arrow keys, choose a hit."""

    hitChosen = Signal(int)
    """Place of the hit in the table of hits."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bars: QueryBars | None = None
        self.chosen: int | None = None
        self._text = ""
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Hits along the query")
        self.viewport().setBackgroundRole(QPalette.ColorRole.Base)
        self.viewport().setMouseTracking(True)
        self.export_action = ExportAction(self, self._figure, self.message.emit)
        self.group_actions = GroupActions(self, self._lay_out)

    def show_bars(self, bars: QueryBars | None, text: str = "") -> None:
        """Show hits, or a text in their place; the chosen hit stays chosen."""
        is_other = bars is None or self.bars is None or bars.query != self.bars.query
        self.bars, self._text = (bars if bars is not None and bars.bars else None), text
        if bars is not None and not bars.bars:
            self._text = text or "No hits to draw."
        self.setAccessibleDescription(self._text or f"{len(bars.bars) if bars else 0} hits along {bars.query if bars else ''}")
        if is_other:
            self.verticalScrollBar().setValue(0)
        self.group_actions.offer({one.group for one in self.bars.features} if self.bars is not None else ())
        self._lay_out()

    def mark(self, row: int | None) -> None:
        """Mark the hit of a row of the table of hits, and bring it into sight."""
        self.chosen = row
        place = self._place_of(row)
        if place is not None:
            box, bar = self._layout().box(place), self.verticalScrollBar()
            if box.top() < bar.value():
                bar.setValue(int(box.top() - 8))
            elif box.bottom() > bar.value() + self.viewport().height():
                bar.setValue(int(box.bottom() + 8 - self.viewport().height()))
        self.viewport().update()

    def box_of(self, row: int) -> QRectF | None:
        """Where the bar of a row of the table is on the viewport."""
        place = self._place_of(row)
        return None if place is None else self._layout().box(place).translated(0, -self.verticalScrollBar().value())

    def text_at(self, at: QPointF) -> str:
        """The hit on whose line a place of the viewport is."""
        if self.bars is None:
            return ""
        layout, on_page = self._layout(), at + QPointF(0, self.verticalScrollBar().value())
        if (group := group_at(layout.key, on_page)) is not None:
            return key_tip(group, layout.groups)
        if features := layout.features_at(on_page):
            return "\n".join(told_features(features))
        bar = self._bar_at(at)
        if bar is None:
            return ""
        locale = QLocale()
        facts = [f"{locale.toString(bar.identity * 100, 'f', 1)} % identical"]
        if bar.e_value is not None:
            facts.insert(0, f"E-value {shown_text(_E_VALUE, bar.e_value, locale)}")
        if bar.bit_score is not None:
            facts.insert(0, f"{locale.toString(bar.bit_score, 'f', 1)} bits")
        place = f"residues {bar.start} to {bar.end} of the query"
        told = (bar.name, bar.description, ", ".join(facts), place, *told_features(bar.features))
        return "\n".join(part for part in told if part)

    def sizeHint(self) -> QSize:
        """Room for some bars."""
        return QSize(520, 200)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the room."""
        super().resizeEvent(event)
        self._lay_out()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the hit on whose line the pointer is."""
        event.accept()
        group = self._group_at(event.position())
        if group is not None and event.button() == Qt.MouseButton.LeftButton:
            self.group_actions[group].toggle()
            return
        bar = self._bar_at(event.position())
        if bar is not None and event.button() == Qt.MouseButton.LeftButton:
            self._choose(bar)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """What was pressed here ends here."""
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show what can be clicked."""
        is_over = self._bar_at(event.position()) is not None or self._group_at(event.position()) is not None
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if is_over else Qt.CursorShape.ArrowCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go from hit to hit."""
        steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Right: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_Left: -1}
        step = steps.get(Qt.Key(event.key()))
        if step is None or self.bars is None:
            super().keyPressEvent(event)
            return
        place = self._place_of(self.chosen)
        last = len(self.bars.bars) - 1
        place = (0 if step == 1 else last) if place is None else min(max(place + step, 0), last)
        self._choose(self.bars.bars[place])

    def viewportEvent(self, event: QEvent) -> bool:
        """Tell the hit under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight."""
        colours = plot_colours(self.palette())
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.bars is None:
            painter.setPen(colours.faint)
            area = self.viewport().rect().adjusted(20, 12, -20, -12)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._text)
        else:
            down = self.verticalScrollBar().value()
            painter.translate(0, -down)
            paint_bars(painter, self._layout(), colours, self.chosen, QRectF(event.rect()).translated(0, down))
        painter.end()

    def _layout(self) -> _Layout:
        assert self.bars is not None
        return _Layout(self.bars, len(self.bars.bars), self.font(), self.viewport().width(), groups=self.group_actions.shown)

    def _lay_out(self) -> None:
        height = 0 if self.bars is None else round(self._layout().size.height())
        bar, room = self.verticalScrollBar(), self.viewport().height()
        bar.setPageStep(room)
        bar.setSingleStep(20)
        bar.setRange(0, max(0, height - room))
        self.viewport().update()

    def _place_of(self, row: int | None) -> int | None:
        bars = self.bars.bars if self.bars is not None and row is not None else ()
        return next((place for place, bar in enumerate(bars) if bar.row == row), None)

    def _bar_at(self, at: QPointF) -> Bar | None:
        if self.bars is None:
            return None
        place = self._layout().place_at(at + QPointF(0, self.verticalScrollBar().value()))
        return None if place is None else self.bars.bars[place]

    def _group_at(self, at: QPointF) -> str | None:
        key = () if self.bars is None else self._layout().key
        return group_at(key, at + QPointF(0, self.verticalScrollBar().value()))

    def _choose(self, bar: Bar) -> None:
        self.mark(bar.row)
        self.hitChosen.emit(bar.row)

    def _figure(self) -> ExportFigure | None:
        if self.bars is None:
            return None
        # On the screen a table beside the drawing names query and hits, which a figure in a document must do itself.
        names = [bar.name for bar in self.bars.bars[:_MAXIMUM_EXPORTED]]
        layout = _Layout(self.bars, len(names), figure_font(7), _FIGURE_WIDTH, names, self.group_actions.shown)
        return ExportFigure(f"Hits of {self.bars.query}", layout.size, lambda painter, area: paint_bars(painter, layout, PAPER, None))

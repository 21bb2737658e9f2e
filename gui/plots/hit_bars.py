"""Interactive figure of hits along their query: hits can be selected, and groups of features hidden."""
# ruff: noqa: N802, N815, D102 - Qt gives these names

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QLocale, QSize, Qt, Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.coverage import ProteinFeature
from proteoscope.engine.views.drawings import PaperFigure
from proteoscope.engine.views.feature_drawing import feature_lines, key_tip
from proteoscope.engine.views.hit_drawing import HitSheet, draw_hits
from proteoscope.engine.views.hits import QueryBars
from proteoscope.gui.plots.drawing_view import WidgetMeasure
from proteoscope.gui.plots.feature_groups import GroupActions
from proteoscope.gui.plots.scrolled_drawing import ScrolledDrawing
from proteoscope.gui.tables.columns import shown_text

_E_VALUE = Column("e_value", "E-value", "", "e_value")


class HitBars(ScrolledDrawing):
    """Widget that shows hits as bars along their query, or a text. A click or the arrow keys select a hit."""

    hitChosen = Signal(int)
    """A hit was selected; emitted with its row of the table of hits."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Hits along the query", parent)
        self.bars: QueryBars | None = None
        self._sheet: HitSheet | None = None
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.group_actions = GroupActions(self, self.lay_out)

    def show_bars(self, bars: QueryBars | None, text: str = "") -> None:
        """Show hits or a text; the selected hit is retained."""
        is_new_query = bars is None or self.bars is None or bars.query != self.bars.query
        if bars is not None and not bars.bars:
            bars, text = None, text or "No hits to draw."
        self.bars = bars
        self.group_actions.offer(() if bars is None else {feature.group for feature in bars.features})
        self._show(text, is_new=is_new_query)

    def mark(self, row: int | None) -> None:
        """Mark the hit of a row of the table, and scroll to it; None removes the mark."""
        self.chosen = row
        position = self._place_of(row)
        if self._sheet is not None:
            self._sheet.chosen = row
            if position is not None:
                self._bring_into_sight(self._sheet.box(position))
        self.viewport().update()

    def sizeHint(self) -> QSize:
        return QSize(520, 200)

    def _new_sheet(self, measure: WidgetMeasure, width: float) -> HitSheet | None:
        if self.bars is None:
            return None
        sheet = HitSheet(self.bars, measure, width, len(self.bars.bars), self.group_actions.shown)
        sheet.chosen = self.chosen
        return sheet

    def _figure(self) -> PaperFigure | None:
        # On screen, a table next to the figure names query and hits; on paper, the figure itself must.
        bars, groups = self.bars, self.group_actions.shown
        return None if bars is None else PaperFigure(f"Hits of {bars.query}", partial(draw_hits, bars, None, groups))

    def _place_of(self, row: int | None) -> int | None:
        return None if row is None or row not in self._rows() else list(self._rows()).index(row)

    def _tip(self, x: float, y: float) -> str:
        assert self._sheet is not None and self.bars is not None
        if (group := self._sheet.key.group_at(x, y)) is not None:
            return key_tip(group, self.group_actions.shown)
        if features := [target for target in self.targets_at(x, y) if isinstance(target, ProteinFeature)]:
            return "\n".join(feature_lines(features[::-1]))
        if (at := self._sheet.place_at(y)) is None:
            return ""
        bar, locale = self.bars.bars[at], QLocale()
        facts = [f"{locale.toString(bar.identity * 100, 'f', 1)} % identical"]
        if bar.e_value is not None:
            facts.insert(0, f"E-value {shown_text(_E_VALUE, bar.e_value, locale)}")
        if bar.bit_score is not None:
            facts.insert(0, f"{locale.toString(bar.bit_score, 'f', 1)} bits")
        place = f"residues {bar.start} to {bar.end} of the query"
        lines = (bar.name, bar.description, ", ".join(facts), place, *feature_lines(bar.features))
        return "\n".join(line for line in lines if line)

    def _click(self, x: float, y: float) -> None:
        assert self._sheet is not None and self.bars is not None
        group, position = self._sheet.key.group_at(x, y), self._sheet.place_at(y)
        if group is not None:
            self.group_actions[group].toggle()
        elif position is not None:
            self._choose(self.bars.bars[position].row)

    def _can_be_clicked(self, x: float, y: float) -> bool:
        assert self._sheet is not None
        return self._sheet.key.group_at(x, y) is not None or self._sheet.place_at(y) is not None

    def _rows(self) -> Sequence[int]:
        return () if self.bars is None else [bar.row for bar in self.bars.bars]

    def _choose(self, row: int) -> None:
        self.mark(row)
        self.hitChosen.emit(row)

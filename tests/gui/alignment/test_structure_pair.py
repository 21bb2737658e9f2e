"""The alignment of two structures: columns, kinds, numbers and texts by definition, and where its secondary structure is drawn."""

from __future__ import annotations

from unittest.mock import patch

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontDatabase, QImage, QPainter
from pytestqt.qtbot import QtBot

import proteoscope.gui.alignment.alignment_plot as module
from proteoscope.engine.views.structure_pair import StructurePair
from proteoscope.gui.alignment.alignment_plot import AlignmentLayout, paint_alignment
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.alignment.secondary_structure import state_colours
from proteoscope.gui.colours import PAPER
from proteoscope.gui.theme import Theme
from tests.engine.views.test_structure_pair import pair_of


def test_every_column_is_where_it_is_pointed_at(theme: Theme) -> None:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    layout = AlignmentLayout(pair_of("30I200M40D20M"), font, font, 640)
    for column in range(len(layout.pair)):
        for line in (-0.5, 0.5, 1.5, 2.5, 3.5):  # from the states above to those below
            assert layout.column_at(layout.corner(column) + QPointF(layout.cell / 2, line * layout.line)) == column
    assert all(item.x + item.room < layout.heading_width for item in layout.legend)


def test_states_are_drawn_above_and_below_their_residues_and_nowhere_in_gaps(theme: Theme) -> None:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    layout = AlignmentLayout(pair_of("20I40M"), font, font, 1400)
    size = layout.size.toSize()
    image = QImage(size, QImage.Format.Format_RGB32)
    image.fill(PAPER.background)
    painter = QPainter(image)
    paint_alignment(painter, layout, PAPER)
    painter.end()
    tones = {state: colour.rgb() for state, colour in state_colours(PAPER).items()}

    def colours_in(column: int, top: float) -> set[int]:
        corner = layout.corner(column)
        left, middle = round(corner.x() + layout.cell / 2), range(round(top), round(top + layout.track))
        return {QColor(image.pixel(left, y)).rgb() for y in middle}

    assert isinstance(layout.pair, StructurePair)
    seen = 0
    for column in range(len(layout.pair)):
        for states, top in zip(
            layout.pair.states, (layout.corner(column).y() - layout.track, layout.corner(column).y() + 3 * layout.line), strict=True
        ):
            found = colours_in(column, top) & set(tones.values())
            if states[column] == "-":
                assert not found
            elif states[column] == "E":
                assert found == {tones["E"]}
                seen += 1
    assert seen > 20


def test_only_blocks_in_sight_are_drawn_of_a_long_pair(qtbot: QtBot, theme: Theme) -> None:
    view = AlignmentView()
    qtbot.addWidget(view)
    view.resize(700, 400)
    with qtbot.waitExposed(view):
        view.show()
    view.show_pair(pair_of("3000I4000M3000D"))
    drawn: list[int] = []
    real = module._paint_row
    with patch.object(module, "_paint_row", lambda *args: (drawn.append(args[-1]), real(*args))[0]):
        view.plot.verticalScrollBar().setValue(5000)
        view.plot.viewport().repaint()
    layout = view.plot._layout
    assert layout is not None and 1 <= len(set(drawn)) <= view.plot.viewport().height() / layout.row_height + 2

"""Tests of the alignment of two structures: columns, kinds, numbers, texts, and the position of secondary structure."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from PySide6.QtGui import QColor, QGuiApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.alignment_drawing import INK_OF_STATE, AlignmentSheet
from proteoscope.engine.views.drawings import Shape
from proteoscope.engine.views.structure_pair import StructurePair
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.colours import palette_of, qt_colour
from proteoscope.gui.plots.drawing_view import WidgetMeasure
from proteoscope.gui.theme import Theme
from tests.engine.views.test_structure_pair import pair_of


def test_structure_alignment_columns_match_the_pointer(theme: Theme) -> None:
    sheet = AlignmentSheet(pair_of("30I200M40D20M"), WidgetMeasure.from_font(QGuiApplication.font()), 640)
    for column in range(len(sheet.pair)):
        left, top = sheet.corner(column)
        for line in (-0.5, 0.5, 1.5, 2.5, 3.5):  # from the states above to those below
            assert sheet.column_at(left + sheet.cell / 2, top + line * sheet.line) == column
    assert all(item.x + item.sign < sheet.heading_width for item in sheet.legend)


def test_secondary_structure_is_drawn_at_residues_not_in_gaps(qtbot: QtBot, theme: Theme) -> None:
    view = AlignmentView()
    qtbot.addWidget(view)
    view.resize(1400, 400)
    with qtbot.waitExposed(view):
        view.show()
    view.show_pair(pair_of("20I40M"))
    sheet, image = view.plot._sheet, view.plot.viewport().grab().toImage()
    assert sheet is not None and isinstance(sheet.pair, StructurePair) and image.devicePixelRatio() == 1
    tones = {state: qt_colour(ink, palette_of(view.palette())).rgb() for state, ink in INK_OF_STATE.items()}
    seen = 0
    for column in range(len(sheet.pair)):
        left, top = sheet.corner(column)
        for states, y in zip(sheet.pair.states, (top - sheet.track, top + 3 * sheet.line), strict=True):
            inside = range(int(np.ceil(y)), int(y + sheet.track))
            colours = {QColor(image.pixel(round(left + sheet.cell / 2), down)).rgb() for down in inside} & set(tones.values())
            if states[column] == "-":
                assert not colours
            elif states[column] == "E":
                assert colours == {tones["E"]}
                seen += 1
    assert seen > 20


def test_structure_alignment_view_draws_only_visible_blocks(qtbot: QtBot, theme: Theme) -> None:
    view = AlignmentView()
    qtbot.addWidget(view)
    view.resize(700, 400)
    with qtbot.waitExposed(view):
        view.show()
    view.show_pair(pair_of("3000I4000M3000D"))
    drawn: list[int] = []
    real = AlignmentSheet._row

    def row(sheet: AlignmentSheet, number: int) -> list[Shape]:
        drawn.append(number)
        return real(sheet, number)

    with patch.object(AlignmentSheet, "_row", row):
        view.plot.verticalScrollBar().setValue(5000)
        view.plot.viewport().repaint()
    sheet = view.plot._sheet
    assert sheet is not None and 1 <= len(set(drawn)) <= view.plot.viewport().height() / sheet.row_height + 2

"""Tests of the drawn alignment of two sequences, with real input events."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.alignment_drawing import AlignmentSheet
from proteoscope.engine.views.drawings import Shape
from proteoscope.engine.views.sheets import Region
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.plots.drawing_view import WidgetMeasure
from proteoscope.gui.theme import Theme
from tests.engine.views.test_aligned_pair import pair_of


def long_pair(n: int = 700) -> AlignedPair:
    random = np.random.default_rng(5)
    query = random.choice(list("ACDEFGHIKLMNPQRSTVWY"), n).tolist()
    subject = [a if random.random() < 0.5 else str(random.choice(list("ACDEFGHIKLMNPQRSTVWY-"))) for a in query]
    return pair_of([(a, b, bool(random.random() < 0.4)) for a, b in zip(query, subject, strict=True)], 11, 202)


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> AlignmentView:
    widget = AlignmentView()
    qtbot.addWidget(widget)
    widget.resize(700, 400)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_pair(long_pair())
    widget.plot.setFocus()
    return widget


@pytest.mark.parametrize("width", [200, 333, 640, 1500])
def test_alignment_lines_wrap_and_columns_match_the_pointer(width: int, theme: Theme) -> None:
    sheet = AlignmentSheet(long_pair(), WidgetMeasure.from_font(QGuiApplication.font()), width)
    assert sheet.per_row % 10 == 0
    assert sheet.per_row == 10 or sheet.size[0] <= width
    for column in range(len(sheet.pair)):
        left, top = sheet.corner(column)
        assert sheet.column_at(left + sheet.cell / 2, top + sheet.line) == column
    assert sheet.column_at(2, 2) is None


def test_alignment_view_draws_only_visible_lines(view: AlignmentView, qtbot: QtBot) -> None:
    view.plot.show_pair(long_pair(5000))
    drawn: list[int] = []
    real = AlignmentSheet._row

    def row(sheet: AlignmentSheet, number: int) -> list[Shape]:
        drawn.append(number)
        return real(sheet, number)

    with patch.object(AlignmentSheet, "_row", row):
        view.plot.verticalScrollBar().setValue(2000)
        view.plot.viewport().repaint()
    sheet = view.plot._sheet
    assert sheet is not None and sheet.n_rows > 60
    assert 1 <= len(set(drawn)) <= view.plot.viewport().height() / sheet.row_height + 2


def test_alignment_colours_distinguish_identity_and_similarity(view: AlignmentView) -> None:
    view.show_pair(pair_of([("A", "A", False), ("L", "I", True), ("G", "W", False), ("-", "K", False)] * 2))
    layout = view.plot._sheet
    assert layout is not None
    image = view.plot.viewport().grab().toImage()
    ratio = image.devicePixelRatio()
    colours = []
    for column in range(4):
        left, top = layout.corner(column)
        # Between two lines there is no residue.
        colours.append(image.pixelColor(QPoint(round((left + 2) * ratio), round((top + 1) * ratio))).name())
    assert len(set(colours)) == 4
    assert view.plot.pair is not None and view.plot.pair.middle == "A+  A+  "


def test_alignment_tooltip_describes_the_column(view: AlignmentView) -> None:
    view.show_pair(pair_of([("A", "A", False), ("-", "K", False), ("L", "I", True)], 45, 52))
    layout = view.plot._sheet
    assert layout is not None
    texts = [view.plot.text_at(QPointF(*layout.corner(column)) + QPointF(2, 2)) for column in range(3)]
    assert texts == ["Query A45, subject A52: identical", "Query gap after 45, subject K53: gap", "Query L46, subject I54: positive"]


def test_alignment_is_zoomed_by_keys_wheel_and_buttons(view: AlignmentView, qtbot: QtBot) -> None:
    plot = view.plot
    layout = plot._sheet
    assert layout is not None
    before = layout.per_row
    qtbot.keyClick(plot, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    view.zoom_in_button.click()
    assert plot.zoom > 1.2 and view.zoom_button.text() == f"{round(plot.zoom * 100)} %"
    layout = plot._sheet
    assert layout is not None and layout.per_row < before
    qtbot.keyClick(plot, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert plot.zoom == 1.0
    at = QPointF(100, 100)
    wheel = QWheelEvent(
        at,
        QPointF(plot.viewport().mapToGlobal(at.toPoint())),
        QPoint(),
        QPoint(0, -240),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.ControlModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QGuiApplication.sendEvent(plot.viewport(), wheel)
    assert plot.zoom < 0.8
    for _ in range(40):
        plot.zoom_out()
    assert plot.zoom == 0.5


def test_top_column_of_alignment_stays_on_top_when_lines_rewrap(view: AlignmentView, qtbot: QtBot) -> None:
    plot = view.plot
    plot.verticalScrollBar().setValue(plot.verticalScrollBar().maximum() // 2)
    column = plot._column_on_top()
    plot.zoom_in()
    layout = plot._sheet
    assert layout is not None and abs(plot._column_on_top() - column) < layout.per_row
    view.resize(500, 400)
    qtbot.wait(20)
    assert abs(plot._column_on_top() - column) < 2 * layout.per_row


def test_alignment_is_copied_by_key_and_by_button(view: AlignmentView, qtbot: QtBot) -> None:
    pair = view.plot.pair
    assert pair is not None
    with qtbot.waitSignal(view.message):
        qtbot.keyClick(view.plot, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == pair.text()
    view.fasta_button.click()
    assert QGuiApplication.clipboard().text() == pair.fasta()
    view.show_pair(None, "nothing")
    assert not view.copy_button.isEnabled() and not view.copy_action.isEnabled()


def test_exported_alignment_figure_has_all_residues(view: AlignmentView, tmp_path: Path) -> None:
    pair = view.plot.pair
    assert pair is not None
    view.plot.export_action.write(tmp_path / "alignment.svg")
    texts = [
        "".join(element.itertext()) for element in ElementTree.parse(tmp_path / "alignment.svg").iter() if element.tag.endswith("text")
    ]
    for residues in (pair.query, pair.subject):
        assert residues in "".join(text for text in texts if text in residues)
    assert {"aligned with QUERY", "45.2 bits", "identical"} <= set(texts)
    for ending in ("pdf", "png"):
        view.plot.export_action.write(tmp_path / f"alignment.{ending}")
        assert (tmp_path / f"alignment.{ending}").stat().st_size > 1000


def test_alignment_heading_is_complete_in_a_narrow_view(theme: Theme, view: AlignmentView) -> None:
    measure = WidgetMeasure.from_font(QGuiApplication.font())
    fact = "45.2 bits (score 100), E-value 1e-10, identity 38.3 % of 394"
    pair = AlignedPair("QUERY", "SUBJECT", "a relative", 1, 1, "ACD", "ACD", "ACD", (fact, "gaps 3"))
    sheet = AlignmentSheet(pair, measure, 300)
    assert ", ".join(sheet.facts) == f"{fact}, gaps 3" and len(sheet.facts) > 2
    assert all(measure.width(line) <= 300 for line in sheet.facts)
    assert sheet.rows(Region(0, 0, 300, sheet.top + 1)) == range(1)
    view.show_pair(pair)
    figure = view.plot._figure()
    assert figure is not None and figure.draw(None).width > WidgetMeasure(7.0, measure.font).width(fact)


def test_exported_figure_of_a_long_alignment_fits_a_pdf_page(view: AlignmentView, tmp_path: Path) -> None:
    view.show_pair(long_pair(20_000))
    figure = view.plot._figure()
    assert figure is not None and max(figure.draw(None).height, figure.draw(None).width) <= 14_400
    view.plot.export_action.write(tmp_path / "long.pdf")
    assert (tmp_path / "long.pdf").read_bytes().startswith(b"%PDF")


def test_alignment_view_shows_a_text_without_an_alignment(view: AlignmentView) -> None:
    view.show_pair(None, "Choose a hit.")
    assert view.plot.accessibleDescription() == "Choose a hit."
    assert view.plot.text_at(QPointF(50, 50)) == ""
    view.plot.viewport().grab()

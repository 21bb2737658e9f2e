"""Tests of tables of any length: they show the content of the file in the requested order and filter."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from proteoscope.engine.identification.tables import TABLES
from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.conditions import compares
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.tables.columns import full_text, saved_text, shown_text
from proteoscope.gui.tables.model import PAGE_ROWS, ParquetTableModel
from proteoscope.gui.tables.view import TableView
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.theme import Theme
from tests.engine.identification_tables import identification, many_psms
from tests.engine.views.test_tables import by_definition, opened


@pytest.fixture(scope="module")
def psms() -> pa.Table:
    return many_psms(identification(400), 3 * PAGE_ROWS + 100)


@pytest.fixture
def source(psms: pa.Table, tmp_path: Path) -> Iterator[TableSource]:
    yield from opened(psms, tmp_path)


GERMAN = QLocale(QLocale.Language.German, QLocale.Country.Germany)


@pytest.fixture
def view(source: TableSource, qtbot: QtBot, theme: Theme) -> Iterator[TableView]:
    model = ParquetTableModel(TABLES[2].columns, TABLES[2].links, QGuiApplication.palette)
    view = TableView(model, "PSMs")
    qtbot.addWidget(view)
    model.open(source)
    view.hide_columns([column.name for column in model.columns if not column.is_shown])
    view.size_columns()
    view.resize(900, 400)
    with qtbot.waitActive(view):
        view.show()
        view.activateWindow()
    model.show()
    settle(view, qtbot)
    yield view
    model.close()


def settle(view: TableView, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not view._model.is_busy)


def shown(view: TableView, name: str, n: int | None = None) -> list[Any]:
    """Return the values of a column in the order of the view, read through the model."""
    model = view._model
    section = [column.name for column in model.columns].index(name)
    return [model.index(row, section).data(Qt.ItemDataRole.UserRole) for row in range(len(model.rows) if n is None else n)]


def section_of(view: TableView, name: str) -> int:
    return [column.name for column in view._model.columns].index(name)


def click_header(view: TableView, name: str, qtbot: QtBot) -> None:
    header = view.horizontalHeader()
    section = section_of(view, name)
    view.scrollTo(view.model().index(0, section))
    at = QPoint(header.sectionViewportPosition(section) + header.sectionSize(section) // 3, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=at)


def test_click_on_table_header_sorts_and_shows_the_order(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    click_header(view, "score", qtbot)
    settle(view, qtbot)
    assert view._model.rows.tolist() == by_definition(psms["score"].to_pylist(), True), "numbers from the largest first"
    header = view.horizontalHeader()
    assert (header.sortIndicatorSection(), header.sortIndicatorOrder()) == (section_of(view, "score"), Qt.SortOrder.DescendingOrder)
    click_header(view, "score", qtbot)
    settle(view, qtbot)
    assert view._model.rows.tolist() == by_definition(psms["score"].to_pylist(), False)
    assert header.sortIndicatorOrder() == Qt.SortOrder.AscendingOrder
    click_header(view, "peptide", qtbot)
    settle(view, qtbot)
    assert view._model.rows.tolist() == by_definition(psms["peptide"].to_pylist(), False), "texts from A"


def test_every_page_of_a_table_has_the_values_of_the_file(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    order = by_definition(psms["score"].to_pylist(), True)
    view._model.show(order=[("score", True)])
    settle(view, qtbot)
    for start in range(0, len(psms), PAGE_ROWS):
        view.scrollTo(view.model().index(min(start + 3, len(psms) - 1), 0))
        view.viewport().repaint()
        settle(view, qtbot)
    assert shown(view, "peptide") == [psms["peptide"][i].as_py() for i in order]
    assert shown(view, "charge") == [psms["charge"][i].as_py() for i in order]


def test_table_cells_show_an_ellipsis_until_loaded(view: TableView, qtbot: QtBot) -> None:
    last = len(view._model.rows) - 1
    assert view._model.index(last, section_of(view, "peptide")).data() == "…"
    settle(view, qtbot)
    assert view._model.index(last, section_of(view, "peptide")).data() != "…"


def test_table_shows_only_the_newest_requested_order(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    orders = []
    view._model.orderChanged.connect(lambda: orders.append(view._model.order))
    for name in ("peptide", "q_value", "scan", "precursor_mz"):
        view._model.show(order=[(name, False)])
    settle(view, qtbot)
    assert orders == [(("precursor_mz", False),)], "those before it never reach the view"
    assert view._model.rows.tolist() == by_definition(psms["precursor_mz"].to_pylist(), False)


def test_table_discards_pages_loaded_for_an_older_order(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    """Check a pending order, in which the old rows are painted and request pages, which arrive after the new order."""
    model = view._model
    model.show(order=[("peptide", False)])
    model.index(PAGE_ROWS + 3, section_of(view, "peptide")).data()
    settle(view, qtbot)
    for start in range(0, len(psms), PAGE_ROWS):
        model.index(start, section_of(view, "peptide")).data()
        settle(view, qtbot)
    assert shown(view, "peptide") == [psms["peptide"][i].as_py() for i in by_definition(psms["peptide"].to_pylist(), False)]
    model.show(conditions=[compares("charge", "=", 2)])
    model.index(PAGE_ROWS + 3, section_of(view, "peptide")).data()
    settle(view, qtbot)
    assert set(shown(view, "charge", min(len(model.rows), PAGE_ROWS))) == {2}


def test_selected_table_row_stays_selected_when_sorted(view: TableView, qtbot: QtBot) -> None:
    chosen: list[int] = []
    view.rowChosen.connect(lambda row, values: chosen.append(row))
    view.choose(7)
    row = view.chosen
    view._model.show(order=[("peptide", False)])
    settle(view, qtbot)
    qtbot.waitUntil(lambda: view.currentIndex().isValid())
    assert int(view._model.rows[view.currentIndex().row()]) == row == view.chosen
    assert chosen == [row], "reported once"


def test_arrow_keys_move_through_the_table_rows(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    received: list[tuple[int, Any]] = []
    view.rowChosen.connect(lambda row, values: received.append((row, values["peptide"])))
    view.setFocus()
    view.choose(0)
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    settle(view, qtbot)
    last = len(psms) - 1
    assert [row for row, _ in received] == [0, 1, last]
    assert received[-1][1] == psms["peptide"][last].as_py(), "values are sent when their page is available"


def test_copied_table_rows_have_numbers_in_the_locale_format(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    before = QLocale()
    QLocale.setDefault(GERMAN)
    try:
        view.setFocus()
        view.choose(2)
        qtbot.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
        qtbot.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
        with qtbot.waitSignal(view.message) as signal:
            qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    finally:
        QLocale.setDefault(before)
    assert signal.args == ["Copied 3 rows."]
    header, *lines = QGuiApplication.clipboard().text().splitlines()
    titles = header.split("\t")
    assert titles == [column.header for column in view._model.columns if column.is_shown]
    assert len(lines) == 3
    for line, row in zip(lines, psms.slice(2, 3).to_pylist(), strict=True):
        cells = dict(zip(titles, line.split("\t"), strict=True))
        assert cells["Peptide"] == row["peptide"]
        assert float(cells["m/z"].replace(",", ".")) == pytest.approx(row["precursor_mz"], rel=1e-14)
        assert "." not in cells["m/z"]
        assert cells["Proteins"] == "; ".join(row["proteins"])


def test_saved_table_has_all_rows_in_the_shown_order(view: TableView, psms: pa.Table, tmp_path: Path, qtbot: QtBot) -> None:
    view._model.show(order=[("score", True)], conditions=[compares("charge", "=", 2)])
    settle(view, qtbot)
    with qtbot.waitSignal(view.message):
        view.save(tmp_path / "out.tsv")
    header, *lines = (tmp_path / "out.tsv").read_text().splitlines()
    names = header.split("\t")
    order = [i for i in by_definition(psms["score"].to_pylist(), True) if psms["charge"][i].as_py() == 2]
    assert [line.split("\t")[names.index("peptide")] for line in lines] == [psms["peptide"][i].as_py() for i in order]
    assert [float(line.split("\t")[names.index("score")]) for line in lines] == pytest.approx([psms["score"][i].as_py() for i in order])


def test_failed_save_of_a_table_is_reported(view: TableView, tmp_path: Path, qtbot: QtBot) -> None:
    with qtbot.waitSignal(view.failed) as signal:
        (tmp_path / "a file").touch()
        view.save(tmp_path / "a file" / "out.tsv")
    assert "a file" in signal.args[0]
    assert not signal.args[0].startswith("Saved")


def test_table_columns_are_selected_in_a_menu(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    assert view.isColumnHidden(section_of(view, "hyperscore"))
    menu = view.columns_menu()
    wanted = next(action for action in menu.actions() if action.text() == "Hyperscore")
    assert wanted.isCheckable()
    assert not wanted.isChecked()
    with qtbot.waitSignal(view.columnsChanged):
        wanted.trigger()
    menu.deleteLater()
    settle(view, qtbot)
    view.viewport().repaint()
    settle(view, qtbot)
    assert not view.isColumnHidden(section_of(view, "hyperscore"))
    assert shown(view, "hyperscore", 20) == pytest.approx(psms["hyperscore"].to_pylist()[:20]), "read now that it is shown"
    assert "hyperscore" not in view.hidden_columns()


def test_context_menu_of_table_has_the_actions_with_shortcuts(view: TableView, qtbot: QtBot) -> None:
    texts = [action.text() for action in view.actions()]
    assert texts == ["&Copy", "&Save table…", "C&olumns and sorting…"]
    assert all(not action.shortcut().isEmpty() for action in view.actions())
    assert view.findChildren(QMenu) == []


def test_table_marks_decoys(view: TableView, psms: pa.Table, qtbot: QtBot) -> None:
    decoys = psms["is_decoy"].to_pylist()
    section = section_of(view, "peptide")
    for row in (decoys.index(True), decoys.index(False)):
        index = view._model.index(row, section)
        font, colour = index.data(Qt.ItemDataRole.FontRole), index.data(Qt.ItemDataRole.ForegroundRole)
        assert (font is not None and font.italic()) == decoys[row]
        assert (colour is not None and colour.color() == QGuiApplication.palette().color(QPalette.ColorRole.PlaceholderText)) == decoys[row]


def test_table_has_right_aligned_numbers_and_header_tooltips(view: TableView) -> None:
    for section, column in enumerate(view._model.columns):
        alignment = Qt.AlignmentFlag(view._model.index(0, section).data(Qt.ItemDataRole.TextAlignmentRole))
        is_right = bool(alignment & Qt.AlignmentFlag.AlignRight)
        assert is_right == (column.name not in {"peptide", "proteins", "spectrum_file", "spectrum_id", "is_decoy"})
        assert len(view._model.headerData(section, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)) > 2


def test_empty_table_shows_the_reason(view: TableView, qtbot: QtBot) -> None:
    view.set_empty_text(lambda: "Nothing passes the filter.")
    view._model.show(conditions=[compares("charge", "=", 9)])
    settle(view, qtbot)
    image = view.viewport().grab().toImage()
    width, height = image.width(), image.height()
    colours = {image.pixelColor(x, y).name() for x in range(0, width, 2) for y in range(height // 3, 2 * height // 3)}
    assert len(colours) > 3, "the text is drawn in place of rows"


VALUES = [
    (Column("x", "", "", "number", decimals=4), 1234.56789, "1,234.5679", "1.234,5679", "1234.56789"),
    (Column("x", "", "", "integer"), 1234567, "1,234,567", "1.234.567", "1234567"),
    (Column("x", "", "", "identifier"), 1234567, "1234567", "1234567", "1234567"),
    (Column("x", "", "", "probability"), 0.01234, "0.0123", "0,0123", "0.01234"),
    (Column("x", "", "", "probability"), 1.5e-7, "1.5e-07", "1,5e-07", "1.5e-07"),
    (Column("x", "", "", "probability"), 0.0, "0", "0", "0"),
    (Column("x", "", "", "percent"), 0.256, "25.6", "25,6", "25.6"),
    (Column("x", "", "", "minutes"), 90.0, "1.50", "1,50", "1.5"),
    (Column("x", "", "", "number"), float("nan"), "", "", ""),
    (Column("x", "", "", "number"), None, "", "", ""),
    (Column("x", "", "", "texts"), ["A", "B"], "A; B", "A; B", "A;B"),
    (Column("x", "", "", "texts"), ["A;C", "B"], "A;C; B", "A;C; B", "A%3BC;B"),
    (Column("x", "", "", "truth"), True, "yes", "yes", "true"),
    (Column("x", "", ""), "a\tb  c\r\nd", "a b  c  d", "a b  c  d", "a b  c  d"),
]


@pytest.mark.parametrize(("column", "value", "english", "german", "machine"), VALUES)
def test_table_values_are_shown_in_the_format_of_the_locale(column: Column, value: Any, english: str, german: str, machine: str) -> None:
    american = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)
    assert shown_text(column, value, american) == english
    assert shown_text(column, value, GERMAN).replace("E", "e") == german
    assert saved_text(column, value) == machine
    if column.is_number:
        assert full_text(column, value, american) == machine
        assert full_text(column, value, GERMAN) == (machine.replace(".", ",") if isinstance(value, float) else machine)
    else:
        assert full_text(column, value, american) == full_text(column, value, GERMAN) == english, "words as shown"


class TestWorker:
    def test_table_worker_delivers_results_in_the_window_thread(self, qtbot: QtBot) -> None:
        worker, seen = TableWorker(), []
        worker.submit("a", lambda: threading.get_ident(), lambda there: seen.append((there, threading.get_ident())), seen.append)
        qtbot.waitUntil(lambda: bool(seen))
        there, here = seen[0]
        assert here == threading.get_ident() != there
        assert not worker.is_busy

    def test_table_worker_delivers_errors(self, qtbot: QtBot) -> None:
        worker, seen = TableWorker(), []
        worker.submit("a", lambda: 1 // 0, seen.append, lambda error: seen.append(type(error)))
        qtbot.waitUntil(lambda: bool(seen))
        assert seen == [ZeroDivisionError]

    def test_table_worker_delivers_only_the_newest_similar_request(self, qtbot: QtBot) -> None:
        worker, seen = TableWorker(), []
        for i in range(20):
            worker.submit("same", lambda i=i: (time.sleep(0.01), i)[1], seen.append, seen.append)
        worker.submit("other", lambda: "last", seen.append, seen.append)
        qtbot.waitUntil(lambda: not worker.is_busy)
        assert sorted(map(str, seen)) == ["19", "last"]

    def test_closed_table_worker_delivers_no_running_work(self, qtbot: QtBot) -> None:
        worker, seen = TableWorker(), []
        worker.submit("a", lambda: time.sleep(0.05), seen.append, seen.append)
        worker.close()
        qtbot.wait(30)
        assert seen == []
        assert not worker.is_busy

    def test_closed_table_worker_discards_finished_work(self, qtbot: QtBot) -> None:
        worker, seen = TableWorker(), []
        has_run = threading.Event()
        worker.submit("a", has_run.set, seen.append, seen.append)
        assert has_run.wait(60)
        time.sleep(0.02)
        worker.close()
        assert not worker.is_busy
        qtbot.wait(30)
        assert seen == []


def test_selection_signal_reports_selected_row_on_random_input(view: TableView, qtbot: QtBot) -> None:
    announced: list[tuple[int, list[int]]] = []
    view.rowChosen.connect(lambda row, _: announced.append((row, view.selected)))
    generator = np.random.default_rng(12)
    modifiers = (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier)
    keys = (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_PageDown, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Space)
    view.setFocus()
    for _ in range(200):
        modifier = modifiers[generator.integers(3)]
        if generator.random() < 0.5:
            at = view.rowAt(int(generator.integers(view.viewport().height())))
            index = view.model().index(max(at, 0), view._first_column())
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, modifier, view.visualRect(index).center())
        else:
            qtbot.keyClick(view, keys[generator.integers(len(keys))], modifier)
        settle(view, qtbot)
        assert view.chosen is None or view.selected
    assert len(announced) > 50
    assert all(row in selected for row, selected in announced)


def test_row_selection_is_signalled_once_if_sorted_while_loading(view: TableView, qtbot: QtBot) -> None:
    announced: list[tuple[int, object]] = []
    view.rowChosen.connect(lambda row, values: announced.append((row, values["scan"])))
    model = view.model()
    model._pages.clear()
    view.choose(3)
    row = view.chosen
    assert announced == []
    model.show(order=[("scan", True)])
    settle(view, qtbot)
    # The row is selected again in a later turn of the event loop, also if its page was read just before the order changed.
    qtbot.waitUntil(lambda: bool(announced) and bool(view.selected))
    assert [announced_row for announced_row, _ in announced] == [row] and view.selected == [row]

"""Tests of the window with X events: the queue, font sizes, help, and undo in forms."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QToolBar, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.gui.help.help_window import HelpWindow
from proteoscope.gui.window import MainWindow
from tests.gui.test_jobs import UntilCancelled
from tests.gui.x_events import Hand, wait_until_still, wait_until_still_in_form


def click_into(editor: QWidget, window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    """Click into a field of the form once it is visible and no longer moves."""
    box = editor.focusProxy() or editor
    wait_until_still_in_form(box, window, qtbot)
    hand.click(box, QPoint(8, box.height() // 2))
    qtbot.waitUntil(lambda: box.hasFocus() or box.isAncestorOf(QApplication.focusWidget() or window))


def test_queued_job_dragged_to_the_top_becomes_the_next(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    queue, dock = window.queue, window.jobs
    running = queue.add("running", UntilCancelled())
    jobs = [queue.add(name, UntilCancelled()) for name in ("one", "two", "three")]
    window.job_strip.begin()
    qtbot.waitUntil(lambda: len(dock.rows) == 4)
    rows = [dock.rows[job.id] for job in jobs]

    def places() -> list[QPoint] | None:
        window.resizeDocks([window.dock_jobs], [260], Qt.Orientation.Vertical)
        is_whole = all(row.visibleRegion().boundingRect() == row.rect() and row.height() >= row.sizeHint().height() for row in rows)
        return [row.mapToGlobal(QPoint()) for row in rows] if is_whole else None

    wait_until_still(places, qtbot)
    qtbot.waitUntil(lambda: dock.rows[running.id].time_left.text() != "")
    assert dock.rows[running.id].time_left.text().split()[1] == "s"
    hand.drag(rows[2].title, rows[0], QPoint(40, 4))
    qtbot.waitUntil(lambda: [job.title for job in queue.waiting] == ["three", "one", "two"])
    queue.cancel_all()
    qtbot.waitUntil(lambda: all(job.is_over for job in (running, *jobs)))


def test_preset_that_replaced_values_is_undone_by_keyboard(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    window.new_search("identify")
    form = window.form
    qtbot.waitUntil(form.run_button.isVisible)
    field = form.parameters.fields["missed_cleavages"]
    before = form.parameters.values()["missed_cleavages"]
    click_into(field.editor, window, hand, qtbot)
    hand.press("up")
    qtbot.waitUntil(lambda: form.parameters.values()["missed_cleavages"] == before + 1)
    form.presets.choose("phospho")
    qtbot.waitUntil(lambda: form.parameters.values()["missed_cleavages"] != before + 1 or form.presets.undo_button.isVisible())
    form.presets.undo_button.setFocus()
    qtbot.waitUntil(form.presets.undo_button.hasFocus)
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: form.parameters.values()["missed_cleavages"] == before + 1)
    assert not form.presets.undo_button.isVisible()


@pytest.mark.usefixtures("hand")
def test_toolbar_buttons_fit_at_1280_and_1024_pixels(window: MainWindow, qtbot: QtBot) -> None:
    bar = window.findChild(QToolBar, "toolbar")
    assert isinstance(bar, QToolBar)
    for width in (1280, 1024):
        window.resize(width, 800)
        qtbot.waitUntil(lambda width=width: window.width() <= width)
        buttons = [bar.widgetForAction(action) for action in bar.actions() if not action.isSeparator()]
        assert all(button.visibleRegion().boundingRect() == button.rect() and button.text() for button in buttons)
    assert [action.text() for action in window.menus.new.values()] == [action.text() for action in bar.actions()[0].menu().actions()]


def test_font_size_is_selected_in_the_menu_and_remembered(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    hand.press("alt", "v")
    menu = hand.menu()
    hand.press("z")
    hand.choose(hand.menu(before=menu), window.menus.font_scales[130])
    qtbot.waitUntil(lambda: window.settings.values.font_scale == 130)
    assert "130 %" in window.message_bar.label.text()


def test_f1_opens_the_help_of_the_focused_parameter(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    window.new_search("identify")
    field = window.form.parameters.fields["missed_cleavages"]
    click_into(field.editor, window, hand, qtbot)
    hand.press("f1")
    qtbot.waitUntil(lambda: window.findChild(HelpWindow) is not None)
    opened = window.findChild(HelpWindow)
    assert opened is not None
    qtbot.waitUntil(lambda: field.description.help in opened.meaning.toPlainText())
    opened.close()


def test_escape_key_ends_the_tour(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    window.assistance.begin_tour_once()
    tour = window.assistance.tour
    assert tour is not None
    qtbot.waitUntil(tour.next_button.hasFocus)
    hand.press("enter")
    qtbot.waitUntil(lambda: tour.step == 1)
    hand.press("escape")
    qtbot.waitUntil(lambda: window.assistance.tour is None)
    assert window.settings.values.tour_seen


def test_reset_of_all_parameters_is_undone_by_keyboard(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    window.new_search("identify")
    form = window.form
    qtbot.waitUntil(form.run_button.isVisible)
    before = form.parameters.values()["missed_cleavages"]
    click_into(form.parameters.fields["missed_cleavages"].editor, window, hand, qtbot)
    hand.press("up")
    qtbot.waitUntil(lambda: form.parameters.values()["missed_cleavages"] == before + 1)
    wait_until_still_in_form(form.parameters.reset_button, window, qtbot)
    hand.click(form.parameters.reset_button)
    qtbot.waitUntil(lambda: form.parameters.values()["missed_cleavages"] == before)
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: form.parameters.values()["missed_cleavages"] == before + 1)


def test_toolbar_menu_opens_a_new_search(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    bar = window.findChild(QToolBar, "toolbar")
    assert isinstance(bar, QToolBar)
    menus: list[QWidget] = []

    def choose(kind: str) -> None:
        menu = hand.menu()
        menus.append(menu)
        assert window.screen().geometry().contains(menu.geometry())
        hand.choose(menu, window.menus.new[kind])

    for kind in ("structures", "quantify"):
        # The menu blocks the caller of the click until it is closed.
        hand.do_when(lambda: QApplication.activePopupWidget() is not None, partial(choose, kind))
        hand.click(bar.widgetForAction(bar.actions()[0]))
        qtbot.waitUntil(lambda kind=kind: window.pages.currentWidget() is window.searches[kind].form)
        qtbot.waitUntil(lambda: QApplication.activePopupWidget() is None)
    assert len(menus) == 2

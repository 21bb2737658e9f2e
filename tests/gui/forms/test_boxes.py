"""Tests of every input box under the mouse wheel, and of presets applied to edited values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QScrollArea,
    QScrollBar,
    QSpinBox,
    QTabWidget,
    QToolTip,
    QWidget,
)
from pytestqt.qtbot import QtBot

from proteoscope.gui.forms.modification_picker import ModificationPicker
from proteoscope.gui.forms.numbers import IntegerBox, number_text
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.window import MainWindow

Box = QComboBox | QAbstractSpinBox | QAbstractSlider
PAGES = [(kind, page) for kind in ("identify", "align") for page in ("form", "results")]


def boxes_within(widget: QWidget) -> list[Box]:
    """Return all widgets that a wheel could change: choices, numbers, dates, times and sliders, but not scroll areas."""
    boxes: list[Box] = [*widget.findChildren(QComboBox), *widget.findChildren(QAbstractSpinBox)]
    return boxes + [slider for slider in widget.findChildren(QAbstractSlider) if not isinstance(slider, QScrollBar)]


def state_of(box: Box) -> object:
    return (box.currentIndex(), box.currentText()) if isinstance(box, QComboBox) else box.property("value")


def can_turn(box: Box) -> None:
    """Widen the range of a box in both directions, so that any wheel event changes it visibly."""
    if isinstance(box, QComboBox):
        box.blockSignals(True)
        while box.count() < 3:
            box.addItem(f"choice {box.count()}")
        box.setCurrentIndex(1)
        box.blockSignals(False)
    elif isinstance(box, QSpinBox | QDoubleSpinBox):
        box.setValue((max(box.minimum(), 0) + min(box.maximum(), 10)) / 2 if isinstance(box, QDoubleSpinBox) else 5)


def wheel(widget: QWidget, steps: int = -1) -> None:
    """Send a wheel event at a widget as the display server does."""
    top, at, before = widget.window(), QPoint(), None
    while at != before:  # The last choice may have moved it, and may move it again.
        before = at
        QTest.qWait(4)
        at = widget.mapTo(top, widget.rect().center())
    QTest.wheelEvent(top.windowHandle(), QPointF(at), QPoint(0, 120 * steps))


def shown_page(window: MainWindow, kind: str, page: str) -> QWidget:
    """Show a page of the window with everything on it unfolded."""
    shown = getattr(window.searches[kind], page)
    window.show_page(shown)
    if isinstance(shown, SearchForm):
        shown.parameters.unfold()
    elif shown is not None:
        shown._stack.setCurrentWidget(shown._shown)
    return shown


def scroll_to(box: Box, qtbot: QtBot) -> QScrollArea | None:
    """Scroll a box into view, away from the ends of the scroll area."""
    widget: QWidget | None = box
    while widget is not None and not isinstance(widget, QScrollArea):
        if isinstance(widget.parentWidget(), QWidget) and isinstance(widget.parentWidget().parentWidget(), QTabWidget):
            widget.parentWidget().parentWidget().setCurrentWidget(widget)
        widget = widget.parentWidget()
    if widget is not None:
        widget.ensureWidgetVisible(box, 0, widget.height() // 3)
    qtbot.wait(1)
    return widget


@pytest.mark.parametrize(("kind", "page"), PAGES)
def test_mouse_wheel_scrolls_the_form_and_not_unfocused_boxes(window: MainWindow, kind: str, page: str, qtbot: QtBot) -> None:
    shown = shown_page(window, kind, page)
    window.resize(1000, 560)
    qtbot.waitExposed(window)
    boxes = [box for box in boxes_within(shown) if box.isVisible()]
    assert len(boxes) >= (8 if page == "form" else 3)
    window.pages.setFocus(Qt.FocusReason.OtherFocusReason)
    for box in boxes:
        name = box.accessibleName() or type(box).__name__
        can_turn(box)
        area = scroll_to(box, qtbot)
        before, bar = state_of(box), None if area is None else area.verticalScrollBar()
        for steps in (-1, 1, 1):
            place = 0 if bar is None else bar.value()
            wheel(box, steps)
            assert state_of(box) == before, name
            assert not box.hasFocus(), f"{name} takes the focus from the wheel"
            if bar is not None and bar.minimum() < place < bar.maximum():
                assert (bar.value() > place) == (steps < 0), f"over {name} the form does not scroll"


@pytest.mark.parametrize(("kind", "page"), PAGES)
def test_no_input_box_takes_focus_by_the_mouse_wheel(window: MainWindow, kind: str, page: str) -> None:
    """Check hidden and disabled boxes, and those on other pages, too."""
    for box in boxes_within(getattr(window.searches[kind], page)):
        assert not box.focusPolicy() & Qt.FocusPolicy.WheelFocus & ~Qt.FocusPolicy.StrongFocus, box.accessibleName()


def test_unfocused_modification_picker_ignores_the_mouse_wheel(window: MainWindow, qtbot: QtBot) -> None:
    picker = ModificationPicker("Variable modifications", window)
    picker.show()
    qtbot.waitExposed(picker)
    picker.name.setFocus()
    (box,) = boxes_within(picker)
    before = state_of(box)
    wheel(box)
    wheel(box, 1)
    assert state_of(box) == before
    picker.close()


@pytest.mark.parametrize("name", ["preset", "device", "missed_cleavages", "enzyme", "precursor_tolerance"])
def test_mouse_wheel_changes_a_clicked_input_box(window: MainWindow, name: str, qtbot: QtBot) -> None:
    form = shown_page(window, "identify", "form")
    assert isinstance(form, SearchForm)
    qtbot.waitExposed(window)
    box = {"preset": form.presets.box, "device": form.device.box}.get(name) or boxes_within(form.parameters.fields[name].editor)[-1]
    scroll_to(box, qtbot)
    can_turn(box)
    before = state_of(box)
    if isinstance(box, QAbstractSpinBox):
        QTest.mouseClick(box.findChild(QLineEdit), Qt.MouseButton.LeftButton)
    else:
        QTest.mouseClick(box, Qt.MouseButton.LeftButton)
        QTest.keyClick(box.view(), Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: not box.view().isVisible())
    qtbot.waitUntil(box.hasFocus)
    wheel(box, -1)
    wheel(box, -1)
    assert state_of(box) != before


def test_mouse_wheel_does_not_change_a_box_focused_by_code(window: MainWindow, qtbot: QtBot) -> None:
    form = shown_page(window, "identify", "form")
    assert isinstance(form, SearchForm)
    qtbot.waitExposed(window)
    form.presets.box.setFocus(Qt.FocusReason.OtherFocusReason)
    qtbot.waitUntil(form.presets.box.hasFocus)
    scroll_to(form.presets.box, qtbot)
    before = form.presets.box.currentIndex()
    wheel(form.presets.box)
    assert form.presets.box.currentIndex() == before
    QTest.keyClick(form.presets.box, Qt.Key.Key_Down)
    assert form.presets.box.currentIndex() != before, "keys are for the box with the focus"
    before = form.presets.box.currentIndex()
    wheel(form.presets.box)
    assert form.presets.box.currentIndex() != before, "with the keys, the box in focus is meant"


@pytest.fixture
def form(window: MainWindow, qtbot: QtBot) -> Iterator[SearchForm]:
    window.menus.new["identify"].trigger()
    window.form.presets.choose("high-resolution")
    yield window.form


def choose(form: SearchForm, preset: str) -> None:
    """Select a preset with the keys in the closed box."""
    form.presets.box.setFocus(Qt.FocusReason.TabFocusReason)
    wanted = form.presets.box.findData(preset)
    for _ in range(form.presets.box.count()):
        if form.presets.box.currentIndex() == wanted:
            return
        QTest.keyClick(form.presets.box, Qt.Key.Key_Down if form.presets.box.currentIndex() < wanted else Qt.Key.Key_Up)


def type_missed_cleavages(form: SearchForm, text: str) -> None:
    box = form.parameters.fields["missed_cleavages"].editor.findChild(IntegerBox)
    box.lineEdit().selectAll()
    QTest.keyClicks(box.lineEdit(), text)


def test_preset_that_replaces_edited_values_can_be_undone(form: SearchForm) -> None:
    type_missed_cleavages(form, "4")
    form.parameters.set_values({"enzyme": "Lys-C", "fdr": 0.05})
    edited, names = form.parameters.values(), form.parameters.changed_names
    assert len(names) == 3 and not form.presets.undo_button.isVisible()
    form.presets.load_file(Path("resources/presets/identify") / "absent.toml")
    assert not form.presets.undo_button.isVisible(), "an unreadable preset replaces nothing"
    before = (form.presets.box.currentText(), form.presets.description.text())
    form.presets.choose("low-resolution")
    assert form.presets.undo_text.text() == "Preset low-resolution replaced 3 edited values."
    assert form.presets.undo_button.isVisible() and form.parameters.changed_names == []
    QTest.mouseClick(form.presets.undo_button, Qt.MouseButton.LeftButton)
    assert form.parameters.values() == edited and form.parameters.changed_names == names
    assert (form.presets.box.currentText(), form.presets.description.text()) == before
    assert not form.presets.undo_button.isVisible() and not form.presets.undo_text.isVisible()
    form.parameters.reset_all()
    assert form.parameters.parameters is not None and form.parameters.changed_names == [], "resetting restores the preset before"


def test_undo_after_several_presets_restores_edited_values(form: SearchForm, window: MainWindow) -> None:
    form.parameters.set_values({"missed_cleavages": 4})
    edited = form.parameters.values()
    choose(form, "phospho")
    assert form.presets.undo_button.isVisible()
    form.parameters.set_values({"fdr": 0.05})
    later = form.parameters.values()
    form.presets.undo()
    assert form.parameters.values() == edited
    window.undo_stack.step_forward()
    assert form.parameters.values() == later and form.presets.box.currentData() == "phospho"


def test_preset_that_replaces_a_preset_offers_no_undo(form: SearchForm) -> None:
    form.presets.choose("low-resolution")
    form.presets.choose("phospho")
    assert not form.presets.undo_button.isVisible()


def test_saving_a_preset_offers_no_undo(form: SearchForm, tmp_path: Path) -> None:
    form.parameters.set_values({"missed_cleavages": 4})
    form.presets.save_file(tmp_path / "mine.toml")
    assert form.presets.box.currentText() == "mine" and not form.presets.undo_button.isVisible()


def test_unreadable_preset_is_not_selected(form: SearchForm, tmp_path: Path) -> None:
    form.presets.save_file(tmp_path / "mine.toml")
    form.presets.choose("phospho")
    (tmp_path / "mine.toml").unlink()
    form.presets.choose(str(tmp_path / "mine.toml"))
    assert form.presets.box.currentData() == "phospho"


def test_undo_of_a_preset_restores_edited_gap_costs(window: MainWindow) -> None:
    """Check that a matrix selected by the user sets its gap costs; one restored by undo does not."""
    window.menus.new["align"].trigger()
    form = window.form
    form.parameters.set_values({"matrix": "PAM70"})
    form.parameters.set_values({"gap_open": 11, "gap_extend": 1})
    edited = form.parameters.values()
    assert (edited["matrix"], edited["gap_open"]) == ("PAM70", 11)
    presets = [form.presets.box.itemData(i) for i in range(form.presets.box.count())]
    form.presets.choose(presets[-1])
    form.presets.undo()
    assert form.parameters.values() == edited


def test_starting_a_run_hides_the_undo_button_of_presets(form: SearchForm, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[object] = []
    form.run_requested.disconnect()
    form.run_requested.connect(requests.append)
    form.parameters.set_values({"missed_cleavages": 4})
    form.presets.choose("phospho")
    monkeypatch.setattr(form, "task", lambda: object())
    form.run()
    assert requests and not form.presets.undo_button.isVisible()


def test_ctrl_z_undoes_reset_of_parameters_and_preset(window: MainWindow, qtbot: QtBot) -> None:
    form = window.searches["identify"].form
    window.show_page(form)
    form.presets.choose("high-resolution")
    form.parameters.set_values({"missed_cleavages": 1, "fdr": 0.05})
    edited = form.parameters.values()
    QTest.mouseClick(form.parameters.reset_button, Qt.MouseButton.LeftButton)
    assert form.parameters.changed_names == [] and form.presets.undo_text.text() == "Reset replaced 2 edited values."
    QTest.keyClick(form.parameters.reset_button, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert form.parameters.values() == edited
    form.parameters.reset_all()
    form.presets.forget_replaced()
    box = form.presets.box
    box.setFocus(Qt.FocusReason.TabFocusReason)
    box.setCurrentIndex(box.findData("phospho"))
    box.activated.emit(box.currentIndex())
    assert form.presets.undo_text.text() == "Preset phospho chosen." and form.presets.name == "phospho"
    QTest.keyClick(box, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert form.presets.name == "high-resolution" and form.parameters.changed_names == []
    assert not form.presets.undo_button.isVisible()


def test_choice_box_elides_a_long_text_and_has_it_as_tooltip(qtbot: QtBot) -> None:
    box = ChoiceBox([("BSA2_replicate_of_the_second_day.mzML.gz", 0), ("all", 1)], n_characters=8)
    qtbot.addWidget(box)
    box.show()
    assert box.shown_text.startswith("BSA2") and box.shown_text.endswith("…")
    assert box.fontMetrics().horizontalAdvance(box.shown_text) < box.width() - 16
    at = box.rect().center()
    QApplication.sendEvent(box, QHelpEvent(QEvent.Type.ToolTip, at, box.mapToGlobal(at)))
    assert QToolTip.text() == box.currentText()
    QToolTip.hideText()
    box.setCurrentIndex(1)
    assert box.shown_text == "all"


def test_field_shows_the_beginning_of_a_long_list(window: MainWindow) -> None:
    editor = window.searches["import"].form.parameters.fields["decoy_prefixes"].editor
    line = editor.findChild(QLineEdit)
    assert line.cursorPosition() == 0 and line.fontMetrics().horizontalAdvance(line.text()) > 60
    editor.set_value(("DECOY_", "XXX_"))
    assert line.cursorPosition() == 0


@pytest.mark.parametrize(("value", "text"), [(100_000.0, "100000"), (1e9, "1e+09"), (0.5, "0.5"), (1e-4, "1e-04"), (20, "20")])
def test_number_text_has_an_exponent_only_if_needed(value: float, text: str) -> None:
    assert number_text(value) == text

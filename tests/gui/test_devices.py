"""Devices in the window: found in the background, listed with their reasons, chosen in a form."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QStandardItemModel
from pytestqt.qtbot import QtBot

from engine.execution.devices import Device
from gui.device_dialog import DeviceButton, DeviceDialog
from gui.devices import DeviceSurvey
from gui.forms.device_choice import DeviceChoice
from gui.theme import Theme
from gui.window import MainWindow

PROCESSOR = Device("cpu", "A processor, 8 threads", 32_000_000_000, True)
GOOD = Device("cuda:0", "NVIDIA H200, compute capability 9.0, driver 570.86 (CUDA 12.8)", 150_000_000_000, True, "", "570.86", "9.0", (0,))
OLD = Device(
    "cuda:1", "GT 710, compute capability 3.5, driver 570.86 (CUDA 12.8)", 2_000_000_000, False, "it is too old", "570.86", "3.5", (1,)
)
NONE = Device("cuda", "no GPU", 0, False, "there is no NVIDIA driver")


class Machine:
    """Stands for the machine: what it has now, and who asked for it."""

    def __init__(self) -> None:
        self.devices = [PROCESSOR, NONE]
        self.threads: list[threading.Thread] = []
        self.fault: Exception | None = None

    def __call__(self) -> list[Device]:
        self.threads.append(threading.current_thread())
        if self.fault is not None:
            raise self.fault
        return list(self.devices)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr("gui.devices.devices", made)
    monkeypatch.setattr("gui.devices.processor", lambda: PROCESSOR)
    return made


@pytest.fixture
def survey(machine: Machine, theme: Theme) -> Iterator[DeviceSurvey]:
    made = DeviceSurvey()
    yield made
    made.close()
    made.deleteLater()


def look(survey: DeviceSurvey, qtbot: QtBot, *, again: bool = False) -> None:
    survey.look(again=again)
    qtbot.waitUntil(lambda: not survey.is_looking)


def rows(dialog: DeviceDialog) -> list[list[str]]:
    table = dialog.table
    items = [[table.item(row, column) for column in range(table.columnCount())] for row in range(table.rowCount())]
    return [[item.text() if item is not None else "" for item in row] for row in items]


def test_the_processor_is_known_at_once_and_gpus_are_looked_at_in_another_thread(
    survey: DeviceSurvey, machine: Machine, qtbot: QtBot
) -> None:
    assert survey.devices == (PROCESSOR,) and not survey.is_known and machine.threads == []
    machine.devices = [PROCESSOR, GOOD, OLD]
    look(survey, qtbot)
    assert survey.is_known and survey.devices == (PROCESSOR, GOOD, OLD) and survey.usable_gpus == [GOOD]
    assert machine.threads and threading.main_thread() not in machine.threads
    look(survey, qtbot)
    assert len(machine.threads) == 1, "what is known is not looked at twice"


def test_the_dialog_lists_each_device_and_why_one_cannot_be_used(survey: DeviceSurvey, machine: Machine, qtbot: QtBot) -> None:
    machine.devices = [PROCESSOR, GOOD, OLD]
    dialog = DeviceDialog(survey)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(lambda: len(rows(dialog)) == 3)
    assert rows(dialog) == [
        ["cpu", "A processor, 8 threads", "32.0 GB", "", "", "usable"],
        ["cuda:0", "NVIDIA H200", "150.0 GB", "9.0", "570.86", "usable"],
        ["cuda:1", "GT 710", "2.0 GB", "3.5", "570.86", "not usable: it is too old"],
    ]
    assert dialog.state.text() == "1 usable GPU"
    dialog.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    for part in ("Proteoscope", "NVIDIA H200, compute capability 9.0, driver 570.86", "150.0 GB, usable", "not usable: it is too old"):
        assert part in copied


def test_looking_again_finds_what_has_come(survey: DeviceSurvey, machine: Machine, qtbot: QtBot) -> None:
    dialog = DeviceDialog(survey)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    qtbot.waitUntil(lambda: survey.is_known)
    assert rows(dialog)[1][5] == "not usable: there is no NVIDIA driver"
    machine.devices = [PROCESSOR, GOOD]
    dialog.refresh_button.click()
    assert not dialog.refresh_button.isEnabled() and dialog.state.text() == "Looking at the GPUs…"
    qtbot.waitUntil(dialog.refresh_button.isEnabled)
    assert rows(dialog)[1][0] == "cuda:0"


def test_a_fault_in_looking_is_said(survey: DeviceSurvey, machine: Machine, qtbot: QtBot) -> None:
    machine.fault = RuntimeError("the driver crashed")
    dialog = DeviceDialog(survey)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    qtbot.waitUntil(lambda: not survey.is_looking)
    assert "the driver crashed" in dialog.state.text() and rows(dialog)[0][0] == "cpu"


def test_the_status_bar_s_button_tells_what_computes(survey: DeviceSurvey, machine: Machine, qtbot: QtBot) -> None:
    button = DeviceButton(survey)
    qtbot.addWidget(button)
    assert button.text() == "A processor, 8 threads"
    machine.devices = [PROCESSOR, GOOD, GOOD, OLD]
    look(survey, qtbot)
    assert button.text() == "NVIDIA H200 and 1 more"


def test_the_window_has_one_dialog_of_devices(window: MainWindow, machine: Machine, qtbot: QtBot) -> None:
    window.device_button.click()
    dialog = window.findChild(DeviceDialog)
    assert dialog is not None and dialog.isVisible()
    window.show_devices()
    assert window.findChildren(DeviceDialog) == [dialog]
    qtbot.waitUntil(lambda: window.devices.is_known)
    dialog.close()


def choices(choice: DeviceChoice) -> dict[str, bool]:
    model = choice.box.model()
    assert isinstance(model, QStandardItemModel)
    return {choice.box.itemData(row): model.item(row).isEnabled() for row in range(choice.box.count())}


def test_a_form_offers_what_there_is(survey: DeviceSurvey, machine: Machine, qtbot: QtBot) -> None:
    choice = DeviceChoice(survey)
    qtbot.addWidget(choice)
    assert choice.value() == "auto" and set(choices(choice)) == {"auto", "all", "cpu"}
    machine.devices = [PROCESSOR, GOOD, OLD]
    look(survey, qtbot)
    assert choices(choice) == {"auto": True, "all": True, "cuda:0": True, "cuda:1": False, "cpu": True}
    assert choice.note.text() == "NVIDIA H200"
    choice.choose("all")
    assert choice.note.text() == "NVIDIA H200 and A processor, 8 threads"
    choice.box.setCurrentIndex(choice.box.findData("cpu"))
    choice.box.activated.emit(choice.box.currentIndex())
    assert choice.value() == "cpu" and choice.note.text() == "A processor, 8 threads"


def test_a_device_that_is_gone_is_said_at_the_field(survey: DeviceSurvey, machine: Machine, qtbot: QtBot) -> None:
    choice = DeviceChoice(survey)
    qtbot.addWidget(choice)
    choice.choose("cuda:0")
    assert choice.problem() == "", "it may be there: nobody has looked yet"
    with qtbot.waitSignal(choice.changed):
        survey.look()
    qtbot.waitUntil(lambda: bool(choice.problem()))
    assert choice.message.text() == "There is no cuda:0 on this machine" and not choice.message.isHidden()
    assert choice.value() == "cuda:0", "the choice is the user's"
    choice.choose("all")
    assert "No GPU is usable" in choice.problem()
    choice.choose("auto")
    assert choice.problem() == "" and choice.note.text() == "A processor, 8 threads; no GPU is usable"
    machine.devices = [PROCESSOR, OLD]
    look(survey, qtbot, again=True)
    choice.choose("cuda:1")
    assert choice.problem() == "cuda:1 is not usable: it is too old"

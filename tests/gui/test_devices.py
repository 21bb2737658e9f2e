"""Tests of devices in the window: detected in the background, listed with reasons, selected in a form."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QStandardItemModel
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from proteoscope.engine.execution.cost.calibration_store import store_speeds, stored_calibration
from proteoscope.engine.execution.device_use import DeviceUse
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs import Progress
from proteoscope.engine.views.devices import select_devices
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.device_page import DeviceButton, DevicePage
from proteoscope.gui.devices import DeviceDetector
from proteoscope.gui.forms.device_choice import DeviceChoice
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow

CPU = Device("cpu", "A processor, 8 threads", 32_000_000_000, True)
GOOD = Device("cuda:0", "NVIDIA H200, compute capability 9.0, driver 570.86 (CUDA 12.8)", 150_000_000_000, True, "", "570.86", "9.0", (0,))
OLD = Device(
    "cuda:1", "GT 710, compute capability 3.5, driver 570.86 (CUDA 12.8)", 2_000_000_000, False, "it is too old", "570.86", "3.5", (1,)
)
NONE = Device("cuda", "no GPU", 0, False, "there is no NVIDIA driver")


class Machine:
    """Replacement for the machine: its present devices, and the threads that requested them."""

    def __init__(self) -> None:
        self.devices = [CPU, NONE]
        self.threads: list[threading.Thread] = []
        self.error: Exception | None = None

    def __call__(self) -> list[Device]:
        self.threads.append(threading.current_thread())
        if self.error is not None:
            raise self.error
        return list(self.devices)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr("proteoscope.gui.devices.devices", made)
    monkeypatch.setattr("proteoscope.gui.devices.processor", lambda: CPU)
    return made


@pytest.fixture
def detector(machine: Machine, theme: Theme) -> Iterator[DeviceDetector]:
    made = DeviceDetector()
    yield made
    made.close()
    made.deleteLater()


def detect(detector: DeviceDetector, qtbot: QtBot, *, again: bool = False) -> None:
    detector.detect(again=again)
    qtbot.waitUntil(lambda: not detector.is_detecting)


@pytest.fixture
def page(detector: DeviceDetector, qtbot: QtBot, own_cache: Path) -> Iterator[DevicePage]:
    bridge = JobBridge()
    made = DevicePage(detector, bridge, list)
    qtbot.addWidget(made)
    yield made
    made.close_worker()
    bridge.close()


def states(page: DevicePage) -> dict[str, str]:
    """Return the states of the devices by name."""
    return {name: card.state.text() for name, card in page.cards.items()}


def test_device_detector_detects_gpus_in_a_thread(detector: DeviceDetector, machine: Machine, qtbot: QtBot) -> None:
    assert detector.devices == (CPU,) and not detector.is_known and machine.threads == []
    machine.devices = [CPU, GOOD, OLD]
    detect(detector, qtbot)
    assert detector.is_known and detector.devices == (CPU, GOOD, OLD) and detector.usable_gpus == [GOOD]
    assert machine.threads and threading.main_thread() not in machine.threads
    detect(detector, qtbot)
    assert len(machine.threads) == 1, "known devices are not detected again"


def test_device_page_lists_devices_and_explains_unusable_ones(
    page: DevicePage, detector: DeviceDetector, machine: Machine, qtbot: QtBot
) -> None:
    machine.devices = [CPU, GOOD, OLD]
    page.show()
    qtbot.waitUntil(lambda: set(page.cards) == {"cpu", "cuda:0", "cuda:1"} and not page.is_busy)
    assert states(page) == {"cpu": "Usable.", "cuda:0": "Usable.", "cuda:1": "Not usable: it is too old."}
    assert [card.title.text() for card in page.cards.values()] == ["cpu: A processor, 8 threads", "cuda:0: NVIDIA H200", "cuda:1: GT 710"]
    assert ("Memory", "150.0 GB") in page.cards["cuda:0"].facts() and ("Compute capability", "9.0") in page.cards["cuda:0"].facts()
    assert page.cards["cuda:0"].calibrate_button.isVisible() and not page.cards["cuda:1"].calibrate_button.isVisible()
    assert page.state.text() == "1 usable GPU"
    page.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    for part in ("Proteoscope", "NVIDIA H200, compute capability 9.0, driver 570.86", "150.0 GB, usable", "not usable: it is too old"):
        assert part in copied
    assert "Calibrated: not yet" in copied


def test_device_page_without_gpu_shows_the_reason_and_the_remedy(page: DevicePage, detector: DeviceDetector, qtbot: QtBot) -> None:
    detect(detector, qtbot)
    page.show()
    gap = page.cards["cuda"]
    texts = [label.text() for label in gap.findChildren(QLabel)]
    assert gap.title.text() == "No usable GPU" and "There is no NVIDIA driver." in texts
    assert any("identical results" in text and "install its driver" in text for text in texts)
    assert not gap.calibrate_button.isVisible()


def test_refresh_of_device_page_detects_new_devices(page: DevicePage, detector: DeviceDetector, machine: Machine, qtbot: QtBot) -> None:
    page.show()
    qtbot.waitUntil(lambda: detector.is_known)
    assert "There is no NVIDIA driver." in states(page).values()
    machine.devices = [CPU, GOOD]
    page.refresh_button.click()
    assert not page.refresh_button.isEnabled() and page.state.text() == "Detecting GPUs…"
    qtbot.waitUntil(page.refresh_button.isEnabled)
    assert list(page.cards) == ["cpu", "cuda:0"]


def test_device_page_reports_a_detection_error(page: DevicePage, detector: DeviceDetector, machine: Machine, qtbot: QtBot) -> None:
    machine.error = RuntimeError("the driver crashed")
    page.show()
    qtbot.waitUntil(lambda: "the driver crashed" in page.state.text())
    assert list(page.cards) == ["cpu"]


def test_hidden_device_page_detects_no_devices(page: DevicePage, machine: Machine, qtbot: QtBot) -> None:
    assert not page.is_busy and machine.threads == []
    page.show()
    qtbot.waitUntil(lambda: bool(machine.threads) and not page.is_busy)
    page.hide()
    assert not page._timer.isActive()


def test_status_bar_button_shows_the_name_of_the_devices(detector: DeviceDetector, machine: Machine, qtbot: QtBot) -> None:
    button = DeviceButton(detector)
    qtbot.addWidget(button)
    assert button.text() == "A processor, 8 threads"
    machine.devices = [CPU, GOOD, GOOD, OLD]
    detect(detector, qtbot)
    assert button.text() == "NVIDIA H200 and 1 more"


@pytest.mark.parametrize(
    ("requested", "names"),
    [("auto", ("cuda:0",)), ("cuda", ("cuda:0",)), ("all", ("cuda:0", "cpu")), ("cpu", ("cpu",)), ("cuda:1", ()), ("cuda:9", ())],
)
def test_select_devices_returns_the_usable_devices_of_a_request(requested: str, names: tuple[str, ...]) -> None:
    assert select_devices(requested, (CPU, GOOD, OLD)) == names


def test_select_devices_returns_the_cpu_for_auto_without_gpu() -> None:
    assert select_devices("auto", (CPU, NONE)) == ("cpu",) and select_devices("cuda", (CPU, NONE)) == ()


def test_device_page_shows_memory_use_and_jobs_of_each_device(
    page: DevicePage, detector: DeviceDetector, machine: Machine, qtbot: QtBot
) -> None:
    machine.devices = [CPU, GOOD]
    detect(detector, qtbot)
    card = page.cards["cuda:0"]
    card.show_use(DeviceUse(12_300_000_000, 144_000_000_000, 0.45), ["Identify BSA"])
    assert (card.use.text(), card.jobs.text()) == ("12.3 of 150.0 GB in use, 45 % busy", "Identify BSA")
    card.show_use(None, [])
    assert (card.use.text(), card.jobs.text()) == ("unknown", "none")
    page.cards["cpu"].show_use(DeviceUse(1_000_000_000, 8_000_000_000, None), [])
    assert page.cards["cpu"].use.text() == "by this program: 1.0 of 32.0 GB in use"


def test_calibration_from_the_device_page_runs_as_a_job(
    window: MainWindow, own_cache: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setattr("proteoscope.engine.calibration.KINDS", {"structures": ""})
    monkeypatch.setattr("proteoscope.engine.calibration.compile_kernels", lambda groups, progress: [])
    store_speeds("structures", {"cpu": 3.4e10}, available_threads())
    window.menus.devices.trigger()
    page = window.device_page
    qtbot.waitUntil(lambda: window.devices.is_known and not page.is_busy)
    card = page.cards["cpu"]
    assert window.pages.currentWidget() is page and card.calibrated.text().startswith("not yet;")
    assert "structure search, evidence on structures: 34.0 billion per second (structures)" in card.earlier.text()
    qtbot.mouseClick(card.calibrate_button, Qt.MouseButton.LeftButton)
    assert card.cancel_button.isVisible() and not card.calibrate_button.isVisible()
    qtbot.waitUntil(lambda: window.queue.is_idle and card.calibrate_button.isVisible())
    qtbot.waitUntil(lambda: "1 workload type;" in card.calibrated.text())
    assert stored_calibration(processor(), available_threads()) is not None
    assert card.calibrate_button.text() == "Calibrate again" and "calibrated; estimates now use" in card.stage.text()
    assert "calibrated; estimates now use" in window.message_bar.label.text()


def test_calibration_can_be_cancelled_from_the_device_page(
    window: MainWindow, own_cache: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setattr("proteoscope.engine.calibration.KINDS", {"structures": ""})
    entered = threading.Event()

    def endless(groups: list[str], progress: Progress) -> None:
        progress.stage("Compiling for this processor", 3)
        entered.set()
        while True:
            progress.check()
            time.sleep(0.01)

    monkeypatch.setattr("proteoscope.engine.calibration.compile_kernels", endless)
    window.menus.devices.trigger()
    page = window.device_page
    qtbot.waitUntil(lambda: window.devices.is_known and not page.is_busy)
    qtbot.mouseClick(page.cards["cpu"].calibrate_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(entered.is_set)
    card = page.cards["cpu"]
    qtbot.waitUntil(lambda: card.jobs.text() == "Calibrate cpu")
    qtbot.mouseClick(card.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.queue.is_idle and card.calibrate_button.isVisible())
    assert "cancelled" in card.stage.text() and stored_calibration(processor(), available_threads()) is None


def test_status_bar_button_and_menu_open_the_device_page(window: MainWindow, machine: Machine, qtbot: QtBot) -> None:
    window.device_button.click()
    assert window.pages.currentWidget() is window.device_page and window.menus.devices.isChecked()
    window.menus.form.trigger()
    assert window.pages.currentWidget() is window.form and not window.menus.devices.isChecked()
    window.menus.devices.trigger()
    assert window.pages.currentWidget() is window.device_page
    qtbot.waitUntil(lambda: window.devices.is_known and not window.device_page.is_busy)


def choices(choice: DeviceChoice) -> dict[str, bool]:
    model = choice.box.model()
    assert isinstance(model, QStandardItemModel)
    return {choice.box.itemData(row): model.item(row).isEnabled() for row in range(choice.box.count())}


def test_device_field_of_form_offers_the_detected_devices(detector: DeviceDetector, machine: Machine, qtbot: QtBot) -> None:
    choice = DeviceChoice(detector)
    qtbot.addWidget(choice)
    assert choice.value() == "auto" and set(choices(choice)) == {"auto", "all", "cpu"}
    machine.devices = [CPU, GOOD, OLD]
    detect(detector, qtbot)
    assert choices(choice) == {"auto": True, "all": True, "cuda:0": True, "cuda:1": False, "cpu": True}
    assert choice.note.text() == "NVIDIA H200"
    choice.choose("all")
    assert choice.note.text() == "NVIDIA H200 and A processor, 8 threads"
    choice.box.setCurrentIndex(choice.box.findData("cpu"))
    choice.box.activated.emit(choice.box.currentIndex())
    assert choice.value() == "cpu" and choice.note.text() == "A processor, 8 threads"


def test_device_field_offers_workers_if_the_search_supports_them(detector: DeviceDetector, qtbot: QtBot) -> None:
    with_workers, without = DeviceChoice(detector), DeviceChoice(detector, takes_workers=False)
    for choice in (with_workers, without):
        qtbot.addWidget(choice)
        choice.show()
    assert with_workers.workers.isVisible() and not without.workers.isVisible() and not without.workers.requested


def test_device_field_of_form_reports_a_missing_device(detector: DeviceDetector, machine: Machine, qtbot: QtBot) -> None:
    choice = DeviceChoice(detector)
    qtbot.addWidget(choice)
    choice.choose("cuda:0")
    assert choice.problem() == "", "it may exist: devices have not been detected yet"
    with qtbot.waitSignal(choice.changed):
        detector.detect()
    qtbot.waitUntil(lambda: bool(choice.problem()))
    assert choice.message.text() == "This machine has no device cuda:0" and not choice.message.isHidden()
    assert choice.value() == "cuda:0", "the choice is the user's"
    choice.choose("all")
    assert "No GPU is usable" in choice.problem()
    choice.choose("auto")
    assert choice.problem() == "" and choice.note.text() == "A processor, 8 threads; no GPU is usable"
    machine.devices = [CPU, OLD]
    detect(detector, qtbot, again=True)
    choice.choose("cuda:1")
    assert choice.problem() == "cuda:1 is not usable: it is too old"

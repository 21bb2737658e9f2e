"""Tests of unusual drops on the window and invalid settings files: it reports one sentence, immediately, and reads nothing else."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from pytestqt.qtbot import QtBot

from proteoscope.gui.drag_and_drop import dropped_paths
from proteoscope.gui.forms import file_inspection
from proteoscope.gui.window import MainWindow
from tests.effort import CallCount

MGF = "BEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n"


class Stalls(CallCount):
    """Maximum number of calls that the window's thread made in its `with` block without processing events."""

    def __init__(self) -> None:
        super().__init__()
        self.longest, self._before, self._timer = 0, 0, QTimer(interval=5)
        self._timer.timeout.connect(self.tick)
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._timer.stop()

    def tick(self) -> None:
        """Record the calls since events were last processed."""
        self.longest, self._before = max(self.longest, self.n - self._before), self.n


def drop_urls(window: MainWindow, urls: list[QUrl], event_done: Callable[[], None] = lambda: None) -> bool:
    """Drop addresses on the window and return True if it accepts them."""
    content = QMimeData()
    content.setUrls(urls)
    at, buttons, keys = QPoint(400, 300), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(at, Qt.DropAction.CopyAction, content, buttons, keys)
    QGuiApplication.sendEvent(window, enter)
    event_done()
    if enter.isAccepted():
        QGuiApplication.sendEvent(window, QDropEvent(QPointF(at), Qt.DropAction.CopyAction, content, buttons, keys))
        event_done()
    return enter.isAccepted()


@pytest.fixture
def report_of_drop(window: MainWindow, qtbot: QtBot) -> Callable[[list[QUrl]], tuple[str, float]]:
    """Drop addresses and return the sentence shown after the inspection, and the longest stall relative to building a form."""
    with CallCount() as form:
        window.new_search("identify")  # A form is built once, whatever is dropped.
    qtbot.wait(100)

    def answer(urls: list[QUrl]) -> tuple[str, float]:
        window.message_bar.clear_complaint()
        with Stalls() as stalls:
            assert drop_urls(window, urls, stalls.tick)
            qtbot.waitUntil(lambda: window.message_bar.isVisible() and bool(window.message_bar.label.text()), timeout=60_000)
            qtbot.wait(50)
        return window.message_bar.label.text(), stalls.longest / form.n

    return answer


def test_dropped_paths_are_only_files_of_this_machine(tmp_path: Path) -> None:
    content = QMimeData()
    addresses = [
        "http://example.org/x.mzML",
        "smb://server/share/x.mzML",
        "file://server/share/x.mzML",
        "file:",
        "file:relative.mzML",
        "x-special:odd",
        "",
        f"file://localhost{tmp_path}/a.mgf",
        f"file://{tmp_path}/b%0Ac.mgf",
    ]
    content.setUrls([QUrl(address) for address in addresses])
    paths, n_others = dropped_paths(content)
    assert paths == [tmp_path / "a.mgf", tmp_path / "b\nc.mgf"] and n_others == len(addresses) - 2


def test_dropped_content_without_addresses_has_no_paths() -> None:
    for content_type in ("text/html", "application/x-color", "text/uri-list", "application/octet-stream"):
        content = QMimeData()
        content.setData(content_type, b"\xff\x00<a href='file:///etc/passwd'>" * 1000)
        assert dropped_paths(content)[0] == []
    assert dropped_paths(QMimeData()) == ([], 0)


def odd_files(folder: Path) -> dict[str, list[Path]]:
    """Return names of drops and their files."""
    (folder / "fifo.mzML").touch()
    (folder / "fifo.mzML").unlink()
    os.mkfifo(folder / "fifo.mzML")
    os.mkfifo(folder / "fifo.toml")
    (folder / "self").symlink_to("self")
    (folder / "gone.mzML").symlink_to("nowhere")
    (folder / "tree").mkdir()
    (folder / "tree" / "up").symlink_to("..")
    (folder / "tree" / "zero.mzML").symlink_to("/dev/zero")
    os.mkfifo(folder / "tree" / "pipe.mgf")
    (folder / "line\nend.mgf").write_text("nothing")
    (folder / os.fsdecode(b"\xff.mgf")).write_text("nothing")
    return {
        "pipe": [folder / "fifo.mzML"],
        "preset that is a pipe": [folder / "fifo.toml"],
        "device": [Path("/dev/zero")],
        "link to itself": [folder / "self"],
        "link to nothing": [folder / "gone.mzML"],
        "folder with pipes and loops": [folder / "tree"],
        "name with a line end": [folder / "line\nend.mgf"],
        "name that is not UTF-8": [folder / os.fsdecode(b"\xff.mgf")],
        "name that is too long": [folder / ("x" * 5000)],
        "path that is too long": [Path("/" + "x/" * 5000)],
        "name with a zero": [Path("/tmp/a\0b.mgf")],
        "nothing there": [folder / "missing.mgf"],
        "empty folder": [folder / "tree" / "up" / "self"],
    }


ODD = (
    "pipe",
    "preset that is a pipe",
    "device",
    "link to itself",
    "link to nothing",
    "folder with pipes and loops",
    "name with a line end",
    "name that is not UTF-8",
    "name that is too long",
    "path that is too long",
    "name with a zero",
    "nothing there",
    "empty folder",
)


@pytest.mark.parametrize("name", ODD)
def test_window_reports_an_unusual_drop_without_a_stall(
    report_of_drop: Callable[[list[QUrl]], tuple[str, float]], tmp_path: Path, name: str
) -> None:
    text, stall = report_of_drop([QUrl.fromLocalFile(str(path)) for path in odd_files(tmp_path)[name]])
    assert text and "\n" not in text and "Traceback" not in text
    assert stall < 1


def test_window_limits_a_drop_of_10000_files_without_a_stall(
    report_of_drop: Callable[[list[QUrl]], tuple[str, float]], tmp_path: Path
) -> None:
    paths = [tmp_path / f"{number}.mgf" for number in range(10_000)]
    for path in paths:
        path.write_text(MGF)
    text, stall = report_of_drop([QUrl.fromLocalFile(str(path)) for path in paths])
    assert "3,000" in text
    assert stall < 25, "some forty calls for each name, and nothing else is read in the window's thread"


def test_window_limits_a_dropped_folder_without_a_stall(report_of_drop: Callable[[list[QUrl]], tuple[str, float]], tmp_path: Path) -> None:
    for folder in range(20):
        (tmp_path / f"{folder}").mkdir()
        for number in range(2000):
            (tmp_path / f"{folder}" / f"{number}.txt").touch()
    text, stall = report_of_drop([QUrl.fromLocalFile(str(tmp_path))])
    assert "3,000" in text
    assert stall < 1


def test_window_reports_the_number_of_dropped_remote_addresses(
    report_of_drop: Callable[[list[QUrl]], tuple[str, float]], tmp_path: Path
) -> None:
    (tmp_path / "a.mgf").write_text(MGF)
    text, _ = report_of_drop([QUrl("http://example.org/x.mzML"), QUrl("file://server/x.mgf"), QUrl.fromLocalFile(str(tmp_path / "a.mgf"))])
    assert "2 of the dropped items are" in text


def test_window_rejects_a_drop_of_remote_addresses_only(window: MainWindow) -> None:
    assert not drop_urls(window, [QUrl("http://example.org/x.mzML"), QUrl("file://server/x.mgf"), QUrl("file:")])
    assert not drop_urls(window, [])


def forged_settings(chance: random.Random) -> dict[str, object]:
    """Return settings with the right names and invalid values."""
    noise = base64.b64encode(chance.randbytes(2000)).decode()
    huge = base64.b64encode(b"\x01\xd9\xd0\xcb\x00\x03\x00\x00" + b"\x7f\xff\xff\xff" * 40).decode()
    search = {
        "preset": "../../../etc/passwd",
        "preset_folder": "/dev/zero",
        "device": "cuda:999999999",
        "workers": "tcp://example.org:1",
        "certificates": "/dev/zero",
        "folders": {"spectra": "//server/share", "x": "\0"},
        "files": {"database": ["/dev/zero", "//server/share/x.fasta", "\0", "x" * 5000], "spectra": ["/etc/passwd"]},
        "results_layout": chance.choice((noise, huge, "{", "[" * 10_000, '{"columns": [1e999]}')),
        "stage_seconds": {"read": 1e308},
    }
    return {
        "version": 1,
        "font_scale": 200,
        "geometry": chance.choice((noise, huge, "é", "AAAA")),
        "layout": chance.choice((noise, huge, "é", "AAAA")),
        "comparison_layout": chance.choice((noise, huge)),
        "recent_projects": ["/dev/zero", "//server/share", "\0", "x" * 5000, "<b>bold</b>\n"],
        "recent_runs": {"/dev/zero": {"kinds": ["identify"] * 1000, "last_run": "9999-99-99"}},
        "searches": {"identify": search, "align": search, "nothing": search},
    }


@pytest.fixture(params=range(4))
def settings_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(forged_settings(random.Random(request.param))))
    yield path


def test_file_inspection_reports_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    inspection = file_inspection._inspect([tmp_path / "x.mgf"])
    assert len(inspection.files) == 1 and "Permission denied" in inspection.files[0].problem


def test_window_opens_with_invalid_values_in_the_settings_file(
    settings_path: Path, make_window: Callable[[], MainWindow], qtbot: QtBot
) -> None:
    with CallCount() as usual:
        first = make_window()
    first.close()  # closing the window writes its settings
    settings_path.rename(settings_path.with_name("settings.json"))
    with Stalls() as stalls:
        window = make_window()
        stalls.tick()
        qtbot.wait(300)
    assert window.isVisible() and stalls.longest < 5 * usual.n
    values = json.loads(settings_path.with_name("settings.json").read_text())
    assert values["font_scale"] == 200


def test_open_files_adds_files_to_a_form(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    paths = [tmp_path / f"{name}.mgf" for name in "ab"]
    for path in paths:
        path.write_text(MGF)
    window.open_files(paths)
    qtbot.waitUntil(lambda: window.form.file_lists["spectra"].paths == paths)

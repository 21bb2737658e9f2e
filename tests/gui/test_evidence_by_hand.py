"""Tests of peptides on structures with X events at 1280 x 800: the tour, and every written file."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QLineEdit
from pytestqt.qtbot import QtBot

from proteoscope.engine.evidence.tables import TABLES, text_file_name
from proteoscope.engine.project import Project
from proteoscope.gui.dialogs import StructuresDialog
from proteoscope.gui.window import MainWindow
from tests.engine.evidence.evidence_projects import project_with_evidence
from tests.engine.evidence.written_evidence import check_gff3, check_pages, check_structures, check_tables
from tests.gui.result_views import settle
from tests.gui.test_libraries import shot
from tests.gui.x_events import Hand, wait_until_still


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_evidence(tmp_path_factory.mktemp("written") / "made")


def settled(widget: QLineEdit | QComboBox, qtbot: QtBot) -> None:
    """Wait until a widget of a dialog no longer moves."""
    wait_until_still(lambda: widget.mapToGlobal(QPoint()) if widget.isVisible() else None, qtbot)


def write(dialog: QFileDialog, format: str, target: Path, hand: Hand, qtbot: QtBot) -> None:
    """Select a format in the dialog, type the path, and press Enter."""
    kinds, name = dialog.findChild(QComboBox, "fileTypeCombo"), dialog.findChild(QLineEdit, "fileNameEdit")
    assert kinds is not None and name is not None
    if format:
        wanted = next(row for row in range(kinds.count()) if format in kinds.itemText(row))
        settled(kinds, qtbot)
        hand.click(kinds)
        qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None)
        for _ in range(wanted - kinds.currentIndex()):
            hand.press("down")
        hand.press("enter")
        qtbot.waitUntil(lambda: kinds.currentIndex() == wanted and QApplication.activePopupWidget() is None)
    settled(name, qtbot)
    hand.click(name)
    qtbot.waitUntil(name.hasFocus)
    hand.press("ctrl", "a")
    hand.type(str(target))
    qtbot.waitUntil(lambda: name.text() == str(target))
    hand.press("enter")


def test_tour_points_only_at_visible_widgets(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    hand.press("alt", "h")
    menu = hand.menu()
    hand.choose(menu, next(action for action in menu.actions() if "Tour" in action.text()))
    qtbot.waitUntil(lambda: window.assistance.tour is not None)
    tour, seen = window.assistance.tour, []
    assert tour is not None
    steps = len(tour._steps)
    for step in range(steps):
        qtbot.waitUntil(lambda step=step: tour.step == step and tour.next_button.isVisible())
        about = tour._about()
        assert about is not None, tour.title.text()
        assert about.width() > 20 and about.height() > 10 and window.rect().contains(about.adjusted(3, 3, -3, -3))
        assert window.rect().contains(tour.card.geometry()) and not tour.card.geometry().contains(about)
        seen.append(tour.title.text())
        hand.click(tour.next_button)
    qtbot.waitUntil(lambda: window.assistance.tour is None)
    assert len(set(seen)) == steps and "From spectrum to structure" in seen
    assert window.settings.values.tour_seen


def test_evidence_is_exported_in_all_formats_by_x_events(
    window: MainWindow, hand: Hand, project: Project, tmp_path: Path, qtbot: QtBot
) -> None:
    window.open_project(project.folder)
    qtbot.waitUntil(lambda: window.results is window.searches["evidence"].results and not window.results.is_busy)
    view = window.results
    settle(view, qtbot)
    shot(window, "evidence")
    run = next(run.id for run in project.runs() if run.kind == "evidence")

    def exported(format: str, target: Path) -> None:
        with qtbot.waitActive(window):  # There is no window manager that would give the window the focus again.
            window.activateWindow()
        hand.press("ctrl", "shift", "e")
        qtbot.waitUntil(lambda: view.findChild(QFileDialog) is not None)
        dialog = view.findChild(QFileDialog)
        assert dialog is not None
        write(dialog, format, target, hand, qtbot)
        if format == "Structures":
            allow_recorded_folders()
        qtbot.waitUntil(lambda: target.exists() and window.queue.is_idle)

    def allow_recorded_folders() -> None:
        qtbot.waitUntil(lambda: any(box.isVisible() for box in view.findChildren(StructuresDialog)))
        (box,) = (box for box in view.findChildren(StructuresDialog) if box.isVisible())
        wait_until_still(lambda: box.read_button.mapToGlobal(QPoint()), qtbot)
        hand.click(box.read_button)

    exported("", tmp_path / "sites.gff3")
    check_gff3(tmp_path / "sites.gff3", project)

    exported("Tables", tmp_path / "tables")
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {text_file_name(table) for table in TABLES}
    check_tables(tmp_path / "tables", project, run)

    exported("Structures", tmp_path / "structures")
    check_structures(tmp_path / "structures", project, run)


def test_report_button_writes_protein_pages(window: MainWindow, hand: Hand, project: Project, tmp_path: Path, qtbot: QtBot) -> None:
    window.open_project(project.folder)
    qtbot.waitUntil(lambda: window.results is window.searches["evidence"].results and not window.results.is_busy)
    settle(window.results, qtbot)
    run = next(run for run in project.runs() if run.kind == "evidence")
    window.project_pane.select(run.id)
    hand.click(window.project_pane.about_button)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.run_actions.made_page and not window.run_actions.is_busy)
    page = window.run_actions.page
    qtbot.waitUntil(lambda: page.report_button.isVisible() and page.report_button.isEnabled())
    wait_until_still(lambda: page.report_button.mapToGlobal(QPoint()), qtbot)
    folder = tmp_path / "report"
    folder.mkdir()
    hand.click(page.report_button)
    qtbot.waitUntil(lambda: window.findChild(QFileDialog) is not None)
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    write(dialog, "", folder, hand, qtbot)
    qtbot.waitUntil(lambda: any(folder.iterdir()) and window.queue.is_idle, timeout=60_000)
    check_pages(folder, project)

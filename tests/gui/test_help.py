"""Tests of the help of the window: samples, the tour, F1, the glossary, shortcuts, bug reports, citations."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt, QUrl
from PySide6.QtGui import QAction, QGuiApplication, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.searches import SEARCHES, search_of_kind
from proteoscope.gui.help.help_targets import help_target, manual_folder, manual_page
from proteoscope.gui.help.help_window import HelpWindow
from proteoscope.gui.help.shortcuts import shortcuts_of
from proteoscope.gui.help.text_dialogs import BugReportDialog, CitingDialog
from proteoscope.gui.prediction_dialog import PredictionDialog
from proteoscope.gui.start_page import StartPage
from proteoscope.gui.structure.structure_panel import StructurePanel
from proteoscope.gui.window import MainWindow
from tests.engine.views.result_projects import project_with_results, spectra_table
from tests.gui.result_views import settle

_ALSO = ("explain", "modified")
"""Types of searches that continue an identification, like another type does."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home folder of the test, in which samples are run."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return tmp_path / "home"


def test_sample_data_button_fills_the_form_ready_to_run(window: MainWindow, home: Path, qtbot: QtBot) -> None:
    for search in SEARCHES:
        if search.demo is None or search.demo.after:
            continue
        window.show_page(window.start_page)
        window.start_page.more_button.setChecked(True)
        button, new = window.start_page.sample_buttons[search.kind], window.start_page.new_buttons[search.kind]
        assert abs(button.geometry().center().y() - new.geometry().center().y()) < 3 and button.x() > new.x(), "next to the empty form"
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        assert window.pages.currentWidget() is window.form and window.form.search is search
        qtbot.waitUntil(lambda: window.form.validation_error() == "")
        task = window.form.task()
        assert task is not None
        assert {name: [path.name for path in paths] for name, paths in task.request.inputs.items() if paths} == {
            name: list(files) for name, files in search.demo.samples.items()
        }
        assert task.project_folder == home / "proteoscope_sample"
        assert task.request.parameters == search.parameters_of(search.demo.preset)
    first = window.start_page.first_sample_button
    assert first is not None
    window.show_page(window.start_page)
    QTest.mouseClick(first, Qt.MouseButton.LeftButton)
    assert window.pages.currentWidget() is window.searches["identify"].form


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(search.kind, marks=[pytest.mark.long] * (search.kind in _ALSO))
        for search in SEARCHES
        if search.demo and search.demo.after
    ],
)
def test_sample_data_first_fills_the_form_of_a_required_search(window: MainWindow, home: Path, qtbot: QtBot, kind: str) -> None:
    window.start_page.more_button.setChecked(True)
    QTest.mouseClick(window.start_page.sample_buttons[kind], Qt.MouseButton.LeftButton)
    assert window.form.search.kind == ("import" if kind == "explain" else "identify")
    assert "Press Run" in window.message_bar.label.text()
    # The identification is finished: its results are copied to the folder of the sample.
    demo = search_of_kind(kind).demo
    assert demo is not None
    folder = home / ("proteoscope_sample_simulated" if kind == "quantify" else "proteoscope_sample")
    project, results = project_with_results(folder)
    QTest.mouseClick(window.start_page.sample_buttons[kind], Qt.MouseButton.LeftButton)
    if demo.after != "identify":
        # Intermediate steps are offered first.
        assert window.form.search.kind == demo.after and "Press Run" in window.message_bar.label.text()
        qtbot.waitUntil(lambda: window.form.validation_error() == "")
        with project.run(demo.after, {"run": "identify-0001"}) as run:
            for name in ("psms", "peptides", "proteins"):
                run.write_table(name, getattr(results, name))
            run.write_table("spectra", spectra_table(results))
        QTest.mouseClick(window.start_page.sample_buttons[kind], Qt.MouseButton.LeftButton)
    assert window.form.search.kind == kind
    qtbot.waitUntil(lambda: window.form.validation_error() == "")
    task = window.form.task()
    assert task is not None and task.project_folder == folder
    qtbot.waitUntil(lambda: not window.results.is_busy)


def test_simulated_sample_fills_the_quantification_form(window: MainWindow, home: Path, qtbot: QtBot) -> None:
    folder = home / "proteoscope_sample_simulated"
    folder.parent.mkdir(parents=True)
    assert main(["demo", "identify", "--data", "simulated", "--out", str(folder), "--device", "cpu", "--threads", "2", "--quiet"]) == 0
    window.new_search("identify")
    window.form.set_project_folder(home / "proteoscope_sample")
    window.assistance.samples.begin("identify", "simulated")
    assert window.form.project_folder() == folder, "results of the other data are in the other project"
    QTest.mouseClick(window.start_page.sample_buttons["quantify"], Qt.MouseButton.LeftButton)
    form = window.searches["quantify"].form
    assert window.form is form
    qtbot.waitUntil(lambda: form.run_button.isEnabled() and len(form.designs["design"].text().splitlines()) == 11)
    task = form.task()
    assert task is not None and task.request.parameters.method == "tmt"
    lines = resources.path("samples", "simulated_tmt10_design.tsv").read_text().splitlines()
    _, channel, sample, condition, replicate = lines[3].split("\t")
    assert {channel, sample, condition, replicate} < set(task.tables["design"].splitlines()[3].split("\t"))
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000) as finished:
        form.run_button.click()
    assert finished.args[0].state == "done", finished.args[0].error
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.searches["quantify"].results)
    qtbot.waitUntil(lambda: not window.searches["quantify"].results.is_busy)


def test_tour_works_by_keyboard_and_opens_automatically_once(make_window: Callable[[], MainWindow], qtbot: QtBot) -> None:
    window = make_window()
    window.assistance.begin_tour_once()
    tour = window.assistance.tour
    assert tour is not None and tour.isVisible()
    titles = []
    for step in range(7):
        assert tour.step == step
        titles.append(tour.title.text())
        assert tour.rect().contains(tour.card.geometry())
        if step < 6:
            QTest.keyClick(tour, Qt.Key.Key_Right)
    assert len(set(titles)) == 7 and "From spectrum to structure" in titles
    QTest.keyClick(tour, Qt.Key.Key_Left)
    assert tour.step == 5
    QTest.keyClick(tour, Qt.Key.Key_Escape)
    assert window.assistance.tour is None
    window.close()
    again = make_window()
    again.assistance.begin_tour_once()
    assert again.assistance.tour is None, "it was shown before"
    _triggered(again, "Tour of the window")
    assert again.assistance.tour is not None
    again.assistance.tour.next_button.click()
    again.resize(830, 520)
    assert again.assistance.tour.step == 1
    qtbot.waitUntil(lambda: again.assistance.tour is not None and again.assistance.tour.size() == again.size())
    again.assistance.tour.leave_button.click()


def test_tour_buttons_are_wide_enough_for_their_text(window: MainWindow, qtbot: QtBot) -> None:
    window.assistance.start_tour()
    tour = window.assistance.tour
    assert tour is not None
    for step in range(7):
        tour.go(step)
        for button in tour.card.findChildren(QPushButton):
            if button.isVisible():
                qtbot.waitUntil(lambda button=button: button.width() >= button.minimumSizeHint().width())
                assert button.width() >= button.fontMetrics().horizontalAdvance(button.text().replace("&", "")) + 8
    tour.leave()


def test_f1_opens_the_help_of_the_focused_table_or_field(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project_with_results(tmp_path / "bench")
    window.open_project(tmp_path / "bench")
    settle(window.results, qtbot)
    table = window.results.panels["psms"].view
    window.results.show_all("psms")
    settle(window.results, qtbot)
    table.choose(0)
    settle(window.results, qtbot)
    pages = list(window.searches.values())
    place = help_target(table, pages, "")
    assert place.page == "identification"
    title = table.model().headerData(table.currentIndex().column(), Qt.Orientation.Horizontal)
    assert place.term == title
    help_window = window.assistance.help_window()
    help_window.show_place(place)
    assert help_window.tabs.currentIndex() == 1 and help_window.words.currentItem().text().startswith(title)
    window.new_search("modified")
    field = window.form.parameters.fields["mass_shift"]
    target = help_target(field.editor, pages, "")
    assert (target.page, target.term) == ("modified", field.description.title)
    help_window.show_place(target)
    assert field.description.help in help_window.meaning.toPlainText()
    assert help_target(window.project_pane, pages, "").page == "projects"
    assert help_target(None, pages, "structures").page == "structures"
    assert help_target(window.start_page, pages, "").page == "window"
    help_window.show_place(help_target(window.project_pane, pages, ""))
    assert help_window.tabs.currentIndex() == 0 and "Resume" in help_window.page.toPlainText()
    help_window.close()


def test_help_button_of_form_field_opens_parameter_help(window: MainWindow) -> None:
    for search in SEARCHES:
        window.new_search(search.kind)
        window.form.parameters.unfold()
        for field in window.form.parameters.fields.values():
            assert field.help_button.isVisibleTo(window.form)
            QTest.mouseClick(field.help_button, Qt.MouseButton.LeftButton)
            help_window = window.findChild(HelpWindow)
            assert help_window is not None and help_window.isVisible() and help_window.tabs.currentIndex() == 1
            text = help_window.meaning.toPlainText()
            description = field.description
            assert text.startswith(description.title) and description.name in text
            assert " ".join(description.help.split()) in " ".join(text.split())
        help_window.close()


def test_help_button_of_dialog_field_opens_parameter_help(window: MainWindow) -> None:
    window.dialogs.predict_library()
    dialog = window.findChild(PredictionDialog)
    assert dialog is not None
    field = next(iter(dialog.parameters.fields.values()))
    QTest.mouseClick(field.help_button, Qt.MouseButton.LeftButton)
    help_window = window.findChild(HelpWindow)
    assert help_window is not None and field.description.help in help_window.meaning.toPlainText()
    help_window.close()
    dialog.close()


def test_help_window_searches_the_content_of_pages(window: MainWindow) -> None:
    help_window = window.assistance.help_window()
    help_window.show_page("window")
    help_window.wanted_pages.setText("limma")
    shown = [help_window.contents.item(row) for row in range(help_window.contents.count()) if not help_window.contents.item(row).isHidden()]
    assert {item.data(Qt.ItemDataRole.UserRole) for item in shown} == {
        path.stem for path in manual_folder().glob("*.md") if "limma" in path.read_text(encoding="utf-8").casefold()
    }
    assert help_window.contents.currentItem() in shown and help_window.page.textCursor().selectedText().casefold() == "limma"
    help_window.wanted_pages.setText("limma word-of-no-page")
    assert all(help_window.contents.item(row).isHidden() for row in range(help_window.contents.count()))
    help_window.show_page("files")
    assert not any(help_window.contents.item(row).isHidden() for row in range(help_window.contents.count()))
    help_window.close()


def test_manual_figures_fit_into_the_help_window(window: MainWindow, qtbot: QtBot) -> None:
    help_window = window.assistance.help_window()
    named = {
        (path.stem, name)
        for path in manual_folder().glob("*.md")
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", path.read_text(encoding="utf-8"))
    }
    assert named
    for page, name in sorted(named):
        help_window.show_page(page)
        image = help_window.page.document().resource(QTextDocument.ResourceType.ImageResource.value, QUrl(name))
        assert not image.isNull() and 300 < image.width() <= max(help_window.page.viewport().width(), 320), (page, name)
    help_window.close()


def test_manual_pages_of_searches_exist_and_their_links_open(window: MainWindow) -> None:
    for search in SEARCHES:
        assert (manual_folder() / f"{search.manual}.md").is_file(), search.kind
    help_window = window.assistance.help_window()
    names = {path.stem for path in manual_folder().glob("*.md")}
    for name in sorted(names):
        help_window.show_page(name)
        assert help_window.page.toPlainText().startswith(manual_page(name).partition("\n")[0].lstrip("# ").replace("`", ""))
        for link in re.findall(r"\]\(([a-z_]+)\.md\)", manual_page(name)):
            assert link in names, (name, link)
        for link in re.findall(r"\]\((developers/[a-z_]+\.md)[^)]*\)", manual_page(name)):
            title = (manual_folder() / link).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            help_window.page.anchorClicked.emit(QUrl(link))
            assert help_window.page.toPlainText().startswith(title), (name, link)
    help_window.close()


def test_help_window_searches_glossary_and_shortcuts(window: MainWindow) -> None:
    _triggered(window, "Glossary of columns and settings")
    help_window = window.findChild(HelpWindow)
    assert help_window is not None
    help_window.wanted_word.setText("posterior error")
    assert 0 < help_window.words.count() < 20
    assert "posterior" in help_window.meaning.toPlainText().casefold()
    help_window.wanted_word.setText("no such word anywhere")
    assert help_window.words.count() == 0 and "No term" in help_window.found.text() and not help_window.meaning.toPlainText()
    _triggered(window, "Keyboard shortcuts")
    listed = {help_window.keys.item(row, 0).text(): help_window.keys.item(row, 1).text() for row in range(help_window.keys.rowCount())}
    assert listed["F1"] == "Context help" and listed["Ctrl+R"] == "Run"
    # Every action with a shortcut is listed with it.
    for action in window.findChildren(QAction):
        for keys in action.shortcuts():
            assert keys.toString() in listed, action.text()
    window.menus.run.setShortcut("Ctrl+Alt+R")
    help_window.wanted_keys.setText("ctrl+alt+r")
    assert help_window.keys.rowCount() == 1 and help_window.keys.item(0, 1).text() == "Run"
    help_window.close()


def test_shortcuts_of_views_are_listed_with_the_name_of_the_view(window: MainWindow) -> None:
    for search in window.searches.values():
        search.results.show()
        assert all(files.lines.accessibleName() for files in search.form.file_lists.values())
    panel = StructurePanel(lambda kind, function, done, failed: None)
    panel.setParent(window)
    listed = shortcuts_of(window)
    assert not [entry for entry in listed if len(entry.keys) == 1 and entry.where == "Everywhere"]
    assert {entry.where for entry in listed if entry.keys in ("A", "B", "C")} == {"Structures in 3D"}
    assert {entry.where for entry in listed if entry.keys == "0"} == {"Structures in 3D", "Plots, while they have the keyboard focus"}


def test_bug_report_has_folder_names_only_on_request(window: MainWindow, tmp_path: Path) -> None:
    window.log.add(f"cannot read {tmp_path / 'my folder' / 'run.mzML'}", "error")
    _triggered(window, "Report a bug")
    dialog = window.findChild(BugReportDialog)
    assert dialog is not None
    dialog.what.setPlainText("I pressed Run")
    text = dialog.text.toPlainText()
    assert "I pressed Run" in text and "run.mzML" in text and "my folder" not in text and "cpu" in text
    dialog.with_paths.setChecked(True)
    assert "my folder" in dialog.text.toPlainText()
    dialog.copy_button.click()
    assert QGuiApplication.clipboard().text() == dialog.text.toPlainText()
    dialog.save(tmp_path / "report.txt", dialog.text.toPlainText())
    assert (tmp_path / "report.txt").read_text() == dialog.text.toPlainText()
    dialog.save(tmp_path / "report.txt" / "below a file.txt", "x")
    assert "Saved" not in dialog.state.text() and dialog.state.text()
    dialog.close()


def test_citing_dialog_copies_references_as_text_and_bibtex(window: MainWindow) -> None:
    _triggered(window, "How to cite")
    dialog = window.findChild(CitingDialog)
    assert dialog is not None
    dialog.bibtex_button.click()
    assert QGuiApplication.clipboard().text().startswith("@software{Proteoscope,")
    dialog.copy_button.click()
    assert QGuiApplication.clipboard().text() == dialog.text.toPlainText()
    dialog.close()


def _in_sight(page: StartPage) -> bool:
    """Return True if the page does not scroll and shows its cards and buttons completely."""
    hidden = page.findChild(QWidget, "more")
    shown = [button for button in page.findChildren(QAbstractButton) if not hidden.isAncestorOf(button)]
    assert len(shown) > 15
    whole = all(page.rect().contains(QRect(widget.mapTo(page, QPoint()), widget.size())) for widget in (*page.cards, *shown))
    return whole and page.scroll_area.verticalScrollBar().maximum() == page.scroll_area.horizontalScrollBar().maximum() == 0


@pytest.mark.parametrize("size", [(1280, 800), (1024, 700)], ids=str)
def test_start_page_fits_without_scrolling(window: MainWindow, size: tuple[int, int], qtbot: QtBot) -> None:
    for folder in ("a", "b", "c", "d", "e", "f"):
        window.settings.values.remember_project(Path("/data") / folder)
    window.recent_projects.show()
    window.resize(*size)
    page = window.start_page
    qtbot.waitUntil(lambda: _in_sight(page))
    assert page.cards[1].y() == page.cards[0].y() and page.cards[2].y() > page.cards[0].y(), "two columns"
    assert page.recent.mapTo(page, QPoint()).y() < page.cards[0].mapTo(page, QPoint()).y(), "recent projects come first"


def test_start_page_opens_every_search_by_keyboard(window: MainWindow, qtbot: QtBot) -> None:
    page = window.start_page
    page.open_button.setFocus()
    reached: list[str] = []
    for _ in range(40):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        focused = QApplication.focusWidget()
        if not page.isAncestorOf(focused):
            break
        assert isinstance(focused, QAbstractButton)
        reached.append(focused.accessibleName() or focused.text())
        if focused is page.more_button:
            QTest.keyClick(focused, Qt.Key.Key_Space)
    for search in SEARCHES:
        assert f"New {search.name}" in reached
        assert search.demo is None or f"Use sample data of the {search.name}" in reached
    QTest.keyClick(page.new_buttons["reads"], Qt.Key.Key_Space)
    assert window.pages.currentWidget() is window.form and window.form.search.kind == "reads"


def test_click_on_card_of_the_start_page_opens_its_main_search(window: MainWindow, qtbot: QtBot) -> None:
    assert len(window.start_page.cards) == 4
    QTest.mouseClick(window.start_page.cards[2], Qt.MouseButton.LeftButton, pos=QPoint(20, 20))
    assert window.pages.currentWidget() is window.form and window.form.search.kind == "align"


def _triggered(window: MainWindow, text: str) -> None:
    """Choose an entry of the Help menu by its text."""
    action = next(action for action in window.menus.help.actions() if action.text().replace("&", "").startswith(text))
    action.trigger()

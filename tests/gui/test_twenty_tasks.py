"""Twenty tasks from start to result by X events at 1280 x 800, each with its number of actions.

An action is a click, a double click, a key combination or a typed text. At most 8 are needed for a search, 3 for a picture or table, and
2 to recover.

| task | start | result | actions |
|---|---|---|---|
| 1. identify peptides | two files | accepted PSMs | 8 |
| 2. find unexpected modifications | two files | modifications | 8 |
| 3. search a spectral library | two files | matches | 8 |
| 4. cluster spectra | a file | clusters | 6 |
| 5. explain unidentified spectra | a project | explained spectra | 7 |
| 6. align sequences | two files | hits | 8 |
| 7. search structures | two files | hits | 8 |
| 8. align reads | two files | alignments | 8 |
| 9. quantify with a pasted design | a project | changed proteins | 7 |
| 10. import results, then compare them | two files | comparison with an identification | 8 + 2 |
| 11. evidence of a spectrum: map peptides, then show one | a spectrum and a structure | its peptide on the structure | 5 + 3 |
| 12. save a picture for a paper | a spectrum | SVG as wide as two columns | 3 |
| 13. save a table | results | file for another program | 3 |
| 14. recover: the new form is empty | an emptied form | the last settings | 2 |
| 15. recover: Run on a page of results | results | nothing runs; the form runs | 2 |
| 16. recover: a stopped run | a stopped run | its results | 2 |
| 17. recover: a deleted run | a deleted run | the run | 1 |
| 18. recover: an error message | a message | no message; no control has moved | 1 |
| 19. recover: a forgotten key | any page | true list of keys | 2 |
| 20. recover: a file in the wrong list | its message | a valid form | 2 |
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QToolBar, QToolButton, QTreeView, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs.progress import Progress
from proteoscope.gui.help.help_window import HelpWindow
from proteoscope.gui.plots.page_choice import FigureDialog
from proteoscope.gui.results.evidence_view import EvidenceView
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.settings import SettingsFile
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.quantity_projects import DESIGN, identified_project, ratio_of
from tests.engine.views.read_projects import read_files
from tests.engine.views.search_projects import search_files
from tests.gui.conftest import SAMPLES, OldTimers, check_leaks
from tests.gui.result_views import place_of, settle, shown
from tests.gui.test_messages import places
from tests.gui.test_window import SEARCH_MS
from tests.gui.x_events import Hand, has_file_dialog, move_onto_screen, named_in_dialog, wait_until_still
from tests.stopped_runs import keep_at_once, stop_a_search

SEARCH, PICTURE, RECOVERY = 8, 3, 2
"""Maximum numbers of actions."""
LISTED = {
    int(number): [int(count) for count in counts.split(" + ")]
    for number, counts in re.findall(r"^\| (\d+)\. .* \| ([\d +]+) \|$", __doc__, re.M)
}
"""Numbers of actions of the parts of each task, as in the table above."""


class User:
    """User of a window who only has mouse and keyboard, and counts the actions of a task.

    Parameters
    ----------
    window : MainWindow
        The window, on an X display.
    number : int
        Number of the task in the table.
    qtbot : QtBot
        Waits for the window.
    """

    def __init__(self, window: MainWindow, number: int, qtbot: QtBot) -> None:
        self.window, self.qtbot, self.hand = window, qtbot, Hand(qtbot)
        self.expected = list(LISTED[number])
        """Numbers of actions of the parts that are not done yet."""

    def task(self, maximum: int, task: Callable[[], Any]) -> Any:
        """Perform the next part of the task and check its number of actions."""
        before = self.hand.n_actions
        result = task()
        n_actions = self.hand.n_actions - before
        assert n_actions == self.expected.pop(0) <= maximum
        return result

    def click(self, widget: QWidget, at: QPoint | None = None, **how: Any) -> None:
        """Click a position of a widget, by default its middle, once it is visible without scrolling and at rest."""

        def place() -> QPoint | None:
            inside = widget.rect().center() if at is None else at
            return widget.mapToGlobal(inside) if widget.visibleRegion().contains(inside) and widget.isEnabled() else None

        wait_until_still(place, self.qtbot)
        self.hand.click(widget, at, **how)

    def begin(self, kind: str) -> None:
        """Open the empty form of a search with the button *New search* of the toolbar."""
        bar, window = self.window.findChild(QToolBar, "toolbar"), self.window
        assert isinstance(bar, QToolBar)
        self.choose_in_menu(lambda: self.click(bar.widgetForAction(bar.actions()[0])), window.menus.new[kind].text())
        self.qtbot.waitUntil(lambda: window.pages.currentWidget() is window.searches[kind].made_form)
        assert not window.form.is_touched

    def add(self, name: str, path: Path) -> None:
        """Add a file to an input of the form by its name."""
        files = self.window.form.file_lists[name]
        self.click(files.add_button)
        self.qtbot.waitUntil(has_file_dialog)
        self.hand.type(str(path))
        self.hand.press("enter")
        self.qtbot.waitUntil(lambda: path in files.paths)
        self.activate()

    def add_next(self, name: str, path: Path) -> None:
        """Add another file of the folder of the last one, which the dialog shows, by a double click."""
        files = self.window.form.file_lists[name]
        self.click(files.add_button)
        self.qtbot.waitUntil(has_file_dialog)
        dialog = files.findChild(QFileDialog)
        assert dialog is not None
        listed = dialog.findChild(QTreeView, "treeView")
        assert listed is not None

        def place() -> QPoint | None:
            model, root = listed.model(), listed.rootIndex()
            rows = [row for row in range(model.rowCount(root)) if model.index(row, 0, root).data() == path.name]
            centre = listed.visualRect(model.index(rows[0], 0, root)).center() if rows else QPoint(-1, -1)
            return centre if listed.viewport().visibleRegion().contains(centre) else None

        wait_until_still(place, self.qtbot)
        self.hand.double_click(listed.viewport(), place())
        self.qtbot.waitUntil(lambda: path in files.paths)
        self.activate()

    def activate(self) -> None:
        """Restore the focus after a dialog, as the window manager does that this display lacks."""
        with self.qtbot.waitActive(self.window):
            self.window.activateWindow()

    def choose_preset(self, name: str) -> None:
        """Choose a preset in its box."""
        box = self.window.form.presets.box
        listed = box.view()
        self.click(box)
        self.qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None)
        self.click(listed.viewport(), listed.visualRect(box.model().index(box.findData(name), 0)).center())
        self.qtbot.waitUntil(lambda: self.window.form.presets.name == name)

    def run(self) -> RunView:
        """Press Ctrl+R and wait for the results to appear."""
        window = self.window
        self.qtbot.waitUntil(window.form.run_button.isEnabled)
        with self.qtbot.waitSignal(window.bridge.finished, timeout=SEARCH_MS) as finished:
            self.hand.press("ctrl", "r")
        assert finished.args[0].state == "done", finished.args[0].error_report or finished.args[0].error
        self.qtbot.waitUntil(lambda: window.pages.currentWidget() is window.search.made_results)
        settle(window.results, self.qtbot)
        run = window.results.run
        assert run is not None and run.id == finished.args[0].result.run_id
        assert window.project_pane.selected_run == run
        return window.results

    def open_project(self, folder: Path) -> RunView:
        """Open a project by its name."""
        self.hand.press("ctrl", "o")
        self.qtbot.waitUntil(has_file_dialog)
        self.hand.type(str(folder))
        self.hand.press("enter")
        project = self.window.project_pane
        self.qtbot.waitUntil(lambda: project.project is not None and project.project.folder == folder)
        self.activate()
        settle(self.window.results, self.qtbot)
        return self.window.results

    def choose_in_menu(self, open_menu: Callable[[], None], text: str) -> None:
        """Open a menu and click the action with a text."""

        def choose() -> None:
            menu = self.hand.menu()
            self.hand.choose(menu, next(action for action in menu.actions() if action.text().replace("&", "") == text))

        self.hand.do_when(lambda: QApplication.activePopupWidget() is not None, choose)
        open_menu()
        self.qtbot.waitUntil(lambda: QApplication.activePopupWidget() is None)


@pytest.fixture(scope="module", autouse=True)
def no_leaks(qapp: QApplication, old_timers: OldTimers) -> Iterator[None]:
    """Check for leaks after all tasks, since the window creates its pages when they are needed."""
    yield from check_leaks(qapp, old_timers, {})


@pytest.fixture(scope="module")
def shared_window(request: pytest.FixtureRequest, shared_theme: Theme, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    """Window of all tasks, one after the other, as of a user."""
    qtbot = QtBot(request)
    # Otherwise the advice on the first spectra, which a task needs, could take minutes on a busy machine.
    compile_kernels(["identify"], Progress())
    window = MainWindow(SettingsFile(tmp_path_factory.mktemp("twenty") / "settings.json"), shared_theme)
    window.show()
    move_onto_screen(window, qtbot)
    yield window
    window.close()
    assert window.queue.shutdown(60)
    window.deleteLater()
    QApplication.sendPostedEvents(window, QEvent.Type.DeferredDelete.value)


@pytest.fixture
def user(shared_window: MainWindow, theme: Theme, request: pytest.FixtureRequest, qtbot: QtBot) -> Iterator[User]:
    move_onto_screen(shared_window, qtbot)
    shared_window.message_bar.clear()
    user = User(shared_window, int(request.node.name.split("_")[2]), qtbot)
    yield user
    user.hand.close()
    # The check for leaks comes after the last test, whose arguments would retain the window.
    request.node.funcargs.clear()
    assert (shared_window.width(), shared_window.height()) == (1280, 800)
    assert not user.expected, "each part of the task is done"


@pytest.fixture
def identified(identified_once: Path, tmp_path: Path) -> Path:
    """Project with an identification of the sample."""
    return Path(shutil.copytree(identified_once, tmp_path / "identified"))


@pytest.fixture
def two_runs(tmp_path: Path) -> Path:
    """Project with two identifications."""
    return project_with_runs(tmp_path / "two", n_runs=2, n_spectra=40)[0].folder


def search(user: User, kind: str, **files: Path) -> RunView:
    """Search files: the first by its name, the others in the folder of the first."""
    user.begin(kind)
    (first, path), *others = files.items()
    user.add(first, path)
    for name, other in others:
        user.add_next(name, other)
    return user.run()


def copied(folder: Path, *paths: Path) -> list[Path]:
    """Return copies of files in a folder, as a user has them."""
    folder.mkdir()
    return [Path(shutil.copy(path, folder)) for path in paths]


def test_task_1_peptides_are_identified(user: User, small_database: Path, tmp_path: Path) -> None:
    spectra, database = copied(tmp_path / "files", SAMPLES / "BSA1.mzML.gz", small_database)

    def identify() -> RunView:
        user.hand.press("ctrl", "n")
        user.qtbot.waitUntil(lambda: user.window.pages.currentWidget() is user.window.searches["identify"].made_form)
        user.add("spectra", spectra)
        user.add_next("database", database)
        form = user.window.form
        # The button moves when the estimate appears below it.
        user.qtbot.waitUntil(lambda: form.estimate.isVisible() and not form.estimate.is_busy)
        user.click(form.advice.button)
        user.qtbot.waitUntil(lambda: form.presets.name == "low-resolution")
        return user.run()

    results = user.task(SEARCH, identify)
    assert results.psms.model.rowCount() > 0 and results.spectrum.spectrum is not None


def test_task_2_modifications_are_found(user: User, small_spectra: Path, small_database: Path, tmp_path: Path) -> None:
    spectra, database = copied(tmp_path / "files", small_spectra, small_database)
    results = user.task(SEARCH, partial(search, user, "modified", spectra=spectra, database=database))
    assert results.psms.total > 0


def test_task_3_library_is_searched(user: User, small_spectra: Path, tmp_path: Path) -> None:
    spectra, library = copied(tmp_path / "files", small_spectra, SAMPLES / "bsa_library.msp.gz")
    results = user.task(SEARCH, partial(search, user, "library", spectra=spectra, library=library))
    assert results.matches.total > 0


def test_task_4_spectra_are_clustered(user: User, small_spectra: Path, tmp_path: Path) -> None:
    (spectra,) = copied(tmp_path / "files", small_spectra)
    results = user.task(SEARCH, partial(search, user, "cluster", spectra=spectra))
    assert results.members.total > 0


def follow_up(user: User, kind: str) -> None:
    """Open the form of a follow-up search with its button above the results."""
    window = user.window
    action = window.results.follow_ups[kind]
    button = next(widget for widget in action.associatedObjects() if isinstance(widget, QToolButton) and widget.isVisible())
    user.click(button)
    user.qtbot.waitUntil(lambda: window.pages.currentWidget() is window.searches[kind].made_form)


def test_task_5_unidentified_spectra_are_explained(user: User, identified: Path) -> None:
    def explain() -> RunView:
        user.open_project(identified)
        follow_up(user, "explain")
        user.choose_preset("published")
        return user.run()

    results = user.task(SEARCH, explain)
    assert results.panels["explained"].total > 0


def test_task_6_sequences_are_aligned(user: User, tmp_path: Path) -> None:
    queries, database = search_files(tmp_path / "files", n_queries=2, n_relatives=4, n_unrelated=20)
    results = user.task(SEARCH, partial(search, user, "align", queries=queries, database=database))
    assert results.hits.total >= 8


def test_task_7_structures_are_searched(user: User, tmp_path: Path) -> None:
    query, database = copied(tmp_path / "files", SAMPLES / "albumin_domain_3.pdb.gz", SAMPLES / "folds.pdb.gz")
    results = user.task(SEARCH, partial(search, user, "structures", queries=query, database=database))
    assert results.hits.total > 0


def test_task_8_reads_are_aligned(user: User, tmp_path: Path) -> None:
    genome, reads = read_files(tmp_path / "files", "ACGTTGCATGTCAACGGATTCAGCTA" * 60, 6)
    results = user.task(SEARCH, partial(search, user, "reads", texts=genome, patterns=reads))
    assert results.alignments.total > 0


def test_task_9_proteins_are_quantified_with_a_pasted_design(user: User, tmp_path: Path) -> None:
    project = identified_project(tmp_path / "project")
    user.window.open_project(project)
    QGuiApplication.clipboard().setText(DESIGN)

    def quantify() -> RunView:
        user.open_project(project)
        follow_up(user, "quantify")
        editor = user.window.form.designs["design"]
        user.qtbot.waitUntil(lambda: len(editor.model.table.rows) == 4)
        view = editor.view
        user.click(view.viewport(), view.visualRect(view.model().index(0, 0)).center())
        user.hand.press("ctrl", "v")
        user.qtbot.waitUntil(lambda: [row[1] for row in editor.model.table.rows] == ["control_1", "control_2", "heat_1", "heat_2"])
        return user.run()

    results = user.task(SEARCH, quantify)
    changes = dict(zip(shown(results.changes, "accession"), shown(results.changes, "log2_fold_change"), strict=True))
    assert changes["P00"] > 1 > -1 > changes["P02"] and ratio_of(0) > 1 > ratio_of(2)


def test_task_10_results_are_imported_and_compared(user: User, identified: Path, tmp_path: Path) -> None:
    imported, spectra = copied(tmp_path / "files", SAMPLES / "BSA1_comet.pep.xml.gz", SAMPLES / "BSA1.mzML.gz")
    user.window.open_project(identified)
    settle(user.window.results, user.qtbot)
    results = user.task(SEARCH, partial(search, user, "import", results=imported, spectra=spectra))
    assert results.psms.total > 0 and user.window.project_pane.project.folder == identified

    def compare() -> None:
        pane, runs = user.window.project_pane, user.window.project_pane.runs
        other = next(row for row in range(runs.count()) if not runs.item(row).isSelected())
        user.click(runs.viewport(), runs.visualItemRect(runs.item(other)).center(), holding=("ctrl",))
        user.click(pane.compare_button)
        user.qtbot.waitUntil(lambda: user.window.pages.currentWidget() is user.window.comparisons.view is not None)

    user.task(RECOVERY, compare)
    view = user.window.comparisons.view
    settle(view, user.qtbot)
    assert view.panel.total > 0


def test_task_11_structure_of_an_identified_peptide_is_shown(user: User, identified: Path, tmp_path: Path) -> None:
    (structure,) = copied(tmp_path / "files", SAMPLES / "1ao6_A.pdb.gz")
    user.window.open_project(identified)
    settle(user.window.results, user.qtbot)

    def map_onto_structures() -> RunView:
        follow_up(user, "evidence")
        user.add("structures", structure)
        return user.run()

    evidence = user.task(SEARCH, map_onto_structures)
    assert isinstance(evidence, EvidenceView) and evidence.peptides.total > 0

    def show_structure() -> str:
        runs = user.window.project_pane.runs
        user.click(runs.viewport(), runs.visualItemRect(runs.item(runs.count() - 1)).center())
        user.qtbot.waitUntil(lambda: isinstance(user.window.pages.currentWidget(), IdentificationView))
        results = user.window.results
        settle(results, user.qtbot)
        peptide = shown(results.psms, "peptide")[0]
        user.choose_in_menu(lambda: user.click(*place_of(results.psms, 0), is_right=True), "Show on its structure")
        user.qtbot.waitUntil(lambda: user.window.pages.currentWidget() is evidence)
        settle(evidence, user.qtbot)
        return peptide

    peptide = user.task(PICTURE, show_structure)
    assert evidence.peptides.view.chosen is not None
    position = evidence.peptides.model.position_of(evidence.peptides.view.chosen)
    assert shown(evidence.peptides, "peptide")[position] == peptide
    assert user.window.project_pane.selected_run == evidence.run, "the selected run is the shown one"


def test_task_12_figure_for_a_paper_is_saved(user: User, two_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    user.window.open_project(two_runs)
    settle(user.window.results, user.qtbot)

    def save() -> str:
        user.hand.press("ctrl", "e")
        user.qtbot.waitUntil(lambda: isinstance(QApplication.activeWindow(), FigureDialog))
        user.hand.do_when(has_file_dialog, lambda: user.hand.press("enter"))
        user.hand.press("enter")
        user.qtbot.waitUntil(lambda: bool(list(tmp_path.glob("*.svg"))))
        return next(tmp_path.glob("*.svg")).read_text(encoding="utf-8")

    figure = user.task(PICTURE, save)
    assert figure.startswith("<svg ") and 'width="178mm"' in figure[:300], "two columns"


def test_task_13_table_is_saved(user: User, two_runs: Path, tmp_path: Path) -> None:
    user.window.open_project(two_runs)
    settle(user.window.results, user.qtbot)

    def save() -> None:
        user.hand.press("ctrl", "shift", "e")
        named_in_dialog(user.hand, tmp_path / "results.pin")
        user.qtbot.waitUntil(lambda: user.window.queue.is_idle and (tmp_path / "results.pin").exists())

    user.task(PICTURE, save)
    user.qtbot.waitUntil(lambda: "results.pin written" in user.window.message_bar.label.text())


def test_task_14_new_form_is_empty_and_can_be_filled_again(user: User, small_spectra: Path, small_database: Path) -> None:
    window = user.window
    user.begin("identify")
    user.add("spectra", small_spectra)
    user.add("database", small_database)
    before = window.form.content()

    def lose_and_recover() -> None:
        user.hand.press("ctrl", "n")
        user.qtbot.waitUntil(lambda: not window.form.is_touched)
        assert all(files.is_empty for files in window.form.file_lists.values())
        user.click(window.form.last_button)
        user.qtbot.waitUntil(lambda: window.form.content() == before)

    user.task(RECOVERY, lose_and_recover)
    user.qtbot.waitUntil(window.form.run_button.isEnabled)


def test_task_15_run_shortcut_works_only_on_the_form(user: User, tmp_path: Path) -> None:
    queries, database = search_files(tmp_path / "files", n_queries=1, n_relatives=2, n_unrelated=5)
    window = user.window
    user.begin("align")
    user.add("queries", queries)
    user.add("database", database)
    user.run()
    n_runs = len(window.project_pane.records)
    user.hand.press("ctrl", "r")
    user.qtbot.wait(50)
    assert window.queue.is_idle and isinstance(window.pages.currentWidget(), RunView)

    def run_again() -> RunView:
        user.hand.press("ctrl", "1")
        user.qtbot.waitUntil(lambda: window.pages.currentWidget() is window.form)
        return user.run()

    user.task(RECOVERY, run_again)
    assert len(window.project_pane.records) == n_runs + 1


def test_task_16_stopped_run_is_resumed(user: User, two_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    keep_at_once(monkeypatch)
    stopped, window = stop_a_search(two_runs, tmp_path), user.window
    window.open_project(two_runs)
    settle(window.results, user.qtbot)
    pane = window.project_pane
    assert pane.records[0].id == stopped

    def resume() -> None:
        user.click(pane.runs.viewport(), pane.runs.visualItemRect(pane.runs.item(0)).center())
        with user.qtbot.waitSignal(window.bridge.finished):
            user.click(pane.resume_button)
        user.qtbot.waitUntil(lambda: window.pages.currentWidget() is window.searches["align"].made_results)

    user.task(RECOVERY, resume)
    settle(window.results, user.qtbot)
    assert window.results.run is not None and window.results.run.id == stopped and window.results.text == ""
    assert pane.records[0].status == "done" and window.results.hits.total > 0


def test_task_17_deleted_run_is_restored(user: User, two_runs: Path) -> None:
    window = user.window
    window.open_project(two_runs)
    settle(window.results, user.qtbot)
    pane = window.project_pane
    both = [run.id for run in pane.records]
    at = pane.runs.visualItemRect(pane.runs.item(0)).center()
    user.choose_in_menu(lambda: user.click(pane.runs.viewport(), at, is_right=True), "Delete this run")
    user.qtbot.waitUntil(lambda: [run.id for run in pane.records] == both[1:])
    window.message_bar.show_message("Something else", "good")

    def restore() -> None:
        user.hand.press("ctrl", "z")
        user.qtbot.waitUntil(lambda: [run.id for run in pane.records] == both)

    user.task(RECOVERY, restore)
    user.qtbot.waitUntil(lambda: window.results.run is not None and window.results.run.id == both[0])
    settle(window.results, user.qtbot)
    assert window.pages.currentWidget() is window.results and window.results.psms.total > 0


def test_task_18_message_moves_no_control_and_is_closed(user: User, two_runs: Path, tmp_path: Path) -> None:
    window = user.window
    window.open_project(two_runs)
    settle(window.results, user.qtbot)
    before = places(window)
    (tmp_path / "no project").mkdir()
    named_in_dialog(user.hand, tmp_path / "no project")
    user.hand.press("ctrl", "o")
    user.qtbot.waitUntil(window.message_bar.isVisible)
    user.qtbot.waitUntil(lambda: places(window) == before)

    def close() -> None:
        user.click(window.message_bar.close_button)
        user.qtbot.waitUntil(lambda: not window.message_bar.isVisible())

    user.task(RECOVERY, close)
    assert places(window) == before and window.project_pane.project.folder == two_runs


def test_task_19_list_of_keyboard_shortcuts_is_shown_and_correct(user: User, two_runs: Path) -> None:
    window = user.window
    window.open_project(two_runs)
    settle(window.results, user.qtbot)

    def find() -> HelpWindow:
        user.choose_in_menu(lambda: user.hand.press("alt", "h"), "Keyboard shortcuts")
        user.qtbot.waitUntil(lambda: isinstance(QApplication.activeWindow(), HelpWindow))
        return QApplication.activeWindow()

    opened = user.task(RECOVERY, find)
    table = opened.keys
    assert table.isVisible()
    listed = {tuple(table.item(row, column).text() for column in range(3)) for row in range(table.rowCount())}
    assert all(where != "Everywhere" for keys, _, where in listed if len(keys) == 1)
    assert any(keys == "Ctrl+F" for keys, *_ in listed)
    opened.close()
    user.activate()
    user.hand.press("ctrl", "f")
    user.qtbot.waitUntil(window.results.filter_bar.text.hasFocus)


def test_task_20_file_in_the_wrong_list_is_removed(user: User, small_spectra: Path, small_database: Path) -> None:
    window = user.window
    user.begin("identify")
    user.add("spectra", small_spectra)
    user.add("database", small_database)
    user.qtbot.waitUntil(window.form.run_button.isEnabled)
    spectra = window.form.file_lists["spectra"]
    user.add("spectra", small_database)
    user.qtbot.waitUntil(spectra.message.isVisible)
    assert spectra.message.text() == f"{small_database.name} is a FASTA file of sequences; add it to the protein databases"

    def remove() -> None:
        user.click(spectra.lines.viewport(), spectra.lines.visualItemRect(spectra.lines.item(1)).center())
        user.hand.press("delete")
        user.qtbot.waitUntil(window.form.run_button.isEnabled)

    user.task(RECOVERY, remove)
    assert not spectra.message.isVisible() and spectra.paths == [small_spectra]

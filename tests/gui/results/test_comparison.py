"""Tests of the comparison of runs with real input events, compared with the results of the engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QSplitter
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.views.drawings import Bar, Points
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.run_comparison import LEVELS, RunComparison, compare_runs
from proteoscope.gui.plots.page_choice import FigureDialog
from proteoscope.gui.results.comparison_view import ComparisonView
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.search_projects import project_with_search
from tests.gui.result_views import cut_off, settle, shown


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_runs(tmp_path_factory.mktemp("compared") / "project", n_spectra=60)[0]


@pytest.fixture(scope="module")
def expected(project: Project) -> Iterator[RunComparison]:
    """Return the results of the engine."""
    with compare_runs([open_run(project, run.id) for run in project.runs()]) as comparison:
        yield comparison


@pytest.fixture(scope="module")
def opened(project: Project, shared_theme: Theme, request: pytest.FixtureRequest) -> Iterator[ComparisonView]:
    shared_theme.choose("light")
    widget = ComparisonView(project, [run.id for run in project.runs()])
    widget.resize(1000, 720)
    widget.show()
    settle(widget, QtBot(request))
    yield widget
    widget.clear()
    widget.close()
    widget.deleteLater()


@pytest.fixture
def view(opened: ComparisonView, expected: RunComparison, qtbot: QtBot, theme: Theme) -> ComparisonView:
    """Comparison in its first state; it is shared because opening it takes long."""
    opened.level_box.setCurrentIndex(0)
    opened.threshold_box.setValue(1.0)
    opened.differing_box.setChecked(False)
    opened.pair_box.setCurrentIndex(0)
    opened.tabs.setCurrentIndex(0)
    settle(opened, qtbot)
    if opened.panel.scope_text:
        opened.panel.all_button.click()
    opened.panel.clear_choice()
    settle(opened, qtbot)
    source = expected.source("spectra")
    assert len(opened.panel.model.rows) == source.count(expected.conditions_of_any(0.01))
    source.close()
    assert opened.panel.view.chosen is None and opened.overlaps.marked is None and opened.panel.scope_text == ""
    return opened


def bars(view: ComparisonView) -> list[Bar]:
    assert view.overlaps.drawing is not None
    return [shape for shape in view.overlaps.drawing.shapes if isinstance(shape, Bar) and shape.target is not None and not shape.is_round]


def proposed_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names that dialogs propose, and cancel the dialogs."""
    proposed: list[str] = []

    def ask(parent: object, title: str, name: str, kinds: str) -> tuple[str, str]:
        proposed.append(name)
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    monkeypatch.setattr(FigureDialog, "open", FigureDialog.accept)
    return proposed


def click(view: ComparisonView, widget: str, at: QPointF, qtbot: QtBot) -> None:
    qtbot.mouseClick(getattr(view, widget), Qt.MouseButton.LeftButton, pos=at.toPoint())
    settle(view, qtbot)


def test_click_on_bar_of_run_comparison_lists_the_common_items(view: ComparisonView, expected: RunComparison, qtbot: QtBot) -> None:
    assert view.text == "" and cut_off(view) == []
    for place, level in enumerate(LEVELS):
        view.level_box.setCurrentIndex(place)
        settle(view, qtbot)
        assert [bar.target for bar in bars(view)] == [expected_row.runs for expected_row in expected.intersections(level.name, 0.01)]
        source = expected.source(level.name)
        assert len(view.panel.model.rows) == source.count(expected.conditions_of_any(0.01))
        source.close()
        for bar, intersection in zip(bars(view)[:2], expected.intersections(level.name, 0.01), strict=False):
            click(view, "overlaps", QPointF(bar.x + bar.width / 2, bar.y + bar.height / 2), qtbot)
            assert len(view.panel.model.rows) == intersection.count
            assert view.panel.scope_text == f"only in {expected.names_of(intersection.runs)}"
        view.panel.all_button.click()
        settle(view, qtbot)


def test_fdr_threshold_of_run_comparison_recounts_the_items(view: ComparisonView, expected: RunComparison, qtbot: QtBot) -> None:
    view.threshold_box.setValue(5.0)
    settle(view, qtbot)
    assert [bar.target for bar in bars(view)] == [expected_row.runs for expected_row in expected.intersections("spectra", 0.05)]
    assert len(view.panel.model.rows) == int((expected.accepted_from("spectra") <= 0.05).any(1).sum())
    view.differing_box.setChecked(True)
    settle(view, qtbot)
    source = expected.source("spectra")
    assert view.panel.model.rows.tolist() == source.rows(expected.disagreement_conditions(0.05)).tolist()
    source.close()


def test_run_comparison_mirrors_a_spectrum_with_two_matches(view: ComparisonView, qtbot: QtBot) -> None:
    view.threshold_box.setValue(5.0)
    view.differing_box.setChecked(True)
    settle(view, qtbot)
    view.panel.view.choose(0)
    settle(view, qtbot)
    spectra = view.mirror.spectra
    assert spectra is not None and spectra.lower is not None and spectra.is_one_spectrum
    runs = [half.name[0] for half in spectra.halves]
    assert [half.name.split(" (")[0] for half in spectra.halves] == [f"{name}: {shown(view.panel, f'peptide_{name}')[0]}" for name in runs]
    assert "% of intensity" in view.mirror.readout.text()


def test_click_on_dot_of_score_comparison_selects_the_spectrum(view: ComparisonView, expected: RunComparison, qtbot: QtBot) -> None:
    view.tabs.setCurrentIndex(1)
    view.pair_box.setCurrentIndex(1)
    settle(view, qtbot)
    assert view.scores.drawing is not None
    dots = [shape for shape in view.scores.drawing.shapes if isinstance(shape, Points)]
    pairs = expected.scores(0, 2, 0.01)
    assert sorted(np.concatenate([dot.targets for dot in dots]).tolist()) == pairs.spectrum.tolist()
    # An isolated dot, so that the click is unambiguous.
    x, y, targets = (np.concatenate([getattr(dot, name) for dot in dots]) for name in ("x", "y", "targets"))
    distances = np.hypot(x[:, None] - x, y[:, None] - y) + np.eye(len(x)) * 1e9
    lonely = int(np.argmax(distances.min(1)))
    click(view, "scores", QPointF(x[lonely], y[lonely]), qtbot)
    source = expected.source("spectra")
    values = source.values(targets[[lonely]], ["spectrum_id", "peptide_A", "peptide_C"]).to_pylist()[0]
    source.close()
    assert view.mirror.title.startswith(values["spectrum_id"])
    assert view.mirror.spectra is not None
    assert [half.name.split(" (")[0] for half in view.mirror.spectra.halves] == [f"A: {values['peptide_A']}", f"C: {values['peptide_C']}"]


def test_click_on_dot_of_score_comparison_lists_spectra(view: ComparisonView, expected: RunComparison, qtbot: QtBot) -> None:
    view.tabs.setCurrentIndex(1)
    for threshold in (1.0, 0.0):
        view.threshold_box.setValue(threshold)
        view.level_box.setCurrentIndex(3)
        settle(view, qtbot)
        accepted = np.any(expected.accepted_from("spectra") <= threshold / 100, axis=1)
        pairs = expected.scores(0, 1, threshold / 100)
        row = int(pairs.spectrum[accepted[pairs.spectrum] == (threshold > 0)][-1])
        view.scores.targetChosen.emit(row)
        settle(view, qtbot)
        assert view.level_box.currentIndex() == 0 and view.mirror.spectra is not None
        assert [half.name[0] for half in view.mirror.spectra.halves] == ["A", "B"] and view.scores.marked == row
        # A spectrum accepted by no run has no row, but is mirrored too.
        assert view.panel.view.chosen == (row if threshold else None)


def test_arrow_keys_select_and_mark_bars_of_run_comparison(view: ComparisonView, expected: RunComparison, qtbot: QtBot) -> None:
    intersections = expected.intersections("spectra", 0.01)
    assert len(intersections) > 1
    view.overlaps.setFocus(Qt.FocusReason.TabFocusReason)
    for at, key in ((0, Qt.Key.Key_Right), (1, Qt.Key.Key_Right), (0, Qt.Key.Key_Left), (len(intersections) - 1, Qt.Key.Key_End)):
        qtbot.keyClick(view.overlaps, key)
        settle(view, qtbot)
        assert len(view.panel.model.rows) == intersections[at].count and view.overlaps.marked == intersections[at].runs
        assert f"{expected.names_of(intersections[at].runs)} only: {intersections[at].count}" in view.overlaps.accessibleDescription()
    view.panel.all_button.click()
    settle(view, qtbot)
    assert view.overlaps.marked is None


def test_selected_bar_is_unchanged_if_other_runs_are_compared(view: ComparisonView, expected: RunComparison, qtbot: QtBot) -> None:
    bar, intersection = bars(view)[0], expected.intersections("spectra", 0.01)[0]
    click(view, "overlaps", QPointF(bar.x + bar.width / 2, bar.y + bar.height / 2), qtbot)
    view.pair_box.setCurrentIndex(2)
    settle(view, qtbot)
    assert view.scores.drawing is not None and view.scores.drawing.title.endswith("in B and C")
    assert len(view.panel.model.rows) == intersection.count and view.overlaps.marked == intersection.runs


@pytest.mark.parametrize("level", ["psms", "peptidoforms", "peptides"])
def test_run_comparison_mirrors_the_spectrum_of_a_selected_row(level: str, view: ComparisonView, qtbot: QtBot) -> None:
    view.panel.view.choose(0)
    settle(view, qtbot)
    assert view.mirror.spectra is not None
    view.level_box.setCurrentIndex([level.name for level in LEVELS].index(level))
    settle(view, qtbot)
    # The spectrum of an item of another level is cleared.
    assert view.mirror.spectra is None and view.mirror.text.startswith(("Select a P", "Select a p"))
    view.panel.view.choose(0)
    settle(view, qtbot)
    assert view.mirror.spectra is not None
    peptide = str(shown(view.panel, "sequence" if level == "peptides" else "peptide")[0])
    answers = [half.name.split(": ")[1].split(" (")[0] for half in view.mirror.spectra.halves]
    assert peptide in [answer if level != "peptides" else re.sub(r"\[.*?\]-?", "", answer) for answer in answers]


def test_run_comparison_remembers_sizes(project: Project, make_window: Callable[[], MainWindow], qtbot: QtBot) -> None:
    window = make_window()
    window.resize(1200, 800)
    window.open_project(project.folder)
    sizes = []
    for _ in range(2):
        window.compare_runs(project.runs())
        assert window.comparisons.view is not None
        settle(window.comparisons.view, qtbot)
        splitters = window.comparisons.view.findChildren(QSplitter)
        sizes.append([splitter.sizes() for splitter in splitters])
        for splitter in splitters:
            splitter.setSizes([300, 700])
        sizes_now = [splitter.sizes() for splitter in splitters]
    assert sizes[1] == sizes_now != sizes[0]
    qtbot.waitUntil(lambda: not window.results.is_busy)


def test_figures_of_run_comparison_propose_short_file_names(view: ComparisonView, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed = proposed_names(monkeypatch)
    for name in ("overlaps", "curves"):
        getattr(view, name).export_action.trigger()
    assert proposed == ["Identified_spectra_at_1_FDR.svg", "Identified_spectra_by_q-value.svg"]


def test_export_shortcut_of_run_comparison_saves_focused_figure(
    view: ComparisonView, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    proposed = proposed_names(monkeypatch)
    view.panel.view.choose(0)
    settle(view, qtbot)
    assert view.mirror.spectra is not None
    view.activateWindow()
    qtbot.waitUntil(view.isActiveWindow)
    for widget in (view.overlaps, view.panel.view, view.curves):
        widget.setFocus()
        qtbot.keyClick(widget, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert [name.split("_")[0] for name in (proposed[0], proposed[2])] == ["Identified", "Identified"]
    assert len(proposed) == 3 and "identify-0001" in proposed[1]


def test_unfocused_fdr_threshold_ignores_the_mouse_wheel(view: ComparisonView) -> None:
    box = view.threshold_box
    view.overlaps.setFocus()
    middle = QPointF(box.rect().center())
    down = QPoint(0, -120)
    keys = Qt.KeyboardModifier.NoModifier
    wheel = QWheelEvent(middle, middle, down, down, Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(box, wheel)
    assert box.value() == 1.0


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_figures_of_run_comparison_are_saved_in_each_format(view: ComparisonView, tmp_path: Path, ending: str) -> None:
    for name in ("overlaps", "curves", "scores"):
        path = tmp_path / f"{name}.{ending}"
        getattr(view, name).export_action.write(path)
        assert path.stat().st_size > 1000
        if ending == "png":
            image = QImage(str(path))
            assert len({image.pixel(x, image.height() // 2) for x in range(image.width())}) > 1


def test_run_comparison_reports_unreadable_runs(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    project, _ = project_with_runs(tmp_path / "project", n_runs=2, n_spectra=20)
    project.table("peptides", "identify-0002").write_bytes(b"no table")
    view = ComparisonView(project, ["identify-0001", "identify-0002"])
    qtbot.addWidget(view)
    settle(view, qtbot)
    assert "peptides.parquet" in view.text
    view.clear()


def test_runs_selected_in_the_project_are_compared(project: Project, make_window: Callable[[], MainWindow], qtbot: QtBot) -> None:
    window = make_window()
    window.open_project(project.folder)
    pane = window.project_pane
    qtbot.waitUntil(lambda: not window.results.is_busy)
    assert pane.selected_run is not None and not pane.compare_action.isEnabled() and not pane.compare_button.isVisible()
    pane.runs.selectAll()
    assert pane.selected_run is None and pane.compare_action.text() == "&Compare 3 runs"
    qtbot.mouseClick(pane.compare_button, Qt.MouseButton.LeftButton)
    view = window.comparisons.view
    assert view is not None and view.run_ids == ("identify-0001", "identify-0002", "identify-0003")
    assert window.pages.currentWidget() is view
    settle(view, qtbot)
    assert view.text == ""
    # A click on a run leads back to its results.
    pane.select("identify-0002")
    assert pane.selected_run is not None and pane.selected_run.id == "identify-0002"
    assert window.pages.currentWidget() is window.results
    qtbot.waitUntil(lambda: not window.results.is_busy)


def test_runs_without_psms_cannot_be_compared(tmp_path: Path, make_window: Callable[[], MainWindow], qtbot: QtBot) -> None:
    project_with_runs(tmp_path / "project", n_runs=1, n_spectra=20)
    project_with_search(tmp_path / "project", n_queries=1, n_relatives=1, n_unrelated=5)
    window = make_window()
    window.open_project(tmp_path / "project")
    window.project_pane.runs.selectAll()
    action = window.project_pane.compare_action
    assert window.project_pane.compare_button.isVisible() and not action.isEnabled()
    assert action.toolTip() == "align-0002 has no tables of PSMs, peptides and protein groups to compare"
    qtbot.waitUntil(lambda: not window.results.is_busy)

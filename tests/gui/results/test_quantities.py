"""Tests of the quantification view with X events: volcano plot, linked tables, dragged boundaries, figures, export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.drawings import Cells, Points
from proteoscope.engine.views.quantity_traces import Border
from proteoscope.gui.plots.drawing_view import DrawingView
from proteoscope.gui.results.export import ExportDialog
from proteoscope.gui.results.quantity_view import QuantityView
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.quantification.synthetic_sites import localised_project, log2_site, quantify_sites
from tests.engine.views.quantity_projects import FILES, PER_PROTEIN, PROTEINS, quantified_project
from tests.gui.result_views import click_row, cut_off, opened, overlapping, settle, shown
from tests.gui.x_events import Hand, x_events_problem


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return quantified_project(tmp_path_factory.mktemp("quantified"))


@pytest.fixture
def view(project: Project, qtbot: QtBot, theme: Theme) -> Iterator[QuantityView]:
    widget = QuantityView(search_of_kind("quantify"))
    opened(widget, project, qtbot)
    yield widget
    widget.clear()
    for row in project.row_corrections(project.latest("quantify") or "", "ion_traces"):
        project.set_row_correction(project.latest("quantify") or "", "ion_traces", row, {})


@pytest.fixture
def hand(view: QuantityView, qtbot: QtBot) -> Iterator[Hand]:
    if x_events_problem():
        pytest.skip(x_events_problem())
    view.window().move(0, 0)
    view.resize(1280, 760)
    settle(view, qtbot)
    made = Hand(qtbot)
    yield made
    made.close()


def place_of_target(drawing: DrawingView, target: int) -> QPoint:
    """Return the position of a dot."""
    assert drawing.drawing is not None
    for shape in drawing.drawing.shapes:
        if isinstance(shape, Points):
            for at in np.flatnonzero(shape.targets == target).tolist():
                return QPoint(round(float(shape.x[at])), round(float(shape.y[at])))
    raise AssertionError(f"{target} is not drawn")


def test_volcano_dot_and_table_row_select_each_other(view: QuantityView, hand: Hand, qtbot: QtBot) -> None:
    accessions = shown(view.changes, "accession")
    assert view.changes.view.chosen == 0 and view.volcano.marked == 0 and len(accessions) == PROTEINS
    hand.click(view.volcano, place_of_target(view.volcano, 4))
    qtbot.waitUntil(lambda: view.changes.view.chosen == 4)
    settle(view, qtbot)
    chosen = accessions[4]
    assert shown(view.proteins, "accession")[view.proteins.view.currentIndex().row()] == chosen
    assert view.profile.drawing is not None and view.profile.drawing.title.startswith(f"{chosen} and {PER_PROTEIN} peptides")
    assert set(shown(view.peptides, "accession")) == {chosen} and view.peptides.scope_text == f"of {chosen}"
    assert view.volcano.marked == 4
    view.tables.setCurrentWidget(view.proteins)
    settle(view, qtbot)
    click_row(view.proteins, 2, qtbot)
    settle(view, qtbot)
    other = shown(view.proteins, "accession")[2]
    assert view.volcano.marked == accessions.index(other) == view.changes.view.chosen
    assert view.profile.drawing is not None and view.profile.drawing.title.startswith(other)


def test_quantity_figures_are_empty_without_a_selected_row(view: QuantityView, qtbot: QtBot) -> None:
    assert view.profile.drawing is not None and view.traces.traces is None
    view.filters.text.setText("no such protein")
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    assert view.profile.drawing is None and view.volcano.marked is None and view.traces.traces is None
    assert view.changes.view.chosen is None and view.proteins.view.chosen is None
    view.filters.reset_button.click()
    settle(view, qtbot)
    # When the rows are shown again, the same row is selected and drawn.
    first = shown(view.changes, "accession")[0]
    assert view.changes.view.chosen is not None and set(shown(view.peptides, "accession")) == {first}
    assert view.profile.drawing is not None and view.profile.drawing.title.startswith(first)
    view.filters.changed.click()
    view.filters.fold_change.setValue(1.0)
    settle(view, qtbot)
    qtbot.waitUntil(lambda: len(view.changes.model.rows) == 4)


def test_dragged_integration_limit_updates_the_quantities(view: QuantityView, project: Project, hand: Hand, qtbot: QtBot) -> None:
    run = project.latest("quantify") or ""
    view.tables.setCurrentWidget(view.peptides)
    settle(view, qtbot)
    click_row(view.peptides, 0, qtbot)
    settle(view, qtbot)
    qtbot.waitUntil(lambda: view.traces.traces is not None)
    ion = view.traces.traces
    assert ion is not None and len(ion.traces) == 4
    place = next(at for at, trace in enumerate(ion.traces) if trace.begin is not None)
    trace, border = ion.traces[place], Border(place, True)
    assert trace.apex is not None and trace.begin is not None and trace.end is not None
    before = view._overview
    start, width = view.traces.border_point(border), 0.0
    begin = view.traces.border_point(Border(place, False))
    assert start is not None and begin is not None
    width = start.x() - begin.x()
    steps = 8
    hand.click(view.traces, start.toPoint())
    qtbot.waitUntil(lambda: view.traces.chosen == border)
    drag(hand, view.traces, start.toPoint(), QPoint(round(start.x() - 0.45 * width), round(start.y())), steps)
    qtbot.waitUntil(lambda: bool(project.row_corrections(run, "ion_traces")))
    settle(view, qtbot)
    qtbot.waitUntil(lambda: view.traces.traces is not None and view.traces.traces.traces[place].is_manual)
    changed = view.traces.traces
    assert changed is not None
    now = changed.traces[place]
    assert now.end is not None and now.end < trace.end and now.begin == trace.begin
    assert now.values["area"] < 0.8 * trace.values["area"]
    assert project.row_corrections(run, "ion_traces")[trace.row]["area"] == pytest.approx(now.values["area"])
    assert before is not None and view._overview is not None and not np.array_equal(before.peptides.log2, view._overview.peptides.log2)
    assert any("1 traces" in fact or "1 trace" in fact for fact in view.header.facts.split("·"))
    # The changed limit is shown again when the run is reopened, and is removed by undo.
    view.show_run(project, run)
    settle(view, qtbot)
    view.show_all("ion_traces")
    settle(view, qtbot)
    assert shown(view.ions, "source").count("manual") == 1
    view.traces.bordersReset.emit(0)  # This ion is not shown, so nothing changes.
    view.tables.setCurrentWidget(view.ions)
    view._choose_row(view.ions, trace.row)
    settle(view, qtbot)
    qtbot.waitUntil(lambda: view.traces.traces is not None)
    view.traces.choose(border)
    view.traces.reset_action.trigger()
    qtbot.waitUntil(lambda: not project.row_corrections(run, "ion_traces"))
    settle(view, qtbot)
    assert len(view.ions.model.rows) > 100 and "manual" not in shown(view.ions, "source")
    assert view._overview is not None and np.array_equal(before.peptides.log2, view._overview.peptides.log2, equal_nan=True)


def drag(hand: Hand, plot: QWidget, begin: QPoint, end: QPoint, steps: int) -> None:
    """Press at one position of a plot, move to another, and release."""
    for step in range(steps + 1):
        at = plot.mapToGlobal(begin + (end - begin) * step / steps)
        hand._test.XTestFakeMotionEvent(hand._display, -1, at.x(), at.y(), 0)
        if step == 0:
            hand._test.XTestFakeButtonEvent(hand._display, 1, True, 0)
        hand._done()
        hand._qtbot.wait(30)
    hand._test.XTestFakeButtonEvent(hand._display, 1, False, 0)
    hand._done()


def test_dragged_volcano_threshold_changes_filter_and_table(view: QuantityView, hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    view.filters.changed.click()
    settle(view, qtbot)
    drawing = view.volcano.drawing
    assert drawing is not None and view.filters.fold_change.value() == 0
    n_before = len(view.changes.model.rows)
    cut = next(handle for handle in drawing.handles if handle.is_upright)
    start, end = (QPoint(round(x), round(cut.start + 8)) for x in (cut.at, cut.at + 0.2 * (drawing.width - cut.at)))
    drag(hand, view.volcano, start, end, 6)
    qtbot.waitUntil(lambda: view.filters.fold_change.value() > 0)
    settle(view, qtbot)
    fold_change, drawing = view.filters.fold_change.value(), view.volcano.drawing
    assert drawing is not None
    qtbot.waitUntil(lambda: len(view.changes.model.rows) < n_before or n_before <= 4)
    assert {handle.name for handle in drawing.handles if abs(handle.at - end.x()) <= 2} == {"fold_change"}
    cut = next(handle for handle in drawing.handles if not handle.is_upright)
    start, end = (QPoint(round(cut.start + 5), round(y)) for y in (cut.at, cut.at - 12))
    drag(hand, view.volcano, start, end, 4)
    qtbot.waitUntil(lambda: view.filters.q_value.value() < 0.05)
    settle(view, qtbot)
    rows = list(zip(shown(view.changes, "log2_fold_change"), shown(view.changes, "q_value"), strict=True))
    assert rows and all(abs(change) >= fold_change and q <= view.filters.q_value.value() for change, q in rows)
    # The exported figure has the thresholds too.
    view.volcano.export_action.write(tmp_path / "volcano.svg")
    assert f"q-value ≤ {view.filters.q_value.value():.3g}, |log2| ≥ {fold_change:.3g}" in (tmp_path / "volcano.svg").read_text()


def test_click_on_heat_map_cell_selects_the_protein(view: QuantityView, qtbot: QtBot) -> None:
    heat_map = view.plots["heat-map"]
    view.figures.setCurrentWidget(heat_map)
    settle(view, qtbot)
    assert heat_map.drawing is not None
    (cells,) = [shape for shape in heat_map.drawing.shapes if isinstance(shape, Cells)]
    at = QPoint(round(cells.x + 5), round(cells.y + cells.height * 2.5 / len(cells.targets)))
    qtbot.mouseClick(heat_map, Qt.MouseButton.LeftButton, pos=at)
    settle(view, qtbot)
    row = int(cells.targets[2])
    assert view.tables.currentWidget() is view.proteins and heat_map.marked == row
    assert view.proteins.view.chosen == row


def test_click_on_dot_of_sample_figure_selects_the_row(view: QuantityView, qtbot: QtBot, tmp_path) -> None:
    view.figures.setCurrentIndex(2)
    settle(view, qtbot)
    at = place_of_target(view.plots["components"], 2)
    qtbot.mouseClick(view.plots["components"], Qt.MouseButton.LeftButton, pos=at)
    settle(view, qtbot)
    assert view.samples.view.chosen == 2 and view.plots["correlations"].marked == 2 and view.tables.currentWidget() is view.samples
    view.peptides.view.choose(0)
    settle(view, qtbot)
    qtbot.waitUntil(lambda: view.traces.traces is not None)
    for number, figure in enumerate((*view._drawings, view.traces)):
        for ending in ("svg", "pdf", "png"):
            figure.export_action.write(tmp_path / f"{number}.{ending}")
            assert (tmp_path / f"{number}.{ending}").stat().st_size > 500
    assert cut_off(view) == [] and overlapping(view.filters) == []


def test_quantities_by_spectral_counts_are_shown_without_traces(project: Project, tmp_path_factory, qtbot: QtBot, theme: Theme) -> None:
    counted = quantified_project(
        tmp_path_factory.mktemp("counted"), "file\tsample\tcondition\treplicate\nmade_heat_1\ta\tx\t1\n", method="counts"
    )
    widget = QuantityView(search_of_kind("quantify"))
    opened(widget, counted, qtbot)
    assert widget.text == "" and widget.tables.currentWidget() is widget.proteins and widget.volcano.drawing is None
    assert not widget.tables.isTabVisible(widget.tables.indexOf(widget.ions)) and not widget.details.isTabVisible(1)
    assert widget.profile.drawing is not None
    widget.clear()


def test_selected_site_selects_its_protein_and_volcano_dot(tmp_path: Path, view: QuantityView, qtbot: QtBot, theme: Theme) -> None:
    assert not view.tables.isTabVisible(view.tables.indexOf(view.sites))  # nothing is localised in its run
    path, _ = localised_project(tmp_path)
    quantify_sites(path)
    widget = QuantityView(search_of_kind("quantify"))
    opened(widget, Project.open(path), qtbot)
    assert widget.tables.isTabVisible(widget.tables.indexOf(widget.sites)) and widget.sites.view.chosen is None
    widget.tables.setCurrentWidget(widget.sites)
    settle(widget, qtbot)
    accessions = shown(widget.sites, "accession")
    assert shown(widget.sites, "fold_change") == pytest.approx([log2_site(int(name[1:])) for name in accessions], abs=0.25)
    at = accessions.index("P04")
    click_row(widget.sites, at, qtbot)
    settle(widget, qtbot)
    assert widget.sites.view.chosen == at
    changes = shown(widget.changes, "accession")
    assert widget.volcano.marked == widget.changes.view.chosen == changes.index("P04")
    assert shown(widget.proteins, "accession")[widget.proteins.view.currentIndex().row()] == "P04"
    assert set(shown(widget.peptides, "accession")) == {"P04"}
    # The fold changes are those of the selected comparison: here, of the reversed one.
    changes_of_sites = np.array(shown(widget.sites, "fold_change"))
    for comparison, sign in (("control / heat", -1), ("heat / control", 1)):
        if sign < 0:
            widget.filters.comparison.addItem(comparison, comparison)
        widget.filters.comparison.setCurrentIndex(widget.filters.comparison.findData(comparison))
        widget.filters.comparison.activated.emit(widget.filters.comparison.currentIndex())
        settle(widget, qtbot)
        assert shown(widget.sites, "fold_change") == pytest.approx((sign * changes_of_sites).tolist())
    assert widget.profile.drawing is not None and widget.profile.drawing.title.startswith("P04")
    assert cut_off(widget) == []
    # A protein selected elsewhere is not the protein of the site.
    widget.tables.setCurrentWidget(widget.proteins)
    settle(widget, qtbot)
    click_row(widget.proteins, shown(widget.proteins, "accession").index("P06"), qtbot)
    settle(widget, qtbot)
    assert widget.sites.view.chosen is None and widget.volcano.marked == changes.index("P06")
    # The text of the filter selects sites too; a site that it hides is no longer shown in the figures.
    click_row(widget.sites, at, qtbot)
    widget.filters.text.setText("P02")
    widget.filters.text.returnPressed.emit()
    settle(widget, qtbot)
    assert shown(widget.sites, "accession") == ["P02"] and widget.volcano.marked != changes.index("P04")
    widget.clear()


@pytest.mark.parametrize("kind", ["explain", pytest.param("modified", marks=pytest.mark.long)])
def test_quantify_button_above_other_results_opens_the_form(window: MainWindow, qtbot: QtBot, identified_sample: Path, kind: str) -> None:
    goes_on = {"explain": [str(identified_sample)], "modified": ["--from-project", str(identified_sample), "--out", str(identified_sample)]}
    options = ["--preset", search_of_kind(kind).demo.preset, "--device", "cpu", "--threads", "2", "--quiet"]
    assert main([kind, *goes_on[kind], *options]) == 0
    window.open_project(identified_sample)
    results = window.searches[kind].results
    qtbot.waitUntil(lambda: window.pages.currentWidget() is results)
    settle(results, qtbot)
    results.follow_ups["quantify"].trigger()
    form = window.searches["quantify"].form
    qtbot.waitUntil(lambda: window.pages.currentWidget() is form)
    run = Project.open(identified_sample).latest(kind)
    assert form.parameters.values()["run"] in (run, (run,))
    form.presets.choose("counts")
    assert form.parameters.values()["run"] in (run, (run,)), "a preset contains no run"
    qtbot.waitUntil(lambda: len(form.designs["design"].model.table.rows) == 1)
    qtbot.waitUntil(form.run_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000) as finished:
        form.run_button.click()
    assert finished.args[0].state == "done", finished.args[0].error
    assert Project.open(identified_sample).latest("quantify") is not None


def test_quantities_are_exported_from_the_window_in_all_formats(window: MainWindow, project: Project, qtbot: QtBot, tmp_path) -> None:
    window.open_project(project.folder)
    results = window.searches["quantify"].results
    settle(results, qtbot)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is results)
    window.menus.export.trigger()
    dialog = results.findChild(ExportDialog)
    assert dialog is not None
    # Figures have three types.
    assert len(dialog.nameFilters()) == len(search_of_kind("quantify").exports) + 2
    with qtbot.waitSignal(window.bridge.finished) as finished:
        dialog.fileSelected.emit(str(tmp_path / "mine"))
        dialog.close()
    assert finished.args[0].state == "done", finished.args[0].error
    assert (tmp_path / "mine" / "protein_changes.tsv").read_text().count("\n") == PROTEINS + 1
    # Exported figures have the thresholds that the view shows.
    results.filters.set_cut("fold_change", 1.5)
    settle(results, qtbot)
    window.menus.export.trigger()
    dialog = next(shown for shown in results.findChildren(ExportDialog) if shown.isVisible())
    dialog.selectNameFilter(next(name for name in dialog.nameFilters() if name.endswith("as SVG, in a new folder (*)")))
    with qtbot.waitSignal(window.bridge.finished) as finished:
        dialog.fileSelected.emit(str(tmp_path / "figures"))
        dialog.close()
    assert finished.args[0].state == "done", finished.args[0].error
    assert "|log2| ≥ 1.5" in (tmp_path / "figures" / "volcano.svg").read_text()


def test_quantity_view_is_not_widened_by_long_sample_names(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    rows = [(name, f"{i}{'w' * 998}", ("<b>a / b" * 100, "c d" * 300)[i // 2], i % 2 + 1) for i, name in enumerate(FILES)]
    lines = ["\t".join(map(str, row)) for row in [("file", "sample", "condition", "replicate"), *rows]]
    view = QuantityView(search_of_kind("quantify"))
    opened(view, quantified_project(tmp_path, "\n".join(lines)), qtbot)
    view.filters.open([f"{first * 900} / {second}" for first, second in ("xy", "xz")], 0.05)
    view.resize(1024, 700)
    settle(view, qtbot)
    assert view.width() == 1024 and cut_off(view) == [] and overlapping(view.filters) == []
    assert view.filters.chosen.comparison == f"{'x' * 900} / y"
    view.clear()

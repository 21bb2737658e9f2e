"""Tests of the list of all spectra of a real run: identified or not, by time, and on the map."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from pytestqt.qtbot import QtBot

from proteoscope import resources
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project, RunInput
from proteoscope.engine.spectra.tables import write_spectra
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.theme import Theme
from tests.engine.identification_tables import identification
from tests.engine.views.result_projects import PARAMETERS, project_with_results
from tests.gui.result_views import click_row, cut_off, opened, settle, shown


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Project with the spectra of the supplied run, some of them with arbitrary identifications."""
    folder = tmp_path_factory.mktemp("all spectra")
    file = folder / "BSA1.mzML"
    with gzip.open(resources.path("samples", "BSA1.mzML.gz")) as packed:
        file.write_bytes(packed.read())
    results = identification(n_spectra=60)
    project = Project.create_or_open(folder / "p")
    with project.run("identify", PARAMETERS, [RunInput(file, "spectra")]) as run:
        for name in ("psms", "peptides", "proteins"):
            run.write_table(name, getattr(results, name).sort_by([("score" if name == "psms" else "q_value", "descending")]))
        write_spectra(run, read_spectra([file]), Progress())
    return project


@pytest.fixture
def view(project: Project, qtbot: QtBot, theme: Theme) -> Iterator[IdentificationView]:
    view = IdentificationView()
    opened(view, project, qtbot)
    yield view
    view.clear()


def test_chromatogram_of_each_file_has_its_spectra(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    files = [tmp_path / name / "run.mzML" for name in ("BSA1", "BSA2")]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(gzip.decompress(resources.path("samples", f"{file.parent.name}.mzML.gz").read_bytes()))
    results, spectra = identification(n_spectra=60), read_spectra(files)
    project = Project.create_or_open(tmp_path / "p")
    with project.run("identify", PARAMETERS, [RunInput(file, "spectra") for file in files]) as run:
        for name in ("psms", "peptides", "proteins"):
            run.write_table(name, getattr(results, name).sort_by([("score" if name == "psms" else "q_value", "descending")]))
        write_spectra(run, spectra, Progress())
    view = IdentificationView()
    opened(view, project, qtbot)
    page = view.spectra.chromatogram
    view.tabs.setCurrentWidget(page)
    settle(view, qtbot)
    for at, name in enumerate(("BSA1/run.mzML", "BSA2/run.mzML")):
        page.file.setCurrentIndex(at)
        page.file.activated.emit(at)
        settle(view, qtbot)
        assert page.file.currentText() == name
        assert page.plot.chromatogram is not None and len(page.plot.chromatogram) == np.count_nonzero(spectra.file == at)
    view.clear()


def test_list_of_all_spectra_has_every_spectrum_of_the_run(view: IdentificationView, project: Project, qtbot: QtBot) -> None:
    table = view.spectra.panel.table
    assert table.total == 0, "nothing is read before it is visible"
    view.lists.setCurrentIndex(1)
    settle(view, qtbot)
    stored = pq.read_table(project.table("spectra"), columns=["scan", "n_peaks"]).to_pylist()
    assert table.total == len(stored) == len(table.model.rows)
    assert shown(table, "n_peaks")[:50] == [row["n_peaks"] for row in stored[:50]]
    identified = shown(table, "is_identified")
    plain = identified.index(False)
    click_row(table, plain, qtbot)
    settle(view, qtbot)
    assert view.pane.mirror.isVisible() and view.pane.mirror.spectra is not None
    assert len(view.pane.mirror.spectra.upper.peaks.mz) == stored[plain]["n_peaks"]
    assert f"scan {stored[plain]['scan']}" in view.pane.mirror.title
    assert not view.pane.marks.isVisible(), "there is no PSM to mark"
    named = identified.index(True)
    click_row(table, named, qtbot)
    settle(view, qtbot)
    assert view.pane.spectrum.isVisible() and view.spectrum.spectrum is not None
    peptide = str(view.spectrum.spectrum.peptidoform).rpartition("/")[0]
    assert peptide == shown(table, "peptide")[named]
    assert not cut_off(view.spectra.panel)
    view.lists.setCurrentIndex(0)
    settle(view, qtbot)
    row = view.psms.view.chosen
    assert row is not None and view.pane.row == row, "the figure belongs to the visible list"


def test_list_of_all_spectra_is_filtered_and_sorted(view: IdentificationView, qtbot: QtBot) -> None:
    panel = view.spectra.panel
    view.lists.setCurrentIndex(1)
    settle(view, qtbot)
    panel.state.setCurrentIndex(1)
    panel.state.activated.emit(1)
    settle(view, qtbot)
    n_identified = len(panel.table.model.rows)
    assert 0 < n_identified < panel.table.total and set(shown(panel.table, "is_identified")) == {True}
    panel.state.setCurrentIndex(2)
    panel.state.activated.emit(2)
    settle(view, qtbot)
    assert len(panel.table.model.rows) == panel.table.total - n_identified
    panel.table.model.show(order=[("total_ion_current", True)])
    settle(view, qtbot)
    current = shown(panel.table, "total_ion_current")[:200]
    assert current == sorted(current, reverse=True)
    panel.text.setText("no such peptide")
    panel.text.returnPressed.emit()
    settle(view, qtbot)
    assert len(panel.table.model.rows) == 0 and view.pane.mirror.spectra is None and "Select a spectrum" in view.spectrum.text


def test_chromatogram_and_run_map_mark_and_select_spectra(view: IdentificationView, project: Project, qtbot: QtBot, tmp_path: Path) -> None:
    page = view.spectra.chromatogram
    view.tabs.setCurrentWidget(page)
    settle(view, qtbot)
    stored = pq.read_table(project.table("spectra"), columns=["retention_time", "total_ion_current", "scan"]).to_pylist()
    assert page.plot.chromatogram is not None and len(page.plot.chromatogram) == len(stored)
    details = view.pane._shown.details  # type: ignore[union-attr]
    assert page.plot.marked == pytest.approx(details["retention_time"] / 60)
    at = page.plot.inner().center().toPoint()
    expected = page.plot.chromatogram.nearest(page.plot.values_at(QPointF(at))[1])  # type: ignore[index]
    qtbot.mouseClick(page.plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
    settle(view, qtbot)
    assert view.lists.currentWidget() is view.spectra.panel
    chosen = view.spectra.panel.table.view.chosen
    assert chosen is not None and stored[chosen]["retention_time"] == pytest.approx(stored[expected or 0]["retention_time"], abs=3)
    page.plot.export_action.write(tmp_path / "tic.svg")
    assert "Total ion current (MS2)" in (tmp_path / "tic.svg").read_text()
    page.plot.export_action.write(tmp_path / "tic.pdf")

    page.kind.setCurrentIndex(2)
    page.kind.activated.emit(2)
    settle(view, qtbot)
    assert page.plot.chromatogram.title == "Total ion current (MS1)" and len(page.plot.chromatogram) > 100
    page.kind.setCurrentIndex(4)
    page.kind.activated.emit(4)
    page.mz.setValue(722.325)
    settle(view, qtbot)
    assert page.plot.chromatogram.title == "m/z 722.3250 ± 10 ppm" and page.plot.chromatogram.intensity.max() > 1e6
    page.tolerance.setText("wide")
    page.tolerance.editingFinished.emit()
    assert "not a tolerance" in page.plot.text and page.plot.chromatogram is None

    view.tabs.setCurrentWidget(view.spectra.map)
    settle(view, qtbot)
    points = view.spectra.map.points
    assert points is not None and len(points) == len(stored) and points.counts[1] > 0
    marked = view.spectra.map.marked
    assert marked is not None and points.spectrum[marked] == chosen
    other = int(np.flatnonzero(points.spectrum != chosen)[0])
    view.spectra.map.spectrumChosen.emit(int(points.spectrum[other]))
    settle(view, qtbot)
    assert view.spectra.panel.table.view.chosen == points.spectrum[other]
    view.spectra.map.export_action.write(tmp_path / "map.pdf")
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")


def test_list_of_all_spectra_reports_spectra_that_are_not_stored(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    without, _ = project_with_results(tmp_path / "without", with_spectra=False)
    view = IdentificationView()
    opened(view, without, qtbot)
    view.lists.setCurrentIndex(1)
    view.tabs.setCurrentWidget(view.spectra.chromatogram)
    settle(view, qtbot)
    assert "are not stored" in view.spectra.panel._empty_reason()
    assert "are not stored" in view.spectra.chromatogram.plot.text and "are not stored" in view.spectra.map.text
    view.clear()

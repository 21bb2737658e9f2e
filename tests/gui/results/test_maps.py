"""The map of a run and the list of its spectra, of identifications of every kind: beside the run's own file, read by another program, and
beside the tables that the run exports."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtWidgets import QTabWidget
from pytestqt.qtbot import QtBot

import resources
from engine.project import Project
from engine.searches import run_search, search_of_kind
from engine.views.run_map import IDENTIFIED
from gui.results.identification_view import IdentificationView
from gui.results.library_view import LibraryView
from gui.theme import Theme
from tests.engine.library_search.test_search import compound_entries, files
from tests.gui.result_views import click_row, cut_off, opened, settle, shown

__all__ = ["files"]

_VIEWS: dict[str, Callable[[], IdentificationView | LibraryView]] = {
    "identify": lambda: IdentificationView(search_of_kind("identify")),
    "import": lambda: IdentificationView(search_of_kind("import")),
    "library": lambda: LibraryView(search_of_kind("library")),
}
_FDR = 0.05
_MATCHES = {"identify": "psms.tsv", "import": "psms.tsv", "library": "matches.tsv"}


@pytest.fixture(scope="module", params=tuple(_VIEWS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Project]:
    """The demo of a search that identifies spectra."""
    kind = request.param
    demo = search_of_kind(kind).demo
    assert demo is not None
    inputs = {name: [resources.path("samples", file)] for name, file in demo.samples.items()}
    folder = tmp_path_factory.mktemp(kind) / "p"
    run_search(kind, inputs, project=folder, preset=demo.preset, device="cpu", fdr=_FDR)
    return kind, Project.open(folder)


@pytest.fixture
def view(run: tuple[str, Project], qtbot: QtBot, theme: Theme) -> Iterator[IdentificationView | LibraryView]:
    view = _VIEWS[run[0]]()
    opened(view, run[1], qtbot)
    yield view
    view.clear()


def _figures(view: IdentificationView | LibraryView) -> QTabWidget:
    return view.figures if isinstance(view, LibraryView) else view.tabs


def _lists(view: IdentificationView | LibraryView) -> QTabWidget:
    return view.tables if isinstance(view, LibraryView) else view.lists


def _of_file() -> dict[int, tuple[float, float]]:
    """Minutes and m/z of the tandem mass spectra of the sample, by scan, as its XML has them."""
    found: dict[int, tuple[float, float]] = {}
    with gzip.open(resources.path("samples", "BSA1.mzML.gz")) as file:
        for _, one in ElementTree.iterparse(file):
            if not one.tag.endswith("}spectrum"):
                continue
            told = {term.get("accession"): term for term in one.iter() if term.tag.endswith("}cvParam")}
            if told["MS:1000511"].get("value") == "2":
                scan, time = int(one.get("id", "").rpartition("=")[2]), told["MS:1000016"]
                seconds = float(time.get("value", "")) * (60 if time.get("unitName") == "minute" else 1)
                found[scan] = seconds / 60, float(told["MS:1000744"].get("value", ""))
            one.clear()
    return found


def _accepted(kind: str, project: Project) -> set[int]:
    """Scans of the accepted matches, as the run's exported table has them."""
    folder = next(project.folder.rglob(_MATCHES[kind])).parent
    with (folder / _MATCHES[kind]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {int(row["scan"]) for row in rows if float(row["q_value"]) <= _FDR and row.get("is_decoy", "false").lower() != "true"}


def test_the_map_has_every_spectrum_at_its_place_and_knows_the_identified(
    run: tuple[str, Project], view: IdentificationView | LibraryView, qtbot: QtBot
) -> None:
    kind, project = run
    tabs = _figures(view)
    assert view.spectra.map.points is None, "nothing is read before somebody looks"
    tabs.setCurrentWidget(view.spectra.map)
    settle(view, qtbot)
    points = view.spectra.map.points
    assert points is not None and points.scan is not None and points.has_times
    expected = _of_file()
    assert len(points) + points.n_missing == len(expected) and len(points) > 500
    for scan, x, mz in zip(points.scan.tolist(), points.x.tolist(), points.mz.tolist(), strict=True):
        assert (x, mz) == pytest.approx(expected[scan], rel=1e-5)
    accepted = _accepted(kind, project)
    assert set(points.scan[points.status == IDENTIFIED].tolist()) == accepted and accepted


def test_a_point_of_the_map_leads_to_its_spectrum(view: IdentificationView | LibraryView, qtbot: QtBot) -> None:
    _figures(view).setCurrentWidget(view.spectra.map)
    settle(view, qtbot)
    points = view.spectra.map.points
    assert points is not None
    mirror = view.mirror if isinstance(view, LibraryView) else view.pane.mirror
    for status in (IDENTIFIED, 0):
        at = int(np.flatnonzero(points.status == status)[0])
        view.spectra.map.spectrumChosen.emit(int(points.spectrum[at]))
        settle(view, qtbot)
        table = view.spectra.panel.table
        assert _lists(view).currentWidget() is view.spectra.panel and table.view.chosen == points.spectrum[at]
        assert view.spectra.map.canvas.marked == at
        if status == IDENTIFIED and isinstance(view, LibraryView):
            assert mirror.spectra is not None and mirror.spectra.lower is not None and "resembles" in mirror.title
        elif status == IDENTIFIED:
            assert view.spectrum.spectrum is not None
        else:
            assert mirror.spectra is not None and mirror.spectra.lower is None
            assert f"m/z {points.mz[at]:.2f}"[:-1] in mirror.title
    assert not cut_off(view.spectra.panel)


@pytest.mark.parametrize("run", ["library"], indirect=True)
def test_the_figure_belongs_to_the_list_in_sight_and_the_map_marks_it(view: LibraryView, qtbot: QtBot) -> None:
    """Of an identification that is tested with all its spectra."""
    _figures(view).setCurrentWidget(view.spectra.map)
    settle(view, qtbot)
    click_row(view.matches, 3, qtbot)
    settle(view, qtbot)
    values = view.matches.model.values(3)
    points, marked = view.spectra.map.points, view.spectra.map.canvas.marked
    assert values is not None and points is not None and marked is not None and points.spectrum[marked] == values["spectrum"]
    of_match = view.mirror.title
    view.tables.setCurrentWidget(view.spectra.panel)
    settle(view, qtbot)
    view.spectra.panel.state.setCurrentIndex(2)
    view.spectra.panel.state.activated.emit(2)
    settle(view, qtbot)
    assert not any(shown(view.spectra.panel.table, "is_identified"))
    assert view.mirror.spectra is not None and view.mirror.spectra.lower is None
    view.tables.setCurrentIndex(0)
    settle(view, qtbot)
    assert view.mirror.title == of_match
    view.filters.text.setText("no such entry")
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    assert view.mirror.spectra is None


def test_spectra_of_small_molecules_are_identified_on_the_map(files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    """Of a library without decoys, whose matches have no q-values and no peptides."""
    run, library = files
    entries, spectra = compound_entries(3)
    library.write_text(entries)
    run.write_text(run.read_text() + "\n" + spectra)
    run_search("library", {"spectra": [run], "library": [library]}, project=tmp_path / "p", device="cpu", decoys="none")
    view = LibraryView(search_of_kind("library"))
    opened(view, Project.open(tmp_path / "p"), qtbot)
    view.tables.setCurrentWidget(view.spectra.panel)
    settle(view, qtbot)
    names = [name for name in shown(view.spectra.panel.table, "peptide") if name]
    assert len(names) == 3 == view.matches.total and all("Compound" in name for name in names)
    view.clear()

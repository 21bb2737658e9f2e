"""Tests of the map of a run and its list of spectra, for all searches of spectra.

They are compared with the run's file, read by another program, and with the exported tables."""

from __future__ import annotations

import base64
import csv
import gzip
import shutil
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtWidgets import QTabWidget
from pytestqt.qtbot import QtBot

from proteoscope import resources
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search, search_of_kind
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.run_account import run_title
from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED
from proteoscope.engine.views.spectrum_list import open_spectrum_list
from proteoscope.gui.results.explanation_view import ExplanationView
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.results.library_view import LibraryView
from proteoscope.gui.results.modified_view import ModifiedView
from proteoscope.gui.theme import Theme
from tests.engine.library_search.test_search import compound_entries, files
from tests.gui.result_views import SharedView, click_row, cut_off, opened, settle, shown

__all__ = ["files"]

AnyView = IdentificationView | LibraryView | ModifiedView | ExplanationView
_VIEWS: dict[str, Callable[[], AnyView]] = {
    "identify": lambda: IdentificationView(search_of_kind("identify")),
    "import": lambda: IdentificationView(search_of_kind("import")),
    "library": lambda: LibraryView(search_of_kind("library")),
    "modified": lambda: ModifiedView(search_of_kind("modified")),
    "explain": lambda: ExplanationView(search_of_kind("explain")),
}
_FDR = 0.05
_MATCHES = {"identify": "psms.tsv", "import": "psms.tsv", "library": "matches.tsv", "modified": "psms.tsv", "explain": "explained.tsv"}


def _run_demo(kind: str, folder: Path, database: Path) -> None:
    """Run the demo of a search that matches spectra in a project, with some of its proteins."""
    demo = search_of_kind(kind).demo
    assert demo is not None
    # The tests know the first run.
    inputs = {name: files[:1] for name, files in demo.inputs.items()}
    inputs |= {"database": [database]} if "database" in inputs else {}
    inputs |= {"project": [folder]} if kind == "explain" else {}
    options = {"from_project": str(folder)} if kind == "modified" else {}
    more: dict[str, Any] = {"peptide_fdr": _FDR} if kind == "explain" else {}
    project = None if kind == "explain" else folder
    run_search(kind, inputs, project=project, preset=demo.preset, options=options, device="cpu", fdr=_FDR, **more)
    # The next run replaces the exports.
    shutil.copy(folder / "exports" / _MATCHES[kind], folder.parent / f"{kind}.tsv")


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory, small_database: Path) -> Path:
    """Folder of the project with the identification that other runs continue, and its matches."""
    folder = tmp_path_factory.mktemp("identified")
    _run_demo("identify", folder / "p", small_database)
    return folder


@pytest.fixture(scope="module", params=tuple(_VIEWS))
def run(
    request: pytest.FixtureRequest, identified: Path, tmp_path_factory: pytest.TempPathFactory, small_database: Path
) -> tuple[str, Project]:
    """Demo of a search that matches spectra, run after the identification if it continues one."""
    kind = request.param
    demo = search_of_kind(kind).demo
    assert demo is not None and demo.after in ("", "identify", "import")
    if kind == "identify":
        return kind, Project.open(identified / "p")
    folder = tmp_path_factory.mktemp(kind)
    if demo.after:
        shutil.copytree(identified, folder, dirs_exist_ok=True)
    _run_demo(kind, folder / "p", small_database)
    return kind, Project.open(folder / "p")


class _Opened(NamedTuple):
    opened_view: SharedView[Any]
    is_map_in_sight: bool
    is_map_read: bool
    """True if the map was read before any test."""


@pytest.fixture(scope="module")
def at_first(run: tuple[str, Project], request: pytest.FixtureRequest) -> Iterator[_Opened]:
    view = _VIEWS[run[0]]()
    first_view = SharedView(view, run[1], request)
    yield _Opened(first_view, _figures(view).currentWidget() is view.spectra.map, view.spectra.map.points is not None)
    first_view.close()


@pytest.fixture
def view(at_first: _Opened, theme: Theme, qtbot: QtBot) -> AnyView:
    shown: AnyView = at_first.opened_view.as_opened(qtbot)
    return shown


def _figures(view: AnyView) -> QTabWidget:
    return view.tabs if isinstance(view, IdentificationView) else view.figures


def _lists(view: AnyView) -> QTabWidget:
    return view.lists if isinstance(view, IdentificationView) else view.tables


class _SpectrumFacts(NamedTuple):
    """Minutes, precursor m/z (0 for an MS1 spectrum), and the sum of the peak intensities."""

    minutes: float
    mz: float
    total: float


@cache
def _of_file(level: int) -> dict[int, _SpectrumFacts]:
    """Return the spectra of the sample at an MS level by scan, read from its XML."""
    spectra: dict[int, _SpectrumFacts] = {}
    with gzip.open(resources.path("samples", "BSA1.mzML.gz")) as file:
        for _, element in ElementTree.iterparse(file):
            if not element.tag.endswith("}spectrum"):
                continue
            terms = {term.get("accession"): term for term in element.iter() if term.tag.endswith("}cvParam")}
            if terms["MS:1000511"].get("value") == str(level):
                scan, time = int(element.get("id", "").rpartition("=")[2]), terms["MS:1000016"]
                minutes = float(time.get("value", "")) / (1 if time.get("unitName") == "minute" else 60)
                mz = float(terms["MS:1000744"].get("value", "")) if level > 1 else 0.0
                spectra[scan] = _SpectrumFacts(minutes, mz, _total(element))
            element.clear()
    return spectra


def _total(spectrum: ElementTree.Element) -> float:
    for array in spectrum.iter():
        terms = {term.get("accession") for term in array if term.tag.endswith("}cvParam")}
        if array.tag.endswith("}binaryDataArray") and "MS:1000515" in terms:
            packed = base64.b64decode(next(element.text or "" for element in array if element.tag.endswith("}binary")))
            plain = zlib.decompress(packed) if "MS:1000574" in terms else packed
            return float(np.frombuffer(plain, "<f8" if "MS:1000523" in terms else "<f4").sum(dtype=np.float64))
    return 0.0


def _accepted(kind: str, project: Project) -> dict[int, str]:
    """Return the peptides of the accepted matches by scan, from the exported table of the run of a kind.

    The table of explained spectra has no scans; they are the last part of the spectrum names in this file."""
    with (project.folder.parent / f"{kind}.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    accepted = [row for row in rows if row["q_value"] and float(row["q_value"]) <= _FDR and row.get("is_decoy", "false").lower() != "true"]
    return {int(row.get("scan") or row["spectrum_id"].rpartition("=")[2]): row["peptide"] for row in accepted}


def test_run_map_has_every_spectrum_with_its_identification(
    run: tuple[str, Project], at_first: _Opened, view: AnyView, qtbot: QtBot
) -> None:
    kind, project = run
    assert at_first.is_map_read == at_first.is_map_in_sight, "nothing is read before it is visible"
    _figures(view).setCurrentWidget(view.spectra.map)
    settle(view, qtbot)
    points = view.spectra.map.points
    assert points is not None and points.scan is not None and points.has_times
    expected = _of_file(2)
    assert len(points) + points.n_missing == len(expected) and len(points) > 500
    for scan, x, mz in zip(points.scan.tolist(), points.x.tolist(), points.mz.tolist(), strict=True):
        assert (x, mz) == pytest.approx(expected[scan][:2], rel=1e-5)
    scans = {status: set(points.scan[points.status == status].tolist()) for status in (IDENTIFIED, EXPLAINED)}
    accepted = set(_accepted(kind, project))
    assert accepted and accepted == scans[EXPLAINED if kind == "explain" else IDENTIFIED]
    assert scans[IDENTIFIED] == set(_accepted("identify", project)) if kind == "explain" else not scans[EXPLAINED]


def test_point_of_run_map_selects_the_spectrum(view: AnyView, qtbot: QtBot) -> None:
    _figures(view).setCurrentWidget(view.spectra.map)
    settle(view, qtbot)
    points = view.spectra.map.points
    assert points is not None
    mirror = view.pane.mirror if isinstance(view, IdentificationView) else view.mirror
    for status in np.unique(points.status).tolist():
        at = int(np.flatnonzero(points.status == status)[0])
        view.spectra.map.spectrumChosen.emit(int(points.spectrum[at]))
        settle(view, qtbot)
        table = view.spectra.panel.table
        assert _lists(view).currentWidget() is view.spectra.panel and table.view.chosen == points.spectrum[at]
        assert view.spectra.map.marked == at
        if status == EXPLAINED:
            assert mirror.spectra is not None and mirror.spectra.lower is not None
            assert f"resembles {shown(table, 'peptide')[int(points.spectrum[at])]}" in mirror.title
        elif status != IDENTIFIED:
            assert mirror.spectra is not None and mirror.spectra.lower is None
            assert f"m/z {points.mz[at]:.2f}"[:-1] in mirror.title
        elif isinstance(view, ExplanationView):
            assert mirror.spectra is not None and mirror.spectra.lower is None and mirror.spectra.upper.ions is not None
            assert f"identified as {shown(table, 'peptide')[int(points.spectrum[at])]}" in mirror.title
        elif isinstance(view, LibraryView):
            assert mirror.spectra is not None and mirror.spectra.lower is not None and "resembles" in mirror.title
        else:
            assert view.spectrum.spectrum is not None
            peptide = str(view.spectrum.spectrum.peptidoform).rpartition("/")[0]
            assert peptide == shown(table, "peptide")[int(points.spectrum[at])]
    assert not cut_off(view.spectra.panel)


@pytest.mark.parametrize(("name", "level"), [("total_ion_current", 2), ("surveys", 1)])
def test_chromatograms_equal_sums_of_intensities_in_the_file(view: AnyView, name: str, level: int, qtbot: QtBot) -> None:
    """Check a run that continues another and uses its file, too."""
    page = view.spectra.chromatogram
    _figures(view).setCurrentWidget(page)
    page.kind.setCurrentIndex(page.kind.findData(name))
    page.kind.activated.emit(page.kind.currentIndex())
    settle(view, qtbot)
    drawn, spectra = page.plot.chromatogram, sorted(_of_file(level).values())
    assert drawn is not None, page.plot.text
    assert drawn.minutes == pytest.approx([spectrum.minutes for spectrum in spectra], rel=1e-6)
    assert drawn.intensity == pytest.approx([spectrum.total for spectrum in spectra], rel=1e-5)


@pytest.mark.parametrize("run", ["explain"], indirect=True)
def test_list_of_spectra_has_the_state_of_each_spectrum(run: tuple[str, Project], view: ExplanationView, qtbot: QtBot) -> None:
    """Compare the outcomes with the tables that both runs export."""
    project, panel = run[1], view.spectra.panel
    assert " · identify-0001 · " in run_title(project, project.runs()[-1], view.search), "not that of a table"
    view.tables.setCurrentWidget(panel)
    settle(view, qtbot)
    ids = {"explained": _accepted("explain", project), "identified": _accepted("identify", project)}
    scans = set(_of_file(2))
    ids["unexplained"] = dict.fromkeys(scans - ids["explained"].keys() - ids["identified"].keys(), "")
    assert panel.table.total == len(scans)
    assert [panel.state.itemText(at) for at in range(panel.state.count())] == ["All", "Identified", "Explained", "Unexplained"]
    for at in (1, 2, 3):
        panel.state.setCurrentIndex(at)
        panel.state.activated.emit(at)
        settle(view, qtbot)
        state = panel.state.currentText().lower()
        with open_run(project) as finished:
            listed = open_spectrum_list(finished).values(panel.table.model.rows, ("scan", "peptide", "state")).to_pylist()
        assert {row["scan"]: row["peptide"] or "" for row in listed} == ids[state] and ids[state]
        assert {row["state"] for row in listed} == {state} == set(shown(panel.table, "state")[:20])


@pytest.mark.parametrize("run", ["library", "modified", "explain"], indirect=True)
def test_spectrum_figure_and_map_mark_follow_the_visible_list(view: LibraryView | ModifiedView | ExplanationView, qtbot: QtBot) -> None:
    """Check all views except identifications, whose list of all spectra is tested in `test_all_spectra.py`."""
    matches = view.matches if isinstance(view, LibraryView) else view.explained if isinstance(view, ExplanationView) else view.psms
    _figures(view).setCurrentWidget(view.spectra.map)
    settle(view, qtbot)
    last_row = len(matches.model.rows) - 1
    click_row(matches, last_row, qtbot)
    settle(view, qtbot)
    values = matches.model.values(last_row)
    points, marked = view.spectra.map.points, view.spectra.map.marked
    assert values is not None and points is not None and points.scan is not None and marked is not None
    assert points.scan[marked] == values["scan"]
    of_match = view.mirror.title
    view.tables.setCurrentWidget(view.spectra.panel)
    settle(view, qtbot)
    last = view.spectra.panel.state.count() - 1
    view.spectra.panel.state.setCurrentIndex(last)
    view.spectra.panel.state.activated.emit(last)
    settle(view, qtbot)
    of_state = "state" if isinstance(view, ExplanationView) else "is_identified"
    assert set(shown(view.spectra.panel.table, of_state)[:20]) <= {False, "unexplained"}
    assert view.mirror.spectra is not None and view.mirror.spectra.lower is None
    view.tables.setCurrentIndex(0)
    settle(view, qtbot)
    assert view.mirror.title == of_match
    view.filters.text.setText("no such entry")
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    assert view.mirror.spectra is None


def test_run_map_shows_small_molecule_matches_as_identified(files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    """Check a library without decoys, whose matches have no q-values and no peptides."""
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

"""Tests of exports from the window: every search in each of its formats, with a file name that fits the format."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QFileDialog, QLineEdit
from pytestqt.qtbot import QtBot

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.formats.libraries.writing import LIBRARY_FORMATS
from proteoscope.engine.identification.entry import IDENTIFICATION
from proteoscope.engine.jobs import Progress
from proteoscope.engine.matches.exports import PLACES_ON_GENOMES, SITES_FOR_PERSEUS
from proteoscope.engine.project import Project
from proteoscope.gui.results.export import ExportDialog, fitted
from proteoscope.gui.window import MainWindow
from tests.engine.views.result_projects import project_with_results, rows_of
from tests.gui.result_views import settle

FORMATS = {
    export.name: export
    for export in IDENTIFICATION.exports
    if export not in (*PLACES_ON_GENOMES, SITES_FOR_PERSEUS) and export.name not in LIBRARY_FORMATS
}
"""Formats of a run that neither translated nucleotides nor localised modifications.

Libraries need the spectra of a real run: tests/gui/test_libraries.py has them.
"""


@pytest.fixture(scope="session")
def identified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Project with an identification."""
    return project_with_results(tmp_path_factory.mktemp("identified") / "project")[0].folder


def test_identification_exports_of_window_and_engine_are_equal(window: MainWindow, identified: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = Project.open(Path(shutil.copytree(identified, tmp_path / "project")))
    window.open_project(project.folder)
    settle(window.results, qtbot)
    for format, export in FORMATS.items():
        window.message_bar.hide()
        window.menus.export.trigger()
        (dialog,) = [dialog for dialog in window.results.findChildren(ExportDialog) if dialog.isVisible()]
        assert dialog.directory().absolutePath() == str(tmp_path), "next to the project"
        dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
        dialog.selectNameFilter(next(nameFilter for nameFilter in dialog.nameFilters() if nameFilter.startswith(export.title)))
        with qtbot.waitSignal(window.bridge.finished) as finished:
            dialog.fileSelected.emit(str(tmp_path / f"mine {format}"))
            dialog.close()
        job = finished.args[0]
        assert job.state == "done", job.error_report or job.error
        expected = IDENTIFICATION.export(project, ExportRequest("identify-0001", format, tmp_path / f"expected {format}"), Progress())
        mine = f"mine {format}"
        written = [tmp_path / mine / path.name for path in expected] if export.is_folder else [tmp_path / f"{mine}{export.endings[0]}"]
        assert job.result == written and all(path.stat().st_size > 100 for path in written)
        for written_row, other in zip(written, expected, strict=True):
            assert _lines_without_times(written_row) == _lines_without_times(other)
        qtbot.waitUntil(window.message_bar.isVisible)
    names = ", ".join(path.name for path in written)
    said = f"Export results of identify-0001 to {'mine' if len(written) > 1 else names}: {names} written in "
    assert said in window.message_bar.label.text()


def _lines_without_times(path: Path) -> list[str]:
    """Return the lines of a file without those with its time or name."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if "creationDate" not in line and "date=" not in line]


def test_export_format_sets_the_file_name_suffix(window: MainWindow) -> None:
    dialog = ExportDialog("run", IDENTIFICATION.exports, window)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.open()
    name, formats = dialog.findChild(QLineEdit, "fileNameEdit"), dialog.findChild(QComboBox, "fileTypeCombo")
    assert name is not None and formats is not None and dialog.chosen.name == "tsv"
    formats.setFocus()
    seen = []
    for at in (2, 3, 4, 3, 2, 3, 0):
        formats.setCurrentIndex(at)
        formats.activated.emit(at)
        formats.textActivated.emit(formats.currentText())
        seen.append((dialog.chosen.name, name.text()))
    assert seen == [
        *(("mzid", "run.mzid"), ("pepxml", "run.pep.xml"), ("pin", "run.pin"), ("pepxml", "run.pep.xml")),
        *(("mzid", "run.mzid"), ("pepxml", "run.pep.xml"), ("tsv", "run")),
    ]
    dialog.close()


@pytest.mark.parametrize(
    ("name", "chosen", "expected"),
    [
        ("mine", "pepxml", ("mine.pep.xml", "pepxml")),
        ("mine.PEP.XML", "mzid", ("mine.PEP.XML", "pepxml")),
        ("mine.pepxml", "tsv", ("mine.pepxml", "pepxml")),
        ("mine", "tsv", ("mine", "tsv")),
        ("mine.xml", "mzid", ("mine.xml", "mzid")),
    ],
)
def test_file_name_suffix_selects_the_export_format(tmp_path: Path, name: str, chosen: str, expected: tuple[str, str]) -> None:
    path, format = fitted(tmp_path / name, FORMATS[chosen], IDENTIFICATION.exports)
    assert (path.name, format.name) == expected


def test_export_of_accepted_rows_has_the_numbers_of_the_header(window: MainWindow, identified: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = Project.open(Path(shutil.copytree(identified, tmp_path / "project")))
    window.open_project(project.folder)
    settle(window.results, qtbot)
    window.menus.export.trigger()
    (dialog,) = [dialog for dialog in window.results.findChildren(ExportDialog) if dialog.isVisible()]
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.selectNameFilter(next(name for name in dialog.nameFilters() if "accepted rows only" in name))
    with qtbot.waitSignal(window.bridge.finished) as finished:
        dialog.fileSelected.emit(str(tmp_path / "accepted"))
        dialog.close()
    assert finished.args[0].state == "done"
    messages: list[str] = []
    progress = Progress(lambda event: messages.append(event.message))
    IDENTIFICATION.export(project, ExportRequest("identify-0001", "tsv", tmp_path / "every"), progress)
    for name in ("psms", "peptides", "proteins"):
        rows = [row for row in rows_of(project, name) if not row["is_decoy"] and row["q_value"] <= 0.01]
        assert 0 < len(rows) == len((tmp_path / "accepted" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()) - 1
        n_rows = len((tmp_path / "every" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()) - 1
        if n_rows > len(rows):
            assert f"{name}.tsv: {len(rows):,} of {n_rows:,} rows are targets accepted at 1 % FDR" in messages

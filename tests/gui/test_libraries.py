"""Tests of spectral libraries made by the window, predicted or from a run, and of searches in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from proteoscope import resources
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.forms.file_inspection import file_kind
from proteoscope.gui.prediction_dialog import PredictionDialog
from proteoscope.gui.results.export import ExportDialog
from proteoscope.gui.window import MainWindow
from tests.engine.library_search.test_search import as_mgf, files, planted, rows_of
from tests.gui.test_window import click, drop

__all__ = ["files"]

PROTEINS = ">P1 of a test\nMKAADESTLRPEPTMIDECKLLNWWYEVAAAKGGSLNMVVK\n"


def shot(window: QWidget, name: str) -> None:
    """Save a screenshot if one is requested."""
    if folder := os.environ.get("PROTEOSCOPE_PICTURES"):
        window.grab().save(str(Path(folder) / f"{name}.png"))


@pytest.fixture
def dialog(window: MainWindow) -> PredictionDialog:
    next(action for action in window.findChildren(type(window.menus.export)) if action.text() == "&Predict a spectral library…").trigger()
    dialog = window.findChild(PredictionDialog)
    assert isinstance(dialog, PredictionDialog) and not dialog.action_button.isEnabled()
    return dialog


def test_predicted_library_is_written_and_searched_in_the_window(
    dialog: PredictionDialog, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    (tmp_path / "proteins.fasta").write_text(PROTEINS)
    dialog.proteins.add([tmp_path / "proteins.fasta"])
    qtbot.waitUntil(lambda: dialog.stage.text() == "Choose a file to write")
    dialog.parameters.set_values({"missed_cleavages": 0})
    dialog.out.line.setText(str(tmp_path / "made.msp"))
    qtbot.waitUntil(dialog.action_button.isEnabled)
    shot(dialog, "prediction-dialog")
    with qtbot.waitSignal(window.bridge.finished, timeout=120_000):
        click(dialog.action_button)
    assert dialog.stage.text().startswith("Done: ")
    assert {"AADESTLRPEPTMIDEC[Carbamidomethyl]K", "LLNWWYEVAAAK"} <= set(read_libraries([tmp_path / "made.msp"]).peptidoform.to_pylist())
    qtbot.waitUntil(
        (window.message_bar.button.isVisibleTo(window) and (lambda: True)) or (lambda: window.message_bar.button.isVisibleTo(window))
    )
    assert window.message_bar.button.text() == "Search spectra in it"
    click(window.message_bar.button)
    assert window.form is window.searches["library"].form
    assert window.form.file_lists["library"].paths == [tmp_path / "made.msp"]


def test_run_is_searched_in_the_library_exported_from_it(window: MainWindow, identified_sample: Path, tmp_path: Path, qtbot: QtBot) -> None:
    spectra = resources.path("samples", "BSA1.mzML.gz")
    window.open_project(identified_sample)
    qtbot.waitUntil(lambda: not window.results.is_busy)
    for title, name in (("MSP, best spectrum of each", "best.msp"), ("MSP", "own.msp")):
        window.menus.export.trigger()
        dialog = next(dialog for dialog in window.results.findChildren(ExportDialog) if dialog.isVisible())
        dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
        dialog.selectNameFilter(f"Spectral library, {title} (*.msp)")
        shot(dialog, "library-export")
        with qtbot.waitSignal(window.bridge.finished, timeout=60_000):
            dialog.fileSelected.emit(str(tmp_path / name))
            dialog.close()
    for name, consensus in (("best.msp", "best"), ("own.msp", "merged")):
        request = ExportRequest("identify-0001", "msp", tmp_path / f"expected-{name}", consensus=consensus)
        search_of_kind("identify").export(Project.open(identified_sample), request, Progress())
        assert (tmp_path / name).read_bytes() == (tmp_path / f"expected-{name}").read_bytes()
    assert (tmp_path / "best.msp").read_bytes() != (tmp_path / "own.msp").read_bytes()
    qtbot.waitUntil(lambda: window.message_bar.button.text() == "Search spectra in it")
    shot(window, "library-made")
    click(window.message_bar.button)
    form = window.searches["library"].form
    assert window.form is form
    assert form.file_lists["library"].paths == [tmp_path / "own.msp"] and form.file_lists["spectra"].paths == [spectra]
    assert str(form.parameters.values()["fragment_tolerance"]) == "0.5 Da"
    qtbot.waitUntil(form.run_button.isEnabled)
    shot(window, "library-form")
    with qtbot.waitSignal(window.bridge.finished, timeout=240_000):
        click(form.run_button)
    qtbot.waitUntil(lambda: window.results is window.searches["library"].results and not window.results.is_busy)
    view = window.results
    qtbot.waitUntil(lambda: view.panels["matches"].model.rowCount() > 10)
    window.resize(1280, 800)
    qtbot.wait(800)
    shot(window, "library-results")


def test_annotated_mgf_file_is_accepted_as_a_library(files: tuple[Path, Path], window: MainWindow, qtbot: QtBot) -> None:
    run, library = files[0], as_mgf(files[1])
    assert file_kind(library).contents == {"spectra", "libraries"} and file_kind(run).contents == {"spectra"}
    window.resize(1280, 800)
    window.new_search("library")
    form = window.form
    qtbot.waitUntil(form.run_button.isVisible)
    lists = form.file_lists
    for name, path in (("spectra", run), ("library", library)):
        form.scroll_area.ensureWidgetVisible(lists[name].lines)
        drop(window, path, at=lists[name].lines.mapTo(window, lists[name].lines.rect().center()))
        qtbot.waitUntil(lambda: lists[name].paths == [path] and lists[name].is_examined)  # noqa: B023 - waited for at once
    assert not lists["library"].problem() and "*.mgf" in lists["library"]._name_filters()[0]
    shot(window, "library-from-mgf")
    form.set_project_folder(run.parent / "project")
    qtbot.waitUntil(form.run_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=120_000):
        click(form.run_button)
    qtbot.waitUntil(lambda: window.results.run is not None and not window.results.is_busy)
    matches = {row["spectrum_id"]: row["peptide"] for row in rows_of(run.parent / "project" / "exports" / "matches.tsv")}
    assert matches.items() >= planted().items()


def test_unannotated_spectra_are_rejected_as_a_library(files: tuple[Path, Path], window: MainWindow, qtbot: QtBot) -> None:
    window.new_search("library")
    chosen = window.form.file_lists["library"]
    chosen.add([files[0]])
    qtbot.waitUntil(lambda: "have no identities (SEQ=, NAME=)" in chosen.message.text())
    chosen.clear()

"""Tests of the dialog that converts spectra, and of its job."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyteomics import mgf
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.gui.conversion_dialog import ConversionDialog
from proteoscope.gui.window import MainWindow
from tests.engine.imported.small_results import write_spectra
from tests.gui.test_window import click, drop


@pytest.fixture
def dialog(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> ConversionDialog:
    """Dialog with spectra of five precursors."""
    action = next(action for action in window.findChildren(type(window.menus.export)) if action.text() == "&Convert spectra…")
    action.trigger()
    dialog = window.findChild(ConversionDialog)
    assert isinstance(dialog, ConversionDialog) and not dialog.action_button.isEnabled()
    dialog.spectra.add([write_spectra(tmp_path / "run.mgf")])
    qtbot.waitUntil(lambda: dialog.spectra.is_examined and dialog.stage.text() == "Choose a file to write")
    return dialog


def test_spectra_dropped_on_the_conversion_dialog_are_added(dialog: ConversionDialog, tmp_path: Path, qtbot: QtBot) -> None:
    other = write_spectra(tmp_path / "other.mgf")
    (tmp_path / "proteins.fasta").write_text(">P1\nPEPTIDER\n")
    drop(dialog, other, tmp_path / "proteins.fasta")
    qtbot.waitUntil(lambda: dialog.spectra.is_examined and len(dialog.spectra.paths) == 2)
    assert dialog.spectra.paths == [tmp_path / "run.mgf", other]


def finish(dialog: ConversionDialog, window: MainWindow, qtbot: QtBot) -> str:
    qtbot.waitUntil(dialog.action_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000):
        click(dialog.action_button)
    return dialog.stage.text()


def test_conversion_writes_only_spectra_of_given_charge_and_mass(
    dialog: ConversionDialog, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    dialog.out.line.setText(str(tmp_path / "some.mgf"))
    dialog.charges.setText("2")
    dialog.masses.setText("..900")
    assert finish(dialog, window, qtbot).startswith("Done: ")
    with mgf.read(str(tmp_path / "some.mgf")) as written:
        some = list(written)
    assert 0 < len(some) < 5
    for spectrum in some:
        assert spectrum["params"]["charge"] == [2]
        assert (spectrum["params"]["pepmass"][0] - 1.007276) * 2 <= 900


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        ("charges", "2;3", "is not a list of charges"),
        ("masses", "900", "is not a range of masses"),
        ("times", "9..1", "is not a range of times"),
    ],
)
def test_conversion_dialog_reports_an_invalid_filter(dialog: ConversionDialog, tmp_path: Path, line: str, text: str, said: str) -> None:
    dialog.out.line.setText(str(tmp_path / "some.mgf"))
    getattr(dialog, line).setText(text)
    assert said in dialog.stage.text() and not dialog.action_button.isEnabled()


def test_conversion_dialog_rejects_invalid_output_files(dialog: ConversionDialog, tmp_path: Path) -> None:
    for name, said in (
        ("some.txt", "needs one of these extensions"),
        ("no/some.mgf", "Folder not found"),
        ("run.mgf", "would be overwritten"),
    ):
        dialog.out.line.setText(str(tmp_path / name))
        assert said in dialog.stage.text() and not dialog.action_button.isEnabled()


def test_conversion_of_identified_spectra_needs_their_project(
    dialog: ConversionDialog, window: MainWindow, identified_sample: Path, sample_data: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    dialog.out.line.setText(str(tmp_path / "some.mgf"))
    dialog.which.setCurrentIndex(2)
    assert "Choose a project" in dialog.stage.text() and not dialog.action_button.isEnabled()
    dialog.project.line.setText(str(identified_sample))
    assert "was not read by run" in finish(dialog, window, qtbot)
    assert not (tmp_path / "some.mgf").exists()
    dialog.spectra.clear()
    dialog.spectra.add([sample_data / "BSA1.mzML.gz"])
    dialog.which.setCurrentIndex(1)
    assert f"{Project.open(identified_sample).record('identify-0001')['counts']['psms']} of" in finish(dialog, window, qtbot)


def test_cancelled_conversion_leaves_no_file(dialog: ConversionDialog, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    dialog.out.line.setText(str(tmp_path / "some.mgf"))
    qtbot.waitUntil(dialog.action_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000):
        click(dialog.action_button)
        click(dialog.cancel_button)
    assert dialog.stage.text() == "Cancelled; no file was written."
    assert not (tmp_path / "some.mgf").exists() and dialog.action_button.isEnabled()

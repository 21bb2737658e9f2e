"""Tests of the warning next to Run about an unsuitable preset, and of the button that selects a better one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from proteoscope import resources
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.devices import DeviceDetector
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.theme import Theme


@pytest.fixture
def form(qtbot: QtBot, theme: Theme) -> Iterator[SearchForm]:
    compile_kernels(["identify"], Progress())
    survey, devices = FileInspector(), DeviceDetector()
    made = SearchForm(search_of_kind("identify"), survey, devices)
    qtbot.addWidget(made)
    made.resize(1280, 800)
    made.show()
    yield made
    survey.close()
    devices.close()


def test_click_applies_the_preset_advice_for_ion_trap_spectra(form: SearchForm, qtbot: QtBot) -> None:
    form.file_lists["spectra"].add([Path(str(resources.path("samples", "BSA1.mzML.gz")))])
    qtbot.waitUntil(lambda: form.file_lists["spectra"].is_examined)
    touches: list[bool] = []
    qtbot.wait(1)
    form.touched.connect(lambda: touches.append(form.advice.isVisible()))
    qtbot.waitUntil(lambda: form.advice.isVisible())
    # The result of an inspection is not a change by the user.
    assert not any(touches)
    assert form.presets.name == "high-resolution"
    assert "ion trap" in form.advice.label.text() and form.advice.button.text() == "Use low-resolution"
    assert "ion-trap fragments" in form.file_lists["spectra"].note.text()
    qtbot.mouseClick(form.advice.button, Qt.MouseButton.LeftButton)
    assert form.presets.name == "low-resolution" and not form.advice.isVisible()
    assert str(form.parameters.parameters.fragment_tolerance) == "0.5 Da"


def test_form_without_spectra_shows_no_preset_advice(form: SearchForm) -> None:
    form.check()
    assert form.advice.advice is None and not form.advice.isVisible()


def test_form_inspects_every_spectrum_file_for_preset_advice(form: SearchForm, qtbot: QtBot, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.mgf" for number in range(7)]
    for path in files:
        path.write_text("BEGIN IONS\nPEPMASS=500\nCHARGE=2+\n200.1 1\n300.2 1\nEND IONS\n")
    form.presets.choose("tmt")
    form.file_lists["spectra"].add([*files, Path(str(resources.path("samples", "BSA1.mzML.gz")))])
    qtbot.waitUntil(lambda: len(form.file_lists["spectra"].spectra_contents) == 8)
    qtbot.waitUntil(lambda: form.advice.isVisible())
    assert form.advice.label.text().startswith("BSA1.mzML.gz: the fragments were measured in an ion trap")
    # The other files are not inspected, so no preset is offered for all.
    assert "separate runs" not in form.advice.label.text() and not form.advice.button.isVisible()

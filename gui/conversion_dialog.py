"""Writes spectra, all or some, in another format: which, where to, and how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QComboBox, QGridLayout, QLabel, QLineEdit, QWidget

from proteoscope.engine.entry import Input
from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.formats.writing import written_formats
from proteoscope.engine.matches.conversion import ConversionRequest, IdentifiedIn, check_conversion
from proteoscope.engine.spectra.selection import SpectrumSelection, number_range, parse_charges
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.forms.file_survey import FileSurvey
from proteoscope.gui.forms.path_line import OutputLine, ProjectLine
from proteoscope.gui.forms.sections import Section
from proteoscope.gui.job_dialog import JobDialog
from proteoscope.gui.labels import toned_label
from proteoscope.gui.tasks import ConversionTask

__all__ = ["ConversionDialog"]

_SPECTRA = Input("spectra", "Spectra", "spectra", "SPECTRA", wanted="spectra to write", one="spectrum file")
_WHICH = ("All", "Only identified", "Only not identified")


class ConversionDialog(JobDialog):
    """Asks which spectra to write and where, has it done as a job of the window (a `ConversionTask`), and tells what became of it.

    Parameters
    ----------
    survey : looks at files. bridge : tells of jobs. project : that is open, by which spectra are identified; None where none is.
    """

    MANUAL = "files"
    """The page of the manual about it."""

    stopping = "Stopping; nothing is written"
    cancelled = "Cancelled; nothing was written."

    def __init__(self, survey: FileSurvey, bridge: JobBridge, project: Path | None = None, parent: QWidget | None = None) -> None:
        self.spectra = FileList(_SPECTRA, survey)
        super().__init__(survey, bridge, self.spectra, parent, action="Write", cancel="Cancel", progress="How far the spectra are written")
        self.setWindowTitle("Convert spectra")
        self.resize(640, 600)
        self.charges = _line("Charges", "2,3", "Only spectra of precursors with one of these charges")
        self.masses = _line("Masses in dalton", "500..2000", "Only spectra whose precursor has a neutral mass in this range")
        self.times = _line("Times in seconds", "600..1200", "Only spectra from this time")
        self.which = QComboBox()
        self.which.addItems(_WHICH)
        self.which.setAccessibleName("Identified or not")
        self.project = ProjectLine("&Project", "the project whose newest identification says which spectra are identified", "No project")
        if project is not None:
            self.project.line.setText(str(project))
        self._suffixes = tuple(suffix for one in written_formats() for suffix in one.suffixes)
        names = ", ".join(one.name for one in written_formats())
        self.out = OutputLine("&File to write", f"the file for the spectra, whose ending tells the format: {names}", names, self._suffixes)
        self._frames = {line: Outlined(line) for line in (self.charges, self.masses, self.times)}
        self._lay_out()
        for signal in (
            self.spectra.changed,
            self.project.changed,
            self.out.changed,
            self.which.currentIndexChanged,
            *(line.textChanged for line in self._frames),
        ):
            signal.connect(self.check)
        self.check()

    def what_is_missing(self) -> str:
        """Why nothing can be written; empty where it can."""
        if self.is_running:
            return "They are being written"
        if self.spectra.is_empty:
            return "Add the files with the spectra"
        if problem := self.spectra.problem() or self._wrong_choice() or self.out.problem():
            return problem
        if self.which.currentIndex() and (self.project.path is None or self.project.problem()):
            return "Choose the project that says which spectra are identified"
        if self.out.path is None:
            return "Choose a file to write"
        if not self.spectra.is_examined:
            return "Looking at the files"
        try:
            check_conversion(self.request())
        except ProteoscopeError as error:
            return str(error)
        return ""

    def request(self) -> ConversionRequest:
        """What the dialog asks for; the choices must be right."""
        out, folder = self.out.path, self.project.path
        assert out is not None
        identified = IdentifiedIn(folder, self.which.currentIndex() == 1) if self.which.currentIndex() and folder is not None else None
        return ConversionRequest(tuple(self.spectra.paths), out, selection=self._selection(), identified=identified)

    def task(self) -> ConversionTask:
        """The conversion."""
        return ConversionTask(self.request())

    def enable(self, missing: str) -> None:
        """All while nothing is written; the project where it matters."""
        for widget in (self.spectra, self.out, self.which, *self._frames):
            widget.setEnabled(not self.is_running)
        self.project.setEnabled(not self.is_running and self.which.currentIndex() > 0)

    def told(self, result: Any) -> str:
        """How many were written."""
        return f"Done: {ConversionTask.outcome(result, QLocale())}."

    def _selection(self) -> SpectrumSelection:
        charges, masses, times = (line.text().strip() for line in self._frames)
        return SpectrumSelection(
            parse_charges(charges) if charges else None,
            number_range(masses, "masses") if masses else None,
            number_range(times, "times") if times else None,
        )

    def _wrong_choice(self) -> str:
        """What is wrong with charges, masses or times; the first is marked."""
        problem = ""
        try:
            self._selection()
        except ParameterError as error:
            problem = str(error)
        for line, frame in self._frames.items():
            frame.mark(bool(problem) and bool(line.text().strip()) and f"'{line.text().strip():.60}'" in problem)
        return problem

    def _lay_out(self) -> None:
        words = toned_label(
            "MS2 spectra are written as the searches read them: peaks by m/z, profiles as centroids. All choices hold together."
        )
        files = Section("Spectra")
        files.grid.addWidget(self.spectra, 0, 0, 1, 3)
        choices = Section("Which of them")
        grid: QGridLayout = choices.grid
        for column, (line, frame) in enumerate(self._frames.items()):
            label = QLabel(f"&{line.accessibleName()}")
            label.setBuddy(line)
            grid.addWidget(label, 0, column)
            grid.addWidget(frame, 1, column)
            grid.setColumnStretch(column, 1)
        grid.addWidget(self.which, 2, 0, Qt.AlignmentFlag.AlignBottom)
        grid.addWidget(self.project, 2, 1, 1, 2)
        self.cancel_button.setToolTip("Stop writing; no file is left")
        self.close_button.setToolTip("Close this dialog; what is being written goes on")
        page = self.page()
        for widget in (words, files, choices, self.out, self.stage, self.progress):
            page.addWidget(widget)
        page.addStretch(1)


def _line(name: str, hint: str, help: str) -> QLineEdit:
    line = QLineEdit()
    line.setAccessibleName(name)
    line.setPlaceholderText(hint)
    line.setToolTip(f"{help}, as {hint}; all where it is empty")
    line.setClearButtonEnabled(True)
    return line

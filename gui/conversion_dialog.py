"""Dialog that converts all or selected spectra to another format."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QComboBox, QGridLayout, QLineEdit, QWidget

from proteoscope.engine.entry import Input
from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.formats.writing import written_formats
from proteoscope.engine.matches.conversion import ConversionRequest, IdentifiedIn, check_conversion
from proteoscope.engine.spectra.selection import SpectrumSelection, number_range, parse_charges
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.forms.path_line import OutputLine, ProjectLine
from proteoscope.gui.forms.sections import Section
from proteoscope.gui.job_dialog import JobDialog
from proteoscope.gui.labels import described, field_label, toned_label
from proteoscope.gui.layouts import STRETCH, in_column
from proteoscope.gui.tasks import ConversionTask

_SPECTRA = Input("spectra", "Spectra", "spectra", "SPECTRA", wanted="spectra to write", singular="spectrum file")
_WHICH = ("All", "Identified", "Unidentified")


class ConversionDialog(JobDialog):
    """Dialog for the selection of spectra and an output file; it runs a `ConversionTask` as a job of the window and shows the result.

    Parameters
    ----------
    inspector : FileInspector
        Inspector that determines the types of files.
    bridge : JobBridge
        Bridge that reports job events.
    project : Path or None
        The open project, used to select identified spectra.
    """

    MANUAL = "files"
    """Name of the manual page about this dialog."""

    stopping = "Stopping; no file is written"
    cancelled = "Cancelled; no file was written."

    def __init__(self, inspector: FileInspector, bridge: JobBridge, project: Path | None = None, parent: QWidget | None = None) -> None:
        self.spectra = FileList(_SPECTRA, inspector)
        super().__init__(inspector, bridge, self.spectra, parent, action="Write", cancel="Cancel", progress="Progress of writing")
        self.setWindowTitle("Convert spectra")
        self.resize(640, 600)
        self.charges = _line("Charges", "2,3", "Only spectra of precursors with one of these charges")
        self.masses = _line("Neutral mass (Da)", "500..2000", "Only spectra whose precursor has a neutral mass in this range")
        self.times = _line("Retention time (s)", "600..1200", "Only spectra with a retention time in this range")
        self.which = QComboBox()
        self.which.addItems(_WHICH)
        self.which.setAccessibleName("Identification status")
        self.project = ProjectLine(
            "&Project", "the project; its newest identification determines which spectra are identified", "No project"
        )
        if project is not None:
            self.project.line.setText(str(project))
        self._suffixes = tuple(suffix for written_format in written_formats() for suffix in written_format.suffixes)
        names = ", ".join(written_format.name for written_format in written_formats())
        self.out = OutputLine("&File to write", f"the file for the spectra; its extension sets the format: {names}", names, self._suffixes)
        self._frames = {line: Outlined(line) for line in (self.charges, self.masses, self.times)}
        self._lay_out()
        self.check_on(
            self.spectra.changed,
            self.project.changed,
            self.out.changed,
            self.which.currentIndexChanged,
            *(line.textChanged for line in self._frames),
        )

    def validation_error(self) -> str:
        """Return the reason why the conversion cannot start, or ''."""
        if self.is_running:
            return "Spectra are being written"
        if self.spectra.is_empty:
            return "Add the files with the spectra"
        if problem := self.spectra.problem() or self._wrong_choice() or self.out.problem():
            return problem
        if self.which.currentIndex() and (self.project.path is None or self.project.problem()):
            return "Choose a project with an identification of these spectra"
        if self.out.path is None:
            return "Choose a file to write"
        if not self.spectra.is_examined:
            return "Inspecting files"
        try:
            check_conversion(self.request())
        except ProteoscopeError as error:
            return str(error)
        return ""

    def request(self) -> ConversionRequest:
        """Return the conversion request; all fields must be valid."""
        out, folder = self.out.path, self.project.path
        assert out is not None
        identified = IdentifiedIn(folder, self.which.currentIndex() == 1) if self.which.currentIndex() and folder is not None else None
        return ConversionRequest(tuple(self.spectra.paths), out, selection=self._selection(), identified=identified)

    def task(self) -> ConversionTask:
        """Return the conversion task."""
        return ConversionTask(self.request())

    def enable(self, missing: str) -> None:
        """Enable the fields unless the job is running; the project field is enabled only if identified spectra are to be selected."""
        for widget in (self.spectra, self.out, self.which, *self._frames):
            widget.setEnabled(not self.is_running)
        self.project.setEnabled(not self.is_running and self.which.currentIndex() > 0)

    def result_text(self, result: Any) -> str:
        """Return a text with the number of spectra written."""
        return f"Done: {ConversionTask.outcome(result, QLocale())}."

    def _selection(self) -> SpectrumSelection:
        charges, masses, times = (line.text().strip() for line in self._frames)
        return SpectrumSelection(
            parse_charges(charges) if charges else None,
            number_range(masses, "masses") if masses else None,
            number_range(times, "times") if times else None,
        )

    def _wrong_choice(self) -> str:
        """Mark the first invalid field among charges, masses and times, and return its error; '' if all fields are valid."""
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
            "MS2 spectra are written as the searches read them: peaks sorted by m/z, profiles as centroids. "
            "Only spectra that pass all filters are written."
        )
        choices = Section("Filter")
        grid: QGridLayout = choices.grid
        for column, (line, frame) in enumerate(self._frames.items()):
            label = field_label(f"&{line.accessibleName()}", line)
            grid.addWidget(label, 0, column)
            grid.addWidget(frame, 1, column)
            grid.setColumnStretch(column, 1)
        grid.addLayout(in_column(STRETCH, field_label("&Identification", self.which), self.which), 2, 0)
        grid.addWidget(self.project, 2, 1, 1, 2)
        self.cancel_button.setToolTip("Cancel; no incomplete file remains")
        self.close_button.setToolTip("Close this dialog; writing continues")
        self.lay_out(words, Section("Spectra", self.spectra), choices, self.out, self.stage, self.progress, STRETCH)


def _line(name: str, hint: str, help: str) -> QLineEdit:
    return described(QLineEdit(placeholderText=hint, clearButtonEnabled=True), name, f"{help}, for example {hint}; empty for all")

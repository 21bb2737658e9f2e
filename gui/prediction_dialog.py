"""Dialog that predicts a spectral library from proteins."""

from typing import Any

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Input
from proteoscope.engine.formats.libraries.writing import library_suffixes
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.forms.parameter_form import ParameterForm
from proteoscope.gui.forms.path_line import OutputLine
from proteoscope.gui.forms.sections import Section
from proteoscope.gui.job_dialog import JobDialog
from proteoscope.gui.labels import toned_label
from proteoscope.gui.layouts import make_scroll_area
from proteoscope.gui.tasks import PredictionTask

_PROTEINS = Input(
    "proteins", "Proteins", "proteins", "PROTEINS", wanted="proteins to digest", hint=f"proteins ({format_names('proteins')})"
)


class PredictionDialog(JobDialog):
    """Dialog for predicting a spectral library: proteins, digestion settings and output file.

    It runs a `PredictionTask` as a job of the window and shows the result.

    Parameters
    ----------
    inspector : FileInspector
        Inspector that determines the types of files.
    bridge : JobBridge
        Bridge that reports job events.
    """

    MANUAL = "library_search"
    """Name of the manual page about this dialog."""

    stopping = "Stopping; no file is written"
    cancelled = "Cancelled; no file was written."

    def __init__(self, inspector: FileInspector, bridge: JobBridge, parent: QWidget | None = None) -> None:
        self.proteins = FileList(_PROTEINS, inspector)
        super().__init__(inspector, bridge, self.proteins, parent, action="Predict", cancel="Cancel", progress="Progress of the prediction")
        self.setWindowTitle("Predict a spectral library")
        self.resize(720, 700)
        self.parameters = ParameterForm(PredictionParameters)
        suffixes = library_suffixes()
        endings = ", ".join(suffixes)
        self.out = OutputLine("&Library to write", f"the file for the library; its extension sets the format: {endings}", endings, suffixes)
        self._lay_out()
        self.check_on(self.proteins.changed, self.parameters.changed, self.out.changed)

    def validation_error(self) -> str:
        """Return the reason why the prediction cannot start, or ''."""
        if self.is_running:
            return "The library is being predicted"
        if self.proteins.is_empty:
            return "Add the files with the proteins"
        if problem := self.proteins.problem() or next(iter(self.parameters.problems.values()), "") or self.out.problem():
            return problem
        if self.out.path is None:
            return "Choose a file to write"
        return "" if self.proteins.is_examined else "Inspecting files"

    def task(self) -> PredictionTask:
        """Return the prediction task."""
        out, parameters = self.out.path, self.parameters.parameters
        assert out is not None and isinstance(parameters, PredictionParameters)
        return PredictionTask(tuple(self.proteins.paths), out, parameters)

    def enable(self, missing: str) -> None:
        """Enable the fields unless a library is being predicted."""
        for widget in (self.proteins, self.parameters, self.out):
            widget.setEnabled(not self.is_running)

    def result_text(self, result: Any) -> str:
        """Return a text with the number of library entries."""
        return f"Done: {PredictionTask.outcome(result, QLocale())}."

    def _lay_out(self) -> None:
        words = toned_label(
            "Predicts the beam-type (HCD) spectra of the peptides of proteins: b and y ions. A modified residue has the intensities "
            "of the unmodified residue and the modified mass; neutral losses and retention times are not predicted."
        )
        self.cancel_button.setToolTip("Cancel; no incomplete file remains")
        self.close_button.setToolTip("Close this dialog; a running prediction continues")
        area = make_scroll_area(self.parameters)
        area.setMinimumWidth(self.parameters.minimumSizeHint().width() + area.verticalScrollBar().sizeHint().width())
        self.lay_out(words, Section("Proteins", self.proteins), (area, 1), self.out, self.stage, self.progress)

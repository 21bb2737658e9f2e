"""Dialog that adds runs to the experiment of a project: files, whose names may contain samples and conditions, or a pasted table."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from proteoscope.engine.entry import SPECTRA_INPUT
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.job_dialog import JobDialog
from proteoscope.gui.labels import described, field_label, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, make_tabs, widget_with
from proteoscope.gui.tasks import AddRunsTask

_EXAMPLE = "(?P<condition>[a-z]+)_(?P<replicate>[0-9]+)"
_COLUMNS = "file\tsample\tcondition\tfraction\treplicate"
_NAMED = 3
"""Number of runs whose values are shown as a preview."""


class AddRunsDialog(JobDialog):
    """Dialog for the files or the table of new runs; it runs an `AddRunsTask` as a job of the window.

    Parameters
    ----------
    inspector : FileInspector
        Inspector that determines the types of files.
    bridge : JobBridge
        Bridge that reports job events.
    project : Path
        Folder of the project.
    """

    MANUAL = "experiments"
    """Name of the manual page about this dialog."""

    cancelled = "Cancelled; no run was added."

    def __init__(self, inspector: FileInspector, bridge: JobBridge, project: Path, parent: QWidget | None = None) -> None:
        self.spectra = FileList(SPECTRA_INPUT, inspector)
        super().__init__(inspector, bridge, self.spectra, parent, action="Add", cancel="Cancel", progress="Progress of adding runs")
        self._project = project
        self.setWindowTitle(f"Add runs to {project.name}")
        self.resize(680, 560)
        self.pattern = described(
            QLineEdit(placeholderText=_EXAMPLE, clearButtonEnabled=True),
            "Pattern of file names",
            "Regular expression for a part of each file name; its named groups are sample, condition, fraction, replicate and label",
        )
        self._frame = Outlined(self.pattern)
        self.table = described(
            QPlainTextEdit(
                placeholderText=f"{_COLUMNS}\nrun_1.mzML\t…", tabChangesFocus=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap
            ),
            "Table of runs",
            "Cells separated by tabs, as copied from a spreadsheet; the first line names the columns. Only the column “file” is needed",
        )
        self.preview = toned_label()
        label = field_label("&Pattern of file names (optional)", self.pattern)
        files = in_column(self.spectra, label, self._frame, STRETCH, margins=6, spacing=4)
        paths = toned_label(f"Paths start from {project.parent}, unless they are absolute.")
        table = in_column((self.table, 1), paths, margins=6, spacing=4)
        self.tabs = make_tabs((widget_with(files), "Files", ""), (widget_with(table), "Table", ""))
        self.close_button.setToolTip("Close this dialog; adding continues")
        self.lay_out((self.tabs, 1), self.preview, self.stage, self.progress)
        self.check_on(self.spectra.changed, self.pattern.textChanged, self.table.textChanged, self.tabs.currentChanged)

    def task(self) -> AddRunsTask:
        """Return the task that adds the runs."""
        if self.tabs.currentIndex():
            return AddRunsTask(self._project, (), table=self.table.toPlainText())
        return AddRunsTask(self._project, tuple(self.spectra.paths), self.pattern.text())

    def validation_error(self) -> str:
        """Return the reason why the entered runs cannot be added, or ''; if they can be added, also show a preview of the runs."""
        self.preview.clear()
        if self.is_running:
            return "Runs are being added"
        has_table = bool(self.tabs.currentIndex())
        if not (self.table.toPlainText().strip() if has_table else self.spectra.paths):
            return "Paste a table" if has_table else "Add spectrum files"
        if not has_table and (problem := self.spectra.problem()):
            return problem
        try:
            rows = self.task().rows()
        except ProteoscopeError as error:
            self._frame.mark(not has_table)
            return str(error)
        self._frame.mark(False)
        named = [
            f"{Path(row.file).name}: sample {row.sample}, condition {row.condition or 'none'}, "
            f"fraction {row.fraction}, replicate {row.replicate}"
            for row in rows[:_NAMED]
        ]
        more = [f"and {len(rows) - _NAMED:,} more"] if len(rows) > _NAMED else []
        self.preview.setText("\n".join([*named, *more]))
        return ""

    def enable(self, missing: str) -> None:
        """Enable the fields unless the job is running."""
        self.tabs.setEnabled(not self.is_running)

    def result_text(self, result: Any) -> str:
        """Return a text with the number of added runs."""
        return f"Done: {AddRunsTask.outcome(result, QLocale())}. Copies, and files that the experiment already contains, are left out."

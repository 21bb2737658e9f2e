"""Page of run details: settings, messages, editable title and note, and actions on the run."""

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit, QMenu, QPlainTextEdit, QPushButton, QTextBrowser, QWidget

from proteoscope.engine.project import RunNote, RunRecord
from proteoscope.engine.project.run_notes import MAXIMUM_NOTE, MAXIMUM_TITLE
from proteoscope.engine.results.counts import Count, counted
from proteoscope.engine.views.run_account import RunAccount
from proteoscope.gui.actions import delayed
from proteoscope.gui.buttons import push_button
from proteoscope.gui.labels import described, show_text, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_tabs
from proteoscope.gui.results.prediction_panel import PredictionPanel
from proteoscope.gui.theme import colours

_MS_TO_SAVE = 600
_MAXIMUM_LOG, _MAXIMUM_WARNINGS, _MAXIMUM_CHARACTERS = 200, 50, 500
"""Maximum numbers of log lines and warnings, and of characters per line, since Qt lays out the whole text at once."""


class _Text(QTextBrowser):
    """Text browser that neither loads resources nor follows links."""

    def __init__(self) -> None:
        super().__init__()
        self.setOpenLinks(False)
        self.setAccessibleName("Details of the run")

    def loadResource(self, kind: int, name: QUrl | str) -> object:  # noqa: N802 - Qt's name
        return None


class RunPage(QWidget):
    """Page with the details of a run of the open project.

    Signals
    -------
    noted
        The user edited the title or the note; emitted with a `RunNote`.
    results_requested, again_requested, report_requested, folder_requested, delete_requested
        The user requests the results of the shown run, the same search again, a report, the folder of the run, or its deletion.
    compare_requested
        The user requests a comparison; emitted with the `RunRecord` of the other run.
    message
        Text for the status bar.
    """

    MANUAL = "runs"
    """Name of the manual page about this page."""

    noted = Signal(RunNote)
    results_requested = Signal()
    again_requested = Signal()
    report_requested = Signal()
    folder_requested = Signal()
    delete_requested = Signal()
    compare_requested = Signal(RunRecord)
    message = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.account: RunAccount | None = None
        """Details of the shown run, or None."""
        self.title = described(
            QLineEdit(maxLength=MAXIMUM_TITLE), "Title of the run", "Custom title of the run; empty restores the default"
        )
        self.note = described(
            QPlainTextEdit(placeholderText="A note on this run, stored in the project", tabChangesFocus=True), "Note on the run"
        )
        self.note.setMaximumHeight(64)
        self.text = _Text()
        self.prediction = PredictionPanel()
        self.prediction.message.connect(self.message)
        self.tabs = make_tabs((self.text, "Details", ""), (self.prediction, "Predicted and measured", ""))
        self.error = toned_label(tone="wrong", is_hidden=True)
        self.results_button = _button("Results", "results", self.results_requested.emit, "Show the results of the run")
        self.again_button = _button(
            "Reuse settings…", "run", self.again_requested.emit, "Fill the form with the files and parameters of this run"
        )
        self.compare_button = _button("Compare with", "results", lambda: None, "Compare this run with another")
        self.compare_menu = QMenu(self)
        self.compare_button.setMenu(self.compare_menu)
        self.methods_button = _button("Copy methods", "save", self.copy_methods, "Copy the methods paragraph for a paper")
        self.report_button = _button(
            "Report…", "save", self.report_requested.emit, "Write the run as an HTML page, with figures and tables"
        )
        self.folder_button = _button("Open folder", "folder", self.folder_requested.emit, "Open the folder of the run's results")
        self.delete_button = _button(
            "Delete", "remove", self.delete_requested.emit, "Delete; Edit > Undo restores the run until the project is closed"
        )
        buttons = (
            (self.results_button, self.again_button, self.compare_button),
            (self.methods_button, self.report_button, self.folder_button, self.delete_button),
        )
        page = in_column(self.title, on=self, margins=(12, 10, 12, 8))
        for row in buttons:
            page.addLayout(in_row(*row, STRETCH))
        page.addWidget(self.note)
        page.addWidget(self.error)
        page.addWidget(self.tabs, 1)
        # Typed text is saved shortly after the last key press.
        self._save_timer = delayed(self, self.save_note, _MS_TO_SAVE)
        self.title.textEdited.connect(lambda: self._save_timer.start())
        self.title.editingFinished.connect(self.save_note)
        self.note.textChanged.connect(self._note_changed)
        self._saved_note = RunNote()
        self._is_filling = False

    def show_account(self, account: RunAccount, others: Sequence[tuple[RunRecord, str]] = (), *, can_write: bool = True) -> None:
        """Show the details of a run.

        Parameters
        ----------
        account : RunAccount
            Details of the run.
        others : sequence of (RunRecord, str)
            Runs that can be compared with this run, and their titles.
        can_write : bool
            True if the project is writable: title and note can be edited, and the run can be deleted.
        """
        self.account, self._saved_note = account, account.note
        self._is_filling = True
        self.title.setText(account.title)
        self.note.setPlainText(account.note.note)
        self._is_filling = False
        for widget in (self.title, self.note):
            widget.setReadOnly(not can_write)
        is_done = account.run.status == "done"
        self.results_button.setEnabled(is_done)
        self.methods_button.setEnabled(bool(account.methods))
        self.report_button.setEnabled(bool(account.methods))
        self.folder_button.setEnabled(account.folder is not None)
        self.delete_button.setEnabled(can_write and account.run.status not in ("queued", "running"))
        self.compare_menu.clear()
        for run, title in others:
            action = self.compare_menu.addAction(title.replace("&", "&&"))
            action.triggered.connect(lambda _=False, run=run: self.compare_requested.emit(run))
        self.compare_button.setEnabled(bool(others))
        self.prediction.show_prediction(account.prediction)
        self.tabs.setTabEnabled(1, account.prediction is not None)
        self.tabs.setTabToolTip(1, "" if account.prediction is not None else "This run has no prediction")
        self.redraw()

    def show_problem(self, text: str) -> None:
        """Show an error message; an empty text hides it."""
        show_text(self.error, text)

    def redraw(self) -> None:
        """Render the details again, in the colours of the current theme."""
        if self.account is not None:
            self.text.setHtml(_page(self.account))

    def save_note(self) -> None:
        """Emit `noted` with the typed title and note if one of them differs from the stored text."""
        self._save_timer.stop()
        if self.account is None or self.title.isReadOnly():
            return
        typed = " ".join(self.title.text().split())
        # An unchanged default title is not stored as a custom title.
        title = "" if typed == self.account.title and not self.account.note.title else typed
        written = RunNote(title, self.note.toPlainText()[:MAXIMUM_NOTE])
        if written != self._saved_note:
            self._saved_note = written
            self.noted.emit(written)

    def copy_methods(self) -> None:
        """Copy the methods paragraph to the clipboard."""
        if self.account is not None:
            QGuiApplication.clipboard().setText(self.account.methods)
            self.message.emit("The methods paragraph was copied to the clipboard")

    def _note_changed(self) -> None:
        if not self._is_filling:
            self._save_timer.start()


def _button(text: str, icon_name: str, clicked: object, tip: str) -> QPushButton:
    button = push_button(text, icon=icon_name, tip=tip)
    button.clicked.connect(lambda: clicked())  # type: ignore[operator]
    return button


def _page(account: RunAccount) -> str:
    """Return the details as HTML for a Qt text widget, with all content escaped."""
    worst = [message for message in account.messages if message.level != "info"]
    tones = {"warning": colours().attention, "error": colours().wrong}
    parts = [f"<p>{escape(account.search)} · {escape(account.run.status)} · {escape(account.run.message)}</p>"]
    parts += [
        f'<p style="color:{tones[message.level]}"><b>{message.level.capitalize()}:</b> {escape(message.text[:_MAXIMUM_CHARACTERS])}</p>'
        for message in worst[:_MAXIMUM_WARNINGS]
    ]
    files = [(file.kind, f"{file.path.name}\n{file.path.parent}\n{file.sha256}", f"{file.size:,} bytes") for file in account.files]
    parts += [
        _section("Results", _table([(f"{count.number:,}", count.noun, _sure(count)) for count in account.counts])),
        _section("Files", _table(files)),
        _section("Settings", "".join(f"<p>{escape(setting)}</p>" for setting in account.passes)),
        _section(f"Parameters: {account.preset.text}", _parameters(account)),
        _section("Run", _table([*account.facts, *((name, f"{seconds:.2f} s, {peak:,.0f} MB") for name, seconds, peak in account.steps)])),
        _section("Methods", "".join(f"<p>{escape(line)}</p>" for line in account.methods.splitlines() if line)),
        _section(
            "Log",
            "".join(
                f"{message.time.astimezone():%H:%M:%S} {escape(message.text[:_MAXIMUM_CHARACTERS])}<br>"
                for message in account.log[-_MAXIMUM_LOG:]
            ),
        ),
    ]
    return "".join(parts)


def _section(title: str, content: str) -> str:
    return f"<h3>{escape(title)}</h3>{content}" if content else ""


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{_lines(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table cellspacing="0" cellpadding="3" style="margin-bottom:10px">{lines}</table>' if lines else ""


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _parameters(account: RunAccount) -> str:
    """Return an HTML table of the parameters. Parameters that differ from the preset are first, in bold, with the value of the preset."""
    lines = []
    for parameter in sorted(account.parameters, key=lambda row: not row.is_changed):
        value = escape(f"{parameter.value} {parameter.unit}".strip())
        usual = f"<td>instead of {escape(parameter.usual)}</td>" if parameter.is_changed else "<td></td>"
        bold = (f'<b style="color:{colours().attention}">', "</b>") if parameter.is_changed else ("", "")
        lines.append(f"<tr><td>{escape(parameter.title)}</td><td>{bold[0]}{value}{bold[1]}</td>{usual}</tr>")
    return f'<table cellspacing="0" cellpadding="3" style="margin-bottom:10px">{"".join(lines)}</table>' if lines else ""


def _sure(count: Count) -> str:
    if count.certainty is None:
        return ""
    decoys, low, high, at_5_percent, _ = count.certainty
    if count.certainty.nothing_accepted:
        return count.certainty.nothing_accepted
    few = "" if at_5_percent is None else f"; {at_5_percent:,} at 5 % FDR"
    return f"{counted(decoys, 'decoy')}; {low * 100:.1f} to {high * 100:.1f} % false{few}"

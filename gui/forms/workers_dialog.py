"""Dialog for workers: on this machine, over SSH, with Slurm, or of a running scheduler."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QWidget,
)

from proteoscope.engine.execution.cluster.certificates import (
    CERTIFICATE,
    USUAL_DAYS,
    make_certificates,
    needs_cryptography,
    write_certificates,
)
from proteoscope.engine.execution.cluster.requests import checked_workers
from proteoscope.gui.actions import delayed
from proteoscope.gui.forms.numbers import IntegerBox
from proteoscope.gui.forms.path_line import FileLine, FolderLine
from proteoscope.gui.labels import described, field_label, show_text, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_scroll_area
from proteoscope.gui.tables.worker import TableWorker

_MS_TO_CHECK = 250
_MOST_WORKERS = 256
_METHODS = (
    ("", "&This program only", "The devices of this machine, as chosen in the form."),
    ("local", "&Workers on this machine", "Processes that are started on this machine for each run and end with it."),
    ("ssh", "Machines by ss&h", "ssh starts workers on each machine listed in a file and ends them with the run."),
    ("slurm", "&Slurm", "Slurm jobs run the workers; the run starts with the first job."),
    ("address", "A scheduler that is &running", "A scheduler and workers started before, on machines with the same certificates."),
)
_TRUST = (
    "Anyone with the certificates can run any program under your account on every machine with a scheduler or workers: protect them like a "
    "password. Connections to other machines are always encrypted."
)
_HOW_TO_START = (
    "proteoscope workers scheduler {address} --certificates {folder}      # on one machine\n"
    "proteoscope workers start {address} --certificates {folder}      # on each machine that computes"
)


class Workers(NamedTuple):
    """Selection of workers: the value of ``--workers`` ('' for none), and the folder of the certificates."""

    requested: str = ""
    certificates: str = ""


class WorkersDialog(QDialog):
    """Dialog for the selection of workers, which are checked before the user can accept; after acceptance, `choice` is the selection.

    Parameters
    ----------
    choice : Workers
        Initial choice.
    """

    def __init__(self, choice: Workers, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Where to compute")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(640, 600)
        self.choice = choice
        self._worker = TableWorker(None, self)
        self._is_good = False
        self.buttons = {method: QRadioButton(title) for method, title, _ in _METHODS}
        """Radio buttons by type of workers."""
        self.count = described(
            IntegerBox(1, _MOST_WORKERS), "Number of workers", "Number of processes, which share the threads and GPUs of this machine"
        )
        self.count.setValue(2)
        self.hosts = FileLine("Fi&le of hosts", "a text file with a machine on each line, for example: anna@node2 workers=2 threads=16")
        self.slurm = FileLine("Con&figuration", "a TOML file with Slurm settings: jobs, cores, memory, walltime, queue and others")
        self.address = described(
            QLineEdit(placeholderText="tls://HOST:PORT"),
            "Address of the scheduler",
            "Address of the scheduler, for example tls://head:8786",
        )
        self.certificates = FolderLine("C&ertificates", "the folder with the certificates of the scheduler and its workers", "No folder")
        self.make_button = described(
            QPushButton("&Make certificates"),
            tip=f"Write new certificates into this folder, valid for {USUAL_DAYS} days and readable only by you",
        )
        self.made = toned_label(tone="good", is_hidden=True)
        """Label with the number of certificate files that were created."""
        self.commands = described(QPlainTextEdit(readOnly=True, tabChangesFocus=True), "Commands that start the scheduler and its workers")
        self.commands.setFixedHeight(62)
        self.commands.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.good, self.wrong, self.missing = toned_label(tone="good"), toned_label(tone="wrong"), toned_label()
        self.use_button = QPushButton("&Use")
        self.cancel_button = QPushButton("Cancel")
        self._parts: dict[str, QWidget] = {}
        self._checking = delayed(self, self._check, _MS_TO_CHECK)
        self._lay_out()
        self._fill()
        self._connect()
        self.check()

    @property
    def is_busy(self) -> bool:
        """True while the choice is being checked."""
        return self._checking.isActive() or self._worker.is_busy

    @property
    def method(self) -> str:
        """Type of the selected workers, or ''."""
        return next((method for method, button in self.buttons.items() if button.isChecked()), "")

    def chosen(self) -> Workers:
        """Return the current choice, valid or not."""
        method = self.method
        if method == "local":
            return Workers(f"local:{self.count.value()}")
        if method in ("ssh", "slurm"):
            return Workers(f"{method}:{(self.hosts if method == 'ssh' else self.slurm).path or ''}")
        if method == "address":
            return Workers(self.address.text().strip() or "tls://", str(self.certificates.path or ""))
        return Workers()

    def check(self) -> None:
        """Start checking the selected workers after a short delay."""
        self._is_good = False
        for method, part in self._parts.items():
            part.setVisible(method == self.method)
        self.make_button.setEnabled(self._lacks_certificates())
        self.commands.setVisible(self.certificates.path is not None and not self._lacks_certificates())
        self.use_button.setEnabled(False)
        self._worker.cancel("check")
        self._checking.start()

    def make(self) -> None:
        """Write certificates into the entered folder."""
        folder = self.certificates.path
        if folder is not None:
            self.make_button.setEnabled(False)
            self._worker.submit("make", partial(_make, folder), self._show_written, self._show_error)

    def accept(self) -> None:
        """Accept the choice if it is valid."""
        if self._is_good:
            self.choice = self.chosen()
            super().accept()

    def done(self, result: int) -> None:
        """Stop the check and close the dialog."""
        self._checking.stop()
        self._worker.cancel()
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Stop the check when the dialog closes."""
        self._checking.stop()
        self._worker.cancel()
        super().closeEvent(event)

    def _check(self) -> None:
        requested, certificates = self.chosen()
        if not requested:
            self._show_success("")
            return
        if missing := self._missing():
            self._show_status(missing=missing)
            return
        check = partial(checked_workers, requested, Path(certificates) if certificates else None)
        self._worker.submit("check", check, self._show_success, self._show_error)

    def _missing(self) -> str:
        """Return a text that names the missing or invalid entry, or ''."""
        method = self.method
        if method == "local":
            return "" if 1 <= self.count.value() <= _MOST_WORKERS and not self.count.problem() else f"Expected 1 to {_MOST_WORKERS} workers"
        if method in ("ssh", "slurm"):
            line = self.hosts if method == "ssh" else self.slurm
            what = "file of hosts" if method == "ssh" else "configuration file"
            return line.problem() or ("" if line.path is not None else f"Choose the {what}")
        if not self.address.text().strip():
            return "Enter the address of the scheduler, for example tls://head:8786"
        if self.address.text().strip().startswith("tcp:"):
            return ""
        if self._lacks_certificates():
            return "This folder has no certificates yet: make them here, or choose the folder that contains them"
        return self.certificates.problem() or ("" if self.certificates.path is not None else "Choose the folder of the certificates")

    def _lacks_certificates(self) -> bool:
        """Return True if a folder is entered that has no certificates yet; certificates can then be created in it."""
        folder = self.certificates.path
        try:
            return folder is not None and not self.certificates.problem() and not (folder / CERTIFICATE).exists()
        except OSError:
            return False

    def _show_success(self, words: str) -> None:
        self._is_good = True
        self.use_button.setEnabled(True)
        self._show_status(f"{words[:1].upper()}{words[1:]}." if words else "")

    def _show_error(self, error: Exception) -> None:
        self._show_status(wrong=str(error))

    def _show_written(self, n: int) -> None:
        self.check()
        self.made.setText(
            f"{n} files written. Copy the folder to the machines of the scheduler and the workers, and make sure only you can read it."
        )
        self.made.show()

    def _show_status(self, good: str = "", wrong: str = "", missing: str = "") -> None:
        for label, text in ((self.good, good), (self.wrong, wrong), (self.missing, missing)):
            show_text(label, text)
        text = _HOW_TO_START.format(address=self.address.text().strip() or "tls://HOST:8786", folder=self.certificates.path or "DIR")
        if self.commands.toPlainText() != text:
            self.commands.setPlainText(text)

    def _fill(self) -> None:
        requested, certificates = self.choice
        method, _, rest = requested.partition(":")
        method = method if method in self.buttons else "address" if requested else ""
        self.buttons[method].setChecked(True)
        if method == "local" and rest.isdecimal():
            self.count.setValue(int(rest[:6]))
        elif method in ("ssh", "slurm"):
            (self.hosts if method == "ssh" else self.slurm).line.setText(rest)
        elif method == "address":
            self.address.setText(requested)
        self.certificates.line.setText(certificates)

    def _connect(self) -> None:
        for button in self.buttons.values():
            button.toggled.connect(self.check)
        for signal in (
            self.count.textChanged,
            self.hosts.changed,
            self.slurm.changed,
            self.address.textChanged,
            self.certificates.changed,
        ):
            signal.connect(self.check)
        self.make_button.clicked.connect(self.make)
        self.use_button.clicked.connect(self.accept)
        self.cancel_button.clicked.connect(self.reject)

    def _lay_out(self) -> None:
        group, content = QButtonGroup(self), QWidget()
        page = in_column(
            toned_label("Workers only do the scoring, with byte-identical results. Files are read on this machine."),
            on=content,
            margins=None,
            spacing=4,
        )
        for method, _, words in _METHODS:
            choice = self.buttons[method]
            choice.setToolTip(words)
            group.addButton(choice)
            page.addSpacing(6)
            page.addWidget(choice)
            text = toned_label(words)
            text.setContentsMargins(24, 0, 0, 0)
            page.addWidget(text)
            part = self._part(method)
            page.addWidget(part)
            self._parts[method] = part
        page.addStretch(1)
        for button in (self.use_button, self.cancel_button, self.make_button):
            button.setAutoDefault(False)
        self.use_button.setDefault(True)
        whole = in_column((make_scroll_area(content, is_vertical=True), 1), on=self, margins=None)
        for label in (self.good, self.wrong, self.missing):
            # A long path without break points must not widen the dialog.
            label.setMinimumWidth(1)
            whole.addWidget(label)
        whole.addLayout(in_row(STRETCH, self.use_button, self.cancel_button))

    def _part(self, method: str) -> QWidget:
        """Create the fields that are shown below a radio button."""
        part = QWidget()
        column = in_column(on=part, margins=(24, 0, 0, 0), spacing=2)
        if method == "local":
            column.addLayout(in_row(field_label("&Number", self.count), self.count, STRETCH))
        elif method in ("ssh", "slurm"):
            column.addWidget(self.hosts if method == "ssh" else self.slurm)
        elif method == "address":
            column.addWidget(field_label("&Address", self.address))
            column.addWidget(self.address)
            column.addWidget(self.certificates)
            column.addLayout(in_row(self.make_button, STRETCH))
            column.addWidget(self.made)
            column.addWidget(toned_label(_TRUST))
            column.addWidget(self.commands)
        return part


def _make(folder: Path) -> int:
    """Write new certificates into a folder, as ``proteoscope workers certificates`` does, and return the number of files."""
    needs_cryptography()
    return len(write_certificates(make_certificates(USUAL_DAYS), folder))

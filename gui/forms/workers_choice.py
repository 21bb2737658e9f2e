"""Field for remote workers below the field for the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.execution.cluster.requests import parse_workers
from proteoscope.gui import forms
from proteoscope.gui.buttons import push_button
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.labels import show_text, tip_text, toned_label
from proteoscope.gui.layouts import in_column, in_row

if TYPE_CHECKING:
    from proteoscope.gui.forms.workers_dialog import WorkersDialog

_NONE = "No remote workers"


class WorkersChoice(QWidget):
    """Line that shows the selected workers, with a button that opens a dialog to change them.

    Attributes
    ----------
    requested : str
        Value of ``--workers``, or '' for no workers.
    certificates : str
        Folder of the certificates for the scheduler whose address was chosen, or ''.

    Signals
    -------
    changed
        The choice has changed, by the user or by the program.
    chosen
        The user has changed the choice.
    """

    changed = Signal()
    chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.requested = self.certificates = ""
        self.dialog: WorkersDialog | None = None
        """The open dialog, or None."""
        self.text = ElidedLabel()
        self.button = push_button(
            "Workers…", self.prompt, "jobs", "Run in other processes: on this machine, by ssh, by Slurm, or with a scheduler"
        )
        self.message = toned_label(tone="wrong")
        in_column(in_row((self.text, 1), self.button), self.message, on=self, margins=(0, 2, 0, 0), spacing=2)
        self._show()

    @property
    def are_here(self) -> bool:
        """True if the search runs on devices of this machine, in this process or in local worker processes."""
        return not self.requested or self.requested.startswith("local:")

    def choose(self, requested: str, certificates: str = "") -> None:
        """Set the choice."""
        self.requested, self.certificates = requested, certificates
        self._show()
        self.changed.emit()

    def problem(self) -> str:
        """Return the reason why the choice is invalid, or ''; no connection to the workers is attempted."""
        if not self.requested:
            return ""
        try:
            parsed = parse_workers(self.requested)
        except ProteoscopeError as error:
            return str(error)
        needs_certificates = parsed.address.startswith("tls:") and not self.certificates
        return f"Choose the certificates of the scheduler at {parsed.address}" if needs_certificates else ""

    def show_problem(self) -> None:
        """Show or hide the error."""
        problem = self.problem()
        show_text(self.message, problem)

    def prompt(self) -> None:
        """Open the dialog."""
        dialog = forms.workers_dialog.WorkersDialog(forms.workers_dialog.Workers(self.requested, self.certificates), self.window())
        self.dialog = dialog

        def take(result: int) -> None:
            self.dialog = None
            if result:
                self.choose(*dialog.choice)
                self.chosen.emit()
            self.button.setFocus()

        dialog.finished.connect(take)
        dialog.open()

    def _show(self) -> None:
        self.text.set_text(f"Workers: {self.requested}" if self.requested else _NONE)
        self.text.setToolTip(tip_text(f"{self.requested}\n{self.certificates}".strip() or _NONE))
        self.show_problem()

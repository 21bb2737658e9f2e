"""The result in one line: what was found, of how much, and what the run said."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from gui.results.identification import Summary
from gui.tables.elided_label import ElidedLabel

__all__ = ["SummaryHeader"]


class SummaryHeader(QWidget):
    """Counts at the false discovery rate, rate of identification, and messages of the run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts = QLabel()
        self._counts.setTextFormat(Qt.TextFormat.RichText)
        self._counts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._counts.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self._run = ElidedLabel()
        self._run.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._message = ElidedLabel()
        line = QHBoxLayout()
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._counts)
        line.addSpacing(16)
        line.addWidget(self._run, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 2)
        layout.setSpacing(2)
        layout.addLayout(line)
        layout.addWidget(self._message)
        self.show_nothing()

    @property
    def text(self) -> str:
        """What it says, without emphasis."""
        return self._counts.accessibleName()

    @property
    def message(self) -> str:
        """What the run said."""
        return self._message.full_text

    def show_nothing(self) -> None:
        """Say nothing."""
        self._counts.clear()
        self._counts.setAccessibleName("")
        self._run.set_text("")
        self._message.set_text("")
        self._message.hide()

    def show_run(self, title: str, messages: tuple[str, ...]) -> None:
        """Tell which run it is, and what it said about itself."""
        self._run.set_text(title)
        self._message.set_text("   ·   ".join(messages))
        self._message.setToolTip("\n".join(messages))
        self._message.setVisible(bool(messages))

    def show_summary(self, found: Summary, fdr: float) -> None:
        """Tell what was found at a false discovery rate."""
        locale = QLocale()
        parts = [
            (locale.toString(found.n_psms), "PSM" if found.n_psms == 1 else "PSMs"),
            (locale.toString(found.n_peptides), "peptide" if found.n_peptides == 1 else "peptides"),
            (locale.toString(found.n_proteins), "protein group" if found.n_proteins == 1 else "protein groups"),
        ]
        ending = f"at {locale.toString(fdr * 100, 'g', 3)} % FDR"
        if found.rate is not None and found.n_spectra is not None:
            ending += f", {locale.toString(found.rate * 100, 'f', 1)} % of {locale.toString(found.n_spectra)} spectra"
        self._counts.setText(
            "&nbsp;&nbsp;&nbsp;".join(f"<b><big>{number}</big></b> {what}" for number, what in parts) + f"&nbsp;&nbsp;&nbsp;{ending}"
        )
        self._counts.setAccessibleName(", ".join(f"{number} {what}" for number, what in parts) + f" {ending}")

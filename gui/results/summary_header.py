"""The result in one line: what was found, of how much, and what the run said."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from gui.tables.elided_label import ElidedLabel

__all__ = ["SummaryHeader"]


class SummaryHeader(QWidget):
    """Counts of what was found, which run it is, and what it said."""

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
        self.show_messages(messages)

    def show_messages(self, messages: tuple[str, ...]) -> None:
        """Tell what is to be known about the run."""
        self._message.set_text("   ·   ".join(messages))
        self._message.setToolTip("\n".join(messages))
        self._message.setVisible(bool(messages))

    def show_counts(self, counts: Sequence[tuple[int, str, str]], ending: str) -> None:
        """Tell what was found: numbers with the words for one and for several, and behind them the rest of the sentence."""
        locale = QLocale()
        parts = [(locale.toString(number), one if number == 1 else several) for number, one, several in counts]
        shown = [f"<b><big>{number}</big></b> {what}" for number, what in parts]
        self._counts.setText("&nbsp;&nbsp;&nbsp;".join([*shown, escape(ending)]))
        self._counts.setAccessibleName(", ".join(f"{number} {what}" for number, what in parts) + f" {ending}")

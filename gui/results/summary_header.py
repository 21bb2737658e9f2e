"""The result in a few lines: what was found, of how much, what was searched with what, and what the run said."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from gui.labels import tip_text
from gui.tables.elided_label import ElidedLabel

__all__ = ["SummaryHeader"]


class SummaryHeader(QWidget):
    """Counts of what was found, which run it is, facts about it, and what it said."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts = QLabel()
        self._counts.setTextFormat(Qt.TextFormat.RichText)
        self._counts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._counts.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self._run = ElidedLabel()
        self._run.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._facts = ElidedLabel()
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
        layout.addWidget(self._facts)
        layout.addWidget(self._message)
        self.show_nothing()

    @property
    def text(self) -> str:
        """What it says, without emphasis."""
        return self._counts.accessibleName()

    @property
    def facts(self) -> str:
        """What was searched with what."""
        return self._facts.full_text

    @property
    def message(self) -> str:
        """What the run said."""
        return self._message.full_text

    def show_nothing(self) -> None:
        """Say nothing."""
        self._counts.clear()
        self._counts.setAccessibleName("")
        self._run.set_text("")
        for line in (self._facts, self._message):
            _show_line(line, ())

    def show_run(self, title: str, messages: tuple[str, ...]) -> None:
        """Tell which run it is, and what it said about itself."""
        self._run.set_text(title)
        _show_line(self._message, messages)

    def show_facts(self, facts: tuple[str, ...]) -> None:
        """Tell what was searched with what."""
        _show_line(self._facts, facts)

    def show_counts(self, counts: Sequence[tuple[int, str, str]], ending: str) -> None:
        """Tell what was found: numbers with the words for one and for several, and behind them the rest of the sentence."""
        locale = QLocale()
        parts = [(locale.toString(number), one if number == 1 else several) for number, one, several in counts]
        shown = [f"<b><big>{number}</big></b> {what}" for number, what in parts]
        self._counts.setText("&nbsp;&nbsp;&nbsp;".join([*shown, escape(ending)]))
        self._counts.setAccessibleName(", ".join(f"{number} {what}" for number, what in parts) + f" {ending}")


def _show_line(line: ElidedLabel, parts: Sequence[str]) -> None:
    """Show parts beside each other, and below each other in the tooltip; the line is hidden where there are none."""
    line.set_text("   ·   ".join(parts))
    line.setToolTip(tip_text("\n".join(parts)))
    line.setVisible(bool(parts))

"""The header of results: counts, run, facts and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QLocale, QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolBar, QVBoxLayout, QWidget

from proteoscope.gui.labels import tip_text
from proteoscope.gui.tables.elided_label import ElidedLabel

__all__ = ["SummaryHeader", "SummaryNumber"]

_PARTS = (4, 1)
"""Relative widths of the counts and of the run's name."""
_ICON = 16  # pixels, of a follow-up button


@dataclass(frozen=True)
class SummaryNumber:
    """A number with its singular and plural noun, and a note."""

    number: int
    singular: str
    plural: str
    note: str = ""


class SummaryHeader(QWidget):
    """Shows counts, the run, facts, messages and follow-up searches."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts = QLabel()
        self._counts.setTextFormat(Qt.TextFormat.RichText)
        self._counts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._counts.setWordWrap(True)
        self._counts.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._run = ElidedLabel()
        self._run.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._facts = ElidedLabel()
        self._message = ElidedLabel()
        line = QHBoxLayout()
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._counts, _PARTS[0])
        line.addSpacing(16)
        line.addWidget(self._run, _PARTS[1])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 2)
        layout.setSpacing(2)
        layout.addLayout(line)
        layout.addWidget(self._facts)
        layout.addWidget(self._message)
        self._steps = QToolBar()
        self._steps.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._steps.setIconSize(QSize(_ICON, _ICON))
        self._steps.hide()
        layout.addWidget(self._steps)
        self.show_nothing()

    @property
    def text(self) -> str:
        """Counts as plain text."""
        return self._counts.accessibleName()

    @property
    def help(self) -> str:
        """Explanation of the notes on the numbers."""
        return self._counts.accessibleDescription()

    @property
    def facts(self) -> str:
        """Facts about the search."""
        return self._facts.full_text

    @property
    def message(self) -> str:
        """Messages of the run."""
        return self._message.full_text

    def offer(self, action: QAction) -> None:
        """Offer a follow-up search as a button; buttons that do not fit are in a menu."""
        self._steps.addAction(action)
        self._steps.show()

    def show_nothing(self) -> None:
        """Clear the header."""
        self._counts.clear()
        self._counts.setAccessibleName("")
        self._run.set_text("")
        for line in (self._facts, self._message):
            _show_line(line, ())

    def show_run(self, title: str, messages: tuple[str, ...]) -> None:
        """Show the name of the run and its messages."""
        self._run.set_text(title)
        _show_line(self._message, messages)

    def show_facts(self, facts: tuple[str, ...]) -> None:
        """Show facts about the search."""
        _show_line(self._facts, facts)

    def show_counts(self, counts: Sequence[SummaryNumber], ending: str, help_text: str = "") -> None:
        """Show the counts and the end of their sentence; `help_text` explains the notes as plain text."""
        locale = QLocale()
        shown, plain = [], []
        for count in counts:
            number, what = locale.toString(count.number), count.singular if count.number == 1 else count.plural
            note = f" ({count.note})" if count.note else ""
            # A number and its note stay in one line.
            shown.append(f"<b><big>{number}</big></b>{_unbroken(f' {what}')}<span style='font-size:small'>{_unbroken(note)}</span>")
            plain.append(f"{number} {what}{note}")
        self._counts.setText("&nbsp;&nbsp; ".join([*shown, *([_unbroken(ending)] if ending else [])]))
        self._counts.setToolTip(tip_text(help_text))
        self._counts.setAccessibleName(" ".join(part for part in (", ".join(plain), ending) if part))
        self._counts.setAccessibleDescription(help_text)


def _unbroken(text: str) -> str:
    return escape(text).replace(" ", "&nbsp;")


def _show_line(line: ElidedLabel, parts: Sequence[str]) -> None:
    """Show parts in one line, and one per line in the tooltip; the line is hidden if there are none."""
    line.set_text("   ·   ".join(parts))
    line.setToolTip(tip_text("\n".join(parts)))
    line.setVisible(bool(parts))

"""The result in a few lines: what was found, of how much, what was searched with what, and what the run said."""

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
"""Widths of the counts and of the run's name, as parts of the line."""
_ICON = 16  # pixels, of a step


@dataclass(frozen=True)
class SummaryNumber:
    """A number with the words for one and for several, and a note about it."""

    number: int
    one: str
    several: str
    note: str = ""


class SummaryHeader(QWidget):
    """Counts of what was found, which run it is, facts about it, what it said, and what goes on from it."""

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
        """What it says, without emphasis."""
        return self._counts.accessibleName()

    @property
    def help(self) -> str:
        """What the notes behind the numbers mean."""
        return self._counts.accessibleDescription()

    @property
    def facts(self) -> str:
        """What was searched with what."""
        return self._facts.full_text

    @property
    def message(self) -> str:
        """What the run said."""
        return self._message.full_text

    def offer(self, action: QAction) -> None:
        """Offer a step that goes on from the run, as a button with its words; what a narrow window has no room for is behind an arrow."""
        self._steps.addAction(action)
        self._steps.show()

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

    def show_counts(self, counts: Sequence[SummaryNumber], ending: str, help_text: str = "") -> None:
        """Tell what was found, and behind it the rest of the sentence; `help_text` explains the notes, in plain text."""
        locale = QLocale()
        shown, said = [], []
        for count in counts:
            number, what = locale.toString(count.number), count.one if count.number == 1 else count.several
            note = f" ({count.note})" if count.note else ""
            # A figure and its note stay in one line.
            shown.append(f"<b><big>{number}</big></b>{_unbroken(f' {what}')}<span style='font-size:small'>{_unbroken(note)}</span>")
            said.append(f"{number} {what}{note}")
        self._counts.setText("&nbsp;&nbsp; ".join([*shown, *([_unbroken(ending)] if ending else [])]))
        self._counts.setToolTip(tip_text(help_text))
        self._counts.setAccessibleName(" ".join(part for part in (", ".join(said), ending) if part))
        self._counts.setAccessibleDescription(help_text)


def _unbroken(text: str) -> str:
    return escape(text).replace(" ", "&nbsp;")


def _show_line(line: ElidedLabel, parts: Sequence[str]) -> None:
    """Show parts beside each other, and below each other in the tooltip; the line is hidden where there are none."""
    line.set_text("   ·   ".join(parts))
    line.setToolTip(tip_text("\n".join(parts)))
    line.setVisible(bool(parts))

"""The whole sequence of a hit's subject, the aligned part marked, and a button that searches with it."""
# ruff: noqa: N815 - Qt's way of naming signals

from __future__ import annotations

from PySide6.QtCore import QLocale, Signal
from PySide6.QtGui import QColor, QFontDatabase, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from proteoscope.engine.views.stacked_hits import SubjectSequence
from proteoscope.gui.buttons import text_button
from proteoscope.gui.colours import plot_colours
from proteoscope.gui.room import bar_of, fill_page
from proteoscope.gui.tables.elided_label import ElidedLabel

__all__ = ["SubjectView"]

_WIDTH, _GROUP = 60, 10
_ALPHA = 80


class SubjectView(QWidget):
    """Shows a subject, or a text in its place.

    Signals
    -------
    searchAsked : the subject is to be the next query; its FASTA.
    """

    message = Signal(str)
    searchAsked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.subject: SubjectSequence | None = None
        self._title = ElidedLabel()
        search_tip = "Make this protein the query of the next search, in the same databases with the same parameters"
        self.search_button = text_button("Search with this protein", search_tip, self._ask_for_search)
        self.copy_button = text_button("Copy as FASTA", "", self._copy)
        self.letters = QPlainTextEdit()
        self.letters.setReadOnly(True)
        self.letters.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.letters.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.letters.setAccessibleName("Sequence of the hit")
        fill_page(self, bar_of(self._title, self.search_button, self.copy_button), self.letters, filling=self.letters)
        self.show_subject(None)

    @property
    def title(self) -> str:
        """Whose sequence is shown."""
        return self._title.full_text

    def show_subject(self, subject: SubjectSequence | None, text: str = "") -> None:
        """Show a subject, or a text in its place."""
        self.subject = subject
        for button in (self.search_button, self.copy_button):
            button.setEnabled(subject is not None)
        self.letters.setExtraSelections([])
        if subject is None:
            self._title.set_text("")
            self.letters.setPlainText(text)
            return
        length = QLocale().toString(len(subject.sequence))
        self._title.set_text(f"{subject.name}, {length} residues, aligned {subject.start} to {subject.end}  {subject.description}")
        digits = len(str(len(subject.sequence)))
        lines, marks = [], []
        written = 0
        for first in range(0, len(subject.sequence), _WIDTH):
            part = subject.sequence[first : first + _WIDTH]
            groups = [part[at : at + _GROUP] for at in range(0, len(part), _GROUP)]
            line = f"{first + 1:>{digits}}  {' '.join(groups)}"
            low, high = max(subject.start - 1, first), min(subject.end, first + len(part))
            if low < high:
                place = written + digits + 2
                marks.append((place + _with_blanks(low - first), place + _with_blanks(high - 1 - first) + 1))
            lines.append(line)
            written += len(line) + 1
        self.letters.setPlainText("\n".join(lines))
        self.letters.setExtraSelections([self._marked(*ends) for ends in marks])

    def _marked(self, first: int, last: int) -> QTextEdit.ExtraSelection:
        selection = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.letters.document())
        cursor.setPosition(first)
        cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
        format = QTextCharFormat()
        colour = QColor(plot_colours(self.palette()).target)
        colour.setAlpha(_ALPHA)
        format.setBackground(colour)
        selection.cursor, selection.format = cursor, format
        return selection

    def _ask_for_search(self) -> None:
        if self.subject is not None:
            self.searchAsked.emit(self.subject.fasta())

    def _copy(self) -> None:
        if self.subject is not None:
            QGuiApplication.clipboard().setText(self.subject.fasta())
            self.message.emit(f"Copied {self.subject.name} as FASTA.")


def _with_blanks(place: int) -> int:
    """Where a residue stands in its line, among the blanks between groups."""
    return place + place // _GROUP

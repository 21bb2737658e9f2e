"""View of the complete sequence of a hit's subject, with the aligned part marked, and a button that searches with it."""
# ruff: noqa: N815 - Qt's way of naming signals

from __future__ import annotations

from PySide6.QtCore import QLocale, Signal
from PySide6.QtGui import QColor, QFontDatabase, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from proteoscope.engine.views.stacked_hits import SubjectSequence
from proteoscope.gui.buttons import text_button
from proteoscope.gui.colours import plot_colours
from proteoscope.gui.database_links import LinksButton
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.layouts import in_column, title_row

_WIDTH, _GROUP = 60, 10
_ALPHA = 80


class SubjectView(QWidget):
    """Widget that shows the sequence of a subject, or a text.

    Signals
    -------
    searchRequested
        The user requests a search with the subject as the query; emitted with its FASTA record.
    """

    message = Signal(str)
    searchRequested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.subject: SubjectSequence | None = None
        self._title = ElidedLabel()
        search_tip = "Search the same databases with this protein as the query and the same parameters"
        self.search_button = text_button("Search with this protein", search_tip, self._request_search)
        self.copy_button = text_button("Copy as FASTA", "", self._copy)
        self.sequence_text = QPlainTextEdit(readOnly=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap)
        self.sequence_text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.sequence_text.setAccessibleName("Sequence of the hit")
        self.links = LinksButton(self.message.emit)
        in_column(title_row(self._title, self.links, self.search_button, self.copy_button), (self.sequence_text, 1), on=self, spacing=0)
        self.show_subject(None)

    @property
    def title(self) -> str:
        """Name and description of the subject."""
        return self._title.full_text

    def show_subject(self, subject: SubjectSequence | None, text: str = "") -> None:
        """Show a subject or a text."""
        self.subject = subject
        self.links.show_names(() if subject is None else (subject.name,))
        for button in (self.search_button, self.copy_button):
            button.setEnabled(subject is not None)
        self.sequence_text.setExtraSelections([])
        if subject is None:
            self._title.set_text("")
            self.sequence_text.setPlainText(text)
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
                position = written + digits + 2
                marks.append((position + _with_blanks(low - first), position + _with_blanks(high - 1 - first) + 1))
            lines.append(line)
            written += len(line) + 1
        self.sequence_text.setPlainText("\n".join(lines))
        self.sequence_text.setExtraSelections([self._marked(*ends) for ends in marks])

    def _marked(self, first: int, last: int) -> QTextEdit.ExtraSelection:
        selection = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.sequence_text.document())
        cursor.setPosition(first)
        cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
        format = QTextCharFormat()
        colour = QColor(plot_colours(self.palette()).target)
        colour.setAlpha(_ALPHA)
        format.setBackground(colour)
        selection.cursor, selection.format = cursor, format
        return selection

    def _request_search(self) -> None:
        if self.subject is not None:
            self.searchRequested.emit(self.subject.fasta())

    def _copy(self) -> None:
        if self.subject is not None:
            QGuiApplication.clipboard().setText(self.subject.fasta())
            self.message.emit(f"Copied {self.subject.name} as FASTA.")


def _with_blanks(position: int) -> int:
    """Return the index of a residue in a line of text with a space after every ten residues; `position` is its index without spaces."""
    return position + position // _GROUP

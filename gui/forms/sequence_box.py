"""A box to paste protein sequences into, as FASTA or as bare residues."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from proteoscope.engine.formats.letters import SequenceCount, count_letters
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.labels import toned_label

__all__ = ["Pasted", "SequenceBox", "read_pasted"]

_MAXIMUM_LETTERS = 5_000_000
_SKIPPED = frozenset("0123456789 \t\xa0-.*")
_TYPING_MS = 150
_LINES = 4


@dataclass(frozen=True)
class Pasted:
    """What was pasted: as FASTA, what it holds, and what is wrong with it; all empty where nothing was pasted."""

    fasta: str = ""
    count: SequenceCount | None = None
    problem: str = ""


def read_pasted(text: str) -> Pasted:
    """Read pasted text: FASTA where it begins with ``>``, else the residues of one sequence, which is then called ``query``."""
    if not text.strip():
        return Pasted()
    if len(text) > _MAXIMUM_LETTERS:
        return Pasted(problem="This is more than one can paste; save it as a FASTA file and add that")
    lines = text.splitlines()
    has_names = text.lstrip().startswith(">")
    has_residues = False
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            if not has_names:
                return Pasted(problem=f"Line {number}: a name stands here, but the first sequence has none; begin with a line > and a name")
            if not line[1:].strip():
                return Pasted(problem=f"Line {number}: a name belongs right after the >")
            continue
        residues = "".join(letter for letter in line if letter not in _SKIPPED)
        wrong = next((letter for letter in residues if not (letter.isascii() and letter.isalpha())), "")
        if wrong:
            return Pasted(problem=f"Line {number}: “{wrong}” is not a residue")
        has_residues = has_residues or bool(residues)
    if not has_residues:
        return Pasted(problem="There are no residues")
    fasta = "\n".join(line.replace("\xa0", " ") for line in (lines if has_names else [">query", *lines]))
    fasta = fasta.strip() + "\n"
    return Pasted(fasta, count_letters(fasta.encode()))


class SequenceBox(QWidget):
    """The box, and below it what is wrong with what was pasted. `takes_nucleotides`: whether it is of DNA and RNA too.

    Signals
    -------
    changed : something else stands there.
    """

    changed = Signal()

    def __init__(self, *, takes_nucleotides: bool = False) -> None:
        super().__init__()
        self.pasted = Pasted()
        self.text = QPlainTextEdit()
        letters = "letters" if takes_nucleotides else "residues"
        self.text.setPlaceholderText(f"or paste sequences here: FASTA, or the bare {letters} of one")
        self.text.setAccessibleName("Pasted sequences")
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setTabChangesFocus(True)
        self.text.setAcceptDrops(False)
        self.text.setFixedHeight(self.text.fontMetrics().lineSpacing() * _LINES + 14)
        self.frame = Outlined(self.text)
        self.message = toned_label(tone="wrong")
        self.message.hide()
        self._later = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._later.timeout.connect(self._read)
        self.text.textChanged.connect(self._later.start)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(4)
        page.addWidget(self.frame)
        page.addWidget(self.message)
        self.setFocusProxy(self.text)

    @property
    def is_read(self) -> bool:
        """Whether `pasted` is what stands there now."""
        return not self._later.isActive()

    def _read(self) -> None:
        self.pasted = read_pasted(self.text.toPlainText())
        problem = self.pasted.problem
        self.frame.mark(bool(problem))
        self.message.setText(problem)
        self.message.setVisible(bool(problem))
        self.changed.emit()

"""Box for pasted protein sequences in FASTA or as plain residues."""

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from proteoscope.engine.formats.sequence_type import SequenceCount, count_fasta
from proteoscope.gui.actions import delayed
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.layouts import in_column

_MAXIMUM_CHARACTERS = 5_000_000
_SKIPPED = frozenset("0123456789 \t\xa0-.*")
_TYPING_MS = 150
_LINES = 4


@dataclass(frozen=True)
class Pasted:
    """Pasted text converted to FASTA, with the counts of its sequences (None if there are none), and an error or ''."""

    fasta: str = ""
    count: SequenceCount | None = None
    problem: str = ""


def read_pasted(text: str) -> Pasted:
    """Convert pasted text to FASTA; text that does not start with ``>`` is read as the residues of one sequence named ``query``."""
    if not text.strip():
        return Pasted()
    if len(text) > _MAXIMUM_CHARACTERS:
        return Pasted(problem="The text is too long to paste; save it as a FASTA file and add the file")
    lines = text.splitlines()
    has_names = text.lstrip().startswith(">")
    has_residues = False
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            if not has_names:
                return Pasted(
                    problem=f"Line {number}: this line is a name, but the first sequence has none; begin with a line of > and a name"
                )
            if not line[1:].strip():
                return Pasted(problem=f"Line {number}: the name after > is missing")
            continue
        residues = "".join(symbol for symbol in line if symbol not in _SKIPPED)
        wrong = next((symbol for symbol in residues if not (symbol.isascii() and symbol.isalpha())), "")
        if wrong:
            return Pasted(problem=f"Line {number}: “{wrong}” is not a residue")
        has_residues = has_residues or bool(residues)
    if not has_residues:
        return Pasted(problem="There are no residues")
    fasta = "\n".join(line.replace("\xa0", " ") for line in (lines if has_names else [">query", *lines]))
    fasta = fasta.strip() + "\n"
    return Pasted(fasta, count_fasta(fasta.encode()))


class SequenceBox(QWidget):
    """Box for pasted sequences, with an error message below; if `takes_nucleotides`, DNA and RNA are accepted too.

    Signals
    -------
    changed
        The text has changed.
    """

    changed = Signal()

    def __init__(self, *, takes_nucleotides: bool = False) -> None:
        super().__init__()
        self.pasted = Pasted()
        self.text = QPlainTextEdit()
        symbols = "bases or residues" if takes_nucleotides else "residues"
        self.text.setPlaceholderText(f"or paste sequences here: FASTA, or the {symbols} of one sequence")
        self.text.setAccessibleName("Pasted sequences")
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setTabChangesFocus(True)
        self.text.setAcceptDrops(False)
        self.text.setFixedHeight(self.text.fontMetrics().lineSpacing() * _LINES + 14)
        self.frame = Outlined(self.text)
        self.message = self.frame.message
        self._later = delayed(self, self._read, _TYPING_MS)
        self.text.textChanged.connect(self._later.start)
        in_column(self.frame, self.message, on=self, spacing=4)
        self.setFocusProxy(self.text)

    @property
    def is_read(self) -> bool:
        """True if `pasted` belongs to the current text."""
        return not self._later.isActive()

    def _read(self) -> None:
        self.pasted = read_pasted(self.text.toPlainText())
        self.frame.show_problem(self.pasted.problem)
        self.changed.emit()

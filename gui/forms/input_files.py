"""What is given for one input of a search: files, and where the search allows it, a box to paste more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from proteoscope.engine.entry import FileSort, Input
from proteoscope.engine.formats.letters import InputContent
from proteoscope.gui.forms.file_list import FileList, count_text, nucleotide_text
from proteoscope.gui.forms.file_survey import FileSurvey
from proteoscope.gui.forms.sequence_box import SequenceBox
from proteoscope.gui.labels import toned_label
from proteoscope.gui.words import with_article

__all__ = ["InputFiles"]

_PASTED = "pasted sequences"


class InputFiles(QWidget):
    """Files of one input, and a box to paste more.

    Signals
    -------
    changed : files or pasted sequences, or what is known of them, changed.
    """

    changed = Signal()

    def __init__(self, asked: Input, survey: FileSurvey, elsewhere: Mapping[str, Collection[FileSort]] | None = None) -> None:
        super().__init__()
        self.asked = asked
        self.files = FileList(asked, survey, elsewhere=elsewhere)
        self.files.changed.connect(self.changed)
        self.box = SequenceBox(takes_nucleotides=asked.takes_nucleotides) if asked.can_be_pasted else None
        """Where sequences are pasted."""
        self.note = toned_label()
        self.warning = toned_label(tone="attention")
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(6)
        page.addWidget(self.files)
        if self.box is not None:
            page.addWidget(self.box)
            self.box.changed.connect(self._show_pasted)
            # What is being typed is not examined yet.
            self.box.text.textChanged.connect(self.changed)
        for label in (self.note, self.warning):
            page.addWidget(label)
        self._show_pasted()

    @property
    def pasted(self) -> str:
        """What was pasted, as FASTA; empty where nothing was."""
        return "" if self.box is None else self.box.pasted.fasta

    def paste(self, text: str) -> None:
        """Have sequences in the box, in place of what stands there."""
        if self.box is not None:
            self.box.text.setPlainText(text)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is given."""
        return self.files.is_empty and not self.pasted

    @property
    def is_examined(self) -> bool:
        """Whether it is known of all files what they are, and what was pasted has been read."""
        return self.files.is_examined and (self.box is None or self.box.is_read)

    def content(self) -> InputContent | None:
        """What is given, where it is known: of the first file, or what was pasted."""
        pasted = None if self.box is None else self.box.pasted.count
        if self.files.is_empty and pasted is not None:
            return InputContent(pasted, has_qualities=False)
        return self.files.content()

    @property
    def first_file(self) -> Path | None:
        """The first file."""
        return next(iter(self.files.paths), None)

    @property
    def name(self) -> str:
        """What is given, as ``a.fasta and 2 more``."""
        paths = self.files.paths
        n_more = len(paths) - 1 + bool(self.pasted)
        return (paths[0].name + (f" and {n_more} more" if n_more else "")) if paths else _PASTED

    def missing(self) -> str:
        """What to say while nothing is given."""
        pasting = ", or paste a sequence" if self.asked.can_be_pasted else ""
        return f"Add {self.asked.wanted or self.asked.title.lower()}{pasting}"

    def unusable(self) -> str:
        """What to say while there is a `problem`."""
        one = with_article(self.asked.one)
        return f"{one[:1].upper()}{one[1:]} cannot be used"

    def problem(self) -> str:
        """Why the search cannot take what is given."""
        return self.files.problem() or ("" if self.box is None else self.box.pasted.problem)

    def redraw(self) -> None:
        """Draw what depends on the look again."""
        self.files.redraw()

    def _show_pasted(self) -> None:
        count = None if self.box is None else self.box.pasted.count
        self.note.setText("" if count is None else f"Pasted: {count_text([count], self.asked)}")
        self.note.setVisible(count is not None)
        warning = "" if count is None else nucleotide_text("What was pasted", count, self.asked)
        self.warning.setText(warning)
        self.warning.setVisible(bool(warning))
        self.changed.emit()

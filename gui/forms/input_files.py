"""Files of one input of a search, with an optional box for pasted sequences."""

from collections.abc import Collection, Mapping
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import FileContent, Input
from proteoscope.engine.formats.sequence_type import InputContent
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.file_list import FileList, count_text, nucleotide_text
from proteoscope.gui.forms.sequence_box import SequenceBox
from proteoscope.gui.labels import show_text, toned_label
from proteoscope.gui.layouts import in_column
from proteoscope.gui.words import with_article

_PASTED = "pasted sequences"


class InputFiles(QWidget):
    """List of the files of one input, with an optional box for pasted sequences.

    Signals
    -------
    changed
        Files or pasted sequences have changed, or one of them has been inspected.
    """

    changed = Signal()

    def __init__(self, spec: Input, inspector: FileInspector, elsewhere: Mapping[str, Collection[FileContent]] | None = None) -> None:
        super().__init__()
        self.spec = spec
        self.files = FileList(spec, inspector, elsewhere=elsewhere)
        self.files.changed.connect(self.changed)
        self.box = SequenceBox(takes_nucleotides=spec.takes_nucleotides) if spec.can_be_pasted else None
        """Box for pasted sequences, or None."""
        self.note = toned_label()
        self.warning = toned_label(tone="attention")
        page = in_column(self.files, on=self, spacing=6)
        if self.box is not None:
            page.addWidget(self.box)
            self.box.changed.connect(self._show_pasted)
            # The box itself reads its text only after a pause in typing.
            self.box.text.textChanged.connect(self.changed)
        for label in (self.note, self.warning):
            page.addWidget(label)
        self._show_pasted()

    @property
    def pasted(self) -> str:
        """The pasted sequences as FASTA, or ''."""
        return "" if self.box is None else self.box.pasted.fasta

    def paste(self, text: str) -> None:
        """Replace the text of the box for pasted sequences."""
        if self.box is not None:
            self.box.text.setPlainText(text)

    @property
    def is_empty(self) -> bool:
        """True if there are neither files nor pasted sequences."""
        return self.files.is_empty and not self.pasted

    @property
    def is_examined(self) -> bool:
        """True if all files have been inspected and the pasted text has been read."""
        return self.files.is_examined and (self.box is None or self.box.is_read)

    def content(self) -> InputContent | None:
        """Return the content of the first file or, without files, of the pasted text; None if unknown."""
        pasted = None if self.box is None else self.box.pasted.count
        if self.files.is_empty and pasted is not None:
            return InputContent(pasted, has_qualities=False)
        return self.files.content()

    @property
    def first_file(self) -> Path | None:
        """The first file, or None."""
        return next(iter(self.files.paths), None)

    @property
    def name(self) -> str:
        """Short name of the input, such as ``a.fasta and 2 more``."""
        paths = self.files.paths
        n_more = len(paths) - 1 + bool(self.pasted)
        return (paths[0].name + (f" and {n_more} more" if n_more else "")) if paths else _PASTED

    def missing(self) -> str:
        """Return the text that is shown next to the Run button while the input is empty."""
        pasting = ", or paste a sequence" if self.spec.can_be_pasted else ""
        return f"Add {self.spec.wanted or self.spec.title.lower()}{pasting}"

    def unusable(self) -> str:
        """Return the text that is shown next to the Run button while the input has a `problem`."""
        noun = with_article(self.spec.singular)
        return f"{noun[:1].upper()}{noun[1:]} cannot be used"

    def problem(self) -> str:
        """Return the reason why the search cannot use the input, or ''."""
        return self.files.problem() or ("" if self.box is None else self.box.pasted.problem)

    def redraw(self) -> None:
        """Redraw the elements that depend on the theme."""
        self.files.redraw()

    def _show_pasted(self) -> None:
        count = None if self.box is None else self.box.pasted.count
        self.note.setText("" if count is None else f"Pasted: {count_text([count], self.spec)}")
        self.note.setVisible(count is not None)
        warning = "" if count is None else nucleotide_text("The pasted text", count, self.spec)
        show_text(self.warning, warning)
        self.changed.emit()

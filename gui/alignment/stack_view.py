"""View of hits stacked below their query, with a choice of colours, and a button that saves them."""
# ruff: noqa: N815 - Qt's way of naming signals

from functools import partial
from pathlib import Path

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QWidget

from proteoscope.engine.views.stack_colours import SCHEMES, ColouredStack
from proteoscope.engine.views.stacked_hits import StackedHits, write_stack
from proteoscope.gui.alignment.stack_plot import StackPlot
from proteoscope.gui.buttons import text_button
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import in_column, title_row
from proteoscope.gui.tables.worker import TableWorker

_FILES = {
    "Stockholm (*.sto)": "stockholm",
    "A3M (*.a3m)": "a3m",
    "Clustal (*.aln)": "clustal",
    "PHYLIP (*.phy)": "phylip",
    "MAF, pairs (*.maf)": "maf",
    "PSL, pairs (*.psl)": "psl",
}


class StackView(QWidget):
    """Widget that shows hits stacked below their query, or a text.

    Signals
    -------
    hitChosen
        A hit was clicked; emitted with its row of the table of hits.
    """

    message = Signal(str)
    hitChosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found: StackedHits | None = None
        self._worker = TableWorker(None, self)
        self._title = ElidedLabel()
        # Narrow enough for the smallest window.
        self.scheme = described(ChoiceBox(((scheme.title, scheme.name) for scheme in SCHEMES), n_characters=5), "Colours")
        for position, scheme in enumerate(SCHEMES):
            self.scheme.setItemData(position, scheme.help, Qt.ItemDataRole.ToolTipRole)
        self.insertions = described(
            QCheckBox("Insertions"), tip="Show columns opened by insertions; otherwise a mark shows where an insertion is hidden"
        )
        save_tip = "Save the shown hits as a stack (Stockholm, A3M, Clustal, PHYLIP) or as pairs (MAF, PSL)"
        self.save_button = text_button("Save as…", save_tip, self.prompt_for_path)
        self.plot = StackPlot()
        self.export_button = text_button("Export…", "Save the whole stack as SVG, PDF or PNG", self.plot.export_action.prompt)
        bars = title_row(self._title, self.save_button, self.export_button), title_row(self.insertions, self.scheme)
        in_column(*bars, (self.plot, 1), on=self, spacing=0)
        self.scheme.currentIndexChanged.connect(lambda _: self._paint())
        self.insertions.toggled.connect(lambda _: self._paint())
        self.plot.rowPicked.connect(self._choose)
        self.plot.message.connect(self.message)
        self.show_hits(None)

    @property
    def is_busy(self) -> bool:
        """True while colours are being computed or a file is being written."""
        return self._worker.is_busy

    @property
    def title(self) -> str:
        """Description of the shown hits."""
        return self._title.full_text

    def show_hits(self, stack: StackedHits | None, text: str = "") -> None:
        """Show a stack or a text."""
        self.found = stack
        self.plot.mark(-1)
        locale = QLocale()
        if stack is None:
            self._title.set_text("")
        else:
            n = len(stack.rows)
            of = f" (the best of {locale.toString(stack.total)})" if stack.total > n else ""
            opened = int(stack.stack.is_opened.sum())
            columns = f"insertions open {locale.toString(opened)} column{'' if opened == 1 else 's'}" if opened else "no insertions"
            self._title.set_text(f"{locale.toString(n)} hit{'' if n == 1 else 's'}{of} below {stack.stack.query_name}, {columns}")
        for button in (self.save_button, self.export_button):
            button.setEnabled(stack is not None)
        if stack is None:
            self._worker.cancel()
            self.plot.show_stack(None, text)
        else:
            self._paint()

    def mark(self, row: int | None) -> None:
        """Mark the hit of a row of the table of hits; None removes the mark."""
        rows = [] if self.found is None or row is None else self.found.rows.tolist()
        self.plot.mark(rows.index(row) if row in rows else -1)

    def clear(self) -> None:
        """Clear the view and cancel running work."""
        self._worker.close()
        self.show_hits(None)

    def prompt_for_path(self) -> None:
        """Prompt for a file and format, and write the shown hits."""
        if self.found is None:
            return
        name, chosen = QFileDialog.getSaveFileName(self, "Save the stack", "stack.sto", ";;".join(_FILES))
        if name:
            ending = chosen[chosen.index("*") + 1 : -1]
            self.save(Path(name) if Path(name).suffix else Path(name + ending), _FILES[chosen])

    def save(self, path: Path, format: str) -> None:
        """Write the shown hits to a file, in a thread. `format` is a value of `_FILES`, such as ``stockholm``."""
        result = self.found
        if result is not None:
            saved_message = f"Saved {path.name}."
            write = partial(write_stack, path, result.stack, format)
            self._worker.submit("save", write, lambda _: self.message.emit(saved_message), lambda error: self.message.emit(str(error)))

    def _paint(self) -> None:
        result, scheme = self.found, str(self.scheme.currentData())
        if result is not None:
            made = partial(ColouredStack.from_stack, result.stack, scheme, has_insertions=self.insertions.isChecked())
            self._worker.submit("paint", made, self.plot.show_stack, lambda error: self.plot.show_stack(None, str(error)))

    def _choose(self, position: int) -> None:
        if self.found is not None:
            self.hitChosen.emit(int(self.found.rows[position]))

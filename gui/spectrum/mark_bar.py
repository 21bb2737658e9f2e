"""Bar for editing the star and the comment of a table row."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from proteoscope.engine.project import RowMark
from proteoscope.engine.project.row_marks import MAXIMUM_COMMENT
from proteoscope.engine.results.columns import STAR
from proteoscope.gui.actions import make_action
from proteoscope.gui.buttons import text_button
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import in_row

_NO_STAR = "☆"


class MarkBar(QWidget):
    """Bar that edits the `RowMark` (star and comment) of a PSM; hidden if no PSM is shown."""

    marked = Signal(int, object)
    """The user changed a mark; emitted with the row and its new `RowMark`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.mark = RowMark()
        self._row: int | None = None
        self.star_button = text_button(
            _NO_STAR, "Add or remove the star of the PSM (Ctrl+D)", self._take, "Star of the PSM", is_checkable=True
        )
        self.star_action = make_action(
            self,
            "&Star",
            self.star_button.click,
            "Ctrl+D",
            context=Qt.ShortcutContext.WindowShortcut,
            tip="Add or remove the star of the selected PSM",
        )
        self.comment = described(
            QLineEdit(maxLength=MAXIMUM_COMMENT, placeholderText="Comment on this PSM"),
            "Comment on the PSM",
            "Stored in the project, shown in the PSM table and included when the table is saved",
        )
        self.comment.editingFinished.connect(self._take)
        in_row(self.star_button, (self.comment, 1), on=self, margins=(8, 0, 8, 4))
        self.show_mark(None)

    @property
    def row(self) -> int | None:
        """The row whose mark is shown, or None."""
        return self._row

    def show_mark(self, row: int | None, mark: RowMark | None = None) -> None:
        """Show the mark of a row (None hides the bar). A pending comment is stored for the previous row first."""
        if self.comment.isModified():
            self._take()
        self._row = row
        self.mark = mark or RowMark()
        self.setVisible(row is not None)
        self.star_action.setEnabled(row is not None)
        self.star_button.setChecked(self.mark.is_starred)
        self.star_button.setText(STAR if self.mark.is_starred else _NO_STAR)
        self.comment.setText(self.mark.comment)

    def _take(self) -> None:
        mark = RowMark(self.star_button.isChecked(), self.comment.text().strip())
        self.comment.setModified(False)
        self.star_button.setText(STAR if mark.is_starred else _NO_STAR)
        if self._row is not None and mark != self.mark:
            self.mark = mark
            self.marked.emit(self._row, mark)

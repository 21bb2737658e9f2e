"""Cards with a title, arranged in as many columns as there is room for."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from proteoscope.gui.labels import heading
from proteoscope.gui.surfaces import Card

__all__ = ["Columns", "Section"]


class Section(Card):
    """A framed part of a form: a title, and a grid of three columns below it whose middle one takes the room."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = heading(title)
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(8)
        self.grid.setVerticalSpacing(2)
        self.grid.setColumnStretch(1, 1)
        page = QVBoxLayout(self)
        page.setContentsMargins(14, 10, 10, 12)
        page.addWidget(self.title)
        page.addLayout(self.grid)


class Columns(QWidget):
    """Widgets in one column, or in two of about the same height when it is wide enough.

    Parameters
    ----------
    letters : how many letters a column has room for at least, where there are two.
    """

    def __init__(self, letters: int = 50) -> None:
        super().__init__()
        self._widgets: list[QWidget] = []
        self._column_width = self.fontMetrics().horizontalAdvance("n") * letters
        self._n_columns = 0
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        self._columns = []
        for _ in range(2):
            column = QVBoxLayout()
            column.setSpacing(12)
            column.addStretch(1)
            row.addLayout(column, 1)
            self._columns.append(column)

    def add(self, widget: QWidget) -> None:
        """Put a widget after those that are there."""
        self._widgets.append(widget)
        _append(self._columns[0], widget)

    def arrange(self) -> None:
        """Share the widgets out anew; called once all are added, and by itself when the width asks for other columns."""
        n_columns = 2 if self.width() >= 2 * self._column_width else 1
        if n_columns == self._n_columns:
            return
        self._n_columns = n_columns
        heights = [widget.sizeHint().height() for widget in self._widgets]
        half, filled = sum(heights) / 2, 0.0
        for widget, height in zip(self._widgets, heights, strict=True):
            # In reading order: the first column is full when the middle of the next card lies below the middle of all.
            column = 1 if n_columns == 2 and filled + height / 2 > half else 0
            filled += height
            for one in self._columns:
                one.removeWidget(widget)
            _append(self._columns[column], widget)
        row = self.layout()
        assert isinstance(row, QHBoxLayout)
        row.setStretch(1, n_columns - 1)
        row.setSpacing(12 if n_columns == 2 else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802, D102 - Qt's name
        super().resizeEvent(event)
        self.arrange()

    def minimumSizeHint(self) -> QSize:  # noqa: N802, D102 - Qt's name
        widest = max((widget.minimumSizeHint().width() for widget in self._widgets), default=0)
        return QSize(widest, super().minimumSizeHint().height())


def _append(column: QVBoxLayout, widget: QWidget) -> None:
    # The last thing in a column is the room that is left.
    column.insertWidget(column.count() - 1, widget)

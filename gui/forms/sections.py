"""Cards with a title, and their arrangement in one or two columns depending on the width."""

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from proteoscope.gui.labels import heading
from proteoscope.gui.layouts import STRETCH, in_column, in_row
from proteoscope.gui.surfaces import Card


class Section(Card):
    """Card of a form: a title above a grid with three columns; the middle column takes the free space.

    Parameters
    ----------
    title : str
        Title of the card.
    *widgets : QWidget
        Widgets below each other in the first rows of the grid, across its columns.
    """

    def __init__(self, title: str, *widgets: QWidget) -> None:
        super().__init__()
        self.title = heading(title)
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(8)
        self.grid.setVerticalSpacing(2)
        self.grid.setColumnStretch(1, 1)
        for row, widget in enumerate(widgets):
            self.grid.addWidget(widget, row, 0, 1, 3)
        in_column(self.title, self.grid, on=self, margins=(14, 10, 10, 12))


class Columns(QWidget):
    """Container of widgets in one column, or in two columns of about the same height if there is enough width.

    Parameters
    ----------
    characters : int
        Minimum width of each of two columns in characters; with less width, there is one column.
    """

    def __init__(self, characters: int = 50) -> None:
        super().__init__()
        self._widgets: list[QWidget] = []
        self._column_width = self.fontMetrics().horizontalAdvance("n") * characters
        self._n_columns = 0
        row = in_row(on=self, spacing=12)
        self._columns = []
        for _ in range(2):
            column = in_column(STRETCH, spacing=12)
            row.addLayout(column, 1)
            self._columns.append(column)

    def add(self, widget: QWidget) -> None:
        """Append a widget."""
        self._widgets.append(widget)
        _append(self._columns[0], widget)

    def arrange(self) -> None:
        """Distribute the widgets over one or two columns, depending on the width, unless the number of columns is unchanged.

        Called when the width changes.
        """
        n_columns = 2 if self.width() >= 2 * self._column_width else 1
        if n_columns == self._n_columns:
            return
        self._n_columns = n_columns
        heights = [widget.sizeHint().height() for widget in self._widgets]
        half, filled = sum(heights) / 2, 0.0
        for widget, height in zip(self._widgets, heights, strict=True):
            # Cards stay in order: a card goes to the second column if its middle is below half of the total height.
            column = 1 if n_columns == 2 and filled + height / 2 > half else 0
            filled += height
            for layout in self._columns:
                layout.removeWidget(widget)
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
    # Insert before the stretch, which is the last item of a column.
    column.insertWidget(column.count() - 1, widget)

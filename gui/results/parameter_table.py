"""Table of the parameters in which compared runs differ."""

from PySide6.QtCore import QEvent
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QSizePolicy, QTableWidget, QTableWidgetItem

from proteoscope.engine.views.run_comparison import RunComparison
from proteoscope.gui.labels import tip_text

_MAXIMUM_ROWS = 4
"""Number of rows that are visible without scrolling."""
_MAXIMUM_WIDTH = 260


class ParameterTable(QTableWidget):
    """Table with a row for each parameter that differs and a column for each run, as high as its rows; hidden without rows."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[tuple[str, ...]] = []
        self.setAccessibleName("Parameters that differ")
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setAlternatingRowColors(True)
        self.verticalHeader().hide()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_differences(self, comparison: RunComparison) -> None:
        """Show the parameters in which the runs of a comparison differ."""
        names = [f"{symbol}: {label}" for symbol, label in zip(comparison.symbols, comparison.labels, strict=True)]
        rows = [(row.title, *row.values) for row in comparison.parameters]
        self._rows = [("Parameter", *names), *rows]
        self.setColumnCount(1 + len(names))
        self.setRowCount(len(rows))
        self.setHorizontalHeaderLabels(self._rows[0])
        for at, row in enumerate(rows):
            for column, text in enumerate(row):
                item = QTableWidgetItem(text)
                item.setToolTip(tip_text(text))
                self.setItem(at, column, item)
        self.resizeColumnsToContents()
        for column in range(self.columnCount()):
            self.setColumnWidth(column, min(self.columnWidth(column), _MAXIMUM_WIDTH))
            header = self.horizontalHeaderItem(column)
            if header is not None:
                header.setToolTip(tip_text(header.text()))
        self.resizeRowsToContents()
        self.setVisible(bool(rows))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the height to the scroll bar, which a narrow table has."""
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the height to another font."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.resizeRowsToContents()
            self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Copy the whole table with the Copy shortcut."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in self._rows) + "\n")
            event.accept()
        else:
            super().keyPressEvent(event)

    def _fit(self) -> None:
        rows = sum(self.rowHeight(row) for row in range(min(self.rowCount(), _MAXIMUM_ROWS)))
        is_wide = self.horizontalHeader().length() > self.width() - 2 * self.frameWidth()
        bar = self.horizontalScrollBar().sizeHint().height() if is_wide else 0
        self.setFixedHeight(self.horizontalHeader().sizeHint().height() + rows + 2 * self.frameWidth() + bar)

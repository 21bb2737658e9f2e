"""A figure of spectra with its bar and readout, or a text in its place: what views of one spectrum and of two have in common."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedLayout, QWidget

from proteoscope.gui.buttons import text_button
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.tables.elided_label import ElidedLabel, ReadoutLabel

__all__ = ["SpectrumPage"]


class SpectrumPage(QWidget):
    """A page with a plot and what belongs to it, which a view derives from and lays out in `_shown` below its `_bar`.

    Parameters
    ----------
    plot : the figure. shown : what it shows, in words, as ``the spectrum``. export_tip : what its export writes.
    """

    message = Signal(str)
    _bar: QHBoxLayout

    def __init__(self, plot: FigureView, shown: str, export_tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = ElidedLabel()
        self.plot = plot
        self.plot.targetHovered.connect(self._hover)
        self.plot.message.connect(self.message)
        self.export_action = self.plot.export_action
        # Also while the keyboard is in a table.
        self.export_action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        self.export_button = text_button("Export…", export_tip, self.export_action.ask, f"Export {shown} as a figure")
        self.readout = ReadoutLabel("Peak under the pointer")
        self._text = QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._text.setContentsMargins(24, 24, 24, 24)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._shown = QWidget()
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._text)
        self._stack.addWidget(self._shown)

    @property
    def text(self) -> str:
        """What is shown in place of spectra, empty when there are some."""
        return self._text.text() if self._stack.currentWidget() is self._text else ""

    @property
    def title(self) -> str:
        """What is shown."""
        return self._title.full_text

    def add_to_bar(self, widget: QWidget) -> None:
        """Put a button of the view's owner into the bar above the spectra."""
        self._bar.insertWidget(1, widget)

    def _show_in_place(self, text: str) -> None:
        self._text.setText(text)
        self._stack.setCurrentWidget(self._text)

    def _hover(self, target: int | None) -> None:
        """Mark the peak of a target, and show what it is."""
        raise NotImplementedError

"""Base class of views of one or two spectra: a figure with a bar and a readout, or a text."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedLayout, QWidget

from proteoscope.gui.buttons import text_button
from proteoscope.gui.elided_label import ElidedLabel, ReadoutLabel
from proteoscope.gui.plots.figure_view import FigureView


class SpectrumPage(QWidget):
    """Page with a plot, a bar above it and a text line below it, or a text; derived classes lay these out in `_shown`.

    Parameters
    ----------
    plot : FigureView
        The figure.
    shown : str
        Noun phrase for the content of the figure, such as ``the spectrum``, for accessible names.
    export_tip : str
        Tooltip of the export button.
    parent : QWidget or None
        Owner of the page.
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
        # The shortcut also works while a table has the focus.
        self.export_action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        self.export_button = text_button("Export…", export_tip, self.export_action.prompt, f"Export {shown} as a figure")
        self.readout = ReadoutLabel("Peak under the pointer")
        self._text = QLabel(textFormat=Qt.TextFormat.PlainText, wordWrap=True, alignment=Qt.AlignmentFlag.AlignCenter)
        self._text.setContentsMargins(24, 24, 24, 24)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._shown = QWidget()
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._text)
        self._stack.addWidget(self._shown)

    @property
    def text(self) -> str:
        """Text shown instead of spectra, or ''."""
        return self._text.text() if self._stack.currentWidget() is self._text else ""

    @property
    def title(self) -> str:
        """Title of the shown spectra."""
        return self._title.full_text

    def add_to_bar(self, widget: QWidget) -> None:
        """Insert a button into the bar above the spectra."""
        self._bar.insertWidget(1, widget)

    def _show_in_place(self, text: str) -> None:
        self._text.setText(text)
        self._stack.setCurrentWidget(self._text)

    def _hover(self, target: int | None) -> None:
        """Mark the peak under the pointer and describe it in the readout; None removes the mark."""
        raise NotImplementedError

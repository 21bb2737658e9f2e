"""The view of two spectra that are compared: what they are, the spectra mirrored, and what is under the pointer."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedLayout, QToolButton, QVBoxLayout, QWidget

from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.spectrum_figures import mirror_figure, mirrored_peak, mirrored_peak_text
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.panel_items import localised
from proteoscope.gui.spectrum.spectrum_view import RING
from proteoscope.gui.tables.elided_label import ElidedLabel, ReadoutLabel

__all__ = ["MirrorView"]


class MirrorView(QWidget):
    """Shows a spectrum and the one that it is compared with, or a text that says why there is none."""

    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spectra: MirroredSpectra | None = None
        self._title = ElidedLabel()
        self.export_button = QToolButton()
        self.export_button.setText("Export…")
        self.export_button.setToolTip("Save the spectra as they are zoomed now as SVG, PDF or PNG (Ctrl+E)")
        self.export_button.setAccessibleName("Export the spectra as a figure")
        self.plot = FigureView("Two spectra compared", least=(160, 130), has_heading=False)
        self.plot.targetHovered.connect(self._hover)
        self.plot.message.connect(self.message)
        self.readout = ReadoutLabel("Peak under the pointer")
        self._text = QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._text.setMinimumWidth(1)
        self._text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._text.setContentsMargins(24, 24, 24, 24)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.export_action = self.plot.export_action
        # Also while the keyboard is in a table.
        self.export_action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        self.export_button.clicked.connect(self.export_action.ask)
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 3, 6, 3)
        bar.setSpacing(6)
        bar.addWidget(self._title, 1)
        bar.addWidget(self.export_button)
        self._bar = bar
        shown = QWidget()
        layout = QVBoxLayout(shown)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.plot, 1)
        layout.addWidget(self.readout)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._text)
        self._stack.addWidget(shown)
        self._shown = shown
        self.show_text("")

    @property
    def text(self) -> str:
        """What is said in place of spectra, empty when there are some."""
        return self._text.text() if self._stack.currentWidget() is self._text else ""

    @property
    def title(self) -> str:
        """What is compared."""
        return self._title.full_text

    def add_to_bar(self, widget: QWidget) -> None:
        """Put a button of the view's owner beside the one above the spectra."""
        self._bar.insertWidget(1, widget)

    def show_text(self, text: str) -> None:
        """Say why there are no spectra."""
        self.spectra = None
        self.plot.show_figure(None)
        self.export_action.setEnabled(False)
        self._text.setText(text)
        self._stack.setCurrentWidget(self._text)

    def show_spectra(self, spectra: MirroredSpectra) -> None:
        """Show a spectrum and the one that it is compared with."""
        self.spectra = spectra
        self._title.set_text(spectra.title)
        self.plot.show_figure(mirror_figure(spectra))
        self.plot.setAccessibleDescription(f"{spectra.title}, {self._summary()}")
        self.readout.setText(self._summary())
        self.export_action.setEnabled(True)
        self._stack.setCurrentWidget(self._shown)

    def _hover(self, target: int | None) -> None:
        """Mark the peak of a target and the same one of the other spectrum, and show what they are."""
        if self.spectra is None:
            return
        if target is None:
            self.plot.mark()
            self.readout.setText(self._summary())
            return
        half, peak = mirrored_peak(target)
        partner = self.spectra.partner(half, peak)
        self.plot.mark(target, *(() if partner is None else (partner if half else ~partner,)), size=RING)
        self.readout.setText(localised(mirrored_peak_text(self.spectra, half, peak)))

    def _summary(self) -> str:
        assert self.spectra is not None
        note = f"{self.spectra.note}   " if self.spectra.note else ""
        counts = [self.locale().toString(len(half.peaks.mz)) for half in self.spectra.halves]
        if len(counts) == 1:
            return f"{note}{counts[0]} peaks"
        if self.spectra.is_one_spectrum:
            return f"{note}{counts[0]} peaks; ions above {self._explained(0)}, below {self._explained(1)}"
        n_shared = self.locale().toString(len(self.spectra.shared))
        return f"{note}{n_shared} peaks shared within {self.spectra.tolerance}, of {counts[0]} above and {counts[1]} below"

    def _explained(self, half: int) -> str:
        """The ions of one of two answers, and how much of the intensity they explain."""
        assert self.spectra is not None
        ions = self.spectra.halves[half].ions
        is_first = ions is next((one.ions for one in self.spectra.halves if one.ions is not None), None)
        return "none" if ions is None else f"{len(ions.matches)} ({ions.explained * 100:.0f} %{' of intensity' if is_first else ''})"

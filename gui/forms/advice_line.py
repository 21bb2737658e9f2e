"""Line next to the Run button with a warning about settings that do not suit the files, and a button for a suitable preset."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from proteoscope.engine.parameters import PresetAdvice
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import toned_label
from proteoscope.gui.layouts import in_row


class AdviceLine(QWidget):
    """Line with advice on settings, hidden if there is no advice.

    Signals
    -------
    taken
        Name of the preset that the user applies with the button.
    """

    taken = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.advice: PresetAdvice | None = None
        """The shown advice, or None."""
        self.label = toned_label(tone="attention")
        self.label.setMinimumWidth(1)
        self.button = QPushButton()
        set_icon(self.button, "reset")
        self.button.clicked.connect(self._take)
        in_row((self.label, 1), self.button, on=self)
        self.hide()

    def show_advice(self, advice: PresetAdvice | None) -> None:
        """Show advice; None hides the line."""
        self.advice = advice
        if advice is not None:
            self.label.setText(f"{advice.text}.")
            self.button.setVisible(bool(advice.preset))
            self.button.setText(f"Use {advice.preset}")
            self.button.setToolTip(f"Apply the preset {advice.preset}. Undo, next to the preset, restores your edited values")
        self.setVisible(advice is not None)

    def _take(self) -> None:
        if self.advice is not None:
            self.taken.emit(self.advice.preset)

"""Panel with predicted and measured run times, as stacked bars, which can be exported, and as text."""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QSizeF, Qt, Signal
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from proteoscope.engine.views.run_prediction import RunPrediction, draw_stacks, stack_lines
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import heading, toned_label
from proteoscope.gui.plots.drawing_view import DrawingView

__all__ = ["PredictionPanel"]

_FIGURE = QSizeF(420, 140)
_FONT_SHARE = 0.8
"""Font size as a fraction of the line height."""


class PredictionPanel(QWidget):
    """Shows the predicted and measured times of a run, or that it has no prediction.

    Signals
    -------
    message
        Outcome of an export.
    """

    message = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.bound = heading("")
        self.bars = DrawingView("Predicted and measured run time (s)", _FIGURE)
        self.export_button = QPushButton("&Export figure…")
        self.export_button.setToolTip("Write the bars as SVG, PDF or PNG (Ctrl+E at the bars)")
        set_icon(self.export_button, "save")
        self.export_button.clicked.connect(self.bars.export_action.prompt)
        self.bars.message.connect(self.message)
        self.words = QLabel()
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setWordWrap(True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        self.words.setAccessibleName("Predicted and measured run time as text")
        top = QHBoxLayout()
        top.addWidget(self.bound, 1)
        top.addWidget(self.export_button)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(10, 8, 10, 8)
        column.addLayout(top)
        column.addWidget(self.bars)
        column.addWidget(self.words)
        column.addWidget(
            toned_label(
                "“kernel” is computing on devices, “host” everything else. On GPUs, a run measures transfers, kernels "
                "and waiting together, as “GPUs”."
            )
        )
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidget(content)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.addWidget(scroll)

    def show_prediction(self, prediction: RunPrediction | None) -> None:
        """Show the predicted and measured times of a run; None shows that there is no prediction."""
        if prediction is None:
            self.bars.show_drawing(None)
            self.bound.setText("")
            self.words.setText("This run has no prediction.")
            return
        bars, lines = prediction.bars, stack_lines(prediction.bars)
        self.bars.setFixedHeight(ceil(QFontMetricsF(self.font()).height() * _FONT_SHARE * lines))
        self.bars.show_drawing(lambda width, height, size: draw_stacks(bars, width, min(size, height / lines)))
        self.bound.setText((prediction.measured_bound or prediction.bound).capitalize())
        self.words.setText("\n".join(prediction.lines))

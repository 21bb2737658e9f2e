"""Panel with predicted and measured run times, as text and as stacked bars; the bars can be exported."""

from math import ceil

from PySide6.QtCore import QSizeF, Qt, Signal
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QLabel, QWidget

from proteoscope.engine.views.run_prediction import RunPrediction, draw_stacks, stack_lines
from proteoscope.gui.buttons import push_button
from proteoscope.gui.labels import described, heading, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_scroll_area, widget_with
from proteoscope.gui.plots.drawing_view import DrawingView

_FIGURE = QSizeF(420, 140)
_FONT_SHARE = 0.8
"""Font size as a fraction of the line height."""


class PredictionPanel(QWidget):
    """Panel with the predicted and measured times of a run; for a run without a prediction, a text says so.

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
        self.export_button = push_button(
            "&Export figure…", self.bars.export_action.prompt, "save", "Write the bars as SVG, PDF or PNG (Ctrl+E at the bars)"
        )
        self.bars.message.connect(self.message)
        self.words = described(
            QLabel(
                textFormat=Qt.TextFormat.PlainText,
                wordWrap=True,
                textInteractionFlags=Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard,
            ),
            "Predicted and measured run time as text",
        )
        content = in_column(
            in_row((self.bound, 1), self.export_button),
            self.bars,
            self.words,
            toned_label(
                "“kernel” is computing on devices, “host” everything else. On GPUs, a run measures transfers, kernels "
                "and waiting together, as “GPUs”."
            ),
            STRETCH,
            margins=(10, 8, 10, 8),
        )
        in_column(make_scroll_area(widget_with(content)), on=self)

    def show_prediction(self, prediction: RunPrediction | None) -> None:
        """Show the predicted and measured times of a run; None shows the text that there is no prediction."""
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

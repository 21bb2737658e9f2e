"""Page shown while none or several runs of the project are selected."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QWidget

from proteoscope.gui.buttons import PrimaryButton
from proteoscope.gui.labels import heading, show_text, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_scroll_area, widget_with


class SelectionPage(QWidget):
    """Titles of the selected runs, with a button that compares them.

    Results of a single run are not shown, since they would not match the selection.

    Parameters
    ----------
    compare_action : QAction
        Action that compares the selected runs. While it is disabled, its tooltip is the reason.
    """

    MANUAL = "projects"
    """Name of the manual page about this page."""

    def __init__(self, compare_action: QAction) -> None:
        super().__init__()
        self.setAccessibleName("Selected runs")
        self._compare_action = compare_action
        self._heading = heading("", 1.3)
        self._titles = QLabel(textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self._advice = toned_label()
        self.compare_button = PrimaryButton("Compare these runs")
        self.compare_button.clicked.connect(lambda: compare_action.trigger())
        self._reason = toned_label(tone="attention")
        content = in_column(
            STRETCH,
            self._heading,
            self._titles,
            self._advice,
            in_row(self.compare_button, STRETCH),
            self._reason,
            2 * STRETCH,
            margins=(24, 12, 24, 12),
            spacing=10,
        )
        in_column(make_scroll_area(widget_with(content)), on=self)

    @property
    def text(self) -> str:
        """The shown text."""
        labels = (self._heading, self._titles, self._advice, self._reason)
        return "\n".join(label.text() for label in labels if label.text())

    def show_runs(self, titles: Sequence[str]) -> None:
        """Show the titles of the selected runs."""
        are_several = len(titles) > 1
        self._heading.setText(f"{len(titles)} runs selected" if are_several else "No run selected")
        show_text(self._titles, "\n".join(titles))
        self._advice.setText("Select one run to see its results, or compare these." if are_several else "Select a run to see its results.")
        can_be_compared = self._compare_action.isEnabled()
        self.compare_button.setVisible(are_several)
        self.compare_button.setEnabled(can_be_compared)
        show_text(self._reason, "" if can_be_compared or not are_several else self._compare_action.toolTip())

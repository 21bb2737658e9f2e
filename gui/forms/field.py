"""Row of a form with title, editor and reset button, and an error message below."""

from html import escape
from typing import Any

from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QWidget

from proteoscope.engine.parameters import ParameterDescription
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.forms.editors import editor_for
from proteoscope.gui.forms.numbers import number_text
from proteoscope.gui.labels import field_label, set_bold, show_text, toned_label
from proteoscope.gui.layouts import hide_in_place, in_column
from proteoscope.gui.theme import colours


class Outlined(QWidget):
    """Frame around an editor, drawn red while the value is invalid.

    Attributes
    ----------
    description : ParameterDescription or None
        Description of the edited parameter, whose help can be opened.
    """

    def __init__(self, editor: QWidget, margin: int = 3) -> None:
        super().__init__()
        self.description: ParameterDescription | None = None
        self._is_wrong = False
        self.message = toned_label(tone="wrong", is_hidden=True)
        """Label for an error, which the owner of the frame places."""
        self.message.setParent(self)  # until the owner of the frame places it
        in_column(editor, on=self, margins=margin)

    @property
    def is_wrong(self) -> bool:
        """True if the editor is marked as invalid."""
        return self._is_wrong

    def mark(self, is_wrong: bool) -> None:
        """Mark the editor as invalid or valid."""
        if is_wrong != self._is_wrong:
            self._is_wrong = is_wrong
            self.update()

    def show_problem(self, problem: str) -> None:
        """Mark the editor as invalid and show the error `problem` below it; if `problem` is '', mark the editor as valid."""
        self.mark(bool(problem))
        show_text(self.message, problem)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        if not self._is_wrong:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(colours().wrong), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)


class Field(QObject):
    """Widgets of one parameter in a form.

    Signals
    -------
    changed
        The value may have changed.
    help_requested
        Description of the parameter whose help is requested.
    """

    changed = Signal()
    help_requested = Signal(object)

    def __init__(self, description: ParameterDescription) -> None:
        super().__init__()
        self.description = description
        self.editor = editor_for(description)
        self.frame = Outlined(self.editor)
        self.frame.description = description
        self.label = field_label(description.title, self.editor)
        self.label.setWordWrap(True)
        self.message = self.frame.message
        self.reset_button = tool_button("reset", "Reset to the preset's value", self.reset)
        hide_in_place(self.reset_button)
        self.help_button = tool_button("help", f"Help on “{description.title}” (F1 in the field)", self._request_help)
        self.help_button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # keyboard users can press F1, and the Tab order should stay short
        self._baseline: Any = None
        self._is_marked_changed = False
        self._describe()
        self.editor.changed.connect(self.changed)

    @property
    def is_changed(self) -> bool:
        """True if the value differs from the preset."""
        return bool(self.editor.problem()) or _plain(self.editor.value()) != _plain(self._baseline)

    def set_baseline(self, value: Any) -> None:
        """Show the value of a preset, to which the reset button returns."""
        self._baseline = value
        self.editor.set_value(value)

    def reset(self) -> None:
        """Reset to the preset's value."""
        self.editor.set_value(self._baseline)
        self.changed.emit()

    def show_state(self, problem: str, is_changed: bool) -> None:
        """Show the error, and whether the value differs from the preset.

        Widgets are only updated if their state differs, since this is called for all fields whenever one changes.
        """
        if problem != self.message.text():
            self.frame.show_problem(problem)
        if is_changed != self._is_marked_changed:
            self._is_marked_changed = is_changed
            set_bold(self.label, is_changed)
            self.reset_button.setVisible(is_changed)

    def place(self, grid: QGridLayout) -> None:
        """Add the widgets of the field to the next two rows of a grid with four columns."""
        row = grid.rowCount()
        grid.addWidget(self.label, row, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.frame, row, 1, Qt.AlignmentFlag(0) if self.editor.takes_full_width else Qt.AlignmentFlag.AlignLeft)
        grid.addWidget(self.reset_button, row, 2, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.help_button, row, 3, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.message, row + 1, 1, 1, 3)
        # Align the label with the first line of text in the editor.
        self.label.setContentsMargins(0, 8, 0, 0)
        for button in (self.reset_button, self.help_button):
            button.setContentsMargins(0, 4, 0, 0)

    def _request_help(self) -> None:
        self.help_requested.emit(self.description)

    def _describe(self) -> None:
        description = self.description
        tip = f"<p><b>{escape(description.title)}</b><br>{escape(description.help)}</p><p>{escape(_range(description))}</p>"
        self.label.setToolTip(tip)
        self.editor.setToolTip(tip)
        self.editor.setAccessibleName(description.title)
        self.editor.setAccessibleDescription(description.help)
        focus = self.editor.focusProxy()
        if focus is not None:
            # In an editor with several boxes, the first box already has its own accessible name.
            focus.setAccessibleName(f"{description.title}: {focus.accessibleName()}" if focus.accessibleName() else description.title)
            focus.setAccessibleDescription(description.help)


def _range(description: ParameterDescription) -> str:
    unit = f" {description.unit}" if description.unit else ""
    parts = []
    if description.minimum is not None:
        parts.append(f"from {number_text(description.minimum)}")
    if description.maximum is not None:
        parts.append(f"to {number_text(description.maximum)}{unit}")
    bounds = " ".join(parts)
    return f"In preset files: {description.name}" + (f"; {bounds}" if bounds else "")


def _plain(value: Any) -> Any:
    """Return a value for comparison with the value of an editor: lists and tuples become lists of strings."""
    if isinstance(value, tuple | list):
        return [str(part) for part in value]
    return value

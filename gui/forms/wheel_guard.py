"""Boxes that use the mouse wheel only if the user has focused them; otherwise the wheel scrolls the form."""
# ruff: noqa: N802, D102 - Qt gives these names

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QWidget

from proteoscope.gui.labels import answer_tooltip

if TYPE_CHECKING:
    _Widget = QWidget
else:
    # At run time, a class may have only one Qt class among its bases.
    _Widget = object

_FIELD_MARGIN, _ICON_GAP = 1, 4
"""Pixels that Qt leaves at each side of the text of a combo box, and between its icon and its text."""
_BY_THE_USER = frozenset(
    {
        Qt.FocusReason.MouseFocusReason,
        Qt.FocusReason.TabFocusReason,
        Qt.FocusReason.BacktabFocusReason,
        Qt.FocusReason.ShortcutFocusReason,
    }
)
_AUTOMATIC_RETURN = frozenset({Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason, Qt.FocusReason.MenuBarFocusReason})
"""Reasons of focus events that Qt sends when the focus returns from another window, the list of the box, or a menu."""


class WheelAfterFocus(_Widget):
    """Mixin for boxes in which the mouse wheel changes the value only after a click or key press; before that, the wheel scrolls the form.

    Focus alone is not sufficient, since Qt focuses the first box of a page when the page opens.
    """

    _is_meant = False

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus() and self._is_meant:
            super().wheelEvent(event)
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        if event.reason() not in _AUTOMATIC_RETURN:
            self._is_meant = event.reason() in _BY_THE_USER
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._is_meant = True
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._is_meant = True
        super().mousePressEvent(event)


class ChoiceBox(WheelAfterFocus, QComboBox):
    """Combo box that ignores accidental use of the mouse wheel, and elides a text that does not fit.

    If the text is elided and the box has no other tooltip, the tooltip is the whole text.

    Parameters
    ----------
    choices : iterable of (str, object)
        Texts of the items, each with its value (`currentData`).
    n_characters : int
        Width of the box in characters; 0 for the width of its items. The list is always as wide as its texts.
    """

    def __init__(self, choices: Iterable[tuple[str, Any]] = (), *, n_characters: int = 0) -> None:
        super().__init__()
        # With Qt's default policy, the wheel would focus the box.
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        if n_characters:
            self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            self.setMinimumContentsLength(n_characters)
        for text, value in choices:
            self.addItem(text, value)

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """Elide the shown text, which Qt would cut."""
        super().initStyleOption(option)
        if not self.isVisible():
            return
        field = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self)
        icon = 0 if option.currentIcon.isNull() else option.iconSize.width() + _ICON_GAP
        space = field.width() - 2 * _FIELD_MARGIN - icon
        option.currentText = self.fontMetrics().elidedText(option.currentText, Qt.TextElideMode.ElideRight, space)

    @property
    def shown_text(self) -> str:
        """The current text as it is shown, elided if space is short."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        return str(option.currentText)

    def event(self, event: QEvent) -> bool:
        """Answer a request for a tooltip if the text is elided."""
        if event.type() == QEvent.Type.ToolTip and not self.toolTip():
            is_elided = self.shown_text != self.currentText()
            return (is_elided and answer_tooltip(event, self, lambda _: self.currentText())) or super().event(event)
        return super().event(event)

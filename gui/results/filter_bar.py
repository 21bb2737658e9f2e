"""What to show, for all tables at once: the text, the button that resets, and the fields that a kind of search adds."""
# ruff: noqa: N815 - Qt's way of naming signals

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QPushButton, QWidget

__all__ = ["FilterBar"]

_TYPING_MS = 150


class FilterBar(QWidget):
    """A line of fields. A kind of search derives from it, adds its own with `_add`, and sets them in `_usual`.

    Parameters
    ----------
    looked_in : what the text is looked for in, as ``Peptide, accession or description``.
    reset_tip : what the button Reset leads back to.
    """

    filterChanged = Signal()

    def __init__(self, looked_in: str, text_tip: str, reset_tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._later = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._later.timeout.connect(self.filterChanged)
        self.text = QLineEdit()
        self.text.setPlaceholderText(looked_in)
        self.text.setClearButtonEnabled(True)
        self.text.setAccessibleName("Filter by text")
        self.text.setToolTip(f"{text_tip} (Ctrl+F)")
        self.text.setMinimumWidth(80)
        self.text.textChanged.connect(self._later.start)
        self.text.returnPressed.connect(self._now)
        self.reset_button = QPushButton("&Reset")
        self.reset_button.setToolTip(reset_tip)
        self.reset_button.clicked.connect(self.reset)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(6, 4, 6, 4)
        self._row.setSpacing(6)
        self._row.addWidget(self.text, 1)
        self._row.addWidget(self.reset_button)
        find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        find.setContext(Qt.ShortcutContext.WindowShortcut)
        find.activated.connect(self._take_focus)

    def reset(self) -> None:
        """Show what is shown at first."""
        self._reset_fields()
        self._now()

    def _add(self, field: QWidget, label: str = "") -> None:
        """Put a field before the button Reset, with a label whose letter after & leads to it."""
        if label:
            named = QLabel(label)
            named.setBuddy(field)
            self._row.insertWidget(self._row.count() - 1, named)
        self._row.insertWidget(self._row.count() - 1, field)

    def _choices(self, name: str, help_text: str) -> QComboBox:
        """A field with choices that filters at once."""
        box = QComboBox()
        box.setAccessibleName(name)
        box.setToolTip(help_text)
        box.activated.connect(self._now)
        return box

    def _usual(self) -> None:
        """Set the fields of its own as they are at first."""
        raise NotImplementedError

    def _reset_fields(self) -> None:
        self.text.clear()
        self._usual()
        self._later.stop()

    def _now(self) -> None:
        self._later.stop()
        self.filterChanged.emit()

    def _take_focus(self) -> None:
        self.text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.text.selectAll()

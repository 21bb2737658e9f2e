"""What to show, for all tables at once."""
# ruff: noqa: N815 - Qt's way of naming signals

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QHBoxLayout, QLabel, QLineEdit, QPushButton, QWidget

from gui.results.identification import Facets, RowFilter

__all__ = ["FilterBar"]

_TYPING_MS = 150


class FilterBar(QWidget):
    """Text, q-value, charge, modification and decoys."""

    filterChanged = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fdr = 0.01
        self._later = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._later.timeout.connect(self.filterChanged)
        self.text = QLineEdit()
        self.text.setPlaceholderText("Peptide, accession or description")
        self.text.setClearButtonEnabled(True)
        self.text.setAccessibleName("Filter by text")
        self.text.setToolTip("Shows what has this text in its peptide, its accession or its protein's description (Ctrl+F)")
        self.text.setMinimumWidth(150)
        self.text.textChanged.connect(self._later.start)
        self.text.returnPressed.connect(self._now)
        self.q_value = QDoubleSpinBox()
        self.q_value.setDecimals(4)
        self.q_value.setRange(0.0, 1.0)
        self.q_value.setSingleStep(0.005)
        self.q_value.setAccessibleName("Largest q-value")
        self.q_value.setToolTip("Hides what is accepted only at a larger false discovery rate; 1 shows everything")
        self.q_value.setKeyboardTracking(False)
        self.q_value.valueChanged.connect(self._later.start)
        self.charge = _choices("Charge", "Shows PSMs of this charge only")
        self.charge.activated.connect(self._now)
        self.modification = _choices("Modification", "Shows peptides and PSMs with this modification only")
        self.modification.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.modification.setMaximumWidth(220)
        self.modification.activated.connect(self._now)
        self.decoys = QCheckBox("&Decoys")
        self.decoys.setToolTip("Shows decoys too, in italics")
        self.decoys.toggled.connect(self._now)
        self.reset_button = QPushButton("&Reset")
        self.reset_button.setToolTip("Shows again what is accepted at the false discovery rate of the run")
        self.reset_button.clicked.connect(self.reset)

        layout = QHBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(6)
        layout.addWidget(self.text, 1)
        for label, field in (("&q-value ≤", self.q_value), ("C&harge", self.charge), ("&Modification", self.modification)):
            named = QLabel(label)
            named.setBuddy(field)
            layout.addWidget(named)
            layout.addWidget(field)
        layout.addWidget(self.decoys)
        layout.addWidget(self.reset_button)
        find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        find.setContext(Qt.ShortcutContext.WindowShortcut)
        find.activated.connect(self._take_focus)
        self.open(0.01, Facets((), ()))

    @property
    def chosen(self) -> RowFilter:
        """What is asked for."""
        q_value = self.q_value.value()
        return RowFilter(
            self.text.text(),
            None if q_value >= 1 else q_value,
            self.charge.currentData(),
            self.modification.currentData(),
            self.decoys.isChecked(),
        )

    def open(self, fdr: float, offered: Facets) -> None:
        """Offer what a run has, and show what is accepted at `fdr`; tells nobody."""
        self._fdr = fdr
        self.blockSignals(True)
        self.offer(offered)
        self._usual()
        self.blockSignals(False)

    def offer(self, offered: Facets) -> None:
        """Offer what a run has; what is chosen stays where it is still offered. Tells nobody."""
        charges = [("any", None), *((f"{QLocale().toString(charge)}+", charge) for charge in offered.charges)]
        modifications = [("any", None), ("unmodified", ""), *((name, name) for name in offered.modifications)]
        for box, choices in ((self.charge, charges), (self.modification, modifications)):
            before = box.currentText()
            box.clear()
            for text, value in choices:
                box.addItem(text, value)
            box.setCurrentIndex(max(0, box.findText(before)))

    def reset(self) -> None:
        """Show what is accepted at the run's false discovery rate."""
        self._usual()
        self._now()

    def _usual(self) -> None:
        self.text.clear()
        self.q_value.setValue(self._fdr)
        self.charge.setCurrentIndex(0)
        self.modification.setCurrentIndex(0)
        self.decoys.setChecked(False)
        self._later.stop()

    def _now(self) -> None:
        self._later.stop()
        self.filterChanged.emit()

    def _take_focus(self) -> None:
        self.text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.text.selectAll()


def _choices(name: str, help_text: str) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    box.setToolTip(help_text)
    return box

"""The dialog that lists what can compute on this machine, and why what cannot."""

from __future__ import annotations

import platform

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.version import VERSION
from gui.devices import DeviceSurvey, device_text, device_title, memory_text, state_text
from gui.icons import icon, set_icon, without_icons
from gui.labels import toned_label
from gui.theme import colours

__all__ = ["DeviceButton", "DeviceDialog"]

_TITLES = ("Device", "What it is", "Memory", "Compute capability", "Driver", "State")
_PADDING = 14
_EXPLANATION = (
    "“Automatic” (auto) computes on all usable GPUs, and on the processor where there is none. “GPUs and processor together” (all) shares "
    "the work out among them. A GPU is usable when a small test program was compiled and gave the right answer on it."
)


class DeviceButton(QToolButton):
    """Tells in a few words what searches compute on unless told otherwise."""

    def __init__(self, survey: DeviceSurvey) -> None:
        super().__init__()
        self._survey = survey
        self.setAutoRaise(True)
        self.setToolTip("What searches compute on; click for more")
        survey.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        used = self._survey.usable_gpus or list(self._survey.devices[:1])
        more = f" and {len(used) - 1} more" if len(used) > 1 else ""
        self.setText(device_title(used[0]) + more)


class DeviceDialog(QDialog):
    """Lists devices; looks again and copies when asked. It stays open beside the window."""

    def __init__(self, survey: DeviceSurvey, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._survey = survey
        self.setWindowTitle("Devices")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(900, 340)
        self.table = QTableWidget(0, len(_TITLES))
        self.table.setHorizontalHeaderLabels(list(_TITLES))
        self.table.verticalHeader().hide()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setTabKeyNavigation(False)
        self.table.setAccessibleName("Devices of this machine")
        header = self.table.horizontalHeader()
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.state = toned_label()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        without_icons(buttons.buttons())
        self.refresh_button = buttons.addButton("Look again", QDialogButtonBox.ButtonRole.ActionRole)
        self.copy_button = buttons.addButton("Copy as text", QDialogButtonBox.ButtonRole.ActionRole)
        for button in (self.refresh_button, self.copy_button):
            button.setAutoDefault(False)
        set_icon(self.refresh_button, "reset")
        set_icon(self.copy_button, "copy")
        self.refresh_button.clicked.connect(lambda: self._survey.look(again=True))
        self.copy_button.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text()))
        buttons.button(QDialogButtonBox.StandardButton.Close).setDefault(True)
        buttons.rejected.connect(self.reject)
        page = QVBoxLayout(self)
        page.setSpacing(10)
        page.addWidget(toned_label(_EXPLANATION))
        page.addWidget(self.table, 1)
        page.addWidget(self.state)
        page.addWidget(buttons)
        survey.changed.connect(self._show)
        self._show()
        survey.look()

    def text(self) -> str:
        """The list, as it is copied."""
        lines = [f"Proteoscope {VERSION}, {platform.platform()}"]
        lines += [device_text(device, QLocale.c()) for device in self._survey.devices]
        return "\n".join(lines) + "\n"

    def _show(self) -> None:
        locale = QLocale()
        self.table.setRowCount(len(self._survey.devices))
        for row, one in enumerate(self._survey.devices):
            values = (one.name, device_title(one), memory_text(one, locale), one.compute_capability, one.driver, state_text(one))
            for column, value in enumerate(values):
                item = QTableWidgetItem(value)
                item.setToolTip(value)
                if column == len(values) - 1:
                    tone = colours().good if one.usable else colours().attention
                    item.setIcon(icon("done" if one.usable else "warning", QColor(tone)))
                self.table.setItem(row, column, item)
        self.table.resizeColumnsToContents()
        for column in range(len(_TITLES) - 1):
            self.table.setColumnWidth(column, self.table.columnWidth(column) + _PADDING)
        is_looking = self._survey.is_looking
        self.refresh_button.setEnabled(not is_looking)
        n_usable = len(self._survey.usable_gpus)
        found = f"{n_usable or 'No'} usable GPU{'s' if n_usable > 1 else ''}"
        self.state.setText("Looking at the GPUs…" if is_looking else self._survey.problem or found)

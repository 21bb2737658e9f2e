"""Menu actions that show and hide groups of protein features in a figure."""

from __future__ import annotations

from collections.abc import Callable, Collection

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from proteoscope.engine.formats.features import FEATURE_GROUPS

__all__ = ["GroupActions"]


class GroupActions(dict[str, QAction]):
    """Actions of a widget's menu by feature group, each showing or hiding its group.

    `changed` is called after each change.
    """

    def __init__(self, owner: QWidget, changed: Callable[[], object]) -> None:
        super().__init__()
        for group in FEATURE_GROUPS:
            action = QAction(f"Features: {group}", owner)
            action.setCheckable(True)
            action.setChecked(True)
            action.setVisible(False)
            action.toggled.connect(lambda _: changed())
            owner.addAction(action)
            self[group] = action

    @property
    def shown(self) -> frozenset[str]:
        """Shown groups."""
        return frozenset(group for group, action in self.items() if action.isChecked())

    def offer(self, groups: Collection[str]) -> None:
        """Show only the actions of the available groups."""
        for group, action in self.items():
            action.setVisible(group in groups)

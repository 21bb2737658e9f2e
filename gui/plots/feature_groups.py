"""Groups of features of proteins in the menu of a figure, which hides and shows them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from proteoscope.engine.formats.features import FEATURE_GROUPS

__all__ = ["GroupActions"]


class GroupActions(dict[str, QAction]):
    """For each group the action of a widget's menu by which it is hidden and shown.

    `changed` is called when one was.
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
        """Groups that are shown."""
        return frozenset(group for group, action in self.items() if action.isChecked())

    def offer(self, groups: Collection[str]) -> None:
        """Let the menu name the groups that there are."""
        for group, action in self.items():
            action.setVisible(group in groups)

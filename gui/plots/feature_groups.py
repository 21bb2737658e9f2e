"""Menu actions that show and hide groups of protein features in a figure."""

from collections.abc import Callable, Collection

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from proteoscope.engine.formats.features import FEATURE_GROUPS


class GroupActions(dict[str, QAction]):
    """Checkable actions in a widget's context menu by feature group; each action shows or hides its group.

    The function `changed` is called after each change of an action.
    """

    def __init__(self, owner: QWidget, changed: Callable[[], object]) -> None:
        super().__init__()
        for group in FEATURE_GROUPS:
            action = QAction(f"Features: {group}", owner, checkable=True, checked=True, visible=False)
            action.toggled.connect(lambda _: changed())
            owner.addAction(action)
            self[group] = action

    @property
    def shown(self) -> frozenset[str]:
        """Names of the groups whose actions are checked."""
        return frozenset(group for group, action in self.items() if action.isChecked())

    def offer(self, groups: Collection[str]) -> None:
        """Show only the actions of `groups`, the groups that the figure contains."""
        for group, action in self.items():
            action.setVisible(group in groups)

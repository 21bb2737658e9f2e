"""Mixin of views with a 3D panel and the action that shows the panel; the panel is created on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QSplitter

from proteoscope.gui import structure
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.panes import Pane, add_half
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.tasks import WritingTask

if TYPE_CHECKING:
    from proteoscope.gui.structure.structure_panel import StructurePanel

    _View = RunView
else:
    # At run time, a class may have only one Qt class among its bases.
    _View = object

_FOLDER = "Folder with coordinates, alignment and scripts (*)"
_MAXIMUM_NAME_CHARACTERS = 80


class WithStructures(_View):
    """Mixin of views with a 3D panel.

    Derived classes call `_offer_structures_panel`, implement `superpose_selected`, `_take_picks` and `_structures_shown`, and override
    `_make_structures` for other options of the panel.
    """

    alignment: AlignmentView
    structures: StructurePanel | None = None
    """The 3D panel, or None before its first use."""
    structures_action: QAction
    """The checkable action that shows the panel."""
    _across: QSplitter
    """The splitter to which the panel is added."""
    _last_folder = ""
    _scene_suffix = ""
    """Text after the name of the shown chain in the suggested name of a folder."""

    def superpose_selected(self) -> None:
        """Superpose other chains on the shown chain."""
        raise NotImplementedError

    def prompt_for_scene(self) -> None:
        """Prompt for a new folder and request that the content of the 3D panel is written into it."""
        panel = self.structures
        if panel is not None and panel.scene.query is not None:
            name = f"{panel.scene.query.name}{self._scene_suffix}"
            self._prompt_for_folder("Save structures and scripts: new folder", name, panel.files_task)

    def _prompt_for_folder(self, title: str, name: str, task_of: Callable[[Path], WritingTask | None]) -> None:
        def on_selected(chosen: Path) -> None:
            self._last_folder = str(chosen.parent)
            task = task_of(chosen)
            if task is not None:
                self.exportRequested.emit(task)

        # Chain names may contain characters that are invalid in file names.
        name = "".join(character if character.isalnum() or character in "-." else "_" for character in name[:_MAXIMUM_NAME_CHARACTERS])
        prompt_for_path(self, title, on_selected, "new folder", folder=self._last_folder, filters=[_FOLDER], name=name)

    def _offer_structures_panel(self, tip: str, *, is_shown: bool) -> None:
        """Add the action that shows the panel; `tip` is its tooltip."""
        self.structures_action = QAction(
            "Show the structures in &3D",
            self,
            checkable=True,
            checked=is_shown,
            iconText="3D",
            shortcut=QKeySequence("Ctrl+3"),
            shortcutContext=Qt.ShortcutContext.WidgetWithChildrenShortcut,
            toolTip=f"{tip} (Ctrl+3)",
        )
        self.structures_action.toggled.connect(self._show_structures)
        self.alignment.add_action(self.structures_action)
        # Added to the view too, so that the shortcut also works while no row is shown.
        self.addAction(self.structures_action)

    def _show_structures(self, are_shown: bool) -> None:
        if are_shown and self.structures is None:
            self.structures = self._make_structures()
        if self.structures is not None:
            pane = self._pane_of(self.structures)
            pane.restore()
            pane.attach()
            pane.setVisible(are_shown)
            if not are_shown:
                self.structures.close_renderer()
        self._structures_shown(are_shown)
        self.stateChanged.emit()

    def _structures_shown(self, are_shown: bool) -> None:
        """Fill the panel after it was shown, or release its data after it was hidden."""
        raise NotImplementedError

    def _make_structures(self, **options: Any) -> StructurePanel:
        # The first access to this lazy module imports the 3D modules.
        panel = structure.structure_panel.StructurePanel(self._reader.submit, **options)
        panel.message.connect(self.message)
        panel.taskRequested.connect(self.exportRequested)
        panel.filesRequested.connect(self.prompt_for_scene)
        panel.hitsRequested.connect(self.superpose_selected)
        panel.picksChanged.connect(self._take_picks)
        panel.closeRequested.connect(lambda: self.structures_action.setChecked(False))
        add_half(self._across, Pane("3D", panel, is_picture=True))
        return panel

    def _take_picks(self) -> None:
        """Show in other widgets which residues are selected in 3D."""
        raise NotImplementedError

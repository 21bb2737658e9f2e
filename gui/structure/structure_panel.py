"""3D panel: superposed structures with a choice of styles and colours, lists of hits and pairs, and picture export."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QMenu,
    QSplitter,
    QToolButton,
    QWidget,
)

from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs import Progress
from proteoscope.engine.structures.colouring import MAXIMUM_HITS, SCHEMES, Scheme, scheme_named
from proteoscope.engine.structures.meshes import Mesh
from proteoscope.engine.structures.residue_atoms import NO_ATOMS, Atoms, b_factors
from proteoscope.engine.structures.scripts import Style
from proteoscope.engine.views.traces import Trace
from proteoscope.gui.actions import add_choices
from proteoscope.gui.buttons import action_button, menu_button, tool_button
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import described, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_tabs, widget_with
from proteoscope.gui.scrolling_layout import FoldingBar, PaneBar
from proteoscope.gui.structure.canvas import BACKGROUNDS, StructureCanvas
from proteoscope.gui.structure.hit_list import HitList
from proteoscope.gui.structure.image_export import PictureDialog, prompt_for_picture
from proteoscope.gui.structure.overlay import distance_text
from proteoscope.gui.structure.pair_table import PairTable
from proteoscope.gui.structure.reading import ligands, other_chains, side_chain, surface
from proteoscope.gui.structure.rendering import RenderingError
from proteoscope.gui.structure.scene import EXTENTS, STYLES, Pick, Scene
from proteoscope.gui.structure.scene_export import SceneFilesTask
from proteoscope.gui.undo import Change, record

_SIDE_WIDTH = 240
_LEAST_TRIANGLES = 20_000
"""Number of triangles that each surface may have even if all chains together exceed the renderer's maximum."""
_NARROW = 560
"""Width in pixels below which the lists next to the picture are initially closed."""
_CHOICE_CHARACTERS, _ARROW = 9, 30
"""Minimum visible characters of each drop-down field, below which the buttons move to a second line; pixels of its arrow and frame."""


class Submit(Protocol):
    """Function that runs another function in a thread (see `proteoscope.gui.tables.worker.TableWorker.submit`)."""

    def __call__(self, kind: str, function: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        """Run a function; pass its result to `done`, or its error to `failed`."""


class StructurePanel(QWidget):
    """Panel with a query, the selected hit, and pinned hits, superposed in 3D.

    Parameters
    ----------
    submit : Submit
        Function that runs another function in a thread; the panel reads files with it.
    parent : QWidget or None
        Owner of the panel.
    schemes : sequence of Scheme
        Colour schemes, the initial one first.
    has_lists : bool
        True if the lists next to the picture are initially open, provided that there is space.

    Signals
    -------
    picksChanged
        The picked residues (`scene.picks`) have changed.
    hitsRequested
        The user requests that more hits are superposed.
    filesRequested
        The user requests that the scene is saved for other programs.
    taskRequested
        The user requests a picture file; emitted with the task that writes it.
    closeRequested
        The user closes the panel.
    message
        Text for the status bar.
    """

    picksChanged = Signal()
    hitsRequested = Signal()
    filesRequested = Signal()
    taskRequested = Signal(object)
    closeRequested = Signal()
    message = Signal(str)

    def __init__(
        self, submit: Submit, parent: QWidget | None = None, schemes: Sequence[Scheme] = SCHEMES, *, has_lists: bool = True
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName("Structures in 3D")
        self.scene = Scene()
        self.scene.scheme = schemes[0].name
        self._submit = submit
        self._wants_side_chains, self._wants_lists = True, has_lists
        self._are_lists_chosen = False
        """True if the user has opened or closed the lists."""
        self._reported: set[Path] = set()
        self._without_surface: set[Path] = set()
        self.canvas = StructureCanvas(self.scene)
        self.hit_list = HitList()
        self.pair_table = PairTable()
        self.note = toned_label("", "attention", is_hidden=True)
        self.style_box = self._box("Style of the chains", STYLES, self.scene.style, self._choose_style)
        self.colour_box = self._box(
            "Colours of the residues", {scheme.name: scheme.title for scheme in schemes}, self.scene.scheme, self._choose_scheme
        )
        for i, offered_scheme in enumerate(schemes):
            self.colour_box.setItemData(i, offered_scheme.help, Qt.ItemDataRole.ToolTipRole)
        self.extent_box = self._box(
            "Shown chains: all chains of the files, aligned chains, or only their aligned residues",
            EXTENTS,
            self.scene.extent,
            self._choose_extent,
        )
        self._make_actions()
        self.lists_action.triggered.connect(self._choose_lists)
        self._lay_out()
        self.canvas.picked.connect(self._pick_one)
        self.canvas.drawn.connect(self._report_renderer)
        self.canvas.message.connect(self.message)
        self.canvas.kernelsRequested.connect(self._prepare)
        self.canvas.spinChanged.connect(self.spin_action.setChecked)
        self.canvas.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.canvas.customContextMenuRequested.connect(lambda at: self.menu().popup(self.canvas.mapToGlobal(at)))
        self.hit_list.switched.connect(lambda _: self._switched())
        self.hit_list.currentRowChanged.connect(self._name_hit)
        self.pair_table.pairChosen.connect(self._pick_pair)
        self.pair_table.message.connect(self.message)
        self._fill_lists()

    # ------------------------------------------------------------------------------------------------------------ content

    def show_hit(self, query: Trace, hit: Trace | None) -> None:
        """Show a query with the selected hit; the camera is retained if the query is the same."""
        was = self.scene.query
        self.scene.show(query, hit)
        self.canvas.show_text("")
        if self.scene.query is not was:
            self.canvas.show_camera(self.canvas.first_camera(self.scene.points()))
        self._changed()
        self.picksChanged.emit()

    def show_text(self, text: str) -> None:
        """Clear the scene and show a text in its place."""
        self.scene.clear()
        self.canvas.show_text(text)
        self._changed()

    def add_hits(self, hits: Sequence[Trace]) -> None:
        """Add and pin more hits, and zoom to show everything."""
        left_out = self.scene.add(hits)
        if left_out:
            self.message.emit(f"At most {MAXIMUM_HITS} hits are superposed; {left_out} more were left out.")
        self._changed()
        self.canvas.fit(self.scene.points())

    def pick(self, picks: Sequence[Pick]) -> None:
        """Replace the picked residues and atoms, and read the side chains of the residues."""
        self.scene.pick(picks)
        self._read_side_chains()
        self._mark_pair()
        self.canvas.refresh_later()
        self.picksChanged.emit()
        self._report_picks()

    def pick_pair(self, query_row: int, hit_row: int) -> None:
        """Pick a residue of the query and a residue of the selected hit, by row in their chains (-1: none)."""
        chosen = self.scene.chosen
        picks = [Pick(self.scene.query, query_row)] if self.scene.query is not None and query_row >= 0 else []
        picks += [Pick(chosen.trace, hit_row)] if chosen is not None and hit_row >= 0 else []
        self.pick(picks)

    def light(self, residues: Mapping[Trace, NDArray[np.bool_]]) -> None:
        """Highlight exactly these residues, which are selected in other views; the masks have the shape (n,)."""
        before, self.scene.lit = self.scene.lit, dict(residues)
        was, now = ({trace: mask for trace, mask in masks.items() if mask.any()} for masks in (before, residues))
        if was.keys() != now.keys() or any(not np.array_equal(mask, was[trace]) for trace, mask in now.items()):
            self.canvas.refresh()

    def clear_picks(self) -> None:
        """Clear the picks, which Undo restores."""
        if self.scene.picks:
            picks = list(self.scene.picks)
            self.pick([])
            record(Change("clear the selection", self.canvas, picks, [], self.pick))

    def close_renderer(self) -> None:
        """Release the renderer."""
        self.canvas.close_renderer()

    # ------------------------------------------------------------------------------------------------------------ pictures

    def copy_picture(self) -> None:
        """Copy the picture to the clipboard at its size on the screen."""
        if self.scene.query is None:
            return
        ratio = self.canvas.devicePixelRatioF()
        try:
            image = self.canvas.image(QSize(round(self.canvas.width() * ratio), round(self.canvas.height() * ratio)))
        except RenderingError as error:
            self.message.emit(f"The picture cannot be drawn: {error}.")
            return
        QGuiApplication.clipboard().setImage(image)
        self.message.emit("Copied the picture.")

    def prompt_for_picture(self, *, is_turntable: bool) -> None:
        """Prompt for size and file, and request a task that writes a picture or a turntable."""
        if self.scene.query is None:
            return
        dialog = PictureDialog(self.canvas.size(), self, is_turntable=is_turntable)

        def on_selected(path: Path) -> None:
            self.taskRequested.emit(dialog.task(self.canvas, path))
            dialog.deleteLater()

        dialog.accepted.connect(lambda: prompt_for_picture(self, dialog, self._name, on_selected))
        dialog.rejected.connect(dialog.deleteLater)
        dialog.open()

    def files_task(self, folder: Path) -> SceneFilesTask | None:
        """Return the task that writes structures and scripts of the scene into a folder, or None if the scene is empty."""
        return SceneFilesTask.from_scene(self.scene, self.canvas.background_colour, folder)

    @property
    def _name(self) -> str:
        chosen = self.scene.chosen
        return "_".join(trace.name for trace in (self.scene.query, chosen.trace if chosen else None) if trace is not None)

    # ------------------------------------------------------------------------------------------------------------ parts

    def menu(self) -> QMenu:
        """Return the context menu with all actions, owned by the panel."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for group in (self._view_actions, self._write_actions):
            menu.addActions(group)
            menu.addSeparator()
        menu.addMenu(self._background_menu)
        menu.addSeparator()
        menu.addActions(self._save_actions)
        return menu

    def _make_actions(self) -> None:
        canvas = self.canvas
        self.reset_action = self._action(
            "&Reset the view", "0", lambda: canvas.reset(), "reset", "Show everything from the most informative direction"
        )
        self.aligned_action = self._action(
            "Centre on the &aligned part",
            "A",
            lambda: canvas.fit(self.scene.aligned_points()),
            "",
            "Zoom to the residues aligned with the selected hit",
        )
        self.centre_action = self._action(
            "&Centre on the picked residue", "C", self._centre_pick, "", "Rotate around the last picked residue"
        )
        self.spin_action = self._action("&Spin", "Space", canvas.spin, "run", "Rotate continuously", is_checked=False)
        self.perspective_action = self._action("&Perspective", "P", canvas.set_perspective, tip="Perspective projection", is_checked=True)
        self.fog_action = self._action("&Fog", "F", canvas.set_fog, tip="Fade distant parts", is_checked=True)
        self.label_action = self._action("&Names of picked residues", "L", self._write("residues"), is_checked=True)
        self.ends_action = self._action("Ends of the chains (N, C)", "N", self._write("ends"), is_checked=True)
        self.legend_action = self._action("Legen&d", "G", self._write("legend"), is_checked=True)
        self.side_chain_action = self._action("Side c&hains of picked residues", "H", self._choose_side_chains, is_checked=True)
        self.ligand_action = self._action(
            "L&igands", "I", self._choose_ligands, tip="Show ligands, cofactors, ions and sugars bound to the chains", is_checked=True
        )
        self.clear_action = self._action("Clear se&lection", "Escape", self.clear_picks, tip="Deselect all residues (Esc)")
        self.undo_action = self._action(
            "&Undo", "", lambda: canvas.undo(), tip="Undo the last reset, centring or clearing; also Undo in the menu Edit"
        )
        self.pin_action = self._action("&Pin hit", "K", self.pin, "add", "Continue to show the selected hit when another one is selected")
        self.selected_action = self._action(
            "Superpose the hits &selected in the table",
            "S",
            self.hitsRequested.emit,
            "structure",
            "Superpose the hits selected in the table (at most 20); if only one is selected, the first 20 hits of the table",
        )
        self.unpin_action = self._action("&Unpin others", "O", self.unpin_others, "remove", "Remove all hits except the selected one")
        self.copy_action = self._action("C&opy the picture", QKeySequence.StandardKey.Copy, self.copy_picture, "copy")
        self.picture_action = self._action(
            "Save p&icture…", "Ctrl+E", lambda: self.prompt_for_picture(is_turntable=False), "save", "Save a PNG of any size"
        )
        self.turntable_action = self._action(
            "Save &turntable…", "", lambda: self.prompt_for_picture(is_turntable=True), tip="Save one turn as an animated GIF"
        )
        self.files_action = self._action(
            "Save structures and scri&pts…",
            "",
            self.filesRequested.emit,
            tip="Save the superposed structures as PDB and mmCIF, with scripts that show them in PyMOL and ChimeraX in these colours",
        )
        self.lists_action = self._action(
            "&Lists of superposed hits and aligned pairs",
            "B",
            lambda are_shown: self.tabs.setVisible(are_shown),
            "results",
            "Show the superposed hits and the aligned pairs",
            is_checked=True,
        )
        self._view_actions = [
            self.reset_action,
            self.aligned_action,
            self.centre_action,
            self.spin_action,
            self.perspective_action,
            self.fog_action,
            self.undo_action,
        ]
        self._write_actions = [self.label_action, self.ends_action, self.legend_action, self.side_chain_action]
        self._write_actions += [self.ligand_action, self.clear_action]
        self._save_actions = [self.copy_action, self.picture_action, self.turntable_action, self.files_action]
        self._background_menu = QMenu("&Background", self)
        add_choices(self._background_menu, BACKGROUNDS, canvas.background, canvas.set_background)

    def _action(
        self,
        text: str,
        shortcut: str | QKeySequence.StandardKey,
        use: Callable[..., object],
        icon: str = "",
        tip: str = "",
        *,
        is_checked: bool | None = None,
    ) -> QAction:
        action = QAction(text, self, shortcut=QKeySequence(shortcut), shortcutContext=Qt.ShortcutContext.WidgetWithChildrenShortcut)
        key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        description = tip or text.replace("&", "").rstrip("…")
        action.setToolTip(f"{description} ({key})" if key and key not in description else description)
        if is_checked is not None:
            action.setCheckable(True)
            action.setChecked(is_checked)
            action.toggled.connect(use)
        else:
            action.triggered.connect(lambda: use())
        if icon:
            set_icon(action, icon)
        self.canvas.addAction(action)
        return action

    def _lay_out(self) -> None:
        bar = self.bar = FoldingBar((4, 3, 2, 3), 2)
        for box, part in ((self.style_box, 2), (self.colour_box, 3), (self.extent_box, 3)):
            bar.first.addWidget(box, part)
        bar.want(3 * (self.fontMetrics().horizontalAdvance("n" * _CHOICE_CHARACTERS) + _ARROW))
        bar.second.addStretch(1)
        bar.second.addWidget(action_button(self.reset_action))
        bar.second.addWidget(
            self._menu_button(
                "View",
                "View and labels",
                [*self._view_actions, *self._write_actions],
                self._background_menu,
            )
        )
        bar.second.addWidget(self._menu_button("Save", "Pictures, structures and scripts", self._save_actions))
        bar.second.addWidget(action_button(self.lists_action))
        in_pane = in_row(spacing=2)
        bar.second.addLayout(in_pane)
        bar.second.addWidget(tool_button("close", "Close the structures", self.closeRequested.emit))
        self.pane_bar = PaneBar(bar.first, in_pane, None)
        buttons = map(action_button, (self.pin_action, self.selected_action, self.unpin_action))
        shown = widget_with(in_column(in_row(STRETCH, *buttons, margins=(6, 2, 6, 2)), (self.hit_list, 1), spacing=0))
        self.tabs = make_tabs((shown, "Shown", ""), (self.pair_table, "Pairs", ""))
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.addWidget(self.canvas)
        self.splitter.addWidget(self.tabs)
        self.splitter.setStretchFactor(0, 1)
        self.splitter.setStretchFactor(1, 0)
        self.splitter.setSizes([600, _SIDE_WIDTH])
        self.splitter.setChildrenCollapsible(False)
        self.tabs.setMinimumWidth(150)
        self.note.setContentsMargins(8, 2, 8, 2)
        in_column(bar, self.note, (self.splitter, 1), on=self, spacing=0)

    def _box(self, name: str, choices: dict[str, str], chosen: str, choose: Callable[[Any], None]) -> ChoiceBox:
        box = described(ChoiceBox(((title, key) for key, title in choices.items()), n_characters=4), name, name)
        box.setCurrentIndex(list(choices).index(chosen))
        box.currentIndexChanged.connect(lambda _: choose(box.currentData()))
        return box

    def _menu_button(self, text: str, tip: str, actions: Sequence[QAction], submenu: QMenu | None = None) -> QToolButton:
        menu = QMenu(self)
        menu.addActions(list(actions))
        if submenu is not None:
            menu.addMenu(submenu)
        return menu_button(text, tip, menu, tip)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show the lists if there is space, unless the user has opened or closed them."""
        super().resizeEvent(event)
        if not self._are_lists_chosen:
            self.lists_action.setChecked(self._wants_lists and self.width() >= _NARROW)

    # ------------------------------------------------------------------------------------------------------------ choices

    def _choose_lists(self) -> None:
        self._are_lists_chosen = True

    def pin(self) -> None:
        """Pin the selected hit."""
        if self.scene.chosen is not None:
            self.scene.chosen.is_pinned = True
            self._fill_lists()

    def unpin_others(self) -> None:
        """Remove all hits except the selected one."""
        self.scene.unpin_others()
        self._changed()
        self.picksChanged.emit()

    def _choose_style(self, style: Style) -> None:
        self.scene.style = style
        self._read_surfaces()
        self.canvas.refresh()

    def _choose_scheme(self, name: str) -> None:
        self.scene.scheme = name
        self._changed()

    def _choose_extent(self, name: str) -> None:
        self.scene.extent = name
        self._changed()

    def _choose_side_chains(self, are_wanted: bool) -> None:
        self._wants_side_chains = are_wanted
        self.pick(self.scene.picks)

    def _choose_ligands(self, are_shown: bool) -> None:
        self.scene.shows_ligands = are_shown
        self._read_ligands()
        self.canvas.refresh()

    def _write(self, what: str) -> Callable[[bool], None]:
        def write(is_written: bool) -> None:
            setattr(self.canvas.overlay, what, is_written)
            self.canvas.update()

        return write

    def _centre_pick(self) -> None:
        if self.scene.picks:
            self.canvas.centre(self.scene.picks[-1].position)
        else:
            self.message.emit("Click a residue or an atom first.")

    # ------------------------------------------------------------------------------------------------------------ picks

    def _pick_one(self, pick: Pick | None, is_more: bool) -> None:
        if pick is None:
            if not is_more:
                self.clear_picks()
        elif not is_more:
            self.pick([pick])
        elif pick in self.scene.picks:
            self.pick([picked for picked in self.scene.picks if picked != pick])
        else:
            self.pick([*self.scene.picks, pick])

    def _pick_pair(self, pair: int) -> None:
        chosen = self.scene.chosen
        if chosen is not None and chosen.trace.pairs is not None:
            self.pick_pair(*chosen.trace.pairs.rows[pair].tolist())

    def _mark_pair(self) -> None:
        """Select the aligned pair of the last picked residue in the table of pairs."""
        chosen, pair = self.scene.chosen, None
        if self.scene.picks and chosen is not None and chosen.trace.pairs is not None:
            last = self.scene.picks[-1]
            side = 0 if last.trace is self.scene.query else 1 if last.trace is chosen.trace else None
            if side is not None:
                result = (chosen.trace.pairs.rows[:, side] == last.row).nonzero()[0]
                pair = int(result[0]) if len(result) else None
        self.pair_table.mark(pair)

    def _report_picks(self) -> None:
        picks = self.scene.picks
        if len(picks) == 1:
            self.message.emit(f"{picks[0].trace.name}: {picks[0].label}")
        elif len(picks) >= 2:
            first, second = picks[-2:]
            text = f"{first.label} of {first.trace.name} to {second.label} of {second.trace.name}: {distance_text(first, second)}"
            nearest = self.scene.nearest_atoms(first, second)
            if nearest is not None:
                text += f"; nearest atoms {nearest[0]} to {nearest[1]}: {nearest[2]:.2f} Å"
            self.message.emit(text)

    def _read_side_chains(self) -> None:
        if not self._wants_side_chains:
            self.scene.atoms = {}
            return
        wanted = [pick for pick in self.scene.picks if pick.row >= 0 and (pick.trace, pick.row) not in self.scene.atoms]
        if not wanted:
            return

        def read() -> list[tuple[Pick, Atoms | None, str]]:
            result: list[tuple[Pick, Atoms | None, str]] = []
            for pick in wanted:
                try:
                    result.append((pick, side_chain(pick.trace, pick.row), ""))
                except InputError as error:
                    result.append((pick, None, str(error)))
            return result

        self._submit("side chains", read, self._take_side_chains, self._fail)

    def _take_side_chains(self, side_chains: list[tuple[Pick, Atoms | None, str]]) -> None:
        for pick, atoms, why in side_chains:
            if atoms is not None and pick in self.scene.picks:
                self.scene.atoms[pick.trace, pick.row] = atoms
            elif why and pick.trace.path not in self._reported:
                # Reported once per file: picking itself works, for example to measure distances.
                self._reported.add(pick.trace.path)
                self.message.emit(why)
        if len(self.scene.picks) > 1 and any(atoms is not None for _, atoms, _ in side_chains):
            self._report_picks()
        self.canvas.refresh_later()

    # ------------------------------------------------------------------------------------------------------------ together

    def _changed(self) -> None:
        self._read_other_chains()
        self._read_b_factors()
        self._read_ligands()
        self._read_surfaces()
        self._fill_lists()
        self.canvas.refresh()

    def _switched(self) -> None:
        """Update everything except the list after a hit was shown or hidden in the list."""
        self._read_other_chains()
        self._read_b_factors()
        self._read_ligands()
        self._read_surfaces()
        self.canvas.refresh()

    def _fill_lists(self) -> None:
        scene = self.scene
        self.hit_list.show_scene(scene)
        self.pair_table.show_hit(scene.query, scene.chosen.trace if scene.chosen else None)
        self._mark_pair()
        n_pairs = len(scene.chosen.trace.pairs) if scene.chosen and scene.chosen.trace.pairs else 0
        self.tabs.setTabText(0, f"Shown ({1 + len(scene.hits)})" if scene.query is not None else "Shown")
        self.tabs.setTabText(1, f"Pairs ({n_pairs})" if n_pairs else "Pairs")
        for action in (*self._view_actions, *self._write_actions, *self._save_actions, self.pin_action, self.unpin_action):
            action.setEnabled(scene.query is not None)
        self._report_scheme()

    def _report_scheme(self) -> None:
        """Show a message if the colour scheme needs data that these chains do not have."""
        # B-factors are still being read; the scheme is checked again afterwards.
        if self.scene.query is None or self._without_b_factors():
            return
        scene = self.scene.to_colour()
        needs = scheme_named(self.scene.scheme).needs(scene)
        if needs:
            self.message.emit(needs)

    def _name_hit(self, row: int) -> None:
        item = self.hit_list.item(row)
        if item is not None and self.hit_list.hasFocus():
            self.message.emit(item.toolTip().replace("\n", ", "))

    def _read_other_chains(self) -> None:
        if self.scene.extent != "file":
            return
        wanted = [trace for trace in self.scene.traces if trace not in self.scene.other_chains]
        if wanted:
            self._submit("other chains", lambda: [(trace, other_chains(trace)) for trace in wanted], self._take_other_chains, self._fail)

    def _take_other_chains(self, chains_read: list[tuple[Trace, tuple[Trace, ...]]]) -> None:
        there = self.scene.traces
        for trace, chains in chains_read:
            if trace in there:
                self.scene.other_chains[trace] = chains
        self.canvas.refresh()

    def _without_b_factors(self) -> list[Trace]:
        """Return the chains without predicted confidence whose B-factors the confidence scheme still needs."""
        if self.scene.scheme != "confidence":
            return []
        return [trace for trace in self.scene.traces if trace not in self.scene.b_factors and np.isnan(trace.chains.confidence).all()]

    def _read_b_factors(self) -> None:
        """Read the B-factors that the confidence scheme shows for chains that are not predictions."""
        wanted = self._without_b_factors()

        def read() -> list[tuple[Trace, NDArray[np.float32]]]:
            result = []
            for trace in wanted:
                try:
                    result.append((trace, b_factors(trace.path, trace.chains)))
                except InputError:
                    result.append((trace, np.full(len(trace), np.nan, np.float32)))
            return result

        if wanted:
            self._submit("B-factors", read, self._take_b_factors, self._fail)

    def _take_b_factors(self, factors_read: list[tuple[Trace, NDArray[np.float32]]]) -> None:
        there = self.scene.traces
        self.scene.b_factors.update((trace, values) for trace, values in factors_read if trace in there)
        self._report_scheme()
        self.canvas.refresh()

    def _read_ligands(self) -> None:
        wanted = [trace for trace in self.scene.traces if trace not in self.scene.ligands] if self.scene.shows_ligands else []

        def read() -> list[tuple[Trace, Atoms]]:
            result = []
            for trace in wanted:
                try:
                    result.append((trace, ligands(trace)))
                except InputError:
                    # Not reported here: the chain itself is shown, and picking a residue of this file reports the error.
                    result.append((trace, NO_ATOMS))
            return result

        if wanted:
            self._submit("ligands", read, self._take_ligands, self._fail)

    def _take_ligands(self, ligands_read: list[tuple[Trace, Atoms]]) -> None:
        there = self.scene.traces
        self.scene.ligands.update((trace, atoms) for trace, atoms in ligands_read if trace in there)
        self.canvas.refresh()

    def _read_surfaces(self) -> None:
        """Compute the surfaces of the shown chains from their files; ribbons are drawn until then."""
        if self.scene.style != "surface" or self.scene.query is None:
            return
        traces = self.scene.traces
        wanted = [trace for trace in traces if trace not in self.scene.surfaces and trace.path not in self._without_surface]
        most = max(_LEAST_TRIANGLES, self.canvas.renderer.maximum_triangles // len(traces))

        def read() -> list[tuple[Trace, Mesh | None, str]]:
            result: list[tuple[Trace, Mesh | None, str]] = []
            for trace in wanted:
                try:
                    result.append((trace, surface(trace, most), ""))
                except InputError as error:
                    result.append((trace, None, str(error)))
            return result

        if wanted:
            self._submit("surfaces", read, self._take_surfaces, self._fail)

    def _take_surfaces(self, surfaces: list[tuple[Trace, Mesh | None, str]]) -> None:
        there = self.scene.traces
        self.scene.surfaces.update((trace, mesh) for trace, mesh, _ in surfaces if mesh is not None and trace in there)
        for trace, _, why in surfaces:
            if why:
                # Reported once per file; its chains continue to be drawn as ribbons.
                self._without_surface.add(trace.path)
                self.message.emit(why)
        self.canvas.refresh()

    def _prepare(self) -> None:
        """Compile the kernels for drawing without OpenGL."""
        self._submit("drawing", lambda: compile_kernels(["drawing"], Progress()), lambda _: self.canvas.kernels_ready(), self._fail)

    def _fail(self, error: Exception) -> None:
        self.message.emit(str(error))

    def _report_renderer(self, name: str, why: str) -> None:
        if why:
            self.note.setText(f"Drawn without OpenGL: {why}.")
            self.note.setToolTip("Large scenes rotate more slowly; everything else is identical.")
        self.note.setVisible(bool(why))

"""The undo history of the window: one stack of changes, for Edit > Undo and Redo and for the Undo buttons of its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QUndoCommand, QUndoStack
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QPlainTextEdit, QWidget
from shiboken6 import isValid

from proteoscope.engine.errors import ProteoscopeError

__all__ = ["Change", "UndoStack", "forget_changes", "last_change", "record", "take_back_last", "undo_stack"]

_MAXIMUM_CHANGES = 200
_MERGEABLE, _SINGLE = 1, -1
"""Qt's ids of commands that may be merged with the previous one, and of others."""


class Change(QUndoCommand):
    """A change that has already been made.

    Parameters
    ----------
    text : str
        What was done, which follows "Undo" in the menu: ``delete run 3``.
    owner : QObject
        The object whose content has changed.
    before, after : object
        The content before and after the change.
    show : callable
        Makes its argument the content of the owner. It raises `ProteoscopeError` if that is no longer possible.
    field : object, optional
        The changed field. Successive changes of a field are undone together if the keyboard focus has not moved between them.
    read : callable, optional
        Returns the present content. If given, later edits that were not recorded are restored too: by redo those before an undo.
    note : str, optional
        Text for the owner to show next to its Undo button.
    """

    def __init__(
        self,
        text: str,
        owner: QObject,
        before: Any,
        after: Any,
        show: Callable[[Any], object],
        field: object = None,
        read: Callable[[], Any] | None = None,
        note: str = "",
    ) -> None:
        super().__init__(text)
        self.owner, self.note = owner, note
        self._before, self._after, self._show, self._field, self._read = before, after, show, field, read
        self._visit = 0
        self._stack: UndoStack | None = None
        self._is_new = True

    def join(self, stack: UndoStack, visit: int) -> None:
        """Note the stack to which the change is added, and the number of the visit of the keyboard focus."""
        self._stack, self._visit = stack, visit

    def id(self) -> int:
        """Return Qt's id, which allows merging of changes of a field."""
        return _SINGLE if self._field is None else _MERGEABLE

    def mergeWith(self, other: QUndoCommand) -> bool:  # noqa: N802 - Qt's name
        """Take in the next change if it is of the same field during the same visit of the keyboard focus."""
        if not isinstance(other, Change) or (other.owner, other._field, other._visit) != (self.owner, self._field, self._visit):
            return False
        self._after = other._after
        # A change that was reversed by hand leaves nothing to undo.
        self.setObsolete(self._before == self._after)
        return True

    def undo(self) -> None:
        """Restore the content before the change."""
        if self._read is not None:
            self._after = self._read()
        self._apply(self._before)

    def redo(self) -> None:
        """Make the change again; Qt also calls this when the change, already made, is added to the stack."""
        if self._is_new:
            self._is_new = False
            return
        if self._read is not None:
            self._before = self._read()
        self._apply(self._after)

    def _apply(self, content: Any) -> None:
        if not isValid(self.owner):
            self.setObsolete(True)
            return
        assert self._stack is not None
        try:
            self._show(content)
        except ProteoscopeError as error:
            self.setObsolete(True)
            self._stack.failed.emit(str(error))
        else:
            self._stack.applied.emit(self.owner)


class UndoStack(QUndoStack):
    """The changes of a window that can be undone, and those that can be made again.

    A text field keeps the keys of Undo and Redo while it has the keyboard focus, unless nothing was typed in it.

    Signals
    -------
    stepping
        A change is about to be undone or made again, so that edits in progress are to be recorded now.
    applied
        The owner of a change that was undone or made again.
    failed
        Why a change can no longer be undone or made again, once; it is removed.
    """

    stepping = Signal()
    applied = Signal(QObject)
    failed = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.setUndoLimit(_MAXIMUM_CHANGES)
        self._visit = 0
        self._is_stepping = False
        self._followers: list[Callable[[], None]] = []
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._begin_visit)
        self.indexChanged.connect(self._drop_obsolete)
        self.undo_action = self._action("&Undo", ["Ctrl+Z"], self.step_back, self.canUndoChanged, self.undoTextChanged)
        self.redo_action = self._action("&Redo", ["Ctrl+Y", "Ctrl+Shift+Z"], self.step_forward, self.canRedoChanged, self.redoTextChanged)

    def add(self, change: Change) -> None:
        """Add a change that has been made; changes made by undo and redo are not added."""
        if not self._is_stepping:
            change.join(self, self._visit)
            self.push(change)

    def follow(self, follower: Callable[[], None]) -> None:
        """Call a function after each change of the stack."""
        if follower not in self._followers:
            self._followers.append(follower)
            self.indexChanged.connect(lambda: follower())

    def step_back(self) -> None:
        """Undo the last change."""
        self._step(self.undo)

    def step_forward(self) -> None:
        """Make the last undone change again."""
        self._step(self.redo)

    def take_back(self, change: Change) -> None:
        """Undo a change even if others were made after it. Has no effect if it is already undone."""
        if not isValid(change) or change not in self._done():
            return
        if self._done()[0] is change:
            self.step_back()
            return
        self._step(change.undo)
        change.setObsolete(True)
        self.indexChanged.emit(self.index())

    def last_of(self, owner: QObject) -> Change | None:
        """Return the last change of an object, or None."""
        return next((change for change in self._done() if change.owner is owner), None)

    def forget(self, owner: QObject) -> None:
        """Remove the changes of an object, which now has another content."""
        changes = [self.command(i) for i in range(self.count())]
        for change in changes:
            if isinstance(change, Change) and change.owner is owner:
                change.setObsolete(True)
        self.indexChanged.emit(self.index())

    def _done(self) -> list[Change]:
        """Return the changes that can be undone, last first."""
        changes = [self.command(i) for i in reversed(range(self.index()))]
        return [change for change in changes if isinstance(change, Change) and not change.isObsolete()]

    def _step(self, step: Callable[[], None]) -> None:
        self.stepping.emit()
        self._is_stepping = True
        try:
            step()
        finally:
            self._is_stepping = False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Leave the keys of Undo and Redo to the window if nothing was typed in the focused text field."""
        if event.type() not in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress) or not isinstance(event, QKeyEvent):
            return False
        keys = QKeySequence(event.keyCombination())
        if keys not in (*self.undo_action.shortcuts(), *self.redo_action.shortcuts()):
            return False
        edit = watched.lineEdit() if isinstance(watched, QAbstractSpinBox) else watched
        history = edit.document() if isinstance(edit, QPlainTextEdit) else edit
        if event.type() == QEvent.Type.ShortcutOverride:
            event.setAccepted(history.isUndoAvailable() or history.isRedoAvailable())  # type: ignore[attr-defined]
            return True
        # Qt's fields do not know all of these keys on every system.
        edit.undo() if keys in self.undo_action.shortcuts() else edit.redo()  # type: ignore[attr-defined]
        return True

    def _begin_visit(self, left: QWidget | None, entered: QWidget | None) -> None:
        self._visit += 1
        if left is not None and isValid(left):
            left.removeEventFilter(self)
        if isinstance(entered, (QLineEdit, QAbstractSpinBox, QPlainTextEdit)):
            entered.installEventFilter(self)

    def _drop_obsolete(self) -> None:
        """Remove obsolete changes next to the present state, so that the menu names one that can be undone.

        Qt removes an obsolete change, without calling it, when its turn comes.
        """
        self.blockSignals(True)
        while self.canUndo() and self.command(self.index() - 1).isObsolete():
            self.undo()
        while self.canRedo() and self.command(self.index()).isObsolete():
            self.redo()
        self.blockSignals(False)
        self.canUndoChanged.emit(self.canUndo())
        self.undoTextChanged.emit(self.undoText())
        self.canRedoChanged.emit(self.canRedo())
        self.redoTextChanged.emit(self.redoText())

    def _action(self, name: str, keys: list[str], step: Callable[[], None], can: Any, text: Any) -> QAction:
        """Return an action of the menu that names the next change; Qt's own does not record edits in progress."""
        action = QAction(name, self)
        action.setShortcuts([QKeySequence(key) for key in keys])
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.setEnabled(False)
        action.triggered.connect(lambda: step())
        can.connect(action.setEnabled)
        text.connect(lambda change: action.setText(f"{name} {change.replace('&', '&&')}".strip()))
        return action


def undo_stack(owner: QObject) -> UndoStack | None:
    """Return the stack of the window that an object belongs to, or None outside the window."""
    place: QObject | None = owner
    while place is not None:
        stack = place.findChild(UndoStack, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if stack is not None:
            return stack
        place = place.parent()
    return None


def record(change: Change, follower: Callable[[], None] | None = None) -> None:
    """Add a change to the stack of its owner's window. `follower` is called now and after each further change of the stack."""
    stack = undo_stack(change.owner)
    if stack is None:
        return
    if follower is not None:
        stack.follow(follower)
    stack.add(change)


def last_change(owner: QObject) -> Change | None:
    """Return the last change of an object that can be undone, or None."""
    stack = undo_stack(owner)
    return None if stack is None else stack.last_of(owner)


def take_back_last(owner: QObject) -> bool:
    """Undo the last change of an object and return True, or False if there is none."""
    stack = undo_stack(owner)
    change = None if stack is None else stack.last_of(owner)
    if stack is None or change is None:
        return False
    stack.take_back(change)
    return True


def forget_changes(owner: QObject) -> None:
    """Remove the changes of an object from the stack."""
    stack = undo_stack(owner)
    if stack is not None:
        stack.forget(owner)

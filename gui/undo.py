"""Undo history of the window: a single stack of changes, used by Edit > Undo and Redo and by the Undo buttons of pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QUndoCommand, QUndoStack
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QPlainTextEdit, QWidget
from shiboken6 import isValid

from proteoscope.engine.errors import ProteoscopeError

_MAXIMUM_CHANGES = 200
_EDITED = "editedInVisit"
"""Property of a text field: number of the visit (see `Change.join`) in which its text was last edited."""
_MERGEABLE, _SINGLE = 1, -1
"""Command ids for `QUndoCommand.id`: commands with id 1 may be merged with the previous command, commands with id -1 are never merged."""


class Change(QUndoCommand):
    """Undo command for a change that has already been made.

    Parameters
    ----------
    text : str
        Description shown after "Undo" in the menu, such as ``delete run 3``.
    owner : QObject
        Object whose content has changed.
    before, after : object
        Content before and after the change.
    show : callable
        Function that sets its argument as the content of the owner; it raises `ProteoscopeError` if this is no longer possible.
    field : object, optional
        Field that changed; successive changes of one field are undone together if the keyboard focus has not moved between them.
    read : callable, optional
        Function that returns the present content of the owner, including edits that were not recorded. If given, undo stores this content
        for the next redo, and redo stores it for the next undo.
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
        """Set the stack to which the change is added, and a number that increases whenever the keyboard focus moves."""
        self._stack, self._visit = stack, visit

    @property
    def visit(self) -> int:
        """Number of the visit in which the change was made."""
        return self._visit

    def id(self) -> int:
        """Return the command id, with which Qt decides whether to call `mergeWith`."""
        return _SINGLE if self._field is None else _MERGEABLE

    def mergeWith(self, other: QUndoCommand) -> bool:  # noqa: N802 - Qt's name
        """Merge the next change into this change if both change the same field and the keyboard focus has not moved in between."""
        if not isinstance(other, Change) or (other.owner, other._field, other._visit) != (self.owner, self._field, self._visit):
            return False
        self._after = other._after
        # Nothing to undo if the user has restored the previous value.
        self.setObsolete(self._before == self._after)
        return True

    def undo(self) -> None:
        """Restore the content before the change."""
        if self._read is not None:
            self._after = self._read()
        self._apply(self._before)

    def redo(self) -> None:
        """Apply the change again; the first call, which Qt makes when the change is added, does nothing."""
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
    """Changes of a window that can be undone or redone.

    A focused text field with a text history handles the shortcuts of Undo and Redo itself, unless the last change of the window is newer
    than the text in the field. (A page that is shown again gives the focus to its last field, possibly long after the user typed there.)

    Signals
    -------
    stepping
        A change is about to be undone or redone. Receivers should record edits in progress now.
    applied
        Owner of a change that was undone or redone.
    failed
        Reason why a change could not be undone or redone. The change is removed.
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
        """Add a change that has been made; do nothing during undo and redo."""
        if not self._is_stepping:
            change.join(self, self._visit)
            self.push(change)

    def follow(self, follower: Callable[[], None]) -> None:
        """Register a function that is called after each change of the stack."""
        if follower not in self._followers:
            self._followers.append(follower)
            self.indexChanged.connect(lambda: follower())

    def step_back(self) -> None:
        """Undo the last change."""
        self._step(self.undo)

    def step_forward(self) -> None:
        """Redo the change that was undone last."""
        self._step(self.redo)

    def take_back(self, change: Change) -> None:
        """Undo a change, even if other changes were made after it; do nothing if the change is already undone."""
        if not isValid(change) or change not in self._done():
            return
        if self._done()[0] is change:
            self.step_back()
            return
        self._step(change.undo)
        change.setObsolete(True)
        self.indexChanged.emit(self.index())

    def last_of(self, owner: QObject) -> Change | None:
        """Return the last change that was made to an object and can be undone, or None."""
        return next((change for change in self._done() if change.owner is owner), None)

    def forget(self, owner: QObject) -> None:
        """Remove the changes of an object because its content has been replaced."""
        changes = [self.command(i) for i in range(self.count())]
        for change in changes:
            if isinstance(change, Change) and change.owner is owner:
                change.setObsolete(True)
        self.indexChanged.emit(self.index())

    def _done(self) -> list[Change]:
        """Return the changes that can be undone, newest first."""
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
        """Pass the shortcuts of Undo and Redo to the focused text field if it has a text history, otherwise to the window."""
        if event.type() not in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress) or not isinstance(event, QKeyEvent):
            return False
        keys = QKeySequence(event.keyCombination())
        if keys not in (*self.undo_action.shortcuts(), *self.redo_action.shortcuts()):
            return False
        edit = watched.lineEdit() if isinstance(watched, QAbstractSpinBox) else watched
        history = edit.document() if isinstance(edit, QPlainTextEdit) else edit
        if event.type() == QEvent.Type.ShortcutOverride:
            is_for_window = keys in self.undo_action.shortcuts() and self._is_newer_than(watched)
            event.setAccepted(not is_for_window and (history.isUndoAvailable() or history.isRedoAvailable()))  # type: ignore[attr-defined]
            return True
        # Call the field directly, since Qt's fields do not handle all of these shortcuts on every platform.
        edit.undo() if keys in self.undo_action.shortcuts() else edit.redo()  # type: ignore[attr-defined]
        return True

    def _begin_visit(self, left: QWidget | None, entered: QWidget | None) -> None:
        self._visit += 1
        if left is not None and isValid(left):
            left.removeEventFilter(self)
        if isinstance(entered, (QLineEdit, QAbstractSpinBox, QPlainTextEdit)):
            entered.installEventFilter(self)
            if entered.property(_EDITED) is None:
                entered.setProperty(_EDITED, -1)
                edit = entered.lineEdit() if isinstance(entered, QAbstractSpinBox) else entered
                edited = edit.textChanged if isinstance(edit, QPlainTextEdit) else edit.textEdited
                edited.connect(lambda: entered.setProperty(_EDITED, self._visit))

    def _is_newer_than(self, field: QObject) -> bool:
        """Return True if the window was changed after the text of a field was last edited."""
        last = self.command(self.index() - 1) if self.canUndo() else None
        return isinstance(last, Change) and last.visit > field.property(_EDITED)

    def _drop_obsolete(self) -> None:
        """Remove obsolete changes next to the current position, so that the menu shows a change that can be undone or redone.

        `QUndoStack.undo` and `redo` delete an obsolete change. Signals are blocked meanwhile, and emitted once at the end.
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
        """Return a menu action with the text of the next change; Qt's own undo action would not record unfinished edits first."""
        action = QAction(name, self)
        action.setShortcuts([QKeySequence(key) for key in keys])
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.setEnabled(False)
        action.triggered.connect(lambda: step())
        can.connect(action.setEnabled)
        text.connect(lambda change: action.setText(f"{name} {change.replace('&', '&&')}".strip()))
        return action


def undo_stack(owner: QObject) -> UndoStack | None:
    """Return the undo stack of the window that contains an object, or None if no main window contains it."""
    position: QObject | None = owner
    while position is not None:
        stack = position.findChild(UndoStack, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if stack is not None:
            return stack
        position = position.parent()
    return None


def record(change: Change, follower: Callable[[], None] | None = None) -> None:
    """Add a change to the undo stack of its owner's window.

    `follower` is called now and after each later change of the stack.
    """
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
    """Undo the last change of an object and return True, or return False if there is no such change."""
    stack = undo_stack(owner)
    change = None if stack is None else stack.last_of(owner)
    if stack is None or change is None:
        return False
    stack.take_back(change)
    return True


def forget_changes(owner: QObject) -> None:
    """Remove the changes of an object from the undo stack."""
    stack = undo_stack(owner)
    if stack is not None:
        stack.forget(owner)

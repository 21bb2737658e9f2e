"""Creation of the view that compares several runs. At most one such view exists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QStackedWidget

from proteoscope.engine.project import Project, RunRecord
from proteoscope.gui import results
from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.settings import SettingsFile

if TYPE_CHECKING:
    from proteoscope.gui.results.comparison_view import ComparisonView


class Comparisons(QObject):
    """Owner of the comparison view, which it creates and closes.

    Parameters
    ----------
    pages : QStackedWidget
        Widget to which the view is added.
    settings : SettingsFile
        Settings that store the layout of the view.
    deferred : DeferredTasks
        Queue in which a replaced view is closed.
    parent : QObject
        Owner of this object.

    Signals
    -------
    failed
        Error text.
    message
        Text for the status bar.
    """

    failed = Signal(str)
    message = Signal(str)

    def __init__(self, pages: QStackedWidget, settings: SettingsFile, deferred: DeferredTasks, parent: QObject) -> None:
        super().__init__(parent)
        self._pages, self._settings, self._deferred = pages, settings, deferred
        self.view: ComparisonView | None = None
        """The open comparison view, or None."""

    def begin(self, project: Project, runs: Sequence[RunRecord]) -> results.comparison_view.ComparisonView:
        """Open a view that compares runs of a project, replacing the previous one."""
        if (previous := self.view) is not None:
            self._settings.values.comparison_layout = previous.state()
            self._deferred.add(partial(self._discard, previous))
        self.view = view = results.comparison_view.ComparisonView(project, [run.id for run in runs])
        view.failed.connect(self.failed)
        view.message.connect(self.message)
        self._pages.addWidget(view)
        view.restore_state(self._settings.values.comparison_layout)
        return view

    def close(self) -> None:
        """Close the comparison view."""
        if self.view is not None:
            self._settings.values.comparison_layout = self.view.state()
            self._discard(self.view)
            self.view = None

    def _discard(self, view: ComparisonView) -> None:
        view.clear()
        self._pages.removeWidget(view)
        view.deleteLater()

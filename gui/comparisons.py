"""The view of several runs side by side: one at a time, made when it is asked for, and let go of with the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QStackedWidget

from proteoscope.engine.project import Project, RunRecord
from proteoscope.gui import results
from proteoscope.gui.settings import SettingsFile

if TYPE_CHECKING:
    from proteoscope.gui.results.comparison_view import ComparisonView

__all__ = ["Comparisons"]


class Comparisons(QObject):
    """Makes the view and lets it go.

    Parameters
    ----------
    pages : get the view. settings : remember its layout.

    Signals
    -------
    failed : the text of an error. message : a line for the status bar.
    """

    failed = Signal(str)
    message = Signal(str)

    def __init__(self, pages: QStackedWidget, settings: SettingsFile, parent: QObject) -> None:
        super().__init__(parent)
        self._pages, self._settings = pages, settings
        self.view: ComparisonView | None = None
        """The runs that are compared, while they are."""

    def begin(self, project: Project, runs: Sequence[RunRecord]) -> results.comparison_view.ComparisonView:
        """The view of runs of a project, in place of the one before."""
        self.close()
        self.view = view = results.comparison_view.ComparisonView(project, [run.id for run in runs])
        view.failed.connect(self.failed)
        view.message.connect(self.message)
        self._pages.addWidget(view)
        view.restore_state(self._settings.values.comparison_layout)
        return view

    def close(self) -> None:
        """Compare nothing any more."""
        if self.view is not None:
            self._settings.values.comparison_layout = self.view.state()
            self.view.clear()
            self._pages.removeWidget(self.view)
            self.view.deleteLater()
            self.view = None

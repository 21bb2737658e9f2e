"""Default result view: all tables of a run with a text filter."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.views.conditions import text_in_columns
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.results.facts import files_facts, time_facts
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.run_view import Panels, RunView
from proteoscope.gui.results.summary_header import SummaryNumber
from proteoscope.gui.words import in_sentence


class TextFilter(FilterBar):
    """Filter bar with only a text field."""

    def __init__(self) -> None:
        super().__init__("Any text", "Show only rows with this text in a text column", "Show all rows of the run")

    def _reset_own_fields(self) -> None:
        """Do nothing, since there are no other fields to reset."""


class StandardView(RunView):
    """View of a finished run of any search."""

    def __init__(self, search: Search, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        super().__init__(search, TextFilter(), parent, panels)
        self._arrange({"down": split(Qt.Orientation.Vertical, {Pane(panel.title, panel): 1 for panel in self.panels.values()})})

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filter_bar.reset()
        names = [(in_sentence(result_table.title), self.panels[result_table.name].total) for result_table in self.search.result_tables]
        self.header.show_counts([SummaryNumber(total, f"row of {name}", f"rows of {name}") for name, total in names], "")
        self.header.show_facts((*files_facts(run, "results of {}"), *time_facts(run)))

    def _forget(self) -> None:
        """Do nothing, since the view has only tables, which the base class closes."""

    def _filter(self) -> None:
        for panel in self.panels.values():
            panel.show_rows(filter=text_in_columns(panel.model.columns, self.filter_bar.text.text()))

"""View that compares finished runs: overlaps, counts by q-value, scores, tables of items, and one spectrum as matched by two runs."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from PySide6.QtCore import QSizeF, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QLabel,
    QStackedWidget,
    QWidget,
)

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.views.comparison_drawings import (
    CURVES_SIZE,
    OVERLAPS_SIZE,
    SCORES_SIZE,
    compared_answers,
    draw_curves,
    draw_overlaps,
    draw_scores,
)
from proteoscope.engine.views.comparison_tables import comparison_table
from proteoscope.engine.views.drawings import Drawing
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.run_comparison import LEVELS, RunComparison, compare_runs
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.forms.wheel_guard import ChoiceBox, WheelAfterFocus
from proteoscope.gui.labels import described, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, widget_with
from proteoscope.gui.panes import Pane, PaneView, split
from proteoscope.gui.plots.drawing_view import DrawingView
from proteoscope.gui.results.parameter_table import ParameterTable
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.tables.panel import TablePanel
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.tabs import PageTabs

_PERCENT = 100
_WITH_SPECTRA = ("spectra", "psms", "peptidoforms", "peptides")
"""Levels (types of compared items) whose items have a spectrum."""
_OVERLAPS, _CURVES, _SCORES = QSizeF(*OVERLAPS_SIZE), QSizeF(*CURVES_SIZE), QSizeF(*SCORES_SIZE)


class _ThresholdBox(WheelAfterFocus, QDoubleSpinBox):
    """Number box for the FDR threshold in percent."""


class ComparisonView(PaneView):
    """View that compares finished runs of a project, which are opened and read in threads."""

    MANUAL = "comparison"
    """Name of the manual page about this view."""

    message = Signal(str)
    failed = Signal(str)

    def __init__(self, project: Project, runs: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__("Opening the results…", parent)
        self.run_ids = tuple(runs)
        self._comparison: RunComparison | None = None
        self._details: TableSource | None = None
        self._sources: list[TableSource] = []
        self._opener, self._computer, self._reader = TableWorker(None, self), TableWorker(None, self), TableWorker(None, self)
        self._pair: tuple[int, int] | None = None
        self._dot: int | None = None
        """Row of the spectrum whose dot was clicked in the scores, until the table of spectra has been filtered; otherwise None."""
        self.panels: dict[str, TablePanel] = {}
        """Tables of the levels shown so far, by name of the level."""
        self.overlaps = DrawingView("Overlaps of the runs", _OVERLAPS)
        self.curves = DrawingView("Items by q-value", _CURVES)
        self.scores = DrawingView("Scores of two runs", _SCORES)
        self._mirror_place = in_column()
        self._mirror: MirrorView | None = None
        self._deferred = DeferredTasks(self)
        self._lay_out()
        # Created later: it takes as long to create as all other widgets together, and is empty until the runs are open.
        self._deferred.add(self._make_mirror)
        self._progress = Progress()

        def compare() -> RunComparison:
            comparison = compare_runs([open_run(project, run) for run in self.run_ids], self._progress)
            try:
                # Compute and cache here, in the thread, what the view shows first.
                _ = comparison.parameters, comparison.notes
            except ProteoscopeError:
                comparison.close()
                raise
            return comparison

        self._opener.submit("open", compare, self._open, self._fail)

    @property
    def mirror(self) -> MirrorView:
        """Mirror view of one spectrum with the matches of two runs, created on first use."""
        self._deferred.finish()
        assert self._mirror is not None
        return self._mirror

    @property
    def is_busy(self) -> bool:
        """True while the runs are being opened or data are being read."""
        is_reading = any(worker.is_busy for worker in (self._opener, self._computer, self._reader)) or self._deferred.is_busy
        return is_reading or any(panel.model.is_busy for panel in self.panels.values())

    @property
    def threshold(self) -> float:
        """Maximum q-value of the items that are counted, as a fraction."""
        return self.threshold_box.value() / _PERCENT

    @property
    def panel(self) -> TablePanel:
        """Table of the current level."""
        return self.panels[self._level.name]

    def clear(self) -> None:
        """Release all files and cancel running work."""
        self._deferred.finish()
        self._progress.cancel()
        for worker in (self._opener, self._computer, self._reader):
            worker.close()
        for panel in self.panels.values():
            panel.close_table()
        for source in (*self._sources, *([] if self._details is None else [self._details])):
            source.close()
        if self._comparison is not None:
            self._comparison.close()
        self._comparison = self._details = None
        for drawing in (self.overlaps, self.curves, self.scores):
            drawing.show_drawing(None)

    def state(self) -> str:
        """Return the sizes and collapsed panes as JSON, for storage."""
        return json.dumps(self._panes_state())

    def restore_state(self, text: str) -> None:
        """Restore sizes and panes from a text returned by `state`; invalid text is ignored."""
        try:
            self._restore_panes_state(dict(json.loads(text)))
        except (ValueError, TypeError):
            return

    def _lay_out(self) -> None:
        self.runs_label = toned_label()
        self.notes_label = toned_label(tone="attention")
        self.parameters = ParameterTable()
        levels = ((f"{level.plural[0].upper()}{level.plural[1:]}", level) for level in LEVELS)
        self.level_box = described(ChoiceBox(levels), "Compared items")
        self.threshold_box = described(
            _ThresholdBox(minimum=0.0, maximum=100.0, decimals=2, singleStep=0.5, suffix=" %", value=1.0),
            "False discovery rate",
            "Items are counted if the q-value of their best match is at most this false discovery rate",
        )
        self.threshold_box.setKeyboardTracking(False)
        self.differing_box = described(
            QCheckBox("Conflicting matches"), tip="Show only spectra for which two runs accept different peptides"
        )
        self.pair_box = described(ChoiceBox(), "Runs whose scores are shown")
        bar = in_row(
            QLabel("Compare"),
            self.level_box,
            QLabel("at FDR ≤"),
            self.threshold_box,
            STRETCH,
            self.differing_box,
            margins=(8, 4, 8, 4),
            spacing=8,
        )
        scores = widget_with(in_column(self.pair_box, (self.scores, 1)))
        self.tabs = PageTabs()
        self.tabs.addTab(self.curves, "By q-value")
        self.tabs.addTab(scores, "Scores")
        self._tables = QStackedWidget()
        mirror_place = widget_with(self._mirror_place)
        overlaps, figures = Pane("Overlaps", self.overlaps, is_picture=True), Pane("Figures", self.tabs, is_picture=True)
        above = split(Qt.Orientation.Horizontal, {overlaps: 1, figures: 1})
        spectra = Pane("Compared spectra", mirror_place, is_picture=True)
        below = split(Qt.Orientation.Horizontal, {Pane("Compared results", self._tables): 1, spectra: 1})
        down = split(Qt.Orientation.Vertical, {above: 1, below: 1})
        shown = QWidget()
        layout = in_column(on=shown, spacing=0)
        for label in (self.runs_label, self.notes_label):
            label.setContentsMargins(8, 3, 8, 0)
            layout.addWidget(label)
        layout.addWidget(self.parameters)
        layout.addLayout(bar)
        layout.addWidget(down, 1)
        self._add_panes(shown, {"down": down, "above": above, "below": below})
        self.level_box.currentIndexChanged.connect(self._change_level)
        self.threshold_box.valueChanged.connect(self._show_level)
        self.differing_box.toggled.connect(self._filter)
        self.pair_box.currentIndexChanged.connect(self._show_scores)
        self.overlaps.targetChosen.connect(self._show_set)
        self.scores.targetChosen.connect(self._show_spectrum_of_dot)
        for drawing in (self.overlaps, self.curves, self.scores):
            drawing.message.connect(self.message)

    def _make_mirror(self) -> None:
        self._mirror = mirror = MirrorView()
        # All figures share this shortcut, so it is limited to this figure and the tables.
        mirror.export_action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._tables.addAction(mirror.export_action)
        self._mirror_place.addWidget(mirror)
        mirror.message.connect(self.message)

    @property
    def _level(self) -> Any:
        return self.level_box.currentData()

    def _open(self, comparison: RunComparison) -> None:
        self._comparison = comparison
        named = [f"{name}: {label}" for name, label in zip(comparison.symbols, comparison.labels, strict=True)]
        same = "" if comparison.parameters else "    No parameters differ."
        self.runs_label.setText("    ".join(named) + same)
        self.parameters.show_differences(comparison)
        self.notes_label.setText(" ".join(comparison.notes))
        self.notes_label.setVisible(bool(comparison.notes))
        self.pair_box.blockSignals(True)
        for first, second in combinations(range(len(comparison.runs)), 2):
            self.pair_box.addItem(f"{comparison.symbols[first]} and {comparison.symbols[second]}", (first, second))
        self.pair_box.blockSignals(False)
        self.pair_box.setVisible(len(comparison.runs) > 2)
        if comparison.files.n_shared == 0:  # the runs have no common spectrum
            self.level_box.setCurrentIndex(self.level_box.findText("Peptides"))
        self._prompt_for_spectrum()
        self._show_level()
        # Showing the panes for the first time takes long.
        self._deferred.add(self._show_panes)

    def _fail(self, error: Exception) -> None:
        self._show_text(str(error))

    def _change_level(self) -> None:
        # The spectrum belongs to an item that is no longer visible.
        self._show_no_spectrum()
        if (panel := self.panels.get(self._level.name)) is not None:
            panel.clear_choice()
        self._show_level()

    def _show_no_spectrum(self) -> None:
        """Remove the spectrum, since no item is selected."""
        self._reader.cancel()
        self._prompt_for_spectrum()
        self.scores.mark(None)

    def _prompt_for_spectrum(self) -> None:
        has_spectra = self._level.name in _WITH_SPECTRA
        what = (
            f"{'an' if self._level.singular[0] in 'aeiou' else 'a'} {self._level.singular}"
            if has_spectra
            else "a spectrum, a PSM or a peptide"
        )
        self.mirror.show_text(f"Select {what} to compare the matches of {'its' if has_spectra else 'the'} spectrum in two runs.")

    def _show_level(self) -> None:
        """Compute the counts for the selected level and threshold in a thread, and then draw them."""
        comparison = self._comparison
        if comparison is not None:
            level, is_new = self._level.name, self._level.name not in self.panels

            def read() -> TableSource | None:
                comparison.accepted_from(level)
                if not is_new:
                    return None
                source = comparison.source(level)
                _ = source.total  # computed and cached here, in the thread, for the panel
                return source

            self._computer.submit("level", read, partial(self._draw, comparison), self._fail)
            self._show_scores()

    def _show_scores(self) -> None:
        """Compute the scores of the selected pair of runs in a thread, and then draw them."""
        comparison = self._comparison
        if comparison is not None:
            pair, threshold = self.pair_box.currentData(), self.threshold

            def draw(*size: float) -> Drawing:
                return draw_scores(comparison, pair, threshold, *size)

            self._computer.submit(
                "scores", lambda: comparison.scores(pair[0], pair[1], threshold), lambda _: self.scores.show_drawing(draw), self._fail
            )

    def _draw(self, comparison: RunComparison, source: TableSource | None) -> None:
        """Draw the counts of the selected level, and show its table, which is opened from `source` if it is new."""
        level, threshold = self._level, self.threshold
        self.overlaps.show_drawing(lambda *size: draw_overlaps(comparison, level, threshold, *size))
        self.curves.show_drawing(lambda *size: draw_curves(comparison, level, threshold, *size))
        if source is not None:
            self._add_panel(comparison, level.name, source)
        self._tables.setCurrentWidget(self.panels[level.name])
        self.differing_box.setEnabled(level.name == "spectra")
        self._filter()

    def _add_panel(self, comparison: RunComparison, level: str, source: TableSource) -> None:
        table = comparison_table(comparison, level)
        panel = TablePanel(f"{table.title[0].upper()}{table.title[1:]}", table.columns, ())
        self._sources.append(source)
        self.panels[level] = panel
        self._tables.addWidget(panel)
        panel.open_table(source)
        panel.view.set_empty_text(lambda: panel.error or ("" if panel.model.is_busy else f"No {panel.plural} are accepted."))
        panel.allRequested.connect(partial(self._show_all, panel))
        panel.view.message.connect(self.message)
        panel.view.failed.connect(self.failed)
        panel.wantedHidden.connect(self._show_hidden)
        if level in _WITH_SPECTRA:
            panel.rowChosen.connect(partial(self._show_spectrum, level))
            panel.choiceLost.connect(self._show_no_spectrum)

    def _filter(self) -> None:
        """Show the items that a run accepts at the threshold or, if the checkbox is checked, spectra with different accepted peptides."""
        comparison = self._comparison
        if comparison is None or self._level.name not in self.panels:
            return
        is_differing = self._level.name == "spectra" and self.differing_box.isChecked()
        accepted = comparison.conditions_of_any(self.threshold)
        differing = comparison.disagreement_conditions(self.threshold)
        # The selected set belongs to the previous threshold.
        self.overlaps.mark(None)
        wanted = self._dot if self._level.name == "spectra" else None
        self.panel.show_rows(scope=(), filter=differing if is_differing else accepted, wanted=wanted)

    def _show_all(self, panel: TablePanel) -> None:
        self.overlaps.mark(None)
        panel.show_rows(scope=())

    def _show_set(self, runs: tuple[int, ...]) -> None:
        comparison = self._comparison
        if comparison is not None:
            scope = comparison.conditions_of(runs, self.threshold)
            self.panel.show_rows(scope=scope, scope_text=f"only in {comparison.names_of(runs)}")

    def _show_spectrum_of_dot(self, row: int) -> None:
        """Select the spectrum of the clicked dot in the table of spectra; if the filter hides its row, only show the spectrum."""
        self._pair = self.pair_box.currentData()
        spectra = next(index for index, level in enumerate(LEVELS) if level.name == "spectra")
        if self.level_box.currentIndex() != spectra:
            self._dot = row
            self.level_box.setCurrentIndex(spectra)
            return
        panel = self.panels.get("spectra")
        position = None if panel is None else panel.model.position_of(row)
        if panel is not None and position is not None:
            panel.view.choose(position)
        else:
            if panel is not None:
                panel.clear_choice()
            self._show_spectrum("spectra", row, {})

    def _show_hidden(self) -> None:
        self.message.emit("The item is hidden by the threshold or the selected set.")
        if self._dot is not None:
            self._show_spectrum("spectra", self._dot, {})

    def _show_spectrum(self, level: str, row: int, values: Mapping[str, Any]) -> None:
        comparison, pair = self._comparison, self._pair
        if level != self._level.name:
            # The row is from a table that is about to be replaced by the table of another level.
            return
        self._pair = self._dot = None
        if comparison is None:
            return

        def read() -> tuple[int, MirroredSpectra]:
            spectrum = row if level == "spectra" else comparison.spectrum_of(level, row)
            return spectrum, self._mirrored(comparison, spectrum, pair)

        self._reader.submit("spectrum", read, self._show_mirrored, self._fail_spectrum)

    def _show_mirrored(self, compared: tuple[int, MirroredSpectra]) -> None:
        spectrum, mirrored = compared
        self.scores.mark(spectrum)
        self.mirror.show_spectra(mirrored)

    def _mirrored(self, comparison: RunComparison, spectrum: int, pair: tuple[int, int] | None) -> MirroredSpectra:
        """Return the mirrored spectra. Called in the reader thread, since only this thread uses `_details` and the peaks of the runs."""
        if self._details is None:
            self._details = comparison.source("spectra")
        return compared_answers(comparison, self._details, spectrum, pair)

    def _fail_spectrum(self, error: Exception) -> None:
        self.mirror.show_text(str(error))

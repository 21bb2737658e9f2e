"""Page with the stacked alignments of reads around a row or a position, and an optional track of features."""
# ruff: noqa: N815 - Qt's way of naming signals

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QScrollBar, QWidget

from proteoscope.engine.formats.tracks import Track, TrackFeature, read_track
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.pileup import Pileup, read_pileup
from proteoscope.engine.views.reads import ShownReference, read_depth
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.buttons import text_button
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import hide_in_place, in_column, in_row
from proteoscope.gui.plots.pileup_plot import PileupPlot
from proteoscope.gui.plots.zoomable import zoom_buttons
from proteoscope.gui.tables.worker import TableWorker

_AROUND = 30
"""Reference positions shown on both sides of an alignment."""
_MAXIMUM_FEATURES = 400
_NO_TRACK = "no track: add genes or other features of the genome"


class PileupPage(QWidget):
    """Page that shows the reads aligned at a position; it reads no files while it is hidden."""

    rowChosen = Signal(int)
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.track: Track | None = None
        self._run: FinishedRun | None = None
        self._source: TableSource | None = None
        self._conditions: Sequence[Condition] = ()
        self._wanted: tuple[ShownReference, int, int] | None = None
        self._shown: ShownReference | None = None
        self._is_outdated = False
        """True if the filter has changed since the pile-up was read."""
        self._depth_of: tuple[ShownReference, Sequence[Condition]] | None = None
        """Reference and filter of the depth of coverage that was read last, or None."""
        self._worker = TableWorker(self._interrupt, self)
        self._reader = TableWorker(None, self)
        self._progress = Progress()
        self.plot = PileupPlot()
        self.plot.rangeRequested.connect(self._read)
        self.plot.rowChosen.connect(self.rowChosen)
        self.plot.message.connect(self.message)
        self.lines = described(QScrollBar(Qt.Orientation.Vertical), "Lines of alignments")
        hide_in_place(self.lines)
        self.lines.valueChanged.connect(self.plot.scroll_lines)
        self.plot.linesChanged.connect(self._show_lines)
        self.track_button = text_button(
            "Add track…",
            "Show genes or other features of a GFF3 or BED file above the alignments",
            self.prompt_for_track,
            "Add a track of features",
        )
        self.track_label = ElidedLabel()
        self.track_label.set_text(_NO_TRACK)
        in_column(
            in_row(self.track_button, (self.track_label, 1), *zoom_buttons(self.plot, "reference"), margins=(8, 3, 6, 1), spacing=6),
            (in_row((self.plot, 1), self.lines, spacing=0), 1),
            on=self,
            spacing=0,
        )

    @property
    def is_busy(self) -> bool:
        """True while alignments or a track are being read."""
        return self._worker.is_busy or self._reader.is_busy or self.plot.is_waiting

    def open(self, run: FinishedRun) -> None:
        """Set the run; its alignments are read only when a row or position is requested."""
        self.close_run()
        self._run = run

    def close_run(self) -> None:
        """Clear the view and release all files; a loaded track is retained."""
        self._progress.cancel()
        for worker in (self._worker, self._reader):
            worker.close()
        self._progress = Progress()
        self.track_label.set_text(_NO_TRACK if self.track is None else self.track.name)
        if self._source is not None:
            self._source.close()
        self._run = self._source = self._wanted = self._shown = self._depth_of = None
        self.plot.show_pile(None)

    def show_row(self, row: int, text: ShownReference, positions: tuple[int, int]) -> None:
        """Show the alignment of a row, at once or when the page becomes visible.

        Parameters
        ----------
        row : int
            Row of the table of alignments.
        text : ShownReference
            Reference of the alignment.
        positions : tuple of int
            First and last position of the alignment on the reference, from 1.
        """
        self.plot.choose(row)
        if self._is_in_sight(row, text, positions):
            return
        self._wanted = (text, max(1, positions[0] - _AROUND), min(text.length, positions[1] + _AROUND))
        self.show_if_visible()

    def _is_in_sight(self, row: int, text: ShownReference, positions: tuple[int, int]) -> bool:
        """Return True if an alignment is visible, or will be visible once the requested positions have been read."""
        first, last = self.plot.positions
        if self._wanted is not None or not text.is_same(self._shown) or positions[1] < first or positions[0] > last:
            return False
        pile = self.plot.pile
        return pile is None or (pile.first, pile.last) != (first, last) or row in pile.row

    def filter(self, conditions: Sequence[Condition]) -> None:
        """Show only alignments that meet a filter, at once or when the page becomes visible."""
        self._conditions, self._is_outdated = conditions, True
        self.show_if_visible()

    def show_if_visible(self) -> None:
        """Show the requested position if the page is visible; also called when it becomes visible."""
        if self._run is None or not self.isVisible():
            return
        if self._wanted is not None:
            (self._shown, first, last), self._wanted = self._wanted, None
            self.plot.scroll_to(self._shown, first, last)
        elif self._is_outdated and self._shown is not None:
            self._read(*self.plot.positions)

    def prompt_for_track(self) -> None:
        """Prompt for a file of features and show them."""
        path, _ = QFileDialog.getOpenFileName(
            self, "Add track", "", "Tracks (*.gff3 *.gff *.bed *.gff3.gz *.gff.gz *.bed.gz);;All files (*)"
        )
        if path:
            self.add_track(Path(path))

    def add_track(self, path: Path) -> None:
        """Read a GFF3 or BED file in a thread and show its features."""
        self.track_label.set_text(f"Reading {path.name}…")
        progress = self._progress
        self._reader.submit("track", lambda: read_track(path, progress=progress), self._take_track, self._refuse_track)

    def _take_track(self, track: Track) -> None:
        self.track = track
        n = self.locale().toString(len(track))
        name = "" if self._shown is None else self._shown.name
        is_here = not name or bool(track.within(name, 1, 1 << 31, 1))
        self.track_label.set_text(f"{track.name}: {n} feature{'' if len(track) == 1 else 's'}" + ("" if is_here else f", none on {name}"))
        self._show_features()
        if track.warning:
            self.message.emit(track.warning)

    def _refuse_track(self, error: Exception) -> None:
        self.track_label.set_text(_NO_TRACK if self.track is None else self.track.name)
        self.message.emit(str(error))

    def _show_features(self) -> None:
        result: list[TrackFeature] = []
        if self.track is not None and self._shown is not None:
            result = self.track.within(self._shown.name, *self.plot.positions, _MAXIMUM_FEATURES)
        self.plot.show_features(result)

    def _read(self, first: int, last: int) -> None:
        run, text, conditions = self._run, self._shown, self._conditions
        if run is None or text is None:
            return
        self._is_outdated = False

        def opened() -> TableSource:
            if self._source is None:
                self._source = run.tables.source("alignments")
            return self._source

        def read() -> Pileup:
            return read_pileup(opened(), text, first, last, conditions)

        self._worker.submit("pile", read, self.plot.show_pile, lambda error: self.plot.show_pile(None, str(error)))
        if self._depth_of is None or not text.is_same(self._depth_of[0]) or conditions is not self._depth_of[1]:
            self._depth_of = text, conditions
            self._worker.submit(
                "depth", lambda: read_depth(opened(), text, conditions), self.plot.show_depth, lambda _: self.plot.show_depth(None)
            )
        self._show_features()

    def _show_lines(self) -> None:
        """Show the scroll bar if the lines of alignments do not fit, and set its range."""
        sheet = self.plot.sheet
        most = 0 if sheet is None else max(0, sheet.pile.n_lanes - sheet.n_visible)
        if self.plot.first_lane > most:
            self.plot.scroll_lines(most)
            return
        with QSignalBlocker(self.lines):
            self.lines.setRange(0, most)
            self.lines.setPageStep(1 if sheet is None else sheet.n_visible)
            self.lines.setValue(self.plot.first_lane)
        self.lines.setVisible(most > 0)

    def _interrupt(self) -> None:
        if self._source is not None:
            self._source.interrupt()

"""Time from a click in one part of the evidence view to the update of the others, for 5,000 PSMs of a protein and 20 chains.

    xvfb-run -a -s "-screen 0 1920x1200x24" python -m benchmarks.evidence_links [--psms 5000] [--chains 20] [--repeats 15]

One JSON line for each link, times in milliseconds from the press of the mouse to the end of the painting of coverage map, alignment and
fold: `median` and `longest` are wall time. CPU times, which other programs hardly change, are medians for all threads (`processor_ms`,
including software rendering) and for the window's thread (`window_ms`). `peptide`: a click on a row of the table of peptides, or on a bar
of the coverage map, updates all three; `residue`: a click on a residue of the fold, or on a column of the alignment, shows the PSMs that
cover it and updates all three; `site`: a click on a row of modified residues updates all three; `psm`: the table of PSMs of the
identification requests a peptide. The chains are those of albumin (1AO6), with random displacements of half an ångström.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import gemmi
import numpy as np
from PySide6.QtCore import QEventLoop, QPoint, QPointF, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from proteoscope.gui.results.evidence_view import EvidenceView
from proteoscope.gui.tables.panel import TablePanel
from tests.engine.evidence.evidence_projects import write_albumin, write_identification

_SHAKEN = 0.5  # Å
_LONGEST = 20.0  # seconds for one link, beyond which it is broken


def make_project(folder: Path, n_psms: int, n_chains: int) -> Project:
    """Create an imported identification of albumin with about `n_psms` PSMs, and its evidence on `n_chains` chains."""
    albumin = write_albumin(folder)
    sequence = read_structure(albumin).chains.sequence(0)
    generator, paths = np.random.default_rng(1), []
    for k in range(n_chains):
        structure = gemmi.read_structure(str(albumin))
        for atom in (atom for residue in structure[0][0] for atom in residue):
            x, y, z = (np.array(atom.pos.tolist()) + generator.normal(scale=_SHAKEN, size=3)).tolist()
            atom.pos = gemmi.Position(x, y, z)
        paths.append(folder / f"shaken_{k:02d}.pdb")
        paths[-1].write_text(structure.make_pdb_string())
    project = write_identification(folder, {"ALBUMIN": sequence, "OTHER": sequence[300:] + sequence[:50]}, n_psms=n_psms)
    run_search("evidence", {"project": [project], "structures": paths}, device="cpu", threads=2, chains_per_protein=min(n_chains, 20))
    return Project.open(project)


class Taken(NamedTuple):
    """Milliseconds of a link: wall time, CPU time of all threads, and CPU time of the window's thread."""

    clock: float
    processor: float
    window: float


class Links:
    """A view, and timers of clicks in it."""

    def __init__(self, application: QApplication, project: Project) -> None:
        self._application = application
        # Waiting takes no CPU time, and completion is checked every millisecond.
        self._waker = QTimer(application, interval=1)
        self._waker.start()
        self.view = view = EvidenceView(EVIDENCE)
        view.resize(1600, 1000)
        view.show()
        view.show_run(project, None)
        self.settle()
        view.structures_action.setChecked(True)
        self.settle()
        self.click_row(view.proteins, 0)
        self.settle()
        assert view.structures is not None and view._fold is not None and view._fold.trace is not None
        self.panel, self.fold = view.structures, view._fold
        view.superpose_selected()
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is being loaded or drawn."""
        until = time.perf_counter() + 0.3
        while self.view.is_busy or time.perf_counter() < until:
            self._application.processEvents()

    def click_row(self, panel: TablePanel, position: int) -> None:
        """Click on a row of a table."""
        index = panel.model.index(position, panel.view.horizontalHeader().logicalIndexAt(5))
        at = panel.view.visualRect(index).center()
        self.press(panel.view.viewport(), QPoint(30, at.y()))

    def press(self, widget: QWidget, at: QPoint) -> None:
        """Click on a place."""
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)

    def lit(self) -> frozenset[int]:
        """Return positions in the protein that are highlighted in the structure."""
        scene = self.panel.scene
        if scene.query is None or scene.query.evidence is None or scene.query not in scene.lit:
            return frozenset()
        return frozenset(scene.query.evidence.position[scene.lit[scene.query]].tolist())

    def timed(self, act: Callable[[], None], is_done: Callable[[], bool]) -> Taken:
        """Return the time from a click to the end of the painting."""
        self.settle()
        started, processor, thread = time.perf_counter(), time.process_time(), time.thread_time()
        act()
        while not is_done():
            self._application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
            if time.perf_counter() - started > _LONGEST:
                sys.exit("a click was not answered")
        for widget in (self.view.coverage.canvas, self.view.alignment.plot.viewport(), self.panel.canvas):
            widget.repaint()
        taken = time.perf_counter() - started, time.process_time() - processor, time.thread_time() - thread
        return Taken(*(seconds * 1000 for seconds in taken))

    def residues_at(self, first: int, last: int) -> frozenset[int]:
        """Return the residues of the protein, from 0, that are on the chain."""
        return frozenset(set(range(first, last)) & set(self.fold.near.position.tolist()))

    def peptides(self, n: int) -> Iterator[Taken]:
        """Yield times of rows of the table of peptides."""
        view = self.view
        view._scope("peptide_places")
        view.tabs.setCurrentWidget(view.peptides)
        self.settle()
        for k in range(n):
            values = view.peptides.model.values(position := 1 + k % 10)
            assert values is not None
            wanted = self.residues_at(values["first"] - 1, values["last"])
            yield self.timed(partial(self.click_row, view.peptides, position), partial(self._is_lit, wanted))

    def residues(self, n: int) -> Iterator[Taken]:
        """Residues of the fold that lie in front."""
        trace, canvas = self.fold.trace, self.panel.canvas
        assert trace is not None and trace.evidence is not None
        for row in np.flatnonzero(trace.evidence.n_psms > 0)[:: max(1, len(trace.position) // (3 * n))].tolist()[:n]:
            self.settle()
            x, y = canvas.camera.projected(trace.position[row][None], canvas.width(), canvas.height())[0][:2]
            at = QPointF(x, y).toPoint()
            picked = canvas.pick_at(at.toPointF())
            if picked is None or picked.row < 0 or picked.trace.evidence is None:
                continue
            place = int(picked.trace.evidence.position[picked.row])
            # Another click on a picked residue clears the pick.
            if place < 0 or self.view._protein is None or not self.view._protein.n_psms[place] or place == self.view._place:
                continue
            yield self.timed(partial(self.press, canvas, at), partial(self._are_over, place))

    def columns(self, n: int) -> Iterator[Taken]:
        """Yield times of columns of the alignment."""
        view = self.view
        view.figures.setCurrentWidget(view.alignment)
        covered = np.flatnonzero(view._protein.coverage.covered[self.fold.pair.place])[::7][:n].tolist() if view._protein else []
        for column in covered:
            place = int(self.fold.pair.place[column])
            yield self.timed(partial(view.alignment.plot.columnPicked.emit, column), partial(self._are_over, place))

    def _is_lit(self, places: frozenset[int]) -> bool:
        return self.lit() == places

    def _are_over(self, place: int) -> bool:
        """Return True if the peptides over a residue are listed, and one of them is shown."""
        view, protein = self.view, self.view._protein
        assert protein is not None
        if f"over {protein.name_of(place)} " not in view.peptides.scope_text or not self.lit() or view.peptides.model.is_busy:
            return False
        values = view.peptides.model.values(0) if len(view.peptides.model.rows) else None
        return values is not None and values["first"] <= place + 1 <= values["last"]

    def sites(self, n: int) -> Iterator[Taken]:
        """Yield times of rows of the table of modified residues."""
        view = self.view
        view.tabs.setCurrentWidget(view.sites)
        self.settle()
        for k in range(n):
            if (values := view.sites.model.values(position := k % len(view.sites.model.rows))) is not None:
                wanted = self.residues_at(values["position"] - 1, values["position"])
                yield self.timed(partial(self.click_row, view.sites, position), partial(self._is_lit, wanted))

    def bars(self, n: int) -> Iterator[Taken]:
        """Yield times of peptides of the coverage map."""
        view = self.view
        assert view._protein is not None
        view.figures.setCurrentWidget(view.coverage)
        for peptide in view._protein.coverage.peptides[:n]:
            wanted = self.residues_at(peptide.start, peptide.end)
            yield self.timed(partial(view.coverage.peptideChosen.emit, peptide.row), partial(self._is_lit, wanted))

    def chosen(self, n: int) -> Iterator[Taken]:
        """Yield the times of peptides requested by a PSM."""
        assert self.view._protein is not None
        for peptide in self.view._protein.coverage.peptides[n : 2 * n]:
            wanted = self.residues_at(peptide.start, peptide.end)
            yield self.timed(partial(self.view.show_peptide, peptide.peptide), partial(self._is_lit, wanted))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psms", type=int, default=5000)
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    application = QApplication([])
    with tempfile.TemporaryDirectory(prefix="proteoscope-links-") as name:
        project = make_project(Path(name), options.psms, options.chains)
        links = Links(application, project)
        about = {"psms": options.psms, "chains": len(links.panel.scene.traces), "renderer": links.panel.canvas.renderer.name}
        for figure, of, times in (
            ("peptide", "table", links.peptides),
            ("peptide", "coverage map", links.bars),
            ("residue", "fold", links.residues),
            ("residue", "alignment", links.columns),
            ("site", "table", links.sites),
            ("psm", "identification", links.chosen),
        ):
            clock, processor, window = (sorted(column) for column in zip(*times(options.repeats), strict=True))
            line = {
                "figure": figure,
                "from": of,
                "n": len(clock),
                "median": round(clock[len(clock) // 2], 1),
                "longest": round(clock[-1], 1),
                "processor_ms": round(processor[len(clock) // 2], 1),
                "window_ms": round(window[len(clock) // 2], 1),
            }
            print(json.dumps(line | about), flush=True)
        links.view.clear()
        links.view.close()


if __name__ == "__main__":
    main()

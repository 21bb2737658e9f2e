"""Figures of the manual and the README, created by ``python -m tests.gui.screenshots --figures``.

They show the runs of the page "Worked examples", whose commands are run first, in a window of 1280 x 800.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from PySide6.QtGui import QImage

from proteoscope.engine.project import Project
from tests.gui.screenshots import REPOSITORY, Photographer, run_examples

__all__ = ["FIGURES", "Figures"]

FIGURES = REPOSITORY / "docs" / "figures"
_WIDTH, _HEIGHT = 1280, 800
_QUALITY = 80


class Figures(Photographer):
    """Photographer of the figures, in the light theme."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "light", "1", ())
        # A name that appears in the figures.
        named = self.temporary.parent / "worked-examples"
        shutil.rmtree(named, ignore_errors=True)
        self.temporary = self.temporary.rename(named)
        self.window.resize(_WIDTH, _HEIGHT)

    def take(self, name: str, widget: Any = None) -> None:
        """Write a figure as WebP."""
        self.wait(seconds=1)
        image: QImage = (widget or self.window).grab().toImage()
        path = self.folder / f"{name}.webp"
        if not image.convertToFormat(QImage.Format.Format_RGB888).save(str(path), "WEBP", _QUALITY):  # type: ignore[call-overload]
            raise OSError(f"{path}: not written; Qt has no WebP, or the disk refused")

    def go(self, views: list[str]) -> None:
        """Take all figures, whichever views are named."""
        run_examples(self.temporary)
        project = self.temporary / "bench"
        for folder in (self.temporary / "simulated", project):
            self.window.recent_projects.remember(folder, reversed(Project.open(folder).runs()))
        self.window.show_page(self.window.start_page)
        self.take("window")
        self.form()
        self.window.open_project(project)
        self.results("identify")
        self.hits()
        self.folds()
        self.mirror()
        self.reads()
        self.evidence()
        self.volcano()
        self.window.close()
        shutil.rmtree(self.temporary)

    def shown(self, kind: str) -> Any:
        """Return the results of the run of a kind."""
        pane = self.window.project_pane
        pane.select(next(run.id for run in pane.project.runs() if run.kind == kind))
        results = self.window.searches[kind].results
        self.wait_for(results)
        return results

    def form(self) -> None:
        """Take the identification form, filled with its sample."""
        window, samples = self.window, self.temporary / "samples"
        window.menus.new["identify"].trigger()
        form = window.form
        form.file_lists["spectra"].add([samples / f"BSA{number}.mzML.gz" for number in (1, 2, 3)])
        form.file_lists["database"].add([samples / "albumin_proteins.fasta.gz"])
        form.presets.choose("low-resolution")
        form.set_project_folder(self.temporary / "bench")
        self.wait(form.run_button.isEnabled)
        self.wait(lambda: not form.estimate.is_busy)
        self.take("form")

    def results(self, kind: str) -> None:
        """Take proteins, peptides and PSMs with an annotated spectrum, and the coverage of the protein."""
        results = self.shown(kind)
        results.panels["proteins"].view.choose(0)
        self.wait_for(results)
        self.take("results")
        for i in range(results.tabs.count()):
            if "overage" in results.tabs.tabText(i):
                results.tabs.setCurrentIndex(i)
                self.wait_for(results)
                self.take("coverage")
        results.tabs.setCurrentIndex(0)

    def hits(self) -> None:
        """Take hits of a sequence with the alignment of one."""
        results = self.shown("align")
        results.hits.view.choose(0)
        self.wait_for(results)
        self.take("hits")

    def folds(self) -> None:
        """Take two superposed domains."""
        results = self.shown("structures")
        results.hits.view.choose(1)
        self.wait_for(results)
        # Without the list of runs, the table next to the structure shows the superposition.
        self.window.dock_project.hide()
        results.structures_action.setChecked(True)
        self.wait_for(results)
        self.take("structures")
        results.structures_action.setChecked(False)
        self.window.dock_project.show()

    def mirror(self) -> None:
        """Take an explained spectrum mirrored with a similar identified one."""
        results = self.shown("explain")
        results.explained.view.choose(0)
        self.wait_for(results)
        self.take("mirror")

    def reads(self) -> None:
        """Take the positions of reads."""
        results = self.shown("reads")
        results.alignments.view.choose(3)
        self.wait_for(results)
        self.take("reads")

    def evidence(self) -> None:
        """Take peptides on the fold of a homologue."""
        self.shown("evidence")
        self.take("evidence")

    def volcano(self) -> None:
        """Take quantities of the simulated run of two conditions."""
        self.window.open_project(self.temporary / "simulated")
        results = self.window.searches["quantify"].results
        self.wait_for(results)
        results.changes.view.choose(0)
        self.wait_for(results)
        self.take("volcano")

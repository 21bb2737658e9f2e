"""What is shown in three dimensions, written for other programs: superposed coordinates, and scripts that show them alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLocale
from PySide6.QtGui import QColor

from proteoscope.engine.jobs import Progress
from proteoscope.engine.structure_search.hit_chains import write_hits
from proteoscope.engine.structures.scripts import Style
from proteoscope.engine.views.traces import Trace
from proteoscope.gui.structure.scene import Scene
from proteoscope.gui.tasks import WritingTask

__all__ = ["SceneFilesTask"]


@dataclass(frozen=True)
class SceneFilesTask(WritingTask):
    """A query and hits that are to be written superposed, with scripts for PyMOL and ChimeraX.

    `colours`, `shown`: of their residues, the query's first. `folder`: made where it is missing.
    """

    query: Trace
    hits: tuple[Trace, ...]
    colours: tuple[NDArray[np.uint8], ...]
    shown: tuple[NDArray[np.bool_] | None, ...]
    style: Style
    background: tuple[int, int, int]
    folder: Path

    @classmethod
    def of(cls, scene: Scene, background: QColor, folder: Path) -> SceneFilesTask | None:
        """What a scene shows now; None where that is nothing. Other chains of the files are not written."""
        if scene.query is None:
            return None
        query, *hits = scene.traces
        colours = scene.coloured().colours[: len(hits) + 1]
        shown = tuple(scene.mask(trace) for trace in (query, *hits))
        ground = background.red(), background.green(), background.blue()
        return cls(query, tuple(hits), colours, shown, scene.style, ground, folder)

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Save {self.query.name} with {len(self.hits)} superposed hit{'' if len(self.hits) == 1 else 's'}"

    def run(self, progress: Progress) -> Path:
        """Write it; the folder."""
        progress.stage("Writing")
        hits = [(hit.found, _row(hit)) for hit in self.hits]
        _, told = write_hits(self.folder, self.query.found, hits, self.colours, self.style, self.background, self.shown)
        for text in told:
            progress.message(text, "warning")
        return self.folder

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Where it was written, and how it is looked at."""
        return f"coordinates and scripts for PyMOL and ChimeraX written into {written}"


def _row(hit: Trace) -> dict[str, Any]:
    """The row of the table with the transformation that was used, which a damaged one lacks."""
    return {**hit.hit, "rotation": hit.rotation.ravel().tolist(), "translation": ",".join(repr(float(one)) for one in hit.translation)}

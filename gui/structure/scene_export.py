"""Export of a scene for other programs: superposed coordinates, and scripts that display them."""

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


@dataclass(frozen=True)
class SceneFilesTask(WritingTask):
    """Job that exports a query and superposed hits, with scripts for PyMOL and ChimeraX.

    Attributes
    ----------
    colours, shown : tuple of ndarray
        Residue colours, and masks of visible residues (None: all), of the query and then the hits.
    folder : Path
        Target folder, created if missing.
    """

    query: Trace
    hits: tuple[Trace, ...]
    colours: tuple[NDArray[np.uint8], ...]
    shown: tuple[NDArray[np.bool_] | None, ...]
    style: Style
    background: tuple[int, int, int]
    folder: Path

    @classmethod
    def from_scene(cls, scene: Scene, background: QColor, folder: Path) -> SceneFilesTask | None:
        """Return the job that exports a scene, or None if the scene is empty. Other chains of the files are not exported."""
        if scene.query is None:
            return None
        query, *hits = scene.traces
        colours = scene.coloured().colours[: len(hits) + 1]
        shown = tuple(scene.mask(trace) for trace in (query, *hits))
        ground = background.red(), background.green(), background.blue()
        return cls(query, tuple(hits), colours, shown, scene.style, ground, folder)

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Save {self.query.name} with {len(self.hits)} superposed hit{'' if len(self.hits) == 1 else 's'}"

    def run(self, progress: Progress) -> Path:
        """Write the files and return the folder."""
        progress.stage("Writing")
        hits = [(hit.source, _row(hit)) for hit in self.hits]
        _, warnings = write_hits(self.folder, self.query.source, hits, self.colours, self.style, self.background, self.shown)
        for text in warnings:
            progress.message(text, "warning")
        return self.folder

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return a text with the folder and the programs that read its files."""
        return f"coordinates and scripts for PyMOL and ChimeraX written into {written}"


def _row(hit: Trace) -> dict[str, Any]:
    """Return the table row of a hit with the transformation of its chain; a damaged row would lack the transformation."""
    return {
        **hit.hit,
        "rotation": hit.rotation.ravel().tolist(),
        "translation": ",".join(repr(float(number)) for number in hit.translation),
    }

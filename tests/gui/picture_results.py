"""Take screenshots of every result view in both themes, given the folders of two projects and a prefix of file names.

The projects have an identification and a sequence search. Another scale of the screen needs its own process, since Qt reads it at the
start.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Literal

from PySide6.QtWidgets import QApplication

from proteoscope.engine.project import Project
from proteoscope.gui.results.hits_view import HitsView
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.theme import Theme

LOOKS: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def take_pictures(theme: Theme, identified: str, searched: str, begin: str) -> None:
    def settle(view: RunView) -> None:
        until = time.monotonic() + 0.1
        while view.is_busy or time.monotonic() < until:
            QApplication.processEvents()
            time.sleep(0.005)

    def take(view: RunView, name: str) -> None:
        for look in LOOKS:
            theme.choose(look)
            settle(view)
            assert view.grab().save(f"{begin}-{look}-{name}.png")

    def close(view: RunView) -> None:
        view.clear()
        view.close()
        view.deleteLater()

    def opened(view: RunView, project: Project) -> None:
        view.resize(1180, 720)
        view.show()
        view.show_run(project, None)
        settle(view)

    identification = IdentificationView()
    opened(identification, Project.open(Path(identified)))
    identification.proteins.view.choose(1)
    take(identification, "spectrum")
    identification.spectrum.ions_button.click()
    take(identification, "ions")
    for tab, name in ((1, "coverage"), (2, "scores"), (3, "errors")):
        identification.tabs.setCurrentIndex(tab)
        take(identification, name)
    close(identification)

    hits = HitsView()
    opened(hits, Project.open(Path(searched)))
    hits.hits.view.choose(6)
    take(hits, "hits")
    hits.tabs.setCurrentIndex(1)
    take(hits, "expectations")
    close(hits)


if __name__ == "__main__":
    take_pictures(Theme(QApplication([])), *sys.argv[1:])

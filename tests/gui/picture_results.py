"""Takes a picture of every view of the results: look, folder for the project, and what the pictures' names begin with.

A process of its own, since the scale of the screen is fixed when Qt starts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from PySide6.QtWidgets import QApplication

from gui.results.results_view import ResultsView
from gui.theme import Theme
from tests.gui.result_projects import project_with_results


def main(look: str, folder: str, begin: str) -> None:
    application = QApplication([])
    Theme(application).choose(look)  # type: ignore[arg-type]
    project, _ = project_with_results(Path(folder), log=("Rescoring not used: too few targets",))
    view = ResultsView()
    view.resize(1180, 720)
    view.show()

    def settle() -> None:
        until = time.monotonic() + 0.1
        while view.is_busy or time.monotonic() < until:
            application.processEvents()
            time.sleep(0.005)

    def take(name: str) -> None:
        settle()
        assert view.grab().save(f"{begin}-{name}.png")

    view.show_run(project, None)
    settle()
    view.proteins.view.choose(1)
    take("spectrum")
    view.spectrum.ions_button.click()
    take("ions")
    for tab, name in ((1, "coverage"), (2, "scores"), (3, "errors")):
        view.tabs.setCurrentIndex(tab)
        take(name)
    view.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])

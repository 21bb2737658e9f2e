"""Pictures of every view of the window, light and dark, at 100 % and 200 %, to be looked at by eye.

::

    xvfb-run -a -s "-screen 0 2800x2000x24" python tests/gui/screenshots.py [FOLDER]

They are written to ``artefacts/screenshots`` unless a folder is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = REPOSITORY / "resources" / "samples"
LOOKS, SCALES = ("light", "dark"), (1, 2)


def main(folder: Path) -> None:
    """Take all pictures, each look and scale in a process of its own: Qt takes its scale at the start."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        for look in LOOKS:
            for scale in SCALES:
                environment = {**os.environ, "QT_SCALE_FACTOR": str(scale), "XDG_CONFIG_HOME": temporary, "PYTHONPATH": str(REPOSITORY)}
                subprocess.run([sys.executable, __file__, str(folder), look, str(scale)], env=environment, check=True)
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


class Photographer:
    """A window that goes through its views."""

    def __init__(self, folder: Path, look: Any, scale: str) -> None:
        from PySide6.QtWidgets import QApplication

        from gui.settings import SettingsFile
        from gui.theme import Theme
        from gui.window import MainWindow

        self.application = QApplication(["proteoscope"])
        self.folder, self.suffix = folder, f"{look}-{100 * int(scale)}"
        self.temporary = Path(tempfile.mkdtemp())
        theme = Theme(self.application)
        settings = SettingsFile(self.temporary / "settings.json")
        settings.values.theme = look
        settings.values.remember_project(Path("/data/proteomics/2031/HeLa fractions"))
        settings.values.remember_project(Path("/data/proteomics/2031/BSA control"))
        self.window = MainWindow(settings, theme)
        self.window.show()

    def wait(self, done: Any = None, seconds: float = 0.3) -> None:
        """Let the window work until something is done, or for a moment."""
        end = time.monotonic() + (240 if done else seconds)
        while time.monotonic() < end and not (done and done()):
            self.application.processEvents()
            time.sleep(0.005)

    def take(self, name: str, widget: Any = None) -> None:
        """Write a picture."""
        self.wait()
        (widget or self.window).grab().save(str(self.folder / f"{name}-{self.suffix}.png"))

    def go(self) -> None:
        """Take the pictures of all views."""
        self.start_and_form()
        self.dialogs()
        self.jobs_and_results()
        self.window.close()

    def start_and_form(self) -> None:
        """The pages before a run."""
        window, form = self.window, self.window.form
        self.take("01-start")
        window.action_new.trigger()
        self.take("02-form-empty")
        form.spectra.add([SAMPLES / "BSA1.mzML.gz", SAMPLES / "SOURCES.md"])
        form.databases.add([SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"])
        form.parameters.set_values({"missed_cleavages": 77, "enzyme": "Lys-C", "fdr": 0.05})
        self.wait(lambda: form.spectra.is_examined)
        self.take("03-form-wrong")
        form.scroll_area.verticalScrollBar().setValue(500)
        self.take("04-form-middle")
        form.parameters.unfold()
        self.wait()
        form.scroll_area.verticalScrollBar().setValue(100_000)
        self.take("05-form-advanced")
        form.parameters.reset_all()
        form.parameters.unfold(False)
        form.spectra.lines.item(1).setSelected(True)
        form.spectra.remove_selected()
        form.choose_preset("low-resolution")
        form.set_project_folder(self.temporary / "BSA in trap")
        form.scroll_area.verticalScrollBar().setValue(0)
        self.wait(form.run_button.isEnabled)
        self.take("06-form-ready")
        window.resize(800, 620)
        self.take("07-form-narrow")
        window.resize(1280, 860)

    def dialogs(self) -> None:
        """Picker, questions and messages."""
        from gui.dialogs import CloseQuestion, CrashDialog, about, report_text
        from gui.forms.modification_picker import ModificationPicker

        window = self.window
        picker = ModificationPicker("Variable modifications", window)
        picker.show()
        self.take("08-picker", picker)
        picker.name.setText("phos")
        picker.site.setText("S")
        picker.own.setText("Label:+8.0142")
        self.take("09-picker-own", picker)
        picker.close()
        error = 'Traceback (most recent call last):\n  File "search.py", line 7\nRuntimeError: a wheel came off'
        report = report_text(error, "12:00:00  started")
        for name, dialog in (("10-crash", CrashDialog("Identify BSA1.mzML.gz failed: a wheel came off", report, window)),
                             ("11-close", CloseQuestion(2, window)), ("12-about", about(window))):  # fmt: skip
            dialog.show()
            self.take(name, dialog)
            dialog.close()
        window.tell_error("/data/run 7.mzML, spectrum scan=4811: the peak list is cut off in the middle. Copy or convert the file again.")
        self.take("13-message")
        window.message_bar.clear()
        window.dock_log.show()
        window.dock_log.raise_()
        window.log.add("A warning, in its own colour", "warning")
        self.take("14-log")
        window.dock_log.hide()

    def jobs_and_results(self) -> None:
        """A run, and what it found."""
        import gui.window as module

        window, real = self.window, module._identify
        hold = [True]

        def slow(request: Any, progress: Any) -> Any:
            progress.stage("Scoring spectra", 100)
            for _ in range(37):
                time.sleep(0.03)
                progress.advance()
            while hold[0]:
                time.sleep(0.01)
            return SimpleNamespace(run_id="identify-0001", n_psms=0, n_peptides=0, n_proteins=0)

        window.form.run()
        self.wait(lambda: window.queue.is_idle and window.pages.currentWidget() is window.results)
        self.wait(lambda: not window.results.is_busy)
        self.wait(seconds=1)
        self.take("15-results")
        for i in range(1, window.results.tabs.count()):
            window.results.tabs.setCurrentIndex(i)
            self.wait(lambda: not window.results.is_busy)
            self.take(f"{15 + i}-results-{window.results.tabs.tabText(i).lower().replace(' ', '-')}")
        window.results.tabs.setCurrentIndex(0)
        window.show_page(window.form)
        module._identify = slow
        window.form.run()
        window.form.run()
        self.wait(seconds=2)
        self.take("20-jobs-running")
        hold[0] = False
        window.queue.cancel_all()
        self.wait(lambda: window.queue.is_idle)
        self.take("21-jobs-over")
        module._identify = real


if __name__ == "__main__":
    if len(sys.argv) == 4:
        Photographer(Path(sys.argv[1]), sys.argv[2], sys.argv[3]).go()
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "artefacts" / "screenshots")

"""Screenshots of every view of the window, light and dark, at 100 % and 200 %, for visual inspection.

::

    xvfb-run -a -s "-screen 0 2800x2000x24" python -m tests.gui.screenshots [FOLDER] [--views VIEW ...]

They are written to ``artefacts/screenshots`` unless a folder is given, and show all views unless some are named. Every page, tab and
dialog on sample data, in one theme and scale, is shown by::

    xvfb-run -a -s "-screen 0 2800x2000x24" python -m tests.gui.screenshots [FOLDER] --pages --look contrast --sizes 1280x800 1024x700

It prints what is cut or overlaps (`tests.gui.layout_problems`). The runs are made once, in ``artefacts/examples``. The figures of the
manual are created again, in ``docs/figures`` or in a folder, by::

    xvfb-run -a -s "-screen 0 1920x1200x24" python -m tests.gui.screenshots --figures [FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = REPOSITORY / "resources" / "samples"
RECENT = ("/data/proteomics/2031/HeLa fractions", "/data/proteomics/2031/BSA control")
LOOKS, SCALES = ("light", "dark"), (1, 2)
EXAMPLES = REPOSITORY / "artefacts" / "examples"
PASTED = """>sp|P02769|ALBU_BOVIN Albumin
MKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVKLVNELTEFAKTCVADESHAGCEKSLHTLFGDELCKVASLRETYGDMADCCEKQEP
ERNECFLSHKDDSPDLPKLKPDPNTLCDEFKADEKKFWGKYLYEIARRHPYFYAPELLYYANKYNGVFQECCQAEDKGACLLPKIETMREKVLASSARQRLRCASIQKFGERALKAWSVA
"""


VIEWS = (
    *("start_and_form", "dialogs", "jobs_and_results", "sequence_search", "structure_search", "structures_3d"),
    *("clustering", "explanation", "modified", "comparison", "reads", "runs", "library", "evidence", "machine", "quantities"),
    "experiment",
)
"""Methods of the photographer, in the order in which they are called; the first ones continue from each other."""


def main(folder: Path, views: list[str]) -> None:
    """Take all screenshots, each theme and scale in its own process, since Qt reads its scale at the start."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        for look in LOOKS:
            for scale in SCALES:
                environment = {**os.environ, "QT_SCALE_FACTOR": str(scale), "XDG_CONFIG_HOME": temporary}
                command = [sys.executable, "-m", "tests.gui.screenshots", str(folder.resolve()), "--look", look, "--scale", str(scale)]
                command += ["--views", *views]
                subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


def run_examples(folder: Path) -> None:
    """Run the commands of the page "Worked examples" in a folder; its projects are `bench` and `simulated`."""
    from proteoscope.engine.command_line.main import main
    from tests.test_worked_examples import PAGE, examples

    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder), io.StringIO() as nowhere, contextlib.redirect_stdout(nowhere):
        for command, _ in examples(PAGE.read_text(encoding="utf-8")):
            if main(shlex.split(command)):
                raise RuntimeError(f"proteoscope {command} failed")


def take_pages(folder: Path, look: str, scale: str, sizes: list[str], only: str) -> None:
    """Take a screenshot of every page, or of those whose names contain `only`, with the runs of the worked examples, in each size."""
    from tests.gui.every_page import EveryPage
    from tests.gui.layout_problems import lasting_problems

    if not (EXAMPLES / "simulated").is_dir():
        run_examples(EXAMPLES)
    os.environ["QT_SCALE_FACTOR"] = scale
    photographer = Photographer(folder, look, scale)
    window = photographer.window
    widths = [tuple(map(int, size.split("x"))) for size in sizes]
    window.resize(*widths[0])

    def project_of(kind: str) -> Path:
        return EXAMPLES / ("simulated" if kind == "quantify" else "bench")

    def settle(is_busy: Callable[[], bool]) -> None:
        photographer.wait(lambda: not is_busy())
        if is_busy():
            raise RuntimeError("the page after the last screenshot does not finish")
        photographer.wait(seconds=0.02)

    for page in EveryPage(window, project_of, settle, EXAMPLES / "bench"):
        # A dialog has its own size.
        for width, height in () if only not in page.name else widths if page.widget is window else widths[:1]:
            if page.widget is window:
                window.resize(width, height)
            name = f"{page.name}-{width}"
            for problem in lasting_problems(page.widget, lambda: photographer.wait(seconds=0.05)):
                print(f"{name}: {problem}", flush=True)
            photographer.take(name, page.widget)
        window.resize(*widths[0])
    window.close()


class Photographer:
    """Window that is taken through its views.

    Parameters
    ----------
    recent : tuple of str
        Remembered projects, which need not exist.
    """

    def __init__(self, folder: Path, look: Any, scale: str, recent: tuple[str, ...] = RECENT) -> None:
        from PySide6.QtWidgets import QApplication

        from proteoscope.gui.settings import SettingsFile
        from proteoscope.gui.theme import Theme
        from proteoscope.gui.window import MainWindow

        self.application = QApplication(["proteoscope"])
        self.folder, self.suffix = folder, f"{look}-{100 * int(scale)}"
        self.temporary = Path(tempfile.mkdtemp())
        theme = Theme(self.application)
        settings = SettingsFile(self.temporary / "settings.json")
        settings.values.theme = look
        settings.values.tour_seen = True
        for project in recent:
            settings.values.remember_project(Path(project))
        self.window = MainWindow(settings, theme)
        self.window.show()

    def wait(self, done: Any = None, seconds: float = 0.3) -> None:
        """Run the event loop until a condition holds, or for a moment."""
        end = time.monotonic() + (90 if done else seconds)
        while time.monotonic() < end and not (done and done()):
            self.application.processEvents()
            time.sleep(0.005)

    def take(self, name: str, widget: Any = None) -> None:
        """Write a screenshot."""
        self.wait()
        (widget or self.window).grab().save(str(self.folder / f"{name}-{self.suffix}.png"))

    def go(self, views: list[str]) -> None:
        """Take the screenshots of some views."""
        for view in views:
            getattr(self, view)()
        self.window.close()

    def start_and_form(self) -> None:
        """Take the pages before a run."""
        window, form = self.window, self.window.form
        self.take("01-start")
        window.menus.new["identify"].trigger()
        self.take("02-form-empty")
        form.file_lists["spectra"].add([SAMPLES / "BSA1.mzML.gz", SAMPLES / "SOURCES.md"])
        form.file_lists["database"].add([SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"])
        self.window.menus.run.trigger()
        form.parameters.set_values({"missed_cleavages": 1, "enzyme": "Lys-C", "fdr": 0.05})
        form.presets.choose("phospho")
        self.window.menus.run.trigger()
        self.take("02-form-preset-undo")
        form.presets.undo()
        form.parameters.set_values({"missed_cleavages": 77, "enzyme": "Lys-C", "fdr": 0.05})
        self.wait(lambda: form.file_lists["spectra"].is_examined)
        self.take("03-form-wrong")
        form.scroll_area.verticalScrollBar().setValue(500)
        self.take("04-form-middle")
        form.parameters.unfold()
        self.wait()
        form.scroll_area.verticalScrollBar().setValue(100_000)
        self.take("05-form-advanced")
        form.parameters.reset_all()
        form.parameters.unfold(False)
        form.file_lists["spectra"].lines.item(1).setSelected(True)
        form.file_lists["spectra"].remove_selected()
        form.presets.choose("low-resolution")
        form.set_project_folder(self.temporary / "BSA in trap")
        form.scroll_area.verticalScrollBar().setValue(0)
        self.wait(form.run_button.isEnabled)
        self.take("06-form-ready")
        window.resize(800, 620)
        self.take("07-form-narrow")
        window.resize(1280, 860)

    def dialogs(self) -> None:
        """Take pickers, prompts and messages."""
        from proteoscope.gui.dialogs import CloseDialog, CrashDialog, LostProjectDialog, about, report_text
        from proteoscope.gui.forms.modification_picker import ModificationPicker

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
        for name, dialog in (
            ("10-crash", CrashDialog("Identify BSA1.mzML.gz failed: a wheel came off", report, window)),
            ("11-close", CloseDialog(2, window)),
            ("12-about", about(window)),
            ("12-lost-project", LostProjectDialog(Path("/data/proteomics/2031/BSA control"), window)),
        ):
            dialog.show()
            self.take(name, dialog)
            dialog.close()
        window.show_error("/data/run 7.mzML, spectrum scan=4811: the peak list is cut off in the middle. Copy or convert the file again.")
        self.take("13-message")
        window.message_bar.clear()
        window.dock_log.show()
        window.dock_log.raise_()
        window.log.add("A warning, in its own colour", "warning")
        self.take("14-log")
        window.dock_log.hide()

    def jobs_and_results(self) -> None:
        """Take a run and its results."""
        from proteoscope.gui.tasks import SearchTask

        window, real = self.window, SearchTask.run
        hold = [True]

        def slow(request: Any, progress: Any) -> Any:
            progress.stage("Scoring spectra", 100)
            for _ in range(37):
                time.sleep(0.03)
                progress.advance()
            while hold[0]:
                time.sleep(0.01)
            return SimpleNamespace(run_id="identify-0001", counts=list)

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
        SearchTask.run = slow
        window.form.run()
        window.form.run()
        self.wait(seconds=2)
        self.take("20-jobs-running")
        hold[0] = False
        window.queue.cancel_all()
        self.wait(lambda: window.queue.is_idle)
        self.take("21-jobs-over")
        window.project_pane.project.folder.rename(self.temporary / "moved")
        window.form.run()
        window.task_projects.question.close()
        self.take("22-project-gone")
        SearchTask.run = real

    def sequence_search(self) -> None:
        """Take the sequence search: form, results with many queries and with one, and the devices."""
        from tests.gui.every_page import sample_gpus

        window = self.window
        queries, database = self.proteins()
        window.menus.new["align"].trigger()
        form = window.searches["align"].form
        self.take("30-search-form-empty")
        nucleotides = self.temporary / "transcripts.fasta"
        nucleotides.write_text(">transcript\n" + "ACGTTGCAAGCT" * 40 + "\n", encoding="utf-8")
        form.file_lists["queries"].add([SAMPLES / "BSA1.mzML.gz", nucleotides])
        form.inputs["queries"].box.text.setPlainText(">my protein\nMKWVTFISLLLLFSSAYS\nRGVFRR@THKSEIAHRFKDLGE")
        form.parameters.set_values({"gap_open": -3, "maximum_e_value": 1e12})
        form.device.choose("cuda:7")
        window.devices.detect()
        self.wait(lambda: window.devices.is_known and form.inputs["queries"].is_examined and form.file_lists["queries"].counts)
        self.take("31-search-form-wrong")
        form.file_lists["queries"].clear()
        form.inputs["queries"].box.text.setPlainText(PASTED)
        form.file_lists["database"].add([database])
        form.parameters.reset_all()
        form.device.choose("auto")
        form.set_project_folder(self.temporary / "relatives")
        self.wait(lambda: form.run_button.isEnabled() and form.file_lists["database"].counts)
        self.take("32-search-form-ready")
        self.run_to_results()
        self.take("33-hits-one-query")
        results = window.results
        form.inputs["queries"].box.text.clear()
        form.file_lists["queries"].add([queries])
        self.wait(lambda: form.run_button.isEnabled() and not form.inputs["queries"].box.pasted.fasta)
        window.show_page(form)
        self.run_to_results()
        results.queries.view.choose(7)
        self.wait(lambda: not results.is_busy)
        results.hits.view.choose(2)
        self.wait(lambda: not results.is_busy)
        self.take("34-hits-20-queries")
        for _ in range(5):
            results.alignment.zoom_in_button.click()
        self.take("35-alignment-zoomed")
        results.alignment.zoom_button.click()
        results.tabs.setCurrentWidget(results.stack)
        self.wait_for(results)
        self.take("35-stack")
        results.tabs.setCurrentWidget(results.subject)
        self.wait_for(results)
        self.take("35-subject")
        results.tabs.setCurrentIndex(results.tabs.count() - 1)
        self.wait(lambda: not results.is_busy)
        self.take("36-hit-scores")
        results.tabs.setCurrentIndex(0)
        results.hits.all_button.click()
        results.filters.identity.setValue(30)
        self.wait(lambda: not results.is_busy)
        self.take("37-hits-of-all-queries")
        results.filters.text.setText("nothing is called so")
        self.wait()
        self.wait(lambda: not results.is_busy)
        self.take("38-hits-none")
        results.filters.reset()
        window.resize(800, 620)
        self.take("39-hits-narrow")
        window.resize(1280, 860)
        window.devices.devices = (window.devices.devices[0], *sample_gpus())
        window.devices.changed.emit()
        window.show_page(form)
        form.device.choose("all")
        form.scroll_area.verticalScrollBar().setValue(150)
        self.take("42-search-form-gpus")

    def machine(self) -> None:
        """Take devices, estimates next to Run, the workers dialog, and actual against predicted time, in two sizes."""
        from tests.gui.every_page import sample_gpus

        window = self.window
        sizes = (1024, 700), (1280, 800)
        window.menus.devices.trigger()
        self.wait(lambda: window.devices.is_known and not window.device_page.is_busy)
        for width, height in sizes:
            window.resize(width, height)
            self.take(f"130-devices-{width}")
        devices = window.devices.devices
        window.devices.devices = (devices[0], *sample_gpus())
        window.devices.changed.emit()
        self.wait(lambda: not window.device_page.is_busy)
        for width, height in sizes:
            window.resize(width, height)
            self.take(f"131-devices-gpus-{width}")
        window.devices.devices = devices
        window.devices.changed.emit()
        window.menus.new["identify"].trigger()
        form = window.form
        form.file_lists["spectra"].add([SAMPLES / "BSA1.mzML.gz"])
        form.file_lists["database"].add([SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"])
        form.set_project_folder(self.temporary / "estimated")
        for preset in ("low-resolution", "high-resolution"):
            form.presets.choose(preset)
            self.wait(lambda: form.run_button.isEnabled() and not form.estimate.is_busy and form.estimate.estimate)
            for width, height in sizes:
                window.resize(width, height)
                self.take(f"132-estimate-{preset}-{width}")
        form.device.workers.prompt()
        dialog = form.device.workers.dialog
        for method in ("local", "address"):
            dialog.buttons[method].setChecked(True)
            dialog.certificates.line.setText(str(self.temporary / "lab-certificates"))
            self.wait(lambda: not dialog.is_busy)
            self.take(f"133-workers-{method}", dialog)
        dialog.reject()
        form.device.workers.choose("local:2")
        self.wait(lambda: not form.estimate.is_busy)
        form.scroll_area.ensureWidgetVisible(form.device.workers)
        self.take("134-form-with-workers-1280")
        form.device.workers.choose("")
        form.presets.choose("low-resolution")
        self.run_to_results()
        window.project_pane.about_action.trigger()
        page = window.run_actions.page
        self.wait(lambda: window.pages.currentWidget() is page and not window.run_actions.is_busy)
        page.tabs.setCurrentIndex(1)
        for width, height in sizes:
            window.resize(width, height)
            self.take(f"135-prediction-{width}")

    def structure_search(self) -> None:
        """Take the structure search: its form, the alignment of a hit, and thresholds."""
        from tests.engine.views.structure_projects import project_with_structures

        window, files = self.window, self.temporary / "relatives of a fold files"
        project = project_with_structures(self.temporary / "relatives of a fold")
        window.menus.new["structures"].trigger()
        form = window.form
        form.file_lists["queries"].add([files / "query.cif"])
        form.file_lists["database"].add([files / "database"])
        self.wait(lambda: form.run_button.isEnabled() and form.file_lists["database"].structure_counts)
        self.take("50-structure-form")
        window.open_project(project.folder)
        results = window.searches["structures"].results
        self.wait_for(results)
        self.take("51-structures")
        results.alignment.zoom_in_button.click()
        results.filters.boxes["z_score"].setValue(3.0)
        results.hits.all_button.click()
        self.wait_for(results)
        self.take("52-structures-filtered")

    def structures_3d(self) -> None:
        """Take superposed structures: styles, colours, picked residues, many hits, small windows, and without OpenGL."""
        from PySide6.QtCore import Qt

        from proteoscope.gui.structure.image_export import PictureDialog
        from tests.engine.views.structure_projects import project_with_structures

        window = self.window
        folder = self.temporary / "folds in 3D"
        window.open_project(project_with_structures(folder).folder)
        results = window.searches["structures"].results
        self.wait_for(results)
        results.structures_action.setChecked(True)
        self.wait_for(results)
        panel = results.structures
        self.take("53-structures-3d")
        panel.pick_pair(30, 26)
        self.wait_for(results)
        self.take("54-structures-3d-picked")
        results.superpose_selected()
        self.wait_for(results)
        panel.hit_list.item(5).setCheckState(Qt.CheckState.Unchecked)
        self.take("55-structures-3d-many")
        panel.unpin_others()
        window.resize(1700, 1100)
        for i, scheme in enumerate(("secondary", "distance", "identity", "conservation", "rainbow")):
            panel.colour_box.setCurrentIndex(panel.colour_box.findData(scheme))
            panel.style_box.setCurrentIndex(i % 4)
            panel.tabs.setCurrentIndex(1)
            self.wait_for(results)
            self.take(f"56-structures-3d-{scheme}", panel)
        panel.style_box.setCurrentIndex(0)
        for background in ("white", "grey", "black"):
            panel.canvas.set_background(background)
            self.wait_for(results)
            self.take(f"57-structures-3d-{background}", panel)
        panel.canvas.set_background("theme")
        panel.extent_box.setCurrentIndex(2)
        self.wait_for(results)
        self.take("58-structures-3d-aligned", panel)
        for is_turntable in (False, True):
            dialog = PictureDialog(panel.canvas.size(), panel, is_turntable=is_turntable)
            dialog.show()
            self.take(f"59-structures-3d-{'turntable' if is_turntable else 'picture'}", dialog)
            dialog.close()
        window.resize(800, 620)
        self.wait_for(results)
        self.take("59-structures-3d-narrow")
        window.resize(1280, 860)
        os.environ["PROTEOSCOPE_NO_OPENGL"] = "1"
        results.structures_action.setChecked(False)
        results.structures_action.setChecked(True)
        self.wait_for(results)
        self.take("59-structures-3d-drawn")
        del os.environ["PROTEOSCOPE_NO_OPENGL"]
        results.structures_action.setChecked(False)

    def clustering(self) -> None:
        """Take clusters of the sample spectra: the form, the clusters, all spectra, and a zoomed spectrum."""
        window = self.window
        window.menus.new["cluster"].trigger()
        form = window.form
        self.take("60-cluster-form-empty")
        form.file_lists["spectra"].add([SAMPLES / "BSA1.mzML.gz"])
        form.presets.choose("low-resolution")
        form.set_project_folder(self.temporary / "BSA clusters")
        self.wait(form.run_button.isEnabled)
        self.take("61-cluster-form-ready")
        self.run_to_results()
        results = window.results
        results.members.view.choose(1)
        self.wait_for(results)
        self.take("62-clusters")
        results.mirror.plot.show_range(((400, 700), (-60, 60)))
        results.members.all_button.click()
        self.wait_for(results)
        self.take("63-clusters-all-spectra")
        window.resize(800, 620)
        self.take("64-clusters-narrow")
        window.resize(1280, 860)

    def explanation(self) -> None:
        """Take explained spectra with the map of their run, and the form that continues an identification."""
        from tests.engine.views.cluster_projects import project_with_explanation

        window = self.window
        project = project_with_explanation(self.temporary / "explained")
        window.open_project(project.folder)
        results = window.searches["explain"].results
        self.wait_for(results)
        results.explained.view.choose(2)
        self.wait_for(results)
        self.take("70-explanations")
        results.spectra.map.canvas.show_range(((5.0, 15.0), (500.0, 900.0)))
        results.spectra.map.boxes[0].click()
        self.take("71-map-zoomed")
        results.spectra.map.boxes[0].click()
        results.spectra.map.reset_range()
        window.resize(800, 620)
        self.take("72-explanations-narrow")
        window.resize(1280, 860)
        window.show_follow_up_search("explain", "identify-0001")
        self.wait(window.form.run_button.isEnabled)
        self.take("73-explain-form")
        window.form.file_lists["project"].give_project(SAMPLES)
        self.wait(window.form.file_lists["project"].problem)
        self.take("74-explain-form-wrong")

    def runs(self) -> None:
        """Take the sample run: all spectra, chromatogram, a match mirrored with its prediction, the run page, and advice."""
        from proteoscope.engine.command_line.main import main as run
        from proteoscope.gui.conversion_dialog import ConversionDialog

        window, project = self.window, self.temporary / "sample"
        run(["demo", "--out", str(project), "--quiet", "--device", "cpu"])
        window.open_project(project)
        results = window.searches["identify"].results
        self.wait_for(results)
        results.lists.setCurrentIndex(1)
        self.wait_for(results)
        self.take("100-all-spectra")
        results.lists.setCurrentIndex(0)
        results.tabs.setCurrentWidget(results.spectra.chromatogram)
        self.wait_for(results)
        self.take("101-chromatogram")
        results.tabs.setCurrentIndex(0)
        results.pane.below_actions["prediction"].trigger()
        self.wait_for(results)
        self.take("102-mirror-with-prediction")
        window.project_pane.about_action.trigger()
        self.wait(seconds=1)
        self.take("103-about-the-run")
        window.dialogs.convert_spectra()
        self.wait(seconds=1)
        self.take("104-conversion", window.findChild(ConversionDialog))
        window.findChild(ConversionDialog).close()
        window.menus.new["identify"].trigger()
        window.form.presets.choose("high-resolution")
        window.form.file_lists["spectra"].add([SAMPLES / "BSA1.mzML.gz"])
        self.wait(lambda: window.form.advice.isVisible())
        self.take("105-advice")

    def library(self) -> None:
        """Take the sample searched in a library of two other runs: matches, and one mirrored with its entry."""
        from proteoscope.engine.command_line.main import main as run

        window, project = self.window, self.temporary / "library"
        run(["demo", "library", "--out", str(project), "--quiet", "--device", "cpu"])
        window.resize(1280, 800)
        window.open_project(project)
        self.wait_for(window.searches["library"].results)
        self.take("100-library")
        window.resize(1024, 700)
        self.take("101-library-narrow")
        window.resize(1280, 860)

    def evidence(self) -> None:
        """Take sample peptides on the structure of a homologue: a protein, a peptide, and the fold by exposure."""
        from proteoscope.engine.command_line.main import main as run

        window, project = self.window, self.temporary / "evidence"
        run(["demo", "evidence", "--out", str(project), "--quiet", "--device", "cpu"])
        window.open_project(project)
        results = window.searches["evidence"].results
        self.wait_for(results)
        self.take("110-evidence")
        window.resize(1024, 700)
        self.take("111-evidence-narrow")
        window.resize(1280, 860)

    def quantities(self) -> None:
        """Take the form with its design, and quantities of synthetic runs: volcano, profile, samples, missing values, traces."""
        from tests.engine.views.quantity_projects import quantified_project

        window = self.window
        project = quantified_project(self.temporary / "quantities")
        window.resize(1280, 800)
        window.new_search("quantify")
        window.form.set_project_folder(project.folder)
        self.wait(lambda: bool(window.form.designs["design"].model.table.rows))
        window.form.scroll_area.ensureWidgetVisible(window.form.designs["design"])
        self.take("120-quantify-form")
        window.open_project(project.folder)
        results = window.searches["quantify"].results
        self.wait_for(results)
        self.take("121-volcano-and-profile")
        results.tables.setCurrentWidget(results.proteins)
        results.figures.setCurrentIndex(1)
        self.wait_for(results)
        self.take("122-proteins-and-samples")
        results.figures.setCurrentIndex(2)
        results.tables.setCurrentWidget(results.peptides)
        results.peptides.view.choose(0)
        self.wait_for(results)
        self.take("123-traces-and-missing")
        trace = results.traces.traces.traces[0]
        results.traces.bordersMoved.emit(0, trace.begin, trace.apex + 2.0)
        self.wait_for(results)
        self.take("124-border-set-by-hand")
        window.resize(1024, 700)
        self.take("125-quantities-narrow")
        window.resize(1280, 860)

    def experiment(self) -> None:
        """Take the runs of an experiment, also in groups, their quality, the heat map of proteins, and the dialog that adds runs."""
        from proteoscope.gui.experiments.add_dialog import AddRunsDialog
        from tests.engine.views.experiment_projects import PATTERN, project_with_experiment

        window = self.window
        names = [f"{condition}_{number}" for condition in ("control", "treated") for number in range(1, 13)]
        project, _ = project_with_experiment(self.temporary / "cohort", names, 21, n_spectra=200)
        for width, height in ((1280, 800), (1024, 700)):
            window.resize(width, height)
            window.open_project(project.folder)
            page = window.experiment_actions.page
            page.tabs.setCurrentIndex(0)
            self.wait(lambda page=page: not page.is_busy)
            page.runs.view.selectRow(1)
            self.take(f"130-runs-{width}")
            page.filters.group.setCurrentIndex(1)
            page.filters.filterChanged.emit()
            self.wait(lambda page=page: not page.is_busy)
            page.groups.view.choose(1)
            self.wait(lambda page=page: not page.is_busy)
            self.take(f"131-groups-{width}")
            page.filters.reset()
            for index, name in ((1, "132-quality"), (2, "133-proteins")):
                page.tabs.setCurrentIndex(index)
                self.wait(lambda page=page: not page.is_busy)
                if index == 1:
                    page.quality.panel.view.choose(4)
                self.take(f"{name}-{width}")
            window.show_search_form("identify")
            window.form.search_experiment(project.folder)
            self.take(f"134-form-{width}")
            window.show_experiment()
        page.add_button.click()
        dialog = window.findChild(AddRunsDialog)
        assert dialog is not None
        dialog.spectra.add([self.temporary / f"{name}.mgf" for name in names[:5]])
        dialog.pattern.setText(PATTERN)
        self.take("135-add-runs", dialog)
        dialog.tabs.setCurrentIndex(1)
        self.take("136-add-table", dialog)
        dialog.close()
        window.resize(1280, 860)

    def modified(self) -> None:
        """Take an open modification search: the form, zoomed and filtered results, and the form of the next search."""
        from tests.engine.views.modified_projects import QC_SHEW, project_with_modifications

        window, data = self.window, Path(os.environ.get("PROTEOSCOPE_TEST_DATA", Path.home() / ".cache" / "proteoscope-test-data"))
        if not (data / QC_SHEW).exists():
            print(f"no pictures of modified peptides: {data / QC_SHEW} is not there")
            return
        window.menus.new["modified"].trigger()
        self.take("76-modified-form-empty")
        window.open_project(project_with_modifications(self.temporary / "modified peptides", data).folder)
        results = window.searches["modified"].results
        self.wait_for(results)
        self.take("77-modified")
        results.modifications.view.choose(0)
        self.wait_for(results)
        results.histogram.show_range(((-20.0, 60.0),))
        self.take("77-modified-oxidation")
        results.counts_scale.setCurrentIndex(1)
        results.histogram.set_scale("logarithmic")
        results.histogram.show_range(((15.9, 16.1),))
        results.show_shifts(15.99, 16.0)
        results.figures.setCurrentIndex(1)
        self.wait_for(results)
        self.take("78-modified-bar")
        results.show_all("psms")
        results.figures.setCurrentIndex(0)
        results.filters.kind.setCurrentIndex(2)
        results.filters.filterChanged.emit()
        results.histogram.reset_range()
        self.wait_for(results)
        results.psms.view.choose(3)
        results.tables.setCurrentIndex(1)
        self.wait_for(results)
        self.take("78-modified-unnamed")
        results.filters.reset()
        results.tables.setCurrentIndex(0)
        window.resize(1920, 1200)
        results.modifications.view.choose(1)
        self.wait_for(results)
        self.take("79-modified-large")
        window.resize(1280, 800)
        self.take("79-modified-1280")
        window.resize(800, 620)
        self.take("79-modified-narrow")
        window.resize(1280, 860)
        results.modifications.view.selectAll()
        results.follow_ups["identify"].trigger()
        self.wait(window.form.run_button.isEnabled)
        self.take("79-modified-again")
        window.show_follow_up_search("modified", "modified-0001")
        self.take("79-modified-from-project")

    def comparison(self) -> None:
        """Take three compared runs: overlaps and counts, scores and a spectrum with two matches, and the page of one run."""
        from tests.engine.views.compared_projects import project_with_runs

        window = self.window
        project, _ = project_with_runs(self.temporary / "three runs", n_spectra=400)
        window.open_project(project.folder)
        self.wait_for(window.results)
        window.project_pane.runs.selectAll()
        window.project_pane.compare_action.trigger()
        view = window.comparisons.view
        self.wait_for(view)
        self.take("79-comparison")
        view.tabs.setCurrentIndex(1)
        view.differing_box.setChecked(True)
        self.wait_for(view)
        view.panel.view.choose(0)
        self.wait_for(view)
        self.take("79-comparison-two-answers")
        window.project_pane.select(project.runs()[-1].id)
        window.project_pane.about_action.trigger()
        self.wait(lambda: window.pages.currentWidget() is window.run_actions.page)
        self.take("79-run-page")

    def reads(self) -> None:
        """Take reads aligned with parts of a synthetic genome: the form, an alignment, a position of the depth, distributions."""
        import random

        from tests.engine.views.read_projects import project_with_reads, read_files

        window = self.window
        drawn = random.Random(3)
        genome = "".join(drawn.choice("ACGT") for _ in range(12_000))
        texts, patterns = read_files(self.temporary / "reads of a genome", genome, 60)
        window.menus.new["reads"].trigger()
        form = window.form
        self.take("80-reads-form-empty")
        form.file_lists["texts"].add([texts])
        form.file_lists["patterns"].add([patterns])
        form.parameters.set_values({"mode": "within"})
        self.wait(lambda: form.run_button.isEnabled() and form.file_lists["patterns"].counts and form.file_lists["texts"].counts)
        self.take("81-reads-form-ready")
        whole = {"mode": "within", "seed_length": 10, "match": 2}
        window.open_project(project_with_reads(self.temporary / "aligned reads", genome, n_reads=300, **whole).folder)
        results = window.searches["reads"].results
        self.wait_for(results)
        self.take("82-reads")
        results.coverage.show_range(((1500.0, 2300.0),))
        results.show_place(1840, 1850)
        self.wait_for(results)
        self.take("83-reads-place")
        results.show_all("alignments")
        results.tabs.setCurrentIndex(1)
        results.filters.choose_gaps(1)
        self.wait_for(results)
        self.take("84-reads-distributions")
        results.filters.reset()
        results.filters.rows.setCurrentIndex(results.filters.rows.count() - 1)
        results.filters.filterChanged.emit()
        results.tabs.setCurrentIndex(0)
        self.wait_for(results)
        self.take("85-reads-not-aligned")
        results.filters.reset()
        self.wait_for(results)
        window.resize(1920, 1200)
        self.take("86-reads-large")
        window.resize(800, 620)
        self.take("87-reads-narrow")
        window.resize(1280, 860)

    def help(self) -> None:
        """Take the tour, the help of a setting, shortcuts, a bug report, and how to cite."""
        from proteoscope.gui.help.text_dialogs import BugReportDialog, CitingDialog

        window = self.window
        window.show_page(window.start_page)
        window.assistance.start_tour()
        self.take("95-tour")
        assert window.assistance.tour is not None
        window.assistance.tour.go(5)
        self.take("95-tour-last")
        window.assistance.tour.leave()
        window.new_search("identify")
        window.form.parameters.fields["enzyme"].editor.setFocus()
        shown = window.assistance.show_here()
        for name, index in (("manual", 0), ("glossary", 1), ("shortcuts", 2)):
            shown.tabs.setCurrentIndex(index)
            self.take(f"96-help-{name}", shown)
        shown.close()
        window.assistance.report_bug()
        self.take("97-bug-report", window.findChild(BugReportDialog))
        window.assistance.show_citations()
        self.take("97-cite", window.findChild(CitingDialog))
        for dialog in (window.findChild(BugReportDialog), window.findChild(CitingDialog)):
            dialog.close()

    def wait_for(self, results: Any) -> None:
        """Wait until all results of a run are shown."""
        for _ in range(2):
            self.wait()
            self.wait(lambda: not results.is_busy)

    def run_to_results(self) -> None:
        """Run the search of the form, and wait until all results are shown."""
        window = self.window
        window.form.run()
        self.wait(lambda: window.queue.is_idle and window.pages.currentWidget() is window.results)
        self.wait(lambda: not window.results.is_busy)
        self.wait(seconds=0.5)
        self.wait(lambda: not window.results.is_busy)

    def proteins(self) -> tuple[Path, Path]:
        """Return the sample database, and twenty of its proteins as queries."""
        import gzip

        source = SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
        with gzip.open(source, "rt", encoding="utf-8") as file:
            records = file.read().split(">")[1:]
        path = self.temporary / "queries.fasta"
        path.write_text("".join(f">{record}" for record in records[5 : 5 + 20 * 9 : 9]), encoding="utf-8")
        return path, source


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.gui.screenshots", description="Takes pictures of the window's views.")
    parser.add_argument("folder", nargs="?", type=Path, help="where they are written to")
    parser.add_argument("--figures", action="store_true", help="the figures of the manual instead")
    parser.add_argument("--views", nargs="+", choices=VIEWS, default=list(VIEWS), help="which ones; jobs_and_results needs start_and_form")
    parser.add_argument("--pages", action="store_true", help="every page on sample data instead, in one theme and scale")
    parser.add_argument("--only", default="", help="with --pages: only those whose names contain this text")
    parser.add_argument("--sizes", nargs="+", default=["1280x800"], help="with --pages: of the window, in pixels")
    parser.add_argument("--look", choices=(*LOOKS, "contrast"), help="only this one, in this process, with --scale")
    parser.add_argument("--scale", choices=[str(scale) for scale in SCALES], default="1", help="of the screen, as QT_SCALE_FACTOR has it")
    given = parser.parse_args()
    if given.figures:
        from tests.gui.manual_figures import FIGURES, Figures

        given.folder = given.folder or FIGURES
        given.folder.mkdir(parents=True, exist_ok=True)
        Figures(given.folder).go([])
        sys.exit()
    given.folder = given.folder or REPOSITORY / "artefacts" / "screenshots"
    if given.look or given.pages:
        given.folder.mkdir(parents=True, exist_ok=True)  # Qt would save nothing without an error.
    if given.pages:
        take_pages(given.folder, given.look or "light", given.scale, given.sizes, given.only)
    elif given.look:
        Photographer(given.folder, given.look, given.scale).go(given.views)
    else:
        main(given.folder, given.views)

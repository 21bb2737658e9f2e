"""Page of an experiment of 1,000 runs, 10,000 proteins and 10 million PSMs: opening, filter, sort, quality and heat map.

    xvfb-run -a python -m benchmarks.experiment_window [--runs 1000] [--proteins 10000] [--psms 10000] [--project FOLDER]

The runs are synthetic tables, made once in FOLDER: peptides of 10,000 proteins, each in most runs, with a mass error and a retention curve
of each run. One JSON line per figure, wall and CPU seconds of this process until everything is drawn:

make
    the tables of all runs.
summaries, summaries of one new run
    the first summary of all runs, and the summary after one run was added to the others.
open
    opening the project in the window, until the runs are shown; `page` is the page alone, opened again.
filter, sort, group, refresh, select all
    a text, a column, the runs of a condition, reading the runs again, and selecting all.
project pane
    reading the runs again in the list on the left.
quality, proteins
    the pages of figures and of the heat map, from stored summaries.
memory
    maximum memory of the process in megabytes, after the summaries are stored.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from proteoscope.engine.execution.libraries import lighten_libraries
from proteoscope.engine.experiments.table import ExperimentRow, read_experiment, remove_runs, write_experiment
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs import Progress
from proteoscope.engine.matches.columns import PEPTIDES, PROTEINS, PSMS
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table, arrow_type
from proteoscope.engine.views.experiment_quality import experiment_quality, protein_counts
from proteoscope.engine.views.quantity_clusters import MAXIMUM_ROWS

_PEPTIDES_OF_PROTEIN = 5


def emit(**figures: object) -> None:
    """Print a figure as a JSON line immediately."""
    print(json.dumps(figures), flush=True)


@contextmanager
def timed(figure: str) -> Iterator[None]:
    """Print the wall and CPU seconds of a block."""
    wall, computed = time.perf_counter(), time.process_time()
    yield
    emit(figure=figure, seconds=round(time.perf_counter() - wall, 3), cpu_seconds=round(time.process_time() - computed, 3))


def filled(table: Table, n: int, columns: dict[str, object]) -> pa.Table:
    """Return a table with the given columns; others hold zeros, empty texts, or empty lists."""
    arrays: dict[str, object] = {}
    for name, column in table.by_name.items():
        if name in columns:
            arrays[name] = columns[name]
        elif not column.is_optional:
            kind = arrow_type(column.type_name)
            value = [] if pa.types.is_list(kind) else "" if pa.types.is_string(kind) else False if pa.types.is_boolean(kind) else 0
            arrays[name] = pa.repeat(pa.scalar(value, kind), n)
    optional = [name for name, column in table.by_name.items() if column.is_optional]
    return table.arrow(arrays, without=optional)


def make(folder: Path, n_runs: int, n_proteins: int, n_psms: int) -> None:
    """Make a project with an experiment of finished runs."""
    project, parameters = Project.create_or_open(folder), IdentificationParameters().model_dump(mode="json")
    random = np.random.default_rng(0)
    n_peptides = n_proteins * _PEPTIDES_OF_PROTEIN
    residues = np.array(list("ADEFGHILNPQSTVWY"))
    peptides = pa.array(["".join(row) + "K" for row in residues[random.integers(0, len(residues), (n_peptides, 11))].tolist()])
    accessions = pa.array([f"P{number:05d}" for number in range(n_proteins)])
    of_peptide = np.arange(n_peptides) // _PEPTIDES_OF_PROTEIN
    hours, abundance = random.uniform(0, 5400, n_peptides), random.lognormal(0, 1.5, n_peptides)
    rows = []
    for number in range(n_runs):
        name, condition = f"run_{number:04d}", "treated" if number % 2 else "control"
        changed = abundance * np.exp(random.normal(0, 0.4, n_peptides)) * np.where((of_peptide % 7 == 0) & (number % 2), 3.0, 1.0)
        chosen = np.sort(random.choice(n_peptides, n_psms, p=changed / changed.sum()))
        distinct, first, counts = np.unique(chosen, return_index=True, return_counts=True)
        proteins, n_of_protein = np.unique(of_peptide[chosen], return_counts=True)
        n, shift = len(chosen), 30 * np.sin(number / 50)
        q_values = random.uniform(0, 0.011, n)
        psms = {
            "retention_time": hours[chosen] + shift + random.normal(0, 8, n),
            "charge": random.choice([1, 2, 3, 4], n, p=[0.05, 0.6, 0.3, 0.05]).astype(np.int8),
            "mass_error_ppm": random.normal(np.cos(number / 30), 2, n),
            "missed_cleavages": (random.random(n) < 0.2).astype(np.int8),
            "q_value": q_values,
            "rank": np.ones(n, np.int8),
            "peptide": peptides.take(pa.array(chosen)),
            "sequence": peptides.take(pa.array(chosen)),
            "psm_id": np.arange(n),
        }
        groups = accessions.take(pa.array(proteins))
        with project.run("identify", parameters, name=name) as run:
            run.write_table("psms", filled(PSMS, n, psms))
            of_peptides = {
                "peptide": peptides.take(pa.array(distinct)),
                "sequence": peptides.take(pa.array(distinct)),
                "n_psms": counts.astype(np.int32),
                "q_value": q_values[first],
                "best_psm": first,
            }
            run.write_table("peptides", filled(PEPTIDES, len(distinct), of_peptides))
            of_groups = {"group": groups, "n_psms": n_of_protein.astype(np.int32), "q_value": np.zeros(len(proteins))}
            run.write_table("proteins", filled(PROTEINS, len(proteins), of_groups))
        rows.append(
            ExperimentRow(
                name, f"/data/{name}.mzML", name, condition, replicate=number // 2 + 1, sha256=hashlib.sha256(name.encode()).hexdigest()
            )
        )
    with project.writing("the experiment"):
        write_experiment(project, rows)


def summarize(folder: Path) -> None:
    """Print the times of the first summary of all runs, and of that after one run was added to the others."""
    project = Project.open(folder)
    rows = read_experiment(project)
    shutil.rmtree(folder / "experiment", ignore_errors=True)
    write_experiment(project, remove_runs(rows, [rows[-1].run]))
    with timed("summaries"):
        experiment_quality(project, Progress())
    write_experiment(project, rows)
    with timed("summaries of one new run"):
        experiment_quality(project, Progress())
    with timed("counts of proteins"):
        counts = protein_counts(project, MAXIMUM_ROWS, Progress())
    emit(figure="eligible proteins", proteins=counts.n_eligible, runs=len(counts.runs))
    emit(figure="memory of summaries", megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def show(folder: Path) -> None:
    """Print the times of the window, which has its own process, as for a user."""
    lighten_libraries()
    from PySide6.QtWidgets import QApplication

    from proteoscope.gui.settings import SettingsFile
    from proteoscope.gui.theme import Theme
    from proteoscope.gui.window import MainWindow

    application = QApplication(["proteoscope"])
    settings = SettingsFile(Path(os.environ["XDG_CONFIG_HOME"]) / "settings.json")
    settings.values.tour_seen = True
    window = MainWindow(settings, Theme(application))
    window.resize(1280, 800)
    window.show()

    def wait(is_done: Callable[[], bool]) -> None:
        while not is_done():
            application.processEvents()
            time.sleep(0.001)  # without the pause, this loop would add to the CPU time
        for _ in range(5):
            application.processEvents()

    for _ in range(20):
        application.processEvents()
    page = window.experiment_actions.page
    with timed("open"):
        window.open_project(folder)
        wait(lambda: not page.is_busy and page.runs.model.rowCount() > 0)
    with timed("page"):
        page.show_project(window.project_pane.project)
        wait(lambda: not page.is_busy and page.runs.model.rowCount() > 0)
    with timed("filter"):
        page.filters.text.setText("run_01")
        page.filters.text.returnPressed.emit()
        wait(lambda: not page.is_busy and page.runs.model.rowCount() < len(page.state.rows))
    page.filters.reset()
    wait(lambda: not page.is_busy and page.runs.model.rowCount() == len(page.state.rows))
    with timed("sort"):
        page.runs.model.show(order=[("condition", True), ("replicate", True)])
        wait(lambda: not page.is_busy)
    with timed("group"):
        page.filters.group.setCurrentIndex(1)
        page.filters.filterChanged.emit()
        wait(lambda: not page.is_busy and page.groups.model.rowCount() > 0)
    with timed("refresh"):
        page.refresh()
        wait(lambda: not page.is_busy)
    with timed("select all"):
        page.runs.view.selectAll()
        wait(lambda: len(page.selected_runs) == len(page.state.status))
    page.runs.view.clearSelection()
    with timed("project pane"):
        window.project_pane.refresh()
    with timed("quality"):
        page.tabs.setCurrentWidget(page.quality)
        wait(lambda: not page.is_busy and page.quality.panel.model.rowCount() > 0)
    with timed("proteins"):
        page.tabs.setCurrentWidget(page.proteins)
        wait(lambda: not page.is_busy and page.proteins.plot.drawing is not None)
    window.grab().save(str(folder.parent / "experiment_window.png"))
    # The largest resident size of `resource` includes that of the parent process.
    peak = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    emit(figure="memory of the window", megabytes=int(peak) // 1024)
    window.close()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--proteins", type=int, default=10_000)
    parser.add_argument("--psms", type=int, default=10_000, help="PSMs of each run")
    parser.add_argument("--project", type=Path, help="folder of the project; else a temporary one")
    parser.add_argument("--show", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--stored", action="store_true", help="use the stored summaries of the project")
    options = parser.parse_args()
    if options.show is not None:
        show(options.show)
        return
    with tempfile.TemporaryDirectory(prefix="proteoscope-experiment-") as name:
        os.environ["XDG_CONFIG_HOME"] = name
        folder = options.project or Path(name) / "project"
        if not folder.exists():
            with timed("make"):
                make(folder, options.runs, options.proteins, options.psms)
        if not options.stored:
            summarize(folder)
        # NumPy reads its number of threads when it is loaded; see `lighten_libraries`.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.experiment_window", "--show", str(folder)]
        subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()

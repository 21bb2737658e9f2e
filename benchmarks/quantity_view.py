"""Longest stalls of the quantification view with thousands of proteins in a dozen samples.

    xvfb-run -a python -m benchmarks.quantity_view [--proteins 5000] [--samples 12] [--where-above 40]

The quantities are synthetic, with five peptides per protein and a tenth of the values missing; the engine calculates changes and tables
from them. One JSON line for each step: longest interval between two timer events of the window in milliseconds, as CPU time of the window's
thread (`own_ms`) and as wall time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.window import Journey

_PER_PROTEIN = 5


def made_project(folder: Path, n_proteins: int, n_samples: int) -> None:
    """Create a project with a run of quantities of `n_proteins` proteins in `n_samples` samples of two conditions."""
    from proteoscope.engine.project import Project
    from proteoscope.engine.quantification.amounts import Grouping, RawQuantities
    from proteoscope.engine.quantification.changes import protein_changes
    from proteoscope.engine.quantification.design import Design, DesignRow, Sample
    from proteoscope.engine.quantification.identified import Forms, Identified, Matches, Proteins, SourceFile
    from proteoscope.engine.quantification.models import comparison_model
    from proteoscope.engine.quantification.normalised import Quantities, normalised_levels
    from proteoscope.engine.quantification.parameters import QuantificationParameters
    from proteoscope.engine.quantification.results import chunks_of, quantity_tables
    from proteoscope.engine.quantification.tables import TABLES

    rng = np.random.default_rng(1)
    n = n_proteins * _PER_PROTEIN
    half = n_samples // 2
    samples = tuple(
        Sample(f"{'control' if k < half else 'treated'}_{k % half + 1}", "control" if k < half else "treated", k % half + 1)
        for k in range(n_samples)
    )
    design = Design(samples, tuple(DesignRow(k, k) for k in range(n_samples)))
    protein = np.repeat(np.arange(n_proteins), _PER_PROTEIN)
    change = np.where(rng.random(n_proteins) < 0.1, rng.normal(0, 2, n_proteins), 0.0)[protein][:, None]
    log2 = rng.normal(22, 3, (n, 1)) + rng.normal(0, 0.4, (n, n_samples)) + change * (np.arange(n_samples) >= half)
    log2[rng.random(log2.shape) < 0.1] = np.nan
    peptides = RawQuantities.from_values(2.0**log2)
    sequences = [_sequence(k) for k in range(n)]
    nothing, none = np.zeros(0), np.zeros(0, np.int64)
    proteins = Proteins(
        [f"sp|P{k:05d}|MADE{k}" for k in range(n_proteins)],
        [[]] * n_proteins,
        [f"Made protein {k}" for k in range(n_proteins)],
        np.full(n_proteins, 300),
    )
    forms = Forms(sequences, np.arange(n), np.full(n, 1000.0), np.zeros((n, 7)))
    files = tuple(SourceFile(f"/made/{sample.name}.mzML", "") for sample in samples)
    matches = Matches(none, none, none, nothing, none, [])
    identified = Identified(files, forms, matches, sequences, proteins, protein, np.zeros(n), np.ones(n, np.bool_), ())
    parameters = QuantificationParameters()
    rows, model = np.arange(n), comparison_model(design, ("control", "treated"))
    normalised = normalised_levels(peptides, Grouping(rows, rows, protein, n_proteins), model, parameters)
    counts = (~np.isnan(log2)).astype(np.int64)
    of_group = np.add.reduceat(counts, np.arange(0, n, _PER_PROTEIN))
    quantities = Quantities(design, identified, normalised, np.full(of_group.shape, 1e-4), (counts, counts, of_group))
    tables = quantity_tables(quantities, protein_changes(quantities.proteins, model, parameters), {})
    with Project.create_or_open(folder).run("quantify", parameters.model_dump(mode="json"), device="cpu") as run:
        for rows in TABLES:
            with run.table_writer(rows.name, rows.schema()) as writer:
                for part in chunks_of(tables[rows.name]):
                    writer.write(part)


def _sequence(number: int) -> str:
    """Return a distinct sequence for each number."""
    alphabet = "ADEFGHILNPQSTVWY"
    return "".join(alphabet[number >> shift & 15] for shift in range(0, 24, 4)) + "GGK"


def measure(folder: Path, where_above: float) -> None:
    """Print the longest stall of each step; the view is created before, while idle, as in the window."""
    from proteoscope.gui.preloading import Preparation

    journey = Journey(folder, where_above)
    window = journey.window
    pages = window.searches["quantify"]
    Preparation([pages], lambda: True, window).begin()
    journey.wait(1.0, lambda: pages.made_results is not None)
    with journey.step("results, first time"):
        journey.open("quantify")
    view: Any = window.results
    with journey.step("rows chosen"):
        for row in (5, 50, 500):
            view.changes.view.choose(row)
            journey.wait(0.1, lambda: not view.is_busy)
    with journey.step("dots chosen"):
        for row in (7, 70, 700):
            view.volcano.targetChosen.emit(row)
            journey.wait(0.1, lambda: not view.is_busy)
    for tabs in (view.tables, view.figures, view.details):
        for index in range(tabs.count()):
            with journey.step(f"tab {tabs.tabText(index)}"):
                tabs.setCurrentIndex(index)
                journey.wait(0.2, lambda: not view.is_busy)
    view.tables.setCurrentWidget(view.proteins)
    with journey.step("proteins scrolled"):
        for row in range(0, view.proteins.model.rowCount(), 100):
            view.proteins.view.scrollTo(view.proteins.model.index(row, 0))
            journey.wait(0.02, lambda: not view.is_busy)
    with journey.step("text typed"):
        for text in ("p", "p0", "p00"):
            view.filters.text.setText(text)
            journey.wait(0.3, lambda: not view.is_busy)
    with journey.step("threshold changed"):
        view.filters.fold_change.setValue(1.0)
        journey.wait(0.4, lambda: not view.is_busy)
    for index in range(view.figures.count()):
        view.figures.setCurrentIndex(index)
        with journey.step(f"wider with {view.figures.tabText(index)}"):
            window.resize(1300 + 20 * index, 820)
    with journey.step("results, again"):
        journey.open("quantify")
    journey.close()


def main() -> None:
    """Run the steps in a window, and print the longest stall of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proteins", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--where-above", type=float, default=1e6, help="ms")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-quantities-") as name:
        os.environ["XDG_CONFIG_HOME"] = name
        made_project(Path(name) / "quantify", options.proteins, options.samples)
        measure(Path(name), options.where_above / 1000)


if __name__ == "__main__":
    main()

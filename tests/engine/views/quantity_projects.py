"""A quantified project of synthetic runs of two conditions, with changing proteins and missing peptides."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, write_project

FILES = ("made_control_1", "made_control_2", "made_heat_1", "made_heat_2")
PROTEINS, PER_PROTEIN = 12, 3
DESIGN = "file\tsample\tcondition\treplicate\n" + "".join(f"{name}\t{name[5:]}\t{name[5:-2]}\t{name[-1]}\n" for name in FILES)


def ratio_of(protein: int) -> float:
    """Return the ratio of heat to control."""
    return 8.0 if protein < 2 else 1 / 8 if protein < 4 else 1.0


def identified_project(folder: Path) -> Path:
    """Return a project with the identification of the four runs."""
    rng = np.random.default_rng(3)
    peptides = random_peptides(PROTEINS * PER_PROTEIN, 21)
    proteins = {f"P{i:02d}": peptides[i * PER_PROTEIN : (i + 1) * PER_PROTEIN] for i in range(PROTEINS)}
    runs = {name: SyntheticRun(seconds=240.0, noise_peaks=60, seed=k) for k, name in enumerate(FILES)}
    for i, own in enumerate(proteins.values()):
        for sequence in own:
            amount, apex = 4e6 * rng.lognormal(0, 0.5), rng.uniform(40, 200)
            for name, run in runs.items():
                factor = ratio_of(i) ** 0.5 if "heat" in name else ratio_of(i) ** -0.5
                planted = Planted(sequence, 2, amount * factor * rng.lognormal(0, 0.05), apex)
                run.planted.append(planted)
                if rng.random() < 0.85:
                    run.identified.append(planted)
    return write_project(folder, runs, proteins)


def quantified_project(folder: Path, design: str = DESIGN, **parameters: object) -> Project:
    """Return the project with quantities by a design, label-free by default."""
    project = identified_project(folder)
    (folder / "design.tsv").write_text(design)
    settings = {"change_fdr": 0.05, **parameters}
    run_search("quantify", {"project": [project]}, options={"design": folder / "design.tsv"}, device="cpu", threads=2, **settings)
    return Project.open(project)

"""A project of synthetic runs of two conditions, in which sites and their proteins change by known amounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, bare, random_peptides, write_project

PHOSPHO = "[79.966331]"
FILES = ("control_1", "control_2", "heat_1", "heat_2")
DESIGN = "file\tsample\tcondition\treplicate\n" + "".join(f"{name}\t{name}\t{name[:-2]}\t{name[-1]}\n" for name in FILES)
N_PROTEINS = 14


def log2_protein(number: int) -> float:
    """Return the planted log2 change of a protein."""
    return (0.0, 2.0, -2.0, 1.0, -1.0, 0.0, 0.0)[number % 7]


def log2_site(number: int) -> float:
    """Return the planted log2 change of the site of a protein relative to the protein."""
    return (0.0, 0.0, 1.5, -3.0, 2.0, 3.0, -2.0)[number % 7]


def site_of(psm: dict, number: int) -> dict:
    """Return a row of the table of PSM sites: at the second possible residue, whereas the search has the first; unsure in protein 13."""
    possible = [i for i, residue in enumerate(psm["sequence"], 1) if residue in "ST"]
    probability = 0.6 if number == 13 else 0.96
    return {
        "modification": "Phospho",
        "residue": psm["sequence"][possible[1] - 1],
        "position": possible[1],
        "site_probability": probability,
        "site_score": 1.0,
        "localisation_q_value": 0.01,
        "has_alternative": True,
        "mixed_with": None,
        "peptide": psm["peptide"],
        "charge": psm["charge"],
        "proteins": psm["proteins"],
        "protein_positions": [start + possible[1] - 1 for start in psm["protein_starts"]],
        "possible_positions": possible,
        "probabilities": [1 - probability, probability, *[0.0] * (len(possible) - 2)],
    }


def localised_project(folder: Path) -> tuple[Path, dict[str, tuple[str, int]]]:
    """Return a project with an identification that localised modifications, and the sequence and site of each protein."""
    rng = np.random.default_rng(17)
    peptides = random_peptides(N_PROTEINS * 4, 31)
    proteins, sites = {}, {}
    runs = {name: SyntheticRun(seconds=400.0, noise_peaks=60, seed=k) for k, name in enumerate(FILES)}
    for number in range(N_PROTEINS):
        sequences = peptides[4 * number : 4 * number + 4]
        modified = f"AES{PHOSPHO}DLT{sequences[0]}"
        proteins[f"P{number:02d}"] = [*sequences[1:], modified]
        sites[f"P{number:02d}"] = bare(modified), len("".join(sequences[1:])) + 6
        for sequence in proteins[f"P{number:02d}"]:
            amount, apex = 4e6 * rng.lognormal(0, 0.3), rng.uniform(40, 360)
            change = log2_protein(number) + (log2_site(number) if sequence == modified else 0.0)
            for name, run in runs.items():
                half = change / 2 if name.startswith("heat") else -change / 2
                run.planted.append(Planted(sequence, 2, amount * 2**half * rng.lognormal(0, 0.03), apex))
                run.identified.append(run.planted[-1])
    path = write_project(folder, runs, proteins)
    (folder / "design.tsv").write_text(DESIGN)
    project = Project.open(path)
    last = project.runs()[-1].id
    psms = pq.read_table(project.table("psms", last)).to_pylist()
    rows = [{"psm": i, **site_of(psm, int(psm["proteins"][0][1:]))} for i, psm in enumerate(psms) if "[" in psm["peptide"]]
    for is_localised in (False, True):
        with project.run("identify", {"psm_fdr": 0.01}, project.inputs(last)) as run:
            for name in ("psms", "peptides", "proteins", "spectra"):
                run.write_table(name, pq.read_table(project.table(name, last)))
            if is_localised:
                run.write_table("psm_sites", PSM_SITES.arrow({name: [row[name] for row in rows] for name in rows[0]}))
    return path, sites


def quantify_sites(path: Path, design: Path | None = None, **parameters: object) -> Any:
    """Quantify the project, and return the summary."""
    options = {"design": design or path.parent / "design.tsv"}
    return run_search("quantify", {"project": [path]}, options=options, device="cpu", threads=2, change_fdr=0.05, **parameters)

"""Synthetic runs in which half of the spectra are of ions from no protein of the database, with scores of a search and its decoys.

Each such spectrum is matched to another sequence with the composition of the ion, with equal probability a target or a decoy, and with the
score of a wrong match. The ion is in all runs, so that a wrong identification is transferred to other runs as easily as a right one. Error
rates of matches, peptides and proteins are those that `proteoscope import` estimates from these scores and decoys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of
from tests.searching import import_results

__all__ = ["wrong_transfers"]

_RUNS, _PEPTIDES, _ABSENT = 8, 600, 600
_OF_PROTEIN, _SEEN = 10, 5
"""Peptides of a protein, and the number of them that a protein of the sample shows."""
_RIGHT, _SPREAD, _OF_SPECTRUM = 3.7, 1.0, 0.6
"""Mean and standard deviation of the scores of right matches, where wrong ones have 0 and 1, and what spectra of an ion differ by."""
_IDENTIFIED = 0.85
"""Part of the runs in which an ion has a spectrum."""


@dataclass(frozen=True)
class _Sample:
    """Ions that are in all runs.

    Attributes
    ----------
    planted : the ions. score : mean score of the spectra of each right ion, NaN for the others. psms : for each run, the peptide that the
    search finds for each ion, and its protein.
    """

    planted: list[Planted]
    score: list[float]
    psms: list[list[tuple[str, str]]]


def wrong_transfers(seed: int, rules: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, dict]]:
    """For each rule that selects donors (name: parameters), yield the number of transferred ions, and how many have a wrong peptide."""
    rng = np.random.default_rng(seed)
    every = random_peptides(_PEPTIDES + _ABSENT, seed + 5000, (10, 18))
    present, absent = every[:_PEPTIDES], every[_PEPTIDES:]
    others = [[shuffled(rng, peptide) for peptide in absent] for _ in range(_RUNS)]
    targets = [peptide for run in others for peptide in run if rng.random() < 0.5]
    rest = iter(targets)
    groups = [[*present[i : i + _SEEN], *islice(rest, _OF_PROTEIN - _SEEN)] for i in range(0, _PEPTIDES, _SEEN)]
    groups += iter(lambda: list(islice(rest, _OF_PROTEIN)), [])
    protein_of = {peptide: f"P{i}" for i, group in enumerate(groups) for peptide in group}
    planted = [Planted(peptide, 2, float(rng.lognormal(np.log(3e6), 0.6)), float(rng.uniform(60, 1740))) for peptide in every]
    score = [*(_RIGHT + _SPREAD * rng.normal(size=_PEPTIDES)).tolist(), *[float("nan")] * _ABSENT]
    psms = [[(peptide, protein_of.get(peptide, f"rev_P{rng.integers(len(groups))}")) for peptide in (*present, *run)] for run in others]
    with tempfile.TemporaryDirectory() as name:
        project = _project(Path(name), rng, _Sample(planted, score, psms), groups, seed)
        for rule, settings in rules.items():
            yield rule, _transferred(project, set(present), settings)


def shuffled(rng: np.random.Generator, sequence: str) -> str:
    """Return another order of the residues, the last in its place."""
    return "".join(rng.permutation(list(sequence[:-1]))) + sequence[-1]


def _project(folder: Path, rng: np.random.Generator, sample: _Sample, groups: list[list[str]], seed: int) -> Path:
    """Write the runs and their matches, and import these."""
    (folder / "proteins.fasta").write_text("".join(f">P{i}\n{''.join(group)}\n" for i, group in enumerate(groups)))
    rows = ["PSMId\tscore\tq-value\tposterior_error_prob\tpeptide\tproteinIds"]
    files = [folder / f"run{number}.mzML" for number in range(_RUNS)]
    for number, path in enumerate(files):
        planted = [
            replace(
                planted_peptide,
                amount=planted_peptide.amount * float(rng.lognormal(0, 0.2)),
                apex=planted_peptide.apex + 3 * number + float(rng.normal(0, 1)),
            )
            for planted_peptide in sample.planted
        ]
        seen = np.flatnonzero(rng.random(len(planted)) < _IDENTIFIED).tolist()
        number_of = {planted[i]: i for i in seen}
        run = SyntheticRun(seconds=1800, seed=seed * 10 + number, planted=planted, identified=[planted[i] for i in seen], noise_peaks=50)
        for scan, source in run.write(path):
            mean, (peptide, protein) = sample.score[number_of[source]], sample.psms[number][number_of[source]]
            score = rng.normal() if np.isnan(mean) else mean + _OF_SPECTRUM * rng.normal()
            rows.append(f"{path.stem}_{scan}_2_1\t{score:.5f}\t\t\t-.{peptide}.-\t{protein}")
    (folder / "psms.tsv").write_text("\n".join(rows) + "\n")
    import_results([folder / "psms.tsv"], files, folder / "project", [folder / "proteins.fasta"])
    return folder / "project"


def _transferred(project: Path, present: set[str], settings: Mapping[str, float]) -> dict:
    run_search("quantify", {"project": [project]}, device="cpu", threads=2, match_between_runs=True, **settings)
    rows = table_of(project, "ion_traces")
    n_files: dict[str, int] = {}
    for row in rows:
        if row["source"] == "identified":
            n_files[row["peptide"]] = n_files.get(row["peptide"], 0) + 1
    moved = [row["peptide"] for row in rows if row["source"] == "transferred"]
    single = [peptide for peptide in moved if n_files[peptide] == 1]
    return {
        "reported": len(moved),
        "false": sum(peptide not in present for peptide in moved),
        "single_donor": len(single),
        "false_single_donor": sum(peptide not in present for peptide in single),
    }

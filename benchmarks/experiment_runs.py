"""Synthetic experiment of many runs with known truth: identifications, absent ions, and fold changes between two conditions.

    python -m benchmarks.experiment_runs --data FOLDER --out FOLDER [--runs 1000] [--spectra 1000] [--seed 0] [--only 17 18]
        [--small]

Runs hold tryptic peptides of proteins of a shared proteome (yeast) in two conditions; `MIXED` runs, a third condition, also hold those of
another (E. coli), so that these are absent from all other runs. Intensities of fragments are those of the model that ships, as in
`made_spectra`. Half of the spectra of a run are of random sequences drawn for this run only: a false match of one run does not
recur in another. All ions, those of random sequences too, have isotope patterns in the MS1 spectra. Each run has its own mass error,
retention time curve and amount, each ion its own scatter, and each ion of a present protein is absent from a tenth of the runs.

`proteins.fasta` (both proteomes; with `--small` planted proteins only), `runs.tsv` (file, sample, condition, fraction, replicate) and
`proteins.tsv` (truth: proteome and log2 fold change of each planted protein) describe the experiment, `runs/NAME.mzML` and
`truth/NAME.parquet` a run. A truth table lists all ions in a run and absent ions of the experiment: peptide, charge, protein ('' for random
sequences), proteome, apex time (s), area (0 if absent), scan (0 without MS2 spectrum). A run depends on the seed, its number and the
numbers of runs and spectra, not on other runs.
One JSON line at the end.
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.figures import emit, existing
from benchmarks.made_spectra import fragment_ions, noisy_peaks, residue_masses
from proteoscope import resources
from proteoscope.engine.chemistry.masses import WATER_MASS
from proteoscope.engine.matches.fragment_intensities import load_network
from tests.engine.quantification.synthetic_runs import SPACING, Planted, averaged_pattern, mzml_text, spectrum_text

__all__ = ["MIXED", "Experiment", "read_experiment"]

MIXED = 5
"""Runs that hold both proteomes."""
_PROTEOMES = {"yeast": "yeast_2021_04_reviewed_UPS.fasta", "ecoli": "ecoli_13spiked_2021_04.fasta"}
_PLANTED = {"yeast": 300, "ecoli": 100}
"""Proteins of each proteome that have ions."""
_PEPTIDES_OF_PROTEIN = (2, 8)
_LENGTHS = (8, 20)
_FOLD_CHANGES = (0.0, 0.0, 0.0, 1.0, -1.0, 2.0, -2.0)
"""log2 of treated to control; each protein draws one."""
_ABSENT, _UNANSWERABLE = 0.1, 0.5
"""Share of the runs without an ion of a present protein, and of the spectra of random sequences."""
_SECONDS, _CYCLE, _DEVIATIONS = 900.0, 3.0, (4.0, 8.0)
_POOREST = 0.05
"""Share of the fragments that the poorest spectra show; stray peaks are as many in all."""
_RUN_PPM, _PPM, _PRECURSOR_PPM = 1.0, 1.5, 2.0
_SHIFT, _WAVE, _TIME_SCATTER = 8.0, 5.0, 1.0
"""Standard deviations of a run's constant shift (s), amplitude of its curve (s), and of the time of each ion (s)."""
_RUN_AMOUNT, _ION_AMOUNT, _PEAK_AMOUNT = 0.2, 0.2, 0.05
"""Standard deviations of ln amount: of a run, of an ion in a run and of a peak."""
_FAINTEST, _NOISE_PEAKS, _ISOTOPES = 1000.0, 60, 4


class _Ion(NamedTuple):
    """Ion of the experiment: peptide with charge, its protein and proteome, mean area and apex time (s)."""

    sequence: str
    charge: int
    protein: str
    proteome: str
    area: float
    apex: float


class Run(NamedTuple):
    """Row of the table of runs."""

    file: str
    sample: str
    condition: str
    fraction: int
    replicate: int


@dataclass(frozen=True)
class _MeasuredIon(Planted):
    """Ion in a run, with the mass error of its peaks."""

    error_ppm: float = 0.0

    @property
    def mz(self) -> float:
        """Return the measured m/z."""
        return super().mz * (1 + self.error_ppm * 1e-6)


@dataclass(frozen=True)
class Experiment:
    """Runs that can be written one by one.

    Attributes
    ----------
    proteins : dict of dict
        Sequences by protein by proteome; the first proteome is in all runs.
    n_planted : dict of int
        Number of proteins with ions by proteome.
    n_runs, n_spectra, seed : int
        Number of runs, mean number of MS2 spectra of a run, and seed.
    is_small : bool
        True if the database holds planted proteins only.
    """

    proteins: dict[str, dict[str, str]]
    n_planted: dict[str, int]
    n_runs: int
    n_spectra: int
    seed: int
    is_small: bool = False

    @cached_property
    def ions(self) -> list[_Ion]:
        """Ions of the planted proteins, each peptide with one charge."""
        rng = np.random.default_rng((self.seed, 0))
        first, last = 60.0, _SECONDS - 60.0
        count = Counter(peptide.replace("I", "L") for some in self.proteins.values() for text in some.values() for peptide in _digest(text))
        ions = []
        for proteome, sequences in self.proteins.items():
            names = sorted(sequences)
            planted = 0
            for name in (names[i] for i in rng.permutation(len(names)).tolist()):
                peptides = [peptide for peptide in _digest(sequences[name]) if count[peptide.replace("I", "L")] == 1]
                if len(peptides) < _PEPTIDES_OF_PROTEIN[0]:
                    continue
                chosen = rng.permutation(len(peptides))[: rng.integers(*_PEPTIDES_OF_PROTEIN)]
                amount = rng.normal(np.log(2e6), 1.0)
                for k in chosen.tolist():
                    charge = 3 if len(peptides[k]) > 14 and rng.random() < 0.4 else 2
                    area = float(np.exp(amount + rng.normal(0, 0.7)))
                    ions.append(_Ion(peptides[k], charge, name, proteome, area, float(rng.uniform(first, last))))
                planted += 1
                if planted == self.n_planted[proteome]:
                    break
        return ions

    @cached_property
    def fold_changes(self) -> dict[str, float]:
        """log2 fold change of treated to control by protein; 0 of proteins that are in mixed runs only."""
        rng = np.random.default_rng((self.seed, 1))
        proteome_of = {ion.protein: ion.proteome for ion in self.ions}
        first = next(iter(self.proteins))
        return {name: float(rng.choice(_FOLD_CHANGES)) if proteome == first else 0.0 for name, proteome in proteome_of.items()}

    @cached_property
    def runs(self) -> list[Run]:
        """Table of runs; mixed runs are spread evenly, and the others alternate between the conditions."""
        n_mixed = min(MIXED, self.n_runs // 2)
        mixed = {(2 * k + 1) * self.n_runs // (2 * n_mixed) for k in range(n_mixed)}
        count, runs = Counter[str](), list[Run]()
        for number in range(self.n_runs):
            condition = "mixed" if number in mixed else ("control", "treated")[(count["control"] + count["treated"]) % 2]
            count[condition] += 1
            runs.append(Run(f"runs/run_{number:05d}.mzML", f"sample_{number:05d}", condition, 1, count[condition]))
        return runs

    def write(self, folder: Path) -> None:
        """Write the description of the experiment: database, table of runs and truth of proteins."""
        folder.mkdir(parents=True, exist_ok=True)
        planted = self.fold_changes.keys()
        entries = (
            f">{name}\n{text}\n" for some in self.proteins.values() for name, text in some.items() if not self.is_small or name in planted
        )
        (folder / "proteins.fasta").write_text("".join(entries))
        _write_rows(folder / "runs.tsv", Run._fields, self.runs)
        proteome_of = {ion.protein: ion.proteome for ion in self.ions}
        _write_rows(
            folder / "proteins.tsv",
            ("protein", "proteome", "log2_fold_change"),
            ((name, proteome_of[name], change) for name, change in self.fold_changes.items()),
        )

    def write_run(self, number: int, folder: Path) -> int:
        """Write a run and its truth, and return its number of MS2 spectra."""
        rng, run = np.random.default_rng((self.seed, 2, number)), self.runs[number]
        ions, is_there = self._ions_of_run(run, rng)
        amounts = [ion.area for ion in ions]
        n_spectra = round(self.n_spectra * rng.uniform(0.7, 1.3))
        n_random = round(n_spectra * _UNANSWERABLE)
        unanswerable = self._random_ions(n_random, amounts, rng)
        present = [ion for ion, is_in in zip(ions, is_there.tolist(), strict=True) if is_in]
        weight = np.sqrt([ion.area for ion in present])
        n_known = min(n_spectra - n_random, len(present))
        with_spectrum = np.zeros(len(present), np.bool_)
        with_spectrum[rng.choice(len(present), n_known, replace=False, p=weight / weight.sum())] = True
        measured = self._measured([*present, *unanswerable], rng)
        chosen = [*np.flatnonzero(with_spectrum).tolist(), *range(len(present), len(measured))]
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        (folder / "truth").mkdir(exist_ok=True)
        scans = _write_mzml(folder / run.file, measured, chosen, rng)
        absent = [ion for ion, is_in in zip(ions, is_there.tolist(), strict=True) if not is_in]
        rows = [*present, *unanswerable, *absent]
        zeros = [0.0] * len(absent)
        table = pa.table(
            {
                "peptide": [ion.sequence for ion in rows],
                "charge": pa.array([ion.charge for ion in rows], pa.int8()),
                "protein": [ion.protein for ion in rows],
                "proteome": [ion.proteome for ion in rows],
                "apex": [*(ion.apex for ion in measured), *zeros],
                "area": [*(ion.amount for ion in measured), *zeros],
                "scan": pa.array([*(scans.get(i, 0) for i in range(len(measured))), *([0] * len(absent))], pa.int32()),
            }
        )
        pq.write_table(table, folder / "truth" / f"{Path(run.file).stem}.parquet")
        return len(chosen)

    def _ions_of_run(self, run: Run, rng: np.random.Generator) -> tuple[list[_Ion], NDArray[np.bool_]]:
        """Return all ions with their amounts in the condition, and True for those in the run."""
        first = next(iter(self.proteins))
        half = {"treated": 0.5, "control": -0.5, "mixed": 0.0}[run.condition]
        ions = [ion._replace(area=ion.area * 2.0 ** (half * self.fold_changes[ion.protein])) for ion in self.ions]
        is_of_run = np.array([ion.proteome == first or run.condition == "mixed" for ion in ions])
        return ions, is_of_run & (rng.random(len(ions)) >= _ABSENT)

    def _random_ions(self, n: int, areas: Sequence[float], rng: np.random.Generator) -> list[_Ion]:
        """Return ions of random sequences with the residues of the known peptides."""
        residues = np.array(list("".join(ion.sequence[:-1] for ion in self.ions)))
        planted = {ion.sequence.replace("I", "L") for ion in self.ions}
        result: list[_Ion] = []
        while len(result) < n:
            length = int(rng.integers(_LENGTHS[0], _LENGTHS[1] + 1))
            sequence = "".join(rng.choice(residues, length - 1)) + str(rng.choice(["K", "R"]))
            if sequence.replace("I", "L") not in planted:
                charge = 3 if length > 14 and rng.random() < 0.4 else 2
                result.append(_Ion(sequence, charge, "", "", float(rng.choice(areas)), float(rng.uniform(60.0, _SECONDS - 60.0))))
        return result

    def _measured(self, ions: Sequence[_Ion], rng: np.random.Generator) -> list[_MeasuredIon]:
        """Return the ions as this run shows them: with its mass error, times and amounts."""
        error, amount = rng.normal(0, _RUN_PPM), rng.normal(0, _RUN_AMOUNT)
        shift, wave, phase = rng.normal(0, _SHIFT), rng.normal(0, _WAVE), rng.uniform(0, 2 * np.pi)
        scatter = rng.normal(size=(len(ions), 2))
        result = []
        for ion, (time_scatter, amount_scatter) in zip(ions, scatter.tolist(), strict=True):
            apex = ion.apex + shift + wave * np.sin(ion.apex / 150 + phase) + _TIME_SCATTER * time_scatter
            area = ion.area * np.exp(amount + _ION_AMOUNT * amount_scatter)
            # The width is a property of the ion: the same in all runs.
            width = _DEVIATIONS[0] + (_DEVIATIONS[1] - _DEVIATIONS[0]) * (ion.apex % 7.0) / 7.0
            result.append(_MeasuredIon(ion.sequence, ion.charge, float(area), float(apex), width, float(error)))
        return result


def _write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in (header, *rows)))


def _digest(text: str) -> list[str]:
    """Return distinct fully tryptic peptides without cysteine, whose fixed modification changes the isotope pattern."""
    peptides = dict.fromkeys(re.split(r"(?<=[KR])(?!P)", text))
    usable = re.compile(f"[ADEFGHIKLMNPQRSTVWY]{{{_LENGTHS[0] - 1},{_LENGTHS[1] - 1}}}[KR]")
    return [peptide for peptide in peptides if usable.fullmatch(peptide)]


_pattern = lru_cache(20_000)(averaged_pattern)
_network = lru_cache(1)(lambda: load_network(resources.path("fragmentation", "intensities.npz")))


@lru_cache(20_000)
def _fragments(sequence: str, charge: int) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return m/z and height of a peptide's fragments, and its mass."""
    masses = residue_masses(sequence, np.zeros(len(sequence)), is_labelled=False)
    return *fragment_ions(_network(), sequence, charge, masses), float(masses.sum()) + WATER_MASS


def _ms1_peaks(
    times: NDArray[np.float64], ions: Sequence[_MeasuredIon], rng: np.random.Generator
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return m/z and intensity of the peaks of each MS1 spectrum."""
    every = [np.column_stack((rng.integers(0, len(times), _NOISE_PEAKS * len(times)), *_noise(_NOISE_PEAKS * len(times), rng)))]
    for ion in ions:
        near = np.flatnonzero(np.abs(times - ion.apex) < 4 * ion.deviation)
        shape = np.exp(-0.5 * ((times[near] - ion.apex) / ion.deviation) ** 2) / (ion.deviation * np.sqrt(2 * np.pi))
        pattern = _pattern(ion.sequence)[:_ISOTOPES]
        size = len(near), len(pattern)
        heights = ion.amount * shape[:, None] * pattern * rng.lognormal(0, _PEAK_AMOUNT, size)
        mz = (ion.mz + np.arange(len(pattern)) * SPACING / ion.charge) * (1 + rng.normal(0, _PPM, size) * 1e-6)
        rows = np.column_stack((np.repeat(near, len(pattern)), mz.ravel(), heights.ravel()))
        every.append(rows[rows[:, 2] > _FAINTEST])
    peaks = np.concatenate(every)
    peaks = peaks[np.lexsort((peaks[:, 1], peaks[:, 0]))]
    bounds = np.searchsorted(peaks[:, 0], np.arange(len(times) + 1)).tolist()
    return [(peaks[start:stop, 1], peaks[start:stop, 2]) for start, stop in pairwise(bounds)]


def _noise(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return rng.uniform(350, 1200, n), rng.lognormal(np.log(1000), 0.7, n)


def _write_mzml(path: Path, ions: Sequence[_MeasuredIon], chosen: Sequence[int], rng: np.random.Generator) -> dict[int, int]:
    """Write a run and return the scan number of each ion of `chosen`, which has an MS2 spectrum within its peak."""
    times = np.arange(0.0, _SECONDS, _CYCLE)
    peaks = _ms1_peaks(times, ions, rng)
    after: dict[int, list[int]] = {}
    for i in chosen:
        picked = ions[i].apex + ions[i].deviation * rng.uniform(-1, 1)
        after.setdefault(int(np.abs(times - picked).argmin()), []).append(i)
    texts, scans = list[str](), dict[int, int]()
    for number, moment in enumerate(times.tolist()):
        texts.append(spectrum_text(len(texts), 1, moment, *peaks[number], is_compact=True))
        for place, i in enumerate(after.get(number, ())):
            mz, height, mass = _fragments(ions[i].sequence, ions[i].charge)
            is_shown = rng.random(len(mz)) < rng.uniform(_POOREST, 1.0)
            seen = noisy_peaks(mz[is_shown], height[is_shown], mass, rng)
            jitter = ions[i].error_ppm + rng.normal(0, _PRECURSOR_PPM)
            ion = _MeasuredIon(ions[i].sequence, ions[i].charge, 0.0, 0.0, error_ppm=jitter)
            at = moment + _CYCLE * (place + 1) / (len(after[number]) + 1)
            texts.append(spectrum_text(len(texts), 2, at, *seen, ion, is_compact=True))
            scans[i] = len(texts)
    path.write_text(mzml_text(texts), encoding="utf-8")
    return scans


def read_experiment(data: Path, n_runs: int, n_spectra: int, seed: int, *, is_small: bool = False) -> Experiment:
    """Return an experiment with the shared proteomes, `data` being the folder of the shared data."""
    proteins: dict[str, dict[str, str]] = {}
    names: set[str] = set()
    for proteome, file in _PROTEOMES.items():
        path = existing(data / "proteomes" / file)
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as source:
            entries = [entry.split("\n", 1) for entry in source.read().split(">")[1:]]
        sequences = {head.split()[0]: "".join(text.split()) for head, text in entries}
        proteins[proteome] = {name: text for name, text in sequences.items() if name not in names}
        names |= set(sequences)
    return Experiment(proteins, _PLANTED, n_runs, n_spectra, seed, is_small)


def main() -> None:
    """Write the runs, and print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--spectra", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    begin = time.perf_counter()
    experiment = read_experiment(given.data, given.runs, given.spectra, given.seed, is_small=given.small)
    experiment.write(given.out)
    numbers = range(given.runs) if given.only is None else given.only
    n_spectra = sum(experiment.write_run(number, given.out) for number in numbers)
    n_bytes = sum((given.out / experiment.runs[number].file).stat().st_size for number in numbers)
    emit({}, figure="experiment", runs=len(numbers), spectra=n_spectra, bytes=n_bytes, seconds=round(time.perf_counter() - begin, 2))


if __name__ == "__main__":
    main()

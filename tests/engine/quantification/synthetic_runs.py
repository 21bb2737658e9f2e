"""Synthetic mzML runs with planted peptides, and projects in which these are identified."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyteomics import mass

from proteoscope.engine.project import Project
from tests.searching import import_results

PROTON, SPACING = 1.00727646688, 1.0033548
RESIDUES = "ADEFGHILNPQSTVWY"


@dataclass(frozen=True)
class Planted:
    """A peptide in a run: sequence, charge, amount (area of all isotopes), apex time and standard deviation (s)."""

    sequence: str
    charge: int
    amount: float
    apex: float
    deviation: float = 6.0

    @property
    def mz(self) -> float:
        added = sum(map(float, re.findall(r"\[(.*?)\]", self.sequence)))
        return float((mass.fast_mass(bare(self.sequence)) + added) / self.charge + PROTON)


def bare(sequence: str) -> str:
    """Return a sequence without modifications, which are masses in brackets."""
    return re.sub(r"\[.*?\]", "", sequence)


@dataclass
class SyntheticRun:
    """A synthetic run with planted peptides and noise.

    It has an MS1 spectrum every `cycle` seconds. The MS2 spectrum of each identified peptide follows the MS1 spectrum nearest to its apex.
    """

    seconds: float = 600.0
    cycle: float = 2.0
    ppm: float = 1.0
    noise_peaks: int = 200
    seed: int = 0
    planted: list[Planted] = field(default_factory=list)
    identified: list[Planted] = field(default_factory=list)
    fragments: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)  # of fragment spectra; the others have no noise array
    suffix: str = ".mzML"

    def ms1_spectra(self) -> tuple[NDArray[np.float64], list[tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        """Return the times of the MS1 spectra and the peaks of each."""
        rng = np.random.default_rng(self.seed)
        times = np.arange(0.0, self.seconds, self.cycle)
        peaks: list[list[tuple[float, float]]] = [[] for _ in times]
        for peptide in self.planted:
            pattern, mz = averaged_pattern(peptide.sequence), peptide.mz
            near = np.flatnonzero(np.abs(times - peptide.apex) < 4 * peptide.deviation)
            shape = np.exp(-0.5 * ((times[near] - peptide.apex) / peptide.deviation) ** 2) / (peptide.deviation * np.sqrt(2 * np.pi))
            for at, height in zip(near.tolist(), (peptide.amount * shape).tolist(), strict=True):
                for k, part in enumerate(pattern):
                    value = height * part * rng.lognormal(0, 0.03)
                    if value > 50:
                        centre = mz + k * SPACING / peptide.charge
                        peaks[at].append((centre * (1 + rng.normal(0, self.ppm) * 1e-6), value))
        peaks_of_spectra = []
        for some in peaks:
            noise = np.stack([rng.uniform(400, 1200, self.noise_peaks), rng.lognormal(5, 0.7, self.noise_peaks)], axis=1)
            every = np.concatenate([np.array(some).reshape(-1, 2), noise])
            every = every[np.argsort(every[:, 0])]
            peaks_of_spectra.append((every[:, 0], every[:, 1]))
        return times, peaks_of_spectra

    def write(self, path: Path) -> list[tuple[int, Planted]]:
        """Write the run as mzML and return the scan numbers of the spectra of identified peptides."""
        times, ms1_spectra = self.ms1_spectra()
        peptides_after: dict[int, list[Planted]] = {}
        for peptide in self.identified:
            peptides_after.setdefault(int(np.argmin(np.abs(times - peptide.apex))), []).append(peptide)
        texts, scans = [], []
        for number, (time, (mz, intensity)) in enumerate(zip(times.tolist(), ms1_spectra, strict=True)):
            texts.append(spectrum_text(len(texts), 1, time, mz, intensity))
            for peptide in peptides_after.get(number, ()):
                scans.append((len(texts) + 1, peptide))
                fragments = self.fragments.get(peptide.sequence, ((150.1, 250.2, 350.3), (5.0, 7.0, 9.0)))
                peaks = np.array(fragments)
                more = {"MS:1000517": peaks[1] / self.noise[peptide.sequence]} if peptide.sequence in self.noise else {}
                texts.append(spectrum_text(len(texts), 2, time + 0.1, *peaks, peptide, more))
        path.write_text(mzml_text(texts), encoding="utf-8")
        return scans


@cache
def averaged_pattern(sequence: str, n: int = 5) -> NDArray[np.float64]:
    """Return the isotope pattern by convolution, atom by atom, of pyteomics' abundances; carbamidomethyl is not supported."""
    pattern = np.array([1.0])
    for element, count in mass.Composition(sequence=bare(sequence)).items():
        isotopes = {number: share for number, (_, share) in mass.nist_mass[element].items() if number}
        lightest = min(number for number, share in isotopes.items() if share > 0)
        width = max(number for number, share in isotopes.items() if share > 0) - lightest + 1
        atom = np.zeros(width)
        for number, share in isotopes.items():
            if share > 0:
                atom[number - lightest] = share
        for _ in range(count):
            pattern = np.convolve(pattern, atom)[: 2 * n]
    pattern.setflags(write=False)
    return pattern[:n]


def spectrum_text(
    index: int,
    level: int,
    time: float,
    mz: NDArray,
    intensity: NDArray,
    precursor: Planted | None = None,
    more: Mapping[str, NDArray] | None = None,
    *,
    is_compact: bool = False,
) -> str:
    """Return a spectrum as mzML; `more` holds further arrays by their terms. Compact arrays have 32 bits per value and are compressed."""
    kind = '"MS:1000521" name="32-bit float"' if is_compact else '"MS:1000523" name="64-bit float"'
    compression = '"MS:1000574" name="zlib compression"' if is_compact else '"MS:1000576" name="no compression"'
    arrays = "".join(
        f'<binaryDataArray encodedLength="{len(text)}"><cvParam accession={kind}/>'
        f'<cvParam accession={compression}/><cvParam accession="{term}" name="array"/>'
        f"<binary>{text}</binary></binaryDataArray>"
        for term, values in (("MS:1000514", mz), ("MS:1000515", intensity), *(more or {}).items())
        for text in (_encoded(values, is_compact=is_compact),)
    )
    ion = (
        ""
        if precursor is None
        else (
            '<precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>'
            f'<cvParam accession="MS:1000744" name="selected ion m/z" value="{precursor.mz:.6f}"/>'
            f'<cvParam accession="MS:1000041" name="charge state" value="{precursor.charge}"/>'
            "</selectedIon></selectedIonList></precursor></precursorList>"
        )
    )
    return (
        f'<spectrum index="{index}" id="scan={index + 1}" defaultArrayLength="{len(mz)}">'
        f'<cvParam accession="MS:1000511" name="ms level" value="{level}"/><cvParam accession="MS:1000127" name="centroid spectrum"/>'
        f'<scanList count="1"><scan><cvParam accession="MS:1000016" name="scan start time" value="{time}" unitAccession="UO:0000010"/>'
        f'</scan></scanList>{ion}<binaryDataArrayList count="2">{arrays}</binaryDataArrayList></spectrum>'
    )


def _encoded(values: NDArray, *, is_compact: bool) -> str:
    data = np.asarray(values, "<f4" if is_compact else "<f8").tobytes()
    return base64.b64encode(zlib.compress(data) if is_compact else data).decode()


def mzml_text(spectra: Sequence[str]) -> str:
    """Return the text of an mzML file."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0">'
        f'<run id="made"><spectrumList count="{len(spectra)}">{"".join(spectra)}</spectrumList></run></mzML>'
    )


@dataclass
class VoltageRun(SyntheticRun):
    """A run whose MS1 spectra cycle through `n_voltages` voltages; each voltage transmits other peptides."""

    n_voltages: int = 1

    def write(self, path: Path) -> list[tuple[int, Planted]]:
        """Write the run as mzML and return the scan numbers of the spectra of identified peptides."""
        voltage_of = {peptide: number % self.n_voltages for number, peptide in enumerate(self.planted)}
        parts = []
        for number in range(self.n_voltages):
            planted = [peptide for peptide in self.planted if voltage_of[peptide] == number]
            times, peaks = SyntheticRun(**self._shared(planted, number)).ms1_spectra()
            parts.append(peaks)
        peptides_after: dict[int, list[Planted]] = {}
        for peptide in self.identified:
            at = np.flatnonzero(np.arange(len(times)) % self.n_voltages == voltage_of[peptide])
            peptides_after.setdefault(int(at[np.argmin(np.abs(times[at] - peptide.apex))]), []).append(peptide)
        texts, scans = [], []
        for number, time in enumerate(times.tolist()):
            voltage = number % self.n_voltages
            text = spectrum_text(len(texts), 1, time, *parts[voltage][number])
            term = f'<cvParam accession="MS:1001581" name="FAIMS compensation voltage" value="{-35 - 10 * voltage}"/>'
            texts.append(text.replace("<scanList", term + "<scanList", 1) if self.n_voltages > 1 else text)
            for peptide in peptides_after.get(number, ()):
                scans.append((len(texts) + 1, peptide))
                texts.append(spectrum_text(len(texts), 2, time + 0.1, np.array([150.1, 250.2]), np.array([5.0, 7.0]), peptide))
        path.write_text(mzml_text(texts), encoding="utf-8")
        return scans

    def _shared(self, planted: list[Planted], seed: int) -> dict:
        return {"seconds": self.seconds, "cycle": self.cycle, "noise_peaks": self.noise_peaks, "planted": planted, "seed": self.seed + seed}


def voltage_run(seed: int, n_voltages: int, n: int = 60) -> tuple[VoltageRun, list[str]]:
    """Return a run with n peptides, all identified once, and their sequences."""
    rng, peptides = np.random.default_rng(seed), random_peptides(n, seed + 4000)
    planted = [Planted(peptide, 2, float(4e6 * rng.lognormal(0, 0.5)), float(rng.uniform(60, 540)), 8.0) for peptide in peptides]
    return VoltageRun(cycle=1.0, seed=seed, planted=planted, identified=planted, n_voltages=n_voltages), peptides


def random_peptides(n: int, seed: int, lengths: tuple[int, int] = (8, 18)) -> list[str]:
    """Return distinct random tryptic peptides."""
    rng = np.random.default_rng(seed)
    peptides = dict.fromkeys(
        "".join(rng.choice(list(RESIDUES), int(rng.integers(*lengths)))) + str(rng.choice(["K", "R"])) for _ in range(n + n // 10 + 5)
    )
    return list(peptides)[:n]


def write_project(
    folder: Path, runs: Mapping[str, SyntheticRun], proteins: Mapping[str, Sequence[str]], q_values: Mapping[str, float] | None = None
) -> Path:
    """Write a project with identified runs: runs by file stem, peptides by protein, and optional `q_values` of peptides."""
    folder.mkdir(parents=True, exist_ok=True)
    residues = {name: "".join(dict.fromkeys(map(bare, peptides))) for name, peptides in proteins.items()}
    (folder / "proteins.fasta").write_text("".join(f">{name} made\n{text}\n" for name, text in residues.items()))
    holders: dict[str, list[str]] = {}
    for name, peptides in proteins.items():
        for peptide in peptides:
            holders.setdefault(peptide, []).append(name)
    rows = ["PSMId\tscore\tq-value\tposterior_error_prob\tpeptide\tproteinIds"]
    for stem, run in runs.items():
        for scan, peptide in run.write(folder / f"{stem}{run.suffix}"):
            score = 100 - int(hashlib.sha256(peptide.sequence.encode()).hexdigest()[:4], 16) / 65536
            rows.append(
                "\t".join(
                    [
                        f"{stem}_{scan}_{peptide.charge}_1",
                        f"{score:.4f}",
                        str((q_values or {}).get(peptide.sequence, 0.001)),
                        "0.001",
                        f"-.{peptide.sequence}.-",
                        *holders[peptide.sequence],
                    ]
                )
            )
    (folder / "found.target.psms.tsv").write_text("\n".join(rows) + "\n")
    files = [folder / f"{stem}{run.suffix}" for stem, run in runs.items()]
    import_results([folder / "found.target.psms.tsv"], files, folder / "project", [folder / "proteins.fasta"])
    return folder / "project"


def table_of(project: Path, name: str) -> list[dict]:
    """Return the rows of a table of the last run that has it."""
    import pyarrow.parquet as pq

    return pq.read_table(Project.open(project).table(name)).to_pylist()

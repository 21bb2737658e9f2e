"""Synthetic spectra of known peptides, for tests with labels and replicates for which there is no public run.

Intensities are predicted by the shipped model (`proteoscope.engine.matches.fragment_intensities`); masses are those of the peptide with or
without a label (TMT). The model does not consider labels: a labelled peptide has the intensities of the unlabelled one. A search of these
spectra therefore tests the estimation of error rates, not how many peptides of a labelled sample are found. Each spectrum occurs several
times with its own noise. In addition to spectra of peptides in the database, there are as many spectra of sequences that are in no protein;
all matches of these are false.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.entrapment_spectra import DROPPED, INTENSITY_NOISE
from proteoscope import resources
from proteoscope.engine.chemistry.masses import PROTON_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.matches.fragment_intensities import load_network
from proteoscope.kernels.cpu.fragment_intensities import IONS, predict_bonds

__all__ = [
    "LABEL",
    "KnownPeptides",
    "MadeSpectra",
    "fragment_ions",
    "host_proteins",
    "known_peptides",
    "made_spectrum",
    "make_spectra",
    "noisy_peaks",
    "residue_masses",
]

LABEL = "TMT6plex"
_FIXED = {"C": 57.021464}
_REPORTERS = (126.12773, 127.12476, 128.13443, 129.13147, 130.14114, 131.13818)
_STANDARD = set("ACDEFGHIKLMNPQRSTVWY")
_LEAST, _MOST = 8, 25  # residues
_SHORTEST_ABSENT = 5  # plus one residue: samples hold peptides that are too short to be searched
_PEPTIDES_OF_PROTEIN = 12
_FRAGMENT_PPM, _PRECURSOR_PPM, _SYSTEMATIC_PPM = 4.0, 2.0, 1.0  # standard deviations, and the systematic error of precursors
_FAINTEST = 0.003  # of the highest peak
_STRAY = 40  # noise peaks in each spectrum
_SHIFTED = (
    *(("Oxidation", "M"), ("Deamidated", "N"), ("Phospho", "STY"), ("Methyl", "DE"), ("Dehydrated", "DST"), ("Nitro", "Y")),
    ("Formyl", "ST"),
)
_SHARE_SHIFTED, _SHARE_OF_ENDS = 0.2, 0.1


@dataclass(frozen=True)
class KnownPeptides:
    """Sequences of tryptic peptides in public spectra, and one charge of each."""

    sequences: list[str]
    charges: list[int]


@dataclass(frozen=True)
class MadeSpectra:
    """Written spectra: the sequence by spectrum number, empty if no protein holds it."""

    path: Path
    sequence: dict[int, str]


def known_peptides(data: Path) -> KnownPeptides:
    """Return the known peptides of the shared spectra."""
    folder, charges = data / "spectra" / "known_ids", dict[str, int]()
    for line in (folder / "massivekb_selected_500.peprec").read_text().splitlines()[1:]:
        _, _, sequence, charge = line.split()
        charges.setdefault(sequence, int(charge))
    for block in (folder / "pride_cluster_1001_small.mgf").read_text().split("BEGIN IONS")[1:]:
        sequence, charge = re.search(r"sequence=\[([A-Z]+)", block), re.search(r"CHARGE=(\d)", block)
        if sequence and charge:
            charges.setdefault(sequence[1], int(charge[1]))
    for block in (folder / "proteometools_171_kuester_test.mgf").read_text().split("BEGIN IONS")[1:]:
        sequence, charge = re.search(r"SEQ=([A-Z]+)", block), re.search(r"CHARGE=(\d)", block)
        if sequence and charge:
            charges.setdefault(sequence[1], int(charge[1]))
    usable = [
        peptide
        for peptide in sorted(charges)
        if _LEAST <= len(peptide) <= _MOST and set(peptide) <= _STANDARD and re.fullmatch(r"[^P].*[KR]", peptide)
    ]
    return KnownPeptides(usable, [min(max(charges[peptide], 2), 3) for peptide in usable])


def host_proteins(proteins: Mapping[str, str], peptides: Sequence[str]) -> dict[str, str]:
    """Return the proteins, and others composed of the peptides that none of them holds."""
    text = "|".join(proteins.values()).replace("I", "L")
    missing = [peptide for peptide in dict.fromkeys(peptides) if peptide.replace("I", "L") not in text]
    rows = range(0, len(missing), _PEPTIDES_OF_PROTEIN)
    return dict(proteins) | {f"KNOWN_{i}": "".join(missing[i : i + _PEPTIDES_OF_PROTEIN]) for i in rows}


def make_spectra(
    peptides: KnownPeptides, n_present: int, n_absent: int, replicates: tuple[int, int], seed: int, out: Path, *, is_labelled: bool
) -> MadeSpectra:
    """Write spectra of known peptides and of random sequences.

    Random sequences have the residue frequencies of the known peptides, at least six residues, and at most as many as these. A fifth of all
    peptides carry a modification that no search includes, and a tenth have lost residues at an end.

    Parameters
    ----------
    replicates : fewest and most spectra of each peptide. is_labelled : lysines and N-termini carry the label.
    """
    generator = np.random.default_rng((seed, int(is_labelled)))
    network = load_network(resources.path("fragmentation", "intensities.npz"))
    chosen = generator.permutation(len(peptides.sequences))[: n_present + n_absent].tolist()
    sequence: dict[int, str] = {}
    # If shuffled, they would have exactly the mass of a peptide in the database and of its partner, but of no decoy.
    residues = list("".join(peptides.sequences))
    with out.open("w") as file:
        for place, row in enumerate(chosen):
            peptide, charge, is_present = peptides.sequences[row], peptides.charges[row], place < n_present
            if not is_present:
                peptide = "".join(generator.choice(residues, int(generator.integers(_SHORTEST_ABSENT, len(peptide))))) + peptide[-1]
            measured, shift = _varied(peptide, generator)
            mz, height = _ions(network, measured, charge, shift, is_labelled=is_labelled)
            for _ in range(int(generator.integers(replicates[0], replicates[1] + 1))):
                number = len(sequence)
                sequence[number] = peptide if is_present else ""
                mass = float(residue_masses(measured, shift, is_labelled=is_labelled).sum()) + WATER_MASS
                file.write(_noisy(number, mz, height, mass, charge, generator))
    return MadeSpectra(out, sequence)


def made_spectrum(
    network: object, number: int, sequence: str, charge: int, shift: NDArray[np.float64], generator: np.random.Generator
) -> str:
    """Return a spectrum of a peptide in MGF; its residues carry `shift` (residues,) dalton. `network` predicts intensities."""
    mz, height = _ions(network, sequence, charge, shift, is_labelled=False)
    mass = float(residue_masses(sequence, shift, is_labelled=False).sum()) + WATER_MASS
    return _noisy(number, mz, height, mass, charge, generator)


def _varied(sequence: str, generator: np.random.Generator) -> tuple[str, NDArray[np.float64]]:
    """Return the measured peptide, sometimes truncated at an end, and the additional mass of each residue."""
    draw = generator.random()
    if draw < _SHARE_OF_ENDS and len(sequence) > _LEAST + 1:
        lost = int(generator.integers(1, len(sequence) - _LEAST + 1))
        sequence = sequence[lost:] if generator.random() < 0.5 else sequence[:-lost]
        return sequence, np.zeros(len(sequence))
    shift = np.zeros(len(sequence))
    possible = [(name, k) for name, residues in _SHIFTED for k, residue in enumerate(sequence) if residue in residues]
    if draw > 1.0 - _SHARE_SHIFTED and possible:
        name, k = possible[generator.integers(len(possible))]
        shift[k] = unimod().by_name(name).mass
    return sequence, shift


def residue_masses(sequence: str, shift: NDArray[np.float64], *, is_labelled: bool) -> NDArray[np.float64]:
    """Return the masses of the residues of a peptide with carbamidomethyl cysteines, (residues,) float64 dalton.

    Parameters
    ----------
    shift : (residues,) dalton that modifications add. is_labelled : lysines and the N-terminus carry the label.
    """
    masses = np.array([RESIDUE_MASS[ord(residue) - 65] + _FIXED.get(residue, 0.0) for residue in sequence]) + shift
    if is_labelled:
        label = unimod().by_name(LABEL).mass
        masses[[k for k, residue in enumerate(sequence) if residue == "K"]] += label
        masses[0] += label
    return masses


def _ions(
    network: object, sequence: str, charge: int, shift: NDArray[np.float64], *, is_labelled: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return m/z and height of a peptide's ions and of the reporter ions of its label, the highest 1."""
    mz, height = fragment_ions(network, sequence, charge, residue_masses(sequence, shift, is_labelled=is_labelled))
    if is_labelled:
        mz, height = np.concatenate((mz, _REPORTERS)), np.concatenate((height, np.ones(len(_REPORTERS))))
    return mz, height


def fragment_ions(
    network: object, sequence: str, charge: int, masses: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return m/z and predicted height of the b and y ions of a peptide, the highest 1, without the faintest.

    Parameters
    ----------
    network : predicts intensities. masses : (residues,) float64 dalton, with modifications, which the network ignores.
    """
    n = len(sequence) - 1
    predicted = np.empty((n, IONS), np.float32)
    residues = np.frombuffer(sequence.encode(), np.uint8).copy()  # writable, as the kernel is compiled ahead for
    predict_bonds(network, residues, np.array([0, n + 1]), np.array([charge]), np.array([0]), np.array([0, n]), 0, 1, predicted)
    prefix = np.cumsum(masses)[:-1]
    suffix = masses.sum() - prefix + WATER_MASS
    mz = np.column_stack((prefix, prefix / 2, suffix, suffix / 2)) + PROTON_MASS
    height = np.exp2(predicted.astype(np.float64))
    if charge < 3:
        height[:, [1, 3]] = 0.0
    mz, height = mz.ravel(), height.ravel() / height.max()
    seen = height > _FAINTEST
    return mz[seen], height[seen]


def _noisy(
    number: int, mz: NDArray[np.float64], height: NDArray[np.float64], mass: float, charge: int, generator: np.random.Generator
) -> str:
    """Return one spectrum in MGF."""
    all_mz, heights = noisy_peaks(mz, height, mass, generator)
    precursor = mass * (1.0 + (_SYSTEMATIC_PPM + generator.normal(0.0, _PRECURSOR_PPM)) * 1e-6) / charge + PROTON_MASS
    lines = ["BEGIN IONS", f"TITLE={number}", f"PEPMASS={precursor:.8f}", f"CHARGE={charge}+"]
    lines += [f"{m:.6f} {value:.6g}" for m, value in zip(all_mz.tolist(), heights.tolist(), strict=True)]
    return "\n".join([*lines, "END IONS", "", ""])


def noisy_peaks(
    mz: NDArray[np.float64], height: NDArray[np.float64], mass: float, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the measured peaks of a peptide of a mass (dalton): some are missing, noise is added, and all have mass errors."""
    is_retained = generator.random(len(mz)) >= DROPPED
    stray = generator.uniform(110.0, max(mass, 200.0), _STRAY)
    all_mz = np.concatenate((mz[is_retained], stray))
    all_mz = all_mz * (1.0 + generator.normal(0.0, _FRAGMENT_PPM, len(all_mz)) * 1e-6)
    heights = np.concatenate((height[is_retained], generator.lognormal(np.log(0.02), 1.0, _STRAY)))
    heights = heights * np.exp(generator.normal(0.0, INTENSITY_NOISE, len(heights)))
    order = np.argsort(all_mz)
    return all_mz[order], 1e5 * heights[order]

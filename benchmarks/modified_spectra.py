"""Spectra with known modifications: identified modifications, and mass shifts added to real spectra."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["PLANTED", "Known", "Planted", "accepted", "known_modifications", "plant", "read_psms", "recovered"]

Planted = tuple[tuple[str, str], ...]

PLANTED: Planted = (
    *(("Phospho", "STY"), ("Acetyl", "K"), ("Methyl", "K"), ("TMT6plex", "K"), ("GG", "K"), ("Dimethyl", "KR"), ("Oxidation", "W")),
    *(("Carbamyl", "K"), ("Nitro", "Y"), ("HexNAc", "ST"), ("Deamidated", "NQ"), ("Dehydrated", "DST"), ("Malonyl", "K")),
)
"""Planted modifications, and the residues that may carry them. A residue carries one modification: TMT on a lysine with a free N-terminus
is a single label, where a real peptide would have two."""

_FIXED = {"C": 57.021464}
_ISOTOPES, _CHARGES = 3, 2
_LOST_BY_PRECURSOR = (0.0, 17.026549, 18.010565)  # dalton: nothing, ammonia, water


@dataclass(frozen=True)
class Known:
    """A known modification.

    The peptide without it, its name, mass (dalton) and residue (0 the N-terminus, 1 to L), the isotope error of the match, and the residue
    of a second isomer in the same spectrum (0 without one).
    """

    sequence: str
    name: str
    mass: float
    site: int
    isotope_error: int = 0
    second_site: int = 0


def read_psms(project: Path) -> list[dict[str, str]]:
    """Return the PSMs of rank 1 of the newest run of a project."""
    with (project / "exports" / "psms.tsv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["rank"] == "1"]


def accepted(rows: list[dict[str, str]], level: float = 0.01) -> list[dict[str, str]]:
    """Return targets at a false discovery rate."""
    return [row for row in rows if row["is_decoy"] == "false" and row["q_value"] and float(row["q_value"]) <= level]


def known_modifications(rows: list[dict[str, str]]) -> dict[int, Known]:
    """Return accepted peptides with one modification in addition to the fixed ones, by spectrum."""
    answers = {}
    for row in accepted(rows):
        names, sites = row["modification_names"].split(";"), row["modification_positions"].split(";")
        masses = row["modification_masses"].split(";")
        variable = [i for i, name in enumerate(names) if name and name != "Carbamidomethyl"]
        if len(variable) == 1:
            i = variable[0]
            answers[int(row["spectrum"])] = Known(row["sequence"], names[i], float(masses[i]), int(sites[i]), int(row["isotope_error"]))
    return answers


def recovered(answers: Mapping[int, Known], rows: list[dict[str, str]], tolerance: float = 0.03) -> dict[str, int]:
    """Count the known modifications that were recovered.

    `matched` at any q-value, `found` at 1 %, and of these `named` correctly, `tied` among the names that are as likely as the first,
    `listed` among all possible names, and `sited` correctly. A site next to a terminus counts as correct for the terminus too, since the
    same ions support both.
    """
    counts = {"known": len(answers), "matched": 0, "found": 0, "named": 0, "tied": 0, "listed": 0, "sited": 0}
    passed = {int(row["spectrum"]) for row in accepted(rows)}
    for row in rows:
        known_psm = answers.get(int(row["spectrum"]))
        is_same = (
            known_psm is not None
            and row["is_decoy"] == "false"
            and row["sequence"].replace("I", "L") == known_psm.sequence.replace("I", "L")
        )
        if known_psm is None or not is_same or abs(float(row["mass_shift"]) - known_psm.mass) > tolerance:
            continue
        counts["matched"] += 1
        if int(row["spectrum"]) in passed:
            counts["found"] += 1
            counts["named"] += row["modification"] == known_psm.name
            text, possible = f"{known_psm.name} (", row["possible_names"]
            counts["tied"] += any(name.startswith(text) for name in possible.split("; ")[0].split(" or "))
            counts["listed"] += any(name.startswith(text) for part in possible.split("; ") for name in part.split(" or "))
            counts["sited"] += max(1, min(len(known_psm.sequence), int(row["shift_position"]))) == max(1, known_psm.site)
    return counts


def plant(
    spectra: Spectra,
    rows: list[dict[str, str]],
    share: float,
    seed: int,
    out: Path,
    planted: Planted = PLANTED,
    second: float = 0.0,
    lost: float = 0.0,
) -> dict[int, Known]:
    """Write all spectra as MGF, with a modification planted in a share of the unmodified identified ones, which are returned by number.

    Peaks of b and y ions that contain the residue move by the modification's mass, with their isotopes; the precursor moves too. `planted`
    has names, and the residues that may carry them. `second` is the share of intensity of an isomer with the modification at another
    residue, in peptides that have one. `lost` is the share of intensity of the modified fragments that lose the modification.
    """
    generator, answers = np.random.default_rng(seed), dict[int, Known]()
    identified = {int(row["spectrum"]): row for row in accepted(rows)}
    with out.open("w") as file:
        for i in range(len(spectra)):
            mz, intensity = spectra.peaks(i)
            precursor, charges = spectra.precursor_mz[i], [z for z in range(1, 32) if int(spectra.charge_mask[i]) >> z & 1]
            row = identified.get(i)
            if row is not None and _is_plain(row) and generator.random() < share:
                sequence, charge = row["sequence"], int(row["charge"])
                possible = [(name, k + 1) for name, residues in planted for k, residue in enumerate(sequence) if residue in residues]
                if possible:
                    name, site = possible[generator.integers(len(possible))]
                    mass = unimod().by_name(name).mass
                    of_first, other = _moved(mz, sequence, site, mass, charge), 0
                    others = [k for of_name, k in possible if of_name == name and k != site] if second else []
                    if others:
                        other = others[generator.integers(len(others))]
                        of_first, intensity = _mixed(of_first, _moved(mz, sequence, other, mass, charge), intensity, second)
                    if lost:
                        of_first, intensity = _mixed(of_first, mz, intensity, lost)
                    mz, precursor, charges = of_first, precursor + mass / charge, [charge]
                    answers[i] = Known(sequence, name, mass, site, second_site=other)
            order = np.argsort(mz)
            lines = ["BEGIN IONS", f"TITLE={i}", f"PEPMASS={precursor:.8f}"]
            lines += ["CHARGE=" + " and ".join(f"{z}+" for z in charges)] if charges else []
            lines += [f"{m:.6f} {value:.6g}" for m, value in zip(mz[order].tolist(), intensity[order].tolist(), strict=True) if m > 0]
            file.write("\n".join([*lines, "END IONS", "", ""]))
    return answers


def _is_plain(row: dict[str, str]) -> bool:
    return set(row["modification_names"].split(";")) <= {"", "Carbamidomethyl"} and row["isotope_error"] == "0"


def _mixed(
    first: NDArray[np.float64], second: NDArray[np.float64], intensity: NDArray[np.floating], share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the peaks of two isomers together, `share` of the intensities from the second; peaks that are in both have one m/z."""
    mz, peak = np.unique(np.concatenate((first, second)), return_inverse=True)
    return mz, np.bincount(peak, np.concatenate((intensity * (1.0 - share), intensity * share)))


def _moved(
    mz: NDArray[np.float64], sequence: str, site: int, mass: float, precursor_charge: int, tolerance: float = 20e-6
) -> NDArray[np.float64]:
    """Move the peaks of ions that hold the residue `site` by a mass (dalton), and the remaining precursor peaks.

    These are the precursor, whole or without water or ammonia; unmoved, they would be at the neutral loss of the modified peptide.
    """
    residues = np.array([RESIDUE_MASS[ord(residue) - 65] + _FIXED.get(residue, 0.0) for residue in sequence])
    prefix = np.cumsum(residues)[:-1]
    bonds = np.arange(1, len(sequence))
    singles = np.concatenate((prefix[bonds >= site], (residues.sum() - prefix + WATER_MASS)[bonds < site]))
    moved = mz.copy()
    for charge in range(1, _CHARGES + 1):
        for isotope in range(_ISOTOPES):
            for single in singles:
                ion = (single + isotope * ISOTOPE_SPACING) / charge + PROTON_MASS
                here = np.abs(mz - ion) <= tolerance * ion
                moved[here] = mz[here] + mass / charge
    for lost in _LOST_BY_PRECURSOR:
        for isotope in range(_ISOTOPES):
            ion = (residues.sum() + WATER_MASS - lost + isotope * ISOTOPE_SPACING) / precursor_charge + PROTON_MASS
            here = np.abs(mz - ion) <= tolerance * ion
            moved[here] = mz[here] + mass / precursor_charge
    return moved

"""Sites that pyascore and pyonsite report in the spectra of `benchmarks/localisation.py`, and sites found at equal error.

    PYTHON -m benchmarks.localisation_peers --table FILE --spectra FOLDER [--programs pyascore phosphors ascore]

PYTHON has pyascore and pyonsite installed, not Proteoscope. FILE and FOLDER are those of `--table` and `--spectra` of the other benchmark.
Each match that Proteoscope rated is given to each program with its peptide; the phosphate may be on any S, T or Y. One JSON line for each
program: its sites at the planted residue when matches are ranked by its score, down to a measured false localisation rate of 1 % and 5 %.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

_PHOSPHO, _CYSTEINE, _TOLERANCE = 79.966331, 57.021464, 20.0  # dalton, dalton, parts per million
_TOLERANCE_DALTON = 0.02
_LEVELS = (0.01, 0.05)

Found = tuple[float, int]  # score and site of the best arrangement
Spectrum = tuple[np.ndarray, np.ndarray, int, float]  # m/z, intensities, charge, precursor m/z


def read_mgf(path: Path) -> dict[int, Spectrum]:
    """Return the spectra of a file by title."""
    spectra = {}
    for block in path.read_text().split("BEGIN IONS")[1:]:
        lines = block.split("END IONS")[0].split("\n")
        header = dict(line.split("=", 1) for line in lines if "=" in line)
        peaks = np.array([line.split()[:2] for line in lines if line[:1].isdigit()], float).reshape(-1, 2)
        charge = int(header.get("CHARGE", "2+").split("+")[0])
        spectra[int(header["TITLE"])] = (peaks[:, 0].copy(), peaks[:, 1].copy(), charge, float(header["PEPMASS"].split()[0]))
    return spectra


def pyascore_program() -> Callable[[Spectrum, str], Found]:
    """Return a function that places the phosphate by pyascore."""
    import pyascore

    scorer = pyascore.PyAscore(
        bin_size=100.0, n_top=10, mod_group="STY", mod_mass=_PHOSPHO, mz_error=_TOLERANCE_DALTON, fragment_types="by"
    )

    def place(spectrum: Spectrum, sequence: str) -> Found:
        mz, intensity, charge, _ = spectrum
        fixed = np.array([i for i, residue in enumerate(sequence, 1) if residue == "C"], np.uint32)
        scorer.score(mz, intensity, sequence, 1, max(1, charge - 1), fixed, np.full(len(fixed), _CYSTEINE, np.float32))
        before = scorer.best_sequence.split("[80]")[0] if "[80]" in scorer.best_sequence else scorer.best_sequence
        site = sum(character.isupper() for character in before)
        return float(scorer.ascores[0]), site

    return place


def _hit(spectrum: Spectrum, sequence: str) -> tuple[Any, Any]:
    """Return a hit with the phosphate on the first possible residue, and the spectrum, as objects of pyOpenMS."""
    import pyopenms

    mz, intensity, charge, precursor_mz = spectrum
    first = next(i for i, residue in enumerate(sequence) if residue in "STY")
    text = "".join(
        residue + ("(Phospho)" if i == first else "(Carbamidomethyl)" if residue == "C" else "") for i, residue in enumerate(sequence)
    )
    hit, made, precursor = pyopenms.PeptideHit(), pyopenms.MSSpectrum(), pyopenms.Precursor()
    hit.setSequence(pyopenms.AASequence.fromString(text))
    hit.setCharge(charge)
    made.set_peaks((mz, intensity))
    precursor.setMZ(precursor_mz)
    precursor.setCharge(charge)
    made.setPrecursors([precursor])
    made.setMSLevel(2)
    return hit, made


def phosphors_program() -> Callable[[Spectrum, str], Found]:
    """Return a function that places the phosphate by phosphoRS of pyonsite."""
    from onsite.phosphors.phosphors import calculate_phospho_localization_compomics_style, site_deltas_from_isomers

    def place(spectrum: Spectrum, sequence: str) -> Found:
        hit, made = _hit(spectrum, sequence)
        _, isomers = calculate_phospho_localization_compomics_style(
            hit, made, fragment_tolerance=_TOLERANCE, fragment_method_ppm=True, add_decoys=False
        )
        deltas = site_deltas_from_isomers(isomers)
        site = max(deltas, key=lambda position: deltas[position])
        return float(deltas[site]), int(site)

    return place


def ascore_program() -> Callable[[Spectrum, str], Found]:
    """Return a function that places the phosphate by Ascore of pyonsite."""
    from onsite.ascore.ascore import AScore

    scorer = AScore()
    scorer.fragment_mass_tolerance_, scorer.fragment_tolerance_ppm_ = _TOLERANCE, True

    def place(spectrum: Spectrum, sequence: str) -> Found:
        hit, made = _hit(spectrum, sequence)
        scored = scorer.compute(hit, made)
        before = scored.getSequence().toString().split("(Phospho)")[0].replace("(Carbamidomethyl)", "")
        return float(scored.getMetaValue("AScore_1")), len(before)

    return place


PROGRAMS = {"pyascore": pyascore_program, "phosphors": phosphors_program, "ascore": ascore_program}


def at_equal_error(matches: list[tuple[float, bool]], level: float) -> int:
    """Return the number of right sites above the lowest score at which the measured rate does not exceed a level."""
    ranked = sorted(matches, key=lambda match: -match[0])
    right = np.cumsum([is_right for _, is_right in ranked])
    accepted = np.arange(1, len(ranked) + 1)
    ends = np.flatnonzero((accepted - right) / accepted <= level)
    return int(right[ends[-1]]) if len(ends) else 0


def placed(table: Path, folder: Path, program: Callable[[Spectrum, str], Found]) -> Iterator[tuple[float, bool]]:
    """Place the phosphate of each match; yield the score, and True if the site is the planted one."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    read: dict[str, dict[int, Spectrum]] = {}
    for row in rows:
        name = f"{row['set']}-{row['split']}"
        if name not in read:
            read = {name: read_mgf(folder / f"{name}.mgf")}
        try:
            score, site = program(read[name][int(row["spectrum"])], row["sequence"])
        except (ValueError, RuntimeError, IndexError, TypeError):  # not scored
            score, site = -np.inf, -1
        yield score, site == int(row["planted"])


def main() -> None:
    """Print the figures of each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--spectra", type=Path, required=True)
    parser.add_argument("--programs", nargs="+", choices=tuple(PROGRAMS), default=tuple(PROGRAMS))
    options = parser.parse_args()
    for name in options.programs:
        began = time.perf_counter()
        matches = list(placed(options.table, options.spectra, PROGRAMS[name]()))
        seconds = round(time.perf_counter() - began, 1)
        unscored, right = sum(not np.isfinite(score) for score, _ in matches), sum(ok for _, ok in matches)
        for level in _LEVELS:
            values = {"measured": level, "right": at_equal_error(matches, level), "all_right": right, "matches": len(matches)}
            print(json.dumps({"what": "localisation", "program": name, **values, "unscored": unscored, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()

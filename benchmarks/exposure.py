"""Solvent exposure of residues compared with DSSP (mkdssp) or FreeSASA, for all single chains of files in folders.

    bash tests/peers/install.sh            # for DSSP; for FreeSASA: pip install freesasa, in a separate environment
    python -m benchmarks.exposure --structures FOLDER [FOLDER ...] [--every 20] [--first 0] [--beside mkdssp|freesasa]

One JSON line with relative differences between both programs: of the areas of whole chains (`chain_median`, `chain_95`, `chain_worst`), and
of the areas of residues with 20 Å² or more (`residue_median`, `residue_95`; DSSP reports whole Å²). `elsewhere` is the share of residues
that the programs classify differently if residues with at least 25 % of their maximum area are on the surface.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import emit
from proteoscope.engine.errors import InputError
from proteoscope.engine.structures.exposure import GREATEST_AREA, read_chain_atoms, residue_areas
from proteoscope.engine.structures.reading import read_structure
from tests.peers.structure_peers import dssp_areas, freesasa_areas, installed

__all__ = ["Areas", "areas_of"]

_TOUCHED = 20.0  # Å²
_SURFACE = 0.25


class Areas(NamedTuple):
    """Areas of a chain (Å²): its name, the areas (r,) of residues that both programs report, by each program, and their maximum areas."""

    name: str
    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]
    greatest: NDArray[np.float64]


def areas_of(path: Path, theirs_of: Callable[[Path], Mapping[tuple[str, int, str], float]]) -> Areas | None:
    """Return the areas of a file's only chain, or None if it has several or either program reads no atoms."""
    chains = read_structure(path).chains
    atoms = read_chain_atoms(path, [chains])[0] if len(chains) == 1 else None
    if atoms is None or isinstance(atoms, InputError):
        return None
    ours = residue_areas([atoms], [len(chains.residue)])[0]
    of_number = {(number, code): area for (_, number, code), area in theirs_of(path).items()}
    codes = [chr(code) if code else "" for code in chains.insertion.tolist()]
    theirs = np.array([of_number.get(key, np.nan) for key in zip(chains.author_number.tolist(), codes, strict=True)])
    both = np.isfinite(ours) & np.isfinite(theirs)
    return Areas(path.name, ours[both], theirs[both], GREATEST_AREA[chains.residue][both]) if both.any() else None


def _summary(areas: Iterable[Areas]) -> dict[str, float | int | str]:
    chains = list(areas)
    totals = np.array([abs(chain.ours.sum() / chain.theirs.sum() - 1.0) for chain in chains])
    ours, theirs, greatest = (np.concatenate([getattr(chain, name) for chain in chains]) for name in ("ours", "theirs", "greatest"))
    touched = theirs >= _TOUCHED
    apart = np.abs(ours[touched] / theirs[touched] - 1.0)
    return {
        "chains": len(chains),
        "residues": len(ours),
        "chain_median": round(float(np.median(totals)), 4),
        "chain_95": round(float(np.quantile(totals, 0.95)), 4),
        "chain_worst": round(float(totals.max()), 4),
        "worst": chains[int(totals.argmax())].name,
        "residue_median": round(float(np.median(apart)), 4),
        "residue_95": round(float(np.quantile(apart, 0.95)), 4),
        "elsewhere": round(float(((ours / greatest >= _SURFACE) != (theirs / greatest >= _SURFACE)).mean()), 4),
        "correlation": round(float(np.corrcoef(ours, theirs)[0, 1]), 5),
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--structures", type=Path, nargs="+", required=True)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--beside", choices=("mkdssp", "freesasa"), default="mkdssp")
    options = parser.parse_args()
    if options.beside == "mkdssp" and not installed("mkdssp"):
        sys.exit("mkdssp is not there: bash tests/peers/install.sh")
    files = sorted(path for folder in options.structures for path in folder.iterdir() if path.is_file())[options.first :: options.every]
    with tempfile.TemporaryDirectory(prefix="proteoscope-exposure-") as name:
        theirs_of = freesasa_areas if options.beside == "freesasa" else partial(dssp_areas, folder=Path(name))
        every = [areas for path in files if (areas := _areas_or_none(path, theirs_of)) is not None]
    emit({"figure": "exposure", "beside": options.beside}, files=len(files), **_summary(every), date=str(date.today()))


def _areas_or_none(path: Path, theirs_of: Callable[[Path], Mapping[tuple[str, int, str], float]]) -> Areas | None:
    """Return the areas of a file, or None for other kinds of files."""
    try:
        return areas_of(path, theirs_of)
    except InputError:
        return None


if __name__ == "__main__":
    main()

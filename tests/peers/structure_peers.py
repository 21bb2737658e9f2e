"""Programs for structures: DSSP, TM-score and TM-align from the peers' folder, and FreeSASA if it is installed.

DSSP assigns secondary structure, TM-score and TM-align superpose, FreeSASA computes areas (``pip install freesasa``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.peers.peer_programs import peers_folder

__all__ = ["dssp_areas", "dssp_states", "freesasa_areas", "installed", "tm_align", "tm_score"]

_RADII = {"N": 1.65, "CA": 1.87, "C": 1.76, "O": 1.40}
"""Radii of DSSP, Å; all others have 1.80."""
_STATES = {"H": "H", "G": "H", "I": "H", "E": "E", "B": "E"}
_NEEDED = (
    (b"HEADER", b"HEADER    X                                       01-JAN-00   1XXX\n"),
    (b"CRYST1", b"CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1\n"),
)


def _program(name: str) -> Path:
    installed = peers_folder() / "debian" / "usr" / "bin" / name
    program = shutil.which(name)
    return Path(program) if program is not None and not installed.exists() else installed


def installed(name: str) -> bool:
    """True if the program is installed."""
    return _program(name).exists()


def _run(name: str, *arguments: str | Path) -> str:
    usr = peers_folder() / "debian" / "usr"
    libraries = ":".join(str(path) for path in (usr / "lib").glob("*-linux-gnu"))
    environment = {**os.environ}
    if _program(name).is_relative_to(usr):
        environment |= {"LD_LIBRARY_PATH": libraries, "LIBCIFPP_DATA_DIR": str(usr / "share" / "libcifpp")}
    done = subprocess.run([_program(name), *arguments], env=environment, capture_output=True, text=True, check=False)
    return done.stdout


def dssp_states(path: Path, folder: Path) -> dict[tuple[str, int, str], str]:
    """Return the state (C, H, E) of each residue by chain, number and insertion code."""
    return {key: _STATES.get(line[16], "C") for key, line in _dssp_lines(path, folder)}


def dssp_areas(path: Path, folder: Path) -> dict[tuple[str, int, str], float]:
    """Return the water-accessible area of each residue, in whole Å², by chain, number and insertion code."""
    return {key: float(line[34:38]) for key, line in _dssp_lines(path, folder)}


def freesasa_areas(path: Path) -> dict[tuple[str, int, str], float]:
    """Compute the water-accessible areas of the first chain of the first model by FreeSASA.

    The areas, Å², are by chain, number and insertion code, computed in slices (Lee & Richards) with DSSP's radii.
    """
    import freesasa
    import gemmi

    chain = gemmi.read_structure(str(path))[0][0]
    atoms = []
    for residue in chain:
        alphas = sorted((atom for atom in residue if atom.name == "CA"), key=lambda atom: -atom.occ)
        if alphas and residue.find_atom("N", "*"):
            residue_atoms = (atom for atom in residue if not atom.is_hydrogen() and atom.altloc in ("\0", alphas[0].altloc))
            atoms += [((chain.name, residue.seqid.num, residue.seqid.icode.strip()), atom) for atom in residue_atoms]
    if not atoms:
        return {}
    result = freesasa.calcCoord(
        [x for _, atom in atoms for x in atom.pos.tolist()],
        [_RADII.get(atom.name, 1.80) for _, atom in atoms],
        freesasa.Parameters({"algorithm": freesasa.LeeRichards, "n-slices": 100, "probe-radius": 1.4}),
    )
    areas: dict[tuple[str, int, str], float] = {}
    for k, (key, _) in enumerate(atoms):
        areas[key] = areas.get(key, 0.0) + result.atomArea(k)
    return areas


def _dssp_lines(path: Path, folder: Path) -> list[tuple[tuple[str, int, str], str]]:
    """Return DSSP's lines of residues, after adding the records that DSSP requires and files of domains lack."""
    if path.suffix != ".cif":
        data = path.read_bytes()
        copy = folder / "dssp.pdb"
        copy.write_bytes(b"".join(line for record, line in _NEEDED if record not in data) + data)
        path = copy
    lines, begun = [], False
    for line in _run("mkdssp", "--quiet", "--output-format", "dssp", path).splitlines():
        if begun and line[13] != "!":
            lines.append(((line[11], int(line[5:10]), line[10].strip()), line))
        begun = begun or line.startswith("  #  RES")
    return lines


def _write(path: Path, position: NDArray, numbers: Sequence[int]) -> Path:
    lines = [
        f"ATOM  {number:>5}  CA  ALA A{number:>4}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           C\n"
        for number, (x, y, z) in zip(numbers, position, strict=True)
    ]
    path.write_text("".join(lines) + "TER\n")
    return path


def tm_score(query: NDArray, target: NDArray, pairs: NDArray, folder: Path) -> tuple[float, float]:
    """Return the TM-score of given pairs by the length of the target, and their least-squares RMSD, by the program of that name."""
    numbers = np.full(len(query), -1)
    numbers[pairs[:, 0]] = pairs[:, 1] + 1
    retained = numbers > 0
    model = _write(folder / "model.pdb", query[retained], numbers[retained].tolist())
    native = _write(folder / "native.pdb", target, range(1, len(target) + 1))
    reported = _run("TMscore", model, native)
    score, rmsd = re.search(r"TM-score\s*= ([\d.]+)", reported), re.search(r"RMSD of\s+the common residues=\s*([\d.]+)", reported)
    assert score is not None, reported
    assert rmsd is not None, reported
    return float(score[1]), float(rmsd[1])


def tm_align(query: NDArray, target: NDArray, folder: Path) -> tuple[float, float]:
    """Return TM-scores of TM-align, by the lengths of query and target."""
    paths = [_write(folder / f"{name}.pdb", chain, range(1, len(chain) + 1)) for name, chain in (("query", query), ("target", target))]
    scores = re.findall(r"TM-score= ([\d.]+)", _run("TMalign", *paths))
    return float(scores[0]), float(scores[1])

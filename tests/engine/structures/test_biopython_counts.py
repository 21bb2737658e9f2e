"""Chains have as many residues as in Biopython in the files of the test data, except those explained in the table."""

from __future__ import annotations

import gc
import io
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.structures.chains import FEWEST_RESIDUES
from proteoscope.engine.structures.reading import read_structure

FOLDERS = ("albumin", "bench_ca/pdb", "globins", "homstrad52", "malidup_malisam", "odd", "pdbchains", "sample")
STEPS = {"bench_ca/pdb": 3}
"""By folder: one in this number of files is read. The 855 files of this folder hold only Cα."""
WHOLE = ("odd",)
"""Folders whose PDB files Biopython reads with all atoms, since their records are unusual. It counts Cα, and is slow."""

DIFFERENCES = {
    "odd/2n0n_M1.pdb": ({"A": 11}, {"A": 10}, "PH8 is a residue by its N, Cα and C; Biopython's table of amino acids lacks it"),
    "odd/biojava_3dl7_v32.pdb": (
        {"A": 537, "B": 532},
        {"A": 538, "B": 533},
        "SEN and SUN are alternatives at place 203; Biopython counts both",
    ),
}
"""By file: residues here, residues in Biopython, and the reason for the difference."""


def biopython_counts(path: Path, *, is_whole: bool) -> dict[str, int] | None:
    """Return the amino acids with a Cα by chain of the first model, or None if Biopython reads no structure.

    Unless `is_whole`, other atoms of PDB files are left out.
    """
    from Bio.PDB.MMCIFParser import MMCIFParser
    from Bio.PDB.PDBParser import PDBParser
    from Bio.PDB.Polypeptide import is_aa

    with ByteSource(path) as source:
        text = source.read(1 << 28).decode("utf-8", "replace")
    is_cif = "\ndata_" in "\n" + text[:3000]
    if not is_whole and not is_cif:
        text = "".join(
            line for line in text.splitlines(keepends=True) if line[:6] not in ("ATOM  ", "HETATM") or line[12:16].strip() == "CA"
        )
    parser: Any = MMCIFParser(QUIET=True) if is_cif else PDBParser(QUIET=True)
    gc.disable()  # collections would go through the atoms again and again
    try:
        model = next(iter(parser.get_structure("x", io.StringIO(text))))
    except (KeyError, ValueError, StopIteration):
        return None
    finally:
        gc.enable()
    counts = {}
    for chain in model:
        residues = [
            residue
            for residue in chain
            if "CA" in residue and residue["CA"].element != "CA" and (residue.id[0] == " " or is_aa(residue, standard=False))
        ]
        if len(residues) >= FEWEST_RESIDUES:
            counts[chain.id.strip()] = len(residues)
    return counts


@pytest.mark.parametrize("folder", FOLDERS)
def test_residue_counts_equal_biopython(shared_data: Path, folder: str) -> None:
    root = shared_data / "structures"
    n_compared = 0
    for path in sorted(path for path in (root / folder).rglob("*") if path.is_file())[:: STEPS.get(folder, 1)]:
        expected = biopython_counts(path, is_whole=folder in WHOLE)
        if expected is None:
            continue
        name = path.relative_to(root).as_posix()
        try:
            structures = read_structure(path)
        except InputError:
            assert not expected, name
            continue
        counts = dict(zip(structures.chain_names, structures.chains.lengths.tolist(), strict=True))
        ours, theirs, _ = DIFFERENCES.get(name, (expected, expected, ""))
        assert (counts, expected) == (ours, theirs), name
        n_compared += 1
    assert n_compared

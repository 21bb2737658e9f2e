"""Projects with an imported identification and its evidence on the structure of human serum albumin."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pyteomics import mass

from proteoscope import resources
from proteoscope.engine.chemistry.enzymes import digest, enzyme
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from tests.engine.imported.small_results import PROTON
from tests.searching import import_results

OXIDATION, ALKYLATION = 15.994915, 57.021464
HUMAN_PART = slice(100, 260)


def write_albumin(folder: Path) -> Path:
    """Write chain A of 1AO6, which ships with the program."""
    path = folder / "1ao6_A.pdb"
    path.write_bytes(gzip.decompress(resources.path("samples", "1ao6_A.pdb.gz").read_bytes()))
    return path


def changed(sequence: str, every: int) -> str:
    """Return the sequence with every n-th residue exchanged."""
    other = str.maketrans("ACDEFGHIKLMNPQRSTVWY", "SAEDYAQVRIILGNKTSIFW")
    return "".join(residue.translate(other) if i % every == 0 else residue for i, residue in enumerate(sequence))


def distant(sequence: str) -> str:
    """Return a relative with about a quarter identical residues: every sixth, cysteines, tryptophans and chance matches."""
    other = ("ASGTEDKRNQ"[(i * 7) % 10] for i in range(len(sequence)))
    return "".join(
        residue if i % 6 == 0 or residue in "CW" else substitute
        for i, (residue, substitute) in enumerate(zip(sequence, other, strict=True))
    )


def synthetic_proteins(sequence: str) -> dict[str, str]:
    """Return a relative of 80 % identity, a protein with two parts of the chain, and an unrelated protein.

    The relative has a signal peptide and an insertion.
    """
    relative = "MKWVTFISLLLLFSSAYS" + changed(sequence, 5)[:400] + "GGGGG" + changed(sequence, 5)[400:]
    return {
        "RELATIVE": relative,
        "PARTIAL": sequence[HUMAN_PART] + "WWWWWWWWWW" + sequence[:20],
        "NOWHERE": "HWHWHWWHWHK" * 3 + "WHHWHHWWK",
    }


def write_identification(
    folder: Path, proteins: dict[str, str], out: Path | None = None, n_psms: int = 0, is_alkylated: bool = False
) -> Path:
    """Import an identification of fully cleaved peptides, some oxidised, and return the folder of its project.

    Parameters
    ----------
    folder : folder of the files, and of the project without `out`.
    out : folder of the project.
    n_psms : approximate number of PSMs; 0: one to three for each peptide.
    is_alkylated : carbamidomethylate each cysteine.
    """
    (folder / "proteins.fasta").write_text("".join(f">{name} made\n{sequence}\n" for name, sequence in proteins.items()))
    spectra, rows, scan = [], ["PSMId\tscore\tq-value\tposterior_error_prob\tpeptide\tproteinIds"], 10
    peptides: dict[str, tuple[str, float]] = {}
    for sequence in proteins.values():
        for span in digest(sequence, enzyme("Trypsin"), minimum_length=7, maximum_length=25)[::2]:
            peptide = sequence[span.start : span.stop]
            at = peptide.find("M")
            written, added = (f"{peptide[: at + 1]}[+{OXIDATION:.4f}]{peptide[at + 1 :]}", OXIDATION) if at >= 0 else (peptide, 0.0)
            if is_alkylated:
                written, added = written.replace("C", f"C[+{ALKYLATION:.4f}]"), added + ALKYLATION * peptide.count("C")
            peptides[peptide] = written, added
    for k, (peptide, (written, added)) in enumerate(peptides.items()):
        for _ in range(1 + k % 3 if not n_psms else 1 + n_psms // len(peptides)):
            scan += 1
            mz = (mass.fast_mass(peptide) + added) / 2 + PROTON
            spectra.append(
                f"BEGIN IONS\nTITLE=run.{scan}.{scan}.2\nSCANS={scan}\nPEPMASS={mz:.5f} {10 * scan}\nCHARGE=2+\n"
                "150.1 5\n250.2 7\n350.3 9\nEND IONS\n"
            )
            holders = [name for name, residues in proteins.items() if peptide in residues]
            rows.append("\t".join([f"run_{scan}_2_1", str(100 - k / 100), "0.001", "0.001", f"-.{written}.-", *holders]))
    (folder / "run.mgf").write_text("\n".join(spectra))
    (folder / "found.target.psms.tsv").write_text("\n".join(rows) + "\n")
    out = out or folder / "project"
    import_results([folder / "found.target.psms.tsv"], [folder / "run.mgf"], out, [folder / "proteins.fasta"])
    return out


class PlantedPosition(NamedTuple):
    """A peptidoform at a position of a protein: first and last residue from 1, number of PSMs, and the oxidised residue."""

    accession: str
    peptide: str
    first: int
    last: int
    n_psms: int
    site: int | None


def planted_positions(folder: Path) -> list[PlantedPosition]:
    """Find the peptides of `write_identification` by plain string search in its files: the expected result of an evidence run."""
    blocks = (block.split("\n") for block in (folder / "proteins.fasta").read_text().split(">")[1:])
    proteins = {block[0].split()[0]: "".join(block[1:]) for block in blocks}
    lines = (folder / "found.target.psms.tsv").read_text().splitlines()[1:]
    forms = Counter(line.split("\t")[4].removeprefix("-.").removesuffix(".-") for line in lines)
    positions = []
    for form, n_psms in forms.items():
        before, *after = form.split(f"[+{OXIDATION:.4f}]")
        bare = before + "".join(after)
        assert bare.isalpha() and len(after) <= 1, form
        for accession, sequence in proteins.items():
            for start in (k for k in range(len(sequence)) if sequence.startswith(bare, k)):
                site = start + len(before) if after else None
                name = f"{before}[Oxidation]{after[0]}" if after else bare
                positions.append(PlantedPosition(accession, name, start + 1, start + len(bare), n_psms, site))
    return positions


def project_with_evidence(folder: Path, out: Path | None = None) -> Project:
    """Create a project with an imported identification and an evidence run; the files are in `folder`, the project at `out` if given."""
    folder.mkdir(parents=True, exist_ok=True)
    albumin = write_albumin(folder)
    project = write_identification(folder, synthetic_proteins(read_structure(albumin).chains.sequence(0)), out)
    run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    return Project.open(project)

"""A project with an imported identification, and a run that shows it on human serum albumin."""

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
    """Chain A of 1AO6, which ships."""
    path = folder / "1ao6_A.pdb"
    path.write_bytes(gzip.decompress(resources.path("samples", "1ao6_A.pdb.gz").read_bytes()))
    return path


def changed(sequence: str, every: int) -> str:
    """The sequence with one residue in so many exchanged."""
    other = str.maketrans("ACDEFGHIKLMNPQRSTVWY", "SAEDYAQVRIILGNKTSIFW")
    return "".join(letter.translate(other) if i % every == 0 else letter for i, letter in enumerate(sequence))


def distant(sequence: str) -> str:
    """A relative of about a quarter of its residues: one in six, cysteines and tryptophans, and what is the same by chance."""
    other = ("ASGTEDKRNQ"[(i * 7) % 10] for i in range(len(sequence)))
    return "".join(own if i % 6 == 0 or own in "CW" else made for i, (own, made) in enumerate(zip(sequence, other, strict=True)))


def made_proteins(sequence: str) -> dict[str, str]:
    """A relative of 80 % with a signal peptide and an insertion, a twin with a part of the chain and its beginning, and a stranger."""
    relative = "MKWVTFISLLLLFSSAYS" + changed(sequence, 5)[:400] + "GGGGG" + changed(sequence, 5)[400:]
    return {"RELATIVE": relative, "TWIN": sequence[HUMAN_PART] + "WWWWWWWWWW" + sequence[:20], "NOWHERE": "HWHWHWWHWHK" * 3 + "WHHWHHWWK"}


def write_identification(
    folder: Path, proteins: dict[str, str], out: Path | None = None, n_psms: int = 0, is_alkylated: bool = False
) -> Path:
    """A project with an imported identification: fully cut peptides, some oxidised; in `folder`, beside its files, or at `out`.

    `n_psms`: about how many, one to three of each peptide where it is not told. `is_alkylated`: every cysteine is carbamidomethylated.
    """
    (folder / "proteins.fasta").write_text("".join(f">{name} made\n{sequence}\n" for name, sequence in proteins.items()))
    spectra, rows, scan = [], ["PSMId\tscore\tq-value\tposterior_error_prob\tpeptide\tproteinIds"], 10
    found: dict[str, tuple[str, float]] = {}
    for sequence in proteins.values():
        for span in digest(sequence, enzyme("Trypsin"), minimum_length=7, maximum_length=25)[::2]:
            peptide = sequence[span.start : span.stop]
            at = peptide.find("M")
            written, added = (f"{peptide[: at + 1]}[+{OXIDATION:.4f}]{peptide[at + 1 :]}", OXIDATION) if at >= 0 else (peptide, 0.0)
            if is_alkylated:
                written, added = written.replace("C", f"C[+{ALKYLATION:.4f}]"), added + ALKYLATION * peptide.count("C")
            found[peptide] = written, added
    for k, (peptide, (written, added)) in enumerate(found.items()):
        for _ in range(1 + k % 3 if not n_psms else 1 + n_psms // len(found)):
            scan += 1
            mz = (mass.fast_mass(peptide) + added) / 2 + PROTON
            spectra.append(
                f"BEGIN IONS\nTITLE=run.{scan}.{scan}.2\nSCANS={scan}\nPEPMASS={mz:.5f} {10 * scan}\nCHARGE=2+\n"
                "150.1 5\n250.2 7\n350.3 9\nEND IONS\n"
            )
            holders = [name for name, one in proteins.items() if peptide in one]
            rows.append("\t".join([f"run_{scan}_2_1", str(100 - k / 100), "0.001", "0.001", f"-.{written}.-", *holders]))
    (folder / "run.mgf").write_text("\n".join(spectra))
    (folder / "found.target.psms.tsv").write_text("\n".join(rows) + "\n")
    out = out or folder / "project"
    import_results([folder / "found.target.psms.tsv"], [folder / "run.mgf"], out, [folder / "proteins.fasta"])
    return out


class PlantedPlace(NamedTuple):
    """A peptidoform at a place of a protein, both ends from 1; how many spectra were told to be of it, and the residue that is oxidised."""

    accession: str
    peptide: str
    first: int
    last: int
    n_psms: int
    site: int | None


def planted_places(folder: Path) -> list[PlantedPlace]:
    """Where peptides of `write_identification` lie, read from its files letter by letter: what an evidence run is to find."""
    blocks = (block.split("\n") for block in (folder / "proteins.fasta").read_text().split(">")[1:])
    proteins = {block[0].split()[0]: "".join(block[1:]) for block in blocks}
    lines = (folder / "found.target.psms.tsv").read_text().splitlines()[1:]
    forms = Counter(line.split("\t")[4].removeprefix("-.").removesuffix(".-") for line in lines)
    found = []
    for form, n_psms in forms.items():
        before, *behind = form.split(f"[+{OXIDATION:.4f}]")
        bare = before + "".join(behind)
        assert bare.isalpha() and len(behind) <= 1, form
        for accession, sequence in proteins.items():
            for start in (k for k in range(len(sequence)) if sequence.startswith(bare, k)):
                site = start + len(before) if behind else None
                name = f"{before}[Oxidation]{behind[0]}" if behind else bare
                found.append(PlantedPlace(accession, name, start + 1, start + len(bare), n_psms, site))
    return found


def project_with_evidence(folder: Path, out: Path | None = None) -> Project:
    """A project with an imported identification and its run of evidence; files lie beside it in `folder`, or it at `out`."""
    folder.mkdir(parents=True, exist_ok=True)
    albumin = write_albumin(folder)
    project = write_identification(folder, made_proteins(read_structure(albumin).chains.sequence(0)), out)
    run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    return Project.open(project)

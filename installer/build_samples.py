"""Create the small sample files that are excerpts of, or simulated from, other data; `SOURCES.md` describes each.

    python -m installer.build_samples --genome LAMBDA.fasta --capsid 1A8O.cif --amyloid 2BEG.pdb --runs BSA1.mzML BSA2.mzML BSA3.mzML

The genome is from Debian's package `bowtie2-examples`, the two structures are from Biopython's source distribution, and the runs from
OpenMS. This script downloads nothing, and the same inputs give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from pathlib import Path

import gemmi
import numpy as np

from installer.reduced_runs import reduced_run

FOLDER = Path(__file__).resolve().parents[1] / "resources" / "samples"
PROTEINS = "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
BACKGROUND_STEP = 40
ALBUMIN = FOLDER / "1ao6_A.pdb.gz"
DOMAINS = {"I": (1, 195), "J": (196, 383), "K": (384, 585)}
"""First and last residue of the three domains of human serum albumin (Sugio and others 1999), by the chain id that each gets."""
QUERY_DOMAIN = "K"
N_READS, N_FOREIGN, READ = 400, 16, 150
WRONG, WITH_GAP, LONGEST_GAP = 0.01, 0.3, 6
SEED = 48_502


def main() -> None:
    """Write all samples."""
    parser = argparse.ArgumentParser(description="Makes small samples from others.")
    for name in ("genome", "capsid", "amyloid"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--runs", type=Path, nargs=3, required=True)
    given = parser.parse_args()
    for run in given.runs:
        (FOLDER / f"{run.name}.gz").write_bytes(reduced_run(run))
    write_database()
    write_folds(given.capsid, given.amyloid)
    write_queries()
    genome = "".join(line.strip().upper() for line in given.genome.read_text().splitlines() if not line.startswith(">"))
    lines = (genome[start : start + 70] for start in range(0, len(genome), 70))
    write("lambda_phage.fasta.gz", ">NC_001416.1 Enterobacteria phage lambda, complete genome\n" + "\n".join(lines) + "\n")
    write("lambda_reads.fastq.gz", simulate_reads(genome))
    write_library(given.runs[1:])


def write(name: str, content: str) -> None:
    """Write a text file, compressed without a time stamp if its name ends with ``.gz``."""
    data = content.encode("ascii")
    (FOLDER / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def write_database() -> None:
    """Write a small database for albumin: albumin, trypsins and keratins, and every fortieth protein of a bacterium as background.

    With so few wrong candidates, most spectra of a short run of one protein are accepted.
    """
    with gzip.open(FOLDER / PROTEINS, "rt", encoding="ascii") as file:
        records = file.read().split(">")[1:]
    bacterial = [record for record in records if "_SORC5" in record.partition("\n")[0]]
    background = set(bacterial[::BACKGROUND_STEP])
    others = set(bacterial) - background
    write("albumin_proteins.fasta.gz", "".join(f">{record}" for record in records if record not in others))


def write_folds(capsid: Path, amyloid: Path) -> None:
    """Write the three domains of albumin and two chains of other folds as one file, and one domain as a query."""
    with gzip.open(ALBUMIN, "rt", encoding="ascii") as file:
        whole = gemmi.read_pdb_string(file.read())
    chains = []
    for name, (first, last) in DOMAINS.items():
        chain = gemmi.Chain(name)
        for residue in whole[0][0]:
            if residue.is_water() or not first <= residue.seqid.num <= last:
                continue
            chain.add_residue(residue)
        chains.append(chain)
    for name, path in (("C", capsid), ("D", amyloid)):
        other = gemmi.read_structure(str(path))
        other.setup_entities()
        other.remove_ligands_and_waters()
        chain = other[0][0].clone()
        chain.name = name
        chains.append(chain)
    query = [chain for chain in chains if chain.name == QUERY_DOMAIN]
    for target, selected in (("folds.pdb.gz", chains), ("albumin_domain_3.pdb.gz", query)):
        structure, model = gemmi.Structure(), gemmi.Model(1)
        for chain in selected:
            model.add_chain(chain)
        structure.add_model(model)
        structure.setup_entities()
        write(target, structure.make_pdb_string(gemmi.PdbWriteOptions(minimal=True)))


def write_library(runs: list[Path]) -> None:
    """Write a library with the mean spectrum of each peptide and charge identified in two other runs of the sample's protein."""
    from proteoscope.engine.command_line.main import main as command

    database = str(FOLDER / PROTEINS)
    with tempfile.TemporaryDirectory() as name:
        project, library = f"{name}/project", Path(name, "library.msp")
        identify = [
            "identify",
            *map(str, runs),
            "--database",
            str(database),
            "--preset",
            "low-resolution",
            "--out",
            project,
            "--device",
            "cpu",
        ]
        if command(identify) or command(["export", project, "--format", "msp", "--out", str(library)]):
            raise SystemExit("the library was not made")
        write("bsa_library.msp.gz", library.read_text())


def write_queries() -> None:
    """Write proteins with relatives in the sample database: albumin from its structure, a keratin, a bacterial kinase."""
    with gzip.open(ALBUMIN, "rt", encoding="ascii") as file:
        chain = gemmi.read_pdb_string(file.read())[0][0]
    albumin = gemmi.one_letter_code([residue.name for residue in chain if gemmi.find_tabulated_residue(residue.name).is_amino_acid()])
    records = [f">1AO6_A Human serum albumin, of its structure\n{wrapped(albumin)}\n"]
    with gzip.open(FOLDER / PROTEINS, "rt", encoding="ascii") as file:
        database = file.read().split(">")[1:]
    chosen = ("Q15323|K1H1_HUMAN", "A9EMV5_SORC5")
    records += [">" + next(record for record in database if wanted in record.partition("\n")[0]) for wanted in chosen]
    write("protein_queries.fasta", "".join(records))


def wrapped(sequence: str) -> str:
    """Break a sequence into lines of sixty residues."""
    return "\n".join(sequence[start : start + 60] for start in range(0, len(sequence), 60))


def simulate_reads(genome: str) -> str:
    """Simulate reads of both strands of a genome as FASTQ, with errors and gaps, and some random reads.

    The name of a read contains its position in the genome, from 1, and its strand.
    """
    rng = np.random.default_rng(SEED)
    bases, complement = np.array(list("ACGT")), str.maketrans("ACGT", "TGCA")
    records = []
    for number in range(N_READS + N_FOREIGN):
        start = int(rng.integers(0, len(genome) - READ - LONGEST_GAP))
        read = genome[start : start + READ]
        if rng.random() < WITH_GAP:
            place, length = int(rng.integers(30, READ - 30)), int(rng.integers(1, LONGEST_GAP + 1))
            added = "".join(rng.choice(bases, length))
            read = read[:place] + (added + read[place:] if rng.random() < 0.5 else read[place + length :])
        is_wrong = rng.random(len(read)) < WRONG
        read = "".join(str(rng.choice(bases)) if wrong else base for base, wrong in zip(read, is_wrong, strict=True))
        strand = "+" if rng.random() < 0.5 else "-"
        if strand == "-":
            read = read.translate(complement)[::-1]
        name = f"read{number + 1}_at_{start + 1}{strand}"
        if number >= N_READS:
            name, read = f"read{number + 1}_of_nothing", "".join(rng.choice(bases, READ))
        quality = "".join(chr(33 + int(value)) for value in rng.integers(28, 41, len(read)))
        records.append(f"@{name}\n{read}\n+\n{quality}\n")
    return "".join(records)


if __name__ == "__main__":
    main()

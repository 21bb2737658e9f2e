"""Runs that the benchmarks search, with their databases and tolerances."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["DATASETS", "Dataset", "read_fasta", "with_reversed_decoys"]

PPM, DALTON = "ppm", "Da"


@dataclass(frozen=True)
class Dataset:
    """Spectra, a database and the tolerances of both masses; paths are relative to the data folder.

    `proteome` is the FASTA of the organism in the sample if the database has foreign proteomes too (an entrapment search), else empty.
    """

    name: str
    spectra: tuple[str, ...]
    database: str
    preset: str = "high-resolution"
    precursor: tuple[float, str] = (10.0, PPM)
    fragment: tuple[float, str] = (20.0, PPM)
    proteome: str = ""
    peers: tuple[str, ...] = ("comet", "xtandem", "sagepy")


QC_SHEW = ("spectra/qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML",)
SHEWANELLA = "spectra/qc_shew_qe/Shewanella_oneidensis_MR1_2010-04-22_Tryp_Pig_Bov.fasta"
METAPROTEOME = ("spectra/metaproteome_qe/2016_Jan_12_QE2_47_trimmed.mzML",)
YEAST_VELOS = ("spectra/SmallCalibratible_Yeast.mzML",)
YEAST = "proteomes/yeast_2021_04_reviewed_UPS.fasta"
HELA_A549 = ("spectra/hela_velos/TaGe_SA_HeLa_04_subset_longestSeq.mzML", "spectra/hela_velos/TaGe_SA_A549_3_snip.mzML")
HUMAN = "proteomes/human.small.comet.fasta"
ECOLI_LTQ = ("spectra/Ecoli_MS2_small.mzML",)
ECOLI = "proteomes/ecoli_13spiked_2021_04.fasta"
BSA = ("spectra/bsa_ltq/BSA1.mzML",)
EIGHTEEN_PROTEINS = "proteomes/18Protein_SoCe_Tr_detergents_trace.fasta"
FIVE_PROTEOMES = "proteomes/combo.fasta"

LOW_RESOLUTION = {"preset": "low-resolution", "fragment": (0.5, DALTON)}

DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("qc_shew", QC_SHEW, SHEWANELLA),
        Dataset("metaproteome", METAPROTEOME, "spectra/metaproteome_qe/metapeptides.fasta"),
        Dataset("yeast_velos", YEAST_VELOS, YEAST),
        Dataset("hela_a549", HELA_A549, HUMAN),
        Dataset("ecoli_ltq", ECOLI_LTQ, ECOLI, **LOW_RESOLUTION),
        Dataset("bsa1", BSA, EIGHTEEN_PROTEINS, **LOW_RESOLUTION),
        Dataset("bench", ("spectra/bench_hires_2269.mgf",), FIVE_PROTEOMES),
        Dataset("bench_x10", ("spectra/bench_x10.mgf",), FIVE_PROTEOMES),
        Dataset("entrapment_shew", QC_SHEW, FIVE_PROTEOMES, proteome=SHEWANELLA),
        Dataset("entrapment_yeast", YEAST_VELOS, FIVE_PROTEOMES, proteome=YEAST),
        Dataset("entrapment_human", HELA_A549, FIVE_PROTEOMES, proteome=HUMAN),
        Dataset("entrapment_ecoli", ECOLI_LTQ, FIVE_PROTEOMES, proteome=ECOLI, **LOW_RESOLUTION),
    )
}


def read_fasta(path: Path) -> dict[str, str]:
    """Return sequences by accession (the first word of the header), in the order of the file."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith(">"):
            lines = parts.setdefault(line[1:].split()[0], [])
        else:
            lines.append(line.strip().rstrip("*").upper())
    return {accession: "".join(lines) for accession, lines in parts.items()}


def with_reversed_decoys(database: Path, out: Path) -> None:
    """Write the database, followed by each of its proteins reversed under ``DECOY_`` + accession."""
    proteins = read_fasta(database)
    with out.open("w") as file:
        file.writelines(f">{accession}\n{sequence}\n" for accession, sequence in proteins.items())
        file.writelines(f">DECOY_{accession}\n{sequence[::-1]}\n" for accession, sequence in proteins.items())

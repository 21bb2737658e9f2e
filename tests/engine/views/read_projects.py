"""Projects with alignments of reads for tests of views: reads cut from a genome, with errors and gaps, really aligned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.project import Project

BASES = "ACGT"
_COMPLEMENT = str.maketrans("ACGT", "TGCA")
N_STRANGERS = 3
"""Reads of chance, which are of no place."""


def cut_reads(genome: str, n: int, seed: int = 5, length: int = 120) -> list[tuple[str, str, str]]:
    """Name, letters and qualities of reads from both strands: each fiftieth letter is another one, and of low quality; up to two gaps."""
    random = np.random.default_rng(seed)
    reads = []
    for k in range(n):
        # Most from the middle third, so that the depth has a shape.
        at = int(random.integers(0, len(genome) - length)) if k % 3 else int(random.triangular(0, len(genome) / 2, len(genome) - length))
        letters, qualities = list(genome[at : at + length]), random.integers(25, 41, length)
        for place in np.flatnonzero(random.random(length) < 0.02):
            letters[place] = str(random.choice([base for base in BASES if base != letters[place]]))
            qualities[place] = random.integers(5, 30)
        marks = [chr(33 + quality) for quality in qualities]
        for _ in range(k % 3):
            place, size = int(random.integers(20, length - 30)), int(random.integers(1, 5))
            if random.random() < 0.5:
                del letters[place : place + size], marks[place : place + size]
            else:
                letters[place:place], marks[place:place] = random.choice(list(BASES), size).tolist(), ["7"] * size
        read, quality = "".join(letters), "".join(marks)
        if k % 2:
            read, quality = read.translate(_COMPLEMENT)[::-1], quality[::-1]
        reads.append((f"read{k}_at_{at + 1}", read, quality))
    return reads


def write_fastq(path: Path, reads: list[tuple[str, str, str]]) -> Path:
    """Write reads with qualities."""
    path.write_text("".join(f"@{name}\n{letters}\n+\n{quality}\n" for name, letters, quality in reads), encoding="utf-8")
    return path


def read_files(folder: Path, genome: str, n_reads: int, *, has_qualities: bool = True, n_parts: int = 3) -> tuple[Path, Path]:
    """A FASTA file with parts of a genome, and reads of these: FASTQ, or FASTA."""
    folder.mkdir(parents=True, exist_ok=True)
    size = len(genome) // n_parts
    parts = [genome[k * size : (k + 1) * size] for k in range(n_parts)]
    texts = folder / "parts.fasta"
    texts.write_text("".join(f">part{k} of a genome\n{one}\n" for k, one in enumerate(parts)), encoding="utf-8")
    reads = [read for k, part in enumerate(parts) for read in cut_reads(part, n_reads // (k + 1), seed=5 + k)]
    random = np.random.default_rng(1)
    reads += [(f"stranger{k}", "".join(random.choice(list(BASES), 60)), "I" * 60) for k in range(N_STRANGERS)]
    patterns = write_fastq(folder / "reads.fastq", reads)
    if not has_qualities:
        patterns = folder / "reads.fasta"
        patterns.write_text("".join(f">{name}\n{letters}\n" for name, letters, _ in reads), encoding="utf-8")
    return texts, patterns


WITHIN: dict[str, Any] = {"mode": "within", "seed_length": 12, "has_qualities": False}
"""Whole reads, with a seed that few of the wrong parts have: most pairs have no alignment."""


def genome_of(shared_data: Path) -> str:
    """The beginning of the genome of lambda."""
    path = shared_data / "dna" / "dna_lambda.fasta"
    if not path.exists():
        pytest.skip("the genome of lambda is not there")
    return "".join(path.read_text().splitlines()[1:])[:6000]


def project_with_reads(folder: Path, genome: str, *, n_reads: int = 40, has_qualities: bool = True, **parameters: object) -> Project:
    """A project with one finished alignment of every read with every part."""
    from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
    from tests.searching import align_reads

    texts, patterns = read_files(folder.parent / f"{folder.name} files", genome, n_reads, has_qualities=has_qualities)
    usual = {"mode": "local", "strands": "both", "places": "every", "match": 1, "mismatch": -3}
    asked = ReadAlignmentParameters().changed(**{**usual, **parameters})
    align_reads(texts, patterns, None, asked, project_folder=folder, device="cpu")
    return Project.open(folder)

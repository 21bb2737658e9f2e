"""Projects with alignments of simulated reads, for tests of views: reads cut from a genome, with errors and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.project import Project

BASES = "ACGT"
_COMPLEMENT = str.maketrans("ACGT", "TGCA")
N_UNRELATED = 3
"""Number of random reads without an origin in the genome."""


def cut_reads(genome: str, n: int, seed: int = 5, length: int = 120) -> list[tuple[str, str, str]]:
    """Simulate reads of both strands and return their names, bases and qualities.

    About 2 % of the bases are substituted and of low quality. A read has up to two gaps.
    """
    random = np.random.default_rng(seed)
    reads = []
    for k in range(n):
        # A third of the reads favour the middle, for an uneven depth.
        at = int(random.integers(0, len(genome) - length)) if k % 3 else int(random.triangular(0, len(genome) / 2, len(genome) - length))
        bases, qualities = list(genome[at : at + length]), random.integers(25, 41, length)
        for position in np.flatnonzero(random.random(length) < 0.02):
            bases[position] = str(random.choice([base for base in BASES if base != bases[position]]))
            qualities[position] = random.integers(5, 30)
        marks = [chr(33 + quality) for quality in qualities]
        for _ in range(k % 3):
            position, size = int(random.integers(20, length - 30)), int(random.integers(1, 5))
            if random.random() < 0.5:
                del bases[position : position + size], marks[position : position + size]
            else:
                bases[position:position], marks[position:position] = random.choice(list(BASES), size).tolist(), ["7"] * size
        read, quality = "".join(bases), "".join(marks)
        if k % 2:
            read, quality = read.translate(_COMPLEMENT)[::-1], quality[::-1]
        reads.append((f"read{k}_at_{at + 1}", read, quality))
    return reads


def write_fastq(path: Path, reads: list[tuple[str, str, str]]) -> Path:
    """Write reads with qualities as FASTQ."""
    path.write_text("".join(f"@{name}\n{bases}\n+\n{quality}\n" for name, bases, quality in reads), encoding="utf-8")
    return path


def read_files(folder: Path, genome: str, n_reads: int, *, has_qualities: bool = True, n_parts: int = 3) -> tuple[Path, Path]:
    """Write parts of a genome as FASTA, and simulated reads of them as FASTQ or FASTA."""
    folder.mkdir(parents=True, exist_ok=True)
    size = len(genome) // n_parts
    parts = [genome[k * size : (k + 1) * size] for k in range(n_parts)]
    references = folder / "parts.fasta"
    references.write_text("".join(f">part{k} of a genome\n{part}\n" for k, part in enumerate(parts)), encoding="utf-8")
    reads = [read for k, part in enumerate(parts) for read in cut_reads(part, n_reads // (k + 1), seed=5 + k)]
    random = np.random.default_rng(1)
    reads += [(f"unrelated{k}", "".join(random.choice(list(BASES), 60)), "I" * 60) for k in range(N_UNRELATED)]
    reads_file = write_fastq(folder / "reads.fastq", reads)
    if not has_qualities:
        reads_file = folder / "reads.fasta"
        reads_file.write_text("".join(f">{name}\n{bases}\n" for name, bases, _ in reads), encoding="utf-8")
    return references, reads_file


WITHIN: dict[str, Any] = {"mode": "within", "seed_length": 12, "has_qualities": False}
"""Options for complete reads and a seed that most wrong parts lack: most pairs have no alignment."""


def genome_of(shared_data: Path) -> str:
    """Return the first 6,000 bases of the lambda genome."""
    path = shared_data / "dna" / "dna_lambda.fasta"
    if not path.exists():
        pytest.skip("the lambda genome is missing")
    return "".join(path.read_text().splitlines()[1:])[:6000]


def project_with_reads(folder: Path, genome: str, *, n_reads: int = 40, has_qualities: bool = True, **parameters: object) -> Project:
    """Return a project with one finished alignment of each read with each part."""
    from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
    from tests.searching import align_reads

    references, reads_file = read_files(folder.parent / f"{folder.name} files", genome, n_reads, has_qualities=has_qualities)
    defaults = {"mode": "local", "strands": "both", "mapping": "every", "match": 1, "mismatch": -3}
    settings = ReadAlignmentParameters().changed(**{**defaults, **parameters})
    align_reads(references, reads_file, None, settings, project_folder=folder, device="cpu")
    return Project.open(folder)

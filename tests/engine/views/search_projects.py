"""Projects with sequence searches among random proteins, for tests of views."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from proteoscope.engine.project import Project
from proteoscope.engine.results.counts import Count

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


def random_protein(random: np.random.Generator, length: int) -> str:
    """Return a sequence of random residues."""
    return "".join(random.choice(list(AMINO_ACIDS), length))


def relative(random: np.random.Generator, protein: str, share: float = 0.3, gap: int = 4) -> str:
    """Return a protein with a share of its residues substituted and a deletion in its middle."""
    residues = [str(random.choice(list(AMINO_ACIDS))) if random.random() < share else residue for residue in protein]
    middle = len(residues) // 2
    return "".join(residues[:middle] + residues[middle + gap :])


def write_fasta(path: Path, records: list[tuple[str, str]]) -> Path:
    """Write headers and sequences as FASTA."""
    path.write_text("".join(f">{header}\n{sequence}\n" for header, sequence in records), encoding="utf-8")
    return path


def search_files(folder: Path, n_queries: int = 3, n_relatives: int = 12, n_unrelated: int = 150) -> tuple[Path, Path]:
    """Write FASTA files of queries and of a database: increasingly distant relatives of each query, and unrelated proteins."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    queries = [(f"Q{k} query number {k}", random_protein(random, 120 + 60 * k)) for k in range(n_queries)]
    database = [
        (f"R{k}_{i} relative {i} of query {k}", relative(random, protein, 0.1 + 0.05 * i))
        for k, (_, protein) in enumerate(queries)
        for i in range(n_relatives)
    ]
    database += [(f"S{i} unrelated", random_protein(random, int(random.integers(60, 400)))) for i in range(n_unrelated)]
    return write_fasta(folder / "queries.fasta", queries), write_fasta(folder / "database.fasta", database)


def project_with_search(folder: Path, **files: int) -> Project:
    """Return a project with one finished sequence search."""
    from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
    from tests.searching import align

    queries, database = search_files(folder.parent / f"{folder.name} files", **files)
    align([queries], [database], None, SequenceSearchParameters(), project_folder=folder, device="cpu")
    return Project.open(folder)


def summary_of(run_id: str, *counts: Count) -> SimpleNamespace:
    """Return the part of a search summary that the window uses."""
    return SimpleNamespace(run_id=run_id, counts=lambda: list(counts))

"""Projects with sequence searches for tests of views: real searches of the engine among made-up proteins."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from proteoscope.engine.project import Project
from proteoscope.engine.results.counts import Count

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


def random_protein(random: np.random.Generator, length: int) -> str:
    """Residues of chance."""
    return "".join(random.choice(list(AMINO_ACIDS), length))


def relative(random: np.random.Generator, protein: str, share: float = 0.3, gap: int = 4) -> str:
    """A protein with a share of its residues changed, and a gap in its middle."""
    letters = [str(random.choice(list(AMINO_ACIDS))) if random.random() < share else letter for letter in protein]
    middle = len(letters) // 2
    return "".join(letters[:middle] + letters[middle + gap :])


def write_fasta(path: Path, records: list[tuple[str, str]]) -> Path:
    """Write headers and sequences."""
    path.write_text("".join(f">{header}\n{sequence}\n" for header, sequence in records), encoding="utf-8")
    return path


def search_files(folder: Path, n_queries: int = 3, n_relatives: int = 12, n_unrelated: int = 150) -> tuple[Path, Path]:
    """FASTA files of queries and of a database: relatives of each query, more and less alike, among strangers."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    queries = [(f"Q{k} query number {k}", random_protein(random, 120 + 60 * k)) for k in range(n_queries)]
    database = [
        (f"R{k}_{i} relative {i} of query {k}", relative(random, protein, 0.1 + 0.05 * i))
        for k, (_, protein) in enumerate(queries)
        for i in range(n_relatives)
    ]
    database += [(f"S{i} stranger", random_protein(random, int(random.integers(60, 400)))) for i in range(n_unrelated)]
    return write_fasta(folder / "queries.fasta", queries), write_fasta(folder / "database.fasta", database)


def project_with_search(folder: Path, **files: int) -> Project:
    """A project with one finished sequence search."""
    from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
    from tests.searching import align

    queries, database = search_files(folder.parent / f"{folder.name} files", **files)
    align([queries], [database], None, SequenceSearchParameters(), project_folder=folder, device="cpu")
    return Project.open(folder)


def said(run_id: str, *counts: Count) -> SimpleNamespace:
    """What the window asks of the summary of a search that a test stands in for."""
    return SimpleNamespace(run_id=run_id, counts=lambda: list(counts))

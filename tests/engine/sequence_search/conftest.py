"""Databases, schemes and an independent aligner for the tests of sequence search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.sequence_search.matrices import LETTERS, encode, read_matrix
from engine.sequence_search.scoring import ScoringScheme

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Packed databases of tests stay out of the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(folder))
    return folder


@pytest.fixture
def scheme():
    return lambda matrix="BLOSUM62", gap_open=11, gap_extend=1: ScoringScheme(read_matrix(matrix), gap_open, gap_extend)


@pytest.fixture
def codes():
    return lambda text: encode(np.frombuffer(text.encode(), np.uint8))


@pytest.fixture
def random_protein():
    def protein(seed: int, length: int, letters: str = AMINO_ACIDS) -> str:
        return "".join(np.random.default_rng(seed).choice(list(letters), length))

    return protein


@pytest.fixture
def fasta(tmp_path):
    def write(name: str, records) -> Path:
        path = tmp_path / name
        path.write_text("".join(f">{header}\n{sequence}\n" for header, sequence in records))
        return path

    return write


@pytest.fixture
def independent_score():
    """Scores by Biopython's aligner, with the letters that it lacks replaced as the help says."""
    from Bio.Align import PairwiseAligner
    from Bio.Align.substitution_matrices import Array

    def score(query: str, subject: str, scheme: ScoringScheme) -> int:
        matrix = Array(LETTERS, dims=2, data=scheme.matrix.scores.astype(float))
        aligner = PairwiseAligner(mode="local", substitution_matrix=matrix)
        aligner.open_gap_score, aligner.extend_gap_score = -scheme.first_residue_cost, -scheme.gap_extend
        return int(aligner.score(query, subject))

    return score

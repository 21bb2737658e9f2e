"""Made-up sequences, by which the speed of devices is measured."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.execution.work import Sample
from proteoscope.engine.sequence_search.scoring import work_of
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme

__all__ = ["sample_sequences"]

_SUBJECTS, _QUERIES = 60_000, 20
_MEAN_LOG, _SPREAD = 5.75, 0.6  # of lengths, like those of proteins
_RESIDUES = 20


def sample_sequences(size: float, seed: int) -> Sample:
    """Return queries and a database; of a small sample both are small."""
    rng = np.random.default_rng(seed)
    n_queries = max(1, round(_QUERIES * size ** (1 / 3)))
    n = max(20, round(_SUBJECTS * size * _QUERIES / n_queries))
    lengths = np.sort(np.clip(rng.lognormal(_MEAN_LOG, _SPREAD, n), 20, 5000).astype(np.int64))
    residues = rng.integers(0, _RESIDUES, int(lengths.sum()), np.int8)
    own = np.clip(rng.lognormal(_MEAN_LOG, _SPREAD, n_queries), 20, 5000).astype(np.int64)
    state = {"residues": rng.integers(0, _RESIDUES, int(own.sum()), np.int8), "offsets": offsets_of(own)}
    return Sample(work_of(residues, offsets_of(lengths), ScoringScheme(read_matrix("BLOSUM62"), 11, 1)), [state])

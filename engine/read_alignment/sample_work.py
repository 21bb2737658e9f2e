"""Made-up reads with the texts that they come from, by which the speed of devices is measured."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.execution.work import Sample
from proteoscope.engine.read_alignment.scoring import work_of
from proteoscope.kernels.gapsmis_layouts import GapRules, Sequences

__all__ = ["sample_reads"]

_PAIRS, _TEXT, _PATTERN = 100_000, 250, 200
_DRAWN = 20_000  # pairs at random, which then come again
_CODES = np.array([0, 2, 6, 19], np.int8)  # A, C, G, T
_MATCH, _MISMATCH, _GAPS = 2, -3, 2


def sample_reads(size: float, seed: int) -> Sample:
    """Pairs of a text and a piece of it with some wrong letters, all with alignments."""
    rng = np.random.default_rng(seed)
    n = max(8, round(_PAIRS * size))
    texts = _CODES[rng.integers(0, 4, (min(n, _DRAWN), _TEXT))]
    patterns = texts[:, :_PATTERN].copy()
    is_wrong = rng.random(patterns.shape) < 0.02
    patterns[is_wrong] = _CODES[rng.integers(0, 4, int(is_wrong.sum()))]
    texts, patterns = (np.resize(every, (n, every.shape[1])) for every in (texts, patterns))
    matrix = np.full((32, 32), _MISMATCH, np.int32)
    np.fill_diagonal(matrix, _MATCH)
    rules = GapRules(matrix, 5, 2, _GAPS)
    texts_of, patterns_of = (Sequences(every.ravel(), np.arange(n + 1) * every.shape[1]) for every in (texts, patterns))
    pairs = np.arange(n)
    return Sample(work_of(texts_of, patterns_of, rules), [{"text": pairs, "pattern": pairs, "traces": True}])

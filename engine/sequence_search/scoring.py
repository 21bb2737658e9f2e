"""Scores of every query and every subject, exactly, on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.jobs.progress import Progress
from engine.sequences.scheme import ScoringScheme

__all__ = ["STEP_CELLS", "score_all"]

STEP_CELLS = 1_000_000
"""Cells in a step of the progress."""
_CELLS_OF_PART = 30_000_000_000  # of a thread, between two advances of the progress: two seconds with AVX-512


def score_all(
    queries: Sequence[NDArray[np.int8]],
    residues: NDArray[np.int8],
    offsets: NDArray[np.int64],
    scheme: ScoringScheme,
    threads: int,
    progress: Progress,
) -> NDArray[np.int32]:
    """Smith-Waterman scores of every query and every subject, exact.

    Parameters
    ----------
    queries : residue codes of each. residues, offsets : the subjects' codes, and (n + 1,) int64 where each begins.
    progress : advances by one for each million cells.

    Returns
    -------
    (queries, subjects) int32. A sequence without residues scores 0.

    Raises
    ------
    ParameterError : a score could pass 32 bits. Cancelled : the user asked to stop.
    """
    from kernels.cpu.alignment import AlignmentSearch
    from kernels.cpu.processor import Processor

    n, n_rows = len(offsets) - 1, sum(map(len, queries))
    scheme.check(max(map(len, queries), default=0), int(np.diff(offsets).max(initial=0)))
    scores = np.empty((len(queries), n), np.int32)
    search = AlignmentSearch(Processor(threads), residues, offsets)
    parts = max(1, n_rows * int(offsets[-1]) // (_CELLS_OF_PART * threads))
    cuts = np.unique([0, *np.searchsorted(offsets, offsets[-1] * np.arange(1, parts) / parts).tolist(), n])
    for first, last in pairwise(cuts.tolist()):
        arguments = (scheme.matrix.scores, scheme.gap_open, scheme.gap_extend, scores, first, last)
        with closing(search.score(queries, *arguments)) as steps:
            for _ in steps:
                progress.check()
        done, before = (n_rows * int(offsets[end]) // STEP_CELLS for end in (last, first))
        progress.advance(done - before)
    return scores

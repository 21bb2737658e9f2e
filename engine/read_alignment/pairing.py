"""Every pattern with every text, or the i-th with the i-th, in rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.read_alignment.results import AlignmentRows, better_strands
from proteoscope.engine.read_alignment.scoring import STEP_CELLS, align_pairs, work_of
from proteoscope.engine.read_alignment.sequences import ALPHABET, NamedSequences, with_other_strands
from proteoscope.kernels.gapsmis_layouts import Alignments, GapRules

__all__ = ["EveryPair"]

_PAIRS_OF_ROUND = 1 << 17
_CELLS_OF_ROUND = 2e11


class EveryPair:
    """Aligns pairs round by round; a round takes some seconds and some hundred megabytes at the most.

    Parameters
    ----------
    pairs : the i-th pattern with the i-th text alone, else every pattern with every text, one after the other.
    both_strands : of nucleotides, the better of a pattern and its reverse complement is told.
    """

    def __init__(
        self,
        texts: NamedSequences,
        patterns: NamedSequences,
        rules: GapRules,
        resources: Resources,
        *,
        pairs: bool,
        both_strands: bool,
    ) -> None:
        self._texts, self._patterns, self._rules, self._resources, self._pairs = texts, patterns, rules, resources, pairs
        self._is_of_both = both_strands and patterns.are_nucleotides
        self._strands = with_other_strands(patterns.sequences) if self._is_of_both else patterns.sequences
        self._n = len(patterns) if pairs else len(texts) * len(patterns)
        self._session: Session
        self.cells, self.devices = 0, list[str]()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Texts and patterns on the devices, as long as the block lasts."""
        with Executor(self._resources).session(work_of(self._texts.sequences, self._strands, self._rules)) as session:
            self._session = session
            yield
            self.devices += [share.device for share in session.shares()] or list(session.devices)

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Pairs that are aligned together: the first, and the one behind the last."""
        mean = (1 + self._texts.lengths.mean()) * (1 + self._patterns.lengths.mean()) * (self._rules.maximum_gaps + 1)
        size = max(1, min(_PAIRS_OF_ROUND, int(_CELLS_OF_ROUND / mean)))
        for first in range(0, self._n, size):
            yield first, min(self._n, first + size)

    def rows(self, first: int, last: int) -> AlignmentRows:
        """Rows of the pairs `first:last`.

        Raises
        ------
        Cancelled : the user asked to stop.
        """
        numbers = np.arange(first, last)
        text_of, pattern_of = (numbers, numbers) if self._pairs else (numbers % len(self._texts), numbers // len(self._texts))
        layers = (self._rules.maximum_gaps + 1) * (1 + self._is_of_both)
        cells = int((self._texts.lengths[text_of] * self._patterns.lengths[pattern_of]).sum()) * layers
        self._resources.progress.stage("Aligning", cells // STEP_CELLS)
        found, is_reverse = self._aligned(text_of, pattern_of)
        self.cells += cells
        aligned = pattern_of + is_reverse * len(self._patterns)
        cigars = kernels.cpu.cigars.cigars_of(self._texts.sequences, self._strands, text_of, aligned, found, ALPHABET, self._texts.unknown)
        return AlignmentRows(text_of, pattern_of, found, is_reverse, cigars)

    def _aligned(self, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64]) -> tuple[Alignments, NDArray[np.bool_]]:
        if not self._is_of_both:
            return align_pairs(self._session, text_of, pattern_of), np.zeros(len(text_of), np.bool_)
        n = len(text_of)
        other = pattern_of + len(self._patterns)
        found = align_pairs(self._session, np.concatenate([text_of, text_of]), np.concatenate([pattern_of, other]))
        return better_strands(Alignments(*(column[:n] for column in found)), Alignments(*(column[n:] for column in found)))

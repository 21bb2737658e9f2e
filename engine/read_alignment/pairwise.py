"""Alignment of each read with each reference, or of the i-th read with the i-th reference, in rounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from proteoscope import kernels
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.read_alignment.results import AlignmentRows, RoundScorer, ScoredRound, better_strands
from proteoscope.engine.read_alignment.scoring import STEP_CELLS, align_pairs, build_workload
from proteoscope.engine.read_alignment.sequences import ALPHABET, NamedSequences, with_other_strands
from proteoscope.kernels.gapsmis_layouts import Alignments, GapRules, Sequences

__all__ = ["PairingPlan", "plan_pairs"]

_PAIRS_OF_ROUND = 1 << 17
_CELLS_OF_ROUND = 2e11


@dataclass(frozen=True)
class PairingPlan:
    """Plan by which pairs are aligned in rounds, each of at most several seconds and several hundred megabytes.

    Attributes
    ----------
    texts, patterns : NamedSequences
        References and reads.
    strands : Sequences
        Reads to align, followed by their reverse complements if `is_of_both`.
    rules : GapRules
        Scores and limits of the alignments.
    are_pairs : bool
        True to align the i-th read only with the i-th reference, False to align every read with every reference.
    is_of_both : bool
        True to report the better alignment of a read and its reverse complement.
    """

    texts: NamedSequences
    patterns: NamedSequences
    strands: Sequences
    rules: GapRules
    are_pairs: bool
    is_of_both: bool

    @contextmanager
    def scoring(self, resources: Resources) -> Iterator[RoundScorer]:
        """Yield a function that scores rounds; references and reads remain on the devices during the `with` block."""
        with Executor(resources).session(build_workload(self.texts.sequences, self.strands, self.rules)) as session:
            yield lambda first, last: _score(self, session, resources, first, last)

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of pairs (first, end) that are aligned together."""
        n = len(self.patterns) if self.are_pairs else len(self.texts) * len(self.patterns)
        mean = (1 + self.texts.lengths.mean()) * (1 + self.patterns.lengths.mean()) * (self.rules.maximum_gaps + 1)
        size = max(1, min(_PAIRS_OF_ROUND, int(_CELLS_OF_ROUND / mean)))
        return ((first, min(n, first + size)) for first in range(0, n, size))


def plan_pairs(texts: NamedSequences, patterns: NamedSequences, rules: GapRules, *, are_pairs: bool, both_strands: bool) -> PairingPlan:
    """Return the plan by which pairs of reads and references are aligned.

    Parameters
    ----------
    texts, patterns : NamedSequences
        References and reads.
    rules : GapRules
        Scores and limits of the alignments.
    are_pairs : bool
        True to align the i-th read only with the i-th reference.
    both_strands : bool
        True to align also the reverse complements of nucleotide reads.
    """
    is_of_both = both_strands and patterns.are_nucleotides
    strands = with_other_strands(patterns.sequences) if is_of_both else patterns.sequences
    return PairingPlan(texts, patterns, strands, rules, are_pairs, is_of_both)


def _score(plan: PairingPlan, session: Session, resources: Resources, first: int, last: int) -> ScoredRound:
    """Return the alignments of the pairs `first:last`.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    texts, patterns, numbers = plan.texts, plan.patterns, np.arange(first, last)
    text_of, pattern_of = (numbers, numbers) if plan.are_pairs else (numbers % len(texts), numbers // len(texts))
    layers = (plan.rules.maximum_gaps + 1) * (1 + plan.is_of_both)
    cells = int((texts.lengths[text_of] * patterns.lengths[pattern_of]).sum()) * layers
    resources.progress.stage("Aligning", cells // STEP_CELLS)
    n, is_reverse = last - first, np.zeros(last - first, np.bool_)
    if plan.is_of_both:
        both = align_pairs(session, np.concatenate([text_of, text_of]), np.concatenate([pattern_of, pattern_of + len(patterns)]))
        result, is_reverse = better_strands(Alignments(*(column[:n] for column in both)), Alignments(*(column[n:] for column in both)))
    else:
        result = align_pairs(session, text_of, pattern_of)
    aligned = pattern_of + is_reverse * len(patterns)
    cigars = kernels.cpu.cigars.cigars_of(texts.sequences, plan.strands, text_of, aligned, result, ALPHABET, texts.unknown)
    return ScoredRound.of(AlignmentRows(text_of, pattern_of, result, is_reverse, cigars), cells, session)

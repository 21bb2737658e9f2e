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
    references, reads : NamedSequences
        References and reads.
    strands : Sequences
        Reads to align, followed by their reverse complements if `has_both_strands`.
    rules : GapRules
        Scores and limits of the alignments.
    are_pairs : bool
        True to align the i-th read only with the i-th reference, False to align every read with every reference.
    has_both_strands : bool
        True to report the better alignment of a read and its reverse complement.
    """

    references: NamedSequences
    reads: NamedSequences
    strands: Sequences
    rules: GapRules
    are_pairs: bool
    has_both_strands: bool

    @contextmanager
    def scoring(self, resources: Resources) -> Iterator[RoundScorer]:
        """Yield a function that scores rounds; references and reads remain on the devices during the `with` block."""
        with Executor(resources).session(build_workload(self.references.sequences, self.strands, self.rules)) as session:
            yield lambda first, last: _score(self, session, resources, first, last)

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of pairs (first, end) that are aligned together."""
        n = len(self.reads) if self.are_pairs else len(self.references) * len(self.reads)
        mean = (1 + self.references.lengths.mean()) * (1 + self.reads.lengths.mean()) * (self.rules.maximum_gaps + 1)
        size = max(1, min(_PAIRS_OF_ROUND, int(_CELLS_OF_ROUND / mean)))
        return ((first, min(n, first + size)) for first in range(0, n, size))


def plan_pairs(references: NamedSequences, reads: NamedSequences, rules: GapRules, *, are_pairs: bool, both_strands: bool) -> PairingPlan:
    """Return the plan by which pairs of reads and references are aligned.

    Parameters
    ----------
    references, reads : NamedSequences
        References and reads.
    rules : GapRules
        Scores and limits of the alignments.
    are_pairs : bool
        True to align the i-th read only with the i-th reference.
    both_strands : bool
        True to align also the reverse complements of nucleotide reads.
    """
    has_both_strands = both_strands and reads.are_nucleotides
    strands = with_other_strands(reads.sequences) if has_both_strands else reads.sequences
    return PairingPlan(references, reads, strands, rules, are_pairs, has_both_strands)


def _score(plan: PairingPlan, session: Session, resources: Resources, first: int, last: int) -> ScoredRound:
    """Return the alignments of the pairs `first:last`.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    references, reads, numbers = plan.references, plan.reads, np.arange(first, last)
    reference_of, read_of = (numbers, numbers) if plan.are_pairs else (numbers % len(references), numbers // len(references))
    layers = (plan.rules.maximum_gaps + 1) * (1 + plan.has_both_strands)
    cells = int((references.lengths[reference_of] * reads.lengths[read_of]).sum()) * layers
    resources.progress.stage("Aligning", cells // STEP_CELLS)
    n, is_reverse = last - first, np.zeros(last - first, np.bool_)
    if plan.has_both_strands:
        both = align_pairs(session, np.concatenate([reference_of, reference_of]), np.concatenate([read_of, read_of + len(reads)]))
        result, is_reverse = better_strands(Alignments(*(column[:n] for column in both)), Alignments(*(column[n:] for column in both)))
    else:
        result = align_pairs(session, reference_of, read_of)
    aligned = read_of + is_reverse * len(reads)
    cigars = kernels.cpu.cigars.alignment_cigars(
        references.sequences, plan.strands, reference_of, aligned, result, ALPHABET, references.unknown
    )
    return ScoredRound.from_session(AlignmentRows(reference_of, read_of, result, is_reverse, cigars), cells, session)

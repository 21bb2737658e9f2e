"""Mapping of reads onto long references: candidate positions by minimisers on both strands, then exact alignment in the best window.

Without mapping, each read is aligned with each reference, or the i-th read with the i-th reference. Reads or pairs are processed in rounds:
a round is a batch that fits into the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.candidate_positions import CandidatePositions, best_positions, mapping_qualities
from proteoscope.engine.read_alignment.fitting import are_far_longer
from proteoscope.engine.read_alignment.mates import InsertRange, joint_choice, learn_insert_sizes, proper_pairs, rescue_windows
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.results import AlignmentRows, RoundScorer, ScoredRound, better_strands
from proteoscope.engine.read_alignment.scoring import STEP_CELLS, align_pairs, build_workload
from proteoscope.engine.read_alignment.sequences import ALPHABET, NamedSequences, bases, with_other_strands
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.kernels.device import stop_flag
from proteoscope.kernels.gapsmis_layouts import Alignments, GapRules, Sequences

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.minimisers import MinimiserIndex

__all__ = ["MappingPlan", "PairingPlan", "QuietProgress", "are_mapped", "index_references", "plan_pairs", "score_reads", "with_inserts"]

_PAIRS_OF_ROUND = 1 << 17
_CELLS_OF_ROUND = 2e11


@dataclass(frozen=True)
class PairingPlan:
    """Plan for aligning pairs in rounds, each of at most several seconds and several hundred megabytes.

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
        True to align also the reverse complement of each read, and to report the better of the two alignments.
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
    """Return the plan for aligning pairs of reads and references.

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


_READS_OF_ROUND, _BASES_OF_ROUND = 1 << 17, 1 << 26
_PAIRS_TO_LEARN = 1 << 14
_READS_OF_BATCH = 1 << 12  # a few hundredths of a second of work
_WORDS_OF_BATCH = 1 << 22
_SLACKS = 6, 16  # diagonals on each side of the window, tried in this order
_CODES = np.array([SYMBOLS.index(base) for base in "ACGT"])


def are_mapped(references: NamedSequences, reads: NamedSequences, parameters: ReadAlignmentParameters, *, pairs: bool) -> bool:
    """Return True if reads are mapped.

    The parameter `mapping` decides this, unless it is ``auto``. With ``auto``, nucleotide reads are mapped if the references are far
    longer. They are not mapped in the mode ``prefix`` or in pairs, which determine the positions of reads.
    """
    if parameters.mapping != "auto":
        return parameters.mapping == "seeds"
    total, longest = int(references.lengths.sum()), int(reads.lengths.max(initial=0))
    are_nucleotides = references.are_nucleotides and reads.are_nucleotides
    return are_far_longer(total, longest) and are_nucleotides and parameters.mode != "prefix" and not pairs


def index_references(references: NamedSequences, parameters: ReadAlignmentParameters, threads: int, progress: Progress) -> MinimiserIndex:
    """Return the minimiser index of the references.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    k, w, base_codes, codes = parameters.minimiser_length, parameters.minimiser_window, bases(), references.sequences.codes
    starts, lengths = references.sequences.offsets[:-1], references.lengths
    begins = starts + np.arange(len(references)) * kernels.cpu.minimisers.SPACING
    chunks = [
        (text, first, min(length - k + 1, first + _WORDS_OF_BATCH))
        for text, length in enumerate(lengths.tolist())
        for first in range(0, length - k + 1, _WORDS_OF_BATCH)
    ]

    def found(partition: tuple[int, int, int]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        text, first, last = partition
        workspace, begin = last - first + 2 * w, starts[text]
        hashes, entries = np.empty(workspace, np.uint64), np.empty(workspace, np.int64)
        n = kernels.cpu.minimisers.find_minimisers(
            codes, begin, begin + lengths[text], first, last, base_codes, k, w, begins[text], hashes, entries
        )
        return hashes[:n].copy(), entries[:n].copy()

    progress.stage("Indexing references", len(chunks))
    parts = run_on_threads(found, chunks, threads, progress)
    hashes = np.concatenate([np.empty(0, np.uint64), *(part[0] for part in parts)])
    entries = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
    return kernels.cpu.minimisers.build_index(hashes, entries, lengths, k, w)


@dataclass(frozen=True)
class MappingPlan:
    """Plan for mapping reads in rounds.

    Attributes
    ----------
    references, reads : NamedSequences
        References and reads.
    index : MinimiserIndex
        Minimisers of the references.
    rules : GapRules
        Scores and limits of the alignments; the mode is WITHIN or LOCAL.
    parameters : ReadAlignmentParameters
        Parameters of the search.
    inserts : InsertRange or None
        Range of fragment lengths; None without mates.
    """

    references: NamedSequences
    reads: NamedSequences
    index: MinimiserIndex
    rules: GapRules
    parameters: ReadAlignmentParameters
    inserts: InsertRange | None = None

    @property
    def difference(self) -> int:
        """Change of the score by one mismatched base, at least 1."""
        matrix = self.rules.matrix[np.ix_(_CODES, _CODES)]
        return max(1, int(matrix.max() - matrix.min()))

    @contextmanager
    def scoring(self, resources: Resources) -> Iterator[RoundScorer]:
        """Yield a function that scores a round, given the range of its reads; rounds are independent of each other."""
        yield lambda first, last: score_reads(self, resources, first, last)

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of reads (first, end) that are mapped together."""
        offsets, n, first = self.reads.sequences.offsets, len(self.reads), 0
        while first < n:
            last = int(np.searchsorted(offsets, offsets[first] + _BASES_OF_ROUND, side="right")) - 1
            # Mates stay together.
            last = min(n, first + min(_READS_OF_ROUND, max(2, (last - first) // 2 * 2)))
            yield first, last
            first = last


def with_inserts(plan: MappingPlan, resources: Resources) -> MappingPlan:
    """Return the plan with the range of fragment lengths, which is given in the parameters, or estimated from the first pairs of mates.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    parameters = plan.parameters
    if parameters.maximum_insert:
        return replace(plan, inserts=InsertRange(parameters.minimum_insert, parameters.maximum_insert))
    first, last = next(plan.rounds(), (0, 0))
    inserts = learn_insert_sizes(score_reads(plan, resources, first, min(last, 2 * _PAIRS_TO_LEARN)).rows)
    resources.progress.message(inserts.sentence)
    return replace(plan, inserts=inserts)


def score_reads(plan: MappingPlan, resources: Resources, first: int, last: int) -> ScoredRound:
    """Return the alignments of the reads `first:last`, each read at its best position.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    reads = Sequences(plan.reads.sequences.codes, plan.reads.sequences.offsets[first : last + 1])
    strands, lengths = with_other_strands(reads), np.diff(reads.offsets)
    candidates = _candidates(plan, resources, reads)
    if plan.inserts is not None:
        more = rescue_windows(candidates, lengths, plan.references.lengths, plan.inserts, plan.parameters.mapping_tolerance)
        candidates = candidates.joined(more)
    windows = _windows(plan, candidates)
    with Executor(resources).session(build_workload(windows, strands, plan.rules)) as session:
        chosen, quality, scored = _choose_candidates(plan, candidates, lengths, session)
        result, traced = _trace(plan, resources, session, windows, strands, candidates, chosen)
    computed = np.concatenate([scored, traced])
    cells = int(((candidates.end - candidates.begin)[computed] * lengths[candidates.read[computed]]).sum()) * (plan.rules.maximum_gaps + 1)
    n, read = last - first, candidates.read[chosen]
    rows, window_of = Alignments.none(n, plan.rules.maximum_gaps), np.zeros(n, np.int64)
    reference_of, is_reverse, qualities = np.full(n, -1, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.int32)
    # Scores of zero or less count as no alignment.
    is_placed = result.score > 0
    chosen, read = chosen[is_placed], read[is_placed]
    for column, values in zip(rows, result, strict=True):
        column[read] = values[is_placed]
    window_of[read], reference_of[read], is_reverse[read] = chosen, candidates.text[chosen], candidates.is_reverse[chosen] == 1
    qualities[read] = quality[is_placed]
    cigars = kernels.cpu.cigars.alignment_cigars(
        windows, strands, window_of, np.arange(n) + n * is_reverse, rows, ALPHABET, plan.references.unknown
    )
    for column in (rows.text_start, rows.text_end):
        column[read] += candidates.begin[chosen].astype(np.int32)
    is_proper = None
    if plan.reads.are_mates:
        is_proper = proper_pairs(reference_of, rows, is_reverse, plan.inserts)
    return ScoredRound.from_session(
        AlignmentRows(reference_of, np.arange(first, last), rows, is_reverse, cigars, qualities, is_proper), cells, session
    )


def _candidates(plan: MappingPlan, resources: Resources, reads: Sequences) -> CandidatePositions:
    """Return the candidate positions of reads, found by minimisers."""
    tolerance, rules = plan.parameters.mapping_tolerance, plan.rules
    rule = np.array([tolerance, tolerance * rules.maximum_gaps, plan.difference, rules.gap_open, rules.gap_extend], np.int64)
    n, base_codes, stop = len(reads.offsets) - 1, bases(), stop_flag()
    result, counts = (
        np.zeros((n, kernels.cpu.minimisers.MAXIMUM_CANDIDATES, kernels.cpu.minimisers.CANDIDATE_FIELDS), np.int64),
        np.zeros(n, np.int64),
    )

    def find(first: int) -> None:
        last = min(n, first + _READS_OF_BATCH)
        kernels.cpu.minimisers.find_candidates(reads.codes, reads.offsets, first, last, base_codes, plan.index, rule, result, counts, stop)

    run_on_threads(find, range(0, n, _READS_OF_BATCH), resources.threads, resources.progress, stop=stop)
    is_one = np.arange(kernels.cpu.minimisers.MAXIMUM_CANDIDATES) < counts[:, None]
    read, _ = np.nonzero(is_one)
    positions = CandidatePositions(read, *result[is_one].T)
    return positions if plan.parameters.strands == "both" else positions.some(positions.is_reverse == 0)


def _windows(plan: MappingPlan, candidates: CandidatePositions) -> Sequences:
    """Return the sections of the references around candidate positions."""
    offsets = segment_offsets(candidates.end - candidates.begin)
    codes, references = np.empty(offsets[-1], np.int8), plan.references.sequences
    kernels.cpu.strands.copy_segments(references.codes, references.offsets[candidates.text] + candidates.begin, offsets, codes)
    return Sequences(codes, offsets)


def _choose_candidates(
    plan: MappingPlan, candidates: CandidatePositions, lengths: NDArray[np.int64], session: Session
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the best candidate of each read that has candidates, the mapping quality of each, and all candidates that were scored.

    The only candidate of a read is not scored, unless its mate has several candidates.
    """
    n = len(lengths)
    count = np.bincount(candidates.read, minlength=n)
    is_open = count > 1
    if plan.inserts is not None:
        is_open = np.repeat(is_open[0::2] | is_open[1::2], 2)
    scored = np.flatnonzero(is_open[candidates.read])
    result = _align(plan, session, candidates, lengths, scored, traces=False)
    open_ones, ends = candidates.some(scored), candidates.begin[scored] + result.text_end
    if plan.inserts is None:
        best = best_positions(open_ones, result.score, ends, lengths)
    else:
        best = joint_choice(open_ones, result.score, ends, lengths, plan.inserts, plan.difference, plan.parameters.mapping_tolerance)
    chosen, lead = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    rivals = np.zeros(n, np.int64)
    only = np.flatnonzero(~is_open[candidates.read])
    chosen[candidates.read[only]] = only
    chosen[best.read], lead[best.read], rivals[best.read] = scored[best.candidate], best.lead, best.rivals
    placed = np.flatnonzero(chosen >= 0)
    quality = mapping_qualities(lead[placed], rivals[placed], candidates.votes[chosen[placed]], plan.difference)
    return chosen[placed], quality, scored


def _trace(
    plan: MappingPlan,
    resources: Resources,
    session: Session,
    windows: Sequences,
    strands: Sequences,
    candidates: CandidatePositions,
    chosen: NDArray[np.int64],
) -> tuple[Alignments, NDArray[np.int64]]:
    """Return the alignments of the candidates `chosen`, and the candidates whose alignments the devices computed.

    If a comparison of bases proves that the best alignment of a read has no gap, this alignment is returned. Without GPUs, the CPU then
    tries alignments near the diagonal for the other reads, and accepts those that are provably optimal. The devices align the remaining
    reads.
    """
    slacks = () if resources.has_gpus else _SLACKS
    lengths = np.diff(strands.offsets)
    read_of = candidates.read[chosen] + candidates.is_reverse[chosen] * (len(lengths) // 2)

    def sure(part: slice) -> tuple[Alignments, NDArray[np.bool_]]:
        result, is_sure = kernels.cpu.ungapped.align_where_sure(windows, strands, plan.rules, chosen[part], read_of[part])
        for slack in slacks:
            others = np.flatnonzero(~is_sure)
            pairs = chosen[part][others], read_of[part][others]
            near, is_near = kernels.cpu.banded.align_where_near(windows, strands, plan.rules, *pairs, _CODES, slack)
            for column, values in zip(result, near, strict=True):
                column[others[is_near]] = values[is_near]
            is_sure[others[is_near]] = True
        return result, is_sure

    chunks = [slice(first, first + _READS_OF_BATCH) for first in range(0, len(chosen), _READS_OF_BATCH)]
    parts = run_on_threads(sure, chunks, resources.threads, resources.progress)
    if not parts:
        return Alignments.none(0, plan.rules.maximum_gaps), chosen
    result = Alignments(*(np.concatenate(columns) for columns in zip(*(part[0] for part in parts), strict=True)))
    others = np.flatnonzero(~np.concatenate([part[1] for part in parts]))
    aligned = _align(plan, session, candidates, lengths[: len(lengths) // 2], chosen[others], traces=True)
    for column, values in zip(result, aligned, strict=True):
        column[others] = values
    return result, chosen[others]


def _align(
    plan: MappingPlan,
    session: Session,
    candidates: CandidatePositions,
    lengths: NDArray[np.int64],
    some: NDArray[np.int64],
    *,
    traces: bool,
) -> Alignments:
    """Return the alignments of the candidates with the indices `some`."""
    if not len(some):
        return Alignments.none(0, plan.rules.maximum_gaps)
    return align_pairs(session, some, candidates.read[some] + candidates.is_reverse[some] * len(lengths), traces=traces)


class QuietProgress(Progress):
    """Progress of a round, which forwards messages to another progress, each only once, but does not forward steps.

    It is cancelled when the other progress is cancelled.

    Parameters
    ----------
    progress : Progress
        Progress that receives the messages.
    """

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._shown = set[str]()

    @property
    def is_cancelled(self) -> bool:
        """True if the user cancelled."""
        return self._progress.is_cancelled

    def check(self) -> None:
        """Raise `Cancelled` if the user cancelled."""
        self._progress.check()

    def message(self, text: str, level: str = "info") -> None:
        """Pass a message to the other progress, unless it was shown before."""
        if text not in self._shown:
            self._shown.add(text)
            self._progress.message(text, level)

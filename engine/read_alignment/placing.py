"""Places of reads in long texts: candidates by minimisers on both strands, then the exact alignment in the window of the best of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.fitting import are_far_longer
from proteoscope.engine.read_alignment.mates import Inserts, joint_choice, learnt_inserts, proper_pairs, rescue_windows
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.places import CandidatePlaces, best_places, mapping_qualities
from proteoscope.engine.read_alignment.results import AlignmentRows
from proteoscope.engine.read_alignment.scoring import align_pairs, work_of
from proteoscope.engine.read_alignment.sequences import ALPHABET, NamedSequences, bases, with_other_strands
from proteoscope.engine.sequences.matrices import LETTERS
from proteoscope.kernels.device import stop_flag
from proteoscope.kernels.gapsmis_layouts import Alignments, GapRules, Sequences

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.minimisers import MinimiserIndex

__all__ = ["Placing", "are_looked_for", "index_texts"]

_READS_OF_ROUND, _LETTERS_OF_ROUND = 1 << 17, 1 << 26
_PAIRS_TO_LEARN = 1 << 14
_READS_OF_PIECE = 1 << 12  # some hundredths of a second
_WORDS_OF_PIECE = 1 << 22
_SLACKS = 6, 16  # diagonals beside those of the window, first few of them
_CODES = np.array([LETTERS.index(letter) for letter in "ACGT"])


def are_looked_for(texts: NamedSequences, patterns: NamedSequences, parameters: ReadAlignmentParameters, *, pairs: bool) -> bool:
    """Whether places are looked for: where it is asked, or left to the program and the texts are nucleotides and far longer than the reads.

    Mode prefix and pairs name the place already.
    """
    if parameters.places != "auto":
        return parameters.places == "seeds"
    total, longest = int(texts.lengths.sum()), int(patterns.lengths.max(initial=0))
    are_nucleotides = texts.are_nucleotides and patterns.are_nucleotides
    return are_far_longer(total, longest) and are_nucleotides and parameters.mode != "prefix" and not pairs


def index_texts(texts: NamedSequences, parameters: ReadAlignmentParameters, threads: int, progress: Progress) -> MinimiserIndex:
    """The minimisers of texts.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    k, w, known, codes = parameters.minimiser_length, parameters.minimiser_window, bases(), texts.sequences.codes
    starts, lengths = texts.sequences.offsets[:-1], texts.lengths
    begins = starts + np.arange(len(texts)) * kernels.cpu.minimisers.SPACING
    pieces = [
        (text, first, min(length - k + 1, first + _WORDS_OF_PIECE))
        for text, length in enumerate(lengths.tolist())
        for first in range(0, length - k + 1, _WORDS_OF_PIECE)
    ]

    def found(piece: tuple[int, int, int]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        text, first, last = piece
        room, begin = last - first + 2 * w, starts[text]
        hashes, entries = np.empty(room, np.uint64), np.empty(room, np.int64)
        n = kernels.cpu.minimisers.find_minimisers(
            codes, begin, begin + lengths[text], first, last, known, k, w, begins[text], hashes, entries
        )
        return hashes[:n].copy(), entries[:n].copy()

    progress.stage("Indexing texts", len(pieces))
    parts = run_on_threads(found, pieces, threads, progress)
    hashes = np.concatenate([np.empty(0, np.uint64), *(part[0] for part in parts)])
    entries = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
    return kernels.cpu.minimisers.index_of(hashes, entries, lengths, k, w)


class Placing:
    """Places the reads of a run, round by round.

    Parameters
    ----------
    index : of the texts. rules : what an alignment may be, and what it scores; mode WITHIN or LOCAL.
    """

    def __init__(
        self,
        texts: NamedSequences,
        patterns: NamedSequences,
        index: MinimiserIndex,
        rules: GapRules,
        parameters: ReadAlignmentParameters,
        resources: Resources,
    ) -> None:
        self._texts, self._patterns, self._index, self._rules, self._resources = texts, patterns, index, rules, resources
        self._has_other_strand = parameters.strands == "both"
        matrix = rules.matrix[np.ix_(_CODES, _CODES)]
        self._difference = max(1, int(matrix.max() - matrix.min()))  # of the score, by one letter that is paired otherwise
        tolerance = self._tolerance = parameters.place_tolerance
        self._rule = np.array([tolerance, tolerance * rules.maximum_gaps, self._difference, rules.gap_open, rules.gap_extend], np.int64)
        self._inserts: Inserts | None = None
        self._quiet = _Quiet(resources.progress)
        self.cells, self.devices = 0, list[str]()

    def learn_inserts(self, parameters: ReadAlignmentParameters) -> None:
        """Learn, from the first pairs, how far apart mates are, where the parameters do not say.

        Raises
        ------
        Cancelled : the user asked to stop.
        """
        if parameters.maximum_insert:
            self._inserts = Inserts(parameters.minimum_insert, parameters.maximum_insert)
            return
        first, last = next(self.rounds(), (0, 0))
        self._inserts = learnt_inserts(self.rows(first, min(last, 2 * _PAIRS_TO_LEARN)))
        self.cells = 0
        self._resources.progress.message(self._inserts.sentence)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Nothing is held between two rounds."""
        yield

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Reads that are placed together: the first, and the one behind the last."""
        offsets, n, first = self._patterns.sequences.offsets, len(self._patterns), 0
        while first < n:
            last = int(np.searchsorted(offsets, offsets[first] + _LETTERS_OF_ROUND, side="right")) - 1
            # Mates stay together.
            last = min(n, first + min(_READS_OF_ROUND, max(2, (last - first) // 2 * 2)))
            yield first, last
            first = last

    def rows(self, first: int, last: int) -> AlignmentRows:
        """Rows of the reads `first:last`.

        Raises
        ------
        Cancelled : the user asked to stop.
        """
        reads = Sequences(self._patterns.sequences.codes, self._patterns.sequences.offsets[first : last + 1])
        strands, lengths = with_other_strands(reads), np.diff(reads.offsets)
        candidates = self._candidates(reads)
        if self._inserts is not None:
            more = rescue_windows(candidates, lengths, self._texts.lengths, self._inserts, self._tolerance)
            candidates = candidates.joined(more)
        with self._aligning(candidates, strands) as (session, windows):
            chosen, quality = self._chosen(candidates, lengths, session)
            found = self._traced(session, windows, strands, candidates, chosen)
        n, read = last - first, candidates.read[chosen]
        rows, window_of = Alignments.none(n, self._rules.maximum_gaps), np.zeros(n, np.int64)
        text_of, is_reverse, qualities = np.full(n, -1, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.int32)
        # What scores no more than nothing is no place.
        is_placed = found.score > 0
        chosen, read = chosen[is_placed], read[is_placed]
        for column, values in zip(rows, found, strict=True):
            column[read] = values[is_placed]
        window_of[read], text_of[read], is_reverse[read] = chosen, candidates.text[chosen], candidates.is_other[chosen] == 1
        qualities[read] = quality[is_placed]
        cigars = kernels.cpu.cigars.cigars_of(
            windows, strands, window_of, np.arange(n) + n * is_reverse, rows, ALPHABET, self._texts.unknown
        )
        for column in (rows.text_start, rows.text_end):
            column[read] += candidates.begin[chosen].astype(np.int32)
        is_proper = None
        if self._patterns.are_mates:
            is_proper = proper_pairs(text_of, rows, is_reverse, self._inserts)
        return AlignmentRows(text_of, np.arange(first, last), rows, is_reverse, cigars, qualities, is_proper)

    def _candidates(self, reads: Sequences) -> CandidatePlaces:
        """Candidate places of reads, by minimisers."""
        n, known, stop = len(reads.offsets) - 1, bases(), stop_flag()
        found, counts = (
            np.zeros((n, kernels.cpu.minimisers.MAXIMUM_CANDIDATES, kernels.cpu.minimisers.CANDIDATE_FIELDS), np.int64),
            np.zeros(n, np.int64),
        )

        def find(first: int) -> None:
            last = min(n, first + _READS_OF_PIECE)
            kernels.cpu.minimisers.find_candidates(
                reads.codes, reads.offsets, first, last, known, self._index, self._rule, found, counts, stop
            )

        run_on_threads(find, range(0, n, _READS_OF_PIECE), self._resources.threads, self._quiet, stop=stop)
        is_one = np.arange(kernels.cpu.minimisers.MAXIMUM_CANDIDATES) < counts[:, None]
        read, _ = np.nonzero(is_one)
        places = CandidatePlaces(read, *found[is_one].T)
        return places if self._has_other_strand else places.some(places.is_other == 0)

    @contextmanager
    def _aligning(self, candidates: CandidatePlaces, strands: Sequences) -> Iterator[tuple[Session, Sequences]]:
        """A session for the windows of candidates and both strands of reads, and the windows."""
        offsets = offsets_of(candidates.end - candidates.begin)
        codes = np.empty(offsets[-1], np.int8)
        kernels.cpu.strands.copy_runs(
            self._texts.sequences.codes, self._texts.sequences.offsets[candidates.text] + candidates.begin, offsets, codes
        )
        windows = Sequences(codes, offsets)
        with Executor(self._resources.telling(self._quiet)).session(work_of(windows, strands, self._rules)) as session:
            yield session, windows
            shares = [share.device for share in session.shares()] or list(session.devices)
            self.devices += [name for name in shares if name not in self.devices]

    def _chosen(
        self, candidates: CandidatePlaces, lengths: NDArray[np.int64], session: Session
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The candidate that each read which has any is placed by, and its mapping quality.

        A read with one candidate needs no score to choose; of mates, both are scored where one has several.
        """
        n = len(lengths)
        count = np.bincount(candidates.read, minlength=n)
        is_open = count > 1
        if self._inserts is not None:
            is_open = np.repeat(is_open[0::2] | is_open[1::2], 2)
        scored = np.flatnonzero(is_open[candidates.read])
        found = self._aligned(session, candidates, lengths, scored, traces=False)
        open_ones, ends = candidates.some(scored), candidates.begin[scored] + found.text_end
        if self._inserts is None:
            best = best_places(open_ones, found.score, ends, lengths)
        else:
            best = joint_choice(open_ones, found.score, ends, lengths, self._inserts, self._difference, self._tolerance)
        chosen, lead = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        rivals = np.zeros(n, np.int64)
        only = np.flatnonzero(~is_open[candidates.read])
        chosen[candidates.read[only]] = only
        chosen[best.read], lead[best.read], rivals[best.read] = scored[best.place], best.lead, best.rivals
        placed = np.flatnonzero(chosen >= 0)
        quality = mapping_qualities(lead[placed], rivals[placed], candidates.votes[chosen[placed]], self._difference)
        return chosen[placed], quality

    def _traced(
        self, session: Session, windows: Sequences, strands: Sequences, candidates: CandidatePlaces, chosen: NDArray[np.int64]
    ) -> Alignments:
        """Alignments of the chosen candidates.

        Most reads need no gap, and comparing letters often shows that none is better. Without cards, the processor then aligns near the
        diagonals, where that shows the same. What is left goes to the devices.
        """
        slacks = () if self._resources.has_cards else _SLACKS
        lengths = np.diff(strands.offsets)
        pattern_of = candidates.read[chosen] + candidates.is_other[chosen] * (len(lengths) // 2)

        def sure(part: slice) -> tuple[Alignments, NDArray[np.bool_]]:
            found, is_sure = kernels.cpu.ungapped.align_where_sure(windows, strands, self._rules, chosen[part], pattern_of[part])
            for slack in slacks:
                others = np.flatnonzero(~is_sure)
                pairs = chosen[part][others], pattern_of[part][others]
                near, is_near = kernels.cpu.banded.align_where_near(windows, strands, self._rules, *pairs, _CODES, slack)
                for column, values in zip(found, near, strict=True):
                    column[others[is_near]] = values[is_near]
                is_sure[others[is_near]] = True
            return found, is_sure

        pieces = [slice(first, first + _READS_OF_PIECE) for first in range(0, len(chosen), _READS_OF_PIECE)]
        parts = run_on_threads(sure, pieces, self._resources.threads, self._quiet)
        if not parts:
            return Alignments.none(0, self._rules.maximum_gaps)
        found = Alignments(*(np.concatenate(columns) for columns in zip(*(part[0] for part in parts), strict=True)))
        others = np.flatnonzero(~np.concatenate([part[1] for part in parts]))
        aligned = self._aligned(session, candidates, lengths[: len(lengths) // 2], chosen[others], traces=True)
        for column, values in zip(found, aligned, strict=True):
            column[others] = values
        return found

    def _aligned(
        self, session: Session, candidates: CandidatePlaces, lengths: NDArray[np.int64], some: NDArray[np.int64], *, traces: bool
    ) -> Alignments:
        """Alignments of some of the candidates."""
        if not len(some):
            return Alignments.none(0, self._rules.maximum_gaps)
        read = candidates.read[some]
        self.cells += int(((candidates.end - candidates.begin)[some] * lengths[read]).sum()) * (self._rules.maximum_gaps + 1)
        return align_pairs(session, some, read + candidates.is_other[some] * len(lengths), traces=traces)


class _Quiet(Progress):
    """Asks another progress whether the user wants to stop, and tells it messages, but no steps: these are of a round, which is one."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._told = set[str]()

    @property
    def is_cancelled(self) -> bool:
        """See `Progress.is_cancelled`."""
        return self._progress.is_cancelled

    def check(self) -> None:
        """See `Progress.check`."""
        self._progress.check()

    def message(self, text: str, level: str = "info") -> None:
        """See `Progress.message`."""
        if text not in self._told:  # a round tells what the one before has told
            self._told.add(text)
            self._progress.message(text, level)

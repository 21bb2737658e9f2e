"""Align reads with a bounded number of gaps: read -> index -> plan -> score -> report, from files of sequences to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from proteoscope import kernels
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.run import Run
from proteoscope.engine.read_alignment.compilation import READS
from proteoscope.engine.read_alignment.exporting import check_format, write_as
from proteoscope.engine.read_alignment.fitting import are_exchanged, are_far_longer
from proteoscope.engine.read_alignment.pairing import EveryPair
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.placing import Placing, are_looked_for, index_texts
from proteoscope.engine.read_alignment.records import Aligned
from proteoscope.engine.read_alignment.results import AlignmentRows, alignment_rows, pattern_tables, text_table
from proteoscope.engine.read_alignment.sequences import (
    NamedSequences,
    check_sorts,
    gap_rules,
    read_patterns,
    read_sequences,
    with_interleaved_mates,
)
from proteoscope.engine.read_alignment.summary import ReadAlignmentSummary
from proteoscope.engine.read_alignment.tables import ALIGNMENTS, PATTERNS
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.sequences.matrices import matrix_names
from proteoscope.kernels.gapsmis_layouts import NO_ALIGNMENT, PREFIX, GapRules, score_bits

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.minimisers import MinimiserIndex

__all__ = ["CHANCE_IDENTITY", "align_reads"]


CHANCE_IDENTITY = {True: 0.5, False: 0.15}
"""Identity that the best alignment of unrelated sequences stays below, of nucleotides or of proteins: a quarter or a seventeenth of their
letters agree, gaps and the choice of a place find some more."""

_TIMES_LONGER = 2
"""A reference so much longer than the reads is not what they are aligned with from end to end."""


class _Read(NamedTuple):
    """Sequences of the files, kind of the alignments, and whether places are looked for."""

    texts: NamedSequences
    patterns: NamedSequences
    rules: GapRules
    has_places: bool


def align_reads(request: SearchRequest, progress: Progress | None = None) -> ReadAlignmentSummary:
    """Align every read with every reference, or the i-th with the i-th, or each where it belongs, with at most so many gaps.

    Parameters
    ----------
    request : inputs ``texts`` and ``patterns``, a FASTA or FASTQ file of nucleotides or proteins each, also gzipped;
        `ReadAlignmentParameters`. `out` is a file for the alignments, in `format` (``tsv``, ``sam``, ``bam``, ``sorted-sam``,
        ``sorted-bam`` or ``paf``); `project` one to which a run with its tables is added; None for none. Its options: ``sorted``, of
        ``sam`` and ``bam``; ``pairs``, the i-th read is aligned with the i-th reference alone; ``mates``, a file with the other read of
        each fragment, in the same order.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, format = request.parameters_as(ReadAlignmentParameters), request.format or "tsv"
    is_sorted, pairs, mates = request.flag("sorted"), request.flag("pairs"), request.path("mates")
    check_format(format, is_sorted=is_sorted)
    own_matrix = [parameters.matrix] if parameters.matrix and parameters.matrix not in matrix_names() else []
    texts, patterns = request.files("texts"), request.files("patterns")
    spec = RunSpec(
        "reads", request, {"texts": "REFERENCE.fasta", "patterns": "READS.fasta"},
        {"texts": texts, "patterns": patterns, "mates": [] if mates is None else [mates], "matrix": own_matrix}, request.outputs(),
        are_distinct=False,
    )  # fmt: skip

    def read(progress: Progress, threads: int) -> _Read:
        found = read_sequences(texts[0], progress), read_patterns(patterns[0], mates, parameters, progress, spec.spool)
        check_sorts(*found)
        if not pairs:
            _check_roles(*found)
        rules = gap_rules(parameters, of_nucleotides=found[0].are_nucleotides or found[1].are_nucleotides)
        has_places = are_looked_for(*found, parameters, pairs=pairs)
        can_be_mates = has_places and parameters.strands == "both"
        found = found[0], with_interleaved_mates(found[1], parameters, progress, can_be_mates=can_be_mates)
        _check(*found, rules, parameters, pairs=pairs, has_places=has_places)
        return _Read(*found, rules, has_places)

    with search_run(spec, read, READS, progress) as run:
        opening = run.begin(run.resources)  # a card takes as long to be opened as files to be read
        sequences = run.read()
        with run.step("index"):
            index = index_texts(sequences.texts, parameters, run.threads, run.progress) if sequences.has_places else None
        with run.step("plan"):
            resources = opening().telling(run.progress)
            run.load_writers()
            aligning = _plan(sequences, parameters, resources, index, pairs=pairs)
        with ExitStack() as stack:
            stack.enter_context(aligning.opened())
            rounds = _Rounds(run, sequences, aligning, are_pairs=pairs)
            tables = rounds.score()
            if run.run is not None:
                _keep_sequences(run.run, sequences)
                tables = _kept(tables, stack.enter_context(run.run.table_writer("alignments", ALIGNMENTS.schema())).write)
            if request.out is not None:
                aligned = Aligned.of(sequences.texts, sequences.patterns)
                write_as(Path(request.out), format, tables, aligned, _Messages(run.progress), is_sorted=is_sorted, threads=run.threads)
            else:
                for _ in tables:
                    pass
            # The last look: when this block is left, what was written is kept.
            run.progress.stage("Writing")
        run.device = "+".join(aligning.devices) or "cpu"  # which alone does what needs no layers
        n_texts, n_patterns = len(sequences.texts), len(sequences.patterns)
        counts = {"texts": n_texts, "patterns": n_patterns, "pairs": rounds.n_rows, "aligned": rounds.n_aligned}
        message = counted(rounds.n_aligned, "alignment")
        run.record(counts, message, is_of_pairs=pairs, has_places=sequences.has_places)
        return ReadAlignmentSummary(
            **run.summary_fields,
            n_texts=n_texts,
            n_patterns=n_patterns,
            n_pairs=rounds.n_rows,
            n_aligned=rounds.n_aligned,
            cells=aligning.cells,
            has_places=sequences.has_places,
        )


def _check_roles(texts: NamedSequences, patterns: NamedSequences) -> None:
    """Refuse reads as the reference, and their reference as reads: nothing has a place, or each read one that says nothing.

    Raises
    ------
    InputError : the two seem to be exchanged.
    """
    counts = len(texts.sequences.codes), len(texts), len(patterns.sequences.codes), len(patterns)
    if are_exchanged(*counts, texts_have_qualities=texts.qualities is not None, reads_do=patterns.qualities is not None):
        reason = f"looks like reads, and {patterns.path.name} like their reference"
        raise InputError(texts.path, reason, remedy="Exchange the two: the reference comes first")


def _check(
    texts: NamedSequences, patterns: NamedSequences, rules: GapRules, parameters: ReadAlignmentParameters, *, pairs: bool, has_places: bool
) -> None:
    """Refuse what cannot be computed.

    Raises
    ------
    ParameterError : scores could pass 32 bits, texts and patterns cannot be paired, or places cannot be looked for.
    InputError : places of proteins are asked for, or of what is too long for it.
    """
    longest = int(patterns.lengths.max(initial=0))
    if not score_bits(rules, longest):
        raise ParameterError(f"scores of reads of {longest:,} letters could pass 32 bits; scale the scores and the gap costs down")
    if pairs and len(texts) != len(patterns):
        raise ParameterError(
            f"--pairs: {texts.path.name} has {len(texts):,} sequences and {patterns.path.name} {len(patterns):,}; "
            "give as many references as reads"
        )
    if patterns.are_mates and (not has_places or parameters.strands != "both"):
        raise ParameterError("mates are for reads whose places are looked for: give --places seeds, --strands both and no --pairs")
    if has_places and pairs:
        raise ParameterError("--pairs says with which reference each read is aligned; leave it out, or --places seeds")
    if has_places and len(texts.sequences.codes) and not texts.are_nucleotides:
        raise InputError(texts.path, "holds proteins, whose places are not looked for", remedy="Give places = every")
    if has_places and len(texts) > kernels.cpu.minimisers.MAXIMUM_TEXTS:
        reason = f"holds {len(texts):,} sequences; places are looked for in up to {kernels.cpu.minimisers.MAXIMUM_TEXTS:,}"
        raise InputError(texts.path, reason, remedy="Give fewer, or places = every")
    if has_places and longest > kernels.cpu.minimisers.LONGEST_READ:
        raise InputError(
            patterns.path,
            f"a read has {longest:,} letters; places are looked for up to {kernels.cpu.minimisers.LONGEST_READ:,}",
            remedy="Give places = every",
        )


def _plan(
    sequences: _Read, parameters: ReadAlignmentParameters, resources: Resources, index: MinimiserIndex | None, *, pairs: bool
) -> EveryPair | Placing:
    """How the reads are aligned: in rounds of pairs, or of reads whose places are looked for."""
    texts, patterns, rules, _ = sequences
    if index is None:
        return EveryPair(texts, patterns, rules, resources, pairs=pairs, both_strands=parameters.strands == "both")
    resources.progress.message("The place of each read is looked for by minimisers; places: every aligns it with every reference")
    placing = Placing(texts, patterns, index, rules, parameters, resources)
    if patterns.are_mates:
        placing.learn_inserts(parameters)
    return placing


class _Rounds:
    """The rounds of a run, aligned one after the other."""

    def __init__(self, run: SearchRun[_Read], read: _Read, aligning: EveryPair | Placing, *, are_pairs: bool) -> None:
        self._run, self._read, self._aligning, self._are_pairs = run, read, aligning, are_pairs
        self.n_rows = self.n_aligned = 0
        self._best_identity = np.full(len(read.patterns), -1.0, np.float32)

    def _check_chance(self) -> None:
        """Warn if half of the reads resemble their best reference no more than unrelated sequences do.

        Raises
        ------
        InputError
            The reads are aligned with the beginning of a reference in which their places should be looked for.
        """
        best = self._best_identity[self._best_identity >= 0]
        texts, patterns = self._read.texts, self._read.patterns
        if not len(best) or (typical := float(np.median(best))) >= CHANCE_IDENTITY[texts.are_nucleotides]:
            return
        reason = f"half of the reads are {typical:.0%} identical to the reference or less, as unrelated sequences are"
        remedy = "choose the preset map-to-genome" if texts.are_nucleotides else "choose mode within"
        if self._are_at_the_beginning:
            reason = f"{reason}: mode prefix puts each at the beginning of a reference"
            raise InputError(patterns.path, reason, remedy=f"To look for their places, {remedy}, or give another reference")
        self._run.progress.message(
            f"{reason.capitalize()}: they do not belong where they are aligned. To look for their places, {remedy}, or give another"
            " reference",
            "warning",
        )

    @property
    def _are_at_the_beginning(self) -> bool:
        """True if reads that look like those of a genome, or of one longer sequence, were aligned with its beginning."""
        texts, patterns, rules, has_places = self._read
        if has_places or self._are_pairs or rules.mode != PREFIX:
            return False
        n_letters, mean = len(texts.sequences.codes), len(patterns.sequences.codes) / max(len(patterns), 1)
        is_one = len(texts) == 1 and n_letters >= _TIMES_LONGER * mean
        return patterns.qualities is not None or is_one or are_far_longer(n_letters, mean)

    def score(self) -> Iterator[pa.Table]:
        """Rows of each round, which are reported when it is scored."""
        texts, patterns, _, has_places = self._read
        progress = self._run.progress
        if has_places:
            progress.stage("Placing reads", len(patterns))
        for first, last in self._aligning.rounds():
            with self._run.step("score"):
                rows: AlignmentRows = self._aligning.rows(first, last)
            with self._run.step("report"):
                table = alignment_rows(texts, patterns, rows)
            is_aligned = rows.found.score != NO_ALIGNMENT
            np.maximum.at(self._best_identity, rows.pattern_of[is_aligned], table["identity"].to_numpy()[is_aligned].astype(np.float32))
            self.n_rows += len(table)
            self.n_aligned += int(is_aligned.sum())
            patterns.release()
            yield table
            if has_places:
                progress.advance(last - first)
        # Before the output is complete: a result that is nonsense leaves no file.
        self._check_chance()


class _Messages(Progress):
    """Passes messages on, and no stages: the rounds report how far they are, and the lines of one are written in a moment."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def message(self, text: str, level: str = "info") -> None:
        """See `Progress.message`."""
        self._progress.message(text, level)


def _keep_sequences(run: Run, sequences: _Read) -> None:
    """Write what was aligned as tables of a run, which the rows of its alignments name."""
    run.write_table("texts", text_table(sequences.texts))
    with run.table_writer("patterns", PATTERNS.schema()) as writer:
        for table in pattern_tables(sequences.patterns):
            writer.write(table)


def _kept(tables: Iterator[pa.Table], write: Callable[[pa.Table], None]) -> Iterator[pa.Table]:
    """The tables, each written before it is given on."""
    for table in tables:
        write(table)
        yield table

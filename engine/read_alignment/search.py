"""Align reads with a bounded number of gaps: read -> index -> plan -> score -> report, from files of sequences to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.errors import ParameterError
from engine.execution.executor import Executor, Session
from engine.jobs.progress import Progress
from engine.project.run import Run
from engine.read_alignment.compilation import READS
from engine.read_alignment.parameters import ReadAlignmentParameters
from engine.read_alignment.results import (
    Rows,
    alignment_rows,
    alignment_schema,
    better_strands,
    pattern_schema,
    pattern_tables,
    text_table,
    write_alignments,
)  # fmt: skip
from engine.read_alignment.scoring import STEP_CELLS, align_pairs, work_of
from engine.read_alignment.sequences import ALPHABET, NamedSequences, check_sorts, gap_rules, read_sequences, reverse_complements
from engine.read_alignment.summary import ReadAlignmentSummary
from engine.search_run import Asked, SearchRun, search_run
from engine.sequences.matrices import matrix_names
from kernels.gapsmis_layouts import NO_ALIGNMENT, Alignments, GapRules, Sequences, TooLongError, score_bits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["align_reads"]

_PAIRS_OF_ROUND = 1 << 17
_CELLS_OF_ROUND = 2e11


class _Read(NamedTuple):
    """What the files hold, and what the alignments are to be."""

    texts: NamedSequences
    patterns: NamedSequences
    rules: GapRules


def align_reads(
    texts: str | Path,
    patterns: str | Path,
    out: str | Path | None,
    parameters: ReadAlignmentParameters,
    *,
    pairs: bool = False,
    project_folder: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReadAlignmentSummary:
    """Align every pattern with every text, or the i-th with the i-th, with at most so many gaps, and report every pair.

    Parameters
    ----------
    texts, patterns : FASTA or FASTQ files of nucleotides or proteins, also gzipped.
    out : file for the alignments, tab-separated; None for none.
    pairs : the i-th pattern is aligned with the i-th text alone. project_folder : a project to which a run with its table is added.
    device, threads : see `engine.execution.devices.chosen_device`; all threads when None.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    own_matrix = [parameters.matrix] if parameters.matrix and parameters.matrix not in matrix_names() else []
    asked = Asked(
        "reads",
        {"texts": [texts], "patterns": [patterns], "matrix": own_matrix},
        {"texts": "TEXTS.fasta", "patterns": "PATTERNS.fasta"},
        parameters,
        are_distinct=False,
        outputs=[] if out is None else [Path(out)],
        project=project_folder,
        device=device,
        threads=threads,
    )

    def read(progress: Progress, threads: int) -> _Read:
        found = read_sequences(Path(texts), progress), read_sequences(Path(patterns), progress)
        check_sorts(*found)
        rules = gap_rules(parameters, of_nucleotides=found[0].are_nucleotides or found[1].are_nucleotides)
        _check(*found, rules, pairs=pairs)
        return _Read(*found, rules)

    with search_run(asked, read, READS, progress) as run:
        sequences = run.read()
        with run.step("index"):
            # The other strands stand behind the patterns.
            both = parameters.strands == "both" and sequences.patterns.are_nucleotides
            strands = _with_other_strands(sequences.patterns.sequences) if both else sequences.patterns.sequences
        with run.step("plan"):
            resources = run.resources()
            rounds = _rounds(sequences, pairs=pairs)
        work = work_of(sequences.texts.sequences, strands, sequences.rules)
        with Executor(resources).session(work) as session, ExitStack() as stack:
            aligning = _Aligning(run, sequences, strands, session, is_of_both=both)
            tables = aligning.tables(rounds)
            if run.run is not None:
                _keep_sequences(run.run, sequences)
                tables = _kept(tables, stack.enter_context(run.run.table_writer("alignments", alignment_schema())).write)
            if out is not None:
                # The rounds tell how far they are; the lines of one are written in a moment.
                write_alignments(Path(out), tables, Progress(), threads=run.threads)
            else:
                for _ in tables:
                    pass
            # The last look: when this block is left, what was written is kept.
            run.progress.stage("Writing")
            run.device = "+".join([share.device for share in session.shares()] or session.devices)
        n_pairs = len(rounds)
        counts = {"texts": len(sequences.texts), "patterns": len(sequences.patterns), "pairs": n_pairs, "aligned": aligning.n_aligned}
        run.record(counts, f"{aligning.n_aligned:,} {'alignment' if aligning.n_aligned == 1 else 'alignments'}", is_of_pairs=pairs)
        return ReadAlignmentSummary(
            **run.told,
            n_texts=len(sequences.texts),
            n_patterns=len(sequences.patterns),
            n_pairs=len(rounds),
            n_aligned=aligning.n_aligned,
            cells=aligning.cells,
        )


def _check(texts: NamedSequences, patterns: NamedSequences, rules: GapRules, *, pairs: bool) -> None:
    """Refuse what cannot be computed.

    Raises
    ------
    ParameterError : scores could pass 32 bits, or texts and patterns cannot be paired.
    """
    longest = int(patterns.lengths.max(initial=0))
    if not score_bits(rules, longest):
        raise ParameterError(f"scores of patterns of {longest:,} letters could pass 32 bits; scale the scores and the gap costs down")
    if pairs and len(texts) != len(patterns):
        raise ParameterError(
            f"--pairs: {texts.path.name} has {len(texts):,} sequences and {patterns.path.name} {len(patterns):,}; "
            "give as many texts as patterns"
        )


def _with_other_strands(patterns: Sequences) -> Sequences:
    other = reverse_complements(patterns)
    offsets = np.concatenate([patterns.offsets, patterns.offsets[-1] + other.offsets[1:]])
    return Sequences(np.concatenate([patterns.codes, other.codes]), offsets)


class _Rounds:
    """Pairs in rounds of bounded size: the i-th pattern with the i-th text, or every pattern with every text, one after the other."""

    def __init__(self, n_texts: int, n_patterns: int, size: int, *, pairs: bool) -> None:
        self._n_texts, self._pairs, self._size = n_texts, pairs, size
        self._n = n_patterns if pairs else n_texts * n_patterns

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        for first in range(0, self._n, self._size):
            numbers = np.arange(first, min(self._n, first + self._size))
            yield (numbers, numbers) if self._pairs else (numbers % self._n_texts, numbers // self._n_texts)


def _rounds(sequences: _Read, *, pairs: bool) -> _Rounds:
    """Rounds that take some seconds and some hundred megabytes at the most."""
    mean = (1 + sequences.texts.lengths.mean()) * (1 + sequences.patterns.lengths.mean()) * (sequences.rules.most_gaps + 1)
    size = max(1, min(_PAIRS_OF_ROUND, int(_CELLS_OF_ROUND / mean)))
    return _Rounds(len(sequences.texts), len(sequences.patterns), size, pairs=pairs)


class _Aligning:
    """The rounds of a run, aligned one after the other."""

    def __init__(self, run: SearchRun[_Read], read: _Read, strands: Sequences, session: Session, *, is_of_both: bool) -> None:
        self._run, self._read, self._strands, self._session, self._is_of_both = run, read, strands, session, is_of_both
        self.n_aligned = self.cells = 0

    def tables(self, rounds: _Rounds) -> Iterator[pa.Table]:
        """Rows of each round."""
        from kernels.cpu.cigars import cigars_of

        texts, patterns, rules = self._read
        layers = (rules.most_gaps + 1) * (1 + self._is_of_both)
        for text_of, pattern_of in rounds:
            cells = int((texts.lengths[text_of] * patterns.lengths[pattern_of]).sum()) * layers
            with self._run.step("score"):
                self._run.progress.stage("Aligning", cells // STEP_CELLS)
                try:
                    found, is_reverse = self._aligned(text_of, pattern_of)
                except TooLongError as error:
                    raise ParameterError(f"{error}: too long to be traced with {rules.most_gaps} gaps; give shorter ones") from error
            with self._run.step("report"):
                aligned = pattern_of + is_reverse * len(patterns)
                cigars = cigars_of(texts.sequences, self._strands, text_of, aligned, found, ALPHABET)
                rows = alignment_rows(texts, patterns, Rows(text_of, pattern_of, found, is_reverse, cigars))
            self.n_aligned += int((found.score != NO_ALIGNMENT).sum())
            self.cells += cells
            yield rows

    def _aligned(self, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64]) -> tuple[Alignments, NDArray[np.bool_]]:
        if not self._is_of_both:
            return align_pairs(self._session, text_of, pattern_of), np.zeros(len(text_of), np.bool_)
        n = len(text_of)
        other = pattern_of + len(self._read.patterns)
        found = align_pairs(self._session, np.concatenate([text_of, text_of]), np.concatenate([pattern_of, other]))
        return better_strands(Alignments(*(column[:n] for column in found)), Alignments(*(column[n:] for column in found)))


def _keep_sequences(run: Run, sequences: _Read) -> None:
    """Write what was aligned as tables of a run, which the rows of its alignments name."""
    run.write_table("texts", text_table(sequences.texts))
    with run.table_writer("patterns", pattern_schema()) as writer:
        for table in pattern_tables(sequences.patterns):
            writer.write(table)


def _kept(tables: Iterator[pa.Table], write: Callable[[pa.Table], None]) -> Iterator[pa.Table]:
    """The tables, each written before it is given on."""
    for table in tables:
        write(table)
        yield table

"""Alignment of reads with a limited number of gaps: from sequence files to a table, in the steps read, index, plan, score and report."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.read_alignment.export import check_format, write_as
from proteoscope.engine.read_alignment.mapping import (
    MappingPlan,
    PairingPlan,
    QuietProgress,
    are_mapped,
    index_references,
    plan_pairs,
    with_inserts,
)
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.records import Aligned
from proteoscope.engine.read_alignment.results import AlignmentTotals, alignment_rows, write_sequences
from proteoscope.engine.read_alignment.sequences import (
    AlignedSequences,
    check_sequence_types,
    gap_rules,
    load_reads,
    read_sequences,
    with_interleaved_mates,
)
from proteoscope.engine.read_alignment.suitability import check_roles, check_sequences, check_similarity
from proteoscope.engine.read_alignment.summary import ReadAlignmentSummary
from proteoscope.engine.read_alignment.tables import ALIGNMENTS
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.sequences.matrices import matrix_names

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.minimisers import MinimiserIndex

__all__ = ["align_reads"]


def align_reads(request: SearchRequest, progress: Progress | None = None) -> ReadAlignmentSummary:
    """Align reads with references, with a limited number of gaps.

    Every read is aligned with every reference, the i-th read with the i-th reference, or each read is mapped to its best position.

    Parameters
    ----------
    request : SearchRequest
        Inputs ``texts`` (references) and ``patterns`` (reads), each a FASTA or FASTQ file of nucleotides or proteins, optionally gzipped;
        `ReadAlignmentParameters`. `out` is a file for the alignments in `format` (``tsv``, ``sam``, ``bam``, ``sorted-sam``, ``sorted-bam``
        or ``paf``), or None; `project` is a project to which a run with its tables is added, or None. Options: ``sorted`` to sort ``sam``
        and ``bam``; ``pairs`` to align the i-th read only with the i-th reference; ``mates``, a file with the other read of each fragment,
        in the same order.
    progress : Progress, optional
        Progress of the search.

    Raises
    ------
    InputError, ParameterError, StorageError
        If an input or parameter is unsuitable; the user can correct it.
    Cancelled
        If the user cancels.
    """
    parameters, format = request.parameters_as(ReadAlignmentParameters), request.format or "tsv"
    is_sorted, pairs, mates = request.flag("sorted"), request.flag("pairs"), request.path("mates")
    check_format(format, is_sorted=is_sorted)
    own_matrix = [parameters.matrix] if parameters.matrix and parameters.matrix not in matrix_names() else []
    references, reads = request.files("texts"), request.files("patterns")
    spec = RunSpec(
        "reads",
        request,
        {"texts": "REFERENCE.fasta", "patterns": "READS.fasta"},
        {"texts": references, "patterns": reads, "mates": [] if mates is None else [mates], "matrix": own_matrix},
        request.outputs(),
        are_distinct=False,
        kernels="reads",
    )

    def read(progress: Progress, threads: int) -> AlignedSequences:
        result = read_sequences(references[0], progress), load_reads(reads[0], mates, parameters, progress, spec.spool)
        check_sequence_types(*result)
        if not pairs:
            check_roles(*result)
        rules = gap_rules(parameters, of_nucleotides=result[0].are_nucleotides or result[1].are_nucleotides)
        has_places = are_mapped(*result, parameters, pairs=pairs)
        can_be_mates = has_places and parameters.strands == "both"
        result = result[0], with_interleaved_mates(result[1], parameters, progress, can_be_mates=can_be_mates)
        check_sequences(*result, rules, parameters, pairs=pairs, has_places=has_places)
        return AlignedSequences(*result, rules, has_places)

    with search_run(spec, read, progress) as run:
        opening = run.begin(run.resources)  # opening a GPU takes as long as reading the files
        sequences = run.read()
        with run.step("index"):
            index = index_references(sequences.references, parameters, run.threads, run.progress) if sequences.has_places else None
        with run.step("plan"):
            resources = opening().reporting_to(run.progress)
            run.load_writers()
            plan, resources = _plan(sequences, parameters, resources, index, are_pairs=pairs)
        totals = AlignmentTotals(np.full(len(sequences.reads), -1.0, np.float32))
        if run.run is not None:
            write_sequences(run.run, sequences.references, sequences.reads)
        with ExitStack() as stack:
            tables = stack.enter_context(closing(_scored_tables(run, sequences, plan, resources, totals, are_pairs=pairs)))
            if run.run is not None:
                tables = _store(tables, stack.enter_context(run.run.table_writer("alignments", ALIGNMENTS.schema())).write)
            if request.out is not None:
                aligned = Aligned.from_sequences(sequences.references, sequences.reads)
                progress_of_file = QuietProgress(run.progress)
                write_as(Path(request.out), format, tables, aligned, progress_of_file, is_sorted=is_sorted, threads=run.threads)
            else:
                deque(tables, maxlen=0)
            # A cancellation noticed here discards all results; when the block ends, the files and tables are stored.
            run.progress.stage("Writing")
        return _summary(run, sequences, totals, are_pairs=pairs)


def _plan(
    sequences: AlignedSequences, parameters: ReadAlignmentParameters, resources: Resources, index: MinimiserIndex | None, *, are_pairs: bool
) -> tuple[PairingPlan | MappingPlan, Resources]:
    """Return a plan for aligning pairs or, with an index, for mapping reads, and the resources that the plan uses."""
    references, reads, rules, _ = sequences
    if index is None:
        return plan_pairs(references, reads, rules, are_pairs=are_pairs, both_strands=parameters.strands == "both"), resources
    resources.progress.message("Each read is mapped by minimisers; mapping=every aligns it with every reference")
    plan, quiet = MappingPlan(references, reads, index, rules, parameters), resources.reporting_to(QuietProgress(resources.progress))
    return with_inserts(plan, quiet) if reads.are_mates else plan, quiet


def _scored_tables(
    run: SearchRun[AlignedSequences],
    sequences: AlignedSequences,
    plan: PairingPlan | MappingPlan,
    resources: Resources,
    totals: AlignmentTotals,
    *,
    are_pairs: bool,
) -> Generator[pa.Table, None, None]:
    """Yield the rows of the table ``alignments`` of each round."""
    references, reads, _, has_places = sequences
    if has_places:
        run.progress.stage("Placing reads", len(reads))
    with plan.scoring(resources) as score:
        for first, last in plan.rounds():
            with run.step("score"):
                scored = score(first, last)
            with run.step("report"):
                table = alignment_rows(references, reads, scored.rows)
                totals.add(scored, table)
            reads.release()
            yield table
            if has_places:
                run.progress.advance(last - first)
    # This is checked before the output is complete, so that meaningless results leave no file.
    check_similarity(sequences, totals, run.progress, are_pairs=are_pairs)


def _store(tables: Iterator[pa.Table], write: Callable[[pa.Table], None]) -> Generator[pa.Table, None, None]:
    """Yield tables after writing each of them."""
    for table in tables:
        write(table)
        yield table


def _summary(
    run: SearchRun[AlignedSequences], sequences: AlignedSequences, totals: AlignmentTotals, *, are_pairs: bool
) -> ReadAlignmentSummary:
    """Write the record of the run, and return its summary."""
    run.device = "+".join(totals.devices) or "cpu"  # the CPU computes alignments without gaps
    counts = {
        "texts": len(sequences.references),
        "patterns": len(sequences.reads),
        "pairs": totals.n_rows,
        "aligned": totals.n_aligned,
    }
    run.record(counts, counted(totals.n_aligned, "alignment"), is_of_pairs=are_pairs, has_places=sequences.has_places)
    return ReadAlignmentSummary(**run.summary_fields(counts), cells=totals.cells, has_places=sequences.has_places)

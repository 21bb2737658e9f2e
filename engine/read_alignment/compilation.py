"""The kernels of a read alignment."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from proteoscope import kernels
from proteoscope.engine import execution, formats, read_alignment
from proteoscope.engine.arrays import Texts
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.files import scratch_folder
from proteoscope.engine.jobs.progress import Progress

__all__ = ["READS"]

_LETTERS = 120


def _use() -> None:
    """Align two short sequences with both integer widths; map a read, and write it."""
    one, pair = kernels.gapsmis_layouts.Sequences(np.array([0, 1], np.int8), np.array([0, 2])), np.zeros(1, np.int64)
    for scale in (1, 100_000):
        rules = kernels.gapsmis_layouts.GapRules(np.array([[2, -3], [-3, 2]], np.int32) * scale, 5, 2, 1)
        for _ in kernels.cpu.gapsmis.ReadSearch(kernels.cpu.processor.Processor(1), one, one, rules).align(
            pair, pair, kernels.gapsmis_layouts.Alignments.none(1, 1)
        ):
            pass
        kernels.cpu.long_traces.trace_long_pair(one.codes, one.codes, rules, kernels.device.stop_flag())
    with scratch_folder() as folder:
        fastq = folder / "reads.fastq"
        fastq.write_text("@read\nACGT\n+\nIIII\n", encoding="ascii")
        reads = formats.fastq.read_fastq(fastq)
        read_alignment.mate_names.other_names(reads.names, reads.names)
    # A read without a letter of the text, so that it is aligned with a gap, near the diagonals.
    codes = np.array([0, 2, 6, 19], np.int8)[np.random.default_rng(1).integers(0, 4, _LETTERS)]
    text = read_alignment.sequences.NamedSequences(
        Path("text"), Texts.of(["text"]), kernels.gapsmis_layouts.Sequences(codes, np.array([0, _LETTERS])), True
    )
    read = read_alignment.sequences.NamedSequences(
        Path("read"),
        Texts.of(["read"]),
        kernels.gapsmis_layouts.Sequences(np.delete(codes, _LETTERS // 2), np.array([0, _LETTERS - 1])),
        True,
    )
    parameters, progress = read_alignment.parameters.ReadAlignmentParameters().changed(mode="within"), Progress()
    index = read_alignment.placing.index_texts(text, parameters, 1, progress)
    rules = read_alignment.sequences.gap_rules(parameters, of_nucleotides=True)
    plan = read_alignment.placing.MappingPlan(text, read, index, rules, parameters)
    rows = read_alignment.placing.score_reads(plan, execution.resources.Resources(1, progress=progress), 0, 1).rows
    table, aligned = read_alignment.results.alignment_rows(text, read, rows), read_alignment.records.Aligned.of(text, read)
    read_alignment.records.lines_of_patterns(table, aligned)
    read_alignment.records.paf_lines(table, aligned)


READS = Kernels(
    "kernels of the read alignment", lambda: kernels.cpu.alignment_lines.write_paf_lines, _use, "20 to 40 seconds", family="sequences"
)

"""The kernels of a read alignment."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proteoscope.engine.execution.compilation import Kernels

__all__ = ["READS"]

_LETTERS = 120


def _last() -> Callable[..., Any]:
    from proteoscope.kernels.cpu.alignment_lines import write_paf_lines

    return write_paf_lines


def _use() -> None:
    """Align next to nothing, with numbers of both widths; place a read, and write it."""
    import numpy as np

    from proteoscope.engine.arrays import Texts
    from proteoscope.engine.execution.resources import Resources
    from proteoscope.engine.formats.fastq import read_fastq
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
    from proteoscope.engine.read_alignment.placing import Placing, index_texts
    from proteoscope.engine.read_alignment.records import Aligned, lines_of_patterns, paf_lines
    from proteoscope.engine.read_alignment.results import alignment_rows
    from proteoscope.engine.read_alignment.sequences import NamedSequences, gap_rules
    from proteoscope.kernels.cpu.gapsmis import ReadSearch
    from proteoscope.kernels.cpu.processor import Processor
    from proteoscope.kernels.gapsmis_layouts import Alignments, GapRules, Sequences

    one, pair = Sequences(np.array([0, 1], np.int8), np.array([0, 2])), np.zeros(1, np.int64)
    for scale in (1, 100_000):
        rules = GapRules(np.array([[2, -3], [-3, 2]], np.int32) * scale, 5, 2, 1)
        for _ in ReadSearch(Processor(1), one, one, rules).align(pair, pair, Alignments.none(1, 1)):
            pass
    with tempfile.TemporaryDirectory(prefix="proteoscope-compile-", ignore_cleanup_errors=True) as folder:
        fastq = Path(folder, "reads.fastq")
        fastq.write_text("@read\nACGT\n+\nIIII\n", encoding="ascii")
        read_fastq(fastq)
    # A read without a letter of the text, so that it is aligned with a gap, near the diagonals.
    codes = np.array([0, 2, 6, 19], np.int8)[np.random.default_rng(1).integers(0, 4, _LETTERS)]
    text = NamedSequences(Path("text"), Texts.of(["text"]), Sequences(codes, np.array([0, _LETTERS])), True)
    read = NamedSequences(Path("read"), Texts.of(["read"]), Sequences(np.delete(codes, _LETTERS // 2), np.array([0, _LETTERS - 1])), True)
    parameters, progress = ReadAlignmentParameters().changed(mode="within"), Progress()
    index = index_texts(text, parameters, 1, progress)
    rows = Placing(text, read, index, gap_rules(parameters, of_nucleotides=True), parameters, Resources(1, progress=progress)).rows(0, 1)
    table, aligned = alignment_rows(text, read, rows), Aligned.of(text, read)
    lines_of_patterns(table, aligned)
    paf_lines(table, aligned)


READS = Kernels("kernels of the read alignment", _last, _use, "20 to 40 seconds", family="sequences")

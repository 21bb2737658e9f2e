"""Estimated workload of a read alignment, from its request."""

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import Expectation, ExpectedWork
from proteoscope.engine.execution.cost.parameters import WorkSize
from proteoscope.engine.execution.workload import GpuShape
from proteoscope.engine.formats.sizes import input_size
from proteoscope.engine.read_alignment.fitting import are_far_longer
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.scoring import KIND, cells, reached
from proteoscope.engine.read_alignment.sequences import gap_rules
from proteoscope.kernels.cuda.gapsmis_plan import Properties, predicted_seconds
from proteoscope.kernels.gapsmis_layouts import GapRules

__all__ = ["estimate_workload"]

_READ, _INDEX, _PLACE, _ROW = 8e-9, 2.5e-8, 1.2e-5, 4e-6  # seconds per byte, reference base, mapped read and row
_CANDIDATES, _MARGIN = 1.4, 60.0  # windows per read, and number of bases by which a window exceeds the read
_ROW_BYTES = 60.0
_PAIRS_OF_PLAN = 1 << 17


def _aligning(pairs: float, text: float, pattern: float, rules: GapRules) -> ExpectedWork:
    """Return the expected work of aligning a number of pairs with the given mean lengths."""
    text_length, pattern_length = (np.array([max(1, round(length))], np.int64) for length in (text, pattern))
    of_text = reached(text_length, pattern_length, rules)

    def size(gpu: GpuShape | None) -> WorkSize:
        operations = pairs * float(cells(of_text, pattern_length, rules, traces=True)[0])
        if gpu is not None:
            n = int(max(1.0, min(pairs, _PAIRS_OF_PLAN)))
            references, reads = (np.repeat(length, n) for length in (of_text, pattern_length))
            properties = Properties(gpu.multiprocessors, gpu.capability, gpu.shared_bytes)
            operations = 1e9 * predicted_seconds(references, reads, rules, properties, traces=True) * pairs / n
        return WorkSize(operations, int(pairs), pairs * (text + pattern + 32), pairs * _ROW_BYTES)

    return ExpectedWork(KIND, size)


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a read alignment (see `proteoscope.engine.estimates`)."""
    parameters = request.parameters_as(ReadAlignmentParameters)
    references, reads = input_size(request.files("texts")), input_size(request.files("patterns"))
    is_placed = parameters.mapping == "seeds" or (
        parameters.mapping == "auto"
        and parameters.mode != "prefix"
        and not request.flag("pairs")
        and are_far_longer(int(references.residues), int(max(reads.lengths, default=1)))
    )
    strands = 2.0 if parameters.strands == "both" else 1.0
    if is_placed:
        rows, pairs, text = reads.records, reads.records * _CANDIDATES * 2, reads.mean_length + _MARGIN
        host = {"index": references.residues * _INDEX, "score": rows * _PLACE}
    else:
        rows = min(references.records, reads.records) if request.flag("pairs") else references.records * reads.records
        pairs, text, host = rows * strands, references.mean_length, {}
    work = _aligning(pairs, text, reads.mean_length, gap_rules(parameters, of_nucleotides=True))
    host |= {"read": (references.unpacked + reads.unpacked) * _READ, "report": rows * _ROW}
    counts = {"texts": references.records, "patterns": reads.records, "pairs": pairs}
    return Expectation((work,), host, counts, 3 * references.unpacked + 2 * reads.unpacked + min(rows, 1e6) * 400)

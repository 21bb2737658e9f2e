"""The kernels of a sequence search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from proteoscope import kernels
from proteoscope.engine import sequence_search, sequences
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.files import scratch_folder
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.row_numbers import ProteinRow

__all__ = ["ALIGNMENT", "load_report_kernels"]

_LONG, _SHORT, _N_SHORT = 3000, 30, 130
_N_TOGETHER = 8  # enough for lanes
_GREAT_COST = 100_000  # of a gap, which only 32 bits hold


def _last() -> Callable[..., Any]:
    return kernels.cpu.traceback.draw_pairs


def _use() -> None:
    """Search with next to nothing: in lanes and by rows, with all widths of numbers, and with an alignment."""
    quiet = Progress()
    with scratch_folder() as folder:
        path = folder / "sequences.fasta"
        path.write_text("".join(f">s{k}\n{'W' * (_SHORT if k else _LONG)}\n" for k in range(_N_SHORT)), encoding="ascii")
        database = sequences.database.read_sequences([path], quiet)
    short, long = database.codes(ProteinRow(0)), database.codes(ProteinRow(len(database) - 1))
    database.residues.flags.writeable = False  # as those of a mapped file
    # The scores of the short ones need 16 bits, those of the long one 16 too; with the cost, all need 32.
    for gap_open in (11, _GREAT_COST):
        scheme = sequences.scheme.ScoringScheme(sequences.matrices.read_matrix("BLOSUM62"), gap_open, 1)
        scores = sequence_search.scoring.score_all([short, long], database.residues, database.offsets, scheme, 1, quiet)
        sequences.alignment.align_pair(short, short, scheme, quiet)
        for score in (1, 1000, np.iinfo(np.int32).max):
            place, target = database.places(np.zeros(_N_TOGETHER, np.int64)), np.full(_N_TOGETHER, score)
            sequences.alignment.align_pairs(
                sequences.alignment.Pairs(database.residues, place, database.residues, place, target), scheme, 1, quiet
            )
        if (statistics := sequences.statistics.tabulated(scheme)) is not None:
            adjustment = sequences.composition.CompositionAdjustment(database, scheme, 1, quiet)
            sequences.composition.significant_hits(statistics, adjustment, database, short, scores[0], 10.0)


def load_report_kernels(progress: Progress) -> None:
    """Load the cached kernels of the report while a GPU scores."""
    residues = np.zeros(_SHORT, np.int8)
    residues.flags.writeable = False  # as those of a mapped file
    places = np.tile(np.array([[0, _SHORT]]), (_N_TOGETHER, 1))
    for score in (1, 1000):
        pairs = sequences.alignment.Pairs(residues, places, residues, places, np.full(_N_TOGETHER, score))
        sequences.alignment.align_pairs(
            pairs, sequences.scheme.ScoringScheme(sequences.matrices.read_matrix("BLOSUM62"), 11, 1), 1, Progress()
        )


ALIGNMENT = Kernels("kernels of the alignment", _last, _use, family="sequences")

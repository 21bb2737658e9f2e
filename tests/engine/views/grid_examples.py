"""Small examples of character grids and of bars in lanes, without Qt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proteoscope.engine.arrays import Texts
from proteoscope.engine.formats.tracks import TrackFeature
from proteoscope.engine.sequences.stack import AlignedSubjects, Stack
from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.coverage import Coverage, cover, protein_features
from proteoscope.engine.views.hits import Bar, QueryBars
from proteoscope.engine.views.pileup import Pileup
from proteoscope.engine.views.reads import ShownReference
from proteoscope.engine.views.stack_colours import ColouredStack

QUERY = "MKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVKLVNELTEFAKTCVADESHAGCEKSLHTLFGDELCKVASLRETYGDMADCCEKQEP"
"""120 residues."""
_FEATURES = (("chain", 1, 110), ("domain", 30, 90), ("modified residue", 50, 50), ("disulfide bond", 40, 75), ("helix", 5, 20))


def pair() -> AlignedPair:
    """Return an alignment with each kind of column."""
    subject = QUERY[:10] + "-" * 5 + "W" * 5 + QUERY[20:]
    middle = "".join(a if a == b else " " if b == "-" else "+" for a, b in zip(QUERY, subject, strict=True))
    return AlignedPair("Q", "S", "a relative", 1, 1, QUERY, middle, subject, ("45.2 bits", "gaps 5"))


def stack() -> ColouredStack:
    """Return a stack of four hits, complete and partial."""
    lines = [QUERY, QUERY.replace("L", "K"), QUERY.replace("E", "D"), QUERY[:60].replace("S", "A")]
    n = len(lines)
    spans = [QUERY[: len(line)] for line in lines]
    lengths, starts = np.array([len(line) for line in lines], np.int64), np.zeros(n, np.int64)
    names = [f"subject{k}" for k in range(n)]
    subjects = AlignedSubjects(names, [""] * n, lengths, starts, starts, Texts.from_strings(spans), Texts.from_strings(lines), np.arange(n))
    return ColouredStack.from_stack(Stack.from_subjects("Q", "", QUERY, subjects), "zappo")


def coverage() -> Coverage:
    """Return a protein with features and two peptides, one of them modified."""
    peptides = [
        {"row": 4, "peptide": "LVNELTEFAK", "sequence": "LVNELTEFAK", "n_psms": 3, "q_value": 0.001},
        {"row": 7, "peptide": "DTHKS[Phospho]EIAHR", "sequence": "DTHKSEIAHR", "n_psms": 1, "q_value": 0.004},
    ]
    rows = [{"kind": kind, "first": first, "last": last, "description": ""} for kind, first, last in _FEATURES]
    return replace(cover("P02769", QUERY, peptides), features=protein_features(rows, len(QUERY)))


def hits() -> QueryBars:
    """Return one hit of each score class, out of more hits, along a query with features."""
    bars = [Bar(k, f"S{k}", "", 1 + 10 * k, 60 + 10 * k, bits, 1e-9, 0.5) for k, bits in enumerate((30.0, 45.0, 60.0, 100.0, 300.0))]
    return QueryBars("Q", len(QUERY), tuple(bars), 1234, coverage().features)


def pile() -> Pileup:
    """Return three alignments with a substitution, a deletion and an insertion."""
    start, end = np.array([1, 11, 31]), np.array([40, 60, 60])
    reference = np.frombuffer(b"ACGT" * 15, np.uint8)
    lane, read, position = np.array([0, 1, 2]), np.array([0, 1, 2]), np.array([20, 30, 45])
    symbol, is_reverse = np.frombuffer(b"A-+", np.uint8), np.array([False, True, False])
    names = ("read0", "read1", "read2")
    return Pileup(
        ShownReference(0, "chr1", 60), 1, 60, 2, np.arange(3), start, end, is_reverse, lane, read, position, symbol, reference, names
    )


def features() -> list[TrackFeature]:
    """Return two overlapping features."""
    return [TrackFeature(5, 40, "+", "recA", "gene"), TrackFeature(20, 50, "-", "b", "CDS")]

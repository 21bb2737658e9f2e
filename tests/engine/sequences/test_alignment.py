from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.sequences.alignment import Pairs, align_pair, align_pairs
from proteoscope.engine.sequences.matrices import encode, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from tests.effort import CancelCheckProgress


def as_codes(text):
    return encode(np.frombuffer(text.encode(), np.uint8))


def rescored(alignment, scheme):
    """Return the score of the alignment's columns, recomputed."""
    total = 0
    for length, operation in alignment.runs:
        if operation != "M":
            total -= scheme.gap_open + scheme.gap_extend * length
    pairs = (alignment.query >= 0) & (alignment.subject >= 0)
    return total + int(scheme.matrix.scores[alignment.query[pairs], alignment.subject[pairs]].sum())


@settings(max_examples=150, deadline=None)
@given(
    query=st.text("ARNDWC", min_size=1, max_size=60),
    subject=st.text("ARNDWCU", min_size=1, max_size=60),
    gap=st.tuples(st.integers(0, 12), st.integers(0, 3)),
    stored_cells=st.sampled_from([1, 40, 500, 1 << 24]),
)
def test_pairwise_alignment_has_the_best_score(query, subject, gap, stored_cells):
    from Bio.Align import PairwiseAligner
    from Bio.Align.substitution_matrices import Array

    from proteoscope.engine.sequences.matrices import SYMBOLS

    scheme = ScoringScheme(read_matrix("BLOSUM62"), *gap)
    aligner = PairwiseAligner(mode="local", substitution_matrix=Array(SYMBOLS, dims=2, data=scheme.matrix.scores.astype(float)))
    aligner.open_gap_score, aligner.extend_gap_score = -scheme.first_residue_cost, -scheme.gap_extend
    best = int(aligner.score(query, subject))
    alignment = align_pair(as_codes(query), as_codes(subject), scheme, Progress(), stored_cells=stored_cells)
    assert alignment.score == best == rescored(alignment, scheme)
    top, _, bottom = alignment.lines()
    assert top.replace("-", "") == query[alignment.query_start : alignment.query_end]
    assert bottom.replace("-", "") == subject[alignment.subject_start : alignment.subject_end]
    again = align_pair(as_codes(query), as_codes(subject), scheme, Progress(), score=best)
    assert again.cigar == alignment.cigar
    assert (again.query_start, again.subject_start) == (alignment.query_start, alignment.subject_start)
    if best:
        assert alignment.runs[0][1] == alignment.runs[-1][1] == "M"


def test_pairwise_alignment_counts_agree_with_the_text():
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 4, 1)
    alignment = align_pair(as_codes("GGHEAGAWGHEEKK"), as_codes("HEAWGHEEPP"), scheme, Progress())
    assert alignment.lines() == ("HEAGAWGHEE", "HE  AWGHEE", "HE--AWGHEE")
    assert (
        alignment.cigar,
        alignment.score,
        alignment.query_start,
        alignment.query_end,
        alignment.subject_start,
        alignment.subject_end,
    ) == (
        "2M2I6M",
        46,
        2,
        12,
        0,
        8,
    )
    assert (alignment.identities, alignment.mismatches, alignment.positives, alignment.gap_openings, len(alignment)) == (8, 0, 8, 1, 10)


def test_pairwise_alignment_has_a_middle_line():
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
    alignment = align_pair(as_codes("AAAWKLIVW"), as_codes("WRLIVW"), scheme, Progress())
    assert alignment.lines()[1] == "W+LIVW"
    assert (alignment.identities, alignment.positives, alignment.mismatches) == (5, 6, 1)


def test_unrelated_sequences_give_an_empty_alignment():
    alignment = align_pair(as_codes("WWW"), as_codes("PPP"), ScoringScheme(read_matrix("BLOSUM62"), 11, 1), Progress())
    assert (alignment.score, len(alignment), alignment.cigar, alignment.lines()) == (0, 0, "", ("", "", ""))


def test_long_alignment_needs_little_memory_and_stops_at_cancel():
    import tracemalloc

    generator = np.random.default_rng(1)
    text = "".join(generator.choice(list("ARNDCQEGHILKMFPSTWYV"), 12_000))
    other = text[:5000] + text[5300:]
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
    tracemalloc.start()
    alignment = align_pair(as_codes(text), as_codes(other), scheme, Progress())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert alignment.cigar == "5000M300I6700M"
    assert peak < 12_000 * 11_700 / 4
    whole, cancelled = CancelCheckProgress(), CancelCheckProgress(2)
    align_pair(as_codes(text), as_codes(other), scheme, whole)
    assert whole.n_checks >= 12_000 * 11_700 / 50_000_000
    with pytest.raises(Cancelled):
        align_pair(as_codes(text), as_codes(other), scheme, cancelled)
    assert cancelled.n_checks_after_cancel == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_cancel_ends_the_search_for_ranges_of_alignments(threads, monkeypatch):
    progress, was_stopped = Progress(), []

    def find_ranges(*arguments):
        progress.cancel()
        was_stopped.append(any(arguments[7][0] or time.sleep(0.01) for _ in range(1000)))

    monkeypatch.setattr("proteoscope.kernels.cpu.striped.find_ranges", find_ranges)
    codes, places = as_codes("ARNDARND"), np.array([[0, 4], [4, 8]])
    pairs = Pairs(codes, places, codes, places, np.array([21, 21]))
    with pytest.raises(Cancelled):
        align_pairs(pairs, ScoringScheme(read_matrix("BLOSUM62"), 11, 1), threads, progress)
    assert was_stopped and all(was_stopped)

"""Scores of all pairs against independent aligners."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.matrices import SYMBOLS, encode, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.cpu import alignment
from tests.effort import CancelCheckProgress

ODD = "ARNDCQEGHILKMFPSTWYVBZX*UOJ"


def packed(sequences):
    """Return the concatenated codes, and the start of each sequence."""
    offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in sequences]))).astype(np.int64)
    return encode(np.frombuffer("".join(sequences).encode(), np.uint8)), offsets


def scores_of(queries, subjects, scheme, threads=2):
    codes = [encode(np.frombuffer(query.encode(), np.uint8)) for query in queries]
    return score_all(codes, *packed(subjects), scheme, threads, Progress())


@pytest.mark.parametrize("matrix", ["BLOSUM62", "PAM250", "BLOSUM45"])
@pytest.mark.parametrize(("gap_open", "gap_extend"), [(11, 1), (0, 2), (30, 5)])
def test_alignment_scores_equal_biopython(matrix, gap_open, gap_extend, scheme, random_protein, independent_score):
    scheme = scheme(matrix, gap_open, gap_extend)
    lengths = [1, 2, 3, 4, 5, 31, 64, 65, 130, 700, 2100]
    subjects = [random_protein(k, length, ODD) for k, length in enumerate(lengths)]
    # Parts of one another, so that some alignments are long and have gaps.
    subjects.append(subjects[9][50:300] + subjects[10][:40] + subjects[9][310:600])
    queries = [subjects[k] for k in (0, 3, 6, 8, 9, 11)] + [random_protein(99, 333, ODD)]
    expected = [[independent_score(query, subject, scheme) for subject in subjects] for query in queries]
    assert scores_of(queries, subjects, scheme).tolist() == expected


def test_alignment_scores_of_real_proteins_equal_biopython(shared_data, scheme, independent_score):
    from proteoscope.engine.sequences.database import decode, read_sequences

    queries = read_sequences([shared_data / "sequences" / "cudasw_queries20.fasta"], Progress())
    database = read_sequences([shared_data / "sequences" / "mmseqs_DB.fasta"], Progress())
    scheme = scheme()
    scores = score_all([queries.codes(0), queries.codes(4)], database.residues, database.offsets, scheme, 2, Progress())
    best = np.argsort(-scores, axis=1)[:, :15]
    for row, query in enumerate((0, 4)):
        for subject in {*best[row].tolist(), *range(0, 20_000, 1500)}:
            expected = independent_score(decode(queries.codes(query)), decode(database.codes(subject)), scheme)
            assert scores[row, subject] == expected


@settings(max_examples=40, deadline=None)
@given(
    queries=st.lists(st.text(ODD, min_size=1, max_size=40), min_size=1, max_size=3),
    subjects=st.lists(st.text(ODD, max_size=60), min_size=1, max_size=70),
    gap=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_alignment_scores_of_random_sequences_equal_biopython(queries, subjects, gap):
    from Bio.Align import PairwiseAligner
    from Bio.Align.substitution_matrices import Array

    scheme = ScoringScheme(read_matrix("BLOSUM62"), *gap)
    aligner = PairwiseAligner(mode="local", substitution_matrix=Array(SYMBOLS, dims=2, data=scheme.matrix.scores.astype(float)))
    aligner.open_gap_score, aligner.extend_gap_score = -scheme.first_residue_cost, -scheme.gap_extend
    expected = [[int(aligner.score(query, subject)) if subject else 0 for subject in subjects] for query in queries]
    assert scores_of(queries, subjects, scheme).tolist() == expected


@pytest.mark.parametrize("length", [10, 11, 12, 23, 24, 2977, 2978, 2979, 5957, 5958, 12_000])
def test_tryptophan_runs_score_eleven_per_residue(length, scheme):
    """Check scores at the limits of 8 bits (from 11) and 16 bits (from 2,978), and of unsigned numbers (from 24 and 5,958)."""
    assert scores_of(["W" * length], ["W" * length, "AAA", "W" * 10], scheme()).tolist() == [[11 * length, 0, 110]]


@pytest.mark.parametrize(("end", "score"), [("N", 116), ("Y", 117), ("AA", 118), ("AAAA", 126), ("AAAR", 127), ("CC", 128)])
def test_alignment_scores_are_exact_at_the_eight_bit_limit(end, score, scheme, random_protein, independent_score):
    """Check ten tryptophans, which score 110; other subjects in the batch do not change the score."""
    sequence, scheme = "W" * 10 + end, scheme()
    subjects = [sequence, *(random_protein(k, 9) for k in range(150)), "W" * 30, *(random_protein(k, 12) for k in range(150, 300))]
    scores = scores_of([sequence], subjects, scheme)[0]
    assert scores[0] == score
    assert scores.tolist() == [independent_score(sequence, subject, scheme) for subject in subjects]


def test_alignment_scores_are_exact_for_one_very_long_protein(scheme, random_protein, independent_score):
    long, scheme = random_protein(5, 40_000), scheme()
    subjects = [long, "M", *(random_protein(k, 30 + k) for k in range(150))]
    query = long[20_000:20_100] + random_protein(6, 50)
    scores = scores_of([query], subjects, scheme)[0]
    assert scores[0] == independent_score(query, long, scheme)
    assert scores[1:].tolist() == [independent_score(query, subject, scheme) for subject in subjects[1:]]


@pytest.mark.parametrize(("matrix", "gap_open", "gap_extend"), [("BLOSUM62", 11, 1), ("PAM250", 14, 2), ("BLOSUM62", 5, 0)])
def test_few_long_sequences_are_scored_without_vector_lanes(
    matrix, gap_open, gap_extend, monkeypatch, scheme, random_protein, independent_score
):
    monkeypatch.setattr("proteoscope.kernels.cpu.alignment.score_lanes", lambda *args: pytest.fail("most lanes were empty"))
    first, second, scheme = random_protein(1, 1500), random_protein(2, 1501), scheme(matrix, gap_open, gap_extend)
    related = second[:400] + first[300:800] + first[830:1200] + second[900:]
    for query in (first, second):
        for subject in (first, second, related):
            assert scores_of([query], [subject], scheme).tolist() == [[independent_score(query, subject, scheme)]]


@pytest.mark.parametrize(("end", "score"), [("CRR", 32_766), ("WC", 32_767), ("WCX", 32_767), ("WCR", 32_772), ("W" * 2981, 65_538)])
def test_alignment_scores_are_exact_at_the_sixteen_bit_limit(end, score, scheme):
    """Check 2,977 tryptophans, which score 32,747."""
    assert scores_of(["W" * 2977 + end], ["W" * 2977 + end], scheme()).tolist() == [[score]]


def test_alignment_scores_of_long_related_proteins_are_exact(scheme, random_protein, independent_score):
    long = random_protein(1, 3000)
    subjects = [long[500:2500], long[:1500] + long[1510:2600], *(random_protein(k, 2000) for k in range(2, 68))]
    scores = scores_of([long, long[:40]], subjects, scheme())
    for k in (0, 1, 2, 40, 67):
        assert scores[0, k] == independent_score(long, subjects[k], scheme())


@pytest.mark.parametrize(
    ("gap_open", "gap_extend"),
    [(0, 0), (0, 1), (0, 64), (0, 65), (126, 1), (127, 1), (100, 14), (16_384, 8192), (32_767, 1), (10**9, 10**9), (2 * 10**9, 0)],
)
def test_alignment_scores_are_exact_for_any_gap_costs(gap_open, gap_extend, random_protein, independent_score):
    scheme = ScoringScheme(read_matrix("BLOSUM62"), gap_open, gap_extend)
    first, second = random_protein(1, 70), random_protein(2, 60)
    subjects = [first[:35] + "A" + first[35:], first[:9] + first[10:20], second, first + second, "M"]
    for query in (first, second, "W"):
        expected = [[independent_score(query, subject, scheme) for subject in subjects]]
        assert scores_of([query], subjects, scheme).tolist() == expected


@pytest.mark.parametrize(("factor", "gap_open", "gap_extend"), [(20, 220, 20), (1, 200, 1), (1, 1_000_000, 0), (4000, 44_000, 4000)])
def test_alignment_scores_are_exact_for_any_matrix_and_gap_costs(factor, gap_open, gap_extend, tmp_path, random_protein, independent_score):
    """Check costs and matrices that need more than 8 or 16 bits."""
    shipped = read_matrix("BLOSUM62")
    rows = [" ".join([residue, *map(str, row * factor)]) for residue, row in zip(SYMBOLS, shipped.scores, strict=True)]
    (tmp_path / "m.txt").write_text("\n".join([" ".join(SYMBOLS), *rows]))
    scheme = ScoringScheme(read_matrix(str(tmp_path / "m.txt")), gap_open, gap_extend)
    subjects = [random_protein(k, 60) for k in range(8)]
    subjects.append(subjects[0][:30] + subjects[1][:5] + subjects[0][30:])
    expected = [[independent_score(subjects[0], subject, scheme) for subject in subjects]]
    assert scores_of([subjects[0]], subjects, scheme).tolist() == expected


def test_alignment_scoring_rejects_possible_32_bit_overflow(tmp_path):
    (tmp_path / "m.txt").write_text("A C\nA 1000000 -1\nC -1 1000000\n")
    with pytest.raises(ParameterError, match=r"a score could reach 3,000,000,000 .* scale the matrix"):
        scores_of(["A" * 3000], ["A" * 3000], ScoringScheme(read_matrix(str(tmp_path / "m.txt")), 1, 1))


def test_alignment_score_of_empty_sequences_is_zero(scheme):
    assert scores_of(["MKV", ""], ["", "MKV", ""], scheme()).tolist() == [[0, 14, 0], [0, 0, 0]]


def test_alignment_scores_do_not_depend_on_threads(scheme, random_protein):
    subjects = [random_protein(k, 10 + k * 3) for k in range(200)]
    by_one_thread, by_three_threads = (scores_of(subjects[:5], subjects, scheme(), threads) for threads in (1, 3))
    assert np.array_equal(by_one_thread, by_three_threads)


def test_alignment_scoring_progress_counts_all_cells(scheme, random_protein, monkeypatch):
    monkeypatch.setattr("proteoscope.kernels.cpu.alignment._CELLS_OF_A_TASK", 2_000_000)
    begun, is_reported, run = itertools.count(), threading.Event(), alignment._Scorer._run

    def wait_and_run(self, task, stop):
        if next(begun) and not is_reported.wait(60):
            pytest.fail("no progress was reported for the first task")
        run(self, task, stop)

    # Otherwise all tasks may end before the check.
    monkeypatch.setattr("proteoscope.kernels.cpu.alignment._Scorer._run", wait_and_run)
    subjects, progress = [random_protein(k, 20 + k) for k in range(300)], Progress()
    codes, (residues, offsets) = [encode(np.frombuffer(subjects[-1].encode(), np.uint8))] * 3, packed(subjects)
    steps = []
    monkeypatch.setattr(progress, "advance", lambda n: (steps.append(n), is_reported.set()))
    parts = score_all(codes, residues, offsets, scheme(), 1, progress)
    assert sum(steps) == 3 * 319 * int(offsets[-1]) // 1_000_000 and len(steps) > 1
    assert np.array_equal(parts, scores_of([subjects[-1]] * 3, subjects, scheme()))


def test_alignment_scoring_stops_at_cancel(scheme, random_protein):
    subjects = [random_protein(k, 100) for k in range(100)]
    codes = [encode(np.frombuffer(subjects[0].encode(), np.uint8))]
    with pytest.raises(Cancelled):
        score_all(codes, *packed(subjects), scheme(), 2, CancelCheckProgress(1))

"""E-values against published constants, and against the frequency of random scores."""

from __future__ import annotations

import csv
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proteoscope import resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.database import read_sequences
from proteoscope.engine.sequences.matrices import SYMBOLS, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import (
    BACKGROUND,
    ScoreStatistics,
    default_gap_costs,
    expected_score,
    fit,
    random_sequences,
    tabulated,
    ungapped_lambda,
)


def rows():
    lines = resources.path("statistics", "karlin_altschul.tsv").read_text().splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


@pytest.fixture(scope="module")
def chance():
    """Return scores of random sequences with lengths from 100 to 1,000."""
    generator = np.random.default_rng(5)
    subject_lengths, query_lengths = generator.integers(100, 1000, 1500), generator.integers(100, 1000, 24)
    subjects, offsets = random_sequences(subject_lengths, 3)
    queries, query_offsets = random_sequences(query_lengths, 7)

    @cache
    def scores_by(*costs):
        scheme = ScoringScheme(read_matrix(costs[0]), *costs[1:])
        return score_all(np.split(queries, query_offsets[1:-1]), subjects, offsets, scheme, 2, Progress())

    def scores(scheme):
        return scores_by(scheme.matrix.name, scheme.gap_open, scheme.gap_extend)

    return scores, query_lengths, subject_lengths


def observed_over_expected(statistics, scores, query_lengths, subject_lengths, share):
    """Return the ratio of observed to expected random pairs with an E-value below `share`."""
    total = int(subject_lengths.sum())
    pairwise = [
        statistics.e_values(row, int(length), subject_lengths, total) * subject_lengths / total
        for row, length in zip(scores, query_lengths, strict=True)
    ]
    return float((np.stack(pairwise) < share).mean() / -np.expm1(-share))


def test_e_value_statistics_have_the_published_constants():
    table = {(row["matrix"], row["gap_open"], row["gap_extend"]): row for row in rows()}
    assert len(table) == 92
    row = table["BLOSUM62", "11", "1"]
    values = tuple(float(row[name]) for name in ("lambda", "K", "H", "a", "b", "alpha", "sigma"))
    assert values == (0.267, 0.041, 0.14, 1.9, -30, 42.6028, 43.6362)
    for row in table.values():
        # `a` is lambda / H; both are rounded in the table.
        assert float(row["a"]) == pytest.approx(float(row["lambda"]) / float(row["H"]), rel=0.08)


@pytest.mark.parametrize(
    ("query_length", "subject_length", "score", "bits", "e_value"),
    [
        (450, 575, 198, 80.9, 2.17e-16),
        (639, 597, 238, 96.3, 7.22e-21),
        (588, 574, 971, 378, 1.04e-124),
        (360, 331, 392, 155, 1.55e-44),
        (576, 440, 72, 32.3, 0.59),
        (673, 2284, 64, 29.3, 7.8),
        (122, 676, 56, 26.2, 4.9),
    ],
)
def test_sequence_bit_scores_and_e_values_equal_blast(query_length, subject_length, score, bits, e_value):
    """Compare with blastp 2.12.0 without composition-based statistics, for a database of 9,055,569 residues."""
    statistics = tabulated(ScoringScheme(read_matrix("BLOSUM62"), 11, 1))
    assert statistics.bit_scores(np.array([score]))[0] == pytest.approx(bits, abs=0.06 if bits < 100 else 1)
    result = statistics.e_values(np.array([score]), query_length, np.array([subject_length]), 9_055_569)[0]
    assert result == pytest.approx(e_value, rel=0.012)


@pytest.mark.parametrize(
    ("query_length", "subject_length", "score", "bits", "e_value"),
    [(375, 133, 696, 286, 5.38e-79), (729, 714, 214, 89.5, 6.74e-18), (464, 388, 140, 59.2, 5.47e-9), (144, 319, 61, 26.9, 9.2)],
)
def test_e_values_of_the_identity_matrix_equal_blast(query_length, subject_length, score, bits, e_value):
    """Compare with blastp 2.12.0 and -matrix IDENTITY, for the same database."""
    statistics = tabulated(ScoringScheme(read_matrix("IDENTITY"), *default_gap_costs("IDENTITY")))
    assert statistics.bit_scores(np.array([score]))[0] == pytest.approx(bits, abs=0.06 if bits < 100 else 1)
    result = statistics.e_values(np.array([score]), query_length, np.array([subject_length]), 9_055_569)[0]
    assert result == pytest.approx(e_value, rel=0.012)


@pytest.mark.parametrize("name", ["DAYHOFF", "GONNET", "BLOSUMN"])
def test_default_gap_costs_suffice_for_matrix_without_ncbi_table(chance, name):
    scores, query_lengths, subject_lengths = chance
    scheme = ScoringScheme(read_matrix(name), *default_gap_costs(name))
    assert tabulated(scheme) is None
    fitted = fit(scores(scheme), query_lengths, subject_lengths, scheme, "here")
    assert 0.7 < fitted.lambda_ / ungapped_lambda(scheme.matrix) < 1


def test_matrix_file_equal_to_ncbi_matrix_has_ncbi_statistics(tmp_path):
    (tmp_path / "copy.txt").write_text(resources.path("matrices", "BLOSUM62.txt").read_text())
    assert tabulated(ScoringScheme(read_matrix(str(tmp_path / "copy.txt")), 11, 1)) is not None
    assert tabulated(ScoringScheme(read_matrix("BLOSUM62"), 12, 3)) is None
    assert tabulated(ScoringScheme(read_matrix("BLOSUM65"), 11, 1)) is None


@pytest.mark.parametrize("name", ["BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "PAM30", "PAM70", "PAM250"])
def test_default_gap_costs_are_in_the_ncbi_table_of_each_matrix(name):
    assert tabulated(ScoringScheme(read_matrix(name), *default_gap_costs(name))) is not None


@pytest.mark.parametrize(
    ("matrix", "gap_open", "gap_extend"), [("BLOSUM62", 11, 1), ("BLOSUM45", 14, 2), ("BLOSUM80", 10, 1), ("PAM30", 9, 1)]
)
def test_tabulated_e_values_are_correct_for_random_sequences(chance, matrix, gap_open, gap_extend):
    scores, query_lengths, subject_lengths = chance
    scheme = ScoringScheme(read_matrix(matrix), gap_open, gap_extend)
    result = scores(scheme)
    for share, tolerance in ((0.1, 0.2), (0.01, 0.25), (0.001, 0.5)):
        observed = observed_over_expected(tabulated(scheme), result, query_lengths, subject_lengths, share)
        assert observed == pytest.approx(1, abs=tolerance), share


@pytest.mark.parametrize(
    ("matrix", "gap_open", "gap_extend"), [("BLOSUM62", 11, 1), ("BLOSUM62", 30, 30), ("PAM120", 12, 1), ("BLOSUM65", 8, 2)]
)
def test_fitted_e_values_are_correct_despite_related_pairs(chance, matrix, gap_open, gap_extend):
    make, query_lengths, subject_lengths = chance
    scheme = ScoringScheme(read_matrix(matrix), gap_open, gap_extend)
    scores = make(scheme)
    contaminated = scores.copy()
    contaminated[:, ::100] += 300
    statistics = fit(contaminated, query_lengths, subject_lengths, scheme, "of chance")
    for share, tolerance in ((0.1, 0.2), (0.01, 0.25), (0.001, 0.5)):
        observed = observed_over_expected(statistics, scores, query_lengths, subject_lengths, share)
        assert observed == pytest.approx(1, abs=tolerance), share


def test_fitted_statistics_are_near_the_constants_of_ncbi(chance):
    make, query_lengths, subject_lengths = chance
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
    statistics = fit(make(scheme), query_lengths, subject_lengths, scheme, "of chance")
    assert statistics.lambda_ == pytest.approx(0.267, rel=0.06)
    assert statistics.a == pytest.approx(1.9, rel=0.2)


def test_fitted_e_values_are_correct_for_real_proteins(shared_data):
    """Check reversed proteins, which retain their composition and have no relatives."""
    queries = read_sequences([shared_data / "sequences" / "mmseqs_QUERY.fasta"], Progress())
    database = read_sequences([shared_data / "sequences" / "mmseqs_DB.fasta"], Progress())
    chosen = np.random.default_rng(1).choice(np.flatnonzero(queries.lengths >= 60), 15, replace=False)
    scheme, reversed_queries = ScoringScheme(read_matrix("BLOSUM62"), 14, 3), [queries.codes(int(i))[::-1].copy() for i in chosen]
    scores = score_all(reversed_queries, database.residues, database.offsets, scheme, 2, Progress())
    statistics = fit(scores, queries.lengths[chosen], database.lengths, scheme, "of real proteins")
    e_values = [
        statistics.e_values(row, len(query), database.lengths, database.n_residues)
        for query, row in zip(reversed_queries, scores, strict=True)
    ]
    assert 4 <= np.median([(row <= 10).sum() for row in e_values]) <= 25
    assert np.median([(row <= 0.05).sum() for row in e_values]) == 0


def test_statistics_are_not_fitted_to_few_or_equal_scores():
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
    assert fit(np.full((2, 100), 40), np.full(2, 300), np.full(100, 300), scheme, "") is None
    assert fit(np.full((2, 5000), 40), np.full(2, 300), np.full(5000, 300), scheme, "") is None


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40_000), min_size=1, max_size=300).map(sorted),
    query_length=st.sampled_from([0, 1, 20, 100, 375, 5000]),
    most=st.integers(0, 400),
    maximum_e_value=st.floats(1e-30, 1e6),
    scheme=st.sampled_from([("BLOSUM62", 11, 1), ("PAM30", 9, 1), None]),
)
@example(lengths=[0, 2], query_length=0, most=2, maximum_e_value=23.0, scheme=("BLOSUM62", 11, 1))
def test_minimum_score_follows_the_maximum_e_value(lengths, query_length, most, maximum_e_value, scheme):
    statistics = ScoreStatistics(0.02, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "")
    if scheme is not None:
        statistics = tabulated(ScoringScheme(read_matrix(scheme[0]), *scheme[1:]))
    lengths = np.array(lengths)
    least = statistics.minimum_scores(maximum_e_value, query_length, lengths, int(lengths.sum()), most)
    scores = np.random.default_rng(most).integers(0, most + 1, len(lengths))
    small = statistics.e_values(scores, query_length, lengths, int(lengths.sum())) <= maximum_e_value
    assert (scores >= least)[small & (scores > 0)].all()
    assert (least >= 1).all() and (least <= most + 1).all()


def test_e_values_are_finite_for_extreme_scores_and_lengths():
    statistics = tabulated(ScoringScheme(read_matrix("BLOSUM62"), 11, 1))
    values = statistics.e_values(np.array([1, 11, 440_000]), 1, np.array([1, 40_000, 40_000]), 80_001)
    assert np.isfinite(values).all() and (values >= 0).all()


def test_background_and_expected_score_equal_published_values():
    assert BACKGROUND.sum() == pytest.approx(1, abs=1e-4)
    assert BACKGROUND[SYMBOLS.index("W")] == 0.0133
    assert expected_score(read_matrix("BLOSUM62")) == pytest.approx(-0.95, abs=0.02)


def test_matrix_without_negative_scores_has_no_lambda(tmp_path):
    (tmp_path / "m.txt").write_text("A C\nA 1 1\nC 1 1\n")
    matrix = read_matrix(str(tmp_path / "m.txt"))
    assert (expected_score(matrix) >= 0) == (ungapped_lambda(matrix) is None) or ungapped_lambda(matrix) > 0

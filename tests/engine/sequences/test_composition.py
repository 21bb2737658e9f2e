"""E-values adjusted for composition, against definitions and shuffled proteins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from benchmarks.sequence_statistics import CLASSES, Calibration
from proteoscope import kernels
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.composition import CompositionAdjustment, masked_sequences, significant_hits
from proteoscope.engine.sequences.database import read_sequences
from proteoscope.engine.sequences.matrices import SYMBOLS, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import BACKGROUND, tabulated, ungapped_lambda

SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
USUAL = BACKGROUND / BACKGROUND.sum()
X = SYMBOLS.index("X")


def masked_by_definition(codes):
    """Return overlapping windows of 12 with an entropy up to 2.1 bits, at least one with up to 1.9."""
    entropies = []
    for first in range(len(codes) - 11):
        share = np.unique(codes[first : first + 12], return_counts=True)[1] / 12
        entropies.append(-float((share * np.log2(share)).sum()))
    result, first = codes.copy(), 0
    while first < len(entropies):
        last = first
        while last < len(entropies) and entropies[last] <= 2.1:
            last += 1
        if last > first and min(entropies[first:last]) <= 1.9:
            result[first : last + 11] = X
        first = last + 1
    return result


def random_database(tmp_path, n=120):
    """Return proteins of very different compositions, some with repeats."""
    generator, residues = np.random.default_rng(4), np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    records = []
    for number in range(n):
        share = generator.dirichlet(np.full(20, 0.3 + number % 5))
        sequence = "".join(generator.choice(residues, generator.integers(1, 300), p=share))
        records.append(f">s{number}\n{sequence}{'PQ' * (number % 4 * 8)}\n")
    (tmp_path / "database.fasta").write_text("".join(records))
    return read_sequences([tmp_path / "database.fasta"], Progress())


def brute_force_lambda(*counts):
    """Return the lambda for which the mean of ``exp(lambda s)`` is 1; 200 residues of the usual composition are added to each sequence."""
    query, subject = ((count * (USUAL > 0) + 200 * USUAL) / (count[USUAL > 0].sum() + 200) for count in counts)
    pairs = np.outer(query, subject)
    return brentq(lambda value: (pairs * np.exp(value * SCHEME.matrix.scores)).sum() - 1, 0.02, 0.6, xtol=1e-13)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=60), min_size=1, max_size=5))
def test_low_complexity_masking_equals_the_definition(sequences):
    codes = np.array([code for sequence in sequences for code in sequence], np.int8)
    offsets = np.cumsum([0, *map(len, sequences)])
    masked, counts = masked_sequences(codes, offsets)
    expected = [masked_by_definition(np.array(sequence, np.int8)) for sequence in sequences]
    assert np.array_equal(masked, np.concatenate(expected))
    assert np.array_equal(counts, [np.bincount(sequence, minlength=len(SYMBOLS)) for sequence in expected])


def test_composition_lambdas_are_roots_of_the_defining_equation():
    generator = np.random.default_rng(8)
    counts = np.zeros((40, len(SYMBOLS)), np.int64)
    counts[:, USUAL > 0] = generator.multinomial(300, generator.dirichlet(np.full(20, 2.0)), 40)
    scores, classes = np.unique(SCHEME.matrix.scores, return_inverse=True)
    lambdas = np.empty(39)
    kernels.cpu.composition.pair_lambdas(
        counts[0], counts[1:], 200 * USUAL, classes.reshape(27, 27), scores.astype(float), 0.05, 0.6, lambdas
    )
    expected = [brute_force_lambda(counts[0], subject) for subject in counts[1:]]
    assert lambdas == pytest.approx(np.array(expected), rel=1e-7)


def test_composition_adjusted_hits_equal_brute_force(tmp_path):
    """Check that every subject is masked, scored and scaled."""
    database, statistics = random_database(tmp_path), tabulated(SCHEME)
    adjustment, standard = CompositionAdjustment(database, SCHEME), ungapped_lambda(SCHEME.matrix)
    numbers = range(5, len(database), 9)
    queries = [database.codes(i) for i in numbers]
    scores = score_all(queries, database.residues, database.offsets, SCHEME, 1, Progress())
    masked, counts = masked_sequences(database.residues, database.offsets)
    assert (masked != database.residues).any()
    masked_queries = [masked[slice(*database.offsets[i : i + 2])] for i in numbers]
    masked_scores = score_all(masked_queries, masked, database.offsets, SCHEME, 1, Progress())
    n_hits = 0
    results = significant_hits(statistics, adjustment, database, queries, scores, 5.0, 2, Progress())
    for i, query, row, masked_row, hits in zip(numbers, queries, scores, masked_scores, results, strict=True):
        roots = np.array([brute_force_lambda(counts[i], subject) for subject in counts])
        adjusted = np.minimum(row, masked_row) * np.clip(roots / standard, 0.5, 1.05) ** 3
        expected = statistics.e_values(adjusted, len(query), database.lengths, database.n_residues)
        assert np.array_equal(hits.subjects, np.flatnonzero(expected <= 5.0))
        assert hits.e_values == pytest.approx(expected[hits.subjects], rel=1e-5)
        assert hits.bit_scores == pytest.approx(statistics.bit_scores(adjusted[hits.subjects]), rel=1e-6)
        n_hits += len(hits.subjects)
    assert n_hits > 20


def test_composition_adjusted_hits_are_equal_on_any_threads(tmp_path):
    database, statistics = random_database(tmp_path), tabulated(SCHEME)
    query = database.codes(100)
    scores = score_all([query], database.residues, database.offsets, SCHEME, 1, Progress())
    adjustment = CompositionAdjustment(database, SCHEME)
    results = [significant_hits(statistics, adjustment, database, [query], scores, 50.0, threads, Progress())[0] for threads in (1, 2, 5)]
    assert len(results[0].subjects) > 3
    for hits in results[1:]:
        assert hits.subjects.tobytes() == results[0].subjects.tobytes()
        assert hits.e_values.tobytes() == results[0].e_values.tobytes()


def test_e_values_of_shuffled_proteins_are_correct(shared_data, tmp_path):
    """Check that each query has about one hit with an E-value up to 1; without the adjustment, proline-rich queries have many more."""
    calibration = Calibration.from_data(shared_data, 16, tmp_path)
    results = {name: calibration.hits(calibration.shuffled(name, 60, seed=77), SCHEME, 2) for name in ("C", "G", "P", "usual")}
    assert results["P"]["plain"][0] > 10 * 60
    for name, counts in results.items():
        assert 0.4 * 60 <= counts["adjusted"][0] <= 1.9 * 60, name
        assert counts["adjusted"][2] <= 4, name


@pytest.mark.long
@pytest.mark.parametrize("name", CLASSES)
def test_e_values_are_correct_for_any_protein_composition(shared_data, tmp_path, name):
    calibration = Calibration.from_data(shared_data, 8, tmp_path)
    result = calibration.hits(calibration.shuffled(name, 1000, seed=78), SCHEME, 2)["adjusted"]
    assert 600 <= result[0] <= 1600
    assert 40 <= result[1] <= 250
    assert result[2] <= 40 and result[3] <= 15

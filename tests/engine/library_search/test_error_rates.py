"""Error rates of library matches: each group by its own decoys, equal to a plain count, and correct where the truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.library_search.error_rates import accepted_spectra, cascade, estimate_error_rates
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import Entries, References
from proteoscope.engine.library_search.scoring import Matches
from proteoscope.kernels.library_layouts import PeakLists


def references(n_peptides, n_shuffles):
    """Return a library of `n_peptides` peptides, each target followed by `n_shuffles` shuffled decoys."""
    n = n_peptides * (1 + n_shuffles)
    entry, place = np.divmod(np.arange(n), 1 + n_shuffles)
    names = pa.array([f"PEPTIDE{'A' * i}K" for i in range(n_peptides)])
    nothing = pa.nulls(n_peptides, pa.string())
    texts = {"sequence": names, "inchikey": nothing, "name": names}
    peaks = PeakLists(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint16))
    return References(
        Entries(texts, {}, np.zeros(1, np.int64), np.empty(0), np.empty(0, np.float32)),
        entry,
        place > 0,
        np.ones(n, np.bool_),
        np.full(n, 2),
        np.full(n, 500.0),
        np.zeros(n, np.int32),
        peaks,
        np.zeros(64, np.int64),
        0,
        "shuffle",
    )


def library_matches(reference, similarity, spectra=None, *, is_shifted=False):
    n = len(reference)
    spectra = np.arange(n) if spectra is None else spectra
    shifted = np.full(n, is_shifted)
    return Matches(spectra, reference, np.full(n, 2), similarity, np.full(n, 9), np.zeros(n), shifted)


def settings(**changed):
    return LibrarySearchParameters().changed(**{"fdr": 0.01, "minimum_similarity": 0.2, "plus_one": False, **changed})


def plain_rates(similarity, is_decoy, peptide, n_decoys, *, plus_one):
    """Return q-values by definition: the minimum rate over all thresholds, of spectra or of distinct peptides, whichever is larger."""
    best = {name: max((similarity[i], is_decoy[i]) for i in np.flatnonzero(peptide == name)) for name in set(peptide.tolist())}
    rates = []
    for threshold in similarity:
        accepted = similarity >= threshold
        by_match = ((accepted & is_decoy).sum() + plus_one) / n_decoys / max(1, (accepted & ~is_decoy).sum())
        wins = [decoy for score, decoy in best.values() if score >= threshold]
        targets = wins.count(False)
        rates.append((min(1.0, by_match), min(1.0, (wins.count(True) + 1) / n_decoys / targets) if targets else 1.0))
    rates = np.array(rates)
    order = np.argsort(similarity)
    least = np.minimum.accumulate(rates[order], axis=0)
    return least[np.searchsorted(similarity[order], similarity)].max(axis=1)


@pytest.mark.parametrize("plus_one", [False, True])
@pytest.mark.parametrize("n_shuffles", [1, 4])
def test_library_error_rates_equal_reference_loops(n_shuffles, plus_one):
    library, rng = references(40, n_shuffles), np.random.default_rng(n_shuffles)
    right = (1 + n_shuffles) * rng.integers(0, 40, 90)
    wrong = rng.choice(len(library), 12)
    matches = library_matches(np.concatenate((right, wrong)), np.concatenate((rng.uniform(0.5, 1.0, 90), rng.uniform(0.1, 0.6, 12))))
    rated = estimate_error_rates(matches, library, settings(plus_one=plus_one))
    is_decoy, peptide = library.is_decoy[matches.reference], library.entry[matches.reference]
    assert rated.q_value == pytest.approx(plain_rates(matches.similarity, is_decoy, peptide, float(n_shuffles), plus_one=plus_one))


def test_existing_library_decoys_compete_with_any_target():
    library = replace(references(40, 1), decoys="existing")
    similarity = np.linspace(1.0, 0.5, 41)
    # The decoy of the best target would lose to it, but the decoy of another library entry counts.
    rated = estimate_error_rates(library_matches(np.append(2 * np.arange(40), 1), similarity), library, settings())
    assert rated.q_value[0] == pytest.approx(1 / 40) and rated.q_value[-1] == pytest.approx(2 / 40)


def test_cascade_search_excludes_spectra_accepted_at_equal_mass():
    library, parameters = references(300, 1), settings(precursor_tolerance="200 Da")
    sure = library_matches(2 * np.arange(150), np.full(150, 0.9))
    poor = library_matches(np.array([400]), np.array([0.1]), np.array([150]))
    same = estimate_error_rates(sure.joined(poor), library, parameters)
    # The poor match is too dissimilar to be reported at any rate, so its spectrum is compared at other masses.
    assert parameters.is_open and accepted_spectra(same, parameters).tolist() == list(range(150))
    shifted = library_matches(np.array([302, 305]), np.array([0.8, 0.3]), np.array([150, 151]), is_shifted=True)
    rated = cascade(same, estimate_error_rates(shifted, library, parameters))
    assert rated.spectrum.tolist() == list(range(152)) and rated.is_shifted.tolist() == [False] * 150 + [True, True]
    assert (rated.q_value[:150] <= 0.01).all() and rated.is_decoy.tolist()[-2:] == [False, True]


@pytest.mark.parametrize("n_peptides", [27, 80])
def test_library_error_rates_are_unbiased_for_small_libraries(n_peptides):
    n_shuffles = -(-200 // n_peptides)
    library, rng, shares = references(n_peptides, n_shuffles), np.random.default_rng(9), []
    for _ in range(150):
        right = (1 + n_shuffles) * rng.integers(0, n_peptides, 100)
        wrong = rng.choice(len(library), 60)  # A wrong match is to a peptide or to any of its shuffled decoys with equal probability.
        similarity = np.concatenate((rng.beta(8, 3, 100), rng.beta(3, 8, 60)))
        rated = estimate_error_rates(library_matches(np.concatenate((right, wrong)), similarity), library, settings())
        accepted = (rated.q_value <= 0.01) & ~rated.is_decoy
        shares.append((accepted & (np.arange(160) >= 100)).sum() / max(1, accepted.sum()))
    assert np.mean(shares) <= 0.01 + 2 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) > 0  # The test needs some accepted wrong matches.


@pytest.mark.parametrize("n_shuffles", [1, 4])
def test_library_error_probabilities_agree_with_simulated_truth(n_shuffles):
    from scipy.stats import beta

    library, rng = references(2000, n_shuffles), np.random.default_rng(n_shuffles)
    n_right, n_wrong = 6000, 9000
    reference = np.concatenate(((1 + n_shuffles) * rng.integers(0, 2000, n_right), rng.choice(len(library), n_wrong)))
    similarity = np.concatenate((rng.beta(8, 3, n_right), rng.beta(3, 8, n_wrong)))
    rated = estimate_error_rates(library_matches(reference, similarity), library, settings())
    # A share of 1 / (k + 1) of the wrong matches are to targets; Bayes' rule is applied to the two densities.
    wrong = n_wrong / (1 + n_shuffles) * beta.pdf(similarity, 3, 8)
    true = wrong / (wrong + n_right * beta.pdf(similarity, 8, 3))
    targets = ~rated.is_decoy
    assert np.abs(rated.posterior_error - true)[targets].mean() < 0.02
    assert np.abs(rated.posterior_error - true)[targets & (true < 0.5)].max() < 0.12
    # The number of wrong accepted matches is the sum of the probabilities.
    accepted = targets & (rated.posterior_error < 0.1)
    assert rated.posterior_error[accepted].sum() == pytest.approx((accepted & (np.arange(len(true)) >= n_right)).sum(), rel=0.25)

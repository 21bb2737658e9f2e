"""False localisation rates follow their definition, and evidence from few ions is near that of many."""

import numpy as np
import pytest

from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification, unimod
from proteoscope.engine.matches.localisation import ModificationSites, ion_evidence, is_localised, rate_sites, usual_sites
from proteoscope.kernels.cpu.localisation import ERRORS, KINDS, OUTCOMES, PREDICTIONS, IonCounts

RATIO = np.array([[300.0, 60.0, 90.0]])  # target residues, alanines, leucines


def made_sites(random, n):
    """Return n competing sites of one modification: a third wrong, some of these decoys."""
    is_wrong = random.random(n) < 0.3
    is_decoy = is_wrong & (random.random(n) < 0.3)
    score = random.normal(np.where(is_wrong, 0.5, 2.5), 1.0)
    sites = ModificationSites(
        np.arange(n),
        np.zeros(n, np.int64),
        random.integers(1, 9, n),
        np.where(is_decoy, 0.0, 0.9),
        score,
        is_decoy,
        np.ones(n, bool),
        random.random(n) < 0.9,
        np.full(n, -1, np.int16),
        ("Phospho",),
    )
    return sites, np.where(is_decoy, np.where(random.random(n) < 0.4, ord("A"), ord("L")), ord("S")).astype(np.uint8)


@pytest.mark.parametrize("plus_one", [False, True])
def test_rate_sites_counts_each_collapsed_site_once(plus_one):
    random = np.random.default_rng(4)
    sites, residue = made_sites(random, 400)
    key = np.where(sites.is_decoy, 1000, 0) + random.integers(0, 150, 400)
    # A collapsed site has an alternative in all of its matches or in none.
    alternative = {number: random.random() < 0.9 for number in np.unique(key).tolist()}
    residue_of = {number: residue[key == number][0] for number in alternative}
    sites.has_alternative[:] = [alternative[number] for number in key.tolist()]
    residue = np.array([residue_of[number] for number in key.tolist()], np.uint8)
    rates = rate_sites(sites, key, residue, RATIO, plus_one=plus_one)
    best = {number: max(sites.score[key == number]) for number in alternative if alternative[number]}
    for group, number in enumerate(np.unique(key).tolist()):
        if not alternative[number]:
            assert np.isnan(rates.q_value[group]) and np.isnan(rates.by_residue[group]).all()
            continue
        for q_value, symbols, decoys in (
            (rates.q_value[group], "AL", 150),
            (rates.by_residue[group, 0], "A", 60),
            (rates.by_residue[group, 1], "L", 90),
        ):
            if number >= 1000 and chr(residue_of[number]) not in symbols:
                continue

            def rate(limit, symbols=symbols, decoys=decoys):
                wrong = sum(score >= limit and site >= 1000 and chr(residue_of[site]) in symbols for site, score in best.items())
                right = sum(score >= limit and site < 1000 for site, score in best.items())
                return min(1.0, (wrong + plus_one) * 300 / decoys / right) if right else 1.0

            expected = min(rate(score) for score in best.values() if score <= best[number])
            assert q_value == pytest.approx(expected)


def test_rate_sites_gives_no_rate_to_unreported_sites():
    sites, residue = made_sites(np.random.default_rng(5), 100)
    sites.has_alternative[:] = True
    left_out = np.flatnonzero(sites.is_decoy)
    sites.is_reported[left_out] = False
    rates = rate_sites(sites, np.arange(100), residue, RATIO)
    assert len(left_out) > 3 and np.isnan(rates.q_value[left_out]).all()
    assert (rates.q_value[~sites.is_decoy] == 0.0).all()


def test_rate_sites_estimates_nothing_without_decoy_residues():
    sites, residue = made_sites(np.random.default_rng(6), 50)
    sites.is_decoy[:] = False
    assert np.isnan(rate_sites(sites, np.arange(50), residue, np.array([[100.0, 0.0, 0.0]])).q_value).all()


def counts(n):
    """Return counts in which half of n ions of each kind match the strongest peaks, and n ions that are absent match nothing."""
    present, absent = np.zeros((KINDS, PREDICTIONS, OUTCOMES), np.int64), np.zeros((KINDS, OUTCOMES), np.int64)
    present[:, :, 0], present[:, :, 1], absent[:, 0] = n - n // 2, n // 2, n
    return IonCounts(present, absent, np.full(ERRORS, n, np.int64))


def test_ion_evidence_approaches_the_frequencies_of_many_ions():
    evidence = ion_evidence(counts(100_000))
    assert np.exp(evidence.present[..., 1]) == pytest.approx(0.5, abs=0.001)
    assert evidence.absent[:, 0] == pytest.approx(1.0, abs=0.001)
    assert evidence.errors == pytest.approx(0.0, abs=1e-9)


def test_ion_evidence_without_counts_has_default_probabilities():
    evidence = ion_evidence(counts(0))
    assert np.exp(evidence.present).sum(axis=-1) == pytest.approx(1.0)
    assert np.exp(evidence.present[..., 0]) == pytest.approx(0.5)
    assert (np.isfinite(evidence.present)).all() and (evidence.errors == 0).all()


@pytest.mark.parametrize(
    ("text", "automatic", "every"),
    [
        ("Phospho (STY)", True, True),
        ("Oxidation (M)", False, True),
        ("Oxidation (W)", True, True),
        ("Acetyl (Protein N-term)", False, False),
        ("Gln->pyro-Glu (N-term Q)", False, False),
    ],
)
def test_is_localised_selects_modifications_by_option(text, automatic, every):
    modification = parse_modification(text)
    assert [is_localised(modification, choice) for choice in ("automatic", "all", "none")] == [automatic, every, False]


def test_usual_sites_are_visible_or_observed_unimod_sites():
    def sites(name, observed=()):
        entry = unimod().by_name(name)
        return usual_sites(SearchModification(name, entry.id, entry.mass, "", "anywhere"), observed)

    assert [(site.residues, site.position) for site in sites("Phospho")] == [("STY", "anywhere")]
    assert sites("Acetyl")[0].residues == "K"
    assert {site.position for site in sites("Acetyl")[1:]} == {"peptide N-term", "protein N-term"}
    assert sites("GG") == [] and sites("GG", "K")[0].residues == "K", "Unimod hides all sites of GG"
    assert sites("Ala->Ser") == []
    assert usual_sites(SearchModification("+12.3456", None, 12.3456, "", "anywhere"), "K") == []

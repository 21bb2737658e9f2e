"""Site probabilities equal their definition: a sum over all arrangements, with ions looked up one by one."""

from itertools import combinations

import numpy as np
import pytest
from pyteomics import mass

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.masses import RESIDUE_MASS, WATER_MASS
from proteoscope.engine.matches.scoring_settings import ion_settings
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.kernels.cpu.localisation import (
    DECOY_BIT,
    ERRORS,
    KINDS,
    MIXTURE_LEVEL,
    OUTCOMES,
    PREDICTIONS,
    IonCounts,
    IonEvidence,
    MovableSites,
    count_ions,
    find_mixtures,
    localise_sites,
)
from proteoscope.kernels.cpu.scores import PROTON_MASS
from proteoscope.kernels.layouts import SpectrumArrays

PHOSPHO, LOSS, OXIDATION = 79.966331, 97.976896, 15.994915
RANKS = (5, 10, 20, 40, 80, 160)
# Peptide, types that it carries with the true sites, charge; S, T and Y may be phosphorylated, M oxidised, A and L are decoy sites.
CASES = (
    ("ASTPEPLTIDEK", {0: (3,)}, 2),
    ("SAMTPLEMSYK", {0: (4, 9), 1: (3,)}, 3),
    ("SSSAK", {0: (2, 3)}, 2),
    ("MSEQVK", {0: (2,), 1: (1,)}, 2),
)
RESIDUES = ("STY", "M")


def fragments(sequence, sites, charge):
    """Return (bond, series, charge, m/z, largest loss) of all b and y ions of an arrangement, given as a dict from site to type."""
    masses = [RESIDUE_MASS[ord(residue) - 65] for residue in sequence]
    for site, kind in sites.items():
        masses[site - 1] += (PHOSPHO, OXIDATION)[kind]
    for bond in range(1, len(sequence)):
        for series, residues, water in ((0, range(1, bond + 1), 0.0), (1, range(bond + 1, len(sequence) + 1), WATER_MASS)):
            mass = sum(masses[residue - 1] for residue in residues) + water
            loss = LOSS if any(sites.get(residue) == 0 for residue in residues) else 0.0
            for z in range(1, max(1, min(2, charge - 1)) + 1):
                yield bond, series, z, (mass + z * PROTON_MASS) / z, loss


@pytest.fixture(scope="module")
def localised():
    random = np.random.default_rng(11)
    peaks = []
    for sequence, truth, charge in CASES:
        sites = {site: kind for kind, places in truth.items() for site in places}
        ions = [mz for _, _, _, mz, _ in fragments(sequence, sites, charge) if random.random() < 0.6]
        mz = np.concatenate((np.array(ions) * (1 + 4e-6 * random.normal(size=len(ions))), random.uniform(100, 1000, 60)))
        peaks.append(np.sort(mz))
    offsets = segment_offsets(np.array([len(peak) for peak in peaks]))
    weight = random.permutation(offsets[-1]).astype(np.float32) + 1  # distinct, so that ranks are
    spectra = SpectrumArrays(offsets, np.concatenate(peaks), weight, weight)
    lengths = segment_offsets(np.array([len(sequence) for sequence, *_ in CASES]))
    allowed = []
    for sequence, *_ in CASES:
        bits = [sum(1 << kind for kind in (0, 1) if residue in RESIDUES[kind]) | (residue in "AL") << DECOY_BIT for residue in sequence]
        allowed += [0, *bits, 0]
    text = "".join(sequence for sequence, *_ in CASES)
    predicted = random.uniform(-10, 0, (len(text), 4)).astype(np.float32)
    predicted[: lengths[1]] = np.nan
    matches = MovableSites(
        np.arange(len(CASES)),
        np.array([charge for *_, charge in CASES]),
        lengths,
        np.array([RESIDUE_MASS[ord(residue) - 65] for residue in text]),
        np.zeros(len(CASES)),
        np.zeros(len(CASES)),  # water is part of the y series
        np.array([[len(truth.get(kind, ())) for kind in (0, 1)] for _, truth, _ in CASES]),
        np.array(allowed, np.uint64),
        np.array([PHOSPHO, OXIDATION]),
        np.array([LOSS, 0.0]),
        predicted,
        (0, 0),
    )
    frequencies = random.dirichlet(np.ones(OUTCOMES), (KINDS, PREDICTIONS))
    evidence = IonEvidence(np.log(frequencies), random.dirichlet(np.ones(OUTCOMES), KINDS) * 0.01, 0.3 * random.normal(size=ERRORS))
    settings = ion_settings(ModifiedSearchParameters(), "by", 1500.0, "hyperscore")
    return spectra, matches, settings, evidence


def outcome_of(mz, peaks, weights, settings):
    """Return the range of ranks of the peak that an ion matches, and that of its error."""
    half = settings.fragment_absolute + settings.fragment_relative * mz
    near = np.flatnonzero(np.abs(peaks - mz) <= half)
    if not len(near):
        return 0, 0
    best = near[np.argmax(weights[near])]
    rank = int((weights > weights[best]).sum())
    return 1 + sum(rank >= limit for limit in RANKS), min(ERRORS - 1, int((peaks[best] - mz + half) / (2 * half) * ERRORS))


def log_likelihood(case, arrangement, localised):
    """Return the evidence for an arrangement by looking up each of its ions."""
    spectra, matches, settings, evidence = localised
    sequence, _, charge = CASES[case]
    part = slice(spectra.offsets[case], spectra.offsets[case + 1])
    peaks, weights = spectra.mz[part], spectra.weight[part]
    chance = np.zeros(OUTCOMES)
    for mz, weight in zip(peaks, weights, strict=True):
        rank = int((weights > weight).sum())
        width = 2 * (settings.fragment_absolute + settings.fragment_relative * mz)
        chance[1 + sum(rank >= limit for limit in RANKS)] += width / max(peaks[-1] - peaks[0], 100)
    total = 0.0
    for bond, series, z, mz, loss in fragments(sequence, arrangement, charge):
        value = matches.predicted[matches.offsets[case] + bond - 1, 2 * series + z - 1]
        prediction = PREDICTIONS - 1 if np.isnan(value) else sum(value < limit for limit in (-3, -4.5, -6, -8))
        for lost in (0.0, loss) if loss else (0.0,):
            kind = 2 * series + (z > 1) + (KINDS // 2 if lost else 0)
            outcome, error = outcome_of(mz - lost / z, peaks, weights, settings)
            null = np.maximum(chance, evidence.absent[kind])
            total += evidence.present[kind, prediction, outcome]
            if outcome:
                total += evidence.errors[error] - np.log(null[outcome])
            else:
                total -= np.log(max(1 - null[1:].sum(), 0.05))
    return total


def arrangements(case, decoy=0):
    """Return all arrangements of a case as dicts from site to type; `decoy` is the site of one phosphate, 0 for none."""
    sequence, truth, _ = CASES[case]
    sites = [[i for i, residue in enumerate(sequence, 1) if residue in RESIDUES[kind]] for kind in (0, 1)]
    for first in combinations(sites[0], len(truth.get(0, ())) - (decoy > 0)):
        for second in combinations(sites[1], len(truth.get(1, ()))):
            yield {**dict.fromkeys(first, 0), **dict.fromkeys(second, 1), **({decoy: 0} if decoy else {})}


def localise(localised):
    spectra, matches, settings, evidence = localised
    probability, score = (np.zeros((len(matches.allowed), 2), np.float32) for _ in range(2))
    stop = np.zeros(1, np.uint8)
    for row in range(len(CASES)):  # each on its own, as threads would
        localise_sites(spectra, matches, settings, evidence, row, row + 1, probability, score, stop)
    return probability, score


def log_sum(case, chosen, localised):
    logs = [log_likelihood(case, arrangement, localised) for arrangement in chosen]
    return np.logaddexp.reduce(logs) if logs else -np.inf


def test_site_probabilities_equal_sums_over_arrangements(localised):
    probability, score = localise(localised)
    matches = localised[1]
    for case, (sequence, truth, _) in enumerate(CASES):
        first, every = matches.offsets[case] + 2 * case, list(arrangements(case))
        for site in range(len(sequence) + 2):
            for kind in (0, 1):
                on_site = log_sum(case, [sites for sites in every if sites.get(site) == kind], localised)
                elsewhere = log_sum(case, [sites for sites in every if sites.get(site) != kind], localised)
                expected = np.exp(on_site - np.logaddexp(on_site, elsewhere))
                assert probability[first + site, kind] == pytest.approx(expected, abs=2e-6)
                if 0 < site <= len(sequence) and kind == 0 and truth.get(0) and sequence[site - 1] in "AL":
                    on_site = log_sum(case, arrangements(case, decoy=site), localised)
                assert score[first + site, kind] == pytest.approx((on_site - elsewhere) / np.log(10), rel=1e-5, abs=1e-5)
        counts = probability[first : first + len(sequence) + 2].sum(axis=0)
        assert counts == pytest.approx([len(truth.get(kind, ())) for kind in (0, 1)], abs=1e-5)


def test_site_probabilities_do_not_depend_on_partitions(localised):
    spectra, matches, settings, evidence = localised
    together = [np.zeros((len(matches.allowed), 2), np.float32) for _ in range(2)]
    localise_sites(spectra, matches, settings, evidence, 0, len(CASES), *together, np.zeros(1, np.uint8))
    for first, second in zip(localise(localised), together, strict=True):
        assert first.tobytes() == second.tobytes()


def test_count_ions_counts_only_bonds_with_one_possible_state(localised):
    spectra, matches, settings, _ = localised
    counts = IonCounts(
        np.zeros((KINDS, PREDICTIONS, OUTCOMES), np.int64), np.zeros((KINDS, OUTCOMES), np.int64), np.zeros(ERRORS, np.int64)
    )
    count_ions(spectra, matches, settings, 0, len(CASES), counts, np.zeros(1, np.uint8))
    expected = np.zeros((KINDS, PREDICTIONS, OUTCOMES), np.int64)
    for case, (sequence, _, charge) in enumerate(CASES):
        every = list(arrangements(case))
        part = slice(spectra.offsets[case], spectra.offsets[case + 1])
        for bond, series, z, mz, loss in fragments(sequence, every[0], charge):
            states = {tuple(sorted(kind for site, kind in arrangement.items() if site <= bond)) for arrangement in every}
            if len(states) > 1:
                continue
            value = matches.predicted[matches.offsets[case] + bond - 1, 2 * series + z - 1]
            prediction = PREDICTIONS - 1 if np.isnan(value) else sum(value < limit for limit in (-3, -4.5, -6, -8))
            for lost in (0.0, loss) if loss else (0.0,):
                kind = 2 * series + (z > 1) + (KINDS // 2 if lost else 0)
                expected[kind, prediction, outcome_of(mz - lost / z, spectra.mz[part], spectra.weight[part], settings)[0]] += 1
    assert expected.sum() > 30
    assert (counts.present == expected).all()
    assert counts.errors.sum() == expected[: KINDS // 2, :, 1:].sum()


SEQUENCE = "ASTPEPLTIDEYK"
POSSIBLE = (2, 3, 8, 12)
RELATED = (
    0.0,
    1.0033548,
    2.0067097,
    -mass.calculate_mass(formula="H2O"),
    -mass.calculate_mass(formula="NH3"),
    -mass.calculate_mass(formula="CO"),
)


def spectra_of_isomers(random, n, loss):
    """Return spectra (sites in the spectrum, peaks) of one or two isomers, some of them with fragments that lost the modification."""
    for number in range(n):
        sites = random.permutation(POSSIBLE)[: 1 + number % 2].tolist()
        ions = [mz for site in sites for *_, mz, _ in fragments(SEQUENCE, {site: 0}, 3) if random.random() < 0.6]
        if loss and number % 3 == 0:
            ions += [mz for *_, mz, _ in fragments(SEQUENCE, {}, 3) if random.random() < 0.6]
        yield sites, np.sort(np.concatenate((np.array(ions) * (1 + 4e-6 * random.normal(size=len(ions))), random.uniform(100, 1400, 80))))


def chance_of_support(site, other, peaks, loss, absent, settings):
    """Return the probability, by definition, that the ions that only the first of two isomers explains match by chance."""
    explained = [
        mz + (shift - lost) / z
        for *_, z, mz, of_loss in fragments(SEQUENCE, {other: 0}, 3)
        for lost in ((0.0, LOSS) if loss and of_loss else (0.0,))
        for shift in RELATED
    ]
    every, modified = [], []
    for bond, series, z, mz, _ in fragments(SEQUENCE, {site: 0}, 3):
        half = settings.fragment_absolute + settings.fragment_relative * mz
        if not min(site, other) <= bond < max(site, other) or np.abs(np.array(explained) - mz).min() <= half:
            continue
        chance = max(half / 50 * (np.abs(peaks - mz) <= 50).sum(), absent[2 * series + (z > 1)])
        every.append((chance, bool((np.abs(peaks - mz) <= half).any())))
        if (site <= bond) == (series == 0):
            modified.append(every[-1])
    tails = []
    for ions in (every, modified):
        likely = np.ones(1)
        for chance, _ in ions:
            likely = np.convolve(likely, (1 - chance, chance))
        tails.append(likely[sum(has_peak for _, has_peak in ions) :].sum())
    return max(tails[0], tails[1] / 5) if loss else tails[0]


@pytest.mark.parametrize("loss", [0.0, LOSS])
def test_find_mixtures_equals_its_definition(localised, loss):
    random, (_, matches, settings, evidence) = np.random.default_rng(23), localised
    n, size = 60, len(SEQUENCE)
    sites, peaks = zip(*spectra_of_isomers(random, n, loss), strict=True)
    weight = np.ones(sum(map(len, peaks)), np.float32)
    spectra = SpectrumArrays(segment_offsets(np.array([len(peak) for peak in peaks])), np.concatenate(peaks), weight, weight)
    absent = random.uniform(0.0, 0.03, KINDS)
    evidence = evidence._replace(absent=np.column_stack((1 - absent, np.repeat(absent[:, None] / (OUTCOMES - 1), OUTCOMES - 1, axis=1))))
    is_site = np.array([site in POSSIBLE for site in range(size + 2)])
    matches = matches._replace(
        spectrum=np.arange(n),
        charge=np.full(n, 3),
        offsets=np.arange(n + 1) * size,
        mass=np.tile([RESIDUE_MASS[ord(residue) - 65] for residue in SEQUENCE], n),
        n_term=np.zeros(n),
        c_term=np.zeros(n),
        counts=np.tile([1, 0], (n, 1)),
        allowed=np.tile(is_site, n).astype(np.uint64),
        loss=np.array([loss, 0.0]),
        predicted=np.full((n * size, 4), np.nan, np.float32),
    )
    placed, mixed_with = np.zeros((n * (size + 2), 2), bool), np.full((n * (size + 2), 2), -1, np.int16)
    first = np.arange(n) * (size + 2)
    placed[first + [of_spectrum[0] for of_spectrum in sites], 0] = True
    for start, stop in ((0, 25), (25, n)):
        find_mixtures(spectra, matches, settings, evidence, placed, np.array([True, False]), start, stop, mixed_with, np.zeros(1, np.uint8))
    assert (mixed_with[~placed] == -1).all()
    partners = mixed_with[placed].tolist()
    for (site, *_), peak, other in zip(sites, peaks, partners, strict=True):
        chances = {
            place: max(chance_of_support(*pair, peak, loss, absent, settings) for pair in ((site, place), (place, site)))
            for place in POSSIBLE
            if place != site
        }
        best = min(chances, key=lambda place: chances[place])
        assert other == (best if chances[best] <= MIXTURE_LEVEL / len(chances) else -1)
    flagged = [other >= 0 for other in partners]
    assert sum(flagged[1::2]) >= n / 5 and sum(flagged[::2]) <= 1, "even spectra have one isomer"

"""Mass shifts placed on every residue score as the peptide with a modification there, and mass lists equal their definition."""

import numpy as np
import pytest

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.masses import RESIDUE_MASS, WATER_MASS
from proteoscope.engine.matches.scoring_settings import ion_settings
from proteoscope.engine.modified_search.candidate_search import ListSettings, query_lists
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.kernels.cpu.mass_lists import list_peptide_masses
from proteoscope.kernels.cpu.matches import feature_names, measure_matches
from proteoscope.kernels.cpu.scores import PROTON_MASS
from proteoscope.kernels.cpu.shift_placement import PLACES, PlacedArrays, ShiftSettings, ShiftsToPlace, place_shifts, score_places
from proteoscope.kernels.layouts import MatchArrays, PeptideArrays, QueryArrays, SpectrumArrays
from tests.shim.search_inputs import as_in_index

SEQUENCES = ("SAMPLERKGK", "ELVISLIVESK", "PEPTIDEK", "GAGAGAGAGAR", "MNQCWYK")
SHIFT, NONE = 15.994915, 255


def peptides_of(sequences):
    masses = np.array([sum(RESIDUE_MASS[ord(residue) - 65] for residue in sequence) + WATER_MASS for sequence in sequences])
    order = np.argsort(masses)
    chosen = [sequences[i] for i in order]
    lengths = np.array([len(sequence) for sequence in chosen])
    text = np.frombuffer("".join(chosen).encode() + b"A" * 64, np.uint8)
    residues = np.array([sum({1 << ord(residue) - 65 for residue in sequence}) for sequence in chosen], np.uint32)
    arrays = PeptideArrays(
        masses[order],
        segment_offsets(lengths)[:-1].astype(np.uint32),
        lengths.astype(np.uint8),
        np.zeros(len(chosen), np.uint8),
        residues,
        text,
        RESIDUE_MASS.copy(),
        0.0,
        0.0,
    )
    return chosen, as_in_index(arrays)


def peaks_of(sequence, site, shift, random, charge=1):
    """Generate most b and y ions of a peptide with a shift on residue `site`, and noise."""
    residues = np.array([RESIDUE_MASS[ord(residue) - 65] for residue in sequence])
    residues[site - 1] += shift
    prefix = np.cumsum(residues)[:-1]
    ions = np.concatenate((prefix, residues.sum() - prefix + WATER_MASS)) / charge + PROTON_MASS
    mz = np.concatenate((ions[random.random(len(ions)) < 0.7], random.uniform(100, 1200, 30)))
    return np.sort(mz)


@pytest.fixture(scope="module")
def synthetic_search():
    random = np.random.default_rng(3)
    sequences, peptides = peptides_of(SEQUENCES)
    peaks = [peaks_of(sequence, 1 + i % len(sequence), SHIFT, random) for i, sequence in enumerate(sequences)]
    offsets = segment_offsets(np.array([len(peak) for peak in peaks]))
    weight = random.random(offsets[-1]).astype(np.float32)
    spectra = SpectrumArrays(offsets, np.concatenate(peaks), weight, weight)
    queries = QueryArrays(np.arange(len(sequences)), np.array([2, 3, 2, 3, 2]), peptides.mass + SHIFT)
    parameters = ModifiedSearchParameters(minimum_matched_ions=1)
    return sequences, peptides, spectra, queries, ion_settings(parameters, "by", 1300.0, "hyperscore")


def scores_by_modification(synthetic_search, row, peptide, shift):
    """Return hyperscore and matched ions with a modification on each residue in turn, by the identification kernels."""
    sequences, peptides, spectra, queries, settings = synthetic_search
    length = len(sequences[peptide])
    sites = np.arange(1, length + 1, dtype=np.uint8)[:, None]
    given = (np.full(length, value) for value in (queries.spectrum[row], queries.charge[row], peptide))
    matches = MatchArrays(*given, sites, np.zeros((length, 1), np.uint8))
    out = np.zeros((length, len(feature_names())))
    measure_matches(spectra, matches, peptides, np.array([shift]), settings, 0, length, out, np.zeros(1, np.uint8))
    names = feature_names()
    return out[:, names.index("hyperscore")], out[:, names.index("matched_ions")]


def test_mass_shift_at_a_residue_scores_like_a_modification(synthetic_search):
    sequences, peptides, spectra, queries, settings = synthetic_search
    rows = [(row, peptide) for row in range(len(sequences)) for peptide in range(len(sequences))]
    spectrum, charge, peptide = (
        np.array([queries.spectrum[row] for row, _ in rows]),
        np.array([queries.charge[row] for row, _ in rows]),
        np.array([peptide for _, peptide in rows]),
    )
    shift = np.array([queries.mass[row] - peptides.mass[peptide] for row, peptide in rows])
    score, probability = (np.empty((len(rows), PLACES), np.float32) for _ in range(2))
    matches = ShiftsToPlace(spectrum, charge, peptide, shift)
    score_places(spectra, matches, peptides, settings, 0, len(rows), score, probability, np.zeros(1, np.uint8))
    for number, (row, column) in enumerate(rows):
        expected, counts = scores_by_modification(synthetic_search, row, column, shift[number])
        length = len(sequences[column])
        assert score[number, :length] == pytest.approx(np.where(counts > 0, expected, 0.0), abs=1e-4)
        assert np.isneginf(score[number, length:]).all()
        assert probability[number].sum() == pytest.approx(1.0, abs=1e-5)
        # More matched ions at a site never make it less probable.
        order = np.argsort(counts)
        assert (np.diff(probability[number, :length][order]) >= -1e-6).all()


def test_mass_shift_is_placed_at_the_true_site(synthetic_search):
    sequences, peptides, spectra, queries, settings = synthetic_search
    n = len(sequences)
    candidate = np.tile(np.arange(n), (n, 1))
    placed = PlacedArrays(*(np.zeros((n, n), kind) for kind in (np.float32, np.int8, np.float32, np.int8, np.uint8)))
    shifts = ShiftSettings(-150.0, 500.0, 3.0, np.array([SHIFT]))
    place_shifts(spectra, queries, peptides, candidate, settings, shifts, 0, n, placed, np.zeros(1, np.uint8))
    assert np.isneginf(placed.plain).sum() >= n * n - n  # no unmodified peptide has the precursor mass
    for row in range(n):
        assert placed.shifted[row].argmax() == row
        expected, _ = scores_by_modification(synthetic_search, row, row, queries.mass[row] - peptides.mass[row])
        assert placed.shifted[row, row] == pytest.approx(expected.max(), abs=1e-4)
        assert expected[placed.place[row, row] - 1] == pytest.approx(expected.max(), abs=1e-4)
        assert placed.shifted_isotope[row, row] == 0


def test_mass_shift_site_in_random_spectra_is_mostly_correct():
    random = np.random.default_rng(8)
    right = 0
    for _ in range(60):
        sequence = "".join(random.choice(list("ADEFGHIKLNPQSTVWY"), 12)) + "K"
        site = int(random.integers(1, 14))
        _, peptides = peptides_of((sequence,))
        mz = peaks_of(sequence, site, SHIFT, random)
        weight = np.ones(len(mz), np.float32)
        spectra = SpectrumArrays(np.array([0, len(mz)]), mz, weight, weight)
        settings = ion_settings(ModifiedSearchParameters(), "by", 2000.0, "hyperscore")
        score, probability = (np.empty((1, PLACES), np.float32) for _ in range(2))
        zero = np.zeros(1, np.int64)
        matches = ShiftsToPlace(zero, zero + 2, zero, np.array([SHIFT]))
        score_places(spectra, matches, peptides, settings, 0, 1, score, probability, np.zeros(1, np.uint8))
        # A site is right if it is indistinguishable from the true one.
        right += score[0, site - 1] >= score[0].max() - 1e-4
    assert right >= 51


def test_list_peptide_masses_returns_the_mass_before_each_bond(synthetic_search):
    sequences, peptides = synthetic_search[:2]
    lengths = peptides.length.astype(np.int64) - 1
    offsets = segment_offsets(lengths)
    masses, ends, precursors = np.empty(offsets[-1], np.int32), np.zeros_like(offsets), np.empty(len(sequences), np.int32)
    list_peptide_masses(peptides, 100.0, 0, len(sequences), ends, masses, precursors)
    assert ends.tolist() == offsets.tolist()
    assert precursors.tolist() == np.rint(peptides.mass * 100).tolist()
    for i, sequence in enumerate(sequences):
        expected = [round(sum(RESIDUE_MASS[ord(residue) - 65] for residue in sequence[:k]) * 100) for k in range(1, len(sequence))]
        assert masses[offsets[i] : offsets[i + 1]].tolist() == expected


def test_query_lists_have_peak_masses_from_both_termini(synthetic_search):
    _, _, spectra, queries, settings = synthetic_search
    lists = ListSettings(100.0, 0.01, 5e-6, -150.0, 500.0)
    actual = query_lists(spectra, queries, settings, lists)
    for q in range(len(queries.mass)):
        mass, charges = queries.mass[q], max(1, min(settings.maximum_fragment_charge, queries.charge[q] - 1))
        expected = set()
        for mz in spectra.mz[spectra.offsets[q] : spectra.offsets[q + 1]]:
            for z in range(1, charges + 1):
                neutral = (mz - PROTON_MASS) * z
                half = mz * z * 20e-6 + 0.01 + 5e-6 * mass
                for bond in (neutral, mass - neutral):
                    expected |= set(range(round((bond - half) * 100), round((bond + half) * 100) + 1))
        units = actual.masses[actual.offsets[q] : actual.offsets[q + 1]].tolist()
        inside = {unit for unit in expected if 0 <= unit < round(mass * 100)}
        # Rounding at the very ends of a range may differ by a unit.
        assert units == sorted(set(units)) and len(set(units) ^ inside) <= 0.02 * len(inside)

"""Methods that measure false discovery proportions: shuffled proteins, proteins of other organisms, noisy copies, estimators."""

from __future__ import annotations

import functools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.entrapment_databases import ENTRAPMENT, distinct_peptides, foreign_databases, paired_databases
from benchmarks.entrapment_estimators import (
    Bootstrap,
    Spread,
    at_equal_share,
    combined,
    count,
    holm,
    lower,
    net,
    paired,
    q_values,
    spread_over_spectra,
)
from benchmarks.entrapment_spectra import COPIES, noisy_copies, sample
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.spectra.columns import Spectra

MASSES = {
    "G": 57.02146,
    "A": 71.03711,
    "S": 87.03203,
    "P": 97.05276,
    "V": 99.06841,
    "T": 101.04768,
    "C": 160.03065,
    "L": 113.08406,
    "I": 113.08406,
    "N": 114.04293,
    "D": 115.02694,
    "Q": 128.05858,
    "K": 128.09496,
    "E": 129.04259,
    "M": 131.04049,
    "H": 137.05891,
    "F": 147.06841,
    "R": 156.10111,
    "Y": 163.06333,
    "W": 186.07931,
}


def proteins(n: int, seed: int) -> dict[str, str]:
    """Generate random proteins.

    Some share segments, begin with methionine or proline, contain residues without a mass, or are very short.
    """
    generator = np.random.default_rng(seed)

    def drawn(length: int) -> str:
        return "".join(generator.choice(list(MASSES), length))

    shared = [drawn(40) for _ in range(5)]
    made = {f"protein{i}": drawn(int(generator.integers(30, 200))) + shared[i % 5] + drawn(30) for i in range(n)}
    made |= {"methionine": "M" + made["protein0"], "two methionines": "MM" + made["protein1"], "proline": "MP" + made["protein2"]}
    made |= {"unknown residue": made["protein3"][:50] + "X" + made["protein3"][50:], "short": "MAK", "alike": "GGGGGGGGKGGGGGGGGK"}
    made |= {"leucine": made["protein4"].replace("I", "L"), "bound": "AKPRPEDSRPKPGHKPP"}
    return made


@functools.cache
def peptides(sequence: str) -> list[tuple[int, int]]:
    """Return the peptide boundaries by the definition of trypsin, with up to two missed cleavages, 7 to 50 residues, 500 to 6000 Da."""
    ends = {0, len(sequence)} | {i for i in range(1, len(sequence)) if sequence[i - 1] in "KR" and sequence[i] != "P"}
    bounds = []
    for start in sorted(ends | ({1} if sequence.startswith("M") else set())):
        for stop in sorted(end for end in ends if start + 7 <= end <= start + 50):
            mass = sum(MASSES.get(residue, math.nan) for residue in sequence[start:stop]) + 18.01056
            if sum(start < end < stop for end in ends) <= 2 and 500 <= mass <= 6000:
                bounds.append((start, stop))
    return bounds


@pytest.fixture(scope="module", params=[1, 2])
def database(request):
    """Proteins and the database with their shuffled partners."""
    target_proteins = proteins(30, request.param)
    return target_proteins, next(paired_databases(target_proteins, [request.param]))


def test_entrapment_database_has_a_shuffled_copy_of_each_peptide(database):
    target_proteins, paired_database = database
    assert set(paired_database.proteins) == {*target_proteins, *(ENTRAPMENT + name for name in target_proteins)}
    for name, sequence in target_proteins.items():
        partner = paired_database.proteins[ENTRAPMENT + name]
        assert peptides(partner) == peptides(sequence)
        for start, stop in peptides(sequence):
            assert Counter(partner[start:stop]) == Counter(sequence[start:stop])
            assert partner[stop - 1] == sequence[stop - 1]


def test_peptides_and_entrapment_partners_are_unique_pairs(database):
    target_proteins, paired_database = database
    partners: dict[str, set[str]] = {}
    for name, sequence in target_proteins.items():
        partner = paired_database.proteins[ENTRAPMENT + name].replace("I", "L")
        for start, stop in peptides(sequence):
            peptide = sequence[start:stop].replace("I", "L")
            partners.setdefault(peptide, set()).add(partner[start:stop])
            assert paired_database.partner(partner[start:stop]) == peptide
    assert {len(result) for result in partners.values()} == {1}
    assert len(set.union(*partners.values())) == len(partners)


def test_shufflable_entrapment_peptides_are_not_in_the_sample(database):
    target_proteins, paired_database = database
    of_sample = {sequence[start:stop].replace("I", "L") for sequence in target_proteins.values() for start, stop in peptides(sequence)}
    false = {
        sequence[start:stop].replace("I", "L")
        for name, sequence in paired_database.proteins.items()
        if name.startswith(ENTRAPMENT)
        for start, stop in peptides(sequence)
    }
    unpaired = {"GGGGGGGGK", "GGGGGGGGKGGGGGGGGK"}
    assert false & of_sample == unpaired
    assert paired_database.n_unpaired == len(unpaired)
    assert paired_database.ratio == pytest.approx(1 - len(unpaired) / len(of_sample))
    assert all(paired_database.is_entrapment(peptide) == (peptide not in unpaired) for peptide in false)
    assert not any(paired_database.is_entrapment(peptide.replace("L", "I")) for peptide in of_sample)


def test_entrapment_database_is_determined_by_the_seed():
    target_proteins = proteins(10, 3)
    first, second = paired_databases(target_proteins, [1, 2])
    again = next(paired_databases(target_proteins, [1]))
    assert list(first.proteins.items()) == list(again.proteins.items())
    assert first.proteins["protein0"] == second.proteins["protein0"]
    assert first.proteins[ENTRAPMENT + "protein0"] != second.proteins[ENTRAPMENT + "protein0"]


def test_number_of_distinct_peptides_equals_definition():
    target_proteins = proteins(40, 4)
    expected = {sequence[start:stop].replace("I", "L") for sequence in target_proteins.values() for start, stop in peptides(sequence)}
    hashes = distinct_peptides(target_proteins.values())
    assert len(hashes) == len(expected)
    assert (np.diff(hashes.astype(object)) > 0).all()


def test_entrapment_excludes_peptides_of_sample_and_contaminants():
    target_proteins, foreign, contaminants = proteins(10, 5), proteins(60, 6), list(proteins(5, 7).values())
    foreign = {f"foreign {name}": sequence for name, sequence in foreign.items()} | {
        "shared": target_proteins["protein1"],
        "K2C1_HUMAN": "WWWWWWWWK",
    }
    made = next(foreign_databases(target_proteins, foreign, contaminants, [1], most=100.0))
    assert f"{ENTRAPMENT}K2C1_HUMAN" not in made.proteins
    harmless = {sequence[a:b].replace("I", "L") for sequence in [*target_proteins.values(), *contaminants] for a, b in peptides(sequence)}
    of_sample = {sequence[a:b].replace("I", "L") for sequence in target_proteins.values() for a, b in peptides(sequence)}
    false = {
        sequence[a:b].replace("I", "L")
        for name, sequence in made.proteins.items()
        if name.startswith(ENTRAPMENT)
        for a, b in peptides(sequence)
    } - harmless
    assert made.ratio == pytest.approx(len(false) / len(of_sample))
    assert not any(made.is_entrapment(peptide) for peptide in harmless)
    few = next(foreign_databases(target_proteins, foreign, contaminants, [1], most=0.5))
    assert 0.2 < few.ratio < 1.0


def test_entrapment_estimators_equal_their_definitions():
    q_value = np.array([0.0, 0.001, 0.005, 0.008, 0.01, 0.02, np.nan])
    score = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0])
    is_entrapped = np.array([False, True, False, True, True, True, True])
    # The second beats its accepted partner, the fourth does not, the fifth's partner is below the threshold.
    partner_q_value = np.array([np.nan, 0.005, np.nan, 0.0, 0.02, np.nan, np.nan])
    partner_score = np.array([-np.inf, 7.0, -np.inf, 9.0, 4.0, -np.inf, -np.inf])
    counts = count(q_value, score, is_entrapped, 0.01, 0.5, partner_q_value, partner_score)
    assert counts.tolist() == [2, 3, 9, 1, 1]
    assert lower(counts) == 3 / 5
    assert combined(counts) == 9 / 5
    assert paired(counts) == (3 + 1 + 2) / 5
    assert net(counts) == -1
    assert math.isnan(paired(count(q_value, score, is_entrapped, 0.01, 0.5)))


def test_benchmark_q_values_equal_a_plain_loop():
    generator = np.random.default_rng(8)
    score, is_decoy = generator.integers(0, 30, 200).astype(float), generator.random(200) < 0.3
    rates = {
        threshold: np.count_nonzero((score >= threshold) & is_decoy) / max(np.count_nonzero((score >= threshold) & ~is_decoy), 1)
        for threshold in set(score.tolist())
    }
    expected = [min(rate for threshold, rate in rates.items() if threshold <= value) for value in score]
    assert q_values(score, is_decoy).tolist() == pytest.approx(expected)


def test_number_accepted_at_equal_false_fraction_is_interpolated():
    accepted, weighted = np.array([100.0, 200.0, 300.0]), np.array([0.0, 2.0, 9.0])
    assert at_equal_share(accepted, weighted, 0.01) == 200
    assert at_equal_share(accepted, weighted, 0.02) == pytest.approx(250)
    assert at_equal_share(accepted, weighted, 0.03) == 300
    assert at_equal_share(accepted, np.array([4.0, 8.0, 12.0]), 0.01) == pytest.approx(25)


def test_bootstrap_interval_has_the_standard_error_of_a_mean():
    generator = np.random.default_rng(9)
    single_scores = generator.normal(5.0, 2.0, (400, 1))
    interval = Bootstrap.of({"one": single_scores}).interval(lambda total: float(total[0]) / 400)
    assert interval.estimate == pytest.approx(single_scores.mean())
    assert interval.error == pytest.approx(single_scores.std() / 20, rel=0.1)
    assert interval.low < interval.estimate < interval.high
    # Different sets make the interval wider than different seeds do.
    apart = Bootstrap.of({"one": single_scores, "other": single_scores + 10}).interval(lambda total: float(total[0]) / 800)
    assert apart.error > 3


def test_noisy_copies_have_small_mass_errors_and_missing_peaks(tmp_path):
    mz = np.concatenate([np.arange(200.0, 300.0, 2.5), np.arange(300.0, 700.0, 5.0)])
    original = Spectra(
        ("run.mgf",),
        np.zeros(2, np.int32),
        ["a", "b"],
        np.array([-1, -1]),
        np.array([0, 1]),
        np.array([1.5, np.nan]),
        np.array([500.0, 800.0]),
        np.zeros(2, np.float32),
        np.array([1 << 2, 0], np.uint32),
        np.array([0, 40, 120]),
        mz,
        np.linspace(1, 100, 120).astype(np.float32),
    )
    made = noisy_copies([Path("run.mgf")], original, (10.0, "ppm"), (20.0, "ppm"), tmp_path, 1)
    assert len(made) == COPIES
    copies = [read_spectra([path]) for path in made[1:]]
    for copy in copies:
        assert copy.charge_mask.tolist() == original.charge_mask.tolist()
        assert copy.precursor_mz == pytest.approx(original.precursor_mz, rel=5e-6)
        assert not (copy.precursor_mz == original.precursor_mz).any()
        for i in range(2):
            peaks, before = copy.peaks(i)[0], original.peaks(i)[0]
            near = np.abs(peaks[:, None] / before[None, :] - 1).min(axis=1) < 10e-6
            assert 0.6 < np.count_nonzero(near) / len(before) < 1
            assert abs(len(peaks) - len(before)) < 0.25 * len(before)
    assert not np.array_equal(copies[0].mz, copies[1].mz)


def test_spread_over_spectra_counts_copies_of_a_spectrum_once():
    """Copies of false matches do not change the interval; six databases with the same false matches have the interval of one database."""
    accepted, factor = np.full(6, 1000.0), np.full(6, 2.0)
    single = [np.arange(10) + 10 * i for i in range(6)]
    plain = spread_over_spectra(accepted, single, factor)
    copied = spread_over_spectra(5 * accepted, [np.repeat(scores, 5) for scores in single], factor)
    same = spread_over_spectra(accepted, [np.arange(10)] * 6, factor)
    assert plain.estimate == copied.estimate == same.estimate == pytest.approx(0.02)
    assert copied.low == pytest.approx(plain.low) and copied.high == pytest.approx(plain.high)
    assert plain.high - plain.low == pytest.approx(2 * 1.96 * 0.02 / math.sqrt(60), rel=0.1)
    assert same.high - same.low == pytest.approx(2 * 1.96 * 0.02 / math.sqrt(10), rel=0.1)
    assert spread_over_spectra(accepted, [[]] * 6, factor) == Spread(0.0, 0.0, 0.0, 1.0)


def test_p_values_are_corrected_by_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_sample_of_a_run_has_unchanged_spectra(tmp_path):
    (path,) = (Path(__file__).parents[2] / "resources" / "samples").glob("Ecoli_MS2_small*")
    run = read_spectra([path])
    rows = np.array([3, 17, 90])
    drawn = read_spectra([sample(run, rows, tmp_path / "sample.mgf")])
    assert len(drawn) == 3
    for i, row in enumerate(rows.tolist()):
        assert drawn.precursor_mz[i] == pytest.approx(run.precursor_mz[row], abs=1e-7) and drawn.charge_mask[i] == run.charge_mask[row]
        np.testing.assert_allclose(drawn.peaks(i)[0], run.peaks(row)[0], atol=1e-6)
        np.testing.assert_allclose(drawn.peaks(i)[1], run.peaks(row)[1], rtol=1e-5)

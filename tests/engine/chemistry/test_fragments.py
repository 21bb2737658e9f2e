"""Fragment ions against pyteomics and a published table; annotation against a definition by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyteomics import mass as pyteomics_mass

from proteoscope.engine.chemistry.formulas import formula_mass
from proteoscope.engine.chemistry.fragments import PRECURSOR, SERIES, FragmentIons, annotate, fragment_ions, modification_losses
from proteoscope.engine.chemistry.peptidoforms import Peptidoform, parse
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError

# pyteomics calls the radical z ion of electron transfer z-dot or, as here, z+1.
PYTEOMICS_NAME = {"z": "z-dot"}


@given(st.text("ACDEFGHIKLMNPQRSTVWY", min_size=2, max_size=20), st.integers(1, 3))
def test_fragment_masses_equal_pyteomics_for_every_ion_series(sequence: str, maximum_charge: int) -> None:
    ions = fragment_ions(sequence, series="abcxyz", maximum_charge=maximum_charge)
    bonds = len(sequence) - 1
    broken_by_electrons = sum(residue != "P" for residue in sequence[1:])
    assert len(ions) == maximum_charge * (4 * bonds + 2 * broken_by_electrons)
    for mz, series, number, charge, position in zip(ions.mz, ions.series, ions.number, ions.charge, ions.position, strict=True):
        name = SERIES[series]
        part = sequence[:number] if name in "abc" else sequence[-number:]
        assert position == (number if name in "abc" else len(sequence) - number)
        expected = pyteomics_mass.fast_mass(part, ion_type=PYTEOMICS_NAME.get(name, name), charge=int(charge))
        assert mz == pytest.approx(expected, abs=2e-5 * len(part))


def test_glu_fibrinopeptide_fragments_equal_published_masses() -> None:
    # EGVNDNEEGFFSAR, whose y ions are used to calibrate instruments.
    ions = fragment_ions("EGVNDNEEGFFSAR", series="y", maximum_charge=1)
    results = dict(zip(ions.labels(), ions.mz, strict=True))
    published = {"y1": 175.119, "y3": 333.188, "y4": 480.257, "y5": 627.325, "y6": 684.346, "y7": 813.389, "y9": 1056.475, "y11": 1285.544}
    for label, mz in published.items():
        assert results[label] == pytest.approx(mz, abs=2e-3)


@given(st.text("ACDEFGHIKLMNPQRSTVWY", min_size=2, max_size=15), st.data())
def test_modification_shifts_only_fragments_that_contain_it(sequence: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(sequence) + 1))
    plain, heavy = (fragment_ions(sequence, deltas, series="abcxyzp", maximum_charge=1) for deltas in ({}, {position: 100.0}))
    n_side = np.isin(plain.series, [SERIES.index(name) for name in "abc"])
    holds = np.where(n_side, position <= plain.position, position > plain.position) | (plain.series == PRECURSOR)
    np.testing.assert_allclose(heavy.mz - plain.mz, np.where(holds, 100.0, 0.0), atol=1e-9)


@given(st.text("ACDEFGHIKLMNPQRSTVWY", min_size=2, max_size=15))
def test_complementary_b_and_y_ions_sum_to_the_precursor_mass(sequence: str) -> None:
    ions = fragment_ions(sequence, series="byp", maximum_charge=1)
    b, y, p = (ions.mz[ions.series == SERIES.index(name)] for name in "byp")
    position = ions.position[ions.series == SERIES.index("y")]
    np.testing.assert_allclose(b[position - 1] + y, p[0] + 1.00727646657, atol=1e-6)


@given(st.text("ACDEFGHIKLMNPQRSTVWY", min_size=2, max_size=15), st.integers(1, 2))
def test_water_and_ammonia_losses_require_specific_residues(sequence: str, maximum_charge: int) -> None:
    ions = fragment_ions(sequence, series="abyzp", maximum_charge=maximum_charge, neutral_losses=("H2O", "NH3"))
    results = {
        (SERIES[s], int(n), int(z), ions.loss_names[loss]): mz
        for s, n, z, loss, mz in zip(ions.series, ions.number, ions.charge, ions.loss, ions.mz, strict=True)
    }
    assert len(results) == len(ions)
    for (name, number, charge, loss), mz in list(results.items()):
        if loss:
            assert mz == pytest.approx(results[name, number, charge, ""] - formula_mass(loss) / charge)
            continue
        part = sequence[:number] if name in "ab" else sequence[len(sequence) - number :]
        for molecule, able in (("H2O", "STED"), ("NH3", "RKNQ")):
            assert ((name, number, charge, molecule) in results) == (name != "z" and bool(set(part) & set(able)))


def ions_of(peptidoform: Peptidoform, maximum_charge: int = 1) -> FragmentIons:
    """Return the fragments of a modified peptide, with the losses of its modifications."""
    deltas, losses = peptidoform.mass_deltas(), modification_losses(peptidoform)
    return fragment_ions(peptidoform.sequence, deltas, maximum_charge=maximum_charge, losses_of_modifications=losses)


def test_fragments_have_neutral_losses_of_modifications() -> None:
    peptidoform = parse("AS[Phospho]GM[Oxidation]Y[Phospho]K/3")
    assert modification_losses(peptidoform) == {2: (97.976896,), 4: (63.998285,)}
    ions = ions_of(peptidoform, 2)
    labels = dict(zip(ions.labels(), ions.mz, strict=True))
    assert {"b2-H3PO4", "b4-CH4OS", "y3-CH4OS^2", "y5-H3PO4"} <= set(labels)
    assert not {"b1-H3PO4", "y2-H3PO4", "b3-CH4OS", "y2-CH4OS"} & set(labels)
    assert labels["b2"] - labels["b2-H3PO4"] == pytest.approx(97.976896)
    assert max(ions.charge) == 2


def test_phosphoric_acid_loss_is_only_from_s_and_t() -> None:
    assert modification_losses(parse("AS[Phospho]T[Phospho]Y[Phospho]K/2")) == {2: (97.976896,), 3: (97.976896,)}


def test_labile_modifications_are_absent_from_fragments() -> None:
    np.testing.assert_array_equal(ions_of(parse("{Glycan:Hex}NEK")).mz, ions_of(parse("NEK")).mz)


def test_fragment_ion_columns_have_the_documented_types() -> None:
    for ions in (fragment_ions("PEPTIDEK", series="abcxyzp"), fragment_ions("A"), fragment_ions("AK", series="")):
        types = [getattr(ions, name).dtype for name in ("mz", "series", "number", "charge", "loss", "position")]
        assert types == [np.float64, np.int8, np.int16, np.int8, np.int16, np.int16]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sequence": "PEXK"}, "no mass"),
        ({"sequence": ""}, "no mass"),
        ({"sequence": "PEK", "series": "bq"}, "'q'"),
        ({"sequence": "PEK", "maximum_charge": 0}, "charges"),
        ({"sequence": "PEK", "modifications": {5: 1.0}}, "outside"),
        ({"sequence": "PEK", "losses_of_modifications": {5: (1.0,)}}, "outside"),
        ({"sequence": "PEK", "neutral_losses": ("Foo",)}, "formula"),
    ],
)
def test_fragments_rejects_invalid_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fragment_ions(**arguments)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([Tolerance(0.3, "Da"), Tolerance(500, "ppm"), Tolerance(0, "Da")]))
def test_annotation_equals_brute_force(seed: int, most_intense: bool, tolerance: Tolerance) -> None:
    random = np.random.default_rng(seed)
    ions = fragment_ions("PEPTIDEK", series="by", maximum_charge=2, neutral_losses=("H2O",))
    mz = np.sort(np.concatenate((random.uniform(90, 900, 60), random.choice(ions.mz, 10) + random.normal(0, 0.1, 10), ions.mz[:2])))
    intensity = random.permutation(len(mz)).astype(np.float32)
    result = annotate(mz, intensity, ions, tolerance, most_intense=most_intense)
    expected = []
    for i, ion_mz in enumerate(ions.mz):
        low, high = tolerance.bounds(float(ion_mz))
        reach = [k for k in range(len(mz)) if low <= mz[k] <= high]
        if reach:
            expected.append((i, max(reach, key=lambda k: intensity[k]) if most_intense else min(reach, key=lambda k: abs(mz[k] - ion_mz))))
    assert list(zip(result.ion, result.peak, strict=True)) == expected
    np.testing.assert_allclose(result.error, mz[result.peak] - ions.mz[result.ion])
    np.testing.assert_allclose(result.error_ppm, result.error / ions.mz[result.ion] * 1e6)
    single = annotate(mz, intensity, ions, tolerance, most_intense=most_intense, one_ion_per_peak=True)
    assert sorted(single.peak) == sorted(set(result.peak))
    assert set(zip(single.ion, single.peak, strict=True)) <= set(expected)
    for ion, peak in zip(single.ion, single.peak, strict=True):
        rivals = result.ion[result.peak == peak]
        assert (ions.loss[ion] > 0, ions.charge[ion]) == min((bool(ions.loss[k] > 0), ions.charge[k]) for k in rivals)


def test_annotation_accepts_no_peaks_and_rejects_unsorted_peaks() -> None:
    ions = fragment_ions("PEK")
    assert len(annotate(np.zeros(0), np.zeros(0), ions, Tolerance(1, "Da"))) == 0
    with pytest.raises(ParameterError, match="ascending"):
        annotate(np.array([2.0, 1.0]), np.ones(2), ions, Tolerance(1, "Da"))

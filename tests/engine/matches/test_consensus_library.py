"""Libraries of identified spectra: one entry for each peptidoform and charge, compared with plain definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.arrays import ranges, segment_offsets
from proteoscope.engine.chemistry.activation import Activation
from proteoscope.engine.chemistry.fragments import fragment_ions
from proteoscope.engine.chemistry.masses import RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.matches.consensus_library import Members, consensus_entries
from proteoscope.engine.matches.identified_spectra import Identified
from proteoscope.engine.spectra.columns import Spectra, SpectrumSeries
from proteoscope.engine.spectra.library_entries import EntryModifications

PEPTIDES = ("PEPTIDEK", "ACDEM[Oxidation]K", "SAMPLERK")
SEQUENCES = ("PEPTIDEK", "ACDEMK", "SAMPLERK")
CHANGES = ({}, {5: 15.994915}, {})
TOLERANCE = Tolerance(0.02, "Da")


def members(seed=0, series="by"):
    """Return sixty spectra of three peptides with two charges; peaks are fragment ions and noise."""
    rng = np.random.default_rng(seed)
    peptide, charge = rng.integers(0, 3, 60), rng.integers(2, 4, 60)
    lists = []
    for row in peptide.tolist():
        ions = fragment_ions(SEQUENCES[row], CHANGES[row], series=series, maximum_charge=1).mz
        observed = ions[rng.random(len(ions)) < 0.9]
        lists.append(np.sort(np.concatenate((observed + rng.normal(0, 0.002, len(observed)), rng.uniform(100, 900, 5)))))
    offsets = segment_offsets(np.array(list(map(len, lists)), np.int64))
    spectra = Spectra(
        ("a.mgf",),
        np.zeros(60, np.int32),
        [f"s{i}" for i in range(60)],
        np.full(60, -1),
        np.arange(60),
        rng.uniform(0, 1000, 60),
        np.full(60, 500.0),
        np.zeros(60, np.float32),
        np.zeros(60, np.uint32),
        offsets,
        np.concatenate(lists),
        rng.exponential(1000, offsets[-1]).astype(np.float32) + 100,
    )
    residues = [np.array([RESIDUE_MASS[ord(residue) - 65] for residue in sequence]) for sequence in SEQUENCES]
    residues[1][4] += 15.994915
    mass = np.array([residue_masses.sum() + WATER_MASS for residue_masses in residues])
    none = np.zeros(3)
    order = rng.permutation(60)  # of the table of PSMs
    peptide, charge = peptide[order], charge[order]
    identified = Identified(
        order,
        charge,
        mass[peptide],
        peptide,
        PEPTIDES,
        np.arange(3),
        SEQUENCES,
        segment_offsets(np.array(list(map(len, residues)), np.int64)),
        np.concatenate(residues),
        none,
        none,
    )
    entry_modifications = EntryModifications(np.array([0, 0, 1, 1]), np.array([5]), np.array([0]), ("Oxidation",), (15.994915,))
    proteins = pa.array([f"P{number}" for number in peptide.tolist()])
    return Members(identified, rng.choice([0.001, 0.002, 0.01], 60), rng.normal(20, 5, 60), proteins, entry_modifications), spectra


def build_entries(library_members, spectra, origin, threads=2, ion_series="by"):
    n, batches = consensus_entries(
        library_members, spectra, SpectrumSeries.for_spectra(ion_series, spectra.activation), TOLERANCE, origin, Resources(threads)
    )
    (entries,) = batches
    assert len(entries) == n >= 6
    return entries


@pytest.mark.parametrize("origin", ["best", "merged"])
def test_consensus_library_entries_match_peptide_and_charge(origin):
    library_members, spectra = members()
    entries = build_entries(library_members, spectra, origin)
    identified = library_members.identified
    for i, (form, charge) in enumerate(zip(entries.peptidoforms().to_pylist(), entries.charge.tolist(), strict=True)):
        rows = np.flatnonzero((identified.peptide == PEPTIDES.index(form)) & (identified.charge == charge))
        assert entries.n_members[i] == len(rows) > 2
        assert entries.q_value[i] == library_members.q_value[rows].min()
        times = np.sort(spectra.retention_time[identified.spectrum[rows]])
        assert entries.retention_time[i] == times[(len(times) - 1) // 2]
        assert entries.proteins[i].as_py() == f"P{PEPTIDES.index(form)}" and entries.mass[i] == identified.mass[rows[0]]
        peaks = slice(entries.offsets[i], entries.offsets[i + 1])
        assert entries.intensity[peaks].max() == 10_000
        if origin == "best":
            best = min(rows.tolist(), key=lambda row: (library_members.q_value[row], -library_members.score[row]))
            mz = spectra.mz[slice(*spectra.offsets[identified.spectrum[best] : identified.spectrum[best] + 2])]
            np.testing.assert_allclose(entries.mz[peaks], mz, atol=6e-6)


def test_merged_library_entries_have_peaks_of_most_spectra():
    library_members, spectra = members()
    entries = build_entries(library_members, spectra, "merged")
    for i, form in enumerate(entries.peptidoforms().to_pylist()):
        peptide = PEPTIDES.index(form)
        ions = fragment_ions(SEQUENCES[peptide], CHANGES[peptide], maximum_charge=1).mz
        mz = entries.mz[entries.offsets[i] : entries.offsets[i + 1]]
        # Ions occur in nine of ten members, noise in one.
        assert (np.abs(ions[:, None] - mz[None]).min(axis=1) < 0.01).all()
        assert (np.abs(mz[:, None] - ions[None]).min(axis=1) < 0.02).mean() > 0.9


@pytest.mark.parametrize("origin", ["best", "merged"])
@pytest.mark.parametrize("series", ["by", "cz", "bycz"])
def test_library_peaks_are_named_after_the_nearest_ion(origin, series):
    library_members, spectra = members(1, series)
    entries = build_entries(library_members, spectra, origin, ion_series=series)
    assert set(entries.ions.series.tolist()) - {0} == set(map(ord, series))
    for i, form in enumerate(entries.peptidoforms().to_pylist()):
        peptide = PEPTIDES.index(form)
        ions = fragment_ions(SEQUENCES[peptide], CHANGES[peptide], series=series, maximum_charge=min(3, entries.charge[i] - 1))
        for k in range(entries.offsets[i], entries.offsets[i + 1]):
            error = entries.mz[k] - ions.mz
            nearest = int(np.abs(error).argmin())
            if abs(error[nearest]) > TOLERANCE.value:
                assert entries.ions.series[k] == 0
                continue
            label = f"{chr(entries.ions.series[k])}{entries.ions.number[k]}"
            label += f"^{entries.ions.charge[k]}" if entries.ions.charge[k] > 1 else ""
            matching = ions.labels().index(label)
            assert entries.ions.error[k] == pytest.approx(error[matching], abs=1e-5)
            assert abs(error[matching]) == pytest.approx(abs(error[nearest]), abs=1e-9)


@pytest.mark.parametrize("origin", ["best", "merged"])
def test_consensus_library_has_separate_entries_per_ion_series(origin):
    """The entries of each series equal those of a library made only from the spectra of that series."""
    library_members, spectra = members(4, "bycz")
    is_etd = np.arange(len(spectra)) % 2 == 0
    mixed = replace(spectra, activation=np.where(is_etd, Activation.ETD, Activation.HCD).astype(np.uint8))
    entries = build_entries(library_members, mixed, origin, ion_series="activation")
    assert len(entries) == 12 and (np.diff(entries.mass) >= 0).all()
    is_cz = np.array([bool({ord("c"), ord("z")} & set(part.tolist())) for part in np.split(entries.ions.series, entries.offsets[1:-1])])
    for of_part, series in ((is_etd, "cz"), (~is_etd, "by")):
        rows = np.flatnonzero(of_part[library_members.identified.spectrum])
        of_rows = (
            library_members.identified.take(rows),
            library_members.q_value[rows],
            library_members.score[rows],
            library_members.proteins.take(pa.array(rows)),
        )
        separate = build_entries(Members(*of_rows, library_members.modifications), spectra, origin, ion_series=series)
        selected = is_cz == (series == "cz")
        _, peaks = ranges(entries.offsets[:-1][selected], entries.offsets[1:][selected])
        np.testing.assert_array_equal(entries.mz[peaks], separate.mz)
        np.testing.assert_array_equal(entries.ions.series[peaks], separate.ions.series)


def test_consensus_library_does_not_depend_on_threads_and_order():
    library_members, spectra = members(2)
    order = np.random.default_rng(3).permutation(60)
    permuted = Members(
        library_members.identified.take(order),
        library_members.q_value[order],
        library_members.score[order],
        library_members.proteins.take(pa.array(order)),
        library_members.modifications,
    )
    for origin in ("best", "merged"):
        first, second = build_entries(library_members, spectra, origin, threads=1), build_entries(permuted, spectra, origin, threads=3)
        assert first.peptidoforms().equals(second.peptidoforms())
        for name in ("charge", "offsets", "retention_time", "q_value", "n_members", "intensity"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        np.testing.assert_array_equal(first.mz, second.mz)
        for left, right in zip(first.ions, second.ions, strict=True):
            np.testing.assert_array_equal(left, right)

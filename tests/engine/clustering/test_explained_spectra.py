"""Explanations equal plain loops, shuffled spectra equal their definition, and the error rate is correct for left-out peptides."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.chemistry.fragments import fragment_ions
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS, residue_masses, sequence_mass
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.explained_spectra import identified_library
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.identified_spectra import Identified, read_identified, select_spectra, shuffled_spectra
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import read_spectra_table
from proteoscope.engine.spectra.vectors import spectrum_vectors
from tests.engine.clustering.leave_outs import explained, leave_out
from tests.engine.spectra.made import spectra
from tests.searching import identify

TOLERANCE = Tolerance.parse("20 ppm")
PEPTIDES = ("SAMPLEPEPTIDEK", "ELVISLIVESK", "GASPVTCLNDQK", "MEHFRYWK", "TESTPEPTIDER", "AGAGAVAVAR")


def peaks_of(peptide: str, random: np.random.Generator, noise: int = 5) -> list[tuple[float, float]]:
    mz = fragment_ions(peptide, maximum_charge=1).mz
    strange = random.uniform(110, 900, noise)
    every = [*zip(mz.tolist(), random.uniform(5, 100, len(mz)).tolist(), strict=True), *((float(m), 20.0) for m in strange)]
    return sorted(every)


def identified_of(peptides: tuple[str, ...], rows: list[int], charge: int = 2) -> Identified:
    lengths = [len(peptide) for peptide in peptides]
    none = np.zeros(len(peptides))
    return Identified(
        np.array(rows),
        np.full(len(rows), charge),
        np.array([sequence_mass(peptide) for peptide in peptides]),
        np.arange(len(peptides)),
        peptides,
        np.arange(len(peptides)),
        peptides,
        np.cumsum([0, *lengths]),
        np.concatenate([residue_masses(peptide) for peptide in peptides]),
        none,
        none,
    )


@pytest.fixture(scope="module")
def run() -> tuple[Spectra, Identified]:
    """Return six identified spectra, and two more of each peptide: one with the precursor an isotope higher, one with a phosphate."""
    random = np.random.default_rng(4)
    peaks, mz = [], []
    for peptide in PEPTIDES:
        base = peaks_of(peptide, random)
        mass = sequence_mass(peptide)
        for change in (0.0, ISOTOPE_SPACING, 79.966331):
            jittered = [(m, h * random.uniform(0.7, 1.3)) for m, h in base]
            peaks.append(jittered)
            mz.append((mass + change) / 2 + PROTON_MASS)
    return spectra(peaks, mz, [4] * len(mz)), identified_of(PEPTIDES, list(range(0, 18, 3)))


def test_shuffled_spectra_move_only_peaks_of_annotated_fragments(run):
    held, identified = run
    original = select_spectra(held, identified)
    other = shuffled_spectra(original, identified, "by", 1, TOLERANCE, Resources(2))
    again = shuffled_spectra(original, identified, "by", 1, TOLERANCE, Resources(1))
    assert np.array_equal(other.mz, again.mz)
    assert not np.array_equal(other.mz, shuffled_spectra(original, identified, "by", 2, TOLERANCE, Resources(1)).mz)
    for row, peptide in enumerate(PEPTIDES):
        mz, _ = original.peaks(row)
        moved, _ = other.peaks(row)
        assert (np.diff(moved) >= 0).all() and len(moved) == len(mz)
        explained_by = fragment_ions(peptide, maximum_charge=1).mz
        strange = [m for m in mz if np.abs(explained_by - m).min() > 0.05]
        stay = [m for m in strange if np.abs(moved - m).min() < 1e-9]
        assert len(stay) >= len(strange) - 2, "peaks that no fragment explains do not move, but for chance"
        same = sum(np.abs(moved - m).min() < 0.01 for m in explained_by) / len(explained_by)
        assert same < 0.5, "most fragments moved"
        total = sequence_mass(peptide) + 2 * PROTON_MASS
        near = (mz < 300) | ((mz > total / 2 - 18.2) & (mz < total / 2 + 1.2))
        assert np.isin(mz[near], moved).all(), "small fragments and peaks near the precursor do not move"
        # Complementary fragments of any permutation add up to the same mass where both move.
        both = mz[~near & ~np.isin(np.round(total - mz), np.round(mz[near])) & (mz < total - 300)]
        both = both[np.abs(both[:, None] - explained_by).min(axis=1) < 0.01]
        complementary = sum(np.abs(moved - (total - m)).min() < 0.01 for m in moved)
        assert len(both) >= 4 and complementary >= len(both)


def test_explained_spectrum_has_peptide_and_mass_difference(run):
    held, identified = run
    parameters = ExplanationParameters().changed(mass_difference=100.0, minimum_similarity=0.3)
    library = identified_library(held, identified, "by", TOLERANCE, parameters, Resources(2))
    rows = np.array([row for row in range(18) if row % 3])
    explanations = explained(held, rows, library, parameters, Resources(2))
    assert explanations.spectrum.tolist() == rows.tolist() and not explanations.is_decoy.any()
    assert [PEPTIDES[i] for i in explanations.identified] == [PEPTIDES[row // 3] for row in rows.tolist()]
    isotope = rows % 3 == 1
    assert explanations.is_modified.tolist() == (~isotope).tolist()
    assert np.abs(explanations.mass_difference[isotope]).max() < 1e-6, "an isotope is not a modification"
    assert explanations.mass_difference[~isotope] == pytest.approx(79.966331, abs=1e-6)
    narrow = explained(held, rows, library, ExplanationParameters(), Resources(1))
    assert set(narrow.spectrum.tolist()) == set(rows[isotope].tolist())


def test_most_similar_identified_spectrum_equals_reference_loops(run):
    held, identified = run
    parameters = ExplanationParameters().changed(precursor_tolerance="5000 Da", isotope_errors=(0,), precursor_weight=0.0)
    library = identified_library(held, identified, "by", TOLERANCE, parameters, Resources(2))
    rows = np.arange(18)
    explanations = explained(held, rows, library, parameters, Resources(2))
    full = np.zeros((12, library.n_bins))
    for k in range(12):
        some = slice(*library.arrays.offsets[k : k + 2])
        full[k, library.arrays.bins[some]] = library.arrays.weights[some]
    length = np.sqrt((full**2).sum(axis=1))
    vectors = spectrum_vectors(held, parameters, Resources(1))
    for place, spectrum in enumerate(vectors.order.tolist()):
        dense = np.zeros(library.n_bins)
        some = slice(*vectors.arrays.offsets[place : place + 2])
        dense[vectors.arrays.bins[some]] = vectors.arrays.weights[some]
        cosines = full @ dense / (length * math.sqrt(dense @ dense))
        at = int(np.flatnonzero(explanations.spectrum == spectrum)[0])
        assert explanations.similarity[at] == pytest.approx(cosines.max(), abs=1e-12)
        best = int(cosines.argmax())
        assert (explanations.identified[at], explanations.is_decoy[at]) == (library.row[best], library.is_decoy[best])


def test_spectra_of_other_charge_or_no_precursor_are_unexplained(run):
    held, identified = run
    library = identified_library(held, identified, "by", TOLERANCE, ExplanationParameters(), Resources(1))

    def explained_by(spectra):
        return explained(spectra, np.arange(18), library, ExplanationParameters(), Resources(1))

    for mask, joins in ((8, False), (4 | 1, False), (4 | 8, True), (0, True)):
        other = Spectra(**{**held.__dict__, "charge_mask": np.full(18, mask, np.uint32)})
        assert (len(explained_by(other)) > 0) == joins
    nowhere = Spectra(**{**held.__dict__, "precursor_mz": np.full(18, np.nan)})
    assert len(explained_by(nowhere)) == 0


@pytest.fixture(scope="module")
def real(shared_data: Path, tmp_path_factory) -> tuple[Spectra, Identified]:
    folder = shared_data / "spectra" / "metaproteome_qe"
    out = tmp_path_factory.mktemp("identified") / "project"
    identify(sorted(folder.glob("*.mzML")), sorted(folder.glob("*.fasta")), out, IdentificationParameters(), device="cpu")
    project = Project.open(out)
    held = read_spectra_table(project.table("spectra"))
    return held, read_identified(project.table("psms"), len(held), 0.01)


def test_explanation_is_rarely_wrong_without_the_right_peptide(real):
    held, identified = real
    trials = [leave_out(held, identified, share, seed, ExplanationParameters(), TOLERANCE) for share in (0.3, 0.5) for seed in range(8)]
    rows, left_out, other = (sum(column) for column in zip(*trials, strict=True))
    assert rows >= 2000
    assert left_out + other <= 0.015 * rows


def test_read_identified_rejects_invalid_psm_tables(tmp_path: Path):
    good = {
        "spectrum": [0],
        "charge": [2],
        "calculated_mass": [800.0],
        "peptide": ["PEPTIDE"],
        "sequence": ["PEPTIDE"],
        "q_value": [0.0],
        "rank": [1],
        "is_decoy": [False],
        "modification_positions": [[1]],
        "modification_masses": [[16.0]],
    }
    path = tmp_path / "psms.parquet"

    def read(**changes: object) -> Identified:
        pq.write_table(pa.table({**good, **changes}), path)
        return read_identified(path, 1, 0.01)

    assert read().residues[0] == pytest.approx(97.05276 + 16.0, abs=1e-4)
    bad: list[dict[str, object]] = [
        {"spectrum": [1]},
        {"spectrum": [-1]},
        {"charge": [0]},
        {"charge": [99]},
        {"calculated_mass": [float("nan")]},
        {"peptide": [None]},
        {"sequence": ["PEPXIDE"]},
        {"sequence": [""]},
        {"sequence": ["péptide"]},
        {"modification_positions": [[9]]},
        {"modification_positions": [[1, 2]]},
        {"modification_masses": [[float("inf")]]},
        {"spectrum": ["x"]},
    ]
    for changes in bad:
        with pytest.raises(InputError, match=r"psms\.parquet"):
            read(**changes)
    pq.write_table(pa.table({name: column for name, column in good.items() if name != "charge"}), path)
    with pytest.raises(InputError, match="no column charge"):
        read_identified(path, 1, 0.01)

"""Ion table of a peptide, compared with masses of pyteomics."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.views.annotation import annotate_match
from proteoscope.engine.views.ion_table import ion_table
from proteoscope.engine.views.peaks import Peaks
from tests.engine.views.result_projects import fragment_mz
from tests.engine.views.test_annotation import ROW, SETTINGS, synthetic_peaks

SEQUENCE = ROW["sequence"]
COLUMNS = {1: ("b", 1), 2: ("b", 2), 4: ("y", 2), 5: ("y", 1)}


def test_ion_table_matches_pyteomics_masses() -> None:
    spectrum = annotate_match(ROW, synthetic_peaks(n_noise=0), SETTINGS)
    table = ion_table(spectrum)
    assert table.headers == ("#", "b⁺", "b2⁺", "Residue", "y2⁺", "y⁺", "#") and len(table) == len(SEQUENCE)
    for row in range(len(SEQUENCE)):
        for column, (series, charge) in COLUMNS.items():
            number = row + 1 if series == "b" else len(SEQUENCE) - row
            if number == len(SEQUENCE):
                assert table.ion[row, column] == -1 and np.isnan(table.mz[row, column]) and not table.is_matched[row, column]
                continue
            mz = fragment_mz(ROW, series, number, charge)
            assert table.mz[row, column] == pytest.approx(mz, abs=1e-3)
            assert table.is_matched[row, column] == bool((np.abs(spectrum.peaks.mz - mz) <= mz * 20e-6).any())
    assert np.isnan(table.mz[:, [0, 3, 6]]).all()


def test_ion_table_numbers_residues_from_both_ends() -> None:
    table = ion_table(annotate_match(ROW, synthetic_peaks(), SETTINGS))
    assert [table.residue(row) for row in range(len(table))] == ["L*", "V", "N", "E", "L", "T*", "E", "F", "M*", "K"]
    assert [table.number(row, 0) for row in range(3)] == [1, 2, 3] and [table.number(row, 6) for row in range(3)] == [10, 9, 8]
    assert table.modifications[0] == ("Acetyl",) and table.modifications[1] == ()


def test_ion_table_of_single_residue_has_no_ions() -> None:
    row = {**ROW, "sequence": "K", "modification_positions": [], "modification_names": [], "modification_masses": []}
    table = ion_table(annotate_match(row, Peaks(np.array([100.0]), np.array([1.0])), SETTINGS))
    assert len(table) == 1 and np.isnan(table.mz).all() and not table.is_matched.any()

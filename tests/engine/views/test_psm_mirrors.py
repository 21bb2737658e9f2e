"""Spectra mirrored with predictions and with other PSMs, compared with MS2PIP and with definitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.chemistry.activation import Activation
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.views.annotation import IonSettings, annotate_match
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.identification import read_psm_row
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.psm_mirrors import mirrored_with_other, mirrored_with_prediction, mirrored_with_psm
from tests.engine.identification_tables import identification
from tests.engine.matches.test_fragment_intensities import TEACHER
from tests.engine.views.result_projects import fragment_mz, project_with_results, rows_of

SETTINGS = IonSettings(Tolerance(20, "ppm"))


def psm_row(sequence: str, charge: int, **more: Any) -> dict[str, Any]:
    nothing = {"modification_positions": [], "modification_names": [], "modification_masses": []}
    return {"sequence": sequence, "peptide": sequence, "charge": charge, "precursor_mz": 500.0, "scan": 7, **nothing, **more}


def teacher_spectrum(row: dict[str, Any], shares: np.ndarray) -> Peaks:
    """Return the peaks that MS2PIP expects, at masses of pyteomics."""
    length = len(row["sequence"])
    intensities = {}
    for bond in range(length - 1):
        for column, (series, charge) in enumerate((("b", 1), ("b", 2), ("y", 1), ("y", 2))):
            number = bond + 1 if series == "b" else length - bond - 1
            if shares[bond, column] > 0.002:
                intensities[fragment_mz(row, series, number, charge)] = shares[bond, column]
    mz = np.array(sorted(intensities))
    return Peaks(mz, np.array([intensities[peak_mz] for peak_mz in mz.tolist()]))


def test_mirror_with_prediction_rejects_c_and_z_ions() -> None:
    row = psm_row("PEPTIDEK", 2)
    peaks = Peaks(np.array([300.0, 400.0]), np.array([1.0, 2.0]), Activation.ETD)
    mirrored = mirrored_with_prediction(row, peaks, replace(SETTINGS, series="activation"))
    assert mirrored.lower is None and "b and y ions" in mirrored.note
    assert mirrored.upper.ions is not None and mirrored.upper.ions.settings.series == "cz"


def test_mirrored_predictions_resemble_ms2pip_of_same_peptide() -> None:
    with np.load(TEACHER, allow_pickle=False) as file:
        sequences, charges, taught = file["peptide"].tolist(), file["charge"].tolist(), 2.0 ** file["intensity"] - 0.001
    begin, same_peptide, reversed_peptide = 0, [], []
    for sequence, charge in zip(sequences[:60], charges[:60], strict=True):
        shares = taught[begin : begin + len(sequence) - 1].copy()
        begin += len(sequence) - 1
        if charge < 3:
            shares[:, 1::2] = 0
        peaks = teacher_spectrum(psm_row(sequence, charge), shares)
        same_peptide.append(mirrored_with_prediction(psm_row(sequence, charge), peaks, SETTINGS).similarity)
        reversed_sequence = sequence[:-1][::-1] + sequence[-1]
        reversed_peptide.append(mirrored_with_prediction(psm_row(reversed_sequence, charge), peaks, SETTINGS).similarity)
    assert np.median(same_peptide) > 0.9
    assert np.median(reversed_peptide) < 0.6


def test_mirrored_predicted_peaks_have_modified_masses() -> None:
    row = psm_row("LVNELTMFK", 3, modification_positions=[7], modification_names=["Oxidation"], modification_masses=[15.994915])
    mirrored = mirrored_with_prediction(row, Peaks(np.array([300.0]), np.array([5.0])), SETTINGS)
    assert mirrored.lower is not None and mirrored.lower.ions is not None
    expected = {
        f"{series}{number}{'²⁺' if charge == 2 else ''}": fragment_mz(row, series, number, charge)
        for series in "by"
        for number in range(1, 9)
        for charge in (1, 2)
    }
    ions = mirrored.lower.ions
    assert len(ions.matches) == len(mirrored.lower.peaks.mz) > 10, "each predicted peak has a name"
    for label, peak in zip(ions.labels, ions.matches.peak.tolist(), strict=True):
        assert mirrored.lower.peaks.mz[peak] == pytest.approx(expected[label], abs=1e-4)
    assert mirrored.similarity == 0
    assert mirrored.note == "Predicted for the peptide without Oxidation."
    assert "ion-trap" in mirrored_with_prediction(row, mirrored.upper.peaks, IonSettings(Tolerance(0.5, "Da"))).note


def test_mirror_with_prediction_rejects_long_peptides() -> None:
    with pytest.raises(ParameterError, match="2 to 63 residues"):
        mirrored_with_prediction(psm_row("A" * 64, 2), Peaks(np.empty(0), np.empty(0)), SETTINGS)
    empty = mirrored_with_prediction(psm_row("A" * 63, 2), Peaks(np.empty(0), np.empty(0)), SETTINGS)
    assert empty.similarity == 0


def test_mirror_with_other_spectrum_shows_best_other_psm(tmp_path: Path) -> None:
    results = identification(n_spectra=80)
    every = results.psms.to_pylist()
    first = {row["spectrum"]: row for row in every if row["rank"] == 1}
    spectrum_columns = ("spectrum", "scan", "score", "q_value", "rank")
    repeated = [
        {**first[at // 3], **{name: row[name] for name in spectrum_columns}} if row["rank"] == 1 and at % 3 and at // 3 in first else row
        for row in every
        for at in (row["spectrum"],)
    ]
    project, _ = project_with_results(tmp_path / "p", replace(results, psms=pa.Table.from_pylist(repeated, results.psms.schema)))
    rows = rows_of(project, "psms")
    with open_run(project) as run:
        source = run.tables.source("psms")
        seen = set()
        for at in range(0, len(rows), 3):
            match, peaks = read_psm_row(source, at, run)
            mirrored = mirrored_with_other(source, at, match, peaks, run, SETTINGS)
            same = [
                (row["charge"] != match["charge"], row["is_decoy"], row["q_value"], -row["score"], i)
                for i, row in enumerate(rows)
                if row["peptide"] == match["peptide"] and i != at and row["rank"] == 1 and row["spectrum"] != match["spectrum"]
            ]
            seen.add(bool(same))
            if not same:
                assert mirrored.lower is None and "No other" in mirrored.note
                continue
            best = rows[min(same)[-1]]
            assert mirrored.lower is not None
            expected = run.peaks().peaks(best["spectrum"])
            assert (mirrored.lower.peaks.mz == expected.mz).all()
            similarity = mirrored.similarity
            assert similarity is not None and 0 <= similarity <= 1
        assert seen == {True, False}
        self_mirror = mirrored_with_psm((match, peaks), (match, peaks), SETTINGS)
        assert self_mirror.similarity == pytest.approx(1.0)
        assert self_mirror.upper.ions is not None
        assert self_mirror.upper.ions.labels == annotate_match(match, peaks, SETTINGS).labels

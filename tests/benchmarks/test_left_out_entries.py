"""Libraries without half of their peptides: false matches, and the similarity of decoys and absent peptides."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.false_matches import FalseMatches
from benchmarks.left_out_entries import SETS, Counts, Identified, RunTrials
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.fragments import fragment_ions
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.library_search.entry import LIBRARY_SEARCH
from proteoscope.engine.spectra.columns import Spectra


def spectra(peaks: list[np.ndarray]) -> Spectra:
    """Return spectra with these peaks, all of the same intensity."""
    n = len(peaks)
    mz = np.concatenate([np.sort(peak) for peak in peaks])
    return Spectra(
        (Path("x.mgf"),),
        np.zeros(n, np.int32),
        [str(k) for k in range(n)],
        np.full(n, -1, np.int64),
        np.arange(n),
        np.full(n, np.nan),
        np.full(n, 500.0),
        np.zeros(n, np.float32),
        np.full(n, 4, np.uint32),
        segment_offsets(np.array([len(peak) for peak in peaks])),
        mz,
        np.ones(len(mz), np.float32),
    )


def test_false_matches_detect_contained_and_homologous_peptides() -> None:
    forms = ["SAMPLEPEPTIDEK", "LVNELTEFAK", "LVNEITEFAK", "LVNELTEAFK", "YLYEIARR"]
    ions, other = (fragment_ions(form, maximum_charge=1).mz for form in forms[:2])
    examined = FalseMatches(spectra([np.concatenate((ions, other)), ions]), pa.array(forms), Tolerance(20.0, "ppm"))
    assert examined.is_contained(0, 0, 1, 2) and not examined.is_contained(1, 0, 1, 2)
    # Peaks that the spectrum's own peptide explains do not count for another peptide.
    assert not examined.is_contained(0, 1, 2, 2) and not examined.is_contained(0, 0, 4, 2)
    assert examined.is_homologous(1, 2) and examined.is_homologous(1, 3) and not examined.is_homologous(1, 4)


@pytest.fixture(scope="module")
def metaproteome(shared_data: Path) -> RunTrials:
    parameters = LIBRARY_SEARCH.parameters_of(SETS["metaproteome"][0])
    return RunTrials(Identified.from_search(shared_data, "metaproteome"), parameters, is_all=False)


@pytest.mark.long
@pytest.mark.parametrize("n_entries", [30, 100])
def test_half_a_library_gives_at_most_1_percent_false_matches(metaproteome: RunTrials, n_entries: int) -> None:
    counts = Counts(*np.array([metaproteome.trial(n_entries, 500 + k) for k in range(8)]).T)
    accepted = np.sum(counts.accepted)
    assert accepted > 10 * n_entries
    # One pair of peptides, DIGVASVAMGGGDILPALEK and its isomer with A for S and an oxidised M, is more alike than any shuffled peptide.
    assert np.sum(counts.left_out) + np.sum(counts.others) - np.sum(counts.homologous) <= 0.01 * accepted


@pytest.mark.long
def test_library_decoys_score_best_as_often_as_absent_peptides(metaproteome: RunTrials, capsys: pytest.CaptureFixture[str]) -> None:
    metaproteome.moved({})
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["accepted"] for row in rows] == [0] * 4
    assert all(row["targets"] > 10 and 0.3 < row["ratio"] < 1.5 for row in rows)

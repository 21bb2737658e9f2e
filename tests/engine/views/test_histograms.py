"""Histograms of an identification, compared with NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.views.identification import mass_error_histogram, score_histogram
from proteoscope.engine.views.tables import ResultTables, TableSource
from tests.engine.identification_tables import Identification, identification

IDENTIFICATION = identification(n_spectra=400)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[TableSource]:
    yield from opened(IDENTIFICATION, tmp_path)


def opened(results: Identification, folder: Path) -> Iterator[TableSource]:
    paths = {}
    for name in ("psms", "peptides", "proteins"):
        paths[name] = folder / f"{name}.parquet"
        pq.write_table(getattr(results, name), paths[name])
    tables = ResultTables(paths)
    yield tables.source("psms")
    tables.close()


def test_score_histogram_matches_numpy(source: TableSource) -> None:
    rows = [row for row in IDENTIFICATION.psms.to_pylist() if row["rank"] == 1]
    histogram = score_histogram(source, 0.01)
    for (name, counts), is_decoy in zip(histogram.series, (False, True), strict=True):
        expected, _ = np.histogram([row["score"] for row in rows if row["is_decoy"] == is_decoy], histogram.edges)
        assert counts.tolist() == expected.tolist(), name
    assert histogram.mark is not None
    assert histogram.mark[0] == min(row["score"] for row in rows if not row["is_decoy"] and row["q_value"] <= 0.01)
    assert histogram.mark[1] == "1 % FDR"


def test_mass_error_histogram_counts_accepted_psms(source: TableSource) -> None:
    errors = [
        row["mass_error_ppm"]
        for row in IDENTIFICATION.psms.to_pylist()
        if row["rank"] == 1 and not row["is_decoy"] and row["q_value"] <= 0.01
    ]
    histogram = mass_error_histogram(source, 0.01)
    assert histogram.series[0][1].tolist() == np.histogram(errors, histogram.edges)[0].tolist()
    assert histogram.mark is not None
    assert histogram.mark[0] == pytest.approx(np.median(errors))

"""The spectra of a run as points."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.views.run_map import MapPoints


def table(n: int, seed: int = 1, *, has_times: bool = True) -> pa.Table:
    random = np.random.default_rng(seed)
    time = random.uniform(0, 6000, n) if has_times else np.full(n, np.nan)
    return pa.table(
        {
            "spectrum": np.arange(n),
            "retention_time": pa.array(time, from_pandas=True),
            "precursor_mz": random.uniform(300, 1500, n),
            "status": random.choice(np.array([0, 1, 2], np.uint8), n, p=[0.6, 0.3, 0.1]),
            "scan": np.arange(n) + 1000,
            "spectrum_file": ["run.mzML"] * n,
        }
    )


def test_points_stand_in_the_order_of_their_times_and_keep_their_rows() -> None:
    made = table(500)
    points = MapPoints.of_table(made)
    rows = {int(row["spectrum"]): row for row in made.to_pylist()}
    assert (np.diff(points.x) >= 0).all() and len(points) == 500 and points.has_times
    for i in range(0, 500, 37):
        row = rows[int(points.spectrum[i])]
        assert points.x[i] == pytest.approx(row["retention_time"] / 60, rel=1e-6) and points.mz[i] == pytest.approx(row["precursor_mz"])
        assert points.status[i] == row["status"]
    assert points.counts == tuple(Counter(made["status"].to_pylist())[one] for one in range(3))


def test_spectra_without_times_stand_in_the_order_of_the_files() -> None:
    points = MapPoints.of_table(table(50, has_times=False))
    assert not points.has_times and points.x.tolist() == list(range(50)) and points.n_missing == 0


def test_spectra_without_a_time_among_others_are_counted_and_left_out() -> None:
    made = table(50).set_column(1, "retention_time", pa.array([None if i % 10 == 0 else float(i) for i in range(50)]))
    points = MapPoints.of_table(made)
    assert points.n_missing == 5 and 10 not in points.spectrum.tolist() and points.point_of(10) is None and points.point_of(11) is not None


def test_points_are_called_by_their_scans_and_where_there_are_several_files_by_these() -> None:
    made = table(50)
    points = MapPoints.of_table(made)
    assert [points.name_of(i) for i in range(50)] == [f"scan {1000 + row}" for row in points.spectrum.tolist()]
    files = ["two.mzML" if row % 3 else "one.mzML" for row in range(50)]
    points = MapPoints.of_table(made.set_column(5, "spectrum_file", pa.array(files)))
    assert [points.name_of(i) for i in range(50)] == [f"scan {1000 + row} of {files[row]}" for row in points.spectrum.tolist()]


def test_points_without_scans_have_no_names() -> None:
    nothing = table(9).set_column(4, "scan", pa.nulls(9, pa.int64())).set_column(5, "spectrum_file", pa.nulls(9, pa.string()))
    assert MapPoints.of_table(nothing).name_of(4) == ""

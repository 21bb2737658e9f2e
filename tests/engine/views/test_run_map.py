"""Map of a run's spectra as points, and its image, compared with drawing point by point."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.views.drawings import Axis, Clip, Image, Label
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED, STATUS_NAMES, UNEXPLAINED, MapPoints, draw_points, run_map_figure
from tests.effort import lines_run

COLOURS = ((10, 20, 30), (40, 50, 60), (70, 80, 90))
SHADES = np.array([[[0, 0, 0, 0], *((*colour, alpha) for alpha in range(120, 256, 15))] for colour in COLOURS], np.uint8)
SHADES = SHADES.view(np.uint32)[:, :, 0]
ALL = frozenset((UNEXPLAINED, IDENTIFIED, EXPLAINED))


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


def test_lc_ms_map_points_are_sorted_by_time() -> None:
    spectra = table(500)
    points = MapPoints.from_table(spectra)
    rows = {int(row["spectrum"]): row for row in spectra.to_pylist()}
    assert (np.diff(points.x) >= 0).all() and len(points) == 500 and points.has_times
    for i in range(0, 500, 37):
        row = rows[int(points.spectrum[i])]
        assert points.x[i] == pytest.approx(row["retention_time"] / 60, rel=1e-6) and points.mz[i] == pytest.approx(row["precursor_mz"])
        assert points.status[i] == row["status"]
    assert points.counts == tuple(Counter(spectra["status"].to_pylist())[status] for status in range(3))


def test_lc_ms_map_points_without_times_are_in_file_order() -> None:
    points = MapPoints.from_table(table(50, has_times=False))
    assert not points.has_times and points.x.tolist() == list(range(50)) and points.n_missing == 0


def test_lc_ms_map_counts_spectra_without_times() -> None:
    spectra = table(50).set_column(1, "retention_time", pa.array([None if i % 10 == 0 else float(i) for i in range(50)]))
    points = MapPoints.from_table(spectra)
    assert points.n_missing == 5 and 10 not in points.spectrum.tolist() and points.point_of(10) is None and points.point_of(11) is not None


def test_lc_ms_map_points_are_named_by_scan_and_file() -> None:
    spectra = table(50)
    points = MapPoints.from_table(spectra)
    assert [points.name_of(i) for i in range(50)] == [f"scan {1000 + row}" for row in points.spectrum.tolist()]
    files = ["two.mzML" if row % 3 else "one.mzML" for row in range(50)]
    points = MapPoints.from_table(spectra.set_column(5, "spectrum_file", pa.array(files)))
    assert [points.name_of(i) for i in range(50)] == [f"scan {1000 + row} of {files[row]}" for row in points.spectrum.tolist()]


def test_lc_ms_map_points_without_scans_have_no_names() -> None:
    unnamed = table(9).set_column(4, "scan", pa.nulls(9, pa.int64())).set_column(5, "spectrum_file", pa.nulls(9, pa.string()))
    assert MapPoints.from_table(unnamed).name_of(4) == ""


@pytest.mark.parametrize("shown", [ALL, frozenset((UNEXPLAINED, EXPLAINED)), frozenset((IDENTIFIED,)), frozenset()])
def test_lc_ms_map_pixel_has_the_most_frequent_colour(shown: frozenset[int]) -> None:
    points = MapPoints.from_table(table(5000))
    (left, right), (low, high), width, height = (10.0, 80.0), (500.0, 1200.0), 40, 30
    picture = draw_points(points, ((left, right), (low, high)), (width, height), SHADES, shown, largest_dots=-1)
    expected: dict[tuple[int, int], Counter[int]] = {}
    for x, mz, status in zip(points.x.tolist(), points.mz.tolist(), points.status.tolist(), strict=True):
        across, down = (x - left) / (right - left) * width, (high - mz) / (high - low) * height
        if status in shown and 0 <= across < width and 0 <= down < height:
            expected.setdefault((int(down), int(across)), Counter())[status] += 1
    n_wrong = 0
    for row in range(height):
        for column in range(width):
            counts = expected.get((row, column), Counter())
            most = max(counts, key=lambda status: (counts[status], status), default=None)
            wanted = (0, 0, 0, 0) if most is None else (*COLOURS[most], 120 + 15 * min(counts.total() - 1, 9))
            n_wrong += tuple(picture[row, column].tolist()) != wanted
    # Points on an edge between pixels may be rounded to either, in 32-bit numbers.
    assert n_wrong <= 2


def coincident_points(statuses: list[int]) -> MapPoints:
    middle = np.full(len(statuses), 0.5, np.float32)
    return MapPoints(np.arange(len(statuses)), middle, middle.copy(), np.array(statuses, np.uint8), True, 0, np.full(len(statuses), -1))


def test_lc_ms_map_pixel_with_more_points_is_never_fainter() -> None:
    unit = ((0.0, 1.0), (0.0, 1.0))
    alphas = [int(draw_points(coincident_points([0] * n), unit, (1, 1), SHADES, largest_dots=-1)[0, 0, 3]) for n in range(1, 12)]
    assert alphas == sorted(alphas) and alphas[0] == 120 and alphas[-1] == 255


def test_lc_ms_map_of_few_points_draws_rare_states_in_front() -> None:
    picture = draw_points(coincident_points([EXPLAINED, UNEXPLAINED]), ((0.0, 1.0), (0.0, 1.0)), (41, 21), SHADES)
    rows, columns = np.nonzero(picture[:, :, 3])
    assert {tuple(pixel) for pixel in picture[rows, columns].tolist()} == {(*COLOURS[EXPLAINED], 255)}
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (8, 12, 18, 22)


def test_lc_ms_map_runs_no_python_code_per_point() -> None:
    efforts = []
    for n in (100_000, 400_000):
        points = MapPoints.from_table(table(n))
        efforts.append(lines_run(lambda points=points: draw_points(points, points.whole, (300, 200), SHADES)))  # type: ignore[misc]
    assert efforts[1] <= 1.1 * efforts[0]


@pytest.mark.parametrize("shown", [ALL, frozenset((IDENTIFIED,))])
def test_lc_ms_map_nearest_point_has_the_smallest_distance(shown: frozenset[int]) -> None:
    points = MapPoints.from_table(table(300))
    rows = [i for i in range(300) if points.status[i] in shown]
    for x, mz in ((20.0, 700.0), (50.5, 1301.0), (99.0, 320.0)):
        distances = [((points.x[i] - x) / 2) ** 2 + ((points.mz[i] - mz) / 30) ** 2 for i in rows]
        expected = rows[int(np.argmin(distances))] if min(distances) <= 1 else None
        assert points.nearest(x, mz, (2.0, 30.0), shown) == expected


def test_lc_ms_map_figure_works_without_qt() -> None:
    points = MapPoints.from_table(table(400))
    figure = run_map_figure(points, frozenset((IDENTIFIED, EXPLAINED)))
    drawing = lay_out(figure)
    texts = {shape.text for shape in drawing.shapes if isinstance(shape, Label)}
    assert {"Retention time (min)", "m/z", f"{points.counts[EXPLAINED]} explained"} <= texts
    assert f"{points.counts[UNEXPLAINED]} unexplained" not in texts and f"{points.counts[UNEXPLAINED]} unexplained" in drawing.title
    (clip,) = (shape for shape in drawing.shapes if isinstance(shape, Clip))
    assert isinstance(clip.shapes[0], Image) and clip.shapes[0].pixels[:, :, 3].any()
    assert figure.panels[0].pick is not None
    picked = figure.panels[0].pick(float(points.x[7]), float(points.mz[7]), 1e-6, 1e-6)
    if points.status[7] == UNEXPLAINED:
        assert picked is None
    else:
        assert picked is not None and picked.target == 7
    picked = run_map_figure(points).panels[0].pick(float(points.x[7]), float(points.mz[7]), 1e-6, 1e-6)  # type: ignore[misc]
    assert picked is not None and picked.tip.startswith(f"scan {points.spectrum[7] + 1000}\nm/z ")
    assert picked.tip.endswith(STATUS_NAMES[points.status[7]])


@pytest.mark.parametrize("has_times", [True, False])
def test_lc_ms_map_time_axis_title_fits_its_width(has_times: bool) -> None:
    spectra = table(400, has_times=has_times)
    without = pa.array([None, *spectra["precursor_mz"].to_pylist()[1:]], pa.float64())
    points = MapPoints.from_table(spectra.set_column(2, "precursor_mz", without.fill_null(float("nan"))))
    axis: Axis = run_map_figure(points).panels[0].x
    titles = [axis.fitting_title(lambda text: 7.0 * len(text), width) for width in (200, 300, 500, 2000)]
    assert all(7 * len(title) <= width for width, title in zip((200, 300, 500, 2000), titles, strict=True))
    assert [len(title) for title in titles] == sorted(len(title) for title in titles)
    assert titles[-1].endswith("1 spectrum without coordinates not shown")

"""Quantities in the window, compared with plain definitions: tables by sample, figures, correlations, components and corrections."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import pearsonr

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.quantification.corrections import CORRECTED, corrected_tables, read_quantities
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.tables import TABLES
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.drawings import Bar, Curve, Label, Points, svg, text_width
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.heat import relative
from proteoscope.engine.views.quantities import (
    QuantityFilter,
    Samples,
    Volcano,
    principal_components,
    quantity_conditions,
    sample_correlations,
)
from proteoscope.engine.views.quantities import with_tables_by_sample as opened
from proteoscope.engine.views.quantity_drawings import (
    draw_components,
    draw_correlations,
    draw_missing,
    draw_profile,
    missing_blocks,
)
from proteoscope.engine.views.quantity_figures import draw_volcano, write_pages
from proteoscope.engine.views.quantity_traces import Ms1Reader, _with_valid_times, ion_traces, measured_between
from tests.engine.quantification.synthetic_runs import table_of
from tests.engine.views.quantity_projects import PER_PROTEIN, PROTEINS, quantified_project, ratio_of


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return quantified_project(tmp_path_factory.mktemp("quantified"))


@pytest.fixture
def run(project):
    with open_run(project) as opened_run:
        yield opened_run
        for row in project.row_corrections(opened_run.run.id, "ion_traces"):
            project.set_row_correction(opened_run.run.id, "ion_traces", row, {})


def random_samples(n=40, s=6, seed=0, missing=0.2):
    rng = np.random.default_rng(seed)
    log2 = rng.normal(20, 2, (n, 1)) + rng.normal(0, 0.5, (n, s))
    log2[rng.random((n, s)) < missing] = np.nan
    names = tuple(f"P{i}" for i in range(n))
    state = np.where(np.isnan(log2), 4, 0).astype(np.int8)
    return Samples(tuple(f"s{k}" for k in range(s)), tuple("xy"[2 * k // s] for k in range(s)), names, names, log2, state, names)


def test_quantity_tables_by_sample_equal_long_tables(project, run):
    overview = opened(run)
    for name, key in (("protein_quantities", "accession"), ("peptide_quantities", "sequence")):
        by_sample = overview.proteins if key == "accession" else overview.peptides
        long = {}
        for row in table_of(project.folder, name):
            long.setdefault(row[key], {})[row["sample"]] = row
        assert list(long) == list(by_sample.keys)
        source = run.tables.source("proteins_by_sample" if key == "accession" else "peptides_by_sample")
        rows = source.values(np.arange(source.total), ["by_sample", "mean", "spread", "n_missing", "n_psms", key]).to_pylist()
        for row in rows:
            values = [long[row[key]][sample]["log2_quantity"] for sample in by_sample.samples]
            present = [value for value in values if value is not None]
            assert row["by_sample"] == values and row["n_missing"] == len(values) - len(present)
            assert row["n_psms"] == sum(row["n_psms"] for row in long[row[key]].values())
            assert row["mean"] == pytest.approx(np.mean(present)) and row["spread"] == pytest.approx(max(present) - min(present))
    assert len(overview.proteins) == PROTEINS and len(overview.peptides) == PROTEINS * PER_PROTEIN
    assert all(len(overview.peptides.rows_of(name)) == PER_PROTEIN for name in overview.proteins.keys)


def test_volcano_points_equal_table_of_changes(project, run):
    overview, rows = opened(run), table_of(project.folder, "protein_changes")
    volcano = overview.volcano_of("heat / control")
    assert volcano is not None and overview.volcano_of(None) is None
    assert volcano.row.tolist() == [at for at, row in enumerate(rows) if row["p_value"] is not None]
    changed = {rows[at]["accession"] for at in volcano.row[volcano.changed(0.05, 1.0)].tolist()}
    assert changed == {f"P{i:02d}" for i in range(PROTEINS) if ratio_of(i) != 1}
    drawing = draw_volcano(volcano, 0.05, 1.0)
    points = [shape for shape in drawing.shapes if isinstance(shape, Points)]
    assert sorted(np.concatenate([dots.targets for dots in points]).tolist()) == volcano.row.tolist()
    assert sorted(points[2].targets.tolist()) == [
        at for at, row in enumerate(rows) if row["outcome"] == "changed" and row["log2_fold_change"] > 0
    ]
    # More certain changes are drawn higher, and increases to the right.
    order = np.argsort(np.concatenate([dots.targets for dots in points]))
    assert (np.argsort(np.concatenate([dots.y for dots in points])[order]) == np.argsort(volcano.p_value)).mean() > 0.7
    assert (points[2].x > points[0].x.max()).all() and b"<svg" in svg(drawing)


def test_draw_volcano_accepts_no_rows_and_zero_p_values():
    none = np.zeros(0)
    assert draw_volcano(Volcano("a / b", none.astype(np.int64), (), none, none, none, ()), 0.01, 1.0).shapes
    p_values = np.array([0.0, 1.0])
    volcano = Volcano("a / b", np.arange(2), ("x", "<y>"), np.array([2.0, -1e-9]), p_values, p_values, ("x", "<y>"))
    assert np.isfinite(volcano.height).all() and b"&lt;y&gt;" not in svg(draw_volcano(volcano, 0.01, 0.0))


def test_correlations_and_principal_components_equal_definition():
    samples = random_samples()
    correlations = sample_correlations(samples)
    for i in range(6):
        for j in range(6):
            both = samples.has[:, i] & samples.has[:, j]
            assert correlations[i, j] == pytest.approx(pearsonr(samples.log2[both, i], samples.log2[both, j])[0], abs=1e-9)
    components = principal_components(samples)
    assert components is not None
    whole = samples.log2[samples.has.all(axis=1)].T
    values, vectors = np.linalg.eigh(np.cov(whole, rowvar=False))
    order = np.argsort(values)[::-1][:2]
    centred = (whole - whole.mean(axis=0)) @ vectors[:, order]
    for k in range(2):
        assert np.abs(components.scores[:, k]) == pytest.approx(np.abs(centred[:, k]), abs=1e-9)
        assert components.variance_fraction[k] == pytest.approx(values[order[k]] / values.sum(), abs=1e-9)
    assert components.n_items == len(whole.T)


def test_empty_and_constant_samples_have_no_correlation():
    samples = random_samples(missing=0.0)
    samples.log2[:, 1], samples.log2[:, 2] = np.nan, 7.0
    correlations = sample_correlations(samples)
    assert np.isnan(correlations[1]).all() and np.isnan(correlations[2]).all() and correlations[0, 0] == pytest.approx(1)
    components = principal_components(samples)
    assert components is not None and np.isnan(components.scores[1]).all() and np.isfinite(components.scores[[0, 2, 3]]).all()
    assert principal_components(random_samples(s=2)) is None and principal_components(random_samples(n=2)) is None
    for drawing in (draw_components(components, samples), draw_components(None, samples), draw_correlations(correlations, samples)):
        assert b"nan" not in svg(drawing)


@pytest.mark.parametrize("width", [180.0, 320.0])
def test_missing_components_and_correlations_are_explained(width):
    """The message fits any width, and there is no colour scale without correlations."""
    samples = random_samples(n=1, s=3)
    for drawing in (
        draw_components(principal_components(samples), samples, width),
        draw_correlations(sample_correlations(samples), samples, width),
    ):
        title, *lines = (shape for shape in drawing.shapes if isinstance(shape, Label))
        assert " ".join(line.text for line in lines).startswith("At least three") and lines[-1].text.endswith("needed.")
        assert max(text_width(line.text, drawing.font_size) for line in (title, *lines)) <= width - 16
        assert "0.00" not in title.text and not any(isinstance(shape, Bar) for shape in drawing.shapes)


def test_missing_value_blocks_count_each_protein_once():
    samples = random_samples(n=500, s=5, missing=0.4)
    parts, first = missing_blocks(samples, 37)
    assert parts.shape == (37, 5) and len(set(first.tolist())) == 37
    sizes = np.diff([*(np.arange(37) * 500 // 37), 500])
    assert (parts * sizes[:, None]).sum(axis=0) == pytest.approx(samples.has.sum(axis=0))
    missing = (~samples.has[samples.by_missing]).sum(axis=1)
    assert (np.diff(missing) >= 0).all() and sorted(samples.by_missing.tolist()) == list(range(500))
    bars = [shape for shape in draw_missing(samples, "proteins").shapes if isinstance(shape, Bar)]
    assert {bar.target for bar in bars if bar.target is not None} <= set(range(500))
    large = random_samples(n=5000, s=12)
    assert sum(isinstance(shape, Bar) for shape in draw_missing(large, "proteins", 500, 900).shapes) <= 6000 + 12 * 6 + 20
    assert draw_missing(random_samples(n=0), "proteins").shapes


def test_protein_profile_has_peptides_and_missing_value_gaps(run):
    overview = opened(run)
    drawing = draw_profile(overview.proteins, overview.peptides, "P00")
    points = [shape for shape in drawing.shapes if isinstance(shape, Points)]
    targets = {int(target) for shape in points for target in shape.targets}
    assert targets == set(overview.peptides.rows_of("P00").tolist())
    samples = random_samples(n=1, missing=0.0)
    samples.log2[0, 2] = np.nan
    curves = [
        shape
        for shape in draw_profile(samples, random_samples(n=1, seed=1), "P0").shapes
        if isinstance(shape, Curve) and shape.ink == "text"
    ]
    assert [len(curve.x) for curve in curves] == [2, 3]
    assert draw_profile(samples, samples, "nowhere").title == "nowhere and 0 peptides"


def test_relative_quantity_colours_show_distance_from_row_median():
    assert relative([5.0, None, 7.0, 6.0, float("nan")]).tolist()[:4] == [-1.0, pytest.approx(float("nan"), nan_ok=True), 1.0, 0.0]
    assert np.isnan(relative([None, None])).all()


def test_quantity_filter_applies_both_thresholds(run):
    opened(run)
    source = run.tables.source("protein_changes")
    row_filter = QuantityFilter(q_value=0.05, fold_change=1.0, comparison="heat / control", is_changed=True)
    rows = source.values(source.rows(quantity_conditions(row_filter, "protein_changes")), ["accession"])["accession"].to_pylist()
    assert sorted(rows) == ["P00", "P01", "P02", "P03"]
    for table in ("protein_changes", "proteins_by_sample", "peptides_by_sample", "ion_traces", "quantified_samples"):
        assert run.tables.source(table).count(quantity_conditions(QuantityFilter(text="no such text"), table)) == 0


def test_trace_measured_again_equals_the_trace_of_the_search(run):
    source, ms1_reader = run.tables.source("ion_traces"), Ms1Reader(run)
    for row in range(0, source.total, 7):
        ion = ion_traces(source, row, run, ms1_reader)
        trace = next(candidate for candidate in ion.traces if candidate.row == row)
        assert trace.begin is not None and trace.end is not None and len(ion.traces) == 4
        measured = measured_between(trace, ion.pattern, trace.begin, trace.end)
        for name in CORRECTED:
            if trace.values[name] is not None:
                assert measured[name] == pytest.approx(trace.values[name], rel=1e-5 if name != "retention_time" else 5e-3), name
        half = measured_between(trace, ion.pattern, trace.end, (trace.begin + trace.end) / 2)
        assert 0 < half["area"] < measured["area"] and half["begin"] < half["end"]
    with pytest.raises(InputError, match="no signal of the ion between these limits"):
        measured_between(trace, ion.pattern, trace.seconds[0] - 9, trace.seconds[0] - 8)


def test_quantity_tables_are_unchanged_without_corrected_traces(project, run):
    tables = {table.name: read_stored(project, run.run.id, table, list(table.by_name)) for table in TABLES}
    again = corrected_tables(tables, {}, QuantificationParameters.checked(dict(run.run.parameters)))
    for name, table in tables.items():
        for column in table.column_names:
            for value, recomputed in zip(table[column].to_pylist(), again[name][column].to_pylist(), strict=True):
                assert value == (pytest.approx(recomputed, rel=1e-9) if isinstance(recomputed, float) else recomputed), (name, column)


def test_corrected_trace_borders_change_quantities_and_exports(project, run, tmp_path):
    before = read_quantities(project, run.run.id)
    traces = before["ion_traces"].to_pylist()
    row = next(at for at, trace in enumerate(traces) if trace["file"] == "made_heat_1.mzML" and trace["area"])
    numbers = {name: float(traces[row][name]) for name in CORRECTED} | {"area": traces[row]["area"] * 4}
    pages = [write_pages(project, run.run.id, tmp_path / "before", Progress())]
    project.set_row_correction(run.run.id, "ion_traces", row, numbers)
    pages.append(write_pages(project, run.run.id, tmp_path / "after", Progress()))
    assert pages[0][0].read_text() != pages[1][0].read_text(), "the page has what was corrected"
    after = read_quantities(project, run.run.id)
    corrected = after["ion_traces"].to_pylist()
    assert corrected[row]["source"] == "manual" and corrected[row]["area"] == traces[row]["area"] * 4 and corrected[row]["width"] is None
    assert [trace for at, trace in enumerate(corrected) if at != row] == [trace for at, trace in enumerate(traces) if at != row]
    form = traces[row]["peptide"]
    factor = {}
    for name, tables in (("b", before), ("a", after)):
        factor[name] = {sample["sample"]: sample["factor"] for sample in tables["quantified_samples"].to_pylist()}
    for quantity, corrected_quantity in zip(
        before["peptidoform_quantities"].to_pylist(), after["peptidoform_quantities"].to_pylist(), strict=True
    ):
        if quantity["quantity"] is not None:
            multiplier = 4 if (quantity["peptide"], quantity["sample"]) == (form, "heat_1") else 1
            scaled = factor["a"][quantity["sample"]] / factor["b"][quantity["sample"]]
            assert corrected_quantity["quantity"] == pytest.approx(quantity["quantity"] * multiplier * scaled, rel=1e-9)
    overview = opened(run)
    assert overview.peptides.log2[overview.peptides.row_of[form]].tolist() == [
        quantity["log2_quantity"] for quantity in after["peptide_quantities"].to_pylist() if quantity["sequence"] == form
    ]
    search_of_kind("quantify").export(project, ExportRequest(run.run.id, "tsv", tmp_path / "out"), Progress())
    lines = (tmp_path / "out" / "ion_traces.tsv").read_text().splitlines()
    assert sum("\tmanual\t" in line for line in lines) == 1 and f"\t{numbers['area']:.6g}\t" in lines[row + 1]
    project.set_row_correction(run.run.id, "ion_traces", row, {})
    assert read_quantities(project, run.run.id)["ion_traces"].equals(before["ion_traces"])


def test_invalid_stored_trace_corrections_are_ignored(project, run):
    for wrong in ({"area": float("nan")}, {"area": float("inf")}):
        with pytest.raises(ParameterError, match="finite"):
            project.set_row_correction(run.run.id, "ion_traces", 0, wrong)
    with pytest.raises(InputError, match="holds no row 100000"):
        project.set_row_correction(run.run.id, "ion_traces", 100_000, {"area": 1.0})
    plain = read_quantities(project, run.run.id)
    texts = ["[]", "{", '{"area": "x"}', '{"area": 1}', '{"area": NaN}', "{" * 1900, "x" * 5000, json.dumps(dict.fromkeys(CORRECTED, -1))]
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        for row, text in enumerate(texts):
            connection.execute("INSERT INTO row_corrections VALUES (?, 'ion_traces', ?, ?)", (run.run.id, row, text))
        connection.execute("INSERT INTO row_corrections VALUES (?, 'ion_traces', 99999999, '{\"area\": 1}')", (run.run.id,))
        connection.commit()
    quantities = read_quantities(project, run.run.id)
    assert quantities["ion_traces"].equals(plain["ion_traces"])
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        connection.execute("DELETE FROM row_corrections")
        connection.commit()


def test_invalid_borders_of_traces_are_removed():
    complete = {"retention_time": 5.0, "begin": 4.0, "end": 6.0, "file": "a"}
    assert _with_valid_times(complete) == complete
    for wrong in ({"begin": None}, {"end": float("nan")}, {"end": 1.0}, {"retention_time": float("inf")}, {"begin": -1.0}):
        assert _with_valid_times({**complete, **wrong}) == {"retention_time": None, "begin": None, "end": None, "file": "a"}


def test_corrected_quantities_reject_inconsistent_tables(run, project):
    tables = read_quantities(project, run.run.id)
    parameters = QuantificationParameters.checked(dict(run.run.parameters))
    lacking = {**tables, "peptidoform_quantities": tables["peptidoform_quantities"].slice(4)}
    numbers = dict.fromkeys(CORRECTED, 1.0)
    with pytest.raises((KeyError, ValueError)):
        corrected_tables(lacking, {0: numbers}, parameters)
    twice = tables["quantified_samples"].set_column(3, "parts", pa.array([["made_heat_1.mzML"]] * 4))
    with pytest.raises((KeyError, ValueError)):
        corrected_tables({**tables, "quantified_samples": twice}, {0: numbers}, parameters)


@pytest.mark.parametrize("size", [(320.0, 260.0), (900.0, 700.0)])
def test_draw_correlations_thins_labels_of_150_samples(size):
    samples = random_samples(n=30, s=150)
    correlations = sample_correlations(samples)
    drawing = draw_correlations(correlations, samples, *size)
    cells = [shape for shape in drawing.shapes if isinstance(shape, Bar) and shape.target is not None]
    assert len(cells) == 150 * 150 and {cell.target for cell in cells} == set(range(150))
    assert max(cell.x + cell.width for cell in cells) <= size[0] and max(cell.y + cell.height for cell in cells) <= size[1]
    names = [shape for shape in drawing.shapes if isinstance(shape, Label) and shape.text in samples.samples]
    for positions, upright in (
        (sorted(label.y for label in names if not label.is_upright), False),
        (sorted(label.x for label in names if label.is_upright), True),
    ):
        assert len(positions) >= 10 and min(np.diff(positions)) >= drawing.font_size, upright

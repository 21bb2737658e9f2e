"""Comparison of runs, against the definitions in plain Python."""

from __future__ import annotations

import csv
import shutil
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.views.comparison_drawings import compared_answers, draw_overlaps, draw_scores
from proteoscope.engine.views.comparison_tables import write_comparison
from proteoscope.engine.views.drawings import Bar, Label, Points, text_width
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.palette import PAPER, Palette, contrast, opacity_below_text, rgb_of
from proteoscope.engine.views.run_comparison import LEVELS, RunComparison, comparable_runs, compare_runs
from proteoscope.engine.views.shown_peaks import SHARED
from tests.engine.identification_tables import Identification, identification
from tests.engine.views.compared_projects import add_run, project_with_runs
from tests.engine.views.result_projects import spectra_table
from tests.engine.views.search_projects import project_with_search

Q = 0.01


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Yield a comparison of three runs of a project, and their identifications."""
    project, identifications = project_with_runs(tmp_path_factory.mktemp("compared") / "project")
    with compare_runs([open_run(project, run.id) for run in project.runs()]) as comparison:
        yield comparison, identifications


def residues(row: dict[str, Any]) -> str:
    return str(row["sequence"].replace("I", "L"))


def form(row: dict[str, Any]) -> tuple[Any, ...]:
    placed = zip(row["modification_positions"], row["modification_masses"], strict=True)
    return residues(row), tuple(sorted((position, round(mass, 2)) for position, mass in placed))


def answers(results: Identification) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the best target PSM of rank 1 of each spectrum."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in results.psms.to_pylist():
        if row["rank"] == 1 and not row["is_decoy"]:
            key = row["spectrum_file"], row["spectrum_id"]
            assert key not in best
            best[key] = row
    return best


def accepted(results: Identification, level: str, threshold: float = Q) -> set[Any]:
    """Return the accepted items of a level."""
    if level in ("spectra", "psms"):
        rows = {key: row for key, row in answers(results).items() if row["q_value"] <= threshold}
        return set(rows) if level == "spectra" else {(key, form(row)) for key, row in rows.items()}
    if level in ("peptidoforms", "peptides"):
        psms = results.psms.to_pylist()
        rows = [row for row in results.peptides.to_pylist() if not row["is_decoy"] and row["q_value"] <= threshold]
        return {form(psms[row["best_psm"]]) if level == "peptidoforms" else residues(row) for row in rows}

    def bare(accession: str) -> str:
        return accession.split("|")[1] if accession.startswith("sp|") else accession

    groups = [row["accessions"] for row in results.proteins.to_pylist() if not row["is_decoy"] and row["q_value"] <= threshold]
    if level == "groups":
        return {tuple(sorted(map(bare, group))) for group in groups}
    return {bare(accession) for group in groups for accession in group}


@pytest.mark.parametrize("level", [level.name for level in LEVELS])
@pytest.mark.parametrize("threshold", [0.0, 0.003, Q, 0.05, 1.0])
def test_run_comparison_intersections_equal_the_definition(
    compared: tuple[RunComparison, list[Identification]], level: str, threshold: float
) -> None:
    comparison, identifications = compared
    sets = [accepted(results, level, threshold) for results in identifications]
    expected = Counter(tuple(run for run, items in enumerate(sets) if item in items) for item in set().union(*sets))
    assert {intersection.runs: intersection.count for intersection in comparison.intersections(level, threshold)} == expected
    assert comparison.counts(level, threshold).tolist() == [len(items) for items in sets]
    source = comparison.source(level)
    for runs, count in expected.items():
        assert source.count(comparison.conditions_of(runs, threshold)) == count
    source.close()


@pytest.mark.parametrize("level", [level.name for level in LEVELS])
def test_run_comparison_curves_equal_counts_at_each_threshold(compared: tuple[RunComparison, list[Identification]], level: str) -> None:
    comparison, identifications = compared
    curves = comparison.curves(level)
    for at in (0, 1, 20, 63, 100):
        sets = [accepted(results, level, float(curves.q_value[at])) for results in identifications]
        assert curves.runs[:, at].tolist() == [len(items) for items in sets]
        assert (curves.shared[at], curves.combined[at]) == (len(set.intersection(*sets)), len(set.union(*sets)))


def test_run_comparison_disagreements_have_two_accepted_peptides(compared: tuple[RunComparison, list[Identification]]) -> None:
    comparison, identifications = compared
    given = [answers(results) for results in identifications]
    expected = {}
    for key in set().union(*given):
        for threshold in (Q, 0.05):
            rows = [psms[key] for psms in given if key in psms and psms[key]["q_value"] <= threshold]
            if len({form(row) for row in rows}) > 1:
                expected[key, threshold] = any(residues(first) != residues(second) for first, second in combinations(rows, 2))
    source = comparison.source("spectra")
    for threshold in (Q, 0.05):
        rows = source.rows(comparison.disagreement_conditions(threshold))
        table = source.values(rows, ["spectrum_file", "spectrum_id", "difference"]).to_pylist()
        assert {(row["spectrum_file"], row["spectrum_id"]) for row in table} == {key for key, at in expected if at == threshold}
        assert {row["difference"] for row in table} <= {"other peptide", "other modifications", "other sites"}
        for row in table:
            if row["difference"] == "other peptide":
                assert expected[(row["spectrum_file"], row["spectrum_id"]), threshold]
    source.close()
    assert len(expected) > 10


def test_run_comparison_pairs_scores_by_spectrum(compared: tuple[RunComparison, list[Identification]]) -> None:
    comparison, identifications = compared
    first, second = answers(identifications[0]), answers(identifications[2])
    expected = {}
    for key in first.keys() & second.keys():
        psm, other_psm = first[key], second[key]
        expected[key] = psm["score"], other_psm["score"], residues(psm) == residues(other_psm)
    pairs = comparison.scores(0, 2, Q)
    source = comparison.source("spectra")
    named = source.values(pairs.spectrum, ["spectrum_file", "spectrum_id"]).to_pylist()
    source.close()
    rows = zip(pairs.first.tolist(), pairs.second.tolist(), pairs.is_same.tolist(), strict=True)
    assert {(spectrum["spectrum_file"], spectrum["spectrum_id"]): row for spectrum, row in zip(named, rows, strict=True)} == expected
    drawn = [shape for shape in draw_scores(comparison, (0, 2), Q).shapes if isinstance(shape, Points)]
    assert sorted(np.concatenate([dots.targets for dots in drawn]).tolist()) == sorted(pairs.spectrum.tolist())


def test_compared_psms_mirror_the_ions_of_each_peptide(compared: tuple[RunComparison, list[Identification]]) -> None:
    comparison, _ = compared
    source = comparison.source("spectra")
    row = int(source.rows([*comparison.disagreement_conditions(0.05)], [("differs_from", False)])[0])
    stored = source.values(np.array([row]), ["peptide_A", "peptide_B", "peptide_C", "spectrum_id"]).to_pylist()[0]
    mirrored = compared_answers(comparison, source, row)
    source.close()
    assert mirrored.lower is not None and stored["spectrum_id"] in mirrored.title
    forms = [half.ions.peptidoform.sequence for half in mirrored.halves if half.ions is not None]
    assert len(forms) == 2 and len(mirrored.shared) == 0
    assert np.array_equal(mirrored.upper.peaks.mz, mirrored.lower.peaks.mz)
    assert not any(SHARED in half.kinds.tolist() for half in mirrored.shown)
    run_names = [half.name[0] for half in mirrored.halves]
    assert [half.name.split(" (")[0] for half in mirrored.halves] == [f"{run}: {stored[f'peptide_{run}']}" for run in run_names]


def test_compared_psms_use_peaks_of_either_run(tmp_path: Path) -> None:
    base = identification(30)
    project = Project.create_or_open(tmp_path / "project")
    runs = [add_run(project, base, spectra) for spectra in (None, spectra_table(base))]
    with compare_runs([open_run(project, run) for run in runs]) as comparison:
        source = comparison.source("spectra")
        mirrored = compared_answers(comparison, source, 0)
        source.close()
    assert len(mirrored.upper.peaks.mz) > 10
    with compare_runs([open_run(project, run) for run in (runs[0], add_run(project, base))]) as comparison:
        source = comparison.source("spectra")
        with pytest.raises(ProteoscopeError, match="are not stored"):
            compared_answers(comparison, source, 0)
        source.close()


def test_run_comparison_matches_spectra_by_scan_and_file_name(tmp_path: Path) -> None:
    """Another program may omit folder and file extension, and use other spectrum ids."""
    base = identification(60)
    psms = base.psms.filter(pc.is_valid(base.psms["scan"]))
    psms = psms.set_column(psms.schema.get_field_index("psm_id"), "psm_id", pa.array(np.arange(len(psms))))
    peptides = base.peptides.slice(0, 0)
    ours = Identification(psms, peptides, base.proteins, base.database, base.spectra)
    renamed = psms.set_column(psms.schema.get_field_index("spectrum_file"), "spectrum_file", pa.array(["run 1 & 2.mgf"] * len(psms)))
    ids = pa.array([f"scan={scan}" for scan in psms["scan"].to_pylist()])
    renamed = renamed.set_column(renamed.schema.get_field_index("spectrum_id"), "spectrum_id", ids)
    theirs = Identification(renamed, peptides, base.proteins, base.database, base.spectra)
    project = Project.create_or_open(tmp_path / "project")
    runs = [add_run(project, results) for results in (ours, theirs)]
    with compare_runs([open_run(project, run) for run in runs]) as comparison:
        assert {intersection.runs for intersection in comparison.intersections("psms", 1.0)} == {(0, 1)}
        assert any("only because their names match: /data/a folder/run 1 & 2.mzML and run 1 & 2.mgf" in note for note in comparison.notes)


def test_run_comparison_reports_unmatched_spectra_of_same_file(tmp_path: Path) -> None:
    base = identification(60)
    ids = pa.array([f"renamed {row}" for row in range(len(base.psms))])
    psms = base.psms.set_column(base.psms.schema.get_field_index("spectrum_id"), "spectrum_id", ids)
    psms = psms.set_column(psms.schema.get_field_index("scan"), "scan", pa.nulls(len(psms), psms["scan"].type))
    project = Project.create_or_open(tmp_path / "project")
    changed = Identification(psms, base.peptides, base.proteins, base.database, base.spectra)
    runs = [add_run(project, results) for results in (base, base, changed)]
    for compared_runs, is_noted in ((runs[:2], False), (runs[1:], True)):
        with compare_runs([open_run(project, run) for run in compared_runs]) as comparison:
            assert any("no spectra with the same scan number or name" in note for note in comparison.notes) == is_noted


def test_run_comparison_of_different_files_shares_only_peptides(tmp_path: Path) -> None:
    base = identification(60)
    other = base.psms.set_column(0, "spectrum_file", pa.array(["elsewhere.mzML"] * len(base.psms)))
    project = Project.create_or_open(tmp_path / "project")
    changed = Identification(other, base.peptides, base.proteins, base.database, base.spectra)
    runs = [add_run(project, results) for results in (base, changed)]
    with compare_runs([open_run(project, run) for run in runs]) as comparison:
        assert all(len(intersection.runs) == 1 for intersection in comparison.intersections("spectra", 1.0))
        assert {intersection.runs for intersection in comparison.intersections("peptides", 1.0)} == {(0, 1)}
        assert any("no spectrum file in common" in note for note in comparison.notes)


def test_run_comparison_counts_and_reports_run_without_q_values(tmp_path: Path) -> None:
    base = identification(40)
    none = {
        name: table.set_column(table.schema.get_field_index("q_value"), "q_value", pa.nulls(len(table), pa.float64()))
        for name, table in (("psms", base.psms), ("peptides", base.peptides), ("proteins", base.proteins))
    }
    without = Identification(none["psms"], none["peptides"], none["proteins"], base.database, base.spectra)
    project = Project.create_or_open(tmp_path / "project")
    runs = [add_run(project, results) for results in (base, without)]
    with compare_runs([open_run(project, run) for run in runs]) as comparison:
        assert comparison.counts("spectra", 0.0).tolist() == [0, len(answers(base))]
        assert [note for note in comparison.notes if "no q-values" in note] == [
            f"{runs[1]} has no q-values: all its matches are accepted at every threshold."
        ]


def test_compare_runs_rejects_unsuitable_runs(tmp_path: Path) -> None:
    project, _ = project_with_runs(tmp_path / "project", n_runs=2, n_spectra=20)
    with pytest.raises(ParameterError, match="1 run is given; from 2 to 12"):
        compare_runs([open_run(project, "identify-0001")])
    with pytest.raises(ParameterError, match="run 'identify-0001' is given twice"):
        compare_runs([open_run(project, "identify-0001"), open_run(project, "identify-0001")])
    searched = project_with_search(tmp_path / "searched", n_queries=1, n_relatives=1, n_unrelated=5)
    with pytest.raises(ParameterError, match="run 'align-0001' has no tables of PSMs, peptides and protein groups"):
        compare_runs([open_run(project, "identify-0001"), open_run(searched)])


def test_run_comparison_shows_project_names_if_there_are_several(tmp_path: Path) -> None:
    project, _ = project_with_runs(tmp_path / "one", n_runs=2, n_spectra=20)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with compare_runs([open_run(project, "identify-0001"), open_run(tmp_path / "two", "identify-0001")]) as comparison:
        assert comparison.labels == ("one/identify-0001", "two/identify-0001")
        assert {intersection.runs for intersection in comparison.intersections("psms", 1.0)} == {(0, 1)}


def test_written_run_comparison_equals_the_comparison(compared: tuple[RunComparison, list[Identification]], tmp_path: Path) -> None:
    comparison, identifications = compared
    written = write_comparison(comparison, tmp_path / "out", Q, Progress(), n_mirrors=2)
    assert {path.name for path in written} == {path.name for path in (tmp_path / "out").iterdir()}

    def table(name: str) -> list[dict[str, str]]:
        with (tmp_path / "out" / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))

    for level in LEVELS:
        items = Counter(row["runs"] for row in table(f"{level.name}.tsv"))
        overlaps = {row["runs"]: int(row["count"]) for row in table("overlaps.tsv") if row["level"] == level.name}
        assert (
            items
            == overlaps
            == {comparison.names_of(intersection.runs): intersection.count for intersection in comparison.intersections(level.name, Q)}
        )
    assert {row["sequence"].replace("I", "L") for row in table("peptides.tsv") if "B" in row["runs"]} == accepted(
        identifications[1], "peptides"
    )
    at_1_percent = {(row["level"], row["runs"]): int(row["count"]) for row in table("counts.tsv") if row["q_value"] == "0.0100"}
    assert at_1_percent["psms", "C"] == len(accepted(identifications[2], "psms"))
    differing = table("disagreements.tsv")
    assert differing and [float(row["differs_from"]) for row in differing] == sorted(float(row["differs_from"]) for row in differing)
    figures = [path for path in written if path.suffix == ".svg"]
    assert len(figures) == 2 * len(LEVELS) + 3 + 2
    for path in figures:
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_upset_plot_bars_are_proportional_to_set_sizes(compared: tuple[RunComparison, list[Identification]]) -> None:
    comparison, _ = compared
    bars = [
        shape for shape in draw_overlaps(comparison, LEVELS[1], Q).shapes if isinstance(shape, Bar) and shape.target and not shape.is_round
    ]
    expected = comparison.intersections("psms", Q)
    assert [bar.target for bar in bars] == [intersection.runs for intersection in expected]
    heights = np.array([bar.height for bar in bars])
    assert np.allclose(heights / heights[0], [intersection.count / expected[0].count for intersection in expected])


@pytest.mark.parametrize(("palette", "least"), [(PAPER, 4.5), (Palette("#000000", "#ffffff", "#e0e0e0", "#a6a6a6"), 7.0)])
def test_upset_plot_names_are_readable_on_their_stripes(compared: Any, palette: Palette, least: float) -> None:
    shapes = draw_overlaps(compared[0], LEVELS[1], Q).shapes
    stripes = [shape for shape in shapes if isinstance(shape, Bar) and shape.ink == "grid"]
    names = [shape for shape in shapes if isinstance(shape, Label) and shape.text.startswith(("A  ", "B  ", "C  "))]
    on_stripes = 0
    for name in names:
        surface = rgb_of("background", palette)
        for stripe in stripes:
            if (
                stripe.y < name.y < stripe.y + stripe.height
                and stripe.x <= name.x
                and name.x + text_width(name.text, 8) <= stripe.x + stripe.width
            ):
                opacity, top = opacity_below_text(stripe.ink, stripe.opacity, palette), rgb_of(stripe.ink, palette)
                surface = tuple(round(low + (high - low) * opacity) for low, high in zip(surface, top, strict=True))
                on_stripes += 1
        assert contrast(surface, rgb_of(name.ink, palette)) >= least, name.text
    assert (len(names), on_stripes) == (3, 2)


def test_comparable_runs_are_runs_with_psms(compared: Any, tmp_path: Path) -> None:
    project = compared[0].runs[0].project
    assert [run.id for run in comparable_runs(project)] == [run.id for run in project.runs()]
    assert comparable_runs(project_with_search(tmp_path / "hits")) == []


def test_compare_rejects_too_many_runs_before_opening(compared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    folder = compared[0].runs[0].project.folder
    monkeypatch.setattr("proteoscope.engine.views.finished_run.open_run", lambda *_: pytest.fail("opened"))
    assert main(["compare", *[str(folder)] * 5, "--out", str(tmp_path / "out")]) == 2
    assert "15 runs are given; from 2 to 12 can be compared" in capsys.readouterr().err


def test_run_comparison_omits_matches_without_error_rate(tmp_path: Path) -> None:
    """A class that is too small for an error rate has no q-values; if a run has none at all, all its matches count."""
    project, identifications = project_with_runs(tmp_path / "project")
    small = identifications[0]
    rates = small.psms["q_value"].to_pylist()
    missing = {i for i, row in enumerate(small.psms.to_pylist()) if row["rank"] == 1 and not row["is_decoy"] and row["q_value"] <= Q}
    dropped = set(sorted(missing)[:5])
    counts = []
    for gone in (set(), dropped, set(range(len(rates)))):
        place = small.psms.column_names.index("q_value")
        column = pa.array([None if i in gone else rate for i, rate in enumerate(rates)], pa.float64())
        run = add_run(project, replace(small, psms=small.psms.set_column(place, "q_value", column)))
        with compare_runs([open_run(project, project.runs()[0].id), open_run(project, run)]) as comparison:
            counts.append(int(comparison.counts("psms", Q)[1]))
    assert counts[0] - counts[1] == 5
    assert counts[2] == len(answers(small))

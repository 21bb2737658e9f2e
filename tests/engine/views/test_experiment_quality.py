"""Tests of the quality of the runs of an experiment against plain loops over their tables, and of its stored summaries."""

from __future__ import annotations

import json
import math
import shutil
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.experiments.table import ExperimentRow, read_experiment, remove_runs, write_experiment
from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.views import experiment_quality as module
from proteoscope.engine.views.drawings import Label, Points, Sticks
from proteoscope.engine.views.experiment_figures import (
    QUALITY_FIGURES,
    cluster_proteins,
    draw_protein_heat,
    draw_quality,
    write_quality_page,
)
from proteoscope.engine.views.experiment_quality import QUALITY_NOTES, experiment_quality, protein_counts
from tests.engine.identification_tables import Identification
from tests.engine.views.experiment_projects import project_with_experiment


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Identification]]:
    project, identifications = project_with_experiment(tmp_path_factory.mktemp("quality") / "p", n_spectra=120)
    return project.folder, identifications


@pytest.fixture
def project(made: tuple[Path, list[Identification]], tmp_path: Path) -> Project:
    return Project.open(Path(shutil.copytree(made[0], tmp_path / "p")))


def accepted(table: pa.Table) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["q_value"] <= 0.01 and not row["is_decoy"] and row.get("rank", 1) == 1]


def test_experiment_quality_equals_values_from_plain_loops(project: Project, made: tuple[Path, list[Identification]]) -> None:
    rows = experiment_quality(project, Progress()).to_pylist()
    assert [row["run"] for row in rows] == ["control_1", "control_2", "treated_1"]
    times: list[dict[str, float]] = []
    for row, results in zip(rows, made[1], strict=True):
        psms = accepted(results.psms)
        assert row["psms"] == len(psms) > 20
        assert (row["peptides"], row["proteins"]) == (len(accepted(results.peptides)), len(accepted(results.proteins)))
        assert row["mass_error"] == pytest.approx(median(psm["mass_error_ppm"] for psm in psms), rel=1e-12)
        assert row["missed_cleavages"] == pytest.approx(sum(psm["missed_cleavages"] > 0 for psm in psms) / len(psms))
        charges = [min(psm["charge"], 4) for psm in psms]
        assert [row[f"charge_{z}"] for z in (1, 2, 3, 4)] == [charges.count(z) for z in (1, 2, 3, 4)]
        spectra = pq.read_table(project.table("spectra", row["run"]))
        assert row["spectra"] == len(spectra) and row["intensity"] == median(spectra["total_ion_current"].to_pylist())
        of_peptide = defaultdict(list)
        for psm in psms:
            if psm["retention_time"] is not None and math.isfinite(psm["retention_time"]):
                of_peptide[psm["peptide"]].append(psm["retention_time"])
        times.append({peptide: median(values) for peptide, values in of_peptide.items()})
    middle = {peptide: median(run[peptide] for run in times if peptide in run) for run in times for peptide in run}
    for row, run in zip(rows, times, strict=True):
        differences = [time - middle[peptide] for peptide, time in run.items() if sum(peptide in other for other in times) > 1]
        assert row["shared"] == len(differences) > 5
        assert row["drift"] == pytest.approx(median(differences), abs=1e-9)
        assert row["drift_spread"] == pytest.approx(median(abs(difference - row["drift"]) for difference in differences), abs=1e-9)


def test_experiment_quality_reads_only_new_runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    summarize = module._summarize_run

    def counted(project: Project, run: Any) -> Any:
        read.append(run.name)
        return summarize(project, run)

    monkeypatch.setattr(module, "_summarize_run", counted)
    rows = read_experiment(project)
    write_experiment(project, remove_runs(rows, ["control_2"]))
    experiment_quality(project, Progress())
    write_experiment(project, rows)
    together = experiment_quality(project, Progress())
    assert read == ["control_1", "treated_1", "control_2"]
    assert experiment_quality(project, Progress()) == together and len(read) == 3
    shutil.rmtree(project.folder / "experiment")
    assert experiment_quality(project, Progress(), stores=False) == together
    assert len(read) == 6 and not (project.folder / "experiment").exists()


@pytest.mark.parametrize("name", ["quality", "times"])
def test_damaged_run_summaries_are_computed_again(project: Project, name: str) -> None:
    expected = experiment_quality(project, Progress())
    path = project.folder / "experiment" / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:50])
    (project.folder / "experiment" / "quality.parquet").unlink()
    assert experiment_quality(project, Progress()) == expected


def test_protein_counts_of_an_experiment_equal_plain_loops(project: Project, made: tuple[Path, list[Identification]]) -> None:
    counts = protein_counts(project, 500, Progress())
    assert counts.runs == ("control_1", "control_2", "treated_1") and counts.conditions == ("control", "control", "treated")
    for column, results in enumerate(made[1]):
        groups = accepted(results.proteins)
        total = sum(group["n_psms"] for group in groups)
        expected = {group["group"].split(";")[0]: math.log2(group["n_psms"] * 1000 / total) for group in groups}
        for protein, value in zip(counts.proteins, counts.log2[:, column].tolist(), strict=True):
            assert value == pytest.approx(expected[protein], abs=1e-5) if protein in expected else math.isnan(value)
    again = protein_counts(project, 500, Progress())
    assert again.proteins == counts.proteins and again.n_eligible == counts.n_eligible
    assert (
        again.log2.tobytes() == counts.log2.tobytes()
        or (again.log2[again.log2 == again.log2] == counts.log2[counts.log2 == counts.log2]).all()
    )
    drawing = draw_protein_heat(counts, cluster_proteins(counts))
    assert "in 3 runs" in drawing.title


def test_quality_figures_have_a_mark_for_each_run(project: Project) -> None:
    quality = experiment_quality(project, Progress())
    for figure in QUALITY_FIGURES:
        drawing = draw_quality(figure, quality)
        marks = [shape for shape in drawing.shapes if isinstance(shape, Points)]
        if figure.is_stacked:
            sticks = [shape for shape in drawing.shapes if isinstance(shape, Sticks)]
            tops = [min(stick.y2[stick.x == x].min() for stick in sticks if (stick.x == x).any()) for x in sorted({*sticks[1].x.tolist()})]
            assert max(tops) - min(tops) < 1e-6, "fractions add up to 1"
        else:
            assert len(marks) == len(figure.series) and all(mark.targets.tolist() == [0, 1, 2] for mark in marks)
        texts = [shape.text for shape in drawing.shapes if isinstance(shape, Label)]
        assert {"control_1", "control_2", "treated_1", "control", "treated"} <= {*texts}


@pytest.mark.parametrize(
    ("kind", "column", "unshifted", "shifted"), [("modified", "shift_kind", "none", "named"), ("library", "mass_difference", -0.001, 15.99)]
)
def test_experiment_mass_error_excludes_shifted_psms(
    made: tuple[Path, list[Identification]], tmp_path: Path, kind: str, column: str, unshifted: Any, shifted: Any
) -> None:
    project, (results, _, _) = Project.create_or_open(tmp_path / "p"), made[1]
    is_shifted = [number % 3 == 0 for number in range(len(results.psms))]
    psms = results.psms.append_column(column, pa.array([shifted if is_it else unshifted for is_it in is_shifted]))
    with project.run(kind, {}, name="a") as run:
        for name, table in (("psms", psms), ("peptides", results.peptides), ("proteins", results.proteins)):
            run.write_table(name, table)
    write_experiment(project, [ExperimentRow("a", "/data/a.mzML", "a", sha256="0" * 64)])
    (row,) = experiment_quality(project, Progress()).to_pylist()
    counted = accepted(psms)
    assert row["psms"] == len(counted) and row["peptides"] == len(accepted(results.peptides)) > 0
    errors = [psm["mass_error_ppm"] for psm in counted if psm[column] == unshifted]
    assert row["mass_error"] == pytest.approx(median(errors)) and 0 < len(errors) < len(counted)
    write_quality_page(project, tmp_path / "q.html", Progress())
    assert QUALITY_NOTES[kind] in (tmp_path / "q.html").read_text()


def test_quality_command_writes_one_html_file(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "quality.html"
    assert main(["experiment", "quality", str(project.folder), "--html", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 3
    text = page.read_text()
    assert (
        text.count("<svg") == 8 and "treated_1" in text and "http://" not in text.replace("http://www.w3.org", "") and "<script" not in text
    )
    assert main(["experiment", "quality", str(project.folder), "--html", str(project.folder / "results" / "x.html")]) == 2

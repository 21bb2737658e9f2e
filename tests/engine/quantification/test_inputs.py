"""Unusable inputs of quantification are rejected in a sentence; runs without MS1 and with profiles; damaged user tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.design import read_design
from proteoscope.engine.quantification.impurities import read_impurities
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.workload import estimate_workload
from proteoscope.engine.searches import run_search, search_of_kind
from proteoscope.engine.views.run_account import run_account
from tests.engine.quantification.synthetic_runs import (
    Planted,
    SyntheticRun,
    averaged_pattern,
    mzml_text,
    random_peptides,
    table_of,
    write_project,
)

PEPTIDES = random_peptides(6, 5)
DESIGN = "file\tchannel\tsample\tcondition\treplicate\n" + "".join(
    f"r{i}\t{name}\ts{i}{name}\t{'ab'[k % 2]}\t{10 * i + k + 1}\n" for i in range(2) for k, name in enumerate(label("tmt-6").channels)
)
IMPURITIES = "channel\t-1\t+1\n" + "".join(f"{name}\t0.8\t5.1\n" for name in label("tmt-6").channels)


@dataclass
class ProfileRun(SyntheticRun):
    """A run whose MS1 spectra are profiles: each peak is a Gaussian of nine points."""

    def ms1_spectra(self):
        times, centroids = super().ms1_spectra()
        offset = np.arange(-4, 5) / 2
        profiles = []
        for mz, intensity in centroids:
            apart = np.concatenate(([True], np.diff(mz) > 0.2)) & np.concatenate((np.diff(mz) > 0.2, [True]))
            mz, intensity = mz[apart], intensity[apart]
            points = (mz[:, None] + offset * 0.004).ravel()
            heights = (intensity[:, None] * np.exp(-0.5 * offset**2)).ravel()
            profiles.append((points, heights))
        return times, profiles

    def write(self, path):
        scans, parts = super().write(path), path.read_text().split("<spectrum ")
        profiles = [part.replace("MS:1000127", "MS:1000128") if 'name="ms level" value="1"' in part else part for part in parts]
        path.write_text("<spectrum ".join(profiles))
        return scans


def project_of(folder, run_type=SyntheticRun, **options):
    run = run_type(seconds=150, noise_peaks=20, **options)
    for k, sequence in enumerate(PEPTIDES):
        peptide = Planted(sequence, 2, 5e6, 25.0 + 18 * k)
        run.planted.append(peptide)
        run.identified.append(peptide)
    run.fragments = {peptide: ([*label("tmt-6").mz, 300.2], [1e4] * 6 + [50.0]) for peptide in PEPTIDES}
    return write_project(folder, {"r0": run}, {"P": PEPTIDES})


def quantify(project, **parameters):
    return run_search("quantify", {"project": [project]}, device="cpu", threads=1, **parameters)


class WithoutMs1(SyntheticRun):
    """A run of fragment spectra only."""

    def write(self, path):
        scans = super().write(path)
        fragment_spectra = [spectrum for spectrum in path.read_text().split("<spectrum ")[1:] if 'name="ms level" value="2"' in spectrum]
        path.write_text(mzml_text(["<spectrum " + text.partition("</spectrum>")[0] + "</spectrum>" for text in fragment_spectra]))
        return scans


def test_run_without_ms1_is_quantified_only_by_reporter_ions(tmp_path):
    project = project_of(tmp_path / "p", WithoutMs1)
    with pytest.raises(InputError, match=r"has no MS1 spectra") as caught:
        quantify(project)
    assert "\n" not in str(caught.value)
    summary = quantify(project, preset="tmt", label="tmt-6")
    assert summary.n_proteins == 1
    assert any("the interference of their spectra is unknown" in message for message in summary.messages)
    assert {row["interference"] for row in table_of(project, "reporter_ions")} == {None}


def test_quantify_centroids_and_reports_profile_spectra(tmp_path):
    centroids = quantify(project_of(tmp_path / "c"), normalisation="none")
    expected = {row["peptide"]: row["area"] for row in table_of(tmp_path / "c" / "project", "ion_traces")}
    assert not any("profile" in message for message in centroids.messages)
    project = project_of(tmp_path / "p", ProfileRun)
    summary = quantify(project, normalisation="none")
    assert any("MS1 spectra in profile mode were centroided" in message for message in summary.messages)
    areas = {row["peptide"]: row["area"] for row in table_of(project, "ion_traces")}
    assert summary.n_peptides == len(expected) == len(areas)
    ratios = np.array([areas[peptide] / expected[peptide] for peptide in expected])
    assert np.abs(np.log(ratios / np.median(ratios))).max() < 0.1


def test_peptide_near_the_lowest_intensity_has_state_too_low(tmp_path):
    """The synthetic run has no peak below an intensity of 50; heights of main peaks are planted at about twice that."""
    run, heights = SyntheticRun(seconds=150, noise_peaks=0), dict(zip(PEPTIDES, (70, 85, 150, 300, 3e3, 3e5), strict=True))
    for k, (sequence, height) in enumerate(heights.items()):
        pattern = averaged_pattern(sequence)
        peptide = Planted(sequence, 2, height / pattern.max() * 6 * np.sqrt(2 * np.pi), 25.0 + 18 * k)
        run.planted.append(peptide)
        run.identified.append(peptide)
    project = write_project(tmp_path, {"r0": run}, {"P": PEPTIDES})
    quantify(project)
    low = "summit near the lowest intensity of the run"
    expected = [low, low, None, None, None, None]
    refused = {row["peptide"]: row["refused"] for row in table_of(project, "ion_traces")}
    assert [refused[sequence] for sequence in PEPTIDES] == expected
    states = {row["sequence"]: row["state"] for row in table_of(project, "peptide_quantities")}
    assert [states[sequence] for sequence in PEPTIDES] == ["too low" if reason else "measured" for reason in expected]


def test_quantify_rejects_single_replicates_or_no_quantities(tmp_path):
    project = project_of(tmp_path / "p")
    (tmp_path / "design.tsv").write_text("file\tsample\tcondition\treplicate\nr0\tA\tx\t1\n")
    with pytest.raises(ParameterError, match="has one replicate; a test needs at least two"):
        quantify(project, options={"design": tmp_path / "design.tsv"}, conditions=("x", "y")[:1])
    with pytest.raises(InputError, match="no identified peptide has a quantity in any sample"):
        quantify(project, minimum_points=90)


@pytest.fixture(scope="module")
def of_four_runs(tmp_path_factory):
    """Write a project of four runs, the last two with four times as much of some peptides."""
    runs = {}
    for number in range(4):
        run = runs[f"r{number}"] = SyntheticRun(seconds=150, noise_peaks=20, seed=number)
        for k, sequence in enumerate(PEPTIDES):
            run.planted.append(Planted(sequence, 2, 5e6 * (4 if number > 1 and k < 3 else 1), 25.0 + 18 * k))
        run.identified = list(run.planted)
    return write_project(tmp_path_factory.mktemp("four"), runs, {f"P{k}": [peptide] for k, peptide in enumerate(PEPTIDES)})


def changes_between(project, folder, first, second, **parameters):
    """Compare two conditions of two samples each and return the names of comparisons, their rows and the summary."""
    rows = [f"r{i}\tS{i}\t{(first, second)[i // 2]}\t{i % 2 + 1}\n" for i in range(4)]
    (folder / "design.tsv").write_text("file\tsample\tcondition\treplicate\n" + "".join(rows), encoding="utf-8")
    summary = quantify(project, options={"design": folder / "design.tsv"}, normalisation="none", **parameters)
    changes = table_of(project, "protein_changes")
    return {row.pop("comparison") for row in changes}, changes, summary


@pytest.fixture(scope="module")
def plain(of_four_runs, tmp_path_factory):
    """Return the comparison of two conditions with plain names."""
    return changes_between(of_four_runs, tmp_path_factory.mktemp("plain"), "a", "b")[1]


@pytest.mark.parametrize(
    ("first", "second"), [("a / b", "b"), ("b", "a / b"), ("a / b", "a"), ("../../a", "<b>&'\""), ("=1+1", "@b"), ("x" * 1000, "x" * 999)]
)
def test_changes_are_independent_of_condition_names(of_four_runs, plain, tmp_path, first, second):
    names, changes, summary = changes_between(of_four_runs, tmp_path, first, second)
    assert names == {f"{second} / {first}"} and changes == plain and len(plain) == len(PEPTIDES)
    assert sum(abs(row["log2_fold_change"] - 2) < 0.2 for row in changes) == 3
    assert not any("count as different names" in message for message in summary.messages)
    search_of_kind("quantify").write_pages(Project.open(of_four_runs), summary.run_id, tmp_path / "pages", Progress())


def test_quantify_reports_conditions_that_look_alike(of_four_runs, tmp_path):
    names, _, summary = changes_between(of_four_runs, tmp_path, "Ctrl", "ctrl")
    assert names == {"ctrl / Ctrl"}
    assert any("Ctrl and ctrl, which differ only in case" in message for message in summary.messages)
    assert changes_between(of_four_runs, tmp_path, "x", "y", conditions=("y", "x", " y"))[0] == {"x / y"}
    with pytest.raises(ParameterError, match="'y': a comparison needs two conditions"):
        changes_between(of_four_runs, tmp_path, "x", "y", conditions=("y", "y"))


def test_quantify_accepts_quoted_condition_with_comma(of_four_runs, tmp_path):
    names, _, _ = changes_between(of_four_runs, tmp_path, "2,4-D", "control", conditions='control, "2,4-D"')
    assert names == {"2,4-D / control"}
    project = Project.open(of_four_runs)
    account = run_account(project, project.runs()[-1], search_of_kind("quantify"))
    assert next(parameter.value for parameter in account.parameters if parameter.name == "conditions") == 'control, "2,4-D"'
    n_refused = sum(row["refused"] is not None for row in table_of(of_four_runs, "ion_traces"))
    assert n_refused != 1 and f"than in most files ({n_refused} traces in all)" in account.methods


@pytest.mark.parametrize("n_files", [1, 4])
@pytest.mark.parametrize("method", ["label-free", "counts"])
def test_quantify_accepts_one_sample_without_comparisons(of_four_runs, tmp_path, n_files, method):
    rows = [f"r{i}\tS\tx\t1\n" for i in range(n_files)]
    (tmp_path / "design.tsv").write_text("file\tsample\tcondition\treplicate\n" + "".join(rows))
    summary = quantify(of_four_runs, options={"design": tmp_path / "design.tsv"}, method=method)
    assert summary.n_samples == 1 and summary.n_proteins == len(PEPTIDES) and summary.n_tested == 0
    assert {row["sample"] for row in table_of(of_four_runs, "protein_quantities")} == {"S"}
    assert {row["n_psms"] for row in table_of(of_four_runs, "peptide_quantities")} == {n_files}
    assert table_of(of_four_runs, "protein_changes") == []


@pytest.mark.parametrize("seed", range(4))
def test_damaged_user_tables_are_read_or_rejected_in_one_line(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "damaged.tsv"
    n_refused = 0
    for _ in range(150):
        for text, read in (
            (DESIGN, lambda: read_design(path, ["/x/r0.mzML", "/x/r1.mzML"], label("tmt-6"))),
            (IMPURITIES, lambda: read_impurities(path, label("tmt-6"))),
        ):
            data = bytearray(text.encode())
            for _ in range(int(rng.integers(1, 6))):
                at, kind = int(rng.integers(len(data))), int(rng.integers(4))
                if kind == 0:
                    data[at] = int(rng.integers(256))
                elif kind == 1:
                    del data[at : at + int(rng.integers(1, 40))]
                elif kind == 2:
                    data[at:at] = data[at // 2 : at // 2 + int(rng.integers(1, 60))]
                else:
                    data[at:at] = bytes(rng.choice(list(b'\t\n"\x00\r-+9e,'), int(rng.integers(1, 5))).astype(np.uint8))
            path.write_bytes(bytes(data))
            try:
                read()
            except InputError as error:
                n_refused += 1
                assert "\n" not in str(error) and len(str(error)) < 1500
    assert n_refused > 50


def test_quantify_workload_counts_psms_of_the_selected_runs(tmp_path):
    project = Project.open(project_of(tmp_path))
    (run,) = [entry.id for entry in project.runs()]
    quantify(project.folder, run=(run,), method="counts")
    # The newest run of the project is now a quantification, which has its own counts.
    for meant in ((), (run,)):
        request = SearchRequest({"project": [project.folder]}, QuantificationParameters(run=meant, method="counts"), device="cpu")
        assert estimate_workload(request).counts["spectra"] == project.record(run)["counts"]["psms"] == len(PEPTIDES)

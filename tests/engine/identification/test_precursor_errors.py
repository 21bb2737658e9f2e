"""The precursor tolerance calibrated from the run: its definition, its bounds, and searches of miscalibrated runs."""

import json
import statistics
from dataclasses import replace

import numpy as np
import pyarrow.parquet as parquet
import pytest
from lxml import etree
from pyteomics import mass

from proteoscope.engine.chemistry.masses import PROTON_MASS as PROTON
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.command_line.main import main
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.identification import passes
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.precursor_errors import _sample_each_file, errors_of_matches
from proteoscope.engine.matches.pass_records import passes_of_run
from proteoscope.engine.matches.scoring import plan_by_series
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.columns import Spectra
from tests.engine.identification.test_search import (
    REPOSITORY,
    LimitedGpu,
    Simulation,
    accepted,
    assert_found,
    fixed,
    proteins_of,
    same,
    search,
    tryptic,
)
from tests.searching import identify
from tests.shim.shim_gpu import missing_compiler

REQUESTED = Tolerance(5.0, "ppm")


def by_definition(errors, files, n_files, requested, spreads):
    """Return the median error by file, or of all files for fewer than 30 matches, and the tolerance in robust standard deviations."""
    of_file = [[error for error, file in zip(errors, files, strict=True) if file == number] for number in range(n_files)]
    medians = [round(statistics.median(some if len(some) >= 30 else errors), 2) for some in of_file]
    spread = 1.4826 * statistics.median(abs(error - medians[file]) for error, file in zip(errors, files, strict=True))
    return medians, max(requested, min(round(spreads * spread, 1), 20.0))


@pytest.mark.parametrize("seed", range(20))
def test_calibrated_tolerances_equal_the_definition(seed):
    random = np.random.default_rng(seed)
    n, n_files = int(random.integers(30, 300)), int(random.integers(1, 5))
    files = random.integers(0, n_files, n)
    errors = random.normal(random.uniform(-6, 6, 5)[files], random.uniform(0.1, 2.5), n)
    calibration = errors_of_matches(errors, files, n_files, REQUESTED)
    for tolerance, spreads in ((calibration.tolerance, 3), (calibration.of_second, 5)):
        medians, value = by_definition(errors.tolist(), files.tolist(), n_files, REQUESTED.value, spreads)
        assert tolerance.unit == "ppm"
        assert tolerance.value == pytest.approx(value)
        assert calibration.medians == pytest.approx(medians)
    assert calibration.n_matches == n


def test_calibrated_tolerance_is_between_requested_and_20_ppm():
    exact, wild = np.full(100, 0.1), np.random.default_rng(1).uniform(-20, 20, 400)
    of_exact, of_wild = (errors_of_matches(errors, np.zeros(len(errors), int), 1, REQUESTED) for errors in (exact, wild))
    assert of_exact.tolerance == of_exact.of_second == REQUESTED
    assert str(of_wild.tolerance) == str(of_wild.of_second) == "20 ppm"


def test_calibration_of_shifted_errors_keeps_requested_tolerance():
    """The number of candidates equals that of a calibrated run."""
    errors = np.random.default_rng(2).normal(6, 1, 400)
    calibration = errors_of_matches(errors, np.zeros(400, int), 1, REQUESTED)
    assert calibration.tolerance == REQUESTED
    assert (np.abs(errors - calibration.medians[0]) < REQUESTED.value).all()


def test_calibration_keeps_tolerance_for_too_few_matches():
    errors = np.linspace(5, 9, 30)
    assert errors_of_matches(errors, np.zeros(30, int), 1, REQUESTED).medians.tolist() == [7.0]
    calibration = errors_of_matches(errors[:29], np.zeros(29, int), 1, REQUESTED)
    assert (calibration.tolerance, calibration.of_second, calibration.n_matches, calibration.medians.tolist()) == (
        REQUESTED,
        REQUESTED,
        0,
        [0.0],
    )
    assert "29 were found" in calibration.message


def test_calibration_is_robust_to_some_wrong_matches():
    random = np.random.default_rng(3)
    errors = random.normal(3, 2, 500)
    with_wrong = np.concatenate((errors, random.uniform(-20, 20, 15)))
    clean, mixed = (errors_of_matches(some, np.zeros(len(some), int), 1, REQUESTED) for some in (errors, with_wrong))
    assert clean.tolerance.value > REQUESTED.value
    assert abs(clean.tolerance.value - mixed.tolerance.value) < 0.3
    assert abs(clean.medians[0] - mixed.medians[0]) < 0.1


def test_calibration_uses_the_median_error_of_each_file():
    """The difference between two files with opposite mean errors does not count as scatter."""
    errors = np.random.default_rng(4).normal(0, 0.5, 200) + np.repeat([-6, 6], 100)
    apart = errors_of_matches(errors, np.repeat([0, 1], 100), 2, REQUESTED)
    assert apart.tolerance == REQUESTED
    assert apart.medians == pytest.approx([-6, 6], abs=0.2)
    assert str(errors_of_matches(errors, np.zeros(200, int), 1, REQUESTED).tolerance) == "20 ppm"


def spectra_of_files(numbers):
    """Return the given numbers of spectra of each file, each with one peak."""
    n = sum(numbers)
    ones = np.ones(n)
    return Spectra(
        tuple(map(str, range(len(numbers)))),
        np.repeat(np.arange(len(numbers), dtype=np.int32), numbers),
        [""] * n,
        np.arange(n),
        np.arange(n),
        ones,
        500 * ones,
        ones.astype(np.float32),
        np.full(n, 4, np.uint32),
        np.arange(n + 1),
        200 * ones,
        ones.astype(np.float32),
    )


def test_calibration_samples_spectra_of_large_files_evenly():
    spectra = spectra_of_files([40, 30_000, 0, 700])
    rows = _sample_each_file(spectra)
    of_file = [rows[spectra.file[rows] == number] for number in range(4)]
    assert len(of_file[0]) == 40
    assert 200 <= len(of_file[1]) <= 250
    assert len(set(np.diff(of_file[1]).tolist())) == 1
    assert of_file[1][-1] > 40 + 30_000 - 130
    assert len(of_file[2]) == 0
    assert 200 <= len(of_file[3]) <= 250
    assert (np.diff(rows) > 0).all()
    with_empty = replace(spectra_of_files([1000]), offsets=np.repeat(np.arange(501), 2)[:1001])
    assert (np.diff(with_empty.offsets)[_sample_each_file(with_empty)] > 0).all()


class Miscalibrated(Simulation):
    """A simulation with all precursors 9 ppm too heavy, in addition to their errors."""

    def _write(self, title, neutral_mass, charge, ions, noise_level, write_charge):
        super()._write(title, neutral_mass * (1 + 9e-6), charge, ions, noise_level, write_charge)


@pytest.fixture(scope="module")
def proteins():
    return proteins_of(REPOSITORY / "resources" / "samples" / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


@pytest.fixture(scope="module")
def database(proteins, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "proteins.fasta"
    path.write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
    return path


@pytest.fixture(scope="module")
def miscalibrated(proteins, tmp_path_factory):
    """Simulate a miscalibrated run and write its file."""
    simulation = Miscalibrated(21, 4, 10)
    for number, sequence in enumerate(tryptic(proteins, 22)):
        simulation.add(sequence, 2 + number % 2, fixed(sequence))
        simulation.add_noise(mass.calculate_mass(sequence) + 3.0, 2 + number % 2)
    return simulation, simulation.write(tmp_path_factory.mktemp("tune") / "tune.mgf")


def right(simulation, rows):
    return [row for row in accepted(rows) if same(simulation.known.get(row["spectrum_id"], ""), row["sequence"])]


def test_miscalibrated_run_is_identified_after_calibration(miscalibrated, database, tmp_path):
    """The requested tolerance covers only two thirds of the right answers; the record and the log state the measured error."""
    simulation, path = miscalibrated
    ways = [{"calibrate_tolerance": measures, "second_pass": False} for measures in (False, True)]
    (_, uncalibrated), (summary, rows) = (search(path, database, tmp_path / "project", "high-resolution", **way) for way in ways)
    assert_found(simulation, rows, 0.8)
    assert len(right(simulation, rows)) > 1.2 * len(right(simulation, uncalibrated))
    record = json.loads((tmp_path / "project" / "run.json").read_text())
    assert record["parameters"]["precursor_tolerance"] == "10 ppm"
    (recorded,) = record["passes"]
    (first,) = summary.passes
    used, (median, _) = first.precursor_tolerance, first.precursor_medians
    assert recorded["precursor_tolerance"] == str(used) == summary.record()["passes"][0]["precursor_tolerance"]
    assert recorded["precursor_medians"] == [median, median]
    assert record["precursor_errors"]["medians_ppm"] == [median]
    assert 8 < median < 10
    assert any(str(used) in message and f"err by {median:+.1f} ppm" in message for message in summary.messages)
    assert f"within {used} around an error of {median:+.4g} ppm" in summary.lines()[1]
    errors = np.array([float(row["mass_error_ppm"]) for row in rows])
    assert (np.abs(errors - median) <= used.value + 0.01).all()


def tables_of(summary):
    folder = summary.folder / "results" / summary.run_id
    return [parquet.read_table(folder / f"{name}.parquet") for name in ("psms", "peptides", "proteins")]


def test_calibrated_search_equals_search_of_corrected_masses(miscalibrated, database, tmp_path):
    """Peptides and scores equal those of a file with precursors corrected by the median."""
    _, path = miscalibrated
    summary, rows_found = search(path, database, tmp_path / "project", "high-resolution", calibrate_tolerance=True, second_pass=False)
    (first,) = summary.passes
    factor = 1 + first.precursor_medians[0] * 1e-6
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("PEPMASS="):
            mz, *more = line.removeprefix("PEPMASS=").split()
            mass_of_one = (float(mz) - PROTON) / factor + PROTON
            lines[number] = " ".join([f"PEPMASS={mass_of_one!r}", *more])
    (tmp_path / "corrected.mgf").write_text("\n".join(lines))
    _, expected = search(
        tmp_path / "corrected.mgf",
        database,
        tmp_path / "other",
        "high-resolution",
        calibrate_tolerance=False,
        second_pass=False,
        precursor_tolerance=str(first.precursor_tolerance),
        rescoring="off",
        predicted_intensities=False,
    )
    peptides = [
        {row["spectrum_id"]: (row["peptide"], row["hyperscore"], row["expectation"]) for row in rows} for rows in (rows_found, expected)
    ]
    assert peptides[0] == peptides[1]


def test_calibrated_search_is_equal_on_any_threads_and_gpus(miscalibrated, database, tmp_path):
    """The tables of two passes are byte-identical."""

    def identified(threads, device="cpu"):
        parameters = IdentificationParameters(calibrate_tolerance=True, second_pass=True)
        return identify([miscalibrated[1]], [database], tmp_path / "project", parameters, threads=threads, device=device)

    summaries = [identified(threads) for threads in (1, 5)]
    if not missing_compiler():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "proteoscope.engine.execution.device_lookup.resolve_device",
                lambda *_: Device("cuda:0", "a GPU", 1 << 33, True, numbers=(0,)),
            )
            patch.setattr("proteoscope.engine.search_run.open_gpus", lambda *_, **__: [LimitedGpu()])
            summaries.append(identified(2, "cuda"))
            assert summaries[-1].device == LimitedGpu().name
    expected = tables_of(summaries[0])
    assert all(tables_of(summary) == expected for summary in summaries[1:])


def test_second_pass_searches_fewer_isotopes_and_modifications(miscalibrated, database, tmp_path, monkeypatch):
    searched = []

    def noted(spectra, peptides, modifications, parameters, *more):
        searched.append((str(parameters.precursor_tolerance), parameters.isotope_errors, parameters.maximum_modifications))
        return plan_by_series(spectra, peptides, modifications, parameters, *more)

    monkeypatch.setattr(passes, "plan_by_series", noted)
    parameters = IdentificationParameters(calibrate_tolerance=True, second_pass=True)
    summary = identify([miscalibrated[1]], [database], tmp_path / "project", parameters, threads=2)
    every = (0, 1, 2, 3)
    first, second = summary.passes
    assert searched == [("20 ppm", (0, 1), 3), (str(first.precursor_tolerance), every, 3), (str(second.precursor_tolerance), (0, 1), 1)]
    assert first.precursor_medians == second.precursor_medians
    assert second.isotope_errors == (0, 1)
    assert (first.specificity, second.specificity, first.proteins, second.proteins) == ("specific", "semi-specific", "all", "found")
    assert set(second.variable_modifications) == {*parameters.variable_modifications, *parameters.second_pass_modifications}
    assert second.n_spectra < first.n_spectra and 0 < second.n_proteins < first.n_proteins
    assert passes_of_run(Project.open(summary.folder), summary.run_id) == summary.passes
    # The export covers both passes.
    assert main(["export", str(summary.folder), "--format", "mzid", "--out", str(tmp_path / "x.mzid")]) == 0
    root = etree.parse(tmp_path / "x.mzid").getroot()
    plus, minus = (float(element.get("value")) for element in root.iterfind(".//{*}ParentTolerance/*"))
    windows = [(search_pass.precursor_medians[0], search_pass.precursor_tolerance.value) for search_pass in summary.passes]
    assert plus == pytest.approx(max(centre + half for centre, half in windows))
    assert minus == pytest.approx(max(half - centre for centre, half in windows))
    assert root.find(".//{*}Enzyme").get("semiSpecific") == "true"
    assert main(["export", str(summary.folder), "--format", "pepxml", "--out", str(tmp_path / "x.pepXML")]) == 0
    root = etree.parse(tmp_path / "x.pepXML").getroot()
    least = int(root.find(".//{*}enzymatic_search_constraint").get("min_number_termini"))
    assert least == 1 <= min(int(element.get("num_tol_term")) for element in root.iterfind(".//{*}search_hit"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"precursor_tolerance": "0.02 Da"}, "only those below 20 ppm"),
        ({"precursor_tolerance": "30 ppm"}, "only those below 20 ppm"),
        ({"decoys": "none"}, "only with decoys"),
    ],
)
def test_calibration_is_skipped_for_unsuitable_settings(changes, reason, miscalibrated, database, tmp_path, monkeypatch):
    """Only one search is run, and none for calibration before it."""
    searches = []
    monkeypatch.setattr(passes, "plan_by_series", lambda *of: (searches.append(of), plan_by_series(*of))[1])
    changes = {"calibrate_tolerance": True, "second_pass": False, **changes}
    summary, rows = search(miscalibrated[1], database, tmp_path / "project", "high-resolution", **changes)
    assert rows
    assert len(searches) == 1
    assert str(summary.passes[0].precursor_tolerance) == changes.get("precursor_tolerance", "10 ppm")
    assert any(reason in message for message in summary.messages)


def test_second_pass_reports_false_matches_among_its_psms(shared_data, tmp_path):
    """Counted by definition: the accepted matches include forms that only the second pass searches."""
    spectra = shared_data / "spectra" / "qc_shew_qe" / "QC_Shew_18_02_Excerpt.mzXML"
    summary, rows = search(spectra, shared_data / "proteomes" / "shew.fasta", tmp_path / "project", "high-resolution", second_pass=True)
    second = next(counts for counts in summary.classes if counts.name == "second pass")
    only_second = [
        row
        for row in rows
        if {"Deamidated", "Acetyl", "Gln->pyro-Glu"} & set(row["modification_names"].split(";"))
        or not set(row["residues_before"].replace(";", "")) & set("KR-M")
        or (row["sequence"][-1] not in "KR" and "-" not in row["residues_after"])
    ]
    assert only_second and {row["match_class"] for row in only_second} == {"second pass"}
    of_targets = [row for row in only_second if row["is_decoy"] == "false" and float(row["q_value"]) <= 0.01]
    assert 3 <= len(of_targets) <= second.certainty["targets"] < summary.n_psms
    assert second.certainty["false_share_high"] > summary.certainty["psms"]["false_share_high"]
    assert any(line.startswith(f"  second pass: {second.certainty['targets']} PSMs, with") for line in summary.lines())


def test_calibration_reports_files_with_too_few_matches() -> None:
    errors, files = np.linspace(1.0, 9.0, 101), np.zeros(101, int)
    assert "files" not in errors_of_matches(errors, files, 1, REQUESTED).message
    assert "files" not in errors_of_matches(np.tile(errors, 2), np.repeat([0, 1], 101), 2, REQUESTED).message
    files[:5] = 2
    message = errors_of_matches(errors, files, 3, REQUESTED).message
    assert "2 of 3 files have fewer than 30 of these, and are corrected by the median of all files" in message

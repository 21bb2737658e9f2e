"""The precursor tolerance from the run: by its definition, within its bounds, and in searches of runs that are out of tune."""

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
from proteoscope.engine.identification.precursor_errors import _some_of_each_file, errors_of_matches
from proteoscope.engine.matches.pass_records import passes_of_run
from proteoscope.engine.matches.scoring import plan_by_series
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.columns import Spectra
from tests.engine.identification.test_search import (
    REPOSITORY,
    LimitedCard,
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
from tests.shim.shim_card import missing_compiler

ASKED = Tolerance(5.0, "ppm")


def by_definition(errors, files, n_files, asked, spreads):
    """Of each file the median, of all where it has fewer than 30 matches; and so many robust standard deviations about these."""
    of_file = [[error for error, file in zip(errors, files, strict=True) if file == number] for number in range(n_files)]
    medians = [round(statistics.median(some if len(some) >= 30 else errors), 2) for some in of_file]
    spread = 1.4826 * statistics.median(abs(error - medians[file]) for error, file in zip(errors, files, strict=True))
    return medians, max(asked, min(round(spreads * spread, 1), 20.0))


@pytest.mark.parametrize("seed", range(20))
def test_the_tolerances_are_those_of_their_definition(seed):
    random = np.random.default_rng(seed)
    n, n_files = int(random.integers(30, 300)), int(random.integers(1, 5))
    files = random.integers(0, n_files, n)
    errors = random.normal(random.uniform(-6, 6, 5)[files], random.uniform(0.1, 2.5), n)
    found = errors_of_matches(errors, files, n_files, ASKED)
    for tolerance, spreads in ((found.tolerance, 3), (found.of_second, 5)):
        medians, value = by_definition(errors.tolist(), files.tolist(), n_files, ASKED.value, spreads)
        assert tolerance.unit == "ppm"
        assert tolerance.value == pytest.approx(value)
        assert found.medians == pytest.approx(medians)
    assert found.n_matches == n


def test_it_is_neither_narrower_than_asked_nor_wider_than_the_first_search():
    exact, wild = np.full(100, 0.1), np.random.default_rng(1).uniform(-20, 20, 400)
    of_exact, of_wild = (errors_of_matches(errors, np.zeros(len(errors), int), 1, ASKED) for errors in (exact, wild))
    assert of_exact.tolerance == of_exact.of_second == ASKED
    assert str(of_wild.tolerance) == str(of_wild.of_second) == "20 ppm"


def test_a_run_out_of_tune_needs_no_wider_window():
    """And so no more candidates than one in tune."""
    errors = np.random.default_rng(2).normal(6, 1, 400)
    found = errors_of_matches(errors, np.zeros(400, int), 1, ASKED)
    assert found.tolerance == ASKED
    assert (np.abs(errors - found.medians[0]) < ASKED.value).all()


def test_too_few_matches_leave_what_was_asked():
    errors = np.linspace(5, 9, 30)
    assert errors_of_matches(errors, np.zeros(30, int), 1, ASKED).medians.tolist() == [7.0]
    found = errors_of_matches(errors[:29], np.zeros(29, int), 1, ASKED)
    assert (found.tolerance, found.of_second, found.n_matches, found.medians.tolist()) == (ASKED, ASKED, 0, [0.0])
    assert "29 were found" in found.message


def test_some_wrong_matches_do_not_move_it():
    random = np.random.default_rng(3)
    errors = random.normal(3, 2, 500)
    with_wrong = np.concatenate((errors, random.uniform(-20, 20, 15)))
    one, other = (errors_of_matches(some, np.zeros(len(some), int), 1, ASKED) for some in (errors, with_wrong))
    assert one.tolerance.value > ASKED.value
    assert abs(one.tolerance.value - other.tolerance.value) < 0.3
    assert abs(one.medians[0] - other.medians[0]) < 0.1


def test_files_are_measured_about_their_own_medians():
    """Two files out of tune in opposite directions: their distance is no scatter."""
    errors = np.random.default_rng(4).normal(0, 0.5, 200) + np.repeat([-6, 6], 100)
    apart = errors_of_matches(errors, np.repeat([0, 1], 100), 2, ASKED)
    assert apart.tolerance == ASKED
    assert apart.medians == pytest.approx([-6, 6], abs=0.2)
    assert str(errors_of_matches(errors, np.zeros(200, int), 1, ASKED).tolerance) == "20 ppm"


def spectra_of_files(numbers):
    """So many spectra of each file, each with one peak."""
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


def test_the_first_search_looks_at_all_of_a_small_file_and_evenly_at_a_large_one():
    spectra = spectra_of_files([40, 30_000, 0, 700])
    rows = _some_of_each_file(spectra)
    of_file = [rows[spectra.file[rows] == number] for number in range(4)]
    assert len(of_file[0]) == 40
    assert 200 <= len(of_file[1]) <= 250
    assert len(set(np.diff(of_file[1]).tolist())) == 1
    assert of_file[1][-1] > 40 + 30_000 - 130
    assert len(of_file[2]) == 0
    assert 200 <= len(of_file[3]) <= 250
    assert (np.diff(rows) > 0).all()
    with_empty = replace(spectra_of_files([1000]), offsets=np.repeat(np.arange(501), 2)[:1001])
    assert (np.diff(with_empty.offsets)[_some_of_each_file(with_empty)] > 0).all()


class OutOfTune(Simulation):
    """All precursors too heavy by 9 ppm, besides their errors."""

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
def out_of_tune(proteins, tmp_path_factory):
    """The simulation and its file."""
    simulation = OutOfTune(21, 4, 10)
    for number, sequence in enumerate(tryptic(proteins, 22)):
        simulation.add(sequence, 2 + number % 2, fixed(sequence))
        simulation.add_noise(mass.calculate_mass(sequence) + 3.0, 2 + number % 2)
    return simulation, simulation.write(tmp_path_factory.mktemp("tune") / "tune.mgf")


def right(simulation, rows):
    return [row for row in accepted(rows) if same(simulation.known.get(row["spectrum_id"], ""), row["sequence"])]


def test_a_run_out_of_tune_is_found_by_what_is_measured_of_it(out_of_tune, database, tmp_path):
    """Where the tolerance asked for holds two thirds of the right answers; and what was measured is told."""
    simulation, path = out_of_tune
    ways = [{"tolerance_from_run": measures, "second_pass": False} for measures in (False, True)]
    (_, asked), (summary, rows) = (search(path, database, tmp_path / "project", "high-resolution", **way) for way in ways)
    assert_found(simulation, rows, 0.8)
    assert len(right(simulation, rows)) > 1.2 * len(right(simulation, asked))
    record = json.loads((tmp_path / "project" / "run.json").read_text())
    assert record["parameters"]["precursor_tolerance"] == "10 ppm"
    (told,) = record["passes"]
    (first,) = summary.passes
    used, (median, _) = first.precursor_tolerance, first.precursor_medians
    assert told["precursor_tolerance"] == str(used) == summary.record()["passes"][0]["precursor_tolerance"]
    assert told["precursor_medians"] == [median, median]
    assert record["precursor_errors"]["medians_ppm"] == [median]
    assert 8 < median < 10
    assert any(str(used) in message and f"err by {median:+.1f} ppm" in message for message in summary.messages)
    assert f"within {used} of an error of {median:+.4g} ppm" in summary.lines()[1]
    errors = np.array([float(row["mass_error_ppm"]) for row in rows])
    assert (np.abs(errors - median) <= used.value + 0.01).all()


def tables_of(summary):
    folder = summary.folder / "results" / summary.run_id
    return [parquet.read_table(folder / f"{name}.parquet") for name in ("psms", "peptides", "proteins")]


def test_it_is_the_search_of_corrected_precursors_with_that_tolerance(out_of_tune, database, tmp_path):
    """The same peptides and scores as of a file whose precursors somebody else corrected by the median."""
    _, path = out_of_tune
    summary, found = search(path, database, tmp_path / "project", "high-resolution", tolerance_from_run=True, second_pass=False)
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
        tolerance_from_run=False,
        second_pass=False,
        precursor_tolerance=str(first.precursor_tolerance),
        rescoring="off",
        predicted_intensities=False,
    )
    peptides = [{row["spectrum_id"]: (row["peptide"], row["hyperscore"], row["expectation"]) for row in rows} for rows in (found, expected)]
    assert peptides[0] == peptides[1]


def test_threads_and_cards_measure_and_find_the_same(out_of_tune, database, tmp_path):
    """In two passes, to the last byte of the tables."""

    def found(threads, device="cpu"):
        parameters = IdentificationParameters(tolerance_from_run=True, second_pass=True)
        return identify([out_of_tune[1]], [database], tmp_path / "project", parameters, threads=threads, device=device)

    summaries = [found(threads) for threads in (1, 5)]
    if not missing_compiler():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "proteoscope.engine.execution.device_lookup.resolve_device",
                lambda *_: Device("cuda:0", "a card", 1 << 33, True, numbers=(0,)),
            )
            patch.setattr("proteoscope.engine.search_run.open_cards", lambda *_, **__: [LimitedCard()])
            summaries.append(found(2, "cuda"))
            assert summaries[-1].device == LimitedCard().name
    expected = tables_of(summaries[0])
    assert all(tables_of(summary) == expected for summary in summaries[1:])


def test_a_second_pass_keeps_to_near_isotopes_and_to_one_modification(out_of_tune, database, tmp_path, monkeypatch):
    searched = []

    def noted(spectra, peptides, modifications, parameters, *more):
        searched.append((str(parameters.precursor_tolerance), parameters.isotope_errors, parameters.maximum_modifications))
        return plan_by_series(spectra, peptides, modifications, parameters, *more)

    monkeypatch.setattr(passes, "plan_by_series", noted)
    parameters = IdentificationParameters(tolerance_from_run=True, second_pass=True)
    summary = identify([out_of_tune[1]], [database], tmp_path / "project", parameters, threads=2)
    every = (0, 1, 2, 3)
    first, second = summary.passes
    assert searched == [("20 ppm", (0, 1), 3), (str(first.precursor_tolerance), every, 3), (str(second.precursor_tolerance), (0, 1), 1)]
    assert first.precursor_medians == second.precursor_medians
    assert second.isotope_errors == (0, 1)
    assert (first.specificity, second.specificity, first.proteins, second.proteins) == ("specific", "semi-specific", "all", "found")
    assert set(second.variable_modifications) == {*parameters.variable_modifications, *parameters.second_pass_modifications}
    assert second.n_spectra < first.n_spectra and 0 < second.n_proteins < first.n_proteins
    assert passes_of_run(Project.open(summary.folder), summary.run_id) == summary.passes
    # What is exported is true for both.
    assert main(["export", str(summary.folder), "--format", "mzid", "--out", str(tmp_path / "x.mzid")]) == 0
    root = etree.parse(tmp_path / "x.mzid").getroot()
    plus, minus = (float(one.get("value")) for one in root.iterfind(".//{*}ParentTolerance/*"))
    windows = [(one.precursor_medians[0], one.precursor_tolerance.value) for one in summary.passes]
    assert plus == pytest.approx(max(centre + half for centre, half in windows))
    assert minus == pytest.approx(max(half - centre for centre, half in windows))
    assert root.find(".//{*}Enzyme").get("semiSpecific") == "true"
    assert main(["export", str(summary.folder), "--format", "pepxml", "--out", str(tmp_path / "x.pepXML")]) == 0
    root = etree.parse(tmp_path / "x.pepXML").getroot()
    least = int(root.find(".//{*}enzymatic_search_constraint").get("min_number_termini"))
    assert least == 1 <= min(int(one.get("num_tol_term")) for one in root.iterfind(".//{*}search_hit"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"precursor_tolerance": "0.02 Da"}, "only those below 20 ppm"),
        ({"precursor_tolerance": "30 ppm"}, "only those below 20 ppm"),
        ({"decoys": "none"}, "only with decoys"),
    ],
)
def test_what_cannot_be_measured_stays_as_it_was_asked(changes, reason, out_of_tune, database, tmp_path, monkeypatch):
    """Without a first search."""
    searches = []
    monkeypatch.setattr(passes, "plan_by_series", lambda *of: (searches.append(of), plan_by_series(*of))[1])
    changes = {"tolerance_from_run": True, "second_pass": False, **changes}
    summary, rows = search(out_of_tune[1], database, tmp_path / "project", "high-resolution", **changes)
    assert rows
    assert len(searches) == 1
    assert str(summary.passes[0].precursor_tolerance) == changes.get("precursor_tolerance", "10 ppm")
    assert any(reason in message for message in summary.messages)


def test_a_second_pass_tells_how_much_of_what_it_adds_may_be_false(shared_data, tmp_path):
    """Counted by hand: accepted matches of forms that only the second pass looks for are among them."""
    spectra = shared_data / "spectra" / "qc_shew_qe" / "QC_Shew_18_02_Excerpt.mzXML"
    summary, rows = search(spectra, shared_data / "proteomes" / "shew.fasta", tmp_path / "project", "high-resolution", second_pass=True)
    known = summary.certainty["second_pass"]
    only_second = [
        row
        for row in rows
        if float(row["q_value"]) <= 0.01
        and (
            {"Deamidated", "Acetyl", "Gln->pyro-Glu"} & set(row["modification_names"].split(";"))
            or not set(row["residues_before"].replace(";", "")) & set("KR-M")
            or (row["sequence"][-1] not in "KR" and "-" not in row["residues_after"])
        )
    ]
    of_targets = [row for row in only_second if row["is_decoy"] == "false"]
    assert 5 <= len(of_targets) <= known["targets"] < summary.n_psms
    assert known["decoys"] >= len(only_second) - len(of_targets)
    assert known["false_share_high"] > summary.certainty["psms"]["false_share_high"]
    assert any(f"adds {known['targets']} PSMs" in message for message in summary.messages)


def test_files_whose_own_error_was_not_measured_are_told() -> None:
    errors, files = np.linspace(1.0, 9.0, 101), np.zeros(101, int)
    assert "files" not in errors_of_matches(errors, files, 1, ASKED).message
    assert "files" not in errors_of_matches(np.tile(errors, 2), np.repeat([0, 1], 101), 2, ASKED).message
    files[:5] = 2
    told = errors_of_matches(errors, files, 3, ASKED).message
    assert "2 of 3 files have fewer than 30 of these, and are taken to be out of tune like all together" in told

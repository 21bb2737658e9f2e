"""What a run says of its passes is what was done, in its record, in exports and in words; and what a stranger wrote there is no danger."""

import json
from dataclasses import replace

import pytest
from lxml import etree
from pyteomics import mzid, pepxml

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.matches.pass_records import (
    PassRecord,
    SeriesCount,
    passes_of_record,
    passes_of_run,
    read_passes,
    requested_passes,
    widest,
)
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.project import Project
from tests.engine.identification_tables import PARAMETERS, identification
from tests.engine.matches.exported import export
from tests.engine.matches.writers.test_mzidentml import LEFT_OPEN, NAMESPACE, validate

FIRST = PassRecord(
    "first",
    Tolerance(11.9, "ppm"),
    Tolerance(0.02, "Da"),
    (0, 1, 2),
    "Trypsin",
    "specific",
    2,
    ("Carbamidomethyl (C)",),
    ("Oxidation (M)",),
    databases=("/data/a.fasta", "/data/contaminants.fasta"),
    n_proteins=1000,
    spectra=("/data/run.mzML",),
    n_spectra=500,
)
SECOND = replace(
    FIRST,
    name="second",
    precursor_tolerance=Tolerance(10.0, "ppm"),
    isotope_errors=(0, 1),
    specificity="semi-specific",
    variable_modifications=("Oxidation (M)", "Deamidated (NQ)"),
    proteins="found",
    n_proteins=68,
    n_spectra=300,
)
SHIFTED = replace(
    FIRST,
    precursor_tolerance=Tolerance(10.0, "ppm"),
    mass_shift=(-150.0, 500.0),
    groups=(("none",), ("named", "unnamed")),
    proteins="found",
    source_run="identify-0001",
)


MIXED = replace(FIRST, ion_series=(SeriesCount("HCD", "by", 400), SeriesCount("ETD", "cz", 90), SeriesCount("", "by", 10)))


@pytest.mark.parametrize("one", [FIRST, SECOND, SHIFTED, MIXED])
def test_a_record_is_read_as_it_was_written(one, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"passes": [one.record()]}))
    assert read_passes(path) == (one,)


def test_requested_passes_are_those_that_parameters_request():
    parameters = {
        **PARAMETERS,
        "second_pass": True,
        "second_pass_modifications": ["Deamidated (NQ)"],
        "second_pass_specificity": "semi-specific",
    }
    first, second = requested_passes(parameters)
    assert (str(first.precursor_tolerance), str(second.precursor_tolerance)) == ("10 ppm", "10 ppm")
    assert (first.specificity, second.specificity, second.proteins) == ("specific", "semi-specific", "found")
    assert set(second.variable_modifications) == {*PARAMETERS["variable_modifications"], "Deamidated (NQ)"}
    (one,) = requested_passes({**PARAMETERS, "mass_shift": "-150..500"})
    assert one.mass_shift == (-150.0, 500.0)
    assert requested_passes({"fdr": 0.01}) == passes_of_record({}) == passes_of_record({"parameters": parameters}) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("precursor_tolerance", "wide"),
        ("precursor_tolerance", 10),
        ("isotope_errors", ["0"]),
        ("isotope_errors", 3),
        ("enzyme", "scissors"),
        ("specificity", "very"),
        ("missed_cleavages", -1),
        ("missed_cleavages", True),
        ("fixed_modifications", "Oxidation (M)"),
        ("variable_modifications", ["Nothing (M)"]),
        ("mass_shift", [5, -5]),
        ("mass_shift", [1]),
        ("ion_series", [["HCD", "by"]]),
        ("ion_series", [["HCD", "bq", 3]]),
        ("ion_series", ["HCD"]),
        ("mass_shift", ["a", "b"]),
        ("databases", [{}]),
        ("databases", ["\ud800"]),
        ("databases", ["x" * 20_000]),
        ("spectra", ["x"] * 2000),
        ("proteins", "some"),
        ("n_spectra", 1e300),
        ("precursor_medians", 3),
        ("precursor_medians", [1.0]),
        ("precursor_medians", [2.0, 1.0]),
        ("precursor_medians", ["a", "b"]),
        ("groups", [["a"], 3]),
        ("name", None),
        ("source_run", 7),
    ],
)
def test_what_a_stranger_wrote_is_refused_with_the_file_named(name, value, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"passes": [{**FIRST.record(), name: value}]}))
    with pytest.raises(StorageError, match=r"run\.json.*does not describe a search"):
        read_passes(path)


@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000, '{"passes": [3]}', '{"passes": ' + json.dumps([FIRST.record()] * 30) + "}"])
def test_a_record_that_is_none_is_refused(content, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(StorageError):
        read_passes(path)


def test_a_sentence_says_what_was_done():
    assert SECOND.sentence() == (
        "Second pass: 300 spectra, 68 proteins found before, precursors within 10 ppm, isotope errors 0, 1, fragments within 0.02 Da,"
        " Trypsin, semi-specific, up to 2 missed cleavages; fixed Carbamidomethyl (C); variable Oxidation (M), Deamidated (NQ)"
    )
    assert "500 spectra that identify-0001 left, 1,000 proteins found by identify-0001" in SHIFTED.sentence()
    assert "mass shifts from -150 to 500 Da" in SHIFTED.sentence()


def test_a_sentence_names_the_ion_series_with_their_spectra():
    expected = "; ions of 400 spectra HCD: b, y; 90 spectra ETD: c, z; 10 spectra of unknown activation: b, y"
    assert MIXED.sentence() == FIRST.sentence() + expected
    assert replace(FIRST, ion_series=(SeriesCount("", "cz", 500),)).sentence() == FIRST.sentence() + "; ions c, z"


def test_an_enzyme_that_cuts_everywhere_asks_for_no_end():
    class Settings:
        enzyme, missed_cleavages, fixed_modifications, isotope_errors = "unspecific cleavage", 2, (), (0,)
        precursor_tolerance = fragment_tolerance = Tolerance(10.0, "ppm")

    assert PassRecord.of("first", Settings(), "specific").specificity == "non-specific"


def test_the_widest_tolerance_is_that_which_holds_the_others():
    some = [Tolerance(10.0, "ppm"), Tolerance(0.5, "Da"), Tolerance(20.0, "ppm")]
    assert widest(some) == some[1]
    assert widest([]) is None


def test_what_is_said_once_of_all_passes_is_true_for_each():
    search = SearchDescription(PARAMETERS, done=(FIRST, SECOND))
    assert search.specificity == "semi-specific"
    assert search.tolerance("precursor_tolerance") == Tolerance(11.9, "ppm")
    assert {str(one) for one, is_fixed in search.modifications if not is_fixed} == {"Oxidation (M)", "Deamidated (NQ)"}
    assert not search.searches_found_proteins_alone
    told = dict(search.named_values())
    assert told["asked_precursor_tolerance"] == "10 ppm"
    assert (told["precursor_tolerance (first pass)"], told["precursor_tolerance (second pass)"]) == ("11.9 ppm", "10 ppm")
    assert told["second pass"] == SECOND.sentence()
    # The same as it was asked for is said once.
    assert told["missed_cleavages"] == "2" and "asked_fragment_tolerance" not in told


@pytest.fixture(scope="module")
def small():
    return identification()


def described(small, folder, *passes):
    """Both files, as read by lxml, and whether pyteomics reads all PSMs of them."""
    tables, roots = small.write(folder), []
    for name, reader in (("mzid", mzid), ("pepxml", pepxml)):
        (path,) = export(tables, name, folder / f"x.{name}", small.parameters, passes=passes, version="1.0")
        with reader.read(str(path)) as found:
            key = "SpectrumIdentificationItem" if name == "mzid" else "search_hit"
            assert sum(len(one[key]) for one in found) == len(small.psms)
        roots.append(etree.parse(path).getroot())
    validate(folder / "x.mzid")
    return roots


def tolerance(root):
    return {
        one.get("name").split()[2]: (one.get("value"), one.get("unitName")) for one in root.iterfind(".//m:ParentTolerance/*", NAMESPACE)
    }


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_a_second_pass_and_a_measured_tolerance_are_exported(small, tmp_path):
    identified, searched = described(small, tmp_path, FIRST, SECOND)
    assert tolerance(identified) == {"plus": ("11.9", "parts per million"), "minus": ("11.9", "parts per million")}
    (enzyme,) = identified.iterfind(".//m:Enzyme", NAMESPACE)
    assert enzyme.get("semiSpecific") == "true"
    variable = [one for one in identified.iterfind(".//m:SearchModification", NAMESPACE) if one.get("fixedMod") == "false"]
    assert {one.get("residues") for one in variable} == {"M", "N Q"}
    assert [one.get("location") for one in identified.iterfind(".//m:SearchDatabase", NAMESPACE)] == [
        "a.fasta",
        "contaminants.fasta",
    ]
    assert identified.find(".//m:DatabaseFilters", NAMESPACE) is None
    (constraint, *_) = searched.iterfind(".//{*}enzymatic_search_constraint")
    assert constraint.get("min_number_termini") == "1"
    assert searched.find(".//{*}sample_enzyme").get("fidelity") == "semispecific"
    told = {one.get("name"): one.get("value") for one in searched.find(".//{*}search_summary").iterfind("{*}parameter")}
    assert told["precursor_tolerance (first pass)"] == "11.9 ppm"
    assert "precursor_tolerance" not in told


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_mass_shifts_and_found_proteins_are_exported(small, tmp_path):
    identified, _ = described(small, tmp_path, SHIFTED)
    assert tolerance(identified) == {"plus": ("500", "dalton"), "minus": ("150", "dalton")}
    assert identified.find(".//m:DatabaseFilters//m:FilterType/m:cvParam", NAMESPACE).get("accession") == "MS:1001021"
    first = SearchDescription(done=(replace(SHIFTED, mass_shift=(10.0, 20.0)),)).precursor_range
    assert first == (Tolerance(0.015, "Da"), Tolerance(20.0, "Da"))  # without a shift, within the tolerance


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_windows_about_an_error_are_exported_by_their_ends(small, tmp_path):
    """Of the passes together: as light as the one may be, and as heavy as the other."""
    passes = [
        replace(SHIFTED, mass_shift=None, precursor_tolerance=Tolerance(half, "ppm"), precursor_medians=medians)
        for half, medians in ((10.0, (-2.0, 1.5)), (11.0, (3.0, 3.0)))
    ]
    identified, _ = described(small, tmp_path, *passes)
    assert tolerance(identified) == {"plus": ("14", "parts per million"), "minus": ("12", "parts per million")}
    assert "within 10 ppm of an error of -2 to +1.5 ppm" in passes[0].sentence()
    assert passes_of_record({"passes": [json.loads(json.dumps(one.record())) for one in passes]}) == tuple(passes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"precursor_tolerance": "wide"},
        {"variable_modifications": 3},
        {"isotope_errors": 1},
        {"mass_shift": "a..b"},
        {"enzyme": []},
        {"second_pass": True, "second_pass_modifications": None},
        {"specificity": {}},
        {"fixed_modifications": [[]]},
    ],
)
def test_what_cannot_be_understood_is_said(wrong):
    with pytest.raises(ParameterError):
        requested_passes({**PARAMETERS, **wrong})


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (("x.fasta", "contaminants.fasta"), ("/data/a/x.fasta", "/data/b/y.fasta", "contaminants.fasta")),
        (("a/x.fasta", "b/y.fasta"), ("/data/a/x.fasta", "/data/b/y.fasta")),
        (("/data/a/x.fasta", "b/x.fasta"), ("/data/a/x.fasta", "/data/b/y.fasta", "b/x.fasta")),
    ],
)
def test_database_files_names_each_file_once(recorded, expected):
    """Records have names of files with as many folders as distinguish them; the project has the paths."""
    search = SearchDescription(databases=("/data/a/x.fasta", "/data/b/y.fasta"), done=(replace(FIRST, databases=recorded),))
    assert search.database_files == expected


def test_run_without_a_record_has_no_passes(tmp_path):
    with Project.create_or_open(tmp_path / "p").run("identify", {**PARAMETERS, "second_pass": False}, [], version="1") as run:
        pass
    assert passes_of_run(Project.open(tmp_path / "p"), run.id) == ()

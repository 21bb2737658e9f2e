"""Records of search passes: reading, exports and sentences, and rejection of untrusted values."""

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


@pytest.mark.parametrize("record", [FIRST, SECOND, SHIFTED, MIXED])
def test_read_passes_restores_written_records(record, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"passes": [record.record()]}))
    assert read_passes(path) == (record,)


def test_requested_passes_describe_the_parameters():
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
    (search_pass,) = requested_passes({**PARAMETERS, "mass_shift": "-150..500"})
    assert search_pass.mass_shift == (-150.0, 500.0)
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
def test_read_passes_rejects_invalid_values(name, value, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"passes": [{**FIRST.record(), name: value}]}))
    with pytest.raises(StorageError, match=r"run\.json.*does not describe a search"):
        read_passes(path)


@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000, '{"passes": [3]}', '{"passes": ' + json.dumps([FIRST.record()] * 30) + "}"])
def test_read_passes_rejects_invalid_files(content, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(StorageError):
        read_passes(path)


def test_sentence_of_a_search_pass_lists_spectra_and_settings():
    assert SECOND.sentence() == (
        "Second pass: 300 spectra, 68 proteins found before, precursors within 10 ppm, isotope errors 0, 1, fragments within 0.02 Da,"
        " Trypsin, semi-specific, up to 2 missed cleavages; fixed Carbamidomethyl (C); variable Oxidation (M), Deamidated (NQ)"
    )
    assert "500 spectra that identify-0001 left unidentified, 1,000 proteins found by identify-0001" in SHIFTED.sentence()
    assert "mass shifts from -150 to 500 Da" in SHIFTED.sentence()


def test_sentence_of_a_search_pass_lists_ion_series_with_spectra():
    expected = "; ions of 400 spectra HCD: b, y; 90 spectra ETD: c, z; 10 spectra of unknown activation: b, y"
    assert MIXED.sentence() == FIRST.sentence() + expected
    assert replace(FIRST, ion_series=(SeriesCount("", "cz", 500),)).sentence() == FIRST.sentence() + "; ions c, z"


def test_pass_record_is_non_specific_for_unspecific_enzyme():
    class Settings:
        enzyme, missed_cleavages, fixed_modifications, isotope_errors = "unspecific cleavage", 2, (), (0,)
        precursor_tolerance = fragment_tolerance = Tolerance(10.0, "ppm")

    assert PassRecord.from_settings("first", Settings(), "specific").specificity == "non-specific"


def test_widest_tolerance_is_selected_by_size_not_by_order():
    tolerances = [Tolerance(10.0, "ppm"), Tolerance(0.5, "Da"), Tolerance(20.0, "ppm")]
    assert widest(tolerances) == tolerances[1]
    assert widest([]) is None


def test_search_description_combines_passes():
    search = SearchDescription(PARAMETERS, done=(FIRST, SECOND))
    assert search.specificity == "semi-specific"
    assert search.tolerance("precursor_tolerance") == Tolerance(11.9, "ppm")
    assert {str(modification) for modification, is_fixed in search.modifications if not is_fixed} == {"Oxidation (M)", "Deamidated (NQ)"}
    assert not search.searches_only_found_proteins
    values = dict(search.named_values())
    assert values["asked_precursor_tolerance"] == "10 ppm"
    assert (values["precursor_tolerance (first pass)"], values["precursor_tolerance (second pass)"]) == ("11.9 ppm", "10 ppm")
    assert values["second pass"] == SECOND.sentence()
    # A value that equals the requested one is listed once.
    assert values["missed_cleavages"] == "2" and "asked_fragment_tolerance" not in values


@pytest.fixture(scope="module")
def small():
    return identification()


def described(small, folder, *passes):
    """Export both files, check that pyteomics reads all PSMs, and return their roots."""
    tables, roots = small.write(folder), []
    for name, reader in (("mzid", mzid), ("pepxml", pepxml)):
        (path,) = export(tables, name, folder / f"x.{name}", small.parameters, passes=passes, version="1.0")
        with reader.read(str(path)) as results:
            key = "SpectrumIdentificationItem" if name == "mzid" else "search_hit"
            assert sum(len(result[key]) for result in results) == len(small.psms)
        roots.append(etree.parse(path).getroot())
    validate(folder / "x.mzid")
    return roots


def tolerance(root):
    return {
        term.get("name").split()[2]: (term.get("value"), term.get("unitName"))
        for term in root.iterfind(".//m:ParentTolerance/*", NAMESPACE)
    }


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_exports_describe_second_pass_and_calibrated_tolerance(small, tmp_path):
    identified, searched = described(small, tmp_path, FIRST, SECOND)
    assert tolerance(identified) == {"plus": ("11.9", "parts per million"), "minus": ("11.9", "parts per million")}
    (enzyme,) = identified.iterfind(".//m:Enzyme", NAMESPACE)
    assert enzyme.get("semiSpecific") == "true"
    variable = [
        modification
        for modification in identified.iterfind(".//m:SearchModification", NAMESPACE)
        if modification.get("fixedMod") == "false"
    ]
    assert {modification.get("residues") for modification in variable} == {"M", "N Q"}
    assert [element.get("location") for element in identified.iterfind(".//m:SearchDatabase", NAMESPACE)] == [
        "a.fasta",
        "contaminants.fasta",
    ]
    assert identified.find(".//m:DatabaseFilters", NAMESPACE) is None
    (constraint, *_) = searched.iterfind(".//{*}enzymatic_search_constraint")
    assert constraint.get("min_number_termini") == "1"
    assert searched.find(".//{*}sample_enzyme").get("fidelity") == "semispecific"
    parameters = {
        parameter.get("name"): parameter.get("value") for parameter in searched.find(".//{*}search_summary").iterfind("{*}parameter")
    }
    assert parameters["precursor_tolerance (first pass)"] == "11.9 ppm"
    assert "precursor_tolerance" not in parameters


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_exports_describe_mass_shifts_and_found_proteins(small, tmp_path):
    identified, _ = described(small, tmp_path, SHIFTED)
    assert tolerance(identified) == {"plus": ("500", "dalton"), "minus": ("150", "dalton")}
    assert identified.find(".//m:DatabaseFilters//m:FilterType/m:cvParam", NAMESPACE).get("accession") == "MS:1001021"
    first = SearchDescription(done=(replace(SHIFTED, mass_shift=(10.0, 20.0)),)).precursor_range
    assert first == (Tolerance(0.015, "Da"), Tolerance(20.0, "Da"))  # without a shift, within the tolerance


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_exports_describe_calibrated_windows_as_ranges(small, tmp_path):
    """The exported range covers both passes: it has the lower end of one and the upper end of the other."""
    passes = [
        replace(SHIFTED, mass_shift=None, precursor_tolerance=Tolerance(half, "ppm"), precursor_medians=medians)
        for half, medians in ((10.0, (-2.0, 1.5)), (11.0, (3.0, 3.0)))
    ]
    identified, _ = described(small, tmp_path, *passes)
    assert tolerance(identified) == {"plus": ("14", "parts per million"), "minus": ("12", "parts per million")}
    assert "within 10 ppm around an error of -2 to +1.5 ppm" in passes[0].sentence()
    assert passes_of_record({"passes": [json.loads(json.dumps(search_pass.record())) for search_pass in passes]}) == tuple(passes)


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
def test_requested_passes_reject_invalid_parameters(wrong):
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
def test_search_description_lists_each_database_file_once(recorded, expected):
    """Records have file names with only the folders that distinguish them; the project has the full paths."""
    search = SearchDescription(databases=("/data/a/x.fasta", "/data/b/y.fasta"), done=(replace(FIRST, databases=recorded),))
    assert search.database_files == expected


def test_run_without_record_has_no_search_passes(tmp_path):
    with Project.create_or_open(tmp_path / "p").run("identify", {**PARAMETERS, "second_pass": False}, [], version="1") as run:
        pass
    assert passes_of_run(Project.open(tmp_path / "p"), run.id) == ()

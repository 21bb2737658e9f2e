"""The command line in scripts: options, files, columns, exit codes."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import build_parser, main
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.searches import SEARCHES
from proteoscope.engine.version import VERSION
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.experiment_projects import project_with_experiment
from tests.engine.views.result_projects import PARAMETERS
from tests.searching import few_proteins

REPOSITORY = Path(__file__).resolve().parents[3]
SAMPLES = REPOSITORY / "resources" / "samples"
SPECTRA = SAMPLES / "BSA1.mzML.gz"
PSM_COLUMNS = [
    *("spectrum_file", "spectrum_id", "scan", "retention_time", "precursor_mz", "charge", "observed_mass", "calculated_mass"),
    *("mass_error_ppm", "isotope_error", "peptide", "sequence", "proteins", "missed_cleavages", "matched_ions", "total_ions"),
    *("spectral_dot_product", "hyperscore", "score", "delta_score", "q_value", "posterior_error_probability", "rank", "is_decoy"),
]
PEPTIDE_COLUMNS = ["peptide", "sequence", "proteins", "n_psms", "best_score", "q_value", "is_decoy"]
PROTEIN_COLUMNS = [
    *("group", "accessions", "description", "n_peptides", "n_unique_peptides", "n_psms", "coverage", "score", "q_value", "is_decoy"),
]
LEFT_OPEN = ("ignore:unclosed file.*psi-ms.obo:ResourceWarning", "ignore:.*psi-ms.obo:pytest.PytestUnraisableExceptionWarning")
"""If psims is installed, pyteomics reads the vocabulary with it, and psims does not close the file."""


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def command(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "proteoscope.engine.command_line", *arguments],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        **options,
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Write the proteins for searches of the sample run."""
    return few_proteins(tmp_path_factory.mktemp("database"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory, database):
    """Return the project of the sample run and the finished process."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "project"
    arguments = ["--database", str(database), "--preset", "low-resolution", "--out", str(folder), "--threads", "2"]
    done = command("identify", str(SPECTRA), *arguments)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_exported_tables_have_documented_columns_in_order(demo):
    folder, _ = demo
    for name, columns in (("psms", PSM_COLUMNS), ("peptides", PEPTIDE_COLUMNS), ("proteins", PROTEIN_COLUMNS)):
        header = (folder / "exports" / f"{name}.tsv").read_text(encoding="utf-8").split("\n", 1)[0].split("\t")
        assert header[: len(columns)] == columns
        assert len(set(header)) == len(header)


def test_exported_table_cells_have_values_of_the_column_type(demo):
    folder, _ = demo
    psms = table(folder / "exports" / "psms.tsv")
    assert psms
    for row in psms:
        assert row["spectrum_file"] == SPECTRA.name
        assert row["is_decoy"] in ("true", "false")
        assert int(row["rank"]) == 1
        assert 0 <= int(row["matched_ions"]) <= int(row["total_ions"])
        assert 0 <= float(row["q_value"]) <= 1
        assert 0 <= float(row["posterior_error_probability"]) <= 1
        assert int(row["scan"]) == int(re.fullmatch(r"spectrum=(\d+)", row["spectrum_id"])[1])
        assert float(row["retention_time"]) > 0
        for accession in row["proteins"].split(";"):
            assert accession.startswith("DECOY_") == (row["is_decoy"] == "true")


def test_run_json_records_parameters_counts_and_costs(demo, database):
    folder, done = demo
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert run["version"] == VERSION
    assert run["device"] == "cpu"
    assert set(run["parameters"]) == set(IdentificationParameters.model_fields)
    assert run["parameters"]["fragment_tolerance"] == "0.5 Da"
    assert [Path(record["path"]).name for record in run["inputs"]] == [SPECTRA.name, database.name]
    steps = {name: step for name, step in run["steps"].items() if name != "compile"}  # only the first run on a machine has this step
    assert list(steps) == ["read", "index", "plan", "score", "report", "advice"]
    for step in steps.values():
        assert step["seconds"] >= 0
        assert 10 < step["peak_memory_mb"] < 4000
    accepted = {
        name: [row for row in table(folder / "exports" / f"{name}.tsv") if row["is_decoy"] == "false" and float(row["q_value"]) <= 0.01]
        for name in ("psms", "peptides", "proteins")
    }
    for name, rows in accepted.items():
        assert run["counts"][name] == run["certainty"][name]["targets"] == len(rows)
    assert run["counts"]["sequences"] == len({row["sequence"] for row in accepted["peptides"]})
    assert run["counts"]["spectra"] == 1120
    assert f"{run['counts']['psms']:,} PSMs, with {run['certainty']['psms']['decoys']} decoys" in done.stdout
    assert f"{run['counts']['peptides']:,} peptides ({run['counts']['sequences']:,} sequences), with" in done.stdout


def test_demo_identifies_the_sample_protein(demo):
    folder, done = demo
    groups = [row for row in table(folder / "exports" / "proteins.tsv") if row["is_decoy"] == "false" and float(row["q_value"]) <= 0.01]
    assert any("ALBU_BOVIN" in row["group"] for row in groups)
    assert "ALBU_BOVIN" in done.stdout
    assert str(folder) in done.stdout
    assert "Scoring spectra" in done.stderr


def test_quiet_prints_nothing_and_json_prints_the_summary(demo, database, capsys):
    folder, _ = demo
    arguments = ["identify", str(SPECTRA), "--database", str(database), "--out", str(folder), "--preset", "low-resolution"]
    before = {path.name: path.read_bytes() for path in (folder / "exports").iterdir()}
    assert main([*arguments, "--quiet", "--threads", "1"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    # The tables are byte-identical for one thread and two.
    assert {path.name: path.read_bytes() for path in (folder / "exports").iterdir()} == before
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    summary, run = json.loads(captured.out), json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert captured.err == ""
    assert summary["run_id"] == run["run"] == "identify-0003"
    assert summary["folder"] == str(folder)
    assert {name.removeprefix("n_"): value for name, value in summary.items() if name.startswith("n_")} == run["counts"]
    assert not (folder / "index").exists()


def test_exported_tables_have_all_columns_of_the_search(demo, tmp_path):
    """Exporting the stored tables again gives the same files; reading omits columns that have no description."""
    folder, _ = demo
    assert main(["export", str(folder), "--format", "tsv", "--out", str(tmp_path / "again"), "--run", "identify-0001"]) == 0
    for path in (folder / "exports").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def localised(tmp_path_factory, database):
    """Search in a quiet process with names in other scripts, relative paths and another locale; return the project and the process."""
    folder = tmp_path_factory.mktemp("localised") / "große Läufe 蛋白"
    folder.mkdir()
    (folder / "BSA é.mzML.gz").symlink_to(SPECTRA)
    (folder / "die Proteine.fasta").symlink_to(database)
    done = command(
        "identify",
        "BSA é.mzML.gz",
        "--database",
        "die Proteine.fasta",
        "--out",
        "ein Projekt ü",
        "--preset",
        "low-resolution",
        "--quiet",
        cwd=folder,
        env={"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "PYTHONIOENCODING": "ascii"},
    )
    return folder / "ein Projekt ü", done


def test_tables_are_identical_in_another_locale(demo, localised):
    folder, _ = demo
    project, done = localised
    assert done.returncode == 0, done.stderr
    for name in ("psms", "peptides", "proteins"):
        theirs = (folder / "exports" / f"{name}.tsv").read_text(encoding="utf-8")
        ours = (project / "exports" / f"{name}.tsv").read_text(encoding="utf-8")
        assert ours == theirs.replace(SPECTRA.name, "BSA é.mzML.gz")


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_exports_are_read_by_other_programs(demo, tmp_path, capsys):
    from pyteomics import mzid, pepxml

    folder, _ = demo
    psms = table(folder / "exports" / "psms.tsv")
    out = {name: tmp_path / "new folder" / f"out.{name}" for name in ("mzid", "pepxml", "pin")}
    out["tsv"] = tmp_path / "new folder" / "tables"
    for name, path in out.items():
        assert main(["export", str(folder), "--format", name, "--out", str(path)]) == 0
        assert str(path) in capsys.readouterr().out
    for name in ("psms", "peptides", "proteins"):
        assert (out["tsv"] / f"{name}.tsv").read_bytes() == (folder / "exports" / f"{name}.tsv").read_bytes()
    expected = sorted((row["spectrum_id"], row["sequence"], int(row["charge"])) for row in psms)
    with mzid.read(str(out["mzid"])) as file:
        read = [
            (spectrum["spectrumID"], item["PeptideSequence"], item["chargeState"])
            for spectrum in file
            for item in spectrum["SpectrumIdentificationItem"]
        ]
    assert sorted(read) == expected
    with pepxml.read(str(out["pepxml"])) as file:
        read = [(hit["peptide"], spectrum["assumed_charge"]) for spectrum in file for hit in spectrum["search_hit"]]
    assert sorted(read) == sorted((sequence, charge) for _, sequence, charge in expected)
    with out["pin"].open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert [name.lower() for name in header[:3]] == ["specid", "label", "scannr"]
    assert sum(row[1] == "-1" for row in rows) == sum(row["is_decoy"] == "true" for row in psms)


def test_export_rejects_an_unknown_run(demo, tmp_path, capsys):
    folder, _ = demo
    assert main(["export", str(folder), "--format", "pin", "--out", str(tmp_path / "a.pin"), "--run", "identify-0099"]) == 2
    assert "no finished identification or search for modified peptides or import of results 'identify-0099'" in capsys.readouterr().err
    assert not (tmp_path / "a.pin").exists()


@pytest.mark.parametrize("format", ["pin", "mzid", "tsv"])
def test_export_does_not_overwrite_files_of_the_project(demo, tmp_path, capsys, format):
    folder = tmp_path / "copy"
    shutil.copytree(demo[0], folder)
    needed = [folder / "results"] if format == "tsv" else [folder / "project.sqlite", *folder.glob("results/*/psms.parquet"), SPECTRA]
    paths = [path for path in [SPECTRA, *folder.rglob("*")] if path.is_file() and path.name != "project.lock"]
    before = [path.read_bytes() for path in paths]
    for path in needed:
        assert main(["export", str(folder), "--format", format, "--out", str(path)]) == 2
        assert "choose another name" in capsys.readouterr().err
    assert before == [path.read_bytes() for path in paths]


def test_presets_parameters_and_devices_print_text_or_json(capsys):
    assert main(["presets"]) == 0
    presets = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in presets} >= {"high-resolution", "low-resolution", "ion-trap", "maldi-tof-tof", "phospho", "tmt"}
    assert main(["parameters", "identify", "--preset", "tmt", "--json"]) == 0
    described = {load["name"]: load for load in json.loads(capsys.readouterr().out)}
    assert list(described) == list(IdentificationParameters.model_fields)
    assert described["fixed_modifications"]["value"] == ["Carbamidomethyl (C)", "TMT6plex (K)", "TMT6plex (N-term)"]
    assert described["missed_cleavages"]["maximum"] == 10
    assert main(["parameters", "identify"]) == 0
    text = capsys.readouterr().out
    for name, parameter in described.items():
        assert f"  {name} = " in text
        assert parameter["help"] in text
    assert main(["devices", "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)
    assert devices[0]["name"] == "cpu"
    assert devices[0]["usable"]
    assert main(["devices"]) == 0
    assert "cpu" in capsys.readouterr().out


def test_help_and_version_are_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"proteoscope {VERSION}\n"
    assert main([]) == 0
    assert "identify" in capsys.readouterr().out
    assert main(["identify", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--database", "--out", "--preset", "--set", "--device", "--threads", "--strict", "--quiet", "--json"):
        assert option in text


def test_command_line_builds_only_the_parser_of_the_command(monkeypatch):
    """Building all parsers takes longer than a short command."""
    made = []
    monkeypatch.setattr("proteoscope.engine.command_line.main.add_search", lambda commands, search, explains: made.append(search.kind))
    build_parser(["parameters", "identify"])
    assert made == []
    build_parser(["align", "queries.fasta"])
    assert made == ["align"]
    build_parser(["--help"])
    assert made[1:] == [search.kind for search in SEARCHES]


def one_spectrum(folder):
    """Write a file with a spectrum of regularly spaced peaks."""
    path = folder / "a.mgf"
    peaks = "".join(f"{150 + 37 * i}.25 {i + 1}\n" for i in range(20))
    path.write_text(f"BEGIN IONS\nPEPMASS=487.73\nCHARGE=2+\n{peaks}END IONS\n", encoding="utf-8")
    return path


def one_protein(folder):
    path = folder / "small.fasta"
    path.write_text(">A\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFK\n", encoding="utf-8")
    return path


def test_settings_override_a_custom_preset(tmp_path, capsys):
    (tmp_path / "mine.toml").write_text('description = "Mine"\n[parameters]\nmissed_cleavages = 1\nfdr = 0.05\n', encoding="utf-8")
    arguments = [
        "identify",
        str(one_spectrum(tmp_path)),
        "--database",
        str(one_protein(tmp_path)),
        "--out",
        str(tmp_path / "out"),
        "--quiet",
    ]
    assert main([*arguments, "--preset", str(tmp_path / "mine.toml"), "--set", "fdr=0.02", "--set", "enzyme=Lys-C"]) == 0
    parameters = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["parameters"]
    assert (parameters["missed_cleavages"], parameters["fdr"], parameters["enzyme"]) == (1, 0.02, "Lys-C")
    assert capsys.readouterr().err == ""


def test_closed_output_stream_is_not_an_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "proteoscope.engine.command_line", "parameters", "identify"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (0, b"")


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the output")
def test_missing_output_stream_is_not_an_error():
    script = f"exec {sys.executable} -m proteoscope.engine.command_line presets >&-"
    done = subprocess.run(["sh", "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_no_computing_modules():
    """Help does not wait for libraries that compute."""
    script = (
        "import sys; from proteoscope.engine.command_line.main import main; main(['presets']); main(['identify', '--help']);"
        "print([name for name in ('numba', 'numpy', 'pyarrow', 'duckdb', 'scipy', 'pyteomics', 'PySide6') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.skipif(os.name != "posix", reason="this system has no named pipes")
def test_out_option_rejects_a_device_or_pipe(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    query = tmp_path / "query.fasta"
    query.write_text(">one\nACDEFGHIKL\n")
    for out in (pipe, link):
        assert main(["align", str(query), str(query), "--out", str(out), "--quiet"]) == 2
        captured = capsys.readouterr().err
        assert "a device or a pipe" in captured and captured.count("\n") == 1
    assert pipe.is_fifo() and link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "query.fasta"]


def test_successful_command_prints_nothing_when_it_ends(localised):
    """DuckDB counts its remaining objects when Python ends, and its binding would print leaks."""
    _, done = localised
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(os.name != "posix", reason="links need a permission on other systems")
def test_out_option_writes_to_the_target_of_a_symbolic_link(tmp_path):
    query, link = tmp_path / "query.fasta", tmp_path / "link"
    query.write_text(">one\nACDEFGHIKL\n")
    (tmp_path / "there").mkdir()
    link.symlink_to(tmp_path / "there" / "hits.tsv")
    for _ in range(2):
        assert main(["align", str(query), str(query), "--out", str(link), "--quiet"]) == 0
        assert link.is_symlink() and link.read_text().startswith("query\tsubject")
        assert [path.name for path in (tmp_path / "there").iterdir()] == ["hits.tsv"]


def test_control_c_at_start_is_reported_in_one_line(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("proteoscope.engine.command_line.main.build_parser", interrupted)
    assert main(["presets"]) == 130
    assert capsys.readouterr().err == "proteoscope: interrupted; finished results are untouched\n"


def test_cache_command_lists_and_clears_indexes(demo, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "a cache"
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(folder))
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == f"0 indexes, 0.0 MB, stored: {folder}\n"
    odd = tmp_path / "odd \x1b[31mname.fasta"
    odd.write_text(">a\nPEPTIDEKAAAAAAKLLLLLLK\n")
    proteins = one_protein(tmp_path)
    arguments = ["identify", str(one_spectrum(tmp_path)), "--database", str(proteins), "--out", str(tmp_path / "p")]
    assert main([*arguments, "--preset", "low-resolution", "--quiet"]) == 0
    assert main(["align", str(odd), str(odd), "--out", str(tmp_path / "hits.tsv"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["cache", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["folder"] == str(folder)
    by_kind = {entry["kind"]: entry for entry in listed["kept"]}
    assert set(by_kind) == {"peptides", "sequences"}
    for entry in by_kind.values():
        assert entry["bytes"] == sum(path.stat().st_size for path in Path(entry["path"]).iterdir())
    assert by_kind["peptides"]["made_from"] == f"{proteins.name}, Trypsin, decoys reverse"
    assert main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "odd \\x1b[31mname.fasta" in "".join(lines) and lines[-1].startswith("2 indexes, ")
    assert main(["cache", "--clear", "sequences"]) == 0
    assert [path.name.partition("-")[0] for path in (folder / "indexes").iterdir()] == ["peptides"]
    assert main(["cache", "--clear"]) == 0
    assert "1 index, " in capsys.readouterr().out and list((folder / "indexes").iterdir()) == []
    assert main(["cache", "--clear", "everything"]) == 2
    assert main(["cache", "--clear", "structures"]) == 0, "a type without cached indexes"


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Write a project with two runs on the same spectra."""
    project, _ = project_with_runs(tmp_path_factory.mktemp("compared") / "project", n_runs=2, n_spectra=60)
    return project.folder


def test_compare_writes_tables_and_figures(two_runs, tmp_path, capsys):
    assert main(["compare", str(two_runs), "--out", str(tmp_path / "out"), "--mirrors", "1"]) == 0
    output = capsys.readouterr().out
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"runs.tsv", "overlaps.tsv", "counts.tsv", "psms.tsv", "overlap-psms.svg", "scores-A-B.svg", "mirror-1.svg"} <= written
    assert [row["run"] for row in table(tmp_path / "out" / "runs.tsv")] == ["identify-0001", "identify-0002"]
    assert f"{len(written)} files" in output and "at 1 % FDR" in output
    assert "No parameters differ" in output and table(tmp_path / "out" / "parameters.tsv") == []


def test_compare_names_parameters_that_differ(tmp_path, capsys):
    names = ("a_1", "b_1")
    project, _ = project_with_experiment(tmp_path / "project", names, 2, last_parameters={**PARAMETERS, "fdr": 0.05})
    assert main(["compare", str(project.folder), "--out", str(tmp_path / "out"), "--mirrors", "0"]) == 0
    assert "Parameters that differ:\n  False discovery rate: A 0.01, B 0.05\n" in capsys.readouterr().out
    (row,) = table(tmp_path / "out" / "parameters.tsv")
    assert row == {"parameter": "fdr", "title": "False discovery rate", "A": "0.01", "B": "0.05"}


def test_compare_json_equals_its_tables(two_runs, tmp_path, capsys):
    chosen = ["--run", "identify-0002", "--run", "identify-0001", "--threshold", "0.05"]
    assert main(["compare", str(two_runs), *chosen, "--out", str(tmp_path / "out"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [report["runs"][label]["run"] for label in "AB"] == ["identify-0002", "identify-0001"]
    rows = [[row["level"], row["runs"], int(row["count"])] for row in table(tmp_path / "out" / "overlaps.tsv")]
    assert rows == [
        [level, " & ".join(overlap["runs"]), overlap["count"]] for level, overlaps in report["overlaps"].items() for overlap in overlaps
    ]
    assert all(Path(path).is_file() for path in report["files"])


def test_compare_accepts_same_run_id_in_two_projects(two_runs, tmp_path, capsys):
    shutil.copytree(two_runs, tmp_path / "copy")
    arguments = ["compare", str(two_runs), str(tmp_path / "copy"), "--run", "identify-0001", "--out", str(tmp_path / "out"), "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert [run["project"] for run in report["runs"].values()] == [str(two_runs), str(tmp_path / "copy")]
    assert all(overlap["runs"] == ["A", "B"] for overlaps in report["overlaps"].values() for overlap in overlaps)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--threshold", "2"], "--threshold is 2; expected a q-value from 0 to 1"),
        (["--mirrors", "-1"], "--mirrors is -1; expected 0 to 10,000"),
        (["--mirrors", str(10**400)], f"--mirrors is 1{23 * '0'}; expected 0 to 10,000"),
        (["--run", "identify-0001"], "1 run is given; from 2 to 12 can be compared"),
        (["--run", "identify-0001", "--run", "identify-0009"], "there is no finished run 'identify-0009'"),
        (["--run", "identify-0001", "--run", "identify-0001"], "run 'identify-0001' is given twice"),
    ],
)
def test_compare_rejects_invalid_requests(two_runs, tmp_path, capsys, arguments, reason):
    assert main(["compare", str(two_runs), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_compare_rejects_output_in_results_folder_of_a_project(two_runs, capsys):
    assert main(["compare", str(two_runs), "--out", str(two_runs / "results" / "identify-0001")]) == 2
    assert "belongs to the project" in capsys.readouterr().err


def test_mass_shift_option_accepts_range_with_negative_start(tmp_path, capsys):
    arguments = ["modified", str(tmp_path / "no.mgf"), "--database", str(tmp_path / "no.fasta"), "--out", str(tmp_path / "p")]
    assert main([*arguments, "--mass-shift", "-150..500"]) == 2
    assert "no.mgf: does not exist" in capsys.readouterr().err
    assert main([*arguments, "--mass-shift", "-150..x"]) == 2
    assert "mass_shift = '-150..x'" in capsys.readouterr().err

"""No command writes into the folders of a project or over its inputs; the error has the path and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.project.outputs import folder_name

SAMPLES = resources.path("samples")
QUERIES, SPECTRA, PROTEINS = (str(SAMPLES / name) for name in ("protein_queries.fasta", "BSA1.mzML.gz", "albumin_proteins.fasta.gz"))
DOMAIN, COMET = (str(SAMPLES / name) for name in ("albumin_domain_3.pdb.gz", "BSA1_comet.pep.xml.gz"))
GENOME, READS = (str(SAMPLES / name) for name in ("lambda_phage.fasta.gz", "lambda_reads.fastq.gz"))
CPU = ("--device", "cpu", "--threads", "1")

COMMANDS: dict[str, tuple[str, ...]] = {
    "align": ("align", QUERIES, QUERIES, *CPU, "--out", "OUT"),
    "align scores": ("align", QUERIES, QUERIES, *CPU, "--out", "hits.tsv", "--all-scores", "OUT"),
    "structures": ("structures", DOMAIN, "--database", DOMAIN, *CPU, "--out", "OUT"),
    "superposed hits": ("structures", DOMAIN, "--database", DOMAIN, *CPU, "--out", "hits.tsv", "--superpose", "OUT"),
    "complexes": ("structures", DOMAIN, "--database", DOMAIN, *CPU, "--out", "hits.tsv", "--complexes", "OUT"),
    "fold clusters": ("structures", "--all", "--database", DOMAIN, *CPU, "--out", "hits.tsv", "--clusters", "OUT"),
    "reads": ("reads", GENOME, READS, *CPU, "--out", "OUT"),
    "identify": ("identify", SPECTRA, "--database", PROTEINS, *CPU, "--out", "OUT"),
    "cluster": ("cluster", SPECTRA, *CPU, "--out", "OUT"),
    "consensus": ("cluster", SPECTRA, *CPU, "--out", "clusters", "--consensus", "OUT"),
    "explain": ("explain", "PROJECT", "--preset", "low-resolution", *CPU, "--out", "OUT"),
    "quantify": ("quantify", "PROJECT", "--preset", "counts", *CPU, "--out", "OUT"),
    "quantities": ("quantify", "PROJECT", "--preset", "counts", *CPU, "--report", "OUT"),
    "evidence": ("evidence", "PROJECT", "--structures", DOMAIN, *CPU, "--out", "OUT"),
    "evidence pages": ("evidence", "PROJECT", "--structures", DOMAIN, *CPU, "--report", "OUT"),
    "predict": ("predict", PROTEINS, "--format", "msp", "--out", "OUT"),
    "superpose": ("superpose", DOMAIN, DOMAIN, "--out", "OUT"),
    "structure-database": ("structure-database", "build", DOMAIN, "--out", "OUT"),
    "export": ("export", "PROJECT", "--format", "tsv", "--out", "OUT"),
    "convert": ("convert", SPECTRA, "--format", "mgf", "--out", "OUT"),
    "report": ("report", "PROJECT", "--out", "OUT"),
    "compare": ("compare", "PROJECT", "PROJECT", "--out", "OUT"),
    "cost-model": ("cost-model", "report", "--device", "cpu", "--out", "OUT"),
    "samples": ("samples", "OUT"),
    "certificates": ("workers", "certificates", "--out", "OUT"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project") / "p"
    assert main(["import", COMET, "--spectra", SPECTRA, "--preset", "low-resolution", *CPU, "--out", str(folder), "--quiet"]) == 0
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the bytes of all files; opening a project may write the files of SQLite's log."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "sqlite" not in path.name}


def places(project: Path) -> Iterator[Path]:
    yield from (project / "exports", project / "exports" / "mine", project / "results" / "import-0001" / "mine", project / "project.sqlite")


@pytest.mark.parametrize("name", COMMANDS)
def test_output_file_inside_a_project_folder_is_rejected(
    name: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(project)
    for place in places(project):
        arguments = [{"OUT": str(place), "PROJECT": str(project)}.get(argument, argument) for argument in COMMANDS[name]]
        assert main([*arguments, "--quiet"]) == 2, place
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and str(place) in error, error
        assert re.search("(choose|Choose|Name) another|Choose an empty or new folder", error), error
    assert contents(project) == before and not list(tmp_path.iterdir())


def test_folder_of_a_project_is_rejected_as_an_output_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["align", QUERIES, QUERIES, *CPU, "--out", str(project), "--quiet"]) == 2
    assert f"{project} is the folder of a project; choose another name for the results" in capsys.readouterr().err


def test_output_file_must_not_overwrite_the_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text("gap_open = 9\n")
    assert main(["align", QUERIES, QUERIES, *CPU, "--preset", str(preset), "--out", str(preset), "--quiet"]) == 2
    assert f"{preset} is read and would be overwritten; choose another name" in capsys.readouterr().err
    assert preset.read_text() == "gap_open = 9\n"


def test_superposition_does_not_overwrite_its_input_structures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    structure = tmp_path / "query.cif"
    assert main(["superpose", DOMAIN, DOMAIN, "--out", str(tmp_path), "--quiet"]) == 0
    before = structure.read_bytes()
    assert main(["superpose", str(structure), DOMAIN, "--out", str(tmp_path), "--quiet"]) == 2
    assert f"{structure} is read and would be overwritten; choose another name" in capsys.readouterr().err
    assert structure.read_bytes() == before


@pytest.mark.parametrize(
    "command",
    ["identify", "cluster", "superposed hits", "evidence pages", "superpose", "structure-database", "report"],
)
@pytest.mark.parametrize(
    ("name", "output"), [("results.TSV", "results.TSV looks like a file"), ("-", "which cannot go to standard output")]
)
def test_output_folder_is_rejected_if_named_like_a_file(command: str, name: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name if part == "OUT" else part for part in COMMANDS[command]]) == 2
    assert output in capsys.readouterr().err


def test_existing_output_folder_may_be_named_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "run.raw.gz").mkdir()
    assert folder_name(str(tmp_path / "run.raw.gz")) and folder_name("version 1.2") == "version 1.2"


def test_export_of_several_files_requires_a_folder(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(project), "--format", "tsv", "--out", str(tmp_path / "all.tsv")]) == 2
    assert "all.tsv looks like a file" in capsys.readouterr().err and not list(tmp_path.glob("all*"))


@pytest.mark.parametrize("ending", [".xlsx", ".XLS", ".ods"])
def test_table_output_is_rejected_if_named_like_a_workbook(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["align", QUERIES, QUERIES, *CPU, "--out", str(tmp_path / f"hits{ending}")]) == 2
    assert f"{ending.lower()} files cannot be written; choose a name that ends in .tsv" in capsys.readouterr().err

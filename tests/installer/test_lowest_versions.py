"""The lowest versions of the dependencies that pyproject.toml allows: each search, export and sub-command runs with them.

The commands to run are taken from the list of searches and from the command line; a new sub-command without a line in `COMMANDS` is an
error of the quick test. Then tests of the program run with these versions, which compare the results with the manual.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import command_parsers
from proteoscope.engine.entry import Search
from proteoscope.engine.project import Project
from proteoscope.engine.searches import SEARCHES
from tests.conftest import REPOSITORY
from tests.searching import few_proteins

SAMPLES = REPOSITORY / "resources" / "samples"
EXTRAS = ("gui", "workers", "bam", "vendor", "notebook")
TOOLS = ("pytest", "hypothesis", "psims")  # needed by the tests that run with the lowest versions
TESTS = (
    "tests/test_worked_examples.py",
    "tests/test_from_python.py",
    "tests/engine/formats",
    "tests/engine/imported",
    "tests/engine/quantification",
    "tests/engine/results",
    "tests/engine/structures",
)
TRACKS = ("gff3", "bed")  # an identification has them if its database is of nucleotides
QUERY = "1AO6_A"  # of the sample; some formats hold the hits of one query
DESIGN = "file\tsample\tcondition\treplicate\nBSA1.mzML.gz\tone\talbumin\t1\n"
CODONS = dict(zip("ACDEFGHIKLMNPQRSTVWY", re.findall("...", "GCTTGTGATGAATTTGGTCATATTAAACTGATGAATCCGCAGCGTTCTACCGTGTGGTAT"), strict=True))
_SECONDS = 1800

IDENTIFY = (
    "identify SAMPLES/BSA1.mzML.gz --database SAMPLES/18Protein_SoCe_Tr_detergents_trace.fasta.gz --preset low-resolution --device cpu"
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "superpose": ("superpose SAMPLES/albumin_domain_3.pdb.gz SAMPLES/1ao6_A.pdb.gz --out PLACE/superposed",),
    "structure-database": (
        "structure-database build SAMPLES/folds.pdb.gz --out PLACE/chains",
        "structure-database add SAMPLES/1ao6_A.pdb.gz --out PLACE/chains",
        "structure-database remove 1ao6_A --out PLACE/chains",
    ),
    "predict": tuple(
        f"predict SAMPLES/protein_queries.fasta --out PLACE/predicted.{ending}" for ending in ("msp", "mzspeclib.txt", "blib")
    ),
    "presets": ("presets quantify",),
    "parameters": ("parameters identify --json",),
    "devices": ("devices --calibrate --json",),
    "estimate": (f"estimate {IDENTIFY} --out PLACE/estimated",),
    "cost-model": ("cost-model report --device cpu --out PLACE/cost_model.html --quiet",),
    "experiment": ("experiment create PLACE/experiment SAMPLES/BSA1.mzML.gz SAMPLES/BSA2.mzML.gz",),
    "runs": ("runs PROJECT --json",),
    "resume": ("resume PLACE/stopped --device cpu",),
    "convert": tuple(f"convert SAMPLES/BSA1.mzML.gz --out PLACE/converted.{ending}" for ending in ("mzML", "mgf", "ms2")),
    "compare": ("compare PROJECT --out PLACE/compared",),
    "report": ("report PROJECT --out PLACE/report",),
    "cache": ("cache --json",),
    "compile": ("compile --processes 2",),
    "samples": ("samples PLACE/samples",),
    "workers": ("workers certificates --out PLACE/certificates", f"{IDENTIFY} --workers local:2 --out PLACE/workers"),
    # Its sample has no pages.
    "evidence": ("evidence PROJECT --structures SAMPLES/1ao6_A.pdb.gz --report PLACE/evidence_pages --device cpu",),
}
"""Command lines by sub-command.

SAMPLES is the folder of the samples, PROJECT a project with a run of each search, and PLACE a folder for output, in which `stopped` is a
project with a run that can be resumed.
"""

needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="uv, which installs the lowest versions, is missing")
STOP = """
import sys
from pathlib import Path
from tests.fuzz.keeping_command import keep_at_once
from tests.stopped_runs import stop_a_search
keep_at_once()
stop_a_search(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def run(*command: str | Path, **environment: str) -> str:
    """Run a command in the repository and return its output."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=_SECONDS,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert not re.search("Traceback|Warning:", done.stderr), done.stderr
    return done.stdout


def stated_bounds() -> dict[str, str]:
    """Return the lowest version of each dependency that has one, by its name, including extras and tools."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    stated = [*project["dependencies"], *(requirement for extra in EXTRAS for requirement in optional[extra])]
    stated += [requirement for requirement in optional["dev"] if re.split("[>=]", requirement)[0] in TOOLS]
    matches = (re.match(r"([\w-]+)>=([\w.]+)", requirement) for requirement in stated)
    return {match[1].lower(): match[2] for match in matches if match}


def finished_runs(project: Path, kind: str) -> list[str]:
    """Return the ids of the finished runs of a search in a project."""
    return [run.id for run in Project.open(project).runs() if run.kind == kind and run.status == "done"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Environment with the program and the lowest versions of its dependencies."""
    python = tmp_path_factory.mktemp("lowest") / "bin" / "python"
    run("uv", "venv", "--clear", python.parents[1], "-p", "3.11")
    tools = [f"{name}>={stated_bounds()[name]}" for name in TOOLS]
    run("uv", "pip", "install", "-p", python, "--resolution", "lowest-direct", f"{REPOSITORY}[{','.join(EXTRAS)}]", *tools)
    return python.with_name("proteoscope")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a user who has never run the program."""
    folder = tmp_path_factory.mktemp("home")
    return {"HOME": str(folder), "PROTEOSCOPE_CACHE": str(folder / "cache"), "PYTHONPATH": ""}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for output."""
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def bench(program: Path, home: dict[str, str], place: Path) -> Path:
    """A project with a run of each search on its sample, and last a quantification of traces with a design, which MSstats needs."""
    project = place / "bench"
    for search in SEARCHES:
        run(program, "demo", search.kind, "--out", project, "--device", "cpu", "--threads", "2", **home)
    (place / "design.tsv").write_text(DESIGN)
    options = ("--preset", "label-free", "--design", place / "design.tsv", "--report", place / "quantity_pages")
    run(program, "quantify", project, "--run", finished_runs(project, "identify")[-1], *options, **home)
    return project


@pytest.fixture(scope="module")
def translated(program: Path, home: dict[str, str], place: Path) -> Path:
    """A project with runs in a nucleotide database, with peptides that have tracks."""
    genes = []
    for entry in few_proteins(place).read_text().split(">")[1:]:
        name, _, residues = entry.partition("\n")
        genes.append(f">{name.split()[0]}\nATG{''.join(CODONS.get(residue, 'NNN') for residue in residues if residue.isalpha())}TAA\n")
    (place / "genes.fasta").write_text("".join(genes))
    options = ("--preset", "low-resolution", "--device", "cpu", "--out", place / "translated")
    search = ("identify", SAMPLES / "BSA1.mzML.gz", "--database", place / "genes.fasta", "--set", "translation=six-frame")
    run(program, *search, *options, **home)
    run(program, "modified", "--from-project", place / "translated", *options, **home)
    return place / "translated"


def test_list_of_tested_commands_contains_every_sub_command() -> None:
    assert all(search.demo is not None for search in SEARCHES)
    assert {*COMMANDS, *(search.kind for search in SEARCHES), "demo", "export"} == set(command_parsers())
    for name, lines in COMMANDS.items():
        assert any(name in line.split() for line in lines)


@needs_uv
@pytest.mark.long
def test_lowest_installed_versions_equal_the_bounds_in_pyproject(program: Path) -> None:
    frozen = run("uv", "pip", "freeze", "-p", program.with_name("python")).lower().splitlines()
    installed = dict(line.split("==") for line in frozen if "==" in line)
    for name, bound in stated_bounds().items():
        assert f"{installed[name]}.0.0".startswith(f"{bound}."), f"{name}: {bound} is stated, and {installed[name]} is the lowest"


@needs_uv
@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_search_exports_each_format_with_the_lowest_versions(
    program: Path, home: dict[str, str], bench: Path, translated: Path, tmp_path: Path, search: Search
) -> None:
    for export in search.exports:
        if export.name in ("perseus", "msstats-ptm"):
            continue  # the samples have no localised modifications
        out = tmp_path / (export.name + (export.endings[0] if export.endings else ""))
        project = translated if export.name in TRACKS and finished_runs(translated, search.kind) else bench
        options: tuple[str | Path, ...] = ("--structures", SAMPLES / "1ao6_A.pdb.gz") if export.structure_folders is not None else ()
        options += ("--query", QUERY) if export.has_queries else ()
        run(
            program,
            "export",
            project,
            "--run",
            finished_runs(project, search.kind)[-1],
            "--format",
            export.name,
            "--out",
            out,
            *options,
            **home,
        )
        written = [path for path in out.rglob("*") if path.is_file()] if export.is_folder else [out]
        assert written and all(path.stat().st_size for path in written), export.name
    run(program, "report", bench, "--run", finished_runs(bench, search.kind)[-1], "--out", tmp_path / "report", **home)


@needs_uv
@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_command_runs_with_the_lowest_versions(program: Path, home: dict[str, str], bench: Path, place: Path, name: str) -> None:
    if name == "resume":
        run(program.with_name("python"), "-c", STOP, place / "stopped", place, **home)
    folders = {"SAMPLES": SAMPLES, "PROJECT": bench, "PLACE": place}
    for line in COMMANDS[name]:
        words = [re.sub("|".join(folders), lambda match: str(folders[match[0]]), word) for word in line.split()]
        run(program, *words, **home)


@needs_uv
@pytest.mark.long
@pytest.mark.parametrize("tests", TESTS)
def test_selected_tests_pass_with_the_lowest_versions(program: Path, home: dict[str, str], tests: str) -> None:
    command = (
        program.with_name("python"),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        REPOSITORY,
        tests,
    )
    run(*command, **home)

"""Every command prints JSON that the shipped schema describes, or nothing, and its progress as JSON lines."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from proteoscope import resources
from proteoscope.engine.command_line.main import command_parsers, main
from proteoscope.engine.execution.cluster.launchers import open_cluster
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.searches import SEARCHES
from proteoscope.kernels.cpu import signatures
from tests.engine.execution.cluster.processes import end, program, wait_for
from tests.engine.views.compared_projects import project_with_runs
from tests.output_schema import SCHEMA, check_output
from tests.stopped_runs import keep_at_once, stop_a_search

SAMPLES = resources.path("samples")
QUERIES, SPECTRA, PROTEINS = (str(SAMPLES / name) for name in ("protein_queries.fasta", "BSA1.mzML.gz", "albumin_proteins.fasta.gz"))
DOMAIN, CHAIN = (str(SAMPLES / name) for name in ("albumin_domain_3.pdb.gz", "1ao6_A.pdb.gz"))
COMET, LIBRARY = (str(SAMPLES / name) for name in ("BSA1_comet.pep.xml.gz", "bsa_library.msp.gz"))
GENOME, READS = (str(SAMPLES / name) for name in ("lambda_phage.fasta.gz", "lambda_reads.fastq.gz"))
CPU = ("--device", "cpu", "--threads", "2")
ION_TRAP = ("--preset", "low-resolution", *CPU)

COMMANDS = {
    "align": ("align", QUERIES, QUERIES, *CPU, "--out", "hits.tsv"),
    "identify": ("identify", SPECTRA, "--database", PROTEINS, "--advice", "none", *ION_TRAP, "--out", "project"),
    "import": ("import", COMET, "--spectra", SPECTRA, *ION_TRAP, "--out", "project"),
    "modified": ("modified", SPECTRA, "--database", PROTEINS, "--mass-shift", "-2..20", *ION_TRAP, "--out", "project"),
    "library": ("library", SPECTRA, "--library", LIBRARY, *ION_TRAP, "--out", "project"),
    "cluster": ("cluster", SPECTRA, *ION_TRAP, "--out", "project"),
    "explain": ("explain", "IDENTIFIED", *ION_TRAP),
    "quantify": ("quantify", "IDENTIFIED", "--preset", "counts", *CPU),
    "evidence": ("evidence", "IDENTIFIED", "--structures", CHAIN, *CPU),
    "structures": ("structures", DOMAIN, "--database", CHAIN, *CPU, "--out", "hits.tsv"),
    "reads": ("reads", GENOME, READS, *CPU, "--out", "reads.sam"),
    "resume": ("resume", "STOPPED", *CPU),
    "cost-model": ("cost-model", "report", "--device", "cpu", "--out", "page.html"),
    "demo": ("demo", "align", *CPU, "--out", "demo"),
    "predict": ("predict", QUERIES, "--out", "library.msp"),
    "superpose": ("superpose", DOMAIN, CHAIN, "--out", "superposed"),
    "structure-database": ("structure-database", "build", DOMAIN, "--out", "database"),
    "presets": ("presets", "identify"),
    "parameters": ("parameters", "identify", "--preset", "tmt"),
    "devices": ("devices",),
    "estimate": ("estimate", "align", QUERIES, QUERIES, "--device", "cpu", "--out", "hits.tsv"),
    "experiment create": ("experiment", "create", "created", SPECTRA),
    "experiment add": ("experiment", "add", "EXPERIMENT", DOMAIN),
    "experiment remove": ("experiment", "remove", "EXPERIMENT", SPECTRA),
    "experiment list": ("experiment", "list", "EXPERIMENT"),
    "experiment export": ("experiment", "export", "EXPERIMENT", "--out", "experiment.sdrf.tsv"),
    "experiment run": ("experiment", "run", "EXPERIMENT", "--database", PROTEINS, *ION_TRAP, *CPU),
    "experiment quality": ("experiment", "quality", "SEARCHED", "--html", "quality.html"),
    "experiment report": ("experiment", "report", "SEARCHED"),
    "runs": ("runs", "PROJECT"),
    "export": ("export", "PROJECT", "--format", "tsv", "--out", "exported"),
    "convert": ("convert", SPECTRA, "--out", "spectra.mgf"),
    "compare": ("compare", "TWO_RUNS", "--out", "compared"),
    "report": ("report", "PROJECT", "--out", "report"),
    "cache": ("cache",),
    "compile": ("compile", "--processes", "1"),
    "samples": ("samples", "samples"),
    "workers certificates": ("workers", "certificates", "--out", "certificates"),
}
KINDS = {search.kind for search in SEARCHES}
LASTING = {"workers scheduler", "workers start"}  # commands that run until a signal ends them
PARTS = {"progress", "stages", "pass", "cached", "skipped", "accepted"}


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Project with a sequence search."""
    folder = tmp_path_factory.mktemp("aligned")
    arguments = [str(folder / "hits.tsv") if argument == "hits.tsv" else argument for argument in COMMANDS["align"]]
    assert main([*arguments, "--project", str(folder / "project"), "--quiet"]) == 0
    return str(folder / "project")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Project with two identifications."""
    project, _ = project_with_runs(tmp_path_factory.mktemp("compared") / "project", n_runs=2, n_spectra=60)
    return str(project.folder)


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Project with an identification of the sample."""
    folder = tmp_path_factory.mktemp("identified") / "project"
    assert main(["import", COMET, "--spectra", SPECTRA, "--database", PROTEINS, *ION_TRAP, "--out", str(folder), "--quiet"]) == 0
    return str(folder)


@pytest.fixture
def experiment(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Project with an experiment of one run."""
    folder = tmp_path_factory.mktemp("experiment") / "project"
    assert main(["experiment", "create", str(folder), SPECTRA, "--quiet"]) == 0
    return str(folder)


@pytest.fixture
def searched(experiment: str) -> str:
    """Project with an experiment of one finished run."""
    assert main(["experiment", "run", experiment, "--database", PROTEINS, *ION_TRAP, *CPU, "--quiet"]) == 0
    return experiment


@pytest.fixture
def stopped(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """Project with a stopped run."""
    folder = tmp_path_factory.mktemp("stopped")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(folder / "cache"))
    keep_at_once(monkeypatch)
    stop_a_search(folder / "project", folder)
    return str(folder / "project")


@pytest.fixture(autouse=True)
def _measure_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.cost_model._SIZES", (1000, 100_000))
    monkeypatch.setattr("proteoscope.engine.cost_model._SIDES", (16, 32))


def arguments_of(name: str, request: pytest.FixtureRequest) -> list[str]:
    """Return the arguments of a command. Projects that it reads are created when first needed."""
    fixtures = {"PROJECT": "aligned", "TWO_RUNS": "two_runs", "IDENTIFIED": "identified", "STOPPED": "stopped"}
    fixtures |= {"EXPERIMENT": "experiment", "SEARCHED": "searched"}
    return [str(request.getfixturevalue(fixtures[argument])) if argument in fixtures else argument for argument in COMMANDS[name]]


def called_kernels() -> set[tuple[Dispatcher, tuple[Any, ...]]]:
    """Return the cached kernels that this process has called so far, with their argument types."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("proteoscope.kernels.cpu.")]
    kernels = {kernel for module in modules for kernel in vars(module).values() if isinstance(kernel, Dispatcher)}
    return {(kernel, types) for kernel in kernels if not isinstance(kernel._cache, NullCache) for types in kernel.signatures}


@pytest.fixture
def only_listed_kernels() -> Iterator[None]:
    """Fail a test that calls a kernel with types for which it is not compiled in advance, so that each process would compile it."""
    before = called_kernels()
    yield
    listed = {json.dumps(kernel[:2]) for kernel in signatures.listed_kernels()}
    for kernel, types in called_kernels() - before:
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}".removeprefix("proteoscope.")
        is_measurement = name.startswith("kernels.cpu.analyses.")  # the cost model compiles these kernels before it measures
        assert is_measurement or json.dumps([name, [signatures.describe_type(argument) for argument in types]]) in listed, (
            f"{name}: run python -m installer.kernel_signatures"
        )


@pytest.mark.usefixtures("only_listed_kernels")
@pytest.mark.parametrize("name", COMMANDS)
def test_json_of_each_command_fits_the_schema(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = arguments_of(name, request)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    assert main([*arguments, "--json", "--progress", "json"]) == 0
    out, err = capfd.readouterr()
    check_output(name, json.loads(out))
    for line in err.splitlines():
        check_output("progress", json.loads(line))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name == "align" or name not in KINDS])  # all print alike
def test_quiet_command_prints_nothing(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = arguments_of(name, request)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    assert main([*arguments, "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


def lowest_parsers(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parsers of all sub-commands of `parser`, or `parser` if it has none."""
    below = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for choices in below:
        for sub, command in choices.items():
            yield from lowest_parsers(f"{name} {sub}", command)
    if not below:
        yield name, parser


def test_every_command_has_a_json_schema_and_output_options() -> None:
    parsers = dict(pair for name, parser in command_parsers().items() for pair in lowest_parsers(name, parser))
    for name, parser in parsers.items():
        flags = {flag for action in parser._actions for flag in action.option_strings}
        assert {"--json", "--quiet", "--progress"} <= flags, name
    assert parsers.keys() == SCHEMA["$defs"].keys() - PARTS
    assert parsers.keys() == COMMANDS.keys() | LASTING


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_json_of_scheduler_and_workers_fits_the_schema(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `workers` is missing")
    certificates = tmp_path / "certificates"
    assert main(["workers", "certificates", "--out", str(certificates), "--quiet"]) == 0
    scheduler = program("workers", "scheduler", "tls://127.0.0.1:0", "--certificates", str(certificates), "--json")
    try:
        assert scheduler.stdout is not None
        listening = json.loads("".join(iter(scheduler.stdout.readline, "}\n")) + "}")
        check_output("workers scheduler", listening)
        options = ("--certificates", str(certificates), "--device", "cpu", "--threads", "1", "--json", "--progress", "json")
        workers = program("workers", "start", listening["address"], *options)
        try:
            with open_cluster(listening["address"], Progress(), certificates=certificates) as cluster:
                wait_for(cluster.devices)
            workers.terminate()
            out, err = workers.communicate(timeout=120)
        finally:
            end(workers)
    finally:
        end(scheduler)
    check_output("workers start", json.loads(out))
    for line in err.splitlines():
        check_output("progress", json.loads(line))


def test_json_schema_is_valid_and_rejects_other_output() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    check_output("convert", {"out": "a", "n_written": 1, "n_spectra": 1, "messages": []})
    wrong: list[Any] = [{}, {"out": "a", "n_written": 1, "n_spectra": 1, "messages": [], "more": 1}, {"out": "a", "n_written": "1"}]
    for record in wrong:
        with pytest.raises(jsonschema.ValidationError):
            check_output("convert", record)


def test_json_output_of_an_error_is_one_line_with_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["align", str(tmp_path / "no.fasta"), QUERIES, "--out", "-", "--progress", "json"]) == 2
    out, err = capsys.readouterr()
    last = json.loads(err.splitlines()[-1])
    check_output("progress", last)
    assert (out, last["event"], last["exit_code"]) == ("", "error", 2) and "no.fasta" in last["text"]


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        (("align", QUERIES, QUERIES, "--out", "o", "--no-such-option"), "proteoscope align"),
        (("workers", "certificates", "--out", "o", "--no-such-option"), "proteoscope workers certificates"),
        (("export", "p", "--format", "tsv"), "proteoscope export"),
        (("--no-such-option",), "proteoscope"),
    ],
)
def test_rejected_option_error_refers_to_help_of_the_command(
    arguments: tuple[str, ...], program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.endswith(f"; see {program} --help\n") and error.count("\n") == 1

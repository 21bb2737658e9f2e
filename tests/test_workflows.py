"""The shipped workflows use options that exist, and that of Snakemake writes the same tables after a kill."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import command_parsers, main
from tests.conftest import REPOSITORY

WORKFLOWS = REPOSITORY / "docs" / "workflows"
FILES = [path for path in sorted(WORKFLOWS.rglob("*")) if path.name == "Snakefile" or path.suffix == ".nf"]
N_FILES = 20
SNAKEMAKE = os.environ.get("PROTEOSCOPE_SNAKEMAKE") or shutil.which("snakemake") or ""
_COMMAND = re.compile(r"(?:\{PROTEOSCOPE\}|proteoscope) (identify|export)\b((?:[^\n]|\\\\\n|\"\n\s+\")*)")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_workflow_uses_existing_options(path: Path) -> None:
    parsers, commands = command_parsers(), _COMMAND.findall(path.read_text(encoding="utf-8"))
    assert {name for name, _ in commands} == {"identify", "export"}
    for name, arguments in commands:
        flags = {flag for action in parsers[name]._actions for flag in action.option_strings}
        used = set(re.findall(r"--[a-z][a-z-]*", arguments))
        assert {"--out"} <= used <= flags, name


def snakemake(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start Snakemake in a folder, in a process group of its own."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [SNAKEMAKE, "--snakefile", str(WORKFLOWS / "snakemake" / "Snakefile"), "--cores", "2", "--quiet", "all", *options]
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)


def prepare(folder: Path) -> None:
    """Write the configuration and twenty files of spectra: parts of a sample run, with names that contain a space and more."""
    (folder / "spectra").mkdir(parents=True)
    assert main(["convert", str(resources.path("samples", "BSA1.mzML.gz")), "--out", str(folder / "all.mgf"), "--quiet"]) == 0
    spectra = (folder / "all.mgf").read_text(encoding="utf-8").split("BEGIN IONS")[1:]
    for number in range(N_FILES):
        part = "".join(f"BEGIN IONS{spectrum}" for spectrum in spectra[number::N_FILES])
        (folder / "spectra" / f"Läufe {number + 1}.mgf").write_text(part, encoding="utf-8")
    shutil.copyfile(resources.path("samples", "albumin_proteins.fasta.gz"), folder / "proteins.fasta.gz")
    program = f"{shlex.quote(sys.executable)} -m proteoscope.engine.command_line"
    settings = {"spectra": "spectra/{sample}.mgf", "database": "proteins.fasta.gz", "preset": "low-resolution", "proteoscope": program}
    (folder / "config.yaml").write_text("".join(f'{name}: "{value}"\n' for name, value in settings.items()), encoding="utf-8")


def results_in(folder: Path) -> dict[str, bytes]:
    """Return the tables and exports of a workflow by name."""
    paths = [*folder.glob("projects/*/exports/*.tsv"), *folder.glob("projects/*/results/identify/*.parquet")]
    paths += [folder / "psms.tsv", *folder.glob("mzid/*.mzid.gz")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.exists()}


@pytest.mark.long
@pytest.mark.skipif(not SNAKEMAKE, reason="Snakemake is not installed: pip install snakemake, or name it in PROTEOSCOPE_SNAKEMAKE")
@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_snakemake_workflow_writes_the_same_tables_after_a_kill(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        prepare(folder)
    assert snakemake(whole).wait() == 0
    expected = results_in(whole)
    assert len(expected) >= N_FILES * 5 + 1

    running = snakemake(killed)
    while len(list(killed.glob("projects/*/exports/psms.tsv"))) < N_FILES // 4 and running.poll() is None:
        time.sleep(0.05)
    assert running.poll() is None, "killed in the middle"
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    n_before = len(results_in(killed))
    assert 0 < n_before < len(expected)
    assert snakemake(killed, "--unlock").wait() == 0
    assert snakemake(killed, "--rerun-incomplete").wait() == 0
    assert results_in(killed) == expected
    # A finished workflow computes nothing again.
    times = {path: path.stat().st_mtime_ns for path in killed.glob("projects/*/exports/psms.tsv")}
    assert snakemake(killed).wait() == 0
    assert times == {path: path.stat().st_mtime_ns for path in times}

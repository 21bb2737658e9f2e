"""System limits under which the program cannot run are reported in one sentence with exit code 2."""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from proteoscope.engine.command_line.system_limits import describe_failure, settings_error

REPOSITORY = Path(__file__).resolve().parents[3]
SPECTRA = REPOSITORY / "resources" / "samples" / "BSA1.mzML.gz"


def run(
    tmp_path: Path,
    module: str = "proteoscope",
    limit: int | None = None,
    *,
    kind: int = resource.RLIMIT_AS,
    arguments: Sequence[str] = (),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command, by default a conversion, in a process with a resource limit (by default of address space, in bytes)."""
    convert = ("convert", str(SPECTRA), "--out", str(tmp_path / "x.mgf"), "--quiet")
    command = [sys.executable, "-m", module, *(arguments or convert)]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        preexec_fn=None if limit is None else lambda: resource.setrlimit(kind, (limit, limit)),
    )


@pytest.mark.parametrize("value", ["0", "-1", "abc", "1000000", "9" * 30])
def test_invalid_number_of_threads_is_reported_in_one_sentence(value: str, tmp_path: Path) -> None:
    done = run(tmp_path, NUMBA_NUM_THREADS=value)
    assert done.returncode == 2
    assert done.stderr.startswith("proteoscope: the environment variable NUMBA_NUM_THREADS is '")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["presets"], ["open"]])
def test_disabled_numba_compiler_is_reported_in_one_sentence(arguments: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, arguments=arguments, NUMBA_DISABLE_JIT="1")
    sentence = "the environment variable NUMBA_DISABLE_JIT is set, and searches compute with compiled code. Unset it"
    assert (done.returncode, done.stderr) == (2, f"proteoscope: {sentence}\n")


def test_invalid_numba_setting_is_reported_in_one_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, NUMBA_OPT="abc")
    sentence = "Environment variable 'NUMBA_OPT' is defined but its associated value 'abc' could not be parsed. Change or unset it"
    assert (done.returncode, done.stderr) == (2, f"proteoscope: {sentence}\n")


@pytest.mark.parametrize("module", ["proteoscope", "proteoscope.engine.command_line"])
@pytest.mark.parametrize("limit", [100_000, 430_000])
def test_small_memory_limit_is_reported_in_one_sentence(module: str, limit: int, tmp_path: Path) -> None:
    done = run(tmp_path, module, limit << 10)
    assert done.returncode == 2
    sentence = f"the memory limit of {limit >> 10} MB (ulimit -v) is too small; raise it, or remove it with ulimit -v unlimited"
    assert done.stderr == f"proteoscope: {sentence}\n"


@pytest.mark.parametrize("limit", [30_000, 100_000])
def test_small_data_segment_limit_is_reported_in_one_sentence(limit: int, tmp_path: Path) -> None:
    done = run(tmp_path, "proteoscope.engine.command_line", limit << 10, kind=resource.RLIMIT_DATA)
    sentence = f"the memory limit of {limit >> 10} MB (ulimit -d) is too small; raise it, or remove it with ulimit -d unlimited"
    assert (done.returncode, done.stderr) == (2, f"proteoscope: {sentence}\n")


@pytest.mark.parametrize("limit", [10, 20])
def test_small_limit_of_open_files_is_reported_in_one_sentence(limit: int, tmp_path: Path) -> None:
    query = tmp_path / "query.fasta"
    query.write_text(">P1\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGE\n")
    arguments = ["align", str(query), str(query), "--out", str(tmp_path / "hits.tsv"), "--device", "cpu", "--project", str(tmp_path / "p")]
    done = run(tmp_path, "proteoscope.engine.command_line", limit, kind=resource.RLIMIT_NOFILE, arguments=arguments)
    sentence = f"the limit of {limit} open files (ulimit -n) is too small; raise it to 48 or more"
    assert (done.returncode, done.stderr) == (2, f"proteoscope: {sentence}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["query.fasta"]


def test_presets_command_works_with_small_memory_limit(tmp_path: Path) -> None:
    done = run(tmp_path, "proteoscope.engine.command_line", 60_000 << 10, arguments=["presets"])
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_settings_error_accepts_usual_thread_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "1", "1024"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", value)
        assert settings_error() == ""


def test_describe_failure_explains_thread_and_import_errors() -> None:
    assert "ulimit -u" in describe_failure(RuntimeError("can't start new thread"))
    assert "cannot be loaded" in describe_failure(ImportError("No module named 'x'"))
    assert describe_failure(RuntimeError("something else")) == ""
    assert describe_failure(ValueError("something else")) == ""

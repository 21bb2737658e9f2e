"""The first search on a machine says that it compiles, and compiles all that it needs then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def process_environment(own: Path) -> dict[str, str]:
    return {**os.environ, "NUMBA_CACHE_DIR": str(own), "PYTHONPATH": os.pathsep.join(sys.path)}


def start(own: Path, fasta: Path, out: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "proteoscope.engine.command_line",
        "align",
        str(fasta),
        str(fasta),
        "--out",
        str(out),
        "--device",
        "cpu",
    ]
    return subprocess.Popen(command, env=process_environment(own), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def compiled(own: Path) -> set[str]:
    return {path.name for path in own.rglob("*.nbc")}


def test_a_search_calls_nothing_that_the_announced_step_does_not_compile(fasta, random_protein, tmp_path):
    """By the types that each kernel was called with, in a process that has called none before: what is kept on disk does not matter."""
    path, hits = fasta("proteins.fasta", [(str(k), random_protein(k, 60)) for k in range(200)]), tmp_path / "hits.tsv"
    code = (
        "import gc, sys\n"
        "from numba.core.dispatcher import Dispatcher\n"
        "from proteoscope.engine.command_line.main import main\n"
        "from proteoscope.engine.sequence_search.compilation import ALIGNMENT\n"
        "def called():\n"
        "    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]\n"
        "    return {f'{one.py_func.__module__}.{one.py_func.__name__}{types}' for one in kernels for types in one.signatures}\n"
        "ALIGNMENT.use()\n"
        "before = called()\n"
        "assert main(sys.argv[1:]) == 0\n"
        "print(len(before), *sorted(called() - before), sep='\\n')"
    )
    command = [sys.executable, "-c", code, "align", str(path), str(path), "--out", str(hits), "--device", "cpu", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    n_before, *others = done.stdout.splitlines()
    assert int(n_before) > 5
    assert not others
    assert len(hits.read_text().splitlines()) > 200


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_the_first_search_compiles_all_and_ctrl_c_ends_it_at_once(fasta, random_protein, tmp_path):
    """Both on one fresh cache: what is interrupted is compiled again, and what is compiled is not compiled twice."""
    path, own = fasta("proteins.fasta", [(str(k), random_protein(k, 60)) for k in range(200)]), tmp_path / "kernels"
    process = start(own, path, tmp_path / "hits.tsv")
    assert process.stderr is not None
    told = next(line for line in process.stderr if "Compiling" in line)
    process.send_signal(signal.SIGINT)
    output, rest = process.communicate(timeout=60)
    assert process.returncode == 130 and "Compiling for this processor" in told and "Traceback" not in rest
    assert not (tmp_path / "hits.tsv").exists()
    code = (
        "from proteoscope.engine.jobs.progress import Progress; from proteoscope.engine.sequence_search.compilation import ALIGNMENT\n"
        "ALIGNMENT.compile(Progress(lambda event: print(event.message)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=process_environment(own), capture_output=True, text=True, check=True)
    assert "Compiling the kernels of the alignment for this processor" in done.stdout
    before = compiled(own)
    output, errors = start(own, path, tmp_path / "hits.tsv").communicate(timeout=600)
    assert "Compiling" not in errors and "200 queries" in output
    assert compiled(own) == before, "something was compiled beside the announced step"

"""A single-node Slurm from Debian's packages, installed and started by the test: jobs provide workers and end with the run.

Not in the default suite because it installs packages. Run as root: `PROTEOSCOPE_SLURM=1 python -m pytest -m long` and this file.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.execution.cluster.launchers import open_cluster
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from tests.engine.execution.cluster.processes import wait_for
from tests.engine.execution.cluster.slow_kinds import NAME, load, squares
from tests.engine.execution.cluster.slurm import slurm_node, slurm_request

pytestmark = [pytest.mark.long, pytest.mark.skipif("PROTEOSCOPE_SLURM" not in os.environ, reason="PROTEOSCOPE_SLURM=1 installs a Slurm")]


@pytest.fixture
def request_of_jobs(tmp_path: Path) -> Iterator[str]:
    """Run a Slurm and return a request of two jobs."""
    with slurm_node(tmp_path / "slurm"):
        yield slurm_request(tmp_path, jobs=2)


def test_slurm_jobs_run_as_workers_and_end_with_the_run(request_of_jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, NAME, load)
    x = np.arange(60)
    with (
        open_cluster(request_of_jobs, Progress()) as cluster,
        Executor(Resources(1, remote_workers=cluster)).session(squares(x, seconds=0.1)) as session,
    ):
        assert session.run()["found"].tolist() == (x**2).tolist()
        jobs = subprocess.run(["squeue", "-h", "-o", "%T"], capture_output=True, text=True, check=True).stdout.split()
        assert "RUNNING" in jobs
    wait_for(lambda: not subprocess.run(["squeue", "-h", "-t", "RUNNING"], capture_output=True, text=True, check=True).stdout.strip())
    assert not list(tmp_path.glob("proteoscope-certificates-*"))

"""A single-node Slurm from Debian's packages, installed and started by the test: jobs provide workers and end with the run.

Not in the default suite because it installs packages. Run as root: `PROTEOSCOPE_SLURM=1 python -m pytest -m long` and this file.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.execution.cluster.launchers import open_cluster
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from tests.engine.execution.cluster.processes import when
from tests.engine.execution.cluster.slow_kinds import NAME, load, squares

pytestmark = [pytest.mark.long, pytest.mark.skipif("PROTEOSCOPE_SLURM" not in os.environ, reason="PROTEOSCOPE_SLURM=1 installs a Slurm")]


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Start a controller and a node on this machine and return the folder of the configuration."""
    if not all(map(shutil.which, ("slurmctld", "slurmd", "munged", "sbatch"))):
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "slurm-wlm", "munge"], check=True)
    folder, host = tmp_path / "slurm", socket.gethostname().split(".")[0]
    folder.mkdir(mode=0o755)
    (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge.key").chmod(0o600)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    configuration = f"""
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MailProg=/bin/true
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=2000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE:4
"""
    (folder / "slurm.conf").write_text(configuration)
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    munge = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    commands = (
        ["munged", "--foreground", "--force", *(f"--{name}={folder}/munge.{end}" for name, end in munge.items())],
        ["slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf"],
        ["slurmd", "-D", "-f", f"{folder}/slurm.conf", "-N", host],
    )
    running = []
    try:
        for command in commands:
            running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            time.sleep(1.0)
        when(lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, check=False).stdout)
        yield folder
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(20)


def test_slurm_jobs_run_as_workers_and_end_with_the_run(slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, NAME, load)
    path, x = tmp_path / "config.toml", np.arange(60)
    path.write_text(
        f'jobs = 2\ncores = 1\nmemory = "500MB"\nwalltime = "00:10:00"\ninterface = "lo"\n'
        f'shared_temp_directory = "{tmp_path}"\nlog_directory = "{tmp_path}/logs"\ndevice = "cpu"\n'
    )
    with (
        open_cluster(f"slurm:{path}", Progress()) as cluster,
        Executor(Resources(1, elsewhere=cluster)).session(squares(x, seconds=0.1)) as session,
    ):
        assert session.run()["found"].tolist() == (x**2).tolist()
        jobs = subprocess.run(["squeue", "-h", "-o", "%T"], capture_output=True, text=True, check=True).stdout.split()
        assert "RUNNING" in jobs
    when(lambda: not subprocess.run(["squeue", "-h", "-t", "RUNNING"], capture_output=True, text=True, check=True).stdout.strip())
    assert not list(tmp_path.glob("proteoscope-certificates-*"))

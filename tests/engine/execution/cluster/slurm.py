"""A single-node Slurm from Debian's packages, installed and started by tests that run as root."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from tests.engine.execution.cluster.processes import wait_for


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@contextmanager
def slurm_node(folder: Path) -> Iterator[None]:
    """Run a controller and a node on this machine, with all files in the folder, until the block ends."""
    if not all(map(shutil.which, ("slurmctld", "slurmd", "munged", "sbatch"))):
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "slurm-wlm", "munge"], check=True)
    host = socket.gethostname().split(".")[0]
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
    munge = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    commands = (
        ["munged", "--foreground", "--force", *(f"--{name}={folder}/munge.{end}" for name, end in munge.items())],
        ["slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf"],
        ["slurmd", "-D", "-f", f"{folder}/slurm.conf", "-N", host],
    )
    running = []
    with mock.patch.dict(os.environ, SLURM_CONF=f"{folder}/slurm.conf"):
        try:
            for command in commands:
                running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                time.sleep(1.0)
            wait_for(lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, check=False).stdout)
            yield
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait(20)


def slurm_request(folder: Path, jobs: int) -> str:
    """Write a configuration of jobs with one core each, and return the value of ``--workers`` for it."""
    path = folder / "config.toml"
    path.write_text(
        f'jobs = {jobs}\ncores = 1\nmemory = "500MB"\nwalltime = "00:30:00"\ninterface = "lo"\n'
        f'shared_temp_directory = "{folder}"\nlog_directory = "{folder}/logs"\ndevice = "cpu"\n'
    )
    return f"slurm:{path}"

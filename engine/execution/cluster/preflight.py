"""Check of a request for workers, as far as its files allow before anything is started."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.errors import WorkersError
from proteoscope.engine.execution.cluster.certificates import needs_cryptography, read_certificates
from proteoscope.engine.execution.cluster.option import parse_workers
from proteoscope.engine.execution.cluster.worker_files import read_hosts, read_slurm

__all__ = ["checked_workers"]

_SHOWN_HOSTS = 4


def checked_workers(requested: str, certificates: Path | None = None) -> str:
    """Describe the requested workers.

    Parameters
    ----------
    requested : str
        As ``--workers`` takes it.
    certificates : Path, optional
        Folder, for the address of a scheduler.

    Raises
    ------
    ParameterError, InputError
        The request, its file or its certificates are not valid.
    WorkersError
        Libraries or certificates are missing.
    """
    request = parse_workers(requested)
    needs_cryptography()
    if request.sort == "local":
        return f"{_counted(request.count, 'worker')} on this machine, which share its threads and GPUs"
    if request.sort == "ssh":
        assert request.file is not None
        names = [host.name for host in read_hosts(request.file)]
        more = f" and {len(names) - _SHOWN_HOSTS} more" if len(names) > _SHOWN_HOSTS else ""
        return f"{_counted(len(names), 'machine')} by ssh: {', '.join(names[:_SHOWN_HOSTS])}{more}"
    if request.sort == "slurm":
        assert request.file is not None
        result = read_slurm(request.file)
        queue = f", queue {result.queue}" if result.queue else ""
        return f"{_counted(result.jobs, 'Slurm job')}, each {result.cores} threads and {result.memory}{queue}"
    if not request.address.startswith("tls:"):
        return f"the workers of the scheduler at {request.address}, without encryption, on this machine alone"
    if certificates is None:
        raise WorkersError(f"{request.address}: give the folder of its certificates")
    read_certificates(certificates)
    return f"the workers of the scheduler at {request.address}"


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"

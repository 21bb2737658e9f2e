"""Whether workers can be had as a user wishes them, as far as files tell it before anything is started."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.errors import WorkersError
from proteoscope.engine.execution.cluster.certificates import needs_cryptography, read_certificates
from proteoscope.engine.execution.cluster.launchers import read_hosts, read_slurm
from proteoscope.engine.execution.cluster.option import parse_workers

__all__ = ["checked_workers"]

_SHOWN_HOSTS = 4


def checked_workers(wish: str, certificates: Path | None = None) -> str:
    """What a wish, as ``--workers`` takes it, stands for, in words. `certificates`: the folder, for the address of a scheduler.

    Raises
    ------
    ParameterError, InputError : the wish, its file or its certificates cannot be used. WorkersError : libraries are missing.
    """
    wished = parse_workers(wish)
    needs_cryptography()
    if wished.sort == "local":
        return f"{wished.count} {'worker' if wished.count == 1 else 'workers'} on this machine, which share its threads and GPUs"
    if wished.sort == "ssh":
        assert wished.file is not None
        names = [host.name for host in read_hosts(wished.file)]
        more = f" and {len(names) - _SHOWN_HOSTS} more" if len(names) > _SHOWN_HOSTS else ""
        return f"{len(names)} {'machine' if len(names) == 1 else 'machines'} by ssh: {', '.join(names[:_SHOWN_HOSTS])}{more}"
    if wished.sort == "slurm":
        assert wished.file is not None
        found = read_slurm(wished.file)
        queue = f", queue {found['queue']}" if "queue" in found else ""
        return (
            f"{found['jobs']} Slurm {'job' if found['jobs'] == 1 else 'jobs'}, each {found['cores']} threads and {found['memory']}{queue}"
        )
    if wished.address.startswith("tls:"):
        if certificates is None:
            raise WorkersError(f"{wished.address}: give the folder of its certificates")
        read_certificates(certificates, "client")
        return f"the workers of the scheduler at {wished.address}"
    return f"the workers of the scheduler at {wished.address}, without encryption, on this machine alone"

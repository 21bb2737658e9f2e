"""Requests for workers: values of ``--workers``, and the files that they name. This module imports no library for workers."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proteoscope.engine.errors import InputError, ParameterError, WorkersError, shortened
from proteoscope.engine.execution.cluster.certificates import needs_cryptography, read_certificates, read_text

if TYPE_CHECKING:
    from distributed import Security

__all__ = [
    "Host",
    "SlurmConfiguration",
    "WorkersRequest",
    "checked_address",
    "checked_workers",
    "connection_security",
    "parse_workers",
    "read_hosts",
    "read_slurm",
]

_EXPECTED = "expected local:N, ssh:HOSTS.txt, slurm:CONFIG.toml or tls://HOST:PORT"
_MAXIMUM_LOCAL = 256
_MAXIMUM_DIGITS = 6
_ADDRESS = re.compile(r"(?P<protocol>tls|tcp)://(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})")
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|\[::1\]")
_SHOWN_HOSTS = 4
_Model = TypeVar("_Model", bound=BaseModel)
_Count = Annotated[int, Field(ge=1, le=1024)]
_ShellWord = Annotated[str, Field(pattern=r"^[^;&|<>$`\\\"'()\s]+$")]


@dataclass(frozen=True)
class WorkersRequest:
    """Request for workers, parsed from a value of ``--workers``.

    Attributes
    ----------
    sort : str
        Method of starting or finding workers.
    count : int
        Number of local workers.
    file : Path
        File with hosts, or Slurm configuration.
    address : str
        Address of a scheduler.
    """

    sort: Literal["local", "ssh", "slurm", "address"]
    count: int = 0
    file: Path = Path()
    address: str = ""


def parse_workers(text: str) -> WorkersRequest:
    """Parse a value of ``--workers``.

    Raises
    ------
    ParameterError
        If the value is not valid, its file does not exist, or data would leave this machine without encryption.
    """
    sort, _, rest = text.partition(":")
    if sort == "local":
        if not rest.isdecimal() or len(rest) > _MAXIMUM_DIGITS or not 1 <= int(rest) <= _MAXIMUM_LOCAL:
            raise ParameterError(f"workers = '{text:.60}': expected local:N with N from 1 to {_MAXIMUM_LOCAL}")
        return WorkersRequest("local", count=int(rest))
    if sort in ("ssh", "slurm"):
        if not rest or not Path(rest).is_file():
            raise ParameterError(f"workers = '{text:.200}': there is no such file; {_EXPECTED}")
        return WorkersRequest("ssh" if sort == "ssh" else "slurm", file=Path(rest).absolute())
    if sort in ("tls", "tcp"):
        return WorkersRequest("address", address=checked_address(text))
    raise ParameterError(f"workers = '{text:.60}': {_EXPECTED}")


def checked_address(text: str) -> str:
    """Return the address of a scheduler after validation.

    Raises
    ------
    ParameterError
        If the text is not an address, or data would leave this machine without encryption.
    """
    result = _ADDRESS.fullmatch(text)
    if result is None or not 0 <= int(result["port"]) < 65536:
        raise ParameterError(f"'{text:.100}' is not a scheduler address; expected tls://HOST:PORT")
    if result["protocol"] == "tcp" and not _LOOPBACK.fullmatch(result["host"]):
        raise ParameterError(f"{text}: without encryption, only addresses on this machine are allowed; use tls:// and certificates")
    return text


def connection_security(address: str, certificates: Path | None) -> Security | None:
    """Return the settings of `distributed` for the address of a scheduler; None without encryption.

    Parameters
    ----------
    address : str
        Result of `checked_address`.
    certificates : Path, optional
        Folder of the scheduler's certificates, required for an address with encryption.

    Raises
    ------
    InputError, WorkersError
        If the certificates are not valid, or are missing.
    """
    if not address.startswith("tls:"):
        return None
    if certificates is None:
        raise WorkersError(f"{address}: give the folder of its certificates with --certificates DIR")
    return read_certificates(certificates).security()


class Host(BaseModel):
    """Host on which workers are started: a line of a file of hosts."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[\w@.:\[\]][\w@.:\[\]-]*$")]
    workers: _Count | None = None
    threads: _Count | None = None
    """Total number of threads of the workers on the host."""
    device: _ShellWord = "auto"
    command: _ShellWord = "proteoscope"
    """Path of the program on the host."""


class SlurmConfiguration(BaseModel):
    """Options of Slurm jobs with workers; options that are not in `OF_THE_PROGRAM` are passed to `dask_jobqueue.SLURMCluster`."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", strict=True)
    OF_THE_PROGRAM: ClassVar = ("jobs", "workers_of_job", "device", "shared_temp_directory")

    jobs: Annotated[int, Field(ge=1, le=10_000)] = 1
    workers_of_job: Annotated[int, Field(ge=1, le=10_000)] = 1
    device: str = "auto"
    shared_temp_directory: str = ""
    cores: Annotated[int, Field(ge=1, le=10_000)] = 1
    memory: str = "4GB"
    walltime: str | None = None
    queue: str | None = None
    account: str | None = None
    interface: str | None = None
    python: str | None = None
    job_cpu: int | None = None
    job_extra_directives: list[str] = []
    job_script_prologue: list[str] = []
    log_directory: str | None = None


def read_hosts(path: Path) -> list[Host]:
    """Read a file of hosts.

    Parameters
    ----------
    path : Path
        File with lines ``[USER@]NAME [workers=N] [threads=N] [device=auto] [command=/path/to/proteoscope]``.

    Raises
    ------
    InputError
        If a line has another content, or the file has no host.
    """
    hosts = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if words := line.partition("#")[0].split():
            pairs = [("name", words[0]), *(word.partition("=")[::2] for word in words[1:])]
            options = dict(pairs)
            if len(options) < len(pairs):
                raise InputError(path, "gives an option twice", place=f"line {number}")
            hosts.append(_validated(Host, options, path, f"line {number}"))
    if not hosts:
        raise InputError(path, "names no host", remedy="Write one host per line")
    return hosts


def read_slurm(path: Path) -> SlurmConfiguration:
    """Read a Slurm configuration.

    Raises
    ------
    InputError
        If the file is not TOML, or has an unknown option or an invalid value.
    """
    try:
        options = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(path, f"is not TOML: {error}", remedy="docs/cluster.md has an example") from None
    return _validated(SlurmConfiguration, options, path)


def _validated(model: type[_Model], options: dict[str, Any], path: Path, place: str = "") -> _Model:
    try:
        return model.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        name = shortened(".".join(map(str, first["loc"])))
        expected = f"Expected {', '.join(model.model_fields)}" if first["type"] == "extra_forbidden" else str(first["msg"])
        raise InputError(path, f"{name} = {shortened(str(first['input']))} is not valid", place=place, remedy=expected) from None


def checked_workers(requested: str, certificates: Path | None = None) -> str:
    """Return a description of the requested workers, after validating the request.

    Parameters
    ----------
    requested : str
        Value of ``--workers``.
    certificates : Path, optional
        Folder of certificates, for the address of a scheduler.

    Raises
    ------
    ParameterError, InputError
        If the request, its file or its certificates are not valid.
    WorkersError
        If libraries or certificates are missing.
    """
    request = parse_workers(requested)
    needs_cryptography()
    if request.sort == "local":
        return f"{_counted(request.count, 'worker')} on this machine, which share its threads and GPUs"
    if request.sort == "ssh":
        names = [host.name for host in read_hosts(request.file)]
        more = f" and {len(names) - _SHOWN_HOSTS} more" if len(names) > _SHOWN_HOSTS else ""
        return f"{_counted(len(names), 'machine')} by ssh: {', '.join(names[:_SHOWN_HOSTS])}{more}"
    if request.sort == "slurm":
        result = read_slurm(request.file)
        queue = f", queue {result.queue}" if result.queue else ""
        return f"{_counted(result.jobs, 'Slurm job')}, each {result.cores} threads and {result.memory}{queue}"
    unencrypted = "" if connection_security(request.address, certificates) else ", without encryption, only on this machine"
    return f"the workers of the scheduler at {request.address}{unencrypted}"


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"

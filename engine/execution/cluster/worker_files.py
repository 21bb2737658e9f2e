"""Files that describe requested workers: a list of hosts, or a Slurm configuration."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.files import open_regular

__all__ = ["Host", "SlurmConfiguration", "read_hosts", "read_slurm"]

_MAXIMUM_BYTES = 1 << 20
_Model = TypeVar("_Model", bound=BaseModel)
_Count = Annotated[int, Field(ge=1, le=1024)]
_ShellWord = Annotated[str, Field(pattern=r"^[^;&|<>$`\\\"'()\s]+$")]


class Host(BaseModel):
    """A line of a file of hosts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[\w@.:\[\]][\w@.:\[\]-]*$")]
    workers: _Count | None = None
    threads: _Count | None = None
    """Threads of all workers there together."""
    device: _ShellWord = "auto"
    command: _ShellWord = "proteoscope"
    """Path of the program there."""


class SlurmConfiguration(BaseModel):
    """Options of Slurm jobs with workers. Those that are not `OF_THE_PROGRAM` go to `dask_jobqueue.SLURMCluster`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
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
    """Read the hosts of a file.

    Parameters
    ----------
    path : Path
        On each line ``[USER@]NAME [workers=N] [threads=N] [device=auto] [command=/path/to/proteoscope]``.

    Raises
    ------
    InputError
        A line has something else, or there is none.
    """
    hosts = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        if words := line.partition("#")[0].split():
            pairs = [("name", words[0]), *(word.partition("=")[::2] for word in words[1:])]
            options = dict(pairs)
            if len(options) < len(pairs):
                raise InputError(path, "gives an option twice", place=f"line {number}")
            hosts.append(_validated(Host, options, path, f"line {number}"))
    if not hosts:
        raise InputError(path, "names no host", remedy="Write one a line")
    return hosts


def read_slurm(path: Path) -> SlurmConfiguration:
    """Read a Slurm configuration.

    Raises
    ------
    InputError
        It is not TOML, or has an unknown option or a wrong value.
    """
    try:
        options = tomllib.loads(_read(path))
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


def _read(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(_MAXIMUM_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})") from None

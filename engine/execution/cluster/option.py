"""Value of ``--workers``. Imports no library for workers, so that a wrong value is reported at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from proteoscope.engine.errors import ParameterError

__all__ = ["WorkersRequest", "checked_address", "is_loopback", "parse_workers"]

_EXPECTED = "expected local:N, ssh:HOSTS.txt, slurm:CONFIG.toml or tls://HOST:PORT"
_MAXIMUM_LOCAL = 256
_MAXIMUM_DIGITS = 6
_ADDRESS = re.compile(r"(?P<protocol>tls|tcp)://(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})")
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|\[::1\]")


@dataclass(frozen=True)
class WorkersRequest:
    """Request for workers.

    Attributes
    ----------
    text : str
        The value.
    sort : str
        How workers are started or found.
    count : int
        Number of local workers.
    file : Path or None
        File of hosts, or Slurm configuration.
    address : str
        Of a scheduler.
    """

    text: str
    sort: Literal["local", "ssh", "slurm", "address"]
    count: int = 0
    file: Path | None = None
    address: str = ""


def parse_workers(text: str) -> WorkersRequest:
    """Read a value of ``--workers``.

    Raises
    ------
    ParameterError
        It is not valid, its file does not exist, or it would send without encryption beyond this machine.
    """
    sort, _, rest = text.partition(":")
    if sort == "local":
        if not rest.isdecimal() or len(rest) > _MAXIMUM_DIGITS or not 1 <= int(rest) <= _MAXIMUM_LOCAL:
            raise ParameterError(f"workers = '{text:.60}': expected local:N with N from 1 to {_MAXIMUM_LOCAL}")
        return WorkersRequest(text, "local", count=int(rest))
    if sort in ("ssh", "slurm"):
        if not rest or not Path(rest).is_file():
            raise ParameterError(f"workers = '{text:.200}': there is no such file; {_EXPECTED}")
        return WorkersRequest(text, "ssh" if sort == "ssh" else "slurm", file=Path(rest).absolute())
    if sort in ("tls", "tcp"):
        return WorkersRequest(text, "address", address=checked_address(text))
    raise ParameterError(f"workers = '{text:.60}': {_EXPECTED}")


def checked_address(text: str) -> str:
    """Return the address of a scheduler after validating it.

    Raises
    ------
    ParameterError
        It is not an address, or it would send without encryption beyond this machine.
    """
    result = _ADDRESS.fullmatch(text)
    if result is None or not 0 <= int(result["port"]) < 65536:
        raise ParameterError(f"'{text:.100}' is not a scheduler address; expected tls://HOST:PORT")
    if result["protocol"] == "tcp" and not is_loopback(result["host"]):
        raise ParameterError(f"{text}: without encryption only this machine itself can be reached; use tls:// and certificates")
    return text


def is_loopback(host: str) -> bool:
    """Return True if a host is this machine, addressed directly."""
    return _LOOPBACK.fullmatch(host) is not None

"""What a report of a fault needs: versions, devices, the last lines of the log; no names of folders and people unless they are wanted."""

from __future__ import annotations

import getpass
import platform
import re
import socket
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from proteoscope.engine.version import VERSION

__all__ = ["fault_report", "program_facts", "without_private"]

_PACKAGES = ("PySide6-Essentials", "pyqtgraph", "numpy", "numba", "cupy-cuda12x", "cupy-cuda13x", "duckdb", "pyarrow", "gemmi")
_MAXIMUM_LINES = 200
_LEAST_NAME = 3
# A path begins behind a blank or a bracket, has a separator, and ends with its last one: names of files stay, since they tell what failed.
_PATH = re.compile(r"(?<![\w.:/\\<])(?:[A-Za-z]:[\\/]|\\\\|~?/)(?:[^\s\\/:*?\"'<>|]+(?: [^\s\\/:*?\"'<>|]+)*[\\/])+")


def program_facts() -> str:
    """Versions of the program, of Python, of the system and of the libraries that compute and draw."""
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"Proteoscope {VERSION}, Python {platform.python_version()}, {platform.platform()}\n{', '.join(found)}"


def fault_report(what: str, devices: Iterable[str], log: str, *, with_paths: bool) -> str:
    """The report as text.

    Parameters
    ----------
    what : that happened, in the user's words or as a traceback. devices : a line each. log : its last 200 lines are taken.
    with_paths : leave names of folders, of the user and of the machine as they are.
    """
    lines = log.splitlines()[-_MAXIMUM_LINES:]
    parts = (
        program_facts(),
        "Devices:\n" + "\n".join(devices),
        f"What happened:\n{what.strip() or '(not told)'}",
        "Log:\n" + "\n".join(lines),
    )
    text = "\n\n".join(parts) + "\n"
    return text if with_paths else without_private(text)


def without_private(text: str) -> str:
    """A text with folders as ``…/``, and without the names of the user, of the home and of the machine; names of files stay."""
    home = Path.home()
    text = text.replace(str(home), "~")
    text = _PATH.sub(lambda found: "…\\" if "\\" in found[0] else "…/", text)
    for name, stands in ((_user(), "(user)"), (home.name, "(user)"), (socket.gethostname(), "(machine)")):
        if len(name) >= _LEAST_NAME:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", stands, text)
    return text


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a system that knows no name
        return ""

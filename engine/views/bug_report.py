"""Text of a bug report: versions, devices and the end of the log, with paths and user names only on request."""

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from proteoscope.engine.shared_names import without_private
from proteoscope.engine.version import VERSION

__all__ = ["bug_report", "program_facts"]

_PACKAGES = ("PySide6-Essentials", "pyqtgraph", "numpy", "numba", "cupy-cuda12x", "cupy-cuda13x", "duckdb", "pyarrow", "gemmi")
_MAXIMUM_LINES = 200


def program_facts() -> str:
    """Return the versions of the program, of Python, of the system and of the libraries for computing and drawing."""
    result = []
    for name in _PACKAGES:
        try:
            result.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"Proteoscope {VERSION}, Python {platform.python_version()}, {platform.platform()}\n{', '.join(result)}"


def bug_report(what: str, devices: Iterable[str], log: str, *, with_paths: bool) -> str:
    """Return the text of a bug report.

    Parameters
    ----------
    what
        Description by the user, or a traceback.
    devices
        Description of each device, one line each.
    log
        Lines of the log; the report includes the last 200.
    with_paths
        True to retain the names of folders, user and machine.
    """
    lines = log.splitlines()[-_MAXIMUM_LINES:]
    parts = (
        program_facts(),
        "Devices:\n" + "\n".join(devices),
        f"What happened:\n{what.strip() or '(no description)'}",
        "Log:\n" + "\n".join(lines),
    )
    text = "\n\n".join(parts) + "\n"
    return text if with_paths else without_private(text)

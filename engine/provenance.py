"""Provenance of a run: source commit, versions of the libraries that computed, machine, and digests of the results."""

import importlib.metadata
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from proteoscope import resources
from proteoscope.engine.execution.devices import gpus, processor
from proteoscope.engine.project.digests import file_digest

__all__ = ["computing_packages", "file_digests", "machine", "program_commit", "source_commit"]

_PACKAGES = {
    "numpy": "numpy",
    "numba": "numba",
    "llvmlite": "llvmlite",
    "scipy": "scipy",
    "pyarrow": "pyarrow",
    "duckdb": "duckdb",
    "lxml": "lxml",
    "pyteomics": "pyteomics",
    "gemmi": "gemmi",
    "Bio": "biopython",
    "pysam": "pysam",
    "opentimspy": "opentimspy",
    "distributed": "distributed",
    "cupy": "cupy",
}
"""Packages that read or compute, by the name of their module."""
_GIT_SECONDS = 10.0
_COMMIT = re.compile(r"^# branch\.oid ([0-9a-f]{40,64})$", re.MULTILINE)


@cache
def program_commit() -> str:
    """Return the Git commit of this program's source (see `source_commit`).

    The commit is read once, since later changes of files do not change the running program.
    """
    return source_commit(resources.path().resolve().parent)


def source_commit(folder: Path) -> str:
    """Return the Git commit of the program's source, followed by ``-modified`` if files differ from the commit; '' if unknown.

    The commit is known in a Git checkout, and if pip installed the program from a repository.

    Parameters
    ----------
    folder
        Root of the source.
    """
    if not (folder / ".git").exists():
        return _installed_commit()
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder)]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):  # without Git
        return ""
    commit = _COMMIT.search(done.stdout)
    if done.returncode or commit is None:
        return ""
    is_modified = any(not line.startswith("#") for line in done.stdout.splitlines())
    return f"{commit[1]}{'-modified' if is_modified else ''}"


def _installed_commit() -> str:
    """Return the commit that pip recorded (PEP 610), or ''."""
    try:
        text = importlib.metadata.distribution("proteoscope").read_text("direct_url.json") or ""
    except importlib.metadata.PackageNotFoundError:
        return ""
    recorded = re.search(r'"commit_id": *"([0-9a-f]{40,64})"', text)
    return recorded[1] if recorded else ""


def computing_packages() -> dict[str, str]:
    """Return the versions of the packages that are loaded and that read or compute results, by name."""
    result: dict[str, str] = {}
    for module, name in _PACKAGES.items():
        if (loaded := sys.modules.get(module)) is not None:
            result[name] = str(getattr(loaded, "__version__", "")) or importlib.metadata.version(name)
    return result


def machine(*, with_gpus: bool) -> dict[str, Any]:
    """Return descriptions of the system, the CPU and, if `with_gpus`, the usable GPUs; the name of the machine is not included."""
    cpu = processor()
    result: dict[str, Any] = {"system": platform.platform(), "processor": cpu.description, "memory_bytes": cpu.memory_bytes}
    if with_gpus:
        result["gpus"] = [
            {"name": gpu.name, "description": gpu.description, "driver": gpu.driver, "memory_bytes": gpu.memory_bytes}
            for gpu in gpus()
            if gpu.numbers and gpu.usable
        ]
    return result


def file_digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256, in hexadecimal, of the files `names` in a folder, by name; files that do not exist are left out."""
    return {name: file_digest(folder / name) for name in names if (folder / name).is_file()}

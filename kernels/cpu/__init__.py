"""Kernels for the processor, compiled by Numba at their first use on a machine and kept in its cache."""

import os
import tempfile
from pathlib import Path

from platformdirs import user_cache_path


def _ensure_cache_folder() -> None:
    """Give Numba a temporary cache where it could write neither beside these files nor in the user's cache: it would refuse to work."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    for folder in (Path(__file__).parent / "__pycache__", user_cache_path("numba", appauthor=False)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return
        except OSError:
            continue
    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="proteoscope-kernels-")


_ensure_cache_folder()

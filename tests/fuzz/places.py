"""Folder for tests that create and remove thousands of small files: in memory, if the system has such a folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["IN_MEMORY"]

_MINIMUM_SPACE = 1 << 30
_SHARED = Path("/dev/shm")
IN_MEMORY = str(_SHARED) if os.access(_SHARED, os.W_OK) and shutil.disk_usage(_SHARED).free > _MINIMUM_SPACE else None
"""Folder for `tempfile`, or None for the usual one on a disk, which takes as long for a file as its reader."""

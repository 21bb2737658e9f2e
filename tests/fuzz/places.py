"""Where thousands of small files are made and removed: in memory, where the system has a place for that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["IN_MEMORY"]

_ROOM = 1 << 30
_SHARED = Path("/dev/shm")
IN_MEMORY = str(_SHARED) if os.access(_SHARED, os.W_OK) and shutil.disk_usage(_SHARED).free > _ROOM else None
"""As `tempfile` takes a folder; none: the usual one, a disk, where the system works as long at a file as its reader."""

"""Temporary files and folders as killed processes leave them."""

from pathlib import Path

from proteoscope.engine import files
from proteoscope.engine.locked_files import release_locked


def leave_file(target: Path) -> Path:
    """Leave the temporary file that a killed writer of `target` leaves."""
    temporary, lock = files._reserve(target)
    assert lock is not None
    temporary.write_bytes(b"half")
    release_locked(lock)
    return temporary


def leave_folder(target: Path) -> Path:
    """Leave the temporary folder that a killed process leaves next to `target`."""
    temporary = leave_file(target)
    temporary.unlink()
    (temporary / "deep").mkdir(parents=True)
    (temporary / "deep" / "index.npy").write_bytes(b"half")
    return temporary


def hidden(folder: Path) -> list[str]:
    """Return the names of hidden files and folders in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))

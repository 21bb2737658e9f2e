"""Data that ships with the program."""

from pathlib import Path

__all__ = ["path"]

# Resolved: in a checkout this package is reached through a link, and projects record the real paths of files.
_FOLDER = Path(__file__).resolve().parent


def path(*parts: str) -> Path:
    """Return the path of a shipped file or folder, as ``path("presets", "identify")``."""
    return _FOLDER.joinpath(*parts)

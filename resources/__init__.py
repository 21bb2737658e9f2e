"""Data that ships with the program."""

from importlib.resources import files
from pathlib import Path

__all__ = ["path"]


def path(*parts: str) -> Path:
    """Path of a shipped file or folder, as ``path("presets", "identify")``."""
    return Path(str(files(__name__))).joinpath(*parts)

"""Data that ships with the program."""

from pathlib import Path

__all__ = ["path"]


def path(*parts: str) -> Path:
    """Return the path of a shipped file or folder, as ``path("presets", "identify")``."""
    # Resolved: in a checkout this package is reached through a link, and projects record the real paths of files.
    return Path(__file__).resolve().parent.joinpath(*parts)

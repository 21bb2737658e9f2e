"""Presets as files: what a form holds, in the TOML that `proteoscope.engine.parameters.read_preset` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from proteoscope.engine.files import atomic_file

__all__ = ["preset_text", "write_preset"]


def write_preset(path: Path, values: Mapping[str, Any], description: str) -> None:
    """Write parameters as a preset file, whole or not at all.

    Raises
    ------
    StorageError : the disk refused.
    """
    with atomic_file(path) as file:
        file.write(preset_text(values, description).encode())


def preset_text(values: Mapping[str, Any], description: str) -> str:
    """The text of a preset file: a description and a table with a line for each parameter."""
    return tomli_w.dumps({"description": description, "parameters": dict(values)})

"""Presets as files: what a form holds, in the TOML that `engine.parameters.read_preset` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.files import atomic_file

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
    lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
    return "\n".join([f"description = {_toml(description)}", "", "[parameters]", *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # A basic string of TOML escapes as JSON does, and DEL besides.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return "[" + ", ".join(_toml(part) for part in value) + "]"

"""Writing of preset files in TOML, which `proteoscope.engine.parameters.read_preset` reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from proteoscope.engine.files import atomic_file


def write_preset(path: Path, values: Mapping[str, Any], description: str) -> None:
    """Write parameters to a preset file, which appears only when complete.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    with atomic_file(path) as file:
        file.write(preset_text(values, description).encode())


def preset_text(values: Mapping[str, Any], description: str) -> str:
    """Return the TOML text of a preset file: the description, and a table with one line per parameter."""
    return tomli_w.dumps({"description": description, "parameters": dict(values)})

"""Initial content of a form for a follow-up search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["NOTHING", "FormPrefill"]


@dataclass(frozen=True)
class FormPrefill:
    """Initial content of a form.

    Attributes
    ----------
    inputs : mapping of str to tuple of Path
        Files that replace those of the named inputs.
    parameters : mapping
        Values of parameters.
    pasted : mapping of str to str
        Texts for the boxes of inputs.
    tables : mapping of str to Path
        Files of tables edited in the form, by option name.
    """

    inputs: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    pasted: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Path] = field(default_factory=dict)


NOTHING = FormPrefill()

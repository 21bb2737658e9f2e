"""Content of a form: initial for a follow-up search, or that of the last search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proteoscope.engine.views.quantity_design import DesignTable

__all__ = ["NOTHING", "FormPrefill"]


@dataclass(frozen=True)
class FormPrefill:
    """Content to fill into a form; what is not named is retained.

    Attributes
    ----------
    inputs : mapping of str to tuple of Path
        Files that replace those of the named inputs.
    parameters : mapping
        Values of parameters.
    pasted : mapping of str to str
        Texts for the boxes of inputs.
    tables : mapping of str to Path or DesignTable or None
        Tables edited in the form, or their files, by option name; None for a table that is not used.
    options : mapping of str to bool
        Check boxes by option name.
    paths : mapping of str to str
        Optional folders, files and projects by option name.
    runs : mapping of str to str
        Optional runs by option name.
    preset : str
        Chosen preset, or '' for that of the search.
    project : Path or None
        Folder for the results, if chosen by the user.
    """

    inputs: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    pasted: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Path | DesignTable | None] = field(default_factory=dict)
    options: Mapping[str, bool] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    preset: str = ""
    project: Path | None = None


NOTHING = FormPrefill()

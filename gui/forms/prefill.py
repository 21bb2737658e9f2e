"""Content with which a form is filled, for a follow-up search or to repeat an earlier search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proteoscope.engine.views.quantity_design import DesignTable


@dataclass(frozen=True)
class FormPrefill:
    """Content to fill into a form; fields for which no content is given are unchanged.

    Attributes
    ----------
    inputs : mapping of str to tuple of Path
        Files by input name; they replace the files in the form.
    parameters : mapping
        Parameter values by name.
    pasted : mapping of str to str
        Pasted sequences by input name.
    tables : mapping of str to Path or DesignTable or None
        Tables edited in the form, or files with them, by option name; None for a table that is not used.
    options : mapping of str to bool
        States of check boxes by option name.
    paths : mapping of str to str
        Optional folders, files and projects by option name.
    runs : mapping of str to str
        Ids of optional runs by option name.
    preset : str
        Name or file of the preset, or '' for the default preset of the search.
    project : Path or None
        Project folder for the results, if the user selected one.
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

"""What a form begins with when a search goes on from the results of another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["NOTHING", "FormPrefill"]


@dataclass(frozen=True)
class FormPrefill:
    """Files by the names of the search's inputs, which take the place of those that stand there, values of parameters, and texts that
    are pasted into inputs; and files of the tables that are made in the form, by their options.
    """

    inputs: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    pasted: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Path] = field(default_factory=dict)


NOTHING = FormPrefill()

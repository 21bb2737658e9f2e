"""What a file for other programs says about the search besides its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from engine.chemistry.enzymes import Enzyme
    from engine.chemistry.modifications import SearchModification
    from engine.chemistry.tolerance import Tolerance

__all__ = ["SearchDescription", "file_address"]

_DEFAULT_THRESHOLD = 0.01


@dataclass(frozen=True)
class SearchDescription:
    """A search: its files, its parameters and the program's version.

    Attributes
    ----------
    parameters : by name, as the search's own description of parameters has them. Those that the formats have a place for are ``enzyme``,
        ``specificity``, ``missed_cleavages``, ``precursor_tolerance``, ``fragment_tolerance``, ``fixed_modifications``,
        ``variable_modifications``, ``second_pass``, ``second_pass_modifications``, ``decoys``, ``decoy_prefix`` and ``fdr``; each may be
        absent. All are written as names and values too, where the format has room.
    spectra, databases : the files that were read, as paths.
    version : of the program; empty: not said.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    spectra: Sequence[str] = ()
    databases: Sequence[str] = ()
    version: str = ""

    @cached_property
    def enzyme(self) -> Enzyme | None:
        """The cleavage agent, None where the parameters name none."""
        from engine.chemistry.enzymes import enzyme

        name = self.parameters.get("enzyme")
        return enzyme(name) if name else None

    @property
    def specificity(self) -> str:
        """How many ends of a peptide the enzyme must have cut: ``specific``, ``semi-specific`` or ``non-specific``."""
        return str(self.parameters.get("specificity", "specific"))

    @property
    def missed_cleavages(self) -> int | None:
        """Sites within a peptide that may be left, None where the parameters do not say."""
        return self.parameters.get("missed_cleavages")

    @property
    def threshold(self) -> float:
        """The false discovery rate at which results count."""
        return float(self.parameters.get("fdr", _DEFAULT_THRESHOLD))

    @property
    def decoy_prefix(self) -> str:
        """What accessions of decoys begin with, empty where the parameters do not say."""
        return str(self.parameters.get("decoy_prefix", ""))

    def tolerance(self, name: str) -> Tolerance | None:
        """The tolerance of that name, None where there is none."""
        from engine.chemistry.tolerance import Tolerance

        text = self.parameters.get(name)
        return Tolerance.parse(text) if text else None

    @cached_property
    def modifications(self) -> tuple[tuple[SearchModification, bool], ...]:
        """The modifications looked for, each with whether it is fixed; each once."""
        from engine.chemistry.modifications import parse_modification

        variable = list(self.parameters.get("variable_modifications", ()))
        if self.parameters.get("second_pass"):
            variable += self.parameters.get("second_pass_modifications", ())
        fixed = dict.fromkeys(map(parse_modification, self.parameters.get("fixed_modifications", ())), True)
        return tuple({**dict.fromkeys(map(parse_modification, variable), False), **fixed}.items())

    def named_values(self) -> list[tuple[str, str]]:
        """All parameters as names and texts, for formats that take any: booleans as true and false, lists joined by commas."""
        return [(name, _text(value)) for name, value in self.parameters.items()]

    def address_of(self, file: str) -> str:
        """Address of a spectrum file as the tables name it; a bare name is looked up among `spectra`."""
        for path in self.spectra:
            if str(path) == file or Path(path).name == file:
                return file_address(str(path))
        return file_address(file)


def file_address(path: str) -> str:
    """A path as a URI; one that is not absolute stays relative, since nobody knows to what."""
    return Path(path).as_uri() if Path(path).is_absolute() else quote(Path(path).as_posix())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return "" if value is None else str(value)

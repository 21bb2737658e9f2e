"""Description of a search in the headers of exported files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from proteoscope.engine import chemistry
from proteoscope.engine.chemistry.enzymes import SPECIFICITIES, enzyme
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.matches.pass_records import requested_passes, widest
from proteoscope.engine.parameters import list_text
from proteoscope.engine.peptides.database_decoys import decoy_pattern
from proteoscope.engine.shared_names import distinct_names, relative_name

if TYPE_CHECKING:
    from proteoscope.engine.chemistry.enzymes import Enzyme
    from proteoscope.engine.chemistry.modifications import SearchModification
    from proteoscope.engine.matches.pass_records import PassRecord

__all__ = ["SearchDescription", "file_addresses"]

_DEFAULT_THRESHOLD = 0.01
_USUAL_MASS = 1500.0  # Da, typical peptide mass


@dataclass(frozen=True)
class SearchDescription:
    """Search whose results are exported: parameters, input files, passes and program version.

    Attributes
    ----------
    parameters : mapping of str to Any
        Requested parameters. Formats have fields for ``enzyme``, ``specificity``, ``missed_cleavages``, ``precursor_tolerance``,
        ``fragment_tolerance``, ``fixed_modifications``, ``variable_modifications``, ``second_pass``, ``second_pass_modifications``,
        ``decoys``, ``decoy_prefix``, ``decoy_suffix`` and ``fdr``; each of these parameters may be missing. If the format allows it, all
        parameters are also written as names and values.
    spectra, databases : sequence of str
        Paths of input files; if empty, the paths are taken from the passes.
    version : str
        Program version, or ''.
    done : sequence of PassRecord
        Settings that the passes used; if empty, those that `parameters` request are used. If a format has one field for all passes, the
        field contains the widest tolerance, the lowest specificity, or all modifications.
    engine : str
        Name of another search engine whose matches were imported, or ''.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    spectra: Sequence[str] = ()
    databases: Sequence[str] = ()
    version: str = ""
    done: Sequence[PassRecord] = ()
    engine: str = ""

    @cached_property
    def passes(self) -> tuple[PassRecord, ...]:
        """Passes of the search; empty if neither the passes nor the parameters that determine them are known."""
        return tuple(self.done) or requested_passes(self.parameters)

    @property
    def spectrum_files(self) -> Sequence[str]:
        """Paths of the spectrum files."""
        return self.spectra or tuple(dict.fromkeys(path for search_pass in self.passes for path in search_pass.spectra))

    @property
    def database_files(self) -> Sequence[str]:
        """Paths in `databases`, followed by the names of further FASTA files in the passes, such as contaminants (without folders)."""
        given = [f"/{Path(path).as_posix()}" for path in self.databases]
        recorded = (path for search_pass in self.passes for path in search_pass.databases)
        others = (path for path in recorded if not any(stored.endswith(f"/{path}") for stored in given))
        return tuple(dict.fromkeys((*self.databases, *others)))

    @property
    def searches_only_found_proteins(self) -> bool:
        """True if no pass searched all proteins of the databases."""
        return bool(self.passes) and all(search_pass.proteins == "found" for search_pass in self.passes)

    @cached_property
    def enzyme(self) -> Enzyme | None:
        """Cleavage agent; None if unknown."""
        name = self.parameters.get("enzyme")
        return enzyme(name) if name else None

    @property
    def specificity(self) -> str:
        """Lowest specificity of all passes: ``specific``, ``semi-specific`` or ``non-specific``."""
        requested = str(self.parameters.get("specificity", "specific"))
        return max((search_pass.specificity for search_pass in self.passes), key=SPECIFICITIES.index, default=requested)

    @property
    def missed_cleavages(self) -> int | None:
        """Maximum number of missed cleavages; None if unknown."""
        return self.parameters.get("missed_cleavages")

    @property
    def threshold(self) -> float:
        """False discovery rate at which results are accepted."""
        return float(self.parameters.get("fdr", _DEFAULT_THRESHOLD))

    @property
    def decoy_prefix(self) -> str:
        """Prefix of decoy accessions, or ''."""
        return str(self.parameters.get("decoy_prefix", ""))

    @property
    def decoy_pattern(self) -> str:
        """Regular expression of decoy accessions, or ''."""
        if self.parameters.get("decoys") == "existing":
            return decoy_pattern(self.decoy_prefix, str(self.parameters.get("decoy_suffix", "")))
        return f"^{re.escape(self.decoy_prefix)}" if self.decoy_prefix else ""

    def tolerance(self, name: str) -> chemistry.tolerance.Tolerance | None:
        """Return the widest value of the tolerance `name` in all passes; None if unknown."""
        if result := widest(getattr(search_pass, name) for search_pass in self.passes):
            return result
        text = self.parameters.get(name)
        return chemistry.tolerance.Tolerance.parse(str(text)) if text else None

    @cached_property
    def precursor_range(self) -> tuple[chemistry.tolerance.Tolerance, chemistry.tolerance.Tolerance] | None:
        """Maximum differences of precursor masses below and above the peptide mass; None if unknown.

        For an open search, these are the limits of the mass shift; for other searches, the widest precursor tolerances of all passes.
        """
        tolerance = self.tolerance("precursor_tolerance")
        if tolerance is None:
            return None
        shifts = [search_pass.mass_shift for search_pass in self.passes if search_pass.mass_shift is not None]
        if not shifts:
            lighter, heavier = (widest(search_pass.precursor_range[end] for search_pass in self.passes) or tolerance for end in (0, 1))
            return lighter, heavier
        least = round(tolerance.width(_USUAL_MASS), 6)
        low, high = min(low for low, _ in shifts), max(high for _, high in shifts)
        return chemistry.tolerance.Tolerance(max(-low, least), "Da"), chemistry.tolerance.Tolerance(max(high, least), "Da")

    @cached_property
    def modifications(self) -> tuple[tuple[SearchModification, bool], ...]:
        """Pairs of a modification that a pass searched, and True if the modification is fixed; without duplicates."""
        variable = [name for search_pass in self.passes for name in search_pass.variable_modifications] or self.parameters.get(
            "variable_modifications", ()
        )
        every = [name for search_pass in self.passes for name in search_pass.fixed_modifications] or self.parameters.get(
            "fixed_modifications", ()
        )
        fixed = dict.fromkeys(map(parse_modification, every), True)
        names = [name for search_pass in self.passes for name in search_pass.known_modifications]
        return tuple({**dict.fromkeys(map(parse_modification, (*variable, *names)), False), **fixed}.items())

    def named_values(self) -> list[tuple[str, str]]:
        """Return all parameters as names and texts; booleans are ``true`` or ``false``, items of lists are joined by commas.

        If a pass used another value of the parameter NAME than requested, the requested value has the name ``asked_NAME``. The used value
        has the name ``NAME`` if all passes used the same value; otherwise there are several names such as ``NAME (first pass)``.
        """
        used = {name: [_text(value) for value in values] for name, values in self._used_settings.items()}
        settings = []
        for name, value in self.parameters.items():
            texts = used.pop(name, [_text(value)])
            if texts == [_text(value)] * len(texts):
                settings.append((name, _text(value)))
            else:
                settings.append((f"asked_{name}", _text(value)))
                settings += self._named_by_pass(name, texts)
        return settings + [(f"{search_pass.name} pass", search_pass.sentence()) for search_pass in self.done]

    @cached_property
    def _used_settings(self) -> dict[str, list[Any]]:
        """Values of each parameter that the passes used, by parameter name."""
        names = ("precursor_tolerance", "isotope_errors", "specificity", "variable_modifications")
        return {name: [getattr(search_pass, name) for search_pass in self.done] for name in names} if self.done else {}

    def _named_by_pass(self, name: str, texts: list[str]) -> list[tuple[str, str]]:
        if len(set(texts)) == 1:
            return [(name, texts[0])]
        return [(f"{name} ({search_pass.name} pass)", text) for search_pass, text in zip(self.done, texts, strict=True)]

    def paths(self, files: Sequence[str]) -> dict[str, str]:
        """Return a dictionary from each name in `files` (spectrum files named in tables) to its path in `spectrum_files`.

        The path of a name is the only path that ends with the name; if there is no such path, or several, the name itself is used instead.
        Longer names are assigned first, and each path is assigned to one name only.
        """
        result: dict[str, str] = {}
        free = {str(path): _inner_parts(path) for path in dict.fromkeys(self.spectrum_files)}
        for file in sorted(files, key=lambda name: (name not in free, -len(_inner_parts(name)), name)):
            parts = _inner_parts(file)
            ends = [file] if file in free else [path for path, parts_of_file in free.items() if parts_of_file[-len(parts) :] == parts]
            result[file] = ends[0] if len(ends) == 1 else file
            if len(ends) == 1:
                del free[ends[0]]
        return {file: result[file] for file in files}


def file_addresses(paths: Sequence[str], folder: Path) -> list[str]:
    """Return a relative URI for each path, relative to `folder`.

    If a path is not below or near `folder`, or contains the user's name, its address is the file name only.
    """
    return [quote(relative_name(path, folder, name)) for path, name in zip(paths, distinct_names(paths), strict=True)]


def _inner_parts(path: str) -> tuple[str, ...]:
    """Return the components of a path without ``..``."""
    return tuple(part for part in Path(os.path.normpath(path)).parts if part != "..")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return list_text(map(_text, value))
    return "" if value is None else str(value)

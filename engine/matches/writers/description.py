"""Description of the search in files for other programs."""

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
_USUAL_MASS = 1500.0  # dalton, of a peptide


@dataclass(frozen=True)
class SearchDescription:
    """A search: files, parameters, passes and program version.

    Attributes
    ----------
    parameters
        By name. Formats have fields for ``enzyme``, ``specificity``, ``missed_cleavages``, ``precursor_tolerance``, ``fragment_tolerance``,
        ``fixed_modifications``, ``variable_modifications``, ``second_pass``, ``second_pass_modifications``, ``decoys``, ``decoy_prefix``,
        ``decoy_suffix`` and ``fdr``; each may be absent. All are also written as names and values if the format allows: what was requested.
    done
        The passes as used, by default those requested by parameters. Single fields of a format hold for all of them: the widest tolerance,
        the fewest required enzymatic ends, all modifications.
    spectra, databases
        Paths of input files; by default those named by the passes.
    version
        Program version, or ''.
    engine
        Another search engine that found the matches, converted by the program, or ''.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    spectra: Sequence[str] = ()
    databases: Sequence[str] = ()
    version: str = ""
    done: Sequence[PassRecord] = ()
    engine: str = ""

    @cached_property
    def passes(self) -> tuple[PassRecord, ...]:
        """The passes; empty if neither they nor enough parameters are known."""
        return tuple(self.done) or requested_passes(self.parameters)

    @property
    def spectrum_files(self) -> Sequence[str]:
        """The spectrum files."""
        return self.spectra or tuple(dict.fromkeys(path for search_pass in self.passes for path in search_pass.spectra))

    @property
    def database_files(self) -> Sequence[str]:
        """The FASTA files, contaminants among them where the passes name them; a record has names without folders."""
        given = [f"/{Path(path).as_posix()}" for path in self.databases]
        recorded = (path for search_pass in self.passes for path in search_pass.databases)
        others = (path for path in recorded if not any(stored.endswith(f"/{path}") for stored in given))
        return tuple(dict.fromkeys((*self.databases, *others)))

    @property
    def searches_found_proteins_alone(self) -> bool:
        """True if no pass searched all proteins of the databases."""
        return bool(self.passes) and all(search_pass.proteins == "found" for search_pass in self.passes)

    @cached_property
    def enzyme(self) -> Enzyme | None:
        """Cleavage agent, or None."""
        name = self.parameters.get("enzyme")
        return enzyme(name) if name else None

    @property
    def specificity(self) -> str:
        """Required enzymatic ends in every pass: ``specific``, ``semi-specific`` or ``non-specific``."""
        requested = str(self.parameters.get("specificity", "specific"))
        return max((search_pass.specificity for search_pass in self.passes), key=SPECIFICITIES.index, default=requested)

    @property
    def missed_cleavages(self) -> int | None:
        """Maximum missed cleavages, or None."""
        return self.parameters.get("missed_cleavages")

    @property
    def threshold(self) -> float:
        """The false discovery rate at which results count."""
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
        """Return the tolerance of that name that holds in every pass, or None."""
        if result := widest(getattr(search_pass, name) for search_pass in self.passes):
            return result
        text = self.parameters.get(name)
        return chemistry.tolerance.Tolerance.parse(str(text)) if text else None

    @cached_property
    def precursor_range(self) -> tuple[chemistry.tolerance.Tolerance, chemistry.tolerance.Tolerance] | None:
        """Maximum mass by which precursors may be lighter and heavier than their peptides: mass shifts, or the widest tolerances."""
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
        """The modifications looked for in any pass, each with whether it is fixed; each once."""
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
        """Return all parameters as names and texts: booleans as true and false, lists joined by commas.

        A parameter used otherwise than requested is named ``asked_NAME``; its own name has the used value, if all passes agree, else
        ``NAME (first pass)`` and so on.
        """
        used = {name: [_text(value) for value in values] for name, values in self._used.items()}
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
    def _used(self) -> dict[str, list[Any]]:
        """Settings used by the passes, by parameter name."""
        names = ("precursor_tolerance", "isotope_errors", "specificity", "variable_modifications")
        return {name: [getattr(search_pass, name) for search_pass in self.done] for name in names} if self.done else {}

    def _named_by_pass(self, name: str, texts: list[str]) -> list[tuple[str, str]]:
        if len(set(texts)) == 1:
            return [(name, texts[0])]
        return [(f"{name} ({search_pass.name} pass)", text) for search_pass, text in zip(self.done, texts, strict=True)]

    def paths(self, files: Sequence[str]) -> dict[str, str]:
        """Return the path of each spectrum file named in the tables; relative paths are matched to the ends of spectrum files.

        The longest paths are matched first, and each file once.
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
    """Return a relative URI for each path: from `folder`, or a name where that would lead far away or name the user."""
    return [quote(relative_name(path, folder, name)) for path, name in zip(paths, distinct_names(paths), strict=True)]


def _inner_parts(path: str) -> tuple[str, ...]:
    """Parts of a path without the steps that lead out of the working folder."""
    return tuple(part for part in Path(os.path.normpath(path)).parts if part != "..")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return list_text(map(_text, value))
    return "" if value is None else str(value)

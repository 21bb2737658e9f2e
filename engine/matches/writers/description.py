"""What a file for other programs says about the search besides its results."""

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
from proteoscope.engine.matches.search_passes import asked_passes, widest
from proteoscope.engine.parameters import list_text
from proteoscope.engine.peptides.own_decoys import decoy_pattern
from proteoscope.engine.shared_names import distinct_names, relative_name

if TYPE_CHECKING:
    from proteoscope.engine.chemistry.enzymes import Enzyme
    from proteoscope.engine.chemistry.modifications import SearchModification
    from proteoscope.engine.matches.search_passes import SearchPass

__all__ = ["SearchDescription", "file_addresses"]

_DEFAULT_THRESHOLD = 0.01
_USUAL_MASS = 1500.0  # dalton, of a peptide


@dataclass(frozen=True)
class SearchDescription:
    """A search: its files, its parameters, what was done with them, and the program's version.

    Attributes
    ----------
    parameters : by name, as the search's own description of parameters has them. Those that the formats have a place for are ``enzyme``,
        ``specificity``, ``missed_cleavages``, ``precursor_tolerance``, ``fragment_tolerance``, ``fixed_modifications``,
        ``variable_modifications``, ``second_pass``, ``second_pass_modifications``, ``decoys``, ``decoy_prefix``, ``decoy_suffix`` and
        ``fdr``; each may be absent. All are written as names and values too, where the format has room: what was asked for.
    done : the passes, as they were done; where nobody tells, those that the parameters ask for. What a format says once of the whole search
        is true for all of them: the widest tolerance, the fewest ends that the enzyme must have cut, all modifications.
    spectra, databases : the files that were read, as paths; where none are given, those that the passes name.
    version : of the program; empty: not said. engine : another search engine that found the matches, which the program converted; empty
        where the program found them itself.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    spectra: Sequence[str] = ()
    databases: Sequence[str] = ()
    version: str = ""
    done: Sequence[SearchPass] = ()
    engine: str = ""

    @cached_property
    def passes(self) -> tuple[SearchPass, ...]:
        """The passes; none where neither they nor enough parameters are known."""
        return tuple(self.done) or asked_passes(self.parameters)

    @property
    def spectrum_files(self) -> Sequence[str]:
        """The spectrum files."""
        return self.spectra or tuple(dict.fromkeys(path for search_pass in self.passes for path in search_pass.spectra))

    @property
    def database_files(self) -> Sequence[str]:
        """The FASTA files, contaminants among them where the passes name them; a record has names without folders."""
        given = [f"/{Path(path).as_posix()}" for path in self.databases]
        recorded = (path for search_pass in self.passes for path in search_pass.databases)
        others = (path for path in recorded if not any(known.endswith(f"/{path}") for known in given))
        return tuple(dict.fromkeys((*self.databases, *others)))

    @property
    def searches_found_proteins_alone(self) -> bool:
        """Whether no pass searched all proteins of the databases."""
        return bool(self.passes) and all(search_pass.proteins == "found" for search_pass in self.passes)

    @cached_property
    def enzyme(self) -> Enzyme | None:
        """The cleavage agent, None where the parameters name none."""
        name = self.parameters.get("enzyme")
        return enzyme(name) if name else None

    @property
    def specificity(self) -> str:
        """How many ends of a peptide the enzyme must have cut, in every pass: ``specific``, ``semi-specific`` or ``non-specific``."""
        requested = str(self.parameters.get("specificity", "specific"))
        return max((search_pass.specificity for search_pass in self.passes), key=SPECIFICITIES.index, default=requested)

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

    @property
    def decoy_pattern(self) -> str:
        """Regular expression of the accessions of decoys; empty if the parameters do not say."""
        if self.parameters.get("decoys") == "existing":
            return decoy_pattern(self.decoy_prefix, str(self.parameters.get("decoy_suffix", "")))
        return f"^{re.escape(self.decoy_prefix)}" if self.decoy_prefix else ""

    def tolerance(self, name: str) -> chemistry.tolerance.Tolerance | None:
        """The tolerance of that name that holds in every pass, None where there is none."""
        if result := widest(getattr(search_pass, name) for search_pass in self.passes):
            return result
        text = self.parameters.get(name)
        return chemistry.tolerance.Tolerance.parse(str(text)) if text else None

    @cached_property
    def precursor_range(self) -> tuple[chemistry.tolerance.Tolerance, chemistry.tolerance.Tolerance] | None:
        """What a precursor may be lighter and heavier by than the residues of its peptide: mass shifts, or the widest tolerances."""
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
        known = [name for search_pass in self.passes for name in search_pass.known_modifications]
        return tuple({**dict.fromkeys(map(parse_modification, (*variable, *known)), False), **fixed}.items())

    def named_values(self) -> list[tuple[str, str]]:
        """All parameters as names and texts, for formats that take any: booleans as true and false, lists joined by commas.

        A parameter that the passes used otherwise than it was asked for is called ``asked_NAME``. Under its own name stands what was used,
        that of all passes where they agree, else as ``NAME (first pass)``.
        """
        used = {name: [_text(value) for value in values] for name, values in self._used.items()}
        settings = []
        for name, value in self.parameters.items():
            texts = used.pop(name, [_text(value)])
            if texts == [_text(value)] * len(texts):
                settings.append((name, _text(value)))
            else:
                settings.append((f"asked_{name}", _text(value)))
                settings += self._told_by_pass(name, texts)
        return settings + [(f"{one.name} pass", one.sentence()) for one in self.done]

    @cached_property
    def _used(self) -> dict[str, list[Any]]:
        """Settings that the passes used, by the names of the parameters that say what was asked for."""
        names = ("precursor_tolerance", "isotope_errors", "specificity", "variable_modifications")
        return {name: [getattr(one, name) for one in self.done] for name in names} if self.done else {}

    def _told_by_pass(self, name: str, texts: list[str]) -> list[tuple[str, str]]:
        if len(set(texts)) == 1:
            return [(name, texts[0])]
        return [(f"{name} ({one.name} pass)", text) for one, text in zip(self.done, texts, strict=True)]

    def paths(self, files: Sequence[str]) -> dict[str, str]:
        """Return the path of each spectrum file as the tables name it; a relative path is looked up among the spectrum files.

        Several of them may end in such a path: the longest paths are looked up first, and each file is found once.
        """
        result: dict[str, str] = {}
        free = {str(path): _inner_parts(path) for path in dict.fromkeys(self.spectrum_files)}
        for file in sorted(files, key=lambda name: (name not in free, -len(_inner_parts(name)), name)):
            parts = _inner_parts(file)
            ends = [file] if file in free else [path for path, own in free.items() if own[-len(parts) :] == parts]
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

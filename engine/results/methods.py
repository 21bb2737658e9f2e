"""How a run was done, as a paragraph for a paper: what searches tell of themselves, and what all of them have in common.

Sentences are made from the record of the run alone: what was done, not what the program usually does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

__all__ = ["Methods", "MethodsWriter", "RunFacts", "listed", "number_text", "paragraph"]

_MAXIMUM_NAMES = 6
_MAXIMUM_LETTERS = 120


@dataclass(frozen=True)
class RunFacts:
    """A finished run, as its project tells it; all of it may be a stranger's.

    Attributes
    ----------
    search : the name of its search, in words. version : of the program. device : what computed.
    files : kind and name of each file that it read. parameters : by name, with the defaults for those that its record does not have.
    record : what ``run.json`` holds. messages : what the run said.
    """

    search: str
    version: str
    device: str
    files: tuple[tuple[str, str], ...]
    parameters: Mapping[str, Any]
    record: Mapping[str, Any]
    messages: tuple[str, ...] = ()

    def names(self, *kinds: str) -> list[str]:
        """Names of its files of some kinds."""
        return [name for kind, name in self.files if kind in kinds]

    def count(self, name: str) -> int | None:
        """A count of the record; None where it has none."""
        counts = self.record.get("counts")
        value = counts.get(name) if isinstance(counts, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    def text(self, name: str) -> str:
        """A parameter as people write it; empty where it has no value."""
        value = self.parameters.get(name)
        if isinstance(value, list | tuple):
            return ", ".join(map(str, value))
        return number_text(value) if isinstance(value, float) else "" if value is None else str(value)

    def said(self, beginning: str) -> str:
        """The last message that begins so; empty where there is none."""
        return next((one for one in reversed(self.messages) if one.startswith(beginning)), "")


@dataclass(frozen=True)
class Methods:
    """Sentences, and the literature that they stand on."""

    sentences: Sequence[str]
    citations: Sequence[str] = field(default_factory=tuple)


MethodsWriter = Callable[[RunFacts], Methods]
"""What a search's entry names: tells how a run was done."""


def paragraph(facts: RunFacts, methods: Methods | None, preset: str = "", changed: Sequence[tuple[str, str]] = ()) -> str:
    """The paragraph and its references, plain text.

    Parameters
    ----------
    methods : what the search tells; of None only what all searches have in common is told.
    preset : the one whose values the parameters had, empty for the defaults. changed : titles and values of those that differ from it.
    """
    version = f" {facts.version}" if facts.version else ""
    sentences = [*(_common_sentences(facts) if methods is None else methods.sentences), _parameters_sentence(preset, changed)]
    first = f"Data were analysed with Proteoscope{version} ({facts.search})."
    device = f" It was computed on {facts.device}." if facts.device else ""
    text = " ".join([first, *(one for one in sentences if one)]) + device
    citations = list(dict.fromkeys(methods.citations)) if methods is not None else []
    return "\n".join([text, *(["", "References", *citations] if citations else [])])


def _common_sentences(facts: RunFacts) -> list[str]:
    kinds = dict.fromkeys(kind for kind, _ in facts.files)
    sentences = [f"Files of {kind}: {listed(facts.names(kind))}." for kind in kinds]
    counts = facts.record.get("counts")
    if isinstance(counts, dict):
        told = [f"{number_text(value)} {str(name).replace('_', ' ')}" for name, value in counts.items() if isinstance(value, int | float)]
        sentences.append(f"Counted: {', '.join(told)}." if told else "")
    return sentences


def _parameters_sentence(preset: str, changed: Sequence[tuple[str, str]]) -> str:
    usual = f"those of the preset {preset}" if preset else "the defaults"
    values = "; ".join(f"{title}: {value}" for title, value in changed)
    return f"Parameters were {usual}, but for these: {values}." if values else f"All parameters were {usual}."


def listed(names: Sequence[str]) -> str:
    """Names of files, the first of many, as ``a.mzML, b.mzML and 3 more``."""
    bare = [PurePath(name).name[:_MAXIMUM_LETTERS] for name in names]
    shown, n_more = bare[:_MAXIMUM_NAMES], len(bare) - _MAXIMUM_NAMES
    if n_more > 0:
        return f"{', '.join(shown)} and {n_more:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def number_text(value: float) -> str:
    """A number as people write it, as ``1,120`` or ``0.05``."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"

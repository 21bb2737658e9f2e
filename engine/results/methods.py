"""Methods paragraph of a run: sentences specific to its search, and sentences common to all searches.

The sentences are based only on the record of the run and therefore describe what the run did.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

__all__ = ["Methods", "MethodsWriter", "RunFacts", "listed", "number_text", "paragraph"]

_MAXIMUM_NAMES = 6
_MAXIMUM_CHARACTERS = 120


@dataclass(frozen=True)
class RunFacts:
    """Facts about a finished run from its project; texts may be untrusted.

    Attributes
    ----------
    search
        Display name of the search.
    version
        Version of the program that executed the run.
    device
        Names of the devices that the run used.
    files
        Kind and name of each input file, in pairs.
    parameters
        Parameter values by name, with defaults for parameters that the run did not record.
    record
        Content of ``run.json``.
    messages
        Messages of the run, in order.
    """

    search: str
    version: str
    device: str
    files: tuple[tuple[str, str], ...]
    parameters: Mapping[str, Any]
    record: Mapping[str, Any]
    messages: tuple[str, ...] = ()

    def names(self, *kinds: str) -> list[str]:
        """Return the names of the input files of the given kinds."""
        return [name for kind, name in self.files if kind in kinds]

    def count(self, name: str) -> int | None:
        """Return a count from the record, or None if it is missing or invalid."""
        counts = self.record.get("counts")
        value = counts.get(name) if isinstance(counts, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    def text(self, name: str) -> str:
        """Return the value of a parameter as text; '' if it has no value."""
        value = self.parameters.get(name)
        if isinstance(value, list | tuple):
            return ", ".join(map(str, value))
        return number_text(value) if isinstance(value, float) else "" if value is None else str(value)

    def said(self, beginning: str) -> str:
        """Return the last message of the run that starts with the text `beginning`, or ''."""
        return next((message for message in reversed(self.messages) if message.startswith(beginning)), "")


@dataclass(frozen=True)
class Methods:
    """Sentences on the methods of a search, and the references that they cite."""

    sentences: Sequence[str]
    citations: Sequence[str] = field(default_factory=tuple)


MethodsWriter = Callable[[RunFacts], Methods]
"""Function that returns the sentences on the methods of a run; named by the entry of a search."""


def paragraph(facts: RunFacts, methods: Methods | None, preset: str = "", changed: Sequence[tuple[str, str]] = ()) -> str:
    """Return the methods paragraph and its references as plain text.

    Parameters
    ----------
    methods
        Sentences specific to the search; None for only the sentences common to all searches.
    preset
        Name of the preset with the most similar parameters; '' for the defaults.
    changed
        Titles and values of the parameters that differ from the preset.
    """
    version = f" {facts.version}" if facts.version else ""
    sentences = [*(_common_sentences(facts) if methods is None else methods.sentences), _parameters_sentence(preset, changed)]
    first = f"Data were analysed with Proteoscope{version} ({facts.search})."
    device = f" It was computed on {facts.device}." if facts.device else ""
    text = " ".join([first, *(sentence for sentence in sentences if sentence)]) + device
    citations = list(dict.fromkeys(methods.citations)) if methods is not None else []
    return "\n".join([text, *(["", "References", *citations] if citations else [])])


def _common_sentences(facts: RunFacts) -> list[str]:
    kinds = dict.fromkeys(kind for kind, _ in facts.files)
    sentences = [f"Files of {kind}: {listed(facts.names(kind))}." for kind in kinds]
    counts = facts.record.get("counts")
    if isinstance(counts, dict):
        reported = [
            f"{number_text(value)} {str(name).replace('_', ' ')}" for name, value in counts.items() if isinstance(value, int | float)
        ]
        sentences.append(f"Counted: {', '.join(reported)}." if reported else "")
    return sentences


def _parameters_sentence(preset: str, changed: Sequence[tuple[str, str]]) -> str:
    usual = f"as in the preset {preset}" if preset else "the defaults"
    values = "; ".join(f"{title}: {value}" for title, value in changed)
    return f"Parameters were {usual}, but for these: {values}." if values else f"All parameters were {usual}."


def listed(names: Sequence[str]) -> str:
    """Return the names of files, or the first names and the number of further files, such as ``a.mzML, b.mzML and 3 more``."""
    bare = [PurePath(name).name[:_MAXIMUM_CHARACTERS] for name in names]
    shown, n_more = bare[:_MAXIMUM_NAMES], len(bare) - _MAXIMUM_NAMES
    if n_more > 0:
        return f"{', '.join(shown)} and {n_more:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def number_text(value: float) -> str:
    """Return a number as text, such as ``1,120`` or ``0.05``."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"

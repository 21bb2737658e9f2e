"""Counts of results with their uncertainty, and facts of runs, for summaries, methods paragraphs and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple

__all__ = [
    "FEW",
    "WITHOUT_DECOYS",
    "Count",
    "FalseShareInterval",
    "Methods",
    "MethodsWriter",
    "RunFacts",
    "counted",
    "listed",
    "nothing_accepted_warning",
    "number_text",
    "paragraph",
]

FEW = 100
"""Number of matches below which a remark is shown, since 1 % of the matches is less than one match."""


WITHOUT_DECOYS = "There are no decoys and no q-values. The tables contain, including false matches:"
"""Remark for counts whose uncertainty is unknown."""


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun; the default plural is `singular` with an s.

    >>> counted(1, "protein"), counted(2000, "protein"), counted(0, "query", "queries")
    ('1 protein', '2,000 proteins', '0 queries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


class FalseShareInterval(NamedTuple):
    """Uncertainty of a count: number of accepted decoys, and 95 % confidence interval of the fraction of false matches.

    Attributes
    ----------
    at_5_percent
        Number accepted at 5 % FDR, if the count is below `FEW`; otherwise None.
    nothing_at
        False discovery rate of the run, if nothing is accepted at this rate, but something is accepted at 5 %; otherwise None.

    Examples
    --------
    >>> FalseShareInterval(0, 0.0, 1.0, 103, 0.01).nothing_accepted
    '0 at 1 % FDR; 103 at 5 % FDR'
    """

    decoys: int
    low: float
    high: float
    at_5_percent: int | None = None
    nothing_at: float | None = None

    @property
    def nothing_accepted(self) -> str:
        """Text with the numbers accepted at the run's FDR and at 5 % FDR, if nothing is accepted at the run's FDR; otherwise ''."""
        if self.nothing_at is None or self.at_5_percent is None:
            return ""
        return f"0 at {self.nothing_at * 100:.3g} % FDR; {self.at_5_percent:,} at 5 % FDR"

    @property
    def text(self) -> str:
        """Text with the number of decoys, the interval and, for small counts, the number accepted at 5 %."""
        if self.nothing_accepted:
            return self.nothing_accepted
        few = "" if self.at_5_percent is None else f"; few: {self.at_5_percent:,} at 5 %"
        return f"with {counted(self.decoys, 'decoy')}: {self.low * 100:.1f} to {self.high * 100:.1f} % false (95 % interval){few}"


class Count(NamedTuple):
    """Count with its singular and plural noun, its uncertainty (None if unknown), and a `total` that includes it (None if not shown)."""

    number: int
    singular: str
    plural: str
    certainty: FalseShareInterval | None = None
    total: int | None = None

    @classmethod
    def from_acceptance(
        cls, number: int, singular: str, plural: str, certainty: Mapping[str, float], fdr: float | None = None, total: int | None = None
    ) -> Count:
        """Return a count with its uncertainty.

        `certainty` is a result of `proteoscope.engine.matches.tables.AcceptanceCounts.certainty`; `fdr` is the false discovery rate, if
        known.
        """
        looser = certainty.get("targets_at_5_percent")
        at_5_percent = int(looser) if looser and number < FEW else None
        nothing_at = fdr if not number and at_5_percent else None
        low, high = certainty["false_share_low"], certainty["false_share_high"]
        return cls(number, singular, plural, FalseShareInterval(int(certainty["decoys"]), low, high, at_5_percent, nothing_at), total)

    def line(self, more: str = "") -> str:
        """Return a line of text with the count; `more` is inserted after the noun."""
        name = f"{self.noun}{more}"
        if self.certainty is None:
            return f"  {self.number:,} {name}"
        if self.certainty.nothing_accepted:
            return f"  {name}: {self.certainty.nothing_accepted}"
        return f"  {self.number:,} {name}, {self.certainty.text}"

    @property
    def noun(self) -> str:
        """Singular or plural noun, depending on the count."""
        return self.singular if self.number == 1 else self.plural


def nothing_accepted_warning(counts: Mapping[str, float], fdr: float) -> str:
    """Return a warning if a search accepts no match at its false discovery rate, but would accept matches at 5 %; otherwise ''.

    Parameters
    ----------
    counts : mapping
        Numbers of accepted matches (see `Count.from_acceptance`), with the key ``targets``.
    fdr : float
        False discovery rate of the search.

    Examples
    --------
    >>> counts = {"targets": 0, "decoys": 0, "false_share_low": 0.0, "false_share_high": 1.0, "targets_at_5_percent": 103}
    >>> nothing_accepted_warning(counts, 0.01), nothing_accepted_warning(counts | {"targets_at_5_percent": 0}, 0.01)
    ('No match is accepted: 0 at 1 % FDR; 103 at 5 % FDR', '')
    """
    certainty = Count.from_acceptance(int(counts["targets"]), "match", "matches", counts, fdr).certainty
    numbers = "" if certainty is None else certainty.nothing_accepted
    return f"No match is accepted: {numbers}" if numbers else ""


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

    def last_message(self, beginning: str) -> str:
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
    return f"Parameters were {usual}, except for these: {values}." if values else f"All parameters were {usual}."


def listed(names: Sequence[str]) -> str:
    """Return the names of files as text; of many files, only the first names and the number of others (``a.mzML, b.mzML and 3 more``)."""
    bare = [PurePath(name).name[:_MAXIMUM_CHARACTERS] for name in names]
    shown, n_more = bare[:_MAXIMUM_NAMES], len(bare) - _MAXIMUM_NAMES
    if n_more > 0:
        return f"{', '.join(shown)} and {n_more:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def number_text(value: float) -> str:
    """Return a number as text, such as ``1,120`` or ``0.05``."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"

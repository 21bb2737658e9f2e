"""Names of the classes of matches in a search, and their counts for tables, summaries, records and the window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from proteoscope.engine.results.counts import Count, counted

__all__ = ["CLASSES", "FEWEST_TARGETS", "TRANSLATED", "ClassCounts", "ClassRate", "class_texts"]

ClassRate = Literal["group-walk", "transferred", "none", "own decoys"]
"""Method by which the error rate of a class is estimated (see `proteoscope.engine.matches.class_rates`)."""

CLASSES = (
    "specific",
    "isotope error",
    "semi-specific",
    "non-specific",
    "known modification",
    "variant",
    "contaminant",
    "second pass",
)
"""Names of the classes. The first is the main class: both ends of the peptide are sites of the enzyme, and no other class applies."""

TRANSLATED = "reading frame"
"""Name of the main class if the database is translated from nucleotides."""

FEWEST_TARGETS = 20
"""Minimum number of targets that a class needs for an error rate."""


_CERTAINTY = ("targets", "decoys", "false_share_low", "false_share_high", "targets_at_5_percent")
_MAXIMUM = 60  # maximum number of classes, and of characters in a name


class ClassCounts(NamedTuple):
    """Counts of the PSMs in a class.

    Attributes
    ----------
    name : str
        Name of the class.
    method : str
        Method by which its error rate is estimated (`ClassRate`).
    targets_of_any_score : int
        Number of target PSMs in the class, whether accepted or not.
    certainty : mapping of str to float
        Accepted targets and decoys, and the confidence interval of the false fraction (see
        `proteoscope.engine.matches.tables.AcceptanceCounts.certainty`); empty for a class without an error rate.
    """

    name: str
    method: ClassRate
    targets_of_any_score: int
    certainty: Mapping[str, float]

    def record(self) -> dict[str, Any]:
        """Return the counts for ``run.json``."""
        return {"name": self.name, "method": self.method, "targets_of_any_score": self.targets_of_any_score, **self.certainty}

    @property
    def is_listed(self) -> bool:
        """True if the class contains a target, accepted or not; classes with decoys only are not listed."""
        return self.targets_of_any_score > 0

    def line(self, fdr: float) -> str:
        """Return a line of text; `fdr` is the false discovery rate of the search."""
        return f"  {self.name}: {self.text(fdr)}"

    def text(self, fdr: float) -> str:
        """Return the number of accepted matches with its uncertainty and the method, or the reason why none is accepted."""
        if not self.certainty:
            return f"no error rate: {counted(self.targets_of_any_score, 'match', 'matches')}, fewer than {FEWEST_TARGETS}; none is accepted"
        count = Count.from_acceptance(int(self.certainty["targets"]), "PSM", "PSMs", self.certainty, fdr)
        if not count.number and not (count.certainty and count.certainty.nothing_accepted):
            # Without accepted matches, the interval of the false fraction is 0 to 100 %, which is uninformative.
            return f"none of {counted(self.targets_of_any_score, 'match', 'matches')} is accepted ({self.method})"
        return f"{count.line().strip()} ({self.method})"


def class_texts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the name and the text of each class that has targets, from a run's record.

    The record may come from an untrusted file; invalid entries are left out.
    """
    methods: dict[str, ClassRate] = {method: method for method in get_args(ClassRate)}
    classes, parameters = record.get("classes"), record.get("parameters")
    fdr = parameters.get("fdr") if isinstance(parameters, Mapping) else None
    result = []
    for entry in classes[:_MAXIMUM] if isinstance(classes, list) else []:
        if not isinstance(entry, Mapping):
            continue
        name, method, n_targets = (entry.get(key) for key in ("name", "method", "targets_of_any_score"))
        certainty = {key: entry[key] for key in _CERTAINTY if isinstance(entry.get(key), int | float)}
        if not isinstance(name, str) or not isinstance(method, str) or method not in methods or not isinstance(n_targets, int):
            continue
        if len(certainty) in (0, len(_CERTAINTY)):
            counts = ClassCounts(name[:_MAXIMUM], methods[method], n_targets, certainty)
            if counts.is_listed:
                result.append((counts.name, counts.text(float(fdr) if isinstance(fdr, int | float) else 0.01)))
    return result

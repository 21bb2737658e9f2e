"""Parameters and databases in which runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import InputRecord, RunRecord
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.run_account import OF_PROJECT, parameter_text

__all__ = ["ParameterDifference", "parameter_differences"]

_MAXIMUM_CHARACTERS = 60
_DIGITS = 8
_MISSING = "\N{EN DASH}"


@dataclass(frozen=True)
class ParameterDifference:
    """Parameter with different values in several runs.

    Attributes
    ----------
    name, title
        Name of the parameter, ``search``, or name of an input such as ``database``; and its title.
    values
        Value of each run as text; a dash if the run does not have the parameter.
    """

    name: str
    title: str
    values: tuple[str, ...]


def parameter_differences(runs: Sequence[RunRecord], inputs: Sequence[Sequence[InputRecord]]) -> tuple[ParameterDifference, ...]:
    """Return the differences of runs in search, inputs (except spectra) and parameters, in the order of the forms.

    Parameters
    ----------
    runs : sequence of RunRecord
        Runs, also of different searches.
    inputs : sequence of sequence of InputRecord
        Inputs of each run. Files are equal if their contents are equal.
    """
    searches: dict[str, Search] = {}
    for run in runs:
        with suppress(ProteoscopeError):  # a search of another version of the program
            searches[run.kind] = search_of_kind(run.kind)
    titles, values, texts = dict[str, str](), dict[str, list[Any]](), dict[str, list[str]]()

    def add(at: int, name: str, title: str, value: Any, text: str) -> None:
        titles.setdefault(name, title[:_MAXIMUM_CHARACTERS])
        values.setdefault(name, [None] * len(runs))[at] = value
        texts.setdefault(name, [_MISSING] * len(runs))[at] = text

    for at, run in enumerate(runs):
        add(at, "search", "Search", run.kind, searches[run.kind].name if run.kind in searches else run.kind[:_MAXIMUM_CHARACTERS])
    of_inputs = {spec.name: spec.title for search in searches.values() for spec in search.inputs}
    for at, files in enumerate(inputs):
        by_kind: dict[str, list[InputRecord]] = {}
        for file in files:
            if file.kind != "spectra" and not file.kind.startswith(OF_PROJECT):
                by_kind.setdefault(file.kind, []).append(file)
        for kind, some in by_kind.items():
            names = ", ".join(f"{file.path.name} ({file.sha256[:_DIGITS]})" for file in some)
            add(at, kind, of_inputs.get(kind, kind), [file.sha256 for file in some], names[: 2 * _MAXIMUM_CHARACTERS])
    for at, run in enumerate(runs):
        fields = {field.name: field for field in searches[run.kind].model.describe()} if run.kind in searches else {}
        for name in [*fields, *sorted(run.parameters.keys() - fields.keys())]:
            if name in run.parameters:
                title, zero = (fields[name].title, fields[name].zero) if name in fields else (name, "")
                add(at, name[:_MAXIMUM_CHARACTERS], title, run.parameters[name], parameter_text(run.parameters[name], zero))
    return tuple(
        ParameterDifference(name, titles[name], tuple(texts[name]))
        for name, each in values.items()
        if any(value != each[0] for value in each)
    )

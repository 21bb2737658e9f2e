"""Description of a run: files, parameters, passes, times, messages, methods and notes.

It is based only on the records of the project, so that failed runs are described too. The records may be untrusted; sizes are limited.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.matches.class_counts import class_texts
from proteoscope.engine.matches.pass_records import passes_of_run
from proteoscope.engine.parameters import SearchParameters, list_text, preset_names
from proteoscope.engine.project import InputRecord, LogEntry, Project, RunNote, RunRecord
from proteoscope.engine.project.paths import RESULTS
from proteoscope.engine.results.counts import Count, RunFacts, paragraph
from proteoscope.engine.views.run_prediction import RunPrediction, run_prediction

__all__ = ["OF_PROJECT", "NearestPreset", "RunAccount", "ShownParameter", "nearest_preset", "parameter_text", "run_account", "run_title"]

OF_PROJECT = "project_"
"""Prefix of the kinds of inputs that are tables of other runs."""
_MAXIMUM_MESSAGES, _MAXIMUM_LINES, _MAXIMUM_CHARACTERS, _MAXIMUM_FILES = 200, 2000, 2000, 1000
_MAXIMUM_VALUE, _MAXIMUM_NAME = 500, 60
_SUFFIXES = re.compile(
    r"(?:\.(?:mzml|mzxml|mgf|ms2|dta|pkl|fasta|fa|faa|fna|fastq|fq|xml|pep|mzid|pepxml|tsv|txt|csv|idxml|cif|pdb|ent|bcif|gz|d|raw))+$",
    re.I,
)


@dataclass(frozen=True)
class ShownParameter:
    """Parameter of a run as text; `usual` is the value in the nearest preset, and `is_changed` is True if `value` differs from `usual`."""

    name: str
    title: str
    group: str
    unit: str
    help: str
    value: str
    usual: str
    is_changed: bool


@dataclass(frozen=True)
class NearestPreset:
    """Preset nearest to the parameters of a run ('' for the defaults), and the names of the parameters that differ from it."""

    name: str
    changed: frozenset[str]

    @property
    def text(self) -> str:
        """Name of the preset and number of changes, such as ``low-resolution, 2 changed``."""
        name = self.name or "defaults"
        return f"{name}, {len(self.changed)} changed" if self.changed else name


@dataclass(frozen=True)
class RunAccount:
    """Description of a run.

    Attributes
    ----------
    run
        Record of the run.
    title
        Title given by the user, or else a generated title.
    note
        Note written by the user.
    search
        Display name of the search.
    folder
        Folder of the results of the run, or None.
    files, n_files
        First input files with their digests, and the number of all input files.
    preset
        Preset nearest to the parameters.
    parameters
        All parameters in order.
    passes
        One sentence per search pass.
    counts
        Counts of results.
    facts
        Pairs of texts, such as device, versions and times.
    steps
        Name, seconds and peak memory (megabytes) of each step.
    messages
        Messages, with warnings and errors first.
    log
        Last lines of the log, oldest first.
    prediction
        Predicted and measured times, or None if they were not recorded.
    methods
        Paragraph for a paper; '' for unfinished runs.
    """

    run: RunRecord
    title: str
    note: RunNote
    search: str
    folder: Path | None
    files: tuple[InputRecord, ...]
    n_files: int
    preset: NearestPreset
    parameters: tuple[ShownParameter, ...]
    passes: tuple[str, ...]
    counts: tuple[Count, ...]
    facts: tuple[tuple[str, str], ...]
    steps: tuple[tuple[str, float, float], ...]
    messages: tuple[LogEntry, ...]
    log: tuple[LogEntry, ...]
    methods: str
    prediction: RunPrediction | None = None


def run_account(project: Project, run: RunRecord, search: Search | None) -> RunAccount:
    """Return the description of a run; `search` is the search of the run, or None if this version of the program does not have it.

    Raises
    ------
    StorageError
        If writing failed.
    """
    record, note, every = project.record(run.id), project.note(run.id), project.inputs(run.id)
    log = [_shortened(entry) for entry in project.log(run.id, _MAXIMUM_LINES, _MAXIMUM_CHARACTERS)]
    messages = sorted((entry for entry in log), key=lambda entry: ("error", "warning", "info").index(entry.level))[:_MAXIMUM_MESSAGES]
    preset = nearest_preset(search, run.parameters)
    parameters = _parameters(search, run.parameters, preset)
    try:
        passes = tuple(search_pass.sentence() for search_pass in passes_of_run(project, run.id))
    except ProteoscopeError:
        passes = ()
    folder = project.folder / RESULTS / run.id
    name = run.kind if search is None else search.name
    methods = (
        _methods(project, run, search, record, every, preset, parameters, [entry.text for entry in log]) if run.status == "done" else ""
    )
    return RunAccount(
        run,
        note.title or run_title(project, run, search),
        note,
        name,
        folder if run.status == "done" and folder.is_dir() else None,
        tuple(every[:_MAXIMUM_FILES]),
        len(every),
        preset,
        parameters,
        passes,
        _counts(record),
        tuple(_facts(run, record)),
        _steps(record),
        tuple(messages),
        tuple(log),
        methods,
        run_prediction(record),
    )


def run_title(project: Project, run: RunRecord, search: Search | None) -> str:
    """Return the title of a run, such as ``2 · BSA1 · low-resolution``."""
    preset = nearest_preset(search, run.parameters)
    kind = "" if search is None else search.name
    return " · ".join(part[:_MAXIMUM_NAME] for part in (run.label, _searched(project, run), preset.name or kind) if part)


def _searched(project: Project, run: RunRecord) -> str:
    """Return a text such as ``run1 + 3``: first input file without extensions, and the number of further files of the same kind."""
    inputs = project.inputs(run.id)
    if not inputs:
        return ""
    first = inputs[0]
    if first.kind.startswith(OF_PROJECT):
        return first.path.parent.name
    n_more = sum(file.kind == first.kind for file in inputs) - 1
    return (_SUFFIXES.sub("", first.path.name) or first.path.name) + (f" + {n_more}" if n_more else "")


def nearest_preset(search: Search | None, parameters: Mapping[str, Any]) -> NearestPreset:
    """Return the preset with the fewest differing values; for ties, the default preset.

    If the search has no presets, the default values are used.
    """
    if search is None:
        return NearestPreset("", frozenset())
    best: NearestPreset | None = None
    names = sorted(_names(search), key=lambda name: name != search.preset) or [""]
    for name in names:
        usual = _values(search, name)
        changed = frozenset(name for name, value in usual.items() if name in parameters and _plain(parameters[name]) != _plain(value))
        if best is None or len(changed) < len(best.changed):
            best = NearestPreset(name, changed)
    assert best is not None
    return best


@lru_cache(maxsize=32)
def _preset_names(kind: str) -> tuple[str, ...]:
    return tuple(preset_names(kind))


def _names(search: Search) -> tuple[str, ...]:
    return _preset_names(search.kind) if search.preset else ()


_cached_values: dict[tuple[type[SearchParameters], str], dict[str, Any]] = {}


def _values(search: Search, preset: str) -> dict[str, Any]:
    """Return the values of a preset, or the default values if the preset is unknown; cached."""
    key = search.model, preset
    if key not in _cached_values:
        try:
            _cached_values[key] = search.parameters_of(preset).model_dump(mode="json")
        except ParameterError:
            _cached_values[key] = search.parameters_of().model_dump(mode="json")
    return _cached_values[key]


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else str(value) if isinstance(value, str) else value


def _parameters(search: Search | None, parameters: Mapping[str, Any], preset: NearestPreset) -> tuple[ShownParameter, ...]:
    if search is None:
        return tuple(
            ShownParameter(str(name)[:_MAXIMUM_NAME], str(name)[:_MAXIMUM_NAME], "", "", "", parameter_text(value), "", is_changed=False)
            for name, value in list(parameters.items())[:_MAXIMUM_MESSAGES]
        )
    usual = _values(search, preset.name)
    return tuple(
        ShownParameter(
            field.name,
            field.title,
            field.group,
            field.unit,
            field.help,
            parameter_text(parameters.get(field.name, usual[field.name]), field.zero),
            parameter_text(usual[field.name], field.zero),
            field.name in preset.changed,
        )
        for field in search.model.describe()
    )


def parameter_text(value: Any, zero: str = "") -> str:
    """Return the value of a parameter as text; `zero`, if not '', is the text for 0, such as ``automatic``."""
    if isinstance(value, list | tuple):
        return (list_text(value) or "none")[:_MAXIMUM_VALUE]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == 0 and zero:
        return zero
    return (f"{value:g}" if isinstance(value, float) else str(value) or "none")[:_MAXIMUM_VALUE]


def _counts(record: Mapping[str, Any]) -> tuple[Count, ...]:
    """Return the counts of a record, with the counts that have a confidence interval first."""
    counts, certainty = record.get("counts"), record.get("certainty")
    if not isinstance(counts, dict):
        return ()
    certainties = certainty if isinstance(certainty, dict) else {}
    parameters = record.get("parameters")
    fdr = parameters.get("fdr") if isinstance(parameters, dict) else None
    fdr = float(fdr) if isinstance(fdr, int | float) else None
    result = []
    for name, number in list(counts.items())[:_MAXIMUM_NAME]:
        if isinstance(number, bool) or not isinstance(number, int):
            continue
        words = str(name).replace("_", " ")[:_MAXIMUM_NAME]
        words = "PSMs" if words == "psms" else "protein groups" if words == "proteins" else words
        try:
            result.append(
                Count.from_acceptance(number, words, words, certainties[name], fdr) if name in certainties else Count(number, words, words)
            )
        except (KeyError, TypeError, ValueError):
            result.append(Count(number, words, words))
    return tuple(sorted(result, key=lambda count: count.certainty is None))


def _facts(run: RunRecord, record: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [("Started", _when(run.started))]
    if run.finished is not None:
        facts += [("Ended", _when(run.finished)), ("Took", f"{(run.finished - run.started).total_seconds():,.1f} s")]
    facts += [(f"PSMs, {name}", text) for name, text in class_texts(record)]
    threads, python, commit, command = (record.get(name) for name in ("threads", "python", "commit", "command"))
    is_command = isinstance(command, list) and all(isinstance(argument, str) for argument in command[:_MAXIMUM_VALUE])
    facts += [
        ("Computed on", run.device),
        ("CPU threads", str(threads) if isinstance(threads, int) else ""),
        ("Proteoscope", run.version),
        ("Python", python if isinstance(python, str) else ""),
        ("Source", commit if isinstance(commit, str) else ""),
        ("Command", shlex.join(command[:_MAXIMUM_VALUE]) if isinstance(command, list) and is_command else ""),
        ("Folder name", run.id),
    ]
    return [(name, text[:_MAXIMUM_VALUE]) for name, text in facts if text]


def _when(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def _steps(record: Mapping[str, Any]) -> tuple[tuple[str, float, float], ...]:
    steps = record.get("steps")
    result = []
    for name, step in list(steps.items())[:_MAXIMUM_NAME] if isinstance(steps, dict) else ():
        seconds, peak = (step.get("seconds"), step.get("peak_memory_mb", 0)) if isinstance(step, dict) else (None, 0)
        if isinstance(seconds, int | float) and isinstance(peak, int | float):
            result.append((str(name)[:_MAXIMUM_NAME], float(seconds), float(peak)))
    return tuple(result)


def _shortened(entry: LogEntry) -> LogEntry:
    return (
        entry if len(entry.text) < _MAXIMUM_CHARACTERS else LogEntry(entry.time, entry.level, f"{entry.text[: _MAXIMUM_CHARACTERS - 1]}…")
    )


def _methods(
    project: Project,
    run: RunRecord,
    search: Search | None,
    record: Mapping[str, Any],
    inputs: list[InputRecord],
    preset: NearestPreset,
    parameters: tuple[ShownParameter, ...],
    messages: list[str],
) -> str:
    if search is None:
        return ""
    values = {name: field.default for name, field in search.model.model_fields.items()}
    files = tuple((file.kind, file.path.name) for file in inputs)
    facts = RunFacts(search.name, run.version, run.device, files, values, record, tuple(messages))
    try:
        facts = replace(facts, parameters=values | search.recorded_parameters(project, run))
        reported = search.methods_of(facts)
    except (TypeError, ValueError, ProteoscopeError):
        # An untrusted record has values that no search writes; the sentences common to all searches do not read these.
        reported = None
    changed = [(parameter.title, parameter.value) for parameter in parameters if parameter.is_changed]
    return paragraph(facts, reported, preset.name, changed)

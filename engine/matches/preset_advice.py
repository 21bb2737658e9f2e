"""Detection of settings that do not suit the first spectra of each file, before a search.

Only settings that lose most identifications are reported: narrow tolerances for ion-trap fragments or precursors, wide tolerances for
accurate fragments, higher charges for singly charged MALDI ions, ion series that do not belong to the activation (such as b, y for ETD), a
fixed label that is not in the spectra, and reporter ions of a label that is not in the settings. Only properties that the spectra show are
considered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from proteoscope.engine.chemistry.activation import named_activation_series
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.spectra_content import LABEL_MASSES, LabelEvidence, SpectraContent, spectra_content
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import PresetAdvice, preset_names

if TYPE_CHECKING:
    from proteoscope.engine.search_run import RunSpec
    from proteoscope.engine.spectra.columns import Spectra

__all__ = ["advise", "read_searched", "warn_of_unsuitable_settings"]

_USUAL_FRAGMENT, _USUAL_PRECURSOR = 500.0, 1500.0
_NARROW_FRAGMENT, _WIDE_FRAGMENT, _NARROW_PRECURSOR = 0.15, 0.1, 0.25
"""Limits of tolerances, Da; errors are tenths of a dalton in ion traps, and thousandths in accurate analysers."""
_MOSTLY = 0.9
_NAMED_FILES = 3
_OF_LABEL = 0.01  # Da, tolerance of label masses
_EXACT_PRESETS = ("high-resolution", "standard")
_PRESETS_OF_LABELS: dict[str, tuple[str, ...]] = {"TMT": ("tmt",)}


class _Conflict(NamedTuple):
    """Reason why settings do not suit a file, and suitable presets in order of preference."""

    reason: str
    presets: tuple[str, ...]


class _Settings(NamedTuple):
    """Settings of a search that can be compared with spectra.

    Attributes
    ----------
    fragment, precursor : float
        Tolerances, Da; infinite if the search does not have the parameter.
    shown : mapping of str to str
        Texts of the tolerances, for messages.
    maximum_charge : int
        Maximum fragment charge; 1 if the search does not have the parameter.
    fixed, labels : tuple of LabelEvidence
        Labels among the fixed modifications, and labels among all modifications.
    searches_labels : bool
        True if the search finds only labels that are in its parameters; False for imports, since result files contain the labels.
    series : str
        Value of the ion series parameter.
    """

    fragment: float
    precursor: float
    shown: Mapping[str, str]
    maximum_charge: int
    fixed: tuple[LabelEvidence, ...]
    labels: tuple[LabelEvidence, ...]
    searches_labels: bool
    series: str


def read_searched(spec: RunSpec, parameters: Any, progress: Progress, threads: int) -> Spectra:
    """Read the spectra of a search for peptides, and warn about unsuitable settings.

    Raises
    ------
    InputError
        If a file cannot be read.
    Cancelled
        If the user cancelled the search.
    """
    request, files = spec.request, spec.request.files("spectra")
    warn_of_unsuitable_settings(spec.kind, files, parameters, progress)
    strict = request.flag("strict")
    return read_spectra(files, progress=progress, strict=strict, threads=threads, uses_all_precursors=True, spool=spec.spool)


def warn_of_unsuitable_settings(kind: str, files: Sequence[Path], parameters: Any, progress: Progress) -> None:
    """Inspect the first spectra of each file, and warn about unsuitable settings.

    Parameters
    ----------
    kind : str
        Search kind.
    files : sequence of Path
        Spectrum files.
    parameters : SearchParameters
        Parameters of the search.
    progress : Progress
        Progress of the run; receives one warning per reason.
    """
    contents = []
    for path in files:
        progress.check()
        if (content := spectra_content(path)) is not None:
            contents.append(content)
    advice = advise(kind, contents, parameters)
    for sentence in () if advice is None else advice.sentences:
        progress.message(sentence, "warning")


def advise(kind: str, contents: Sequence[SpectraContent], parameters: Any) -> PresetAdvice | None:
    """Return the settings that do not suit the spectra, and a suitable preset; None if all settings suit.

    Parameters
    ----------
    kind : str
        Kind of search whose presets are considered.
    contents : sequence of SpectraContent
        Contents of the spectrum files.
    parameters : SearchParameters
        Parameters of the search.

    Returns
    -------
    PresetAdvice or None
    """
    settings = _settings(parameters)
    files: dict[str, list[str]] = {}
    presets: list[str | None] = []
    for content in contents:
        conflicts = _find_conflicts(content, settings)
        for conflict in conflicts:
            files.setdefault(conflict.reason, []).append(content.name)
        if conflicts:
            # An unsuitable label is the last reason and decides: presets for other spectra do not have the label.
            presets.append(next((name for name in conflicts[-1].presets if name in preset_names(kind)), ""))
        elif content.fragments or content.label:
            presets.append(None)  # these settings suit the file
    if not files:
        return None
    # A file without known properties neither contradicts nor supports a preset.
    preset = presets[0] if len(set(presets)) == 1 and len(presets) == len(contents) else None
    return PresetAdvice(preset or "", tuple(_sentence(reason, names) for reason, names in files.items()), len(set(presets)) > 1)


def _sentence(reason: str, names: Sequence[str]) -> str:
    """Return a sentence with the reason, the first file names, and the number of further files."""
    named = [name for name in names if name][:_NAMED_FILES]
    if not named:
        return f"{reason[:1].upper()}{reason[1:]}"
    more = len(names) - len(named)
    return f"{', '.join(named)}{f' and {more:,} more files' if more > 1 else ' and 1 more file' if more else ''}: {reason}"


def _settings(parameters: Any) -> _Settings:
    values: Mapping[str, Any] = parameters.model_dump()
    fixed, variable = (_labels(values.get(f"{kind}_modifications", ())) for kind in ("fixed", "variable"))
    shown = {name: str(values[key]) for name in ("fragment", "precursor") if (key := f"{name}_tolerance") in values}
    return _Settings(
        _width(values["fragment_tolerance"], _USUAL_FRAGMENT),
        _width(values["precursor_tolerance"], _USUAL_PRECURSOR) if "precursor" in shown else math.inf,
        shown,
        int(values.get("maximum_charge", 1)),
        fixed,
        tuple(dict.fromkeys((*fixed, *variable))),
        "variable_modifications" in values,
        str(values.get("ion_series", "")),
    )


def _labels(names: Sequence[str]) -> tuple[LabelEvidence, ...]:
    """Return the labels among the modifications `names`, found by mass; if several labels have this mass, the name decides."""
    result: dict[LabelEvidence, None] = {}
    for name in names:
        mass = parse_modification(name).mass
        near = [label for label, of_label in LABEL_MASSES.items() if abs(mass - of_label) < _OF_LABEL]
        named = [label for label in near if label[:3].lower() == name.strip()[:3].lower()]
        result.update(dict.fromkeys(named or near))
    return tuple(result)


def _find_conflicts(content: SpectraContent, settings: _Settings) -> list[_Conflict]:
    """Return the conflicts of settings with a file: at most one about tolerances or charges, one about ion series, and one about labels."""
    result = (_tolerance_conflict(content, settings), _series_conflict(content, settings), _label_conflict(content, settings))
    return [advice for advice in result if advice is not None]


def _series_conflict(content: SpectraContent, settings: _Settings) -> _Conflict | None:
    """Return a conflict if the ion series of the search do not suit the activation methods in the file, otherwise None."""
    wanted = {symbol for name in content.fragmentation for symbol in named_activation_series(name)}
    if settings.series in ("", BY_ACTIVATION) or not wanted - set(settings.series):
        return None
    names = " and ".join(filter(named_activation_series, content.fragmentation))
    symbols = "".join(symbol for symbol in "bycz" if symbol in wanted)
    return _Conflict(
        f"the spectra are of {names}, which makes ions {', '.join(symbols)}, and ion_series={settings.series} matches other ions:"
        f" set ion_series={BY_ACTIVATION}",
        (),
    )


def _tolerance_conflict(content: SpectraContent, settings: _Settings) -> _Conflict | None:
    is_trap, is_trap_precursor = content.fragments == "ion trap", content.precursors == "ion trap"
    traps = ("ion-trap", "low-resolution") if is_trap_precursor else ("low-resolution",)
    shown = settings.shown
    if content.is_maldi and content.singly_charged >= _MOSTLY and settings.maximum_charge > 1 and settings.fragment < _WIDE_FRAGMENT:
        return _Conflict("the spectra are singly charged ions of MALDI", ("maldi-tof-tof",))
    if is_trap and settings.fragment < _NARROW_FRAGMENT:
        return _Conflict(f"the fragments were measured in an ion trap, and within {shown['fragment']} most of them are missed", traps)
    if is_trap and is_trap_precursor and settings.precursor < _NARROW_PRECURSOR:
        return _Conflict(f"the precursors were measured in an ion trap, and within {shown['precursor']} most peptides are missed", traps)
    if content.fragments == "exact" and settings.fragment > _WIDE_FRAGMENT and not content.is_maldi:
        return _Conflict(f"the fragments were measured accurately, and {shown['fragment']} permits needless chance matches", _EXACT_PRESETS)
    return None


def _label_conflict(content: SpectraContent, settings: _Settings) -> _Conflict | None:
    label = content.label
    if not settings.searches_labels:
        return None
    if label == "none" and settings.fixed:
        expected = " and ".join(settings.fixed)
        return _Conflict(f"no reporter ions and no labelled lysine were found, but {expected} is a fixed modification", _EXACT_PRESETS)
    if label in ("", "none") or label in settings.labels:
        return None
    but = f"{' and '.join(settings.labels)} is set" if settings.labels else "no label is set"
    return _Conflict(f"ions of the label {label} were found, but {but}", _PRESETS_OF_LABELS.get(label, ()))


def _width(tolerance: Tolerance | str, mass: float) -> float:
    """Return the width of a tolerance at a mass, Da."""
    given = tolerance if isinstance(tolerance, Tolerance) else Tolerance.parse(str(tolerance))
    return given.value if given.unit == "Da" else given.value * mass * 1e-6

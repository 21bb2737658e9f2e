"""Settings that do not suit spectra: found before a search, by the first spectra of each file.

Only what costs most answers is reported: fragments of an ion trap searched within parts per million, exact ones within half a dalton,
precursors of an ion trap searched within parts per million, singly charged ions of MALDI searched with other charges, fragments of electron
transfer searched as others and the other way about, a label that the spectra do not have, and reporter ions of a label that is not set.
What the spectra leave open is not reported.
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
from proteoscope.engine.formats.label_evidence import LABEL_MASSES, LabelEvidence
from proteoscope.engine.formats.spectra_content import SpectraContent, spectra_content
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import PresetAdvice, preset_names

if TYPE_CHECKING:
    from proteoscope.engine.search_run import RunSpec
    from proteoscope.engine.spectra.columns import Spectra

__all__ = ["advise", "read_searched", "warn_of_misfits"]

_USUAL_FRAGMENT, _USUAL_PRECURSOR = 500.0, 1500.0
_NARROW_FRAGMENT, _WIDE_FRAGMENT, _NARROW_PRECURSOR = 0.15, 0.1, 0.25
"""Da. An ion trap errs by some tenths; an exact analyser by thousandths."""
_MOSTLY = 0.9
_NAMED_FILES = 3
_OF_LABEL = 0.01  # dalton
_EXACT_PRESETS = ("high-resolution", "standard")
_PRESETS_OF_LABELS: dict[str, tuple[str, ...]] = {"TMT": ("tmt",)}


class _Misfit(NamedTuple):
    """Settings that do not suit a file, and suitable presets, preferred first."""

    reason: str
    presets: tuple[str, ...]


class _Settings(NamedTuple):
    """Settings of a search that spectra can contradict.

    Attributes
    ----------
    fragment, precursor
        Half-widths of the windows, Da; infinite without one.
    shown
        The tolerances as texts.
    maximum_charge
        1 without a charge.
    fixed, labels
        Labels among the fixed modifications, and among all.
    searches_labels
        False for an import, whose result files name the labels.
    series
        The parameter of ion series.
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
    """Return the spectra of a peptide search, and warn of unsuitable settings.

    Raises
    ------
    InputError
        A file cannot be read.
    Cancelled
        The user cancelled the search.
    """
    request, files = spec.request, spec.request.files("spectra")
    warn_of_misfits(spec.kind, files, parameters, progress)
    strict = request.flag("strict")
    return read_spectra(files, progress=progress, strict=strict, threads=threads, uses_all_precursors=True, spool=spec.spool)


def warn_of_misfits(kind: str, files: Sequence[Path], parameters: Any, progress: Progress) -> None:
    """Inspect the first spectra of each file, and warn of settings that do not suit them.

    Parameters
    ----------
    kind : str
        Kind of the search.
    files : sequence of Path
        Files of spectra.
    parameters : SearchParameters
        Parameters of the search.
    progress : Progress
        Receives a warning per kind of misfit.
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
    """Return the settings that do not suit some spectra and a suitable preset, or None.

    Parameters
    ----------
    kind : str
        Kind of the search, whose presets are considered.
    contents : sequence of SpectraContent
        Contents of its files of spectra.
    parameters : SearchParameters
        Parameters of the search.
    """
    settings = _settings(parameters)
    files: dict[str, list[str]] = {}
    presets: list[str | None] = []
    for content in contents:
        misfits = _misfits(content, settings)
        for misfit in misfits:
            files.setdefault(misfit.reason, []).append(content.name)
        if misfits:
            # The last concerns the label, which the presets for other spectra do not have.
            presets.append(next((name for name in misfits[-1].presets if name in preset_names(kind)), ""))
        elif content.fragments or content.label:
            presets.append(None)  # these settings suit it
    if not files:
        return None
    # A file without known properties neither contradicts nor supports a preset.
    preset = presets[0] if len(set(presets)) == 1 and len(presets) == len(contents) else None
    return PresetAdvice(preset or "", tuple(_sentence(reason, names) for reason, names in files.items()), len(set(presets)) > 1)


def _sentence(reason: str, names: Sequence[str]) -> str:
    """Return a reason with the files concerned: the first, and how many others."""
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
    """Return the labels among modifications by mass; equal masses are distinguished by name."""
    result: dict[LabelEvidence, None] = {}
    for name in names:
        mass = parse_modification(name).mass
        near = [label for label, of_label in LABEL_MASSES.items() if abs(mass - of_label) < _OF_LABEL]
        named = [label for label in near if label[:3].lower() == name.strip()[:3].lower()]
        result.update(dict.fromkeys(named or near))
    return tuple(result)


def _misfits(content: SpectraContent, settings: _Settings) -> list[_Misfit]:
    """Return what does not suit a file, at most one misfit of its tolerances or charges, one of its ions, and one of its label."""
    result = (_tolerance_misfit(content, settings), _series_misfit(content, settings), _label_misfit(content, settings))
    return [advice for advice in result if advice is not None]


def _series_misfit(content: SpectraContent, settings: _Settings) -> _Misfit | None:
    """Compare the ion series with those of the activations that a file names."""
    wanted = {symbol for name in content.fragmentation for symbol in named_activation_series(name)}
    if settings.series in ("", BY_ACTIVATION) or not wanted - set(settings.series):
        return None
    names = " and ".join(filter(named_activation_series, content.fragmentation))
    symbols = "".join(symbol for symbol in "bycz" if symbol in wanted)
    return _Misfit(
        f"the spectra are of {names}, which makes ions {', '.join(symbols)}, and ion_series={settings.series} matches others:"
        f" set ion_series={BY_ACTIVATION}",
        (),
    )


def _tolerance_misfit(content: SpectraContent, settings: _Settings) -> _Misfit | None:
    is_trap, is_trap_precursor = content.fragments == "ion trap", content.precursors == "ion trap"
    traps = ("ion-trap", "low-resolution") if is_trap_precursor else ("low-resolution",)
    shown = settings.shown
    if content.is_maldi and content.singly_charged >= _MOSTLY and settings.maximum_charge > 1 and settings.fragment < _WIDE_FRAGMENT:
        return _Misfit("the spectra are singly charged ions of MALDI", ("maldi-tof-tof",))
    if is_trap and settings.fragment < _NARROW_FRAGMENT:
        return _Misfit(f"the fragments were measured in an ion trap, and within {shown['fragment']} most of them are missed", traps)
    if is_trap and is_trap_precursor and settings.precursor < _NARROW_PRECURSOR:
        return _Misfit(f"the precursors were measured in an ion trap, and within {shown['precursor']} most peptides are missed", traps)
    if content.fragments == "exact" and settings.fragment > _WIDE_FRAGMENT and not content.is_maldi:
        return _Misfit(f"the fragments are exact, and within {shown['fragment']} chance matches far more than need be", _EXACT_PRESETS)
    return None


def _label_misfit(content: SpectraContent, settings: _Settings) -> _Misfit | None:
    label = content.label
    if not settings.searches_labels:
        return None
    if label == "none" and settings.fixed:
        expected = " and ".join(settings.fixed)
        return _Misfit(f"no reporter ions and no labelled lysine were found, but {expected} is a fixed modification", _EXACT_PRESETS)
    if label in ("", "none") or label in settings.labels:
        return None
    but = f"{' and '.join(settings.labels)} is set" if settings.labels else "no label is set"
    return _Misfit(f"ions of the label {label} were found, but {but}", _PRESETS_OF_LABELS.get(label, ()))


def _width(tolerance: Tolerance | str, mass: float) -> float:
    """Return half of the window about a mass, Da."""
    given = tolerance if isinstance(tolerance, Tolerance) else Tolerance.parse(str(tolerance))
    return given.value if given.unit == "Da" else given.value * mass * 1e-6

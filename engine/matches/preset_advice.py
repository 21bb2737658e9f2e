"""Which preset suits spectra better than the values that are chosen: told before a search, by what its files are of.

Only what costs most answers is told: fragments of an ion trap looked for within parts per million, exact ones within half a dalton,
precursors of an ion trap within parts per million, and singly charged ions of MALDI looked for as others. What files do not tell is not
judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats.spectra_content import SpectraContent, spectra_content
from proteoscope.engine.parameters import PresetAdvice, preset_names

__all__ = ["advise", "advise_for_files"]

_USUAL_FRAGMENT, _USUAL_PRECURSOR = 500.0, 1500.0
_NARROW_FRAGMENT, _WIDE_FRAGMENT, _NARROW_PRECURSOR = 0.15, 0.1, 0.25
"""Da. An ion trap errs by some tenths; an exact analyser by thousandths."""
_MOSTLY = 0.9
_LOOKED_AT = 3
"""Files of a search whose beginnings are read."""


def advise_for_files(kind: str, files: Sequence[Path], parameters: Any) -> PresetAdvice | None:
    """What `advise` says of the first of some files."""
    found = [spectra_content(path) for path in files[:_LOOKED_AT]]
    return advise(kind, [one for one in found if one is not None], parameters)


def advise(kind: str, contents: Sequence[SpectraContent], parameters: Any) -> PresetAdvice | None:
    """The preset that suits spectra better than the parameters, and why; None where they suit, where nothing is known, and where files
    differ.

    Parameters
    ----------
    kind : of the search, whose presets they are. contents : of its files of spectra. parameters : with the tolerances that are chosen.
    """
    told = {_advice(one, parameters) for one in contents}
    if len(told) != 1:
        return None
    names, reason = told.pop()
    preset = next((name for name in names if name in preset_names(kind)), "")
    return PresetAdvice(preset, reason) if preset else None


def _advice(content: SpectraContent, parameters: Any) -> tuple[tuple[str, ...], str]:
    """Names of the preset, in the order of preference, and why; none where what is chosen suits."""
    values: Mapping[str, Any] = parameters.model_dump()
    fragment, precursor = _width(values["fragment_tolerance"], _USUAL_FRAGMENT), _width(values["precursor_tolerance"], _USUAL_PRECURSOR)
    shown = {name: str(values[f"{name}_tolerance"]) for name in ("fragment", "precursor")}
    is_trap = content.fragments == "ion trap"
    traps = ("ion-trap", "low-resolution") if content.precursors == "ion trap" else ("low-resolution",)
    if content.is_maldi and content.singly_charged >= _MOSTLY and int(values.get("maximum_charge", 1)) > 1 and fragment < _WIDE_FRAGMENT:
        return ("maldi-tof-tof",), "the spectra are singly charged ions of MALDI"
    if is_trap and fragment < _NARROW_FRAGMENT:
        return traps, f"the fragments were measured in an ion trap, and within {shown['fragment']} most of them are missed"
    if is_trap and content.precursors == "ion trap" and precursor < _NARROW_PRECURSOR:
        return traps, f"the precursors were measured in an ion trap, and within {shown['precursor']} most peptides are missed"
    if content.fragments == "exact" and fragment > _WIDE_FRAGMENT and not content.is_maldi:
        return (
            "high-resolution",
            "standard",
        ), f"the fragments are exact, and within {shown['fragment']} chance matches far more than need be"
    return (), ""


def _width(tolerance: Tolerance | str, mass: float) -> float:
    """Half of the window about a mass, Da."""
    given = tolerance if isinstance(tolerance, Tolerance) else Tolerance.parse(str(tolerance))
    return given.value if given.unit == "Da" else given.value * mass * 1e-6

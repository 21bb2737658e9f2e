"""Write scripts for PyMOL and ChimeraX that reproduce a picture: colours, shapes and secondary structure.

Scripts contain only numbers, colours and names from this program, no names from files. PyMOL: pymolwiki.org (Selection Algebra, Color,
Cartoon); ChimeraX: user guide on `color`, `cartoon`, `setattr` and specifying atoms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structures.chains import COIL, STATE_SYMBOLS, Chains

__all__ = ["Program", "ScriptedChain", "Style", "chimerax_script", "pymol_script", "residue_ranges"]

Program = Literal["PyMOL", "ChimeraX"]
Style = Literal["ribbon", "tube", "line", "spheres", "surface"]
Colour = tuple[int, int, int]

_MAXIMUM_CHARACTERS = 700
"""Maximum length of a selection; PyMOL reads lines of up to a thousand characters."""
_PYMOL_STATES = {"C": "L", "H": "H", "E": "S"}
_PYMOL_STYLES: dict[Style, tuple[str, ...]] = {
    "ribbon": ("show cartoon", "set cartoon_trace_atoms, 1", "set cartoon_fancy_helices, 0"),
    "tube": ("show cartoon", "set cartoon_trace_atoms, 1", "cartoon tube", "set cartoon_tube_radius, 0.3"),
    "line": ("show ribbon", "set ribbon_trace_atoms, 1", "set ribbon_sampling, 1"),
    "spheres": ("show spheres, name CA", "set sphere_scale, 0.47"),
    "surface": ("show surface",),
}
_CHIMERAX_STYLES: dict[Style, tuple[str, ...]] = {
    "ribbon": ("show cartoons",),
    "tube": ("show cartoons", "cartoon style protein width 0.6 thickness 0.6 arrows false xsection round"),
    "line": ("show cartoons", "cartoon style protein width 0.15 thickness 0.15 arrows false xsection round"),
    "spheres": ("hide cartoons", "show @ca atoms", "style @ca sphere", "size @ca atomRadius 0.8"),
    "surface": ("hide cartoons", "surface protein"),
}


@dataclass(frozen=True)
class ScriptedChain:
    """Chain of a scripted picture.

    Attributes
    ----------
    name : str
        Stem of the chain's file: alphanumeric characters and ``_``.
    chains : Chains
        Exactly one chain, with r residues.
    colours : ndarray of uint8, shape (r, 3)
        Colour of each residue.
    is_shown : ndarray of bool, shape (r,), optional
        Residues to show; None for all.
    """

    name: str
    chains: Chains
    colours: NDArray[np.uint8]
    is_shown: NDArray[np.bool_] | None = None


def residue_ranges(numbers: Sequence[int], program: Program) -> list[str]:
    r"""Return author residue numbers as ranges in the notation of a program.

    >>> residue_ranges([3, -1, 0, 1, 7], "PyMOL"), residue_ranges([3, -1, 0, 1, 7], "ChimeraX")
    (['\\-1-1', '3', '7'], ['-1-1', '3', '7'])
    """
    # PyMOL interprets a bare minus as a range.
    sign = "\\-" if program == "PyMOL" else "-"
    values = np.unique(np.asarray(numbers, np.int64))
    runs = np.split(values, np.flatnonzero(np.diff(values) != 1) + 1)
    ends = [dict.fromkeys((int(run[0]), int(run[-1]))) for run in runs if len(run)]
    return ["-".join(str(value).replace("-", sign) for value in end) for end in ends]


def _selections(chains: Chains, rows: NDArray[np.integer], program: Program) -> Iterator[str]:
    """Yield selections of residues of limited length: ranges first, then residues with insertion codes, which ranges may include."""
    plain = rows[chains.insertion[rows] == 0]
    parts = residue_ranges(chains.author_number[plain].tolist(), program)
    sign = "\\-" if program == "PyMOL" else "-"
    for row in rows[chains.insertion[rows] != 0].tolist():
        code = chr(int(chains.insertion[row]))
        if code.isascii() and code.isalnum():
            parts.append(f"{chains.author_number[row]}".replace("-", sign) + code)
    between = "+" if program == "PyMOL" else ","
    text = ""
    for part in parts:
        if text and len(text) + len(part) > _MAXIMUM_CHARACTERS:
            yield text
            text = ""
        text = f"{text}{between}{part}" if text else part
    if text:
        yield text


def _with_insertions_last(chains: Chains, groups: Sequence[tuple[str, NDArray[np.integer]]], program: Program) -> Iterator[tuple[str, str]]:
    """Yield each colour or state with selections of its residues, with insertion codes last, since ranges may include these residues."""
    for has_code in (False, True):
        for colour, rows in groups:
            for text in _selections(chains, rows[(chains.insertion[rows] != 0) == has_code], program):
                yield colour, text


def _colour_groups(scripted: ScriptedChain) -> list[tuple[str, NDArray[np.integer]]]:
    """Return the colours with their residues, beginning with the most frequent colour, which is applied to the whole chain."""
    codes = scripted.colours.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
    values, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(f"{values[k]:06x}", np.flatnonzero(place == k)) for k in order.tolist()]


def _state_groups(chains: Chains) -> list[tuple[str, NDArray[np.integer]]]:
    return [
        (symbol, np.flatnonzero(chains.secondary == code))
        for code, symbol in enumerate(STATE_SYMBOLS)
        if code != COIL and (chains.secondary == code).any()
    ]


def pymol_script(chains: Sequence[ScriptedChain], style: Style = "ribbon", background: Colour = (255, 255, 255)) -> str:
    """Return a PyMOL script that loads ``NAME.cif`` of each chain from the folder of the script.

    Parameters
    ----------
    chains : sequence of ScriptedChain
        Chains to show.
    style : Style
        Representation of the chains.
    background : Colour
        Colour of the background: red, green and blue, from 0 to 255.
    """
    lines = ["# Open in PyMOL from this folder.", *(f"load {chain.name}.cif, {chain.name}" for chain in chains), "hide everything"]
    lines += _PYMOL_STYLES[style]
    for chain in chains:
        lines.append(f'alter {chain.name}, ss="L"')
        for symbol, text in _with_insertions_last(chain.chains, _state_groups(chain.chains), "PyMOL"):
            lines.append(f'alter {chain.name} and resi {text}, ss="{_PYMOL_STATES[symbol]}"')
    lines.append("rebuild")
    for chain in chains:
        groups = _colour_groups(chain)
        lines += [f"color 0x{colour}, {chain.name}" for colour, _ in groups[:1]]
        for colour, text in _with_insertions_last(chain.chains, _groups_to_write(chain.chains, groups), "PyMOL"):
            lines.append(f"color 0x{colour}, {chain.name} and resi {text}")
        for text in _selections(chain.chains, _hidden(chain), "PyMOL"):
            lines.append(f"hide everything, {chain.name} and resi {text}")
    red, green, blue = (value / 255.0 for value in background)
    lines += [f"set bg_rgb, [{red:.4f}, {green:.4f}, {blue:.4f}]", "set depth_cue, 1", "orient"]
    return "\n".join([*lines, ""])


def chimerax_script(chains: Sequence[ScriptedChain], style: Style = "ribbon", background: Colour = (255, 255, 255)) -> str:
    """Return a ChimeraX script for a new session that opens ``NAME.cif`` of each chain from the folder of the script.

    Parameters
    ----------
    chains : sequence of ScriptedChain
        Chains to show.
    style : Style
        Representation of the chains.
    background : Colour
        Colour of the background: red, green and blue, from 0 to 255.
    """
    lines = ["# Open in a new session of ChimeraX.", *(f"open {chain.name}.cif" for chain in chains), "hide atoms"]
    for number, chain in enumerate(chains, 1):
        lines.append(f"setattr #{number} residues ss_type 0")
        for symbol, text in _with_insertions_last(chain.chains, _state_groups(chain.chains), "ChimeraX"):
            lines.append(f"setattr #{number}:{text} residues ss_type {STATE_SYMBOLS.index(symbol)}")
    lines += _CHIMERAX_STYLES[style]
    for number, chain in enumerate(chains, 1):
        groups = _colour_groups(chain)
        lines += [f"color #{number} #{colour}" for colour, _ in groups[:1]]
        for colour, text in _with_insertions_last(chain.chains, _groups_to_write(chain.chains, groups), "ChimeraX"):
            lines.append(f"color #{number}:{text} #{colour}")
        for text in _selections(chain.chains, _hidden(chain), "ChimeraX"):
            lines.append(f"hide #{number}:{text} cartoons,atoms")
    red, green, blue = background
    lines += [f"set bgColor #{red:02x}{green:02x}{blue:02x}", "lighting depthCue true", "view"]
    return "\n".join([*lines, ""])


def _groups_to_write(chains: Chains, groups: list[tuple[str, NDArray[np.integer]]]) -> list[tuple[str, NDArray[np.integer]]]:
    """Return all groups except the first, and the residues of the first with insertion codes, which ranges of others may include."""
    first = [(colour, rows[chains.insertion[rows] != 0]) for colour, rows in groups[:1]]
    return first + groups[1:]


def _hidden(scripted: ScriptedChain) -> NDArray[np.integer]:
    return np.flatnonzero(~scripted.is_shown) if scripted.is_shown is not None else np.empty(0, np.int64)

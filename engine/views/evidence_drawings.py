"""Figures of a protein: its coverage with the aligned ranges of similar chains, and the structure of one chain."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.drawings import Bar, Curve, Drawing, Label, Shape, Stroke, shortened, text_width
from proteoscope.engine.views.evidence import ProteinEvidence, ShownStructure
from proteoscope.engine.views.label_layout import place_near_dots
from proteoscope.engine.views.palette import Ink
from proteoscope.engine.views.ticks import nice_ticks

__all__ = ["draw_fold", "draw_protein"]

_WIDTH, _LEFT, _RIGHT = 680.0, 110.0, 12.0
_BAR, _STEP = 5.0, 7.0
_MAXIMUM_LANES, _MAXIMUM_CHAINS, _MAXIMUM_SITES = 12, 20, 300
_SEEN: Ink = "target"
_MISSED: Ink = "grid"
_MODIFIED: Ink = "mark"
_CHAIN: Ink = 5
_FOREIGN: Ink = "faint"
"""Colour of residues of a structure that are not aligned with the protein."""
_SIDE, _TALLEST, _FRAME = 400.0, 360.0, 26.0
_NEIGHBOURS = 4.6  # Å, maximum Cα distance of bonded residues
_TOGETHER = 6  # maximum number of bonds drawn as one line, at one depth
_MAXIMUM_BONDS, _MAXIMUM_NAMES = 20_000, 60
_FONT_SIZE = 8.0


def draw_protein(protein: ProteinEvidence) -> Drawing:
    """Draw the coverage of a protein with the aligned ranges of similar chains."""
    n = max(len(protein), 1)
    scale = (_WIDTH - _LEFT - _RIGHT) / n
    shapes: list[Shape] = []
    top = 22.0
    shapes.append(Label(0, 11, shortened(protein.accession, _WIDTH, 8), is_bold=True))

    def bar(first: int, end: int, y: float, ink: Ink, tip: str) -> Bar:
        return Bar(_LEFT + first * scale, y, max((end - first) * scale, 0.6), _BAR, ink, tip=tip)

    lanes = 1 + max((peptide.lane for peptide in protein.coverage.peptides), default=0)
    shapes.append(Label(0, top + _BAR, "peptides"))
    for peptide in protein.coverage.peptides:
        if peptide.lane < _MAXIMUM_LANES:
            tip = f"{peptide.peptide}, {peptide.start + 1} to {peptide.end}, PSMs: {peptide.n_psms}"
            shapes.append(bar(peptide.start, peptide.end, top + peptide.lane * _STEP, _SEEN, tip))
    top += min(lanes, _MAXIMUM_LANES) * _STEP + 3
    shapes.append(Label(0, top + _BAR, "not observed"))
    cuts = np.flatnonzero(np.diff(np.concatenate(([0], (~protein.coverage.covered).astype(np.int8), [0]))))
    shapes += [bar(first, end, top, _MISSED, f"{first + 1} to {end}") for first, end in cuts.reshape(-1, 2).tolist()]
    top += _STEP + 3
    if protein.is_modified.any():
        shapes.append(Label(0, top + _BAR, "modified"))
        # Alternatives are paler, and below the sites.
        dots = [(position, chance) for position, chance in sorted(protein.alternatives.items())[:_MAXIMUM_SITES]]
        dots += [(position, 1.0) for position in np.flatnonzero(protein.is_modified)[:_MAXIMUM_SITES].tolist()]
        for position, opacity in dots:
            x, tip = _LEFT + (position + 0.5) * scale, protein.site_text(position)
            shapes += [
                Stroke(x, top, x, top + _BAR, "text", 0.5),
                Bar(x - 2, top, 4, 4, _MODIFIED, True, tip=tip, opacity=opacity),
            ]
        top += _STEP + 3
    for near in protein.chains[:_MAXIMUM_CHAINS]:
        shapes.append(Label(0, top + _BAR, shortened(near.name, _LEFT - 6, 8)))
        stretches = np.split(near.position, np.flatnonzero(np.diff(near.position) != 1) + 1) if len(near.position) else []
        tip = f"{near.values['chain']}, {near.values['kind']}, {near.values['identity'] * 100:.1f} % identity"
        shapes += [bar(int(stretch[0]), int(stretch[-1]) + 1, top, _CHAIN, tip) for stretch in stretches]
        top += _STEP + 2
    bottom = top + 4
    shapes.append(Stroke(_LEFT, bottom, _WIDTH - _RIGHT, bottom))
    for tick in nice_ticks(1, max(n, 2), 10, whole=True):
        x = _LEFT + (tick - 0.5) * scale
        shapes += [Stroke(x, bottom, x, bottom + 4), Label(x, bottom + 13, f"{tick:,.0f}", "middle")]
    shapes.append(Label((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 25, "Residue", "middle"))
    return Drawing(_WIDTH, bottom + 34, f"Coverage of {protein.accession}", tuple(shapes))


def draw_fold(protein: ProteinEvidence, fold: ShownStructure) -> Drawing | None:
    """Draw the Cα trace of a similar chain from its widest side; return None if the file is unreadable or the chain is too short.

    Colours distinguish covered, uncovered and unaligned residues; modified residues are dots.
    """
    trace = fold.trace
    if trace is None or trace.evidence is None:
        return None
    evidence, n = trace.evidence, min(len(trace.position), _MAXIMUM_BONDS)
    position = trace.position[:n].astype(np.float64)
    is_place = np.asarray(np.isfinite(position).all(axis=1), np.bool_)
    if is_place.sum() < 3:
        return None
    seen = _seen_from(position, is_place)
    low, high = seen[is_place].min(axis=0), seen[is_place].max(axis=0)
    scale = min((_SIDE - 2 * _FRAME) / max(high[0] - low[0], 1.0), (_TALLEST - 2 * _FRAME) / max(high[1] - low[1], 1.0))
    flat = (seen[:, :2] - low[:2]) * scale + _FRAME
    height = float((high[1] - low[1]) * scale + 2 * _FRAME) + 30
    shapes: list[Shape] = []
    inks: list[Ink] = [_FOREIGN, _MISSED, _SEEN]
    kind = np.where(evidence.position[:n] < 0, 0, np.where(evidence.n_psms[:n] > 0, 2, 1))
    apart = np.linalg.norm(np.diff(position, axis=0), axis=1)
    is_bond = (apart <= _NEIGHBOURS) & is_place[1:] & is_place[:-1]
    lines = _lines(kind, is_bond)
    # Draw the farthest first, each on a wider line in the background colour, so that nearer lines interrupt farther ones.
    for first, last in sorted(lines, key=lambda line: float(seen[line[0] : line[1] + 1, 2].mean())):
        x, y = flat[first : last + 1].T
        shapes += [Curve(x, y, "background", 5.0), Curve(x, y, inks[int(kind[first])], 2.2)]
    modified = np.flatnonzero(evidence.is_modified[:n] & is_place)
    names = [protein.name_of(int(position)) for position in evidence.position[modified].tolist()]
    is_alternative = np.isin(evidence.position[:n], list(protein.alternatives)) & is_place
    for row in (*np.flatnonzero(is_alternative).tolist(), *modified.tolist()):
        (x, y), at = flat[row].tolist(), int(evidence.position[row])
        tip = f"{protein.site_text(at)}, {trace.label(row)} of {trace.name}"
        shapes.append(Bar(x - 3, y - 3, 6, 6, _MODIFIED, True, tip=tip, opacity=protein.alternatives.get(at, 1.0)))
    shapes += _place_names(flat[modified], names, height - 30)
    reported: tuple[tuple[str, Ink], ...] = (
        ("covered", _SEEN),
        ("not observed", _MISSED),
        ("not of the protein", _FOREIGN),
        ("modified", _MODIFIED),
    )
    for k, (text, ink) in enumerate(reported):
        shapes += [Bar(8 + k * 95, height - 14, 8, 8, ink), Label(20 + k * 95, height - 7, text)]
    remote = f", remote: by the fold of {fold.near.values['through']}" if fold.near.values["kind"] == "remote" else ""
    title = f"{trace.name}, {fold.near.values['kind']}, {fold.near.values['identity'] * 100:.1f} % identity{remote}"
    shapes.append(Label(0, 11, shortened(title, _SIDE, 8), is_bold=True))
    return Drawing(_SIDE, height, f"{protein.accession} on {trace.name}", tuple(shapes))


def _place_names(dots: NDArray[np.float64], names: Sequence[str], height: float) -> list[Shape]:
    """Draw names near their dots; names without free space are omitted."""
    widths = np.array([text_width(name, _FONT_SIZE) for name in names])
    shapes: list[Shape] = []
    for label in place_near_dots(dots[:_MAXIMUM_NAMES], widths[:_MAXIMUM_NAMES], _FONT_SIZE, dots, (0.0, _FRAME / 2, _SIDE, height)):
        if label.leader is not None:
            x, y = dots[label.label].tolist()
            shapes.append(Stroke(x, y, *label.leader, "faint", 0.4))
        shapes.append(Label(label.left, label.top + 0.85 * _FONT_SIZE, names[label.label]))
    return shapes


def _seen_from(position: NDArray[np.float64], is_place: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return coordinates (n, 3) rotated such that x and y have the largest variances and z points to the viewer."""
    centred = position - position[is_place].mean(axis=0)
    axes = np.linalg.svd(centred[is_place], full_matrices=False)[2]
    # The signs of axes are arbitrary. The residue farthest along an axis sets its sign, so that a chain always looks the same, never
    # mirrored.
    for k in range(2):
        along = centred[is_place] @ axes[k]
        axes[k] *= np.sign(along[np.abs(along).argmax()]) or 1.0
    axes[2] = np.cross(axes[0], axes[1])
    # On paper y grows downwards; without the change of sign, the drawing would be a mirror image.
    return np.asarray(centred @ (axes * np.array([[1.0], [-1.0], [1.0]])).T)


def _lines(kind: NDArray[np.int64], is_bond: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and last residues of short lines of one colour, such that the residues of a line have about the same depth.

    A bond has the colour of its first residue.
    """
    result, first = [], 0
    for row in range(len(is_bond) + 1):
        ends = row == len(is_bond) or not is_bond[row]
        if row > first and (ends or kind[row] != kind[first] or row - first >= _TOGETHER):
            result.append((first, row))
            first = row
        if ends:
            first = row + 1
    return result

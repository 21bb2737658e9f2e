"""A protein as a figure: its peptides, modified residues, what was never seen, and the near chains below it."""

from __future__ import annotations

import numpy as np

from engine.views.drawings import Bar, Drawing, Label, Shape, Stroke, shortened
from engine.views.evidence import ProteinEvidence
from engine.views.ticks import nice_ticks

__all__ = ["draw_protein"]

_WIDTH, _LEFT, _RIGHT = 680.0, 110.0, 12.0
_BAR, _STEP = 5.0, 7.0
_MAXIMUM_LANES, _MAXIMUM_CHAINS, _MAXIMUM_SITES = 12, 20, 300
_SEEN, _MISSED, _MODIFIED, _CHAIN = 0, 1, 3, 5
"""Places in the colours of series."""


def draw_protein(protein: ProteinEvidence) -> Drawing:
    """Coverage of a protein along its residues, with the stretches of near chains that stand under them."""
    n = max(len(protein), 1)
    scale = (_WIDTH - _LEFT - _RIGHT) / n
    shapes: list[Shape] = []
    top = 22.0
    shapes.append(Label(0, 11, shortened(protein.accession, _WIDTH, 8), is_bold=True))

    def bar(first: int, end: int, y: float, ink: int, tip: str) -> Bar:
        return Bar(_LEFT + first * scale, y, max((end - first) * scale, 0.6), _BAR, ink, tip=tip)

    lanes = 1 + max((one.lane for one in protein.coverage.peptides), default=0)
    shapes.append(Label(0, top + _BAR, "peptides"))
    for one in protein.coverage.peptides:
        if one.lane < _MAXIMUM_LANES:
            tip = f"{one.peptide}, {one.start + 1} to {one.end}, PSMs: {one.n_psms}"
            shapes.append(bar(one.start, one.end, top + one.lane * _STEP, _SEEN, tip))
    top += min(lanes, _MAXIMUM_LANES) * _STEP + 3
    shapes.append(Label(0, top + _BAR, "never seen"))
    cuts = np.flatnonzero(np.diff(np.concatenate(([0], (~protein.coverage.covered).astype(np.int8), [0]))))
    shapes += [bar(first, end, top, _MISSED, f"{first + 1} to {end}") for first, end in cuts.reshape(-1, 2).tolist()]
    top += _STEP + 3
    if protein.is_modified.any():
        shapes.append(Label(0, top + _BAR, "modified"))
        for place in np.flatnonzero(protein.is_modified)[:_MAXIMUM_SITES].tolist():
            x = _LEFT + (place + 0.5) * scale
            shapes += [Stroke(x, top, x, top + _BAR, "text", 0.5), Bar(x - 2, top, 4, 4, _MODIFIED, True, tip=protein.name_of(place))]
        top += _STEP + 3
    for near in protein.folds[:_MAXIMUM_CHAINS]:
        name = f"{near.values['chain']}{' (remote)' if near.values['kind'] == 'remote' else ''}"
        shapes.append(Label(0, top + _BAR, shortened(name, _LEFT - 6, 8)))
        stretches = np.split(near.position, np.flatnonzero(np.diff(near.position) != 1) + 1) if len(near.position) else []
        tip = f"{near.values['chain']}, {near.values['kind']}, {near.values['identity'] * 100:.1f} % identity"
        shapes += [bar(int(one[0]), int(one[-1]) + 1, top, _CHAIN, tip) for one in stretches]
        top += _STEP + 2
    bottom = top + 4
    shapes.append(Stroke(_LEFT, bottom, _WIDTH - _RIGHT, bottom))
    for tick in nice_ticks(1, max(n, 2), 10, whole=True):
        x = _LEFT + (tick - 0.5) * scale
        shapes += [Stroke(x, bottom, x, bottom + 4), Label(x, bottom + 13, f"{tick:,.0f}", "middle")]
    shapes.append(Label((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 25, "Residue", "middle"))
    return Drawing(_WIDTH, bottom + 34, f"Coverage of {protein.accession}", tuple(shapes))

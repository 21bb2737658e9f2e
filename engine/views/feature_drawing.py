"""Drawing of protein features: colours of feature groups, the key (legend) of the groups, and the bars of features."""

from collections.abc import Collection, Iterable, Sequence

from proteoscope.engine.views.coverage import ProteinFeature
from proteoscope.engine.views.drawings import Bar, Label, Shape
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.sheets import CENTRE, Region, TextMeasure
from proteoscope.engine.views.shown_peaks import UNMATCHED

__all__ = ["QUANTITY", "Key", "draw_feature", "feature_lines", "key_tip"]

QUANTITY = "quantity"
"""Entry of a key that colours peptides by quantity; other entries are feature groups."""
_MAXIMUM_LINES = 8
"""Maximum number of features in a tooltip."""
_INKS: dict[str, Ink] = {
    QUANTITY: "target",
    "chain": Ion(UNMATCHED),
    "domain": Ion("a"),
    "site": Ion("y"),
    "modification": Ion("z"),
    "disulfide bond": Ion("x"),
    "variant": Ion("p"),
    "secondary structure": Ion("c"),
}
"""Colours of the entries of a key."""


class Key:
    """Key (legend) of feature groups, wrapped to a width; clicks show or hide groups.

    Attributes
    ----------
    boxes
        Rectangle of each group.
    bottom
        Lower edge of the key; equals `top` without groups.
    """

    def __init__(self, groups: Iterable[str], measure: TextMeasure, left: float, top: float, right: float) -> None:
        self.boxes: dict[str, Region] = {}
        self.bottom, self._measure = top, measure
        x, line = left, measure.line
        for group in groups:
            width = measure.width(group) + 2.4 * line
            if x + width > right and x > left:
                x, top = left, top + line * 1.2
            self.boxes[group] = Region(x, top, width, line)
            self.bottom = top + line
            x += width

    def shapes(self, shown: Collection[str]) -> list[Shape]:
        """Return the shapes of the key: names and coloured boxes, which are empty for hidden groups."""
        shapes: list[Shape] = []
        for group, (left, top, _, line) in self.boxes.items():
            is_shown, ink = group in shown, _INKS[group]
            shapes += [
                Bar(left, top + line * 0.25, line * 0.9, line * 0.5, ink, opacity=float(is_shown), outline=ink),
                Label(left + line * 1.2, top + line / 2 + CENTRE * self._measure.font_size, group, ink="text" if is_shown else "faint"),
            ]
        return shapes

    def group_at(self, x: float, y: float) -> str | None:
        """Return the group at a point of the sheet, or None."""
        return next((group for group, position in self.boxes.items() if position.holds(x, y)), None)


def draw_feature(feature: ProteinFeature, span: Region, ends: tuple[float, float]) -> list[Shape]:
    """Draw the bar of a feature.

    A disulfide bond is drawn as a line with a mark at each of its two residues. `ends` are the widths of these marks; 0 for a residue that
    is in another row.
    """
    ink = _INKS[feature.group]
    if feature.group != "disulfide bond" or feature.end - feature.start == 1:
        # Modifications found in a peptide have a frame.
        return [Bar(*span, ink, target=feature, outline="text" if feature.is_found else None)]
    # A bond joins two residues; the residues between them are not part of the bond.
    left, top, width, height = span
    return [
        Bar(left, top, width, height, ink, target=feature, opacity=0.0),
        Bar(left, top + height / 2 - 0.75, width, 1.5, ink),
        *(Bar(x, top, end, height, ink) for x, end in ((left, ends[0]), (span.right - ends[1], ends[1])) if end),
    ]


def key_tip(group: str, shown: Collection[str]) -> str:
    """Return the tooltip of a group of the key, which describes the effect of a click."""
    if group == QUANTITY:
        return f"Click to colour peptides {'in one colour' if group in shown else 'by their quantity'}"
    return f"Click to {'hide' if group in shown else 'show'} features of this group"


def feature_lines(features: Sequence[ProteinFeature]) -> list[str]:
    """Return a line of text for each feature; if there are many, for the first features, and a line with the number of further features."""
    lines = [feature.text for feature in features[:_MAXIMUM_LINES]]
    return [*lines, f"and {len(features) - _MAXIMUM_LINES} more"] if len(features) > _MAXIMUM_LINES else lines

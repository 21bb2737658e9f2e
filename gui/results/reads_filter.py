"""Filter bar of a read alignment: text, score, gaps, identity, and type of rows."""

from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.reads import ReadFilter
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.structure_filter import OptionalNumberBox

_ROWS = (("all", None), ("aligned", "aligned"), ("strand +", "+"), ("strand −", "-"), ("not aligned", "none"))


class ReadFilterBar(FilterBar):
    """Filter bar for alignments of reads."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Read, reference or CIGAR",
            "Show only rows with this text in the name of the read or the reference, or in the CIGAR",
            "Show all rows of the run",
            parent,
        )
        self.score = self._number(1.0, 100.0, "00000")
        self.minimum_gaps, self.maximum_gaps = (self._number(1.0, first, "00") for first in (1.0, 0.0))
        self.minimum_identity, self.below_identity = (self._number(1.0, first, "00.0") for first in (95.0, 100.0))
        self.rows = self._choices("Rows", "Show only reads aligned on one or both strands, or reads without an alignment", _ROWS)
        for box, label, name, help_text in (
            (self.score, "S&core ≥", "Minimum score", "Hide alignments with a lower score"),
            (self.minimum_gaps, "&Gaps ≥", "Minimum number of gaps", "Hide alignments with fewer gaps"),
            (self.maximum_gaps, "≤", "Maximum number of gaps", "Hide alignments with more gaps"),
            (self.minimum_identity, "&Identity % ≥", "Minimum identity", "Hide alignments with a smaller share of identical columns"),
            (self.below_identity, "<", "Identity below", "Hide alignments with this share of identical columns or a larger one"),
        ):
            self._add_number(box, label, name, help_text)
        self._add(self.rows, "R&ows")
        self.open()

    @property
    def chosen(self) -> ReadFilter:
        """Conditions of the current filter."""
        score, minimum_gaps, maximum_gaps = (
            None if box.entered is None else round(box.entered) for box in (self.score, self.minimum_gaps, self.maximum_gaps)
        )
        identity = (self.minimum_identity.entered, self.below_identity.entered)
        return ReadFilter(self.text.text(), score, minimum_gaps, maximum_gaps, *identity, self.rows.currentData())

    def open(self) -> None:
        """Reset the filter for a new run, without emitting a signal."""
        self._reset_quietly()

    def choose_gaps(self, number: int) -> None:
        """Show only alignments with this number of gaps; if the filter already has this number, remove the filter."""
        self._choose((self.minimum_gaps, self.maximum_gaps), (number, number))

    def choose_identity(self, low: float, high: float | None) -> None:
        """Show only alignments with an identity in per cent from `low` to below `high` (None: to 100).

        If the filter already has these limits, remove the filter.
        """
        self._choose((self.minimum_identity, self.below_identity), (low, high))

    def _choose(self, boxes: tuple[OptionalNumberBox, OptionalNumberBox], wanted: tuple[float | None, float | None]) -> None:
        is_shown = tuple(box.entered for box in boxes) == wanted
        for box, value in zip(boxes, wanted, strict=True):
            if is_shown or value is None:
                box.clear_value()
            else:
                box.setValue(value)
        self._now()

    def _number(self, step: float, first: float, widest: str) -> OptionalNumberBox:
        box = OptionalNumberBox(step, first)
        box.setFixedWidth(max(self.fontMetrics().horizontalAdvance(widest), self.fontMetrics().horizontalAdvance("any")) + 30)
        return box

    def _reset_own_fields(self) -> None:
        for box in (self.score, self.minimum_gaps, self.maximum_gaps, self.minimum_identity, self.below_identity):
            box.clear_value()
        self.rows.setCurrentIndex(0)

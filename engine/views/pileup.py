"""The alignments at a place of a text, one below the other, with what differs in each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.read_alignment.sequences import other_strand
from proteoscope.engine.views.conditions import Condition, is_missing, negated
from proteoscope.engine.views.read_pair import draw_lines
from proteoscope.engine.views.reads import NO_READS, ShownText, of_place
from proteoscope.engine.views.tables import TableSource

__all__ = ["MAXIMUM_READS", "MAXIMUM_WIDTH", "Pileup", "read_pileup"]

MAXIMUM_READS = 1000
"""Maximum number of alignments in a pile-up; the number of omitted ones is shown."""
MAXIMUM_WIDTH = 20_000
"""Maximum width of a pile-up in reference positions."""
_COLUMNS = ("text_start", "text_end", "pattern_start", "pattern_end", "strand", "cigar", "md", "pattern_row", "pattern")
_DASH = ord("-")


@dataclass(frozen=True)
class Pileup:
    """n alignments that cover positions `first` to `last` of a reference, with m differences.

    Attributes
    ----------
    n_left_out
        Alignments omitted for lack of space.
    row
        (n,) int64, rows of the table of alignments.
    start, end
        (n,) int64, first and last covered position of the reference.
    is_reverse
        (n,) bool.
    lane
        (n,) int64, line of each alignment, from 0.
    read
        (m,) int64, index of the differing alignment.
    place
        (m,) int64, position in the reference; for an insertion the one before it.
    symbol
        (m,) uint8, base of the read there; ``-`` for a deletion, ``+`` for an insertion.
    reference
        (last - first + 1,) uint8, bases of the reference derived from the alignments, 0 where uncovered.
    """

    text: ShownText
    first: int
    last: int
    n_left_out: int
    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    is_reverse: NDArray[np.bool_]
    lane: NDArray[np.int64]
    read: NDArray[np.int64]
    place: NDArray[np.int64]
    symbol: NDArray[np.uint8]
    reference: NDArray[np.uint8]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def n_lanes(self) -> int:
        """Lines that it needs."""
        return int(self.lane.max(initial=-1)) + 1

    def counts(self, place: int) -> dict[str, int]:
        """Count the bases of shown alignments at a position of the reference; ``-`` counts deletions."""
        covers = (self.start <= place) & (self.end >= place)
        at = (self.place == place) & (self.symbol != ord("+"))
        result: dict[str, int] = {}
        for symbol in self.symbol[at].tolist():
            result[chr(symbol)] = result.get(chr(symbol), 0) + 1
        reference = self.reference[place - self.first] if self.first <= place <= self.last else 0
        n_same = int(covers.sum()) - int(at.sum())
        if n_same:
            result[chr(reference) if reference else "?"] = n_same
        return dict(sorted(result.items(), key=lambda item: -item[1]))


def read_pileup(source: TableSource, text: ShownText, first: int, last: int, conditions: Iterable[Condition] = ()) -> Pileup:
    """Pile up the alignments that cover positions `first` to `last` (from 1) of a reference and satisfy all conditions.

    Raises
    ------
    ProteoscopeError
        The run has no table of reads, or its tables do not belong together.
    """
    if "patterns" not in source.paths:
        raise ProteoscopeError(NO_READS)
    first = max(1, min(first, text.length))
    last = max(first, min(last, text.length, first + MAXIMUM_WIDTH - 1))
    wanted = [*of_place(text, first, last), negated(is_missing("text_start")), *conditions]
    rows = source.rows(wanted, [("text_start", False)])
    n_left_out = max(0, len(rows) - MAXIMUM_READS)
    if n_left_out:
        # From all along the place, the same ones each time.
        rows = rows[np.linspace(0, len(rows) - 1, MAXIMUM_READS).astype(np.int64)]
    result = source.values(rows, _COLUMNS).to_pylist()
    symbols = _read_sequences(source, np.array([row["pattern_row"] for row in result], np.int64))
    reference = np.zeros(last - first + 1, np.uint8)
    reads, places, others = [], [], []
    for at, row in enumerate(result):
        place, symbol = _differences(row, symbols[row["pattern_row"]], first, last, reference)
        reads.append(np.full(len(place), at, np.int64))
        places.append(place)
        others.append(symbol)
    start, end = (np.array([row[name] for row in result], np.int64) for name in ("text_start", "text_end"))
    nothing = np.empty(0, np.int64)
    return Pileup(
        text,
        first,
        last,
        n_left_out,
        rows,
        start,
        end,
        np.array([row["strand"] == "-" for row in result], np.bool_),
        _lanes(start, end),
        np.concatenate([nothing, *reads]),
        np.concatenate([nothing, *places]),
        np.concatenate([np.empty(0, np.uint8), *others]),
        reference,
        tuple(row["pattern"] for row in result),
    )


def _read_sequences(source: TableSource, rows: NDArray[np.int64]) -> dict[int, str]:
    """Return the sequences of reads by row."""
    different = np.unique(rows)
    result = source.sibling("patterns").values(different, ("letters",))["letters"].to_pylist()
    if len(result) != len(different):
        raise ProteoscopeError("The run's table of reads does not contain all aligned reads. Run the search again.")
    return dict(zip(different.tolist(), result, strict=True))


def _differences(
    row: dict[str, Any], bases: str, first: int, last: int, reference: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return positions and bases of an alignment's differences in view, and add the reference bases it shows to `reference`."""
    try:
        pattern = bases[row["pattern_start"] - 1 : row["pattern_end"]]
        if row["strand"] == "-":
            pattern = other_strand(pattern)
        lines = draw_lines(pattern, row["cigar"], row["md"])
    except (ValueError, TypeError) as error:
        raise ProteoscopeError(f"{row['pattern']}: its alignment cannot be drawn. Do the search again.") from error
    query, subject = (np.frombuffer(line.encode("ascii", "replace"), np.uint8) for line in lines)
    is_text = subject != _DASH
    place = row["text_start"] - 1 + np.cumsum(is_text)
    in_sight = (place >= first) & (place <= last)
    reported = in_sight & is_text
    reference[place[reported] - first] = subject[reported]
    # An insertion is marked by its first base.
    is_inserted = ~is_text & np.concatenate(([True], is_text[:-1]))
    differs = in_sight & ((is_text & (query != subject)) | is_inserted)
    return place[differs], np.where(is_text[differs], query[differs], np.uint8(ord("+")))


def _lanes(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Assign each alignment the first free line; `start` is ascending."""
    lane = np.empty(len(start), np.int64)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    n_lanes = 0
    for at, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] < begin - 1:
            heappush(free, heappop(busy)[1])
        if free:
            lane[at] = heappop(free)
        else:
            lane[at] = n_lanes
            n_lanes += 1
        heappush(busy, (stop, int(lane[at])))
    return lane

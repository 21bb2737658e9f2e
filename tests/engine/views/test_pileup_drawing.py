"""Pile-ups of many alignments: differences and reference by plain loops, packed lines, and the depth of the whole reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.views.depth import Depth
from proteoscope.engine.views.drawings import Cells, Clip, Drawing, Spans, Sticks, svg
from proteoscope.engine.views.palette import Palette, rgb_of
from proteoscope.engine.views.paper import pdf
from proteoscope.engine.views.pileup import Pileup, find_differences
from proteoscope.engine.views.pileup_drawing import PileupSheet, draw_pileup
from proteoscope.engine.views.read_pair import draw_lines
from proteoscope.engine.views.reads import ShownReference
from proteoscope.engine.views.sheets import TextMeasure

BASES = "ACGT"
COMPLEMENT = str.maketrans("ACGT", "TGCA")
LENGTH = 2000


def simulated(n: int, seed: int = 2) -> tuple[str, pa.Table, Texts]:
    """Return a reference, and alignments of reads that were cut from it with substitutions, insertions and deletions."""
    random = np.random.default_rng(seed)
    reference = "".join(random.choice(list(BASES), LENGTH))
    rows, reads = [], []
    for number in range(n):
        start, cigar, md, read, place, same = int(random.integers(0, LENGTH - 200)), "", "", "", 0, 0
        for kind in random.choice(list("=XID"), int(random.integers(1, 12)), p=[0.6, 0.2, 0.1, 0.1]):
            if cigar.endswith(kind):
                continue
            size = int(random.integers(1, 15 if kind == "=" else 4))
            part = reference[start + place : start + place + size]
            cigar += f"{size}{kind}"
            if kind == "=":
                read, place, same = read + part, place + size, same + size
            elif kind == "X":
                read += "".join(BASES[(BASES.index(base) + 1 + int(random.integers(0, 3))) % 4] for base in part)
                md, same, place = md + "".join(f"{same if at == 0 else 0}{base}" for at, base in enumerate(part)), 0, place + size
            elif kind == "I":
                read += "".join(random.choice(list(BASES), size))
            else:
                md, same, place = f"{md}{same}^{part}", 0, place + size
        if not read or not place:
            continue
        before, after = ("".join(random.choice(list(BASES), int(random.integers(0, 4)))) for _ in range(2))
        is_reverse = bool(number % 2)
        whole = before + read + after
        first = len(after if is_reverse else before) + 1
        reads.append(whole.translate(COMPLEMENT)[::-1] if is_reverse else whole)
        rows.append(
            (start + 1, start + place, first, first + len(read) - 1, "-" if is_reverse else "+", cigar, f"{md}{same}", f"r{number}")
        )
    rows_and_reads = sorted(zip(rows, reads, strict=True))
    names = ("text_start", "text_end", "pattern_start", "pattern_end", "strand", "cigar", "md", "pattern")
    columns = dict(zip(names, map(list, zip(*(row for row, _ in rows_and_reads), strict=True)), strict=True))
    return reference, pa.table(columns), Texts.from_strings(read for _, read in rows_and_reads)


@pytest.mark.parametrize(("n", "view"), [(1, (1, LENGTH)), (60, (300, 700)), (400, (1, LENGTH)), (400, (901, 1000)), (400, (1000, 1000))])
def test_find_differences_matches_plain_loops(n: int, view: tuple[int, int]) -> None:
    genome, columns, reads = simulated(n)
    first, last = view
    read, place, symbol, reference = find_differences(columns, reads, first, last)
    expected, covered = [], set()
    for at, (row, bases) in enumerate(zip(columns.to_pylist(), reads.strings(), strict=True)):
        aligned = bases[row["pattern_start"] - 1 : row["pattern_end"]]
        aligned = aligned.translate(COMPLEMENT)[::-1] if row["strand"] == "-" else aligned
        position, is_inserted = row["text_start"] - 1, False
        for query, subject in zip(*draw_lines(aligned, row["cigar"], row["md"]), strict=True):
            if subject == "-":
                if not is_inserted and first <= position <= last:
                    expected.append((at, position, "+"))
                is_inserted = True
                continue
            position, is_inserted = position + 1, False
            covered.add(position)
            if query != subject and first <= position <= last:
                expected.append((at, position, query))
    result = list(zip(read.tolist(), place.tolist(), map(chr, symbol.tolist()), strict=True))
    assert sorted(result) == sorted(expected)
    shown = {first + at: chr(code) for at, code in enumerate(reference.tolist()) if code}
    assert shown == {position: genome[position - 1] for position in covered if first <= position <= last}


@pytest.mark.parametrize("name", ["pattern_end", "cigar"])
def test_find_differences_rejects_reads_that_are_too_short(name: str) -> None:
    _, columns, reads = simulated(3)
    values = columns[name].to_pylist()
    values[1] = values[1] + 9 if name == "pattern_end" else values[1] + "50I"
    wrong = columns.set_column(columns.column_names.index(name), name, pa.array(values))
    with pytest.raises(ProteoscopeError, match=f"{columns['pattern'][1].as_py()}: the alignment of this read cannot be drawn"):
        find_differences(wrong, reads, 1, LENGTH)


def pile_of(start: np.ndarray, end: np.ndarray, n_differences: int = 0, length: int = LENGTH) -> Pileup:
    """Return a pile-up of alignments from their ends, each in its own line, with differences."""
    random, n = np.random.default_rng(1), len(start)
    nothing = np.empty(0, np.int64)
    read = np.sort(random.integers(0, n, n_differences)) if n else nothing
    place = random.integers(start[read], end[read] + 1) if n else nothing
    symbol = random.choice(np.frombuffer(b"ACGT-+", np.uint8), len(read))
    reference = np.frombuffer(BASES.encode() * (length // 4), np.uint8)
    ends = start.astype(np.int64), end.astype(np.int64)
    lanes, names = np.arange(n), tuple(f"r{at}" for at in range(n))
    return Pileup(ShownReference(0, "g", length), 1, length, 0, lanes, *ends, lanes % 2 == 1, lanes, read, place, symbol, reference, names)


def parts(drawing: Drawing, kind: type) -> list:
    flat = [part for shape in drawing.shapes for part in (shape.shapes if isinstance(shape, Clip) else (shape,))]
    return [shape for shape in flat if isinstance(shape, kind)]


@pytest.mark.parametrize("n", [0, 1, 300])
def test_pileup_depth_of_the_whole_reference_equals_counts(n: int) -> None:
    random = np.random.default_rng(4)
    start = np.sort(random.integers(1, LENGTH - 100, n))
    end = start + random.integers(0, 100, n)
    counted = np.zeros(LENGTH + 1, np.int64)
    for first, last in zip(start.tolist(), end.tolist(), strict=True):
        for base in range(first, last + 1):
            counted[base] += 1
    depth = Depth.from_ranges("g", LENGTH, start, end)
    sheet = PileupSheet(pile_of(start, end), (), (400.5, 500.5), TextMeasure(), (LENGTH + 48.0, 400.0), depth)
    assert sheet.coverage is not None and sheet.coverage.width == LENGTH
    most, mean = [shape for shape in sheet.draw().shapes if isinstance(shape, Sticks)]
    for drawn in (most, mean):
        heights = (drawn.y2 - drawn.y1) / sheet.coverage.height * max(1, counted.max())
        np.testing.assert_allclose(heights, counted[1:], atol=1e-6)
    assert sheet.text_at(sheet.coverage.left + 450.2, sheet.coverage.top + 1).startswith(
        ("451: depth", "450 to 452", "450 to 451", "451 to 452")
    )
    assert sheet.position_at(sheet.coverage.left + 0.5) == pytest.approx(1.0)


def test_pileup_depth_is_hidden_without_space() -> None:
    pile, depth = pile_of(np.array([5]), np.array([50])), Depth.from_ranges("g", LENGTH, np.array([5]), np.array([50]))
    assert PileupSheet(pile, (), (0.5, 100.5), TextMeasure(), (500, 100), depth).coverage is None
    assert PileupSheet(pile, (), (0.5, 100.5), TextMeasure(), (500, 300)).coverage is None
    other = Depth.from_ranges("other", 7, np.array([1]), np.array([7]))
    assert PileupSheet(pile, (), (0.5, 100.5), TextMeasure(), (500, 300), other).coverage is None


def test_pileup_line_height_follows_the_zoom() -> None:
    pile = pile_of(np.full(500, 1), np.full(500, LENGTH))
    far, near = (PileupSheet(pile, (), shown, TextMeasure(), (500, 400)) for shown in ((0.5, 2000.5), (100.5, 130.5)))
    assert far.height == 1.0 and not far.is_written and near.height == 12.0 and near.is_written
    assert 200 < far.n_visible < 400 and near.n_visible < 35
    drawn = sum(len(shape.x1) for shape in parts(far.draw(), Spans))
    assert abs(drawn - far.n_visible) <= 2
    last = PileupSheet(pile, (), (0.5, 2000.5), TextMeasure(), (500, 400), None, 10_000)
    assert last.first_lane == 500 - last.n_visible
    assert last.read_at(250, last.top + (last.n_visible - 1) * last.height + 0.5) == 499
    assert far.read_at(250, far.top + 0.5) == 0 and "lines 1 to" in svg(far.draw()).decode()


def test_pileup_figure_shows_all_lines() -> None:
    drawing = draw_pileup(pile_of(np.full(500, 1), np.full(500, LENGTH)))
    assert sum(len(shape.x1) for shape in parts(drawing, Spans)) == 500 and drawing.height > 500
    assert pdf(drawing).startswith(b"%PDF")


@pytest.mark.parametrize("n_differences", [50, 20_000])
def test_pileup_differences_have_the_colours_of_bases(n_differences: int) -> None:
    pile = pile_of(np.full(40, 1), np.full(40, LENGTH), n_differences)
    sheet = PileupSheet(pile, (), (0.5, LENGTH + 0.5), TextMeasure(), (1048, 300))
    sticks = {stick.ink: len(stick.x) for stick in parts(sheet.draw(), Sticks)}
    grids = parts(sheet.draw(), Cells)
    if n_differences == 50:
        assert not grids and sum(sticks.values()) == 50 and len(sticks) == len(np.unique(pile.symbol))
        return
    (cells,) = grids
    surface = Palette("#000000", "#ffffff", "#777777", "#777777")
    pixels = cells.pixels(surface)
    assert pixels.shape[:2] == cells.values.shape and not pixels[cells.values == 0, 3].any()
    cell_height, cell_width = cells.height / cells.values.shape[0], cells.width / cells.values.shape[1]
    shown = {(int(lane), round(float(x))) for lane, x in zip(pile.lane[pile.read], pile.position, strict=True)}
    for lane, place in sorted(shown)[::97]:
        row = int((lane * sheet.height + sheet.height / 2) / cell_height)
        column = int((place - 0.5) / LENGTH * cells.width / cell_width)
        near = {tuple(pixel) for pixel in pixels[row, max(0, column - 2) : column + 3, :3].tolist()}
        nearby = pile.symbol[(pile.lane[pile.read] == lane) & (np.abs(pile.position - place) <= 4)]
        assert near & {rgb_of(ink, surface) for ink in cells.inks} and len(nearby)
    is_empty = ~np.isin(np.arange(40), pile.lane[pile.read])
    assert not is_empty.any()

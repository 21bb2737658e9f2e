"""Drawings of character grids and of bars in lanes: positions, clipping to the visible region, and independence of Qt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.sequences.stack import OUTSIDE
from proteoscope.engine.views.alignment_drawing import AlignmentSheet, draw_alignment
from proteoscope.engine.views.coverage_drawing import CoverageSheet, draw_coverage
from proteoscope.engine.views.drawings import Bar, Clip, Drawing, Image, Label, Shape
from proteoscope.engine.views.hit_drawing import HitSheet, draw_hits
from proteoscope.engine.views.pileup_drawing import PileupSheet, draw_pileup
from proteoscope.engine.views.sheets import Region, Sheet, TextMeasure
from proteoscope.engine.views.stack_drawing import StackSheet, draw_stack
from tests.engine.views import grid_examples

REPOSITORY = Path(__file__).resolve().parents[3]
MEASURE = TextMeasure(10.0)
SHEETS: dict[str, Sheet] = {
    "alignment": AlignmentSheet(grid_examples.pair(), MEASURE, 300.0),
    "coverage": CoverageSheet(grid_examples.coverage(), MEASURE, 420.0),
    "hits": HitSheet(grid_examples.hits(), MEASURE, 400.0, 5),
    "stack": StackSheet(grid_examples.stack(), MEASURE),
}
WITHOUT_QT = """
import sys
sys.modules["PySide6"] = sys.modules["pyqtgraph"] = None
from pathlib import Path
from proteoscope.engine.views.alignment_drawing import draw_alignment
from proteoscope.engine.views.coverage_drawing import draw_coverage
from proteoscope.engine.views.hit_drawing import draw_hits
from proteoscope.engine.views.figure_files import write_figure
from proteoscope.engine.views.pileup_drawing import draw_pileup
from proteoscope.engine.views.stack_drawing import draw_stack
from tests.engine.views import grid_examples as examples
texts = draw_alignment(examples.pair()), draw_stack(examples.stack())
lanes = draw_coverage(examples.coverage()), draw_hits(examples.hits()), draw_pileup(examples.pile(), examples.features())
for number, drawing in enumerate((*texts, *lanes)):
    for ending in ("svg", "pdf", "png"):
        write_figure(Path(sys.argv[1], f"{number}.{ending}"), drawing)
"""


def flat(shapes: tuple[Shape, ...]) -> list[Shape]:
    return [inner for shape in shapes for inner in (shape.shapes if isinstance(shape, Clip) else (shape,))]


def labels(drawing: Drawing) -> list[str]:
    return [shape.text for shape in flat(drawing.shapes) if isinstance(shape, Label)]


def test_grid_drawings_are_written_without_qt(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_QT, str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.iterdir())) == 15
    texts = [(tmp_path / f"{number}.svg").read_text() for number in range(5)]
    for text, wanted in zip(texts, ("aligned with Q", "subject3", "P02769", "the best 5 of 1,234 hits", "recA"), strict=True):
        assert wanted in text
    assert all((tmp_path / f"{number}.pdf").read_bytes().startswith(b"%PDF") for number in range(5))


@pytest.mark.parametrize("name", SHEETS)
def test_grid_drawing_of_a_region_equals_part_of_full_drawing(name: str) -> None:
    sheet = SHEETS[name]
    # Query and conservation of a stack are always visible.
    shapes = {repr(shape) for shape in flat(sheet.draw().shapes)}
    part = flat(sheet.draw(Region(0.0, sheet.size[1] * 0.6, sheet.size[0], sheet.size[1] * 0.2)).shapes)
    assert part and len(part) < len(shapes)
    if name != "stack":
        assert {repr(shape) for shape in part} <= shapes


def test_conservation_is_below_last_hit_or_at_window_bottom() -> None:
    sheet = SHEETS["stack"]

    def bottom(height: float) -> float:
        shapes = sheet.draw(Region(0.0, 0.0, sheet.size[0], height)).shapes
        return max(shape.y + shape.height for shape in shapes if isinstance(shape, Clip))

    assert bottom(sheet.size[1] + 300) == pytest.approx(sheet.size[1])
    assert bottom(sheet.size[1] * 0.7) == pytest.approx(sheet.size[1] * 0.7)


def test_draw_alignment_has_all_residues_and_numbers() -> None:
    pair = grid_examples.pair()
    texts = labels(draw_alignment(pair))
    rows = [text for text in texts if len(text) > 9 and text in pair.query]
    assert "".join(dict.fromkeys(rows)) == pair.query
    assert {"aligned with Q", "45.2 bits", "Query", "Subject", "120", "115"} <= set(texts)


def test_draw_alignment_colours_each_kind_of_column() -> None:
    sheet = AlignmentSheet(grid_examples.pair(), MEASURE, 5000.0)
    left, top = sheet.corner(0)
    bars = [shape for shape in sheet.draw().shapes if isinstance(shape, Bar) and shape.y == top]
    assert [(round((bar.x - left) / sheet.cell), round(bar.width / sheet.cell), bar.ink) for bar in bars] == [
        (0, 10, "target"),
        (10, 5, "mark"),
        (15, 5, "target"),
        (20, 100, "target"),
    ]
    assert bars[0].opacity == bars[3].opacity > bars[2].opacity


def test_draw_stack_has_colours_and_characters_of_all_cells() -> None:
    stack = grid_examples.stack()
    drawing = draw_stack(stack)
    pictures = [shape for shape in drawing.shapes if isinstance(shape, Image)]
    assert np.array_equal(np.concatenate([picture.pixels for picture in pictures], axis=1), stack.colours)
    n_columns = pictures[0].pixels.shape[1]
    written = np.full((len(stack.stack), n_columns), ord(" "), np.uint8)
    image = pictures[0]
    for shape in drawing.shapes:
        if isinstance(shape, Label) and shape.x == image.x and image.y < shape.y < image.y + image.height and shape.anchor == "start":
            row = int((shape.y - image.y) / image.height * len(stack.stack))
            codes = np.frombuffer(shape.text.encode(), np.uint8)
            written[row, : len(codes)] = np.maximum(written[row, : len(codes)], codes)
    assert np.array_equal(written, np.where(stack.symbols == OUTSIDE, ord(" "), stack.symbols)[:, :n_columns])


def test_draw_coverage_has_residues_and_a_bar_for_each_peptide() -> None:
    coverage = grid_examples.coverage()
    drawing = draw_coverage(coverage)
    bars = [shape.target for shape in drawing.shapes if isinstance(shape, Bar) and shape.target is not None]
    assert set(coverage.peptides) <= set(bars) and set(coverage.features) <= set(bars)
    sheet = CoverageSheet(coverage, MEASURE, 420.0)
    for position in range(len(coverage.sequence)):
        cell = sheet.residue(position)
        assert sheet.residue_at(cell.left + 1, cell.top + 1) == position
    assert sheet.residue_at(sheet.numbers - 1, sheet.tops[0] + 1) is None


def test_draw_hits_labels_the_best_hits_and_counts_all_hits() -> None:
    texts = labels(draw_hits(grid_examples.hits()))
    assert {"Hits of Q (120 residues)", "Bit score", "the best 5 of 1,234 hits", *(f"S{k}" for k in range(5))} <= set(texts)
    sheet = HitSheet(grid_examples.hits(), MEASURE, 400.0, 5)
    assert [sheet.place_at(sheet.box(place).top + 1) for place in range(5)] == list(range(5))
    assert sheet.place_at(sheet.box(0).top - 3) is None


def test_draw_pileup_shows_characters_differences_and_features() -> None:
    pile = grid_examples.pile()
    texts = labels(draw_pileup(pile, grid_examples.features()))
    assert "".join(text for text in texts if text in "ACGT")[:60] == "ACGT" * 15
    assert {"recA ▸", "◂ b", "-"} <= set(texts)
    sheet = PileupSheet(pile, (), (0.5, 60.5), MEASURE, (600.0, 300.0))
    for read in range(3):
        x = sheet.inner.left + (pile.start[read] + 2 - 0.5) * sheet.step
        assert sheet.read_at(float(x), sheet.top + (read + 0.4) * sheet.height) == read
    assert sheet.read_at(sheet.inner.left + 50 * sheet.step, sheet.top + 0.4 * sheet.height) is None


@pytest.mark.parametrize("width", [0.0, 3.0, 20.0, 50.0, 1000.0])
def test_elided_texts_fit_their_width(width: float) -> None:
    text = MEASURE.elided("a name of a protein", width)
    assert MEASURE.width(text) <= width and (text == "a name of a protein" or text == "" or text.endswith("…"))

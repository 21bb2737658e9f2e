"""Sequence logos of stacks: information content computed by hand, symbols of the drawing, and pages."""

from __future__ import annotations

import io
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from proteoscope.engine.sequences.conservation import RESIDUES, information_content, residue_counts
from proteoscope.engine.views.drawings import Clip, Drawing, Symbol, svg
from proteoscope.engine.views.palette import Fixed, Legible, Palette, rgb_of
from proteoscope.engine.views.paper import pdf, png
from proteoscope.engine.views.sheets import Region, TextMeasure
from proteoscope.engine.views.stack_colours import MAXIMUM_BITS, MINIMUM_SEQUENCES, SCHEMES, ColouredStack, StackLogo, stack_colours
from proteoscope.engine.views.stack_drawing import StackSheet, draw_stack
from tests.engine.views.test_stacked_hits import stack_lines

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def symbols_of(lines: list[str]) -> np.ndarray:
    return np.array([list(line.encode()) for line in lines], np.uint8)


def bits_by_definition(column: str) -> float:
    """Return log2(20) - H - e(n) of a column (Schneider & Stephens 1990), not below 0, with loops."""
    residues = [residue for residue in column if residue in AMINO_ACIDS]
    n = len(residues)
    if not n:
        return 0.0
    entropy = -sum(count / n * math.log2(count / n) for count in Counter(residues).values())
    return max(0.0, math.log2(20) - entropy - 19 / (2 * math.log(2) * n))


@pytest.mark.parametrize(
    ("column", "bits"),
    [
        ("L" * 5, 1.5808),  # 4.3219 - 0 - 2.7411
        ("L" * 1000, 4.3082),  # 4.3219 - 0 - 0.0137
        ("A" * 10 + "C" * 10, 2.6366),  # 4.3219 - 1 - 0.6853
        ("LLLLL-----", 1.5808),  # gaps do not count
        ("LLL", 0.0),  # 4.3219 - 4.5686
        ("-----", 0.0),
        (AMINO_ACIDS * 50, 0.0),
    ],
)
def test_sequence_logo_information_equals_hand_computed_values(column: str, bits: float) -> None:
    counts = residue_counts(symbols_of(list(column)))
    assert information_content(counts)[0] == pytest.approx(bits, abs=1e-4)


@given(st.lists(st.text(AMINO_ACIDS + "-XB", min_size=6, max_size=6), min_size=MINIMUM_SEQUENCES, max_size=40))
def test_sequence_logo_symbol_is_frequency_times_information(lines: list[str]) -> None:
    symbols = symbols_of(lines)
    logo = StackLogo.from_symbols(symbols, np.zeros((*symbols.shape, 4), np.uint8))
    assert logo is not None
    for at, column in enumerate(zip(*lines, strict=True)):
        bits, counts = bits_by_definition("".join(column)), Counter(column)
        n = sum(counts[residue] for residue in AMINO_ACIDS)
        expected = [bits * counts[residue] / max(n, 1) for residue in RESIDUES]
        np.testing.assert_allclose(logo.bits[:, at], expected, atol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, MINIMUM_SEQUENCES - 1])
def test_sequence_logo_needs_enough_sequences(n_rows: int) -> None:
    painted = ColouredStack.from_stack(stack_lines(["ACDEF"] * n_rows), "clustal")
    assert painted.logo is None
    sheet = StackSheet(painted, TextMeasure())
    assert sheet.logo == 0 and not symbols_drawn(draw_stack(painted))
    assert sheet.row_at(1.0, Region(0, 0, 400, 300)) == 0


def symbols_drawn(drawing: Drawing) -> list[Symbol]:
    """Return the symbols of a drawing."""
    shapes = [part for shape in drawing.shapes for part in (shape.shapes if isinstance(shape, Clip) else (shape,))]
    return [shape for shape in shapes if isinstance(shape, Symbol)]


LINES = ["ACDIF"] * 12 + ["ACEIF"] * 5 + ["ACW-F"] * 3


@pytest.mark.parametrize("scheme", [scheme.name for scheme in SCHEMES])
def test_sequence_logo_has_heights_order_and_stack_colours(scheme: str) -> None:
    stack = stack_lines(LINES)
    painted, colours = ColouredStack.from_stack(stack, scheme), stack_colours(stack, scheme)
    sheet = StackSheet(painted, TextMeasure())
    drawn = symbols_drawn(draw_stack(painted, sheet.measure))
    full = sheet.logo - 0.5 * sheet.line
    of_columns: list[list[Symbol]] = [[] for _ in range(5)]
    for symbol in drawn:
        of_columns[int((symbol.x + symbol.width / 2 - sheet.name) // sheet.cell)].append(symbol)
    assert [sorted(symbol.text for symbol in column) for column in of_columns] == [["A"], ["C"], ["D", "E", "W"], ["I"], ["F"]]
    for at, column in enumerate(of_columns):
        bits = bits_by_definition("".join(line[at] for line in LINES))
        assert sum(symbol.height for symbol in column) == pytest.approx(full * bits / MAXIMUM_BITS)
        bottom = max(symbol.y + symbol.height for symbol in column)
        assert bottom == pytest.approx(0.25 * sheet.line + full)
        for symbol in column:
            row = next(row for row, line in enumerate(LINES) if line[at] == symbol.text)
            *rgb, alpha = colours[row, at].tolist()
            assert symbol.ink == (Legible(*rgb) if alpha else "text")
    assert [symbol.text for symbol in sorted(of_columns[2], key=lambda symbol: symbol.y)] == ["D", "E", "W"]


def test_sequence_logo_is_hidden_if_low_and_has_tooltips() -> None:
    painted, measure = ColouredStack.from_stack(stack_lines(LINES), "clustal"), TextMeasure(10.0)
    low, high = StackSheet(painted, measure, 120.0), StackSheet(painted, measure, 300.0)
    region = Region(0.0, 0.0, 400.0, 300.0)
    assert low.logo == 0 and not symbols_drawn(low.draw(Region(0.0, 0.0, 400.0, 120.0)))
    assert high.logo > 0 and symbols_drawn(high.draw(region))
    x = high.name + 2.5 * high.cell
    tip = high.text_at(x, high.logo / 2, region)
    assert tip == f"{bits_by_definition('D' * 12 + 'E' * 5 + 'W' * 3):.2f} of 4.32 bits, 20 residues: D 60%, E 25%, W 15%"
    assert high.row_at(high.logo / 2, region) is None and high.row_at(high.logo + 1, region) == 0
    assert high.text_at(x, high.head + 1, region).startswith("s0: D3")


def inked(picture: bytes, scale: float) -> tuple[float, float, float, float]:
    """Return the left, top, right and bottom edges of the red area of a picture, in points."""
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)
    rows, columns = np.nonzero(pixels[:, :, 0] - pixels[:, :, 1] > 100)
    return tuple((np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]) / scale).tolist())  # type: ignore[return-value]


@pytest.mark.parametrize("text", ["E", "H", "M"])
def test_sequence_logo_symbol_fills_its_box_in_files(text: str) -> None:
    drawing = Drawing(100, 80, "t", (Symbol(20, 10, 15, 60, text, Fixed(255, 0, 0)),))
    left, top, right, bottom = inked(png(drawing, 144), 2)
    # Symbols have a little space on both sides.
    assert 20 <= left < 23 and 31 < right <= 35
    assert (top, bottom) == (pytest.approx(10, abs=1), pytest.approx(70, abs=1))
    assert pdf(drawing) == pdf(drawing)
    assert b'lengthAdjust="spacingAndGlyphs"' in svg(drawing) and f">{text}</text>".encode() in svg(drawing)


@pytest.mark.parametrize("colour", [(255, 255, 0), (0, 0, 40), (230, 51, 26), (255, 255, 255)])
@pytest.mark.parametrize("surface", [("#ffffff", "#000000"), ("#16181c", "#e8eaee")])
def test_sequence_logo_colours_contrast_with_the_surface(colour: tuple[int, int, int], surface: tuple[str, str]) -> None:
    palette = Palette(*surface, "#777777", "#777777")

    def luminance(rgb: tuple[int, ...]) -> float:
        parts = [part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in rgb]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    drawn = rgb_of(Legible(*colour), palette)
    low, high = sorted((luminance(drawn), luminance(rgb_of("background", palette))))
    assert (high + 0.05) / (low + 0.05) >= 3
    own_low, own_high = sorted((luminance(colour), luminance(rgb_of("background", palette))))
    assert drawn == colour or (own_high + 0.05) / (own_low + 0.05) < 3

"""Figures as files: the same content as SVG, PDF and PNG, and no partial files."""

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
from PIL import Image as Picture

from proteoscope.engine.errors import StorageError
from proteoscope.engine.views.drawings import Area, Bar, Clip, Curve, Drawing, Image, Label, Points, Sticks, Stroke
from proteoscope.engine.views.figure_files import write_figure
from proteoscope.engine.views.paper import pdf, png

RED, BLUE = np.array([192, 74, 0]), np.array([0, 114, 178])


def every_shape() -> Drawing:
    """Return a drawing of shapes at fixed positions."""
    red_pixels = np.zeros((2, 2, 4), np.uint8)
    red_pixels[..., 0] = red_pixels[..., 3] = 255
    shapes = (
        Bar(10, 10, 20, 10, 0),
        Clip(40, 10, 10, 10, (Bar(30, 0, 100, 100, 0),)),
        Image(60, 10, 10, 10, red_pixels),
        Sticks(np.array([80.0]), np.array([10.0]), np.array([40.0]), 0, 2.0),
        Curve(np.array([0.0, 100.0]), np.array([60.0, 60.0]), 0, 2.0),
        Area(np.array([10.0, 30.0, 20.0]), np.array([90.0, 90.0, 70.0]), 0),
        Points(np.array([50.0]), np.array([80.0]), 0, 6.0),
        Stroke(60, 80, 80, 80, 0, 2.0, is_dashed=True),
        Label(5, 98, "y7²⁺ α <b>&"),
    )
    return Drawing(100, 100, "Shapes & <title>", shapes)


def pixels(drawing: Drawing) -> np.ndarray:
    return np.asarray(Picture.open(BytesIO(png(drawing, 144))).convert("RGB")).astype(int)


def test_png_figure_has_each_shape_at_the_layout_position() -> None:
    picture = pixels(every_shape())
    assert picture.shape == (200, 200, 3)
    for x, y in ((20, 15), (45, 15), (80, 25), (50, 60), (20, 85), (50, 80)):
        assert np.abs(picture[2 * y, 2 * x] - BLUE).max() <= 2, (x, y)
    for x, y in ((35, 15), (55, 15), (45, 25), (90, 90)):
        assert (picture[2 * y, 2 * x] == 255).all(), (x, y)
    assert picture[30, 130].tolist() == [255, 0, 0]
    dashes = picture[160, 122:158]
    assert (dashes == 255).all(axis=1).any() and (np.abs(dashes - BLUE).max(axis=1) <= 2).any()


def test_pdf_figure_contains_labels_as_text() -> None:
    document = pypdfium2.PdfDocument(pdf(every_shape()))
    assert document[0].get_size() == pytest.approx((100, 100))
    assert document[0].get_textpage().get_text_bounded().strip() == "y7²⁺ α <b>&"
    assert document.get_metadata_value("Title") == "Shapes & <title>"


def test_figure_files_are_identical_when_written_again(tmp_path: Path) -> None:
    for ending in ("svg", "pdf", "png"):
        first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
        write_figure(first, every_shape())
        write_figure(second, every_shape())
        assert first.read_bytes() == second.read_bytes()


def test_write_figure_rejects_other_suffix_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot be written as '\.gif'"):
        write_figure(tmp_path / "figure.gif", every_shape())
    with pytest.raises(StorageError):
        write_figure(tmp_path / ("x" * 300) / "figure.svg", every_shape())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_write_figure_works_without_qt(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.engine.views.test_paper import every_shape\n"
        "from proteoscope.engine.views.figure_files import write_figure\n"
        f"write_figure(Path({str(tmp_path / 'figure.png')!r}), every_shape())\n"
        "assert not any(name.startswith(('PySide6', 'pyqtgraph')) for name in sys.modules)"
    )
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
    assert (tmp_path / "figure.png").stat().st_size > 500

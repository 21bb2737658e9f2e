"""Writing of figures as SVG, PDF or PNG, depending on the file extension.

ReportLab and Pillow are loaded only for PDF and PNG.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from proteoscope.engine import views
from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.page_sizes import DPI, PageSize
from proteoscope.engine.views.drawings import Drawing, PaperFigure, svg

__all__ = ["page_drawing", "save_figure", "write_figure"]


def save_figure(path: Path, figure: PaperFigure, size: PageSize, dpi: int = DPI) -> None:
    """Write a figure at a page size, in the format of the file extension; see `write_figure`."""
    write_figure(path, page_drawing(figure, size), dpi)


def page_drawing(figure: PaperFigure, size: PageSize) -> Drawing:
    """Return the drawing of a figure at a page size.

    The drawing is as wide as the page, even if its content is narrower, as for alignments, whose rows contain only whole groups of
    residues.
    """
    drawing = figure.draw(size.width)
    return replace(drawing, width=max(drawing.width, size.width or 0.0))


def write_figure(path: Path, drawing: Drawing, dpi: int = DPI) -> None:
    """Write a drawing atomically as SVG, PDF or PNG, by the extension ``.svg``, ``.pdf`` or ``.png``.

    Parameters
    ----------
    dpi
        Resolution of PNG images in dots per inch, also stored in the file.

    Raises
    ------
    StorageError
        If the extension is not one of these, the folder does not exist, or the file cannot be written.
    """
    writers: dict[str, Callable[[Drawing], bytes]] = {
        ".svg": svg,
        ".pdf": lambda drawn: views.paper.pdf(drawn),
        ".png": lambda drawn: views.paper.png(drawn, dpi),
    }
    ending = path.suffix.lower()
    if ending not in writers:
        raise StorageError(f"{path}: a figure cannot be written as '{ending}'. Choose a name that ends in .svg, .pdf or .png.")
    with storage_errors(path):
        has_folder = path.parent.is_dir()
    if not has_folder:
        raise StorageError(f"{path}: the figure cannot be written, since its folder does not exist. Choose a folder that exists.")
    content = writers[ending](drawing)
    with atomic_file(path) as file:
        file.write(content)

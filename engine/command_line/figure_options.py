"""Command-line options of sub-commands that write figures: file type, width and resolution."""

import argparse

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.page_sizes import DPI, FIGURE_TYPES, MAXIMUM_DPI, MINIMUM_DPI, PAGE_SIZES, TWO_COLUMNS, FigureFormat, page_size

__all__ = ["add_figure_options", "figure_format"]


def add_figure_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for file type, width and resolution of figures to the parser of a sub-command."""
    parser.add_argument("--figure-type", choices=FIGURE_TYPES, default=FIGURE_TYPES[0], help="format of figures (default: %(default)s)")
    parser.add_argument(
        "--figure-width",
        choices=[size.name for size in PAGE_SIZES],
        default=TWO_COLUMNS.name,
        help="width of figures: one column of a journal (85 mm), two columns (178 mm, default), or the figure's own",
    )
    parser.add_argument("--dpi", type=int, default=DPI, metavar="N", help="resolution of figures as PNG (default: %(default)s)")


def figure_format(options: argparse.Namespace) -> FigureFormat:
    """Return the file type, width and resolution of figures that the parsed arguments `options` contain.

    Raises
    ------
    ParameterError
        If the resolution is out of range.
    """
    if not MINIMUM_DPI <= options.dpi <= MAXIMUM_DPI:
        raise ParameterError(f"--dpi is {options.dpi!s:.24}; expected {MINIMUM_DPI} to {MAXIMUM_DPI:,}")
    return FigureFormat(options.figure_type, page_size(options.figure_width), options.dpi)

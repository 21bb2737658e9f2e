"""``proteoscope estimate COMMAND...``: the sub-command that predicts the time and memory of a search."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from proteoscope import engine
from proteoscope.engine import command_line, searches, views
from proteoscope.engine.command_line.search import build_request
from proteoscope.engine.command_line.terminal import show_result
from proteoscope.engine.errors import ParameterError

if TYPE_CHECKING:
    from proteoscope.engine.estimates import Estimate

__all__ = ["add_estimate"]

_EPILOG = """
After `estimate` comes the command as it would be run, a search or `experiment run`; --out may be left out, since nothing is run or
written. Only sizes and beginnings of files are read. `proteoscope devices --calibrate` measures the devices of this machine for it.
"""
_NOWHERE = "not-written"
"""Output of a search that is only estimated, if none is given."""


def add_estimate(commands: Any, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    """Add the sub-command ``estimate`` to argparse's sub-parsers `commands`; the function `parse` parses the arguments of the search."""
    parser = commands.add_parser(
        "estimate",
        help="estimate the time and memory of a search before it runs",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a search with its arguments")
    parser.set_defaults(command=lambda options: _estimate(options, parse))


def _estimate(options: argparse.Namespace, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    kinds = {search.kind: search for search in searches.SEARCHES}
    if options.arguments[:2] == ["experiment", "run"]:
        requested = parse(options.arguments)
        _show(options, requested, f"experiment of runs of {requested.search}", command_line.experiment.estimate_run(requested))
        return
    if not options.arguments or options.arguments[0] not in kinds:
        raise ParameterError(f"estimate: expected a search with its arguments, or experiment run; there are {', '.join(kinds)}")

    search = kinds[options.arguments[0]]
    arguments = [*options.arguments]
    if search.writes != "given project" and not any(argument.partition("=")[0] == "--out" for argument in arguments):
        arguments += ["--out", _NOWHERE]
    requested = parse(arguments)
    result = engine.estimates.estimate(search, build_request(search, requested))
    _show(options, requested, search.name, result)


def _show(options: argparse.Namespace, requested: argparse.Namespace, name: str, result: Estimate) -> None:
    options.json, options.quiet = options.json or requested.json, options.quiet or requested.quiet
    show_result(options, result.record(), _lines(name, result))


def _lines(name: str, estimate: Estimate) -> Iterator[str]:
    words = views.estimates.estimate_text(estimate)
    yield f"{name.capitalize()} on {estimate.device}: {estimate.description}"
    yield f"  {words.headline}"
    for line in words.details:
        title, colon, text = line.partition(": ")
        yield (f"  {title:<8} {text}" if colon and " " not in title else f"  note     {line}")

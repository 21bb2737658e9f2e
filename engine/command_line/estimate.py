"""``proteoscope estimate COMMAND...``: the sub-command that predicts the time and memory of a search."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proteoscope import engine
from proteoscope.engine import searches, views
from proteoscope.engine.command_line.search import build_request
from proteoscope.engine.command_line.terminal import say
from proteoscope.engine.errors import ParameterError

if TYPE_CHECKING:
    from proteoscope.engine.estimates import Estimate

__all__ = ["add_estimate"]

_EPILOG = """
After `estimate` comes the command as it would be run; nothing is run or written. Only sizes and beginnings of files are read. `proteoscope
devices --calibrate` measures the devices of this machine for it.
"""


def add_estimate(commands: Any, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    """Add ``estimate`` to the sub-commands, which are argparse's sub-parsers. `parse` parses the arguments of the search."""
    parser = commands.add_parser(
        "estimate",
        help="estimate the time and memory of a search before it runs",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a search with its arguments")
    parser.set_defaults(command=lambda options: _estimate(options, parse))


def _estimate(options: argparse.Namespace, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    kinds = {search.kind: search for search in searches.SEARCHES}
    if not options.arguments or options.arguments[0] not in kinds:
        raise ParameterError(f"estimate: expected a search with its arguments; there are {', '.join(kinds)}")

    search = kinds[options.arguments[0]]
    requested = parse(options.arguments)
    result = engine.estimates.estimate(search, build_request(search, requested))
    if options.json or requested.json:
        print(json.dumps(result.record(), indent=2))
        return
    _print(search.name, result)


def _print(name: str, estimate: Estimate) -> None:
    words = views.estimates.estimate_text(estimate)
    say(f"{name.capitalize()} on {estimate.device}: {estimate.description}")
    say(f"  {words.headline}")
    for line in words.details:
        title, colon, text = line.partition(": ")
        say(f"  {title:<8} {text}" if colon and " " not in title else f"  note     {line}")

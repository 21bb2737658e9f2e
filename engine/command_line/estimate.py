"""``proteoscope estimate COMMAND...``: what a search will take, before it is run; and what it will as it grows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proteoscope import engine
from proteoscope.engine import searches, views
from proteoscope.engine.command_line.search import request_of
from proteoscope.engine.command_line.terminal import say
from proteoscope.engine.errors import ParameterError

if TYPE_CHECKING:
    from proteoscope.engine.estimates import Estimate

__all__ = ["add_estimate"]

_EPILOG = """
Everything behind `estimate` is the command as it would be run; nothing is run, and nothing is written. Files are looked at by their sizes
and beginnings. With --growth it needs no command: then the seconds, memory and, with a price, cost of 5 and 100 million spectra, and of
10^9 residues against 10,000 queries, are told for 1, 8 and 64 GPUs. Devices are measured by `proteoscope devices --calibrate`.
"""


def add_estimate(commands: Any, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    """Add ``estimate`` to the sub-commands, which are argparse's sub-parsers. `parse`: what the program makes of arguments."""
    parser = commands.add_parser(
        "estimate",
        help="tell what a search will take, before it is run",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--growth", action="store_true", help="project large searches on many GPUs")
    parser.add_argument("--price", type=_price, metavar="AMOUNT", help="of an hour of a GPU, in any currency, for --growth")
    parser.add_argument("asked", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a search with its arguments")
    parser.set_defaults(command=lambda options: _estimate(options, parse))


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0.0 <= price < 1e6:
        raise argparse.ArgumentTypeError(f"'{text:.40}' is no price; expected a number from 0 to 1,000,000")
    return price


def _estimate(options: argparse.Namespace, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    if options.growth:
        _growth(options)
        return
    kinds = {search.kind: search for search in searches.SEARCHES}
    if not options.asked or options.asked[0] not in kinds:
        raise ParameterError(f"estimate: expected a search with its arguments; there are {', '.join(kinds)}")

    search = kinds[options.asked[0]]
    asked = parse(options.asked)
    found = engine.estimates.estimate(search, request_of(search, asked))
    if options.json or asked.json:
        print(json.dumps(found.record(), indent=2))
        return
    _print(search.name, found)


def _print(name: str, found: Estimate) -> None:
    words = views.estimates.estimate_text(found)
    say(f"{name.capitalize()} on {found.device}: {found.description}")
    say(f"  {words.headline}")
    for line in words.details:
        title, colon, text = line.partition(": ")
        say(f"  {title:<8} {text}" if colon and " " not in title else f"  note     {line}")


def _growth(options: argparse.Namespace) -> None:
    rows = engine.growth.projections(options.price)
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
        return
    say(f"{'work':<44} {'GPUs':>5} {'time':>10} {'host GB':>8} {'card GB':>8} {'cost':>9}")
    for row in rows:
        cost = "" if row.cost is None else f"{row.cost:,.2f}"
        memory = f"{row.host_bytes / 1e9:>8.1f} {row.card_bytes / 1e9:>8.1f}"
        say(f"{row.title:<44} {row.gpus:>5} {views.estimates.seconds_text(row.seconds):>10} {memory} {cost:>9}")
    say("Projected by the cost model, with the host's part shared out among machines of eight cards; see docs/cost_model.md.")

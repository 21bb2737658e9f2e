"""``proteoscope estimate COMMAND...``: what a search will take, before it is run; and what it will as it grows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from engine.command_line.search import request_of
from engine.command_line.terminal import say
from engine.errors import ParameterError
from engine.searches import SEARCHES

__all__ = ["add_estimate"]

_EPILOG = """
Everything behind `estimate` is the command as it would be run; nothing is run, and nothing is written. Files are looked at by their sizes
and beginnings. With --growth it needs no command: then the seconds, memory and, with a price, cost of 5 and 100 million spectra, and of
10^9 residues against 10,000 queries, are told for 1, 8 and 64 GPUs. Devices are measured by `proteoscope devices --calibrate`.
"""


def add_estimate(commands: Any, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    """Add ``estimate`` to the sub-commands, which are argparse's sub-parsers. `parse`: what the program makes of arguments."""
    parser = commands.add_parser(
        "estimate", help="tell what a search will take, before it is run", epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
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
    kinds = {search.kind: search for search in SEARCHES}
    if not options.asked or options.asked[0] not in kinds:
        raise ParameterError(f"estimate: expected a search with its arguments; there are {', '.join(kinds)}")
    from engine.estimates import estimate

    search = kinds[options.asked[0]]
    asked = parse(options.asked)
    found = estimate(search, request_of(search, asked))
    if options.json or asked.json:
        print(json.dumps(found.record(), indent=2))
        return
    _print(search.name, found)


def _print(name: str, found: Any) -> None:
    say(f"{name.capitalize()} on {found.device}: {found.description}")
    say(f"  about {_seconds(found.seconds)}, {found.bound}-bound")
    say("  steps    " + ", ".join(f"{step} {_seconds(seconds)}" for step, seconds in found.steps.items() if seconds >= 0.0005))
    say("  shares   " + ", ".join(f"{part} {100 * share:.1f} %" for part, share in found.shares().items()))
    card = f", {found.card_bytes / 1e9:.2f} GB on each card" if found.card_bytes else ""
    say(f"  memory   {found.memory_bytes / 1e9:.2f} GB on the host{card}")
    say("  counted  " + ", ".join(f"{name} {_count(value)}" for name, value in found.counts.items()))
    for device, seconds in found.alternatives.items():
        say(f"  {device:<8} alone: about {_seconds(seconds)}")
    for note in found.notes:
        say(f"  note     {note}")
    if not found.is_measured:
        say("  note     by the figures of another machine; proteoscope devices --calibrate measures this one")
    if found.n_runs:
        say(f"  note     corrected by {found.n_runs} earlier runs of this machine")


def _growth(options: argparse.Namespace) -> None:
    from engine.growth import projections

    rows = projections(options.price)
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
        return
    say(f"{'work':<44} {'GPUs':>5} {'time':>10} {'host GB':>8} {'card GB':>8} {'cost':>9}")
    for row in rows:
        cost = "" if row.cost is None else f"{row.cost:,.2f}"
        say(
            f"{row.title:<44} {row.gpus:>5} {_seconds(row.seconds):>10} {row.host_bytes / 1e9:>8.1f} {row.card_bytes / 1e9:>8.1f} {cost:>9}"
        )
    say("Projected by the cost model, with the host's part shared out among machines of eight cards; see docs/cost_model.md.")


def _seconds(seconds: float) -> str:
    if seconds < 0.95:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value < 1e7 else f"{value:.2e}"

"""``proteoscope workers``: the sub-command that creates certificates and starts schedulers and workers for ``--workers``."""

import argparse
import os
import stat
import sys
from pathlib import Path
from typing import Any

from proteoscope.engine.command_line.search import thread_count
from proteoscope.engine.command_line.terminal import say, show_result
from proteoscope.engine.execution import cluster

__all__ = ["add_workers"]

_ADDRESS = "tls://HOST:PORT"
_EPILOG = """
Anyone with the certificates can run any program, as you, on every machine with a scheduler or workers: protect them like a password.
docs/cluster.md describes each step.
"""


def add_workers(commands: Any) -> None:
    """Add the sub-command ``workers`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("workers", help="compute on other machines: make certificates, run a scheduler or workers", epilog=_EPILOG)
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    certificates = subcommands.add_parser(
        "certificates", help="make certificates with which scheduler, workers and runs recognise each other"
    )
    certificates.add_argument("--out", required=True, metavar="DIR", help="folder for the certificates; if it is new, only you can read it")
    certificates.add_argument("--days", type=int, metavar="N", help="number of days for which the certificates are valid (default: a year)")
    certificates.set_defaults(command=_make_certificates)
    scheduler = subcommands.add_parser("scheduler", help="run a scheduler, which connects workers and runs, until it is interrupted")
    scheduler.add_argument(
        "address", metavar=_ADDRESS, help="address at which the scheduler listens: the name or IP address of this machine, and a port"
    )
    scheduler.add_argument("--certificates", metavar="DIR", help="folder of the certificates")
    scheduler.set_defaults(command=_run_scheduler)
    start = subcommands.add_parser(
        "start", help="run workers on this machine until they are interrupted: one for each GPU, or a single one if the machine has no GPU"
    )
    start.add_argument("address", metavar=_ADDRESS, help="address of the scheduler")
    start.add_argument(
        "--certificates", metavar="DIR", help="folder of the certificates; - reads the certificates of a run from standard input"
    )
    start.add_argument(
        "--count",
        type=thread_count,
        metavar="N",
        help="number of workers (default: one for each GPU, or a single one if the machine has no GPU)",
    )
    start.add_argument("--threads", type=thread_count, metavar="N", help="CPU threads for all workers together (default: all)")
    start.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N|all", help="device of the workers (default: %(default)s)")
    start.set_defaults(command=_start_workers)


def _make_certificates(options: argparse.Namespace) -> None:
    cluster.certificates.needs_cryptography()
    written = cluster.certificates.write_certificates(
        cluster.certificates.make_certificates(cluster.certificates.USUAL_DAYS if options.days is None else options.days), Path(options.out)
    )
    advice = "copy the folder to the machines of scheduler and workers, and do not let others read it."
    show_result(options, {"files": list(map(str, written))}, [f"{len(written)} files in {options.out}: {advice}"])
    if os.name == "posix" and Path(options.out).stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        say(f"other users may write in {options.out}, and replace these files: move them to a private folder", sys.stderr)


def _run_scheduler(options: argparse.Namespace) -> None:
    def ready(address: str) -> None:
        show_result(options, {"address": address}, [f"The scheduler listens at {address}"])
        if sys.stdout is not None:
            sys.stdout.flush()  # scripts read the address while the scheduler runs

    cluster.serving.serve_scheduler(options.address, _security(options), ready)


def _start_workers(options: argparse.Namespace) -> None:
    security = _security(options)

    cluster.serving.serve_workers(
        options.address,
        security,
        count=options.count,
        threads=options.threads,
        device=options.device,
        ends_with_input=options.certificates == "-",
    )
    show_result(options, {"address": options.address})


def _security(options: argparse.Namespace) -> Any:
    """Return the security settings for `distributed`, or None for local use without certificates.

    Raises
    ------
    ParameterError
        If certificates are missing although the address is not on this machine.
    """
    address = cluster.requests.checked_address(options.address)
    cluster.certificates.needs_cryptography()
    if options.certificates == "-" and address.startswith("tls:"):
        return cluster.certificates.Certificates.from_line(sys.stdin.buffer.readline(1 << 20).decode("ascii", "replace")).security()
    return cluster.requests.connection_security(address, None if options.certificates is None else Path(options.certificates))

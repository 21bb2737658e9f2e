"""Commands ``superpose`` and ``structure-database``; the modules that they need are imported when they run."""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from proteoscope.engine import execution, structures
from proteoscope.engine.entry import Command
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.outputs import folder_name

__all__ = ["COMMANDS"]

_SHOWN = 5
_ACTIONS = ("build", "add", "remove")


def _add_superpose(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Superpose one chain onto another with the highest TM-score, and write table, coordinates, alignment and scripts for "
        "PyMOL and ChimeraX. Chains are named as FILE or FILE:CHAIN."
    )
    parser.add_argument("query", metavar="A[:CHAIN]", help=f"structure that is not moved ({format_names('structures')}, also gzipped)")
    parser.add_argument("target", metavar="B[:CHAIN]", help="structure that is moved onto the first structure")
    parser.add_argument("--out", required=True, type=folder_name, metavar="DIR", help="output folder, created if missing")
    _add_models(parser)


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--models",
        choices=("first", "all"),
        default=None,
        help="models of a file that are read: the first (default), or all as chains of an assembly (chain A of the second model is A_2)",
    )


def _superpose(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    files = structures.superposed_files.superpose_files(options.query, options.target, options.models or "first", progress)
    written = files.write(Path(options.out))
    query, target, result = files.query.chains.names[0], files.target.chains.names[0], files.aligned.superpositions
    progress.message(
        f"{query} and {target}: TM-score {result.tm_score_query[0]:.4f} by the query's length, "
        f"{result.tm_score_target[0]:.4f} by the target's; RMSD {result.rmsd[0]:.2f} Å of {result.aligned_length[0]} pairs. "
        f"Written: {options.out}"
    )
    return {
        "query": query,
        "target": target,
        "tm_score_query": float(result.tm_score_query[0]),
        "tm_score_target": float(result.tm_score_target[0]),
        "rmsd": float(result.rmsd[0]),
        "aligned_length": int(result.aligned_length[0]),
        "files": list(map(str, written)),
    }


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Create or change a database of protein chains. build: create a database with exactly the chains of the given files; files that "
        "were read before, also by an interrupted build, are not read again. add: add the chains of files. remove: remove chains by name, "
        "or all chains of a file by its name without suffix. DATABASE/skipped.tsv lists what was left out, with reasons."
    )
    parser.add_argument("action", choices=_ACTIONS, help="build, add or remove chains (see above)")
    parser.add_argument(
        "items",
        nargs="+",
        metavar="FOLDER|LIST|FILE|NAME",
        help="files, folders, or lists of files; for remove: names of chains, or of files without suffix",
    )
    parser.add_argument("--out", required=True, type=folder_name, metavar="DATABASE", help="folder of the database, created if missing")
    parser.add_argument(
        "--minimum-plddt",
        type=float,
        metavar="PLDDT",
        help="leave out residues of predicted structures with a lower pLDDT (0 to 100; only for build; default: 0)",
    )
    _add_models(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="number of processes that read files (default: one per CPU core)")


def _change_database(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    if options.minimum_plddt is not None and options.action != "build":
        raise ParameterError("--minimum-plddt applies to build only; a changed database keeps its own value")
    if options.models is not None and options.action != "build":
        raise ParameterError("--models applies to build only; a changed database keeps its own value")
    if options.threads is not None and not 1 <= options.threads <= 1024:
        raise ParameterError(f"--threads is {options.threads}; expected 1 to 1024")
    if options.action == "remove":
        database = structures.building.remove_from_database(options.items, options.out)
    else:
        execution.precompile.compile_kernels(["superposition"], progress)
        if options.action == "build":
            database = structures.building.build_database(
                options.items,
                options.out,
                minimum_plddt=options.minimum_plddt or 0.0,
                models=options.models or "first",
                processes=options.threads,
                progress=progress,
            )
        else:
            database = structures.building.add_to_database(options.items, options.out, processes=options.threads, progress=progress)
    if options.minimum_plddt and (unrated := database.chains.unrated(options.minimum_plddt)):
        progress.message(unrated, "warning")
    skipped = database.skipped
    read = {database.content.sources[number].path for number in set(database.content.source.tolist())}
    for path, chain, reason in skipped[:_SHOWN]:
        is_whole = not chain and path not in read
        progress.message(f"{'Left out: ' if chain or is_whole else ''}{path}{f', chain {chain}' if chain else ''}: {reason}", "warning")
    if len(skipped) > _SHOWN:
        progress.message(f"and {len(skipped) - _SHOWN} more, listed in {Path(options.out) / 'skipped.tsv'}", "warning")
    twice = [name for name, n in Counter(database.chains.names).items() if n > 1]
    if twice:
        progress.message(f"{len(twice)} names are used by several chains, such as {twice[0]}: their files have equal names", "warning")
    n_residues = int(database.chains.offsets[-1])
    progress.message(f"{len(database.chains):,} chains, {n_residues:,} residues: {options.out}")
    return {
        "folder": options.out,
        "chains": len(database.chains),
        "residues": n_residues,
        "skipped": [{"file": str(path), "chain": chain, "reason": reason} for path, chain, reason in skipped],
    }


COMMANDS = (
    Command("superpose", "superpose one protein chain onto another", _add_superpose, _superpose, inputs=("query", "target")),
    Command(
        "structure-database",
        "build a database of protein structures, add to it, remove from it",
        _add_database,
        _change_database,
        inputs=("items",),
    ),
)

"""``proteoscope align``: the sub-command of the protein sequence search."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engine.command_line.output import STANDARD_OUTPUT, output_file, output_name
from engine.command_line.terminal import TerminalProgress, say
from engine.errors import ParameterError
from engine.jobs.progress import Progress

if TYPE_CHECKING:
    from engine.sequence_search.parameters import SequenceSearchParameters
    from engine.sequence_search.search import SequenceSearchSummary

__all__ = ["HIT_FORMATS", "add_align"]

HIT_FORMATS = ("tsv", "blast6", "sam", "fasta", "clustal", "html")
_EPILOG = """
Gaps: a gap of k residues costs GAP_OPEN + k * GAP_EXTEND, as BLAST counts (its 11/1 makes the first residue cost 12). Without
--gap-open and --gap-extend the costs are those that NCBI recommends for the matrix, 11 and 1 where it says nothing.

Letters: any case. U, O and J count as X. B, Z, X and * score as the matrix says; where it lacks them, B and Z count as X, X scores -1
with everything and * the least score of the matrix. A * at a sequence's end, digits, blanks and gaps (- and .) are left out.

Matrices: BLOSUM30 to BLOSUM100, BLOSUMN, PAM10 to PAM500, DAYHOFF, GONNET, IDENTITY, or a file in NCBI's format (whole numbers).

E-values: lambda and K are those of NCBI's tables (BLOSUM45, 50, 62, 80, 90; PAM30, 70, 250; IDENTITY) with the finite-size correction of
BLAST; for other matrices or gap costs they are fitted to the scores of the search, or of random sequences where the search has too few
unrelated pairs, and the program says so.

Devices: cpu; cuda, the first usable GPU; cuda:N; all, every usable GPU and the processor together, each with the share that suits its
measured speed; auto, every usable GPU, but the processor where there is none or where it is done before a GPU would be ready.

Formats: tsv (a header; positions from 1; identity and coverages from 0 to 1), blast6 (BLAST's -outfmt 6), sam, fasta (the two
sequences of each alignment, with gaps), clustal (an alignment for each hit), html (a page with tables and alignments).
"""


def add_align(commands: Any, thread_count: Callable[[str], int], interruptible: Callable[[Progress], AbstractContextManager[None]]) -> None:
    """Add ``align`` to the sub-commands.

    Parameters
    ----------
    commands : argparse's sub-parsers. thread_count : reads a number of threads.
    interruptible : a context in which Ctrl-C cancels a progress.
    """
    parser = commands.add_parser(
        "align",
        help="search a protein database with Smith-Waterman",
        description="Align every query with every sequence of a database (Smith-Waterman, nothing left out); report hits with E-values.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("query", metavar="QUERY", help="FASTA file with one or more proteins, also gzipped")
    parser.add_argument("database", metavar="DATABASE", help="FASTA file with proteins, also gzipped")
    parser.add_argument(
        "--out", required=True, type=output_name, metavar="FILE",
        help="file for the hits; - for standard output, where then nothing else is printed",
    )  # fmt: skip
    parser.add_argument("--format", choices=HIT_FORMATS, default="tsv", help="what to write there (default: %(default)s)")
    parser.add_argument("--preset", metavar="NAME|FILE.toml", help="parameters to begin with: standard, distant, close, short")
    parser.add_argument("--matrix", metavar="NAME|FILE", help="substitution matrix (default: BLOSUM62)")
    parser.add_argument("--gap-open", metavar="N", help="cost of a gap besides that of its residues")
    parser.add_argument("--gap-extend", metavar="N", help="cost of each residue in a gap")
    parser.add_argument("--max-e-value", metavar="E", help="largest E-value of a hit (default: 10)")
    parser.add_argument("--top", metavar="N", help="hits of each query at most (default: 500)")
    parser.add_argument("--statistics", metavar="automatic|fitted", help="E-values from NCBI's tables where they can be, or always fitted")
    parser.add_argument("--all-scores", metavar="FILE.npy", help="write the scores of all pairs: int32 (queries, subjects), in file order")
    parser.add_argument("--project", metavar="DIR", help="also record the run and its tables in this project folder")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N|all", help="what computes (default: %(default)s)")
    parser.add_argument("--threads", type=thread_count, metavar="N", help="threads of the processor (default: all)")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--quiet", action="store_true", help="print nothing but errors")
    output.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.set_defaults(command=lambda options: _align(options, interruptible))


def _align(options: argparse.Namespace, interruptible: Callable[[Progress], AbstractContextManager[None]]) -> None:
    parameters = _parameters(options)
    if options.all_scores == STANDARD_OUTPUT or (options.json and options.out == STANDARD_OUTPUT):
        raise ParameterError("standard output takes the hits alone; give --all-scores a file, and leave out --json with --out -")
    shows_progress = not options.quiet and not options.json
    with output_file(options.out) as out, TerminalProgress(sys.stderr if shows_progress else None) as terminal:
        progress = Progress(terminal.handle)
        with interruptible(progress):
            from engine.sequence_search.search import align

            summary = align(
                [options.query], [options.database], out, parameters, format=options.format, all_scores=options.all_scores,
                project_folder=options.project, device=options.device, threads=options.threads, progress=progress,
            )  # fmt: skip
    if options.json:
        print(json.dumps({**asdict(summary), "folder": None if summary.folder is None else str(summary.folder)}, indent=2))
    elif not options.quiet and options.out != STANDARD_OUTPUT:
        _print_summary(summary, options)


def _parameters(options: argparse.Namespace) -> SequenceSearchParameters:
    """The parameters of the preset, changed by the options; a matrix named alone brings its own gap costs."""
    from engine.parameters import read_preset
    from engine.sequence_search.parameters import SequenceSearchParameters
    from engine.sequences.matrices import matrix_name

    try:
        values = read_preset("align", options.preset) if options.preset else {}
        SequenceSearchParameters.checked(values)
    except ParameterError as error:
        raise ParameterError(f"preset {options.preset}: {error}" if options.preset else str(error)) from None
    if options.matrix is not None:
        from engine.sequences.statistics import default_gap_costs

        gap_open, gap_extend = default_gap_costs(matrix_name(options.matrix))
        values |= {"matrix": options.matrix, "gap_open": gap_open, "gap_extend": gap_extend}
    names = ("gap_open", "gap_extend", "max_e_value", "top", "statistics")
    values |= {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return SequenceSearchParameters.checked(values)


def _print_summary(summary: SequenceSearchSummary, options: argparse.Namespace) -> None:
    from engine.sequence_search.search import hit_counts

    queries, subjects = _counted(summary.n_queries, "query", "queries"), _counted(summary.n_subjects, "sequence", "sequences")
    say(f"{queries} against {subjects} ({_counted(summary.n_residues, 'residue', 'residues')})")
    found = hit_counts(summary.n_queries, summary.n_hits, summary.n_queries_with_hits)
    say(f"{found}; lambda {summary.lambda_:.4g}, K {summary.K:.3g}, {summary.statistics}")
    for query, subject, e_value, description in summary.best:
        say(f"  {query:<24.24} {subject:<24.24} {e_value:8.1e}  {description:.60}")
    steps = ", ".join(f"{name} {step['seconds']:.2f} s" for name, step in summary.stages.items())
    say(f"{summary.seconds:.2f} s on {summary.device} ({steps}; {summary.gcups:.1f} GCUPS)")
    say(f"Hits: {options.out}")
    if summary.folder is not None:
        say(f"Project: {summary.folder}")


def _counted(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"

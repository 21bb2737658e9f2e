"""Sub-command ``predict``, which predicts a spectral library. Modules that compute are imported when it runs."""

import argparse
from typing import Any

from proteoscope.engine import library_search
from proteoscope.engine.entry import Command
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.jobs.progress import Progress

__all__ = ["COMMANDS"]

_FORMATS = ("msp", "mzspeclib", "blib")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Predict the spectra of the peptides of proteins, and write a spectral library that proteoscope library and other programs can "
        "search. Intensities are predicted for b and y ions in beam-type collisions (HCD) of tryptic peptides. Modifications change only "
        "the predicted masses, not the intensities. Neutral losses and retention times are not predicted."
    )
    parser.add_argument(
        "proteins", nargs="+", metavar="PROTEINS", help=f"protein sequences ({format_names('proteins')}), also gzipped; or -"
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="LIBRARY",
        help="file of the library: .msp, .mzspeclib.txt or .blib, gzipped if its name ends with .gz; - for standard output",
    )
    parser.add_argument("--format", choices=_FORMATS, default="", help="format of LIBRARY (default: by its suffix)")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a parameter, as missed_cleavages=2 or variable_modifications='Oxidation (M)'; may be given several times; "
        "proteoscope parameters predict lists them",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: all)")


def _predict(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    if options.threads is not None and not 1 <= options.threads <= 1024:
        raise ParameterError(f"--threads is {options.threads}; expected 1 to 1024")
    parameters = library_search.prediction_parameters.PredictionParameters().changed(options.settings)
    made = library_search.prediction.predict_library(
        options.proteins, options.out, parameters, progress, format=options.format, threads=options.threads
    )
    progress.message(f"{made.n_entries:,} entries of {made.n_peptides:,} peptides written: {made.out}")
    return {"n_peptides": made.n_peptides, "n_entries": made.n_entries}


COMMANDS = (
    Command(
        "predict",
        "predict a spectral library from proteins",
        _add_predict,
        _predict,
        lambda: library_search.prediction_parameters.PredictionParameters,
        ("proteins",),
        ("out",),
    ),
)

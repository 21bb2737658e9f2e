"""Speed of predicting a library from proteins and of searching many spectra in it.

    python -m benchmarks.predicted_library --data FOLDER [--device cpu|cuda] [--entries N] [--threads N] [--narrow] [--write]

The library has `--entries` of the 844,087 peptides with charges 2 and 3 of a proteome (`18Protein_SoCe_Tr_detergents_trace.fasta`), evenly
distributed over the masses. The 22,690 spectra are `spectra/bench_x10.mgf`. The narrow search has a precursor tolerance of 10 ppm; the open
search, which `--narrow` omits, has 200 Da. `seconds` is the time from prepared references to matches with error rates. Each search is done
twice, and the second is reported, because the first compiles. `--write` measures the command `proteoscope predict` as a process that writes
a temporary file, and its peak memory. Output: one JSON line per figure.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.figures import emit, existing, usable_gpus
from benchmarks.library_search import rated_matches
from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.prediction import PredictedLibrary
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.library_search.references import load_references, save_references
from proteoscope.engine.peptides.indexes import Databases, build_indexes
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.library_entries import spectral_library
from proteoscope.engine.spectra.spectral_library import SpectralLibrary


def predicted(database: Path, n_entries: int, resources: Resources) -> SpectralLibrary:
    """Return `n_entries` entries, evenly spread over all."""
    parameters = PredictionParameters()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        indexes = build_indexes(Databases([database], [], {}), Path(folder), parameters, resources)
        indexed = time.perf_counter()
        library = spectral_library(list(PredictedLibrary(indexes, parameters, resources).batches()), database)
        done = time.perf_counter()
    emit(
        {},
        figure="predict",
        entries=len(library),
        peaks=len(library.mz),
        index_seconds=round(indexed - begun, 2),
        seconds=round(done - indexed, 2),
        threads=resources.threads,
    )
    rows = np.unique(np.linspace(0, len(library) - 1, n_entries).astype(np.int64))
    return library.take(rows)


def compare(library: SpectralLibrary, spectra: Spectra, resources: Resources, repeats: int, tolerances: tuple[str, ...]) -> None:
    """Search a library, within each of some tolerances."""
    name = resources.used
    with tempfile.TemporaryDirectory() as folder:
        parameters = LibrarySearchParameters().changed(isotope_errors=(0, 1))
        begun = time.perf_counter()
        save_references(library, Path(folder), parameters, resources)
        references = load_references(Path(folder))
        with_index = time.perf_counter() - begun
        for tolerance in tolerances:
            of_tolerance = parameters.changed(precursor_tolerance=tolerance)
            for _ in range(repeats):
                begun, processor = time.perf_counter(), time.process_time()
                matches = rated_matches(spectra, references, of_tolerance, resources)
                seconds, processor = time.perf_counter() - begun, time.process_time() - processor
            accepted = int(((matches.q_value <= of_tolerance.fdr) & ~matches.is_decoy).sum())
            emit(
                {},
                figure="search",
                device=name,
                threads=resources.threads,
                spectra=len(spectra),
                entries=len(library),
                references=len(references),
                tolerance=tolerance,
                accepted=accepted,
                seconds=round(seconds, 2),
                processor_seconds=round(processor, 2),
                index_seconds=round(with_index, 2),
            )


def write(database: Path) -> None:
    """Measure the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "predicted.msp"
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "proteoscope", "predict", database, "--out", out, "--quiet"], check=True)
        seconds = time.perf_counter() - begun
        emit(
            {},
            figure="command",
            seconds=round(seconds, 2),
            megabytes=round(out.stat().st_size / 1e6),
            peak_megabytes=round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3),
        )


def main() -> None:
    """Predict the library, and print the times of its prediction and of the searches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--entries", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--narrow", action="store_true", help="no open search, which takes long on a CPU")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    database = existing(given.data / "proteomes" / "18Protein_SoCe_Tr_detergents_trace.fasta")
    if given.write:
        write(database)
        return
    progress = Progress()
    gpus = open_gpus(usable_gpus(needed=True)[0], progress) if given.device == "cuda" else []
    resources = Resources(given.threads, gpus, progress=progress)
    spectra = read_spectra([existing(given.data / "spectra" / "bench_x10.mgf")], threads=given.threads)
    compare(
        predicted(database, given.entries, resources),
        spectra,
        resources,
        given.repeats,
        ("10 ppm",) if given.narrow else ("10 ppm", "200 Da"),
    )


if __name__ == "__main__":
    main()

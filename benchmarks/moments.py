"""Latency of cancellation and of steps for which a user waits; one JSON line per figure.

    python -m benchmarks.moments [--threads N] [--repeats 3] > figures.jsonl

Tests count checks, lines and bytes instead, which do not depend on the load of the machine. This benchmark measures seconds, on shipped and
random data: `seconds` is the minimum of the repeats, `longest` the maximum.

cancel
    time from cancellation to the end of the search, for each stage of `identify` (the target is half a second), and for scoring and
    aligning long sequences.
control-c
    time from the signal to the end of a process that aligns.
step
    time of single steps: posterior error probabilities of a million matches, protein groups of 100,000 peptides, texts of 100,000
    peptidoforms, and verification of an index of 300 MB.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.chemistry.peptidoforms import write_many
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.engine.matches.protein_groups import infer_protein_groups
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project.index_store import IndexStore
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.alignment import align_pair
from proteoscope.engine.sequences.matrices import encode, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from tests.searching import identify

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLES = REPOSITORY / "resources" / "samples"
SPECTRA, DATABASE = SAMPLES / "Ecoli_MS2_small.mzML.gz", SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)


def emit(figure: str, what: str, seconds: list[float]) -> None:
    """Print a figure as a JSON line immediately."""
    line = {"figure": figure, "what": what, "seconds": round(min(seconds), 3), "longest": round(max(seconds), 3)}
    print(json.dumps(line), flush=True)


def timed(work: Callable[[], Any]) -> float:
    """Return seconds that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def seconds_until_cancelled(work: Callable[[Progress], Any], progress: Progress, cancelled: list[float]) -> float:
    """Return the seconds from a cancel by other code, which records its time in `cancelled`, to the end of the work."""
    try:
        work(progress)
    except Cancelled:
        return time.perf_counter() - cancelled[0]
    raise RuntimeError("it ended before the cancel")


def cancelled_in_stage(title: str, folder: Path, index: int, threads: int) -> float:
    """Return the seconds that a search continues after a cancel at the beginning of a stage; `index` makes it build another index."""
    cancelled: list[float] = []

    def cancel_at_stage(event: ProgressEvent) -> None:
        if event.stage == title and not cancelled:
            cancelled.append(time.perf_counter())
            progress.cancel()

    progress = Progress(cancel_at_stage)
    return seconds_until_cancelled(lambda progress: searched(folder, progress, index, threads), progress, cancelled)


def searched(folder: Path, progress: Progress, index: int, threads: int) -> None:
    """Identify the sample."""
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    parameters = parameters.changed(second_pass=True, maximum_mass=5000.0 + index)
    # A cancel during the advice, after the results, ends the advice only.
    identify([SPECTRA], [DATABASE], folder, parameters, threads=threads, progress=progress, advice="none")


def cancelled_after(seconds: float, work: Callable[[Progress], Any]) -> float:
    """Return the seconds that work continues after a cancel some time after its beginning."""
    progress, cancelled = Progress(), []

    def cancel() -> None:
        cancelled.append(time.perf_counter())
        progress.cancel()

    threading.Timer(seconds, cancel).start()
    return seconds_until_cancelled(work, progress, cancelled)


def measure_cancels(folder: Path, threads: int, repeats: int) -> None:
    """Print how soon a cancel takes effect."""
    stages: list[str] = []
    searched(folder / "whole", Progress(lambda event: stages.append(event.stage)), 0, threads)
    index = 0
    for title in dict.fromkeys(stage for stage in stages if stage and not stage.startswith(("Compiling", "Looking"))):
        seconds = []
        for _ in range(repeats):
            index += 1
            seconds.append(cancelled_in_stage(title, folder / "project", index, threads))
        emit("cancel", title, seconds)
    protein = encode(np.random.default_rng(1).choice(np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8), 35_000))
    offsets = np.arange(201, dtype=np.int64) * len(protein)
    many = np.tile(protein, 200)
    for n in (200, 1):

        def score(progress: Progress, n: int = n) -> None:
            score_all([protein] * 50, many[: n * len(protein)], offsets[: n + 1], SCHEME, threads, progress)

        emit("cancel", f"scoring against {n} of 35,000 residues", [cancelled_after(0.3, score) for _ in range(repeats)])

    def align(progress: Progress) -> None:
        for _ in range(100):
            align_pair(protein[:12_000], protein[:11_000], SCHEME, progress)

    emit("cancel", "aligning two of 12,000 residues", [cancelled_after(0.3, align) for _ in range(repeats)])


def interrupted(folder: Path) -> float:
    """Return seconds from the signal to the end of a process that scores."""
    random = np.random.default_rng(2)
    path = folder / "long.fasta"
    path.write_text("".join(f">{k}\n{''.join(random.choice(list('ARNDCQEGHILKMFPSTWYV'), 30_000))}\n" for k in range(60)))
    command = [sys.executable, "-m", "proteoscope.engine.command_line", "align", str(path), str(path), "--out", str(folder / "hits.tsv")]
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("Scoring"):
                break
        time.sleep(0.3)

        def stop() -> None:
            process.send_signal(signal.SIGINT)
            process.communicate()

        return timed(stop)


def measure_steps(folder: Path, repeats: int) -> None:
    """Print the seconds of single steps."""
    random = np.random.default_rng(3)
    is_decoy = random.random(1_000_000) < 0.3
    score = random.normal(size=1_000_000) + 2.0 * (~is_decoy & (random.random(1_000_000) < 0.7))
    emit("step", "posterior errors of 1,000,000", [timed(lambda: posterior_error_probabilities(score, is_decoy)) for _ in range(repeats)])
    n_peptides, n_proteins = 100_000, 30_000
    per_peptide = random.integers(1, 6, n_peptides)
    proteins = (np.repeat(random.integers(0, n_proteins, n_peptides), per_peptide) + random.integers(0, 4, per_peptide.sum())) % n_proteins
    columns = random.normal(size=n_peptides), np.zeros(n_peptides, bool), per_peptide, np.zeros(n_proteins, bool)
    offsets = np.append(0, np.cumsum(per_peptide))
    emit("step", "groups of 100,000 peptides", [timed(lambda: infer_protein_groups(offsets, proteins, *columns)) for _ in range(repeats)])
    n = 100_000
    modified = ["PEPTMIDESEQMK"] * n, np.arange(n + 1), np.full(n, 5), np.zeros(n, dtype=int), ["Oxidation"], [15.994915]
    emit("step", "texts of 100,000 peptidoforms", [timed(lambda: write_many(*modified)) for _ in range(repeats)])
    store = IndexStore(folder / "indexes")
    key = store.key({})
    with store.build(key, {}) as building:
        for i in range(3):
            random.integers(0, 256, 100 << 20, dtype=np.uint8).tofile(building / f"{i}.bin")
    emit("step", "an index of 300 MB verified", [timed(lambda: store.open(key)) for _ in range(repeats)])


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-moments-") as name:
        folder = Path(name)
        measure_steps(folder, options.repeats)
        emit("control-c", "align", [interrupted(folder) for _ in range(options.repeats)])
        measure_cancels(folder, options.threads, options.repeats)


if __name__ == "__main__":
    main()

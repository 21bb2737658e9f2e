"""Speed of the alignment with a bounded number of gaps, and mapping of reads to genomes compared with minimap2, as JSON lines.

    python -m benchmarks.reads cells [--pairs 204800] [--text 250] [--pattern 200] [--gaps 2] [--threads N] [--device cpu|cuda]

Cells of all layers per second, for scores only and with alignments; the median of five rounds. Texts are random nucleotides; patterns are
the beginnings of the texts with 2 % errors. Biopython's `PairwiseAligner`, which has no bound on gaps and one layer, scores some of the
same pairs.

    python -m benchmarks.reads places --data FOLDER [--reads 1000000] [--rounds 3] [--threads N] [--device cpu|cuda]

Simulated reads of 150 bases (2 % errors, up to two gaps of 1 to 6 bases, both strands) of S. aureus NCTC 8325: the whole command, and
minimap2 (mappy, preset sr) in turn, each a separate process that reads, indexes, places and writes: seconds, CPU seconds, and the
share that is mapped within 20 bases of its origin, by number of gaps.

    python -m benchmarks.reads strains --data FOLDER [--reads 100000]

Reads of S. aureus RN4220 without errors on NCTC 8325: of the reads that minimap2 maps with a quality of 30 or more, how many get the same
position. `--mappy PYTHON` is a Python with mappy; the default is that of tests/peers/install.sh.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import emit
from benchmarks.simulated_reads import Origins, genome_of, write_reads
from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.devices import processor, resolve_device
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.scoring import align_pairs, build_workload
from proteoscope.engine.version import VERSION
from proteoscope.kernels.gapsmis_layouts import GapRules, Sequences
from tests.peers.peer_programs import peers_folder

GENOME, STRAIN, NEAR, SURE = "dna_Saureus_NCTC8325.fasta", "dna_Saureus_RN4220.fasta", 20, 30
PEER = Path(__file__).parents[1] / "tests" / "peers" / "place_with_mappy.py"
ROUNDS, PAIRS_OF_PEER = 5, 300
MATRIX = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)


def inputs(n: int, text: int, pattern: int) -> tuple[Sequences, Sequences]:
    """Return texts and patterns."""
    random = np.random.default_rng(1)
    texts = random.integers(0, 4, (n, text)).astype(np.int8)
    patterns = texts[:, :pattern].copy()
    wrong = random.random(patterns.shape) < 0.02
    patterns[wrong] = random.integers(0, 4, wrong.sum())
    return Sequences(texts.ravel(), np.arange(n + 1) * text), Sequences(patterns.ravel(), np.arange(n + 1) * patterns.shape[1])


def peer_seconds(texts: Sequences, patterns: Sequences, n: int) -> float:
    """Return seconds that Biopython takes for the scores of the first pairs."""
    from Bio.Align import PairwiseAligner

    aligner = PairwiseAligner(mode="global", match_score=2, mismatch_score=-3, open_gap_score=-7, extend_gap_score=-2)
    aligner.open_right_deletion_score = aligner.extend_right_deletion_score = 0
    bases = np.frombuffer(b"ACGT", np.uint8)
    pairs = [
        tuple(bases[sequences.codes[sequences.offsets[k] : sequences.offsets[k + 1]]].tobytes().decode() for sequences in (texts, patterns))
        for k in range(n)
    ]
    began = time.perf_counter()
    for text, pattern in pairs:
        aligner.score(text, pattern)
    return time.perf_counter() - began


class Placed(NamedTuple):
    """Positions of reads, by number: first base on the genome, or -1; reverse strand; mapping quality; time and memory."""

    start: NDArray[np.int64]
    is_reverse: NDArray[np.bool_]
    quality: NDArray[np.int64]
    cost: dict[str, object]


def measured(command: list[str]) -> tuple[str, dict[str, object]]:
    """Return the output of a process, and its wall and CPU seconds."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return printed, {"seconds": round(time.perf_counter() - began, 2), "processor_seconds": round(spent, 2)}


def placed_here(genome: Path, reads: Path, folder: Path, n: int, options: argparse.Namespace) -> Placed:
    """Return positions by this program, from its SAM."""
    out = folder / "places.sam"
    command = [
        sys.executable,
        "-m",
        "proteoscope.engine.command_line",
        "reads",
        str(genome),
        str(reads),
        "--out",
        str(out),
        "--mode",
        "within",
    ]
    _, cost = measured([*command, "--device", options.device, "--threads", str(options.threads), "--quiet"])
    placed = Placed(np.full(n, -1), np.zeros(n, np.bool_), np.zeros(n, np.int64), cost)
    with out.open() as file:
        for line in file:
            if not line.startswith("@"):
                name, flag, _, position, quality, _ = line.split("\t", 5)
                k = int(name)
                if not int(flag) & 4:
                    placed.start[k], placed.is_reverse[k], placed.quality[k] = int(position) - 1, bool(int(flag) & 16), int(quality)
    return placed


def placed_by_peer(genome: Path, reads: Path, folder: Path, n: int, options: argparse.Namespace) -> Placed:
    """Return positions by minimap2."""
    out = folder / "places.tsv"
    version, cost = measured([options.mappy, str(PEER), str(genome), str(reads), str(out), str(options.threads)])
    placed = Placed(np.full(n, -1), np.zeros(n, np.bool_), np.zeros(n, np.int64), {**cost, "mappy": version.strip()})
    with out.open() as file:
        for line in file:
            name, _, start, strand, quality = line.split("\t")
            k = int(name)
            placed.start[k], placed.is_reverse[k], placed.quality[k] = int(start), strand == "-", int(quality)
            if strand == "*":
                placed.start[k] = -1
    return placed


PROGRAMS = {"Proteoscope": placed_here, "minimap2": placed_by_peer}


def circumstances(options: argparse.Namespace) -> dict[str, object]:
    """Return the settings that figures depend on."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": processor().description,
        "threads": options.threads,
        "device": options.device,
        "version": VERSION,
        "load": round(os.getloadavg()[0], 1),
        **({"remark": options.remark} if options.remark else {}),
    }


def are_mapped_to(placed: Placed, start: NDArray[np.int64], is_reverse: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return True for each read that is mapped to the given positions."""
    return (placed.start >= 0) & (placed.is_reverse == is_reverse) & (np.abs(placed.start - start) <= NEAR)


def measure_places(options: argparse.Namespace) -> None:
    """Measure simulated reads that are mapped to their origin."""
    genome = options.data / "dna" / GENOME
    with tempfile.TemporaryDirectory(prefix="proteoscope-reads-") as folder:
        reads = Path(folder, "reads.fastq")
        origins: Origins = write_reads(reads, genome_of(genome), options.reads)
        for number in range(options.rounds):
            for program, place in PROGRAMS.items():
                placed = place(genome, reads, Path(folder), options.reads, options)
                right = are_mapped_to(placed, origins.start, origins.is_reverse)
                by_gaps = {str(gaps): round(float(right[origins.gaps == gaps].mean()), 5) for gaps in range(3)}
                wrong = int(((placed.start >= 0) & ~right & (placed.quality >= SURE)).sum())
                emit(
                    {"figure": "simulated reads", "program": program, **circumstances(options)},
                    reads=options.reads,
                    round=number + 1,
                    **placed.cost,
                    at_their_place=round(float(right.mean()), 5),
                    by_gaps=by_gaps,
                    placed=int((placed.start >= 0).sum()),
                    sure_and_wrong=wrong,
                )


def measure_strain(options: argparse.Namespace) -> None:
    """Measure reads of one strain on the genome of another."""
    genome = options.data / "dna" / GENOME
    with tempfile.TemporaryDirectory(prefix="proteoscope-reads-") as folder:
        reads = Path(folder, "reads.fastq")
        write_reads(reads, genome_of(options.data / "dna" / STRAIN), options.reads, errors=0.0, maximum_gaps=0)
        ours, peer = (place(genome, reads, Path(folder), options.reads, options) for place in PROGRAMS.values())
    sure = peer.quality >= SURE
    same = are_mapped_to(ours, peer.start, peer.is_reverse)
    emit(
        {"figure": "reads of another strain", **circumstances(options)},
        reads=options.reads,
        placed=int((ours.start >= 0).sum()),
        placed_by_minimap2=int((peer.start >= 0).sum()),
        sure_of_minimap2=int(sure.sum()),
        the_same=round(float(same[sure].mean()), 5),
        sure_of_both=int((sure & (ours.quality >= SURE)).sum()),
        the_same_of_both=round(float(same[sure & (ours.quality >= SURE)].mean()), 6),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cells", "places", "strains"), nargs="?", default="cells")
    numbers = {"pairs": 204_800, "text": 250, "pattern": 200, "gaps": 2, "threads": available_threads(), "reads": 0, "rounds": 3}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, help="folder of the test data")
    parser.add_argument("--mappy", default=str(peers_folder() / "python" / "bin" / "python"), metavar="PYTHON")
    parser.add_argument("--remark", default="", help="what else is to be known of the figures, as that the machine was busy")
    options = parser.parse_args()
    if options.what == "cells":
        cells(options)
        return
    if options.data is None:
        parser.error("--data FOLDER is needed")
    options.reads = options.reads or (1_000_000 if options.what == "places" else 100_000)
    (measure_places if options.what == "places" else measure_strain)(options)


def cells(options: argparse.Namespace) -> None:
    """Measure the speed of pairs."""
    texts, patterns = inputs(options.pairs, options.text, options.pattern)
    rules = GapRules(MATRIX, 5, 2, options.gaps)
    progress = Progress()
    used = open_gpus(resolve_device(options.device), progress)
    every, size = np.arange(options.pairs), float(options.pairs) * options.text * options.pattern
    with Executor(Resources(options.threads, used, not used, progress)).session(build_workload(texts, patterns, rules)) as session:
        for traces in (False, True):
            seconds = []
            for _ in range(1 + ROUNDS):  # the first one warms up
                began = time.perf_counter()
                align_pairs(session, every, every, traces=traces)
                seconds.append(time.perf_counter() - began)
            median = float(np.median(seconds[1:]))
            gcups = round(size * (options.gaps + 1) / median / 1e9, 3)
            what = "alignments" if traces else "scores"
            print(json.dumps({"what": what, "device": options.device, "seconds": round(median, 3), "gcups": gcups}), flush=True)
    n = min(options.pairs, PAIRS_OF_PEER)
    seconds_of_peer = peer_seconds(texts, patterns, n)
    gcups = round(n * options.text * options.pattern / seconds_of_peer / 1e9, 4)
    print(json.dumps({"what": "scores, Biopython, one thread, one layer", "seconds": round(seconds_of_peer, 3), "gcups": gcups}))


if __name__ == "__main__":
    main()

"""Speed of the alignment with a bounded number of gaps, in cells of all layers a second, scores alone and with alignments.

    python -m tests.benchmarks.reads [--pairs 204800] [--text 250] [--pattern 200] [--gaps 2] [--threads N] [--device cpu|cuda]

Texts are random nucleotides, patterns their beginnings with 2 % errors. Biopython's `PairwiseAligner`, which has no bound on gaps and one
layer, scores some of the same pairs beside it. One JSON line for each figure; the median of five rounds.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from engine.execution.devices import chosen_device
from engine.execution.executor import Executor
from engine.execution.opening import cards
from engine.execution.resources import Resources
from engine.execution.threads import available_threads
from engine.jobs.progress import Progress
from engine.read_alignment.scoring import align_pairs, work_of
from kernels.gapsmis_layouts import GapRules, Sequences

ROUNDS, PAIRS_OF_PEER = 5, 300
MATRIX = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)


def inputs(n: int, text: int, pattern: int) -> tuple[Sequences, Sequences]:
    """Texts and patterns."""
    random = np.random.default_rng(1)
    texts = random.integers(0, 4, (n, text)).astype(np.int8)
    patterns = texts[:, :pattern].copy()
    wrong = random.random(patterns.shape) < 0.02
    patterns[wrong] = random.integers(0, 4, wrong.sum())
    return Sequences(texts.ravel(), np.arange(n + 1) * text), Sequences(patterns.ravel(), np.arange(n + 1) * patterns.shape[1])


def peer_seconds(texts: Sequences, patterns: Sequences, n: int) -> float:
    """Seconds that Biopython takes for the scores of the first pairs."""
    from Bio.Align import PairwiseAligner

    aligner = PairwiseAligner(mode="global", match_score=2, mismatch_score=-3, open_gap_score=-7, extend_gap_score=-2)
    aligner.open_right_deletion_score = aligner.extend_right_deletion_score = 0
    letters = np.frombuffer(b"ACGT", np.uint8)
    pairs = [
        tuple(letters[one.codes[one.offsets[k] : one.offsets[k + 1]]].tobytes().decode() for one in (texts, patterns)) for k in range(n)
    ]
    began = time.perf_counter()
    for text, pattern in pairs:
        aligner.score(text, pattern)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("pairs", 204_800), ("text", 250), ("pattern", 200), ("gaps", 2), ("threads", available_threads())):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    texts, patterns = inputs(asked.pairs, asked.text, asked.pattern)
    rules = GapRules(MATRIX, 5, 2, asked.gaps)
    progress = Progress()
    used = cards(chosen_device(asked.device), progress)
    every, cells = np.arange(asked.pairs), float(asked.pairs) * asked.text * asked.pattern
    with Executor(Resources(asked.threads, used, not used, progress)).session(work_of(texts, patterns, rules)) as session:
        for traces in (False, True):
            seconds = []
            for _ in range(1 + ROUNDS):  # the first one warms up
                began = time.perf_counter()
                align_pairs(session, every, every, traces=traces)
                seconds.append(time.perf_counter() - began)
            median = float(np.median(seconds[1:]))
            gcups = round(cells * (asked.gaps + 1) / median / 1e9, 3)
            what = "alignments" if traces else "scores"
            print(json.dumps({"what": what, "device": asked.device, "seconds": round(median, 3), "gcups": gcups}), flush=True)
    n = min(asked.pairs, PAIRS_OF_PEER)
    seconds_of_peer = peer_seconds(texts, patterns, n)
    gcups = round(n * asked.text * asked.pattern / seconds_of_peer / 1e9, 4)
    print(json.dumps({"what": "scores, Biopython, one thread, one layer", "seconds": round(seconds_of_peer, 3), "gcups": gcups}))


if __name__ == "__main__":
    main()

"""Speed of aligning a query with a database of 105,580 chains on a GPU and on the CPU, and whether their scores are identical.

    python -m benchmarks.structure_search_gpu --data FOLDER [--device 0] [--chains 105580]

The chains are repeated copies of those of `FOLDER/structures/bench_ca`. One JSON line for each mode: seconds of the first search, and of
the fastest of five further ones with the database on the GPU, at thresholds of 0.2 and 0; cells per second; and whether a sample of the
scores equals those of the CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.structures import described, read_chains, sources_of
from proteoscope.engine.structures.rewards import GapCosts, Weights, published_rewards, sensitive_rewards, sensitive_tables
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.structure_alignment import StructureSearch as OnProcessor
from proteoscope.kernels.cpu.structure_pairs import element_score
from proteoscope.kernels.cuda.modules import open_gpu
from proteoscope.kernels.cuda.structure_alignment import StructureSearch as OnGpu

_SAMPLE = 2000
_QUERY_LENGTH = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--chains", type=int, default=105_580)
    options = parser.parse_args()
    threads = available_threads()
    some = read_chains(sources_of([options.data / "structures" / "bench_ca" / "pdb"]), Progress(), threads)
    many = described(some.chains.taken(np.arange(options.chains) % len(some))).arrays
    query = many.chain(int(np.searchsorted(many.lengths, _QUERY_LENGTH)))
    began = time.perf_counter()
    search = OnGpu(open_gpu(options.device), many)
    opening = time.perf_counter() - began
    rng = np.random.default_rng(0)
    first = int(rng.integers(0, options.chains - _SAMPLE))
    for mode in ("sensitive", "published"):
        if mode == "sensitive":
            rewards, _ = sensitive_rewards(query, sensitive_tables(), Weights(), GapCosts(6.7, 0.7, 0.5, 0.25))
        else:
            rewards, _ = published_rewards(query, Weights(), GapCosts(1.0, 0.5, 0.5, 0.25))
        elements = query.element_type, query.element_length
        self_score = int(element_score(*elements, *elements, rewards.element_gap_first, rewards.element_gap_next))
        for threshold in (0.2, 0.0):
            least = int(np.ceil(threshold * self_score))
            scores, element_scores = np.empty(options.chains, np.int32), np.empty(options.chains, np.int32)
            seconds = []
            for _ in range(6):
                began = time.perf_counter()
                list(search.score(query, rewards, least, scores, element_scores))
                seconds.append(time.perf_counter() - began)
            sample, sample_elements = np.empty_like(scores), np.empty_like(scores)
            list(OnProcessor(Processor(threads), many).score(query, rewards, least, sample, sample_elements, first, first + _SAMPLE))
            chosen = slice(first, first + _SAMPLE)
            is_same = np.array_equal(scores[chosen], sample[chosen]) and np.array_equal(element_scores[chosen], sample_elements[chosen])
            cells = float(many.lengths[scores >= 0].sum()) * len(query.state)
            print(
                json.dumps(
                    {
                        "mode": mode,
                        "threshold": threshold,
                        "query": len(query.state),
                        "chains": options.chains,
                        "residues": len(many.state),
                        "aligned": int((scores >= 0).sum()),
                        "opening_s": round(opening, 3),
                        "first_s": round(seconds[0], 4),
                        "best_s": round(min(seconds[1:]), 4),
                        "gcups": round(cells / min(seconds[1:]) / 1e9, 1),
                        "same_as_processor": bool(is_same),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Speed of superposing candidates on a GPU and on the CPU, and whether results are bit-identical.

    python -m benchmarks.superposition_gpu --data FOLDER [--device 0] [--queries 60] [--candidates 100] [--machine WORDS]

Every n-th chain of `FOLDER/structures/bench_ca` is a query; its candidates are random chains and the query itself, with their alignments by
descriptors. These figures are printed and added to `benchmarks/results/superposition_gpu.jsonl`: seconds of all CPU threads; seconds of the
GPU (the minimum of three) by size of blocks, blocks per multiprocessor and pairs in a launch; and whether moves, scores, RMSD and pairs are
identical to those of the CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import available_threads, run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.structures import DescribedChains, read_chains, sources_of
from proteoscope.engine.structures.rewards import GapCosts, Weights, sensitive_rewards, sensitive_tables
from proteoscope.engine.structures.superposition import pairs_with_query
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.structure_pairs import align_pair
from proteoscope.kernels.cpu.superposition import ChainSuperposition as OnProcessor
from proteoscope.kernels.cuda.modules import open_gpu
from proteoscope.kernels.cuda.superposition import ChainSuperposition as OnGpu
from proteoscope.kernels.structure_layouts import SEARCH_STEPS, ChainPairs, FoundSuperpositions, Rewards, StructureArrays

RESULTS = Path(__file__).with_name("results") / "superposition_gpu.jsonl"
_REPEATS = 3
_VARIANTS = ((128, 4), (128, 3), (128, 5), (64, 8), (256, 2))  # threads of a block, and blocks of a multiprocessor


def drawn_pairs(chains: DescribedChains, n_queries: int, n_candidates: int) -> ChainPairs:
    """Return queries, each with some chains and itself."""
    rng, arrays, threads = np.random.default_rng(0), chains.chains, available_threads()
    tables, every = sensitive_tables(), []
    for i in range(0, len(arrays), max(1, len(arrays) // n_queries))[:n_queries]:
        targets = np.concatenate([[i], rng.choice(len(arrays), n_candidates - 1, replace=False)])
        query = chains.arrays.chain(i)
        rewards, _ = sensitive_rewards(query, tables, Weights(), GapCosts(6.7, 0.7, 0.5, 0.25))

        def start(k: int, query: StructureArrays = query, rewards: Rewards = rewards) -> NDArray[np.int32]:
            return align_pair(query, chains.arrays.chain(k), rewards)[1]

        starts = run_on_threads(start, targets.tolist(), threads, Progress())
        some, begun = arrays.taken(targets), segment_offsets(np.array([len(start) for start in starts], np.int64))
        every.append(pairs_with_query(arrays.position[arrays.rows(i)], some.position, some.offsets, np.concatenate(starts), begun))
    return ChainPairs.joined(every)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--queries", type=int, default=60, metavar="N")
    parser.add_argument("--candidates", type=int, default=100, metavar="N", help="of each query")
    parser.add_argument("--machine", default="", metavar="WORDS", help="what it ran on, for the results")
    options = parser.parse_args()
    began = time.perf_counter()
    compile_kernels(["superposition"], Progress())
    print(json.dumps({"compiling_for_the_processor_s": round(time.perf_counter() - began, 1)}), flush=True)
    chains = read_chains(sources_of([options.data / "structures" / "bench_ca" / "pdb"]), Progress(), available_threads())
    pairs, steps = drawn_pairs(chains, options.queries, options.candidates), SEARCH_STEPS
    n, threads, expected = len(pairs.fixed), available_threads(), FoundSuperpositions.empty(pairs)
    began = time.perf_counter()
    list(OnProcessor(Processor(threads), steps).superpose(pairs, expected))
    seconds = time.perf_counter() - began
    rows = [{"device": "cpu", "threads": threads, "pairs": n, "best_s": round(seconds, 3), "pairs_per_s": round(n / seconds)}]
    print(json.dumps(rows[0]), flush=True)
    for block, resident in _VARIANTS:
        kind = type("Tuned", (OnGpu,), {"threads": block, "resident": resident})
        search, first_s = kind(open_gpu(options.device), steps), 0.0
        for some in sorted({1, options.candidates, 4 * options.candidates, 16 * options.candidates, n}):
            seconds, superpositions = [], FoundSuperpositions.empty(pairs)
            for _ in range(_REPEATS + (first_s == 0.0)):
                began = time.perf_counter()
                list(search.superpose(pairs, superpositions, 0, min(some, n)))
                seconds.append(time.perf_counter() - began)
            first_s = first_s or seconds[0]
            done = min(some, n)
            columns = ("moves", "scores", "rmsd", "counts")
            same = [np.array_equal(getattr(superpositions, name)[:done], getattr(expected, name)[:done]) for name in columns]
            used = [slice(place, place + count) for place, count in zip(superpositions.places[:done], expected.counts[:done], strict=True)]
            same.append(all(np.array_equal(superpositions.pairs[rows], expected.pairs[rows]) for rows in used))
            row = {
                "device": f"cuda:{options.device}",
                "block": block,
                "resident": resident,
                "pairs": done,
                "first_s": round(first_s, 2),
                "best_s": round(min(seconds), 4),
                "pairs_per_s": round(done / min(seconds)),
                "same_as_processor": bool(all(same)),
            }
            rows.append(row)
            print(json.dumps(row), flush=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        for row in rows:
            named = {"date": datetime.now(UTC).date().isoformat(), "machine": options.machine, "figure": "superposition_gpu", **row}
            file.write(json.dumps(named) + "\n")


if __name__ == "__main__":
    main()

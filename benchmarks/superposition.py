"""Quality and speed of superpositions of candidates, compared with TM-align.

    python -m benchmarks.superposition --data FOLDER [--queries 60] [--pairs 10] [--machine WORDS]

Chains of `FOLDER/structures/bench_ca` are searched with every n-th of them as a query; of the hundred candidates of each query some are
drawn, without the query itself, and superposed again from the alignments by descriptors, on one thread, with each effort. Printed, and
added to `benchmarks/results/superposition.jsonl`: CPU milliseconds a pair (the least of three), and, where TM-align is installed
(`tests/peers/install.sh`), its TM-scores and ours: means of both lengths, how many of ours are more than 0.02 below and above, and the
farthest below; the same of the pairs to which TM-align gives more than 0.5 by the shorter chain.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.candidates import Comparison, compute_rewards
from proteoscope.engine.structure_search.hits import query_hits
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.structures import DescribedChains, read_chains, sources_of
from proteoscope.engine.structures.superposition import superpose_many
from proteoscope.kernels.cpu.structure_pairs import align_pair
from tests.peers.structure_peers import installed, tm_align

RESULTS = Path(__file__).with_name("results") / "superposition.jsonl"
_REPEATS = 3
_APART, _ALIKE = 0.02, 0.5


def drawn_candidates(chains: DescribedChains, n_queries: int, n_pairs: int) -> list[tuple[int, NDArray[np.int64], list[NDArray[np.int32]]]]:
    """Return queries, candidates of each, and the alignments by descriptors."""
    running, place, rng = Resources(available_threads(), progress=Progress()), np.argsort(chains.file_order), np.random.default_rng(0)
    drawn = []
    with Executor(running).session(build_workload(chains.arrays)) as session:
        comparison = Comparison(chains, chains, StructureSearchParameters(), session, running)
        for i in place[:: max(1, len(chains) // n_queries)][:n_queries].tolist():
            candidates = place[query_hits(comparison, [i])[0].hits["target_index"].to_numpy()]
            targets = rng.permutation(candidates[candidates != i])[:n_pairs]
            query = chains.arrays.chain(i)
            rewards, _ = compute_rewards(comparison, i)
            drawn.append((i, targets, [align_pair(query, chains.arrays.chain(k), rewards)[1] for k in targets.tolist()]))
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--queries", type=int, default=60, metavar="N")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="of each query")
    parser.add_argument("--machine", default="", metavar="WORDS", help="what it ran on, for the results")
    options = parser.parse_args()
    compile_kernels(["superposition"], Progress())
    chains = read_chains(sources_of([options.data / "structures" / "bench_ca" / "pdb"]), Progress(), available_threads())
    drawn, arrays = drawn_candidates(chains, options.queries, options.pairs), chains.chains
    peer = np.zeros((0, 2))
    if installed("TMalign"):
        with tempfile.TemporaryDirectory() as folder:
            position = [arrays.position[arrays.rows(i)] for i in range(len(arrays))]
            peer = np.array([tm_align(position[i], position[k], Path(folder)) for i, targets, _ in drawn for k in targets.tolist()])
    for effort in ("quick", "thorough"):
        seconds, scores = [], np.zeros((0, 2))
        for _ in range(_REPEATS):
            began, results = time.process_time(), []
            for i, targets, starts in drawn:
                some, begun = arrays.taken(targets), run_offsets(np.array([len(start) for start in starts], np.int64))
                result = superpose_many(
                    arrays.position[arrays.rows(i)], some.position, some.offsets, np.concatenate(starts), begun, threads=1, effort=effort
                )
                results.append(np.stack([result.tm_score_query, result.tm_score_target], axis=1))
            seconds.append(time.process_time() - began)
            scores = np.concatenate(results)
        row = {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": options.machine,
            "figure": "superposition",
            "effort": effort,
            "pairs": len(scores),
            "milliseconds": round(min(seconds) / len(scores) * 1e3, 2),
            "tm_score": round(float(scores.mean()), 4),
        }
        if len(peer):
            apart, is_alike = (scores - peer).mean(axis=1), peer.max(axis=1) > _ALIKE
            for name, some in (("all", apart), ("alike", apart[is_alike])):
                row[name] = {
                    "pairs": len(some),
                    "mean": round(float(some.mean()), 4),
                    "below": int((some < -_APART).sum()),
                    "above": int((some > _APART).sum()),
                    "worst": round(float(some.min()), 3),
                }
        print(json.dumps(row), flush=True)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

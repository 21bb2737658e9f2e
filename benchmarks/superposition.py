"""Quality and speed of superpositions of all pairs of some queries and a database, compared with GTalign.

    python -m benchmarks.superposition --data FOLDER [--queries 60] [--gtalign PROGRAM] [--speeds 13 9 0] [--device auto] [--machine WORDS]

Every n-th chain of `FOLDER/structures/bench_ca` is a query; it is searched in all chains, and all hits are reported. These figures are
printed and added to `benchmarks/results/superposition.jsonl`: seconds of the whole command (the minimum of three, after one that compiles);
and for each `--speed` of GTalign (Margelevičius, Nature Communications 15, 2024, 7305; its GPU or CPU version), its seconds and a
comparison of our TM-scores with its TM-scores. Pairs to which one of the programs gives 0.5 or more by the shorter chain are compared,
without pairs of the query with itself: the mean difference, how many of our scores are more than 0.02 and 0.05 lower, and how many are more
than 0.02 higher. The mean difference of all pairs is reported too.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).with_name("results") / "superposition.jsonl"
_REPEATS = 3
_ALIKE = 0.5
_ROW = re.compile(r"^\s+\d+ (\S+)\s+Chn:\S*(?:\s+\(M:\d+\))?\s+([\d.]+)\s+([\d.]+)\s+[\d.]+\s+\d+\s", re.MULTILINE)

Scores = dict[tuple[str, str], float]
"""TM-score by the shorter chain of each query and target."""


def seconds_of(command: Sequence[str | Path]) -> float:
    """Run a command and return its seconds."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def our_scores(out: Path) -> Scores:
    """Return the TM-scores in a file of hits."""
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {(row["query"], row["target"]): max(float(row["tm_score_query"]), float(row["tm_score_target"])) for row in rows}


def peer_scores(folder: Path) -> Scores:
    """Return the TM-scores in the reports of GTalign."""
    scores = {}
    for report in folder.glob("*.out"):
        text = report.read_text(encoding="utf-8", errors="replace")
        query = Path(text.split("Query (", 1)[1].splitlines()[1].split()[0]).stem
        scores |= {(query, Path(target).stem): max(float(by_target), float(by_query)) for target, by_target, by_query in _ROW.findall(text)}
    return scores


def compared(ours: Scores, theirs: Scores) -> dict[str, float]:
    """Return how our TM-scores of pairs of different chains differ from those of GTalign."""
    pairs = [pair for pair in theirs if pair in ours and pair[0] != pair[1]]
    both = np.array([(ours[pair], theirs[pair]) for pair in pairs])
    differences = both[:, 0] - both[:, 1]
    alike = differences[both.max(axis=1) >= _ALIKE]
    return {
        "pairs": len(pairs),
        "alike": len(alike),
        "mean_of_alike": round(float(alike.mean()), 5),
        "below_0.02": int((alike < -0.02).sum()),
        "below_0.05": int((alike < -0.05).sum()),
        "above_0.02": int((alike > 0.02).sum()),
        "mean_of_all": round(float(differences.mean()), 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--queries", type=int, default=60, metavar="N")
    parser.add_argument("--gtalign", type=Path, metavar="PROGRAM")
    parser.add_argument("--speeds", type=int, nargs="*", default=[13, 9, 0], metavar="N", help="of GTalign, from 13 to 0, the deepest")
    parser.add_argument("--device", default="auto", help="of our command")
    parser.add_argument("--machine", default="", metavar="WORDS", help="what it ran on, for the results")
    options = parser.parse_args()
    chains = sorted((options.data / "structures" / "bench_ca" / "pdb").iterdir())
    with tempfile.TemporaryDirectory() as name:
        queries, out = Path(name, "queries"), Path(name, "hits.tsv")
        queries.mkdir()
        for path in chains[:: max(1, len(chains) // options.queries)][: options.queries]:
            shutil.copy(path, queries)
        searched = ["--database", chains[0].parent, "--out", out, "--device", options.device, "--hits-per-query", str(len(chains))]
        command = [sys.executable, "-m", "proteoscope", "structures", queries, *searched, "--set", "qualification_threshold=0", "--quiet"]
        seconds = [seconds_of(command) for _ in range(_REPEATS + 1)]
        ours = our_scores(out)
        rows = [{"program": "proteoscope", "device": options.device, "pairs": len(ours), "seconds": round(min(seconds[1:]), 2)}]
        for speed in options.speeds if options.gtalign else ():
            reports = Path(name, f"speed-{speed}")
            limits = ["-s", "0", "--pre-score=0", f"--nhits={len(chains)}", f"--nalns={len(chains)}", "--sort=2"]
            reported = ["-o", reports, f"--speed={speed}", *limits]
            taken = seconds_of([options.gtalign, f"--qrs={queries}", f"--rfs={chains[0].parent}", *reported])
            rows.append({"program": "gtalign", "speed": speed, "seconds": round(taken, 2), **compared(ours, peer_scores(reports))})
    with RESULTS.open("a", encoding="utf-8") as file:
        for row in rows:
            named = {"date": datetime.now(UTC).date().isoformat(), "machine": options.machine, "figure": "superposition", **row}
            print(json.dumps(named), flush=True)
            file.write(json.dumps(named) + "\n")


if __name__ == "__main__":
    main()

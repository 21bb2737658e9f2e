"""The sequence search measured: speed, memory and opening time; and sensitivity on SCOP beside peers.

    python tests/benchmarks/sequence_search.py --data FOLDER speed [--threads 1 2] > speed.jsonl
    python tests/benchmarks/sequence_search.py --data FOLDER roc [--every 10] [--peers blastp ssearch] > roc.jsonl

One JSON line for each figure:

scoring
    the 20 queries of the CUDASW++ papers against 20,000 proteins, scores of all pairs: GCUPS over all and for each core.
single
    the same for one query alone, with planning and overflow: length, GCUPS.
opening
    seconds to open the packed database of 20,000 proteins, and its bytes for a residue without names.
end_to_end
    seconds and peak megabytes of the whole command, from FASTA to table, in a process of its own.
sensitivity
    each domain of SCOP (or every n-th) against all: share of the family's, the superfamily's and the fold's other members that stand before
    the first domain of another fold, averaged over the queries that have such members. Ranked by E-value.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "peers")]

from sequence_peers import PEERS, installed, run_peer  # noqa: E402

from engine.jobs.progress import Progress  # noqa: E402
from engine.project.digests import file_digest  # noqa: E402
from engine.project.index_store import IndexStore  # noqa: E402
from engine.sequence_search.database import SequenceDatabase, open_database, read_sequences  # noqa: E402
from engine.sequence_search.matrices import read_matrix  # noqa: E402
from engine.sequence_search.scoring import ScoringScheme, score_all  # noqa: E402
from engine.sequence_search.statistics import tabulated  # noqa: E402

SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
REPEATS = 3
LEVELS = ("family", "superfamily", "fold")


def emit(figure: str, **values: Any) -> None:
    """Print a figure as a JSON line at once."""
    print(json.dumps({"figure": figure, **values}), flush=True)


def in_file_order(sequences: SequenceDatabase) -> list[int]:
    """Numbers of the sequences as the file has them."""
    return [int(i) for i in np.argsort(sequences.file_index)]


def scored(queries: list[np.ndarray], database: SequenceDatabase, threads: int) -> tuple[np.ndarray, float]:
    """Scores, and the best wall seconds of a few repeats."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        scores = score_all(queries, database.residues, database.offsets, SCHEME, threads, Progress())
        seconds.append(time.perf_counter() - began)
    return scores, min(seconds)


def measure_speed(data: Path, thread_counts: Sequence[int]) -> None:
    """Print the figures of speed."""
    from kernels.cpu.vectors import REGISTER_BYTES

    query_file, database_file = data / "cudasw_queries20.fasta", data / "mmseqs_DB.fasta"
    with tempfile.TemporaryDirectory() as folder:
        store = IndexStore(folder, "sequences")
        digest = file_digest(database_file)
        open_database([database_file], [digest], store, Progress())
        seconds = []
        for _ in range(9):
            began = time.perf_counter()
            database = open_database([database_file], [digest], store, Progress())
            seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
        file_digest(database_file)
        digesting = time.perf_counter() - began
        names = len(database.accession_bytes) + len(database.description_bytes) + 8 * len(database)
        packed = sum(path.stat().st_size for path in Path(folder).rglob("*.npy")) - names
        emit(
            "opening", sequences=len(database), seconds=round(float(np.median(seconds)), 4), digest_seconds=round(digesting, 4),
            bytes_a_residue=round(packed / database.n_residues, 4),
        )  # fmt: skip
        query_set = read_sequences([query_file], Progress())
        queries = [query_set.codes(i) for i in in_file_order(query_set)]
        score_all(queries[:1], database.residues, database.offsets, SCHEME, 1, Progress())
        for threads in thread_counts:
            _, best = scored(queries, database, threads)
            gcups = query_set.n_residues * database.n_residues / best / 1e9
            emit(
                "scoring", threads=threads, register_bytes=REGISTER_BYTES, seconds=round(best, 3), gcups=round(gcups, 1),
                gcups_per_core=round(gcups / threads, 1),
            )  # fmt: skip
        for query in (queries[0], queries[4], queries[-1]):
            _, best = scored([query], database, 1)
            emit(
                "single",
                threads=1,
                length=len(query),
                seconds=round(best, 4),
                gcups=round(len(query) * database.n_residues / best / 1e9, 1),
            )
    for name, path in (("20 queries", query_file), ("one query of 375", one_query(query_file, 375))):
        for run in ("first", "again"):
            emit("end_to_end", queries=name, run=run, **end_to_end(path, database_file))


def one_query(path: Path, length: int) -> Path:
    """A file with the query of a length."""
    from engine.sequence_search.database import decode

    queries = read_sequences([path], Progress())
    number = int(np.flatnonzero(queries.lengths == length)[0])
    target = Path(tempfile.mkdtemp()) / "query.fasta"
    target.write_text(f">{queries.accession(number)}\n{decode(queries.codes(number))}\n")
    return target


def end_to_end(queries: Path, database: Path) -> dict[str, Any]:
    """Wall seconds and peak megabytes of the command in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "engine.command_line", "align", queries, database, "--out", f"{folder}/hits.tsv", "--json"]
        began = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True)
        assert process.stdout is not None
        summary = json.loads(process.stdout.read())
        _, _, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    steps = {name: step["seconds"] for name, step in summary["stages"].items()}
    return {"seconds": round(seconds, 2), "peak_megabytes": round(usage.ru_maxrss / 1024), "steps": steps, "hits": summary["n_hits"]}


def labels(data: Path) -> dict[str, tuple[str, str, str]]:
    """Family, superfamily and fold of each domain."""
    found = {}
    for line in (data / "scop40.lookup").read_text().splitlines():
        name, family = line.split("\t")
        parts = family.split(".")
        found[name] = (family, ".".join(parts[:3]), ".".join(parts[:2]))
    return found


def sensitivity(ranked: dict[str, list[str]], label: dict[str, tuple[str, str, str]], members: Sequence[str]) -> dict[str, float]:
    """Mean share of the members of each level, and of no narrower one, before the first domain of another fold."""
    shares: dict[str, list[float]] = {level: [] for level in LEVELS}
    families = np.array([label[name] for name in members])
    for query, subjects in ranked.items():
        own = np.array(label[query])
        same = families == own
        sizes = [int(same[:, 0].sum()) - 1, int((same[:, 1] & ~same[:, 0]).sum()), int((same[:, 2] & ~same[:, 1]).sum())]
        counts = [0, 0, 0]
        for subject in subjects:
            if subject == query:
                continue
            level = next((k for k in range(3) if label[subject][k] == own[k]), None)
            if level is None:
                break
            counts[level] += 1
        for k, level in enumerate(LEVELS):
            if sizes[k]:
                shares[level].append(counts[k] / sizes[k])
    return {level: round(float(np.mean(values)), 4) for level, values in shares.items()}


def measure_roc(data: Path, every: int, peers: Sequence[str], threads: int) -> None:
    """Print the figures of sensitivity."""
    label = labels(data)
    database = read_sequences([data / "scop40.fa"], Progress())
    numbers = [i for i in in_file_order(database) if database.accession(i) in label]
    members = [database.accession(i) for i in numbers]
    chosen = numbers[::every]
    began = time.perf_counter()
    scores = score_all([database.codes(i) for i in chosen], database.residues, database.offsets, SCHEME, threads, Progress())
    statistics = tabulated(SCHEME)
    assert statistics is not None
    ranked = {}
    known = np.array([database.accession(i) in label for i in range(len(database))])
    for i, row in zip(chosen, scores, strict=True):
        e_values = statistics.e_values(row, len(database.codes(i)), database.lengths, database.n_residues)
        order = np.lexsort((-row, e_values))
        ranked[database.accession(i)] = [database.accession(int(j)) for j in order if known[j]]
    seconds = time.perf_counter() - began
    emit(
        "sensitivity",
        program="proteoscope",
        queries=len(chosen),
        domains=len(members),
        seconds=round(seconds, 1),
        **sensitivity(ranked, label, members),
    )
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "queries.fasta"
        from engine.sequence_search.database import decode

        queries.write_text("".join(f">{database.accession(i)}\n{decode(database.codes(i))}\n" for i in chosen))
        for peer in peers:
            if not installed(peer):
                emit("sensitivity", program=peer, reason="not installed")
                continue
            hits, seconds = run_peer(peer, queries, data / "scop40.fa", 10_000, 2_000, threads)
            found: dict[str, list[str]] = {name: [] for name in ranked}
            for hit in sorted(hits, key=lambda hit: (hit.e_value, -hit.bit_score)):
                if hit.subject in label:
                    found[hit.query].append(hit.subject)
            emit("sensitivity", program=peer, queries=len(chosen), seconds=round(seconds, 1), **sensitivity(found, label, members))


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the unpacked test data")
    commands = parser.add_subparsers(dest="command", required=True)
    speed = commands.add_parser("speed")
    speed.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    roc = commands.add_parser("roc")
    roc.add_argument("--every", type=int, default=10, help="search every n-th domain")
    roc.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    roc.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    data = options.data / "sequences"
    if options.command == "speed":
        measure_speed(data, options.threads)
    else:
        measure_roc(data, options.every, options.peers, options.threads)


if __name__ == "__main__":
    main()

"""Speed, memory and opening time of the sequence search, and sensitivity on SCOP compared with peers.

    python -m benchmarks.sequence_search --data FOLDER speed [--threads 1 2] > speed.jsonl
    python -m benchmarks.sequence_search --data FOLDER beside [--threads 2] [--repeats 5] > beside.jsonl
    python -m benchmarks.sequence_search --data FOLDER devices [--wishes cpu cuda all] [--repeats 60] > devices.jsonl
    python -m benchmarks.sequence_search --data FOLDER roc [--every 10] [--peers blastp ssearch] > roc.jsonl

One JSON line for each figure:

scoring
    the 20 queries of the CUDASW++ papers against 20,000 proteins, scores of all pairs: GCUPS in total and per core.
single
    the same for a single query, with planning and overflow: length, GCUPS.
opening
    seconds to open the packed database of 20,000 proteins, and its bytes per residue without names.
end_to_end
    seconds and peak megabytes of the whole command, from FASTA to table, in a separate process.
beside
    the whole command, and only the scoring of parasail (`sw_striped_profile_sat`, with profiles prepared before), in turn: minimum wall and
    CPU seconds. With NUMBA_CPU_NAME=haswell and NUMBA_CPU_FEATURES=+avx2,+avx,+ssse3 the command runs as on a CPU with AVX2.
devices
    the same on each device, with its steps and what each device did.
sensitivity
    each domain of SCOP (or every n-th) against all, ranked by E-value: the share of the other members of the family, the superfamily and
    the fold that rank before the first domain of another fold, averaged over the queries that have such members.
coverage
    the same hits of all queries in one list: the fraction of pairs of the same family, superfamily or fold that are found at each number of
    errors per query.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.project.index_store import IndexStore
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.composition import CompositionAdjustment, significant_hits
from proteoscope.engine.sequences.database import SequenceDatabase, decode, open_database, read_sequences
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import tabulated
from tests.peers.sequence_peers import PEERS, installed, run_peer

REPOSITORY = Path(__file__).resolve().parents[1]
SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
REPEATS = 3
LEVELS = ("family", "superfamily", "fold")
ERRORS_PER_QUERY = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
LARGEST_E_VALUE, MAXIMUM_HITS = 200.0, 1500  # so that no list ends before many errors; BLAST discards more if less is requested
QUERIES_TOGETHER = 1000
SUBJECTS_TOGETHER = 500


def emit(figure: str, **values: Any) -> None:
    """Print a figure as a JSON line immediately."""
    print(json.dumps({"figure": figure, **values}), flush=True)


def in_file_order(sequences: SequenceDatabase) -> list[int]:
    """Return the numbers of the sequences in file order."""
    return [int(i) for i in np.argsort(sequences.file_index)]


def scored(queries: list[np.ndarray], database: SequenceDatabase, threads: int) -> tuple[np.ndarray, float]:
    """Return scores, and the best wall seconds of a few repeats."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        scores = score_all(queries, database.residues, database.offsets, SCHEME, threads, Progress())
        seconds.append(time.perf_counter() - began)
    return scores, min(seconds)


def measure_speed(data: Path, thread_counts: Sequence[int]) -> None:
    """Print the figures of speed."""
    from proteoscope.kernels.cpu.vectors import REGISTER_BYTES

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
            "opening",
            sequences=len(database),
            seconds=round(float(np.median(seconds)), 4),
            digest_seconds=round(digesting, 4),
            bytes_a_residue=round(packed / database.n_residues, 4),
        )
        query_set = read_sequences([query_file], Progress())
        queries = [query_set.codes(i) for i in in_file_order(query_set)]
        score_all(queries[:1], database.residues, database.offsets, SCHEME, 1, Progress())
        for threads in thread_counts:
            _, best = scored(queries, database, threads)
            gcups = query_set.n_residues * database.n_residues / best / 1e9
            emit(
                "scoring",
                threads=threads,
                register_bytes=REGISTER_BYTES,
                seconds=round(best, 3),
                gcups=round(gcups, 1),
                gcups_per_core=round(gcups / threads, 1),
            )
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
    """Return a file with the query of a length."""
    queries = read_sequences([path], Progress())
    number = int(np.flatnonzero(queries.lengths == length)[0])
    target = Path(tempfile.mkdtemp()) / "query.fasta"
    target.write_text(f">{queries.accession(number)}\n{decode(queries.codes(number))}\n")
    return target


def end_to_end(queries: Path, database: Path, *options: str) -> dict[str, Any]:
    """Return wall seconds and peak megabytes of the command in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "proteoscope.engine.command_line",
            "align",
            queries,
            database,
            "--out",
            f"{folder}/hits.tsv",
            "--json",
        ]
        began = time.perf_counter()
        process = subprocess.Popen([*map(str, command), *options], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return {"exit_code": process.returncode}
    summary = json.loads(output)
    steps = {name: step["seconds"] for name, step in summary["stages"].items()}
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_megabytes": round(usage.ru_maxrss / 1024),
        "device": summary["device"],
        "steps": steps,
        "gcups": summary["gcups"],
        "hits": summary["n_hits"],
        "shares": summary["shares"],
    }


def compare_with_parasail(data: Path, threads: int, repeats: int) -> None:
    """Print the seconds of the command and of parasail, which take turns."""
    from proteoscope.kernels.cpu.vectors import REGISTER_BYTES

    parasail = import_module("parasail")
    query_file, database_file = data / "cudasw_queries20.fasta", data / "mmseqs_DB.fasta"
    queries, database = (read_sequences([path], Progress()) for path in (query_file, database_file))
    subjects = [decode(database.codes(i)) for i in range(len(database))]
    profiles = [parasail.profile_create_sat(decode(queries.codes(i)), parasail.blosum62) for i in range(len(queries))]
    opening, extending = SCHEME.first_residue_cost, SCHEME.gap_extend

    def score(first: int) -> list[int]:
        some = subjects[first : first + SUBJECTS_TOGETHER]
        return [parasail.sw_striped_profile_sat(profile, subject, opening, extending).score for profile in profiles for subject in some]

    ours, theirs = [], []
    for _ in range(repeats):
        run = end_to_end(query_file, database_file, "--device", "cpu", "--threads", str(threads))
        ours.append((run["seconds"], run["processor_seconds"]))
        began, used = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(score, range(0, len(subjects), SUBJECTS_TOGETHER)))
        theirs.append((time.perf_counter() - began, time.process_time() - used))
    (wall, processor), (parasail_wall, parasail_processor) = (np.min(seconds, axis=0).tolist() for seconds in (ours, theirs))
    emit(
        "beside",
        threads=threads,
        repeats=repeats,
        register_bytes=REGISTER_BYTES,
        seconds=round(wall, 2),
        processor_seconds=round(processor, 2),
        parasail=parasail.__version__,
        parasail_seconds=round(parasail_wall, 2),
        parasail_processor_seconds=round(parasail_processor, 2),
        ratio=round(wall / parasail_wall, 3),
        ratio_of_processor_seconds=round(processor / parasail_processor, 3),
    )


def measure_devices(data: Path, requested: Sequence[str], repeats: int) -> None:
    """Print the time of the whole command on each device, for many cells and for few."""
    query_file, database_file = data / "cudasw_queries20.fasta", data / "mmseqs_DB.fasta"
    query_files = {"one query of 375": one_query(query_file, 375), "20 queries": query_file}
    with tempfile.TemporaryDirectory() as folder:
        databases = {"20,000 proteins": database_file}
        if repeats > 1:
            text, repeated = database_file.read_text(), Path(folder) / "repeated.fasta"
            repeated.write_text("".join(text.replace(">", f">{k}_") for k in range(repeats)))
            databases[f"{repeats} times the 20,000 proteins"] = repeated
        for (database_name, database), (queries_name, queries), device in product(databases.items(), query_files.items(), requested):
            for run in ("first", "again"):
                figures = end_to_end(queries, database, "--device", device)
                emit("devices", wish=device, queries=queries_name, database=database_name, run=run, **figures)


@dataclass(frozen=True)
class Found:
    """Hits of queries against the domains of SCOP, the domain itself left out.

    Attributes
    ----------
    query, subject : (n,) int64, numbers of domains. e_value, score : (n,) float64; of equal E-values the larger score goes first.
    """

    query: np.ndarray
    subject: np.ndarray
    e_value: np.ndarray
    score: np.ndarray


class Scop:
    """Labels of the domains, as numbers, and the number of other members of each one's family, superfamily and fold."""

    def __init__(self, data: Path, names: Sequence[str]) -> None:
        family = dict(line.split("\t") for line in (data / "scop40.lookup").read_text().splitlines())
        self.number = {name: k for k, name in enumerate(name for name in names if name in family)}
        parts = [family[name].split(".") for name in self.number]
        levels = [np.unique([".".join(part[:depth]) for part in parts], return_inverse=True)[1] for depth in (4, 3, 2)]
        self.label = np.stack(levels, axis=1)
        """(domains, 3)."""
        self.others = np.stack([np.bincount(level)[level] - 1 for level in levels], axis=1)
        """(domains, 3) other members of the same group."""

    def __len__(self) -> int:
        return len(self.label)


def first_error(hits: Found, scop: Scop, queries: np.ndarray) -> dict[str, float]:
    """Return, for each level, the mean share of its members (without narrower levels) before the first domain of another fold."""
    order = np.lexsort((-hits.score, hits.e_value, hits.query))
    query, subject = hits.query[order], hits.subject[order]
    same = scop.label[query] == scop.label[subject]
    wrong = ~same[:, 2]
    # Errors of the same query up to each hit.
    starts = np.searchsorted(query, np.arange(len(scop) + 1))
    errors = np.concatenate(([0], np.cumsum(wrong)))
    before = errors[1:] - errors[starts[query]] == 0
    narrower = np.zeros(len(query), bool)
    shares = {}
    sizes = np.diff(np.concatenate((np.zeros((len(scop), 1), np.int64), scop.others), axis=1), axis=1)
    for k, level in enumerate(LEVELS):
        counts = np.bincount(query[same[:, k] & ~narrower & before], minlength=len(scop))[queries]
        size = sizes[queries, k]
        shares[level] = round(float((counts[size > 0] / size[size > 0]).mean()), 4)
        narrower |= same[:, k]
    return shares


def coverage(hits: Found, scop: Scop, queries: np.ndarray, level: int) -> dict[str, list[float]]:
    """Return the share of true pairs before each rate of errors per query, all queries ranked together by E-value.

    Pairs in the same group of the level are true, and pairs of different folds are errors; other pairs (same fold, different groups) count
    as neither. Without weights each pair counts the same; with linear ones each query that has relatives; with quadratic ones each group
    (Green and Brenner 2002, Proceedings of the IEEE 90:1834).
    """
    order = np.lexsort((-hits.score, hits.e_value))
    query, subject = hits.query[order], hits.subject[order]
    true = scop.label[query, level] == scop.label[subject, level]
    errors = np.cumsum(scop.label[query, 2] != scop.label[subject, 2])
    others = scop.others[queries, level].astype(float)
    has_any, group = others > 0, scop.label[queries, level]
    queries_of_group = np.bincount(group, has_any)
    weights = {"unweighted": np.ones(len(scop)), "linear": np.zeros(len(scop)), "quadratic": np.zeros(len(scop))}
    weights["linear"][queries[has_any]] = 1.0 / others[has_any]
    weights["quadratic"][queries[has_any]] = 1.0 / (others * queries_of_group[group])[has_any]
    # After the last hit that fits in a number of errors.
    ends = [int(np.searchsorted(errors, round(rate * len(queries)), side="right")) for rate in ERRORS_PER_QUERY]
    curves = {}
    for name, weight in weights.items():
        total = float((weight[queries] * others).sum())
        reached = np.concatenate(([0.0], np.cumsum(np.where(true, weight[query], 0.0)))) / total
        curves[name] = [round(float(reached[end]), 4) for end in ends]
    return curves


def emit_sensitivity(program: str, hits: Found, scop: Scop, queries: np.ndarray, seconds: float) -> None:
    """Print the sensitivity to the first error, and a curve for each level and weight."""
    about = {"program": program, "queries": len(queries), "domains": len(scop)}
    emit("sensitivity", **about, seconds=round(seconds, 1), **first_error(hits, scop, queries))
    for k, level in enumerate(LEVELS):
        emit("coverage", **about, level=level, errors_per_query=ERRORS_PER_QUERY, **coverage(hits, scop, queries, k))


def searched(
    database: SequenceDatabase, numbers: np.ndarray, queries: np.ndarray, threads: int, *, is_adjusted: bool
) -> tuple[Found, float]:
    """Return Proteoscope's hits, with E-values adjusted for composition or not, and the seconds.

    `numbers`: each domain's number in the database.
    """
    statistics, progress = tabulated(SCHEME), Progress()
    assert statistics is not None
    adjustment = CompositionAdjustment(database, SCHEME) if is_adjusted else None
    domain = np.full(len(database), -1)
    domain[numbers] = np.arange(len(numbers))
    parts, seconds = [], 0.0
    for first in range(0, len(queries), QUERIES_TOGETHER):
        chosen = queries[first : first + QUERIES_TOGETHER]
        codes = [database.codes(int(numbers[k])) for k in chosen]
        began = time.perf_counter()
        scores = score_all(codes, database.residues, database.offsets, SCHEME, threads, progress)
        results = significant_hits(statistics, adjustment, database, codes, scores, LARGEST_E_VALUE, threads, progress)
        for k, row, hits in zip(chosen, scores, results, strict=True):
            hits = hits.take(np.flatnonzero((domain[hits.subjects] >= 0) & (domain[hits.subjects] != k)))
            parts.append((np.full(len(hits.subjects), k), domain[hits.subjects], hits.e_values, row[hits.subjects].astype(float)))
        seconds += time.perf_counter() - began
    return Found(*(np.concatenate(column) for column in zip(*parts, strict=True))), seconds


def found_by_peer(peer: str, query_file: Path, database: Path, scop: Scop, threads: int) -> tuple[Found, float]:
    """Return a peer's hits, and the seconds."""
    hits, seconds = run_peer(peer, query_file, database, LARGEST_E_VALUE, MAXIMUM_HITS, threads)
    selected = [hit for hit in hits if hit.subject in scop.number and hit.subject != hit.query]
    return Found(
        np.array([scop.number[hit.query] for hit in selected]),
        np.array([scop.number[hit.subject] for hit in selected]),
        np.array([hit.e_value for hit in selected]),
        np.array([hit.bit_score for hit in selected]),
    ), seconds


def measure_roc(data: Path, every: int, peers: Sequence[str], threads: int) -> None:
    """Print the figures of sensitivity."""
    database = read_sequences([data / "scop40.fa"], Progress())
    place = {database.accession(i): i for i in in_file_order(database)}
    scop = Scop(data, list(place))
    numbers, queries = np.array([place[name] for name in scop.number]), np.arange(0, len(scop), every)
    for program, is_adjusted in (("proteoscope", True), ("proteoscope, E-values not adjusted", False)):
        hits, seconds = searched(database, numbers, queries, threads, is_adjusted=is_adjusted)
        emit_sensitivity(program, hits, scop, queries, seconds)
    names = list(scop.number)
    with tempfile.TemporaryDirectory() as folder:
        query_file = Path(folder) / "queries.fasta"
        query_file.write_text("".join(f">{names[k]}\n{decode(database.codes(int(numbers[k])))}\n" for k in queries))
        for peer in peers:
            if not installed(peer):
                emit("sensitivity", program=peer, reason="not installed")
                continue
            hits, seconds = found_by_peer(peer, query_file, data / "scop40.fa", scop, threads)
            emit_sensitivity(peer, hits, scop, queries, seconds)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the unpacked test data")
    commands = parser.add_subparsers(dest="command", required=True)
    speed = commands.add_parser("speed")
    speed.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parasail = commands.add_parser("beside")
    parasail.add_argument("--threads", type=int, default=2)
    parasail.add_argument("--repeats", type=int, default=5)
    roc = commands.add_parser("roc")
    roc.add_argument("--every", type=int, default=10, help="search every n-th domain")
    roc.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    roc.add_argument("--threads", type=int, default=2)
    on_devices = commands.add_parser("devices")
    on_devices.add_argument("--wishes", nargs="+", default=["cpu", "cuda", "all"], help="what --device is given")
    on_devices.add_argument("--repeats", type=int, default=1, help="also against the proteins repeated this number of times")
    options = parser.parse_args()
    data = options.data / "sequences"
    if options.command == "speed":
        measure_speed(data, options.threads)
    elif options.command == "beside":
        compare_with_parasail(data, options.threads, options.repeats)
    elif options.command == "devices":
        measure_devices(data, options.wishes, options.repeats)
    else:
        measure_roc(data, options.every, options.peers, options.threads)


if __name__ == "__main__":
    main()

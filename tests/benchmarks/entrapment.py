"""False discovery proportions of identification, measured: is what is called 1 % at most 1 %?

    python tests/benchmarks/entrapment.py --data FOLDER [--quick] [--out FILE.jsonl] [--compare BEFORE.jsonl]

The parts, each over the sets and seeds:

paired
    the sample's proteins beside proteins of shuffled peptides, each peptide with one partner (Wen et al. 2025).
copies, noisy
    the same with five files of one run: exact copies, or the run and four copies with noise in precursors and peaks. Spectra of one peptide
    are then many, as in replicates and fractions.
permuted
    half of the decoy peptides of a run, which are known to be false, are called targets at random: how many of them are accepted with and
    without rescoring.

For each level (PSMs, peptides, protein groups) and reported rate: what is accepted and what of that is false, by three estimators, pooled
over sets and seeds, with intervals that hold 95 of 100 resamples of sets, then of seeds within sets. `entrapment_estimators.py` says how
each is made. The table goes to the standard output, every search as a JSON line to --out.

Whatever `engine` can be imported is measured: with PYTHONPATH naming another checkout, that one.
"""

from __future__ import annotations

import argparse
import datetime
import inspect
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY))  # last: another checkout on the path is the one that is measured
sys.path.insert(0, str(REPOSITORY / "tests" / "peers"))

from entrapment_databases import EntrapmentDatabase, paired_database  # noqa: E402
from entrapment_estimators import COUNTS, Interval, bootstrap, combined, lower, net, paired, q_values  # noqa: E402
from entrapment_searches import LEVELS, Level, judged, search  # noqa: E402
from peer_datasets import DATASETS, read_fasta  # noqa: E402

import engine  # noqa: E402
from engine.identification.rescoring import rescore  # noqa: E402
from engine.version import VERSION  # noqa: E402

INDEPENDENT = ("qc_shew", "metaproteome", "yeast_velos", "hela_a549", "ecoli_ltq", "bsa1")
"""The sets that are pooled; `bench` holds spectra of the others."""
SETS = (*INDEPENDENT, "bench")
PARTS = ("paired", "copies", "permuted")
REPORTED = (0.01, 0.02, 0.05)
COPIES = 5
PERMUTATIONS = 20
ESTIMATORS: dict[str, Callable[[NDArray[np.float64]], float]] = {"lower": lower, "combined": combined, "paired": paired}

Record = dict[str, Any]


@dataclass(frozen=True)
class Examination:
    """What is examined, and where its figures go."""

    data: Path
    sets: Sequence[str]
    seeds: int
    copied: Sequence[str]
    copied_seeds: int
    levels: Sequence[str]
    threads: int
    scratch: Path

    def spectra(self, name: str) -> list[Path]:
        """The files of a set."""
        return [self.data / path for path in DATASETS[name].spectra]

    def own(self, name: str) -> dict[str, str]:
        """The proteins of a set's sample."""
        return read_fasta(self.data / DATASETS[name].database)


# -------------------------------------------------------------------------------------------------------------- the parts


def figures_of(
    part: str, name: str, seed: int, levels: Mapping[str, Level], ratio: float, program: str = "proteoscope"
) -> Iterator[Record]:
    """What a search accepts at each level and reported rate."""
    for level, rows in levels.items():
        for reported in REPORTED:
            counts = dict(zip(COUNTS, rows.count(reported, ratio).tolist(), strict=True))
            yield {"figure": "discoveries", "part": part, "set": name, "seed": seed, "program": program, "level": level,
                   "reported": reported} | counts  # fmt: skip


def paired_part(examination: Examination) -> Iterator[Record]:
    """The sets with their shuffled partners."""
    for name in examination.sets:
        for seed in range(1, examination.seeds + 1):
            database = paired_database(examination.own(name), seed)
            yield from searched(examination, "paired", name, seed, examination.spectra(name), database)


def copies_part(examination: Examination) -> Iterator[Record]:
    """Exact copies of the sets with their shuffled partners."""
    for name in examination.copied:
        with tempfile.TemporaryDirectory(dir=examination.scratch) as folder:
            spectra = exact_copies(examination.spectra(name), Path(folder))
            for seed in range(1, examination.copied_seeds + 1):
                database = paired_database(examination.own(name), seed)
                yield from searched(examination, "copies", name, seed, spectra, database)


def searched(
    examination: Examination, part: str, name: str, seed: int, spectra: Sequence[Path], database: EntrapmentDatabase
) -> Iterator[Record]:
    """The figures of one search by the program."""
    tables = search(spectra, database, DATASETS[name].preset, examination.threads, examination.scratch)
    yield from figures_of(part, name, seed, judged(tables, database, examination.levels), database.ratio)


def exact_copies(spectra: Iterable[Path], folder: Path) -> list[Path]:
    """The files and their copies, `COPIES` of each in all."""
    made = []
    for path in spectra:
        made.append(path)
        for number in range(2, COPIES + 1):
            copy = folder / f"{path.stem}-{number}{path.suffix}"
            shutil.copyfile(path, copy)
            made.append(copy)
    return made


def permuted_part(examination: Examination) -> Iterator[Record]:
    """False targets that are accepted with and without rescoring, in the sets and in copies of them."""
    with tempfile.TemporaryDirectory(dir=examination.scratch) as folder:
        for copies, names in ((1, examination.sets), (COPIES, examination.copied)):
            for name in names:
                spectra = examination.spectra(name) if copies == 1 else exact_copies(examination.spectra(name), Path(folder))
                plain = EntrapmentDatabase(examination.own(name), "", 1.0, {})
                psms = search(spectra, plain, DATASETS[name].preset, examination.threads, examination.scratch, rescoring="off")["psms"]
                for permutation, counts in enumerate(permuted(psms, examination.threads), start=1):
                    yield {"figure": "permuted", "part": "permuted", "set": name, "copies": copies, "seed": permutation} | counts


def permuted(psms: Any, threads: int) -> Iterator[Record]:
    """For each permutation the false and the true targets accepted at 1 % without and with rescoring.

    The rows are the run's decoys and the targets at 1 % by the search's own score. Half of the decoy peptides become targets.
    """
    rank, is_decoy = psms["rank"].to_numpy(), psms["is_decoy"].to_numpy()
    initial = -np.log10(psms["expectation"].to_numpy())
    first = np.flatnonzero(rank == 1)
    confident = first[(q_values(initial[first], is_decoy[first]) <= 0.01) & ~is_decoy[first]]
    rows = np.sort(np.concatenate((confident, first[is_decoy[first]])))
    names = [name for name in psms.column_names if name.startswith("feature_")]
    features = np.column_stack([psms[name].to_numpy()[rows] for name in names])
    sequences = np.array([sequence.replace("I", "L") for sequence in psms["sequence"].to_pylist()])[rows]
    peptide = np.unique(sequences, return_inverse=True)[1].astype(np.int64)
    known_false, initial, spectrum = is_decoy[rows], initial[rows], psms["spectrum"].to_numpy()[rows].astype(np.int64)
    peptides = np.unique(peptide[known_false])
    # What the rows are told apart by when they are split, whatever this version of the program calls it.
    accepted_by = inspect.signature(rescore).parameters
    identity = {name: value for name, value in {"spectrum": spectrum, "group": peptide}.items() if name in accepted_by}
    for permutation in range(PERMUTATIONS):
        generator = np.random.default_rng(permutation)
        still_decoy = generator.permutation(peptides)[: len(peptides) // 2]
        label = np.isin(peptide, still_decoy) & known_false
        outcome = rescore(features, names, label, initial_score=initial, threads=threads, **identity)
        counts: Record = {}
        for way, score in (("without", initial), ("with", outcome.score)):
            accepted = (q_values(score, label) <= 0.01) & ~label
            counts[f"false_{way}"] = int(np.count_nonzero(accepted & known_false))
            counts[f"true_{way}"] = int(np.count_nonzero(accepted & ~known_false))
        yield counts


# ---------------------------------------------------------------------------------------------------------------- tables


def by_set(records: Iterable[Record], columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Rows of counts, one for each search, by set."""
    rows: dict[str, list[list[float]]] = {}
    for record in records:
        rows.setdefault(record["set"], []).append([record[column] for column in columns])
    return {name: np.array(one, np.float64) for name, one in rows.items()}


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:5.2f}"


def with_interval(value: Interval) -> str:
    """A share in percent with its interval."""
    return f"{percent(value.estimate)} [{percent(value.low)},{percent(value.high)}]"


def print_discoveries(records: Sequence[Record], part: str) -> None:
    """What is accepted and what of it is false, for each level and reported rate: pooled, and combined for each set at 1 %."""
    chosen = [one for one in records if one["figure"] == "discoveries" and one["part"] == part and one["program"] == "proteoscope"]
    if not chosen:
        return
    pooled = [one for one in chosen if one["set"] in INDEPENDENT]
    searches = len({(one["set"], one["seed"]) for one in pooled})
    print(f"\n{part}: {len({one['set'] for one in pooled})} sets, {searches} searches; false discovery proportion in % [95 %]")
    print(f"{'level':8} {'reported':>8} {'accepted':>9} {'entrapped':>9} {'lower':>21} {'combined':>21} {'paired':>21} {'net/search':>11}")
    for level in LEVELS:
        for reported in REPORTED:
            counts = by_set((one for one in pooled if one["level"] == level and one["reported"] == reported), COUNTS)
            if not counts:
                continue
            total = np.sum([one.sum(axis=0) for one in counts.values()], axis=0)
            shares = "".join(f" {with_interval(bootstrap(counts, estimator)):>21}" for estimator in ESTIMATORS.values())
            print(f"{level:8} {reported:8.0%} {total[0] + total[1]:9.0f} {total[1]:9.0f}{shares} {net(total) / searches:11.2f}")
    print("each set at 1 %: accepted in a search, combined %")
    for name in SETS:
        told = []
        for level in LEVELS:
            counts = by_set(
                (one for one in chosen if one["set"] == name and one["level"] == level and one["reported"] == REPORTED[0]), COUNTS
            )
            if counts:
                rows = counts[name]
                total = rows.sum(axis=0)
                told.append(f"{level} {(total[0] + total[1]) / len(rows):8.1f} {percent(combined(total))}")
        if told:
            print(f"  {name:14} {'   '.join(told)}")


def print_permuted(records: Sequence[Record]) -> None:
    """False targets accepted with and without rescoring."""
    chosen = [one for one in records if one["figure"] == "permuted"]
    if not chosen:
        return
    columns = ("false_without", "false_with", "true_without", "true_with")
    print("\npermuted labels: false targets accepted at 1 %, mean of the permutations; their share of what is accepted, %")
    print(f"{'set':20} {'without':>8} {'with':>8} {'difference':>10} {'+-':>6} {'share without':>14} {'share with':>11}")
    for copies in sorted({one["copies"] for one in chosen}):
        here = by_set((one for one in chosen if one["copies"] == copies), columns)
        pooled = {name: rows for name, rows in here.items() if name in INDEPENDENT}
        for name, rows in [*((name, {name: rows}) for name, rows in here.items()), ("pooled", pooled)]:
            n = sum(len(one) for one in rows.values())
            total = np.sum([one.sum(axis=0) for one in rows.values()], axis=0)
            error = bootstrap(rows, lambda counts: float(counts[1] - counts[0])).error / n
            shares = [total[i] / max(total[i] + total[i + 2], 1) for i in (0, 1)]
            label = name if copies == 1 else f"{name} x{copies}"
            print(
                f"{label:20} {total[0] / n:8.2f} {total[1] / n:8.2f} {(total[1] - total[0]) / n:10.2f} {error:6.2f}"
                f" {percent(shares[0]):>14} {percent(shares[1]):>11}"
            )


def header(examination: Examination) -> Record:
    """What was measured, when and on what."""
    checkout = Path(engine.__path__[0]).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(checkout), *words], capture_output=True, text=True, check=False).stdout.strip()

    return {
        "figure": "examination", "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "version": VERSION,
        "commit": git("rev-parse", "--short=12", "HEAD"), "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        "machine": platform.machine(), "cores": os.cpu_count(), "threads": examination.threads, "sets": list(examination.sets),
        "seeds": examination.seeds, "copied_seeds": examination.copied_seeds,
    }  # fmt: skip


def main() -> int:
    """Examine, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("PROTEOSCOPE_TEST_DATA"), help="the unpacked data (PROTEOSCOPE_TEST_DATA)"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=INDEPENDENT)
    parser.add_argument("--seeds", type=int, default=8, help="of the shuffling")
    parser.add_argument("--copied-seeds", type=int, default=3, help="of the shuffling, for copies of runs")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="3 seeds of paired, and copies of qc_shew alone")
    parser.add_argument("--out", type=Path, help="the JSON lines")
    arguments = parser.parse_args()
    if arguments.data is None or not Path(arguments.data).is_dir():
        parser.error("--data must be the folder of the unpacked data")
    parts = {"paired": paired_part, "copies": copies_part, "permuted": permuted_part}
    records: list[Record] = []
    with tempfile.TemporaryDirectory(prefix="proteoscope-entrapment-") as scratch:
        examination = Examination(
            Path(arguments.data).resolve(), arguments.sets, 3 if arguments.quick else arguments.seeds,
            [name for name in arguments.sets if name == "qc_shew"] if arguments.quick else arguments.sets, arguments.copied_seeds,
            arguments.levels, arguments.threads, Path(scratch),
        )  # fmt: skip
        records.append(header(examination))
        for part in arguments.parts:
            began = time.perf_counter()
            records.extend(parts[part](examination))
            print(f"{part}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(record) + "\n" for record in records))
    print(" ".join(f"{name}={value}" for name, value in records[0].items()))
    for part in ("paired", "copies"):
        print_discoveries(records, part)
    print_permuted(records)
    return 0


if __name__ == "__main__":
    sys.exit(main())

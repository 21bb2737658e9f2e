"""Measured false discovery proportions of identification at a reported 1 %.

    bash tests/peers/install.sh
    python -m benchmarks.entrapment --data FOLDER [--quick] [--jobs N] [--out FILE.jsonl] [--compare BEFORE.jsonl]

The parts, each over the sets and seeds:

paired
    the sample's proteins and proteins of shuffled peptides, each peptide with one partner (Wen et al. 2025).
copies, noisy
    the same with five files of one run: exact copies, or the run and four copies with noise in precursors and peaks. A peptide then has
    many spectra, as in replicates and fractions.
small
    samples of the spectra of each set, so small that 20 to 60 PSMs are accepted, searched with shuffled proteins added; also searched only
    in shuffled proteins (`small null`), so that no match is right.
incomplete
    as `paired`, with decoys in the database: of all proteins, and of half of the proteins. Both should give the same counts.
foreign
    the sample's proteins and --foreign-ratio times as many peptides of other organisms (2 unless given), drawn anew for each seed.
null
    spectra searched only in the proteins of another organism: number accepted at 1 %, and frequency of small E-values.
permuted
    a random half of the decoy peptides of a run, which are known to be false, are labelled as targets; it is counted how many of them are
    accepted with and without rescoring.
peers
    Comet and X!Tandem with the databases of `paired`: PSMs by E-value and target-decoy q-value, compared with the program's at
    equal measured share.

For each level (PSMs, peptides, protein groups) and reported rate: the numbers of accepted and false discoveries, by three estimators,
pooled over sets and seeds, with 95 % intervals from resampling the sets, then the seeds within sets. Each set is also evaluated separately,
with an interval over its original spectra and the probability that its share is not above 1 %, corrected for the number of sets.
`entrapment_estimators.py` defines the estimators. The tables are written to standard output, and every search as JSON lines to --out;
--read prints such lines again. --compare shows the discoveries of two such measurements at equal measured share, for all sets together and
for each set. It shows whether a change increases the number of discoveries, and whether it decreases that of a set. Settings that were
chosen with some seeds are confirmed with others (--first-seed). --jobs is the number of processes, which does not change the figures.

With --quick (some minutes) a small sample of each part is measured. Shares above their bound are listed at the end; the exit code is then
1. `pytest -m long benchmarks/test_entrapment_judge.py` runs this.

The `proteoscope` that is imported is measured. To measure another checkout, name it in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":  # `-m` puts this checkout first; a checkout in PYTHONPATH is measured instead
    REPOSITORY = str(Path(__file__).resolve().parents[1])
    sys.path = [*(folder for folder in sys.path if folder != REPOSITORY), REPOSITORY]

import proteoscope
from benchmarks.entrapment_databases import (
    CONTAMINANT,
    DECOY,
    ENTRAPMENT,
    EntrapmentDatabase,
    foreign_databases,
    paired_databases,
    with_decoys,
)
from benchmarks.entrapment_estimators import COUNTS, q_values
from benchmarks.entrapment_searches import LEVELS, Level, classified, peer_level, search
from benchmarks.entrapment_spectra import COPIES, exact_copies, noisy_copies, sample
from benchmarks.entrapment_tables import INDEPENDENT, SETS, exceeded, print_comparison, print_tables
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.matches.rescoring import rescore
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.version import VERSION
from tests.peers.peer_datasets import DATASETS, EIGHTEEN_PROTEINS, FIVE_PROTEOMES, SHEWANELLA, read_fasta
from tests.peers.peer_programs import installed

SHUFFLED = ("paired", "copies", "noisy", "small", "incomplete", "peers")
"""Parts that search the sample's proteins together with shuffled ones."""
PARTS = (*SHUFFLED, "foreign", "null", "permuted")
QUICK_PARTS = ("paired", "copies", "small", "incomplete", "null")
QUICK_COPIES = ("qc_shew", "ecoli_ltq", "bsa1")
QUICK_SEEDS = 3
PROGRAMS = ("proteoscope", "comet", "xtandem")
REPORTED = (0.01, 0.02, 0.05)
PERMUTATIONS = 20
SAMPLES = 2
"""Of each set for each seed."""
FEWEST_ACCEPTED, MAXIMUM_ACCEPTED = 20, 60
NULL_SPECTRA = 120
"""Size of a sample that is searched only among wrong answers."""
ACCEPTED_SHARE = {"qc_shew": 0.29, "metaproteome": 0.98, "yeast_velos": 0.45, "hela_a549": 0.16, "ecoli_ltq": 0.55, "bsa1": 0.08}
"""PSMs that Comet accepts of each spectrum: how large a sample must be."""
SHARES_OF_DECOYS = (1.0, 0.5)
"""Shares of the proteins that have a decoy in the database."""
CURVE = np.concatenate((np.arange(0, 40) / 2000, np.arange(8, 41) / 400))
SMALL_E_VALUES = (0.001, 0.01, 0.1)

ORGANISMS = {
    # Beginning or end of the accessions of an organism's own proteins, and the file that contains them.
    "yeast": ("_YEAST", FIVE_PROTEOMES),
    "E. coli": ("_ECOLI", FIVE_PROTEOMES),
    "human": ("_HUMAN", "proteomes/human.small.comet.fasta"),
    "Sorangium": ("_SORC5", FIVE_PROTEOMES),
    "Shewanella": ("SO_", SHEWANELLA),
}
FOREIGN = {
    # The metaproteome contains peptides that all bacteria have; human proteins contaminate any sample, or were added.
    "qc_shew": ("yeast", "E. coli", "Sorangium"),
    "metaproteome": ("yeast", "human"),
    "yeast_velos": ("E. coli", "Sorangium", "Shewanella"),
    "hela_a549": ("yeast", "E. coli", "Sorangium", "Shewanella"),
    "ecoli_ltq": ("yeast", "Sorangium", "Shewanella"),
    "bsa1": ("yeast", "E. coli", "Shewanella"),
}
NULL = (
    ("high-resolution", "qc_shew", "yeast"),
    ("high-resolution", "metaproteome", "yeast"),
    ("high-resolution", "yeast_velos", "Shewanella"),
    ("high-resolution", "hela_a549", "Sorangium"),
    ("phospho", "qc_shew", "yeast"),
    ("phospho", "hela_a549", "Shewanella"),
    ("tmt", "qc_shew", "yeast"),
    ("open", "qc_shew", "human"),
    ("open", "yeast_velos", "Shewanella"),
    ("non-specific", "qc_shew", "human"),
    ("low-resolution", "ecoli_ltq", "yeast"),
    ("low-resolution", "bsa1", "Shewanella"),
    ("ion-trap", "ecoli_ltq", "yeast"),
    ("ion-trap", "bsa1", "Shewanella"),
)
"""Preset, spectra, proteins."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Examination:
    """Scope of an examination: `seeds` paired and foreign databases from `first_seed`, fewer for `copied` sets and for peers."""

    data: Path
    parts: Sequence[str]
    sets: Sequence[str]
    copied: Sequence[str]
    first_seed: int
    seeds: int
    copied_seeds: int
    small_seeds: int
    peer_seeds: int
    foreign_ratio: float
    levels: Sequence[str]
    programs: Sequence[str]
    comet_isotope_errors: Sequence[int]
    settings: Mapping[str, str]
    threads: int
    jobs: int
    scratch: Path

    def of_part(self, n: int) -> range:
        """Return the seeds of a part that has `n` of them."""
        return range(self.first_seed, self.first_seed + n)

    def spectra(self, name: str) -> list[Path]:
        """Return the files of a set."""
        return [self.data / path for path in DATASETS[name].spectra]

    def own(self, name: str) -> dict[str, str]:
        """Return the proteins of a set's sample."""
        return read_fasta(self.data / DATASETS[name].database)

    def organism(self, name: str) -> dict[str, str]:
        """Return the proteins of an organism, without contaminants."""
        mark, path = ORGANISMS[name]
        every = read_fasta(self.data / path)
        return {key: sequence for key, sequence in every.items() if mark in key and not CONTAMINANT.search(key)}

    def contaminants(self) -> list[str]:
        """Return sequences that may be in any sample."""
        sequences = [sequence for name, sequence in read_fasta(self.data / FIVE_PROTEOMES).items() if CONTAMINANT.search(name)]
        # That file holds a proteome, a standard's proteins and contaminants of detergents.
        eighteen = read_fasta(self.data / EIGHTEEN_PROTEINS)
        shewanella = read_fasta(self.data / SHEWANELLA)
        sequences += [sequence for name, sequence in eighteen.items() if ORGANISMS["Sorangium"][0] not in name]
        return sequences + [sequence for name, sequence in shewanella.items() if not name.startswith(ORGANISMS["Shewanella"][0])]

    def search(self, spectra: Sequence[Path], database: EntrapmentDatabase, preset: str, **more: Any) -> dict[str, Any]:
        """Return the tables of a search by the program."""
        return search(spectra, database, preset, self.threads, self.scratch, **{**self.settings, **more})


# -------------------------------------------------------------------------------------------------- parts of the examination


Task = Callable[[], list[Record]]
"""Unit of work of a process: searches that share a database."""


def shuffled_tasks(examination: Examination) -> Iterator[Task]:
    """Yield all parts with shuffled partners, so that each database is made once."""
    seeds = {"paired": examination.seeds, "copies": examination.copied_seeds, "noisy": examination.copied_seeds}
    seeds |= {"incomplete": examination.copied_seeds, "small": examination.small_seeds}
    seeds = {part: n for part, n in (seeds | {"peers": examination.peer_seeds}).items() if part in examination.parts}
    for name in examination.sets:
        of_set = {part: n for part, n in seeds.items() if part not in ("copies", "noisy") or name in examination.copied}
        for seed in examination.of_part(max(of_set.values(), default=0)):
            yield partial(shuffled, examination, name, seed, [part for part, n in of_set.items() if seed in examination.of_part(n)])


def shuffled(examination: Examination, name: str, seed: int, parts: Sequence[str]) -> list[Record]:
    """Return the parts of a set with the shuffled partners of a seed."""
    dataset, spectra, records = DATASETS[name], examination.spectra(name), list[Record]()
    (database,) = paired_databases(examination.own(name), [seed])
    read = read_spectra(spectra)
    with tempfile.TemporaryDirectory(dir=examination.scratch) as folder:
        for part in (part for part in parts if part in ("paired", "copies", "noisy")):
            files = spectra
            if part == "copies":
                files = exact_copies(spectra, Path(folder))
            elif part == "noisy":
                files = noisy_copies(spectra, read, dataset.precursor, dataset.fragment, Path(folder), seed)
            levels = classified(examination.search(files, database, dataset.preset), database, examination.levels)
            records += discoveries(part, name, seed, levels, database.ratio, len(read))
            if part == "paired" and "psm" in levels:
                records.append(curve("proteoscope", name, seed, levels["psm"], database.ratio))
        if "small" in parts:
            records += small(examination, name, seed, database, read, Path(folder))
    if "incomplete" in parts:
        for share in SHARES_OF_DECOYS:
            levels = examination.search(spectra, with_decoys(database, share, seed), dataset.preset, decoys="existing", decoy_prefix=DECOY)
            sequences = classified(levels, database, examination.levels)
            records += discoveries(f"incomplete {share:.0%}", name, seed, sequences, database.ratio, len(read))
    if "peers" in parts:
        records += peer_curves(examination, name, seed, database)
    return records


def small(examination: Examination, name: str, seed: int, database: EntrapmentDatabase, read: Spectra, folder: Path) -> Iterator[Record]:
    """Yield samples of a set with 20 to 60 expected PSMs, and samples without a right answer, each with its own seed."""
    generator, preset = np.random.default_rng([seed, 2]), DATASETS[name].preset
    wrong = {accession: sequence for accession, sequence in database.proteins.items() if accession.startswith(ENTRAPMENT)}
    nothing_right = replace(database, proteins=wrong, partners={})
    for number in range(SAMPLES):
        n = round(generator.integers(FEWEST_ACCEPTED, MAXIMUM_ACCEPTED + 1) / ACCEPTED_SHARE[name])
        for part, searched, size in (("small", database, n), ("small null", nothing_right, NULL_SPECTRA)):
            rows = np.sort(generator.permutation(len(read))[:size])
            tables = examination.search([sample(read, rows, folder / "sample.mgf")], searched, preset)
            levels = classified(tables, searched, examination.levels)
            records = discoveries(part, name, seed * SAMPLES + number, levels, database.ratio, len(rows))
            yield from (record | {"of": len(rows)} for record in records)


def discoveries(part: str, name: str, seed: int, levels: Mapping[str, Level], ratio: float, n_spectra: int) -> Iterator[Record]:
    """Yield the accepted discoveries at each level and reported rate; the spectra repeat after `n_spectra`."""
    for level, rows in levels.items():
        for reported in REPORTED:
            counts = dict(zip(COUNTS, rows.count(reported, ratio).tolist(), strict=True))
            said = {"figure": "discoveries", "part": part, "set": name, "seed": seed, "program": "proteoscope"}
            record = {**said, "level": level, "reported": reported, "ratio": round(ratio, 5), **counts}
            if reported == REPORTED[0]:
                record["false_spectra"] = sorted((rows.false_spectra(reported) % n_spectra).tolist())
            yield record


def curve(program: str, name: str, seed: int, psms: Level, ratio: float) -> Record:
    """Return the numbers of accepted sample and entrapment PSMs at each q-value of `CURVE`."""
    counts = np.array([psms.count(threshold, ratio)[:2] for threshold in CURVE]).astype(int)
    said = {"figure": "curve", "part": "peers", "set": name, "seed": seed, "program": program, "ratio": round(ratio, 5)}
    return {**said, "q": CURVE.tolist(), "targets": counts[:, 0].tolist(), "entrapped": counts[:, 1].tolist()}


def peer_curves(examination: Examination, name: str, seed: int, database: EntrapmentDatabase) -> Iterator[Record]:
    """Yield the searches of peers: Comet with each setting of isotope errors, X!Tandem with them on."""
    for program in examination.programs:
        if program in DATASETS[name].peers:
            for isotope_errors in examination.comet_isotope_errors if program == "comet" else (3,):
                psms = peer_level(
                    program, DATASETS[name], examination.data, database, seed, isotope_errors, examination.threads, examination.scratch
                )
                label = f"comet 0-{isotope_errors}" if program == "comet" else program
                yield curve(label, name, seed, psms, database.ratio)


def foreign_tasks(examination: Examination) -> Iterator[Task]:
    """Yield the tasks of `with_foreign`."""
    for name in (name for name in examination.sets if name in FOREIGN):
        for seed in examination.of_part(examination.seeds):
            yield partial(with_foreign, examination, name, seed)


def with_foreign(examination: Examination, name: str, seed: int) -> list[Record]:
    """Search a set with the foreign proteins of a seed, and return the accepted discoveries."""
    foreign: dict[str, str] = {}
    for organism in FOREIGN[name]:
        foreign |= examination.organism(organism)
    (database,) = foreign_databases(examination.own(name), foreign, examination.contaminants(), [seed], examination.foreign_ratio)
    tables = examination.search(examination.spectra(name), database, DATASETS[name].preset)
    n_spectra = int(tables["psms"]["spectrum"].to_numpy().max(initial=0)) + 1
    return [*discoveries("foreign", name, seed, classified(tables, database, examination.levels), database.ratio, n_spectra)]


def null_tasks(examination: Examination) -> Iterator[Task]:
    """Return the tasks of `null`."""
    return (partial(null, examination, *options) for options in NULL if options[1] in examination.sets)


def null(examination: Examination, preset: str, name: str, organism: str) -> list[Record]:
    """Search a set in the proteins of another organism; peptides that these share with the sample or contaminants do not count."""
    harmless = "|".join([*examination.own(name).values(), *examination.contaminants()]).replace("I", "L")
    database = EntrapmentDatabase(examination.organism(organism), harmless, 1.0, {})
    psms = examination.search(examination.spectra(name), database, preset)["psms"]
    false = np.array([database.is_entrapment(sequence) for sequence in psms["sequence"].to_pylist()], bool)
    false &= psms["rank"].to_numpy() == 1
    expectation, n = psms["expectation"].to_numpy()[false], int(np.count_nonzero(false))
    accepted = psms["q_value"].to_numpy()[false] <= REPORTED[0]
    return [
        {
            "figure": "null",
            "part": "null",
            "set": name,
            "proteins": organism,
            "preset": preset,
            "matched": n,
            "accepted": int(np.count_nonzero(accepted & ~psms["is_decoy"].to_numpy(zero_copy_only=False)[false])),
            "share": {f"{limit:g}": round(float(np.count_nonzero(expectation <= limit)) / max(n, 1), 5) for limit in SMALL_E_VALUES},
        }
    ]


def permuted_tasks(examination: Examination) -> Iterator[Task]:
    """Yield the tasks of `with_permuted_labels`, on the sets and on copies of them."""
    for copies, names in ((1, examination.sets), (COPIES, examination.copied)):
        yield from (partial(with_permuted_labels, examination, name, copies) for name in names)


def with_permuted_labels(examination: Examination, name: str, copies: int) -> list[Record]:
    """Search a set, or copies of it, and return the figures of each permutation."""
    with tempfile.TemporaryDirectory(dir=examination.scratch) as folder:
        spectra = examination.spectra(name)
        if copies > 1:
            spectra = exact_copies(spectra, Path(folder))
        plain = EntrapmentDatabase(examination.own(name), "", 1.0, {})
        psms = examination.search(spectra, plain, DATASETS[name].preset, rescoring="off")["psms"]
    said = {"figure": "permuted", "part": "permuted", "set": name, "copies": copies}
    return [said | {"seed": number} | counts for number, counts in enumerate(permuted(psms, examination.threads), start=1)]


def permuted(psms: Any, threads: int) -> Iterator[Record]:
    """Yield the false and true targets accepted at 1 % without and with rescoring, for each permutation.

    The rows are the run's decoys and the targets at 1 % by the search's own score. Half of the decoy peptides become targets.
    """
    is_decoy = psms["is_decoy"].to_numpy(zero_copy_only=False)
    initial = psms["score"].to_numpy()  # the search's own, since rescoring was off
    first = np.flatnonzero(psms["rank"].to_numpy() == 1)
    confident = first[(q_values(initial[first], is_decoy[first]) <= REPORTED[0]) & ~is_decoy[first]]
    rows = np.sort(np.concatenate((confident, first[is_decoy[first]])))
    features = {name: psms[name].to_numpy()[rows] for name in psms.column_names if name.startswith("feature_")}
    sequences = np.array([sequence.replace("I", "L") for sequence in psms["sequence"].to_pylist()])[rows]
    peptide = np.unique(sequences, return_inverse=True)[1].astype(np.int64)
    known_false, initial = is_decoy[rows], initial[rows]
    peptides = np.unique(peptide[known_false])
    for permutation in range(PERMUTATIONS):
        still_decoys = np.random.default_rng(permutation).permutation(peptides)[: len(peptides) // 2]
        label = np.isin(peptide, still_decoys) & known_false
        outcome = rescore(features, label, peptide, initial, resources=Resources(threads))
        counts: Record = {}
        for way, score in (("without", initial), ("with", outcome.score)):
            accepted = (q_values(score, label) <= REPORTED[0]) & ~label
            counts[f"false_{way}"] = int(np.count_nonzero(accepted & known_false))
            counts[f"true_{way}"] = int(np.count_nonzero(accepted & ~known_false))
        yield counts


def examined(examination: Examination) -> Iterator[Record]:
    """Yield the date and machine of the measurement, then the figures of all parts."""
    checkout = Path(proteoscope.__file__).resolve().parents[1]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(checkout), *words], capture_output=True, text=True, check=False).stdout.strip()

    yield {
        "figure": "examination",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": VERSION,
        "commit": git("rev-parse", "--short=12", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": examination.threads,
        "jobs": examination.jobs,
        "sets": list(examination.sets),
        "first_seed": examination.first_seed,
        "seeds": examination.seeds,
        "copied_seeds": examination.copied_seeds,
        "small_seeds": examination.small_seeds,
        "foreign_ratio": examination.foreign_ratio,
        "settings": dict(examination.settings),
    }
    parts = {"foreign": foreign_tasks, "null": null_tasks, "permuted": permuted_tasks}
    for titles, tasks in (
        ([part for part in examination.parts if part in SHUFFLED], shuffled_tasks),
        *(([title], tasks) for title, tasks in parts.items() if title in examination.parts),
    ):
        if titles:
            began = time.perf_counter()
            for records in done([*tasks(examination)], examination.jobs):
                yield from records
            print(f"{', '.join(titles)}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def done(tasks: Sequence[Task], jobs: int) -> Iterator[list[Record]]:
    """Yield the records of each task in order, computed by `jobs` processes."""
    if jobs < 2:
        yield from (task() for task in tasks)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as processes:
        yield from processes.map(run_task, tasks)


def run_task(task: Task) -> list[Record]:
    """Run a task in a process of the pool."""
    return task()


def read_records(path: Path) -> list[Record]:
    """Return the JSON lines of an examination."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def main(words: Sequence[str] | None = None) -> int:
    """Examine, or read records, and print tables; `words` default to the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("PROTEOSCOPE_TEST_DATA"), help="the unpacked data (PROTEOSCOPE_TEST_DATA)"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=INDEPENDENT, help="bench, which is not independent, is never pooled")
    parser.add_argument("--seeds", type=int, default=8, help="of the paired and the foreign databases")
    parser.add_argument("--first-seed", type=int, default=1, help="they are numbered from here")
    parser.add_argument("--copied-seeds", type=int, default=3, help="of the databases for copies of runs")
    parser.add_argument("--small-seeds", type=int, default=9, help=f"of the databases for samples, {SAMPLES} of each set for each seed")
    parser.add_argument("--peer-seeds", type=int, default=3, help="of the databases that the peers search")
    parser.add_argument("--foreign-ratio", type=float, default=2.0, help="foreign peptides for each of the sample's, at most")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS, help="peers in addition to proteoscope")
    parser.add_argument(
        "--comet-isotope-errors", nargs="+", type=int, choices=range(4), default=[1, 3], help="maximum isotope errors, each from 0"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="a parameter of Proteoscope in addition to the preset"
    )
    parser.add_argument("--threads", type=int, default=2, help="of each search")
    parser.add_argument("--jobs", type=int, default=1, help="processes that search, each on its threads")
    parser.add_argument("--quick", action="store_true", help="a little of each part, checked against bounds")
    parser.add_argument("--out", type=Path, help="where the JSON lines go")
    parser.add_argument(
        "--read", type=Path, nargs="+", help="JSON lines of an examination that was done, part by part, instead of doing one"
    )
    parser.add_argument("--compare", type=Path, help="JSON lines of another examination to compare with")
    arguments = parser.parse_args(words)
    if arguments.read:
        records = [record for path in arguments.read for record in read_records(path)]
    else:
        if arguments.data is None or not Path(arguments.data).is_dir():
            parser.error("--data must be the folder of the unpacked data")
        parts = [part for part in arguments.parts if not arguments.quick or part in QUICK_PARTS]
        programs = [program for program in arguments.programs if program != "proteoscope"]
        missing = [program for program in programs if "peers" in parts and not installed(program)]
        if missing:
            parser.error(f"not installed: {', '.join(missing)}; run bash tests/peers/install.sh, or name the other --parts")
        copied = [name for name in arguments.sets if name in QUICK_COPIES or not arguments.quick]
        seeds = (arguments.seeds, arguments.copied_seeds, arguments.small_seeds, arguments.peer_seeds)
        with tempfile.TemporaryDirectory(prefix="proteoscope-entrapment-") as scratch:
            examination = Examination(
                Path(arguments.data).resolve(),
                parts,
                arguments.sets,
                copied,
                arguments.first_seed,
                *(min(n, QUICK_SEEDS) if arguments.quick else n for n in seeds),
                arguments.foreign_ratio,
                arguments.levels,
                programs,
                arguments.comet_isotope_errors,
                dict(setting.split("=", 1) for setting in arguments.set),
                arguments.threads,
                arguments.jobs,
                Path(scratch),
            )
            records = []
            with (arguments.out or Path(os.devnull)).open("w") as out:
                for record in examined(examination):
                    records.append(record)
                    print(json.dumps(record), file=out, flush=True)
    print_tables(records)
    if arguments.compare:
        print_comparison(records, read_records(arguments.compare))
    wrong = exceeded(records) if arguments.quick else []
    print("\n".join(["", *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

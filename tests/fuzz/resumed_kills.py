"""Runs that get SIGKILL, SIGTERM or SIGHUP at any moment and are resumed: their tables equal those of an undisturbed run.

    python -m tests.fuzz.resumed_kills [KILLS] [--seed SEED] [--kinds identify align ...] [--data FOLDER]

Each run is ended after a random time and resumed with another number of threads; some are ended again while resuming. A run without a
checkpoint is started again. The tables must be byte-identical to those of an undisturbed run of the same kind. `--data` is the folder of
the real data, which may not ship; without it, libraries, structures, modified peptides, explained spectra and quantities are not tested.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from proteoscope.engine.project import Project
from proteoscope.engine.project.checkpoint_store import checkpoint_folder
from proteoscope.engine.project.index_store import VARIABLE
from tests.fuzz.forks import ForkedCommand, prepare
from tests.fuzz.kills import DATABASE, SAMPLES

SPECTRA = SAMPLES / "BSA1.mzML.gz"
_SHARE_KILLED_AGAIN = 0.5
_AFTER, _AFTER_RESUMED = (0.3, 1.0), (0.05, 0.6)  # shares of an undisturbed run's time
_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)


def cases(folder: Path, data: Path | None, database: Path = DATABASE) -> dict[str, tuple[str, ...]]:
    """Return the command lines by kind.

    ``PROJECT`` is replaced by the project's folder; `database` is the database of `identify` and `align`.
    """
    chance = np.random.default_rng(4)
    genome = "".join(chance.choice(list("ACGT"), 30_000))
    reads = [genome[begin : begin + 120] for begin in chance.integers(0, len(genome) - 120, 300).tolist()]
    queries = ["".join(chance.choice(list("ARNDCQEGHILKMFPSTWYV"), 300)) for _ in range(12)]
    for name, texts in {"genome": [genome], "reads": reads, "queries": queries}.items():
        (folder / f"{name}.fasta").write_text("".join(f">{name}{number}\n{text}\n" for number, text in enumerate(texts)))
    kinds: dict[str, tuple[str, ...]] = {
        "identify": (
            "identify",
            str(SPECTRA),
            "--database",
            str(database),
            "--out",
            "PROJECT",
            "--preset",
            "low-resolution",
            "--set",
            "precursor_tolerance=3 Da",
            "--set",
            "score=hyperscore",
        ),
        "align": ("align", str(folder / "queries.fasta"), str(database), "--out", "PROJECT-hits.tsv", "--project", "PROJECT"),
        "reads": (
            "reads",
            str(folder / "genome.fasta"),
            str(folder / "reads.fasta"),
            "--out",
            "PROJECT-reads.tsv",
            "--project",
            "PROJECT",
            "--mapping",
            "every",
            "--preset",
            "map-to-genome",
        ),
        "k-means": (
            "cluster",
            str(SPECTRA),
            "--out",
            "PROJECT",
            "--method",
            "k-means",
            "--clusters",
            "60",
            "--set",
            "precursor_tolerance=900 Da",
        ),
        "cluster": ("cluster", str(SPECTRA), "--out", "PROJECT", "--set", "precursor_tolerance=400 Da"),
    }
    if data is not None:
        yeast, proteins = data / "spectra" / "SmallCalibratible_Yeast.mzML", data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta"
        globins = data / "structures" / "globins"
        kinds["structures"] = (
            "structures",
            str(min(globins.iterdir())),
            "--database",
            str(globins),
            "--out",
            "PROJECT-hits.tsv",
            "--project",
            "PROJECT",
        )
        kinds["modified"] = ("modified", str(yeast), "--database", str(proteins), "--out", "PROJECT")
        library = str(data / "libraries" / "nist-bsa_consensus.msp")
        kinds["library"] = ("library", str(SPECTRA), "--library", library, "--out", "PROJECT", "--set", "precursor_tolerance=3 Da")
        kinds["explain"] = ("explain", "PROJECT")
        kinds["quantify"] = ("quantify", "PROJECT")
        kinds["evidence"] = ("evidence", "PROJECT", "--structures", str(data / "structures" / "albumin"))
    return kinds


def before(kind: str, data: Path | None) -> tuple[str, ...]:
    """Return the source identification of a kind, or None if it needs none."""
    if data is None or kind not in ("explain", "quantify", "evidence"):
        return ()
    if kind == "explain":
        yeast, proteins = data / "spectra" / "SmallCalibratible_Yeast.mzML", data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta"
        return ("identify", str(yeast), "--database", str(proteins), "--out", "PROJECT")
    return ("identify", str(SPECTRA), "--database", str(DATABASE), "--out", "PROJECT", "--preset", "low-resolution")


class Place:
    """A project for runs of one kind, with a cache that all share.

    With `is_timed_again` the run is timed again with existing indexes, if making them takes much of the time.
    """

    def __init__(
        self, folder: Path, kind: str, arguments: tuple[str, ...], before: tuple[str, ...] = (), *, is_timed_again: bool = True
    ) -> None:
        self.folder, self.kind, self.project = folder, kind, folder / kind
        self._arguments = [argument.replace("PROJECT", str(self.project)) for argument in arguments]
        if before:
            self.finish(self._start([argument.replace("PROJECT", str(self.project)) for argument in before], 2))
        prepare(self._arguments[0])
        began = time.monotonic()
        self.finish(self.begin())
        self.seconds = time.monotonic() - began
        self.undisturbed = self.tables(self.last())
        if is_timed_again:
            began = time.monotonic()  # now that the indexes exist
            self.finish(self.begin())
            self.seconds = time.monotonic() - began
            assert self.tables(self.last()) == self.undisturbed

    def _start(self, arguments: list[str], threads: int) -> ForkedCommand:
        command = [*arguments, "--device", "cpu", "--threads", str(threads), "--quiet"]
        return ForkedCommand(command, os.environ, like=self._arguments[0], keeps_at_once=True)

    def begin(self) -> ForkedCommand:
        """Start a run."""
        return self._start(self._arguments, 2)

    def resume(self, run: str, threads: int) -> ForkedCommand:
        """Resume a run."""
        return self._start(["resume", str(self.project), "--run", run], threads)

    def finish(self, process: ForkedCommand) -> None:
        """Let a process run to its end."""
        output, errors = process.communicate()
        assert (process.returncode, output, errors) == (0, "", ""), f"{self.kind} ended with {process.returncode}: {output}{errors}"

    def last(self) -> str:
        """Return the last requested run."""
        return Project.open(self.project).runs()[-1].id

    def tables(self, run: str) -> Mapping[str, bytes]:
        """Return the tables of a finished run."""
        project = Project.open(self.project)
        assert project.problems == () and project.verify() == []
        contents = {result.name: result.path.read_bytes() for result in project.results(run) if result.rows is not None}
        assert contents, f"{run} has no tables"
        return contents


def run(
    n: int,
    seed: int,
    folder: Path,
    kinds: list[str] | None = None,
    data: Path | None = None,
    database: Path = DATABASE,
    *,
    is_timed_again: bool = True,
) -> Counter[str]:
    """Kill runs `n` times, and compare their tables with those of undisturbed runs.

    Returns
    -------
    Counter of str
        Numbers of kills `at work`, before a run had ended, of kills of runs that were being `resumed`, and of `resumptions`; the same for
        each kind, as ``identify: at work``.
    """
    os.environ[VARIABLE] = str(folder / "cache")  # the cache has the checkpoints
    chance, of_kinds = random.Random(seed), cases(folder, data, database)
    places = [
        Place(folder, kind, arguments, before(kind, data), is_timed_again=is_timed_again)
        for kind, arguments in of_kinds.items()
        if not kinds or kind in kinds
    ]
    n_killed, counts = 0, Counter[str]()
    while n_killed < n:
        place = places[n_killed % len(places)]
        process, threads, is_resumed = place.begin(), 2, False
        while True:
            # Resumed runs end sooner.
            time.sleep(chance.uniform(*(_AFTER_RESUMED if is_resumed else _AFTER)) * place.seconds)
            n_killed += 1
            if process.poll() is None:
                _count(counts, place.kind, "at work", *(["resumed"] if is_resumed else []))
            process.send_signal(chance.choice(_SIGNALS))
            process.communicate()
            project = Project.open(place.project)
            stopped = project.runs()[-1]
            if stopped.status == "done":
                break
            threads = 3 - threads
            is_resumed = stopped.id in project.resumable()
            if is_resumed:
                _count(counts, place.kind, "resumptions")
            process = place.resume(stopped.id, threads) if is_resumed else place.begin()
            if chance.random() >= _SHARE_KILLED_AGAIN:
                place.finish(process)
                break
        last = place.last()
        assert place.tables(last) == place.undisturbed, f"after kill {n_killed}, {last} of {place.kind} has other tables"
        stem = Project.open(place.project).checkpoint_key(last).path.stem
        left = [str(path) for path in checkpoint_folder().glob(f"{stem}*")]
        assert not left, f"{last} has ended and has the checkpoint {left}"
        print(f"{n_killed} kills: {_described(counts)}", flush=True)
    return counts


def _count(counts: Counter[str], kind: str, *names: str) -> None:
    counts.update(names)
    counts.update(f"{kind}: {name}" for name in names)


def _described(counts: Counter[str], kind: str = "") -> str:
    at_work, resumed, resumptions = (counts[f"{kind}{name}"] for name in ("at work", "resumed", "resumptions"))
    return f"{at_work} of runs at work, {resumed} of them of resumed ones; {resumptions} resumptions"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as folder:
        counts = run(options.kills, options.seed, Path(folder), options.kinds, options.data)
    print(f"{options.kills} kills or more: {_described(counts)}; all tables are the same")
    for kind in sorted({name.partition(": ")[0] for name in counts if ": " in name}):
        print(f"  {kind}: {_described(counts, f'{kind}: ')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

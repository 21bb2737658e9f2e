"""Searches that are killed at any moment, in sequence, in one project and with one cache.

    python -m tests.fuzz.kills [N] [--seed SEED]

N times, `identify` or `align` is started with parameters that sometimes make a new index, and killed after a random time. Then every
registered result must be intact and unchanged. From time to time a search runs to its end: its exports must equal those of the same
search in a project of its own, and no file of the killed searches may be left in the project or the cache.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from proteoscope.engine.project import Project
from proteoscope.engine.project.index_store import VARIABLE
from tests.fuzz.forks import ForkedCommand, prepare

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = REPOSITORY / "resources" / "samples"
SPECTRA, DATABASE = SAMPLES / "Ecoli_MS2_small.mzML.gz", SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
QUERY = ">query\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVKLVNELTEFAK\n"
BETWEEN = 20  # kills between two undisturbed searches
_EXPORTS = ("psms.tsv", "peptides.tsv", "proteins.tsv")


class Place:
    """A project with a cache and a temporary folder of its own."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.database = database
        self.project, self.cache, self.temporary = folder / "project", folder / "cache", folder / "temporary"
        self.query, self.hits = folder / "query.fasta", folder / "hits.tsv"
        self.temporary.mkdir(parents=True)
        self.query.write_text(QUERY)

    def start(self, kind: str, variant: int) -> ForkedCommand:
        """Start a search; `variant` makes another index of `identify`, another result of `align`."""
        if kind == "identify":
            options = ["--preset", "low-resolution", "--set", f"maximum_mass={5000 + variant}", "--set", f"second_pass={bool(variant % 2)}"]
            arguments = ["identify", str(SPECTRA), "--database", str(self.database), "--out", str(self.project), *options]
        else:
            options = ["--gap-open", str(9 + variant % 4), "--project", str(self.project)]
            arguments = ["align", str(self.query), str(self.database), "--out", str(self.hits), *options]
        environment = {**os.environ, "PROTEOSCOPE_CACHE": str(self.cache), "TMPDIR": str(self.temporary)}
        return ForkedCommand([*arguments, "--device", "cpu", "--threads", "2", "--quiet"], environment)

    def search(self, kind: str, variant: int) -> dict[str, bytes]:
        """Search to the end and return the exports."""
        process = self.start(kind, variant)
        output, errors = process.communicate()
        assert (process.returncode, output, errors) == (0, "", ""), f"{kind} ended with {process.returncode}: {output}{errors}"
        if kind == "align":
            return {"hits.tsv": self.hits.read_bytes()}
        return {name: (self.project / "exports" / name).read_bytes() for name in _EXPORTS}

    def registered(self) -> dict[Path, bytes]:
        """Return the results of the project, after checking each against its registration."""
        if not (self.project / "project.sqlite").exists():
            return {}
        project = Project.open(self.project)
        assert project.problems == (), project.problems
        assert project.verify() == [], project.verify()
        return {result.path: result.path.read_bytes() for result in project.results()}

    def leftovers(self) -> list[str]:
        """Return the files of killed searches, without those that the next search of the same kind removes."""
        project = Project.open(self.project)
        done = {run.id for run in project.runs() if run.status == "done"}
        unfinished = [run.id for run in project.runs() if run.status in ("queued", "running")]
        assert not unfinished, f"runs without a process: {unfinished}"
        leftovers = [str(path) for path in (self.project / "results").iterdir() if path.name not in done]
        leftovers += [
            str(path) for path in self.project.rglob("*") if path.name.endswith((".partial", ".lock")) and path.name != "project.lock"
        ]
        # A temporary file next to its target is recognised by its name.
        leftovers += [str(path) for path in self.cache.rglob("*") if path.name.startswith(".")]
        return leftovers


def run(n: int, seed: int, folder: Path, database: Path = DATABASE) -> tuple[int, int]:
    """Kill `n` searches.

    Returns
    -------
    tuple
        Number of searches that were still running when killed, and the maximum number of files left in the temporary folder.
    """
    chance = random.Random(seed)
    place, alone = Place(folder / "together", database), dict[tuple[str, int], dict[str, bytes]]()
    os.environ[VARIABLE] = str(place.cache)  # the cache has the checkpoints
    seconds, n_at_work, retained = {}, 0, {}
    for kind in ("identify", "align"):
        prepare(kind)
        began = time.monotonic()
        alone[kind, 0] = place.search(kind, 0)  # before any kill
        seconds[kind] = time.monotonic() - began
    for number in range(n):
        kind, variant = chance.choice(["identify", "identify", "align"]), number // 5
        process = place.start(kind, variant)
        time.sleep(chance.uniform(0.1, 1.1) * seconds[kind])
        n_at_work += process.poll() is None
        process.kill()
        process.communicate()
        now = place.registered()
        assert all(now.get(path) == content for path, content in retained.items()), f"kill {number} of {kind}: a result was lost or changed"
        retained = now
        if (number + 1) % BETWEEN == 0 or number + 1 == n:
            for kind in ("identify", "align"):
                key = kind, variant % 4 if kind == "align" else variant
                if key not in alone:
                    project = folder / f"alone-{len(alone)}"
                    alone[key] = Place(project, database).search(kind, variant)
                assert place.search(kind, variant) == alone[key], f"after kill {number}, {kind} exports something else"
            retained = place.registered()
            left = place.leftovers()
            assert not left, f"after kill {number}: {left}"
            print(f"{number + 1} kills, {n_at_work} of searches at work, {len(retained)} files registered", flush=True)
    return n_at_work, len(list(place.temporary.iterdir()))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=500, help="kills (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as folder:
        n_at_work, n_left = run(options.n, options.seed, Path(folder))
    print(f"{options.n} kills, {n_at_work} of searches at work; {n_left} left in the temporary folder")
    return 0


if __name__ == "__main__":
    sys.exit(main())

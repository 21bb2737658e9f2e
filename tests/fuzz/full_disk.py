"""Searches that meet a full disk: of the project, the cache, the temporary folder, the compiled kernels. Only root can mount such disks.

    python -m tests.fuzz.full_disk [SIZES] [--places project cache temporary numba]

Each place in turn, or several together (``cache+temporary``), is on a small disk, in SIZES steps from no space to a few megabytes. The
search succeeds, or ends with 2 and one line; the results that were registered before are intact; with more space, the next search
succeeds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from proteoscope.engine.project import Project
from tests.fuzz.forks import run_forked
from tests.fuzz.kills import QUERY, REPOSITORY, SPECTRA
from tests.searching import few_proteins

PLACES = ("project", "cache", "temporary", "numba")
_MAXIMUM_SPACE = 2_000_000
_PAGE = 4096


def can_mount() -> bool:
    """True if a small disk can be mounted here."""
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", folder], capture_output=True).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
        return True


@contextmanager
def disk(folder: Path, n_bytes: int) -> Iterator[None]:
    """Mount a disk of `n_bytes` at `folder`, and unmount it afterwards."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={max(_PAGE, n_bytes)},mode=0700", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def search(kind: str, folder: Path, variant: int, *, is_started: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a search whose places are folders of `folder`.

    `variant` makes another index; with `is_started` Python is started anew, not forked.
    """
    (folder / "query.fasta").write_text(QUERY)
    database = folder / f"database-{variant}.fasta"
    if not database.exists():
        database.write_text(few_proteins(folder).read_text(encoding="utf-8") + f">another{variant}\nPEPTIDEKELVISK\n")
    if kind == "identify":
        options = ["--preset", "low-resolution", "--quiet", "--out", folder / "project" / "p"]
        arguments = ["identify", SPECTRA, "--database", database, *options]
    else:
        arguments = [
            "align",
            folder / "query.fasta",
            database,
            "--out",
            folder / "hits.tsv",
            "--quiet",
            "--project",
            folder / "project" / "p",
        ]
    environment = {**os.environ, "PROTEOSCOPE_CACHE": str(folder / "cache"), "TMPDIR": str(folder / "temporary")}
    command = [*map(str, arguments), "--device", "cpu", "--threads", "2"]
    if not is_started:
        return run_forked(command, environment)
    environment["PYTHONPATH"] = str(REPOSITORY)
    if (folder / "numba").is_mount():
        environment["NUMBA_CACHE_DIR"] = str(folder / "numba")
    command = [sys.executable, "-m", "proteoscope.engine.command_line", *command]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)


def try_space(place: str, kind: str, space: int, folder: Path, good: Path) -> str:
    """Search with limited space in a place, or in each of several, and describe the end."""
    for name in PLACES:
        (folder / name).mkdir()
    used = 0
    if place == "project":
        used = sum(-(-path.stat().st_size // _PAGE) * _PAGE for path in good.rglob("*") if path.is_file()) + 8 * _PAGE
    with ExitStack() as disks:
        for name in place.split("+"):
            disks.enter_context(disk(folder / name, used + space))
        shutil.copytree(good, folder / "project" / "p")
        # At its start a program writes to all places except the project.
        done = search(kind, folder, 1, is_started=place != "project")
        what = f"{kind} with {space} bytes for the {place}"
        assert done.returncode in (0, 2), f"{what}: {done.returncode} {done.stderr[-2000:]}"
        assert done.stdout == "" and done.stderr.count("\n") == (done.returncode == 2), f"{what}: {done.stderr[-2000:]}"
        for name in place.split("+"):
            subprocess.run(["mount", "-o", f"remount,size={used + 200_000_000}", folder / name], check=True)
        project = Project.open(folder / "project" / "p")
        assert project.verify() == [] and project.runs()[0].status == "done", what
        again = search(kind, folder, 2)
        assert (again.returncode, again.stderr) == (0, ""), f"{what}, then with space: {again.stderr[-2000:]}"
        left = [str(path) for path in (folder / "cache").rglob(".*")]
        assert not left, f"{what}: {left}"
    reported = f"{what}: {done.stderr.strip() or 'done'}"
    for name in (*PLACES, "hits.tsv"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return reported


def run(n_sizes: int, places: tuple[str, ...], folder: Path) -> list[str]:
    """Run both searches at `n_sizes` sizes of each place and describe the end of each."""
    (folder / "temporary").mkdir()
    (folder / "project").mkdir()
    made = search("identify", folder, 0)
    assert made.returncode == 0, made.stderr
    good = folder / "good"
    (folder / "project" / "p").rename(good)
    for name in ("temporary", "project", "cache"):
        shutil.rmtree(folder / name)
    reported = []
    for place in places:
        for step in range(n_sizes):
            for kind in ("identify", "align"):
                reported.append(try_space(place, kind, int(_MAXIMUM_SPACE * (step / n_sizes) ** 3), folder, good))
                print(reported[-1].replace(str(folder), ""), flush=True)
    return reported


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="?", type=int, default=30, help="sizes of each disk (default: %(default)s)")
    parser.add_argument("--places", nargs="+", default=PLACES)
    options = parser.parse_args()
    if not can_mount():
        print("a small disk cannot be mounted here: that takes root's rights")
        return 1
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as folder:
        reported = run(options.sizes, tuple(options.places), Path(folder))
    print(f"{len(reported)} searches, {sum(not outcome.endswith(': done') for outcome in reported)} of them reported a full disk")
    return 0


if __name__ == "__main__":
    sys.exit(main())

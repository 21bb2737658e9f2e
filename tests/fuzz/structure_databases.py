"""Structure databases that were changed, and builds that are killed, run simultaneously or meet a full disk.

    python -m tests.fuzz.structure_databases [N] [--seed SEED]

Files of a database are changed N times, in every way (bytes, length, numbers, links): it opens as a valid database, or is rejected in one
sentence. Builds are killed at any moment: the database is the previous or the new one, and the next build gives the result of an
uninterrupted build.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gemmi
import numpy as np

from proteoscope.engine.errors import InputError
from proteoscope.engine.structure_search.hit_chains import HitChains, write_hit
from proteoscope.engine.structure_search.structures import DATABASE_FILE
from proteoscope.engine.structures.building import build_database
from proteoscope.engine.structures.chains import RESIDUE_COLUMNS
from proteoscope.engine.structures.database import StructureDatabase, open_database
from proteoscope.engine.structures.reading import read_structure
from tests.engine.structures.examples import as_pdb, atoms_of, helix
from tests.fuzz.forks import ForkedCommand, prepare, run_forked

REPOSITORY = Path(__file__).resolve().parents[2]
HUGE = 2**62

Change = Callable[[Path, random.Random], None]


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 3, 30])):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)


def _flip_head(path: Path, chance: random.Random) -> None:
    """Change the header of a column, which has its type and shape."""
    data = bytearray(path.read_bytes())
    data[chance.randrange(min(len(data), 128))] = chance.choice(b"0123456789-,()'<>|fiuOVSx\x00\xff")
    path.write_bytes(data)


def _cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))])


def _lengthen(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(chance.choice([1, 8, 4096])))


def _remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def _link(path: Path, chance: random.Random) -> None:
    outside = path.parents[2] / "outside"
    shutil.move(path, outside)
    path.symlink_to(outside)


def _link_to_device(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _folder(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _extreme(path: Path, chance: random.Random) -> None:
    if path.suffix != ".npy":
        for number in ("1", "3", "30"):
            path.write_text(path.read_text().replace(number, str(chance.choice([HUGE, -1, "1e999", "[[" * 50_000]))))
        return
    column = np.load(path)
    limits = np.finfo(column.dtype) if column.dtype.kind == "f" else np.iinfo(column.dtype)
    odd = (
        [limits.min, limits.max]
        if column.dtype.kind == "f"
        else [limits.min, limits.max, *(n for n in (0, 1, 10, 34, 39, 127, 200) if n <= limits.max)]
    )
    column[chance.randrange(len(column)) if len(column) else slice(0)] = chance.choice(odd)
    np.save(path, column)


CHANGES: tuple[Change, ...] = (_flip, _flip_head, _cut, _lengthen, _remove, _link, _link_to_device, _folder, _extreme)


def structures(folder: Path, n: int) -> Path:
    """Create a folder with `n` files of one chain each, and an unreadable file."""
    folder.mkdir()
    for number in range(n):
        (folder / f"s{number}.pdb").write_bytes(as_pdb(atoms_of(helix(8 + number % 9))))
    (folder / "broken.cif").write_bytes(b"data_x\nloop_\n_atom_site.id\n")
    return folder


def content(database: StructureDatabase) -> tuple[object, ...]:
    """Return the content of a database."""
    chains = database.chains
    return chains.names, chains.descriptions, chains.offsets.tobytes(), *(getattr(chains, name).tobytes() for name in RESIDUE_COLUMNS)


def superposed(database: StructureDatabase, files: Path, folder: Path, chance: random.Random) -> None:
    """Check that a chain of a database is found again as that of a hit, and that another program reads its superposition onto a query."""
    shutil.rmtree(folder, ignore_errors=True)
    query_file = files / "s0.pdb"
    query = read_structure(query_file).chains
    hits = HitChains([("queries", query_file), ("database", database.folder / DATABASE_FILE)])
    i = chance.randrange(len(database.chains))
    target = hits.target(database.chains.names[i], database.chains.sequence(i), i)
    n = min(len(query.sequence(0)), len(database.chains.sequence(i)))
    row = {
        "rotation": np.eye(3).ravel().tolist(),
        "translation": "1.0,2.0,3.0",
        "tm_score_query": 0.5,
        "tm_score_target": 0.5,
        "rmsd": 1.0,
        "cigar": f"{n}M{len(query.sequence(0)) - n}I{len(database.chains.sequence(i)) - n}D",
    }
    written, _ = write_hit(folder, hits.query(query.names[0], query.sequence(0)), target, row)
    for path in written:
        if path.suffix in (".cif", ".pdb"):
            assert gemmi.read_structure(str(path))[0].count_atom_sites() > 0
    # The list of skipped files is readable for any file.
    assert all(len(row) == 3 for row in database.skipped)


def change(n: int, seed: int, folder: Path) -> int:
    """Change a database `n` times and return the number of rejected ones."""
    chance, n_refused = random.Random(seed), 0
    files = structures(folder / "files", 6)
    good = folder / "good"
    build_database([files], good, processes=1)
    names = sorted(str(path.relative_to(good)) for path in good.rglob("*") if path.is_file() and path.suffix in (".npy", ".json"))
    changed = folder / "changed"
    shutil.copytree(good, changed)
    for number in range(n):
        name, way = names[number % len(names)], CHANGES[(number // len(names)) % len(CHANGES)]
        way(changed / name, chance)
        try:
            database = open_database(changed)
            # An opened database must be usable: each chain is read to its end.
            assert all(len(database.chains.sequence(i)) == n for i, n in enumerate(database.chains.lengths.tolist()))
            assert np.isfinite(database.chains.position).all() and "\0" not in "".join(database.chains.names)
            superposed(database, files, folder / "superposed", chance)
        except InputError as error:
            n_refused += 1
            assert "\n" not in str(error) and len(str(error)) < 2000, f"{name}, {way.__name__}: {error}"
            del error
        if way is _folder:
            (changed / name).rmdir()
        (changed / name).unlink(missing_ok=True)
        shutil.copy2(good / name, changed / name)
        (folder / "outside").unlink(missing_ok=True)
    return n_refused


def arguments(files: Path, database: Path) -> list[str]:
    """Return the arguments of a build."""
    return ["structure-database", "build", str(files), "--out", str(database)]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a build, with its folders."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder)}


def kill(n: int, seed: int, folder: Path, *, n_files: int = 1200) -> int:
    """Kill `n` builds, each of a database that has just lost a file, and return how many were still running then."""
    chance, n_at_work = random.Random(seed), 0
    files, database = structures(folder / "files", n_files), folder / "database"
    prepare("structure-database")
    began = time.monotonic()
    done = run_forked(arguments(files, folder / "timed"), environment(folder))
    assert done.returncode == 0, done.stderr
    seconds = time.monotonic() - began
    before: tuple[object, ...] | None = None
    alone = dict[int, tuple[object, ...]]()  # content of an undisturbed build by number of files; each time another file is missing
    for number in range(n):
        if number % 3 == 1:
            next(path for path in files.iterdir() if path.suffix == ".pdb").unlink()
        process = ForkedCommand(arguments(files, database), environment(folder))
        time.sleep(chance.uniform(0.2, 1.0) * seconds)
        n_at_work += process.poll() is None
        process.kill()
        process.communicate()
        if before is not None:
            now = content(open_database(database))
            names = now[0]
            assert isinstance(names, tuple)
            assert now == before or len(names) == len(list(files.glob("*.pdb"))), "a killed build left another database"
        if number % 2 or number + 1 == n:
            done = run_forked(arguments(files, database), environment(folder))
            assert done.returncode == 0, done.stderr
            before = content(open_database(database))
            n_here = len(list(files.iterdir()))
            if n_here not in alone:
                alone[n_here] = content(build_database([files], folder / f"alone-{n_here}", processes=1))
            assert before == alone[n_here], "built after a kill, it is another"
            left = [path.name for path in database.iterdir() if path.name.startswith(".") or path.name == "parts"]
            assert not left and len(list(database.glob("columns-*"))) == 1, left
    return n_at_work


def build_simultaneously(folder: Path, *, n_files: int = 300) -> list[str]:
    """Run two builds of one database simultaneously and return their standard errors.

    One builds it; the other builds it afterwards or reports the first.
    """
    files, database = structures(folder / "files", n_files), folder / "database"
    command = [sys.executable, "-m", "proteoscope.engine.command_line", *arguments(files, database)]
    both = [
        subprocess.Popen(command, cwd=REPOSITORY, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    errors = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) in ([0, 0], [0, 2]), errors
    assert len(open_database(database).chains) == n_files
    return errors


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=500, help="changes, and a twentieth of it kills (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as place:
        folders = [Path(place, name) for name in ("changed", "killed", "at-once")]
        for folder in folders:
            folder.mkdir()
        print(f"{options.n} changes, {change(options.n, options.seed, folders[0])} of them refused", flush=True)
        n_kills = max(1, options.n // 20)
        print(f"{n_kills} kills, {kill(n_kills, options.seed, folders[1])} of builds at work", flush=True)
        build_simultaneously(folders[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())

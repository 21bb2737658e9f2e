"""An index is opened again only when it is exactly what was built; anything else counts as absent."""

import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from engine.errors import StorageError
from engine.project.index_store import IndexStore

PARTS = {"database": "00ff", "parameters": {"enzyme": "Trypsin"}, "format": 3}
KEY = IndexStore.key(PARTS)


def build(store: IndexStore, parts: dict = PARTS, *, size: int = 1000) -> Path:
    key = store.key(parts)
    with store.build(key, parts) as folder:
        np.save(folder / "masses.npy", np.arange(size, dtype=np.float64))
        (folder / "deep").mkdir()
        (folder / "deep" / "empty.bin").touch()
    return store.path(key)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_built_is_opened_again(tmp_path):
    store = IndexStore(tmp_path / "indexes", "peptides")
    assert store.open(KEY) is None
    built = build(store)
    assert built == tmp_path / "indexes" / f"peptides-{KEY}"
    assert IndexStore(tmp_path / "indexes", "peptides").open(KEY) == built
    masses = np.load(built / "masses.npy", mmap_mode="r")
    assert masses[-1] == 999
    assert names(tmp_path / "indexes") == [built.name]
    assert json.loads((built / "manifest.json").read_text())["parts"] == PARTS


def test_other_parts_are_another_index(tmp_path):
    store = IndexStore(tmp_path)
    build(store)
    for changed in ({**PARTS, "database": "00fe"}, {**PARTS, "format": 4}, {**PARTS, "parameters": {"enzyme": "Lys-C"}}):
        assert store.open(store.key(changed)) is None
    with pytest.raises(ValueError, match="key does not belong"), store.build(KEY, {"database": "other"}):
        pass


def flip_a_bit(folder: Path) -> None:
    data = bytearray((folder / "masses.npy").read_bytes())
    data[4321] ^= 4
    (folder / "masses.npy").write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        lambda folder: os.truncate(folder / "masses.npy", 500),
        lambda folder: (folder / "masses.npy").unlink(),
        lambda folder: (folder / "deep" / "empty.bin").unlink(),
        lambda folder: (folder / "stranger.bin").touch(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("{"),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe"),
        lambda folder: (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace("Trypsin", "Lys-C")),
        lambda folder: (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace('"format": 1', '"format": 0')),
    ],
)
def test_a_damaged_index_is_absent_and_is_built_anew(tmp_path, damage):
    store = IndexStore(tmp_path)
    damage(build(store))
    assert store.open(KEY) is None
    build(store)
    assert store.open(KEY) is not None
    assert len(names(tmp_path)) == 1


def test_zeroed_pages_are_seen(tmp_path):
    """What a crash leaves of a file whose pages had not reached the disk."""
    store = IndexStore(tmp_path)
    folder = build(store, size=100_000)
    with (folder / "masses.npy").open("r+b") as file:
        file.seek(4096 * 7)
        file.write(bytes(4096))
    assert store.open(KEY) is None


def test_a_build_that_fails_leaves_nothing(tmp_path):
    store = IndexStore(tmp_path)
    with pytest.raises(RuntimeError, match="broke"), store.build(KEY, PARTS) as folder:
        (folder / "half.bin").write_bytes(b"half")
        raise RuntimeError("broke")
    assert names(tmp_path) == []
    assert store.open(KEY) is None


def test_the_second_of_two_builders_gives_way(tmp_path):
    store = IndexStore(tmp_path)
    with store.build(KEY, PARTS) as slow:
        (slow / "who").write_text("slow")
        with store.build(KEY, PARTS) as fast:
            (fast / "who").write_text("fast")
    assert (store.path(KEY) / "who").read_text() == "fast"
    assert store.open(KEY) is not None
    assert len(names(tmp_path)) == 1


def test_what_a_killed_builder_left_is_swept_and_a_living_one_is_not_disturbed(tmp_path):
    script = textwrap.dedent("""
        import sys
        from engine.project.index_store import IndexStore
        parts = {"of": sys.argv[2]}
        with IndexStore(sys.argv[1]).build(IndexStore.key(parts), parts) as folder:
            (folder / "half.bin").write_bytes(b"half")
            print("building", flush=True)
            sys.stdin.readline()
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    builders = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for name in ("killed", "living")
    ]
    for builder in builders:
        assert builder.stdout.readline() == "building\n"
    assert sum(path.is_dir() for path in tmp_path.iterdir()) == 2
    builders[0].kill()
    builders[0].communicate()
    store = IndexStore(tmp_path)
    build(store)
    assert sum(path.is_dir() for path in tmp_path.iterdir()) == 2, "the leftover is gone; the index and the living builder's folder stay"
    builders[1].communicate("\n")
    assert builders[1].returncode == 0
    assert store.open(store.key({"of": "living"})) is not None
    assert len(names(tmp_path)) == 2


def test_beyond_the_limit_those_unused_for_longest_go(tmp_path):
    store = IndexStore(tmp_path, byte_limit=30_000, grace_seconds=0.0)
    folders = []
    for i in range(3):
        folders.append(build(store, {"i": i}))
        long_ago = time.time() - 1000 + i
        os.utime(folders[-1] / "manifest.json", (long_ago, long_ago))
    assert store.open(store.key({"i": 0})) is not None  # now it is the last used
    folders.append(build(store, {"i": 3}))
    assert [folder.exists() for folder in folders] == [True, False, True, True]


def test_one_in_use_stays_whatever_the_limit(tmp_path):
    store = IndexStore(tmp_path, byte_limit=1)
    first, second = build(store, {"i": 0}), build(store, {"i": 1})
    assert first.exists()
    assert second.exists()


def _build_many(folder: str, results: multiprocessing.Queue) -> None:
    store = IndexStore(folder)
    for i in range(10):
        build(store, {"i": i})
        results.put(store.open(store.key({"i": i})) is not None)


def test_processes_that_build_the_same_at_once_all_find_it_whole(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_build_many, args=(str(tmp_path), results)) for _ in range(2)]
    for process in processes:
        process.start()
    assert all(results.get(timeout=60) for _ in range(20))
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(names(tmp_path)) == 10


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file"), IndexStore(tmp_path / "file" / "indexes").build(KEY, PARTS):
        pass


def test_300_megabytes_are_verified_quickly(tmp_path):
    store = IndexStore(tmp_path)
    with store.build(KEY, PARTS) as folder:
        for i in range(3):
            np.random.default_rng(i).integers(0, 256, 100 << 20, dtype=np.uint8).tofile(folder / f"{i}.bin")
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        assert store.open(KEY) is not None
        seconds.append(time.perf_counter() - began)
    # 0.05 s on an idle machine of two cores; the bound leaves room for a busy one.
    assert min(seconds) < 0.4

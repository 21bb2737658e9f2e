"""An index is opened again only if it is exactly as built; anything else counts as absent."""

import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import StorageError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import index_store
from proteoscope.engine.project.index_store import IndexStore, open_column, require
from tests.leftovers import leave_file, leave_folder

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


def test_index_store_opens_a_built_index(tmp_path):
    store = IndexStore(tmp_path / "indexes", "peptides")
    assert store.open(KEY) is None
    built = build(store)
    assert built == tmp_path / "indexes" / f"peptides-{KEY}"
    assert IndexStore(tmp_path / "indexes", "peptides").open(KEY) == built
    masses = np.load(built / "masses.npy", mmap_mode="r")
    assert masses[-1] == 999
    assert names(tmp_path / "indexes") == [built.name]
    assert json.loads((built / "manifest.json").read_text())["parts"] == PARTS


def test_index_store_opens_no_index_with_another_key(tmp_path):
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
        lambda folder: (folder / "other.bin").touch(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("{"),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe"),
        lambda folder: (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace("Trypsin", "Lys-C")),
        lambda folder: (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace('"format": 1', '"format": 0')),
    ],
)
def test_index_store_rebuilds_a_damaged_index(tmp_path, damage):
    store = IndexStore(tmp_path)
    damage(build(store))
    assert store.open(KEY) is None
    build(store)
    assert store.open(KEY) is not None
    assert len(names(tmp_path)) == 1


def test_index_store_detects_zeroed_pages(tmp_path):
    """Truncate a file as after a crash, when its pages had not reached the disk."""
    store = IndexStore(tmp_path)
    folder = build(store, size=100_000)
    with (folder / "masses.npy").open("r+b") as file:
        file.seek(4096 * 7)
        file.write(bytes(4096))
    assert store.open(KEY) is None


def test_failed_index_build_leaves_no_files(tmp_path):
    store = IndexStore(tmp_path)
    with pytest.raises(RuntimeError, match="broke"), store.build(KEY, PARTS) as folder:
        (folder / "half.bin").write_bytes(b"half")
        raise RuntimeError("broke")
    assert names(tmp_path) == []
    assert store.open(KEY) is None


def test_index_store_retains_the_first_of_two_finished_builds(tmp_path):
    store = IndexStore(tmp_path)
    with store.build(KEY, PARTS) as slow:
        (slow / "who").write_text("slow")
        with store.build(KEY, PARTS) as fast:
            (fast / "who").write_text("fast")
    assert (store.path(KEY) / "who").read_text() == "fast"
    assert store.open(KEY) is not None
    assert len(names(tmp_path)) == 1


def test_index_store_removes_only_folders_of_killed_builders(tmp_path):
    script = textwrap.dedent("""
        import sys
        from proteoscope.engine.project.index_store import IndexStore
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
    assert sum(path.is_dir() for path in tmp_path.iterdir()) == 2, (
        "the leftover is removed; the index and the folder of the running builder remain"
    )
    builders[1].communicate("\n")
    assert builders[1].returncode == 0
    assert store.open(store.key({"of": "living"})) is not None
    assert len(names(tmp_path)) == 2


def test_evict_removes_least_recently_used_index_above_limit(tmp_path):
    store = IndexStore(tmp_path, byte_limit=30_000, grace_seconds=0.0)
    folders = []
    for i in range(3):
        folders.append(build(store, {"i": i}))
        long_ago = (folders[-1] / "manifest.json").stat().st_mtime - 1000 + i
        os.utime(folders[-1] / "manifest.json", (long_ago, long_ago))
    assert store.open(store.key({"i": 0})) is not None  # Now it is the most recently used.
    folders.append(build(store, {"i": 3}))
    assert [folder.exists() for folder in folders] == [True, False, True, True]


def test_evict_retains_index_in_use(tmp_path):
    store = IndexStore(tmp_path, byte_limit=1)
    first, second = build(store, {"i": 0}), build(store, {"i": 1})
    assert first.exists()
    assert second.exists()


def _build_many(folder: str, results: multiprocessing.Queue) -> None:
    store = IndexStore(folder)
    for i in range(10):
        build(store, {"i": i})
        results.put(store.open(store.key({"i": i})) is not None)


def test_concurrent_index_builders_open_a_complete_index(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_build_many, args=(str(tmp_path), results)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert all(results.get() for _ in range(20))
    assert len(names(tmp_path)) == 10


def test_index_store_rejects_folder_that_cannot_be_created(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file"), IndexStore(tmp_path / "file" / "indexes").build(KEY, PARTS):
        pass


def test_index_store_verifies_each_byte_once_in_parallel_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(index_store, "_CHUNK", 1 << 16)
    store = IndexStore(tmp_path)
    with store.build(KEY, PARTS) as folder:
        for i in range(3):
            np.random.default_rng(i).integers(0, 256, (5 << 16) - i, dtype=np.uint8).tofile(folder / f"{i}.bin")
    looked_at = []

    class Noting:
        @staticmethod
        def crc32(content):
            looked_at.append((len(content), threading.get_ident()))
            return zlib.crc32(content)

    monkeypatch.setattr(index_store, "zlib", Noting)
    assert store.open(KEY) is not None
    assert sum(size for size, _ in looked_at) == 3 * (5 << 16) - 3
    assert len(looked_at) == 15
    assert all(thread != threading.get_ident() for _, thread in looked_at)


def test_index_types_share_folder_size_limit_and_clean_up(tmp_path):
    peptides, sequences = (IndexStore(tmp_path, kind, byte_limit=12_000, grace_seconds=0.0) for kind in ("peptides", "sequences"))
    first = build(peptides)
    os.utime(first / "manifest.json", (0, 0))
    leave_folder(peptides.path(KEY))
    leave_file(sequences.path(KEY)).unlink()
    (tmp_path / "notes.txt").write_text("somebody's own")
    second = build(sequences)
    assert names(tmp_path) == sorted([second.name, "notes.txt"]), "16 kB are too many, and the leftover is removed"
    assert [(index.kind, index.folder) for index in peptides.indexes()] == [("sequences", second)]


def test_index_store_lists_and_clears_indexes_by_type(tmp_path):
    peptides, sequences = IndexStore(tmp_path, "peptides"), IndexStore(tmp_path, "sequences")
    with peptides.build(KEY, PARTS, title="a.fasta, Trypsin") as folder:
        (folder / "a.npy").write_bytes(bytes(1000))
    build(sequences)
    os.utime(peptides.path(KEY) / "manifest.json", (10**9, 10**9))
    listed = peptides.indexes()
    assert [(sequence.kind, sequence.title) for sequence in listed] == [("sequences", ""), ("peptides", "a.fasta, Trypsin")]
    assert listed[1].used.timestamp() == 10**9
    assert listed[1].bytes == 1000 + (peptides.path(KEY) / "manifest.json").stat().st_size
    assert [index.kind for index in peptides.clear("sequences")] == ["sequences"]
    assert [index.kind for index in peptides.clear()] == ["peptides"]
    assert names(tmp_path) == [] and peptides.indexes() == []


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_index_store_removes_a_link_without_following_the_link(tmp_path):
    store = IndexStore(tmp_path / "cache", "peptides")
    build(store).rename(tmp_path / "elsewhere")
    store.path(KEY).symlink_to(tmp_path / "elsewhere")
    assert store.open(KEY) is None
    build(store)
    assert store.open(KEY) is not None and not store.path(KEY).is_symlink()
    assert (tmp_path / "elsewhere" / "masses.npy").exists()
    assert names(tmp_path / "cache") == [store.path(KEY).name]


def test_index_store_rebuilds_a_rejected_index(tmp_path):
    store, built = IndexStore(tmp_path, "peptides"), []

    def make(folder):
        (folder / "a.npy").write_bytes(b"good")
        built.append(folder)

    def load(folder):
        require((folder / "a.npy").read_bytes() == b"good", "is not good")
        return "loaded"

    received = []
    progress = Progress(lambda event: received.append(event.message))
    assert store.get(PARTS, "", make, load, progress) == "loaded"
    assert store.get(PARTS, "", make, load, progress) == "loaded"
    assert len(built) == 1 and received == []
    (store.path(KEY) / "a.npy").write_bytes(b"evil")
    manifest = json.loads((store.path(KEY) / "manifest.json").read_text())
    manifest["files"][0]["crc32"] = [zlib.crc32(b"evil")]
    (store.path(KEY) / "manifest.json").write_text(json.dumps(manifest))
    assert store.open(KEY) is not None, "its checksums are correct"
    assert store.get(PARTS, "", make, load, progress) == "loaded"
    assert len(built) == 2 and "is not good" in received[0]


def test_index_store_reports_truncated_write_as_full_disk(tmp_path):
    def cut(folder):
        raise OSError("1000000 requested and 4096 written")

    with pytest.raises(StorageError, match="the disk is full"):
        IndexStore(tmp_path, "peptides").get(PARTS, "", cut, Path, Progress())
    assert names(tmp_path) == []


def test_empty_index_column_is_read_only(tmp_path):
    """Check that the empty column is read-only too, since kernels are compiled separately for writable arrays."""
    for n in (0, 3):
        np.save(tmp_path / "column.npy", np.arange(n))
        assert not open_column(tmp_path / "column.npy", np.int64).flags.writeable


@pytest.mark.parametrize("used", [0, 253402300799, 1 << 40, 4300000000])
def test_evict_removes_indexes_with_invalid_dates(tmp_path, used):
    store = IndexStore(tmp_path, byte_limit=1)
    other = {**PARTS, "database": "11ff"}
    dated = build(store, other)
    try:
        os.utime(dated / "manifest.json", (used, used))
    except OSError:
        pytest.skip("the disk has no such times")
    assert all(index.used.astimezone() for index in store.indexes())
    index = build(store)
    assert names(tmp_path) == [index.name]

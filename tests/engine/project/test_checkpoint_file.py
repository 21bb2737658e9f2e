"""Checkpoints are read back unchanged; damage loses records and never changes rows."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from proteoscope.engine.errors import StorageError
from proteoscope.engine.project import checkpoint_file
from proteoscope.engine.project.checkpoint_file import CheckpointFile, CheckpointHeader, is_in_use, journal, read_header

HEADER = CheckpointHeader(Path("/projects/a"), "toy-0001", {"kind": "toy", "files": [["spectra", "a.mzML", "00"]]})
ROWS: dict[str, NDArray] = {
    "score": np.linspace(0, 1, 12).reshape(4, 3),
    "number": np.arange(4, dtype=np.int32),
    "is_good": np.array([True, False, True, True]),
    "nothing": np.zeros((4, 0)),
}
STATE = "ab" * 32
ALL = [("round 0", 0, 4), ("round 1", 4, 8), ("round 2", 8, 12)]
REPOSITORY = Path(__file__).resolve().parents[3]


def write(path: Path, n: int = 3) -> Path:
    file = CheckpointFile.create(path, HEADER)
    for number in range(n):
        file.append(f"round {number}", 4 * number, 4 * number + 4, ROWS)
    file.store_state(STATE, {"labels": np.arange(3)})
    file.store_state(STATE, {"labels": np.arange(5)})
    file.flush()
    file.close()
    return path


def readable(path: Path) -> list[tuple[str, int, int]]:
    """Return the reusable partitions, after comparing each with the written one."""
    file = CheckpointFile.open(path)
    if file is None:
        return []
    records = []
    for partition in file.partitions:
        rows = file.rows(partition)
        if rows is not None:
            assert set(rows) == set(ROWS)
            for name, column in rows.items():
                assert column.dtype == ROWS[name].dtype and column.flags.writeable
                np.testing.assert_array_equal(column, ROWS[name])
            records.append(partition[1:])
    file.close()
    return records


def test_checkpoint_file_round_trips_and_accepts_more_records(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite")
    assert read_header(path) == HEADER
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.sqlite"], "no journal remains"
    file = CheckpointFile.open(path)
    assert file is not None and file.header == HEADER
    state = file.state(STATE)
    assert state is not None and state["labels"].tolist() == list(range(5))
    assert file.state("cd" * 32) is None
    file.append("round 3", 12, 16, ROWS)
    file.flush()
    file.close()
    assert readable(path) == [*ALL, ("round 3", 12, 16)]


@pytest.mark.skipif(os.name != "posix", reason="file modes differ there")
def test_checkpoint_file_is_readable_only_by_its_user(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        file = CheckpointFile.create(tmp_path / "a.sqlite", HEADER)
        file.append("round", 0, 4, ROWS)
        assert {stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()} == {0o600}
        assert len(list(tmp_path.iterdir())) == 2, "the journal exists now"
        file.close()
    finally:
        os.umask(mask)


def test_corrupt_checkpoint_loses_but_never_changes_records(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite")
    content = path.read_bytes()
    n_lost = 0
    for place in [*range(120), *range(120, len(content), 61)]:
        changed = bytearray(content)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        records = readable(path)
        assert set(records) <= set(ALL)
        n_lost += len(records) < len(ALL)
        header = read_header(path)
        assert header is None or header == HEADER
    assert n_lost > 5


def test_truncated_checkpoint_never_gives_changed_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite")
    content = path.read_bytes()
    for length in range(0, len(content), 1021):
        path.write_bytes(content[:length])
        assert set(readable(path)) <= set(ALL)


def test_checkpoint_checksum_covers_the_range_of_a_partition(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE partitions SET start = 5 WHERE id = 2")
        connection.execute("UPDATE partitions SET round = 'round 1' WHERE id = 3")
        connection.commit()
    assert readable(path) == ALL[:1]


def test_killed_process_leaves_committed_checkpoint_records(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    program = (
        "import os, signal, sys; from pathlib import Path; from tests.engine.project.test_checkpoint_file import *\n"
        "file = CheckpointFile.open(write(Path(sys.argv[1])))\n"
        "for n in range(200): file.append('more', 100 + n, 101 + n, {'a': np.zeros(20000)})\n"  # This exceeds SQLite's page cache.
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(path)], env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False)
    assert killed.returncode == -9 and path.stat().st_size > 1 << 20 and journal(path).exists()
    assert read_header(path) == HEADER
    assert readable(path) == ALL


def test_checkpoint_file_rejects_a_second_writer(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite")
    program = (
        "import sys; from pathlib import Path; from tests.engine.project.test_checkpoint_file import *\n"
        "file = CheckpointFile.open(Path(sys.argv[1])); print(flush=True); sys.stdin.read(); file.append('more', 0, 4, ROWS); file.flush()"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert is_in_use(path) and read_header(path) is None
        with pytest.raises(StorageError, match="another process resumes this run"):
            CheckpointFile.open(path)
        other.communicate("")
    assert other.returncode == 0
    assert not is_in_use(path) and readable(path) == [*ALL, ("more", 0, 4)]


def test_checkpoint_file_rejects_arrays_of_objects(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite")
    file = CheckpointFile.open(path)
    assert file is not None
    with pytest.raises(TypeError):
        file.append("round", 0, 2, {"names": np.array(["a", None], object)})
    file.close()
    assert readable(path) == ALL


def test_checkpoint_file_is_limited_in_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_file, "MAXIMUM_BYTES", 4 << 20)
    file = CheckpointFile.create(tmp_path / "a.sqlite", HEADER)
    n = 0
    while file.has_space(100_000):
        file.append("round", n, n + 1, {"a": np.zeros(100_000, np.uint8)})
        n += 1
    for _ in range(50):
        file.store_state(STATE, {"a": np.zeros(100_000, np.uint8)})  # They replace one another.
    file.flush()
    file.close()
    assert 20 < n < 40 and (tmp_path / "a.sqlite").stat().st_size < 4 << 20


@pytest.mark.parametrize("what", ["folder", "text", "empty", "other database"])
def test_checkpoint_open_rejects_files_that_are_not_checkpoints(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.sqlite"
    if what == "folder":
        path.mkdir()
    elif what == "other database":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE header (a)")
    else:
        path.write_text("x" * 5000 if what == "text" else "")
    assert read_header(path) is None and CheckpointFile.open(path) is None and not is_in_use(path)


def test_checkpoint_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        CheckpointFile.create(tmp_path / "missing" / "a.sqlite", HEADER)
    assert not list(tmp_path.iterdir())

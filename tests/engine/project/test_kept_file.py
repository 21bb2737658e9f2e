"""What a run keeps in its folder is read back as it was written, and not at all where it is not what this user's program wrote."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from proteoscope.engine.project import kept_file
from proteoscope.engine.project.kept_file import PARTITIONS, KeptFile, kept_request, remove_all_but_kept
from proteoscope.engine.project.kept_records import MAXIMUM_BYTES, looks_kept
from proteoscope.engine.project.sealing import KEY_BYTES, sealing_key

REQUEST = {"kind": "toy", "files": [["spectra", "a.mzML", "00"]]}
ROWS: dict[str, NDArray] = {
    "score": np.linspace(0, 1, 12).reshape(4, 3),
    "number": np.arange(4, dtype=np.int32),
    "is_good": np.array([True, False, True, True]),
}
STATE = "ab" * 32


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))


def folder_of(tmp_path: Path, name: str = "toy-0001") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def write(folder: Path, n: int = 3) -> Path:
    kept = KeptFile.create(folder, REQUEST)
    assert kept is not None
    for number in range(n):
        kept.append(f"round {number}", 4 * number, 4 * number + 4, ROWS)
    kept.keep_state(STATE, {"labels": np.arange(5)})
    kept.close()
    return folder / PARTITIONS


def readable(folder: Path) -> list[tuple[str, int, int]]:
    """The partitions that can be used again; each of them is checked to be what was written."""
    kept = KeptFile.open(folder)
    if kept is None:
        return []
    found = []
    for record in kept.partitions:
        rows = kept.rows(record)
        if rows is not None:
            assert set(rows) == set(ROWS)
            for name, column in rows.items():
                assert column.dtype == ROWS[name].dtype
                np.testing.assert_array_equal(column, ROWS[name])
            found.append((record.header["round"], record.header["first"], record.header["end"]))
    kept.close()
    return found


ALL = [("round 0", 0, 4), ("round 1", 4, 8), ("round 2", 8, 12)]


def test_what_was_kept_is_read_back_and_more_is_kept_behind_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    write(folder)
    assert kept_request(folder) == REQUEST
    kept = KeptFile.open(folder)
    assert kept is not None
    state = kept.state(STATE)
    assert state is not None and state["labels"].tolist() == list(range(5))
    kept.append("round 3", 12, 16, ROWS)
    kept.close()
    assert readable(folder) == [*ALL, ("round 3", 12, 16)]


def test_a_file_that_is_cut_off_anywhere_gives_the_whole_records_before_and_goes_on(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    path = write(folder)
    content = path.read_bytes()
    seen = set()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        found = readable(folder)
        assert found == ALL[: len(found)]
        seen.add(len(found))
        if found:
            kept = KeptFile.open(folder)
            assert kept is not None
            kept.append("more", 20, 24, ROWS)
            kept.close()
            assert readable(folder) == [*found, ("more", 20, 24)]
    assert seen == {0, 1, 2}


def test_a_changed_byte_costs_at_least_its_record_and_never_gives_another_row(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    path = write(folder)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        assert len(readable(folder)) < len(ALL)


def test_records_of_another_run_and_of_another_user_are_not_used(tmp_path: Path) -> None:
    one, other = folder_of(tmp_path), folder_of(tmp_path, "toy-0002")
    path, second = write(one), write(other)
    first, theirs = path.read_bytes(), second.read_bytes()
    path.write_bytes(theirs)
    assert kept_request(one) is None and readable(one) == [], "a file of another run"
    ends = KeptFile.open(other)
    assert ends is not None
    begin = ends.partitions[0].begin
    ends.close()
    path.write_bytes(first[:begin] + theirs[begin:])
    assert readable(one) == [], "records of another run"
    path.write_bytes(first)
    key = tmp_path / "cache" / "resume.key"
    key.write_bytes(bytes(KEY_BYTES))
    assert kept_request(one) is None and readable(one) == [], "sealed with another key"
    assert remove_all_but_kept(one) and path.read_bytes() == first, "and yet whoever sealed them finds them again"


def test_a_state_of_another_run_or_iteration_is_not_used(tmp_path: Path) -> None:
    one, other = folder_of(tmp_path), folder_of(tmp_path, "toy-0002")
    write(one)
    write(other)
    name = f"state-{STATE}.kept"
    (one / f"state-{'cd' * 32}.kept").write_bytes((one / name).read_bytes())
    (one / name).write_bytes((other / name).read_bytes())
    kept = KeptFile.open(one)
    assert kept is not None
    assert kept.state(STATE) is None and kept.state("cd" * 32) is None and kept.state("ef" * 32) is None
    kept.close()


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are other ones there")
def test_links_pipes_folders_and_files_beyond_all_bounds_are_not_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    path = write(folder)
    real = path.rename(tmp_path / "elsewhere")
    path.symlink_to(real)
    assert not looks_kept(path) and kept_request(folder) is None and readable(folder) == []
    path.unlink()
    os.mkfifo(path)
    assert not looks_kept(path) and kept_request(folder) is None
    path.unlink()
    path.mkdir()
    assert not looks_kept(path) and kept_request(folder) is None
    path.rmdir()
    path.write_bytes(real.read_bytes())
    with path.open("r+b") as file:
        file.truncate(10 << 30)  # it takes no room
    assert path.stat().st_size > MAXIMUM_BYTES
    assert not looks_kept(path) and kept_request(folder) is None and readable(folder) == []
    assert not remove_all_but_kept(folder) and not folder.exists()


def test_only_numbers_are_kept_and_nothing_of_what_was_refused_stays(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    path = write(folder)
    size = path.stat().st_size
    kept = KeptFile.open(folder)
    assert kept is not None
    with pytest.raises(TypeError):
        kept.append("round", 0, 2, {"names": np.array(["a", None], object)})
    kept.close()
    assert path.stat().st_size == size and readable(folder) == ALL


def test_no_more_is_kept_than_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_file, "MAXIMUM_BYTES", 1 << 20)
    kept = KeptFile.create(folder_of(tmp_path), REQUEST)
    assert kept is not None
    assert kept.has_room(1000) and not kept.has_room(1 << 20)
    kept.close()


def test_without_a_place_for_the_key_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "file"))
    assert sealing_key(make=True) is None
    folder = folder_of(tmp_path)
    assert KeptFile.create(folder, REQUEST) is None and not list(folder.iterdir())

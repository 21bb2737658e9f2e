"""Commands that are killed at any moment, or meet a full disk: registered results stay intact, and the next command works."""

import os

import pytest

from proteoscope.engine.project.index_store import VARIABLE
from tests.fuzz import full_disk, killed_commands, kills, resumed_kills, workers
from tests.searching import few_proteins


@pytest.mark.skipif(os.name != "posix", reason="processes are killed differently there")
def test_killed_searches_leave_results_intact_and_no_files(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))  # which is restored afterwards
    kills.run(3, 3, tmp_path, few_proteins(tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="signals are sent in another way")
def test_files_of_killed_commands_are_removed_by_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))  # which is restored afterwards
    names = ["predict", "export", "convert", "predict-blib"]
    # Predicting the library of a thousand proteins would take most of the time.
    counts = killed_commands.run(6, 4, 2, tmp_path / "place", few_proteins(tmp_path, 200), names)
    assert counts.total() >= 3  # the others had ended


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="signals are sent in another way")
def test_next_run_removes_files_of_100_killed_commands(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    counts = killed_commands.run(100, 60, 1, tmp_path / "place", few_proteins(tmp_path))
    assert counts.total() >= 60  # the others had ended


def test_full_disk_is_reported_in_one_line_and_loses_no_results(tmp_path):
    if not full_disk.can_mount():
        pytest.skip("a small disk can only be mounted by root")
    places = ("project", "cache+temporary")
    assert len(full_disk.run(1, places, tmp_path)) == 2 * len(places)


@pytest.mark.skipif(os.name != "posix", reason="processes are killed differently there")
def test_resumed_runs_have_the_tables_of_uninterrupted_runs(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))  # which is restored afterwards
    resumed_kills.run(2, 3, tmp_path, ["identify", "k-means"], database=few_proteins(tmp_path), is_timed_again=False)


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="processes are killed differently there")
def test_resumed_runs_of_every_type_equal_uninterrupted_runs(tmp_path, monkeypatch, shared_data):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    counts = resumed_kills.run(20, 5, tmp_path, None, shared_data)
    assert counts["at work"] >= 10 and counts["resumptions"] >= 5


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="processes are killed differently there")
def test_hundred_killed_workers_do_not_change_the_results():
    _, hits = workers.fuzz(100, seed=9)
    assert hits >= 30  # these kills interrupted a partition; other workers were idle

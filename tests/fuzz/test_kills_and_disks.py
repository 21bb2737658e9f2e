"""Killed at any moment, and on disks that are full: what was registered stays whole, and what comes next works."""

import os

import pytest

from proteoscope.engine.project.cache import VARIABLE
from tests.fuzz import full_disk, killed_commands, kills, resumed_kills, workers
from tests.searching import few_proteins


@pytest.mark.skipif(os.name != "posix", reason="kills are other ones there")
def test_killed_searches_lose_nothing_mix_nothing_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))  # which is set back
    kills.run(3, 3, tmp_path, few_proteins(tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="signals are sent in another way")
def test_killed_commands_leave_nothing_after_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))  # which is set back
    names = ["predict", "export", "convert", "predict-blib"]
    # Predicting the library of a thousand proteins would take most of the time.
    counts = killed_commands.run(6, 4, 2, tmp_path / "place", few_proteins(tmp_path, 200), names)
    assert counts.total() >= 3  # the others had ended


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="signals are sent in another way")
def test_a_hundred_kills_and_sixty_signals_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    counts = killed_commands.run(100, 60, 1, tmp_path / "place", few_proteins(tmp_path))
    assert counts.total() >= 60  # the others had ended


def test_a_full_disk_is_told_in_one_line_and_costs_no_result(tmp_path):
    if not full_disk.can_mount():
        pytest.skip("a small disk can only be mounted by root")
    places = ("project", "cache+temporary")
    assert len(full_disk.run(1, places, tmp_path)) == 2 * len(places)


@pytest.mark.skipif(os.name != "posix", reason="kills are other ones there")
def test_killed_runs_that_go_on_have_the_tables_of_undisturbed_ones(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))  # which is set back
    resumed_kills.run(2, 3, tmp_path, ["identify", "k-means"], database=few_proteins(tmp_path), is_timed_again=False)


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="kills are other ones there")
def test_twenty_killed_runs_of_all_kinds_that_go_on_have_the_tables_of_undisturbed_ones(tmp_path, monkeypatch, shared_data):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    counts = resumed_kills.run(20, 5, tmp_path, None, shared_data)
    assert counts["at work"] >= 10 and counts["resumptions"] >= 5


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="kills are other ones there")
def test_a_hundred_killed_workers_change_no_row():
    _, hits = workers.fuzz(100, seed=9)
    assert hits >= 30  # of a partition at work; the others hit a worker between two

"""Matching of spectrum files between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.views.compared_items import match_files

NAMES = st.sampled_from(["a.mzML", "x/a.mzML", "a.mgf", "b.mzML", "b", "c.mzXML"])
RUNS = st.lists(st.dictionaries(NAMES, st.sampled_from(["", "1", "2", "3"]), min_size=1), min_size=1, max_size=4)


def match_numbers(*runs: Mapping[str, str]) -> Sequence[Mapping[str, int]]:
    """Return the file numbers of runs, given as file names with digests; an empty digest is unknown."""
    return match_files([list(run) for run in runs], [{name: digest for name, digest in run.items() if digest} for run in runs]).numbers


def test_match_files_matches_files_of_equal_digest_and_any_name() -> None:
    first, second = match_numbers({"a.mzML": "1", "b.mzML": "2"}, {"copy.mzML": "2"})
    assert second["copy.mzML"] == first["b.mzML"] != first["a.mzML"]


def test_match_files_compares_names_of_files_without_digests() -> None:
    first, second, third = match_numbers({"/data/a.mzML.gz": "1", "/data/b.mzML": "2"}, {"C:\\data\\b.mgf": "3"}, {"a": ""})
    assert second["C:\\data\\b.mgf"] == first["/data/b.mzML"] and third["a"] == first["/data/a.mzML.gz"]


def test_match_files_ignores_ambiguous_names() -> None:
    first, second = match_numbers({"x/a.mzML": "1", "y/a.mzML": "2"}, {"a.mzML": ""})
    assert len({*first.values(), *second.values()}) == 3


@given(RUNS)
def test_match_files_distinguishes_different_files_of_a_run(runs: list[dict[str, str]]) -> None:
    for run, numbers in zip(runs, match_numbers(*runs), strict=True):
        for name, digest in run.items():
            for other in run:
                is_same = name == other or (digest != "" and digest == run[other])
                assert (numbers[name] == numbers[other]) == is_same


@given(RUNS)
def test_match_files_always_matches_files_with_equal_digests(runs: list[dict[str, str]]) -> None:
    of_digest: dict[str, set[int]] = {}
    for run, numbers in zip(runs, match_numbers(*runs), strict=True):
        for name, digest in run.items():
            if digest:
                of_digest.setdefault(digest, set()).add(numbers[name])
    assert all(len(numbers) == 1 for numbers in of_digest.values())

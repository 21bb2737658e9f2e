"""Which spectrum files of several runs are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.views.compared_files import match_files

NAMES = st.sampled_from(["a.mzML", "x/a.mzML", "a.mgf", "b.mzML", "b", "c.mzXML"])
RUNS = st.lists(st.dictionaries(NAMES, st.sampled_from(["", "1", "2", "3"]), min_size=1), min_size=1, max_size=4)


def numbered(*runs: Mapping[str, str]) -> Sequence[Mapping[str, int]]:
    """The numbers of files that are given with their digests, where they are known."""
    return match_files([list(run) for run in runs], [{name: digest for name, digest in run.items() if digest} for run in runs]).numbers


def test_files_with_one_digest_are_the_same_whatever_their_names() -> None:
    first, second = numbered({"a.mzML": "1", "b.mzML": "2"}, {"copy.mzML": "2"})
    assert second["copy.mzML"] == first["b.mzML"] != first["a.mzML"]


def test_a_file_without_a_digest_is_the_one_of_its_name() -> None:
    first, second, third = numbered({"/data/a.mzML.gz": "1", "/data/b.mzML": "2"}, {"C:\\data\\b.mgf": "3"}, {"a": ""})
    assert second["C:\\data\\b.mgf"] == first["/data/b.mzML"] and third["a"] == first["/data/a.mzML.gz"]


def test_two_files_of_one_name_in_a_run_are_not_taken_for_others_by_it() -> None:
    first, second = numbered({"x/a.mzML": "1", "y/a.mzML": "2"}, {"a.mzML": ""})
    assert len({*first.values(), *second.values()}) == 3


@given(RUNS)
def test_two_files_of_a_run_are_never_the_same_unless_their_digests_are(runs: list[dict[str, str]]) -> None:
    for run, numbers in zip(runs, numbered(*runs), strict=True):
        for name, digest in run.items():
            for other in run:
                is_same = name == other or (digest != "" and digest == run[other])
                assert (numbers[name] == numbers[other]) == is_same


@given(RUNS)
def test_files_with_one_digest_stay_the_same(runs: list[dict[str, str]]) -> None:
    of_digest: dict[str, set[int]] = {}
    for run, numbers in zip(runs, numbered(*runs), strict=True):
        for name, digest in run.items():
            if digest:
                of_digest.setdefault(digest, set()).add(numbers[name])
    assert all(len(numbers) == 1 for numbers in of_digest.values())

"""Identification of the same spectrum file in several runs.

Files with equal digests are the same. Files with the same name without folder and extension are too, since one program reads mzML where
another reads MGF and imported results often have a name only. The exception is a run with two files of that name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath

__all__ = ["ComparedFiles", "match_files", "strip_extensions"]

_ENDINGS = (".gz", ".mzml", ".mzxml", ".mgf", ".ms2", ".dta", ".pkl", ".raw", ".d", ".wiff", ".pep", ".xml")


@dataclass(frozen=True)
class ComparedFiles:
    """Spectrum files of several runs, numbered so that equal files have equal numbers.

    Attributes
    ----------
    numbers
        For each run the number of each file, by its name in the run's tables.
    by_name
        Pairs of names that were matched by name only, each pair once.
    """

    numbers: tuple[dict[str, int], ...]
    by_name: tuple[tuple[str, str], ...]

    @property
    def n_shared(self) -> int:
        """Files that two runs have, or more."""
        return sum(n > 1 for n in Counter(number for run in self.numbers for number in set(run.values())).values())


def match_files(names: Sequence[Sequence[str]], digests: Sequence[Mapping[str, str]]) -> ComparedFiles:
    """Assign numbers to the spectrum files of runs.

    Parameters
    ----------
    names
        File names of each run as in its tables.
    digests
        Known digests of each run's files, by these names.
    """
    numbers: list[dict[str, int]] = []
    of_digest: dict[str, int] = {}
    n_files = 0
    for of_run, digest_of in zip(names, digests, strict=True):
        number_of: dict[str, int] = {}
        for name in of_run:
            digest = digest_of.get(name)
            number = n_files if digest is None else of_digest.setdefault(digest, n_files)
            n_files = max(n_files, number + 1)
            number_of[name] = number
        numbers.append(number_of)
    return _joined_by_name(numbers)


def strip_extensions(name: str) -> str:
    r"""Return the name of a spectrum file without its folder and extensions.

    >>> strip_extensions("/data/run 1.mzML.gz"), strip_extensions("C:\\data\\run 1.mgf"), strip_extensions("run 1")
    ('run 1', 'run 1', 'run 1')
    """
    stem = PureWindowsPath(PurePosixPath(name).name).name
    while (ending := next((ending for ending in _ENDINGS if stem.lower().endswith(ending) and len(stem) > len(ending)), None)) is not None:
        stem = stem[: -len(ending)]
    return stem


def _joined_by_name(numbers: list[dict[str, int]]) -> ComparedFiles:
    """Merge the numbers of files with the same name unless a run has two of them."""
    of_stem: dict[str, list[tuple[int, str]]] = {}
    for run, number in enumerate(numbers):
        for name in number:
            of_stem.setdefault(strip_extensions(name), []).append((run, name))
    by_name = []
    for named in of_stem.values():
        result = {numbers[run][name]: name for run, name in reversed(named)}
        (first, first_name), *others = reversed(result.items())
        is_ambiguous = any(len(result.keys() & set(number.values())) > 1 for number in numbers)
        for other, name in () if is_ambiguous else others:
            for names in numbers:
                names.update({file: first for file, number in names.items() if number == other})
            by_name.append((first_name, name))
    return ComparedFiles(tuple(numbers), tuple(dict.fromkeys(by_name)))

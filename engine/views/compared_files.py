"""Matching of spectrum files between several runs.

Files with equal digests are equal. Files with equal names (without folder and extension) are also considered equal, because one program
may read mzML and another MGF, and imported results often contain only names; except if a run has two files with the name.
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
    """Numbers of the spectrum files of several runs; equal files have equal numbers.

    Attributes
    ----------
    numbers
        For each run, the numbers of its files by the file names in the run's tables.
    by_name
        Pairs of file names that were matched only by name, each pair once.
    """

    numbers: tuple[dict[str, int], ...]
    by_name: tuple[tuple[str, str], ...]

    @property
    def n_shared(self) -> int:
        """Number of files that are in two or more runs."""
        return sum(n > 1 for n in Counter(number for run in self.numbers for number in set(run.values())).values())


def match_files(names: Sequence[Sequence[str]], digests: Sequence[Mapping[str, str]]) -> ComparedFiles:
    """Assign numbers to the spectrum files of runs, with equal numbers for equal files.

    Parameters
    ----------
    names
        For each run, its file names as in its tables.
    digests
        For each run, the known digests of its files by file name.
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
    """Give files with the same name the same number, unless a run has two files with the name."""
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

"""Which spectrum files of several runs are the same.

Files with the same digest are. Beside them those whose names are the same without folder and ending, since what one program read as mzML
another read as MGF, and results of other programs often tell a name alone; not where a run has two files of that name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath

__all__ = ["ComparedFiles", "match_files", "stem_of"]

_ENDINGS = (".gz", ".mzml", ".mzxml", ".mgf", ".ms2", ".dta", ".pkl", ".raw", ".d", ".wiff", ".pep", ".xml")


@dataclass(frozen=True)
class ComparedFiles:
    """The spectrum files of runs, each with a number that is the same for the same files.

    Attributes
    ----------
    numbers : for each run the number of each of its files, by the file's name in the run's tables.
    by_name : pairs of names that were taken for the same file by their names alone, each pair once.
    """

    numbers: tuple[dict[str, int], ...]
    by_name: tuple[tuple[str, str], ...]

    @property
    def n_shared(self) -> int:
        """Files that two runs have, or more."""
        return sum(n > 1 for n in Counter(number for run in self.numbers for number in set(run.values())).values())


def match_files(names: Sequence[Sequence[str]], digests: Sequence[Mapping[str, str]]) -> ComparedFiles:
    """Number the spectrum files of runs.

    Parameters
    ----------
    names : of each run's files, as its tables tell them. digests : for each run those of its files that are known, by these names.
    """
    numbers: list[dict[str, int]] = []
    of_digest: dict[str, int] = {}
    n_files = 0
    for of_run, known in zip(names, digests, strict=True):
        own: dict[str, int] = {}
        for name in of_run:
            digest = known.get(name)
            number = n_files if digest is None else of_digest.setdefault(digest, n_files)
            n_files = max(n_files, number + 1)
            own[name] = number
        numbers.append(own)
    return _joined_by_name(numbers)


def stem_of(name: str) -> str:
    r"""The name of a spectrum file without its folder and its endings.

    >>> stem_of("/data/run 1.mzML.gz"), stem_of("C:\\data\\run 1.mgf"), stem_of("run 1")
    ('run 1', 'run 1', 'run 1')
    """
    stem = PureWindowsPath(PurePosixPath(name).name).name
    while (ending := next((one for one in _ENDINGS if stem.lower().endswith(one) and len(stem) > len(one)), None)) is not None:
        stem = stem[: -len(ending)]
    return stem


def _joined_by_name(numbers: list[dict[str, int]]) -> ComparedFiles:
    """The same numbers, those of files of one name made the same where no run has two of these."""
    of_stem: dict[str, list[tuple[int, str]]] = {}
    for run, own in enumerate(numbers):
        for name in own:
            of_stem.setdefault(stem_of(name), []).append((run, name))
    by_name = []
    for named in of_stem.values():
        found = {numbers[run][name]: name for run, name in reversed(named)}
        (first, first_name), *others = reversed(found.items())
        is_ambiguous = any(len(found.keys() & set(own.values())) > 1 for own in numbers)
        for other, name in () if is_ambiguous else others:
            for own in numbers:
                own.update({one: first for one, number in own.items() if number == other})
            by_name.append((first_name, name))
    return ComparedFiles(tuple(numbers), tuple(dict.fromkeys(by_name)))

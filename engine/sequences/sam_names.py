"""Names of sequences as SAM allows them (Sequence Alignment/Map Format Specification 1.6, section 1.2.1)."""

from __future__ import annotations

import re
from itertools import chain, count, repeat

import numpy as np
from numpy.typing import NDArray

from engine.arrays import Texts

__all__ = ["LONGEST_READ_NAME", "SamNames"]

LONGEST_READ_NAME = 254
"""Of what is aligned; those of what it is aligned with may be of any length."""
_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z!#$%&+./:;?@^_|~*=-]")


class SamNames:
    """Names as SAM allows them, one for each sequence: where several would have one name, all but the first are told by their place."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def names(self, indexes: NDArray[np.integer], accessions: Texts) -> list[str]:
        """The names of the sequences at places in the files."""
        _, first = np.unique(indexes, return_index=True)
        first = np.sort(first)
        found = dict(zip(indexes[first].tolist(), accessions.take(first).strings(), strict=True))
        for known in found.keys() & self._names.keys():
            del found[known]
        new = set(found.values())
        if len(new) == len(found) and new.isdisjoint(self._taken) and self._are_allowed(new):
            self._names |= found
            self._taken |= new
        else:
            for index, accession in found.items():
                self._add(index, accession)
        return list(map(self._names.__getitem__, indexes.tolist()))

    def _are_allowed(self, names: set[str]) -> bool:
        """Whether SAM allows all of them as they are."""
        starred = any(map(str.startswith, names, repeat(("*", "="))))
        return not (starred or "" in names or _NOT_IN_NAMES.search("".join(names))) and max(map(len, names), default=0) <= self._longest

    def _add(self, index: int, accession: str) -> None:
        plain = _NOT_IN_NAMES.sub("_", accession).lstrip("*=") or "_"
        for ending in chain(("", f"_{index + 1}"), (f"_{index + 1}_{n}" for n in count(2))):
            name = plain[: self._longest - len(ending)] + ending
            if name not in self._taken:
                break
        self._taken.add(name)
        self._names[index] = name

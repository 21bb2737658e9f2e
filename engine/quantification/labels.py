"""Isobaric labels: the kits, their channels, and the m/z of the reporter ion of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources

__all__ = ["Label", "LabelName", "label"]

LabelName = Literal["tmt-6", "tmt-10", "tmt-11", "tmt-16", "tmt-18", "itraq-4", "itraq-8"]


@dataclass(frozen=True)
class Label:
    """A kit of k labels: its name, the names of its channels, and the m/z of their reporter ions, (k,) float64."""

    name: str
    channels: tuple[str, ...]
    mz: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.channels)

    def number(self, channel: str) -> int:
        """Number of a channel by its name, as ``127N`` or ``127n``, or that with the name of the kit before it; -1 for none.

        >>> label("tmt-10").number("TMT-127c"), label("tmt-10").number("135N")
        (2, -1)
        """
        text = channel.strip().upper()
        for prefix in (self.name.upper() + "-", "TMT-", "TMT", "ITRAQ-", "ITRAQ"):
            text = text.removeprefix(prefix)
        return self.channels.index(text) if text in self.channels else -1


@cache
def label(name: LabelName) -> Label:
    """A kit by its name.

    >>> label("itraq-4").channels
    ('114', '115', '116', '117')
    """
    assert name in get_args(LabelName)
    lines = resources.path("isobaric", "reporter_ions.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    own = [(channel, float(mz)) for kit, channel, mz in rows[1:] if kit == name]
    return Label(name, tuple(channel for channel, _ in own), np.array([mz for _, mz in own]))

"""Isobaric label kits with their channels and reporter ion m/z."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources

__all__ = ["Label", "LabelName", "label", "labels_of_peptides"]

LabelName = Literal["tmt-6", "tmt-6-older", "tmt-10", "tmt-11", "tmt-16", "tmt-18", "itraq-4", "itraq-8"]


@dataclass(frozen=True)
class Label:
    """Isobaric labelling kit with k channels.

    Attributes
    ----------
    name : str
        Name of the kit.
    channels : tuple of str
        Names of the channels.
    mz : ndarray of float64, shape (k,)
        m/z of the reporter ions, Th.
    """

    name: str
    channels: tuple[str, ...]
    mz: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.channels)

    def number(self, channel: str) -> int:
        """Return the index of a channel by its name, such as ``127N`` or ``127n``, optionally after the kit name; -1 if unknown.

        Examples
        --------
        >>> label("tmt-10").number("TMT-127c"), label("tmt-10").number("135N")
        (2, -1)
        """
        text = channel.strip().upper()
        for prefix in (self.name.upper() + "-", "TMT-", "TMT", "ITRAQ-", "ITRAQ"):
            text = text.removeprefix(prefix)
        return self.channels.index(text) if text in self.channels else -1


@cache
def label(name: LabelName) -> Label:
    """Return a kit by its name.

    Examples
    --------
    >>> label("itraq-4").channels
    ('114', '115', '116', '117')
    """
    assert name in get_args(LabelName)
    lines = resources.path("isobaric", "reporter_ions.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    channels = [(channel, float(mz)) for kit, channel, mz in rows[1:] if kit == name]
    return Label(name, tuple(channel for channel, _ in channels), np.array([mz for _, mz in channels]))


_KITS_OF_LABELS: dict[str, tuple[LabelName, ...]] = {
    "TMT6plex": ("tmt-6", "tmt-10", "tmt-11"),
    "TMTpro": ("tmt-16", "tmt-18"),
    "iTRAQ4plex": ("itraq-4",),
    "iTRAQ8plex": ("itraq-8",),
}
"""Kits by the Unimod names of the modifications that they attach."""
_LEAST_LABELLED = 0.5


def labels_of_peptides(peptides: Sequence[str]) -> tuple[str, tuple[LabelName, ...], int] | None:
    """Return the isobaric label that at least half of the peptidoforms carry, the kits with this label, and the number of carriers.

    Return None if there is no such label.

    Examples
    --------
    >>> labels_of_peptides(["[TMT6plex]-PEPTIDEK[TMT6plex]", "[TMT6plex]-AR", "PEPTIDER"])[::2]
    ('TMT6plex', 2)
    >>> labels_of_peptides(["PEPTIDER"])
    """
    for name, kits in _KITS_OF_LABELS.items():
        count = sum(f"[{name}" in peptide for peptide in peptides)
        if peptides and count >= _LEAST_LABELLED * len(peptides):
            return name, kits, count
    return None

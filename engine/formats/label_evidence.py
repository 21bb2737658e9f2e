"""Detection of isobaric labels of spectra from fragments: reporter ions, and the y1 ion of lysine with and without a label.

Reporter ions are counted at their exact masses. A spectrum needs at least two channels, so that a single ion of another molecule does
not count. If reporter ions were removed or are below the scan range, the y1 ion of lysine shows the label: it has 147.113 Th without a
label, more with one. If fragment masses are not exact, only the presence of reporter ions is evidence, not their absence: ion traps lose
the lower third of the m/z range in CID, and reporter ions may be measured only in MS3.
"""

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources
from proteoscope.engine.arrays import true_at

__all__ = ["LABEL_MASSES", "LabelEvidence", "detect_label"]

LabelEvidence = Literal["", "none", "TMT", "TMTpro", "iTRAQ 4-plex", "iTRAQ 8-plex"]
"""Detected label: ``none`` if there is evidence against every label, '' if there is no evidence."""

LABEL_MASSES: dict[LabelEvidence, float] = {"TMT": 229.162932, "TMTpro": 304.207146, "iTRAQ 4-plex": 144.102063, "iTRAQ 8-plex": 304.205360}
"""Masses of the labels in dalton."""

_WITHIN = 0.004  # thomson; a third of the distance to the nearest ions of amino acids
_MINIMUM_HEIGHT = 0.01  # intensity relative to the base peak
_CHANNELS = 2
_LABELLED, _UNLABELLED = 0.3, 0.02
"""Minimum fraction of spectra with reporter ions in labelled samples, and maximum in other samples (test files: 0.83 to 1, and 0.005)."""
_MINIMUM_SPECTRA, _MINIMUM_LABELLED = 30, 3
_LOWEST_MZ, _RECORDED = 132.0, 0.5
"""Limit of m/z, Th, and minimum fraction of spectra with peaks below it if the m/z range of reporter ions was recorded."""
_LYSINE_Y1, _SEEN, _TIMES = 147.112804, 0.05, 3.0
"""m/z of the unlabelled y1 ion, Th; minimum fraction of spectra with a y1 ion; minimum ratio of the fractions of the two y1 ions."""
_FOUR_PLEX = frozenset((114, 115, 116, 117))


def detect_label(peaks: Sequence[tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]], *, is_exact: bool) -> LabelEvidence:
    """Detect the isobaric label of fragment spectra.

    Parameters
    ----------
    peaks : sequence of (mz, intensity, offsets)
        Blocks of spectra: m/z (thomson) and intensity of the peaks, and the offsets of n spectra, shape (n + 1,).
    is_exact : bool
        True if fragment masses were measured at high resolution.

    Returns
    -------
    LabelEvidence
        Detected label.
    """
    mz, intensity, owner, n = _columns(peaks)
    if n < _MINIMUM_LABELLED:
        return ""
    base = np.zeros(n)
    np.maximum.at(base, owner, intensity)
    is_high = intensity >= _MINIMUM_HEIGHT * base[owner]

    def fraction_with(ions: NDArray[np.float64], channels: int) -> float:
        """Return the fraction of spectra with peaks at the nominal masses of at least `channels` of the given ions."""
        n_channels = np.zeros(n, np.int64)
        for nominal in np.unique(np.floor(ions)):
            has = np.zeros(n, bool)
            for ion in ions[np.floor(ions) == nominal]:
                has[owner[is_high & (np.abs(mz - ion) < _WITHIN)]] = True
            n_channels += has
        return float(np.mean(n_channels >= channels))

    lysine = {name: fraction_with(np.array([_LYSINE_Y1 + mass]), 1) for name, mass in {"": 0.0, **LABEL_MASSES}.items()}
    tmt, itraq = (fraction_with(_reporters(kit), _CHANNELS) for kit in ("tmt-18", "itraq-8"))
    if max(tmt, itraq) >= _LABELLED:
        if tmt >= itraq:
            return "TMTpro" if lysine["TMTpro"] >= _SEEN and lysine["TMTpro"] > _TIMES * lysine["TMT"] else "TMT"
        ions = _reporters("itraq-8")
        others = ions[[int(ion) not in _FOUR_PLEX for ion in ions]]
        return "iTRAQ 8-plex" if fraction_with(others, _CHANNELS) >= _LABELLED else "iTRAQ 4-plex"
    if n < _MINIMUM_SPECTRA or not is_exact:
        return ""
    was_recorded = true_at(n, owner[mz < _LOWEST_MZ])
    best: LabelEvidence = max(LABEL_MASSES, key=lambda name: lysine[name])
    is_lysine_light = lysine[""] >= _SEEN
    if lysine[best] >= _SEEN and lysine[best] > _TIMES * lysine[""]:
        # Both labels of 304 Da have the same y1 within the tolerance.
        return "" if best in ("TMTpro", "iTRAQ 8-plex") else best
    is_free = max(tmt, itraq) <= _UNLABELLED and lysine[best] <= max(_UNLABELLED, lysine[""] / _TIMES)
    return "none" if is_free and (was_recorded.mean() >= _RECORDED or is_lysine_light) else ""


def _columns(
    peaks: Sequence[tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]],
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64], int]:
    """Return m/z, intensity and spectrum index of all peaks, and the number of spectra with peaks."""
    mz, intensity, owner, n = [np.empty(0)], [np.empty(0, np.float32)], [np.empty(0, np.int64)], 0
    for block_mz, heights, offsets in peaks:
        counts = np.diff(offsets)
        counts = counts[counts > 0]
        mz.append(block_mz)
        intensity.append(heights)
        owner.append(np.repeat(np.arange(len(counts)) + n, counts))
        n += len(counts)
    return np.concatenate(mz), np.concatenate(intensity), np.concatenate(owner), n


@cache
def _reporters(kit: str) -> NDArray[np.float64]:
    """Return the m/z of the reporter ions of a kit, thomson."""
    lines = resources.path("isobaric", "reporter_ions.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return np.array([float(mz) for label, _, mz in rows if label == kit])

"""Isobaric labels from the peaks of synthetic spectra."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.formats.spectra_content import detect_label

TMT = (126.127726, 127.124761, 128.134436, 129.131471, 130.141145, 131.138180)
ITRAQ_4, ITRAQ_8 = (114.1112, 115.1082, 116.1116, 117.1149), (113.1078, 114.1112, 118.1120, 119.1153, 121.1220)
LYSINE = 147.112804
N = 60


def detected(*ions: float, n: int = N, lowest: float = 100.0, is_exact: bool = True, height: float = 50.0, split: int = 1) -> str:
    """Return the label detected in spectra with random peaks and these ions, which are inspected in `split` blocks."""
    random = np.random.default_rng(1)
    blocks = []
    for _ in range(split):
        mz = [np.sort(np.append(random.uniform(max(lowest, 150.0), 1500.0, 80), ions)) for _ in range(n // split)]
        mz = [np.sort(np.append(peaks, lowest + 0.5)) for peaks in mz]
        intensity = [np.where(np.isin(peaks, ions), height, 100.0).astype(np.float32) for peaks in mz]
        offsets = np.append(0, np.cumsum([len(peaks) for peaks in mz]))
        blocks.append((np.concatenate(mz), np.concatenate(intensity), offsets))
    return detect_label(blocks, is_exact=is_exact)


@pytest.mark.parametrize(
    ("ions", "label"),
    [
        (TMT, "TMT"),
        (TMT[:2], "TMT"),
        ((*TMT, LYSINE + 229.162932), "TMT"),
        ((*TMT, LYSINE + 304.207146), "TMTpro"),
        (ITRAQ_4, "iTRAQ 4-plex"),
        (ITRAQ_8, "iTRAQ 8-plex"),
        (TMT[:1], "none"),
        ((), "none"),
        ((LYSINE,), "none"),
    ],
)
def test_detect_label_recognises_each_kit(ions: tuple[float, ...], label: str) -> None:
    assert detected(*ions) == detected(*ions, split=3) == label


def test_detect_label_ignores_low_peaks_and_peaks_of_other_mass() -> None:
    assert detected(*TMT, height=0.5) == "none"
    assert detected(*(mz - 0.03 for mz in TMT)) == "none"


def test_detect_label_uses_lysine_ions_without_reporter_range() -> None:
    assert detected(LYSINE + 229.162932, lowest=140.0) == "TMT"
    assert detected(LYSINE + 144.102063, lowest=140.0) == "iTRAQ 4-plex"
    assert detected(LYSINE + 304.207146, lowest=140.0) == ""  # two kits match
    assert detected(LYSINE, lowest=140.0) == "none"
    assert detected(lowest=160.0) == ""


def test_detect_label_is_empty_for_ion_traps_and_few_spectra() -> None:
    assert detected(is_exact=False) == "" and detected(n=20) == "" and detect_label([], is_exact=True) == ""
    assert detected(*TMT, is_exact=False) == "TMT" and detected(*TMT, n=5) == "TMT" and detected(*TMT, n=2) == ""

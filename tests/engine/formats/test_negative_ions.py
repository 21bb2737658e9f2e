"""Negative ions are an issue in peptide searches; for other searches they set a bit of the charge mask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra

Written = Callable[..., Path]


@pytest.mark.parametrize(
    ("content", "masks"),
    [
        ("BEGIN IONS\nPEPMASS=500\nCHARGE=2-\n100 1\nEND IONS\nBEGIN IONS\nPEPMASS=500\nCHARGE=2+\n100 1\nEND IONS\n", [0b101, 0b100]),
        ("CHARGE=1-\nBEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n", [0b11]),
        ("S\t1\t1\t500\nZ\t-3\t1500\n100 1\n", [0b1001]),
        ("500.5 1000 -2\n100 1\n", [0b101]),
    ],
)
def test_negative_charges_of_peak_lists_set_charge_and_polarity(content: str, masks: list[int], written: Written) -> None:
    path = written(content)
    assert read_spectra([path], takes_negative=True).charge_mask.tolist() == masks
    if not content.startswith("CHARGE"):
        with pytest.raises(InputError, match="negative"):
            read_spectra([path], strict=True)


def test_unreadable_negative_charges_are_rejected(written: Written) -> None:
    for charge in ("x-", "99-"):
        with pytest.raises(InputError, match="charge is not a whole number"):
            read_spectra([written(f"BEGIN IONS\nPEPMASS=500\nCHARGE={charge}\n100 1\nEND IONS\n")], takes_negative=True)


def test_mzml_polarity_and_negative_charge_are_read(make: Any, written: Written) -> None:
    ions = make.term("MS:1000744", "500") + make.term("MS:1000041", "2")
    path = written(make.mzml(make.mzml_spectrum(0, ions=ions, extra=make.term("MS:1000129")), make.mzml_spectrum(1, ions=ions)))
    assert read_spectra([path], takes_negative=True).charge_mask.tolist() == [0b101, 0b100]
    assert read_spectra([path]).charge_mask.tolist() == [0b100]


def test_mzxml_polarity_is_read(make: Any, written: Written) -> None:
    path = written(make.mzxml(make.mzxml_scan(1, attributes='polarity="-"'), make.mzxml_scan(2, attributes='polarity="+"')))
    assert read_spectra([path], takes_negative=True).charge_mask.tolist() == [0b1001, 0b1000]

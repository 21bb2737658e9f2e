"""What each method measures: amounts of peptidoforms by sample, and the tables of what they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.quantification.amounts import Amounts
from engine.quantification.counting import spectrum_counts
from engine.quantification.design import Design
from engine.quantification.identified import Identified

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Measured", "measured_counts", "samples_of_spectra"]


@dataclass(frozen=True)
class Measured:
    """Amounts of m peptidoforms in s samples, not normalised.

    Attributes
    ----------
    tables : what they are made of, by the names of the tables. counts : of the run's record, by name. devices : what computed.
    """

    forms: Amounts
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    devices: str = "cpu"


def samples_of_spectra(identified: Identified, design: Design) -> NDArray[np.int64]:
    """Sample of each identified spectrum, (n,) int64, -1 for none."""
    sample = np.full(len(identified.files), -1, np.int64)
    for part in design.parts:
        sample[part.file] = part.sample
    return sample[identified.matches.file]


def measured_counts(identified: Identified, design: Design) -> Measured:
    """Numbers of spectra; a peptidoform without any has no amount."""
    sample = samples_of_spectra(identified, design)
    counts = spectrum_counts(identified.matches.form, sample, len(identified.forms), len(design.samples)).astype(np.float64)
    return Measured(Amounts.of(np.where(counts > 0, counts, np.nan)))

"""What each method measures: amounts of ions by sample, and the tables of what they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import Amounts
from proteoscope.engine.quantification.counting import spectrum_counts
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified

__all__ = ["Measured", "measured_counts", "spectra_by_sample"]


@dataclass(frozen=True)
class Measured:
    """Amounts of n ions in s samples, not normalised.

    Attributes
    ----------
    ions : n rows; of numbers of spectra a row for each peptidoform. form : (n,) int64, the peptidoform of each.
    tables : what they are made of, by the names of the tables. counts : of the run's record, by name. devices : what computed.
    """

    ions: Amounts
    form: NDArray[np.int64]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    devices: str = "cpu"


def spectra_by_sample(identified: Identified, design: Design, thing: NDArray[np.int64], n_things: int) -> NDArray[np.int64]:
    """Identified spectra of each thing in the files of each sample, (n_things, samples); `thing` (n,) of each spectrum, -1 for none."""
    n_files = len(identified.files)
    return spectrum_counts(thing, identified.matches.file, n_things, n_files) @ design.members(n_files)


def measured_counts(identified: Identified, design: Design) -> Measured:
    """Numbers of spectra; a peptidoform without any has no amount."""
    counts = spectra_by_sample(identified, design, identified.matches.form, len(identified.forms)).astype(np.float64)
    return Measured(Amounts.of(np.where(counts > 0, counts, np.nan)), np.arange(len(counts)))

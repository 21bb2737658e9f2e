"""Tandem mass spectra as columns: what every reader makes and every search takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import read_only
from proteoscope.engine.row_numbers import SpectrumRow
from proteoscope.engine.shared_names import distinct_names
from proteoscope.kernels.layouts import PeakArrays

__all__ = ["OtherPrecursors", "Spectra"]


class OtherPrecursors(NamedTuple):
    """Precursors of spectra that have several, besides the first of each.

    Attributes
    ----------
    spectrum : ndarray of int64, shape (m,)
        Row of the spectrum.
    mz : ndarray of float64, shape (m,)
        Thomson.
    charge_mask : ndarray of uint32, shape (m,)
        As of `Spectra`.
    """

    spectrum: NDArray[np.int64]
    mz: NDArray[np.float64]
    charge_mask: NDArray[np.uint32]

    @classmethod
    def none(cls) -> OtherPrecursors:
        """Return no precursors."""
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint32))


@dataclass(frozen=True)
class Spectra:
    """n MS2 spectra, with their peaks in one flat array (CSR).

    Attributes
    ----------
    files : the spectrum files, in the order given.
    file : (n,) int32, index into `files`.
    identifier : n strings, the spectrum's own name in its file: the native ID of mzML, the scan's of mzXML, the TITLE of MGF (or
        ``index=k``,
        counted from 0 in the file, where there is none).
    scan : (n,) int64, the scan number, -1 where the file gives none.
    index : (n,) int64, position of the spectrum in its file, counted from 0 over all spectra of the file (MS1 too).
    retention_time : (n,) float64, seconds, NaN where unknown.
    precursor_mz : (n,) float64, thomson.
    precursor_intensity : (n,) float32, 0 where unknown.
    charge_mask : (n,) uint32, bit z set: charge z is possible; none: the file does not say. Bit 0: the ions are negative.
    offsets : (n + 1,) int64; the peaks of spectrum i are `offsets[i]:offsets[i + 1]`.
    mz : (peaks,) float64, thomson, ascending within a spectrum.
    intensity : (peaks,) float32, positive.
    n_skipped : spectra left out because they could not be read.
    others : the further precursors of spectra that have several; searches for peptides try them too.
    activation : (n,) uint8, `proteoscope.engine.chemistry.activation.Activation`, 0 where the file does not name it; all 0 where not given.
    """

    files: tuple[str, ...]
    file: NDArray[np.int32]
    identifier: list[str]
    scan: NDArray[np.int64]
    index: NDArray[np.int64]
    retention_time: NDArray[np.float64]
    precursor_mz: NDArray[np.float64]
    precursor_intensity: NDArray[np.float32]
    charge_mask: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    n_skipped: int = 0
    others: OtherPrecursors = field(default_factory=OtherPrecursors.none)
    activation: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))

    def __post_init__(self) -> None:
        if len(self.activation) != len(self):
            object.__setattr__(self, "activation", np.zeros(len(self), np.uint8))

    def __len__(self) -> int:
        return len(self.precursor_mz)

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the spectrum files for tables, without folders that do not distinguish them."""
        return distinct_names(self.files)

    def peaks(self, i: SpectrumRow) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """The m/z (thomson) and intensities of spectrum `i`, as views."""
        window = slice(self.offsets[i], self.offsets[i + 1])
        return self.mz[window], self.intensity[window]

    @property
    def peak_arrays(self) -> PeakArrays:
        """The peaks of all spectra, as the kernels take them."""
        return PeakArrays(self.offsets, read_only(self.mz), read_only(self.intensity))

    def only(self, rows: NDArray[np.int64]) -> Spectra:
        """The same spectra by number, but those not in `rows` (ascending) without peaks, so that they are not searched."""
        count = np.zeros(len(self), np.int64)
        count[rows] = np.diff(self.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(count)))
        index = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1] - offsets[:-1], count)
        return replace(self, offsets=offsets, mz=self.mz[index], intensity=self.intensity[index])

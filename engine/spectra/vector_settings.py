"""Settings of the vectors of spectra and their values; `engine.spectra.vectors` computes the vectors."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

__all__ = ["Merging", "Transform", "VectorSettings"]

Transform: TypeAlias = Literal["none", "square-root", "logarithm", "rank"]
Merging: TypeAlias = Literal["sum", "mean", "largest"]


class VectorSettings(Protocol):
    """Settings of the vectors, by their names in the parameters of all searches."""

    bin_width: float
    minimum_mz: float
    maximum_mz: float
    intensity_transform: Transform
    peak_merging: Merging
    bin_spread: float
    precursor_removal: float
    peaks_per_window: int
    rare_peak_weight: float
    minimum_precursor_mz: float
    maximum_precursor_mz: float
    minimum_charge: int
    maximum_charge: int
    maximum_peaks: int
    minimum_peaks: int

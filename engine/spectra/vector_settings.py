"""Settings with which `engine.spectra.vectors` computes the vectors of spectra, and the types of their values."""

from typing import Literal, Protocol, TypeAlias

__all__ = ["Merging", "Transform", "VectorSettings"]

Transform: TypeAlias = Literal["none", "square-root", "logarithm", "rank"]
Merging: TypeAlias = Literal["sum", "mean", "largest"]


class VectorSettings(Protocol):
    """Settings of the vectors, named as in the parameters of all searches.

    Attributes
    ----------
    bin_width : float
        Width of the m/z bins in thomson.
    minimum_mz, maximum_mz : float
        Bounds of the m/z of peaks in thomson; the upper bound is exclusive.
    intensity_transform : Transform
        Transformation of the intensities.
    peak_merging : Merging
        How the weights of several peaks in one bin are combined: sum, mean or largest.
    bin_spread : float
        Fraction of the weight of a peak that is given to each neighbouring bin.
    precursor_removal : float
        Peaks within this distance of the precursor, in thomson, are not used; 0 removes none.
    peaks_per_window : int
        Number of most intense peaks used in each window of 100 thomson; 0 for all.
    rare_peak_weight : float
        Exponent of the inverse document frequency, which gives more weight to peaks that few spectra have; 0 for equal weights.
    minimum_precursor_mz, maximum_precursor_mz : float
        Bounds of the precursor m/z in thomson.
    minimum_charge, maximum_charge : int
        Bounds of the charge; a minimum of 0 includes spectra of unknown charge.
    maximum_peaks : int
        Number of most intense peaks used per spectrum.
    minimum_peaks : int
        Minimum number of peaks of a spectrum; vectors of spectra with fewer peaks are empty.
    """

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

"""Neutral losses of precursors, detected from peaks at masses given by the formulas."""

import numpy as np
import pytest
from pyteomics import mass

from proteoscope.engine.matches.neutral_losses import LOSS_OF_PHOSPHATE, LOSS_OF_SULFATE, NO_LOSS, precursor_losses
from proteoscope.engine.matches.scoring_settings import ion_settings
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.spectra.columns import SpectrumSeries
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.layouts import QueryArrays, SpectrumArrays

NEUTRAL, PROTON = 1434.6, mass.nist_mass["H+"][0][0]
PHOSPHATE, SULFATE = mass.calculate_mass(formula="H3PO4"), mass.calculate_mass(formula="SO3")


def loss_of(peaks, charge=2, *, is_tyrosine=False):
    """Return the losses detected in a spectrum with these peaks (m/z, intensity) and others, between two spectra of other precursors."""
    peaks = sorted([*peaks, (300.1, 100.0), (500.2, 40.0)])
    mz = np.array([peak[0] for peak in peaks])
    weight = np.sqrt([peak[1] for peak in peaks]).astype(np.float32)
    other = np.array([(NEUTRAL - PHOSPHATE) / charge + PROTON, 900.0])
    offsets = np.array([0, 2, 2 + len(mz), 4 + len(mz)])
    heights = np.concatenate((np.ones(2, np.float32), weight, np.ones(2, np.float32)))
    arrays = SpectrumArrays(offsets, np.concatenate((np.sort(other), mz, np.sort(other))), heights, heights)
    queries = QueryArrays(np.array([1]), np.array([charge]), np.array([NEUTRAL]))
    settings = ion_settings(ModifiedSearchParameters.checked(read_preset("modified", "standard")), "by", 2000.0, "hyperscore")
    index = SpectrumIndex(arrays, queries, 3, SpectrumSeries.for_spectra("by", np.zeros(3, np.uint8)))
    given = np.array([1]), np.array([charge]), np.array([NEUTRAL]), np.array([is_tyrosine])
    return int(precursor_losses(index, *given, settings)[0])


@pytest.mark.parametrize("charge", [2, 3])
def test_neutral_loss_is_read_from_the_stronger_loss_peak(charge):
    phosphate, sulfate = ((NEUTRAL - loss) / charge + PROTON for loss in (PHOSPHATE, SULFATE))
    assert loss_of([(phosphate, 60.0)], charge) == LOSS_OF_PHOSPHATE
    assert loss_of([(sulfate, 60.0)], charge) == LOSS_OF_SULFATE
    assert loss_of([(phosphate, 60.0), (sulfate, 20.0)], charge) == LOSS_OF_PHOSPHATE
    assert loss_of([(phosphate, 20.0), (sulfate, 60.0)], charge) == LOSS_OF_SULFATE


def test_neutral_loss_is_unknown_for_weak_or_missing_peaks():
    phosphate = (NEUTRAL - PHOSPHATE) / 2 + PROTON
    assert loss_of([]) == NO_LOSS
    assert loss_of([(phosphate, 5.0)]) == NO_LOSS
    assert loss_of([(phosphate + 0.1, 60.0)]) == NO_LOSS


def test_neutral_loss_of_so3_is_not_used_for_tyrosine():
    phosphate, sulfate = ((NEUTRAL - loss) / 2 + PROTON for loss in (PHOSPHATE, SULFATE))
    assert loss_of([(sulfate, 60.0)], is_tyrosine=True) == NO_LOSS
    assert loss_of([(phosphate, 60.0)], is_tyrosine=True) == LOSS_OF_PHOSPHATE

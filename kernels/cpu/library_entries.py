"""Peaks of library entries: predicted peaks of a peptidoform, and annotation of measured peaks with ions.

There is no GPU version: entries are created only once, and creating entries is faster than reading or writing them. Rows are independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.arrangements import find_arrangement, first_arrangement
from proteoscope.kernels.cpu.elementary import power
from proteoscope.kernels.cpu.fragment_intensities import FLOOR, IONS
from proteoscope.kernels.cpu.peptidoforms import arrangement_workspace
from proteoscope.kernels.cpu.scores import PROTON_MASS
from proteoscope.kernels.layouts import ISOTOPE_BITS

__all__ = [
    "NO_MODIFICATION",
    "SERIES_OF_ENTRIES",
    "EntryMasses",
    "EntryPeaks",
    "PredictionRules",
    "annotate_peaks",
    "decode_peptidoforms",
    "predicted_peaks",
]

NO_MODIFICATION = 255
_WATER_MASS = 18.0105646837
_FAINTEST = 1e-6  # fraction of the highest peak below which a peak is omitted
_B, _Y = np.uint8(ord("b")), np.uint8(ord("y"))
SERIES_OF_ENTRIES = "ybzc"
_SERIES = np.frombuffer(SERIES_OF_ENTRIES.encode(), np.uint8)
_IS_FRONT = np.array([False, True, False, True])
_END_MASS = np.array([_WATER_MASS, 0.0, _WATER_MASS - 16.01872406889, 17.02654910112])
"""Mass (Da) of each ion series without residues; z is the radical ion, since NH2 stays with c in electron transfer."""


class EntryPeaks(NamedTuple):
    """Peaks of entries, (peaks,): m/z float64, intensity float32, and series symbol, number and charge of the ion, uint8, 0 if unknown."""

    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    series: NDArray[np.uint8]
    number: NDArray[np.uint8]
    charge: NDArray[np.uint8]


class EntryMasses(NamedTuple):
    """Peptides of n entries, as masses.

    Attributes
    ----------
    offsets, masses
        CSR: masses (Da) of the residues with modifications; the mass of the last residue includes modifications of the C-terminus.
    n_terminal
        (n,), mass (Da) of N-terminal modifications.
    charge
        (n,) int64, precursor charge.
    """

    offsets: NDArray[np.int64]
    masses: NDArray[np.float64]
    n_terminal: NDArray[np.float64]
    charge: NDArray[np.int64]


class PredictionRules(NamedTuple):
    """Selection of the peaks of an entry.

    Attributes
    ----------
    lowest, highest
        m/z range, thomson.
    share
        Minimum intensity relative to the highest peak.
    most
        Maximum number of peaks.
    maximum_charge
        Maximum charge of ions.
    """

    lowest: float
    highest: float
    share: float
    most: int
    maximum_charge: int


@njit(nogil=True, cache=True)
def decode_peptidoforms(numbers, code, peptides, modifications, first, last, peptide, site, modification):
    """Decode the peptidoforms `first:last` from their numbers (see `proteoscope.kernels.layouts.PeptidoformCode`).

    Parameters
    ----------
    peptide
        (n,) int64, output; index of each peptide.
    site, modification
        (n, s) uint8, output; sites, ascending (0 N-terminus, 1 to L residues, L + 1 C-terminus), and modifications, then `NO_MODIFICATION`.
    """
    sites, n_sites, slot_modification, slot_choice, slot_site = arrangement_workspace(peptides, modifications)
    for row in range(first, last):
        number = numbers[row]
        of = (number >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)
        peptide[row] = of
        slots = first_arrangement(
            number >> (code.isotope_shift + ISOTOPE_BITS), of, peptides, modifications, sites, n_sites, slot_modification, slot_choice
        )
        find_arrangement(number & ((1 << code.arrangement_bits) - 1), slots, slot_modification, slot_choice, sites, n_sites, slot_site)
        for t in range(slots):
            k = t
            while k > 0 and site[row, k - 1] > slot_site[t]:
                site[row, k], modification[row, k] = site[row, k - 1], modification[row, k - 1]
                k -= 1
            site[row, k], modification[row, k] = slot_site[t], slot_modification[t]


@njit(nogil=True, cache=True)
def predicted_peaks(entries, logarithms, starts, rules, first, last, positions, count, out):
    """Write the peaks of the ions b, b2+, y and y2+ of the entries `first:last`, given predicted intensities.

    Parameters
    ----------
    entries
        `EntryMasses`.
    logarithms : (bonds, IONS)
        Predicted logarithms of intensities from `proteoscope.kernels.cpu.fragment_intensities.predict_bonds`.
    starts : (n,) int64
        First bond of each entry.
    rules
        `PredictionRules`.
    positions : (n + 1,) int64
        Range of each entry in `out` (`EntryPeaks`), `IONS` elements per bond.
    count : (n,) int64
        Output; number of peaks of each entry. Peaks ascend in m/z; the highest intensity is 10,000.
    """
    offsets, masses, n_terminal, charge = entries
    for row in range(first, last):
        begin, bonds = offsets[row], offsets[row + 1] - offsets[row] - 1
        at, n = positions[row], np.int64(0)
        total = n_terminal[row]
        for i in range(begin, offsets[row + 1]):
            total += masses[i]
        before, highest = n_terminal[row], 0.0
        for bond in range(bonds):
            before += masses[begin + bond]
            for ion in range(IONS):
                z = 1 + ion % 2
                if z > rules.maximum_charge or (z == 2 and charge[row] < 3):
                    continue
                is_b = ion < 2
                mz = ((before if is_b else total - before + _WATER_MASS) + z * PROTON_MASS) / z
                height = power(2.0, np.float64(logarithms[starts[row] + bond, ion])) - FLOOR
                if height > 0.0 and rules.lowest <= mz <= rules.highest:
                    out.mz[at + n], out.intensity[at + n] = mz, height
                    out.series[at + n], out.charge[at + n] = _B if is_b else _Y, z
                    out.number[at + n] = bond + 1 if is_b else bonds - bond
                    highest = max(highest, height)
                    n += 1
        count[row] = _select_peaks(out, at, n, highest, rules)


@njit(nogil=True, cache=True)
def _select_peaks(out, at, n, highest, rules):
    """Select the peaks that `rules` allow among the `n` peaks from index `at` on, sort them by m/z and scale the highest to 10,000.

    Return the number of selected peaks.
    """
    least = np.float32(highest * max(rules.share, _FAINTEST))
    if n > rules.most:
        heights = np.sort(out.intensity[at : at + n])
        least = max(least, heights[n - rules.most])
    order, retained = np.argsort(out.mz[at : at + n]), 0
    mz, height = out.mz[at : at + n][order], out.intensity[at : at + n][order]
    series, number, charge = out.series[at : at + n][order], out.number[at : at + n][order], out.charge[at : at + n][order]
    for i in range(n):
        if height[i] >= least and retained < rules.most:
            out.mz[at + retained], out.intensity[at + retained] = mz[i], np.float32(height[i] / highest * 10000.0)
            out.series[at + retained], out.number[at + retained], out.charge[at + retained] = series[i], number[i], charge[i]
            retained += 1
    return retained


@njit(nogil=True, cache=True)
def annotate_peaks(peak_offsets, mz, entries, has_series, is_closed, rules, first, last, out):
    """Annotate each peak of the entries `first:last` with the nearest ion within the tolerance.

    Parameters
    ----------
    peak_offsets, mz
        CSR: m/z of the peaks of each entry, ascending.
    entries
        `EntryMasses`.
    has_series : (n, 4) bool
        Columns for the series y, b, z and c: True if the spectrum of the entry has ions of the series.
    is_closed : bool
        True for residues in `EntryMasses.masses` before a proline, where z and c ions do not form.
    rules
        Maximum ion charge (always below the precursor charge), and tolerance in thomson and as a fraction of the m/z.
    out
        Output; tuple of (peaks,) arrays: series, number and charge, uint8, initially 0; error in thomson, float32.
    """
    offsets, masses, n_terminal, charge = entries
    maximum_charge, absolute, relative = rules
    series, number, ion_charge, error = out
    for row in range(first, last):
        low, high = peak_offsets[row], peak_offsets[row + 1]
        for i in range(low, high):
            error[i] = np.inf
        total = n_terminal[row]
        for i in range(offsets[row], offsets[row + 1]):
            total += masses[i]
        for z in range(1, max(1, min(maximum_charge, charge[row] - 1)) + 1):
            before = n_terminal[row]
            bonds = offsets[row + 1] - offsets[row] - 1
            for bond in range(bonds):
                before += masses[offsets[row] + bond]
                for kind in range(4):
                    if not has_series[row, kind] or (kind > 1 and is_closed[offsets[row] + bond]):
                        continue
                    ion = ((before if _IS_FRONT[kind] else total - before) + _END_MASS[kind] + z * PROTON_MASS) / z
                    within = absolute + relative * ion
                    i = low + np.searchsorted(mz[low:high], ion - within)
                    while i < high and mz[i] <= ion + within:
                        if abs(mz[i] - ion) < abs(error[i]):
                            error[i] = mz[i] - ion
                            series[i], ion_charge[i] = _SERIES[kind], z
                            number[i] = bond + 1 if _IS_FRONT[kind] else bonds - bond
                        i += 1
        for i in range(low, high):
            if series[i] == 0:
                error[i] = 0.0

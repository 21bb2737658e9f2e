"""Predicted and measured intensities of fragment ions, and their agreement.

The input of a small network is, for each bond of a peptide, the residues around it and at both termini, counts of residues on either side,
basic residues, position and charge. The output, for the ions b, b2+, y and y2+ of the bond, is log2 of `FLOOR` plus the fraction of the
spectrum's intensity; the network was trained on MS2PIP (`benchmarks/intensity_network.py`). All but two inputs of the first layer are
counts and categories, so that the layer is a sum of table rows.

There is no GPU version, since only the best matches of each spectrum are rescored. Rows are independent and sums have a fixed order, so
that results do not depend on threads and batches. Functions are compiled without reference counting, see
`proteoscope.kernels.cpu.arrangements`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.elementary import logarithm, power
from proteoscope.kernels.cpu.matches import form_masses
from proteoscope.kernels.cpu.scores import index_spectrum, list_rows, look_up_ions, match_ions, maximum_peaks, new_scratch, sum_masses

__all__ = ["FLOOR", "IONS", "MEASURES", "TABLE_ROWS", "Network", "compare_intensities", "match_bonds", "network_shapes", "predict_bonds"]

IONS = 4
"""Number of columns per bond: b, b2+, y, y2+."""
FLOOR = 0.001
MEASURES = ("cosine", "correlation", "entropy_similarity")
"""Names of the columns that `compare_intensities` writes."""

_RESIDUES = "ACDEFGHIKMNPQRSTVWY"
_KINDS = len(_RESIDUES)
_CODES = np.zeros(256, np.int64)
_CODES[np.frombuffer(_RESIDUES.encode(), np.uint8)] = np.arange(1, _KINDS + 1)
_CODES[ord("L")] = _CODES[ord("I")]
_IS_BASIC = np.isin(np.arange(_KINDS + 1), [_RESIDUES.index(residue) + 1 for residue in "HKR"])

# Row offsets of the tables of the first layer, which are concatenated.
_AROUND, _ENDS = 4, 2  # residues on either side of the bond, and at either end
_LENGTHS, _MAXIMUM_CHARGE, _BASIC, _BASIC_AROUND = 20, 4, 6, 4
_END_TABLES = 2 * _AROUND * (_KINDS + 1)
_LEFT_TABLE = _END_TABLES + 2 * _ENDS * (_KINDS + 1)
_RIGHT_TABLE = _LEFT_TABLE + _LENGTHS
_MOBILE_TABLE = _RIGHT_TABLE + _LENGTHS
_BASIC_TABLE = _MOBILE_TABLE + _MAXIMUM_CHARGE * _BASIC
TABLE_ROWS = _BASIC_TABLE + _MAXIMUM_CHARGE * _BASIC_AROUND**2
_FIRST, _SECOND = 72, 40
_LONGEST = 64  # maximum number of residues of a peptide, plus one
_ENTROPY_OF_CLEAR_SPECTRA = 3.0  # if the spectral entropy is lower, weights increase small peaks (Li 2021)


class Network(NamedTuple):
    """Weights of the network, float32: `tables` and `others` of the first layer, the second layer, and the output layers `out`.

    `out` (models, 41, 4) contains several output layers, and each match uses one of them; the last row of a layer contains biases.
    """

    tables: NDArray[np.float32]
    others: NDArray[np.float32]
    first_bias: NDArray[np.float32]
    second: NDArray[np.float32]
    second_bias: NDArray[np.float32]
    out: NDArray[np.float32]


def network_shapes() -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a network with one output layer."""
    return {
        "tables": (TABLE_ROWS, _FIRST),
        "others": (2 * _KINDS + 2, _FIRST),
        "first_bias": (_FIRST,),
        "second": (_FIRST, _SECOND),
        "second_bias": (_SECOND,),
        "out": (1, _SECOND + 1, IONS),
    }


@njit(nogil=True, cache=True)
def match_bonds(spectra, matches, peptides, modification_mass, settings, series, offsets, first, last, out, stop):
    """Write the weights of peaks that match the ions of each bond, for given peptidoforms.

    Parameters
    ----------
    spectra, matches, peptides, modification_mass, settings
        See `proteoscope.kernels.cpu.matches.measure_matches`.
    series
        Indices of the b ions in the settings' N-terminal series, and of the y ions in the C-terminal series.
    offsets : (n + 1,) int64
        Row i is written to ``out[offsets[i] : offsets[i + 1]]``, with one row per residue for the ions of the bond after it.
    out : (r, IONS) float32
        Output, initially 0. Doubly charged ions are matched only for precursor charges of 3 or more.
    """
    query_spectrum, query_charge, peptide, site, modification = matches
    b_series, y_series = series
    scratch = new_scratch(settings, 0, 1, False, maximum_peaks(spectra, query_spectrum, first, last))
    base, matched_peak = scratch.base, scratch.matched_peak
    n_n = len(settings.n_term_series)
    previous_spectrum, indexed = np.int64(-1), index_spectrum(query_spectrum[first], spectra, settings, False, False, scratch)
    for row in range(first, last):
        if stop[0]:
            return
        if query_spectrum[row] != previous_spectrum:
            previous_spectrum = query_spectrum[row]
            indexed = index_spectrum(previous_spectrum, spectra, settings, False, False, scratch)
        length = np.int64(peptides.length[peptide[row]])
        charges = max(1, min(settings.maximum_fragment_charge, query_charge[row] - 1))
        n_term, c_term, _ = form_masses(peptides, peptide[row], modification_mass, site[row], modification[row], base)
        n_rows, n_n_rows = list_rows(settings, charges, scratch.rows)
        sum_masses(base, length, n_term, c_term, scratch.forms, 0)
        look_up_ions(0, n_rows, n_n_rows, indexed, settings, False, scratch)
        match_ions(0, n_rows, n_n_rows, indexed, spectra, settings, True, scratch)
        for z in range(min(charges, 2)):
            for i in range(length - 1):
                b = matched_peak[b_series * charges + z, i]
                y = matched_peak[(n_n + y_series) * charges + z, length - 2 - i]
                if b >= 0:
                    out[offsets[row] + i, z] = spectra.weight[b]
                if y >= 0:
                    out[offsets[row] + i, 2 + z] = spectra.weight[y]


@njit(nogil=True, cache=True, _nrt=False)
def _add_row(table, row, factor, total):
    for k in range(_FIRST):
        total[k] += factor * table[row, k]


@njit(nogil=True, cache=True, _nrt=False)
def _activate_peptide(network, residues, begin, end, charge, codes, constant, left, right, hidden, out):
    """Write the activations of the second layer for the bonds of the peptide `residues[begin:end]` to the rows of `out`.

    `codes`, `constant`, `left`, `right`, `hidden` are workspace. Terms common to all bonds are summed once; the terms of the residues on
    each side of the bond are updated from bond to bond.
    """
    tables, others, n = network.tables, network.others, end - begin
    z = min(charge, _MAXIMUM_CHARGE) - 1
    unit, basic, before = np.float32(1.0), 0, 0
    for k in range(_FIRST):
        constant[k], left[k], right[k] = network.first_bias[k], np.float32(0), np.float32(0)
    for i in range(n):
        codes[i] = _CODES[residues[begin + i]]
        basic += _IS_BASIC[codes[i]]
        if codes[i] > 0:
            _add_row(others, _KINDS + codes[i] - 1, unit, right)
    for end_residue in range(_ENDS):
        _add_row(tables, _END_TABLES + end_residue * (_KINDS + 1) + codes[end_residue], unit, constant)
        _add_row(tables, _END_TABLES + (_ENDS + end_residue) * (_KINDS + 1) + codes[n - _ENDS + end_residue], unit, constant)
    _add_row(tables, _MOBILE_TABLE + z * _BASIC + min(basic, _BASIC - 1), unit, constant)
    _add_row(others, 2 * _KINDS + 1, np.float32(n / 50.0), constant)
    for bond in range(1, n):
        code = codes[bond - 1]
        if code > 0:
            _add_row(others, code - 1, unit, left)
            _add_row(others, _KINDS + code - 1, -unit, right)
        before += _IS_BASIC[code]
        for k in range(_FIRST):
            hidden[k] = (constant[k] + left[k]) + right[k]
        for position in range(2 * _AROUND):
            i = bond - _AROUND + position
            _add_row(tables, position * (_KINDS + 1) + (codes[i] if 0 <= i < n else 0), unit, hidden)
        _add_row(tables, _LEFT_TABLE + min(bond, _LENGTHS) - 1, unit, hidden)
        _add_row(tables, _RIGHT_TABLE + min(n - bond, _LENGTHS) - 1, unit, hidden)
        around = (z * _BASIC_AROUND + min(before, _BASIC_AROUND - 1)) * _BASIC_AROUND + min(basic - before, _BASIC_AROUND - 1)
        _add_row(tables, _BASIC_TABLE + around, unit, hidden)
        _add_row(others, 2 * _KINDS, np.float32(bond / n), hidden)
        row = out[bond - 1]
        for k in range(_SECOND):
            row[k] = network.second_bias[k]
        for k in range(_FIRST):
            if hidden[k] > 0:
                for j in range(_SECOND):
                    row[j] += hidden[k] * network.second[k, j]
        for k in range(_SECOND):
            row[k] = max(row[k], np.float32(0))


@njit(nogil=True, cache=True, _nrt=False)
def _answer(second, answers, ion):
    """Return the output of the network for an ion of a bond: log2 of an intensity fraction, clipped to the range from -20 to 0."""
    total = answers[_SECOND, ion]
    for k in range(_SECOND):
        total += second[k] * answers[k, ion]
    return min(max(total, np.float32(-20.0)), np.float32(0.0))


@njit(nogil=True, cache=True)
def predict_bonds(network, residues, offsets, charge, rows, starts, first, last, out):
    """Predict the intensities at the bonds of the given peptides with the first output layer.

    Parameters
    ----------
    residues : (r,) uint8
        Residues as capitals.
    offsets : (n + 1,) int64
        Start of each peptide, which has at least two residues.
    charge : (n,) int64
        Precursor charge.
    rows : (m,) int64
        Indices of the peptides to predict.
    starts : (m,) int64
        Row of `out` of each peptide's first bond.
    first, last
        Range of `rows` to predict.
    out : (bonds, IONS) float32
        Output; binary logarithms of the intensity fractions.
    """
    codes, workspace, second = np.zeros(_LONGEST, np.int64), np.zeros((4, _FIRST), np.float32), np.zeros((_LONGEST, _SECOND), np.float32)
    for number in range(first, last):
        row = rows[number]
        begin, end = offsets[row], offsets[row + 1]
        _activate_peptide(network, residues, begin, end, charge[row], codes, workspace[0], workspace[1], workspace[2], workspace[3], second)
        for bond in range(end - begin - 1):
            for ion in range(IONS):
                out[starts[number] + bond, ion] = _answer(second[bond], network.out[0], ion)


@njit(nogil=True, cache=True, _nrt=False)
def _entropy(values, n, total):
    """Return the entropy of `n` values with sum `total`."""
    entropy = 0.0
    for i in range(n):
        if values[i] > 0.0:
            fraction = values[i] / total
            entropy -= fraction * logarithm(fraction)
    return entropy


@njit(nogil=True, cache=True, _nrt=False)
def _clear(values, n):
    """Scale the values of a spectrum to a sum of 1; if their entropy is low, first raise them to a power below 1 (Li 2021).

    Return False if there are no values.
    """
    total = 0.0
    for i in range(n):
        total += values[i]
    if not total > 0.0:
        return False
    entropy = _entropy(values, n, total)
    exponent = 0.25 + 0.25 * entropy if entropy < _ENTROPY_OF_CLEAR_SPECTRA else 1.0
    raised = 0.0
    for i in range(n):
        values[i] = power(values[i] / total, exponent) if values[i] / total > 1e-12 else 0.0
        raised += values[i]
    for i in range(n):
        values[i] /= raised
    return True


@njit(nogil=True, cache=True, _nrt=False)
def _measures(predicted, weight, n, a, b, mixed, out):
    """Compare predicted logarithms of `n` ions with weights of matched peaks (square roots of fractions); write the agreement to `out`.

    `a`, `b` and `mixed` are workspace; `predicted` is overwritten.
    """
    dot, square_a, square_b = 0.0, 0.0, 0.0
    sum_x, sum_y = 0.0, 0.0
    for i in range(n):
        fraction = np.float64(weight[i]) * weight[i]
        expected = max(power(2.0, predicted[i]) - FLOOR, 0.0)
        root = np.sqrt(expected)
        dot += root * weight[i]
        square_a += expected
        square_b += fraction
        a[i], b[i] = expected, fraction
        predicted[i], mixed[i] = logarithm(expected + FLOOR), logarithm(fraction + FLOOR)
        sum_x += predicted[i]
        sum_y += mixed[i]
    mean_x, mean_y = sum_x / n, sum_y / n
    xx, yy, xy = 0.0, 0.0, 0.0
    for i in range(n):
        x, y = predicted[i] - mean_x, mixed[i] - mean_y
        xx += x * x
        yy += y * y
        xy += x * y
    out[0] = dot / np.sqrt(square_a * square_b) if square_a > 0.0 and square_b > 0.0 else 0.0
    out[1] = xy / np.sqrt(xx * yy) if xx > 1e-12 and yy > 1e-12 else 0.0
    out[2] = 0.0
    if _clear(a, n) and _clear(b, n):
        for i in range(n):
            mixed[i] = 0.5 * (a[i] + b[i])
        apart = 2.0 * _entropy(mixed, n, 1.0) - _entropy(a, n, 1.0) - _entropy(b, n, 1.0)
        out[2] = 1.0 - apart / np.log(4.0)


@njit(nogil=True, cache=True)
def compare_intensities(network, residues, offsets, charge, weight, model, first, last, out):
    """Compare predicted intensities with peaks over all ions of each match; an ion without a peak has intensity 0.

    Parameters
    ----------
    residues, offsets, charge
        See `predict_bonds`.
    weight : (r, IONS) float32
        Square roots of relative intensities, from `match_bonds`.
    model : (n,) int64
        Index of the output layer used for each match.
    out : (n, 3) float64
        The cosine of the square roots, the correlation (Pearson) of the logarithms of `FLOOR` plus intensity fractions, and the similarity
        of the spectral entropies (Li 2021, Nature Methods 18:1524). Doubly charged ions are included only for precursor charges of 3 or
        more.
    """
    codes, workspace, second = np.zeros(_LONGEST, np.int64), np.zeros((4, _FIRST), np.float32), np.zeros((_LONGEST, _SECOND), np.float32)
    predicted, matched = np.zeros(IONS * _LONGEST), np.zeros(IONS * _LONGEST, np.float32)
    a, b, mixed = np.zeros(IONS * _LONGEST), np.zeros(IONS * _LONGEST), np.zeros(IONS * _LONGEST)
    for row in range(first, last):
        begin, end = offsets[row], offsets[row + 1]
        _activate_peptide(network, residues, begin, end, charge[row], codes, workspace[0], workspace[1], workspace[2], workspace[3], second)
        n = np.int64(0)
        for bond in range(end - begin - 1):
            for ion in range(IONS):
                if ion % 2 == 1 and charge[row] < 3:
                    continue
                predicted[n] = _answer(second[bond], network.out[model[row]], ion)
                matched[n] = weight[begin + bond, ion]
                n += 1
        _measures(predicted, matched, n, a, b, mixed, out[row])

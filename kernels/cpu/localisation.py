"""Localisation of variable modifications in peptides: evidence of fragment ions for each arrangement, and probabilities of all sites.

The mass of a fragment depends only on the number of modifications of each type before its bond. The evidence for an arrangement is
therefore a sum over bonds of a term that depends on these numbers (the state of the bond), and the sums over all arrangements (perhaps
thousands) are computed residue by residue, as in a hidden Markov model (forward and backward sums). Bonds with one possible state add the
same term to all arrangements, so that only site-determining ions count.

The term of a state is a sum over its ions of log(P / N): P is the frequency with which an ion of this series, charge and predicted
intensity has its outcome (no peak, or a peak in a range of ranks) if the fragment is present. N is the frequency if it is absent, and at
least the frequency of chance matches. Both are counted (`count_ions`) at bonds with only one possible state. A matched ion adds the log of
the relative frequency of its mass error. Fragments with a modification that may be lost have a second ion without it.

A spectrum of two isomers has ions of two arrangements. `find_mixtures` tests whether a site and another possible site both have more
ions that the other one does not explain than match by chance.

There is no GPU version, since matches are few; each match is independent of others, so that results do not depend on threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.candidates import lower_bound
from proteoscope.kernels.cpu.elementary import logarithm
from proteoscope.kernels.cpu.scores import PROTON_MASS

__all__ = [
    "DECOY_BIT",
    "ERRORS",
    "KINDS",
    "LARGEST_STATE",
    "MIXTURE_LEVEL",
    "OUTCOMES",
    "PREDICTIONS",
    "IonCounts",
    "IonEvidence",
    "MovableSites",
    "count_ions",
    "find_mixtures",
    "localise_sites",
]

DECOY_BIT = 32
"""First bit of `MovableSites.allowed` for decoy sites."""
OUTCOMES = 8
"""No peak, or a peak by its rank: up to the 5th, 10th, 20th, 40th, 80th, 160th, or below."""
PREDICTIONS = 6
"""Ranges of predicted intensities, from the highest; the last one is for ions without a prediction."""
KINDS = 24
"""Ion series (at most 6), charge 1 or higher, without and with a neutral loss."""
ERRORS = 16
"""Ranges of the mass error, within the tolerance on either side."""
LARGEST_STATE = 64
"""Maximum number of states of a bond: the product, over types, of the number of modifications plus one."""
MIXTURE_LEVEL = 0.01
"""Maximum probability, per match, that the ions of a second isomer match by chance."""

_LOSSES = KINDS // 2
_RANKS = np.array([5, 10, 20, 40, 80, 160])
_LOGARITHMS = np.array([-3.0, -4.5, -6.0, -8.0])  # lower ends of ranges of predicted log2 fractions of the intensity
_SITES = 66  # residues and both termini
_LOWEST = -1e30
# Isotopes of a fragment, and the losses of water, ammonia and carbon monoxide (a ions), Da.
_RELATED = np.array([0.0, 1.0033548, 2.0067097, -18.0105647, -17.0265491, -27.9949146])
_REACH = 50.0  # m/z on either side in which peaks are counted for the frequency of chance matches
_MODIFIED_LEVEL = 0.05


class MovableSites(NamedTuple):
    """Matches (n) whose modifications are placed, with t types of modifications.

    Attributes
    ----------
    spectrum, charge : (n,) int64
        Index of the spectrum, and precursor charge.
    offsets : (n + 1,) int64
        Start of each peptide's residues in `mass`.
    mass : (r,) float64
        Masses of residues with all modifications that do not move, Da.
    n_term, c_term : (n,) float64
        Masses of both termini with all modifications that do not move, Da.
    counts : (n, t) int64
        Number of modifications of each type; the product of (number + 1) over all types is at most `LARGEST_STATE`.
    allowed : (r + 2 n,) uint64
        For each peptide N-terminus, residues and C-terminus: bit i if type i is possible, bit `DECOY_BIT` + i if the site is a decoy.
    modification_mass, loss : (t,) float64
        Mass and neutral loss of each type, Da; 0 for no loss.
    predicted : (r, 4) float32
        Predicted log2 fractions of the intensity of b, b2+, y and y2+ ions of the bond after each residue; NaN if unknown.
    series : (int, int)
        Index of the b ions among N-terminal series, and of the y ions among C-terminal series, or -1.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    offsets: NDArray[np.int64]
    mass: NDArray[np.float64]
    n_term: NDArray[np.float64]
    c_term: NDArray[np.float64]
    counts: NDArray[np.int64]
    allowed: NDArray[np.uint64]
    modification_mass: NDArray[np.float64]
    loss: NDArray[np.float64]
    predicted: NDArray[np.float32]
    series: tuple[int, int]


class IonCounts(NamedTuple):
    """Numbers of ions at bonds with one possible state, int64.

    Attributes
    ----------
    present : (KINDS, PREDICTIONS, OUTCOMES)
        Ions of the state by type of ion, predicted intensity and outcome (no peak, or rank of the peak).
    absent : (KINDS, OUTCOMES)
        Ions of states with one modification more or less.
    errors : (ERRORS,)
        Matched ions of the state, by mass error.
    """

    present: NDArray[np.int64]
    absent: NDArray[np.int64]
    errors: NDArray[np.int64]


class IonEvidence(NamedTuple):
    """Evidence of ions, from `IonCounts`: log frequencies of `present`, frequencies of `absent`, relative log frequencies of `errors`."""

    present: NDArray[np.float64]
    absent: NDArray[np.float64]
    errors: NDArray[np.float64]


class _Workspace(NamedTuple):
    """Workspace of one thread: intensity classes of the peaks of a spectrum, their chance matches, and the sums of a peptide."""

    outcome: NDArray[np.int64]
    chance: NDArray[np.float64]
    stride: NDArray[np.int64]
    evidence: NDArray[np.float64]
    forward: NDArray[np.float64]
    backward: NDArray[np.float64]


@njit(nogil=True, cache=True)
def _new_workspace(spectra, spectrum, first, last, n_types):
    most = np.int64(0)
    for row in range(first, last):
        most = max(most, spectra.offsets[spectrum[row] + 1] - spectra.offsets[spectrum[row]])
    return _Workspace(
        np.zeros(most, np.int64),
        np.zeros(OUTCOMES, np.float64),
        np.zeros(n_types + 1, np.int64),
        np.zeros((_SITES, LARGEST_STATE), np.float64),
        np.zeros((_SITES, LARGEST_STATE), np.float64),
        np.zeros((_SITES, LARGEST_STATE), np.float64),
    )


@njit(nogil=True, cache=True)
def _rank_peaks(spectra, s, settings, workspace):
    """Write the intensity class of each peak (by its rank), and for each class the fraction of the m/z range within tolerances."""
    low, high = spectra.offsets[s], spectra.offsets[s + 1]
    order = np.argsort(-spectra.weight[low:high], kind="mergesort")
    workspace.chance[:] = 0.0
    if high == low:
        return
    width = max(spectra.mz[high - 1] - spectra.mz[low], 100.0)
    place = 0
    for rank in range(high - low):
        while place < len(_RANKS) and rank >= _RANKS[place]:
            place += 1
        peak = low + order[rank]
        workspace.outcome[order[rank]] = place + 1
        workspace.chance[place + 1] += 2.0 * (settings.fragment_absolute + settings.fragment_relative * spectra.mz[peak]) / width


@njit(nogil=True, cache=True)
def _match(target, spectra, s, settings, workspace):
    """Return the class of the most intense peak within the tolerance of an ion, and the bin of its mass error; 0 and 0 without a peak."""
    low, high = spectra.offsets[s], spectra.offsets[s + 1]
    half = settings.fragment_absolute + settings.fragment_relative * target
    best = np.int64(-1)
    for k in range(lower_bound(spectra.mz, low, high, target - half), high):
        if spectra.mz[k] > target + half:
            break
        if best < 0 or spectra.weight[k] > spectra.weight[best]:
            best = k
    if best < 0:
        return 0, 0
    place = np.int64((spectra.mz[best] - target + half) / (2.0 * half) * ERRORS)
    return workspace.outcome[best - low], min(max(place, 0), ERRORS - 1)


@njit(nogil=True, cache=True)
def _range_of(predicted):
    """Return the bin of a predicted log2 fraction of the intensity."""
    if np.isnan(predicted):
        return PREDICTIONS - 1
    for place in range(len(_LOGARITHMS)):
        if predicted >= _LOGARITHMS[place]:
            return place
    return len(_LOGARITHMS)


@njit(nogil=True, cache=True)
def _prediction(row, bond, series, z, matches, settings):
    """Return the bin of the predicted intensity of an ion; `bond` is the number of residues before the broken bond."""
    n_n = len(settings.n_term_series)
    column = -1
    if z <= 2 and series == matches.series[0]:
        column = z - 1
    elif z <= 2 and matches.series[1] >= 0 and series - n_n == matches.series[1]:
        column = 1 + z
    if column < 0:
        return PREDICTIONS - 1
    return _range_of(matches.predicted[matches.offsets[row] + bond - 1, column])


@njit(nogil=True, cache=True)
def _ion_mz(prefix, total, series, z, settings):
    n_n = len(settings.n_term_series)
    single = prefix + settings.n_term_series[series] if series < n_n else total - prefix + settings.c_term_series[series - n_n]
    return (single + (z - 1) * PROTON_MASS) / z


@njit(nogil=True, cache=True)
def _set_strides(row, matches, workspace):
    """Write the stride of each type, by which one modification increases a state number; return the number of states and the mass."""
    states, total = np.int64(1), matches.n_term[row] + matches.c_term[row]
    for t in range(matches.counts.shape[1]):
        workspace.stride[t] = states
        states *= matches.counts[row, t] + 1
        total += matches.counts[row, t] * matches.modification_mass[t]
    workspace.stride[matches.counts.shape[1]] = states
    for i in range(matches.offsets[row], matches.offsets[row + 1]):
        total += matches.mass[i]
    return states, total


@njit(nogil=True, cache=True)
def _number(state, t, stride):
    """Return the number of modifications of a type in a state."""
    return (state % stride[t + 1]) // stride[t]


@njit(nogil=True, cache=True)
def _loss_of(state, row, is_n_term, matches, stride):
    """Return the largest neutral loss (Da) of a fragment, 0 for no loss, and the modification type with this loss."""
    largest, of_type = 0.0, 0
    for t in range(matches.counts.shape[1]):
        before = _number(state, t, stride)
        inside = before if is_n_term else matches.counts[row, t] - before
        if inside > 0 and matches.loss[t] > largest:
            largest, of_type = matches.loss[t], t
    return largest, of_type


@njit(nogil=True, cache=True)
def _term(outcome, error, kind, prediction, evidence, chance):
    """Return the evidence of one ion."""
    if outcome > 0:
        by_chance = max(chance[outcome], evidence.absent[kind, outcome])
        return evidence.present[kind, prediction, outcome] - logarithm(max(by_chance, 1e-9)) + evidence.errors[error]
    matched = 0.0
    for other in range(1, OUTCOMES):
        matched += max(chance[other], evidence.absent[kind, other])
    return evidence.present[kind, prediction, 0] - logarithm(max(1.0 - matched, 0.05))


@njit(nogil=True, cache=True)
def _state_mass(state, matches, stride):
    mass = 0.0
    for t in range(matches.counts.shape[1]):
        mass += _number(state, t, stride) * matches.modification_mass[t]
    return mass


@njit(nogil=True, cache=True)
def _add_evidence(row, states, total, spectra, matches, settings, evidence, workspace):
    """Write the evidence for each state of each bond that can be reached."""
    s, begin, length = matches.spectrum[row], matches.offsets[row], matches.offsets[row + 1] - matches.offsets[row]
    charges = max(1, min(settings.maximum_fragment_charge, matches.charge[row] - 1))
    n_n, n_series = len(settings.n_term_series), len(settings.n_term_series) + len(settings.c_term_series)
    prefix = matches.n_term[row]
    for bond in range(1, length):
        prefix += matches.mass[begin + bond - 1]
        n_reached = 0
        for state in range(states):
            if workspace.forward[bond, state] > _LOWEST and workspace.backward[bond, state] > _LOWEST:
                n_reached += 1
        for state in range(states):
            workspace.evidence[bond, state] = 0.0
            if n_reached < 2 or workspace.forward[bond, state] <= _LOWEST or workspace.backward[bond, state] <= _LOWEST:
                continue
            before = prefix + _state_mass(state, matches, workspace.stride)
            for series in range(n_series):
                is_n = series < n_n
                loss, _ = _loss_of(state, row, is_n, matches, workspace.stride)
                for z in range(1, charges + 1):
                    kind, prediction = 2 * series + (z > 1), _prediction(row, bond, series, z, matches, settings)
                    target = _ion_mz(before, total, series, z, settings)
                    outcome, error = _match(target, spectra, s, settings, workspace)
                    workspace.evidence[bond, state] += _term(outcome, error, kind, prediction, evidence, workspace.chance)
                    if loss > 0.0:
                        outcome, error = _match(target - loss / z, spectra, s, settings, workspace)
                        workspace.evidence[bond, state] += _term(outcome, error, kind + _LOSSES, prediction, evidence, workspace.chance)


@njit(nogil=True, cache=True)
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b <= _LOWEST else a + np.log1p(np.exp(b - a))


@njit(nogil=True, cache=True)
def _is_allowed(bits, t, with_decoys):
    """Return True if a site may have a modification of type `t`."""
    if (bits >> np.uint64(t)) & np.uint64(1):
        return True
    return with_decoys and ((bits >> np.uint64(DECOY_BIT + t)) & np.uint64(1)) != 0


@njit(nogil=True, cache=True)
def _sum_forward(row, states, matches, with_decoys, with_evidence, workspace):
    """Write for each site and state the log of the summed evidence of all arrangements up to the site that end in this state."""
    forward, stride, n_types = workspace.forward, workspace.stride, matches.counts.shape[1]
    length = matches.offsets[row + 1] - matches.offsets[row]
    first = matches.offsets[row] + 2 * row
    for site in range(length + 2):
        bits = matches.allowed[first + site]
        for state in range(states):
            value = (0.0 if state == 0 else _LOWEST) if site == 0 else forward[site - 1, state]
            for t in range(n_types):
                if _number(state, t, stride) > 0 and _is_allowed(bits, t, with_decoys):
                    earlier = state - stride[t]
                    value = _log_add(value, (0.0 if earlier == 0 else _LOWEST) if site == 0 else forward[site - 1, earlier])
            if with_evidence and value > _LOWEST and 1 <= site < length:
                value += workspace.evidence[site, state]
            forward[site, state] = value


@njit(nogil=True, cache=True)
def _sum_backward(row, states, matches, with_decoys, with_evidence, workspace):
    """Write for each site and state the log of the summed evidence of all ways to complete, after the site, this state."""
    backward, stride, n_types = workspace.backward, workspace.stride, matches.counts.shape[1]
    length = matches.offsets[row + 1] - matches.offsets[row]
    first = matches.offsets[row] + 2 * row
    for state in range(states):
        backward[length + 1, state] = 0.0 if state == states - 1 else _LOWEST
    for site in range(length, -1, -1):
        bits = matches.allowed[first + site + 1]
        for state in range(states):
            value = _LOWEST
            for choice in range(n_types + 1):  # the last choice leaves the site unmodified
                later = state
                if choice < n_types:
                    if _number(state, choice, stride) == matches.counts[row, choice] or not _is_allowed(bits, choice, with_decoys):
                        continue
                    later = state + stride[choice]
                following = backward[site + 1, later]
                if with_evidence and following > _LOWEST and 1 <= site + 1 < length:
                    following += workspace.evidence[site + 1, later]
                value = _log_add(value, following)
            backward[site, state] = value


@njit(nogil=True, cache=True)
def _sum_at(row, site, t, states, matches, workspace):
    """Return the logs of two sums: over arrangements with a modification of type `t` at a site, and over arrangements without.

    In both, all other modifications are at target sites (not at decoy sites).
    """
    forward, backward, stride, n_types = workspace.forward, workspace.backward, workspace.stride, matches.counts.shape[1]
    length = matches.offsets[row + 1] - matches.offsets[row]
    bits = matches.allowed[matches.offsets[row] + 2 * row + site]
    on_site, elsewhere = _LOWEST, _LOWEST
    for state in range(states):
        if backward[site, state] <= _LOWEST:
            continue
        rest = backward[site, state] + (workspace.evidence[site, state] if 1 <= site < length else 0.0)
        for choice in range(n_types + 1):  # the last choice leaves the site unmodified
            earlier = state
            if choice < n_types:
                if _number(state, choice, stride) == 0 or not _is_allowed(bits, choice, choice == t):
                    continue
                earlier = state - stride[choice]
            value = (0.0 if earlier == 0 else _LOWEST) if site == 0 else forward[site - 1, earlier]
            if value <= _LOWEST:
                continue
            if choice == t:
                on_site = _log_add(on_site, value + rest)
            else:
                elsewhere = _log_add(elsewhere, value + rest)
    return on_site, elsewhere


@njit(nogil=True, cache=True)
def _write_sites(row, states, matches, workspace, probability, score):
    """Write the probability of each target site and type, and log10 of the odds of each site."""
    length = matches.offsets[row + 1] - matches.offsets[row]
    first = matches.offsets[row] + 2 * row
    for site in range(length + 2):
        bits = matches.allowed[first + site]
        for t in range(matches.counts.shape[1]):
            probability[first + site, t], score[first + site, t] = 0.0, -np.inf
            if matches.counts[row, t] == 0 or not _is_allowed(bits, t, True):
                continue
            on_site, elsewhere = _sum_at(row, site, t, states, matches, workspace)
            if on_site <= _LOWEST:
                continue
            score[first + site, t] = (on_site - elsewhere) / np.log(10.0) if elsewhere > _LOWEST else np.inf
            if _is_allowed(bits, t, False):
                probability[first + site, t] = 1.0 / (1.0 + np.exp(min(elsewhere - on_site, 700.0))) if elsewhere > _LOWEST else 1.0


@njit(nogil=True, cache=True)
def localise_sites(spectra, matches, settings, evidence, first, last, probability, score, stop):
    """Write the probabilities of all sites of the rows `first:last` of `MovableSites`.

    Parameters
    ----------
    spectra, settings
        `SpectrumArrays` and `ScoringSettings`.
    matches
        `MovableSites`.
    evidence
        `IonEvidence`.
    probability : (r + 2 n, t) float32
        Output: probability of each type at each target site; sums over sites are the numbers of modifications. 0 for decoy sites.
    score : (r + 2 n, t) float32
        Output: log10 of the odds of each site. The alternatives are arrangements of target sites only, so that decoy sites do not change
        the scores of other sites; infinite without such alternatives.
    stop
        (1,) uint8; a non-zero value stops between rows.
    """
    workspace = _new_workspace(spectra, matches.spectrum, first, last, matches.counts.shape[1])
    previous = np.int64(-1)
    for row in range(first, last):
        if stop[0]:
            return
        if matches.spectrum[row] != previous:
            previous = matches.spectrum[row]
            _rank_peaks(spectra, previous, settings, workspace)
        states, total = _set_strides(row, matches, workspace)
        _sum_forward(row, states, matches, True, False, workspace)
        _sum_backward(row, states, matches, True, False, workspace)
        _add_evidence(row, states, total, spectra, matches, settings, evidence, workspace)
        _sum_forward(row, states, matches, False, True, workspace)
        _sum_backward(row, states, matches, False, True, workspace)
        _write_sites(row, states, matches, workspace, probability, score)


@njit(nogil=True, cache=True)
def _count_bond(row, bond, state, before, total, spectra, matches, settings, counts, workspace):
    """Count the ions of the only possible state of a bond (present), and of states with one modification more or less (absent)."""
    s, stride = matches.spectrum[row], workspace.stride
    charges = max(1, min(settings.maximum_fragment_charge, matches.charge[row] - 1))
    n_n, n_series = len(settings.n_term_series), len(settings.n_term_series) + len(settings.c_term_series)
    for series in range(n_series):
        is_n = series < n_n
        loss, lost = _loss_of(state, row, is_n, matches, stride)
        for z in range(1, charges + 1):
            kind, prediction = 2 * series + (z > 1), _prediction(row, bond, series, z, matches, settings)
            target = _ion_mz(before, total, series, z, settings)
            outcome, error = _match(target, spectra, s, settings, workspace)
            counts.present[kind, prediction, outcome] += 1
            if outcome > 0:
                counts.errors[error] += 1
            if loss > 0.0:
                outcome, _ = _match(target - loss / z, spectra, s, settings, workspace)
                counts.present[kind + _LOSSES, prediction, outcome] += 1
            for t in range(matches.counts.shape[1]):
                inside = _number(state, t, stride) if is_n else matches.counts[row, t] - _number(state, t, stride)
                shift = matches.modification_mass[t] if inside == 0 else -matches.modification_mass[t]
                outcome, _ = _match(target + shift / z, spectra, s, settings, workspace)
                counts.absent[kind, outcome] += 1
                if inside == 0 and matches.loss[t] > 0.0 and (loss == 0.0 or lost != t):
                    outcome, _ = _match(target + (shift - matches.loss[t]) / z, spectra, s, settings, workspace)
                    counts.absent[kind + _LOSSES, outcome] += 1


@njit(nogil=True, cache=True)
def count_ions(spectra, matches, settings, first, last, counts, stop):
    """Add the ions of bonds with only one possible state, in the rows `first:last` of `MovableSites`, to `counts` (`IonCounts`).

    See `localise_sites` for other parameters. Decoy sites are not considered.
    """
    workspace = _new_workspace(spectra, matches.spectrum, first, last, matches.counts.shape[1])
    previous = np.int64(-1)
    for row in range(first, last):
        if stop[0]:
            return
        if matches.spectrum[row] != previous:
            previous = matches.spectrum[row]
            _rank_peaks(spectra, previous, settings, workspace)
        states, total = _set_strides(row, matches, workspace)
        _sum_forward(row, states, matches, False, False, workspace)
        _sum_backward(row, states, matches, False, False, workspace)
        prefix = matches.n_term[row]
        for bond in range(1, matches.offsets[row + 1] - matches.offsets[row]):
            prefix += matches.mass[matches.offsets[row] + bond - 1]
            n_reached, only = 0, 0
            for state in range(states):
                if workspace.forward[bond, state] > _LOWEST and workspace.backward[bond, state] > _LOWEST:
                    n_reached, only = n_reached + 1, state
            if n_reached == 1:
                before = prefix + _state_mass(only, matches, workspace.stride)
                _count_bond(row, bond, only, before, total, spectra, matches, settings, counts, workspace)


@njit(nogil=True, cache=True)
def _write_explained(row, states, total, matches, settings, workspace, ions):
    """Write the m/z of the ions of an arrangement and of related ions, ascending; return their number."""
    length = matches.offsets[row + 1] - matches.offsets[row]
    charges = max(1, min(settings.maximum_fragment_charge, matches.charge[row] - 1))
    n_n, n_series = len(settings.n_term_series), len(settings.n_term_series) + len(settings.c_term_series)
    prefix, n = matches.n_term[row], 0
    for bond in range(1, length):
        prefix += matches.mass[matches.offsets[row] + bond - 1]
        before = prefix + _state_mass(states[bond], matches, workspace.stride)
        for series in range(n_series):
            loss, _ = _loss_of(states[bond], row, series < n_n, matches, workspace.stride)
            for z in range(1, charges + 1):
                target = _ion_mz(before, total, series, z, settings)
                for shift in _RELATED:
                    ions[n] = target + shift / z
                    n += 1
                    if loss > 0.0:
                        ions[n] = target + (shift - loss) / z
                        n += 1
    ions[:n].sort()
    return n


@njit(nogil=True, cache=True)
def _chance_of_support(match, added, bonds, arrangement, spectra, matches, settings, evidence, workspace, likely):
    """Return the probability that, by chance, as many ions of an arrangement match as in the spectrum.

    The arrangement has one more (1) or one less (-1) modification of a type than another arrangement before some bonds. Ions near ions of
    the other arrangement are not counted. If the modification can be lost, so that the other arrangement may have all ions without it, the
    ions with one more modification must also be unlikely, at `_MODIFIED_LEVEL`.

    Parameters
    ----------
    match
        Row of the match, and mass of the peptide.
    added
        Type of the modification, and 1 or -1.
    bonds
        First of these bonds, and end of their range.
    arrangement
        States of the other arrangement, and m/z of its ions.
    spectra, matches, settings, evidence
        See `find_mixtures`.
    workspace, likely
        Workspace of the search for sites, and space for the probabilities of numbers of matching ions.
    """
    (row, total), (t, step), (start, stop), (states, explained) = match, added, bonds, arrangement
    s, charges = matches.spectrum[row], max(1, min(settings.maximum_fragment_charge, matches.charge[row] - 1))
    low, high = spectra.offsets[s], spectra.offsets[s + 1]
    n_n, n_series = len(settings.n_term_series), len(settings.n_term_series) + len(settings.c_term_series)
    prefix, n, observed, observed_modified = matches.n_term[row], 0, 0, 0
    likely[:, 0] = 1.0
    for bond in range(1, stop):
        prefix += matches.mass[matches.offsets[row] + bond - 1]
        if bond < start:
            continue
        before = prefix + _state_mass(states[bond] + step * workspace.stride[t], matches, workspace.stride)
        for series in range(n_series):
            is_modified = (step > 0) == (series < n_n)
            for z in range(1, charges + 1):
                target = _ion_mz(before, total, series, z, settings)
                half = settings.fragment_absolute + settings.fragment_relative * target
                nearest = lower_bound(explained, 0, len(explained), target - half)
                if nearest < len(explained) and explained[nearest] <= target + half:
                    continue
                first = lower_bound(spectra.mz, low, high, target - _REACH)
                density = (lower_bound(spectra.mz, first, high, target + _REACH) - first) / (2.0 * _REACH)
                chance = min(max(2.0 * half * density, 1.0 - evidence.absent[2 * series + (z > 1), 0]), 1.0)
                peak = lower_bound(spectra.mz, low, high, target - half)
                has_peak = peak < high and spectra.mz[peak] <= target + half
                observed, observed_modified = observed + has_peak, observed_modified + (has_peak and is_modified)
                n += 1
                likely[:, n] = 0.0
                for of_modified in range(1 + is_modified):  # distributions of the number of all ions, and of modified ions
                    for k in range(n, 0, -1):
                        likely[of_modified, k] += (likely[of_modified, k - 1] - likely[of_modified, k]) * chance
                    likely[of_modified, 0] *= 1.0 - chance
    every = likely[0, observed : n + 1].sum()
    if matches.loss[t] > 0.0:
        return max(every, likely[1, observed_modified : n + 1].sum() * (MIXTURE_LEVEL / _MODIFIED_LEVEL))
    return every


@njit(nogil=True, cache=True)
def find_mixtures(spectra, matches, settings, evidence, placed, is_localised, first, last, mixed_with, stop):
    """Find sites with a second isomer in the same spectrum, in the rows `first:last` of `MovableSites`.

    A second isomer has one modification at another possible site. The ions of each of the two arrangements that the other one does not
    explain are counted. The probability that as many match by chance (a sum of independent events, each with the frequency of peaks within
    `_REACH`, or with the frequency of absent ions of the run if that is higher) must be at most `MIXTURE_LEVEL` for both arrangements,
    divided by the number of pairs of sites of the match.

    Parameters
    ----------
    spectra, matches, settings, evidence, stop
        See `localise_sites`.
    placed : (r + 2 n, t) bool
        True for the most likely sites of each type.
    is_localised : (t,) bool
        Types for which mixtures are found.
    mixed_with : (r + 2 n, t) int16
        Output: for each placed site of these types, the site of the second isomer, or -1.
    """
    workspace = _new_workspace(spectra, matches.spectrum, first, last, matches.counts.shape[1])
    n_ions = _SITES * (len(settings.n_term_series) + len(settings.c_term_series)) * max(1, settings.maximum_fragment_charge)
    ions, other_ions = np.zeros(2 * len(_RELATED) * n_ions), np.zeros(2 * len(_RELATED) * n_ions)
    likely, states, other_states = np.zeros((2, n_ions + 1)), np.zeros(_SITES, np.int64), np.zeros(_SITES, np.int64)
    for row in range(first, last):
        if stop[0]:
            return
        _, total = _set_strides(row, matches, workspace)
        length, base = matches.offsets[row + 1] - matches.offsets[row], matches.offsets[row] + 2 * row
        state, pairs = np.int64(0), 0
        for site in range(length + 2):
            for t in range(matches.counts.shape[1]):
                if placed[base + site, t]:
                    state += workspace.stride[t]
            states[site] = state  # before the bond after the site
        for t in range(matches.counts.shape[1]):
            if is_localised[t] and matches.counts[row, t] > 0:
                for other in range(length + 2):
                    if _is_allowed(matches.allowed[base + other], t, False) and not placed[base + other].any():
                        pairs += matches.counts[row, t]
        if pairs == 0:
            continue
        n = _write_explained(row, states, total, matches, settings, workspace, ions)
        for t in range(matches.counts.shape[1]):
            for site in range(length + 2):
                if not (is_localised[t] and placed[base + site, t]):
                    continue
                lowest = MIXTURE_LEVEL / pairs
                for other in range(length + 2):
                    if placed[base + other].any() or not _is_allowed(matches.allowed[base + other], t, False):
                        continue
                    start, end = max(1, min(site, other)), min(length, max(site, other))
                    step = 1 if other < site else -1
                    match, bonds, reported = (row, total), (start, end), (states, ions[:n])
                    chance = _chance_of_support(match, (t, step), bonds, reported, spectra, matches, settings, evidence, workspace, likely)
                    if chance > lowest:
                        continue
                    other_states[:] = states
                    other_states[start:end] += step * workspace.stride[t]
                    n_other = _write_explained(row, other_states, total, matches, settings, workspace, other_ions)
                    second = other_states, other_ions[:n_other]
                    of_site = _chance_of_support(match, (t, -step), bonds, second, spectra, matches, settings, evidence, workspace, likely)
                    if max(chance, of_site) <= lowest and (mixed_with[base + site, t] < 0 or max(chance, of_site) < lowest):
                        lowest, mixed_with[base + site, t] = max(chance, of_site), other

"""Group-walk: q-values of a list of matches that consists of groups with different fractions of false matches.

Target-decoy competition in one list accepts too many false matches of poor groups and too few true ones of good groups; separate lists do
not control the false discovery rate of their union. Group-walk (Freestone, Short, Noble & Keich 2022, Bioinformatics 38:ii82) has one
frontier in each group. All frontiers begin at the lowest scores. In each step, one of them moves past one match, and

    FDR = (1 + decoys above the frontiers) / (targets above the frontiers)

is estimated. The q-value of a match is the lowest estimate of all steps before its group's frontier moved past it. First, each frontier
moves past `WINDOW` matches, in turns. Then the next step is in the group with the most decoys among the last `WINDOW` matches that its
frontier moved past. A step therefore depends only on matches below the frontiers. Since their labels are no longer counted, the procedure
controls the false discovery rate (Lei & Fithian 2018, AdaPT, J R Stat Soc B 80:649).

Among groups with equally many decoys, one is drawn at random, as in the paper. The draw may depend on anything but the labels above the
frontiers. Here, the probability of a group is proportional to its number of matches above the frontier, so that the walk does not pass a
whole small group before it has begun a large one. The draws are always the same, so that results can be repeated. Matches of equal
score in a group are passed together.

The frontier of the group with the most decoys moves until this group has no more decoys than another. The order in which all matches are
passed is therefore given by the lowest number of decoys in any window up to each match. Among groups with the same lowest number, each next
step of a group has an exponentially distributed waiting time, whose mean decreases with the number of matches above the frontier of the
group; the shortest time is drawn. The whole order is found by sorting.
"""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start

__all__ = ["WINDOW", "group_walk", "waiting_times"]

WINDOW = 40
"""Number of passed matches that a step depends on; the value is that of the paper."""
_SEED = 2022


def group_walk(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    group: NDArray[np.int64],
    *,
    expected: NDArray[np.float64] | None = None,
    at_once: float = 1.0,
    decoy_ratio: float = 1.0,
    window: int = WINDOW,
) -> NDArray[np.float64]:
    """Return the q-value of each match: the lowest false discovery rate of the whole list at which it is accepted.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores, higher is better, no NaN.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    group : ndarray of int64, shape (n,)
        Group of each match.
    expected : ndarray of float64, shape (n,), optional
        Number of decoys of the match's group expected at or above its score. Their sum over all groups, at the current position of the
        walk in each group, replaces the 1 that is added to the number of observed decoys; it is limited to `at_once` (see
        `proteoscope.engine.statistics.target_decoy`).
    at_once : float
        Number of decoys that one false peptide gives: 1, or the number of matches per peptide if matches are counted (see
        `proteoscope.engine.statistics.target_decoy.q_values`).
    decoy_ratio : float
        Decoy candidates per target candidate, above 0.
    window : int
        Number of last passed matches of each group whose decoys are counted to select the group of the next step.

    Returns
    -------
    ndarray of float64, shape (n,)
        q-values from 0 to 1, not increasing with the score within a group. Decoys also have the value for their score.

    Raises
    ------
    ValueError
        If a score is NaN.

    Examples
    --------
    >>> score, is_decoy = np.array([9.0, 8.0, 7.0, 6.0]), np.array([False, False, True, False])
    >>> group_walk(score, is_decoy, np.zeros(4, np.int64))
    array([0.5       , 0.5       , 0.66666667, 0.66666667])
    """
    if np.isnan(score).any():
        raise ValueError("a score is NaN")
    if len(score) == 0:
        return np.empty(0)
    order, is_step = _walk(score, is_decoy, group, window)
    decoy = is_decoy[order]
    n_decoys, n_targets = np.count_nonzero(decoy), np.count_nonzero(~decoy)
    decoys = n_decoys - np.cumsum(decoy) + decoy  # counts above the frontiers, before each step
    targets = n_targets - np.cumsum(~decoy) + ~decoy
    added = 1.0 if expected is None else np.minimum(_expected_above(expected[order], group[order]), at_once)
    rate = np.minimum((decoys + added) / decoy_ratio / np.maximum(targets, 1), 1.0)
    rate[(targets == 0) | ~is_step] = 1.0
    q_value = np.empty(len(score))
    q_value[order] = np.minimum.accumulate(rate)
    return q_value


def _walk(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], group: NDArray[np.int64], window: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the rows in the order in which the frontiers pass them, and a mask: False for a row passed together with the previous row."""
    n = len(score)
    rows = np.lexsort((score, group))  # stable: matches of equal score retain the order of the rows
    starts_group = is_group_start(group[rows])
    first = np.maximum.accumulate(np.where(starts_group, np.arange(n), 0))
    is_step = starts_group | is_group_start(score[rows])
    begin = np.maximum.accumulate(np.where(is_step, np.arange(n), 0))  # matches of equal score are passed with the first of them
    place = begin - first
    passed = np.concatenate(([0], np.cumsum(is_decoy[rows])))
    recent = passed[begin] - passed[np.maximum(begin - window, first)]
    is_walk = place >= window
    number = np.cumsum(starts_group)
    # The running minimum within each group: keys of different groups differ by more than the size of a window.
    apart = number * (window + 1)
    lowest = np.minimum.accumulate(np.where(is_walk, recent, window) - apart) + apart
    # At its lowest number of decoys, a group competes with equally poor groups in the draw; above this number, the group continues.
    is_drawn = is_step & is_walk & (recent == lowest)
    n_above = np.bincount(number)[number] - place
    waited = np.cumsum(np.where(is_drawn, waiting_times(n) / n_above, 0.0))
    begins_level = is_drawn & (starts_group | is_group_start(lowest) | ~np.concatenate(([False], is_walk[:-1])))
    before = np.where(begins_level, np.concatenate(([0.0], waited[:-1])), 0.0)
    time = waited - np.maximum.accumulate(before)
    turn = np.where(is_walk, window, place)
    order = np.lexsort((np.arange(n), number, np.where(is_walk, time, 0.0), np.where(is_walk, -lowest, 0), turn))
    return rows[order], is_step[order]


def waiting_times(n: int) -> NDArray[np.float64]:
    """Return n random numbers with an exponential distribution of mean 1, always the same; `_walk` uses one for each match."""
    return -np.log1p(-np.random.default_rng(_SEED).random(n))


def _expected_above(expected: NDArray[np.float64], group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each step of the walk, the expected number of decoys above the frontiers before the step, summed over all groups, (n,).

    `expected` and `group` are those of the matches in the order of the walk, in which the scores of each group ascend.
    """
    by_group = np.argsort(group, kind="stable")
    value, starts = expected[by_group], is_group_start(group[by_group])
    following = np.append(value[1:], 0.0)
    following[np.flatnonzero(np.append(starts[1:], True))] = 0.0  # nothing is expected above the last match
    change = np.empty(len(value))
    change[by_group] = following - value
    above: NDArray[np.float64] = np.maximum(value[starts].sum() + np.concatenate(([0.0], np.cumsum(change)[:-1])), 0.0)
    return above

"""The best alignment with a bounded number of gaps by definition: every possible alignment is scored."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, GapRules

PAIR, PATTERN, TEXT = "=", "I", "D"
_ORDER = {None: (PAIR, PATTERN, TEXT), PAIR: (PAIR, PATTERN, TEXT), PATTERN: (PAIR, TEXT, PATTERN), TEXT: (PAIR, PATTERN, TEXT)}


class Paths(NamedTuple):
    """All alignments of two lengths: steps, number of gaps, gap lengths and aligned pairs, by preference among equal scores."""

    steps: list[str]
    gaps: np.ndarray
    gap_length: np.ndarray
    pairs: np.ndarray
    leads_away: np.ndarray
    first_pairs: np.ndarray


def _all_steps(n: int, m: int) -> list[str]:
    if n == 0 or m == 0:
        return [TEXT * n + PATTERN * m]
    return [before + step for step, i, j in ((PAIR, n - 1, m - 1), (PATTERN, n, m - 1), (TEXT, n - 1, m)) for before in _all_steps(i, j)]


@cache
def _rank(steps: str) -> tuple[int, ...]:
    """Rank steps of equal score, from the end: the beginning before a pair, a pair before a gap, closing a gap before extending it."""
    after, ranks = None, []
    for step in reversed(steps):
        ranks.append(1 + _ORDER[after].index(step))
        after = step
    return (*ranks, 0)


@cache
def paths(n: int, m: int) -> Paths:
    """List the alignments of a whole text of length `n` with a whole pattern of length `m`."""
    steps = sorted(_all_steps(n, m), key=_rank)
    pairs = np.zeros((len(steps), n * m), np.int64)
    gaps, residues, away, seeds = [], [], [], []
    for row, path in enumerate(steps):
        i = j = n_gaps = 0
        leads_away, before = True, ""
        for step in path:
            if step == PAIR:
                pairs[row, i * m + j] = 1
            elif step != before:
                n_gaps += 1
                leads_away &= j >= i if step == PATTERN else i >= j
            i, j, before = i + (step != PATTERN), j + (step != TEXT), step
        gaps.append(n_gaps)
        residues.append(path.count(PATTERN) + path.count(TEXT))
        away.append(leads_away)
        seeds.append(len(path) - len(path.lstrip(PAIR)))
    return Paths(steps, np.array(gaps), np.array(residues), pairs, np.array(away), np.array(seeds))


class Best(NamedTuple):
    """The preferred alignment of those with the best score."""

    score: int
    text: tuple[int, int]
    pattern: tuple[int, int]
    gaps: int
    steps: str


def best_alignment(text: np.ndarray, pattern: np.ndarray, rules: GapRules) -> Best | None:
    """Return the best alignment of codes, or None."""
    n, m, alignments = len(text), len(pattern), []
    seed = rules.seed_length
    if m < seed:
        return None
    starts = [0] if rules.mode == PREFIX else range(n + 1)
    is_free = rules.mode == LOCAL
    for start in starts:
        for end in range(start, n + 1):
            for low in range(m + 1) if is_free and not seed else [0]:
                for high in range(low, m + 1) if is_free else [m]:
                    if seed and (min(high - low, end - start) < seed or (text[start : start + seed] != pattern[low : low + seed]).any()):
                        continue
                    every = paths(end - start, high - low)
                    worth = rules.matrix[pattern[low:high][None, :], text[start:end][:, None]].ravel()
                    score = every.pairs @ worth - rules.gap_open * every.gaps - rules.gap_extend * every.gap_length
                    allowed = (every.gaps <= rules.maximum_gaps) & (every.first_pairs >= seed)
                    if rules.is_published:
                        allowed &= every.leads_away
                    if is_free:
                        allowed &= score > 0
                    if allowed.any():
                        top = score[allowed].max()
                        retained = np.flatnonzero(allowed & (score == top))
                        fewest = every.gaps[retained].min()
                        for row in retained[every.gaps[retained] == fewest][:1]:
                            key = (-top, end, high, fewest, _rank(every.steps[row]))
                            alignments.append((key, Best(int(top), (start, end), (low, high), int(fewest), every.steps[row])))
    return min(alignments, key=lambda alignment: alignment[0])[1] if alignments else None


def steps_of(runs: np.ndarray) -> str:
    """Return the steps of a row of runs."""
    residues = []
    for place, length in enumerate(runs.tolist()):
        residues.append((PAIR if place % 2 == 0 else PATTERN if length > 0 else TEXT) * abs(length))
    return "".join(residues)


def printed_recurrence(text: np.ndarray, pattern: np.ndarray, rules: GapRules) -> int | None:
    """Return the greatest score in the last column of G_z, as in Carroll (2018), section 5.2.2; None if all are impossible."""
    n, m = len(text), len(pattern)
    nothing = float("-inf")

    def gap(length: int) -> int:
        return -(rules.gap_open + rules.gap_extend) - (length - 1) * rules.gap_extend

    below: list[list[float]] = []
    for q in range(rules.maximum_gaps + 1):
        layer = [[nothing] * (m + 1) for _ in range(n + 1)]
        layer[0][0] = 0
        for i in range(n + 1):
            for j in range(m + 1):
                if i and j:
                    layer[i][j] = layer[i - 1][j - 1] + int(rules.matrix[pattern[j - 1], text[i - 1]])
                if q and i < j:
                    layer[i][j] = max(layer[i][j], max(below[i][j - r] + gap(r) for r in range(1, j - i + 1)))
                if q and i > j:
                    layer[i][j] = max(layer[i][j], max(below[i - r][j] + gap(r) for r in range(1, i - j + 1)))
        below = layer
    best = max(row[m] for row in below)
    return None if best == nothing else int(best)

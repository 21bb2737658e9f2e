"""Significance of hits: E-values from extreme-value statistics, and probability of the same fold.

Best local alignment scores of unrelated chains follow an extreme-value distribution (Gumbel, as for sequences: Karlin and Altschul 1990,
PNAS 87:2264). Its location and scale depend on the lengths of both chains and their shared secondary structure: two helix bundles score
higher by chance than a bundle and a barrel. The constants are fitted to chains of different classes and to reversed chains.

The probability of the same fold is a logistic function of the product of both TM-scores (Xu and Zhang 2010, Bioinformatics 26:889, use only
the TM-score) and of the length of the shorter chain. It depends neither on the database nor on the score. Because of the product, a
fragment that perfectly matches a section of a chain does not have the same fold.

All constants are in ``resources/structures/calibration.json``, computed by `benchmarks/structure_calibration.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources
from proteoscope.engine.arrays import take_segments
from proteoscope.engine.structures.chains import HELIX, STRAND, Chains

__all__ = ["REFERENCE_LENGTH", "Calibration", "chance_features", "fold_features", "ordered_shares", "shipped_calibration"]

REFERENCE_LENGTH = 200.0
"""Reference length in residues; features contain the logarithms of the ratios of lengths to it."""

_SHORTEST = 30  # residues; shorter chains have no fold; their chances are computed as for this length
_MAXIMUM_EXPONENT = 700.0  # limit of exponents, within the range of floating-point numbers


@dataclass(frozen=True)
class Calibration:
    """Calibration constants of a mode of the search.

    Attributes
    ----------
    location, log_scale : ndarray, shape (3,) or None
        Coefficients of `chance_features` for the location and the logarithm of the scale of the scores of unrelated chains; None if the
        scores of the mode follow no extreme-value distribution.
    same_fold : ndarray, shape (3,)
        Coefficients of `fold_features` for the logit of the probability of the same fold.
    """

    location: NDArray[np.float64] | None
    log_scale: NDArray[np.float64] | None
    same_fold: NDArray[np.float64]

    @classmethod
    def from_json(cls, content: Any) -> Calibration:
        """Create the calibration of a mode from its section of the file."""
        chance = [np.array(content[name], np.float64) if name in content else None for name in ("location", "log_scale")]
        return cls(chance[0], chance[1], np.array(content["same_fold"], np.float64))

    def chances(self, scores: NDArray[np.floating], features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability that an unrelated chain has the given score or a higher one.

        Parameters
        ----------
        scores : ndarray, shape (n,)
            Scores in bits.
        features : ndarray, shape (n, 3)
            Features from `chance_features`.

        Returns
        -------
        ndarray, shape (n,)
            Probabilities from 0 to 1; NaN if the mode has no extreme-value distribution.
        """
        if self.location is None or self.log_scale is None:
            return np.full(len(scores), np.nan)
        location, scale = _weighted_sums(features, self.location), np.exp(_weighted_sums(features, self.log_scale))
        above = (np.asarray(scores, np.float64) - location) / scale
        chances: NDArray[np.float64] = -np.expm1(-np.exp(-np.clip(above, -_MAXIMUM_EXPONENT, _MAXIMUM_EXPONENT)))
        return chances

    def same_fold_probabilities(
        self, tm_query: NDArray[np.floating], tm_target: NDArray[np.floating], shorter: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the probability that a target has the fold of the query.

        The prior is a database in which 1 chain in 76 has the fold of the query.

        Parameters
        ----------
        tm_query, tm_target : ndarray, shape (n,)
            TM-scores normalised by the length of the query and of the target.
        shorter : ndarray of int, shape (n,)
            Length of the shorter chain in residues.

        Returns
        -------
        ndarray, shape (n,)
            Probabilities from 0 to 1; NaN for chains that are too short to have a fold.
        """
        logit = _weighted_sums(fold_features(tm_query, tm_target, shorter), self.same_fold)
        return np.where(shorter < _SHORTEST, np.nan, 1.0 / (1.0 + np.exp(-np.clip(logit, -_MAXIMUM_EXPONENT, _MAXIMUM_EXPONENT))))


@lru_cache(maxsize=2)
def shipped_calibration(mode: str) -> Calibration:
    """Return the calibration of a mode that is delivered with the program."""
    content = json.loads(resources.path("structures", "calibration.json").read_text(encoding="utf-8"))
    return Calibration.from_json(content["modes"][mode])


def chance_features(lengths: NDArray[np.integer], others: NDArray[np.integer], shared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the features from which `Calibration` predicts the scores of unrelated chains, (n, 3).

    The features are 1, the logarithm of the product of the lengths relative to the squared reference length, and the shared fraction of
    secondary structure.

    Parameters
    ----------
    lengths, others : ndarray of int, shape (n,)
        Lengths of both chains in residues.
    shared : ndarray, shape (n,)
        Shared fraction of secondary structure, from 0 to 1.
    """
    product = np.maximum(lengths, _SHORTEST) * np.maximum(others, _SHORTEST)
    return np.stack([np.ones(len(shared)), np.log(product / REFERENCE_LENGTH**2), shared], axis=1)


def fold_features(tm_query: NDArray[np.floating], tm_target: NDArray[np.floating], shorter: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the features from which `Calibration` predicts the probability of the same fold, (n, 3).

    The features are 1, the product of both TM-scores, and the logarithm of the shorter length relative to the reference length.
    """
    product = np.asarray(tm_query, np.float64) * np.asarray(tm_target, np.float64)
    return np.stack([np.ones(len(product)), product, np.log(np.maximum(shorter, 1) / REFERENCE_LENGTH)], axis=1)


def _weighted_sums(features: NDArray[np.float64], constants: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of each row of features, weighted by `constants`; unlike in `features @ constants`, the order of addition is fixed."""
    weighed: NDArray[np.float64] = features[:, 0] * constants[0] + features[:, 1] * constants[1] + features[:, 2] * constants[2]
    return weighed


def ordered_shares(chains: Chains, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the fractions of helix and strand residues of the chains with the indices `chosen`, (n, 2).

    The shared secondary structure of two chains is the sum of the minima of their fractions.
    """
    states, offsets = take_segments(chains.secondary, chains.offsets, chosen)
    if not len(chosen):
        return np.zeros((0, 2))
    counts = [np.add.reduceat(states == state, offsets[:-1], dtype=np.int64) for state in (HELIX, STRAND)]
    return np.stack(counts, axis=1) / np.diff(offsets)[:, None]

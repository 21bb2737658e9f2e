"""Error rates of listed matches: the score that ranks them, and q-values from the file or estimated from its decoys.

q-values in the file are used unchanged. Without them, all rank 1 matches compete in one list, and decoys estimate the number of false
matches (`proteoscope.engine.statistics.target_decoy`). Without q-values and decoys, error rates are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, positions_in_groups
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.matches.engine_scores import ENGINE_SCORES
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.matches.tables import error_rates

__all__ = [
    "ErrorRateSettings",
    "ErrorRates",
    "ListParameters",
    "RankingScore",
    "are_decoys",
    "estimate_error_rates",
    "rank_matches",
    "select_ranking_score",
]

Floats = NDArray[np.float64]
Source = Literal["file", "decoys", "best match", "none"]
"""Source of a q-value: the file, decoys, the best match of the peptide or protein group, or none."""

_LEAST = 1e-300
_MAXIMUM_RANK = 127
_SUFFIXES = (":reversed", ":reverse", "-decoy", "_decoy")


class ListParameters(Protocol):
    """Settings of a search that lists matches; attributes are named like the parameters of searches."""

    fragment_tolerance: Tolerance
    ion_series: str
    maximum_fragment_charge: int
    fdr: float
    plus_one: bool

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all parameters by name."""


@dataclass
class ErrorRateSettings:
    """Settings of error rates and tables, with the attributes of `proteoscope.engine.matches.run_tables.TableSettings`.

    `decoys` is ``existing`` if error rates are known, otherwise ``none``.
    """

    parameters: ListParameters
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    fdr: float
    plus_one: bool
    decoy_prefixes: tuple[str, ...]
    """Prefixes of decoy accessions; the accession of the target follows the prefix."""
    is_by_group: bool = False
    """True if error rates were estimated per group and by distinct peptides; a peptide then has the q-value of its best match."""
    decoy_ratio: float = 1.0
    """Decoy candidates per target candidate."""

    @classmethod
    def from_parameters(cls, parameters: ListParameters, decoy_prefixes: tuple[str, ...] = ()) -> ErrorRateSettings:
        """Create settings from the parameters of a search and the prefixes of decoy accessions."""
        return cls(parameters, "existing", parameters.fdr, parameters.plus_one, decoy_prefixes)

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return the parameters by name."""
        return self.parameters.model_dump(mode=mode)


class RankingScore(NamedTuple):
    """Score that ranks matches: its title, and its values, (n,) float64; higher is better, NaN for matches without the score."""

    title: str
    value: Floats


class ErrorRates(NamedTuple):
    """q-values and posterior error probabilities of n rows, NaN if unknown.

    `q_value_of` and `posterior_error_of` are the sources of the two columns.
    """

    q_value: Floats
    posterior_error: Floats
    q_value_of: Source
    posterior_error_of: Source


def select_ranking_score(identifications: Identifications, chosen: str) -> RankingScore:
    """Return the score that ranks the matches.

    Parameters
    ----------
    identifications : Identifications
        Matches of the file.
    chosen : str
        Name of an engine score. '' selects the first of `ENGINE_SCORES` that the file contains; without any, posterior error probabilities
        or q-values.

    Returns
    -------
    RankingScore
        Score with an empty title and only NaN if the file contains no score, error probability or q-value.

    Raises
    ------
    ParameterError
        If the file does not contain the chosen score.
    """
    for engine_score in ENGINE_SCORES:
        if not engine_score.sense or engine_score.column not in identifications.scores or (chosen and engine_score.name != chosen):
            continue
        value = identifications.scores[engine_score.column]
        if engine_score.is_logarithmic:
            return RankingScore(f"-log10 of {engine_score.title}", -np.log10(np.maximum(value, _LEAST)))
        return RankingScore(engine_score.title, value * identifications.senses.get(engine_score.column, engine_score.sense))
    if chosen:
        there = [
            engine_score.name for engine_score in ENGINE_SCORES if engine_score.sense and engine_score.column in identifications.scores
        ]
        raise ParameterError(f"score = '{chosen}': not in the results. Scores in the results: {', '.join(there) or 'none'}")
    for title, rate in (("posterior error probability", identifications.posterior_error), ("q-value", identifications.q_value)):
        if np.isfinite(rate).any():
            return RankingScore(f"-log10 of the {title}", -np.log10(np.maximum(rate, _LEAST)))
    return RankingScore("", np.full(len(identifications), np.nan))


def are_decoys(identifications: Identifications, prefixes: Sequence[str]) -> NDArray[np.bool_]:
    """Return True for decoy matches, (n,).

    If the file does not state whether a match is a decoy, the match is a decoy if all its proteins have decoy accessions. Decoy accessions
    start with one of `prefixes`, or end with a usual decoy suffix; case is ignored.
    """
    lowered = tuple(prefix.lower() for prefix in prefixes)
    named = np.array([_is_named_decoy(name.lower(), lowered) for name in identifications.accessions] or [False], np.bool_)
    counts = np.diff(identifications.protein_offsets)
    decoys = np.bincount(
        np.repeat(np.arange(len(identifications)), counts),
        named[identifications.protein] if len(identifications.protein) else None,
        len(identifications),
    )
    by_name = (counts > 0) & (decoys == counts)
    is_decoy: NDArray[np.bool_] = np.where(identifications.is_decoy >= 0, identifications.is_decoy == 1, by_name)
    return is_decoy


def _is_named_decoy(name: str, prefixes: tuple[str, ...]) -> bool:
    return name.startswith(prefixes) or any(part.startswith(prefixes) for part in name.split("|")[:1]) or name.endswith(_SUFFIXES)


def rank_matches(spectrum: NDArray[np.int64], given: NDArray[np.int64], score: Floats) -> NDArray[np.int64]:
    """Return the rank of each match among the matches of the same spectrum, from 1, (n,) int64.

    Matches are ordered by the rank in the file, then by score, then by row. If a spectrum has several precursors, the matches of all
    precursors are ranked together.

    Parameters
    ----------
    spectrum : ndarray of int64, shape (n,)
        Spectrum of each match.
    given : ndarray of int64, shape (n,)
        Rank in the file, 0 if not given.
    score : ndarray of float64, shape (n,)
        Higher is better; NaN if unknown.
    """
    value = np.where(np.isnan(score), -np.inf, score)
    order = np.lexsort((np.arange(len(score)), -value, np.where(given > 0, given, 1), spectrum))
    rank = np.empty(len(order), np.int64)
    rank[order] = positions_in_groups(is_group_start(spectrum[order])) + 1
    return np.minimum(rank, _MAXIMUM_RANK)


def estimate_error_rates(
    score: Floats, is_decoy: NDArray[np.bool_], competes: NDArray[np.bool_], given: tuple[Floats, Floats], settings: ErrorRateSettings
) -> ErrorRates:
    """Return q-values and posterior error probabilities; each of the two is estimated from decoys if the file does not contain it.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Higher is better; NaN excludes a row.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    competes : ndarray of bool, shape (n,)
        True for rows that are used to estimate error rates.
    given : tuple of two ndarrays of float64, shape (n,)
        q-values and posterior error probabilities in the file; NaN if not given.
    settings : ErrorRateSettings
        Settings of the error rates.

    Returns
    -------
    ErrorRates
    """
    q_value, posterior_error = (np.where((rate >= 0) & (rate <= 1), rate, np.nan) for rate in given)
    has_q, has_error = (bool(np.isfinite(rate).any()) for rate in (q_value, posterior_error))
    can_compute = competes & np.isfinite(score)
    decoys = is_decoy & can_compute
    if (has_q and has_error) or not decoys.any():
        return ErrorRates(q_value, posterior_error, "file" if has_q else "none", "file" if has_error else "none")
    rates = error_rates(score[can_compute], is_decoy[can_compute], settings, decoy_ratio=settings.decoy_ratio)
    computed = np.full((2, len(score)), np.nan)
    computed[:, can_compute] = rates
    return ErrorRates(
        q_value if has_q else computed[0],
        posterior_error if has_error else computed[1],
        "file" if has_q else "decoys",
        "file" if has_error else "decoys",
    )

"""How sure matches in a library are: those of the same mass and those of another in groups of their own, each by its own decoys.

A spectrum of no reference resembles a decoy as often as any other reference of its mass, whose decoys lie next to it. References of other
masses are a thousand times more, so that they are rated apart, and what is accepted of the same mass is not searched among them (a
cascade: Kertesz-Farkas, Keich & Noble 2015, J Proteome Res 14:3027). Nothing is learnt.

Rates are of spectra and of distinct peptides or compounds, whichever is the larger: replicates of one spectrum find one false reference
again and again. Each peptide competes with the decoys that were made of it (`proteoscope.engine.statistics.multiple_competition`), all of
its charges and modified forms together; a library's own decoys are of no particular peptide, so that each reference is a hypothesis of its
own with as many decoys as there are for a target. Of spectra each decoy stands for 1 / d false targets. Entries without decoys, as small
molecules among peptides, get no rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.library_search.queries import Found
from proteoscope.engine.library_search.references import References
from proteoscope.engine.statistics.multiple_competition import competition_q_values
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["JudgedMatches", "judge"]

_LEAST_RATIO = 0.2  # decoys for each target: of fewer, what they say is multiplied beyond what anybody should believe


class RateSettings(Protocol):
    """Settings that decide error rates, by the names that every search's parameters have for it."""

    fdr: float
    minimum_similarity: float
    plus_one: bool

    @property
    def is_open(self) -> bool:
        """Whether references of other masses are looked for."""


@dataclass(frozen=True)
class JudgedMatches:
    """Matches with (k,) is_decoy, q_value and posterior_error, NaN where nothing is known; and why not, empty where it is."""

    found: Found
    is_decoy: NDArray[np.bool_]
    q_value: NDArray[np.float64]
    posterior_error: NDArray[np.float64]
    unknown: str = ""

    def take(self, rows: NDArray) -> JudgedMatches:
        """Some of them."""
        return JudgedMatches(self.found.take(rows), self.is_decoy[rows], self.q_value[rows], self.posterior_error[rows], self.unknown)

    def joined(self, other: JudgedMatches) -> JudgedMatches:
        """These and others, by spectrum."""
        order = np.argsort(np.concatenate([self.found.spectrum, other.found.spectrum]), kind="stable")
        is_decoy, q_value, posterior_error = (
            np.concatenate([getattr(self, name), getattr(other, name)])[order] for name in ("is_decoy", "q_value", "posterior_error")
        )
        return JudgedMatches(self.found.joined(other.found), is_decoy, q_value, posterior_error, self.unknown)


def judge(
    same: Found, shifted: Callable[[NDArray[np.int64]], Found], references: References, settings: RateSettings
) -> JudgedMatches:  # fmt: skip
    """The matches with their error rates. `shifted` finds those of another mass, but of some spectra, which it is told."""
    unknown = why_unknown(references)
    judged = _rated(same, references, settings, unknown)
    if not settings.is_open:
        return judged
    # What is too little alike to be reported does not keep its spectrum from being compared with references of other masses.
    is_accepted = np.zeros(len(same), np.bool_)
    if not unknown:
        is_accepted = (judged.q_value <= settings.fdr) & (same.similarity >= settings.minimum_similarity)
    others = _rated(shifted(same.spectrum[is_accepted]), references, settings, unknown)
    # Where no rate tells it, the more similar one of each spectrum stays.
    best = np.zeros(int(max(same.spectrum.max(initial=-1), others.found.spectrum.max(initial=-1))) + 1)
    is_unrated = np.isnan(judged.q_value)
    best[same.spectrum[is_unrated]] = same.similarity[is_unrated]
    others = others.take(others.found.similarity > best[others.found.spectrum])
    return judged.take(is_accepted | ~np.isin(same.spectrum, others.found.spectrum)).joined(others)


def why_unknown(references: References) -> str:
    """Why no error rate can be told; empty where it can."""
    ratio = references.decoy_ratio
    if not references.is_decoy.any():
        return "the library has no decoys, and no peptides whose spectra change when they are shuffled"
    if ratio < _LEAST_RATIO:
        return f"only {ratio * 100:.0f} decoys stand beside a hundred references, too few for error rates (a fifth is needed)"
    return ""


def _rated(found: Found, references: References, settings: RateSettings, unknown: str) -> JudgedMatches:
    is_decoy = references.is_decoy[found.reference]
    q_value, posterior_error = np.full((2, len(found)), np.nan)
    # An entry that has no decoys is not rated by those of others.
    rows = np.flatnonzero(references.has_decoys[found.reference])
    if not unknown and len(rows):
        score, decoy, ratio = found.similarity[rows], is_decoy[rows], references.decoy_ratio
        by_match = q_values(score, decoy, plus_one=settings.plus_one, decoy_ratio=ratio)
        by_peptide = competition_q_values(score, decoy, *_hypotheses(references, found.reference[rows]))
        q_value[rows] = np.maximum(by_match, by_peptide)
        posterior_error[rows] = posterior_error_probabilities(score, decoy, ratio)
    return JudgedMatches(found, is_decoy, q_value, posterior_error, unknown)


def _hypotheses(references: References, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the hypotheses, peptides or compounds, of some references, and how many decoys compete with the target of each."""
    compound, is_decoy = _compounds(references, rows), references.is_decoy
    if references.decoys == "existing":
        return 2 * compound + is_decoy[rows], np.full(len(rows), references.decoy_ratio)
    # Equal decoys are left out, so that entries have different numbers of them.
    n_decoys = np.bincount(references.entry[is_decoy], minlength=len(references.entries.offsets))
    return compound, n_decoys[references.entry[rows]].astype(np.float64)


def _compounds(references: References, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the peptides' sequences or the compounds of some references; a decoy that was made of an entry has the number of the entry."""
    entry = pa.array(references.entry[rows])
    texts = [references.entries.texts[name].take(entry).cast(pa.large_string()) for name in ("sequence", "inchikey", "name")]
    # The first block of an InChIKey tells the skeleton: which one of its isomers it is, a spectrum does not.
    texts[1] = pa.compute.utf8_slice_codeunits(texts[1], 0, 14)
    codes: NDArray[np.int64] = pa.compute.coalesce(*texts).dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)

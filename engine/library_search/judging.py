"""How sure matches in a library are: those of the same mass and those of another in groups of their own, each by its own decoys.

A spectrum of no reference resembles a decoy as often as any other reference of its mass, whose decoy stands beside it. References of other
masses are a thousand times more, so that they are judged apart, and what is accepted of the same mass is not looked for among them (a
cascade: Kertesz-Farkas, Keich & Noble 2015, J Proteome Res 14:3027). Rates are of spectra and of distinct peptides or compounds, whichever
is the larger (`proteoscope.engine.matches.group_rates`): replicates of one spectrum find one false reference again and again. Nothing is
learnt.

Of a library of few peptides each has several decoys. A false match falls on any of a target and its k decoys with the same chance, so that
behind d decoys seen stand d / k false targets on average, and (d + 1) / k where a whole list is to be right (Keich, Tamura & Noble 2019, J
Proteome Res 18:585; He 2015, arXiv:1501.00537): with one decoy each, the one more that every list counts would be 4 % of 25 peptides. So it
holds for decoys that differ: of equal ones a library keeps one. Entries without decoys, as small molecules among peptides, get no rate.
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
from proteoscope.engine.matches.group_rates import group_rates

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
    # An entry that has no decoys beside it is not judged by those of others.
    rows = np.flatnonzero(references.has_decoys[found.reference])
    if not unknown and len(rows):
        some = found.take(rows)
        q_value[rows], posterior_error[rows] = group_rates(
            some.similarity, is_decoy[rows], _compounds(references, some.reference), some.is_shifted.astype(np.int64), np.zeros(2),
            plus_one=settings.plus_one, decoy_ratio=references.decoy_ratio,
        )  # fmt: skip
    return JudgedMatches(found, is_decoy, q_value, posterior_error, unknown)


def _compounds(references: References, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each peptide's sequence or compound, of some references: of a decoy that of its target, of further ones others."""
    entry = pa.array(references.entry[rows])
    texts = [references.entries.texts[name].take(entry).cast(pa.large_string()) for name in ("sequence", "inchikey", "name")]
    # The first block of an InChIKey tells the skeleton: which one of its isomers it is, a spectrum does not.
    texts[1] = pa.compute.utf8_slice_codeunits(texts[1], 0, 14)
    codes: NDArray[np.int64] = pa.compute.coalesce(*texts).dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    # Each of the shuffled peptides of a peptide is one of its own.
    return codes.astype(np.int64) + (int(codes.max(initial=-1)) + 2) * references.shuffle[rows].astype(np.int64)

"""Error rates of library matches, separately for matches of the same mass and of another mass, each estimated from its own decoys.

A spectrum without a correct reference is as likely to match a decoy as a false target of the same mass. References of other masses are a
thousand times more numerous. Matches with them therefore have separate rates, and spectra accepted at the same mass are not compared with
references of other masses (a cascade: Kertesz-Farkas, Keich & Noble 2015, J Proteome Res 14:3027). Nothing is trained.

Two rates are estimated, one from spectra and one from distinct peptides or compounds. The larger rate is used, since replicates of a
spectrum match the same false reference repeatedly. In the rate from spectra, each decoy counts for 1 / d false targets, with d decoys per
target. In the rate from peptides, each peptide, with all its charges and modified forms, competes with the decoys that were created from it
(`proteoscope.engine.statistics.multiple_competition`). Decoys contained in the library belong to no particular peptide: targets and decoys
are then separate hypotheses, and d is the ratio of decoys to targets in the library. Entries without decoys, such as small molecules in a
library of peptides, get no rate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import References
from proteoscope.engine.library_search.scoring import Matches
from proteoscope.engine.statistics.multiple_competition import competition_q_values
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["RatedMatches", "accepted_spectra", "cascade", "estimate_error_rates", "missing_fdr_reason"]

_MINIMUM_RATIO = 0.2  # decoys per target: with fewer, each would count for too many false targets to be reliable


@dataclass(frozen=True)
class RatedMatches(Matches):
    """Matches with error rates: `is_decoy`, `q_value` and `posterior_error`, each (k,), NaN if unknown."""

    is_decoy: NDArray[np.bool_]
    q_value: NDArray[np.float64]
    posterior_error: NDArray[np.float64]


def missing_fdr_reason(references: References) -> str:
    """Return the reason why error rates cannot be estimated, or ''."""
    ratio = references.decoy_ratio
    if not references.is_decoy.any():
        return "the library has no decoys, and no peptides whose spectra change when they are shuffled"
    if ratio < _MINIMUM_RATIO:
        return f"only {ratio * 100:.0f} decoys for every hundred references, too few for error rates (20 are needed)"
    return ""


def estimate_error_rates(matches: Matches, references: References, parameters: LibrarySearchParameters) -> RatedMatches:
    """Return the matches of a comparison with error rates."""
    is_decoy = references.is_decoy[matches.reference]
    q_value, posterior_error = np.full((2, len(matches)), np.nan)
    # Decoys of other entries do not rate an entry without decoys.
    rows = np.flatnonzero(references.has_decoys[matches.reference])
    if not missing_fdr_reason(references) and len(rows):
        score, decoy, ratio = matches.similarity[rows], is_decoy[rows], references.decoy_ratio
        by_match = q_values(score, decoy, plus_one=parameters.plus_one, decoy_ratio=ratio)
        by_peptide = competition_q_values(score, decoy, *_hypotheses(references, matches.reference[rows]))
        q_value[rows] = np.maximum(by_match, by_peptide)
        posterior_error[rows] = posterior_error_probabilities(score, decoy, ratio)
    return RatedMatches(**vars(matches), is_decoy=is_decoy, q_value=q_value, posterior_error=posterior_error)


def accepted_spectra(matches: RatedMatches, parameters: LibrarySearchParameters) -> NDArray[np.int64]:
    """Return the rows of the spectra with an accepted match, (s,) int64.

    Matches below the minimum similarity are not reported, and therefore not accepted. The returned spectra are not compared with references
    of other masses.
    """
    return matches.spectrum[(matches.q_value <= parameters.fdr) & (matches.similarity >= parameters.minimum_similarity)]


def cascade(same: RatedMatches, others: RatedMatches) -> RatedMatches:
    """Return one match per spectrum: the match in `others` (another mass) if there is one, otherwise the match in `same` (same mass).

    If the match in `same` has no q-value, the more similar of the two is returned.
    """
    best = np.zeros(int(max(same.spectrum.max(initial=-1), others.spectrum.max(initial=-1))) + 1)
    is_unrated = np.isnan(same.q_value)
    best[same.spectrum[is_unrated]] = same.similarity[is_unrated]
    others = others.take(others.similarity > best[others.spectrum])
    return same.take(~np.isin(same.spectrum, others.spectrum)).joined(others)


def _hypotheses(references: References, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return two arrays for the references in `rows`: number of the hypothesis (peptide or compound), and number of its decoys.

    If the library contains decoys, targets and decoys are separate hypotheses, and the second array is the ratio of decoys to targets.
    """
    compound, is_decoy = _compounds(references, rows), references.is_decoy
    if references.decoys == "existing":
        return 2 * compound + is_decoy[rows], np.full(len(rows), references.decoy_ratio)
    # Duplicate decoys are omitted, so the number of decoys varies between entries.
    n_decoys = np.bincount(references.entry[is_decoy], minlength=len(references.entries.offsets))
    return compound, n_decoys[references.entry[rows]].astype(np.float64)


def _compounds(references: References, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each reference that is equal for references of the same peptide sequence or compound.

    The decoys created from an entry have the number of the entry.
    """
    entry = pa.array(references.entry[rows])
    texts = [references.entries.texts[name].take(entry).cast(pa.large_string()) for name in ("sequence", "inchikey", "name")]
    # The first block of an InChIKey is the skeleton; spectra do not distinguish its isomers.
    texts[1] = pa.compute.utf8_slice_codeunits(texts[1], 0, 14)
    return np.asarray(pa.compute.coalesce(*texts).dictionary_encode().indices.fill_null(-1), np.int64)

"""Trials of the error rate of explanations: any explanation of a spectrum is wrong if its peptide was left out of the library."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.explained_spectra import (
    Explained,
    Library,
    cascade,
    identified_library,
    plan_other_masses,
    plan_same_mass,
    prepare_queries,
    score_other_masses,
    score_same_mass,
)
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.matches.identified_spectra import Identified
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["Trial", "explained", "leave_out"]


class Trial(NamedTuple):
    """Rows at q <= 0.01, rows of left-out peptides among these, and rows of retained peptides that were assigned another sequence."""

    rows: int
    left_out: int
    other: int


def explained(
    spectra: Spectra, rows: NDArray[np.int64], library: Library, parameters: ExplanationParameters, resources: Resources
) -> Explained:
    """Explain the spectra `rows` by peptides of the same mass and then of other masses, as the search does."""
    queries = prepare_queries(spectra, rows, library, parameters, resources)
    same = score_same_mass(plan_same_mass(queries, library, parameters), library, resources)
    if not parameters.mass_difference:
        return same
    others = plan_other_masses(queries, library, same.accepted(parameters.fdr), parameters)
    return cascade(same, score_other_masses(others, library, resources))


def leave_out(
    spectra: Spectra, identified: Identified, share: float, seed: int, parameters: ExplanationParameters, tolerance: Tolerance
) -> Trial:
    """Leave out a share of the sequences, retain one spectrum of each other peptide and charge, and explain all other spectra.

    Leucine and isoleucine are equal: sequences that differ only in these are left out together.
    """
    random, resources = np.random.default_rng(seed), Resources(2)
    _, alike = np.unique([peptide.replace("I", "L") for peptide in identified.sequences], return_inverse=True)
    sequence = alike[identified.sequence[identified.peptide]]
    is_left_out = (random.random(alike.max() + 1) < share)[sequence]
    # Rows are sorted best first.
    _, first = np.unique(identified.peptide * 100 + identified.charge, return_index=True)
    library = identified.take(np.sort(first[~is_left_out[first]]))
    rows = np.setdiff1d(np.arange(len(spectra)), library.spectrum)
    made = identified_library(spectra, library, "by", tolerance, parameters, resources)
    explanations = explained(spectra, rows, made, parameters, resources)
    accepted = explanations.take(
        ~explanations.is_decoy & (explanations.q_value <= 0.01) & (explanations.similarity >= parameters.minimum_similarity)
    )
    of = np.full(len(spectra), -1)
    of[identified.spectrum] = sequence
    left = np.zeros(len(spectra), np.bool_)
    left[identified.spectrum] = is_left_out
    joined = alike[identified.sequence[library.peptide[accepted.identified]]]
    own_sequence = of[accepted.spectrum]
    is_left_out = left[accepted.spectrum]
    return Trial(len(accepted), int(is_left_out.sum()), int(((own_sequence >= 0) & ~is_left_out & (own_sequence != joined)).sum()))

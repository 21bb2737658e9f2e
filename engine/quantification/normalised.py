"""Normalised amounts of all levels: samples scaled by their median ion, conditions centred on the proteins that do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import shortened
from proteoscope.engine.quantification.amounts import Amounts, Grouping, Levels, level_amounts, normalisation_factors
from proteoscope.engine.quantification.centre import Centre, unchanged_centre
from proteoscope.engine.quantification.changes import log2_amounts, model_fit
from proteoscope.engine.quantification.models import ComparisonModel
from proteoscope.engine.quantification.parameters import QuantificationParameters

__all__ = ["Normalised", "centre_messages", "normalised_levels"]


class Normalised(NamedTuple):
    """Normalised amounts.

    Attributes
    ----------
    levels : of peptidoforms, peptides and proteins. factor : (s,) float64, what the amounts of each sample were multiplied by.
    centres : of each comparison, in the order of the model; empty where nothing was centred.
    """

    levels: Levels
    factor: NDArray[np.float64]
    centres: tuple[Centre, ...]


def normalised_levels(
    ions: Amounts, grouping: Grouping, model: ComparisonModel | None, parameters: QuantificationParameters,
    plexes: NDArray[np.int64] | None = None, scaled: Callable[[Amounts], Amounts] = lambda amounts: amounts,
) -> Normalised:  # fmt: skip
    """Return the normalised amounts of all levels.

    Parameters
    ----------
    ions : n of them in s samples, not normalised. model : of the conditions that are compared, None without any.
    plexes : see `level_amounts`. scaled : makes plexes alike, at each level.
    """

    def levels_of(amounts: Amounts) -> Levels:
        return Levels(*(scaled(one) for one in level_amounts(amounts, grouping, parameters.protein_quantity, plexes)))

    factor = np.ones(ions.value.shape[1])
    if parameters.normalisation == "none":
        return Normalised(levels_of(ions), factor, ())
    factor = normalisation_factors(ions.value)
    levels = levels_of(ions.scaled(factor))
    if model is None:
        return Normalised(levels, factor, ())
    fitted = model_fit(log2_amounts(levels.proteins)[:, model.columns], model)
    centres = tuple(
        unchanged_centre(estimate, np.sqrt(fitted.variance * part))
        for estimate, part in zip(fitted.estimate.T, fitted.factor.T, strict=True)
    )
    shift = np.array([0.0, *(one.shift for one in centres)])
    if not shift.any():
        return Normalised(levels, factor, centres)
    moved = factor.copy()
    moved[model.columns] *= np.exp2(-shift[model.condition])
    moved /= np.exp(np.log(moved).mean() - np.log(factor).mean())
    # Ratios of scaled samples are those of scaled ions.
    return Normalised(Levels(*(one.scaled(moved / factor) for one in levels)), moved, centres)


def centre_messages(centres: tuple[Centre, ...], groups: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Return a sentence for each comparison, and whether it is a warning."""
    found = []
    for centre, name in zip(centres, groups[1:], strict=bool(centres)):
        pair = f"{shortened(name)} / {shortened(groups[0])}"
        if np.isnan(centre.share):
            found.append(
                (f"{pair}: too few proteins are measured to find those that do not change; samples stay normalised by the median", True)
            )
            continue
        share = f"{100 * centre.share:.0f} % of proteins"
        place = f"{pair}: centred on the {share} that do not change, {centre.shift:+.3f} log2 from the median ion"
        if centre.is_determined:
            found.append((place, False))
            continue
        why = (
            f"nearly as many proteins lie at {centre.other:+.2f} log2" if np.isfinite(centre.other) else "fewer than half of all lie there"
        )
        found.append(
            (f"{place}, but {why}: the centre is not determined, and all changes depend on it; compare them with a quantity known to be"
             " equal, or quantify with normalisation none", True)
        )  # fmt: skip
    return found

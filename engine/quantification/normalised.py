"""Normalisation of amounts: plexes are scaled by a reference, samples by their median ion, conditions by unchanged proteins.

The log ratios of proteins between two conditions are modelled as a mixture: unchanged proteins, which differ from a centre only by their
error, and changed proteins at any distance from it. The mixture is fitted by expectation-maximisation (Dempster et al. 1977, J. R. Stat.
Soc. B 39:1) from several starts; the centre with the largest fraction of proteins is used.

Changes that are small relative to the error of a protein cannot be separated from the centre, and shift it if most have the same direction.
Such changes cause an excess of proteins near the centre on one side, without an excess farther away; balanced changes do not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import shortened
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.quantification.amounts import (
    Grouping,
    Levels,
    MeasuredIons,
    RawQuantities,
    State,
    level_amounts,
    logarithms,
    normalisation_factors,
)
from proteoscope.engine.quantification.changes import model_fit
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.models import ComparisonModel
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.spectral_counts import abundance_factors, spectra_by_sample
from proteoscope.engine.spectra.spooling import row_blocks

__all__ = [
    "Centre",
    "Normalised",
    "Quantities",
    "normalised_levels",
    "normalised_quantities",
    "plex_scaling",
    "unchanged_centre",
    "warn_of_quantities",
]

_FEWEST = 20
"""Minimum number of proteins for fitting a mixture."""
_OFFSETS = np.array([2.2, 4.0, 6.0, 9.0, 13.0])
"""Distances of changed proteins from the centre, in units of the error, starting with the smallest that can be distinguished.

`_WIDTH` is the standard deviation of each component. Larger distances are covered by a uniform component.
"""
_WIDTH = 1.1
_STARTS = (0.1, 0.25, 0.5, 0.75, 0.9)
_MAXIMUM_ITERATIONS, _CONVERGED = 60, 1e-5
_LEAST_SHARE, _NEARLY = 0.5, 0.7
_EXCESS, _EXCESS_OF_FEW = 0.065, 2.0
"""Minimum excess (fraction of proteins) on one side of the centre that indicates small changes in one direction.

The value was chosen with ten simulated tables of 2,000 proteins. With n proteins, the minimum is the first number, or the second number
divided by the square root of n if that is larger.
"""


class Centre(NamedTuple):
    """Centre of the log2 ratios of a comparison: the log2 ratio of unchanged proteins.

    Attributes
    ----------
    shift : float
        log2 ratio of unchanged proteins; 0 with too few proteins.
    unchanged_fraction : float
        Fraction of proteins at the centre; NaN with too few proteins.
    other : float
        log2 ratio of another centre with nearly as many proteins; NaN if there is no other centre.
    excess : float
        Fraction of proteins just above the centre minus the fraction just below, if it indicates small changes in one direction; otherwise
        0.
    """

    shift: float
    unchanged_fraction: float
    other: float
    excess: float = 0.0

    @property
    def is_determined(self) -> bool:
        """True if most proteins are at the centre, no other centre has nearly as many, and both sides are balanced."""
        return self.unchanged_fraction >= _LEAST_SHARE and bool(np.isnan(self.other)) and not self.excess


def unchanged_centre(difference: NDArray[np.float64], error: NDArray[np.float64]) -> Centre:
    """Return the centre of the log2 ratios of unchanged proteins.

    Parameters
    ----------
    difference : ndarray of float64, shape (p,)
        log2 ratios, NaN if missing.
    error : ndarray of float64, shape (p,)
        Standard errors of the log2 ratios, above 0.

    Returns
    -------
    Centre

    Examples
    --------
    >>> difference = np.concatenate([np.tile([0.4, 0.6], 30), np.tile([1.9, 2.1], 20)])
    >>> centre = unchanged_centre(difference, np.full(100, 0.1))
    >>> round(centre.shift, 2), round(centre.unchanged_fraction, 1), centre.is_determined
    (0.5, 0.6, True)
    """
    used = np.isfinite(difference) & (error > 0) & np.isfinite(error)
    if used.sum() < _FEWEST:
        return Centre(0.0, float("nan"), float("nan"))
    d, e = difference[used], error[used]
    result = [_fitted(d, e, float(start)) for start in np.quantile(d, _STARTS)]
    shift, shares = max(result, key=lambda entry: entry[1][0])
    far = 2 * float(np.median(e))
    other = next((position for position, part in result if abs(position - shift) > far and part[0] > _NEARLY * shares[0]), float("nan"))
    return Centre(shift, float(shares[0]), other, _excess(shares, len(d)))


def _excess(shares: NDArray[np.float64], n_proteins: int) -> float:
    """Return `Centre.excess`, given the fractions `shares` of the components (see `_fitted`).

    The result is 0 if the excess is small, or not larger than the fraction of proteins farther from the centre.
    """
    below, above = shares[len(_OFFSETS)], shares[len(_OFFSETS) + 1]
    excess, n_far = float(above - below), float(shares[1:].sum() - above - below)
    return excess if abs(excess) > max(_EXCESS, _EXCESS_OF_FEW / np.sqrt(n_proteins), n_far) else 0.0


def _fitted(d: NDArray[np.float64], e: NDArray[np.float64], centre: float) -> tuple[float, NDArray[np.float64]]:
    """Return the centre, and the fractions of the mixture's components, after fitting from the start value `centre`.

    `d` are log2 ratios, and `e` their errors. The components are unchanged proteins, proteins at each of several distances from the centre
    (ascending, the negative distances first), and proteins with a uniform distribution.
    """
    scale = float(np.median(e))
    offsets = np.concatenate([-_OFFSETS[::-1], _OFFSETS]) * scale
    spread = np.sqrt(e**2 + (_WIDTH * scale) ** 2)[:, None]
    uniform = np.full(len(d), 1 / (np.ptp(d) + scale))
    fraction = np.concatenate([[0.6], np.full(len(offsets), 0.38 / len(offsets)), [0.02]])
    for _ in range(_MAXIMUM_ITERATIONS):
        near = np.exp(-0.5 * ((d - centre) / e) ** 2) / e
        far = np.exp(-0.5 * ((d[:, None] - centre - offsets) / spread) ** 2) / spread
        part = np.column_stack([near, far, np.sqrt(2 * np.pi) * uniform]) * fraction
        part /= part.sum(axis=1, keepdims=True)
        fraction = part.mean(axis=0)
        weight = part[:, 0] / e**2
        if not weight.sum() > 0:
            break
        before, centre = centre, float((weight * d).sum() / weight.sum())
        if abs(centre - before) < _CONVERGED * scale:
            break
    return centre, fraction


class Normalised(NamedTuple):
    """Normalised amounts.

    Attributes
    ----------
    levels : Levels
        Amounts of peptidoforms, peptides and proteins.
    factor : ndarray of float64, shape (s,)
        Factor by which the amounts of each sample were multiplied.
    centres : tuple of Centre
        Centre of each comparison, in the order of the model; empty if conditions are not centred.
    """

    levels: Levels
    factor: NDArray[np.float64]
    centres: tuple[Centre, ...] = ()


@dataclass(frozen=True)
class Quantities:
    """Normalised amounts of m peptidoforms, of their sequences and of p proteins in s samples, with spectral counts.

    Attributes
    ----------
    design : Design
        Samples and their files.
    identified : Identified
        Identified peptidoforms and their matches.
    normalised : Normalised
        Normalised amounts.
    nsaf : ndarray of float64, shape (p, s)
        Normalised spectral abundance factors.
    psms : tuple of ndarray of int32
        Spectral counts of peptidoforms (m, s), sequences (sequences, s) and proteins (p, s).
    """

    design: Design
    identified: Identified
    normalised: Normalised
    nsaf: NDArray[np.float64]
    psms: tuple[NDArray[np.int32], ...]

    @property
    def proteins(self) -> RawQuantities:
        """Normalised amounts of proteins."""
        return self.normalised.levels.proteins


def normalised_quantities(
    identified: Identified,
    design: Design,
    measured: MeasuredIons,
    model: ComparisonModel | None,
    parameters: QuantificationParameters,
    spool: Path | None = None,
) -> Quantities:
    """Return normalised amounts of peptidoforms, peptides and proteins by sample.

    Parameters
    ----------
    identified : Identified
        Identified peptidoforms and their matches.
    design : Design
        Samples and their files.
    measured : MeasuredIons
        Amounts of ions.
    model : ComparisonModel or None
        Model of the compared conditions.
    parameters : QuantificationParameters
        Parameters of the quantification.
    spool : Path or None
        Folder of temporary files for large tables; None to stay in memory.

    Returns
    -------
    Quantities
    """
    sequence, protein, n_proteins = identified.forms.sequence, identified.protein, len(identified.proteins)
    of_match = identified.matches.form, sequence[identified.matches.form], protein[sequence[identified.matches.form]]
    numbers = len(identified.forms), len(identified.sequences), n_proteins
    psms = tuple(spectra_by_sample(identified, design, item, n, spool) for item, n in zip(of_match, numbers, strict=True))
    nsaf = abundance_factors(psms[2], identified.proteins.length)
    if parameters.method == "counts":
        sequences = measured.ions.summed(sequence, len(identified.sequences), spool=spool)
        levels = Levels(measured.ions, sequences, RawQuantities.from_values(np.where(nsaf > 0, nsaf, np.nan)))
        return Quantities(design, identified, Normalised(levels, np.ones(len(design.samples))), nsaf, psms)
    grouping = Grouping(measured.form, sequence, protein, n_proteins)
    scaling = plex_scaling(design, parameters)
    levels_of_ions = normalised_levels(measured.ions, grouping, model, parameters, *scaling, spool=spool)
    return Quantities(design, identified, levels_of_ions, nsaf, psms)


def plex_scaling(
    design: Design, parameters: QuantificationParameters
) -> tuple[NDArray[np.int64] | None, Callable[[RawQuantities], RawQuantities]]:
    """Return the plex of each sample, None without isobaric labels, and the function that scales plexes to their reference."""
    if parameters.method != "tmt":
        return None, lambda amounts: amounts
    if not parameters.reference:
        return design.plexes, lambda amounts: amounts
    return design.plexes, lambda amounts: _scaled_to_reference(amounts, design, parameters.reference)


def normalised_levels(
    ions: RawQuantities,
    grouping: Grouping,
    model: ComparisonModel | None,
    parameters: QuantificationParameters,
    plexes: NDArray[np.int64] | None = None,
    scaled: Callable[[RawQuantities], RawQuantities] = lambda amounts: amounts,
    *,
    spool: Path | None = None,
) -> Normalised:
    """Return the normalised amounts of peptidoforms, peptides and proteins.

    Parameters
    ----------
    ions : RawQuantities
        Amounts of n ions in s samples before normalisation.
    grouping : Grouping
        Assignment of ions to peptidoforms, peptides and proteins.
    model : ComparisonModel or None
        Model of the compared conditions.
    parameters : QuantificationParameters
        Parameters of the quantification.
    plexes : ndarray of int64, shape (s,), or None
        Index of each sample's plex (see `level_amounts`).
    scaled : callable
        Function that scales the plexes of a level to a common reference.
    spool : Path or None
        Folder of temporary files for large tables.

    Returns
    -------
    Normalised
    """
    is_normalised = parameters.normalisation != "none"
    factor = normalisation_factors(ions.value) if is_normalised else np.ones(ions.value.shape[1])
    levels = Levels(*map(scaled, level_amounts(ions, grouping, parameters.protein_quantity, plexes, factor=factor, spool=spool)))
    if model is None or not is_normalised:
        return Normalised(levels, factor)
    fitted = model_fit(levels.proteins.log2[:, model.columns], model)
    centres = tuple(
        unchanged_centre(estimate, np.sqrt(fitted.variance * part))
        for estimate, part in zip(fitted.estimate.T, fitted.factor.T, strict=True)
    )
    shift = np.array([0.0, *(centre.shift for centre in centres)])
    if not shift.any():
        return Normalised(levels, factor, centres)
    moved = factor.copy()
    moved[model.columns] *= np.exp2(-shift[model.condition])
    moved /= np.exp(np.log(moved).mean() - np.log(factor).mean())
    for level in levels:  # scaling samples afterwards is equivalent to scaling their ions
        level.scale(moved / factor)
    return Normalised(levels, moved, centres)


def _scaled_to_reference(amounts: RawQuantities, design: Design, reference: str) -> RawQuantities:
    """Scale each plex, row by row, such that its reference is equal in all plexes; the amounts are changed in place and returned.

    The common value is the geometric mean, over plexes, of the mean of the reference channels (internal reference scaling; Plubell et al.
    2017, Mol. Cell. Proteomics 16:873). A row without a value in the reference of a plex has no values in the samples of the plex.
    """
    plexes, is_reference = design.plexes, np.array([sample.condition == reference for sample in design.samples])
    for rows in row_blocks(amounts.value, amounts.state):
        before = amounts.value[rows]
        pools = np.full((len(before), int(plexes.max()) + 1), np.nan)
        for plex in range(pools.shape[1]):
            pools[:, plex] = _means(before[:, is_reference & (plexes == plex)])
        logs = logarithms(pools)
        value = before * np.exp(_means(logs)[:, None] - logs)[:, plexes]
        amounts.state[rows][np.isnan(value) & ~np.isnan(before)] = State.REFUSED
        amounts.value[rows] = value
    return amounts


def _means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each row's values, ignoring NaN; NaN without values."""
    count = (~np.isnan(values)).sum(axis=1)
    return np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)


def warn_of_quantities(
    quantities: Quantities, model: ComparisonModel | None, parameters: QuantificationParameters, progress: Progress
) -> None:
    """Warn about empty samples, amounts without a ratio to other samples, and plexes without a reference; report the centres."""
    proteins, design = quantities.proteins, quantities.design
    for number in np.flatnonzero(np.isnan(proteins.value).all(axis=0)).tolist():
        progress.message(f"Sample {design.samples[number].name} has no quantity of any protein", "warning")
    is_apart = proteins.state == State.NO_SHARED_ION
    if is_apart.any():
        progress.message(
            f"{int(is_apart.any(axis=1).sum()):,} proteins lack a quantity in some samples ({int(is_apart.sum()):,} values):"
            " these samples share no ion with the others, so that they have no ratio (state 'no shared ion')"
        )
    n_plexes = len(np.unique(design.plexes))
    if parameters.method == "tmt" and n_plexes > 1 and not parameters.reference:
        progress.message(
            f"{n_plexes} plexes and no reference: quantities in different plexes are not comparable, but comparisons of conditions include"
            " the plex as a block; with 'reference', give the condition of the channels that contain the same sample in each plex",
            "warning",
        )
    first, *others = ("",) if model is None else model.groups
    for centre, name in zip(quantities.normalised.centres, others, strict=False):
        _show_centre(centre, f"{shortened(name)} / {shortened(first)}", progress)


def _show_centre(centre: Centre, pair: str, progress: Progress) -> None:
    """Report the centre of a comparison; warn if it is not determined."""
    if np.isnan(centre.unchanged_fraction):
        text = f"{pair}: too few proteins are measured to find unchanged ones; samples remain normalised by the median"
        return progress.message(text, "warning")
    unchanged = f"the {100 * centre.unchanged_fraction:.0f} % of proteins that are unchanged"
    text = f"{pair}: centred on {unchanged}, {centre.shift:+.3f} log2 from the median ion"
    if centre.is_determined:
        return progress.message(text)
    why = "these are fewer than half of all proteins"
    if np.isfinite(centre.other):
        why = f"nearly as many proteins are at {centre.other:+.2f} log2"
    elif centre.excess:
        side = "above" if centre.excess > 0 else "below"
        why = f"{100 * abs(centre.excess):.0f} % more are just {side} it than on the other side, as with small changes in one direction"
    return progress.message(
        f"{text}, but {why}: the centre is not determined, and all changes depend on it; compare them with a quantity known to be"
        " equal, or quantify with normalisation none",
        "warning",
    )

"""Linear models of compared conditions with blocking factors, fitted to each protein by least squares over samples with a quantity.

A model has a mean for each condition and a shift for each level of a blocking factor (plex, batch or subject). Effects of a block are then
not mistaken for changes, and differences between the subjects of a paired design do not count as error (Smyth 2004, Stat. Appl. Genet. Mol.
Biol. 3:3; limma user's guide, sections 9.4 and 9.7).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ParameterError, shortened
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.quantification.design import BLOCKS, Design
from proteoscope.engine.quantification.parameters import QuantificationParameters

__all__ = ["ComparisonModel", "Fit", "comparison_model", "fit", "planned_model"]

_ZERO = 1e-8
"""Relative limit below which eigenvalues are treated as 0; entries of the matrices are sums of zeros and ones."""
_VALUES_OF_CHUNK = 1 << 22


@dataclass(frozen=True)
class ComparisonModel:
    """Linear model of the log quantities in the s samples of c compared conditions.

    Attributes
    ----------
    groups : tuple of str, length c
        Names of the conditions; each further condition is compared with the first.
    columns : ndarray of int64, shape (s,)
        Indices of the samples in the design.
    condition : ndarray of int64, shape (s,)
        Index of each sample's condition.
    matrix : ndarray of float64, shape (s, k)
        Model matrix: c columns of conditions, followed by the columns of blocking factors.
    blocks : tuple of str
        Names of the blocking factors in the model.
    messages : tuple of str
        Messages for the user about blocking factors that are not in the model.
    """

    groups: tuple[str, ...]
    columns: NDArray[np.int64]
    condition: NDArray[np.int64]
    matrix: NDArray[np.float64]
    blocks: tuple[str, ...]
    messages: tuple[str, ...] = ()

    @property
    def contrasts(self) -> NDArray[np.float64]:
        """Contrasts of each further condition with the first, (c - 1, k) float64."""
        n = len(self.groups)
        result = np.zeros((n - 1, self.matrix.shape[1]))
        result[np.arange(n - 1), np.arange(1, n)] = 1
        result[:, 0] = -1
        return result


class Fit(NamedTuple):
    """Least-squares fit of a model to p proteins.

    Attributes
    ----------
    estimate : ndarray of float64, shape (p, contrasts)
        Estimated contrasts; NaN if the samples with the protein cannot separate the conditions.
    factor : ndarray of float64, shape (p, contrasts)
        Variance of the estimate relative to the residual variance.
    variance : ndarray of float64, shape (p,)
        Residual variance, NaN without degrees of freedom.
    degrees : ndarray of float64, shape (p,)
        Residual degrees of freedom.
    """

    estimate: NDArray[np.float64]
    factor: NDArray[np.float64]
    variance: NDArray[np.float64]
    degrees: NDArray[np.float64]


def fit(logs: NDArray[np.float64], matrix: NDArray[np.float64], contrasts: NDArray[np.float64]) -> Fit:
    """Fit a model to each protein over the samples with a quantity.

    Parameters
    ----------
    logs : ndarray of float64, shape (p, s)
        log quantities, NaN if missing.
    matrix : ndarray of float64, shape (s, k)
        Model matrix.
    contrasts : ndarray of float64, shape (c, k)
        Contrasts to estimate, as combinations of the k coefficients.

    Returns
    -------
    Fit
    """
    n, n_contrasts = len(logs), len(contrasts)
    result = Fit(np.full((n, n_contrasts), np.nan), np.full((n, n_contrasts), np.nan), np.full(n, np.nan), np.zeros(n))
    some = max(1, _VALUES_OF_CHUNK // max(1, len(matrix), matrix.shape[1] ** 2))
    for start in range(0, n, some):
        part = _fit_some(logs[start : start + some], matrix, contrasts)
        for column, values in zip(result, part, strict=True):
            column[start : start + some] = values
    return result


def _fit_some(logs: NDArray[np.float64], matrix: NDArray[np.float64], contrasts: NDArray[np.float64]) -> Fit:
    has = ~np.isnan(logs)
    count = has.sum(axis=1)
    # Condition columns sum to one in each sample, so a constant changes no contrast; subtracting it reduces rounding errors.
    middle = np.where(has, logs, 0.0).sum(axis=1) / np.maximum(count, 1)
    value = np.where(has, logs - middle[:, None], 0.0)
    # Many proteins are in the same samples. Sums of zeros and ones are exact in any order. Quantities are summed by einsum, since the order
    # in matrix products may depend on the number of threads.
    patterns, which = np.unique(has, axis=0, return_inverse=True)
    which = which.reshape(-1)
    outer = (matrix[:, :, None] * matrix[:, None, :]).reshape(len(matrix), -1)
    normal = (patterns.astype(np.float64) @ outer).reshape(len(patterns), matrix.shape[1], matrix.shape[1])
    inverse, rank = _pseudo_inverses(normal)
    reached = contrasts @ inverse @ normal
    is_estimable = (np.abs(reached - contrasts).max(axis=2) < 1e-6)[which]
    factor = np.einsum("ck,pkl,cl->pc", contrasts, inverse, contrasts, optimize=False)[which]
    right = np.einsum("ps,sk->pk", value, matrix, optimize=False)
    coefficient = np.einsum("pkl,pl->pk", inverse[which], right, optimize=False)
    left = np.where(has, value - np.einsum("pk,sk->ps", coefficient, matrix, optimize=False), 0.0)
    degrees = (count - rank[which]).astype(np.float64)
    variance = np.where(degrees > 0, (left**2).sum(axis=1) / np.maximum(degrees, 1.0), np.nan)
    estimate = np.einsum("ck,pk->pc", contrasts, coefficient, optimize=False)
    return Fit(np.where(is_estimable, estimate, np.nan), np.where(is_estimable, factor, np.nan), variance, degrees)


def _pseudo_inverses(normal: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return pseudo-inverses and ranks of positive semi-definite matrices, (p, k, k) and (p,)."""
    values, vectors = np.linalg.eigh(normal)
    is_used = values > _ZERO * np.maximum(values[:, -1:], 1.0)
    parts = np.where(is_used, 1 / np.where(is_used, values, 1.0), 0.0)
    inverse = (vectors * parts[:, None, :]) @ vectors.transpose(0, 2, 1)
    return inverse, is_used.sum(axis=1)


def comparison_model(design: Design, groups: tuple[str, ...], reference: str = "") -> ComparisonModel:
    """Return the model that compares conditions of a design, including blocking factors.

    Parameters
    ----------
    design : Design
        Samples and their files.
    groups : tuple of str
        Names of the conditions.
    reference : str
        Condition by which plexes are scaled; if given, plexes are not a blocking factor if they cannot be separated from conditions.

    Returns
    -------
    ComparisonModel

    Raises
    ------
    ParameterError
        If a blocking factor cannot be separated from the conditions, some samples have no level of the factor, or no degrees of freedom
        remain to estimate errors.
    """
    columns = np.array([i for i, sample in enumerate(design.samples) if sample.condition in groups], np.int64)
    condition = np.array([groups.index(design.samples[i].condition) for i in columns.tolist()], np.int64)
    means = (condition[:, None] == np.arange(len(groups))).astype(np.float64)
    model = ComparisonModel(groups, columns, condition, means, ())
    used, messages, parts = [], [], [means]
    for name in BLOCKS:
        number, message = _block_levels(design, columns, name)
        if message:
            messages.append(message)
        if number is None:
            continue
        block = (number[:, None] == np.arange(1, number.max() + 1)).astype(np.float64)
        lost = _inseparable(model, np.concatenate([means, block], axis=1))
        if lost and not (name == "plex" and reference):
            raise ParameterError(_confounded(name, lost, groups[0]))
        if lost:
            messages.append(
                "Plexes are not a block of the comparison: conditions are in different plexes, which only the reference makes comparable"
            )
            continue
        used.append(name)
        parts.append(block)
    matrix = np.concatenate(parts, axis=1)
    if lost := _inseparable(model, matrix):
        raise ParameterError(_confounded(" and ".join(used), lost, groups[0]))
    if np.linalg.matrix_rank(matrix) >= len(columns):
        raise ParameterError(
            f"{' and '.join(used)}: with these blocks, the error cannot be estimated from the {len(columns)} samples of"
            f" {shortened(', '.join(groups))}; leave a column out of the design, or add samples"
        )
    return ComparisonModel(groups, columns, condition, matrix, tuple(used), tuple(messages))


def planned_model(design: Design, parameters: QuantificationParameters, progress: Progress) -> ComparisonModel | None:
    """Return the model that compares the conditions of a design; None if no conditions are compared. Report conditions left out.

    Raises
    ------
    ParameterError
        If conditions named by the parameters cannot be compared.
    """
    groups = design.groups(parameters.conditions, parameters.reference)
    if not groups:
        conditions = [name for name in design.conditions if name != parameters.reference]
        if len(conditions) == 1:
            progress.message(f"Nothing is compared: all samples have one condition, {shortened(conditions[0])}", "warning")
        elif conditions:
            progress.message("Conditions are not compared: this needs two conditions of at least two samples each", "warning")
        return None
    try:
        model = comparison_model(design, groups, parameters.reference)
    except ParameterError as error:
        if parameters.conditions:
            raise
        progress.message(f"Conditions are not compared: {error}", "warning")
        return None
    if left_out := [name for name in design.conditions if name not in groups]:
        progress.message(f"Conditions that are not compared, since they have one sample or were not selected: {', '.join(left_out)}")
    for message in model.messages:
        progress.message(message, "warning")
    if model.blocks:
        progress.message(f"Blocks of the comparison: {', '.join(model.blocks)}")
    return model


def _block_levels(design: Design, columns: NDArray[np.int64], name: str) -> tuple[NDArray[np.int64] | None, str]:
    """Return the level of a blocking factor in each sample, and a message if the factor cannot be used.

    Instead of the levels, None is returned if no sample has a level, or if all levels are equal or all are different.

    Raises
    ------
    ParameterError
        If only some of the samples have a level.
    """
    texts = [getattr(design.samples[i], name) for i in columns.tolist()]
    if not any(texts):
        return None, ""
    if "" in texts:
        lacking = shortened(design.samples[int(columns[texts.index("")])].name)
        raise ParameterError(
            f"the design has a {name} for other samples, but not for sample {lacking}: complete this column, or leave it out"
        )
    distinct, number = np.unique(texts, return_inverse=True)
    if len(distinct) == 1:
        return None, ""
    if len(distinct) == len(texts):
        return None, f"The column '{name}' of the design is not used: its values differ in all samples, so that they form no groups"
    return number.astype(np.int64), ""


def _inseparable(model: ComparisonModel, matrix: NDArray[np.float64]) -> list[str]:
    """Return the conditions whose difference from the first cannot be separated from the blocking factors."""
    result = fit(np.zeros((1, len(matrix))), matrix, replace(model, matrix=matrix).contrasts)
    return [name for name, is_lost in zip(model.groups[1:], np.isnan(result.estimate[0]).tolist(), strict=True) if is_lost]


def _confounded(block: str, lost: list[str], first: str) -> str:
    remedy = (
        "give the reference that all plexes contain (reference), or distribute each condition over several plexes"
        if block == "plex"
        else (f"distribute each condition over several levels of {block}, or leave out this column of the design to compare them anyway")
    )
    return (
        f"{shortened(', '.join(lost))} cannot be compared with {shortened(first)}: conditions and {block} change together, so that a"
        f" difference may be due to the {block}; {remedy}"
    )

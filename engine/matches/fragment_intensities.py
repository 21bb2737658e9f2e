"""Predicted fragment intensities: their agreement with the peaks of a match.

A small shipped network (`resources/fragmentation`) predicts the ions b, b2+, y and y2+ of each bond from residues and charge. It ignores
modifications, as the model it was trained on; labels whose tags take the charge from fragments (TMT, iTRAQ) would need their own network.

Instruments and collision energies favour some ion types, or small fragments. Scale and shift of the predicted logarithms of each type are
therefore learnt from the run: from the best spectrum of each peptide and charge among confident matches, by ridge regression towards the
shipped values. A match is compared with a model trained without its *peptide*, in any form and with its decoy partner (folds by peptide):
decoys and targets are treated equally, and none is evaluated by a model trained on it. More flexible models, up to a last layer per run and
boosted trees, came closer to the peaks of correct and wrong matches alike without separating them better.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from proteoscope import resources
from proteoscope.engine.arrays import run_offsets, take_runs
from proteoscope.engine.chemistry.modifications import SearchModification
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError, StorageError, shortened
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.rescoring import folds_by_peptide
from proteoscope.kernels.cpu.fragment_intensities import FLOOR, IONS, MEASURES, Network, compare_intensities, network_shapes, predict_bonds
from proteoscope.kernels.partitions import Partition, equal_partitions

__all__ = [
    "FEATURES",
    "FEWEST_PEPTIDES",
    "LONGEST_PREDICTED",
    "IntensityModel",
    "IntensitySettings",
    "MatchColumns",
    "MatchedBonds",
    "has_predicted_series",
    "learn_intensities",
    "load_network",
    "predicted_bonds",
    "predicted_shares",
    "why_no_label",
    "why_not_predicted",
]

Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

FEATURES = tuple(f"intensity_{name}" for name in MEASURES)
"""Names of the columns."""
_NETWORK = ("fragmentation", "intensities.npz")
_LARGEST_WEIGHT = 1e3
_FOLDS, _SEED = 5, 0  # rescoring divides by other seeds
FEWEST_PEPTIDES = 40  # with fewer, what is learnt is rather worse than what ships
_MAXIMUM_MATCHES = 4000  # learnt from: more change eight numbers no further
_PRIOR_BONDS = 30.0  # that the shipped scale and shift are worth
_LOW_RESOLUTION = 0.1  # thomson: as wide a fragment tolerance is that of an ion trap, where ions break otherwise than in the shipped model
_LABELS = ("TMT", "iTRAQ")
LONGEST_PREDICTED = 63
"""Maximum number of residues of a peptide for the network."""


class IntensitySettings(Protocol):
    """Settings that decide whether intensities are predicted, by the names that every search's parameters have for it."""

    predicted_intensities: bool
    intensity_transform: Literal["none", "square-root", "logarithm", "rank"]


def has_predicted_series(series: str) -> bool:
    """Return True for ion series, as symbols, of spectra whose intensities are predicted."""
    return set("by") <= set(series)


def why_not_predicted(settings: IntensitySettings, series: Sequence[str], modifications: Sequence[SearchModification]) -> str:
    """Return why intensities cannot be predicted for these ion series and modifications, or ''.

    With several series, only spectra with b and y ions are predicted.
    """
    if not any(map(has_predicted_series, series)):
        return "the ion series are not b and y"
    if settings.intensity_transform != "square-root":
        return f"the intensity transform is {settings.intensity_transform}, not square-root"
    return why_no_label(modifications)


def why_no_label(modifications: Sequence[SearchModification]) -> str:
    """Why intensities of peptides with one of these modifications cannot be predicted, in words; empty where they can."""
    label = next((modification.name for modification in modifications if modification.name.startswith(_LABELS)), "")
    return f"the label {label} changes them" if label else ""


def predicted_bonds(
    residues: NDArray[np.uint8], offsets: Integers, charge: Integers, resources: Resources
) -> tuple[NDArray[np.float32], Integers]:
    """Return the shipped network's predictions for n peptides: log2 of `FLOOR` plus the intensity fractions of their bonds' ions.

    Parameters
    ----------
    residues, offsets
        CSR, residues as capitals, 2 to `LONGEST_PREDICTED` of each peptide.
    charge : (n,)
        Of the precursor.

    Returns
    -------
    (bonds, IONS) float32, and (n,) the first bond of each peptide.
    """
    starts = offsets - np.arange(len(offsets))
    out, rows, network = np.empty((starts[-1], IONS), np.float32), np.arange(len(charge)), load_network(_path())

    def predict(part: Partition) -> None:
        predict_bonds(network, residues, offsets, charge, rows, starts, part.first, part.last, out)

    parts = equal_partitions(np.diff(offsets), resources.threads)
    run_on_threads(predict, parts, resources.threads, resources.progress, steps=lambda _: 0)
    return out, starts[:-1]


@dataclass(frozen=True)
class MatchedBonds:
    """Peptides of n matches, and the peaks of their bonds.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Starts of peptides.
    residues : (r,) uint8
        Capitals.
    weight : (r, IONS) float32
        Square roots of intensity fractions of the peaks that match ions of the bond after each residue, 0 without a match and in the last
        row of each peptide.
    is_known : (n,) bool
        True for spectra with b and y ions; nothing is predicted for others.
    """

    offsets: Integers
    residues: NDArray[np.uint8]
    weight: NDArray[np.float32]
    is_known: Truths

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: Integers) -> MatchedBonds:
        """Return matches by row, in the given order."""
        residues, offsets = take_runs(self.residues, self.offsets, rows)
        index, _ = take_runs(np.arange(len(self.residues)), self.offsets, rows)
        return MatchedBonds(offsets, residues, self.weight[index], self.is_known[rows])

    def joined(self, other: MatchedBonds) -> MatchedBonds:
        """Append the matches of another."""
        offsets = np.concatenate((self.offsets, other.offsets[1:] + self.offsets[-1]))
        columns = ((getattr(self, name), getattr(other, name)) for name in ("residues", "weight", "is_known"))
        return MatchedBonds(offsets, *map(np.concatenate, columns))


class MatchColumns(NamedTuple):
    """Values of the matches before their intensities are compared; each (n,).

    `peptide` is the same for all forms of a peptide and for its decoy partner; `is_confident` marks targets to learn from.
    """

    charge: Integers
    peptide: Integers
    score: NDArray[np.float64]
    is_confident: Truths


@dataclass(frozen=True)
class IntensityModel:
    """Predictor of a run's intensities; `is_corrected` by the run, each fold of peptides from the others, or as shipped."""

    network: Network
    is_corrected: bool

    def features(self, bonds: MatchedBonds, charge: Integers, peptide: Integers, resources: Resources) -> dict[str, NDArray[np.float64]]:
        """Return the agreement of predicted intensities with the peaks of n matches: columns by name, (n,) float64, NaN if not predicted.

        `charge` and `peptide` (n,) are as in `MatchColumns`.
        """
        model = folds_by_peptide(peptide, _FOLDS, _SEED) if self.is_corrected else np.zeros(len(bonds), np.int64)
        out = np.zeros((len(bonds), len(FEATURES)))

        def compare(part: Partition) -> None:
            compare_intensities(self.network, bonds.residues, bonds.offsets, charge, bonds.weight, model, part.first, part.last, out)

        parts = equal_partitions(np.ones(len(bonds)), resources.threads)
        run_on_threads(compare, parts, resources.threads, resources.progress, steps=lambda _: 0)
        out[~bonds.is_known] = np.nan
        return dict(zip(FEATURES, np.ascontiguousarray(out.T), strict=True))


def learn_intensities(
    bonds: MatchedBonds,
    matches: MatchColumns,
    fragment_tolerance: Tolerance,
    progress: Progress | None = None,
    *,
    fewest_peptides: int = FEWEST_PEPTIDES,
) -> tuple[IntensityModel | None, str]:
    """Return the predictor of a run's intensities from its matches, and a sentence on what was learnt.

    None if the shipped network does not fit (ion traps, recognised by fragment tolerance) and the run has too few peptides for training.
    """
    matches = matches._replace(is_confident=matches.is_confident & bonds.is_known)
    is_low_resolution = fragment_tolerance.width(1000.0) > _LOW_RESOLUTION
    chosen = _select_training_matches(matches)
    n_peptides = len(np.unique(matches.peptide[chosen]))
    few = f"{n_peptides} peptides are too few"
    if n_peptides < fewest_peptides and is_low_resolution:
        return None, f"fragment intensities are not predicted: {few} to learn from ({fewest_peptides} are needed)"
    compile_kernels(["fragment-intensities"], progress or Progress())
    network = load_network(_path())
    if n_peptides >= fewest_peptides:
        fold = folds_by_peptide(matches.peptide, _FOLDS, _SEED)
        network = network._replace(out=_corrected(network, bonds, matches.charge, chosen, fold))
        return IntensityModel(network, True), f"fragment intensities learnt from {n_peptides} peptides"
    return IntensityModel(network, False), f"fragment intensities as the shipped model has them: {few} to correct it"


def _select_training_matches(matches: MatchColumns) -> Integers:
    """Rows of the best spectrum of each peptide and charge among the confident matches, ascending; the best of these, if they are many."""
    rows = np.flatnonzero(matches.is_confident)
    rows = rows[np.lexsort((rows, -matches.score[rows]))]
    pairs = np.stack((matches.peptide[rows], matches.charge[rows]), axis=1)
    first = np.sort(np.unique(pairs, axis=0, return_index=True)[1])
    return np.sort(rows[first[:_MAXIMUM_MATCHES]])


def _corrected(network: Network, bonds: MatchedBonds, charge: Integers, chosen: Integers, fold: Integers) -> NDArray[np.float32]:
    """(folds, 41, IONS): last layers with the scale and the shift of each kind of ion learnt from the `chosen` matches of other folds."""
    lengths = np.diff(bonds.offsets)[chosen] - 1
    starts = run_offsets(lengths)
    predicted = np.empty((starts[-1], IONS), np.float32)
    predict_bonds(network, bonds.residues, bonds.offsets, charge, chosen, starts, 0, len(chosen), predicted)
    rows = np.arange(len(predicted)) + np.repeat(bonds.offsets[chosen] - starts[:-1], lengths)
    missing = np.log2(bonds.weight[rows].astype(np.float64) ** 2 + FLOOR) - predicted
    of_bond, doubly = np.repeat(fold[chosen], lengths), np.repeat(charge[chosen] >= 3, lengths)
    out = np.repeat(network.out[:1].astype(np.float64), _FOLDS, axis=0)
    for number in range(_FOLDS):
        for ion in range(IONS):
            some = (of_bond != number) & (doubly | (ion % 2 == 0))
            n = np.count_nonzero(some)
            if n:
                x, y = predicted[some, ion].astype(np.float64), missing[some, ion]
                centred, weight = x - x.mean(), n / (n + _PRIOR_BONDS)
                slope = weight * (centred * y).sum() / max((centred**2).sum(), 1e-9)
                out[number, :, ion] *= 1.0 + slope
                out[number, -1, ion] += weight * y.mean() - slope * x.mean()
    return out.astype(np.float32)


def predicted_shares(sequence: str, charge: int) -> NDArray[np.float64]:
    """Return the shipped network's predicted intensity fractions of the ions b, b2+, y and y2+ of a peptide's bonds.

    Parameters
    ----------
    sequence
        Capitals, of 2 to `LONGEST_PREDICTED` residues.
    charge
        Of the precursor; below three no ion has two charges.

    Returns
    -------
    (residues - 1, IONS) float64, 0 where less than a thousandth is expected.

    Raises
    ------
    ParameterError
        The text is not a peptide, or the peptide is too short or too long.
    """
    symbols = np.frombuffer(sequence.encode("ascii", "replace"), np.uint8)
    if not 2 <= len(symbols) <= LONGEST_PREDICTED or ((symbols < ord("A")) | (symbols > ord("Z"))).any() or charge < 1:
        raise ParameterError(f"no fragment intensities are predicted for {shortened(sequence)}: expected 2 to {LONGEST_PREDICTED} residues")
    out = np.zeros((len(symbols) - 1, IONS), np.float32)
    nought = np.zeros(1, np.int64)
    predict_bonds(load_network(_path()), symbols.copy(), np.array([0, len(symbols)]), np.array([charge]), nought, nought, 0, 1, out)
    shares = np.maximum(2.0 ** out.astype(np.float64) - FLOOR, 0.0)
    if charge < 3:
        shares[:, 1::2] = 0.0
    return shares


def _path() -> Path:
    return resources.path(*_NETWORK)


@lru_cache(maxsize=2)
def load_network(path: Path) -> Network:
    """Read a network from a file.

    Raises
    ------
    StorageError
        The file cannot be read, or does not hold such a network.
    """
    shapes = network_shapes()
    try:
        with np.load(BytesIO(path.read_bytes())) as file:  # which opens no pickle
            result = {name: file[name] for name in shapes if name in file}
    except (OSError, ValueError, TypeError, AttributeError, EOFError, SyntaxError, BadZipFile, zlib.error) as error:
        raise StorageError(f"{path}: the model of fragment intensities cannot be read ({error}). Install the program again.") from error
    for name, shape in shapes.items():
        array = result.get(name)
        if array is None or array.dtype != np.float32 or array.shape != shape or not (np.abs(array) < _LARGEST_WEIGHT).all():
            raise StorageError(f"{path}: '{name}' is not what the model of fragment intensities needs. Install the program again.")
    return Network(**{name: np.ascontiguousarray(result[name]) for name in shapes})

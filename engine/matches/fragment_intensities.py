"""Predicted intensities of fragment ions, and their agreement with the peaks of matches.

A small network in `resources/fragmentation`, which is shipped with the program, predicts the b, b2+, y and y2+ ions of each bond from
residues and charge. Like its training data, it ignores modifications; labels that remove charge from fragments (TMT, iTRAQ) would need
another network.

Instruments and collision energies favour certain ion types, or small fragments. A scale and an offset of the predicted logarithms are
therefore fitted to the run for each ion type, using the best spectrum of each peptide and charge among confident matches (ridge regression
towards the shipped values). Peptides are divided into folds, and a match is compared with the model fitted without the fold of its
peptide; the fold includes all peptidoforms of the peptide and its decoy partner. Targets and decoys are thus treated equally, and no match
is evaluated by a model fitted to it. More flexible models (a complete last layer fitted to the run, boosted trees) fitted both correct and
wrong matches better, by the same amount, and thus did not separate correct from wrong matches better.
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
from proteoscope.engine.arrays import ranges, take_segments
from proteoscope.engine.chemistry.modifications import SearchModification
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError, StorageError, shortened
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.rescoring import folds_by_peptide
from proteoscope.kernels.cpu.fragment_intensities import FLOOR, IONS, MEASURES, Network, compare_intensities, network_shapes, predict_bonds
from proteoscope.kernels.device import Partition, equal_partitions, even_partitions

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
    "unpredicted_reason",
    "unsupported_label_reason",
]

Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

FEATURES = tuple(f"intensity_{name}" for name in MEASURES)
"""Names of the feature columns with the agreement of predicted and measured intensities."""
_NETWORK = ("fragmentation", "intensities.npz")
_LARGEST_WEIGHT = 1e3
_FOLDS, _SEED = 5, 0  # rescoring uses other seeds for its folds
FEWEST_PEPTIDES = 40  # with fewer peptides, a fitted correction tends to be worse than the shipped model
_MAXIMUM_MATCHES = 4000  # training matches; additional matches do not change the eight fitted numbers
_PRIOR_BONDS = 30.0  # weight of the shipped scale and shift, in bonds
_LOW_RESOLUTION = 0.1  # Th: wider tolerances mean an ion trap, in which fragmentation differs from the shipped model
_LABELS = ("TMT", "iTRAQ")
LONGEST_PREDICTED = 63
"""Maximum number of residues in a peptide that the network accepts."""


class IntensitySettings(Protocol):
    """Settings that decide whether intensities are predicted; attributes are named like the parameters of searches."""

    predicted_intensities: bool
    intensity_transform: Literal["none", "square-root", "logarithm", "rank"]


def has_predicted_series(series: str) -> bool:
    """Return True if intensities are predicted for spectra with these ion series, given as one symbol per series."""
    return set("by") <= set(series)


def unpredicted_reason(settings: IntensitySettings, series: Sequence[str], modifications: Sequence[SearchModification]) -> str:
    """Return the reason why intensities cannot be predicted, as the end of a sentence; '' if they can be predicted.

    With several sets of ion series, intensities are predicted only for spectra that were searched for b and y ions.
    """
    if not any(map(has_predicted_series, series)):
        return "the ion series are not b and y"
    if settings.intensity_transform != "square-root":
        return f"the intensity transform is {settings.intensity_transform}, not square-root"
    return unsupported_label_reason(modifications)


def unsupported_label_reason(modifications: Sequence[SearchModification]) -> str:
    """Return the reason why a label among `modifications` prevents predictions, as the end of a sentence; '' without such a label."""
    label = next((modification.name for modification in modifications if modification.name.startswith(_LABELS)), "")
    return f"the label {label} changes them" if label else ""


def predicted_bonds(
    residues: NDArray[np.uint8], offsets: Integers, charge: Integers, resources: Resources
) -> tuple[NDArray[np.float32], Integers]:
    """Return the shipped network's predictions for n peptides.

    The prediction for an ion is log2(`FLOOR` + f), where f is the fraction of the total intensity.

    Parameters
    ----------
    residues : ndarray of uint8
        Residues of all peptides as ASCII capitals, each of 2 to `LONGEST_PREDICTED` residues.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each peptide in `residues`, followed by the length of `residues`.
    charge : ndarray of int64, shape (n,)
        Precursor charges.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    ndarray of float32, shape (bonds, IONS)
        Predictions for the consecutive bonds of all peptides.
    ndarray of int64, shape (n,)
        Row of the first bond of each peptide.
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
    """Residues of the peptides of n matches, with the intensities of matched peaks at each bond.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start of each match's peptide in `residues`, followed by r.
    residues : ndarray of uint8, shape (r,)
        Residues as ASCII capitals.
    weight : ndarray of float32, shape (r, IONS)
        Intensities of the peaks that match ions of the bond after each residue, as square roots of their fractions of the total intensity;
        0 without such a peak, and in the last row of each peptide.
    is_known : ndarray of bool, shape (n,)
        True if the spectrum of the match was searched for b and y ions; nothing is predicted for other spectra.
    """

    offsets: Integers
    residues: NDArray[np.uint8]
    weight: NDArray[np.float32]
    is_known: Truths

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: Integers) -> MatchedBonds:
        """Return the matches with the given indices, in this order."""
        residues, offsets = take_segments(self.residues, self.offsets, rows)
        index, _ = take_segments(np.arange(len(self.residues)), self.offsets, rows)
        return MatchedBonds(offsets, residues, self.weight[index], self.is_known[rows])

    def joined(self, other: MatchedBonds) -> MatchedBonds:
        """Return these matches followed by the matches of `other`."""
        offsets = np.concatenate((self.offsets, other.offsets[1:] + self.offsets[-1]))
        columns = ((getattr(self, name), getattr(other, name)) for name in ("residues", "weight", "is_known"))
        return MatchedBonds(offsets, *map(np.concatenate, columns))


class MatchColumns(NamedTuple):
    """Columns of n matches that are needed to fit the intensity model; each array has shape (n,).

    `peptide` is a number shared by all peptidoforms of a peptide and its decoy partner; `is_confident` is True for targets that may be used
    to fit.
    """

    charge: Integers
    peptide: Integers
    score: NDArray[np.float64]
    is_confident: Truths


@dataclass(frozen=True)
class IntensityModel:
    """Predictor of the fragment intensities of a run.

    If `is_corrected`, the network has several last layers, one per fold of peptides, each fitted to the run without the peptides of its
    fold. Otherwise the network is the shipped network.
    """

    network: Network
    is_corrected: bool

    def features(self, bonds: MatchedBonds, charge: Integers, peptide: Integers, resources: Resources) -> dict[str, NDArray[np.float64]]:
        """Return feature columns by name: the agreement of predicted intensities with the peaks of n matches.

        Parameters
        ----------
        bonds : MatchedBonds
            The n matches.
        charge, peptide : ndarray of int64, shape (n,)
            See `MatchColumns`.
        resources : Resources
            Devices, threads and progress of the run.

        Returns
        -------
        dict of str to ndarray of float64, shape (n,)
            NaN for matches without a prediction.
        """
        model = folds_by_peptide(peptide, _FOLDS, _SEED) if self.is_corrected else np.zeros(len(bonds), np.int64)
        out = np.zeros((len(bonds), len(FEATURES)))

        def compare(part: Partition) -> None:
            compare_intensities(self.network, bonds.residues, bonds.offsets, charge, bonds.weight, model, part.first, part.last, out)

        parts = even_partitions(len(bonds), resources.threads)
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
    """Fit the intensity predictor to a run's matches.

    Parameters
    ----------
    bonds : MatchedBonds
        The n matches.
    matches : MatchColumns
        Charges, peptides and confidence of the matches.
    fragment_tolerance : Tolerance
        Fragment tolerance; a wide tolerance indicates an ion trap, for which the shipped network is not suitable.
    progress : Progress or None
        Progress of the run; None to report nothing.
    fewest_peptides : int
        Minimum number of confident peptides needed to fit the model.

    Returns
    -------
    IntensityModel or None
        The fitted model. With too few peptides, the shipped model, or None if the tolerance indicates an ion trap.
    str
        A sentence on the outcome, for the user.
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
        network = network._replace(out=_fit_last_layers(network, bonds, matches.charge, chosen, fold))
        return IntensityModel(network, True), f"fragment intensities learnt from {n_peptides} peptides"
    return IntensityModel(network, False), f"fragment intensities are predicted by the shipped model without adaptation: {few}"


def _select_training_matches(matches: MatchColumns) -> Integers:
    """Return the rows of the best confident match of each peptide and charge, ascending; at most 4,000 rows."""
    rows = np.flatnonzero(matches.is_confident)
    rows = rows[np.lexsort((rows, -matches.score[rows]))]
    pairs = np.stack((matches.peptide[rows], matches.charge[rows]), axis=1)
    first = np.sort(np.unique(pairs, axis=0, return_index=True)[1])
    return np.sort(rows[first[:_MAXIMUM_MATCHES]])


def _fit_last_layers(network: Network, bonds: MatchedBonds, charge: Integers, chosen: Integers, fold: Integers) -> NDArray[np.float32]:
    """Return last layers of the network, (folds, 41, IONS), one per fold.

    In each layer, the scale and offset of each ion type are fitted to the matches `chosen`, without the matches in the fold.
    """
    starts, rows = ranges(bonds.offsets[chosen], bonds.offsets[chosen + 1] - 1)
    lengths = np.diff(starts)
    predicted = np.empty((starts[-1], IONS), np.float32)
    predict_bonds(network, bonds.residues, bonds.offsets, charge, chosen, starts, 0, len(chosen), predicted)
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
    """Return the shipped network's predicted intensities of the b, b2+, y and y2+ ions of a peptide's bonds.

    Parameters
    ----------
    sequence : str
        Residues as capitals, 2 to `LONGEST_PREDICTED` residues.
    charge : int
        Precursor charge; below 3, doubly charged ions are not predicted.

    Returns
    -------
    ndarray of float64, shape (residues - 1, IONS)
        Fractions of the total intensity; fractions below 0.001 are set to 0.

    Raises
    ------
    ParameterError
        If the text is not a peptide, or the peptide is too short or too long.
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
        If the file cannot be read or does not contain a valid network.
    """
    shapes = network_shapes()
    try:
        with np.load(BytesIO(path.read_bytes())) as file:  # does not unpickle objects
            result = {name: file[name] for name in shapes if name in file}
    except (OSError, ValueError, TypeError, AttributeError, EOFError, SyntaxError, BadZipFile, zlib.error) as error:
        raise StorageError(f"{path}: the model of fragment intensities cannot be read ({error}). Install the program again.") from error
    for name, shape in shapes.items():
        array = result.get(name)
        if array is None or array.dtype != np.float32 or array.shape != shape or not (np.abs(array) < _LARGEST_WEIGHT).all():
            raise StorageError(f"{path}: '{name}' in the model of fragment intensities is missing or invalid. Install the program again.")
    return Network(**{name: np.ascontiguousarray(result[name]) for name in shapes})

"""Predicted intensities as features: the shipped network compared with MS2PIP, and training on a run without its own peptides."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import proteoscope.engine.matches.fragment_intensities as module
from proteoscope.engine.chemistry.activation import Activation
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import StorageError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.fragment_intensities import (
    FEATURES,
    MatchColumns,
    MatchedBonds,
    learn_intensities,
    load_network,
    unpredicted_reason,
)
from proteoscope.engine.spectra.columns import spectrum_ion_series
from proteoscope.kernels.cpu.fragment_intensities import FLOOR, IONS, network_shapes, predict_bonds
from proteoscope.resources import path

SHIPPED = path("fragmentation", "intensities.npz")
TEACHER = Path(__file__).with_name("ms2pip_predictions.npz")
"""Predictions of MS2PIP 4.0.0, `HCDch2`, for peptides outside the training data; see resources/fragmentation/ATTRIBUTION.md."""


def predictions(sequences: list[str], charge: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the predictions of the shipped network for all bonds, in order."""
    network = load_network(SHIPPED)
    offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in sequences])))
    starts = offsets - np.arange(len(offsets))
    out = np.empty((starts[-1], IONS), np.float32)
    residues = np.frombuffer("".join(sequences).encode(), np.uint8).copy()
    predict_bonds(network, residues, offsets, charge, np.arange(len(sequences)), starts[:-1], 0, len(sequences), out)
    return out.astype(np.float64)


def test_shipped_intensity_network_predicts_like_ms2pip() -> None:
    with np.load(TEACHER, allow_pickle=False) as file:
        sequences, charge, taught = file["peptide"].tolist(), file["charge"].astype(np.int64), file["intensity"].astype(np.float64)
    cosines, begin = [], 0
    predicted = predictions(sequences, charge)
    for sequence, z in zip(sequences, charge.tolist(), strict=True):
        rows, ions = slice(begin, begin + len(sequence) - 1), slice(None) if z >= 3 else slice(0, None, 2)
        a, b = (np.sqrt(np.maximum(2.0 ** logarithms[rows, ions] - FLOOR, 0)).ravel() for logarithms in (predicted, taught))
        cosines.append(a @ b / np.sqrt((a @ a) * (b @ b)))
        begin += len(sequence) - 1
    assert begin == len(taught) == len(predicted)
    assert len(cosines) >= 200
    assert np.median(cosines) > 0.95
    assert np.quantile(cosines, 0.1) > 0.85


# ----------------------------------------------------------------------------------------------- simulated runs


def run(n_peptides: int = 120, copies: int = 2, seed: int = 5, shift: float = 0.0) -> tuple[MatchedBonds, MatchColumns]:
    """Simulate matches of `copies` spectra for each peptide and charge, with noise and y ions `shift` higher in log2 intensity.

    Each second match is confident.
    """
    random = np.random.default_rng(seed)
    amino_acids = list("ACDEFGHIKLMNPQRSTVWY")
    peptides = ["".join(random.choice(amino_acids, random.integers(7, 15))) + "K" for _ in range(n_peptides)]
    sequences = [peptide for peptide in peptides for _ in range(copies)]
    charge = np.repeat(random.integers(2, 4, n_peptides), copies)
    offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in sequences])))
    logarithms = predictions(sequences, charge)
    logarithms[:, 2:] += shift
    logarithms += random.normal(0, 0.3, logarithms.shape)
    weight = np.zeros((offsets[-1], IONS), np.float32)
    bonds = np.delete(np.arange(offsets[-1]), offsets[1:] - 1)
    weight[bonds] = np.sqrt(np.maximum(2.0**logarithms - FLOOR, 0))
    residues = np.frombuffer("".join(sequences).encode(), np.uint8).copy()
    number = np.repeat(random.integers(0, 1 << 60, n_peptides), copies)
    n = len(sequences)
    has_bonds = np.ones(n, np.bool_)
    return MatchedBonds(offsets, residues, weight, has_bonds), MatchColumns(charge, number, random.random(n), np.arange(n) % 2 == 0)


def features(bonds: MatchedBonds, matches: MatchColumns, tolerance: str = "20 ppm", threads: int = 1) -> NDArray[np.float64]:
    model, _ = learn_intensities(bonds, matches, Tolerance.parse(tolerance))
    assert model is not None
    columns = model.features(bonds, matches.charge, matches.peptide, Resources(threads))
    assert tuple(columns) == FEATURES
    return np.column_stack(list(columns.values()))


def test_training_on_a_run_improves_predicted_intensities() -> None:
    bonds, matches = run(shift=-2.0)
    as_shipped = features(bonds, matches._replace(is_confident=np.zeros(len(bonds), bool)))
    learnt = features(bonds, matches)
    assert as_shipped.shape == learnt.shape == (240, 3)
    assert np.median(learnt[:, 0]) > np.median(as_shipped[:, 0]) + 0.02
    assert (np.median(learnt, axis=0) > np.median(as_shipped, axis=0)).all()


def exchanged_series(bonds: MatchedBonds, rows: NDArray[np.int64]) -> MatchedBonds:
    """Return bonds with exchanged peaks of b and y ions for some matches."""
    weight = bonds.weight.copy()
    for row in rows:
        weight[bonds.offsets[row] : bonds.offsets[row + 1]] = weight[bonds.offsets[row] : bonds.offsets[row + 1]][:, [2, 3, 0, 1]]
    return replace(bonds, weight=weight)


def is_trained_without_own_peptide(bonds: MatchedBonds, matches: MatchColumns) -> bool:
    """True if features of a peptide's matches ignore changed peaks of its other spectra, which were used for training.

    Features of other peptides must change, which shows that there was training at all.
    """
    is_unchanged, changes_elsewhere = True, False
    first = features(bonds, matches)
    for peptide in range(10):
        confident, remaining = 2 * peptide, 2 * peptide + 1
        assert matches.is_confident[confident]
        assert not matches.is_confident[remaining]
        second = features(exchanged_series(bonds, np.array([confident])), matches)
        is_unchanged &= first[remaining].tobytes() == second[remaining].tobytes()
        changed = (first != second).any(axis=1)
        changes_elsewhere |= bool(changed[np.arange(len(changed)) // 2 != peptide].any())
    assert changes_elsewhere
    return is_unchanged


def test_intensity_models_are_not_trained_on_the_same_peptide(monkeypatch: pytest.MonkeyPatch) -> None:
    bonds, matches = run()
    assert is_trained_without_own_peptide(bonds, matches)
    # The test detects folds by spectrum.
    monkeypatch.setattr(module, "folds_by_peptide", lambda peptide, folds, seed: np.arange(len(peptide)) % folds)
    assert not is_trained_without_own_peptide(bonds, matches)


def test_intensity_features_do_not_use_confidence_of_the_match() -> None:
    """Decoy labels are not used: of two equal matches, a confident and an unconfident one have the same features."""
    bonds, matches = run(copies=1)
    twice = np.repeat(np.arange(len(bonds)), 2)
    matches = MatchColumns(*(column[twice] for column in matches))
    both = features(bonds.take(twice), matches._replace(is_confident=np.arange(len(twice)) % 2 == 0))
    assert both[::2].tobytes() == both[1::2].tobytes()
    swapped = features(bonds.take(twice), matches._replace(is_confident=np.arange(len(twice)) % 2 == 1))
    assert both.tobytes() == swapped.tobytes()


def test_intensity_training_uses_best_spectrum_of_each_peptide() -> None:
    bonds, matches = run()
    matches = matches._replace(is_confident=np.ones(len(bonds), bool))
    rows = np.arange(len(bonds))
    best = np.where(matches.score[rows // 2 * 2] >= matches.score[rows // 2 * 2 + 1], rows // 2 * 2, rows // 2 * 2 + 1)
    assert features(bonds, matches).tobytes() == features(bonds, matches._replace(is_confident=rows == best)).tobytes()
    assert features(bonds, matches).tobytes() != features(bonds, matches._replace(is_confident=rows != best)).tobytes()


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_intensity_features_are_identical_on_any_threads(threads: int) -> None:
    bonds, matches = run()
    assert features(bonds, matches).tobytes() == features(bonds, matches, threads=threads).tobytes()


def test_intensity_training_requires_forty_peptides() -> None:
    bonds, matches = run(n_peptides=60)
    too_few = matches._replace(is_confident=matches.is_confident & (np.arange(len(bonds)) < 2 * 39))
    none = matches._replace(is_confident=np.zeros(len(bonds), bool))
    enough = matches._replace(is_confident=matches.is_confident & (np.arange(len(bonds)) < 2 * 40))
    assert features(bonds, too_few).tobytes() == features(bonds, none).tobytes() != features(bonds, enough).tobytes()
    _, message = learn_intensities(bonds, too_few, Tolerance(20.0, "ppm"))
    assert "39 peptides" in message


def test_ion_trap_intensities_are_predicted_only_after_training() -> None:
    bonds, matches = run(n_peptides=60)
    too_few = matches._replace(is_confident=matches.is_confident & (np.arange(len(bonds)) < 2 * 39))
    model, message = learn_intensities(bonds, too_few, Tolerance(0.5, "Da"))
    assert model is None
    assert "39 peptides are too few to learn from (40 are needed)" in message
    assert len(features(bonds, matches, "0.5 Da")) == len(bonds)


def test_intensity_features_do_not_depend_on_other_matches() -> None:
    """Matches of a second pass can therefore be scored separately from those of the first pass."""
    bonds, matches = run()
    model, _ = learn_intensities(bonds, matches, Tolerance(20.0, "ppm"))
    assert model is not None and model.is_corrected
    rows = np.arange(1, len(bonds), 3)
    part = model.features(bonds.take(rows), matches.charge[rows], matches.peptide[rows], Resources(2))
    assert np.array_equal(np.column_stack(list(part.values())), features(bonds, matches)[rows])


def test_no_matches_have_no_intensity_features() -> None:
    none = MatchedBonds(np.zeros(1, np.int64), np.empty(0, np.uint8), np.empty((0, IONS), np.float32), np.ones(0, np.bool_))
    empty = MatchColumns(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.float64, bool)))
    assert features(none, empty).shape == (0, 3)


def test_intensities_are_not_predicted_without_b_and_y_ions() -> None:
    """Matches without b and y ions are not used for training either, whatever their bonds hold."""
    bonds, matches = run(n_peptides=200)
    has_bonds = np.arange(len(bonds)) % 3 > 0
    rows = np.flatnonzero(has_bonds)
    owner = np.repeat(np.arange(len(bonds)), np.diff(bonds.offsets))
    altered = replace(bonds, weight=np.where(has_bonds[owner, None], bonds.weight, np.float32(0.5)), is_known=has_bonds)
    feature_rows = features(altered, matches)
    assert np.isnan(feature_rows[~has_bonds]).all()
    columns = (matches.charge, matches.peptide, matches.score, matches.is_confident)
    np.testing.assert_array_equal(feature_rows[rows], features(bonds.take(rows), MatchColumns(*(column[rows] for column in columns))))


def test_matched_bonds_follow_selected_and_joined_psms() -> None:
    bonds, _ = run(n_peptides=5)
    rows = np.array([3, 3, 0, 9])
    taken = bonds.take(rows)
    for position, row in enumerate(rows):
        for column in ("residues", "weight"):
            of_row = getattr(bonds, column)[bonds.offsets[row] : bonds.offsets[row + 1]]
            assert getattr(taken, column)[taken.offsets[position] : taken.offsets[position + 1]].tolist() == of_row.tolist()
    joined = taken.joined(bonds)
    assert len(joined) == 14
    again = joined.take(np.arange(4, 14))
    assert all(getattr(again, name).tobytes() == getattr(bonds, name).tobytes() for name in ("offsets", "residues", "weight"))


# ------------------------------------------------------------------------------------------------------- searches without predictions


@pytest.mark.parametrize(
    ("changes", "modifications", "reason"),
    [
        ({}, (), ""),
        ({"ion_series": "abyx"}, ("Phospho (STY)", "Acetyl (Protein N-term)"), ""),
        ({"ion_series": "cz"}, (), "the ion series"),
        ({"ion_series": "y"}, (), "the ion series"),
        ({"intensity_transform": "rank"}, (), "the intensity transform is rank"),
        ({}, ("Oxidation (M)", "TMT6plex (K)"), "the label TMT6plex changes"),
        ({}, ("TMTpro (N-term)",), "the label TMTpro"),
        ({}, ("iTRAQ4plex (N-term)",), "the label iTRAQ4plex"),
    ],
)
def test_reason_for_no_predicted_intensities_is_given_in_words(
    changes: dict[str, str], modifications: tuple[str, ...], reason: str
) -> None:
    parameters = IdentificationParameters.checked(changes)
    series = spectrum_ion_series(parameters.ion_series, Activation.UNKNOWN)
    why = unpredicted_reason(parameters, [series], [parse_modification(modification) for modification in modifications])
    assert bool(why) == bool(reason)
    assert reason in why


# --------------------------------------------------------------------------------------------------------------- invalid files


def shipped() -> dict[str, NDArray]:
    with np.load(SHIPPED, allow_pickle=False) as file:
        return {name: file[name] for name in file}


def load_error(folder: Path, arrays: dict[str, NDArray]) -> str:
    np.savez(folder / "corrupt.npz", **arrays)
    with pytest.raises(StorageError) as error:
        load_network(folder / "corrupt.npz")
    return str(error.value)


@pytest.mark.parametrize("name", list(network_shapes()))
def test_load_network_error_names_the_invalid_weights(name: str, tmp_path: Path) -> None:
    good = shipped()
    corrupt_arrays = [
        good[name][..., :-1],
        good[name][None],
        good[name].astype(np.float64),
        np.full_like(good[name], np.nan),
        np.full_like(good[name], np.inf),
        np.full_like(good[name], 1e6),
    ]
    for i, array in enumerate(corrupt_arrays):
        (tmp_path / str(i)).mkdir()
        message = load_error(tmp_path / str(i), good | {name: array})
        assert f"'{name}'" in message
        assert "Install the program again" in message
    (tmp_path / "without").mkdir()
    assert f"'{name}'" in load_error(tmp_path / "without", {key: value for key, value in good.items() if key != name})


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", pickle.dumps(Trap()), b"\x93NUMPY\x01\x00v\x00{"])
def test_load_network_rejects_files_without_arrays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(content)
    with pytest.raises(StorageError, match="cannot be read"):
        load_network(tmp_path / "model.npz")


def test_load_network_rejects_pickles_and_partial_files(tmp_path: Path) -> None:
    (tmp_path / "cut.npz").write_bytes(SHIPPED.read_bytes()[:-2000])
    with pytest.raises(StorageError, match="cannot be read"):
        load_network(tmp_path / "cut.npz")
    trap = np.array([Trap()], object)
    np.savez(tmp_path / "objects.npz", **(shipped() | {"out": trap}))
    with pytest.raises(StorageError):
        load_network(tmp_path / "objects.npz")
    with pytest.raises(StorageError, match="cannot be read"):
        load_network(tmp_path / "absent.npz")

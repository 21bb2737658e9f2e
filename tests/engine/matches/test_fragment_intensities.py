"""Predicted intensities as features: the shipped network beside its teacher, and what is learnt from a run without its own peptides."""

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
    why_not_predicted,
)
from proteoscope.engine.spectra.ion_series import spectrum_ion_series
from proteoscope.kernels.cpu.fragment_intensities import FLOOR, IONS, network_shapes, predict_bonds
from proteoscope.resources import path

SHIPPED = path("fragmentation", "intensities.npz")
TEACHER = Path(__file__).with_name("ms2pip_predictions.npz")
"""What MS2PIP 4.0.0, `HCDch2`, predicts for peptides that the network was not shown; see resources/fragmentation/ATTRIBUTION.md."""


def answers(sequences: list[str], charge: NDArray[np.int64]) -> NDArray[np.float64]:
    """What the shipped network predicts, of all bonds one below the other."""
    network = load_network(SHIPPED)
    offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in sequences])))
    starts = offsets - np.arange(len(offsets))
    out = np.empty((starts[-1], IONS), np.float32)
    residues = np.frombuffer("".join(sequences).encode(), np.uint8).copy()
    predict_bonds(network, residues, offsets, charge, np.arange(len(sequences)), starts[:-1], 0, len(sequences), out)
    return out.astype(np.float64)


def test_the_shipped_network_predicts_what_its_teacher_predicts() -> None:
    with np.load(TEACHER, allow_pickle=False) as file:
        sequences, charge, taught = file["peptide"].tolist(), file["charge"].astype(np.int64), file["intensity"].astype(np.float64)
    cosines, begin = [], 0
    predicted = answers(sequences, charge)
    for sequence, z in zip(sequences, charge.tolist(), strict=True):
        rows, ions = slice(begin, begin + len(sequence) - 1), slice(None) if z >= 3 else slice(0, None, 2)
        a, b = (np.sqrt(np.maximum(2.0 ** one[rows, ions] - FLOOR, 0)).ravel() for one in (predicted, taught))
        cosines.append(a @ b / np.sqrt((a @ a) * (b @ b)))
        begin += len(sequence) - 1
    assert begin == len(taught) == len(predicted)
    assert len(cosines) >= 200
    assert np.median(cosines) > 0.95
    assert np.quantile(cosines, 0.1) > 0.85


# ----------------------------------------------------------------------------------------------- a run whose answer is known


def run(n_peptides: int = 120, copies: int = 2, seed: int = 5, shift: float = 0.0) -> tuple[MatchedBonds, MatchColumns]:
    """Matches of `copies` spectra for each peptide and charge: as predicted, but with y ions `shift` higher in their logarithm, and noise.

    Every second one is confident.
    """
    random = np.random.default_rng(seed)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    peptides = ["".join(random.choice(letters, random.integers(7, 15))) + "K" for _ in range(n_peptides)]
    sequences = [peptide for peptide in peptides for _ in range(copies)]
    charge = np.repeat(random.integers(2, 4, n_peptides), copies)
    offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in sequences])))
    logarithms = answers(sequences, charge)
    logarithms[:, 2:] += shift
    logarithms += random.normal(0, 0.3, logarithms.shape)
    weight = np.zeros((offsets[-1], IONS), np.float32)
    bonds = np.delete(np.arange(offsets[-1]), offsets[1:] - 1)
    weight[bonds] = np.sqrt(np.maximum(2.0**logarithms - FLOOR, 0))
    residues = np.frombuffer("".join(sequences).encode(), np.uint8).copy()
    number = np.repeat(random.integers(0, 1 << 60, n_peptides), copies)
    n = len(sequences)
    is_known = np.ones(n, np.bool_)
    return MatchedBonds(offsets, residues, weight, is_known), MatchColumns(charge, number, random.random(n), np.arange(n) % 2 == 0)


def features(bonds: MatchedBonds, judged: MatchColumns, tolerance: str = "20 ppm", threads: int = 1) -> NDArray[np.float64]:
    model, _ = learn_intensities(bonds, judged, Tolerance.parse(tolerance))
    assert model is not None
    columns = model.features(bonds, judged.charge, judged.peptide, Resources(threads))
    assert tuple(columns) == FEATURES
    return np.column_stack(list(columns.values()))


def test_what_is_learnt_from_a_run_brings_predictions_nearer_to_its_spectra() -> None:
    bonds, judged = run(shift=-2.0)
    as_shipped = features(bonds, judged._replace(is_confident=np.zeros(len(bonds), bool)))
    learnt = features(bonds, judged)
    assert as_shipped.shape == learnt.shape == (240, 3)
    assert np.median(learnt[:, 0]) > np.median(as_shipped[:, 0]) + 0.02
    assert (np.median(learnt, axis=0) > np.median(as_shipped, axis=0)).all()


def turned(bonds: MatchedBonds, rows: NDArray[np.int64]) -> MatchedBonds:
    """The same with other peaks at the bonds of some matches: those of the b ions at the y ions, and the other way round."""
    weight = bonds.weight.copy()
    for row in rows:
        weight[bonds.offsets[row] : bonds.offsets[row + 1]] = weight[bonds.offsets[row] : bonds.offsets[row + 1]][:, [2, 3, 0, 1]]
    return replace(bonds, weight=weight)


def learnt_apart(bonds: MatchedBonds, judged: MatchColumns) -> bool:
    """Whether the matches of a peptide stay as they were where another spectrum of it, from which was learnt, has other peaks.

    Those of a peptide of another fold must not: they see whether anything was learnt.
    """
    same, elsewhere = True, False
    first = features(bonds, judged)
    for peptide in range(10):
        confident, other = 2 * peptide, 2 * peptide + 1
        assert judged.is_confident[confident]
        assert not judged.is_confident[other]
        second = features(turned(bonds, np.array([confident])), judged)
        same &= first[other].tobytes() == second[other].tobytes()
        changed = (first != second).any(axis=1)
        elsewhere |= bool(changed[np.arange(len(changed)) // 2 != peptide].any())
    assert elsewhere
    return same


def test_a_match_is_not_compared_with_what_was_learnt_from_its_own_peptide(monkeypatch: pytest.MonkeyPatch) -> None:
    bonds, judged = run()
    assert learnt_apart(bonds, judged)
    # Folds by spectrum would be found out.
    monkeypatch.setattr(module, "folds_by_peptide", lambda peptide, folds, seed: np.arange(len(peptide)) % folds)
    assert not learnt_apart(bonds, judged)


def test_a_decoy_is_compared_as_a_target_is() -> None:
    """Nothing says which matches are decoys: of two alike, the one that was learnt from and the one that was not have the same features."""
    bonds, judged = run(copies=1)
    twice = np.repeat(np.arange(len(bonds)), 2)
    judged = MatchColumns(*(column[twice] for column in judged))
    both = features(bonds.take(twice), judged._replace(is_confident=np.arange(len(twice)) % 2 == 0))
    assert both[::2].tobytes() == both[1::2].tobytes()
    swapped = features(bonds.take(twice), judged._replace(is_confident=np.arange(len(twice)) % 2 == 1))
    assert both.tobytes() == swapped.tobytes()


def test_of_the_spectra_of_a_peptide_and_charge_the_best_is_learnt_from() -> None:
    bonds, judged = run()
    judged = judged._replace(is_confident=np.ones(len(bonds), bool))
    rows = np.arange(len(bonds))
    best = np.where(judged.score[rows // 2 * 2] >= judged.score[rows // 2 * 2 + 1], rows // 2 * 2, rows // 2 * 2 + 1)
    assert features(bonds, judged).tobytes() == features(bonds, judged._replace(is_confident=rows == best)).tobytes()
    assert features(bonds, judged).tobytes() != features(bonds, judged._replace(is_confident=rows != best)).tobytes()


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_no_byte(threads: int) -> None:
    bonds, judged = run()
    assert features(bonds, judged).tobytes() == features(bonds, judged, threads=threads).tobytes()


def test_with_fewer_than_forty_peptides_nothing_is_learnt() -> None:
    bonds, judged = run(n_peptides=60)
    some = judged._replace(is_confident=judged.is_confident & (np.arange(len(bonds)) < 2 * 39))
    none = judged._replace(is_confident=np.zeros(len(bonds), bool))
    enough = judged._replace(is_confident=judged.is_confident & (np.arange(len(bonds)) < 2 * 40))
    assert features(bonds, some).tobytes() == features(bonds, none).tobytes() != features(bonds, enough).tobytes()
    _, told = learn_intensities(bonds, some, Tolerance(20.0, "ppm"))
    assert "39 peptides" in told


def test_what_ships_is_not_used_for_ion_traps_which_learn_from_the_run_alone() -> None:
    bonds, judged = run(n_peptides=60)
    some = judged._replace(is_confident=judged.is_confident & (np.arange(len(bonds)) < 2 * 39))
    model, told = learn_intensities(bonds, some, Tolerance(0.5, "Da"))
    assert model is None
    assert "39 peptides are too few to learn from (40 are needed)" in told
    assert len(features(bonds, judged, "0.5 Da")) == len(bonds)


def test_what_was_learnt_compares_each_match_alike_whichever_stand_beside_it() -> None:
    """So that the matches of a second pass need not be compared together with those of the first."""
    bonds, judged = run()
    model, _ = learn_intensities(bonds, judged, Tolerance(20.0, "ppm"))
    assert model is not None and model.is_corrected
    rows = np.arange(1, len(bonds), 3)
    some = model.features(bonds.take(rows), judged.charge[rows], judged.peptide[rows], Resources(2))
    assert np.array_equal(np.column_stack(list(some.values())), features(bonds, judged)[rows])


def test_no_matches_have_no_features() -> None:
    none = MatchedBonds(np.zeros(1, np.int64), np.empty(0, np.uint8), np.empty((0, IONS), np.float32), np.ones(0, np.bool_))
    empty = MatchColumns(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.float64, bool)))
    assert features(none, empty).shape == (0, 3)


def test_matches_without_b_and_y_ions_have_no_predictions() -> None:
    """They teach nothing either, whatever their bonds hold."""
    bonds, judged = run(n_peptides=200)
    is_known = np.arange(len(bonds)) % 3 > 0
    rows = np.flatnonzero(is_known)
    owner = np.repeat(np.arange(len(bonds)), np.diff(bonds.offsets))
    spoilt = replace(bonds, weight=np.where(is_known[owner, None], bonds.weight, np.float32(0.5)), is_known=is_known)
    found = features(spoilt, judged)
    assert np.isnan(found[~is_known]).all()
    columns = (judged.charge, judged.peptide, judged.score, judged.is_confident)
    np.testing.assert_array_equal(found[rows], features(bonds.take(rows), MatchColumns(*(one[rows] for one in columns))))


def test_matches_taken_and_joined_keep_their_bonds() -> None:
    bonds, _ = run(n_peptides=5)
    rows = np.array([3, 3, 0, 9])
    taken = bonds.take(rows)
    for place, row in enumerate(rows):
        for column in ("residues", "weight"):
            of_row = getattr(bonds, column)[bonds.offsets[row] : bonds.offsets[row + 1]]
            assert getattr(taken, column)[taken.offsets[place] : taken.offsets[place + 1]].tolist() == of_row.tolist()
    joined = taken.joined(bonds)
    assert len(joined) == 14
    again = joined.take(np.arange(4, 14))
    assert all(getattr(again, name).tobytes() == getattr(bonds, name).tobytes() for name in ("offsets", "residues", "weight"))


# ------------------------------------------------------------------------------------------------------- where there are none


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
def test_searches_without_predictions_say_why(changes: dict[str, str], modifications: tuple[str, ...], reason: str) -> None:
    parameters = IdentificationParameters.checked(changes)
    series = spectrum_ion_series(parameters.ion_series, Activation.UNKNOWN)
    why = why_not_predicted(parameters, [series], [parse_modification(modification) for modification in modifications])
    assert bool(why) == bool(reason)
    assert reason in why


# --------------------------------------------------------------------------------------------------------------- a strange file


def shipped() -> dict[str, NDArray]:
    with np.load(SHIPPED, allow_pickle=False) as file:
        return {name: file[name] for name in file}


def refused(folder: Path, arrays: dict[str, NDArray]) -> str:
    np.savez(folder / "spoilt.npz", **arrays)
    with pytest.raises(StorageError) as told:
        load_network(folder / "spoilt.npz")
    return str(told.value)


@pytest.mark.parametrize("name", list(network_shapes()))
def test_weights_of_another_shape_or_kind_are_refused_by_name(name: str, tmp_path: Path) -> None:
    good = shipped()
    spoilt = [
        good[name][..., :-1],
        good[name][None],
        good[name].astype(np.float64),
        np.full_like(good[name], np.nan),
        np.full_like(good[name], np.inf),
        np.full_like(good[name], 1e6),
    ]
    for i, array in enumerate(spoilt):
        (tmp_path / str(i)).mkdir()
        told = refused(tmp_path / str(i), good | {name: array})
        assert f"'{name}'" in told
        assert "Install the program again" in told
    (tmp_path / "without").mkdir()
    assert f"'{name}'" in refused(tmp_path / "without", {key: value for key, value in good.items() if key != name})


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", pickle.dumps(Trap()), b"\x93NUMPY\x01\x00v\x00{"])
def test_a_file_that_holds_no_arrays_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(content)
    with pytest.raises(StorageError, match="cannot be read"):
        load_network(tmp_path / "model.npz")


def test_a_pickled_array_is_not_opened_and_a_cut_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.npz").write_bytes(SHIPPED.read_bytes()[:-2000])
    with pytest.raises(StorageError, match="cannot be read"):
        load_network(tmp_path / "cut.npz")
    trap = np.array([Trap()], object)
    np.savez(tmp_path / "objects.npz", **(shipped() | {"out": trap}))
    with pytest.raises(StorageError):
        load_network(tmp_path / "objects.npz")
    with pytest.raises(StorageError, match="cannot be read"):
        load_network(tmp_path / "absent.npz")

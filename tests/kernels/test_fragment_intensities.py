"""Predicted fragment intensities and their agreement with peaks, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from proteoscope.kernels.cpu.fragment_intensities import FLOOR, IONS, Network, compare_intensities, network_shapes, predict_bonds

RESIDUES = "ACDEFGHIKMNPQRSTVWY"


@pytest.fixture(scope="module")
def network() -> Network:
    random = np.random.default_rng(3)
    made = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in network_shapes().items()}
    made["out"] = random.normal(0, 0.3, (3, *made["out"].shape[1:])).astype(np.float32)
    made["out"][:, -1] -= 5  # shares of about a thousandth
    return Network(**made)


def peptides(n: int, seed: int = 4) -> list[str]:
    random = np.random.default_rng(seed)
    return ["".join(random.choice(list(RESIDUES + "LU"), random.integers(2, 61))) for _ in range(n)]


def plain_activations(network: Network, peptide: str, charge: int) -> NDArray[np.float64]:
    """Compute the layers as matrices, with every input explicit for each bond."""
    codes = [RESIDUES.find("I" if residue == "L" else residue) + 1 for residue in peptide]
    n, rows = len(codes), []
    for bond in range(1, n):
        chosen, tables = [], 0

        def choose(number: int, size: int, chosen: list[int] = chosen) -> None:
            nonlocal tables
            chosen.append(tables + number)
            tables += size

        for offset in (-4, -3, -2, -1, 0, 1, 2, 3):
            place = bond + offset
            choose(codes[place] if 0 <= place < n else 0, 20)
        for place in (0, 1, n - 2, n - 1):
            choose(codes[place], 20)
        z = min(charge, 4) - 1
        basic = [residue in "HKR" for residue in peptide]
        choose(min(bond, 20) - 1, 20)
        choose(min(n - bond, 20) - 1, 20)
        choose(6 * z + min(sum(basic), 5), 24)
        choose(16 * z + 4 * min(sum(basic[:bond]), 3) + min(sum(basic[bond:]), 3), 64)
        assert tables == len(network.tables)
        others = [codes[:bond].count(code) for code in range(1, 20)] + [codes[bond:].count(code) for code in range(1, 20)]
        others += [bond / n, n / 50]
        first = network.tables[chosen].astype(np.float64).sum(axis=0) + np.array(others) @ network.others + network.first_bias
        rows.append(np.maximum(np.maximum(first, 0) @ network.second.astype(np.float64) + network.second_bias, 0))
    return np.array(rows)


def columns(sequences: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return np.frombuffer("".join(sequences).encode(), np.uint8).copy(), np.concatenate(
        ([0], np.cumsum([len(sequence) for sequence in sequences]))
    )


def plain_answers(network: Network, peptide: str, charge: int, model: int) -> NDArray[np.float64]:
    layer = network.out[model].astype(np.float64)
    return np.clip(plain_activations(network, peptide, charge) @ layer[:-1] + layer[-1], -20, 0)


def test_predicted_intensities_equal_explicit_network_layers(network: Network) -> None:
    sequences, charges = peptides(25), np.arange(25) % 6 + 1
    residues, offsets = columns(sequences)
    rows = np.array([3, 0, 24, 11, *range(5, 11)])
    starts = np.concatenate(([0], np.cumsum([len(sequences[row]) - 1 for row in rows])))
    out = np.full((starts[-1], IONS), np.nan, np.float32)
    predict_bonds(network, residues, offsets, charges, rows, starts[:-1], 0, 4, out)
    predict_bonds(network, residues, offsets, charges, rows, starts[:-1], 4, len(rows), out)
    expected = np.concatenate([plain_answers(network, sequences[row], int(charges[row]), 0) for row in rows])
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3)
    assert ((out > -20) & (out < 0)).mean() > 0.3


def entropy(shares: NDArray[np.float64]) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def entropy_weighted(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raise intensities to 0.25 + 0.25 entropy for an entropy below 3 (Li 2021)."""
    shares = shares / shares.sum()
    raised = shares ** (0.25 + 0.25 * entropy(shares)) if entropy(shares) < 3 else shares
    raised = np.where(shares > 0, raised, 0)
    return raised / raised.sum()


def plain_measures(answers: NDArray[np.float64], weight: NDArray[np.float64]) -> list[float]:
    expected, share = np.maximum(2.0**answers - FLOOR, 0), weight**2
    a, b = entropy_weighted(expected), entropy_weighted(share)
    return [
        float((np.sqrt(expected) * weight).sum() / np.sqrt(expected.sum() * share.sum())),
        float(np.corrcoef(np.log2(expected + FLOOR), np.log2(share + FLOOR))[0, 1]),
        1 - (2 * entropy((a + b) / 2) - entropy(a) - entropy(b)) / np.log(4),
    ]


def matches(n: int) -> tuple[list[str], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Generate peptides with charges, peak weights (of half of the ions) and the last layer of each."""
    random, sequences = np.random.default_rng(6), peptides(n, 7)
    residues = sum(map(len, sequences))
    weight = np.where(random.random((residues, IONS)) < 0.5, random.random((residues, IONS)) ** 3 / 5, 0).astype(np.float32)
    return sequences, random.integers(1, 5, n), weight, random.integers(0, 3, n)


def test_intensity_similarities_equal_their_formulas(network: Network) -> None:
    sequences, charges, weight, model = matches(60)
    residues, offsets = columns(sequences)
    out = np.zeros((60, 3))
    compare_intensities(network, residues, offsets, charges, weight, model, 0, 60, out)
    compared = 0
    for row, sequence in enumerate(sequences):
        answers = plain_answers(network, sequence, int(charges[row]), int(model[row]))
        of_row = weight[offsets[row] : offsets[row + 1] - 1].astype(np.float64)
        if charges[row] < 3:  # no ions of charge two
            answers, of_row = answers[:, [0, 2]], of_row[:, [0, 2]]
        if (of_row > 0).any():
            assert out[row] == pytest.approx(plain_measures(answers.ravel(), of_row.ravel()), abs=2e-3)
            compared += 1
    assert compared > 50


def test_intensity_similarity_is_1_if_equal_and_0_without_peaks(network: Network) -> None:
    sequences, charges, weight, model = matches(12)
    residues, offsets = columns(sequences)
    for row, sequence in enumerate(sequences):
        answers = plain_answers(network, sequence, int(charges[row]), int(model[row]))
        weight[offsets[row] : offsets[row + 1] - 1] = np.sqrt(np.maximum(2.0**answers - FLOOR, 0))
    out = np.zeros((12, 3))
    compare_intensities(network, residues, offsets, charges, weight, model, 0, 12, out)
    several = np.array([len(sequence) > 3 for sequence in sequences])
    assert several.sum() > 8
    assert out[several] == pytest.approx(np.ones((int(several.sum()), 3)), abs=1e-3)
    compare_intensities(network, residues, offsets, charges, np.zeros_like(weight), model, 0, 12, out)
    assert (out == 0).all()


def test_intensity_similarities_do_not_depend_on_partitions(network: Network) -> None:
    sequences, charges, weight, model = matches(40)
    residues, offsets = columns(sequences)
    whole, parts, alone = np.zeros((40, 3)), np.zeros((40, 3)), np.zeros((1, 3))
    compare_intensities(network, residues, offsets, charges, weight, model, 0, 40, whole)
    for first, last in ((17, 40), (0, 1), (1, 17)):
        compare_intensities(network, residues, offsets, charges, weight, model, first, last, parts)
    assert whole.tobytes() == parts.tobytes()
    for row in range(40):
        rows, offset = slice(offsets[row], offsets[row + 1]), np.array([0, offsets[row + 1] - offsets[row]])
        compare_intensities(
            network, residues[rows].copy(), offset, charges[row : row + 1], weight[rows].copy(), model[row : row + 1], 0, 1, alone
        )
        assert alone.tobytes() == whole[row : row + 1].tobytes()


def test_intensity_similarity_treats_leucine_like_isoleucine(network: Network) -> None:
    residues, offsets = columns(["PEPTIDEK", "PEPTLDEK"])
    weight = np.full((16, IONS), 0.1, np.float32)
    weight[2], weight[10] = 0.3, 0.3
    of_charge = []
    for charge in (3, 4, 5, 6):
        out = np.zeros((2, 3))
        compare_intensities(network, residues, offsets, np.full(2, charge), weight, np.zeros(2, np.int64), 0, 2, out)
        assert out[0].tolist() == out[1].tolist()
        of_charge.append(out[0].tolist())
    assert of_charge[1] == of_charge[2] == of_charge[3] != of_charge[0]

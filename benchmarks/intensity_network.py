"""Train the model of fragment intensities, `intensities.npz`, on predictions of MS2PIP.

    python -m venv TEACHER; TEACHER/bin/pip install ms2pip==4.0.0 pyarrow==17.0.0
    python -m venv TRAINER; TRAINER/bin/pip install numpy torch==2.13.0
    TEACHER/bin/python benchmarks/intensity_network.py teach --proteomes FOLDER --out predictions.npz
    TRAINER/bin/python benchmarks/intensity_network.py train predictions.npz

These take about 4 and 12 minutes on two cores. Use Python 3.11, since ms2pip 4.0.0 may have no package with its models for other versions.

The teacher is MS2PIP's model `HCDch2` (Gabriels 2019, Nucleic Acids Res. 47:W295; Apache-2.0), which is compiled into the package; nothing
else is fetched. Its input is only residues and charge, with I and L alike: modifications are ignored.

`teach` predicts the intensities of peptides from the FASTA files of a folder and, equally many, from the same proteins reversed, so that
the model does not favour existing sequences. Peptides are tryptic with at most two missed cleavages; every tenth is cut anywhere, for other
enzymes. `train` fits the network that `kernels/cpu/fragment_intensities.py` computes. One peptide in ten is held out, with all its charges,
and the printed figures are measured on these peptides. The same input, seed and version of PyTorch on one kind of CPU give the same
weights.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parents[1] / "resources" / "fragmentation" / "intensities.npz"
RESIDUES = "ACDEFGHIKMNPQRSTVWY"  # with L as I; codes count from 1; 0 is padding
SHORTEST, LONGEST = 7, 45
CHARGES, SHARE_OF_CHARGES = (1, 2, 3, 4, 5), (0.04, 0.5, 0.32, 0.11, 0.03)
FLOOR = 0.001
"""MS2PIP predicts the binary logarithm of this and the share of an ion in the spectrum's current."""

AROUND, ENDS = 4, 2
LENGTHS, BASIC, BASIC_AROUND, MAXIMUM_CHARGE = 20, 6, 4, 4
HIDDEN = (72, 40)
HELD_OUT = 10


# ------------------------------------------------------------------------------------------------------------------ the teacher


def read_proteins(folder: Path) -> list[str]:
    """Return sequences of the residues that MS2PIP supports, with the longest truncated."""
    peptides: dict[str, None] = {}
    for path in sorted(folder.glob("*.fasta")):
        for entry in path.read_text(errors="replace").split(">")[1:]:
            sequence = "".join(entry.split("\n")[1:]).strip().upper().replace("L", "I").rstrip("*")
            if len(sequence) >= SHORTEST and set(sequence) <= set(RESIDUES):
                peptides[sequence] = None
    return list(peptides)


def drawn_peptides(proteins: list[str], n: int, generator: np.random.Generator) -> list[str]:
    """Return `n` distinct peptides of these proteins."""
    peptides: dict[str, None] = {}
    while len(peptides) < n:
        protein = proteins[generator.integers(len(proteins))]
        if generator.random() < 0.1:
            length = int(generator.integers(SHORTEST, 26))
            begin = int(generator.integers(0, max(1, len(protein) - length)))
            peptide = protein[begin : begin + length]
        else:
            ends = [0, *(match.end() for match in re.finditer("[KR](?!P)", protein)), len(protein)]
            first = int(generator.integers(len(ends) - 1))
            missed = int(generator.choice(3, p=(0.65, 0.25, 0.1)))
            peptide = protein[ends[first] : ends[min(first + 1 + missed, len(ends) - 1)]]
        if SHORTEST <= len(peptide) <= LONGEST:
            peptides[peptide] = None
    return list(peptides)


def write_predictions(folder: Path, n: int, out: Path, processes: int) -> None:
    """Predict, and write the predictions."""
    from ms2pip.core import predict_batch
    from psm_utils import PSM, PSMList

    generator = np.random.default_rng(19)
    proteins = read_proteins(folder)
    peptides = dict.fromkeys(drawn_peptides(proteins, n // 2, generator))
    peptides |= dict.fromkeys(drawn_peptides([protein[::-1] for protein in proteins], n - n // 2, generator))
    rows = [
        (peptide, int(charge))
        for peptide in peptides
        for charge in generator.choice(CHARGES, size=1 + int(generator.random() < 0.3), replace=False, p=SHARE_OF_CHARGES)
    ]
    begun = time.time()
    psms = PSMList(psm_list=[PSM(peptidoform=f"{peptide}/{z}", spectrum_id=i) for i, (peptide, z) in enumerate(rows)])
    results = {int(prediction.psm.spectrum_id): prediction for prediction in predict_batch(psms, model="HCDch2", processes=processes)}
    columns = []
    for i in range(len(rows)):
        of = {name.lower(): np.asarray(values, np.float32) for name, values in results[i].predicted_intensity.items()}
        # The ions of the C-terminus are counted from there; here a row is a bond, counted from the N-terminus.
        columns.append(np.stack([of["b"], of["b2"], of["y"][::-1], of["y2"][::-1]], axis=1))
    np.savez_compressed(
        out,
        peptide=np.array([peptide for peptide, _ in rows]),
        charge=np.array([z for _, z in rows], np.int8),
        intensity=np.concatenate(columns),
    )
    print(f"{len(rows)} predictions for {len(peptides)} peptides in {time.time() - begun:.0f} s")


# ------------------------------------------------------------------------------------------------------------------ the network


def inputs_of(peptide: str, charge: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs of the first layer for each bond: rows of its tables, (bonds, tables), and numbers, (bonds, numbers)."""
    codes = np.array([RESIDUES.index(residue) + 1 for residue in peptide])
    n, n_codes = len(codes), len(RESIDUES) + 1
    padded = np.concatenate((np.zeros(AROUND, int), codes, np.zeros(AROUND, int)))
    left = np.arange(1, n)  # residues before the bond
    tables, first = [], 0
    for offset in range(-AROUND, AROUND):
        tables.append(first + padded[AROUND + left + offset])
        first += n_codes
    for end in (*range(ENDS), *range(-ENDS, 0)):
        tables.append(np.full(n - 1, first + codes[end]))
        first += n_codes
    z = min(charge, MAXIMUM_CHARGE) - 1
    is_basic = np.isin(codes, [RESIDUES.index(residue) + 1 for residue in "HKR"])
    before = np.cumsum(is_basic)[:-1]
    after = is_basic.sum() - before
    tables.append(first + np.minimum(left, LENGTHS) - 1)
    first += LENGTHS
    tables.append(first + np.minimum(n - left, LENGTHS) - 1)
    first += LENGTHS
    tables.append(np.full(n - 1, first + z * BASIC + min(int(is_basic.sum()), BASIC - 1)))
    first += MAXIMUM_CHARGE * BASIC
    most = BASIC_AROUND - 1
    tables.append(first + (z * BASIC_AROUND + np.minimum(before, most)) * BASIC_AROUND + np.minimum(after, most))
    one_hot = np.zeros((n, len(RESIDUES)))
    one_hot[np.arange(n), codes - 1] = 1
    counts = np.cumsum(one_hot, axis=0)[:-1]
    others = np.column_stack((counts, one_hot.sum(axis=0) - counts, left / n, np.full(n - 1, n / 50)))
    return np.stack(tables, axis=1), others


N_TABLE_ROWS = (2 * AROUND + 2 * ENDS) * (len(RESIDUES) + 1) + 2 * LENGTHS + MAXIMUM_CHARGE * (BASIC + BASIC_AROUND**2)
N_OTHERS = 2 * len(RESIDUES) + 2


def train(predictions: Path, epochs: int, out: Path, threads: int) -> None:
    """Fit the network and write its weights."""
    import torch
    from torch import nn

    torch.manual_seed(19)
    torch.set_num_threads(threads)
    generator = np.random.default_rng(19)
    with np.load(predictions) as file:
        peptides, charges, target = file["peptide"].tolist(), file["charge"].astype(int), torch.from_numpy(file["intensity"])
    made = [inputs_of(peptide, z) for peptide, z in zip(peptides, charges.tolist(), strict=True)]
    tables = torch.from_numpy(np.concatenate([tables for tables, _ in made]).astype(np.int32))
    others = torch.from_numpy(np.concatenate([others for _, others in made]).astype(np.float32))
    lengths = np.array([len(tables) for tables, _ in made])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    distinct, number = np.unique(peptides, return_inverse=True)
    held = np.isin(number, generator.permutation(len(distinct))[: len(distinct) // HELD_OUT])
    doubly = torch.from_numpy(np.repeat(charges >= 3, lengths))
    is_predicted = torch.stack([torch.ones(len(doubly), dtype=torch.bool), doubly] * 2, dim=1)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.EmbeddingBag(N_TABLE_ROWS, HIDDEN[0], mode="sum")
            nn.init.normal_(self.tables.weight, std=0.1)
            self.others, self.second = nn.Linear(N_OTHERS, HIDDEN[0]), nn.Linear(*HIDDEN)
            self.out = nn.Linear(HIDDEN[1], 4)
            nn.init.constant_(self.out.bias, -6.0)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            first = torch.relu(self.tables(tables[rows]) + self.others(others[rows]))
            return self.out(torch.relu(self.second(first)))

    network = Network()
    print(f"{sum(weights.numel() for weights in network.parameters())} weights, {len(distinct)} peptides, {len(target)} bonds")

    def roots(logarithm: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(torch.relu(torch.exp2(logarithm) - FLOOR) + 1e-7)

    def cosines(rows: torch.Tensor, owner: torch.Tensor, n: int, predicted: torch.Tensor) -> torch.Tensor:
        a, b = roots(predicted) * is_predicted[rows], roots(target[rows]) * is_predicted[rows]
        sums = torch.zeros(n, 3).index_add(0, owner, torch.stack([(a * b).sum(1), (a * a).sum(1), (b * b).sum(1)], dim=1))
        return sums[:, 0] / torch.sqrt(sums[:, 1] * sums[:, 2])

    def batch(chosen: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        owner = np.repeat(np.arange(len(chosen)), lengths[chosen])
        rows = np.arange(len(owner)) + np.repeat(offsets[chosen] - np.concatenate(([0], np.cumsum(lengths[chosen])[:-1])), lengths[chosen])
        return torch.from_numpy(rows), torch.from_numpy(owner)

    learnt, tested = np.flatnonzero(~held), np.flatnonzero(held)
    size = 256
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, epochs=epochs, steps_per_epoch=-(-len(learnt) // size), pct_start=0.15)
    begun = time.time()
    for epoch in range(epochs):
        order = generator.permutation(learnt)
        for begin in range(0, len(order), size):
            rows, owner = batch(order[begin : begin + size])
            predicted = network(rows)
            difference = (predicted - target[rows])[is_predicted[rows]]
            loss = (1 - cosines(rows, owner, int(owner[-1]) + 1, predicted)).mean() + 0.01 * (difference**2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        if epoch % 5 == 4 or epoch == epochs - 1:
            with torch.no_grad():
                rows, owner = batch(tested)
                predicted = network(rows)
                cosine = cosines(rows, owner, len(tested), predicted).numpy()
                error = float(((predicted - target[rows])[is_predicted[rows]] ** 2).mean().sqrt())
            by_charge = " ".join(f"{z}+ {np.median(cosine[charges[tested] == z]):.3f}" for z in CHARGES)
            print(
                f"epoch {epoch + 1}: held out, cosine median {np.median(cosine):.4f}, tenth {np.quantile(cosine, 0.1):.4f}, {by_charge};"
                f" log2 error {error:.2f}; {time.time() - begun:.0f} s",
                flush=True,
            )

    def plain(parameter: torch.Tensor) -> np.ndarray:
        return np.ascontiguousarray(parameter.detach().numpy())

    np.savez(
        out,
        tables=plain(network.tables.weight),
        others=plain(network.others.weight.T),
        first_bias=plain(network.others.bias),
        second=plain(network.second.weight.T),
        second_bias=plain(network.second.bias),
        out=plain(torch.cat((network.out.weight.T, network.out.bias[None])))[None],
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    teaching = parts.add_parser("teach")
    teaching.add_argument("--proteomes", type=Path, required=True)
    teaching.add_argument("--peptides", type=int, default=50_000)
    teaching.add_argument("--processes", type=int, default=2)
    teaching.add_argument("--out", type=Path, required=True)
    training = parts.add_parser("train")
    training.add_argument("predictions", type=Path)
    training.add_argument("--epochs", type=int, default=100)
    training.add_argument("--threads", type=int, default=1)
    training.add_argument("--out", type=Path, default=OUTPUT)
    options = parser.parse_args()
    if options.part == "teach":
        write_predictions(options.proteomes, options.peptides, options.out, options.processes)
    else:
        train(options.predictions, options.epochs, options.out, options.threads)


if __name__ == "__main__":
    main()

"""Peptide counts of a digest on a GPU equal those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.masses import RESIDUE_MASS
from proteoscope.engine.formats import read_proteins
from proteoscope.kernels.cpu import digestion as cpu
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import digestion as cuda
from proteoscope.kernels.digestion_layouts import DigestionRules

pytestmark = pytest.mark.gpu

RESIDUES = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWYX", np.uint8)
MASS = np.array([-1 if residue in "BJXZ" else 57_000_000_000 + 3_100_000_000 * i for i, residue in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")])
WATER, WIDTH, HEAVIEST = 18_000_000_000, 10_000_000_000, 5_000_000_000_000


@pytest.mark.parametrize(("agent", "ends", "missed"), [("Trypsin", 2, 2), ("Trypsin/P", 1, 1), ("Asp-N", 2, 2), ("Trypsin", 0, 0)])
@pytest.mark.parametrize("residues_of_round", [1 << 26, 100_000])
def test_gpu_peptide_counts_equal_cpu(agent, ends, missed, residues_of_round, device, monkeypatch):
    monkeypatch.setattr(cuda, "_RESIDUES_OF_ROUND", residues_of_round)
    random = np.random.default_rng(ends)
    offsets = np.concatenate(([0], np.cumsum(random.integers(0, 900, 2000)))).astype(np.int64)
    residues = random.choice(RESIDUES, offsets[-1])
    residues[offsets[:-1][np.diff(offsets) > 0][::2]] = ord("M")
    bounds = np.array([0, 0, 700, 1999, 2000])
    rules = DigestionRules(enzyme(agent).cleavage_table(), MASS, WATER, ends, missed, 6, 40, True, 400_000_000_000, HEAVIEST, WIDTH)
    expected, actual = (np.ones((4, HEAVIEST // WIDTH + 1), np.int64) for _ in range(2))
    list(cpu.count_peptides(Processor(2), residues, offsets, bounds, rules, expected))
    list(cuda.count_peptides(device, residues, offsets, bounds, rules, actual))
    assert expected.sum() > 10_000
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("ends", "missed"), [(2, 2), (1, 1), (0, 0)])
def test_gpu_peptide_counts_of_real_proteins_equal_cpu(ends, missed, device, shared_data):
    proteins = read_proteins([shared_data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta"])
    masses = np.where(np.isnan(RESIDUE_MASS), -1, np.rint(np.nan_to_num(RESIDUE_MASS) * 1e9)).astype(np.int64)
    n = len(proteins.offsets) - 1
    bounds = np.array([0, n // 3, n // 3, n // 2, n])
    rules = DigestionRules(
        enzyme("Trypsin").cleavage_table(), masses, 18_010_564_684, ends, missed, 7, 45, True, 500 * 10**9, 5000 * 10**9, 10**8
    )
    expected, actual = (np.zeros((4, 50_001), np.int64) for _ in range(2))
    list(cpu.count_peptides(Processor(2), proteins.residues, proteins.offsets, bounds, rules, expected))
    list(cuda.count_peptides(device, proteins.residues, proteins.offsets, bounds, rules, actual))
    assert expected.sum() > 100_000
    np.testing.assert_array_equal(actual, expected)

"""Peptide counts of the kernel (through tests/shim) and of the CPU equal the digest that lists every peptide."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from proteoscope.engine.chemistry.enzymes import SPECIFICITIES, digest, enzyme
from proteoscope.engine.execution.resources import Resources
from proteoscope.kernels.cpu import digestion as cpu
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import digestion as cuda
from proteoscope.kernels.device import DeviceError, DeviceMemoryError
from proteoscope.kernels.digestion_layouts import DigestionRules
from tests.shim.read_only import read_only
from tests.shim.shim_gpu import ShimGpu, missing_compiler

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")

MASS = np.array([-1 if residue in "BJXZ" else 100 + 7 * i for i, residue in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")], np.int64)
WATER, WIDTH = 18, 50


def random_proteins(seed: int, n: int = 40) -> tuple[list[str], NDArray[np.uint8], NDArray[np.int64]]:
    """Generate proteins of some residues, some empty, some of a single residue, many that begin with M."""
    random = np.random.default_rng(seed)
    proteins = ["", "M", "K", "MK", "MM"]
    residues = list("AKRPMDGXUO")
    proteins += [("M" if random.random() < 0.5 else "") + "".join(random.choice(residues, n)) for n in random.integers(0, 60, n)]
    proteins.append("")
    offsets = np.concatenate(([0], np.cumsum([len(protein) for protein in proteins]))).astype(np.int64)
    read_only(offsets)
    return proteins, np.frombuffer("".join(proteins).encode(), np.uint8), offsets


def rules(agent: str, ends: int, missed: int, lengths: tuple[int, int], masses: tuple[int, int], clip: bool) -> DigestionRules:
    return DigestionRules(enzyme(agent).cleavage_table(), MASS, WATER, ends, missed, *lengths, clip, *masses, WIDTH)


def expected_counts(
    proteins: list[str],
    bounds: list[int],
    agent: str,
    ends: int,
    missed: int,
    lengths: tuple[int, int],
    masses: tuple[int, int],
    clip: bool,
) -> NDArray[np.int64]:
    """Count by definition, in plain Python."""
    counts = np.zeros((len(bounds) - 1, masses[1] // WIDTH + 1), np.int64)
    for share in range(len(bounds) - 1):
        for protein in proteins[bounds[share] : bounds[share + 1]]:
            for start, stop, _ in digest(protein, enzyme(agent), missed, SPECIFICITIES[2 - ends], *lengths, clip):
                residues = [int(MASS[ord(residue) - 65]) for residue in protein[start:stop]]
                mass = WATER + sum(residues)
                if min(residues) >= 0 and masses[0] <= mass <= masses[1]:
                    counts[share, mass // WIDTH] += 1
    return counts


@pytest.mark.parametrize(
    ("agent", "ends", "missed", "lengths", "masses", "clip"),
    [
        ("Trypsin", 2, 1, (1, 30), (0, 5000), True),
        ("Trypsin", 2, 0, (2, 12), (400, 1500), False),
        ("Trypsin/P", 1, 2, (3, 20), (300, 4000), True),
        ("Asp-N", 1, 1, (1, 50), (0, 9000), True),
        ("CNBr", 2, 3, (1, 50), (0, 9000), True),
        ("no cleavage", 2, 0, (1, 64), (0, 9000), True),
        ("Trypsin", 0, 0, (4, 9), (0, 9000), True),
    ],
)
def test_count_peptides_equals_definition_on_both_backends(agent, ends, missed, lengths, masses, clip):
    proteins, residues, offsets = random_proteins(ends + missed)
    bounds = [0, 1, 1, 20, 33, len(proteins)]
    expected = expected_counts(proteins, bounds, agent, ends, missed, lengths, masses, clip)
    assert expected.sum() > 10
    for count, device in ((cpu.count_peptides, Processor(2)), (cuda.count_peptides, ShimGpu(descending=True))):
        counts = np.ones_like(expected)
        done = list(count(device, residues, offsets, np.array(bounds), rules(agent, ends, missed, lengths, masses, clip), counts))
        assert done[-1] == len(residues)
        np.testing.assert_array_equal(counts, expected + 1, "counts are added")


def test_cuda_peptide_counts_do_not_depend_on_rounds(monkeypatch):
    monkeypatch.setattr(cuda, "_RESIDUES_OF_ROUND", 100)
    _, residues, offsets = random_proteins(5)
    of_digest = rules("Trypsin", 1, 2, (2, 40), (0, 6000), True)
    bounds = np.array([3, 9, 30])
    expected, counts = (np.zeros((2, 6000 // WIDTH + 1), np.int64) for _ in range(2))
    list(cpu.count_peptides(Processor(1), residues, offsets, bounds, of_digest, expected))
    gpu = ShimGpu()
    looks = list(cuda.count_peptides(gpu, residues, offsets, bounds, of_digest, counts))
    np.testing.assert_array_equal(counts, expected)
    assert len(looks) == gpu.n_launches == -(-int(offsets[30] - offsets[3]) // 100)


def test_peptide_counts_are_unchanged_if_the_gpu_is_full_or_lost():
    _, residues, offsets = random_proteins(6)
    of_digest = rules("Trypsin", 2, 1, (1, 40), (0, 6000), True)
    full, lost = ShimGpu(), ShimGpu(failing_launch=0)
    full.largest_buffer = 500
    for gpu, problem in ((full, DeviceMemoryError), (lost, DeviceError)):
        counts = np.zeros((1, 6000 // WIDTH + 1), np.int64)
        with pytest.raises(problem):
            list(cuda.count_peptides(gpu, residues, offsets, np.array([0, len(offsets) - 1]), of_digest, counts))
        assert counts.sum() == 0


@pytest.mark.parametrize("failing", [-1, 0])
def test_peptide_index_is_the_same_with_peptide_counts_of_a_gpu(failing, tmp_path, monkeypatch):
    from proteoscope.engine.formats import read_proteins
    from proteoscope.engine.identification.parameters import IdentificationParameters
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.peptides import peptide_index
    from proteoscope.engine.peptides.digestion import Digestion
    from proteoscope.engine.peptides.peptide_index import build_peptide_index
    from proteoscope.engine.peptides.protein_index import build_protein_index

    proteins = [
        random_protein.replace("X", "L").replace("U", "S").replace("O", "T")
        for random_protein in random_proteins(7, 60)[0]
        if len(random_protein) > 10
    ]
    (tmp_path / "proteins.fasta").write_text("".join(f">protein{i}\n{protein}\n" for i, protein in enumerate(proteins)), encoding="ascii")
    parameters = IdentificationParameters()
    digestion = Digestion.from_settings(parameters, "semi-specific")
    monkeypatch.setattr(peptide_index, "_RESIDUES_FOR_A_GPU", 0)  # smaller digests are counted on CPU threads
    built = []
    reported: list[str] = []
    for name, gpus in (("threads", []), ("gpu", [ShimGpu(failing_launch=failing)])):
        folder = tmp_path / name
        folder.mkdir()
        index = build_protein_index(
            folder,
            read_proteins([tmp_path / "proteins.fasta"]),
            database="proteins.fasta",
            decoys=parameters.decoys,
            decoy_prefix=parameters.decoy_prefix,
            cleaves=digestion.enzyme.cleavage_table(),
        )
        progress = Progress(lambda event: reported.append(event.message) if event.message else None)
        built.append(build_peptide_index(folder, index, digestion, Resources(1, gpus, progress=progress), memory_bytes=20_000))
        assert not gpus or gpus[0].n_launches == 1
    assert len(built[0]) > 100
    for column in ("mass", "position", "length", "flags", "letters", "pointer", "occurrence"):
        np.testing.assert_array_equal(getattr(built[0], column), getattr(built[1], column))
    assert len(reported) == (failing == 0)

"""Entries of a library to write: random peptides, with every kind of modification and with ions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.masses import RESIDUE_MASS, WATER_MASS
from proteoscope.engine.spectra.library_entries import EntryModifications, LibraryEntries, PeakIons, rounded_peaks
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR

NAMES = ("Oxidation", "Carbamidomethyl", "Acetyl", "Glu->pyro-Glu", "+8.0142", "Amidated")
MASSES = (15.994915, 57.021464, 42.010565, -18.010565, 8.0142, -0.984016)


def entries(n: int, seed: int, *, origin="merged", ends=True) -> LibraryEntries:
    """Return `n` entries; every third has no modifications, protein, time and q-value."""
    rng = np.random.default_rng(seed)
    sequences, modifications, mass = [], [], []
    for i in range(n):
        residues = ["E", *rng.choice(list("ACDEFGHIKLMNPQSTVWY"), rng.integers(5, 20)), "M", "C", "K"]
        sequences.append("".join(residues))
        placed_kinds = [] if i % 3 == 0 else [(len(residues) - 2, 0), (len(residues) - 1, 1)]
        if ends and i % 3 == 1:
            placed_kinds = [(0, 2), *placed_kinds, (len(residues) + 1, 5)]
        if i % 3 == 2:
            placed_kinds = [*([(1, 3)] if ends else []), *placed_kinds, (len(residues), 4)]
        modifications.append(placed_kinds)
        mass.append(
            sum(RESIDUE_MASS[ord(residue) - 65] for residue in residues) + WATER_MASS + sum(MASSES[kind] for _, kind in placed_kinds)
        )
    count = rng.integers(1, 60, n)
    offsets = segment_offsets(count)
    owner = np.repeat(np.arange(n), count)
    mz = rng.uniform(100, 1500, offsets[-1])
    mz = mz[np.lexsort((mz, owner))]
    series = rng.choice(np.array([0, ord("b"), ord("y")], np.uint8), offsets[-1])
    is_ion = series > 0
    number, charge = (rng.integers(1, most, offsets[-1]).astype(np.uint8) * is_ion for most in (9, 3))
    ions = PeakIons(series, number, charge, (rng.normal(0, 0.01, offsets[-1]) * is_ion).astype(np.float32))
    is_bare = np.arange(n) % 3 == 0
    places, kinds = zip(*(pair for entry in modifications for pair in entry), strict=True) if any(modifications) else ((), ())
    counts = np.array([len(modification) for modification in modifications], np.int64)
    placed = EntryModifications(segment_offsets(counts), np.array(places, np.int64), np.array(kinds, np.int64), NAMES, MASSES)
    proteins = [
        None if bare else PROTEIN_SEPARATOR.join(f"sp|P{k}|X;{k}" for k in range(i % 4 + 1)) for i, bare in enumerate(is_bare.tolist())
    ]
    return LibraryEntries(
        pa.array(sequences),
        placed,
        pa.array(proteins, pa.string()),
        rng.integers(1, 5, n),
        np.array(mass),
        np.where(is_bare, np.nan, np.round(rng.uniform(1, 5000, n), 3)),
        np.where(is_bare, np.nan, np.round(rng.uniform(0, 0.01, n), 8)),
        rng.integers(1, 9, n),
        offsets,
        *rounded_peaks(mz, rng.exponential(2000, offsets[-1]).astype(np.float32) + 1),
        ions,
        origin,
    )

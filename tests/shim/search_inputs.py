"""Random searches for comparing the CPU and CUDA scoring kernels, and the comparison of their hits."""

from __future__ import annotations

import numpy as np

from proteoscope.kernels.layouts import HitArrays, ModificationArrays, PeptideArrays, QueryArrays, ScoringSettings, SpectrumArrays
from tests.shim.read_only import read_only

__all__ = [
    "NOT_STOPPED",
    "as_of_an_index",
    "assert_same_hits",
    "empty_hits",
    "random_modifications",
    "random_search",
    "with_known_modifications",
]

NOT_STOPPED = np.zeros(1, np.uint8)
"""Stop flag of a kernel that is not set."""

_PROTON = 1.007276466621
_WATER = 18.010564684
_MASSES = {
    "G": 57.02146,
    "A": 71.03711,
    "S": 87.03203,
    "P": 97.05276,
    "V": 99.06841,
    "T": 101.04768,
    "C": 103.00919,
    "L": 113.08406,
    "I": 113.08406,
    "N": 114.04293,
    "D": 115.02694,
    "Q": 128.05858,
    "K": 128.09496,
    "E": 129.04259,
    "M": 131.04049,
    "H": 137.05891,
    "F": 147.06841,
    "R": 156.10111,
    "Y": 163.06333,
    "W": 186.07931,
}
_ANY = 0xFFFFFFFF
_OF_THE_INDEX = ("mass", "position", "length", "flags", "letters", "residues", "known", "known_site", "known_modification")


def _mask(residues: str) -> int:
    return sum(1 << ord(residue) - 65 for residue in residues) or _ANY


def as_of_an_index(peptides: PeptideArrays) -> PeptideArrays:
    """Return peptides as read from an index, which is read-only."""
    columns = read_only(*(getattr(peptides, name) for name in _OF_THE_INDEX))
    return peptides._replace(**dict(zip(_OF_THE_INDEX, columns, strict=True)))


def random_modifications(
    random: np.random.Generator, most: int, maximum_forms: int, which: tuple[int, ...] | None = None
) -> ModificationArrays:
    """Generate modifications for all kinds of sites: residues, both ends of peptide and protein, a residue at an end, any residue.

    At most `most` may occur together.
    """
    kinds = [
        (15.9949, "M", 0),
        (79.9663, "STY", 0),
        (42.0106, "", 3),
        (-17.0265, "Q", 1),
        (-0.984, "", 2),
        (14.0157, "KR", 4),
        (0.5, "", 0),
    ]
    chosen = [kinds[i] for i in which or sorted(random.choice(len(kinds), 4, replace=False))]
    n = len(chosen)
    counts = [np.zeros(n, np.int64)]
    for _ in range(most):
        counts = list({tuple(count + extra) for count in counts for extra in (*np.eye(n, dtype=np.int64), np.zeros(n, np.int64))})
        counts = [np.array(count) for count in counts]
    table = np.array(sorted(counts, key=lambda row: (row.sum(), *-row)), np.int64)
    mass = np.array([kind[0] for kind in chosen])
    return ModificationArrays(
        mass,
        np.array([_mask(kind[1]) for kind in chosen], np.uint32),
        np.array([kind[2] for kind in chosen], np.int64),
        table @ mass,
        table,
        maximum_forms,
    )


def random_search(
    seed: int,
    score: int,
    *,
    n_queries: int = 12,
    n_peptides: int = 12_000,
    fragment: tuple[float, float] = (0.0, 20e-6),
    precursor: tuple[float, float] = (0.3, 0.0),
    series: tuple[str, str] = ("b", "y"),
    fragment_charge: int = 2,
    most: int = 2,
    maximum_forms: int = 20,
    which: tuple[int, ...] | None = None,
) -> tuple[SpectrumArrays, QueryArrays, PeptideArrays, ModificationArrays, ScoringSettings]:
    """Generate random peptides and spectra with fragments of a peptide and noise; one spectrum has no peaks."""
    random = np.random.default_rng(seed)
    alphabet = np.frombuffer("".join(_MASSES).encode(), np.uint8)
    residue_mass = np.full(26, np.nan)
    for residue, mass in _MASSES.items():
        residue_mass[ord(residue) - 65] = mass
    lengths = random.integers(5, 30, n_peptides)
    lengths[0] = 63
    position = np.concatenate(([0], np.cumsum(lengths)))
    residues = random.choice(alphabet, position[-1])
    of_residue = residue_mass[residues - 65]
    n_term, c_term = 0.0, 1.25
    mass = np.add.reduceat(of_residue, position[:-1]) + _WATER + n_term + c_term
    present = np.bitwise_or.reduceat(np.uint32(1) << (residues - 65).astype(np.uint32), position[:-1])
    order = np.argsort(mass, kind="stable")
    peptides = as_of_an_index(
        PeptideArrays(
            mass[order],
            position[:-1][order].astype(np.uint32),
            lengths[order].astype(np.uint8),
            random.integers(0, 4, n_peptides).astype(np.uint8),
            present[order],
            residues,
            residue_mass,
            n_term,
            c_term,
        )
    )
    modifications = random_modifications(random, most, maximum_forms, which)
    offset = {"a": -27.994915, "b": 0.0, "c": 17.026549, "x": 43.98983, "y": _WATER, "z": 1.991841}
    mz, weight, bounds, charges, masses = [], [], [0], [], []
    for q in range(n_queries):
        i = random.integers(n_peptides)
        combination = random.integers(len(modifications.combination_mass))
        masses.append(peptides.mass[i] + modifications.combination_mass[combination] + random.integers(0, 3) * 1.00335)
        charges.append(random.integers(1, 5))
        start, length = int(peptides.position[i]), int(peptides.length[i])
        sums = np.cumsum(residue_mass[residues[start : start + length] - 65])[:-1]
        ions = np.concatenate((sums + _PROTON, mass[order][i] - c_term - sums + _PROTON))
        ions = np.concatenate((ions, (ions + _PROTON) / 2))
        ions = ions[random.random(len(ions)) < 0.5] * (1 + random.normal(0, 5e-6))
        peaks = np.sort(np.concatenate((ions, random.uniform(100, 1500, 60))))
        if q == 3:
            peaks = peaks[:0]
        values = random.uniform(0.01, 1.0, len(peaks)).astype(np.float32)
        mz.append(peaks)
        weight.append(values / np.float32(max(1e-9, np.sqrt((values * values).sum()))))
        bounds.append(bounds[-1] + len(peaks))
    spectra = SpectrumArrays(np.array(bounds), np.concatenate(mz), np.concatenate(weight), 50 * np.concatenate(weight))
    by_mass = np.argsort(masses, kind="stable")
    queries = QueryArrays(by_mass.astype(np.int64), np.array(charges, np.int64)[by_mass], np.array(masses)[by_mass])
    coarse = fragment[0] > 0.1
    settings = ScoringSettings(
        *precursor,
        np.array([2, 1, 0, -1]),
        np.array([900.0, 300.0, 0.0, 0.0]),
        1.00335,
        *fragment,
        np.array([offset[residue] + _PROTON for residue in series[0]]),
        np.array([offset[residue] + _PROTON for residue in series[1]]),
        fragment_charge,
        0.5 if coarse else 0.02,
        float(spectra.mz.max()) + 2,
        1.0005 if coarse else 0.02,
        0.4 if coarse else 0.0,
        5,
        3.0,
        score,
        2,
    )
    return spectra, queries, peptides, modifications, settings


def with_known_modifications(
    inputs: tuple[SpectrumArrays, QueryArrays, PeptideArrays, ModificationArrays, ScoringSettings], seed: int, most: int
) -> tuple[SpectrumArrays, QueryArrays, PeptideArrays, ModificationArrays, ScoringSettings]:
    """Add entries for peptides with known modifications to a search.

    An entry has up to `most` of them: two on residues, one on either end, one on the residue at an end.
    """
    spectra, queries, peptides, modifications, settings = inputs
    random, n_variable = np.random.default_rng(seed), len(modifications.mass)
    masses, places = np.array([79.9663, 14.0157, 42.0106, -0.984, -17.0265]), np.array([0, 0, 1, 2, 1])
    rows, added, owner = [np.full((2, most), 255, np.uint8)], [], []
    for i in random.choice(len(peptides.mass), len(peptides.mass) // 3, replace=False).tolist():
        length = int(peptides.length[i])
        residues = random.choice(np.arange(1, length + 1), min(2, length), replace=False)
        possible = [(0, int(residues[0])), (random.integers(2), int(residues[-1])), (2, 0), (3, length + 1), (4, 1)]
        chosen = sorted(
            (possible[k] for k in random.choice(4, random.integers(1, most + 1), replace=False)), key=lambda place: (place[0], place[1])
        )
        if len({site for _, site in chosen}) < len(chosen):
            continue
        row = np.full((2, most), 255, np.uint8)
        row[0, : len(chosen)] = [site for _, site in chosen]
        row[1, : len(chosen)] = [n_variable + kind for kind, _ in chosen]
        rows.append(row)
        added.append(masses[[kind for kind, _ in chosen]].sum())
        owner.append(i)
    mass = np.concatenate((peptides.mass, peptides.mass[owner] + added))
    order = np.argsort(mass, kind="stable")
    source = np.concatenate((np.arange(len(peptides.mass)), owner))[order]
    forms = np.concatenate((np.zeros(len(peptides.mass), np.uint32), np.arange(1, len(rows), dtype=np.uint32)))[order]
    table = np.stack(rows)
    columns = {name: getattr(peptides, name)[source] for name in ("position", "length", "flags", "letters")}
    with_known = as_of_an_index(
        peptides._replace(
            mass=mass[order],
            **columns,
            known=forms,
            known_site=np.ascontiguousarray(table[:, 0]),
            known_modification=np.ascontiguousarray(table[:, 1]),
        )
    )
    more = modifications._replace(mass=np.concatenate((modifications.mass, masses)), place=np.concatenate((modifications.place, places)))
    return spectra, queries, with_known, more, settings


def empty_hits(n: int, *, n_hits: int = 5, slots: int = 3, bins: int = 96, width: float = 0.5) -> HitArrays:
    """Return empty hits of n queries."""
    return HitArrays(
        np.full((n, n_hits), -np.inf, np.float32),
        np.full((n, n_hits), -1, np.int64),
        np.zeros((n, n_hits), np.int8),
        np.full((n, n_hits, slots), 255, np.uint8),
        np.full((n, n_hits, slots), 255, np.uint8),
        np.zeros(n, np.int64),
        np.zeros((n, bins), np.int32),
        width,
    )


def assert_same_hits(actual: HitArrays, expected: HitArrays) -> None:
    """Compare hits to the last bit: scores, candidates and their order, histograms."""
    for name, left, right in zip(HitArrays._fields, actual, expected, strict=True):
        np.testing.assert_array_equal(left, right, name)
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes(), f"{name}: zeros of different signs, or other types"

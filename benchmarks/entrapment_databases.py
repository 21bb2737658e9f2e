"""Databases with recognisable wrong answers: a sample's own proteins and proteins that cannot be in it.

paired
    For each protein of the sample, a protein with its tryptic peptides shuffled, so that each peptide has one partner of the same length
    and mass (Wen et al. 2025, Nature Methods 22:1454). Matches to partners are false.
foreign
    Proteins of other organisms. Peptides that also occur in a protein of the sample or a contaminant (I = L) do not count as foreign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyteomics import mass

__all__ = [
    "CONTAMINANT",
    "DECOY",
    "ENTRAPMENT",
    "EntrapmentDatabase",
    "digested",
    "distinct_peptides",
    "foreign_databases",
    "paired_databases",
    "with_decoys",
    "write_fasta",
]

ENTRAPMENT = "ENTRAPMENT_"
DECOY = "DECOY_"
CONTAMINANT = re.compile(r"TRYP|TRY\d_|K[12]C|KRT|KRHB|KR[AB]|ALBU_|ALBO_|CAS[123AKB]+_|LYSC_|UPS$|UBIQ_", re.IGNORECASE)
"""Proteins that get into any sample: trypsin, keratins, albumins, caseins, lysozyme; ubiquitin, which all have alike; added standards."""

SHORTEST, LONGEST, MISSED_CLEAVAGES = 7, 50, 2
LIGHTEST, HEAVIEST = 500.0, 6000.0
_CUT = re.compile(r"(?<=[KR])(?!P)")
_REDRAWS = 40


@dataclass(frozen=True)
class EntrapmentDatabase:
    """A database with known wrong answers.

    Attributes
    ----------
    proteins : all sequences by accession, in the order in which they are written; those that cannot be in the sample begin with
        ``ENTRAPMENT_``.
    harmless : sequences that a true match may come from, I written as L, in one text.
    ratio : distinct entrapment peptides for each distinct peptide of the sample, within the limits of length and mass.
    partners : peptides of the sample (I as L, without leading methionines) by the shuffled peptide; empty for a foreign database.
    n_unpaired : distinct peptides of the sample whose partner is another peptide of the sample, or the partner of another too.
    """

    proteins: dict[str, str]
    harmless: str
    ratio: float
    partners: dict[str, str]
    n_unpaired: int = 0

    def is_entrapment(self, sequence: str) -> bool:
        """Return True if neither a protein of the sample nor a contaminant holds the peptide (I = L)."""
        return sequence.replace("I", "L") not in self.harmless

    def partner(self, sequence: str) -> str:
        """Return the sample's peptide (I as L) that was shuffled to the entrapment peptide, or ''."""
        whole = ""
        for peptide in digested(sequence.replace("I", "L")):
            core = peptide.lstrip("M")
            partner = self.partners.get(core)
            if partner is None:
                return ""
            whole += peptide[: len(peptide) - len(core)] + partner
        return whole


def digested(sequence: str) -> list[str]:
    """Return the tryptic peptides without missed cleavages: cut after K and R, not before P."""
    return [peptide for peptide in _CUT.split(sequence) if peptide]


def write_fasta(proteins: Mapping[str, str], path: Path) -> None:
    """Write sequences, a line each."""
    path.write_text("".join(f">{accession}\n{sequence}\n" for accession, sequence in proteins.items()))


def paired_databases(proteins: dict[str, str], seeds: Iterable[int]) -> Iterator[EntrapmentDatabase]:
    """Yield for each seed the proteins and their shuffled partners, in random order, so that ties favour neither.

    Each peptide between cleavage sites is shuffled separately, and in the same way wherever it occurs, so that peptides with missed
    cleavages have partners too. The last residue, and K or R before P (where trypsin does not cut), are not moved. Leading methionines are
    not moved either, since a protein may lose its first. A shuffled peptide begins with P or M only if the original does. I and L are one
    residue: peptides that differ only by them are shuffled in the same way. A peptide long enough to be searched is shuffled again if the
    result is a peptide of the sample; if all attempts fail, it is not shuffled and counts as the sample's own.
    """
    cut = {accession: digested(sequence) for accession, sequence in proteins.items()}
    distinct = {peptide for peptides in cut.values() for peptide in peptides}
    taken = {peptide.replace("I", "L") for peptide in distinct}
    # A protein that begins with a methionine may lose it.
    taken |= {peptides[0][1:].replace("I", "L") for peptides in cut.values() if peptides and peptides[0].startswith("M")}
    of_sample, harmless = distinct_peptides(proteins.values()), "|".join(proteins.values()).replace("I", "L")
    for seed in seeds:
        generator = np.random.default_rng(seed)
        arrangement = _arrangements(taken, generator)
        shuffled: dict[str, str] = {}
        for peptide in distinct:
            core = peptide.lstrip("M")
            word, order = arrangement[core.replace("I", "L")]
            if "I" in core:
                word = "".join(map(core.__getitem__, order.tolist()))
            shuffled[peptide] = peptide[: len(peptide) - len(core)] + word
        entrapment = {ENTRAPMENT + accession: "".join(map(shuffled.__getitem__, peptides)) for accession, peptides in cut.items()}
        false = np.setdiff1d(distinct_peptides(entrapment.values()), of_sample, assume_unique=True)
        partners = {word: core for core, (word, _) in arrangement.items()}
        ratio, n_unpaired = len(false) / len(of_sample), len(of_sample) - len(false)
        yield EntrapmentDatabase(_mixed(proteins | entrapment, generator), harmless, ratio, partners, n_unpaired)


def with_decoys(database: EntrapmentDatabase, share: float, seed: int) -> EntrapmentDatabase:
    """Return the database with reversed proteins for a random share of its proteins, in random order."""
    generator, names = np.random.default_rng([seed, 1]), list(database.proteins)
    chosen = generator.permutation(len(names))[: round(share * len(names))]
    decoys = {DECOY + names[i]: database.proteins[names[i]][::-1] for i in chosen.tolist()}
    return replace(database, proteins=_mixed(database.proteins | decoys, generator))


def foreign_databases(
    proteins: dict[str, str], foreign: Mapping[str, str], harmless: Iterable[str], seeds: Iterable[int], most: float = 2.0
) -> Iterator[EntrapmentDatabase]:
    """Yield for each seed the sample's proteins and foreign ones with about `most` times as many peptides.

    `harmless` are sequences that may be in any sample.
    """
    harmless = [*proteins.values(), *harmless]
    of_sample, allowed = distinct_peptides(proteins.values()), distinct_peptides(harmless)
    candidates = [name for name in foreign if name not in proteins and not CONTAMINANT.search(name)]
    whole = np.setdiff1d(distinct_peptides(foreign[name] for name in candidates), allowed, assume_unique=True)
    n = max(1, round(len(candidates) * min(1.0, most * len(of_sample) / len(whole))))
    for seed in seeds:
        generator = np.random.default_rng(seed)
        names = [candidates[i] for i in generator.permutation(len(candidates))[:n]]
        false = np.setdiff1d(distinct_peptides(foreign[name] for name in names), allowed, assume_unique=True)
        everything = proteins | {ENTRAPMENT + name: foreign[name] for name in names}
        yield EntrapmentDatabase(_mixed(everything, generator), "|".join(harmless).replace("I", "L"), len(false) / len(of_sample), {})


def _mixed(proteins: Mapping[str, str], generator: np.random.Generator) -> dict[str, str]:
    """Return the proteins in random order."""
    names = list(proteins)
    return {names[i]: proteins[names[i]] for i in generator.permutation(len(names))}


def _arrangements(taken: set[str], generator: np.random.Generator) -> dict[str, tuple[str, NDArray[np.int64]]]:
    """Return the shuffled form and residue order of each peptide without its leading methionines (I as L).

    `taken` are the peptides of the sample; peptides of `SHORTEST` residues or more are not shuffled to any of them. Shorter peptides are
    only searched as parts of others: they change, and differ from each other, where possible.
    """
    leading: dict[str, set[int]] = {}
    for peptide in taken:
        core = peptide.lstrip("M")
        leading.setdefault(core, set()).add(len(peptide) - len(core))
    arrangement: dict[str, tuple[str, NDArray[np.int64]]] = {}
    used: set[str] = set()
    pending = sorted(leading)
    for _ in range(_REDRAWS):
        still = []
        for core, (word, order) in zip(pending, _drawn(pending, generator), strict=True):
            moved = word != core and word not in used and not (word[0] in "PM" and word[0] != core[0])
            if moved and not any(len(word) + n >= SHORTEST and "M" * n + word in taken for n in leading[core]):
                arrangement[core] = word, order
                used.add(word)
            else:
                still.append(core)
        pending = still
    return arrangement | {core: (core, np.arange(len(core))) for core in pending}


def _drawn(cores: Sequence[str], generator: np.random.Generator) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield each word in a random order; the last unit is not moved, and K or R with a P after them are one unit."""
    if not cores:
        return
    lengths = np.array([len(core) for core in cores])
    residues = np.frombuffer("".join(cores).encode(), np.uint8)
    word = np.repeat(np.arange(len(cores)), lengths)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    key = generator.random(len(residues))
    last = np.zeros(len(residues), bool)
    last[ends[lengths > 0] - 1] = True
    key[last] = 2.0
    bound = np.flatnonzero(np.isin(residues[:-1], (ord("K"), ord("R"))) & (residues[1:] == ord("P")) & (word[:-1] == word[1:]))
    key[bound] = np.where(last[bound + 1], 2.0, key[bound])
    key[bound + 1] = key[bound]
    order = np.lexsort((key, word))  # a stable sort keeps the order of the two residues of a unit
    written = residues[order].tobytes().decode()
    order -= np.repeat(starts, lengths)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield written[start:end], order[start:end]


# ------------------------------------------------------------------------------------------------------- distinct peptides


def _residue_tables() -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Return the mass of each residue (NaN if unknown) with carbamidomethylated cysteine, and a random number, the same for I and L."""
    masses = np.full(128, np.nan)
    for residue, value in mass.std_aa_mass.items():
        masses[ord(residue)] = value
    masses[ord("C")] += mass.calculate_mass(formula="C2H3NO")
    masses[ord("J")] = np.nan
    numbers = np.random.default_rng(20250).integers(1, 2**63, 128, dtype=np.uint64)
    numbers[ord("I")] = numbers[ord("L")]
    return masses, numbers


_MASS, _NUMBER = _residue_tables()
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 2**64)


def _powers(base: int, n: int) -> NDArray[np.uint64]:
    powers = np.full(n, base, np.uint64)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint64)


def distinct_peptides(proteins: Iterable[str]) -> NDArray[np.uint64]:
    """Return hashes of the tryptic peptides within the limits of length and mass, uint64, ascending; I and L are the same residue.

    Includes peptides after an initial methionine and peptides with up to `MISSED_CLEAVAGES` missed cleavages; excludes peptides with a
    residue without a mass.
    """
    cut = [digested(sequence) for sequence in proteins]
    text = "".join("".join(peptides) for peptides in cut)
    if not text:
        return np.empty(0, np.uint64)
    residues = np.frombuffer(text.encode(), np.uint8)
    stop = np.cumsum([len(peptide) for peptides in cut for peptide in peptides])
    start = np.concatenate(([0], stop[:-1]))
    protein = np.repeat(np.arange(len(cut)), [len(peptides) for peptides in cut])
    first = np.append(True, protein[1:] != protein[:-1])
    masses = _MASS[residues]
    no_mass = np.concatenate(([0], np.cumsum(np.isnan(masses))))
    masses = np.concatenate(([0.0], np.cumsum(np.nan_to_num(masses))))
    # The hash of residues s..t is the sum of number x base^position, multiplied by base^-s; all modulo 2^64.
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(_NUMBER[residues] * _powers(_BASE, len(residues)), dtype=np.uint64)))
    back = _powers(_INVERSE, len(residues) + 1)
    hashed = []
    for missed in range(MISSED_CLEAVAGES + 1):
        n = len(start) - missed
        if n <= 0:
            break
        inside = protein[:n] == protein[missed:]
        begin, end = start[:n][inside], stop[missed:][inside]
        clipped = first[:n][inside] & (residues[begin] == ord("M"))
        begin, end = np.concatenate((begin, begin[clipped] + 1)), np.concatenate((end, end[clipped]))
        length = end - begin
        whole = masses[end] - masses[begin] + mass.calculate_mass(formula="H2O")
        is_allowed = (
            (length >= SHORTEST) & (length <= LONGEST) & (whole >= LIGHTEST) & (whole <= HEAVIEST) & (no_mass[end] == no_mass[begin])
        )
        begin, end = begin[is_allowed], end[is_allowed]
        hashed.append((sums[end] - sums[begin]) * back[begin] + (end - begin).astype(np.uint64))
    hashes = np.sort(np.concatenate(hashed))
    return hashes[np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]]

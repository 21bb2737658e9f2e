"""Figures of the benchmarks: matches and peptides at 1 %, agreement between programs, and foreign peptides in an entrapment search."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from tests.peers.peer_programs import Match

__all__ = ["Entrapment", "accepted", "agreement", "entrapment", "with_q_values"]


def with_q_values(matches: list[Match]) -> list[Match]:
    """Return the matches with q-values: decoys / targets at or above the score, made monotone from the lowest score; ties are one step."""
    ranked = sorted(matches, key=lambda match: -match.score)
    ratios, targets, decoys = [], 0, 0
    for match in ranked:
        targets += not match.is_decoy
        decoys += match.is_decoy
        ratios.append(decoys / max(targets, 1))
    lowest = math.inf
    for i in range(len(ranked) - 1, -1, -1):
        last_of_tie = i + 1 == len(ranked) or ranked[i + 1].score != ranked[i].score
        if last_of_tie:
            lowest = min(lowest, ratios[i])
        ranked[i] = replace(ranked[i], q_value=lowest)
    return ranked


def accepted(matches: list[Match], level: float = 0.01, *, raw: bool = False) -> list[Match]:
    """Return targets with a q-value up to `level`, which is the program's own if it has one.

    `raw` ranks by the score that the E-value is computed from.
    """
    if raw:
        matches = [replace(match, score=match.raw_score) for match in matches]
    if any(math.isnan(match.q_value) for match in matches):
        matches = with_q_values(matches)
    return [match for match in matches if not match.is_decoy and match.q_value <= level]


def agreement(*programs: list[Match]) -> tuple[int, int]:
    """Return the number of spectra for which all programs accept the same peptide (I = L), and of those for which all accept one."""
    peptides = [{match.spectrum: match.peptide.replace("I", "L") for match in matches} for matches in programs]
    common = set.intersection(*(set(named) for named in peptides))
    return sum(len({named[spectrum] for named in peptides}) == 1 for spectrum in common), len(common)


@dataclass(frozen=True)
class Entrapment:
    """Accepted matches whose peptide occurs only in foreign proteins.

    `fraction` is foreign / accepted: a lower bound of the false fraction, as a wrong match may hit the sample's own proteome too.
    `corrected` counts those by the proportion of residues, foreign x (1 + own / foreign residues) / accepted: the "combined" estimate of
    Wen et al. 2025 (Nature Methods 22:1454).
    """

    accepted: int
    foreign: int
    fraction: float
    corrected: float
    size_ratio: float


# Proteins that get into any sample by handling or protocol: trypsin, keratins, albumins; and the standard and the traces of detergents that
# the FASTA of the 18 proteins has in addition to the proteome of Sorangium cellulosum.
CONTAMINANT = re.compile(r"TRYP|TRY\d_|K[12]C|KRT|KRHB|KR[AB]|ALBU_|ALBO_|CAS[123AKB]+_|LYSC_", re.IGNORECASE)
SORANGIUM = "_SORC5"


def entrapment(matches: list[Match], proteome: dict[str, str], database: dict[str, str], eighteen_proteins: dict[str, str]) -> Entrapment:
    """Count the accepted matches of a search of `database` that only foreign proteins explain; proteins are sequences by accession.

    A protein is the sample's own if `proteome` has its accession. A peptide is not foreign if it occurs anywhere, I = L, in an own
    protein or in a contaminant: shared peptides are not errors.
    """
    contaminants = {name for name in database if CONTAMINANT.search(name)}
    contaminants |= {name for name in eighteen_proteins if SORANGIUM not in name}
    proteome_names = {name for name in database if name in proteome}
    harmless = [*proteome.values(), *(sequence for name, sequence in database.items() if name in contaminants)]
    explained = "|".join(harmless).replace("I", "L")
    foreign = sum(match.peptide.replace("I", "L") not in explained for match in matches)
    own_residues = sum(len(database[name]) for name in proteome_names)
    foreign_residues = sum(len(sequence) for name, sequence in database.items() if name not in proteome_names and name not in contaminants)
    ratio = foreign_residues / own_residues
    n = max(len(matches), 1)
    return Entrapment(len(matches), foreign, foreign / n, foreign * (1 + 1 / ratio) / n, ratio)

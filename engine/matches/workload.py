"""Estimated workload of scoring spectra against peptides, computed from the numbers of spectra and peptides."""

from typing import Protocol

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.estimates import ExpectedWork
from proteoscope.engine.execution.cost.parameters import WorkSize
from proteoscope.engine.execution.workload import GpuShape
from proteoscope.engine.formats.sizes import InputSize
from proteoscope.engine.matches import fragment_scoring, spectrum_scoring
from proteoscope.kernels import counts

__all__ = ["DigestSettings", "estimate_peptides", "estimate_scoring"]

_PER_RESIDUE = {"specific": 0.11, "semi-specific": 1.6, "non-specific": 30.0}
"""Number of distinct peptides per database residue, with up to one missed cleavage; each further missed cleavage adds a third."""
_MASS, _SPREAD = 1500.0, 2500.0  # Da: typical query mass; mass range of most peptides
_IONS, _PEAKS, _CHARGES = 26.0, 80.0, 1.5
_PEPTIDE_BYTES, _PEAK_BYTES, _HIT_BYTES = 18.0, 16.0, 480.0
_BATCH_BYTES = 2.2e9  # queries and hits of one batch on a GPU, measured with ample memory
_SITES_OF_PEPTIDE = 0.45  # sites per peptide of a typical variable modification


class DigestSettings(Protocol):
    """Settings that determine the number of candidates."""

    @property
    def specificity(self) -> str:
        """Required enzymatic termini of a peptide."""

    @property
    def missed_cleavages(self) -> int:
        """Maximum number of missed cleavages."""

    @property
    def precursor_tolerance(self) -> Tolerance:
        """Precursor mass tolerance."""

    @property
    def isotope_errors(self) -> tuple[int, ...]:
        """Isotope errors to search."""

    @property
    def fragment_tolerance(self) -> Tolerance:
        """Fragment m/z tolerance."""

    @property
    def decoys(self) -> str:
        """Method of generating decoys."""


def estimate_peptides(database: InputSize, settings: DigestSettings) -> float:
    """Return the approximate number of distinct peptides of a database, including decoys."""
    times = 1.0 if settings.decoys in ("none", "existing") else 2.0
    return times * database.residues * _PER_RESIDUE[settings.specificity] * (1.0 + settings.missed_cleavages / 3.0)


def estimate_scoring(n_queries: float, peptides: float, settings: DigestSettings, n_modifications: int) -> tuple[ExpectedWork, float]:
    """Return the estimated workload of scoring `n_queries` queries, and the approximate number of candidates per query."""
    width = 2 * settings.precursor_tolerance.width(_MASS)
    forms = (1.0 + _SITES_OF_PEPTIDE) ** n_modifications
    candidates = peptides / _SPREAD * width * max(1, len(settings.isotope_errors)) * forms
    lookups = (candidates + counts.COST_OF_QUERY) * (1.0 + (_MASS / 800.0) ** (2 if n_modifications else 1))
    exhaustive = n_queries * candidates * _CHARGES * _IONS * 6.0
    covered = min(1.0, _PEAKS * counts.CROWDING * 2 * settings.fragment_tolerance.width(600.0) / _MASS)
    building = counts.fragment_index_building(0.0, peptides * forms, peptides * forms * _IONS)
    in_index = n_queries * (candidates / 32_768 + 1) * 4000.0 + n_queries * candidates * (_IONS * _CHARGES * covered * 0.7 + 0.8)
    moved_in = peptides * _PEPTIDE_BYTES + n_queries * _PEAKS * _PEAK_BYTES
    by_index = counts.TIMES_LONGER * (building + in_index) < exhaustive

    def size(gpu: GpuShape | None) -> WorkSize:
        operations = in_index + building if by_index else n_queries * lookups
        return WorkSize(operations, int(n_queries), moved_in, n_queries * _HIT_BYTES, 1 if by_index else 2)

    held = peptides * _PEPTIDE_BYTES + min(_BATCH_BYTES, moved_in + n_queries * _HIT_BYTES)
    return ExpectedWork(fragment_scoring.KIND if by_index else spectrum_scoring.KIND, size, held), candidates

"""Summary of an identification."""

from __future__ import annotations

from dataclasses import dataclass, field

from proteoscope.engine.matches.summary import MatchSummary
from proteoscope.engine.results.counts import counted

__all__ = ["IdentificationSummary"]


@dataclass(frozen=True, kw_only=True)
class IdentificationSummary(MatchSummary):
    """Results of an identification.

    `certainty` holds the PSMs of a ``second_pass`` too. Of making the index, which goes on beside reading, `stages` holds what it took
    longer. `top_proteins`: (accession, description, peptides, coverage) of the best groups. `has_low_yield`: whether so few spectra were
    identified that causes are looked for (step ``advice``).
    """

    top_proteins: tuple[tuple[str, str, int, float], ...] = field(default=())
    has_low_yield: bool = False

    def lines(self) -> list[str]:
        """Return the lines of every search of spectra, and the best proteins."""
        lines = super().lines()
        for accession, description, n_peptides, coverage in self.top_proteins:
            lines.append(f"  {accession:<24.24} {counted(n_peptides, 'peptide'):>13} {coverage * 100:5.1f} %  {description:.70}")
        return lines

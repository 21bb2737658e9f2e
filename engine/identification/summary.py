"""Summary of an identification."""

from dataclasses import dataclass, field
from typing import Any

from proteoscope.engine.matches.class_counts import ClassCounts
from proteoscope.engine.matches.summary import MatchSummary
from proteoscope.engine.results.counts import counted

__all__ = ["IdentificationSummary"]


@dataclass(frozen=True, kw_only=True)
class IdentificationSummary(MatchSummary):
    """Summary of an identification.

    Attributes
    ----------
    classes : tuple of ClassCounts
        PSMs of each class with its own error rate; empty without decoys, or if all PSMs are in one class.
    stages : dict
        Times of the steps, s; for building of indexes, which overlaps with reading, only the time after reading.
    top_proteins : tuple
        Accession, description, number of peptides and sequence coverage of each of the best protein groups.
    has_low_yield : bool
        True if so few spectra were identified that causes were examined (step ``advice``).
    """

    classes: tuple[ClassCounts, ...] = ()
    top_proteins: tuple[tuple[str, str, int, float], ...] = field(default=())
    has_low_yield: bool = False

    def lines(self) -> list[str]:
        """Return the lines of every spectrum search, followed by the best proteins."""
        lines = super().lines()
        listed = [counts.line(self.fdr) for counts in self.classes if counts.is_listed]
        if listed:
            lines += ["PSMs by class, each with its own false discovery rate:", *listed]
        for accession, description, n_peptides, coverage in self.top_proteins:
            lines.append(f"  {accession:<24.24} {counted(n_peptides, 'peptide'):>13} {coverage * 100:5.1f} %  {description:.70}")
        return lines

    def record(self) -> dict[str, Any]:
        """Return the summary as a JSON-compatible dictionary, with classes as in ``run.json``."""
        return {**super().record(), "classes": [counts.record() for counts in self.classes]}

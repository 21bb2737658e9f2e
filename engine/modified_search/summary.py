"""Summary of a search for modified peptides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.matches.search_passes import SearchPass
from engine.results.counts import WITHOUT_DECOYS, Count, counted
from engine.summary import Summary

__all__ = ["ModifiedSearchSummary"]


@dataclass(frozen=True, kw_only=True)
class ModifiedSearchSummary(Summary):
    """Results, counted at the false discovery rate, targets only.

    `n_plain`, `n_named`, `n_ends`, `n_unnamed`: PSMs without a shift, with a usual one, with another end, with another. `certainty`: see
    `engine.identification.summary.IdentificationSummary`. `top_modifications`: (name, mass, PSMs, sites) of the most frequent.
    `source_run`: the run whose unidentified spectra were searched, None where files were.
    """

    n_spectra: int
    n_searched: int
    n_proteins_in_database: int
    n_peptides_in_index: int
    n_psms: int
    n_peptides: int
    n_sequences: int
    n_proteins: int
    n_plain: int
    n_named: int
    n_ends: int
    n_unnamed: int
    certainty: dict[str, dict[str, float]]
    top_modifications: tuple[tuple[str, float, int, str], ...] = field(default=())
    source_run: str | None = None
    fdr: float = 0.01
    has_decoys: bool = True
    passes: tuple[SearchPass, ...] = ()

    def counts(self) -> list[Count]:
        """PSMs, peptides and protein groups at the false discovery rate, with how certain they are; all where there are no decoys."""
        return [
            Count.judged(number, one, several, known) if self.has_decoys else Count(number, one, several)
            for number, one, several, known in (
                (self.n_psms, "PSM", "PSMs", self.certainty["psms"]),
                (self.n_peptides, "peptide", "peptides", self.certainty["peptides"]),
                (self.n_proteins, "protein", "proteins", self.certainty["proteins"]),
            )
        ]

    def lines(self) -> list[str]:
        """Lines that tell what was searched, what was found and how certain that is, and the most frequent modifications."""
        lines = [
            f"{self.n_searched:,} of {counted(self.n_spectra, 'spectrum', 'spectra')} searched against "
            f"{counted(self.n_proteins_in_database, 'protein')}",
            *(one.sentence() for one in self.passes),
            f"At {self.fdr * 100:.3g} % FDR:" if self.has_decoys else WITHOUT_DECOYS,
        ]
        more = "", f" ({counted(self.n_sequences, 'sequence')})", ""
        lines += [one.line(text) for one, text in zip(self.counts(), more, strict=True)]
        shifted = f"{self.n_named:,} with a usual one, {self.n_ends:,} with another end of the peptide, {self.n_unnamed:,} with another"
        lines.append(f"  {counted(self.n_plain, 'PSM')} without a mass shift, {shifted}")
        lines += [f"  {name:<40.40} {mass:>11.4f} Da {n:>5} PSMs  {sites:.60}" for name, mass, n, sites in self.top_modifications]
        return lines

    def record(self) -> dict[str, Any]:
        """As every summary, with the passes as ``run.json`` has them."""
        return {**super().record(), "passes": [one.record() for one in self.passes]}

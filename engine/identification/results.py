"""The results of an identification: statistics, tables, files, and what is counted in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import second_pass
from proteoscope.engine.identification.summary import IdentificationSummary
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.protein_knowledge import write_protein_knowledge
from proteoscope.engine.matches.psms import Psms
from proteoscope.engine.matches.run_tables import RunTables
from proteoscope.engine.matches.search_passes import SearchPass
from proteoscope.engine.matches.tables import Counted, Scored, score_statistics, with_second_pass, write_tables
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project.run import Run
from proteoscope.engine.search_run import SearchRun
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.engine.spectra.tables import write_spectra

__all__ = ["Results"]


class Results:
    """Results of a run while they are made: `judge` comes first, then `write`, and then all else is known."""

    def __init__(
        self, run: Run, spectra: Spectra, proteins: ProteinIndex, parameters: IdentificationParameters, resources: Resources
    ) -> None:
        self._run, self._spectra, self._proteins, self._parameters, self._resources = run, spectra, proteins, parameters, resources
        self._scored: Scored
        self._of_second: Counted | None = None
        self.later_passes: tuple[SearchPass, ...] = ()
        """What the passes behind the first were done with."""
        self.tables: RunTables
        """Tables that were written."""

    def judge(self, psms: Psms, spectra: SpectrumIndex, indexes: Indexes, tolerance: Tolerance) -> None:
        """The statistics of the matches; with those of a second pass over the spectra, where the parameters want one, with that precursor
        tolerance."""
        with self._estimating():
            self._scored = score_statistics(psms, self._parameters, self._resources, spectra.ion_series.letters)
        if self._parameters.second_pass:
            parameters = self._parameters.changed(precursor_tolerance=tolerance)
            second = second_pass(self._scored, spectra, indexes, self._run.folder, parameters, self._resources)
            if second is not None:
                with self._estimating():
                    self._scored = with_second_pass(self._scored, second.psms, self._parameters, self._resources)
                self.later_passes = (second.done,)
                self._tell_second_pass()
        self._resources.progress.message(self._scored.message)

    @contextmanager
    def _estimating(self) -> Iterator[None]:
        with self._resources.clock.stage("report"):
            self._resources.progress.stage("Estimating false discovery rates")
            yield

    def _tell_second_pass(self) -> None:
        """What the second pass adds, and how much of that may be false: more than of all, since few of its spectra have an answer."""
        scored = self._scored
        assert scored.is_second is not None
        rates = np.where(scored.is_second, scored.q_value, np.nan)
        self._of_second = Counted.of(rates, scored.psms.is_decoy, self._parameters.fdr, scored.psms.decoy_ratio)
        known = self._of_second.certainty()
        share = f"{known['false_share_low'] * 100:.1f} to {known['false_share_high'] * 100:.1f} % of them are false (95 % interval)"
        found = f"The second pass adds {self._of_second.targets} PSMs, with {self._of_second.decoys} decoys"
        self._resources.progress.message(f"{found}: {share}")

    @property
    def n_spectra_accepted(self) -> int:
        """Spectra with a target at the false discovery rate."""
        return int(np.count_nonzero((self._scored.q_value <= self._parameters.fdr) & ~self._scored.psms.is_decoy))

    @property
    def n_spectra_matched(self) -> int:
        """Spectra with any match."""
        return len(np.unique(self._scored.psms.spectrum))

    def write_spectra(self, progress: Progress) -> None:
        """Write the spectra with their peaks."""
        write_spectra(self._run, self._spectra, progress)

    def write(self, begin: Callable[[Callable[[Progress], Any]], Callable[[], Any]]) -> None:
        """Write the tables of PSMs, peptides and proteins, and through `begin` the same as text for the project to show."""
        progress = self._resources.progress
        progress.stage("Writing results")
        self._scored = self._scored.sorted()
        self.tables = RunTables(write_tables(self._scored, self._spectra, self._proteins, self._parameters), self._parameters)
        self.tables.write(self._run, progress, begin)
        is_translated = self._parameters.translation != "none"
        write_protein_knowledge(self._run, self._proteins, self.tables.found_accessions, is_translated=is_translated)

    @property
    def certainty(self) -> dict[str, dict[str, float]]:
        """See `engine.matches.tables.Counted.certainty`, of ``psms``, ``peptides``, ``proteins``, and PSMs of a ``second_pass``."""
        return self.tables.certainty | ({} if self._of_second is None else {"second_pass": self._of_second.certainty()})

    @property
    def decoy_ratio(self) -> float:
        """Decoys for each target, with which error rates were estimated."""
        return self._scored.psms.decoy_ratio

    def summary(
        self, run: SearchRun[Spectra], counts: dict[str, int], passes: tuple[SearchPass, ...], *, has_low_yield: bool
    ) -> IdentificationSummary:
        """What the run tells."""
        numbers: dict[str, Any] = {f"n_{name}": number for name, number in counts.items()}
        return IdentificationSummary(
            **run.summary_fields, **numbers, certainty=self.certainty, top_proteins=self.tables.best_proteins, fdr=self._parameters.fdr,
            passes=passes, has_decoys=self._parameters.decoys != "none", has_low_yield=has_low_yield,
        )  # fmt: skip

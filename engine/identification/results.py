"""The results of an identification: statistics, tables, files, and what is counted in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.chemistry.tolerance import Tolerance
from engine.execution.resources import Resources
from engine.identification.indexes import Indexes
from engine.identification.parameters import IdentificationParameters
from engine.identification.passes import second_pass
from engine.identification.summary import IdentificationSummary
from engine.jobs.progress import Progress
from engine.matches.exporting import export
from engine.matches.psms import Psms
from engine.matches.tables import Counted, Scored, Tables, score_statistics, write_tables
from engine.matches.writers.tables import IdentificationTables
from engine.matches.writers.tsv import COLUMNS
from engine.peptides.protein_index import ProteinIndex
from engine.project.paths import EXPORTS
from engine.project.run import Run
from engine.search_run import SearchRun
from engine.spectra.columns import Spectra
from engine.spectra.tables import write_spectra

__all__ = ["Results"]

_BEST = 10  # proteins of the summary


class Results:
    """Results of a run while they are made: `judge` comes first, then `write`, and then all else is known."""

    exports = tuple(f"{name}.tsv" for name in COLUMNS)
    """Names of the files that the project shows."""

    def __init__(
        self, run: Run, spectra: Spectra, proteins: ProteinIndex, parameters: IdentificationParameters, resources: Resources
    ) -> None:
        self._run, self._spectra, self._proteins, self._parameters, self._resources = run, spectra, proteins, parameters, resources
        self._scored: Scored
        self._tables: Tables
        self._of_second: Counted | None = None

    def judge(self, psms: Psms, indexes: Indexes) -> None:
        """The statistics of the matches; with those of a second pass, where the parameters want one."""
        self._scored = self._judged(psms)
        if self._parameters.second_pass:
            second = second_pass(self._scored, self._spectra, indexes, self._run.folder, self._parameters, self._resources)
            if second is not None:
                self._scored = self._judged(psms, second)
                self._tell_second_pass()
        self._resources.progress.message(self._scored.message)

    def _judged(self, psms: Psms, second: Psms | None = None) -> Scored:
        with self._resources.clock.stage("report"):
            self._resources.progress.stage("Estimating false discovery rates")
            return score_statistics(psms, self._parameters, self._resources, second)

    def _tell_second_pass(self) -> None:
        """What the second pass adds, and how much of that may be false: more than of all, since few of its spectra have an answer."""
        scored = self._scored
        self._of_second = Counted.of(scored.is_second & (scored.q_value <= self._parameters.fdr), scored.psms.is_decoy)
        known = self._of_second.certainty()
        share = f"{known['false_share_low'] * 100:.1f} to {known['false_share_high'] * 100:.1f} % of them are false (95 % interval)"
        found = f"The second pass adds {self._of_second.targets} PSMs, with {self._of_second.decoys} decoys"
        self._resources.progress.message(f"{found}: {share}")

    def write_spectra(self, progress: Progress) -> None:
        """Write the spectra with their peaks."""
        write_spectra(self._run, self._spectra, progress)

    def write(self, begin: Callable[[Callable[[Progress], Any]], Callable[[], Any]]) -> None:
        """Write the tables of PSMs, peptides and proteins, and behind that, through `begin`, the same as text for the project to show."""
        progress = self._resources.progress
        progress.stage("Writing results")
        self._tables = tables = write_tables(self._scored, self._spectra, self._proteins, self._parameters)
        shown = IdentificationTables(tables.psms, tables.peptides, tables.proteins)
        values, folder = self._parameters.model_dump(mode="json"), self._run.folder / EXPORTS
        written = begin(lambda progress: export(shown, "tsv", folder, values, progress))
        for name, table in (("psms", tables.psms), ("peptides", tables.peptides), ("proteins", tables.proteins)):
            self._run.write_table(name, table)
            progress.check()
        written()

    @property
    def certainty(self) -> dict[str, dict[str, float]]:
        """See `engine.matches.tables.Counted.certainty`, of ``psms``, ``peptides``, ``proteins``, and PSMs of a ``second_pass``."""
        counted = self._tables.counted | ({} if self._of_second is None else {"second_pass": self._of_second})
        return {name: count.certainty() for name, count in counted.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Targets at the false discovery rate: ``psms``, ``peptides``, ``sequences`` and ``proteins``."""
        counted = self._tables.counted
        return {
            "psms": counted["psms"].targets, "peptides": counted["peptides"].targets, "sequences": self._tables.n_sequences,
            "proteins": counted["proteins"].targets,
        }  # fmt: skip

    @property
    def message(self) -> str:
        """What was found, in a sentence."""
        found = self.counts
        rate = f"at {self._parameters.fdr:.3g} FDR"
        return f"{found['psms']} PSMs, {found['peptides']} peptides, {found['proteins']} proteins {rate}"

    def summary(self, run: SearchRun[Spectra], counts: dict[str, int], tolerance: Tolerance) -> IdentificationSummary:
        """What the run tells, which searched precursors within `tolerance`."""
        best = self._tables.proteins.filter(_found(self._tables.proteins, self._parameters)).slice(0, _BEST).to_pylist()
        numbers: dict[str, Any] = {f"n_{name}": number for name, number in counts.items()}
        return IdentificationSummary(
            **run.told,
            **numbers,
            certainty=self.certainty,
            top_proteins=tuple((row["accessions"][0], row["description"], row["n_peptides"], row["coverage"]) for row in best),
            fdr=self._parameters.fdr,
            precursor_tolerance=str(tolerance),
        )


def _found(table: Any, parameters: IdentificationParameters) -> Any:
    import pyarrow.compute as pc

    is_target = pc.invert(table["is_decoy"])
    return is_target if parameters.decoys == "none" else pc.and_(is_target, pc.less_equal(table["q_value"], parameters.fdr))

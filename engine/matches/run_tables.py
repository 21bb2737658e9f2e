"""PSM, peptide and protein group tables as results of a run, with counts and summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.tables import Tables
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.tables import IdentificationTables, MatchesSource
from proteoscope.engine.matches.writers.tsv import TABLES, write_tables
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.counts import counted

__all__ = ["EXPORTED", "RunTables", "TableSettings"]

EXPORTED = tuple(f"{name}.tsv" for name in TABLES)
"""Names of the text tables in the project folder."""

_BEST = 10  # proteins in a summary


class TableSettings(Protocol):
    """Settings that decide which rows are accepted, named as in the parameters of every search."""

    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    fdr: float

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all parameters by name."""


class RunTables:
    """Tables of a run, with counts of accepted rows."""

    def __init__(self, tables: Tables, parameters: TableSettings) -> None:
        self._tables, self._parameters = tables, parameters

    def write(self, run: Run, progress: Progress, begin: Callable[[Callable[[Progress], Any]], Callable[[], Any]]) -> None:
        """Write the tables as Parquet files of the run, and as text files in the project folder.

        `begin` starts a task in the background and returns a function that waits for it.
        """
        tables = self._tables
        shown = IdentificationTables(tables.psms, tables.peptides, tables.proteins)
        source = MatchesSource(shown, SearchDescription(self._parameters.model_dump(mode="json")))
        written = begin(lambda progress: write_tables(source, run.folder / EXPORTS, progress))
        for name, table in (("psms", tables.psms), ("peptides", tables.peptides), ("proteins", tables.proteins)):
            run.write_table(name, table)
            progress.check()
        written()

    @property
    def certainty(self) -> dict[str, dict[str, float]]:
        """Numbers of accepted ``psms``, ``peptides`` and ``proteins`` with confidence intervals (see `AcceptanceCounts.certainty`)."""
        return {name: count.certainty() for name, count in self._tables.counted.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of accepted target ``psms``, ``peptides``, ``sequences`` and ``proteins``.

        Without decoys and q-values, all rows are counted.
        """
        tables, counted = self._tables, self._tables.counted
        if self._parameters.decoys == "none" and not tables.psms["q_value"].is_valid().to_numpy().any():
            best = pa.compute.sum(pa.compute.equal(tables.psms["rank"], 1)).as_py() or 0
            n_sequences = pa.compute.count_distinct(tables.peptides["sequence"]).as_py()
            return {"psms": best, "peptides": len(tables.peptides), "sequences": n_sequences, "proteins": len(tables.proteins)}
        return {
            "psms": counted["psms"].targets,
            "peptides": counted["peptides"].targets,
            "sequences": self._tables.n_sequences,
            "proteins": counted["proteins"].targets,
        }

    @property
    def message(self) -> str:
        """Sentence with the accepted numbers."""
        result = self.counts
        rate = "without decoys" if self._parameters.decoys == "none" else f"at {self._parameters.fdr:.3g} FDR"
        return (
            ", ".join(counted(result[name], noun) for name, noun in (("psms", "PSM"), ("peptides", "peptide"), ("proteins", "protein")))
            + f" {rate}"
        )

    @property
    def best_proteins(self) -> tuple[tuple[str, str, int, float], ...]:
        """First accession, description, number of peptides and sequence coverage of each of the best protein groups."""
        best = self._tables.proteins.filter(self._found(self._tables.proteins)).slice(0, _BEST).to_pylist()
        return tuple((row["accessions"][0], row["description"], row["n_peptides"], row["coverage"]) for row in best)

    @property
    def found_accessions(self) -> list[str]:
        """Sorted accessions of all proteins that contain the peptide of a target match."""
        psms = self._tables.psms
        result: list[str] = pa.compute.unique(
            pa.compute.list_flatten(psms.filter(pa.compute.invert(psms["is_decoy"]))["proteins"])
        ).to_pylist()
        return sorted(result)

    def _found(self, table: pa.Table) -> Any:
        is_target = pa.compute.invert(table["is_decoy"])
        return (
            is_target
            if self._parameters.decoys == "none"
            else pa.compute.and_(is_target, pa.compute.less_equal(table["q_value"], self._parameters.fdr))
        )

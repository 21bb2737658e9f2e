"""PSM, peptide and protein group tables of a run, their counts and summaries, and their export."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from proteoscope.engine.arrays import Texts
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.formats.features import FEATURES, features_table
from proteoscope.engine.formats.translation import parse_frame_name
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import READING_FRAMES
from proteoscope.engine.matches.pass_records import engine_of_run, passes_of_run
from proteoscope.engine.matches.site_columns import SITE_TABLES
from proteoscope.engine.matches.tables import Tables
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.tables import (
    OPTIONAL_TABLES,
    TABLES,
    IdentificationTables,
    MatchesSource,
    MatchesWriter,
    write_table,
    write_tables,
)
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project import Project
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.version import VERSION

__all__ = ["EXPORTED", "RunTables", "TableSettings", "export_matches", "export_sites", "export_tables", "write_protein_knowledge"]

EXPORTED = tuple(f"{name}.tsv" for name in TABLES)
"""Names of the text tables in the project folder."""

_BEST = 10  # number of proteins in a summary


class TableSettings(Protocol):
    """Settings that decide which rows are accepted; attributes are named like the parameters of searches."""

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
        paths = {name: run.folder / EXPORTS / f"{name}.tsv" for name in TABLES}
        written = [begin(partial(write_table, source, name, path)) for name, path in paths.items()]
        written += [
            begin(lambda _: run.write_table("peptides", tables.peptides)),
            begin(lambda _: run.write_table("proteins", tables.proteins)),
        ]
        run.write_table("psms", tables.psms)
        progress.check()
        for wait in written:
            wait()

    @property
    def certainty(self) -> dict[str, dict[str, float]]:
        """Accepted numbers with confidence intervals (see `AcceptanceCounts.certainty`) by table: ``psms``, ``peptides``, ``proteins``."""
        return {name: count.certainty() for name, count in self._tables.counted.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of accepted target ``psms``, ``peptides``, ``sequences`` and ``proteins``.

        Without decoys and q-values, all peptides, sequences and proteins are counted, and all PSMs of rank 1.
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
        of_targets = psms["proteins"].filter(pa.compute.invert(psms["is_decoy"]))
        result: list[str] = pa.compute.unique(pa.compute.list_flatten(of_targets)).to_pylist()
        return sorted(result)

    def _found(self, table: pa.Table) -> Any:
        is_target = pa.compute.invert(table["is_decoy"])
        return (
            is_target
            if self._parameters.decoys == "none"
            else pa.compute.and_(is_target, pa.compute.less_equal(table["q_value"], self._parameters.fdr))
        )


def write_protein_knowledge(run: Run, proteins: ProteinIndex, accessions: Iterable[str], *, is_translated: bool) -> None:
    """Write the features and reading frames of proteins as tables of a run.

    Parameters
    ----------
    run : Run
        Run to which the tables `FEATURES` and `READING_FRAMES` are written, if the database contains the information.
    proteins : ProteinIndex
        Proteins of the search.
    accessions : iterable of str
        Accessions of the identified proteins, in the order of the rows.
    is_translated : bool
        True if the proteins are translated from reading frames.

    Raises
    ------
    StorageError
        If writing fails.
    """
    wanted = list(accessions)
    if is_translated:
        positions = [(accession, position) for accession in wanted if (position := parse_frame_name(accession)) is not None]
        names = ("sequence", "first", "last", "strand")
        columns: dict[str, Any] = {name: [getattr(position, name) for _, position in positions] for name in names}
        run.write_table(READING_FRAMES.name, READING_FRAMES.arrow({"accession": [accession for accession, _ in positions], **columns}))
    if proteins.features is not None:
        stored = Texts(proteins.proteins.accession_bytes, proteins.proteins.accession_offsets)[: proteins.n_targets].strings()
        numbers = {accession: i for i, accession in enumerate(stored)}
        chosen = np.array([numbers[accession] for accession in wanted if accession in numbers], np.int64)
        features = proteins.features.take(chosen)
        # Feature positions of a variant count from the start of the excised sequence.
        shift = np.repeat(proteins.first_in_whole()[chosen], np.diff(features.offsets)).astype(np.int32)
        features = replace(features, first=features.first + shift, last=features.last + shift)
        run.write_table(FEATURES.name, features_table([stored[i] for i in chosen.tolist()], features))


_TABLES = ("psms", "peptides", "proteins")


def export_matches(write: MatchesWriter, project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the matches of a run in a format of `proteoscope.engine.matches.exports`.

    See `proteoscope.engine.entry.Search.export` for the parameters.
    """
    run_id, inputs = request.run_id, project.inputs(request.run_id)
    paths = [project.table(name, run_id) for name in _TABLES]
    for result in project.results(run_id):
        if result.name in OPTIONAL_TABLES:
            project.table(result.name, run_id)  # raises an error if the file is not the one that the run wrote
    tables = replace(IdentificationTables.from_folder(paths[0].parent), marks=project.row_marks(run_id, "psms"))
    run = next(run for run in project.runs() if run.id == run_id)
    spectra, databases = (tuple(str(source.path) for source in inputs if source.kind == kind) for kind in ("spectra", "database"))
    search = SearchDescription(run.parameters, spectra, databases, VERSION, passes_of_run(project, run_id), engine_of_run(project, run_id))
    return write(MatchesSource(tables, search, request.spreadsheet_safe, request.accepted_only), request.target, progress)


def export_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of PSMs, peptides, protein groups and, if the run localised modifications, sites.

    See `proteoscope.engine.entry.Search.export`. With `accepted_only`, sites at decoy residues are left out.
    """
    return [*export_matches(write_tables, project, request, progress), *export_sites(project, request, progress)]


def export_sites(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the run's tables of sites to a folder; with `accepted_only`, sites at decoy residues are left out."""
    written, stored = [], {result.name for result in project.results(request.run_id)}
    for table in SITE_TABLES:
        if table.name not in stored:
            continue
        rows, out = read_stored(project, request.run_id, table, table.saved), request.target / f"{table.name}.tsv"
        if request.accepted_only and "is_decoy" in table.saved:
            rows = rows.filter(pa.compute.invert(rows["is_decoy"]))
        write_separated(out, rows, table.saved_columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
        written.append(out)
    return written

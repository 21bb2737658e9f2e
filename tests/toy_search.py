"""A minimal search, which counts residues of proteins: an entry is all that the program needs."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from proteoscope.engine.entry import Command, Export, ExportRequest, Input, Option, Search, SearchRequest
from proteoscope.engine.files import atomic_file
from proteoscope.engine.formats import read_proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.engine.project import Project
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.counts import Count
from proteoscope.engine.search_run import RunSpec, search_run
from proteoscope.engine.summary import Summary


class CompositionParameters(SearchParameters):
    """Parameters of a composition."""

    minimum_length: int = parameter(
        1, ge=1, le=1000, title="Shortest protein", unit="residues", group="Proteins", help="Shorter ones are left."
    )
    order: Literal["residue", "count"] = parameter("residue", title="Order", group="Table", help="Order of the rows.")


TABLES = (
    Table(
        "composition",
        "Residues",
        (
            Column("residue", "Residue", "One-character code", width=8),
            Column("count", "Count", "How often it occurs", "integer"),
            Column("share", "Share", "Part of all residues", "percent"),
        ),
    ),
)


@dataclass(frozen=True, kw_only=True)
class CompositionSummary(Summary):
    """Counts of the search."""

    n_proteins: int
    n_residues: int

    def counts(self) -> list[Count]:
        return [Count(self.n_residues, "residue", "residues"), Count(self.n_proteins, "protein", "proteins")]


def compose(request: SearchRequest, progress: Progress) -> CompositionSummary:
    """Count the residues of proteins into the table ``composition`` of a project."""
    parameters, paths = request.parameters_as(CompositionParameters), request.files("proteins")
    spec = RunSpec("composition", request, {"proteins": "PROTEINS.fasta"})
    with search_run(spec, lambda progress, threads: read_proteins(paths, progress=progress), progress=progress) as run:
        proteins = run.read()
        retained = [text for text in map(proteins.sequence, range(len(proteins))) if len(text) >= parameters.minimum_length]
        with run.step("score"):
            run.progress.stage("Counting", len(retained))
            composition = Counter("".join(retained))
        with run.step("report"):
            assert run.run is not None
            run.run.write_table("composition", _table(composition, parameters.order))
        if len(retained) < len(proteins):
            run.progress.message(f"Too short: {len(proteins) - len(retained)}")
        if request.flag("is_thorough"):
            run.progress.message("Looked at everything twice")
        run.device = "cpu"
        counts = {"proteins": len(retained), "residues": composition.total()}
        run.record(counts, f"{composition.total():,} residues")
        return CompositionSummary(**run.summary_fields(counts))


def _table(counts: Counter[str], order: str) -> Any:
    import pyarrow as pa

    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]) if order == "count" else row[0])
    shares = [count / max(1, counts.total()) for _, count in rows]
    return pa.table({"residue": [residue for residue, _ in rows], "count": [count for _, count in rows], "share": shares})


def export_composition(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write a composition as one file, or as one for each residue in a folder."""
    import pyarrow.parquet as pq

    rows = pq.read_table(project.table("composition", request.run_id)).to_pylist()
    parts = [(request.target / f"{row['residue']}.json", row) for row in rows] if request.format == "folder" else [(request.target, rows)]
    check_outputs([path for path, _ in parts], [path.path for path in project.inputs(request.run_id)], project.folder)
    for path, content in parts:
        progress.check()
        with atomic_file(path) as file:
            file.write(json.dumps(content).encode())
    return [path for path, _ in parts]


def _list_residues(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Run a sub-command of the search."""
    proteins = read_proteins([options.proteins], progress=progress)
    residues = "".join(sorted({residue for i in range(len(proteins)) for residue in proteins.sequence(i)}))
    if not options.json:
        print(residues)
    return {"residues": residues}


COMPOSITION = Search(
    kind="composition",
    name="composition",
    purpose="Count the residues of proteins",
    description="Count the residues of proteins.",
    job="Count residues of {proteins}",
    icon="results",
    parameters=lambda: CompositionParameters,
    preset="",
    inputs=(Input("proteins", "Proteins", "proteins", "FASTA", "FASTA files with proteins", can_be_pasted=True),),
    options=(Option("is_thorough", "Look at everything twice", "look at everything twice"),),
    writes="project",
    run=compose,
    tables=lambda: TABLES,
    exports=(
        Export("json", "JSON", lambda: export_composition, (".json",)),
        Export("folder", "A file for each residue", lambda: export_composition),
    ),
    commands=(Command("residues", "list the residues of proteins", lambda parser: parser.add_argument("proteins"), _list_residues),),
)

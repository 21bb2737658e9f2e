"""Export of quantities of sites for MSstatsPTM (Kohler 2023, Mol. Cell. Proteomics 22:100477).

The table ``ptm.tsv`` has the peptidoforms with localised modifications, whose protein is named with its sites, such as ``P12345_S5_T8``;
``protein.tsv`` has all others. Both have the columns of `proteoscope.engine.quantification.msstats`.
"""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import read_quantities
from proteoscope.engine.quantification.msstats import msstats_rows
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.tables import SITE_PEPTIDOFORMS
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["export_msstats_ptm"]

_FILES = ("ptm.tsv", "protein.tsv")


def export_msstats_ptm(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of modified and unmodified peptides; peptidoforms with an uncertain site are omitted from both.

    See `proteoscope.engine.entry.Search.export`.

    Raises
    ------
    ParameterError
        If the run has no sites, or lacks what MSstats needs.
    StorageError
        If writing fails.
    """
    progress.stage("Exporting the input of MSstatsPTM")
    tables = read_quantities(project, request.run_id)
    if SITE_PEPTIDOFORMS.name not in tables:
        raise ParameterError(
            "the quantified identification has no sites of modifications: search a variable modification, such as Phospho (STY), with"
            " localise automatic, and quantify again"
        )
    record = next(run for run in project.runs() if run.id == request.run_id)
    minimum = float(record.parameters.get("minimum_site_probability", QuantificationParameters().minimum_site_probability))
    parts, columns = msstats_rows(tables)
    rows = pa.concat_tables(parts)
    names = _names_of_sites(tables[SITE_PEPTIDOFORMS.name], minimum)
    text = rows["PeptideSequence"].combine_chunks().dictionary_encode()
    peptides = text.dictionary.to_pylist()
    name = pa.array([names.get(peptide) for peptide in peptides], pa.string()).take(text.indices)
    is_modified = pa.array([peptide in names for peptide in peptides], pa.bool_()).take(text.indices)
    modified = rows.set_column(rows.schema.get_field_index("ProteinName"), "ProteinName", name).filter(pa.compute.is_valid(name))
    written = (modified, rows.filter(pa.compute.invert(is_modified)))
    paths = [request.target / file for file in _FILES]
    for path, part in zip(paths, written, strict=True):
        write_separated(path, part, columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
    n_uncertain = sum(site is None for site in names.values())
    if n_uncertain:
        progress.message(f"Peptidoforms omitted because a site has a probability below {minimum:g}: {n_uncertain:,}")
    return paths


def _names_of_sites(peptidoforms: pa.Table, minimum_probability: float) -> dict[str, str | None]:
    """Return the protein of each peptidoform with its sites in the order of their positions; None if one of the sites is uncertain."""
    names: dict[str, str | None] = {}
    for row in peptidoforms.sort_by([("peptide", "ascending"), ("position", "ascending")]).to_pylist():
        before = names.setdefault(row["peptide"], row["accession"])
        is_certain = before is not None and row["site_probability"] >= minimum_probability
        names[row["peptide"]] = f"{before}_{row['residue']}{row['position']}" if is_certain else None
    return names

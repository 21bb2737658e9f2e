"""Tables of quantities: with one row per protein (or peptide) and sample, and with one column per sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.quantification.amounts import Grouping, Levels, MeasuredIons, RawQuantities, State
from proteoscope.engine.quantification.changes import Changes, changes_table
from proteoscope.engine.quantification.design import BLOCKS, Design
from proteoscope.engine.quantification.normalised import Quantities, plex_scaling
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.sites import SiteQuantities, Sites, site_quantities
from proteoscope.engine.quantification.tables import (
    BY_SAMPLE,
    CHANGES,
    PEPTIDES,
    PEPTIDOFORMS,
    PROTEINS,
    SAMPLES,
    SITE_PEPTIDOFORMS,
    SITE_QUANTITIES,
    SITE_TABLES,
    TABLES,
    table_file_name,
    wide_table_file_name,
)
from proteoscope.engine.results.arrow import in_one, or_null, taken
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = [
    "amount_columns",
    "peptide_counts",
    "quantity_tables",
    "sample_counts",
    "site_columns",
    "site_tables",
    "write_quantities",
    "write_wide",
]

_KEYS = (
    *("accession", "other_accessions", "description", "peptide", "sequence", "gene", "organism"),
    *("position", "residue", "modification", "site_probability", "localisation_q_value", "n_peptidoforms"),
)


def quantity_tables(quantities: Quantities, changes: Sequence[Changes], measured: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return all result tables of a quantification by name.

    Parameters
    ----------
    quantities : Quantities
        Normalised quantities.
    changes : sequence of Changes
        Tested changes of proteins.
    measured : mapping of str to pyarrow.Table
        Tables of the underlying measurements; the tables of methods that were not used are empty.
    """
    identified, design, levels = quantities.identified, quantities.design, quantities.normalised.levels
    proteins, of_form = identified.proteins, identified.forms.sequence
    accession = taken(proteins.accession, identified.protein)
    keys: tuple[tuple[Table, Mapping[str, Any], Mapping[str, Any]], ...] = (
        (
            PEPTIDOFORMS,
            {"peptide": identified.forms.peptide, "sequence": taken(identified.sequences, of_form), "accession": taken(accession, of_form)},
            {},
        ),
        (PEPTIDES, {"sequence": identified.sequences, "accession": accession}, {}),
        (
            PROTEINS,
            {"accession": proteins.accession, "other_accessions": proteins.others, "description": proteins.description, **proteins.names},
            {"n_peptides": peptide_counts(levels.sequences, identified.protein, len(proteins)), "nsaf": or_null(quantities.nsaf)},
        ),
    )
    by_sample = {
        table.name: _table_by_sample(table, key, design, {**amount_columns(amounts), "n_psms": n_psms.ravel(), **more})
        for (table, key, more), amounts, n_psms in zip(keys, levels, quantities.psms, strict=True)
    }
    made = {**measured, **by_sample, SAMPLES.name: _samples(quantities), CHANGES.name: changes_table(changes, proteins)}
    return {table.name: made.get(table.name, table.schema().empty_table()) for table in TABLES}


def site_tables(
    quantities: Quantities, measured: MeasuredIons, peptidoforms: pa.Table, parameters: QuantificationParameters
) -> dict[str, pa.Table]:
    """Return the tables of sites.

    Parameters
    ----------
    quantities : Quantities
        Normalised quantities.
    measured : MeasuredIons
        Amounts of ions before normalisation.
    peptidoforms : pyarrow.Table
        Localised modifications of peptidoforms (`SITE_PEPTIDOFORMS`).
    parameters : QuantificationParameters
        Parameters of the quantification.
    """
    identified, design = quantities.identified, quantities.design
    sites = Sites.from_table(peptidoforms, identified.forms.peptide, parameters.minimum_site_probability)
    row_of = {accession: row for row, accession in enumerate(identified.proteins.accession)}
    protein = np.array([row_of[accession] for accession in sites.table["accession"].to_pylist()], np.int64)
    grouping = Grouping(measured.form, identified.forms.sequence, identified.protein, len(identified.proteins))
    scaling = plex_scaling(design, parameters)
    amounts = site_quantities(sites, protein, measured.ions.scaled(quantities.normalised.factor), grouping, parameters, *scaling)
    keys = {name: in_one(sites.table[name]) for name in sites.table.column_names}
    by_sample = _table_by_sample(SITE_QUANTITIES, keys, design, site_columns(amounts))
    return {SITE_QUANTITIES.name: by_sample, SITE_PEPTIDOFORMS.name: peptidoforms}


def site_columns(quantities: SiteQuantities) -> dict[str, pa.Array]:
    """Return the columns of amounts of the table `SITE_QUANTITIES`."""
    return {**amount_columns(quantities.amounts), "log2_relative": or_null(quantities.log2_relative)}


def _table_by_sample(table: Table, keys: Mapping[str, Any], design: Design, values: Mapping[str, Any]) -> pa.Table:
    """Return a table with one row per protein (or peptide) and sample.

    `keys` are the columns that identify proteins or peptides, and `values` are the columns of all rows.
    """
    schema, n_samples = table.schema(), len(design.samples)
    n = len(values["quantity"]) // n_samples
    rows, samples = pa.array(np.repeat(np.arange(n), n_samples)), pa.array(np.tile(np.arange(n_samples), n))
    repeated = {
        name: (column if isinstance(column, pa.Array) else pa.array(column, schema.field(name).type)).take(at)
        for columns, at in ((keys, rows), (_sample_columns(design), samples))
        for name, column in columns.items()
    }
    return table.arrow({**repeated, **values})


def _sample_columns(design: Design) -> dict[str, list[Any]]:
    """Return the columns that identify samples."""
    return {
        name: [getattr(sample, field) or None for sample in design.samples]
        for name, field in (("sample", "name"), ("condition", "condition"), ("replicate", "replicate"))
    }


def _samples(quantities: Quantities) -> pa.Table:
    design = quantities.design
    parts: list[list[str]] = [[] for _ in design.samples]
    for part in design.parts:
        parts[part.sample].append(PurePath(quantities.identified.files[part.file].path).name)
    blocks = {name: [getattr(sample, name) or None for sample in design.samples] for name in BLOCKS}
    counts = sample_counts(quantities.normalised.levels, quantities.normalised.factor)
    return SAMPLES.arrow({**_sample_columns(design), **blocks, "parts": parts, "n_psms": quantities.psms[0].sum(axis=0), **counts})


def amount_columns(amounts: RawQuantities) -> dict[str, pa.Array]:
    """Return the columns of amounts for tables with one row per protein (or peptide) and sample."""
    states = taken([state.text for state in State], amounts.state.ravel().astype(np.int64))
    return {"quantity": or_null(amounts.value), "log2_quantity": or_null(amounts.log2), "state": states}


def peptide_counts(sequences: RawQuantities, protein: NDArray[np.int64], n_proteins: int) -> NDArray[np.int64]:
    """Return the number of quantified peptides of each protein in each sample, flattened to one column.

    `protein` is the index of each peptide's protein, or -1.
    """
    result = np.zeros((n_proteins + 1, sequences.value.shape[1]), np.int64)
    np.add.at(result, protein, ~np.isnan(sequences.value))  # the last row collects peptides without a protein
    return result[:-1].ravel()


def sample_counts(levels: Levels, factor: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Return the number of quantified peptidoforms, peptides and proteins of each sample, and its normalisation factor."""
    has = [~np.isnan(level.value) for level in levels]
    counts = {name: is_there.sum(axis=0) for name, is_there in zip(("n_peptidoforms", "n_peptides", "n_proteins"), has, strict=True)}
    is_transferred = (levels.forms.state == State.TRANSFERRED) & has[0]
    return {**counts, "n_transferred": is_transferred.sum(axis=0), "factor": factor}


def write_quantities(run: Run, tables: Mapping[str, pa.Table], out: str | Path | None, progress: Progress) -> list[str]:
    """Write the tables of a run, also as text, and the protein table to `out` if given; return the names of the text files.

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled.
    """
    present = [table for table in (*TABLES, *SITE_TABLES) if table.name in tables]
    for table in present:
        run.write_table(table.name, tables[table.name])
        progress.check()
        write_separated(run.folder / EXPORTS / table_file_name(table), tables[table.name], table.saved_columns, progress, DIGITS)
    wide = write_wide(run.folder / EXPORTS, tables, progress)
    if out is not None:
        write_separated(Path(out), tables[PROTEINS.name], PROTEINS.saved_columns, progress, DIGITS)
    return [*map(table_file_name, present), *(path.name for path in wide)]


def write_wide(folder: Path, tables: Mapping[str, pa.Table], progress: Progress, *, spreadsheet_safe: bool = False) -> list[Path]:
    """Write the tables with one column of quantities per sample, as other programs expect them; return the paths.

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled.
    """
    samples = tables[SAMPLES.name]["sample"].to_pylist()
    # The prefix avoids names of other columns and formulas of spreadsheets.
    columns = tuple(Column(f"quantity_{name}", saved=".6g", kind="number") for name in samples)
    present = [table for table in BY_SAMPLE if table.name in tables]
    for kind in present:
        table, described = _widen(tables[kind.name], kind, columns)
        write_separated(folder / wide_table_file_name(kind), table, described, progress, DIGITS, spreadsheet_safe=spreadsheet_safe)
    return [folder / wide_table_file_name(table) for table in present]


def _widen(table: pa.Table, described: Table, columns: tuple[Column, ...]) -> tuple[pa.Table, tuple[Column, ...]]:
    """Return a table with one row per protein (or peptide) and one column of quantities per sample."""
    keys = [name for name in described.saved if name in _KEYS]
    n = len(columns)
    first = pa.array(np.arange(0, len(table), n))
    value = pa.compute.fill_null(table["quantity"], float("nan")).to_numpy().reshape(-1, n)
    arrays = [table[name].take(first) for name in keys] + [or_null(value[:, number]) for number in range(n)]
    return pa.table(arrays, names=[*keys, *(column.name for column in columns)]), (*described.chosen(keys), *columns)

"""Tables of quantities: with one row per protein (or peptide) and sample, and with one column per sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.quantification.amounts import Grouping, Levels, MeasuredIons, RawQuantities, State
from proteoscope.engine.quantification.changes import Changes, adjusted, changes_table
from proteoscope.engine.quantification.design import BLOCKS, Design
from proteoscope.engine.quantification.identified import Proteins
from proteoscope.engine.quantification.normalised import Quantities, plex_scaling
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.sites import SiteQuantities, Sites, site_quantities
from proteoscope.engine.quantification.tables import (
    BY_SAMPLE,
    CHANGES,
    MISSING,
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
from proteoscope.engine.spectra.spooling import release_pages, row_blocks

__all__ = [
    "TableParts",
    "amount_columns",
    "chunks_of",
    "exact_test",
    "missing_table",
    "peptide_counts",
    "quantity_tables",
    "sample_counts",
    "site_columns",
    "site_tables",
    "whole_table",
    "write_quantities",
    "write_wide",
]

_OUTCOMES = ("measured", "partly missing", "missing in the condition", "missing in all")
_EQUAL = 1 + 1e-7
"""Factor up to which probabilities count as equal, as in R's fisher.test."""


def missing_table(value: NDArray[np.float64], conditions: Sequence[str], proteins: Proteins) -> pa.Table:
    """Return the table of missing values, with one row per protein and condition; empty without conditions.

    Parameters
    ----------
    value : ndarray of float64, shape (p, s)
        Quantities of proteins in samples, NaN if missing.
    conditions : sequence of str
        Condition of each sample, '' for none; samples without one are not counted.
    proteins : Proteins
        The p proteins.

    Returns
    -------
    pyarrow.Table
    """
    names = list(dict.fromkeys(name for name in conditions if name))
    if not names or not len(value):
        return MISSING.schema().empty_table()
    is_member = np.array([[name == condition for condition in conditions] for name in names])
    n_samples = is_member.sum(axis=1)
    missing = np.stack([np.isnan(value[:, members]).sum(axis=1) for members in is_member], axis=1)
    total, n_all = missing.sum(axis=1), int(n_samples.sum())
    p_value = np.full(missing.shape, np.nan)
    for n in np.unique(n_samples).tolist() if len(names) > 1 else []:
        # Conditions with equal numbers of samples have the same distributions.
        of_size = np.flatnonzero(n_samples == n)
        tested = exact_test(missing[:, of_size].ravel(), np.repeat(total, len(of_size)), n, n_all)
        p_value[:, of_size] = tested.reshape(-1, len(of_size))
    # Proteins that are in all samples, or in none, cannot depend on the condition.
    p_value[(total == 0) | (total == n_all)] = np.nan
    outcome = np.select([(total == n_all)[:, None], missing == n_samples, missing > 0], [3, 2, 1], 0)
    row = np.repeat(np.arange(len(value)), len(names))
    return MISSING.arrow(
        {
            "accession": taken(proteins.accession, row),
            "description": taken(proteins.description, row),
            "condition": names * len(value),
            "n_samples": np.tile(n_samples, len(value)),
            "n_missing": missing.ravel(),
            "missing_fraction": (missing / n_samples).ravel(),
            "p_value": or_null(p_value),
            "q_value": or_null(adjusted(p_value)),
            "outcome": taken(_OUTCOMES, outcome.ravel()),
            **{name: column.take(pa.array(row)) for name, column in proteins.names.items()},
        }
    )


def exact_test(missing: NDArray[np.int64], total: NDArray[np.int64], n_samples: int, n_all: int) -> NDArray[np.float64]:
    """Return two-sided p-values of Fisher's exact test, (p,) float64.

    Parameters
    ----------
    missing, total : ndarray of int64, shape (p,)
        Number of missing values in the condition and in all samples.
    n_samples, n_all : int
        Number of samples of the condition, and number of all samples.
    """
    from scipy.stats import hypergeom  # slow to import: loaded after the files are read

    result = np.ones(len(total))
    counts = np.arange(n_samples + 1)
    for number in np.unique(total).tolist():
        rows = np.flatnonzero(total == number)
        probability = hypergeom.pmf(counts, n_all, number, n_samples)
        order = np.argsort(probability, kind="stable")
        tail = np.append(0.0, np.cumsum(probability[order]))
        p_value = tail[np.searchsorted(probability[order], probability * _EQUAL, side="right")]
        result[rows] = np.minimum(p_value[missing[rows]], 1.0)
    return result


TableParts: TypeAlias = "pa.Table | Iterable[pa.Table]"
"""A table, or its chunks, which can be iterated repeatedly."""
_ROWS_OF_CHUNK = 1 << 17
_MOST_TEXT_ROWS = 10_000_000
"""Maximum number of rows of a text table that is written without being requested, about 1 GB."""

_KEYS = (
    *("accession", "other_accessions", "description", "peptide", "sequence", "gene", "organism"),
    *("position", "residue", "modification", "site_probability", "localisation_q_value", "n_peptidoforms"),
)


def quantity_tables(quantities: Quantities, changes: Sequence[Changes], measured: Mapping[str, TableParts]) -> dict[str, TableParts]:
    """Return all result tables of a quantification by name: tables, or iterables of chunks that are created on demand.

    Parameters
    ----------
    quantities : Quantities
        Normalised quantities.
    changes : sequence of Changes
        Tested changes of proteins.
    measured : mapping of str to (pyarrow.Table or iterable of pyarrow.Table)
        Tables of the underlying measurements; the tables of methods that were not used are empty.
    """
    identified, design, levels = quantities.identified, quantities.design, quantities.normalised.levels
    proteins, of_form = identified.proteins, identified.forms.sequence
    accession = taken(proteins.accession, identified.protein)
    keys: tuple[tuple[Table, Mapping[str, Any]], ...] = (
        (
            PEPTIDOFORMS,
            {"peptide": identified.forms.peptide, "sequence": taken(identified.sequences, of_form), "accession": taken(accession, of_form)},
        ),
        (PEPTIDES, {"sequence": identified.sequences, "accession": accession}),
        (
            PROTEINS,
            {"accession": proteins.accession, "other_accessions": proteins.others, "description": proteins.description, **proteins.names},
        ),
    )
    n_peptides = peptide_counts(levels.sequences, identified.protein, len(proteins))
    more: tuple[dict[str, NDArray[Any]], ...] = ({}, {}, {"n_peptides": n_peptides, "nsaf": quantities.nsaf})
    by_sample = {
        table.name: _TableBySample(table, key, design, amounts, {"n_psms": n_psms, **columns})
        for (table, key), amounts, n_psms, columns in zip(keys, levels, quantities.psms, more, strict=True)
    }
    made = {
        **measured,
        **by_sample,
        SAMPLES.name: _samples(quantities),
        CHANGES.name: changes_table(changes, proteins),
        MISSING.name: missing_table(levels.proteins.value, [sample.condition for sample in design.samples], proteins),
    }
    return {table.name: made.get(table.name, table.schema().empty_table()) for table in TABLES}


def site_tables(
    quantities: Quantities,
    measured: MeasuredIons,
    peptidoforms: pa.Table,
    parameters: QuantificationParameters,
    spool: Path | None = None,
) -> tuple[dict[str, TableParts], tuple[int, int]]:
    """Return the tables of sites, and the numbers of sites with a quantity, and with a quantity relative to the protein.

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
    spool : Path or None
        Folder of temporary files for large tables.
    """
    identified, design = quantities.identified, quantities.design
    sites = Sites.from_table(peptidoforms, identified.forms.peptide, parameters.minimum_site_probability)
    row_of = {accession: row for row, accession in enumerate(identified.proteins.accession)}
    protein = np.array([row_of[accession] for accession in sites.table["accession"].to_pylist()], np.int64)
    grouping = Grouping(measured.form, identified.forms.sequence, identified.protein, len(identified.proteins))
    scaling = plex_scaling(design, parameters)
    factor = quantities.normalised.factor
    amounts = site_quantities(sites, protein, measured.ions, grouping, parameters, *scaling, factor=factor, spool=spool)
    keys = {name: in_one(sites.table[name]) for name in sites.table.column_names}
    by_sample = _TableBySample(SITE_QUANTITIES, keys, design, amounts.amounts, {"log2_relative": amounts.log2_relative})
    n_with_ratio = int(replace(amounts.amounts, value=amounts.log2_relative).has_any().sum())
    return {SITE_QUANTITIES.name: by_sample, SITE_PEPTIDOFORMS.name: peptidoforms}, (int(amounts.amounts.has_any().sum()), n_with_ratio)


def site_columns(quantities: SiteQuantities) -> dict[str, pa.Array]:
    """Return the columns of amounts of the table `SITE_QUANTITIES`."""
    return {**amount_columns(quantities.amounts), "log2_relative": or_null(quantities.log2_relative)}


@dataclass(frozen=True)
class _TableBySample:
    """Table with one row per protein (or peptide) and sample; iteration yields chunks of whole proteins (or peptides).

    Attributes
    ----------
    table : Table
        Columns of the table.
    keys : mapping of str to sequence
        Columns that identify proteins (or peptides), with a value for each.
    design : Design
        Samples.
    amounts : RawQuantities
        Amounts, (n, samples).
    more : mapping of str to ndarray
        Further columns, (n, samples).
    """

    table: Table
    keys: Mapping[str, Any]
    design: Design
    amounts: RawQuantities
    more: Mapping[str, NDArray[Any]]

    def __iter__(self) -> Iterator[pa.Table]:
        n, n_samples = self.amounts.value.shape
        schema = self.table.schema()

        def arrays(columns: Mapping[str, Any]) -> dict[str, pa.Array]:
            return {name: x if isinstance(x, pa.Array) else pa.array(x, schema.field(name).type) for name, x in columns.items()}

        keys, samples = arrays(self.keys), arrays(_sample_columns(self.design))
        some = max(1, _ROWS_OF_CHUNK // n_samples)
        for first in range(0, n or 1, some):
            part = slice(first, min(n, first + some))
            rows, sample = np.divmod(np.arange((part.stop - first) * n_samples), n_samples)
            repeated = {name: column.take(pa.array(first + rows)) for name, column in keys.items()}
            repeated |= {name: column.take(pa.array(sample)) for name, column in samples.items()}
            amounts = RawQuantities(self.amounts.value[part], self.amounts.state[part])
            more = {
                name: or_null(column[part]) if column.dtype == np.float64 else column[part].ravel() for name, column in self.more.items()
            }
            yield self.table.arrow({**repeated, **amount_columns(amounts), **more})
            matrices: list[NDArray[Any]] = [self.amounts.value, self.amounts.state, *self.more.values()]
            for values in matrices:
                release_pages(values)


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
    n_psms = sum(quantities.psms[0][rows].sum(axis=0) for rows in row_blocks(quantities.psms[0]))
    return SAMPLES.arrow({**_sample_columns(design), **blocks, "parts": parts, "n_psms": n_psms, **counts})


def amount_columns(amounts: RawQuantities) -> dict[str, pa.Array]:
    """Return the columns of amounts for tables with one row per protein (or peptide) and sample."""
    states = taken([state.text for state in State], amounts.state.ravel().astype(np.int64))
    return {"quantity": or_null(amounts.value), "log2_quantity": or_null(amounts.log2), "state": states}


def peptide_counts(sequences: RawQuantities, protein: NDArray[np.int64], n_proteins: int) -> NDArray[np.int32]:
    """Return the number of quantified peptides of each protein in each sample, (proteins, samples) int32.

    `protein` is the index of each peptide's protein, or -1.
    """
    result = np.zeros((n_proteins + 1, sequences.value.shape[1]), np.int32)
    for rows in row_blocks(sequences.value):
        np.add.at(result, protein[rows], ~np.isnan(sequences.value[rows]))  # the last row collects peptides without a protein
    return result[:-1]


def sample_counts(levels: Levels, factor: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Return columns of each sample: numbers of quantified peptidoforms, peptides, proteins and transfers, and normalisation factor."""
    counts = {name: np.zeros(len(factor), np.int64) for name in ("n_peptidoforms", "n_peptides", "n_proteins", "n_transferred")}
    for name, level in zip(counts, levels, strict=False):
        for rows in row_blocks(level.value, level.state):
            has = ~np.isnan(level.value[rows])
            counts[name] += has.sum(axis=0)
            if level is levels.forms:
                counts["n_transferred"] += ((level.state[rows] == State.TRANSFERRED) & has).sum(axis=0)
    return {**counts, "factor": factor}


def write_quantities(run: Run, tables: Mapping[str, TableParts], out: str | Path | None, progress: Progress) -> list[str]:
    """Write the tables of a run, also as text, and the protein table to `out` if given; return the names of the text files.

    A table by sample with more than `_MOST_TEXT_ROWS` rows is written as text only with one column for each sample.

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled.
    """
    names = []
    for table in (*TABLES, *SITE_TABLES):
        if table.name not in tables:
            continue
        parts, name = tables[table.name], table_file_name(table)
        with run.table_writer(table.name, table.schema()) as writer:
            for part in chunks_of(parts):
                writer.write(part)
                progress.check()
        if table in BY_SAMPLE and writer.rows > _MOST_TEXT_ROWS:
            progress.message(
                f"{name} is not written, since it has {writer.rows:,} rows; {wide_table_file_name(table)} has the quantities."
                " proteoscope export --format tsv writes the whole table"
            )
            continue
        write_separated(run.folder / EXPORTS / name, parts, table.saved_columns, progress, DIGITS)
        names.append(name)
    wide = write_wide(run.folder / EXPORTS, tables, progress)
    if out is not None:
        write_separated(Path(out), tables[PROTEINS.name], PROTEINS.saved_columns, progress, DIGITS)
    return [*names, *(path.name for path in wide)]


def chunks_of(parts: TableParts) -> Iterable[pa.Table]:
    """Return the chunks of a table; a table is its only chunk."""
    return (parts,) if isinstance(parts, pa.Table) else parts


def whole_table(tables: Mapping[str, TableParts], table: Table) -> pa.Table:
    """Return all rows of a small table; a table that the run does not have is empty."""
    return pa.concat_tables([table.schema().empty_table(), *chunks_of(tables.get(table.name, ()))])


def write_wide(folder: Path, tables: Mapping[str, TableParts], progress: Progress, *, spreadsheet_safe: bool = False) -> list[Path]:
    """Write the tables with one column of quantities per sample, as other programs expect them; return the paths.

    Chunks of `tables` hold whole proteins (or peptides).

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled.
    """
    samples = [name for part in chunks_of(tables[SAMPLES.name]) for name in part["sample"].to_pylist()]
    # The prefix avoids names of other columns and formulas of spreadsheets.
    columns = tuple(Column(f"quantity_{name}", saved=".6g", kind="number") for name in samples)
    present = [table for table in BY_SAMPLE if table.name in tables]
    for kind in present:
        keys = [name for name in kind.saved if name in _KEYS]
        parts = (_widen(part, keys, columns) for part in chunks_of(tables[kind.name]))
        path, described = folder / wide_table_file_name(kind), (*kind.chosen(keys), *columns)
        write_separated(path, parts, described, progress, DIGITS, spreadsheet_safe=spreadsheet_safe)
    return [folder / wide_table_file_name(table) for table in present]


def _widen(table: pa.Table, keys: Sequence[str], columns: Sequence[Column]) -> pa.Table:
    """Return a table with one row per protein (or peptide) and one column of quantities per sample."""
    n = len(columns)
    first = pa.array(np.arange(0, len(table), n))
    value = pa.compute.fill_null(table["quantity"], float("nan")).to_numpy().reshape(-1, n)
    # One array of all samples, since there may be thousands.
    by_sample = or_null(value.T)
    arrays = [table[name].take(first) for name in keys] + [by_sample.slice(number * len(value), len(value)) for number in range(n)]
    return pa.table(arrays, names=[*keys, *(column.name for column in columns)])

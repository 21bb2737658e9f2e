"""Recalculation of quantities and changes after manual correction of the integration limits of ion traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.entry import recorded_parameters
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.amounts import Grouping, RawQuantities, State
from proteoscope.engine.quantification.changes import changes_table, protein_changes
from proteoscope.engine.quantification.design import BLOCKS, Design, Sample
from proteoscope.engine.quantification.identified import Proteins
from proteoscope.engine.quantification.label_free import STATE_OF_REASON
from proteoscope.engine.quantification.models import ComparisonModel, comparison_model
from proteoscope.engine.quantification.normalised import normalised_levels
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.results import (
    TableParts,
    amount_columns,
    chunks_of,
    missing_table,
    peptide_counts,
    sample_counts,
    site_columns,
    whole_table,
)
from proteoscope.engine.quantification.sites import Sites, site_quantities
from proteoscope.engine.quantification.tables import (
    BY_SAMPLE,
    CHANGES,
    ION_TRACES,
    MISSING,
    PEPTIDES,
    PEPTIDOFORMS,
    PROTEINS,
    SAMPLES,
    SITE_PEPTIDOFORMS,
    SITE_QUANTITIES,
    SITE_TABLES,
    TABLES,
)
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored, stored_table

__all__ = ["CORRECTED", "corrected_tables", "inconsistent_table", "quantity_parts", "read_quantities"]

CORRECTED = ("area", "apex", "retention_time", "begin", "end", "n_points", "agreement")
"""Columns of an ion trace that a correction replaces: all values measured between the integration limits, except the width."""
_BY_HAND = {"source": "manual", "refused": None, "q_value": None, "width": None}
"""Values of other columns of a manually corrected ion trace."""
_REMEDY = "Quantify again"


def read_quantities(project: Project, run_id: str) -> dict[str, pa.Table]:
    """Return all tables of a run by name, including manual corrections.

    Raises
    ------
    InputError
        If the run does not exist, or one of its tables is invalid.
    """
    tables = {table.name: read_stored(project, run_id, table, list(table.by_name)) for table in _stored(project, run_id)}
    for table in BY_SAMPLE:
        if table.name in tables:
            _StoredTable(project, run_id, table, tables[SAMPLES.name]["sample"]).checked(tables[table.name])
    tables[MISSING.name] = whole_table({MISSING.name: _MissingTable(tables[PROTEINS.name], tables[SAMPLES.name])}, MISSING)
    corrections = project.row_corrections(run_id, ION_TRACES.name)
    if not corrections:
        return tables
    record = next(run for run in project.runs() if run.id == run_id)
    parameters = QuantificationParameters.checked(recorded_parameters(project, record))
    try:
        return corrected_tables(tables, corrections, parameters)
    except (KeyError, ValueError, IndexError):
        raise inconsistent_table(project, run_id, ION_TRACES) from None


def inconsistent_table(project: Project, run_id: str, table: Table) -> InputError:
    """Return an error about a table of a run that refers to items which the other tables do not have."""
    path = project.table(table.name, run_id, verify=False)
    return InputError(path, "is not consistent with the other tables", remedy=_REMEDY)


def quantity_parts(project: Project, run_id: str) -> dict[str, TableParts]:
    """Return all tables of a run by name, as chunks that are read on demand, or as whole tables if there are manual corrections.

    Chunks of tables by sample contain all rows of each of their proteins (or peptides). They are validated when they are read.

    Raises
    ------
    InputError
        If the run does not exist, or one of its tables is invalid.
    """
    if project.row_corrections(run_id, ION_TRACES.name):
        return dict(read_quantities(project, run_id))
    samples = read_stored(project, run_id, SAMPLES, list(SAMPLES.by_name))
    if not len(samples):
        raise InputError(project.table(SAMPLES.name, run_id, verify=False), "has no sample", remedy=_REMEDY)
    stored = {table.name: _StoredTable(project, run_id, table, samples["sample"]) for table in _stored(project, run_id)}
    return {**stored, SAMPLES.name: samples, MISSING.name: _MissingTable(stored[PROTEINS.name], samples)}


def _stored(project: Project, run_id: str) -> list[Table]:
    """Return the stored tables of a run, without the table of missing values, which is computed again."""
    names = {result.name for result in project.results(run_id)}
    return [*(table for table in TABLES if table is not MISSING), *(table for table in SITE_TABLES if table.name in names)]


@dataclass(frozen=True)
class _StoredTable:
    """Chunks of a table of a run; chunks of tables by sample have all samples of each protein (or peptide)."""

    project: Project
    run_id: str
    table: Table
    samples: pa.ChunkedArray

    def __iter__(self) -> Iterator[pa.Table]:
        with stored_table(self.project, self.run_id, self.table, list(self.table.by_name)) as source:
            if self.table not in BY_SAMPLE:
                yield from source.batches(list(self.table.by_name))
                return
            left: list[pa.Table] = []
            for batch in source.batches(list(self.table.by_name)):
                every = pa.concat_tables([*left, batch])
                whole = len(every) // len(self.samples) * len(self.samples) if len(self.samples) else 0
                left = [every.slice(whole)]
                if whole:
                    yield self.checked(every.slice(0, whole).combine_chunks())
            if sum(map(len, left)):
                self.checked(left[0])

    def checked(self, part: pa.Table) -> pa.Table:
        """Return the rows of some proteins (or peptides) after checking that each of them has a row for every sample.

        Raises
        ------
        InputError
            If a protein (or peptide) lacks a sample.
        """
        if not _has_each_sample(part, self.samples):
            path = self.project.table(self.table.name, self.run_id, verify=False)
            raise InputError(path, "does not contain every sample of each row, in their order", remedy=_REMEDY)
        return part


@dataclass(frozen=True)
class _MissingTable:
    """Table of missing values, computed from the quantities of proteins (a table or its chunks) when it is iterated."""

    proteins: TableParts
    samples: pa.Table

    def __iter__(self) -> Iterator[pa.Table]:
        conditions = [condition or "" for condition in self.samples["condition"].to_pylist()]
        n, names = len(conditions), ("accession", "other_accessions", "description")
        values, texts = [np.zeros((0, n))], {name: list[Any]() for name in names}
        for part in chunks_of(self.proteins):
            values.append(part["quantity"].to_numpy().astype(np.float64).reshape(-1, n))
            for name in names:
                texts[name] += part[name].take(np.arange(0, len(part), n)).to_pylist()
        value = np.concatenate(values)
        accession, others, description = (texts[name] for name in names)
        yield missing_table(value, conditions, Proteins(accession, others, description, np.zeros(len(value), np.int64)))


def corrected_tables(
    tables: Mapping[str, pa.Table], corrections: Mapping[int, Mapping[str, float]], parameters: QuantificationParameters
) -> dict[str, pa.Table]:
    """Return the tables of a run after recalculation with corrected ion traces.

    Parameters
    ----------
    tables : mapping of str to pyarrow.Table
        Tables of the run, by name.
    corrections : mapping of int to mapping of str to float
        New values of the columns `CORRECTED`, by row of the ion trace table; incomplete corrections are ignored.
    parameters : QuantificationParameters
        Parameters of the quantification.

    Returns
    -------
    dict of str to pyarrow.Table

    Raises
    ------
    KeyError, ValueError
        If the tables are inconsistent.
    """
    sound = {row: correction for row, correction in corrections.items() if _is_sound(correction)}
    traces = _corrected_traces(tables[ION_TRACES.name], sound)
    samples = tables[SAMPLES.name]
    names = samples["sample"].to_pylist()
    keys = {
        name: _first_by_item(tables[name], column, len(names))
        for name, column in ((PEPTIDOFORMS.name, "sequence"), (PEPTIDES.name, "sequence"), (PROTEINS.name, "accession"))
    }
    row_of = {name: {key: row for row, key in enumerate(keys_of_table)} for name, keys_of_table in keys.items()}
    of_form = np.array([row_of[PEPTIDES.name][key] for key in keys[PEPTIDOFORMS.name]], np.int64)
    owners = _first_by_item(tables[PEPTIDES.name], "accession", len(names))
    protein = np.array([-1 if owner is None else row_of[PROTEINS.name][owner] for owner in owners], np.int64)
    form, ions = _amounts_of_ions(tables, traces)
    model = _model(samples, parameters)
    grouping = Grouping(form, of_form, protein, len(keys[PROTEINS.name]))
    result = normalised_levels(ions, grouping, model, parameters)
    made = {**tables, ION_TRACES.name: traces}
    for table, amounts in zip((PEPTIDOFORMS, PEPTIDES, PROTEINS), result.levels, strict=True):
        made[table.name] = _replace_columns(tables[table.name], amount_columns(amounts))
    n_peptides = peptide_counts(result.levels.sequences, protein, len(result.levels.proteins))
    made[PROTEINS.name] = _replace_columns(made[PROTEINS.name], {"n_peptides": n_peptides.ravel()})
    made[SAMPLES.name] = _replace_columns(samples, sample_counts(result.levels, result.factor))
    made[CHANGES.name] = _changes(tables, result.levels.proteins, model, parameters)
    if SITE_PEPTIDOFORMS.name in tables:
        peptides = [str(name) for name in _first_by_item(tables[PEPTIDOFORMS.name], "peptide", len(names))]
        sites = Sites.from_table(tables[SITE_PEPTIDOFORMS.name], peptides, parameters.minimum_site_probability)
        of_site = np.array([row_of[PROTEINS.name][accession] for accession in sites.table["accession"].to_pylist()], np.int64)
        of_sites = site_quantities(sites, of_site, ions, grouping, parameters, factor=result.factor)
        made[SITE_QUANTITIES.name] = _replace_columns(tables[SITE_QUANTITIES.name], site_columns(of_sites))
    made[MISSING.name] = whole_table({MISSING.name: _MissingTable(made[PROTEINS.name], made[SAMPLES.name])}, MISSING)
    return made


def _is_sound(correction: Mapping[str, float]) -> bool:
    if not set(CORRECTED) <= correction.keys():
        return False
    is_positive = all(correction[name] >= 0 for name in ("area", "apex", "n_points"))
    return is_positive and 0 <= correction["agreement"] <= 1.000001 and correction["begin"] <= correction["end"]


def _replace_columns(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """Return a table with the given columns replaced."""
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        field = table.schema.field(at)
        table = table.set_column(at, field, values.cast(field.type) if isinstance(values, pa.Array) else pa.array(values, field.type))
    return table


def _corrected_traces(traces: pa.Table, corrections: Mapping[int, Mapping[str, float]]) -> pa.Table:
    """Return the traces with manual corrections; corrected traces count as neither transferred nor refused."""
    columns = {name: traces[name].to_pylist() for name in (*CORRECTED, *_BY_HAND)}
    for row, correction in corrections.items():
        for name, values in columns.items():
            values[row] = _BY_HAND[name] if name in _BY_HAND else int(correction[name]) if name == "n_points" else correction[name]
    return _replace_columns(traces, columns)


def _has_each_sample(table: pa.Table, samples: pa.ChunkedArray) -> bool:
    """Return True if each protein, peptide or peptidoform has one row per sample, in the order of the samples."""
    n = len(samples)
    if not n or len(table) % n or len(samples.unique()) != n:
        return False
    rows = np.arange(len(table))
    if not table["sample"].combine_chunks().equals(samples.take(rows % n).combine_chunks()):
        return False
    keys = [name for name in ("accession", "position", "residue", "modification", "peptide", "sequence") if name in table.column_names]
    of_first = table.select(keys).take(rows - rows % n)
    return all(table[name].combine_chunks().equals(of_first[name].combine_chunks()) for name in keys)


def _first_by_item(table: pa.Table, column: str, n_samples: int) -> list[str | None]:
    """Return the text of each protein, peptide or peptidoform, from a column with one row per sample."""
    result: list[str | None] = table[column].take(np.arange(0, len(table), n_samples)).to_pylist()
    return result


def _amounts_of_ions(tables: Mapping[str, pa.Table], traces: pa.Table) -> tuple[NDArray[np.int64], RawQuantities]:
    """Return the peptidoform of each ion, and the amounts of ions by sample, before normalisation and with fractions added."""
    samples, long = tables[SAMPLES.name], tables[PEPTIDOFORMS.name]
    n_samples = len(samples)
    of_file: dict[str, int] = {}
    for number, parts in enumerate(samples["parts"].to_pylist()):
        for part in parts:
            if of_file.setdefault(part, number) != number:
                raise ValueError(f"two files are named {part}")
    form_of = {peptide: row for row, peptide in enumerate(_first_by_item(long, "peptide", n_samples))}
    ions: dict[tuple[str, int, float | None], int] = {}
    names = zip(*(traces[name].to_pylist() for name in ("peptide", "charge", "voltage")), strict=True)
    ion = np.array([ions.setdefault(name, len(ions)) for name in names], np.int64)
    form = np.array([form_of[peptide] for peptide, *_ in ions], np.int64)
    sample = np.array([of_file[name] for name in traces["file"].to_pylist()], np.int64)
    area = traces["area"].to_numpy().astype(np.float64)
    has = ~np.isnan(area)
    value, seen = np.zeros((len(ions), n_samples)), np.zeros((len(ions), n_samples), np.bool_)
    np.add.at(value, (ion[has], sample[has]), area[has])
    seen[ion[has], sample[has]] = True
    of_trace = [
        State.TRANSFERRED if source == "transferred" else STATE_OF_REASON[refused or ""]
        for source, refused in zip(traces["source"].to_pylist(), traces["refused"].to_pylist(), strict=True)
    ]
    state = np.full(value.shape, State.NOT_SEEN, np.int8)
    np.minimum.at(state, (ion, sample), np.array(of_trace, np.int8))
    return form, RawQuantities(np.where(seen, value, np.nan), state)


def _model(samples: pa.Table, parameters: QuantificationParameters) -> ComparisonModel | None:
    """Return the model with which the run compared conditions; None if the run compared no conditions."""
    columns = [samples[name].to_pylist() for name in ("sample", "condition", "replicate", *BLOCKS)]
    design = Design(
        tuple(Sample(row[0], row[1] or "", row[2] or 0, *(value or "" for value in row[3:])) for row in zip(*columns, strict=True)), ()
    )
    groups = design.groups(parameters.conditions, parameters.reference)
    try:
        return comparison_model(design, groups, parameters.reference) if groups else None
    except ParameterError:
        return None


def _changes(
    tables: Mapping[str, pa.Table], amounts: RawQuantities, model: ComparisonModel | None, parameters: QuantificationParameters
) -> pa.Table:
    return changes_table(protein_changes(amounts, model, parameters), _proteins(tables))


def _proteins(tables: Mapping[str, pa.Table]) -> Proteins:
    long, n_samples = tables[PROTEINS.name], len(tables[SAMPLES.name])
    first = np.arange(0, len(long), n_samples)
    accession, others, description = (long[name].take(first).to_pylist() for name in ("accession", "other_accessions", "description"))
    return Proteins(accession, others, description, np.zeros(len(first), np.int64))

"""Quantities as tables, by sample one below the other, and with a column for each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import Amounts, State
from proteoscope.engine.quantification.design import BLOCKS, Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.tables import BY_SAMPLE, PEPTIDES, PEPTIDOFORMS, PROTEINS, SAMPLES, wide_file_of
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["Quantities", "quantity_tables", "write_wide"]

_KEYS = ("accession", "other_accessions", "description", "peptide", "sequence")
_STATES = np.array([state.text for state in State])


@dataclass(frozen=True)
class Quantities:
    """Amounts of m peptidoforms, of the sequences and of the proteins in s samples, normalised; with the spectra of each.

    Attributes
    ----------
    factor : (s,) float64, what the amounts were multiplied by. nsaf : (p, s) float64.
    form_psms, sequence_psms, protein_psms : (m, s), (sequences, s), (p, s) int64.
    """

    design: Design
    identified: Identified
    forms: Amounts
    sequences: Amounts
    proteins: Amounts
    factor: NDArray[np.float64]
    nsaf: NDArray[np.float64]
    form_psms: NDArray[np.int64]
    sequence_psms: NDArray[np.int64]
    protein_psms: NDArray[np.int64]


def quantity_tables(found: Quantities) -> dict[str, pa.Table]:
    """The tables of proteins, peptides, peptidoforms and samples, by their names."""
    identified, design = found.identified, found.design
    n_samples = len(design.samples)
    accession = _taken(identified.proteins.accession, identified.protein)
    has = ~np.isnan(found.sequences.value)
    n_peptides = np.zeros((len(identified.proteins) + 1, n_samples), np.int64)
    np.add.at(n_peptides, identified.protein, has)  # the last row takes those of no protein
    of_form = identified.forms.sequence
    sequences = pa.array(identified.sequences, pa.string())
    proteins = {
        "accession": _repeated(identified.proteins.accession, n_samples),
        "other_accessions": _repeated(identified.proteins.others, n_samples, pa.list_(pa.string())),
        "description": _repeated(identified.proteins.description, n_samples),
        "n_peptides": n_peptides[:-1].ravel(), "nsaf": _or_null(found.nsaf),
        **_of_samples(design, found.proteins, found.protein_psms),
    }  # fmt: skip
    peptides = {
        "sequence": _repeated(sequences, n_samples), "accession": _repeated(accession, n_samples),
        **_of_samples(design, found.sequences, found.sequence_psms),
    }  # fmt: skip
    forms = {
        "peptide": _repeated(identified.forms.peptide, n_samples),
        "sequence": _repeated(sequences.take(pa.array(of_form)), n_samples),
        "accession": _repeated(accession.take(pa.array(of_form)), n_samples),
        **_of_samples(design, found.forms, found.form_psms),
    }  # fmt: skip
    return {
        PROTEINS.name: PROTEINS.arrow(proteins), PEPTIDES.name: PEPTIDES.arrow(peptides), PEPTIDOFORMS.name: PEPTIDOFORMS.arrow(forms),
        SAMPLES.name: _samples(found),
    }  # fmt: skip


def _samples(found: Quantities) -> pa.Table:
    design, state = found.design, found.forms.state
    names = [PurePath(one.path).name for one in found.identified.files]
    parts: list[list[str]] = [[] for _ in design.samples]
    for part in design.parts:
        parts[part.sample].append(names[part.file])
    has = [~np.isnan(one.value) for one in (found.forms, found.sequences, found.proteins)]
    return SAMPLES.arrow(
        {
            "sample": [one.name for one in design.samples], "condition": [one.condition or None for one in design.samples],
            "replicate": [one.replicate or None for one in design.samples],
            **{name: [getattr(one, name) or None for one in design.samples] for name in BLOCKS},
            "parts": parts, "n_psms": found.form_psms.sum(axis=0),
            "n_peptidoforms": has[0].sum(axis=0), "n_peptides": has[1].sum(axis=0), "n_proteins": has[2].sum(axis=0),
            "n_transferred": ((state == State.TRANSFERRED) & has[0]).sum(axis=0), "factor": found.factor,
        }
    )  # fmt: skip


def _of_samples(design: Design, amounts: Amounts, n_psms: NDArray[np.int64]) -> dict[str, Any]:
    """The columns that all tables by sample have, a row for each thing and sample."""
    n, samples = len(amounts), design.samples
    value = amounts.value.ravel()
    logs = np.full(value.shape, np.nan)
    np.log2(value, out=logs, where=value > 0)

    def of_each(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(pa.array(np.tile(np.arange(len(samples)), n)))

    return {
        "sample": of_each([one.name for one in samples], pa.string()),
        "condition": of_each([one.condition or None for one in samples], pa.string()),
        "replicate": of_each([one.replicate or None for one in samples], pa.int64()),
        "quantity": _or_null(value), "log2_quantity": _or_null(logs),
        "state": pa.array(_STATES, pa.string()).take(pa.array(amounts.state.ravel())), "n_psms": n_psms.ravel(),
    }  # fmt: skip


def _or_null(values: NDArray[np.float64]) -> pa.Array:
    flat = values.ravel()
    return pa.array(flat, mask=np.isnan(flat))


def _taken(texts: Sequence[str], rows: NDArray[np.int64]) -> pa.Array:
    """Texts by number, missing where that is -1."""
    return pa.array(texts, pa.string()).take(pa.array(rows, mask=rows < 0))


def _repeated(values: Any, times: int, kind: Any = None) -> pa.Array:
    values = values if isinstance(values, pa.Array) else pa.array(values, kind or pa.string())
    return values.take(pa.array(np.repeat(np.arange(len(values)), times)))


def write_wide(folder: Path, tables: Mapping[str, pa.Table], progress: Progress, *, spreadsheet_safe: bool = False) -> list[Path]:
    """Write the tables by sample with a column for the quantity in each sample, as other programs take them; the paths.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    samples = tables[SAMPLES.name]["sample"].to_pylist()
    # No column of the table is called so, and no spreadsheet takes it for a formula.
    columns = tuple(Column(f"quantity_{name}", saved=".6g", kind="number") for name in samples)
    written = []
    for one in BY_SAMPLE:
        written.append(folder / wide_file_of(one))
        table, described = _wide(tables[one.name], one, columns)
        write_separated(written[-1], table, described, progress, DIGITS, spreadsheet_safe=spreadsheet_safe)
    return written


def _wide(table: pa.Table, described: Table, columns: tuple[Column, ...]) -> tuple[pa.Table, tuple[Column, ...]]:
    """A row for each thing instead of one for each of its samples, which are always all there and in one order."""
    keys = [name for name in described.saved if name in _KEYS]
    n = len(columns)
    first = pa.array(np.arange(0, len(table), n))
    value = pa.compute.fill_null(table["quantity"], float("nan")).to_numpy().reshape(-1, n)
    arrays = [table[name].take(first) for name in keys] + [_or_null(value[:, number]) for number in range(n)]
    return pa.table(arrays, names=[*keys, *(one.name for one in columns)]), (*described.chosen(keys), *columns)

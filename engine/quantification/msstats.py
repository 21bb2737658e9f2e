"""Export of quantities for MSstats and MSstatsTMT (Choi 2014, Bioinformatics 30:2524; Huang 2020, Mol. Cell. Proteomics 19:1706).

There is one row per ion and file, or per spectrum and channel. Values are not normalised, because these programs do this themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError, shortened
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import inconsistent_table, quantity_parts
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.results import TableParts, chunks_of, whole_table
from proteoscope.engine.quantification.tables import ION_TRACES, PEPTIDOFORMS, REPORTER_IONS, SAMPLES, SITE_PEPTIDOFORMS
from proteoscope.engine.results.arrow import in_one, taken
from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["export_msstats", "export_msstats_ptm"]

_LABEL_FREE = (
    "ProteinName",
    "PeptideSequence",
    "PrecursorCharge",
    "FragmentIon",
    "ProductCharge",
    "IsotopeLabelType",
    "Condition",
    "BioReplicate",
    "Run",
    "Fraction",
    "Intensity",
)
_LABELLED = (
    "ProteinName",
    "PeptideSequence",
    "Charge",
    "PSM",
    "Mixture",
    "TechRepMixture",
    "Run",
    "Channel",
    "BioReplicate",
    "Condition",
    "Fraction",
    "Intensity",
)


def export_msstats(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write input of MSstats from ion traces, or of MSstatsTMT from reporter ions; ions without a protein are omitted.

    See `proteoscope.engine.entry.Search.export`.

    Raises
    ------
    ParameterError
        If the run has neither traces nor reporter ions, or no conditions, or two files with the same name.
    StorageError
        If writing fails.
    """
    progress.stage("Exporting the input of MSstats")
    rows, columns = _rows(project, request.run_id, quantity_parts(project, request.run_id))
    write_separated(request.target, rows, columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
    return [request.target]


def _rows(project: Project, run_id: str, tables: Mapping[str, TableParts]) -> tuple[Iterator[pa.Table], tuple[Column, ...]]:
    """Return the ion traces of a run as input of MSstats, or its reporter ions as input of MSstatsTMT, in chunks, and the columns.

    Raises
    ------
    ParameterError
        If the run has neither traces nor reporter ions, or no conditions, or two files with the same name.
    InputError
        If a table has a file or a sample that the samples of the run do not have.
    """
    samples = [sample for part in chunks_of(tables[SAMPLES.name]) for sample in part.to_pylist()]
    if any(sample["condition"] is None for sample in samples):
        raise ParameterError("MSstats compares conditions, and the run has none: quantify with a design")
    is_labelled, has_traces = (any(len(part) for part in chunks_of(tables[table.name])) for table in (REPORTER_IONS, ION_TRACES))
    if not is_labelled and not has_traces:
        raise ParameterError("MSstats needs ion traces or reporter ions, but the run has only spectral counts")
    names = _LABELLED if is_labelled else _LABEL_FREE
    owner: dict[str, str | None] = {}
    for part in chunks_of(tables[PEPTIDOFORMS.name]):
        first = part.select(["peptide", "accession"]).take(np.arange(0, len(part), len(samples)))
        owner |= zip(first["peptide"].to_pylist(), first["accession"].to_pylist(), strict=True)
    table = REPORTER_IONS if is_labelled else ION_TRACES

    def rows() -> Iterator[pa.Table]:
        for part in chunks_of(tables[table.name]):
            try:
                yield (_labelled if is_labelled else _label_free)(part, owner, samples).select(names)
            except KeyError:
                raise inconsistent_table(project, run_id, table) from None

    columns = tuple(Column(name, saved=".8g", kind="number", saved_null="NA") if name == "Intensity" else Column(name) for name in names)
    return rows(), columns


def _label_free(traces: pa.Table, owner: Mapping[str, str | None], samples: list[dict[str, Any]]) -> pa.Table:
    """Return ion traces as rows; the files of a sample are its fractions.

    Ions that were not identified in a file have no row; MSstats adds these rows.
    """
    at: dict[str, tuple[int, int]] = {}
    for number, sample in enumerate(samples):
        for fraction, name in enumerate(sample["parts"], 1):
            if name in at:
                raise ParameterError(
                    f"MSstats needs distinct file names, and two files are named {shortened(name)}: rename one, and identify it again"
                )
            at[name] = number, fraction
    file = in_one(traces["file"]).dictionary_encode()
    positions = np.array([at[name] for name in file.dictionary.to_pylist()], np.int64).reshape(-1, 2)[file.indices.to_numpy()]
    n = len(traces)
    rows = pa.table(
        {
            "ProteinName": _proteins(owner, traces["peptide"]),
            "PeptideSequence": traces["peptide"],
            "PrecursorCharge": traces["charge"],
            "FragmentIon": _voltages(traces["voltage"]),
            "ProductCharge": pa.repeat("NA", n),
            "IsotopeLabelType": pa.repeat("L", n),
            **_sample_columns(samples, positions[:, 0]),
            "Run": traces["file"],
            "Fraction": positions[:, 1],
            "Intensity": traces["area"],
        }
    )
    return rows.filter(rows["ProteinName"].is_valid())


def _labelled(ions: pa.Table, owner: Mapping[str, str | None], samples: list[dict[str, Any]]) -> pa.Table:
    """Return reporter ions as rows; samples with the same files are a mixture, and refused spectra have no intensity."""
    name = in_one(ions["sample"]).dictionary_encode()
    number_of = {sample["sample"]: number for number, sample in enumerate(samples)}
    row = np.array([number_of[text] for text in name.dictionary.to_pylist()], np.int64)[name.indices.to_numpy()]
    mixtures = {parts: f"Mixture{number}" for number, parts in enumerate(dict.fromkeys(tuple(sample["parts"]) for sample in samples), 1)}
    mixture = taken([mixtures[tuple(sample["parts"])] for sample in samples], row)
    fraction_of = {file: number for sample in samples for number, file in enumerate(sample["parts"], 1)}
    file = in_one(ions["file"]).dictionary_encode()
    fraction = pa.array([fraction_of[text] for text in file.dictionary.to_pylist()], pa.int64()).take(file.indices)
    charge = pa.compute.cast(ions["charge"], pa.string())
    psm = pa.compute.binary_join_element_wise(ions["peptide"], charge, ions["spectrum_id"], "_")
    nothing = pa.scalar(None, pa.float64())
    rows = pa.table(
        {
            "ProteinName": _proteins(owner, ions["peptide"]),
            "PeptideSequence": ions["peptide"],
            "Charge": ions["charge"],
            "PSM": psm,
            "Mixture": mixture,
            "TechRepMixture": pa.repeat(1, len(ions)),
            "Run": ions["file"],
            "Channel": ions["channel"],
            **_sample_columns(samples, row),
            "Fraction": fraction,
            "Intensity": pa.compute.if_else(pa.compute.is_null(ions["refused"]), ions["intensity"], nothing),
        }
    )
    return rows.filter(rows["ProteinName"].is_valid())


def _sample_columns(samples: list[dict[str, Any]], row: NDArray[np.int64]) -> dict[str, pa.Array]:
    """Return the condition of each row's sample, and the subject of the sample or, without a subject, the name of the sample."""
    texts = {
        "Condition": [sample["condition"] for sample in samples],
        "BioReplicate": [sample["subject"] or sample["sample"] for sample in samples],
    }
    return {column: taken(values, row) for column, values in texts.items()}


def _voltages(voltage: pa.ChunkedArray) -> pa.Array:
    """Return the FAIMS voltage of each trace, or NA, for the column of fragments; ions have one row per voltage."""
    value = in_one(voltage).dictionary_encode()
    text = pa.array([f"CV{number:g}" for number in value.dictionary.to_pylist()], pa.string())
    return pa.compute.fill_null(text.take(value.indices), "NA")


def _proteins(owner: Mapping[str, str | None], peptide: pa.ChunkedArray) -> pa.Array:
    """Return the protein to which each peptidoform is assigned; null for none."""
    text = in_one(peptide).dictionary_encode()
    return pa.array([owner.get(name) for name in text.dictionary.to_pylist()], pa.string()).take(text.indices)


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
    tables = quantity_parts(project, request.run_id)
    if SITE_PEPTIDOFORMS.name not in tables:
        raise ParameterError(
            "the quantified identification has no sites of modifications: search a variable modification, such as Phospho (STY), with"
            " localise automatic, and quantify again"
        )
    record = next(run for run in project.runs() if run.id == request.run_id)
    minimum = float(record.parameters.get("minimum_site_probability", QuantificationParameters().minimum_site_probability))
    names = _names_of_sites(whole_table(tables, SITE_PEPTIDOFORMS), minimum)
    paths = [request.target / file for file in _FILES]
    # The rows are read once for each file, so that the memory holds only a chunk of them.
    for path, select in zip(paths, (_modified_rows, _unmodified_rows), strict=True):
        rows, columns = _rows(project, request.run_id, tables)
        parts = (select(part, names) for part in rows)
        write_separated(path, parts, columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
    n_uncertain = sum(site is None for site in names.values())
    if n_uncertain:
        progress.message(f"Peptidoforms omitted because a site has a probability below {minimum:g}: {n_uncertain:,}")
    return paths


def _modified_rows(rows: pa.Table, names: Mapping[str, str | None]) -> pa.Table:
    """Return the rows of peptidoforms whose sites are all certain, with the names of the sites as proteins."""
    name = _proteins(names, rows["PeptideSequence"])
    return rows.set_column(rows.schema.get_field_index("ProteinName"), "ProteinName", name).filter(name.is_valid())


def _unmodified_rows(rows: pa.Table, names: Mapping[str, str | None]) -> pa.Table:
    """Return the rows of peptidoforms without localised modifications."""
    return rows.filter(pa.compute.invert(pa.compute.is_in(in_one(rows["PeptideSequence"]), pa.array(list(names), pa.string()))))


def _names_of_sites(peptidoforms: pa.Table, minimum_probability: float) -> dict[str, str | None]:
    """Return names such as ``P12345_S15_T18`` (protein and sites) by peptidoform; None for a peptidoform with an uncertain site."""
    names: dict[str, str | None] = {}
    for row in peptidoforms.sort_by([("peptide", "ascending"), ("position", "ascending")]).to_pylist():
        before = names.setdefault(row["peptide"], row["accession"])
        is_certain = before is not None and row["site_probability"] >= minimum_probability
        names[row["peptide"]] = f"{before}_{row['residue']}{row['position']}" if is_certain else None
    return names

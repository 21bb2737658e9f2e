"""Export of quantities as mzTab 1.0 (HUPO-PSI; Griss et al. 2014, Mol. Cell. Proteomics 13:2765): proteins and peptidoforms.

Assays are samples. Study variables are conditions (or samples without a condition), with means, standard deviations and standard errors
over assays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.modifications import parse_modification, unimod
from proteoscope.engine.entry import ExportRequest, recorded_parameters
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.protein_names import taxonomy_column
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import quantity_parts
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.quantification.results import TableParts, chunks_of
from proteoscope.engine.quantification.tables import ION_TRACES, PEPTIDOFORMS, PROTEINS, REPORTER_IONS, SAMPLES
from proteoscope.engine.results.arrow import in_one, or_null
from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.separated import TRIMMED, header_line, separated_lines, write_lines
from proteoscope.engine.shared_names import distinct_names
from proteoscope.engine.version import VERSION

__all__ = ["export_mztab", "write_mztab"]

_DIALECT = replace(TRIMMED, has_quotes=False)
"""Format of texts, without quoting, since quotes are ordinary characters in mzTab."""
_METHODS = {
    "label-free": "[MS, MS:1001834, LC-MS label-free quantitation analysis, ]",
    "counts": "[MS, MS:1001836, spectral counting quantitation analysis, ]",
    "tmt": "[MS, MS:1002010, TMT quantitation analysis, ]",
    "itraq": "[MS, MS:1001837, iTRAQ quantitation analysis, ]",
}
_UNIT = "[PRIDE, PRIDE:0000393, Relative quantification unit, ]"
_PROGRAM = "[, , Proteoscope, {}]"
_BRACKET = re.compile(r"\[([^\]]*)\]")


def export_mztab(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write proteins and peptidoforms as mzTab 1.0 (see `proteoscope.engine.entry.Search.export`)."""
    progress.stage("Exporting mzTab")
    files = [source.path for source in project.inputs(request.run_id) if source.kind == "spectra"]
    tables = quantity_parts(project, request.run_id)
    write_mztab(request.target, tables, files, _fixed_modifications(project, request.run_id), progress)
    return [request.target]


def write_mztab(
    path: Path, tables: Mapping[str, TableParts], files: Sequence[Path], fixed: Sequence[str] | None, progress: Progress
) -> None:
    """Write the quantities of proteins and peptidoforms as mzTab.

    Parameters
    ----------
    path : Path
        File to write.
    tables : mapping of str to (pyarrow.Table or iterable of pyarrow.Table)
        Proteins, peptidoforms, ion traces, reporter ions and samples, or chunks of these.
    files : sequence of Path
        Spectrum files; samples refer to them by name.
    fixed : sequence of str or None
        Fixed modifications of the identifications, such as ``Carbamidomethyl (C)``; None if unknown.
    progress : Progress
        Progress of the run.

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled.
    """
    samples = [sample for part in chunks_of(tables[SAMPLES.name]) for sample in part.to_pylist()]
    variables = list(dict.fromkeys(sample["condition"] or sample["sample"] for sample in samples))
    variable = np.array([variables.index(sample["condition"] or sample["sample"]) for sample in samples])
    modifications = {name for part in chunks_of(tables[PEPTIDOFORMS.name]) for name in _names(part["peptide"].unique().to_pylist())}
    channels: dict[str, str] = {}
    for part in chunks_of(tables[REPORTER_IONS.name]):
        reporters = part.group_by(["sample", "channel"]).aggregate([])
        channels |= zip(reporters["sample"].to_pylist(), reporters["channel"].to_pylist(), strict=True)
    labelled = "itraq" if set(channels.values()) <= set(label("itraq-8").channels) else "tmt"
    kind = labelled if channels else "label-free" if any(map(len, chunks_of(tables[ION_TRACES.name]))) else "counts"
    lines = _metadata(samples, variables, variable, files, kind, channels, sorted(modifications), fixed)
    head = "".join(f"MTD\t{name}\t{_plain(value)}\n" for name, value in lines).encode()
    n_commas = 0

    def sections() -> Iterator[tuple[bytes, pa.Table, tuple[Column, ...]]]:
        nonlocal n_commas
        for table, section in ((PROTEINS, _proteins), (PEPTIDOFORMS, _peptides)):
            start = True
            for part in chunks_of(tables[table.name]):
                rows, columns = section(part, variable, len(variables))
                yield b"\n" + header_line(columns) if start else b"", rows, columns
                start = False
                if table is PROTEINS:
                    members = in_one(part["other_accessions"]).flatten()
                    n_commas += pa.compute.sum(pa.compute.match_substring(members, ",")).as_py() or 0

    write_lines(path, head, sections(), lambda section: section[0] + separated_lines(*section[1:], _DIALECT), progress)
    if n_commas:
        progress.message(
            f"{path.name}: accessions of groups contain commas, which separate accessions in mzTab; they are written as %2C", "warning"
        )


def _plain(text: str) -> str:
    """Return a text without tabs and line breaks."""
    return " ".join(text.split())


def _parameter(text: str) -> str:
    """Return a user-defined name as a value within an mzTab parameter, in quotes if it contains commas."""
    return '"' + text.replace('"', "'") + '"' if "," in text else text


def _names(peptides: Sequence[str]) -> list[str]:
    """Return the names of the modifications in peptidoforms."""
    return sorted({name for peptide in peptides for name in _BRACKET.findall(peptide)})


def _metadata(
    samples: Sequence[Mapping[str, Any]],
    variables: Sequence[str],
    variable: NDArray[np.int64],
    files: Sequence[Path],
    kind: str,
    channels: Mapping[str, str],
    modifications: Sequence[str],
    fixed: Sequence[str] | None,
) -> list[tuple[str, str]]:
    # Spectra are numbered without opening the files, since the run does not store their folders.
    positions = {path.name: quote(name) for path, name in zip(files, distinct_names(files), strict=True)}
    names = dict.fromkeys(name for sample in samples for name in sample["parts"])
    numbers = {name: number for number, name in enumerate(names, 1)}
    result = [
        ("mzTab-version", "1.0.0"),
        ("mzTab-mode", "Summary"),
        ("mzTab-type", "Quantification"),
        ("description", "Quantities of proteins and peptidoforms by sample"),
        ("software[1]", _PROGRAM.format(VERSION)),
        ("quantification_method", _METHODS[kind]),
        ("protein-quantification_unit", _UNIT),
        ("peptide-quantification_unit", _UNIT),
        ("protein_search_engine_score[1]", "[MS, MS:1001869, protein-level q-value, ]"),
        ("peptide_search_engine_score[1]", "[MS, MS:1002354, PSM-level q-value, ]"),
    ]
    result += _fixed_lines(fixed)
    always = {_modification_title(text) for text in fixed or ()}
    terms = [_term(name) for name in modifications if name not in always]
    terms = terms or ["[MS, MS:1002454, No variable modifications searched, ]"]
    result += [(f"variable_mod[{number}]", term) for number, term in enumerate(terms, 1)]
    result += [(f"ms_run[{number}]-location", positions.get(name, "null")) for name, number in numbers.items()]
    for number, each in enumerate(samples, 1):
        channel = channels.get(each["sample"])
        reagent = "[MS, MS:1002038, unlabeled sample, ]" if channel is None else f"[, , {kind.upper()} reagent {channel}, ]"
        result.append((f"assay[{number}]-quantification_reagent", reagent))
        result.append((f"assay[{number}]-ms_run_ref", f"ms_run[{numbers[each['parts'][0]]}]"))
    for number, name in enumerate(variables, 1):
        assays = ", ".join(f"assay[{assay + 1}]" for assay in np.flatnonzero(variable == number - 1).tolist())
        result += [(f"study_variable[{number}]-description", name), (f"study_variable[{number}]-assay_refs", assays)]
    return result


def _fixed_lines(fixed: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the lines that list the fixed modifications, with their residues or termini."""
    if fixed is None:
        return [("fixed_mod[1]", "[, , Fixed modifications are not known, ]")]
    lines = []
    for number, text in enumerate(fixed, 1):
        name, _, site = text.rpartition(" (")
        lines.append((f"fixed_mod[{number}]", _term(_modification_title(text))))
        if name:
            lines.append((f"fixed_mod[{number}]-site", site.removesuffix(")")))
    return lines or [("fixed_mod[1]", "[MS, MS:1002453, No fixed modifications searched, ]")]


def _modification_title(text: str) -> str:
    """Return the Unimod title of a modification with a site, such as ``Carbamidomethyl (C)``."""
    try:
        return parse_modification(text).name
    except ParameterError:
        return text.rpartition(" (")[0] or text


def _term(name: str) -> str:
    """Return a modification as an mzTab parameter, from Unimod if possible."""
    if name in unimod():
        return f"[UNIMOD, {unimod().by_name(name).accession}, {_parameter(name)}, ]"
    return f"[CHEMMOD, CHEMMOD:{name if re.fullmatch(r'[+-][0-9.]+', name) else _parameter(name)}, , ]"


def _abundances(value: NDArray[np.float64], variable: NDArray[np.int64], n: int, what: str) -> dict[str, NDArray[np.float64]]:
    """Return the columns of assays, and those of study variables: mean, standard deviation and standard error of the mean."""
    result = {f"{what}_abundance_assay[{number}]": value[:, number - 1] for number in range(1, value.shape[1] + 1)}
    for number in range(n):
        values = value[:, variable == number]
        count = (~np.isnan(values)).sum(axis=1)
        mean = np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)
        spread = np.sqrt(np.nansum((values - mean[:, None]) ** 2, axis=1) / np.maximum(count - 1, 1))
        deviation = np.where(count > 1, spread, np.nan)
        names = ("", "_stdev", "_std_error")
        for name, column in zip(names, (mean, deviation, deviation / np.sqrt(np.maximum(count, 1))), strict=True):
            result[f"{what}_abundance{name}_study_variable[{number + 1}]"] = column
    return result


def _section(
    head: str, kind: str, texts: Mapping[str, Any], numbers: Mapping[str, NDArray[np.float64]]
) -> tuple[pa.Table, tuple[Column, ...]]:
    """Return a section of the file as a table; `head` starts its header line, and `kind` its other lines."""
    n = len(next(iter(numbers.values())))
    table = {head: pa.array([kind], pa.string()).take(pa.array(np.zeros(n, np.int64)))}
    for name, value in texts.items():
        table[name] = pa.nulls(n, pa.string()) if value is None else value
    for name, values in numbers.items():
        table[name] = or_null(values)
    columns = [Column(name, saved_null="null", is_own_text=True) for name in (head, *texts)]
    columns += [Column(name, saved=".8g", kind="number", saved_null="null") for name in numbers]
    return pa.table(table), tuple(columns)


def _rows_by_item(table: pa.Table, variable: NDArray[np.int64]) -> tuple[pa.Table, NDArray[np.float64]]:
    """Return the first row of each protein or peptidoform, and the quantities by sample, (rows, samples).

    `table` has one row per sample for each protein or peptidoform; `variable` has one item per sample.
    """
    n = len(variable)
    value = pa.compute.fill_null(table["quantity"], float("nan")).to_numpy().reshape(-1, n)
    return table.take(pa.array(np.arange(0, len(table), n))), value


def _proteins(table: pa.Table, variable: NDArray[np.int64], n: int) -> tuple[pa.Table, tuple[Column, ...]]:
    rows, value = _rows_by_item(table, variable)
    others = pa.compute.binary_join(_without_commas(in_one(rows["other_accessions"])), ",")
    texts = {
        "accession": rows["accession"],
        "description": _null_if_empty(rows["description"]),
        "taxid": taxonomy_column(rows["description"]),
        "species": rows["organism"],
        "database": None,
        "database_version": None,
        "search_engine": None,
        "best_search_engine_score[1]": None,
        "ambiguity_members": _null_if_empty(others),
        "modifications": None,
    }
    return _section("PRH", "PRT", texts, _abundances(value, variable, n, "protein"))


def _without_commas(lists: Any) -> Any:
    """Return lists of accessions with escaped commas, since mzTab separates accessions by commas."""
    return pa.ListArray.from_arrays(lists.offsets, pa.compute.replace_substring(lists.values, ",", "%2C"))


def _null_if_empty(texts: Any) -> Any:
    """Return texts with null instead of ''."""
    return pa.compute.if_else(pa.compute.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _peptides(table: pa.Table, variable: NDArray[np.int64], n: int) -> tuple[pa.Table, tuple[Column, ...]]:
    rows, value = _rows_by_item(table, variable)
    modifications = pa.array([_placed(text) for text in rows["peptide"].to_pylist()], pa.string())
    texts = {
        "sequence": rows["sequence"],
        "accession": rows["accession"],
        "unique": None,
        "database": None,
        "database_version": None,
        "search_engine": None,
        "best_search_engine_score[1]": None,
        "modifications": modifications,
        "retention_time": None,
        "retention_time_window": None,
        "charge": None,
        "mass_to_charge": None,
        "spectra_ref": None,
    }
    return _section("PEH", "PEP", texts, _abundances(value, variable, n, "peptide"))


def _placed(peptide: str) -> str | None:
    """Return the modifications of a ProForma peptidoform with positions: 0 for the N-terminus, length + 1 for the C-terminus."""
    result, position = [], 0
    for part in re.split(r"(\[[^\]]*\])", peptide):
        if part.startswith("["):
            name = part[1:-1]
            accession = unimod().by_name(name).accession if name in unimod() else f"CHEMMOD:{name}"
            result.append(f"{position}-{accession}")
        else:
            if part.startswith("-") and position:
                part, position = part[1:], position
            position += sum(symbol.isupper() for symbol in part)
            if part.endswith("-") and position:
                position += 1
    return ",".join(result) or None


def _fixed_modifications(project: Project, run_id: str) -> list[str] | None:
    """Return the fixed modifications of the quantified identifications; None if an identification does not record them."""
    # For an import, only fixed modifications named by the user are known.
    runs = {run.id: run for run in project.runs() if run.kind != "import" or run.parameters.get("fixed_modifications")}
    sources = project.record(run_id).get("source_runs")
    result: dict[str, None] = {}
    for name in map(str, sources if isinstance(sources, list) else [""]):
        named = recorded_parameters(project, runs[name]).get("fixed_modifications") if name in runs else None
        if named is None:
            return None
        result.update(dict.fromkeys(named))
    return list(result)

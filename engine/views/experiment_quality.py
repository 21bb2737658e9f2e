"""Quality of the runs of an experiment: identifications, mass errors, missed cleavages, charges, intensity, retention drift and depth.

A summary of each finished run is stored in ``experiment/quality.parquet`` of the project with a digest of its tables, so that only new runs
are read again; ``times.parquet`` stores the retention times of their peptides. Both can be recomputed at any time.

The drift of a run is the median of a difference over its peptides: the retention time in this run minus the median retention time of the
peptide in all runs. Only peptides of at least two runs are used. Memory: about 50 bytes for each peptide of each run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.entry import find_result_table
from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.experiments.table import read_experiment
from proteoscope.engine.files import atomic_path, is_there, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import PEPTIDES, PROTEINS
from proteoscope.engine.project import Project, ResultRecord
from proteoscope.engine.project.paths import EXPERIMENT_SUMMARIES, inside
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["FDR", "QUALITY", "QUALITY_NOTES", "ProteinCounts", "experiment_quality", "protein_counts"]

FDR = 0.01
"""Maximum q-value of the counted PSMs, peptides and protein groups."""
_CHARGES = 4
"""This charge and all higher charges are counted together."""
_REMEDY = "Delete the folder “experiment” of the project; it is created again"
_SUMMARIZED = ("psms", "peptides", "proteins", "spectra")

QUALITY = Table(
    "quality",
    "Quality",
    (
        Column("run", "Run", "Name of the run", width=22),
        Column("sample", "Sample", "Name of the sample", width=16),
        Column("condition", "Condition", "Name of the condition", width=12),
        Column("spectra", "Spectra", "Number of spectra", "integer", 8, low=0),
        Column("psms", "PSMs", "Number of PSMs at an FDR of 1 % within the run", "integer", 8, low=0),
        Column("peptides", "Peptides", "Number of peptides at an FDR of 1 % within the run", "integer", 8, low=0),
        Column("proteins", "Protein groups", "Number of protein groups at an FDR of 1 % within the run", "integer", 8, low=0),
        Column("mass_error", "Mass error", "Median mass error of the PSMs", "number", 9, 2, unit="ppm", is_nullable=True),
        Column(
            "mass_error_low",
            "Lower quartile",
            "Lower quartile of the mass errors",
            "number",
            9,
            2,
            unit="ppm",
            is_nullable=True,
            is_shown=False,
        ),
        Column(
            "mass_error_high",
            "Upper quartile",
            "Upper quartile of the mass errors",
            "number",
            9,
            2,
            unit="ppm",
            is_nullable=True,
            is_shown=False,
        ),
        Column(
            "missed_cleavages",
            "Missed cleavages",
            "Fraction of the PSMs with missed cleavages",
            "percent",
            9,
            is_nullable=True,
            low=0,
            high=1,
        ),
        *(
            Column(
                f"charge_{z}",
                f"z = {z}{'+' * (z == _CHARGES)}",
                f"Number of PSMs of charge {z}{' or more' * (z == _CHARGES)}",
                "integer",
                7,
                low=0,
            )
            for z in range(1, _CHARGES + 1)
        ),
        Column("intensity", "Intensity", "Median sum of the intensities of a spectrum", "number", 11, 0, is_nullable=True, low=0),
        Column(
            "drift",
            "RT drift",
            "Median difference between the retention times of peptides and their medians over all runs",
            "number",
            9,
            1,
            unit="s",
            is_nullable=True,
        ),
        Column(
            "drift_spread",
            "Spread",
            "Median absolute deviation of the retention time differences from the drift",
            "number",
            8,
            1,
            unit="s",
            is_nullable=True,
            low=0,
        ),
        Column("shared", "Shared peptides", "Number of peptides with retention times in this run and in another run", "integer", 9, low=0),
    ),
)
"""Table of the finished runs in the order of the experiment."""
_STORED = Table(
    "quality",
    "Quality",
    (*QUALITY.columns, Column("digest", pattern="[0-9a-f]{64}"), Column("reference", pattern="[0-9a-f]{64}")),
)
"""Stored table, with the digest of the tables of each run, and the digest of all runs from which its drift was computed."""
_TIMES = Table(
    "times",
    "Times",
    (Column("run"), Column("peptide", kind="integer", type="uint64"), Column("time", kind="number", unit="s")),
)
_COUNTS = Table(
    "proteins",
    "Proteins",
    (
        Column("protein"),
        Column("values", kind="heat", is_nullable=True),
        Column("n_eligible", kind="integer", low=0),
        Column("reference", pattern="[0-9a-f]{64}"),
    ),
)
_SHIFT_COLUMNS = {"modified": "shift_kind", "library": "mass_difference"}
"""Column that distinguishes PSMs with the mass of their peptide from other PSMs, by kind of search."""
_UNSHIFTED_DA = 0.5
QUALITY_NOTES = {
    "modified": "PSMs with a mass shift are counted, but have no mass error.",
    "library": "PSMs whose mass differs from that of their library spectrum are counted, but have no mass error. Matches that are not "
    "peptides are not counted, and without a protein database there are no protein groups.",
}
"""Sentences about quantities that do not apply to a search, by kind of search; `identify` needs none."""
_PSM_COLUMNS = ("peptide", "retention_time", "charge", "mass_error_ppm", "missed_cleavages", "q_value", "rank", "is_decoy")


@dataclass(frozen=True)
class _Run:
    """Finished run of an experiment: its name, sample, condition, kind of search, registered tables and their digest."""

    name: str
    sample: str
    condition: str
    kind: str
    tables: Mapping[str, ResultRecord]

    @property
    def digest(self) -> str:
        return _digest(f"{name} {table.sha256}" for name, table in sorted(self.tables.items()))


def experiment_quality(project: Project, progress: Progress, *, stores: bool = True) -> pa.Table:
    """Return the table `QUALITY` of the finished runs of the experiment of a project, and store it unless `stores` is false.

    Raises
    ------
    InputError, StorageError
        If the project has no experiment, or a table of a run is missing or damaged.
    Cancelled
        If the user cancels.
    """
    runs = _finished_runs(project)
    names, reference = [run.name for run in runs], _reference(runs)
    stored = {row["run"]: row for row in _read(project, _STORED).to_pylist()}
    present = [run.name in stored and stored[run.name]["digest"] == run.digest for run in runs]
    is_new = not all(present) or any(stored[name]["reference"] != reference for name in names)
    if is_new:
        times = _read(project, _TIMES) if any(present) else _TIMES.schema().empty_table()
        rows, times = _summarize(
            project, runs, {name: stored[name] for name, is_present in zip(names, present, strict=True) if is_present}, times, progress
        )
        stored = {row["run"]: {**row, "reference": reference} for row in rows}
        if stores:
            _store(project, _TIMES, times)
    described = {run.name: {"sample": run.sample, "condition": run.condition} for run in runs}
    table = _STORED.arrow(_columns(_STORED, [{**stored[name], **described[name]} for name in names]))
    if stores and is_new:
        _store(project, _STORED, table)
    return table.select([column.name for column in QUALITY.columns])


def _summarize(
    project: Project, runs: Sequence[_Run], stored: Mapping[str, dict[str, Any]], times: pa.Table, progress: Progress
) -> tuple[list[dict[str, Any]], pa.Table]:
    """Return the summaries of the runs with drifts, and the retention times of their peptides.

    Only runs without a summary in `stored` are read; `times` contains the retention times of the others.
    """
    import duckdb  # slow to import: only summaries that are not stored need it

    progress.stage("Summarising the runs", len(runs))
    rows: list[dict[str, Any]] = []
    with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
        connection.execute("SET enable_external_access = false")
        connection.execute("CREATE TABLE times (run INTEGER, peptide UBIGINT, time DOUBLE)")
        connection.register(
            "runs",
            pa.table({"name": pa.array(list(stored), pa.string()), "position": [i for i, run in enumerate(runs) if run.name in stored]}),
        )
        connection.register("stored", times.set_column(0, "run", times["run"].cast(pa.string())))
        connection.execute("INSERT INTO times SELECT position, peptide, time FROM stored JOIN runs ON stored.run = runs.name")
        for position, run in enumerate(runs):
            if run.name in stored:
                rows.append(stored[run.name])
            else:
                row, accepted = _summarize_run(project, run)
                rows.append(row)
                connection.register("accepted", accepted)
                connection.execute(
                    f"INSERT INTO times SELECT {position}, hash(peptide), median(retention_time) FROM accepted "
                    "WHERE isfinite(retention_time) GROUP BY peptide"
                )
                connection.unregister("accepted")
            progress.advance()
        progress.stage("Comparing retention times")
        connection.execute(
            "CREATE TABLE differences AS WITH reference AS (SELECT peptide, median(time) AS middle FROM times GROUP BY peptide "
            "HAVING count(*) > 1) SELECT run, time - middle AS difference FROM times JOIN reference USING (peptide)"
        )
        drifts = connection.execute(
            "WITH drifts AS (SELECT run, median(difference) AS drift, count(*) AS shared FROM differences GROUP BY run) "
            "SELECT run, any_value(drift), median(abs(difference - drift)), any_value(shared) "
            "FROM differences JOIN drifts USING (run) GROUP BY run"
        ).fetchall()
        names = pa.array([run.name for run in runs], pa.string())
        times = connection.sql("SELECT * FROM times ORDER BY run, peptide").to_arrow_table()
    by_position = {position: values for position, *values in drifts}
    for position, row in enumerate(rows):
        row["drift"], row["drift_spread"], row["shared"] = by_position.get(position, (None, None, 0))
    dictionary = pa.DictionaryArray.from_arrays(times["run"].combine_chunks(), names)
    return rows, pa.table({"run": dictionary, "peptide": times["peptide"], "time": times["time"]})


def _summarize_run(project: Project, run: _Run) -> tuple[dict[str, Any], pa.Table]:
    """Return the summary of a run without its drift, and the peptides and retention times of its accepted PSMs."""
    accepted = _accepted(_table(project, run, "psms", [*_PSM_COLUMNS, *filter(None, [_SHIFT_COLUMNS.get(run.kind)])]))
    counts = {
        name: len(_accepted(_table(project, run, name, ("q_value", "is_decoy")))) if name in run.tables else 0
        for name in ("peptides", "proteins")
    }
    errors, charges = _numbers(_unshifted(accepted)["mass_error_ppm"]), np.minimum(_numbers(accepted["charge"]), _CHARGES)
    low, middle, high = np.percentile(errors, (25, 50, 75)).tolist() if len(errors) else (None, None, None)
    currents = np.empty(0)
    if "spectra" in run.tables:
        currents = _numbers(_table(project, run, "spectra", ("total_ion_current",), verify=False)["total_ion_current"])
    row = {
        "run": run.name,
        "digest": run.digest,
        "spectra": run.tables["spectra"].rows or 0 if "spectra" in run.tables else 0,
        "psms": len(accepted),
        **counts,
        "mass_error": middle,
        "mass_error_low": low,
        "mass_error_high": high,
        "missed_cleavages": float((_numbers(accepted["missed_cleavages"]) > 0).mean()) if len(accepted) else None,
        **{f"charge_{z}": int((charges == z).sum()) for z in range(1, _CHARGES + 1)},
        "intensity": float(np.median(currents)) if len(currents) else None,
    }
    return row, accepted.select(["peptide", "retention_time"])


@dataclass(frozen=True, eq=False)
class ProteinCounts:
    """Numbers of PSMs of proteins in the finished runs.

    Attributes
    ----------
    runs, conditions : tuple of str
        Names of the runs and their conditions, n each.
    proteins : tuple of str
        First accession of each protein group, k.
    log2 : ndarray of float64, shape (k, n)
        log2 of the number of PSMs of the group per thousand PSMs of the run; NaN if the run has no PSM of the group.
    n_eligible : int
        Number of protein groups from which the `k` most variable groups were selected.
    """

    runs: tuple[str, ...]
    conditions: tuple[str, ...]
    proteins: tuple[str, ...]
    log2: NDArray[np.float64]
    n_eligible: int


def protein_counts(project: Project, most: int, progress: Progress, *, stores: bool = True) -> ProteinCounts:
    """Return the PSM counts of the most variable protein groups, and store them unless `stores` is false.

    Only groups that occur in at least two runs, and in at least a quarter of the runs, are eligible. Of these, the groups with the largest
    standard deviations of the log2 counts are returned. Memory: 12 bytes for each protein group of each run.

    Parameters
    ----------
    most : int
        Maximum number of protein groups.

    Raises
    ------
    InputError, StorageError
        If the project has no experiment, or a table of a run is missing or damaged.
    """
    runs = [run for run in _finished_runs(project) if "proteins" in run.tables]
    reference = _digest([str(most), _reference(runs)])
    stored = _read(project, _COUNTS)
    if len(stored):
        values = stored["values"].combine_chunks()
        if (
            set(stored["reference"].to_pylist()) == {reference}
            and pa.compute.all(pa.compute.equal(pa.compute.list_value_length(values), len(runs))).as_py()
        ):
            log2 = values.flatten().to_numpy(zero_copy_only=False).reshape(len(stored), len(runs))
            return _counts(runs, stored["protein"].to_pylist(), log2, stored["n_eligible"][0].as_py())
    progress.stage("Counting the PSMs of proteins", len(runs))
    proteins = pa.array([], pa.string())
    rows: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.float32]] = []
    for run in runs:
        table = _accepted(_table(project, run, "proteins", ("group", "n_psms", "q_value", "is_decoy")))
        first = pa.compute.replace_substring_regex(table["group"].cast(pa.string()), ";.*", "").combine_chunks()
        new = pa.compute.unique(first.filter(pa.compute.invert(pa.compute.is_in(first, value_set=proteins))))
        proteins = pa.concat_arrays([proteins, new])
        rows.append(pa.compute.index_in(first, value_set=proteins).to_numpy(zero_copy_only=False))
        counts.append(_numbers(table["n_psms"]).astype(np.float32))
        progress.advance()
    matrix = np.full((len(proteins), len(runs)), np.nan, np.float32)
    for column, (at, numbers) in enumerate(zip(rows, counts, strict=True)):
        matrix[at, column] = np.log2(np.maximum(numbers, 1) * (1000 / max(1.0, float(numbers.sum()))))
    n_values = np.isfinite(matrix).sum(axis=1)
    eligible = np.flatnonzero(n_values >= max(2, len(runs) / 4))
    centred = matrix[eligible] - np.nansum(matrix[eligible], axis=1, keepdims=True) / n_values[eligible, None]
    spread = np.nansum(centred.astype(np.float64) ** 2, axis=1) / np.maximum(n_values[eligible] - 1, 1)
    chosen = np.sort(eligible[np.argsort(-spread, kind="stable")[:most]])
    names, log2 = proteins.take(pa.array(chosen)).to_pylist(), matrix[chosen].astype(np.float64)
    if stores and len(chosen):
        lists = [[value if value == value else None for value in line] for line in log2.tolist()]
        columns = {
            "protein": names,
            "values": lists,
            "n_eligible": [len(eligible)] * len(chosen),
            "reference": [reference] * len(chosen),
        }
        _store(project, _COUNTS, _COUNTS.arrow(columns))
    return _counts(runs, names, log2, len(eligible))


def _counts(runs: Sequence[_Run], proteins: Sequence[str], log2: NDArray[np.float64], n_eligible: int) -> ProteinCounts:
    return ProteinCounts(tuple(run.name for run in runs), tuple(run.condition for run in runs), tuple(proteins), log2, n_eligible)


def _finished_runs(project: Project) -> list[_Run]:
    """Return the finished runs of the experiment that have PSMs, in the order of its table."""
    table = read_experiment(project)
    rows = {row.run: row for row in reversed(table)}
    kinds = {run.id: run.kind for run in project.runs() if run.status == "done" and run.id in rows}
    tables: dict[str, dict[str, ResultRecord]] = {name: {} for name in kinds}
    for result in project.results():
        if result.run in tables and result.name in _SUMMARIZED:
            tables[result.run][result.name] = result
    order = list(dict.fromkeys(row.run for row in table))
    return [
        _Run(name, rows[name].sample, rows[name].condition, kinds[name], tables[name])
        for name in order
        if name in kinds and "psms" in tables[name]
    ]


def _table(project: Project, run: _Run, name: str, columns: Sequence[str], *, verify: bool = True) -> pa.Table:
    """Validate a table of a run and return the given columns; optional columns that the table does not have are null."""
    described = {"spectra": SPECTRA, "peptides": PEPTIDES, "proteins": PROTEINS}.get(name) or find_result_table(run.kind, name)
    with TableFile(project.table(name, run.name, verify=verify), described, columns) as file:
        return file.read(columns)


def _accepted(table: pa.Table) -> pa.Table:
    """Return the targets of rank 1 with a q-value up to `FDR`; if no row has a q-value (no decoys), return all targets of rank 1."""
    compute = pa.compute
    is_wanted = compute.invert(table["is_decoy"])
    if "rank" in table.column_names:
        is_wanted = compute.and_(is_wanted, compute.equal(table["rank"], 1))
    q_values = _numbers(table["q_value"], has_missing=True)
    if np.isfinite(q_values).any():
        is_wanted = compute.and_(is_wanted, pa.array(q_values <= FDR))
    return table.filter(is_wanted)


def _unshifted(psms: pa.Table) -> pa.Table:
    """Return the PSMs of spectra that have the mass of their peptide."""
    if "shift_kind" in psms.column_names:
        return psms.filter(pa.compute.equal(psms["shift_kind"].cast(pa.string()), "none"))
    if "mass_difference" in psms.column_names:
        return psms.filter(pa.compute.less(pa.compute.abs(psms["mass_difference"]), _UNSHIFTED_DA))
    return psms


def _numbers(column: pa.ChunkedArray, *, has_missing: bool = False) -> NDArray[np.float64]:
    """Return the numbers of a column; missing values are omitted, or are NaN if `has_missing`."""
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    return values if has_missing else values[np.isfinite(values)]


def _columns(table: Table, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in table.by_name}


def _digest(parts: Iterator[str] | Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _reference(runs: Sequence[_Run]) -> str:
    return _digest([f"{run.name} {run.digest}" for run in runs])


def _path(project: Project, table: Table) -> Path:
    return inside(project.folder, EXPERIMENT_SUMMARIES, f"{table.name}.parquet")


def _read(project: Project, table: Table) -> pa.Table:
    """Return a stored table, or an empty table if it is missing or invalid, since it can be computed again."""
    path = _path(project, table)
    if is_there(path):
        with suppress(InputError), TableFile(path, table, remedy=_REMEDY) as file:
            return file.read()
    return table.schema().empty_table()


def _store(project: Project, table: Table, rows: pa.Table) -> None:
    """Store a table if the project can be written."""
    path = _path(project, table)
    if project.read_only:
        return
    with suppress(ProteoscopeError), storage_errors(path), atomic_path(path) as temporary:  # the table can be computed again
        pa.parquet.write_table(rows, temporary, compression="zstd", compression_level=1)

"""Report of an experiment: error rates of PSMs within each run, and of peptides and protein groups over all runs.

The report is a run of the project with the tables of `proteoscope.engine.experiments.report_tables`. Runs are read one after the other in
the order of their names. Only the matches of one run, and a record for each distinct peptidoform, are in memory. The best matches of each
run are stored in the report, so that the next report reads only runs that were added since; if a run was changed or removed, it reads all
runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start
from proteoscope.engine.chemistry.masses import WATER_MASS
from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.experiments.competition import (
    MATCH,
    SCALE,
    Rates,
    best_matches,
    compete,
    match_keys,
    merge_matches,
    pair_numbers,
    posterior_errors,
    score_of,
)
from proteoscope.engine.experiments.peptidoforms import (
    FORM_COLUMNS,
    FormProteins,
    boolean_values,
    class_numbers,
    float_values,
    form_families,
    keyed_forms,
    merge_forms,
)
from proteoscope.engine.experiments.report_tables import EXPERIMENT_MATCHES, EXPERIMENT_PEPTIDES, EXPERIMENT_PROTEINS, EXPERIMENT_RUNS
from proteoscope.engine.experiments.run_matches import RunMatches, common_search
from proteoscope.engine.experiments.table import ExperimentRow
from proteoscope.engine.files import storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.class_rates import class_advantages
from proteoscope.engine.matches.columns import PSMS
from proteoscope.engine.matches.tables import AcceptanceCounts, PeptideRows, protein_table
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import finite_or_null, in_one, or_null
from proteoscope.engine.results.counts import Count, counted
from proteoscope.engine.results.reader import read_stored, stored_table
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import best_by_group
from proteoscope.engine.version import VERSION

__all__ = ["REPORT", "ExperimentReport", "report_experiment"]

REPORT = "experiment-report"
"""Kind and name of the run with the report."""
_NO_PROTEINS = "No protein groups: not all peptides of the library have a protein; search with --database"

_FORM = 2  # version of the tables; reports of other versions are not reused
_FEWEST_MERGED = 1 << 17  # rows that are collected before they are merged
_BASE_BYTES, _FORM_BYTES, _PSM_BYTES = 2e8, 600.0, 2000.0
"""Upper limits of memory: for the program, per PSM of all runs, and per PSM of the run that is being read (benchmarks.experiments)."""
_NAMED = 5
_DAMAGED = f"Delete run '{REPORT}' (proteoscope runs PROJECT --delete {REPORT}) and report again"


@dataclass(frozen=True)
class ExperimentReport:
    """Counts of a report.

    Attributes
    ----------
    run : str
        Name of the run with the tables.
    n_runs, n_reused : int
        Number of runs, and number of runs whose matches an earlier report had stored.
    left_out : tuple of str
        Runs of the experiment that are not finished.
    n_psms : int
        Number of target PSMs that are accepted within their runs.
    fdr : float
        False discovery rate of all levels.
    peptides : AcceptanceCounts
        Accepted peptidoforms of the experiment.
    proteins : AcceptanceCounts or None
        Accepted protein groups; None if peptides have no proteins, as in some libraries.
    """

    run: str
    n_runs: int
    n_reused: int
    left_out: tuple[str, ...]
    n_psms: int
    fdr: float
    peptides: AcceptanceCounts
    proteins: AcceptanceCounts | None

    def lines(self) -> list[str]:
        """Return the counts as lines of text."""
        rate = f"at {100 * self.fdr:g} % FDR"
        levels = ((self.peptides, "peptide", "peptides"), (self.proteins, "protein group", "protein groups"))
        counts = [
            Count.from_acceptance(count.targets, noun, nouns, count.certainty(), self.fdr)
            for count, noun, nouns in levels
            if count is not None
        ]
        return [
            f"{counted(self.n_psms, 'PSM')} {rate} within each of {counted(self.n_runs, 'run')}",
            f"Over the experiment, {rate}:",
            *(count.line() for count in counts),
            *((_NO_PROTEINS,) if self.proteins is None else ()),
        ]

    def record(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {
            "run": self.run,
            "runs": self.n_runs,
            "reused": self.n_reused,
            "left_out": list(self.left_out),
            "psms": self.n_psms,
            "fdr": self.fdr,
            "peptides": self.peptides.certainty(),
            "proteins": None if self.proteins is None else self.proteins.certainty(),
        }


def report_experiment(
    project: Project, rows: Sequence[ExperimentRow], progress: Progress, *, with_text: bool = False, memory_limit: int = 0
) -> ExperimentReport:
    """Estimate the error rates of an experiment, and store its tables in the run `REPORT` of the project.

    The tables depend on the set of finished runs, not on their order, on earlier reports or on the number of threads.

    Parameters
    ----------
    project : Project
        Project of the experiment.
    rows : sequence of ExperimentRow
        Rows of the experiment. Runs that are not finished are left out with a warning.
    progress : Progress
        Progress, counted in runs.
    with_text : bool
        True to export the tables of peptides and protein groups as text.
    memory_limit : int
        Maximum memory in MB; 0 for no limit. If the limit is low, the records of fewer runs are collected before they are merged.

    Returns
    -------
    ExperimentReport

    Raises
    ------
    InputError
        If no run is finished, a run has no decoys, a table is invalid, or a run of another kind has the name `REPORT`.
    ParameterError
        If the runs have different parameters or databases, or the memory limit is too low.
    StorageError
        If writing fails.
    """
    runs = {run.id: run for run in project.runs()}
    names = sorted({row.run for row in rows})
    finished = [name for name in names if name in runs and runs[name].status == "done"]
    if REPORT in runs and runs[REPORT].kind != REPORT:
        raise InputError(project.folder, f"has a run '{REPORT}' of {runs[REPORT].kind}", remedy="Search its file under another name")
    if not finished:
        raise InputError(project.folder, "has no finished run of the experiment", remedy="Search its runs: proteoscope experiment run")
    left_out = tuple(name for name in names if name not in finished)
    if left_out:
        more = f" and {len(left_out) - _NAMED:,} more" if len(left_out) > _NAMED else ""
        progress.message(f"Not searched and left out: {', '.join(left_out[:_NAMED])}{more}", "warning")
    search = common_search(project, [runs[name] for name in finished])
    psms = {result.run: result for result in project.results() if result.name == PSMS.name}
    digests = {name: result.sha256 for name, result in psms.items()}
    if memory_limit:
        _check_memory(project, [psms[name].rows or 0 for name in finished if name in psms], memory_limit)
    described = {"form": _FORM, "search": search.kind, "fdr": search.parameters.fdr}
    previous = _previous_report(project, runs.get(REPORT), described, search, {name: digests.get(name, "") for name in finished})
    with project.run(REPORT, described, version=VERSION, name=REPORT, overwrite=True, progress=progress) as run:
        result = _Report(project, finished, digests, search, previous, progress).write(run, with_text=with_text)
        record = ExperimentReport(REPORT, len(finished), 0, left_out, *result).record()
        del record["reused"]  # results do not depend on what was stored
        exported = [EXPERIMENT_PEPTIDES.name, *([] if result.proteins is None else [EXPERIMENT_PROTEINS.name])]
        run.write_json("run", {**record, "exports": [f"{name}.tsv" for name in exported] if with_text else []})
        groups = "" if result.proteins is None else f", {counted(result.proteins.targets, 'protein group')}"
        run.message = (
            f"{counted(result.peptides.targets, 'peptide')}{groups} at {search.parameters.fdr:.3g} FDR over {counted(len(finished), 'run')}"
        )
    return ExperimentReport(REPORT, len(finished), len(previous.n_rows) if previous else 0, left_out, *result)


def _check_memory(project: Project, n_rows: Sequence[int], limit: int) -> None:
    """Raise ParameterError if the report of runs with these numbers of PSMs may need more memory than the limit (MB)."""
    needed = (_BASE_BYTES + _FORM_BYTES * sum(n_rows) + _PSM_BYTES * max(n_rows, default=0)) / 1e6
    if needed > limit:
        raise ParameterError(
            f"{project.folder}: a memory limit of {limit:,} MB is too low; the report of {counted(len(n_rows), 'run')} with "
            f"{counted(sum(n_rows), 'PSM')} may need {needed:,.0f} MB. Raise --memory-limit"
        )


class _Counts(NamedTuple):
    n_psms: int
    fdr: float
    peptides: AcceptanceCounts
    proteins: AcceptanceCounts | None


class _Previous(NamedTuple):
    """Earlier report that the new report extends; `n_rows` maps each run to its number of rows in the table of matches."""

    project: Project
    classes: tuple[str, ...]
    n_rows: dict[str, int]

    def forms(self) -> pa.Table:
        """Return the peptidoforms of the report."""
        return keyed_forms(read_stored(self.project, REPORT, EXPERIMENT_PEPTIDES, FORM_COLUMNS, remedy=_DAMAGED))

    def matches(self, form: NDArray[np.uint64]) -> Iterator[NDArray[np.void]]:
        """Yield the best matches of each run of the earlier report; `form` contains the keys of its peptidoforms."""
        columns = ("peptide", "match_class", "best_psm", "q_value", "posterior_error_probability", "n_psms")
        with stored_table(self.project, REPORT, EXPERIMENT_MATCHES, remedy=_DAMAGED) as source:
            batches, waiting = source.batches(columns), pa.schema([]).empty_table()
            for n in self.n_rows.values():
                parts = [waiting]
                while sum(map(len, parts)) < n:
                    parts.append(next(batches))
                table = pa.concat_tables([part for part in parts if len(part)]) if n else waiting
                waiting = table.slice(n) if n else waiting
                yield self._rows(table.slice(0, n), form) if n else np.zeros(0, MATCH)

    def _rows(self, table: pa.Table, form: NDArray[np.uint64]) -> NDArray[np.void]:
        rows = np.zeros(len(table), MATCH)
        rows["form"] = form[table["peptide"].to_numpy()]
        rows["match_class"] = class_numbers(table["match_class"], self.classes)
        rows["key"] = match_keys(rows["form"], rows["match_class"])
        rows["psm"], rows["n_psms"] = table["best_psm"].to_numpy(), table["n_psms"].to_numpy()
        rows["q_value"], rows["posterior_error"] = (float_values(table[name]) for name in ("q_value", "posterior_error_probability"))
        rows = rows[np.lexsort((rows["match_class"], rows["form"]))]
        accepted = np.flatnonzero(rows["n_psms"])
        rows["n_runs"][accepted] = is_group_start(rows["form"][accepted]) if len(accepted) else False
        return rows


def _previous_report(
    project: Project, record: RunRecord | None, described: dict[str, Any], search: RunMatches, digests: dict[str, str]
) -> _Previous | None:
    """Return the earlier report, or None if it cannot be extended: it is damaged or has other settings, or a run changed or is missing."""
    if record is None or record.status != "done" or record.version != VERSION or record.parameters != described:
        return None
    try:
        table = read_stored(project, REPORT, EXPERIMENT_RUNS, ("run", "psms_sha256", "n_rows"))
        with stored_table(project, REPORT, EXPERIMENT_MATCHES) as source:
            n_rows = source.n_rows
        with stored_table(project, REPORT, EXPERIMENT_PEPTIDES):
            pass
    except (InputError, StorageError):  # damaged: all runs are read again
        return None
    names, counts = table["run"].to_pylist(), table["n_rows"].to_pylist()
    is_same = all(digests.get(name) == digest for name, digest in zip(names, table["psms_sha256"].to_pylist(), strict=True))
    if not is_same or names != sorted(set(names)) or sum(counts) != n_rows:
        return None
    return _Previous(project, search.classes, dict(zip(names, counts, strict=True)))


class _Peptides(NamedTuple):
    """Table of peptides as columns, and table of protein groups (None if the peptides have no proteins)."""

    columns: dict[str, Any]
    groups: pa.Table | None


class _Report:
    """Computation of a report, run by run."""

    def __init__(
        self,
        project: Project,
        names: Sequence[str],
        digests: dict[str, str],
        search: RunMatches,
        previous: _Previous | None,
        progress: Progress,
    ) -> None:
        self._project, self._names, self._digests, self._search = project, names, digests, search
        self._parameters, self._decoy_ratio = search.parameters, search.decoy_ratio
        self._previous, self._progress = previous, progress
        self._rows_of_run: list[int] = []
        self._n_unrated = 0

    def write(self, run: Run, *, with_text: bool) -> _Counts:
        """Write the tables of the report as results of a run, and return the counts."""
        fdr = self._parameters.fdr
        with storage_errors(run.folder, only_disk=True), tempfile.TemporaryFile(dir=run.folder) as stored:
            matches, forms = self._read_runs(stored)
            row_of_form = np.searchsorted(forms["form"].to_numpy(), matches["form"])
            proteins = FormProteins.from_forms(forms, *self._search.decoy_tags)
            rates = self._rates(matches, forms, row_of_form, proteins)
            peptides, row_of_match, is_accepted = self._peptides(matches, forms, row_of_form, proteins, rates)
            self._progress.stage("Writing the report", len(self._names))
            tables = {EXPERIMENT_PEPTIDES.name: EXPERIMENT_PEPTIDES.arrow(peptides.columns)}
            if peptides.groups is not None:
                tables[EXPERIMENT_PROTEINS.name] = peptides.groups
            for name, table in tables.items():
                run.write_table(name, table)
            n_psms = self._write_matches(run, stored, matches["key"], row_of_match, is_accepted, tables[EXPERIMENT_PEPTIDES.name])
        levels: dict[str, AcceptanceCounts] = {}
        for described in (EXPERIMENT_PEPTIDES, EXPERIMENT_PROTEINS):
            name, table = described.name, tables.get(described.name)
            if table is None:
                self._progress.message(_NO_PROTEINS, "warning")
                continue
            if with_text:
                targets = table.filter(pa.compute.invert(table["is_decoy"]))
                write_separated(run.folder / EXPORTS / f"{name}.tsv", targets, described.saved_columns, self._progress, DIGITS)
            levels[name] = AcceptanceCounts.from_q_values(
                float_values(table["q_value"]), boolean_values(table["is_decoy"]), fdr, self._decoy_ratio
            )
        return _Counts(n_psms, fdr, levels[EXPERIMENT_PEPTIDES.name], levels.get(EXPERIMENT_PROTEINS.name))

    def _read_runs(self, stored: IO[bytes]) -> tuple[NDArray[np.void], pa.Table]:
        """Return the best match of each peptidoform in each class, and the peptidoforms; write the best matches of each run to `stored`."""
        previous, place = self._previous, self._project.folder
        reused, old = (previous.n_rows, previous.forms()) if previous else ({}, None)
        earlier = previous.matches(old["form"].to_numpy()) if previous and old is not None else iter(())
        matches, forms = [np.zeros(0, MATCH)], [] if old is None else [old]
        self._progress.stage("Reading runs", len(self._names))
        for number, name in enumerate(self._names):
            if name in reused:
                rows = next(earlier)
            else:
                rows, of_run = self._read_run(name)
                forms.append(of_run)
            rows["run"] = number
            rows.tofile(stored)
            matches.append(rows)
            self._rows_of_run.append(len(rows))
            if sum(map(len, matches[1:])) > max(_FEWEST_MERGED, len(matches[0])):
                matches = [merge_matches(np.concatenate(matches))]
            if sum(map(len, forms[1:])) > max(_FEWEST_MERGED, len(forms[0]) if forms else 0):
                forms = [merge_forms(forms, place)]
            self._progress.advance(1)
        if self._n_unrated:
            text = counted(self._n_unrated, "match", "matches")
            self._progress.message(f"{text} of library entries without decoys left out, which have no error rate", "warning")
        return merge_matches(np.concatenate(matches)), merge_forms(forms, place)

    def _read_run(self, name: str) -> tuple[NDArray[np.void], pa.Table]:
        """Return the best matches of a run, and their peptidoforms."""
        table, n_unrated = self._search.read(self._project, name)
        self._n_unrated += n_unrated
        forms, score, q_value = keyed_forms(table), float_values(table["score"]), float_values(table["q_value"])
        is_decoy = boolean_values(table["is_decoy"])
        rows = np.zeros(len(table), MATCH)
        rows["form"], rows["match_class"] = forms["form"].to_numpy(), table["class"].to_numpy()
        rows["key"], rows["psm"], rows["q_value"] = match_keys(rows["form"], rows["match_class"]), table["psm_id"].to_numpy(), q_value
        family, _ = form_families(forms, self._search.enzyme)
        rows["posterior_error"] = posterior_errors(score, is_decoy, family, self._decoy_ratio)
        path = self._project.table(PSMS.name, name, verify=False)
        return best_matches(rows, score, q_value <= self._parameters.fdr), merge_forms([forms], path)

    def _rates(self, matches: NDArray[np.void], forms: pa.Table, row_of_form: NDArray[np.int64], proteins: FormProteins) -> Rates:
        """Return the error rates of each peptidoform in each class."""
        family, residue_mass = form_families(forms, self._search.enzyme)
        added = forms["calculated_mass"].to_numpy() - residue_mass - WATER_MASS
        added = np.clip(np.nan_to_num(added), -1e9, 1e9)
        classes = matches["match_class"].astype(np.int64)
        score, is_decoy = score_of(matches["posterior_error"]), boolean_values(forms["is_decoy"])[row_of_form]
        protein = proteins.first[row_of_form] if self._search.pairs_by_protein else np.zeros(len(classes), np.int64)
        return compete(
            score,
            is_decoy,
            classes,
            pair_numbers(family[row_of_form], added[row_of_form], classes, protein),
            family[row_of_form],
            plus_one=self._parameters.plus_one,
            decoy_ratio=self._decoy_ratio,
            advantages=class_advantages(score, is_decoy, classes, len(self._search.classes)) if self._search.rates_by_own_decoys else None,
        )

    def _peptides(
        self, matches: NDArray[np.void], forms: pa.Table, row_of_form: NDArray[np.int64], proteins: FormProteins, rates: Rates
    ) -> tuple[_Peptides, NDArray[np.int64], NDArray[np.bool_]]:
        """Return the peptides and protein groups; for each match, the row of its peptide; and True for each accepted target match.

        The table has one row per peptidoform: its match in the class with the lowest q-value.
        """
        n = len(forms)
        best = best_by_group(row_of_form, np.where(np.isnan(rates.q_value), -2.0, -rates.q_value))
        score, q_value, error = score_of(matches["posterior_error"][best]), rates.q_value[best], rates.posterior_error[best]
        order = np.lexsort((forms["form"].to_numpy(), -score))
        row = np.empty(n, np.int64)
        row[order] = np.arange(n)
        is_decoy = boolean_values(forms["is_decoy"])
        counts = {name: np.bincount(row_of_form, matches[name], n).astype(np.int64) for name in ("n_psms", "n_runs")}
        rows = PeptideRows(
            np.arange(n),
            forms["sequence"].to_pylist(),
            counts["n_psms"],
            score,
            is_decoy,
            ~(rates.loses[best] | np.isnan(q_value)),
            q_value,
            error,
        )
        has_proteins = self._search.has_proteins(proteins.accession)
        group_table, group = self._groups(rows, in_one(forms["sequence"]), proteins) if has_proteins else (None, np.full(n, -1, np.int64))
        names = pa.array(self._search.classes, pa.string())
        columns = {
            **{name: forms[name] for name in ("peptide", "sequence", "proteins", "calculated_mass", "is_decoy")},
            **counts,
            "best_score": score,
            "q_value": finite_or_null(q_value),
            "posterior_error_probability": finite_or_null(error),
            "match_class": names.take(pa.array(matches["match_class"][best])),
            "best_run": pa.array(self._names, pa.string()).take(pa.array(matches["run"][best])),
            "best_psm": matches["psm"][best],
            "protein_group": pa.array(group, mask=group < 0),
        }
        ordered = pa.table(columns).take(pa.array(order))
        is_accepted = (rates.q_value <= self._parameters.fdr) & ~is_decoy[row_of_form]
        return _Peptides({name: ordered[name] for name in columns}, group_table), row[row_of_form], is_accepted

    def _groups(self, rows: PeptideRows, sequences: pa.Array, proteins: FormProteins) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the table of protein groups, and for each peptide the row of its group; -1 for peptides that are not accepted."""
        settings, n = self._parameters, len(sequences)
        groups, evidence = rows.group_proteins(
            proteins.positions(), proteins.is_decoy, proteins.partner, settings, self._decoy_ratio, SCALE
        )
        group_error, competing = np.ones(len(groups)), ~groups.is_beaten
        if competing.any():
            group_error[competing] = posterior_error_probabilities(groups.score[competing], groups.is_decoy[competing], self._decoy_ratio)
        missing = {name: [None] * len(groups) for name in ("description", "coverage")}
        described = {**missing, "length": np.zeros(len(groups), np.int64), "sequence": [""] * len(groups)}
        members = proteins.accession.take(pa.array(groups.members))
        group_table = protein_table(groups, members, described, group_error).select(list(EXPERIMENT_PROTEINS.by_name))
        # All peptidoforms of a sequence are in the group of the peptidoform that was used.
        sequence = np.asarray(sequences.dictionary_encode().indices) * 2 + rows.is_decoy
        group_of_sequence = np.full(2 * n, -1, np.int64)
        group_of_sequence[sequence[evidence]] = groups.razor_group
        return group_table, np.where(rows.q_value <= settings.fdr, group_of_sequence[sequence], -1)

    def _write_matches(
        self,
        run: Run,
        stored: IO[bytes],
        keys: NDArray[np.uint64],
        row_of_match: NDArray[np.int64],
        is_accepted: NDArray[np.bool_],
        peptides: pa.Table,
    ) -> int:
        """Write the best matches of each run and the table of runs, and return the number of target PSMs that the runs accept."""
        names = pa.array(self._search.classes, pa.string())
        is_target = ~boolean_values(peptides["is_decoy"])
        counts = []
        stored.seek(0)
        with run.table_writer(EXPERIMENT_MATCHES.name, EXPERIMENT_MATCHES.schema()) as writer:
            for name, n in zip(self._names, self._rows_of_run, strict=True):
                rows = np.frombuffer(stored.read(n * MATCH.itemsize), MATCH)
                at = np.searchsorted(keys, rows["key"])
                order = np.lexsort((rows["match_class"], row_of_match[at]))
                rows, at = rows[order], at[order]
                peptide = row_of_match[at]
                columns = {
                    "run": pa.repeat(name, n),
                    "peptide": peptide,
                    "match_class": names.take(pa.array(rows["match_class"])),
                    "best_psm": rows["psm"],
                    "q_value": or_null(rows["q_value"]),
                    "posterior_error_probability": rows["posterior_error"],
                    "n_psms": rows["n_psms"],
                    "is_accepted_in_experiment": is_accepted[at],
                }
                writer.write(EXPERIMENT_MATCHES.arrow(columns))
                in_run = is_target[peptide] & (rows["n_psms"] > 0)
                n_peptides, n_accepted = (len(np.unique(peptide[chosen])) for chosen in (in_run, in_run & is_accepted[at]))
                counts.append((n, int(rows["n_psms"][in_run].sum()), n_peptides, n_accepted))
                self._progress.advance(1)
        of_runs = dict(zip(("n_rows", "n_psms", "n_peptides", "n_accepted_peptides"), zip(*counts, strict=True), strict=True))
        digests = [self._digests[name] for name in self._names]
        run.write_table(EXPERIMENT_RUNS.name, EXPERIMENT_RUNS.arrow({"run": self._names, "psms_sha256": digests, **of_runs}))
        return sum(of_runs["n_psms"])

"""Matches of the runs of an experiment, as columns common to all searches, so that their competition does not depend on the search.

A search may divide its matches into classes with separate error rates: identifications by `match_class`, open modification searches by the
kind of the mass shift, open library searches by whether the masses are the same. The first class is the main one.

Mass shifts that a search measures differ slightly between runs. Shifts without a name are therefore truncated to hundredths of a dalton, so
that a peptide with the same shift at the same site is one peptidoform in all runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.enzymes import Enzyme, enzyme
from proteoscope.engine.entry import find_result_table
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.experiments.peptidoforms import class_numbers, float_values
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import SHIFT_COLUMNS
from proteoscope.engine.matches.match_classes import class_names
from proteoscope.engine.matches.parameters import MEMORY_PARAMETERS
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.results.arrow import in_one
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import stored_table
from proteoscope.engine.searches import EXPERIMENT_KINDS, search_of_kind

__all__ = ["CLASSES_OF_MASSES", "CLASSES_OF_SHIFTS", "RunMatches", "common_search"]

CLASSES_OF_SHIFTS = tuple(next(column for column in SHIFT_COLUMNS if column.name == "shift_kind").pattern.split("|"))
"""Classes of an open modification search."""
CLASSES_OF_MASSES = ("same", "shifted")
"""Classes of an open library search: the masses of spectrum and library spectrum are the same, or not."""

_NAMELESS = ("unknown", "DECOY_unknown")
"""Proteins of library peptides without a protein."""
_NEEDED = ("peptide", "sequence", "proteins", "calculated_mass", "score", "q_value", "rank", "is_decoy", "psm_id")
_OF_SEARCH = {
    "identify": ("match_class",),
    "modified": ("shift_kind", "modification_names", "modification_masses"),
    "library": ("mass_difference", "observed_mass", "modification_names", "modification_masses"),
}
_UNNAMED = r"([+-]\d+)(\.\d{1,2})?\d*"
_SAME_MASS_SLACK = 1.01  # tolerances of m/z and of mass differ by the mass of the protons
_REMEDY = "Search this run again"
_HIGHEST_SCORE = 1e9
_NAMED = 5


class RunMatches(NamedTuple):
    """Settings for the competition of the matches of all runs of an experiment; the method `read` reads the matches of a run.

    Attributes
    ----------
    kind : str
        Kind of the search.
    parameters
        Common parameters of the runs.
    classes : tuple of str
        Names of the classes of matches.
    decoy_ratio : float
        Decoy candidates per target candidate.
    """

    kind: str
    parameters: Any
    classes: tuple[str, ...]
    decoy_ratio: float

    @property
    def enzyme(self) -> Enzyme:
        """Cleavage agent."""
        return enzyme(self.parameters.enzyme)

    @property
    def decoy_tags(self) -> tuple[str, str]:
        """Prefix and suffix of the accessions of decoys."""
        return ("DECOY_", "") if self.kind == "library" else (self.parameters.decoy_prefix, self.parameters.decoy_suffix)

    @property
    def pairs_by_protein(self) -> bool:
        """True if decoy peptides come from decoy proteins; False for libraries, whose decoys are made from entries."""
        return self.kind != "library"

    @property
    def rates_by_own_decoys(self) -> bool:
        """True if the error rate of each class is estimated from the decoys of this class only, as in the searches of mass shifts."""
        return self.kind != "identify" and len(self.classes) > 1

    @property
    def table(self) -> Table:
        """Description of the table of PSMs."""
        return find_result_table(self.kind, "psms")

    def has_proteins(self, accessions: pa.Array) -> bool:
        """Return True if all peptides have a protein; libraries need not name proteins."""
        return not pa.compute.any(pa.compute.is_in(accessions, value_set=pa.array(_NAMELESS))).as_py()

    def read(self, project: Project, run: str) -> tuple[pa.Table, int]:
        """Return the best match of each spectrum of a run, with a column ``class`` (int64), and the number of matches without error rates.

        Raises
        ------
        InputError
            If the table is invalid.
        StorageError
            If the table has changed since the run.
        """
        names = (*_NEEDED, *_OF_SEARCH[self.kind])
        with stored_table(project, run, self.table, names, remedy=_REMEDY) as source:
            table = source.read(names)
            table = table.filter(pa.compute.equal(table["rank"], 1)).combine_chunks()
            if not (np.abs(float_values(table["score"])) <= _HIGHEST_SCORE).all():
                raise source.damaged(f"contains a value that is not a number up to {_HIGHEST_SCORE:g}", "score")
        table = table.append_column("class", pa.array(self._class_of_rows(table)))
        if self.kind == "identify":
            return table, 0
        table, n = _with_cut_shifts(table), len(table)
        # Library entries without decoys have no rates, so that they cannot compete.
        table = table.filter(pa.compute.is_valid(table["q_value"])) if self.kind == "library" else table
        return table, n - len(table)

    def _class_of_rows(self, table: pa.Table) -> NDArray[np.int64]:
        if self.kind == "library":
            if len(self.classes) == 1:
                return np.zeros(len(table), np.int64)
            width = self.parameters.nearest_tolerance.width(float_values(table["observed_mass"]))
            is_shifted: NDArray[np.bool_] = np.abs(float_values(table["mass_difference"])) > _SAME_MASS_SLACK * width
            return is_shifted.astype(np.int64)
        return class_numbers(table[_OF_SEARCH[self.kind][0]], self.classes)


def _with_cut_shifts(table: pa.Table) -> pa.Table:
    """Return the table with the masses of unnamed modifications truncated to hundredths of a dalton, in peptides and in mass columns."""
    texts = pa.compute.replace_substring_regex(in_one(table["peptide"]).cast(pa.string()), rf"\[{_UNNAMED}\]", r"[\1\2]")
    for pattern, text in ((r"(\.\d)0\]", r"\1]"), (r"\.0\]", "]")):
        texts = pa.compute.replace_substring_regex(texts, pattern, text)
    lists = in_one(table["modification_names"])
    names, masses = lists.flatten().cast(pa.string()), float_values(pa.chunked_array([in_one(table["modification_masses"]).flatten()]))
    is_unnamed = pa.compute.match_substring_regex(names, f"^{_UNNAMED}$").to_numpy(zero_copy_only=False)
    cut = pa.compute.replace_substring_regex(names.filter(pa.array(is_unnamed)), f"^{_UNNAMED}$", r"\1\2")
    row = np.repeat(np.arange(len(table)), pa.compute.list_value_length(lists).to_numpy(zero_copy_only=False))[is_unnamed]
    change = np.bincount(row, cut.cast(pa.float64()).to_numpy(zero_copy_only=False) - masses[is_unnamed], len(table))
    changed = {"peptide": texts, "calculated_mass": pa.array(float_values(table["calculated_mass"]) + change)}
    for name, column in changed.items():
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def common_search(project: Project, runs: Sequence[RunRecord]) -> RunMatches:
    """Return the settings of the matches of all runs, after checking that the same search produced the runs.

    Raises
    ------
    ParameterError
        If the runs differ in search, parameters or databases; the message names runs and differences.
    InputError
        If the runs have no decoys.
    """
    first, kind = runs[0], runs[0].kind
    databases = [file.sha256 for file in project.inputs(first.id) if file.kind != "spectra"]
    for run in runs:
        if run.kind not in EXPERIMENT_KINDS:
            raise ParameterError(f"run '{run.id}' is a run of {run.kind}; experiments of {', '.join(EXPERIMENT_KINDS)} have error rates")
        fields = sorted({*first.parameters, *run.parameters} - set(MEMORY_PARAMETERS))
        differences = [name for name in fields if first.parameters.get(name) != run.parameters.get(name)]
        if run.kind != kind:
            differences = [f"the search ({kind}, {run.kind})"]
        elif [file.sha256 for file in project.inputs(run.id) if file.kind != "spectra"] != databases:
            differences.append("databases")
        if differences:
            raise ParameterError(
                f"runs '{first.id}' and '{run.id}' differ in {', '.join(differences[:_NAMED])}. Search all runs in the same way, or "
                "remove one: proteoscope experiment remove"
            )
    search, record = search_of_kind(kind), project.record(first.id)
    parameters = cast("Any", search.model.checked(search.recorded_parameters(project, first)))
    if parameters.decoys == "none" or record.get("has_decoys") is False:
        raise InputError(project.folder, "has runs without decoys, which have no error rates", remedy="Search with decoys")
    ratio = record.get("decoy_ratio")
    return RunMatches(
        kind, parameters, _classes(kind, parameters), float(ratio) if isinstance(ratio, int | float) and 0 < ratio <= 1e6 else 1.0
    )


def _classes(kind: str, parameters: Any) -> tuple[str, ...]:
    """Return the names of the classes of a search, the main class first."""
    if kind == "library":
        return CLASSES_OF_MASSES if parameters.is_open else CLASSES_OF_MASSES[:1]
    return CLASSES_OF_SHIFTS if kind == "modified" else class_names(is_translated=parameters.translation != "none")

"""Quantities of peptides beside another run of the same project: what coverage maps and folds are coloured by."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError, StorageError
from engine.project import Project
from engine.quantification.tables import CHANGES, PEPTIDES
from engine.results.reader import read_stored
from engine.structures.colouring import QuantityScale
from engine.views.coverage import Coverage, PlacedPeptide

__all__ = ["PeptideQuantities", "QuantitiesBeside"]

_LARGEST_LOG = 1100.0


@dataclass(frozen=True, eq=False)
class PeptideQuantities:
    """Quantities of a run, one number for each sequence.

    Attributes
    ----------
    run : the quantification. title : what the numbers are. is_change : whether they are differences between two conditions, log2, else
        means over all samples, log2.
    values : by sequence, with L for I, which have the same mass.
    """

    run: str
    title: str
    is_change: bool
    values: Mapping[str, float]

    def value(self, coverage: Coverage, peptide: PlacedPeptide) -> float | None:
        """That of a peptide at its place in a protein."""
        return self.values.get(_alike(coverage.sequence[peptide.start : peptide.end]))

    def of_residues(self, coverage: Coverage) -> NDArray[np.float64]:
        """(r,) mean over the sequences that cover each residue of a protein, NaN where none has a quantity."""
        total, count = np.zeros(len(coverage.sequence)), np.zeros(len(coverage.sequence))
        for start, end in {(one.start, one.end) for one in coverage.peptides}:
            value = self.values.get(_alike(coverage.sequence[start:end]))
            if value is not None:
                total[start:end] += value
                count[start:end] += 1
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    @cached_property
    def scale(self) -> QuantityScale:
        """Of all peptides: from the fifth to the 95th percentile, of changes as far to both sides, and one at least."""
        values = np.array(list(self.values.values()))
        low, high = (float(one) for one in np.percentile(values, (5, 95))) if len(values) else (0.0, 0.0)
        if self.is_change:
            high = max(abs(low), abs(high), 1.0)
            low = -high
        return QuantityScale(self.title, low, max(high, low + 1.0), self.is_change)


class QuantitiesBeside:
    """Quantities of the newest quantification that went on from a run; read again only where there is a newer one.

    Where conditions were compared, they are the changes of the first comparison; else means over the samples.
    """

    def __init__(self, project: Project, run: str) -> None:
        self._project, self._run = project, run
        self._known: tuple[str, PeptideQuantities | None] = "", None

    def newest(self) -> PeptideQuantities | None:
        """Those quantities; None where there are none, or their table cannot be read."""
        newest = self._newest_run()
        if newest != self._known[0]:
            found = None
            with suppress(InputError, StorageError):
                found = _quantities(self._project, newest) if newest else None
            self._known = newest, found
        return self._known[1]

    def _newest_run(self) -> str:
        for one in reversed(self._project.runs()):
            if one.kind == "quantify" and one.status == "done":
                sources = self._project.record(one.id).get("source_runs")
                if isinstance(sources, list) and self._run in sources:
                    return one.id
        return ""


def _quantities(project: Project, run: str) -> PeptideQuantities:
    table = read_stored(project, run, PEPTIDES, ["sequence", "condition", "log2_quantity"])
    numbers = table["log2_quantity"].cast("float64").to_numpy()
    known = np.flatnonzero(np.isfinite(numbers) & (np.abs(np.nan_to_num(numbers)) < _LARGEST_LOG))
    means: dict[tuple[str, str], tuple[float, int]] = {}
    grouped = table.select(["sequence", "condition"]).append_column("value", [numbers]).take(known)
    for row in grouped.group_by(["sequence", "condition"]).aggregate([("value", "sum"), ("value", "count")]).to_pylist():
        key = _alike(row["sequence"]), row["condition"] or ""
        total, count = means.get(key, (0.0, 0))
        means[key] = total + row["value_sum"], count + row["value_count"]
    conditions = list(dict.fromkeys(condition for _, condition in means))
    compared = set(read_stored(project, run, CHANGES, ["comparison"])["comparison"].to_pylist()[:1])
    pair = next((pair for pair in permutations(conditions, 2) if f"{pair[0]} / {pair[1]}" in compared), None)
    sequences = dict.fromkeys(sequence for sequence, _ in means)
    if pair is not None:
        both = {one: [means.get((one, condition)) for condition in pair] for one in sequences}
        values = {one: a[0] / a[1] - b[0] / b[1] for one, (a, b) in both.items() if a is not None and b is not None}
        return PeptideQuantities(run, f"log2 {pair[0]} / {pair[1]}", True, values)
    values = {}
    for one in sequences:
        parts = [means[one, condition] for condition in conditions if (one, condition) in means]
        values[one] = sum(total for total, _ in parts) / sum(count for _, count in parts)
    return PeptideQuantities(run, "log2 quantity", False, values)


def _alike(sequence: str) -> str:
    return sequence.replace("I", "L")

"""What a view of explained spectra shows: which of them, how many there are, and the map of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.views.conditions import Condition, Is, contains_in
from engine.views.run_map import EXPLAINED, MapPoints
from engine.views.tables import TableSource

__all__ = ["ExplanationFilter", "ExplanationOverview", "explanation_conditions", "overview", "status_of_spectrum"]


@dataclass(frozen=True)
class ExplanationFilter:
    """Which explained spectra to see; None bounds nothing. `kind`: ``same`` (mass as the peptide) or ``modified``."""

    text: str = ""
    q_value: float | None = None
    kind: str | None = None


def explanation_conditions(chosen: ExplanationFilter) -> list[Condition]:
    """The conditions that a filter puts on explained spectra."""
    conditions: list[Condition] = []
    if chosen.q_value is not None:
        conditions.append(Is("q_value", "<=", chosen.q_value))
    if chosen.kind is not None:
        conditions.append(Is("kind", "=", chosen.kind))
    return [*conditions, *contains_in(("peptide", "spectrum_id", "nearest_spectrum"), chosen.text)]


@dataclass(frozen=True)
class ExplanationOverview:
    """What is told of the whole run.

    Attributes
    ----------
    points : the map of the run, None where it was not kept.
    counts : of ``explained`` spectra, of these the ``modified`` ones, and of their ``peptides``; with a map of all ``spectra`` and of the
        ``identified`` ones.
    spectrum : (n,) int64, the spectrum of each row of the table of explained spectra.
    """

    points: MapPoints | None
    counts: Mapping[str, int]
    spectrum: NDArray[np.int64]


def overview(source: TableSource, has_map: bool, fdr: float) -> ExplanationOverview:
    """Count what is explained at a false discovery rate. `source`: any table of the run; `has_map`: whether it has the table ``map``."""
    spectrum = source.query("SELECT spectrum FROM explained ORDER BY file_row_number")["spectrum"].to_numpy().astype(np.int64)
    accepted = source.query(
        "SELECT count(*) AS n, count(*) FILTER (kind = 'modified') AS modified, count(DISTINCT peptide) AS peptides "
        "FROM explained WHERE q_value <= ?",
        [fdr],
    ).to_pylist()[0]
    counts = {"explained": accepted["n"], "modified": accepted["modified"], "peptides": accepted["peptides"]}
    points = None
    if has_map:
        points = MapPoints.of_table(source.query("SELECT spectrum, retention_time, precursor_mz, status FROM map"))
        row = source.query("SELECT count(*) AS n, count(*) FILTER (status = 1) AS identified FROM map").to_pylist()[0]
        counts |= {"spectra": row["n"], "identified": row["identified"]}
    return ExplanationOverview(points, counts, spectrum)


def status_of_spectrum(source: TableSource, spectrum: int) -> dict[str, Any]:
    """``status`` (one of `engine.views.run_map`) and ``peptide`` of a spectrum of the map. `source`: any table of the run."""
    row: dict[str, Any] = source.query("SELECT status, peptide FROM map WHERE spectrum = ?", [spectrum]).to_pylist()[0]
    return {**row, "status": min(row["status"], EXPLAINED)}

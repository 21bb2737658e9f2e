"""The spectra of a run as a table, identified or not: what each is, how much is in it, and which peptide it was matched to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import ProteoscopeError
from engine.results.columns import Column, Table
from engine.results.queries import create_view
from engine.results.reader import TableFile
from engine.spectra.tables import SPECTRA, peak_sums
from engine.views.chromatograms import Chromatogram, of_spectra
from engine.views.conditions import AnyOf, Condition, Contains, Is
from engine.views.finished_run import FinishedRun
from engine.views.mirror import Half, MirroredSpectra
from engine.views.run_map import MapPoints
from engine.views.tables import TableSource

__all__ = [
    "SPECTRUM_LIST", "SpectrumFilter", "map_of_spectra", "open_spectrum_list", "plain_spectrum", "spectrum_chromatogram",
    "spectrum_conditions",
]  # fmt: skip

_REMEDY = "Run the search again"
_NAME = "spectra"
LIBRARY_MATCHES = "matches"
"""The table of a search of libraries in which all its matches stand, of which the PSMs are a part."""
_COUNTED = ("n_peaks", "total_ion_current", "base_peak_mz", "base_peak_intensity")
_STORED = tuple(name for name in SPECTRA.by_name if name not in ("mz", "intensity"))
_NEAR = 0.01
"""Thomson from the m/z that is looked for."""

SPECTRUM_LIST = Table.of(
    _NAME,
    "Spectra",
    (
        Column("is_identified", "Identified", "Whether its best match is accepted at the false discovery rate of the run", "truth", 8),
        *(
            Column(one.name, title, one.meaning, one.kind, width, decimals, unit=unit, is_shown=is_shown)
            for one, title, width, decimals, unit, is_shown in (
                (SPECTRA.by_name["scan"], "Scan", 7, 0, "", True),
                (SPECTRA.by_name["retention_time"], "RT", 8, 2, "min", True),
                (SPECTRA.by_name["precursor_mz"], "m/z", 10, 4, "", True),
            )
        ),
        Column("charges", "z", "Charges that the precursor may have", width=5),
        Column("n_peaks", "Peaks", "Peaks as they were read", "integer", 6),
        Column("total_ion_current", "TIC", "Sum of the intensities of the peaks", "number", 11, 0),
        Column("base_peak_mz", "Base peak", "m/z of the highest peak", "number", 10, 4),
        Column("base_peak_intensity", "Intensity", "Intensity of the highest peak", "number", 10, 0, is_shown=False),
        Column("peptide", "Peptide", "What it was identified as, in ProForma, or the library's name of it", width=24),
        Column("q_value", "q-value", "q-value of its best match, accepted or not", "probability", 8),
        Column("spectrum_file", "File", "Its file", width=24, is_shown=False),
        Column("spectrum_id", "Spectrum", "Its name in the file", width=30, is_shown=False),
        Column("psm", meaning="Row of its best match among the PSMs, or among the library matches", kind="identifier"),
    ),
    shown="scan retention_time precursor_mz charges n_peaks total_ion_current base_peak_mz base_peak_intensity is_identified peptide "
    "q_value spectrum_file spectrum_id",
    links="psm is_identified scan spectrum_file spectrum_id precursor_mz retention_time",
)  # fmt: skip


def open_spectrum_list(run: FinishedRun, is_wanted: Callable[[], object] = lambda: None) -> TableSource:
    """The spectra of a run as the table of `SPECTRUM_LIST`, a row for each of its table of spectra, in that order.

    Opened for the first time it may take a while: the table is checked, and where an earlier version wrote it, the peaks are counted;
    `is_wanted` is called between pieces, and may raise.

    Raises
    ------
    ProteoscopeError : the run did not keep its spectra, or they are damaged.
    """
    if SPECTRUM_LIST.name not in run.tables.later:
        raise ProteoscopeError(f"There are no stored spectra of the run {run.run.id}.")
    if not run.tables.has_view(_VIEW):
        _make_views(run, is_wanted)
    return run.tables.later_source(SPECTRUM_LIST.name, _VIEW)


_MOST_KEPT = 2_000_000
"""Spectra of a list that is held in memory: some 250 MB."""
_VIEW, _BARE, _MATCHES, _SUMS = "spectra as a list", "spectra without peaks", "spectra and matches", "sums of peaks"


def _make_views(run: FinishedRun, is_wanted: Callable[[], object]) -> None:
    path = run.tables.later[SPECTRUM_LIST.name]
    with TableFile(path, SPECTRA, ("mz", "intensity"), remedy=_REMEDY) as file:
        present = [name for name in _STORED if name in file.columns]
        file.check(present, is_wanted)
        is_counted = all(name in file.columns for name in _COUNTED)
        sums = None if is_counted else _counted(file, is_wanted)
    bare = Table(_BARE, "", (), stored=tuple(SPECTRA.by_name[name] for name in present))
    with TableFile(path, bare, (), remedy=_REMEDY) as file, run.tables.changed(path) as connection:
        create_view(connection, file, name=_BARE, has_rows=True)
        if sums is not None:
            connection.register("counted", sums)
            connection.execute(f'CREATE TABLE "{_SUMS}" AS SELECT * FROM counted')
            connection.unregister("counted")
        fdr = float(run.parameters.get("fdr", 0.01))
        found = _best_library_matches(fdr) if LIBRARY_MATCHES in run.tables.paths else _best_psms(fdr)
        connection.execute(f'CREATE TABLE "{_MATCHES}" AS {found}')
        # Kept as a table, a page comes within milliseconds; from the file, whose row groups are small, each takes part of a second.
        kind = "TABLE" if file.n_rows <= _MOST_KEPT else "VIEW"
        connection.execute(f'CREATE {kind} "{_VIEW}" AS {_list_of_spectra(set(present), is_counted)}')


def _best_psms(fdr: float) -> str:
    """SQL of the best match of each spectrum among the PSMs."""
    return (
        "SELECT matched, psm, psms.q_value, psms.peptide, "
        "NOT psms.is_decoy AND psms.rank = 1 AND (psms.q_value IS NULL OR NOT isfinite(psms.q_value) OR psms.q_value <= "
        f"{fdr!r}) AS is_identified FROM (SELECT spectrum AS matched, arg_min(file_row_number, rank * 2 + CAST(is_decoy AS INTEGER)) "
        "AS psm FROM psms GROUP BY spectrum) JOIN psms ON psms.file_row_number = psm"
    )


def _best_library_matches(fdr: float) -> str:
    """SQL of the entry that each spectrum resembles most, of a peptide or of another compound. Where the library has no decoys none has a
    q-value, and all count; where it has some, those without one do not."""
    return (
        "SELECT spectrum AS matched, file_row_number AS psm, q_value, coalesce(peptide, library_spectrum) AS peptide, "
        f"coalesce(q_value <= {fdr!r}, (SELECT count(q_value) = 0 FROM {LIBRARY_MATCHES})) AS is_identified FROM {LIBRARY_MATCHES}"
    )


def _list_of_spectra(present: set[str], is_counted: bool) -> str:
    """SQL of the rows. Columns that the run has not are without values."""

    def stored(name: str, kind: str) -> str:
        return f"bare.{name}" if name in present else f"CAST(NULL AS {kind}) AS {name}"

    sums = "bare" if is_counted else "sums"
    charges = "[z FOR z IN range(1, 32) IF (bare.charge_mask >> z) & 1 = 1]"
    shown = f"array_to_string({charges}, ', ')" if "charge_mask" in present else "''"
    joined = "" if is_counted else f'LEFT JOIN "{_SUMS}" AS sums ON bare.file_row_number = sums.counted '
    return (
        f"SELECT {stored('scan', 'BIGINT')}, {stored('retention_time', 'DOUBLE')}, "
        f"{stored('precursor_mz', 'DOUBLE')}, {shown} AS charges, {', '.join(f'{sums}.{name}' for name in _COUNTED)}, "
        "coalesce(matches.is_identified, false) AS is_identified, "
        "CASE WHEN matches.is_identified THEN matches.peptide END AS peptide, matches.q_value, "
        f"{stored('spectrum_file', 'VARCHAR')}, {stored('spectrum_id', 'VARCHAR')}, matches.psm, bare.file_row_number "
        f'FROM "{_BARE}" AS bare {joined}LEFT JOIN "{_MATCHES}" AS matches ON bare.file_row_number = matches.matched'
    )


def _counted(file: TableFile, is_wanted: Callable[[], object]) -> Any:
    """Columns that are counted from peaks, with the rows of the spectra, of a table that has none (Arrow)."""
    import pyarrow as pa

    parts, first = [], 0
    for piece in file.batches(("mz", "intensity")):
        is_wanted()
        mz, intensity = (piece[name].combine_chunks() for name in ("mz", "intensity"))
        offsets = mz.offsets.to_numpy().astype(np.int64)
        columns = peak_sums(offsets - offsets[0], mz.flatten().to_numpy(), intensity.flatten().to_numpy())
        parts.append(pa.table({"counted": np.arange(first, first + len(piece)), **columns}))
        first += len(piece)
    return pa.concat_tables(parts) if parts else pa.table({name: pa.array([], pa.float64()) for name in ("counted", *_COUNTED)})


@dataclass(frozen=True)
class SpectrumFilter:
    """Which spectra to see. `text`: a scan, an m/z (with a decimal point), or part of a peptide or of a spectrum's name. `is_identified`:
    None for all."""

    text: str = ""
    is_identified: bool | None = None


def spectrum_conditions(chosen: SpectrumFilter) -> list[Condition]:
    """The conditions that a filter puts on the rows of `SPECTRUM_LIST`."""
    conditions: list[Condition] = []
    if chosen.is_identified is not None:
        conditions.append(Is("is_identified", "=", chosen.is_identified))
    text = chosen.text.strip()
    if not text:
        return conditions
    if text.isascii() and text.isdigit() and len(text) < 18:
        return [*conditions, AnyOf((Is("scan", "=", int(text)), Contains("spectrum_id", text)))]
    try:
        mz = float(text.replace(",", "."))
    except ValueError:
        return [*conditions, AnyOf((Contains("peptide", text), Contains("spectrum_id", text), Contains("spectrum_file", text)))]
    return [*conditions, Is("precursor_mz", ">=", mz - _NEAR), Is("precursor_mz", "<=", mz + _NEAR)]


def map_of_spectra(source: TableSource) -> MapPoints:
    """The spectra of a list as points of retention time and m/z."""
    found = source.columns(["file_row_number", "retention_time", "precursor_mz", "is_identified", "scan", "spectrum_file"])
    import pyarrow as pa

    numbers = {name: found[name].cast(pa.float64()).fill_null(float("nan")) for name in ("retention_time", "precursor_mz")}
    return MapPoints.of_table(
        pa.table(
            {
                "spectrum": found["file_row_number"],
                "status": found["is_identified"].cast(pa.uint8()),
                "scan": found["scan"],
                "spectrum_file": found["spectrum_file"],
                **numbers,
            }
        )
    )


def spectrum_chromatogram(source: TableSource, column: str, file: str | None = None) -> Chromatogram:
    """``total_ion_current`` or ``base_peak_intensity`` of the spectra of a list by time, of one file where it is named."""
    title = {"total_ion_current": "Total ion current (MS2)", "base_peak_intensity": "Base peak (MS2)"}[column]
    conditions = [] if file is None else [Is("spectrum_file", "=", file)]
    found = source.columns(["file_row_number", "scan", "retention_time", column], conditions)
    import pyarrow as pa

    seconds, intensity = (found[name].cast(pa.float64()).fill_null(float("nan")).to_numpy() for name in ("retention_time", column))
    return of_spectra(title, seconds, intensity, found["file_row_number"].to_numpy(), found["scan"].fill_null(-1).to_numpy())


def plain_spectrum(run: FinishedRun, row: int, name: str) -> MirroredSpectra:
    """A spectrum of which no peptide is known, by its row in the table of spectra.

    Raises
    ------
    ProteoscopeError : the run did not keep its spectra, or they are damaged.
    """
    from engine.chemistry.tolerance import Tolerance

    asked = run.ions
    tolerance = asked.tolerance if asked is not None else Tolerance(20, "ppm")
    return MirroredSpectra(name, Half(name, run.peaks().peaks(row)), None, tolerance, note="Not identified.")

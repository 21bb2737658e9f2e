"""Table of the spectra of a run with status, content and peptide. An explanation lists the spectra of the explained identification."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.queries import create_view
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.tables import SPECTRA
from proteoscope.engine.views.chromatograms import Chromatogram, of_spectra
from proteoscope.engine.views.conditions import Condition, any_of, compares, contains, given
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED, STATUS_NAMES, UNEXPLAINED, MapPoints
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "EXPLAINED_LIST",
    "SPECTRUM_LIST",
    "SpectrumFilter",
    "open_spectrum_list",
    "plain_spectrum",
    "read_spectrum_map",
    "spectrum_chromatogram",
    "spectrum_conditions",
]

_REMEDY = "Run the search again"
_NAME = "spectra"
LIBRARY_MATCHES = "matches"
"""Table of all matches of a library search, including PSMs."""
_MAP, _EXPLAINED = "map", "explained"
"""Tables of a run that explains spectra: status of every spectrum, and explained spectra."""
_COUNTED = ("n_peaks", "total_ion_current", "base_peak_mz", "base_peak_intensity")
_TYPES = {
    "n_peaks": "BIGINT",
    "spectrum_id": "VARCHAR",
    **dict.fromkeys(("total_ion_current", "base_peak_mz", "base_peak_intensity"), "DOUBLE"),
}
"""DuckDB types of the columns that are missing if spectra are listed from the map of an explanation."""
_STORED = tuple(name for name, column in SPECTRA.by_name.items() if column.kind != "numbers")
_NEAR = 0.01
"""Tolerance of an m/z in a text filter, thomson."""


def _listed(column: Column, peptide: str, q_value: str, match: str) -> Table:
    """Return the description of a list of spectra; `column` is the status column, and the other parameters are descriptions as text."""
    positions = (("scan", "Scan", 7, 0), ("retention_time", "RT", 8, 2), ("precursor_mz", "m/z", 10, 4))
    stored = ((SPECTRA.by_name[name], title, width, decimals) for name, title, width, decimals in positions)
    identified = Column("is_identified", meaning="True if the spectrum is identified", kind="truth")
    return Table.from_columns(
        _NAME,
        "Spectra",
        (
            column,
            *(
                Column(column.name, title, column.meaning, column.kind, width, decimals, unit="s" if column.kind == "minutes" else "")
                for column, title, width, decimals in stored
            ),
            Column("charges", "z", "Possible charges of the precursor", width=5),
            Column("n_peaks", "Peaks", "Number of peaks in the file", "integer", 6),
            Column("total_ion_current", "TIC", "Total ion current: sum of the intensities of all peaks", "number", 11, 0),
            Column("base_peak_mz", "Base peak", "m/z of the most intense peak", "number", 10, 4),
            Column("base_peak_intensity", "Intensity", "Intensity of the most intense peak", "number", 10, 0, is_shown=False),
            Column("peptide", "Peptide", peptide, width=24),
            Column("q_value", "q-value", q_value, "probability", 8),
            Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False),
            Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=30, is_shown=False),
            Column("psm", meaning=match, kind="identifier"),
            *(() if column.name == identified.name else (identified,)),
        ),
        shown=f"scan retention_time precursor_mz charges n_peaks total_ion_current base_peak_mz base_peak_intensity {column.name} peptide "
        "q_value spectrum_file spectrum_id",
        links="psm is_identified scan spectrum_file spectrum_id precursor_mz retention_time",
    )


SPECTRUM_LIST = _listed(
    Column("is_identified", "Identified", "True if the best match of the spectrum is accepted at the FDR of the run", "truth", 8),
    "Best matching peptide in ProForma, or name of the library spectrum",
    "q-value of the best match, also if the match is not accepted",
    "Row of the best match in the table of PSMs or library matches, from 0",
)
EXPLAINED_LIST = _listed(
    Column(
        "state",
        "State",
        "State of the spectrum: identified in the identification run, explained at the FDR of this run, or unexplained",
        width=10,
    ),
    "Identified peptide, or peptide of the explanation, in ProForma",
    "q-value of the explanation, even if it is not accepted",
    "Row of the explanation in the table of explanations, from 0; missing if it is not accepted",
)
"""Description of the list of spectra of a run that explains spectra."""


def open_spectrum_list(run: FinishedRun, is_wanted: Callable[[], object] = lambda: None) -> TableSource:
    """Open the list of spectra of a run (`SPECTRUM_LIST`), one row per spectrum in stored order.

    A run that explains spectra lists the spectra of its identification (`EXPLAINED_LIST`); if the identification is missing, spectra have
    no peaks.

    Parameters
    ----------
    is_wanted
        Called between chunks of the initial validation; may raise an exception to abort it.

    Raises
    ------
    ProteoscopeError
        If the run did not store its spectra, or if they are damaged.
    """
    path = run.tables.later.get(_NAME) or run.tables.paths.get(_MAP)
    if path is None:
        raise ProteoscopeError(f"The spectra of the run '{run.run.id}' are not stored.")
    if not run.tables.has_view(_VIEW):
        _make_views(run, path, is_wanted)
    return run.tables.view_source(_NAME, _VIEW, path)


_MAXIMUM_CACHED = 2_000_000
"""Maximum number of spectra of a list that is held in memory (about 250 MB)."""
_VIEW, _BARE, _MATCHES = "spectra as a list", "spectra without peaks", "spectra and matches"
_OF_MAP = ("scan", "retention_time", "precursor_mz", "spectrum_file")
"""Columns of spectra that are also in the map of an explanation."""


def _make_views(run: FinishedRun, path: Path, is_wanted: Callable[[], object]) -> None:
    has_file, has_map = _NAME in run.tables.later, _MAP in run.tables.paths
    if has_file:
        with TableFile(path, SPECTRA, remedy=_REMEDY) as file:
            file.check(_STORED, is_wanted)
    with run.tables.changed(path) as connection:
        if has_file:
            bare = Table(_BARE, "", (), stored=SPECTRA.chosen(_STORED))
            with TableFile(path, bare, remedy=_REMEDY) as file:
                create_view(connection, file, name=_BARE, has_rows=True)
                n_rows = file.n_rows
        else:
            connection.execute(f'CREATE VIEW "{_BARE}" AS SELECT file_row_number FROM {_MAP}')
            n_rows = connection.execute(f'SELECT count(*) FROM "{_BARE}"').fetchall()[0][0]
        connection.execute(f'CREATE TABLE "{_MATCHES}" AS {_spectrum_status_query() if has_map else _best_matches(run)}')
        listed = _spectra_sql(has_file=has_file, has_states=has_map)
        # Reading a page takes milliseconds from a table in memory, but a fraction of a second from the file with its small row groups.
        kind = "TABLE" if n_rows <= _MAXIMUM_CACHED else "VIEW"
        connection.execute(f'CREATE {kind} "{_VIEW}" AS {listed}')


def _best_matches(run: FinishedRun) -> str:
    """Return an SQL query for the best match of each matched spectrum."""
    fdr = float(run.parameters.get("fdr", 0.01))
    return _best_library_matches(fdr) if LIBRARY_MATCHES in run.tables.paths else _best_psms(fdr)


def _spectrum_status_query() -> str:
    """Return an SQL query for the status and peptide of each spectrum in the map of an explanation, and its columns `_OF_MAP`."""
    more = "".join(f", {name}" for name in _OF_MAP)
    retained = "".join(f", any_value({name}) AS {name}" for name in _OF_MAP)
    return (
        f"SELECT matched, CASE WHEN status = {EXPLAINED} THEN row END AS psm, q_value, peptide, status > {UNEXPLAINED} AS is_identified, "
        f"status{more} FROM (SELECT spectrum AS matched, least(any_value(status), {EXPLAINED}) AS status, any_value(peptide) AS peptide"
        f"{retained} FROM {_MAP} GROUP BY spectrum) "
        "LEFT JOIN (SELECT spectrum, arg_min(file_row_number, q_value) AS row, min(q_value) AS q_value "
        f"FROM {_EXPLAINED} GROUP BY spectrum) ON matched = spectrum"
    )


def _best_psms(fdr: float) -> str:
    """Return an SQL query for the best PSM of each spectrum.

    The column ``is_identified`` is true for targets of rank 1 with a q-value up to `fdr`; if no PSM has a q-value, for all targets of rank
    1.
    """
    best = "arg_min(file_row_number, rank * 2 + CAST(is_decoy AS INTEGER))"
    return (
        "SELECT matched, psm, psms.q_value, psms.peptide, "
        f"NOT psms.is_decoy AND psms.rank = 1 AND CASE WHEN isfinite(psms.q_value) THEN psms.q_value <= {fdr!r} "
        "ELSE (SELECT count(*) FILTER (isfinite(q_value)) = 0 FROM psms) END AS is_identified "
        f"FROM (SELECT spectrum AS matched, {best} AS psm FROM psms GROUP BY spectrum) "
        "JOIN psms ON psms.file_row_number = psm"
    )


def _best_library_matches(fdr: float) -> str:
    """Return an SQL query for the most similar library entry of each spectrum.

    The column ``is_identified`` is true for q-values up to `fdr`; if no match has a q-value (library without decoys), for all matches.
    """
    return (
        "SELECT spectrum AS matched, file_row_number AS psm, q_value, coalesce(peptide, library_spectrum) AS peptide, "
        f"coalesce(q_value <= {fdr!r}, (SELECT count(q_value) = 0 FROM {LIBRARY_MATCHES})) AS is_identified FROM {LIBRARY_MATCHES}"
    )


def _spectra_sql(*, has_file: bool, has_states: bool) -> str:
    """Return an SQL query for the rows of the list.

    Parameters
    ----------
    has_file
        True if there is a table of spectra; otherwise the columns are taken from the map of an explanation, and missing columns are null.
    has_states
        True if the matches have a status column, as in an explanation.
    """

    def stored(name: str) -> str:
        if has_file:
            return f"bare.{name}"
        return f"matches.{name}" if name in _OF_MAP else f"CAST(NULL AS {_TYPES[name]}) AS {name}"

    charges = "[z FOR z IN range(1, 32) IF (bare.charge_mask >> z) & 1 = 1]"
    shown = f"array_to_string({charges}, ', ')" if has_file else "''"
    status = "matches.status" if has_states else f"CASE WHEN matches.is_identified THEN {IDENTIFIED} END"
    status = f"CAST(coalesce({status}, {UNEXPLAINED}) AS UTINYINT)"
    states = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(STATUS_NAMES))
    return (
        f"SELECT {stored('scan')}, {stored('retention_time')}, {stored('precursor_mz')}, {shown} AS charges, "
        f"{', '.join(map(stored, _COUNTED))}, coalesce(matches.is_identified, false) AS is_identified, {status} AS status, "
        f"CASE {status} {states} END AS state, CASE WHEN matches.is_identified THEN matches.peptide END AS peptide, matches.q_value, "
        f"{stored('spectrum_file')}, {stored('spectrum_id')}, matches.psm, bare.file_row_number "
        f'FROM "{_BARE}" AS bare LEFT JOIN "{_MATCHES}" AS matches ON bare.file_row_number = matches.matched'
    )


@dataclass(frozen=True)
class SpectrumFilter:
    """Filter of spectra.

    Attributes
    ----------
    text
        Scan number, m/z (with a decimal point), or part of a peptide or of a spectrum name.
    is_identified
        True or False to select identified or unidentified spectra, None for all.
    state
        Status in an explanation, one of `proteoscope.engine.views.run_map.STATUS_NAMES`, or '' for all.
    """

    text: str = ""
    is_identified: bool | None = None
    state: str = ""


def spectrum_conditions(chosen: SpectrumFilter) -> list[Condition]:
    """Return the conditions of a filter on a list of spectra."""
    conditions = given(("is_identified", "=", chosen.is_identified), ("state", "=", chosen.state or None))
    text = chosen.text.strip()
    if not text:
        return conditions
    if text.isascii() and text.isdigit() and len(text) < 18:
        return [*conditions, any_of((compares("scan", "=", int(text)), contains("spectrum_id", text)))]
    try:
        mz = float(text.replace(",", "."))
    except ValueError:
        return [*conditions, any_of((contains("peptide", text), contains("spectrum_id", text), contains("spectrum_file", text)))]
    return [*conditions, compares("precursor_mz", ">=", mz - _NEAR), compares("precursor_mz", "<=", mz + _NEAR)]


def read_spectrum_map(source: TableSource) -> MapPoints:
    """Return the spectra of a list as points of the LC-MS map."""
    result = source.columns(["file_row_number", "retention_time", "precursor_mz", "status", "scan", "spectrum_file"])

    numbers = {name: result[name].cast(pa.float64()).fill_null(float("nan")) for name in ("retention_time", "precursor_mz")}
    return MapPoints.from_table(
        pa.table(
            {
                "spectrum": result["file_row_number"],
                "status": result["status"],
                "scan": result["scan"],
                "spectrum_file": result["spectrum_file"],
                **numbers,
            }
        )
    )


def spectrum_chromatogram(source: TableSource, column: str, file: str | None = None) -> Chromatogram:
    """Return the chromatogram of ``total_ion_current`` or ``base_peak_intensity`` of the spectra, of one file if given."""
    title = {"total_ion_current": "Total ion current (MS2)", "base_peak_intensity": "Base peak (MS2)"}[column]
    conditions = [] if file is None else [compares("spectrum_file", "=", file)]
    result = source.columns(["file_row_number", "scan", "retention_time", column], conditions)

    seconds, intensity = (result[name].cast(pa.float64()).fill_null(float("nan")).to_numpy() for name in ("retention_time", column))
    return of_spectra(title, seconds, intensity, result["file_row_number"].to_numpy(), result["scan"].fill_null(-1).to_numpy())


def plain_spectrum(run: FinishedRun, row: SpectrumRow, name: str) -> MirroredSpectra:
    """Return a spectrum without a peptide by its row in the table of spectra.

    Raises
    ------
    ProteoscopeError
        If the run did not store its spectra, or if they are damaged.
    """
    requested = run.ions
    tolerance = requested.tolerance if requested is not None else Tolerance(20, "ppm")
    return MirroredSpectra(name, Half(name, run.peaks(run_id=run.spectra_run).peaks(row)), None, tolerance, note="Not identified.")

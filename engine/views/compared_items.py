"""Tables that compare runs: one row per spectrum, peptide or protein, with the results of each run; and the files that runs share.

Files with equal digests are equal. Files with equal names (without folder and extension) are also considered equal, unless a run has two
files with the name: one program may read mzML and another MGF, and imported results often contain only names.

Runs have the symbols A, B, …; names of columns of run A end in ``_A``. Every table has ``n_A``, how often the run found the item (or null),
``q_value_A``, and ``accepted_from_A``, the smallest q-value threshold that accepts the item (0 if the run has no q-values). The table of
spectra also has the answer (best peptide) of each run. Tables of spectra, PSMs and peptides have ``psm_A``, the row of the (best) PSM in
the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.views.finished_run import FinishedRun

if TYPE_CHECKING:
    import duckdb

__all__ = ["ComparedFiles", "make_tables", "match_files", "strip_extensions"]

_ENDINGS = (".gz", ".mzml", ".mzxml", ".mgf", ".ms2", ".dta", ".pkl", ".raw", ".d", ".wiff", ".pep", ".xml")


@dataclass(frozen=True)
class ComparedFiles:
    """Numbers of the spectrum files of several runs; equal files have equal numbers.

    Attributes
    ----------
    numbers
        For each run, a mapping from the file names in its tables to the numbers of the files.
    by_name
        Pairs of file names that were matched only by name, without duplicates.
    """

    numbers: tuple[dict[str, int], ...]
    by_name: tuple[tuple[str, str], ...]

    @property
    def n_shared(self) -> int:
        """Number of files that are in two or more runs."""
        return sum(n > 1 for n in Counter(number for run in self.numbers for number in set(run.values())).values())


def match_files(names: Sequence[Sequence[str]], digests: Sequence[Mapping[str, str]]) -> ComparedFiles:
    """Assign numbers to the spectrum files of runs, with equal numbers for equal files.

    Parameters
    ----------
    names
        For each run, its file names as in its tables.
    digests
        For each run, the known digests of its files by file name.
    """
    numbers: list[dict[str, int]] = []
    of_digest: dict[str, int] = {}
    n_files = 0
    for of_run, digest_of in zip(names, digests, strict=True):
        number_of: dict[str, int] = {}
        for name in of_run:
            digest = digest_of.get(name)
            number = n_files if digest is None else of_digest.setdefault(digest, n_files)
            n_files = max(n_files, number + 1)
            number_of[name] = number
        numbers.append(number_of)
    return _joined_by_name(numbers)


def strip_extensions(name: str) -> str:
    r"""Return the name of a spectrum file without its folder and extensions.

    >>> strip_extensions("/data/run 1.mzML.gz"), strip_extensions("C:\\data\\run 1.mgf"), strip_extensions("run 1")
    ('run 1', 'run 1', 'run 1')
    """
    stem = PureWindowsPath(PurePosixPath(name).name).name
    while (ending := next((ending for ending in _ENDINGS if stem.lower().endswith(ending) and len(stem) > len(ending)), None)) is not None:
        stem = stem[: -len(ending)]
    return stem


def _joined_by_name(numbers: list[dict[str, int]]) -> ComparedFiles:
    """Return new numbers: equal for files with the same name without folder and extensions, unless a run has two files with this name."""
    of_stem: dict[str, list[tuple[int, str]]] = {}
    for run, number in enumerate(numbers):
        for name in number:
            of_stem.setdefault(strip_extensions(name), []).append((run, name))
    by_name = []
    for named in of_stem.values():
        result = {numbers[run][name]: name for run, name in reversed(named)}
        (first, first_name), *others = reversed(result.items())
        is_ambiguous = any(len(result.keys() & set(number.values())) > 1 for number in numbers)
        for other, name in () if is_ambiguous else others:
            for names in numbers:
                names.update({file: first for file, number in names.items() if number == other})
            by_name.append((first_name, name))
    return ComparedFiles(tuple(numbers), tuple(dict.fromkeys(by_name)))


_SAME_MASS = 0.006
"""Maximum difference between masses of the same modification, dalton.

Programs write these masses with at least two decimals; sulfation and phosphorylation are 0.0095 Da apart.
"""

_IS_RATED = "CASE WHEN isfinite({0}.q_value) THEN true ELSE (SELECT count(*) FILTER (isfinite(q_value)) = 0 FROM {0}) END"
"""Condition: the row has a q-value, or no row of the table has one. Classes that are too small for an error rate have no q-values."""

_ANSWERS = f"""
SELECT file_row_number AS row, spectrum_file, spectrum_id, scan, retention_time, precursor_mz, peptide, sequence, charge,
    score, CASE WHEN isfinite(q_value) THEN q_value END AS q_value, modification_positions, modification_masses
FROM psms WHERE rank = 1 AND NOT is_decoy AND {_IS_RATED.format("psms")}
QUALIFY row_number() OVER (PARTITION BY spectrum_file, spectrum_id
    ORDER BY CASE WHEN isfinite(q_value) THEN q_value END NULLS LAST, CASE WHEN isfinite(score) THEN score END DESC NULLS LAST, row) = 1
"""
_PEPTIDES = f"""
SELECT peptides.file_row_number AS row, peptides.peptide, peptides.sequence, peptides.n_psms AS n, best_psm AS psm,
    CASE WHEN isfinite(peptides.q_value) THEN peptides.q_value END AS q_value, psms.modification_positions, psms.modification_masses
FROM peptides JOIN psms ON psms.file_row_number = peptides.best_psm
WHERE NOT peptides.is_decoy AND {_IS_RATED.format("peptides")}
"""
_GROUPS = """
SELECT accessions, description, n_peptides AS n, CASE WHEN isfinite(q_value) THEN q_value END AS q_value
FROM proteins WHERE NOT is_decoy
"""
_ACCESSION = "regexp_replace({}, '^(sp|tr)[|]([^|]+)[|].*$', '\\2')"


def make_tables(connection: duckdb.DuckDBPyConnection, runs: Sequence[FinishedRun], files: ComparedFiles, progress: Progress) -> None:
    """Create the tables ``spectra``, ``psms``, ``peptidoforms``, ``peptides``, ``groups`` and ``proteins`` from the tables of several runs.

    Raises
    ------
    InputError
        If a table of a run is damaged.
    Cancelled
        If the user cancelled.
    """
    _gather(connection, "answers", runs, "psms", _ANSWERS)
    _gather(connection, "forms", runs, "peptides", _PEPTIDES)
    _gather(connection, "evidence", runs, "proteins", _GROUPS)
    _number_files(connection, files)
    progress.check()
    _name_forms(connection)
    progress.check()
    symbols = ascii_uppercase[: len(runs)]
    _make_spectra(connection, symbols)
    progress.check()
    reported = "spectrum_file, spectrum_id, scan, peptide"
    answers = f"SELECT run, file, spectrum, form, {reported}, 1 AS n, q_value, row AS psm FROM answers"
    best = [f"first(psm ORDER BY q_value NULLS LAST, psm) FILTER (run = {run}) AS psm_{symbol}" for run, symbol in enumerate(symbols)]
    _pivot(connection, "psms", answers, "file, spectrum, form", reported, symbols, best)
    _pivot(connection, "peptidoforms", "SELECT run, form, peptide, n, q_value, psm FROM forms", "form", "peptide", symbols, best)
    _pivot(connection, "peptides", "SELECT run, residues, sequence, n, q_value, psm FROM forms", "residues", "sequence", symbols, best)
    keyed = f"list_sort(list_transform(accessions, lambda one: {_ACCESSION.format('one')}))"
    groups = f"SELECT run, {keyed} AS members, array_to_string({keyed}, ';') AS name, description, n, q_value FROM evidence"
    _pivot(connection, "groups", groups, "members", "name, description", symbols)
    each = "SELECT *, unnest(accessions) AS accession FROM evidence"
    proteins = f"SELECT run, {_ACCESSION.format('accession')} AS name, accession, n, q_value FROM ({each})"
    _pivot(connection, "proteins", proteins, "name", "accession", symbols)
    for name in ("answers", "forms", "evidence"):
        connection.execute(f"DROP TABLE {name}")


def _gather(connection: duckdb.DuckDBPyConnection, name: str, runs: Sequence[FinishedRun], table: str, sql: str) -> None:
    """Create the table `name` by running the query `sql` on `table` of each run; the column ``run`` is the index of the run."""
    for position, run in enumerate(runs):
        source = run.tables.source(table)
        result = source.query(sql)
        source.close()
        connection.register("found", result)
        into = f"INSERT INTO {name} BY NAME" if position else f"CREATE TABLE {name} AS"
        connection.execute(f"{into} SELECT {position} AS run, * FROM found")
        connection.unregister("found")


def _number_files(connection: duckdb.DuckDBPyConnection, files: ComparedFiles) -> None:
    """Add two columns to the table ``answers`` (best peptides of spectra) that are equal in all runs: ``file``, a number, and ``spectrum``.

    ``spectrum`` is the scan number if each run has one for each spectrum of the file, otherwise the spectrum id.
    """
    rows = [(run, name, number) for run, of_run in enumerate(files.numbers) for name, number in of_run.items()]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.int32(), pa.string(), pa.int64())
    _register(connection, "numbered", dict(zip(("run", "name", "file"), map(pa.array, columns, types), strict=True)))
    # Scan numbers are the same in all file formats that store them; spectrum ids differ between programs.
    connection.execute(
        """
        CREATE TABLE named AS
            SELECT answers.*, numbered.file FROM answers JOIN numbered ON answers.run = numbered.run AND spectrum_file = name;
        CREATE TABLE scanned AS
            SELECT file, bool_and(has_scans) AS has_scans FROM
            (SELECT run, file, count(scan) = count(*) AND count(DISTINCT scan) = count(*) AS has_scans FROM named GROUP BY run, file)
            GROUP BY file;
        CREATE OR REPLACE TABLE answers AS
            SELECT named.*, CASE WHEN has_scans THEN CAST(scan AS VARCHAR) ELSE spectrum_id END AS spectrum
            FROM named JOIN scanned USING (file);
        DROP TABLE named; DROP TABLE scanned
        """
    )
    connection.unregister("numbered")


def _name_forms(connection: duckdb.DuckDBPyConnection) -> None:
    """Add three columns to the tables ``answers`` and ``forms`` that identify a peptide more and more specifically.

    ``residues`` is the sequence with L for I. ``composition`` is the sequence with the kinds of modifications; ``form`` also has the
    positions of the modifications.
    """
    masses = (
        connection.sql(
            "SELECT DISTINCT unnest(modification_masses) AS mass FROM (SELECT modification_masses FROM answers UNION ALL "
            "SELECT modification_masses FROM forms) ORDER BY mass"
        )
        .to_arrow_table()["mass"]
        .to_numpy()
    )

    _register(connection, "masses", {"mass": pa.array(masses), "kind": pa.array(_same_masses(masses))})
    for name in ("answers", "forms"):
        connection.execute(
            f"""
            CREATE OR REPLACE TABLE {name} AS
            WITH placed AS (
                SELECT run, row, unnest(modification_positions) AS position, unnest(modification_masses) AS mass FROM {name}
            ), modified AS (
                SELECT run, row, string_agg(kind, ' ' ORDER BY kind) AS kinds,
                    string_agg(position || ':' || kind, ' ' ORDER BY position, kind) AS places
                FROM placed JOIN masses USING (mass) GROUP BY run, row
            ), residues AS (SELECT *, replace(sequence, 'I', 'L') AS residues FROM {name})
            SELECT residues.*, residues || ' ' || coalesce(kinds, '') AS composition, residues || ' ' || coalesce(places, '') AS form
            FROM residues LEFT JOIN modified USING (run, row)
            """
        )
    connection.unregister("masses")


def _same_masses(masses: Any) -> Any:
    """Group n ascending masses of modifications that are probably the same, and return the group index of each mass, (n,).

    A group contains the masses from its first mass up to `_SAME_MASS` above this mass.

    >>> _same_masses(np.array([15.99, 15.9949, 15.995, 79.9568, 79.9663])).tolist()
    [0, 0, 0, 1, 2]
    """
    kinds, first = np.zeros(len(masses), np.int64), 0
    for position in range(1, len(masses)):
        is_new = masses[position] - masses[first] > _SAME_MASS
        kinds[position] = kinds[position - 1] + is_new
        first = position if is_new else first
    return kinds


def _make_spectra(connection: duckdb.DuckDBPyConnection, symbols: str) -> None:
    """Create the table ``spectra``: each spectrum with the answers of all runs.

    ``differs_from`` is the smallest q-value threshold at which two different answers are accepted, and ``difference`` describes how these
    two answers differ. Both are null if no two answers differ.
    """
    answers = ("row", "peptide", "sequence", "charge", "score", "form", "composition", "residues")
    more = [
        f"any_value({name}) FILTER (run = {run}) AS {'psm' if name == 'row' else name}_{symbol}"
        for run, symbol in enumerate(symbols)
        for name in answers
    ]
    of_spectrum = "spectrum_file, spectrum_id, scan, retention_time, precursor_mz"
    _pivot(connection, "compared", "SELECT *, 1 AS n FROM answers", "file, spectrum", of_spectrum, symbols, more)
    pairs = [
        f"CASE WHEN form_{a} != form_{b} THEN {{'q_value': greatest(accepted_from_{a}, accepted_from_{b}), 'how': "
        f"CASE WHEN residues_{a} != residues_{b} THEN 0 WHEN composition_{a} != composition_{b} THEN 1 ELSE 2 END}} END"
        for k, a in enumerate(symbols)
        for b in symbols[k + 1 :]
    ]
    hidden = ", ".join(f"{name}_{symbol}" for symbol in symbols for name in ("form", "composition", "residues", "sequence"))
    same = ", ".join(f"residues_{symbol} AS sequence_{symbol}" for symbol in symbols)
    connection.execute(
        f"""
        CREATE TABLE spectra AS
        SELECT * EXCLUDE (difference, {hidden}), {same}, difference.q_value AS differs_from,
            CASE difference.how WHEN 0 THEN 'other peptide' WHEN 1 THEN 'other modifications' WHEN 2 THEN 'other sites' END AS difference
        FROM (SELECT *, list_min(list_filter([{", ".join(pairs)}], lambda pair: pair IS NOT NULL)) AS difference FROM compared)
        ORDER BY file_row_number;
        DROP TABLE compared
        """
    )


def _pivot(
    connection: duckdb.DuckDBPyConnection, name: str, rows: str, key: str, described: str, symbols: str, more: Sequence[str] = ()
) -> None:
    """Create a table with one row per value of the column `key` in the SQL result `rows`.

    A row contains the columns `described`, with the values of the first run that has the key, then columns for each run, and the columns
    `more`. Rows are sorted by the number of runs that have the key, largest first, then by the smallest threshold that accepts them.
    """
    shown = [f"first({column} ORDER BY run, q_value NULLS LAST, {column}) AS {column}" for column in described.split(", ")]
    each = [
        f"CAST(sum(n) FILTER (run = {run}) AS BIGINT) AS n_{symbol}, min(q_value) FILTER (run = {run}) AS q_value_{symbol}, "
        f"min(coalesce(q_value, 0)) FILTER (run = {run}) AS accepted_from_{symbol}"
        for run, symbol in enumerate(symbols)
    ]
    n_runs = " + ".join(f"CAST(n_{symbol} IS NOT NULL AS INTEGER)" for symbol in symbols)
    best = f"least({', '.join(f'accepted_from_{symbol}' for symbol in symbols)})"
    connection.execute(
        f"""
        CREATE TABLE {name} AS
        WITH found AS (SELECT {key}, {", ".join([*shown, *each, *more])} FROM ({rows}) GROUP BY {key})
        SELECT * EXCLUDE ({key}){", name" if key == "name" else ""}, {n_runs} AS n_runs,
            row_number() OVER (ORDER BY {n_runs} DESC, {best}, {key}) - 1 AS file_row_number
        FROM found ORDER BY file_row_number
        """
    )


def _register(connection: duckdb.DuckDBPyConnection, name: str, columns: dict[str, pa.Array]) -> None:
    connection.register(name, pa.table(columns))

"""Reader of BiblioSpec's libraries (blib), which Skyline writes: SQLite databases, possibly from untrusted sources.

m/z are stored as float64 and intensities as float32, compressed with zlib if this is shorter (Frewen and MacCoss 2007, Curr. Protoc.
Bioinformatics 13.7).
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Scalar, segment_offsets
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, parse_peptide
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.libraries.msp import adduct_charge
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.formats.spectrum_blocks import MAXIMUM_PEAKS
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sqlite_inputs import computed_table, open_sqlite
from proteoscope.engine.unfolding import ENTRIES

__all__ = ["read_blib"]

_TABLES = ("RefSpectra", "RefSpectraPeaks")
_COLUMNS = (
    "peptideSeq",
    "peptideModSeq",
    "precursorCharge",
    "precursorMZ",
    "retentionTime",
    "numPeaks",
    "copies",
    "moleculeName",
    "chemicalFormula",
    "inchiKey",
    "precursorAdduct",
)
_NEEDED = ("id", "precursorCharge", "precursorMZ", "numPeaks")
_ROWS = 500
_LONGEST_PROTEINS = 1 << 14  # maximum length of all accessions of an entry
_MAXIMUM_MODIFICATIONS, _PROTEINS_OF_SPECTRUM, _FREE_ROWS = 200, 100, 1 << 17
"""Maximum numbers of modifications and of proteins per spectrum, and number of additional rows that each table may have."""
_PEAKS_AT_ONCE = 1 << 20


def read_blib(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the entries of a blib to a library.

    Parameters
    ----------
    source : ByteSource
        Open file.
    library : LibraryCollector
        Collector that receives the entries.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.

    Raises
    ------
    InputError
        If the file is gzipped, damaged, or not a library of BiblioSpec.
    Cancelled
        If the user cancels.
    """
    path = source.path
    if source.is_gzip:
        raise InputError(path, "is a compressed database", remedy="Unpack it first")
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and log.stat().st_size:
        progress.message(
            f"{path}: its last changes are in {log.name}, which is not read; close the library in the program that writes it",
            "warning",
        )
    try:
        with closing(open_sqlite(path, is_cancelled=lambda: progress.is_cancelled)) as connection:
            _read(connection, source, library, progress)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as error:
        progress.check()
        raise InputError(path, f"the database cannot be read ({error!s:.100})", remedy="Copy it again, or write it again") from None


def _read(connection: sqlite3.Connection, source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    if name := computed_table(connection, _TABLES):
        raise InputError(
            source.path,
            f"the database has no table {name}, or it is a view or has computed columns: it is not a library of BiblioSpec",
            remedy="Give another library",
        )
    present = {str(row[1]).lower() for row in connection.execute("PRAGMA table_info(RefSpectra)")}
    missing = next((name for name in _NEEDED if name.lower() not in present), "")
    if missing:
        raise InputError(source.path, f"its table RefSpectra has no column '{missing}'", remedy="Write it again with BiblioSpec or Skyline")
    # Only names defined here are queried, never names from the file.
    columns = ", ".join(f"r.{name}" if name.lower() in present else "NULL" for name in _COLUMNS)
    query = (
        f"SELECT r.id, {columns}, p.peakMZ, p.peakIntensity FROM RefSpectra AS r"
        " LEFT JOIN RefSpectraPeaks AS p ON p.RefSpectraID = r.id ORDER BY r.id"
    )
    modifications = _Modifications(connection)
    proteins = _proteins(connection)
    n_spectra = max(1, _count(connection, "RefSpectra"))
    batch = _Batch()
    # Row by row: joined and unpacked data may be far larger than the file.
    for row in connection.execute(query):
        batch.add(_entry(library.n_read + len(batch.entries) + 1, row, modifications, proteins))
        if len(batch.entries) == _ROWS or batch.n_peaks > _PEAKS_AT_ONCE:
            source.unfolding.add(ENTRIES, len(batch.entries))
            batch.move_to(library)
            progress.check()
            progress.advance(source.size * len(batch.entries) // n_spectra)
            batch = _Batch()
    batch.move_to(library)


class _Batch:
    """Entries with their peaks, which are added to a library together."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._peaks: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self.n_peaks = 0

    def add(self, part: tuple[Entry, NDArray[np.float64], NDArray[np.float64]]) -> None:
        """Add an entry, given with the m/z and intensities of its peaks."""
        self.entries.append(part[0])
        self._peaks.append(part[1:])
        self.n_peaks += len(part[1])

    def move_to(self, library: LibraryCollector) -> None:
        """Add all entries to a library."""
        if self.entries:
            offsets = segment_offsets(np.array([len(mz) for mz, _ in self._peaks], np.int64))
            mz, height = (np.concatenate(parts) for parts in zip(*self._peaks, strict=True))
            library.add(self.entries, offsets, mz, height)


def _batches(cursor: sqlite3.Cursor) -> Iterator[list[Any]]:
    while rows := cursor.fetchmany(_ROWS):
        yield rows


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _check_number(connection: sqlite3.Connection, table: str, of_spectrum: int) -> None:
    """Raise an error if a table, whose rows are held in memory, has far more than `of_spectrum` rows per spectrum."""
    if _count(connection, table) > _FREE_ROWS + of_spectrum * _count(connection, "RefSpectra"):
        raise sqlite3.DataError(f"its table {table} has far more rows than its spectra can need")


class _Modifications:
    """Masses of modifications in full precision; the peptide text contains rounded masses."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._by_spectrum: dict[int, list[NotedModification]] = {}
        if computed_table(connection, ["Modifications"]):
            return
        _check_number(connection, "Modifications", _MAXIMUM_MODIFICATIONS)
        for batch in _batches(connection.execute("SELECT RefSpectraID, position, mass FROM Modifications")):
            for spectrum, position, mass in batch:
                if isinstance(spectrum, int) and isinstance(position, int) and isinstance(mass, float | int):
                    noted = self._by_spectrum.setdefault(spectrum, [])
                    if len(noted) < _MAXIMUM_MODIFICATIONS:
                        noted.append(NotedModification(position, "", float(mass)))

    def at_spectrum(self, spectrum: int) -> list[NotedModification]:
        """Return the modifications of a spectrum's peptide, sorted by position."""
        return sorted(self._by_spectrum.get(spectrum, ()))


def _proteins(connection: sqlite3.Connection) -> dict[int, list[str]]:
    """Return the protein accessions of each spectrum, by its identifier; empty if the library has no proteins."""
    if computed_table(connection, ("Proteins", "RefSpectraProteins")):
        return {}
    _check_number(connection, "Proteins", _PROTEINS_OF_SPECTRUM)
    _check_number(connection, "RefSpectraProteins", _PROTEINS_OF_SPECTRUM)
    accessions = {
        number: str(accession)[:_LONGEST_PROTEINS] for number, accession in connection.execute("SELECT id, accession FROM Proteins")
    }
    by_spectrum: dict[int, list[str]] = {}
    lengths: dict[int, int] = {}
    for batch in _batches(connection.execute("SELECT RefSpectraId, ProteinId FROM RefSpectraProteins")):
        for spectrum, protein in batch:
            if isinstance(spectrum, int) and protein in accessions and lengths.get(spectrum, 0) < _LONGEST_PROTEINS:
                by_spectrum.setdefault(spectrum, []).append(accessions[protein])
                lengths[spectrum] = lengths.get(spectrum, 0) + len(accessions[protein]) + 1
    return by_spectrum


def _entry(
    line: int, row: Any, modifications: _Modifications, proteins: dict[int, list[str]]
) -> tuple[Entry, NDArray[np.float64], NDArray[np.float64]]:
    """Return the library entry of a row of the SQL result, with the m/z and intensities of its peaks."""
    number, sequence, noted, charge, mz, minutes, n_peaks, copies, molecule, formula, inchikey, adduct, packed_mz, packed_intensity = row
    entry = Entry(line, str(noted or sequence or molecule or ""), proteins=proteins.get(number, []) if isinstance(number, int) else [])
    entry.formula, entry.inchikey, entry.adduct = (str(text or "") for text in (formula, inchikey, adduct))
    nothing = np.empty(0)
    if not (isinstance(charge, int) and isinstance(mz, float | int) and isinstance(n_peaks, int) and 0 <= n_peaks <= MAXIMUM_PEAKS):
        entry.issue = "one of its numbers is missing or is not a number"
        return entry, nothing, nothing
    entry.charge = charge if charge > -1000 and charge < 1000 else 1000
    if entry.charge > 0 and adduct_charge(entry.adduct) < 0:
        entry.charge = -entry.charge
    entry.precursor_mz = float(mz)
    if isinstance(minutes, float | int) and minutes > 0:
        entry.retention_time = 60.0 * minutes
    entry.n_members = copies if isinstance(copies, int) and 1 <= copies < 1e9 else 1
    if isinstance(sequence, str) and sequence:
        entry.issue = _take_peptide(entry, sequence, str(noted or ""), modifications.at_spectrum(number) if isinstance(number, int) else [])
    elif molecule:
        entry.name = str(molecule)
    entry.n_announced = n_peaks
    peaks = _unpacked(packed_mz, n_peaks, np.float64), _unpacked(packed_intensity, n_peaks, np.float32)
    if peaks[0] is None or peaks[1] is None:
        entry.issue = entry.issue or "its peaks are missing or cannot be unpacked"
        return entry, nothing, nothing
    return entry, peaks[0], peaks[1].astype(np.float64)


def _take_peptide(entry: Entry, sequence: str, noted: str, modifications: list[NotedModification]) -> str:
    try:
        peptide = parse_peptide(noted or sequence)
    except ValueError:
        return "its peptide cannot be read"
    if modifications and peptide.modifications:
        # The text has rounded masses, but the table has exact masses. Both assign modifications of termini to the adjacent residues.
        peptide = NotedPeptide(peptide.sequence, tuple(modifications))
    entry.peptide = peptide
    return ""


def _unpacked(packed: object, n: int, dtype: type[Scalar]) -> NDArray[Scalar] | None:
    """Return the `n` numbers in a binary value; None if it does not contain exactly `n` numbers."""
    if not isinstance(packed, bytes):
        return None
    size = n * np.dtype(dtype).itemsize
    if len(packed) != size:
        unpacker = zlib.decompressobj()
        try:
            packed = unpacker.decompress(packed, size + 1)
        except zlib.error:
            return None
        if len(packed) != size:
            return None
    return np.frombuffer(packed, np.dtype(dtype).newbyteorder("<")).astype(dtype)

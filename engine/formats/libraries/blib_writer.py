"""Writer of libraries as BiblioSpec's blib, version 1.10 of its schema, which Skyline reads.

The format (Frewen and MacCoss 2007, Curr. Protoc. Bioinformatics 13.7) does not store the ions of peaks.
"""

import sqlite3
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.creation_time import creation_time
from proteoscope.engine.files import atomic_path, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.spectra.library_entries import LibraryEntries
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR

__all__ = ["write_blib"]

_VERSION = (1, 10)
_Q_VALUE, _UNKNOWN = 19, 0
"""Codes of the score types GENERIC Q-VALUE and UNKNOWN."""
_PREDICTED = "predicted by Proteoscope"
"""Name of the source file of predicted entries."""
_SCHEMA = """
CREATE TABLE LibInfo(libLSID TEXT, createTime TEXT, numSpecs INTEGER, majorVersion INTEGER, minorVersion INTEGER);
CREATE TABLE RefSpectra (id INTEGER primary key autoincrement not null, peptideSeq VARCHAR(150), precursorMZ REAL, precursorCharge INTEGER,
 peptideModSeq VARCHAR(200), prevAA CHAR(1), nextAA CHAR(1), copies INTEGER, numPeaks INTEGER, ionMobility REAL,
 collisionalCrossSectionSqA REAL, ionMobilityHighEnergyOffset REAL, ionMobilityType TINYINT, retentionTime REAL, startTime REAL,
 endTime REAL, totalIonCurrent REAL, moleculeName VARCHAR(128), chemicalFormula VARCHAR(128), precursorAdduct VARCHAR(128),
 inchiKey VARCHAR(128), otherKeys VARCHAR(128), fileID INTEGER, SpecIDinFile VARCHAR(256), score REAL, scoreType TINYINT);
CREATE TABLE Modifications (id INTEGER primary key autoincrement not null, RefSpectraID INTEGER, position INTEGER, mass REAL);
CREATE TABLE RefSpectraPeaks (RefSpectraID INTEGER, peakMZ BLOB, peakIntensity BLOB);
CREATE TABLE SpectrumSourceFiles (id INTEGER PRIMARY KEY autoincrement not null, fileName VARCHAR(512), idFileName VARCHAR(512),
 cutoffScore REAL, workflowType TINYINT);
CREATE TABLE ScoreTypes (id INTEGER PRIMARY KEY, scoreType VARCHAR(128), probabilityType VARCHAR(128));
CREATE TABLE IonMobilityTypes (id INTEGER PRIMARY KEY, ionMobilityType VARCHAR(128));
CREATE TABLE Proteins (id INTEGER primary key autoincrement not null, accession VARCHAR(200));
CREATE TABLE RefSpectraProteins (RefSpectraId INTEGER not null, ProteinId INTEGER not null);
"""
_INDEXES = """
CREATE INDEX idxPeptide ON RefSpectra (peptideSeq, precursorCharge);
CREATE INDEX idxPeptideMod ON RefSpectra (peptideModSeq, precursorCharge);
CREATE INDEX idxRefIdPeaks ON RefSpectraPeaks (RefSpectraID);
"""
_SPECTRUM = (
    "INSERT INTO RefSpectra (id, peptideSeq, precursorMZ, precursorCharge, peptideModSeq, prevAA, nextAA, copies, numPeaks,"
    " ionMobilityType, retentionTime, totalIonCurrent, fileID, SpecIDinFile, score, scoreType)"
    " VALUES (?, ?, ?, ?, ?, '-', '-', ?, ?, 0, ?, ?, ?, ?, ?, ?)"
)


def write_blib(out: Path, batches: Iterable[LibraryEntries], progress: Progress) -> None:
    """Write a library to the file `out` atomically.

    Parameters
    ----------
    out : Path
        File to write.
    batches : iterable of LibraryEntries
        Entries of the library, in batches.
    progress : Progress
        Progress, which receives the number of entries written and is checked for cancellation.

    Raises
    ------
    StorageError
        If the disk is full or cannot be written.
    Cancelled
        If the user cancels.
    """
    with atomic_path(out) as path, storage_errors(out):
        try:
            with closing(sqlite3.connect(path)) as connection:
                # The file has a temporary name until it is complete: no journal is needed.
                connection.execute("PRAGMA journal_mode = OFF")
                connection.execute("PRAGMA synchronous = OFF")
                connection.executescript(_SCHEMA)
                n = _insert(connection, batches, progress)
                connection.executescript(_INDEXES)
                created = f"{creation_time():%a %b %d %H:%M:%S %Y}"
                identifier = f"urn:lsid:proteoscope:spectral_library:bibliospec:nr:{uuid.uuid4().hex}"
                connection.execute("INSERT INTO LibInfo VALUES (?, ?, ?, ?, ?)", (identifier, created, n, *_VERSION))
                connection.commit()
        except sqlite3.Error as error:
            raise OSError(str(error)) from error


def _insert(connection: sqlite3.Connection, batches: Iterable[LibraryEntries], progress: Progress) -> int:
    """Insert all entries and return their number."""
    scores = (
        (_UNKNOWN, "UNKNOWN", "NOT_A_PROBABILITY_VALUE"),
        (_Q_VALUE, "GENERIC Q-VALUE", "PROBABILITY_THAT_IDENTIFICATION_IS_INCORRECT"),
    )
    connection.executemany("INSERT INTO ScoreTypes VALUES (?, ?, ?)", scores)
    connection.execute("INSERT INTO IonMobilityTypes VALUES (0, 'none')")
    n, proteins = 0, dict[str, int]()
    files: tuple[str, ...] = (_PREDICTED,)
    for entries in batches:
        progress.check()
        files = entries.files or files
        rows = list(_rows(entries, n))
        connection.executemany(_SPECTRUM, [row[0] for row in rows])
        connection.executemany("INSERT INTO RefSpectraPeaks VALUES (?, ?, ?)", [row[1] for row in rows])
        modifications = [modification for row in rows for modification in row[2]]
        connection.executemany("INSERT INTO Modifications (RefSpectraID, position, mass) VALUES (?, ?, ?)", modifications)
        links = [
            (n + i, proteins.setdefault(accession, len(proteins) + 1))
            for i, text in enumerate(entries.proteins.to_pylist(), 1)
            for accession in dict.fromkeys((text or "").split(PROTEIN_SEPARATOR))
            if accession
        ]
        connection.executemany("INSERT INTO RefSpectraProteins VALUES (?, ?)", links)
        n += len(entries)
        progress.advance(len(entries))
    source_files = [(number, file) for number, file in enumerate(files, 1)]
    connection.executemany("INSERT INTO SpectrumSourceFiles VALUES (?, ?, '', NULL, 0)", source_files)
    connection.executemany("INSERT INTO Proteins VALUES (?, ?)", [(number, accession) for accession, number in proteins.items()])
    return n


def _rows(entries: LibraryEntries, before: int) -> Iterator[tuple[tuple[Any, ...], tuple[int, bytes, bytes], list[tuple[int, int, float]]]]:
    """Yield, for each entry, its rows in the tables of spectra, peaks and modifications.

    `before` is the number of entries that were written before.
    """
    placed, precursor_mz, score = entries.modifications, entries.precursor_mz.tolist(), entries.q_value
    minutes = np.where(np.isnan(entries.retention_time), 0.0, entries.retention_time / 60.0).tolist()
    file = (entries.file + 1).tolist() if len(entries.file) else [1] * len(entries)
    mz, intensity = entries.mz.astype("<f8"), entries.intensity.astype("<f4")
    for i, sequence in enumerate(entries.sequence.to_pylist()):
        number, sites = before + i + 1, slice(placed.offsets[i], placed.offsets[i + 1])
        peaks = slice(entries.offsets[i], entries.offsets[i + 1])
        # BiblioSpec has no termini: their modifications are assigned to the adjacent residues.
        at = np.clip(placed.position[sites], 1, len(sequence)).tolist()
        noted = [(number, position, placed.masses[kind]) for position, kind in zip(at, placed.kind[sites].tolist(), strict=True)]
        is_known = not np.isnan(score[i])
        spectrum = (
            number,
            sequence,
            precursor_mz[i],
            int(entries.charge[i]),
            _modified(sequence, noted),
            int(entries.n_members[i]),
            int(peaks.stop - peaks.start),
            minutes[i],
            float(intensity[peaks].sum()),
            file[i],
            str(number),
            float(score[i]) if is_known else 0.0,
            _Q_VALUE if is_known else _UNKNOWN,
        )
        yield spectrum, (number, _packed(mz[peaks].tobytes()), _packed(intensity[peaks].tobytes())), noted


def _modified(sequence: str, noted: list[tuple[int, int, float]]) -> str:
    """Return the peptide with the masses of modifications to one decimal, such as ``C[+57.0]``."""
    if not noted:
        return sequence
    masses: dict[int, float] = {}
    for _, position, mass in noted:
        masses[position] = masses.get(position, 0.0) + mass
    return "".join(f"{residue}[{masses[at]:+.1f}]" if at in masses else residue for at, residue in enumerate(sequence, 1))


def _packed(content: bytes) -> bytes:
    """Compress numbers if that makes them shorter, as BiblioSpec does; readers recognise uncompressed data by their size."""
    packed = zlib.compress(content, 6)
    return packed if len(packed) < len(content) else content

"""Names planted in input files of every format: how readers read them, and how writers and readers pass them on.

A format can hold some of the names; they are read unchanged, except that unprintable characters are escaped
(`proteoscope.engine.escaped_names`), counted in a warning. Others are rejected in a sentence. Different names stay different.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.escaped_names import escape_unprintable
from proteoscope.engine.formats import read_proteins, read_spectra
from proteoscope.engine.formats.fastq import read_fastq
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.formats.libraries.writing import write_library
from proteoscope.engine.imported.reading import read_identifications
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from tests.engine.formats.libraries.written import entries
from tests.engine.imported import small_results
from tests.fuzz.libraries import json_libraries

LONE_SURROGATE = "a\ud800b"
_PEAKS = "150.1 5\n250.2 7\n350.3 9\n"


class NamedInput(NamedTuple):
    """A format: a function that writes a file with a name, and one that reads the names."""

    write: Callable[[Path, str], None]
    read: Callable[[Path, Progress], Sequence[str]]


def _fasta(path: Path, name: str) -> None:
    path.write_bytes(b">" + name.encode("utf-8", "surrogatepass") + b"\nMKWVTFISLLLLFSSAYSR\n>other\nMKAAAAK\n")


def _fastq(path: Path, name: str) -> None:
    path.write_bytes(b"@" + name.encode("utf-8", "surrogatepass") + b"\nACGT\n+\nIIII\n")


def _mgf(path: Path, name: str) -> None:
    path.write_bytes(
        b"BEGIN IONS\nTITLE=" + name.encode("utf-8", "surrogatepass") + f"\nPEPMASS=500\nCHARGE=2+\n{_PEAKS}END IONS\n".encode()
    )


def _results(format: str, place: str) -> Callable[[Path, str], None]:
    """Write results of another program, in which the name is that of a protein, or of `place`."""

    def write(path: Path, name: str) -> None:
        text = small_results.FORMATS[format][1]()
        is_xml = format in ("mzidentml", "pepxml", "idxml", "xtandem")
        quoted = (quoteattr if '"P1"' in place else escape)(name, {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}) if is_xml else name
        text = re.sub(place, lambda match: match[0].replace(match[1], quoted), text)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))

    return write


def _msp(path: Path, name: str) -> None:
    text = f'Name: PEPTIDEK/2\nMW: 900\nComment: Mods=0 Parent=464.7 Protein="1/{name}"\nNum peaks: 3\n147.11\t100\n200.2\t20\n300\t5\n\n'
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _mzspeclib(path: Path, name: str) -> None:
    attributes = f"MS:1000885|protein accession={name}\nMS:1003270|proforma peptidoform ion notation=PEPTIDEK/2\n"
    text = (
        "<mzSpecLib>\nMS:1003186|library format version=1.0\nMS:1003188|library name=x\n<Spectrum=1>\nMS:1003061|library spectrum name=x\n"
        f"MS:1000744|selected ion m/z=464.7\nMS:1003059|number of peaks=3\n<Analyte=1>\n{attributes}MS:1000041|charge state=2\n"
        "<Peaks>\n147.11\t100\t?\n200.2\t20\t?\n300\t5\t?\n\n"
    )
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _mzspeclib_json(path: Path, name: str) -> None:
    library = json.loads(json_libraries()[0])
    library["spectra"][0]["analytes"]["1"]["attributes"].append({"accession": "MS:1000885", "name": "protein accession", "value": name})
    path.write_text(json.dumps(library), encoding="ascii")


def _blib(path: Path, name: str) -> None:
    write_library(path, iter([entries(2, 3)]), "blib", Progress())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM RefSpectraProteins")
        connection.execute("DELETE FROM Proteins")
        connection.execute("INSERT INTO Proteins VALUES (1, ?)", (name,))
        connection.execute("INSERT INTO RefSpectraProteins VALUES (1, 1)")


def _accessions(path: Path, progress: Progress) -> Sequence[str]:
    proteins = read_proteins([path], progress=progress)
    return [name for name in map(proteins.accession, range(len(proteins))) if name != "other"]


def _read_names(path: Path, progress: Progress) -> Sequence[str]:
    return read_fastq(path, progress=progress).names.strings()


def _titles(path: Path, progress: Progress) -> Sequence[str]:
    return read_spectra([path], progress=progress).identifier


def _found_proteins(path: Path, progress: Progress) -> Sequence[str]:
    database = set(small_results.DATABASE)
    return [accession for accession in read_identifications([path], progress).accessions if accession not in database]


def _library_proteins(path: Path, progress: Progress) -> Sequence[str]:
    texts = read_libraries([path], progress).proteins.to_pylist()
    return list(dict.fromkeys(name for text in texts if text for name in text.split(PROTEIN_SEPARATOR)))


INPUTS: dict[str, NamedInput] = {
    "fasta": NamedInput(_fasta, _accessions),
    "fastq": NamedInput(_fastq, _read_names),
    "mgf": NamedInput(_mgf, _titles),
    "mzidentml": NamedInput(_results("mzidentml", r'accession=("P1")'), _found_proteins),
    "pepxml": NamedInput(_results("pepxml", r'protein=("P1")'), _found_proteins),
    "idxml": NamedInput(_results("idxml", r'accession=("P1")'), _found_proteins),
    "xtandem": NamedInput(_results("xtandem", r'description">(P1) protein'), _found_proteins),
    "percolator": NamedInput(_results("percolator", r"(?<=\t)(P3)(?=[\t\n])"), _found_proteins),
    "maxquant": NamedInput(_results("maxquant", r"(?<=\t)(P3)(?=[\t\n])"), _found_proteins),
    "mztab": NamedInput(_results("mztab", r"(?<=\t)(P3)(?=[\t\n])"), _found_proteins),
    "msp": NamedInput(_msp, _library_proteins),
    "mzspeclib": NamedInput(_mzspeclib, _library_proteins),
    "mzspeclib.json": NamedInput(_mzspeclib_json, _library_proteins),
    "blib": NamedInput(_blib, _library_proteins),
}
_FILES = {
    "fasta": "x.fasta",
    "fastq": "x.fastq",
    "mgf": "x.mgf",
    "msp": "x.msp",
    "mzspeclib": "x.mzspeclib.txt",
    "mzspeclib.json": "x.mzspeclib.json",
    "blib": "x.blib",
}


class Outcome(NamedTuple):
    """Outcome of reading a name: the names that were read, or why the file was rejected, and if escapes were reported."""

    names: Sequence[str]
    refusal: str
    has_warned: bool


def read_name(format: str, folder: Path, name: str) -> Outcome:
    """Write a file with a name, and read it."""
    path = folder / _FILES.get(format, small_results.FORMATS.get(format, ("", None))[0])
    written = INPUTS[format]
    try:
        written.write(path, name)
    except UnicodeEncodeError:
        return Outcome((), "cannot be written", has_warned=False)
    progress = RecordingProgress(Progress())
    try:
        names = written.read(path, progress)
    except ProteoscopeError as error:
        assert len(str(error).splitlines()) == 1, str(error)
        return Outcome((), str(error), has_warned=False)
    return Outcome(names, "", any("percent signs" in text for text in progress.messages))


def check_name(format: str, folder: Path, name: str) -> Outcome:
    """Check the outcome of reading a name.

    Raises
    ------
    AssertionError
        A name that was read has unprintable characters, or was changed without a warning.
    """
    outcome = read_name(format, folder, name)
    for stored in outcome.names:
        stored.encode()
        assert escape_unprintable(stored) == stored, f"{name!r:.100} is read as {stored!r:.100}"
    if name not in outcome.names and escape_unprintable(name) in outcome.names:
        assert outcome.has_warned, f"{name!r:.100} is escaped without a warning"
    return outcome

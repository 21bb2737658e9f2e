"""Spectral libraries to corrupt, and their reading: every entry must be valid, and an index made of it is opened again."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.formats.libraries.writing import write_library
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import load_references, save_references
from tests.engine.formats.libraries import test_readers as samples
from tests.engine.formats.libraries.written import entries

__all__ = ["WORDS", "binary_libraries", "json_libraries", "read_library", "text_libraries"]

_FEW = 2  # entries: an error in any one matters


def _written(format: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library"
        write_library(path, iter([entries(_FEW, 3)]), format, Progress())
        if format == "blib":  # its name and time differ in each library
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE LibInfo SET libLSID = ?, createTime = ?", ("urn:lsid:library", "Thu Jan 01 00:00:00 2026"))
                connection.commit()
                connection.execute("VACUUM")
        return path.read_bytes()


MS_DIAL = (
    "NAME: Glucose; LC-ESI-QTOF; MS2\nPRECURSORMZ: 181.0707\nPRECURSORTYPE: [M+H]+\nIONMODE: Positive\nFORMULA: C6H12O6\n"
    "INCHIKEY: WQZGKKKJIJFFOK-GASJEMHNSA-N\nRETENTIONTIME: 2.5\nCCS: 140.1\nComment: DB#=1; origin=x\nNum Peaks: 3\n85.03\t10\n127.04\t20\n"
    "163.06\t999\n\nNAME: Citrate\nPRECURSORMZ: 191.0197\nPRECURSORTYPE: [M-H]-\nIONMODE: Negative\nNum Peaks: 2\n87.01\t5\n111.01\t99\n"
)
SPTXT = (
    "### SpectraST library\n###\nName: n[43]AC[160]M[147]K/2\nLibID: 0\nMW: 600.2\nPrecursorMZ: 301.1\nStatus: Normal\n"
    "FullName: K.ACMK.R/2\n"
    "Comment: AvePrecursorMz=301.4 Mods=3/-1,A,Acetyl/1,C,Carbamidomethyl/2,M,Oxidation Nreps=3/4 Protein=2/P1,P2 "
    "RetentionTime=100.5,101,100\nNumPeaks: 3\n147.11\t100\ty1/0.01\t3/3 0.1\n200.2\t20.5\t?\t2/3 0.2\n294.15\t5\tb2\t3/3 0.1\n\n"
    "Name: PEK/2\nLibID: 1\nMW: 372.2\nPrecursorMZ: 187.1\nStatus: Decoy\nComment: Remark=DECOY_PEK Spec=Decoy Mods=0\n"
    "NumPeaks: 2\n147.11\t7\t?\n"
    "98.06\t1\t?\n"
)
DIA_NN = (
    "ModifiedPeptide\tStrippedPeptide\tPrecursorCharge\tPrecursorMz\tTr_recalibrated\tProductMz\tLibraryIntensity\tUniprotID\tdecoy\n"
    "_AC(UniMod:4)K_\tACK\t2\t300.2\t12.5\t147.1\t1\tP1\t0\n_AC(UniMod:4)K_\tACK\t2\t300.2\t12.5\t260.2\t0.1\tP1\t0\n"
    "PEK\tPEK\t2\t187.1\t-3\t147.1\t0.5\tP2;P3\t1\n"
)
SPECTRONAUT = (
    "PrecursorCharge\tModifiedPeptide\tStrippedPeptide\tiRT\tPrecursorMz\tFragmentMz\tRelativeIntensity\tFragmentType\tProteinGroups\n"
    "2\t_[Acetyl (Protein N-term)]AC[Carbamidomethyl (C)]K_\tACK\t-5.5\t300.2\t147.1\t100\ty\tP1\n"
    "2\t_[Acetyl (Protein N-term)]AC[Carbamidomethyl (C)]K_\tACK\t-5.5\t300.2\t260.2\t10\ty\tP1\n3\t_PEK_\tPEK\t3\t125.1\t147.1\t5\ty\tP2\n"
)
_MSP_WORDS = (b"Name: ", b"Num peaks: 3", b"Comment: Mods=1/0,A,Acetyl", b"1 1;", b"[+1e9]", b"Nreps=1e99", b'"', b"\t", b"/99", b"Mods=9/")
_TABLE_WORDS = (
    b"\t",
    b"\n",
    b"nan",
    b"-1",
    b"1e999",
    b"PrecursorMz\t",
    b"(UniMod:9999999)",
    b"[+1e9]",
    b'"',
    b"_",
    b"PrecursorCharge",
    b"\0",
)
WORDS: dict[str, tuple[bytes, ...]] = {
    "msp": _MSP_WORDS,
    "msdial": (*_MSP_WORDS, b"PRECURSORTYPE: [M+999H]999-", b"INCHIKEY: ", b"IONMODE: Negative", b"RETENTIONTIME: 1e99 min"),
    "sptxt": (*_MSP_WORDS, b"n[43]", b"C[1e5]", b"Protein=999/", b"RetentionTime=,,", b"Remark=DECOY"),
    "mgf": (b"BEGIN IONS", b"END IONS", b"SEQ=", b"CHARGE=", b"PEPMASS=", b"[+1e9]", b"(UniMod:35)", b"nan", b"SEQ=C[", b"-"),
    "mzspeclib": (
        b"<Spectrum=1>",
        b"<Peaks>",
        b"<Analyte=2>",
        b"MS:1003270|x=",
        b"<AttributeSet Spectrum=all>",
        b"<Mods>",
        b"[1]MS:1003270|x=A/2",
        b"<AttributeSet Analyte=",
        b"MS:1003212|",
        b"1 1;",
        b"\t",
    ),
    "diann": _TABLE_WORDS,
    "spectronaut": _TABLE_WORDS,
}
"""Building blocks of each text format, and content that is difficult for readers."""


def text_libraries(name: str) -> list[bytes]:
    """Generate libraries in a text format."""
    texts = {
        "msp": (samples.MSP,),
        "msdial": (MS_DIAL,),
        "sptxt": (SPTXT,),
        "mgf": (samples.MGF,),
        "mzspeclib": (samples.SPECLIB,),
        "diann": (DIA_NN,),
        "spectronaut": (SPECTRONAUT,),
    }
    made = [_written(name)] if name in ("msp", "mzspeclib") else []
    return [*(text.encode() for text in texts[name]), *made]


def json_libraries() -> list[bytes]:
    """Generate mzSpecLib as JSON."""

    def said(accession: str, name: str, value: object) -> dict[str, object]:
        return {"accession": accession, "name": name, "value": value}

    ion = said("MS:1003270", "proforma peptidoform ion notation", "AK/2")
    spectrum = {
        "attributes": [said("MS:1003061", "library spectrum name", "AK/2"), said("MS:1000744", "selected ion m/z", 109.6)],
        "mzs": [72.0, 147.1],
        "intensities": [1.0, 2.0],
        "analytes": {"1": {"id": "1", "attributes": [ion]}},
    }
    head = {"format_version": "1.0", "attributes": [said("MS:1003186", "library format version", "1.0")]}
    return [json.dumps({**head, "spectra": [spectrum] * n}, indent=1).encode() for n in (1, 2)]


def binary_libraries() -> list[bytes]:
    """Generate a BiblioSpec library."""
    return [_written("blib")]


def read_library(path: Path, chance: random.Random) -> int:
    """Read a library and, half of the time, make an index of it as a search does."""
    library = read_libraries([path])
    n = len(library)
    assert n > 0 and library.offsets[0] == 0 and (np.diff(library.offsets) > 0).all() and library.offsets[-1] == len(library.mz)
    assert np.isfinite(library.mz).all() and (library.intensity > 0).all() and np.isfinite(library.intensity).all()
    inner = np.ones(len(library.mz), np.bool_)
    inner[library.offsets[:-1]] = False
    assert (np.diff(library.mz, prepend=0.0)[inner] >= 0).all()
    for name in ("name", "peptidoform", "sequence", "proteins", "formula", "inchikey", "adduct"):
        column = getattr(library, name)
        column.validate(full=True)
        assert len(column) == n
    if chance.random() < 0.5:
        parameters = LibrarySearchParameters().changed(minimum_peaks=1, decoys_per_peptide=3)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            save_references(library, Path(folder), parameters, Resources(1))
            assert len(load_references(Path(folder)))
    return n

"""Spectral libraries to break, and how one is read: every entry sound, and an index made of it that is opened again."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from engine.execution.resources import Resources
from engine.formats.libraries.reading import read_libraries
from engine.formats.libraries.writing import write_library
from engine.jobs.progress import Progress
from engine.library_search.parameters import LibrarySearchParameters
from engine.library_search.references import load_references, save_references
from tests.engine.formats.libraries import test_readers as samples
from tests.engine.formats.libraries.written import entries

__all__ = ["binary_libraries", "json_libraries", "read_library", "text_libraries"]

_FEW = 2  # entries: what breaks one of them matters


def _written(format: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library"
        write_library(path, iter([entries(_FEW, 3)]), format, Progress())
        if format == "blib":  # its name and the time at which it was made are others each time
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE LibInfo SET libLSID = ?, createTime = ?", ("urn:lsid:library", "Thu Jan 01 00:00:00 2026"))
                connection.commit()
                connection.execute("VACUUM")
        return path.read_bytes()


def text_libraries() -> list[bytes]:
    """MSP, MGF, mzSpecLib and tables of transitions."""
    return [
        *(text.encode() for text in (samples.MSP, samples.MGF, samples.SPECLIB)), *map(_written, ("msp", "mzspeclib")),
        b"PrecursorMz\tPrecursorCharge\tModifiedPeptide\tProductMz\tLibraryIntensity\tProteinName\n"
        b"300.2\t2\tAC(UniMod:4)K\t147.1\t1000\tP1\n300.2\t2\tAC(UniMod:4)K\t260.2\t10\tP1\n400.2\t2\tPEK\t147.1\t5\tP2\n",
    ]  # fmt: skip


def json_libraries() -> list[bytes]:
    """mzSpecLib as JSON."""

    def said(accession: str, name: str, value: object) -> dict[str, object]:
        return {"accession": accession, "name": name, "value": value}

    ion = said("MS:1003270", "proforma peptidoform ion notation", "AK/2")
    spectrum = {
        "attributes": [said("MS:1003061", "library spectrum name", "AK/2"), said("MS:1000744", "selected ion m/z", 109.6)],
        "mzs": [72.0, 147.1], "intensities": [1.0, 2.0], "analytes": {"1": {"id": "1", "attributes": [ion]}},
    }  # fmt: skip
    head = {"format_version": "1.0", "attributes": [said("MS:1003186", "library format version", "1.0")]}
    return [json.dumps({**head, "spectra": [spectrum] * n}, indent=1).encode() for n in (1, 2)]


def binary_libraries() -> list[bytes]:
    """blib."""
    return [_written("blib")]


def read_library(path: Path, chance: random.Random) -> int:
    """Read a library, and half of the time make an index of it, as a search does."""
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
        parameters = LibrarySearchParameters().changed(minimum_peaks=1)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            save_references(library, Path(folder), parameters, Resources(1))
            assert len(load_references(Path(folder)))
    return n

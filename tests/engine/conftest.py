"""Shared fixtures: writers of small spectrum files by the format specifications, databases, scoring schemes and an independent aligner."""

from __future__ import annotations

import base64
import shutil
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.sequences.matrices import SYMBOLS, encode, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme

MZ = (100.5, 200.25, 300.125)
INTENSITY = (10.0, 20.0, 30.0)
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


def term(accession: str, value: object = "", unit: str = "") -> str:
    return f'<cvParam cvRef="MS" accession="{accession}" name="x" value="{value}"' + (f' unitAccession="{unit}"' if unit else "") + "/>"


def binary_array(kind: str, data: bytes, terms: tuple[str, ...]) -> str:
    text = base64.b64encode(data).decode()
    inner = "".join(term(t) for t in (*terms, kind))
    return f'<binaryDataArray encodedLength="{len(text)}">{inner}<binary>{text}</binary></binaryDataArray>'


def mzml_spectrum(
    index: int = 0,
    *,
    name: str | None = None,
    level: str = "2",
    mz: tuple[float, ...] = MZ,
    intensity: tuple[float, ...] = INTENSITY,
    length: int | None = None,
    arrays: str | None = None,
    zipped: bool = False,
    dtypes: tuple[str, str] = ("<f8", "<f4"),
    mode: str = "MS:1000127",
    time: str = term("MS:1000016", "1.5", "UO:0000031"),
    ions: str = term("MS:1000744", "500.25") + term("MS:1000041", "2") + term("MS:1000042", "1000"),
    precursors: str | None = None,
    extra: str = "",
) -> str:
    types = {"<f8": "MS:1000523", "<f4": "MS:1000521", "<i8": "MS:1000522", "<i4": "MS:1000519"}
    if arrays is None:
        arrays = ""
        for kind, values, dtype in zip(("MS:1000514", "MS:1000515"), (mz, intensity), dtypes, strict=True):
            data = np.array(values).astype(dtype).tobytes()
            arrays += binary_array(kind, zlib.compress(data) if zipped else data, (types[dtype], "MS:1000574" if zipped else "MS:1000576"))
    if precursors is None:
        precursors = f"<precursor><selectedIonList><selectedIon>{ions}</selectedIon></selectedIonList></precursor>" if ions else ""
    return (
        f'<spectrum index="{index}" id="{name or f"controllerType=0 controllerNumber=1 scan={index + 1}"}" '
        f'defaultArrayLength="{length if length is not None else len(mz)}">'
        f"{term('MS:1000511', level) if level else ''}{term(mode) if mode else ''}{extra}"
        f'<scanList count="1"><scan>{time}</scan></scanList>'
        f"<precursorList>{precursors}</precursorList><binaryDataArrayList>{arrays}</binaryDataArrayList></spectrum>\n"
    )


def mzml(*spectra: str, header: str = "", declaration: str = '<?xml version="1.0" encoding="utf-8"?>') -> str:
    return (
        f'{declaration}\n<mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0">{header}<run id="r">'
        f'<spectrumList count="{len(spectra)}">\n{"".join(spectra)}</spectrumList></run></mzML>\n'
    )


def mzxml_scan(
    number: int, *, level: int = 2, peaks: str | None = None, attributes: str = "", inner: str = "", zipped: bool = False
) -> str:
    data = b"".join(struct.pack(">ff", m, i) for m, i in zip(MZ, INTENSITY, strict=True))
    data = zlib.compress(data) if zipped else data
    packing = f'compressionType="zlib" compressedLen="{len(data)}"' if zipped else 'compressionType="none" compressedLen="0"'
    text = base64.b64encode(data).decode()
    if peaks is None:
        peaks = f'<peaks precision="32" byteOrder="network" contentType="m/z-int" {packing}>{text}</peaks>'
    precursor = '<precursorMz precursorIntensity="7.5" precursorCharge="3"> 600.5 </precursorMz>' if level == 2 else ""
    count = "" if "peaksCount" in attributes else 'peaksCount="3"'
    return f'<scan num="{number}" msLevel="{level}" {count} retentionTime="PT1M2.5S" {attributes}>{precursor}{peaks}{inner}</scan>\n'


def mzxml(*scans: str) -> str:
    return f'<?xml version="1.0"?>\n<mzXML><msRun scanCount="{len(scans)}">{"".join(scans)}</msRun></mzXML>\n'


@pytest.fixture(scope="session")
def explained_once(tmp_path_factory: pytest.TempPathFactory, identified_once: Path) -> tuple[Path, str, str]:
    """Return a project with the identification and explanation of the sample of `demo`, and both runs.

    It is made once for all tests of a process, which use copies.
    """
    folder = Path(shutil.copytree(identified_once, tmp_path_factory.mktemp("explained-once") / "project"))
    done = run_search("explain", {"project": [folder]}, device="cpu", threads=2, bin_width=0.4, bin_spread=0.5, rare_peak_weight=0.5)
    identified = Project.open(folder).latest("identify")
    assert identified is not None and done.run_id is not None
    return folder, identified, done.run_id


class Make:
    """Return writers of small files for tests."""

    mz, intensity = MZ, INTENSITY
    term = staticmethod(term)
    binary_array = staticmethod(binary_array)
    mzml_spectrum = staticmethod(mzml_spectrum)
    mzml = staticmethod(mzml)
    mzxml_scan = staticmethod(mzxml_scan)
    mzxml = staticmethod(mzxml)


@pytest.fixture
def make() -> type[Make]:
    return Make


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write a text or bytes to a file in a fresh folder."""

    def write(content: str | bytes, name: str = "file.txt", **_: Any) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def scheme():
    return lambda matrix="BLOSUM62", gap_open=11, gap_extend=1: ScoringScheme(read_matrix(matrix), gap_open, gap_extend)


@pytest.fixture
def codes():
    return lambda text: encode(np.frombuffer(text.encode(), np.uint8))


@pytest.fixture(scope="session")
def random_protein():
    def protein(seed: int, length: int, residues: str = AMINO_ACIDS) -> str:
        return "".join(np.random.default_rng(seed).choice(list(residues), length))

    return protein


def write_fasta(path: Path, records: Iterable[tuple[str, str]]) -> Path:
    """Write entries, each a header and a sequence, and return the path."""
    path.write_text("".join(f">{header}\n{sequence}\n" for header, sequence in records))
    return path


@pytest.fixture
def fasta(tmp_path):
    return lambda name, records: write_fasta(tmp_path / name, records)


@pytest.fixture
def independent_score():
    """Return scores of Biopython's aligner, with residues that it lacks replaced as documented."""
    from Bio.Align import PairwiseAligner
    from Bio.Align.substitution_matrices import Array

    def score(query: str, subject: str, scheme: ScoringScheme) -> int:
        matrix = Array(SYMBOLS, dims=2, data=scheme.matrix.scores.astype(float))
        aligner = PairwiseAligner(mode="local", substitution_matrix=matrix)
        aligner.open_gap_score, aligner.extend_gap_score = -scheme.first_residue_cost, -scheme.gap_extend
        return int(aligner.score(query, subject))

    return score

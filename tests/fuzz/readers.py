"""Mutated inputs for each reader: any file is read correctly, or rejected with an error of this program, within limits of time and memory.

    python -m tests.fuzz.readers --cases 20000 --reader mzml
    python -m tests.fuzz.readers --seed 7 --cases 1 --first 1234 --reader mgf --keep FOLDER

Each case is a small valid file that is changed at the boundaries of its format (records, lines, tags, numbers, arrays, encodings) and read
in another process. Reading may take 500 MB of memory more than the program itself, and 5 seconds of CPU time. A process reads many cases;
if it dies, another process continues with the next case. A case depends only on the reader, the seed and its number. ``--keep`` writes the
cases that failed, or, with ``--all``, every case. Prints a JSON line for each reader; the exit code is 1 if any case failed.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import contextlib
import gzip
import json
import os
import random
import re
import resource
import struct
import sys
import tempfile
import threading
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import numpy as np

from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.execution.heap import limit_retained_memory
from proteoscope.engine.formats import read_proteins, read_spectra
from proteoscope.engine.formats.reporter_regions import read_reporter_regions
from proteoscope.engine.formats.spectrum_blocks import MAXIMUM_INTENSITY, MAXIMUM_MZ, MAXIMUM_SECONDS
from proteoscope.engine.quantification.isobaric import ms3_spectra
from tests.engine.formats import entry_files
from tests.engine.imported import small_results
from tests.engine.structures import examples
from tests.fuzz import libraries
from tests.fuzz.places import IN_MEMORY

REPOSITORY = Path(__file__).resolve().parents[2]
MEMORY_BYTES, PROCESSOR_SECONDS = 500 << 20, 5
CASES_OF_A_PROCESS = 1000
LONGEST_MESSAGE = 2000

# --- Valid files to be mutated -----------------------------------------------------------------------------------------------------------


def _term(accession: str, value: object = "", unit: str = "") -> str:
    return f'<cvParam cvRef="MS" accession="{accession}" name="x" value="{value}"' + (f' unitAccession="{unit}"' if unit else "") + "/>"


def _array(kind: str, values: np.ndarray, packing: str = "MS:1000576") -> str:
    data = values.tobytes()
    if packing != "MS:1000576":
        data = zlib.compress(data)
    text = base64.b64encode(data).decode()
    terms = _term({"f8": "MS:1000523", "f4": "MS:1000521"}[values.dtype.str[1:]]) + _term(packing) + _term(kind)
    return f'<binaryDataArray encodedLength="{len(text)}">{terms}<binary>{text}</binary></binaryDataArray>'


def _mzml_spectrum(number: int, packing: str, dtype: str = "<f8") -> str:
    mz = np.linspace(100.5, 900.25, 20 + number)
    arrays = _array("MS:1000514", mz.astype(dtype), packing) + _array("MS:1000515", np.sqrt(mz).astype("<f4"), packing)
    ions = _term("MS:1000744", 500.25 + number) + _term("MS:1000041", 2) + _term("MS:1000042", 1e5)
    return (
        f'<spectrum index="{number}" id="controllerType=0 controllerNumber=1 scan={number + 1}" defaultArrayLength="{len(mz)}">'
        f'<referenceableParamGroupRef ref="common"/>{_term("MS:1000511", 2)}{_term("MS:1000127")}<scanList count="1"><scan>'
        f"{_term('MS:1000016', 1.5 + number, 'UO:0000031')}</scan></scanList><precursorList count='1'><precursor><isolationWindow>"
        f"{_term('MS:1000827', 500)}</isolationWindow><selectedIonList><selectedIon>{ions}</selectedIon></selectedIonList></precursor>"
        f'</precursorList><binaryDataArrayList count="2">{arrays}</binaryDataArrayList></spectrum>\n'
    )


def _mzml() -> list[bytes]:
    files = []
    for packing, dtype in (("MS:1000576", "<f8"), ("MS:1000574", "<f4")):
        spectra = "".join(_mzml_spectrum(i, packing, dtype) for i in range(3))
        files.append(
            '<?xml version="1.0" encoding="utf-8"?>\n<!-- made for tests -->\n<indexedmzML><mzML version="1.1.0"><cvList count="1"/>'
            f'<referenceableParamGroupList><referenceableParamGroup id="common">{_term("MS:1000130")}</referenceableParamGroup>'
            f'</referenceableParamGroupList><run id="r"><spectrumList count="3">\n{spectra}</spectrumList><chromatogramList count="1">'
            '<chromatogram id="TIC"/></chromatogramList></run></mzML><indexList><offset idRef="x">12</offset></indexList></indexedmzML>\n'
        )
    # Numpress: linear for m/z (a scale, two numbers, then residuals of zero in half bytes), and integers for intensities.
    linear = struct.pack(">d", 100.0) + struct.pack("<II", 10000, 20000) + b"\x88"
    whole = b"\x71\x72\x73\x74"
    arrays = "".join(
        f"<binaryDataArray>{_term(packing)}{_term(kind)}<binary>{base64.b64encode(data).decode()}</binary></binaryDataArray>"
        for packing, kind, data in (("MS:1002312", "MS:1000514", linear), ("MS:1002313", "MS:1000515", whole))
    )
    numpressed = re.sub(r"(?s)<binaryDataArray .*</binaryDataArray>", arrays, _mzml_spectrum(0, "MS:1000576"))
    numpressed = re.sub('defaultArrayLength="[0-9]+"', 'defaultArrayLength="4"', numpressed)
    files.append(files[0].partition("<spectrum ")[0] + numpressed + "</spectrumList></run></mzML></indexedmzML>")
    return [file.encode() for file in files]


def _mzxml() -> list[bytes]:
    scans = []
    for number, packing in ((1, "none"), (2, "zlib"), (3, "none")):
        data = np.stack([np.linspace(100, 900, 15), np.linspace(1, 99, 15)], axis=1).astype(">f4" if number < 3 else ">f8").tobytes()
        data = zlib.compress(data) if packing == "zlib" else data
        scans.append(
            f'<scan num="{number}" msLevel="2" peaksCount="15" retentionTime="PT{number}M2.5S" centroided="1">'
            f'<precursorMz precursorIntensity="7.5" precursorCharge="3"> 600.5 </precursorMz><peaks precision="{32 if number < 3 else 64}" '
            f'byteOrder="network" contentType="m/z-int" compressionType="{packing}" compressedLen="{len(data)}">'
            f"{base64.b64encode(data).decode()}</peaks></scan>\n"
        )
    inner = scans[1].join((scans[0].replace('msLevel="2"', 'msLevel="1"').removesuffix("</scan>\n"), "</scan>\n"))
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<mzXML><msRun scanCount="3"><dataProcessing centroided="1"></dataProcessing>'
    return [
        f"{head}{text}</msRun><index><offset id='1'>10</offset></index></mzXML>\n".encode() for text in ("".join(scans), inner + scans[2])
    ]


def _reporter_mzml() -> list[bytes]:
    """Return a file with MS2 spectra, whose noise is stored in each of three forms, and MS3 spectra made from them."""
    at = np.linspace(100.0, 900.0, 7)
    forms = [
        [("MS:1002743", at), ("MS:1002744", np.sqrt(at)), ("MS:1002745", np.ones(7))],
        [("MS:1002743", at.astype("<f4")), ("MS:1002744", np.sqrt(at))],
        [("MS:1000517", np.linspace(2.0, 9.0, 22))],
    ]
    texts = []
    for number, form in enumerate(forms):
        packing = ("MS:1000576", "MS:1000574")[number % 2]
        packed = [(_array(*array, packing), len(array[1])) for array in form]
        arrays = "".join(text.replace("<binaryDataArray", f'<binaryDataArray arrayLength="{length}"') for text, length in packed)
        second = _mzml_spectrum(number, packing).replace("</binaryDataArrayList>", f"{arrays}</binaryDataArrayList>")
        named = f'<precursor spectrumRef="controllerType=0 controllerNumber=1 scan={number + 1}">'
        third = _mzml_spectrum(number + 10, packing).replace(_term("MS:1000511", 2), _term("MS:1000511", 3))
        texts += [second, third.replace("<precursor>", named if number else "<precursor>")]
    head = '<?xml version="1.0"?><mzML><referenceableParamGroupList><referenceableParamGroup id="common"></referenceableParamGroup>'
    return [f'{head}</referenceableParamGroupList><run id="r"><spectrumList>{"".join(texts)}</spectrumList></run></mzML>'.encode()]


def _reporter_mzxml() -> list[bytes]:
    """Return a file with MS3 scans inside other scans and on their own."""
    return [
        file.replace(b'msLevel="1"', b'msLevel="2"')
        .replace(b'num="2" msLevel="2"', b'num="2" msLevel="3"')
        .replace(b"<precursorMz ", b'<precursorMz precursorScanNum="1" ')
        for file in _mzxml()
    ]


_PEAKS = "".join(f"{100.5 + 37 * i:.3f} {10 + i}\n" for i in range(12))


def _mgf() -> list[bytes]:
    entry = (
        f"BEGIN IONS\nTITLE=run.0012.0012.2 scan=12\nPEPMASS=500.5 1000\nCHARGE=2+ and 3+\nRTINSECONDS=10.5\nSCANS=12\n{_PEAKS}END IONS\n\n"
    )
    other = f"BEGIN IONS\nTITLE=Köln\nPEPMASS=600.25\nCHARGE=1+\n# a comment\n{_PEAKS}END IONS\n"
    return [f"COM=a run\nCHARGE=2+\n\n{entry}{other}".encode(), other.encode("latin-1"), ("\ufeff" + entry).encode()]


def _ms2() -> list[bytes]:
    entry = f"S\t000012\t000012\t500.5\nI\tRTime\t1.5\nI\tNativeID\tx\nZ\t2\t999.99\nZ\t3\t1499.5\nD\tanything\n{_PEAKS}"
    return [f"H\tCreationDate\ttoday\n{entry}{entry.replace('12', '13')}".encode(), entry.encode()]


def _dta() -> list[bytes]:
    return [f"1000.5 2\n{_PEAKS}\n1500.25 3\n{_PEAKS}".encode(), f'\n=== "run.7.7.2.dta" ===\n1000.5 2\n{_PEAKS}\n'.encode()]


def _pkl() -> list[bytes]:
    return [f"500.5 1000 2\n{_PEAKS}\n600.5 2000.5 0\n{_PEAKS}".encode()]


def _fasta() -> list[bytes]:
    entry = ">sp|P1|ONE first protein, é\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEH\nCPFDEHVK*\n>P2\tsecond\nacde FGH 10\niklm-N.\n"
    return [f";a comment\n{entry}>P3\nPEPTIDE\n".encode(), entry.encode("latin-1")]


def _fastq() -> list[bytes]:
    entry = "@read1 first, é\nACGTNacgt.\n+\nIIII@+!~#I\n@read2\nACGT\nAC\n+read2\n@@@@\nII\n@read3\n\n+\n\n"
    return [entry.encode(), entry.replace("\n", "\r\n").encode("latin-1")]


def _presets() -> list[bytes]:
    folder = REPOSITORY / "resources" / "presets" / "identify"
    shipped = [path.read_bytes() for path in sorted(folder.glob("*.toml"))]
    return [*shipped, b'description = "Mine"\nenzyme = "Trypsin"\nisotope_errors = [0, 1]\nfragment_tolerance = "20 ppm"\n']


def _matrices() -> list[bytes]:
    folder = REPOSITORY / "resources" / "matrices"
    return [(folder / name).read_bytes() for name in ("BLOSUM62.txt", "PAM30.txt")] + [b"# mine\n   A  C\nA  4 -1\nC -1  9\n"]


def _peptidoforms() -> list[bytes]:
    return [
        text.encode()
        for text in (
            "EM[Oxidation]EVEES[UNIMOD:21]PEK",
            "[Acetyl]-PEPTIDEK[+14.0157]-[Amidated]/2",
            "{Glycan:HexNAc2Hex3}PEPT[Phospho]IDE",
            "<[Carbamidomethyl]@C>ATPEILTCK",
            "[Phospho]?PEPTIDE",
            "PEPT[Phospho|info:x]IDE[Formula:C2H4O-1]",
        )
    ]


def _modifications() -> list[bytes]:
    return [b"Oxidation (M)", b"Acetyl (Protein N-term)", b"+79.966331 (STY)", b"Phospho (STY)", b"mine:+12.5 (K)", b"UNIMOD:21 (S)"]


def _pdb() -> list[bytes]:
    rows = examples.atoms_of(examples.helix(8))
    model = examples.as_pdb(rows).removesuffix(b"END\n")
    head = "HEADER    A HELIX\nTITLE     OF TESTS\nEXPDTA    X-RAY\nMODRES 1XXX MSE A    3  MET\n"
    return [examples.as_pdb(rows, head), b"MODEL        1\n" + model + b"ENDMDL\nMODEL        2\n" + model + b"ENDMDL\nEND\n"]


def _mmcif() -> list[bytes]:
    rows = examples.atoms_of(examples.helix(8)) + examples.atoms_of(examples.helix(6) + 10.0, "B")
    quality = (
        "loop_\n_ma_qa_metric.id\n_ma_qa_metric.mode\n1 local\nloop_\n_ma_qa_metric_local.label_asym_id\n_ma_qa_metric_local.label_seq_id\n"
        "_ma_qa_metric_local.metric_id\n_ma_qa_metric_local.metric_value\nA 1 1 90.5\nA 2 1 40\nB 1 1 70\n"
    )
    return [examples.as_mmcif(rows, 5), examples.as_mmcif(rows[:24], more=quality)]


def _binary_cif() -> list[bytes]:
    return [examples.as_binary_cif(examples.atoms_of(examples.helix(8)), 5)]


# --- Functions that read and check files -------------------------------------------------------------------------------------------------


def _read_reporters(path: Path, chance: random.Random) -> int:
    """Read reporter ions of MS2, and of MS3 if present, with their noise, and check the reader's guarantees."""
    low = chance.choice([0.0, 100.0, 500.0])
    second = read_reporter_regions(path, low, 600.0)
    levels = [second]
    if second.n_deeper:
        with contextlib.suppress(InputError):
            levels.append(read_reporter_regions(path, low, 600.0, level=3))
            ms3 = ms3_spectra(*levels)
            assert len(ms3) == len(second)
            assert ((ms3 >= -1) & (ms3 < len(levels[1]))).all()
    for regions in levels:
        assert (np.diff(regions.index) > 0).all()
        assert regions.offsets[-1] == len(regions.mz) == len(regions.intensity) == len(regions.signal_to_noise)
        assert ((regions.mz >= low) & (regions.mz <= 600)).all()
        assert (regions.intensity > 0).all()
    return len(second)


def _read_spectra(path: Path, chance: random.Random) -> int:
    """Read a file of spectra, and check the reader's guarantees."""
    strict = chance.random() < 0.5
    spectra = read_spectra([path], strict=strict, threads=1)
    offsets, n = spectra.offsets, len(spectra)
    assert n > 0
    assert offsets[0] == 0
    assert offsets[-1] == len(spectra.mz) == len(spectra.intensity)
    assert len(offsets) == n + 1
    assert (np.diff(offsets) >= 0).all()
    owner = np.repeat(np.arange(n), np.diff(offsets))
    assert ((np.diff(spectra.mz) >= 0) | (np.diff(owner) > 0)).all()
    assert ((spectra.mz > 0) & (spectra.mz <= MAXIMUM_MZ)).all()
    assert ((spectra.intensity > 0) & (spectra.intensity <= np.float32(MAXIMUM_INTENSITY))).all()
    assert ((spectra.precursor_mz > 0) & (spectra.precursor_mz <= MAXIMUM_MZ)).all()
    assert ((spectra.precursor_intensity >= 0) & np.isfinite(spectra.precursor_intensity)).all()
    assert (np.isnan(spectra.retention_time) | (np.abs(spectra.retention_time) <= MAXIMUM_SECONDS)).all()
    assert (spectra.scan >= -1).all()
    assert len(spectra.identifier) == n
    assert all(spectra.identifier)
    assert all(name.encode("utf-8", "strict") for name in spectra.identifier)
    assert not strict or spectra.n_skipped == 0
    return n


def _read_proteins(path: Path, chance: random.Random) -> int:
    proteins = read_proteins([path], every_record=chance.random() < 0.3, with_chromosomes=chance.random() < 0.3)
    assert proteins.offsets[-1] == len(proteins.residues)
    assert np.isin(proteins.residues, np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ*", np.uint8)).all()
    for i in (0, len(proteins) - 1):
        assert proteins.accession(i)
        proteins.description(i).encode()
    return len(proteins)


def _read_results(path: Path, chance: random.Random) -> int:
    """Read results of a search engine, and convert them to the tables of a run."""
    from proteoscope.engine.chemistry.enzymes import enzyme
    from proteoscope.engine.imported.parameters import ImportParameters
    from proteoscope.engine.imported.reading import read_identifications
    from proteoscope.engine.imported.search import left_out_table, rated_matches
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.matches.match_lists.matches import collect_matches
    from proteoscope.engine.matches.match_lists.references import find_spectra
    from proteoscope.engine.matches.match_lists.tables import listed_tables

    identifications = read_identifications([path])
    spectra = read_spectra([small_results.write_spectra(path.with_name("run.mgf"))], threads=1)
    database = read_proteins([small_results.write_database(path.with_name("proteins.fasta"))]) if chance.random() < 0.5 else None
    parameters, progress = ImportParameters(), Progress()
    matches = collect_matches(
        identifications,
        find_spectra(identifications, spectra),
        spectra,
        database,
        enzyme("Trypsin"),
        parameters.fixed_modifications,
        progress,
    )
    assert len(matches) + len(matches.left_out) == len(identifications)
    if len(matches):
        rated = rated_matches(identifications, matches, spectra, parameters, progress)
        tables = listed_tables(identifications, matches, rated, spectra, database).tables
        assert len(tables.psms) == len(matches)
        for table in (tables.psms, tables.peptides, tables.proteins):
            table.validate(full=True)
    return len(left_out_table(identifications, matches)) + len(matches)


def _parquet_reports() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return [small_results.write_parquet_report(Path(folder) / "report.parquet").read_bytes()]


def _results_of(names: tuple[str, ...]) -> list[bytes]:
    return [small_results.FORMATS[name][1]().encode() for name in names]


def _read_structure(path: Path, chance: random.Random) -> int:
    from proteoscope.engine.structures.chains import FEWEST_RESIDUES, RESIDUE_COLUMNS
    from proteoscope.engine.structures.reading import read_structure

    structure = read_structure(path, minimum_plddt=chance.choice((0.0, 50.0)))
    chains = structure.chains
    if not len(chains):
        raise structure.empty_error()
    assert all(len(getattr(chains, name)) == chains.offsets[-1] for name in RESIDUE_COLUMNS)
    assert (chains.lengths >= FEWEST_RESIDUES).all()
    assert np.isfinite(chains.position).all()
    assert ((chains.residue >= 0) & (chains.residue < 26)).all()
    assert (chains.secondary <= 2).all()
    assert (np.isnan(chains.confidence) | ((chains.confidence >= 0) & (chains.confidence <= 100))).all()
    assert len(chains.names) == len(chains.descriptions) == len(structure.chain_names) == len(chains)
    assert all(text.isprintable() for text in (*chains.names, *chains.descriptions, *structure.chain_names))
    assert all(text.encode() for text in chains.names)
    return len(chains)


def _read_preset(path: Path, chance: random.Random) -> int:
    from proteoscope.engine.identification.parameters import IdentificationParameters
    from proteoscope.engine.parameters import read_preset
    from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters

    del chance
    preset = path.rename(path.with_suffix(".toml"))
    try:
        values = read_preset("identify", str(preset))
        model = SequenceSearchParameters if "matrix" in values else IdentificationParameters
        return len(model.checked(values).model_dump(mode="json"))
    finally:
        preset.rename(path)


def _read_reads(path: Path, chance: random.Random) -> int:
    from proteoscope.engine.formats.fastq import read_fastq

    del chance
    reads = read_fastq(path)
    assert len(reads.bases) == len(reads.qualities) == reads.offsets[-1]
    assert len(reads.names.strings()) == len(reads)
    return len(reads)


def _read_track(path: Path, chance: random.Random) -> int:
    from proteoscope.engine.formats.tracks import read_track

    del chance
    track = read_track(path)
    assert all(feature.first <= feature.last for features in track.features.values() for feature in features)
    return sum(map(len, track.features.values()))


def _tracks() -> list[bytes]:
    gff = "##gff-version 3\nchr1\tx\tCDS\t10\t200\t.\t+\t0\tID=a;Name=A%20b\nchr1\tx\tgene\t5\t300\t1.5\t-\t.\tID=g\n"
    return [gff.encode(), b"track name=x\nchr1\t9\t200\ta\t0\t+\nchr2\t0\t5\n"]


def _read_matrix(path: Path, chance: random.Random) -> int:
    from proteoscope.engine.sequences.matrices import read_matrix

    del chance
    matrix = read_matrix(str(path))
    assert matrix.scores.shape == (27, 27)
    assert (np.abs(matrix.scores) <= 1_000_000).all()
    return len(matrix.symbols)


def _read_peptidoform(path: Path, chance: random.Random) -> int:
    from proteoscope.engine.chemistry.peptidoforms import parse, write

    del chance
    peptidoform = parse(_as_text(path))
    write(peptidoform)
    return len(peptidoform.sequence)


def _read_modification(path: Path, chance: random.Random) -> int:
    from proteoscope.engine.chemistry.modifications import parse_modification

    del chance
    return len(str(parse_modification(_as_text(path))))


def _as_text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Reader:
    """A reader under test: valid files, a function that reads one, the segments of a file, and words of its format."""

    files: Callable[[], list[bytes]]
    read: Callable[[Path, random.Random], int]
    segments: re.Pattern[bytes]
    words: tuple[bytes, ...]
    is_packed: bool = False
    largest: int = 1_000_000


_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_TAGS = re.compile(rb"<[^<>]*>|[^<]+|<")
_BYTES = re.compile(rb"[A-Za-z_]{3,}|.{1,8}", re.DOTALL)
_CHARACTERS = re.compile(rb"[A-Z]+|\[[^]]*\]|.", re.DOTALL)
_XML_WORDS = (
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"<?",
    b"?>",
    b"<!DOCTYPE x [",
    b"&quot;",
    b"&#10;",
    b"<",
    b">",
    b"/>",
    b'"',
    b"=",
    b"</",
    b'<?xml version="1.0" encoding="utf-16"?>',
    b'<?xml encoding="idna"?>',
)
_MZML_WORDS = (
    b"<spectrum>",
    b"</spectrum>",
    b"<scan/>",
    b"<binary>",
    b"</binary>",
    b"<precursor>",
    b"<selectedIon>",
    b"</mzML>",
    b"<binary/>",
    b'<referenceableParamGroupRef ref="common"/>',
    b"<spectrumList>",
    b"</binaryDataArray>",
    b'defaultArrayLength="87000000"',
    b'arrayLength="3"',
    b'accession="MS:1002312"',
    b'accession="MS:1000574"',
    b'accession="MS:1002748"',
    b'accession="MS:1000519"',
)
_MZXML_WORDS = (
    b"<scan ",
    b"</scan>",
    b"<scan",
    b"<dataProcessing",
    b"<peaks>",
    b"</peaks>",
    b"<precursorMz>",
    b"</msRun>",
    b'peaksCount="0"',
    b'compressionType="zlib"',
    b'precision="64"',
    b'possibleCharges="2,3"',
    b'num="1e300"',
    b"P99999D",
)
_MGF_WORDS = (
    b"BEGIN IONS",
    b"END IONS",
    b"TITLE=",
    b"PEPMASS=",
    b"CHARGE=",
    b"SCANS=",
    b"RTINSECONDS=",
    b"=",
    b"1 1",
    b"8+,9+",
    b"3-",
    b"nan 1",
    b"scan=99999999999999999999",
    b".1.1.1",
)
READERS = {
    "mzml": Reader(_mzml, _read_spectra, _TAGS, _XML_WORDS + _MZML_WORDS),
    "mzxml": Reader(_mzxml, _read_spectra, _TAGS, _XML_WORDS + _MZXML_WORDS),
    "reporter-mzml": Reader(
        _reporter_mzml,
        _read_reporters,
        _TAGS,
        (*_XML_WORDS, *_MZML_WORDS, b'arrayLength="2000000"', b'accession="MS:1002743"', b'accession="MS:1000517"', b'spectrumRef="x"'),
    ),
    "reporter-mzxml": Reader(
        _reporter_mzxml,
        _read_reporters,
        _TAGS,
        (*_XML_WORDS, *_MZXML_WORDS, b'msLevel="3"', b'precursorScanNum="2"', b'precursorScanNum="-1"'),
    ),
    "mgf": Reader(_mgf, _read_spectra, _LINES, _MGF_WORDS),
    "ms2": Reader(_ms2, _read_spectra, _LINES, (b"S\t1\t1\t5", b"Z\t2\t999", b"I\tRTime\t", b"H\t", b"D\t", b"S", b"Z", b"I", b"1 1")),
    "dta": Reader(_dta, _read_spectra, _LINES, (b"1000 2", b"=", b"1 1", b"\n\n", b"+", b"0 0", b"1e3 2", b"nan inf")),
    "pkl": Reader(_pkl, _read_spectra, _LINES, (b"500 1 2", b"=", b"1 1", b"\n\n", b"+", b"0 0 0", b"nan inf 1")),
    "fasta": Reader(_fasta, _read_proteins, _LINES, (b">", b";", b"*", b">>", b"> ", b"-", b"\x01", b"ACGT", b">P2\n", b"X", b"9")),
    "swiss-prot": Reader(
        lambda: [entry_files.SWISS_PROT.encode()],
        _read_proteins,
        _LINES,
        (
            b"ID   ",
            b"//\n",
            b"FT                   ",
            b'/note="',
            b'"',
            b"SQ   ",
            b"AC   ;",
            b"?",
            b"..",
            b"<1",
            b"99999999999",
            b"\xff",
            b"FT   VAR_SEQ",
            b" -> ",
        ),
    ),
    "uniprot-xml": Reader(
        lambda: [entry_files.UNIPROT_XML.encode()],
        _read_proteins,
        _TAGS,
        (
            *_XML_WORDS,
            b"<entry>",
            b"</entry>",
            b"<feature/>",
            b"<position/>",
            b'status="unknown"',
            b"<sequence/>",
            b"</uniprot>",
            b'length="-1"',
            b"<accession/>",
            b"&bomb;",
            b"<name/>",
        ),
    ),
    "genbank": Reader(
        lambda: [entry_files.GENBANK.encode(), entry_files.GENBANK_PROTEIN.encode()],
        _read_proteins,
        _LINES,
        (
            b"LOCUS ",
            b"//\n",
            b"ORIGIN",
            b"CONTIG",
            b"join(",
            b"complement(",
            b"1..2",
            b'/translation="',
            b'"',
            b"     CDS             ",
            b"bond(",
            b"one-of(",
            b"order(",
            b"^",
            b"99999999999",
            b"\xff",
        ),
    ),
    "embl": Reader(
        lambda: [entry_files.EMBL.encode()],
        _read_proteins,
        _LINES,
        (b"ID   ", b"//\n", b"SQ   ", b"FT   CDS             ", b"join(", b"CO   ", b'/translation="', b'"', b"XX", b"1..2", b"\xff"),
    ),
    "pir": Reader(
        lambda: [entry_files.PIR.encode()],
        _read_proteins,
        _LINES,
        (b">", b">P1;", b"*", b";", b">XX;A\n", b"\xff", b"-", b"9", b"C;"),
    ),
    "fastq": Reader(_fastq, _read_reads, _LINES, (b"@", b"+", b"@a\n", b"+\n", b"\r", b"ACGT", b"IIII", b"\x01", b".", b" ", b"\n\n")),
    "pdb": Reader(
        _pdb,
        _read_structure,
        _LINES,
        (
            b"ATOM",
            b"HETATM",
            b"TER",
            b"ENDMDL",
            b"MODEL",
            b"END",
            b"CA",
            b"A",
            b"-999",
            b"****",
            b"nan",
            b"CRYST1",
            b"CONECT",
            b"SEQRES",
            b"99999999",
        ),
    ),
    "mmcif": Reader(
        _mmcif,
        _read_structure,
        _LINES,
        (
            b"data_",
            b"loop_",
            b"save_",
            b"_atom_site.",
            b"?",
            b".",
            b"'",
            b'"',
            b";",
            b"#",
            b"nan",
            b"1e300",
            b"-",
            b"stop_",
            b"global_",
            b"_atom_site.label_alt_id",
            b"_cell.length_a 1e-300",
            b"A" * 20,
        ),
    ),
    "bcif": Reader(
        _binary_cif,
        _read_structure,
        _BYTES,
        (
            b"\xc0",
            b"\xc6\xff\xff\xff\xff",
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\x00\x00\xff\xff",
            b"\x91" * 60,
            b"RunLength",
            b"Delta",
            b"IntegerPacking",
            b"FixedPoint",
            b"StringArray",
            b"\xff\xff\xff\x7f",
            b"rowCount",
        ),
    ),
    "results-tables": Reader(
        lambda: _results_of(tuple(small_results.FORMATS)[:12]),
        _read_results,
        re.compile(rb"[^\t\n]+|[\t\n]"),
        (
            b"\t",
            b"\n",
            b"nan",
            b"-1",
            b"1e999",
            b"[+1e9]",
            b"PEPTIDE",
            b"K.[",
            b"UNIMOD:35",
            b"(UniMod:9999999)",
            b"99999999999999999999",
            b'"',
        ),
    ),
    "results-parquet": Reader(
        _parquet_reports,
        _read_results,
        _BYTES,
        (b"PAR1", b"\xff\xff\xff\x7f", b"\0" * 8, b"\x15\x00", b"\xff" * 9, b"Modified.Sequence"),
    ),
    "results-xml": Reader(
        lambda: _results_of(("pepxml", "mzidentml", "xtandem", "idxml")),
        _read_results,
        _TAGS,
        (*_XML_WORDS, b'location="-1"', b'position="999"', b'mass="nan"', b'charge="1e9"', b'peptide="x"', b"<Peptide/>", b"<search_hit/>"),
    ),
    **{
        f"libraries-{name}": Reader(partial(libraries.text_libraries, name), libraries.read_library, _LINES, words)
        for name, words in libraries.WORDS.items()
    },
    "libraries-json": Reader(
        libraries.json_libraries,
        libraries.read_library,
        re.compile(rb'"[^"]*"|[^"]'),
        (b"[" * 3000, b'{"a":' * 3000, b"null", b"NaN", b"1e999", b'"mzs"', b"[[1]]", b"{}", b"]", b"}", b",", b'"\\ud800"', b"true"),
    ),
    "libraries-blib": Reader(
        libraries.binary_libraries,
        libraries.read_library,
        _BYTES,
        (
            b"\xff\xff\xff\x7f",
            b"\0" * 8,
            b"SQLite format 3\0",
            b"RefSpectra",
            b"CREATE VIEW RefSpectra AS SELECT 1",
            b"x\x9c",
            b"\xff" * 9,
            b"WITHOUT ROWID",
        ),
    ),
    "gzip": Reader(lambda: _mgf() + _mzml() + _ms2(), _read_spectra, _LINES, _MGF_WORDS, is_packed=True),
    "preset": Reader(
        _presets,
        _read_preset,
        _LINES,
        (b"[", b"]", b"{", b"}", b"=", b"a.", b"[parameters]", b"[[parameters]]", b'"""', b"'", b"nan", b"1979-05-27", b'matrix = "'),
        largest=200_000,
    ),
    "track": Reader(
        _tracks, _read_track, _LINES, (b"##FASTA", b">", b"#", b"\t", b"-1", b"99999999999", b"ID=", b"%", b"browser", b"\xff")
    ),
    "matrix": Reader(_matrices, _read_matrix, _LINES, (b"A", b"*", b"#", b"-", b"1_0", b"1e3", "ﬆ".encode(), "ß".encode(), b"\x0c")),
    "proforma": Reader(
        _peptidoforms,
        _read_peptidoform,
        _CHARACTERS,
        (b"[", b"]", b"(", b")", b"{", b"}", b"<", b">", b"?", b"|", b"#g1", b"^2", b"/2", b"//", b"+", b"@", b":", b"-"),
        largest=20_000,
    ),
    "modification": Reader(_modifications, _read_modification, _CHARACTERS, (b"(", b")", b"+", b"-", b",", b":", b"term"), largest=20_000),
}

# --- Mutations ---------------------------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_BASE64 = re.compile(rb">([A-Za-z0-9+/=]{8,})<")
_ATTRIBUTE = re.compile(rb"\s[A-Za-z]+=(?:\"[^\"]*\"|'[^']*')")
_NUMBERS = (
    b"0",
    b"-1",
    b"1e308",
    b"-1e308",
    b"1e309",
    b"1e-320",
    b"nan",
    b"inf",
    b"-inf",
    b"",
    b"99999999999999999999",
    b"2147483648",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"4294967296",
    b"0x10",
    "１２".encode(),
    b"1e",
    b"--5",
    b"1_0",
    b"1,5",
    b"+",
    b".",
    b"1e99999999999",
    b"0.0000000000000000000000001",
    b"87000000",
    b"2000000",
    b"1e6",
    b"100001",
    b"32",
    b"31",
    b"1" * 400,
    b"9" * 5000,
)
_ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037")
_LINE_ENDS = (b"\r", b"\r\n", b"\n\r", b"\n\n", b"\x0b", b"\x85", b"\xe2\x80\xa8", b" \n ", b"\0")
_RUNS = (
    b" ",
    b"\n",
    b"\r\n",
    b"\t",
    b"0",
    b"1",
    b"9",
    b".",
    b"A",
    b"M",
    b"<",
    b">",
    b"=",
    b"[",
    b"{",
    b"-",
    b"\0",
    b"\xff",
    b"\xc3",
    b"#",
    b"1 1\n",
    b".0",
)


@cache
def beginnings(reader: Reader) -> tuple[bytes, ...]:
    """Return the valid files of a reader; they are cached, since some take longer to create than to read."""
    return tuple(reader.files())


def mutated(reader: Reader, chance: random.Random, *, of_structure: bool) -> bytes:
    """Return one of the reader's files with one to five changes of its bytes or of its structure; a few files are compressed too."""
    content = chance.choice(beginnings(reader))
    mutations = _MUTATIONS_OF_STRUCTURE if of_structure else _MUTATIONS_OF_BYTES
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        content = chance.choice(mutations)(content, reader, chance)[: reader.largest]
    if of_structure and chance.random() < 0.06:
        content = _flooded(content, reader, chance)
    if reader.is_packed or chance.random() < 0.03:
        content = _packed(content, chance)
    return content


def _flooded(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    """Repeat a word in the file up to the largest size, which slows a parser that restarts its scan at each repetition."""
    word = chance.choice(reader.words + _RUNS)
    at = chance.choice([match.end() for match in reader.segments.finditer(content[:50_000])] or [0])
    # At the end of the file, the repeated words are never closed.
    at = chance.choice((at, len(content)))
    flood = word * ((reader.largest - len(content)) // len(word))
    return content[:at] + flood + (content[at:] if chance.random() < 0.5 else b"")


def _size(chance: random.Random, largest: int) -> int:
    """Return a length of any magnitude; large ones are rare, since they take long."""
    return int(10 ** chance.uniform(0, chance.choice((1, 2, 3, 3, 4, 4, np.log10(largest)))))


def _slice(segments: list[bytes], chance: random.Random) -> tuple[int, int]:
    first = chance.randrange(len(segments) + 1)
    return first, min(len(segments), first + chance.choice((1, 1, 2, 5, 20)))


def _place(content: bytes, chance: random.Random) -> int:
    return chance.randrange(len(content) + 1)


def _delete_segments(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    segments = reader.segments.findall(content)
    first, last = _slice(segments, chance)
    return b"".join(segments[:first] + segments[last:])


def _repeat_segments(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    segments = reader.segments.findall(content)
    first, last = _slice(segments, chance)
    some = b"".join(segments[first:last])
    times = 1 + _size(chance, reader.largest) // max(1, len(some))
    return b"".join(segments[:last]) + some * times + b"".join(segments[last:])


def _move_segments(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    segments = reader.segments.findall(content)
    first, last = _slice(segments, chance)
    rest = segments[:first] + segments[last:]
    at = chance.randrange(len(rest) + 1)
    return b"".join(rest[:at] + segments[first:last] + rest[at:])


def _cut_off(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] if chance.random() < 0.7 else content[at:]


def _change_number(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    numbers = list(_NUMBER.finditer(content[:50_000]))
    if not numbers:
        return content
    chosen = chance.choice(numbers)
    number = chance.choice(_NUMBERS) if chance.random() < 0.8 else str(chance.uniform(-1, 1) * 10 ** chance.randrange(-5, 20)).encode()
    if chance.random() < 0.1:
        return content.replace(chosen.group(), number)
    return content[: chosen.start()] + number + content[chosen.end() :]


def _insert_word(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    at = _place(content, chance)
    if chance.random() < 0.5:
        ends = [match.end() for match in reader.segments.finditer(content[:50_000])]
        at = chance.choice(ends) if ends else at
    word = chance.choice(reader.words) + chance.choice((b"", b"", b"\n", b" "))
    times = 1 if chance.random() < 0.7 else 1 + _size(chance, reader.largest) // len(word)
    return content[:at] + word * times + content[at:]


def _insert_run(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    at, run = _place(content, chance), chance.choice(_RUNS)
    return content[:at] + run * (_size(chance, reader.largest) // len(run)) + content[at:]


def _change_bytes(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 2, 5, 30))):
        if changed:
            changed[chance.randrange(len(changed))] = chance.choice((0, 9, 10, 13, 27, 32, 60, 62, 127, 255, chance.randrange(256)))
    return bytes(changed)


def _change_line_ends(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    end = chance.choice(_LINE_ENDS)
    if chance.random() < 0.5:
        return content.replace(b"\n", end)
    return b"".join(line + (b"\n" if chance.random() < 0.7 else end) for line in content.split(b"\n"))


def _change_encoding(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    return content[:100_000].decode("utf-8", "replace").encode(chance.choice(_ENCODINGS), "replace")


def _change_attribute(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    attributes = list(_ATTRIBUTE.finditer(content[:50_000]))
    if not attributes:
        return _change_number(content, reader, chance)
    chosen, other = chance.choice(attributes), chance.choice(attributes)
    text = chosen.group()
    new = chance.choice(
        (b"", text * 2, other.group(), text.replace(b'"', b""), text[:-1], text[1:], text.replace(b'"', b"'", 1), text.upper())
    )
    return content[: chosen.start()] + new + content[chosen.end() :]


def _change_array(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    """Change numbers of an array below its base64 and zlib encodings, so that the encodings themselves stay valid."""
    arrays = list(_BASE64.finditer(content[:100_000]))
    if not arrays:
        return _change_number(content, reader, chance)
    chosen = chance.choice(arrays)
    try:
        data = base64.b64decode(chosen.group(1))
    except binascii.Error:
        return content
    is_zlib = data[:1] == b"\x78"
    if is_zlib:
        with contextlib.suppress(zlib.error):
            data = zlib.decompress(data)
    new: bytes = chance.choice((_odd_numbers, _change_bytes, _cut_off, _insert_run))(data, reader, chance)
    if is_zlib or chance.random() < 0.2:
        new = zlib.compress(new)
        if chance.random() < 0.2:
            new = _change_bytes(new, reader, chance)
    text = base64.b64encode(new)
    if chance.random() < 0.2:
        text = text.rstrip(b"=") + chance.choice((b"", b"=", b"====", b"!", b"\n", b" A"))
    return content[: chosen.start(1)] + text + content[chosen.end(1) :]


def _odd_numbers(data: bytes, reader: Reader, chance: random.Random) -> bytes:
    kind = chance.choice(("<f4", "<f8", ">f4", ">f8"))
    values = np.frombuffer(data[: len(data) // 8 * 8], kind).copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(chance.choice((1, 3, 10))):
            if len(values):
                odd = (0.0, -1.0, np.nan, np.inf, -np.inf, 1e38, 1e300, 1e-40, 1e-320, 500.0, 1e5, 1e-4)
                values[chance.randrange(len(values))] = np.array(chance.choice(odd)).astype(kind)
    return values.tobytes()


def _insert_file(content: bytes, reader: Reader, chance: random.Random) -> bytes:
    """Insert one of the reader's files into the file, so that root elements and headers occur twice."""
    at = _place(content, chance)
    other = chance.choice(beginnings(reader))
    return content[:at] + other + content[at:]


_Mutation = Callable[[bytes, Reader, random.Random], bytes]
_MUTATIONS_OF_BYTES: tuple[_Mutation, ...] = (
    _cut_off,
    _insert_run,
    _change_bytes,
    _change_bytes,
    _change_line_ends,
    _change_encoding,
    _change_number,
    _insert_file,
)
_MUTATIONS_OF_STRUCTURE: tuple[_Mutation, ...] = (
    _delete_segments,
    _repeat_segments,
    _move_segments,
    _change_number,
    _change_number,
    _insert_word,
    _insert_word,
    _change_attribute,
    _change_array,
    _change_array,
)


def _gzipped(content: bytes, character: bytes, n: int, level: int = 9) -> bytes:
    """Return a gzip file of the content and `n` repetitions of a character; a block of these is compressed once, which is far faster."""
    if not n:
        return gzip.compress(content, level, mtime=0)
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    body, rest = packer.compress(content) + packer.flush(zlib.Z_FULL_FLUSH), character * min(n, 1 << 17)
    again = zlib.compressobj(level, zlib.DEFLATED, -15)
    blocks = again.compress(rest) + again.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(content)
    for _ in range(n // len(rest)):
        checksum = zlib.crc32(rest, checksum)
    n_bytes = len(content) + n // len(rest) * len(rest)
    return body + blocks * (n // len(rest)) + b"\x03\0" + struct.pack("<II", checksum, n_bytes & 0xFFFFFFFF)


def _packed(content: bytes, chance: random.Random) -> bytes:
    """Return the file as valid or corrupt gzip."""
    character, n = (chance.choice(_RUNS)[:1], 10 ** chance.choice((6, 7, 8))) if chance.random() < 0.05 else (b"", 0)
    packed = _gzipped(content, character, n, chance.choice((1, 6, 9)))
    match chance.randrange(8):
        case 0:
            return packed[: _place(packed, chance)]
        case 1:
            changed = bytearray(packed)
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            return bytes(changed)
        case 2:
            return packed + bytes(_size(chance, 100_000))
        case 3:
            return packed + chance.choice((b"x", packed, packed[:20], b"\x1f\x8b", b"\0" * 9 + packed))
        case 4:
            at = _place(content, chance)
            return (
                gzip.compress(content[:at], mtime=0)
                + _gzipped(content[at:], character, n)
                + gzip.compress(b"", mtime=0) * chance.randrange(50)
            )
        case 5:
            return gzip.compress(packed, mtime=0)
        case _:
            return packed


# --- Running the cases -------------------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """Results of the cases of a reader. `failures`: number of the case, and the error."""

    n_cases: int = 0
    n_read: int = 0
    n_refused: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)


def case(name: str, seed: int, number: int) -> tuple[bytes, random.Random]:
    """Return the content of a case and the generator for reading it. Of seven cases, five change bytes and two change the structure."""
    chance = random.Random(f"{name} {seed} {number}")
    return mutated(READERS[name], chance, of_structure=number % 7 >= 5), chance


def examine(name: str, n_cases: int, seed: int, first: int = 0) -> Outcome:
    """Read a number of cases in separate processes."""
    outcome = Outcome(n_cases)
    read_beginnings(name)
    number = first
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=IN_MEMORY) as folder:
        while number < first + n_cases:
            stop = min(number + CASES_OF_A_PROCESS, first + n_cases)
            number = _in_a_process(name, seed, range(number, stop), Path(folder), outcome)
    return outcome


def read_beginnings(name: str) -> None:
    """Read the unchanged files, to load modules and compile kernels before processes are forked."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=IN_MEMORY) as folder:
        path = Path(folder, "case")
        for content in beginnings(READERS[name]):
            path.write_bytes(content)
            # Some readers have two modes and select one by their first random number.
            for seed in (0, 1):
                READERS[name].read(path, random.Random(seed))
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(10)


def _in_a_process(name: str, seed: int, numbers: range, folder: Path, outcome: Outcome) -> int:
    """Read cases in another process until all are done or the process dies; return the number of the next case."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            with os.fdopen(writing, "w") as lines:
                for line in _lines_of_cases(name, seed, numbers, folder):
                    print(json.dumps(line), file=lines, flush=True)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    current, finished = numbers.start, False
    with os.fdopen(reading) as lines:
        for line in lines:
            current, kind, text = json.loads(line)
            finished = kind != "begun"
            if kind == "read":
                outcome.n_read += 1
            elif kind == "refused":
                outcome.n_refused += 1
            elif kind == "failed":
                outcome.failures.append((current, text))
    _, status = os.waitpid(child, 0)
    if status and not finished:
        outcome.failures.append((current, f"the process ended with status {status} (24: the time was up; 9, 11: killed or out of bounds)"))
    return current + 1


def _lines_of_cases(name: str, seed: int, numbers: range, folder: Path) -> Iterator[tuple[int, str, str]]:
    limit_memory()
    path = folder / "case"
    for number in numbers:
        content, chance = case(name, seed, number)
        path.write_bytes(content)
        limit_time()
        yield number, "begun", ""
        yield (number, *read_case(READERS[name], path, chance))


def limit_memory(n_bytes: int = MEMORY_BYTES) -> None:
    """Limit this new process to `n_bytes` of memory more than it has now, and turn warnings into errors."""
    warnings.simplefilter("error")
    # The limit applies to address space; heaps and stacks of threads reserve far more of it than they use.
    os.environ.pop("MALLOC_ARENA_MAX", None)
    limit_retained_memory()
    threading.stack_size(1 << 20)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + n_bytes, size + n_bytes))


def limit_time() -> None:
    """Limit the CPU time of this process, from now on, to that of one file."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + PROCESSOR_SECONDS, hard))


def read_case(reader: Reader, path: Path, chance: random.Random) -> tuple[str, str]:
    """Read a file, and return ``read``, ``refused`` with the message, or ``failed`` with the reason."""
    try:
        reader.read(path, chance)
    except ProteoscopeError as error:
        message = str(error)
        if "\n" in message or len(message) > LONGEST_MESSAGE:
            return "failed", f"a message of {len(message)} characters or several lines: {message[:200]!r}"
        return "refused", message
    except BaseException:
        return "failed", traceback.format_exc(limit=-4)
    return "read", ""


def main() -> int:
    """Run from the command line; return 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", choices=READERS, action="append", help="may be given several times; all when not given")
    parser.add_argument("--cases", type=int, default=500, help="for each reader (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the files that failed there")
    parser.add_argument("--all", action="store_true", help="with --keep, write every file")
    options = parser.parse_args()
    n_failed = 0
    for name in options.reader or READERS:
        outcome = examine(name, options.cases, options.seed, options.first)
        n_failed += len(outcome.failures)
        print(json.dumps({"reader": name, "seed": options.seed, **vars(outcome)}), flush=True)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            stored = range(options.first, options.first + options.cases) if options.all else [number for number, _ in outcome.failures]
            for number in stored:
                (options.keep / f"{name}-{options.seed}-{number}").write_bytes(case(name, options.seed, number)[0])
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())

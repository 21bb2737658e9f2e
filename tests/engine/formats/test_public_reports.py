"""Small files like those that users of other programs reported as misread, against independent programs.

The address of each report is in the docstring of its test.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_proteins, read_spectra
from proteoscope.engine.formats.fastq import read_fastq
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.formats.tracks import read_track
from proteoscope.engine.jobs.progress import Progress, RecordingProgress

Written = Callable[..., Path]
NAMES = {
    "MS:1000016": "scan start time",
    "MS:1000514": "m/z array",
    "MS:1000515": "intensity array",
    "MS:1000523": "64-bit float",
    "MS:1000521": "32-bit float",
    "MS:1000576": "no compression",
    "MS:1000574": "zlib compression",
    "MS:1000511": "ms level",
    "MS:1000127": "centroid spectrum",
    "MS:1000744": "selected ion m/z",
    "MS:1000041": "charge state",
    "MS:1000042": "peak intensity",
    "MS:1002312": "MS-Numpress linear prediction compression",
}
UNITS = {"UO:0000028": "millisecond", "UO:0000010": "second", "UO:0000031": "minute", "UO:0000032": "hour"}
SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0}


def named(text: str) -> str:
    """Return mzML with the names of its terms and units, which pyteomics needs."""
    for accession, name in NAMES.items():
        text = text.replace(f'accession="{accession}" name="x"', f'accession="{accession}" name="{name}"')
    for accession, name in UNITS.items():
        text = text.replace(f'unitAccession="{accession}"', f'unitAccession="{accession}" unitName="{name}"')
    return text


def read(path: Path) -> tuple[Any, list[str]]:
    """Return the spectra of a file, and the messages."""
    progress = RecordingProgress(Progress())
    return read_spectra([path], progress=progress, threads=1), list(progress.messages)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pyteomics' vocabulary leaves a file open
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("value", "unit"), [("1583100", "UO:0000028"), ("2.01", "UO:0000010"), ("2.01", "UO:0000031"), ("0.5", "UO:0000032")]
)
def test_mzml_retention_times_equal_pyteomics_in_every_unit(make: Any, written: Written, value: str, unit: str) -> None:
    """Units of scan times are converted (https://github.com/pymzml/pymzML/pull/288, https://github.com/levitsky/pyteomics/issues/56)."""
    mzml = pytest.importorskip("pyteomics.mzml", reason="pyteomics reads mzML independently")
    path = written(named(make.mzml(make.mzml_spectrum(time=make.term("MS:1000016", value, unit)))), "a.mzML")
    with mzml.MzML(str(path)) as reader:
        time = next(reader)["scanList"]["scan"][0]["scan start time"]
    assert read(path)[0].retention_time[0] == pytest.approx(float(time) * SECONDS[time.unit_info])


@pytest.mark.parametrize("unit", ["", "UO:0000221"])
def test_mzml_retention_times_without_unit_are_reported(make: Any, written: Written, unit: str) -> None:
    """Scan times without a unit are not used (https://github.com/chhh/MSFTBX/issues/15)."""
    time = make.term("MS:1000016", "1.5", unit)
    spectra, messages = read(written(make.mzml(make.mzml_spectrum(time=time), make.mzml_spectrum(1)), "a.mzML"))
    assert np.isnan(spectra.retention_time).tolist() == [True, False]
    assert [message for message in messages if "1 spectrum whose scan start time has no unit" in message and "scan=1" in message]


@pytest.mark.parametrize("terms", [("MS:1000576", "MS:1002312"), ("MS:1002312", "MS:1000576")])
def test_mzml_numpress_with_a_no_compression_term_is_decoded(make: Any, written: Written, terms: tuple[str, str]) -> None:
    """The two compression terms may be combined (https://github.com/OpenMS/OpenMS/issues/1618)."""
    pynumpress = pytest.importorskip("pynumpress", reason="pynumpress packs numbers independently")
    packed = bytes(pynumpress.encode_linear(np.array(make.mz), 100000.0))
    heights = np.array(make.intensity, "<f4").tobytes()
    arrays = make.binary_array("MS:1000514", packed, ("MS:1000523", *terms))
    arrays += make.binary_array("MS:1000515", heights, ("MS:1000521", "MS:1000576"))
    spectra, messages = read(written(make.mzml(make.mzml_spectrum(arrays=arrays)), "a.mzML"))
    assert spectra.mz.tolist() == pytest.approx(pynumpress.decode_linear(np.frombuffer(packed, np.uint8)).tolist(), abs=1e-9)
    assert spectra.intensity.tolist() == list(make.intensity) and messages == []


BED = ("chr7\t100\t200\tgene one\t5\t-\n", "chr7\t433\t433\tgap\t.\t.\n", "track_1\t5\t9\t1\t7\t+\t5\t9\t0,0,0\n")


def places(path: Path) -> dict[str, list[tuple[int, int, str]]]:
    """Return first and last base, and strand, of the features of each sequence."""
    return {
        name: [(feature.first, feature.last, feature.strand) for feature in features]
        for name, features in read_track(path).features.items()
    }


def test_bed_intervals_equal_pysam(written: Written) -> None:
    """Strands, features between two bases, nine columns and sequences named as a header.

    https://github.com/GMOD/jbrowse/issues/1479, https://github.com/arq5x/bedtools2/issues/187
    """
    pysam = pytest.importorskip("pysam", reason="pysam reads BED independently")
    path = written("browser position chr7:1-9\ntrack name=x\n" + "".join(BED), "a.bed")
    expected: dict[str, list[tuple[int, int, str]]] = {}
    with written("".join(BED), "bare.bed").open("rb") as file:
        for row in pysam.tabix_iterator(file, pysam.asBed()):
            expected.setdefault(row.contig, []).append((row.start + 1, max(row.end, row.start + 1), row.strand))
    assert places(path) == expected and len(expected) == 2


@pytest.mark.parametrize("blank", [" ", "  ", " \t "])
def test_bed_columns_separated_by_blanks_are_read(written: Written, blank: str) -> None:
    """Blanks separate columns (https://github.com/samtools/samtools/issues/142, https://github.com/igvteam/igv.js/issues/1228)."""
    lines = ("chr2\t0\t1\ta\t0\t+\n", "chr2\t2\t3\tb\t0\t-\n")
    expected = places(written("".join(lines), "tabs.bed"))
    assert places(written("".join(lines).replace("\t", blank), "blanks.bed")) == expected == {"chr2": [(1, 1, "+"), (3, 3, "-")]}


def test_unreadable_bed_lines_are_counted(written: Written) -> None:
    """Broken lines are left out (https://github.com/nextstrain/augur/issues/945)."""
    track = read_track(
        written("track   ChromStart  ChromEnd    locus tag\nbrowser foo\nchr 146750  147000  x y\nchr\tx\t9\nchr\t9\t3\n", "a.bed")
    )
    assert [(feature.first, feature.last) for feature in track.features["chr"]] == [(146751, 147000)]
    assert "2 lines are left out" in track.warning and "line 4: 'chr\\tx\\t9'" in track.warning
    with pytest.raises(InputError, match="line 2: is not BED or GFF3"):
        read_track(written("browser foo\nchr\tx\t9\n", "b.bed"))


def test_gff3_escapes_in_sequence_names_are_decoded(written: Written) -> None:
    """Names are percent-encoded (https://github.com/rust-bio/rust-bio/pull/672, https://github.com/daler/gffutils/issues/98)."""
    path = written("##gff-version 3\nseq%251%7Cx\ts\tgene\t5\t9\t.\t-\t.\tID=a;Name=b%3Bc%2Cd\n", "a.gff3")
    (feature,) = read_track(path).within("seq%1|x", 1, 9, 9)
    assert (feature.first, feature.last, feature.name) == (5, 9, "b;c,d")


GENOME = "".join("ACGT"[int(i)] for i in np.random.default_rng(8).integers(0, 4, 300))


def genbank(*features: str, topology: str = "circular") -> str:
    """Return a record of a small genome with these features."""
    lines = "".join(
        f"{i + 1:>9} " + " ".join(GENOME[i : i + 60].lower()[k : k + 10] for k in range(0, 60, 10)) + "\n" for i in range(0, 300, 60)
    )
    return (
        f"LOCUS       X1                       300 bp    DNA     {topology:<8} BCT 01-JAN-2020\nDEFINITION  x.\nACCESSION   X1\n"
        "VERSION     X1.1\nKEYWORDS    .\nSOURCE      x\n  ORGANISM  Yeti\n            Bacteria.\n"
        f"FEATURES             Location/Qualifiers\n{''.join(features)}ORIGIN\n{lines}//\n"
    )


def coding(location: str, name: str, *more: str) -> str:
    qualifiers = "".join(f"                     /{qualifier}\n" for qualifier in (f'locus_tag="{name}"', *more))
    return f"     CDS             {location}\n{qualifiers}"


@pytest.mark.parametrize(
    "location",
    ["complement(join(271..300,1..30))", "join(271..300,1..30)", "join(complement(31..60),complement(1..30))", "join(1..30,271..30)"],
)
def test_genbank_protein_of_joined_location_equals_biopython(written: Written, location: str) -> None:
    """Joined locations span the origin.

    https://github.com/oschwengers/bakta/issues/324, https://github.com/biopython/biopython/issues/570 and 2247
    """
    seq_io = pytest.importorskip("Bio.SeqIO", reason="Biopython reads GenBank independently")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = seq_io.read(written(genbank(coding(location, "L1")), "bare.gb"), "genbank")
        protein = str(record.features[0].extract(record.seq).translate()).replace("*", "X")
    path = written(genbank(coding(location, "L1", f'translation="{protein}"'), coding("31..60", "L2", 'translation="MKAAAK"')), "a.gb")
    proteins = read_proteins([path])
    assert [proteins.accession(row) for row in range(len(proteins))] == ["L1", "L2"]
    assert [proteins.sequence(row) for row in range(2)] == [protein, "MKAAAK"]


def test_genbank_coding_sequences_without_protein_are_counted(written: Written) -> None:
    """Coding sequences may lack a translation.

    https://github.com/Xiangyang1984/Gcluster/issues/2, https://github.com/oschwengers/bakta/issues/94
    """
    seq_io = pytest.importorskip("Bio.SeqIO", reason="Biopython reads GenBank independently")
    features = (
        coding("1..30", "L1"),
        coding("31..60", "L2", "pseudo"),
        coding("61..90", "L3", 'translation="MKAAAK"'),
        coding("91..120", "L4"),
        coding("121..150", "L5", 'pseudogene="unknown"'),
    )
    path = written(genbank(*features), "a.gb")
    missed = sum(
        not {"translation", "pseudo", "pseudogene"} & feature.qualifiers.keys() for feature in seq_io.read(path, "genbank").features
    )
    progress = RecordingProgress(Progress())
    proteins = read_proteins([path], progress=progress)
    assert len(proteins) == 1 and missed == 2
    assert [message for message in progress.messages if f"{missed} coding sequences (CDS) without /translation left out" in message]


def test_fastq_of_several_lines_equals_biopython(written: Written) -> None:
    """Qualities on separate lines may begin with @ or + (https://github.com/isovic/racon/issues/67)."""
    seq_io = pytest.importorskip("Bio.SeqIO", reason="Biopython reads FASTQ independently")
    path = written("@a one\nACGTAC\nGTA\n+\n@IIII+\n+I@\n@b\nAC\n+b\n@@\n@c\nA\nC\nG\n+\n+\n@\nI\n", "a.fastq")
    with path.open() as file:
        expected = [(record.id, str(record.seq), record.letter_annotations["phred_quality"]) for record in seq_io.parse(file, "fastq")]
    reads = read_fastq(path)
    results = [
        (name, reads.bases[start:stop].tobytes().decode(), (reads.qualities[start:stop] - 33).tolist())
        for name, start, stop in zip(reads.names.strings(), reads.offsets[:-1], reads.offsets[1:], strict=True)
    ]
    assert results == expected and len(results) == 3


def test_sptxt_terminal_modification_mass_includes_hydrogen(written: Written) -> None:
    """Terminal masses include the hydrogen (https://github.com/msproteomicstools/msproteomicstools/issues/113)."""
    mass = pytest.importorskip("pyteomics.mass", reason="pyteomics weighs peptides independently")
    expected = mass.calculate_mass(sequence="SAIQNLHSF", charge=2) + 42.010565 / 2
    text = (
        f"Name: n[43]SAIQNLHSF/2\nLibID: 0\nMW: 1086.5\nPrecursorMZ: {expected:.4f}\nStatus: Normal\nFullName: X.n[43]SAIQNLHSF.X/2 (CID)\n"
        "Comment: Mods=1/-1,S,Acetyl RetentionTime=3001.5,3010,2990\nNumPeaks: 2\n175.119\t500.0\ty1/0.00\t1/1 0.0\n200.2\t7\t?\t\n\n"
    )
    library = read_libraries([written(text, "a.sptxt")])
    assert library.peptidoform.to_pylist() == ["[Acetyl]-SAIQNLHSF"] and library.retention_time.tolist() == [3001.5]
    assert library.precursor_mz[0] == pytest.approx(expected, abs=1e-4) and library.mz.tolist() == [175.119, 200.2]


def test_msp_retention_time_merged_with_next_field_is_reported(written: Written) -> None:
    """An empty retention time runs into the next field (https://github.com/matchms/matchms/issues/421)."""
    text = "NAME: phenazine\nPRECURSORMZ: 224.0\nRETENTIONTIME: CCS: \nNum Peaks: 2\n78.909088\t0.066286\n79.727272\t3e-06\n\n"
    progress = RecordingProgress(Progress())
    library = read_libraries([written(text, "a.msp")], progress)
    assert library.mz.tolist() == [78.909088, 79.727272] and np.isnan(library.retention_time[0])
    assert [message for message in progress.messages if "its retention time cannot be read" in message]


@pytest.mark.parametrize(("unit", "seconds"), [("", None), ("UO:0000031|minute", 232.266), ("UO:0000010|second", 3.8711)])
def test_mzspeclib_retention_times_without_unit_are_reported(written: Written, unit: str, seconds: float | None) -> None:
    """Retention times have units (https://github.com/HUPO-PSI/mzSpecLib/pull/71)."""
    time = f"[1]MS:1000894|retention time=3.87110\n[1]UO:0000000|unit={unit}\n" if unit else "MS:1000894|retention time=3.87110\n"
    text = (
        f"<mzSpecLib>\nMS:1003186|library format version=1.0\n<Spectrum=9>\nMS:1003061|library spectrum name=JWH-073-3OH\n{time}"
        "MS:1003208|experimental precursor monoisotopic m/z=344.16000\nMS:1003059|number of peaks=2\n<Analyte=19>\n"
        "MS:1000041|charge state=1\n<Peaks>\n51.0237\t3561.28\n55.0550\t8421.19\n\n"
    )
    progress = RecordingProgress(Progress())
    library = read_libraries([written(text, "a.mzlib.txt")], progress)
    assert np.nan_to_num(library.retention_time, nan=-1.0).tolist() == [pytest.approx(-1.0 if seconds is None else seconds)]
    assert bool([message for message in progress.messages if "has no unit of time" in message]) == (seconds is None)

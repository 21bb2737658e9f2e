"""The registry of file formats, one line for each.

A line says how a file is recognised and read, which suffixes it has, what dialogs and help texts list, and its term in the PSI-MS
vocabulary. This module loads no reader. docs/developers/extending.md explains how to add a format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from proteoscope.engine import formats

__all__ = [
    "FORMATS",
    "Beginning",
    "FileFormat",
    "bare_name",
    "format_of_name",
    "formats_of",
    "has_suffix_of",
    "library_suffixes",
    "names_of",
    "suffixes_of",
]

Sort = Literal["spectra", "proteins", "reads", "structures", "identifications", "libraries"]
"""Content of a file, in whichever format."""


class Beginning:
    """The beginning of a text file, as its format is told by.

    Attributes
    ----------
    text : without byte order mark and leading blanks; its lines end with ``\\n``. lines : the first that are not blank, without blanks
        around them; at least one.
    """

    def __init__(self, head: bytes) -> None:
        self.text = head.lstrip().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self.lines = [line for line in (line.strip() for line in self.text.split(b"\n", _LINES)[:_LINES]) if line]


@dataclass(frozen=True)
class FileFormat:
    """A format of files.

    Attributes
    ----------
    name : as its users write it. sort : what such files hold. suffixes : of their names, lower case, the usual one first; a gzipped file
        has ``.gz`` behind.
    reader : imports and returns what reads the format, as ``lambda: formats.mzml.MzmlParser``: the
        `proteoscope.engine.formats.spectrum_blocks.SpectrumParser` of a format of spectra, called with the path and ``takes_negative``; the
        `proteoscope.engine.formats.entries.EntryFormat` of a format of proteins; the function that reads libraries, called with a
        `proteoscope.engine.formats.sources.ByteSource`, the `proteoscope.engine.formats.libraries.entries.LibraryCollector` and a progress.
        FASTA has none, and what reads other sorts knows its formats itself (`proteoscope.engine.imported.reading`, of results of search
        engines).
    library_reader : the same function of a format of spectra whose files may name what their spectra are of.
    writer : imports and returns the `proteoscope.engine.formats.writing.SpectrumWriter`, called with the spectra, where they can be written
        in it; of libraries the `proteoscope.engine.formats.libraries.writing.LibraryTextWriter`, or the function that writes a file that is
        no text.
    roots : the elements that XML of this format begins with, or text in angle brackets. is_like : whether text that is no XML is of this
        format; asked in the order of `FORMATS`. magic : what binary files of this format begin with; mark : what then stands in their
        beginning too. Without any of them, a format is told by whoever reads its sort.
    term : accession and name in the PSI-MS vocabulary.
    spectra_called_by : what mzIdentML calls its spectra by: the native identifier that the file gives, the scan number, or the place in the
        file. has_titles : whether the name of a spectrum is a title that somebody gave it.
    """

    name: str
    sort: Sort
    suffixes: tuple[str, ...]
    reader: Callable[[], Callable[..., Any]] | None = None
    writer: Callable[[], Callable[..., Any]] | None = None
    roots: tuple[str, ...] = ()
    is_like: Callable[[Beginning], bool] | None = None
    magic: bytes = b""
    mark: bytes = b""
    library_reader: Callable[[], Callable[..., Any]] | None = None
    term: tuple[str, str] | None = None
    spectra_called_by: Literal["native", "scan", "index"] = "index"
    has_titles: bool = False


_LINES = 200
_BEGIN_IONS = re.compile(rb"^[ \t]*BEGIN IONS[ \t]*\r?$", re.MULTILINE)
_MGF_KEY = re.compile(rb"^[A-Z][A-Z0-9_]*(?:\[\d+\])?\s*=")
_MS2_LINE = re.compile(rb"^(?:H[ \t]|S[ \t]+\d+[ \t]+\d+)", re.MULTILINE)
_PIR = re.compile(rb">(?:P1|F1|D1|DL|DC|RL|RC|N1|N3|XX);[^\n]*\n[^\n]*\n[^>;]*\*")
_SWISS_PROT = re.compile(rb"ID   \S+ +(?:Reviewed|Unreviewed|STANDARD|PRELIMINARY);[^\n]* AA\.[ \t]*\n")
_GENBANK = re.compile(rb"\A(?:[^\n]*\n){0,12}?LOCUS {3,}\S+ +\d+ (?:bp|aa)\b")
"""The releases of NCBI begin with ten lines about themselves."""
_EMBL = re.compile(rb"ID   [^\n;]+;[^\n]*\d+ (?:BP|AA)\.[ \t]*\n")
_NUMBERS = re.compile(rb"[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?")
_MSP_KEY = re.compile(rb"[A-Za-z][\w /#().-]{0,60}:")
_MSP_PEAKS = re.compile(rb"num[ _]?peaks[ \t]*:", re.IGNORECASE)


def _is_fasta(beginning: Beginning) -> bool:
    if _is_pir(beginning):
        return False
    if beginning.lines[0].startswith(b";"):
        return next((line for line in beginning.lines if line[:1] not in b";#"), b"").startswith(b">")
    return beginning.text.startswith(b">")


def _is_pir(beginning: Beginning) -> bool:
    return _PIR.match(beginning.text) is not None


def _is_swiss_prot(beginning: Beginning) -> bool:
    return _SWISS_PROT.match(beginning.text) is not None


def _is_genbank(beginning: Beginning) -> bool:
    return _GENBANK.search(beginning.text) is not None


def _is_embl(beginning: Beginning) -> bool:
    return _EMBL.match(beginning.text) is not None


def _is_mgf(beginning: Beginning) -> bool:
    lines = beginning.lines
    if _BEGIN_IONS.search(beginning.text) or _MGF_KEY.match(lines[0]):
        return True
    return all(line[:1] in b"#;!/" or _MGF_KEY.match(line) for line in lines)


def _is_ms2(beginning: Beginning) -> bool:
    return _MS2_LINE.match(beginning.text) is not None


def _n_numbers(beginning: Beginning) -> int:
    """How many numbers the first line that is no name begins with."""
    words = next((line for line in beginning.lines if line[:1] != b"="), b"").split()
    return next((n for n, word in enumerate(words) if not _NUMBERS.fullmatch(word.rstrip(b"+"))), len(words))


def _is_dta(beginning: Beginning) -> bool:
    return _n_numbers(beginning) == 2


def _is_pkl(beginning: Beginning) -> bool:
    return _n_numbers(beginning) >= 3


def _is_msp(beginning: Beginning) -> bool:
    """Whether an entry begins with its name, or with other keys before its number of peaks."""
    first = next((line for line in beginning.lines if line[:1] != b"#"), b"")
    return first[:5].lower() == b"name:" or (_MSP_KEY.match(first) is not None and any(map(_MSP_PEAKS.match, beginning.lines)))


def _is_sptxt(beginning: Beginning) -> bool:
    return _is_msp(beginning) and any(line.startswith((b"LibID:", b"### SpectraST")) for line in beginning.lines)


def _is_mzspeclib_json(beginning: Beginning) -> bool:
    return beginning.text.startswith(b"{") and b'"MS:1003186"' in beginning.text


def _is_mztab(beginning: Beginning) -> bool:
    return beginning.text.startswith((b"MTD\tmzTab-", b"COM\t")) and b"mzTab-version" in beginning.text


def _is_comet(beginning: Beginning) -> bool:
    return beginning.text.startswith(b"CometVersion") and b"\nscan\tnum\t" in beginning.text


def _has_columns(*some: tuple[str, ...]) -> Callable[[Beginning], bool]:
    """Whether the first line of a text names all columns of one of the tuples, in lower case."""

    def is_like(beginning: Beginning) -> bool:
        named = {name.strip(b' "').decode("utf-8", "replace").lower() for name in beginning.lines[0].split(b"\t")}
        return any(named.issuperset(names) for names in some)

    return is_like


FORMATS: tuple[FileFormat, ...] = (
    FileFormat("FASTA", "proteins", (".fasta", ".fa", ".faa", ".fna", ".fas"), is_like=_is_fasta, term=("MS:1001348", "FASTA format")),
    FileFormat(
        "Swiss-Prot text",
        "proteins",
        (".dat", ".swiss", ".sprot"),
        lambda: formats.uniprot.SwissProtText,
        is_like=_is_swiss_prot,
        term=("MS:1002659", "UniProtKB text sequence format"),
    ),
    FileFormat(
        "UniProt XML",
        "proteins",
        (".xml",),
        lambda: formats.uniprot.UniprotXml,
        roots=("uniprot",),
        term=("MS:1002660", "UniProtKB XML sequence format"),
    ),
    FileFormat(
        "GenBank",
        "proteins",
        (".gb", ".gbk", ".gbff", ".gp", ".gpff", ".genbank"),
        lambda: formats.flat_files.GenBank,
        is_like=_is_genbank,
    ),
    FileFormat("EMBL", "proteins", (".embl",), lambda: formats.flat_files.Embl, is_like=_is_embl, term=("MS:1001352", "embl em")),
    FileFormat("PIR", "proteins", (".pir", ".nbrf"), lambda: formats.flat_files.Pir, is_like=_is_pir, term=("MS:1001353", "NBRF PIR")),
    FileFormat("FASTQ", "reads", (".fastq", ".fq")),
    FileFormat(
        "mzML",
        "spectra",
        (".mzml",),
        lambda: formats.mzml.MzmlParser,
        lambda: formats.mzml_writer.MzmlWriter,
        roots=("mzML", "indexedmzML"),
        term=("MS:1000584", "mzML format"),
        spectra_called_by="native",
    ),
    FileFormat(
        "mzXML",
        "spectra",
        (".mzxml",),
        lambda: formats.mzxml.MzxmlParser,
        roots=("mzXML", "msRun"),
        term=("MS:1000566", "ISB mzXML format"),
        spectra_called_by="scan",
    ),
    FileFormat(
        "MGF",
        "spectra",
        (".mgf",),
        lambda: formats.peak_lists.MgfParser,
        lambda: formats.peak_list_writers.MgfWriter,
        is_like=_is_mgf,
        term=("MS:1001062", "Mascot MGF format"),
        has_titles=True,
        library_reader=lambda: formats.libraries.mgf.read_mgf,
    ),
    FileFormat(
        "MS2",
        "spectra",
        (".ms2",),
        lambda: formats.peak_lists.Ms2Parser,
        lambda: formats.peak_list_writers.Ms2Writer,
        is_like=_is_ms2,
        term=("MS:1001466", "MS2 format"),
        spectra_called_by="scan",
    ),
    FileFormat("DTA", "spectra", (".dta",), lambda: formats.peak_lists.DtaParser, is_like=_is_dta, term=("MS:1000613", "DTA format")),
    FileFormat(
        "PKL", "spectra", (".pkl",), lambda: formats.peak_lists.PklParser, is_like=_is_pkl, term=("MS:1000565", "Micromass PKL format")
    ),
    FileFormat(
        "mzIdentML",
        "identifications",
        (".mzid", ".mzidentml"),
        roots=("MzIdentML",),
        term=("MS:1002073", "mzIdentML format"),
    ),
    FileFormat(
        "pepXML",
        "identifications",
        (".pep.xml", ".pepxml"),
        roots=("msms_pipeline_analysis",),
        term=("MS:1001421", "pepXML format"),
    ),
    FileFormat("X!Tandem XML", "identifications", (".t.xml", ".tandem"), roots=("bioml",), term=("MS:1001401", "X!Tandem xml format")),
    FileFormat("idXML", "identifications", (".idxml",), roots=("IdXML",)),
    FileFormat("mzTab", "identifications", (".mztab",), is_like=_is_mztab),
    FileFormat("Comet text", "identifications", (".comet.txt",), is_like=_is_comet),
    FileFormat(
        "Percolator or mokapot",
        "identifications",
        (".psms.tsv", ".psms.txt", ".pin"),
        is_like=_has_columns(("psmid", "score", "q-value"), ("specid", "label", "peptide"), ("specid", "mokapot q-value")),
    ),
    FileFormat(
        "Crux Percolator",
        "identifications",
        (".percolator.txt",),
        is_like=_has_columns(("scan", "charge", "percolator score", "percolator q-value", "sequence")),
    ),
    FileFormat("Sage", "identifications", (".sage.tsv",), is_like=_has_columns(("peptide", "scannr", "hyperscore"))),
    FileFormat(
        "MSFragger",
        "identifications",
        (".psm.tsv",),
        is_like=_has_columns(("scannum", "peptide", "hyperscore"), ("spectrum", "peptide", "hyperscore", "assigned modifications")),
    ),
    FileFormat(
        "MaxQuant msms.txt",
        "identifications",
        (".msms.txt",),
        is_like=_has_columns(("raw file", "scan number", "modified sequence", "pep")),
    ),
    FileFormat(
        "DIA-NN report",
        "identifications",
        (".diann.tsv",),
        is_like=_has_columns(("modified.sequence", "precursor.charge", "q.value")),
    ),
    FileFormat("DIA-NN Parquet report", "identifications", (".parquet",), magic=b"PAR1"),
    FileFormat(
        "PeptideShaker report",
        "identifications",
        (".peptideshaker.txt",),
        is_like=_has_columns(("sequence", "modified sequence", "spectrum title", "identification charge")),
    ),
    FileFormat(
        "SpectraST sptxt",
        "libraries",
        (".sptxt",),
        lambda: formats.libraries.msp.read_msp,
        is_like=_is_sptxt,
    ),
    FileFormat(
        "MSP",
        "libraries",
        (".msp",),
        lambda: formats.libraries.msp.read_msp,
        lambda: formats.libraries.msp_writer.MspWriter,
        is_like=_is_msp,
    ),
    FileFormat(
        "mzSpecLib text",
        "libraries",
        (".mzspeclib.txt", ".mzlib.txt"),
        lambda: formats.libraries.mzspeclib_text.read_mzspeclib_text,
        lambda: formats.libraries.mzspeclib_writer.MzSpecLibWriter,
        roots=("mzSpecLib",),
    ),
    FileFormat(
        "mzSpecLib JSON",
        "libraries",
        (".mzspeclib.json", ".mzlib.json"),
        lambda: formats.libraries.mzspeclib_json.read_mzspeclib_json,
        is_like=_is_mzspeclib_json,
    ),
    FileFormat(
        "BiblioSpec blib",
        "libraries",
        (".blib",),
        lambda: formats.libraries.blib.read_blib,
        lambda: formats.libraries.blib_writer.write_blib,
        magic=b"SQLite format 3\0",
        mark=b"RefSpectra",
    ),
    FileFormat(
        "DIA-NN library",
        "libraries",
        (".lib.tsv",),
        lambda: formats.libraries.transitions.read_transitions,
        is_like=_has_columns(("precursormz", "productmz", "libraryintensity")),
    ),
    FileFormat(
        "Spectronaut library",
        "libraries",
        (".spectronaut.tsv",),
        lambda: formats.libraries.transitions.read_transitions,
        is_like=_has_columns(("precursormz", "fragmentmz", "relativeintensity")),
    ),
    FileFormat("PDB", "structures", (".pdb", ".ent")),
    FileFormat("mmCIF", "structures", (".cif", ".mmcif", ".pdbx")),
    FileFormat("BinaryCIF", "structures", (".bcif",)),
)
"""All formats that are read, each also gzipped, in the order in which a text's beginning is compared with them."""


def formats_of(sort: str) -> tuple[FileFormat, ...]:
    """The formats of a sort."""
    return tuple(one for one in FORMATS if one.sort == sort)


def suffixes_of(sort: str) -> tuple[str, ...]:
    """The suffixes that files of a sort may have, without ``.gz``."""
    return tuple(suffix for one in formats_of(sort) for suffix in one.suffixes)


def library_suffixes() -> tuple[str, ...]:
    """The suffixes of files of spectra that may be libraries too, where their spectra say what they are of.

    >>> library_suffixes()
    ('.mgf',)
    """
    return tuple(suffix for one in formats_of("spectra") if one.library_reader for suffix in one.suffixes)


def names_of(sort: str) -> str:
    """The formats of a sort as a sentence lists them.

    >>> names_of("structures")
    'PDB, mmCIF or BinaryCIF'
    """
    *others, last = [one.name for one in formats_of(sort)]
    return f"{', '.join(others)} or {last}" if others else last


def bare_name(name: str) -> str:
    """The name of a file in lower case and without ``.gz``."""
    return name.lower().removesuffix(".gz")


def has_suffix_of(name: str, sort: str) -> bool:
    """Whether the name of a file, gzipped or not, ends as those of a sort do."""
    return bare_name(name).endswith(suffixes_of(sort))


def format_of_name(name: str) -> FileFormat | None:
    """The format that the name of a file tells, None where it tells none.

    >>> format_of_name("run 1.mzML.gz").name
    'mzML'
    """
    name = bare_name(name)
    return next((one for one in FORMATS if name.endswith(one.suffixes)), None)

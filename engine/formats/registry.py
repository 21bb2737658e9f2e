"""Registry of file formats.

An entry of the registry defines how a format is recognised and read, its suffixes, its name in dialogs and help texts, and its term in the
PSI-MS vocabulary. This module imports no reader. docs/developers/extending.md explains how to add a format.
"""

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
    "find_format",
    "format_names",
    "has_suffix",
    "library_suffixes",
    "list_suffixes",
    "select_formats",
]

Content = Literal["spectra", "proteins", "reads", "structures", "identifications", "libraries"]
"""Type of content of a file."""


class Beginning:
    r"""Beginning of a text file, from which its format is recognised.

    Parameters
    ----------
    head : bytes
        First bytes of the file.

    Attributes
    ----------
    text : bytes
        Text without byte order mark and leading blanks; lines end with ``\n``.
    lines : list of bytes
        First lines that are not blank, stripped; at least one.
    """

    def __init__(self, head: bytes) -> None:
        self.text = head.lstrip().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self.lines = [line for line in (line.strip() for line in self.text.split(b"\n", _LINES)[:_LINES]) if line]


@dataclass(frozen=True)
class FileFormat:
    """File format: how it is recognised, read and written.

    Attributes
    ----------
    name : str
        Name as shown to users.
    content : Content
        Type of content of the files.
    suffixes : tuple of str
        Suffixes in lower case, the usual suffix first; gzipped files add ``.gz``.
    reader : callable, optional
        Function that imports and returns the reader, such as ``lambda: formats.mzml.MzmlParser``. For spectra the reader is a
        `proteoscope.engine.formats.spectrum_blocks.SpectrumParser`, constructed with the path and ``takes_negative``; for proteins a
        `proteoscope.engine.formats.entries.EntryFormat`; for libraries a function that is called with a
        `proteoscope.engine.formats.sources.ByteSource`, a `proteoscope.engine.formats.libraries.entries.LibraryCollector` and a `Progress`.
        None for FASTA, and for content whose readers have tables of their formats (such as `proteoscope.engine.imported.reading` for search
        results).
    writer : callable, optional
        Function that imports and returns the writer. For spectra the writer is a `proteoscope.engine.formats.writing.SpectrumWriter`,
        constructed with the spectra; for libraries a `proteoscope.engine.formats.libraries.writing.LibraryTextWriter`, or a function that
        writes a binary file.
    roots : tuple of str
        Root elements of XML files, or texts that follow the first angle bracket.
    is_like : callable, optional
        Function that returns True for text, other than XML, in this format; called in the order of `FORMATS`.
    magic : bytes
        First bytes of binary files.
    mark : bytes
        Further text that the beginning of binary files contains. Formats without `roots`, `is_like` and `magic` are recognised by the
        readers of their content.
    library_reader : callable, optional
        Function that imports and returns the reader of libraries, for a spectrum format whose files may contain the peptides of their
        spectra.
    term : (str, str), optional
        Accession and name in the PSI-MS vocabulary.
    spectra_called_by : str
        Identification of spectra in mzIdentML: by native identifier (``native``), scan number (``scan``), or index in the file
        (``index``).
    has_titles : bool
        True if the names of spectra are arbitrary titles.
    """

    name: str
    content: Content
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
_BEGIN_IONS = re.compile(rb"^[ \t]*BEGIN IONS[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_MGF_KEY = re.compile(rb"^[A-Z][A-Z0-9_]*(?:\[\d+\])?\s*=")
_MS2_LINE = re.compile(rb"^(?:H[ \t]|S[ \t]+\d+[ \t]+\d+)", re.MULTILINE)
_PIR = re.compile(rb">(?:P1|F1|D1|DL|DC|RL|RC|N1|N3|XX);[^\n]*\n[^\n]*\n[^>;]*\*")
_SWISS_PROT = re.compile(rb"ID   \S+ +(?:Reviewed|Unreviewed|STANDARD|PRELIMINARY);[^\n]* AA\.[ \t]*\n")
_GENBANK = re.compile(rb"\A(?:[^\n]*\n){0,12}?LOCUS {3,}\S+ +\d+ (?:bp|aa)\b")
"""Regular expression of the first line of a GenBank record, after up to twelve lines.

Releases of NCBI begin with ten lines about the release.
"""
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
    """Return how many words at the start of the first line are numbers; lines that begin with ``=`` (names) are skipped."""
    words = next((line for line in beginning.lines if line[:1] != b"="), b"").split()
    return next((n for n, word in enumerate(words) if not _NUMBERS.fullmatch(word.rstrip(b"+"))), len(words))


def _is_dta(beginning: Beginning) -> bool:
    return _n_numbers(beginning) == 2


def _is_pkl(beginning: Beginning) -> bool:
    return _n_numbers(beginning) >= 3


def _is_msp(beginning: Beginning) -> bool:
    """Return True if the text begins with the key ``Name:``, or with another key and contains a line with the number of peaks."""
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


def _has_columns(*alternatives: tuple[str, ...]) -> Callable[[Beginning], bool]:
    """Return a function for `FileFormat.is_like`, which is True if the first line names all columns of at least one of the tuples.

    The tuples contain names in lower case; the case in the file does not matter.
    """

    def is_like(beginning: Beginning) -> bool:
        named = {name.strip(b' "').decode("utf-8", "replace").lower() for name in beginning.lines[0].split(b"\t")}
        return any(named.issuperset(names) for names in alternatives)

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
        lambda: formats.libraries.text_writers.MspWriter,
        is_like=_is_msp,
    ),
    FileFormat(
        "mzSpecLib text",
        "libraries",
        (".mzspeclib.txt", ".mzlib.txt"),
        lambda: formats.libraries.mzspeclib_text.read_mzspeclib_text,
        lambda: formats.libraries.text_writers.MzSpecLibWriter,
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
"""All supported formats, plain or gzipped, in the order in which `is_like` is called."""


def select_formats(content: str) -> tuple[FileFormat, ...]:
    """Return the formats of a type of content, such as ``spectra``."""
    return tuple(file_format for file_format in FORMATS if file_format.content == content)


def list_suffixes(content: str) -> tuple[str, ...]:
    """Return the file suffixes of a type of content, without ``.gz``."""
    return tuple(suffix for file_format in select_formats(content) for suffix in file_format.suffixes)


def library_suffixes() -> tuple[str, ...]:
    """Return the suffixes of spectrum formats that may be libraries: files that name the peptides of their spectra are read as libraries.

    Examples
    --------
    >>> library_suffixes()
    ('.mgf',)
    """
    return tuple(suffix for file_format in select_formats("spectra") if file_format.library_reader for suffix in file_format.suffixes)


def format_names(content: str) -> str:
    """Return the names of the formats of a type of content, joined as in a sentence.

    Examples
    --------
    >>> format_names("structures")
    'PDB, mmCIF or BinaryCIF'
    """
    *others, last = [file_format.name for file_format in select_formats(content)]
    return f"{', '.join(others)} or {last}" if others else last


def bare_name(name: str) -> str:
    """Return a file name in lower case and without ``.gz``."""
    return name.lower().removesuffix(".gz")


def has_suffix(name: str, content: str) -> bool:
    """Return True if a file name ends with a suffix of the formats for a type of content (such as ``spectra``), also before ``.gz``."""
    return bare_name(name).endswith(list_suffixes(content))


def find_format(name: str) -> FileFormat | None:
    """Return the format that the suffix of a file name indicates, or None.

    Examples
    --------
    >>> find_format("run 1.mzML.gz").name
    'mzML'
    """
    name = bare_name(name)
    return next((file_format for file_format in FORMATS if name.endswith(file_format.suffixes)), None)

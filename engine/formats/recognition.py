"""Recognition of the format of a file from its first bytes."""

import re

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import registry
from proteoscope.engine.formats.registry import Beginning, FileFormat, format_names
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.formats.vendor import COMPOUND_MAGIC, THERMO_MAGIC

__all__ = ["HEAD_BYTES", "every_format", "has_entries", "recognise", "recognise_as"]

HEAD_BYTES = 1 << 17

_SHOWN = 50
"""Maximum number of characters of a file's text in a message."""

_CONVERT = "Convert it to mzML with msconvert (ProteoWizard)"
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (THERMO_MAGIC, "a Thermo raw file", "Convert it to mzML with ThermoRawFileParser or msconvert (ProteoWizard)"),
    (COMPOUND_MAGIC, "a binary vendor file (SCIEX .wiff or another compound document)", _CONVERT),
    (b"SQLite format 3\0", "an SQLite database (Bruker .tdf, .mzDB)", _CONVERT),
    (b"\x89HDF", "an HDF5 file (mz5, mzMLb)", _CONVERT),
    (b"PK\x03\x04", "a zip archive", "Unpack it first"),
    (b"BZh", "packed with bzip2", "Unpack it first, or pack it with gzip"),
    (b"\xfd7zXZ\0", "packed with xz", "Unpack it first, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "Unpack it first, or pack it with gzip"),
    (b"\xff\xfe", "text in UTF-16", "Save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "Save it as UTF-8"),
    (b"%PDF", "a PDF document", ""),
    (b"\x89PNG", "a PNG picture", ""),
    (b"\xff\xd8\xff", "a JPEG picture", ""),
)
"""First bytes, descriptions and remedies of unsupported files; the remedy is '' if such a file cannot be converted."""
_OFFICE_SUFFIXES = (".docx", ".xlsx", ".pptx", ".odt", ".ods")
"""Endings of zip archives that are documents."""
_OTHER_ROOTS: dict[bytes, str] = {
    b"mzData": "mzData, which is no longer in use",
    b"html": "a web page",
}
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)[\s>/]")
_NOISE_ENDS = ((b"<!--", b"-->"), (b"<?", b"?>"))


def recognise(source: ByteSource) -> FileFormat:
    """Return the format of a file with spectra, proteins, libraries or search results.

    Raises
    ------
    InputError
        If the format is not supported; the message names the apparent format and a remedy.
    """
    head = source.peek(HEAD_BYTES)
    for file_format in registry.FORMATS:
        # SQLite stores text, including table names, in one of three encodings.
        marks = (file_format.mark.decode().encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
        if file_format.magic and head.startswith(file_format.magic) and any(mark in head for mark in marks):
            return file_format
    if head.startswith(b"PK") and source.path.suffix.lower() in _OFFICE_SUFFIXES:
        raise InputError(
            source.path, "is a document of an office program, which cannot be read", remedy="Save its text or table as a text file"
        )
    for signature, description, remedy in _SIGNATURES:
        if head.startswith(signature):
            raise InputError(source.path, f"is {description}, which cannot be read", remedy=remedy or every_format())
    head = head.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in head:
        raise InputError(
            source.path,
            "contains binary data in no known format",
            place=f"byte {head.index(0)}",
            remedy="Convert spectra to mzML with msconvert (ProteoWizard); give proteins as FASTA",
        )
    text = head.lstrip()
    if not text:
        raise InputError(source.path, "the file holds only blanks", remedy="Copy or convert it again")
    if text.startswith(b"<"):
        return _recognise_xml(source, text)
    beginning = Beginning(text)
    for file_format in registry.FORMATS:
        if file_format.is_like is not None and file_format.is_like(beginning):
            return file_format
    raise InputError(
        source.path,
        "is in no known format",
        place="line 1",
        remedy=f"{every_format()}, each also gzipped",
    )


_MISPLACED: dict[tuple[str, str], tuple[str, str]] = {
    ("spectra", "identifications"): ("is {}: identifications, not spectra", "Import it: proteoscope import, with its spectra"),
    ("spectra", "libraries"): ("is {}: a spectral library, not measured spectra", "Give it as a library"),
    ("spectra", "proteins"): ("is a {} file of sequences, not a file of spectra", "Give it as the database"),
    ("proteins", "identifications"): ("contains identifications ({}); expected a FASTA file of proteins", "Give a FASTA file"),
    ("proteins", "libraries"): ("is a spectral library ({}); expected proteins", "Give a FASTA file"),
    ("proteins", "spectra"): (
        "is a file of spectra ({}); expected a FASTA file of proteins",
        "Give it among the spectra, and a FASTA file of proteins here",
    ),
    ("libraries", "spectra"): ("is {}, not a spectral library", "Give it as SPECTRA"),
    ("identifications", "spectra"): ("is {}, not results of a search engine", "Give it with --spectra"),
}
"""Reason and remedy for a file with unexpected content, by expected and actual type of content."""


def recognise_as(source: ByteSource, content: str) -> FileFormat:
    """Return the format of a file that must have a certain content.

    Parameters
    ----------
    source : ByteSource
        File.
    content : str
        Expected content: ``spectra``, ``proteins``, ``libraries`` or ``identifications``.

    Raises
    ------
    InputError
        If the format is not supported, or if the file has other content.
    """
    file_format = recognise(source)
    if file_format.content != content and not (content == "libraries" and file_format.library_reader):
        usual = "is {}, not results of a search engine", f"Give {format_names('identifications')}"
        reason, remedy = _MISPLACED.get((content, file_format.content), usual)
        raise InputError(source.path, reason.format(file_format.name), remedy=remedy)
    return file_format


def has_entries(source: ByteSource) -> bool:
    """Return True if a file is in an annotated protein format (see `proteoscope.engine.formats.entries`)."""
    try:
        file_format = recognise(source)
    except InputError:
        return False
    return file_format.content == "proteins" and bool(file_format.reader)


def every_format() -> str:
    """Return the supported formats of spectra, proteins, search results and libraries as a sentence for error messages."""
    names = {content: format_names(content) for content in ("spectra", "proteins", "identifications", "libraries")}
    return (
        f"Spectra may be {names['spectra']}, proteins {names['proteins']}, results of search engines {names['identifications']},"
        f" libraries {names['libraries']}"
    )


def _recognise_xml(source: ByteSource, text: bytes) -> FileFormat:
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise InputError(
            source.path, "the XML has a document type declaration, which could include other files", remedy="Remove the <!DOCTYPE ...> part"
        )
    root = _ROOT.search(_without_noise(text))
    name = root.group(2) if root else b""
    for file_format in registry.FORMATS:
        if root is not None and name.decode() in file_format.roots:
            if root.group(1):
                remedy = _CONVERT if file_format.content == "spectra" else "Write the file again without one"
                raise InputError(source.path, "the XML elements have a namespace prefix", remedy=remedy)
            return file_format
    description = _OTHER_ROOTS.get(name, f"XML of another kind (<{name[:_SHOWN].decode('utf-8', 'replace')}>)" if name else "broken XML")
    raise InputError(source.path, f"is {description}", remedy=every_format())


def _without_noise(text: bytes) -> bytes:
    """Return an XML text without comments and processing instructions; text from an unclosed comment or instruction on is removed too."""
    parts: list[bytes] = []
    at = 0
    while (start := text.find(b"<", at)) >= 0:
        closing = next((closing for opening, closing in _NOISE_ENDS if text.startswith(opening, start)), b"")
        if not closing:
            return b"".join(parts) + text[start:]
        stop = text.find(closing, start + 2 * len(closing) - 2)
        if stop < 0:
            return b"".join(parts)
        parts.append(text[at:start])
        at = stop + len(closing)
    return b"".join(parts)

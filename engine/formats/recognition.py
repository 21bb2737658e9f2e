"""The kind of a file, from its first bytes."""

from __future__ import annotations

import re

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import registry
from proteoscope.engine.formats.registry import Beginning, FileFormat, names_of
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.formats.vendor import COMPOUND_MAGIC, THERMO_MAGIC

__all__ = ["HEAD_BYTES", "every_format", "has_entries", "recognise", "recognise_as"]

HEAD_BYTES = 1 << 17

_SHOWN = 50
"""Letters of a file's own words that a message repeats."""

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
)
"""How files that nobody reads begin, what they are, and what to do; without the last, another file must be given."""
_OTHER_ROOTS: dict[bytes, str] = {
    b"mzData": "mzData, which is no longer in use",
    b"html": "a web page",
}
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)[\s>/]")
_BEHIND_NOISE = ((b"<!--", b"-->"), (b"<?", b"?>"))


def recognise(source: ByteSource) -> FileFormat:
    """The format of a file of spectra, proteins, or results of search engines.

    Anything else is an `InputError` that says what it seems to be and what to do.
    """
    head = source.peek(HEAD_BYTES)
    for one in registry.FORMATS:
        # SQLite keeps texts, and names with them, in one of three encodings.
        marks = (one.mark.decode().encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
        if one.magic and head.startswith(one.magic) and any(mark in head for mark in marks):
            return one
    for signature, what, remedy in _SIGNATURES:
        if head.startswith(signature):
            raise InputError(source.path, f"is {what}, which cannot be read", remedy=remedy or every_format())
    head = head.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in head:
        raise InputError(
            source.path,
            "holds binary data in no known format",
            place=f"byte {head.index(0)}",
            remedy="Convert spectra to mzML with msconvert (ProteoWizard); give proteins as FASTA",
        )
    text = head.lstrip()
    if not text:
        raise InputError(source.path, "the file holds only blanks", remedy="Copy or convert it again")
    if text.startswith(b"<"):
        return _recognise_xml(source, text)
    beginning = Beginning(text)
    for one in registry.FORMATS:
        if one.is_like is not None and one.is_like(beginning):
            return one
    raise InputError(
        source.path,
        "is in no known format",
        place="line 1",
        remedy=f"{every_format()}, each also gzipped",
    )


_MISPLACED: dict[tuple[str, str], tuple[str, str]] = {
    ("spectra", "identifications"): ("is {}: identifications, not spectra", "Import it: proteoscope import, with its spectra"),
    ("spectra", "libraries"): ("is {}: a spectral library, not measured spectra", "Give it as a library"),
    ("spectra", "proteins"): ("is a {} file of sequences, where spectra belong", "Give it as the database"),
    ("proteins", "identifications"): ("holds identifications ({}), where a FASTA file of proteins belongs", "Give a FASTA file"),
    ("proteins", "libraries"): ("is a spectral library ({}), where proteins belong", "Give a FASTA file"),
    ("proteins", "spectra"): (
        "is a file of spectra ({}), where a FASTA file of proteins belongs",
        "Give it among the spectra, and a FASTA file of proteins here",
    ),
    ("libraries", "spectra"): ("is {}, where a spectral library belongs", "Give it as SPECTRA"),
    ("identifications", "spectra"): ("is {}, where results of a search engine belong", "Give it with --spectra"),
}
"""What is said of a file of the second sort where one of the first is wanted."""


def recognise_as(source: ByteSource, sort: str) -> FileFormat:
    """The format of a file that is to be of a sort: spectra, proteins, or results of search engines (identifications).

    Raises
    ------
    InputError : it is in no known format, or of another sort, and what to do with it.
    """
    found = recognise(source)
    if found.sort != sort and not (sort == "libraries" and found.library_reader):
        usual = "is {}, where results of a search engine belong", f"Give {names_of('identifications')}"
        reason, remedy = _MISPLACED.get((sort, found.sort), usual)
        raise InputError(source.path, reason.format(found.name), remedy=remedy)
    return found


def has_entries(source: ByteSource) -> bool:
    """Whether a file is of a format of proteins that knows more than sequences (see `proteoscope.engine.formats.entries`)."""
    try:
        found = recognise(source)
    except InputError:
        return False
    return found.sort == "proteins" and bool(found.reader)


def every_format() -> str:
    """Return the remedy that names every format of spectra, proteins, results and libraries."""
    names = {sort: names_of(sort) for sort in ("spectra", "proteins", "identifications", "libraries")}
    return (
        f"Spectra may be {names['spectra']}, proteins {names['proteins']}, results of search engines {names['identifications']},"
        f" libraries {names['libraries']}"
    )


def _recognise_xml(source: ByteSource, text: bytes) -> FileFormat:
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise InputError(
            source.path, "the XML has a document type declaration, which could pull in other files", remedy="Remove the <!DOCTYPE ...> part"
        )
    root = _ROOT.search(_without_noise(text))
    name = root.group(2) if root else b""
    for one in registry.FORMATS:
        if root is not None and name.decode() in one.roots:
            if root.group(1):
                remedy = _CONVERT if one.sort == "spectra" else "Write the file again without one"
                raise InputError(source.path, "the XML elements carry a namespace prefix", remedy=remedy)
            return one
    what = _OTHER_ROOTS.get(name, f"XML of another kind (<{name[:_SHOWN].decode('utf-8', 'replace')}>)" if name else "broken XML")
    raise InputError(source.path, f"is {what}", remedy=every_format())


def _without_noise(text: bytes) -> bytes:
    """What is left without comments and processing instructions, up to one that has no end."""
    kept: list[bytes] = []
    at = 0
    while (start := text.find(b"<", at)) >= 0:
        closing = next((closing for opening, closing in _BEHIND_NOISE if text.startswith(opening, start)), b"")
        if not closing:
            return b"".join(kept) + text[start:]
        stop = text.find(closing, start + 2 * len(closing) - 2)
        if stop < 0:
            return b"".join(kept)
        kept.append(text[at:start])
        at = stop + len(closing)
    return b"".join(kept)

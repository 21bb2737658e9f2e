"""What kind of file it is, from its first bytes."""

from __future__ import annotations

import re

from engine.errors import InputError
from engine.formats.sources import ByteSource

__all__ = ["HEAD_BYTES", "recognise"]

HEAD_BYTES = 1 << 17

_SHOWN = 50
"""Letters of a file's own words that a message repeats."""

_CONVERT = "Convert it to mzML with msconvert (ProteoWizard)"
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"\x01\xa1F\0i\0n\0n\0i\0g\0a\0n\0", "a Thermo raw file", "Convert it to mzML with ThermoRawFileParser or msconvert (ProteoWizard)"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a binary vendor file (SCIEX .wiff or another compound document)", _CONVERT),
    (b"SQLite format 3\0", "an SQLite database (Bruker .tdf, .mzDB or a spectral library)", _CONVERT),
    (b"\x89HDF", "an HDF5 file (mz5, mzMLb)", _CONVERT),
    (b"PK\x03\x04", "a zip archive", "Unpack it first"),
    (b"BZh", "packed with bzip2", "Unpack it first, or pack it with gzip"),
    (b"\xfd7zXZ\0", "packed with xz", "Unpack it first, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "Unpack it first, or pack it with gzip"),
    (b"\xff\xfe", "text in UTF-16", "Save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "Save it as UTF-8"),
    (b"%PDF", "a PDF document", "Give mzML, mzXML, MGF, MS2, DTA or PKL"),
)
_XML_ROOTS: tuple[tuple[bytes, str], ...] = (
    (b"mzML", "mzML"),
    (b"indexedmzML", "mzML"),
    (b"mzXML", "mzXML"),
    (b"msRun", "mzXML"),
)
_OTHER_ROOTS: dict[bytes, str] = {
    b"mzData": "mzData, which is no longer in use",
    b"MzIdentML": "identifications (mzIdentML), not spectra",
    b"IdXML": "identifications (idXML), not spectra",
    b"msms_pipeline_analysis": "identifications (pepXML), not spectra",
    b"html": "a web page",
    b"bioml": "X!Tandem's results, not spectra",
}
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)[\s>/]")
_BEHIND_NOISE = ((b"<!--", b"-->"), (b"<?", b"?>"))
_BEGIN_IONS = re.compile(rb"^[ \t]*BEGIN IONS[ \t]*\r?$", re.MULTILINE)
_MS2_LINE = re.compile(rb"^(?:H[ \t]|S[ \t]+\d+[ \t]+\d+)", re.MULTILINE)
_NUMBERS = re.compile(rb"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")
_MGF_KEY = re.compile(rb"^[A-Z][A-Z0-9_]*(?:\[\d+\])?\s*=")


def recognise(source: ByteSource) -> str:
    """The kind of file: ``mzML``, ``mzXML``, ``MGF``, ``MS2``, ``DTA``, ``PKL`` or ``FASTA``.

    Anything else is an `InputError` that says what it seems to be and what to do.
    """
    head = source.peek(HEAD_BYTES)
    for signature, what, remedy in _SIGNATURES:
        if head.startswith(signature):
            raise InputError(source.path, f"is {what}, which cannot be read", remedy=remedy)
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
    if text.startswith(b">"):
        return "FASTA"
    text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _BEGIN_IONS.search(text):
        return "MGF"
    lines = [line.strip() for line in text.split(b"\n", 200)[:200]]
    lines = [line for line in lines if line]
    if lines[0].startswith(b";"):
        first = next((line for line in lines if line[:1] not in b";#"), b"")
        if first.startswith(b">"):
            return "FASTA"
    if _MS2_LINE.match(text):
        return "MS2"
    if _MGF_KEY.match(lines[0]) or all(line[:1] in b"#;!/" or _MGF_KEY.match(line) for line in lines):
        return "MGF"
    first = next((line for line in lines if line[:1] != b"="), b"")
    words = first.split()
    numbers = 0
    while numbers < len(words) and _NUMBERS.fullmatch(words[numbers].rstrip(b"+")):
        numbers += 1
    if numbers == 2:
        return "DTA"
    if numbers >= 3:
        return "PKL"
    raise InputError(
        source.path,
        "is in no known format",
        place="line 1",
        remedy="Spectra may be mzML, mzXML, MGF, MS2, DTA or PKL, proteins FASTA, each also gzipped",
    )


def _recognise_xml(source: ByteSource, text: bytes) -> str:
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise InputError(
            source.path, "the XML has a document type declaration, which could pull in other files", remedy="Remove the <!DOCTYPE ...> part"
        )
    root = _ROOT.search(_without_noise(text))
    name = root.group(2) if root else b""
    for known, kind in _XML_ROOTS:
        if name == known and root is not None:
            if root.group(1):
                raise InputError(source.path, "the XML elements carry a namespace prefix", remedy=_CONVERT)
            return kind
    what = _OTHER_ROOTS.get(name, f"XML of another kind (<{name[:_SHOWN].decode('utf-8', 'replace')}>)" if name else "broken XML")
    raise InputError(source.path, f"is {what}", remedy="Give mzML, mzXML, MGF, MS2, DTA or PKL")


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

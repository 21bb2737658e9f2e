"""Files of up to a megabyte that exploit the structure of their format: encodings, offsets, nesting, repeated parts.

`tests.fuzz.unfolding` reads them within its limits.
"""

from __future__ import annotations

import base64
import gzip
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import msgpack
import numpy as np

from tests.engine.formats import entry_files
from tests.engine.imported import small_results
from tests.engine.structures import examples

__all__ = ["CRAFTED", "Attack"]

MEGABYTE = 1_000_000


class Attack(NamedTuple):
    """A file, its reader in `tests.fuzz.readers.READERS`, and True if the file must be rejected (None: either outcome)."""

    reader: str
    content: Callable[[], bytes]
    is_refused: bool | None = True


def _filled(before: bytes, part: bytes, after: bytes = b"", n_bytes: int = MEGABYTE) -> bytes:
    """Repeat a part between two others, up to a megabyte."""
    return before + part * ((n_bytes - len(before) - len(after)) // len(part)) + after


# --- BinaryCIF ---------------------------------------------------------------------------------------------------------------------------

_BYTES, _ONE_BYTE, _DOUBLES = ({"kind": "ByteArray", "type": number} for number in (3, 1, 33))
_DELTA, _PACKED = {"kind": "Delta", "origin": 0}, {"kind": "IntegerPacking", "byteCount": 1}
_RUN = {"kind": "RunLength", "srcType": 3, "srcSize": 1}


def _int32(*values: int) -> bytes:
    return np.array(values, "<i4").tobytes()


def _column(name: str, data: bytes, encodings: list[dict[str, Any]], mask: Any = None) -> dict[str, Any]:
    return {"name": name, "mask": mask, "data": {"data": data, "encoding": encodings}}


def _texts(text: str, offsets: bytes, of_offsets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"kind": "StringArray", "stringData": text, "offsetEncoding": of_offsets, "dataEncoding": [_BYTES], "offsets": offsets}]


def _bcif(n_rows: int, columns: list[dict[str, Any]], categories: int = 1) -> bytes:
    category = {"name": "_atom_site", "rowCount": n_rows, "columns": columns}
    return bytes(msgpack.packb({"version": "0.3", "encoder": "x", "dataBlocks": [{"header": "x", "categories": [category] * categories}]}))


def _changed_bcif(change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return the file of a helix with a change of its category."""
    root = msgpack.unpackb(examples.as_binary_cif(examples.atoms_of(examples.helix(8)), 5))
    change(root["dataBlocks"][0]["categories"][0])
    return bytes(msgpack.packb(root))


def _number_column(category: dict[str, Any]) -> dict[str, Any]:
    column_record: dict[str, Any] = next(column for column in category["columns"] if column["name"] == "Cartn_x")
    return column_record


def _of_number(**changes: Any) -> Callable[[], bytes]:
    """Return the x coordinates with other data."""

    def change(category: dict[str, Any]) -> None:
        _number_column(category)["data"].update(changes)

    return lambda: _changed_bcif(change)


_N_ATOMS = 32
_BCIF: dict[str, Attack] = {
    "bcif chain of encodings": Attack(
        "bcif",
        lambda: _bcif(100_000, [_column("id", bytes(100_000), [_DELTA] * 35_000 + [_ONE_BYTE])]),
    ),
    "bcif chain of encodings of a mask": Attack(
        "bcif",
        lambda: _bcif(
            100_000,
            [
                _column(
                    "id",
                    bytes(100_000),
                    [_ONE_BYTE],
                    {"data": bytes(100_000), "encoding": [_DELTA] * 30_000 + [_ONE_BYTE]},
                )
            ],
        ),
    ),
    "bcif offsets of many texts": Attack(
        "bcif", lambda: _bcif(1, [_column("id", _int32(0), _texts("", _int32(0, 200_000), [_RUN, _BYTES]))], 3500)
    ),
    "bcif offsets of offsets": Attack(
        "bcif",
        lambda: _bcif(
            1,
            [
                _column(
                    "id",
                    _int32(0),
                    _texts("", bytes(90_000), [_DELTA] * 30_000 + [_ONE_BYTE]),
                )
            ],
        ),
    ),
    "bcif offsets that go back": Attack("bcif", lambda: _bcif(1, [_column("id", _int32(0), _texts("abc", _int32(2, 1), [_BYTES]))])),
    "bcif offsets beyond the end": Attack("bcif", lambda: _bcif(1, [_column("id", _int32(0), _texts("abc", _int32(0, 9), [_BYTES]))])),
    "bcif negative offsets": Attack("bcif", lambda: _bcif(1, [_column("id", _int32(0), _texts("abc", _int32(-3, 2), [_BYTES]))])),
    "bcif index beyond the texts": Attack("bcif", lambda: _bcif(1, [_column("id", _int32(7), _texts("abc", _int32(0, 2), [_BYTES]))])),
    "bcif negative run": Attack("bcif", lambda: _bcif(5, [_column("id", _int32(1, -5, 1, 10), [_RUN, _BYTES])])),
    "bcif run beyond 2^32": Attack("bcif", lambda: _bcif(5, [_column("id", _int32(1, 2**31 - 1, 1, 2**31 - 1, 1, 7), [_RUN, _BYTES])])),
    "bcif runs of runs": Attack("bcif", lambda: _bcif(5, [_column("id", _int32(250_000, 250_000), [_RUN] * 5000 + [_BYTES])])),
    "bcif more rows than data": Attack("bcif", _of_number(encoding=[_DOUBLES], data=bytes(8))),
    "bcif bytes that are no numbers": Attack("bcif", _of_number(encoding=[_DOUBLES], data=bytes(7 * _N_ATOMS))),
    "bcif unknown type": Attack("bcif", _of_number(encoding=[{"kind": "ByteArray", "type": 99}])),
    "bcif type that is a list": Attack("bcif", _of_number(encoding=[{"kind": "ByteArray", "type": []}])),
    "bcif unknown encoding": Attack("bcif", _of_number(encoding=[{"kind": "Zip", "type": 3}])),
    "bcif encodings in wrong order": Attack("bcif", _of_number(encoding=[{"kind": "ByteArray", "type": 3}, _DELTA])),
    "bcif texts of texts": Attack("bcif", _of_number(encoding=_texts("a", _int32(0, 1), [_BYTES]) * 2)),
    "bcif packed floats": Attack(
        "bcif",
        _of_number(encoding=[_PACKED, {"kind": "ByteArray", "type": 32}], data=bytes(4 * _N_ATOMS)),
    ),
    "bcif packed number without an end": Attack("bcif", _of_number(encoding=[_PACKED, _ONE_BYTE], data=b"\x7f" * _N_ATOMS)),
    "bcif factor of nothing": Attack(
        "bcif",
        _of_number(encoding=[{"kind": "FixedPoint", "factor": float("nan")}, _ONE_BYTE], data=bytes(_N_ATOMS)),
    ),
    "bcif coordinates that are no numbers": Attack("bcif", _of_number(encoding=[_DOUBLES], data=b"\xff" * 8 * _N_ATOMS), None),
    "bcif rows that are negative": Attack("bcif", lambda: _changed_bcif(lambda category: category.update(rowCount=-1))),
    "bcif rows that are no number": Attack("bcif", lambda: _changed_bcif(lambda category: category.update(rowCount=float("inf")))),
    "bcif rows without limit": Attack("bcif", lambda: _changed_bcif(lambda category: category.update(rowCount=(1 << 63) - 1))),
    "bcif column twice": Attack(
        "bcif",
        lambda: _changed_bcif(
            lambda category: category["columns"].append({**_number_column(category), "data": _number_column(category)["data"]})
        ),
        None,
    ),
    "bcif lists within lists": Attack("bcif", lambda: b"\x81\xaadataBlocks" + b"\x91" * 900_000),
    "bcif list without limit": Attack("bcif", lambda: b"\x81\xaadataBlocks\xdd\xff\xff\xff\xff"),
}

# --- Tracks ------------------------------------------------------------------------------------------------------------------------------

_GFF = b"##gff-version 3\n"
_CDS = b"chr1\tx\tCDS\t%d\t%d\t.\t+\t0\t%b\n"
_TRACKS: dict[str, Attack] = {
    "gff cyclic parents": Attack(
        "track", lambda: _GFF + _CDS % (1, 9, b"ID=a;Parent=b") + _CDS % (1, 9, b"ID=b;Parent=a"), is_refused=False
    ),
    "gff its own parent": Attack("track", lambda: _filled(_GFF, _CDS % (1, 9, b"ID=a;Parent=a")), is_refused=False),
    "gff attributes": Attack("track", lambda: _GFF + _CDS % (1, 9, _filled(b"ID=a", b";n=v", n_bytes=990_000)), None),
    "gff separators": Attack("track", lambda: _GFF + _CDS % (1, 9, b";" * 990_000), None),
    "gff percents": Attack("track", lambda: _GFF + _CDS % (1, 9, b"ID=" + b"%41" * 330_000), None),
    "gff overlapping features": Attack("track", lambda: _filled(_GFF, _CDS % (1, 2147483647, b"ID=a")), is_refused=False),
    "gff negative places": Attack("track", lambda: _GFF + _CDS % (-5, -1, b"ID=a")),
    "gff places beyond 2^31": Attack("track", lambda: _GFF + _CDS % (1, 9_999_999_999, b"ID=a")),
    "gff end before the start": Attack("track", lambda: _GFF + _CDS % (9, 1, b"ID=a")),
    "gtf": Attack("track", lambda: _filled(b"", b'chr1\tx\texon\t1\t9\t.\t+\t.\tgene_id "a"; transcript_id "b";\n'), is_refused=False),
    "gff in UTF-16": Attack("track", lambda: (_GFF + _CDS % (1, 9, b"ID=a")).decode().encode("utf-16")),
    "gff of one line": Attack("track", lambda: b"a\t" * 450_000),
    "bed negative places": Attack("track", lambda: b"chr1\t-5\t-1\tx\n"),
    "bed of blanks": Attack("track", lambda: _filled(b"", b"chr1 1 2 x\n"), is_refused=False),
    "bed of many columns": Attack("track", lambda: b"chr1\t1\t2" + b"\tx" * 400_000 + b"\n", None),
    "bed of broken lines": Attack("track", lambda: _filled(b"chr1\t1\t2\n", b"chr1\tx\ty\n"), is_refused=False),
    "bed numbers of other scripts": Attack("track", lambda: "chr1\t１\t２\n".encode()),
}

# --- Entries -----------------------------------------------------------------------------------------------------------------------------

_PROTEIN_FEATURES = b"FEATURES             Location/Qualifiers\n"


def _genbank(inside: bytes) -> bytes:
    """Return a record of a protein with additional lines among its features."""
    record = entry_files.GENBANK_PROTEIN.encode()
    before, separator, after = record.partition(_PROTEIN_FEATURES)
    assert separator
    return before + separator + inside + after


def _nucleotides(location: bytes) -> bytes:
    """Return a nucleotide record with a coding sequence at a position."""
    record = entry_files.GENBANK.encode()
    before, separator, after = record.partition(_PROTEIN_FEATURES)
    assert separator
    return before + separator + b"     CDS             " + location + b'\n                     /translation="MK"\n' + after


def _swiss(features: bytes) -> bytes:
    return entry_files.swiss_prot_entry("Q1", "ONE_BOVIN", "MKWVTFISLL", "@").encode().replace(b"@", features)


_QUALIFIER = b'                     /note="x"\n'
_SITE = b"     Site            1\n"
_ENTRIES: dict[str, Attack] = {
    "genbank qualifiers": Attack("genbank", lambda: _genbank(_filled(_SITE, _QUALIFIER, n_bytes=990_000)), None),
    "genbank features": Attack("genbank", lambda: _genbank(_filled(b"", _SITE, n_bytes=990_000)), None),
    "genbank joined places": Attack(
        "genbank", lambda: _nucleotides(b"join(" + b",\n                     ".join([b"1..2"] * 36_000) + b")"), None
    ),
    "genbank nested places": Attack("genbank", lambda: _nucleotides(b"complement(" * 40_000 + b"1..2" + b")" * 40_000), None),
    "genbank nested joins": Attack("genbank", lambda: _nucleotides(b"join(1..2," * 30_000 + b"1..2" + b")" * 30_000), None),
    "genbank long place": Attack("genbank", lambda: _nucleotides(b"join(" + b"1..2," * 180_000 + b"1..2)"), None),
    "genbank place beyond the end": Attack("genbank", lambda: _nucleotides(b"99999999999..99999999999999999999"), None),
    "genbank negative place": Attack("genbank", lambda: _nucleotides(b"-5..-1"), None),
    "genbank uncertain places": Attack("genbank", lambda: _nucleotides(b"one-of(" + b"1," * 200_000 + b"2)..3"), None),
    "genbank points of a place": Attack("genbank", lambda: _nucleotides(b"." * 900_000), None),
    "genbank digits of a place": Attack("genbank", lambda: _nucleotides(b"9" * 900_000), None),
    "genbank open quotes": Attack(
        "genbank", lambda: _genbank(_SITE + b'                     /note="' + b"x\n                     " * 40_000), None
    ),
    "genbank records": Attack("genbank", lambda: _filled(b"", entry_files.GENBANK_PROTEIN.encode()), None),
    "genbank comments": Attack(
        "genbank",
        lambda: entry_files.GENBANK_PROTEIN.encode().replace(
            b"KEYWORDS", _filled(b"COMMENT     x\n", b"            ##a-START##\n", n_bytes=900_000) + b"KEYWORDS"
        ),
        None,
    ),
    "swiss-prot features": Attack("swiss-prot", lambda: _swiss(_filled(b"", b"FT   SITE            1\n", n_bytes=980_000)), None),
    "swiss-prot note without an end": Attack(
        "swiss-prot",
        lambda: _swiss(_filled(b'FT   SITE            1\nFT                   /note="', b"x\nFT                   ", n_bytes=980_000)),
        None,
    ),
    "swiss-prot places": Attack(
        "swiss-prot",
        lambda: _swiss(b"FT   SITE            99999999999999999999..-1\nFT   SITE            <1..>99\nFT   SITE            9..1\n"),
        False,
    ),
    "swiss-prot accessions": Attack(
        "swiss-prot", lambda: _swiss(b"").replace(b"AC   Q1;", _filled(b"AC   Q1;", b"\nAC   P1;", n_bytes=900_000)), None
    ),
    "swiss-prot references": Attack(
        "swiss-prot",
        lambda: _swiss(b"").replace(b"PE   1", _filled(b"", b"DR   EMBL; X; Y; -; mRNA.\n", n_bytes=900_000) + b"PE   1"),
        None,
    ),
    "swiss-prot comments": Attack(
        "swiss-prot", lambda: _swiss(b"").replace(b"PE   1", _filled(b"", b"CC   -!- A: x\n", n_bytes=900_000) + b"PE   1"), None
    ),
    "uniprot xml tags within tags": Attack(
        "uniprot-xml",
        lambda: entry_files.UNIPROT_XML.encode().replace(b"<name>", b"<x>" * 120_000 + b"</x>" * 120_000 + b"<name>", 1),
        None,
    ),
    "uniprot xml attributes": Attack(
        "uniprot-xml",
        lambda: entry_files.UNIPROT_XML.encode().replace(
            b"<name>", b"<x " + b" ".join(b"a%d=''" % i for i in range(80_000)) + b"/><name>", 1
        ),
        None,
    ),
    "uniprot xml features": Attack(
        "uniprot-xml",
        lambda: entry_files.UNIPROT_XML.encode().replace(
            b"<sequence ", b'<feature type="helix"><location><position position="1"/></location></feature>' * 12_000 + b"<sequence ", 1
        ),
        is_refused=False,
    ),
    "uniprot xml places": Attack(
        "uniprot-xml",
        lambda: entry_files.UNIPROT_XML.encode().replace(
            b"<sequence ",
            b'<feature type="helix"><location><begin position="-9"/><end position="99999999999999999999"/></location></feature><sequence ',
            1,
        ),
        None,
    ),
    "uniprot xml accessions": Attack(
        "uniprot-xml",
        lambda: entry_files.UNIPROT_XML.encode().replace(b"<name>", b"<accession>P</accession>" * 39_000 + b"<name>", 1),
        None,
    ),
    "uniprot xml entities": Attack(
        "uniprot-xml",
        lambda: (
            b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "'
            + b"&a;" * 100_000
            + b'">]>'
            + entry_files.UNIPROT_XML.encode()[38:].replace(b"Protein one", b"&b;")
        ),
    ),
    "uniprot xml in UTF-16": Attack("uniprot-xml", lambda: entry_files.UNIPROT_XML.replace("UTF-8", "UTF-16").encode("utf-16"), None),
    "pir of blank lines": Attack("pir", lambda: b">P1;A\n" + b"\n" * 900_000 + b"M*\n", None),
    "embl joined places": Attack(
        "embl",
        lambda: entry_files.EMBL.encode().replace(
            b"FT   CDS             ", b"FT   CDS             join(" + b"1..2," * 150_000 + b"3..4)\nFT   CDS             ", 1
        ),
        None,
    ),
}

# --- Spectra -----------------------------------------------------------------------------------------------------------------------------


def _mzml(arrays: str, n: int, head: str = "") -> bytes:
    spectrum = (
        f'<spectrum index="0" id="scan=1" defaultArrayLength="{n}"><cvParam accession="MS:1000511" value="2"/><precursorList><precursor>'
        '<selectedIonList><selectedIon><cvParam accession="MS:1000744" value="500"/></selectedIon></selectedIonList></precursor>'
        f"</precursorList><binaryDataArrayList>{arrays}</binaryDataArrayList></spectrum>"
    )
    return f'<?xml version="1.0"?><mzML>{head}<run id="r"><spectrumList>{spectrum}</spectrumList></run></mzML>'.encode()


def _array(kind: str, data: bytes, *terms: str, more: str = "") -> str:
    named = "".join(f'<cvParam accession="MS:{term}"/>' for term in (kind, *terms))
    return f"<binaryDataArray{more}>{named}<binary>{base64.b64encode(data).decode()}</binary></binaryDataArray>"


def _peaks(data: bytes, *terms: str) -> Callable[[], bytes]:
    """Return a spectrum with the maximum number of peaks, whose m/z are compressed."""
    heights = _array("1000515", zlib.compress(np.ones(1000, "<f4").tobytes()), "1000521", "1000574")
    return lambda: _mzml(_array("1000514", data, *terms) + heights, 1000)


_LINEAR, _PIC, _SLOF, _LINEAR_ZLIB, _ZSTD = "1002312", "1002313", "1002314", "1002746", "1003780"
_PLAIN = _array("1000514", np.linspace(100, 900, 1000).tobytes(), "1000523", "1000576") + _array(
    "1000515", np.ones(1000, "<f4").tobytes(), "1000521", "1000576"
)
_SPECTRA: dict[str, Attack] = {
    "mzml numpress of zeros": Attack("mzml", _peaks(bytes(600_000), _LINEAR)),
    "mzml numpress scale of nothing": Attack("mzml", _peaks(struct.pack(">d", float("nan")) + bytes(2000), _LINEAR)),
    "mzml numpress tiny scale": Attack(
        "mzml", _peaks(struct.pack(">d", 5e-324) + struct.pack("<II", 1, 2**32 - 1) + b"\x88" * 499, _LINEAR)
    ),
    "mzml numpress overflow": Attack(
        "mzml", _peaks(struct.pack(">d", 1.0) + struct.pack("<II", 1, 2**32 - 1) + b"\x0f\xff\xff\xff\x7f" * 998, _LINEAR)
    ),
    "mzml numpress half bytes without an end": Attack(
        "mzml", _peaks(struct.pack(">d", 1.0) + struct.pack("<II", 1, 2) + b"\x10" * 900, _LINEAR)
    ),
    "mzml numpress pic": Attack("mzml", _peaks(b"\xff" * 500_000, _PIC)),
    "mzml numpress slof of other length": Attack("mzml", _peaks(struct.pack(">d", 1e-300) + b"\xff" * 1999, _SLOF)),
    "mzml numpress slof infinite": Attack("mzml", _peaks(struct.pack(">d", 1e-300) + b"\xff" * 2000, _SLOF)),
    "mzml numpress under a bomb": Attack("mzml", lambda: _peaks(zlib.compress(bytes(300_000_000), 9), _LINEAR_ZLIB)()),
    "mzml zstd": Attack("mzml", _peaks(b"\x28\xb5\x2f\xfd" + bytes(1000), "1000523", _ZSTD)),
    "mzml two compressions": Attack("mzml", _peaks(zlib.compress(bytes(8000)), "1000523", "1000574", "1000576"), None),
    "mzml zlib within zlib": Attack("mzml", _peaks(zlib.compress(zlib.compress(bytes(8000))), "1000523", "1000574")),
    "mzml 16-bit floats": Attack("mzml", _peaks(bytes(2000), "1000520", "1000576")),
    "mzml negative length": Attack("mzml", lambda: _mzml(_PLAIN, -1)),
    "mzml lengths beyond all": Attack(
        "mzml", lambda: _mzml(_PLAIN.replace("<binaryDataArray>", '<binaryDataArray arrayLength="99999999999999999999">'), 1000), None
    ),
    "mzml arrays of one spectrum": Attack("mzml", lambda: _mzml(_array("1000514", b"12345678", "1000523", "1000576") * 5000, 1), None),
    "mzml groups that name each other": Attack(
        "mzml",
        lambda: _mzml(
            _PLAIN.replace('<cvParam accession="MS:1000514"/>', '<referenceableParamGroupRef ref="a"/>'),
            1000,
            '<referenceableParamGroupList><referenceableParamGroup id="a"><referenceableParamGroupRef ref="b"/></referenceableParamGroup>'
            '<referenceableParamGroup id="b"><referenceableParamGroupRef ref="a"/></referenceableParamGroup></referenceableParamGroupList>',
        ),
    ),
    "mzml groups": Attack(
        "mzml",
        lambda: _mzml(
            _PLAIN + '<referenceableParamGroupRef ref="a"/>' * 10_000,
            1000,
            '<referenceableParamGroupList><referenceableParamGroup id="a">'
            + '<cvParam accession="MS:1000514"/>' * 14_000
            + "</referenceableParamGroup></referenceableParamGroupList>",
        ),
        None,
    ),
    "mzml offsets of the index": Attack(
        "mzml",
        lambda: _mzml(_PLAIN, 1000) + b"<indexList>" + b'<offset idRef="x">99999999999999999999</offset>' * 15_000 + b"</indexList>",
        None,
    ),
    "mzml noise of other length": Attack(
        "reporter-mzml",
        lambda: _mzml(
            _PLAIN + "".join(_array(kind, bytes(8 * 90_000), "1000523", "1000576", more=' arrayLength="90000"') for kind in ("1002743",)),
            1000,
        ),
        None,
    ),
    "mzml noise bomb": Attack(
        "reporter-mzml",
        lambda: _mzml(
            _PLAIN
            + "".join(
                _array(kind, zlib.compress(bytes(8 * 2_000_000), 9), "1000523", "1000574", more=' arrayLength="2000000"')
                for kind in ("1002743", "1002744", "1002745")
            )
            * 9,
            1000,
        ),
        None,
    ),
    "mzml noise of nothing": Attack(
        "reporter-mzml",
        lambda: _mzml(
            _PLAIN
            + "".join(
                _array(kind, np.full(50, value).tobytes(), "1000523", "1000576", more=' arrayLength="50"')
                for kind, value in (("1002743", np.nan), ("1002744", -1.0), ("1002745", np.inf))
            ),
            1000,
        ),
        None,
    ),
}

# --- gzip, FASTA and FASTQ ---------------------------------------------------------------------------------------------------------------

_RECORD = b">P1 x\nMKWVTFISLL\n"
_EMPTY = gzip.compress(b"", mtime=0)
_READ = b"@a\nACGT\n+\nIIII\n"
_TEXTS: dict[str, Attack] = {
    "gzip of empty members": Attack("fasta", lambda: gzip.compress(_RECORD, mtime=0) + _EMPTY * 49_000, is_refused=False),
    "gzip of members of a byte": Attack(
        "fasta", lambda: gzip.compress(_RECORD, mtime=0) + gzip.compress(b"K", mtime=0) * 46_000, is_refused=False
    ),
    "gzip of members of a record": Attack("fasta", lambda: gzip.compress(_RECORD, mtime=0) * 25_000, is_refused=False),
    "gzip with garbage after its end": Attack("fasta", lambda: gzip.compress(_RECORD, mtime=0) + b"garbage"),
    "gzip with another file after its end": Attack("fasta", lambda: gzip.compress(_RECORD, mtime=0) + _RECORD),
    "gzip with zeros after its end": Attack("fasta", lambda: gzip.compress(_RECORD, mtime=0) + bytes(900_000), is_refused=False),
    "gzip with zeros and a member": Attack("fasta", lambda: (gzip.compress(_RECORD, mtime=0) + bytes(512)) * 1700, None),
    "gzip with a false checksum": Attack("fasta", lambda: gzip.compress(_RECORD, mtime=0)[:-8] + bytes(8)),
    "gzip without its end": Attack("fasta", lambda: gzip.compress(_RECORD, mtime=0)[:-8]),
    "gzip with half a member after its end": Attack(
        "fasta", lambda: gzip.compress(_RECORD, mtime=0) + gzip.compress(_RECORD, mtime=0)[:20]
    ),
    "gzip name without an end": Attack("fasta", lambda: b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 990_000),
    "gzip within gzip": Attack("fasta", lambda: gzip.compress(gzip.compress(_RECORD))),
    "fasta of names": Attack("fasta", lambda: b">" * 990_000),
    "fasta of one name": Attack("fasta", lambda: b">" + b"P" * 990_000 + b"\nMK\n", None),
    "fasta of names that are equal": Attack("fasta", lambda: _filled(b"", b">P1\nM\n"), None),
    "fasta of empty records": Attack("fasta", lambda: _filled(b"", b">P1\n"), None),
    "fasta of stops": Attack("fasta", lambda: b">P1\n" + b"*" * 990_000 + b"\n", None),
    "fasta of line ends": Attack("fasta", lambda: b">P1\n" + b"\r" * 990_000 + b"M\n", None),
    "fasta of zeros": Attack("fasta", lambda: b">P1\n" + bytes(990_000)),
    "fasta in UTF-16": Attack("fasta", lambda: _RECORD.decode().encode("utf-16")),
    "fasta with marks of direction": Attack("fasta", lambda: ">P1\u202e\x1b[31m x\nMKWVTFISLL\n".encode(), is_refused=False),
    "fastq of at signs": Attack("fastq", lambda: b"@" * 990_000),
    "fastq of one record": Attack("fastq", lambda: b"@a\n" + b"A\n" * 200_000 + b"+\n" + b"@\n" * 200_000, None),
    "fastq of a sequence without qualities": Attack("fastq", lambda: b"@a\n" + b"A" * 990_000),
    "fastq of plus signs": Attack("fastq", lambda: b"@a\nA\n" + b"+\n" * 490_000),
    "fastq of empty reads": Attack("fastq", lambda: _filled(b"", b"@a\n\n+\n\n"), None),
    "fastq with more qualities than bases": Attack("fastq", lambda: b"@a\nA\n+\n" + b"I" * 990_000),
    "fastq in UTF-16": Attack("fastq", lambda: _READ.decode().encode("utf-16")),
    "fastq of spaces": Attack("fastq", lambda: b"@a\nA" + b" " * 990_000 + b"\n+\nI\n", None),
}

# --- Results -----------------------------------------------------------------------------------------------------------------------------


def _pin_of_spectrum(proteins: list[str]) -> bytes:
    """Return a match of an existing spectrum to many proteins."""
    head, row, *_ = small_results.pin().splitlines()
    return "\n".join((head, "\t".join([*row.split("\t")[:10], *proteins]), "")).encode()


_RESULTS: dict[str, Attack] = {
    "pin proteins": Attack("results-tables", lambda: _pin_of_spectrum([f"{i:x}" for i in range(150_000)]), is_refused=False),
    "pin packed names of proteins": Attack(
        "results-tables", lambda: gzip.compress(_pin_of_spectrum([f"{i:x}" for i in range(420_000)]), mtime=0), is_refused=False
    ),
    "pin one protein again and again": Attack(
        "results-tables", lambda: gzip.compress(_pin_of_spectrum(["P"] * 2_000_000), mtime=0), is_refused=False
    ),
}

CRAFTED: dict[str, Attack] = {**_BCIF, **_TRACKS, **_ENTRIES, **_SPECTRA, **_TEXTS, **_RESULTS}
"""Attacks by their names."""

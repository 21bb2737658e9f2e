"""Small files that expand enormously, for each reader, each read within the limits of CPU time and memory or rejected.

    python -m tests.fuzz.unfolding [--attack NAME]

Each file has at most a megabyte. It is read in a process of its own, with the limits of `tests.fuzz.readers`. Prints a JSON line for
each: the outcome, seconds of CPU time and megabytes above those of the program itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import sys
import tempfile
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.engine.formats import entry_files
from tests.engine.formats.hostile_files import gzipped, zipped_spectrum
from tests.engine.imported import small_results
from tests.engine.structures import examples
from tests.fuzz import libraries, readers
from tests.fuzz.crafted_files import CRAFTED, MEGABYTE, Attack

__all__ = ["ATTACKS", "Attack", "Outcome", "attack", "expected_statuses"]


class Outcome(NamedTuple):
    """Outcome of an attack: ``read``, ``refused`` or ``failed``; the message; seconds of CPU time; megabytes above the program's."""

    status: str
    message: str
    seconds: float
    megabytes: float


def _cut(text: str | bytes) -> bytes:
    """Return the file, which must not be larger than a megabyte."""
    data = text.encode() if isinstance(text, str) else text
    assert len(data) <= MEGABYTE, len(data)
    return data


def _packed(before: bytes, part: bytes, after: bytes = b"", n_bytes: int = 95 * MEGABYTE) -> bytes:
    """Repeat a part in a gzip file, up to the size that a file of a megabyte may unpack to."""
    return _cut(gzipped(part, n_bytes, before, after, MEGABYTE))


# --- Results of search engines -----------------------------------------------------------------------------------------------------------


def _mzid(
    peptide: str = "", evidence: str = "", results: str = "", accession: str = "P1", location: str = "run.mgf", head: str = ""
) -> bytes:
    return _cut(
        '<?xml version="1.0"?><MzIdentML xmlns="http://psidev.info/psi/pi/mzIdentML/1.1"><SequenceCollection>'
        f'<DBSequence id="D" accession="{accession}"/>{head}'
        f'<Peptide id="p"><PeptideSequence>PEPTIDEK</PeptideSequence>{peptide}</Peptide>'
        f'<PeptideEvidence id="e" peptide_ref="p" dBSequence_ref="D"/>{evidence}</SequenceCollection>'
        f'<DataCollection><Inputs><SpectraData id="s" location="{location}"/></Inputs><AnalysisData><SpectrumIdentificationList>'
        f"{results}</SpectrumIdentificationList></AnalysisData></DataCollection></MzIdentML>"
    )


def _mzid_items(n: int, content: str = "") -> str:
    item = f'<SpectrumIdentificationItem peptide_ref="p" chargeState="2">{content}</SpectrumIdentificationItem>'
    return "".join(
        f'<SpectrumIdentificationResult spectrumID="i={i}" spectraData_ref="s">{item}</SpectrumIdentificationResult>' for i in range(n)
    )


def _mzid_scores() -> str:
    return "".join(
        f'<SpectrumIdentificationResult spectrumID="i={i}"><SpectrumIdentificationItem peptide_ref="p"><userParam name="s{i}" value="1"/>'
        "</SpectrumIdentificationItem></SpectrumIdentificationResult>"
        for i in range(5000)
    )


_MODIFICATION = '<Modification location="1"><cvParam accession="UNIMOD:1"/></Modification>'
_NO_PLACE = '<Modification monoisotopicMassDelta="{}.5" residues="K"/>'


def _idxml(accession: str = "P1", hits: str = "", identification: str = "") -> bytes:
    return _cut(
        '<?xml version="1.0"?><IdXML><IdentificationRun search_engine="x"><ProteinIdentification>'
        f'<ProteinHit id="PH" accession="{accession}"/></ProteinIdentification><PeptideIdentification score_type="q" {identification}>'
        f"{hits}</PeptideIdentification></IdentificationRun></IdXML>"
    )


_IDXML_END = b"</PeptideIdentification></IdentificationRun></IdXML>"
_HIT = '<PeptideHit sequence="PEPTIDEK" score="1" charge="2" protein_refs="PH"/>'


def _pepxml(name: str = "run", queries: str = "") -> bytes:
    return _cut(
        f'<?xml version="1.0"?><msms_pipeline_analysis><msms_run_summary base_name="{name}"><search_summary search_engine="x"/>'
        f"{queries}</msms_run_summary></msms_pipeline_analysis>"
    )


def _query(i: int, score: str = "") -> str:
    return (
        f'<spectrum_query spectrum="a.{i}.{i}.2" assumed_charge="2"><search_result><search_hit hit_rank="1" peptide="PEPTIDEK" protein="P">'
        f"{score}</search_hit></search_result></spectrum_query>"
    )


def _tandem(label: str = "run", groups: str = "") -> bytes:
    return _cut(f'<?xml version="1.0"?><bioml label="models from \'{label}\'">{groups}</bioml>')


_GROUP = (
    '<group type="model" id="{0}" z="2" mh="900"><protein label="P"><peptide><domain seq="PEPTIDEK" mh="900" hyperscore="5"/></peptide>'
    "</protein></group>"
)


def _result_of(name: str) -> str:
    return small_results.FORMATS[name][1]()


def _pin(names: list[str], rows: int, proteins: str = "P1") -> bytes:
    head = "\t".join(["SpecId", "Label", "ScanNr", "ExpMass", *names, "Peptide", "Proteins"])
    zeros = "\t".join(["0"] * len(names))
    body = "".join(f"a_{i}_2_1\t1\t{i}\t900\t{zeros}\tK.PEPTIDEK.R\t{proteins}\n" for i in range(rows))
    return _cut(f"{head}\n{body}")


def _comet_of_long_name() -> bytes:
    first, *rest = _result_of("comet").splitlines(keepends=True)
    parts = first.split("\t")
    parts[1] = "r" * 60_000
    return _cut("\t".join(parts) + rest[0] + rest[1] * ((MEGABYTE - 70_000) // len(rest[1])))


def _mztab_of_long_name() -> bytes:
    lines = _result_of("mztab").splitlines(keepends=True)
    named = [line if "-location" not in line else f"{line.rstrip()}{'r' * 300_000}\n" for line in lines]
    psm = next(line for line in lines if line.startswith("PSM\t"))
    parts = psm.split("\t")
    many = "".join("\t".join((parts[0], parts[1], str(i), *parts[3:])) for i in range(600_000 // len(psm)))
    return _cut("".join(named) + many)


def _parquet(rows: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = small_results.write_parquet_report(Path(folder) / "r.parquet")
        table = pq.read_table(path).slice(0, 1)
    written = BytesIO()
    pq.write_table(table.take(pa.array(np.zeros(rows, np.int64))), written, compression="zstd")
    return _cut(written.getvalue())


# --- Libraries ---------------------------------------------------------------------------------------------------------------------------

_SPECLIB = "<mzSpecLib>\nMS:1003186|library format version=1.0\n"
_KEY = "MS:1003208|experimental precursor monoisotopic m/z=500.5\n"


def _speclib(set_name: str, size: int, entries: int, named: int) -> bytes:
    head = f"{_SPECLIB}<AttributeSet Spectrum={set_name}>\n" + "MS:1003061|n=x\n" * size
    entry = "<Spectrum={0}>\n" + f"MS:1003212|library attribute set name={set_name}\n" * named + f"{_KEY}<Peaks>\n100\t1\n"
    return _cut(head + "".join(entry.format(i) for i in range(entries)))


def _speclib_json(named: int, size: int) -> bytes:
    attribute = {"accession": "MS:1003061", "value": "x"}
    spectrum = {"attributes": [{"accession": "MS:1003212", "value": "s"}] * named, "mzs": [100.0], "intensities": [1.0], "analytes": {}}
    head = {"format_version": "1.0", "attributes": [{"accession": "MS:1003186", "name": "library format version", "value": "1.0"}]}
    return _cut(json.dumps({**head, "spectrum_attribute_sets": {"s": [attribute] * size}, "spectra": [spectrum]}))


def database(statements: str, first: bytes) -> bytes:
    """Return a database with statements run over it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        path.write_bytes(first)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(statements)
            connection.commit()
            connection.execute("VACUUM")
        return path.read_bytes()


def _blib(statements: str) -> bytes:
    return _cut(database(statements, libraries.binary_libraries()[0]))


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i AS RefSpectraID, 1 AS peakMZ, 2 AS peakIntensity FROM n"
_COMPUTED = (
    "ALTER TABLE RefSpectraPeaks RENAME TO old; CREATE TABLE RefSpectraPeaks (RefSpectraID INTEGER, peakMZ BLOB AS (zeroblob(900000000)),"
    "peakIntensity BLOB); INSERT INTO RefSpectraPeaks (RefSpectraID, peakIntensity) SELECT RefSpectraID, peakIntensity FROM old"
)


# --- Structures --------------------------------------------------------------------------------------------------------------------------


def _column(name: str, text: str, n: int) -> dict[str, object]:
    """Return a column with one text n times; its indices are a single run of the run-length encoding."""
    run = [{"kind": "RunLength", "srcType": 3, "srcSize": n}, {"kind": "ByteArray", "type": 3}]
    encoding = {
        "kind": "StringArray",
        "stringData": text,
        "offsetEncoding": [{"kind": "ByteArray", "type": 3}],
        "dataEncoding": run,
        "offsets": np.array([0, len(text)], "<i4").tobytes(),
    }
    return {"name": name, "mask": None, "data": {"data": np.array([0, n], "<i4").tobytes(), "encoding": [encoding]}}


def _bcif(text: str, n: int, categories: int = 1, columns: tuple[str, ...] = ("label_atom_id",), padding: int = 0) -> bytes:
    category = {"name": "_atom_site", "rowCount": n, "columns": [_column(name, text, n) for name in columns]}
    block = {"header": "x", "categories": [category] * categories}
    return _cut(msgpack.packb({"dataBlocks": [block], "version": "0.3", "encoder": "x", "padding": b"\0" * padding}))


_SITES = (
    "group_PDB",
    "type_symbol",
    "label_atom_id",
    "label_alt_id",
    "label_comp_id",
    "label_asym_id",
    "label_entity_id",
    "label_seq_id",
    "Cartn_x",
    "Cartn_y",
    "Cartn_z",
    "auth_seq_id",
    "auth_asym_id",
)

# --- Peaks and sequences -----------------------------------------------------------------------------------------------------------------

_MZML = b'<?xml version="1.0"?>\n<mzML><run id="r"><spectrumList>'
_IONS = b"BEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n"


def _zipped_arrays() -> bytes:
    """Repeat one spectrum of two million peaks, of some kilobytes of zlib data."""
    return _cut(_MZML + zipped_spectrum(2_000_000) * 9 + b"</spectrumList></run></mzML>")


_SPTXT = b"Name: A/1\nLibID: 1\nPrecursorMZ: 9\nNumPeaks: 1\n1 1\n\n"
_UNIPROT = b"<entry><accession>A</accession><name>A</name><sequence>M</sequence></entry>\n"


def _lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


ATTACKS: dict[str, Attack] = {
    "mzid accession": Attack("results-xml", lambda: _mzid(accession="P" * 300_000, results=_mzid_items(3400))),
    "mzid modifications": Attack("results-xml", lambda: _mzid(peptide=_MODIFICATION * 5000, results=_mzid_items(3100))),
    "mzid modifications without a place": Attack(
        "results-xml",
        lambda: _mzid(
            peptide="".join(map(_NO_PLACE.format, range(5000))),
            head='<SearchModification massDelta="1" residues="K"/>' * 990
            + "".join(f'<SearchModification massDelta="{i}" residues="K"><cvParam name="m{i}"/></SearchModification>' for i in range(5000)),
            results=_mzid_items(10),
        ),
    ),
    "mzid evidence": Attack(
        "results-xml",
        lambda: _mzid(
            evidence="".join(f'<PeptideEvidence id="e{i}" peptide_ref="p" dBSequence_ref="D"/>' for i in range(5000)),
            results=_mzid_items(3400),
        ),
    ),
    "mzid scores": Attack("results-xml", lambda: _mzid(results=_mzid_scores())),
    "mzid name of the run": Attack("results-xml", lambda: _mzid(location="r" * 300_000, results=_mzid_items(3400))),
    "mzid name of the spectrum": Attack(
        "results-xml",
        lambda: _mzid(
            results=f'<SpectrumIdentificationResult spectrumID="{"i" * 300_000}">'
            + '<SpectrumIdentificationItem peptide_ref="p" chargeState="2"/>' * 10_000
            + "</SpectrumIdentificationResult>"
        ),
    ),
    "mzid tags": Attack("results-xml", lambda: _packed(_mzid()[:-12], b"<a/>", b"</MzIdentML>")),
    "idxml accession": Attack("results-xml", lambda: _idxml("P" * 300_000, _HIT * 8000)),
    "idxml accession within bounds": Attack("results-xml", lambda: _idxml("P" * 300_000, _HIT * 75), is_refused=False),
    "mzid references within bounds": Attack(
        "results-xml",
        lambda: _mzid(
            head="".join(f'<DBSequence id="d{i}" accession="P{i}"/>' for i in range(3000)),
            evidence="".join(f'<PeptideEvidence id="e{i}" peptide_ref="p" dBSequence_ref="d{i}"/>' for i in range(3000)),
            results=_mzid_items(800),
        ),
        is_refused=False,
    ),
    "idxml scores": Attack(
        "results-xml",
        lambda: _idxml(
            hits="".join(
                f'<PeptideHit sequence="PEPTIDEK" score="1" charge="2"><UserParam name="s{i}" value="1"/></PeptideHit>' for i in range(9000)
            )
        ),
    ),
    "idxml reference of the spectrum": Attack(
        "results-xml", lambda: _idxml(hits=_HIT * 9000, identification=f'spectrum_reference="{"r" * 300_000}"')
    ),
    "idxml hits": Attack("results-xml", lambda: _packed(_idxml()[: -len(_IDXML_END)], b'<PeptideHit sequence="K"/>', _IDXML_END)),
    "idxml references": Attack(
        "results-xml",
        lambda: _packed(
            b'<?xml version="1.0"?><IdXML><IdentificationRun><ProteinIdentification><ProteinHit id="P" accession="P"/>'
            b"</ProteinIdentification><PeptideIdentification>",
            b'<PeptideHit sequence="K" charge="1" protein_refs="' + b"P " * 1_000_000 + b'"/>',
            b"</PeptideIdentification></IdentificationRun></IdXML>",
        ),
    ),
    "pepxml scores": Attack(
        "results-xml", lambda: _pepxml(queries="".join(_query(i, f'<search_score name="s{i}" value="1"/>') for i in range(4000)))
    ),
    "pepxml name of the run": Attack("results-xml", lambda: _pepxml("r" * 300_000, "".join(map(_query, range(3500))))),
    "pepxml tags": Attack("results-xml", lambda: _packed(_pepxml(queries="<spectrum_query>")[:-44], b"<a/>")),
    "xtandem name of the run": Attack("results-xml", lambda: _tandem("r" * 300_000, "".join(map(_GROUP.format, range(4000))))),
    "xtandem tags": Attack("results-xml", lambda: _packed(_tandem()[:-8] + b"<group>", b"<a/>")),
    "pin features": Attack("results-tables", lambda: _pin([f"f{i}" for i in range(8000)], 30)),
    "pin features within bounds": Attack("results-tables", lambda: _pin([f"f{i}" for i in range(1900)], 200), is_refused=False),
    "pin packed proteins": Attack("results-tables", lambda: _packed(_pin(["a"], 1)[:-1], b"\tP")),
    "pin packed cells": Attack("results-tables", lambda: _packed(_pin(["a"], 1), b"a_1_2_1\t1\t1\t9\t0\tK\tP\n")),
    "maxquant packed rows": Attack(
        "results-tables", lambda: _packed(_result_of("maxquant").encode(), _result_of("maxquant").splitlines(keepends=True)[1].encode())
    ),
    "comet name of the run": Attack("results-tables", _comet_of_long_name),
    "mztab name of the run": Attack("results-tables", _mztab_of_long_name),
    "parquet of equal rows": Attack("results-parquet", lambda: _parquet(4_000_000)),
    "mzspeclib set named often": Attack("libraries-mzspeclib", lambda: _speclib("s", 9999, 1, 8000)),
    "mzspeclib set of all": Attack("libraries-mzspeclib", lambda: _speclib("all", 900, 9000, 0)),
    "mzspeclib set of all beyond bounds": Attack("libraries-mzspeclib", lambda: _speclib("all", 9999, 7000, 0)),
    "mzspeclib json set named often": Attack("libraries-json", lambda: _speclib_json(8000, 9000)),
    "msp packed peaks": Attack("libraries-msp", lambda: _packed(b"Name: A/1\nPrecursorMZ: 100\nNum peaks: 9\n", b"1 1\n")),
    "msp packed entries": Attack("libraries-msp", lambda: _packed(b"", b"Name: A/1\nPrecursorMZ: 100\nNum peaks: 1\n1 1\n\n")),
    "sptxt packed entries": Attack("libraries-sptxt", lambda: _packed(b"### SpectraST\n", _SPTXT)),
    "mgf library packed": Attack("libraries-mgf", lambda: _packed(b"", b"BEGIN IONS\nSEQ=A\nPEPMASS=9\n1 1\nEND IONS\n")),
    "transitions packed": Attack("libraries-diann", lambda: _packed(libraries.DIA_NN.encode(), _lines(libraries.DIA_NN)[1])),
    "blib view": Attack("libraries-blib", lambda: _blib(f"DROP TABLE RefSpectraPeaks; CREATE VIEW RefSpectraPeaks AS {_ENDLESS}")),
    "blib computed column": Attack("libraries-blib", lambda: _blib(_COMPUTED)),
    "bcif long text": Attack("bcif", lambda: _bcif("x" * 300_000, 70_000)),
    "bcif many columns": Attack("bcif", lambda: _bcif("x", 230_000, columns=_SITES, padding=900_000)),
    "bcif many categories": Attack("bcif", lambda: _bcif("x", 230_000, categories=3000, columns=("type_symbol",))),
    "mmcif packed words": Attack("mmcif", lambda: _packed(b"data_x\nloop_\n_atom_site.id\n", b"1\n")),
    "pdb packed atoms": Attack("pdb", lambda: _packed(b"", examples.as_pdb(examples.atoms_of(examples.helix(8)))[:81])),
    "mzml arrays": Attack("mzml", _zipped_arrays),
    "mzml packed spectra": Attack("mzml", lambda: _packed(_MZML, b'<spectrum defaultArrayLength="0"></spectrum>')),
    "mzxml packed scans": Attack("mzxml", lambda: _packed(b'<?xml version="1.0"?><mzXML><msRun>', b'<scan num="1" msLevel="2"></scan>')),
    "mgf packed spectra": Attack("mgf", lambda: _packed(b"", _IONS)),
    "mgf packed peaks": Attack("mgf", lambda: _packed(b"BEGIN IONS\nPEPMASS=500\n", b"1 1\n", b"END IONS\n")),
    "ms2 packed spectra": Attack("ms2", lambda: _packed(b"H\tx\ty\n", b"S\t1\t1\t500\nZ\t2\t999\n1 1\n")),
    "dta packed spectra": Attack("dta", lambda: _packed(b"", b"999 2\n1 1\n\n")),
    "pkl packed spectra": Attack("pkl", lambda: _packed(b"", b"999 1 2\n1 1\n\n")),
    "fasta packed records": Attack("fasta", lambda: _packed(b"", b">A\nM\n")),
    "fastq packed reads": Attack("fastq", lambda: _packed(b"", b"@a\nA\n+\nI\n")),
    "swiss-prot packed entries": Attack("swiss-prot", lambda: _packed(b"", entry_files.SWISS_PROT.encode(), n_bytes=20 * MEGABYTE)),
    "uniprot xml packed entries": Attack(
        "uniprot-xml", lambda: _packed(b'<?xml version="1.0"?><uniprot xmlns="http://uniprot.org/uniprot">', _UNIPROT, b"</uniprot>")
    ),
    "genbank packed entries": Attack("genbank", lambda: _packed(b"", entry_files.GENBANK_PROTEIN.encode(), n_bytes=20 * MEGABYTE)),
    "embl packed entries": Attack("embl", lambda: _packed(b"", entry_files.EMBL.encode(), n_bytes=20 * MEGABYTE)),
    "pir packed entries": Attack("pir", lambda: _packed(b"", b">P1;A\n\nM*\n")),
    "gff packed features": Attack("track", lambda: _packed(b"##gff-version 3\n", b"a\tb\tCDS\t1\t2\t.\t+\t.\tID=x\n")),
    "bed packed features": Attack("track", lambda: _packed(b"", b"a\t1\t2\tx\n")),
    **CRAFTED,
}
"""Attacks by their names."""


def expected_statuses(name: str) -> tuple[str, ...]:
    """Allowed outcomes of an attack."""
    return {True: ("refused",), False: ("read",), None: ("read", "refused")}[ATTACKS[name].is_refused]


def attack(name: str, folder: Path) -> Outcome:
    """Read the file of an attack in a process of its own."""
    chosen = ATTACKS[name]
    path = folder / "case"
    path.write_bytes(chosen.content())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            readers.limit_memory()
            readers.limit_time()
            before = _peak_megabytes()
            began = os.times()
            status, message = readers.read_case(readers.READERS[chosen.reader], path, random.Random(1))
            now = os.times()
            seconds = now.user + now.system - began.user - began.system
            os.write(writing, json.dumps([status, message[-1000:], round(seconds, 2), round(_peak_megabytes() - before)]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as reported:
        line = reported.read()
    _, status = os.waitpid(child, 0)
    return Outcome(*json.loads(line)) if line else Outcome("failed", f"the process ended with status {status}", 0.0, 0.0)


def _peak_megabytes() -> float:
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024


def main() -> int:
    """Run from the command line; return 1 if an attack had another outcome than it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attack", choices=ATTACKS, action="append", help="may be given several times; all when not given")
    options = parser.parse_args()
    n_failed, warm = 0, set[str]()
    with tempfile.TemporaryDirectory(prefix="unfolding-", dir=readers.IN_MEMORY) as folder:
        for name in options.attack or ATTACKS:
            reader = ATTACKS[name].reader
            if reader not in warm:
                readers.read_beginnings(reader)
                warm.add(reader)
            outcome = attack(name, Path(folder))
            n_failed += outcome.status not in expected_statuses(name)
            print(json.dumps({"attack": name, **outcome._asdict()}), flush=True)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())

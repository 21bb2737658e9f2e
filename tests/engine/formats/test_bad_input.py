"""Unusable files give one line with the file and a remedy."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_proteins, read_spectra
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from tests.effort import CancelCheckProgress

NOISE = np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8).tobytes()
MGF = b"BEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n"

BAD_FOR_BOTH: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b" \n\n\t \n", "only blanks"),
    "noise": (b"x" + NOISE, "binary data"),
    "packed noise": (gzip.compress(NOISE.replace(b"\x1f", b"")), "binary data"),
    "gzip cut off": (gzip.compress(MGF * 1000)[:-20], "cut off"),
    "gzip header only": (b"\x1f\x8b", "cut off"),
    "gzip damaged": (gzip.compress(MGF * 1000)[:60] + b"garbage" * 5 + gzip.compress(MGF * 1000)[95:], "damaged"),
    "thermo": (b"\x01\xa1F\x00i\x00n\x00n\x00i\x00g\x00a\x00n\x00" + NOISE, "Thermo raw file.*ThermoRawFileParser"),
    "wiff": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + NOISE, "wiff.*msconvert"),
    "sqlite": (b"SQLite format 3\0" + NOISE, "SQLite.*msconvert"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + NOISE, "HDF5"),
    "zip": (b"PK\x03\x04" + NOISE, "zip"),
    "utf-16": ("BEGIN IONS".encode("utf-16"), "UTF-16"),
    "prose": (b"Dear reader,\nthis is a note.\n", "no known format"),
    "html": (b"<!-- x --><html><body>404</body></html>", "web page"),
    "mzIdentML": (b'<?xml version="1.0"?><MzIdentML id="x"></MzIdentML>', "identifications"),
    "xml": (b'<?xml version="1.0"?><plist></plist>', "XML of another kind"),
    "doctype": (
        b'<?xml version="1.0"?><!DOCTYPE mzML [<!ENTITY x SYSTEM "file:///etc/passwd">]><mzML>&x;</mzML>',
        "document type declaration",
    ),
    "prefix": (b'<?xml version="1.0"?><p:mzML xmlns:p="http://psi.hupo.org/ms/mzml"/>', "namespace prefix"),
}


def check(error: InputError, path: Path) -> None:
    message = str(error)
    assert "\n" not in message
    assert message.startswith(str(path))
    assert error.remedy


@pytest.mark.parametrize("sort", BAD_FOR_BOTH)
@pytest.mark.parametrize("read", [read_spectra, read_proteins])
def test_invalid_spectrum_files_are_rejected_with_a_reason(written: Callable[..., Path], read: Callable[..., object], sort: str) -> None:
    content, reason = BAD_FOR_BOTH[sort]
    path = written(content, "run.mzML")
    with pytest.raises(InputError, match=reason) as raised:
        read([path])
    check(raised.value, path)


@pytest.mark.parametrize("read", [read_spectra, read_proteins])
def test_missing_files_and_folders_are_rejected(tmp_path: Path, read: Callable[..., object]) -> None:
    folders = [tmp_path / "run.d", tmp_path / "run.raw", tmp_path]
    for folder in folders[:2]:
        folder.mkdir()
    for path, reason in zip(
        [tmp_path / "nothing.mzML", *folders], ["no such file", "Bruker or Agilent.*msconvert", "Waters", "folder"], strict=True
    ):
        with pytest.raises(InputError, match=reason) as raised:
            read([path])
        check(raised.value, path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read every file")
def test_file_without_read_permission_is_rejected(written: Callable[..., Path]) -> None:
    path = written(MGF)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be opened"):
        read_spectra([path])


def test_error_recognises_exchanged_spectra_and_protein_files(written: Callable[..., Path], make: Any) -> None:
    with pytest.raises(InputError, match=r"is a FASTA file.*not a file of spectra.*database"):
        read_spectra([written(">P1\nACD\n", "run.mgf")])
    for content, name in ((MGF, "MGF"), (make.mzml(make.mzml_spectrum()), "mzML"), (make.mzxml(make.mzxml_scan(1)), "mzXML")):
        with pytest.raises(InputError, match=rf"is a file of spectra \({name}\); expected a FASTA file"):
            read_proteins([written(content, "proteins.fasta")])


@pytest.mark.parametrize("name", ["peptides.XLSX", "notes.docx", "table.ods"])
def test_error_does_not_call_an_office_document_an_archive(written: Callable[..., Path], name: str) -> None:
    with pytest.raises(InputError, match=r"is a document of an office program.*Save its text or table as a text file"):
        read_spectra([written(b"PK\x03\x04" + NOISE, name)])


def test_spectrum_formats_are_recognised_under_any_file_name(written: Callable[..., Path], make: Any) -> None:
    assert len(read_spectra([written(make.mzml(make.mzml_spectrum()), "run.mgf")])) == 1
    assert len(read_spectra([written(gzip.compress(MGF), "run.mzML")])) == 1
    assert len(read_proteins([written(gzip.compress(b">P1\nACD\n"), "run.txt")])) == 1


def test_read_spectra_rejects_file_without_ms2(written: Callable[..., Path], make: Any) -> None:
    survey = make.mzml_spectrum(level="1", ions="")
    third = make.mzml_spectrum(level="3")
    with pytest.raises(InputError, match="no MS2 spectra among its 3 spectra"):
        read_spectra([written(make.mzml(survey, survey, third))])
    with pytest.raises(InputError, match="no spectra"):
        read_spectra([written(make.mzml())])
    with pytest.raises(InputError, match="no spectra"):
        read_spectra([written("COM=nothing\n")])


@pytest.mark.parametrize("kind", ["mzML", "mzXML"])
def test_truncated_xml_is_rejected_or_reported(written: Callable[..., Path], make: Any, kind: str) -> None:
    whole = (
        make.mzml(*(make.mzml_spectrum(i) for i in range(3))) if kind == "mzML" else make.mzxml(*(make.mzxml_scan(i) for i in (1, 2, 3)))
    )
    ends = "</mzML" if kind == "mzML" else "</msRun>"
    for cut in range(whole.index(">", 50), whole.index(ends), 37):
        path = written(whole[:cut])
        for strict in (True, False):
            with pytest.raises(InputError) as raised:
                read_spectra([path], strict=strict)
            check(raised.value, path)
            if not strict:
                assert "cut off" in raised.value.reason or "broken" in raised.value.reason
            else:
                assert raised.value.place


def test_broken_xml_outside_spectra_is_rejected(written: Callable[..., Path], make: Any) -> None:
    file = make.mzml(make.mzml_spectrum())
    with pytest.raises(InputError, match=r"byte \d+: the XML is broken"):
        read_spectra([written(file.replace("<run id=", "<run id"))])
    with pytest.raises(InputError, match=r"byte \d+: the XML is broken"):
        read_spectra([written(file.replace("</spectrumList>", "</spectrumList><chromatogramList count=1>"))])


def test_xml_entity_declared_after_a_long_comment_is_rejected(written: Callable[..., Path], make: Any) -> None:
    padding = "<!-- " + "x" * 200_000 + " -->"
    file = make.mzml(make.mzml_spectrum(), declaration=f'<?xml version="1.0"?>{padding}<!DOCTYPE mzML [<!ENTITY x "y">]>')
    with pytest.raises(InputError, match=r"known|declaration|broken XML"):
        read_spectra([written(file)])


def test_randomly_damaged_spectrum_files_are_read_or_rejected(written: Callable[..., Path], make: Any) -> None:
    random = np.random.default_rng(7)
    files = [
        make.mzml(*(make.mzml_spectrum(i, zipped=bool(i % 2)) for i in range(4))),
        make.mzxml(make.mzxml_scan(1, level=1, inner=make.mzxml_scan(2)), make.mzxml_scan(3, zipped=True)),
        (MGF * 3).decode(),
        "H\tx\nS\t1\t1\t500\nZ\t2\t999\n100 1\nS\t2\t2\t600\n1 1\n",
        "1000 2\n1 1\n2 2\n\n1001 3\n1 1\n",
    ]
    for _ in range(60):
        for file in files:
            content = bytearray(file.encode())
            for _ in range(int(random.integers(1, 6))):
                at = int(random.integers(0, len(content)))
                match random.integers(0, 3):
                    case 0:
                        content[at] = int(random.integers(0, 256))
                    case 1:
                        del content[at : at + int(random.integers(1, 40))]
                    case _:
                        content[at:at] = content[int(random.integers(0, len(content))) :][:30]
            path = written(bytes(content))
            for strict in (True, False):
                try:
                    spectra = read_spectra([path], strict=strict, threads=1)
                except InputError as error:
                    assert "\n" not in str(error)
                else:
                    assert spectra.offsets[-1] == len(spectra.mz) == len(spectra.intensity)
                    assert (spectra.intensity > 0).all()
                    assert (spectra.precursor_mz > 0).all()


def test_reading_progress_counts_every_byte(written: Callable[..., Path], make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (5000,))
    mzml = written(make.mzml(*(make.mzml_spectrum(i) for i in range(50))), "a.mzML")
    packed = written(gzip.compress(MGF * 2000), "b.mgf.gz")
    fasta = written("".join(f">P{i}\nACDEFGHIKLMNPQRS\n" for i in range(1000)), "c.fasta")
    for read, paths in ((read_spectra, [mzml, packed]), (read_proteins, [fasta])):
        events: list[ProgressEvent] = []
        read(paths, progress=Progress(events.append, interval=0))
        assert events[0].stage.startswith("Reading")
        assert events[-1].done == events[-1].total == sum(path.stat().st_size for path in paths)
        assert len(events) > 3


def test_cancel_stops_reading_at_the_next_block(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (5000,))
    path = written(MGF * 2000)
    whole, cancelled = CancelCheckProgress(), CancelCheckProgress(7)
    read_spectra([path], threads=2, progress=whole)
    assert whole.n_checks >= path.stat().st_size / 5000
    with pytest.raises(Cancelled):
        read_spectra([path], threads=2, progress=cancelled)
    assert cancelled.n_checks_after_cancel == 0


def test_error_names_the_nucleotide_file_among_protein_files(written: Callable[..., Path]) -> None:
    proteins = written(">p\n" + "MKWVTFISLLLLFSSAYSRGVFRR" * 500, "proteins.fasta")
    genome = written(">c\n" + "ACGTTGCA" * 400 + "NNRYSW", "genome.fasta")
    for files in ([proteins, genome], [genome, proteins], [genome]):
        with pytest.raises(InputError, match=r"the sequences are nucleotides.*translation=six-frame") as raised:
            read_proteins(files)
        assert raised.value.path == str(genome)


def test_error_on_unknown_xml_lists_all_formats(written: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"<UniRef>.*mzML.*UniProt XML"):
        read_proteins([written(b'<?xml version="1.0"?><UniRef></UniRef>', "clusters.xml")])

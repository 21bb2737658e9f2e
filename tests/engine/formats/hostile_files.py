"""Small files that once took minutes, gigabytes or the whole run, and a program that reads each within bounds.

    python -m tests.engine.formats.hostile_files

Every case is read in a separate process, with the limits of `tests.fuzz.readers`; the outcome is printed as a JSON line.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import struct
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.formats import read_proteins, read_spectra
from proteoscope.engine.formats.reporter_regions import read_reporter_regions
from tests.engine.conftest import binary_array, mzml, mzml_spectrum, mzxml, mzxml_scan, term
from tests.fuzz.readers import MEMORY_BYTES, limit_memory, limit_time

REPOSITORY = Path(__file__).resolve().parents[3]
MILLION = 1_000_000
MGF = b"BEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n"
MZML = b'<?xml version="1.0"?>\n<mzML><run id="r"><spectrumList>'
MZML_END = b"</spectrumList></run></mzML>"
SAMPLED = ("MS:1002743", "MS:1002744", "MS:1002745")
"""Arrays of sampled noise: m/z, noise, baseline."""
ZIPPED, ZIPPED_SLOF = ("MS:1000523", "MS:1000574"), ("MS:1000523", "MS:1002748")
MZXML = b'<?xml version="1.0"?>\n<mzXML><msRun>'


@dataclass(frozen=True)
class Hostile:
    """A file, its reader, and a pattern of the result: ``read N`` or the error; `skipped` applies if broken spectra are left out."""

    content: Callable[[], bytes]
    expected: str
    read: str = "spectra"
    skipped: str | None = None


def gzipped(part: bytes, n_bytes: int, before: bytes = b"", after: bytes = b"", size: int = 0) -> bytes:
    """A gzip file of `before`, `part` repeated to `n_bytes` bytes, and `after`.

    If `size` is given, a comment in the header lengthens the file to `size` bytes, which keeps its compression ratio low.
    """
    large = part * max(1, (1 << 20) // len(part))
    times = -(-(n_bytes - len(before)) // len(large))
    packer = zlib.compressobj(1 if size else 9, zlib.DEFLATED, -15)
    start = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)
    # Repeating one packed part is faster than packing everything.
    again = packer.compress(large) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum, total = zlib.crc32(before), len(before) + times * len(large)
    for _ in range(times):
        checksum = zlib.crc32(large, checksum)
    body = start + again * times + packer.compress(after) + packer.flush()
    end = struct.pack("<II", zlib.crc32(after, checksum), (total + len(after)) & 0xFFFFFFFF)
    return b"\x1f\x8b\x08\x10" + bytes(6) + b"c" * (size - len(body) - 20) + b"\0" + body + end


def zipped_numbers(number: bytes, n: int) -> bytes:
    """Return one number repeated under zlib, from repetitions of one compressed chunk, which is faster than compressing all."""
    part = number * min(n, 1 << 17)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    again, checksum = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH), 1
    for _ in range(n * len(number) // len(part)):
        checksum = zlib.adler32(part, checksum)
    rest = part[: n * len(number) % len(part)]
    end = packer.compress(rest) + packer.flush() + struct.pack(">I", zlib.adler32(rest, checksum))
    return b"\x78\xda" + again * (n * len(number) // len(part)) + end


def zipped_spectrum(n_peaks: int, number: bytes = bytes(8)) -> bytes:
    """Return a spectrum of one repeated number, under zlib."""
    data = zipped_numbers(number, n_peaks)
    arrays = "".join(binary_array(kind, data, ("MS:1000523", "MS:1000574")) for kind in ("MS:1000514", "MS:1000515"))
    return mzml_spectrum(arrays=arrays, length=n_peaks).encode()


def zipped_noise(n_spectra: int, n_samples: int, arrays: dict[str, tuple[str, ...]], noise: float = 1.0) -> bytes:
    """Return spectra of three peaks with arrays of noise of one repeated number, under zlib, and further terms."""
    text = []
    for kind, terms in arrays.items():
        value = 500.0 if kind == SAMPLED[0] else noise
        data = struct.pack("<d", value) * n_samples
        if "MS:1002748" in terms:
            data = struct.pack(">d", 100.0) + struct.pack("<H", int(np.log1p(value) * 100)) * n_samples
        text.append(binary_array(kind, zlib.compress(data, 9), terms))
    noisy = "".join(array.replace("<binaryDataArray ", f'<binaryDataArray arrayLength="{n_samples}" ') for array in text)
    peaks = "".join(
        binary_array(kind, np.array(values).tobytes(), ("MS:1000523", "MS:1000576"))
        for kind, values in (("MS:1000514", (100.0, 200.0, 300.0)), ("MS:1000515", (1.0, 2.0, 3.0)))
    )
    return mzml(*(mzml_spectrum(i, arrays=peaks + noisy, length=3) for i in range(n_spectra))).encode()


def noise_in_many_blocks() -> bytes:
    """Return two blocks of two megabytes with two spectra each, whose noise together exceeds the limit for a block."""
    pair = zipped_noise(2, 1_100_000, dict.fromkeys(SAMPLED[:2], ZIPPED))
    head, _, rest = pair.partition(b"<spectrum ")
    spectra, end = rest.rsplit(b"</spectrum>", 1)
    return head + (b"<spectrum " + spectra + b"</spectrum>" + b" " * (2 * MILLION)) * 2 + end


def ms3_mzml(n_spectra: int, n_peaks: int) -> bytes:
    """Return MS3 spectra of one repeated peak, under zlib, after an MS2 spectrum."""
    data = zlib.compress(struct.pack("<d", 150.0) * n_peaks, 9)
    arrays = "".join(binary_array(kind, data, ("MS:1000523", "MS:1000574")) for kind in ("MS:1000514", "MS:1000515"))
    return mzml(mzml_spectrum(0), *(mzml_spectrum(i + 1, level="3", arrays=arrays, length=n_peaks) for i in range(n_spectra))).encode()


def ms3_mzxml(n_spectra: int, n_peaks: int) -> bytes:
    """Return the spectra of `ms3_mzml` as mzXML."""
    text = base64.b64encode(zlib.compress(struct.pack(">ff", 150.0, 1.0) * n_peaks, 9)).decode()
    peaks = f'<precursorMz>500</precursorMz><peaks precision="32" compressionType="zlib" contentType="m/z-int">{text}</peaks>'
    scans = (mzxml_scan(i + 2, level=3, peaks=peaks, attributes=f'peaksCount="{n_peaks}"') for i in range(n_spectra))
    return mzxml(mzxml_scan(1), *scans).encode()


def many_sources() -> bytes:
    """Return an MS3 scan that names twenty thousand others."""
    many = "".join(f'<precursorMz precursorScanNum="{i}">{i}</precursorMz>' for i in range(1, 20_001))
    return mzxml(mzxml_scan(1), mzxml_scan(2, level=3, inner=many)).encode()


def large_profile() -> bytes:
    """Return a realistic profile: 300,000 points, a third of them without signal, under zlib."""
    chance = np.random.default_rng(1)
    mz = np.sqrt(np.linspace(50.0**2, 2000.0**2, 300_000))
    intensity = np.where(np.arange(len(mz)) % 3 == 0, 0.0, chance.poisson(50.0, len(mz)))
    packed = [("MS:1000514", mz), ("MS:1000515", intensity)]
    arrays = "".join(binary_array(kind, zlib.compress(values.tobytes()), ("MS:1000523", "MS:1000574")) for kind, values in packed)
    return mzml(mzml_spectrum(arrays=arrays, length=len(mz), mode="MS:1000128")).encode()


def many_references() -> bytes:
    group = f'<referenceableParamGroup id="a">{term("MS:1000127") * 5000}</referenceableParamGroup>'
    references = '<referenceableParamGroupRef ref="a"/>' * 10_000
    return mzml(f'<spectrum id="x">{references}</spectrum>', header=group).encode()


def many_references_to_nothing() -> str:
    """Return a spectrum with references to groups that do not exist."""
    return mzml_spectrum(0, extra='<referenceableParamGroupRef ref="none"/>' * 30)


def absurd_arrays(kind: str, value: float) -> bytes:
    mz, intensity = [100.0, 200.0], [1.0, 2.0]
    (mz if kind == "mz" else intensity)[1] = value
    odd = mzml_spectrum(1, mz=tuple(mz), intensity=tuple(intensity), dtypes=("<f8", "<f8"))
    return mzml(mzml_spectrum(0), odd, mzml_spectrum(2)).encode()


def with_term(accession: str, value: str, unit: str = "") -> bytes:
    odd = {"MS:1000016": {"time": term(accession, value, unit)}}.get(accession, {"ions": term(accession, value)})
    return mzml(mzml_spectrum(0), mzml_spectrum(1, **odd), mzml_spectrum(2)).encode()


def mgf_spectrum(first_line: str, rest: str = "") -> bytes:
    return f"BEGIN IONS\n{first_line}\n{rest}1 1\nEND IONS\n".encode() + MGF


def numpress_slof() -> bytes:
    data = struct.pack(">d", 1e-300) + struct.pack("<HH", 1, 2)
    arrays = binary_array("MS:1000514", np.array([1.0, 2.0]).tobytes(), ("MS:1000523", "MS:1000576"))
    return mzml(mzml_spectrum(arrays=arrays + binary_array("MS:1000515", data, ("MS:1002314",)), length=2)).encode()


def signalling() -> bytes:
    """Return numbers with the bytes of a signalling NaN."""
    arrays = binary_array("MS:1000514", bytes.fromhex("0000a07f") * 3, ("MS:1000521", "MS:1000576"))
    return mzml(mzml_spectrum(arrays=arrays + binary_array("MS:1000515", bytes(12), ("MS:1000521", "MS:1000576")))).encode()


CASES: dict[str, Hostile] = {
    # Files whose parsing once took quadratic time.
    "digits": Hostile(lambda: b"1" * 130_000, "is in no known format"),
    "digits and a point": Hostile(lambda: b"1" * 65_000 + b"." + b"1" * 65_000 + b"x", "is in no known format"),
    "comments without an end, recognised": Hostile(lambda: b'<?xml version="1.0"?>' + b"<!--" * 260_000, "broken XML"),
    "instructions without an end, recognised": Hostile(lambda: b'<?xml version="1.0"?>' + b"<?" * 500_000, "broken XML"),
    "comments without an end": Hostile(lambda: MZML + b"<!--" * 250_000, "cut off"),
    "instructions without an end": Hostile(lambda: MZML + b"<?" * 500_000, "cut off"),
    "sections without an end": Hostile(lambda: MZML + b"<![CDATA[" * 110_000, "cut off"),
    "declarations": Hostile(lambda: MZML + b" " * 140_000 + b"<!DOCTYPE" * 90_000, "cut off"),
    "angle brackets": Hostile(lambda: MZML + b"<" * MILLION, "cut off"),
    "dataProcessing again and again": Hostile(lambda: MZXML + b"<dataProcessing" * 66_000 + b'<scan num="1">', "the XML is broken"),
    "scans that are none": Hostile(lambda: MZXML + b'<scan num="1"/>' + b"<scanX" * 160_000, "the XML is broken"),
    "blank lines before an m/z": Hostile(
        lambda: mzxml(mzxml_scan(1)).encode().replace(b"> 600.5 <", b">" + b"\n" * MILLION + b"600.5<"), "read 1"
    ),
    "blank lines in MGF": Hostile(lambda: b"COM=x\n" + b"\n" * (MILLION // 2) + MGF + b"\n" * (MILLION // 2), "read 1"),
    "blanks before a value": Hostile(lambda: mgf_spectrum("PEPMASS=" + " " * MILLION + "5"), "read 2"),
    "charges": Hostile(lambda: mgf_spectrum("PEPMASS=5", "CHARGE=" + "1," * 500_000 + "\n"), "line 3: the charge is not"),
    "titles of points and zeros": Hostile(lambda: mgf_spectrum("TITLE=" + ".0000000000" * 1400, "PEPMASS=5\n") * 64, "read 128"),
    "lines of one number": Hostile(lambda: b"BEGIN IONS\nPEPMASS=5\n" + b"1\n" * 500_000 + b"END IONS\n", "line 3: a peak has no"),
    "tags of spectra": Hostile(lambda: MZML + b"<spectrum>" * 100_000, "the spectrum has no end", skipped="cut off"),
    # Decompression bombs.
    "gzip of one line of residues": Hostile(
        lambda: gzipped(b"M", 100 * MILLION, b">A\n"), "expands to more than [0-9,]+ bytes", "proteins"
    ),
    "gzip of one title": Hostile(lambda: gzipped(b"x", 100 * MILLION, b"BEGIN IONS\nTITLE="), "expands to more than [0-9,]+ bytes"),
    "gzip of blanks in mzML": Hostile(lambda: gzipped(b" ", 100 * MILLION, MZML), "expands to more than [0-9,]+ bytes"),
    "long line of residues": Hostile(
        lambda: gzipped(b"M", 90 * MILLION, b";x\n>A\n", size=MILLION),
        "line [12]: the sequence has more than 1,000,000 residues",
        "proteins",
    ),
    "chromosome on a line": Hostile(lambda: gzipped(b"ACGTTGCAN", 90 * MILLION, b">A\n", size=MILLION), "chromosome of nucl", "proteins"),
    "chromosome for an alignment": Hostile(
        lambda: gzipped(b"ACGTTGCAN", 90 * MILLION, b">A\n", size=MILLION), "chromosome of nucleotides", "every record"
    ),
    "long header": Hostile(lambda: gzipped(b"x", 90 * MILLION, b">A", size=MILLION), "the header is longer than", "proteins"),
    "blanks in a sequence": Hostile(lambda: gzipped(b" ", 60 * MILLION, b">A\nM", size=MILLION), "longer than 16 MB", "proteins"),
    "tiny records": Hostile(
        lambda: gzipped(b">A\nM\n", 20 * MILLION, size=MILLION // 4), "expands to more than [0-9,]+ records", "proteins"
    ),
    "records of nothing": Hostile(lambda: gzipped(b">A\n", 90 * MILLION, size=MILLION), "expands to more than [0-9,]+ records", "proteins"),
    "long title": Hostile(lambda: gzipped(b"x", 90 * MILLION, b"BEGIN IONS\nTITLE=", size=MILLION), "no record ends within 64 MB"),
    "long entry": Hostile(lambda: gzipped(b"A=\n", 50 * MILLION, b"BEGIN IONS\n", size=MILLION), "lines between two spectra are not peaks"),
    "tiny spectra": Hostile(lambda: gzipped(MGF, 20 * MILLION, size=MILLION // 4), "expands to more than [0-9,]+ spectra"),
    "tiny DTA": Hostile(lambda: gzipped(b"500 1\n\n", 20 * MILLION, size=MILLION // 4), "expands to more than [0-9,]+ spectra"),
    "peaks without an end": Hostile(
        lambda: gzipped(b"1 1\n", 50 * MILLION, b"BEGIN IONS\nPEPMASS=5\n", b"END IONS\n", size=MILLION), "more than 2,097,152 peaks"
    ),
    "spectra of many peaks": Hostile(
        lambda: gzipped(b"BEGIN IONS\nPEPMASS=5\n" + b"1 1\n" * 5000 + b"END IONS\n", 20 * MILLION, size=MILLION // 4),
        "expands to more than [0-9,]+ peaks",
    ),
    "tags without an end": Hostile(lambda: gzipped(b"<scan/>", 50 * MILLION, MZML + b"<spectrum>", size=MILLION), "XML tags in one"),
    "an array of 87 million": Hostile(lambda: MZML + zipped_spectrum(87 * MILLION) + MZML_END, "more than 2,097,152 peaks"),
    "arrays of two million": Hostile(
        lambda: MZML + zipped_spectrum(2 * MILLION, struct.pack("<d", 500)) * 20 + MZML_END, "unpack to more than 4,194,304 peaks"
    ),
    "an array of one number two million times": Hostile(
        lambda: MZML + zipped_spectrum(2 * MILLION, struct.pack("<d", 500)) + MZML_END, "expands to more than [0-9,]+ peaks"
    ),
    "noise of two million, again and again": Hostile(
        lambda: zipped_noise(90, 2 * MILLION, dict.fromkeys(SAMPLED, ZIPPED)), "arrays of noise unpack to more than 8,388,608", "reporters"
    ),
    "noise of two million in numpress": Hostile(
        lambda: zipped_noise(90, 2 * MILLION, dict.fromkeys(SAMPLED[:2], ZIPPED_SLOF)), "arrays of noise unpack to more than", "reporters"
    ),
    "noise just below the bound": Hostile(
        lambda: zipped_noise(1, 2 * MILLION, dict.fromkeys(SAMPLED, ZIPPED)), "expands to more than [0-9,]+ numbers of noise", "reporters"
    ),
    "negative noise just below the bound": Hostile(
        lambda: zipped_noise(1, 2 * MILLION, dict.fromkeys(SAMPLED, ZIPPED), -1.0),
        "expands to more than [0-9,]+ numbers of noise",
        "reporters",
    ),
    "noise in many blocks, each below the bound": Hostile(noise_in_many_blocks, "read 4", "reporters"),
    "MS3 of two million peaks": Hostile(lambda: ms3_mzml(20, 2 * MILLION), "unpack to more than 4,194,304 peaks", "MS3 reporters"),
    "MS3 of mzXML of two million peaks": Hostile(
        lambda: ms3_mzxml(20, 2 * MILLION), "unpack to more than 4,194,304 peaks", "MS3 reporters"
    ),
    "MS3 of one number two million times": Hostile(lambda: ms3_mzml(1, 2 * MILLION), "expands to more than [0-9,]+ peaks", "MS3 reporters"),
    "MS3 that names twenty thousand sources": Hostile(many_sources, "read 1", "MS3 reporters"),
    "a large profile": Hostile(large_profile, "read 1"),
    "terms of a group, again and again": Hostile(many_references, "XML tags in one spectrum"),
    # One invalid spectrum among valid ones.
    "precursor of 1e308": Hostile(lambda: mgf_spectrum("PEPMASS=1e308"), "the precursor m/z is larger than 100,000", skipped="read 1"),
    "precursor of 1e308 in mzML": Hostile(
        lambda: with_term("MS:1000744", "1e308"), "scan=2: the precursor m/z is larger", skipped="read 2"
    ),
    "precursor's intensity": Hostile(lambda: mgf_spectrum("PEPMASS=500 1e300"), "read 2"),
    "time": Hostile(lambda: mgf_spectrum("PEPMASS=5", "RTINSECONDS=1e300\n"), "the retention time is beyond", skipped="read 1"),
    "time in minutes": Hostile(
        lambda: with_term("MS:1000016", "1e308", "UO:0000031"), "scan=2: the retention time is beyond", skipped="read 2"
    ),
    "m/z of a peak": Hostile(lambda: absurd_arrays("mz", 1e300), "scan=2: a peak has an m/z larger than", skipped="read 2"),
    "intensity of a peak": Hostile(lambda: absurd_arrays("intensity", 1e300), "scan=2: a peak has an m/z larger than", skipped="read 2"),
    "name": Hostile(
        lambda: mgf_spectrum("PEPMASS=5", "TITLE=" + "x" * 20_000 + "\n"), "name is longer than 16,384 bytes", skipped="read 1"
    ),
    "name in mzML": Hostile(
        lambda: mzml(mzml_spectrum(0), mzml_spectrum(1, name="x" * 20_000)).encode(), "name is longer than", skipped="read 1"
    ),
    "scan number of 20 digits": Hostile(
        lambda: b"S\t12345678901234567890\t1\t500\n1 1\nS\t2\t2\t500\n1 1\n", "line 1: a number cannot be read", skipped="read 1"
    ),
    "name of two lines": Hostile(
        lambda: mzml(mzml_spectrum(0), mzml_spectrum(1, name="a\nb&#10;c", ions="")).encode(), "spectrum a b c: the prec", skipped="read 1"
    ),
    # Cases found by fuzzing.
    "broken tag after an empty group": Hostile(
        lambda: mzml(many_references_to_nothing() + mzml_spectrum(1)).replace("</spectrumList>", "</spectrumList><x y>").encode(),
        "scan=1: the XML is broken",
        skipped="byte [0-9]+: the XML is broken",
    ),
    "numpress of no scale": Hostile(numpress_slof, "a peak has an m/z larger"),
    "signalling numbers": Hostile(signalling, "read 1"),
    "encoding that refuses everything": Hostile(
        lambda: mzml(mzml_spectrum(0), declaration='<?xml version="1.0" encoding="undefined"?>').encode(), "read 1"
    ),
    "name of a file within": Hostile(lambda: MGF, "is not a valid file name", "an invalid name"),
}


def _read(case: Hostile, path: Path, *, strict: bool) -> int:
    if case.read == "proteins":
        return len(read_proteins([path]))
    if case.read == "every record":
        return len(read_proteins([path], every_record=True))
    if case.read == "reporters":
        return len(read_reporter_regions(path, 100, 200))
    if case.read == "MS3 reporters":
        return len(read_reporter_regions(path, 100, 200, level=3))
    if case.read == "an invalid name":
        return len(read_spectra([f"{path}\0"]))
    return len(read_spectra([path], strict=strict, threads=2))


def _within_limits(work: Callable[[], int]) -> str:
    """Return the result of a function in a separate process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        limit_memory(2 * MEMORY_BYTES)  # some files are larger than a megabyte
        limit_time()
        try:
            message = f"read {work()}"
        except ProteoscopeError as error:
            message = str(error)
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        os.write(writing, message.encode()[:50_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        message = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return message if not status else f"ended with status {status}"


def main() -> None:
    """Read every case, strictly and leaving out broken spectra."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        path = Path(folder, "file")
        # Modules and compiled functions of each format are loaded before memory is limited: they are not due to the file.
        for text in (MGF, mzml(mzml_spectrum(0, zipped=True)).encode(), mzxml(mzxml_scan(1)).encode(), b"S\t1\t1\t5\n", b"500 1\n1 1\n"):
            path.write_bytes(text)
            read_spectra([path], threads=1)
        path.write_bytes(b">A\nM\n")
        read_proteins([path])
        for name, case in CASES.items():
            path.write_bytes(case.content())
            message = _within_limits(functools.partial(_read, case, path, strict=True))
            is_skippable = case.skipped is not None
            skipping = _within_limits(functools.partial(_read, case, path, strict=False)) if is_skippable else ""
            print(json.dumps({"name": name, "message": message, "skipping_message": skipping, "path": str(path)}), flush=True)


if __name__ == "__main__":
    main()

"""Numbers of the text formats are read as by `float`; others are left out and counted."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.formats.numbers import COMMA, read_number
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.kernels.cpu.text import parse_number

MGF = "BEGIN IONS\nTITLE={title}\nPEPMASS={mz} {height}\nCHARGE=2+\nRTINSECONDS={time}\n{peak_mz} {peak_height}\n300.5 1\nEND IONS\n"
MS2 = "S\t{title}\t{title}\t{mz}\nI\tRTime\t{time}\nZ\t2\t0\n{peak_mz} {peak_height}\n300.5 1\n"
DTA = "{mass} 2\n{peak_mz} {peak_height}\n300.5 1\n\n"
PKL = "{mz} {height} 2\n{peak_mz} {peak_height}\n300.5 1\n\n"
MSP = "Name: {title}\nPrecursorMZ: {mz}\nCharge: 2\nRT: {time}\nNum Peaks: 2\n{peak_mz}\t{peak_height}\n300.5\t1\n\n"
SPTXT = "Name: {title}\nLibID: 1\nPrecursorMZ: {mz}\nCharge: 2\nNumPeaks: 2\n{peak_mz}\t{peak_height}\tb1\n300.5\t1\ty1\n\n"
GNPS = "BEGIN IONS\nNAME={title}\nPEPMASS={mz}\nCHARGE=2+\nRTINSECONDS={time}\n{peak_mz}\t{peak_height}\n300.5\t1\nEND IONS\n"
SOUND = {"mz": "500.5", "height": "10", "time": "2.5", "peak_mz": "200.5", "peak_height": "7", "mass": "999.25"}
FORMATS = {
    "mgf": (MGF, ("mz", "height", "time", "peak_mz", "peak_height")),
    "ms2": (MS2, ("mz", "time", "peak_mz", "peak_height")),
    "dta": (DTA, ("mass", "peak_mz", "peak_height")),
    "pkl": (PKL, ("mz", "height", "peak_mz", "peak_height")),
    "msp": (MSP, ("mz", "time", "peak_mz", "peak_height")),
    "sptxt": (SPTXT, ("mz", "peak_mz", "peak_height")),
    "gnps": (GNPS, ("mz", "time", "peak_mz", "peak_height")),
}
NO_VALUE = ("na", "nan", "null", "none", "n/a", "-")
PROTON = 1.007276466621


def variants(n: int) -> Iterator[str]:
    """Yield valid numbers in many notations, and invalid ones."""
    chance = random.Random(11)
    sound = (
        lambda x: repr(x),
        lambda x: f"{x:.3f}",
        lambda x: f"{x:e}",
        lambda x: f"{x:.12g}",
        lambda x: f"+{x}",
        lambda x: f"{x:E}",
        lambda x: f"{int(x)}.",
        lambda x: f"{int(x)}",
        lambda x: f"00{x}",
    )
    broken = (
        lambda x: f"{x:.4f}".replace(".", ","),
        lambda x: f"{x}x",
        lambda x: f"{x}.5",
        lambda x: f"1,{x}",
        lambda x: f"{x}e",
        lambda x: f"{x};5",
        lambda x: f"1_{x}",
        lambda x: f"x{x}",
        lambda x: f"{x}Da",
        lambda x: f"{int(x)},{int(x)},5",
        lambda x: f"0x{int(x)}",
        lambda x: f"--{x}",
        lambda x: f"{x}'",
        lambda x: f"${x}",
        lambda x: "None",
        lambda x: f"{x}e+",
        lambda x: f"{int(x)}-5.5.5",
    )
    for _ in range(n):
        x = round(chance.uniform(101, 299), chance.randint(1, 9))
        yield chance.choice(sound if chance.random() < 0.5 else broken)(x)


def parse_value(text: str) -> float:
    """Return the number that `float` reads, without Python's thousands separators, or NaN."""
    try:
        return float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan


def read(path: Path, is_library: bool) -> tuple[list[str], dict[str, np.ndarray], int, list[str]]:
    """Return names, columns, the number of records left out, and the messages."""
    progress = RecordingProgress(Progress())
    if is_library:
        library = read_libraries([path], progress)
        names, n_out, result = library.name.to_pylist(), library.skipped.n, library
    else:
        spectra = read_spectra([path], progress=progress, threads=1)
        names, n_out, result = [str(i) for i in spectra.index], spectra.n_skipped, spectra
    first = result.offsets[:-1]
    columns = {
        "mz": result.precursor_mz,
        "time": result.retention_time,
        "peak_mz": result.mz[first],
        "peak_height": result.intensity[first],
    }
    if not is_library:
        columns |= {"height": result.precursor_intensity, "mass": 2 * result.precursor_mz - PROTON}
    return names, columns, n_out, list(progress.messages)


@pytest.mark.parametrize("format", FORMATS)
def test_text_format_numbers_equal_python_float_or_are_counted(tmp_path: Path, format: str) -> None:
    """A thousand number texts are tried in each field of each format, in the middle of three records."""
    template, fields = FORMATS[format]
    is_library = format in ("msp", "sptxt", "gnps")
    path = tmp_path / f"a.{format}"
    for text, field in zip(variants(1000 // len(FORMATS) + 1), itertools.cycle(fields), strict=False):
        path.write_text("".join(template.format(**SOUND | ({field: text} if i == 2 else {}), title=i) for i in (1, 2, 3)))
        names, columns, n_out, messages = read(path, is_library)
        value = parse_value(text)
        assert len(names) + n_out == 3, (field, text)
        if math.isnan(value) and not (text.lower() in NO_VALUE and (field in ("time", "height") or (is_library and field == "mz"))):
            is_time = is_library and field == "time"  # not needed by any search: the time is unknown, and the entry is counted
            assert n_out == (not is_time), (field, text)
            assert any("left out" in message or "retention time cannot be read" in message for message in messages)
            continue
        assert n_out == 0, (field, text, messages)
        scale = 60 if field == "time" and format in ("ms2", "msp") else 1
        expected = np.array([float(SOUND[field]), value, float(SOUND[field])]) * scale
        dtype = np.float32 if field in ("height", "peak_height") else np.float64
        if field == "height":
            expected[np.isnan(expected)] = 0
        np.testing.assert_allclose(columns[field], expected.astype(dtype), rtol=1e-15 if field == "mass" else 0, err_msg=f"{field} {text}")


@pytest.mark.parametrize("text", ["1", "1.5", "+.5", "-1e3", "1E-3", "5.", "1e400", "", ".", "1e", "1.2.3", "1,5", "0x1", "1_0", "x", "１"])
def test_read_number_equals_the_compiled_number_parser(text: str) -> None:
    characters = np.frombuffer(text.encode(), np.uint8)
    value, end = parse_number(characters, 0, len(characters), ord("."))
    if end == len(characters) > 0:
        assert read_number(text) == read_number(text.encode()) == value
    else:
        for form in (text, text.encode()):
            with pytest.raises(ValueError):
                read_number(form)


def test_read_number_rejects_dots_with_decimal_commas() -> None:
    assert read_number("1,5", COMMA) == 1.5
    for text in ("1.5", "1,5,2", "1.000,5"):
        with pytest.raises(ValueError):
            read_number(text, COMMA)


@pytest.mark.parametrize("format", FORMATS)
def test_file_with_decimal_commas_is_read_with_a_warning(tmp_path: Path, format: str) -> None:
    template, _ = FORMATS[format]
    text = "".join(template.format(**SOUND, title=i) for i in (1, 2, 3)).replace(":", ": ")
    results = []
    for content in (text, text.replace(".", ",")):
        path = tmp_path / f"a.{format}"
        path.write_text(content)
        results.append(read(path, format in ("msp", "sptxt", "gnps")))
    (names, columns, _, message), (other_names, others, n_out, messages) = results
    assert (names, n_out, message) == (other_names, 0, [])
    for name, values in columns.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)
    assert len(messages) == 1 and "decimals have a comma" in messages[0]


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("10.5", 10.5), ("10.5-12", 10.5), ("10.5,12.5", 10.5), ("12.5 s", 12.5), ("12", 12.0), ("1.5e2", 150.0), ("", math.nan)],
)
def test_read_mgf_uses_start_of_a_retention_time_range(written: Callable[..., Path], line: str, seconds: float) -> None:
    spectra = read_spectra([written(f"BEGIN IONS\nPEPMASS=5\nRTINSECONDS={line}\n1 1\nEND IONS\n")])
    np.testing.assert_equal(spectra.retention_time, [seconds])


@pytest.mark.parametrize(("line", "scan"), [("7", 7), ("7-9", 7), ("7,9", 7), ("F2:31", 31), ("scan=5", 5), ("-1", -1), ("cycle 5", -1)])
def test_read_mgf_uses_the_first_scan_of_a_list(written: Callable[..., Path], line: str, scan: int) -> None:
    assert read_spectra([written(f"BEGIN IONS\nPEPMASS=5\nSCANS={line}\n1 1\nEND IONS\n")]).scan.tolist() == [scan]


@pytest.mark.parametrize("wrong", ["RTINSECONDS=12,5", "SCANS=12abc", "CHARGE=2.5", "CHARGE=2abc", "CHARGE=2+ and 2-", "PEPMASS=6"])
def test_ambiguous_mgf_record_is_skipped_and_counted(written: Callable[..., Path], wrong: str) -> None:
    good = "BEGIN IONS\nPEPMASS=5.5\n1.5 1\nEND IONS\n"
    spectra = read_spectra([written(good + f"BEGIN IONS\nPEPMASS=5.5\n{wrong}\n1 1\nEND IONS\n" + good)])
    assert (len(spectra), spectra.n_skipped) == (2, 1)


def test_mgf_keys_are_read_in_any_case(written: Callable[..., Path]) -> None:
    mgf = pytest.importorskip("pyteomics.mgf", reason="pyteomics reads MGF independently")
    path = written("BEGIN IONS\nTitle=a\nPepmass=500.5 7\ncharge=3+\nrtinseconds=4.5\n100 1\nEND IONS\n", "a.mgf")
    spectra = read_spectra([path])
    with mgf.MGF(str(path)) as reader:
        (params,) = [record["params"] for record in reader]
    assert spectra.identifier == [params["title"]] and spectra.precursor_mz.tolist() == [params["pepmass"][0]]
    assert spectra.charge_mask.tolist() == [1 << params["charge"][0]] and spectra.retention_time.tolist() == [params["rtinseconds"]]


def test_ambiguous_peak_separators_are_rejected(tmp_path: Path) -> None:
    """``53,6309 241`` may be an m/z with a decimal comma and an intensity, or the peak (53, 6309) and another number."""
    path = tmp_path / "a.msp"
    path.write_text("Name: a\nPrecursorMZ: 300.5\nNum Peaks: 2\n53,6309\t241\n78,2337\t275\n")
    with pytest.raises(InputError, match="a number in a peak has a comma"):
        read_libraries([path])

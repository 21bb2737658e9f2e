"""MGF, MS2, DTA and PKL: variants of the formats, and broken files."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.sources import blocks
from proteoscope.engine.jobs.progress import Progress, RecordingProgress

ALPHANUMERIC = string.ascii_lowercase + string.ascii_uppercase + string.digits
finite = st.floats(min_value=1e-30, max_value=1e30)
spectrum = st.fixed_dictionaries(
    {
        "title": st.text(ALPHANUMERIC + " _.=:;,[]äµ", min_size=1).map(str.strip).filter(bool),
        "mz": st.floats(min_value=0.001, max_value=1e5),
        "intensity": st.none() | finite,
        "charges": st.sets(st.integers(1, 31)),
        "time": st.none() | st.floats(0, 1e6, allow_subnormal=False),
        "scan": st.none() | st.integers(0, 10**12),
        "peaks": st.lists(
            st.tuples(st.floats(0.0011, 1e5), st.floats(min_value=-10, max_value=2.0**99, width=32), st.booleans()), max_size=12
        ),
    }
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    spectra=st.lists(spectrum, min_size=1, max_size=5), end=st.sampled_from(["\n", "\r\n", "\r"]), gap=st.sampled_from([" ", "\t", "  \t "])
)
def test_written_mgf_round_trips(tmp_path: Path, spectra: list[dict], end: str, gap: str) -> None:
    lines = ["# a comment", "", "COM=something"]
    for s in spectra:
        lines += [
            "BEGIN IONS",
            f"TITLE={s['title']}",
            f"PEPMASS={s['mz']!r}" + ("" if s["intensity"] is None else f"{gap}{s['intensity']!r}"),
        ]
        if s["charges"]:
            lines.append("CHARGE=" + " and ".join(f"{charge}+" for charge in sorted(s["charges"])))
        if s["time"] is not None:
            lines.append(f"RTINSECONDS={s['time']!r}")
        if s["scan"] is not None:
            lines.append(f"SCANS={s['scan']}")
        lines += [f"{m!r}{gap}{i!r}" + (f"{gap}1+" if third else "") for m, i, third in s["peaks"]]
        lines += ["", "END IONS"]
    path = tmp_path / "written.mgf"
    path.write_bytes(end.join(lines).encode())
    read = read_spectra([path])
    assert read.identifier == [s["title"] for s in spectra]
    assert read.precursor_mz.tolist() == [s["mz"] for s in spectra]
    assert read.precursor_intensity.tolist() == [np.float32(s["intensity"] or 0) for s in spectra]
    assert read.charge_mask.tolist() == [sum(1 << z for z in s["charges"]) for s in spectra]
    np.testing.assert_array_equal(read.retention_time, [np.nan if s["time"] is None else s["time"] for s in spectra])
    for i, s in enumerate(spectra):
        if s["scan"] is not None:
            assert read.scan[i] == s["scan"]
        expected = sorted(((m, np.float32(h)) for m, h, _ in s["peaks"] if np.float32(h) > 0), key=lambda peak: peak[0])
        mz, intensity = read.peaks(i)
        assert mz.tolist() == [m for m, _ in expected]
        assert intensity.tolist() == [h for _, h in expected]


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.floats(allow_nan=False).map(repr), st.from_regex(r"[-+]?[0-9]{0,25}(\.[0-9]{0,25})?([eE][-+]?[0-9]{1,2})?", fullmatch=True)
    )
)
def test_mgf_numbers_equal_python_float(text: str) -> None:
    from proteoscope.kernels.cpu.text import parse_number

    value, end = parse_number(np.frombuffer(f"{text} ".encode(), dtype=np.uint8), 0, len(text), ord("."))
    try:
        expected = float(text)
    except ValueError:
        assert end < len(text) or not text
        return
    assert end == len(text)
    digits = text.lower().partition("e")[0].replace(".", "").strip("+-").lstrip("0")
    if len(digits) <= 19 and (expected == 0 or 1e-100 < abs(expected) < 1e100):
        assert value == expected
    else:
        np.testing.assert_allclose(value, expected, rtol=1e-15, atol=1e-300)


MGF = """CHARGE=2+ and 3+
; all of these are comments
! or
/ so
BEGIN IONS
TITLE=run.0012.0012.2
PEPMASS = 500.5\t1e3
RTINSECONDS=10.5-12
USER00=x
200.0\t2 1+
100.0 1.0
# here too

300.0 0
END IONS

  BEGIN IONS
TITLE=controllerType=0 scan=44
PEPMASS=600
CHARGE=1-5
150 nan
160 .5e1
END IONS
BEGIN IONS
PEPMASS=700
SCANS=7-9
CHARGE=4
END IONS
""".replace("CHARGE=1-5", "CHARGE=5+, 6+")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_read_spectra_accepts_mgf_variants(written: Callable[..., Path], end: str) -> None:
    spectra = read_spectra([written(("\ufeff" + MGF).replace("\n", end))])
    assert spectra.identifier == ["run.0012.0012.2", "controllerType=0 scan=44", "index=2"]
    assert spectra.scan.tolist() == [12, 44, 7]
    np.testing.assert_equal(spectra.retention_time, [10.5, np.nan, np.nan])
    assert spectra.precursor_mz.tolist() == [500.5, 600.0, 700.0]
    assert spectra.precursor_intensity.tolist() == [1000.0, 0.0, 0.0]
    assert spectra.charge_mask.tolist() == [0b1100, 0b1100000, 0b10000]
    assert spectra.mz.tolist() == [100.0, 200.0, 160.0]
    assert spectra.intensity.tolist() == [1.0, 2.0, 5.0]
    assert spectra.offsets.tolist() == [0, 2, 3, 3]


def test_mgf_titles_in_latin_1_are_read(written: Callable[..., Path]) -> None:
    path = written("BEGIN IONS\nTITLE=Köln\nPEPMASS=500\n100 1\nEND IONS\n".encode("latin-1"))
    assert read_spectra([path]).identifier == ["Köln"]


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("PEPMASS=5\n100 1O\n", 6, "number"),
        ("PEPMASS=5\n100.5.1 10\n", 6, "number"),
        ("PEPMASS=5\n100\n", 6, "no intensity"),
        ("PEPMASS=five\n100 1\n", 5, "number"),
        ("PEPMASS=\n100 1\n", 4, "precursor m/z"),
        ("100 1\n", 4, "precursor m/z"),
        ("PEPMASS=0\n100 1\n", 4, "precursor m/z"),
        ("PEPMASS=5\nCHARGE=abc\n100 1\n", 6, "charge"),
        ("PEPMASS=5\nCHARGE=99+\n100 1\n", 6, "charge"),
        ("PEPMASS=5\nCHARGE=2-\n100 1\n", 4, "negative"),
        ("PEPMASS=5\nRTINSECONDS=soon\n100 1\n", 6, "number"),
        ("PEPMASS=5\nnonsense\n100 1\n", 6, "neither a peak nor"),
    ],
)
def test_broken_mgf_spectrum_is_reported_or_skipped(written: Callable[..., Path], body: str, line: int, reason: str) -> None:
    good = "BEGIN IONS\nPEPMASS=400\nEND IONS\n"
    path = written(good + "BEGIN IONS\n" + body + "END IONS\n" + good)
    with pytest.raises(InputError, match=rf"file\.txt, line {line}: ") as raised:
        read_spectra([path], strict=True)
    assert reason in raised.value.reason
    spectra = read_spectra([path])
    assert (spectra.n_skipped, spectra.identifier) == (1, ["index=0", "index=2"])


@pytest.mark.parametrize("tail", ["", "BEGIN IONS\nPEPMASS=5\n100 1\nEND IONS\n"])
def test_mgf_spectrum_without_end_line_is_reported(written: Callable[..., Path], tail: str) -> None:
    good = "BEGIN IONS\nPEPMASS=400\nEND IONS\n"
    path = written(good + "BEGIN IONS\nPEPMASS=5\n100 1\n" + tail)
    with pytest.raises(InputError, match=r"line 4: the spectrum has no end"):
        read_spectra([path], strict=True)
    spectra = read_spectra([path])
    assert (len(spectra), spectra.n_skipped) == (2 if tail else 1, 1)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1 << 20, 40])
def test_mgf_in_lower_case_is_read(written: Callable[..., Path], end: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (size,))
    monkeypatch.setitem(blocks.__kwdefaults__, "maximum_bytes", 200)
    text = "begin ions\ntitle=a\npepmass=400\ncharge=3+\n1 1\nend ions\nbegin ions\ntitle=b\npepmass=500\n1 1\nend ions\n"
    spectra = read_spectra([written((4 * text).replace("\n", end))])
    assert spectra.identifier == ["a", "b"] * 4
    assert spectra.charge_mask.tolist() == [0b1000, 0] * 4  # the charge of a spectrum is not the charge of all


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_invalid_charge_of_all_mgf_spectra_has_line_number(written: Callable[..., Path], end: str) -> None:
    text = "# CHARGE=x\n\nCOM=y\n charge = 99+\nBEGIN IONS\nPEPMASS=400\n1 1\nEND IONS\n"
    with pytest.raises(InputError, match=r"line 4: the CHARGE of all spectra, '99\+'"):
        read_spectra([written(text.replace("\n", end))])


def test_charge_of_a_damaged_mgf_spectrum_is_not_used_for_all(written: Callable[..., Path]) -> None:
    spectra = read_spectra([written("BEGIN  IONS\nPEPMASS=300\nCHARGE=5+\nEND IONS\nBEGIN IONS\nPEPMASS=400\n1 1\nEND IONS\n")])
    assert (spectra.charge_mask.tolist(), spectra.n_skipped) == ([0], 2)


def test_mgf_time_with_a_million_blanks_is_reported(written: Callable[..., Path]) -> None:
    spectra = "BEGIN IONS\nPEPMASS=400\nRTINSECONDS=1{}\n1 1\nEND IONS\n"
    read = read_spectra([written(spectra.format(" " * (1 << 20) + "x") + spectra.format("2 \t sec"))])
    assert (read.retention_time.tolist(), read.n_skipped) == ([12.0], 1)


@pytest.mark.parametrize("stray", ["100 1\n", "nonsense\n", "END IONS\n", "100\n", "100 x\n"])
def test_mgf_lines_outside_spectra_are_reported(written: Callable[..., Path], stray: str) -> None:
    good = "BEGIN IONS\nPEPMASS=400\n1 1\nEND IONS\n"
    with pytest.raises(InputError, match=r"line 5: the line is neither"):
        read_spectra([written(good + stray + good)], strict=True)


def test_mgf_error_has_line_number_across_blocks(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (100,))
    good = "BEGIN IONS\r\nPEPMASS=400\r\n1 1\r\nEND IONS\r\n"
    with pytest.raises(InputError, match=r"line 402: a peak has no"):
        read_spectra([written(good * 100 + "BEGIN IONS\r\n100\r\nEND IONS\r\n" + good)], strict=True)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_mgf_spectra_do_not_depend_on_block_size(written: Callable[..., Path], end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spectra = []
    for k in range(300):
        body = ["BEGIN IONS", f"TITLE=spectrum {k}", "PEPMASS=400.5", "CHARGE=2+", *(f"{m} {m}" for m in range(100, 100 + k % 7))]
        spectra += [*body, *["BEGIN IONSX"] * (k % 11 == 0), *["END IONS"] * (k % 13 != 0), *["", "a lost line"] * (k % 17 == 0), ""]
    path, results = written(end.join(spectra)), []
    for size in (1 << 21, 1000, 300):
        monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (size,))
        progress = RecordingProgress(Progress())
        read = read_spectra([path], progress=progress, threads=16)
        results.append((read.identifier, read.index.tolist(), read.offsets.tolist(), read.mz.tolist(), progress.messages))
    assert results[0] == results[1] == results[2]
    assert len(results[0][0]) == sum(k % 11 > 0 and k % 13 > 0 for k in range(300))


MS2 = """H\tCreationDate\ttoday
S\t000012\t000012\t500.5
I\tRTime\t1.5
I\tNativeID\tx
Z\t2\t1000.0
Z\t3\t1499.5
D\tanything
100.0 1.0
200.0 2.0
S\t13\t13\t600.5
300.0 3.0
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ms2_spectra_are_read(written: Callable[..., Path], end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(MS2.replace("\n", end))
    for size in (1 << 20, 64):
        monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (size,))
        spectra = read_spectra([path])
        assert spectra.identifier == ["scan=12", "scan=13"]
        assert spectra.scan.tolist() == [12, 13]
        np.testing.assert_equal(spectra.retention_time, [90.0, np.nan])
        assert spectra.precursor_mz.tolist() == [500.5, 600.5]
        assert spectra.charge_mask.tolist() == [0b1100, 0]
        assert spectra.mz.tolist() == [100.0, 200.0, 300.0]
        assert spectra.offsets.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("Z\t3", "Z\tx"), 6),
        (("500.5", "abc"), 2),
        (("200.0 2.0", "2x 2"), 9),
        (("D\t", "Q\t"), 7),
        (("1.5", "?"), 3),
    ],
)
def test_broken_ms2_spectrum_is_reported(written: Callable[..., Path], change: tuple[str, str], line: int) -> None:
    path = written(MS2.replace(*change))
    with pytest.raises(InputError, match=rf"line {line}: "):
        read_spectra([path], strict=True)
    assert read_spectra([path]).scan.tolist() == [13]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1 << 20, 8])
def test_dta_spectra_are_read(written: Callable[..., Path], end: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (size,))
    single = "1000.5 2\n100.0 1.0\n200.0 2.0\n"
    spectra = read_spectra([written(single.replace("\n", end))])
    # [M+H]+ of 1000.5 with two charges: (M + 2 p) / 2 with p the proton's mass.
    assert spectra.precursor_mz[0] == pytest.approx((1000.5 - 1.007276466621 + 2 * 1.007276466621) / 2, abs=1e-12)
    assert spectra.charge_mask.tolist() == [0b100]
    assert spectra.mz.tolist() == [100.0, 200.0]
    several = "\n\n" + single + "\n\n700.25 1\n\n" + single
    spectra = read_spectra([written(several.replace("\n", end))])
    assert spectra.offsets.tolist() == [0, 2, 2, 4]
    assert spectra.precursor_mz[1] == 700.25
    assert spectra.identifier == ["index=0", "index=1", "index=2"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1 << 20, 8, 50])
@pytest.mark.parametrize("gap", ["", "\n", " \n\n"])
def test_dta_spectra_of_a_merged_file_have_names(
    written: Callable[..., Path], end: str, size: int, gap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (size,))
    part = f'\n=========== "run.7.7.2.dta" ==========\n{gap}1000.5 2\n100 1\n'
    text = part.lstrip("\n") + part.replace("7", "8") + "\n1000.5 2\n100 1\n"
    spectra = read_spectra([written("\ufeff" + text.replace("\n", end))])
    assert spectra.identifier == ["run.7.7.2.dta", "run.8.8.2.dta", "index=2"]
    assert spectra.scan.tolist() == [7, 8, -1]
    assert spectra.offsets.tolist() == [0, 1, 2, 3]


def test_pkl_spectra_are_read(written: Callable[..., Path]) -> None:
    spectra = read_spectra([written("500.5 1000 2\n100 1\n200 2\n\n600.5 2000.5 0\n300 3\n")])
    assert spectra.precursor_mz.tolist() == [500.5, 600.5]
    assert spectra.precursor_intensity.tolist() == [1000.0, 2000.5]
    assert spectra.charge_mask.tolist() == [0b100, 0]
    assert spectra.mz.tolist() == [100.0, 200.0, 300.0]


@pytest.mark.parametrize(
    ("bad", "line"), [("1000.5 x\n1 1", 4), ("1000.5 0\n1 1", 4), ("1000.5\n1 1", 4), ("1000.5 2\n1 x", 5), ("1000.5 2\nbad\n1 1", 5)]
)
def test_broken_dta_spectrum_is_reported(written: Callable[..., Path], bad: str, line: int) -> None:
    path = written(f"800.5 2\n100 1\n\n{bad}\n\n900.5 1\n100 1\n")
    with pytest.raises(InputError, match=rf"line {line}: "):
        read_spectra([path], strict=True)
    spectra = read_spectra([path])
    assert (len(spectra), spectra.n_skipped) == (2, 1)


def test_mgf_profile_spectrum_is_centroided_or_rejected(written: Callable[..., Path]) -> None:
    mz = np.arange(499.9, 500.1, 0.01)
    peaks = "\n".join(f"{m:.4f} {100 * np.exp(-0.5 * ((m - 500) / 0.02) ** 2):.6f}" for m in mz)
    path = written(f"BEGIN IONS\nPEPMASS=400\n{peaks}\nEND IONS\n")
    np.testing.assert_allclose(read_spectra([path]).mz, [500.0], atol=1e-4)
    with pytest.raises(InputError, match="profile"):
        read_spectra([path], centroid=False)


def test_mgf_titles_escape_control_characters(tmp_path):
    path = tmp_path / "run.mgf"
    peaks = "PEPMASS=500\n100 1\n200 2\n300 3\nEND IONS\n"
    path.write_text("".join(f"BEGIN IONS\nTITLE={title}\n{peaks}" for title in ("\x1b[31m", "[31m", " a\x01 ")))
    progress = RecordingProgress(Progress())
    assert read_spectra([path], progress=progress).identifier == ["%1B[31m", "[31m", "a%01"]
    assert any("run.mgf: 2 names hold characters that cannot be printed" in text for text in progress.messages)

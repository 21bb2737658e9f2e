"""mzML variants: types, compressions, groups, units, charges, profiles, and broken files."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress, ProgressEvent


@pytest.mark.parametrize(
    ("dtypes", "zipped"), list(product([("<f8", "<f4"), ("<f4", "<f8"), ("<f8", "<i4"), ("<f8", "<i8")], [False, True]))
)
def test_read_mzml_reads_every_number_type_and_compression(
    make: Any, written: Callable[..., Path], dtypes: tuple[str, str], zipped: bool
) -> None:
    spectra = read_spectra([written(make.mzml(make.mzml_spectrum(dtypes=dtypes, zipped=zipped)))])
    assert spectra.mz.tolist() == list(make.mz)
    assert spectra.intensity.tolist() == list(make.intensity)
    assert spectra.offsets.tolist() == [0, 3]


def test_read_mzml_reads_every_field(make: Any, written: Callable[..., Path]) -> None:
    survey = make.mzml_spectrum(0, level="1", ions="")
    spectra = read_spectra([written(make.mzml(survey, make.mzml_spectrum(1, name="controllerType=0 scan=17")))])
    assert spectra.identifier == ["controllerType=0 scan=17"]
    assert (spectra.scan[0], spectra.index[0], spectra.retention_time[0]) == (17, 1, 90.0)
    assert (spectra.precursor_mz[0], spectra.precursor_intensity[0], spectra.charge_mask[0]) == (500.25, 1000.0, 1 << 2)
    assert spectra.n_skipped == 0


@pytest.mark.parametrize(
    ("unit", "seconds"), [("UO:0000010", 1.5), ("UO:0000031", 90.0), ("UO:0000028", 0.0015), ("MS:1000038", 90.0), ("", np.nan)]
)
def test_mzml_retention_time_is_converted_by_unit(make: Any, written: Callable[..., Path], unit: str, seconds: float) -> None:
    spectrum = make.mzml_spectrum(time=make.term("MS:1000016", "1.5", unit))
    np.testing.assert_equal(read_spectra([written(make.mzml(spectrum))]).retention_time[0], seconds)


def test_mzml_charges_are_read(make: Any, written: Callable[..., Path]) -> None:
    ion = make.term("MS:1000744", "500.25")
    possible = make.term("MS:1000633", "2") + make.term("MS:1000633", "3")
    ions = [ion, ion + possible, ion + possible + make.term("MS:1000041", "4"), ion + make.term("MS:1000041", "0")]
    spectra = read_spectra([written(make.mzml(*(make.mzml_spectrum(i, ions=text) for i, text in enumerate(ions))))])
    assert spectra.charge_mask.tolist() == [0, 1 << 2 | 1 << 3, 1 << 4, 0]


def test_read_mzml_uses_first_precursor_and_selected_ion(make: Any, written: Callable[..., Path]) -> None:
    def ion(mz: float, charge: int) -> str:
        return f"<selectedIon>{make.term('MS:1000744', mz)}{make.term('MS:1000041', charge)}</selectedIon>"

    def window(mz: float) -> str:
        return f"<isolationWindow>{make.term('MS:1000827', mz)}</isolationWindow>"

    several = f"<precursor>{window(399)}<selectedIonList>{ion(400, 2)}{ion(450, 3)}</selectedIonList></precursor>"
    several += f"<precursor>{window(499)}<selectedIonList>{ion(500, 4)}</selectedIonList></precursor>"
    windows = (
        f"<precursor>{window(610.5)}</precursor><precursor>{window(710.5)}<selectedIonList>{ion(711, 3)}</selectedIonList></precursor>"
    )
    file = make.mzml(make.mzml_spectrum(0, precursors=several), make.mzml_spectrum(1, precursors=windows))
    spectra = read_spectra([written(file)])
    assert spectra.precursor_mz.tolist() == [400.0, 610.5]
    assert spectra.charge_mask.tolist() == [1 << 2, 0]


def test_read_mzml_inserts_referenced_parameter_groups(make: Any, written: Callable[..., Path]) -> None:
    groups = (
        f'<referenceableParamGroupList><referenceableParamGroup id="a&quot;b">{make.term("MS:1000511", "2")}{make.term("MS:1000127")}'
        f'</referenceableParamGroup><referenceableParamGroup id="nothing"></referenceableParamGroup>'
        f'<referenceableParamGroup id="packing">{make.term("MS:1000523")}{make.term("MS:1000574")}</referenceableParamGroup>'
        "</referenceableParamGroupList>"
    )
    arrays = "".join(
        f"<binaryDataArray>{inner}</binaryDataArray>".replace("GROUP", '<referenceableParamGroupRef ref="packing"/>')
        for inner in (
            f"GROUP{make.term('MS:1000514')}<binary>{packed(make.mz)}</binary>",
            f"{make.term('MS:1000515')}GROUP<binary>{packed(make.intensity)}</binary>",
        )
    )
    reference = '<referenceableParamGroupRef ref="a&quot;b"/><referenceableParamGroupRef ref="nothing"/>'
    spectrum = make.mzml_spectrum(level="", mode="", extra=reference, arrays=arrays)
    spectra = read_spectra([written(make.mzml(spectrum, make.mzml_spectrum(1), header=groups))])
    assert spectra.mz.tolist() == [*make.mz, *make.mz]
    assert spectra.intensity.tolist() == [*make.intensity, *make.intensity]


def packed(values: tuple[float, ...]) -> str:
    return base64.b64encode(zlib.compress(np.array(values).tobytes())).decode()


def test_read_mzml_ignores_comments_and_other_elements(make: Any, written: Callable[..., Path]) -> None:
    extra = "<!-- </spectrum> <spectrum id='no'> --><![CDATA[<spectrum>]]><?target x?><userParam name='a > b' value=\"it's\"/>"
    file = make.mzml(make.mzml_spectrum(name="scan=3 &quot;x&quot; &amp; ü", extra=extra))
    file = file.replace("</spectrumList>", "</spectrumList><chromatogramList><chromatogram id='TIC'><binaryDataArrayList>").replace(
        "</run>",
        f"{make.binary_array('MS:1000515', b'1234', ('MS:1000521',))}</binaryDataArrayList></chromatogram></chromatogramList></run>",
    )
    spectra = read_spectra([written("\ufeff" + file)])
    assert spectra.identifier == ['scan=3 "x" & ü']
    assert len(spectra.mz) == 3
    latin = make.mzml(make.mzml_spectrum(name="scan=3 ü"), declaration='<?xml version="1.0" encoding="ISO-8859-1"?>')
    assert read_spectra([written(latin.encode("latin-1"))]).identifier == ["scan=3 ü"]


def test_read_mzml_sorts_peaks_and_drops_zero_intensities(make: Any, written: Callable[..., Path]) -> None:
    mz = (300.0, 100.0, 200.0, 150.0, 160.0, 170.0, -1.0, np.nan)
    intensity = (3.0, 1.0, 2.0, 0.0, -5.0, np.nan, 7.0, 8.0)
    spectra = read_spectra([written(make.mzml(make.mzml_spectrum(mz=mz, intensity=intensity), make.mzml_spectrum(1, mz=(), intensity=())))])
    assert spectra.mz.tolist() == [100.0, 200.0, 300.0]
    assert spectra.intensity.tolist() == [1.0, 2.0, 3.0]
    assert spectra.offsets.tolist() == [0, 3, 3]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("n", [0, 2, 3, 7, 1000])
def test_numpress_equals_pynumpress(make: Any, written: Callable[..., Path], n: int, zipped: bool) -> None:
    numpress = pytest.importorskip("pynumpress", reason="pynumpress is the independent implementation")
    random = np.random.default_rng(n)
    mz = np.sort(random.uniform(100.0, 2000.0, n))
    # Numbers with positive and negative second differences, and long runs of equal numbers.
    mz[n // 2 : n // 2 + 20] = mz[n // 2 : n // 2 + 1]
    mz.sort()
    intensity = np.round(random.uniform(1.0, 1e6, n) ** random.choice([0.3, 1.0]))
    linear = bytes(numpress.encode_linear(mz, numpress.optimal_linear_fixed_point(mz) if n else 1000.0))
    short = bytes(numpress.encode_slof(intensity, numpress.optimal_slof_fixed_point(intensity) if n else 1000.0))
    integers = bytes(numpress.encode_pic(intensity))
    codes = ("MS:1002746", "MS:1002748", "MS:1002747") if zipped else ("MS:1002312", "MS:1002314", "MS:1002313")
    pack: Callable[[bytes], bytes] = zlib.compress if zipped else bytes
    expected_mz = np.sort(numpress.decode_linear(np.frombuffer(linear, np.uint8))) if n else mz
    for code, data, decode in ((codes[1], short, numpress.decode_slof), (codes[2], integers, numpress.decode_pic)):
        arrays = make.binary_array("MS:1000514", pack(linear), ("MS:1000523", codes[0]))
        arrays += make.binary_array("MS:1000515", pack(data), ("MS:1000523", code))
        spectra = read_spectra([written(make.mzml(make.mzml_spectrum(length=n, arrays=arrays)))])
        assert np.array_equal(spectra.mz, expected_mz)
        expected = decode(np.frombuffer(data, np.uint8)) if n else intensity
        np.testing.assert_allclose(spectra.intensity, expected, rtol=1e-6)


def test_numpress_of_a_single_number_is_read(make: Any, written: Callable[..., Path]) -> None:
    # By the format's definition: the factor as a big-endian double, then the number as a little-endian integer of four bytes.
    data = struct.pack(">d", 1000.0) + struct.pack("<i", 123456)
    arrays = "".join(make.binary_array(kind, data, ("MS:1000523", "MS:1002312")) for kind in ("MS:1000514", "MS:1000515"))
    assert read_spectra([written(make.mzml(make.mzml_spectrum(length=1, arrays=arrays)))]).mz.tolist() == [123.456]


def test_numpress_and_zlib_are_recognised_as_two_terms(make: Any, written: Callable[..., Path]) -> None:
    numpress = pytest.importorskip("pynumpress", reason="pynumpress is the independent implementation")
    data = [zlib.compress(bytes(numpress.encode_linear(np.array(values), 1000.0))) for values in (make.mz, make.intensity)]
    arrays = make.binary_array("MS:1000514", data[0], ("MS:1002312", "MS:1000574"))
    arrays += make.binary_array("MS:1000515", data[1], ("MS:1000574", "MS:1002312"))
    spectra = read_spectra([written(make.mzml(make.mzml_spectrum(arrays=arrays)))])
    np.testing.assert_allclose(spectra.mz, make.mz)
    np.testing.assert_allclose(spectra.intensity, make.intensity)


def good_array(make: Any, kind: str) -> str:
    return make.binary_array(kind, np.array(make.mz).tobytes(), ("MS:1000523", "MS:1000576"))


def broken_spectra(make: Any) -> dict[str, tuple[str, str]]:
    """Return a broken spectrum (scan=2) of each kind, and a word of the expected reason."""
    good = good_array(make, "MS:1000514")
    plain = make.mzml_spectrum(1)

    def with_array(array: str) -> str:
        return make.mzml_spectrum(1, arrays=good + array)

    zipped = make.binary_array("MS:1000515", b"no zlib data", ("MS:1000523", "MS:1000574"))
    cut = make.binary_array("MS:1000515", zlib.compress(np.arange(3.0).tobytes())[:-6], ("MS:1000523", "MS:1000574"))
    bomb = make.binary_array("MS:1000515", zlib.compress(bytes(10_000_000)), ("MS:1000523", "MS:1000574"))
    return {
        "base64": (make.mzml_spectrum(1, arrays=good + good_array(make, "MS:1000515").replace("<binary>AA", "<binary>A*")), "base64"),
        "base64 cut": (with_array(good_array(make, "MS:1000515").replace("</binary>", "A</binary>")), "base64"),
        "zlib": (with_array(zipped), "zlib"),
        "zlib cut": (with_array(cut), "zlib"),
        "zlib bomb": (with_array(bomb), "differs from the declared"),
        "too short": (
            with_array(make.binary_array("MS:1000515", np.arange(2.0).tobytes(), ("MS:1000523", "MS:1000576"))),
            "differs from the declared",
        ),
        "uneven": (
            with_array(make.binary_array("MS:1000515", bytes(23), ("MS:1000523", "MS:1000576"))),
            "differs from the declared",
        ),
        "wrong length": (plain.replace('defaultArrayLength="3"', 'defaultArrayLength="4"'), "differs from the declared"),
        "absurd length": (plain.replace('defaultArrayLength="3"', 'defaultArrayLength="99999999999999"'), "more than 2,097,152 peaks"),
        "no length": (plain.replace('defaultArrayLength="3"', ""), "differs from the declared"),
        "no intensities": (make.mzml_spectrum(1, arrays=good), "missing"),
        "no type": (with_array(make.binary_array("MS:1000515", bytes(24), ("MS:1000576",))), "unknown encoding"),
        "zstd": (with_array(make.binary_array("MS:1000515", bytes(24), ("MS:1000523", "MS:1003780"))), "unknown encoding"),
        "numpress": (with_array(make.binary_array("MS:1000515", b"\x40\x8f\x40\0\0\0\0\0\x01", ("MS:1000523", "MS:1002312"))), "numpress"),
        "precursor number": (make.mzml_spectrum(1, ions=make.term("MS:1000744", "5oo.25")), "number"),
        "time": (make.mzml_spectrum(1, time=make.term("MS:1000016", "soon", "UO:0000010")), "number"),
        "no precursor": (make.mzml_spectrum(1, ions=""), "precursor m/z"),
        "zero precursor": (make.mzml_spectrum(1, ions=make.term("MS:1000744", "0")), "precursor m/z"),
        "charge": (make.mzml_spectrum(1, ions=make.term("MS:1000744", "500") + make.term("MS:1000041", "two")), "charge"),
        "negative": (make.mzml_spectrum(1, ions=make.term("MS:1000744", "500") + make.term("MS:1000041", "-2")), "negative"),
        "xml": (make.mzml_spectrum(1, extra='<cvParam accession="MS:1000285" value="1'), "XML"),
        "unknown group": (make.mzml_spectrum(1, extra='<referenceableParamGroupRef ref="unknown"/>'), "XML"),
        "no end": (plain.replace("</spectrum>", ""), "no end"),
    }


SORTS = ["base64", "base64 cut", "zlib", "zlib cut", "zlib bomb", "too short", "uneven", "wrong length", "absurd length", "no length"]
SORTS += ["no intensities", "no type", "zstd", "numpress", "precursor number", "time", "no precursor", "zero precursor", "charge"]
SORTS += ["negative", "xml", "unknown group", "no end"]


def test_all_kinds_of_broken_mzml_spectra_are_tested(make: Any) -> None:
    assert set(SORTS) == set(broken_spectra(make))


@pytest.mark.parametrize("sort", SORTS)
def test_broken_mzml_spectrum_is_reported_or_skipped(make: Any, written: Callable[..., Path], sort: str) -> None:
    spectrum, reason = broken_spectra(make)[sort]
    path = written(make.mzml(make.mzml_spectrum(0), spectrum, make.mzml_spectrum(2)))
    with pytest.raises(InputError, match=r"spectrum controllerType=0 controllerNumber=1 scan=2: .*") as raised:
        read_spectra([path], strict=True)
    assert reason in raised.value.reason
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.remedy
    events: list[ProgressEvent] = []
    spectra = read_spectra([path], progress=Progress(events.append))
    assert spectra.scan.tolist() == [1, 3]
    assert spectra.index.tolist() == [0, 2]
    assert spectra.mz.tolist() == [*make.mz, *make.mz]
    assert spectra.n_skipped == 1
    assert any("1 of 3 MS2 spectra left out" in event.message and "scan=2" in event.message for event in events)


def test_broken_ms1_spectra_are_ignored(make: Any, written: Callable[..., Path]) -> None:
    survey = make.mzml_spectrum(0, level="1", ions="", arrays=good_array(make, "MS:1000514").replace("<binary>AA", "<binary>*"))
    assert len(read_spectra([written(make.mzml(survey, make.mzml_spectrum(1)))])) == 1


def test_read_spectra_rejects_file_of_broken_spectra(make: Any, written: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"none of its MS2 spectra \(1\) can be used; the first: spectrum"):
        read_spectra([written(make.mzml(make.mzml_spectrum(ions="")))])


def profile(centers: tuple[float, ...], heights: tuple[float, ...], width: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return sampled Gaussian peaks, with zeros at their feet."""
    mz = np.concatenate([np.arange(center - 5 * width, center + 5 * width, step) for center in centers])
    intensity = np.zeros(len(mz))
    for center, height in zip(centers, heights, strict=True):
        intensity += height * np.exp(-0.5 * ((mz - center) / width) ** 2)
    return mz, np.where(intensity < 1e-3 * max(heights), 0.0, intensity)


@pytest.mark.parametrize(("width", "step"), [(0.004, 0.002), (0.02, 0.008), (0.25, 0.1)], ids=["orbitrap", "time of flight", "ion trap"])
@pytest.mark.parametrize("mode", ["MS:1000128", ""], ids=["labelled as profile", "not labelled"])
def test_centroided_profiles_have_the_original_peaks(make: Any, written: Callable[..., Path], mode: str, width: float, step: float) -> None:
    centers, heights = (200.0113, 350.5021, 355.2507, 800.7303), (100.0, 2000.0, 500.0, 900.0)
    mz, intensity = profile(centers, heights, width, step)
    spectrum = make.mzml_spectrum(1, mz=tuple(mz), intensity=tuple(intensity), mode=mode, dtypes=("<f8", "<f8"))
    path = written(make.mzml(make.mzml_spectrum(0), spectrum))
    events: list[ProgressEvent] = []
    spectra = read_spectra([path], progress=Progress(events.append))
    assert spectra.peaks(0)[0].tolist() == list(make.mz)
    found_mz, found_intensity = spectra.peaks(1)
    np.testing.assert_allclose(found_mz, centers, atol=1e-6)
    np.testing.assert_allclose(found_intensity, heights, rtol=1e-5)
    assert any("1 spectra in profile mode were centroided" in event.message for event in events)
    with pytest.raises(InputError, match=r"scan=2: the spectrum is in profile mode.*msconvert"):
        read_spectra([path], centroid=False)


def test_spectra_labelled_centroid_are_centroided_on_request(make: Any, written: Callable[..., Path]) -> None:
    mz, intensity = profile((300.0,), (100.0,), 0.02, 0.005)
    path = written(make.mzml(make.mzml_spectrum(mz=tuple(mz), intensity=tuple(intensity), dtypes=("<f8", "<f8"))))
    assert len(read_spectra([path]).mz) == (intensity > 0).sum()
    np.testing.assert_allclose(read_spectra([path], centroid=True).mz, [300.0], atol=1e-6)


def test_centroids_labelled_as_profile_are_unchanged(make: Any, written: Callable[..., Path]) -> None:
    # Reporter ions of a 35-plex: four within 0.016 thomson at each nominal mass.
    mz = tuple(base + shift for base in (127.1248, 128.1281, 129.1314) for shift in (0.0, 0.0032, 0.0063, 0.0095))
    intensity = tuple(100.0 + i % 4 * (3 - i % 4) * 50 for i in range(12))
    path = written(make.mzml(make.mzml_spectrum(mz=mz, intensity=intensity, mode="MS:1000128")))
    assert read_spectra([path]).mz.tolist() == list(mz)


def test_centroiding_separates_neighbouring_peaks(make: Any, written: Callable[..., Path]) -> None:
    mz = np.arange(499.0, 502.0, 0.01)
    intensity = sum(h * np.exp(-0.5 * ((mz - c) / 0.05) ** 2) for c, h in ((500.0, 100.0), (500.25, 60.0), (501.0, 30.0)))
    path = written(make.mzml(make.mzml_spectrum(mz=tuple(mz), intensity=tuple(intensity), mode="MS:1000128", dtypes=("<f8", "<f8"))))
    spectra = read_spectra([path])
    tall = spectra.intensity > 5
    np.testing.assert_allclose(spectra.mz[tall], (500.0, 500.25, 501.0), atol=2e-3)


def read_messages(path: Path) -> list[str]:
    messages: list[str] = []
    read_spectra([path], progress=Progress(lambda event: messages.append(event.message) if event.message else None))
    return messages


def windows(make: Any, targets: list[float], half: float) -> str:
    """Return spectra with isolation windows; the target of the window replaces the selected ion."""

    def precursor(mz: float) -> str:
        terms = (("MS:1000827", f"{mz}"), ("MS:1000828", f"{half}"), ("MS:1000829", f"{half}"))
        return f"<precursor><isolationWindow>{''.join(make.term(*term) for term in terms)}</isolationWindow></precursor>"

    return make.mzml(*(make.mzml_spectrum(i, precursors=precursor(mz)) for i, mz in enumerate(targets)))


@pytest.mark.parametrize(
    ("targets", "half", "is_reported"),
    [
        ([400.0 + 25 * k for k in range(20)] * 3, 12.5, True),
        ([400.0 + 25 * k for k in range(20)] * 2, 12.5, False),  # two repetitions may be by chance
        ([400.0 + 25 * k for k in range(20)] * 3, 0.8, False),  # targeted peptides
        ([400.0 + 0.7 * k for k in range(60)], 4.0, False),  # selected precursors in wide windows
    ],
)
def test_read_spectra_reports_dia_for_repeated_wide_windows(
    make: Any, written: Callable[..., Path], targets: list[float], half: float, is_reported: bool
) -> None:
    messages = [
        message for message in read_messages(written(windows(make, targets, half))) if "target of the isolation window" not in message
    ]
    assert [("windows 25 Th wide" in message, "DIA" in message) for message in messages] == [(True, True)] * is_reported


def test_read_spectra_reports_dia_in_mzxml(make: Any, written: Callable[..., Path]) -> None:
    scans = "".join(make.mzxml_scan(number) for number in range(1, 31))
    wide = scans.replace("<precursorMz ", '<precursorMz windowWideness="20" ')
    assert not read_messages(written(make.mzxml(scans)))
    assert ["windows 20 Th wide" in message for message in read_messages(written(make.mzxml(wide)))] == [True]


@pytest.mark.parametrize("where", ["scan", "ion", "array"])
def test_read_spectra_reports_unused_ion_mobilities(make: Any, written: Callable[..., Path], where: str) -> None:
    unit = make.term("MS:1002815", "0.95", "MS:1002814")
    changes: dict[str, str] = {
        "scan": {"time": make.term("MS:1000016", "90", "UO:0000010") + unit},
        "ion": {"ions": make.term("MS:1000744", "500.25") + make.term("MS:1000041", "2") + unit},
        "array": {
            "arrays": "".join(
                make.binary_array(kind, np.array(values).astype("<f8").tobytes(), ("MS:1000523", "MS:1000576"))
                for kind, values in (("MS:1003006", (0.7, 0.9, 0.8)), ("MS:1000514", make.mz), ("MS:1000515", make.intensity))
            )
        },
    }[where]
    path = written(make.mzml(make.mzml_spectrum(**changes), make.mzml_spectrum(1)))
    spectra = read_spectra([path])
    assert spectra.mz.tolist() == 2 * list(make.mz) and spectra.intensity.tolist() == 2 * list(make.intensity)
    assert spectra.retention_time[0] == 90 and spectra.precursor_mz.tolist() == [500.25, 500.25]
    (message,) = read_messages(path)
    assert "ion mobilities of 1 spectra are not used" in message

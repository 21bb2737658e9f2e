"""Noise of fragment spectra: ratios of peaks, sampled noise against NumPy's interpolation, and broken arrays."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.reporter_regions import read_reporter_regions

MZ, INTENSITY = (126.1, 127.1, 128.1, 300.0), (10.0, 20.0, 30.0, 40.0)
RATIO, AT, NOISE, BASELINE = "MS:1000517", "MS:1002743", "MS:1002744", "MS:1002745"


@pytest.fixture
def spectrum(make):
    """Return a spectrum with the peaks of this module, and further arrays by their terms."""

    def one_array(kind: str, values) -> str:
        text = make.binary_array(kind, np.asarray(values, "<f8").tobytes(), ("MS:1000523", "MS:1000576"))
        return text.replace("<binaryDataArray ", f'<binaryDataArray arrayLength="{len(values)}" ')

    def one(index: int, change=lambda text: text, **more) -> str:
        peaks = one_array("MS:1000514", MZ) + one_array("MS:1000515", INTENSITY)
        others = "".join(one_array(kind.replace("_", ":"), values) for kind, values in more.items())
        return make.mzml_spectrum(index, mz=MZ, arrays=peaks + change(others))

    return one


@pytest.fixture
def ratios(make, tmp_path):
    """Write spectra, and return the ratios of their peaks below 200, a row for each spectrum."""

    def read(*spectra: str):
        path = tmp_path / "run.mzML"
        path.write_text(make.mzml(*spectra))
        regions = read_reporter_regions(path, 100, 200)
        assert len(regions) == len(read_spectra([path])) == len(spectra), "noise takes no spectrum away"
        return regions.signal_to_noise.reshape(len(spectra), 3)

    return read


def test_mzml_signal_to_noise_of_each_peak_is_read(ratios, spectrum):
    result = ratios(spectrum(0), spectrum(1, MS_1000517=(2.5, 7.0, 11.0, 3.0)), spectrum(2, MS_1000517=(0.0, -1.0, np.nan, np.inf)))
    assert np.isnan(result[[0, 2]]).all()
    np.testing.assert_allclose(result[1], [2.5, 7, 11], rtol=1e-6)


def test_mzml_sampled_noise_is_interpolated_above_the_baseline(ratios, spectrum):
    at, noise, baseline = (120.0, 127.0, 200.0), (1.0, 2.0, 4.0), (0.5, 1.0, 3.0)
    result = ratios(
        spectrum(0, MS_1002743=at, MS_1002744=noise, MS_1002745=baseline),
        spectrum(1, MS_1002743=at[::-1], MS_1002744=noise[::-1]),
        spectrum(2, MS_1002743=(127.5,), MS_1002744=(5.0,), MS_1000517=(1.0, 1.0, 1.0, 1.0)),
    )
    peaks, heights = np.array(MZ[:3]), np.array(INTENSITY[:3])
    np.testing.assert_allclose(result[0], (heights - np.interp(peaks, at, baseline)) / np.interp(peaks, at, noise), rtol=1e-6)
    np.testing.assert_allclose(result[1], heights / np.interp(peaks, at, noise), rtol=1e-6)
    np.testing.assert_allclose(result[2], heights / 5, rtol=1e-6)


@pytest.mark.parametrize(
    "more",
    [
        {"MS_1000517": (1.0, 2.0)},
        {"MS_1002743": (120.0, 130.0), "MS_1002744": (1.0,)},
        {"MS_1002743": (120.0, 130.0), "MS_1002744": (1.0, 2.0), "MS_1002745": (1.0,)},
        {"MS_1002744": (1.0, 2.0)},
        {"MS_1002743": (np.nan, np.inf), "MS_1002744": (1.0, 1.0)},
        {"MS_1002743": (-5.0, 1e300), "MS_1002744": (1.0, 1.0)},
        {"MS_1002743": (120.0,), "MS_1002744": (0.0,)},
        {"MS_1002743": (120.0,), "MS_1002744": (1e-308,)},
        {"MS_1002743": (120.0,), "MS_1002744": (1e300,)},
        {"MS_1002743": (120.0,), "MS_1002744": (1.0,), "MS_1002745": (-1e300,)},
        {"MS_1000517": (1e300, 1e-300, 5e-324, 1.7e308)},
        {"MS_1002743": (), "MS_1002744": ()},
    ],
)
def test_invalid_mzml_noise_values_are_ignored(ratios, spectrum, more):
    valid = spectrum(1, MS_1000517=(2.5, 7.0, 11.0, 3.0))
    result = ratios(spectrum(0, **more), valid)
    assert np.isnan(result[0]).all()
    np.testing.assert_allclose(result[1], [2.5, 7, 11], rtol=1e-6)


@pytest.mark.parametrize(
    ("before", "after"),
    [("<binary>A", "<binary>#"), ("MS:1000523", "MS:1001479"), ("MS:1000576", "MS:1000574"), ("</binary>", "=</binary>")],
)
def test_broken_mzml_noise_arrays_are_ignored(ratios, spectrum, before, after):
    result = ratios(spectrum(0, lambda text: text.replace(before, after), MS_1000517=(2.0, 2.0, 2.0, 2.0)), spectrum(1))
    assert np.isnan(result).all()


def packed(make, kind: str, data: bytes, length: int, *terms: str) -> str:
    """Return an array of `length` numbers with the bytes `data`, encoded as the terms say."""
    text = make.binary_array(kind, data, ("MS:1000523", *terms))
    return text.replace("<binaryDataArray ", f'<binaryDataArray arrayLength="{length}" ')


@pytest.mark.parametrize("is_zipped", [False, True])
def test_numpress_noise_arrays_equal_pynumpress(ratios, make, spectrum, is_zipped):
    numpress = pytest.importorskip("pynumpress", reason="pynumpress is the independent implementation")
    at, noise, baseline = np.linspace(120.0, 200.0, 9), np.linspace(1.0, 4.0, 9), np.arange(9.0)
    data = [bytes(numpress.encode_linear(at, 1e5)), bytes(numpress.encode_slof(noise, 5000.0)), bytes(numpress.encode_pic(baseline))]
    decoders = (numpress.decode_linear, numpress.decode_slof, numpress.decode_pic)
    expected = [decode(np.frombuffer(array, np.uint8)) for decode, array in zip(decoders, data, strict=True)]
    pack = zlib.compress if is_zipped else bytes
    terms = ("MS:1002746", "MS:1002748", "MS:1002747") if is_zipped else ("MS:1002312", "MS:1002314", "MS:1002313")
    arrays = "".join(packed(make, kind, pack(array), 9, term) for kind, array, term in zip((AT, NOISE, BASELINE), data, terms, strict=True))
    peaks, heights = np.array(MZ[:3]), np.array(INTENSITY[:3])
    (result,) = ratios(spectrum(0, lambda _: arrays))
    np.testing.assert_allclose(result, (heights - np.interp(peaks, expected[0], expected[2])) / np.interp(peaks, *expected[:2]), rtol=1e-6)


@pytest.mark.parametrize(
    ("corrupt", "length", "terms"),
    [
        (lambda data: zlib.compress(data)[:-6], 4, ["MS:1000574"]),
        (lambda data: zlib.compress(data)[:4], 4, ["MS:1000574"]),
        (lambda data: zlib.compress(data) + b"more", 5, ["MS:1000574"]),
        (lambda data: zlib.compress(data), 3, ["MS:1000574"]),
        (lambda data: zlib.compress(data), 3_000_000, ["MS:1000574"]),
        (lambda _: zlib.compress(bytes(100_000_000)), 4, ["MS:1000574"]),
        (lambda data: data, 4, ["MS:1002312"]),
        (lambda data: data, 2_000_000, ["MS:1002314"]),
        (lambda _: b"", 4, ["MS:1002313"]),
        (lambda data: data, 0, ["MS:1000576"]),
    ],
)
def test_undecodable_mzml_noise_arrays_are_ignored(ratios, make, spectrum, corrupt, length, terms):
    data = corrupt(np.full(4, 2.0).tobytes())
    result = ratios(spectrum(0, lambda _: packed(make, RATIO, data, length, *terms)), spectrum(1, MS_1000517=(2.5, 7.0, 11.0, 3.0)))
    assert np.isnan(result[0]).all()
    np.testing.assert_allclose(result[1], [2.5, 7, 11], rtol=1e-6)

"""Reference spectra as columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from proteoscope.engine.spectra.spectral_library import Skipped, SkippedEntry, SpectralLibrary


def _library() -> SpectralLibrary:
    texts = pa.array(["first", "second", "third"], pa.string())
    some = pa.array(["AC[UNIMOD:4]K", None, "PEK"], pa.string())
    nothing = pa.nulls(3, pa.string())
    return SpectralLibrary(
        (Path("a.msp"), Path("b.msp")),
        np.array([0, 0, 1]),
        np.array([1, 2, 1]),
        texts,
        some,
        some,
        nothing,
        nothing,
        nothing,
        nothing,
        np.array([2, 0, -1]),
        np.array([400.5, 300.25, np.nan]),
        np.array([1.0, np.nan, 3.0]),
        np.array([False, True, False]),
        np.array([3, 1, 1]),
        np.array([0, 2, 2, 5]),
        np.array([100.0, 200.0, 50.0, 60.0, 70.0]),
        np.array([1, 2, 3, 4, 5], np.float32),
        Skipped((SkippedEntry(0, 7, "has no peaks"),), {"has no peaks": 2}),
    )


def test_spectral_library_take_selects_entries_with_peaks() -> None:
    taken = _library().take(np.array([2, 0]))
    assert taken.name.to_pylist() == ["third", "first"] and taken.peptidoform.to_pylist() == ["PEK", "AC[UNIMOD:4]K"]
    assert taken.offsets.tolist() == [0, 3, 5] and taken.mz.tolist() == [50, 60, 70, 100, 200]
    assert taken.intensity.tolist() == [3, 4, 5, 1, 2] and taken.charge.tolist() == [-1, 2]
    assert taken.skipped.n == 2


def test_spectral_library_entries_convert_to_spectra() -> None:
    library = _library()
    spectra = library.spectra()
    assert spectra.files == ("a.msp", "b.msp") and spectra.index.tolist() == [0, 1, 0]
    assert spectra.charge_mask.tolist() == [1 << 2, 0, 1 << 1 | 1], "bit z: charge z; bit 0: negative ions; none: unknown"
    assert np.shares_memory(spectra.mz, library.mz) and spectra.identifier == ["first", "second", "third"]

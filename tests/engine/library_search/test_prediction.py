"""Predicted libraries: peptides of the proteins, with the fragment ions and intensities of the network, in any partition."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.chemistry.fragments import SERIES, fragment_ions
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.library_search import prediction
from proteoscope.engine.library_search.prediction import PredictedLibrary
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.matches.fragment_intensities import predicted_shares
from proteoscope.engine.peptides.indexes import Databases, build_indexes
from proteoscope.engine.spectra.library_entries import spectral_library

PROTEINS = {
    "P1": "MKAADESTLRPEPTMIDECKLLNWWYEVAAAK",
    "P2": "GGSLNMVVKPEPTMIDECKTTTTIIIICCMMMMLKR",
    "P3": "AADESTLRGAGAGAGAGLLLLLLLLLLSSSSSSSSSSSSSTTTTTTTTTTTTTTTTTVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVK",
}


def predicted(tmp_path, n_chunks=0, monkeypatch=None, threads=2, **parameters):
    path = tmp_path / "proteins.fasta"
    path.write_text("".join(f">{name} of a test\n{sequence}\n" for name, sequence in PROTEINS.items()))
    folder = tmp_path / f"index{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    chosen, resources = PredictionParameters().changed(**parameters), Resources(threads)
    indexes = build_indexes(Databases([path], [], {}), folder, chosen, resources)
    if n_chunks:
        monkeypatch.setattr(prediction, "_ENTRIES_AT_ONCE", n_chunks)
    return list(PredictedLibrary(indexes, chosen, resources).batches())


def test_predicted_library_has_all_peptide_forms_and_charges(tmp_path):
    parts = predicted(
        tmp_path, variable_modifications="Oxidation (M);Acetyl (Protein N-term)", missed_cleavages=0, minimum_precursor_mz=100.0
    )
    library = spectral_library(parts, tmp_path)
    entries = set(zip(library.peptidoform.to_pylist(), library.charge.tolist(), strict=True))
    expected = {"AADESTLRPEPTMIDEC[Carbamidomethyl]K", "AADESTLRPEPTM[Oxidation]IDEC[Carbamidomethyl]K", "LLNWWYEVAAAK", "AADESTLR"}
    expected |= {"GGSLNMVVKPEPTMIDEC[Carbamidomethyl]K", "[Acetyl]-AADESTLR"}
    assert expected - {"[Acetyl]-AADESTLR"} <= {form for form, _ in entries}
    assert "[Acetyl]-AADESTLR" in {form for form, _ in entries}  # These are the first residues of P3.
    assert all({(form, 2), (form, 3)} <= entries for form, _ in entries)
    assert len(entries) == len(library)
    proteins = dict(zip(library.sequence.to_pylist(), library.proteins.to_pylist(), strict=True))
    assert proteins["AADESTLR"] == "P3" and proteins["LLNWWYEVAAAK"] == "P1"
    for form, charge, mz in zip(library.peptidoform.to_pylist(), library.charge.tolist(), library.precursor_mz.tolist(), strict=True):
        assert mz == pytest.approx(parse(f"{form}/{charge}").mz, abs=1e-6)


def test_predicted_library_peaks_have_intensities_of_the_network(tmp_path):
    parts = predicted(tmp_path, variable_modifications="Oxidation (M);Acetyl (Protein N-term)", maximum_peaks=250, minimum_share=0.0)
    n = 0
    for part in parts:
        forms = part.peptidoforms().to_pylist()
        for i in range(len(part)):
            form, charge, peaks = parse(forms[i]), int(part.charge[i]), slice(part.offsets[i], part.offsets[i + 1])
            ions = fragment_ions(form.sequence, form.mass_deltas(), maximum_charge=2)
            by_name = {
                (SERIES[s], k, z): mz
                for s, k, z, mz in zip(ions.series.tolist(), ions.number.tolist(), ions.charge.tolist(), ions.mz.tolist(), strict=True)
            }
            shares = predicted_shares(form.sequence, charge)
            bonds, heights = len(form.sequence) - 1, []
            assert (np.diff(part.mz[peaks]) >= 0).all()
            for k in range(peaks.start, peaks.stop):
                series, number, z = chr(part.ions.series[k]), int(part.ions.number[k]), int(part.ions.charge[k])
                assert part.mz[k] == pytest.approx(by_name[series, number, z], abs=1.1e-5)
                bond = number - 1 if series == "b" else bonds - number
                heights.append(shares[bond, 2 * (series == "y") + z - 1])
            assert part.intensity[peaks] == pytest.approx(np.array(heights) / max(heights) * 10_000, abs=0.02)
            assert len(heights) >= 0.6 * int((shares > 1e-4).sum())  # Only those within the m/z bounds remain.
            n += 1
    assert n > 10


def test_predicted_library_is_equal_for_any_chunks_and_threads(tmp_path, monkeypatch):
    parameters = {"variable_modifications": "Oxidation (M)", "maximum_modifications": 3}
    whole = spectral_library(predicted(tmp_path, threads=1, **parameters), tmp_path)
    other = spectral_library(predicted(tmp_path, n_chunks=3, monkeypatch=monkeypatch, threads=3, **parameters), tmp_path)
    assert len(whole) > 20
    assert whole.peptidoform.equals(other.peptidoform) and whole.proteins.equals(other.proteins)
    for name in ("charge", "precursor_mz", "offsets", "mz", "intensity"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))


def test_predicted_library_has_most_intense_peaks_in_limits(tmp_path):
    (part,) = predicted(tmp_path, maximum_peaks=5, minimum_fragment_mz=200.0)
    (whole,) = predicted(tmp_path, maximum_peaks=250, minimum_fragment_mz=200.0, minimum_share=0.0)
    assert (np.diff(part.offsets) <= 5).all() and part.mz.min() >= 200.0
    for i in range(len(part)):
        heights = np.sort(whole.intensity[whole.offsets[i] : whole.offsets[i + 1]])[::-1][:5]
        intensities = np.sort(part.intensity[part.offsets[i] : part.offsets[i + 1]])[::-1]
        np.testing.assert_allclose(intensities, heights[: len(intensities)], atol=0.011)


def test_library_prediction_rejects_unsupported_parameters():
    with pytest.raises(ParameterError, match="the label TMT6plex changes them"):
        PredictionParameters().changed(fixed_modifications="TMT6plex (K)")
    with pytest.raises(ParameterError, match="minimum_precursor_mz is not below"):
        PredictionParameters().changed(minimum_precursor_mz=1800.0)

"""Annotated fragment ions: masses, compared with pyteomics, names, and bonds with matched ions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pyteomics import mass

from proteoscope.engine.chemistry.fragments import IMMONIUM, SERIES
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.annotation import LOSSES, OF_MODIFICATIONS, AnnotationChoice, IonSettings, annotate_match
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.shown_peaks import LOSS
from tests.engine.views.result_projects import PROTON, fragment_mz

SETTINGS = IonSettings(Tolerance(20, "ppm"), "by", 2)


ROW: dict[str, Any] = {
    "sequence": "LVNELTEFMK",
    "charge": 3,
    "modification_positions": [0, 6, 9],
    "modification_names": ["Acetyl", "Phospho", "Oxidation"],
    "modification_masses": [42.010565, 79.966331, 15.994915],
    "precursor_mz": 450.0,
}


def synthetic_peaks(n_noise: int = 400) -> Peaks:
    random = np.random.default_rng(5)
    ions = [fragment_mz(ROW, series, number, charge) for series in "by" for number in range(1, 10) for charge in (1, 2)]
    mz = np.concatenate((np.array(ions) * (1 + random.normal(0, 3e-6, len(ions))), random.uniform(100, 1400, n_noise)))
    intensity = np.concatenate((random.lognormal(5, 1, len(ions)), random.lognormal(2, 0.7, n_noise)))
    order = np.argsort(mz)
    return Peaks(mz[order], intensity[order])


def test_annotated_fragment_ions_match_pyteomics_masses() -> None:
    spectrum = annotate_match(ROW, synthetic_peaks(), SETTINGS)
    ions = spectrum.ions
    for i in range(len(ions)):
        series = SERIES[ions.series[i]]
        if series in "by" and not ions.loss[i]:
            assert ions.mz[i] == pytest.approx(fragment_mz(ROW, series, int(ions.number[i]), int(ions.charge[i])), abs=1e-4)
    assert {(SERIES[s], int(c)) for s, c, lost in zip(ions.series, ions.charge, ions.loss, strict=True) if not lost} == {
        ("b", 1),
        ("b", 2),
        ("y", 1),
        ("y", 2),
        ("p", 3),
    }


def test_annotation_matches_peaks_within_the_tolerance() -> None:
    peaks = synthetic_peaks()
    spectrum = annotate_match(ROW, peaks, SETTINGS)
    for ion in range(len(spectrum.ions)):
        within = np.abs(peaks.mz - spectrum.ions.mz[ion]) <= spectrum.ions.mz[ion] * 20e-6
        assert bool(within.any()) == bool(spectrum.is_matched[ion])
    for match in range(len(spectrum.matches)):
        ion, peak = int(spectrum.matches.ion[match]), int(spectrum.matches.peak[match])
        error = peaks.mz[peak] - spectrum.ions.mz[ion]
        assert spectrum.matches.error[match] == pytest.approx(error)
        assert spectrum.matches.error_ppm[match] == pytest.approx(error / spectrum.ions.mz[ion] * 1e6)
    assert len(set(spectrum.matches.peak.tolist())) == len(spectrum.matches), "a peak has one name"


def test_annotated_ion_names_have_charges_and_losses() -> None:
    spectrum = annotate_match(ROW, synthetic_peaks(), SETTINGS)
    names = {spectrum.name(i) for i in range(len(spectrum.ions))}
    assert {"b5", "y9", "y9²⁺", "[M+3H]³⁺", "b7−H3PO4", "y3−CH4OS", "b9−H2O²⁺"} <= names
    assert set(spectrum.kinds) <= {"b", "y", "p", LOSS}


def test_annotated_bonds_have_matched_ions() -> None:
    spectrum = annotate_match(ROW, synthetic_peaks(n_noise=0), SETTINGS)
    assert spectrum.bonds("b").tolist() == list(range(1, 10))
    assert spectrum.bonds("y").tolist() == list(range(1, 10))
    empty = annotate_match(ROW, Peaks(np.empty(0), np.empty(0)), SETTINGS)
    assert len(empty.bonds("by")) == len(empty.matches) == 0
    assert empty.explained == 0


def test_immonium_ions_match_pyteomics_masses() -> None:
    spectrum = annotate_match(ROW, synthetic_peaks(), replace(SETTINGS, shows_immonium=True))
    ions = spectrum.ions
    immonium = {spectrum.name(i): float(ions.mz[i]) for i in np.flatnonzero(ions.series == IMMONIUM).tolist()}
    unmodified = {residue: mass.std_aa_mass[residue] - mass.calculate_mass(formula="CO") + PROTON for residue in "LVNETFMK"}
    expected = {f"i{residue}": unmodified[residue] for residue in "LVNEFK"}
    expected |= {"iT[Phospho]": unmodified["T"] + 79.966331, "iM[Oxidation]": unmodified["M"] + 15.994915}
    assert immonium == pytest.approx(expected, abs=1e-4), "each type of residue has an ion"
    assert IMMONIUM not in annotate_match(ROW, synthetic_peaks(), SETTINGS).ions.series


def test_annotation_labels_peaks_above_the_threshold() -> None:
    spectrum = annotate_match(ROW, synthetic_peaks(), SETTINGS)
    strict = annotate_match(ROW, synthetic_peaks(), replace(SETTINGS, least_labelled=20.0))
    assert (strict.shown.kinds == spectrum.shown.kinds).all()
    assert set(strict.shown.named.tolist()) == {peak for peak in spectrum.shown.named.tolist() if spectrum.relative[peak] >= 20}
    assert 0 < len(strict.shown.named) < len(spectrum.shown.named) == len(spectrum.shown.labels)
    assert [spectrum.labels[spectrum.match_of_peak[peak]] for peak in strict.shown.named.tolist()] == list(strict.shown.labels)


def test_annotation_selects_each_neutral_loss_separately() -> None:
    lost = {kind: set(annotate_match(ROW, synthetic_peaks(), replace(SETTINGS, losses=(kind,))).ions.loss_names) - {""} for kind in LOSSES}
    assert lost == {"H2O": {"H2O"}, "NH3": {"NH3"}, OF_MODIFICATIONS: {"H3PO4", "CH4OS"}}


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=9),
        lambda nested: (
            st.dictionaries(st.sampled_from(["series", "losses", "tolerance", "least_labelled", "shows_immonium"]), nested)
            | st.lists(nested, max_size=3)
        ),
    )
)
def test_restored_annotation_choice_is_valid_or_default(stored: Any) -> None:
    choice = AnnotationChoice.restored(stored)
    assert AnnotationChoice.restored(choice.model_dump(mode="json")) == choice
    settings = choice.settings(SETTINGS)
    assert 0 <= settings.least_labelled <= 100
    assert set(settings.series) <= set("abcxyz")
    annotate_match(ROW, synthetic_peaks(), settings)


def test_annotation_choice_overrides_search_settings() -> None:
    choice = AnnotationChoice(series="zcba", losses=("NH3",), tolerance="0.5 Da", shows_precursor=False, least_labelled=2.5)
    settings = choice.settings(SETTINGS)
    assert (settings.series, settings.losses, str(settings.tolerance), settings.least_labelled) == ("abcz", ("NH3",), "0.5 Da", 2.5)
    assert AnnotationChoice().settings(SETTINGS) == SETTINGS
    for wrong in ({"series": "q"}, {"tolerance": "0 ppm"}, {"tolerance": "90 Da"}, {"least_labelled": 101}, {"losses": ["CO"]}):
        with pytest.raises(ValidationError):
            AnnotationChoice.model_validate(wrong)

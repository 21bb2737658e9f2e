"""The parameters of an identification and the presets that set them."""

import pytest

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.parameters import preset_names, read_preset

PRESETS = {
    # name: precursor and fragment tolerance of its type of data
    "high-resolution": ("10 ppm", "20 ppm"),
    "low-resolution": ("10 ppm", "0.5 Da"),
    "ion-trap": ("1 Da", "0.5 Da"),
    "maldi-tof-tof": ("0.5 Da", "0.4 Da"),
    "phospho": ("10 ppm", "20 ppm"),
    "tmt": ("10 ppm", "20 ppm"),
    "non-specific": ("10 ppm", "20 ppm"),
    "open": ("500 Da", "20 ppm"),
}


def preset(name):
    return IdentificationParameters.checked(read_preset("identify", name))


def test_identification_parameters_are_fully_described():
    for parameter in IdentificationParameters.describe():
        assert parameter.title, parameter.name
        assert parameter.group, parameter.name
        assert parameter.help.endswith("."), parameter.name
        if parameter.kind in ("integer", "number"):
            assert parameter.minimum is not None, parameter.name
            assert parameter.maximum is not None, parameter.name
            assert parameter.minimum <= parameter.default <= parameter.maximum, parameter.name
        if parameter.kind == "choice":
            assert parameter.default in parameter.choices, parameter.name


def test_defaults_are_high_resolution_without_slow_steps():
    default = IdentificationParameters()
    assert IdentificationParameters.checked(default.model_dump()) == default
    assert IdentificationParameters.checked(default.model_dump(mode="json")) == default
    # The preset also enables slow steps that improve such data.
    assert preset("high-resolution") == default.changed(calibrate_tolerance=True, second_pass=True)


def test_documented_identification_presets_exist():
    assert set(PRESETS) <= set(preset_names("identify"))


@pytest.mark.parametrize("name", PRESETS)
def test_preset_has_tolerances_of_the_named_instrument_type(name):
    parameters = preset(name)
    precursor, fragment = PRESETS[name]
    for tolerance, expected in ((parameters.precursor_tolerance, precursor), (parameters.fragment_tolerance, fragment)):
        assert (tolerance.value, tolerance.unit) == (float(expected.split()[0]), expected.split()[1])


def test_identification_preset_names_agree_with_their_settings():
    assert preset("maldi-tof-tof").minimum_charge == preset("maldi-tof-tof").maximum_charge == 1
    assert "Phospho (STY)" in preset("phospho").variable_modifications
    assert {"TMT6plex (K)", "TMT6plex (N-term)", "Carbamidomethyl (C)"} == set(preset("tmt").fixed_modifications)
    assert preset("non-specific").specificity == "non-specific"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("enzyme=Trypsine", ("enzyme = 'Trypsine'", "did you mean Trypsin")),
        ("precursor_tolerance=10", ("precursor_tolerance = '10'", "20 ppm or 0.02 Da")),
        ("fragment_tolerance=-1 Da", ("fragment_tolerance = '-1 Da'", "20 ppm or 0.02 Da")),
        ("fragment_tolerance=nan ppm", ("fragment_tolerance = 'nan ppm'",)),
        ("fragment_tolerance=10.1 Da", ("fragment_tolerance = '10.1 Da'", "at most 10,000 ppm or 10 Da")),
        ("fragment_tolerance=20000 ppm", ("fragment_tolerance = '20000 ppm'", "at most 10,000 ppm or 10 Da")),
        ("precursor_tolerance=1e5 Da", ("precursor_tolerance = '1e5 Da'", "at most 1,000,000 ppm or 10,000 Da")),
        ("variable_modifications=Oxidatoin (M)", ("variable_modifications", "'Oxidatoin'", "did you mean Oxidation")),
        ("variable_modifications=Oxidation", ("variable_modifications", "'Oxidation'", "(M)")),
        ("fixed_modifications=Acetyl (Protein N-term)", ("fixed_modifications", "make it variable")),
        ("missed_cleavages=11", ("missed_cleavages = '11'", "10")),
        ("minimum_length=51", ("minimum_length = 51", "maximum_length = 50")),
        ("maximum_charge=1", ("minimum_charge = 2", "maximum_charge = 1")),
        ("minimum_mass=7000", ("minimum_mass = 7000", "maximum_mass = 6000")),
        ("isotope_errors=0,9", ("isotope_errors", "from -3 to 5")),
        ("isotope_errors=", ("isotope_errors", "from -3 to 5")),
        ("decoy_prefix=", ("decoy_prefix = ''", "at least 1")),
        ("fdr=0", ("fdr = '0'", "greater than 0")),
        ("fdr=0.6", ("fdr = '0.6'", "0.5")),
        ("ion_series=bq", ("ion_series = 'bq'", "abcxyz")),
        ("score=best", ("score = 'best'", "'hyperscore' or 'xcorr'")),
        ("decoys=mirror", ("decoys = 'mirror'", "'reverse'")),
    ],
)
def test_invalid_value_error_names_field_value_and_range(setting, expected):
    with pytest.raises(ParameterError) as caught:
        IdentificationParameters().changed([setting])
    for part in expected:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("setting", ["fragment_tolerance=10000 ppm", "fragment_tolerance=10 Da", "precursor_tolerance=10000 Da"])
def test_widest_documented_tolerances_are_valid(setting):
    name, value = setting.split("=")
    assert str(getattr(IdentificationParameters().changed([setting]), name)) == value


def test_parameter_texts_are_normalised():
    parameters = IdentificationParameters().changed(
        ["enzyme=trypsin/p", "variable_modifications=oxidation (m); PHOSPHO (STY)", "precursor_tolerance=10ppm", "isotope_errors=2,0,2"]
    )
    assert parameters.enzyme == "Trypsin/P"
    assert parameters.variable_modifications == ("Oxidation (M)", "Phospho (STY)")
    assert parameters.precursor_tolerance == Tolerance(10.0, "ppm")
    assert parameters.isotope_errors == (0, 2)


def test_custom_modifications_in_parameters_round_trip():
    parameters = IdentificationParameters().changed(["variable_modifications=Label:+8.0142 (K), +15.9949 (M)"])
    assert IdentificationParameters.checked(parameters.model_dump(mode="json")) == parameters

"""What files of spectra are of: exact or ion-trap, by real runs whose instruments are known, and by peaks of chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.formats.spectra_content import SpectraContent, fragment_exactness, precursor_exactness, spectra_content
from proteoscope.engine.matches.preset_advice import advise
from proteoscope.engine.searches import search_of_kind


def test_the_sample_of_an_orbitrap_with_ion_trap_fragments_is_known_as_one() -> None:
    """Its converter names the orbitrap alone; its fragments were measured in the linear ion trap."""
    content = spectra_content(Path(str(resources.path("samples", "BSA1.mzML.gz"))))
    assert content is not None
    assert (content.fragments, content.precursors, content.analysers) == ("ion trap", "exact", ("orbitrap",))
    assert content.text.startswith("orbitrap; CID; ion-trap fragments")


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("spectra/bsa_ltq/BSA2.mzML", "ion trap"), ("spectra/Ecoli_MS2_small.mzML", "ion trap"),
        ("spectra/SmallCalibratible_Yeast.mzML", "exact"), ("spectra/qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML", "exact"),
        ("spectra/hela_velos/TaGe_SA_A549_3_snip.mzML", "exact"), ("spectra/known_ids/proteometools_171_kuester_test.mgf", "exact"),
    ],
)  # fmt: skip
def test_real_runs_are_told_apart_in_every_format(shared_data: Path, name: str, fragments: str) -> None:
    content = spectra_content(shared_data / name)
    assert content is not None and content.fragments == fragments and content.precursors == "exact"


def test_few_or_no_peaks_say_nothing() -> None:
    assert fragment_exactness([]) == "" and fragment_exactness([(np.array([100.0, 200.0]), np.array([0, 1, 2]))]) == ""
    assert precursor_exactness(np.array([500.0]), np.array([4], np.uint32)) == ""


def test_precursors_that_lie_anywhere_are_those_of_an_ion_trap() -> None:
    random = np.random.default_rng(1)
    nominal, charges = random.integers(800, 2500, 500), np.full(500, 1 << 2, np.uint32)
    exact = (nominal * 1.000495 + random.normal(0, 0.05, 500)) / 2 + 1.00728
    assert precursor_exactness(exact, charges) == "exact"
    assert precursor_exactness(exact + random.uniform(-0.3, 0.3, 500), charges) == "ion trap"


def test_what_is_no_spectra_or_broken_is_not_known(tmp_path: Path) -> None:
    for number, content in enumerate(
        (b"", b">a\nPEPTIDE\n", b"BEGIN IONS\nPEPMASS=nothing\n", b"<mzML" + b"\0" * 1000, b"\x1f\x8b broken")
    ):
        path = tmp_path / f"{number}.mzML"
        path.write_bytes(content)
        assert spectra_content(path) in (None, SpectraContent(n_looked_at=1)) or number == 2
    assert spectra_content(tmp_path / "absent.mzML") is None


def test_advice_names_the_preset_that_suits_and_is_silent_where_one_fits() -> None:
    search = search_of_kind("identify")
    trap = SpectraContent(fragments="ion trap", precursors="exact", n_ms2=9)
    exact = SpectraContent(fragments="exact", precursors="exact", n_ms2=9)
    old = SpectraContent(fragments="ion trap", precursors="ion trap")

    def advised(preset: str, *contents: SpectraContent) -> str:
        found = search.advice(contents, search.parameters_of(preset))
        return "" if found is None else found.preset

    assert advised("high-resolution", trap) == "low-resolution" and advised("low-resolution", trap) == ""
    assert advised("high-resolution", old) == "ion-trap" and advised("ion-trap", old) == ""
    assert advised("low-resolution", exact) == "high-resolution" and advised("high-resolution", exact) == ""
    assert advised("high-resolution", trap, exact) == "" and advised("high-resolution", SpectraContent()) == ""
    assert advise("modified", [trap], search_of_kind("modified").parameters_of("standard")).preset == "low-resolution"

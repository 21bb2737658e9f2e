"""Properties of spectrum files: exact or ion-trap, for real runs of known instruments and for random peaks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.formats.spectra_content import (
    LabelEvidence,
    SpectraContent,
    fragment_exactness,
    precursor_exactness,
    spectra_content,
)
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.preset_advice import advise, warn_of_unsuitable_settings
from proteoscope.engine.searches import search_of_kind


def test_orbitrap_run_with_ion_trap_fragments_is_recognised() -> None:
    """The converter of this file names only the Orbitrap, but the fragments were measured in the linear ion trap."""
    content = spectra_content(Path(str(resources.path("samples", "BSA1.mzML.gz"))))
    assert content is not None
    assert (content.fragments, content.precursors, content.analysers) == ("ion trap", "exact", ("orbitrap",))
    assert content.text.startswith("orbitrap; CID; ion-trap fragments")


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("spectra/bsa_ltq/BSA2.mzML", "ion trap"),
        ("spectra/Ecoli_MS2_small.mzML", "ion trap"),
        ("spectra/SmallCalibratible_Yeast.mzML", "exact"),
        ("spectra/qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML", "exact"),
        ("spectra/hela_velos/TaGe_SA_A549_3_snip.mzML", "exact"),
        ("spectra/known_ids/proteometools_171_kuester_test.mgf", "exact"),
    ],
)
def test_spectra_content_recognises_mass_accuracy_of_real_runs(shared_data: Path, name: str, fragments: str) -> None:
    content = spectra_content(shared_data / name)
    assert content is not None and content.fragments == fragments and content.precursors == "exact"


def test_spectra_content_has_no_mass_accuracy_for_few_peaks() -> None:
    assert fragment_exactness([]) == "" and fragment_exactness([(np.array([100.0, 200.0]), np.array([0, 1, 2]))]) == ""
    assert precursor_exactness(np.array([500.0]), np.array([4], np.uint32)) == ""


def test_random_mass_defects_are_classified_as_ion_trap() -> None:
    random = np.random.default_rng(1)
    nominal, charges = random.integers(800, 2500, 500), np.full(500, 1 << 2, np.uint32)
    exact = (nominal * 1.000495 + random.normal(0, 0.05, 500)) / 2 + 1.00728
    assert precursor_exactness(exact, charges) == "exact"
    assert precursor_exactness(exact + random.uniform(-0.3, 0.3, 500), charges) == "ion trap"


def test_spectra_content_returns_none_for_broken_files(tmp_path: Path) -> None:
    for number, content in enumerate(
        (b"", b">a\nPEPTIDE\n", b"BEGIN IONS\nPEPMASS=nothing\n", b"<mzML" + b"\0" * 1000, b"\x1f\x8b broken")
    ):
        path = tmp_path / f"{number}.mzML"
        path.write_bytes(content)
        assert spectra_content(path) in (None, SpectraContent(n_inspected=1, name=path.name)) or number == 2
    assert spectra_content(tmp_path / "absent.mzML") is None


def test_advise_suggests_preset_only_when_settings_conflict() -> None:
    search = search_of_kind("identify")
    trap = SpectraContent(fragments="ion trap", precursors="exact", n_ms2=9)
    exact = SpectraContent(fragments="exact", precursors="exact", n_ms2=9)
    old = SpectraContent(fragments="ion trap", precursors="ion trap")

    def advised(preset: str, *contents: SpectraContent) -> str:
        result = search.advice(contents, search.parameters_of(preset))
        return "" if result is None else result.preset

    assert advised("high-resolution", trap) == "low-resolution" and advised("low-resolution", trap) == ""
    assert advised("high-resolution", old) == "ion-trap" and advised("ion-trap", old) == ""
    assert advised("low-resolution", exact) == "high-resolution" and advised("high-resolution", exact) == ""
    assert advised("high-resolution", trap, exact) == "" and advised("high-resolution", SpectraContent()) == ""
    assert advise("modified", [trap], search_of_kind("modified").parameters_of("standard")).preset == "low-resolution"


@pytest.mark.parametrize(
    ("fragmentation", "series", "advised"),
    [
        (("ETD",), "by", "cz"),
        (("ECD",), "by", "cz"),
        (("HCD", "ETD"), "by", "bycz"),
        (("EThcD",), "cz", "bycz"),
        (("HCD",), "cz", "by"),
        (("ETD",), "cz", ""),
        (("CID", "HCD"), "by", ""),
        (("ETD",), "bycz", ""),
        (("UVPD",), "by", ""),
        ((), "by", ""),
        (("ETD",), "activation", ""),
        (("ETciD",), "by", "bycz"),
    ],
)
def test_advise_compares_ion_series_with_activation(fragmentation: tuple[str, ...], series: str, advised: str) -> None:
    parameters = search_of_kind("identify").parameters_of("high-resolution").changed(ion_series=series)
    result = advise("identify", [SpectraContent(fragments="exact", fragmentation=fragmentation)], parameters)
    assert (result is None) == (advised == "")
    assert result is None or result.sentences[0].endswith(f"and ion_series={series} matches other ions: set ion_series=activation")
    assert result is None or f"makes ions {', '.join(advised)}, and" in result.sentences[0]


def test_advise_lists_the_files_of_each_conflict_with_settings() -> None:
    search = search_of_kind("identify")
    traps = [SpectraContent(fragments="ion trap", precursors="exact", name=f"trap{n}.mzML") for n in range(5)]
    exact = SpectraContent(fragments="exact", precursors="exact", name="exact.mzML", label="none")
    advice = search.advice([exact, *traps], search.parameters_of("high-resolution"))
    assert advice is not None and advice.preset == "" and advice.are_mixed
    assert advice.reasons == (
        "trap0.mzML, trap1.mzML, trap2.mzML and 2 more files: the fragments were measured in an ion trap, and within 20 ppm most of them "
        "are missed",
    )
    assert advice.sentences[-1] == "The files need different settings: search them in separate runs"
    alone = search.advice(traps[:4], search.parameters_of("high-resolution"))
    assert (
        alone is not None
        and "trap2.mzML and 1 more file: " in alone.text
        and alone.text.endswith("low-resolution suits these spectra better")
    )


@pytest.mark.parametrize(
    ("label", "changes", "expected", "preset"),
    [
        ("none", {}, "", ""),
        ("", {"fixed_modifications": "TMT6plex (K)"}, "", ""),
        ("none", {"fixed_modifications": "TMT6plex (K)"}, "labelled lysine were found, but TMT is a fixed", "high-resolution"),
        ("none", {"variable_modifications": "TMT6plex (K)"}, "", ""),
        ("TMT", {}, "the label TMT were found, but no label is set", "tmt"),
        ("TMT", {"variable_modifications": "TMT6plex (K)"}, "", ""),
        ("TMT", {"fixed_modifications": "TMTpro (K)"}, "the label TMT were found, but TMTpro is set", "tmt"),
        ("TMT", {"fixed_modifications": "TMT6plex (K)"}, "", ""),
        ("TMTpro", {"fixed_modifications": "TMT6plex (K)"}, "the label TMTpro were found, but TMT is set", ""),
        ("iTRAQ 4-plex", {"fixed_modifications": "iTRAQ4plex (K)"}, "", ""),
        ("iTRAQ 8-plex", {"fixed_modifications": "iTRAQ8plex (K)"}, "", ""),
    ],
)
def test_advise_compares_labels_with_modifications(label: LabelEvidence, changes: dict[str, str], expected: str, preset: str) -> None:
    search = search_of_kind("identify")
    parameters = search.parameters_of("high-resolution").changed([f"{name}={value}" for name, value in changes.items()])
    advice = search.advice([SpectraContent(fragments="exact", precursors="exact", label=label)], parameters)
    assert (advice is None) == (not expected)
    assert advice is None or (expected in advice.text and advice.preset == preset)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("spectra/isobaric/TMTTenPlexMethod_test.mzML", "TMT"),
        ("spectra/isobaric/IsobaricAnalyzer_input_1.mzML", "iTRAQ 4-plex"),
        ("spectra/bench_hires_2269.mgf", "none"),
        ("spectra/qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML", "none"),
        ("spectra/Ecoli_MS2_small.mzML", ""),
    ],
)
def test_spectra_content_detects_labels_of_real_runs(shared_data: Path, name: str, label: str) -> None:
    content = spectra_content(shared_data / name)
    assert content is not None and content.label == label


def test_warn_of_unsuitable_settings_inspects_every_file(tmp_path: Path, sample_data: Path) -> None:
    search, warnings = search_of_kind("identify"), list[str]()
    files = [tmp_path / f"exact{n}.mgf" for n in range(4)]
    random = np.random.default_rng(3)
    for path in files:
        lines = []
        for number in range(60):
            mz = np.sort(np.append(random.uniform(120, 1500, 60), (147.1128, 400.0, 400.004)))
            mz = np.sort(np.append(mz, mz + 1.00336))
            peaks = "\n".join(f"{position:.5f} {height:.1f}" for position, height in zip(mz, random.uniform(10, 100, len(mz)), strict=True))
            lines.append(f"BEGIN IONS\nTITLE={number}\nPEPMASS=700.35\nCHARGE=2+\n{peaks}\nEND IONS\n")
        path.write_text("".join(lines))
    progress = Progress(lambda event: warnings.append(event.message))
    warn_of_unsuitable_settings("identify", files, search.parameters_of("high-resolution"), progress)
    assert warnings == []
    warn_of_unsuitable_settings("identify", [*files, sample_data / "BSA1.mzML.gz"], search.parameters_of("tmt"), progress)
    assert warnings[0].startswith("exact0.mgf, exact1.mgf, exact2.mgf and 1 more file: no reporter ions and no labelled lysine were found")
    assert warnings[1].startswith("BSA1.mzML.gz: the fragments were measured in an ion trap")
    assert warnings[2].startswith("The files need different settings") and len(warnings) == 3

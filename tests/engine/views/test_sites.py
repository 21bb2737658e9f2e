"""Data of the view of sites: filtered rows, linked rows, and ions that distinguish sites, from definitions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.annotation import IonSettings, SelectedSite, annotate_match
from proteoscope.engine.views.figures import Corner, Scatter
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.psm_mirrors import mirrored_arrangements
from proteoscope.engine.views.sites import SiteFilter, has_sites, link_site, missing_sites_reason, site_conditions, with_site
from proteoscope.engine.views.spectrum_figures import mirror_figure, mirrored_peak_text, peak_text, spectrum_figure
from tests.engine.views.result_projects import fragment_mz, project_with_results
from tests.engine.views.site_projects import SITE_PARAMETERS, project_with_sites

PLAIN = IonSettings(Tolerance(5, "ppm"), "by", 1, losses=(), shows_precursor=False)
SEQUENCE = "GASPETVIDEK"  # S3 and T6
PHOSPHO = 79.966331


def psm_at(position: int, **more: Any) -> dict[str, Any]:
    modifications = {"modification_positions": [position], "modification_names": ["Phospho"], "modification_masses": [PHOSPHO]}
    return {"sequence": SEQUENCE, "peptide": SEQUENCE, "charge": 2, "precursor_mz": 612.0, "scan": 7, **modifications, **more}


def masses(position: int) -> dict[str, float]:
    """Return the m/z of each b and y ion, from pyteomics."""
    numbers = range(1, len(SEQUENCE))
    return {f"{series}{number}": fragment_mz(psm_at(position), series, number, 1) for series in "by" for number in numbers}


def peaks_at(mz: list[float]) -> Peaks:
    return Peaks(np.array(sorted(mz)), np.arange(1.0, len(mz) + 1))


SITE = SelectedSite("Phospho", 3, 0.9, 6, 0.1)


def test_site_ions_are_the_fragments_between_both_sites() -> None:
    here, there = masses(3), masses(6)
    # All ions with the modification at S3, and one that only T6 has.
    peaks = peaks_at([*here.values(), there["b4"]])
    site = annotate_match(psm_at(3, site=SITE), peaks, PLAIN).site
    assert site is not None and (site.site, site.alternative) == ("S3", "T6")
    wanted = {mz for name, mz in here.items() if abs(mz - there[name]) > 1}
    assert len(wanted) == 6  # b3 to b5, y6 to y8
    assert sorted(peaks.mz[site.peaks]) == pytest.approx(sorted(wanted))
    other = annotate_match(psm_at(6, site=SITE.swapped), peaks, PLAIN).site
    assert other is not None and peaks.mz[other.peaks] == pytest.approx([there["b4"]])


def test_peaks_of_both_arrangements_do_not_distinguish_sites() -> None:
    # Without phosphate, b3 is b3 of the other arrangement without water.
    lost = masses(3)["b3"] - 97.976896
    settings = IonSettings(Tolerance(5, "ppm"), "by", 1, shows_precursor=False)
    site = annotate_match(psm_at(3, site=SITE), peaks_at([lost, masses(3)["b4"]]), settings).site
    assert site is not None and site.peaks.tolist() == [1]


def test_site_without_alternative_has_no_marked_ions() -> None:
    peaks = peaks_at(list(masses(3).values()))
    assert annotate_match(psm_at(3), peaks, PLAIN).site is None
    row = psm_at(3, site=SelectedSite("Phospho", 3, 1.0))
    assert annotate_match(row, peaks, PLAIN).site is None
    mirrored = mirrored_arrangements(row, peaks, PLAIN)
    assert mirrored.lower is None and "no other possible site" in mirrored.note


def test_inconsistent_site_rows_are_shown_without_marked_ions() -> None:
    peaks = peaks_at(list(masses(3).values()))
    for changes in (
        {"peptide": SEQUENCE},
        {"position": 30000},
        {"position": 4},
        {"possible_positions": [3, -7], "probabilities": [0.7, 0.3]},
    ):
        mirrored = mirrored_arrangements(with_site(psm_at(3), site_row(**changes)), peaks, PLAIN)
        assert mirrored.upper.ions is not None and mirrored.upper.ions.site is None
        assert mirror_figure(mirrored).panels


def dots_of(marks: tuple[Any, ...]) -> list[float]:
    return [x for mark in marks if isinstance(mark, Scatter) and mark.ink == "mark" for x in mark.x.tolist()]


def test_mirrored_arrangements_mark_their_site_ions() -> None:
    here, there = masses(3), masses(6)
    peaks = peaks_at([*here.values(), there["b4"]])
    mirrored = mirrored_arrangements(psm_at(3, site=SITE), peaks, PLAIN)
    assert mirrored.lower is not None and mirrored.lower.ions is not None
    assert [position for position, _, _ in mirrored.lower.ions.peptidoform.modifications] == [6]
    (panel,) = mirror_figure(mirrored).panels
    assert len(dots_of(panel.marks)) == 7
    corners = {(mark.is_low, mark.is_right): mark.text for mark in panel.marks if isinstance(mark, Corner)}
    assert corners == {
        (False, False): "S3, prob. 0.900",
        (True, False): "T6, prob. 0.100",
        (False, True): "• 6 peaks only with S3",
        (True, True): "• 1 peak only with T6",
    }
    at = int(np.searchsorted(peaks.mz, there["b4"] - 1e-4))
    assert "only with T6, not S3" in mirrored_peak_text(mirrored, 1, at)
    assert "only with" not in mirrored_peak_text(mirrored, 0, at)


def test_spectrum_figure_marks_site_ions_and_names_them() -> None:
    peaks = peaks_at(list(masses(3).values()))
    spectrum = annotate_match(psm_at(3, site=SITE), peaks, PLAIN)
    figure = spectrum_figure(spectrum)
    assert len(dots_of(figure.panels[0].marks)) == 6
    assert [entry.name for entry in figure.legend] == ["Peaks only with S3, not T6"]
    assert spectrum.site is not None
    texts = [peak_text(spectrum, peak).endswith("only with S3, not T6") for peak in range(len(peaks.mz))]
    assert np.flatnonzero(texts).tolist() == spectrum.site.peaks.tolist()
    plain = spectrum_figure(annotate_match(psm_at(3), peaks, PLAIN))
    assert not plain.legend and not dots_of(plain.panels[0].marks)


def site_row(**changes: Any) -> dict[str, Any]:
    row = {"peptide": "GAS[Phospho]PETVIDEK", "modification": "Phospho", "position": 3, "site_probability": 0.7}
    return {**row, "possible_positions": [3, 6], "probabilities": [0.7, 0.3], **changes}


def test_with_site_moves_modifications_to_the_most_likely_sites() -> None:
    details = with_site(psm_at(6), site_row())
    assert details["modification_positions"] == [3] and details["modification_masses"] == pytest.approx([PHOSPHO], abs=1e-4)
    assert details["site"] == SelectedSite("Phospho", 3, 0.7, 6, 0.3)


def test_with_site_alternative_is_most_likely_unoccupied_site() -> None:
    two = site_row(
        peptide="GAS[Phospho]PET[Phospho]VIDYK", possible_positions=[3, 6, 10, 99], probabilities=[0.9, 0.8, 0.3, 0.5], site_probability=0.9
    )
    assert with_site(psm_at(3), two)["site"].alternative == 10
    single = site_row(possible_positions=[3], probabilities=[1.0])
    assert with_site(psm_at(3), single)["site"].alternative is None


def test_with_site_finds_custom_modifications_by_position() -> None:
    details = with_site(psm_at(3), site_row(peptide="GAS[+10.5]PETVIDEK", modification="Label"))
    site = annotate_match(details, peaks_at([200.0]), PLAIN).site
    assert site is not None and (site.site, site.alternative) == ("S3", "T6")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return project_with_sites(tmp_path_factory.mktemp("sites") / "project")


@pytest.mark.parametrize(
    "chosen",
    [
        SiteFilter(),
        SiteFilter(shows_decoys=True),
        SiteFilter(probability=0.8),
        SiteFilter(q_value=0.1),
        SiteFilter(q_value=0.1, probability=0.95),
        SiteFilter(text="t"),
        SiteFilter(text="no such text"),
    ],
)
def test_site_conditions_select_the_rows_of_the_sites_filter(sites: Any, chosen: SiteFilter) -> None:
    project, _, _, rows = sites

    def passes(row: dict[str, Any]) -> bool:
        rate = row["localisation_q_value"]
        texts = (row["protein"], row["modification"], row["residue"], row["peptide"], row["sequence_window"])
        is_rated = chosen.q_value is None or not row["has_alternative"] or rate <= chosen.q_value
        is_likely = row["site_probability"] >= chosen.probability
        return (
            (chosen.shows_decoys or not row["is_decoy"]) and is_likely and is_rated and any(chosen.text.upper() in t.upper() for t in texts)
        )

    with open_run(project) as run:
        selected = run.tables.source("protein_sites").rows(site_conditions(chosen)).tolist()
    assert selected == [number for number, row in enumerate(rows) if passes(row)]


def test_link_site_finds_psm_peptide_and_protein_rows_of_a_site(sites: Any) -> None:
    project, psms, psm_sites, protein_sites = sites
    with open_run(project) as run:
        assert has_sites(run)
        source = run.tables.source("psms")
        peptides = run.tables.source("peptides").query("SELECT peptide, is_decoy FROM peptides ORDER BY file_row_number").to_pylist()
        proteins = run.tables.source("proteins").query("SELECT accessions FROM proteins ORDER BY file_row_number")["accessions"].to_pylist()
        first_members = 0
        for site in protein_sites:
            linked = link_site(source, site)
            assert linked.psm == site["best_psm"] and linked.name == psms[linked.psm]["peptide"]
            assert linked.psm_site is not None and psm_sites[linked.psm_site]["psm"] == linked.psm
            assert linked.peptide is not None and peptides[linked.peptide] == {"peptide": linked.name, "is_decoy": False}
            if linked.protein is not None:
                assert site["protein"] in proteins[linked.protein]
                is_first = proteins[linked.protein][0] == site["protein"]
                assert linked.residue == (site["position"] - 1 if is_first else None)
                first_members += is_first
        assert first_members


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"localise": None}, "No modification was localised"),
        ({"localise": "none"}, "“Localise modifications” to “automatic”"),
        ({"variable_modifications": ["Oxidation (M)"]}, "“all”, which includes Oxidation (M)"),
        ({"variable_modifications": []}, "preset “phospho”"),
        ({"variable_modifications": ["?"]}, "preset “phospho”"),
        ({}, "Search again to see"),
        ({"localise": "all", "variable_modifications": ["Oxidation (M)"]}, "Search again to see"),
    ],
)
def test_missing_sites_reason_names_the_excluding_parameter(changes: dict[str, Any], text: str) -> None:
    assert text in missing_sites_reason(SimpleNamespace(parameters={**SITE_PARAMETERS, **changes}))  # type: ignore[arg-type]


def test_has_sites_is_false_for_runs_without_site_tables(tmp_path: Path) -> None:
    project, _ = project_with_results(tmp_path / "project")
    with open_run(project) as run:
        assert not has_sites(run)

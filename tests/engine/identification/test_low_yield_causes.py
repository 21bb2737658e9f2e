"""Causes of few identifications other than tolerances: the enzyme, and precursors outside the searched masses."""

import re

import pytest

from tests.engine.identification.test_search import REPOSITORY, Simulation, accepted, fixed, proteins_of, search


@pytest.fixture(scope="module")
def proteins():
    sequences = proteins_of(REPOSITORY / "resources" / "samples" / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")
    return dict(list(sequences.items())[:1500])


@pytest.fixture(scope="module")
def database(proteins, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "proteins.fasta"
    path.write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
    return path


def before_aspartate(proteins, n):
    """Return peptides of Asp-N by its rule, a cut before each D; none of them is tryptic."""
    peptides = [peptide for sequence in proteins.values() for peptide in re.findall(r"D[^D]{9,17}(?=D)", sequence)]
    return [peptide for peptide in peptides if not set(peptide) - set("ACDEFGHIKLMNPQRSTVWY") and peptide[-1] not in "KR"][::7][:n]


def test_advice_suggests_the_enzyme_of_the_peptides(proteins, database, tmp_path):
    simulation = Simulation(3, 4, 10)
    for number, sequence in enumerate(before_aspartate(proteins, 80)):
        simulation.add(sequence, 2 + number % 2, fixed(sequence))
    path = simulation.write(tmp_path / "asp.mgf")
    summary, rows = search(path, database, tmp_path / "lost", "high-resolution", advice="full")
    assert len(accepted(rows)) < 4
    (message,) = [text for text in summary.messages if "set enzyme to" in text]
    assert "set enzyme to Asp-N" in message
    # The advice generates peptides of other enzymes only near the precursors, which must not miss matches.
    assert int(re.search(r"spectra (\d+) match well with peptides of Asp-N", message)[1]) > 60
    again, rows_again = search(path, database, tmp_path / "found", "high-resolution", advice="full", enzyme="Asp-N")
    assert len(accepted(rows_again)) > 60 and not [text for text in again.messages if "enzyme" in text]


def test_advice_reports_precursors_outside_the_searched_masses(proteins, database, tmp_path):
    simulation = Simulation(4, 4, 10)
    for sequence in before_aspartate(proteins, 40):
        simulation.add(sequence, 2, fixed(sequence))
    path = simulation.write(tmp_path / "light.mgf")
    summary, _ = search(path, database, tmp_path / "project", "high-resolution", advice="full", minimum_mass=3000)
    (message,) = [text for text in summary.messages if "minimum_mass" in text]
    assert message.startswith("40 of 40 precursors weigh less than 3000 Da")


def test_advice_suggests_c_and_z_ions_for_etd_spectra(shared_cases, tmp_path):
    folder = shared_cases / "etd_not_noticed"
    files = folder / "etd.mzML", folder / "small.fasta"
    summary, rows = search(*files, tmp_path / "lost", "high-resolution", advice="full", ion_series="by")
    assert not accepted(rows)
    (message,) = [text for text in summary.messages if "set ion_series to" in text]
    assert message.startswith("Of 60 spectra 60 match well with the ions c, z") and message.endswith("set ion_series to cz")
    assert any("of ETD" in text and text.endswith("set ion_series=activation") for text in summary.messages)
    again, rows_again = search(*files, tmp_path / "found", "high-resolution", advice="full")
    assert len(accepted(rows_again)) == 60 and not [text for text in again.messages if "ion_series" in text]

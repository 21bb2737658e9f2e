"""The advice on a run with few identifications names the tolerance to change."""

import re

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.identification.low_yield import find_error_cluster
from tests.engine.identification.test_search import REPOSITORY, Simulation, accepted, fixed, proteins_of, search, tryptic


class HeavyPrecursors(Simulation):
    """A simulation with all precursors 35 ppm too heavy, in addition to their errors."""

    def _write(self, title, neutral_mass, charge, ions, noise_level, write_charge):
        super()._write(title, neutral_mass * (1 + 35e-6), charge, ions, noise_level, write_charge)


@pytest.fixture(scope="module")
def proteins():
    return proteins_of(REPOSITORY / "resources" / "samples" / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


@pytest.fixture(scope="module")
def database(proteins, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "proteins.fasta"
    path.write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
    return path


def spectra_of(simulation, proteins, path):
    for number, sequence in enumerate(tryptic(proteins, 22, 100)):
        simulation.add(sequence, 2 + number % 2, fixed(sequence))
    return simulation.write(path)


def low_yield_messages(summary):
    return [message for message in summary.messages if message.startswith("Few spectra were identified")]


@pytest.mark.parametrize("requested", ["10 ppm", "0.01 Da"])
def test_advice_suggests_a_sufficient_precursor_tolerance(requested, proteins, database, tmp_path):
    path = spectra_of(HeavyPrecursors(21, 4, 10), proteins, tmp_path / "tune.mgf")
    summary, rows = search(path, database, tmp_path / "lost", "high-resolution", advice="full", precursor_tolerance=requested)
    assert len(accepted(rows)) < 10
    (message,) = low_yield_messages(summary)
    assert "errors of precursors lie near +35 ppm" in message
    assert "of fragments are" not in message
    needed = message.split("set the precursor tolerance to ")[1].split(",")[0]
    again, rows_again = search(path, database, tmp_path / "found", "high-resolution", advice="full", precursor_tolerance=needed)
    assert len(accepted(rows_again)) > 80
    assert not low_yield_messages(again)


def test_advice_reports_mass_errors_of_a_miscalibrated_run(tmp_path):
    samples = REPOSITORY / "resources" / "samples"
    assert main(["convert", str(samples / "BSA1.mzML.gz"), "--out", str(tmp_path / "bsa.mgf"), "--quiet"]) == 0
    text = re.sub(r"PEPMASS=([\d.]+)", lambda mz: f"PEPMASS={float(mz[1]) * (1 - 60e-6):.6f}", (tmp_path / "bsa.mgf").read_text())
    (tmp_path / "tune.mgf").write_text(text)
    database = samples / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
    summary, _ = search(tmp_path / "tune.mgf", database, tmp_path / "lost", "low-resolution", advice="full")
    (message,) = low_yield_messages(summary)
    assert "errors of precursors lie near -60 ppm" in message and "set the precursor tolerance to 65 ppm, or calibrate" in message


def test_advice_suggests_fragment_tolerance_for_ion_trap_spectra(proteins, database, tmp_path):
    path = spectra_of(Simulation(5, 4, 300), proteins, tmp_path / "trap.mgf")
    summary, rows = search(path, database, tmp_path / "lost", "high-resolution", advice="full", fragment_tolerance="5 ppm")
    assert len(accepted(rows)) < 10
    (message,) = low_yield_messages(summary)
    assert "set the fragment tolerance to 0.5 Da" in message
    assert "errors of precursors" not in message


def test_advice_reports_no_common_error_for_wrong_database(proteins, database, tmp_path):
    simulation = Simulation(6, 4, 10)
    for number, sequence in enumerate(tryptic(proteins, 22, 60)):
        simulation.add(sequence[:-1][::3] + sequence[:-1][1::3] + sequence[:-1][2::3] + sequence[-1], 2 + number % 2, fixed(sequence))
    summary, _ = search(simulation.write(tmp_path / "other.mgf"), database, tmp_path / "project", "high-resolution", advice="full")
    (message,) = low_yield_messages(summary)
    assert "of 60 at 1 % FDR" in message
    assert "60 spectra show no common error" in message


def test_find_error_cluster_returns_none_for_uniform_mass_errors():
    random = np.random.default_rng(1)
    assert not any(find_error_cluster(random.uniform(-200, 200, 12), 200.0) for _ in range(300))
    cluster = find_error_cluster(np.append(random.normal(-61, 3, 40), random.uniform(-200, 200, 4)), 200.0)
    assert cluster.median == pytest.approx(-61, abs=2)
    assert 65 <= cluster.reach <= 80
